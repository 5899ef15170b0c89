/* src/object/dwarf_internal.h: what the files of the DWARF wrapper share. Nobody else includes it, or libdw's headers. */
#pragma once
#include <dwarf.h>
#include <elfutils/libdw.h>
#include "base/arena.h"
#include "base/map.h"
#include "base/mapfile.h"
#include "base/vec.h"
#include "object/dwarf.h"
#include "object/dwarf_image.h"

/* DWARF 5, section 7.32, vendor attributes of Go: cmd/internal/dwarf/dwarf.go, "DW_AT_go_kind" and behind. */
enum {
	SONDE_AT_GO_KIND = 0x2900,
	SONDE_AT_GO_KEY = 0x2901,
	SONDE_AT_GO_ELEM = 0x2902,
	SONDE_AT_GO_EMBEDDED_FIELD = 0x2903,
	SONDE_AT_GO_RUNTIME_TYPE = 0x2904,
	SONDE_AT_GO_CLOSURE_OFFSET = 0x2907, /* Go 1.23 and later */
};

enum {
	/* Steps along references (typedef of typedef of ..., origins of origins): a cycle ends here. */
	SONDE_DWARF_MAX_STEPS = 64,
	/* Nesting of DIEs that is followed (namespaces, blocks, inlined calls). */
	SONDE_DWARF_MAX_DEPTH = 256,
	/* A longer name counts as damaged: it bounds what a section without NULs can cost. */
	SONDE_DWARF_MAX_NAME = 1 << 16,
};

/* Ids of DIEs in .debug_types (DWARF 4) have this bit; ids of inner dimensions of arrays count them above it. */
#define SONDE_DWARF_TYPES_BIT (1ull << 55)
enum { SONDE_DWARF_DIMENSION_SHIFT = 56 };
#define SONDE_DWARF_OFFSET_MASK (SONDE_DWARF_TYPES_BIT - 1)

/* The note's kind where memory ran out. */
#define SONDE_DWARF_NO_MEMORY "DWARF left out: out of memory"

struct sonde_dwarf_range {
	uint64_t low, high; /* [low, high) */
	uint64_t id; /* a DIE, or the number of a unit */
};
SONDE_DEFINE_VEC(sonde_dwarf_ranges, struct sonde_dwarf_range)

/* What goes with a sonde_dwarf_unit of the same number. */
struct sonde_dwarf_unit_state {
	struct sonde_dwarf *dwarf;
	uint64_t start, end; /* in .debug_info, header included */
	struct sonde_location_unit location;
	uint64_t loclists_base;
	bool has_ranges; /* its DIE says where its code is */
	bool functions_indexed;
	struct sonde_dwarf_ranges functions; /* ascending by low; see sonde_dwarf_ranges_find() */
};

enum sonde_dwarf_name_kind {
	SONDE_DWARF_NAME_TYPE,
	SONDE_DWARF_NAME_CONSTANT,
	SONDE_DWARF_NAME_GLOBAL,
	SONDE_DWARF_NAME_FUNCTION,
	SONDE_DWARF_N_NAME_KINDS,
};

struct sonde_dwarf_name {
	const char *name; /* in the image */
	uint64_t id;
};
SONDE_DEFINE_VEC(sonde_dwarf_names, struct sonde_dwarf_name)
SONDE_DEFINE_VEC(sonde_dwarf_globals_vec, struct sonde_dwarf_global)
SONDE_DEFINE_VEC(sonde_dwarf_constants_vec, struct sonde_dwarf_constant_entry)

/* All names of one kind, in the order of indexing, and the first of each spelling by hash. */
struct sonde_dwarf_name_table {
	struct sonde_dwarf_names names;
	uint32_t *slots; /* number + 1, 0 = free */
	size_t cap; /* 0 or a power of two */
};

struct sonde_dwarf_type_state {
	struct sonde_dwarf_type type;
	bool sized, sizing; /* size_bytes is final; is being worked out */
};
SONDE_DEFINE_MAP(sonde_dwarf_type_map, struct sonde_dwarf_type_state *)
SONDE_DEFINE_MAP(sonde_dwarf_function_map, struct sonde_dwarf_function *)

struct sonde_dwarf {
	struct sonde_mapfile *file; /* NULL where the image is the caller's */
	char *name; /* of the file; for messages */
	struct sonde_notes *notes; /* borrowed, may be NULL */
	struct sonde_arena arena;
	struct sonde_dwarf_image image;
	uint64_t
		range_budget; /* ranges that may still be read: bounds lists that many DIEs share */
	Elf *elf;
	Dwarf *libdw;

	struct sonde_dwarf_unit *units;
	struct sonde_dwarf_unit_state *unit_states;
	size_t n_units;
	uint32_t *index_order; /* of units: those named "runtime" first */
	size_t n_indexed; /* in index_order */
	bool type_units_indexed; /* behind all of them */
	struct sonde_dwarf_name_table tables[SONDE_DWARF_N_NAME_KINDS];

	struct sonde_dwarf_type_map types;
	struct sonde_dwarf_type void_type;
	bool runtime_types_indexed, enumerators_indexed, globals_listed, constants_listed;
	bool types_listed, addresses_indexed;
	struct sonde_u64_map runtime_types; /* go_runtime_type -> id */
	struct sonde_dwarf_name_table enumerators; /* `id` is the value */
	struct sonde_dwarf_globals_vec globals;
	struct sonde_u64_map globals_found; /* id -> struct sonde_dwarf_global * in the arena */
	struct sonde_dwarf_constants_vec constants;
	struct sonde_u64_vec type_ids;
	struct sonde_dwarf_ranges unit_ranges; /* ascending by low */
	struct sonde_dwarf_function_map functions; /* id -> decoded */
};

/* Fill a section; damage and want of memory become a note. */
void sonde_dwarf_need(struct sonde_dwarf *dwarf, enum sonde_dwarf_section section);

/* The DIE at id. false where id is in no unit. */
bool sonde_dwarf_die(struct sonde_dwarf *dwarf, uint64_t id, Dwarf_Die *die);
uint64_t sonde_dwarf_die_id(struct sonde_dwarf *dwarf, Dwarf_Die *die);
struct sonde_dwarf_unit_state *sonde_dwarf_state_of(struct sonde_dwarf *dwarf, uint64_t id);

/* Attributes. own: of this DIE; else also of its abstract origin or specification. */
const char *sonde_dwarf_die_name(
	struct sonde_dwarf *dwarf, Dwarf_Die *die); /* "" = none; integrates */
const char *sonde_dwarf_attr_string(struct sonde_dwarf *dwarf, Dwarf_Die *die, unsigned code);
bool sonde_dwarf_attr_u64(
	Dwarf_Die *die, unsigned code, uint64_t *ret); /* any constant form, addresses too */
bool sonde_dwarf_attr_flag(Dwarf_Die *die, unsigned code);
uint64_t sonde_dwarf_attr_ref(
	struct sonde_dwarf *dwarf, Dwarf_Die *die, unsigned code); /* 0 = none */
/* dwarf_siblingof() in place; -1 too where a sibling attribute leads back, which would never end. */
static inline int sonde_dwarf_sibling(Dwarf_Die *die)
{
	const uint8_t *before = die->addr;
	int rc = dwarf_siblingof(die, die);
	return rc == 0 && (const uint8_t *)die->addr <= before ? -1 : rc;
}

bool sonde_dwarf_constant_value(
	Dwarf_Die *die, int64_t *ret); /* DW_AT_const_value of integer form */

/* An attribute's expression: blocks in place; lists at pc (see dwarf_scope.c). false = none (there). */
bool sonde_dwarf_expression(struct sonde_dwarf *dwarf, Dwarf_Attribute *attr, bool has_pc,
	uint64_t pc, const uint8_t **expr, size_t *len);

/* Append the DIE's ranges, empty ones left out, each with id. false = out of memory. */
bool sonde_dwarf_die_ranges(
	struct sonde_dwarf *dwarf, Dwarf_Die *die, uint64_t id, struct sonde_dwarf_ranges *to);
void sonde_dwarf_ranges_sort(struct sonde_dwarf_ranges *ranges);

/* The narrowest-starting range that holds pc: of those the one with the greatest low; NULL = none. */
const struct sonde_dwarf_range *sonde_dwarf_ranges_find(
	const struct sonde_dwarf_ranges *ranges, uint64_t pc);

/* Index names of the next unit in index_order; false when all are. */
bool sonde_dwarf_index_next(struct sonde_dwarf *dwarf);
void sonde_dwarf_index_all(struct sonde_dwarf *dwarf);

/* The first of that spelling; further units are indexed until it is found. 0 = none. */
uint64_t sonde_dwarf_name_find(
	struct sonde_dwarf *dwarf, enum sonde_dwarf_name_kind kind, const char *name);
bool sonde_dwarf_name_add(struct sonde_dwarf_name_table *table, const char *name, uint64_t id);
const struct sonde_dwarf_name *sonde_dwarf_name_lookup(
	const struct sonde_dwarf_name_table *table, const char *name);
void sonde_dwarf_name_table_deinit(struct sonde_dwarf_name_table *table);
