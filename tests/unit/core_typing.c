#include "core/typing.h"

#include "build_go.h"
#include "tap.h"

enum { RECORDS = 0x900000, DATA = 0x600000, DATA_BYTES = 4096, MASK = 0x5f0000, TYPES = 0x500000 };
static const uint64_t HEAP = 0xc000000000;

/* A heap that one package variable leads into, and type descriptors. */
struct world {
	struct bg b;
	struct bg_heap h;
	struct bg_area *a;
	struct sonde_go_heap *heap;
	struct sonde_core_marks *marks;
	struct sonde_go_types *types;
	struct sonde_core_typing *typing;
	struct sonde_goroutines gs;
};

static void world_deinit(struct world *w)
{
	sonde_core_typing_free(w->typing);
	sonde_go_types_free(w->types);
	sonde_core_marks_free(w->marks);
	sonde_go_heap_free(w->heap);
	sonde_goroutine_vec_deinit(&w->gs.all);
	bg_deinit(&w->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(world)

static void begin(struct world *w)
{
	*w = (struct world){.gs.go = &w->b.go};
	bg_init(&w->b, EM_X86_64);
	bg_layout(&w->b);
	bg_heap_begin(&w->b, &w->h, RECORDS);
	w->a = bg_area(&w->b, TYPES, 1 << 16);
	bg_name(&w->b, w->a, "");
	bg_area(&w->b, DATA, DATA_BYTES);
	memset(bg_area(&w->b, MASK, DATA_BYTES / 64)->host, 0xff, DATA_BYTES / 64);
	/* Most tests are about heaps of 1.24 and later, without maps of either kind. */
	w->b.go.layout.swiss_dir_ptr.size = w->b.go.layout.hmap_b.size = 0;
}

static struct sonde_error *open_world(struct world *w)
{
	struct bg *b = &w->b;
	bg_dwarf_begin(b);
	bg_dwarf_global(b, "runtime.mheap_", w->h.mheap, bg_dwarf_struct(b, "runtime.mheap", 512));
	bg_dwarf_end(b);
	b->module.data = b->module.noptrdata = DATA;
	b->module.edata = b->module.enoptrbss = DATA + DATA_BYTES;
	b->module.data_mask = MASK;
	b->module.data_mask_bits = DATA_BYTES / 8;
	bg_open(b);
	SONDE_TRY(sonde_go_heap_open(&b->go, &w->heap));
	SONDE_TRY(sonde_core_mark(w->heap, NULL, 1, &b->notes, &w->marks));
	SONDE_TRY(sonde_go_types_open(&b->go, &w->types));
	return sonde_core_type_heap(w->heap, &w->gs, w->marks, w->types, &w->typing);
}

/* "main.T", "[]main.T" for several, "unknown", "not live". */
static const char *name_at(const struct world *w, uint64_t addr)
{
	static char text[256];
	struct sonde_go_span *s;
	uint32_t slot;
	if (!sonde_go_heap_find(w->heap, addr, &s, &slot))
		return "nothing";
	if (!sonde_core_marks_has(w->marks, s->first + slot)) {
		CHECK_EQ(w->typing->of[s->first + slot], 0);
		return "not live";
	}
	uint32_t typing = w->typing->of[s->first + slot];
	snprintf(text, sizeof(text), "%s%s", typing & SONDE_CORE_TYPE_MANY ? "[]" : "",
		sonde_go_type_of(w->types, typing & ~SONDE_CORE_TYPE_MANY)->name);
	return text;
}

/* From a header on, along every kind of pointer. */
static void from_headers(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	uint64_t integer = bg_named_type(b, w.a, "int", 2, 8, 0, 0, 0, 0),
		 string = bg_named_type(b, w.a, "string", 24, 16, 1, 0, 0, 0),
		 pointer_int = bg_named_type(b, w.a, "*int", 22, 8, 1, integer, 0, 0);
	uint64_t leaf = bg_struct(
			 b, w.a, "main.Leaf", 32, 4, (struct bg_member[]){{string, 16}}, 1),
		 pointer = bg_named_type(b, w.a, "*main.Leaf", 22, 8, 1, leaf, 0, 0),
		 slice = bg_named_type(b, w.a, "[]main.Leaf", 23, 24, 1, leaf, 0, 0),
		 any = bg_named_type(b, w.a, "interface {}", 20, 16, 3, 0, 0, 0),
		 iface = bg_named_type(b, w.a, "main.I", 20, 16, 3, 0, 0x1, 1);
	b->go.layout.kind_direct_iface = 0;
	b->go.layout.tflag_direct_iface = 32;
	bg_field(b, pointer, b->go.layout.type_tflag, 32);
	const struct bg_member members[] = {{pointer, 0}, {slice, 8}, {any, 32}, {any, 48},
		{iface, 64}, {string, 80}, {pointer_int, 96}};
	uint64_t root =
		bg_struct(b, w.a, "main.Root", 560, 0x17f3, members, SONDE_ARRAY_LEN(members));

	struct bg_span big = bg_class_span(b, &w.h, HEAP, 1, 576, 27, false),
		       small = bg_class_span(b, &w.h, HEAP + BG_PAGE, 1, 32, 4, false),
		       store = bg_class_span(b, &w.h, HEAP + 2 * BG_PAGE, 1, 128, 10, false);
	bg_class_span(b, &w.h, HEAP + 3 * BG_PAGE, 1, 16, 2, true);
	uint64_t o = HEAP + 8, one = small.base, two = small.base + 32, three = small.base + 64,
		 four = small.base + 96, text = HEAP + 3 * BG_PAGE;
	bg_word(b, DATA, HEAP);
	bg_word(b, HEAP, root);
	bg_word(b, o, one);
	bg_word(b, o + 8, store.base);
	bg_word(b, o + 16, 3);
	bg_word(b, o + 24, 4);
	bg_word(b, o + 32, pointer); /* any(*Leaf): the word is the pointer */
	bg_word(b, o + 40, two);
	bg_word(b, o + 48, leaf); /* any(Leaf): the word points to it */
	bg_word(b, o + 56, three);
	uint64_t itab = bg_put(b, w.a, 64);
	bg_field(b, itab, b->go.layout.itab_type, leaf);
	bg_word(b, o + 64, itab);
	bg_word(b, o + 72, four);
	bg_word(b, o + 80, text);
	bg_word(b, o + 88, 11);
	bg_word(b, o + 96, text + 16);
	for (unsigned i = 0; i < 4; i++)
		bg_pointer(b, &small, small.base + i * 32 + 16, i ? 0 : text + 32, 0);
	for (unsigned i = 0; i < 4; i++)
		bg_pointer(b, &store, store.base + i * 32 + 16, i < 3 ? text + 48 + i * 16 : 0, 0);
	for (uint64_t at = text + 0; at < text + 128; at += 16)
		bg_word(b, at, 1);
	/* The lengths of those strings. */
	bg_word(b, small.base + 24, 5);
	for (unsigned i = 0; i < 3; i++)
		bg_word(b, store.base + i * 32 + 24, 5);
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, HEAP), "main.Root");
	CHECK_STR(name_at(&w, one), "main.Leaf");
	CHECK_STR(name_at(&w, store.base), "[]main.Leaf");
	CHECK_STR(name_at(&w, two), "main.Leaf");
	CHECK_STR(name_at(&w, three), "main.Leaf");
	CHECK_STR(name_at(&w, four), "main.Leaf");
	CHECK(strstr(name_at(&w, text), "string"));
	CHECK_STR(name_at(&w, text + 16), "int");
	CHECK(strstr(name_at(&w, text + 32), "string"));
	for (unsigned i = 0; i < 3; i++)
		CHECK(strstr(name_at(&w, text + 48 + i * 16), "string"));
	CHECK_STR(name_at(&w, small.base + 128), "not live");
	CHECK_STR(name_at(&w, big.base + 576), "not live");
}

/* The largest explanation wins; a header has the last word; a type that does not fit the bits is none. */
static void competing_types(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	uint64_t word = bg_named_type(b, w.a, "*T", 22, 8, 1, 0, 0, 0);
	uint64_t small = bg_struct(b, w.a, "main.Small", 8, 1, (struct bg_member[]){{word, 0}}, 1),
		 large = bg_struct(b, w.a, "main.Large", 32, 1, (struct bg_member[]){{word, 0}}, 1),
		 wrong = bg_struct(
			 b, w.a, "main.Wrong", 32, 8, (struct bg_member[]){{word, 24}}, 1),
		 other = bg_struct(
			 b, w.a, "main.Other", 560, 1, (struct bg_member[]){{word, 0}}, 1);
	const uint64_t targets[] = {small, large, wrong, other};
	struct bg_member members[4];
	for (unsigned i = 0; i < 4; i++)
		members[i] = (struct bg_member){
			bg_named_type(b, w.a, "*", 22, 8, 1, targets[i], 0, 0), i * 8};
	uint64_t root = bg_struct(b, w.a, "main.Root", 560, 15, members, 4);
	bg_class_span(b, &w.h, HEAP, 1, 576, 27, false);
	struct bg_span s = bg_class_span(b, &w.h, HEAP + BG_PAGE, 1, 32, 4, false);
	bg_pointer(b, &s, s.base, 0, 0);
	bg_pointer(b, &s, s.base + 32, 0, 0);
	bg_word(b, DATA, HEAP);
	bg_word(b, HEAP, root);
	bg_word(b, HEAP + 8, s.base);
	bg_word(b, HEAP + 16, s.base);
	bg_word(b, HEAP + 24, s.base + 32);
	bg_word(b, HEAP + 32, HEAP + 8); /* *Other into the Root itself */
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, HEAP), "main.Root");
	CHECK_STR(name_at(&w, s.base), "main.Large");
	CHECK_STR(name_at(&w, s.base + 32), "unknown");
}

static void large_objects(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	uint64_t word = bg_named_type(b, w.a, "*T", 22, 8, 1, 0, 0, 0);
	uint64_t leaf = bg_struct(b, w.a, "main.Leaf", 32, 1, (struct bg_member[]){{word, 0}}, 1),
		 pointer = bg_named_type(b, w.a, "*main.Leaf", 22, 8, 1, leaf, 0, 0);
	bg_area(b, HEAP, 5 * BG_PAGE);
	struct bg_span big = {.base = HEAP,
		.n_pages = 5,
		.slot_bytes = 5 * BG_PAGE,
		.n_slots = 1,
		.free_index = 1,
		.large_type = pointer};
	bg_span(b, &w.h, &big);
	struct bg_span s = bg_class_span(b, &w.h, HEAP + 8 * BG_PAGE, 1, 32, 4, false);
	s.n_slots = s.free_index = 250;
	bg_span_write(b, &s);
	for (unsigned i = 0; i < 250; i++) {
		bg_pointer(b, &s, s.base + i * 32, 0, 0);
		bg_word(b, HEAP + i * 160, s.base + i * 32);
	}
	bg_word(b, DATA, HEAP + 77);
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, HEAP), "[]*main.Leaf");
	for (unsigned i = 0; i < 250; i++)
		CHECK_STR(name_at(&w, s.base + i * 32), "main.Leaf");
}

/* Variables without a name that point at each other, each by another type. */
static void circles_in_data(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	uint64_t pa = bg_named_type(b, w.a, "*A", 22, 8, 1, 0, 0, 0),
		 pb = bg_named_type(b, w.a, "*B", 22, 8, 1, 0, 0, 0);
	uint64_t ta = bg_struct(b, w.a, "A", 8, 1, (struct bg_member[]){{pb, 0}}, 1),
		 tb = bg_struct(b, w.a, "B", 8, 1, (struct bg_member[]){{pa, 0}}, 1);
	bg_word(b, pa + b->go.layout.sizeof_type, ta);
	bg_word(b, pb + b->go.layout.sizeof_type, tb);
	bg_class_span(b, &w.h, HEAP, 1, 576, 27, false);
	uint64_t root =
		bg_struct(b, w.a, "main.Root", 560, 3, (struct bg_member[]){{pa, 0}, {pb, 8}}, 2);
	bg_word(b, DATA, HEAP);
	bg_word(b, HEAP, root);
	bg_word(b, HEAP + 8, DATA + 64);
	bg_word(b, HEAP + 16, DATA + 64);
	bg_word(b, DATA + 64, DATA + 64);
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, HEAP), "main.Root");
}

/* An array without end whose elements have no size but a pointer. */
static void sizeless_elements(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	uint64_t word = bg_named_type(b, w.a, "*T", 22, 8, 1, 0, 0, 0);
	uint64_t nothing = bg_struct(b, w.a, "nothing", 0, 0, (struct bg_member[]){{word, 0}}, 1),
		 endless = bg_named_type(b, w.a, "endless", 17, 8, 1, nothing, 0, UINT64_MAX);
	uint64_t root =
		bg_struct(b, w.a, "main.Root", 560, 1, (struct bg_member[]){{endless, 0}}, 1);
	bg_class_span(b, &w.h, HEAP, 1, 576, 27, false);
	bg_word(b, DATA, HEAP);
	bg_word(b, HEAP, root);
	bg_word(b, HEAP + 8, HEAP);
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, HEAP), "main.Root");
}

/* Slices whose lengths claim the world, one at every word of a large object: bounded by time alone. */
static void endless_slices(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	uint64_t word = bg_named_type(b, w.a, "*T", 22, 8, 1, 0, 0, 0),
		 slice = bg_named_type(b, w.a, "[]*T", 23, 24, 1, word, 0, 0);
	bg_area(b, HEAP, 8 * BG_PAGE);
	struct bg_span big = {.base = HEAP,
		.n_pages = 8,
		.slot_bytes = 8 * BG_PAGE,
		.n_slots = 1,
		.free_index = 1,
		.large_type = slice};
	bg_span(b, &w.h, &big);
	for (uint64_t at = 0; at + 24 <= 8 * BG_PAGE; at += 24) {
		bg_word(b, HEAP + at, at % 48 ? HEAP + at : DATA + at % DATA_BYTES / 8 * 8);
		bg_word(b, HEAP + at + 8, UINT64_MAX);
		bg_word(b, HEAP + at + 16, UINT64_MAX);
	}
	bg_word(b, DATA, HEAP);
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, HEAP), "[][]*T");
}

/* A channel that only a blocked goroutine knows; its waiters, and the select, in circles. */
static void channels(void)
{
	sonde_cleanup(world) struct world w;
	begin(&w);
	struct bg *b = &w.b;
	const struct sonde_go_layout *l = &b->go.layout;
	uint64_t integer = bg_named_type(b, w.a, "int", 2, 8, 0, 0, 0, 0);
	uint64_t word = bg_named_type(b, w.a, "*int", 22, 8, 1, integer, 0, 0);
	struct bg_span s = bg_class_span(b, &w.h, HEAP, 1, 128, 10, false);
	bg_class_span(b, &w.h, HEAP + BG_PAGE, 1, 8, 1, true);
	struct bg_span buffer = bg_class_span(b, &w.h, HEAP + 2 * BG_PAGE, 1, 32, 4, false);
	uint64_t chan = s.base, sudog = bg_put(b, w.h.records, 512),
		 g = bg_put(b, w.h.records, 512);
	assert(l->hchan_buf.offset < 120 && l->hchan_elemtype.offset < 120);
	bg_word(b, DATA, chan);
	bg_pointer(b, &s, chan + l->hchan_buf.offset, buffer.base, 0);
	bg_field(b, chan, l->hchan_dataqsiz, 4);
	bg_field(b, chan, l->hchan_elemtype, word);
	bg_field(b, chan, l->hchan_recvq, sudog);
	for (unsigned i = 0; i < 4; i++)
		bg_pointer(b, &buffer, buffer.base + i * 8, HEAP + BG_PAGE + i * 8, 0);
	bg_field(b, g, l->g_waiting_on, sudog);
	bg_field(b, sudog, l->sudog_c, chan);
	bg_field(b, sudog, l->sudog_elem, DATA + 8);
	bg_field(b, sudog, l->sudog_next, sudog);
	bg_field(b, sudog, l->sudog_waitlink, sudog);
	bg_word(b, DATA + 8, HEAP + BG_PAGE + 64);
	assert(sonde_goroutine_vec_push(&w.gs.all, (struct sonde_goroutine){.addr = g}));
	REQUIRE_OK(open_world(&w));
	CHECK_STR(name_at(&w, chan), "chan *int");
	CHECK_STR(name_at(&w, buffer.base), "[]*int");
	for (unsigned i = 0; i < 4; i++)
		CHECK_STR(name_at(&w, HEAP + BG_PAGE + i * 8), "int");
	CHECK_STR(name_at(&w, HEAP + BG_PAGE + 64), "int"); /* the value on its way */
}

int main(void)
{
	RUN(from_headers);
	RUN(competing_types);
	RUN(large_objects);
	RUN(circles_in_data);
	RUN(sizeless_elements);
	RUN(endless_slices);
	RUN(channels);
	return tap_end();
}
