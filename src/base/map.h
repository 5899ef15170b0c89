/*
 * src/base/map.h: open addressing from uint64_t keys to small values. SONDE_DEFINE_MAP(name, type) makes struct name;
 * all zero is an empty map. Key 0 is allowed. Load <= 3/4; 8 + sizeof(type) bytes a slot plus one occupancy byte.
 * Value pointers move when the map grows. No removal. Hashing is keyless: an adversary can make look-ups slow, never
 * wrong; where hostile keys come by the million, use an index by position instead.
 */
#pragma once
#include <stdbool.h>
#include "base/mem.h"

static inline uint64_t sonde_hash_u64(uint64_t x)
{
	/* The finalizer of splitmix64: every input bit reaches every output bit. */
	x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
	x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
	return x ^ (x >> 31);
}

#define SONDE_DEFINE_MAP(name, type)                                                                     \
	struct name {                                                                                    \
		uint64_t *keys;                                                                          \
		type *values;                                                                            \
		uint8_t *used;                                                                           \
		size_t n, cap; /* cap is 0 or a power of two */                                          \
	};                                                                                               \
	static inline void name##_deinit(struct name *m)                                                 \
	{                                                                                                \
		free(m->keys);                                                                           \
		free(m->values);                                                                         \
		free(m->used);                                                                           \
		*m = (struct name){0};                                                                   \
	}                                                                                                \
	static inline void sonde_cleanup_##name(struct name *m)                                          \
	{                                                                                                \
		name##_deinit(m);                                                                        \
	}                                                                                                \
	static inline size_t name##_slot_(const struct name *m, uint64_t key)                            \
	{                                                                                                \
		size_t i = sonde_hash_u64(key) & (m->cap - 1);                                           \
		while (m->used[i] && m->keys[i] != key)                                                  \
			i = (i + 1) & (m->cap - 1);                                                      \
		return i;                                                                                \
	}                                                                                                \
	/* The value at key, or NULL. */                                                                 \
	static inline type *name##_find(const struct name *m, uint64_t key)                              \
	{                                                                                                \
		if (!m->cap)                                                                             \
			return NULL;                                                                     \
		size_t i = name##_slot_(m, key);                                                         \
		return m->used[i] ? &m->values[i] : NULL;                                                \
	}                                                                                                \
	static inline bool name##_grow_(struct name *m)                                                  \
	{                                                                                                \
		struct name bigger = {.n = m->n, .cap = m->cap ? m->cap * 2 : 16};                       \
		bigger.keys = sonde_new_array(uint64_t, bigger.cap);                                     \
		bigger.values = sonde_new_array(type, bigger.cap);                                       \
		bigger.used = sonde_new_array(uint8_t, bigger.cap);                                      \
		if (!bigger.keys || !bigger.values || !bigger.used) {                                    \
			name##_deinit(&bigger);                                                          \
			return false;                                                                    \
		}                                                                                        \
		for (size_t i = 0; i < m->cap; i++) {                                                    \
			if (!m->used[i])                                                                 \
				continue;                                                                \
			size_t to = name##_slot_(&bigger, m->keys[i]);                                   \
			bigger.used[to] = 1;                                                             \
			bigger.keys[to] = m->keys[i];                                                    \
			bigger.values[to] = m->values[i];                                                \
		}                                                                                        \
		name##_deinit(m);                                                                        \
		*m = bigger;                                                                             \
		return true;                                                                             \
	}                                                                                                \
	/* The value at key, made zeroed where absent (*was_new tells; may be NULL). NULL: no memory. */ \
	static inline type *name##_put(struct name *m, uint64_t key, bool *was_new)                      \
	{                                                                                                \
		if (m->n + 1 > m->cap / 4 * 3 && !name##_grow_(m))                                       \
			return NULL;                                                                     \
		size_t i = name##_slot_(m, key);                                                         \
		if (was_new)                                                                             \
			*was_new = !m->used[i];                                                          \
		if (!m->used[i]) {                                                                       \
			m->used[i] = 1;                                                                  \
			m->keys[i] = key;                                                                \
			m->n++;                                                                          \
		}                                                                                        \
		return &m->values[i];                                                                    \
	}

#define sonde_map_foreach(i, m)               \
	for (size_t i = 0; i < (m)->cap; i++) \
		if ((m)->used[i])

SONDE_DEFINE_MAP(sonde_u64_map, uint64_t)
SONDE_DEFINE_MAP(sonde_u32_map, uint32_t)
