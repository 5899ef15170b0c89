#include "cli/core_command.h"
#include "core/report.h"

struct goroutines_options {
	struct sonde_core_command_options core;
	struct sonde_core_goroutines_options goroutines;
};

static const struct sonde_option rows[] = {
	{"all", 'a', SONDE_OPTION_INTO(FLAG, struct sonde_core_goroutines_options, all), NULL,
		"every goroutine by itself, with its whole stack"},
	{"goroutine", 'g', SONDE_OPTION_INTO(U64, struct sonde_core_goroutines_options, id), "ID",
		"only the goroutine with this number, with its whole stack",
		SONDE_OPTION_GIVEN(struct sonde_core_goroutines_options, has_id)},
	{"state", 0, SONDE_OPTION_INTO(STRING, struct sonde_core_goroutines_options, state),
		"STATE", "only those whose state or wait reason begins with STATE"},
	{"function", 0, SONDE_OPTION_INTO(STRING, struct sonde_core_goroutines_options, function),
		"TEXT", "only those with a frame whose function contains TEXT"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct goroutines_options, goroutines),
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct goroutines_options *o = options;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_goroutines(session, &o->goroutines, report);
}

const struct sonde_command sonde_command_core_goroutines = {
	.name = "goroutines",
	.summary = "what each goroutine does, those with equal stacks together",
	.operands = "CORE",
	.reads_file = true,
	.details = "Groups are sorted by size, the largest first.",
	.example = "sonde core goroutines --state 'chan receive' core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct goroutines_options),
	.run = run,
};
