#include "cli/trace_command.h"
#include "trace/report.h"

struct sched_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_sched_options sched;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct sched_options, sched.member)

static const struct sonde_option rows[] = {
	{"top", 'n', INTO(U64, top), "N", "the first N entry functions only"},
	{"worst", 0, INTO(U64, worst), "N", "the N longest waits one by one (5; at most 10,000)",
		SONDE_OPTION_GIVEN(struct sched_options, sched.has_worst)},
	{"stacks", 's', INTO(FLAG, stacks), NULL, "with the stacks of what made these runnable"},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct sched_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_report *report;
	if (o->sched.has_worst && o->sched.worst > SONDE_TRACE_SCHED_MAX_WORST)
		return sonde_error_new(
			SONDE_USAGE, "--worst: at most %d are kept", SONDE_TRACE_SCHED_MAX_WORST);
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_sched(operands->items[0], &reader, &o->sched, report);
}

const struct sonde_command sonde_command_trace_sched = {
	.name = "sched",
	.summary = "how long goroutines that could run did not, and what ran instead",
	.operands = "FILE",
	.reads_file = true,
	.details = "From runnable to running, by the function that a goroutine began with. "
		   "Percentiles are at most 3.2% too high; sums and the longest are exact. Of the "
		   "longest waits: what made the goroutine runnable, how many processors were idle "
		   "then, and what ran, or held it in a system call, meanwhile on the processor "
		   "that it ran on in the end.",
	.example = "sonde trace sched --worst 10 trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct sched_options),
	.run = run,
};
