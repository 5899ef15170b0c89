#include "cli/trace_command.h"
#include "trace/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, options);
	struct sonde_report *report;
	bool whole;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	SONDE_TRY(sonde_trace_report_check(operands->items, operands->n, &reader, report, &whole));
	if (whole)
		return NULL;
	/* The report stands, and the exit status says what it says. */
	SONDE_TRY(sonde_sink_finish(ui->sink));
	if (operands->n == 1)
		return sonde_error_new(SONDE_BAD_DATA, "%s: damaged", operands->items[0]);
	return sonde_error_new(SONDE_BAD_DATA, "not all of %zu files are whole", operands->n);
}

const struct sonde_command sonde_command_trace_check = {
	.name = "check",
	.summary = "whether a trace is whole, and what is wrong with it where",
	.operands = "FILE...",
	.reads_file = true,
	.details = "Reads all of it and validates every event against the state that the ones "
		   "before it left. Exits 0 where the trace is whole (there may be remarks), 1 "
		   "where it is damaged. What is good in a damaged trace is kept by all commands.",
	.example = "sonde trace check trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_trace_command_options),
	.run = run,
};
