/*
 * src/trace/waits.h: the stays of goroutines in the states in which they do not run: runnable, waiting, in a system call.
 * What `sched`, `blocking` and `pprof` count. 80 bytes a goroutine that lives.
 */
#pragma once
#include "traceread/stream.h"

struct sonde_trace_wait {
	int64_t start_ns, end_ns;
	uint64_t g,
		by; /* by: the goroutine that the first event happened on; SONDE_TRACE_NO_ID = none */
	uint32_t slot; /* of g */
	uint32_t stack; /* interned: of the event that it began with; 0 = none */
	uint32_t reason; /* interned; 0 = not told */
	uint8_t status; /* enum sonde_trace_g_status */
	uint8_t next; /* the status that it ended with; NONE: the goroutine or the trace ended */
	uint8_t kind; /* enum sonde_trace_kind: of the first event */
	uint8_t v1; /* enum sonde_trace_v1_type: the same in formats before 1.22; 0 = made */
	bool known_start; /* else it was so when the trace, or what is readable of it, began */
};

/* Of one goroutine. */
struct sonde_trace_waiting {
	struct sonde_trace_wait wait; /* status NONE = it runs, or does not exist */
	/* Before 1.22 a system call is known to block after it began: that beginning. stack 0 = none. */
	int64_t syscall_ns;
	uint32_t syscall_stack;
};

struct sonde_trace_waits {
	struct sonde_trace_waiting *live; /* by slot */
	size_t n_live, at; /* at: of finish() */
	uint32_t wanted; /* bits of enum sonde_trace_g_status */
	int64_t last_ns;
};

/* wanted: bits of the states to follow. */
void sonde_trace_waits_init(struct sonde_trace_waits *ws, uint32_t wanted);
void sonde_trace_waits_deinit(struct sonde_trace_waits *ws);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_waits)

/*
 * Take in the event that the reader just delivered. *ended: a stay ended with it and stands in *wait. false = out of
 * memory.
 */
bool sonde_trace_waits_add(struct sonde_trace_waits *ws, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e, struct sonde_trace_wait *wait, bool *ended);

/* After the last event: one that still lasts, until there is none (false). It ends at the trace's last event. */
bool sonde_trace_waits_rest(struct sonde_trace_waits *ws, struct sonde_trace_wait *wait);
