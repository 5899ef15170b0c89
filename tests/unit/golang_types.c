#include "golang/types.h"

#include "build_go.h"
#include "tap.h"

enum { TYPES = 0x500000, HEAP = 0x900000, HEAP_BYTES = 8 << 20 };

struct fixture {
	struct bg b;
	struct bg_area *types, *heap;
	struct sonde_go_types *t;
};

static void fixture_deinit(struct fixture *f)
{
	sonde_go_types_free(f->t);
	bg_deinit(&f->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(fixture)

static void begin(struct fixture *f)
{
	*f = (struct fixture){.t = NULL};
	bg_init(&f->b, EM_X86_64);
	bg_layout(&f->b);
	f->types = bg_area(&f->b, TYPES, 1 << 16);
	f->heap = bg_area(&f->b, HEAP, HEAP_BYTES);
	bg_name(&f->b, f->types, "");
}

static void open_types(struct fixture *f)
{
	bg_dwarf_begin(&f->b);
	bg_dwarf_end(&f->b);
	bg_open(&f->b);
	CHECK_OK(sonde_go_types_open(&f->b.go, &f->t));
}

static const struct sonde_go_type *type(struct fixture *f, uint64_t addr)
{
	return sonde_go_types_slots(f->t, sonde_go_types_runtime(f->t, addr));
}

/* "0p 8s": offsets and kinds. */
static const char *slots(const struct sonde_go_type *t)
{
	static char text[2048];
	static const char kinds[] = "pSseimcfa"; /* by enum sonde_go_slot_kind; S string, s slice */
	text[0] = 0;
	for (uint32_t i = 0; i < t->n_slots && i < 70; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRIu64 "%c",
			i ? " " : "", t->slots[i].offset_bytes, kinds[t->slots[i].kind]);
	return text;
}

static void kinds(void)
{
	sonde_cleanup(fixture) struct fixture f;
	begin(&f);
	struct bg *b = &f.b;
	struct bg_area *a = f.types;
	uint64_t integer = bg_named_type(b, a, "int", 2, 8, 0, 0, 0, 0),
		 string = bg_named_type(b, a, "string", 24, 16, 1, 0, 0, 0),
		 pointer = bg_named_type(b, a, "*int", 22, 8, 1, integer, 0, 0),
		 slice = bg_named_type(b, a, "[]int", 23, 24, 1, integer, 0, 0),
		 eface = bg_named_type(b, a, "interface {}", 20, 16, 2, 0, 0, 0),
		 iface = bg_named_type(b, a, "error", 20, 16, 2, 0, 0x1234, 1),
		 map = bg_named_type(b, a, "map[string]int", 21, 8, 1, string, integer, 0),
		 chan = bg_named_type(b, a, "chan int", 18, 8, 1, integer, 0, 0),
		 func = bg_named_type(b, a, "func()", 19, 8, 1, 0, 0, 0),
		 unsafe = bg_named_type(b, a, "unsafe.Pointer", 26, 8, 1, 0, 0, 0);
	const struct bg_member members[] = {{string, 0}, {integer, 16}, {pointer, 24}, {slice, 32},
		{eface, 56}, {iface, 72}, {map, 88}, {chan, 96}, {func, 104}, {unsafe, 112}};
	uint64_t all = bg_struct(b, a, "main.All", 120, 0x7fff, members, SONDE_ARRAY_LEN(members));
	uint64_t outer =
		bg_struct(b, a, "main.Outer", 128, 0xffff, (struct bg_member[]){{all, 8}}, 1);
	open_types(&f);
	const struct sonde_go_type *t = type(&f, all);
	CHECK_STR(t->name, "main.All");
	CHECK_EQ(t->size_bytes, 120);
	CHECK_STR(slots(t), "0S 24p 32s 56e 72i 88m 96c 104f 112p");
	CHECK_STR(slots(type(&f, outer)), "8S 32p 40s 64e 80i 96m 104c 112f 120p");
	CHECK_STR(sonde_go_type_of(f.t, t->slots[1].elem)->name, "int");
	CHECK_EQ(t->slots[8].elem, 0);
	CHECK_EQ(sonde_go_types_runtime(f.t, all), sonde_go_types_runtime(f.t, all));
	t = type(&f, map);
	CHECK_STR(sonde_go_type_of(f.t, t->key)->name, "string");
	CHECK_STR(sonde_go_type_of(f.t, t->elem)->name, "int");
	CHECK_STR(slots(type(&f, integer)), "");
}

static void flags(void)
{
	sonde_cleanup(fixture) struct fixture f;
	begin(&f);
	uint64_t star = bg_type(&f.b, f.types,
			 (struct bg_type){.size_bytes = 8,
				 .kind = 2,
				 .tflag = 2,
				 .str = bg_name(&f.b, f.types, "*main.T")}),
		 direct =
			 bg_type(&f.b, f.types, (struct bg_type){.size_bytes = 8, .kind = 25 | 32});
	open_types(&f);
	CHECK_STR(type(&f, star)->name, "main.T");
	CHECK(!type(&f, star)->is_direct && type(&f, direct)->is_direct);
	CHECK_EQ(type(&f, direct)->kind, 25);
}

static void arrays(void)
{
	sonde_cleanup(fixture) struct fixture f;
	begin(&f);
	struct bg *b = &f.b;
	uint64_t pointer = bg_named_type(b, f.types, "*T", 22, 8, 1, 0, 0, 0),
		 pair = bg_struct(b, f.types, "pair", 24, 5,
			 (struct bg_member[]){{pointer, 0}, {pointer, 16}}, 2),
		 three = bg_named_type(b, f.types, "[3]pair", 17, 72, 0, pair, 0, 3),
		 none = bg_named_type(b, f.types, "[0]pair", 17, 0, 0, pair, 0, 0),
		 most = bg_named_type(b, f.types, "[32]pair", 17, 768, 0, pair, 0, 32),
		 more = bg_named_type(b, f.types, "[33]pair", 17, 792, 0, pair, 0, 33),
		 endless = bg_named_type(b, f.types, "[..]pair", 17, 792, 0, pair, 0, UINT64_MAX);
	open_types(&f);
	CHECK_STR(slots(type(&f, three)), "0p 16p 24p 40p 48p 64p");
	CHECK_STR(slots(type(&f, none)), "");
	CHECK_EQ(type(&f, most)->n_slots, 64);
	CHECK_STR(slots(type(&f, more)), "0a");
	CHECK_STR(slots(type(&f, endless)), "0a");
}

/* What reflect made at run time lies in no module: its name is composed. */
static void composed_names(void)
{
	sonde_cleanup(fixture) struct fixture f;
	begin(&f);
	struct bg *b = &f.b;
	struct bg_area *h = f.heap;
	uint64_t t = bg_named_type(b, f.types, "main.T", 2, 8, 0, 0, 0, 0);
	const struct {
		uint64_t addr;
		const char *name;
	} rows[] = {
		{bg_named_type(b, h, NULL, 22, 8, 1, t, 0, 0), "*main.T"},
		{bg_named_type(b, h, NULL, 23, 24, 1, t, 0, 0), "[]main.T"},
		{bg_named_type(b, h, NULL, 17, 24, 0, t, 0, 3), "[3]main.T"},
		{bg_named_type(b, h, NULL, 21, 8, 1, t, t, 0), "map[main.T]main.T"},
		{bg_named_type(b, h, NULL, 18, 8, 1, t, 0, 0), "chan main.T"},
		{bg_named_type(b, h, NULL, 25, 8, 0, 0, 0, 0), NULL},
		{bg_named_type(b, h, NULL, 25, 0, 0, 0, 0, 0), "struct {}"},
		{bg_struct(b, h, NULL, 16, 0, (struct bg_member[]){{t, 0}, {t, 8}}, 2),
			"struct { _ main.T; _ main.T }"},
	};
	open_types(&f);
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		const char *name = type(&f, rows[i].addr)->name;
		CHECK(rows[i].name ? !strcmp(name, rows[i].name)
				   : !strncmp(name, "reflect type 0x", 15));
	}
}

static void damaged(void)
{
	sonde_cleanup(fixture) struct fixture f;
	begin(&f);
	struct bg *b = &f.b;
	uint64_t kind0 = bg_named_type(b, f.types, "x", 0, 8, 0, 0, 0, 0),
		 kind27 = bg_named_type(b, f.types, "x", 27, 8, 0, 0, 0, 0),
		 self = bg_named_type(b, f.types, "main.Self", 22, 8, 1, 0, 0, 0),
		 lost = bg_named_type(b, f.types, "main.Lost", 22, 8, 1, 0x1234, 0, 0),
		 no_name = bg_type(b, f.types,
			 (struct bg_type){.size_bytes = 8, .kind = 22, .str = INT32_MAX}),
		 far_field = bg_struct(
			 b, f.types, "main.Far", 8, 1, (struct bg_member[]){{self, 9}}, 1),
		 many_fields =
			 bg_named_type(b, f.types, "main.Many", 25, 8, 1, 0, TYPES, UINT64_MAX),
		 no_fields = bg_named_type(b, f.types, "main.None", 25, 8, 1, 0, 0x1234, 5);
	bg_word(b, self + b->go.layout.sizeof_type, self);
	open_types(&f);
	const uint64_t none[] = {kind0, kind27, 0, 1, TYPES + (1 << 16) - 8, UINT64_MAX - 8};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(none); i++)
		CHECK_EQ(sonde_go_types_runtime(f.t, none[i]), 0);
	uint32_t id = sonde_go_types_runtime(f.t, self);
	CHECK_EQ(sonde_go_type_of(f.t, id)->elem, id);
	CHECK_EQ(type(&f, lost)->elem, 0);
	CHECK_STR(type(&f, no_name)->name, "*unknown");
	CHECK_STR(slots(type(&f, far_field)), "");
	CHECK_STR(slots(type(&f, many_fields)), "");
	CHECK_STR(slots(type(&f, no_fields)), "");
	CHECK_STR(sonde_go_type_of(f.t, UINT32_MAX)->name, "unknown");
}

/* Two fields of one struct type each, 60 deep, and no pointer at the bottom. */
static void breadth(void)
{
	for (int leaf_pointer = 0; leaf_pointer < 2; leaf_pointer++) {
		sonde_cleanup(fixture) struct fixture f;
		begin(&f);
		uint64_t t = leaf_pointer ? bg_named_type(&f.b, f.types, "*T", 22, 8, 1, 0, 0, 0)
					  : bg_named_type(&f.b, f.types, "int", 2, 8, 0, 0, 0, 0);
		for (int i = 0; i < 60; i++)
			t = bg_struct(&f.b, f.types, "main.S", 8, 1,
				(struct bg_member[]){{t, 0}, {t, 0}}, 2);
		open_types(&f);
		type(&f, t);
		CHECK_EQ(bg_noted(&f.b, "type with too many pointers"), 1);
	}
}

/* Arrays of structs of arrays: 20,000 descriptors, one in the other. */
static void depth(void)
{
	sonde_cleanup(fixture) struct fixture f;
	begin(&f);
	uint64_t t = bg_named_type(&f.b, f.types, "*T", 22, 8, 1, 0, 0, 0);
	for (int i = 0; i < 20000; i++) {
		t = bg_struct(&f.b, f.heap, NULL, 8, 1, (struct bg_member[]){{t, 0}}, 1);
		t = bg_named_type(&f.b, f.heap, NULL, 17, 8, 1, t, 0, 1);
	}
	open_types(&f);
	type(&f, t);
	CHECK(bg_noted(&f.b, "type nested too deep") + bg_noted(&f.b, "too many pointers") > 0);
}

int main(void)
{
	RUN(kinds);
	RUN(flags);
	RUN(arrays);
	RUN(composed_names);
	RUN(damaged);
	RUN(breadth);
	RUN(depth);
	return tap_end();
}
