/*
 * src/trace/goroutines.h: where each goroutine's time went, from one pass over the stream. As Go's
 * internal/trace.Summarizer counts it, but for goroutines that are in a system call at the end: Go counts the part
 * without a processor twice. 152 bytes a goroutine that lives, 104 one that is kept, nothing for those that are summed.
 */
#pragma once
#include "traceread/stream.h"

/* Nanoseconds. The first six and what is unknown add up to the total; assist and sweep lie within them. */
struct sonde_trace_times {
	uint64_t total_ns;
	uint64_t running_ns, runnable_ns, blocked_ns;
	uint64_t syscall_ns; /* in a system call, with its processor */
	uint64_t syscall_blocked_ns; /* in it after the processor was taken away */
	uint64_t assist_ns, sweep_ns;
};

/* total_ns less what is known: after damage only. */
uint64_t sonde_trace_times_unknown(const struct sonde_trace_times *t);

void sonde_trace_times_add(struct sonde_trace_times *to, const struct sonde_trace_times *t);

/* from's, at an earlier time of the same goroutine. */
void sonde_trace_times_sub(struct sonde_trace_times *from, const struct sonde_trace_times *t);

/* Blocked for one reason. */
struct sonde_trace_block {
	uint32_t reason; /* interned; 0 = not told */
	uint32_t next; /* index + 1 in the pool, 0 = the last */
	uint64_t n, ns;
};
SONDE_DEFINE_VEC(sonde_trace_blocks, struct sonde_trace_block)

struct sonde_trace_goroutine {
	uint64_t id;
	int64_t created_ns; /* or the first generation's beginning, where it was there before */
	int64_t started_ns, ended_ns; /* INT64_MIN: it never was */
	uint32_t entry; /* interned name of its outermost function; 0 = not seen */
	uint32_t blocks; /* index + 1 in blocks */
	struct sonde_trace_times times;
};
SONDE_DEFINE_VEC(sonde_trace_goroutine_vec, struct sonde_trace_goroutine)

/* All goroutines of one entry function. */
struct sonde_trace_entry {
	uint32_t entry, blocks;
	uint64_t n;
	struct sonde_trace_times times;
};
SONDE_DEFINE_VEC(sonde_trace_entry_vec, struct sonde_trace_entry)

struct sonde_trace_live;

struct sonde_trace_goroutines {
	struct sonde_trace_goroutine_vec ended; /* those that were to be kept */
	struct sonde_trace_entry_vec
		entries; /* of the others; after finish() by total, the largest first */
	struct sonde_trace_blocks blocks;
	uint64_t n; /* goroutines seen */
	int64_t first_ns, last_ns; /* of the trace; first > last: no event */

	/* Of the pass. */
	bool keep;
	struct sonde_trace_live *live; /* by slot */
	size_t n_live;
	struct sonde_u32_vec by_entry; /* interned name -> index + 1 in entries */
	struct sonde_u32_vec syscall_of_p, sweep_of_p; /* by slot: a goroutine's slot + 1 */
	uint32_t free_block;
	int64_t sync_ns;
};

void sonde_trace_goroutines_deinit(struct sonde_trace_goroutines *gs);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_goroutines)

/* keep: goroutines in `ended`, one by one; else sums in `entries`. */
void sonde_trace_goroutines_init(struct sonde_trace_goroutines *gs, bool keep);

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_goroutines_add(struct sonde_trace_goroutines *gs,
	struct sonde_trace_reader *reader, const struct sonde_trace_event *e);

/* The times of the goroutine in that slot of the reader up to ns, which is not before the last event; zeros where there is none. */
void sonde_trace_goroutines_times(const struct sonde_trace_goroutines *gs, uint32_t slot,
	int64_t ns, struct sonde_trace_times *ret);

/* The end of the trace: those that still live are closed at its last event. false = out of memory. */
bool sonde_trace_goroutines_finish(struct sonde_trace_goroutines *gs);
