#include "core/retained.h"

#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "core/dominators.h"
#include "core/scan.h"

enum { NO_VERTEX = UINT32_MAX };

/* An object or owner on its way: found from `parent`, not yet numbered. */
struct pending {
	uint32_t what, parent;
};
SONDE_DEFINE_VEC(pending_vec, struct pending)

struct owned {
	uint32_t owner, object;
};
SONDE_DEFINE_VEC(owned_vec, struct owned)

struct builder {
	struct sonde_core_session *s;
	const struct sonde_go_heap *heap;
	struct sonde_core_retained *r;
	uint32_t *number; /* by what: vertex, NO_VERTEX = not yet */
	uint32_t *parent; /* by vertex */
	uint32_t cap; /* vertices that there is room for */
	struct pending_vec stack;
	struct sonde_core_edges edges;
	struct owned_vec owned; /* roots, by owner */
	struct sonde_u32_map owner_of; /* (kind << 32 | index) -> owner */
	uint32_t from; /* the vertex that is being scanned */
	bool no_memory;
};

/* --- roots --- */

static uint32_t owner_of(struct builder *b, const struct sonde_go_root *root)
{
	struct sonde_core_owner owner = {SONDE_CORE_OWNER_QUEUE, 0, NO_VERTEX};
	if (root->kind == SONDE_GO_ROOT_DATA)
		owner = (struct sonde_core_owner){SONDE_CORE_OWNER_GLOBAL,
			sonde_go_types_global_at(b->s->types, root->addr), NO_VERTEX};
	else if (root->goroutine != UINT32_MAX)
		owner = (struct sonde_core_owner){
			SONDE_CORE_OWNER_GOROUTINE, root->goroutine, NO_VERTEX};
	bool was_new;
	uint32_t *slot =
		sonde_u32_map_put(&b->owner_of, (uint64_t)owner.kind << 32 | owner.index, &was_new);
	if (slot && was_new) {
		*slot = (uint32_t)b->r->owners.n;
		if (!sonde_core_owner_vec_push(&b->r->owners, owner))
			slot = NULL;
	}
	if (!slot)
		b->no_memory = true;
	return slot ? *slot : 0;
}

static void add_root(void *ctx, const struct sonde_go_root *root)
{
	struct builder *b = ctx;
	struct sonde_go_span *s;
	uint32_t slot;
	if (!sonde_go_heap_find(b->heap, root->value, &s, &slot) ||
		(root->conservative && !sonde_go_span_allocated(s, slot)))
		return;
	struct owned o = {owner_of(b, root), s->first + slot};
	if (!owned_vec_push(&b->owned, o))
		b->no_memory = true;
}

static int by_owner(const void *x, const void *y)
{
	const struct owned *a = x, *b = y;
	if (a->owner != b->owner)
		return a->owner < b->owner ? -1 : 1;
	return a->object < b->object ? -1 : a->object > b->object;
}

/* --- depth first --- */

static void edge(struct builder *b, uint32_t what)
{
	uint32_t to = b->number[what];
	if (to == NO_VERTEX) {
		if (!pending_vec_push(&b->stack, (struct pending){what, b->from}))
			b->no_memory = true;
		return;
	}
	/* Not of the tree. An edge to itself or from the parent again says nothing new. */
	if (to != b->from && b->parent[to] != b->from &&
		!sonde_core_edges_push(&b->edges, (struct sonde_core_edge){to, b->from}))
		b->no_memory = true;
}

static void edge_of_scan(void *ctx, uint64_t offset, uint64_t value)
{
	struct builder *b = ctx;
	struct sonde_go_span *s;
	uint32_t slot;
	(void)offset;
	if (sonde_go_heap_find(b->heap, value, &s, &slot))
		edge(b, s->first + slot);
}

static void scan_object(struct builder *b, struct sonde_core_scanner *sc, uint32_t object)
{
	const struct sonde_go_span *s = sonde_go_heap_span_of(b->heap, object);
	uint64_t from = 0;
	do
		from = sonde_core_scan(sc, s, object - s->first, from, edge_of_scan, b);
	while (from < s->slot_bytes);
	for (size_t i = s->specials; i && i - 1 < b->heap->specials.n; i++) {
		const struct sonde_go_special *special = &b->heap->specials.items[i - 1];
		if (special->object >= s->first + s->n_slots)
			break;
		for (size_t k = 0; special->object == object && k < SONDE_ARRAY_LEN(special->words);
			k++)
			edge_of_scan(b, 0, special->words[k]);
	}
}

static void scan_owner(struct builder *b, uint32_t owner)
{
	b->r->owners.items[owner].vertex = b->from;
	size_t low = 0, high = b->owned.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (b->owned.items[middle].owner < owner)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < b->owned.n && b->owned.items[low].owner == owner; low++)
		edge(b, b->owned.items[low].object);
}

/* Number what was found last first, and only then look what it leads to: a depth-first order. */
static struct sonde_error *number_all(struct builder *b)
{
	struct sonde_core_scanner sc;
	sonde_core_scanner_init(&sc, b->heap);
	b->from = 0;
	b->r->n = 1;
	for (uint32_t i = (uint32_t)b->r->owners.n; i-- > 0;)
		edge(b, b->r->n_slots + i);
	struct sonde_error *err = NULL;
	while (b->stack.n && !b->no_memory && !err) {
		struct pending p = b->stack.items[--b->stack.n];
		b->from = p.parent;
		if (b->number[p.what] != NO_VERTEX) {
			edge(b, p.what);
			continue;
		}
		if (b->r->n == b->cap) {
			err = sonde_error_new(
				SONDE_BAD_DATA, "more objects are reachable than are marked");
			break;
		}
		uint32_t v = b->r->n++;
		b->number[p.what] = v;
		b->r->what[v] = p.what;
		b->parent[v] = p.parent;
		b->from = v;
		if (p.what >= b->r->n_slots)
			scan_owner(b, p.what - b->r->n_slots);
		else
			scan_object(b, &sc, p.what);
	}
	sonde_core_scanner_deinit(&sc);
	return err ? err : b->no_memory ? &sonde_enomem : NULL;
}

/* Each vertex' bytes go to its dominator, the deepest first: children have larger numbers. */
static void sum_up(struct builder *b)
{
	struct sonde_core_retained *r = b->r;
	for (uint32_t v = 1; v < r->n; v++) {
		if (r->what[v] >= r->n_slots)
			continue;
		r->bytes[v] = sonde_go_heap_span_of(b->heap, r->what[v])->slot_bytes;
	}
	for (uint32_t v = r->n; v-- > 1;)
		r->bytes[r->idom[v]] += r->bytes[v];
}

static struct sonde_error *build(struct builder *b)
{
	struct sonde_core_retained *r = b->r;
	struct sonde_go_masks masks;
	sonde_go_masks_init(&masks, b->s->go);
	struct sonde_error *err =
		sonde_go_roots_visit(b->s->go, b->s->goroutines, &masks, add_root, b);
	sonde_go_masks_deinit(&masks);
	SONDE_TRY(err);
	if (b->no_memory)
		return &sonde_enomem;
	sonde_vec_sort(&b->owned, by_owner);
	uint64_t cap = b->s->marks->n_live + r->owners.n + 1;
	if (cap >= NO_VERTEX || (uint64_t)r->n_slots + r->owners.n >= NO_VERTEX)
		return sonde_error_new(SONDE_UNSUPPORTED, "more than 2^32 objects");
	b->cap = (uint32_t)cap;
	size_t n_number = (size_t)r->n_slots + r->owners.n;
	b->number = sonde_new_array(uint32_t, n_number);
	b->parent = sonde_new_array(uint32_t, cap);
	r->what = sonde_new_array(uint32_t, cap);
	if (!b->number || !b->parent || !r->what)
		return &sonde_enomem;
	memset(b->number, 0xff, n_number * sizeof(uint32_t)); /* NO_VERTEX */
	SONDE_TRY(number_all(b));
	free(sonde_take(b->number));
	pending_vec_deinit(&b->stack);
	r->idom = sonde_new_array(uint32_t, r->n);
	size_t n_scratch = 2 * (size_t)r->n;
	sonde_cleanup(free) uint32_t *scratch = sonde_new_array(uint32_t, n_scratch);
	if (!r->idom || !scratch)
		return &sonde_enomem;
	sonde_core_dominators(b->parent, r->n, &b->edges, r->idom, scratch);
	free(sonde_take(b->parent));
	free(sonde_take(scratch));
	r->bytes = sonde_new_array(uint64_t, r->n);
	if (!r->bytes)
		return &sonde_enomem;
	sum_up(b);
	return NULL;
}

struct sonde_error *sonde_core_retained_make(
	struct sonde_core_session *s, struct sonde_core_retained **ret)
{
	SONDE_TRY(sonde_core_session_need_marks(s));
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	SONDE_TRY(sonde_core_session_need_types(s));
	sonde_cleanup(sonde_core_retained) struct sonde_core_retained *r =
		sonde_new(struct sonde_core_retained);
	if (!r)
		return &sonde_enomem;
	r->n_slots = s->heap->n_slots;
	if (!sonde_log_progress(s->log, "retained sizes", 0, s->marks->n_live))
		return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	struct builder b = {.s = s, .heap = s->heap, .r = r};
	struct sonde_error *err = build(&b);
	free(b.number);
	free(b.parent);
	pending_vec_deinit(&b.stack);
	sonde_core_edges_deinit(&b.edges);
	owned_vec_deinit(&b.owned);
	sonde_u32_map_deinit(&b.owner_of);
	SONDE_TRY(err);
	*ret = sonde_take(r);
	return NULL;
}

void sonde_core_retained_free(struct sonde_core_retained *r)
{
	if (!r)
		return;
	free(r->what);
	free(r->idom);
	free(r->bytes);
	sonde_core_owner_vec_deinit(&r->owners);
	free(r);
}
