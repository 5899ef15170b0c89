#include "target/windows.h"

#include "build.h"
#include "tap.h"

enum { PAGE = 4096, PAGES = 64 };

/* A file whose page n is filled with n. */
static int numbered_file(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_zeros(&b, PAGES * PAGE);
	for (size_t i = 0; i < PAGES; i++)
		memset(b.data + i * PAGE, (int)i, PAGE);
	return open(build_file_of("numbered", &b), O_RDONLY);
}

static const uint8_t *at(const struct sonde_target_run *runs, size_t n, uint64_t addr)
{
	for (size_t i = 0; i < n; i++)
		if (addr - runs[i].start < runs[i].size_bytes)
			return runs[i].host + (addr - runs[i].start);
	return NULL;
}

static void neighbours_are_contiguous(void)
{
	sonde_cleanup(fd) int fd = numbered_file();
	const struct sonde_window_piece p[] = {
		{0x10000, 0x12000, fd, 5 * PAGE, "f"},
		{0x12000, 0x13000, fd, 1 * PAGE, "f"},
		{0x13000, 0x14000, -1, 0, "f"},
		{0x16000, 0x16010, fd, 9 * PAGE, "f"}, /* a gap before it; ends amid a page */
		{0x16010, 0x16020, fd, 2 * PAGE + 0x10,
			"f"}, /* in the same page of memory, of another page of the file */
		{UINT64_C(1) << 40, (UINT64_C(1) << 40) + PAGE, fd, 3 * PAGE, "f"},
		{UINT64_MAX - PAGE + 1, UINT64_MAX, fd, 4 * PAGE, "f"},
	};
	sonde_cleanup(sonde_windows) struct sonde_windows *w = NULL;
	REQUIRE_OK(sonde_windows_map(p, 7, -1, NULL, 0, &w));
	size_t n;
	sonde_cleanup(free) struct sonde_target_run *r = sonde_windows_runs(w, &n);
	REQUIRE(r && n == 5);
	CHECK_EQ(r[0].start, 0x10000);
	CHECK_EQ(r[0].size_bytes, 0x4000);
	CHECK_EQ(*at(r, n, 0x10000), 5);
	CHECK_EQ(*at(r, n, 0x11fff), 6);
	CHECK_EQ(*at(r, n, 0x12000), 1);
	CHECK_EQ(*at(r, n, 0x13000), 0);
	CHECK(!at(r, n, 0x14000));
	CHECK_EQ(*at(r, n, 0x1600f), 9);
	CHECK_EQ(*at(r, n, 0x16010), 2);
	CHECK(!at(r, n, 0x16020));
	CHECK_EQ(*at(r, n, UINT64_C(1) << 40), 3);
	CHECK_EQ(*at(r, n, UINT64_MAX - 1), 4);
	/* One window: distances stay. */
	CHECK(at(r, n, 0x16000) - at(r, n, 0x10000) == 0x6000);
}

static void offsets_out_of_step(void)
{
	sonde_cleanup(fd) int fd = numbered_file();
	const struct sonde_window_piece p[] = {
		{0x10000, 0x12000, fd, 5 * PAGE + 0x628, "f"},
		{0x12000, 0x13000, fd, 7 * PAGE + 0x628, "f"},
	};
	sonde_cleanup(sonde_windows) struct sonde_windows *w = NULL;
	REQUIRE_OK(sonde_windows_map(p, 2, -1, NULL, 0, &w));
	size_t n;
	sonde_cleanup(free) struct sonde_target_run *r = sonde_windows_runs(w, &n);
	REQUIRE(r && n == 1);
	CHECK_EQ(r[0].size_bytes, 0x3000);
	CHECK_EQ(r[0].host[0], 5);
	CHECK_EQ(r[0].host[0x9d8], 6);
	CHECK_EQ(r[0].host[0x2fff], 8);
}

static void holes_are_zeros(void)
{
	/* 8 MiB of file: what is called a hole here holds other bytes, so that reading it would show. */
	enum { SIZE = 8 << 20, MIB = 1 << 20 };
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_zeros(&b, SIZE);
	memset(b.data, 'x', SIZE);
	sonde_cleanup(fd) int fd = open(build_file_of("holes", &b), O_RDONLY);
	const struct sonde_window_hole holes[] = {
		{100, 2 * MIB + 100}, {3 * MIB, 3 * MIB + PAGE}, {5 * MIB, 7 * MIB}};
	for (int step = 0; step < 2; step++) {
		uint64_t lead = step ? 0x100 : 0;
		const struct sonde_window_piece p = {
			0x10000000, 0x10000000 + SIZE - lead, fd, lead, "f"};
		sonde_cleanup(sonde_windows) struct sonde_windows *w = NULL;
		REQUIRE_OK(sonde_windows_map(&p, 1, fd, holes, 3, &w));
		size_t n;
		sonde_cleanup(free) struct sonde_target_run *r = sonde_windows_runs(w, &n);
		REQUIRE(r && n == 1);
		const uint8_t *file = r[0].host - lead;
		CHECK_EQ(file[PAGE - 1], 'x'); /* a page that the hole does not fill */
		CHECK_EQ(file[PAGE], 0);
		CHECK_EQ(file[2 * MIB - 1], 0);
		CHECK_EQ(file[2 * MIB], 'x');
		CHECK_EQ(file[3 * MIB + 5], 'x'); /* too small to be worth a mapping */
		CHECK_EQ(file[5 * MIB - 1], 'x');
		CHECK_EQ(file[5 * MIB], 0);
		CHECK_EQ(file[7 * MIB - 1], 0);
		CHECK_EQ(file[7 * MIB], 'x');
	}
}

static void nothing_and_too_much(void)
{
	sonde_cleanup(sonde_windows) struct sonde_windows *w = NULL;
	REQUIRE_OK(sonde_windows_map(NULL, 0, -1, NULL, 0, &w));
	size_t n = 9;
	sonde_cleanup(free) struct sonde_target_run *r = sonde_windows_runs(w, &n);
	CHECK(r && n == 0);
	/* Zeros beyond the limit are left to the reader. */
	const struct sonde_window_piece zeros = {
		0x1000, 0x1000 + SONDE_WINDOW_MAX_ZERO + PAGE, -1, 0, "f"};
	sonde_windows_free(sonde_take(w));
	free(sonde_take(r));
	REQUIRE_OK(sonde_windows_map(&zeros, 1, -1, NULL, 0, &w));
	r = sonde_windows_runs(w, &n);
	CHECK(r && n == 0);
	/* Data beyond what any process has room for. */
	sonde_cleanup(fd) int fd = numbered_file();
	const struct sonde_window_piece vast = {0, UINT64_C(1) << 62, fd, 0, "vast"};
	struct sonde_windows *none = NULL;
	CHECK_ERROR(sonde_windows_map(&vast, 1, -1, NULL, 0, &none), SONDE_NO_MEMORY,
		"vast: no address space for");
}

int main(void)
{
	RUN(neighbours_are_contiguous);
	RUN(offsets_out_of_step);
	RUN(holes_are_zeros);
	RUN(nothing_and_too_much);
	return tap_end();
}
