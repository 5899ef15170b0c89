#include "cli/trace_command.h"
#include "trace/report.h"

struct goroutines_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_goroutines_options goroutines;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct goroutines_options, goroutines.member)

static const struct sonde_option rows[] = {
	{"all", 'a', INTO(FLAG, all), NULL, "each goroutine, not sums by entry function"},
	{"goroutine", 'g', INTO(U64, g), "N", "this one only",
		SONDE_OPTION_GIVEN(struct goroutines_options, goroutines.has_g)},
	{"function", 'f', INTO(STRING, function), "TEXT",
		"those with TEXT in the name of their entry function"},
	{"top", 0, INTO(U64, top), "N", "the first N rows of each table only"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	0,
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct goroutines_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_goroutines(operands->items[0], &reader, &o->goroutines, report);
}

const struct sonde_command sonde_command_trace_goroutines = {
	.name = "goroutines",
	.summary = "where the time of goroutines went, by entry function or one by one",
	.operands = "FILE",
	.reads_file = true,
	.details = "Running, runnable, blocked and in system calls (there with a processor, and "
		   "after it was taken away) add up to the total; what damage left unknown has a "
		   "column of its own. A second table tells what they were blocked for. Assist and "
		   "sweep are work for the collector within the other times.",
	.example = "sonde trace goroutines --function worker --all trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct goroutines_options),
	.run = run,
};
