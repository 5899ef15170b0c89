/* src/base/arena.h: bulk data that is freed whole. One thread at a time. */
#pragma once
#include <stdarg.h>
#include <stddef.h>
#include "base/mem.h"

struct sonde_arena_chunk;
struct sonde_arena {
	struct sonde_arena_chunk *chunks; /* newest first */
	char *next, *end;
	size_t bytes; /* handed to malloc so far */
};

void sonde_arena_init(struct sonde_arena *arena);
void sonde_arena_deinit(struct sonde_arena *arena);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_arena)

/* bytes zeroed bytes, aligned for any object; NULL when out of memory. Lives until deinit. */
void *sonde_arena_alloc(struct sonde_arena *arena, size_t bytes);

/* A copy of len bytes with a NUL behind it. */
char *sonde_arena_strndup(struct sonde_arena *arena, const char *s, size_t len);
char *sonde_arena_strdup(struct sonde_arena *arena, const char *s);

/* printf() into the arena; NULL when out of memory. */
char *sonde_arena_vprintf(struct sonde_arena *arena, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
char *sonde_arena_printf(struct sonde_arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* n zeroed elements; NULL when out of memory or when the size overflows. */
#define sonde_arena_array(arena, type, n)                                                 \
	({                                                                                \
		size_t sonde_bytes_;                                                      \
		(type *)(__builtin_mul_overflow((size_t)(n), sizeof(type), &sonde_bytes_) \
				? NULL                                                    \
				: sonde_arena_alloc(arena, sonde_bytes_));                \
	})
