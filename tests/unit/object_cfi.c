#include "object/cfi.h"

#include <sys/auxv.h>
#include "build_cfi.h"
#include "tap.h"

static const struct sonde_cfi_space x86_64 = {.machine = EM_X86_64};
static const struct sonde_cfi_space arm64 = {.machine = EM_AARCH64};

/* --- rows as text --- */

static void add_value(struct sonde_buf *b, uint16_t machine, const struct sonde_cfi_value *v)
{
	char name[16];
	const char *reg = sonde_cfi_register_name(machine, v->reg, name);
	switch (v->kind) {
	case SONDE_CFI_SAME:
		sonde_buf_str(b, "s");
		break;
	case SONDE_CFI_UNDEFINED:
		sonde_buf_str(b, "u");
		break;
	case SONDE_CFI_CFA_MEMORY:
		sonde_buf_printf(b, "c%+" PRId64, v->offset);
		break;
	case SONDE_CFI_CFA_VALUE:
		sonde_buf_printf(b, "v%+" PRId64, v->offset);
		break;
	case SONDE_CFI_REG_MEMORY:
		sonde_buf_printf(b, "[%s%+" PRId64 "]", reg, v->offset);
		break;
	case SONDE_CFI_REG_VALUE:
		sonde_buf_printf(b, "%s%+" PRId64, reg, v->offset);
		break;
	case SONDE_CFI_REG_LOADED:
		sonde_buf_printf(b, "[%s%+" PRId64 "]%+d", reg, v->offset, v->add);
		break;
	case SONDE_CFI_PLT:
		sonde_buf_printf(b, "%s%+" PRId64 "/%d", reg, v->offset, v->add);
		break;
	default:
		sonde_buf_str(b, "exp");
	}
}

/* "1000 rsp+8 s c-8; 1004 ...", FDEs divided by " | "; a refused one is "(why)". */
static void add_rows(
	struct sonde_buf *b, const struct sonde_cfi *cfi, const struct sonde_cfi_fde *fde)
{
	struct sonde_cfi_rows rows;
	struct sonde_cfi_row row;
	const char *between = b->len ? " | " : "";
	sonde_cfi_rows_start(&rows, cfi, fde);
	while (sonde_cfi_rows_next(&rows, &row)) {
		sonde_buf_printf(b, "%s%" PRIx64 " ", between, row.start);
		add_value(b, cfi->machine, &row.cfa);
		sonde_buf_char(b, ' ');
		add_value(b, cfi->machine, &row.fp);
		sonde_buf_char(b, ' ');
		add_value(b, cfi->machine, &row.ra);
		if (row.flags)
			sonde_buf_printf(b, " %s%s%s",
				row.flags & SONDE_CFI_SIGNAL_FRAME ? "S" : "",
				row.flags & SONDE_CFI_RA_SIGNED ? "N" : "",
				row.flags & SONDE_CFI_KEY_B ? "B" : "");
		between = "; ";
	}
	if (rows.refused)
		sonde_buf_printf(b, "%s(%s)", between, sonde_cfi_reason_name(rows.refused));
}

static struct sonde_cfi_counts last_counts;

/* All rows of a section. Valid until the next call. */
static const char *rows_of(const struct sonde_cfi_section *s, const struct sonde_cfi_space *space)
{
	static struct sonde_buf text;
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	text.len = 0;
	struct sonde_error *err = sonde_cfi_open_sections(s, 1, space, &cfi);
	if (err) {
		sonde_buf_str(&text, err->message);
		sonde_error_free(err);
		return sonde_buf_text(&text);
	}
	last_counts = cfi->counts;
	for (size_t i = 0; i < cfi->n_fdes; i++)
		add_rows(&text, cfi, &cfi->fdes[i]);
	return sonde_buf_text(&text);
}

static const char *rows_in(const struct sonde_buf *b, const struct sonde_cfi_space *space)
{
	struct sonde_cfi_section s = {.data = b->data, .len = b->len, .addr = 0x500000};
	return rows_of(&s, space);
}

/* The rows of one FDE at 0x1000, 0x100 bytes long, of a plain CIE. */
static const char *rows_for(const char *insns, size_t n)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x1000, 0x100, insns, n);
	return rows_in(&b, &x86_64);
}
#define CHECK_ROWS(insns, want) CHECK_STR(rows_for(BUILD_BYTES(insns)), want)

static const char *rows_for_arm64(const char *augmentation, const char *insns, size_t n)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {.augmentation = augmentation,
		.code_align = 4,
		.ra = 30,
		.insns = "\x0c\x1f\x00",
		.n_insns = 3};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x1000, 0x100, insns, n);
	return rows_in(&b, &arm64);
}

/* --- instructions --- */

static void locations(void)
{
	CHECK_ROWS("", "1000 rsp+8 s c-8");
	CHECK_ROWS("\x41\x0e\x10", "1000 rsp+8 s c-8; 1001 rsp+16 s c-8");
	CHECK_ROWS("\x02\x10\x0e\x10", "1000 rsp+8 s c-8; 1010 rsp+16 s c-8");
	CHECK_ROWS("\x03\x20\x00\x0e\x10", "1000 rsp+8 s c-8; 1020 rsp+16 s c-8");
	CHECK_ROWS("\x04\x30\x00\x00\x00\x0e\x10", "1000 rsp+8 s c-8; 1030 rsp+16 s c-8");
	CHECK_ROWS("\x1d\x40\x00\x00\x00\x00\x00\x00\x00\x0e\x10",
		"1000 rsp+8 s c-8; 1040 rsp+16 s c-8");
	CHECK_ROWS("\x01\x50\x10\x00\x00\x00\x00\x00\x00\x0e\x10",
		"1000 rsp+8 s c-8; 1050 rsp+16 s c-8");
	/* Back, or around. */
	CHECK_ROWS("\x01\xff\x0f\x00\x00\x00\x00\x00\x00\x0e\x10", "(damaged instruction)");
	CHECK_ROWS("\x41\x1d\xff\xff\xff\xff\xff\xff\xff\xff",
		"1000 rsp+8 s c-8; (damaged instruction)");
	/* Beyond the end of the function nothing counts. */
	CHECK_ROWS("\x03\x00\x01\x0e\x10", "1000 rsp+8 s c-8");
	/* What changes nothing makes no row; where nothing moves the last one counts. */
	CHECK_ROWS("\x41\x0e\x08\x41\x0e\x10\x0e\x18\x40\x0e\x20",
		"1000 rsp+8 s c-8; 1002 rsp+32 s c-8");
	CHECK_ROWS("\x41\x83\x02\x41\x0e\x10", "1000 rsp+8 s c-8; 1002 rsp+16 s c-8");
}

static void the_cfa(void)
{
	CHECK_ROWS("\x0c\x06\x10", "1000 rbp+16 s c-8");
	CHECK_ROWS("\x0d\x06", "1000 rbp+8 s c-8");
	CHECK_ROWS("\x12\x06\x7e", "1000 rbp+16 s c-8");
	CHECK_ROWS("\x13\x7d", "1000 rsp+24 s c-8");
	CHECK_ROWS("\x0c\x0a\x00", "1000 r10+0 s c-8");
	CHECK_ROWS("\x0e\x80\x80\x04", "1000 rsp+65536 s c-8");
	CHECK_ROWS("\x0c\xff\xff\xff\x7f\x10", "1000 r65535+16 s c-8");
	/* After an expression the register's rule has the last offset; an offset alone changes nothing. */
	CHECK_ROWS("\x0f\x03\x76\x78\x06", "1000 [rbp-8]+0 s c-8");
	CHECK_ROWS("\x0f\x03\x76\x78\x06\x0e\x20", "1000 [rbp-8]+0 s c-8");
	CHECK_ROWS("\x0f\x03\x76\x78\x06\x0e\x20\x0d\x06", "1000 rbp+32 s c-8");
	CHECK_ROWS("\x0e\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "(damaged instruction)");
	CHECK_ROWS("\x13\x80\x80\x80\x80\x80\x80\x80\x80\x40", "(damaged instruction)");
}

static void registers(void)
{
	CHECK_ROWS("\x86\x02", "1000 rsp+8 c-16 c-8");
	CHECK_ROWS("\x05\x06\x03", "1000 rsp+8 c-24 c-8");
	CHECK_ROWS("\x11\x06\x7f", "1000 rsp+8 c+8 c-8");
	CHECK_ROWS("\x2f\x06\x02", "1000 rsp+8 c+16 c-8");
	CHECK_ROWS("\x14\x06\x02", "1000 rsp+8 v-16 c-8");
	CHECK_ROWS("\x15\x06\x7f", "1000 rsp+8 v+8 c-8");
	CHECK_ROWS("\x07\x06", "1000 rsp+8 u c-8");
	CHECK_ROWS("\x07\x10", "1000 rsp+8 s u");
	CHECK_ROWS("\x08\x06", "1000 rsp+8 s c-8");
	CHECK_ROWS("\x09\x06\x09\x09\x10\x01", "1000 rsp+8 r9+0 rdx+0");
	CHECK_ROWS("\x86\x02\x41\xc6", "1000 rsp+8 c-16 c-8; 1001 rsp+8 s c-8");
	CHECK_ROWS("\x07\x10\x41\x06\x10", "1000 rsp+8 s u; 1001 rsp+8 s c-8");
	/* Others do not matter, but must be read over. */
	CHECK_ROWS("\x83\x02\x05\x03\x02\x11\x0c\x7e\x14\x03\x01\x15\x03\x01\x07\x03\x08\x03\x09"
		   "\x03\x04\xc3\x06\x03\x10\x03\x01\x30\x16\x03\x01\x30\x2e\x10\x00\x2f\x03\x01",
		"1000 rsp+8 s c-8");
	CHECK_ROWS("\x86\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "(damaged instruction)");
	CHECK_ROWS("\x86", "(damaged instruction)");
	CHECK_ROWS("\x10\x06\x05\x76", "(damaged instruction)");
}

static void states(void)
{
	CHECK_ROWS("\x0a\x41\x0e\x10\x86\x02\x41\x0b",
		"1000 rsp+8 s c-8; 1001 rsp+16 c-16 c-8; 1002 rsp+8 s c-8");
	CHECK_ROWS("\x0a\x0e\x10\x0a\x0e\x18\x41\x0b\x41\x0b",
		"1000 rsp+24 s c-8; 1001 rsp+16 s c-8; 1002 rsp+8 s c-8");
	CHECK_ROWS("\x0b", "(unbalanced or too many remembered states)");
	char insns[SONDE_CFI_MAX_REMEMBERED + 1];
	memset(insns, 0x0a, sizeof(insns));
	CHECK_STR(rows_for(insns, SONDE_CFI_MAX_REMEMBERED), "1000 rsp+8 s c-8");
	CHECK_STR(rows_for(insns, SONDE_CFI_MAX_REMEMBERED + 1),
		"(unbalanced or too many remembered states)");
}

static void expressions_of_the_cfa(void)
{
	/* Both PLTs of binutils, and any other threshold. */
	CHECK_ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22", "1000 rsp+8/11 s c-8");
	CHECK_ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3a\x2a\x33\x24\x22", "1000 rsp+8/10 s c-8");
	CHECK_ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x35\x2a\x33\x24\x22", "1000 rsp+8/5 s c-8");
	/* The sum the other way round; the pc of rax is none; another mask, shift, comparison. */
	CHECK_ROWS("\x0f\x0b\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x77\x08\x22", "1000 rsp+8/11 s c-8");
	CHECK_ROWS("\x0f\x0b\x77\x08\x70\x00\x3f\x1a\x3b\x2a\x33\x24\x22", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x0b\x77\x08\x80\x00\x3e\x1a\x3b\x2a\x33\x24\x22", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x32\x24\x22", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2b\x33\x24\x22", "1000 exp s c-8");
	/* GCC's realigned frames, OpenSSL's saved stack pointers, signal frames. */
	CHECK_ROWS("\x0f\x03\x76\x78\x06", "1000 [rbp-8]+0 s c-8");
	CHECK_ROWS("\x0f\x06\x77\xf8\x00\x06\x23\x08", "1000 [rsp+120]+8 s c-8");
	CHECK_ROWS("\x0f\x04\x77\xa0\x01\x06", "1000 [rsp+160]+0 s c-8");
	CHECK_ROWS("\x0f\x04\x77\x08\x94\x08", "1000 [rsp+8]+0 s c-8");
	CHECK_ROWS("\x0f\x04\x77\x08\x94\x04", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x04\x77\x08\x06\x06", "1000 exp s c-8");
	/* Sums that are no expression at all. */
	CHECK_ROWS("\x0f\x02\x77\x10", "1000 rsp+16 s c-8");
	CHECK_ROWS("\x0f\x04\x77\x10\x23\x08", "1000 rsp+24 s c-8");
	CHECK_ROWS("\x0f\x04\x77\x10\x38\x1c", "1000 rsp+8 s c-8");
	CHECK_ROWS("\x0f\x04\x38\x77\x10\x22", "1000 rsp+24 s c-8");
	CHECK_ROWS("\x0f\x03\x92\x07\x10", "1000 rsp+16 s c-8");
	CHECK_ROWS("\x0f\x06\x77\x10\x08\xff\x22\x96", "1000 rsp+271 s c-8");
	CHECK_ROWS("\x0f\x05\x77\x10\x09\xff\x22", "1000 rsp+15 s c-8");
	CHECK_ROWS("\x0f\x06\x77\x10\x0a\x00\x01\x22", "1000 rsp+272 s c-8");
	CHECK_ROWS("\x0f\x06\x77\x10\x0b\xff\xff\x22", "1000 rsp+15 s c-8");
	CHECK_ROWS("\x0f\x08\x77\x10\x0c\x00\x00\x01\x00\x22", "1000 rsp+65552 s c-8");
	CHECK_ROWS("\x0f\x08\x77\x10\x0d\xff\xff\xff\xff\x22", "1000 rsp+15 s c-8");
	CHECK_ROWS("\x0f\x0c\x77\x10\x0e\x01\x00\x00\x00\x00\x00\x00\x00\x22", "1000 rsp+17 s c-8");
	CHECK_ROWS("\x0f\x05\x77\x10\x10\x02\x22", "1000 rsp+18 s c-8");
	CHECK_ROWS("\x0f\x05\x77\x10\x11\x7f\x22", "1000 rsp+15 s c-8");
	CHECK_ROWS("\x0f\x05\x77\x10\x12\x13\x96", "1000 rsp+16 s c-8");
	CHECK_ROWS("\x0f\x05\x38\x77\x10\x16\x22", "1000 rsp+24 s c-8");
	/* rsp + 8 * r9: of none of these shapes. */
	CHECK_ROWS("\x0f\x0a\x77\x08\x79\x00\x38\x1e\x22\x06\x23\x08", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x00", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x01\x22", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x01\x77", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x09\x30\x30\x30\x30\x30\x30\x30\x30\x30", "1000 exp s c-8");
	CHECK_ROWS("\x0f\x05\x77\x08\x06\x38\x1a", "1000 exp s c-8");
	CHECK_ROWS(
		"\x0f\x0d\x77\x08\x0e\xff\xff\xff\xff\xff\xff\xff\x7f\x22\x22", "1000 exp s c-8");
	/* Longer than what is left. */
	CHECK_ROWS("\x0f\x05\x77\x08", "(damaged instruction)");
	CHECK_ROWS("\x0f\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "(damaged instruction)");
}

static void expressions_of_registers(void)
{
	CHECK_ROWS("\x10\x06\x03\x77\xf8\x00\x10\x10\x03\x77\xa8\x01",
		"1000 rsp+8 [rsp+120] [rsp+168]");
	CHECK_ROWS("\x10\x06\x02\x76\x00", "1000 rsp+8 [rbp+0] c-8");
	CHECK_ROWS("\x10\x06\x02\x23\x08", "1000 rsp+8 c+8 c-8"); /* the CFA is on the stack */
	CHECK_ROWS("\x10\x06\x02\x40\x1c", "1000 rsp+8 c-16 c-8");
	CHECK_ROWS("\x16\x06\x02\x76\x10", "1000 rsp+8 rbp+16 c-8");
	CHECK_ROWS("\x16\x06\x03\x76\x10\x06", "1000 rsp+8 [rbp+16] c-8");
	CHECK_ROWS("\x16\x06\x02\x40\x1c", "1000 rsp+8 v-16 c-8");
	CHECK_ROWS("\x16\x06\x03\x40\x1c\x06", "1000 rsp+8 c-16 c-8");
	CHECK_ROWS("\x16\x06\x05\x76\x10\x06\x23\x08", "1000 rsp+8 [rbp+16]+8 c-8");
	CHECK_ROWS("\x10\x06\x03\x76\x10\x06", "1000 rsp+8 exp c-8");
	CHECK_ROWS("\x10\x06\x01\x38", "1000 rsp+8 exp c-8");
}

static void of_arm64(void)
{
	CHECK_STR(rows_for_arm64("", BUILD_BYTES("\x41\x0e\x20\x9d\x04\x9e\x03")),
		"1000 sp+0 s s; 1004 sp+32 c-32 c-24");
	CHECK_STR(rows_for_arm64("", BUILD_BYTES("\x41\x2d\x41\x0e\x10\x41\x2d")),
		"1000 sp+0 s s; 1004 sp+0 s s N; 1008 sp+16 s s N; 100c sp+16 s s");
	CHECK_STR(
		rows_for_arm64("zB", BUILD_BYTES("\x41\x2d")), "1000 sp+0 s s B; 1004 sp+0 s s NB");
	CHECK_STR(rows_for_arm64("zG", BUILD_BYTES("\x41\x2c")), "1000 sp+0 s s; 1004 sp+0 s s N");
	CHECK_STR(rows_for_arm64("", BUILD_BYTES("\x2d\x0a\x41\x2d\x41\x0b")),
		"1000 sp+0 s s N; 1004 sp+0 s s; 1008 sp+0 s s N");
	CHECK_STR(rows_for_arm64("", BUILD_BYTES("\x07\x1e")), "1000 sp+0 s u");
	CHECK_STR(rows_for_arm64("", BUILD_BYTES("\x0d\x1d\x0c\x1d\x10")), "1000 x29+16 s s");
	/* It has no pc among the registers of expressions. */
	CHECK_STR(rows_for_arm64(
			  "", BUILD_BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22")),
		"1000 exp s s");
	CHECK_ROWS("\x2d", "(unknown instruction)");
}

static void unknown_instructions(void)
{
	static const uint8_t unknown[] = {0x17, 0x1c, 0x1e, 0x2c, 0x2d, 0x30, 0x3f};
	for (size_t i = 0; i < sizeof(unknown); i++)
		CHECK_STR(rows_for((const char *)&unknown[i], 1), "(unknown instruction)");
	/* It loses its FDE, no other one, and rows may have been seen before. */
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x1000, 0x10, BUILD_BYTES("\x41\x0e\x10\x41\x3f"));
	build_fde(&b, &c, cie, 0x1010, 0x10, BUILD_BYTES(""));
	CHECK_STR(rows_in(&b, &x86_64),
		"1000 rsp+8 s c-8; 1001 rsp+16 s c-8; (unknown instruction) | 1010 rsp+8 s c-8");
}

/* --- CIEs --- */

static const char *rows_with(const struct build_cie *c, const struct sonde_cfi_space *space)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	size_t cie = build_cie(&b, c);
	build_fde(&b, c, cie, 0x1000, 0x100, BUILD_BYTES("\x41\x0e\x10"));
	struct sonde_cfi_section s = {
		.data = b.data, .len = b.len, .addr = 0x500000, .debug_frame = c->debug_frame};
	return rows_of(&s, space);
}
#define PLAIN "1000 rsp+8 s c-8; 1001 rsp+16 s c-8"

static void versions(void)
{
	for (int debug_frame = 0; debug_frame < 2; debug_frame++)
		for (int long_form = 0; long_form < 2; long_form++)
			for (uint8_t version = 1; version < 6; version++) {
				struct build_cie c = {.debug_frame = debug_frame,
					.long_form = long_form,
					.version = version,
					.addr_bytes = 8};
				bool known = version != 2 && version != 5;
				CHECK_STR(rows_with(&c, &x86_64), known ? PLAIN : "");
				CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_VERSION], !known);
				CHECK_EQ(last_counts.n_cies, 1);
				CHECK_EQ(last_counts.n_fdes, 1);
			}
	struct build_cie c = {.version = 4, .addr_bytes = 4};
	CHECK_STR(rows_with(&c, &x86_64), PLAIN);
	c.addr_bytes = 2;
	CHECK_STR(rows_with(&c, &x86_64), "");
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_ENCODING], 1);
	c.addr_bytes = 8;
	c.selector_bytes = 2;
	CHECK_STR(rows_with(&c, &x86_64), "");
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_ENCODING], 1);
	/* The 64-bit form in .eh_frame, its id as the LSB has it. */
	struct build_cie lsb = {.long_form = true, .short_id = true};
	CHECK_STR(rows_with(&lsb, &x86_64), PLAIN);
}

static void augmentations(void)
{
	static const struct {
		const char *text, *data;
		size_t n;
		const char *rows;
		enum sonde_cfi_reason reason;
	} cases[] = {
		{"zR", BUILD_BYTES("\x00"), PLAIN, 0},
		{"zPLR", BUILD_BYTES("\x1b\x10\x20\x30\x40\x1b\x00"), PLAIN, 0},
		{"zPR", BUILD_BYTES("\x9b\x10\x20\x30\x40\x00"), PLAIN, 0}, /* not followed */
		{"zPR", BUILD_BYTES("\xff\x00"), PLAIN, 0},
		{"zRS", BUILD_BYTES("\x00"), "1000 rsp+8 s c-8 S; 1001 rsp+16 s c-8 S", 0},
		{"z", BUILD_BYTES(""), PLAIN, 0},
		{"z", BUILD_BYTES("\x01\x02\x03"), PLAIN, 0}, /* more than it says */
		{"eh", BUILD_BYTES(""), PLAIN, 0},
		{"S", BUILD_BYTES(""), "1000 rsp+8 s c-8 S; 1001 rsp+16 s c-8 S", 0},
		{"R", BUILD_BYTES("\x04"), PLAIN, 0}, /* without z */
		{"zQ", BUILD_BYTES(""), "", SONDE_CFI_BAD_AUGMENTATION},
		{"armcc+", BUILD_BYTES(""), "", SONDE_CFI_BAD_AUGMENTATION},
		{"zP", BUILD_BYTES("\x77\x00"), "", SONDE_CFI_BAD_ENCODING},
		{"zR", BUILD_BYTES(""), "", SONDE_CFI_BAD_RECORD},
		{"zR", BUILD_BYTES("\xff"), "", SONDE_CFI_BAD_ENCODING},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(cases); i++) {
		struct build_cie c = {.augmentation = cases[i].text,
			.data = cases[i].data,
			.data_len = cases[i].n};
		CHECK_STR(rows_with(&c, &x86_64), cases[i].rows);
		if (cases[i].reason)
			CHECK_EQ(last_counts.refused[cases[i].reason], 1);
	}
}

static void instructions_of_cies(void)
{
	struct build_cie c = {.insns = "\x0c\x06\x10\x86\x02\x90\x01", .n_insns = 7};
	CHECK_STR(rows_with(&c, &x86_64), "1000 rbp+16 c-16 c-8");
	struct build_cie moves = {.insns = "\x0c\x07\x08\x41", .n_insns = 4};
	CHECK_STR(rows_with(&moves, &x86_64), "");
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_OPERAND], 1);
	struct build_cie unknown = {.insns = "\x3f", .n_insns = 1};
	CHECK_STR(rows_with(&unknown, &x86_64), "");
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_OPCODE], 1);
}

/* --- encodings of addresses --- */

static bool read_word(const void *ctx, uint64_t addr, uint64_t *ret)
{
	*ret = 0x1000;
	return addr == 0x700010;
}

static void encodings(void)
{
	static const struct sonde_cfi_space space = {.machine = EM_X86_64,
		.text_addr = 0x800,
		.data_addr = 0x900,
		.read_word = read_word};
	const struct {
		uint8_t encoding;
		unsigned bytes, len_bytes;
		uint64_t value;
		bool pcrel, fine;
	} cases[] = {
		{0x00, 8, 8, 0x1000, false, true},
		{0x01, 2, 2, 0x20 << 8 | 0x80, false, true}, /* uleb128 */
		{0x02, 2, 2, 0x1000, false, true},
		{0x03, 4, 4, 0x1000, false, true},
		{0x04, 8, 8, 0x1000, false, true},
		{0x08, 8, 8, 0x1000, false, true},
		{0x09, 2, 2, 0x20 << 8 | 0x80, false, true}, /* sleb128 */
		{0x0a, 2, 2, 0x1000, false, true},
		{0x0b, 4, 4, 0x1000, false, true},
		{0x0c, 8, 8, 0x1000, false, true},
		{0x1b, 4, 4, 0x1000, true, true},
		{0x10, 8, 8, 0x1000, true, true},
		{0x2b, 4, 4, 0x800, false, true},
		{0x3b, 4, 4, 0x700, false, true},
		{0x43, 4, 4, 0x1000, false, true},
		{0x80, 8, 8, 0x700010, false, true},
		{0xbb, 4, 4, 0x700010 - 0x900, false, true},
		{0x9b, 4, 4, 0x700010, true, true},
		{0x80, 8, 8, 0x700018, false, false},
		{0x05, 8, 8, 0x1000, false, false},
		{0x63, 4, 4, 0x1000, false, false},
		{0x73, 4, 4, 0x1000, false, false},
		{0x53, 4, 4, 0x1000, false, false},
		{0xff, 8, 8, 0x1000, false, false},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(cases); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0}, r = {0};
		struct build_cie c = {
			.augmentation = "zR", .data = &cases[i].encoding, .data_len = 1};
		size_t cie = build_cie(&b, &c);
		build_fde_id(&r, &b, &c, cie);
		uint64_t at = 0x500000 + b.len + 8;
		build_number(&r, cases[i].value - (cases[i].pcrel ? at : 0), cases[i].bytes, false);
		build_number(&r,
			cases[i].len_bytes == 2 && (cases[i].encoding & 7) == 1 ? 0x80 | 1 << 8
										: 0x80,
			cases[i].len_bytes, false);
		build_u8(&r, 0);
		sonde_buf_add(&r, "\x41\x0e\x10", 3);
		build_record(&b, false, &r);
		CHECK_STR(rows_in(&b, &space), cases[i].fine ? PLAIN : "");
		CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_ENCODING], !cases[i].fine);
		sonde_buf_deinit(&r);
	}
}

static void aligned_addresses(void)
{
	for (unsigned shift = 0; shift < 8; shift++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0}, r = {0};
		struct build_cie c = {.augmentation = "zR", .data = "\x50", .data_len = 1};
		size_t cie = build_cie(&b, &c);
		build_fde_id(&r, &b, &c, cie);
		uint64_t addr = 0x500000 + shift;
		build_zeros(&r, (8 - (addr + b.len + 8) % 8) % 8);
		build_u64(&r, 0x1000);
		build_u64(&r, 0x80);
		build_u8(&r, 0);
		sonde_buf_add(&r, "\x41\x0e\x10", 3);
		build_record(&b, false, &r);
		struct sonde_cfi_section s = {.data = b.data, .len = b.len, .addr = addr};
		CHECK_STR(rows_of(&s, &x86_64), PLAIN);
	}
}

static void set_loc_is_encoded(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0}, r = {0};
	struct build_cie c = {.augmentation = "zR", .data = "\x1b", .data_len = 1};
	size_t cie = build_cie(&b, &c);
	build_fde_id(&r, &b, &c, cie);
	uint64_t at = 0x500000 + b.len + 8;
	build_u32(&r, (uint32_t)(0x1000 - at));
	build_u32(&r, 0x80);
	build_u8(&r, 0);
	build_u8(&r, 0x01);
	build_u32(&r, (uint32_t)(0x1001 - (at + 10)));
	sonde_buf_add(&r, "\x0e\x10", 2);
	build_record(&b, false, &r);
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
}

/* An LSDA pointer that no z lets skip. */
static void lsda_without_length(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0}, r = {0};
	struct build_cie c = {.augmentation = "L", .data = "\x03", .data_len = 1};
	size_t cie = build_cie(&b, &c);
	build_fde_id(&r, &b, &c, cie);
	build_u64(&r, 0x1000);
	build_u64(&r, 0x80);
	build_u32(&r, 0x12345678);
	sonde_buf_add(&r, "\x41\x0e\x10", 3);
	build_record(&b, false, &r);
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
}

/* --- which FDEs there are --- */

static void order_and_overlaps(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x3000, 0x10, BUILD_BYTES(""));
	build_fde(&b, &c, cie, 0x1000, 0x100, BUILD_BYTES("\x0e\x10"));
	build_fde(&b, &c, cie, 0x1000, 0x10, BUILD_BYTES("\x0e\x18")); /* a duplicate */
	build_fde(&b, &c, cie, 0x1080, 0x10, BUILD_BYTES("\x0e\x20")); /* inside another */
	build_fde(&b, &c, cie, 0x2000, 0, BUILD_BYTES("")); /* empty */
	build_fde(&b, &c, cie, 0, 0x10, BUILD_BYTES("")); /* discarded */
	build_fde(&b, &c, cie, UINT64_MAX - 4, 0x10, BUILD_BYTES("")); /* around */
	CHECK_STR(rows_in(&b, &x86_64), "1000 rsp+16 s c-8 | 1080 rsp+32 s c-8 | 3000 rsp+8 s c-8");
	CHECK_EQ(last_counts.n_fdes, 7);
	CHECK_EQ(last_counts.n_cut, 1);
	CHECK_EQ(last_counts.refused[SONDE_CFI_DUPLICATE], 1);
	CHECK_EQ(last_counts.refused[SONDE_CFI_EMPTY], 1);
	CHECK_EQ(last_counts.refused[SONDE_CFI_DISCARDED], 1);
	CHECK_EQ(last_counts.refused[SONDE_CFI_OUTSIDE], 1);

	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	struct sonde_cfi_section s = {.data = b.data, .len = b.len};
	REQUIRE_OK(sonde_cfi_open_sections(&s, 1, &x86_64, &cfi));
	CHECK(!sonde_cfi_find(cfi, 0xfff));
	CHECK(sonde_cfi_find(cfi, 0x1000) == &cfi->fdes[0]);
	CHECK(sonde_cfi_find(cfi, 0x107f) == &cfi->fdes[0]);
	CHECK(sonde_cfi_find(cfi, 0x108f) == &cfi->fdes[1]);
	CHECK(!sonde_cfi_find(cfi, 0x1090)); /* the outer one does not come back */
	CHECK(sonde_cfi_find(cfi, 0x300f) == &cfi->fdes[2]);
	CHECK(!sonde_cfi_find(cfi, 0x3010));
}

static void many_in_any_order(void)
{
	enum { N = 5000 };
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	for (uint64_t i = 0; i < N; i++)
		build_fde(&b, &c, cie, 0x1000 + i * 7919 % N * 0x123456, 0x10, BUILD_BYTES(""));
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	struct sonde_cfi_section s = {.data = b.data, .len = b.len};
	REQUIRE_OK(sonde_cfi_open_sections(&s, 1, &x86_64, &cfi));
	REQUIRE(cfi->n_fdes == N);
	for (uint64_t i = 0; i < N; i++)
		CHECK_EQ(cfi->fdes[i].start, 0x1000 + i * 0x123456);
}

static void code_ranges(void)
{
	struct sonde_cfi_space space = {
		.machine = EM_X86_64, .code = {{0x1000, 0x1008}, {0x2000, 0x3000}}, .n_code = 2};
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x1000, 0x10, BUILD_BYTES("\x47\x0e\x10\x41\x0e\x18"));
	build_fde(&b, &c, cie, 0x1800, 0x10, BUILD_BYTES(""));
	build_fde(&b, &c, cie, 0x3000, 0x10, BUILD_BYTES(""));
	build_fde(&b, &c, cie, 0x2ff0, UINT64_C(1) << 40, BUILD_BYTES(""));
	CHECK_STR(rows_in(&b, &space), "1000 rsp+8 s c-8; 1007 rsp+16 s c-8 | 2ff0 rsp+8 s c-8");
	CHECK_EQ(last_counts.refused[SONDE_CFI_OUTSIDE], 2);
}

static void eh_frame_before_debug_frame(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf eh = {0}, debug = {0};
	struct build_cie c = {0}, d = {.debug_frame = true, .version = 3};
	size_t cie = build_cie(&eh, &c);
	build_fde(&eh, &c, cie, 0x1000, 0x100, BUILD_BYTES(""));
	build_fde(&eh, &c, cie, 0x2000, 0x100, BUILD_BYTES(""));
	/* In .debug_frame the CIE may stand behind its FDEs. */
	size_t at = 0;
	for (int i = 0; i < 2; i++) {
		debug.len = 0;
		build_fde(&debug, &d, at, 0x1000, 0x100, BUILD_BYTES("\x0e\x10")); /* the same */
		build_fde(&debug, &d, at, 0x1080, 0x10, BUILD_BYTES("\x0e\x18")); /* inside */
		build_fde(&debug, &d, at, 0x1ff0, 0x20, BUILD_BYTES("\x0e\x20")); /* before */
		build_fde(&debug, &d, at, 0x3000, 0x20, BUILD_BYTES("\x0e\x28"));
		build_fde(&debug, &d, at, 1, 0x20, BUILD_BYTES("")); /* marks of linkers */
		build_fde(&debug, &d, at, UINT64_MAX - 1, 1, BUILD_BYTES(""));
		at = build_cie(&debug, &d);
	}
	struct sonde_cfi_section s[] = {{.data = eh.data, .len = eh.len},
		{.data = debug.data, .len = debug.len, .debug_frame = true}};
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	REQUIRE_OK(sonde_cfi_open_sections(s, 2, &x86_64, &cfi));
	for (size_t i = 0; i < cfi->n_fdes; i++)
		add_rows(&text, cfi, &cfi->fdes[i]);
	CHECK_STR(sonde_buf_text(&text),
		"1000 rsp+8 s c-8 | 1ff0 rsp+32 s c-8 | 2000 rsp+8 s c-8 | 3000 rsp+40 s c-8");
	CHECK_EQ(cfi->counts.refused[SONDE_CFI_COVERED], 2);
	CHECK_EQ(cfi->counts.refused[SONDE_CFI_DISCARDED], 2);
	CHECK_EQ(cfi->counts.n_cut, 0);
	sonde_buf_deinit(&debug);
}

/* --- damage --- */

static void terminators(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x1000, 0x10, BUILD_BYTES(""));
	build_u32(&b, 0);
	build_fde(&b, &c, cie, 0x2000, 0x10, BUILD_BYTES(""));
	build_u32(&b, 0);
	build_u8(&b, 0);
	CHECK_STR(rows_in(&b, &x86_64), "1000 rsp+8 s c-8 | 2000 rsp+8 s c-8");
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_RECORD], 0);
	struct sonde_cfi_section s = {.data = b.data, .len = b.len, .ends_at_zero = true};
	CHECK_STR(rows_of(&s, &x86_64), "1000 rsp+8 s c-8");
	struct sonde_cfi_section empty = {0};
	CHECK_STR(rows_of(&empty, &x86_64), "");
}

static void damaged_records(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	size_t cie = build_cie(&b, &c);
	size_t first = build_fde(&b, &c, cie, 0x1000, 0x10, BUILD_BYTES("\x41\x0e\x10"));
	size_t second = build_fde(&b, &c, cie, 0x2000, 0x10, BUILD_BYTES(""));
	/* Cut anywhere: never more than what is whole, never a word about what is. */
	for (size_t len = 0; len < b.len; len++) {
		uint8_t *exact = malloc(len ? len : 1);
		memcpy(exact, b.data, len);
		struct sonde_cfi_section s = {.data = exact, .len = len};
		CHECK_STR(rows_of(&s, &x86_64), len >= second ? PLAIN : "");
		free(exact);
	}
	/* A length that passes the end, the reserved ones, an FDE that names no CIE, or another FDE. */
	build_patch(&b, second, 0x1000, 4);
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_RECORD], 1);
	build_patch(&b, second, 0xfffffff3, 4);
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_RECORD], 1);
	build_patch(&b, second, b.len - second - 4, 4);
	build_patch(&b, second + 4, second + 4 - first, 4);
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_CIE], 1);
	build_patch(&b, second + 4, 0x7fffffff, 4);
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_CIE], 1);
	/* Too short for what it must hold. */
	build_patch(&b, second, 10, 4);
	build_patch(&b, second + 4, second + 4 - cie, 4);
	b.len = second + 14;
	CHECK_STR(rows_in(&b, &x86_64), PLAIN);
	CHECK_EQ(last_counts.refused[SONDE_CFI_BAD_RECORD], 1);
}

/* Each byte of a small section in turn takes each of some values. */
static void any_byte(void)
{
	static const uint8_t values[] = {0, 1, 4, 0x0a, 0x0f, 0x10, 0x7f, 0x80, 0xc6, 0xff};
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {
		.augmentation = "zPLR", .data = "\x03\x01\x02\x03\x04\x1b\x00", .data_len = 7};
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x1000, 0x100,
		BUILD_BYTES("\x41\x0e\x10\x86\x02\x0a\x42\x0f\x03\x76\x78\x06\x41\x0b"));
	build_fde(&b, &c, cie, 0x2000, 0x10, BUILD_BYTES(""));
	for (size_t i = 0; i < b.len; i++)
		for (size_t k = 0; k < sizeof(values); k++) {
			char was = b.data[i];
			b.data[i] = (char)values[k];
			(void)rows_in(&b, &x86_64);
			(void)rows_in(&b, &arm64);
			b.data[i] = was;
		}
	CHECK(rows_in(&b, &x86_64)[0]);
}

/* --- ELF files --- */

static struct sonde_error *open_elf(
	const struct build_elf *e, struct sonde_elf **elf, struct sonde_cfi **cfi)
{
	static struct sonde_buf b;
	build_elf_write(e, &b);
	SONDE_TRY(sonde_elf_open_bytes(b.data, b.len, "x", elf));
	return sonde_cfi_open(*elf, NULL, cfi);
}

static void files(void)
{
	static char text[0x1000];
	sonde_cleanup(sonde_buf) struct sonde_buf eh = {0}, debug = {0};
	struct build_cie c = {.augmentation = "zR", .data = "\x2b", .data_len = 1},
			 d = {.debug_frame = true};
	size_t cie = build_cie(&eh, &c);
	sonde_cleanup(sonde_buf) struct sonde_buf r = {0};
	build_fde_id(&r, &eh, &c, cie);
	build_u32(&r, 0x10);
	build_u32(&r, 0x20);
	build_u8(&r, 0);
	build_record(&eh, false, &r);
	cie = build_cie(&debug, &d);
	build_fde(&debug, &d, cie, 0x1100, 0x20, BUILD_BYTES("\x0e\x10"));

	struct build_elf e = {.type = ET_DYN};
	build_segment(&e, PT_LOAD, PF_R | PF_X, 0x1000, text, sizeof(text));
	build_section(&e, ".text", SHT_PROGBITS, "x", 1)->addr = 0x1000;
	build_section(&e, ".eh_frame", SHT_PROGBITS, eh.data, eh.len)->addr = 0x3000;
	build_section(&e, ".debug_frame", SHT_PROGBITS, debug.data, debug.len);
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	REQUIRE_OK(open_elf(&e, &elf, &cfi));
	REQUIRE(cfi->n_fdes == 2);
	CHECK_EQ(cfi->fdes[0].start, 0x1010);
	CHECK_EQ(cfi->fdes[1].start, 0x1100);
	sonde_cfi_free(sonde_take(cfi));
	sonde_elf_free(sonde_take(elf));

	/* A stripped file and the .debug_frame of its debug file, whose .eh_frame is empty. */
	sonde_cleanup(sonde_buf) struct sonde_buf bytes = {0};
	struct build_elf only_debug = {.type = ET_DYN};
	build_section(&only_debug, ".eh_frame", SHT_NOBITS, NULL, 100);
	build_section(&only_debug, ".debug_frame", SHT_PROGBITS, debug.data, debug.len);
	build_elf_write(&only_debug, &bytes);
	sonde_cleanup(sonde_elf) struct sonde_elf *debug_elf = NULL;
	REQUIRE_OK(sonde_elf_open_bytes(bytes.data, bytes.len, "x", &debug_elf));
	e.n_sections = 2;
	sonde_cleanup(sonde_buf) struct sonde_buf main_bytes = {0};
	build_elf_write(&e, &main_bytes);
	REQUIRE_OK(sonde_elf_open_bytes(main_bytes.data, main_bytes.len, "x", &elf));
	REQUIRE_OK(sonde_cfi_open(elf, debug_elf, &cfi));
	CHECK_EQ(cfi->n_fdes, 2);
	sonde_cfi_free(sonde_take(cfi));
	/* That debug file alone. */
	REQUIRE_OK(sonde_cfi_open(debug_elf, NULL, &cfi));
	CHECK_EQ(cfi->n_fdes, 1);
	sonde_cfi_free(sonde_take(cfi));
	sonde_elf_free(sonde_take(elf));

	/* Neither. */
	e.n_sections = 1;
	REQUIRE_OK(open_elf(&e, &elf, &cfi));
	CHECK_EQ(cfi->n_fdes, 0);
	sonde_buf_deinit(&r);
	sonde_buf_deinit(&debug);
	sonde_buf_deinit(&main_bytes);
}

static void without_sections(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct build_cie c = {0};
	/* .eh_frame_hdr of version 1, whose pointer is relative to its own place. */
	sonde_buf_add(&b, "\x01\x1b\xff\xff", 4);
	build_u32(&b, 4);
	size_t cie = build_cie(&b, &c);
	build_fde(&b, &c, cie, 0x2000, 0x20, BUILD_BYTES(""));
	build_u32(&b, 0);
	sonde_buf_str(&b, "what is no call-frame information");
	struct build_elf e = {.type = ET_DYN};
	build_segment(&e, PT_LOAD, PF_R | PF_X, 0x1000, b.data, b.len)->mem_bytes = 0x2000;
	struct build_segment *hdr = build_segment(&e, PT_GNU_EH_FRAME, PF_R, 0x1000, NULL, 0);
	hdr->offset = 4096;
	hdr->file_bytes = 8;
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	REQUIRE_OK(open_elf(&e, &elf, &cfi));
	REQUIRE(cfi->n_fdes == 1);
	CHECK_EQ(cfi->fdes[0].start, 0x2000);
	CHECK_EQ(cfi->counts.refused[SONDE_CFI_BAD_RECORD], 0);
}

static void other_files(void)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	struct build_elf i386 = {.type = ET_DYN, .word_bytes = 4};
	CHECK_ERROR(open_elf(&i386, &elf, &cfi), SONDE_UNSUPPORTED, "32 bits");
	sonde_elf_free(sonde_take(elf));
	struct build_elf big = {.type = ET_DYN, .machine = EM_AARCH64, .big_endian = true};
	CHECK_ERROR(open_elf(&big, &elf, &cfi), SONDE_UNSUPPORTED, "big-endian");
	sonde_elf_free(sonde_take(elf));
	struct build_elf s390 = {.type = ET_DYN, .machine = EM_S390};
	CHECK_ERROR(open_elf(&s390, &elf, &cfi), SONDE_UNSUPPORTED, "s390");
	sonde_elf_free(sonde_take(elf));
	struct build_elf object = {.type = ET_REL};
	CHECK_ERROR(open_elf(&object, &elf, &cfi), SONDE_UNSUPPORTED, "relocatable");
	struct sonde_cfi_space space = {.machine = EM_RISCV};
	CHECK_ERROR(
		sonde_cfi_open_sections(NULL, 0, &space, &cfi), SONDE_UNSUPPORTED, "call-frame");
}

static void the_vdso(void)
{
	const void *image = (const void *)getauxval(AT_SYSINFO_EHDR);
	if (!image)
		SKIP("this process has no vDSO");
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	REQUIRE_OK(sonde_elf_open_bytes(image, 4096, "[vdso]", &elf));
	REQUIRE_OK(sonde_cfi_open(elf, NULL, &cfi));
	CHECK(cfi->n_fdes > 0);
	for (size_t i = 0; i < cfi->n_fdes; i++)
		add_rows(&text, cfi, &cfi->fdes[i]);
	CHECK(!strchr(sonde_buf_text(&text), '('));
	const struct sonde_elf_segment *s = &elf->segments[0];
	CHECK(cfi->n_fdes && cfi->fdes[0].start >= s->addr &&
		cfi->fdes[cfi->n_fdes - 1].start < s->addr + s->mem_bytes);
}

int main(void)
{
	RUN(locations);
	RUN(the_cfa);
	RUN(registers);
	RUN(states);
	RUN(expressions_of_the_cfa);
	RUN(expressions_of_registers);
	RUN(of_arm64);
	RUN(unknown_instructions);
	RUN(versions);
	RUN(augmentations);
	RUN(instructions_of_cies);
	RUN(encodings);
	RUN(aligned_addresses);
	RUN(set_loc_is_encoded);
	RUN(lsda_without_length);
	RUN(order_and_overlaps);
	RUN(many_in_any_order);
	RUN(code_ranges);
	RUN(eh_frame_before_debug_frame);
	RUN(terminators);
	RUN(damaged_records);
	RUN(any_byte);
	RUN(files);
	RUN(without_sections);
	RUN(other_files);
	RUN(the_vdso);
	return tap_end();
}
