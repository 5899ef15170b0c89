#include "golang/heap.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/cycle.h"

enum {
	CHUNK_SHIFT =
		26, /* 64 MB: the runtime's arena on 64-bit machines; only a table size here */
	MAX_SPECIALS = 1 << 26,
	MIN_SLOT_BYTES = 8,
	MAX_UNREADABLE = 1 << 25, /* a truncated core may lack most of a heap of 256 GB */
	/* sizeof(spanInlineMarkBits), runtime/mgcmark_greenteagc.go, Go 1.26 and 1.27 (1.25 as an experiment). */
	INLINE_MARKS_BYTES = 128,
	INLINE_MARKS_MIN_SLOT_BYTES = 16,
};

/* An mspan as read, before it is known to be in use for objects. */
struct raw_span {
	uint64_t base, n_pages, slot_bytes, n_slots, free_index, alloc_bits, specials, large_type;
	uint8_t class, state;
	bool user_arena;
};

static void load_span(const struct sonde_go_layout *l, const uint8_t *bytes, struct raw_span *r)
{
	*r = (struct raw_span){
		.base = sonde_go_load(bytes, l->span_start),
		.n_pages = sonde_go_load(bytes, l->span_npages),
		.slot_bytes = sonde_go_load(bytes, l->span_elemsize),
		.n_slots = sonde_go_load(bytes, l->span_nelems),
		.free_index = sonde_go_load(bytes, l->span_freeindex),
		.alloc_bits = sonde_go_load(bytes, l->span_alloc_bits),
		.specials = sonde_go_load(bytes, l->span_specials),
		.large_type =
			l->span_large_type.size ? sonde_go_load(bytes, l->span_large_type) : 0,
		.class = (uint8_t)sonde_go_load(bytes, l->span_class),
		.state = (uint8_t)sonde_go_load(bytes, l->span_state),
		.user_arena = l->span_user_arena.size && sonde_go_load(bytes, l->span_user_arena),
	};
}

/* All of [start, end) is in mappings of the target, whether their bytes are there or not. */
static bool is_mapped(
	struct sonde_target *t, uint64_t start, uint64_t end, const struct sonde_mapping **cache)
{
	while (start < end) {
		if (!*cache || start < (*cache)->start || start >= (*cache)->end)
			*cache = sonde_target_mapping_find(t, start);
		if (!*cache)
			return false;
		start = (*cache)->end;
	}
	return true;
}

/* What the rest of this file relies on. Spans are bounded by the address space, so that no record sizes an allocation. */
static bool span_is_sane(
	const struct sonde_go *go, const struct raw_span *r, const struct sonde_mapping **cache)
{
	const struct sonde_go_layout *l = &go->layout;
	uint64_t bytes, end, used;
	return r->base && r->base % (uint64_t)l->page_bytes == 0 && r->n_pages &&
		r->n_pages <= UINT32_MAX &&
		!__builtin_mul_overflow(r->n_pages, (uint64_t)l->page_bytes, &bytes) &&
		!__builtin_add_overflow(r->base, bytes, &end) && r->slot_bytes >= MIN_SLOT_BYTES &&
		r->n_slots && r->n_slots <= UINT16_MAX &&
		!__builtin_mul_overflow(r->n_slots, r->slot_bytes, &used) && used <= bytes &&
		r->free_index <= r->n_slots && is_mapped(go->target, r->base, end, cache);
}

static enum sonde_go_pointers pointers_of(const struct sonde_go_layout *l, const struct raw_span *r)
{
	if (r->user_arena)
		return SONDE_GO_USER_ARENA;
	if (r->class & 1) /* spanclass: size class << 1 | noscan */
		return SONDE_GO_NOSCAN;
	if (r->slot_bytes <= (uint64_t)l->header_min_bytes)
		return SONDE_GO_BITS;
	return r->class >> 1 ? SONDE_GO_HEADER : SONDE_GO_LARGE;
}

/* ceil(2^32 / slot_bytes), as runtime.mspan.divMul: exact for every offset inside a span of a size class. */
static uint32_t reciprocal_of(const struct raw_span *r)
{
	if (r->n_slots == 1)
		return 0;
	return (uint32_t)(((uint64_t)UINT32_MAX + r->slot_bytes) / r->slot_bytes);
}

static void count_slots(struct sonde_go_heap *h, const struct sonde_go_span *s)
{
	uint64_t allocated = s->free_index;
	for (uint32_t i = s->free_index; s->alloc_bits && i < s->n_slots;) {
		if (i % 64 == 0 && s->n_slots - i >= 64) {
			uint64_t word;
			memcpy(&word, s->alloc_bits + i / 8, 8);
			allocated += (uint64_t)__builtin_popcountll(word);
			i += 64;
		} else {
			allocated += s->alloc_bits[i >> 3] >> (i & 7) & 1;
			i++;
		}
	}
	h->n_allocated += allocated;
	h->allocated_bytes += allocated * s->slot_bytes;
	h->n_free += s->n_slots - allocated;
	h->free_bytes += (s->n_slots - allocated) * s->slot_bytes;
}

static int by_base(const void *a, const void *b)
{
	const struct sonde_go_span *x = a, *y = b;
	return x->base < y->base ? -1 : x->base > y->base;
}

/* Where the last look-ups ended: span records, bitmaps and pages each lie side by side. */
struct span_caches {
	struct sonde_target_run records, bits, pages;
	const struct sonde_mapping *mapping;
	uint64_t
		unreadable_left; /* slots and pages that may still come without bytes behind them */
};

/* Add a span in use. Spans without memory are bounded in number: nothing else bounds what their records claim. */
static struct sonde_error *take_span(struct sonde_go_heap *h, const struct raw_span *r,
	struct span_caches *caches, struct sonde_u64_vec *heads)
{
	struct sonde_go *go = h->go;
	uint64_t span_bytes = r->n_pages * (uint64_t)go->layout.page_bytes;
	const uint8_t *host =
		sonde_target_bytes_cached(go->target, &caches->pages, r->base, span_bytes);
	if (!host && r->n_slots + r->n_pages > caches->unreadable_left) {
		sonde_notes_add(go->notes, "heap spans without memory left out: bytes", span_bytes,
			"0x%" PRIx64, r->base);
		return NULL;
	}
	struct sonde_go_span *s = &h->spans[h->n_spans++];
	*s = (struct sonde_go_span){
		.base = r->base,
		.slot_bytes = r->slot_bytes,
		.host = host,
		.alloc_bits = r->alloc_bits ? sonde_target_bytes_cached(go->target, &caches->bits,
						      r->alloc_bits, (r->n_slots + 7) / 8)
					    : NULL,
		.large_type = r->large_type,
		.n_slots = (uint32_t)r->n_slots,
		.n_pages = (uint32_t)r->n_pages,
		.free_index = (uint16_t)r->free_index,
		.pointers = pointers_of(&go->layout, r),
		.size_class = r->class >> 1,
		.reciprocal = reciprocal_of(r),
	};
	h->in_use_bytes += span_bytes;
	if (!host) {
		caches->unreadable_left -= r->n_slots + r->n_pages;
		h->n_unreadable_spans++;
		sonde_notes_add(go->notes, "heap span not (wholly) readable: bytes", span_bytes,
			"0x%" PRIx64, r->base);
	}
	if (!s->alloc_bits && r->free_index < r->n_slots)
		sonde_notes_add(go->notes, "allocation bits of a heap span not readable", 0,
			"0x%" PRIx64, r->base);
	if (s->pointers == SONDE_GO_USER_ARENA)
		sonde_notes_add(go->notes, "user arena chunk not scanned: bytes", span_bytes,
			"0x%" PRIx64, r->base);
	if (r->specials &&
		!(sonde_u64_vec_push(heads, r->base) && sonde_u64_vec_push(heads, r->specials)))
		return &sonde_enomem;
	return NULL;
}

/* Read all mspans: fill h->spans, unsorted, `first` unset; *heads gets pairs of span base and list of specials. */
static struct sonde_error *read_spans(
	struct sonde_go_heap *h, const uint8_t *list, uint64_t n, struct sonde_u64_vec *heads)
{
	struct sonde_go *go = h->go;
	const struct sonde_go_layout *l = &go->layout;
	h->spans = sonde_new_array(struct sonde_go_span, n);
	if (!h->spans)
		return &sonde_enomem;
	struct span_caches caches = {.unreadable_left = MAX_UNREADABLE};
	for (uint64_t i = 0; i < n; i++) {
		uint64_t addr = 0;
		memcpy(&addr, list + i * go->word_bytes, go->word_bytes);
		const uint8_t *bytes = sonde_target_bytes_cached(
			go->target, &caches.records, addr, l->sizeof_mspan);
		if (!bytes) {
			sonde_notes_add(go->notes, "heap span record not readable", 0,
				"mspan at 0x%" PRIx64, addr);
			continue;
		}
		struct raw_span r;
		load_span(l, bytes, &r);
		if (r.state == l->state_manual && r.n_pages <= UINT32_MAX)
			h->manual_bytes += r.n_pages * (uint64_t)l->page_bytes;
		if (r.state != l->state_in_use)
			continue;
		if (!span_is_sane(go, &r, &caches.mapping))
			sonde_notes_add(go->notes, "heap span record damaged", 0,
				"mspan at 0x%" PRIx64, addr);
		else
			SONDE_TRY(take_span(h, &r, &caches, heads));
	}
	return NULL;
}

/* Sort by address, drop what overlaps, number the slots. */
static struct sonde_error *number_slots(struct sonde_go_heap *h)
{
	qsort(h->spans, h->n_spans, sizeof(*h->spans), by_base);
	uint32_t kept = 0;
	uint64_t next = 0, end = 0;
	for (uint32_t i = 0; i < h->n_spans; i++) {
		struct sonde_go_span *s = &h->spans[i];
		if (s->base < end) {
			sonde_notes_add(h->go->notes, "heap span record damaged", 0,
				"overlap at 0x%" PRIx64, s->base);
			continue;
		}
		if (next + s->n_slots > UINT32_MAX)
			return sonde_error_new(SONDE_UNSUPPORTED, "heap: more than 2^32 slots");
		end = s->base + (uint64_t)s->n_pages * (uint64_t)h->go->layout.page_bytes;
		s->first = (uint32_t)next;
		next += s->n_slots;
		count_slots(h, s);
		h->spans[kept++] = *s;
	}
	h->n_spans = kept;
	h->n_slots = (uint32_t)next;
	if (kept) {
		h->low = h->spans[0].base >> CHUNK_SHIFT << CHUNK_SHIFT;
		h->high = end;
	}
	return NULL;
}

static struct sonde_error *index_pages(struct sonde_go_heap *h)
{
	h->chunk_shift = CHUNK_SHIFT;
	h->page_shift = (unsigned)__builtin_ctzll((uint64_t)h->go->layout.page_bytes);
	if (h->page_shift >= CHUNK_SHIFT)
		return sonde_error_new(SONDE_UNSUPPORTED, "heap: pages of %lld bytes",
			(long long)h->go->layout.page_bytes);
	h->n_chunks = ((h->high - h->low) >> CHUNK_SHIFT) + 1;
	/* Addresses have 48 bits (57 on some machines, which Go does not use): 32 MB of chunk pointers at the worst. */
	if (h->n_chunks > (uint64_t)1 << (48 - CHUNK_SHIFT))
		return sonde_error_new(SONDE_BAD_DATA,
			"heap: spans from 0x%" PRIx64 " to 0x%" PRIx64, h->low, h->high);
	h->chunks = sonde_new_array(uint32_t *, h->n_chunks);
	if (!h->chunks)
		return &sonde_enomem;
	uint32_t pages_a_chunk = 1u << (CHUNK_SHIFT - h->page_shift);
	for (uint32_t i = 0; i < h->n_spans; i++) {
		const struct sonde_go_span *s = &h->spans[i];
		/* Only pages that hold slots: the rest of a span points at nothing. */
		uint64_t page = (s->base - h->low) >> h->page_shift;
		for (uint64_t last = page + s->n_pages; page < last; page++) {
			uint32_t **chunk = &h->chunks[page / pages_a_chunk];
			if (!*chunk && !(*chunk = sonde_new_array(uint32_t, pages_a_chunk)))
				return &sonde_enomem;
			(*chunk)[page % pages_a_chunk] = i + 1;
		}
	}
	return NULL;
}

static void read_special_words(
	const struct sonde_go_heap *h, uint64_t addr, int64_t kind, struct sonde_go_special *s)
{
	const struct sonde_go *go = h->go;
	const struct sonde_go_layout *l = &go->layout;
	struct sonde_go_field f = l->special_finalizer;
	size_t n_words = 1;
	if (kind == l->special_kind_cleanup) {
		/* 1.24: a *funcval; since 1.25: {call, fn, arg} (runtime.cleanupFn). */
		f = l->special_cleanup;
		n_words = f.size > go->word_bytes ? 3 : 1;
		s->kind = SONDE_GO_CLEANUP;
	} else if (kind == l->special_kind_weak_handle) {
		f = l->special_weak_handle;
		s->kind = SONDE_GO_WEAK_HANDLE;
	} else {
		sonde_go_read(go, addr, l->special_object_type, &s->object_type);
	}
	s->addr = addr + f.offset;
	for (size_t i = 0; f.size && i < n_words; i++)
		sonde_go_read_word(go, s->addr + i * go->word_bytes, &s->words[i]);
}

static int by_object(const void *a, const void *b)
{
	const struct sonde_go_special *x = a, *y = b;
	return x->object < y->object ? -1 : x->object > y->object;
}

/* Walk the special lists: only the kinds that keep other objects. heads: pairs of span base and list head. */
static struct sonde_error *read_specials(struct sonde_go_heap *h, const struct sonde_u64_vec *heads)
{
	struct sonde_go *go = h->go;
	const struct sonde_go_layout *l = &go->layout;
	for (size_t i = 0; i + 1 < heads->n; i += 2) {
		uint64_t base = heads->items[i], addr = heads->items[i + 1], next = 0;
		struct sonde_cycle cycle = sonde_cycle_from(addr);
		for (size_t n = 0; addr; addr = next, n++) {
			uint64_t kind, offset;
			if (h->specials.n >= MAX_SPECIALS ||
				(n && sonde_cycle_closed(&cycle, addr)) ||
				!sonde_go_read(go, addr, l->special_kind, &kind) ||
				!sonde_go_read(go, addr, l->special_offset, &offset) ||
				!sonde_go_read(go, addr, l->special_next, &next)) {
				sonde_notes_add(go->notes, "list of finalizers cut short", 0,
					"span 0x%" PRIx64, base);
				break;
			}
			if ((int64_t)kind != l->special_kind_finalizer &&
				(int64_t)kind != l->special_kind_cleanup &&
				(int64_t)kind != l->special_kind_weak_handle)
				continue;
			struct sonde_go_span *span;
			uint32_t slot;
			if (!sonde_go_heap_find(h, base + offset, &span, &slot))
				continue;
			struct sonde_go_special *s = sonde_go_specials_add(&h->specials);
			if (!s)
				return &sonde_enomem;
			s->object = span->first + slot;
			read_special_words(h, addr, (int64_t)kind, s);
		}
	}
	sonde_vec_sort(&h->specials, by_object);
	for (size_t i = h->specials.n; i-- > 0;) {
		struct sonde_go_span *s = (struct sonde_go_span *)sonde_go_heap_span_of(
			h, h->specials.items[i].object);
		s->specials = (uint32_t)i + 1;
	}
	return NULL;
}

const struct sonde_go_span *sonde_go_heap_span_of(const struct sonde_go_heap *h, uint32_t object)
{
	uint32_t row = object >> SONDE_GO_NUMBER_SHIFT;
	uint32_t low = h->span_by_number[row], high = h->span_by_number[row + 1] + 1;
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (h->spans[middle].first <= object)
			low = middle;
		else
			high = middle;
	}
	return &h->spans[low];
}

/* 4 bytes for 128 slots, so that finding a number's span is no search over all spans. */
static struct sonde_error *index_numbers(struct sonde_go_heap *h)
{
	uint32_t n_rows = (h->n_slots >> SONDE_GO_NUMBER_SHIFT) + 2, span = 0;
	h->span_by_number = sonde_new_array(uint32_t, n_rows);
	if (!h->span_by_number)
		return &sonde_enomem;
	for (uint32_t row = 0; row < n_rows; row++) {
		uint64_t first = (uint64_t)row << SONDE_GO_NUMBER_SHIFT;
		while (span + 1 < h->n_spans && h->spans[span + 1].first <= first)
			span++;
		h->span_by_number[row] = span;
	}
	return NULL;
}

const uint8_t *sonde_go_span_heap_bits(const struct sonde_go_heap *h, const struct sonde_go_span *s)
{
	uint64_t span_bytes = (uint64_t)s->n_pages << h->page_shift;
	uint64_t bits_bytes = span_bytes / h->go->word_bytes / 8;
	uint64_t trailer = s->slot_bytes >= h->trailer_min_slot_bytes ? h->bits_trailer_bytes : 0;
	if (bits_bytes + trailer > span_bytes)
		return NULL;
	uint64_t offset = span_bytes - bits_bytes - trailer;
	return s->host ? s->host + offset
		       : sonde_target_bytes(h->go->target, s->base + offset, bits_bytes);
}

struct sonde_error *sonde_go_heap_open(struct sonde_go *go, struct sonde_go_heap **ret)
{
	sonde_cleanup(sonde_go_heap) struct sonde_go_heap *h = sonde_new(struct sonde_go_heap);
	if (!h)
		return &sonde_enomem;
	h->go = go;
	const struct sonde_dwarf_type *inline_marks =
		sonde_dwarf_type_find(go->dwarf, "runtime.spanInlineMarkBits");
	if (inline_marks && inline_marks->size_bytes == INLINE_MARKS_BYTES) {
		h->bits_trailer_bytes = INLINE_MARKS_BYTES;
		h->trailer_min_slot_bytes = INLINE_MARKS_MIN_SLOT_BYTES;
	}
	uint64_t mheap = sonde_go_global(go, "runtime.mheap_", NULL), list, n;
	if (!mheap)
		return sonde_error_new(
			SONDE_NOT_FOUND, "heap: no runtime.mheap_ in the executable's DWARF");
	uint64_t slice = mheap + go->layout.mheap_allspans.offset;
	if (!sonde_go_read_word(go, slice, &list) ||
		!sonde_go_read_word(go, slice + go->word_bytes, &n))
		return sonde_error_new(SONDE_FAULT,
			"heap: runtime.mheap_ at 0x%" PRIx64 " is not readable", mheap);
	const uint8_t *pointers =
		n <= UINT32_MAX ? sonde_target_bytes(go->target, list, n * go->word_bytes) : NULL;
	if (!pointers)
		return sonde_error_new(SONDE_FAULT,
			"heap: the list of %" PRIu64 " spans at 0x%" PRIx64 " is not readable", n,
			list);
	sonde_cleanup(sonde_u64_vec) struct sonde_u64_vec heads = {0};
	SONDE_TRY(read_spans(h, pointers, n, &heads));
	SONDE_TRY(number_slots(h));
	SONDE_TRY(index_numbers(h));
	SONDE_TRY(index_pages(h));
	SONDE_TRY(read_specials(h, &heads));
	*ret = sonde_take(h);
	return NULL;
}

void sonde_go_heap_free(struct sonde_go_heap *h)
{
	if (!h)
		return;
	for (uint64_t i = 0; h->chunks && i < h->n_chunks; i++)
		free(h->chunks[i]);
	free(h->chunks);
	free(h->span_by_number);
	free(h->spans);
	sonde_go_specials_deinit(&h->specials);
	free(h);
}
