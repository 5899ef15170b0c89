/*
 * src/golang/value.h: a Go value by its type, as a tree that text and JSON are written from: scalars in Go's spelling,
 * strings, slices, maps of both kinds, channels, interfaces by what they hold, closures with what they captured. What is
 * not in the core, optimised out, or cut by a limit says so in its place.
 *
 * Costs: at most max_nodes nodes of 120 bytes and the strings that they show, whatever the memory says; a map is looked
 * through only until max_elements entries are found, and at most 2^20 of its groups.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/buf.h"
#include "golang/types.h"

struct sonde_go_value_limits {
	unsigned max_depth; /* pointers followed, one behind the other; 0 = none */
	unsigned max_elements; /* of a slice, array, map, channel */
	unsigned max_string_bytes;
	unsigned max_nodes; /* of the whole tree */
};

/* 2 pointers, 64 elements, 200 bytes, 1,000 nodes. */
struct sonde_go_value_limits sonde_go_value_limits_default(void);

enum { SONDE_GO_VALUE_MAX_NESTING = 20 }; /* of nodes */

struct sonde_go_value {
	const char *name; /* of the field, variable or captured variable; NULL = an element */
	uint32_t type; /* id */
	uint8_t kind; /* enum sonde_go_kind: of the type */
	bool is_nil;
	bool has_addr, has_len, has_cap;
	bool is_map; /* its children are key, value, key, value ... */
	bool parts; /* its children are fields: shown with names */
	uint64_t addr; /* what a pointer, slice, string, map, channel, function leads to */
	uint64_t len, cap;
	uint64_t n_more; /* elements, entries or bytes of text behind those shown */
	const char *
		text; /* of a scalar or string (raw bytes, no quotes), or what a well-known type means; NULL = none */
	size_t text_len;
	const char *note; /* "not in the core", "optimised out", "closed", ...; NULL = none */
	struct sonde_go_value *first, *last, *next; /* children; next sibling */
};

/* Bytes of a value that are not, or not only, in memory: of a variable in registers. */
struct sonde_go_value_bytes {
	const uint8_t *bytes;
	const uint8_t *known; /* by byte; NULL = all are */
	uint64_t len;
	const char *why; /* of those that are not known */
};

/* The value of type id at addr. In arena, as long as that; NULL: out of memory. limits may be NULL. */
struct sonde_go_value *sonde_go_value_at(struct sonde_go_types *types, uint32_t id, uint64_t addr,
	const struct sonde_go_value_limits *limits, struct sonde_arena *arena);

/* n values of it in a row: the children of a node of kind ARRAY. */
struct sonde_go_value *sonde_go_value_row(struct sonde_go_types *types, uint32_t id, uint64_t addr,
	uint64_t n, const struct sonde_go_value_limits *limits, struct sonde_arena *arena);

/* One whose bytes the caller has. */
struct sonde_go_value *sonde_go_value_of_bytes(struct sonde_go_types *types, uint32_t id,
	const struct sonde_go_value_bytes *bytes, const struct sonde_go_value_limits *limits,
	struct sonde_arena *arena);

/* The function value whose record stands at addr (what a func variable points to). */
struct sonde_go_value *sonde_go_value_func(struct sonde_go_types *types, uint64_t addr,
	const struct sonde_go_value_limits *limits, struct sonde_arena *arena);

/* As one line of text, appended: {id: 7, name: "x", next: 0xc000012340 -> {...}}. */
void sonde_go_value_text(
	const struct sonde_go_types *types, const struct sonde_go_value *v, struct sonde_buf *to);
