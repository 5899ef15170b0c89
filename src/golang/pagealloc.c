#include "golang/pagealloc.h"

#include <elf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/cycle.h"

enum {
	MAX_RANGES = 1 << 26,
	MAX_PS = 1 << 16,
	WORD_BITS = 64,
	CACHE_PAGES = 64, /* runtime.pageCachePages: the bits of a uint64 */
	CHUNK_L2_BITS =
		13, /* pallocChunksL2Bits, mpagealloc.go: 48 - 22 - 13; on 32-bit: 32 - 22 */
	CHUNK_L2_BITS_32 = 10,
	ARENA_L2_BITS = 22, /* arenaL2Bits, malloc.go: 48 - 26; on 32-bit: 32 - 22 */
	ARENA_L2_BITS_32 = 10,
	SUMMARY_BYTES = 8, /* runtime.pallocSum */
	PERSISTENT_BYTES = 256 << 10, /* runtime.persistentChunkSize */
};

/* runtime.arenaBaseOffset, malloc.go: amd64 has addresses with a sign. */
static uint64_t base_offset(const struct sonde_go *go)
{
	return sonde_target_info(go->target)->machine == EM_X86_64 ? 0xffff800000000000 : 0;
}

struct reader {
	struct sonde_go *go;
	struct sonde_go_memory_ranges *to;
	uint64_t mheap;
	bool no_memory;
};

static void add(struct reader *r, enum sonde_go_memory kind, uint64_t start, uint64_t bytes)
{
	uint64_t end;
	if (!start || !bytes || __builtin_add_overflow(start, bytes, &end))
		return;
	struct sonde_go_memory_range *last = r->to->n ? &r->to->items[r->to->n - 1] : NULL;
	if (last && last->kind == kind && last->end == start) {
		last->end = end;
		return;
	}
	if (r->to->n >= MAX_RANGES) {
		sonde_notes_add(r->go->notes, "memory of the runtime left out: bytes", bytes,
			"0x%" PRIx64, start);
		return;
	}
	if (!sonde_go_memory_ranges_push(r->to, (struct sonde_go_memory_range){start, end, kind}))
		r->no_memory = true;
}

/* A slice header at addr: what it holds, bounded by what is mapped when it is read. */
static bool read_slice(
	struct reader *r, uint64_t addr, uint64_t *data, uint64_t *len, uint64_t *cap)
{
	return sonde_go_read_word(r->go, addr, data) &&
		sonde_go_read_word(r->go, addr + r->go->word_bytes, len) &&
		sonde_go_read_word(r->go, addr + 2 * r->go->word_bytes, cap);
}

/* --- the page allocator --- */

/* The pages of a bitmap pair, bit 0 at base: free are those that `free` has. */
static void add_pages(struct reader *r, uint64_t base, uint64_t free, uint64_t scavenged)
{
	uint64_t page = (uint64_t)r->go->layout.page_bytes;
	for (unsigned i = 0; free && i < WORD_BITS; i++, free >>= 1, scavenged >>= 1) {
		if (free & 1)
			add(r, scavenged & 1 ? SONDE_GO_MEMORY_RELEASED : SONDE_GO_MEMORY_FREE,
				base + i * page, page);
	}
}

static uint64_t load64(const uint8_t *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* pallocData of one chunk. false: not readable. */
static bool add_chunk(struct reader *r, uint64_t base)
{
	const struct sonde_go_layout *l = &r->go->layout;
	uint64_t n_words = l->palloc_bits.size / sizeof(uint64_t);
	uint64_t chunk_bytes = n_words * WORD_BITS * (uint64_t)l->page_bytes;
	uint64_t index = (base - base_offset(r->go)) / chunk_bytes;
	uint64_t n_l1 = l->mheap_chunks.size / r->go->word_bytes, l2;
	unsigned shift = r->go->word_bytes == 8 ? CHUNK_L2_BITS : CHUNK_L2_BITS_32;
	if (index >> shift >= n_l1 ||
		!sonde_go_read_word(r->go,
			r->mheap + l->mheap_chunks.offset + (index >> shift) * r->go->word_bytes,
			&l2) ||
		!l2)
		return false;
	uint64_t at = l2 + (index & ((UINT64_C(1) << shift) - 1)) * l->sizeof_palloc;
	const uint8_t *bytes = sonde_target_bytes(r->go->target, at, l->sizeof_palloc);
	if (!bytes)
		return false;
	for (uint64_t i = 0; i < n_words; i++)
		add_pages(r, base + i * WORD_BITS * (uint64_t)l->page_bytes,
			~load64(bytes + l->palloc_bits.offset + i * 8),
			load64(bytes + l->palloc_scavenged.offset + i * 8));
	return true;
}

/* The tables of the arenas of [start, end): runtime.heapArena records. */
static void add_arenas(struct reader *r, uint64_t start, uint64_t end)
{
	const struct sonde_go_layout *l = &r->go->layout;
	uint64_t arena = (uint64_t)l->heap_arena_bytes, table, record;
	unsigned bits = r->go->word_bytes == 8 ? ARENA_L2_BITS : ARENA_L2_BITS_32;
	if (!l->mheap_arenas.size ||
		!sonde_go_read_word(r->go, r->mheap + l->mheap_arenas.offset, &table))
		return;
	for (uint64_t a = start / arena * arena; a < end; a += arena) {
		uint64_t index = (a - base_offset(r->go)) / arena;
		if (index >> bits == 0 &&
			sonde_go_read_word(r->go, table + index * r->go->word_bytes, &record))
			add(r, SONDE_GO_MEMORY_HEAP_INDEX, record, l->sizeof_heap_arena);
	}
}

static void add_chunks(struct reader *r, uint64_t start, uint64_t end, uint64_t chunk)
{
	add(r, SONDE_GO_MEMORY_HEAP, start, end - start);
	add_arenas(r, start, end);
	for (; start < end; start += chunk) {
		if (!add_chunk(r, start))
			sonde_notes_add(r->go->notes,
				"page bitmap not readable: its free pages unknown", 0,
				"chunk at 0x%" PRIx64, start);
	}
}

static void read_ranges(struct reader *r)
{
	const struct sonde_go_layout *l = &r->go->layout;
	uint64_t data, n, cap;
	if (!l->mheap_page_ranges.size || !l->mheap_chunks.size || !l->palloc_bits.size ||
		l->palloc_bits.size != l->palloc_scavenged.size || !l->sizeof_palloc ||
		!l->sizeof_addr_range || !l->addr_range_base.size || !l->addr_range_limit.size ||
		!read_slice(r, r->mheap + l->mheap_page_ranges.offset, &data, &n, &cap)) {
		sonde_notes_add(r->go->notes, "page allocator not readable: free pages unknown", 0,
			"runtime.mheap_.pages");
		return;
	}
	uint64_t chunk = l->palloc_bits.size * 8 * (uint64_t)l->page_bytes;
	const uint8_t *ranges = n <= UINT32_MAX
		? sonde_target_bytes(r->go->target, data, n * l->sizeof_addr_range)
		: NULL;
	if (!ranges)
		sonde_notes_add(r->go->notes, "page allocator not readable: free pages unknown", 0,
			"%" PRIu64 " ranges at 0x%" PRIx64, n, data);
	/* Ranges ascend; chunks where nothing is mapped are not believed in, as nothing else bounds a damaged range. */
	size_t n_maps, k = 0;
	const struct sonde_mapping *maps = sonde_target_mappings(r->go->target, &n_maps);
	uint64_t next = 0;
	for (uint64_t i = 0; ranges && i < n; i++, ranges += l->sizeof_addr_range) {
		uint64_t start = sonde_go_load(ranges, l->addr_range_base),
			 end = sonde_go_load(ranges, l->addr_range_limit);
		if (start < next || start >= end || start % chunk || end % chunk) {
			sonde_notes_add(r->go->notes, "page allocator range damaged", 0,
				"0x%" PRIx64 " to 0x%" PRIx64, start, end);
			continue;
		}
		next = start;
		for (; k < n_maps && maps[k].start < end; k++) {
			uint64_t from = sonde_max(next, maps[k].start / chunk * chunk),
				 to = sonde_min(end, maps[k].end);
			if (from < to)
				add_chunks(r, from, next = (to + chunk - 1) / chunk * chunk, chunk);
			if (maps[k].end > end)
				break;
		}
		next = end;
	}
}

/* runtime.p.pcache: up to 64 pages taken from the bitmaps and in no span yet. */
static void read_page_caches(struct reader *r)
{
	const struct sonde_go_layout *l = &r->go->layout;
	uint64_t allp = sonde_go_global(r->go, "runtime.allp", NULL), data, n, cap, p;
	if (!allp || !l->p_cache_base.size || !read_slice(r, allp, &data, &n, &cap) || n > MAX_PS) {
		sonde_notes_add(r->go->notes, "page caches not readable", 0, "runtime.allp");
		return;
	}
	for (uint64_t i = 0; i < n; i++) {
		uint64_t base, free, scavenged;
		if (!sonde_go_read_word(r->go, data + i * r->go->word_bytes, &p) ||
			!sonde_go_read(r->go, p, l->p_cache_base, &base) ||
			!sonde_go_read(r->go, p, l->p_cache_free, &free) ||
			!sonde_go_read(r->go, p, l->p_cache_scavenged, &scavenged))
			sonde_notes_add(
				r->go->notes, "page caches not readable", 0, "P %" PRIu64, i);
		else
			add_pages(r, base, free, scavenged);
	}
}

/* --- spans of no objects --- */

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

/* The spans of a list. */
static void read_list(struct reader *r, uint64_t span, struct sonde_u64_vec *to)
{
	struct sonde_cycle c = sonde_cycle_from(span);
	while (span) {
		if (!sonde_u64_vec_push(to, span))
			r->no_memory = true;
		if (r->no_memory || !sonde_go_read(r->go, span, r->go->layout.span_next, &span) ||
			sonde_cycle_closed(&c, span))
			return;
	}
}

static void read_manual_spans(struct reader *r)
{
	const struct sonde_go_layout *l = &r->go->layout;
	sonde_cleanup(sonde_u64_vec) struct sonde_u64_vec work = {0};
	uint64_t at = sonde_go_global(r->go, "runtime.work", NULL), list, n, cap, first;
	if (sonde_go_read(r->go, at, l->work_wbufs_free, &first))
		read_list(r, first, &work);
	if (sonde_go_read(r->go, at, l->work_wbufs_busy, &first))
		read_list(r, first, &work);
	sonde_vec_sort(&work, by_value);
	if (!read_slice(r, r->mheap + l->mheap_allspans.offset, &list, &n, &cap))
		return;
	add(r, SONDE_GO_MEMORY_HEAP_INDEX, list, cap <= UINT32_MAX ? cap * r->go->word_bytes : 0);
	struct sonde_target_run records = {0}, pointers = {0};
	for (uint64_t i = 0; i < n; i++) {
		uint64_t addr = 0;
		const uint8_t *p = sonde_target_bytes_cached(
			r->go->target, &pointers, list + i * r->go->word_bytes, r->go->word_bytes);
		if (!p)
			return; /* the heap's index has noted it */
		memcpy(&addr, p, r->go->word_bytes);
		const uint8_t *span =
			sonde_target_bytes_cached(r->go->target, &records, addr, l->sizeof_mspan);
		if (!span || sonde_go_load(span, l->span_state) != (uint64_t)l->state_manual)
			continue;
		uint64_t n_pages = sonde_go_load(span, l->span_npages);
		bool is_work = work.n && bsearch(&addr, work.items, work.n, sizeof(addr), by_value);
		if (n_pages <= UINT32_MAX)
			add(r, is_work ? SONDE_GO_MEMORY_WORK_BUFFERS : SONDE_GO_MEMORY_STACKS,
				sonde_go_load(span, l->span_start),
				n_pages * (uint64_t)l->page_bytes);
	}
}

/* --- the runtime's tables --- */

static void read_index(struct reader *r)
{
	const struct sonde_go_layout *l = &r->go->layout;
	unsigned word = r->go->word_bytes;
	uint64_t data, n, cap, table;
	for (uint64_t i = 0; i < l->mheap_summary.size / (3 * word); i++) {
		if (read_slice(r, r->mheap + l->mheap_summary.offset + i * 3 * word, &data, &n,
			    &cap) &&
			cap <= UINT64_MAX / SUMMARY_BYTES)
			add(r, SONDE_GO_MEMORY_HEAP_INDEX, data, cap * SUMMARY_BYTES);
	}
	unsigned shift = word == 8 ? CHUNK_L2_BITS : CHUNK_L2_BITS_32;
	for (uint64_t i = 0; i < l->mheap_chunks.size / word; i++) {
		if (sonde_go_read_word(r->go, r->mheap + l->mheap_chunks.offset + i * word, &table))
			add(r, SONDE_GO_MEMORY_HEAP_INDEX, table,
				(uint64_t)l->sizeof_palloc << shift);
	}
	if (l->mheap_arenas.size &&
		sonde_go_read_word(r->go, r->mheap + l->mheap_arenas.offset, &table))
		add(r, SONDE_GO_MEMORY_HEAP_INDEX, table,
			(uint64_t)word << (word == 8 ? ARENA_L2_BITS : ARENA_L2_BITS_32));
}

/* runtime.persistentChunks: linked by their first words (malloc.go, persistentalloc1). */
static void read_persistent(struct reader *r)
{
	uint64_t head = sonde_go_global(r->go, "runtime.persistentChunks", NULL), chunk;
	if (!head || !sonde_go_read_word(r->go, head, &chunk))
		return;
	struct sonde_cycle c = sonde_cycle_from(chunk);
	while (chunk && !r->no_memory) {
		add(r, SONDE_GO_MEMORY_PERSISTENT, chunk, PERSISTENT_BYTES);
		if (!sonde_go_read_word(r->go, chunk, &chunk) || sonde_cycle_closed(&c, chunk))
			return;
	}
}

/* runtime.gcBitsArenas: four lists of arenas, each of which begins with {free, next} (mheap.go, gcBitsHeader). */
static void read_mark_bits(struct reader *r)
{
	uint64_t type = 0, at = sonde_go_global(r->go, "runtime.gcBitsArenas", &type);
	const struct sonde_dwarf_type *t = at ? sonde_dwarf_type_bare(r->go->dwarf, type) : NULL;
	for (size_t i = 0; t && i < t->n_members && r->go->layout.sizeof_gc_bits; i++) {
		const struct sonde_dwarf_member *m = &t->members[i];
		uint64_t arena;
		if (!m->name || !strcmp(m->name, "lock") ||
			!sonde_go_read_word(r->go, at + m->offset_bytes, &arena))
			continue;
		struct sonde_cycle c = sonde_cycle_from(arena);
		while (arena && !r->no_memory) {
			add(r, SONDE_GO_MEMORY_MARK_BITS, arena, r->go->layout.sizeof_gc_bits);
			if (!sonde_go_read_word(r->go, arena + r->go->word_bytes, &arena) ||
				sonde_cycle_closed(&c, arena))
				break;
		}
	}
}

struct sonde_error *sonde_go_memory_read(struct sonde_go *go, struct sonde_go_memory_ranges *to)
{
	struct reader r = {.go = go, .to = to};
	r.mheap = sonde_go_global(go, "runtime.mheap_", NULL);
	if (!r.mheap)
		return sonde_error_new(
			SONDE_NOT_FOUND, "heap: no runtime.mheap_ in the executable's DWARF");
	read_ranges(&r);
	read_page_caches(&r);
	read_manual_spans(&r);
	read_index(&r);
	read_persistent(&r);
	read_mark_bits(&r);
	return r.no_memory ? &sonde_enomem : NULL;
}
