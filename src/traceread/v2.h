/* src/traceread/v2.h: the formats from 1.22 on: one generation in memory at a time. Only for traceread/v2* and trace/repair.c. */
#pragma once
#include <string.h>
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

/* An experiment's batch: its bytes are only the experiment's to read. */
struct sonde_trace_v2_experiment {
	uint64_t offset, m; /* of its first byte behind the head */
	uint32_t size;
	uint8_t experiment;
};
SONDE_DEFINE_VEC(sonde_trace_v2_experiments, struct sonde_trace_v2_experiment)

struct sonde_trace_v2_sample {
	int64_t ns;
	uint64_t ticks, m, p, g, stack, offset;
};
SONDE_DEFINE_VEC(sonde_trace_v2_samples, struct sonde_trace_v2_sample)

/* As in Go's reader a thread is there from the first look at an event of it: a status may name it before. */
#define SONDE_TRACE_V2_M_LATER (SONDE_TRACE_NO_SLOT - 1)

/* A thread's batches and the event that comes next in them. */
struct sonde_trace_v2_cursor {
	const uint8_t *p, *end; /* the event that comes next, and the end of its batch */
	const uint8_t *args; /* of the event: they are decoded when its turn has come */
	const uint8_t *next; /* behind it; known once it was tried */
	int64_t ns;
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

/* How ticks become nanoseconds. */
struct sonde_trace_v2_clock {
	double ns_per_tick;
	uint64_t
		whole_ns_per_tick; /* where that is a whole number, as with the runtime's 64; else 0 */
};

struct sonde_trace_v2;

/* One event on its way: a handler fills in *e what it is about, and changes the state. */
struct sonde_trace_v2_try {
	struct sonde_trace_v2 *v;
	struct sonde_trace_state *s;
	struct sonde_trace_event *e;
	uint32_t m_slot;
	uint32_t gen; /* the reader's number of the generation */
	bool force;
};

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
	int64_t second_ns; /* the least time below the heap's top; INT64_MIN: not known */
	int64_t sample_ns; /* of the next CPU sample; INT64_MAX: there is none */
	struct sonde_trace_v2_table strings, stacks;
	struct sonde_trace_v2_samples samples;
	struct sonde_trace_v2_experiments experiments;
	uint64_t gen_start; /* of the generation's bytes; they end at offset */
	bool have_end; /* its end mark, or a following generation */
	size_t next_sample;
	bool has_frequency, has_clock;
	struct sonde_trace_v2_clock clock;
	uint64_t min_ticks, clock_ticks;

	/* Out of one event of the file may come three. */
	struct sonde_trace_event queue[SONDE_TRACE_V2_MAX_QUEUE];
	unsigned n_queued, next_queued;
	struct sonde_trace_v2_try try;
	uint64_t offset_of_null; /* a pointer into the window + this = an offset in the file */
	uint64_t n_syncs;
	/* Called when all events of a generation were handed out and its bytes are still there; NULL = not. */
	struct sonde_error *(*leave)(void *ctx);
	void *leave_ctx;
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

static inline int64_t sonde_trace_v2_to_ns(const struct sonde_trace_v2_clock *clock, uint64_t ticks)
{
	/* Exact in either way, and a third of the time. */
	if (sonde_likely(clock->whole_ns_per_tick && ticks < UINT64_C(1) << 32))
		return (int64_t)(ticks * clock->whole_ns_per_tick);
	/* Go converts by cvttsd2sq, for which what does not fit is the smallest number. */
	double ns = (double)ticks * clock->ns_per_tick;
	return ns < 9223372036854775808.0 ? (int64_t)ns : INT64_MIN;
}

/*
 * A varint of which at least 10 bytes are there; NULL where it is none. Up to 8 bytes without a branch on their number,
 * which nothing can predict.
 */
static inline const uint8_t *sonde_trace_v2_varint(const uint8_t *p, uint64_t *ret)
{
	uint64_t x, stop;
	uint32_t y, stop4;
	if (*p < 0x80) {
		*ret = *p;
		return p + 1;
	}
	memcpy(&y, p, sizeof(y)); /* little-endian, as all machines that sonde runs on */
	stop4 = ~y & 0x80808080;
	if (sonde_likely(stop4)) {
		/* Up to 4 bytes, as nearly all: half the steps, and constants that stand in the instructions. */
		y &= stop4 ^ (stop4 - 1);
		y = (y & 0x007f007f) | (y & 0x7f007f00) >> 1;
		*ret = (y & 0x3fff) | (y & 0x3fff0000) >> 2;
		return p + (__builtin_ctz(stop4) >> 3) + 1;
	}
	memcpy(&x, p, sizeof(x));
	stop = ~x & UINT64_C(0x8080808080808080);
	if (sonde_unlikely(!stop)) {
		size_t n = sonde_trace_varint_decode_slow(p, p + SONDE_TRACE_MAX_VARINT_BYTES, ret);
		return n ? p + n : NULL;
	}
	x &= stop ^ (stop - 1);
	x = (x & UINT64_C(0x007f007f007f007f)) | (x & UINT64_C(0x7f007f007f007f00)) >> 1;
	x = (x & UINT64_C(0x00003fff00003fff)) | (x & UINT64_C(0x3fff00003fff0000)) >> 2;
	*ret = (x & UINT64_C(0x0fffffff)) | (x & UINT64_C(0x0fffffff00000000)) >> 4;
	return p + (__builtin_ctzll(stop) >> 3) + 1;
}

/* v2_order.c: what an event does. */
enum sonde_trace_v2_step {
	SONDE_TRACE_V2_OK, /* it is in the queue */
	SONDE_TRACE_V2_WAIT, /* something else must come first; nothing has changed */
	SONDE_TRACE_V2_WRONG, /* it contradicts the state, says v->why; nothing has changed */
	SONDE_TRACE_V2_UNREADABLE, /* its arguments are no numbers, or it is of no type; nothing has changed */
};

typedef enum sonde_trace_v2_step (*sonde_trace_v2_handler)(const struct sonde_trace_v2_try *x);
extern const sonde_trace_v2_handler sonde_trace_v2_handlers[256]; /* by kind */
