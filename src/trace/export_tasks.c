#include <inttypes.h>

#include "output/report.h"
#include "output/text.h"
#include "trace/export_latency.h"
#include "trace/report.h"
#include "trace/tasks.h"

static const struct sonde_column type_columns[] = {
	SONDE_TRACE_LATENCY_COLUMNS,
	{"open", "OPEN", .right = true},
	{"unbegun", "NO BEGIN", .right = true},
	{"goroutines", "GOROUTINES", .right = true},
	{"regions", "REGIONS", .right = true},
	{"logs", "LOGS", .right = true},
	{"type", "TYPE", .may_cut = true},
};
enum { N_TYPE = SONDE_ARRAY_LEN(type_columns) };

static const struct sonde_column task_columns[] = {
	{"task", "TASK", .right = true},
	{"parent", "PARENT", .right = true},
	{"begin_ns", "BEGIN", .right = true},
	{"end_ns", "END", .right = true},
	{"duration_ns", "DURATION", .right = true},
	{"begun_by", "BY", .right = true},
	{"goroutines", "GOROUTINES", .right = true},
	{"regions", "REGIONS", .right = true},
	{"logs", "LOGS", .right = true},
	{"type", "TYPE", .may_cut = true},
};

static const struct sonde_column log_columns[] = {
	{"ns", "TIME", .right = true},
	{"goroutine", "GOROUTINE", .right = true},
	{"key", "KEY"},
	{"message", "MESSAGE", .may_cut = true},
};

static struct sonde_value id_or_none(uint64_t id)
{
	return id && id != SONDE_TRACE_NO_ID ? sonde_value_count(id) : sonde_value_none();
}

static void report_types(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_task_types *types, size_t n)
{
	sonde_report_table_begin(out, "types", NULL, type_columns, N_TYPE);
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_task_type *t = &types->items[i];
		struct sonde_value values[N_TYPE];
		size_t at = sonde_trace_latency_values(&t->latency, values);
		values[at++] = sonde_value_count(t->n_open);
		values[at++] = sonde_value_count(t->n_unbegun);
		values[at++] = sonde_value_count(t->n_goroutines);
		values[at++] = sonde_value_count(t->n_regions);
		values[at++] = sonde_value_count(t->n_logs);
		values[at++] =
			sonde_value_text(t->name ? sonde_trace_interned(reader, t->name) : NULL);
		sonde_report_row_values(out, values, at);
	}
	sonde_report_table_end(out);
}

static void report_tasks(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_user_tasks *tasks, size_t n)
{
	sonde_report_table_begin(out, "tasks", NULL, task_columns, SONDE_ARRAY_LEN(task_columns));
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_user_task *t = &tasks->items[i];
		sonde_report_row(out, sonde_value_count(t->id), id_or_none(t->parent),
			t->unbegun ? sonde_value_none() : sonde_value_signed(t->begin_ns),
			t->open ? sonde_value_none() : sonde_value_signed(t->end_ns),
			t->open || t->unbegun ? sonde_value_none()
					      : sonde_value_ns((uint64_t)(t->end_ns - t->begin_ns)),
			id_or_none(t->begin_g), sonde_value_count(t->goroutines.n),
			sonde_value_count(t->n_regions), sonde_value_count(t->n_logs),
			sonde_value_text(t->name ? sonde_trace_interned(reader, t->name) : NULL));
	}
	sonde_report_table_end(out);
}

/* Of the one task that is asked for: who worked for it, and what was logged. */
static void report_detail(struct sonde_report *out, const struct sonde_trace_tasks_pass *ts)
{
	static const struct sonde_column columns[] = {{"goroutine", "GOROUTINE", .right = true}};
	sonde_report_blank(out);
	sonde_report_table_begin(out, "task_goroutines", "goroutines:", columns, 1);
	for (size_t i = 0; i < ts->kept.n; i++)
		sonde_vec_foreach (g, &ts->kept.items[i].goroutines)
			sonde_report_row(out, sonde_value_count(*g));
	sonde_report_table_end(out);
	sonde_report_blank(out);
	sonde_report_table_begin(
		out, "task_logs", "logs:", log_columns, SONDE_ARRAY_LEN(log_columns));
	sonde_vec_foreach (log, &ts->logs) {
		if (sonde_report_failed(out))
			break;
		sonde_report_row(out, sonde_value_signed(log->ns), id_or_none(log->g),
			sonde_value_string(log->key, log->key_len),
			sonde_value_string(log->text, log->text_len));
	}
	sonde_report_table_end(out);
}

struct sonde_error *sonde_trace_report_tasks(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_tasks_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_tasks_pass) struct sonde_trace_tasks_pass ts;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	const struct sonde_trace_event *e;
	struct sonde_trace_tasks_filter filter = {options->has_id, options->id, options->type};
	bool each = options->all || options->has_id;
	sonde_trace_tasks_init(&ts, &filter, each);
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_tasks_add(&ts, reader, e))
			return &sonde_enomem;
	}
	if (!sonde_trace_tasks_finish(&ts, reader))
		return &sonde_enomem;
	if (options->has_id && !ts.n)
		return sonde_error_new(SONDE_NOT_FOUND, "%s: no task %" PRIu64 " in this trace",
			path, options->id);
	size_t all = each ? ts.kept.n : ts.types.n;
	size_t n = options->top && options->top < all ? options->top : all;
	sonde_trace_reader_add_notes(reader, &notes);
	if (ts.n_late)
		sonde_notes_add(&notes, "regions and logs of tasks after their end", ts.n_late,
			"%" PRIu64 " of them", ts.n_late);
	sonde_report_begin(out, "trace.tasks", 1);
	sonde_report_field(out, "seen", "tasks", sonde_value_count(ts.n));
	sonde_report_field(out, "open", "without an end", sonde_value_count(ts.n_open_at_end));
	sonde_report_field(out, "without_task", ts.n_without ? "regions and logs of no task" : NULL,
		sonde_value_count(ts.n_without));
	sonde_report_blank(out);
	if (each)
		report_tasks(out, reader, &ts.kept, n);
	else
		report_types(out, reader, &ts.types, n);
	sonde_report_field(
		out, "rows_left_out", n < all ? "rows left out" : NULL, sonde_value_count(all - n));
	if (options->has_id)
		report_detail(out, &ts);
	return sonde_report_end(out, &notes);
}
