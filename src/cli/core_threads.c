#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, options, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_threads(session, report);
}

const struct sonde_command sonde_command_core_threads = {
	.name = "threads",
	.summary = "registers and stack of every thread, C and Go frames",
	.operands = "CORE",
	.reads_file = true,
	.details = "For cores of any program. Each frame says how it was found; a stack that ends "
		   "early "
		   "says why.",
	.example = "sonde core threads core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_core_command_options),
	.run = run,
};
