#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	return sonde_core_command_report(
		ui, options, operands->items[0], sonde_core_report_breakdown);
}

const struct sonde_command sonde_command_core_breakdown = {
	.name = "breakdown",
	.summary = "where the memory went: every byte of every mapping, told apart",
	.operands = "CORE",
	.reads_file = true,
	.details =
		"Each byte counts in one row; rows of equal depth add up to the one above. BYTES "
		"are addresses, PRESENT "
		"what of them somebody keeps: the core (not as holes) or the mapped file. Shares "
		"are of that.",
	.example = "sonde core breakdown core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_core_command_options),
	.run = run,
};
