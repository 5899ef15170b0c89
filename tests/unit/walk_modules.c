#include "walk/modules.h"

#include <elf.h>
#include <sys/auxv.h>
#include <unistd.h>
#include "target/live.h"
#include "target/ops.h"

#include "tap.h"

enum { PAGE = 4096, MAX_RUNS = 16 };

static uint8_t page_bytes[MAX_RUNS][PAGE];

struct row {
	uint64_t start;
	const char *path;
	uint64_t offset;
	uint32_t perm;
};

/* A target of one page a row. */
static struct sonde_target *target_of(const struct row *rows, size_t n)
{
	struct sonde_target_run runs[MAX_RUNS];
	for (size_t i = 0; i < n; i++)
		runs[i] = (struct sonde_target_run){rows[i].start, PAGE, page_bytes[i]};
	struct sonde_target *t = sonde_target_over_runs(runs, n, EM_X86_64, 8);
	for (size_t i = 0; t && i < n; i++) {
		t->mappings[i].path = rows[i].path;
		t->mappings[i].file_offset = rows[i].offset;
		t->mappings[i].perm = rows[i].perm;
	}
	return t;
}

static void put(uint8_t *at, uint64_t v, unsigned n)
{
	memcpy(at, &v, n);
}

/* An ELF header with two loaded segments; a segment: flags, offset, address, bytes, alignment. */
static void put_elf(uint8_t *file, const uint64_t segments[][5], size_t n)
{
	static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	memset(file, 0, PAGE);
	memcpy(file, ident, sizeof(ident));
	put(file + 16, ET_DYN, 2);
	put(file + 18, EM_X86_64, 2);
	put(file + 20, 1, 4);
	put(file + 32, 64, 8);
	put(file + 52, 64, 2);
	put(file + 54, 56, 2);
	put(file + 56, n, 2);
	for (size_t i = 0; i < n; i++) {
		uint8_t *p = file + 64 + 56 * i;
		put(p, PT_LOAD, 4);
		put(p + 4, segments[i][0], 4);
		put(p + 8, segments[i][1], 8);
		put(p + 16, segments[i][2], 8);
		put(p + 32, segments[i][3], 8);
		put(p + 40, segments[i][3], 8);
		put(p + 48, segments[i][4], 8);
	}
}

static void grouping(void)
{
	enum { R = SONDE_PERM_R, X = SONDE_PERM_R | SONDE_PERM_X, W = SONDE_PERM_R | SONDE_PERM_W };
	static const struct row rows[] = {
		{0x10000, "/lib/a", 0, R},
		{0x11000, "/lib/a", PAGE, X},
		{0x13000, "/lib/a", 2 * PAGE, R}, /* behind a gap */
		{0x20000, "/lib/a", 0, R}, /* loaded again */
		{0x21000, "/lib/a", PAGE, X},
		{0x30000, NULL, 0, W}, /* no code */
		{0x40000, NULL, 0, X},
		{0x50000, "/lib/b (deleted)", 0, R},
		{0x51000, "/lib/b (deleted)", 0, X}, /* the same page twice: no second load */
		{0x60000, "[vdso]", 0, X},
	};
	sonde_cleanup(sonde_target) struct sonde_target *t = target_of(rows, 10);
	sonde_cleanup(sonde_walk_modules) struct sonde_walk_modules *ms = NULL;
	REQUIRE(t);
	REQUIRE_OK(sonde_walk_modules_open(t, NULL, NULL, &ms));
	static const struct {
		uint64_t start, end;
		const char *name;
	} want[] = {
		{0x10000, 0x14000, "a"},
		{0x20000, 0x22000, "a"},
		{0x40000, 0x41000, "anonymous memory"},
		{0x50000, 0x52000, "b (deleted)"},
		{0x60000, 0x61000, "[vdso]"},
	};
	CHECK_EQ(ms->all.n, SONDE_ARRAY_LEN(want));
	for (size_t i = 0; i < SONDE_ARRAY_LEN(want) && i < ms->all.n; i++) {
		CHECK_EQ(ms->all.items[i].start, want[i].start);
		CHECK_EQ(ms->all.items[i].end, want[i].end);
		CHECK_STR(ms->all.items[i].name, want[i].name);
		CHECK(sonde_walk_modules_find(ms, want[i].start) == &ms->all.items[i]);
		CHECK(sonde_walk_modules_find(ms, want[i].end - 1) == &ms->all.items[i]);
		CHECK(!sonde_walk_modules_find(ms, want[i].end));
		sonde_walk_module_load(ms, &ms->all.items[i]);
		CHECK(!ms->all.items[i].table && ms->all.items[i].no_table);
	}
	CHECK(!sonde_walk_modules_find(ms, 0xffff));
	CHECK(!sonde_walk_modules_find(ms, 0x30000));
	/* A gap belongs to the module, but is no code. */
	CHECK(sonde_walk_modules_find(ms, 0x12000) && !sonde_walk_is_code(ms, 0x12000));
	CHECK(sonde_walk_is_code(ms, 0x11000) && !sonde_walk_is_code(ms, 0x10000));
}

/* The bias by the code's segment, whatever its alignment, also where another segment shares its page. */
static void biases(void)
{
	enum { R = SONDE_PERM_R, X = SONDE_PERM_R | SONDE_PERM_X };
	static const struct {
		uint64_t segments[2][5];
		uint64_t code_offset, code_start, bias;
	} cases[] = {
		/* GNU ld */
		{{{PF_R, 0, 0, 0x800, PAGE}, {PF_R | PF_X, 0x1000, 0x1000, 0x400, PAGE}}, 0x1000,
			0x7f0000001000, 0x7f0000000000},
		/* lld: both segments lie in the file's first page */
		{{{PF_R, 0, 0, 0x5a4, PAGE}, {PF_R | PF_X, 0x5b0, 0x15b0, 0x100, PAGE}}, 0,
			0x7f0000001000, 0x7f0000000000},
		/* gold, 2 MiB alignment; linked at an address of its own */
		{{{PF_R, 0, 0x400000, 0x800, 1 << 21},
			 {PF_R | PF_X, 0x1000, 0x601000, 0x400, 1 << 21}},
			0x1000, 0x7f0000601000, 0x7f0000000000},
		/* alignments without sense */
		{{{PF_R, 0, 0, 0x800, 3}, {PF_R | PF_X, 0x1000, 0x1000, 0x400, 0}}, 0x1000,
			0x7f0000001000, 0x7f0000000000},
		{{{PF_R, 0, 0, 0x800, 1}, {PF_R | PF_X, 0x1000, 0x1000, 0x400, UINT64_MAX}}, 0x1000,
			0x7f0000001000, 0x7f0000000000},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(cases); i++) {
		put_elf(page_bytes[0], cases[i].segments, 2);
		memcpy(page_bytes[1], page_bytes[0], PAGE);
		const struct row rows[] = {
			{0x7f0000000000, "[file]", 0, R},
			{cases[i].code_start, "[file]", cases[i].code_offset, X},
		};
		sonde_cleanup(sonde_target) struct sonde_target *t = target_of(rows, 2);
		sonde_cleanup(sonde_walk_modules) struct sonde_walk_modules *ms = NULL;
		REQUIRE(t);
		REQUIRE_OK(sonde_walk_modules_open(t, NULL, NULL, &ms));
		struct sonde_walk_module *m = sonde_walk_modules_find(ms, cases[i].code_start);
		REQUIRE(m);
		sonde_walk_module_load(ms, m);
		CHECK_EQ(m->bias, cases[i].bias);
	}
}

/* This process itself: its vDSO, its C library. */
static void own_files(void)
{
	const struct sonde_live_options options = {.memory_only = true};
	static const struct sonde_debugfile_options debug = {.no_debuginfod = true};
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	sonde_cleanup(sonde_walk_modules) struct sonde_walk_modules *ms = NULL;
	struct sonde_error *err = sonde_live_open((uint32_t)getpid(), &options, &t);
	if (err) {
		sonde_error_free(err);
		SKIP("/proc is not readable");
	}
	REQUIRE_OK(sonde_walk_modules_open(t, &debug, NULL, &ms));
	uint64_t vdso = getauxval(AT_SYSINFO_EHDR);
	struct sonde_walk_module *m = vdso ? sonde_walk_modules_find(ms, vdso) : NULL;
	if (m) {
		sonde_walk_module_load(ms, m);
		CHECK(m->elf && m->table);
		CHECK_EQ(m->bias, vdso);
	}
	m = sonde_walk_modules_find(ms, (uint64_t)(uintptr_t)own_files);
	REQUIRE(m);
	sonde_walk_module_load(ms, m);
	CHECK(m->elf_borrowed && m->table);
	struct sonde_cfi_value v;
	CHECK(sonde_walk_register_rule(ms, m, (uint64_t)(uintptr_t)own_files, 3, &v));
	CHECK_EQ(v.kind, SONDE_CFI_SAME);
}

int main(void)
{
	RUN(grouping);
	RUN(biases);
	RUN(own_files);
	return tap_end();
}
