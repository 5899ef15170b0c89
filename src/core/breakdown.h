/*
 * src/core/breakdown.h: what every byte of every mapping is for. Each byte counts once, in a leaf of a fixed tree; sums
 * equal the mappings exactly. What nothing tells is in a leaf of its own.
 *
 * Costs: 24 bytes a heap span and a run of free pages; one look at each slot of the heap.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "core/session.h"

/* L(name, depth, key, label): a row; a row's children follow it, one deeper. */
#define SONDE_CORE_BREAKDOWN_ROWS(L)                                         \
	L(ALL, 0, "all", "all mappings")                                     \
	L(PROGRAM, 1, "program", "program")                                  \
	L(TEXT, 2, "text", "text")                                           \
	L(RODATA, 2, "rodata", "read-only data")                             \
	L(DATA, 2, "data", "data")                                           \
	L(BSS, 2, "bss", "bss")                                              \
	L(HEAP, 1, "heap", "Go heap")                                        \
	L(IN_USE, 2, "in_use", "spans in use")                               \
	L(LIVE, 3, "live", "live objects")                                   \
	L(KEPT, 3, "kept", "kept for finalizers only")                       \
	L(GARBAGE, 3, "garbage", "garbage")                                  \
	L(FREE_SLOTS, 3, "free_slots", "free slots")                         \
	L(ROUND, 3, "round", "behind the last slot, heap bits")              \
	L(STACKS, 2, "stacks", "spans of stacks")                            \
	L(GOROUTINE_STACKS, 3, "goroutine_stacks", "goroutines")             \
	L(FREE_STACKS, 3, "other_stacks", "free, dead, the runtime's own")   \
	L(WORK_BUFFERS, 2, "work_buffers", "collector's work buffers")       \
	L(PAGES, 2, "free_pages", "free pages")                              \
	L(RETAINED_PAGES, 3, "retained", "retained")                         \
	L(RELEASED_PAGES, 3, "released", "released")                         \
	L(HEAP_OTHER, 2, "heap_other", "in no span, not free: padding")      \
	L(RUNTIME, 1, "runtime", "Go runtime")                               \
	L(HEAP_INDEX, 2, "heap_index", "heap index")                         \
	L(MARK_BITS, 2, "mark_bits", "mark and allocation bits")             \
	L(PERSISTENT, 2, "persistent", "records: spans, specials, profiles") \
	L(FOREIGN, 1, "files", "other files")                                \
	L(FOREIGN_TEXT, 2, "files_text", "code")                             \
	L(FOREIGN_RODATA, 2, "files_read_only", "read-only")                 \
	L(FOREIGN_DATA, 2, "files_data", "writable")                         \
	L(KERNEL, 1, "kernel", "the kernel's (vdso)")                        \
	L(THREAD_STACKS, 1, "thread_stacks", "stacks of threads")            \
	L(OTHER, 1, "anonymous", "anonymous, not told apart")                \
	L(NO_ACCESS, 1, "no_access", "reserved, no access")

enum sonde_core_breakdown_row {
#define L(name, depth, key, label) SONDE_CORE_BREAKDOWN_##name,
	SONDE_CORE_BREAKDOWN_ROWS(L)
#undef L
		SONDE_CORE_BREAKDOWN_N
};

struct sonde_core_breakdown_size {
	uint64_t bytes; /* addresses */
	uint64_t present_bytes; /* of them kept by the core or the mapped file */
};

enum { SONDE_CORE_BREAKDOWN_PERMISSIONS = 8 };

struct sonde_core_breakdown {
	struct sonde_core_breakdown_size rows[SONDE_CORE_BREAKDOWN_N];
	/* By SONDE_PERM_*. */
	struct sonde_core_breakdown_size permissions[SONDE_CORE_BREAKDOWN_PERMISSIONS];
	uint64_t n_mappings[SONDE_CORE_BREAKDOWN_PERMISSIONS];
	bool has_go; /* else the heap's and the runtime's rows are empty */
};

/*
 * A Go runtime that cannot be read is no failure: *go_error says why (the caller's; may be NULL), and what it owns counts
 * as anonymous.
 */
struct sonde_error *sonde_core_breakdown_make(struct sonde_core_session *s,
	struct sonde_core_breakdown *ret, struct sonde_error **go_error) SONDE_CHECK;

extern const struct sonde_core_breakdown_row_info {
	unsigned depth;
	const char *key, *label;
} sonde_core_breakdown_rows[SONDE_CORE_BREAKDOWN_N];
