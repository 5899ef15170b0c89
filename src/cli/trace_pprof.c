#include <string.h>

#include "cli/trace_command.h"
#include "trace/report.h"

static const char *const kinds[] = {
	[SONDE_TRACE_PPROF_NET] = "net",
	[SONDE_TRACE_PPROF_SYNC] = "sync",
	[SONDE_TRACE_PPROF_SYSCALL] = "syscall",
	[SONDE_TRACE_PPROF_SCHED] = "sched",
	[SONDE_TRACE_PPROF_CPU] = "cpu",
};

struct pprof_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_pprof_options pprof;
	const char *from, *to;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct pprof_options, member)

static const struct sonde_option rows[] = {
	SONDE_TRACE_WINDOW_ROWS(INTO(STRING, from), INTO(STRING, to)),
	{"goroutine", 'g', INTO(U64, pprof.g), "N", "of this goroutine alone",
		SONDE_OPTION_GIVEN(struct pprof_options, pprof.has_g)},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *parse_kind(const char *text, int *ret)
{
	for (size_t i = 0; i < SONDE_ARRAY_LEN(kinds); i++)
		if (!strcmp(text, kinds[i])) {
			*ret = (int)i;
			return NULL;
		}
	return sonde_error_new(SONDE_USAGE,
		"'%s' is no kind of profile: it is net, sync, syscall, sched or cpu", text);
}

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct pprof_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_trace_pprof_options pprof = o->pprof;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	struct sonde_sink *sink;
	SONDE_TRY(parse_kind(operands->items[0], &pprof.kind));
	SONDE_TRY(sonde_trace_command_window(o->from, o->to, &pprof.window));
	if (o->trace.common.json)
		return sonde_error_new(SONDE_USAGE, "--json: a profile has its own format");
	if (ui->out_is_tty && (!o->trace.common.output || !strcmp(o->trace.common.output, "-")))
		return sonde_error_new(SONDE_USAGE,
			"a profile is not for a terminal: give --output FILE, or a pipe");
	SONDE_TRY(sonde_ui_open_sink(ui, &sink));
	SONDE_TRY(sonde_trace_write_pprof(operands->items[1], &reader, &pprof, sink, &notes));
	sonde_notes_log(&notes, reader.log);
	return NULL;
}

const struct sonde_command sonde_command_trace_pprof = {
	.name = "pprof",
	.summary = "time off the CPU, or CPU samples, by stack, as a profile for go tool pprof",
	.is_option = true,
	.operands = "KIND FILE",
	.reads_file = true,
	.details = "KIND is net (waiting for the network), sync (for channels, mutexes, select), "
		   "syscall (in system calls that block), sched (runnable until it runs) or cpu "
		   "(CPU samples). The samples are those of go tool trace -pprof=KIND: of Go 1.27 "
		   "for formats from 1.22 on, of Go 1.21 for those before. --pprof=KIND in front "
		   "of FILE means the same. Of a wait the part from --from to --to counts.",
	.example = "sonde trace pprof sched --output sched.pb.gz trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct pprof_options),
	.run = run,
};
