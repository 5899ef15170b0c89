#include "object/dwarf_internal.h"

#include <gelf.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void sonde_dwarf_need(struct sonde_dwarf *dwarf, enum sonde_dwarf_section section)
{
	sonde_cleanup(sonde_error) struct sonde_error *err =
		sonde_dwarf_image_fill(&dwarf->image, section);
	if (err)
		sonde_notes_add(dwarf->notes, "DWARF section damaged", 0, "%s", err->message);
}

/* The last unit that starts at or before the DIE, if it holds it. */
struct sonde_dwarf_unit_state *sonde_dwarf_state_of(struct sonde_dwarf *dwarf, uint64_t id)
{
	size_t low = 0, high = dwarf->n_units;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (dwarf->unit_states[mid].start <= id)
			low = mid + 1;
		else
			high = mid;
	}
	if (!low)
		return NULL;
	struct sonde_dwarf_unit_state *state = &dwarf->unit_states[low - 1];
	/* Its own DIE is the first behind the header. */
	return id >= dwarf->units[low - 1].id && id < state->end ? state : NULL;
}

bool sonde_dwarf_die(struct sonde_dwarf *dwarf, uint64_t id, Dwarf_Die *die)
{
	if (id & SONDE_DWARF_TYPES_BIT) {
		sonde_dwarf_need(dwarf, SONDE_DWARF_TYPES);
		return dwarf_offdie_types(dwarf->libdw, id & SONDE_DWARF_OFFSET_MASK, die);
	}
	return sonde_dwarf_state_of(dwarf, id) && dwarf_offdie(dwarf->libdw, id, die);
}

uint64_t sonde_dwarf_die_id(struct sonde_dwarf *dwarf, Dwarf_Die *die)
{
	const __auto_type types = &dwarf->image.sections[SONDE_DWARF_TYPES];
	const uint8_t *at = die->addr;
	uint64_t offset = dwarf_dieoffset(die);
	if (offset == (Dwarf_Off)-1 || offset > SONDE_DWARF_OFFSET_MASK)
		return 0;
	bool in_types = types->packed && at >= types->data && at < types->data + types->size_bytes;
	return in_types ? offset | SONDE_DWARF_TYPES_BIT : offset;
}

const char *sonde_dwarf_attr_string(struct sonde_dwarf *dwarf, Dwarf_Die *die, unsigned code)
{
	Dwarf_Attribute attr;
	if (!dwarf_attr(die, code, &attr))
		return "";
	const char *s = dwarf_formstring(&attr);
	/* DW_FORM_string is not checked by libdw for its end; the image has zeros behind each section. */
	if (s && strnlen(s, SONDE_DWARF_MAX_NAME) < SONDE_DWARF_MAX_NAME)
		return s;
	sonde_notes_add(dwarf->notes, "DWARF string damaged", 0, "%s: DIE 0x%" PRIx64, dwarf->name,
		(uint64_t)dwarf_dieoffset(die));
	return "";
}

/* The DIE that die's abstract origin or specification names; false = none, or a bad one. */
static bool origin_of(Dwarf_Die *die, Dwarf_Die *origin)
{
	Dwarf_Attribute attr;
	if (!dwarf_attr(die, DW_AT_abstract_origin, &attr) &&
		!dwarf_attr(die, DW_AT_specification, &attr))
		return false;
	return dwarf_formref_die(&attr, origin);
}

const char *sonde_dwarf_die_name(struct sonde_dwarf *dwarf, Dwarf_Die *die)
{
	Dwarf_Die at = *die;
	for (int i = 0; i < 16; i++) {
		const char *name = sonde_dwarf_attr_string(dwarf, &at, DW_AT_name);
		if (*name || !origin_of(&at, &at))
			return name;
	}
	return "";
}

bool sonde_dwarf_attr_u64(Dwarf_Die *die, unsigned code, uint64_t *ret)
{
	Dwarf_Attribute attr;
	Dwarf_Word word;
	Dwarf_Addr addr;
	if (!dwarf_attr_integrate(die, code, &attr))
		return false;
	if (dwarf_formudata(&attr, &word) == 0)
		*ret = word;
	else if (dwarf_formaddr(&attr, &addr) == 0)
		*ret = addr;
	else
		return false;
	return true;
}

bool sonde_dwarf_attr_flag(Dwarf_Die *die, unsigned code)
{
	Dwarf_Attribute attr;
	bool flag;
	return dwarf_attr_integrate(die, code, &attr) && dwarf_formflag(&attr, &flag) == 0 && flag;
}

uint64_t sonde_dwarf_attr_ref(struct sonde_dwarf *dwarf, Dwarf_Die *die, unsigned code)
{
	Dwarf_Attribute attr;
	Dwarf_Die to;
	if (!dwarf_attr_integrate(die, code, &attr))
		return 0;
	if (attr.form == DW_FORM_ref_sig8)
		sonde_dwarf_need(dwarf, SONDE_DWARF_TYPES);
	uint64_t id = dwarf_formref_die(&attr, &to) ? sonde_dwarf_die_id(dwarf, &to) : 0;
	if (!id)
		sonde_notes_add(dwarf->notes, "DWARF reference damaged", 0, "%s: DIE 0x%" PRIx64,
			dwarf->name, (uint64_t)dwarf_dieoffset(die));
	return id;
}

bool sonde_dwarf_constant_value(Dwarf_Die *die, int64_t *ret)
{
	Dwarf_Attribute attr;
	if (!dwarf_attr_integrate(die, DW_AT_const_value, &attr))
		return false;
	/* Fixed-size forms have no sign of their own: compilers write negative numbers as sdata. */
	if (attr.form == DW_FORM_sdata || attr.form == DW_FORM_implicit_const) {
		Dwarf_Sword sword;
		if (dwarf_formsdata(&attr, &sword))
			return false;
		*ret = sword;
		return true;
	}
	Dwarf_Word word;
	if (dwarf_formudata(&attr, &word))
		return false;
	*ret = (int64_t)word;
	return true;
}

bool sonde_dwarf_die_ranges(
	struct sonde_dwarf *dwarf, Dwarf_Die *die, uint64_t id, struct sonde_dwarf_ranges *to)
{
	if (dwarf_hasattr(die, DW_AT_ranges)) {
		sonde_dwarf_need(dwarf, SONDE_DWARF_RANGES);
		sonde_dwarf_need(dwarf, SONDE_DWARF_RNGLISTS);
	}
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;
	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		if (!dwarf->range_budget) {
			sonde_notes_add(dwarf->notes,
				"DWARF ranges left out: more than the file can hold", 0,
				"%s: DIE 0x%" PRIx64, dwarf->name, id);
			return true;
		}
		dwarf->range_budget--;
		struct sonde_dwarf_range range = {.low = low, .high = high, .id = id};
		if (low < high && !sonde_dwarf_ranges_push(to, range))
			return false;
	}
	if (at < 0)
		sonde_notes_add(dwarf->notes, "DWARF ranges damaged", 0, "%s: DIE 0x%" PRIx64,
			dwarf->name, (uint64_t)dwarf_dieoffset(die));
	return true;
}

static int compare_ranges(const void *a, const void *b)
{
	const struct sonde_dwarf_range *x = a, *y = b;
	if (x->low != y->low)
		return x->low < y->low ? -1 : 1;
	/* Of those that start together the widest first, so that the narrowest is found. */
	if (x->high != y->high)
		return x->high > y->high ? -1 : 1;
	/* Names of one thing (assembler aliases): the first in the file is found. */
	return x->id > y->id ? -1 : x->id < y->id;
}

void sonde_dwarf_ranges_sort(struct sonde_dwarf_ranges *ranges)
{
	if (ranges->n)
		qsort(ranges->items, ranges->n, sizeof(*ranges->items), compare_ranges);
}

const struct sonde_dwarf_range *sonde_dwarf_ranges_find(
	const struct sonde_dwarf_ranges *ranges, uint64_t pc)
{
	size_t low = 0, high = ranges->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (ranges->items[mid].low <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	/* Functions nest at most a few deep (GNU C, lambdas): look back that far and no further. */
	for (int i = 0; i < 16 && low > 0; i++) {
		const struct sonde_dwarf_range *range = &ranges->items[--low];
		if (pc < range->high)
			return range;
	}
	return NULL;
}

/* DW_OP_call's target: the DW_AT_location of another DIE. */
static bool called_expression(
	const void *owner, uint64_t offset, bool whole, const uint8_t **expr, size_t *len)
{
	const struct sonde_dwarf_unit_state *state = owner;
	uint64_t id = offset;
	if (!whole && __builtin_add_overflow(state->start, offset, &id))
		return false;
	Dwarf_Die die;
	Dwarf_Attribute attr;
	return sonde_dwarf_die(state->dwarf, id, &die) && dwarf_attr(&die, DW_AT_location, &attr) &&
		sonde_dwarf_expression(state->dwarf, &attr, false, 0, expr, len);
}

static bool base_type(const void *owner, uint64_t offset, uint64_t *size_bytes, unsigned *encoding)
{
	const struct sonde_dwarf_unit_state *state = owner;
	uint64_t id, value;
	Dwarf_Die die;
	if (__builtin_add_overflow(state->start, offset, &id) ||
		!sonde_dwarf_die(state->dwarf, id, &die) || dwarf_tag(&die) != DW_TAG_base_type ||
		!sonde_dwarf_attr_u64(&die, DW_AT_byte_size, size_bytes) ||
		!sonde_dwarf_attr_u64(&die, DW_AT_encoding, &value))
		return false;
	*encoding = (unsigned)value;
	return true;
}

static void decode_unit(struct sonde_dwarf *dwarf, Dwarf_Die *die, struct sonde_dwarf_unit *unit,
	struct sonde_dwarf_unit_state *state)
{
	uint64_t value;
	unit->name = sonde_dwarf_attr_string(dwarf, die, DW_AT_name);
	unit->directory = sonde_dwarf_attr_string(dwarf, die, DW_AT_comp_dir);
	unit->producer = sonde_dwarf_attr_string(dwarf, die, DW_AT_producer);
	if (sonde_dwarf_attr_u64(die, DW_AT_language, &value))
		unit->language = (unsigned)value;
	if (sonde_dwarf_attr_u64(die, DW_AT_low_pc, &value))
		unit->low_pc = value;
	state->has_ranges = dwarf_hasattr(die, DW_AT_ranges) || dwarf_hasattr(die, DW_AT_high_pc);

	const __auto_type addr = &dwarf->image.sections[SONDE_DWARF_ADDR];
	/* DWARF 5, section 7.27: without the attribute the table starts behind its header. */
	uint64_t base = unit->version >= 5 ? (state->location.offset_bytes == 8 ? 16 : 8) : 0;
	if (sonde_dwarf_attr_u64(die, DW_AT_addr_base, &value) ||
		sonde_dwarf_attr_u64(die, DW_AT_GNU_addr_base, &value))
		base = value;
	if (addr->packed && base < addr->size_bytes) {
		state->location.addresses = addr->data + base;
		state->location.addresses_bytes = addr->size_bytes - base;
	}
	state->loclists_base = state->location.offset_bytes == 8 ? 20 : 12;
	if (sonde_dwarf_attr_u64(die, DW_AT_loclists_base, &value))
		state->loclists_base = value;
	if (dwarf_hasattr(die, DW_AT_dwo_name) || dwarf_hasattr(die, DW_AT_GNU_dwo_name))
		sonde_notes_add(dwarf->notes, "DWARF unit left out: it stands in a .dwo file", 0,
			"%s: %s", dwarf->name, unit->name);
}

SONDE_DEFINE_VEC(units_vec, struct sonde_dwarf_unit)
SONDE_DEFINE_VEC(states_vec, struct sonde_dwarf_unit_state)

static struct sonde_error *read_units(struct sonde_dwarf *dwarf)
{
	sonde_cleanup(units_vec) struct units_vec units = {0};
	sonde_cleanup(states_vec) struct states_vec states = {0};
	Dwarf_Off start = 0, next = 0;
	size_t header_bytes;
	Dwarf_Half version;
	uint8_t address_bytes, offset_bytes;
	int rc;
	while ((rc = dwarf_next_unit(dwarf->libdw, start, &next, &header_bytes, &version, NULL,
			&address_bytes, &offset_bytes, NULL, NULL)) == 0) {
		Dwarf_Die die;
		bool sane = (address_bytes == 4 || address_bytes == 8) && version >= 2 &&
			version <= 5 && next > start;
		if (sane && dwarf_offdie(dwarf->libdw, start + header_bytes, &die)) {
			struct sonde_dwarf_unit *unit = units_vec_add(&units);
			struct sonde_dwarf_unit_state *state = states_vec_add(&states);
			if (!unit || !state)
				return &sonde_enomem;
			unit->id = start + header_bytes;
			unit->version = version;
			*state = (struct sonde_dwarf_unit_state){
				.dwarf = dwarf,
				.start = start,
				.end = next,
				.location = {.version = version,
					.address_bytes = address_bytes,
					.offset_bytes = offset_bytes,
					.base_type = base_type,
					.called = called_expression},
			};
			decode_unit(dwarf, &die, unit, state);
		} else {
			sonde_notes_add(dwarf->notes, "DWARF unit damaged", 0,
				"%s: .debug_info + 0x%" PRIx64, dwarf->name, (uint64_t)start);
		}
		if (next <= start)
			break;
		start = next;
	}
	/* libdw takes some units that are cut short for the end. */
	if (rc < 0 || start < dwarf->image.sections[SONDE_DWARF_INFO].size_bytes)
		sonde_notes_add(dwarf->notes, "DWARF unit damaged", 0,
			"%s: .debug_info + 0x%" PRIx64 " and what follows", dwarf->name,
			(uint64_t)start);
	if (!units.n)
		return sonde_error_new(
			SONDE_BAD_DATA, "%s: .debug_info has no readable unit", dwarf->name);
	dwarf->n_units = units.n;
	dwarf->units = sonde_take(units.items);
	dwarf->unit_states = sonde_take(states.items);
	for (size_t i = 0; i < dwarf->n_units; i++)
		dwarf->unit_states[i].location.owner = &dwarf->unit_states[i];
	return NULL;
}

/*
 * Go's linker puts every type into a second unit named "runtime" (cmd/link/internal/ld/dwarf.go, 1.15 to 1.27), and the
 * runtime's constants and variables stand in the first: what is asked for first is found without looking elsewhere.
 */
static struct sonde_error *order_units(struct sonde_dwarf *dwarf)
{
	dwarf->index_order = sonde_new_array(uint32_t, dwarf->n_units);
	if (!dwarf->index_order)
		return &sonde_enomem;
	size_t n = 0;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < dwarf->n_units; i++) {
			bool runtime = dwarf->units[i].language == DW_LANG_Go &&
				!strcmp(dwarf->units[i].name, "runtime");
			if (runtime == !pass)
				dwarf->index_order[n++] = (uint32_t)i;
		}
	}
	return NULL;
}

static struct sonde_error *open_libdw(struct sonde_dwarf *dwarf)
{
	/* These are needed for any DIE; the others when asked for. */
	static const enum sonde_dwarf_section always[] = {SONDE_DWARF_INFO, SONDE_DWARF_ABBREV,
		SONDE_DWARF_STR, SONDE_DWARF_LINE_STR, SONDE_DWARF_STR_OFFSETS, SONDE_DWARF_ADDR};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(always); i++)
		SONDE_TRY(sonde_dwarf_image_fill(&dwarf->image, always[i]));
	elf_version(EV_CURRENT);
	dwarf->elf = elf_memory((char *)dwarf->image.map, dwarf->image.map_bytes);
	if (!dwarf->elf)
		return sonde_error_new(
			SONDE_BAD_DATA, "%s: DWARF: %s", dwarf->name, elf_errmsg(-1));
	dwarf->libdw = dwarf_begin_elf(dwarf->elf, DWARF_C_READ, NULL);
	if (!dwarf->libdw)
		return sonde_error_new(
			SONDE_BAD_DATA, "%s: DWARF: %s", dwarf->name, dwarf_errmsg(-1));
	return NULL;
}

static struct sonde_error *open_taken(const void *data, uint64_t size_bytes, const char *name,
	struct sonde_mapfile **file, struct sonde_notes *notes, struct sonde_dwarf **ret)
{
	sonde_cleanup(sonde_dwarf) struct sonde_dwarf *dwarf = sonde_new(struct sonde_dwarf);
	if (!dwarf)
		return &sonde_enomem;
	sonde_arena_init(&dwarf->arena);
	dwarf->notes = notes;
	dwarf->name = strdup(name);
	if (!dwarf->name)
		return &sonde_enomem;
	SONDE_TRY(sonde_dwarf_image_init(&dwarf->image, data, size_bytes, dwarf->name, notes));
	/* A range costs at least two bytes, and lists are rarely shared. */
	dwarf->range_budget = 1024 + dwarf->image.sections[SONDE_DWARF_INFO].size_bytes +
		4 * dwarf->image.sections[SONDE_DWARF_RANGES].size_bytes +
		4 * dwarf->image.sections[SONDE_DWARF_RNGLISTS].size_bytes;
	SONDE_TRY(open_libdw(dwarf));
	SONDE_TRY(read_units(dwarf));
	SONDE_TRY(order_units(dwarf));
	if (file)
		dwarf->file = sonde_take(*file);
	*ret = sonde_take(dwarf);
	return NULL;
}

struct sonde_error *sonde_dwarf_open(
	const char *path, struct sonde_notes *notes, struct sonde_dwarf **ret)
{
	sonde_cleanup(sonde_mapfile) struct sonde_mapfile *file = NULL;
	SONDE_TRY(sonde_mapfile_open(path, &file));
	return open_taken(file->data, file->size_bytes, path, &file, notes, ret);
}

struct sonde_error *sonde_dwarf_open_image(const void *data, uint64_t size_bytes, const char *name,
	struct sonde_notes *notes, struct sonde_dwarf **ret)
{
	return open_taken(data, size_bytes, name, NULL, notes, ret);
}

void sonde_dwarf_free(struct sonde_dwarf *dwarf)
{
	if (!dwarf)
		return;
	for (size_t i = 0; i < dwarf->n_units; i++)
		sonde_dwarf_ranges_deinit(&dwarf->unit_states[i].functions);
	for (size_t i = 0; i < SONDE_DWARF_N_NAME_KINDS; i++)
		sonde_dwarf_name_table_deinit(&dwarf->tables[i]);
	sonde_dwarf_name_table_deinit(&dwarf->enumerators);
	sonde_dwarf_type_map_deinit(&dwarf->types);
	sonde_dwarf_function_map_deinit(&dwarf->functions);
	sonde_u64_map_deinit(&dwarf->runtime_types);
	sonde_u64_map_deinit(&dwarf->globals_found);
	sonde_dwarf_globals_vec_deinit(&dwarf->globals);
	sonde_dwarf_constants_vec_deinit(&dwarf->constants);
	sonde_u64_vec_deinit(&dwarf->type_ids);
	sonde_dwarf_ranges_deinit(&dwarf->unit_ranges);
	free(dwarf->units);
	free(dwarf->unit_states);
	free(dwarf->index_order);
	if (dwarf->libdw)
		dwarf_end(dwarf->libdw);
	if (dwarf->elf)
		elf_end(dwarf->elf);
	sonde_dwarf_image_deinit(&dwarf->image);
	sonde_mapfile_free(dwarf->file);
	sonde_arena_deinit(&dwarf->arena);
	free(dwarf->name);
	free(dwarf);
}

const struct sonde_dwarf_unit *sonde_dwarf_units(struct sonde_dwarf *dwarf, size_t *n)
{
	*n = dwarf->n_units;
	return dwarf->units;
}

const struct sonde_dwarf_unit *sonde_dwarf_unit_of(struct sonde_dwarf *dwarf, uint64_t id)
{
	const struct sonde_dwarf_unit_state *state = sonde_dwarf_state_of(dwarf, id);
	return state ? &dwarf->units[state - dwarf->unit_states] : NULL;
}

bool sonde_dwarf_is_go(struct sonde_dwarf *dwarf, const char **producer)
{
	for (size_t i = 0; i < dwarf->n_units; i++) {
		if (dwarf->units[i].language != DW_LANG_Go)
			continue;
		if (producer)
			*producer = dwarf->units[i].producer;
		return true;
	}
	return false;
}
