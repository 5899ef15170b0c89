/*
 * src/trace/tasks.h: user tasks: how long, by type or each; which goroutines worked for them, their regions and logs. 96 bytes
 * a task that is open, or kept, and 8 a goroutine of it.
 */
#pragma once
#include "base/arena.h"
#include "base/map.h"
#include "trace/latency.h"
#include "traceread/stream.h"

struct sonde_trace_user_task {
	uint64_t id, parent; /* 0 = none */
	uint32_t name; /* interned; 0 = not known: it began before the trace */
	bool open, unbegun; /* without an end; without a beginning */
	int64_t begin_ns, end_ns; /* INT64_MIN, INT64_MAX where not known */
	uint64_t begin_g, end_g; /* SONDE_TRACE_NO_ID */
	uint64_t n_regions, n_logs;
	struct sonde_u64_vec
		goroutines; /* ascending: that began or ended it, ran regions of it, logged for it */
};
SONDE_DEFINE_VEC(sonde_trace_user_tasks, struct sonde_trace_user_task)

struct sonde_trace_task_type {
	uint32_t name;
	uint64_t n_open, n_unbegun;
	uint64_t n_regions, n_logs, n_goroutines; /* n_goroutines: summed over tasks */
	struct sonde_trace_latency latency; /* of those with both ends */
};
SONDE_DEFINE_VEC(sonde_trace_task_types, struct sonde_trace_task_type)

/* A log of the one task that is asked for. */
struct sonde_trace_task_log {
	int64_t ns;
	uint64_t g;
	const char *key, *text; /* in the arena */
	size_t key_len, text_len;
};
SONDE_DEFINE_VEC(sonde_trace_task_logs, struct sonde_trace_task_log)

struct sonde_trace_tasks_filter {
	bool has_id;
	uint64_t id; /* that one, with its logs */
	const char *name; /* a part of the type's; NULL = any */
};

struct sonde_trace_tasks_pass {
	struct sonde_trace_task_types types; /* after finish() by time, the most first */
	struct sonde_trace_user_tasks kept; /* after finish() by beginning */
	struct sonde_trace_task_logs logs;
	uint64_t n, n_open_at_end;
	uint64_t n_late; /* regions and logs of a task after its end */
	uint64_t n_without; /* regions and logs of no task */

	struct sonde_trace_tasks_filter filter;
	bool keep;
	struct sonde_arena arena;
	struct sonde_trace_user_tasks live;
	struct sonde_u32_vec free_live;
	struct sonde_u32_map by_id; /* index + 1 in live, or what is known of one that is over */
	struct sonde_u32_vec by_name;
};

void sonde_trace_tasks_init(struct sonde_trace_tasks_pass *ts,
	const struct sonde_trace_tasks_filter *filter, bool keep);
void sonde_trace_tasks_pass_deinit(struct sonde_trace_tasks_pass *ts);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_tasks_pass)

/* Take in the event that the reader just delivered. false = out of memory. */
bool sonde_trace_tasks_add(struct sonde_trace_tasks_pass *ts, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e);
bool sonde_trace_tasks_finish(
	struct sonde_trace_tasks_pass *ts, const struct sonde_trace_reader *reader);
