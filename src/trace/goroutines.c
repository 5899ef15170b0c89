#include "trace/goroutines.h"

#include <string.h>

#include "trace/entry.h"

static const int64_t never = INT64_MIN;

/* A goroutine that exists, by the reader's slot. */
struct sonde_trace_live {
	struct sonde_trace_goroutine g;
	int64_t since_ns; /* that it has its status */
	int64_t stolen_ns; /* since its processor was taken from its system call; never: it was not */
	int64_t assist_ns, sweep_ns; /* since when; never: it does not */
	uint32_t reason; /* that it is blocked for */
	uint32_t syscall_p; /* slot + 1 of the processor that it is in a system call with */
	uint8_t status; /* enum sonde_trace_g_status; NONE: no goroutine */
};

uint64_t sonde_trace_times_unknown(const struct sonde_trace_times *t)
{
	uint64_t known = t->running_ns + t->runnable_ns + t->blocked_ns + t->syscall_ns +
		t->syscall_blocked_ns;
	return t->total_ns > known ? t->total_ns - known : 0;
}

void sonde_trace_times_add(struct sonde_trace_times *to, const struct sonde_trace_times *t)
{
	to->total_ns += t->total_ns;
	to->running_ns += t->running_ns;
	to->runnable_ns += t->runnable_ns;
	to->blocked_ns += t->blocked_ns;
	to->syscall_ns += t->syscall_ns;
	to->syscall_blocked_ns += t->syscall_blocked_ns;
	to->assist_ns += t->assist_ns;
	to->sweep_ns += t->sweep_ns;
}

void sonde_trace_times_sub(struct sonde_trace_times *from, const struct sonde_trace_times *t)
{
	from->total_ns -= t->total_ns;
	from->running_ns -= t->running_ns;
	from->runnable_ns -= t->runnable_ns;
	from->blocked_ns -= t->blocked_ns;
	from->syscall_ns -= t->syscall_ns;
	from->syscall_blocked_ns -= t->syscall_blocked_ns;
	from->assist_ns -= t->assist_ns;
	from->sweep_ns -= t->sweep_ns;
}

void sonde_trace_goroutines_init(struct sonde_trace_goroutines *gs, bool keep)
{
	*gs = (struct sonde_trace_goroutines){
		.keep = keep, .first_ns = INT64_MAX, .last_ns = INT64_MIN, .sync_ns = never};
}

void sonde_trace_goroutines_deinit(struct sonde_trace_goroutines *gs)
{
	sonde_trace_goroutine_vec_deinit(&gs->ended);
	sonde_trace_entry_vec_deinit(&gs->entries);
	sonde_trace_blocks_deinit(&gs->blocks);
	sonde_u32_vec_deinit(&gs->by_entry);
	sonde_u32_vec_deinit(&gs->syscall_of_p);
	sonde_u32_vec_deinit(&gs->sweep_of_p);
	free(gs->live);
}

/* The element at i of an array that is 0 where nothing was put. NULL: out of memory. */
static uint32_t *slot_of(struct sonde_u32_vec *v, size_t i)
{
	while (v->n <= i) {
		if (!sonde_u32_vec_push(v, 0))
			return NULL;
	}
	return &v->items[i];
}

static struct sonde_trace_live *live_at(struct sonde_trace_goroutines *gs, uint32_t slot)
{
	return slot < gs->n_live && gs->live[slot].status != SONDE_TRACE_G_NONE ? &gs->live[slot]
										: NULL;
}

static bool reserve_live(struct sonde_trace_goroutines *gs, uint32_t slot)
{
	if (slot < gs->n_live)
		return true;
	size_t n = sonde_max(sonde_max((size_t)slot + 1, gs->n_live * 2), (size_t)64);
	struct sonde_trace_live *live = reallocarray(gs->live, n, sizeof(*live));
	if (!live)
		return false;
	memset(live + gs->n_live, 0, (n - gs->n_live) * sizeof(*live));
	gs->live = live;
	gs->n_live = n;
	return true;
}

/* --- blocked times: short lists in one pool --- */

static bool add_block(
	struct sonde_trace_goroutines *gs, uint32_t *list, uint32_t reason, uint64_t n, uint64_t ns)
{
	for (uint32_t i = *list; i; i = gs->blocks.items[i - 1].next) {
		struct sonde_trace_block *b = &gs->blocks.items[i - 1];
		if (b->reason == reason) {
			b->n += n;
			b->ns += ns;
			return true;
		}
	}
	struct sonde_trace_block b = {.reason = reason, .next = *list, .n = n, .ns = ns};
	if (gs->free_block) {
		uint32_t i = gs->free_block;
		gs->free_block = gs->blocks.items[i - 1].next;
		gs->blocks.items[i - 1] = b;
		*list = i;
		return true;
	}
	if (gs->blocks.n == UINT32_MAX - 1 || !sonde_trace_blocks_push(&gs->blocks, b))
		return false;
	*list = (uint32_t)gs->blocks.n;
	return true;
}

static void free_blocks(struct sonde_trace_goroutines *gs, uint32_t list)
{
	while (list) {
		struct sonde_trace_block *b = &gs->blocks.items[list - 1];
		uint32_t next = b->next;
		b->next = gs->free_block;
		gs->free_block = list;
		list = next;
	}
}

/* --- one goroutine --- */

static uint64_t between(int64_t from_ns, int64_t to_ns)
{
	return to_ns > from_ns ? (uint64_t)to_ns - (uint64_t)from_ns : 0;
}

/* The time that it has had its status since it came into it, as a part of t. */
static void add_status(const struct sonde_trace_live *l, int64_t ns, struct sonde_trace_times *t)
{
	uint64_t d = between(l->since_ns, ns);
	switch (l->status) {
	case SONDE_TRACE_G_RUNNING:
		t->running_ns += d;
		break;
	case SONDE_TRACE_G_RUNNABLE:
		t->runnable_ns += d;
		break;
	case SONDE_TRACE_G_WAITING:
		t->blocked_ns += d;
		break;
	case SONDE_TRACE_G_SYSCALL:
		if (l->stolen_ns != never) {
			t->syscall_blocked_ns += between(l->stolen_ns, ns);
			t->syscall_ns += between(l->since_ns, l->stolen_ns);
		} else {
			t->syscall_ns += d;
		}
		break;
	}
}

/* It leaves its status; n: times that it came into it. */
static bool close_status(
	struct sonde_trace_goroutines *gs, struct sonde_trace_live *l, int64_t ns, uint64_t n)
{
	add_status(l, ns, &l->g.times);
	return l->status != SONDE_TRACE_G_WAITING ||
		add_block(gs, &l->g.blocks, l->reason, n, between(l->since_ns, ns));
}

/* What is open at ns, and the total. */
static void complete_times(
	const struct sonde_trace_live *l, int64_t ns, struct sonde_trace_times *t)
{
	t->total_ns = between(l->g.created_ns, ns);
	if (l->assist_ns != never)
		t->assist_ns += between(l->assist_ns, ns);
	if (l->sweep_ns != never)
		t->sweep_ns += between(l->sweep_ns, ns);
}

void sonde_trace_goroutines_times(const struct sonde_trace_goroutines *gs, uint32_t slot,
	int64_t ns, struct sonde_trace_times *ret)
{
	*ret = (struct sonde_trace_times){0};
	if (slot >= gs->n_live || gs->live[slot].status == SONDE_TRACE_G_NONE)
		return;
	const struct sonde_trace_live *l = &gs->live[slot];
	*ret = l->g.times;
	add_status(l, ns, ret);
	complete_times(l, ns, ret);
}

static bool sum_up(struct sonde_trace_goroutines *gs, const struct sonde_trace_goroutine *g)
{
	uint32_t *index = slot_of(&gs->by_entry, g->entry);
	if (!index)
		return false;
	if (!*index) {
		if (!sonde_trace_entry_vec_push(
			    &gs->entries, (struct sonde_trace_entry){.entry = g->entry}))
			return false;
		*index = (uint32_t)gs->entries.n;
	}
	struct sonde_trace_entry *entry = &gs->entries.items[*index - 1];
	entry->n++;
	sonde_trace_times_add(&entry->times, &g->times);
	for (uint32_t i = g->blocks; i; i = gs->blocks.items[i - 1].next) {
		struct sonde_trace_block b = gs->blocks.items[i - 1];
		if (!add_block(gs, &entry->blocks, b.reason, b.n, b.ns))
			return false;
	}
	free_blocks(gs, g->blocks);
	return true;
}

/* It ended, or the trace did. */
static bool close_goroutine(
	struct sonde_trace_goroutines *gs, struct sonde_trace_live *l, int64_t ns)
{
	complete_times(l, ns, &l->g.times);
	l->status = SONDE_TRACE_G_NONE;
	return gs->keep ? sonde_trace_goroutine_vec_push(&gs->ended, l->g) : sum_up(gs, &l->g);
}

/* A goroutine is named for the first time: created now, or there since the last synchronisation. */
static bool begin(struct sonde_trace_goroutines *gs, struct sonde_trace_live *l,
	const struct sonde_trace_event *e)
{
	bool created = e->g_before == SONDE_TRACE_G_NONE;
	int64_t since_ns = created ? e->ns : gs->sync_ns;
	*l = (struct sonde_trace_live){
		.g = {.id = e->subject_g,
			.created_ns = since_ns,
			.started_ns = never,
			.ended_ns = never},
		.since_ns = since_ns,
		.stolen_ns = never,
		.assist_ns = never,
		.sweep_ns = never,
		.status = e->g_after,
	};
	gs->n++;
	/* In a system call from before the trace and without a processor: taken away already. */
	if (!created && e->g_after == SONDE_TRACE_G_SYSCALL && e->p == SONDE_TRACE_NO_ID)
		l->stolen_ns = since_ns;
	return created || close_status(gs, l, e->ns, 0);
}

static bool enter(struct sonde_trace_goroutines *gs, struct sonde_trace_reader *reader,
	struct sonde_trace_live *l, const struct sonde_trace_event *e)
{
	l->status = e->g_after;
	l->since_ns = e->ns;
	switch (e->g_after) {
	case SONDE_TRACE_G_RUNNING:
		if (l->g.started_ns == never)
			l->g.started_ns = e->ns;
		return true;
	case SONDE_TRACE_G_WAITING:
		l->reason = e->kind == SONDE_TRACE_GO_BLOCK ? sonde_trace_intern(reader, e->args[0])
							    : 0;
		return l->reason != UINT32_MAX;
	case SONDE_TRACE_G_SYSCALL:
		if (l->stolen_ns != never)
			l->stolen_ns = e->ns;
		if (e->p_slot != SONDE_TRACE_NO_SLOT) {
			uint32_t *owner = slot_of(&gs->syscall_of_p, e->p_slot);
			if (!owner)
				return false;
			*owner = e->subject_g_slot + 1;
			l->syscall_p = e->p_slot + 1;
		}
		return true;
	default:
		return true;
	}
}

/* Formats before 1.22 say that a goroutine was blocked when the trace began by creating it, runnable, first. */
static bool was_always(const struct sonde_trace_event *e)
{
	return (e->wire == SONDE_TRACE_V1_GO_WAITING || e->wire == SONDE_TRACE_V1_GO_IN_SYSCALL) &&
		e->kind == SONDE_TRACE_GO_STATUS;
}

static bool transition(struct sonde_trace_goroutines *gs, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	if (!reserve_live(gs, e->subject_g_slot))
		return false;
	struct sonde_trace_live *l = &gs->live[e->subject_g_slot];
	bool exists = l->status != SONDE_TRACE_G_NONE;
	/* After damage a slot may be another's before its end was seen. */
	if (exists && (l->g.id != e->subject_g || e->g_before == SONDE_TRACE_G_NONE)) {
		if (!close_goroutine(gs, l, e->ns))
			return false;
		exists = false;
	}
	if (!exists) {
		if (e->g_after == SONDE_TRACE_G_NONE)
			return true;
		if (!begin(gs, l, e))
			return false;
	} else if (!was_always(e)) {
		if (!close_status(gs, l, e->ns, 1))
			return false;
		l->stolen_ns = never;
	}
	if (l->syscall_p) {
		uint32_t *owner = slot_of(&gs->syscall_of_p, l->syscall_p - 1);
		if (owner && *owner == e->subject_g_slot + 1)
			*owner = 0;
		l->syscall_p = 0;
	}
	if (!l->g.entry && !sonde_trace_entry_find(reader, e, &l->g.entry))
		return false;
	if (e->g_after == SONDE_TRACE_G_NONE) {
		l->g.ended_ns = e->ns;
		return close_goroutine(gs, l, e->ns);
	}
	int64_t since_ns = l->since_ns;
	if (!enter(gs, reader, l, e))
		return false;
	if (was_always(e))
		l->since_ns = since_ns;
	return true;
}

/* A processor goes idle while its goroutine is in a system call: from here on that one has none. */
static void take_from_syscall(struct sonde_trace_goroutines *gs, const struct sonde_trace_event *e)
{
	if (e->subject_p_slot >= gs->syscall_of_p.n || !gs->syscall_of_p.items[e->subject_p_slot])
		return;
	struct sonde_trace_live *l = live_at(gs, gs->syscall_of_p.items[e->subject_p_slot] - 1);
	gs->syscall_of_p.items[e->subject_p_slot] = 0;
	if (l && l->status == SONDE_TRACE_G_SYSCALL && l->syscall_p == e->subject_p_slot + 1) {
		l->stolen_ns = e->ns;
		l->syscall_p = 0;
	}
}

/* --- ranges --- */

static void begin_range(int64_t *since_ns, int64_t ns)
{
	if (*since_ns == never)
		*since_ns = ns;
}

static void end_range(int64_t *since_ns, int64_t sync_ns, int64_t ns, uint64_t *total_ns)
{
	*total_ns += between(*since_ns == never ? sync_ns : *since_ns, ns);
	*since_ns = never;
}

static bool add_range(struct sonde_trace_goroutines *gs, const struct sonde_trace_event *e)
{
	bool is_sweep = e->kind == SONDE_TRACE_GC_SWEEP_BEGIN ||
		e->kind == SONDE_TRACE_GC_SWEEP_ACTIVE || e->kind == SONDE_TRACE_GC_SWEEP_END;
	bool active = e->kind == SONDE_TRACE_GC_SWEEP_ACTIVE ||
		e->kind == SONDE_TRACE_GC_MARK_ASSIST_ACTIVE;
	uint32_t slot =
		e->kind == SONDE_TRACE_GC_MARK_ASSIST_ACTIVE ? e->subject_g_slot : e->g_slot;
	uint32_t p_slot = e->subject_p_slot != SONDE_TRACE_NO_SLOT ? e->subject_p_slot : e->p_slot;
	uint32_t *owner = NULL;
	if (is_sweep && p_slot != SONDE_TRACE_NO_SLOT &&
		!(owner = slot_of(&gs->sweep_of_p, p_slot)))
		return false;
	if (e->kind == SONDE_TRACE_GC_SWEEP_END && owner) {
		slot = *owner ? *owner - 1 : slot;
		*owner = 0;
	} else if (owner && slot != SONDE_TRACE_NO_SLOT) {
		*owner = slot + 1;
	}
	struct sonde_trace_live *l = live_at(gs, slot);
	if (!l)
		return true;
	int64_t *since_ns = is_sweep ? &l->sweep_ns : &l->assist_ns;
	if (e->kind == SONDE_TRACE_GC_SWEEP_END || e->kind == SONDE_TRACE_GC_MARK_ASSIST_END)
		end_range(since_ns, gs->sync_ns, e->ns,
			is_sweep ? &l->g.times.sweep_ns : &l->g.times.assist_ns);
	else
		begin_range(since_ns, active ? gs->sync_ns : e->ns);
	return true;
}

bool sonde_trace_goroutines_add(struct sonde_trace_goroutines *gs,
	struct sonde_trace_reader *reader, const struct sonde_trace_event *e)
{
	if (gs->sync_ns == never || e->kind == SONDE_TRACE_SYNC)
		gs->sync_ns = e->ns;
	gs->first_ns = sonde_min(gs->first_ns, e->ns);
	gs->last_ns = e->ns;
	if (e->p_after != e->p_before && e->p_after == SONDE_TRACE_P_IDLE)
		take_from_syscall(gs, e);
	if (e->g_after != e->g_before && e->subject_g_slot != SONDE_TRACE_NO_SLOT &&
		!transition(gs, reader, e))
		return false;
	switch (e->kind) {
	case SONDE_TRACE_GC_SWEEP_BEGIN:
	case SONDE_TRACE_GC_SWEEP_ACTIVE:
	case SONDE_TRACE_GC_SWEEP_END:
	case SONDE_TRACE_GC_MARK_ASSIST_BEGIN:
	case SONDE_TRACE_GC_MARK_ASSIST_ACTIVE:
	case SONDE_TRACE_GC_MARK_ASSIST_END:
		return add_range(gs, e);
	default:
		return true;
	}
}

static int by_total(const void *a, const void *b)
{
	const struct sonde_trace_entry *x = a, *y = b;
	if (x->times.total_ns != y->times.total_ns)
		return x->times.total_ns > y->times.total_ns ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

static int by_id(const void *a, const void *b)
{
	const struct sonde_trace_goroutine *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->created_ns < y->created_ns ? -1 : x->created_ns > y->created_ns;
}

bool sonde_trace_goroutines_finish(struct sonde_trace_goroutines *gs)
{
	for (size_t i = 0; i < gs->n_live; i++) {
		struct sonde_trace_live *l = &gs->live[i];
		if (l->status != SONDE_TRACE_G_NONE &&
			(!close_status(gs, l, gs->last_ns, 1) ||
				!close_goroutine(gs, l, gs->last_ns)))
			return false;
	}
	sonde_vec_sort(&gs->entries, by_total);
	sonde_vec_sort(&gs->ended, by_id);
	return true;
}
