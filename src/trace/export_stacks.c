#include <inttypes.h>
#include <string.h>

#include "output/report.h"
#include "trace/export_frames.h"
#include "trace/report.h"
#include "trace/stacks.h"

static const struct sonde_column columns[] = {
	{"count", "COUNT", .right = true},
	{"share", "SHARE", .right = true},
	{"type", "TYPE"},
	{"in", "IN", .may_cut = true},
	{"caller", "OF", .may_cut = true},
};

static struct sonde_error *choose(
	struct sonde_trace_stacks *s, const struct sonde_trace_stacks_options *options)
{
	for (size_t i = 0; i < SONDE_TRACE_N_KINDS; i++)
		s->wanted[i] = !options->n_types && sonde_trace_event_specs[i].stack_arg >= 0;
	for (size_t i = 0; i < options->n_types; i++) {
		int kind = sonde_trace_kind_find(options->types[i]);
		if (kind < 0)
			return sonde_error_new(
				SONDE_USAGE, "--type: there is no event '%s'", options->types[i]);
		if (sonde_trace_event_specs[kind].stack_arg < 0)
			return sonde_error_new(SONDE_USAGE, "--type: events '%s' have no stack",
				options->types[i]);
		s->wanted[kind] = true;
	}
	return NULL;
}

static void report_frames(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_stack_rows *rows, size_t n)
{
	sonde_report_list_begin(out, "frames");
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		sonde_report_item_begin(out);
		sonde_report_blank(out);
		sonde_report_field(out, "row", NULL, sonde_value_count(i));
		sonde_report_line(out, "%" PRIu64 " %s:", rows->items[i].n,
			sonde_trace_kind_name(rows->items[i].kind));
		sonde_trace_report_frames(out, reader, rows->items[i].stack);
		sonde_report_item_end(out);
	}
	sonde_report_list_end(out);
}

struct sonde_error *sonde_trace_report_stacks(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_stacks_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_stacks) struct sonde_trace_stacks s = {0};
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	const struct sonde_trace_event *e;
	SONDE_TRY(choose(&s, options));
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_stacks_add(&s, reader, e))
			return &sonde_enomem;
	}
	sonde_trace_stacks_finish(&s);
	uint64_t n_events = 0;
	size_t kept = 0;
	for (size_t i = 0; i < s.rows.n; i++) {
		struct sonde_trace_stack_row row = s.rows.items[i];
		if (options->function &&
			!sonde_trace_stack_has(reader, row.stack, options->function))
			continue;
		n_events += row.n;
		s.rows.items[kept++] = row;
	}
	size_t top = options->has_top ? options->top : 20;
	size_t n = top && top < kept ? top : kept;
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_report_begin(out, "trace.stacks", 1);
	sonde_report_field(out, "events", "events with a stack", sonde_value_count(n_events));
	sonde_report_field(
		out, "without", s.n_without ? "without one" : NULL, sonde_value_count(s.n_without));
	sonde_report_blank(out);
	sonde_report_table_begin(out, "stacks", NULL, columns, SONDE_ARRAY_LEN(columns));
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_stack_row *row = &s.rows.items[i];
		sonde_report_row(out, sonde_value_count(row->n),
			sonde_value_share(row->n, n_events),
			sonde_value_text(sonde_trace_kind_name(row->kind)),
			sonde_value_text(sonde_trace_stack_top(reader, row->stack)),
			sonde_value_text(sonde_trace_stack_caller(reader, row->stack)));
	}
	sonde_report_table_end(out);
	sonde_report_field(out, "rows_left_out", n < kept ? "rows left out" : NULL,
		sonde_value_count(kept - n));
	if (options->frames)
		report_frames(out, reader, &s.rows, n);
	return sonde_report_end(out, &notes);
}
