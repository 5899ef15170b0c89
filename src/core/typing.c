#include "core/typing.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/cycle.h"
#include "golang/framevars.h"
#include "golang/ptrmask.h"

enum {
	MAX_VARIABLE_BYTES = 4096,
	MAX_DEPTH = 64,
	MAX_CHECK_WORDS = 512,
	MAX_CAPTURED = 256,
	FOLLOW_MIN_BYTES = 64 << 20,
	FOLLOW_FACTOR = 16,
};

SONDE_DEFINE_MAP(pc_map, struct sonde_dwarf_variables)

/* n values of type id at addr, in a module's data. */
struct static_value {
	uint64_t addr, n;
	uint32_t id;
};
SONDE_DEFINE_VEC(static_vec, struct static_value)

struct typer {
	const struct sonde_go_heap *heap;
	struct sonde_go *go;
	const struct sonde_core_marks *marks;
	struct sonde_go_types *types;
	uint32_t *of;
	struct sonde_go_masks masks;
	struct sonde_u32_vec work; /* objects whose pointers are to be followed */
	struct sonde_u32_map closures; /* code address -> type id */
	struct sonde_u32_map map_parts, hchans; /* (map or channel type << 2 | part) -> type id */
	uint32_t hchan_id; /* runtime.hchan */
	struct pc_map variables; /* by look-up pc */
	struct static_vec
		statics; /* values outside the heap that typed pointers led to, to be followed */
	struct sonde_u64_map static_seen; /* address -> bytes followed from it */
	uint64_t
		follow_left; /* bytes outside typed objects that may still be followed: damage could name them all, often */
	bool no_memory;
};

static uint64_t word_at(const struct typer *t, const uint8_t *p)
{
	uint64_t v = 0;
	memcpy(&v, p, t->go->word_bytes);
	return v;
}

static void walk_value(struct typer *t, const uint8_t *bytes, uint64_t len, uint32_t id, int depth);
static void walk_memory(struct typer *t, uint64_t addr, uint32_t id);

/* --- does a type fit a slot? --- */

/* Its pointer words must be those of the slot, as far as both are known: a stale or wrong pointer fails here. */
static bool fits_bits(struct typer *t, const struct sonde_go_span *s, uint32_t slot,
	const struct sonde_go_type *type, bool many)
{
	const uint8_t *bitmap = sonde_go_span_heap_bits(t->heap, s);
	const struct sonde_go_mask *mask = type->runtime_addr
		? sonde_go_masks_find(&t->masks, type->runtime_addr, s->slot_bytes)
		: NULL;
	if (!bitmap || !mask || !type->size_bytes)
		return true;
	unsigned word = t->go->word_bytes;
	uint64_t first = slot * (s->slot_bytes / word);
	uint64_t n = sonde_min(many ? s->slot_bytes : type->size_bytes, s->slot_bytes) / word;
	uint64_t elem_words = type->size_bytes / word;
	if (!elem_words || type->size_bytes % word)
		return !mask->ptr_bytes; /* no pointers: but the slot may have some behind it */
	for (uint64_t i = 0; i < n && i < MAX_CHECK_WORDS; i++) {
		uint64_t in_elem = i % elem_words;
		bool want = in_elem < mask->ptr_bytes / word &&
			(mask->bits[in_elem >> 6] >> (in_elem & 63) & 1);
		bool have = bitmap[(first + i) >> 3] >> ((first + i) & 7) & 1;
		/* The tail of a slot whose elements do not fill it has no pointers. */
		if (want != have && !(many && want && !have && i - in_elem + elem_words > n))
			return many && want && !have &&
				i >= elem_words; /* fewer elements than the slot holds */
	}
	return true;
}

static bool has_pointers(const struct sonde_go_type *type)
{
	return type->runtime_addr ? type->ptr_bytes != 0 : type->n_slots != 0;
}

/* The bytes of a slot that a typing explains. */
static uint64_t cover_of(const struct typer *t, const struct sonde_go_span *s, uint32_t typing)
{
	const struct sonde_go_type *type =
		sonde_go_type_of(t->types, typing & ~SONDE_CORE_TYPE_MANY);
	if (!typing)
		return 0;
	return typing & SONDE_CORE_TYPE_MANY ? s->slot_bytes
					     : sonde_min(type->size_bytes, s->slot_bytes);
}

/* --- one pointer --- */

/*
 * Follow n (0: one) values of a type at addr that make no object of their own; end bounds them. Again at the same address
 * only where that explains more: so this ends.
 */
static void follow_memory(struct typer *t, uint64_t addr, uint64_t end,
	const struct sonde_go_type *type, uint32_t id, uint64_t n)
{
	uint64_t room = (end - addr) / type->size_bytes, extent;
	n = sonde_min(n ? n : 1, room);
	extent = n * type->size_bytes;
	uint64_t *seen = sonde_u64_map_put(&t->static_seen, addr, NULL);
	if (!seen || extent <= *seen)
		return;
	if (extent > t->follow_left) {
		sonde_notes_add(t->go->notes, "values outside objects not followed: bytes", extent,
			"0x%" PRIx64, addr);
		return;
	}
	t->follow_left -= extent;
	*seen = extent;
	if (!static_vec_push(&t->statics, (struct static_value){addr, n, id}))
		t->no_memory = true;
}

/*
 * Composite literals and the like: variables without a name that only pointers lead to. They are roots already; here
 * they are followed by type; again only where a type explains more.
 */
static void assign_static(struct typer *t, uint64_t addr, uint32_t id, uint64_t n)
{
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	uint64_t end = 0;
	for (size_t i = 0; i < t->go->n_modules && !end; i++) {
		const struct sonde_go_module *m = &t->go->modules[i];
		if (addr >= m->noptrdata && addr < m->enoptrbss)
			end = m->enoptrbss;
	}
	if (!end || !type->n_slots || !type->size_bytes)
		return;
	follow_memory(t, addr, end, type, id, n);
}

/* addr points to n (0: at least one, unknown) values of type id. */
static void assign(struct typer *t, uint64_t addr, uint32_t id, uint64_t n)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!id)
		return;
	if (!sonde_go_heap_find(t->heap, addr, &s, &slot)) {
		assign_static(t, addr, id, n);
		return;
	}
	uint32_t object = s->first + slot;
	if (!sonde_core_marks_has(t->marks, object))
		return;
	if (s->pointers == SONDE_GO_HEADER || s->pointers == SONDE_GO_LARGE)
		if (t->of[object])
			return; /* its header has the last word */
	uint64_t offset = addr - sonde_go_span_addr(s, slot);
	if (s->pointers == SONDE_GO_HEADER)
		offset -= (uint64_t)t->go->layout.header_bytes;
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes)
		return;
	/* A slice may begin inside its array; what comes before is of the same type. */
	if (offset && (n == 0 || offset % type->size_bytes)) {
		/* Into the middle of something unknown: it stays so, but what is there leads on. */
		if (!t->of[object] && type->n_slots && s->pointers != SONDE_GO_NOSCAN)
			follow_memory(
				t, addr, sonde_go_span_addr(s, slot) + s->slot_bytes, type, id, n);
		return;
	}
	if ((s->pointers == SONDE_GO_NOSCAN) == has_pointers(type))
		return;
	uint64_t end;
	if (__builtin_mul_overflow(n ? n : 1, type->size_bytes, &end) ||
		end > s->slot_bytes - offset)
		end = s->slot_bytes - offset;
	bool many = n != 0 && (offset || n > 1 || s->slot_bytes / type->size_bytes >= 2);
	uint32_t typing = id | (many ? SONDE_CORE_TYPE_MANY : 0);
	uint64_t cover = sonde_min(
		many ? sonde_max(offset + end, type->size_bytes) : type->size_bytes, s->slot_bytes);
	if (cover <= cover_of(t, s, t->of[object]))
		return;
	if (s->pointers == SONDE_GO_BITS && !fits_bits(t, s, slot, type, many))
		return;
	t->of[object] = typing;
	if (s->pointers != SONDE_GO_NOSCAN && !sonde_u32_vec_push(&t->work, object))
		t->no_memory = true;
}

/* A name for what has no type of its own: a part of a map, a channel, a closure. Made once a key. */
static uint32_t part_id(
	struct typer *t, struct sonde_u32_map *map, uint64_t key, const char *fmt, const char *name)
{
	bool was_new;
	uint32_t *id = sonde_u32_map_put(map, key, &was_new);
	if (!id) {
		t->no_memory = true;
		return 0;
	}
	if (was_new) {
		char text[1024];
		snprintf(text, sizeof(text), fmt, name);
		*id = sonde_go_types_named(t->types, text, t->go->word_bytes);
	}
	return *id;
}

/* addr points to the start of a part that nothing else types: call it so. Its pointers are the caller's to follow. */
static void assign_part(struct typer *t, uint64_t addr, uint32_t id)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!id || !sonde_go_heap_find(t->heap, addr, &s, &slot))
		return;
	uint64_t start = s->pointers == SONDE_GO_HEADER ? (uint64_t)t->go->layout.header_bytes : 0;
	uint32_t object = s->first + slot;
	if (addr != sonde_go_span_addr(s, slot) + start || t->of[object] ||
		!sonde_core_marks_has(t->marks, object))
		return;
	t->of[object] = id;
	if (sonde_go_type_of(t->types, id)->n_slots && !sonde_u32_vec_push(&t->work, object))
		t->no_memory = true;
}

/* How many elements of that size the object at addr has room for; 0 where addr is not on the heap. */
static uint64_t room_at(const struct typer *t, uint64_t addr, uint64_t elem_bytes)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!elem_bytes || !sonde_go_heap_find(t->heap, addr, &s, &slot))
		return 0;
	return s->slot_bytes / elem_bytes;
}

static void walk_swiss_map(
	struct typer *t, uint64_t addr, uint32_t id, const struct sonde_go_type *type)
{
	const struct sonde_go_layout *l = &t->go->layout;
	uint64_t directory, len, table, groups, mask;
	assign_part(t, addr, part_id(t, &t->map_parts, (uint64_t)id << 2, "%s header", type->name));
	if (!sonde_go_read(t->go, addr, l->swiss_dir_ptr, &directory) ||
		!sonde_go_read(t->go, addr, l->swiss_dir_len, &len) || !directory)
		return;
	if (len == 0) { /* one group and no table */
		assign(t, directory, type->group, 1);
		return;
	}
	assign_part(t, directory,
		part_id(t, &t->map_parts, (uint64_t)id << 2 | 1, "%s directory", type->name));
	uint64_t last = 0;
	len = sonde_min(len, room_at(t, directory, t->go->word_bytes));
	for (uint64_t i = 0; i < len; i++, last = table) {
		if (!sonde_go_read_word(t->go, directory + i * t->go->word_bytes, &table))
			return;
		if (table ==
			last) /* tables of smaller depth stand in the directory several times */
			continue;
		assign_part(t, table,
			part_id(t, &t->map_parts, (uint64_t)id << 2 | 2, "%s table", type->name));
		if (sonde_go_read(t->go, table, l->swiss_table_groups, &groups) &&
			sonde_go_read(t->go, table, l->swiss_table_mask, &mask) &&
			mask < UINT64_MAX)
			assign(t, groups, type->group, mask + 1);
	}
}

/* Go <= 1.23. */
static void walk_old_map(
	struct typer *t, uint64_t addr, uint32_t id, const struct sonde_go_type *type)
{
	const struct sonde_go_layout *l = &t->go->layout;
	uint64_t b, buckets, old;
	assign_part(t, addr, part_id(t, &t->map_parts, (uint64_t)id << 2, "%s header", type->name));
	if (!sonde_go_read(t->go, addr, l->hmap_b, &b) ||
		!sonde_go_read(t->go, addr, l->hmap_buckets, &buckets) ||
		!sonde_go_read(t->go, addr, l->hmap_oldbuckets, &old) || b > 60)
		return;
	assign(t, buckets, type->group, UINT64_C(1) << b);
	assign(t, old, type->group, UINT64_C(1) << (b ? b - 1 : 0));
	/* Overflow buckets: the last word of each bucket. Buckets are full to 6.5 of 8: there are few of them. */
	uint64_t budget = (UINT64_C(2) << b) + 1024;
	const struct sonde_go_type *bucket = sonde_go_type_of(t->types, type->group);
	struct sonde_target_run cache = {0};
	/* Not on the heap: the one bucket of a small map on a stack. */
	uint64_t room = room_at(t, buckets, bucket->size_bytes);
	uint64_t n_buckets = sonde_min(UINT64_C(1) << b, room ? room : 1);
	for (uint64_t i = 0; bucket->size_bytes > t->go->word_bytes && i < n_buckets && budget;
		i++) {
		uint64_t next = buckets + (i + 1) * bucket->size_bytes - t->go->word_bytes;
		for (; budget; budget--) {
			const uint8_t *p = sonde_target_bytes_cached(
				t->go->target, &cache, next, t->go->word_bytes);
			uint64_t overflow = p ? word_at(t, p) : 0;
			if (!p)
				return;
			if (!overflow)
				break;
			assign(t, overflow, type->group, 1);
			next = overflow + bucket->size_bytes - t->go->word_bytes;
		}
	}
}

static void walk_map(struct typer *t, uint64_t addr, uint32_t id)
{
	struct sonde_go_span *s;
	uint32_t slot;
	/* Once a map: its header is typed the first time. */
	if (!sonde_go_heap_find(t->heap, addr, &s, &slot) || t->of[s->first + slot])
		return;
	const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
	if (t->go->layout.swiss_dir_ptr.size)
		walk_swiss_map(t, addr, id, type);
	else if (t->go->layout.hmap_b.size)
		walk_old_map(t, addr, id, type);
}

/* Values on their way: each waiting goroutine's sudog points to one, on its stack or on the heap. */
static void walk_waiters(struct typer *t, uint64_t chan, struct sonde_go_field queue, uint32_t elem)
{
	uint64_t sudog, value;
	if (!sonde_go_read(t->go, chan, queue, &sudog))
		return;
	struct sonde_cycle cycle = sonde_cycle_from(sudog);
	for (int i = 0; sudog && !(i && sonde_cycle_closed(&cycle, sudog)); i++) {
		if (sonde_go_read(t->go, sudog, t->go->layout.sudog_elem, &value) && value)
			walk_memory(t, value, elem);
		if (!sonde_go_read(t->go, sudog, t->go->layout.sudog_next, &sudog))
			return;
	}
}

/* A channel at addr of the channel type id; elem is the type of its values. */
static void walk_hchan(struct typer *t, uint64_t addr, uint64_t key, const char *fmt,
	const char *name, uint32_t elem)
{
	const struct sonde_go_layout *l = &t->go->layout;
	const struct sonde_go_type *hchan = sonde_go_types_slots(t->types, t->hchan_id);
	uint64_t buffer, n;
	struct sonde_go_span *s;
	uint32_t slot;
	/* Once a channel: it is typed the first time. */
	if (!sonde_go_heap_find(t->heap, addr, &s, &slot) || t->of[s->first + slot] ||
		!sonde_core_marks_has(t->marks, s->first + slot))
		return;
	uint32_t id = part_id(t, &t->hchans, key, fmt, name);
	struct sonde_go_type *part = sonde_go_type_of(t->types, id);
	if (id && !part->n_slots && hchan->n_slots) {
		part->slots = hchan->slots;
		part->n_slots = hchan->n_slots;
	}
	/* One whose values have no pointers has them behind itself, in a slot that is not scanned. */
	t->of[s->first + slot] = id;
	if (!sonde_u32_vec_push(&t->work, s->first + slot))
		t->no_memory = true;
	if (sonde_go_read(t->go, addr, l->hchan_buf, &buffer) &&
		sonde_go_read(t->go, addr, l->hchan_dataqsiz, &n) && n)
		assign(t, buffer, elem, n);
	walk_waiters(t, addr, l->hchan_recvq, elem);
	walk_waiters(t, addr, l->hchan_sendq, elem);
}

static void walk_chan(struct typer *t, uint64_t addr, uint32_t id)
{
	const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
	walk_hchan(t, addr, (uint64_t)id << 1, "%s", type->name, type->elem);
}

/* A channel that only a blocked goroutine's sudog leads to: it knows the type of its values. */
static void walk_untyped_chan(struct typer *t, uint64_t addr)
{
	uint64_t elem;
	if (!sonde_go_read(t->go, addr, t->go->layout.hchan_elemtype, &elem))
		return;
	uint32_t id = sonde_go_types_runtime(t->types, elem);
	if (id)
		walk_hchan(t, addr, (uint64_t)id << 1 | 1, "chan %s",
			sonde_go_type_of(t->types, id)->name, id);
}

/* The record of the closure whose code begins at f: its name, and what it captured as far as DWARF says. */
static uint32_t closure_id(struct typer *t, const struct sonde_pcfunc *f)
{
	bool was_new;
	uint32_t *known = sonde_u32_map_put(&t->closures, f->entry, &was_new);
	if (!known) {
		t->no_memory = true;
		return 0;
	}
	if (!was_new)
		return *known;
	*known = 0;
	sonde_cleanup(sonde_dwarf_captured_vec) struct sonde_dwarf_captured_vec captured = {0};
	struct sonde_error *err =
		sonde_dwarf_captured_at(t->go->dwarf, f->entry - t->go->bias, &captured);
	if (err)
		t->no_memory = true;
	sonde_error_free(err);
	struct sonde_go_part parts[MAX_CAPTURED];
	size_t n = 0;
	uint64_t size = t->go->word_bytes;
	for (size_t i = 0; i < captured.n && n < MAX_CAPTURED; i++) {
		uint32_t type = sonde_go_types_dwarf(t->types, captured.items[i].type);
		uint64_t end = captured.items[i].offset_bytes +
			sonde_go_type_of(t->types, type)->size_bytes;
		parts[n++] = (struct sonde_go_part){captured.items[i].offset_bytes, type};
		size = sonde_max(size, end);
	}
	char name[1024];
	snprintf(name, sizeof(name), "closure %s", f->name);
	uint32_t id = sonde_go_types_composed(t->types, name, size, parts, n);
	*sonde_u32_map_put(&t->closures, f->entry, NULL) = id;
	return id;
}

static void walk_func(struct typer *t, uint64_t addr)
{
	uint64_t pc;
	struct sonde_pcfunc f;
	struct sonde_go_span *s;
	uint32_t slot;
	if (sonde_go_heap_find(t->heap, addr, &s, &slot) && sonde_go_span_addr(s, slot) == addr &&
		!t->of[s->first + slot] && sonde_go_read_word(t->go, addr, &pc) &&
		sonde_go_function_at(t->go, pc, &f, NULL) && f.entry == pc)
		assign_part(t, addr, closure_id(t, &f));
}

/* The data word of an interface whose dynamic type stands at type_addr. */
static void walk_interface(struct typer *t, uint64_t type_addr, const uint8_t *data, int depth)
{
	uint32_t id = sonde_go_types_runtime(t->types, type_addr);
	const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
	if (!id)
		return;
	if (type->is_direct)
		walk_value(t, data, t->go->word_bytes, id, depth + 1);
	else
		assign(t, word_at(t, data), id, 1);
}

static void walk_slot(
	struct typer *t, const uint8_t *p, const struct sonde_go_slot *slot, int depth)
{
	unsigned word = t->go->word_bytes;
	uint64_t value = word_at(t, p), type;
	if (!value)
		return;
	switch (slot->kind) {
	case SONDE_GO_SLOT_POINTER:
		assign(t, value, slot->elem, 0);
		break;
	case SONDE_GO_SLOT_STRING:
		assign(t, value, t->types->string_id, word_at(t, p + word));
		break;
	case SONDE_GO_SLOT_SLICE:
		assign(t, value, slot->elem, word_at(t, p + 2 * word));
		break;
	case SONDE_GO_SLOT_EFACE:
		walk_interface(t, value, p + word, depth);
		break;
	case SONDE_GO_SLOT_IFACE:
		if (sonde_go_read(t->go, value, t->go->layout.itab_type, &type))
			walk_interface(t, type, p + word, depth);
		break;
	case SONDE_GO_SLOT_MAP:
		walk_map(t, value, slot->elem);
		break;
	case SONDE_GO_SLOT_CHAN:
		walk_chan(t, value, slot->elem);
		break;
	case SONDE_GO_SLOT_FUNC:
		walk_func(t, value);
		break;
	}
}

static unsigned slot_words(uint8_t kind)
{
	switch (kind) {
	case SONDE_GO_SLOT_SLICE:
		return 3;
	case SONDE_GO_SLOT_STRING:
	case SONDE_GO_SLOT_EFACE:
	case SONDE_GO_SLOT_IFACE:
		return 2;
	default:
		return 1;
	}
}

/* The pointers of one value of type id in len bytes at `bytes`. */
static void walk_value(struct typer *t, const uint8_t *bytes, uint64_t len, uint32_t id, int depth)
{
	if (depth > MAX_DEPTH)
		return;
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	for (uint32_t i = 0; i < type->n_slots; i++) {
		const struct sonde_go_slot *slot = &type->slots[i];
		if (slot->kind == SONDE_GO_SLOT_ARRAY) {
			const struct sonde_go_type *array = sonde_go_type_of(t->types, slot->elem);
			const struct sonde_go_type *elem = sonde_go_type_of(t->types, array->elem);
			uint64_t at = slot->offset_bytes;
			for (uint64_t k = 0; elem->size_bytes && k < array->count &&
				at + elem->size_bytes <= len;
				k++, at += elem->size_bytes)
				walk_value(t, bytes + at, elem->size_bytes, array->elem, depth + 1);
			continue;
		}
		uint64_t end = slot->offset_bytes + slot_words(slot->kind) * t->go->word_bytes;
		if (end > len)
			return;
		walk_slot(t, bytes + slot->offset_bytes, slot, depth);
	}
}

/* A value in target memory; values in several mappings are left out. */
static void walk_memory(struct typer *t, uint64_t addr, uint32_t id)
{
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes || !type->n_slots)
		return;
	const uint8_t *bytes = sonde_target_bytes(t->go->target, addr, type->size_bytes);
	if (bytes)
		walk_value(t, bytes, type->size_bytes, id, 0);
}

static void walk_object(
	struct typer *t, const struct sonde_go_span *s, uint32_t slot, uint32_t typing)
{
	uint32_t id = typing & ~SONDE_CORE_TYPE_MANY;
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes || !type->n_slots)
		return;
	uint64_t start = s->pointers == SONDE_GO_HEADER ? (uint64_t)t->go->layout.header_bytes : 0,
		 len = s->slot_bytes - start;
	uint64_t addr = sonde_go_span_addr(s, slot) + start;
	const uint8_t *bytes = s->host ? s->host + slot * s->slot_bytes + start
				       : sonde_target_bytes(t->go->target, addr, len);
	if (!bytes)
		return;
	if (!(typing & SONDE_CORE_TYPE_MANY)) {
		walk_value(t, bytes, len, id, 0);
		return;
	}
	for (uint64_t at = 0; at + type->size_bytes <= len; at += type->size_bytes)
		walk_value(t, bytes + at, type->size_bytes, id, 0);
}

static void drain(struct typer *t)
{
	while (t->work.n || t->statics.n) {
		if (t->statics.n) {
			struct static_value v = t->statics.items[--t->statics.n];
			uint64_t size = sonde_go_type_of(t->types, v.id)->size_bytes;
			for (uint64_t i = 0; i < v.n; i++) {
				const uint8_t *bytes =
					sonde_target_bytes(t->go->target, v.addr + i * size, size);
				if (!bytes)
					break;
				walk_value(t, bytes, size, v.id, 0);
			}
			continue;
		}
		uint32_t object = t->work.items[--t->work.n];
		const struct sonde_go_span *s = sonde_go_heap_span_of(t->heap, object);
		walk_object(t, s, object - s->first, t->of[object]);
	}
}

/* --- where typing begins --- */

/* Objects that carry their type: in a header, or in the span of a large one. */
static void type_headers(struct typer *t)
{
	for (uint32_t i = 0; i < t->heap->n_spans; i++) {
		const struct sonde_go_span *s = &t->heap->spans[i];
		if (s->pointers != SONDE_GO_HEADER && s->pointers != SONDE_GO_LARGE)
			continue;
		uint64_t start =
			s->pointers == SONDE_GO_HEADER ? (uint64_t)t->go->layout.header_bytes : 0;
		for (uint32_t slot = 0; slot < s->n_slots; slot++) {
			uint64_t type_addr = s->large_type;
			if (!sonde_core_marks_has(t->marks, s->first + slot) ||
				(start &&
					!sonde_go_read_word(
						t->go, sonde_go_span_addr(s, slot), &type_addr)))
				continue;
			uint32_t id = sonde_go_types_runtime(t->types, type_addr);
			const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
			if (!id || !type->size_bytes)
				continue;
			bool many = (s->slot_bytes - start) / type->size_bytes >= 2;
			t->of[s->first + slot] = id | (many ? SONDE_CORE_TYPE_MANY : 0);
		}
	}
	for (uint32_t i = 0; i < t->heap->n_spans; i++) {
		const struct sonde_go_span *s = &t->heap->spans[i];
		if (s->pointers != SONDE_GO_HEADER && s->pointers != SONDE_GO_LARGE)
			continue;
		for (uint32_t slot = 0; slot < s->n_slots; slot++) {
			if (t->of[s->first + slot])
				walk_object(t, s, slot, t->of[s->first + slot]);
			drain(t);
		}
	}
}

static void type_globals(struct typer *t)
{
	size_t n;
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(t->go->dwarf, &n);
	for (size_t i = 0; i < n; i++) {
		walk_memory(t, globals[i].addr + t->go->bias,
			sonde_go_types_dwarf(t->types, globals[i].type));
		drain(t);
	}
}

static void type_variable(
	struct typer *t, struct sonde_go_frame_view *view, const struct sonde_dwarf_variable *v)
{
	if (!v->expr)
		return;
	uint32_t id = sonde_go_types_dwarf(t->types, v->type);
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes || !type->n_slots)
		return;
	struct sonde_location_piece pieces[SONDE_GO_MAX_PIECES];
	size_t n;
	const char *wrong = sonde_go_frame_locate(view, v, pieces, &n);
	if (wrong) {
		sonde_notes_add(t->go->notes, "location of a variable not understood", 0, "%s: %s",
			v->name, wrong);
		return;
	}
	if (n == 1 && pieces[0].kind == SONDE_LOCATION_ADDR) {
		walk_memory(t, pieces[0].value, id);
		return;
	}
	/* In pieces: what is not known stays zero. */
	if (type->size_bytes > MAX_VARIABLE_BYTES)
		return;
	uint64_t words[MAX_VARIABLE_BYTES / 8];
	sonde_location_read(pieces, n, &view->context, words, type->size_bytes, &wrong);
	walk_value(t, (const uint8_t *)words, type->size_bytes, id, 0);
}

/* The variables at a frame's pc: decoded once a pc, however many goroutines stand there. */
static const struct sonde_dwarf_variables *variables_at(
	struct typer *t, const struct sonde_go_frame *frame)
{
	bool was_new;
	struct sonde_dwarf_variables *v =
		pc_map_put(&t->variables, sonde_go_frame_lookup_pc(frame), &was_new);
	if (!v) {
		t->no_memory = true;
		return NULL;
	}
	if (was_new) {
		struct sonde_error *err = sonde_go_frame_variables(t->go, frame, v);
		if (err)
			sonde_notes_add(t->go->notes, "variables of a function not readable", 0,
				"%s", err->message);
		sonde_error_free(err);
	}
	return v;
}

static void type_frames(struct typer *t, const struct sonde_goroutines *gs)
{
	for (size_t i = 0; i < gs->all.n; i++) {
		const struct sonde_goroutine *g = &gs->all.items[i];
		for (size_t k = 0; k < g->n_frames; k++) {
			const struct sonde_go_frame *frame = &gs->frames.items[g->first_frame + k];
			if (frame->flags & SONDE_GO_FRAME_SYSTEM_STACK)
				continue;
			const struct sonde_dwarf_variables *v = variables_at(t, frame);
			struct sonde_go_frame_view view;
			sonde_go_frame_view_init(&view, t->go, g, frame);
			for (size_t j = 0; v && j < v->n; j++)
				type_variable(t, &view, &v->items[j]);
			drain(t);
		}
	}
}

/* Records of the runtime that hang on goroutines and are typed by no variable. */
static void type_goroutines(struct typer *t, const struct sonde_goroutines *gs)
{
	const struct sonde_dwarf_type *g = sonde_dwarf_type_find(t->go->dwarf, "runtime.g");
	uint32_t id = g ? sonde_go_types_dwarf(t->types, g->id) : 0;
	for (size_t i = 0; i < gs->all.n; i++) {
		assign(t, gs->all.items[i].addr, id, 0);
		drain(t);
	}
	const struct sonde_go_layout *l = &t->go->layout;
	for (size_t i = 0; i < gs->all.n; i++) {
		uint64_t sudog, chan;
		if (!sonde_go_read(t->go, gs->all.items[i].addr, l->g_waiting_on, &sudog))
			continue;
		struct sonde_cycle cycle = sonde_cycle_from(sudog);
		for (int k = 0; sudog && !(k && sonde_cycle_closed(&cycle, sudog)); k++) {
			if (sonde_go_read(t->go, sudog, l->sudog_c, &chan))
				walk_untyped_chan(t, chan);
			if (!sonde_go_read(t->go, sudog, l->sudog_waitlink, &sudog))
				break;
		}
		drain(t);
	}
}

/* Finalizers say the type of their object; their functions and those of cleanups are closures. */
static void type_specials(struct typer *t)
{
	for (size_t i = 0; i < t->heap->specials.n; i++) {
		const struct sonde_go_special *s = &t->heap->specials.items[i];
		if (!sonde_core_marks_has(t->marks, s->object))
			continue;
		const struct sonde_go_span *span = sonde_go_heap_span_of(t->heap, s->object);
		uint32_t pointer =
			s->object_type ? sonde_go_types_runtime(t->types, s->object_type) : 0;
		assign(t, sonde_go_span_addr(span, s->object - span->first),
			sonde_go_type_of(t->types, pointer)->elem, 0);
		for (size_t k = 0; k < SONDE_ARRAY_LEN(s->words); k++) {
			if (s->kind == SONDE_GO_WEAK_HANDLE)
				assign_part(t, s->words[k],
					part_id(t, &t->map_parts, 3, "%s", "weak handle"));
			else
				walk_func(t, s->words[k]);
		}
		drain(t);
	}
}

static void type_all(struct typer *t, const struct sonde_goroutines *gs)
{
	const struct sonde_dwarf_type *hchan = sonde_dwarf_type_find(t->go->dwarf, "runtime.hchan");
	t->hchan_id = hchan ? sonde_go_types_dwarf(t->types, hchan->id) : 0;
	type_headers(t);
	type_globals(t);
	type_specials(t);
	if (gs) {
		type_frames(t, gs);
		type_goroutines(t, gs);
	}
}

struct sonde_error *sonde_core_type_heap(const struct sonde_go_heap *heap,
	const struct sonde_goroutines *gs, const struct sonde_core_marks *marks,
	struct sonde_go_types *types, struct sonde_core_typing **ret)
{
	sonde_cleanup(sonde_core_typing) struct sonde_core_typing *typing =
		sonde_new(struct sonde_core_typing);
	if (!typing)
		return &sonde_enomem;
	typing->types = types;
	typing->of = sonde_new_array(uint32_t, heap->n_slots);
	if (!typing->of)
		return &sonde_enomem;
	struct typer t = {
		.heap = heap, .go = heap->go, .marks = marks, .types = types, .of = typing->of};
	t.follow_left = FOLLOW_MIN_BYTES + FOLLOW_FACTOR * heap->in_use_bytes;
	sonde_go_masks_init(&t.masks, heap->go);
	type_all(&t, gs);
	sonde_go_masks_deinit(&t.masks);
	sonde_u32_vec_deinit(&t.work);
	static_vec_deinit(&t.statics);
	sonde_u64_map_deinit(&t.static_seen);
	sonde_u32_map_deinit(&t.closures);
	sonde_u32_map_deinit(&t.map_parts);
	sonde_u32_map_deinit(&t.hchans);
	sonde_map_foreach (i, &t.variables)
		sonde_dwarf_variables_deinit(&t.variables.values[i]);
	pc_map_deinit(&t.variables);
	if (t.no_memory)
		return &sonde_enomem;
	*ret = sonde_take(typing);
	return NULL;
}

void sonde_core_typing_free(struct sonde_core_typing *typing)
{
	if (!typing)
		return;
	free(typing->of);
	free(typing);
}
