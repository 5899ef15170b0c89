/*
 * src/golang/pagealloc.h: what the runtime's page allocator and its own tables say of memory: ranges of addresses with
 * what they are for. Ranges come as the runtime's records have them; they may overlap where records are damaged.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/vec.h"
#include "golang/heap.h"

enum sonde_go_memory {
	SONDE_GO_MEMORY_STACKS, /* spans that stacks are cut from */
	SONDE_GO_MEMORY_WORK_BUFFERS, /* spans of the collector's work buffers */
	SONDE_GO_MEMORY_FREE, /* pages in no span; the kernel still keeps them */
	SONDE_GO_MEMORY_RELEASED, /* pages in no span, given back to the kernel (scavenged) */
	SONDE_GO_MEMORY_HEAP, /* the page allocator's address range: all of the above and spans in use */
	SONDE_GO_MEMORY_HEAP_INDEX, /* page summaries and bitmaps, arena records, list of spans */
	SONDE_GO_MEMORY_MARK_BITS, /* allocation and mark bits */
	SONDE_GO_MEMORY_PERSISTENT, /* span records, specials, profile buckets ... */
};

struct sonde_go_memory_range {
	uint64_t start, end;
	enum sonde_go_memory kind;
};
SONDE_DEFINE_VEC(sonde_go_memory_ranges, struct sonde_go_memory_range)

/*
 * Add all ranges, in no order. A page is released only where it is free and scavenged: the runtime keeps the scavenged bit
 * of allocated pages. Pages in a P's cache are free, though the bitmaps have them as allocated. What is not readable is
 * noted.
 */
struct sonde_error *sonde_go_memory_read(
	struct sonde_go *go, struct sonde_go_memory_ranges *to) SONDE_CHECK;
