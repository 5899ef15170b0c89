#include "trace/mutator.h"

#include <string.h>

/* Of a goroutine. */
enum {
	EXECUTES = 1, /* running or in a system call */
	ASSISTS = 2,
	IS_WORKER = 4, /* of the mark phase, until it stops */
	COUNTED = 8, /* in busy */
};

/* Beyond what any machine has; keeps sums of the counts small. */
enum { MAX_PROCS = 1 << 20 };

void sonde_trace_mutator_deinit(struct sonde_trace_mutator *m)
{
	sonde_trace_mutator_changes_deinit(&m->changes);
	sonde_trace_mutator_flags_deinit(&m->of_g);
}

static uint8_t *flags_of(struct sonde_trace_mutator *m, uint32_t slot)
{
	while (m->of_g.n <= slot)
		if (!sonde_trace_mutator_flags_push(&m->of_g, 0))
			return NULL;
	return &m->of_g.items[slot];
}

static void count(struct sonde_trace_mutator *m, uint8_t *flags)
{
	bool counts = *flags & EXECUTES && *flags & (ASSISTS | IS_WORKER);
	if (counts && !(*flags & COUNTED)) {
		*flags |= COUNTED;
		m->busy++;
	} else if (!counts && *flags & COUNTED) {
		*flags &= (uint8_t)~COUNTED;
		m->busy--;
	}
}

static bool transition(struct sonde_trace_mutator *m, const struct sonde_trace_event *e)
{
	uint8_t *flags = flags_of(m, e->subject_g_slot);
	if (!flags)
		return false;
	if (e->g_after == SONDE_TRACE_G_RUNNING || e->g_after == SONDE_TRACE_G_SYSCALL)
		*flags |= EXECUTES;
	else
		*flags &= (uint8_t) ~(EXECUTES | IS_WORKER);
	if (e->g_before == SONDE_TRACE_G_NONE || e->g_after == SONDE_TRACE_G_NONE)
		*flags &= (uint8_t) ~(ASSISTS | IS_WORKER);
	count(m, flags);
	return true;
}

static bool set(struct sonde_trace_mutator *m, uint32_t slot, uint8_t flag, bool to)
{
	uint8_t *flags = slot == SONDE_TRACE_NO_SLOT ? NULL : flags_of(m, slot);
	if (!flags)
		return slot == SONDE_TRACE_NO_SLOT;
	*flags = to ? *flags | flag : *flags & (uint8_t)~flag;
	count(m, flags);
	return true;
}

/* An assist from before the trace was not counted in what stands there. */
static bool assists_from_before(struct sonde_trace_mutator *m, const struct sonde_trace_event *e)
{
	uint32_t busy = m->busy;
	if (!set(m, e->subject_g_slot, ASSISTS, true))
		return false;
	/* Later generations tell again what is known. */
	if (e->generation > 1 || m->busy == busy)
		return true;
	sonde_vec_foreach (c, &m->changes)
		c->busy = sonde_min(c->busy + 1, c->procs);
	return true;
}

/* Of the collector: "GC sweep termination", before 1.21 "sweep termination". Formats that do not tell know no other. */
static bool is_collectors(
	const struct sonde_trace_reader *reader, const struct sonde_trace_event *e)
{
	size_t len;
	const char *kind = sonde_trace_string(reader, e->args[0], &len);
	return !len || memmem(kind, len, "GC", 2) || memmem(kind, len, "termination", 11);
}

/* "GC (dedicated)", "GC (fractional)"; "GC (idle)" takes only what nobody wants. */
static bool is_worker(const struct sonde_trace_reader *reader, const struct sonde_trace_event *e)
{
	size_t len;
	const char *label = sonde_trace_string(reader, e->args[0], &len);
	static const char prefix[] = "GC ", idle[] = "GC (idle)";
	return len >= sizeof(prefix) - 1 && memcmp(label, prefix, sizeof(prefix) - 1) == 0 &&
		!(len == sizeof(idle) - 1 && memcmp(label, idle, len) == 0);
}

static double utilisation(const struct sonde_trace_mutator_change *c)
{
	return 1 - (double)c->busy / c->procs;
}

static bool note_change(struct sonde_trace_mutator *m, int64_t ns)
{
	uint32_t busy = m->n_stopped ? m->procs : sonde_min(m->busy, m->procs);
	struct sonde_trace_mutator_change now = {ns, busy, m->procs};
	if (m->changes.n) {
		struct sonde_trace_mutator_change *last = &m->changes.items[m->changes.n - 1];
		if (now.busy == last->busy && now.procs == last->procs)
			return true;
		/* Of equal times the lowest stands. */
		if (ns == last->ns) {
			if (utilisation(&now) < utilisation(last))
				*last = now;
			return true;
		}
	}
	return sonde_trace_mutator_changes_push(&m->changes, now);
}

bool sonde_trace_mutator_add(struct sonde_trace_mutator *m, const struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	bool ok = true;
	if (e->subject_g_slot != SONDE_TRACE_NO_SLOT && e->g_after != e->g_before)
		ok = transition(m, e);
	switch (e->kind) {
	case SONDE_TRACE_PROCS_CHANGE:
		if (e->args[0])
			m->procs = (uint32_t)sonde_min(e->args[0], (uint64_t)MAX_PROCS);
		break;
	case SONDE_TRACE_STW_BEGIN:
		m->n_stopped += is_collectors(reader, e);
		break;
	case SONDE_TRACE_STW_END:
		m->n_stopped -= m->n_stopped && is_collectors(reader, e);
		break;
	case SONDE_TRACE_GC_MARK_ASSIST_BEGIN:
		ok = ok && set(m, e->g_slot, ASSISTS, true);
		break;
	case SONDE_TRACE_GC_MARK_ASSIST_ACTIVE:
		ok = ok && assists_from_before(m, e);
		break;
	case SONDE_TRACE_GC_MARK_ASSIST_END:
		ok = ok && set(m, e->g_slot, ASSISTS, false);
		break;
	case SONDE_TRACE_GO_LABEL:
		if (is_worker(reader, e))
			ok = ok && set(m, e->g_slot, IS_WORKER, true);
		break;
	}
	m->end_ns = e->ns;
	return ok && (!m->procs || note_change(m, e->ns));
}

/* --- the least of all windows --- */

/* A place in time and what the program had of it since the first change: both go forwards only. */
struct edge {
	const struct sonde_trace_mutator *m;
	size_t i; /* the change that holds there */
	double sum; /* up to that change */
};

static double advance(struct edge *e, int64_t ns)
{
	const struct sonde_trace_mutator_changes *c = &e->m->changes;
	for (; e->i + 1 < c->n && c->items[e->i + 1].ns <= ns; e->i++)
		e->sum += utilisation(&c->items[e->i]) *
			(double)(c->items[e->i + 1].ns - c->items[e->i].ns);
	return e->sum + utilisation(&c->items[e->i]) * (double)(ns - c->items[e->i].ns);
}

/* The next change behind that place, or the end of the trace. */
static int64_t next_change(const struct edge *e)
{
	const struct sonde_trace_mutator_changes *c = &e->m->changes;
	return e->i + 1 < c->n ? c->items[e->i + 1].ns : e->m->end_ns;
}

bool sonde_trace_mutator_least(
	const struct sonde_trace_mutator *m, uint64_t window_ns, double *least, int64_t *begin_ns)
{
	if (!m->changes.n || m->end_ns <= m->changes.items[0].ns || !window_ns)
		return false;
	int64_t begin = m->changes.items[0].ns;
	int64_t window = (int64_t)sonde_min(window_ns, (uint64_t)m->end_ns - (uint64_t)begin);
	struct edge left = {.m = m}, right = {.m = m};
	/* The mean over a window is linear in its place but where an edge meets a change. */
	*least = 2;
	for (int64_t at = begin;;) {
		double sum = advance(&right, at + window) - advance(&left, at);
		double mean = sum / (double)window;
		mean = mean < 0 ? 0 : mean > 1 ? 1 : mean;
		if (mean < *least) {
			*least = mean;
			*begin_ns = at;
		}
		if (at + window >= m->end_ns)
			return true;
		at = sonde_min(next_change(&left), next_change(&right) - window);
	}
}
