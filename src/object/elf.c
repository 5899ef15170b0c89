#include "object/elf.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#define ZLIB_CONST
#include <zlib.h>
#include <zstd.h>
#include "base/cursor.h"

/* No deflate stream expands by more than 1032:1; zstd's run-length blocks reach further, so that its sizes need a cap. */
enum { ZLIB_MAX_RATIO = 1032, MAX_HEADERS = 1 << 22 };
static const uint64_t MAX_INFLATED_BYTES = UINT64_C(8) << 30;

struct sonde_elf_inflated {
	struct sonde_elf_inflated *next;
	size_t section;
	uint64_t len;
	uint8_t *data;
};

/* Whether [offset, offset + len) lies inside size bytes. */
static bool inside(uint64_t offset, uint64_t len, uint64_t size)
{
	return offset <= size && len <= size - offset;
}

static struct sonde_cursor cursor_at(const struct sonde_elf *elf, uint64_t offset)
{
	struct sonde_cursor c = sonde_cursor_over(elf->data, elf->size_bytes);
	c.big_endian = elf->big_endian;
	sonde_cursor_seek(&c, offset);
	return c;
}

const char *sonde_elf_describe_bytes(const void *data, uint64_t len, char text[64])
{
	static const struct {
		const char *magic;
		uint8_t len;
		const char *name;
	} kinds[] = {
		{"PK\3\4", 4, "a zip archive"},
		{"\x1f\x8b", 2, "gzip data"},
		{"\x28\xb5\x2f\xfd", 4, "zstd data"},
		{"\3757zXZ", 6, "xz data"},
		{"\x04\x22\x4d\x18", 4, "lz4 data"},
		{"BZh", 3, "bzip2 data"},
		{"7z\xbc\xaf", 4, "a 7-Zip archive"},
		{"MDMP", 4, "a Windows minidump"},
		{"MZ", 2, "a Windows executable"},
		{"\xcf\xfa\xed\xfe", 4, "a Mach-O file"},
		{"\xce\xfa\xed\xfe", 4, "a Mach-O file"},
		{"go1.7 heap dump\n", 16, "a Go heap dump (debug.WriteHeapDump)"},
		{"go 1.", 5, "a Go execution trace"},
		{"KDUMP", 5, "a kernel crash dump"},
		{"!<arch>\n", 8, "an ar archive"},
		{"#!", 2, "a script"},
		{"\177ELF", 4, "an ELF file"},
	};
	if (!len)
		return "an empty file";
	for (size_t i = 0; i < SONDE_ARRAY_LEN(kinds); i++)
		if (len >= kinds[i].len && !memcmp(data, kinds[i].magic, kinds[i].len))
			return kinds[i].name;
	if (len >= 263 && !memcmp((const char *)data + 257, "ustar", 5))
		return "a tar archive";
	size_t look = sonde_min(len, 512u), n_text = 0;
	for (size_t i = 0; i < look; i++) {
		uint8_t b = ((const uint8_t *)data)[i];
		n_text += b == '\t' || b == '\n' || b == '\r' || (b >= 0x20 && b != 0x7f);
	}
	snprintf(text, 64, "%" PRIu64 " byte%s of %s", len, len == 1 ? "" : "s",
		n_text == look ? "text" : "other data");
	return text;
}

const char *sonde_elf_machine_name(uint16_t machine, char text[32])
{
	switch (machine) {
	case EM_386:
		return "i386";
	case EM_X86_64:
		return "x86-64";
	case EM_AARCH64:
		return "arm64";
	case EM_ARM:
		return "arm";
	case EM_PPC64:
		return "ppc64";
	case EM_S390:
		return "s390x";
	case EM_RISCV:
		return "riscv";
	case EM_MIPS:
		return "mips";
	case EM_LOONGARCH:
		return "loongarch";
	}
	snprintf(text, 32, "machine %u", machine);
	return text;
}

static void parse_segment(struct sonde_elf *elf, uint64_t offset, struct sonde_elf_segment *s)
{
	struct sonde_cursor c = cursor_at(elf, offset);
	unsigned w = elf->word_bytes;
	s->type = sonde_cursor_u32(&c);
	if (w == 8)
		s->flags = sonde_cursor_u32(&c);
	s->offset = sonde_cursor_word(&c, w);
	s->addr = sonde_cursor_word(&c, w);
	sonde_cursor_word(&c, w); /* p_paddr */
	s->file_bytes = sonde_cursor_word(&c, w);
	s->mem_bytes = sonde_cursor_word(&c, w);
	if (w == 4)
		s->flags = sonde_cursor_u32(&c);
	s->align = sonde_cursor_word(&c, w);
}

/* Leaves the name's offset in *name. */
static void parse_section(
	struct sonde_elf *elf, uint64_t offset, struct sonde_elf_section *s, uint32_t *name)
{
	struct sonde_cursor c = cursor_at(elf, offset);
	unsigned w = elf->word_bytes;
	*name = sonde_cursor_u32(&c);
	s->type = sonde_cursor_u32(&c);
	s->flags = sonde_cursor_word(&c, w);
	s->addr = sonde_cursor_word(&c, w);
	s->offset = sonde_cursor_word(&c, w);
	s->size_bytes = sonde_cursor_word(&c, w);
	s->link = sonde_cursor_u32(&c);
	s->info = sonde_cursor_u32(&c);
	sonde_cursor_word(&c, w); /* sh_addralign */
	s->entry_bytes = sonde_cursor_word(&c, w);
	s->name = "";
}

struct tables {
	uint64_t phoff, shoff, phnum, shnum, shstrndx;
	unsigned phentsize, shentsize;
};

static struct sonde_error *parse_segments(
	struct sonde_elf *elf, const struct tables *t, const char *name)
{
	unsigned entry = elf->word_bytes == 8 ? 56 : 32;
	if (!t->phnum)
		return NULL;
	if (t->phentsize != entry)
		return sonde_error_new(
			SONDE_BAD_DATA, "%s: program headers of %u bytes each", name, t->phentsize);
	uint64_t room = t->phoff < elf->size_bytes ? (elf->size_bytes - t->phoff) / entry : 0;
	room = sonde_min(room, (uint64_t)MAX_HEADERS);
	uint64_t n = sonde_min(t->phnum, room);
	elf->n_segments_lost = t->phnum - n;
	elf->segments = sonde_new_array(struct sonde_elf_segment, n);
	if (!elf->segments)
		return &sonde_enomem;
	elf->n_segments = n;
	for (uint64_t i = 0; i < n; i++)
		parse_segment(elf, t->phoff + i * entry, &elf->segments[i]);
	return NULL;
}

static void name_sections(struct sonde_elf *elf, const uint32_t *names, uint64_t strings_index)
{
	const struct sonde_elf_section *strings =
		strings_index < elf->n_sections ? &elf->sections[strings_index] : NULL;
	if (!strings || strings->type == SHT_NOBITS ||
		!inside(strings->offset, strings->size_bytes, elf->size_bytes)) {
		elf->sections_lost = "the section names lie outside the file";
		return;
	}
	for (size_t i = 0; i < elf->n_sections; i++) {
		struct sonde_cursor c =
			sonde_cursor_over(elf->data + strings->offset, strings->size_bytes);
		sonde_cursor_seek(&c, names[i]);
		const char *s = sonde_cursor_string(&c);
		if (s)
			elf->sections[i].name = s;
	}
}

/* Damage here never fails the file: its segments are what a process was made of. */
static struct sonde_error *parse_sections(struct sonde_elf *elf, const struct tables *t)
{
	unsigned entry = elf->word_bytes == 8 ? 64 : 40;
	if (!t->shoff || !t->shnum)
		return NULL;
	if (t->shentsize != entry) {
		elf->sections_lost = "section headers of an unknown size";
		return NULL;
	}
	uint64_t room = t->shoff < elf->size_bytes ? (elf->size_bytes - t->shoff) / entry : 0;
	room = sonde_min(room, (uint64_t)MAX_HEADERS);
	uint64_t n = sonde_min(t->shnum, room);
	if (n < t->shnum)
		elf->sections_lost = "section headers lie outside the file";
	if (!n)
		return NULL;
	elf->sections = sonde_new_array(struct sonde_elf_section, n);
	sonde_cleanup(free) uint32_t *names = sonde_new_array(uint32_t, n);
	if (!elf->sections || !names)
		return &sonde_enomem;
	elf->n_sections = n;
	for (uint64_t i = 0; i < n; i++)
		parse_section(elf, t->shoff + i * entry, &elf->sections[i], &names[i]);
	name_sections(elf, names, t->shstrndx);
	return NULL;
}

static struct sonde_error *parse(struct sonde_elf *elf, const char *name)
{
	char text[64];
	if (elf->size_bytes < 4 || memcmp(elf->data, ELFMAG, SELFMAG))
		return sonde_error_new(SONDE_BAD_DATA, "%s: not an ELF file: it is %s", name,
			sonde_elf_describe_bytes(elf->data, elf->size_bytes, text));
	struct sonde_cursor c = sonde_cursor_over(elf->data, elf->size_bytes);
	sonde_cursor_skip(&c, EI_CLASS);
	uint8_t class = sonde_cursor_u8(&c), order = sonde_cursor_u8(&c);
	sonde_cursor_u8(&c); /* EI_VERSION */
	elf->os_abi = sonde_cursor_u8(&c);
	sonde_cursor_seek(&c, sonde_min((uint64_t)EI_NIDENT, elf->size_bytes));
	if (!c.bad && class != ELFCLASS32 && class != ELFCLASS64)
		return sonde_error_new(SONDE_BAD_DATA, "%s: ELF class %u", name, class);
	if (!c.bad && order != ELFDATA2LSB && order != ELFDATA2MSB)
		return sonde_error_new(SONDE_BAD_DATA, "%s: ELF byte order %u", name, order);
	unsigned w = elf->word_bytes = class == ELFCLASS64 ? 8 : 4;
	c.big_endian = elf->big_endian = order == ELFDATA2MSB;
	elf->type = sonde_cursor_u16(&c);
	elf->machine = sonde_cursor_u16(&c);
	sonde_cursor_u32(&c); /* e_version */
	elf->entry = sonde_cursor_word(&c, w);
	struct tables t = {.phoff = sonde_cursor_word(&c, w), .shoff = sonde_cursor_word(&c, w)};
	elf->segments_offset = t.phoff;
	elf->flags = sonde_cursor_u32(&c);
	sonde_cursor_u16(&c); /* e_ehsize */
	t.phentsize = sonde_cursor_u16(&c);
	t.phnum = sonde_cursor_u16(&c);
	t.shentsize = sonde_cursor_u16(&c);
	t.shnum = sonde_cursor_u16(&c);
	t.shstrndx = sonde_cursor_u16(&c);
	if (c.bad)
		return sonde_error_new(SONDE_TRUNCATED,
			"%s: ends inside its ELF header, at %" PRIu64 " bytes", name,
			elf->size_bytes);

	/* gABI, "ELF Header": numbers that do not fit 16 bits stand in section header 0. */
	if (t.phnum == PN_XNUM || (t.shoff && (!t.shnum || t.shstrndx == SHN_XINDEX))) {
		struct sonde_elf_section zero = {0};
		uint32_t unused;
		bool there = t.shoff && inside(t.shoff, w == 8 ? 64 : 40, elf->size_bytes);
		if (there)
			parse_section(elf, t.shoff, &zero, &unused);
		/* A core cut before its end has lost the count: what the file has room for must do. */
		if (t.phnum == PN_XNUM)
			t.phnum = there && zero.info ? zero.info : PN_XNUM;
		if (!t.shnum)
			t.shnum = zero.size_bytes;
		if (t.shstrndx == SHN_XINDEX)
			t.shstrndx = zero.link;
	}
	SONDE_TRY(parse_segments(elf, &t, name));
	return parse_sections(elf, &t);
}

struct sonde_error *sonde_elf_open_bytes(
	const void *data, size_t len, const char *name, struct sonde_elf **ret)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = sonde_new(struct sonde_elf);
	if (!elf)
		return &sonde_enomem;
	elf->data = data;
	elf->size_bytes = len;
	SONDE_TRY(parse(elf, name));
	*ret = sonde_take(elf);
	return NULL;
}

struct sonde_error *sonde_elf_open_mapfile(struct sonde_mapfile *file, struct sonde_elf **ret)
{
	SONDE_TRY(sonde_elf_open_bytes(file->data, file->size_bytes, file->path, ret));
	(*ret)->file = file;
	return NULL;
}

struct sonde_error *sonde_elf_open(const char *path, struct sonde_elf **ret)
{
	sonde_cleanup(sonde_mapfile) struct sonde_mapfile *file = NULL;
	SONDE_TRY(sonde_mapfile_open(path, &file));
	SONDE_TRY(sonde_elf_open_mapfile(file, ret));
	(void)sonde_take(file);
	return NULL;
}

void sonde_elf_free(struct sonde_elf *elf)
{
	if (!elf)
		return;
	while (elf->inflated) {
		struct sonde_elf_inflated *next = elf->inflated->next;
		free(elf->inflated->data);
		free(elf->inflated);
		elf->inflated = next;
	}
	free(elf->sections);
	free(elf->segments);
	sonde_mapfile_free(elf->file);
	free(elf);
}

const char *sonde_elf_path(const struct sonde_elf *elf)
{
	return elf->file ? elf->file->path : "";
}

const struct sonde_elf_section *sonde_elf_section_find(
	const struct sonde_elf *elf, const char *name)
{
	const struct sonde_elf_section *old = NULL;
	for (size_t i = 1; i < elf->n_sections; i++) {
		const char *have = elf->sections[i].name;
		if (!strcmp(have, name))
			return &elf->sections[i];
		/* ".zdebug_info" is what GNU tools and Go before 1.19 called a compressed ".debug_info". */
		if (!old && name[0] == '.' && !strncmp(have, ".z", 2) &&
			!strcmp(have + 2, name + 1))
			old = &elf->sections[i];
	}
	return old;
}

static struct sonde_error *inflate_zlib(
	const uint8_t *from, uint64_t from_len, uint8_t *to, uint64_t to_len, const char *name)
{
	z_stream z = {0};
	if (inflateInit(&z) != Z_OK)
		return &sonde_enomem;
	z.next_in = from;
	z.next_out = to;
	int status = Z_OK;
	uint64_t in_left = from_len, out_left = to_len;
	while (status == Z_OK) {
		/* zlib counts in 32 bits. */
		uInt in = z.avail_in = (uInt)sonde_min(in_left, UINT64_C(1) << 30);
		uInt out = z.avail_out = (uInt)sonde_min(out_left, UINT64_C(1) << 30);
		status = inflate(&z, Z_NO_FLUSH);
		in_left -= in - z.avail_in;
		out_left -= out - z.avail_out;
	}
	inflateEnd(&z);
	if (status != Z_STREAM_END || out_left)
		return sonde_error_new(SONDE_BAD_DATA,
			"section %s: its zlib data does not inflate to %" PRIu64 " bytes", name,
			to_len);
	return NULL;
}

static struct sonde_error *inflate_zstd(
	const uint8_t *from, uint64_t from_len, uint8_t *to, uint64_t to_len, const char *name)
{
	size_t got = ZSTD_decompress(to, to_len, from, from_len);
	if (ZSTD_isError(got) || got != to_len)
		return sonde_error_new(SONDE_BAD_DATA,
			"section %s: its zstd data does not inflate to %" PRIu64 " bytes", name,
			to_len);
	return NULL;
}

enum method { STORED, ZLIB, ZSTD };

/* How the section's bytes are packed; cuts the header off. */
static struct sonde_error *packing(const struct sonde_elf *elf,
	const struct sonde_elf_section *section, const uint8_t **data, uint64_t *len,
	uint64_t *inflated_len, enum method *method)
{
	struct sonde_cursor c = sonde_cursor_over(*data, *len);
	c.big_endian = elf->big_endian;
	*method = STORED;
	if (section->flags & SHF_COMPRESSED) {
		uint32_t type = sonde_cursor_u32(&c);
		if (elf->word_bytes == 8)
			sonde_cursor_u32(&c); /* ch_reserved */
		*inflated_len = sonde_cursor_word(&c, elf->word_bytes);
		sonde_cursor_word(&c, elf->word_bytes); /* ch_addralign */
		if (type != ELFCOMPRESS_ZLIB && type != 2 /* ELFCOMPRESS_ZSTD */)
			return sonde_error_new(SONDE_UNSUPPORTED, "section %s: compression type %u",
				section->name, type);
		*method = type == ELFCOMPRESS_ZLIB ? ZLIB : ZSTD;
	} else if (!strncmp(section->name, ".zdebug_", 8) && *len >= 12 &&
		!memcmp(*data, "ZLIB", 4)) {
		c.big_endian = true;
		sonde_cursor_skip(&c, 4);
		*inflated_len = sonde_cursor_u64(&c);
		*method = ZLIB;
	}
	if (c.bad)
		return sonde_error_new(SONDE_TRUNCATED,
			"section %s: ends inside its compression header", section->name);
	*data = c.p;
	*len = sonde_cursor_left(&c);
	return NULL;
}

struct sonde_error *sonde_elf_section_read(struct sonde_elf *elf,
	const struct sonde_elf_section *section, const uint8_t **data, uint64_t *len)
{
	if (section->type == SHT_NOBITS || section->type == SHT_NULL)
		return sonde_error_new(
			SONDE_NOT_FOUND, "section %s: has no contents in this file", section->name);
	if (!inside(section->offset, section->size_bytes, elf->size_bytes))
		return sonde_error_new(SONDE_TRUNCATED,
			"section %s: reaches beyond the end of the file", section->name);
	size_t index = (size_t)(section - elf->sections);
	for (struct sonde_elf_inflated *i = elf->inflated; i; i = i->next) {
		if (i->section == index) {
			*data = i->data;
			*len = i->len;
			return NULL;
		}
	}
	const uint8_t *from = elf->data + section->offset;
	uint64_t from_len = section->size_bytes, to_len = 0;
	enum method method;
	SONDE_TRY(packing(elf, section, &from, &from_len, &to_len, &method));
	if (method == STORED) {
		*data = from;
		*len = from_len;
		return NULL;
	}
	if (to_len > MAX_INFLATED_BYTES ||
		(method == ZLIB && to_len / ZLIB_MAX_RATIO > from_len + 1))
		return sonde_error_new(SONDE_BAD_DATA,
			"section %s: promises %" PRIu64 " bytes out of %" PRIu64, section->name,
			to_len, from_len);
	sonde_cleanup(free) uint8_t *to = malloc(to_len ? to_len : 1);
	sonde_cleanup(free) struct sonde_elf_inflated *entry = sonde_new(struct sonde_elf_inflated);
	if (!to || !entry)
		return &sonde_enomem;
	SONDE_TRY((method == ZLIB ? inflate_zlib : inflate_zstd)(
		from, from_len, to, to_len, section->name));
	*data = to;
	*len = to_len;
	*entry = (struct sonde_elf_inflated){elf->inflated, index, to_len, sonde_take(to)};
	elf->inflated = sonde_take(entry);
	return NULL;
}

const uint8_t *sonde_elf_segment_bytes(
	const struct sonde_elf *elf, const struct sonde_elf_segment *segment, uint64_t *len)
{
	*len = 0;
	if (segment->offset >= elf->size_bytes)
		return NULL;
	*len = sonde_min(segment->file_bytes, elf->size_bytes - segment->offset);
	return elf->data + segment->offset;
}

bool sonde_elf_offset_of(const struct sonde_elf *elf, uint64_t addr, uint64_t *offset)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		if (s->type == PT_LOAD && addr >= s->addr && addr - s->addr < s->file_bytes &&
			!__builtin_add_overflow(s->offset, addr - s->addr, offset))
			return true;
	}
	return false;
}

bool sonde_elf_addr_of(const struct sonde_elf *elf, uint64_t offset, uint64_t *addr)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		if (s->type == PT_LOAD && offset >= s->offset &&
			offset - s->offset < s->file_bytes &&
			!__builtin_add_overflow(s->addr, offset - s->offset, addr))
			return true;
	}
	return false;
}

const uint8_t *sonde_elf_bytes_at(const struct sonde_elf *elf, uint64_t addr, uint64_t len)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t at = addr - s->addr, offset;
		if (s->type != PT_LOAD || addr < s->addr || !inside(at, len, s->file_bytes) ||
			__builtin_add_overflow(s->offset, at, &offset) ||
			!inside(offset, len, elf->size_bytes))
			continue;
		return elf->data + offset;
	}
	return NULL;
}
