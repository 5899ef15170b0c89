/*
 * src/core/mark.h: which objects are alive: everything that the roots reach, as the collector would find it. One bit an
 * object, by object number (golang/heap.h).
 *
 * Costs: n_slots / 8 bytes (twice where finalizers of unreachable objects keep others) and the threads' stacks: 8 bytes
 * for each object that is marked and not yet scanned; a large object is scanned in parts, so that it cannot fill them.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"
#include "golang/goroutine.h"
#include "golang/heap.h"

struct sonde_core_marks {
	uint64_t *bits; /* 1 = reachable */
	uint64_t *kept_bits; /* 1 = reachable or pending, as below; NULL = nothing is pending */
	uint64_t n_live, live_bytes; /* slot bytes */
	/* Unreachable, but kept by the runtime until finalizers or cleanups have run, with what they alone reach. */
	uint64_t n_pending, pending_bytes;
	uint64_t n_not_allocated; /* reachable slots that the heap calls free: a sign of damage */
	uint64_t n_roots;
	unsigned n_threads;
};

/* n_threads 0: as many as there are CPUs. notes may be NULL. */
struct sonde_error *sonde_core_mark(const struct sonde_go_heap *heap,
	const struct sonde_goroutines *gs, unsigned n_threads, struct sonde_notes *notes,
	struct sonde_core_marks **ret) SONDE_CHECK;
void sonde_core_marks_free(struct sonde_core_marks *marks);
SONDE_DEFINE_CLEANUP(sonde_core_marks)

static inline bool sonde_core_marks_has(const struct sonde_core_marks *m, uint32_t object)
{
	return m->bits[object >> 6] >> (object & 63) & 1;
}

/* Set bits among those of [first, first + n). */
uint64_t sonde_core_bits_count(const uint64_t *bits, uint64_t first, uint64_t n);
