#include "core/mark.h"

#include "build_go.h"
#include "tap.h"

enum { RECORDS = 0x900000, DATA = 0x600000, MASK = 0x5f0000, TYPES = 0x500000, N_ROOTS = 64 };
static const uint64_t HEAP = 0xc000000000;

/* A heap that package variables lead into: N_ROOTS words of data, all pointers. */
struct world {
	struct bg b;
	struct bg_heap h;
	struct bg_area *types;
	unsigned n_roots;
	struct sonde_go_heap *heap;
	struct sonde_core_marks *marks;
};

static void world_deinit(struct world *w)
{
	sonde_core_marks_free(w->marks);
	sonde_go_heap_free(w->heap);
	bg_deinit(&w->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(world)

static void begin(struct world *w, uint16_t machine)
{
	*w = (struct world){.n_roots = 0};
	bg_init(&w->b, machine);
	bg_layout(&w->b);
	w->b.go.layout.special_cleanup.size = 3 * w->b.word;
	bg_heap_begin(&w->b, &w->h, RECORDS);
	w->types = bg_area(&w->b, TYPES, 1 << 16);
	bg_area(&w->b, DATA, N_ROOTS * w->b.word);
	memset(bg_area(&w->b, MASK, N_ROOTS / 8)->host, 0xff, N_ROOTS / 8);
}

static void root(struct world *w, uint64_t value)
{
	assert(w->n_roots < N_ROOTS);
	bg_word(&w->b, DATA + w->n_roots++ * w->b.word, value);
}

static struct sonde_error *mark(struct world *w, unsigned n_threads)
{
	if (!w->heap) {
		bg_dwarf_begin(&w->b);
		uint32_t id = bg_dwarf_struct(&w->b, "runtime.mheap", 512);
		bg_dwarf_global(&w->b, "runtime.mheap_", w->h.mheap, id);
		bg_dwarf_end(&w->b);
		w->b.module.data = DATA;
		w->b.module.edata = DATA + N_ROOTS * w->b.word;
		w->b.module.data_mask = MASK;
		w->b.module.data_mask_bits = N_ROOTS;
		bg_open(&w->b);
		SONDE_TRY(sonde_go_heap_open(&w->b.go, &w->heap));
	}
	sonde_core_marks_free(w->marks);
	w->marks = NULL;
	return sonde_core_mark(w->heap, NULL, n_threads, &w->b.notes, &w->marks);
}

static bool live(const struct world *w, uint64_t addr)
{
	struct sonde_go_span *s;
	uint32_t slot;
	return sonde_go_heap_find(w->heap, addr, &s, &slot) &&
		sonde_core_marks_has(w->marks, s->first + slot);
}

static void nothing(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	bg_class_span(&w.b, &w.h, HEAP, 1, 64, 6, false);
	root(&w, 0x1234);
	root(&w, HEAP - 1);
	root(&w, HEAP + BG_PAGE);
	root(&w, UINT64_MAX);
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		REQUIRE_OK(mark(&w, threads));
		CHECK_EQ(w.marks->n_live, 0);
		CHECK_EQ(w.marks->n_pending, 0);
		CHECK_EQ(w.marks->n_roots, 4);
		CHECK_EQ(w.marks->n_threads, threads);
	}
}

static void bits(void)
{
	for (int is32 = 0; is32 < 2; is32++) {
		sonde_cleanup(world) struct world w;
		begin(&w, is32 ? EM_386 : EM_X86_64);
		uint64_t base = is32 ? 0x10000000 : HEAP;
		struct bg_span s = bg_class_span(&w.b, &w.h, base, 1, 48, 5, false);
		/* 0 -> 1 (start) -> 2 (inside) -> 3 (its last byte) -> itself */
		root(&w, base);
		bg_pointer(&w.b, &s, base + 40, base + 48, 0);
		bg_pointer(&w.b, &s, base + 48, base + 96 + 13, 0);
		bg_pointer(&w.b, &s, base + 96 + 8, base + 144 + 47, 0);
		bg_pointer(&w.b, &s, base + 144, base + 144, 0);
		/* A word without its bit is no pointer; a pointer to the tail of the span leads nowhere. */
		bg_word(&w.b, base + 8, base + 48 * 10);
		bg_pointer(&w.b, &s, base + 16, base + 48 * s.n_slots, 0);
		bg_pointer(&w.b, &s, base + 24, 1, 0);
		/* The last slot: its bits end inside a byte. */
		bg_pointer(&w.b, &s, base + 32, base + 48 * (s.n_slots - 1), 0);
		bg_pointer(&w.b, &s, base + 48 * s.n_slots - w.b.word, base + 48 * 20, 0);
		/* Not reachable, and what only it reaches. */
		bg_pointer(&w.b, &s, base + 48 * 30, base + 48 * 31, 0);
		REQUIRE_OK(mark(&w, 1));
		const uint64_t want[] = {0, 1, 2, 3, s.n_slots - 1, 20};
		for (size_t i = 0; i < SONDE_ARRAY_LEN(want); i++)
			CHECK(live(&w, base + 48 * want[i]));
		CHECK_EQ(w.marks->n_live, 6);
		CHECK_EQ(w.marks->live_bytes, 6 * 48);
		CHECK_EQ(w.marks->n_not_allocated, 0);
		CHECK_EQ(w.b.notes.entries.n, 0);
	}
}

/* Every offset of a bitmap: slots of 512 bytes have 64 bits, of 24 bytes 3 that cross bytes. */
static void each_bit(void)
{
	static const uint32_t sizes[] = {8, 24, 80, 416, 480, 512};
	static const uint8_t classes[] = {1, 3, 7, 24, 25, 26};
	for (size_t k = 0; k < SONDE_ARRAY_LEN(sizes); k++) {
		sonde_cleanup(world) struct world w;
		begin(&w, EM_X86_64);
		struct bg_span s = bg_class_span(&w.b, &w.h, HEAP, 1, sizes[k], classes[k], false);
		bg_class_span(&w.b, &w.h, HEAP + BG_PAGE, 1, 8, 1, true);
		uint64_t words = sizes[k] / 8, at = 0;
		/* The words of each slot point to different noscan objects: all of them, one slot at a time. */
		for (uint64_t slot = 0; slot < s.n_slots; slot++) {
			if ((slot * words + words) * 8 > BG_PAGE - 128)
				break; /* the heap bits themselves stand there */
			for (uint64_t i = 0; i < words; i++, at++) {
				if (at % 3 != 1)
					bg_pointer(&w.b, &s, HEAP + (slot * words + i) * 8,
						HEAP + BG_PAGE + at % 1024 * 8, 0);
			}
		}
		REQUIRE_OK(mark(&w, 1));
		CHECK_EQ(w.marks->n_live, 0);
		uint64_t n_slots = at / words;
		for (uint64_t slot = 0; slot < n_slots; slot += 1 + n_slots / 7) {
			bg_word(&w.b, DATA, HEAP + slot * sizes[k]);
			REQUIRE_OK(mark(&w, 1));
			uint64_t n = 1;
			for (uint64_t i = 0; i < words; i++) {
				bool want = (slot * words + i) % 3 != 1;
				n += want;
				CHECK(live(&w, HEAP + BG_PAGE + (slot * words + i) % 1024 * 8) ==
					want);
			}
			CHECK_EQ(w.marks->n_live, n);
		}
	}
}

/* A header's type repeats over the slot, from behind the header on. */
static void headers(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	uint64_t pair = bg_masked_type(&w.b, w.types, 2, 1),
		 three = bg_masked_type(&w.b, w.types, 3, 2),
		 one = bg_masked_type(&w.b, w.types, 1, 1),
		 none = bg_masked_type(&w.b, w.types, 4, 0),
		 whole = bg_masked_type(&w.b, w.types, 63, UINT64_C(1) << 62),
		 huge = bg_masked_type(&w.b, w.types, 400, 1);
	bg_class_span(&w.b, &w.h, HEAP, 1, 1024, 32, false); /* 8 slots of a header and 127 words */
	bg_class_span(&w.b, &w.h, HEAP + BG_PAGE, 1, 8, 1, true);
	const uint64_t types[8] = {pair, three, one, none, whole, 0, 0x77, huge};
	for (unsigned slot = 0; slot < 8; slot++) {
		uint64_t object = HEAP + slot * 1024;
		bg_word(&w.b, object, types[slot]);
		for (unsigned i = 0; i < 127; i++)
			bg_word(&w.b, object + 8 + i * 8, HEAP + BG_PAGE + i * 8);
	}
	for (unsigned slot = 0; slot < 8; slot++) {
		bg_word(&w.b, DATA, HEAP + slot * 1024 + (slot ? 8 : 0));
		REQUIRE_OK(mark(&w, 1));
		uint64_t n = 1;
		for (unsigned i = 0; i < 127; i++) {
			bool want = slot == 0 ? i % 2 == 0
				: slot == 1   ? i % 3 == 1
				: slot == 2   ? true
				: slot == 4   ? i == 62 || i == 125
					      : false;
			if (live(&w, HEAP + BG_PAGE + i * 8) != want)
				printf("# slot %u word %u\n", slot, i);
			CHECK(live(&w, HEAP + BG_PAGE + i * 8) == want);
			n += want;
		}
		CHECK_EQ(w.marks->n_live, n);
		/* No type yet is no damage; one that cannot be, or is larger than its object, is. */
		CHECK_EQ(bg_noted(&w.b, "without a readable type"), slot < 6 ? 0 : slot - 5);
	}
}

/* An array that does not fill its slot: what stands behind its elements is zero, as the allocator leaves it. */
static void short_arrays(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	uint64_t five = bg_masked_type(
		&w.b, w.types, 5, 0x11); /* 127 words: 25 whole elements and 2 words */
	bg_class_span(&w.b, &w.h, HEAP, 1, 1024, 32, false);
	bg_class_span(&w.b, &w.h, HEAP + BG_PAGE, 1, 8, 1, true);
	bg_word(&w.b, HEAP, five);
	for (unsigned i = 0; i < 25 * 5; i++)
		bg_word(&w.b, HEAP + 8 + i * 8, HEAP + BG_PAGE + i * 8);
	root(&w, HEAP);
	REQUIRE_OK(mark(&w, 1));
	CHECK_EQ(w.marks->n_live, 1 + 25 * 2);
	CHECK(live(&w, HEAP + BG_PAGE + 124 * 8));
}

/* Large objects are scanned in parts of 1024 words: every word of every part counts once. */
static void large(void)
{
	static const struct {
		unsigned words;
		uint64_t mask;
	} types[] = {{1, 1}, {3, 2}, {7, 0x41}, {64, UINT64_C(1) << 63 | 1}, {63, UINT64_MAX >> 1},
		{5, 0x1f}};
	for (size_t k = 0; k < SONDE_ARRAY_LEN(types); k++) {
		sonde_cleanup(world) struct world w;
		begin(&w, EM_X86_64);
		enum { WORDS = 5 * 1024 + 3 };
		uint64_t type = bg_masked_type(&w.b, w.types, types[k].words, types[k].mask);
		bg_area(&w.b, HEAP, 6 * BG_PAGE);
		struct bg_span s = {.base = HEAP,
			.n_pages = 6,
			.slot_bytes = WORDS * 8,
			.n_slots = 1,
			.free_index = 1,
			.large_type = type};
		bg_span(&w.b, &w.h, &s);
		bg_area(&w.b, HEAP + 8 * BG_PAGE, 6 * BG_PAGE);
		for (unsigned i = 0; i < 6; i++)
			bg_span_in(&w.b, &w.h, HEAP + (8 + i) * BG_PAGE, 1, 8, 1, true);
		for (unsigned i = 0; i < WORDS; i++)
			bg_word(&w.b, HEAP + i * 8, HEAP + 8 * BG_PAGE + i * 8);
		root(&w, HEAP + 8 * (WORDS - 1));
		for (unsigned threads = 1; threads <= 4; threads += 3) {
			REQUIRE_OK(mark(&w, threads));
			uint64_t n = 1;
			for (unsigned i = 0; i < WORDS; i++) {
				bool want = types[k].mask >> i % types[k].words & 1;
				n += want;
				if (live(&w, HEAP + 8 * BG_PAGE + i * 8) != want) {
					printf("# type %zu word %u\n", k, i);
					CHECK(!"large object");
					break;
				}
			}
			CHECK_EQ(w.marks->n_live, n);
		}
	}
}

static void large_without_type(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	bg_area(&w.b, HEAP, 6 * BG_PAGE);
	struct bg_span s = {.base = HEAP,
		.n_pages = 6,
		.slot_bytes = 6 * BG_PAGE,
		.n_slots = 1,
		.free_index = 1};
	bg_span(&w.b, &w.h, &s);
	memset(bg_at(&w.b, HEAP, 8), 0xff, 8);
	root(&w, HEAP + 6 * BG_PAGE - 1);
	REQUIRE_OK(mark(&w, 1));
	CHECK_EQ(w.marks->n_live, 1);
	CHECK_EQ(w.b.notes.entries.n, 0);
}

static void not_allocated(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	struct bg_span s = bg_class_span(&w.b, &w.h, HEAP, 1, 64, 6, false);
	s.free_index = 2;
	s.alloc_bits = bg_put(&w.b, w.h.records, 16);
	*bg_at(&w.b, s.alloc_bits, 1) = 1 << 4;
	bg_span_write(&w.b, &s);
	/* 0, 1 and 4 are allocated; 3 is reached all the same. */
	root(&w, HEAP);
	bg_pointer(&w.b, &s, HEAP, HEAP + 64 * 3, 0);
	bg_pointer(&w.b, &s, HEAP + 64 * 3, HEAP + 64 * 4, 0);
	REQUIRE_OK(mark(&w, 1));
	CHECK_EQ(w.marks->n_live, 3);
	CHECK_EQ(w.marks->n_not_allocated, 1);
	CHECK_EQ(bg_noted(&w.b, "that the heap calls free"), 1);
}

static void unreadable_span(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	/* Highest in memory, so that its run is the last. */
	struct bg_span s = bg_class_span(&w.b, &w.h, HEAP, 1, 64, 6, false);
	struct bg_span t = bg_class_span(&w.b, &w.h, HEAP + 4 * BG_PAGE, 2, 64, 6, false);
	root(&w, HEAP);
	bg_pointer(&w.b, &s, HEAP, t.base, 0);
	bg_pointer(&w.b, &t, t.base, HEAP + 64, 0);
	REQUIRE_OK(mark(&w, 1));
	CHECK_EQ(w.marks->n_live, 3);
	sonde_go_heap_free(w.heap);
	w.heap = NULL;
	w.b.target->runs[w.b.target->n_runs - 1].size_bytes = BG_PAGE; /* the bits are gone */
	REQUIRE_OK(sonde_go_heap_open(&w.b.go, &w.heap));
	REQUIRE_OK(mark(&w, 1));
	CHECK_EQ(w.marks->n_live, 2);
	CHECK_EQ(bg_noted(&w.b, "pointers of live objects not readable"), 1);
}

/* Finalizers hang on their objects, and those on each other: A's keeps B, whose keeps C, whose keeps A's sister. */
static void specials(void)
{
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		sonde_cleanup(world) struct world w;
		begin(&w, EM_X86_64);
		struct bg_span s = bg_class_span(&w.b, &w.h, HEAP, 1, 64, 6, false);
		uint64_t list = 0;
		/* In an order in which one round is not enough. */
		for (unsigned i = 0; i < 20; i++)
			list = bg_special(&w.b, w.h.records,
				(struct bg_special){.next = list,
					.offset = 64 * i,
					.kind = (uint8_t)(i % 2 ? 1 : 6),
					.words = {i % 3 ? HEAP + 64 * (i + 1) : 0,
						i % 2 || i % 3 ? 0 : HEAP + 64 * (i + 1) + 9}});
		(void)list;
		/* Odd objects have finalizers: one word. */
		s.specials = list;
		bg_span_write(&w.b, &s);
		bg_word(&w.b, DATA, HEAP + 64);
		REQUIRE_OK(mark(&w, threads));
		/* 1 -> 2 -> 3; 3 is a finalizer with no first word: it ends. */
		CHECK_EQ(w.marks->n_live, 3);
		for (unsigned i = 1; i < 4; i++)
			CHECK(live(&w, HEAP + 64 * i));
		bg_word(&w.b, DATA, HEAP + 64 * 4);
		REQUIRE_OK(mark(&w, threads));
		/* 4 -> 5 -> 6 -> 7 (the second word of a cleanup) -> 8 -> 9, which ends. */
		CHECK_EQ(w.marks->n_live, 6);
		CHECK(live(&w, HEAP + 64 * 9) && !live(&w, HEAP + 64 * 10));
	}
}

/* What only finalizers of unreachable objects keep; a cleanup keeps its function, not its object. */
static void pending(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	struct bg_span s = bg_class_span(&w.b, &w.h, HEAP, 1, 64, 6, false);
	s.free_index = 100;
	uint64_t list = bg_special(&w.b, w.h.records, /* dead object 10: finalizer 20 */
		(struct bg_special){.offset = 640, .kind = 1, .words = {HEAP + 64 * 20}});
	list = bg_special(&w.b, w.h.records, /* dead object 12: cleanup 22 */
		(struct bg_special){
			.next = list, .offset = 64 * 12, .kind = 6, .words = {HEAP + 64 * 22}});
	list = bg_special(&w.b, w.h.records, /* live object 0: finalizer 24 */
		(struct bg_special){
			.next = list, .offset = 0, .kind = 1, .words = {HEAP + 64 * 24}});
	list = bg_special(&w.b, w.h.records, /* a free slot */
		(struct bg_special){
			.next = list, .offset = 64 * 110, .kind = 1, .words = {HEAP + 64 * 26}});
	s.specials = list;
	bg_span_write(&w.b, &s);
	root(&w, HEAP);
	bg_pointer(&w.b, &s, HEAP + 640, HEAP + 64 * 30, 0); /* 10 -> 30 -> 0 */
	bg_pointer(&w.b, &s, HEAP + 64 * 30, HEAP, 0);
	bg_pointer(&w.b, &s, HEAP + 64 * 12, HEAP + 64 * 32, 0); /* 12 -> 32: both are garbage */
	bg_pointer(&w.b, &s, HEAP + 64 * 22, HEAP + 64 * 34, 0); /* the cleanup keeps 34 */
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		REQUIRE_OK(mark(&w, threads));
		CHECK_EQ(w.marks->n_live, 2); /* 0, 24 */
		CHECK_EQ(w.marks->n_pending, 5); /* 10, 20, 30, 22, 34 */
		CHECK_EQ(w.marks->pending_bytes, 5 * 64);
		CHECK(!live(&w, HEAP + 640));
	}
}

static void counting_bits(void)
{
	const uint64_t bits[4] = {0xff00000000000001, 0, UINT64_MAX, 5};
	for (uint64_t first = 0; first < 256; first += 13) {
		for (uint64_t n = 0; first + n <= 256; n++) {
			uint64_t want = 0;
			for (uint64_t i = first; i < first + n; i++)
				want += bits[i / 64] >> i % 64 & 1;
			if (sonde_core_bits_count(bits, first, n) != want)
				CHECK_EQ(sonde_core_bits_count(bits, first, n), want);
		}
	}
}

/* --- random graphs --- */

static uint64_t random_state;

static uint64_t next_random(void)
{
	random_state = random_state * 6364136223846793005u + 1442695040888963407u;
	return random_state >> 33;
}

static uint32_t below(uint32_t n)
{
	return (uint32_t)(next_random() % n);
}

struct object {
	uint64_t addr;
	uint32_t bytes, span;
	bool reached;
};

struct graph {
	struct world w;
	struct object *objects;
	uint32_t n;
	struct bg_span *spans;
	uint32_t n_spans;
	/* The test's own picture of it: pairs of objects. */
	uint32_t (*edges)[2];
	size_t n_edges, cap_edges;
};

static void graph_deinit(struct graph *g)
{
	world_deinit(&g->w);
	free(g->objects);
	free(g->spans);
	free(g->edges);
}
SONDE_DEFINE_CLEANUP_DEINIT(graph)

static void edge(struct graph *g, uint32_t from, uint32_t to)
{
	if (g->n_edges == g->cap_edges) {
		g->cap_edges = g->cap_edges * 2 + 1024;
		g->edges = realloc(g->edges, g->cap_edges * sizeof(*g->edges));
		assert(g->edges);
	}
	g->edges[g->n_edges][0] = from;
	g->edges[g->n_edges++][1] = to;
}

/* Some address: mostly in an object near `from`, which is how chains become long. Its object, or UINT32_MAX. */
static uint32_t any_target(const struct graph *g, uint32_t from, uint64_t *addr)
{
	uint32_t kind = below(16);
	if (kind == 0) {
		*addr = below(4) ? next_random() : HEAP + (UINT64_C(1) << 40);
		return UINT32_MAX;
	}
	uint32_t to = 0;
	/* Leaves are many: most pointers lead to what has pointers itself, so that the graph hangs together. */
	for (int tries = 0; tries < 6; tries++) {
		to = kind < 6 ? below(g->n) : (from + 1 + below(9)) % g->n;
		const struct bg_span *s = &g->spans[g->objects[to].span];
		if (!s->noscan && (s->slot_bytes > 8 || tries > 3))
			break;
		kind = below(12);
	}
	*addr = g->objects[to].addr + (below(2) ? 0 : below(g->objects[to].bytes));
	return to;
}

static void add_objects(struct graph *g, struct bg_span s)
{
	for (uint64_t i = 0; i < s.n_slots; i++)
		g->objects[g->n++] = (struct object){
			s.base + i * s.slot_bytes, (uint32_t)s.slot_bytes, g->n_spans, false};
	g->spans[g->n_spans++] = s;
}

/* The words of an object that its mask calls pointers get a target now and then; the others hold what looks like one. */
static void fill(struct graph *g, uint32_t i, uint64_t start, unsigned type_words, uint64_t mask)
{
	const struct object *o = &g->objects[i];
	const struct bg_span *s = &g->spans[o->span];
	unsigned words = (unsigned)((o->bytes - start) / 8);
	for (unsigned k = 0; k < words; k++) {
		uint64_t at = o->addr + start + k * 8, value;
		if (below(8) < 3)
			continue;
		uint32_t to = any_target(g, i, &value);
		bool pointer = type_words ? mask >> k % type_words & 1 : below(3);
		if (!type_words && pointer)
			bg_pointer(&g->w.b, s, at, value, 0);
		else
			bg_word(&g->w.b, at, value);
		if (pointer && to != UINT32_MAX)
			edge(g, i, to);
	}
}

static void build_graph(struct graph *g, uint32_t n_spans, uint64_t seed)
{
	static const struct {
		uint16_t bytes;
		uint8_t size_class, pages;
	} classes[] = {{8, 1, 1}, {16, 2, 1}, {32, 4, 1}, {48, 5, 1}, {112, 9, 1}, {512, 26, 1},
		{576, 27, 1}, {1024, 32, 1}, {2048, 38, 1}};
	random_state = seed;
	*g = (struct graph){.n = 0};
	begin(&g->w, EM_X86_64);
	g->objects = malloc((size_t)n_spans * 1024 * sizeof(*g->objects));
	g->spans = malloc(n_spans * sizeof(*g->spans));
	assert(g->objects && g->spans);
	struct {
		uint64_t addr, mask;
		unsigned words;
	} types[8];
	for (size_t i = 0; i < SONDE_ARRAY_LEN(types); i++) {
		types[i].words = 1 + below(20);
		types[i].mask = (next_random() | 1) & ((UINT64_C(1) << types[i].words) - 1);
		types[i].addr = bg_masked_type(&g->w.b, g->w.types, types[i].words, types[i].mask);
	}
	bg_area(&g->w.b, HEAP, (uint64_t)n_spans * 3 * BG_PAGE);
	uint64_t base = HEAP;
	for (uint32_t i = 0; i < n_spans; i++) {
		unsigned c = below(SONDE_ARRAY_LEN(classes) + 1);
		if (c == 0 && below(5))
			c = 2; /* spans of 1024 leaves would be most of the graph */
		bool noscan = !below(8);
		struct bg_span s;
		if (c == SONDE_ARRAY_LEN(classes)) {
			s = (struct bg_span){.base = base,
				.n_pages = 3,
				.slot_bytes = 3 * BG_PAGE - 8 * below(100),
				.n_slots = 1,
				.free_index = 1,
				.noscan = noscan,
				.large_type = types[below(SONDE_ARRAY_LEN(types))].addr};
			bg_span(&g->w.b, &g->w.h, &s);
		} else {
			s = bg_span_in(&g->w.b, &g->w.h, base, 1, classes[c].bytes,
				classes[c].size_class, noscan);
			if (!noscan && s.slot_bytes <= 512)
				/* The bits need room at the end. */
				s.n_slots = s.free_index = (BG_PAGE - 128) / s.slot_bytes;
			bg_span_write(&g->w.b, &s);
		}
		add_objects(g, s);
		base += s.n_pages * BG_PAGE + (below(8) ? 0 : BG_PAGE * below(2));
	}
	for (uint32_t i = 0; i < g->n; i++) {
		const struct bg_span *s = &g->spans[g->objects[i].span];
		if (s->noscan)
			continue;
		if (s->slot_bytes <= 512) {
			fill(g, i, 0, 0, 0);
			continue;
		}
		size_t t = below(SONDE_ARRAY_LEN(types));
		if (!s->size_class) {
			for (t = 0; types[t].addr != s->large_type; t++)
				;
			fill(g, i, 0, types[t].words, types[t].mask);
		} else {
			bg_word(&g->w.b, g->objects[i].addr, types[t].addr);
			fill(g, i, 8, types[t].words, types[t].mask);
		}
	}
}

static int by_from(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;
	return x[0] < y[0] ? -1 : x[0] > y[0];
}

/* Reachability by the book, over the test's own edges. */
static void naive(struct graph *g, const uint32_t *roots, size_t n_roots)
{
	uint32_t *first = calloc(g->n + 1, sizeof(*first)), *queue = malloc(g->n * sizeof(*queue));
	size_t n = 0;
	assert(first && queue);
	if (g->n_edges)
		qsort(g->edges, g->n_edges, sizeof(*g->edges), by_from);
	for (size_t i = 0; i < g->n_edges; i++)
		first[g->edges[i][0] + 1]++;
	for (uint32_t i = 0; i < g->n; i++)
		first[i + 1] += first[i];
	for (uint32_t i = 0; i < g->n; i++)
		g->objects[i].reached = false;
	for (size_t i = 0; i < n_roots; i++) {
		if (!g->objects[roots[i]].reached)
			queue[n++] = roots[i];
		g->objects[roots[i]].reached = true;
	}
	for (size_t at = 0; at < n; at++) {
		for (uint32_t e = first[queue[at]]; e < first[queue[at] + 1]; e++) {
			struct object *to = &g->objects[g->edges[e][1]];
			if (!to->reached)
				queue[n++] = g->edges[e][1];
			to->reached = true;
		}
	}
	free(first);
	free(queue);
}

/* The marks are the test's own answer, whoever many look for it. */
static uint64_t check_graph(struct graph *g)
{
	uint64_t n_live = 0, wrong = 0;
	for (uint32_t i = 0; i < g->n; i++) {
		n_live += g->objects[i].reached;
		wrong += live(&g->w, g->objects[i].addr) != g->objects[i].reached;
	}
	CHECK_EQ(wrong, 0);
	CHECK_EQ(g->w.marks->n_live, n_live);
	return n_live;
}

static void random_graph(uint32_t n_spans, uint64_t seed, unsigned n_roots)
{
	sonde_cleanup(graph) struct graph g;
	build_graph(&g, n_spans, seed);
	uint32_t roots[N_ROOTS];
	for (unsigned i = 0; i < n_roots; i++) {
		roots[i] = below(g.n);
		root(&g.w, g.objects[roots[i]].addr + below(g.objects[roots[i]].bytes));
	}
	naive(&g, roots, n_roots);
	for (unsigned threads = 1; threads <= 8; threads *= 2) {
		REQUIRE_OK(mark(&g.w, threads));
		uint64_t n = check_graph(&g);
		if (threads == 1)
			printf("# %u objects, %zu edges, %" PRIu64 " live\n", g.n, g.n_edges, n);
	}
	CHECK_EQ(g.w.b.notes.entries.n, 0);
}

static void small_random_graphs(void)
{
	for (uint64_t seed = 1; seed <= 40; seed++)
		random_graph(1 + (uint32_t)seed % 12, seed, 1 + seed % 5);
}

static void large_random_graph(void)
{
	random_graph(1200, 99, 3);
}

/* One list through all objects of many spans: nothing to share, and depth. */
static void one_long_list(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w, EM_X86_64);
	enum { SPANS = 200, SLOTS = 504 };
	bg_area(&w.b, HEAP, (uint64_t)SPANS * BG_PAGE);
	uint64_t last = 0;
	for (unsigned i = 0; i < SPANS; i++) {
		struct bg_span s =
			bg_span_in(&w.b, &w.h, HEAP + (uint64_t)i * BG_PAGE, 1, 16, 2, false);
		s.n_slots = s.free_index = SLOTS;
		bg_span_write(&w.b, &s);
		for (unsigned k = 0; k < SLOTS; k++) {
			bg_pointer(&w.b, &s, s.base + k * 16 + 8, last, 0);
			last = s.base + k * 16;
		}
	}
	root(&w, last);
	for (unsigned threads = 1; threads <= 4; threads += 3) {
		REQUIRE_OK(mark(&w, threads));
		CHECK_EQ(w.marks->n_live, SPANS * SLOTS);
	}
}

int main(void)
{
	RUN(nothing);
	RUN(bits);
	RUN(each_bit);
	RUN(headers);
	RUN(short_arrays);
	RUN(large);
	RUN(large_without_type);
	RUN(not_allocated);
	RUN(unreadable_span);
	RUN(specials);
	RUN(pending);
	RUN(counting_bits);
	RUN(small_random_graphs);
	RUN(large_random_graph);
	RUN(one_long_list);
	return tap_end();
}
