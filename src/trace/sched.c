#include "trace/sched.h"

#include "trace/entry.h"

void sonde_trace_sched_init(struct sonde_trace_sched *s, size_t n_worst)
{
	*s = (struct sonde_trace_sched){.n_worst = n_worst};
	sonde_trace_waits_init(&s->waits, 1u << SONDE_TRACE_G_RUNNABLE);
}

void sonde_trace_sched_deinit(struct sonde_trace_sched *s)
{
	sonde_trace_latency_deinit(&s->all);
	sonde_vec_foreach (e, &s->entries)
		sonde_trace_latency_deinit(&e->latency);
	sonde_trace_sched_entries_deinit(&s->entries);
	sonde_trace_worst_vec_deinit(&s->worst);
	sonde_trace_waits_deinit(&s->waits);
	sonde_u32_vec_deinit(&s->by_entry);
	sonde_trace_sched_goroutines_deinit(&s->gs);
	sonde_trace_processors_deinit(&s->ps);
}

/* --- what runs on processors --- */

static bool have_slots(struct sonde_trace_sched *s, uint32_t g, uint32_t p, uint32_t subject_p)
{
	uint32_t last_p = p;
	if (p == SONDE_TRACE_NO_SLOT || (subject_p != SONDE_TRACE_NO_SLOT && subject_p > p))
		last_p = subject_p;
	while (g != SONDE_TRACE_NO_SLOT && s->gs.n <= g)
		if (!sonde_trace_sched_goroutines_add(&s->gs))
			return false;
	while (last_p != SONDE_TRACE_NO_SLOT && s->ps.n <= last_p)
		if (!sonde_trace_processors_add(&s->ps))
			return false;
	return true;
}

static struct sonde_trace_run *last_run(struct sonde_trace_processor *p)
{
	return p->n ? &p->runs[(p->n - 1) % SONDE_TRACE_SCHED_RUNS] : NULL;
}

static void end_run(struct sonde_trace_processor *p, int64_t ns)
{
	struct sonde_trace_run *last = last_run(p);
	if (last && last->to_ns == INT64_MAX)
		last->to_ns = ns;
}

/* The goroutine of the event begins or ends to run on its processor, or keeps it in a system call. */
static void note_run(struct sonde_trace_sched *s, const struct sonde_trace_event *e)
{
	if (e->p_slot == SONDE_TRACE_NO_SLOT)
		return;
	struct sonde_trace_processor *p = &s->ps.items[e->p_slot];
	bool in_syscall = e->g_after == SONDE_TRACE_G_SYSCALL &&
		e->p_after == SONDE_TRACE_P_SYSCALL && e->subject_p_slot == e->p_slot;
	end_run(p, e->ns);
	if (e->g_after != SONDE_TRACE_G_RUNNING && !in_syscall)
		return;
	p->runs[p->n++ % SONDE_TRACE_SCHED_RUNS] = (struct sonde_trace_run){
		e->subject_g, e->ns, INT64_MAX, s->gs.items[e->subject_g_slot].entry, in_syscall};
}

/* --- one wait --- */

static void note_behind(struct sonde_trace_worst *w, const struct sonde_trace_run *run, uint64_t ns)
{
	struct sonde_trace_behind new = {run->g, ns, run->entry, run->in_syscall};
	for (uint32_t i = 0; i < w->n_behind; i++)
		if (w->behind[i].g == run->g && w->behind[i].in_syscall == run->in_syscall) {
			w->behind[i].ns += ns;
			for (; i && w->behind[i].ns > w->behind[i - 1].ns; i--) {
				struct sonde_trace_behind swap = w->behind[i];
				w->behind[i] = w->behind[i - 1];
				w->behind[i - 1] = swap;
			}
			return;
		}
	for (uint32_t i = 0; i < w->n_behind; i++)
		if (new.ns > w->behind[i].ns) {
			struct sonde_trace_behind swap = w->behind[i];
			w->behind[i] = new;
			new = swap;
		}
	if (w->n_behind < SONDE_TRACE_SCHED_BEHIND)
		w->behind[w->n_behind++] = new;
	else
		w->other_ns += new.ns;
}

/* What ran, while w waited, on the processor that it runs on now. */
static void look_behind(const struct sonde_trace_processor *p, struct sonde_trace_worst *w)
{
	uint32_t n = sonde_min(p->n, (uint32_t)SONDE_TRACE_SCHED_RUNS);
	for (uint32_t i = 1; i <= n; i++) {
		const struct sonde_trace_run *run = &p->runs[(p->n - i) % SONDE_TRACE_SCHED_RUNS];
		if (run->to_ns <= w->wait.start_ns)
			return;
		int64_t from_ns = sonde_max(run->from_ns, w->wait.start_ns);
		int64_t to_ns = sonde_min(run->to_ns, w->wait.end_ns);
		if (to_ns > from_ns)
			note_behind(w, run, (uint64_t)(to_ns - from_ns));
	}
	w->forgotten = p->n > n;
}

static int by_length(const void *a, const void *b)
{
	const struct sonde_trace_worst *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	return x->wait.start_ns < y->wait.start_ns ? -1 : x->wait.start_ns > y->wait.start_ns;
}

static bool keep_worst(struct sonde_trace_sched *s, const struct sonde_trace_wait *wait,
	const struct sonde_trace_event *e)
{
	uint64_t ns = (uint64_t)(wait->end_ns - wait->start_ns);
	size_t at = s->worst.n;
	if (!s->n_worst)
		return true;
	if (s->worst.n == s->n_worst) {
		/* The least of them gives way. */
		at = s->least;
		if (ns <= s->worst.items[at].ns)
			return true;
	} else if (!sonde_trace_worst_vec_add(&s->worst)) {
		return false;
	}
	const struct sonde_trace_sched_goroutine *g = &s->gs.items[wait->slot];
	struct sonde_trace_worst *w = &s->worst.items[at];
	*w = (struct sonde_trace_worst){
		.wait = *wait, .ns = ns, .p = e->p, .entry = g->entry, .idle = g->idle};
	if (e->p_slot != SONDE_TRACE_NO_SLOT)
		look_behind(&s->ps.items[e->p_slot], w);
	/* It is looked for where one was put in only: that gets rare. */
	s->least = 0;
	for (size_t i = 1; s->worst.n == s->n_worst && i < s->worst.n; i++)
		if (s->worst.items[i].ns < s->worst.items[s->least].ns)
			s->least = i;
	return true;
}

static struct sonde_trace_sched_entry *entry_of(struct sonde_trace_sched *s, uint32_t entry)
{
	while (s->by_entry.n <= entry)
		if (!sonde_u32_vec_push(&s->by_entry, 0))
			return NULL;
	uint32_t *index = &s->by_entry.items[entry];
	if (!*index) {
		struct sonde_trace_sched_entry *new = sonde_trace_sched_entries_add(&s->entries);
		if (!new)
			return NULL;
		new->entry = entry;
		*index = (uint32_t)s->entries.n;
	}
	return &s->entries.items[*index - 1];
}

static bool end_wait(struct sonde_trace_sched *s, const struct sonde_trace_wait *wait,
	const struct sonde_trace_event *e)
{
	if (wait->next != SONDE_TRACE_G_RUNNING)
		return true;
	if (!wait->known_start) {
		s->n_unknown++;
		return true;
	}
	uint64_t ns = (uint64_t)(wait->end_ns - wait->start_ns);
	struct sonde_trace_sched_entry *entry = entry_of(s, s->gs.items[wait->slot].entry);
	return entry && sonde_trace_latency_add(&s->all, ns) &&
		sonde_trace_latency_add(&entry->latency, ns) && keep_worst(s, wait, e);
}

bool sonde_trace_sched_add(struct sonde_trace_sched *s, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct sonde_trace_wait wait;
	bool ended;
	if (e->p_before != e->p_after) {
		if (e->p_before == SONDE_TRACE_P_IDLE && s->n_idle)
			s->n_idle--;
		s->n_idle += e->p_after == SONDE_TRACE_P_IDLE;
	}
	if (!have_slots(s, e->subject_g_slot, e->p_slot, e->subject_p_slot))
		return false;
	/* Taken away from a system call, or given up. */
	if (e->p_before != e->p_after && e->subject_p_slot != SONDE_TRACE_NO_SLOT &&
		(e->p_before == SONDE_TRACE_P_SYSCALL || e->p_after == SONDE_TRACE_P_IDLE))
		end_run(&s->ps.items[e->subject_p_slot], e->ns);
	if (e->subject_g_slot != SONDE_TRACE_NO_SLOT && (e->g_before | e->g_after)) {
		struct sonde_trace_sched_goroutine *g = &s->gs.items[e->subject_g_slot];
		if (g->id != e->subject_g || e->g_before == SONDE_TRACE_G_NONE)
			*g = (struct sonde_trace_sched_goroutine){.id = e->subject_g};
		if (!g->entry && !sonde_trace_entry_find(reader, e, &g->entry))
			return false;
		if (e->g_after == SONDE_TRACE_G_RUNNABLE && e->g_before != e->g_after)
			g->idle = s->n_idle;
	}
	if (!sonde_trace_waits_add(&s->waits, reader, e, &wait, &ended) ||
		(ended && !end_wait(s, &wait, e)))
		return false;
	if (e->g_before != e->g_after &&
		(e->g_after == SONDE_TRACE_G_RUNNING || e->g_before == SONDE_TRACE_G_RUNNING))
		note_run(s, e);
	return true;
}

static int by_sum(const void *a, const void *b)
{
	const struct sonde_trace_sched_entry *x = a, *y = b;
	if (x->latency.sum_ns != y->latency.sum_ns)
		return x->latency.sum_ns > y->latency.sum_ns ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

void sonde_trace_sched_finish(struct sonde_trace_sched *s)
{
	struct sonde_trace_wait wait;
	while (sonde_trace_waits_rest(&s->waits, &wait))
		s->n_unfinished++;
	sonde_vec_sort(&s->entries, by_sum);
	sonde_vec_sort(&s->worst, by_length);
}
