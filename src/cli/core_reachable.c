#include "cli/core_command.h"
#include "core/report.h"

struct reachable_options {
	struct sonde_core_command_options core;
	struct sonde_core_reachable_options reachable;
};

static const struct sonde_option rows[] = {
	{"paths", 'n', SONDE_OPTION_INTO(U64, struct sonde_core_reachable_options, n_paths), "N",
		"show up to N paths, each through another referrer (1)"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct reachable_options, reachable),
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct reachable_options *o = options;
	struct sonde_core_reachable_options reachable = o->reachable;
	SONDE_TRY(sonde_opt_addr("ADDR", operands->items[1], &reachable.addr));
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_reachable(session, &reachable, report);
}

const struct sonde_command sonde_command_core_reachable = {
	.name = "reachable",
	.summary = "why an object is alive: the shortest way from a root to it",
	.operands = "CORE ADDR",
	.reads_file = true,
	.details =
		"ADDR may point anywhere into the object; hexadecimal, with or without 0x. Paths "
		"are the shortest first; each names the variable or frame where it begins, and "
		"the fields that lead on.",
	.example = "sonde core reachable -n 3 core.1234 0xc000012340",
	.tables = tables,
	.options_bytes = sizeof(struct reachable_options),
	.run = run,
};
