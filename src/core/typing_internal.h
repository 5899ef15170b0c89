/* src/core/typing_internal.h: what the files of the typing pass share; see typing.h. */
#pragma once
#include <string.h>
#include "core/typing.h"
#include "golang/framevars.h"
#include "golang/ptrmask.h"

enum { SONDE_CORE_TYPING_MAX_DEPTH = 64 };

SONDE_DEFINE_MAP(sonde_core_pc_map, struct sonde_dwarf_variables)

/* n values of type id at addr, in memory that is no object. */
struct sonde_core_static_value {
	uint64_t addr, n;
	uint32_t id;
};
SONDE_DEFINE_VEC(sonde_core_static_vec, struct sonde_core_static_value)

struct sonde_core_typer {
	const struct sonde_go_heap *heap;
	struct sonde_go *go;
	const struct sonde_core_marks *marks;
	struct sonde_go_types *types;
	uint32_t *of;
	struct sonde_go_masks masks;
	struct sonde_u32_vec work; /* objects whose pointers are to be followed */
	struct sonde_u32_map closures; /* code address -> type id */
	struct sonde_u32_map parts; /* (type << 3 | enum sonde_core_part) -> type id */
	uint32_t hchan_id; /* runtime.hchan */
	uint32_t
		unsafe_id; /* of what only an unsafe.Pointer leads to: any other typing goes before */
	uint64_t reflect_indirect; /* reflect.flagIndir: the word is a pointer to the value */
	struct sonde_core_pc_map variables; /* by look-up pc */
	struct sonde_core_static_vec
		statics; /* values outside the heap that typed pointers led to, to be followed */
	struct sonde_u64_map static_seen; /* address -> bytes followed from it */
	uint64_t
		follow_left; /* bytes outside typed objects that may still be followed: damage could name them all, often */
	bool no_memory;
};

/* Parts that have no type of their own, of the type that is their key. */
enum sonde_core_part {
	SONDE_CORE_PART_MAP,
	SONDE_CORE_PART_MAP_DIRECTORY,
	SONDE_CORE_PART_MAP_TABLE,
	SONDE_CORE_PART_MAP_BUCKET,
	SONDE_CORE_PART_CHAN,
	SONDE_CORE_PART_CHAN_OF, /* the key is the element's type */
	SONDE_CORE_PART_TRIE_ENTRY,
	SONDE_CORE_PART_TRIE_INNER,
};

static inline uint64_t sonde_core_typing_word(const struct sonde_core_typer *t, const uint8_t *p)
{
	uint64_t v = 0;
	memcpy(&v, p, t->go->word_bytes);
	return v;
}

static inline bool sonde_core_typed(const struct sonde_core_typer *t, uint32_t object)
{
	return t->of[object] && t->of[object] != t->unsafe_id;
}

/* typing.c: one pointer, one value, one object; each may add to what is to be followed. */

/* addr points to n (0: at least one, unknown) values of type id. */
void sonde_core_type_pointer(struct sonde_core_typer *t, uint64_t addr, uint32_t id, uint64_t n);
/* addr points to the start of a part that nothing else types: call it so. */
void sonde_core_type_part(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
/* The pointers of one value of type id in len bytes at `bytes`. */
void sonde_core_type_value(
	struct sonde_core_typer *t, const uint8_t *bytes, uint64_t len, uint32_t id, int depth);
/* The same for one slot of it, at p. */
void sonde_core_type_slot(
	struct sonde_core_typer *t, const uint8_t *p, const struct sonde_go_slot *slot, int depth);
/* A value in target memory; values in several mappings are left out. */
void sonde_core_type_memory(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
/* A value in memory that is no object, once. */
void sonde_core_type_once(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
unsigned sonde_core_slot_words(uint8_t kind);
/* Follow until nothing is left. */
void sonde_core_type_drain(struct sonde_core_typer *t);

/* typing_known.c: what the runtime and its libraries lay out themselves. */
void sonde_core_type_map(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
void sonde_core_type_chan(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
/* A channel that only a blocked goroutine's sudog leads to: it knows the type of its values. */
void sonde_core_type_untyped_chan(struct sonde_core_typer *t, uint64_t addr);
void sonde_core_type_func(struct sonde_core_typer *t, uint64_t addr);
void sonde_core_type_descriptor(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
void sonde_core_type_trie_node(struct sonde_core_typer *t, uint64_t addr, uint32_t id);
void sonde_core_type_weak_handle(struct sonde_core_typer *t, uint64_t addr);
/* The copy at addr of the argument of a cleanup whose function is the funcval at fn. */
void sonde_core_type_cleanup_argument(struct sonde_core_typer *t, uint64_t addr, uint64_t fn);

/* typing_frames.c: where typing begins on stacks and in records of goroutines and objects. */
void sonde_core_type_frames(struct sonde_core_typer *t, const struct sonde_goroutines *gs);
void sonde_core_type_goroutines(struct sonde_core_typer *t, const struct sonde_goroutines *gs);
void sonde_core_type_specials(struct sonde_core_typer *t);
/* Objects without a type that a word of a frame keeps: by where variables are kept at other places of the function. */
void sonde_core_type_spills(struct sonde_core_typer *t, const struct sonde_goroutines *gs);
