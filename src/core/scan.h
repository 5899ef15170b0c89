/*
 * src/core/scan.h: the pointer words of one object, decoded from their source (heap bits, header, span) as they are
 * scanned. A template: the visitor is a function known where it is used, so that it is inlined.
 */
#pragma once
#include <stdint.h>
#include <string.h>
#include "golang/heap.h"
#include "golang/ptrmask.h"

#define SONDE_SCAN_INLINE static inline __attribute__((always_inline, unused))

enum {
	/* A part of a large object that is scanned at a time. */
	SONDE_SCAN_PART_WORDS = 1024,
	SONDE_SCAN_WORD_BITS = 64,
};

/* One a thread. */
struct sonde_core_scanner {
	const struct sonde_go_heap *heap; /* borrowed */
	struct sonde_go_masks masks;
	uint64_t n_unreadable; /* pointer words of the objects scanned */
	uint64_t n_no_type; /* objects whose header leads to no type */
};

static inline void sonde_core_scanner_init(
	struct sonde_core_scanner *sc, const struct sonde_go_heap *heap)
{
	*sc = (struct sonde_core_scanner){.heap = heap};
	sonde_go_masks_init(&sc->masks, heap->go);
}

static inline void sonde_core_scanner_deinit(struct sonde_core_scanner *sc)
{
	sonde_go_masks_deinit(&sc->masks);
}

/* Gets each pointer word's value and its offset in the slot; values may be anything. */
typedef void sonde_core_scan_visit(void *ctx, uint64_t offset, uint64_t value);

/* Where one scan stands. */
struct sonde_core_scan_at {
	struct sonde_core_scanner *sc;
	const struct sonde_go_span *s;
	const uint8_t *host; /* of the slot; NULL = its span is not readable as a whole */
	uint32_t slot;
	unsigned word;
};

SONDE_SCAN_INLINE uint64_t sonde_core_scan_load(const uint8_t *p, unsigned word_bytes)
{
	if (sonde_likely(word_bytes == 8)) {
		uint64_t v;
		memcpy(&v, p, 8);
		return v;
	}
	uint32_t v;
	memcpy(&v, p, 4);
	return v;
}

SONDE_SCAN_INLINE void sonde_core_scan_word(const struct sonde_core_scan_at *a, uint64_t offset,
	sonde_core_scan_visit *visit, void *ctx)
{
	uint64_t value;
	if (sonde_likely(a->host != NULL))
		visit(ctx, offset, sonde_core_scan_load(a->host + offset, a->word));
	else if (sonde_go_read_word(
			 a->sc->heap->go, sonde_go_span_addr(a->s, a->slot) + offset, &value))
		visit(ctx, offset, value);
	else
		a->sc->n_unreadable++;
}

/* n bits of a bitmap from bit `at` on, n <= 64. */
static inline uint64_t sonde_core_bits_at(const uint8_t *bitmap, uint64_t at, unsigned n)
{
	/* A slot's bits may begin inside a byte and end in the ninth: read by bytes only what holds them. */
	const uint8_t *p = bitmap + (at >> 3);
	unsigned shift = at & 7, n_bytes = (shift + n + 7) / 8;
	uint64_t low = 0;
	memcpy(&low, p, n_bytes < 8 ? n_bytes : 8);
	low >>= shift;
	if (n_bytes > 8)
		low |= (uint64_t)p[8] << (64 - shift);
	return n == 64 ? low : low & ((UINT64_C(1) << n) - 1);
}

SONDE_SCAN_INLINE void sonde_core_scan_bits(
	const struct sonde_core_scan_at *a, sonde_core_scan_visit *visit, void *ctx)
{
	const uint8_t *bitmap = sonde_go_span_heap_bits(a->sc->heap, a->s);
	uint64_t n = a->s->slot_bytes / a->word, at = (uint64_t)a->slot * n;
	if (!bitmap) {
		a->sc->n_unreadable += n;
		return;
	}
	for (uint64_t done = 0; done < n; done += SONDE_SCAN_WORD_BITS) {
		uint64_t bits = sonde_core_bits_at(bitmap, at + done,
			(unsigned)sonde_min(n - done, (uint64_t)SONDE_SCAN_WORD_BITS));
		for (; bits; bits &= bits - 1)
			sonde_core_scan_word(
				a, (done + (unsigned)__builtin_ctzll(bits)) * a->word, visit, ctx);
	}
}

/* The words of [offset, end) of a slot, tiled with a type's mask from `start` on. */
SONDE_SCAN_INLINE void sonde_core_scan_tiles(const struct sonde_core_scan_at *a,
	const struct sonde_go_mask *mask, uint64_t start, uint64_t offset, uint64_t end,
	sonde_core_scan_visit *visit, void *ctx)
{
	if (mask->all_pointers) {
		for (; offset + a->word <= end; offset += a->word)
			sonde_core_scan_word(a, offset, visit, ctx);
		return;
	}
	uint64_t elem = start + (offset - start) / mask->size_bytes * mask->size_bytes;
	for (; elem < end; elem += mask->size_bytes) {
		uint64_t first = offset > elem ? (offset - elem) / a->word : 0;
		uint64_t n = sonde_min(mask->ptr_bytes, end - elem) / a->word;
		for (uint64_t i = first & ~UINT64_C(63); i < n; i += 64) {
			uint64_t bits = mask->bits[i >> 6];
			if (i < first)
				bits &= ~UINT64_C(0) << (first - i);
			if (n - i < 64)
				bits &= (UINT64_C(1) << (n - i)) - 1;
			for (; bits; bits &= bits - 1)
				sonde_core_scan_word(a,
					elem + (i + (unsigned)__builtin_ctzll(bits)) * a->word,
					visit, ctx);
		}
	}
}

/* A header or large object from `offset` on; returns where to go on, the slot's end when done. */
SONDE_SCAN_INLINE uint64_t sonde_core_scan_typed(const struct sonde_core_scan_at *a,
	uint64_t offset, sonde_core_scan_visit *visit, void *ctx)
{
	const struct sonde_go *go = a->sc->heap->go;
	const struct sonde_go_span *s = a->s;
	uint64_t type = s->large_type, start = 0;
	if (s->pointers == SONDE_GO_HEADER) {
		start = (uint64_t)go->layout.header_bytes;
		if (a->host)
			type = sonde_core_scan_load(a->host, a->word);
		else if (!sonde_go_read_word(go, sonde_go_span_addr(s, a->slot), &type))
			type = 0;
	}
	if (!type)
		return s->slot_bytes; /* still being allocated (mallocgc sets it last) */
	const struct sonde_go_mask *mask =
		sonde_go_masks_find(&a->sc->masks, type, s->slot_bytes - start);
	if (!mask) {
		a->sc->n_no_type++;
		return s->slot_bytes;
	}
	if (!mask->ptr_bytes)
		return s->slot_bytes;
	offset = sonde_max(offset, start);
	uint64_t end = sonde_min(offset + (uint64_t)SONDE_SCAN_PART_WORDS * a->word, s->slot_bytes);
	sonde_core_scan_tiles(a, mask, start, offset, end, visit, ctx);
	return end;
}

/*
 * Visit the pointer words of a slot from offset `from` on (0: its start). Large objects are scanned in parts: the offset
 * to go on from is returned, slot_bytes when nothing is left.
 */
SONDE_SCAN_INLINE uint64_t sonde_core_scan(struct sonde_core_scanner *sc,
	const struct sonde_go_span *s, uint32_t slot, uint64_t from, sonde_core_scan_visit *visit,
	void *ctx)
{
	const struct sonde_core_scan_at a = {
		.sc = sc,
		.s = s,
		.host = s->host ? s->host + slot * s->slot_bytes : NULL,
		.slot = slot,
		.word = sc->heap->go->word_bytes,
	};
	if (s->pointers == SONDE_GO_BITS)
		sonde_core_scan_bits(&a, visit, ctx);
	else if (s->pointers == SONDE_GO_HEADER || s->pointers == SONDE_GO_LARGE)
		return sonde_core_scan_typed(&a, from, visit, ctx);
	return s->slot_bytes;
}
