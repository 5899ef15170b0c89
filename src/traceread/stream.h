/*
 * src/traceread/stream.h: an execution trace of any version as one stream of events in a causal order, each with the
 * state of its goroutine and processor before and after. Damage is gone around and listed, never silently.
 *
 *	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
 *	const struct sonde_trace_event *e;
 *	SONDE_TRY(sonde_trace_reader_open(path, &options, &reader));
 *	for (;;) {
 *		SONDE_TRY(sonde_trace_reader_next(reader, &e));
 *		if (!e)
 *			break;
 *		...
 *	}
 *
 * One thread at a time. Nothing is allocated per event.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/notes.h"
#include "base/vec.h"
#include "traceformat/events.h"
#include "traceformat/wire.h"

/* A slot that is none; see struct sonde_trace_event. */
#define SONDE_TRACE_NO_SLOT UINT32_MAX

enum sonde_trace_event_flag {
	SONDE_TRACE_MADE =
		1, /* not in the file: a part of another event, or the reader's own (Sync) */
	SONDE_TRACE_FORCED = 2, /* did not fit the state: the state was made to fit */
	SONDE_TRACE_CLAMPED = 4, /* its own time was not later than that of the event before it */
};

/*
 * One event. Slots number the goroutines, processors and threads that exist from 0, densely, and are used again after
 * their end: an array by slot holds what a pass knows of each. A goroutine's slot becomes free with the event that ends
 * it (g_after SONDE_TRACE_G_NONE); the next one that begins may have it.
 */
struct sonde_trace_event {
	int64_t ns; /* as Go computes it: strictly increasing; before 1.22 it may also stay the same */
	uint8_t kind; /* enum sonde_trace_kind */
	uint8_t wire; /* the type as the file has it; 0 where SONDE_TRACE_MADE */
	uint8_t flags; /* enum sonde_trace_event_flag */
	uint8_t g_before,
		g_after; /* of subject_g, enum sonde_trace_g_status; NONE both: not about its status */
	uint8_t p_before,
		p_after; /* of subject_p, enum sonde_trace_p_status; NONE both: no subject */
	uint32_t generation; /* 1, 2, ... in the order read; 1 always before 1.22 */

	/* Where it happened: what ran on the thread before the event. SONDE_TRACE_NO_ID, SONDE_TRACE_NO_SLOT: none. */
	uint64_t m, p, g;
	uint32_t m_slot, p_slot, g_slot;

	/* What it is about: whose state it changes or announces. */
	uint32_t subject_g_slot, subject_p_slot;
	uint64_t subject_g, subject_p;

	/*
	 * As the catalogue names them. Behind them: USER_TASK_END has the parent in args[2] and the name in args[3];
	 * STW_END has the kind in args[0]. Strings and stacks are ids of the generation: see below.
	 */
	uint64_t args[SONDE_TRACE_MAX_ARGS];
	uint64_t offset; /* of its record in the file (inflated), 0 where SONDE_TRACE_MADE */
};

/* The id of the running goroutine's stack, 0 = none. */
static inline uint64_t sonde_trace_event_stack(const struct sonde_trace_event *e)
{
	int i = sonde_trace_event_specs[e->kind].stack_arg;
	return i < 0 ? 0 : e->args[i];
}

/* --- damage --- */

/* What can be wrong. Remarks leave the trace whole. */
enum sonde_trace_damage_code {
#define SONDE_TRACE_DAMAGE(code, remark, word, text) SONDE_TRACE_DAMAGE_##code,
#include "traceread/damage.def"
	SONDE_TRACE_N_DAMAGES,
};

struct sonde_trace_damage_spec {
	const char *word; /* for JSON: "truncated" */
	const char *text; /* "the end of the trace is missing" */
	bool remark;
};
extern const struct sonde_trace_damage_spec sonde_trace_damage_specs[SONDE_TRACE_N_DAMAGES];

struct sonde_trace_damage {
	enum sonde_trace_damage_code code;
	uint32_t generation; /* 0 = none yet */
	uint64_t offset; /* in the file (inflated) */
	int64_t ns; /* of the last event before; INT64_MIN = none yet */
	uint64_t m, p, g; /* SONDE_TRACE_NO_ID: not known, or not of one */
	uint64_t bytes; /* lost */
	const char *text; /* what was expected, what was there; one line, unescaped */
};
SONDE_DEFINE_VEC(sonde_trace_damage_vec, struct sonde_trace_damage)

enum { SONDE_TRACE_KEPT_DAMAGES = 100 }; /* of one code; the rest is counted */

struct sonde_trace_damages {
	struct sonde_arena arena;
	struct sonde_trace_damage_vec list; /* in the order found */
	uint64_t counts[SONDE_TRACE_N_DAMAGES];
	uint64_t bytes[SONDE_TRACE_N_DAMAGES]; /* lost */
};

/* --- the reader --- */

struct sonde_trace_reader_options {
	const struct sonde_log *log; /* borrowed; NULL = none */
	const char *exe; /* names for 1.5 traces, which have addresses only; NULL = none */
	bool follow; /* wait for more at the end, until the log's progress says stop */
};

struct sonde_trace_reader;

/*
 * Open a trace: "-" is standard input, compressed ones (.gz .zst .xz .lz4, told by their bytes) are read through. What
 * is not a trace is SONDE_BAD_DATA and named, with its size; an unknown version SONDE_UNSUPPORTED; no bytes SONDE_TRUNCATED.
 */
struct sonde_error *sonde_trace_reader_open(const char *path,
	const struct sonde_trace_reader_options *options,
	struct sonde_trace_reader **ret) SONDE_CHECK;

/* The same over bytes in memory, borrowed. */
struct sonde_error *sonde_trace_reader_open_memory(const void *data, size_t len,
	const struct sonde_trace_reader_options *options,
	struct sonde_trace_reader **ret) SONDE_CHECK;
void sonde_trace_reader_free(struct sonde_trace_reader *reader);
SONDE_DEFINE_CLEANUP(sonde_trace_reader)

/*
 * The next event, valid until the next call; NULL at the end. Fails only where nothing can be read on: memory, the
 * system, an interruption.
 */
struct sonde_error *sonde_trace_reader_next(
	struct sonde_trace_reader *reader, const struct sonde_trace_event **ret) SONDE_CHECK;

struct sonde_trace_info {
	unsigned version; /* the N of the header's 1.N */
	uint64_t size_bytes; /* of the file, inflated; 0 where it is not known yet */
	uint64_t read_bytes; /* so far, inflated */
	uint64_t n_events; /* delivered so far, without those that are SONDE_TRACE_MADE */
	uint64_t n_forced, n_clamped;
	int64_t max_clamp_ns; /* the largest step that a time was moved by */
	uint32_t n_generations; /* so far */
	uint64_t n_batches;
	double ns_per_tick; /* of the current generation */
	bool has_clock; /* wall and monotonic time at clock_ns, from 1.25 on */
	int64_t clock_ns;
	uint64_t clock_mono_ns;
	int64_t clock_wall_sec, clock_wall_nsec;
	uint64_t largest_generation_bytes;
	uint64_t state_bytes; /* the state table, now */
};
const struct sonde_trace_info *sonde_trace_reader_info(struct sonde_trace_reader *reader);

/* All damage so far; complete at the end. Borrowed. */
const struct sonde_trace_damages *sonde_trace_reader_damages(
	const struct sonde_trace_reader *reader);

/* Whether nothing but remarks was found. */
bool sonde_trace_reader_is_whole(const struct sonde_trace_reader *reader);

/* Counts and first places of all damage, as notes of a report. */
void sonde_trace_reader_add_notes(
	const struct sonde_trace_reader *reader, struct sonde_notes *notes);

/* The state of everything, at the event that was last delivered or, at the end, after all. See traceread/state.h. */
const struct sonde_trace_state *sonde_trace_reader_state(const struct sonde_trace_reader *reader);

/* --- strings and stacks --- */

/*
 * String ids that no file has: of the reader's own texts, of interned ones, and (formats before 1.22) of texts that
 * stand in a record. They work wherever a string id does.
 */
#define SONDE_TRACE_STRING_INTERNED UINT64_C(0xf000000000000000) /* | interned id */

/*
 * The text of a string id of the current generation; NULL and *len 0 where there is none. No NUL behind it. Valid until
 * the next call of sonde_trace_reader_next(). 0 is "".
 */
const char *sonde_trace_string(const struct sonde_trace_reader *reader, uint64_t id, size_t *len);

/*
 * Stable ids, the same for equal strings over the whole trace, dense from 0 = "". UINT32_MAX when out of memory; an
 * unknown id becomes 0. Interned strings stay until the reader is freed: intern names, not messages.
 */
uint32_t sonde_trace_intern(struct sonde_trace_reader *reader, uint64_t string_id);
uint32_t sonde_trace_intern_text(struct sonde_trace_reader *reader, const char *s, size_t len);
const char *sonde_trace_interned(
	const struct sonde_trace_reader *reader, uint32_t id); /* with a NUL */

/* A frame of a stack, the innermost first. Strings are ids of the generation. */
struct sonde_trace_frame {
	uint64_t pc, func, file, line;
};

/* The frames of a stack id of the current generation, at most SONDE_TRACE_MAX_FRAMES. Returns how many. */
size_t sonde_trace_stack(const struct sonde_trace_reader *reader, uint64_t id,
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES]);

/* The same with interned strings. */
struct sonde_trace_interned_frame {
	uint64_t pc;
	uint32_t func, file, line;
};

/* A stable id of a stack, dense from 0 = no frames; UINT32_MAX when out of memory. An unknown stack is 0. */
uint32_t sonde_trace_intern_stack(struct sonde_trace_reader *reader, uint64_t stack_id);
const struct sonde_trace_interned_frame *sonde_trace_interned_stack(
	const struct sonde_trace_reader *reader, uint32_t id, size_t *n);
