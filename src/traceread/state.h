/*
 * src/traceread/state.h: what exists at one moment of a trace: goroutines, processors, threads, tasks, regions. Both
 * readers keep one. A goroutine takes 16 bytes and some 16 of index (8 more once regions were seen); what is not there
 * any more takes nothing. Slots are dense and used again.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/mem.h"
#include "base/vec.h"
#include "traceformat/events.h"
#include "traceformat/wire.h"

/* Ranges that the runtime opens and closes on a goroutine or a processor. */
enum sonde_trace_range {
	SONDE_TRACE_RANGE_STW = 1,
	SONDE_TRACE_RANGE_MARK_ASSIST = 2,
	SONDE_TRACE_RANGE_SWEEP = 4,
};

struct sonde_trace_g {
	uint64_t id;
	uint32_t seq; /* sequence number of its last transition, within gen */
	uint16_t gen; /* the reader's number of the generation that seq is of, low bits */
	uint8_t status; /* enum sonde_trace_g_status; NONE: the slot is free and seq the next free one */
	uint8_t ranges; /* enum sonde_trace_range, bits */
};

struct sonde_trace_p {
	uint64_t id;
	uint32_t seq;
	uint16_t gen;
	uint8_t status; /* enum sonde_trace_p_status */
	uint8_t ranges;
};

struct sonde_trace_m {
	uint64_t id;
	uint32_t g_slot, p_slot; /* bound to it; SONDE_TRACE_NO_SLOT */
};

struct sonde_trace_region {
	uint64_t task;
	uint32_t name; /* interned */
	uint32_t outer; /* index + 1 of the region around it; 0 = none */
};

struct sonde_trace_task {
	uint64_t id, parent; /* parent: SONDE_TRACE_NO_ID = none */
	uint32_t name; /* interned */
	uint32_t next_free; /* of a free slot: index + 1 */
	bool is_open; /* false: the slot is free */
};

SONDE_DEFINE_VEC(sonde_trace_gs, struct sonde_trace_g)
SONDE_DEFINE_VEC(sonde_trace_ps, struct sonde_trace_p)
SONDE_DEFINE_VEC(sonde_trace_ms, struct sonde_trace_m)
SONDE_DEFINE_VEC(sonde_trace_regions, struct sonde_trace_region)
SONDE_DEFINE_VEC(sonde_trace_tasks, struct sonde_trace_task)

/* id -> slot: open addressing, entries of 8 bytes; what an entry says is made sure in the table itself. */
struct sonde_trace_index {
	struct {
		uint32_t tag, slot; /* low half of the id; slot SONDE_TRACE_NO_SLOT = free */
	} * entries;
	uint64_t multiplier; /* of the hash, odd */
	uint32_t n, cap; /* cap: 0 or a power of two */
	uint8_t shift;
};

struct sonde_trace_state {
	struct sonde_trace_gs gs; /* by slot */
	struct sonde_trace_ps ps;
	struct sonde_trace_ms ms;
	struct sonde_trace_tasks tasks; /* by slot */
	struct sonde_trace_regions regions; /* a pool */
	uint32_t *
		open_regions; /* by slot of a goroutine: index + 1 of the innermost; NULL until one was seen */
	size_t n_open_regions; /* room in it */
	struct sonde_trace_index g_index, p_index, m_index, task_index;
	uint32_t free_g, free_region, free_task; /* index + 1 of the first free one */
	uint32_t n_gs, n_tasks, n_regions; /* that exist */
	uint64_t gc_seq;
	uint8_t gc; /* enum sonde_trace_gc_status */
};

enum sonde_trace_gc_status {
	SONDE_TRACE_GC_UNDETERMINED,
	SONDE_TRACE_GC_OFF,
	SONDE_TRACE_GC_ON,
};

void sonde_trace_state_deinit(struct sonde_trace_state *s);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_trace_state)

/* Multiply-shift by a random odd number: a file cannot know which ids collide. */
static inline uint32_t sonde_trace_index_home(const struct sonde_trace_index *x, uint64_t id)
{
	return (uint32_t)((id * x->multiplier) >> x->shift);
}

/* items: those that the slots are of. Inline: half of all events look one up. */
#define SONDE_TRACE_INDEX_FIND(x, items, key)                                         \
	({                                                                            \
		uint32_t found_ = UINT32_MAX;                                         \
		if ((x)->cap) {                                                       \
			uint32_t i_ = sonde_trace_index_home((x), (key));             \
			for (; (x)->entries[i_].slot != UINT32_MAX;                   \
				i_ = (i_ + 1) & ((x)->cap - 1)) {                     \
				if ((x)->entries[i_].tag == (uint32_t)(key) &&        \
					(items)[(x)->entries[i_].slot].id == (key)) { \
					found_ = (x)->entries[i_].slot;               \
					break;                                        \
				}                                                     \
			}                                                             \
		}                                                                     \
		found_;                                                               \
	})

/* The slot of an id, or SONDE_TRACE_NO_SLOT (UINT32_MAX). */
static inline uint32_t sonde_trace_state_find_g(const struct sonde_trace_state *s, uint64_t id)
{
	return SONDE_TRACE_INDEX_FIND(&s->g_index, s->gs.items, id);
}

static inline uint32_t sonde_trace_state_find_p(const struct sonde_trace_state *s, uint64_t id)
{
	return SONDE_TRACE_INDEX_FIND(&s->p_index, s->ps.items, id);
}

static inline uint32_t sonde_trace_state_find_m(const struct sonde_trace_state *s, uint64_t id)
{
	return SONDE_TRACE_INDEX_FIND(&s->m_index, s->ms.items, id);
}

static inline uint32_t sonde_trace_state_find_task(const struct sonde_trace_state *s, uint64_t id)
{
	return SONDE_TRACE_INDEX_FIND(&s->task_index, s->tasks.items, id);
}

/* Make one that is not there, zeroed but for its id (a thread: bound to nothing). UINT32_MAX when out of memory. */
uint32_t sonde_trace_state_add_g(struct sonde_trace_state *s, uint64_t id);
uint32_t sonde_trace_state_add_p(struct sonde_trace_state *s, uint64_t id);
uint32_t sonde_trace_state_add_m(struct sonde_trace_state *s, uint64_t id);
uint32_t sonde_trace_state_add_task(struct sonde_trace_state *s, uint64_t id);

/* It ends; its slot is free. A goroutine's open regions go with it. */
void sonde_trace_state_remove_g(struct sonde_trace_state *s, uint32_t slot);
void sonde_trace_state_remove_task(struct sonde_trace_state *s, uint32_t slot);

/* Open a region on a goroutine. false when out of memory. */
bool sonde_trace_state_open_region(
	struct sonde_trace_state *s, uint32_t g_slot, uint64_t task, uint32_t name);

enum sonde_trace_region_end {
	SONDE_TRACE_REGION_OK,
	SONDE_TRACE_REGION_UNKNOWN, /* none is open: it began before the trace */
	SONDE_TRACE_REGION_INNER_OPEN, /* it is not the innermost: those within were closed with it */
	SONDE_TRACE_REGION_MISMATCH, /* none that is open is the one: nothing was closed */
};
enum sonde_trace_region_end sonde_trace_state_close_region(
	struct sonde_trace_state *s, uint32_t g_slot, uint64_t task, uint32_t name);

/* The innermost open region of a goroutine, or NULL; the one around it, or NULL. */
const struct sonde_trace_region *sonde_trace_state_region(
	const struct sonde_trace_state *s, uint32_t g_slot);
const struct sonde_trace_region *sonde_trace_state_outer_region(
	const struct sonde_trace_state *s, const struct sonde_trace_region *region);

/* Heap that it takes. */
size_t sonde_trace_state_bytes(const struct sonde_trace_state *s);
