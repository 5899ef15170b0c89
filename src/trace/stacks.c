#include "trace/stacks.h"

void sonde_trace_stacks_deinit(struct sonde_trace_stacks *s)
{
	sonde_trace_stack_rows_deinit(&s->rows);
	sonde_u32_map_deinit(&s->index);
}

bool sonde_trace_stacks_add(struct sonde_trace_stacks *s, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	if (!s->wanted[e->kind] || e->flags & SONDE_TRACE_MADE)
		return true;
	uint64_t id = sonde_trace_event_stack(e);
	uint32_t stack = id ? sonde_trace_intern_stack(reader, id) : 0;
	if (stack == UINT32_MAX)
		return false;
	if (!stack) {
		s->n_without++;
		return true;
	}
	uint32_t *index = sonde_u32_map_put(&s->index, (uint64_t)e->kind << 32 | stack, NULL);
	if (!index)
		return false;
	if (!*index) {
		if (!sonde_trace_stack_rows_push(&s->rows,
			    (struct sonde_trace_stack_row){.stack = stack, .kind = e->kind}))
			return false;
		*index = (uint32_t)s->rows.n;
	}
	s->rows.items[*index - 1].n++;
	s->n++;
	return true;
}

static int by_count(const void *a, const void *b)
{
	const struct sonde_trace_stack_row *x = a, *y = b;
	if (x->n != y->n)
		return x->n > y->n ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->stack < y->stack ? -1 : x->stack > y->stack;
}

void sonde_trace_stacks_finish(struct sonde_trace_stacks *s)
{
	sonde_vec_sort(&s->rows, by_count);
}
