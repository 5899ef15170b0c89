#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	return sonde_core_command_report(ui, options, operands->items[0], sonde_core_report_leaks);
}

const struct sonde_command sonde_command_core_leaks = {
	.name = "leaks",
	.summary = "what looks like a leak: who keeps most, goroutines that nobody can wake",
	.operands = "CORE",
	.reads_file = true,
	.details =
		"Suspects retain a tenth of the live bytes or more: below one owner, or all "
		"objects "
		"of a type. A goroutine is said to be stuck if it waits for channels that nothing "
		"alive can reach; one that waits for ever in another way is not found.",
	.example = "sonde core leaks core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_core_command_options),
	.run = run,
};
