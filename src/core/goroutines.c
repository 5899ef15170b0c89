#include "core/goroutines.h"

#include <stdlib.h>
#include <string.h>
#include "base/map.h"

enum { MAX_CALLS = 128 };

static bool has_function(
	const struct sonde_core_session *s, const struct sonde_goroutine *g, const char *text)
{
	struct sonde_pccall calls[MAX_CALLS];
	for (size_t i = 0; i < g->n_frames; i++) {
		size_t n = sonde_go_frame_calls(
			s->go, &s->goroutines->frames.items[g->first_frame + i], calls, MAX_CALLS);
		for (size_t k = 0; k < n && k < MAX_CALLS; k++) {
			if (strstr(calls[k].function, text))
				return true;
		}
	}
	return false;
}

static bool passes(const struct sonde_core_session *s, const struct sonde_core_goroutine_filter *f,
	const struct sonde_goroutine *g)
{
	if (f->has_id && g->id != f->id)
		return false;
	if (f->state && strncmp(g->state, f->state, strlen(f->state)) &&
		(!g->wait_reason || strncmp(g->wait_reason, f->state, strlen(f->state))))
		return false;
	return !f->function || has_function(s, g, f->function);
}

struct sonde_error *sonde_core_goroutines_choose(struct sonde_core_session *s,
	const struct sonde_core_goroutine_filter *filter, struct sonde_u32_vec *ret)
{
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	for (size_t i = 0; i < s->goroutines->all.n; i++) {
		if (passes(s, filter, &s->goroutines->all.items[i]) &&
			!sonde_u32_vec_push(ret, (uint32_t)i))
			return &sonde_enomem;
	}
	return NULL;
}

/* --- grouping: sort by what makes goroutines equal, then cut into runs --- */

struct keyed {
	const struct sonde_goroutine *g;
	const struct sonde_go_frame *frames;
	uint64_t hash;
	uint32_t index;
};

static uint64_t mix(uint64_t h, uint64_t v)
{
	return sonde_hash_u64(h * 31 + v);
}

static uint64_t hash_of(const struct sonde_goroutine *g, const struct sonde_go_frame *frames)
{
	uint64_t h = mix(g->status, g->created_by_pc);
	h = mix(h, (uintptr_t)g->wait_reason);
	h = mix(h, g->foreign_hash);
	for (size_t i = 0; i < g->n_frames; i++)
		h = mix(h, frames[i].pc);
	return h;
}

static int compare_texts(const char *a, const char *b)
{
	if (!a || !b)
		return !!a - !!b;
	return strcmp(a, b);
}

/* A total order in which equal stacks are neighbours, and members ascend by id. */
static int compare_stacks(const struct keyed *a, const struct keyed *b)
{
	if (a->hash != b->hash)
		return a->hash < b->hash ? -1 : 1;
	if (a->g->status != b->g->status)
		return a->g->status < b->g->status ? -1 : 1;
	if (a->g->n_frames != b->g->n_frames)
		return a->g->n_frames < b->g->n_frames ? -1 : 1;
	if (a->g->created_by_pc != b->g->created_by_pc)
		return a->g->created_by_pc < b->g->created_by_pc ? -1 : 1;
	if (a->g->wait_reason != b->g->wait_reason)
		return (uintptr_t)a->g->wait_reason < (uintptr_t)b->g->wait_reason ? -1 : 1;
	if (a->g->foreign_hash != b->g->foreign_hash)
		return a->g->foreign_hash < b->g->foreign_hash ? -1 : 1;
	for (size_t i = 0; i < a->g->n_frames; i++) {
		if (a->frames[i].pc != b->frames[i].pc)
			return a->frames[i].pc < b->frames[i].pc ? -1 : 1;
	}
	/* What is missing from a stack is part of what is shown. */
	int c = compare_texts(a->g->cut, b->g->cut);
	if (!c && a->g->gap.before != b->g->gap.before)
		c = a->g->gap.before < b->g->gap.before ? -1 : 1;
	return c ? c : compare_texts(a->g->gap.text, b->g->gap.text);
}

static int compare_members(const void *x, const void *y)
{
	const struct keyed *a = x, *b = y;
	int c = compare_stacks(a, b);
	if (c)
		return c;
	return a->g->id < b->g->id ? -1 : a->g->id > b->g->id;
}

struct sized_group {
	struct sonde_core_goroutine_group group;
	uint64_t first_id;
};

static int compare_groups(const void *x, const void *y)
{
	const struct sized_group *a = x, *b = y;
	if (a->group.n != b->group.n)
		return a->group.n > b->group.n ? -1 : 1;
	return a->first_id < b->first_id ? -1 : a->first_id > b->first_id;
}

struct sonde_error *sonde_core_goroutines_group(struct sonde_core_session *s,
	const struct sonde_u32_vec *chosen, struct sonde_core_goroutine_groups *ret)
{
	size_t n = chosen->n, n_groups = 0;
	sonde_cleanup(free) struct keyed *keyed = sonde_new_array(struct keyed, n);
	sonde_cleanup(free) struct sized_group *sized = sonde_new_array(struct sized_group, n);
	sonde_cleanup(sonde_core_goroutine_groups) struct sonde_core_goroutine_groups groups = {0};
	if (!keyed || !sized || !sonde_u32_vec_reserve(&groups.members, n) ||
		!sonde_core_goroutine_group_vec_reserve(&groups.groups, n))
		return &sonde_enomem;
	for (size_t i = 0; i < n; i++) {
		const struct sonde_goroutine *g = &s->goroutines->all.items[chosen->items[i]];
		const struct sonde_go_frame *frames = sonde_goroutine_frames(s->goroutines, g);
		keyed[i] = (struct keyed){g, frames, hash_of(g, frames), chosen->items[i]};
	}
	qsort(keyed, n, sizeof(*keyed), compare_members);
	for (size_t i = 0; i < n; i++) {
		if (i == 0 || compare_stacks(&keyed[i - 1], &keyed[i]))
			sized[n_groups++] = (struct sized_group){{(uint32_t)i, 0}, keyed[i].g->id};
		sized[n_groups - 1].group.n++;
	}
	qsort(sized, n_groups, sizeof(*sized), compare_groups);
	for (size_t i = 0; i < n_groups; i++) {
		struct sonde_core_goroutine_group group = {
			(uint32_t)groups.members.n, sized[i].group.n};
		for (uint32_t k = 0; k < group.n; k++)
			sonde_u32_vec_push(&groups.members, keyed[sized[i].group.first + k].index);
		sonde_core_goroutine_group_vec_push(&groups.groups, group);
	}
	*ret = groups;
	groups = (struct sonde_core_goroutine_groups){0};
	return NULL;
}

void sonde_core_goroutine_groups_deinit(struct sonde_core_goroutine_groups *g)
{
	sonde_u32_vec_deinit(&g->members);
	sonde_core_goroutine_group_vec_deinit(&g->groups);
}
