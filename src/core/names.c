#include "core/names.h"

#include <inttypes.h>

#include "core/paths.h"
#include "golang/framevars.h"

void sonde_core_type_name(struct sonde_core_session *s, uint32_t typing, struct sonde_buf *to)
{
	uint32_t id = typing & ~SONDE_CORE_TYPE_MANY;
	const char *name = sonde_go_type_of(s->types, id)->name;
	sonde_buf_printf(to, "%s%s",
		(typing & SONDE_CORE_TYPE_MANY) && id != s->types->string_id ? "[]" : "", name);
}

void sonde_core_owner_name(
	struct sonde_core_session *s, const struct sonde_core_owner *o, struct sonde_buf *to)
{
	size_t n;
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(s->go->dwarf, &n);
	if (o->kind == SONDE_CORE_OWNER_GLOBAL && o->index < n) {
		sonde_buf_str(to, globals[o->index].name);
	} else if (o->kind == SONDE_CORE_OWNER_GLOBAL) {
		sonde_buf_str(to, "data without a name");
	} else if (o->kind == SONDE_CORE_OWNER_GOROUTINE) {
		const struct sonde_goroutine *g = &s->goroutines->all.items[o->index];
		struct sonde_pcfunc f;
		sonde_buf_printf(to, "goroutine %" PRIu64, g->id);
		if (sonde_go_function_at(s->go, g->start_pc, &f, NULL))
			sonde_buf_printf(to, " (%s)", f.name);
	} else {
		sonde_buf_str(to, "finalizers that wait to run");
	}
}

bool sonde_core_global_name(struct sonde_core_session *s, uint64_t addr, struct sonde_buf *to)
{
	uint32_t index = sonde_go_types_global_at(s->types, addr);
	if (index == UINT32_MAX)
		return false;
	size_t n;
	const struct sonde_dwarf_global *g = &sonde_dwarf_globals(s->go->dwarf, &n)[index];
	sonde_buf_str(to, g->name);
	sonde_go_types_field(s->types, sonde_go_types_dwarf(s->types, g->type),
		addr - s->go->bias - g->addr, to);
	return true;
}

bool sonde_core_variable_name(struct sonde_core_session *s, const struct sonde_goroutine *g,
	const struct sonde_go_frame *frame, uint64_t addr, struct sonde_buf *to)
{
	sonde_cleanup(sonde_dwarf_variables) struct sonde_dwarf_variables variables = {0};
	struct sonde_error *err = sonde_go_frame_variables(s->go, frame, &variables);
	sonde_error_free(err);
	struct sonde_go_frame_view view;
	sonde_go_frame_view_init(&view, s->go, g, frame);
	for (size_t i = 0; i < variables.n; i++) {
		const struct sonde_dwarf_variable *v = &variables.items[i];
		struct sonde_location_piece pieces[SONDE_GO_MAX_PIECES];
		size_t n;
		if (sonde_go_frame_locate(&view, v, pieces, &n))
			continue;
		uint32_t id = sonde_go_types_dwarf(s->types, v->type);
		uint64_t size = sonde_go_type_of(s->types, id)->size_bytes;
		for (size_t k = 0; k < n; k++) {
			uint64_t len = pieces[k].size_bytes ? pieces[k].size_bytes : size;
			if (pieces[k].kind != SONDE_LOCATION_ADDR || addr < pieces[k].value ||
				addr - pieces[k].value >= len)
				continue;
			sonde_buf_str(to, v->name);
			sonde_go_types_field(s->types, id,
				pieces[k].offset_bytes + (addr - pieces[k].value), to);
			return true;
		}
	}
	return false;
}

void sonde_core_field_name(struct sonde_core_session *s, const struct sonde_go_span *span,
	uint32_t object, uint64_t offset, struct sonde_buf *to)
{
	if (offset == SONDE_CORE_BY_SPECIAL) {
		sonde_buf_str(to, " (its finalizer, cleanup or weak handle)");
		return;
	}
	uint32_t typing = s->typing->of[object], id = typing & ~SONDE_CORE_TYPE_MANY;
	const struct sonde_go_type *type = sonde_go_type_of(s->types, id);
	if (span->pointers == SONDE_GO_HEADER)
		offset -= (uint64_t)s->go->layout.header_bytes;
	if ((typing & SONDE_CORE_TYPE_MANY) && type->size_bytes) {
		sonde_buf_printf(to, "[%" PRIu64 "]", offset / type->size_bytes);
		offset %= type->size_bytes;
	}
	sonde_go_types_field(s->types, id, offset, to);
}
