#include "output/text.h"
#include "tap.h"

/* Escaped form of a literal that may hold NUL, and its columns. */
#define CHECK_ESCAPED(literal, want, want_columns)                                        \
	do {                                                                              \
		struct sonde_buf buf_ = {0};                                              \
		size_t columns_ = sonde_text_escape(&buf_, literal, sizeof(literal) - 1); \
		CHECK_STR(sonde_buf_text(&buf_), want);                                   \
		CHECK_EQ(columns_, want_columns);                                         \
		CHECK_EQ(sonde_text_columns(buf_.data, buf_.len), want_columns);          \
		sonde_buf_deinit(&buf_);                                                  \
	} while (0)

static void no_control_reaches_a_terminal(void)
{
	CHECK_ESCAPED("plain", "plain", 5);
	CHECK_ESCAPED("", "", 0);
	CHECK_ESCAPED("a\nb\tc\r\0d", "a\\nb\\tc\\r\\x00d", 14);
	CHECK_ESCAPED("\033[31mred", "\\x1b[31mred", 11);
	CHECK_ESCAPED("\x7f", "\\x7f", 4);
	CHECK_ESCAPED("\xc2\x9b"
		      "31m",
		"\\u009b31m", 9); /* C1: CSI in one character */
	CHECK_ESCAPED("\x9b"
		      "31m",
		"\\x9b31m", 7); /* and as a bare byte */
	CHECK_ESCAPED("\xe2\x80\xae"
		      "exe",
		"\\u202eexe", 9); /* right-to-left override */
	CHECK_ESCAPED("\xf3\xa0\x81\x81", "\\u{e0041}", 9); /* a tag */
}

static void utf8_is_decoded_strictly(void)
{
	CHECK_ESCAPED("\xc0\x80", "\\xc0\\x80", 8); /* overlong NUL */
	CHECK_ESCAPED("\xe0\x80\xaf", "\\xe0\\x80\\xaf", 12);
	CHECK_ESCAPED("\xed\xa0\x80", "\\xed\\xa0\\x80", 12); /* a surrogate */
	CHECK_ESCAPED("\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80", 16); /* U+110000 */
	CHECK_ESCAPED("\xf5", "\\xf5", 4);
	CHECK_ESCAPED("\xe2\x82", "\\xe2\\x82", 8); /* cut short */
	CHECK_ESCAPED("\xe2\x82\xac", "\xe2\x82\xac", 1);
	CHECK_ESCAPED("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80", 2);
	CHECK_ESCAPED("e\xcc\x81", "e\xcc\x81", 1); /* e and a combining acute */
	CHECK_ESCAPED("\xe6\x97\xa5\xe6\x9c\xac", "\xe6\x97\xa5\xe6\x9c\xac", 4);
}

/* Escaped text is UTF-8 without anything unsafe, has the columns it says, and safe text stays as it is. */
static bool is_harmless(const char *s, size_t len)
{
	struct sonde_buf buf = {0};
	size_t columns = sonde_text_escape(&buf, s, len), n;
	bool fine = !buf.failed && columns == sonde_text_columns(buf.data, buf.len), safe = true;
	uint32_t rune;
	for (size_t i = 0; i < buf.len; i += n) {
		n = sonde_text_decode(buf.data + i, buf.len - i, &rune);
		fine &= !sonde_text_is_unsafe(rune);
	}
	for (size_t i = 0; i < len; i += n) {
		n = sonde_text_decode(s + i, len - i, &rune);
		safe &= !sonde_text_is_unsafe(rune);
	}
	fine &= safe == (buf.len == len && !memcmp(buf.data, s, len));
	sonde_buf_deinit(&buf);
	return fine;
}

static void any_bytes_are_harmless(void)
{
	char s[8];
	for (unsigned i = 0; i < 1 << 16; i++) {
		memcpy(s, &(uint16_t){(uint16_t)i}, 2);
		if (!is_harmless(s, 2))
			CHECK_EQ(i, UINT32_MAX);
	}
	uint64_t x = 1;
	for (unsigned i = 0; i < 300000; i++) {
		x = x * 6364136223846793005u + 1442695040888963407u;
		uint64_t bytes = x ^ x >> 29;
		/* Every other time a likely start of several bytes. */
		if (i & 1)
			bytes = (bytes & ~(uint64_t)0xff) | 0xe0 | (bytes & 0x17);
		memcpy(s, &bytes, 8);
		if (!is_harmless(s, 8))
			CHECK_EQ(bytes, 0);
	}
}

static void text_is_cut_between_characters(void)
{
	const char *s = "a\xe6\x97\xa5z";
	CHECK_EQ(sonde_text_fit(s, 5, 0), 0);
	CHECK_EQ(sonde_text_fit(s, 5, 1), 1);
	CHECK_EQ(sonde_text_fit(s, 5, 2), 1);
	CHECK_EQ(sonde_text_fit(s, 5, 3), 4);
	CHECK_EQ(sonde_text_fit(s, 5, 99), 5);
}

static void numbers_for_people(void)
{
	char to[SONDE_TEXT_NUMBER_BYTES];
	CHECK_STR(sonde_text_human_bytes(to, 0), "0 B");
	CHECK_STR(sonde_text_human_bytes(to, 1023), "1023 B");
	CHECK_STR(sonde_text_human_bytes(to, 1024), "1.0 KiB");
	CHECK_STR(sonde_text_human_bytes(to, 1536), "1.5 KiB");
	CHECK_STR(sonde_text_human_bytes(to, 1024 * 1024 - 1), "1.0 MiB");
	CHECK_STR(sonde_text_human_bytes(to, 1024 * 1024 - 52), "1023.9 KiB");
	CHECK_STR(sonde_text_human_bytes(to, UINT64_MAX), "16.0 EiB");
	CHECK_STR(sonde_text_share(to, 1, 0), "-");
	CHECK_STR(sonde_text_share(to, 0, 7), "0.0%");
	CHECK_STR(sonde_text_share(to, 1, 8), "12.5%");
	CHECK_STR(sonde_text_share(to, 1, 3), "33.3%");
	CHECK_STR(sonde_text_share(to, 2, 3), "66.7%");
	CHECK_STR(sonde_text_share(to, 1, 1000000), "<0.1%");
	CHECK_STR(sonde_text_share(to, UINT64_MAX, UINT64_MAX), "100.0%");
	CHECK_EQ(sonde_text_u64(to, 0), 1);
	CHECK_EQ(to[0], '0');
	CHECK_EQ(sonde_text_u64(to, UINT64_MAX), 20);
	CHECK(!memcmp(to, "18446744073709551615", 20));
}

int main(void)
{
	RUN(no_control_reaches_a_terminal);
	RUN(utf8_is_decoded_strictly);
	RUN(any_bytes_are_harmless);
	RUN(text_is_cut_between_characters);
	RUN(numbers_for_people);
	return tap_end();
}
