#include "cli/trace_command.h"
#include "trace/report.h"

struct tasks_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_tasks_options tasks;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct tasks_options, tasks.member)
#define GIVEN(member) SONDE_OPTION_GIVEN(struct tasks_options, tasks.member)

static const struct sonde_option rows[] = {
	{"all", 'a', INTO(FLAG, all), NULL, "each task, not sums by type"},
	{"task", 0, INTO(U64, id), "N", "this one only, with its goroutines and logs",
		GIVEN(has_id)},
	{"type", 't', INTO(STRING, type), "TEXT", "those with TEXT in the name of their type"},
	{"top", 'n', INTO(U64, top), "N", "the first N rows only"},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct tasks_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_tasks(operands->items[0], &reader, &o->tasks, report);
}

const struct sonde_command sonde_command_trace_tasks = {
	.name = "tasks",
	.summary = "user tasks: how long they took, who worked for them",
	.operands = "FILE",
	.reads_file = true,
	.details = "A task lasts from its beginning to its end, whatever works for it. OPEN ones "
		   "have no "
		   "end in the trace, those in NO BEGIN were there before; neither counts in the "
		   "times. Percentiles are at most 3.2% too high.",
	.example = "sonde trace tasks --type request --all trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct tasks_options),
	.run = run,
};
