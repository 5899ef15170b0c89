/* src/object/dwarf_scopes.c: pc -> unit, function, inlined calls, variables and where each of them lies. */
#include "object/dwarf_internal.h"

#include <inttypes.h>
#include <string.h>
#include "base/cursor.h"
#include "base/varint.h"

/* Entries of one location list that are looked at. The longest seen in real files has some thousands. */
enum { MAX_LIST_ENTRIES = 1 << 16 };

struct location_list {
	struct sonde_dwarf_unit_state *state;
	struct sonde_cursor c;
	uint64_t base; /* low_pc of the unit, until an entry changes it */
	uint64_t pc;
	const uint8_t *expr; /* of the entry that holds pc */
	size_t len;
	struct sonde_dwarf_places *all; /* NULL, or gets every entry: then none holds pc */
	bool no_memory;
};

/* An entry for [low, high): whether it is the one asked for. */
static bool entry_holds(
	struct location_list *list, uint64_t low, uint64_t high, const uint8_t *expr, size_t len)
{
	if (!list->all)
		return list->pc >= low && list->pc < high;
	if (expr &&
		!sonde_dwarf_places_push(list->all,
			(struct sonde_dwarf_place){low, high, expr, len, &list->state->location}))
		list->no_memory = true;
	return false;
}

static void list_damaged(struct sonde_dwarf *dwarf, const char *section, uint64_t offset)
{
	sonde_notes_add(dwarf->notes, "DWARF location list damaged", 0, "%s: %s + 0x%" PRIx64,
		dwarf->name, section, offset);
}

/* DWARF 4, section 2.6.2: pairs of addresses relative to a base, each with a counted expression. */
static bool search_loc(struct location_list *list)
{
	unsigned word = list->state->location.address_bytes;
	uint64_t base_mark = word == 4 ? UINT32_MAX : UINT64_MAX;
	for (int i = 0; i < MAX_LIST_ENTRIES; i++) {
		uint64_t low = sonde_cursor_word(&list->c, word);
		uint64_t high = sonde_cursor_word(&list->c, word);
		if (list->c.bad || (!low && !high))
			return false;
		if (low == base_mark) {
			list->base = high;
			continue;
		}
		size_t len = sonde_cursor_u16(&list->c);
		const uint8_t *expr = sonde_cursor_bytes(&list->c, len);
		if (expr && entry_holds(list, low + list->base, high + list->base, expr, len)) {
			list->expr = expr;
			list->len = len;
			return true;
		}
	}
	return false;
}

static uint64_t indexed(struct location_list *list, uint64_t index)
{
	const struct sonde_location_unit *unit = &list->state->location;
	if (!unit->addresses || index >= unit->addresses_bytes / unit->address_bytes) {
		list->c.bad = true;
		return 0;
	}
	struct sonde_cursor c = sonde_cursor_over(unit->addresses, unit->addresses_bytes);
	sonde_cursor_skip(&c, index * unit->address_bytes);
	return sonde_cursor_word(&c, unit->address_bytes);
}

/* DWARF 5, section 7.7.3. A default location holds where no other entry does. */
static bool search_loclists(struct location_list *list)
{
	struct sonde_cursor *c = &list->c;
	unsigned word = list->state->location.address_bytes;
	for (int i = 0; i < MAX_LIST_ENTRIES && !c->bad; i++) {
		uint64_t low = 0, high = 0;
		bool is_default = false;
		switch (sonde_cursor_u8(c)) {
		case DW_LLE_end_of_list:
			return list->expr;
		case DW_LLE_base_addressx:
			list->base = indexed(list, sonde_varint_u64(c));
			continue;
		case DW_LLE_base_address:
			list->base = sonde_cursor_word(c, word);
			continue;
		case DW_LLE_GNU_view_pair:
			sonde_varint_u64(c);
			sonde_varint_u64(c);
			continue;
		case DW_LLE_startx_endx:
			low = indexed(list, sonde_varint_u64(c));
			high = indexed(list, sonde_varint_u64(c));
			break;
		case DW_LLE_startx_length:
			low = indexed(list, sonde_varint_u64(c));
			high = low + sonde_varint_u64(c);
			break;
		case DW_LLE_offset_pair:
			low = list->base + sonde_varint_u64(c);
			high = list->base + sonde_varint_u64(c);
			break;
		case DW_LLE_default_location:
			is_default = true;
			break;
		case DW_LLE_start_end:
			low = sonde_cursor_word(c, word);
			high = sonde_cursor_word(c, word);
			break;
		case DW_LLE_start_length:
			low = sonde_cursor_word(c, word);
			high = low + sonde_varint_u64(c);
			break;
		default:
			c->bad = true;
			continue;
		}
		uint64_t len = sonde_varint_u64(c);
		const uint8_t *expr = sonde_cursor_bytes(c, len);
		bool holds = entry_holds(list, low, high, expr, len);
		if (expr && !list->all && (is_default || holds)) {
			list->expr = expr;
			list->len = len;
			if (holds)
				return true;
		}
	}
	return list->expr;
}

/* Where the list starts in its section; false = no list, or damaged. */
static bool list_offset(struct sonde_dwarf *dwarf, Dwarf_Attribute *attr,
	const struct sonde_dwarf_unit_state *state, uint64_t *offset)
{
	const __auto_type info = &dwarf->image.sections[SONDE_DWARF_INFO];
	struct sonde_cursor c = sonde_cursor_over(info->data, info->size_bytes);
	sonde_cursor_seek(&c, (uint64_t)(attr->valp - info->data));
	switch (attr->form) {
	case DW_FORM_data4:
		*offset = sonde_cursor_u32(&c);
		return state->location.version < 4 && !c.bad;
	case DW_FORM_data8:
		*offset = sonde_cursor_u64(&c);
		return state->location.version < 4 && !c.bad;
	case DW_FORM_sec_offset:
		*offset = sonde_cursor_word(&c, state->location.offset_bytes);
		return !c.bad;
	case DW_FORM_loclistx: {
		/* An index into the offsets that stand at the unit's base, which they are relative to. */
		const __auto_type lists = &dwarf->image.sections[SONDE_DWARF_LOCLISTS];
		uint64_t at, index = sonde_varint_u64(&c);
		if (c.bad || __builtin_mul_overflow(index, state->location.offset_bytes, &at) ||
			__builtin_add_overflow(at, state->loclists_base, &at))
			return false;
		c = sonde_cursor_over(lists->data, lists->packed ? lists->size_bytes : 0);
		sonde_cursor_seek(&c, at);
		*offset = sonde_cursor_word(&c, state->location.offset_bytes);
		return !c.bad && !__builtin_add_overflow(*offset, state->loclists_base, offset);
	}
	default:
		return false;
	}
}

/* The unit that an attribute's bytes stand in. */
static struct sonde_dwarf_unit_state *attr_state(
	struct sonde_dwarf *dwarf, const Dwarf_Attribute *attr)
{
	const __auto_type info = &dwarf->image.sections[SONDE_DWARF_INFO];
	if (attr->valp < info->data || attr->valp >= info->data + info->size_bytes)
		return NULL;
	return sonde_dwarf_state_of(dwarf, (uint64_t)(attr->valp - info->data));
}

/* Search the list that an attribute leads to. */
static bool search_list(
	struct sonde_dwarf *dwarf, Dwarf_Attribute *attr, struct location_list *list)
{
	struct sonde_dwarf_unit_state *state = attr_state(dwarf, attr);
	if (!state)
		return false;
	enum sonde_dwarf_section section =
		state->location.version >= 5 ? SONDE_DWARF_LOCLISTS : SONDE_DWARF_LOC;
	sonde_dwarf_need(dwarf, section);
	const __auto_type lists = &dwarf->image.sections[section];
	uint64_t offset;
	if (!list_offset(dwarf, attr, state, &offset) || !lists->packed) {
		list_damaged(dwarf, ".debug_info", (uint64_t)(attr->valp - dwarf->image.map));
		return false;
	}
	list->state = state;
	list->c = sonde_cursor_over(lists->data, lists->size_bytes);
	list->base = dwarf->units[state - dwarf->unit_states].low_pc;
	sonde_cursor_seek(&list->c, offset);
	bool found = section == SONDE_DWARF_LOCLISTS ? search_loclists(list) : search_loc(list);
	if (list->c.bad)
		list_damaged(dwarf, sonde_dwarf_section_name(section), offset);
	return found;
}

bool sonde_dwarf_expression(struct sonde_dwarf *dwarf, Dwarf_Attribute *attr, bool has_pc,
	uint64_t pc, const uint8_t **expr, size_t *len)
{
	switch (attr->form) {
	case DW_FORM_exprloc:
	case DW_FORM_block:
	case DW_FORM_block1: /* what Go writes; libdw's own location functions refuse it */
	case DW_FORM_block2:
	case DW_FORM_block4: {
		Dwarf_Block block;
		if (dwarf_formblock(attr, &block))
			return false;
		*expr = block.data;
		*len = block.length;
		return true;
	}
	}
	struct location_list list = {.pc = pc};
	if (!has_pc || !search_list(dwarf, attr, &list))
		return false;
	*expr = list.expr;
	*len = list.len;
	return true;
}

static bool collect_functions(struct sonde_dwarf *dwarf, Dwarf_Die *parent, bool deep, int depth,
	struct sonde_dwarf_ranges *to)
{
	Dwarf_Die die;
	for (int rc = dwarf_child(parent, &die); rc == 0;) {
		int tag = dwarf_tag(&die);
		if (tag == DW_TAG_subprogram &&
			(dwarf_hasattr(&die, DW_AT_low_pc) || dwarf_hasattr(&die, DW_AT_ranges)) &&
			!sonde_dwarf_die_ranges(dwarf, &die, sonde_dwarf_die_id(dwarf, &die), to))
			return false;
		if (deep && depth < SONDE_DWARF_MAX_DEPTH && dwarf_haschildren(&die) > 0 &&
			!collect_functions(dwarf, &die, deep, depth + 1, to))
			return false;
		rc = sonde_dwarf_sibling(&die);
	}
	return true;
}

/* Ranges of a unit's functions. Go's stand at the top; elsewhere functions may lie in anything. */
static struct sonde_dwarf_ranges *unit_functions(struct sonde_dwarf *dwarf, size_t number)
{
	struct sonde_dwarf_unit_state *state = &dwarf->unit_states[number];
	Dwarf_Die die;
	if (state->functions_indexed)
		return &state->functions;
	state->functions_indexed = true;
	if (dwarf_offdie(dwarf->libdw, dwarf->units[number].id, &die) &&
		!collect_functions(dwarf, &die, dwarf->units[number].language != DW_LANG_Go, 0,
			&state->functions))
		sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0, "%s: functions of %s",
			dwarf->name, dwarf->units[number].name);
	sonde_dwarf_ranges_sort(&state->functions);
	return &state->functions;
}

static void index_addresses(struct sonde_dwarf *dwarf)
{
	dwarf->addresses_indexed = true;
	bool fine = true;
	for (size_t i = 0; i < dwarf->n_units; i++) {
		Dwarf_Die die;
		if (dwarf->unit_states[i].has_ranges &&
			dwarf_offdie(dwarf->libdw, dwarf->units[i].id, &die)) {
			fine &= sonde_dwarf_die_ranges(dwarf, &die, i, &dwarf->unit_ranges);
			continue;
		}
		/* The unit's DIE does not say: its functions do. */
		sonde_vec_foreach (range, unit_functions(dwarf, i)) {
			struct sonde_dwarf_range of_unit = *range;
			of_unit.id = i;
			fine &= sonde_dwarf_ranges_push(&dwarf->unit_ranges, of_unit);
		}
	}
	if (!fine)
		sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0, "%s: addresses of units",
			dwarf->name);
	sonde_dwarf_ranges_sort(&dwarf->unit_ranges);
}

const struct sonde_dwarf_unit *sonde_dwarf_unit_at(struct sonde_dwarf *dwarf, uint64_t pc)
{
	if (!dwarf->addresses_indexed)
		index_addresses(dwarf);
	const struct sonde_dwarf_range *range = sonde_dwarf_ranges_find(&dwarf->unit_ranges, pc);
	return range ? &dwarf->units[range->id] : NULL;
}

/* The range of the function that holds pc. */
static const struct sonde_dwarf_range *function_range(struct sonde_dwarf *dwarf, uint64_t pc)
{
	const struct sonde_dwarf_unit *unit = sonde_dwarf_unit_at(dwarf, pc);
	return unit ? sonde_dwarf_ranges_find(unit_functions(dwarf, unit - dwarf->units), pc)
		    : NULL;
}

static const char *linkage_name(struct sonde_dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = NULL;
	if (dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) ||
		dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		name = dwarf_formstring(&attr);
	return name && strnlen(name, SONDE_DWARF_MAX_NAME) < SONDE_DWARF_MAX_NAME ? name : "";
}

static struct sonde_dwarf_function *decode_function(
	struct sonde_dwarf *dwarf, const struct sonde_dwarf_range *range)
{
	Dwarf_Die die;
	uint64_t value;
	struct sonde_dwarf_function *function = sonde_arena_alloc(&dwarf->arena, sizeof(*function));
	if (!function || !sonde_dwarf_die(dwarf, range->id, &die))
		return NULL;
	*function = (struct sonde_dwarf_function){
		.id = range->id,
		.name = sonde_dwarf_die_name(dwarf, &die),
		.linkage_name = linkage_name(dwarf, &die),
		.low = range->low,
		.high = range->high,
		.entry = range->low,
		.type = sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type),
	};
	Dwarf_Addr entry;
	if (dwarf_entrypc(&die, &entry) == 0)
		function->entry = entry;
	if (sonde_dwarf_attr_u64(&die, DW_AT_decl_line, &value))
		function->decl_line = (uint32_t)value;
	return function;
}

/* One object per range, made once. */
static const struct sonde_dwarf_function *function_of(
	struct sonde_dwarf *dwarf, const struct sonde_dwarf_range *range)
{
	struct sonde_dwarf_function **kept = NULL, *made;
	/* Ranges of functions that overlap exactly share an address but not an id: mix both. */
	uint64_t key = sonde_hash_u64(range->low) + range->id;
	kept = sonde_dwarf_function_map_find(&dwarf->functions, key);
	if (kept && (*kept)->id == range->id && (*kept)->low == range->low)
		return *kept;
	made = decode_function(dwarf, range);
	if (made && !kept) {
		kept = sonde_dwarf_function_map_put(&dwarf->functions, key, NULL);
		if (kept)
			*kept = made;
	}
	return made;
}

const struct sonde_dwarf_function *sonde_dwarf_function_at(struct sonde_dwarf *dwarf, uint64_t pc)
{
	const struct sonde_dwarf_range *range = function_range(dwarf, pc);
	return range ? function_of(dwarf, range) : NULL;
}

const struct sonde_dwarf_function *sonde_dwarf_function_find(
	struct sonde_dwarf *dwarf, const char *name)
{
	uint64_t id = sonde_dwarf_name_find(dwarf, SONDE_DWARF_NAME_FUNCTION, name);
	sonde_cleanup(sonde_dwarf_ranges) struct sonde_dwarf_ranges ranges = {0};
	Dwarf_Die die;
	if (!id || !sonde_dwarf_die(dwarf, id, &die) ||
		!sonde_dwarf_die_ranges(dwarf, &die, id, &ranges) || !ranges.n)
		return NULL;
	return function_of(dwarf, &ranges.items[0]);
}

bool sonde_dwarf_frame_base(struct sonde_dwarf *dwarf, uint64_t pc, const uint8_t **expr,
	size_t *len, const struct sonde_location_unit **unit)
{
	const struct sonde_dwarf_range *range = function_range(dwarf, pc);
	Dwarf_Die die;
	Dwarf_Attribute attr;
	if (!range || !sonde_dwarf_die(dwarf, range->id, &die) ||
		!dwarf_attr_integrate(&die, DW_AT_frame_base, &attr))
		return false;
	const struct sonde_dwarf_unit_state *state = attr_state(dwarf, &attr);
	if (!state || !sonde_dwarf_expression(dwarf, &attr, true, pc, expr, len))
		return false;
	if (unit)
		*unit = &state->location;
	return true;
}

static bool is_block(int tag)
{
	return tag == DW_TAG_lexical_block || tag == DW_TAG_inlined_subroutine ||
		tag == DW_TAG_try_block || tag == DW_TAG_catch_block || tag == DW_TAG_with_stmt ||
		tag == DW_TAG_common_block;
}

/* The range of a block that holds pc. */
static bool block_range(
	struct sonde_dwarf *dwarf, Dwarf_Die *die, uint64_t pc, struct sonde_dwarf_range *range)
{
	if (dwarf_hasattr(die, DW_AT_ranges)) {
		sonde_dwarf_need(dwarf, SONDE_DWARF_RANGES);
		sonde_dwarf_need(dwarf, SONDE_DWARF_RNGLISTS);
	}
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	for (int i = 0; i < MAX_LIST_ENTRIES; i++) {
		at = dwarf_ranges(die, at, &base, &low, &high);
		if (at <= 0)
			return false;
		if (pc >= low && pc < high) {
			range->low = low;
			range->high = high;
			return true;
		}
	}
	return false;
}

/* A block that holds pc, and what is known of it. */
struct scope {
	Dwarf_Die die;
	uint64_t low, high;
	uint32_t inline_depth;
	const char *function;
};

static bool add_variable(struct sonde_dwarf *dwarf, const struct scope *scope, uint64_t pc,
	Dwarf_Die *die, int tag, struct sonde_dwarf_variables *to)
{
	struct sonde_dwarf_variable *variable = sonde_dwarf_variables_add(to);
	if (!variable)
		return false;
	uint64_t value;
	Dwarf_Attribute attr;
	variable->name = sonde_dwarf_die_name(dwarf, die);
	variable->id = sonde_dwarf_die_id(dwarf, die);
	variable->type = sonde_dwarf_attr_ref(dwarf, die, DW_AT_type);
	variable->is_parameter = tag == DW_TAG_formal_parameter;
	variable->is_result =
		variable->is_parameter && sonde_dwarf_attr_flag(die, DW_AT_variable_parameter);
	variable->escapes = variable->name[0] == '&';
	variable->has_constant = sonde_dwarf_constant_value(die, &variable->constant);
	if (sonde_dwarf_attr_u64(die, DW_AT_decl_line, &value))
		variable->decl_line = (uint32_t)value;
	variable->inline_depth = scope->inline_depth;
	variable->function = scope->function;
	variable->scope_low = scope->low;
	variable->scope_high = scope->high;
	if (dwarf_attr_integrate(die, DW_AT_location, &attr) &&
		sonde_dwarf_expression(
			dwarf, &attr, true, pc, &variable->expr, &variable->expr_len)) {
		const struct sonde_dwarf_unit_state *state = attr_state(dwarf, &attr);
		variable->unit = state ? &state->location : NULL;
	}
	if (!variable->expr_len)
		variable->expr = NULL;
	if (!variable->unit) {
		const struct sonde_dwarf_unit_state *state =
			sonde_dwarf_state_of(dwarf, variable->id);
		variable->unit = state ? &state->location : NULL;
	}
	return true;
}

/*
 * Go through the children of scope: variables into to (where it is not NULL), the first block that holds pc into
 * *inner. Blocks of one level do not overlap; where damaged ones do, the first counts. false = out of memory.
 */
static bool walk_scope(struct sonde_dwarf *dwarf, const struct scope *scope, uint64_t pc,
	struct sonde_dwarf_variables *to, struct scope *inner, bool *has_inner)
{
	Dwarf_Die parent = scope->die, die;
	*has_inner = false;
	for (int rc = dwarf_child(&parent, &die); rc == 0;) {
		int tag = dwarf_tag(&die);
		struct sonde_dwarf_range range;
		if (to && (tag == DW_TAG_variable || tag == DW_TAG_formal_parameter)) {
			if (!add_variable(dwarf, scope, pc, &die, tag, to))
				return false;
		} else if (!*has_inner && is_block(tag) && block_range(dwarf, &die, pc, &range)) {
			*has_inner = true;
			*inner = (struct scope){
				.die = die,
				.low = range.low,
				.high = range.high,
				.inline_depth = scope->inline_depth,
				.function = scope->function,
			};
			if (tag == DW_TAG_inlined_subroutine) {
				inner->inline_depth++;
				inner->function = sonde_dwarf_die_name(dwarf, &die);
			}
		}
		rc = sonde_dwarf_sibling(&die);
		if (rc < 0)
			sonde_notes_add(dwarf->notes, "DWARF scope damaged", 0,
				"%s: DIE 0x%" PRIx64, dwarf->name,
				sonde_dwarf_die_id(dwarf, &parent));
	}
	return true;
}

static bool outermost_scope(struct sonde_dwarf *dwarf, uint64_t pc, struct scope *scope)
{
	const struct sonde_dwarf_range *range = function_range(dwarf, pc);
	if (!range || !sonde_dwarf_die(dwarf, range->id, &scope->die))
		return false;
	scope->low = range->low;
	scope->high = range->high;
	scope->inline_depth = 0;
	scope->function = sonde_dwarf_die_name(dwarf, &scope->die);
	return true;
}

struct sonde_error *sonde_dwarf_variables_at(
	struct sonde_dwarf *dwarf, uint64_t pc, struct sonde_dwarf_variables *to)
{
	struct scope scope, inner;
	bool more = outermost_scope(dwarf, pc, &scope);
	for (int depth = 0; more && depth < SONDE_DWARF_MAX_DEPTH; depth++) {
		if (!walk_scope(dwarf, &scope, pc, to, &inner, &more))
			return &sonde_enomem;
		scope = inner;
	}
	return NULL;
}

struct sonde_error *sonde_dwarf_captured_at(
	struct sonde_dwarf *dwarf, uint64_t pc, struct sonde_dwarf_captured_vec *to)
{
	struct scope scope;
	Dwarf_Die die;
	Dwarf_Attribute attr;
	Dwarf_Word offset;
	if (!outermost_scope(dwarf, pc, &scope))
		return NULL;
	for (int rc = dwarf_child(&scope.die, &die); rc == 0;) {
		if (dwarf_attr_integrate(&die, SONDE_AT_GO_CLOSURE_OFFSET, &attr) &&
			dwarf_formudata(&attr, &offset) == 0) {
			struct sonde_dwarf_captured captured = {
				.name = sonde_dwarf_die_name(dwarf, &die),
				.type = sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type),
				.offset_bytes = offset,
			};
			if (!sonde_dwarf_captured_vec_push(to, captured))
				return &sonde_enomem;
		}
		rc = sonde_dwarf_sibling(&die);
	}
	return NULL;
}

struct sonde_error *sonde_dwarf_places_of(
	struct sonde_dwarf *dwarf, uint64_t variable, struct sonde_dwarf_places *to)
{
	Dwarf_Die die;
	Dwarf_Attribute attr;
	if (!sonde_dwarf_die(dwarf, variable, &die) ||
		!dwarf_attr_integrate(&die, DW_AT_location, &attr) ||
		(attr.form != DW_FORM_sec_offset && attr.form != DW_FORM_loclistx))
		return NULL;
	struct location_list list = {.all = to};
	search_list(dwarf, &attr, &list);
	return list.no_memory ? &sonde_enomem : NULL;
}

uint64_t sonde_dwarf_parameter_type(struct sonde_dwarf *dwarf, uint64_t pc, size_t i)
{
	struct scope scope;
	Dwarf_Die die;
	if (!outermost_scope(dwarf, pc, &scope))
		return 0;
	for (int rc = dwarf_child(&scope.die, &die); rc == 0;) {
		if (dwarf_tag(&die) == DW_TAG_formal_parameter &&
			!sonde_dwarf_attr_flag(&die, DW_AT_variable_parameter) && !i--)
			return sonde_dwarf_attr_ref(dwarf, &die, DW_AT_type);
		rc = sonde_dwarf_sibling(&die);
	}
	return 0;
}

size_t sonde_dwarf_scopes_at(
	struct sonde_dwarf *dwarf, uint64_t pc, struct sonde_dwarf_scope *scopes, size_t max)
{
	struct scope scope, inner;
	Dwarf_Die chain[SONDE_DWARF_MAX_DEPTH];
	size_t n = 0;
	bool more = outermost_scope(dwarf, pc, &scope);
	for (int depth = 0; more && depth < SONDE_DWARF_MAX_DEPTH; depth++) {
		if (!depth || dwarf_tag(&scope.die) == DW_TAG_inlined_subroutine)
			chain[n++] = scope.die;
		walk_scope(dwarf, &scope, pc, NULL, &inner, &more);
		scope = inner;
	}
	for (size_t i = 0; i < n && i < max; i++) {
		Dwarf_Die *die = &chain[n - 1 - i];
		uint64_t value;
		scopes[i] = (struct sonde_dwarf_scope){
			.name = sonde_dwarf_die_name(dwarf, die),
			.linkage_name = linkage_name(dwarf, die),
			.id = sonde_dwarf_die_id(dwarf, die),
		};
		if (sonde_dwarf_attr_u64(die, DW_AT_call_file, &value))
			scopes[i].call_file = (uint32_t)value;
		if (sonde_dwarf_attr_u64(die, DW_AT_call_line, &value))
			scopes[i].call_line = (uint32_t)value;
		if (sonde_dwarf_attr_u64(die, DW_AT_call_column, &value))
			scopes[i].call_column = (uint32_t)value;
	}
	return n;
}
