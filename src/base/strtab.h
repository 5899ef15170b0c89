/* src/base/strtab.h: interned strings -> dense uint32_t ids, 0 = "". Strings live as long as the table. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/vec.h"

struct sonde_strtab_entry {
	const char *s; /* NUL behind len bytes */
	uint32_t len, hash;
};
SONDE_DEFINE_VEC(sonde_strtab_entries, struct sonde_strtab_entry)

struct sonde_strtab {
	struct sonde_arena arena;
	struct sonde_strtab_entries entries;
	uint32_t *slots; /* id + 1, 0 = free */
	size_t cap;
};

enum { SONDE_STRTAB_NONE = UINT32_MAX };

/* false when out of memory. */
bool sonde_strtab_init(struct sonde_strtab *t);
void sonde_strtab_deinit(struct sonde_strtab *t);

/* The id of these len bytes, or SONDE_STRTAB_NONE when out of memory (or at 2^32 - 1 strings). */
uint32_t sonde_strtab_add(struct sonde_strtab *t, const char *s, size_t len);

/* The id, or SONDE_STRTAB_NONE where it was never added. */
uint32_t sonde_strtab_find(const struct sonde_strtab *t, const char *s, size_t len);

static inline const char *sonde_strtab_text(const struct sonde_strtab *t, uint32_t id)
{
	return id < t->entries.n ? t->entries.items[id].s : "";
}
