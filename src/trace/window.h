/* src/trace/window.h: a range of a trace's time, as it is asked for: both ends are in. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct sonde_trace_window {
	bool has_from, has_to;
	bool from_is_absolute, to_is_absolute; /* else since the first event */
	int64_t from_ns, to_ns;
};

/* The same in the trace's own time, which begins with first_ns; without an end the whole of int64_t. */
static inline void sonde_trace_window_settle(
	const struct sonde_trace_window *window, int64_t first_ns, int64_t *from_ns, int64_t *to_ns)
{
	*from_ns = INT64_MIN;
	*to_ns = INT64_MAX;
	if (window->has_from &&
		__builtin_add_overflow(
			window->from_is_absolute ? 0 : first_ns, window->from_ns, from_ns))
		*from_ns = INT64_MAX;
	if (window->has_to &&
		__builtin_add_overflow(window->to_is_absolute ? 0 : first_ns, window->to_ns, to_ns))
		*to_ns = INT64_MAX;
}
