#include "cli/trace_command.h"
#include "trace/report.h"

struct blocking_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_blocking_options blocking;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct blocking_options, blocking.member)

static const struct sonde_option rows[] = {
	{"top", 'n', INTO(U64, top), "N", "the N longest only (20); 0 = all",
		SONDE_OPTION_GIVEN(struct blocking_options, blocking.has_top)},
	{"reason", 0, INTO(STRING, reason), "TEXT", "those with TEXT in their reason"},
	{"function", 'f', INTO(STRING, function), "TEXT",
		"those with TEXT in the name of a function of their stack"},
	{"syscalls", 0, INTO(FLAG, syscalls), NULL, "system calls that block too"},
	{"stacks", 's', INTO(FLAG, stacks), NULL, "with the frames of their stacks"},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct blocking_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_blocking(operands->items[0], &reader, &o->blocking, report);
}

const struct sonde_command sonde_command_trace_blocking = {
	.name = "blocking",
	.summary = "what goroutines were blocked for, by reason and stack",
	.operands = "FILE",
	.reads_file = true,
	.details = "IN is the function that blocked, OF the innermost one on the stack that is not "
		   "of Go's library. OPEN ones lasted to the end of the trace and count as long as "
		   "it goes. sonde trace pprof writes the same as profiles.",
	.example = "sonde trace blocking --reason chan --stacks trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct blocking_options),
	.run = run,
};
