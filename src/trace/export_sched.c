#include <inttypes.h>

#include "output/report.h"
#include "output/text.h"
#include "trace/export_frames.h"
#include "trace/export_latency.h"
#include "trace/report.h"
#include "trace/sched.h"

static const struct sonde_column columns[] = {
	SONDE_TRACE_LATENCY_COLUMNS, {"entry", "ENTRY", .may_cut = true}};
enum { N_COLUMNS = SONDE_ARRAY_LEN(columns) };

static const char *name_of(const struct sonde_trace_reader *reader, uint32_t interned)
{
	return interned ? sonde_trace_interned(reader, interned) : NULL;
}

static void latency_values(
	const struct sonde_trace_latency *l, const char *name, struct sonde_value values[N_COLUMNS])
{
	values[sonde_trace_latency_values(l, values)] = sonde_value_text(name);
}

/* What made it runnable, in words. */
static const char *cause_of(const struct sonde_trace_wait *w)
{
	switch (w->kind) {
	case SONDE_TRACE_GO_CREATE:
	case SONDE_TRACE_GO_CREATE_BLOCKED:
		return "created";
	case SONDE_TRACE_GO_UNBLOCK:
		return "unblocked";
	case SONDE_TRACE_GO_STOP:
		return "stopped";
	case SONDE_TRACE_GO_SYSCALL_END_BLOCKED:
		return "back from a system call";
	default:
		return sonde_trace_kind_name(w->kind);
	}
}

static void report_behind(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_worst *w)
{
	char ns[SONDE_TEXT_NUMBER_BYTES];
	sonde_report_list_begin(out, "behind");
	for (uint32_t i = 0; i < w->n_behind; i++) {
		const struct sonde_trace_behind *b = &w->behind[i];
		const char *entry = name_of(reader, b->entry);
		sonde_report_item_begin(out);
		sonde_report_field(out, "ns", NULL, sonde_value_ns(b->ns));
		sonde_report_field(out, "goroutine", NULL, sonde_value_count(b->g));
		sonde_report_field(out, "entry", NULL, sonde_value_text(entry));
		sonde_report_field(out, "in_syscall", NULL, sonde_value_bool(b->in_syscall));
		sonde_report_item_end(out);
		sonde_report_line(out,
			"    processor %" PRIu64 " %s goroutine %" PRIu64 " for %s (%s)", w->p,
			b->in_syscall ? "was held by a system call of" : "ran", b->g,
			sonde_text_ns(ns, b->ns), entry ? entry : "?");
	}
	sonde_report_list_end(out);
	sonde_report_field(out, "others_ns", NULL, sonde_value_ns(w->other_ns));
	if (w->other_ns)
		sonde_report_line(out, "    and others for %s", sonde_text_ns(ns, w->other_ns));
	sonde_report_field(out, "forgotten", NULL, sonde_value_bool(w->forgotten));
	if (w->forgotten)
		sonde_report_line(out, "    what ran before the last %d is not remembered",
			SONDE_TRACE_SCHED_RUNS);
}

static void report_worst(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_sched *s, bool stacks)
{
	char ns[SONDE_TEXT_NUMBER_BYTES];
	sonde_report_list_begin(out, "worst");
	for (size_t i = 0; i < s->worst.n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_worst *w = &s->worst.items[i];
		const char *entry = name_of(reader, w->entry),
			   *reason = name_of(reader, w->wait.reason);
		bool by_none = w->wait.by == SONDE_TRACE_NO_ID || w->wait.by == w->wait.g;
		sonde_report_item_begin(out);
		sonde_report_blank(out);
		sonde_report_field(out, "ns", NULL, sonde_value_ns(w->ns));
		sonde_report_field(out, "from_ns", NULL, sonde_value_signed(w->wait.start_ns));
		sonde_report_field(out, "goroutine", NULL, sonde_value_count(w->wait.g));
		sonde_report_field(out, "entry", NULL, sonde_value_text(entry));
		sonde_report_field(out, "cause", NULL, sonde_value_text(cause_of(&w->wait)));
		sonde_report_field(out, "reason", NULL, sonde_value_text(reason));
		sonde_report_field(out, "by", NULL,
			by_none ? sonde_value_none() : sonde_value_count(w->wait.by));
		sonde_report_field(out, "processor", NULL,
			w->p == SONDE_TRACE_NO_ID ? sonde_value_none() : sonde_value_count(w->p));
		sonde_report_field(out, "idle_processors", NULL, sonde_value_count(w->idle));
		sonde_report_heading(out, "%s: goroutine %" PRIu64 " (%s), from %" PRId64 " on",
			sonde_text_ns(ns, w->ns), w->wait.g, entry ? entry : "?", w->wait.start_ns);
		if (by_none)
			sonde_report_line(out, "    %s%s%s; %" PRIu32 " processors idle then",
				cause_of(&w->wait), reason && *reason ? ": " : "",
				reason ? reason : "", w->idle);
		else
			sonde_report_line(out,
				"    %s by goroutine %" PRIu64 "; %" PRIu32 " processors idle then",
				cause_of(&w->wait), w->wait.by, w->idle);
		report_behind(out, reader, w);
		if (stacks)
			sonde_trace_report_frames(out, reader, w->wait.stack);
		sonde_report_item_end(out);
	}
	sonde_report_list_end(out);
}

struct sonde_error *sonde_trace_report_sched(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_sched_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_sched) struct sonde_trace_sched s;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	const struct sonde_trace_event *e;
	struct sonde_value values[N_COLUMNS];
	sonde_trace_sched_init(&s,
		(size_t)sonde_min(options->has_worst ? options->worst : 5,
			(uint64_t)SONDE_TRACE_SCHED_MAX_WORST));
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_sched_add(&s, reader, e))
			return &sonde_enomem;
	}
	sonde_trace_sched_finish(&s);
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_notes_add_n(&notes,
		"goroutines were runnable before the trace began: since when is not known, left "
		"out",
		s.n_unknown, "%s", path);
	sonde_report_begin(out, "trace.sched", 1);
	sonde_report_field(out, "unknown", NULL, sonde_value_count(s.n_unknown));
	sonde_report_field(out, "unfinished", s.n_unfinished ? "runnable at the end" : NULL,
		sonde_value_count(s.n_unfinished));
	size_t n = options->top && options->top < s.entries.n ? options->top : s.entries.n;
	sonde_report_table_begin(out, "entries", "from runnable to running:", columns, N_COLUMNS);
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		latency_values(&s.entries.items[i].latency,
			name_of(reader, s.entries.items[i].entry), values);
		sonde_report_row_values(out, values, N_COLUMNS);
	}
	latency_values(&s.all, "all", values);
	sonde_report_total_values(out, "total", values, N_COLUMNS);
	sonde_report_table_end(out);
	sonde_report_field(out, "rows_left_out", n < s.entries.n ? "rows left out" : NULL,
		sonde_value_count(s.entries.n - n));
	report_worst(out, reader, &s, options->stacks);
	return sonde_report_end(out, &notes);
}
