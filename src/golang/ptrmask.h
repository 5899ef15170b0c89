/*
 * src/golang/ptrmask.h: which words of a type are pointers, from its runtime descriptor: plain masks, masks made on
 * demand (1.24+: possibly not built yet), GC programs (1.22, 1.23). One cache a thread; the target may be shared.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/map.h"
#include "golang/runtime.h"

struct sonde_go_mask {
	uint64_t size_bytes, ptr_bytes; /* of one element; ptr_bytes <= size_bytes */
	const uint64_t *bits; /* one a word, padded with zeros to 64; NULL where ptr_bytes is 0 */
	bool all_pointers; /* every word is one: the mask repeats without looking */
};

SONDE_DEFINE_MAP(sonde_go_mask_map, const struct sonde_go_mask *)

struct sonde_go_masks {
	const struct sonde_go *go; /* borrowed */
	struct sonde_arena arena;
	struct sonde_go_mask_map by_type;
	uint64_t last_type; /* a one-row cache: neighbours have equal types */
	const struct sonde_go_mask *last;
};

void sonde_go_masks_init(struct sonde_go_masks *m, const struct sonde_go *go);
void sonde_go_masks_deinit(struct sonde_go_masks *m);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_go_masks)

const struct sonde_go_mask *sonde_go_masks_make_(
	struct sonde_go_masks *m, uint64_t type_addr, uint64_t max_bytes);

/*
 * The mask of the type whose descriptor stands at type_addr; NULL where it is not readable, makes no sense, or has more
 * than max_bytes: what the object at hand has room for, so that all masks together are bounded by the heap.
 */
static inline const struct sonde_go_mask *sonde_go_masks_find(
	struct sonde_go_masks *m, uint64_t type_addr, uint64_t max_bytes)
{
	if (sonde_unlikely(type_addr != m->last_type) || !m->last ||
		m->last->size_bytes > max_bytes)
		return sonde_go_masks_make_(m, type_addr, max_bytes);
	return m->last;
}

/*
 * Run a GC program (runtime/mbitmap.go runGCProg; data after its length word): up to n_bits bits into `to`, which has
 * (n_bits + 63) / 64 zeroed words. false where it is damaged or makes more.
 */
bool sonde_go_gc_program_run(const uint8_t *program, uint64_t len, uint64_t *to, uint64_t n_bits);
