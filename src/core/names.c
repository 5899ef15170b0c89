#include "core/names.h"

#include <inttypes.h>

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
