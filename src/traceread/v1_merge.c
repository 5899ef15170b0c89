#include "traceread/v1.h"

#include <string.h>

enum {
	WINDOW_MS = 10, /* how far others may run ahead of an event that waits */
	WAKES_PER_EVENT =
		8, /* looks at blocked cursors, on average; more and they are not looked at */
	WAKES_AT_FIRST = 1 << 20,
};

/* A pseudo goroutine, whose sequence numbers GCStart has. */
#define GARBAGE (UINT64_MAX - 1)

/* Order of a goroutine, in sonde_trace_g.gen. */
enum order {
	ORDER_DEAD,
	ORDER_RUNNABLE,
	ORDER_RUNNING,
	ORDER_WAITING,
	ORDER_MASK = 3,
	ORDER_EARLY = 4, /* its GoSysExit was delivered at its real time, and comes yet */
};

/* What an event is to its processor (goroutine) and to the order. */
enum traits {
	G_STARTS = 1, /* args[0] runs from here on */
	G_STOPS = 2, /* nothing runs behind it */
	G_IS_ARG = 4, /* of goroutine args[0] */
	G_NONE = 8, /* of no goroutine */
	NEEDS_ARG = 16, /* what must be in order is args[0], not the event's goroutine */
};

enum needs {
	FREE, /* always ready */
	CREATE, /* {0, dead} -> {1, runnable} */
	ANNOUNCE, /* {1, runnable} -> {2, waiting} */
	START, /* {seq, runnable} -> {seq + 1, running} */
	START_LOCAL, /* {any, runnable} -> {+ 1, running} */
	BLOCK, /* {any, running} -> {same, waiting} */
	YIELD, /* {any, running} -> {same, runnable} */
	UNBLOCK, /* {seq, waiting} -> {seq + 1, runnable} */
	UNBLOCK_LOCAL, /* {any, waiting} -> {+ 1, runnable} */
	GC, /* {seq, dead} -> {seq + 1, dead} of GARBAGE */
};

/* Go 1.21 internal/trace/parser.go parseEvents and order.go stateTransition. */
static const struct {
	uint8_t traits, needs;
} table[64] = {
	[SONDE_TRACE_V1_GC_START] = {G_NONE, GC},
	[SONDE_TRACE_V1_GC_DONE] = {G_NONE, FREE},
	[SONDE_TRACE_V1_STW_START] = {G_NONE, FREE},
	[SONDE_TRACE_V1_STW_DONE] = {G_NONE, FREE},
	[SONDE_TRACE_V1_GO_CREATE] = {NEEDS_ARG, CREATE},
	[SONDE_TRACE_V1_GO_START] = {G_STARTS, START},
	[SONDE_TRACE_V1_GO_START_LABEL] = {G_STARTS, START},
	[SONDE_TRACE_V1_GO_START_LOCAL] = {G_STARTS, START_LOCAL},
	[SONDE_TRACE_V1_GO_END] = {G_STOPS, FREE},
	[SONDE_TRACE_V1_GO_STOP] = {G_STOPS, FREE},
	[SONDE_TRACE_V1_GO_SCHED] = {G_STOPS, YIELD},
	[SONDE_TRACE_V1_GO_PREEMPT] = {G_STOPS, YIELD},
	[SONDE_TRACE_V1_GO_SLEEP] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_SEND] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_RECV] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_SELECT] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_SYNC] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_COND] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_NET] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_BLOCK_GC] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_SYSBLOCK] = {G_STOPS, BLOCK},
	[SONDE_TRACE_V1_GO_UNBLOCK] = {NEEDS_ARG, UNBLOCK},
	[SONDE_TRACE_V1_GO_UNBLOCK_LOCAL] = {NEEDS_ARG, UNBLOCK_LOCAL},
	[SONDE_TRACE_V1_GO_SYSEXIT] = {G_IS_ARG, UNBLOCK},
	[SONDE_TRACE_V1_GO_SYSEXIT_LOCAL] = {G_IS_ARG, UNBLOCK_LOCAL},
	[SONDE_TRACE_V1_GO_WAITING] = {G_IS_ARG, ANNOUNCE},
	[SONDE_TRACE_V1_GO_IN_SYSCALL] = {G_IS_ARG, ANNOUNCE},
};

/* Of a goroutine: its status before and behind, and its sequence number. */
static const struct {
	uint8_t before, after;
	enum {
		ANY,
		COUNTS,
		IS_ARG,
		IS_ONE
	} seq; /* stays; any, and one more; args[1], and one more; 1, then 2 */
} orders[] = {
	[CREATE] = {ORDER_DEAD, ORDER_RUNNABLE, ANY},
	[ANNOUNCE] = {ORDER_RUNNABLE, ORDER_WAITING, IS_ONE},
	[START] = {ORDER_RUNNABLE, ORDER_RUNNING, IS_ARG},
	[START_LOCAL] = {ORDER_RUNNABLE, ORDER_RUNNING, COUNTS},
	[BLOCK] = {ORDER_RUNNING, ORDER_WAITING, ANY},
	[YIELD] = {ORDER_RUNNING, ORDER_RUNNABLE, ANY},
	[UNBLOCK] = {ORDER_WAITING, ORDER_RUNNABLE, IS_ARG},
	[UNBLOCK_LOCAL] = {ORDER_WAITING, ORDER_RUNNABLE, COUNTS},
};

/* --- heaps: the least key first, of equal ones the cursor that stands first --- */

static inline bool before(
	const struct sonde_trace_v1_cursor *a, const struct sonde_trace_v1_cursor *b)
{
	return a->key != b->key ? a->key < b->key : a < b;
}

static void heap_put(struct sonde_trace_v1_heap *h, uint32_t at, struct sonde_trace_v1_cursor *c)
{
	h->items[at] = c;
	c->at = at;
}

static void heap_up(struct sonde_trace_v1_heap *h, struct sonde_trace_v1_cursor *c)
{
	uint32_t at = c->at;
	for (; at && before(c, h->items[(at - 1) / 2]); at = (at - 1) / 2)
		heap_put(h, at, h->items[(at - 1) / 2]);
	heap_put(h, at, c);
}

/* Whether c, at the top, is where it belongs: as a rule, since few processors take turns. */
static inline bool heap_is_top(
	const struct sonde_trace_v1_heap *h, const struct sonde_trace_v1_cursor *c)
{
	return (h->n < 2 || before(c, h->items[1])) && (h->n < 3 || before(c, h->items[2]));
}

static void heap_down(struct sonde_trace_v1_heap *h, struct sonde_trace_v1_cursor *c)
{
	uint32_t at = c->at;
	for (;;) {
		uint32_t child = 2 * at + 1;
		if (child >= h->n)
			break;
		child += child + 1 < h->n && before(h->items[child + 1], h->items[child]);
		if (!before(h->items[child], c))
			break;
		heap_put(h, at, h->items[child]);
		at = child;
	}
	heap_put(h, at, c);
}

static void heap_add(struct sonde_trace_v1_heap *h, struct sonde_trace_v1_cursor *c)
{
	heap_put(h, h->n++, c);
	heap_up(h, c);
}

static void heap_remove(struct sonde_trace_v1_heap *h, struct sonde_trace_v1_cursor *c)
{
	struct sonde_trace_v1_cursor *last = h->items[--h->n];
	if (last == c)
		return;
	heap_put(h, c->at, last);
	heap_up(h, last);
	heap_down(h, last);
}

/* --- cursors --- */

/* The event that was decoded at c: its time and goroutine. */
static void place_event(struct sonde_trace_v1_cursor *c, unsigned n_before)
{
	const struct sonde_trace_v1_record *rec = &c->record;
	unsigned traits = table[rec->type].traits;
	c->ts = (int64_t)((uint64_t)c->ts + rec->args[n_before - 1]);
	c->key = c->ts;
	if (n_before == 2)
		c->key = c->seq = (int64_t)((uint64_t)c->seq + rec->args[0]);
	c->g = c->needs_g = c->last_g;
	if (traits & G_STARTS) {
		c->displaced_g = c->last_g;
		c->last_g = c->g = c->needs_g = rec->args[n_before];
	} else if (traits & G_STOPS) {
		c->last_g = 0;
	} else if (traits & NEEDS_ARG) {
		c->needs_g = rec->args[n_before];
	} else if (traits & G_IS_ARG) {
		c->g = c->needs_g = rec->args[n_before];
	} else if (traits & G_NONE) {
		c->g = 0;
		c->needs_g = GARBAGE;
	}
}

static bool next_batch(const struct sonde_trace_v1_index *x, struct sonde_trace_v1_cursor *c)
{
	sonde_trace_v1_format_release(&x->format, c->start, c->end);
	if (!c->next_batch)
		return false;
	const struct sonde_trace_v1_batch *b = &x->batches.items[c->next_batch - 1];
	const struct sonde_trace_v1_format *f = &x->format;
	c->next_batch = b->next;
	c->next = c->start = f->data + b->start;
	c->end = f->data + b->end;
	c->ts = c->seq = 0;
	if (b->flags & SONDE_TRACE_V1_AFTER_LOSS)
		c->last_g = 0;
	if (b->flags & SONDE_TRACE_V1_HEADLESS)
		return true;
	c->next = sonde_trace_v1_decode(f, c->next, c->end, &c->record);
	if (!c->next) {
		c->next = c->end; /* only where the file changed since */
		return true;
	}
	c->seq = f->version < 7 ? (int64_t)c->record.args[1] : 0;
	c->ts = (int64_t)c->record.args[f->version < 7 ? 2 : 1];
	return true;
}

/* Skip what is no event: the next record. */
static const uint8_t *skip(const struct sonde_trace_v1_format *f, struct sonde_trace_v1_cursor *c)
{
	uint64_t id, n;
	const char *text;
	const uint8_t *frames;
	size_t len;
	if ((*c->next & 0x3f) == SONDE_TRACE_V1_STRING)
		return sonde_trace_v1_decode_string(c->next, c->end, &id, &text, &len);
	return sonde_trace_v1_decode_stack(f, c->next, c->end, &id, &n, &frames);
}

/* Decode the next event. false: there is none. */
static inline bool advance(const struct sonde_trace_v1_index *x, struct sonde_trace_v1_cursor *c)
{
	const struct sonde_trace_v1_format *f = &x->format;
	for (;;) {
		if (c->next >= c->end) {
			if (!next_batch(x, c))
				return false;
			continue;
		}
		uint8_t type = *c->next & 0x3f;
		const uint8_t *at = c->next;
		bool is_string = type == SONDE_TRACE_V1_STRING && f->version >= 7;
		if (sonde_unlikely(is_string || type == SONDE_TRACE_V1_STACK)) {
			c->next = skip(f, c);
			if (!c->next)
				c->next = c->end;
			continue;
		}
		c->next = sonde_trace_v1_decode(f, at, c->end, &c->record);
		if (sonde_unlikely(!c->next)) {
			c->next = c->end;
			continue;
		}
		if (sonde_unlikely(
			    type <= SONDE_TRACE_V1_STACK || type == SONDE_TRACE_V1_TIMER_GOROUTINE))
			continue;
		if (sonde_unlikely(type == SONDE_TRACE_V1_CPU_SAMPLE)) {
			/* It has a place of its own; its delta counts all the same. */
			c->ts = (int64_t)((uint64_t)c->ts + c->record.args[0]);
			continue;
		}
		c->offset = (uint64_t)(at - f->data);
		place_event(c, f->n_before);
		return true;
	}
}

static bool advance_samples(struct sonde_trace_v1_merge *m, struct sonde_trace_v1_cursor *c)
{
	const struct sonde_trace_v1_index *x = m->index;
	while (m->next_sample < x->samples.n) {
		const struct sonde_trace_v1_sample *s = &x->samples.items[m->next_sample++];
		c->offset = s->offset;
		if (!sonde_trace_v1_decode(
			    &x->format, x->format.data + s->offset, x->format.end, &c->record) ||
			c->record.type != SONDE_TRACE_V1_CPU_SAMPLE)
			continue;
		c->key = c->ts = s->ts;
		c->p = c->record.args[x->format.n_before + 1];
		c->g = c->record.args[x->format.n_before + 2];
		return true;
	}
	return false;
}

static bool advance_any(struct sonde_trace_v1_merge *m, struct sonde_trace_v1_cursor *c)
{
	return c == m->cursors + m->n_cursors - 1 ? advance_samples(m, c) : advance(m->index, c);
}

/* --- order --- */

/* The slot of a goroutine, by the cursor's hint where it is that. */
static uint32_t find_slot(
	const struct sonde_trace_v1_merge *m, const struct sonde_trace_v1_cursor *c, uint64_t g)
{
	const struct sonde_trace_state *s = m->state;
	uint32_t hint = c->last_slot;
	if (hint < s->gs.n && s->gs.items[hint].id == g &&
		s->gs.items[hint].status != SONDE_TRACE_G_NONE)
		return hint;
	return sonde_trace_state_find_g(s, g);
}

/* Whether c's event may come now; *slot: of the goroutine that it needs. */
static inline bool is_ready(
	const struct sonde_trace_v1_merge *m, const struct sonde_trace_v1_cursor *c, uint32_t *slot)
{
	unsigned needs = table[c->record.type].needs, n_before = m->index->format.n_before;
	const uint64_t *args = c->record.args + n_before;
	*slot = SONDE_TRACE_NO_SLOT;
	if (needs == FREE)
		return true;
	if (sonde_unlikely(needs == GC))
		return n_before == 2 || args[0] == m->gc_seq;
	if (sonde_unlikely(!c->needs_g) && needs != CREATE)
		return true; /* of a goroutine that is not known any more */
	*slot = find_slot(m, c, c->needs_g);
	if (sonde_unlikely(n_before == 2))
		return true; /* 1.5 orders by sequence numbers alone */
	if (*slot == SONDE_TRACE_NO_SLOT)
		return needs == CREATE;
	const struct sonde_trace_g *g = &m->state->gs.items[*slot];
	if ((g->gen & ORDER_MASK) != orders[needs].before)
		return false;
	return orders[needs].seq == IS_ARG ? g->seq == (uint32_t)args[1]
					   : orders[needs].seq != IS_ONE || g->seq == 1;
}

/* Put the goroutine at slot, which is made where it is not there, into the state behind c's event. */
static uint32_t transit(
	struct sonde_trace_v1_merge *m, struct sonde_trace_v1_cursor *c, uint32_t slot)
{
	unsigned needs = table[c->record.type].needs, n_before = m->index->format.n_before;
	const uint64_t *args = c->record.args + n_before;
	if (needs == GC)
		m->gc_seq = n_before == 1 ? args[0] + 1 : 0;
	if (needs == GC || (!c->needs_g && needs != CREATE))
		return slot;
	if (slot == SONDE_TRACE_NO_SLOT) {
		slot = sonde_trace_state_add_g(m->state, c->needs_g);
		if (slot == SONDE_TRACE_NO_SLOT) {
			m->no_memory = true;
			return slot;
		}
	}
	struct sonde_trace_g *g = &m->state->gs.items[slot];
	if (sonde_unlikely(needs == CREATE || needs == ANNOUNCE))
		g->seq = needs == CREATE ? 1 : 2;
	else if (orders[needs].seq == IS_ARG)
		g->seq = n_before == 1 ? (uint32_t)args[1] + 1 : 0;
	else
		g->seq += orders[needs].seq == COUNTS;
	g->gen = (g->gen & ORDER_EARLY) | orders[needs].after;
	if (orders[needs].after == ORDER_RUNNING)
		c->last_slot = slot;
	return slot;
}

/* Cursors that wait for g and need not any more become ready. */
static void wake(struct sonde_trace_v1_merge *m, uint64_t g)
{
	for (uint32_t i = 0; i < m->blocked.n && m->wake_budget > 0;) {
		struct sonde_trace_v1_cursor *c = m->blocked.items[i];
		uint32_t slot;
		m->wake_budget--;
		if (c->needs_g != g || !is_ready(m, c, &slot)) {
			i++;
			continue;
		}
		heap_remove(&m->blocked, c);
		heap_add(&m->ready, c);
		i = 0; /* the heap's order changed */
	}
}

/* --- the next event --- */

/* Go on behind the event that was delivered last. */
static void settle(struct sonde_trace_v1_merge *m)
{
	struct sonde_trace_v1_cursor *c = sonde_take(m->pending);
	uint64_t woken_g = c ? c->needs_g : 0;
	if (m->ended_slot != SONDE_TRACE_NO_SLOT) {
		sonde_trace_state_remove_g(m->state, m->ended_slot);
		m->ended_slot = SONDE_TRACE_NO_SLOT;
	}
	if (!c)
		return;
	if (sonde_likely(advance_any(m, c))) {
		if (sonde_unlikely(c->at))
			heap_up(&m->ready, c);
		if (c->at || !heap_is_top(&m->ready, c))
			heap_down(&m->ready, c);
	} else {
		heap_remove(&m->ready, c);
		c->offset = UINT64_MAX;
	}
	if (sonde_unlikely(m->blocked.n) && m->wakes)
		wake(m, woken_g);
}

/* The next GoSysExit of the index, if it is due before key, at its real time; NULL: none. */
static const struct sonde_trace_v1_raw *next_exit(struct sonde_trace_v1_merge *m, int64_t key)
{
	const struct sonde_trace_v1_index *x = m->index;
	const struct sonde_trace_v1_format *f = &x->format;
	while (m->next_exit < x->exits.n && x->exits.items[m->next_exit].key < key) {
		const struct sonde_trace_v1_exit *e = &x->exits.items[m->next_exit++];
		struct sonde_trace_v1_cursor *c = &m->cursors[e->place & 0xffff];
		uint64_t offset = e->place >> 16;
		if (c->offset > offset)
			continue; /* it was delivered where it stands */
		if (!sonde_trace_v1_decode(f, f->data + offset, f->end, &m->exit_record))
			continue;
		const uint64_t *args = m->exit_record.args + f->n_before;
		uint32_t slot = sonde_trace_state_find_g(m->state, args[0]);
		if (slot == SONDE_TRACE_NO_SLOT)
			continue;
		struct sonde_trace_g *g = &m->state->gs.items[slot];
		if (g->status != SONDE_TRACE_G_SYSCALL || g->gen & ORDER_EARLY)
			continue; /* contradicts the state: it comes where it stands */
		g->gen |= ORDER_EARLY;
		m->raw = (struct sonde_trace_v1_raw){.record = &m->exit_record,
			.args = args,
			.cursor = c,
			.ts = (int64_t)args[2],
			.g = args[0],
			.offset = offset,
			.slot = slot,
			.early = true};
		return &m->raw;
	}
	return NULL;
}

/* The cursor whose event comes next, with its slot; NULL: the end. Cursors that must wait are set aside. */
static struct sonde_trace_v1_cursor *choose(
	struct sonde_trace_v1_merge *m, uint32_t *slot, bool *forced)
{
	for (;;) {
		struct sonde_trace_v1_cursor *c = m->ready.n ? m->ready.items[0] : NULL;
		if (sonde_unlikely(m->blocked.n)) {
			struct sonde_trace_v1_cursor *b = m->blocked.items[0];
			int64_t limit;
			if (!c ||
				(!__builtin_add_overflow(b->key, m->window, &limit) &&
					limit < c->key)) {
				heap_remove(&m->blocked, b);
				heap_add(&m->ready, b);
				*forced = !is_ready(m, b, slot);
				return b;
			}
		}
		if (!c)
			return NULL;
		*forced = false;
		if (is_ready(m, c, slot))
			return c;
		heap_remove(&m->ready, c);
		heap_add(&m->blocked, c);
	}
}

const struct sonde_trace_v1_raw *sonde_trace_v1_merge_next(struct sonde_trace_v1_merge *m)
{
	for (;;) {
		settle(m);
		if (m->moves_exits) {
			int64_t key = m->ready.n ? m->ready.items[0]->key : INT64_MAX;
			if (sonde_unlikely(m->blocked.n))
				key = sonde_min(key, m->blocked.items[0]->key);
			const struct sonde_trace_v1_raw *raw = next_exit(m, key);
			if (raw)
				return raw;
		}
		uint32_t slot;
		bool forced;
		struct sonde_trace_v1_cursor *c = choose(m, &slot, &forced);
		if (!c)
			return NULL;
		unsigned needs = table[c->record.type].needs;
		m->pending = c;
		m->wakes = needs != FREE;
		if (needs != FREE) {
			slot = transit(m, c, slot);
			if (m->no_memory)
				return NULL;
		}
		m->wake_budget += m->wake_budget < WAKES_AT_FIRST ? WAKES_PER_EVENT : 0;
		bool is_exit = table[c->record.type].traits & G_IS_ARG && needs != ANNOUNCE;
		if (is_exit && slot != SONDE_TRACE_NO_SLOT &&
			m->state->gs.items[slot].gen & ORDER_EARLY) {
			m->state->gs.items[slot].gen &= ~ORDER_EARLY;
			continue;
		}
		if (slot == SONDE_TRACE_NO_SLOT && c->g)
			slot = find_slot(m, c, c->g);
		if (c->record.type == SONDE_TRACE_V1_GO_END)
			m->ended_slot = slot;
		m->raw = (struct sonde_trace_v1_raw){
			.record = &c->record,
			.args = c->record.args + m->index->format.n_before,
			.cursor = c == m->cursors + m->n_cursors - 1 ? NULL : c,
			.ts = c->ts,
			.g = c->g,
			.offset = c->offset,
			.slot = slot,
			.forced = forced,
		};
		return &m->raw;
	}
}

struct sonde_error *sonde_trace_v1_merge_init(struct sonde_trace_v1_merge *m,
	const struct sonde_trace_v1_index *index, struct sonde_trace_state *state, bool moves_exits)
{
	uint32_t n = (uint32_t)index->procs.n + 1;
	*m = (struct sonde_trace_v1_merge){
		.index = index,
		.state = state,
		.n_cursors = n,
		.moves_exits = moves_exits,
		.ended_slot = SONDE_TRACE_NO_SLOT,
		.wake_budget = WAKES_AT_FIRST,
	};
	int64_t hz = index->ticks_per_sec ? index->ticks_per_sec : 1000000000;
	m->window = sonde_max(hz / (1000 / WINDOW_MS), (int64_t)1);
	m->cursors = sonde_new_array(struct sonde_trace_v1_cursor, n);
	m->ready.items = sonde_new_array(struct sonde_trace_v1_cursor *, n);
	m->blocked.items = sonde_new_array(struct sonde_trace_v1_cursor *, n);
	if (!m->cursors || !m->ready.items || !m->blocked.items)
		return &sonde_enomem;
	for (uint32_t i = 0; i < n; i++) {
		struct sonde_trace_v1_cursor *c = &m->cursors[i];
		c->last_slot = c->m_slot = c->p_slot = SONDE_TRACE_NO_SLOT;
		c->m = SONDE_TRACE_NO_ID;
		if (i + 1 < n) {
			c->p = index->procs.items[i].id;
			c->next_batch = index->procs.items[i].first;
		}
		if (advance_any(m, c))
			heap_add(&m->ready, c);
	}
	return NULL;
}

void sonde_trace_v1_merge_deinit(struct sonde_trace_v1_merge *m)
{
	free(m->cursors);
	free(m->ready.items);
	free(m->blocked.items);
	*m = (struct sonde_trace_v1_merge){0};
}
