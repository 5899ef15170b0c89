/*
 * tests/build_dwarf.h: DWARF in the making. A test writes the DIEs that it is about, byte by byte where it matters;
 * dw_elf() puts an ELF file around them. Every DIE gets an abbreviation of its own.
 */
#pragma once
#include <assert.h>
#include <dwarf.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>
#include "base/buf.h"
#include "base/varint.h"
#include "object/dwarf.h"

enum dw_section {
	DW_INFO,
	DW_ABBREV,
	DW_STR,
	DW_LINE_STR,
	DW_STR_OFFSETS,
	DW_ADDR,
	DW_LINE,
	DW_RANGES,
	DW_RNGLISTS,
	DW_LOC,
	DW_LOCLISTS,
	DW_TYPES,
	DW_N_SECTIONS,
};

enum dw_packing { DW_PLAIN, DW_ZLIB, DW_ZSTD, DW_ZDEBUG };

struct dw {
	struct sonde_buf sections[DW_N_SECTIONS];
	unsigned version;
	size_t unit_start; /* in DW_INFO */
	uint64_t n_abbrevs;
};

static inline void dw_deinit(struct dw *w)
{
	for (int i = 0; i < DW_N_SECTIONS; i++)
		sonde_buf_deinit(&w->sections[i]);
}

static inline void sonde_cleanup_dw(struct dw *w)
{
	dw_deinit(w);
}

static inline void dw_word(struct sonde_buf *b, uint64_t v, unsigned bytes)
{
	sonde_buf_add(b, &v, bytes); /* little-endian hosts only, as the tests' inputs */
}

static inline void dw_uleb(struct sonde_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	sonde_buf_add(b, bytes, sonde_varint_encode(bytes, v));
}

static inline void dw_sleb(struct sonde_buf *b, int64_t v)
{
	for (bool more = true; more;) {
		uint8_t byte = v & 0x7f;
		v >>= 7;
		more = !((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40)));
		sonde_buf_char(b, (char)(byte | (more ? 0x80 : 0)));
	}
}

/* Values of the DIE begun last; all go to .debug_info. */
static inline void dw_u8(struct dw *w, uint64_t v)
{
	dw_word(&w->sections[DW_INFO], v, 1);
}
static inline void dw_u16(struct dw *w, uint64_t v)
{
	dw_word(&w->sections[DW_INFO], v, 2);
}
static inline void dw_u32(struct dw *w, uint64_t v)
{
	dw_word(&w->sections[DW_INFO], v, 4);
}
static inline void dw_u64(struct dw *w, uint64_t v)
{
	dw_word(&w->sections[DW_INFO], v, 8);
}
static inline void dw_string(struct dw *w, const char *s)
{
	sonde_buf_add(&w->sections[DW_INFO], s, strlen(s) + 1);
}
static inline void dw_block1(struct dw *w, const void *bytes, size_t len)
{
	dw_u8(w, len);
	sonde_buf_add(&w->sections[DW_INFO], bytes, len);
}
/* DW_FORM_block1 or exprloc of DW_OP_addr. */
static inline void dw_addr_expr(struct dw *w, uint64_t addr)
{
	dw_u8(w, 9);
	dw_u8(w, DW_OP_addr);
	dw_u64(w, addr);
}

/*
 * Begin a DIE: pairs of attribute and form, ended by 0 (an implicit constant follows its form). Its values are the
 * caller's to write. Returns its offset in .debug_info.
 */
static inline uint32_t dw_die(struct dw *w, unsigned tag, int children, ...)
{
	struct sonde_buf *abbrev = &w->sections[DW_ABBREV];
	uint32_t offset = (uint32_t)w->sections[DW_INFO].len;
	dw_uleb(&w->sections[DW_INFO], ++w->n_abbrevs);
	dw_uleb(abbrev, w->n_abbrevs);
	dw_uleb(abbrev, tag);
	sonde_buf_char(abbrev, (char)children);
	va_list args;
	va_start(args, children);
	for (int attr; (attr = va_arg(args, int));) {
		int form = va_arg(args, int);
		dw_uleb(abbrev, (unsigned)attr);
		dw_uleb(abbrev, (unsigned)form);
		if (form == DW_FORM_implicit_const)
			dw_sleb(abbrev, va_arg(args, int));
	}
	va_end(args);
	sonde_buf_add(abbrev, "\0", 2);
	return offset;
}

/* The end of a DIE's children. */
static inline void dw_end(struct dw *w)
{
	dw_u8(w, 0);
}

static inline void dw_patch32(struct dw *w, enum dw_section section, size_t at, uint32_t v)
{
	memcpy(w->sections[section].data + at, &v, 4);
}

/* Begin a unit; its first DIE is the caller's to write. */
static inline void dw_unit(struct dw *w, unsigned version)
{
	w->version = version;
	w->unit_start = w->sections[DW_INFO].len;
	dw_u32(w, 0); /* unit_length: see dw_unit_end() */
	dw_u16(w, version);
	if (version >= 5) {
		dw_u8(w, DW_UT_compile);
		dw_u8(w, 8);
		dw_u32(w, 0); /* debug_abbrev_offset */
	} else {
		dw_u32(w, 0);
		dw_u8(w, 8);
	}
}

static inline void dw_unit_end(struct dw *w)
{
	dw_patch32(w, DW_INFO, w->unit_start,
		(uint32_t)(w->sections[DW_INFO].len - w->unit_start - 4));
}

/* A Go unit and its DIE: name, language, low_pc, and tables (DWARF 5). */
static inline uint32_t dw_go_unit(struct dw *w, unsigned version, const char *name, uint64_t low_pc)
{
	dw_unit(w, version);
	uint32_t id;
	if (version >= 5)
		id = dw_die(w, DW_TAG_compile_unit, 1, DW_AT_name, DW_FORM_string, DW_AT_language,
			DW_FORM_data1, DW_AT_producer, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
			DW_AT_addr_base, DW_FORM_sec_offset, DW_AT_loclists_base,
			DW_FORM_sec_offset, 0);
	else
		id = dw_die(w, DW_TAG_compile_unit, 1, DW_AT_name, DW_FORM_string, DW_AT_language,
			DW_FORM_data1, DW_AT_producer, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
			0);
	dw_string(w, name);
	dw_u8(w, DW_LANG_Go);
	dw_string(w, "Go cmd/compile go1.99");
	dw_u64(w, low_pc);
	if (version >= 5) {
		dw_u32(w, 8);
		dw_u32(w, 12);
	}
	return id;
}

/* The header that DWARF 5 puts in front of .debug_addr, .debug_loclists and .debug_rnglists (offset_entries: the latter). */
static inline size_t dw_table(struct dw *w, enum dw_section section, uint32_t offset_entries)
{
	struct sonde_buf *b = &w->sections[section];
	size_t at = b->len;
	dw_word(b, 0, 4); /* unit_length: see dw_table_end() */
	dw_word(b, 5, 2);
	dw_word(b, 8, 1);
	dw_word(b, 0, 1);
	if (section != DW_ADDR)
		dw_word(b, offset_entries, 4);
	return at;
}

static inline void dw_table_end(struct dw *w, enum dw_section section, size_t at)
{
	dw_patch32(w, section, at, (uint32_t)(w->sections[section].len - at - 4));
}

static inline void dw_pack(
	struct sonde_buf *to, const struct sonde_buf *from, enum dw_packing packing)
{
	size_t bound = compressBound(from->len) + ZSTD_compressBound(from->len), len = 0;
	if (packing == DW_PLAIN) {
		sonde_buf_add(to, from->data, from->len);
		return;
	}
	uint8_t *packed = malloc(bound);
	if (packing == DW_ZSTD) {
		len = ZSTD_compress(packed, bound, from->data, from->len, 3);
	} else {
		uLongf zlib_len = bound;
		compress(packed, &zlib_len, (const Bytef *)from->data, from->len);
		len = zlib_len;
	}
	if (packing == DW_ZDEBUG) {
		sonde_buf_add(to, "ZLIB", 4);
		dw_word(to, __builtin_bswap64(from->len), 8);
	} else {
		Elf64_Chdr chdr = {.ch_type = packing == DW_ZSTD ? 2 : ELFCOMPRESS_ZLIB,
			.ch_size = from->len,
			.ch_addralign = 1};
		sonde_buf_add(to, &chdr, sizeof(chdr));
	}
	sonde_buf_add(to, packed, len);
	free(packed);
}

/* An ELF64 executable of these sections. The abbreviations are ended first. */
static inline void dw_elf(struct dw *w, enum dw_packing packing, struct sonde_buf *to)
{
	static const char *const names[DW_N_SECTIONS] = {"info", "abbrev", "str", "line_str",
		"str_offsets", "addr", "line", "ranges", "rnglists", "loc", "loclists", "types"};
	sonde_cleanup(sonde_buf) struct sonde_buf strings = {0};
	Elf64_Shdr headers[DW_N_SECTIONS + 2] = {0};
	unsigned n = 1;
	sonde_buf_char(&w->sections[DW_ABBREV], 0);
	sonde_buf_char(&strings, 0);
	to->len = 0;
	Elf64_Ehdr ehdr = {
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = EM_X86_64,
		.e_version = EV_CURRENT,
		.e_ehsize = sizeof(ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
	};
	sonde_buf_add(to, &ehdr, sizeof(ehdr));
	for (int i = 0; i < DW_N_SECTIONS; i++) {
		if (!w->sections[i].len)
			continue;
		headers[n] = (Elf64_Shdr){
			.sh_name = (Elf64_Word)strings.len,
			.sh_type = SHT_PROGBITS,
			.sh_flags = packing == DW_ZLIB || packing == DW_ZSTD ? SHF_COMPRESSED : 0,
			.sh_offset = to->len,
			.sh_addralign = 1,
		};
		sonde_buf_str(&strings, packing == DW_ZDEBUG ? ".zdebug_" : ".debug_");
		sonde_buf_add(&strings, names[i], strlen(names[i]) + 1);
		dw_pack(to, &w->sections[i], packing);
		headers[n].sh_size = to->len - headers[n].sh_offset;
		n++;
	}
	headers[n] = (Elf64_Shdr){
		.sh_name = (Elf64_Word)strings.len,
		.sh_type = SHT_STRTAB,
		.sh_offset = to->len,
		.sh_addralign = 1,
	};
	sonde_buf_add(&strings, ".shstrtab", 10);
	headers[n].sh_size = strings.len;
	sonde_buf_add(to, strings.data, strings.len);
	ehdr.e_shoff = to->len;
	ehdr.e_shnum = (Elf64_Half)(n + 1);
	ehdr.e_shstrndx = (Elf64_Half)n;
	sonde_buf_add(to, headers, (n + 1) * sizeof(Elf64_Shdr));
	memcpy(to->data, &ehdr, sizeof(ehdr));
}

/* Opens what w holds; the file's bytes live in image. */
static inline struct sonde_error *open_dw(struct dw *w, enum dw_packing packing,
	struct sonde_buf *image, struct sonde_notes *notes, struct sonde_dwarf **ret)
{
	dw_elf(w, packing, image);
	return sonde_dwarf_open_image(image->data, image->len, "test", notes, ret);
}

static inline uint64_t count_notes(struct sonde_notes *notes, const char *kind)
{
	sonde_vec_foreach (entry, &notes->entries) {
		if (strstr(entry->kind, kind))
			return entry->count;
	}
	return 0;
}

/* What a test of one file needs; all of it is freed. */
#define FIXTURE                                                    \
	sonde_cleanup(dw) struct dw w = {0};                       \
	sonde_cleanup(sonde_buf) struct sonde_buf image = {0};     \
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0}; \
	sonde_cleanup(sonde_dwarf) struct sonde_dwarf *dwarf = NULL
