/*
 * src/trace/regions.h: user regions, and where their goroutine's time went within them; as Go's internal/trace.Summarizer counts
 * it. 120 bytes a region that is open, or kept, on top of what goroutines.h takes.
 */
#pragma once
#include "trace/goroutines.h"
#include "trace/latency.h"

struct sonde_trace_user_region {
	uint64_t g, task; /* task 0 = none */
	uint32_t name; /* interned */
	uint32_t outer; /* of an open one: index + 1 of the one around it */
	int64_t begin_ns,
		end_ns; /* INT64_MIN: before the trace; INT64_MAX: its goroutine or the trace ended first */
	struct sonde_trace_times
		times; /* of its goroutine, within it; total_ns: from begin, or all that is seen of the goroutine */
};
SONDE_DEFINE_VEC(sonde_trace_user_regions, struct sonde_trace_user_region)

/* All of one name. */
struct sonde_trace_region_type {
	uint32_t name;
	uint64_t n_open, n_unbegun; /* without an end, without a beginning: not in the latency */
	struct sonde_trace_latency latency;
	struct sonde_trace_times times; /* of all */
};
SONDE_DEFINE_VEC(sonde_trace_region_types, struct sonde_trace_region_type)

/* Which to count. */
struct sonde_trace_region_filter {
	bool has_g, has_task;
	uint64_t g, task;
	const char *name; /* a part of it; NULL = any */
};

struct sonde_trace_regions_pass {
	struct sonde_trace_region_types types; /* after finish() by time, the most first */
	struct sonde_trace_user_regions kept; /* after finish() by beginning */
	uint64_t n;
	int64_t last_ns;

	struct sonde_trace_region_filter filter;
	bool keep;
	struct sonde_trace_goroutines goroutines;
	struct sonde_trace_user_regions open; /* a pool */
	uint32_t free_open;
	struct sonde_u32_vec innermost; /* by slot of a goroutine: index + 1 in open */
	struct sonde_u32_vec by_name; /* interned -> index + 1 in types */
};

/* keep: each region too. filter is copied, its string borrowed. */
void sonde_trace_regions_init(struct sonde_trace_regions_pass *rs,
	const struct sonde_trace_region_filter *filter, bool keep);
void sonde_trace_regions_pass_deinit(struct sonde_trace_regions_pass *rs);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_regions_pass)

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_regions_add(struct sonde_trace_regions_pass *rs, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);
bool sonde_trace_regions_finish(
	struct sonde_trace_regions_pass *rs, const struct sonde_trace_reader *reader);
