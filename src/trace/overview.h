/* src/trace/overview.h: sums over a whole trace, one event after the other. */
#pragma once
#include "traceread/stream.h"

/* Ranges of one kind, which may overlap. */
struct sonde_trace_span {
	uint64_t n;
	uint64_t
		total_ns; /* the sum of their lengths; of open ones up to the last event, at the end */
	uint64_t longest_ns; /* of one that no other overlaps */
	uint64_t n_open; /* right now */
	int64_t since_ns; /* that n_open is not 0 */
};

struct sonde_trace_overview {
	int64_t first_ns, last_ns; /* of events that are not the reader's own; first > last: none */
	uint64_t counts[256]; /* by kind, without SONDE_TRACE_MADE */
	uint64_t wire_counts[64]; /* by record type, formats before 1.22 */
	uint64_t n_goroutines; /* seen */
	uint64_t n_alive, most_alive;
	uint64_t procs; /* GOMAXPROCS as last told; 0 = never */
	struct sonde_trace_span gc, stw, assist;
	bool has_heap;
	uint64_t heap_min, heap_max, heap_last, heap_goal;
	/* Goroutines and processors that run, and the integral of it. */
	int64_t n_running, n_busy, at_ns;
	uint64_t running_ns, busy_ns;
};

void sonde_trace_overview_init(struct sonde_trace_overview *o);
void sonde_trace_overview_add(
	struct sonde_trace_overview *o, const struct sonde_trace_event *e, unsigned version);

/* After the last event. */
void sonde_trace_overview_end(struct sonde_trace_overview *o);
