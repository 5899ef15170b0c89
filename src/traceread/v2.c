/*
 * The formats from 1.22 on, one generation at a time: a cursor a thread, a heap of them by the time of what comes next.
 * The top of the heap goes first where the state allows it, else the others in the order of time, as in Go 1.27's
 * internal/trace/reader.go. Where that gives up, the event is forced and listed.
 */
#include "traceread/v2.h"

#include <inttypes.h>
#include <stdio.h>

#define NO_SLOT SONDE_TRACE_NO_SLOT
#define NO_ID SONDE_TRACE_NO_ID

enum { EXPLAINED_THREADS = 4, NO_EVENT = 0xff };

/* Arguments behind the time, by type; NO_EVENT: no event of a thread. */
static const uint8_t n_args_of[256] = {
	[0 ... 255] = NO_EVENT,
#define SONDE_TRACE_EVENT(kind, wire, name, since, args, names, has_time) \
	[wire] = (has_time) ? sizeof(args) - 1 : NO_EVENT,
#include "traceformat/events.def"
};

/* Arguments that are strings (bits 0 to 3) and stacks (bits 4 to 7), by kind. */
#define HAS(args, i, letter) \
	(sizeof(args) > (i) + 1 && (args)[sizeof(args) > (i) ? (i) : 0] == (letter))
#define BITS(args, letter)                                                              \
	(HAS(args, 0, letter) | HAS(args, 1, letter) << 1 | HAS(args, 2, letter) << 2 | \
		HAS(args, 3, letter) << 3)
static const uint8_t id_args[256] = {
#define SONDE_TRACE_EVENT(kind, wire, name, since, args, names, has_time) \
	[wire] = BITS(args, 'S') | (BITS(args, 's') | BITS(args, 'N')) << 4,
#include "traceformat/events.def"
};

static struct sonde_error *open(struct sonde_trace_reader *r)
{
	struct sonde_trace_v2 *v = sonde_new(struct sonde_trace_v2);
	if (!v)
		return &sonde_enomem;
	v->r = r;
	v->offset = SONDE_TRACE_HEADER_BYTES;
	v->padded = true;
	r->impl = v;
	return NULL;
}

static void table_deinit(struct sonde_trace_v2_table *t)
{
	sonde_trace_v2_entries_deinit(&t->entries);
	sonde_u32_map_deinit(&t->sparse);
	free(t->dense);
}

static void v2_free(struct sonde_trace_reader *r)
{
	struct sonde_trace_v2 *v = r->impl;
	if (!v)
		return;
	sonde_trace_v2_batches_deinit(&v->batches);
	sonde_trace_v2_cursors_deinit(&v->cursors);
	sonde_trace_v2_heap_deinit(&v->heap);
	sonde_trace_v2_samples_deinit(&v->samples);
	sonde_trace_v2_experiments_deinit(&v->experiments);
	sonde_u32_map_deinit(&v->cursor_of_m);
	table_deinit(&v->strings);
	table_deinit(&v->stacks);
	free(v);
	r->impl = NULL;
}

/* --- the events of a thread --- */

/* The event at c->p is none: the rest of its batch is lost. */
static void skip_batch(struct sonde_trace_v2 *v, struct sonde_trace_v2_cursor *c)
{
	bool unknown = n_args_of[*c->p] == NO_EVENT;
	struct sonde_trace_place place = {
		.offset = v->r->source->start + (uint64_t)(c->p - v->r->source->data),
		.m = c->m,
		.p = NO_ID,
		.g = NO_ID,
		.bytes = (uint64_t)(c->end - c->p),
	};
	v->lossy = true;
	if (unknown)
		sonde_trace_damage_add(v->r, SONDE_TRACE_DAMAGE_UNKNOWN_EVENT, &place,
			"type %u: the rest of the batch, %" PRIu64 " bytes, is left out", *c->p,
			place.bytes);
	else if (!c->batch_cut)
		sonde_trace_damage_add(v->r, SONDE_TRACE_DAMAGE_BAD_BATCH, &place,
			"%s cannot be read: the rest of the batch, %" PRIu64 " bytes, is left out",
			sonde_trace_kind_name(*c->p), place.bytes);
	c->p = c->next = c->end;
}

/* Move on to the thread's next batch; false where there is none. */
static bool next_batch(struct sonde_trace_v2 *v, struct sonde_trace_v2_cursor *c, bool first)
{
	if (!c->next_batch)
		return false;
	const struct sonde_trace_v2_batch *b = &v->batches.items[c->next_batch - 1];
	int64_t ns = sonde_trace_v2_to_ns(&v->clock, b->ticks);
	if (!first && ns < c->ns) {
		struct sonde_trace_place place = {b->offset, c->m, NO_ID, NO_ID, 0};
		sonde_trace_damage_add(v->r, SONDE_TRACE_DAMAGE_TIME, &place,
			"a batch begins %" PRIu64 " ns before the end of the one before it",
			(uint64_t)c->ns - (uint64_t)ns);
	}
	c->ns = ns;
	c->p = c->next = sonde_trace_v2_at(v, b->offset);
	c->end = c->p + b->size;
	c->batch_cut = b->cut;
	c->next_batch = b->next;
	return true;
}

/* What comes behind c->next on this thread: its kind and its time; false at the end. */
static inline bool next_event(struct sonde_trace_v2 *v, struct sonde_trace_v2_cursor *c)
{
	uint64_t dticks = 0;
	for (;;) {
		while (sonde_unlikely(c->next == c->end))
			if (!next_batch(v, c, c->next == NULL))
				return false;
		const uint8_t *p = c->p = c->next;
		c->kind = *p;
		if (sonde_likely(c->end - p > SONDE_TRACE_MAX_VARINT_BYTES)) {
			c->args = sonde_trace_v2_varint(p + 1, &dticks);
		} else {
			size_t n = sonde_trace_varint_decode(p + 1, c->end, &dticks);
			c->args = n ? p + 1 + n : NULL;
		}
		if (sonde_likely(c->args != NULL))
			break;
		skip_batch(v, c);
	}
	c->ns = (int64_t)((uint64_t)c->ns + (uint64_t)sonde_trace_v2_to_ns(&v->clock, dticks));
	return true;
}

/* --- the heap: the same steps as Go's, so that equal times come in its order --- */

static void swap(struct sonde_trace_v2_place *heap, size_t a, size_t b)
{
	struct sonde_trace_v2_place x = heap[a];
	heap[a] = heap[b];
	heap[b] = x;
}

static size_t sift_up(struct sonde_trace_v2_place *heap, size_t i)
{
	while (i > 0 && heap[(i - 1) / 2].ns > heap[i].ns) {
		swap(heap, (i - 1) / 2, i);
		i = (i - 1) / 2;
	}
	return i;
}

static inline void sift_down(struct sonde_trace_v2_place *heap, size_t n, size_t i)
{
	for (;;) {
		size_t min = i, left = 2 * i + 1;
		if (left < n && heap[left].ns < heap[min].ns)
			min = left;
		if (left + 1 < n && heap[left + 1].ns < heap[min].ns)
			min = left + 1;
		if (min == i)
			return;
		swap(heap, min, i);
		i = min;
	}
}

static void heap_remove(struct sonde_trace_v2_heap *heap, size_t i)
{
	for (; i > 0; i = (i - 1) / 2)
		swap(heap->items, (i - 1) / 2, i);
	swap(heap->items, 0, heap->n - 1);
	heap->n--;
	sift_down(heap->items, heap->n, 0);
}

/* Few steps where little has changed since the last time. */
static void heap_sort(struct sonde_trace_v2_heap *heap)
{
	for (size_t i = 1; i < heap->n; i++) {
		struct sonde_trace_v2_place x = heap->items[i];
		size_t at = i;
		for (; at > 0 && heap->items[at - 1].ns > x.ns; at--)
			heap->items[at] = heap->items[at - 1];
		heap->items[at] = x;
	}
}

/* The event of the top was taken: on to the thread's next one. */
static inline void move_on_top(struct sonde_trace_v2 *v, struct sonde_trace_v2_cursor *c)
{
	if (sonde_unlikely(!next_event(v, c))) {
		v->second_ns = INT64_MIN;
		heap_remove(&v->heap, 0);
		return;
	}
	struct sonde_trace_v2_place *heap = v->heap.items;
	heap[0].ns = c->ns;
	if (c->ns <= v->second_ns)
		return; /* nothing below is earlier */
	size_t n = v->heap.n;
	sift_down(heap, n, 0);
	v->second_ns = n < 2 ? INT64_MAX : n < 3 ? heap[1].ns : sonde_min(heap[1].ns, heap[2].ns);
}

/* The same for any place. */
static void move_on(struct sonde_trace_v2 *v, size_t i)
{
	struct sonde_trace_v2_place *heap = v->heap.items;
	struct sonde_trace_v2_cursor *c = &v->cursors.items[heap[i].cursor];
	v->second_ns = INT64_MIN;
	if (!next_event(v, c)) {
		heap_remove(&v->heap, i);
		return;
	}
	heap[i].ns = c->ns;
	if (i && sift_up(heap, i) != i)
		return;
	sift_down(heap, v->heap.n, i);
}

/* --- one event --- */

/* The arguments at c->args; those that the event does not have are 0. */
static inline bool decode_args(struct sonde_trace_v2_cursor *c, uint64_t args[SONDE_TRACE_MAX_ARGS])
{
	unsigned n = n_args_of[c->kind];
	const uint8_t *p = c->args;
	args[0] = args[1] = args[2] = args[3] = 0;
	if (sonde_unlikely(c->end - p < SONDE_TRACE_MAX_EVENT_BYTES)) {
		uint64_t dticks;
		size_t bytes = sonde_trace_event_decode(c->p, c->end, &c->kind, &dticks, args);
		c->next = c->p + bytes;
		return bytes;
	}
	if (sonde_unlikely(n == NO_EVENT))
		return false;
	if (n > 0) {
		p = sonde_trace_v2_varint(p, &args[0]);
		if (n > 1 && p) {
			p = sonde_trace_v2_varint(p, &args[1]);
			if (n > 2 && p)
				p = sonde_trace_v2_varint(p, &args[2]);
			if (n > 3 && p)
				p = sonde_trace_v2_varint(p, &args[3]);
		}
	}
	c->next = p;
	return p;
}

/* Try the cursor's event; c->next moves behind it. force: what does not fit is made to fit, and it always advances. */
static inline enum sonde_trace_v2_step advance(
	struct sonde_trace_v2 *v, struct sonde_trace_v2_cursor *c, bool force)
{
	struct sonde_trace_state *s = &v->r->state;
	struct sonde_trace_event *e = &v->queue[0];
	const struct sonde_trace_m *m = &v->nobody;
	if (sonde_unlikely(c->m_slot == SONDE_TRACE_V2_M_LATER)) {
		uint32_t slot = sonde_trace_state_find_m(s, c->m);
		c->m_slot = slot == NO_SLOT ? sonde_trace_state_add_m(s, c->m) : slot;
		v->no_memory |= c->m_slot == NO_SLOT;
	}
	if (c->m_slot == NO_SLOT)
		v->nobody = (struct sonde_trace_m){NO_ID, NO_SLOT, NO_SLOT};
	else
		m = &s->ms.items[c->m_slot];
	/* All loads first, then all stores: the compiler may not move one past the other. */
	uint32_t p_slot = m->p_slot, g_slot = m->g_slot, generation = v->try.gen;
	uint64_t p = p_slot == NO_SLOT ? NO_ID : s->ps.items[p_slot].id;
	uint64_t g = g_slot == NO_SLOT ? NO_ID : s->gs.items[g_slot].id;
	uint64_t offset = v->offset_of_null + (uint64_t)(uintptr_t)c->p;
	uint64_t kind = c->kind, thread = c->m;
	uint32_t m_slot = c->m_slot;
	int64_t ns = c->ns;
	/* Member by member: as one compound it would be cleared first, which takes longer than all the rest. */
	e->ns = ns;
	e->kind = e->wire = (uint8_t)kind;
	e->flags = force ? SONDE_TRACE_FORCED : 0;
	e->g_before = e->g_after = e->p_before = e->p_after = 0;
	e->generation = generation;
	e->m = thread;
	e->p = p;
	e->g = g;
	e->m_slot = m_slot;
	e->p_slot = p_slot;
	e->g_slot = g_slot;
	e->subject_g_slot = e->subject_p_slot = NO_SLOT;
	e->subject_g = e->subject_p = NO_ID;
	e->offset = offset;
	if (sonde_unlikely(!decode_args(c, e->args)))
		return SONDE_TRACE_V2_UNREADABLE;
	v->n_queued = 1;
	v->next_queued = 0;
	v->try.m_slot = m_slot;
	v->try.force = force;
	return sonde_trace_v2_handlers[kind](&v->try);
}

/* --- what comes next --- */

/* "thread 7: GoStart p 1 ...", and how what it waits for stands. */
static size_t explain(const struct sonde_trace_v2 *v, const struct sonde_trace_v2_cursor *c,
	char *to, size_t room)
{
	const struct sonde_trace_state *s = &v->r->state;
	const char *args = sonde_trace_event_specs[c->kind].args;
	char about[96] = "";
	uint64_t arg[SONDE_TRACE_MAX_ARGS] = {0}, dticks;
	uint8_t kind;
	if (!sonde_trace_event_decode(c->p, c->end, &kind, &dticks, arg)) {
		args = "";
	} else if (*args == 'g') {
		uint32_t slot = sonde_trace_state_find_g(s, arg[0]);
		const struct sonde_trace_g *g = slot == NO_SLOT ? NULL : &s->gs.items[slot];
		snprintf(about, sizeof(about),
			" of goroutine %" PRIu64 " (seq %" PRIu64 "), which is %s", arg[0],
			args[1] == 'q' ? arg[1] : 0,
			g ? sonde_trace_g_status_name(g->status) : "not there");
		if (g)
			snprintf(about + strlen(about), sizeof(about) - strlen(about),
				" (seq %" PRIu32 ")", g->seq);
	} else if (*args == 'p') {
		uint32_t slot = sonde_trace_state_find_p(s, arg[0]);
		const struct sonde_trace_p *p = slot == NO_SLOT ? NULL : &s->ps.items[slot];
		snprintf(about, sizeof(about),
			" of proc %" PRIu64 " (seq %" PRIu64 "), which is %s", arg[0],
			args[1] == 'q' ? arg[1] : 0,
			p ? sonde_trace_p_status_name(p->status) : "not there");
		if (p)
			snprintf(about + strlen(about), sizeof(about) - strlen(about),
				" (seq %" PRIu32 ")", p->seq);
	}
	int n = snprintf(to, room, "thread %" PRId64 " at %" PRId64 " ns: %s%s", (int64_t)c->m,
		c->ns, sonde_trace_kind_name(c->kind), about);
	return n < 0 ? 0 : sonde_min((size_t)n, room - 1);
}

static void list_forced(struct sonde_trace_v2 *v, const struct sonde_trace_v2_cursor *c, bool stuck)
{
	const struct sonde_trace_event *e = &v->queue[0];
	struct sonde_trace_place place = {e->offset, e->m, e->p, e->g, 0};
	enum sonde_trace_damage_code code = v->lossy ? SONDE_TRACE_DAMAGE_AFTER_LOSS
		: stuck                              ? SONDE_TRACE_DAMAGE_UNORDERED
						     : SONDE_TRACE_DAMAGE_STATE;
	char text[768];
	if (v->r->damages.counts[code] >= SONDE_TRACE_KEPT_DAMAGES) {
		sonde_trace_damage_add(v->r, code, &place, " ");
		return;
	}
	if (!stuck) {
		sonde_trace_damage_add(
			v->r, code, &place, "%s: %s", sonde_trace_kind_name(c->kind), v->why);
		return;
	}
	size_t len = 0;
	for (size_t i = 0; i < v->heap.n && i < EXPLAINED_THREADS; i++) {
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s", i ? "; " : "");
		len += explain(v, &v->cursors.items[v->heap.items[i].cursor], text + len,
			sizeof(text) - len);
	}
	sonde_trace_damage_add(
		v->r, code, &place, "none of %zu threads can go on: %s", v->heap.n, text);
}

/* The event of place i goes ahead, come what may. */
static void force(struct sonde_trace_v2 *v, size_t i, bool stuck)
{
	struct sonde_trace_v2_cursor *c = &v->cursors.items[v->heap.items[i].cursor];
	list_forced(v, c, stuck);
	(void)advance(v, c, true);
	v->r->info.n_forced++;
	move_on(v, i);
}

/* The event of place i did not simply go ahead. true: it was dealt with. */
static bool settle(struct sonde_trace_v2 *v, size_t i, enum sonde_trace_v2_step step)
{
	if (step == SONDE_TRACE_V2_UNREADABLE) {
		v->n_queued = v->next_queued = 0;
		skip_batch(v, &v->cursors.items[v->heap.items[i].cursor]);
		move_on(v, i);
		return true;
	}
	if (step == SONDE_TRACE_V2_WRONG && !v->lossy) {
		force(v, i, false);
		return true;
	}
	return false;
}

/* The top of the heap cannot go ahead: the others, in the order of time; then by force. */
static void take_another(struct sonde_trace_v2 *v, enum sonde_trace_v2_step step)
{
	struct sonde_trace_v2_cursor *cursors = v->cursors.items;
	if (settle(v, 0, step))
		return;
	heap_sort(&v->heap);
	v->second_ns = INT64_MIN;
	for (size_t i = 1; i < v->heap.n; i++) {
		step = advance(v, &cursors[v->heap.items[i].cursor], false);
		if (step == SONDE_TRACE_V2_OK) {
			move_on(v, i);
			return;
		}
		if (settle(v, i, step))
			return;
	}
	step = advance(v, &cursors[v->heap.items[0].cursor], false);
	force(v, 0, step == SONDE_TRACE_V2_WAIT);
}

/* Take one event of a thread to the queue; where it cannot be read, none. */
static inline void take_event(struct sonde_trace_v2 *v)
{
	struct sonde_trace_v2_cursor *c = &v->cursors.items[v->heap.items[0].cursor];
	enum sonde_trace_v2_step step = advance(v, c, false);
	if (sonde_likely(step == SONDE_TRACE_V2_OK))
		move_on_top(v, c);
	else
		take_another(v, step);
}

static void blank_event(struct sonde_trace_v2 *v, unsigned kind, int64_t ns)
{
	v->queue[0] = (struct sonde_trace_event){
		.ns = ns,
		.kind = (uint8_t)kind,
		.flags = SONDE_TRACE_MADE,
		.generation = v->r->info.n_generations,
		.m = NO_ID,
		.p = NO_ID,
		.g = NO_ID,
		.subject_g = NO_ID,
		.subject_p = NO_ID,
		.m_slot = NO_SLOT,
		.p_slot = NO_SLOT,
		.g_slot = NO_SLOT,
		.subject_g_slot = NO_SLOT,
		.subject_p_slot = NO_SLOT,
	};
	v->n_queued = 1;
	v->next_queued = 0;
}

static void take_sync(struct sonde_trace_v2 *v, int64_t ns)
{
	blank_event(v, SONDE_TRACE_SYNC, ns);
	v->queue[0].args[0] = ++v->n_syncs;
}

static void note_sample(struct sonde_trace_v2 *v)
{
	v->sample_ns =
		v->next_sample < v->samples.n ? v->samples.items[v->next_sample].ns : INT64_MAX;
}

static void take_sample(struct sonde_trace_v2 *v)
{
	const struct sonde_trace_state *s = &v->r->state;
	const struct sonde_trace_v2_sample *sample = &v->samples.items[v->next_sample++];
	note_sample(v);
	blank_event(v, SONDE_TRACE_CPU_SAMPLE, sample->ns);
	struct sonde_trace_event *e = &v->queue[0];
	e->wire = SONDE_TRACE_CPU_SAMPLE;
	e->flags = 0;
	e->offset = sample->offset;
	e->m = sample->m;
	e->p = sample->p;
	e->g = sample->g;
	e->m_slot = sonde_trace_state_find_m(s, e->m);
	e->p_slot = sonde_trace_state_find_p(s, e->p);
	e->g_slot = sonde_trace_state_find_g(s, e->g);
	e->args[0] = sample->stack;
}

/* A generation was read: every thread to its first event. */
static struct sonde_error *install(struct sonde_trace_v2 *v)
{
	const struct sonde_trace_source *source = v->r->source;
	v->offset_of_null = source->start - (uint64_t)(uintptr_t)source->data;
	v->try = (struct sonde_trace_v2_try){
		.v = v, .s = &v->r->state, .e = &v->queue[0], .gen = v->r->info.n_generations};
	for (uint32_t i = 0; i < v->cursors.n; i++) {
		struct sonde_trace_v2_cursor *c = &v->cursors.items[i];
		c->m_slot = c->m == NO_ID ? NO_SLOT : SONDE_TRACE_V2_M_LATER;
		if (!next_event(v, c))
			continue;
		struct sonde_trace_v2_place place = {c->ns, i};
		if (!sonde_trace_v2_heap_push(&v->heap, place))
			return &sonde_enomem;
		sift_up(v->heap.items, v->heap.n - 1);
	}
	v->second_ns = INT64_MIN;
	note_sample(v);
	take_sync(v, sonde_trace_v2_to_ns(&v->clock, v->min_ticks));
	return NULL;
}

/* --- handing out --- */

static void list_unknown(
	struct sonde_trace_v2 *v, const struct sonde_trace_event *e, unsigned arg, bool stack)
{
	struct sonde_trace_place place = {e->offset, e->m, e->p, e->g, 0};
	sonde_trace_damage_add(v->r,
		stack ? SONDE_TRACE_DAMAGE_UNKNOWN_STACK : SONDE_TRACE_DAMAGE_UNKNOWN_STRING,
		&place, "%s names %s %" PRIu64 ", which is not there",
		sonde_trace_kind_name(e->kind), stack ? "stack" : "string", e->args[arg]);
}

static void check_more_ids(
	struct sonde_trace_v2 *v, const struct sonde_trace_event *e, unsigned bits)
{
	for (; bits; bits &= bits - 1) {
		unsigned bit = (unsigned)__builtin_ctz(bits);
		uint64_t id = e->args[bit & 3];
		if (id && !sonde_trace_v2_find(bit & 4 ? &v->stacks : &v->strings, id))
			list_unknown(v, e, bit & 3, bit & 4);
	}
}

static inline bool is_dense(const struct sonde_trace_v2_table *t, uint64_t id)
{
	return id < t->n_dense && t->dense[id];
}

/* Most events name a stack or a string and a stack, which are there and dense. */
static inline void check_ids(struct sonde_trace_v2 *v, const struct sonde_trace_event *e)
{
	unsigned bits = id_args[e->kind];
	if (!bits)
		return;
	unsigned stacks = bits >> 4;
	uint64_t stack = e->args[stacks ? __builtin_ctz(stacks) : 0];
	if (sonde_likely((bits & 0xf) <= 1 && !(stacks & (stacks - 1)) &&
		    (!stacks || is_dense(&v->stacks, stack)) &&
		    (!(bits & 1) || is_dense(&v->strings, e->args[0]))))
		return;
	check_more_ids(v, e, bits);
}

static inline const struct sonde_trace_event *hand_out(
	struct sonde_trace_v2 *v, struct sonde_trace_event *e)
{
	struct sonde_trace_reader *r = v->r;
	int64_t last = r->last_ns == INT64_MIN ? 0 : r->last_ns;
	check_ids(v, e);
	if (e->ns <= last) {
		int64_t ns = last == INT64_MAX ? last : last + 1;
		if (e->ns < last && !(e->flags & SONDE_TRACE_MADE)) {
			uint64_t step = (uint64_t)ns - (uint64_t)e->ns;
			r->info.n_clamped++;
			if (step > (uint64_t)r->info.max_clamp_ns)
				r->info.max_clamp_ns =
					(int64_t)sonde_min(step, (uint64_t)INT64_MAX);
		}
		e->flags |= SONDE_TRACE_CLAMPED;
		e->ns = ns;
	}
	r->last_ns = e->ns;
	r->info.n_events += !(e->flags & SONDE_TRACE_MADE);
	return e;
}

static struct sonde_error *next(struct sonde_trace_reader *r, const struct sonde_trace_event **ret)
{
	struct sonde_trace_v2 *v = r->impl;
	/* The usual way, without the queue. */
	if (sonde_likely(v->next_queued == v->n_queued && v->heap.n &&
		    v->heap.items[0].ns <= v->sample_ns)) {
		take_event(v);
		if (sonde_unlikely(v->no_memory))
			return &sonde_enomem;
		if (sonde_likely(v->n_queued == 1)) {
			v->next_queued = 1;
			*ret = hand_out(v, &v->queue[0]);
			return NULL;
		}
	}
	while (v->next_queued == v->n_queued) {
		/* A sample goes before an event of a later time. */
		if (sonde_likely(v->heap.n && v->heap.items[0].ns <= v->sample_ns)) {
			take_event(v);
			if (sonde_unlikely(v->no_memory))
				return &sonde_enomem;
		} else if (v->next_sample < v->samples.n) {
			take_sample(v);
		} else if (v->ended) {
			*ret = NULL;
			return NULL;
		} else {
			bool more;
			if (v->leave)
				SONDE_TRY(v->leave(v->leave_ctx));
			SONDE_TRY(sonde_trace_v2_load(v, &more));
			if (more) {
				SONDE_TRY(install(v));
				continue;
			}
			v->ended = true;
			sonde_trace_damage_add_open(v->r, v->offset);
			take_sync(v, r->last_ns);
		}
	}
	*ret = hand_out(v, &v->queue[v->next_queued++]);
	return NULL;
}

/* --- strings and stacks --- */

static const char *string(const struct sonde_trace_reader *r, uint64_t id, size_t *len)
{
	const struct sonde_trace_v2 *v = r->impl;
	const struct sonde_trace_v2_entry *e = sonde_trace_v2_find(&v->strings, id);
	if (!e)
		return NULL;
	*len = e->n;
	return (const char *)sonde_trace_v2_at(v, e->offset);
}

static size_t stack(const struct sonde_trace_reader *r, uint64_t id,
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES])
{
	const struct sonde_trace_v2 *v = r->impl;
	const struct sonde_trace_v2_entry *e = sonde_trace_v2_find(&v->stacks, id);
	if (!e)
		return 0;
	const uint8_t *p = sonde_trace_v2_at(v, e->offset);
	const uint8_t *end = r->source->data + r->source->len;
	for (uint32_t i = 0; i < e->n; i++) {
		p += sonde_trace_varint_decode(p, end, &frames[i].pc);
		p += sonde_trace_varint_decode(p, end, &frames[i].func);
		p += sonde_trace_varint_decode(p, end, &frames[i].file);
		p += sonde_trace_varint_decode(p, end, &frames[i].line);
	}
	return e->n;
}

static uint32_t *string_cache(struct sonde_trace_reader *r, uint64_t id)
{
	struct sonde_trace_v2 *v = r->impl;
	const struct sonde_trace_v2_entry *e = sonde_trace_v2_find(&v->strings, id);
	return e ? &v->strings.entries.items[e - v->strings.entries.items].cache : NULL;
}

static uint32_t *stack_cache(struct sonde_trace_reader *r, uint64_t id)
{
	struct sonde_trace_v2 *v = r->impl;
	const struct sonde_trace_v2_entry *e = sonde_trace_v2_find(&v->stacks, id);
	return e ? &v->stacks.entries.items[e - v->stacks.entries.items].cache : NULL;
}

const struct sonde_trace_ops sonde_trace_v2_ops = {
	.open = open,
	.next = next,
	.string = string,
	.stack = stack,
	.string_cache = string_cache,
	.stack_cache = stack_cache,
	.free = v2_free,
};
