#include "object/gobuildinfo.h"

#include "base/varint.h"
#include "build.h"
#include "tap.h"

#define SENTINEL "0w\xaf\f\x92t\b\x02\x41\xe1\xc1\a\xe6\xd6\x18\xe6"
static const char modules[] = SENTINEL "path\texample.org/cmd/x\n"
				       "mod\texample.org/x\tv1.2.3\th1:sum=\n"
				       "dep\texample.org/y\tv0.1.0\n"
				       "=>\t../y\t\n"
				       "dep\texample.org/z\tv2.0.0\th1:z=\n"
				       "build\t-compiler=gc\n"
				       "build\t\"odd=key\"=plain\n"
				       "build\t-ldflags=\"-X \\\"main.v=1\\\"\\tq\\x41\"\n"
				       "build\tGOARCH=amd64\n"
				       "unknown\tline\n" SENTINEL;

static void head(struct sonde_buf *b, uint8_t word_bytes, uint8_t flags)
{
	sonde_buf_add(b, "\xff Go buildinf:", 14);
	build_u8(b, word_bytes);
	build_u8(b, flags);
}

static void string(struct sonde_buf *b, const char *s, size_t len)
{
	uint8_t n[10];
	sonde_buf_add(b, n, sonde_varint_encode(n, len));
	sonde_buf_add(b, s, len);
}

static void check_all(const struct sonde_gobuildinfo *i)
{
	CHECK_STR(i->go_version, "go1.24.4");
	CHECK_STR(i->path, "example.org/cmd/x");
	CHECK_STR(i->main.path, "example.org/x");
	CHECK_STR(i->main.version, "v1.2.3");
	CHECK_STR(i->main.sum, "h1:sum=");
	CHECK_EQ(i->n_deps, 2);
	CHECK_STR(i->deps[0].path, "example.org/y");
	CHECK_STR(i->deps[0].replaced_by, "../y");
	CHECK_STR(i->deps[1].version, "v2.0.0");
	CHECK(!i->deps[1].replaced_by);
	CHECK_EQ(i->n_settings, 4);
	CHECK_STR(sonde_gobuildinfo_setting(i, "GOARCH"), "amd64");
	CHECK_STR(sonde_gobuildinfo_setting(i, "odd=key"), "plain");
	CHECK_STR(sonde_gobuildinfo_setting(i, "-ldflags"), "-X \"main.v=1\"\tqA");
	CHECK(!sonde_gobuildinfo_setting(i, "GOOS"));
}

static void inline_blob(struct sonde_buf *b)
{
	head(b, 8, 2);
	build_zeros(b, 16);
	string(b, "go1.24.4", 8);
	string(b, modules, sizeof(modules) - 1);
}

static void inline_form(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf blob = {0}, data = {0}, b = {0};
	inline_blob(&blob);
	sonde_cleanup(sonde_gobuildinfo) struct sonde_gobuildinfo *info = NULL;
	REQUIRE_OK(sonde_gobuildinfo_decode(blob.data, blob.len, NULL, &info));
	check_all(info);
	/* By section; then by the writable segment, at an address of 16, behind a copy of the magic that is not aligned. */
	build_zeros(&data, 3);
	sonde_buf_add(&data, "\xff Go buildinf:", 14);
	build_zeros(&data, 8 + 64 - data.len); /* the segment begins at ...8 */
	sonde_buf_add(&data, blob.data, blob.len);
	for (int by_section = 0; by_section < 2; by_section++) {
		struct build_elf e = {.type = ET_EXEC};
		build_segment(&e, PT_LOAD, PF_R | PF_X, 0x400000, "text", 4);
		if (by_section)
			build_section(&e, ".go.buildinfo", SHT_PROGBITS, blob.data, blob.len);
		else
			build_segment(&e, PT_LOAD, PF_R | PF_W, 0x500008, data.data, data.len);
		build_elf_write(&e, &b);
		sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
		sonde_cleanup(sonde_gobuildinfo) struct sonde_gobuildinfo *found = NULL;
		REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
		REQUIRE_OK(sonde_gobuildinfo_of_elf(elf, &found));
		check_all(found);
	}
}

static void pointer_form(void)
{
	for (unsigned w = 4; w <= 8; w += 4) {
		for (int big = 0; big < 2; big++) {
			const uint64_t base = 0x600000;
			sonde_cleanup(sonde_buf) struct sonde_buf d = {0}, b = {0};
			head(&d, (uint8_t)w, (uint8_t)big);
			build_number(&d, base + 0x100, w, big);
			build_number(&d, base + 0x180, w, big);
			build_zeros(&d, 0x100 - d.len);
			build_number(&d, base + 0x200, w, big);
			build_number(&d, 8, w, big);
			build_zeros(&d, 0x180 - d.len);
			build_number(&d, base + 0x208, w, big);
			build_number(&d, sizeof(modules) - 1, w, big);
			build_zeros(&d, 0x200 - d.len);
			sonde_buf_add(&d, "go1.24.4", 8);
			sonde_buf_add(&d, modules, sizeof(modules) - 1);
			struct build_elf e = {.type = ET_EXEC, .word_bytes = w, .big_endian = big};
			build_segment(&e, PT_LOAD, PF_R | PF_W, base, d.data, d.len);
			build_elf_write(&e, &b);
			sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
			sonde_cleanup(sonde_gobuildinfo) struct sonde_gobuildinfo *info = NULL;
			REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
			REQUIRE_OK(sonde_gobuildinfo_of_elf(elf, &info));
			check_all(info);
			CHECK_ERROR(sonde_gobuildinfo_decode(d.data, d.len, NULL, &info),
				SONDE_UNSUPPORTED, "pointers");
		}
	}
}

static void damaged(void)
{
	struct sonde_gobuildinfo *info = NULL;
	sonde_cleanup(sonde_buf) struct sonde_buf blob = {0}, b = {0};
	inline_blob(&blob);
	for (size_t cut = 0; cut < blob.len; cut++) {
		/* An exact copy, so that a read past its end shows. */
		sonde_cleanup(free) char *exact = malloc(cut ? cut : 1);
		memcpy(exact, blob.data, cut);
		struct sonde_error *err = sonde_gobuildinfo_decode(exact, cut, NULL, &info);
		CHECK(!err == (cut >= 32 + 9));
		if (!err) {
			CHECK_STR(info->go_version, "go1.24.4");
			CHECK_STR(info->modules, "");
			CHECK_EQ(info->n_deps, 0);
			sonde_gobuildinfo_free(sonde_take(info));
		}
		sonde_error_free(err);
	}
	sonde_cleanup(sonde_buf) struct sonde_buf odd = {0};
	head(&odd, 5, 0);
	build_zeros(&odd, 32);
	CHECK_ERROR(sonde_gobuildinfo_decode(odd.data, odd.len, NULL, &info), SONDE_BAD_DATA,
		"pointers of 5 bytes");
	struct build_elf e = {.type = ET_EXEC};
	build_segment(&e, PT_LOAD, PF_R | PF_W, 0x500000, "nothing", 7);
	build_elf_write(&e, &b);
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	CHECK_ERROR(sonde_gobuildinfo_of_elf(elf, &info), SONDE_NOT_FOUND, "not a Go program");
}

int main(void)
{
	RUN(inline_form);
	RUN(pointer_form);
	RUN(damaged);
	return tap_end();
}
