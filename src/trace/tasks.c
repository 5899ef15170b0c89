#include "trace/tasks.h"

#include <string.h>

void sonde_trace_tasks_init(
	struct sonde_trace_tasks_pass *ts, const struct sonde_trace_tasks_filter *filter, bool keep)
{
	*ts = (struct sonde_trace_tasks_pass){.filter = *filter, .keep = keep};
}

static void free_tasks(struct sonde_trace_user_tasks *tasks)
{
	sonde_vec_foreach (t, tasks)
		sonde_u64_vec_deinit(&t->goroutines);
	sonde_trace_user_tasks_deinit(tasks);
}

void sonde_trace_tasks_pass_deinit(struct sonde_trace_tasks_pass *ts)
{
	sonde_vec_foreach (t, &ts->types)
		sonde_trace_latency_deinit(&t->latency);
	sonde_trace_task_types_deinit(&ts->types);
	free_tasks(&ts->kept);
	free_tasks(&ts->live);
	sonde_trace_task_logs_deinit(&ts->logs);
	sonde_u32_vec_deinit(&ts->free_live);
	sonde_u32_map_deinit(&ts->by_id);
	sonde_u32_vec_deinit(&ts->by_name);
	sonde_arena_deinit(&ts->arena);
}

/* --- tasks that are open --- */

/* In by_id: the task is over; below it index + 1 in kept, 0 where it is not kept. */
static const uint32_t OVER = UINT32_C(1) << 31;

/* Ids of tasks that are over leave the map when they are the most of it. */
static bool tidy(struct sonde_trace_tasks_pass *ts)
{
	size_t n_live = ts->live.n - ts->free_live.n;
	if (ts->keep || ts->by_id.n < 1024 || ts->by_id.n / 2 < n_live)
		return true;
	struct sonde_u32_map fresh = {0};
	sonde_map_foreach (i, &ts->by_id) {
		if (ts->by_id.values[i] & OVER)
			continue;
		uint32_t *index = sonde_u32_map_put(&fresh, ts->by_id.keys[i], NULL);
		if (!index) {
			sonde_u32_map_deinit(&fresh);
			return false;
		}
		*index = ts->by_id.values[i];
	}
	sonde_u32_map_deinit(&ts->by_id);
	ts->by_id = fresh;
	return true;
}

/* The open task with that id, made where there is none: it began before the trace. NULL: out of memory. */
static struct sonde_trace_user_task *find(struct sonde_trace_tasks_pass *ts, uint64_t id)
{
	uint32_t *index = tidy(ts) ? sonde_u32_map_put(&ts->by_id, id, NULL) : NULL;
	if (!index)
		return NULL;
	if (*index && !(*index & OVER))
		return &ts->live.items[*index - 1];
	struct sonde_trace_user_task *t;
	if (ts->free_live.n) {
		*index = ts->free_live.items[--ts->free_live.n];
		t = &ts->live.items[*index - 1];
	} else {
		t = sonde_trace_user_tasks_add(&ts->live);
		if (!t)
			return NULL;
		*index = (uint32_t)ts->live.n;
	}
	*t = (struct sonde_trace_user_task){.id = id,
		.open = true,
		.unbegun = true,
		.begin_ns = INT64_MIN,
		.end_ns = INT64_MAX,
		.begin_g = SONDE_TRACE_NO_ID,
		.end_g = SONDE_TRACE_NO_ID};
	return t;
}

static bool add_goroutine(struct sonde_trace_user_task *t, uint64_t g)
{
	struct sonde_u64_vec *v = &t->goroutines;
	size_t low = 0, high = v->n;
	if (g == SONDE_TRACE_NO_ID)
		return true;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (v->items[middle] < g)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < v->n && v->items[low] == g)
		return true;
	if (!sonde_u64_vec_push(v, g))
		return false;
	memmove(v->items + low + 1, v->items + low, (v->n - 1 - low) * sizeof(v->items[0]));
	v->items[low] = g;
	return true;
}

/* --- a task is over --- */

static struct sonde_trace_task_type *type_of(struct sonde_trace_tasks_pass *ts, uint32_t name)
{
	while (ts->by_name.n <= name)
		if (!sonde_u32_vec_push(&ts->by_name, 0))
			return NULL;
	uint32_t *index = &ts->by_name.items[name];
	if (!*index) {
		struct sonde_trace_task_type *t = sonde_trace_task_types_add(&ts->types);
		if (!t)
			return NULL;
		t->name = name;
		*index = (uint32_t)ts->types.n;
	}
	return &ts->types.items[*index - 1];
}

static bool wanted(const struct sonde_trace_tasks_pass *ts, const struct sonde_trace_reader *reader,
	const struct sonde_trace_user_task *t)
{
	if (ts->filter.has_id && t->id != ts->filter.id)
		return false;
	const char *name = ts->filter.name ? sonde_trace_interned(reader, t->name) : NULL;
	return !ts->filter.name || (name && strstr(name, ts->filter.name));
}

/* Takes what t owns. */
static bool close_task(struct sonde_trace_tasks_pass *ts, const struct sonde_trace_reader *reader,
	struct sonde_trace_user_task *t)
{
	bool ok = true;
	if (wanted(ts, reader, t)) {
		struct sonde_trace_task_type *type = type_of(ts, t->name);
		if (!type)
			return false;
		ts->n++;
		ts->n_open_at_end += t->open;
		type->n_open += t->open;
		type->n_unbegun += t->unbegun;
		type->n_regions += t->n_regions;
		type->n_logs += t->n_logs;
		type->n_goroutines += t->goroutines.n;
		if (!t->open && !t->unbegun)
			ok = sonde_trace_latency_add(
				&type->latency, (uint64_t)(t->end_ns - t->begin_ns));
		if (ts->keep) {
			if (!ok || !sonde_trace_user_tasks_push(&ts->kept, *t))
				return false;
			t->goroutines = (struct sonde_u64_vec){0};
		}
	}
	sonde_u64_vec_deinit(&t->goroutines);
	return ok;
}

static bool begin_task(struct sonde_trace_tasks_pass *ts, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct sonde_trace_user_task *t = find(ts, e->args[0]);
	if (!t)
		return false;
	t->unbegun = false;
	t->begin_ns = e->ns;
	t->begin_g = e->g;
	t->parent = e->args[1] == SONDE_TRACE_NO_ID ? 0 : e->args[1];
	t->name = sonde_trace_intern(reader, e->args[2]);
	return t->name != UINT32_MAX && add_goroutine(t, e->g);
}

static bool end_task(struct sonde_trace_tasks_pass *ts, const struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct sonde_trace_user_task *t = find(ts, e->args[0]);
	if (!t || !add_goroutine(t, e->g))
		return false;
	t->open = false;
	t->end_ns = e->ns;
	t->end_g = e->g;
	size_t n_kept = ts->kept.n;
	if (!close_task(ts, reader, t))
		return false;
	uint32_t *index = sonde_u32_map_find(&ts->by_id, e->args[0]);
	uint32_t i = *index;
	*index = OVER | (uint32_t)(ts->kept.n > n_kept ? ts->kept.n : 0);
	return sonde_u32_vec_push(&ts->free_live, i);
}

static bool keep_log(struct sonde_trace_tasks_pass *ts, const struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct sonde_trace_task_log log = {.ns = e->ns, .g = e->g};
	const char *key = sonde_trace_string(reader, e->args[1], &log.key_len);
	const char *text = sonde_trace_string(reader, e->args[2], &log.text_len);
	log.key = sonde_arena_strndup(&ts->arena, key ? key : "", log.key_len);
	log.text = sonde_arena_strndup(&ts->arena, text ? text : "", log.text_len);
	return log.key && log.text && sonde_trace_task_logs_push(&ts->logs, log);
}

/* A region or log of a task: false = out of memory. */
static bool add_work(
	struct sonde_trace_tasks_pass *ts, const struct sonde_trace_event *e, bool is_log)
{
	struct sonde_trace_user_task *t, nobody = {0};
	uint32_t *over = sonde_u32_map_find(&ts->by_id, e->args[0]);
	if (over && *over & OVER) {
		/* After its end: it counts where the task is still known. */
		ts->n_late++;
		t = *over & ~OVER ? &ts->kept.items[(*over & ~OVER) - 1] : &nobody;
	} else {
		t = find(ts, e->args[0]);
		if (!t)
			return false;
	}
	t->n_regions += !is_log;
	t->n_logs += is_log;
	return t == &nobody || add_goroutine(t, e->g);
}

bool sonde_trace_tasks_add(struct sonde_trace_tasks_pass *ts, struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	bool is_log = e->kind == SONDE_TRACE_USER_LOG;
	switch (e->kind) {
	case SONDE_TRACE_USER_TASK_BEGIN:
		return begin_task(ts, reader, e);
	case SONDE_TRACE_USER_TASK_END:
		return end_task(ts, reader, e);
	case SONDE_TRACE_USER_REGION_BEGIN:
	case SONDE_TRACE_USER_LOG: {
		if (!e->args[0] || e->args[0] == SONDE_TRACE_NO_ID) {
			ts->n_without++;
			return true;
		}
		if (!add_work(ts, e, is_log))
			return false;
		return !is_log || !ts->filter.has_id || e->args[0] != ts->filter.id ||
			keep_log(ts, reader, e);
	}
	default:
		return true;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct sonde_trace_task_type *x = a, *y = b;
	if (x->latency.sum_ns != y->latency.sum_ns)
		return x->latency.sum_ns > y->latency.sum_ns ? -1 : 1;
	return x->name < y->name ? -1 : x->name > y->name;
}

static int by_beginning(const void *a, const void *b)
{
	const struct sonde_trace_user_task *x = a, *y = b;
	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	return x->id < y->id ? -1 : x->id > y->id;
}

bool sonde_trace_tasks_finish(
	struct sonde_trace_tasks_pass *ts, const struct sonde_trace_reader *reader)
{
	sonde_map_foreach (i, &ts->by_id) {
		uint32_t index = ts->by_id.values[i];
		if (!(index & OVER) && !close_task(ts, reader, &ts->live.items[index - 1]))
			return false;
	}
	sonde_vec_sort(&ts->types, by_time);
	sonde_vec_sort(&ts->kept, by_beginning);
	return true;
}
