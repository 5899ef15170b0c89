#include "base/cursor.h"
#include "base/varint.h"
#include "tap.h"

static void reads_and_goes_bad(void)
{
	const uint8_t data[] = {1, 2, 3, 4, 5, 6, 7, 8, 'a', 0, 'b'};
	struct sonde_cursor c = sonde_cursor_over(data, sizeof(data));
	CHECK_EQ(sonde_cursor_u16(&c), 0x0201);
	CHECK_EQ(sonde_cursor_u32(&c), 0x06050403);
	c.big_endian = true;
	CHECK_EQ(sonde_cursor_u16(&c), 0x0708);
	CHECK_STR(sonde_cursor_string(&c), "a");
	CHECK(!sonde_cursor_string(&c));
	CHECK(c.bad);
	CHECK_EQ(sonde_cursor_u8(&c), 0);
	CHECK_EQ(sonde_cursor_left(&c), 0);
}

static void lengths_cannot_wrap(void)
{
	const uint8_t data[4] = {0};
	struct sonde_cursor c = sonde_cursor_over(data, sizeof(data));
	sonde_cursor_u8(&c);
	CHECK(!sonde_cursor_bytes(&c, UINT64_MAX));
	CHECK(c.bad);
	c = sonde_cursor_over(data, sizeof(data));
	sonde_cursor_seek(&c, 5);
	CHECK(c.bad);
	c = sonde_cursor_over(data, sizeof(data));
	sonde_cursor_u8(&c);
	sonde_cursor_align(&c, 8);
	CHECK(c.bad);
	c = sonde_cursor_over(NULL, 0);
	CHECK_EQ(sonde_cursor_u8(&c), 0);
	CHECK(c.bad);
}

static void words_of_odd_size_are_bad(void)
{
	const uint8_t data[8] = {0};
	struct sonde_cursor c = sonde_cursor_over(data, sizeof(data));
	sonde_cursor_word(&c, 3);
	CHECK(c.bad);
}

static void varints(void)
{
	uint8_t bytes[10];
	const uint64_t values[] = {0, 1, 127, 128, 300, UINT32_MAX, INT64_MAX, UINT64_MAX};
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		size_t len = sonde_varint_encode(bytes, values[i]);
		struct sonde_cursor c = sonde_cursor_over(bytes, len);
		CHECK_EQ(sonde_varint_u64(&c), values[i]);
		CHECK(!c.bad && !sonde_cursor_left(&c));
		c = sonde_cursor_over(bytes, len - 1);
		sonde_varint_u64(&c);
		CHECK(c.bad);
	}
	/* 2^64 does not fit; zero padding does. */
	const uint8_t over[] = {0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x02};
	struct sonde_cursor c = sonde_cursor_over(over, sizeof(over));
	sonde_varint_u64(&c);
	CHECK(c.bad);
	const uint8_t padded[] = {0x85, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x00};
	c = sonde_cursor_over(padded, sizeof(padded));
	CHECK_EQ(sonde_varint_u64(&c), 5);
	CHECK(!c.bad);
}

static void signed_varints(void)
{
	/* DWARF 5, section 7.6, figure C.2's examples. */
	const struct {
		uint8_t bytes[2];
		size_t len;
		int64_t value;
	} cases[] = {{{2}, 1, 2}, {{0x7e}, 1, -2}, {{0xff, 0}, 2, 127}, {{0x81, 0x7f}, 2, -127},
		{{0x80, 1}, 2, 128}, {{0x80, 0x7f}, 2, -128}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct sonde_cursor c = sonde_cursor_over(cases[i].bytes, cases[i].len);
		CHECK_EQ(sonde_varint_sleb(&c), cases[i].value);
	}
	const uint8_t zigzag[] = {0, 1, 2, 3};
	struct sonde_cursor c = sonde_cursor_over(zigzag, sizeof(zigzag));
	CHECK_EQ(sonde_varint_zigzag32(&c), 0);
	CHECK_EQ(sonde_varint_zigzag32(&c), -1);
	CHECK_EQ(sonde_varint_zigzag32(&c), 1);
	CHECK_EQ(sonde_varint_zigzag32(&c), -2);
}

int main(void)
{
	RUN(reads_and_goes_bad);
	RUN(lengths_cannot_wrap);
	RUN(words_of_odd_size_are_bad);
	RUN(varints);
	RUN(signed_varints);
	return tap_end();
}
