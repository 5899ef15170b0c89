#include "cli/core_command.h"
#include "core/report.h"

struct overview_options {
	struct sonde_core_command_options core;
	bool live;
};

static const struct sonde_option rows[] = {
	{"live", 0, SONDE_OPTION_INTO(FLAG, struct overview_options, live), NULL,
		"also what is alive and what is garbage (marks the heap)"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	0,
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct overview_options *o = options;
	return sonde_core_command_report(ui, &o->core, operands->items[0],
		o->live ? sonde_core_report_overview_live : sonde_core_report_overview);
}

const struct sonde_command sonde_command_core_overview = {
	.name = "overview",
	.summary = "the program, how it ended, its threads, goroutines and heap at a glance",
	.operands = "CORE",
	.reads_file = true,
	.details = "Without --live it reads headers only, never the heap's objects: it takes a "
		   "moment whatever the size of the core.",
	.example = "sonde core overview core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct overview_options),
	.run = run,
};
