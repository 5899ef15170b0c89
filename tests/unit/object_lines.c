#include <elfutils/libdw.h>
#include <fcntl.h>
#include "object/lines.h"
#include "build_dwarf.h"
#include "tap.h"

static void line_string(struct sonde_buf *b, const char *s)
{
	sonde_buf_add(b, s, strlen(s) + 1);
}

/* Opcodes 1 to 12 are standard ones; line_base -3, line_range 12: special opcodes start at 13. */
static size_t begin_table(struct sonde_buf *b, unsigned version, size_t *header_length)
{
	size_t at = b->len;
	dw_word(b, 0, 4);
	dw_word(b, version, 2);
	if (version >= 5) {
		dw_word(b, 8, 1);
		dw_word(b, 0, 1);
	}
	*header_length = b->len;
	dw_word(b, 0, 4);
	dw_word(b, 1, 1); /* minimum_instruction_length */
	if (version >= 4)
		dw_word(b, 1, 1); /* maximum_operations_per_instruction */
	dw_word(b, 1, 1); /* default_is_stmt */
	dw_word(b, (uint8_t)-3, 1);
	dw_word(b, 12, 1);
	dw_word(b, 13, 1);
	sonde_buf_add(b, "\0\1\1\1\1\0\0\0\1\0\0\1", 12);
	if (version >= 5) {
		sonde_buf_char(b, 1); /* directories: path as a string */
		dw_uleb(b, DW_LNCT_path);
		dw_uleb(b, DW_FORM_string);
		dw_uleb(b, 1);
		line_string(b, "/src");
		sonde_buf_char(b, 2); /* files: path, directory */
		dw_uleb(b, DW_LNCT_path);
		dw_uleb(b, DW_FORM_string);
		dw_uleb(b, DW_LNCT_directory_index);
		dw_uleb(b, DW_FORM_data1);
		dw_uleb(b, 2);
		line_string(b, "zero.c");
		sonde_buf_char(b, 0);
		line_string(b, "a.c");
		sonde_buf_char(b, 0);
	} else {
		line_string(b, "/src");
		sonde_buf_char(b, 0);
		line_string(b, "a.c");
		sonde_buf_add(b, "\1\0\0", 3);
		line_string(b, "/abs/b.c");
		sonde_buf_add(b, "\0\0\0", 3);
		sonde_buf_char(b, 0);
	}
	uint32_t length = (uint32_t)(b->len - *header_length - 4);
	memcpy(b->data + *header_length, &length, 4);
	return at;
}

static void end_table(struct sonde_buf *b, size_t at)
{
	uint32_t length = (uint32_t)(b->len - at - 4);
	memcpy(b->data + at, &length, 4);
}

static void set_address(struct sonde_buf *b, uint64_t addr)
{
	sonde_buf_add(b, "\0\x09\x02", 3);
	dw_word(b, addr, 8);
}

static void row(struct sonde_buf *b, unsigned advance, int line)
{
	sonde_buf_char(b, DW_LNS_advance_pc);
	dw_uleb(b, advance);
	sonde_buf_char(b, DW_LNS_advance_line);
	dw_sleb(b, line);
	sonde_buf_char(b, DW_LNS_copy);
}

static void end_sequence(struct sonde_buf *b, unsigned advance)
{
	sonde_buf_char(b, DW_LNS_advance_pc);
	dw_uleb(b, advance);
	sonde_buf_add(b, "\0\1\1", 3);
}

/* f at 0x1000..0x1040, g inlined at 0x1010..0x1020, called from line 12 of file 1. */
static void put_unit(struct dw *w, unsigned version)
{
	dw_unit(w, version);
	dw_die(w, DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1, DW_AT_stmt_list,
		DW_FORM_sec_offset, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4,
		DW_AT_comp_dir, DW_FORM_string, 0);
	dw_u8(w, DW_LANG_C11);
	dw_u32(w, 0);
	dw_u64(w, 0x1000);
	dw_u32(w, 0x1000);
	dw_string(w, "/comp");
	uint32_t g = dw_die(w, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, 0);
	dw_string(w, "g");
	dw_die(w, DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
		DW_AT_high_pc, DW_FORM_data4, 0);
	dw_string(w, "f");
	dw_u64(w, 0x1000);
	dw_u32(w, 0x40);
	dw_die(w, DW_TAG_inlined_subroutine, 0, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_low_pc,
		DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_call_file, DW_FORM_data1,
		DW_AT_call_line, DW_FORM_data1, DW_AT_call_column, DW_FORM_data1, 0);
	dw_u32(w, g);
	dw_u64(w, 0x1010);
	dw_u32(w, 0x10);
	dw_u8(w, 1);
	dw_u8(w, 12);
	dw_u8(w, 5);
	dw_end(w);
	dw_end(w);
	dw_unit_end(w);
}

#define LINES_FIXTURE                                                \
	FIXTURE;                                                     \
	sonde_cleanup(sonde_lines) struct sonde_lines *lines = NULL; \
	struct sonde_buf *b = &w.sections[DW_LINE];                  \
	size_t header

#define OPEN(packing)                                                       \
	do {                                                                \
		REQUIRE_OK(open_dw(&w, (packing), &image, &notes, &dwarf)); \
		REQUIRE_OK(sonde_lines_new(dwarf, &lines));                 \
	} while (0)

static void rows_by_address(void)
{
	for (unsigned version = 3; version <= 5; version++) {
		LINES_FIXTURE;
		size_t at = begin_table(b, version, &header);
		/* The second sequence comes first in memory. */
		set_address(b, 0x1100);
		row(b, 0, 98);
		end_sequence(b, 4);
		set_address(b, 0x1000);
		row(b, 0, 9);
		row(b, 4, 1);
		row(b, 0, 1); /* the same address: this one holds */
		row(b, 0x0c, 20);
		end_sequence(b, 0x30);
		end_table(b, at);
		put_unit(&w, version);
		OPEN(DW_PLAIN);
		struct sonde_line line;
		REQUIRE(sonde_lines_find(lines, 0x1000, &line));
		CHECK_EQ(line.line, 10);
		CHECK_STR(line.file, "/src/a.c");
		CHECK_EQ(line.low, 0x1000);
		CHECK_EQ(line.high, 0x1004);
		REQUIRE(sonde_lines_find(lines, 0x100f, &line));
		CHECK_EQ(line.line, 12);
		REQUIRE(sonde_lines_find(lines, 0x103f, &line));
		CHECK_EQ(line.line, 32);
		CHECK(!sonde_lines_find(lines, 0x1040, &line));
		REQUIRE(sonde_lines_find(lines, 0x1103, &line));
		CHECK_EQ(line.line, 99);
		CHECK(!sonde_lines_find(lines, 0x1104, &line));
		CHECK(!sonde_lines_find(lines, 0xfff, &line));
		CHECK(!sonde_lines_find(lines, 0x2000, &line));
		CHECK_EQ(notes.entries.n, 0);
	}
}

static void inlined_frames(void)
{
	LINES_FIXTURE;
	size_t at = begin_table(b, 4, &header);
	set_address(b, 0x1000);
	row(b, 0, 9);
	sonde_buf_char(b, DW_LNS_set_file);
	dw_uleb(b, 2);
	row(b, 0x10, 60);
	end_sequence(b, 0x100);
	end_table(b, at);
	put_unit(&w, 4);
	OPEN(DW_ZSTD);
	struct sonde_line_frame frames[4];
	CHECK_EQ(sonde_lines_frames(lines, 0x1014, frames, 1), 2);
	CHECK_EQ(sonde_lines_frames(lines, 0x1014, frames, 4), 2);
	CHECK_STR(frames[0].function, "g");
	CHECK_STR(frames[0].file, "/abs/b.c");
	CHECK_EQ(frames[0].line, 70);
	CHECK(frames[0].is_inlined);
	CHECK_STR(frames[1].function, "f");
	CHECK_STR(frames[1].file, "/src/a.c");
	CHECK_EQ(frames[1].line, 12);
	CHECK_EQ(frames[1].column, 5);
	CHECK(!frames[1].is_inlined);
	CHECK_EQ(sonde_lines_frames(lines, 0x1000, frames, 4), 1);
	/* A line, but no function. */
	CHECK_EQ(sonde_lines_frames(lines, 0x1050, frames, 4), 1);
	CHECK_STR(frames[0].function, "");
	CHECK_EQ(frames[0].line, 70);
	CHECK_EQ(sonde_lines_frames(lines, 0x1200, frames, 4), 0);
	CHECK_EQ(sonde_lines_frames(lines, 0x9000, frames, 4), 0);
}

static void damaged_tables(void)
{
	LINES_FIXTURE;
	size_t at = begin_table(b, 4, &header);
	set_address(b, 0x1000);
	row(b, 0, 9);
	end_table(b, at);
	dw_patch32(&w, DW_LINE, at, 0x10000);
	put_unit(&w, 4);
	OPEN(DW_PLAIN);
	struct sonde_line line;
	struct sonde_line_frame frames[2];
	CHECK(!sonde_lines_find(lines, 0x1000, &line));
	CHECK(!sonde_lines_find(lines, 0x1000, &line));
	REQUIRE(notes.entries.n == 1);
	CHECK_STR(notes.entries.items[0].kind, "DWARF line table damaged");
	CHECK_EQ(notes.entries.items[0].count, 1);
	/* Functions are still known. */
	CHECK_EQ(sonde_lines_frames(lines, 0x1014, frames, 2), 2);
	CHECK_STR(frames[0].function, "g");
	CHECK_STR(frames[0].file, "");
}

/*
 * libdw as the oracle: this program is built with -g. dwarf_getscopes() gives the innermost block, whose parents are
 * the calls.
 */
struct oracle {
	Dwarf *libdw;
	struct sonde_dwarf *dwarf;
	struct sonde_lines *lines;
	uint64_t n_pcs, n_inlined, n_located;
};

static void compare_scopes(struct oracle *o, Dwarf_Die *unit, uint64_t pc)
{
	Dwarf_Die *innermost = NULL, *chain = NULL;
	int n = dwarf_getscopes(unit, pc, &innermost) > 0
		? dwarf_getscopes_die(&innermost[0], &chain)
		: 0;
	struct sonde_dwarf_scope scopes[32];
	size_t n_scopes = sonde_dwarf_scopes_at(o->dwarf, pc, scopes, 32), k = 0;
	for (int i = 0; i < n; i++) {
		int tag = dwarf_tag(&chain[i]);
		if (tag != DW_TAG_subprogram && tag != DW_TAG_inlined_subroutine)
			continue;
		o->n_inlined += tag == DW_TAG_inlined_subroutine;
		if (k < n_scopes)
			CHECK_STR(scopes[k].name, dwarf_diename(&chain[i]));
		k++;
	}
	CHECK_EQ(n_scopes, k);
	free(innermost);
	free(chain);
}

static void compare_line(struct oracle *o, Dwarf_Die *unit, uint64_t pc)
{
	Dwarf_Line *want = dwarf_getsrc_die(unit, pc);
	struct sonde_line line;
	int number = 0;
	CHECK(sonde_lines_find(o->lines, pc, &line) == !!want);
	if (!want || dwarf_lineno(want, &number))
		return;
	CHECK_EQ(line.line, number);
	CHECK_STR(line.file, dwarf_linesrc(want, NULL, NULL));
}

static void compare_variables(struct oracle *o, uint64_t pc)
{
	sonde_cleanup(sonde_dwarf_variables) struct sonde_dwarf_variables variables = {0};
	REQUIRE_OK(sonde_dwarf_variables_at(o->dwarf, pc, &variables));
	sonde_vec_foreach (variable, &variables) {
		Dwarf_Die die;
		Dwarf_Attribute attr;
		Dwarf_Op *ops[4];
		size_t lens[4];
		REQUIRE(dwarf_offdie(o->libdw, variable->id, &die));
		bool located = dwarf_attr_integrate(&die, DW_AT_location, &attr) &&
			dwarf_getlocation_addr(&attr, pc, ops, lens, 4) > 0 && lens[0];
		CHECK(located == (variable->expr != NULL));
		if (located && variable->expr)
			CHECK_EQ(variable->expr[0], ops[0][0].atom);
		o->n_located += located;
	}
}

static void compare_unit(struct oracle *o, Dwarf_Die *unit)
{
	Dwarf_Die die;
	if (dwarf_child(unit, &die))
		return;
	do {
		Dwarf_Addr low, high;
		if (dwarf_tag(&die) != DW_TAG_subprogram || dwarf_lowpc(&die, &low) ||
			dwarf_highpc(&die, &high))
			continue;
		for (uint64_t pc = low; pc < high && tap_failed_checks < 10; pc += 13) {
			compare_scopes(o, unit, pc);
			compare_line(o, unit, pc);
			compare_variables(o, pc);
			o->n_pcs++;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

static void answers_equal_libdw(void)
{
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	sonde_cleanup(sonde_dwarf) struct sonde_dwarf *dwarf = NULL;
	sonde_cleanup(sonde_lines) struct sonde_lines *lines = NULL;
	struct sonde_error *err = sonde_dwarf_open("/proc/self/exe", &notes, &dwarf);
	if (err && err->code == SONDE_NOT_FOUND) {
		sonde_error_free(err);
		SKIP("this program was stripped");
	}
	REQUIRE_OK(err);
	REQUIRE_OK(sonde_lines_new(dwarf, &lines));
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct oracle o = {.libdw = dwarf_begin(fd, DWARF_C_READ), .dwarf = dwarf, .lines = lines};
	REQUIRE(o.libdw);
	Dwarf_Off offset = 0, next;
	size_t header_bytes;
	while (dwarf_nextcu(o.libdw, offset, &next, &header_bytes, NULL, NULL, NULL) == 0) {
		Dwarf_Die unit;
		if (dwarf_offdie(o.libdw, offset + header_bytes, &unit))
			compare_unit(&o, &unit);
		offset = next;
	}
	printf("# %" PRIu64 " addresses, %" PRIu64 " inlined calls, %" PRIu64 " locations\n",
		o.n_pcs, o.n_inlined, o.n_located);
	CHECK(o.n_pcs > 50 && o.n_located > 50);
	dwarf_end(o.libdw);
	close(fd);
}

int main(void)
{
	RUN(rows_by_address);
	RUN(inlined_frames);
	RUN(damaged_tables);
	RUN(answers_equal_libdw);
	return tap_end();
}
