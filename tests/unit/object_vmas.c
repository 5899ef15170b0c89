#include "object/vmas.h"

#include "build.h"
#include "tap.h"

static void decodes_both_word_sizes(void)
{
	const struct build_vma v[] = {{0x1000, 0x3000, 0, "/bin/a"}, {0x3000, 0x4000, 2, "/bin/a"},
		{0x9000, 0xa000, 7, "/lib/b"}};
	for (unsigned w = 4; w <= 8; w += 4) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_nt_file_desc(&b, w, v, 3);
		sonde_cleanup(sonde_vmas) struct sonde_vmas *vmas = NULL;
		REQUIRE_OK(sonde_vmas_decode(b.data, b.len, w, false, &vmas));
		CHECK_EQ(vmas->n, 3);
		CHECK_EQ(vmas->page_bytes, 4096);
		CHECK_EQ(vmas->n_dropped, 0);
		CHECK_EQ(vmas->items[2].file_offset, 7 * 4096);
		CHECK_STR(vmas->items[2].path, "/lib/b");
		CHECK(sonde_vmas_find(vmas, 0x2fff) == &vmas->items[0]);
		CHECK(sonde_vmas_find(vmas, 0x3000) == &vmas->items[1]);
		CHECK(!sonde_vmas_find(vmas, 0x4000));
		CHECK(!sonde_vmas_find(vmas, 0xfff));
		CHECK(!sonde_vmas_find(vmas, 0xa000));
	}
}

static void drops_rows_without_sense(void)
{
	const struct build_vma v[] = {{0x5000, 0x6000, 0, "/c"}, {0x1000, 0x3000, 0, "/a"},
		{0x2000, 0x4000, 0, "/overlaps"}, {0x8000, 0x7000, 0, "/upside-down"},
		{0x9000, 0x9000, 0, "/empty"}, {0xa000, 0xb000, UINT64_MAX, "/far"}};
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_nt_file_desc(&b, 8, v, 6);
	sonde_cleanup(sonde_vmas) struct sonde_vmas *vmas = NULL;
	REQUIRE_OK(sonde_vmas_decode(b.data, b.len, 8, false, &vmas));
	CHECK_EQ(vmas->n, 2);
	CHECK_EQ(vmas->n_dropped, 4);
	CHECK_STR(vmas->items[0].path, "/a");
	CHECK_STR(vmas->items[1].path, "/c");
}

static void hostile_counts(void)
{
	struct sonde_vmas *vmas = NULL;
	const uint64_t counts[] = {
		1, 2, 1000, UINT32_MAX, UINT64_MAX, UINT64_MAX / 24, UINT64_MAX / 25 + 1};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_u64(&b, counts[i]);
		build_u64(&b, 4096);
		build_zeros(&b, 24);
		CHECK_ERROR(sonde_vmas_decode(b.data, b.len, 8, false, &vmas), SONDE_BAD_DATA,
			"NT_FILE: ");
	}
	const struct build_vma v[] = {{0x1000, 0x2000, 0, "/a"}, {0x2000, 0x3000, 0, "/b"}};
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_nt_file_desc(&b, 8, v, 2);
	for (size_t cut = 0; cut < b.len; cut++)
		CHECK_ERROR(sonde_vmas_decode(b.data, cut, 8, false, &vmas), SONDE_BAD_DATA,
			"NT_FILE: ");
	sonde_cleanup(sonde_vmas) struct sonde_vmas *none = NULL;
	sonde_cleanup(sonde_buf) struct sonde_buf empty = {0};
	build_nt_file_desc(&empty, 8, NULL, 0);
	REQUIRE_OK(sonde_vmas_decode(empty.data, empty.len, 8, false, &none));
	CHECK(!sonde_vmas_find(none, 0));
}

int main(void)
{
	RUN(decodes_both_word_sizes);
	RUN(drops_rows_without_sense);
	RUN(hostile_counts);
	return tap_end();
}
