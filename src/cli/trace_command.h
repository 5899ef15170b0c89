/* src/cli/trace_command.h: what the leaf commands of `sonde trace` share: their options and how a trace is opened. */
#pragma once
#include "cli/command.h"
#include "trace/window.h"
#include "traceread/stream.h"

/* The options struct of a trace command begins with these. */
struct sonde_trace_command_options {
	struct sonde_common_options common;
	struct sonde_trace_reader_options reader; /* log is filled in by the below */
};

/* Rows over struct sonde_trace_command_options at offset 0. */
extern const struct sonde_option_table sonde_trace_option_table;

/* The reader's options, heard by the ui. */
struct sonde_trace_reader_options sonde_trace_command_reader(
	struct sonde_ui *ui, const struct sonde_trace_command_options *options);

/* What --from and --to were given, each NULL where it was not. SONDE_USAGE for what is no time. */
struct sonde_error *sonde_trace_command_window(
	const char *from, const char *to, struct sonde_trace_window *ret) SONDE_CHECK;

/* The rows of these two options, whose texts go into two members of the options struct. */
#define SONDE_TRACE_WINDOW_ROWS(from, to)                                                      \
	{"from", 0, from, "TIME",                                                              \
		"not before TIME: 1.5s, 20ms, 3us since the first event; plain digits: ns as " \
		"shown"},                                                                      \
	{                                                                                      \
		"to", 0, to, "TIME", "not behind TIME"                                         \
	}
