#include "core/typing_internal.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	MAX_CHECK_WORDS = 512,
	FOLLOW_MIN_BYTES = 64 << 20,
	FOLLOW_FACTOR = 16,
};

/* --- does a type fit a slot? --- */

/* Its pointer words must be those of the slot, as far as both are known: a stale or wrong pointer fails here. */
static bool fits_bits(struct sonde_core_typer *t, const struct sonde_go_span *s, uint32_t slot,
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
static uint64_t cover_of(
	const struct sonde_core_typer *t, const struct sonde_go_span *s, uint32_t typing)
{
	const struct sonde_go_type *type =
		sonde_go_type_of(t->types, typing & ~SONDE_CORE_TYPE_MANY);
	if (!typing || typing == t->unsafe_id)
		return 0;
	return typing & SONDE_CORE_TYPE_MANY ? s->slot_bytes
					     : sonde_min(type->size_bytes, s->slot_bytes);
}

/* --- one pointer --- */

/*
 * Follow n (0: one) values of a type at addr that make no object of their own; end bounds them. Again at the same address
 * only where that explains more: so this ends.
 */
static void follow_memory(struct sonde_core_typer *t, uint64_t addr, uint64_t end,
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
	if (!sonde_core_static_vec_push(&t->statics, (struct sonde_core_static_value){addr, n, id}))
		t->no_memory = true;
}

/*
 * Composite literals and the like: variables without a name that only pointers lead to. They are roots already; here
 * they are followed by type; again only where a type explains more.
 */
static void assign_static(struct sonde_core_typer *t, uint64_t addr, uint32_t id, uint64_t n)
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

/* Of two types that explain as much, one with its real name goes before a shape, which code for many types shares. */
static bool is_better_name(const struct sonde_core_typer *t, uint32_t id, uint32_t typing)
{
	uint32_t old = typing & ~SONDE_CORE_TYPE_MANY;
	return id != old && strstr(sonde_go_type_of(t->types, old)->name, "go.shape.") &&
		!strstr(sonde_go_type_of(t->types, id)->name, "go.shape.");
}

/* addr points to n (0: at least one, unknown) values of type id. */
void sonde_core_type_pointer(struct sonde_core_typer *t, uint64_t addr, uint32_t id, uint64_t n)
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
		if (sonde_core_typed(t, object))
			return; /* its header has the last word */
	uint64_t offset = addr - sonde_go_span_addr(s, slot);
	if (s->pointers == SONDE_GO_HEADER)
		offset -= (uint64_t)t->go->layout.header_bytes;
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes)
		return;
	/* No T lies where there is no room for one: what the pointer is declared as is not what it is. */
	if (n == 0 && type->size_bytes > s->slot_bytes - offset)
		return;
	/* A slice may begin inside its array; what comes before is of the same type. */
	if (offset && (n == 0 || offset % type->size_bytes)) {
		/* Into the middle of something unknown: it stays so, but what is there leads on. */
		if (!sonde_core_typed(t, object) && type->n_slots && s->pointers != SONDE_GO_NOSCAN)
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
	uint64_t so_far = cover_of(t, s, t->of[object]);
	if (cover < so_far || (cover == so_far && !is_better_name(t, id, t->of[object])))
		return;
	if (s->pointers == SONDE_GO_BITS && !fits_bits(t, s, slot, type, many))
		return;
	t->of[object] = typing;
	if (s->pointers != SONDE_GO_NOSCAN && !sonde_u32_vec_push(&t->work, object))
		t->no_memory = true;
}

/* An unsafe.Pointer leads to addr: that is what is said of it where nothing else says more. */
static void assign_unsafe(struct sonde_core_typer *t, uint64_t addr)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (sonde_go_heap_find(t->heap, addr, &s, &slot) && !t->of[s->first + slot] &&
		sonde_core_marks_has(t->marks, s->first + slot))
		t->of[s->first + slot] = t->unsafe_id;
}

void sonde_core_type_once(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (type->size_bytes && type->n_slots)
		follow_memory(t, addr, UINT64_MAX, type, id, 1);
}

/* addr points to the start of a part that nothing else types: call it so. Its pointers are the caller's to follow. */
void sonde_core_type_part(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!id || !sonde_go_heap_find(t->heap, addr, &s, &slot))
		return;
	uint64_t start = s->pointers == SONDE_GO_HEADER ? (uint64_t)t->go->layout.header_bytes : 0;
	uint32_t object = s->first + slot;
	if (addr != sonde_go_span_addr(s, slot) + start || sonde_core_typed(t, object) ||
		!sonde_core_marks_has(t->marks, object))
		return;
	t->of[object] = id;
	if (sonde_go_types_slots(t->types, id)->n_slots && !sonde_u32_vec_push(&t->work, object))
		t->no_memory = true;
}

/* The data word of an interface whose dynamic type stands at type_addr. */
static void walk_interface(
	struct sonde_core_typer *t, uint64_t type_addr, const uint8_t *data, int depth)
{
	uint32_t id = sonde_go_types_runtime(t->types, type_addr);
	const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
	if (!id)
		return;
	if (type->is_direct)
		sonde_core_type_value(t, data, t->go->word_bytes, id, depth + 1);
	else
		sonde_core_type_pointer(t, sonde_core_typing_word(t, data), id, 1);
}

/* reflect.Value: its type is the first word, which is not 0. */
static void walk_reflect_value(
	struct sonde_core_typer *t, uint64_t type_addr, const uint8_t *p, int depth)
{
	unsigned word = t->go->word_bytes;
	uint32_t id = sonde_go_types_runtime(t->types, type_addr);
	if (!id)
		return;
	if (sonde_core_typing_word(t, p + 2 * word) & t->reflect_indirect)
		sonde_core_type_pointer(t, sonde_core_typing_word(t, p + word), id, 0);
	else
		sonde_core_type_value(t, p + word, word, id, depth + 1);
}

void sonde_core_type_slot(
	struct sonde_core_typer *t, const uint8_t *p, const struct sonde_go_slot *slot, int depth)
{
	unsigned word = t->go->word_bytes;
	uint64_t value = sonde_core_typing_word(t, p), type;
	if (!value)
		return;
	switch (slot->kind) {
	case SONDE_GO_SLOT_POINTER:
		if (slot->elem)
			sonde_core_type_pointer(t, value, slot->elem, 0);
		else
			assign_unsafe(t, value);
		break;
	case SONDE_GO_SLOT_STRING:
		sonde_core_type_pointer(
			t, value, t->types->string_id, sonde_core_typing_word(t, p + word));
		break;
	case SONDE_GO_SLOT_SLICE:
		sonde_core_type_pointer(
			t, value, slot->elem, sonde_core_typing_word(t, p + 2 * word));
		break;
	case SONDE_GO_SLOT_EFACE:
		walk_interface(t, value, p + word, depth);
		break;
	case SONDE_GO_SLOT_IFACE:
		if (sonde_go_read(t->go, value, t->go->layout.itab_type, &type))
			walk_interface(t, type, p + word, depth);
		break;
	case SONDE_GO_SLOT_MAP:
		sonde_core_type_map(t, value, slot->elem);
		break;
	case SONDE_GO_SLOT_CHAN:
		sonde_core_type_chan(t, value, slot->elem);
		break;
	case SONDE_GO_SLOT_FUNC:
		sonde_core_type_func(t, value);
		break;
	case SONDE_GO_SLOT_COUNTED:
		sonde_core_type_pointer(t, value, slot->elem, sonde_core_typing_word(t, p + word));
		break;
	case SONDE_GO_SLOT_REFLECT:
		sonde_core_type_descriptor(t, value, 0);
		walk_reflect_value(t, value, p, depth);
		break;
	case SONDE_GO_SLOT_DESCRIPTOR:
		sonde_core_type_descriptor(t, value, slot->elem);
		break;
	case SONDE_GO_SLOT_TRIE_NODE:
		sonde_core_type_trie_node(t, value, slot->elem);
		break;
	case SONDE_GO_SLOT_WEAK:
		sonde_core_type_weak_handle(t, value);
		break;
	}
}

unsigned sonde_core_slot_words(uint8_t kind)
{
	switch (kind) {
	case SONDE_GO_SLOT_SLICE:
	case SONDE_GO_SLOT_REFLECT:
		return 3;
	case SONDE_GO_SLOT_COUNTED:
	case SONDE_GO_SLOT_STRING:
	case SONDE_GO_SLOT_EFACE:
	case SONDE_GO_SLOT_IFACE:
		return 2;
	default:
		return 1;
	}
}

/* The pointers of one value of type id in len bytes at `bytes`. */
void sonde_core_type_value(
	struct sonde_core_typer *t, const uint8_t *bytes, uint64_t len, uint32_t id, int depth)
{
	if (depth > SONDE_CORE_TYPING_MAX_DEPTH)
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
				sonde_core_type_value(
					t, bytes + at, elem->size_bytes, array->elem, depth + 1);
			continue;
		}
		uint64_t end =
			slot->offset_bytes + sonde_core_slot_words(slot->kind) * t->go->word_bytes;
		if (end > len)
			return;
		sonde_core_type_slot(t, bytes + slot->offset_bytes, slot, depth);
	}
}

/* A value in target memory; values in several mappings are left out. */
void sonde_core_type_memory(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes || !type->n_slots)
		return;
	const uint8_t *bytes = sonde_target_bytes(t->go->target, addr, type->size_bytes);
	if (bytes)
		sonde_core_type_value(t, bytes, type->size_bytes, id, 0);
}

static void walk_object(
	struct sonde_core_typer *t, const struct sonde_go_span *s, uint32_t slot, uint32_t typing)
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
		sonde_core_type_value(t, bytes, len, id, 0);
		return;
	}
	for (uint64_t at = 0; at + type->size_bytes <= len; at += type->size_bytes)
		sonde_core_type_value(t, bytes + at, type->size_bytes, id, 0);
}

void sonde_core_type_drain(struct sonde_core_typer *t)
{
	while (t->work.n || t->statics.n) {
		if (t->statics.n) {
			struct sonde_core_static_value v = t->statics.items[--t->statics.n];
			uint64_t size = sonde_go_type_of(t->types, v.id)->size_bytes;
			for (uint64_t i = 0; i < v.n; i++) {
				const uint8_t *bytes =
					sonde_target_bytes(t->go->target, v.addr + i * size, size);
				if (!bytes)
					break;
				sonde_core_type_value(t, bytes, size, v.id, 0);
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
static void type_headers(struct sonde_core_typer *t)
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
			sonde_core_type_drain(t);
		}
	}
}

static void type_globals(struct sonde_core_typer *t)
{
	size_t n;
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(t->go->dwarf, &n);
	for (size_t i = 0; i < n; i++) {
		sonde_core_type_memory(t, globals[i].addr + t->go->bias,
			sonde_go_types_dwarf(t->types, globals[i].type));
		sonde_core_type_drain(t);
	}
}

static void type_all(struct sonde_core_typer *t, const struct sonde_goroutines *gs)
{
	const struct sonde_dwarf_type *hchan = sonde_dwarf_type_find(t->go->dwarf, "runtime.hchan");
	t->hchan_id = hchan ? sonde_go_types_dwarf(t->types, hchan->id) : 0;
	int64_t flag;
	t->reflect_indirect = sonde_dwarf_constant(t->go->dwarf, "reflect.flagIndir", &flag)
		? (uint64_t)flag
		: 1 << 7;
	t->unsafe_id = sonde_go_types_named(t->types, "memory behind unsafe.Pointer", 0);
	if (!t->unsafe_id) {
		t->no_memory = true;
		return;
	}
	type_headers(t);
	type_globals(t);
	sonde_core_type_specials(t);
	if (gs) {
		sonde_core_type_frames(t, gs);
		sonde_core_type_goroutines(t, gs);
		sonde_core_type_spills(t, gs);
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
	struct sonde_core_typer t = {
		.heap = heap, .go = heap->go, .marks = marks, .types = types, .of = typing->of};
	t.follow_left = FOLLOW_MIN_BYTES + FOLLOW_FACTOR * heap->in_use_bytes;
	sonde_go_masks_init(&t.masks, heap->go);
	type_all(&t, gs);
	sonde_go_masks_deinit(&t.masks);
	sonde_u32_vec_deinit(&t.work);
	sonde_core_static_vec_deinit(&t.statics);
	sonde_u64_map_deinit(&t.static_seen);
	sonde_u32_map_deinit(&t.closures);
	sonde_u32_map_deinit(&t.parts);
	sonde_map_foreach (i, &t.variables)
		sonde_dwarf_variables_deinit(&t.variables.values[i]);
	sonde_core_pc_map_deinit(&t.variables);
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
