#include "cli/core_command.h"
#include "core/report.h"

struct objects_options {
	struct sonde_core_command_options core;
	struct sonde_core_objects_options report;
};

static const char *const state_words[] = {
	[SONDE_CORE_OBJECTS_LIVE] = "live",
	[SONDE_CORE_OBJECTS_GARBAGE] = "garbage",
	[SONDE_CORE_OBJECTS_ALL] = "all",
	NULL,
};

static const struct sonde_option rows[] = {
	{"type", 't', SONDE_OPTION_INTO(STRING, struct sonde_core_objects_options, type), "TEXT",
		"only those whose type contains TEXT"},
	{"package", 'p', SONDE_OPTION_INTO(STRING, struct sonde_core_objects_options, package),
		"PATH", "only those whose type is of this package"},
	{"state", 0, SONDE_OPTION_INTO(ENUM, struct sonde_core_objects_options, state), NULL,
		"which of them (live)", state_words},
	{"min", 0, SONDE_OPTION_INTO(BYTES, struct sonde_core_objects_options, min_bytes), "BYTES",
		"only slots of at least so many bytes",
		SONDE_OPTION_GIVEN(struct sonde_core_objects_options, has_min)},
	{"max", 0, SONDE_OPTION_INTO(BYTES, struct sonde_core_objects_options, max_bytes), "BYTES",
		"only slots of at most so many bytes",
		SONDE_OPTION_GIVEN(struct sonde_core_objects_options, has_max)},
	{"from", 0, SONDE_OPTION_INTO(ADDR, struct sonde_core_objects_options, from), "ADDR",
		"only those at this address or above",
		SONDE_OPTION_GIVEN(struct sonde_core_objects_options, has_from)},
	{"to", 0, SONDE_OPTION_INTO(ADDR, struct sonde_core_objects_options, to), "ADDR",
		"only those below this address",
		SONDE_OPTION_GIVEN(struct sonde_core_objects_options, has_to)},
	{"limit", 'n', SONDE_OPTION_INTO(U64, struct sonde_core_objects_options, limit), "N",
		"show the first N; the totals count all (all)"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct objects_options, report),
};

static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct objects_options *o = options;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_objects(session, &o->report, report);
}

const struct sonde_command sonde_command_core_objects = {
	.name = "objects",
	.summary = "every object on the heap: address, size, state, type",
	.operands = "CORE",
	.reads_file = true,
	.details = "In address order, as they are found. Filters are joined by and. Garbage is "
		   "what no root "
		   "reaches and the collector has not freed yet; its type is known only where its "
		   "header tells.",
	.example = "sonde core objects --type main.Node -n 20 core.1234",
	.tables = tables,
	.options_bytes = sizeof(struct objects_options),
	.run = run,
};
