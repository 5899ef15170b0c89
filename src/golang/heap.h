/*
 * src/golang/heap.h: the Go heap as spans of equal slots. Every slot of every span in use has a number (its "object
 * number"), in address order, so that an address becomes a number by arithmetic: page -> span -> (offset / slot size).
 *
 * Costs: 64 bytes a span, 4 bytes a heap page, 8 bytes a 64 MB chunk of the heap's address range; nothing per object.
 * Read-only after opening; threads may share it.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "golang/runtime.h"

/* How a slot's pointer words are known (runtime/mbitmap.go; decided by the span's size class, never by its slot size). */
enum sonde_go_pointers {
	SONDE_GO_NOSCAN, /* none */
	SONDE_GO_BITS, /* a bitmap at the span's end */
	SONDE_GO_HEADER, /* each slot begins with a pointer to its (element) type */
	SONDE_GO_LARGE, /* one object; its (element) type stands in the span */
	SONDE_GO_USER_ARENA, /* goexperiment arenas: not read; noted */
};

struct sonde_go_span {
	uint64_t base; /* first slot */
	uint64_t slot_bytes; /* mspan.elemsize */
	const uint8_t *
		host; /* the span's bytes up to the end of its last page; NULL = not all readable in place */
	const uint8_t *
		alloc_bits; /* a bit a slot; NULL = not readable: then only slots below free_index count */
	uint64_t large_type; /* LARGE: runtime type, 0 while being allocated */
	uint32_t first; /* number of slot 0 */
	uint32_t n_slots;
	uint32_t n_pages;
	uint16_t free_index; /* slots below are allocated */
	uint8_t pointers; /* enum sonde_go_pointers */
	uint8_t size_class;
	uint32_t reciprocal; /* offset * reciprocal >> 32 = slot; 0 = one slot */
	uint32_t specials; /* 1 + index of its first special, 0 = none */
};

enum sonde_go_special_kind { SONDE_GO_FINALIZER, SONDE_GO_CLEANUP, SONDE_GO_WEAK_HANDLE };

/* A record that hangs on an object and keeps other objects while that object lives. */
struct sonde_go_special {
	uint32_t object;
	enum sonde_go_special_kind kind;
	uint64_t addr; /* of the pointer words below */
	uint64_t words[3]; /* heap pointers, 0 = none */
	uint64_t object_type; /* FINALIZER: descriptor of the pointer to the object; 0 = none */
};
SONDE_DEFINE_VEC(sonde_go_specials, struct sonde_go_special)

enum { SONDE_GO_NUMBER_SHIFT = 7 };

struct sonde_go_heap {
	struct sonde_go *go; /* borrowed */
	struct sonde_go_span *spans; /* in use for objects, ascending by base */
	uint32_t n_spans;
	uint32_t *
		span_by_number; /* by object >> SONDE_GO_NUMBER_SHIFT: the span of the first such object */
	uint32_t n_slots; /* object numbers are 0 .. n_slots - 1 */
	uint64_t low, high; /* all spans lie in [low, high) */
	uint32_t **
		chunks; /* by (addr - low) >> chunk_shift: a table of 1 + span number by page, or NULL */
	uint64_t n_chunks;
	unsigned chunk_shift, page_shift;
	uint64_t
		bits_trailer_bytes; /* Green Tea's inline marks behind the heap bits of small spans; 0 = none */
	uint64_t trailer_min_slot_bytes;
	struct sonde_go_specials specials; /* sorted by object */
	/* What was allocated, with or without being reachable. */
	uint64_t n_allocated, allocated_bytes;
	uint64_t n_free, free_bytes; /* free slots of spans in use */
	uint64_t in_use_bytes; /* pages of spans in use */
	uint64_t manual_bytes; /* pages of stacks and the runtime's own spans */
	uint64_t n_unreadable_spans;
};

/* Index the heap; never marks. Damaged spans are left out and noted. */
struct sonde_error *sonde_go_heap_open(struct sonde_go *go, struct sonde_go_heap **ret) SONDE_CHECK;
void sonde_go_heap_free(struct sonde_go_heap *heap);
SONDE_DEFINE_CLEANUP(sonde_go_heap)

/* The span that holds addr, or NULL. */
static inline struct sonde_go_span *sonde_go_heap_span(const struct sonde_go_heap *h, uint64_t addr)
{
	uint64_t at = addr - h->low;
	if (at >= h->high - h->low)
		return NULL;
	const uint32_t *chunk = h->chunks[at >> h->chunk_shift];
	if (!chunk)
		return NULL;
	uint32_t span =
		chunk[(at >> h->page_shift) & ((1u << (h->chunk_shift - h->page_shift)) - 1)];
	return span ? &h->spans[span - 1] : NULL;
}

/* The slot of addr in its span; >= n_slots where addr lies behind the last slot. */
static inline uint32_t sonde_go_span_slot(const struct sonde_go_span *s, uint64_t addr)
{
	uint64_t offset = addr - s->base;
	if (sonde_unlikely(!s->reciprocal))
		return offset < s->slot_bytes ? 0 : UINT32_MAX;
	return (uint32_t)(offset * s->reciprocal >> 32);
}

/* The object that addr points into: false where it is no slot of the heap. */
static inline bool sonde_go_heap_find(
	const struct sonde_go_heap *h, uint64_t addr, struct sonde_go_span **span, uint32_t *slot)
{
	struct sonde_go_span *s = sonde_go_heap_span(h, addr);
	if (!s)
		return false;
	uint32_t i = sonde_go_span_slot(s, addr);
	if (i >= s->n_slots)
		return false;
	*span = s;
	*slot = i;
	return true;
}

static inline bool sonde_go_span_allocated(const struct sonde_go_span *s, uint32_t slot)
{
	return slot < s->free_index ||
		(s->alloc_bits && (s->alloc_bits[slot >> 3] >> (slot & 7) & 1));
}

static inline uint64_t sonde_go_span_addr(const struct sonde_go_span *s, uint32_t slot)
{
	return s->base + slot * s->slot_bytes;
}

/* The span of an object number: a look at a table, then among the spans that share its row. */
const struct sonde_go_span *sonde_go_heap_span_of(const struct sonde_go_heap *h, uint32_t object);

/* The heap bits of the span's slots (BITS): the host bytes of the bitmap; NULL = not readable. */
const uint8_t *sonde_go_span_heap_bits(
	const struct sonde_go_heap *h, const struct sonde_go_span *s);
