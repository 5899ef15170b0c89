#include "trace/waits.h"

void sonde_trace_waits_init(struct sonde_trace_waits *ws, uint32_t wanted)
{
	*ws = (struct sonde_trace_waits){.wanted = wanted, .last_ns = INT64_MIN};
}

void sonde_trace_waits_deinit(struct sonde_trace_waits *ws)
{
	free(ws->live);
}

static bool reserve(struct sonde_trace_waits *ws, uint32_t slot)
{
	size_t n = sonde_max(sonde_max((size_t)slot + 1, ws->n_live * 2), (size_t)64);
	struct sonde_trace_waiting *live = reallocarray(ws->live, n, sizeof(*live));
	if (!live)
		return false;
	memset(live + ws->n_live, 0, (n - ws->n_live) * sizeof(*live));
	ws->live = live;
	ws->n_live = n;
	return true;
}

static bool begin(struct sonde_trace_waiting *l, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	bool told = e->kind == SONDE_TRACE_GO_BLOCK || e->kind == SONDE_TRACE_GO_STOP;
	struct sonde_trace_wait *w = &l->wait;
	*w = (struct sonde_trace_wait){
		.start_ns = e->ns,
		.g = e->subject_g,
		.by = e->g,
		.slot = e->subject_g_slot,
		.status = e->g_after,
		.kind = e->kind,
		.v1 = e->wire,
		.known_start = e->g_before != SONDE_TRACE_G_UNDETERMINED,
	};
	uint64_t stack = sonde_trace_event_stack(e);
	if (stack)
		w->stack = sonde_trace_intern_stack(reader, stack);
	if (told)
		w->reason = sonde_trace_intern(reader, e->args[0]);
	if (w->v1 == SONDE_TRACE_V1_GO_SYSBLOCK && w->status == SONDE_TRACE_G_SYSCALL &&
		l->syscall_stack) {
		w->start_ns = l->syscall_ns;
		w->stack = l->syscall_stack;
	}
	return w->stack != UINT32_MAX && w->reason != UINT32_MAX;
}

/* A system call begins, of which it is not known yet whether it blocks. */
static bool begin_syscall(struct sonde_trace_waiting *l, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	uint64_t stack = sonde_trace_event_stack(e);
	l->syscall_ns = e->ns;
	l->syscall_stack = stack ? sonde_trace_intern_stack(reader, stack) : 0;
	return l->syscall_stack != UINT32_MAX;
}

bool sonde_trace_waits_add(struct sonde_trace_waits *ws, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e, struct sonde_trace_wait *wait, bool *ended)
{
	*ended = false;
	ws->last_ns = e->ns;
	uint32_t slot = e->subject_g_slot;
	if (slot == SONDE_TRACE_NO_SLOT || (e->g_before | e->g_after) == SONDE_TRACE_G_NONE)
		return true;
	if (slot >= ws->n_live && !reserve(ws, slot))
		return false;
	struct sonde_trace_waiting *l = &ws->live[slot];
	struct sonde_trace_wait *w = &l->wait;
	if (e->kind == SONDE_TRACE_GO_SYSCALL_BEGIN && e->g_after == SONDE_TRACE_G_RUNNING)
		return !(ws->wanted >> SONDE_TRACE_G_SYSCALL & 1) || begin_syscall(l, reader, e);
	if (w->status != SONDE_TRACE_G_NONE) {
		/* A status that is told again changes nothing. After damage the slot may be another's. */
		if (w->g == e->subject_g && e->g_after == w->status)
			return true;
		*wait = *w;
		wait->end_ns = e->ns;
		wait->next = w->g == e->subject_g ? e->g_after : SONDE_TRACE_G_NONE;
		*ended = true;
		w->status = SONDE_TRACE_G_NONE;
	}
	bool ok = !(ws->wanted >> e->g_after & 1) || begin(l, reader, e);
	l->syscall_stack = 0;
	return ok;
}

bool sonde_trace_waits_rest(struct sonde_trace_waits *ws, struct sonde_trace_wait *wait)
{
	while (ws->at < ws->n_live) {
		const struct sonde_trace_wait *w = &ws->live[ws->at++].wait;
		if (w->status == SONDE_TRACE_G_NONE)
			continue;
		*wait = *w;
		wait->end_ns = ws->last_ns;
		wait->next = SONDE_TRACE_G_NONE;
		return true;
	}
	return false;
}
