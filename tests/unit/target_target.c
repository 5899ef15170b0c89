#include "target/target.h"

#include "build.h"
#include "tap.h"

static void reads_across_runs(void)
{
	uint8_t a[100], b[50], c[10];
	for (int i = 0; i < 100; i++)
		a[i] = (uint8_t)i;
	memset(b, 'b', sizeof(b));
	memset(c, 'c', sizeof(c));
	const struct sonde_target_run runs[] = {
		{0x1000, 100, a}, {0x1064, 50, b}, {UINT64_MAX - 9, 10, c}};
	sonde_cleanup(sonde_target) struct sonde_target *t =
		sonde_target_over_runs(runs, 3, EM_X86_64, 8);
	REQUIRE(t);
	uint8_t to[200];
	CHECK(sonde_target_read(t, 0x1000, to, 150) && to[99] == 99 && to[100] == 'b');
	CHECK(!sonde_target_read(t, 0x1000, to, 151));
	CHECK_EQ(sonde_target_read_some(t, 0x1090, to, 100), 6);
	CHECK_EQ(sonde_target_read_some(t, 0xfff, to, 100), 0);
	CHECK(sonde_target_bytes(t, 0x1000, 100) == a);
	CHECK(!sonde_target_bytes(t, 0x1000, 101));
	CHECK(sonde_target_bytes(t, 0x1063, 1) == a + 99);
	CHECK(sonde_target_bytes(t, 0x1064, 50) == b);
	CHECK(!sonde_target_bytes(t, 0xfff, 1));
	CHECK(!sonde_target_bytes(t, 0, 1));
	CHECK(!sonde_target_bytes(t, 0x1000, UINT64_MAX));
	CHECK(sonde_target_bytes(t, UINT64_MAX, 1) == c + 9);
	CHECK(!sonde_target_bytes(t, UINT64_MAX, 2));
	CHECK(!sonde_target_read(t, UINT64_MAX - 1, to, 4));
	CHECK_EQ(sonde_target_read_some(t, UINT64_MAX - 1, to, 4), 2);
	struct sonde_target_run cache = {0};
	CHECK(sonde_target_bytes_cached(t, &cache, 0x1010, 8) == a + 16);
	CHECK_EQ(cache.start, 0x1000);
	CHECK(!sonde_target_bytes_cached(t, &cache, 0x105f, 6));
	CHECK(sonde_target_bytes_cached(t, &cache, 0x1064, 50) == b);
	CHECK(!sonde_target_bytes_cached(t, &cache, 0x900, 1));
	CHECK(sonde_target_bytes_cached(t, &cache, UINT64_MAX - 9, 10) == c);
	uint16_t u16;
	uint32_t u32;
	uint64_t u64;
	CHECK(sonde_target_read_u16(t, 0x1001, &u16) && u16 == 0x0201);
	CHECK(sonde_target_read_u32(t, 0x1001, &u32) && u32 == 0x04030201);
	CHECK(sonde_target_read_u64(t, 0x1001, &u64) && u64 == 0x0807060504030201);
	CHECK(sonde_target_read_word(t, 0x1001, &u64) && u64 == 0x0807060504030201);
	CHECK(!sonde_target_read_u64(t, 0x108f, &u64));
	size_t n;
	CHECK(sonde_target_mappings(t, &n) && n == 3);
	CHECK(sonde_target_mapping_find(t, 0x1064)->start == 0x1064);
	CHECK(!sonde_target_mapping_find(t, 0x2000));
}

static void words_of_32_bits(void)
{
	const uint8_t a[] = {1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff};
	const struct sonde_target_run run = {0x100, 8, a};
	sonde_cleanup(sonde_target) struct sonde_target *t =
		sonde_target_over_runs(&run, 1, EM_386, 4);
	uint64_t v;
	CHECK(sonde_target_read_word(t, 0x104, &v) && v == 0xffffffff);
	CHECK(!sonde_target_read_word(t, 0x105, &v));
}

static void strings(void)
{
	static char text[600];
	memset(text, 'x', sizeof(text));
	text[299] = 0;
	const struct sonde_target_run run = {0x100, sizeof(text), (uint8_t *)text};
	sonde_cleanup(sonde_target) struct sonde_target *t =
		sonde_target_over_runs(&run, 1, EM_X86_64, 8);
	const struct {
		uint64_t addr;
		size_t max, len;
	} cases[] = {{0x100, 1000, 299}, {0x100, 10, 10}, {0x100, 256, 256}, {0x100, 299, 299},
		{0x100 + 299, 10, 0}, {0x100 + 300, 1000, 300}, {0x100 + 599, 10, 1},
		{0x100, 0, 0}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sonde_cleanup(free) char *s = sonde_target_string(t, cases[i].addr, cases[i].max);
		REQUIRE(s);
		CHECK_EQ(strlen(s), cases[i].len);
	}
	CHECK(!sonde_target_string(t, 0x50, 10));
	sonde_cleanup(sonde_target) struct sonde_target *none =
		sonde_target_over_runs(NULL, 0, EM_X86_64, 8);
	CHECK(!sonde_target_bytes(none, 0, 1) && !sonde_target_string(none, 0, 5));
}

int main(void)
{
	RUN(reads_across_runs);
	RUN(words_of_32_bits);
	RUN(strings);
	return tap_end();
}
