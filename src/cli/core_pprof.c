#include <string.h>

#include "cli/core_command.h"
#include "core/report.h"

struct pprof_options {
	struct sonde_core_command_options core;
	int by;
};

static const char *const by_words[] = {
	[SONDE_CORE_PPROF_BY_OWNER] = "owner",
	[SONDE_CORE_PPROF_BY_TYPE] = "type",
	NULL,
};

static const struct sonde_option rows[] = {
	{"by", 0, SONDE_OPTION_INTO(ENUM, struct pprof_options, by), NULL,
		"what a stack is (owner)", by_words},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct pprof_options *o = options;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_sink *sink;
	if (o->core.common.json)
		return sonde_error_new(SONDE_USAGE, "--json: a profile has its own format");
	if (ui->out_is_tty && (!o->core.common.output || !strcmp(o->core.common.output, "-")))
		return sonde_error_new(SONDE_USAGE,
			"a profile is not for a terminal: give --output FILE, or a pipe");
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_sink(ui, &sink));
	SONDE_TRY(sonde_core_write_pprof(session, o->by, sink));
	sonde_notes_log(&session->notes, &ui->log);
	return NULL;
}

const struct sonde_command sonde_command_core_pprof = {
	.name = "pprof",
	.summary = "the live heap as a profile for go tool pprof, by owner or type",
	.operands = "CORE",
	.reads_file = true,
	.details =
		"A stack is the way from a root (package variable, goroutine) down by types, each "
		"of which alone keeps the next: what pprof calls cum is the retained size, flat "
		"the objects' own. What several roots keep is below \"several roots\". The sums "
		"are those of the live heap.",
	.example = "sonde core pprof -o heap.pb.gz core.1234 && go tool pprof -http=: heap.pb.gz",
	.tables = tables,
	.options_bytes = sizeof(struct pprof_options),
	.run = run,
};
