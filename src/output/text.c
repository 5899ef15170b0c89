#include "output/text.h"

#include <inttypes.h>
#include <stdio.h>

size_t sonde_text_decode(const char *s, size_t len, uint32_t *rune)
{
	const uint8_t *p = (const uint8_t *)s;
	uint32_t r = p[0];
	if (r < 0x80) {
		*rune = r;
		return 1;
	}
	*rune = SONDE_TEXT_BAD;
	size_t n = r >= 0xf0 ? 4 : r >= 0xe0 ? 3 : 2;
	static const uint32_t least[] = {[2] = 0x80, [3] = 0x800, [4] = 0x10000};
	if (r < 0xc2 || r > 0xf4 || n > len)
		return 1;
	r &= 0xffu >> (n + 1);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 1;
		r = r << 6 | (p[i] & 0x3f);
	}
	if (r < least[n] || r > 0x10ffff || (r >= 0xd800 && r <= 0xdfff))
		return 1;
	*rune = r;
	return n;
}

struct range {
	uint32_t first, last;
};

/* ranges ascend and are disjoint. */
static bool in_ranges(const struct range *ranges, size_t n, uint32_t rune)
{
	size_t low = 0, high = n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (rune > ranges[middle].last)
			low = middle + 1;
		else
			high = middle;
	}
	return low < n && rune >= ranges[low].first;
}

bool sonde_text_is_unsafe(uint32_t rune)
{
	static const struct range unsafe[] = {
		{0x00, 0x1f},
		{0x7f, 0x9f},
		{0x61c, 0x61c},
		{0x200e, 0x200f},
		{0x2028, 0x202e},
		{0x2066, 0x2069},
		{0xfeff, 0xfeff},
		{0xfff9, 0xfffb},
		{0xe0000, 0xe007f},
		{0x110000, SONDE_TEXT_BAD},
	};
	return in_ranges(unsafe, SONDE_ARRAY_LEN(unsafe), rune);
}

unsigned sonde_text_rune_columns(uint32_t rune)
{
	/* Marks that combine with the character before them, in the blocks that hold little else. */
	static const struct range none[] = {
		{0x300, 0x36f},
		{0x483, 0x489},
		{0x591, 0x5bd},
		{0x610, 0x61a},
		{0x64b, 0x65f},
		{0x6d6, 0x6dc},
		{0x900, 0x902},
		{0x93c, 0x93c},
		{0x941, 0x948},
		{0x94d, 0x94d},
		{0xe31, 0xe31},
		{0xe34, 0xe3a},
		{0xe47, 0xe4e},
		{0x1ab0, 0x1aff},
		{0x1dc0, 0x1dff},
		{0x200b, 0x200d},
		{0x2060, 0x2064},
		{0x20d0, 0x20ff},
		{0x302a, 0x302d},
		{0xfe00, 0xfe0f},
		{0xfe20, 0xfe2f},
		{0x1f3fb, 0x1f3ff},
		{0xe0100, 0xe01ef},
	};
	static const struct range wide[] = {
		{0x1100, 0x115f},
		{0x231a, 0x231b},
		{0x2e80, 0x303e},
		{0x3041, 0x33ff},
		{0x3400, 0x4dbf},
		{0x4e00, 0xa4cf},
		{0xa960, 0xa97c},
		{0xac00, 0xd7a3},
		{0xf900, 0xfaff},
		{0xfe30, 0xfe6f},
		{0xff00, 0xff60},
		{0xffe0, 0xffe6},
		{0x16fe0, 0x18aff},
		{0x1b000, 0x1b2ff},
		{0x1f300, 0x1f64f},
		{0x1f680, 0x1f6ff},
		{0x1f900, 0x1f9ff},
		{0x20000, 0x3fffd},
	};
	if (rune < 0x300)
		return 1;
	if (in_ranges(none, SONDE_ARRAY_LEN(none), rune))
		return 0;
	return in_ranges(wide, SONDE_ARRAY_LEN(wide), rune) ? 2 : 1;
}

static size_t escape_unsafe(struct sonde_buf *buf, uint8_t byte, uint32_t rune)
{
	size_t before = buf->len;
	if (rune == '\n')
		sonde_buf_str(buf, "\\n");
	else if (rune == '\t')
		sonde_buf_str(buf, "\\t");
	else if (rune == '\r')
		sonde_buf_str(buf, "\\r");
	else if (rune < 0x80 || rune == SONDE_TEXT_BAD)
		sonde_buf_printf(buf, "\\x%02x", byte);
	else if (rune < 0x10000)
		sonde_buf_printf(buf, "\\u%04" PRIx32, rune);
	else
		sonde_buf_printf(buf, "\\u{%" PRIx32 "}", rune);
	return buf->len - before;
}

size_t sonde_text_escape(struct sonde_buf *buf, const char *s, size_t len)
{
	size_t columns = 0, plain = 0; /* s[plain..i) waits to be copied */
	for (size_t i = 0; i < len;) {
		uint8_t byte = (uint8_t)s[i];
		if (byte >= 0x20 && byte < 0x7f) {
			columns++;
			i++;
			continue;
		}
		uint32_t rune;
		size_t n = sonde_text_decode(s + i, len - i, &rune);
		if (sonde_text_is_unsafe(rune)) {
			sonde_buf_add(buf, s + plain, i - plain);
			columns += escape_unsafe(buf, byte, rune);
			plain = i + n;
		} else {
			columns += sonde_text_rune_columns(rune);
		}
		i += n;
	}
	sonde_buf_add(buf, s + plain, len - plain);
	return columns;
}

size_t sonde_text_columns(const char *s, size_t len)
{
	size_t columns = 0;
	for (size_t i = 0; i < len;) {
		uint32_t rune;
		i += sonde_text_decode(s + i, len - i, &rune);
		columns += sonde_text_rune_columns(rune);
	}
	return columns;
}

size_t sonde_text_fit(const char *s, size_t len, size_t columns)
{
	size_t i = 0;
	while (i < len) {
		uint32_t rune;
		size_t n = sonde_text_decode(s + i, len - i, &rune);
		size_t wide = sonde_text_rune_columns(rune);
		if (wide > columns)
			break;
		columns -= wide;
		i += n;
	}
	return i;
}

size_t sonde_text_u64(char *to, uint64_t v)
{
	char digits[20];
	size_t n = 0;
	do
		digits[n++] = (char)('0' + v % 10);
	while (v /= 10);
	for (size_t i = 0; i < n; i++)
		to[i] = digits[n - 1 - i];
	return n;
}

const char *sonde_text_human_bytes(char to[SONDE_TEXT_NUMBER_BYTES], uint64_t bytes)
{
	static const char units[][4] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
	if (bytes < 1024) {
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "%u B", (unsigned)bytes);
		return to;
	}
	unsigned __int128 unit = 1024;
	size_t i = 0;
	uint64_t tenths;
	/* 1023.95 KiB rounds to 1024.0: that is 1.0 of the next unit. */
	while ((tenths = (uint64_t)(((unsigned __int128)bytes * 10 + unit / 2) / unit)) >= 10240) {
		unit *= 1024;
		i++;
	}
	snprintf(to, SONDE_TEXT_NUMBER_BYTES, "%" PRIu64 ".%u %s", tenths / 10,
		(unsigned)(tenths % 10), units[i]);
	return to;
}

const char *sonde_text_ns(char to[SONDE_TEXT_NUMBER_BYTES], uint64_t ns)
{
	static const struct {
		uint64_t ns;
		const char *unit;
	} units[] = {{1000000000, "s"}, {1000000, "ms"}, {1000, "us"}};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(units); i++) {
		if (ns < units[i].ns)
			continue;
		uint64_t thousandth = ns % units[i].ns / (units[i].ns / 1000);
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "%" PRIu64 ".%03" PRIu64 " %s",
			ns / units[i].ns, thousandth, units[i].unit);
		return to;
	}
	snprintf(to, SONDE_TEXT_NUMBER_BYTES, "%" PRIu64 " ns", ns);
	return to;
}

const char *sonde_text_share(char to[SONDE_TEXT_NUMBER_BYTES], uint64_t part, uint64_t whole)
{
	if (!whole) {
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "-");
		return to;
	}
	unsigned __int128 permille = ((unsigned __int128)part * 2000 + whole) / 2 / whole;
	if (part && !permille)
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "<0.1%%");
	else
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "%" PRIu64 ".%u%%", (uint64_t)(permille / 10),
			(unsigned)(permille % 10));
	return to;
}
