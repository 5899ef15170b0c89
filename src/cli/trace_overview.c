#include "cli/trace_command.h"
#include "trace/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, options);
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_overview(operands->items[0], &reader, report);
}

const struct sonde_command sonde_command_trace_overview = {
	.name = "overview",
	.summary = "what a trace holds: duration, processors, goroutines, GC, heap, losses",
	.operands = "FILE",
	.reads_file = true,
	.details = "FILE is an execution trace as runtime/trace writes it, also compressed (.gz, "
		   ".zst), or - for standard input. Memory is that of the largest generation, not "
		   "of the file.",
	.example = "sonde trace overview trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_trace_command_options),
	.run = run,
};
