#include <inttypes.h>

#include "output/report.h"
#include "trace/export_latency.h"
#include "trace/regions.h"
#include "trace/report.h"

#define TIME_COLUMNS                                                                          \
	{"running_ns", "RUNNING", .right = true}, {"runnable_ns", "RUNNABLE", .right = true}, \
		{"blocked_ns", "BLOCKED", .right = true},                                     \
		{"syscall_ns", "SYSCALL", .right = true},                                     \
		{"syscall_blocked_ns", "NO PROC", .right = true},                             \
		{"assist_ns", "ASSIST", .right = true}, {"sweep_ns", "SWEEP", .right = true}, \
	{                                                                                     \
		"type", "TYPE", .may_cut = true                                               \
	}

static const struct sonde_column type_columns[] = {
	SONDE_TRACE_LATENCY_COLUMNS,
	{"open", "OPEN", .right = true},
	{"unbegun", "NO BEGIN", .right = true},
	TIME_COLUMNS,
};
static const struct sonde_column region_columns[] = {
	{"goroutine", "GOROUTINE", .right = true},
	{"task", "TASK", .right = true},
	{"begin_ns", "BEGIN", .right = true},
	{"end_ns", "END", .right = true},
	{"total_ns", "TOTAL", .right = true},
	TIME_COLUMNS,
};

static size_t put_times(struct sonde_value *values, size_t at, const struct sonde_trace_times *t)
{
	values[at++] = sonde_value_ns(t->running_ns);
	values[at++] = sonde_value_ns(t->runnable_ns);
	values[at++] = sonde_value_ns(t->blocked_ns);
	values[at++] = sonde_value_ns(t->syscall_ns);
	values[at++] = sonde_value_ns(t->syscall_blocked_ns);
	values[at++] = sonde_value_ns(t->assist_ns);
	values[at++] = sonde_value_ns(t->sweep_ns);
	return at;
}

static void report_types(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_region_types *types, size_t n)
{
	sonde_report_table_begin(out, "types", NULL, type_columns, SONDE_ARRAY_LEN(type_columns));
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_region_type *t = &types->items[i];
		struct sonde_value values[SONDE_ARRAY_LEN(type_columns)];
		size_t at = sonde_trace_latency_values(&t->latency, values);
		values[at++] = sonde_value_count(t->n_open);
		values[at++] = sonde_value_count(t->n_unbegun);
		at = put_times(values, at, &t->times);
		values[at++] = sonde_value_text(sonde_trace_interned(reader, t->name));
		sonde_report_row_values(out, values, at);
	}
	sonde_report_table_end(out);
}

static void report_each(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_user_regions *regions, size_t n)
{
	sonde_report_table_begin(
		out, "regions", NULL, region_columns, SONDE_ARRAY_LEN(region_columns));
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_user_region *r = &regions->items[i];
		struct sonde_value values[SONDE_ARRAY_LEN(region_columns)];
		size_t at = 0;
		values[at++] = sonde_value_count(r->g);
		values[at++] = r->task ? sonde_value_count(r->task) : sonde_value_none();
		values[at++] = r->begin_ns == INT64_MIN ? sonde_value_none()
							: sonde_value_signed(r->begin_ns);
		values[at++] =
			r->end_ns == INT64_MAX ? sonde_value_none() : sonde_value_signed(r->end_ns);
		values[at++] = sonde_value_ns(r->times.total_ns);
		at = put_times(values, at, &r->times);
		values[at++] = sonde_value_text(sonde_trace_interned(reader, r->name));
		sonde_report_row_values(out, values, at);
	}
	sonde_report_table_end(out);
}

struct sonde_error *sonde_trace_report_regions(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_regions_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_regions_pass) struct sonde_trace_regions_pass rs;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	const struct sonde_trace_event *e;
	struct sonde_trace_region_filter filter = {
		options->has_g, options->has_task, options->g, options->task, options->type};
	sonde_trace_regions_init(&rs, &filter, options->all);
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_regions_add(&rs, reader, e))
			return &sonde_enomem;
	}
	if (!sonde_trace_regions_finish(&rs, reader))
		return &sonde_enomem;
	size_t all = options->all ? rs.kept.n : rs.types.n;
	size_t n = options->top && options->top < all ? options->top : all;
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_report_begin(out, "trace.regions", 1);
	sonde_report_field(out, "seen", "regions", sonde_value_count(rs.n));
	sonde_report_blank(out);
	if (options->all)
		report_each(out, reader, &rs.kept, n);
	else
		report_types(out, reader, &rs.types, n);
	sonde_report_field(
		out, "rows_left_out", n < all ? "rows left out" : NULL, sonde_value_count(all - n));
	return sonde_report_end(out, &notes);
}
