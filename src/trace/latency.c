#include "trace/latency.h"

enum { SUB_BITS = 5, SUBS = 1 << SUB_BITS };

/* Below 2 * SUBS each value has its own; above, SUBS buckets an octave. */
static size_t bucket_of(uint64_t ns)
{
	if (ns < 2 * SUBS)
		return (size_t)ns;
	unsigned shift = 63 - (unsigned)__builtin_clzll(ns) - SUB_BITS;
	return (size_t)shift * SUBS + (size_t)(ns >> shift);
}

/* The largest value of a bucket. */
static uint64_t bucket_end(size_t i)
{
	if (i < 2 * SUBS)
		return i;
	unsigned shift = (unsigned)(i / SUBS) - 1;
	uint64_t first = (uint64_t)(i % SUBS + SUBS);
	return (first << shift) + ((UINT64_C(1) << shift) - 1);
}

bool sonde_trace_latency_add(struct sonde_trace_latency *l, uint64_t ns)
{
	size_t i = bucket_of(ns);
	while (l->buckets.n <= i)
		if (!sonde_u64_vec_push(&l->buckets, 0))
			return false;
	l->buckets.items[i]++;
	l->min_ns = l->n ? sonde_min(l->min_ns, ns) : ns;
	l->max_ns = sonde_max(l->max_ns, ns);
	l->sum_ns += ns;
	l->n++;
	return true;
}

uint64_t sonde_trace_latency_percentile(const struct sonde_trace_latency *l, double share)
{
	if (!l->n)
		return 0;
	double want = share * (double)l->n;
	uint64_t below = 0;
	for (size_t i = 0; i < l->buckets.n; i++) {
		below += l->buckets.items[i];
		if (l->buckets.items[i] && (double)below >= want)
			return sonde_min(bucket_end(i), l->max_ns);
	}
	return l->max_ns;
}
