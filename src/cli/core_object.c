#include "cli/core_command.h"
#include "core/report.h"

struct object_options {
	struct sonde_core_command_options core;
	struct sonde_core_object_options report;
};

static const struct sonde_option rows[] = {
	{"referrers", 'n', SONDE_OPTION_INTO(U64, struct sonde_core_object_options, n_referrers),
		"N", "show up to N of what refers to it (10)"},
	{"no-retained", 0, SONDE_OPTION_INTO(FLAG, struct sonde_core_object_options, no_retained),
		NULL, "leave out what it retains, which takes a walk over all objects"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct object_options, report),
};

static const struct sonde_option_table value_table =
	SONDE_CORE_VALUE_TABLE(offsetof(struct object_options, report.values));

static const struct sonde_option_table *const tables[] = {
	&table, &value_table, &sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct object_options *o = options;
	struct sonde_core_object_options with_addr = o->report;
	SONDE_TRY(sonde_opt_addr("ADDR", operands->items[1], &with_addr.addr));
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, &o->core, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_object(session, &with_addr, report);
}

const struct sonde_command sonde_command_core_object = {
	.name = "object",
	.summary = "an object's type, state, fields with values, and who refers to it",
	.operands = "CORE ADDR",
	.reads_file = true,
	.details = "ADDR may point anywhere into the object; hexadecimal, with or without 0x. "
		   "Values are "
		   "followed as far as the limits say; what is cut is counted. Retained are the "
		   "bytes that would be free without it, itself included.",
	.example = "sonde core object core.1234 0xc000012340",
	.tables = tables,
	.options_bytes = sizeof(struct object_options),
	.run = run,
};
