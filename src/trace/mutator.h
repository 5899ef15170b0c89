/*
 * src/trace/mutator.h: how much of the processors the program itself had beside its collector, and the least of it in any window of
 * a length (minimum mutator utilisation). As Go's internal/trace.MutatorUtilizationV2 counts it with UtilSTW, UtilBackground and
 * UtilAssist, which `go tool trace` shows first. 16 bytes a change, a byte a goroutine that lives.
 */
#pragma once
#include "traceread/stream.h"

/* From ns on, `busy` of `procs` processors work for the collector. */
struct sonde_trace_mutator_change {
	int64_t ns;
	uint32_t busy, procs;
};
SONDE_DEFINE_VEC(sonde_trace_mutator_changes, struct sonde_trace_mutator_change)
SONDE_DEFINE_VEC(sonde_trace_mutator_flags, uint8_t)

struct sonde_trace_mutator {
	struct sonde_trace_mutator_changes changes; /* ascending */
	int64_t end_ns;

	struct sonde_trace_mutator_flags of_g; /* by slot */
	uint32_t busy, procs, n_stopped;
};

void sonde_trace_mutator_deinit(struct sonde_trace_mutator *m);

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_mutator_add(struct sonde_trace_mutator *m, const struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);

/*
 * The least utilisation (0 to 1) of all windows of that length, and where the first such begins. A window longer than the
 * trace is as long as it. false: the number of processors was never told, or no time passed since.
 */
bool sonde_trace_mutator_least(
	const struct sonde_trace_mutator *m, uint64_t window_ns, double *least, int64_t *begin_ns);
