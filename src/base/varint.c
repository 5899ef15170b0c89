#include "base/varint.h"

uint64_t sonde_varint_u64(struct sonde_cursor *c)
{
	uint64_t v = 0;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t b = sonde_cursor_u8(c);
		if (c->bad)
			return 0;
		uint64_t part = b & 0x7f;
		/* Padding by zero groups is legal LEB128; a value bit beyond 63 is not. */
		if (part && (shift > 63 || (shift == 63 && part > 1))) {
			c->bad = true;
			return 0;
		}
		if (shift < 64)
			v |= part << shift;
		if (!(b & 0x80))
			return v;
	}
}

int64_t sonde_varint_sleb(struct sonde_cursor *c)
{
	uint64_t v = 0;
	for (unsigned shift = 0;; shift += 7) {
		uint8_t b = sonde_cursor_u8(c);
		if (c->bad)
			return 0;
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		if (b & 0x80)
			continue;
		if (shift + 7 < 64 && (b & 0x40))
			v |= ~(uint64_t)0 << (shift + 7);
		return (int64_t)v;
	}
}

size_t sonde_varint_encode(uint8_t *to, uint64_t v)
{
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}
