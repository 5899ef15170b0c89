#include "cli/core_command.h"
#include "core/report.h"

struct retained_options {
	struct sonde_core_command_options core;
	struct sonde_core_retained_options retained;
};

static const char *const by_words[] = {
	[SONDE_CORE_RETAINED_BY_OBJECT] = "object",
	[SONDE_CORE_RETAINED_BY_TYPE] = "type",
	[SONDE_CORE_RETAINED_BY_ROOT] = "root",
	[SONDE_CORE_RETAINED_BY_GOROUTINE] = "goroutine",
	NULL,
};

static const struct sonde_option rows[] = {
	{"top", 'n', SONDE_OPTION_INTO(U64, struct sonde_core_retained_options, top), "N",
		"the N largest (20)"},
	{"by", 0, SONDE_OPTION_INTO(ENUM, struct sonde_core_retained_options, by), NULL,
		"what a row is of (object)", by_words},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct retained_options, retained),
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct retained_options *o = options;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_retained(session, &o->retained, report);
}

const struct sonde_command sonde_command_core_retained = {
	.name = "retained",
	.summary = "who keeps memory alive: retained sizes of objects, types, roots",
	.operands = "CORE",
	.reads_file = true,
	.details = "What an object retains is what would be free without it, itself included. A "
		   "root is a package "
		   "variable or a goroutine; what several roots keep counts for none of them. Of "
		   "objects that one of their own type keeps only the topmost is shown.",
	.example = "sonde core retained --by root --top 10 core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct retained_options),
	.run = run,
};
