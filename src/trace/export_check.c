#include <inttypes.h>
#include <stdio.h>

#include "output/report.h"
#include "trace/report.h"

struct sums {
	uint64_t n_damages, n_remarks, lost_bytes;
};

static struct sums add_up(const struct sonde_trace_damages *d)
{
	struct sums sums = {0};
	for (int i = 0; i < SONDE_TRACE_N_DAMAGES; i++) {
		if (sonde_trace_damage_specs[i].remark) {
			sums.n_remarks += d->counts[i];
			continue;
		}
		sums.n_damages += d->counts[i];
		sums.lost_bytes += d->bytes[i];
	}
	return sums;
}

static struct sonde_value id_value(uint64_t id)
{
	return id == SONDE_TRACE_NO_ID ? sonde_value_none() : sonde_value_count(id);
}

static void report_json_damages(struct sonde_report *out, const struct sonde_trace_damages *d)
{
	sonde_report_list_begin(out, "diagnoses");
	sonde_vec_foreach (damage, &d->list) {
		const struct sonde_trace_damage_spec *spec =
			&sonde_trace_damage_specs[damage->code];
		sonde_report_item_begin(out);
		sonde_report_field(out, "code", NULL, sonde_value_text(spec->word));
		sonde_report_field(out, "remark", NULL, sonde_value_bool(spec->remark));
		sonde_report_field(out, "text", NULL, sonde_value_text(damage->text));
		sonde_report_field(out, "offset", NULL, sonde_value_count(damage->offset));
		sonde_report_field(out, "lost_bytes", NULL, sonde_value_count(damage->bytes));
		sonde_report_field(out, "ns", NULL,
			damage->ns == INT64_MIN ? sonde_value_none()
						: sonde_value_signed(damage->ns));
		sonde_report_field(out, "generation", NULL, sonde_value_count(damage->generation));
		sonde_report_field(out, "thread", NULL, id_value(damage->m));
		sonde_report_field(out, "proc", NULL, id_value(damage->p));
		sonde_report_field(out, "goroutine", NULL, id_value(damage->g));
		sonde_report_item_end(out);
	}
	sonde_report_list_end(out);
	sonde_report_section_begin(out, "counts", NULL);
	for (int i = 0; i < SONDE_TRACE_N_DAMAGES; i++)
		if (d->counts[i])
			sonde_report_field(out, sonde_trace_damage_specs[i].word, NULL,
				sonde_value_count(d->counts[i]));
	sonde_report_section_end(out);
}

static void place_text(const struct sonde_trace_damage *d, char to[160])
{
	int n = snprintf(to, 160, "offset %" PRIu64, d->offset);
	if (d->ns != INT64_MIN)
		n += snprintf(to + n, 160 - (size_t)n, ", behind time %" PRId64, d->ns);
	if (d->m != SONDE_TRACE_NO_ID)
		n += snprintf(to + n, 160 - (size_t)n, ", thread %" PRIu64, d->m);
	if (d->p != SONDE_TRACE_NO_ID)
		n += snprintf(to + n, 160 - (size_t)n, ", proc %" PRIu64, d->p);
	if (d->g != SONDE_TRACE_NO_ID)
		snprintf(to + n, 160 - (size_t)n, ", goroutine %" PRIu64, d->g);
}

static void report_text_damages(struct sonde_report *out, const struct sonde_trace_damages *d)
{
	uint64_t shown[SONDE_TRACE_N_DAMAGES] = {0};
	sonde_vec_foreach (damage, &d->list) {
		const struct sonde_trace_damage_spec *spec =
			&sonde_trace_damage_specs[damage->code];
		char place[160];
		place_text(damage, place);
		shown[damage->code]++;
		sonde_report_line(out, "  %s: %s (%s): %s", spec->remark ? "remark" : "damage",
			spec->text, place, damage->text);
	}
	for (int i = 0; i < SONDE_TRACE_N_DAMAGES; i++)
		if (d->counts[i] > shown[i])
			sonde_report_line(out, "  %s: %s: %" PRIu64 " more",
				sonde_trace_damage_specs[i].remark ? "remark" : "damage",
				sonde_trace_damage_specs[i].text, d->counts[i] - shown[i]);
}

static void report_file(
	struct sonde_report *out, const char *path, struct sonde_trace_reader *reader)
{
	const struct sonde_trace_info *info = sonde_trace_reader_info(reader);
	const struct sonde_trace_damages *d = sonde_trace_reader_damages(reader);
	struct sums sums = add_up(d);
	bool whole = sonde_trace_reader_is_whole(reader);
	char format[32];
	snprintf(format, sizeof(format), "go 1.%u", info->version);
	sonde_report_field(out, "file", NULL, sonde_value_text(path));
	sonde_report_field(out, "format", NULL, sonde_value_text(format));
	sonde_report_field(out, "whole", NULL, sonde_value_bool(whole));
	sonde_report_field(out, "bytes", NULL, sonde_value_count(info->read_bytes));
	sonde_report_field(out, "generations", NULL, sonde_value_count(info->n_generations));
	sonde_report_field(out, "batches", NULL, sonde_value_count(info->n_batches));
	sonde_report_field(out, "events", NULL, sonde_value_count(info->n_events));
	sonde_report_field(out, "forced", NULL, sonde_value_count(info->n_forced));
	sonde_report_field(out, "clamped", NULL, sonde_value_count(info->n_clamped));
	sonde_report_field(out, "longest_clamp_ns", NULL, sonde_value_signed(info->max_clamp_ns));
	sonde_report_field(out, "damages", NULL, sonde_value_count(sums.n_damages));
	sonde_report_field(out, "remarks", NULL, sonde_value_count(sums.n_remarks));
	sonde_report_field(out, "lost_bytes", NULL, sonde_value_count(sums.lost_bytes));
	if (sonde_report_json(out)) {
		report_json_damages(out, d);
		return;
	}
	sonde_report_line(out, "%s: %s, %s, %" PRIu32 " generations, %" PRIu64 " events", path,
		whole ? "whole" : "damaged", format, info->n_generations, info->n_events);
	if (sums.n_damages)
		sonde_report_line(out, "  %" PRIu64 " bytes lost, %" PRIu64 " events forced",
			sums.lost_bytes, info->n_forced);
	if (info->n_clamped)
		sonde_report_line(out,
			"  %" PRIu64 " events were moved to keep the causal order, the farthest "
			"by %" PRId64 " ns",
			info->n_clamped, info->max_clamp_ns);
	report_text_damages(out, d);
}

static struct sonde_error *read_all(struct sonde_trace_reader *reader)
{
	const struct sonde_trace_event *e;
	do
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
	while (e);
	return NULL;
}

static struct sonde_error *check_one(const char *path,
	const struct sonde_trace_reader_options *options, struct sonde_report *out, bool *whole)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	SONDE_TRY(sonde_trace_reader_open(path, options, &reader));
	SONDE_TRY(read_all(reader));
	sonde_report_item_begin(out);
	report_file(out, path, reader);
	sonde_report_item_end(out);
	*whole &= sonde_trace_reader_is_whole(reader);
	return NULL;
}

/* What is no trace at all is a result too, where there are several. */
static void report_not_read(
	struct sonde_report *out, const char *path, const struct sonde_error *err)
{
	sonde_report_item_begin(out);
	sonde_report_field(out, "file", NULL, sonde_value_text(path));
	sonde_report_field(out, "whole", NULL, sonde_value_bool(false));
	sonde_report_field(out, "error", NULL, sonde_value_text(err->message));
	sonde_report_line(out, "%s", err->message);
	sonde_report_item_end(out);
}

struct sonde_error *sonde_trace_report_check(const char *const *paths, size_t n,
	const struct sonde_trace_reader_options *options, struct sonde_report *out, bool *whole)
{
	*whole = true;
	sonde_report_begin(out, "trace.check", 1);
	sonde_report_list_begin(out, "files");
	for (size_t i = 0; i < n; i++) {
		struct sonde_error *err = check_one(paths[i], options, out, whole);
		if (!err)
			continue;
		if (n == 1 || err->code == SONDE_INTERRUPTED || err->code == SONDE_NO_MEMORY)
			return err;
		report_not_read(out, paths[i], err);
		sonde_error_free(err);
		*whole = false;
	}
	sonde_report_list_end(out);
	return sonde_report_end(out, NULL);
}
