#include "output/report.h"
#include "trace/export_latency.h"
#include "trace/gc.h"
#include "trace/report.h"

static const struct sonde_column pause_columns[] = {
	SONDE_TRACE_LATENCY_COLUMNS, {"reason", "REASON"}};
enum { N_PAUSE = SONDE_ARRAY_LEN(pause_columns) };

static const struct sonde_column worst_columns[] = {
	{"ns", "LENGTH", .right = true},
	{"begin_ns", "BEGIN", .right = true},
	{"goroutine", "BY", .right = true},
	{"reason", "REASON"},
};

static const struct sonde_column cycle_columns[] = {
	{"cycle", "CYCLE", .right = true},
	{"begin_ns", "BEGIN", .right = true},
	{"end_ns", "END", .right = true},
	{"mark_ns", "MARKING", .right = true},
	{"pauses", "PAUSES", .right = true},
	{"pauses_ns", "PAUSED", .right = true},
	{"heap_begin_bytes", "HEAP AT BEGIN", .right = true},
	{"heap_most_bytes", "MOST", .right = true},
	{"heap_end_bytes", "AT END", .right = true},
	{"goal_bytes", "GOAL", .right = true},
};

static const struct sonde_column helper_columns[] = {
	{"assist_ns", "ASSIST", .right = true},
	{"sweep_ns", "SWEEP", .right = true},
	{"goroutines", "GOROUTINES", .right = true},
	{"entry", "ENTRY", .may_cut = true},
};

static const struct sonde_column utilisation_columns[] = {
	{"window_ns", "WINDOW", .right = true},
	{"least", "LEAST", .right = true},
	{"begin_ns", "BEGIN", .right = true},
};

static const char *name_of(const struct sonde_trace_reader *reader, uint32_t interned)
{
	return interned ? sonde_trace_interned(reader, interned) : NULL;
}

static struct sonde_value bytes_if(bool has, uint64_t bytes)
{
	return has ? sonde_value_bytes(bytes) : sonde_value_none();
}

static void report_pauses(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_gc *gc)
{
	struct sonde_value values[N_PAUSE];
	sonde_report_table_begin(
		out, "pauses", "pauses of the whole program:", pause_columns, N_PAUSE);
	sonde_vec_foreach (k, &gc->kinds) {
		values[sonde_trace_latency_values(&k->latency, values)] =
			sonde_value_text(name_of(reader, k->reason));
		sonde_report_row_values(out, values, N_PAUSE);
	}
	values[sonde_trace_latency_values(&gc->pauses, values)] = sonde_value_text("all");
	sonde_report_total_values(out, "pauses_total", values, N_PAUSE);
	sonde_report_table_end(out);
	sonde_report_field(out, "open_pauses",
		gc->n_open_pauses ? "pauses without an end, left out" : NULL,
		sonde_value_count(gc->n_open_pauses));
	/* Nothing but headings is for JSON alone. */
	if (!gc->worst.n && !sonde_report_json(out))
		return;
	sonde_report_blank(out);
	sonde_report_table_begin(out, "longest_pauses", "the longest pauses:", worst_columns,
		SONDE_ARRAY_LEN(worst_columns));
	sonde_vec_foreach (p, &gc->worst)
		sonde_report_row(out, sonde_value_ns(p->ns), sonde_value_signed(p->begin_ns),
			p->g == SONDE_TRACE_NO_ID ? sonde_value_none() : sonde_value_count(p->g),
			sonde_value_text(name_of(reader, p->reason)));
	sonde_report_table_end(out);
}

static void report_cycles(struct sonde_report *out, const struct sonde_trace_gc *gc, size_t from)
{
	sonde_report_table_begin(out, "cycles", "collections, by their mark phase:", cycle_columns,
		SONDE_ARRAY_LEN(cycle_columns));
	for (size_t i = from; i < gc->cycles.n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_gc_cycle *c = &gc->cycles.items[i];
		bool begun = c->begin_ns != INT64_MIN, ended = c->end_ns != INT64_MAX;
		sonde_report_row(out, sonde_value_count(i + 1),
			begun ? sonde_value_signed(c->begin_ns) : sonde_value_none(),
			ended ? sonde_value_signed(c->end_ns) : sonde_value_none(),
			begun && ended ? sonde_value_ns((uint64_t)(c->end_ns - c->begin_ns))
				       : sonde_value_none(),
			sonde_value_count(c->n_pauses), sonde_value_ns(c->pauses_ns),
			bytes_if(c->has_heap && begun, c->heap_begin),
			bytes_if(c->has_heap, c->heap_most),
			bytes_if(c->has_heap && ended, c->heap_end),
			bytes_if(c->has_goal, c->goal));
	}
	sonde_report_table_end(out);
}

static int by_help(const void *a, const void *b)
{
	const struct sonde_trace_entry *x = a, *y = b;
	if (x->times.assist_ns != y->times.assist_ns)
		return x->times.assist_ns > y->times.assist_ns ? -1 : 1;
	if (x->times.sweep_ns != y->times.sweep_ns)
		return x->times.sweep_ns > y->times.sweep_ns ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static void report_help(struct sonde_report *out, const struct sonde_trace_reader *reader,
	struct sonde_trace_gc *gc)
{
	uint64_t assist_ns = 0, sweep_ns = 0;
	sonde_vec_sort(&gc->goroutines.entries, by_help);
	sonde_report_table_begin(out, "helpers",
		"work for the collector in goroutines:", helper_columns,
		SONDE_ARRAY_LEN(helper_columns));
	sonde_vec_foreach (entry, &gc->goroutines.entries) {
		if (!entry->times.assist_ns && !entry->times.sweep_ns)
			break;
		assist_ns += entry->times.assist_ns;
		sweep_ns += entry->times.sweep_ns;
		sonde_report_row(out, sonde_value_ns(entry->times.assist_ns),
			sonde_value_ns(entry->times.sweep_ns), sonde_value_count(entry->n),
			sonde_value_text(name_of(reader, entry->entry)));
	}
	sonde_report_total(out, "helpers_total", sonde_value_ns(assist_ns),
		sonde_value_ns(sweep_ns), sonde_value_none(), sonde_value_text("all"));
	sonde_report_table_end(out);
}

static void report_utilisation(struct sonde_report *out, const struct sonde_trace_mutator *m)
{
	static const uint64_t windows_ns[] = {1000000, 10000000, 100000000, 1000000000};
	enum { WHOLE = 1000000 }; /* as exact as a share is told */
	sonde_report_table_begin(out, "utilisation",
		"the program's own share of the processors, the least in any window:",
		utilisation_columns, SONDE_ARRAY_LEN(utilisation_columns));
	for (size_t i = 0; i < SONDE_ARRAY_LEN(windows_ns); i++) {
		double least;
		int64_t begin_ns;
		bool told = sonde_trace_mutator_least(m, windows_ns[i], &least, &begin_ns);
		sonde_report_row(out, sonde_value_ns(windows_ns[i]),
			told ? sonde_value_share((uint64_t)(least * WHOLE + 0.5), WHOLE)
			     : sonde_value_none(),
			told ? sonde_value_signed(begin_ns) : sonde_value_none());
	}
	sonde_report_table_end(out);
}

struct sonde_error *sonde_trace_report_gc(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_gc_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_gc) struct sonde_trace_gc gc;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	const struct sonde_trace_event *e;
	uint64_t worst = options->has_worst ? options->worst : 5;
	sonde_trace_gc_init(&gc, (size_t)sonde_min(worst, UINT64_C(10000)));
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_gc_add(&gc, reader, e))
			return &sonde_enomem;
	}
	if (!sonde_trace_gc_finish(&gc))
		return &sonde_enomem;
	uint64_t duration_ns = gc.last_ns > gc.first_ns ? (uint64_t)(gc.last_ns - gc.first_ns) : 0;
	uint64_t marking_ns = 0;
	sonde_vec_foreach (c, &gc.cycles) {
		int64_t begin_ns = sonde_max(c->begin_ns, gc.first_ns);
		int64_t end_ns = sonde_min(c->end_ns, gc.last_ns);
		marking_ns += end_ns > begin_ns ? (uint64_t)(end_ns - begin_ns) : 0;
	}
	size_t top = options->has_top ? options->top : 20;
	size_t from = top && top < gc.cycles.n ? gc.cycles.n - top : 0;
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_report_begin(out, "trace.gc", 1);
	sonde_report_field(out, "duration_ns", "duration", sonde_value_ns(duration_ns));
	sonde_report_field(out, "collections", "collections", sonde_value_count(gc.cycles.n));
	sonde_report_field(out, "marking_ns", "marking", sonde_value_ns(marking_ns));
	sonde_report_field(
		out, "marking", "of the duration", sonde_value_share(marking_ns, duration_ns));
	sonde_report_field(
		out, "paused", "paused, of it", sonde_value_share(gc.pauses.sum_ns, duration_ns));
	sonde_report_field(out, "sweeps", "sweeps", sonde_value_count(gc.n_sweeps));
	sonde_report_field(out, "swept_bytes", "swept", sonde_value_bytes(gc.swept));
	sonde_report_field(out, "reclaimed_bytes", "reclaimed", sonde_value_bytes(gc.reclaimed));
	sonde_report_blank(out);
	report_pauses(out, reader, &gc);
	sonde_report_blank(out);
	report_utilisation(out, &gc.mutator);
	sonde_report_blank(out);
	report_help(out, reader, &gc);
	sonde_report_blank(out);
	if (gc.cycles.n || sonde_report_json(out))
		report_cycles(out, &gc, from);
	sonde_report_field(out, "cycles_left_out", from ? "earlier ones left out" : NULL,
		sonde_value_count(from));
	return sonde_report_end(out, &notes);
}
