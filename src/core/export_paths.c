#include <inttypes.h>

#include "core/export_root.h"
#include "core/names.h"
#include "core/paths.h"
#include "core/report.h"
#include "output/report.h"

enum { MAX_PATHS = 1000 };

static const char *const root_kinds[] = {
	[SONDE_GO_ROOT_DATA] = "package variable",
	[SONDE_GO_ROOT_STACK] = "stack",
	[SONDE_GO_ROOT_REGISTER] = "register",
	[SONDE_GO_ROOT_GOROUTINE] = "goroutine",
	[SONDE_GO_ROOT_QUEUE] = "finalizer queue",
};

void sonde_core_report_root(
	struct sonde_report *out, struct sonde_core_session *s, const struct sonde_go_root *root)
{
	sonde_cleanup(sonde_buf) struct sonde_buf name = {0}, text = {0};
	const struct sonde_goroutine *g =
		root->goroutine == UINT32_MAX ? NULL : &s->goroutines->all.items[root->goroutine];
	const struct sonde_go_frame *frame =
		g && root->frame != UINT32_MAX ? &s->goroutines->frames.items[root->frame] : NULL;
	struct sonde_pccall call = {0};
	if (frame)
		sonde_go_frame_calls(s->go, frame, &call, 1);
	bool named = root->kind == SONDE_GO_ROOT_DATA
		? sonde_core_global_name(s, root->addr, &name)
		: frame && root->kind == SONDE_GO_ROOT_STACK &&
			sonde_core_variable_name(s, g, frame, root->addr, &name);
	sonde_report_section_begin(out, "root", NULL);
	sonde_report_field(out, "kind", NULL, sonde_value_text(root_kinds[root->kind]));
	sonde_report_field(out, "name", NULL,
		named ? sonde_value_text(sonde_buf_text(&name)) : sonde_value_none());
	sonde_report_field(
		out, "addr", NULL, root->addr ? sonde_value_addr(root->addr) : sonde_value_none());
	sonde_report_field(out, "conservative", NULL, sonde_value_bool(root->conservative));
	sonde_report_field(
		out, "goroutine", NULL, g ? sonde_value_count(g->id) : sonde_value_none());
	sonde_report_field(out, "function", NULL, sonde_value_text(call.function));
	sonde_report_section_end(out);
	sonde_buf_str(&text, root_kinds[root->kind]);
	if (named)
		sonde_buf_printf(&text, " %s", sonde_buf_text(&name));
	else if (root->addr)
		sonde_buf_printf(&text, " word at 0x%" PRIx64, root->addr);
	if (g)
		sonde_buf_printf(&text, ", goroutine %" PRIu64, g->id);
	if (call.function)
		sonde_buf_printf(&text, ", %s", call.function);
	if (root->conservative)
		sonde_buf_str(&text, " (by its value: it may be no pointer)");
	sonde_report_line(out, "    %s", sonde_buf_text(&text));
}

static void report_step(
	struct sonde_report *out, struct sonde_core_session *s, const struct sonde_core_step *step)
{
	const struct sonde_go_span *span = sonde_go_heap_span_of(s->heap, step->object);
	uint64_t addr = sonde_go_span_addr(span, step->object - span->first);
	sonde_cleanup(sonde_buf) struct sonde_buf type = {0}, field = {0};
	sonde_core_type_name(s, s->typing->of[step->object], &type);
	sonde_core_field_name(s, span, step->object, step->offset, &field);
	sonde_report_item_begin(out);
	sonde_report_field(out, "addr", NULL, sonde_value_addr(addr));
	sonde_report_field(out, "type", NULL, sonde_value_text(sonde_buf_text(&type)));
	sonde_report_field(out, "offset", NULL,
		step->offset == SONDE_CORE_BY_SPECIAL ? sonde_value_none()
						      : sonde_value_count(step->offset));
	sonde_report_field(out, "field", NULL, sonde_value_text(sonde_buf_text(&field)));
	sonde_report_item_end(out);
	sonde_report_line(out, "    0x%" PRIx64 "  %s%s", addr, sonde_buf_text(&type),
		sonde_buf_text(&field));
}

struct sonde_error *sonde_core_report_reachable(struct sonde_core_session *session,
	const struct sonde_core_reachable_options *options, struct sonde_report *out)
{
	uint64_t n = options->n_paths ? options->n_paths : 1;
	if (n > MAX_PATHS)
		return sonde_error_new(SONDE_USAGE, "at most %d paths", MAX_PATHS);
	sonde_cleanup(sonde_core_paths) struct sonde_core_paths paths = {0};
	SONDE_TRY(sonde_core_paths_find(session, options->addr, n, &paths));
	SONDE_TRY(sonde_core_session_need_typing(session));
	const struct sonde_go_span *span = sonde_go_heap_span_of(session->heap, paths.target);
	uint64_t addr = sonde_go_span_addr(span, paths.target - span->first);
	sonde_cleanup(sonde_buf) struct sonde_buf type = {0};
	sonde_core_type_name(session, session->typing->of[paths.target], &type);
	sonde_report_begin(out, "core.reachable", 1);
	sonde_report_field(out, "addr", NULL, sonde_value_addr(addr));
	sonde_report_field(out, "type", NULL, sonde_value_text(sonde_buf_text(&type)));
	sonde_report_field(out, "slot_bytes", NULL, sonde_value_bytes(span->slot_bytes));
	sonde_report_field(out, "referrers", NULL, sonde_value_count(paths.n_referrers));
	sonde_report_line(out,
		"0x%" PRIx64 "  %s, a slot of %" PRIu64 " bytes, %" PRIu64 " pointer%s to it", addr,
		sonde_buf_text(&type), span->slot_bytes, paths.n_referrers,
		paths.n_referrers == 1 ? "" : "s");
	sonde_report_blank(out);
	sonde_report_list_begin(out, "paths");
	for (size_t i = 0; i < paths.all.n; i++) {
		const struct sonde_core_path *p = &paths.all.items[i];
		sonde_report_item_begin(out);
		sonde_report_heading(out, "path %zu, %zu object%s:", i + 1, p->n_steps,
			p->n_steps == 1 ? "" : "s");
		sonde_core_report_root(out, session, &p->root);
		sonde_report_list_begin(out, "objects");
		for (size_t k = 0; k < p->n_steps && !sonde_report_failed(out); k++)
			report_step(out, session, &paths.steps.items[p->first + k]);
		sonde_report_list_end(out);
		sonde_report_item_end(out);
		sonde_report_line(out, "    0x%" PRIx64 "  %s", addr, sonde_buf_text(&type));
		sonde_report_blank(out);
	}
	sonde_report_list_end(out);
	return sonde_report_end(out, &session->notes);
}
