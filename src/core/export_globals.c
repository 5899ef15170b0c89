#include <inttypes.h>
#include <string.h>

#include "core/export_value.h"
#include "core/histogram.h"
#include "core/report.h"
#include "output/report.h"

/* "a/b.x" is of package a/b; variables of C and assembly are of none. */
static bool passes(const struct sonde_core_globals_options *o, const char *name)
{
	const char *start;
	if (o->name && !strstr(name, o->name))
		return false;
	if (!o->package)
		return true;
	size_t len = sonde_core_package_of(name, &start);
	return len == strlen(o->package) && !memcmp(start, o->package, len);
}

static struct sonde_error *report_global(struct sonde_report *out, struct sonde_core_session *s,
	const struct sonde_dwarf_global *g, const struct sonde_go_value_limits *limits)
{
	sonde_cleanup(sonde_arena) struct sonde_arena arena;
	sonde_arena_init(&arena);
	uint32_t id = sonde_go_types_dwarf(s->types, g->type);
	const struct sonde_go_type *type = sonde_go_type_of(s->types, id);
	struct sonde_go_value *v =
		sonde_go_value_at(s->types, id, g->addr + s->go->bias, limits, &arena);
	if (!v)
		return &sonde_enomem;
	sonde_report_item_begin(out);
	sonde_report_field(out, "name", NULL, sonde_value_text(g->name));
	sonde_report_field(out, "addr", NULL, sonde_value_addr(g->addr + s->go->bias));
	sonde_report_field(out, "type", NULL, sonde_value_text(type->name));
	sonde_report_field(out, "bytes", NULL, sonde_value_bytes(type->size_bytes));
	sonde_core_report_value(out, s, "value", v);
	if (!sonde_report_json(out)) {
		sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
		sonde_go_value_text(s->types, v, &text);
		sonde_report_line(out, "%s  %s, %" PRIu64 " bytes at 0x%" PRIx64, g->name,
			type->name, type->size_bytes, g->addr + s->go->bias);
		sonde_report_line(out, "    %s", sonde_buf_text(&text));
	}
	sonde_report_item_end(out);
	return NULL;
}

struct sonde_error *sonde_core_report_globals(struct sonde_core_session *session,
	const struct sonde_core_globals_options *options, struct sonde_report *out)
{
	SONDE_TRY(sonde_core_session_need_go(session));
	if (!session->types)
		SONDE_TRY(sonde_go_types_open(session->go, &session->types));
	struct sonde_go_value_limits limits = sonde_core_value_limits(&options->values);
	size_t n;
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(session->go->dwarf, &n);
	uint64_t n_shown = 0, bytes = 0;
	sonde_report_begin(out, "core.globals", 1);
	sonde_report_list_begin(out, "globals");
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		if (!passes(options, globals[i].name))
			continue;
		SONDE_TRY(report_global(out, session, &globals[i], &limits));
		n_shown++;
		bytes += sonde_go_type_of(
			session->types, sonde_go_types_dwarf(session->types, globals[i].type))
				 ->size_bytes;
	}
	sonde_report_list_end(out);
	sonde_report_field(out, "count", NULL, sonde_value_count(n_shown));
	sonde_report_field(out, "bytes", NULL, sonde_value_bytes(bytes));
	sonde_report_field(out, "total", NULL, sonde_value_count(n));
	sonde_report_blank(out);
	sonde_report_line(
		out, "%" PRIu64 " of %zu variables, %" PRIu64 " bytes", n_shown, n, bytes);
	return sonde_report_end(out, &session->notes);
}
