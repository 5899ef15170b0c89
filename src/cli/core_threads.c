#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	return sonde_core_command_report(
		ui, options, operands->items[0], sonde_core_report_threads);
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
