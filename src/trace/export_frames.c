#include "trace/export_frames.h"

#include <inttypes.h>
#include <string.h>

const char *sonde_trace_stack_top(const struct sonde_trace_reader *reader, uint32_t stack)
{
	size_t n;
	const struct sonde_trace_interned_frame *frames =
		sonde_trace_interned_stack(reader, stack, &n);
	return n ? sonde_trace_interned(reader, frames[0].func) : NULL;
}

static bool is_library(const char *function)
{
	/* "main.f", "C function": the program's. "net/http.(*conn).serve", "runtime.gopark": not. */
	size_t first = strcspn(function, "/.");
	if (!function[first] || !strncmp(function, "main.", 5))
		return false;
	if (function[first] == '.') {
		/* A dot in front of a slash is a host's: "example.com/x.f". */
		const char *slash = strchr(function, '/'), *bracket = strchr(function, '(');
		return !slash || (bracket && bracket < slash);
	}
	return true;
}

const char *sonde_trace_stack_caller(const struct sonde_trace_reader *reader, uint32_t stack)
{
	size_t n;
	const struct sonde_trace_interned_frame *frames =
		sonde_trace_interned_stack(reader, stack, &n);
	for (size_t i = 0; i < n; i++) {
		const char *name = sonde_trace_interned(reader, frames[i].func);
		if (name && *name && !is_library(name))
			return name;
	}
	return NULL;
}

void sonde_trace_report_frames(
	struct sonde_report *out, const struct sonde_trace_reader *reader, uint32_t stack)
{
	size_t n;
	const struct sonde_trace_interned_frame *frames =
		sonde_trace_interned_stack(reader, stack, &n);
	sonde_report_list_begin(out, "stack");
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct sonde_trace_interned_frame *f = &frames[i];
		const char *func = sonde_trace_interned(reader, f->func);
		const char *file = sonde_trace_interned(reader, f->file);
		sonde_report_item_begin(out);
		sonde_report_field(out, "function", NULL, sonde_value_text(func));
		sonde_report_field(out, "file", NULL, sonde_value_text(file));
		sonde_report_field(out, "line", NULL, sonde_value_count(f->line));
		sonde_report_field(out, "pc", NULL, sonde_value_addr(f->pc));
		sonde_report_item_end(out);
		sonde_report_line(out, "    %s", func && *func ? func : "?");
		if (file && *file)
			sonde_report_line(out, "        %s:%" PRIu32, file, f->line);
	}
	sonde_report_list_end(out);
}

bool sonde_trace_stack_has(
	const struct sonde_trace_reader *reader, uint32_t stack, const char *text)
{
	size_t n;
	const struct sonde_trace_interned_frame *frames =
		sonde_trace_interned_stack(reader, stack, &n);
	for (size_t i = 0; i < n; i++) {
		const char *name = sonde_trace_interned(reader, frames[i].func);
		if (name && strstr(name, text))
			return true;
	}
	return false;
}
