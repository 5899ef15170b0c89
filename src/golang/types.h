/*
 * src/golang/types.h: Go types as the heap needs them: name, size, and where in them pointers of which type stand. One
 * table for both sources: the runtime's own descriptors (internal/abi.Type in the target's memory) and DWARF; a type
 * that both know is one type. Ids are dense; types are made when first asked for. One thread at a time.
 */
#pragma once
#include <stdint.h>
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"
#include "golang/runtime.h"

/* What a pointer word (or the words of a header) leads to. */
enum sonde_go_slot_kind {
	SONDE_GO_SLOT_POINTER, /* *elem; elem 0 = unsafe.Pointer */
	SONDE_GO_SLOT_STRING, /* data, len */
	SONDE_GO_SLOT_SLICE, /* data, len, cap of elem */
	SONDE_GO_SLOT_EFACE, /* type, data */
	SONDE_GO_SLOT_IFACE, /* itab, data */
	SONDE_GO_SLOT_MAP, /* *map of the map type `elem` */
	SONDE_GO_SLOT_CHAN, /* *hchan of the channel type `elem` */
	SONDE_GO_SLOT_FUNC, /* *funcval */
	SONDE_GO_SLOT_ARRAY, /* an array of the type `elem`, too long to write out: walk its elements */
	SONDE_GO_SLOT_COUNTED, /* data, n of elem (sync.Pool's unsafe.Pointer and size) */
	SONDE_GO_SLOT_REFLECT, /* type, data, flags: reflect.Value */
	SONDE_GO_SLOT_DESCRIPTOR, /* *internal/abi.Type: the beginning of a larger record, which its kind tells */
	SONDE_GO_SLOT_TRIE_NODE, /* *elem, the beginning of an entry or inner node of a HashTrieMap */
	SONDE_GO_SLOT_WEAK, /* to the handle of a weak pointer */
};

struct sonde_go_slot {
	uint64_t offset_bytes;
	uint32_t elem; /* type id, see the kind; 0 = unknown */
	uint8_t kind;
};

/* reflect.Kind's numbers, the same since Go 1. */
enum sonde_go_kind {
	SONDE_GO_KIND_INVALID,
	SONDE_GO_KIND_BOOL,
	SONDE_GO_KIND_INT = 2,
	SONDE_GO_KIND_INT64 = 6,
	SONDE_GO_KIND_UINT8 = 8,
	SONDE_GO_KIND_UINTPTR = 12,
	SONDE_GO_KIND_FLOAT32,
	SONDE_GO_KIND_FLOAT64,
	SONDE_GO_KIND_COMPLEX64,
	SONDE_GO_KIND_COMPLEX128 = 16,
	SONDE_GO_KIND_ARRAY = 17,
	SONDE_GO_KIND_CHAN,
	SONDE_GO_KIND_FUNC,
	SONDE_GO_KIND_INTERFACE,
	SONDE_GO_KIND_MAP,
	SONDE_GO_KIND_POINTER,
	SONDE_GO_KIND_SLICE,
	SONDE_GO_KIND_STRING,
	SONDE_GO_KIND_STRUCT,
	SONDE_GO_KIND_UNSAFE_POINTER,
};

struct sonde_go_type {
	const char *name; /* as DWARF spells it: "main.Node", "[]*main.Leaf"; full package path */
	uint64_t size_bytes,
		ptr_bytes; /* ptr_bytes: up to its last pointer; 0 where DWARF alone tells */
	uint64_t runtime_addr; /* of its internal/abi.Type, 0 = none */
	uint64_t dwarf_id; /* 0 = none */
	uint32_t elem; /* pointee, element, map value; 0 = none */
	uint32_t key; /* map */
	uint32_t group; /* map: the group (1.24+) or bucket type */
	uint64_t count; /* ARRAY */
	uint8_t kind; /* enum sonde_go_kind */
	bool has_slots; /* slots is final */
	bool is_direct; /* an interface holds the value itself (a pointer shape) */
	bool eface; /* INTERFACE: without methods */
	const struct sonde_go_slot
		*slots; /* where pointers stand, ascending; short arrays are written out */
	uint32_t n_slots;
};

SONDE_DEFINE_VEC(sonde_go_type_vec, struct sonde_go_type *)

struct sonde_go_types {
	struct sonde_go *go; /* borrowed */
	struct sonde_arena arena;
	struct sonde_go_type_vec by_id; /* [0] is "unknown" */
	struct sonde_u32_map by_runtime, by_dwarf;
	uint32_t string_id, bytes_id; /* what strings' and byte slices' backing stores are called */
	uint32_t uint8_id;
	unsigned slot_depth; /* of types whose slots are being made */
	unsigned depth; /* of types being made: hostile descriptors may nest without end */
};

enum { SONDE_GO_TYPE_UNKNOWN = 0 };

struct sonde_error *sonde_go_types_open(
	struct sonde_go *go, struct sonde_go_types **ret) SONDE_CHECK;
void sonde_go_types_free(struct sonde_go_types *types);
SONDE_DEFINE_CLEANUP(sonde_go_types)

static inline struct sonde_go_type *sonde_go_type_of(const struct sonde_go_types *t, uint32_t id)
{
	return t->by_id.items[id < t->by_id.n ? id : 0];
}

/* The package variable that covers addr, as an index in sonde_dwarf_globals(); UINT32_MAX where none does. */
uint32_t sonde_go_types_global_at(struct sonde_go_types *t, uint64_t addr);

/* The id of the type whose descriptor stands at addr; 0 where it cannot be read or makes no sense. */
uint32_t sonde_go_types_runtime(struct sonde_go_types *t, uint64_t addr);

/* The id of a DWARF type; 0 where unreadable or void. */
uint32_t sonde_go_types_dwarf(struct sonde_go_types *t, uint64_t dwarf_id);

/* A type of that name that has no descriptor (closures, map parts); made where absent. */
uint32_t sonde_go_types_named(struct sonde_go_types *t, const char *name, uint64_t size_bytes);

/* What stands at offset of a value of type id, in Go's words, appended: ".next", "[3].name", "+8" where no field tells. */
void sonde_go_types_field(
	struct sonde_go_types *t, uint32_t id, uint64_t offset, struct sonde_buf *to);

/* The type of pointers to elem, whether or not the program has one; made anew where it has none that is known. */
uint32_t sonde_go_types_pointer(struct sonde_go_types *t, uint32_t elem);

/* The type of that name, as DWARF spells it; 0 = none. */
uint32_t sonde_go_types_find(struct sonde_go_types *t, const char *name);

/* A field of a struct. */
struct sonde_go_member {
	uint64_t offset_bytes;
	uint32_t type;
	const char *name; /* NULL: ask sonde_go_member_name() */
	uint64_t name_addr;
};

/* A walk over the fields of a struct, in their order; none where the type is no struct or is damaged from there on. */
struct sonde_go_members {
	struct sonde_go_types *t; /* borrowed */
	uint64_t fields, n, at, size_bytes;
	const struct sonde_dwarf_type *dwarf; /* borrowed; NULL: from the descriptor */
};
struct sonde_go_members sonde_go_members_of(struct sonde_go_types *t, uint32_t id);
bool sonde_go_members_next(struct sonde_go_members *it, struct sonde_go_member *ret);

/* Its name, read from the target where the descriptor has it: a copy each time, alive as long as t. */
const char *sonde_go_member_name(struct sonde_go_types *t, const struct sonde_go_member *m);

/* A part of a record that no type describes: what a closure captured. */
struct sonde_go_part {
	uint64_t offset_bytes;
	uint32_t type;
};

/* A record of that name put together from parts; made anew at each call. 0: out of memory. */
uint32_t sonde_go_types_composed(struct sonde_go_types *t, const char *name, uint64_t size_bytes,
	const struct sonde_go_part *parts, size_t n);

/* The type with its slots, made when first asked for. */
const struct sonde_go_type *sonde_go_types_slots(struct sonde_go_types *t, uint32_t id);
