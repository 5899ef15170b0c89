#include "core/ownerpaths.h"

#include <stdlib.h>
#include "base/map.h"

enum {
	MAX_NODES = 1 << 20,
	MAX_DEPTH = 100, /* of a way; pprof draws no more */
	FOLD_BACK = 8, /* how far up a type is looked for */
};

void sonde_core_owner_paths_deinit(struct sonde_core_owner_paths *p)
{
	sonde_core_owner_nodes_deinit(&p->nodes);
}

/* The node of `what` below node `at`; `at` itself where there is no room. UINT32_MAX: out of memory. */
static uint32_t child_of(struct sonde_core_owner_paths *p, struct sonde_u32_map *children,
	uint32_t at, uint32_t what, uint32_t owner)
{
	uint32_t up = at;
	for (int i = 0; what != SONDE_CORE_OWNER_IS_ROOT && i < FOLD_BACK && up; i++) {
		if (p->nodes.items[up].what == what)
			return up;
		up = p->nodes.items[up].parent;
	}
	bool is_root = what == SONDE_CORE_OWNER_IS_ROOT, was_new;
	if (!is_root && (p->nodes.n >= MAX_NODES || p->nodes.items[at].depth >= MAX_DEPTH))
		return at;
	struct sonde_core_owner_node node = {
		.parent = at, .what = what, .owner = owner, .depth = p->nodes.items[at].depth + 1};
	uint32_t number = (uint32_t)p->nodes.n;
	if (!is_root) {
		uint32_t *slot = sonde_u32_map_put(children, (uint64_t)at << 32 | what, &was_new);
		if (!slot)
			return UINT32_MAX;
		if (!was_new)
			return *slot;
		*slot = number;
	}
	return sonde_core_owner_nodes_push(&p->nodes, node) ? number : UINT32_MAX;
}

static struct sonde_error *fill(struct sonde_core_session *s, const struct sonde_core_retained *r,
	struct sonde_u32_map *children, struct sonde_core_owner_paths *p)
{
	sonde_cleanup(free) uint32_t *node = sonde_new_array(uint32_t, r->n);
	if (!node || !sonde_core_owner_nodes_add(&p->nodes))
		return &sonde_enomem;
	/* A dominator has a smaller number: its node is known. */
	for (uint32_t v = 1; v < r->n; v++) {
		bool is_owner = r->what[v] >= r->n_slots;
		uint32_t at = node[r->idom[v]];
		uint32_t what = is_owner ? SONDE_CORE_OWNER_IS_ROOT : s->typing->of[r->what[v]];
		uint32_t to =
			child_of(p, children, at, what, is_owner ? r->what[v] - r->n_slots : 0);
		if (to == UINT32_MAX)
			return &sonde_enomem;
		node[v] = to;
		if (is_owner)
			continue;
		uint64_t bytes = sonde_go_heap_span_of(s->heap, r->what[v])->slot_bytes;
		p->nodes.items[to].n_objects++;
		p->nodes.items[to].bytes += bytes;
		if (r->bytes[v] > r->bytes[p->nodes.items[to].vertex] || !p->nodes.items[to].vertex)
			p->nodes.items[to].vertex = v;
		if (p->nodes.items[to].what != what) {
			p->n_cut++;
			p->cut_bytes += bytes;
		}
	}
	return NULL;
}

static struct sonde_error *fill_types(struct sonde_core_session *s, struct sonde_u32_map *children,
	struct sonde_core_owner_paths *p)
{
	if (!sonde_core_owner_nodes_add(&p->nodes))
		return &sonde_enomem;
	for (uint32_t i = 0; i < s->heap->n_spans; i++) {
		const struct sonde_go_span *span = &s->heap->spans[i];
		for (uint32_t slot = 0; slot < span->n_slots; slot++) {
			uint32_t object = span->first + slot;
			if (!sonde_core_marks_has(s->marks, object))
				continue;
			uint32_t to = child_of(p, children, 0, s->typing->of[object], 0);
			if (to == UINT32_MAX)
				return &sonde_enomem;
			p->nodes.items[to].n_objects++;
			p->nodes.items[to].bytes += span->slot_bytes;
		}
	}
	return NULL;
}

struct sonde_error *sonde_core_owner_paths_make(struct sonde_core_session *s,
	const struct sonde_core_retained *r, struct sonde_core_owner_paths *ret)
{
	sonde_cleanup(sonde_core_owner_paths) struct sonde_core_owner_paths p = {0};
	struct sonde_u32_map children = {0};
	struct sonde_error *err = r ? fill(s, r, &children, &p) : fill_types(s, &children, &p);
	sonde_u32_map_deinit(&children);
	SONDE_TRY(err);
	*ret = p;
	p = (struct sonde_core_owner_paths){0};
	return NULL;
}
