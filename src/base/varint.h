/* src/base/varint.h: LEB128 as DWARF and Go write it (7 bits a byte, low first), at most 64 bits. */
#pragma once
#include "base/cursor.h"

/* Unsigned. More than 64 bits of value, or no end, is bad. */
uint64_t sonde_varint_u64(struct sonde_cursor *c);

/* DWARF's SLEB128: two's complement, sign in the last byte. */
int64_t sonde_varint_sleb(struct sonde_cursor *c);

/* Go's pc-value tables (runtime/symtab.go step): zig-zag over an unsigned 32-bit value. */
static inline int32_t sonde_varint_zigzag32(struct sonde_cursor *c)
{
	uint32_t u = (uint32_t)sonde_varint_u64(c);
	return (int32_t)((u >> 1) ^ -(u & 1));
}

/* Write v; at most 10 bytes. Returns the length. */
size_t sonde_varint_encode(uint8_t *to, uint64_t v);
