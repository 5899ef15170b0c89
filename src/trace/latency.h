/*
 * src/trace/latency.h: how durations are distributed, in bounded memory: counts of buckets whose width is at most 1/32 of
 * their lower end, so that a percentile is told within 3.2 %; minimum, maximum and sum are exact. 8 bytes a bucket that is
 * used or lies below one that is, at most 15 KB.
 */
#pragma once
#include "base/vec.h"

struct sonde_trace_latency {
	struct sonde_u64_vec buckets;
	uint64_t n, sum_ns, max_ns, min_ns;
};

static inline void sonde_trace_latency_deinit(struct sonde_trace_latency *l)
{
	sonde_u64_vec_deinit(&l->buckets);
}
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_latency)

/* false = out of memory. */
bool sonde_trace_latency_add(struct sonde_trace_latency *l, uint64_t ns);

/* The duration that `share` of all are not longer than (0 < share <= 1): never less than the true one, at most 3.2 % more. 0 where
 * there are none. */
uint64_t sonde_trace_latency_percentile(const struct sonde_trace_latency *l, double share);
