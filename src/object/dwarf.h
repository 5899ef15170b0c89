/*
 * src/object/dwarf.h: types, constants, variables and functions of one file from its DWARF 4 or 5 (2 and 3 where they
 * agree). Sections are inflated and indices built when first asked for; nothing is decoded that nobody asked for.
 * Addresses are as in the file, without load bias. Ids are DIE offsets in .debug_info; 0 is void.
 *
 * One thread at a time: every call may build an index. Everything that is returned is borrowed from the sonde_dwarf and
 * lives as long. Damage is noted (kinds "DWARF ..."), and what it touches is left out. Where memory runs out inside libdw
 * the process ends.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "base/notes.h"
#include "base/vec.h"
#include "object/location.h"

struct sonde_dwarf;

/*
 * Open path for its DWARF. notes is borrowed until free and may be NULL. SONDE_NOT_FOUND "FILE: no DWARF (stripped: no
 * .debug_info)"; SONDE_BAD_DATA where it is no ELF file or its sections lie outside; SONDE_UNSUPPORTED for big-endian
 * files, unknown compression and split DWARF that stands elsewhere.
 */
struct sonde_error *sonde_dwarf_open(
	const char *path, struct sonde_notes *notes, struct sonde_dwarf **ret) SONDE_CHECK;

/* The same over an image of size_bytes at data, which stays the caller's and must outlive it. name is for messages. */
struct sonde_error *sonde_dwarf_open_image(const void *data, uint64_t size_bytes, const char *name,
	struct sonde_notes *notes, struct sonde_dwarf **ret) SONDE_CHECK;
void sonde_dwarf_free(struct sonde_dwarf *dwarf);
SONDE_DEFINE_CLEANUP(sonde_dwarf)

/* Compilation units, in file order. */
struct sonde_dwarf_unit {
	uint64_t id; /* of the unit's DIE */
	const char *name, *directory, *producer; /* "" where absent */
	unsigned language; /* DW_LANG_*, 0 = unknown */
	unsigned version; /* of DWARF */
	uint64_t low_pc; /* the base of its ranges; 0 = none */
};
const struct sonde_dwarf_unit *sonde_dwarf_units(struct sonde_dwarf *dwarf, size_t *n);

/* The unit that holds the DIE id, or whose code holds pc (DW_AT_ranges and low/high of its DIE); NULL = none. */
const struct sonde_dwarf_unit *sonde_dwarf_unit_of(struct sonde_dwarf *dwarf, uint64_t id);
const struct sonde_dwarf_unit *sonde_dwarf_unit_at(struct sonde_dwarf *dwarf, uint64_t pc);

/* Some unit was written by a Go compiler. *producer (may be NULL) gets its DW_AT_producer: "Go cmd/compile go1.22.12; ..." */
bool sonde_dwarf_is_go(struct sonde_dwarf *dwarf, const char **producer);

enum sonde_dwarf_kind {
	SONDE_DWARF_VOID,
	SONDE_DWARF_BASE,
	SONDE_DWARF_POINTER, /* references too */
	SONDE_DWARF_STRUCT, /* classes too; Go: strings, slices, and what go_kind says */
	SONDE_DWARF_UNION,
	SONDE_DWARF_ARRAY,
	SONDE_DWARF_TYPEDEF,
	SONDE_DWARF_ENUM,
	SONDE_DWARF_FUNCTION,
	SONDE_DWARF_OTHER,
};

struct sonde_dwarf_member {
	const char *name; /* "" = anonymous */
	uint64_t offset_bytes;
	uint64_t type;
	bool embedded; /* Go: an embedded field; C++: a base class */
	uint8_t bit_size,
		bit_offset; /* a C bit-field: bits, counted from the lowest of offset_bytes; 0 = none */
};

struct sonde_dwarf_type {
	uint64_t id;
	enum sonde_dwarf_kind kind;
	bool is_declaration; /* incomplete: no size, no members */
	const char *
		name; /* "" = anonymous. Go spells "main.T", "*main.T", "[]int", "map[string]int" */
	uint64_t
		size_bytes; /* typedefs: of the target; arrays: of all elements; functions: as written (Go: 8) */
	uint64_t elem; /* pointee, array element, typedef target, an enum's base type */
	uint64_t
		count; /* ARRAY: elements (all dimensions of C folded into nested types: see below) */
	unsigned encoding; /* BASE: DW_ATE_* */
	unsigned go_kind; /* DW_AT_go_kind (reflect.Kind), 0 = none */
	uint64_t go_runtime_type; /* as written; see sonde_dwarf_type_by_runtime(); 0 = none */
	uint64_t go_elem, go_key; /* maps, slices, channels: type ids, 0 = none */
	const struct sonde_dwarf_member *members;
	size_t n_members;
};

/*
 * The type at id, decoded once and kept; const, volatile, restrict and atomic are looked through, so that ->id may differ
 * from id. id 0 is void (never NULL). NULL, and a note, where the DIE is damaged or no type. `int a[2][3]` is an array of
 * count 2 whose elem is an array of count 3; inner dimensions have ids that only this function understands.
 */
const struct sonde_dwarf_type *sonde_dwarf_type(struct sonde_dwarf *dwarf, uint64_t id);

/* The first definition (not declaration) of that name at the top of a unit (C: "struct x" is "x"); NULL = none. */
const struct sonde_dwarf_type *sonde_dwarf_type_find(struct sonde_dwarf *dwarf, const char *name);

/* As sonde_dwarf_type(), with typedefs looked through (64 of them at most: beyond that, NULL and a note). */
const struct sonde_dwarf_type *sonde_dwarf_type_bare(struct sonde_dwarf *dwarf, uint64_t id);

/* A struct's or union's member by name, typedefs and anonymous C members looked through (*offset_bytes: from the start of
 * the outermost; may be NULL); NULL = none. */
const struct sonde_dwarf_member *sonde_dwarf_member_find(struct sonde_dwarf *dwarf,
	const struct sonde_dwarf_type *type, const char *name, uint64_t *offset_bytes);

/* Ids of all types at the top of a unit, in file order, declarations included. */
const uint64_t *sonde_dwarf_types(struct sonde_dwarf *dwarf, size_t *n);

/*
 * The type whose DW_AT_go_runtime_type is this; 0 = none. Go 1.15 to 1.27 write the descriptor's offset from
 * moduledata.types, whatever the form; up to 1.22 "uintptr" alone has the descriptor's link-time address.
 */
uint64_t sonde_dwarf_type_by_runtime(struct sonde_dwarf *dwarf, uint64_t go_runtime_type);

/* A named constant: DW_TAG_constant ("runtime._Gwaiting"), and enumerators of C. false = none of that name. */
bool sonde_dwarf_constant(struct sonde_dwarf *dwarf, const char *name, int64_t *ret);

/* All DW_TAG_constant of integer value, in file order. */
struct sonde_dwarf_constant_entry {
	const char *name;
	int64_t value;
	uint64_t type;
};
const struct sonde_dwarf_constant_entry *sonde_dwarf_constants(
	struct sonde_dwarf *dwarf, size_t *n);

/* Variables at the top of a unit that have a fixed address, ascending by it. */
struct sonde_dwarf_global {
	const char *name; /* Go: "runtime.allgs" */
	uint64_t addr;
	uint64_t type;
	uint64_t id;
};
const struct sonde_dwarf_global *sonde_dwarf_globals(struct sonde_dwarf *dwarf, size_t *n);
const struct sonde_dwarf_global *sonde_dwarf_global_find(
	struct sonde_dwarf *dwarf, const char *name);

/* Functions with code. */
struct sonde_dwarf_function {
	uint64_t id;
	const char *name; /* Go: "main.(*T).f"; C++: unqualified */
	const char *linkage_name; /* mangled; "" = none */
	uint64_t low, high; /* the range that holds the pc asked for, else the first */
	uint64_t entry; /* lowest address of the first range, or DW_AT_entry_pc */
	uint64_t type; /* of the result; Go gives none */
	uint32_t decl_line;
};
const struct sonde_dwarf_function *sonde_dwarf_function_at(struct sonde_dwarf *dwarf, uint64_t pc);
const struct sonde_dwarf_function *sonde_dwarf_function_find(
	struct sonde_dwarf *dwarf, const char *name);

struct sonde_dwarf_variable {
	const char *name; /* "" = unnamed */
	uint64_t id, type;
	bool is_parameter;
	bool is_result; /* Go: DW_AT_variable_parameter */
	bool has_constant; /* DW_AT_const_value of integer form, in `constant` */
	bool escapes; /* Go: the name begins with "&": the value lies on the heap, expr leads to a pointer to it */
	int64_t constant;
	uint32_t decl_line; /* 0 = unknown. Go: not yet declared where the line at pc is smaller */
	uint32_t inline_depth; /* 0 = of the function itself, 1 = of what is inlined into it, ... */
	const char *function; /* the (inlined) function that declares it */
	uint64_t scope_low, scope_high; /* the range that holds pc of the block that declares it */
	const uint8_t
		*expr; /* valid at pc, for sonde_location_evaluate(); NULL = optimised out here */
	size_t expr_len;
	const struct sonde_location_unit *unit; /* goes into the evaluator's context */
};
SONDE_DEFINE_VEC(sonde_dwarf_variables, struct sonde_dwarf_variable)

/*
 * Append all variables live at pc: those of the function, its lexical blocks and inlined subroutines that hold pc, the
 * outermost first, in file order. For a caller's frame pass its return address minus 1. None where pc is in no function.
 */
struct sonde_error *sonde_dwarf_variables_at(
	struct sonde_dwarf *dwarf, uint64_t pc, struct sonde_dwarf_variables *to) SONDE_CHECK;

/* One entry of a variable's location list: what holds for pc in [low, high). */
struct sonde_dwarf_place {
	uint64_t low, high;
	const uint8_t *expr;
	size_t expr_len;
	const struct sonde_location_unit *unit;
};
SONDE_DEFINE_VEC(sonde_dwarf_places, struct sonde_dwarf_place)

/* Append all places of a variable (its id), wherever they hold; none for one that has a single place everywhere. */
struct sonde_error *sonde_dwarf_places_of(
	struct sonde_dwarf *dwarf, uint64_t variable, struct sonde_dwarf_places *to) SONDE_CHECK;

/* The type of parameter i (results do not count) of the function at pc; a method's receiver is the first. 0 = none. */
uint64_t sonde_dwarf_parameter_type(struct sonde_dwarf *dwarf, uint64_t pc, size_t i);

/* A variable that the closure of a Go function captured: it lies offset_bytes from the start of the closure's record. */
struct sonde_dwarf_captured {
	const char
		*name; /* "&x": the record holds a pointer to x, and type is that of the pointer */
	uint64_t type, offset_bytes;
};
SONDE_DEFINE_VEC(sonde_dwarf_captured_vec, struct sonde_dwarf_captured)

/* Append what the function at pc captured. None before Go 1.23, whose DWARF does not say. */
struct sonde_error *sonde_dwarf_captured_at(
	struct sonde_dwarf *dwarf, uint64_t pc, struct sonde_dwarf_captured_vec *to) SONDE_CHECK;

/* DW_AT_frame_base of the function at pc, valid at pc. false = none. unit may be NULL. */
bool sonde_dwarf_frame_base(struct sonde_dwarf *dwarf, uint64_t pc, const uint8_t **expr,
	size_t *len, const struct sonde_location_unit **unit);

/* The (inlined) functions at pc: [0] is the innermost, the last the function that has the code. */
struct sonde_dwarf_scope {
	const char *name, *linkage_name;
	uint64_t id; /* of the subprogram, or of the inlined subroutine */
	uint32_t call_file, call_line,
		call_column; /* where it was inlined into the next; 0 for the last */
};

/* At most max of them; returns how many there are. 0 where no function holds pc. */
size_t sonde_dwarf_scopes_at(
	struct sonde_dwarf *dwarf, uint64_t pc, struct sonde_dwarf_scope *scopes, size_t max);
