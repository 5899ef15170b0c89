/*
 * src/traceread/v1.h: the formats 1.5 to 1.21, which need two passes: v1_index.c walks the file once, v1_merge.c orders
 * its events by one cursor a processor, v1.c makes events of the stream of them. Only for traceread/v1*.
 * Facts of the format were read from Go 1.21's internal/trace/parser.go and order.go.
 */
#pragma once
#include "base/map.h"
#include "traceread/internal.h"
#include "traceread/source.h"

/* --- records --- */

enum {
	SONDE_TRACE_V1_MAX_ARGS = 6, /* of an event, with time and sequence number */
	SONDE_TRACE_V1_MAX_STACK = 1000, /* frames */
	SONDE_TRACE_V1_MAX_TEXT = 1000000, /* bytes of a string */
	SONDE_TRACE_V1_MAX_PROCS = 65535, /* processors that are told apart */
	SONDE_TRACE_V1_ANY =
		0xff, /* n_args of what is not fixed, or not a record of this version */
};

struct sonde_trace_v1_format {
	const uint8_t *data; /* borrowed: the whole file, header included */
	const uint8_t *end;
	unsigned version;
	uint8_t n_extra; /* the first byte counts this many arguments less than there are, and one */
	uint8_t n_before; /* arguments before an event's own: the time, and in 1.5 the sequence number */
	uint8_t n_args[64]; /* all of them, by type */
	bool is_mapped; /* data is a file's mapping: what was read need not stay resident */
};

void sonde_trace_v1_format_init(
	struct sonde_trace_v1_format *f, const uint8_t *data, uint64_t len, unsigned version);

/* [from, to) was read and is not needed soon: let go of its pages. */
void sonde_trace_v1_format_release(
	const struct sonde_trace_v1_format *f, const uint8_t *from, const uint8_t *to);

struct sonde_trace_v1_record {
	uint64_t args[SONDE_TRACE_V1_MAX_ARGS];
	const uint8_t *text; /* USER_LOG: where the length of its message stands */
	uint8_t type;
};

const uint8_t *sonde_trace_v1_varint_slow(const uint8_t *p, const uint8_t *end, uint64_t *ret);

/* At most 10 bytes; bits beyond 64 are lost, as in Go. NULL: bad or cut. */
static inline const uint8_t *sonde_trace_v1_varint(
	const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	if (sonde_likely(end - p >= 2)) {
		if (sonde_likely(p[0] < 0x80)) {
			*ret = p[0];
			return p + 1;
		}
		if (p[1] < 0x80) {
			*ret = (p[0] & 0x7f) | (uint64_t)p[1] << 7;
			return p + 2;
		}
	}
	return sonde_trace_v1_varint_slow(p, end, ret);
}

/* The message behind a USER_LOG; NULL: bad or cut. */
const uint8_t *sonde_trace_v1_text(
	const uint8_t *p, const uint8_t *end, const char **text, size_t *len);

/* The rest of a record whose arguments have their length in front. */
const uint8_t *sonde_trace_v1_decode_long(const struct sonde_trace_v1_format *f, const uint8_t *p,
	const uint8_t *end, struct sonde_trace_v1_record *r);

/* The record at p, which is neither STRING nor STACK; returns where the next begins, NULL: bad or cut. */
static inline const uint8_t *sonde_trace_v1_decode(const struct sonde_trace_v1_format *f,
	const uint8_t *p, const uint8_t *end, struct sonde_trace_v1_record *r)
{
	uint8_t type = *p & 0x3f, n_inline = *p >> 6;
	unsigned n = n_inline + 1 + f->n_extra;
	p++;
	r->type = type;
	if (n_inline == 3)
		return sonde_trace_v1_decode_long(f, p, end, r);
	if (n != f->n_args[type])
		return NULL;
	for (unsigned i = 0; i < n && p; i++)
		p = sonde_trace_v1_varint(p, end, &r->args[i]);
	if (p && type == SONDE_TRACE_V1_USER_LOG) {
		const char *text;
		size_t len;
		r->text = p;
		p = sonde_trace_v1_text(p, end, &text, &len);
	}
	return p;
}

/* A STRING: its id and text. NULL: bad or cut. */
const uint8_t *sonde_trace_v1_decode_string(
	const uint8_t *p, const uint8_t *end, uint64_t *id, const char **text, size_t *len);

/* A STACK: its id, and where its n frames begin. NULL: bad or cut. */
const uint8_t *sonde_trace_v1_decode_stack(const struct sonde_trace_v1_format *f, const uint8_t *p,
	const uint8_t *end, uint64_t *id, uint64_t *n, const uint8_t **frames);

/* --- index --- */

enum {
	SONDE_TRACE_V1_HEADLESS = 1, /* events in front of the first batch's head */
	SONDE_TRACE_V1_AFTER_LOSS = 2, /* bytes of the same processor were lost before it */
};

struct sonde_trace_v1_batch {
	uint64_t start, end; /* in the file, its head included */
	uint32_t next; /* of the same processor, index + 1; 0 = none */
	uint32_t flags;
};

struct sonde_trace_v1_proc {
	uint64_t id;
	uint32_t first, last; /* batch, index + 1 */
	bool lost; /* bytes, behind `last` */
};

/* A string or a stack; caches of interned ids lie apart. */
struct sonde_trace_v1_entry {
	uint64_t id, offset;
};
SONDE_DEFINE_VEC(sonde_trace_v1_entries, struct sonde_trace_v1_entry)

struct sonde_trace_v1_table {
	struct sonde_trace_v1_entries entries; /* ascending by id once the index is made */
	uint32_t *caches; /* made when first asked for */
	bool dense; /* id - the first id = index */
};

/* A GoSysExit that has its real time (1.5: its sequence number), which may lie back without bound. */
struct sonde_trace_v1_exit {
	int64_t key;
	uint64_t place; /* offset << 16 | processor */
};

/* A CPU sample, by its own time. */
struct sonde_trace_v1_sample {
	int64_t ts;
	uint64_t offset;
};

/* A damage that the first pass listed: its time becomes known later. */
struct sonde_trace_v1_late {
	uint32_t damage; /* in the reader's list */
	int64_t ts;
};

SONDE_DEFINE_VEC(sonde_trace_v1_batches, struct sonde_trace_v1_batch)
SONDE_DEFINE_VEC(sonde_trace_v1_procs, struct sonde_trace_v1_proc)
SONDE_DEFINE_VEC(sonde_trace_v1_exits, struct sonde_trace_v1_exit)
SONDE_DEFINE_VEC(sonde_trace_v1_samples, struct sonde_trace_v1_sample)
SONDE_DEFINE_VEC(sonde_trace_v1_lates, struct sonde_trace_v1_late)

struct sonde_trace_v1_index {
	struct sonde_trace_v1_format format;
	struct sonde_trace_v1_batches batches;
	struct sonde_trace_v1_procs procs;
	struct sonde_u32_map proc_of_id;
	struct sonde_trace_v1_table strings, stacks;
	struct sonde_trace_v1_exits exits; /* ascending by key, then as in the file */
	struct sonde_trace_v1_samples samples; /* ascending by time, then as in the file */
	struct sonde_u64_vec timers; /* goroutines of timers */
	struct sonde_u32_map entry_pcs; /* 1.5: where goroutines begin, and one; a set */
	struct sonde_trace_v1_lates lates;
	int64_t ticks_per_sec; /* 0: not known */
	uint64_t n_futile, n_events;
	uint64_t n_losses;
};

/* Walk the file. Damage is listed at r. */
struct sonde_error *sonde_trace_v1_index_make(
	struct sonde_trace_v1_index *x, struct sonde_trace_reader *r) SONDE_CHECK;
void sonde_trace_v1_index_deinit(struct sonde_trace_v1_index *x);

/* The index of an id in a table; -1: it is not there. */
ssize_t sonde_trace_v1_table_find(const struct sonde_trace_v1_table *t, uint64_t id);

/* Heap that it takes. */
size_t sonde_trace_v1_index_bytes(const struct sonde_trace_v1_index *x);

/* --- merge --- */

struct sonde_trace_v1_cursor {
	int64_t key; /* of its first event: time, in 1.5 the sequence number */
	int64_t ts, seq;
	const uint8_t *start, *next, *end; /* of, and in, the batch */
	uint64_t offset; /* of its first event */
	uint64_t p, last_g; /* last_g: runs there; 0 = none, or not known */
	uint64_t g, displaced_g; /* of the event; displaced: what ran there when another starts */
	uint64_t needs_g; /* whose state the event needs */
	uint32_t next_batch; /* index + 1 */
	uint32_t last_slot; /* of last_g, a hint */
	uint32_t at; /* in its heap */
	uint32_t m_slot, p_slot; /* in the state */
	uint64_t m; /* the thread that runs the processor */
	struct sonde_trace_v1_record record;
};

struct sonde_trace_v1_heap {
	struct sonde_trace_v1_cursor **items; /* owned; the cursors are borrowed */
	uint32_t n;
};

/* One event in its place. */
struct sonde_trace_v1_raw {
	const struct sonde_trace_v1_record *record;
	const uint64_t *args; /* its own, behind the time */
	struct sonde_trace_v1_cursor *cursor; /* NULL: a CPU sample */
	int64_t ts;
	uint64_t g, offset;
	uint32_t slot; /* of the goroutine that its order hangs on; SONDE_TRACE_NO_SLOT */
	bool forced; /* it was not its turn, but nothing else was left */
	bool early; /* a GoSysExit at its real time */
};

/*
 * Orders events as Go 1.21 does: of those whose goroutine is in the state that they need, the one with the lowest time;
 * of equal times that of the processor that the file names first. Where the needed state does not come within a window
 * the event is forced. Goroutines live in `state`: GoCreate makes one, the call after its GoEnd removes it; their
 * seq and gen are the merge's.
 */
struct sonde_trace_v1_merge {
	const struct sonde_trace_v1_index *index; /* borrowed */
	struct sonde_trace_state *state; /* borrowed */
	struct sonde_trace_v1_cursor
		*cursors; /* one a processor, and behind them that of the samples */
	uint32_t n_cursors;
	struct sonde_trace_v1_heap ready, blocked;
	struct sonde_trace_v1_cursor
		*pending; /* its event was delivered, its next is not decoded */
	bool wakes; /* pending's event changed the state of the goroutine that it needed */
	uint32_t ended_slot; /* of a goroutine whose end was delivered */
	size_t next_exit, next_sample;
	struct sonde_trace_v1_record exit_record;
	int64_t window; /* in keys */
	uint64_t gc_seq;
	int64_t wake_budget;
	bool moves_exits;
	bool no_memory;
	struct sonde_trace_v1_raw raw;
};

struct sonde_error *sonde_trace_v1_merge_init(struct sonde_trace_v1_merge *m,
	const struct sonde_trace_v1_index *index, struct sonde_trace_state *state,
	bool moves_exits) SONDE_CHECK;
void sonde_trace_v1_merge_deinit(struct sonde_trace_v1_merge *m);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_v1_merge)

/* The next event, valid until the next call; NULL at the end, and where no_memory says so. */
const struct sonde_trace_v1_raw *sonde_trace_v1_merge_next(struct sonde_trace_v1_merge *m);

/* --- futile wakeups, names --- */

/* Offsets, ascending, of the events that make up wakeups that were in vain: Go's removeFutile. */
struct sonde_error *sonde_trace_v1_futile_find(
	const struct sonde_trace_v1_index *index, struct sonde_u64_vec *offsets) SONDE_CHECK;

/* What a program counter of a 1.5 trace is. Strings are ids of the stream. */
struct sonde_trace_v1_name {
	uint64_t pc;
	uint32_t func, file, line; /* interned */
};
SONDE_DEFINE_VEC(sonde_trace_v1_names, struct sonde_trace_v1_name)

/* Names of all program counters of the stacks of a 1.5 trace by the executable exe, ascending by pc. */
struct sonde_error *sonde_trace_v1_names_make(struct sonde_trace_reader *r,
	const struct sonde_trace_v1_index *index, const char *exe,
	struct sonde_trace_v1_names *ret) SONDE_CHECK;
