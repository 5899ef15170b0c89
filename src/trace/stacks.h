/* src/trace/stacks.h: where events happened: how many of each type by stack. 24 bytes a pair, and its index. */
#pragma once
#include "base/map.h"
#include "traceread/stream.h"

struct sonde_trace_stack_row {
	uint64_t n;
	uint32_t stack; /* interned */
	uint8_t kind; /* enum sonde_trace_kind */
};
SONDE_DEFINE_VEC(sonde_trace_stack_rows, struct sonde_trace_stack_row)

struct sonde_trace_stacks {
	struct sonde_trace_stack_rows rows; /* after finish() the most first */
	uint64_t n, n_without; /* events with and without a stack */
	bool wanted[SONDE_TRACE_N_KINDS];
	struct sonde_u32_map index; /* kind << 32 | stack -> index + 1 */
};

void sonde_trace_stacks_deinit(struct sonde_trace_stacks *s);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_stacks)

/* Count the event that the reader just delivered, where its kind is wanted. false = out of memory. */
bool sonde_trace_stacks_add(struct sonde_trace_stacks *s, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);
void sonde_trace_stacks_finish(struct sonde_trace_stacks *s);
