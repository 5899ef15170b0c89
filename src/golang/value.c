#include "golang/value.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "base/cycle.h"

enum {
	MAX_GROUPS = 1 << 20, /* of maps, that one tree looks through */
	MAX_WAITERS = 1 << 16,
	SLOTS_OF_GROUP = 8, /* internal/abi.MapGroupSlots and MapBucketCount */
	MIN_TOP_HASH =
		5, /* runtime/map.go (<= 1.23): below stand marks for empty and moved slots */
	EMPTY_ONE = 1,
	SAME_SIZE_GROW = 8, /* hmap.flags */
	MAX_B = 48,
};

static const char absent[] = "not in the core", deeper[] = "deeper than shown",
		  many_nodes[] = "more than shown";

/* Where a value stands: in memory at addr, or in the caller's bytes. */
struct place {
	const uint8_t *bytes; /* NULL: in memory */
	const uint8_t *known;
	uint64_t addr, len;
	const char *why;
};

struct walker {
	struct sonde_go_types *t;
	struct sonde_go *go;
	struct sonde_arena *arena;
	struct sonde_go_value_limits limits;
	unsigned n_nodes, n_groups, depth /* pointers */, nesting;
	struct {
		uint64_t addr;
		uint32_t type;
	} path[SONDE_GO_VALUE_MAX_NESTING + 1]; /* pointers on the way: cycles */
	unsigned n_path;
	bool no_memory;
};

static void fill(struct walker *w, struct sonde_go_value *v, const struct place *p);

static struct sonde_go_value *new_value(struct walker *w, const char *name, uint32_t id)
{
	struct sonde_go_value *v = sonde_arena_alloc(w->arena, sizeof(*v));
	if (!v) {
		w->no_memory = true;
		return NULL;
	}
	w->n_nodes++;
	v->name = name;
	v->type = id;
	v->kind = sonde_go_type_of(w->t, id)->kind;
	return v;
}

/* A child with its value; false where the tree is full (the parent says so). */
static bool add_child(struct walker *w, struct sonde_go_value *parent, const char *name,
	uint32_t id, const struct place *p)
{
	if (w->n_nodes >= w->limits.max_nodes) {
		parent->note = parent->note ? parent->note : many_nodes;
		return false;
	}
	struct sonde_go_value *v = new_value(w, name, id);
	if (!v)
		return false;
	*(parent->last ? &parent->last->next : &parent->first) = v;
	parent->last = v;
	fill(w, v, p);
	return true;
}

static struct place memory_at(uint64_t addr)
{
	return (struct place){.addr = addr};
}

static struct place part_of(const struct place *p, uint64_t offset)
{
	struct place q = *p;
	if (!p->bytes) {
		q.addr += offset;
		return q;
	}
	offset = sonde_min(offset, p->len);
	q.bytes += offset;
	q.known = p->known ? p->known + offset : NULL;
	q.len -= offset;
	return q;
}

/* len bytes of the value to `to`; false, and the node's note, where one of them is not known. */
static bool take(
	struct walker *w, struct sonde_go_value *v, const struct place *p, void *to, uint64_t len)
{
	if (!p->bytes) {
		if (sonde_target_read(w->go->target, p->addr, to, len))
			return true;
		v->note = absent;
		return false;
	}
	bool known = len <= p->len;
	for (uint64_t i = 0; known && p->known && i < len; i++)
		known = p->known[i];
	if (!known) {
		v->note = p->why ? p->why : "unknown";
		return false;
	}
	memcpy(to, p->bytes, len);
	return true;
}

/* n words of the value. */
static bool take_words(struct walker *w, struct sonde_go_value *v, const struct place *p,
	uint64_t *words, unsigned n)
{
	uint8_t bytes[4 * 8];
	unsigned word = w->go->word_bytes;
	memset(words, 0, n * sizeof(*words));
	if (!take(w, v, p, bytes, (uint64_t)n * word))
		return false;
	for (unsigned i = 0; i < n; i++)
		memcpy(&words[i], bytes + (size_t)i * word, word);
	return true;
}

static void set_text(struct walker *w, struct sonde_go_value *v, const char *text)
{
	v->text = sonde_arena_strdup(w->arena, text);
	v->text_len = v->text ? strlen(v->text) : 0;
	w->no_memory = w->no_memory || !v->text;
}

/* --- scalars --- */

/* The shortest decimal that reads back as the same number. */
static void float_text(double value, int bits, char to[40])
{
	if (isnan(value) || isinf(value)) {
		snprintf(to, 40, "%s", isnan(value) ? "NaN" : value < 0 ? "-Inf" : "+Inf");
		return;
	}
	for (int digits = 1; digits <= 17; digits++) {
		snprintf(to, 40, "%.*g", digits, value);
		double back = strtod(to, NULL);
		if (bits == 32 ? (float)back == (float)value : back == value)
			return;
	}
}

static double float_at(const uint8_t *p, int bits)
{
	float f;
	double d;
	if (bits == 32) {
		memcpy(&f, p, sizeof(f));
		return (double)f;
	}
	memcpy(&d, p, sizeof(d));
	return d;
}

static bool is_signed(uint8_t kind)
{
	return kind >= SONDE_GO_KIND_INT && kind <= SONDE_GO_KIND_INT64;
}

/* time.Duration.String(): 1h2m3.5s, 1.5ms, 0s. */
static void duration_text(int64_t ns, char to[40])
{
	uint64_t u = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char fraction[16] = "", *end;
	const char *sign = ns < 0 ? "-" : "";
	uint64_t unit = u < 1000 ? 1 : u < 1000000 ? 1000 : u < 1000000000 ? 1000000 : 1000000000;
	int width = unit == 1 ? 0 : unit == 1000 ? 3 : unit == 1000000 ? 6 : 9;
	if (u % unit) {
		snprintf(fraction, sizeof(fraction), ".%0*" PRIu64, width, u % unit);
		for (end = fraction + strlen(fraction) - 1; *end == '0'; end--)
			*end = 0;
	}
	uint64_t s = u / unit;
	if (unit != 1000000000)
		snprintf(to, 40, "%s%" PRIu64 "%s%s", sign, s, fraction,
			!u                     ? "s"
				: unit == 1    ? "ns"
				: unit == 1000 ? "\xc2\xb5s"
					       : "ms");
	else if (s >= 3600)
		snprintf(to, 40, "%s%" PRIu64 "h%" PRIu64 "m%" PRIu64 "%ss", sign, s / 3600,
			s / 60 % 60, s % 60, fraction);
	else if (s >= 60)
		snprintf(to, 40, "%s%" PRIu64 "m%" PRIu64 "%ss", sign, s / 60, s % 60, fraction);
	else
		snprintf(to, 40, "%s%" PRIu64 "%ss", sign, s, fraction);
}

static void fill_scalar(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	const struct sonde_go_type *type = sonde_go_type_of(w->t, v->type);
	uint8_t bytes[16] = {0};
	char text[100], imaginary[40];
	uint64_t u = 0;
	uint64_t size = type->size_bytes;
	if (size > sizeof(bytes) || !size) {
		v->note = "of unknown form";
		return;
	}
	if (!take(w, v, p, bytes, size))
		return;
	memcpy(&u, bytes, sizeof(u));
	int64_t i = size < 8 ? (int64_t)(u << (64 - 8 * size)) >> (64 - 8 * size) : (int64_t)u;
	switch (v->kind) {
	case SONDE_GO_KIND_BOOL:
		snprintf(text, sizeof(text), "%s", u == 0 ? "false" : u == 1 ? "true" : "");
		if (u > 1)
			snprintf(text, sizeof(text), "bool(%" PRIu64 ")", u);
		break;
	case SONDE_GO_KIND_FLOAT32:
	case SONDE_GO_KIND_FLOAT64:
		float_text(float_at(bytes, (int)size * 8), (int)size * 8, text);
		break;
	case SONDE_GO_KIND_COMPLEX64:
	case SONDE_GO_KIND_COMPLEX128: {
		int bits = (int)size * 4;
		char real[40];
		float_text(float_at(bytes, bits), bits, real);
		float_text(float_at(bytes + bits / 8, bits), bits, imaginary);
		snprintf(text, sizeof(text), "(%s%s%si)", real,
			*imaginary == '-' || *imaginary == '+' ? "" : "+", imaginary);
		break;
	}
	case SONDE_GO_KIND_UINTPTR:
		snprintf(text, sizeof(text), "0x%" PRIx64, u);
		break;
	default:
		if (!strcmp(type->name, "time.Duration"))
			duration_text(i, text);
		else if (is_signed(v->kind))
			snprintf(text, sizeof(text), "%" PRId64, i);
		else
			snprintf(text, sizeof(text), "%" PRIu64, u);
	}
	set_text(w, v, text);
}

/* len bytes at addr become the node's text, as many as are shown. */
static void fill_text(struct walker *w, struct sonde_go_value *v, uint64_t addr, uint64_t len)
{
	uint64_t want = sonde_min(len, (uint64_t)w->limits.max_string_bytes);
	char *text = sonde_arena_alloc(w->arena, want + 1);
	if (!text) {
		w->no_memory = true;
		return;
	}
	uint64_t got = want ? sonde_target_read_some(w->go->target, addr, text, want) : 0;
	if (got < want)
		v->note = absent;
	if (got || !want) {
		v->text = text;
		v->text_len = got;
	}
	v->n_more = len - got;
}

static void fill_string(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	uint64_t words[2];
	if (!take_words(w, v, p, words, 2))
		return;
	v->has_addr = v->has_len = true;
	v->addr = words[0];
	v->len = words[1];
	if (v->len >> (w->go->word_bytes * 8 - 1))
		v->note = "length makes no sense";
	else
		fill_text(w, v, v->addr, v->len);
}

/* --- what is put together --- */

/* n elements at p, as many as are shown. */
static void add_elements(struct walker *w, struct sonde_go_value *v, uint32_t elem,
	const struct place *p, uint64_t n)
{
	uint64_t size = sonde_go_type_of(w->t, elem)->size_bytes, i = 0;
	if (!elem && n) {
		v->note = v->note ? v->note : "elements of unknown type";
		v->n_more = n;
		return;
	}
	for (; i < n && i < w->limits.max_elements; i++) {
		struct place q = part_of(p, i * size);
		if (!add_child(w, v, NULL, elem, &q))
			break;
		if (v->last->note == absent) { /* a page is missing: so is what follows on it */
			i++;
			break;
		}
	}
	v->n_more = n - i;
}

static void fill_array(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	const struct sonde_go_type *type = sonde_go_type_of(w->t, v->type);
	v->len = type->count;
	v->has_len = true;
	if (!p->bytes && sonde_go_type_of(w->t, type->elem)->kind == SONDE_GO_KIND_UINT8)
		fill_text(w, v, p->addr, v->len);
	else
		add_elements(w, v, type->elem, p, v->len);
}

static void fill_slice(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	const struct sonde_go_type *type = sonde_go_type_of(w->t, v->type);
	const struct sonde_go_type *elem = sonde_go_type_of(w->t, type->elem);
	uint64_t words[3];
	if (!take_words(w, v, p, words, 3))
		return;
	v->has_addr = v->has_len = v->has_cap = true;
	v->addr = words[0];
	v->len = words[1];
	v->cap = words[2];
	v->is_nil = !v->addr && !v->len && !v->cap;
	if (v->len > v->cap || v->cap >> (w->go->word_bytes * 8 - 1)) {
		v->note = "length makes no sense";
		return;
	}
	char text[INET6_ADDRSTRLEN];
	uint8_t ip[16];
	if (!strcmp(type->name, "net.IP") && (v->len == 4 || v->len == 16) &&
		sonde_target_read(w->go->target, v->addr, ip, v->len)) {
		static const uint8_t v4[12] = {[10] = 0xff, [11] = 0xff};
		bool is4 = v->len == 4 || !memcmp(ip, v4, sizeof(v4));
		inet_ntop(is4 ? AF_INET : AF_INET6, ip + (is4 && v->len == 16 ? 12 : 0), text,
			sizeof(text));
		set_text(w, v, text);
	} else if (elem->kind == SONDE_GO_KIND_UINT8 && elem->size_bytes == 1) {
		fill_text(w, v, v->addr, v->len);
	} else {
		struct place q = memory_at(v->addr);
		add_elements(w, v, type->elem, &q, v->len);
	}
}

static bool member_named(struct walker *w, uint32_t id, const char *name, struct sonde_go_member *m)
{
	struct sonde_go_members it = sonde_go_members_of(w->t, id);
	while (sonde_go_members_next(&it, m))
		if (!strcmp(sonde_go_member_name(w->t, m), name))
			return true;
	return false;
}

/* time.Time (time/time.go): wall holds seconds since 1885 and ns where it has a monotonic reading, else ext those since year 1. */
static bool fill_time(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	enum { NS_BITS = 30, SECONDS_BITS = 33 };
	static const int64_t from_1885 = INT64_C(-2682288000), from_year_1 = INT64_C(-62135596800);
	struct sonde_go_member wall_field, ext_field;
	uint64_t wall;
	int64_t ext;
	if (!member_named(w, v->type, "wall", &wall_field) ||
		!member_named(w, v->type, "ext", &ext_field))
		return false;
	struct place a = part_of(p, wall_field.offset_bytes),
		     b = part_of(p, ext_field.offset_bytes);
	if (!take(w, v, &a, &wall, sizeof(wall)) || !take(w, v, &b, &ext, sizeof(ext)))
		return true;
	int64_t seconds = wall >> 63 ? from_1885 + (int64_t)(wall << 1 >> (NS_BITS + 1))
				     : (int64_t)((uint64_t)ext + (uint64_t)from_year_1);
	uint64_t ns = wall & ((UINT64_C(1) << NS_BITS) - 1);
	time_t when = (time_t)seconds;
	struct tm tm;
	char text[100], day[64];
	if (!gmtime_r(&when, &tm) || ns >= 1000000000)
		return false;
	if (tm.tm_year < -1900 || !strftime(day, sizeof(day), "-%m-%d %H:%M:%S", &tm))
		return false;
	snprintf(text, sizeof(text), "%04d%s.%09" PRIu64 " UTC", tm.tm_year + 1900, day, ns);
	set_text(w, v, text);
	return true;
}

/* sync.Mutex (internal/sync/mutex.go since 1.24): locked, woken, starving, then the number that wait. */
static bool fill_mutex(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	enum { LOCKED = 1, STARVING = 4, SHIFT = 3 };
	struct sonde_go_member m;
	uint32_t id = v->type, state;
	uint64_t offset = 0;
	if (member_named(w, id, "mu", &m)) {
		offset = m.offset_bytes;
		id = m.type;
	}
	if (!member_named(w, id, "state", &m))
		return false;
	struct place q = part_of(p, offset + m.offset_bytes);
	if (!take(w, v, &q, &state, sizeof(state)))
		return true;
	char text[80];
	int n = snprintf(text, sizeof(text), "%s", state & LOCKED ? "locked" : "unlocked");
	if (state >> SHIFT)
		n += snprintf(text + n, sizeof(text) - (size_t)n, ", %" PRIu32 " waiting",
			state >> SHIFT);
	if (state & STARVING)
		snprintf(text + n, sizeof(text) - (size_t)n, ", starving");
	set_text(w, v, text);
	return true;
}

/* A value of type id behind a pointer to addr, as the only child. */
static void follow(struct walker *w, struct sonde_go_value *v, uint32_t id, uint64_t addr)
{
	if (!addr || w->depth >= w->limits.max_depth || w->nesting >= SONDE_GO_VALUE_MAX_NESTING)
		return;
	for (unsigned i = 0; i < w->n_path; i++) {
		if (w->path[i].addr == addr && w->path[i].type == id) {
			v->note = "shown above";
			return;
		}
	}
	struct place q = memory_at(addr);
	w->depth++;
	w->path[w->n_path].addr = addr;
	w->path[w->n_path++].type = id;
	add_child(w, v, NULL, id, &q);
	w->n_path--;
	w->depth--;
}

/* sync/atomic's types are what they hold; Pointer[T] says what it points to by a field of no size, [0]*T. */
static bool fill_atomic(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	struct sonde_go_member m;
	uint32_t id = v->type;
	if (!member_named(w, id, "v", &m))
		return false;
	struct place q = part_of(p, m.offset_bytes);
	if (strncmp(sonde_go_type_of(w->t, id)->name, "sync/atomic.Pointer[", 20)) {
		v->type = m.type;
		v->kind = sonde_go_type_of(w->t, m.type)->kind;
		fill(w, v, &q);
		v->type = id; /* what it is called */
		if (!strcmp(sonde_go_type_of(w->t, id)->name, "sync/atomic.Bool") && v->text)
			set_text(w, v, strcmp(v->text, "0") ? "true" : "false");
		return true;
	}
	struct sonde_go_members it = sonde_go_members_of(w->t, id);
	uint32_t elem = 0;
	struct sonde_go_member f;
	while (!elem && sonde_go_members_next(&it, &f)) {
		const struct sonde_go_type *array = sonde_go_type_of(w->t, f.type);
		if (array->kind == SONDE_GO_KIND_ARRAY && !array->count)
			elem = sonde_go_type_of(w->t, array->elem)->elem;
	}
	uint64_t word;
	if (!take_words(w, v, &q, &word, 1))
		return true;
	v->kind = SONDE_GO_KIND_POINTER;
	v->has_addr = true;
	v->addr = word;
	v->is_nil = !word;
	if (elem)
		follow(w, v, elem, word);
	return true;
}

static void fill_struct(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	const char *name = sonde_go_type_of(w->t, v->type)->name;
	if ((!strcmp(name, "time.Time") && fill_time(w, v, p)) ||
		(!strcmp(name, "sync.Mutex") && fill_mutex(w, v, p)) ||
		(!strncmp(name, "sync/atomic.", 12) && fill_atomic(w, v, p)))
		return;
	v->parts = true;
	struct sonde_go_members it = sonde_go_members_of(w->t, v->type);
	struct sonde_go_member m;
	while (sonde_go_members_next(&it, &m)) {
		const char *field = sonde_go_member_name(w->t, &m);
		if (!strcmp(field, "_"))
			continue;
		struct place q = part_of(p, m.offset_bytes);
		if (!add_child(w, v, field, m.type, &q))
			break;
	}
}

/* --- maps --- */

/* Where keys and values lie in a group (1.24+) or bucket, read from that type itself: "slots" of {key, elem}, or "keys" and "elems". */
struct map_shape {
	uint64_t group_bytes, overflow;
	uint64_t key_offset, key_stride, elem_offset, elem_stride;
	uint32_t key, elem; /* types as stored */
	bool key_indirect, elem_indirect; /* a pointer to it is stored */
};

static bool array_of(struct walker *w, uint32_t id, uint64_t *stride, uint32_t *elem)
{
	const struct sonde_go_type *array = sonde_go_type_of(w->t, id);
	if (array->kind != SONDE_GO_KIND_ARRAY || array->count != SLOTS_OF_GROUP)
		return false;
	*elem = array->elem;
	*stride = sonde_go_type_of(w->t, array->elem)->size_bytes;
	return true;
}

/* Keys and values over 128 bytes are stored behind pointers (internal/abi.MapMaxKeyBytes). */
static bool stored_indirect(struct walker *w, uint32_t stored, uint32_t type)
{
	const struct sonde_go_type *t = sonde_go_type_of(w->t, stored);
	return stored != type && t->kind == SONDE_GO_KIND_POINTER &&
		(t->elem == type || sonde_go_type_of(w->t, type)->size_bytes > t->size_bytes);
}

static bool shape_of(struct walker *w, const struct sonde_go_type *map, struct map_shape *s)
{
	struct sonde_go_member m;
	uint32_t slot;
	*s = (struct map_shape){0};
	const struct sonde_go_type *group = sonde_go_type_of(w->t, map->group);
	s->group_bytes = group->size_bytes;
	s->overflow = s->group_bytes - w->go->word_bytes;
	if (!map->group || !map->key || s->group_bytes < SLOTS_OF_GROUP + w->go->word_bytes)
		return false;
	if (member_named(w, map->group, "slots", &m)) {
		uint64_t start = m.offset_bytes;
		if (!array_of(w, m.type, &s->key_stride, &slot))
			return false;
		s->elem_stride = s->key_stride;
		struct sonde_go_member key, elem;
		if (!member_named(w, slot, "key", &key) || !member_named(w, slot, "elem", &elem))
			return false;
		s->key = key.type;
		s->elem = elem.type;
		s->key_offset = start + key.offset_bytes;
		s->elem_offset = start + elem.offset_bytes;
	} else {
		if (!member_named(w, map->group, "keys", &m) ||
			!array_of(w, m.type, &s->key_stride, &s->key))
			return false;
		s->key_offset = m.offset_bytes;
		if (!member_named(w, map->group, "elems", &m) ||
			!array_of(w, m.type, &s->elem_stride, &s->elem))
			return false;
		s->elem_offset = m.offset_bytes;
	}
	s->key_indirect = stored_indirect(w, s->key, map->key);
	s->elem_indirect = stored_indirect(w, s->elem, map->elem);
	return true;
}

struct map_walk {
	struct walker *w;
	struct sonde_go_value *v;
	const struct sonde_go_type *type;
	struct map_shape shape;
	uint64_t n_found;
	bool full; /* enough is shown, or the tree or the budget is used up */
};

static void add_stored(struct map_walk *m, uint32_t id, bool indirect, uint64_t addr)
{
	struct place p = memory_at(addr);
	if (indirect && !sonde_go_read_word(m->w->go, addr, &p.addr))
		p.addr = 0; /* not readable, which the node says */
	if (!add_child(m->w, m->v, NULL, id, &p))
		m->full = true;
}

static void add_entry(struct map_walk *m, uint64_t group, unsigned slot)
{
	const struct map_shape *s = &m->shape;
	/* Both or none. */
	if (m->v->note == many_nodes || m->n_found >= m->w->limits.max_elements ||
		m->w->n_nodes + 2 > m->w->limits.max_nodes) {
		m->full = true;
		return;
	}
	m->n_found++;
	add_stored(m, m->type->key, s->key_indirect, group + s->key_offset + slot * s->key_stride);
	struct sonde_go_value *key = m->v->last;
	add_stored(
		m, m->type->elem, s->elem_indirect, group + s->elem_offset + slot * s->elem_stride);
	if (m->v->last == key) { /* no room any more: the value at least says so */
		struct sonde_go_value *value = new_value(m->w, NULL, m->type->elem);
		if (!value)
			return;
		value->note = many_nodes;
		key->next = m->v->last = value;
	}
}

/* The control or hash bytes of a group; false ends the walk of the map. */
static bool enter_group(struct map_walk *m, uint64_t group, uint8_t control[SLOTS_OF_GROUP])
{
	if (m->full || ++m->w->n_groups > MAX_GROUPS)
		return false;
	if (sonde_target_read(m->w->go->target, group, control, SLOTS_OF_GROUP))
		return true;
	m->v->note = absent;
	return false;
}

static bool walk_swiss_groups(struct map_walk *m, uint64_t groups, uint64_t n)
{
	uint8_t control[SLOTS_OF_GROUP];
	for (uint64_t i = 0; i < n; i++) {
		uint64_t group = groups + i * m->shape.group_bytes;
		if (!enter_group(m, group, control))
			return false;
		for (unsigned slot = 0; slot < SLOTS_OF_GROUP && !m->full; slot++)
			if (!(control[slot] & 0x80)) /* neither empty nor deleted */
				add_entry(m, group, slot);
	}
	return true;
}

static void walk_swiss(struct map_walk *m, uint64_t addr)
{
	const struct sonde_go *go = m->w->go;
	const struct sonde_go_layout *l = &go->layout;
	uint64_t directory, n_tables, table, last = 0, groups, mask;
	if (!sonde_go_read(go, addr, l->swiss_used, &m->v->len) ||
		!sonde_go_read(go, addr, l->swiss_dir_ptr, &directory) ||
		!sonde_go_read(go, addr, l->swiss_dir_len, &n_tables)) {
		m->v->note = absent;
		return;
	}
	m->v->has_len = true;
	if (!m->v->len)
		return;
	if (!n_tables) { /* one group and no table */
		walk_swiss_groups(m, directory, 1);
		return;
	}
	for (uint64_t i = 0; i < n_tables && i < MAX_GROUPS && !m->full; i++, last = table) {
		if (!sonde_go_read_word(go, directory + i * go->word_bytes, &table) ||
			(table != last &&
				(!sonde_go_read(go, table, l->swiss_table_groups, &groups) ||
					!sonde_go_read(go, table, l->swiss_table_mask, &mask)))) {
			m->v->note = absent;
			return;
		}
		/* Tables of smaller depth stand in the directory several times. */
		if (table != last && !walk_swiss_groups(m, groups, mask + 1))
			return;
	}
}

/* A bucket and those that overflow from it. */
static bool walk_bucket(struct map_walk *m, uint64_t bucket, bool old)
{
	uint8_t top[SLOTS_OF_GROUP];
	struct sonde_cycle cycle = sonde_cycle_from(bucket);
	for (bool first = true; bucket; first = false) {
		if (!first && sonde_cycle_closed(&cycle, bucket))
			return true;
		if (!enter_group(m, bucket, top))
			return false;
		/* Moved to the new array already. */
		if (first && old && top[0] > EMPTY_ONE && top[0] < MIN_TOP_HASH)
			return true;
		for (unsigned slot = 0; slot < SLOTS_OF_GROUP && !m->full; slot++)
			if (top[slot] >= MIN_TOP_HASH)
				add_entry(m, bucket, slot);
		if (!sonde_go_read_word(m->w->go, bucket + m->shape.overflow, &bucket))
			return false;
	}
	return true;
}

static bool walk_buckets(struct map_walk *m, uint64_t buckets, uint64_t n, bool old)
{
	for (uint64_t i = 0; buckets && i < n && !m->full; i++)
		if (!walk_bucket(m, buckets + i * m->shape.group_bytes, old))
			return false;
	return true;
}

static void walk_hmap(struct map_walk *m, uint64_t addr)
{
	const struct sonde_go *go = m->w->go;
	const struct sonde_go_layout *l = &go->layout;
	uint64_t b, flags, buckets, old;
	if (!sonde_go_read(go, addr, l->hmap_count, &m->v->len) ||
		!sonde_go_read(go, addr, l->hmap_b, &b) ||
		!sonde_go_read(go, addr, l->hmap_flags, &flags) ||
		!sonde_go_read(go, addr, l->hmap_buckets, &buckets) ||
		!sonde_go_read(go, addr, l->hmap_oldbuckets, &old)) {
		m->v->note = absent;
		return;
	}
	m->v->has_len = true;
	if (b > MAX_B) {
		m->v->note = "damaged";
		return;
	}
	/* While it grows, buckets that were not moved yet have their entries in the old array only. */
	uint64_t n = UINT64_C(1) << b, n_old = flags & SAME_SIZE_GROW || !b ? n : n / 2;
	if (m->v->len && walk_buckets(m, buckets, n, false))
		walk_buckets(m, old, n_old, true);
}

static void fill_map_at(struct walker *w, struct sonde_go_value *v, uint32_t id, uint64_t addr)
{
	v->has_addr = v->is_map = true;
	v->addr = addr;
	v->is_nil = !addr;
	if (!addr)
		return;
	struct map_walk m = {.w = w, .v = v, .type = sonde_go_type_of(w->t, id)};
	bool shaped = shape_of(w, m.type, &m.shape);
	m.full = !shaped;
	if (w->go->layout.swiss_dir_ptr.size)
		walk_swiss(&m, addr);
	else
		walk_hmap(&m, addr);
	if (v->note == many_nodes)
		v->note = NULL; /* n_more says it */
	if (!shaped && v->len)
		v->note = "entries of unknown layout";
	v->n_more = v->len > m.n_found ? v->len - m.n_found : 0;
	/* A count that the groups do not bear out is damage, or a write that the dump caught half-way. */
	if (!m.full && !v->note && v->len != m.n_found)
		v->note = "its count differs from what it holds";
}

/* --- channels --- */

static uint64_t count_waiters(struct walker *w, uint64_t chan, struct sonde_go_field queue)
{
	uint64_t sudog, n = 0;
	if (!sonde_go_read(w->go, chan, queue, &sudog))
		return 0;
	struct sonde_cycle cycle = sonde_cycle_from(sudog);
	while (sudog && n < MAX_WAITERS && !(n && sonde_cycle_closed(&cycle, sudog))) {
		n++;
		if (!sonde_go_read(w->go, sudog, w->go->layout.sudog_next, &sudog))
			break;
	}
	return n;
}

static void fill_chan_at(struct walker *w, struct sonde_go_value *v, uint32_t elem, uint64_t addr)
{
	const struct sonde_go_layout *l = &w->go->layout;
	uint64_t buffer, n, first, closed;
	v->has_addr = true;
	v->addr = addr;
	v->is_nil = !addr;
	if (!addr)
		return;
	if (!sonde_go_read(w->go, addr, l->hchan_qcount, &v->len) ||
		!sonde_go_read(w->go, addr, l->hchan_dataqsiz, &v->cap) ||
		!sonde_go_read(w->go, addr, l->hchan_buf, &buffer) ||
		!sonde_go_read(w->go, addr, l->hchan_recvx, &first) ||
		!sonde_go_read(w->go, addr, l->hchan_closed, &closed)) {
		v->note = absent;
		return;
	}
	v->has_len = v->has_cap = true;
	uint64_t size = sonde_go_type_of(w->t, elem)->size_bytes;
	if (v->len > v->cap || (v->cap && first >= v->cap)) {
		v->note = "damaged";
		return;
	}
	n = sonde_min(v->len, (uint64_t)w->limits.max_elements);
	uint64_t i = 0;
	for (; elem && i < n; i++) { /* in the order in which they will be received */
		struct place q = memory_at(buffer + (first + i) % v->cap * size);
		if (!add_child(w, v, NULL, elem, &q))
			break;
	}
	v->n_more = v->len - i;
	uint64_t receivers = count_waiters(w, addr, l->hchan_recvq),
		 senders = count_waiters(w, addr, l->hchan_sendq);
	char text[100] = "";
	int at = closed ? snprintf(text, sizeof(text), "closed") : 0;
	if (receivers)
		at += snprintf(text + at, sizeof(text) - (size_t)at, "%s%" PRIu64 " receiving",
			at ? ", " : "", receivers);
	if (senders)
		snprintf(text + at, sizeof(text) - (size_t)at, "%s%" PRIu64 " sending",
			at ? ", " : "", senders);
	if (*text && !v->note)
		v->note = sonde_arena_strdup(w->arena, text);
}

/* --- functions, interfaces --- */

static void fill_func_at(struct walker *w, struct sonde_go_value *v, uint64_t addr)
{
	uint64_t pc;
	struct sonde_pcfunc f;
	v->has_addr = true;
	v->addr = addr;
	v->is_nil = !addr;
	v->kind = SONDE_GO_KIND_FUNC;
	if (!addr)
		return;
	if (!sonde_go_read_word(w->go, addr, &pc)) {
		v->note = absent;
		return;
	}
	if (!sonde_go_function_at(w->go, pc, &f, NULL) || f.entry != pc) {
		v->note = "leads to no function";
		return;
	}
	set_text(w, v, f.name);
	sonde_cleanup(sonde_dwarf_captured_vec) struct sonde_dwarf_captured_vec captured = {0};
	struct sonde_error *err =
		sonde_dwarf_captured_at(w->go->dwarf, pc - w->go->bias, &captured);
	w->no_memory = w->no_memory || err;
	sonde_error_free(err);
	if (w->nesting >= SONDE_GO_VALUE_MAX_NESTING || w->depth > w->limits.max_depth)
		return;
	v->parts = captured.n != 0;
	for (size_t i = 0; i < captured.n; i++) {
		struct place q = memory_at(addr + captured.items[i].offset_bytes);
		if (!add_child(w, v, captured.items[i].name,
			    sonde_go_types_dwarf(w->t, captured.items[i].type), &q))
			break;
	}
}

static void fill_interface(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	uint64_t words[2], type = 0;
	if (!take_words(w, v, p, words, 2))
		return;
	if (!words[0]) {
		v->is_nil = true;
		return;
	}
	type = words[0];
	if (!sonde_go_type_of(w->t, v->type)->eface &&
		!sonde_go_read(w->go, words[0], w->go->layout.itab_type, &type)) {
		v->note = absent;
		return;
	}
	uint32_t id = sonde_go_types_runtime(w->t, type);
	if (!id) {
		v->note = "holds a value of unknown type";
		v->has_addr = true;
		v->addr = words[1];
		return;
	}
	struct place q = sonde_go_type_of(w->t, id)->is_direct ? part_of(p, w->go->word_bytes)
							       : memory_at(words[1]);
	add_child(w, v, NULL, id, &q);
}

static void fill_pointer(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	const struct sonde_go_type *type = sonde_go_type_of(w->t, v->type);
	uint64_t word;
	if (!take_words(w, v, p, &word, 1))
		return;
	switch (v->kind) {
	case SONDE_GO_KIND_MAP:
		fill_map_at(w, v, v->type, word);
		return;
	case SONDE_GO_KIND_CHAN:
		fill_chan_at(w, v, type->elem, word);
		return;
	case SONDE_GO_KIND_FUNC:
		fill_func_at(w, v, word);
		return;
	}
	v->has_addr = true;
	v->addr = word;
	v->is_nil = !word;
	if (type->elem)
		follow(w, v, type->elem, word);
}

static void fill(struct walker *w, struct sonde_go_value *v, const struct place *p)
{
	if (w->nesting >= SONDE_GO_VALUE_MAX_NESTING) {
		v->note = deeper;
		return;
	}
	w->nesting++;
	switch (v->kind) {
	case SONDE_GO_KIND_INVALID:
		v->note = "of unknown type";
		break;
	case SONDE_GO_KIND_STRING:
		fill_string(w, v, p);
		break;
	case SONDE_GO_KIND_SLICE:
		fill_slice(w, v, p);
		break;
	case SONDE_GO_KIND_ARRAY:
		fill_array(w, v, p);
		break;
	case SONDE_GO_KIND_STRUCT:
		fill_struct(w, v, p);
		break;
	case SONDE_GO_KIND_INTERFACE:
		fill_interface(w, v, p);
		break;
	case SONDE_GO_KIND_POINTER:
	case SONDE_GO_KIND_UNSAFE_POINTER:
	case SONDE_GO_KIND_MAP:
	case SONDE_GO_KIND_CHAN:
	case SONDE_GO_KIND_FUNC:
		fill_pointer(w, v, p);
		break;
	default:
		fill_scalar(w, v, p);
	}
	w->nesting--;
}

struct sonde_go_value_limits sonde_go_value_limits_default(void)
{
	return (struct sonde_go_value_limits){
		.max_depth = 2, .max_elements = 64, .max_string_bytes = 200, .max_nodes = 1000};
}

static struct walker walker_of(struct sonde_go_types *types,
	const struct sonde_go_value_limits *limits, struct sonde_arena *arena)
{
	return (struct walker){
		.t = types,
		.go = types->go,
		.arena = arena,
		.limits = limits ? *limits : sonde_go_value_limits_default(),
	};
}

static struct sonde_go_value *whole(struct walker *w, uint32_t id, const struct place *p)
{
	struct sonde_go_value *v = new_value(w, NULL, id);
	if (v)
		fill(w, v, p);
	return w->no_memory ? NULL : v;
}

struct sonde_go_value *sonde_go_value_at(struct sonde_go_types *types, uint32_t id, uint64_t addr,
	const struct sonde_go_value_limits *limits, struct sonde_arena *arena)
{
	struct walker w = walker_of(types, limits, arena);
	struct place p = memory_at(addr);
	/* A pointer back to the value itself is a cycle as well. */
	w.path[w.n_path].addr = addr;
	w.path[w.n_path++].type = id;
	return whole(&w, id, &p);
}

struct sonde_go_value *sonde_go_value_row(struct sonde_go_types *types, uint32_t id, uint64_t addr,
	uint64_t n, const struct sonde_go_value_limits *limits, struct sonde_arena *arena)
{
	struct walker w = walker_of(types, limits, arena);
	struct sonde_go_value *v = new_value(&w, NULL, 0);
	if (!v)
		return NULL;
	v->kind = SONDE_GO_KIND_ARRAY;
	v->len = n;
	v->has_len = true;
	struct place p = memory_at(addr);
	w.nesting++;
	if (sonde_go_type_of(types, id)->kind == SONDE_GO_KIND_UINT8)
		fill_text(&w, v, addr, n);
	else
		add_elements(&w, v, id, &p, n);
	return w.no_memory ? NULL : v;
}

struct sonde_go_value *sonde_go_value_of_bytes(struct sonde_go_types *types, uint32_t id,
	const struct sonde_go_value_bytes *bytes, const struct sonde_go_value_limits *limits,
	struct sonde_arena *arena)
{
	struct walker w = walker_of(types, limits, arena);
	struct place p = {
		.bytes = bytes->bytes, .known = bytes->known, .len = bytes->len, .why = bytes->why};
	return whole(&w, id, &p);
}

struct sonde_go_value *sonde_go_value_func(struct sonde_go_types *types, uint64_t addr,
	const struct sonde_go_value_limits *limits, struct sonde_arena *arena)
{
	struct walker w = walker_of(types, limits, arena);
	struct sonde_go_value *v = new_value(&w, NULL, 0);
	if (v)
		fill_func_at(&w, v, addr);
	return w.no_memory ? NULL : v;
}

/* --- text --- */

/* Go's own quoting, as far as a byte needs it: what is no UTF-8 or no text becomes \x... . */
static void add_quoted(struct sonde_buf *to, const char *s, size_t len)
{
	sonde_buf_char(to, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];
		size_t n = c < 0x80             ? 1
			: c >= 0xc2 && c < 0xe0 ? 2
			: c >= 0xe0 && c < 0xf0 ? 3
			: c >= 0xf0 && c < 0xf5 ? 4
						: 0;
		bool good = n > 1 && len - i >= n && !(c == 0xc2 && (unsigned char)s[i + 1] < 0xa0);
		for (size_t k = 1; good && k < n; k++)
			good = ((unsigned char)s[i + k] & 0xc0) == 0x80;
		if (good) {
			sonde_buf_add(to, s + i, n);
			i += n - 1;
		} else if (c == '"' || c == '\\') {
			sonde_buf_printf(to, "\\%c", c);
		} else if (c == '\n' || c == '\t' || c == '\r') {
			sonde_buf_printf(to, "\\%c", c == '\n' ? 'n' : c == '\t' ? 't' : 'r');
		} else if (c < 0x20 || c >= 0x7f) {
			sonde_buf_printf(to, "\\x%02x", c);
		} else {
			sonde_buf_char(to, (char)c);
		}
	}
	sonde_buf_char(to, '"');
}

static bool is_quoted(const struct sonde_go_types *types, const struct sonde_go_value *v)
{
	if (v->kind == SONDE_GO_KIND_SLICE)
		return strcmp(sonde_go_type_of(types, v->type)->name, "net.IP") != 0;
	return v->kind == SONDE_GO_KIND_STRING || v->kind == SONDE_GO_KIND_ARRAY;
}

static void add_children(
	const struct sonde_go_types *types, const struct sonde_go_value *v, struct sonde_buf *to)
{
	bool braces = v->parts || v->is_map;
	bool second = false; /* of a pair */
	sonde_buf_char(to, braces ? '{' : '[');
	for (const struct sonde_go_value *c = v->first; c; c = c->next) {
		if (c != v->first)
			sonde_buf_str(to, second ? ": " : ", ");
		if (v->parts && c->name)
			sonde_buf_printf(to, "%s: ", c->name);
		sonde_go_value_text(types, c, to);
		second = v->is_map && !second;
	}
	if (v->n_more)
		sonde_buf_printf(to, "%s... %" PRIu64 " more", v->first ? ", " : "", v->n_more);
	sonde_buf_char(to, braces ? '}' : ']');
}

static void add_text(
	const struct sonde_go_types *types, const struct sonde_go_value *v, struct sonde_buf *to)
{
	if (!is_quoted(types, v)) {
		sonde_buf_add(to, v->text, v->text_len);
		return;
	}
	add_quoted(to, v->text, v->text_len);
	if (v->n_more)
		sonde_buf_printf(to, "... %" PRIu64 " more bytes", v->n_more);
}

/* nil, or in front of the rest: the address of what is elsewhere, and how much there is. */
static void add_head(const struct sonde_go_value *v, struct sonde_buf *to)
{
	bool sized =
		v->has_len && (v->kind == SONDE_GO_KIND_SLICE || v->kind == SONDE_GO_KIND_CHAN);
	if (v->has_addr && v->kind != SONDE_GO_KIND_STRING && v->kind != SONDE_GO_KIND_SLICE &&
		v->kind != SONDE_GO_KIND_MAP && !(v->kind == SONDE_GO_KIND_FUNC && v->text))
		sonde_buf_printf(to, "0x%" PRIx64 "%s", v->addr, v->has_len || v->first ? " " : "");
	if (sized)
		sonde_buf_printf(to, "len %" PRIu64 " cap %" PRIu64 " ", v->len, v->cap);
	else if (v->is_map && v->has_len)
		sonde_buf_printf(to, "len %" PRIu64 " ", v->len);
}

void sonde_go_value_text(
	const struct sonde_go_types *types, const struct sonde_go_value *v, struct sonde_buf *to)
{
	bool rows = v->kind == SONDE_GO_KIND_SLICE || v->kind == SONDE_GO_KIND_ARRAY ||
		v->kind == SONDE_GO_KIND_CHAN || v->is_map || v->parts;
	if (v->is_nil) {
		sonde_buf_str(to, "nil");
		return;
	}
	add_head(v, to);
	if (v->kind == SONDE_GO_KIND_INTERFACE && v->first) {
		sonde_buf_printf(to, "%s ", sonde_go_type_of(types, v->first->type)->name);
		sonde_go_value_text(types, v->first, to);
	} else if (v->text) {
		add_text(types, v, to);
		if (v->parts) {
			sonde_buf_char(to, ' ');
			add_children(types, v, to);
		}
	} else if (rows && (v->first || v->has_len || !v->note)) {
		add_children(types, v, to);
	} else if (v->first) {
		sonde_buf_str(to, "-> ");
		sonde_go_value_text(types, v->first, to);
	}
	if (v->note)
		sonde_buf_printf(
			to, "%s<%s>", v->text || v->first || v->has_addr ? " " : "", v->note);
}
