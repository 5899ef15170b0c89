#include "core/paths.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "core/scan.h"

/* What led to an object first: another object, or (bit 31) a root; 0 = not reached. */
enum { PARENT_ROOT = 1u << 31 };

SONDE_DEFINE_VEC(root_vec, struct sonde_go_root)

struct referrer {
	uint32_t object; /* PARENT_ROOT | index of a root, or number + 1 */
	uint64_t offset;
};
SONDE_DEFINE_VEC(referrer_vec, struct referrer)

struct searcher {
	const struct sonde_go_heap *heap;
	uint32_t target;
	size_t max_paths;
	uint32_t *parent; /* by object: PARENT_ROOT | root index, or parent's number + 1 */
	struct sonde_u32_vec front, next;
	struct root_vec roots;
	struct referrer_vec referrers; /* the first max_paths */
	uint64_t n_referrers;
	uint32_t from; /* the parent value of what is being scanned */
	bool no_memory;
};

static bool find_object(const struct sonde_go_heap *h, uint64_t value, uint32_t *object)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!sonde_go_heap_find(h, value, &s, &slot))
		return false;
	*object = s->first + slot;
	return true;
}

/* An edge from w->from to the object that value points into. */
static void edge(struct searcher *w, uint64_t offset, uint64_t value)
{
	uint32_t object;
	if (!find_object(w->heap, value, &object))
		return;
	if (object == w->target) {
		w->n_referrers++;
		/* Each referrer once, however many pointers it has. */
		struct referrer *last =
			w->referrers.n ? &w->referrers.items[w->referrers.n - 1] : NULL;
		if (w->referrers.n < w->max_paths && !(last && last->object == w->from) &&
			!referrer_vec_push(&w->referrers, (struct referrer){w->from, offset}))
			w->no_memory = true;
	}
	if (w->parent[object])
		return;
	w->parent[object] = w->from;
	if (!sonde_u32_vec_push(&w->next, object))
		w->no_memory = true;
}

static void edge_of_scan(void *ctx, uint64_t offset, uint64_t value)
{
	edge(ctx, offset, value);
}

static void edge_of_root(void *ctx, const struct sonde_go_root *root)
{
	struct searcher *w = ctx;
	struct sonde_go_span *s;
	uint32_t slot;
	if (!sonde_go_heap_find(w->heap, root->value, &s, &slot) ||
		(root->conservative && !sonde_go_span_allocated(s, slot)))
		return;
	/* Only roots that are the first to reach something, or that reach the target, are kept. */
	uint32_t object = s->first + slot;
	if (w->parent[object] && object != w->target)
		return;
	if (w->roots.n >= PARENT_ROOT || !root_vec_push(&w->roots, *root)) {
		w->no_memory = true;
		return;
	}
	w->from = PARENT_ROOT | (uint32_t)(w->roots.n - 1);
	edge(w, 0, root->value);
}

static void scan_object(struct searcher *w, struct sonde_core_scanner *sc, uint32_t object)
{
	const struct sonde_go_span *s = sonde_go_heap_span_of(w->heap, object);
	uint64_t from = 0;
	w->from = object + 1;
	do
		from = sonde_core_scan(sc, s, object - s->first, from, edge_of_scan, w);
	while (from < s->slot_bytes);
	/* What hangs on it. Lists of a span are sorted by object. */
	for (size_t i = s->specials; i && i - 1 < w->heap->specials.n; i++) {
		const struct sonde_go_special *special = &w->heap->specials.items[i - 1];
		if (special->object >= s->first + s->n_slots)
			break;
		for (size_t k = 0; special->object == object && k < SONDE_ARRAY_LEN(special->words);
			k++)
			edge(w, SONDE_CORE_BY_SPECIAL, special->words[k]);
	}
}

/* One level of distance from the roots after the other: so the first parent lies on a shortest path. */
static struct sonde_error *search(struct searcher *w, struct sonde_core_session *s)
{
	struct sonde_core_scanner sc;
	sonde_core_scanner_init(&sc, w->heap);
	struct sonde_error *err =
		sonde_go_roots_visit(s->go, s->goroutines, &sc.masks, edge_of_root, w);
	uint64_t done = 0;
	while (!err && !w->no_memory && w->next.n) {
		struct sonde_u32_vec t = w->front;
		w->front = w->next;
		w->next = t;
		w->next.n = 0;
		for (size_t i = 0; i < w->front.n && !w->no_memory; i++)
			scan_object(w, &sc, w->front.items[i]);
		done += w->front.n;
		if (!sonde_log_progress(s->log, "searching", done, s->heap->n_allocated))
			err = sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	}
	sonde_core_scanner_deinit(&sc);
	return err ? err : w->no_memory ? &sonde_enomem : NULL;
}

struct finder {
	const struct searcher *w;
	uint32_t child;
	uint64_t offset;
	bool found;
};

static void match(void *ctx, uint64_t offset, uint64_t value)
{
	struct finder *f = ctx;
	uint32_t object;
	if (!f->found && find_object(f->w->heap, value, &object) && object == f->child) {
		f->found = true;
		f->offset = offset;
	}
}

/* Where in `object` the pointer to child stands. */
static uint64_t offset_of(
	const struct searcher *w, struct sonde_core_scanner *sc, uint32_t object, uint32_t child)
{
	const struct sonde_go_span *s = sonde_go_heap_span_of(w->heap, object);
	struct finder f = {.w = w, .child = child};
	uint64_t from = 0;
	do
		from = sonde_core_scan(sc, s, object - s->first, from, match, &f);
	while (from < s->slot_bytes && !f.found);
	return f.found ? f.offset : SONDE_CORE_BY_SPECIAL;
}

static struct sonde_error *keep_path(const struct searcher *w, struct sonde_core_scanner *sc,
	const struct referrer *r, struct sonde_core_paths *to)
{
	struct sonde_core_path path = {.first = to->steps.n};
	uint32_t at = r->object, child = w->target;
	uint64_t offset = r->offset;
	/* From the target outwards; parents lead to ever smaller distances, so this ends. */
	while (!(at & PARENT_ROOT)) {
		if (!sonde_core_steps_push(&to->steps, (struct sonde_core_step){at - 1, offset}))
			return &sonde_enomem;
		child = at - 1;
		at = w->parent[child];
		if (!(at & PARENT_ROOT))
			offset = offset_of(w, sc, at - 1, child);
	}
	path.root = w->roots.items[at & ~PARENT_ROOT];
	path.n_steps = to->steps.n - path.first;
	for (size_t i = 0; i < path.n_steps / 2; i++) {
		struct sonde_core_step *a = &to->steps.items[path.first + i];
		struct sonde_core_step *b = &to->steps.items[path.first + path.n_steps - 1 - i],
				       t = *a;
		*a = *b;
		*b = t;
	}
	return sonde_core_path_vec_push(&to->all, path) ? NULL : &sonde_enomem;
}

static struct sonde_error *find_paths(
	struct searcher *w, struct sonde_core_session *s, struct sonde_core_paths *to)
{
	SONDE_TRY(search(w, s));
	to->target = w->target;
	to->n_referrers = w->n_referrers;
	struct sonde_core_scanner sc;
	sonde_core_scanner_init(&sc, w->heap);
	struct sonde_error *err = NULL;
	for (size_t i = 0; !err && i < w->referrers.n; i++)
		err = keep_path(w, &sc, &w->referrers.items[i], to);
	sonde_core_scanner_deinit(&sc);
	return err;
}

struct sonde_error *sonde_core_paths_find(
	struct sonde_core_session *s, uint64_t addr, size_t max_paths, struct sonde_core_paths *ret)
{
	SONDE_TRY(sonde_core_session_need_heap(s));
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	struct searcher w = {.heap = s->heap, .max_paths = max_paths};
	struct sonde_go_span *span;
	uint32_t slot;
	if (!sonde_go_heap_find(s->heap, addr, &span, &slot))
		return sonde_error_new(
			SONDE_NOT_FOUND, "0x%" PRIx64 " is in no slot of the heap", addr);
	if (!sonde_go_span_allocated(span, slot))
		return sonde_error_new(
			SONDE_NOT_FOUND, "0x%" PRIx64 " is in a free slot of the heap", addr);
	w.target = span->first + slot;
	if (s->heap->n_slots >= PARENT_ROOT)
		return sonde_error_new(SONDE_UNSUPPORTED, "more than 2^31 heap slots");
	w.parent = sonde_new_array(uint32_t, s->heap->n_slots);
	sonde_cleanup(sonde_core_paths) struct sonde_core_paths paths = {0};
	struct sonde_error *err = w.parent ? find_paths(&w, s, &paths) : &sonde_enomem;
	free(w.parent);
	sonde_u32_vec_deinit(&w.front);
	sonde_u32_vec_deinit(&w.next);
	root_vec_deinit(&w.roots);
	referrer_vec_deinit(&w.referrers);
	SONDE_TRY(err);
	if (!paths.all.n)
		return sonde_error_new(SONDE_NOT_FOUND,
			"nothing alive refers to 0x%" PRIx64
			": it is garbage, or kept for a finalizer only",
			addr);
	*ret = paths;
	paths = (struct sonde_core_paths){0};
	return NULL;
}

void sonde_core_paths_deinit(struct sonde_core_paths *p)
{
	sonde_core_path_vec_deinit(&p->all);
	sonde_core_steps_deinit(&p->steps);
}
