/*
 * src/trace/sched.h: how long goroutines that could run did not: from runnable to running. 88 bytes a goroutine that lives,
 * 15 KB at most an entry function, 1 KB a processor.
 */
#pragma once
#include "trace/latency.h"
#include "trace/waits.h"

enum { SONDE_TRACE_SCHED_RUNS = 32 }; /* that are remembered of a processor */

/* A goroutine on a processor, which a system call keeps until it is taken away. */
struct sonde_trace_run {
	uint64_t g;
	int64_t from_ns, to_ns; /* to_ns INT64_MAX: it still does */
	uint32_t entry; /* interned, 0 = not seen */
	bool in_syscall;
};

struct sonde_trace_processor {
	struct sonde_trace_run runs[SONDE_TRACE_SCHED_RUNS]; /* a ring */
	uint32_t n; /* runs ever */
};

/* What a worst wait was behind: on the processor that ended it. */
struct sonde_trace_behind {
	uint64_t g, ns;
	uint32_t entry;
	bool in_syscall;
};

enum { SONDE_TRACE_SCHED_BEHIND = 3 };

struct sonde_trace_worst {
	struct sonde_trace_wait wait;
	uint64_t ns, p; /* p: where it ran then */
	uint32_t entry;
	uint32_t n_behind;
	struct sonde_trace_behind behind[SONDE_TRACE_SCHED_BEHIND]; /* the longest first */
	uint64_t other_ns; /* of those not told */
	bool forgotten; /* the beginning of the wait is older than what is remembered */
	uint32_t idle; /* processors without work when it became runnable */
};
SONDE_DEFINE_VEC(sonde_trace_worst_vec, struct sonde_trace_worst)

struct sonde_trace_sched_entry {
	uint32_t entry;
	struct sonde_trace_latency latency;
};
SONDE_DEFINE_VEC(sonde_trace_sched_entries, struct sonde_trace_sched_entry)

struct sonde_trace_sched_goroutine {
	uint64_t id;
	uint32_t entry, idle;
};
SONDE_DEFINE_VEC(sonde_trace_sched_goroutines, struct sonde_trace_sched_goroutine)
SONDE_DEFINE_VEC(sonde_trace_processors, struct sonde_trace_processor)

struct sonde_trace_sched {
	struct sonde_trace_latency all;
	struct sonde_trace_sched_entries entries; /* after finish() by the sum, the largest first */
	struct sonde_trace_worst_vec worst; /* after finish() the longest first */
	uint64_t n_unfinished; /* runnable to the end */
	uint64_t n_unknown; /* runnable since before the trace: left out */

	/* Of the pass. */
	struct sonde_trace_waits waits;
	size_t n_worst; /* wanted */
	size_t least; /* of the worst, once there are so many: index */
	struct sonde_u32_vec by_entry; /* interned -> index + 1 */
	struct sonde_trace_sched_goroutines gs; /* by slot */
	struct sonde_trace_processors ps; /* by slot */
	uint32_t n_idle;
};

/* n_worst: how many of the longest waits to keep. */
void sonde_trace_sched_init(struct sonde_trace_sched *s, size_t n_worst);
void sonde_trace_sched_deinit(struct sonde_trace_sched *s);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_sched)

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_sched_add(struct sonde_trace_sched *s, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);
void sonde_trace_sched_finish(struct sonde_trace_sched *s);
