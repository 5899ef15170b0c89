#include "trace/entry.h"

/* The stack that its outermost function stands in, where the event has one of the subject itself. */
static uint64_t own_stack(const struct sonde_trace_event *e)
{
	switch (e->kind) {
	case SONDE_TRACE_GO_CREATE:
	case SONDE_TRACE_GO_CREATE_BLOCKED:
		return e->args[1];
	case SONDE_TRACE_GO_STOP:
	case SONDE_TRACE_GO_BLOCK:
	case SONDE_TRACE_GO_SYSCALL_BEGIN:
	case SONDE_TRACE_GO_STATUS_STACK:
		return sonde_trace_event_stack(e);
	default:
		return 0;
	}
}

bool sonde_trace_entry_find(
	struct sonde_trace_reader *reader, const struct sonde_trace_event *e, uint32_t *entry)
{
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	uint64_t stack = own_stack(e);
	size_t n = stack ? sonde_trace_stack(reader, stack, frames) : 0;
	if (n)
		*entry = sonde_trace_intern(reader, frames[n - 1].func);
	return *entry != UINT32_MAX;
}
