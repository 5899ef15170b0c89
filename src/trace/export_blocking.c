#include <inttypes.h>
#include <string.h>

#include "output/report.h"
#include "output/text.h"
#include "trace/blocking.h"
#include "trace/export_frames.h"
#include "trace/report.h"

static const struct sonde_column columns[] = {
	{"total_ns", "TOTAL", .right = true},
	{"share", "SHARE", .right = true},
	{"count", "TIMES", .right = true},
	{"longest_ns", "LONGEST", .right = true},
	{"unfinished", "OPEN", .right = true},
	{"reason", "REASON"},
	{"in", "IN", .may_cut = true},
	{"caller", "OF", .may_cut = true},
};

static const char *reason_of(
	const struct sonde_trace_reader *reader, const struct sonde_trace_blocked *row)
{
	if (row->is_syscall)
		return "system call";
	const char *text = row->reason ? sonde_trace_interned(reader, row->reason) : NULL;
	return text && *text ? text : NULL;
}

static bool wanted(const struct sonde_trace_reader *reader,
	const struct sonde_trace_blocking_options *o, const struct sonde_trace_blocked *row)
{
	const char *reason = reason_of(reader, row);
	if (o->reason && !(reason && strstr(reason, o->reason)))
		return false;
	return !o->function || sonde_trace_stack_has(reader, row->stack, o->function);
}

static void report_rows(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_blocked_vec *rows, size_t n, uint64_t all_n, uint64_t all_ns)
{
	sonde_report_table_begin(out, "blocked", NULL, columns, SONDE_ARRAY_LEN(columns));
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_blocked *row = &rows->items[i];
		sonde_report_row(out, sonde_value_ns(row->ns), sonde_value_share(row->ns, all_ns),
			sonde_value_count(row->n), sonde_value_ns(row->max_ns),
			sonde_value_count(row->n_unfinished),
			sonde_value_text(reason_of(reader, row)),
			sonde_value_text(sonde_trace_stack_top(reader, row->stack)),
			sonde_value_text(sonde_trace_stack_caller(reader, row->stack)));
	}
	sonde_report_total(out, "total", sonde_value_ns(all_ns), sonde_value_share(1, 1),
		sonde_value_count(all_n), sonde_value_none(), sonde_value_none(),
		sonde_value_text("all"), sonde_value_none(), sonde_value_none());
	sonde_report_table_end(out);
}

static void report_stacks(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_blocked_vec *rows, size_t n)
{
	sonde_report_list_begin(out, "stacks");
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_blocked *row = &rows->items[i];
		const char *reason = reason_of(reader, row);
		char total[SONDE_TEXT_NUMBER_BYTES];
		sonde_report_item_begin(out);
		sonde_report_blank(out);
		sonde_report_field(out, "row", NULL, sonde_value_count(i));
		sonde_report_line(out, "%s, %" PRIu64 " times, %s:", sonde_text_ns(total, row->ns),
			row->n, reason ? reason : "-");
		sonde_trace_report_frames(out, reader, row->stack);
		sonde_report_item_end(out);
	}
	sonde_report_list_end(out);
}

struct sonde_error *sonde_trace_report_blocking(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_blocking_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_blocking) struct sonde_trace_blocking b;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	const struct sonde_trace_event *e;
	sonde_trace_blocking_init(&b, options->syscalls);
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_blocking_add(&b, reader, e))
			return &sonde_enomem;
	}
	if (!sonde_trace_blocking_finish(&b))
		return &sonde_enomem;
	/* Those that are wanted, in front. */
	uint64_t all_n = 0, all_ns = 0;
	size_t kept = 0;
	for (size_t i = 0; i < b.rows.n; i++) {
		if (!wanted(reader, options, &b.rows.items[i]))
			continue;
		all_n += b.rows.items[i].n;
		all_ns += b.rows.items[i].ns;
		b.rows.items[kept++] = b.rows.items[i];
	}
	size_t top = options->has_top ? options->top : 20;
	size_t n = top && top < kept ? top : kept;
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_report_begin(out, "trace.blocking", 1);
	report_rows(out, reader, &b.rows, n, all_n, all_ns);
	sonde_report_field(out, "rows_left_out", n < kept ? "rows left out" : NULL,
		sonde_value_count(kept - n));
	if (options->stacks)
		report_stacks(out, reader, &b.rows, n);
	return sonde_report_end(out, &notes);
}
