#include <string.h>

#include "cli/trace_command.h"
#include "trace/report.h"

static const struct sonde_option_table *const tables[] = {&sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct sonde_trace_command_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, o);
	struct sonde_report *report;
	if (!o->common.output || !strcmp(o->common.output, "-"))
		return sonde_error_new(
			SONDE_USAGE, "--output FILE says where the repaired trace goes");
	ui->report_to_stdout = true;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_repair(operands->items[0], o->common.output, &reader, report);
}

const struct sonde_command sonde_command_trace_repair = {
	.name = "repair",
	.summary = "write a damaged trace again such that Go's own tools read it",
	.operands = "FILE",
	.reads_file = true,
	.details = "Writes the trace to the file that --output names, which appears only when all "
		   "of it is written, and says what was kept, dropped and invented. Generations "
		   "before the first damage are copied byte by byte; behind it the events are "
		   "written again in their order, those that contradict the others only where "
		   "invented events can make them fit. Formats from 1.22 on.",
	.example = "sonde trace repair --output whole.out trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_trace_command_options),
	.run = run,
};
