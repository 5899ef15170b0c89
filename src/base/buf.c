#include "base/buf.h"

#include <stdio.h>

char *sonde_buf_reserve(struct sonde_buf *b, size_t more)
{
	size_t want;
	if (b->failed)
		return NULL;
	if (__builtin_add_overflow(b->len, more, &want)) {
		b->failed = true;
		return NULL;
	}
	if (want > b->cap) {
		size_t cap = sonde_max(want, b->cap + b->cap / 2 + 64);
		char *data = realloc(b->data, cap);
		if (!data) {
			b->failed = true;
			return NULL;
		}
		b->data = data;
		b->cap = cap;
	}
	return b->data + b->len;
}

void sonde_buf_vprintf(struct sonde_buf *b, const char *fmt, va_list args)
{
	va_list again;
	va_copy(again, args);
	int len = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	char *to = len < 0 ? NULL : sonde_buf_reserve(b, (size_t)len + 1);
	if (!to) {
		b->failed = true;
		return;
	}
	vsnprintf(to, (size_t)len + 1, fmt, args);
	b->len += (size_t)len;
}

void sonde_buf_printf(struct sonde_buf *b, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	sonde_buf_vprintf(b, fmt, args);
	va_end(args);
}

const char *sonde_buf_text(struct sonde_buf *b)
{
	char *end = sonde_buf_reserve(b, 1);
	if (!end)
		return "";
	*end = 0;
	return b->data;
}
