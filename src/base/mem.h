/* src/base/mem.h: ownership that one function proves: the cleanup attribute, sonde_take(), counted allocation. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

/* An owning local: freed by NAME_free() when its scope ends, unless taken. */
#define sonde_cleanup(name) __attribute__((cleanup(sonde_cleanup_##name)))

/* Defines what sonde_cleanup(name) runs: name_free(struct name *), which takes NULL. */
#define SONDE_DEFINE_CLEANUP(name)                               \
	static inline void sonde_cleanup_##name(struct name **p) \
	{                                                        \
		name##_free(*p);                                 \
	}

/* The same for storage of the caller that has name_deinit(struct name *). */
#define SONDE_DEFINE_CLEANUP_DEINIT(name)                       \
	static inline void sonde_cleanup_##name(struct name *p) \
	{                                                       \
		name##_deinit(p);                               \
	}

/* Hand an owning local over: its value, and NULL left behind. */
#define sonde_take(p)                           \
	({                                      \
		__auto_type sonde_taken_ = (p); \
		(p) = NULL;                     \
		sonde_taken_;                   \
	})

static inline void sonde_cleanup_free(void *p)
{
	free(*(void **)p);
}

static inline void sonde_cleanup_fd(const int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

/* Hand an owned descriptor over and leave -1 behind. */
#define sonde_take_fd(fd)                \
	({                               \
		int sonde_taken_ = (fd); \
		(fd) = -1;               \
		sonde_taken_;            \
	})

/* n zeroed elements; NULL when out of memory or when the size overflows. n = 0 gives a valid pointer. */
#define sonde_new_array(type, n) ((type *)calloc((n) ? (n) : 1, sizeof(type)))
#define sonde_new(type) ((type *)calloc(1, sizeof(type)))

/* realloc() of n elements of elem_bytes with the product checked; NULL leaves p as it was. */
static inline void *sonde_realloc_array(void *p, size_t n, size_t elem_bytes)
{
	size_t bytes;
	if (__builtin_mul_overflow(n, elem_bytes, &bytes))
		return NULL;
	return realloc(p, bytes ? bytes : 1);
}

#define SONDE_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define sonde_min(a, b)                                    \
	({                                                 \
		__auto_type sonde_a_ = (a);                \
		__auto_type sonde_b_ = (b);                \
		sonde_a_ < sonde_b_ ? sonde_a_ : sonde_b_; \
	})
#define sonde_max(a, b)                                    \
	({                                                 \
		__auto_type sonde_a_ = (a);                \
		__auto_type sonde_b_ = (b);                \
		sonde_a_ > sonde_b_ ? sonde_a_ : sonde_b_; \
	})
#define sonde_likely(x) __builtin_expect(!!(x), 1)
#define sonde_unlikely(x) __builtin_expect(!!(x), 0)
