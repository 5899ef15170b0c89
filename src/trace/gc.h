/*
 * src/trace/gc.h: collections: each mark phase, each pause and why, what goroutines were made to help, what was swept. 72
 * bytes a collection, 32 a kind of pause and its distribution.
 */
#pragma once
#include "trace/goroutines.h"
#include "trace/latency.h"
#include "trace/mutator.h"

struct sonde_trace_gc_cycle {
	int64_t begin_ns, end_ns; /* of the mark phase; INT64_MIN, INT64_MAX: outside the trace */
	uint64_t heap_begin, heap_end, heap_most,
		goal; /* bytes; heap_end: the last figure before the end */
	bool has_heap, has_goal;
	uint64_t pauses_ns; /* the world stood still within it */
	uint64_t n_pauses;
};
SONDE_DEFINE_VEC(sonde_trace_gc_cycles, struct sonde_trace_gc_cycle)

/* The world stands still, for one reason. */
struct sonde_trace_pause_kind {
	uint32_t reason; /* interned; 0 = not told */
	struct sonde_trace_latency latency;
};
SONDE_DEFINE_VEC(sonde_trace_pause_kinds, struct sonde_trace_pause_kind)

struct sonde_trace_pause {
	int64_t begin_ns;
	uint64_t ns, g;
	uint32_t reason;
};
SONDE_DEFINE_VEC(sonde_trace_pauses, struct sonde_trace_pause)

struct sonde_trace_gc {
	struct sonde_trace_gc_cycles cycles; /* in order */
	struct sonde_trace_pause_kinds kinds; /* after finish() by time, the most first */
	struct sonde_trace_pauses worst; /* after finish() the longest first */
	struct sonde_trace_latency pauses;
	uint64_t n_sweeps, swept, reclaimed; /* bytes */
	uint64_t n_open_pauses; /* begun and not ended in the trace: left out */
	int64_t first_ns, last_ns;
	struct sonde_trace_goroutines goroutines; /* by entry function: assist_ns, sweep_ns */
	struct sonde_trace_mutator mutator;

	size_t n_worst;
	bool in_cycle, has_heap, has_goal, in_pause;
	uint64_t heap, goal;
	struct sonde_trace_pause pause;
};

/* n_worst: how many of the longest pauses to keep. */
void sonde_trace_gc_init(struct sonde_trace_gc *gc, size_t n_worst);
void sonde_trace_gc_deinit(struct sonde_trace_gc *gc);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_gc)

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_gc_add(struct sonde_trace_gc *gc, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);
bool sonde_trace_gc_finish(struct sonde_trace_gc *gc);
