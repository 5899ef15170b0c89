#include "core/histogram.h"

#include "build_go.h"
#include "tap.h"

enum { SLOTS = 64, SLOT_BYTES = 32 };

/* A session whose heap is one span of 64 slots, all live; types are names. */
struct fake {
	struct bg b;
	struct sonde_go_span span;
	struct sonde_go_heap heap;
	uint64_t bits[2];
	struct sonde_core_marks marks;
	uint32_t of[SLOTS];
	struct sonde_go_types *types;
	struct sonde_core_typing typing;
	struct sonde_core_session s;
	struct sonde_core_histogram h;
	uint32_t n;
};

static void fake_deinit(struct fake *f)
{
	sonde_core_histogram_deinit(&f->h);
	sonde_go_types_free(f->types);
	bg_deinit(&f->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(fake)

static void begin(struct fake *f)
{
	*f = (struct fake){.n = 0};
	bg_init(&f->b, EM_X86_64);
	bg_layout(&f->b);
	bg_dwarf_begin(&f->b);
	bg_dwarf_end(&f->b);
	bg_open(&f->b);
	f->span = (struct sonde_go_span){
		.base = 0x10000, .slot_bytes = SLOT_BYTES, .n_slots = SLOTS, .n_pages = 1};
	f->heap = (struct sonde_go_heap){
		.go = &f->b.go, .spans = &f->span, .n_spans = 1, .n_slots = SLOTS};
	f->marks.bits = f->bits;
	f->typing.of = f->of;
	struct sonde_error *err = sonde_go_types_open(&f->b.go, &f->types);
	assert(!err);
	(void)err;
	f->typing.types = f->types;
	f->s = (struct sonde_core_session){.go = &f->b.go,
		.heap = &f->heap,
		.marks = &f->marks,
		.types = f->types,
		.typing = &f->typing};
	sonde_arena_init(&f->h.arena);
}

/* n further objects of that type. */
static void add(struct fake *f, const char *name, uint32_t n, bool many)
{
	uint32_t id = name ? sonde_go_types_named(f->types, name, SLOT_BYTES) : 0;
	for (uint32_t i = 0; i < n; i++, f->n++) {
		assert(f->n < SLOTS);
		f->bits[0] |= UINT64_C(1) << f->n;
		f->of[f->n] = id | (many ? SONDE_CORE_TYPE_MANY : 0);
	}
}

static void make(struct fake *f, enum sonde_core_histogram_key key)
{
	sonde_core_histogram_deinit(&f->h);
	f->h = (struct sonde_core_histogram){0};
	CHECK_OK(sonde_core_histogram_make(&f->s, key, &f->h));
}

static void types(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	add(&f, "main.B", 3, false);
	add(&f, "main.A", 3, false);
	add(&f, NULL, 5, false);
	add(&f, "main.A", 4, true);
	add(&f, "main.C", 1, false);
	f.of[f.n] = 1; /* not live: does not count */
	make(&f, SONDE_CORE_BY_TYPE);
	static const struct {
		const char *name;
		uint64_t count;
	} want[] = {{"unknown", 5}, {"[]main.A", 4}, {"main.A", 3}, {"main.B", 3}, {"main.C", 1}};
	REQUIRE(f.h.rows.n == SONDE_ARRAY_LEN(want));
	for (size_t i = 0; i < SONDE_ARRAY_LEN(want); i++) {
		CHECK_STR(f.h.rows.items[i].name, want[i].name);
		CHECK_EQ(f.h.rows.items[i].count, want[i].count);
		CHECK_EQ(f.h.rows.items[i].bytes, want[i].count * SLOT_BYTES);
		CHECK_EQ(f.h.rows.items[i].unknown, i == 0);
	}
	CHECK_EQ(f.h.n_live, 16);
	CHECK_EQ(f.h.live_bytes, 16 * SLOT_BYTES);
	CHECK_EQ(f.h.n_unknown, 5);
	CHECK_EQ(f.h.unknown_bytes, 5 * SLOT_BYTES);
}

/* Two types of one name are one row; a type called "unknown" is not the unknown one. */
static void equal_names(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	add(&f, "main.T", 2, false);
	add(&f, "main.T", 3, false);
	add(&f, "unknown", 4, false);
	add(&f, NULL, 1, false);
	make(&f, SONDE_CORE_BY_TYPE);
	REQUIRE(f.h.rows.n == 3);
	CHECK_EQ(f.h.rows.items[0].count, 5);
	CHECK(!f.h.rows.items[1].unknown && f.h.rows.items[2].unknown);
	CHECK_EQ(f.h.rows.items[1].count, 4);
}

static void strings(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	for (uint32_t i = 0; i < 6; i++, f.n++) {
		f.bits[0] |= UINT64_C(1) << f.n;
		f.of[f.n] = f.types->string_id | (i % 2 ? SONDE_CORE_TYPE_MANY : 0);
	}
	make(&f, SONDE_CORE_BY_TYPE);
	REQUIRE(f.h.rows.n == 1);
	CHECK_STR(f.h.rows.items[0].name, "string");
	CHECK_EQ(f.h.rows.items[0].count, 6);
}

static void packages(void)
{
	static const struct {
		const char *name, *package;
	} rows[] = {
		{"main.T", "main"},
		{"*main.T", "main"},
		{"[]*main.T", "main"},
		{"[4][]main.T", "main"},
		{"a/b.T", "a/b"},
		{"example.com/a.b/c.T", "example.com/a.b/c"},
		{"example.com/a/v2.T", "example.com/a/v2"},
		{"a/b.T[int]", "a/b"},
		{"a/b.T[c/d.U]", "a/b"},
		{"map[string]a/b.T", "a/b"},
		{"map[a/b.K]c/d.V", "c/d"},
		{"map[map[x.A]y.B][]z.C", "z"},
		{"map[x.K[int]]y.V", "y"},
		{"chan a/b.T", "a/b"},
		{"closure a/b.f.func1", "a/b"},
		{"closure a/b.(*T).M.func1", "a/b"},
		{"string", "(no package)"},
		{"[]uint8", "(no package)"},
		{"int", "(no package)"},
		{"struct { a/b.X int }", "(no package)"},
		{"func(a/b.T)", "(no package)"},
		{"", "(no package)"},
		{"[", "(no package)"},
		{"map[", "(no package)"},
		{"map[[", "(no package)"},
		{"*", "(no package)"},
		{"a/", "(no package)"},
		{"/", "(no package)"},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(fake) struct fake f;
		begin(&f);
		add(&f, rows[i].name, 2, false);
		make(&f, SONDE_CORE_BY_PACKAGE);
		REQUIRE(f.h.rows.n == 1);
		if (strcmp(f.h.rows.items[0].name, rows[i].package))
			printf("# type %s\n", rows[i].name);
		CHECK_STR(f.h.rows.items[0].name, rows[i].package);
	}
	/* Together they add up, and the unknown ones stay apart. */
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	add(&f, "a.X", 2, false);
	add(&f, "a.Y", 3, true);
	add(&f, "b.Z", 4, false);
	add(&f, NULL, 1, false);
	make(&f, SONDE_CORE_BY_PACKAGE);
	REQUIRE(f.h.rows.n == 3);
	CHECK_STR(f.h.rows.items[0].name, "a");
	CHECK_EQ(f.h.rows.items[0].count, 5);
	CHECK_STR(f.h.rows.items[1].name, "b");
	CHECK(f.h.rows.items[2].unknown);
}

static void nothing_live(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	make(&f, SONDE_CORE_BY_TYPE);
	CHECK_EQ(f.h.rows.n, 0);
	CHECK_EQ(f.h.n_live, 0);
}

int main(void)
{
	RUN(types);
	RUN(equal_names);
	RUN(strings);
	RUN(packages);
	RUN(nothing_live);
	return tap_end();
}
