#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	return sonde_core_command_report(
		ui, options, operands->items[0], sonde_core_report_mappings);
}

const struct sonde_command sonde_command_core_mappings = {
	.name = "mappings",
	.summary = "the address space: each range, what it is of and where its bytes come from",
	.operands = "CORE",
	.reads_file = true,
	.details = "A range that neither the core nor a file holds is listed with the reason.",
	.example = "sonde core mappings core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_core_command_options),
	.run = run,
};
