/* src/trace/entry.h: the function that a goroutine began with, as far as an event tells it. */
#pragma once
#include "traceread/stream.h"

/*
 * The interned name of the outermost function of the goroutine that e is about, into *entry where e has a stack of it. false = out
 * of memory.
 */
bool sonde_trace_entry_find(
	struct sonde_trace_reader *reader, const struct sonde_trace_event *e, uint32_t *entry);
