#include "trace/overview.h"

void sonde_trace_overview_init(struct sonde_trace_overview *o)
{
	*o = (struct sonde_trace_overview){.first_ns = INT64_MAX, .last_ns = INT64_MIN};
}

static void open_span(struct sonde_trace_span *s, int64_t ns)
{
	s->n++;
	s->total_ns -= (uint64_t)ns; /* the end adds its own time */
	if (!s->n_open++)
		s->since_ns = ns;
}

static void close_span(struct sonde_trace_span *s, int64_t ns)
{
	if (!s->n_open) /* it began before the trace */
		return;
	s->total_ns += (uint64_t)ns;
	if (!--s->n_open)
		s->longest_ns = sonde_max(s->longest_ns, (uint64_t)ns - (uint64_t)s->since_ns);
}

void sonde_trace_overview_end(struct sonde_trace_overview *o)
{
	struct sonde_trace_span *const spans[] = {&o->gc, &o->stw, &o->assist};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(spans); i++)
		spans[i]->total_ns += spans[i]->n_open * (uint64_t)o->last_ns;
}

static bool is_busy(unsigned p_status)
{
	return p_status == SONDE_TRACE_P_RUNNING || p_status == SONDE_TRACE_P_SYSCALL;
}

static void add_states(struct sonde_trace_overview *o, const struct sonde_trace_event *e)
{
	if (o->at_ns && e->ns > o->at_ns) {
		uint64_t step_ns = (uint64_t)(e->ns - o->at_ns);
		o->running_ns += (uint64_t)sonde_max(o->n_running, INT64_C(0)) * step_ns;
		o->busy_ns += (uint64_t)sonde_max(o->n_busy, INT64_C(0)) * step_ns;
	}
	o->at_ns = e->ns;
	o->n_running +=
		(e->g_after == SONDE_TRACE_G_RUNNING) - (e->g_before == SONDE_TRACE_G_RUNNING);
	o->n_busy += is_busy(e->p_after) - is_busy(e->p_before);
	bool was = e->g_before != SONDE_TRACE_G_NONE && e->g_before != SONDE_TRACE_G_UNDETERMINED;
	bool is = e->g_after != SONDE_TRACE_G_NONE;
	if (is && !was)
		o->n_goroutines++;
	if (is && !was && ++o->n_alive > o->most_alive)
		o->most_alive = o->n_alive;
	if (was && !is && o->n_alive)
		o->n_alive--;
}

void sonde_trace_overview_add(
	struct sonde_trace_overview *o, const struct sonde_trace_event *e, unsigned version)
{
	add_states(o, e);
	if (e->flags & SONDE_TRACE_MADE)
		return;
	o->counts[e->kind]++;
	if (version < 22)
		o->wire_counts[e->wire & 63]++;
	o->first_ns = sonde_min(o->first_ns, e->ns);
	o->last_ns = sonde_max(o->last_ns, e->ns);
	switch (e->kind) {
	case SONDE_TRACE_PROCS_CHANGE:
		o->procs = e->args[0];
		break;
	case SONDE_TRACE_GC_ACTIVE:
		if (o->gc.n_open) /* told again at the beginning of a generation */
			break;
		/* fall through */
	case SONDE_TRACE_GC_BEGIN:
		open_span(&o->gc, e->ns);
		break;
	case SONDE_TRACE_GC_END:
		close_span(&o->gc, e->ns);
		break;
	case SONDE_TRACE_STW_BEGIN:
		open_span(&o->stw, e->ns);
		break;
	case SONDE_TRACE_STW_END:
		close_span(&o->stw, e->ns);
		break;
	case SONDE_TRACE_GC_MARK_ASSIST_BEGIN:
		open_span(&o->assist, e->ns);
		break;
	case SONDE_TRACE_GC_MARK_ASSIST_END:
		close_span(&o->assist, e->ns);
		break;
	case SONDE_TRACE_HEAP_ALLOC:
		o->heap_last = e->args[0];
		o->heap_max = sonde_max(o->heap_max, e->args[0]);
		o->heap_min = o->has_heap ? sonde_min(o->heap_min, e->args[0]) : e->args[0];
		o->has_heap = true;
		break;
	case SONDE_TRACE_HEAP_GOAL:
		o->heap_goal = e->args[0];
		break;
	}
}
