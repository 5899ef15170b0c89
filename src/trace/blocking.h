/* src/trace/blocking.h: what goroutines were blocked for, by reason and stack. 48 bytes a pair of them and its index. */
#pragma once
#include "base/map.h"
#include "trace/waits.h"

struct sonde_trace_blocked {
	uint32_t reason, stack; /* interned */
	uint64_t n, ns, max_ns; /* unfinished ones count as long as the trace goes */
	uint64_t n_unfinished;
	bool is_syscall;
};
SONDE_DEFINE_VEC(sonde_trace_blocked_vec, struct sonde_trace_blocked)

struct sonde_trace_blocking {
	struct sonde_trace_blocked_vec rows; /* after finish() by time, the longest first */
	uint64_t n, ns;
	struct sonde_trace_waits waits;
	struct sonde_u32_map index; /* reason << 32 | stack -> index + 1 in rows */
};

/* syscalls: system calls too. */
void sonde_trace_blocking_init(struct sonde_trace_blocking *b, bool syscalls);
void sonde_trace_blocking_deinit(struct sonde_trace_blocking *b);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_blocking)

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_blocking_add(struct sonde_trace_blocking *b, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);
bool sonde_trace_blocking_finish(struct sonde_trace_blocking *b);
