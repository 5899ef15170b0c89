#include "cli/core_command.h"
#include "core/report.h"

struct histogram_options {
	struct sonde_core_command_options core;
	struct sonde_core_histogram_options histogram;
};

static const char *const by_words[] = {
	[SONDE_CORE_HISTOGRAM_BY_TYPE] = "type",
	[SONDE_CORE_HISTOGRAM_BY_PACKAGE] = "package",
	NULL,
};

static const struct sonde_option rows[] = {
	{"top", 'n', SONDE_OPTION_INTO(U64, struct sonde_core_histogram_options, top), "N",
		"the N largest only (all)"},
	{"by", 0, SONDE_OPTION_INTO(ENUM, struct sonde_core_histogram_options, by), NULL,
		"what a row is of (type)", by_words},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct histogram_options, histogram),
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct histogram_options *o = options;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_histogram(session, &o->histogram, report);
}

const struct sonde_command sonde_command_core_histogram = {
	.name = "histogram",
	.summary = "the live objects on the heap by type: count, bytes, share",
	.operands = "CORE",
	.reads_file = true,
	.details = "Marks all objects from all roots. Objects whose type nothing tells are one row "
		   "of their own, so that the rows add up to the heap.",
	.example = "sonde core histogram --top 20 core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct histogram_options),
	.run = run,
};
