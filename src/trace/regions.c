#include "trace/regions.h"

#include <string.h>

void sonde_trace_regions_init(struct sonde_trace_regions_pass *rs,
	const struct sonde_trace_region_filter *filter, bool keep)
{
	*rs = (struct sonde_trace_regions_pass){
		.filter = *filter, .keep = keep, .last_ns = INT64_MIN};
	sonde_trace_goroutines_init(&rs->goroutines, false);
}

void sonde_trace_regions_pass_deinit(struct sonde_trace_regions_pass *rs)
{
	sonde_vec_foreach (t, &rs->types)
		sonde_trace_latency_deinit(&t->latency);
	sonde_trace_region_types_deinit(&rs->types);
	sonde_trace_user_regions_deinit(&rs->kept);
	sonde_trace_user_regions_deinit(&rs->open);
	sonde_trace_goroutines_deinit(&rs->goroutines);
	sonde_u32_vec_deinit(&rs->innermost);
	sonde_u32_vec_deinit(&rs->by_name);
}

static uint32_t *element(struct sonde_u32_vec *v, size_t i)
{
	while (v->n <= i)
		if (!sonde_u32_vec_push(v, 0))
			return NULL;
	return &v->items[i];
}

static bool wanted(const struct sonde_trace_regions_pass *rs,
	const struct sonde_trace_reader *reader, const struct sonde_trace_user_region *r)
{
	const struct sonde_trace_region_filter *f = &rs->filter;
	if ((f->has_g && r->g != f->g) || (f->has_task && r->task != f->task))
		return false;
	const char *name = f->name ? sonde_trace_interned(reader, r->name) : NULL;
	return !f->name || (name && strstr(name, f->name));
}

static struct sonde_trace_region_type *type_of(struct sonde_trace_regions_pass *rs, uint32_t name)
{
	uint32_t *index = element(&rs->by_name, name);
	if (!index)
		return NULL;
	if (!*index) {
		struct sonde_trace_region_type *t = sonde_trace_region_types_add(&rs->types);
		if (!t)
			return NULL;
		t->name = name;
		*index = (uint32_t)rs->types.n;
	}
	return &rs->types.items[*index - 1];
}

/* r is over, at `now`; its times are those of its goroutine at its beginning, become what passed since. */
static bool close_region(struct sonde_trace_regions_pass *rs,
	const struct sonde_trace_reader *reader, struct sonde_trace_user_region *r,
	const struct sonde_trace_times *now, int64_t end_ns)
{
	struct sonde_trace_times since = *now;
	sonde_trace_times_sub(&since, &r->times);
	r->times = since;
	r->end_ns = end_ns;
	if (!wanted(rs, reader, r))
		return true;
	struct sonde_trace_region_type *t = type_of(rs, r->name);
	if (!t)
		return false;
	rs->n++;
	sonde_trace_times_add(&t->times, &r->times);
	t->n_open += end_ns == INT64_MAX;
	t->n_unbegun += r->begin_ns == INT64_MIN;
	if (end_ns != INT64_MAX && r->begin_ns != INT64_MIN &&
		!sonde_trace_latency_add(&t->latency, (uint64_t)(end_ns - r->begin_ns)))
		return false;
	return !rs->keep || sonde_trace_user_regions_push(&rs->kept, *r);
}

static bool begin_region(struct sonde_trace_regions_pass *rs, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	uint32_t *innermost = element(&rs->innermost, e->g_slot);
	struct sonde_trace_user_region r = {.g = e->g, .task = e->args[0], .begin_ns = e->ns};
	r.name = sonde_trace_intern(reader, e->args[1]);
	if (!innermost || r.name == UINT32_MAX)
		return false;
	r.outer = *innermost;
	sonde_trace_goroutines_times(&rs->goroutines, e->g_slot, e->ns, &r.times);
	if (rs->free_open) {
		uint32_t i = rs->free_open;
		rs->free_open = rs->open.items[i - 1].outer;
		rs->open.items[i - 1] = r;
		*innermost = i;
		return true;
	}
	if (!sonde_trace_user_regions_push(&rs->open, r))
		return false;
	*innermost = (uint32_t)rs->open.n;
	return true;
}

/* The innermost open region of the goroutine in slot is over. */
static bool pop(struct sonde_trace_regions_pass *rs, const struct sonde_trace_reader *reader,
	uint32_t slot, const struct sonde_trace_times *now, int64_t end_ns)
{
	uint32_t i = rs->innermost.items[slot];
	struct sonde_trace_user_region r = rs->open.items[i - 1];
	rs->innermost.items[slot] = r.outer;
	rs->open.items[i - 1].outer = rs->free_open;
	rs->free_open = i;
	r.outer = 0;
	return close_region(rs, reader, &r, now, end_ns);
}

static bool end_region(struct sonde_trace_regions_pass *rs, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct sonde_trace_times now;
	sonde_trace_goroutines_times(&rs->goroutines, e->g_slot, e->ns, &now);
	if (e->g_slot < rs->innermost.n && rs->innermost.items[e->g_slot])
		return pop(rs, reader, e->g_slot, &now, e->ns);
	struct sonde_trace_user_region r = {.g = e->g,
		.task = e->args[0],
		.begin_ns = INT64_MIN,
		.name = sonde_trace_intern(reader, e->args[1])};
	return r.name != UINT32_MAX && close_region(rs, reader, &r, &now, e->ns);
}

/* The goroutine in slot ends, or the trace does: so do its regions, the innermost first. */
static bool end_all(struct sonde_trace_regions_pass *rs, const struct sonde_trace_reader *reader,
	uint32_t slot, int64_t ns)
{
	if (slot >= rs->innermost.n || !rs->innermost.items[slot])
		return true;
	struct sonde_trace_times now;
	sonde_trace_goroutines_times(&rs->goroutines, slot, ns, &now);
	while (rs->innermost.items[slot])
		if (!pop(rs, reader, slot, &now, INT64_MAX))
			return false;
	return true;
}

bool sonde_trace_regions_add(struct sonde_trace_regions_pass *rs, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	rs->last_ns = e->ns;
	bool ends = e->g_after == SONDE_TRACE_G_NONE && e->g_before != SONDE_TRACE_G_NONE;
	bool is_new = e->g_before == SONDE_TRACE_G_NONE && e->g_after != SONDE_TRACE_G_NONE;
	/* A new one in a slot whose old one had no end: after damage. */
	if ((ends || is_new) && !end_all(rs, reader, e->subject_g_slot, e->ns))
		return false;
	if (!sonde_trace_goroutines_add(&rs->goroutines, reader, e))
		return false;
	if (e->g_slot == SONDE_TRACE_NO_SLOT)
		return true;
	switch (e->kind) {
	case SONDE_TRACE_USER_REGION_BEGIN:
		return begin_region(rs, reader, e);
	case SONDE_TRACE_USER_REGION_END:
		return end_region(rs, reader, e);
	default:
		return true;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct sonde_trace_region_type *x = a, *y = b;
	if (x->times.total_ns != y->times.total_ns)
		return x->times.total_ns > y->times.total_ns ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int by_beginning(const void *a, const void *b)
{
	const struct sonde_trace_user_region *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	if (x->end_ns != y->end_ns)
		return x->end_ns > y->end_ns ? -1 : 1;
	return x->g < y->g ? -1 : x->g > y->g;
}

bool sonde_trace_regions_finish(
	struct sonde_trace_regions_pass *rs, const struct sonde_trace_reader *reader)
{
	for (uint32_t slot = 0; slot < rs->innermost.n; slot++)
		if (!end_all(rs, reader, slot, rs->last_ns))
			return false;
	sonde_vec_sort(&rs->types, by_time);
	sonde_vec_sort(&rs->kept, by_beginning);
	return true;
}
