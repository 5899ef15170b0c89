#include "golang/layout.h"

#include <string.h>

enum need { OPTIONAL, REQUIRED };
enum { NAME_MAX_BYTES = 128 };

/* The next of the names separated by |, copied to `to`; false at the end. */
static bool next_name(const char **names, char to[NAME_MAX_BYTES])
{
	const char *start = *names;
	if (!*start)
		return false;
	size_t len = strcspn(start, "|");
	*names = start + len + (start[len] == '|');
	if (len >= NAME_MAX_BYTES)
		len = NAME_MAX_BYTES - 1;
	memcpy(to, start, len);
	to[len] = 0;
	return true;
}

static const struct sonde_dwarf_member *member_of(
	const struct sonde_dwarf_type *t, const char *name, size_t len)
{
	for (size_t i = 0; i < t->n_members; i++) {
		const struct sonde_dwarf_member *m = &t->members[i];
		if (m->name && strlen(m->name) == len && !memcmp(m->name, name, len))
			return m;
	}
	return NULL;
}

/* "a.b.c" below t. */
static bool walk_path(struct sonde_dwarf *dwarf, const struct sonde_dwarf_type *t, const char *path,
	struct sonde_go_field *ret)
{
	uint64_t offset = 0;
	for (;;) {
		t = sonde_dwarf_type_bare(dwarf, t->id);
		size_t len = strcspn(path, ".");
		const struct sonde_dwarf_member *m = t ? member_of(t, path, len) : NULL;
		if (!m)
			return false;
		offset += m->offset_bytes;
		t = sonde_dwarf_type_bare(dwarf, m->type);
		if (!t)
			return false;
		if (!path[len])
			break;
		path += len + 1;
	}
	if (offset > UINT32_MAX || t->size_bytes > UINT32_MAX || t->size_bytes == 0)
		return false;
	*ret = (struct sonde_go_field){(uint32_t)offset, (uint32_t)t->size_bytes};
	return true;
}

static bool resolve_field(
	struct sonde_dwarf *dwarf, const char *types, const char *paths, struct sonde_go_field *ret)
{
	char type_name[NAME_MAX_BYTES], path[NAME_MAX_BYTES];
	while (next_name(&types, type_name)) {
		const struct sonde_dwarf_type *t = sonde_dwarf_type_find(dwarf, type_name);
		for (const char *rest = paths; t && next_name(&rest, path);) {
			if (walk_path(dwarf, t, path, ret))
				return true;
		}
	}
	return false;
}

static bool resolve_size(struct sonde_dwarf *dwarf, const char *types, uint32_t *ret)
{
	char name[NAME_MAX_BYTES];
	while (next_name(&types, name)) {
		const struct sonde_dwarf_type *t = sonde_dwarf_type_find(dwarf, name);
		t = t ? sonde_dwarf_type_bare(dwarf, t->id) : NULL;
		if (t && t->size_bytes && t->size_bytes <= UINT32_MAX) {
			*ret = (uint32_t)t->size_bytes;
			return true;
		}
	}
	return false;
}

static int64_t resolve_constant(struct sonde_dwarf *dwarf, const char *names, int64_t fallback)
{
	char name[NAME_MAX_BYTES];
	int64_t value;
	while (next_name(&names, name)) {
		if (sonde_dwarf_constant(dwarf, name, &value))
			return value;
	}
	return fallback;
}

static struct sonde_error *missing(const char *what, const char *path)
{
	return sonde_error_new(SONDE_UNSUPPORTED,
		"runtime layout: the executable's DWARF has no %s%s%s (a Go version this build "
		"does not know)",
		what, *path ? "." : "", path);
}

struct sonde_error *sonde_go_layout_resolve(struct sonde_dwarf *dwarf, struct sonde_go_layout *ret)
{
	struct sonde_go_layout l = {0};
#define F(member, types, paths, need)                                             \
	if (!resolve_field(dwarf, types, paths, &l.member) && (need) == REQUIRED) \
		return missing(types, paths);
#define T(member, types, need)                                            \
	if (!resolve_size(dwarf, types, &l.member) && (need) == REQUIRED) \
		return missing(types, "");
#define C(member, names, fallback) l.member = resolve_constant(dwarf, names, fallback);
	SONDE_GO_FIELDS(F)
	SONDE_GO_SIZES(T)
	SONDE_GO_CONSTANTS(C)
#undef F
#undef T
#undef C
	if (l.page_bytes <= 0 || (l.page_bytes & (l.page_bytes - 1)) ||
		l.heap_arena_bytes < l.page_bytes || l.header_min_bytes <= 0)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"runtime layout: page size %lld, arena size %lld", (long long)l.page_bytes,
			(long long)l.heap_arena_bytes);
	*ret = l;
	return NULL;
}
