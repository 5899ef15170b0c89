#include "object/elf.h"

#include <zlib.h>
#include <zstd.h>
#include "build.h"
#include "tap.h"

static void reads_both_classes_and_orders(void)
{
	for (int i = 0; i < 4; i++) {
		struct build_elf e = {.type = ET_DYN,
			.entry = 0x1234,
			.word_bytes = i & 1 ? 4 : 8,
			.big_endian = i & 2};
		build_segment(&e, PT_LOAD, PF_R | PF_X, 0x10000, "segment", 7);
		build_section(&e, ".data", SHT_PROGBITS, "section", 7)->addr = 0x10000;
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_elf_write(&e, &b);
		sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
		REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
		CHECK_EQ(elf->word_bytes, i & 1 ? 4 : 8);
		CHECK_EQ(elf->big_endian, !!(i & 2));
		CHECK_EQ(elf->entry, 0x1234);
		CHECK_EQ(elf->n_segments, 1);
		CHECK_EQ(elf->segments[0].flags, PF_R | PF_X);
		CHECK_EQ(elf->segments[0].addr, 0x10000);
		CHECK_EQ(elf->segments[0].align, 4096);
		CHECK(!elf->sections_lost);
		const uint8_t *p = sonde_elf_bytes_at(elf, 0x10003, 4);
		CHECK(p && !memcmp(p, "ment", 4));
		CHECK(!sonde_elf_bytes_at(elf, 0x10003, 5));
		CHECK(!sonde_elf_bytes_at(elf, 0xffff, 1));
		uint64_t offset, addr, len;
		CHECK(sonde_elf_offset_of(elf, 0x10002, &offset));
		CHECK(sonde_elf_addr_of(elf, offset, &addr));
		CHECK_EQ(addr, 0x10002);
		CHECK(!sonde_elf_offset_of(elf, 0x10007, &offset));
		const struct sonde_elf_section *s = sonde_elf_section_find(elf, ".data");
		REQUIRE(s);
		REQUIRE_OK(sonde_elf_section_read(elf, s, &p, &len));
		CHECK(len == 7 && !memcmp(p, "section", 7));
		CHECK(!sonde_elf_section_find(elf, ".bss"));
	}
}

static void numbers_beyond_16_bits(void)
{
	struct build_elf e = {.type = ET_CORE, .extended_numbers = true};
	for (int i = 0; i < 40; i++)
		build_segment(&e, PT_LOAD, PF_R, 0x10000u + (unsigned)i * 4096, "x", 1)->align = 1;
	build_section(&e, ".note", SHT_NOTE, "abc", 3);
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_elf_write(&e, &b);
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	CHECK_EQ(elf->n_segments, 40);
	CHECK_EQ(elf->n_sections, 3);
	CHECK(sonde_elf_section_find(elf, ".note"));
	CHECK_EQ(elf->n_segments_lost, 0);
	/* The section header that holds the numbers is cut away: what the file has room for counts. */
	sonde_elf_free(sonde_take(elf));
	REQUIRE_OK(sonde_elf_open_bytes(b.data, 64 + 56 * 10, "x", &elf));
	CHECK_EQ(elf->n_segments, 10);
	CHECK(elf->n_segments_lost);
}

static void damaged_sections_are_dropped(void)
{
	struct build_elf e = {.type = ET_EXEC};
	build_segment(&e, PT_LOAD, PF_R, 0x400000, "code", 4);
	build_section(&e, ".text", SHT_PROGBITS, "text", 4);
	build_section(&e, ".far", SHT_PROGBITS, "text", 4)->offset = UINT64_MAX - 1;
	build_section(&e, ".bss", SHT_NOBITS, NULL, 99);
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_elf_write(&e, &b);
	const uint8_t *p;
	uint64_t len;
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	CHECK_ERROR(sonde_elf_section_read(elf, sonde_elf_section_find(elf, ".far"), &p, &len),
		SONDE_TRUNCATED, "beyond the end");
	CHECK_ERROR(sonde_elf_section_read(elf, sonde_elf_section_find(elf, ".bss"), &p, &len),
		SONDE_NOT_FOUND, "no contents");
	/* Cut anywhere: never an error while the header and the segments are there. */
	for (size_t cut = 64 + 56; cut < b.len; cut += 7) {
		sonde_elf_free(sonde_take(elf));
		REQUIRE_OK(sonde_elf_open_bytes(b.data, cut, "x", &elf));
		CHECK_EQ(elf->n_segments, 1);
		if (!sonde_elf_section_find(elf, ".text"))
			CHECK(elf->sections_lost);
	}
	/* e_shentsize, then e_shstrndx. */
	build_patch(&b, 58, 63, 2);
	sonde_elf_free(sonde_take(elf));
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	CHECK_STR(elf->sections_lost, "section headers of an unknown size");
	build_patch(&b, 58, 64, 2);
	build_patch(&b, 62, 77, 2);
	sonde_elf_free(sonde_take(elf));
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	CHECK_STR(elf->sections_lost, "the section names lie outside the file");
}

static void what_is_no_elf_file(void)
{
	struct sonde_elf *elf = NULL;
	CHECK_ERROR(sonde_elf_open_bytes("", 0, "x", &elf), SONDE_BAD_DATA,
		"x: not an ELF file: it is an empty file");
	CHECK_ERROR(
		sonde_elf_open_bytes("PK\3\4zzzz", 8, "x", &elf), SONDE_BAD_DATA, "a zip archive");
	CHECK_ERROR(sonde_elf_open_bytes("abc", 3, "x", &elf), SONDE_BAD_DATA, "3 bytes of text");
	CHECK_ERROR(sonde_elf_open_bytes("\1\2\3\4\5", 5, "x", &elf), SONDE_BAD_DATA,
		"5 bytes of other data");
	CHECK_ERROR(sonde_elf_open_bytes("\177ELF\2\1\1\0\0\0", 10, "x", &elf), SONDE_TRUNCATED,
		"inside its ELF header, at 10 bytes");
	CHECK_ERROR(sonde_elf_open_bytes("\177ELF\3\1\1\0\0\0\0\0\0\0\0\0", 16, "x", &elf),
		SONDE_BAD_DATA, "ELF class 3");
	CHECK_ERROR(sonde_elf_open_bytes("\177ELF\1\7\1\0\0\0\0\0\0\0\0\0", 16, "x", &elf),
		SONDE_BAD_DATA, "byte order 7");
	CHECK_ERROR(
		sonde_elf_open("/nonexistent/x", &elf), SONDE_OS, "/nonexistent/x: No such file");
	CHECK_ERROR(sonde_elf_open("/", &elf), SONDE_OS, "Is a directory");
	CHECK_ERROR(sonde_elf_open("/dev/null", &elf), SONDE_UNSUPPORTED, "not a regular file");
}

/* A section header before the data of an SHF_COMPRESSED section. */
static void compression_header(
	struct sonde_buf *b, unsigned word_bytes, uint32_t type, uint64_t size)
{
	build_u32(b, type);
	if (word_bytes == 8)
		build_u32(b, 0);
	build_number(b, size, word_bytes, false);
	build_number(b, 1, word_bytes, false);
}

static void inflates_sections(void)
{
	enum { LEN = 100000 };
	sonde_cleanup(free) uint8_t *plain = malloc(LEN);
	sonde_cleanup(free) uint8_t *packed = malloc(2 * LEN);
	for (unsigned i = 0; i < LEN; i++)
		plain[i] = (uint8_t)(i * i >> 7);
	for (int w = 4; w <= 8; w += 4) {
		sonde_cleanup(sonde_buf) struct sonde_buf z = {0}, s = {0}, old = {0}, bad = {0},
							  lies = {0}, odd = {0}, b = {0};
		uLongf z_len = 2 * LEN;
		REQUIRE(compress(packed, &z_len, plain, LEN) == Z_OK);
		compression_header(&z, (unsigned)w, ELFCOMPRESS_ZLIB, LEN);
		sonde_buf_add(&z, packed, z_len);
		compression_header(&bad, (unsigned)w, ELFCOMPRESS_ZLIB, LEN + 1);
		sonde_buf_add(&bad, packed, z_len);
		compression_header(&lies, (unsigned)w, ELFCOMPRESS_ZLIB,
			w == 8 ? UINT64_C(1) << 60 : UINT32_MAX);
		compression_header(&odd, (unsigned)w, 77, LEN);
		sonde_buf_add(&old, "ZLIB", 4);
		build_number(&old, LEN, 8, true);
		sonde_buf_add(&old, packed, z_len);
		size_t s_len = ZSTD_compress(packed, 2 * LEN, plain, LEN, 1);
		compression_header(&s, (unsigned)w, 2, LEN);
		sonde_buf_add(&s, packed, s_len);

		struct build_elf e = {.type = ET_EXEC, .word_bytes = (unsigned)w};
		build_section(&e, ".z", SHT_PROGBITS, z.data, z.len)->flags = SHF_COMPRESSED;
		build_section(&e, ".s", SHT_PROGBITS, s.data, s.len)->flags = SHF_COMPRESSED;
		build_section(&e, ".zdebug_info", SHT_PROGBITS, old.data, old.len);
		build_section(&e, ".bad", SHT_PROGBITS, bad.data, bad.len)->flags = SHF_COMPRESSED;
		build_section(&e, ".lies", SHT_PROGBITS, lies.data, lies.len)->flags =
			SHF_COMPRESSED;
		build_section(&e, ".odd", SHT_PROGBITS, odd.data, odd.len)->flags = SHF_COMPRESSED;
		build_section(&e, ".cut", SHT_PROGBITS, z.data, 5)->flags = SHF_COMPRESSED;
		build_elf_write(&e, &b);
		sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
		REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
		const char *const good[] = {".z", ".s", ".debug_info"};
		for (int i = 0; i < 3; i++) {
			const struct sonde_elf_section *sec = sonde_elf_section_find(elf, good[i]);
			REQUIRE(sec);
			const uint8_t *p = NULL, *again = NULL;
			uint64_t len = 0;
			REQUIRE_OK(sonde_elf_section_read(elf, sec, &p, &len));
			CHECK(len == LEN && !memcmp(p, plain, LEN));
			REQUIRE_OK(sonde_elf_section_read(elf, sec, &again, &len));
			CHECK(again == p);
		}
		const uint8_t *p;
		uint64_t len;
		CHECK_ERROR(
			sonde_elf_section_read(elf, sonde_elf_section_find(elf, ".bad"), &p, &len),
			SONDE_BAD_DATA, "does not inflate to 100001");
		CHECK_ERROR(
			sonde_elf_section_read(elf, sonde_elf_section_find(elf, ".lies"), &p, &len),
			SONDE_BAD_DATA, "promises");
		CHECK_ERROR(
			sonde_elf_section_read(elf, sonde_elf_section_find(elf, ".odd"), &p, &len),
			SONDE_UNSUPPORTED, "compression type 77");
		CHECK_ERROR(
			sonde_elf_section_read(elf, sonde_elf_section_find(elf, ".cut"), &p, &len),
			SONDE_TRUNCATED, "compression header");
	}
}

int main(void)
{
	RUN(reads_both_classes_and_orders);
	RUN(numbers_beyond_16_bits);
	RUN(damaged_sections_are_dropped);
	RUN(what_is_no_elf_file);
	RUN(inflates_sections);
	return tap_end();
}
