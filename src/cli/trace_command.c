#include "cli/trace_command.h"

static const struct sonde_option rows[] = {
	{"exe", 0, SONDE_OPTION_INTO(STRING, struct sonde_trace_command_options, reader.exe),
		"FILE",
		"the executable that wrote a trace of format 1.5, for its functions' names"},
};

const struct sonde_option_table sonde_trace_option_table = {
	"Reading",
	rows,
	SONDE_ARRAY_LEN(rows),
	0,
};

struct sonde_trace_reader_options sonde_trace_command_reader(
	struct sonde_ui *ui, const struct sonde_trace_command_options *options)
{
	struct sonde_trace_reader_options reader = options->reader;
	reader.log = &ui->log;
	return reader;
}

/* In the order of the help: what one asks first stands first. */
static const struct sonde_command *const commands[] = {
	&sonde_command_trace_overview,
	&sonde_command_trace_check,
	&sonde_command_trace_goroutines,
	&sonde_command_trace_sched,
	&sonde_command_trace_blocking,
	&sonde_command_trace_gc,
	&sonde_command_trace_tasks,
	&sonde_command_trace_regions,
	&sonde_command_trace_stacks,
	&sonde_command_trace_pprof,
	&sonde_command_trace_events,
};

const struct sonde_command sonde_command_trace = {
	.name = "trace",
	.summary = "read execution traces of Go programs, of every version",
	.children = commands,
	.n_children = SONDE_ARRAY_LEN(commands),
};
