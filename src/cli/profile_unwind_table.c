#include "cli/command.h"
#include "profile/report.h"

struct unwind_table_options {
	struct sonde_common_options common;
	struct sonde_profile_unwind_table_options table;
};

static const struct sonde_option rows[] = {
	{"pc", 0, SONDE_OPTION_INTO(ADDR, struct sonde_profile_unwind_table_options, pc), "ADDR",
		"only the row that covers this link-time address, with its raw rule",
		SONDE_OPTION_GIVEN(struct sonde_profile_unwind_table_options, has_pc)},
	{"summary", 's',
		SONDE_OPTION_INTO(FLAG, struct sonde_profile_unwind_table_options, summary), NULL,
		"no rows"},
	{"debug-dir", 0,
		SONDE_OPTION_INTO(STRING, struct sonde_profile_unwind_table_options, debug_dirs),
		"DIR[:DIR]", "where separate debug files are (/usr/lib/debug)"},
};

static const struct sonde_option_table table = {
	"Options",
	rows,
	SONDE_ARRAY_LEN(rows),
	offsetof(struct unwind_table_options, table),
};

static const struct sonde_option_table *const tables[] = {&table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct unwind_table_options *o = options;
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_profile_report_unwind_table(operands->items[0], &o->table, report);
}

const struct sonde_command sonde_command_profile_unwind_table = {
	.name = "unwind-table",
	.summary = "how stacks are walked through a file: its call-frame information as rows",
	.operands = "FILE",
	.reads_file = true,
	.details =
		"Reads .eh_frame and .debug_frame, also those of a separate debug file. Columns "
		"are in the notation of readelf -wF; what it calls exp is explained in the note. "
		"Addresses are those that the file is linked to.",
	.example = "sonde profile unwind-table --pc 0x26490 /lib/x86_64-linux-gnu/libc.so.6",
	.tables = tables,
	.options_bytes = sizeof(struct unwind_table_options),
	.run = run,
};
