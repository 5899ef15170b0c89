/*
 * src/base/cursor.h: reading untrusted bytes. A read past the end yields zeros and sets `bad` for good; test it once a
 * record. Little-endian unless `big_endian` is set. Nothing here allocates.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct sonde_cursor {
	const uint8_t *p, *end; /* borrowed */
	const uint8_t *start;
	bool bad, big_endian;
};

static inline struct sonde_cursor sonde_cursor_over(const void *data, size_t len)
{
	const uint8_t *p = data;
	return (struct sonde_cursor){.p = p, .end = p ? p + len : p, .start = p};
}

static inline size_t sonde_cursor_left(const struct sonde_cursor *c)
{
	return (size_t)(c->end - c->p);
}

static inline size_t sonde_cursor_offset(const struct sonde_cursor *c)
{
	return (size_t)(c->p - c->start);
}

/* len bytes in place, or NULL. */
static inline const uint8_t *sonde_cursor_bytes(struct sonde_cursor *c, uint64_t len)
{
	if (c->bad || len > sonde_cursor_left(c)) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	const uint8_t *p = c->p;
	c->p += len;
	return p;
}

static inline void sonde_cursor_skip(struct sonde_cursor *c, uint64_t len)
{
	(void)sonde_cursor_bytes(c, len);
}

/* Move to offset bytes from the start. */
static inline void sonde_cursor_seek(struct sonde_cursor *c, uint64_t offset)
{
	if (offset > (uint64_t)(c->end - c->start))
		c->bad = true;
	else
		c->p = c->start + offset;
}

static inline uint8_t sonde_cursor_u8(struct sonde_cursor *c)
{
	const uint8_t *p = sonde_cursor_bytes(c, 1);
	return p ? *p : 0;
}

static inline uint16_t sonde_cursor_u16(struct sonde_cursor *c)
{
	const uint8_t *p = sonde_cursor_bytes(c, 2);
	uint16_t v = 0;
	if (p)
		memcpy(&v, p, sizeof(v));
	return c->big_endian ? __builtin_bswap16(v) : v;
}

static inline uint32_t sonde_cursor_u32(struct sonde_cursor *c)
{
	const uint8_t *p = sonde_cursor_bytes(c, 4);
	uint32_t v = 0;
	if (p)
		memcpy(&v, p, sizeof(v));
	return c->big_endian ? __builtin_bswap32(v) : v;
}

static inline uint64_t sonde_cursor_u64(struct sonde_cursor *c)
{
	const uint8_t *p = sonde_cursor_bytes(c, 8);
	uint64_t v = 0;
	if (p)
		memcpy(&v, p, sizeof(v));
	return c->big_endian ? __builtin_bswap64(v) : v;
}

/* An address or size of word_bytes (1, 2, 4 or 8); anything else is bad. */
static inline uint64_t sonde_cursor_word(struct sonde_cursor *c, unsigned word_bytes)
{
	switch (word_bytes) {
	case 8:
		return sonde_cursor_u64(c);
	case 4:
		return sonde_cursor_u32(c);
	case 2:
		return sonde_cursor_u16(c);
	case 1:
		return sonde_cursor_u8(c);
	default:
		c->bad = true;
		return 0;
	}
}

/* A NUL-terminated string in place, or NULL where no NUL comes before the end. */
static inline const char *sonde_cursor_string(struct sonde_cursor *c)
{
	const uint8_t *nul = c->bad ? NULL : memchr(c->p, 0, sonde_cursor_left(c));
	if (!nul) {
		c->bad = true;
		c->p = c->end;
		return NULL;
	}
	const char *s = (const char *)c->p;
	c->p = nul + 1;
	return s;
}

/* Skip to the next multiple of align (a power of two) from the start. */
static inline void sonde_cursor_align(struct sonde_cursor *c, size_t align)
{
	size_t over = sonde_cursor_offset(c) & (align - 1);
	if (over)
		sonde_cursor_skip(c, align - over);
}
