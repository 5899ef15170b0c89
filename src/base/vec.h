/*
 * src/base/vec.h: a growing array of one type. SONDE_DEFINE_VEC(name, type) makes struct name {type *items; size_t n,
 * cap;}; all zero is an empty vector. Items move when it grows: keep indices, not pointers.
 */
#pragma once
#include <stdbool.h>
#include <string.h>
#include "base/mem.h"

#define SONDE_DEFINE_VEC(name, type)                                            \
	struct name {                                                           \
		type *items;                                                    \
		size_t n, cap;                                                  \
	};                                                                      \
	static inline void name##_deinit(struct name *v)                        \
	{                                                                       \
		free(v->items);                                                 \
		*v = (struct name){0};                                          \
	}                                                                       \
	static inline void sonde_cleanup_##name(struct name *v)                 \
	{                                                                       \
		name##_deinit(v);                                               \
	}                                                                       \
	/* Room for `more` further items; false when out of memory. */          \
	static inline bool name##_reserve(struct name *v, size_t more)          \
	{                                                                       \
		size_t want;                                                    \
		if (__builtin_add_overflow(v->n, more, &want))                  \
			return false;                                           \
		if (want <= v->cap)                                             \
			return true;                                            \
		size_t cap = v->cap + v->cap / 2 + 8;                           \
		if (cap < want)                                                 \
			cap = want;                                             \
		type *items = sonde_realloc_array(v->items, cap, sizeof(type)); \
		if (!items)                                                     \
			return false;                                           \
		v->items = items;                                               \
		v->cap = cap;                                                   \
		return true;                                                    \
	}                                                                       \
	static inline bool name##_push(struct name *v, type item)               \
	{                                                                       \
		if (sonde_unlikely(v->n == v->cap) && !name##_reserve(v, 1))    \
			return false;                                           \
		v->items[v->n++] = item;                                        \
		return true;                                                    \
	}                                                                       \
	/* A zeroed new last item, or NULL. */                                  \
	static inline type *name##_add(struct name *v)                          \
	{                                                                       \
		if (sonde_unlikely(v->n == v->cap) && !name##_reserve(v, 1))    \
			return NULL;                                            \
		return memset(&v->items[v->n++], 0, sizeof(type));              \
	}

/* An empty vector's items may be NULL, to which not even 0 may be added. */
#define sonde_vec_foreach(it, v) \
	for (__typeof__(*(v)->items) *it = (v)->items; it && it < (v)->items + (v)->n; it++)

/* qsort() that an empty vector, whose items are NULL, survives. */
#define sonde_vec_sort(v, compare) \
	((v)->n > 1 ? qsort((v)->items, (v)->n, sizeof(*(v)->items), (compare)) : (void)0)

SONDE_DEFINE_VEC(sonde_u64_vec, uint64_t)
SONDE_DEFINE_VEC(sonde_u32_vec, uint32_t)
