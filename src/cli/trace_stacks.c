#include "cli/trace_command.h"
#include "trace/report.h"

struct stacks_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_stacks_options stacks;
	struct sonde_strings types;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct stacks_options, member)

static const struct sonde_option rows[] = {
	{"top", 'n', INTO(U64, stacks.top), "N", "the N most frequent only (20); 0 = all",
		SONDE_OPTION_GIVEN(struct stacks_options, stacks.has_top)},
	{"type", 't', INTO(STRINGS, types), "NAME",
		"of events of this type; may be given several times"},
	{"function", 'f', INTO(STRING, stacks.function), "TEXT",
		"those with TEXT in the name of a function"},
	{"stacks", 's', INTO(FLAG, stacks.frames), NULL, "with all their frames"},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct stacks_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_trace_stacks_options stacks = o->stacks;
	struct sonde_report *report;
	stacks.types = o->types.items;
	stacks.n_types = o->types.n;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_stacks(operands->items[0], &reader, &stacks, report);
}

const struct sonde_command sonde_command_trace_stacks = {
	.name = "stacks",
	.summary = "where events happened: how many of each type by stack",
	.operands = "FILE",
	.reads_file = true,
	.details =
		"IN is the innermost function, OF the innermost one that is not of Go's library. "
		"--type GoCreate shows where goroutines are made, --type CPUSample what ran.",
	.example = "sonde trace stacks --type GoCreate --stacks trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct stacks_options),
	.run = run,
};
