#include <inttypes.h>
#include <stdio.h>

#include "output/report.h"
#include "trace/overview.h"
#include "trace/report.h"
#include "traceread/state.h"

static void report_span(struct sonde_report *out, const char *key, const char *title,
	const struct sonde_trace_span *s)
{
	if (!s->n && !sonde_report_json(out))
		return;
	sonde_report_section_begin(out, key, title);
	sonde_report_field(out, "count", "count", sonde_value_count(s->n));
	sonde_report_field(out, "total_ns", "total", sonde_value_ns(s->total_ns));
	sonde_report_field(
		out, "longest_ns", s->longest_ns ? "longest" : NULL, sonde_value_ns(s->longest_ns));
	sonde_report_field(
		out, "open", s->n_open ? "not ended" : NULL, sonde_value_count(s->n_open));
	sonde_report_section_end(out);
}

static const char *writer_of(unsigned version)
{
	switch (version) {
	case 5:
		return "Go 1.5 or 1.6";
	case 7:
		return "Go 1.7";
	case 8:
		return "Go 1.8";
	case 9:
		return "Go 1.9";
	case 10:
		return "Go 1.10";
	case 11:
		return "Go 1.11 to 1.18";
	case 19:
		return "Go 1.19 or 1.20";
	case 21:
		return "Go 1.21";
	case 22:
		return "Go 1.22";
	case 23:
		return "Go 1.23 or 1.24";
	case 25:
		return "Go 1.25";
	default:
		return "Go 1.26 or later";
	}
}

static void report_types(struct sonde_report *out, const struct sonde_trace_overview *o,
	unsigned version, uint64_t all)
{
	static const struct sonde_column columns[] = {
		{"type", "TYPE"},
		{"count", "COUNT", .right = true},
		{"share", "SHARE", .right = true},
	};
	sonde_report_table_begin(
		out, "types", "events by type:", columns, SONDE_ARRAY_LEN(columns));
	for (unsigned i = 0; version >= 22 && i < 256; i++)
		if (o->counts[i])
			sonde_report_row(out, sonde_value_text(sonde_trace_kind_name(i)),
				sonde_value_count(o->counts[i]),
				sonde_value_share(o->counts[i], all));
	for (unsigned i = 0; version < 22 && i < 64; i++)
		if (o->wire_counts[i] && sonde_trace_v1_specs[i].name)
			sonde_report_row(out, sonde_value_text(sonde_trace_v1_specs[i].name),
				sonde_value_count(o->wire_counts[i]),
				sonde_value_share(o->wire_counts[i], all));
	sonde_report_table_end(out);
}

static void report_file(
	struct sonde_report *out, const char *path, const struct sonde_trace_info *info)
{
	char format[32], text[64];
	snprintf(format, sizeof(format), "go 1.%u", info->version);
	snprintf(text, sizeof(text), "%s, written by %s", format, writer_of(info->version));
	sonde_report_field(out, "file", "file", sonde_value_text(path));
	sonde_report_field(out, "format", NULL, sonde_value_text(format));
	sonde_report_field(out, NULL, "format", sonde_value_text(text));
	sonde_report_field(out, "written_by", NULL, sonde_value_text(writer_of(info->version)));
	sonde_report_field(out, "bytes", "size", sonde_value_bytes(info->read_bytes));
	sonde_report_field(
		out, "generations", "generations", sonde_value_count(info->n_generations));
	sonde_report_field(out, "largest_generation_bytes", "the largest",
		sonde_value_bytes(info->largest_generation_bytes));
	sonde_report_field(out, "batches", "batches", sonde_value_count(info->n_batches));
	if (!info->has_clock)
		return;
	snprintf(text, sizeof(text), "%" PRId64 ".%09" PRId64, info->clock_wall_sec,
		info->clock_wall_nsec);
	sonde_report_section_begin(out, "clock", "last clock snapshot:");
	sonde_report_field(out, "ns", "trace, ns", sonde_value_signed(info->clock_ns));
	sonde_report_field(
		out, "monotonic_ns", "monotonic, ns", sonde_value_count(info->clock_mono_ns));
	sonde_report_field(out, "wall_s", "wall, s", sonde_value_text(text));
	sonde_report_section_end(out);
}

static void report_sums(struct sonde_report *out, const struct sonde_trace_overview *o,
	const struct sonde_trace_info *info, const struct sonde_trace_state *state)
{
	uint64_t duration_ns =
		o->last_ns > o->first_ns ? (uint64_t)o->last_ns - (uint64_t)o->first_ns : 0;
	uint64_t procs = o->procs ? o->procs : state->ps.n;
	uint64_t capacity_ns = 0;
	if (__builtin_mul_overflow(duration_ns, procs, &capacity_ns))
		capacity_ns = 0;
	sonde_report_field(out, "first_ns", NULL, sonde_value_signed(o->first_ns));
	sonde_report_field(out, "last_ns", NULL, sonde_value_signed(o->last_ns));
	sonde_report_field(out, "duration_ns", "duration", sonde_value_ns(duration_ns));
	sonde_report_field(out, "events", "events", sonde_value_count(info->n_events));
	sonde_report_field(out, "procs", "processors", sonde_value_count(procs));
	sonde_report_field(out, "threads", "threads", sonde_value_count(state->ms.n));
	sonde_report_section_begin(out, "goroutines", "goroutines:");
	sonde_report_field(out, "seen", "seen", sonde_value_count(o->n_goroutines));
	sonde_report_field(out, "most", "most at once", sonde_value_count(o->most_alive));
	sonde_report_field(out, "end", "at the end", sonde_value_count(o->n_alive));
	sonde_report_section_end(out);
	sonde_report_field(out, "running_ns", NULL, sonde_value_count(o->running_ns));
	sonde_report_field(out, "busy_ns", NULL, sonde_value_count(o->busy_ns));
	sonde_report_field(out, "utilisation", "processors running goroutines",
		sonde_value_share(o->running_ns, capacity_ns));
	sonde_report_field(
		out, "busy", "processors in use", sonde_value_share(o->busy_ns, capacity_ns));
}

static void report_gc(struct sonde_report *out, const struct sonde_trace_overview *o)
{
	report_span(out, "gc", "collections:", &o->gc);
	report_span(out, "stw", "stops of the world:", &o->stw);
	report_span(out, "assist", "mark assists:", &o->assist);
	if (!o->has_heap && !sonde_report_json(out))
		return;
	sonde_report_section_begin(out, "heap", "heap:");
	sonde_report_field(out, "min_bytes", "least", sonde_value_bytes(o->heap_min));
	sonde_report_field(out, "max_bytes", "most", sonde_value_bytes(o->heap_max));
	sonde_report_field(out, "last_bytes", "at the end", sonde_value_bytes(o->heap_last));
	sonde_report_field(out, "goal_bytes", "goal", sonde_value_bytes(o->heap_goal));
	sonde_report_section_end(out);
}

static void report_losses(struct sonde_report *out, struct sonde_trace_reader *reader)
{
	const struct sonde_trace_info *info = sonde_trace_reader_info(reader);
	const struct sonde_trace_damages *d = sonde_trace_reader_damages(reader);
	uint64_t lost_bytes = 0;
	for (int i = 0; i < SONDE_TRACE_N_DAMAGES; i++)
		lost_bytes += sonde_trace_damage_specs[i].remark ? 0 : d->bytes[i];
	sonde_report_field(
		out, "whole", "whole", sonde_value_bool(sonde_trace_reader_is_whole(reader)));
	sonde_report_field(
		out, "lost_bytes", lost_bytes ? "lost" : NULL, sonde_value_bytes(lost_bytes));
	sonde_report_field(out, "forced", info->n_forced ? "events forced" : NULL,
		sonde_value_count(info->n_forced));
	sonde_report_field(out, "clamped", info->n_clamped ? "events moved in time" : NULL,
		sonde_value_count(info->n_clamped));
}

struct sonde_error *sonde_trace_report_overview(const char *path,
	const struct sonde_trace_reader_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	struct sonde_trace_overview o;
	const struct sonde_trace_event *e;
	SONDE_TRY(sonde_trace_reader_open(path, options, &reader));
	sonde_trace_overview_init(&o);
	unsigned version = sonde_trace_reader_info(reader)->version;
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		sonde_trace_overview_add(&o, e, version);
	}
	sonde_trace_overview_end(&o);
	const struct sonde_trace_info *info = sonde_trace_reader_info(reader);
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_report_begin(out, "trace.overview", 1);
	report_file(out, path, info);
	report_losses(out, reader);
	sonde_report_blank(out);
	report_sums(out, &o, info, sonde_trace_reader_state(reader));
	sonde_report_blank(out);
	report_gc(out, &o);
	sonde_report_blank(out);
	report_types(out, &o, version, info->n_events);
	return sonde_report_end(out, &notes);
}
