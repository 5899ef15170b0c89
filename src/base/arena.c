#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_CHUNK_BYTES = 4096, LARGEST_CHUNK_BYTES = 1 << 20, ALIGN_BYTES = 16 };

struct sonde_arena_chunk {
	struct sonde_arena_chunk *older;
	_Alignas(16) char data[];
};

void sonde_arena_init(struct sonde_arena *arena)
{
	*arena = (struct sonde_arena){0};
}

void sonde_arena_deinit(struct sonde_arena *arena)
{
	for (struct sonde_arena_chunk *c = arena->chunks, *older; c; c = older) {
		older = c->older;
		free(c);
	}
	sonde_arena_init(arena);
}

void *sonde_arena_alloc(struct sonde_arena *arena, size_t bytes)
{
	size_t need;
	if (__builtin_add_overflow(bytes, ALIGN_BYTES - 1, &need))
		return NULL;
	need &= ~(size_t)(ALIGN_BYTES - 1);
	if (need > (size_t)(arena->end - arena->next)) {
		/* Chunks double with the arena, so that their number stays logarithmic, then linear. */
		size_t chunk = arena->bytes < FIRST_CHUNK_BYTES ? FIRST_CHUNK_BYTES : arena->bytes;
		chunk = sonde_max(sonde_min(chunk, (size_t)LARGEST_CHUNK_BYTES), need);
		size_t total;
		if (__builtin_add_overflow(chunk, sizeof(struct sonde_arena_chunk), &total))
			return NULL;
		struct sonde_arena_chunk *c = malloc(total);
		if (!c)
			return NULL;
		c->older = arena->chunks;
		arena->chunks = c;
		arena->next = c->data;
		arena->end = c->data + chunk;
		arena->bytes += total;
	}
	void *p = arena->next;
	arena->next += need;
	return memset(p, 0, need);
}

char *sonde_arena_strndup(struct sonde_arena *arena, const char *s, size_t len)
{
	char *copy = len == SIZE_MAX ? NULL : sonde_arena_alloc(arena, len + 1);
	if (copy && len)
		memcpy(copy, s, len);
	return copy;
}

char *sonde_arena_strdup(struct sonde_arena *arena, const char *s)
{
	return sonde_arena_strndup(arena, s, strlen(s));
}

char *sonde_arena_vprintf(struct sonde_arena *arena, const char *fmt, va_list args)
{
	char *text = NULL;
	int len = vasprintf(&text, fmt, args);
	if (len < 0)
		return NULL;
	char *copy = sonde_arena_strndup(arena, text, (size_t)len);
	free(text);
	return copy;
}

char *sonde_arena_printf(struct sonde_arena *arena, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *text = sonde_arena_vprintf(arena, fmt, args);
	va_end(args);
	return text;
}
