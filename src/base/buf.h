/* src/base/buf.h: growing output bytes, with a sticky `failed` (out of memory) tested once at the end. */
#pragma once
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "base/mem.h"

struct sonde_buf {
	char *data; /* not terminated; see sonde_buf_text() */
	size_t len, cap;
	bool failed;
};

static inline void sonde_buf_deinit(struct sonde_buf *b)
{
	free(b->data);
	*b = (struct sonde_buf){0};
}
SONDE_DEFINE_CLEANUP_DEINIT(sonde_buf)

/* Room for `more` bytes behind len; NULL, and failed set, when out of memory. */
char *sonde_buf_reserve(struct sonde_buf *b, size_t more);
void sonde_buf_printf(struct sonde_buf *b, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void sonde_buf_vprintf(struct sonde_buf *b, const char *fmt, va_list args);

static inline void sonde_buf_add(struct sonde_buf *b, const void *data, size_t len)
{
	if (!len)
		return;
	char *to = b->cap - b->len >= len ? b->data + b->len : sonde_buf_reserve(b, len);
	if (!to)
		return;
	memcpy(to, data, len);
	b->len += len;
}

static inline void sonde_buf_str(struct sonde_buf *b, const char *s)
{
	sonde_buf_add(b, s, strlen(s));
}

static inline void sonde_buf_char(struct sonde_buf *b, char c)
{
	sonde_buf_add(b, &c, 1);
}

/* The bytes as a string, valid until the next write; "" where it failed. */
const char *sonde_buf_text(struct sonde_buf *b);
