#include "core/histogram.h"

#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "base/strtab.h"

struct tally {
	uint64_t count, bytes;
};

size_t sonde_core_package_of(const char *name, const char **start)
{
	/* Past "[]", "[4]", "*", "map[K]", "chan ": the element is what tells whose it is. */
	for (;;) {
		if (*name == '*') {
			name++;
		} else if (*name == '[') {
			name += strcspn(name, "]");
			name += *name == ']';
		} else if (!strncmp(name, "map[", 4)) {
			int depth = 0;
			for (name += 3; *name; name++) {
				depth += (*name == '[') - (*name == ']');
				if (!depth)
					break;
			}
			name += *name == ']';
		} else if (!strncmp(name, "chan ", 5)) {
			name += 5;
		} else if (!strncmp(name, "closure ", 8)) {
			name += 8;
		} else {
			break;
		}
	}
	*start = name;
	size_t end = strcspn(name, "[{( "), dot = 0;
	/* The first dot behind the last slash ends the path. */
	size_t slash = 0;
	for (size_t i = 0; i < end; i++) {
		if (name[i] == '/')
			slash = i + 1;
	}
	for (dot = slash; dot < end && name[dot] != '.'; dot++)
		;
	return dot < end ? dot : 0;
}

static int by_bytes(const void *a, const void *b)
{
	const struct sonde_core_histogram_row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* One tally a (type, many): index id * 2 + many. */
static void tally_objects(const struct sonde_core_session *s, struct tally *tallies)
{
	for (uint32_t i = 0; i < s->heap->n_spans; i++) {
		const struct sonde_go_span *span = &s->heap->spans[i];
		for (uint32_t slot = 0; slot < span->n_slots; slot++) {
			uint32_t object = span->first + slot;
			if (!sonde_core_marks_has(s->marks, object))
				continue;
			uint32_t typing = s->typing->of[object];
			size_t at = (size_t)(typing & ~SONDE_CORE_TYPE_MANY) * 2 + (typing >> 31);
			tallies[at].count++;
			tallies[at].bytes += span->slot_bytes;
		}
	}
}

static struct sonde_error *make_rows(struct sonde_core_session *s,
	enum sonde_core_histogram_key key, const struct tally *tallies, size_t n,
	struct sonde_core_histogram *h, struct sonde_strtab *names, struct sonde_u32_map *row_of)
{
	for (size_t i = 0; i < n; i++) {
		const struct tally *t = &tallies[i];
		if (!t->count)
			continue;
		const struct sonde_go_type *type = sonde_go_type_of(s->types, (uint32_t)(i / 2));
		bool unknown = i / 2 == SONDE_GO_TYPE_UNKNOWN;
		h->n_live += t->count;
		h->live_bytes += t->bytes;
		if (unknown) {
			h->n_unknown += t->count;
			h->unknown_bytes += t->bytes;
		}
		const char *name = type->name;
		size_t len = strlen(name);
		char *made = NULL;
		if (i / 2 == s->types->string_id) {
			name = "string";
			len = 6;
		} else if (i & 1) {
			made = sonde_arena_printf(&h->arena, "[]%s", name);
			if (!made)
				return &sonde_enomem;
			name = made;
			len += 2;
		}
		if (key == SONDE_CORE_BY_PACKAGE && !unknown) {
			len = sonde_core_package_of(name, &name);
			if (!len) {
				name = "(no package)";
				len = strlen(name);
			}
		}
		/* Two types may have one name (a type inside a function, DWARF without a descriptor): one row. */
		uint32_t id = sonde_strtab_add(names, name, len);
		bool was_new;
		uint32_t *row = id == SONDE_STRTAB_NONE
			? NULL
			: sonde_u32_map_put(row_of, (uint64_t)id << 1 | unknown, &was_new);
		if (!row)
			return &sonde_enomem;
		if (was_new) {
			*row = (uint32_t)h->rows.n;
			struct sonde_core_histogram_row fresh = {
				.name = sonde_arena_strndup(&h->arena, name, len),
				.unknown = unknown};
			if (!fresh.name || !sonde_core_histogram_rows_push(&h->rows, fresh))
				return &sonde_enomem;
		}
		h->rows.items[*row].count += t->count;
		h->rows.items[*row].bytes += t->bytes;
	}
	sonde_vec_sort(&h->rows, by_bytes);
	return NULL;
}

struct sonde_error *sonde_core_histogram_make(struct sonde_core_session *s,
	enum sonde_core_histogram_key key, struct sonde_core_histogram *ret)
{
	SONDE_TRY(sonde_core_session_need_typing(s));
	size_t n = s->types->by_id.n * 2;
	sonde_cleanup(free) struct tally *tallies = sonde_new_array(struct tally, n);
	if (!tallies)
		return &sonde_enomem;
	tally_objects(s, tallies);
	struct sonde_strtab names;
	if (!sonde_strtab_init(&names))
		return &sonde_enomem;
	sonde_cleanup(sonde_u32_map) struct sonde_u32_map row_of = {0};
	struct sonde_core_histogram h = {0};
	struct sonde_error *err = make_rows(s, key, tallies, n, &h, &names, &row_of);
	sonde_strtab_deinit(&names);
	if (err) {
		sonde_core_histogram_deinit(&h);
		return err;
	}
	*ret = h;
	return NULL;
}

void sonde_core_histogram_deinit(struct sonde_core_histogram *h)
{
	sonde_arena_deinit(&h->arena);
	sonde_core_histogram_rows_deinit(&h->rows);
}
