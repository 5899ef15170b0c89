#include "object/note.h"

#include "build.h"
#include "tap.h"

static void iterates(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_note(&b, "CORE", 5, 1, "abcde", 5);
	build_note(&b, "Go\0", 4, 4, "id", 2);
	build_note(&b, "", 0, 7, "", 0);
	struct sonde_note_iter it = sonde_note_iter_over(b.data, b.len, 0, false);
	struct sonde_note n;
	REQUIRE(sonde_note_next(&it, &n));
	CHECK(sonde_note_is(&n, "CORE", 1) && !sonde_note_is(&n, "CORE", 2) &&
		!sonde_note_is(&n, "COR", 1));
	CHECK(n.desc_len == 5 && !memcmp(n.desc, "abcde", 5));
	REQUIRE(sonde_note_next(&it, &n));
	CHECK(sonde_note_is(&n, "Go", 4) && n.desc_len == 2);
	REQUIRE(sonde_note_next(&it, &n));
	CHECK(n.name_len == 0 && n.desc_len == 0 && n.type == 7);
	CHECK(!sonde_note_next(&it, &n));
	CHECK(!it.damaged);
}

/* The gABI's form: everything padded to 8 where the segment says so (.note.gnu.property). */
static void eight_byte_alignment(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	for (int i = 0; i < 2; i++) {
		build_u32(&b, 4);
		build_u32(&b, 5);
		build_u32(&b, (uint32_t)i);
		sonde_buf_add(&b, "GNU", 4);
		build_pad(&b, 8);
		sonde_buf_add(&b, "12345", 5);
		build_pad(&b, 8);
	}
	struct sonde_note_iter it = sonde_note_iter_over(b.data, b.len, 8, false);
	struct sonde_note n;
	for (uint32_t i = 0; i < 2; i++) {
		REQUIRE(sonde_note_next(&it, &n));
		CHECK(sonde_note_is(&n, "GNU", i) && n.desc_len == 5 &&
			!memcmp(n.desc, "12345", 5));
	}
	CHECK(!sonde_note_next(&it, &n) && !it.damaged);
}

static void big_endian(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_number(&b, 4, 4, true);
	build_number(&b, 1, 4, true);
	build_number(&b, 3, 4, true);
	sonde_buf_add(&b, "GNU\0x", 5); /* the padding behind the last one is missing */
	struct sonde_note_iter it = sonde_note_iter_over(b.data, b.len, 4, true);
	struct sonde_note n;
	REQUIRE(sonde_note_next(&it, &n));
	CHECK(sonde_note_is(&n, "GNU", 3) && n.desc_len == 1 && n.desc[0] == 'x');
	CHECK(!sonde_note_next(&it, &n) && !it.damaged);
}

static void hostile_sizes_end_it(void)
{
	const uint32_t sizes[][2] = {{UINT32_MAX, 0}, {0, UINT32_MAX}, {UINT32_MAX, UINT32_MAX},
		{4, 100}, {100, 4}, {UINT32_MAX - 3, 8}};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_note(&b, "CORE", 5, 1, "abc", 3);
		build_u32(&b, sizes[i][0]);
		build_u32(&b, sizes[i][1]);
		build_u32(&b, 1);
		build_zeros(&b, 20);
		struct sonde_note_iter it = sonde_note_iter_over(b.data, b.len, 4, false);
		struct sonde_note n;
		CHECK(sonde_note_next(&it, &n));
		CHECK(!sonde_note_next(&it, &n));
		CHECK(it.damaged);
		CHECK(!sonde_note_next(&it, &n));
	}
	struct sonde_note_iter it = sonde_note_iter_over(NULL, 0, 4, false);
	struct sonde_note n;
	CHECK(!sonde_note_next(&it, &n) && !it.damaged);
}

int main(void)
{
	RUN(iterates);
	RUN(eight_byte_alignment);
	RUN(big_endian);
	RUN(hostile_sizes_end_it);
	return tap_end();
}
