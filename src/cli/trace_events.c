#include "cli/trace_command.h"
#include "trace/report.h"

struct events_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_events_options events;
	const char *from, *to;
	struct sonde_strings types;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct events_options, member)
#define GIVEN(member) SONDE_OPTION_GIVEN(struct events_options, member)

static const struct sonde_option rows[] = {
	SONDE_TRACE_WINDOW_ROWS(INTO(STRING, from), INTO(STRING, to)),
	{"goroutine", 'g', INTO(U64, events.g), "N", "that run on it or are about it",
		GIVEN(events.has_g)},
	{"proc", 'p', INTO(U64, events.p), "N", "on this processor or about it",
		GIVEN(events.has_p)},
	{"thread", 'm', INTO(U64, events.m), "N", "on this thread", GIVEN(events.has_m)},
	{"task", 0, INTO(U64, events.task), "N", "that name this task", GIVEN(events.has_task)},
	{"type", 't', INTO(STRINGS, types), "NAME", "of this type; may be given several times"},
	{"function", 'f', INTO(STRING, events.function), "TEXT",
		"with TEXT in the name of a function of a stack"},
	{"limit", 'n', INTO(U64, events.limit), "N", "the first N only"},
	{"stacks", 's', INTO(FLAG, events.stacks), NULL, "with the frames of their stacks"},
	{"follow", 0, INTO(FLAG, trace.reader.follow), NULL,
		"go on as the file grows, until interrupted"},
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
	const struct events_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_trace_events_options events = o->events;
	struct sonde_report *report;
	ui->ends_by_stop = o->trace.reader.follow;
	events.types = o->types.items;
	events.n_types = o->types.n;
	SONDE_TRY(sonde_trace_command_window(o->from, o->to, &events.window));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_events(operands->items[0], &reader, &events, report);
}

const struct sonde_command sonde_command_trace_events = {
	.name = "events",
	.summary = "every event of a trace in its causal order",
	.operands = "FILE",
	.reads_file = true,
	.details =
		"A line an event: time in ns, thread, processor, goroutine, type, arguments, and "
		"what became of the goroutine and the processor that it is about. Filters are "
		"joined by and.",
	.example = "sonde trace events --type GoBlock --goroutine 18 --stacks trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct events_options),
	.run = run,
};
