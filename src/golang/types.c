#include "golang/types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/varint.h"

enum {
	MAX_NAME_BYTES = 1 << 16,
	MAX_FIELDS = 1 << 16,
	MAX_NAMED_FIELDS = 32,
	MAX_FIELD_TYPE_NAME = 256,
	MAX_DEPTH = 200,
	/* Arrays are written out up to so many slots; longer ones are one slot, walked by element. */
	MAX_ARRAY_SLOTS = 64,
	MAX_SLOTS = 1 << 16,
	MAX_VISITS = 1 << 18, /* types that one type is put together from */
	KIND_MASK = 31, /* abi.KindMask */
};

/* internal/abi.Type's followers: words behind it, in every version read (1.22 to 1.27). */
enum {
	WORD_ELEM = 0,
	WORD_ARRAY_LEN = 2,
	WORD_MAP_KEY = 0,
	WORD_MAP_ELEM = 1,
	WORD_MAP_GROUP = 2,
	WORD_STRUCT_FIELDS = 1,
	WORD_INTERFACE_METHODS = 1
};

static struct sonde_go_type *new_type(struct sonde_go_types *t, uint32_t *id)
{
	struct sonde_go_type *type = sonde_arena_alloc(&t->arena, sizeof(*type));
	if (!type || t->by_id.n >= UINT32_MAX || !sonde_go_type_vec_push(&t->by_id, type))
		return NULL;
	type->name = "";
	*id = (uint32_t)t->by_id.n - 1;
	return type;
}

static uint64_t word_behind(struct sonde_go_types *t, uint64_t addr, unsigned word)
{
	const struct sonde_go *go = t->go;
	uint64_t v = 0;
	sonde_go_read_word(go, addr + go->layout.sizeof_type + (uint64_t)word * go->word_bytes, &v);
	return v;
}

/* abi.Name at addr: flags, varint length, bytes. A copy, or NULL. */
static char *name_at(struct sonde_go_types *t, uint64_t addr)
{
	uint8_t head[11];
	size_t got = sonde_target_read_some(t->go->target, addr, head, sizeof(head));
	if (got < 2)
		return NULL;
	struct sonde_cursor c = sonde_cursor_over(head + 1, got - 1);
	uint64_t len = sonde_varint_u64(&c);
	if (c.bad || len > MAX_NAME_BYTES)
		return NULL;
	const uint8_t *bytes =
		sonde_target_bytes(t->go->target, addr + 1 + sonde_cursor_offset(&c), len);
	return bytes ? sonde_arena_strndup(&t->arena, (const char *)bytes, len) : NULL;
}

static const struct sonde_go_module *module_of_type(const struct sonde_go *go, uint64_t addr)
{
	for (size_t i = 0; i < go->n_modules; i++) {
		if (addr >= go->modules[i].types && addr < go->modules[i].etypes)
			return &go->modules[i];
	}
	return NULL;
}

/*
 * abi.NameOff: relative to the module's types; types made by reflect resolve theirs through runtime.reflectOffs, whose
 * map is not read here: they are called by what is known of them.
 */
static const char *runtime_name(
	struct sonde_go_types *t, uint64_t addr, int32_t offset, uint64_t tflag)
{
	const struct sonde_go_module *m = module_of_type(t->go, addr);
	char *name = m && offset >= 0 ? name_at(t, m->types + (uint32_t)offset) : NULL;
	if (!name)
		return NULL;
	return (tflag & (uint64_t)t->go->layout.tflag_extra_star) && *name == '*' ? name + 1 : name;
}

static bool resolve_runtime(struct sonde_go_types *t, struct sonde_go_type *type)
{
	const struct sonde_go *go = t->go;
	const struct sonde_go_layout *l = &go->layout;
	uint64_t addr = type->runtime_addr;
	const uint8_t *bytes = sonde_target_bytes(go->target, addr, l->sizeof_type);
	if (!bytes)
		return false;
	uint64_t kind = sonde_go_load(bytes, l->type_kind),
		 tflag = sonde_go_load(bytes, l->type_tflag);
	type->kind = kind & KIND_MASK;
	if (type->kind == SONDE_GO_KIND_INVALID || type->kind > SONDE_GO_KIND_UNSAFE_POINTER)
		return false;
	type->size_bytes = sonde_go_load(bytes, l->type_size);
	type->ptr_bytes = sonde_go_load(bytes, l->type_ptr_bytes);
	type->is_direct = (kind & (uint64_t)l->kind_direct_iface) ||
		(tflag & (uint64_t)l->tflag_direct_iface);
	const char *name = runtime_name(t, addr, (int32_t)sonde_go_load(bytes, l->type_str), tflag);
	type->name = name ? name : "";
	return true;
}

/* --- fields of structs --- */

static struct sonde_go_members members_of(
	struct sonde_go_types *t, const struct sonde_go_type *type)
{
	struct sonde_go_members it = {.t = t, .size_bytes = type->size_bytes};
	if (type->kind != SONDE_GO_KIND_STRUCT)
		return it;
	if (type->runtime_addr) {
		/* abi.StructField: name, type, offset: three words. */
		it.fields = word_behind(t, type->runtime_addr, WORD_STRUCT_FIELDS);
		it.n = word_behind(t, type->runtime_addr, WORD_STRUCT_FIELDS + 1);
		it.n = it.n <= MAX_FIELDS ? it.n : 0;
	} else {
		it.dwarf = sonde_dwarf_type_bare(t->go->dwarf, type->dwarf_id);
		it.n = it.dwarf ? it.dwarf->n_members : 0;
	}
	return it;
}

struct sonde_go_members sonde_go_members_of(struct sonde_go_types *t, uint32_t id)
{
	return members_of(t, sonde_go_type_of(t, id));
}

bool sonde_go_members_next(struct sonde_go_members *it, struct sonde_go_member *ret)
{
	if (it->at >= it->n)
		return false;
	uint64_t i = it->at++;
	if (it->dwarf) {
		const struct sonde_dwarf_member *m = &it->dwarf->members[i];
		*ret = (struct sonde_go_member){
			.name = m->name,
			.offset_bytes = m->offset_bytes,
			.type = sonde_go_types_dwarf(it->t, m->type),
		};
		return true;
	}
	const struct sonde_go *go = it->t->go;
	uint64_t field = it->fields + i * 3 * go->word_bytes, type, offset, name;
	if (!sonde_go_read_word(go, field, &name) ||
		!sonde_go_read_word(go, field + go->word_bytes, &type) ||
		!sonde_go_read_word(go, field + 2 * go->word_bytes, &offset) ||
		offset > it->size_bytes) {
		it->n = 0; /* damaged: what follows is no better */
		return false;
	}
	*ret = (struct sonde_go_member){
		.name_addr = name,
		.offset_bytes = offset,
		.type = sonde_go_types_runtime(it->t, type),
	};
	return true;
}

const char *sonde_go_member_name(struct sonde_go_types *t, const struct sonde_go_member *m)
{
	if (m->name)
		return m->name;
	const char *name = m->name_addr ? name_at(t, m->name_addr) : "_";
	return name ? name : "?";
}

/* "struct { A int; B *main.T }", as reflect writes it. */
static const char *struct_name(struct sonde_go_types *t, const struct sonde_go_type *type)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct sonde_go_members it = members_of(t, type);
	struct sonde_go_member m;
	if (!it.n) /* a map's bucket has a size, but no fields */
		return type->size_bytes ? NULL : "struct {}";
	sonde_buf_printf(&b, "struct {");
	for (uint64_t n = it.n; it.at < n && it.at < MAX_NAMED_FIELDS;) {
		if (!sonde_go_members_next(&it, &m))
			return NULL;
		const char *of = sonde_go_type_of(t, m.type)->name;
		if (strlen(of) > MAX_FIELD_TYPE_NAME)
			of = "...";
		sonde_buf_printf(
			&b, "%s %s %s", it.at > 1 ? ";" : "", sonde_go_member_name(t, &m), of);
	}
	sonde_buf_printf(&b, "%s }", it.n > MAX_NAMED_FIELDS ? "; ..." : "");
	return sonde_arena_strdup(&t->arena, sonde_buf_text(&b));
}

/* Compose a name for a type that reflect made at run time: its parts have names. */
static const char *composed_name(struct sonde_go_types *t, const struct sonde_go_type *type)
{
	const char *elem = sonde_go_type_of(t, type->elem)->name;
	const char *name = NULL;
	switch (type->kind) {
	case SONDE_GO_KIND_POINTER:
		name = sonde_arena_printf(&t->arena, "*%s", elem);
		break;
	case SONDE_GO_KIND_SLICE:
		name = sonde_arena_printf(&t->arena, "[]%s", elem);
		break;
	case SONDE_GO_KIND_ARRAY:
		name = sonde_arena_printf(&t->arena, "[%" PRIu64 "]%s", type->count, elem);
		break;
	case SONDE_GO_KIND_MAP:
		name = sonde_arena_printf(
			&t->arena, "map[%s]%s", sonde_go_type_of(t, type->key)->name, elem);
		break;
	case SONDE_GO_KIND_CHAN:
		name = sonde_arena_printf(&t->arena, "chan %s", elem);
		break;
	case SONDE_GO_KIND_STRUCT:
		name = struct_name(t, type);
		if (name)
			break;
		/* fall through */
	default:
		name = sonde_arena_printf(&t->arena, "reflect type 0x%" PRIx64, type->runtime_addr);
	}
	return name ? name : "";
}

/*
 * DW_AT_go_runtime_type: the descriptor's link-time address up to Go 1.26, its offset from the module's types since.
 * Which of them a value is shows by where it leads.
 */
static uint64_t descriptor_of(const struct sonde_go *go, uint64_t attribute)
{
	const struct sonde_go_module *m = &go->modules[0];
	if (!attribute || module_of_type(go, attribute + go->bias))
		return attribute ? attribute + go->bias : 0;
	return attribute < m->etypes - m->types ? m->types + attribute : 0;
}

/* And back: the DWARF type of a descriptor; 0 = none. */
static uint64_t dwarf_of_descriptor(const struct sonde_go *go, uint64_t addr)
{
	const struct sonde_go_module *m = &go->modules[0];
	uint64_t id = sonde_dwarf_type_by_runtime(go->dwarf, addr - go->bias);
	if (!id && addr >= m->types && addr < m->etypes)
		id = sonde_dwarf_type_by_runtime(go->dwarf, addr - m->types);
	return id;
}

static uint32_t make_runtime(struct sonde_go_types *t, uint64_t addr)
{
	bool was_new;
	uint32_t *slot = sonde_u32_map_put(&t->by_runtime, addr, &was_new);
	if (!slot || !was_new)
		return slot ? *slot : SONDE_GO_TYPE_UNKNOWN;
	*slot = SONDE_GO_TYPE_UNKNOWN; /* also what a descriptor that refers to itself sees until it is done */
	uint32_t id;
	struct sonde_go_type probe = {.runtime_addr = addr, .name = ""};
	if (!resolve_runtime(t, &probe))
		return SONDE_GO_TYPE_UNKNOWN;
	struct sonde_go_type *type = new_type(t, &id);
	if (!type)
		return SONDE_GO_TYPE_UNKNOWN;
	*type = probe;
	*sonde_u32_map_put(&t->by_runtime, addr, NULL) = id;
	/* One type for both sources; DWARF's spelling has the full package path. */
	uint64_t dwarf_id = dwarf_of_descriptor(t->go, addr);
	const struct sonde_dwarf_type *d =
		dwarf_id ? sonde_dwarf_type(t->go->dwarf, dwarf_id) : NULL;
	if (d && *d->name) {
		/* The compiler's mark for types that are never compared says nothing to a reader. */
		type->name = strncmp(d->name, "noalg.", 6) ? d->name : d->name + 6;
		type->dwarf_id = dwarf_id;
		uint32_t *by_dwarf = sonde_u32_map_put(&t->by_dwarf, dwarf_id, NULL);
		if (by_dwarf)
			*by_dwarf = id;
	}
	switch (type->kind) {
	case SONDE_GO_KIND_MAP:
		type->key = sonde_go_types_runtime(t, word_behind(t, addr, WORD_MAP_KEY));
		type->elem = sonde_go_types_runtime(t, word_behind(t, addr, WORD_MAP_ELEM));
		type->group = sonde_go_types_runtime(t, word_behind(t, addr, WORD_MAP_GROUP));
		break;
	case SONDE_GO_KIND_ARRAY:
		type->count = word_behind(t, addr, WORD_ARRAY_LEN);
		/* fall through */
	case SONDE_GO_KIND_POINTER:
	case SONDE_GO_KIND_SLICE:
	case SONDE_GO_KIND_CHAN:
		type->elem = sonde_go_types_runtime(t, word_behind(t, addr, WORD_ELEM));
		break;
	case SONDE_GO_KIND_INTERFACE:
		type->eface = word_behind(t, addr, WORD_INTERFACE_METHODS + 1) == 0;
		break;
	}
	if (!*type->name)
		type->name = composed_name(t, type);
	return id;
}

uint32_t sonde_go_types_runtime(struct sonde_go_types *t, uint64_t addr)
{
	if (!addr || t->depth >= MAX_DEPTH)
		return SONDE_GO_TYPE_UNKNOWN;
	t->depth++;
	uint32_t id = make_runtime(t, addr);
	t->depth--;
	return id;
}

/* --- DWARF --- */

/* Go's DWARF names the pointers and strings of its own; go_kind says what the type is for the language. */
static uint8_t kind_of_dwarf(const struct sonde_dwarf_type *d)
{
	if (d->go_kind)
		return d->go_kind & KIND_MASK;
	switch (d->kind) {
	case SONDE_DWARF_POINTER:
		return SONDE_GO_KIND_POINTER;
	case SONDE_DWARF_ARRAY:
		return SONDE_GO_KIND_ARRAY;
	case SONDE_DWARF_STRUCT:
		return SONDE_GO_KIND_STRUCT;
	case SONDE_DWARF_FUNCTION:
		return SONDE_GO_KIND_FUNC;
	default:
		return SONDE_GO_KIND_UINTPTR;
	}
}

static uint64_t member_type(
	struct sonde_go_types *t, const struct sonde_dwarf_type *d, const char *name)
{
	const struct sonde_dwarf_member *m = sonde_dwarf_member_find(t->go->dwarf, d, name, NULL);
	return m ? m->type : 0;
}

static uint32_t make_dwarf(struct sonde_go_types *t, uint64_t dwarf_id)
{
	struct sonde_dwarf *dwarf = t->go->dwarf;
	uint32_t *known = sonde_u32_map_find(&t->by_dwarf, dwarf_id);
	if (known)
		return *known;
	const struct sonde_dwarf_type *d = sonde_dwarf_type(dwarf, dwarf_id);
	if (!d || d->kind == SONDE_DWARF_VOID)
		return SONDE_GO_TYPE_UNKNOWN;
	/* An interface is a typedef of a typedef, of which only the inner one has Go's attributes. */
	for (int i = 0; i < MAX_DEPTH && d->kind == SONDE_DWARF_TYPEDEF && !d->go_kind &&
		!d->go_runtime_type;
		i++) {
		const struct sonde_dwarf_type *inner = sonde_dwarf_type(dwarf, d->elem);
		if (!inner || inner->kind == SONDE_DWARF_VOID)
			break;
		d = inner;
	}
	if (d->go_runtime_type) {
		uint32_t id = sonde_go_types_runtime(t, descriptor_of(t->go, d->go_runtime_type));
		if (id) {
			uint32_t *slot = sonde_u32_map_put(&t->by_dwarf, dwarf_id, NULL);
			if (slot)
				*slot = id;
			return id;
		}
	}
	const struct sonde_dwarf_type *bare = sonde_dwarf_type_bare(dwarf, dwarf_id);
	if (!bare)
		return SONDE_GO_TYPE_UNKNOWN;
	uint32_t id;
	struct sonde_go_type *type = new_type(t, &id);
	uint32_t *slot = type ? sonde_u32_map_put(&t->by_dwarf, dwarf_id, NULL) : NULL;
	if (!slot)
		return SONDE_GO_TYPE_UNKNOWN;
	*slot = id; /* before its parts: types are recursive */
	type->dwarf_id = dwarf_id;
	type->name = d->name;
	type->size_bytes = bare->size_bytes;
	type->kind = d->go_kind ? kind_of_dwarf(d) : kind_of_dwarf(bare);
	type->is_direct = type->kind == SONDE_GO_KIND_POINTER || type->kind == SONDE_GO_KIND_MAP ||
		type->kind == SONDE_GO_KIND_CHAN || type->kind == SONDE_GO_KIND_FUNC ||
		type->kind == SONDE_GO_KIND_UNSAFE_POINTER;
	switch (type->kind) {
	case SONDE_GO_KIND_POINTER:
		type->elem = sonde_go_types_dwarf(t, bare->elem);
		break;
	case SONDE_GO_KIND_ARRAY:
		type->elem = sonde_go_types_dwarf(t, bare->elem);
		type->count = bare->count;
		break;
	case SONDE_GO_KIND_SLICE: {
		const struct sonde_dwarf_type *array =
			sonde_dwarf_type_bare(dwarf, member_type(t, bare, "array"));
		type->elem = array ? sonde_go_types_dwarf(t, array->elem) : 0;
		break;
	}
	case SONDE_GO_KIND_INTERFACE:
		type->eface = bare->n_members && !strcmp(bare->members[0].name, "_type");
		break;
	case SONDE_GO_KIND_MAP:
	case SONDE_GO_KIND_CHAN:
		type->elem = d->go_elem ? sonde_go_types_dwarf(t, d->go_elem)
					: sonde_go_types_dwarf(t, bare->go_elem);
		type->key = sonde_go_types_dwarf(t, d->go_key ? d->go_key : bare->go_key);
		break;
	}
	return id;
}

uint32_t sonde_go_types_dwarf(struct sonde_go_types *t, uint64_t dwarf_id)
{
	if (!dwarf_id || t->depth >= MAX_DEPTH)
		return SONDE_GO_TYPE_UNKNOWN;
	t->depth++;
	uint32_t id = make_dwarf(t, dwarf_id);
	t->depth--;
	return id;
}

uint32_t sonde_go_types_named(struct sonde_go_types *t, const char *name, uint64_t size_bytes)
{
	uint32_t id;
	struct sonde_go_type *type = new_type(t, &id);
	if (!type)
		return SONDE_GO_TYPE_UNKNOWN;
	const char *copy = sonde_arena_strdup(&t->arena, name);
	type->name = copy ? copy : "";
	type->size_bytes = size_bytes;
	type->has_slots = true;
	return id;
}

uint32_t sonde_go_types_find(struct sonde_go_types *t, const char *name)
{
	const struct sonde_dwarf_type *d = sonde_dwarf_type_find(t->go->dwarf, name);
	return d ? sonde_go_types_dwarf(t, d->id) : SONDE_GO_TYPE_UNKNOWN;
}

uint32_t sonde_go_types_pointer(struct sonde_go_types *t, uint32_t elem)
{
	char *name = sonde_arena_printf(&t->arena, "*%s", sonde_go_type_of(t, elem)->name);
	uint32_t id = name ? sonde_go_types_find(t, name) : SONDE_GO_TYPE_UNKNOWN;
	if (!name || id)
		return id;
	struct sonde_go_type *type = new_type(t, &id);
	if (!type)
		return SONDE_GO_TYPE_UNKNOWN;
	type->name = name;
	type->size_bytes = t->go->word_bytes;
	type->kind = SONDE_GO_KIND_POINTER;
	type->elem = elem;
	type->is_direct = true;
	return id;
}

/* --- slots --- */

SONDE_DEFINE_VEC(slot_vec, struct sonde_go_slot)

struct slot_builder {
	struct sonde_go_types *t;
	struct slot_vec slots;
	unsigned n_visits;
	bool too_many;
};

static void add_type_slots(struct slot_builder *b, uint32_t id, uint64_t offset, int depth);

static void add_slot(struct slot_builder *b, uint64_t offset, uint8_t kind, uint32_t elem)
{
	if (b->slots.n >= MAX_SLOTS ||
		!slot_vec_push(&b->slots, (struct sonde_go_slot){offset, elem, kind}))
		b->too_many = true;
}

/*
 * A field of type `[0]*T` in front of an unsafe.Pointer says what that leads to (sync/atomic.Pointer and its like): T. 0
 * for any other field.
 */
static uint32_t marked_by(const struct sonde_go_types *t, uint32_t field)
{
	const struct sonde_go_type *array = sonde_go_type_of(t, field);
	const struct sonde_go_type *elem = sonde_go_type_of(t, array->elem);
	return array->kind == SONDE_GO_KIND_ARRAY && !array->count &&
			elem->kind == SONDE_GO_KIND_POINTER
		? elem->elem
		: 0;
}

/* The common beginning of a HashTrieMap's entries and inner nodes (internal/sync, unique, internal/concurrent). */
static bool is_trie_node(const struct sonde_go_type *type)
{
	const char *dot = strstr(type->name, ".node[");
	return dot && type->size_bytes == 1 &&
		(!strncmp(type->name, "internal/sync.", 14) ||
			!strncmp(type->name, "internal/concurrent.", 20) ||
			!strncmp(type->name, "unique.", 7));
}

/* The slots from `first` on are those of a struct, whose untyped pointers mean more than their types say. */
static void explain_untyped(
	struct slot_builder *b, const struct sonde_go_type *type, size_t first, uint32_t marked)
{
	struct sonde_go_slot *slots = b->slots.items + first;
	size_t n = b->slots.n - first;
	if (!n || b->too_many)
		return;
	if (!strncmp(type->name, "weak.Pointer[", 13) ||
		!strncmp(type->name, "go.shape.struct { weak._ [0]", 28)) {
		slots->kind = SONDE_GO_SLOT_WEAK;
	} else if (marked && n == 1 && slots->kind == SONDE_GO_SLOT_POINTER && !slots->elem) {
		slots->elem = marked;
		if (is_trie_node(sonde_go_type_of(b->t, marked)))
			slots->kind = SONDE_GO_SLOT_TRIE_NODE;
	} else if (!strcmp(type->name, "sync.Pool")) {
		/* local, localSize, victim, victimSize: [n]poolLocal, one a processor */
		uint32_t local = sonde_go_types_find(b->t, "sync.poolLocal");
		for (size_t i = 0; i < n; i++) {
			if (slots[i].kind == SONDE_GO_SLOT_POINTER && !slots[i].elem && local)
				slots[i] = (struct sonde_go_slot){
					slots[i].offset_bytes, local, SONDE_GO_SLOT_COUNTED};
		}
	} else if (!strcmp(type->name, "sync.eface") && n == 2) {
		slots->kind = SONDE_GO_SLOT_EFACE;
		b->slots.n--;
	} else if (!strcmp(type->name, "reflect.Value") && n == 2) {
		slots->kind = SONDE_GO_SLOT_REFLECT;
		b->slots.n--;
	}
}

static void add_pointer_slot(struct slot_builder *b, uint64_t offset, uint32_t elem)
{
	const char *name = sonde_go_type_of(b->t, elem)->name;
	if (!strcmp(name, "internal/abi.Type") || !strcmp(name, "reflect.rtype"))
		add_slot(b, offset, SONDE_GO_SLOT_DESCRIPTOR, elem);
	else if (!strcmp(name, "iter.coro")) /* linked to the runtime's, which has fields */
		add_slot(b, offset, SONDE_GO_SLOT_POINTER,
			sonde_go_types_find(b->t, "runtime.coro"));
	else
		add_slot(b, offset, SONDE_GO_SLOT_POINTER, elem);
}

static void add_struct_slots(struct slot_builder *b, uint32_t id, uint64_t offset, int depth)
{
	const struct sonde_go_type *type = sonde_go_type_of(b->t, id);
	size_t first = b->slots.n;
	uint32_t marked = 0;
	struct sonde_go_members it = sonde_go_members_of(b->t, id);
	struct sonde_go_member m;
	while (sonde_go_members_next(&it, &m)) {
		marked = marked ? marked : marked_by(b->t, m.type);
		add_type_slots(b, m.type, offset + m.offset_bytes, depth);
	}
	explain_untyped(b, type, first, marked);
}

static void add_type_slots(struct slot_builder *b, uint32_t id, uint64_t offset, int depth)
{
	const struct sonde_go_type *type = sonde_go_type_of(b->t, id);
	if (depth > MAX_DEPTH || b->too_many || ++b->n_visits > MAX_VISITS) {
		b->too_many = true;
		return;
	}
	switch (type->kind) {
	case SONDE_GO_KIND_POINTER:
		add_pointer_slot(b, offset, type->elem);
		break;
	case SONDE_GO_KIND_UNSAFE_POINTER:
		add_slot(b, offset, SONDE_GO_SLOT_POINTER, 0);
		break;
	case SONDE_GO_KIND_STRING:
		add_slot(b, offset, SONDE_GO_SLOT_STRING, 0);
		break;
	case SONDE_GO_KIND_SLICE:
		add_slot(b, offset, SONDE_GO_SLOT_SLICE, type->elem);
		break;
	case SONDE_GO_KIND_INTERFACE:
		add_slot(b, offset, type->eface ? SONDE_GO_SLOT_EFACE : SONDE_GO_SLOT_IFACE, 0);
		break;
	case SONDE_GO_KIND_MAP:
		add_slot(b, offset, SONDE_GO_SLOT_MAP, id);
		break;
	case SONDE_GO_KIND_CHAN:
		add_slot(b, offset, SONDE_GO_SLOT_CHAN, id);
		break;
	case SONDE_GO_KIND_FUNC:
		add_slot(b, offset, SONDE_GO_SLOT_FUNC, 0);
		break;
	case SONDE_GO_KIND_STRUCT:
		add_struct_slots(b, id, offset, depth + 1);
		break;
	case SONDE_GO_KIND_ARRAY: {
		/* Its element is complete first, so that no type is written out twice. */
		const struct sonde_go_type *elem = sonde_go_types_slots(b->t, type->elem);
		if (!elem->n_slots)
			break;
		if (type->count > MAX_ARRAY_SLOTS / elem->n_slots) {
			add_slot(b, offset, SONDE_GO_SLOT_ARRAY, id);
			break;
		}
		for (uint64_t i = 0; i < type->count; i++)
			add_type_slots(b, type->elem, offset + i * elem->size_bytes, depth + 1);
		break;
	}
	}
}

/* What the builder gathered becomes the type's. */
static void keep_slots(struct slot_builder *b, struct sonde_go_type *type)
{
	if (b->too_many)
		sonde_notes_add(b->t->go->notes, "type with too many pointers: typed in part", 0,
			"%s", type->name);
	struct sonde_go_slot *slots =
		sonde_arena_array(&b->t->arena, struct sonde_go_slot, b->slots.n);
	if (slots && b->slots.n) {
		memcpy(slots, b->slots.items, b->slots.n * sizeof(*slots));
		type->slots = slots;
		type->n_slots = (uint32_t)b->slots.n;
	}
	slot_vec_deinit(&b->slots);
}

const struct sonde_go_type *sonde_go_types_slots(struct sonde_go_types *t, uint32_t id)
{
	struct sonde_go_type *type = sonde_go_type_of(t, id);
	if (type->has_slots)
		return type;
	if (t->slot_depth >= MAX_DEPTH) {
		sonde_notes_add(t->go->notes, "type nested too deep", 0, "%s", type->name);
		return type;
	}
	t->slot_depth++;
	type->has_slots = true;
	struct slot_builder b = {.t = t};
	add_type_slots(&b, id, 0, 0);
	keep_slots(&b, type);
	t->slot_depth--;
	return type;
}

uint32_t sonde_go_types_composed(struct sonde_go_types *t, const char *name, uint64_t size_bytes,
	const struct sonde_go_part *parts, size_t n)
{
	uint32_t id = sonde_go_types_named(t, name, size_bytes);
	if (!id)
		return 0;
	struct slot_builder b = {.t = t};
	for (size_t i = 0; i < n; i++)
		add_type_slots(&b, parts[i].type, parts[i].offset_bytes, 0);
	keep_slots(&b, sonde_go_type_of(t, id));
	return id;
}

/* The field of a struct that covers offset: its name appended, its type returned, *offset made relative to it. 0: none. */
static uint32_t enter_field(
	struct sonde_go_types *t, uint32_t id, uint64_t *offset, struct sonde_buf *to)
{
	struct sonde_go_members it = sonde_go_members_of(t, id);
	struct sonde_go_member m;
	while (sonde_go_members_next(&it, &m)) {
		if (*offset < m.offset_bytes ||
			*offset - m.offset_bytes >= sonde_go_type_of(t, m.type)->size_bytes)
			continue;
		sonde_buf_printf(to, ".%s", sonde_go_member_name(t, &m));
		*offset -= m.offset_bytes;
		return m.type;
	}
	return 0;
}

void sonde_go_types_field(
	struct sonde_go_types *t, uint32_t id, uint64_t offset, struct sonde_buf *to)
{
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		const struct sonde_go_type *type = sonde_go_type_of(t, id);
		const struct sonde_go_type *elem = sonde_go_type_of(t, type->elem);
		uint32_t inner = 0;
		if (type->kind == SONDE_GO_KIND_STRUCT) {
			inner = enter_field(t, id, &offset, to);
		} else if (type->kind == SONDE_GO_KIND_ARRAY && elem->size_bytes &&
			offset / elem->size_bytes < type->count) {
			sonde_buf_printf(to, "[%" PRIu64 "]", offset / elem->size_bytes);
			offset %= elem->size_bytes;
			inner = type->elem;
		} else if (type->kind != SONDE_GO_KIND_INVALID && offset < type->size_bytes) {
			return; /* a pointer, or a word of a string, slice, interface: the field says it */
		}
		if (!inner) {
			sonde_buf_printf(to, "+%" PRIu64, offset);
			return;
		}
		id = inner;
	}
}

uint32_t sonde_go_types_global_at(struct sonde_go_types *t, uint64_t addr)
{
	size_t n, low = 0;
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(t->go->dwarf, &n);
	uint64_t file_addr = addr - t->go->bias;
	for (size_t high = n; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (globals[middle].addr <= file_addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return UINT32_MAX;
	const struct sonde_dwarf_global *g = &globals[low - 1];
	uint32_t id = sonde_go_types_dwarf(t, g->type);
	return file_addr - g->addr < sonde_go_type_of(t, id)->size_bytes ? (uint32_t)(low - 1)
									 : UINT32_MAX;
}

struct sonde_error *sonde_go_types_open(struct sonde_go *go, struct sonde_go_types **ret)
{
	sonde_cleanup(sonde_go_types) struct sonde_go_types *t = sonde_new(struct sonde_go_types);
	if (!t)
		return &sonde_enomem;
	t->go = go;
	sonde_arena_init(&t->arena);
	uint32_t id;
	struct sonde_go_type *unknown = new_type(t, &id);
	if (!unknown)
		return &sonde_enomem;
	unknown->name = "unknown";
	unknown->has_slots = true;
	t->string_id = sonde_go_types_named(t, "string", 1);
	const struct sonde_dwarf_type *u8 = sonde_dwarf_type_find(go->dwarf, "uint8");
	t->uint8_id = u8 ? sonde_go_types_dwarf(t, u8->id) : sonde_go_types_named(t, "uint8", 1);
	if (!t->string_id || !t->uint8_id)
		return &sonde_enomem;
	*ret = sonde_take(t);
	return NULL;
}

void sonde_go_types_free(struct sonde_go_types *t)
{
	if (!t)
		return;
	sonde_arena_deinit(&t->arena);
	sonde_go_type_vec_deinit(&t->by_id);
	sonde_u32_map_deinit(&t->by_runtime);
	sonde_u32_map_deinit(&t->by_dwarf);
	free(t);
}
