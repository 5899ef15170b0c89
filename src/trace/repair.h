/*
 * src/trace/repair.h: a damaged trace written again such that Go's own reader takes it. What is whole is copied byte
 * by byte; from the first damage on, generations are written anew: the events that the reader hands out, in its order,
 * each only if a strict state (the rules of Go 1.27's reader) allows it; where a few events before it make it allowed,
 * they are invented, else it is dropped.
 */
#pragma once
#include "base/vec.h"
#include "traceread/stream.h"

enum sonde_trace_repair_what {
	SONDE_TRACE_REPAIR_DROPPED, /* an event that nothing could make fit */
	SONDE_TRACE_REPAIR_INVENTED, /* an event that made a later one fit */
	SONDE_TRACE_REPAIR_CHANGED, /* ids of strings and stacks that are not there became none */
	SONDE_TRACE_REPAIR_N_WHATS,
};

/* The first of its kind: where, and why. */
struct sonde_trace_repair_place {
	uint8_t what; /* enum sonde_trace_repair_what */
	uint8_t kind; /* enum sonde_trace_kind */
	uint64_t
		offset; /* in the damaged file, of the event, or of the one that it was invented for */
	int64_t ns;
	uint64_t m, g; /* SONDE_TRACE_NO_ID: none */
};
SONDE_DEFINE_VEC(sonde_trace_repair_places, struct sonde_trace_repair_place)

/* Where the bytes go; false: they do not arrive, stop. */
typedef bool (*sonde_trace_repair_write)(void *ctx, const void *data, size_t len);

struct sonde_trace_repair {
	uint64_t counts[SONDE_TRACE_REPAIR_N_WHATS][256]; /* by kind */
	uint64_t n_kept; /* events, with CPU samples */
	uint64_t n_generations, n_copied; /* written; of these, byte by byte */
	uint64_t n_clocks, n_end_marks, n_frequencies; /* invented */
	uint64_t n_strings_dropped, n_stacks_dropped; /* second ones of an id */
	uint64_t n_frames_changed; /* of stacks: names that are not there became none */
	uint64_t n_moved; /* events whose time was moved to make room for invented ones */
	int64_t max_move_ns;
	uint64_t n_bytes; /* written */
	struct sonde_trace_repair_places places; /* the first of each kind */
};

void sonde_trace_repair_deinit(struct sonde_trace_repair *repair);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_repair)

/*
 * Read all of the reader, of which nothing was read yet, and write it. Memory: that
 * of the largest generation, once more. The reader's damage tells afterwards what was wrong. *ret is zero before.
 * SONDE_UNSUPPORTED for formats before 1.22.
 */
struct sonde_error *sonde_trace_repair(struct sonde_trace_reader *reader,
	sonde_trace_repair_write write, void *write_ctx,
	struct sonde_trace_repair *ret) SONDE_CHECK;
