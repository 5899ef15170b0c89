#include "base/strtab.h"

#include <string.h>

static uint32_t hash_bytes(const char *s, size_t len)
{
	/* FNV-1a in 64 bits, folded: names are short, and the table compares hashes before bytes. */
	uint64_t h = 0xcbf29ce484222325u;
	for (size_t i = 0; i < len; i++)
		h = (h ^ (uint8_t)s[i]) * 0x100000001b3u;
	return (uint32_t)(h ^ (h >> 32));
}

/* The slot that holds the string, or the free one where it belongs. */
static size_t slot_of(const struct sonde_strtab *t, const char *s, size_t len, uint32_t hash)
{
	size_t i = hash & (t->cap - 1);
	for (; t->slots[i]; i = (i + 1) & (t->cap - 1)) {
		const struct sonde_strtab_entry *e = &t->entries.items[t->slots[i] - 1];
		if (e->hash == hash && e->len == len && !memcmp(e->s, s, len))
			break;
	}
	return i;
}

static bool grow(struct sonde_strtab *t)
{
	size_t cap = t->cap ? t->cap * 2 : 64;
	uint32_t *slots = sonde_new_array(uint32_t, cap);
	if (!slots)
		return false;
	for (size_t id = 0; id < t->entries.n; id++) {
		size_t i = t->entries.items[id].hash & (cap - 1);
		while (slots[i])
			i = (i + 1) & (cap - 1);
		slots[i] = (uint32_t)id + 1;
	}
	free(t->slots);
	t->slots = slots;
	t->cap = cap;
	return true;
}

bool sonde_strtab_init(struct sonde_strtab *t)
{
	*t = (struct sonde_strtab){0};
	if (sonde_strtab_add(t, "", 0) == 0)
		return true;
	sonde_strtab_deinit(t);
	return false;
}

void sonde_strtab_deinit(struct sonde_strtab *t)
{
	sonde_arena_deinit(&t->arena);
	sonde_strtab_entries_deinit(&t->entries);
	free(t->slots);
	*t = (struct sonde_strtab){0};
}

uint32_t sonde_strtab_add(struct sonde_strtab *t, const char *s, size_t len)
{
	if (len > UINT32_MAX || t->entries.n >= UINT32_MAX - 1)
		return SONDE_STRTAB_NONE;
	if (t->entries.n + 1 > t->cap / 4 * 3 && !grow(t))
		return SONDE_STRTAB_NONE;
	uint32_t hash = hash_bytes(s, len);
	size_t i = slot_of(t, s, len, hash);
	if (t->slots[i])
		return t->slots[i] - 1;
	const char *copy = sonde_arena_strndup(&t->arena, s, len);
	if (!copy ||
		!sonde_strtab_entries_push(
			&t->entries, (struct sonde_strtab_entry){copy, (uint32_t)len, hash}))
		return SONDE_STRTAB_NONE;
	t->slots[i] = (uint32_t)t->entries.n;
	return (uint32_t)t->entries.n - 1;
}

uint32_t sonde_strtab_find(const struct sonde_strtab *t, const char *s, size_t len)
{
	if (!t->cap || len > UINT32_MAX)
		return SONDE_STRTAB_NONE;
	size_t i = slot_of(t, s, len, hash_bytes(s, len));
	return t->slots[i] ? t->slots[i] - 1 : SONDE_STRTAB_NONE;
}
