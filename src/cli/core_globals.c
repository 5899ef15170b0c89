#include "cli/core_command.h"
#include "core/report.h"

struct globals_options {
	struct sonde_core_command_options core;
	struct sonde_core_globals_options report;
};

static const struct sonde_option rows[] = {
	{"package", 'p', SONDE_OPTION_INTO(STRING, struct sonde_core_globals_options, package),
		"PATH", "only those of this package"},
	{"name", 0, SONDE_OPTION_INTO(STRING, struct sonde_core_globals_options, name), "TEXT",
		"only those whose name contains TEXT"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct globals_options, report),
};

static const struct sonde_option_table value_table =
	SONDE_CORE_VALUE_TABLE(offsetof(struct globals_options, report.values));

static const struct sonde_option_table *const tables[] = {
	&table, &value_table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct globals_options *o = options;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_globals(session, &o->report, report);
}

const struct sonde_command sonde_command_core_globals = {
	.name = "globals",
	.summary = "package variables: type, size, address, value",
	.operands = "CORE",
	.reads_file = true,
	.details = "In address order. Values are followed as far as the limits say; what is cut is "
		   "counted. "
		   "Needs the executable's DWARF.",
	.example = "sonde core globals -p main core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct globals_options),
	.run = run,
};
