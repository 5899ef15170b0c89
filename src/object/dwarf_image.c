#include "object/dwarf_image.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <sys/mman.h>
#include <zlib.h>
#include <zstd.h>
#include "base/cursor.h"
#include "base/mem.h"
#include "object/elf.h"

/* gABI, chapter 4, ch_type; glibc 2.36's elf.h has no name for it yet. */
enum { COMPRESS_ZSTD = 2 };

/*
 * No compressed byte becomes more than this many: zlib's bound is 1032; zstd's is far higher for runs, which debug
 * sections are not. It keeps a hostile header from reserving address space without end.
 */
enum { MAX_RATIO = 1u << 14 };

/* Of each section in the image: a page, so that a damaged one can be given back. */
enum { ALIGN_BYTES = 4096 };

/* The image is sparse, but its address space is not free: no real file comes near. */
static const uint64_t MAX_IMAGE_BYTES = 1ull << 38;

const char *sonde_dwarf_section_name(enum sonde_dwarf_section section)
{
	static const char *const full[SONDE_DWARF_N_SECTIONS] = {".debug_info", ".debug_abbrev",
		".debug_str", ".debug_line_str", ".debug_str_offsets", ".debug_addr", ".debug_line",
		".debug_ranges", ".debug_rnglists", ".debug_loc", ".debug_loclists",
		".debug_types"};
	return full[section];
}

/*
 * Take one section of the file: where its bytes are, how they are packed, how long they will be. The ELF reader could
 * inflate it as well, but at once and into memory of its own: here it goes into its place, when asked for.
 */
static struct sonde_error *take_section(struct sonde_dwarf_image *image,
	const struct sonde_elf *elf, enum sonde_dwarf_section which)
{
	const char *what = sonde_dwarf_section_name(which);
	const struct sonde_elf_section *s = sonde_elf_section_find(elf, what);
	/* A stripped file keeps the headers of what went into its debug file, as NOBITS. */
	if (!s || s->type == SHT_NOBITS)
		return NULL;
	if (s->offset > elf->size_bytes || s->size_bytes > elf->size_bytes - s->offset)
		return sonde_error_new(SONDE_TRUNCATED,
			"%s: %s: 0x%" PRIx64 " + 0x%" PRIx64 " lies outside the file", image->name,
			what, s->offset, s->size_bytes);
	__auto_type to = &image->sections[which];
	struct sonde_cursor c = sonde_cursor_over(elf->data + s->offset, s->size_bytes);
	uint64_t size_bytes = s->size_bytes;
	enum sonde_dwarf_packing packing = SONDE_DWARF_PLAIN;
	if (s->flags & SHF_COMPRESSED) {
		uint32_t type = sonde_cursor_u32(&c);
		if (elf->word_bytes == 8)
			sonde_cursor_u32(&c); /* ch_reserved */
		size_bytes = sonde_cursor_word(&c, elf->word_bytes);
		sonde_cursor_word(&c, elf->word_bytes); /* ch_addralign */
		if (!c.bad && type != ELFCOMPRESS_ZLIB && type != COMPRESS_ZSTD)
			return sonde_error_new(SONDE_UNSUPPORTED, "%s: %s: compression type %u",
				image->name, what, type);
		packing = type == COMPRESS_ZSTD ? SONDE_DWARF_ZSTD : SONDE_DWARF_ZLIB;
	} else if (s->name[1] == 'z') {
		/* "ZLIB" and the length, big-endian: what Go wrote until 1.18. */
		const uint8_t *magic = sonde_cursor_bytes(&c, 4);
		c.big_endian = true;
		size_bytes = sonde_cursor_u64(&c);
		if (magic && memcmp(magic, "ZLIB", 4))
			return sonde_error_new(
				SONDE_BAD_DATA, "%s: %s: no ZLIB header", image->name, s->name);
		packing = SONDE_DWARF_ZLIB;
	}
	if (c.bad)
		return sonde_error_new(
			SONDE_TRUNCATED, "%s: %s: compression header", image->name, what);
	if (packing != SONDE_DWARF_PLAIN && size_bytes / MAX_RATIO > sonde_cursor_left(&c))
		return sonde_error_new(SONDE_BAD_DATA,
			"%s: %s: %zu bytes promise %" PRIu64 " inflated ones", image->name, what,
			sonde_cursor_left(&c), size_bytes);
	to->packed = c.p;
	to->packed_bytes = sonde_cursor_left(&c);
	to->size_bytes = size_bytes;
	to->packing = packing;
	return NULL;
}

static uint64_t align_up(uint64_t x)
{
	return (x + ALIGN_BYTES - 1) & ~(uint64_t)(ALIGN_BYTES - 1);
}

/*
 * ELF header, sections (each with at least one zero byte behind it, so that no string runs on), their names, headers:
 * an ELF64 executable of the file's machine. Only the headers are written; the rest stays untouched zero pages.
 */
static struct sonde_error *lay_out(struct sonde_dwarf_image *image)
{
	uint64_t at = align_up(sizeof(Elf64_Ehdr)), starts[SONDE_DWARF_N_SECTIONS];
	for (unsigned k = 0; k < SONDE_DWARF_N_SECTIONS; k++) {
		starts[k] = at;
		if (image->sections[k].size_bytes > MAX_IMAGE_BYTES)
			return sonde_error_new(SONDE_BAD_DATA, "%s: %s: %" PRIu64 " bytes",
				image->name, sonde_dwarf_section_name(k),
				image->sections[k].size_bytes);
		at = align_up(at + image->sections[k].size_bytes + 64);
	}
	uint64_t names_at = at;
	enum { NAMES_BYTES = 512 };
	uint64_t headers_at = names_at + NAMES_BYTES;
	image->map_bytes = headers_at + (SONDE_DWARF_N_SECTIONS + 2) * sizeof(Elf64_Shdr);
	void *map = mmap(NULL, image->map_bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (map == MAP_FAILED)
		return sonde_error_os(
			errno, "%s: %zu bytes for debug sections", image->name, image->map_bytes);
	image->map = map;

	Elf64_Shdr *headers = (Elf64_Shdr *)(image->map + headers_at);
	char *names = (char *)image->map + names_at;
	uint32_t name = 1;
	unsigned n = 1;
	for (unsigned k = 0; k < SONDE_DWARF_N_SECTIONS; k++) {
		image->sections[k].data = image->map + starts[k];
		if (!image->sections[k].packed)
			continue;
		strcpy(names + name, sonde_dwarf_section_name(k));
		headers[n++] = (Elf64_Shdr){
			.sh_name = name,
			.sh_type = SHT_PROGBITS,
			.sh_offset = starts[k],
			.sh_size = image->sections[k].size_bytes,
			.sh_addralign = 1,
		};
		name += (uint32_t)strlen(names + name) + 1;
	}
	strcpy(names + name, ".shstrtab");
	headers[n] = (Elf64_Shdr){
		.sh_name = name,
		.sh_type = SHT_STRTAB,
		.sh_offset = names_at,
		.sh_size = NAMES_BYTES,
		.sh_addralign = 1,
	};
	*(Elf64_Ehdr *)image->map = (Elf64_Ehdr){
		.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			EV_CURRENT},
		.e_type = ET_EXEC,
		.e_machine = (Elf64_Half)image->machine,
		.e_version = EV_CURRENT,
		.e_shoff = headers_at,
		.e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr),
		.e_shnum = (Elf64_Half)(n + 1),
		.e_shstrndx = (Elf64_Half)n,
	};
	return NULL;
}

struct sonde_error *sonde_dwarf_image_init(struct sonde_dwarf_image *image, const void *data,
	uint64_t size_bytes, const char *name, struct sonde_notes *notes)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	*image = (struct sonde_dwarf_image){.name = name};
	SONDE_TRY(sonde_elf_open_bytes(data, size_bytes, name, &elf));
	if (elf->big_endian)
		return sonde_error_new(SONDE_UNSUPPORTED, "%s: DWARF of a big-endian file", name);
	if (elf->type == ET_REL)
		return sonde_error_new(
			SONDE_UNSUPPORTED, "%s: DWARF of a relocatable object", name);
	image->address_bytes = elf->word_bytes;
	image->machine = elf->machine;
	for (unsigned k = 0; k < SONDE_DWARF_N_SECTIONS; k++) {
		struct sonde_error *err = take_section(image, elf, k);
		if (err && (k == SONDE_DWARF_INFO || k == SONDE_DWARF_ABBREV))
			return err;
		/* The others can be done without. */
		if (err)
			sonde_notes_add(notes, "DWARF section damaged", 0, "%s", err->message);
		sonde_error_free(err);
	}
	if (!image->sections[SONDE_DWARF_INFO].size_bytes && elf->sections_lost)
		return sonde_error_new(
			SONDE_TRUNCATED, "%s: no DWARF: %s", name, elf->sections_lost);
	if (!image->sections[SONDE_DWARF_INFO].size_bytes)
		return sonde_error_new(
			SONDE_NOT_FOUND, "%s: no DWARF (stripped: no .debug_info)", name);
	return lay_out(image);
}

void sonde_dwarf_image_deinit(struct sonde_dwarf_image *image)
{
	if (image->map)
		munmap(image->map, image->map_bytes);
	*image = (struct sonde_dwarf_image){0};
}

/* zlib counts in 32 bits: feed and drain it in parts. */
static bool inflate_zlib(const uint8_t *from, uint64_t from_bytes, uint8_t *to, uint64_t to_bytes)
{
	z_stream z = {0};
	if (inflateInit(&z) != Z_OK)
		return false;
	uint64_t taken = 0, made = 0;
	int rc = Z_OK;
	while (rc == Z_OK) {
		uint64_t in = sonde_min(from_bytes - taken, (uint64_t)UINT_MAX / 2);
		uint64_t out = sonde_min(to_bytes - made, (uint64_t)UINT_MAX / 2);
		z.next_in = (Bytef *)from + taken;
		z.avail_in = (uInt)in;
		z.next_out = to + made;
		z.avail_out = (uInt)out;
		rc = inflate(&z, Z_NO_FLUSH);
		taken += in - z.avail_in;
		made += out - z.avail_out;
		if (rc == Z_OK && z.avail_in == in && z.avail_out == out)
			rc = Z_BUF_ERROR;
	}
	inflateEnd(&z);
	return rc == Z_STREAM_END && made == to_bytes;
}

struct sonde_error *sonde_dwarf_image_fill(
	struct sonde_dwarf_image *image, enum sonde_dwarf_section section)
{
	__auto_type s = &image->sections[section];
	if (s->filled || !s->packed)
		return NULL;
	s->filled = true;
	bool fine = true;
	switch (s->packing) {
	case SONDE_DWARF_PLAIN:
		memcpy(s->data, s->packed, s->size_bytes);
		break;
	case SONDE_DWARF_ZLIB:
		fine = inflate_zlib(s->packed, s->packed_bytes, s->data, s->size_bytes);
		break;
	case SONDE_DWARF_ZSTD:
		fine = ZSTD_decompress(s->data, s->size_bytes, s->packed, s->packed_bytes) ==
			s->size_bytes;
		break;
	}
	if (fine)
		return NULL;
	s->damaged = true;
	/* Fresh zero pages: half a section would be taken for a whole one. */
	if (madvise(s->data, s->size_bytes, MADV_DONTNEED) < 0)
		memset(s->data, 0, s->size_bytes);
	return sonde_error_new(SONDE_BAD_DATA,
		"%s: %s: %" PRIu64 " compressed bytes do not inflate to %" PRIu64, image->name,
		sonde_dwarf_section_name(section), s->packed_bytes, s->size_bytes);
}
