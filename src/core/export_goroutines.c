#include <inttypes.h>

#include "base/buf.h"
#include "core/goroutines.h"
#include "core/report.h"
#include "core/threads.h"
#include "output/report.h"

enum { MAX_CALLS = 256, MAX_IDS_SHOWN = 20 };

static bool frame_is_signalled(const struct sonde_go_frame *f)
{
	return f->flags & SONDE_GO_FRAME_SIGNALLED;
}

static void report_call(struct sonde_report *out, const struct sonde_go *go,
	const struct sonde_go_frame *f, const struct sonde_pccall *c)
{
	struct sonde_pcfunc function = {0};
	sonde_go_frame_function(go, f, &function);
	sonde_report_item_begin(out);
	sonde_report_field(out, "function", NULL, sonde_value_text(c->function));
	sonde_report_field(out, "file", NULL, sonde_value_text(c->file));
	sonde_report_field(out, "line", NULL, sonde_value_count(c->line));
	sonde_report_field(out, "inlined", NULL, sonde_value_bool(c->inlined));
	if (!c->inlined) {
		sonde_report_field(out, "pc", NULL, sonde_value_addr(f->pc));
		sonde_report_field(out, "offset", NULL, sonde_value_count(f->pc - function.entry));
		sonde_report_field(out, "sp", NULL, sonde_value_addr(f->sp));
		sonde_report_field(out, "system_stack", NULL,
			sonde_value_bool(f->flags & SONDE_GO_FRAME_SYSTEM_STACK));
		sonde_report_field(out, "signalled", NULL, sonde_value_bool(frame_is_signalled(f)));
		sonde_report_line(out, "    %s", c->function);
		sonde_report_line(out, "        %s:%" PRIu32 " +0x%" PRIx64 "%s%s", c->file,
			c->line, f->pc - function.entry,
			f->flags & SONDE_GO_FRAME_SYSTEM_STACK ? "  [system stack]" : "",
			frame_is_signalled(f) ? "  [interrupted by a signal]" : "");
	} else {
		sonde_report_line(out, "    %s", c->function);
		sonde_report_line(out, "        %s:%" PRIu32 "  [inlined]", c->file, c->line);
	}
	sonde_report_item_end(out);
}

/* threads may be NULL: no goroutine has frames of other languages. */
static void report_frames(struct sonde_report *out, const struct sonde_core_session *s,
	struct sonde_core_threads *threads, const struct sonde_goroutine *g)
{
	struct sonde_pccall calls[MAX_CALLS];
	uint32_t index = (uint32_t)(g - s->goroutines->all.items);
	const struct sonde_core_foreign *foreign = NULL;
	sonde_report_list_begin(out, "frames");
	for (size_t i = 0; i < g->n_frames && !sonde_report_failed(out); i++) {
		const struct sonde_go_frame *f = &s->goroutines->frames.items[g->first_frame + i];
		foreign = threads ? sonde_core_threads_foreign(threads, index, i) : NULL;
		if (foreign)
			sonde_core_report_foreign(out, threads, foreign);
		else if (g->gap.text && g->gap.before == i)
			sonde_report_line(out, "    %s", g->gap.text);
		if (foreign && foreign->bottom)
			break; /* the thread's stack ends there */
		size_t n = sonde_go_frame_calls(s->go, f, calls, MAX_CALLS);
		for (size_t k = 0; k < n && k < MAX_CALLS; k++)
			report_call(out, s->go, f, &calls[k]);
	}
	sonde_report_list_end(out);
	if (g->cut)
		sonde_report_line(out, "    %s", g->cut);
	sonde_report_field(out, "cut", NULL, sonde_value_text(g->cut));
	if (g->gap.text) {
		sonde_report_section_begin(out, "gap", NULL);
		sonde_report_field(out, "text", NULL, sonde_value_text(g->gap.text));
		sonde_report_field(out, "before", NULL, sonde_value_count(g->gap.before));
		sonde_report_section_end(out);
	}
}

static void report_creator(struct sonde_report *out, const struct sonde_core_session *s,
	const struct sonde_goroutine *g, bool with_parent)
{
	struct sonde_pcfunc f;
	const struct sonde_go_module *m;
	struct sonde_pccall call;
	/* The first goroutine was made by the runtime's start, not by a go statement. */
	if (!g->created_by_pc || g->id == 1 ||
		!sonde_go_function_at(s->go, g->created_by_pc - 1, &f, &m))
		return;
	/* The runtime names the function itself, not what is inlined at the go statement. */
	sonde_pclntab_calls(&m->functions, &f, g->created_by_pc - 1, &call, 1);
	sonde_report_section_begin(out, "created_by", NULL);
	sonde_report_field(out, "function", NULL, sonde_value_text(f.name));
	sonde_report_field(out, "file", NULL, sonde_value_text(call.file));
	sonde_report_field(out, "line", NULL, sonde_value_count(call.line));
	sonde_report_field(out, "offset", NULL, sonde_value_count(g->created_by_pc - f.entry));
	sonde_report_section_end(out);
	if (with_parent && g->parent_id)
		sonde_report_line(
			out, "    created by %s in goroutine %" PRIu64, f.name, g->parent_id);
	else
		sonde_report_line(out, "    created by %s", f.name);
	sonde_report_line(out, "        %s:%" PRIu32 " +0x%" PRIx64, call.file, call.line,
		g->created_by_pc - f.entry);
}

static void add_header(struct sonde_buf *b, const struct sonde_goroutine *g)
{
	sonde_buf_printf(b, "[%s", sonde_core_goroutine_doing(g));
	if (g->scanned)
		sonde_buf_str(b, " (scan)");
	if (g->locked)
		sonde_buf_str(b, ", locked to thread");
	sonde_buf_char(b, ']');
}

static void report_labels(struct sonde_report *out, const struct sonde_goroutine *g)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	/* A list, not an object: keys are the program's and may repeat. */
	sonde_report_list_begin(out, "labels");
	for (size_t i = 0; i < g->n_labels; i++) {
		sonde_report_item_begin(out);
		sonde_report_field(out, "key", NULL, sonde_value_text(g->labels[i].key));
		sonde_report_field(out, "value", NULL, sonde_value_text(g->labels[i].value));
		sonde_report_item_end(out);
		sonde_buf_printf(
			&b, "%s%s=%s", i ? ", " : "", g->labels[i].key, g->labels[i].value);
	}
	sonde_report_list_end(out);
	if (g->n_labels)
		sonde_report_line(out, "    labels: %s", sonde_buf_text(&b));
}

static void report_one(struct sonde_report *out, const struct sonde_core_session *s,
	struct sonde_core_threads *in_c, const struct sonde_goroutine *g)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	add_header(&b, g);
	if (g->m_id >= 0)
		sonde_buf_printf(&b, " m%" PRId64, g->m_id);
	size_t n_threads;
	const struct sonde_thread *threads = sonde_target_threads(s->target, &n_threads);
	if (g->thread >= 0)
		sonde_buf_printf(&b, " thread %" PRIu32, threads[g->thread].tid);
	sonde_report_item_begin(out);
	sonde_report_heading(out, "goroutine %" PRIu64 " %s:", g->id, sonde_buf_text(&b));
	sonde_report_field(out, "id", NULL, sonde_value_count(g->id));
	sonde_report_field(out, "addr", NULL, sonde_value_addr(g->addr));
	sonde_report_field(out, "state", NULL, sonde_value_text(g->state));
	sonde_report_field(out, "wait_reason", NULL, sonde_value_text(g->wait_reason));
	sonde_report_field(out, "scanned", NULL, sonde_value_bool(g->scanned));
	sonde_report_field(out, "system", NULL, sonde_value_bool(g->system));
	sonde_report_field(out, "locked", NULL, sonde_value_bool(g->locked));
	sonde_report_field(out, "parent", NULL,
		g->parent_id ? sonde_value_count(g->parent_id) : sonde_value_none());
	sonde_report_field(
		out, "m", NULL, g->m_id >= 0 ? sonde_value_signed(g->m_id) : sonde_value_none());
	sonde_report_field(out, "thread", NULL,
		g->thread >= 0 ? sonde_value_count(threads[g->thread].tid) : sonde_value_none());
	report_labels(out, g);
	report_frames(out, s, in_c, g);
	report_creator(out, s, g, true);
	sonde_report_item_end(out);
	sonde_report_blank(out);
}

static void report_group(struct sonde_report *out, const struct sonde_core_session *s,
	struct sonde_core_threads *in_c, const struct sonde_core_goroutine_groups *groups,
	const struct sonde_core_goroutine_group *group)
{
	const uint32_t *members = groups->members.items + group->first;
	const struct sonde_goroutine *g = &s->goroutines->all.items[members[0]];
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	add_header(&b, g);
	sonde_report_item_begin(out);
	sonde_report_field(out, "count", NULL, sonde_value_count(group->n));
	sonde_report_field(out, "state", NULL, sonde_value_text(g->state));
	sonde_report_field(out, "wait_reason", NULL, sonde_value_text(g->wait_reason));
	sonde_report_heading(out, "%" PRIu32 " goroutine%s %s:", group->n, group->n == 1 ? "" : "s",
		sonde_buf_text(&b));
	struct sonde_json *json = sonde_report_json(out);
	sonde_cleanup(sonde_buf) struct sonde_buf ids = {0};
	if (json)
		sonde_json_array_begin(json, "ids");
	for (uint32_t i = 0; i < group->n; i++) {
		uint64_t id = s->goroutines->all.items[members[i]].id;
		if (json)
			sonde_json_u64(json, NULL, id);
		else if (i < MAX_IDS_SHOWN)
			sonde_buf_printf(&ids, " %" PRIu64, id);
	}
	if (json)
		sonde_json_array_end(json);
	if (group->n > MAX_IDS_SHOWN)
		sonde_buf_printf(&ids, " and %" PRIu32 " more", group->n - MAX_IDS_SHOWN);
	sonde_report_line(out, "    ids:%s", sonde_buf_text(&ids));
	report_frames(out, s, in_c, g);
	report_creator(out, s, g, false);
	sonde_report_item_end(out);
	sonde_report_blank(out);
}

struct sonde_error *sonde_core_report_goroutines(struct sonde_core_session *session,
	const struct sonde_core_goroutines_options *options, struct sonde_report *out)
{
	struct sonde_core_goroutine_filter filter = {
		.has_id = options->has_id,
		.id = options->id,
		.state = options->state,
		.function = options->function,
	};
	sonde_cleanup(sonde_u32_vec) struct sonde_u32_vec chosen = {0};
	SONDE_TRY(sonde_core_goroutines_choose(session, &filter, &chosen));
	if (options->has_id && !chosen.n)
		return sonde_error_new(SONDE_NOT_FOUND, "no goroutine %" PRIu64 " (of %zu)%s",
			options->id, session->goroutines->all.n,
			options->state || options->function ? " that passes the filters" : "");
	sonde_cleanup(sonde_core_threads) struct sonde_core_threads *in_c = NULL;
	if (sonde_core_threads_mixed(session))
		SONDE_TRY(sonde_core_threads_open(session, &in_c));
	bool each = options->all || options->has_id;
	sonde_cleanup(sonde_core_goroutine_groups) struct sonde_core_goroutine_groups groups = {0};
	if (!each)
		SONDE_TRY(sonde_core_goroutines_group(session, &chosen, &groups));
	sonde_report_begin(out, "core.goroutines", 1);
	sonde_report_field(out, "total", NULL, sonde_value_count(session->goroutines->all.n));
	sonde_report_field(out, "shown", NULL, sonde_value_count(chosen.n));
	if (chosen.n == session->goroutines->all.n)
		sonde_report_line(out, "%zu goroutines", chosen.n);
	else
		sonde_report_line(
			out, "%zu of %zu goroutines", chosen.n, session->goroutines->all.n);
	sonde_report_blank(out);
	sonde_report_list_begin(out, each ? "goroutines" : "groups");
	for (size_t i = 0; each && i < chosen.n && !sonde_report_failed(out); i++)
		report_one(out, session, in_c, &session->goroutines->all.items[chosen.items[i]]);
	for (size_t i = 0; !each && i < groups.groups.n && !sonde_report_failed(out); i++)
		report_group(out, session, in_c, &groups, &groups.groups.items[i]);
	sonde_report_list_end(out);
	return sonde_report_end(out, &session->notes);
}
