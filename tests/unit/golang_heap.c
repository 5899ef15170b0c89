#include "golang/heap.h"

#include "build_go.h"
#include "tap.h"

/* Go's size classes and the pages of their spans (runtime/sizeclasses.go, the same from Go 1.16 to 1.27). */
static const uint32_t class_bytes[68] = {0, 8, 16, 24, 32, 48, 64, 80, 96, 112, 128, 144, 160, 176,
	192, 208, 224, 240, 256, 288, 320, 352, 384, 416, 448, 480, 512, 576, 640, 704, 768, 896,
	1024, 1152, 1280, 1408, 1536, 1792, 2048, 2304, 2688, 3072, 3200, 3456, 4096, 4864, 5376,
	6144, 6528, 6784, 6912, 8192, 9472, 9728, 10240, 10880, 12288, 13568, 14336, 16384, 18432,
	19072, 20480, 21760, 24576, 27264, 28672, 32768};
static const uint8_t class_pages[68] = {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
	1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 1, 2, 1, 2, 1, 3, 2, 3, 1, 3, 2, 3, 4, 5, 6,
	1, 7, 6, 5, 4, 3, 5, 7, 2, 9, 7, 5, 8, 3, 10, 7, 4};

static const uint64_t HEAP = 0xc000000000;
enum { RECORDS = 0x900000 };

static void begin(struct bg *b, struct bg_heap *h, uint16_t machine)
{
	bg_init(b, machine);
	bg_layout(b);
	bg_heap_begin(b, h, RECORDS);
}

/* DWARF and target; inline_marks: sizeof(spanInlineMarkBits), 0 = no such type. */
static void finish(struct bg *b, struct bg_heap *h, uint64_t inline_marks)
{
	bg_dwarf_begin(b);
	uint32_t id = bg_dwarf_struct(b, "runtime.mheap", 64 * b->word);
	bg_dwarf_global(b, "runtime.mheap_", h->mheap, id);
	if (inline_marks)
		bg_dwarf_struct(b, "runtime.spanInlineMarkBits", inline_marks);
	bg_dwarf_end(b);
	bg_open(b);
}

#define PROCESS(machine)               \
	sonde_cleanup(bg) struct bg b; \
	struct bg_heap h;              \
	begin(&b, &h, machine)

#define OPEN(inline_marks)                                              \
	sonde_cleanup(sonde_go_heap) struct sonde_go_heap *heap = NULL; \
	finish(&b, &h, inline_marks);                                   \
	REQUIRE_OK(sonde_go_heap_open(&b.go, &heap))

static void size_classes(void)
{
	PROCESS(EM_X86_64);
	uint64_t base = HEAP;
	for (unsigned c = 1; c < 68; c++) {
		bg_class_span(&b, &h, base, class_pages[c], class_bytes[c], (uint8_t)c, false);
		base += class_pages[c] * BG_PAGE;
		if (c == 1 || c == 40)
			base += 3 * BG_PAGE; /* nothing between them */
	}
	OPEN(0);
	REQUIRE(heap->n_spans == 67);
	CHECK_EQ(heap->n_unreadable_spans, 0);
	CHECK_EQ(b.notes.entries.n, 0);
	uint32_t first = 0;
	for (unsigned c = 1; c < 68; c++) {
		const struct sonde_go_span *s = &heap->spans[c - 1];
		CHECK_EQ(s->slot_bytes, class_bytes[c]);
		CHECK_EQ(s->size_class, c);
		CHECK_EQ(s->first, first);
		CHECK_EQ(s->pointers, class_bytes[c] <= 512 ? SONDE_GO_BITS : SONDE_GO_HEADER);
		first += s->n_slots;
		/* Every offset of the span: the reciprocal divides exactly. */
		uint64_t span_bytes = (uint64_t)class_pages[c] * BG_PAGE;
		for (uint64_t o = 0; o < span_bytes; o++) {
			uint64_t want = o / class_bytes[c];
			uint32_t slot = sonde_go_span_slot(s, s->base + o);
			if (slot != want && (want < s->n_slots || slot < s->n_slots)) {
				printf("# class %u offset %" PRIu64 ": slot %u\n", c, o, slot);
				CHECK(!"the division is exact");
				break;
			}
		}
		struct sonde_go_span *found;
		uint32_t slot;
		uint64_t used = (uint64_t)s->n_slots * s->slot_bytes;
		REQUIRE(sonde_go_heap_find(heap, s->base, &found, &slot));
		CHECK(found == s && slot == 0);
		REQUIRE(sonde_go_heap_find(heap, s->base + used - 1, &found, &slot));
		CHECK(found == s && slot == s->n_slots - 1);
		if (used < span_bytes) {
			CHECK(!sonde_go_heap_find(heap, s->base + used, &found, &slot));
			CHECK(!sonde_go_heap_find(heap, s->base + span_bytes - 1, &found, &slot));
		}
		CHECK(sonde_go_heap_span_of(heap, s->first) == s);
		CHECK(sonde_go_heap_span_of(heap, s->first + s->n_slots - 1) == s);
	}
	CHECK_EQ(heap->n_slots, first);
	struct sonde_go_span *found;
	uint32_t slot;
	CHECK(!sonde_go_heap_find(heap, HEAP - 1, &found, &slot));
	CHECK(!sonde_go_heap_find(heap, HEAP + BG_PAGE, &found, &slot)); /* the gap */
	CHECK(!sonde_go_heap_find(heap, base, &found, &slot));
	CHECK(!sonde_go_heap_find(heap, 0, &found, &slot));
	CHECK(!sonde_go_heap_find(heap, UINT64_MAX, &found, &slot));
}

/* Which objects have a header is the size class's to say, not the slot size's. */
static void pointer_classes(void)
{
	static const struct {
		uint64_t slot_bytes, n_pages, n_slots;
		uint8_t size_class;
		bool noscan, user_arena;
		enum sonde_go_pointers want, want32;
	} rows[] = {
		{8, 1, 1024, 1, false, false, SONDE_GO_BITS, SONDE_GO_BITS},
		{128, 1, 64, 10, false, false, SONDE_GO_BITS, SONDE_GO_BITS},
		{144, 1, 56, 11, false, false, SONDE_GO_BITS, SONDE_GO_HEADER},
		{512, 1, 16, 26, false, false, SONDE_GO_BITS, SONDE_GO_HEADER},
		{512, 1, 16, 26, true, false, SONDE_GO_NOSCAN, SONDE_GO_NOSCAN},
		{576, 1, 14, 27, false, false, SONDE_GO_HEADER, SONDE_GO_HEADER},
		{576, 1, 14, 27, true, false, SONDE_GO_NOSCAN, SONDE_GO_NOSCAN},
		{32768, 4, 1, 67, false, false, SONDE_GO_HEADER, SONDE_GO_HEADER},
		{32768, 4, 1, 0, false, false, SONDE_GO_LARGE, SONDE_GO_LARGE},
		{32768, 4, 1, 0, true, false, SONDE_GO_NOSCAN, SONDE_GO_NOSCAN},
		{81920, 10, 1, 0, false, false, SONDE_GO_LARGE, SONDE_GO_LARGE},
		{81920, 10, 1, 0, false, true, SONDE_GO_USER_ARENA, SONDE_GO_USER_ARENA},
	};
	for (int is32 = 0; is32 < 2; is32++) {
		PROCESS(is32 ? EM_386 : EM_X86_64);
		uint64_t base = is32 ? 0x10000000 : HEAP, used = 0;
		for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
			bg_area(&b, base, rows[i].n_pages * BG_PAGE);
			struct bg_span s = {.base = base,
				.n_pages = rows[i].n_pages,
				.slot_bytes = rows[i].slot_bytes,
				.n_slots = rows[i].n_slots,
				.free_index = rows[i].n_slots,
				.size_class = rows[i].size_class,
				.noscan = rows[i].noscan,
				.user_arena = rows[i].user_arena,
				.large_type = 0x1234};
			bg_span(&b, &h, &s);
			base += rows[i].n_pages * BG_PAGE;
			used += rows[i].n_pages * BG_PAGE;
		}
		OPEN(0);
		REQUIRE(heap->n_spans == SONDE_ARRAY_LEN(rows));
		for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
			CHECK_EQ(heap->spans[i].pointers, is32 ? rows[i].want32 : rows[i].want);
			CHECK_EQ(heap->spans[i].large_type, 0x1234);
		}
		CHECK_EQ(heap->in_use_bytes, used);
		CHECK_EQ(bg_noted(&b, "user arena"), 1);
	}
}

/* One object of many pages: every address in it is slot 0. */
static void one_large_slot(void)
{
	PROCESS(EM_X86_64);
	bg_area(&b, HEAP, 3 * BG_PAGE);
	struct bg_span s = {
		.base = HEAP, .n_pages = 3, .slot_bytes = 20000, .n_slots = 1, .free_index = 1};
	bg_span(&b, &h, &s);
	OPEN(0);
	struct sonde_go_span *found;
	uint32_t slot;
	for (uint64_t o = 0; o < 3 * BG_PAGE; o++)
		CHECK_EQ(sonde_go_heap_find(heap, HEAP + o, &found, &slot), o < 20000);
	REQUIRE(sonde_go_heap_find(heap, HEAP + 19999, &found, &slot));
	CHECK_EQ(slot, 0);
	CHECK_EQ(sonde_go_span_addr(found, 0), HEAP);
}

static void alloc_bits(void)
{
	/* What stands in the bits below freeindex does not count; above it, it does. */
	static const uint16_t free_indexes[] = {0, 1, 63, 64, 65, 100, 128, 1000, 1024};
	for (size_t k = 0; k < SONDE_ARRAY_LEN(free_indexes); k++) {
		PROCESS(EM_X86_64);
		bg_area(&b, HEAP, BG_PAGE);
		struct bg_span s = {.base = HEAP,
			.n_pages = 1,
			.slot_bytes = 8,
			.n_slots = 1024,
			.free_index = free_indexes[k],
			.size_class = 1,
			.alloc_bits = bg_put(&b, h.records, 128)};
		uint64_t want = s.free_index;
		for (uint64_t i = 0; i < 1024; i++) {
			if (i % 7 && i % 5)
				continue;
			*bg_at(&b, s.alloc_bits + i / 8, 1) |= (uint8_t)(1 << i % 8);
			want += i >= s.free_index;
		}
		bg_span(&b, &h, &s);
		OPEN(0);
		CHECK_EQ(heap->n_allocated, want);
		CHECK_EQ(heap->allocated_bytes, want * 8);
		CHECK_EQ(heap->n_free, 1024 - want);
		CHECK_EQ(heap->free_bytes, (1024 - want) * 8);
		for (uint32_t i = 0; i < 1024; i++)
			CHECK(sonde_go_span_allocated(&heap->spans[0], i) ==
				(i < s.free_index || !(i % 7) || !(i % 5)));
	}
}

/* The bits in an allocation that ends with them; and nowhere. */
static void alloc_bits_at_the_end(void)
{
	for (int lost = 0; lost < 3; lost++) {
		PROCESS(EM_X86_64);
		bg_area(&b, HEAP, BG_PAGE);
		bg_area(&b, 0x1000, 18);
		memset(bg_at(&b, 0x1000, 18), 0xff, 18);
		struct bg_span s = {.base = HEAP,
			.n_pages = 1,
			.slot_bytes = 56,
			.n_slots = 141,
			.free_index = 3,
			.size_class = 5};
		s.alloc_bits = lost == 0 ? 0x1000 : lost == 1 ? 0x1001 : 0;
		bg_span(&b, &h, &s);
		OPEN(0);
		CHECK_EQ(heap->n_allocated, lost ? 3 : 141);
		CHECK_EQ(bg_noted(&b, "allocation bits"), lost ? 1 : 0);
	}
}

/* Spans that lie about themselves are left out, and the rest stays. */
static void damaged_spans(void)
{
	static const struct {
		const char *what;
		struct bg_span s;
	} rows[] = {
		{"base 0", {.base = 0, .n_pages = 1, .slot_bytes = 8, .n_slots = 1}},
		{"base between pages",
			{.base = 0xc000004100, .n_pages = 1, .slot_bytes = 8, .n_slots = 1}},
		{"no pages", {.base = 0xc000004000, .slot_bytes = 8, .n_slots = 1}},
		{"2^32 pages",
			{.base = 0xc000004000,
				.n_pages = UINT64_C(1) << 32,
				.slot_bytes = 8,
				.n_slots = 1}},
		{"pages overflow",
			{.base = 0xc000004000,
				.n_pages = UINT64_MAX / BG_PAGE + 2,
				.slot_bytes = 8,
				.n_slots = 1}},
		{"more than is mapped",
			{.base = 0xc000004000, .n_pages = 1 << 20, .slot_bytes = 8, .n_slots = 1}},
		{"end overflows",
			{.base = UINT64_MAX - BG_PAGE + 1,
				.n_pages = 2,
				.slot_bytes = 8,
				.n_slots = 1}},
		{"not mapped", {.base = 0xd000004000, .n_pages = 1, .slot_bytes = 8, .n_slots = 1}},
		{"slots of 0 bytes", {.base = 0xc000004000, .n_pages = 1, .n_slots = 1}},
		{"slots of 1 byte",
			{.base = 0xc000004000, .n_pages = 1, .slot_bytes = 1, .n_slots = 1}},
		{"no slots", {.base = 0xc000004000, .n_pages = 1, .slot_bytes = 8}},
		{"slots behind the end",
			{.base = 0xc000004000, .n_pages = 1, .slot_bytes = 16, .n_slots = 513}},
		{"slot bytes overflow",
			{.base = 0xc000004000,
				.n_pages = 1,
				.slot_bytes = UINT64_C(1) << 63,
				.n_slots = 2}},
		{"free index behind the slots",
			{.base = 0xc000004000,
				.n_pages = 1,
				.slot_bytes = 8,
				.n_slots = 4,
				.free_index = 5}},
		{"overlap", {.base = HEAP, .n_pages = 1, .slot_bytes = 8, .n_slots = 4}},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		PROCESS(EM_X86_64);
		struct bg_span s = rows[i].s;
		bg_span(&b, &h, &s);
		bg_class_span(&b, &h, HEAP, 2, 64, 6, false);
		bg_class_span(&b, &h, HEAP + 4 * BG_PAGE, 1, 64, 6, false);
		bg_area(&b, HEAP + 2 * BG_PAGE, BG_PAGE);
		OPEN(0);
		bool overlap = !strcmp(rows[i].what, "overlap");
		if (heap->n_spans != 2 || bg_noted(&b, "heap span record damaged") != 1)
			printf("# %s\n", rows[i].what);
		CHECK_EQ(heap->n_spans, 2);
		CHECK_EQ(bg_noted(&b, "heap span record damaged"), 1);
		CHECK(overlap || heap->n_slots == 384);
	}
}

static void states(void)
{
	PROCESS(EM_X86_64);
	struct bg_span manual = {.base = HEAP + 8 * BG_PAGE, .n_pages = 4, .state = 2},
		       free_span = {.base = HEAP + 16 * BG_PAGE, .n_pages = 4, .state = 7};
	bg_span(&b, &h, &manual);
	bg_class_span(&b, &h, HEAP, 1, 64, 6, false);
	bg_span(&b, &h, &free_span);
	/* A record that is not there. */
	bg_word(&b, h.list + h.n++ * 8, 0x123);
	bg_word(&b, h.mheap + b.go.layout.mheap_allspans.offset + 8, h.n);
	OPEN(0);
	CHECK_EQ(heap->n_spans, 1);
	CHECK_EQ(heap->manual_bytes, 4 * BG_PAGE);
	CHECK_EQ(heap->in_use_bytes, BG_PAGE);
	CHECK_EQ(bg_noted(&b, "heap span record not readable"), 1);
}

static void no_list(void)
{
	PROCESS(EM_X86_64);
	struct sonde_go_heap *heap = NULL;
	uint64_t n_at = h.mheap + b.go.layout.mheap_allspans.offset + 8;
	finish(&b, &h, 0);
	CHECK_OK(sonde_go_heap_open(&b.go, &heap)); /* no spans at all */
	if (heap)
		CHECK_EQ(heap->n_slots, 0);
	struct sonde_go_span *found;
	uint32_t slot;
	CHECK(heap && !sonde_go_heap_find(heap, HEAP, &found, &slot));
	CHECK(heap && !sonde_go_heap_find(heap, 0, &found, &slot));
	CHECK(heap && !sonde_go_heap_find(heap, 1 << 26, &found, &slot));
	sonde_go_heap_free(heap);
	static const uint64_t counts[] = {1 << 20, UINT32_MAX, UINT64_C(1) << 32, UINT64_MAX};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(counts); i++) {
		bg_word(&b, n_at, counts[i]);
		CHECK_ERROR(sonde_go_heap_open(&b.go, &heap), SONDE_FAULT, "the list of");
	}
}

static void no_heap(void)
{
	PROCESS(EM_X86_64);
	struct sonde_go_heap *heap = NULL;
	bg_dwarf_begin(&b);
	bg_dwarf_end(&b);
	bg_open(&b);
	CHECK_ERROR(sonde_go_heap_open(&b.go, &heap), SONDE_NOT_FOUND, "no runtime.mheap_");
}

static void unreadable_pages(void)
{
	PROCESS(EM_X86_64);
	/* The mapping goes on where the file ends: only the run is short. */
	bg_area(&b, HEAP, 2 * BG_PAGE);
	struct bg_span s = {.base = HEAP,
		.n_pages = 2,
		.slot_bytes = 64,
		.n_slots = 256,
		.free_index = 256,
		.size_class = 6};
	bg_span(&b, &h, &s);
	bg_pointer(&b, &s, HEAP + 64, 0x1234, 0);
	finish(&b, &h, 0);
	b.target->runs[b.target->n_runs - 1].size_bytes = BG_PAGE;
	sonde_cleanup(sonde_go_heap) struct sonde_go_heap *heap = NULL;
	REQUIRE_OK(sonde_go_heap_open(&b.go, &heap));
	REQUIRE(heap->n_spans == 1);
	CHECK(!heap->spans[0].host);
	CHECK_EQ(heap->n_unreadable_spans, 1);
	CHECK_EQ(bg_noted(&b, "heap span not (wholly) readable"), 1);
	CHECK(!sonde_go_span_heap_bits(heap, &heap->spans[0]));
	/* Readable again, but in two runs: the bits are found by themselves. */
	struct sonde_target_run runs[2] = {b.target->runs[b.target->n_runs - 1]};
	runs[1] = (struct sonde_target_run){
		HEAP + BG_PAGE, BG_PAGE, bg_at(&b, HEAP + BG_PAGE, BG_PAGE)};
	struct sonde_target_run *old = b.target->runs;
	size_t old_n = b.target->n_runs;
	b.target->runs = runs;
	b.target->n_runs = 2;
	const uint8_t *bits = sonde_go_span_heap_bits(heap, &heap->spans[0]);
	REQUIRE(bits != NULL);
	CHECK_EQ(bits[1], 1);
	b.target->runs = old;
	b.target->n_runs = old_n;
}

/* Green Tea's marks stand behind the heap bits of small spans (runtime/mgcmark_greenteagc.go). */
static void trailer(void)
{
	for (int form = 0; form < 3; form++) {
		PROCESS(EM_X86_64);
		struct bg_span small = bg_class_span(&b, &h, HEAP, 1, 8, 1, false),
			       other = bg_class_span(&b, &h, HEAP + BG_PAGE, 1, 16, 2, false);
		uint64_t behind = form == 1 ? 128 : 0;
		bg_pointer(&b, &small, HEAP + 8, 1, 0);
		bg_pointer(&b, &other, HEAP + BG_PAGE + 16, 1, behind);
		OPEN(form == 0 ? 0 : form == 1 ? 128 : 64); /* another size: another format */
		const uint8_t *bits = sonde_go_span_heap_bits(heap, &heap->spans[0]);
		REQUIRE(bits != NULL);
		CHECK_EQ(bits[0], 2);
		CHECK(bits == bg_at(&b, HEAP + BG_PAGE - 128, 128));
		bits = sonde_go_span_heap_bits(heap, &heap->spans[1]);
		REQUIRE(bits != NULL);
		CHECK_EQ(bits[0], 4);
		CHECK(bits == bg_at(&b, HEAP + 2 * BG_PAGE - 128 - behind, 128));
	}
}

static void bits_of_32_bit_words(void)
{
	PROCESS(EM_386);
	struct bg_span s = bg_class_span(&b, &h, 0x10000000, 1, 16, 2, false);
	bg_pointer(&b, &s, 0x10000014, 1, 0);
	OPEN(0);
	const uint8_t *bits = sonde_go_span_heap_bits(heap, &heap->spans[0]);
	REQUIRE(bits != NULL);
	CHECK_EQ(bits[0], 0x20);
	CHECK(bits == bg_at(&b, 0x10000000 + BG_PAGE - 256, 256));
}

/* --- specials --- */

static void specials(void)
{
	PROCESS(EM_X86_64);
	b.go.layout.special_cleanup.size = 8; /* Go 1.24: one pointer */
	struct bg_span s = bg_class_span(&b, &h, HEAP, 1, 64, 6, false),
		       t = bg_class_span(&b, &h, HEAP + BG_PAGE, 1, 64, 6, false);
	uint64_t weak = bg_special(&b, h.records,
			 (struct bg_special){.offset = 640, .kind = 2, .words = {0xa3}}),
		 other = bg_special(
			 &b, h.records, (struct bg_special){.next = weak, .offset = 0, .kind = 5}),
		 cleanup = bg_special(&b, h.records,
			 (struct bg_special){
				 .next = other, .offset = 640, .kind = 6, .words = {0xa2, 7, 8}}),
		 fin = bg_special(&b, h.records,
			 (struct bg_special){
				 .next = cleanup, .offset = 72, .kind = 1, .words = {0xa1, 7, 8}}),
		 outside = bg_special(
			 &b, h.records, (struct bg_special){.offset = 1 << 30, .kind = 1}),
		 second = bg_special(&b, h.records,
			 (struct bg_special){
				 .next = outside, .offset = 0, .kind = 1, .words = {0xa4}});
	s.specials = fin;
	t.specials = second;
	bg_span_write(&b, &s);
	bg_span_write(&b, &t);
	OPEN(0);
	REQUIRE(heap->specials.n == 4);
	const struct sonde_go_special *p = heap->specials.items;
	CHECK_EQ(p[0].object, 1); /* offset 72 is inside slot 1 */
	CHECK_EQ(p[0].kind, SONDE_GO_FINALIZER);
	CHECK_EQ(p[0].words[0], 0xa1);
	CHECK_EQ(p[0].words[1], 0);
	CHECK_EQ(p[1].object, 10);
	CHECK_EQ(p[2].object, 10);
	CHECK(p[1].kind + p[2].kind == SONDE_GO_CLEANUP + SONDE_GO_WEAK_HANDLE);
	for (int i = 1; i < 3; i++)
		CHECK_EQ(p[i].words[0], p[i].kind == SONDE_GO_CLEANUP ? 0xa2 : 0xa3);
	CHECK_EQ(p[3].object, 128);
	CHECK_EQ(p[3].words[0], 0xa4);
	CHECK_EQ(heap->spans[0].specials, 1);
	CHECK_EQ(heap->spans[1].specials, 4);
	CHECK_EQ(b.notes.entries.n, 0);
}

/* Go 1.25: runtime.cleanupFn {call, fn, arg}. */
static void cleanups_of_three_words(void)
{
	PROCESS(EM_X86_64);
	b.go.layout.special_cleanup.size = 24;
	struct bg_span s = bg_class_span(&b, &h, HEAP, 1, 64, 6, false);
	s.specials = bg_special(&b, h.records, (struct bg_special){.kind = 6, .words = {1, 2, 3}});
	bg_span_write(&b, &s);
	OPEN(0);
	REQUIRE(heap->specials.n == 1);
	for (unsigned i = 0; i < 3; i++)
		CHECK_EQ(heap->specials.items[0].words[i], i + 1);
}

/* Where the kinds are unknown to the version, their numbers mean something else. */
static void kinds_of_the_version(void)
{
	PROCESS(EM_X86_64);
	b.go.layout.special_kind_weak_handle = b.go.layout.special_kind_cleanup = -1;
	struct bg_span s = bg_class_span(&b, &h, HEAP, 1, 64, 6, false);
	uint64_t a = bg_special(&b, h.records, (struct bg_special){.kind = 6}),
		 c = bg_special(&b, h.records, (struct bg_special){.next = a, .kind = 255}),
		 d = bg_special(&b, h.records, (struct bg_special){.next = c, .kind = 2});
	s.specials = bg_special(&b, h.records, (struct bg_special){.next = d, .kind = 1});
	bg_span_write(&b, &s);
	OPEN(0);
	REQUIRE(heap->specials.n == 1);
	CHECK_EQ(heap->specials.items[0].kind, SONDE_GO_FINALIZER);
}

static void circles_of_specials(void)
{
	for (unsigned length = 1; length < 40; length += 6) {
		PROCESS(EM_X86_64);
		uint64_t first = 0, head = 0;
		for (unsigned i = 0; i < length; i++) {
			head = bg_special(&b, h.records,
				(struct bg_special){.next = head, .kind = 1, .words = {i}});
			first = first ? first : head;
		}
		bg_word(&b, first + b.go.layout.special_next.offset, head);
		for (unsigned i = 0; i < 20; i++) {
			struct bg_span s =
				bg_class_span(&b, &h, HEAP + i * BG_PAGE, 1, 64, 6, false);
			s.specials = head;
			bg_span_write(&b, &s);
		}
		OPEN(0);
		CHECK_EQ(bg_noted(&b, "list of finalizers cut short"), 20);
		CHECK(heap->specials.n >= 20 * length && heap->specials.n <= 20 * 4 * length);
	}
}

static void lists_that_break(void)
{
	PROCESS(EM_X86_64);
	struct bg_span s = bg_class_span(&b, &h, HEAP, 1, 64, 6, false),
		       t = bg_class_span(&b, &h, HEAP + BG_PAGE, 1, 64, 6, false);
	s.specials = bg_special(
		&b, h.records, (struct bg_special){.next = 0x123, .kind = 1, .words = {5}});
	t.specials = UINT64_MAX - 3;
	bg_span_write(&b, &s);
	bg_span_write(&b, &t);
	OPEN(0);
	CHECK_EQ(heap->specials.n, 1);
	CHECK_EQ(bg_noted(&b, "list of finalizers cut short"), 2);
}

int main(void)
{
	RUN(size_classes);
	RUN(pointer_classes);
	RUN(one_large_slot);
	RUN(alloc_bits);
	RUN(alloc_bits_at_the_end);
	RUN(damaged_spans);
	RUN(states);
	RUN(no_list);
	RUN(no_heap);
	RUN(unreadable_pages);
	RUN(trailer);
	RUN(bits_of_32_bit_words);
	RUN(specials);
	RUN(cleanups_of_three_words);
	RUN(kinds_of_the_version);
	RUN(circles_of_specials);
	RUN(lists_that_break);
	return tap_end();
}
