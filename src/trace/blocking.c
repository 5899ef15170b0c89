#include "trace/blocking.h"

void sonde_trace_blocking_init(struct sonde_trace_blocking *b, bool syscalls)
{
	*b = (struct sonde_trace_blocking){0};
	sonde_trace_waits_init(&b->waits,
		1u << SONDE_TRACE_G_WAITING | (syscalls ? 1u << SONDE_TRACE_G_SYSCALL : 0));
}

void sonde_trace_blocking_deinit(struct sonde_trace_blocking *b)
{
	sonde_trace_blocked_vec_deinit(&b->rows);
	sonde_trace_waits_deinit(&b->waits);
	sonde_u32_map_deinit(&b->index);
}

static bool count(struct sonde_trace_blocking *b, const struct sonde_trace_wait *w)
{
	bool is_syscall = w->status == SONDE_TRACE_G_SYSCALL;
	/* The reason of a system call is none: the highest id stands for it. */
	uint64_t reason = is_syscall ? UINT32_MAX : w->reason;
	uint32_t *index = sonde_u32_map_put(&b->index, reason << 32 | w->stack, NULL);
	if (!index)
		return false;
	if (!*index) {
		if (!sonde_trace_blocked_vec_push(&b->rows,
			    (struct sonde_trace_blocked){.reason = is_syscall ? 0 : w->reason,
				    .stack = w->stack,
				    .is_syscall = is_syscall}))
			return false;
		*index = (uint32_t)b->rows.n;
	}
	struct sonde_trace_blocked *row = &b->rows.items[*index - 1];
	uint64_t ns = w->end_ns > w->start_ns ? (uint64_t)(w->end_ns - w->start_ns) : 0;
	row->n++;
	row->ns += ns;
	row->max_ns = sonde_max(row->max_ns, ns);
	row->n_unfinished += w->next == SONDE_TRACE_G_NONE;
	b->n++;
	b->ns += ns;
	return true;
}

bool sonde_trace_blocking_add(struct sonde_trace_blocking *b, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct sonde_trace_wait wait;
	bool ended;
	return sonde_trace_waits_add(&b->waits, reader, e, &wait, &ended) &&
		(!ended || count(b, &wait));
}

static int by_time(const void *a, const void *b)
{
	const struct sonde_trace_blocked *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	if (x->stack != y->stack)
		return x->stack < y->stack ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

bool sonde_trace_blocking_finish(struct sonde_trace_blocking *b)
{
	struct sonde_trace_wait wait;
	while (sonde_trace_waits_rest(&b->waits, &wait))
		if (!count(b, &wait))
			return false;
	sonde_vec_sort(&b->rows, by_time);
	return true;
}
