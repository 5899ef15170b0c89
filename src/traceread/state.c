#include "traceread/state.h"

#include <string.h>
#include <sys/random.h>

#define NO_SLOT UINT32_MAX

/* --- id -> slot --- */

static void index_put(struct sonde_trace_index *x, uint64_t id, uint32_t slot)
{
	uint32_t i = sonde_trace_index_home(x, id);
	while (x->entries[i].slot != NO_SLOT)
		i = (i + 1) & (x->cap - 1);
	x->entries[i].tag = (uint32_t)id;
	x->entries[i].slot = slot;
}

/* Room for one more, by the ids of the slots that are there. items: structs that begin with their id. */
static bool index_reserve(struct sonde_trace_index *x, const void *items, size_t item_bytes)
{
	if (x->n + 1 <= x->cap / 2)
		return true;
	if (x->cap >= UINT32_C(1) << 30)
		return false;
	struct sonde_trace_index bigger = {
		.n = x->n, .cap = x->cap ? x->cap * 2 : 64, .multiplier = x->multiplier};
	if (!bigger.multiplier) {
		if (getrandom(&bigger.multiplier, sizeof(bigger.multiplier), GRND_NONBLOCK) !=
			sizeof(bigger.multiplier))
			bigger.multiplier = UINT64_C(0x9e3779b97f4a7c15);
		bigger.multiplier |= 1;
	}
	bigger.shift = (uint8_t)(64 - __builtin_ctz(bigger.cap));
	bigger.entries = malloc(bigger.cap * sizeof(*bigger.entries));
	if (!bigger.entries)
		return false;
	memset(bigger.entries, 0xff, bigger.cap * sizeof(*bigger.entries));
	for (uint32_t i = 0; i < x->cap; i++) {
		uint32_t slot = x->entries[i].slot;
		if (slot == NO_SLOT)
			continue;
		uint64_t id;
		memcpy(&id, (const char *)items + slot * item_bytes, sizeof(id));
		index_put(&bigger, id, slot);
	}
	free(x->entries);
	*x = bigger;
	return true;
}

/* Take slot, which is there under id, out, and close the gap that it leaves in its run. */
static void index_remove(struct sonde_trace_index *x, const void *items, size_t item_bytes,
	uint64_t id, uint32_t slot)
{
	uint32_t mask = x->cap - 1, gap = sonde_trace_index_home(x, id);
	while (x->entries[gap].slot != slot) {
		if (x->entries[gap].slot == NO_SLOT)
			return; /* it is not there */
		gap = (gap + 1) & mask;
	}
	for (uint32_t i = (gap + 1) & mask; x->entries[i].slot != NO_SLOT; i = (i + 1) & mask) {
		uint64_t other;
		memcpy(&other, (const char *)items + x->entries[i].slot * item_bytes,
			sizeof(other));
		uint32_t home = sonde_trace_index_home(x, other);
		if (((i - home) & mask) < ((i - gap) & mask))
			continue; /* its home lies behind the gap */
		x->entries[gap] = x->entries[i];
		gap = i;
	}
	x->entries[gap].slot = NO_SLOT;
	x->n--;
}

void sonde_trace_state_deinit(struct sonde_trace_state *s)
{
	sonde_trace_gs_deinit(&s->gs);
	sonde_trace_ps_deinit(&s->ps);
	sonde_trace_ms_deinit(&s->ms);
	sonde_trace_tasks_deinit(&s->tasks);
	sonde_trace_regions_deinit(&s->regions);
	free(s->open_regions);
	free(s->g_index.entries);
	free(s->p_index.entries);
	free(s->m_index.entries);
	free(s->task_index.entries);
	*s = (struct sonde_trace_state){0};
}

uint32_t sonde_trace_state_add_g(struct sonde_trace_state *s, uint64_t id)
{
	if (!index_reserve(&s->g_index, s->gs.items, sizeof(*s->gs.items)))
		return NO_SLOT;
	uint32_t slot;
	if (s->free_g) {
		slot = s->free_g - 1;
		s->free_g = s->gs.items[slot].seq;
	} else {
		if (s->gs.n >= NO_SLOT - 1 || !sonde_trace_gs_add(&s->gs))
			return NO_SLOT;
		slot = (uint32_t)s->gs.n - 1;
	}
	s->gs.items[slot] = (struct sonde_trace_g){.id = id};
	index_put(&s->g_index, id, slot);
	s->g_index.n++;
	s->n_gs++;
	return slot;
}

uint32_t sonde_trace_state_add_p(struct sonde_trace_state *s, uint64_t id)
{
	if (!index_reserve(&s->p_index, s->ps.items, sizeof(*s->ps.items)) ||
		s->ps.n >= NO_SLOT - 1 ||
		!sonde_trace_ps_push(&s->ps, (struct sonde_trace_p){.id = id}))
		return NO_SLOT;
	index_put(&s->p_index, id, (uint32_t)s->ps.n - 1);
	s->p_index.n++;
	return (uint32_t)s->ps.n - 1;
}

uint32_t sonde_trace_state_add_m(struct sonde_trace_state *s, uint64_t id)
{
	struct sonde_trace_m m = {.id = id, .g_slot = NO_SLOT, .p_slot = NO_SLOT};
	if (!index_reserve(&s->m_index, s->ms.items, sizeof(*s->ms.items)) ||
		s->ms.n >= NO_SLOT - 1 || !sonde_trace_ms_push(&s->ms, m))
		return NO_SLOT;
	index_put(&s->m_index, id, (uint32_t)s->ms.n - 1);
	s->m_index.n++;
	return (uint32_t)s->ms.n - 1;
}

uint32_t sonde_trace_state_add_task(struct sonde_trace_state *s, uint64_t id)
{
	if (!index_reserve(&s->task_index, s->tasks.items, sizeof(*s->tasks.items)))
		return NO_SLOT;
	uint32_t slot;
	if (s->free_task) {
		slot = s->free_task - 1;
		s->free_task = s->tasks.items[slot].next_free;
	} else {
		if (s->tasks.n >= NO_SLOT - 1 || !sonde_trace_tasks_add(&s->tasks))
			return NO_SLOT;
		slot = (uint32_t)s->tasks.n - 1;
	}
	s->tasks.items[slot] = (struct sonde_trace_task){.id = id, .is_open = true};
	index_put(&s->task_index, id, slot);
	s->task_index.n++;
	s->n_tasks++;
	return slot;
}

void sonde_trace_state_remove_task(struct sonde_trace_state *s, uint32_t slot)
{
	struct sonde_trace_task *task = &s->tasks.items[slot];
	index_remove(&s->task_index, s->tasks.items, sizeof(*task), task->id, slot);
	*task = (struct sonde_trace_task){.next_free = s->free_task};
	s->free_task = slot + 1;
	s->n_tasks--;
}

/* --- regions: lists in a pool --- */

static void free_region(struct sonde_trace_state *s, uint32_t number)
{
	s->regions.items[number - 1].outer = s->free_region;
	s->free_region = number;
	s->n_regions--;
}

void sonde_trace_state_remove_g(struct sonde_trace_state *s, uint32_t slot)
{
	struct sonde_trace_g *g = &s->gs.items[slot];
	index_remove(&s->g_index, s->gs.items, sizeof(*g), g->id, slot);
	if (slot < s->n_open_regions) {
		for (uint32_t at = s->open_regions[slot], outer; at; at = outer) {
			outer = s->regions.items[at - 1].outer;
			free_region(s, at);
		}
		s->open_regions[slot] = 0;
	}
	*g = (struct sonde_trace_g){.seq = s->free_g};
	s->free_g = slot + 1;
	s->n_gs--;
}

bool sonde_trace_state_open_region(
	struct sonde_trace_state *s, uint32_t g_slot, uint64_t task, uint32_t name)
{
	if (g_slot >= s->n_open_regions) {
		size_t room = s->gs.cap > g_slot ? s->gs.cap : g_slot + UINT64_C(1);
		uint32_t *bigger = sonde_realloc_array(s->open_regions, room, sizeof(*bigger));
		if (!bigger)
			return false;
		memset(bigger + s->n_open_regions, 0, (room - s->n_open_regions) * sizeof(*bigger));
		s->open_regions = bigger;
		s->n_open_regions = room;
	}
	uint32_t number = s->free_region;
	if (number) {
		s->free_region = s->regions.items[number - 1].outer;
	} else {
		if (s->regions.n >= NO_SLOT - 1 || !sonde_trace_regions_add(&s->regions))
			return false;
		number = (uint32_t)s->regions.n;
	}
	s->regions.items[number - 1] = (struct sonde_trace_region){
		.task = task, .name = name, .outer = s->open_regions[g_slot]};
	s->open_regions[g_slot] = number;
	s->n_regions++;
	return true;
}

enum sonde_trace_region_end sonde_trace_state_close_region(
	struct sonde_trace_state *s, uint32_t g_slot, uint64_t task, uint32_t name)
{
	uint32_t innermost = g_slot < s->n_open_regions ? s->open_regions[g_slot] : 0;
	uint32_t found = innermost;
	if (!innermost)
		return SONDE_TRACE_REGION_UNKNOWN;
	while (found &&
		(s->regions.items[found - 1].task != task ||
			s->regions.items[found - 1].name != name))
		found = s->regions.items[found - 1].outer;
	if (!found)
		return SONDE_TRACE_REGION_MISMATCH;
	s->open_regions[g_slot] = s->regions.items[found - 1].outer;
	for (uint32_t at = innermost, outer;; at = outer) {
		outer = s->regions.items[at - 1].outer;
		free_region(s, at);
		if (at == found)
			break;
	}
	return found == innermost ? SONDE_TRACE_REGION_OK : SONDE_TRACE_REGION_INNER_OPEN;
}

const struct sonde_trace_region *sonde_trace_state_region(
	const struct sonde_trace_state *s, uint32_t g_slot)
{
	uint32_t number = g_slot < s->n_open_regions ? s->open_regions[g_slot] : 0;
	return number ? &s->regions.items[number - 1] : NULL;
}

const struct sonde_trace_region *sonde_trace_state_outer_region(
	const struct sonde_trace_state *s, const struct sonde_trace_region *region)
{
	return region->outer ? &s->regions.items[region->outer - 1] : NULL;
}

size_t sonde_trace_state_bytes(const struct sonde_trace_state *s)
{
	size_t entries =
		(size_t)s->g_index.cap + s->p_index.cap + s->m_index.cap + s->task_index.cap;
	return s->gs.cap * sizeof(*s->gs.items) + s->ps.cap * sizeof(*s->ps.items) +
		s->ms.cap * sizeof(*s->ms.items) + s->tasks.cap * sizeof(*s->tasks.items) +
		s->regions.cap * sizeof(*s->regions.items) +
		s->n_open_regions * sizeof(*s->open_regions) +
		entries * sizeof(*s->g_index.entries);
}
