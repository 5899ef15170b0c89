/* src/object/dwarf_types.c: type DIEs -> struct sonde_dwarf_type, each decoded once. */
#include "object/dwarf_internal.h"

#include <inttypes.h>
#include <string.h>

static const char DAMAGED[] = "DWARF type damaged";

SONDE_DEFINE_VEC(members_vec, struct sonde_dwarf_member)

static enum sonde_dwarf_kind kind_of(int tag)
{
	switch (tag) {
	case DW_TAG_base_type:
		return SONDE_DWARF_BASE;
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		return SONDE_DWARF_POINTER;
	case DW_TAG_structure_type:
	case DW_TAG_class_type:
	case DW_TAG_interface_type:
		return SONDE_DWARF_STRUCT;
	case DW_TAG_union_type:
		return SONDE_DWARF_UNION;
	case DW_TAG_array_type:
		return SONDE_DWARF_ARRAY;
	case DW_TAG_typedef:
	case DW_TAG_template_alias:
		return SONDE_DWARF_TYPEDEF;
	case DW_TAG_enumeration_type:
		return SONDE_DWARF_ENUM;
	case DW_TAG_subroutine_type:
	case DW_TAG_subprogram:
		return SONDE_DWARF_FUNCTION;
	default:
		return SONDE_DWARF_OTHER;
	}
}

static bool is_qualifier(int tag)
{
	switch (tag) {
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
	case DW_TAG_shared_type:
		return true;
	default:
		return false;
	}
}

static bool is_type_die(int tag)
{
	return kind_of(tag) != SONDE_DWARF_OTHER || tag == DW_TAG_unspecified_type ||
		tag == DW_TAG_ptr_to_member_type || tag == DW_TAG_subrange_type ||
		tag == DW_TAG_string_type || tag == DW_TAG_set_type || tag == DW_TAG_file_type;
}

static void damaged(struct sonde_dwarf *dwarf, uint64_t id, const char *what)
{
	sonde_notes_add(
		dwarf->notes, DAMAGED, 0, "%s: DIE 0x%" PRIx64 ": %s", dwarf->name, id, what);
}

/* DW_AT_data_member_location: a constant, or, as Go before 1.22 and old C compilers write, plus_uconst in a block. */
static bool member_offset(Dwarf_Die *die, uint64_t *offset)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;
	Dwarf_Block block;
	*offset = 0;
	/* Members of unions have none. */
	if (!dwarf_attr(die, DW_AT_data_member_location, &attr))
		return true;
	if (dwarf_formudata(&attr, &word) == 0) {
		*offset = word;
		return true;
	}
	if (dwarf_formblock(&attr, &block))
		return false;
	struct sonde_location_piece piece;
	struct sonde_location_context context = {0};
	size_t n;
	/* The object's address is pushed first (DWARF 5, section 5.7.6): take it as 0. */
	if (block.length > 30)
		return false;
	uint8_t expr[32] = {DW_OP_lit0};
	memcpy(expr + 1, block.data, block.length);
	if (sonde_location_evaluate(expr, block.length + 1, &context, &piece, 1, &n) || n != 1 ||
		piece.kind != SONDE_LOCATION_ADDR)
		return false;
	*offset = piece.value;
	return true;
}

static void member_bits(Dwarf_Die *die, struct sonde_dwarf_member *member)
{
	uint64_t size, offset, storage_bytes;
	if (!sonde_dwarf_attr_u64(die, DW_AT_bit_size, &size) || !size || size > 64)
		return;
	if (sonde_dwarf_attr_u64(die, DW_AT_data_bit_offset, &offset)) {
		member->offset_bytes += offset / 8;
		offset %= 8;
	} else if (sonde_dwarf_attr_u64(die, DW_AT_bit_offset, &offset) &&
		sonde_dwarf_attr_u64(die, DW_AT_byte_size, &storage_bytes) && storage_bytes <= 8 &&
		offset + size <= storage_bytes * 8) {
		/* DWARF 2 and 3 count from the highest bit of the storage unit. */
		offset = storage_bytes * 8 - offset - size;
	} else {
		offset = 0;
	}
	member->bit_size = (uint8_t)size;
	member->bit_offset = (uint8_t)offset;
}

static bool decode_members(
	struct sonde_dwarf *dwarf, Dwarf_Die *parent, struct sonde_dwarf_type *type)
{
	sonde_cleanup(members_vec) struct members_vec members = {0};
	Dwarf_Die die;
	for (int rc = dwarf_child(parent, &die); rc == 0;) {
		int tag = dwarf_tag(&die);
		bool base = tag == DW_TAG_inheritance;
		/* C++ static members are declarations without a place. */
		if (base ||
			(tag == DW_TAG_member && !dwarf_hasattr(&die, DW_AT_declaration) &&
				!dwarf_hasattr(&die, DW_AT_external))) {
			struct sonde_dwarf_member member = {
				.name = base ? "" : sonde_dwarf_die_name(dwarf, &die),
				.embedded = base ||
					sonde_dwarf_attr_flag(&die, SONDE_AT_GO_EMBEDDED_FIELD),
				.type = sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type),
			};
			if (!member_offset(&die, &member.offset_bytes)) {
				sonde_notes_add(dwarf->notes,
					"DWARF member left out: no fixed offset", 0, "%s: %s.%s",
					dwarf->name, type->name, member.name);
			} else {
				member_bits(&die, &member);
				if (!members_vec_push(&members, member))
					return false;
			}
		}
		rc = sonde_dwarf_sibling(&die);
		if (rc < 0)
			damaged(dwarf, type->id, "members");
	}
	struct sonde_dwarf_member *kept =
		sonde_arena_array(&dwarf->arena, struct sonde_dwarf_member, members.n);
	if (!kept)
		return false;
	if (members.n)
		memcpy(kept, members.items, members.n * sizeof(*kept));
	type->members = kept;
	type->n_members = members.n;
	return true;
}

/*
 * Dimension number `dimension` of an array. The next one is an array type of its own, whose id counts the dimension
 * above the DIE's offset.
 */
static void decode_dimension(
	struct sonde_dwarf *dwarf, Dwarf_Die *parent, struct sonde_dwarf_type *type)
{
	unsigned dimension = (unsigned)(type->id >> SONDE_DWARF_DIMENSION_SHIFT), seen = 0;
	bool more = false;
	Dwarf_Die die;
	for (int rc = dwarf_child(parent, &die); rc == 0 && !more;) {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_subrange_type || tag == DW_TAG_enumeration_type) {
			uint64_t value;
			if (seen == dimension) {
				if (sonde_dwarf_attr_u64(&die, DW_AT_count, &value))
					type->count = value;
				else if (sonde_dwarf_attr_u64(&die, DW_AT_upper_bound, &value))
					/* GCC writes -1 for `int a[0]`: that wraps to 0 as meant. */
					type->count = value == UINT32_MAX ? 0 : value + 1;
			}
			more = seen > dimension;
			seen++;
		}
		rc = sonde_dwarf_sibling(&die);
	}
	type->elem = more && dimension < UINT8_MAX
		? type->id + (1ull << SONDE_DWARF_DIMENSION_SHIFT)
		: sonde_dwarf_attr_ref(dwarf, parent, DW_AT_type);
}

/* Everything but sizes that other types decide: see size_of(). false = out of memory. */
static bool decode(struct sonde_dwarf *dwarf, Dwarf_Die *die, struct sonde_dwarf_type_state *state)
{
	struct sonde_dwarf_type *type = &state->type;
	uint64_t value;
	type->kind = kind_of(dwarf_tag(die));
	type->name = sonde_dwarf_die_name(dwarf, die);
	type->is_declaration = sonde_dwarf_attr_flag(die, DW_AT_declaration);
	if (sonde_dwarf_attr_u64(die, DW_AT_encoding, &value))
		type->encoding = (unsigned)value;
	if (sonde_dwarf_attr_u64(die, SONDE_AT_GO_KIND, &value))
		type->go_kind = (unsigned)value;
	if (sonde_dwarf_attr_u64(die, SONDE_AT_GO_RUNTIME_TYPE, &value))
		type->go_runtime_type = value;
	type->go_elem = sonde_dwarf_attr_ref(dwarf, die, SONDE_AT_GO_ELEM);
	type->go_key = sonde_dwarf_attr_ref(dwarf, die, SONDE_AT_GO_KEY);
	if (type->kind == SONDE_DWARF_ARRAY)
		decode_dimension(dwarf, die, type);
	else
		type->elem = sonde_dwarf_attr_ref(dwarf, die, DW_AT_type);
	bool inner = type->id >> SONDE_DWARF_DIMENSION_SHIFT;
	if (!inner && sonde_dwarf_attr_u64(die, DW_AT_byte_size, &value)) {
		type->size_bytes = value;
		state->sized = true;
	} else if (type->kind == SONDE_DWARF_POINTER) {
		const struct sonde_dwarf_unit_state *unit =
			sonde_dwarf_state_of(dwarf, type->id & SONDE_DWARF_OFFSET_MASK);
		type->size_bytes = unit ? unit->location.address_bytes : dwarf->image.address_bytes;
		state->sized = true;
	} else if (type->kind != SONDE_DWARF_ARRAY && type->kind != SONDE_DWARF_TYPEDEF &&
		type->kind != SONDE_DWARF_ENUM) {
		state->sized = true;
	}
	if (type->kind == SONDE_DWARF_STRUCT || type->kind == SONDE_DWARF_UNION)
		return decode_members(dwarf, die, type);
	return true;
}

/* The state for id, qualifiers looked through, its size perhaps still open. NULL = damaged (noted) or no memory. */
static struct sonde_dwarf_type_state *state_of(
	struct sonde_dwarf *dwarf, uint64_t id, bool *is_void)
{
	*is_void = false;
	struct sonde_dwarf_type_state **kept = sonde_dwarf_type_map_find(&dwarf->types, id);
	if (kept)
		return *kept;
	uint64_t at = id;
	Dwarf_Die die;
	for (int steps = 0;; steps++) {
		if (!at) {
			*is_void = true;
			return NULL;
		}
		uint64_t offset = at & ((1ull << SONDE_DWARF_DIMENSION_SHIFT) - 1);
		if (steps == SONDE_DWARF_MAX_STEPS || !sonde_dwarf_die(dwarf, offset, &die)) {
			damaged(dwarf, id, steps ? "its qualifiers never end" : "no DIE there");
			return NULL;
		}
		if (!is_qualifier(dwarf_tag(&die)))
			break;
		at = sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type);
	}
	kept = sonde_dwarf_type_map_find(&dwarf->types, at);
	struct sonde_dwarf_type_state *state = kept ? *kept : NULL;
	if (!state) {
		if (!is_type_die(dwarf_tag(&die))) {
			damaged(dwarf, id, "not a type");
			return NULL;
		}
		state = sonde_arena_alloc(&dwarf->arena, sizeof(*state));
		if (!state)
			return NULL;
		state->type.id = at;
		if (!decode(dwarf, &die, state)) {
			sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0,
				"%s: type 0x%" PRIx64, dwarf->name, id);
			return NULL;
		}
		kept = sonde_dwarf_type_map_put(&dwarf->types, at, NULL);
		if (!kept)
			return NULL;
		*kept = state;
	}
	if (at != id) {
		kept = sonde_dwarf_type_map_put(&dwarf->types, id, NULL);
		if (!kept)
			return NULL;
		*kept = state;
	}
	return state;
}

/* Sizes that come from other types: typedefs, enums without one, arrays. A cycle or too deep a nest yields 0. */
static uint64_t size_of(struct sonde_dwarf *dwarf, struct sonde_dwarf_type_state *state, int depth)
{
	struct sonde_dwarf_type *type = &state->type;
	if (state->sized)
		return type->size_bytes;
	if (state->sizing || depth == SONDE_DWARF_MAX_STEPS) {
		damaged(dwarf, type->id, "its size depends on itself");
		return 0;
	}
	state->sizing = true;
	bool is_void;
	struct sonde_dwarf_type_state *elem = state_of(dwarf, type->elem, &is_void);
	uint64_t size = elem ? size_of(dwarf, elem, depth + 1) : 0;
	if (type->kind == SONDE_DWARF_ARRAY && __builtin_mul_overflow(size, type->count, &size)) {
		damaged(dwarf, type->id, "array too large");
		size = 0;
	}
	type->size_bytes = size;
	state->sizing = false;
	state->sized = true;
	return size;
}

const struct sonde_dwarf_type *sonde_dwarf_type(struct sonde_dwarf *dwarf, uint64_t id)
{
	bool is_void;
	struct sonde_dwarf_type_state *state = state_of(dwarf, id, &is_void);
	if (is_void) {
		dwarf->void_type.name = "void";
		return &dwarf->void_type;
	}
	if (!state)
		return NULL;
	size_of(dwarf, state, 0);
	return &state->type;
}

const struct sonde_dwarf_type *sonde_dwarf_type_bare(struct sonde_dwarf *dwarf, uint64_t id)
{
	for (int steps = 0; steps < SONDE_DWARF_MAX_STEPS; steps++) {
		const struct sonde_dwarf_type *type = sonde_dwarf_type(dwarf, id);
		if (!type || type->kind != SONDE_DWARF_TYPEDEF)
			return type;
		id = type->elem;
	}
	damaged(dwarf, id, "typedefs never end");
	return NULL;
}

/* budget bounds members looked at in all: hostile types may contain themselves many times over. */
static const struct sonde_dwarf_member *find_member(struct sonde_dwarf *dwarf,
	const struct sonde_dwarf_type *type, const char *name, uint64_t *offset_bytes, int depth,
	size_t *budget)
{
	if (type->kind == SONDE_DWARF_TYPEDEF)
		type = sonde_dwarf_type_bare(dwarf, type->id);
	if (!type)
		return NULL;
	for (size_t i = 0; i < type->n_members; i++) {
		if (*type->members[i].name && !strcmp(type->members[i].name, name)) {
			*offset_bytes = type->members[i].offset_bytes;
			return &type->members[i];
		}
	}
	for (size_t i = 0; i < type->n_members && depth < 16; i++) {
		const struct sonde_dwarf_member *outer = &type->members[i];
		if (*outer->name)
			continue;
		if (!*budget)
			return NULL;
		--*budget;
		const struct sonde_dwarf_type *inner = sonde_dwarf_type(dwarf, outer->type);
		const struct sonde_dwarf_member *found = inner
			? find_member(dwarf, inner, name, offset_bytes, depth + 1, budget)
			: NULL;
		if (found) {
			*offset_bytes += outer->offset_bytes;
			return found;
		}
	}
	return NULL;
}

const struct sonde_dwarf_member *sonde_dwarf_member_find(struct sonde_dwarf *dwarf,
	const struct sonde_dwarf_type *type, const char *name, uint64_t *offset_bytes)
{
	uint64_t offset = 0;
	size_t budget = 4096;
	const struct sonde_dwarf_member *member =
		find_member(dwarf, type, name, &offset, 0, &budget);
	if (member && offset_bytes)
		*offset_bytes = offset;
	return member;
}
