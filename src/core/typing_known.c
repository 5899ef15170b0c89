/* src/core/typing_known.c: maps, channels, closures and what else the runtime and its libraries lay out themselves. */
#include "core/typing_internal.h"

#include <stdio.h>
#include "base/cycle.h"

enum { MAX_CAPTURED = 256 };

/* A name for what has no type of its own: a part of a map, a channel. Made once a key. */
static uint32_t part_id(struct sonde_core_typer *t, uint32_t key, enum sonde_core_part part,
	const char *fmt, const char *name)
{
	bool was_new;
	uint32_t *id = sonde_u32_map_put(&t->parts, (uint64_t)key << 3 | part, &was_new);
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

/* How many elements of that size the object at addr has room for; 0 where addr is not on the heap. */
static uint64_t room_at(const struct sonde_core_typer *t, uint64_t addr, uint64_t elem_bytes)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!elem_bytes || !sonde_go_heap_find(t->heap, addr, &s, &slot))
		return 0;
	return s->slot_bytes / elem_bytes;
}

/* n groups or buckets of a map: on the heap, or one on a stack. */
static void type_bucket(struct sonde_core_typer *t, uint64_t addr, uint32_t group, uint64_t n)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (sonde_go_heap_find(t->heap, addr, &s, &slot))
		sonde_core_type_pointer(t, addr, group, n);
	else
		sonde_core_type_once(t, addr, group);
}

static void walk_swiss_map(
	struct sonde_core_typer *t, uint64_t addr, uint32_t id, const struct sonde_go_type *type)
{
	const struct sonde_go_layout *l = &t->go->layout;
	uint64_t directory, len, table, groups, mask;
	sonde_core_type_part(t, addr, part_id(t, id, SONDE_CORE_PART_MAP, "%s header", type->name));
	if (!sonde_go_read(t->go, addr, l->swiss_dir_ptr, &directory) ||
		!sonde_go_read(t->go, addr, l->swiss_dir_len, &len) || !directory)
		return;
	if (len == 0) { /* one group and no table */
		type_bucket(t, directory, type->group, 1);
		return;
	}
	sonde_core_type_part(t, directory,
		part_id(t, id, SONDE_CORE_PART_MAP_DIRECTORY, "%s directory", type->name));
	uint64_t last = 0;
	len = sonde_min(len, room_at(t, directory, t->go->word_bytes));
	for (uint64_t i = 0; i < len; i++, last = table) {
		if (!sonde_go_read_word(t->go, directory + i * t->go->word_bytes, &table))
			return;
		if (table ==
			last) /* tables of smaller depth stand in the directory several times */
			continue;
		sonde_core_type_part(t, table,
			part_id(t, id, SONDE_CORE_PART_MAP_TABLE, "%s table", type->name));
		if (sonde_go_read(t->go, table, l->swiss_table_groups, &groups) &&
			sonde_go_read(t->go, table, l->swiss_table_mask, &mask) &&
			mask < UINT64_MAX)
			sonde_core_type_pointer(t, groups, type->group, mask + 1);
	}
}

/* Go <= 1.23: n buckets, and those that overflow from them. */
static void type_buckets(struct sonde_core_typer *t, uint64_t buckets, uint32_t group, uint64_t n)
{
	type_bucket(t, buckets, group, n);
	/* Overflow buckets: the last word of each bucket. Buckets are full to 6.5 of 8: there are few of them. */
	uint64_t budget = 2 * n + 1024;
	const struct sonde_go_type *bucket = sonde_go_type_of(t->types, group);
	struct sonde_target_run cache = {0};
	/* Not on the heap: the one bucket of a small map on a stack. */
	uint64_t room = room_at(t, buckets, bucket->size_bytes);
	uint64_t n_buckets = sonde_min(n, room ? room : 1);
	for (uint64_t i = 0; bucket->size_bytes > t->go->word_bytes && i < n_buckets && budget;
		i++) {
		uint64_t next = buckets + (i + 1) * bucket->size_bytes - t->go->word_bytes;
		for (; budget; budget--) {
			const uint8_t *p = sonde_target_bytes_cached(
				t->go->target, &cache, next, t->go->word_bytes);
			uint64_t overflow = p ? sonde_core_typing_word(t, p) : 0;
			if (!p)
				return;
			if (!overflow)
				break;
			sonde_core_type_pointer(t, overflow, group, 1);
			next = overflow + bucket->size_bytes - t->go->word_bytes;
		}
	}
}

enum { OLD_BUCKET_SLOTS = 8, OLD_INLINE_BYTES = 128 }; /* internal/abi/map_noswiss.go */

/*
 * The bucket type of a map. For map types that it makes reflect makes bucket types that have a size and a pointer mask
 * but no fields (reflect/map_noswiss.go bucketOf): 8 hashes, 8 keys, 8 values, the overflow bucket.
 */
static uint32_t bucket_type(
	struct sonde_core_typer *t, uint32_t id, const struct sonde_go_type *type)
{
	const struct sonde_go_type *bucket = sonde_go_types_slots(t->types, type->group);
	if (bucket->n_slots || !bucket->ptr_bytes)
		return type->group;
	bool was_new;
	uint64_t key = (uint64_t)id << 3 | SONDE_CORE_PART_MAP_BUCKET;
	uint32_t *known = sonde_u32_map_put(&t->parts, key, &was_new);
	if (!known || !was_new)
		return known ? *known : type->group;
	struct sonde_go_part parts[2 * OLD_BUCKET_SLOTS];
	const uint32_t of[] = {type->key, type->elem};
	uint64_t at = OLD_BUCKET_SLOTS;
	size_t n = 0;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(of); i++) {
		uint32_t part = of[i];
		if (sonde_go_type_of(t->types, part)->size_bytes > OLD_INLINE_BYTES)
			part = sonde_go_types_pointer(t->types, part);
		for (int k = 0; k < OLD_BUCKET_SLOTS; k++) {
			parts[n++] = (struct sonde_go_part){at, part};
			at += sonde_go_type_of(t->types, part)->size_bytes;
		}
	}
	char name[1024];
	snprintf(name, sizeof(name), "%s bucket", type->name);
	uint32_t made = sonde_go_types_composed(t->types, name, bucket->size_bytes, parts, n);
	*sonde_u32_map_put(&t->parts, key, NULL) = made;
	return made;
}

static void walk_old_map(
	struct sonde_core_typer *t, uint64_t addr, uint32_t id, const struct sonde_go_type *type)
{
	const struct sonde_go_layout *l = &t->go->layout;
	uint64_t b, buckets, old, extra;
	sonde_core_type_part(t, addr, part_id(t, id, SONDE_CORE_PART_MAP, "%s header", type->name));
	if (!sonde_go_read(t->go, addr, l->hmap_b, &b) ||
		!sonde_go_read(t->go, addr, l->hmap_buckets, &buckets) ||
		!sonde_go_read(t->go, addr, l->hmap_oldbuckets, &old) || b > 60)
		return;
	uint64_t n = UINT64_C(1) << b;
	uint32_t bucket = bucket_type(t, id, type);
	type_buckets(t, buckets, bucket, n);
	/* While it grows: half as many; as many where it grows in place. The slot bounds them. */
	if (old)
		type_buckets(t, old, bucket, n);
	/* What keeps overflow buckets without pointers. */
	if (l->hmap_extra.size && sonde_go_read(t->go, addr, l->hmap_extra, &extra))
		sonde_core_type_pointer(
			t, extra, sonde_go_types_find(t->types, "runtime.mapextra"), 0);
}

void sonde_core_type_map(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	struct sonde_go_span *s;
	uint32_t slot;
	/* Once a map: its header is typed the first time; one on a stack is remembered. */
	if (sonde_go_heap_find(t->heap, addr, &s, &slot)) {
		if (sonde_core_typed(t, s->first + slot))
			return;
	} else {
		bool was_new;
		if (!sonde_u64_map_put(&t->static_seen, addr, &was_new))
			t->no_memory = true;
		else if (!was_new)
			return;
	}
	const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
	if (t->go->layout.swiss_dir_ptr.size)
		walk_swiss_map(t, addr, id, type);
	else if (t->go->layout.hmap_b.size)
		walk_old_map(t, addr, id, type);
}

/* Values on their way: each waiting goroutine's sudog points to one, on its stack or on the heap. */
static void walk_waiters(
	struct sonde_core_typer *t, uint64_t chan, struct sonde_go_field queue, uint32_t elem)
{
	uint64_t sudog, value;
	if (!sonde_go_read(t->go, chan, queue, &sudog))
		return;
	struct sonde_cycle cycle = sonde_cycle_from(sudog);
	for (int i = 0; sudog && !(i && sonde_cycle_closed(&cycle, sudog)); i++) {
		if (sonde_go_read(t->go, sudog, t->go->layout.sudog_elem, &value) && value)
			sonde_core_type_memory(t, value, elem);
		if (!sonde_go_read(t->go, sudog, t->go->layout.sudog_next, &sudog))
			return;
	}
}

/* A channel at addr of the channel type id; elem is the type of its values. */
static void walk_hchan(struct sonde_core_typer *t, uint64_t addr, uint32_t key,
	enum sonde_core_part which, const char *fmt, uint32_t elem)
{
	const struct sonde_go_layout *l = &t->go->layout;
	const struct sonde_go_type *hchan = sonde_go_types_slots(t->types, t->hchan_id);
	uint64_t buffer, n;
	struct sonde_go_span *s;
	uint32_t slot;
	/* Once a channel: it is typed the first time. */
	if (!sonde_go_heap_find(t->heap, addr, &s, &slot) || sonde_core_typed(t, s->first + slot) ||
		!sonde_core_marks_has(t->marks, s->first + slot))
		return;
	uint32_t id = part_id(t, key, which, fmt, sonde_go_type_of(t->types, key)->name);
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
		sonde_core_type_pointer(t, buffer, elem, n);
	walk_waiters(t, addr, l->hchan_recvq, elem);
	walk_waiters(t, addr, l->hchan_sendq, elem);
}

void sonde_core_type_chan(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	const struct sonde_go_type *type = sonde_go_type_of(t->types, id);
	walk_hchan(t, addr, id, SONDE_CORE_PART_CHAN, "%s", type->elem);
}

/* A channel that only a blocked goroutine's sudog leads to: it knows the type of its values. */
void sonde_core_type_untyped_chan(struct sonde_core_typer *t, uint64_t addr)
{
	uint64_t elem;
	if (!sonde_go_read(t->go, addr, t->go->layout.hchan_elemtype, &elem))
		return;
	uint32_t id = sonde_go_types_runtime(t->types, elem);
	if (id)
		walk_hchan(t, addr, id, SONDE_CORE_PART_CHAN_OF, "chan %s", id);
}

/* --- closures --- */

enum { MAX_CLOSURE_NAME = 1024 };

static bool ends_in(const char *text, const char *end)
{
	size_t len = strlen(text), n = strlen(end);
	return len >= n && !strcmp(text + len - n, end);
}

/*
 * The receiver that a method value holds, from its function's name: "pkg.(*T[int]).Method-fm" holds a *pkg.T[int],
 * "pkg.T.Method-fm" a pkg.T. 0 where the type is not found.
 */
static uint32_t receiver_of(struct sonde_core_typer *t, const char *function)
{
	char name[MAX_CLOSURE_NAME];
	size_t len = strlen(function);
	if (len >= sizeof(name) || !ends_in(function, "-fm"))
		return 0;
	memcpy(name, function, len + 1);
	char *dot = strrchr(name, '.'); /* in front of the method */
	if (!dot || dot == name)
		return 0;
	*dot = 0;
	char *star = strstr(name, ".(*");
	if (dot[-1] != ')' || !star)
		return sonde_go_types_find(t->types, name);
	dot[-1] = 0;
	memmove(star + 1, star + 3, strlen(star + 3) + 1);
	uint32_t elem = sonde_go_types_find(t->types, name);
	return elem ? sonde_go_types_pointer(t->types, elem) : 0;
}

/* What the closure of the function at f captured, as far as DWARF says; its record's size is *size. */
static size_t captured_of(struct sonde_core_typer *t, const struct sonde_pcfunc *f,
	struct sonde_go_part parts[MAX_CAPTURED], uint64_t *size)
{
	uint64_t pc = f->entry - t->go->bias;
	sonde_cleanup(sonde_dwarf_captured_vec) struct sonde_dwarf_captured_vec captured = {0};
	struct sonde_error *err = sonde_dwarf_captured_at(t->go->dwarf, pc, &captured);
	if (err)
		t->no_memory = true;
	sonde_error_free(err);
	size_t n = 0;
	*size = t->go->word_bytes;
	for (size_t i = 0; i < captured.n && n < MAX_CAPTURED; i++) {
		uint32_t type = sonde_go_types_dwarf(t->types, captured.items[i].type);
		parts[n++] = (struct sonde_go_part){captured.items[i].offset_bytes, type};
		*size = sonde_max(*size,
			captured.items[i].offset_bytes +
				sonde_go_type_of(t->types, type)->size_bytes);
	}
	/* The function table has "T[...]" for the arguments of generic types, DWARF their names. */
	const struct sonde_dwarf_function *d =
		ends_in(f->name, "-fm") ? sonde_dwarf_function_at(t->go->dwarf, pc) : NULL;
	uint32_t receiver = !n && d ? receiver_of(t, d->name) : 0;
	if (receiver) {
		parts[n++] = (struct sonde_go_part){t->go->word_bytes, receiver};
		*size += sonde_go_type_of(t->types, receiver)->size_bytes;
	}
	return n;
}

/* The record of the closure whose code begins at f: its name, and what it captured. */
static uint32_t closure_id(struct sonde_core_typer *t, const struct sonde_pcfunc *f)
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
	uint32_t id = 0;
	/* What reflect makes: reflect/makefunc.go. */
	if (!strcmp(f->name, "reflect.makeFuncStub"))
		id = sonde_go_types_find(t->types, "reflect.makeFuncImpl");
	else if (!strcmp(f->name, "reflect.methodValueCall"))
		id = sonde_go_types_find(t->types, "reflect.methodValue");
	if (!id) {
		struct sonde_go_part parts[MAX_CAPTURED];
		uint64_t size;
		size_t n = captured_of(t, f, parts, &size);
		char name[MAX_CLOSURE_NAME];
		snprintf(name, sizeof(name), "closure %s", f->name);
		id = sonde_go_types_composed(t->types, name, size, parts, n);
	}
	*sonde_u32_map_put(&t->closures, f->entry, NULL) = id;
	return id;
}

/* The function whose funcval stands at addr. */
static bool function_of(const struct sonde_core_typer *t, uint64_t addr, struct sonde_pcfunc *f)
{
	uint64_t pc;
	return sonde_go_read_word(t->go, addr, &pc) && sonde_go_function_at(t->go, pc, f, NULL) &&
		f->entry == pc;
}

static uint32_t parameter(struct sonde_core_typer *t, uint64_t pc)
{
	uint64_t type = sonde_dwarf_parameter_type(t->go->dwarf, pc - t->go->bias, 0);
	uint32_t id = type ? sonde_go_types_dwarf(t->types, type) : 0;
	/* A shape stands for many types. */
	return strncmp(sonde_go_type_of(t->types, id)->name, "go.shape.", 9) ? id : 0;
}

void sonde_core_type_cleanup_argument(struct sonde_core_typer *t, uint64_t addr, uint64_t fn)
{
	struct sonde_pcfunc f;
	uint32_t id = function_of(t, fn, &f) ? parameter(t, f.entry) : 0;
	sonde_core_type_pointer(t, addr, id, 0);
	/* A small one without pointers lies in a box of 16 bytes, and nothing may have no bytes of its own. */
	sonde_core_type_part(t, addr,
		part_id(t, UINT32_MAX, SONDE_CORE_PART_MAP, "%s", "argument of a cleanup"));
}

/*
 * Go 1.24 and 1.25: the closure that runtime.AddCleanup makes. It is compiled once for all arguments of a shape; the cleanup that it
 * captured as well has the argument's type.
 */
static void walk_cleanup_closure(
	struct sonde_core_typer *t, uint64_t addr, const struct sonde_pcfunc *f)
{
	uint64_t cleanup = 0, arg = 0;
	sonde_cleanup(sonde_dwarf_captured_vec) struct sonde_dwarf_captured_vec captured = {0};
	struct sonde_error *err =
		sonde_dwarf_captured_at(t->go->dwarf, f->entry - t->go->bias, &captured);
	if (err)
		t->no_memory = true;
	sonde_error_free(err);
	sonde_vec_foreach (v, &captured) {
		uint64_t at = addr + v->offset_bytes;
		bool by_reference = *v->name == '&';
		if (by_reference && !sonde_go_read_word(t->go, at, &at))
			return;
		if (!strcmp(v->name + by_reference, "cleanup"))
			cleanup = at;
		else if (!strcmp(v->name + by_reference, "arg"))
			arg = at;
	}
	uint64_t fn;
	struct sonde_pcfunc of_cleanup;
	if (!cleanup || !arg || !sonde_go_read_word(t->go, cleanup, &fn) ||
		!function_of(t, fn, &of_cleanup))
		return;
	uint32_t id = parameter(t, of_cleanup.entry);
	sonde_core_type_pointer(t, arg, id, 0); /* by reference: an object of its own */
	sonde_core_type_memory(t, arg, id);
}

void sonde_core_type_func(struct sonde_core_typer *t, uint64_t addr)
{
	struct sonde_pcfunc f;
	struct sonde_go_span *s;
	uint32_t slot;
	if (!sonde_go_heap_find(t->heap, addr, &s, &slot)) {
		/* A closure on a stack, which only a function value leads to; in a file: one that captured nothing. */
		bool was_new = false;
		const struct sonde_mapping *map;
		if (!sonde_u64_map_put(&t->static_seen, addr, &was_new))
			t->no_memory = true;
		if (was_new && (map = sonde_target_mapping_find(t->go->target, addr)) &&
			!map->path && function_of(t, addr, &f))
			sonde_core_type_once(t, addr, closure_id(t, &f));
		return;
	}
	if (sonde_go_span_addr(s, slot) +
				(s->pointers == SONDE_GO_HEADER
						? (uint64_t)t->go->layout.header_bytes
						: 0) !=
			addr ||
		sonde_core_typed(t, s->first + slot) || !function_of(t, addr, &f))
		return;
	sonde_core_type_part(t, addr, closure_id(t, &f));
	if (!strncmp(f.name, "runtime.AddCleanup[", 19))
		walk_cleanup_closure(t, addr, &f);
}

/* --- types, tries, weak handles --- */

/* The records that a type descriptor begins, by kind: those of reflect, which makes them, else the runtime's. */
static const char *const descriptor_records[][3] = {
	[SONDE_GO_KIND_ARRAY] = {"reflect.arrayType", "internal/abi.ArrayType"},
	[SONDE_GO_KIND_CHAN] = {"reflect.chanType", "internal/abi.ChanType"},
	[SONDE_GO_KIND_FUNC] = {"reflect.funcType", "internal/abi.FuncType"},
	[SONDE_GO_KIND_INTERFACE] = {"reflect.interfaceType", "internal/abi.InterfaceType"},
	[SONDE_GO_KIND_MAP] = {"reflect.mapType", "internal/abi.MapType",
		"internal/abi.SwissMapType"},
	[SONDE_GO_KIND_POINTER] = {"reflect.ptrType", "internal/abi.PtrType"},
	[SONDE_GO_KIND_SLICE] = {"reflect.sliceType", "internal/abi.SliceType"},
	[SONDE_GO_KIND_STRUCT] = {"reflect.structType", "internal/abi.StructType"},
};

void sonde_core_type_descriptor(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	struct sonde_go_span *s;
	uint32_t slot;
	uint64_t kind;
	if (!sonde_go_heap_find(t->heap, addr, &s, &slot))
		return; /* as most: in the module */
	sonde_core_type_pointer(t, addr, id, 0);
	if (!sonde_go_read(t->go, addr, t->go->layout.type_kind, &kind))
		return;
	kind &= 31; /* abi.KindMask */
	if (kind >= SONDE_ARRAY_LEN(descriptor_records))
		return;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(descriptor_records[0]); i++) {
		const char *name = descriptor_records[kind][i];
		uint32_t record = name ? sonde_go_types_find(t->types, name) : 0;
		if (record) {
			sonde_core_type_pointer(t, addr, record, 0);
			return;
		}
	}
}

void sonde_core_type_trie_node(struct sonde_core_typer *t, uint64_t addr, uint32_t id)
{
	uint8_t is_entry;
	if (!sonde_target_read_u8(t->go->target, addr, &is_entry))
		return;
	bool was_new;
	uint64_t key = (uint64_t)id << 3 |
		(is_entry ? SONDE_CORE_PART_TRIE_ENTRY : SONDE_CORE_PART_TRIE_INNER);
	uint32_t *record = sonde_u32_map_put(&t->parts, key, &was_new);
	if (!record) {
		t->no_memory = true;
		return;
	}
	if (was_new) {
		*record = 0;
		const char *name = sonde_go_type_of(t->types, id)->name;
		const char *node = strstr(name, ".node[");
		char text[MAX_CLOSURE_NAME];
		int n = node ? snprintf(text, sizeof(text), "%.*s.%s%s", (int)(node - name), name,
				       is_entry ? "entry" : "indirect", node + 5)
			     : -1;
		uint32_t found =
			n > 0 && (size_t)n < sizeof(text) ? sonde_go_types_find(t->types, text) : 0;
		record = sonde_u32_map_put(&t->parts, key, NULL);
		*record = found;
	}
	sonde_core_type_pointer(t, addr, *record, 0);
}

void sonde_core_type_weak_handle(struct sonde_core_typer *t, uint64_t addr)
{
	sonde_core_type_part(
		t, addr, part_id(t, UINT32_MAX, SONDE_CORE_PART_CHAN, "%s", "weak handle"));
}
