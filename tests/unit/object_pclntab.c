#include "object/pclntab.h"

#include "build_go.h"
#include "tap.h"

enum { TEXT = 0x401000, GOFUNC = 0x7000000 };

static const char *const file_names[] = {"/src/main.go", "/src/inl.go", NULL};

struct table {
	struct bg_table t;
	struct sonde_buf bytes, func_data;
	struct sonde_pclntab decoded;
};

static void table_deinit(struct table *t)
{
	sonde_buf_deinit(&t->bytes);
	sonde_buf_deinit(&t->func_data);
}
SONDE_DEFINE_CLEANUP_DEINIT(table)

static struct sonde_error *decode(struct table *t)
{
	return sonde_pclntab_decode((const uint8_t *)t->bytes.data, t->bytes.len, TEXT, GOFUNC,
		(struct sonde_bytes){(const uint8_t *)t->func_data.data, t->func_data.len},
		&t->decoded);
}

static void build(struct table *t, unsigned word, bool go118, struct bg_function *f, size_t n)
{
	t->t = (struct bg_table){.text = TEXT, .go118 = go118, .files = file_names};
	bg_table_write(&t->t, word, f, n, &t->bytes);
}

/* runtime.inlinedCall of both formats. */
static void inlined(
	struct table *t, uint8_t func_id, uint32_t name, int32_t parent_pc, int32_t line)
{
	struct sonde_buf *b = &t->func_data;
	if (t->t.go118) {
		bg_number(b, 0xffff, 2);
		bg_number(b, func_id, 1);
		bg_number(b, 0, 1);
		bg_number(b, 7, 4);
		bg_number(b, 8, 4);
		bg_number(b, name, 4);
		bg_number(b, (uint32_t)parent_pc, 4);
	} else {
		bg_number(b, func_id, 1);
		bg_number(b, 0, 3);
		bg_number(b, name, 4);
		bg_number(b, (uint32_t)parent_pc, 4);
		bg_number(b, (uint32_t)line, 4);
	}
}

/* Offsets of the names in the order of the functions: "main.a" at 1, and so on. */
static struct bg_function three[3] = {
	{.name = "main.a",
		.size_bytes = 0x40,
		.args_bytes = 16,
		.start_line = 9,
		.id = 3,
		.pcsp = {{0, 4}, {24, 0x38}, {0, 4}},
		.pcfile = {{0, 0x40}},
		.pcln = {{10, 0x20}, {4, 0x10}, {12, 0x10}},
		.n_pcdata = 2,
		.pcdata = {{{-1, 0x10}, {-2, 0x30}}, {{-1, 8}, {0, 8}, {3, 0x30}}},
		.n_funcdata = 3,
		.funcdata = {BG_NO_FUNCDATA, 4, 4000}},
	{.name = "main.b",
		.size_bytes = 0x20,
		.args_bytes = INT32_MIN,
		.flags = SONDE_FUNC_TOP_FRAME,
		.pcsp = {{0, 0x20}},
		.pcfile = {{1, 0x20}},
		.pcln = {{1, 0x20}}},
	{.name = "main.c", .size_bytes = 0x10, .pcsp = {{8, 0x10}}},
};

static void header(void)
{
	for (int form = 0; form < 4; form++) {
		sonde_cleanup(table) struct table t = {0};
		unsigned word = form & 1 ? 4 : 8;
		build(&t, word, form & 2, three, 3);
		REQUIRE_OK(decode(&t));
		CHECK_EQ(t.decoded.n_functions, 3);
		CHECK_EQ(t.decoded.word_bytes, word);
		CHECK_EQ(t.decoded.quantum, 1);
		CHECK_EQ(t.decoded.end_addr, TEXT + 0x70);
		CHECK_EQ(t.decoded.has_start_line, !(form & 2));
		CHECK_STR(t.decoded.version, form & 2 ? "1.18" : "1.20");
		struct sonde_pcfunc f;
		REQUIRE(sonde_pclntab_function(&t.decoded, 0, &f));
		CHECK_STR(f.name, "main.a");
		CHECK_EQ(f.entry, TEXT);
		CHECK_EQ(f.end, TEXT + 0x40);
		CHECK_EQ(f.args_bytes, 16);
		CHECK_EQ(f.start_line, form & 2 ? 0 : 9);
		CHECK_EQ(f.id, 3);
		CHECK_EQ(f.n_pcdata, 2);
		CHECK_EQ(f.n_funcdata, 3);
		REQUIRE(sonde_pclntab_function(&t.decoded, 1, &f));
		CHECK_EQ(f.flags, SONDE_FUNC_TOP_FRAME);
		CHECK_EQ((uint32_t)f.args_bytes, 0x80000000);
		CHECK(!sonde_pclntab_function(&t.decoded, 3, &f));
		CHECK(!sonde_pclntab_function(&t.decoded, UINT32_MAX, &f));
	}
}

static void other_magics(void)
{
	static const struct {
		uint32_t magic;
		enum sonde_error_code code;
		const char *text;
	} rows[] = {
		{0xfffffffa, SONDE_UNSUPPORTED, "format of Go 1.16"},
		{0xfffffffb, SONDE_UNSUPPORTED, "format of Go 1.2"},
		{0xfffffff2, SONDE_BAD_DATA, "unknown header 0xfffffff2"},
		{0, SONDE_BAD_DATA, "unknown header"},
		{0xf1ffffff, SONDE_BAD_DATA, "unknown header"}, /* big-endian */
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(table) struct table t = {0};
		build(&t, 8, false, three, 3);
		memcpy(t.bytes.data, &rows[i].magic, 4);
		CHECK_ERROR(decode(&t), rows[i].code, rows[i].text);
	}
}

static void damaged_headers(void)
{
	sonde_cleanup(table) struct table t = {0};
	static const struct {
		size_t at;
		uint64_t v;
		unsigned bytes;
		const char *text;
	} rows[] = {
		{4, 1, 2, "unknown header"}, /* padding */
		{6, 3, 1, "unknown header"}, /* quantum */
		{6, 0, 1, "unknown header"},
		{7, 2, 1, "unknown header"}, /* word size */
		{7, 0, 1, "unknown header"},
		{8, 0, 8, "0 functions"},
		{8, UINT64_MAX, 8, "functions in"},
		{8, UINT64_C(1) << 32, 8, "functions in"},
		{8, UINT64_MAX / 8, 8, "functions in"},
		{8, 1000, 8, "1000 functions"},
		{32, UINT64_MAX, 8, "part 0 lies outside"},
		{40, 1 << 20, 8, "part 1 lies outside"},
		{48, 1 << 20, 8, "part 2 lies outside"},
		{56, 1 << 20, 8, "part 3 lies outside"},
		{64, 1 << 20, 8, "part 4 lies outside"},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		build(&t, 8, false, three, 3);
		memcpy(t.bytes.data + rows[i].at, &rows[i].v, rows[i].bytes);
		CHECK_ERROR(decode(&t), SONDE_BAD_DATA, rows[i].text);
	}
	/* The last part may be empty only if it holds no rows. */
	build(&t, 8, false, three, 3);
	uint64_t end = t.bytes.len;
	memcpy(t.bytes.data + 64, &end, 8);
	CHECK_ERROR(decode(&t), SONDE_BAD_DATA, "3 functions in 0 bytes");
}

/* Every prefix of a table is refused or read within its bounds (each is an allocation of its own, for ASan). */
static void every_length(void)
{
	sonde_cleanup(table) struct table t = {0};
	build(&t, 8, false, three, 3);
	for (size_t len = 0; len <= t.bytes.len; len++) {
		uint8_t *copy = malloc(len ? len : 1);
		memcpy(copy, t.bytes.data, len);
		struct sonde_pclntab d;
		struct sonde_error *err =
			sonde_pclntab_decode(copy, len, TEXT, GOFUNC, (struct sonde_bytes){0}, &d);
		if (len < t.t.offsets[4] + 3 * 8 + 4)
			CHECK(err && err->code == SONDE_BAD_DATA);
		else
			CHECK(!err);
		struct sonde_pcfunc f;
		for (uint32_t i = 0; !err && i < 3; i++) {
			if (!sonde_pclntab_function(&d, i, &f))
				continue;
			struct sonde_pccall call;
			CHECK(sonde_pclntab_calls(&d, &f, f.entry, &call, 1) >= 1);
		}
		sonde_error_free(err);
		free(copy);
	}
}

static void find(void)
{
	sonde_cleanup(table) struct table t = {0};
	build(&t, 8, false, three, 3);
	REQUIRE_OK(decode(&t));
	static const struct {
		uint64_t pc;
		int index;
	} rows[] = {
		{TEXT, 0},
		{TEXT + 0x3f, 0},
		{TEXT + 0x40, 1},
		{TEXT + 0x5f, 1},
		{TEXT + 0x60, 2},
		{TEXT + 0x6f, 2},
		{TEXT + 0x70, -1},
		{TEXT - 1, -1},
		{0, -1},
		{UINT64_MAX, -1},
		{TEXT + (UINT64_C(1) << 32), -1},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		struct sonde_pcfunc f = {0};
		bool found = sonde_pclntab_find(&t.decoded, rows[i].pc, &f);
		CHECK_EQ(found, rows[i].index >= 0);
		if (found)
			CHECK_EQ(f.index, rows[i].index);
	}
}

/* Rows whose entries do not ascend: found or not, but never outside what the row says. */
static void unsorted_rows(void)
{
	sonde_cleanup(table) struct table t = {0};
	build(&t, 8, false, three, 3);
	bg_number(&t.bytes, 0, 4);
	for (uint32_t a = 0; a < 6; a++) {
		for (size_t row = 0; row < 4; row++) {
			static const uint32_t values[] = {0, 0x70, 0xffffffff, 0x20, 1, 0x80000000};
			memcpy(t.bytes.data + t.t.offsets[4] + row * 8, &values[(a + row * a) % 6],
				4);
		}
		REQUIRE_OK(decode(&t));
		for (uint64_t pc = TEXT - 8; pc < TEXT + 0x100; pc += 4) {
			struct sonde_pcfunc f;
			if (sonde_pclntab_find(&t.decoded, pc, &f))
				CHECK(pc >= f.entry && pc < f.end);
		}
	}
}

static int32_t value_at(struct table *t, uint32_t i, uint32_t table, uint64_t offset)
{
	struct sonde_pcfunc f;
	int32_t v = INT32_MIN;
	if (!sonde_pclntab_function(&t->decoded, i, &f) ||
		!sonde_pclntab_value(&t->decoded, &f, table, f.entry + offset, &v))
		return INT32_MIN;
	return v;
}

static void values(void)
{
	sonde_cleanup(table) struct table t = {0};
	build(&t, 8, false, three, 3);
	REQUIRE_OK(decode(&t));
	struct sonde_pcfunc f;
	REQUIRE(sonde_pclntab_function(&t.decoded, 0, &f));
	CHECK_EQ(value_at(&t, 0, f.pcsp, 0), 0);
	CHECK_EQ(value_at(&t, 0, f.pcsp, 3), 0);
	CHECK_EQ(value_at(&t, 0, f.pcsp, 4), 24);
	CHECK_EQ(value_at(&t, 0, f.pcsp, 0x3b), 24);
	CHECK_EQ(value_at(&t, 0, f.pcsp, 0x3c), 0);
	CHECK_EQ(value_at(&t, 0, f.pcsp, 0x3f), 0);
	CHECK_EQ((uint32_t)value_at(&t, 0, f.pcsp, 0x40), (uint32_t)INT32_MIN);
	CHECK_EQ((uint32_t)value_at(&t, 0, f.pcsp, UINT64_MAX), (uint32_t)INT32_MIN);
	CHECK_EQ(value_at(&t, 0, f.pcln, 0x1f), 10);
	CHECK_EQ(value_at(&t, 0, f.pcln, 0x20), 4);
	CHECK_EQ(value_at(&t, 0, f.pcln, 0x30), 12);
	/* A table that is absent, or whose offset lies outside. */
	CHECK_EQ((uint32_t)value_at(&t, 0, 0, 0), (uint32_t)INT32_MIN);
	CHECK_EQ((uint32_t)value_at(&t, 0, (uint32_t)t.bytes.len, 0), (uint32_t)INT32_MIN);
	CHECK_EQ((uint32_t)value_at(&t, 0, UINT32_MAX, 0), (uint32_t)INT32_MIN);
	CHECK_EQ(sonde_pclntab_pcdata(&t.decoded, &f, SONDE_PCDATA_UNSAFE_POINT, TEXT + 0x10), -2);
	CHECK_EQ(sonde_pclntab_pcdata(&t.decoded, &f, SONDE_PCDATA_STACK_MAP_INDEX, TEXT), -1);
	CHECK_EQ(sonde_pclntab_pcdata(&t.decoded, &f, SONDE_PCDATA_STACK_MAP_INDEX, TEXT + 8), 0);
	CHECK_EQ(sonde_pclntab_pcdata(&t.decoded, &f, SONDE_PCDATA_STACK_MAP_INDEX, TEXT + 16), 3);
	CHECK_EQ(sonde_pclntab_pcdata(&t.decoded, &f, SONDE_PCDATA_INLINE_TREE_INDEX, TEXT), -1);
	REQUIRE(sonde_pclntab_function(&t.decoded, 2, &f));
	CHECK_EQ(sonde_pclntab_pcdata(&t.decoded, &f, SONDE_PCDATA_UNSAFE_POINT, TEXT + 0x60), -1);
}

/* pc-value tables byte by byte: put where main.a's pcsp stands, at offset 1 of the part. */
static bool raw_value(
	const uint8_t *bytes, size_t len, uint64_t offset, uint8_t quantum, int32_t *ret)
{
	uint8_t *copy = malloc(len + 1);
	copy[0] = 0;
	memcpy(copy + 1, bytes, len);
	struct sonde_pclntab t = {.pc_values = {copy, len + 1}, .quantum = quantum};
	struct sonde_pcfunc f = {.entry = TEXT, .end = TEXT + 0x1000};
	bool found = sonde_pclntab_value(&t, &f, 1, TEXT + offset, ret);
	free(copy);
	return found;
}

static void value_bytes(void)
{
	static const struct {
		const char *bytes;
		size_t len;
		uint64_t offset;
		uint8_t quantum;
		bool found;
		int32_t value;
	} rows[] = {
		{"\x00\x04\x00", 3, 3, 1, true, -1}, /* the first row may have no delta: -1 */
		{"\x00\x04\x00", 3, 4, 1, false, 0}, /* a later one ends the table */
		{"\x00\x04\x00\x04", 4, 5, 1, false, 0},
		{"\x02\x04\x03\x04\x00", 5, 3, 1, true, 0},
		{"\x02\x04\x03\x04\x00", 5, 7, 1, true, -2}, /* 3 is -2: 0 - 2 */
		{"\x02\x04\x01\x04\x00", 5, 7, 1, true, -1},
		{"\x02\x04\x00", 3, 15, 4, true, 0}, /* arm64: quanta of 4 */
		{"\x02\x04\x00", 3, 16, 4, false, 0},
		{"\x02\x00\x02\x04\x00", 5, 0, 1, true, 1}, /* a row for no pc */
		{"\xfe\xff\xff\xff\x0f\x01\x00", 7, 0, 1, true, INT32_MAX - 1},
		{"\xff\xff\xff\xff\x0f\x01\x00", 7, 0, 1, true, INT32_MAX}, /* -1 - 2^31 wraps */
		{"\xfe\xff\xff\xff\x0f\x01\x04\x01\x00", 9, 1, 1, true, INT32_MIN},
		{"\x02", 1, 0, 1, false, 0}, /* no advance */
		{"\x82", 1, 0, 1, false, 0}, /* no end of the varint */
		{"\x02\x84", 2, 0, 1, false, 0},
		{"\x02\x04", 2, 3, 1, true, 0}, /* nobody looks behind the row */
		{"\x02\x04", 2, 4, 1, false, 0},
		{"\x02\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00", 12, 0, 1, false, 0},
		{"\x02\xff\xff\xff\xff\x0f\x00", 7, UINT32_MAX - UINT64_C(1), 1, true, 0},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, 0, 1, false, 0},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		int32_t v = 77;
		bool found = raw_value((const uint8_t *)rows[i].bytes, rows[i].len, rows[i].offset,
			rows[i].quantum, &v);
		if (found != rows[i].found || (found && v != rows[i].value))
			printf("# row %zu: found %d, value %d\n", i, found, v);
		CHECK(found == rows[i].found);
		CHECK(!found ? v == 77 : v == rows[i].value);
	}
}

static void funcdata(void)
{
	sonde_cleanup(table) struct table t = {0};
	for (int i = 0; i < 10; i++)
		bg_number(&t.func_data, i, 1);
	build(&t, 8, false, three, 3);
	REQUIRE_OK(decode(&t));
	struct sonde_pcfunc f;
	struct sonde_bytes b;
	uint64_t addr = 0;
	REQUIRE(sonde_pclntab_function(&t.decoded, 0, &f));
	CHECK(!sonde_pclntab_funcdata(
		&t.decoded, &f, SONDE_FUNCDATA_ARGS_POINTER_MAPS, &b, NULL)); /* ~0 */
	REQUIRE(sonde_pclntab_funcdata(
		&t.decoded, &f, SONDE_FUNCDATA_LOCALS_POINTER_MAPS, &b, &addr));
	CHECK_EQ(b.len, 6);
	CHECK_EQ(b.data[0], 4);
	CHECK_EQ(addr, GOFUNC + 4);
	CHECK(!sonde_pclntab_funcdata(
		&t.decoded, &f, SONDE_FUNCDATA_STACK_OBJECTS, &b, NULL)); /* outside */
	CHECK(!sonde_pclntab_funcdata(&t.decoded, &f, SONDE_FUNCDATA_INLINE_TREE, &b, NULL));
	REQUIRE(sonde_pclntab_function(&t.decoded, 1, &f));
	CHECK(!sonde_pclntab_funcdata(
		&t.decoded, &f, SONDE_FUNCDATA_LOCALS_POINTER_MAPS, &b, NULL));
}

/*
 * main.outer: [0x10, 0x20) is main.mid inlined at 0x4, [0x20, 0x30) is main.leaf inlined into main.mid at 0x14. Names stand
 * where functions of no code of their own put them.
 */
static struct bg_function nested[3] = {
	{.name = "main.outer",
		.size_bytes = 0x40,
		.start_line = 1,
		.pcfile = {{0, 0x20}, {1, 0x10}, {0, 0x10}},
		.pcln = {{5, 0x10}, {50, 0x10}, {500, 0x10}, {6, 0x10}},
		.n_pcdata = 3,
		.pcdata = {{{0}}, {{0}}, {{-1, 0x10}, {0, 0x10}, {1, 0x10}, {-1, 0x10}}},
		.n_funcdata = 4,
		.funcdata = {BG_NO_FUNCDATA, BG_NO_FUNCDATA, BG_NO_FUNCDATA, 0}},
	{.name = "main.mid", .size_bytes = 1},
	{.name = "main.leaf", .size_bytes = 1},
};
enum { NAME_MID = 1 + 11, NAME_LEAF = NAME_MID + 9 };

static void inline_trees(void)
{
	for (int go118 = 0; go118 < 2; go118++) {
		sonde_cleanup(table) struct table t = {.t.go118 = go118};
		inlined(&t, 21, NAME_MID, 0x4, 40);
		inlined(&t, 22, NAME_LEAF, 0x14, 400);
		build(&t, 8, go118, nested, 3);
		REQUIRE_OK(decode(&t));
		struct sonde_pcfunc f;
		struct sonde_pccall c[4];
		REQUIRE(sonde_pclntab_function(&t.decoded, 0, &f));
		REQUIRE(sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x8, c, 4) == 1);
		CHECK_STR(c[0].function, "main.outer");
		CHECK(!c[0].inlined);
		CHECK_EQ(c[0].line, 5);
		CHECK_STR(c[0].file, "/src/main.go");
		REQUIRE(sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x18, c, 4) == 2);
		CHECK_STR(c[0].function, "main.mid");
		CHECK(c[0].inlined && !c[1].inlined);
		CHECK_EQ(c[0].line, 50);
		CHECK_EQ(c[0].func_id, 21);
		CHECK_EQ(c[0].start_line, go118 ? 0 : 40);
		CHECK_EQ(c[1].line, 5);
		REQUIRE(sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x2f, c, 4) == 3);
		CHECK_STR(c[0].function, "main.leaf");
		CHECK_STR(c[0].file, "/src/inl.go");
		CHECK_EQ(c[0].line, 500);
		CHECK_STR(c[1].function, "main.mid");
		CHECK_EQ(c[1].line, 50);
		CHECK_STR(c[2].function, "main.outer");
		CHECK_EQ(c[2].line, 5);
		CHECK_EQ(sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x30, c, 4), 1);
		CHECK_EQ(c[0].line, 6);
		/* The count is whole where the room is not. */
		c[1].line = 77;
		CHECK_EQ(sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x2f, c, 1), 3);
		CHECK_EQ(c[1].line, 77);
		CHECK_EQ(sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x2f, NULL, 0), 3);
	}
}

static size_t calls_with(int32_t parent_mid, int32_t parent_leaf, size_t tree_bytes, uint32_t name)
{
	sonde_cleanup(table) struct table t = {0};
	inlined(&t, 0, name, parent_mid, 0);
	inlined(&t, 0, NAME_LEAF, parent_leaf, 0);
	t.func_data.len = tree_bytes;
	build(&t, 8, false, nested, 3);
	struct sonde_error *err = decode(&t);
	struct sonde_pcfunc f;
	struct sonde_pccall c[8];
	if (err || !sonde_pclntab_function(&t.decoded, 0, &f))
		return 0;
	size_t n = sonde_pclntab_calls(&t.decoded, &f, TEXT + 0x28, c, 8);
	for (size_t i = 0; i < n && i < 8; i++)
		CHECK(strlen(c[i].function) && strlen(c[i].file));
	if (n <= 8)
		CHECK_STR(c[n - 1].function, "main.outer");
	return n;
}

static void damaged_trees(void)
{
	CHECK_EQ(calls_with(4, 0x14, 32, NAME_MID), 3);
	CHECK_EQ(calls_with(4, -1, 32, NAME_MID),
		2); /* a parent outside: the function itself ends it */
	CHECK_EQ(calls_with(4, 0x40, 32, NAME_MID), 2);
	CHECK_EQ(calls_with(4, INT32_MAX, 32, NAME_MID), 2);
	CHECK_EQ(calls_with(4, INT32_MIN, 32, NAME_MID), 2);
	CHECK_EQ(calls_with(4, 0x14, 31, NAME_MID), 1); /* the record is cut */
	CHECK_EQ(calls_with(4, 0x14, 16, NAME_MID), 1);
	CHECK_EQ(calls_with(4, 0x14, 0, NAME_MID), 1);
	CHECK_EQ(calls_with(4, 0x14, 32, UINT32_MAX), 3);
	/* Circles of one and of two are cut somewhere. */
	size_t n = calls_with(4, 0x24, 32, NAME_MID);
	CHECK(n > 100 && n < 100000);
	n = calls_with(0x24, 0x14, 32, NAME_MID);
	CHECK(n > 100 && n < 100000);
}

static const char *file_of(struct table *t, uint32_t i)
{
	static struct sonde_pccall c;
	struct sonde_pcfunc f;
	if (!sonde_pclntab_function(&t->decoded, i, &f))
		return NULL;
	sonde_pclntab_calls(&t->decoded, &f, f.entry, &c, 1);
	return c.file;
}

static void file_names_by_unit(void)
{
	sonde_cleanup(table) struct table t = {0};
	struct bg_function f[] = {
		{.name = "a", .size_bytes = 8, .pcfile = {{1, 8}}},
		{.name = "b", .size_bytes = 8, .pcfile = {{0, 8}}, .cu_offset = 1},
		{.name = "c", .size_bytes = 8, .pcfile = {{-2, 8}}},
		{.name = "d", .size_bytes = 8, .pcfile = {{INT32_MAX, 8}}},
		{.name = "e", .size_bytes = 8, .pcfile = {{INT32_MAX, 8}}, .cu_offset = UINT32_MAX},
		{.name = "g", .size_bytes = 8},
	};
	build(&t, 8, false, f, SONDE_ARRAY_LEN(f));
	REQUIRE_OK(decode(&t));
	CHECK_STR(file_of(&t, 0), "/src/inl.go");
	CHECK_STR(file_of(&t, 1), "/src/inl.go");
	CHECK_STR(file_of(&t, 2), "?");
	CHECK_STR(file_of(&t, 3), "?");
	CHECK_STR(file_of(&t, 4), "?");
	CHECK_STR(file_of(&t, 5), "?");
	/* ~0 in the CU table: the linker left the file out. */
	memset(t.bytes.data + t.t.offsets[1] + 4, 0xff, 4);
	CHECK_STR(file_of(&t, 0), "?");
	uint32_t far = 1 << 20;
	memcpy(t.bytes.data + t.t.offsets[1] + 4, &far, 4);
	CHECK_STR(file_of(&t, 0), "?");
}

/* A name that no NUL ends: the names stand last in this table. */
static void names_without_end(void)
{
	sonde_cleanup(table) struct table t = {0};
	build(&t, 8, false, three, 3);
	uint64_t names = t.bytes.len;
	sonde_buf_add(&t.bytes, "\0main.x", 7);
	memcpy(t.bytes.data + 32, &names, 8);
	REQUIRE_OK(decode(&t));
	struct sonde_pcfunc f;
	REQUIRE(sonde_pclntab_function(&t.decoded, 0, &f));
	CHECK_STR(f.name, "?");
	sonde_buf_char(&t.bytes, 0);
	REQUIRE_OK(decode(&t));
	REQUIRE(sonde_pclntab_function(&t.decoded, 0, &f));
	CHECK_STR(f.name, "main.x");
	/* main.b's stands behind the end. */
	REQUIRE(sonde_pclntab_function(&t.decoded, 1, &f));
	CHECK_STR(f.name, "?");
}

/* Each 32-bit number behind the header, set to the values that hurt: nothing is read outside. */
static void hostile_numbers(void)
{
	static const uint32_t values[] = {
		0, 1, 0x7f, 0xff, 0x1000, INT32_MAX, 0x80000000, UINT32_MAX};
	sonde_cleanup(table) struct table t = {0};
	inlined(&t, 0, NAME_MID, 4, 0);
	inlined(&t, 0, NAME_LEAF, 0x14, 0);
	build(&t, 8, false, nested, 3);
	REQUIRE_OK(decode(&t));
	struct sonde_bytes good = {(const uint8_t *)t.bytes.data, t.bytes.len};
	for (size_t at = 72; at + 4 <= good.len; at++) {
		for (size_t k = 0; k < SONDE_ARRAY_LEN(values); k++) {
			uint32_t was;
			memcpy(&was, t.bytes.data + at, 4);
			memcpy(t.bytes.data + at, &values[k], 4);
			for (uint32_t i = 0; i < 3; i++) {
				struct sonde_pcfunc f;
				struct sonde_pccall c[3];
				struct sonde_bytes b;
				if (!sonde_pclntab_function(&t.decoded, i, &f))
					continue;
				CHECK(sonde_pclntab_calls(&t.decoded, &f, f.entry + 0x28, c, 3) >=
					1);
				for (unsigned d = 0; d < 8; d++) {
					sonde_pclntab_pcdata(&t.decoded, &f, d, f.entry + 0x28);
					if (sonde_pclntab_funcdata(&t.decoded, &f, d, &b, NULL))
						CHECK(b.len && b.len <= t.func_data.len);
				}
			}
			memcpy(t.bytes.data + at, &was, 4);
		}
	}
}

int main(void)
{
	RUN(header);
	RUN(other_magics);
	RUN(damaged_headers);
	RUN(every_length);
	RUN(find);
	RUN(unsorted_rows);
	RUN(values);
	RUN(value_bytes);
	RUN(funcdata);
	RUN(inline_trees);
	RUN(damaged_trees);
	RUN(file_names_by_unit);
	RUN(names_without_end);
	RUN(hostile_numbers);
	return tap_end();
}
