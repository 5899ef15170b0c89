#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	return sonde_core_command_report(
		ui, options, operands->items[0], sonde_core_report_overview);
}

const struct sonde_command sonde_command_core_overview = {
	.name = "overview",
	.summary = "the program, how it ended, its threads, goroutines and heap at a glance",
	.operands = "CORE",
	.reads_file = true,
	.details = "Reads headers only, never the heap's objects: it takes a moment whatever the "
		   "size of the core.",
	.example = "sonde core overview core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_core_command_options),
	.run = run,
};
