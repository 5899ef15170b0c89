/* src/trace/export_frames.h: stacks in reports. */
#pragma once
#include "output/report.h"
#include "traceread/stream.h"

/* The innermost function of an interned stack; NULL where there is none. */
const char *sonde_trace_stack_top(const struct sonde_trace_reader *reader, uint32_t stack);

/*
 * The innermost function that is not of Go's library (whose packages have no dot in the first part of their path, but
 * for main): what a person looks for. NULL where there is none.
 */
const char *sonde_trace_stack_caller(const struct sonde_trace_reader *reader, uint32_t stack);

/* JSON: "stack": [{"function", "file", "line", "pc"}...]; text: two lines a frame, as Go prints them. */
void sonde_trace_report_frames(
	struct sonde_report *out, const struct sonde_trace_reader *reader, uint32_t stack);

/* Whether text is a part of the name of one of its functions. */
bool sonde_trace_stack_has(
	const struct sonde_trace_reader *reader, uint32_t stack, const char *text);
