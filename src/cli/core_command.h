/* src/cli/core_command.h: what the leaf commands of `sonde core` share: their options and how a core is opened. */
#pragma once
#include "cli/command.h"
#include "core/session.h"
#include "target/core_file.h"

/* The options struct of a core command begins with these. */
struct sonde_core_command_options {
	struct sonde_common_options common;
	struct sonde_core_options core; /* log and notes are filled in at opening */
};

/* Rows over struct sonde_core_command_options at offset 0. */
extern const struct sonde_option_table sonde_core_option_table;

/* The rows over struct sonde_core_value_options (core/report.h), and the table where that stands at `at`. */
enum { SONDE_CORE_VALUE_ROWS = 3 };
extern const struct sonde_option sonde_core_value_rows[SONDE_CORE_VALUE_ROWS];
#define SONDE_CORE_VALUE_TABLE(at)                                           \
	{                                                                    \
		"Values", sonde_core_value_rows, SONDE_CORE_VALUE_ROWS, (at) \
	}

/*
 * Open path as the options say, heard by the ui; in a shell, its session, as if nothing had been asked of it yet. To be
 * freed in either case.
 */
struct sonde_error *sonde_core_command_open(struct sonde_ui *ui,
	const struct sonde_core_command_options *options, const char *path,
	struct sonde_core_session **ret) SONDE_CHECK;

/* The whole of a command that takes no options of its own. */
struct sonde_error *sonde_core_command_report(struct sonde_ui *ui,
	const struct sonde_core_command_options *options, const char *path,
	struct sonde_error *(*report)(
		struct sonde_core_session *, struct sonde_report *)) SONDE_CHECK;
