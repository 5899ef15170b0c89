#include "cli/trace_command.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

/* "1.5s", "20ms", "3us", "7ns" since the first event, or digits alone: absolute nanoseconds. */
static struct sonde_error *parse_time(
	const char *option, const char *text, bool *has, bool *absolute, int64_t *ns)
{
	static const struct {
		const char *suffix;
		double factor;
	} units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};
	char *end;
	if (!text)
		return NULL;
	*has = true;
	errno = 0;
	*ns = strtoll(text, &end, 10);
	*absolute = !*end;
	if (*text && !*end && !errno)
		return NULL;
	double value = strtod(text, &end);
	for (size_t i = 0; end != text && i < SONDE_ARRAY_LEN(units); i++) {
		double scaled = value * units[i].factor;
		if (strcmp(end, units[i].suffix) != 0 || !(scaled > -9e18 && scaled < 9e18))
			continue;
		*ns = (int64_t)scaled;
		return NULL;
	}
	return sonde_error_new(SONDE_USAGE, "%s: '%s' is not a time", option, text);
}

struct sonde_error *sonde_trace_command_window(
	const char *from, const char *to, struct sonde_trace_window *ret)
{
	struct sonde_trace_window window = {0};
	SONDE_TRY(parse_time(
		"--from", from, &window.has_from, &window.from_is_absolute, &window.from_ns));
	SONDE_TRY(parse_time("--to", to, &window.has_to, &window.to_is_absolute, &window.to_ns));
	*ret = window;
	return NULL;
}

/* In the order of the help: what one asks first stands first. */
static const struct sonde_command *const commands[] = {
	&sonde_command_trace_overview,
	&sonde_command_trace_check,
	&sonde_command_trace_repair,
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
