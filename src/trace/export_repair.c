#include <inttypes.h>
#include <stdio.h>

#include "output/report.h"
#include "trace/report.h"
#include "trace/repair.h"

static uint64_t sum(const struct sonde_trace_repair *r, unsigned what)
{
	uint64_t n = 0;
	for (unsigned kind = 0; kind < 256; kind++)
		n += r->counts[what][kind];
	return n;
}

static const struct {
	const char *word, *text;
} whats[SONDE_TRACE_REPAIR_N_WHATS] = {
	[SONDE_TRACE_REPAIR_DROPPED] = {"dropped", "dropped, nothing made them fit"},
	[SONDE_TRACE_REPAIR_INVENTED] = {"invented", "invented, so that others fit"},
	[SONDE_TRACE_REPAIR_CHANGED] = {"changed",
		"changed, an unknown string or stack became none"},
};

static void report_places(struct sonde_report *out, const struct sonde_trace_repair *r)
{
	sonde_report_list_begin(out, "changes");
	sonde_vec_foreach (place, &r->places) {
		uint64_t n = r->counts[place->what][place->kind];
		sonde_report_item_begin(out);
		sonde_report_field(out, "what", NULL, sonde_value_text(whats[place->what].word));
		sonde_report_field(
			out, "type", NULL, sonde_value_text(sonde_trace_kind_name(place->kind)));
		sonde_report_field(out, "count", NULL, sonde_value_count(n));
		sonde_report_field(out, "first_offset", NULL, sonde_value_count(place->offset));
		sonde_report_field(out, "first_ns", NULL, sonde_value_signed(place->ns));
		sonde_report_field(out, "first_thread", NULL,
			place->m == SONDE_TRACE_NO_ID ? sonde_value_none()
						      : sonde_value_count(place->m));
		sonde_report_field(out, "first_goroutine", NULL,
			place->g == SONDE_TRACE_NO_ID ? sonde_value_none()
						      : sonde_value_count(place->g));
		sonde_report_line(out,
			"  %s: %" PRIu64 " %s, the first %s offset %" PRIu64 ", time %" PRId64,
			whats[place->what].word, n, sonde_trace_kind_name(place->kind),
			place->what == SONDE_TRACE_REPAIR_INVENTED ? "for the event at" : "at",
			place->offset, place->ns);
		sonde_report_item_end(out);
	}
	sonde_report_list_end(out);
}

static void count_line(struct sonde_report *out, const char *name, const char *text, uint64_t n)
{
	sonde_report_field(out, name, NULL, sonde_value_count(n));
	if (n)
		sonde_report_line(out, "  %" PRIu64 " %s", n, text);
}

static void report_repair(struct sonde_report *out, const char *path, const char *to,
	struct sonde_trace_reader *reader, const struct sonde_trace_repair *r)
{
	bool whole = sonde_trace_reader_is_whole(reader);
	sonde_report_field(out, "file", NULL, sonde_value_text(path));
	sonde_report_field(out, "repaired", NULL, sonde_value_text(to));
	sonde_report_field(out, "was_whole", NULL, sonde_value_bool(whole));
	sonde_report_field(out, "bytes", NULL, sonde_value_count(r->n_bytes));
	sonde_report_line(out, "%s: %s", path,
		whole ? "whole; the copy is the same byte by byte" : "damaged, and repaired");
	count_line(out, "kept_events", "events kept", r->n_kept);
	count_line(out, "generations", "generations written", r->n_generations);
	count_line(out, "copied_generations", "of them copied byte by byte", r->n_copied);
	for (unsigned what = 0; what < SONDE_TRACE_REPAIR_N_WHATS; what++) {
		char name[32], text[64];
		snprintf(name, sizeof(name), "%s_events", whats[what].word);
		snprintf(text, sizeof(text), "events %s", whats[what].text);
		count_line(out, name, text, sum(r, what));
	}
	count_line(out, "invented_frequencies", "clock frequencies invented", r->n_frequencies);
	count_line(out, "invented_clocks", "clock snapshots invented", r->n_clocks);
	count_line(out, "invented_end_marks", "end marks invented", r->n_end_marks);
	count_line(out, "dropped_strings", "strings dropped, their id was there",
		r->n_strings_dropped);
	count_line(
		out, "dropped_stacks", "stacks dropped, their id was there", r->n_stacks_dropped);
	count_line(out, "changed_frames", "names of frames that are not there left out",
		r->n_frames_changed);
	count_line(out, "moved_events", "events later than they were, behind invented ones",
		r->n_moved);
	sonde_report_field(out, "farthest_move_ns", NULL, sonde_value_signed(r->max_move_ns));
	report_places(out, r);
}

static bool to_sink(void *ctx, const void *data, size_t len)
{
	struct sonde_sink *sink = ctx;
	sonde_sink_write(sink, data, len);
	return !sonde_sink_failed(sink);
}

struct sonde_error *sonde_trace_report_repair(const char *path, const char *to,
	const struct sonde_trace_reader_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_sink) struct sonde_sink *sink = NULL;
	sonde_cleanup(sonde_trace_repair) struct sonde_trace_repair repair = {0};
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	SONDE_TRY(sonde_trace_reader_open(path, options, &reader));
	SONDE_TRY(sonde_sink_open_file(to, &sink));
	SONDE_TRY(sonde_trace_repair(reader, to_sink, sink, &repair));
	SONDE_TRY(sonde_sink_finish(sink));
	sonde_report_begin(out, "trace.repair", 1);
	report_repair(out, path, to, reader, &repair);
	sonde_trace_reader_add_notes(reader, &notes);
	return sonde_report_end(out, &notes);
}
