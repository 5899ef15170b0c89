/* src/traceread/v2.h: the formats from 1.22 on: one generation in memory at a time. Only for traceread/v2*. */
#pragma once
#include "base/map.h"
#include "traceread/internal.h"
#include "traceread/source.h"

/* A batch of timed events, as it lies in the window. */
struct sonde_trace_v2_batch {
	uint64_t offset; /* of its first byte behind the head */
	uint64_t ticks;
	uint32_t size;
	uint32_t next; /* index + 1 of the next one of this thread; 0 = none */
	bool cut; /* its end is missing and has been listed */
};
SONDE_DEFINE_VEC(sonde_trace_v2_batches, struct sonde_trace_v2_batch)

/* A string (len bytes at offset) or a stack (n frames at offset) of the generation. */
struct sonde_trace_v2_entry {
	uint64_t id, offset;
	uint32_t n;
	uint32_t cache; /* interned id + 1 */
};
SONDE_DEFINE_VEC(sonde_trace_v2_entries, struct sonde_trace_v2_entry)

struct sonde_trace_v2_table {
	struct sonde_trace_v2_entries entries; /* in file order */
	uint32_t *dense; /* index + 1 by id, where ids are dense */
	uint64_t n_dense;
	size_t dense_cap;
	struct sonde_u32_map sparse; /* index by id, where they are not */
};

struct sonde_trace_v2_sample {
	int64_t ns;
	uint64_t ticks, m, p, g, stack, offset;
};
SONDE_DEFINE_VEC(sonde_trace_v2_samples, struct sonde_trace_v2_sample)

/* As in Go's reader a thread is there from the first look at an event of it: a status may name it before. */
#define SONDE_TRACE_V2_M_LATER (SONDE_TRACE_NO_SLOT - 1)

/* A thread's batches and the event that comes next in them. */
struct sonde_trace_v2_cursor {
	const uint8_t *p, *end; /* in the current batch, behind the event */
	const uint8_t *at; /* the event */
	int64_t ns;
	uint64_t args[SONDE_TRACE_MAX_ARGS];
	uint64_t m;
	uint32_t m_slot; /* SONDE_TRACE_V2_M_LATER: not looked up yet */
	uint32_t next_batch; /* index + 1 */
	uint32_t last_batch; /* index + 1; while batches are collected */
	uint8_t kind;
	bool batch_cut;
};
SONDE_DEFINE_VEC(sonde_trace_v2_cursors, struct sonde_trace_v2_cursor)

struct sonde_trace_v2_place {
	int64_t ns;
	uint32_t cursor;
};
SONDE_DEFINE_VEC(sonde_trace_v2_heap, struct sonde_trace_v2_place)

enum { SONDE_TRACE_V2_MAX_QUEUE = 3 };

struct sonde_trace_v2 {
	struct sonde_trace_reader *r;
	uint64_t offset; /* of the next byte of the file to look at */
	uint64_t gen; /* the current generation's number in the file; 0 = none yet */
	uint64_t first_gen;
	bool padded; /* all batches so far have their size in 10 bytes: a head without is none */
	bool ended; /* no generation follows */
	bool lossy; /* something of this generation is lost: what does not fit is forced silently */

	/* The generation. */
	struct sonde_trace_v2_batches batches;
	struct sonde_trace_v2_cursors cursors;
	struct sonde_u32_map cursor_of_m; /* index + 1 */
	struct sonde_trace_v2_heap heap;
	struct sonde_trace_v2_table strings, stacks;
	struct sonde_trace_v2_samples samples;
	size_t next_sample;
	bool has_frequency, has_clock;
	double ns_per_tick;
	uint64_t min_ticks, clock_ticks;

	/* Out of one event of the file may come three. */
	struct sonde_trace_event queue[SONDE_TRACE_V2_MAX_QUEUE];
	unsigned n_queued, next_queued;
	uint64_t n_syncs;
	bool no_memory; /* found out on the way; the next call fails */
	uint32_t stw_kind; /* of the stop of the world that is open, interned */
	struct sonde_trace_m nobody; /* stands for the thread of events that have none */
	char why[256]; /* why the last event did not advance */
};

/* v2_load.c: read the next generation into v; false where none follows. Damage is listed. */
struct sonde_error *sonde_trace_v2_load(struct sonde_trace_v2 *v, bool *ret) SONDE_CHECK;
void sonde_trace_v2_unload(struct sonde_trace_v2 *v);
const struct sonde_trace_v2_entry *sonde_trace_v2_find(
	const struct sonde_trace_v2_table *table, uint64_t id);

static inline const uint8_t *sonde_trace_v2_at(const struct sonde_trace_v2 *v, uint64_t offset)
{
	return v->r->source->data + (offset - v->r->source->start);
}

static inline int64_t sonde_trace_v2_to_ns(double ns_per_tick, uint64_t ticks)
{
	/* Go converts by cvttsd2sq, for which what does not fit is the smallest number. */
	double ns = (double)ticks * ns_per_tick;
	return ns < 9223372036854775808.0 ? (int64_t)ns : INT64_MIN;
}

/* v2_order.c: what an event does. */
enum sonde_trace_v2_step {
	SONDE_TRACE_V2_OK, /* it is in the queue */
	SONDE_TRACE_V2_WAIT, /* something else must come first; nothing has changed */
	SONDE_TRACE_V2_WRONG, /* it contradicts the state, says v->why; nothing has changed */
};

/* Try the cursor's event. force: what does not fit is made to fit, and it always advances. */
enum sonde_trace_v2_step sonde_trace_v2_advance(
	struct sonde_trace_v2 *v, struct sonde_trace_v2_cursor *c, bool force);
