#include "unwind/table.h"

#include <zlib.h>
#include "base/mapfile.h"
#include "build_cfi.h"
#include "tap.h"

enum { PAGE = SONDE_UNWIND_PAGE_BYTES };

/* .eh_frame in the making, and what it becomes. */
struct made {
	struct sonde_buf b;
	struct build_cie c;
	size_t cie;
	struct sonde_cfi *cfi;
	struct sonde_unwind_table *t;
};

static struct made made_for(uint16_t machine)
{
	struct made m = {0};
	if (machine == EM_AARCH64)
		m.c = (struct build_cie){
			.code_align = 4, .ra = 30, .insns = "\x0c\x1f\x00", .n_insns = 3};
	m.cie = build_cie(&m.b, &m.c);
	return m;
}

static void made_deinit(struct made *m)
{
	sonde_buf_deinit(&m->b);
	sonde_cfi_free(m->cfi);
	sonde_unwind_table_free(m->t);
}

static inline void sonde_cleanup_made(struct made *m)
{
	made_deinit(m);
}

static void add(struct made *m, uint64_t start, uint64_t len, const char *insns, size_t n)
{
	build_fde(&m->b, &m->c, m->cie, start, len, insns, n);
}

/* false: something is wrong with the table, which was told. */
static bool finish(struct made *m, uint64_t base)
{
	struct sonde_cfi_space space = {.machine = m->c.ra ? EM_AARCH64 : EM_X86_64};
	struct sonde_cfi_section s = {.data = m->b.data, .len = m->b.len};
	struct sonde_buildid id = {.bytes = "\xab\xcd", .len = 2};
	CHECK_OK(sonde_cfi_open_sections(&s, 1, &space, &m->cfi));
	if (m->cfi)
		CHECK_OK(sonde_unwind_table_build(m->cfi, base, &id, &m->t));
	if (m->t)
		CHECK_OK(sonde_unwind_table_check(m->t));
	return m->t;
}

/* "1000 7+8 ...": address, CFA as kind reg+offset/add, fp and ra as kind reg+offset, flags; "-" a gap, "!n" why not. */
static void add_entry(struct sonde_buf *b, const struct sonde_unwind_entry *e)
{
	const struct sonde_unwind_rule *r = &e->rule;
	sonde_buf_printf(b, "%s%" PRIx64 " ", b->len ? "; " : "", e->start);
	switch (sonde_unwind_cfa_kind(r)) {
	case SONDE_UNWIND_CFA_NONE:
		sonde_buf_char(b, '-');
		return;
	case SONDE_UNWIND_CFA_UNSUPPORTED:
		sonde_buf_printf(b, "!%d", r->cfa_offset);
		return;
	default:
		break;
	}
	sonde_buf_printf(b, "%c%u%+d/%d", "-RLP"[sonde_unwind_cfa_kind(r)], sonde_unwind_cfa_reg(r),
		r -> cfa_offset, sonde_unwind_cfa_add(r));
	static const char kinds[] = "scvmru?";
	sonde_buf_printf(b, " %c%u%+d %c%u%+d %u", kinds[sonde_unwind_fp_kind(r)],
		sonde_unwind_fp_reg(r), r->fp_offset, kinds[sonde_unwind_ra_kind(r)],
		sonde_unwind_ra_reg(r), r->ra_offset, sonde_unwind_flags(r));
}

static const char *text_of(const struct sonde_unwind_table *t)
{
	static struct sonde_buf b;
	b.len = 0;
	struct sonde_unwind_cursor c = {.table = t};
	struct sonde_unwind_entry e;
	while (sonde_unwind_table_next(&c, &e))
		add_entry(&b, &e);
	return sonde_buf_text(&b);
}

static void rules(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	add(&m, 0x1000, 0x10, BUILD_BYTES("\x41\x0e\x10\x86\x02\x41\x0d\x06"));
	add(&m, 0x1010, 0x10,
		BUILD_BYTES("\x0d\x06\x0e\x10\x86\x02")); /* as it was: no row, no end */
	add(&m, 0x1020, 0x10, BUILD_BYTES("\x0f\x03\x76\x78\x06\x10\x06\x02\x76\x00"));
	add(&m, 0x1030, 0x10, BUILD_BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"));
	add(&m, 0x1040, 0x10, BUILD_BYTES("\x0f\x06\x77\xf8\x00\x06\x23\x08"));
	add(&m, 0x1050, 0x10, BUILD_BYTES("\x07\x10\x09\x06\x09"));
	add(&m, 0x1060, 0x10, BUILD_BYTES("\x14\x06\x02\x09\x10\x01\x0c\x0a\x00"));
	add(&m, 0x1070, 0x08, BUILD_BYTES("\x16\x06\x02\x76\x10\x07\x10"));
	REQUIRE(finish(&m, 0x1000));
	CHECK_STR(text_of(m.t),
		"1000 R7+8/0 s0+0 c0-8 0; 1001 R7+16/0 c0-16 c0-8 0; 1002 R6+16/0 c0-16 c0-8 0; "
		"1020 L6-8/0 m6+0 c0-8 0; 1030 P7+8/11 s0+0 c0-8 0; 1040 L7+120/1 s0+0 c0-8 0; "
		"1050 R7+8/0 r9+0 u0+0 0; 1060 R10+0/0 v0-16 r1+0 0; 1070 R7+8/0 r6+16 u0+0 0; "
		"1078 -");
	const struct sonde_unwind_counts *c = &m.t->counts;
	CHECK_EQ(c->n_gap_rows, 1);
	CHECK_EQ(c->n_bottom_rows, 2);
	CHECK_EQ(c->n_other_register_rows, 1);
	CHECK_EQ(c->n_rows_read, 10);
	const struct sonde_unwind_header *h = &m.t->header;
	CHECK_EQ(h->n_rows, 10);
	CHECK_EQ(h->n_rules, 10);
	CHECK_EQ(h->n_pages, 1);
	CHECK_EQ(h->image_bytes, SONDE_UNWIND_BLOCK_BYTES);
	CHECK_EQ(h->machine, EM_X86_64);
	CHECK_EQ(h->n_buildid_bytes, 2);
	CHECK_EQ(h->buildid[1], 0xcd);
}

static void what_cannot_be_held(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	add(&m, 0x1000, 0x10, BUILD_BYTES("\x0f\x02\x31\x31")); /* a constant as CFA */
	add(&m, 0x1010, 0x10,
		BUILD_BYTES("\x10\x10\x02\x31\x31")); /* as place of the return address */
	add(&m, 0x1020, 0x10, BUILD_BYTES("\x0e\x80\x80\x80\x80\x08")); /* 2^31 */
	add(&m, 0x1030, 0x10, BUILD_BYTES("\x0c\x20\x10")); /* register 32 */
	add(&m, 0x1040, 0x10,
		BUILD_BYTES("\x0f\x06\x77\xf8\x00\x06\x23\x04")); /* 4 behind what is loaded */
	add(&m, 0x1050, 0x10, BUILD_BYTES("\x0f\x07\x77\xf8\x00\x06\x23\x80\x01")); /* 128 behind */
	add(&m, 0x1060, 0x10,
		BUILD_BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x40\x2a\x33\x24\x22")); /* 16 */
	add(&m, 0x1070, 0x10, BUILD_BYTES("\x08\x10")); /* no return address */
	add(&m, 0x1080, 0x10, BUILD_BYTES("\x41\x0e\x10\x41\x3f")); /* damaged behind two rows */
	add(&m, 0x1090, 0x10, BUILD_BYTES("\x10\x06\x02\x31\x31")); /* the frame pointer only */
	add(&m, 0x10a0, 0x10, BUILD_BYTES("\x86\x80\x80\x80\x80\x01")); /* its offset, -2^31 */
	add(&m, 0x10b0, 0x10, BUILD_BYTES("\x86\x80\x80\x80\x80\x02")); /* one too far */
	add(&m, 0x10c0, 0x10,
		BUILD_BYTES("\x0f\x02\x31\x31\x07\x10")); /* the bottom needs no CFA */
	add(&m, 0x10d0, 0x10, BUILD_BYTES("\x0e\xff\xff\xff\xff\x07")); /* 2^31 - 1 */
	REQUIRE(finish(&m, 0x1000));
	CHECK_STR(text_of(m.t),
		"1000 !0; 1010 !1; 1020 !2; 1030 !3; 1040 !2; 1070 !1; 1080 !5; "
		"1090 R7+8/0 ?0+0 c0-8 0; 10a0 R7+8/0 c0-2147483648 c0-8 0; "
		"10b0 R7+8/0 ?0+0 c0-8 0; 10c0 R7+0/0 s0+0 u0+0 0; "
		"10d0 R7+2147483647/0 s0+0 c0-8 0; 10e0 -");
	const struct sonde_unwind_counts *c = &m.t->counts;
	CHECK_EQ(c->unsupported[SONDE_UNWIND_EXPRESSION], 1);
	CHECK_EQ(c->unsupported[SONDE_UNWIND_RETURN_ADDRESS], 2);
	CHECK_EQ(c->unsupported[SONDE_UNWIND_OFFSET], 2);
	CHECK_EQ(c->unsupported[SONDE_UNWIND_REGISTER], 1);
	CHECK_EQ(c->unsupported[SONDE_UNWIND_REFUSED], 1);
	CHECK_EQ(c->n_unknown_fp_rows, 2);
	CHECK_EQ(c->cfi.refused[SONDE_CFI_BAD_OPCODE], 1);
	struct sonde_unwind_rule r;
	CHECK(sonde_unwind_table_rule(m.t, 0x1085, &r));
	CHECK_EQ(sonde_unwind_cfa_kind(&r), SONDE_UNWIND_CFA_UNSUPPORTED);
	CHECK_EQ(r.cfa_offset, SONDE_UNWIND_REFUSED);
}

static void of_arm64(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_AARCH64);
	add(&m, 0x1000, 0x40, BUILD_BYTES("\x41\x2d\x41\x0e\x20\x9d\x04\x9e\x03"));
	REQUIRE(finish(&m, 0));
	CHECK_STR(text_of(m.t),
		"1000 R31+0/0 s0+0 s0+0 0; 1004 R31+0/0 s0+0 s0+0 2; 1008 R31+32/0 c0-32 c0-24 2; "
		"1040 -");
	CHECK_EQ(m.t->header.sp_reg, 31);
	CHECK_EQ(m.t->header.fp_reg, 29);
}

/* Every address, against the rows themselves. */
static void check_everywhere(const struct made *m, uint64_t from, uint64_t to)
{
	uint64_t n_wrong = 0;
	for (uint64_t addr = from; addr < to; addr++) {
		const struct sonde_cfi_fde *fde = sonde_cfi_find(m->cfi, addr);
		struct sonde_unwind_rule rule = {0};
		struct sonde_unwind_entry e;
		bool found = sonde_unwind_table_rule(m->t, addr, &rule);
		bool entry = sonde_unwind_table_find(m->t, addr, &e);
		n_wrong += found != !!fde || (found && !entry);
		n_wrong += entry &&
			(addr < e.start || addr >= e.end ||
				memcmp(&e.rule, found ? &rule : &(struct sonde_unwind_rule){0},
					sizeof(rule)) != 0);
		if (!fde || !found)
			continue;
		struct sonde_cfi_rows rows;
		struct sonde_cfi_row row;
		int64_t want = -1;
		sonde_cfi_rows_start(&rows, m->cfi, fde);
		while (sonde_cfi_rows_next(&rows, &row))
			if (row.start <= addr)
				want = row.cfa.offset;
		n_wrong += rule.cfa_offset != want;
	}
	CHECK_EQ(n_wrong, 0);
}

static void pages(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	const uint64_t base = 0x400000;
	add(&m, base + 0x10, 0x20, BUILD_BYTES("\x48\x0e\x10"));
	/* Over the border of a page, with a row exactly on it and without. */
	add(&m, base + PAGE - 0x10, 0x20, BUILD_BYTES("\x50\x0e\x10\x48\x0e\x18"));
	add(&m, base + 2 * PAGE - 8, 0x20, BUILD_BYTES("\x0e\x20"));
	/* Through a page that has no row of its own. */
	add(&m, base + 3 * PAGE - 8, PAGE + 0x20, BUILD_BYTES("\x0e\x28"));
	/* Up to the end of a page, and one that starts there. */
	add(&m, base + 6 * PAGE - 0x10, 0x10, BUILD_BYTES("\x0e\x30"));
	add(&m, base + 6 * PAGE, 0x10, BUILD_BYTES("\x0e\x38"));
	REQUIRE(finish(&m, base));
	CHECK_EQ(m.t->header.n_pages, 7);
	check_everywhere(&m, base - 0x20, base + 7 * PAGE + 0x20);
	struct sonde_unwind_rule r;
	CHECK(!sonde_unwind_table_rule(m.t, 0, &r));
	CHECK(!sonde_unwind_table_rule(m.t, UINT64_MAX, &r));
	CHECK(!sonde_unwind_table_rule(m.t, base + (UINT64_C(1) << 32) + 0x10, &r));
}

static void a_full_page(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	sonde_cleanup(sonde_buf) struct sonde_buf insns = {0};
	for (unsigned i = 0; i < 2 * PAGE; i++) {
		build_u8(&insns, 0x0e);
		build_u8(&insns, (uint8_t)(i % 100 + 8));
		build_u8(&insns, 0x41);
	}
	add(&m, 0x10000, 2 * PAGE, insns.data, insns.len);
	REQUIRE(finish(&m, 0));
	CHECK_EQ(m.t->header.n_rows, 2 * PAGE + 1);
	uint64_t n_wrong = 0;
	for (unsigned i = 0; i < 2 * PAGE; i++) {
		struct sonde_unwind_rule r = {0};
		n_wrong += !sonde_unwind_table_rule(m.t, 0x10000 + i, &r) ||
			r.cfa_offset != (int32_t)(i % 100 + 8);
	}
	CHECK_EQ(n_wrong, 0);
	sonde_buf_deinit(&insns);
}

static void reach(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	const uint64_t base = UINT64_C(1) << 40, top = base + (UINT64_C(1) << 32);
	add(&m, 0x1000, 0x10, BUILD_BYTES(""));
	add(&m, base + 0x1000, 0x10, BUILD_BYTES(""));
	add(&m, top - 0x10, 0x10, BUILD_BYTES("\x0e\x10")); /* to the very end */
	add(&m, top, 0x10, BUILD_BYTES(""));
	add(&m, UINT64_C(1) << 60, 0x10, BUILD_BYTES(""));
	REQUIRE(finish(&m, base));
	CHECK_EQ(m.t->counts.n_outside_fdes, 3);
	CHECK_EQ(m.t->header.n_rows, 3);
	CHECK_EQ(m.t->header.n_pages, 65536);
	struct sonde_unwind_rule r;
	CHECK(sonde_unwind_table_rule(m.t, top - 1, &r));
	CHECK(!sonde_unwind_table_rule(m.t, top, &r));
	CHECK(!sonde_unwind_table_rule(m.t, top - 0x11, &r));
}

/* The gap behind it begins at the last address of all. */
static void the_last_address(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	add(&m, UINT64_MAX - 0x10, 0x10, BUILD_BYTES(""));
	REQUIRE(finish(&m, UINT64_MAX << 32));
	struct sonde_unwind_rule r;
	struct sonde_unwind_entry e;
	CHECK(sonde_unwind_table_rule(m.t, UINT64_MAX - 1, &r));
	CHECK(!sonde_unwind_table_rule(m.t, UINT64_MAX, &r));
	CHECK(sonde_unwind_table_find(m.t, UINT64_MAX, &e) && !e.rule_number);
}

/* Numbers are 16 bits wide: what has none left is said to be unsupported, everything else stays right. */
static void too_many_rules(void)
{
	enum { N = 70000 };
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	sonde_cleanup(sonde_buf) struct sonde_buf insns = {0};
	for (unsigned i = 0; i < N; i++) {
		build_u8(&insns, 0x0e);
		build_u8(&insns, (uint8_t)(i & 0x7f) | 0x80);
		build_u8(&insns, (uint8_t)(i >> 7 & 0x7f) | 0x80);
		build_u8(&insns, (uint8_t)(i >> 14));
		build_u8(&insns, 0x41);
	}
	add(&m, 0x10000, N, insns.data, insns.len);
	add(&m, 0x40000, 0x10, BUILD_BYTES("\x0e\x10")); /* one that is known already */
	REQUIRE(finish(&m, 0));
	CHECK_EQ(m.t->header.n_rules, SONDE_UNWIND_MAX_RULES);
	/* Rule 0 is the gap, the last one says that there are too many. */
	CHECK_EQ(m.t->counts.unsupported[SONDE_UNWIND_RULES], 1);
	uint64_t n_wrong = 0, n_unsupported = 0;
	for (unsigned i = 0; i < N; i++) {
		struct sonde_unwind_rule r = {0};
		n_wrong += !sonde_unwind_table_rule(m.t, 0x10000 + i, &r);
		if (sonde_unwind_cfa_kind(&r) == SONDE_UNWIND_CFA_UNSUPPORTED)
			n_unsupported += r.cfa_offset == SONDE_UNWIND_RULES;
		else
			n_wrong += r.cfa_offset != (int32_t)i;
	}
	CHECK_EQ(n_wrong, 0);
	CHECK_EQ(n_unsupported, N - (SONDE_UNWIND_MAX_RULES - 2));
	struct sonde_unwind_rule r = {0};
	CHECK(sonde_unwind_table_rule(m.t, 0x40000, &r));
	CHECK_EQ(r.cfa_offset, 16);
	sonde_buf_deinit(&insns);
}

static void nothing(void)
{
	sonde_cleanup(made) struct made m = made_for(EM_X86_64);
	REQUIRE(finish(&m, 0x1000));
	CHECK_STR(text_of(m.t), "");
	struct sonde_unwind_rule r;
	struct sonde_unwind_entry e;
	CHECK(!sonde_unwind_table_rule(m.t, 0x1000, &r));
	CHECK(!sonde_unwind_table_find(m.t, 0x1000, &e));
	CHECK_EQ(m.t->header.image_bytes, SONDE_UNWIND_BLOCK_BYTES);
}

static struct made small(void)
{
	struct made m = made_for(EM_X86_64);
	add(&m, 0x1000, 0x10, BUILD_BYTES("\x41\x0e\x10\x86\x02\x41\x0d\x06"));
	add(&m, 0x21000, 0x10, BUILD_BYTES("\x0f\x03\x76\x78\x06"));
	finish(&m, 0x1000);
	return m;
}

static void a_mapped_file(void)
{
	sonde_cleanup(made) struct made m = small();
	REQUIRE(m.t);
	const char *path = build_file("table", m.t->image, m.t->header.image_bytes);
	sonde_cleanup(sonde_mapfile) struct sonde_mapfile *file = NULL;
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
	REQUIRE_OK(sonde_mapfile_open(path, &file));
	REQUIRE_OK(sonde_unwind_table_open(file->data, file->size_bytes, &t));
	CHECK_OK(sonde_unwind_table_check(t));
	char *want = strdup(text_of(m.t));
	CHECK_STR(text_of(t), want);
	free(want);
	CHECK(t->image == file->data && !t->owned);
	CHECK(!memcmp(&t->header, &m.t->header, sizeof(t->header)));
}

static void bad_headers(void)
{
	sonde_cleanup(made) struct made m = small();
	REQUIRE(m.t);
	uint64_t len = m.t->header.image_bytes;
	uint8_t *copy = aligned_alloc(8, len);
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
	struct sonde_unwind_header *h = (void *)copy;
#define WITH(member, value, code, text)                                          \
	do {                                                                     \
		memcpy(copy, m.t->image, len);                                   \
		h->member = (value);                                             \
		CHECK_ERROR(sonde_unwind_table_open(copy, len, &t), code, text); \
	} while (0)
	WITH(magic, 1, SONDE_BAD_DATA, "not an unwind table");
	WITH(magic, __builtin_bswap64(SONDE_UNWIND_MAGIC), SONDE_MISMATCH, "byte order");
	WITH(byte_order, 0x04030201, SONDE_MISMATCH, "version");
	WITH(version, 2, SONDE_MISMATCH, "of version 2");
	WITH(image_bytes, 2 * (uint32_t)len, SONDE_TRUNCATED, "bytes");
	WITH(image_bytes, (uint32_t)len - 8, SONDE_BAD_DATA, "do not fit");
	WITH(image_bytes, 0, SONDE_BAD_DATA, "do not fit");
	WITH(rows_offset, 0, SONDE_BAD_DATA, "do not fit");
	WITH(rows_offset, 130, SONDE_BAD_DATA, "do not fit");
	WITH(rows_offset, UINT32_MAX - 3, SONDE_BAD_DATA, "do not fit");
	WITH(n_rows, UINT32_MAX, SONDE_BAD_DATA, "do not fit");
	WITH(n_rows, 1, SONDE_BAD_DATA, "begins at row");
	WITH(n_pages, 65537, SONDE_BAD_DATA, "do not fit");
	WITH(n_pages, 65536, SONDE_BAD_DATA, "do not fit");
	WITH(n_rules, 65536, SONDE_BAD_DATA, "do not fit");
	WITH(n_rules, 1000, SONDE_BAD_DATA, "do not fit");
	WITH(rules_offset, h->rules_offset + 4, SONDE_BAD_DATA, "do not fit");
	WITH(n_buildid_bytes, 41, SONDE_BAD_DATA, "do not fit");
	memcpy(copy, m.t->image, len);
	CHECK_ERROR(sonde_unwind_table_open(copy, 127, &t), SONDE_TRUNCATED, "no header");
	CHECK_ERROR(sonde_unwind_table_open(copy, len - 1, &t), SONDE_TRUNCATED, "are there");
	CHECK_ERROR(sonde_unwind_table_open(copy + 1, len - 1, &t), SONDE_USAGE, "aligned");
	free(copy);
}

/* Looks up everywhere and goes through all rows, whatever the bytes are. */
static void use(const struct sonde_unwind_table *t)
{
	struct sonde_unwind_rule r;
	struct sonde_unwind_entry e;
	for (uint64_t addr = 0; addr < 4 * PAGE; addr += 0x357)
		(void)(sonde_unwind_table_rule(t, addr, &r) | sonde_unwind_table_find(t, addr, &e));
	struct sonde_unwind_cursor c = {.table = t};
	while (sonde_unwind_table_next(&c, &e))
		;
}

static void damaged_images(void)
{
	sonde_cleanup(made) struct made m = small();
	REQUIRE(m.t);
	uint64_t len = m.t->header.image_bytes;
	/* An exact copy at the end of its memory, so that a sanitizer sees any read behind it. */
	uint8_t *copy = aligned_alloc(8, len);
	for (uint64_t i = 0; i < len; i++) {
		static const uint8_t values[] = {0x01, 0x80, 0xff};
		for (size_t k = 0; k < sizeof(values); k++) {
			sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
			memcpy(copy, m.t->image, len);
			copy[i] ^= values[k];
			struct sonde_error *err = sonde_unwind_table_open(copy, len, &t);
			if (!err) {
				use(t);
				CHECK_ERROR(sonde_unwind_table_check(t), SONDE_BAD_DATA,
					"unwind table");
			}
			sonde_error_free(err);
		}
	}
	/* Bytes that change after they were looked at. */
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
	memcpy(copy, m.t->image, len);
	REQUIRE_OK(sonde_unwind_table_open(copy, len, &t));
	memset(copy, 0xff, len);
	use(t);
	for (uint64_t i = 0; i < len; i++)
		copy[i] = (uint8_t)(i * 2654435761u >> 7);
	use(t);
	sonde_unwind_table_free(sonde_take(t));
	free(copy);
}

/* What a checksum does not tell: it was right when the image was made. */
static void images_that_make_no_sense(void)
{
	sonde_cleanup(made) struct made m = small();
	REQUIRE(m.t);
	uint64_t len = m.t->header.image_bytes;
	uint8_t *copy = aligned_alloc(8, len);
	struct sonde_unwind_header *h = (void *)copy;
	for (int i = 0; i < 4; i++) {
		sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
		memcpy(copy, m.t->image, len);
		uint32_t *rows = (void *)(copy + h->rows_offset);
		struct sonde_unwind_rule *rules = (void *)(copy + h->rules_offset);
		if (i == 0)
			rows[1] = sonde_unwind_row_store(0, 1);
		else if (i == 1)
			rows[1] |= 0xffff;
		else if (i == 2)
			rules[1].bits |= 7;
		else
			rules[0].bits = 1;
		h->checksum = 0;
		h->checksum = (uint32_t)crc32(0, copy, (unsigned)len);
		REQUIRE_OK(sonde_unwind_table_open(copy, len, &t));
		CHECK_ERROR(sonde_unwind_table_check(t), SONDE_BAD_DATA,
			i == 0           ? "not before its next"
				: i == 1 ? "row 1 names"
					 : "rule");
	}
	free(copy);
}

static void base_addresses(void)
{
	struct sonde_elf_segment segments[] = {{.type = PT_NOTE, .addr = 0x10},
		{.type = PT_LOAD, .addr = 0x601000}, {.type = PT_LOAD, .addr = 0x400123}};
	struct sonde_elf elf = {.segments = segments, .n_segments = 3};
	CHECK_EQ(sonde_unwind_base_of_elf(&elf), 0x400000);
	elf.n_segments = 1;
	CHECK_EQ(sonde_unwind_base_of_elf(&elf), 0);
}

/* The program itself, whatever compiler made it. */
static void this_program(void)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
	struct made m = {0};
	REQUIRE_OK(sonde_elf_open("/proc/self/exe", &elf));
	REQUIRE_OK(sonde_unwind_table_of_elf(elf, NULL, &t));
	REQUIRE_OK(sonde_cfi_open(elf, NULL, &m.cfi));
	CHECK_OK(sonde_unwind_table_check(t));
	CHECK(t->header.n_rows > 100);
	uint64_t n_wrong = 0;
	for (size_t i = 0; i < m.cfi->n_fdes; i++) {
		struct sonde_cfi_rows rows;
		struct sonde_cfi_row row;
		struct sonde_unwind_rule r = {0};
		sonde_cfi_rows_start(&rows, m.cfi, &m.cfi->fdes[i]);
		while (sonde_cfi_rows_next(&rows, &row))
			n_wrong += !sonde_unwind_table_rule(t, row.start, &r) ||
				(row.cfa.kind == SONDE_CFI_REG_VALUE &&
					r.cfa_offset != row.cfa.offset);
		CHECK(!rows.refused);
	}
	CHECK_EQ(n_wrong, 0);
	sonde_cfi_free(m.cfi);
}

int main(void)
{
	RUN(rules);
	RUN(what_cannot_be_held);
	RUN(of_arm64);
	RUN(pages);
	RUN(a_full_page);
	RUN(reach);
	RUN(the_last_address);
	RUN(too_many_rules);
	RUN(nothing);
	RUN(a_mapped_file);
	RUN(bad_headers);
	RUN(damaged_images);
	RUN(images_that_make_no_sense);
	RUN(base_addresses);
	RUN(this_program);
	return tap_end();
}
