#include "trace/gc.h"

void sonde_trace_gc_init(struct sonde_trace_gc *gc, size_t n_worst)
{
	*gc = (struct sonde_trace_gc){
		.n_worst = n_worst, .first_ns = INT64_MAX, .last_ns = INT64_MIN};
	sonde_trace_goroutines_init(&gc->goroutines, false);
}

void sonde_trace_gc_deinit(struct sonde_trace_gc *gc)
{
	sonde_vec_foreach (k, &gc->kinds)
		sonde_trace_latency_deinit(&k->latency);
	sonde_trace_pause_kinds_deinit(&gc->kinds);
	sonde_trace_gc_cycles_deinit(&gc->cycles);
	sonde_trace_pauses_deinit(&gc->worst);
	sonde_trace_latency_deinit(&gc->pauses);
	sonde_trace_goroutines_deinit(&gc->goroutines);
	sonde_trace_mutator_deinit(&gc->mutator);
}

/* --- cycles --- */

static struct sonde_trace_gc_cycle *current(struct sonde_trace_gc *gc)
{
	return gc->in_cycle ? &gc->cycles.items[gc->cycles.n - 1] : NULL;
}

static bool begin_cycle(struct sonde_trace_gc *gc, int64_t begin_ns)
{
	gc->in_cycle = true;
	return sonde_trace_gc_cycles_push(&gc->cycles,
		(struct sonde_trace_gc_cycle){.begin_ns = begin_ns,
			.end_ns = INT64_MAX,
			.heap_begin = gc->heap,
			.heap_end = gc->heap,
			.heap_most = gc->heap,
			.goal = gc->goal,
			.has_heap = gc->has_heap,
			.has_goal = gc->has_goal});
}

static void note_heap(struct sonde_trace_gc *gc, uint64_t bytes)
{
	struct sonde_trace_gc_cycle *c = current(gc);
	gc->heap = bytes;
	gc->has_heap = true;
	if (!c)
		return;
	if (!c->has_heap)
		c->heap_begin = bytes;
	c->has_heap = true;
	c->heap_end = bytes;
	c->heap_most = sonde_max(c->heap_most, bytes);
}

/* --- pauses --- */

static bool keep_worst(struct sonde_trace_gc *gc)
{
	if (gc->worst.n < gc->n_worst)
		return sonde_trace_pauses_push(&gc->worst, gc->pause);
	size_t least = 0;
	for (size_t i = 1; i < gc->worst.n; i++)
		if (gc->worst.items[i].ns < gc->worst.items[least].ns)
			least = i;
	if (gc->worst.n && gc->pause.ns > gc->worst.items[least].ns)
		gc->worst.items[least] = gc->pause;
	return true;
}

static bool end_pause(struct sonde_trace_gc *gc, int64_t ns)
{
	gc->in_pause = false;
	gc->pause.ns = (uint64_t)(ns - gc->pause.begin_ns);
	struct sonde_trace_pause_kind *kind = NULL;
	/* Some twenty kinds at most. */
	sonde_vec_foreach (k, &gc->kinds)
		if (k->reason == gc->pause.reason)
			kind = k;
	if (!kind) {
		kind = sonde_trace_pause_kinds_add(&gc->kinds);
		if (!kind)
			return false;
		kind->reason = gc->pause.reason;
	}
	struct sonde_trace_gc_cycle *c = current(gc);
	if (c) {
		c->n_pauses++;
		c->pauses_ns += (uint64_t)(ns - sonde_max(gc->pause.begin_ns, c->begin_ns));
	}
	return sonde_trace_latency_add(&kind->latency, gc->pause.ns) &&
		sonde_trace_latency_add(&gc->pauses, gc->pause.ns) && keep_worst(gc);
}

bool sonde_trace_gc_add(struct sonde_trace_gc *gc, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	if (!sonde_trace_goroutines_add(&gc->goroutines, reader, e) ||
		!sonde_trace_mutator_add(&gc->mutator, reader, e))
		return false;
	gc->first_ns = sonde_min(gc->first_ns, e->ns);
	gc->last_ns = e->ns;
	switch (e->kind) {
	case SONDE_TRACE_GC_BEGIN:
		return begin_cycle(gc, e->ns);
	case SONDE_TRACE_GC_ACTIVE: /* told at the beginning of every generation within one */
		return gc->in_cycle || begin_cycle(gc, INT64_MIN);
	case SONDE_TRACE_GC_END:
		/* Of one from before the trace, in formats that do not tell: its beginning is not known. */
		if (!gc->in_cycle && !begin_cycle(gc, INT64_MIN))
			return false;
		current(gc)->end_ns = e->ns;
		gc->in_cycle = false;
		return true;
	case SONDE_TRACE_STW_BEGIN:
		gc->n_open_pauses += gc->in_pause;
		gc->in_pause = true;
		gc->pause = (struct sonde_trace_pause){.begin_ns = e->ns,
			.g = e->g,
			.reason = sonde_trace_intern(reader, e->args[0])};
		return gc->pause.reason != UINT32_MAX;
	case SONDE_TRACE_STW_END:
		return !gc->in_pause || end_pause(gc, e->ns);
	case SONDE_TRACE_HEAP_ALLOC:
		note_heap(gc, e->args[0]);
		return true;
	case SONDE_TRACE_HEAP_GOAL:
		gc->goal = e->args[0];
		gc->has_goal = true;
		return true;
	case SONDE_TRACE_GC_SWEEP_END:
		gc->n_sweeps++;
		gc->swept += e->args[0];
		gc->reclaimed += e->args[1];
		return true;
	default:
		return true;
	}
}

static int kind_by_time(const void *a, const void *b)
{
	const struct sonde_trace_pause_kind *x = a, *y = b;
	if (x->latency.sum_ns != y->latency.sum_ns)
		return x->latency.sum_ns > y->latency.sum_ns ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

static int pause_by_length(const void *a, const void *b)
{
	const struct sonde_trace_pause *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->begin_ns < y->begin_ns ? -1 : x->begin_ns > y->begin_ns;
}

bool sonde_trace_gc_finish(struct sonde_trace_gc *gc)
{
	gc->n_open_pauses += gc->in_pause;
	sonde_vec_sort(&gc->kinds, kind_by_time);
	sonde_vec_sort(&gc->worst, pause_by_length);
	return sonde_trace_goroutines_finish(&gc->goroutines);
}
