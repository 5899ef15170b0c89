#include "cli/core_command.h"
#include "core/report.h"

static const struct sonde_option rows[] = {
	{"exe", 0, SONDE_OPTION_INTO(STRING, struct sonde_core_command_options, core.exe), "FILE",
		"the executable that the core is of; looked for where it is not given"},
	{"sysroot", 0, SONDE_OPTION_INTO(STRING, struct sonde_core_command_options, core.sysroot),
		"DIR", "look for the files of the core below DIR"},
	{"debug-dir", 0,
		SONDE_OPTION_INTO(STRING, struct sonde_core_command_options, core.debug_dirs),
		"DIR[:DIR]", "where separate debug files are (/usr/lib/debug)"},
	{"no-debuginfod", 0,
		SONDE_OPTION_INTO(FLAG, struct sonde_core_command_options, core.no_debuginfod),
		NULL, "never ask a server, even where DEBUGINFOD_URLS is set"},
};

const struct sonde_option_table sonde_core_option_table = {
	"Finding files",
	rows,
	SONDE_ARRAY_LEN(rows),
	0,
};

const struct sonde_option sonde_core_value_rows[SONDE_CORE_VALUE_ROWS] = {
	{"depth", 'd', SONDE_OPTION_INTO(U64, struct sonde_core_value_options, depth), "N",
		"follow N pointers in a row in values (2)",
		SONDE_OPTION_GIVEN(struct sonde_core_value_options, has_depth)},
	{"elements", 0, SONDE_OPTION_INTO(U64, struct sonde_core_value_options, elements), "N",
		"show up to N elements of a slice, array, map, channel (64)"},
	{"string-bytes", 0, SONDE_OPTION_INTO(BYTES, struct sonde_core_value_options, string_bytes),
		"N", "show up to N bytes of a string (200)"},
};

struct sonde_error *sonde_core_command_open(struct sonde_ui *ui,
	const struct sonde_core_command_options *options, const char *path,
	struct sonde_core_session **ret)
{
	if (ui->shell) {
		sonde_core_session_begin_report(ui->shell->session);
		*ret = sonde_core_session_share(ui->shell->session);
		return NULL;
	}
	struct sonde_core_session_options session = {.core = options->core};
	session.core.log = &ui->log;
	return sonde_core_session_open(path, &session, ret);
}

struct sonde_error *sonde_core_command_report(struct sonde_ui *ui,
	const struct sonde_core_command_options *options, const char *path,
	struct sonde_error *(*report)(struct sonde_core_session *, struct sonde_report *))
{
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *out;
	SONDE_TRY(sonde_core_command_open(ui, options, path, &session));
	SONDE_TRY(sonde_ui_open_report(ui, &out));
	return report(session, out);
}

/* In the order of the help: what one asks first stands first. */
static const struct sonde_command *const commands[] = {
	&sonde_command_core_overview,
	&sonde_command_core_goroutines,
	&sonde_command_core_histogram,
	&sonde_command_core_retained,
	&sonde_command_core_reachable,
	&sonde_command_core_leaks,
	&sonde_command_core_pprof,
	&sonde_command_core_breakdown,
	&sonde_command_core_object,
	&sonde_command_core_objects,
	&sonde_command_core_globals,
	&sonde_command_core_mappings,
	&sonde_command_core_threads,
	&sonde_command_core_read,
	&sonde_command_core_shell,
};

const struct sonde_command sonde_command_core = {
	.name = "core",
	.summary = "look into the core dump of a Go program",
	.children = commands,
	.n_children = SONDE_ARRAY_LEN(commands),
	.otherwise = &sonde_command_core_shell,
};
