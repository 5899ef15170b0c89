#include <inttypes.h>
#include <stdio.h>

#include "core/histogram.h"
#include "core/report.h"
#include "output/report.h"
#include "output/text.h"

static const struct sonde_column columns[] = {
	{"count", "COUNT", .right = true},
	{"bytes", "BYTES", .right = true},
	{"share", "SHARE", .right = true},
	{"type", "TYPE", .may_cut = true},
};
static const struct sonde_column package_columns[] = {
	{"count", "COUNT", .right = true},
	{"bytes", "BYTES", .right = true},
	{"share", "SHARE", .right = true},
	{"package", "PACKAGE", .may_cut = true},
};

/* KEY_objects and KEY_bytes; one line of text with their share of all bytes that are meant (0 = none shown). */
static void report_sum(struct sonde_report *out, const char *key, const char *label, uint64_t n,
	uint64_t bytes, uint64_t of_bytes)
{
	char name[64];
	snprintf(name, sizeof(name), "%s_objects", key);
	sonde_report_field(out, name, NULL, sonde_value_count(n));
	snprintf(name, sizeof(name), "%s_bytes", key);
	sonde_report_field(out, name, NULL, sonde_value_bytes(bytes));
	char share[SONDE_TEXT_NUMBER_BYTES] = "";
	if (of_bytes)
		sonde_text_share(share, bytes, of_bytes);
	sonde_report_line(out, "%-20s %12" PRIu64 " objects %14" PRIu64 " bytes%s%s", label, n,
		bytes, of_bytes ? "  " : "", share);
}

struct sonde_error *sonde_core_report_histogram(struct sonde_core_session *session,
	const struct sonde_core_histogram_options *options, struct sonde_report *out)
{
	bool packages = options->by == SONDE_CORE_HISTOGRAM_BY_PACKAGE;
	sonde_cleanup(sonde_core_histogram) struct sonde_core_histogram h = {0};
	SONDE_TRY(sonde_core_histogram_make(
		session, packages ? SONDE_CORE_BY_PACKAGE : SONDE_CORE_BY_TYPE, &h));
	sonde_report_begin(out, "core.histogram", 1);
	sonde_report_table_begin(
		out, "rows", NULL, packages ? package_columns : columns, SONDE_ARRAY_LEN(columns));
	uint64_t n = options->top && options->top < h.rows.n ? options->top : h.rows.n;
	uint64_t rest_count = h.n_live, rest_bytes = h.live_bytes;
	for (uint64_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_core_histogram_row *row = &h.rows.items[i];
		sonde_report_row(out, sonde_value_count(row->count), sonde_value_bytes(row->bytes),
			sonde_value_share(row->bytes, h.live_bytes), sonde_value_text(row->name));
		rest_count -= row->count;
		rest_bytes -= row->bytes;
	}
	sonde_report_total(out, "total", sonde_value_count(h.n_live),
		sonde_value_bytes(h.live_bytes), sonde_value_share(h.live_bytes, h.live_bytes),
		sonde_value_text("live"));
	sonde_report_table_end(out);
	sonde_report_field(out, "rows_left_out", n < h.rows.n ? "rows left out" : NULL,
		sonde_value_count(h.rows.n - n));
	sonde_report_field(out, "rows_left_out_count", n < h.rows.n ? "their objects" : NULL,
		sonde_value_count(rest_count));
	sonde_report_field(out, "rows_left_out_bytes", n < h.rows.n ? "their bytes" : NULL,
		sonde_value_bytes(rest_bytes));

	const struct sonde_go_heap *heap = session->heap;
	const struct sonde_core_marks *marks = session->marks;
	uint64_t garbage = heap->n_allocated - marks->n_live - marks->n_pending;
	uint64_t garbage_bytes = heap->allocated_bytes - marks->live_bytes - marks->pending_bytes;
	sonde_report_blank(out);
	report_sum(out, "allocated", "allocated", heap->n_allocated, heap->allocated_bytes, 0);
	report_sum(out, "live", "live", marks->n_live, marks->live_bytes, 0);
	report_sum(
		out, "pending", "for finalizers only", marks->n_pending, marks->pending_bytes, 0);
	report_sum(out, "garbage", "garbage", garbage, garbage_bytes, 0);
	report_sum(
		out, "unknown", "live, type unknown", h.n_unknown, h.unknown_bytes, h.live_bytes);
	sonde_report_field(
		out, "unknown_share", NULL, sonde_value_share(h.unknown_bytes, h.live_bytes));
	return sonde_report_end(out, &session->notes);
}
