/* src/object/dwarf_names.c: the index of top-level names, and what is found by it: types, constants, globals. */
#include "object/dwarf_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* FNV-1a, folded; see base/map.h on keyless hashing. */
static size_t hash_name(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (; *name; name++)
		hash = (hash ^ (uint8_t)*name) * 0x100000001b3u;
	return hash ^ (hash >> 29);
}

static size_t name_slot(const struct sonde_dwarf_name_table *table, const char *name)
{
	size_t i = hash_name(name) & (table->cap - 1);
	while (table->slots[i] && strcmp(table->names.items[table->slots[i] - 1].name, name))
		i = (i + 1) & (table->cap - 1);
	return i;
}

static bool grow_names(struct sonde_dwarf_name_table *table)
{
	struct sonde_dwarf_name_table bigger = *table;
	bigger.cap = table->cap ? table->cap * 2 : 1024;
	bigger.slots = sonde_new_array(uint32_t, bigger.cap);
	if (!bigger.slots)
		return false;
	for (size_t i = 0; i < table->cap; i++) {
		if (table->slots[i])
			bigger.slots[name_slot(&bigger,
				table->names.items[table->slots[i] - 1].name)] = table->slots[i];
	}
	free(table->slots);
	*table = bigger;
	return true;
}

bool sonde_dwarf_name_add(struct sonde_dwarf_name_table *table, const char *name, uint64_t id)
{
	struct sonde_dwarf_name entry = {.name = name, .id = id};
	if (table->names.n >= UINT32_MAX - 1 ||
		(table->names.n + 1 > table->cap / 2 && !grow_names(table)) ||
		!sonde_dwarf_names_push(&table->names, entry))
		return false;
	size_t slot = name_slot(table, name);
	if (!table->slots[slot])
		table->slots[slot] = (uint32_t)table->names.n;
	return true;
}

const struct sonde_dwarf_name *sonde_dwarf_name_lookup(
	const struct sonde_dwarf_name_table *table, const char *name)
{
	if (!table->cap)
		return NULL;
	uint32_t found = table->slots[name_slot(table, name)];
	return found ? &table->names.items[found - 1] : NULL;
}

void sonde_dwarf_name_table_deinit(struct sonde_dwarf_name_table *table)
{
	sonde_dwarf_names_deinit(&table->names);
	free(table->slots);
	*table = (struct sonde_dwarf_name_table){0};
}

static bool is_type(int tag)
{
	switch (tag) {
	case DW_TAG_base_type:
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
	case DW_TAG_union_type:
	case DW_TAG_array_type:
	case DW_TAG_typedef:
	case DW_TAG_enumeration_type:
	case DW_TAG_subroutine_type:
	case DW_TAG_unspecified_type:
	case DW_TAG_ptr_to_member_type:
	case DW_TAG_subrange_type:
	case DW_TAG_string_type:
	case DW_TAG_set_type:
		return true;
	default:
		return false;
	}
}

/* One DIE at the top of a unit. false = out of memory. */
static bool index_die(struct sonde_dwarf *dwarf, Dwarf_Die *die, int tag)
{
	enum sonde_dwarf_name_kind kind;
	uint64_t id = sonde_dwarf_die_id(dwarf, die);
	if (is_type(tag)) {
		if (!sonde_u64_vec_push(&dwarf->type_ids, id))
			return false;
		if (dwarf_hasattr(die, DW_AT_declaration))
			return true;
		kind = SONDE_DWARF_NAME_TYPE;
	} else if (tag == DW_TAG_constant) {
		kind = SONDE_DWARF_NAME_CONSTANT;
	} else if (tag == DW_TAG_variable) {
		if (!dwarf_hasattr(die, DW_AT_location))
			return true;
		kind = SONDE_DWARF_NAME_GLOBAL;
	} else if (tag == DW_TAG_subprogram) {
		if (!dwarf_hasattr(die, DW_AT_low_pc) && !dwarf_hasattr(die, DW_AT_ranges))
			return true;
		kind = SONDE_DWARF_NAME_FUNCTION;
	} else {
		return true;
	}
	const char *name = sonde_dwarf_die_name(dwarf, die);
	return !*name || sonde_dwarf_name_add(&dwarf->tables[kind], name, id);
}

static bool index_children(struct sonde_dwarf *dwarf, Dwarf_Die *parent, int depth)
{
	Dwarf_Die die;
	int rc = dwarf_child(parent, &die);
	while (rc == 0) {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_namespace || tag == DW_TAG_module) {
			if (depth < SONDE_DWARF_MAX_DEPTH &&
				!index_children(dwarf, &die, depth + 1))
				return false;
		} else if (!index_die(dwarf, &die, tag)) {
			return false;
		}
		rc = sonde_dwarf_sibling(&die);
	}
	if (rc < 0)
		sonde_notes_add(dwarf->notes, "DWARF unit damaged", 0, "%s: behind DIE 0x%" PRIx64,
			dwarf->name, (uint64_t)dwarf_dieoffset(parent));
	return true;
}

/* Units of .debug_types (DWARF 4): types that other units refer to by signature. */
static bool index_type_units(struct sonde_dwarf *dwarf)
{
	sonde_dwarf_need(dwarf, SONDE_DWARF_TYPES);
	Dwarf_Off start = 0, next = 0, type_offset;
	size_t header_bytes;
	uint64_t signature;
	while (dwarf_next_unit(dwarf->libdw, start, &next, &header_bytes, NULL, NULL, NULL, NULL,
		       &signature, &type_offset) == 0 &&
		next > start) {
		Dwarf_Die die;
		if (dwarf_offdie_types(dwarf->libdw, start + header_bytes, &die) &&
			!index_children(dwarf, &die, 0))
			return false;
		start = next;
	}
	return true;
}

bool sonde_dwarf_index_next(struct sonde_dwarf *dwarf)
{
	bool types = dwarf->n_indexed == dwarf->n_units && !dwarf->type_units_indexed &&
		dwarf->image.sections[SONDE_DWARF_TYPES].packed;
	bool fine = true;
	if (types) {
		dwarf->type_units_indexed = true;
		fine = index_type_units(dwarf);
	} else if (dwarf->n_indexed < dwarf->n_units) {
		Dwarf_Die die;
		uint32_t number = dwarf->index_order[dwarf->n_indexed++];
		fine = !dwarf_offdie(dwarf->libdw, dwarf->units[number].id, &die) ||
			index_children(dwarf, &die, 0);
	} else {
		return false;
	}
	if (!fine)
		sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0, "%s: names", dwarf->name);
	return true;
}

void sonde_dwarf_index_all(struct sonde_dwarf *dwarf)
{
	while (sonde_dwarf_index_next(dwarf))
		;
}

uint64_t sonde_dwarf_name_find(
	struct sonde_dwarf *dwarf, enum sonde_dwarf_name_kind kind, const char *name)
{
	do {
		const struct sonde_dwarf_name *found =
			sonde_dwarf_name_lookup(&dwarf->tables[kind], name);
		if (found)
			return found->id;
	} while (sonde_dwarf_index_next(dwarf));
	return 0;
}

const struct sonde_dwarf_type *sonde_dwarf_type_find(struct sonde_dwarf *dwarf, const char *name)
{
	uint64_t id = sonde_dwarf_name_find(dwarf, SONDE_DWARF_NAME_TYPE, name);
	return id ? sonde_dwarf_type(dwarf, id) : NULL;
}

static int compare_u64(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

const uint64_t *sonde_dwarf_types(struct sonde_dwarf *dwarf, size_t *n)
{
	if (!dwarf->types_listed) {
		dwarf->types_listed = true;
		sonde_dwarf_index_all(dwarf);
		if (dwarf->type_ids.n)
			qsort(dwarf->type_ids.items, dwarf->type_ids.n, sizeof(uint64_t),
				compare_u64);
	}
	*n = dwarf->type_ids.n;
	return dwarf->type_ids.items;
}

uint64_t sonde_dwarf_type_by_runtime(struct sonde_dwarf *dwarf, uint64_t go_runtime_type)
{
	if (!go_runtime_type)
		return 0;
	if (!dwarf->runtime_types_indexed) {
		dwarf->runtime_types_indexed = true;
		size_t n;
		const uint64_t *ids = sonde_dwarf_types(dwarf, &n);
		for (size_t i = 0; i < n; i++) {
			Dwarf_Die die;
			uint64_t value;
			bool was_new;
			if (!sonde_dwarf_die(dwarf, ids[i], &die) ||
				!dwarf_hasattr(&die, SONDE_AT_GO_RUNTIME_TYPE) ||
				!sonde_dwarf_attr_u64(&die, SONDE_AT_GO_RUNTIME_TYPE, &value) ||
				!value)
				continue;
			uint64_t *id = sonde_u64_map_put(&dwarf->runtime_types, value, &was_new);
			if (id && was_new)
				*id = ids[i];
		}
	}
	const uint64_t *id = sonde_u64_map_find(&dwarf->runtime_types, go_runtime_type);
	return id ? *id : 0;
}

/* Enumerators stand below their types: looked for only when no constant has the name. */
static void index_enumerators(struct sonde_dwarf *dwarf)
{
	dwarf->enumerators_indexed = true;
	size_t n;
	const uint64_t *ids = sonde_dwarf_types(dwarf, &n);
	for (size_t i = 0; i < n; i++) {
		Dwarf_Die type, die;
		if (!sonde_dwarf_die(dwarf, ids[i], &type) ||
			dwarf_tag(&type) != DW_TAG_enumeration_type)
			continue;
		for (int rc = dwarf_child(&type, &die); rc == 0;) {
			int64_t value;
			const char *name = dwarf_tag(&die) == DW_TAG_enumerator
				? sonde_dwarf_die_name(dwarf, &die)
				: "";
			if (*name && sonde_dwarf_constant_value(&die, &value) &&
				!sonde_dwarf_name_add(&dwarf->enumerators, name, (uint64_t)value)) {
				sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0,
					"%s: enumerators", dwarf->name);
				return;
			}
			rc = sonde_dwarf_sibling(&die);
		}
	}
}

bool sonde_dwarf_constant(struct sonde_dwarf *dwarf, const char *name, int64_t *ret)
{
	Dwarf_Die die;
	uint64_t id = sonde_dwarf_name_find(dwarf, SONDE_DWARF_NAME_CONSTANT, name);
	if (id)
		return sonde_dwarf_die(dwarf, id, &die) && sonde_dwarf_constant_value(&die, ret);
	if (!dwarf->enumerators_indexed)
		index_enumerators(dwarf);
	const struct sonde_dwarf_name *found = sonde_dwarf_name_lookup(&dwarf->enumerators, name);
	if (found)
		*ret = (int64_t)found->id;
	return found;
}

const struct sonde_dwarf_constant_entry *sonde_dwarf_constants(struct sonde_dwarf *dwarf, size_t *n)
{
	if (!dwarf->constants_listed) {
		dwarf->constants_listed = true;
		sonde_dwarf_index_all(dwarf);
		sonde_vec_foreach (name, &dwarf->tables[SONDE_DWARF_NAME_CONSTANT].names) {
			Dwarf_Die die;
			struct sonde_dwarf_constant_entry entry = {.name = name->name};
			if (!sonde_dwarf_die(dwarf, name->id, &die) ||
				!sonde_dwarf_constant_value(&die, &entry.value))
				continue;
			entry.type = sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type);
			if (!sonde_dwarf_constants_vec_push(&dwarf->constants, entry))
				sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0,
					"%s: constants", dwarf->name);
		}
	}
	*n = dwarf->constants.n;
	return dwarf->constants.items;
}

/* false: no fixed address (thread-local, optimised away). */
static bool decode_global(
	struct sonde_dwarf *dwarf, const char *name, uint64_t id, struct sonde_dwarf_global *global)
{
	Dwarf_Die die;
	Dwarf_Attribute attr;
	const struct sonde_dwarf_unit_state *state = sonde_dwarf_state_of(dwarf, id);
	const uint8_t *expr;
	size_t len;
	*global = (struct sonde_dwarf_global){.name = name, .id = id};
	if (!state || !sonde_dwarf_die(dwarf, id, &die) ||
		!dwarf_attr(&die, DW_AT_location, &attr) ||
		!sonde_dwarf_expression(dwarf, &attr, false, 0, &expr, &len) ||
		!sonde_location_static(expr, len, &state->location, &global->addr))
		return false;
	global->type = sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type);
	return true;
}

static int compare_globals(const void *a, const void *b)
{
	const struct sonde_dwarf_global *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

const struct sonde_dwarf_global *sonde_dwarf_globals(struct sonde_dwarf *dwarf, size_t *n)
{
	if (!dwarf->globals_listed) {
		dwarf->globals_listed = true;
		sonde_dwarf_index_all(dwarf);
		sonde_vec_foreach (name, &dwarf->tables[SONDE_DWARF_NAME_GLOBAL].names) {
			struct sonde_dwarf_global global;
			if (decode_global(dwarf, name->name, name->id, &global) &&
				!sonde_dwarf_globals_vec_push(&dwarf->globals, global))
				sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0,
					"%s: globals", dwarf->name);
		}
		if (dwarf->globals.n)
			qsort(dwarf->globals.items, dwarf->globals.n, sizeof(*dwarf->globals.items),
				compare_globals);
	}
	*n = dwarf->globals.n;
	return dwarf->globals.items;
}

const struct sonde_dwarf_global *sonde_dwarf_global_find(
	struct sonde_dwarf *dwarf, const char *name)
{
	struct sonde_dwarf_global global, *kept;
	uint64_t id = sonde_dwarf_name_find(dwarf, SONDE_DWARF_NAME_GLOBAL, name);
	if (!id)
		return NULL;
	const uint64_t *found = sonde_u64_map_find(&dwarf->globals_found, id);
	if (found)
		return (const struct sonde_dwarf_global *)(uintptr_t)*found;
	kept = sonde_arena_alloc(&dwarf->arena, sizeof(*kept));
	if (!kept || !decode_global(dwarf, name, id, &global))
		return NULL;
	*kept = global;
	kept->name = sonde_dwarf_name_lookup(&dwarf->tables[SONDE_DWARF_NAME_GLOBAL], name)->name;
	uint64_t *slot = sonde_u64_map_put(&dwarf->globals_found, id, NULL);
	if (slot)
		*slot = (uintptr_t)kept;
	return kept;
}
