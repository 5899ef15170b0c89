#include "core/referrers.h"

#include "core/paths.h"
#include "core/scan.h"

struct search {
	const struct sonde_go_heap *heap;
	uint64_t start, end; /* of the target's slot */
	uint32_t from;
	size_t max;
	struct sonde_core_referrers *found;
	bool no_memory;
};

static void keep(struct search *w, struct sonde_core_referrer r)
{
	if (w->found->all.n < w->max && !sonde_core_referrer_vec_push(&w->found->all, r))
		w->no_memory = true;
}

static void root_visit(void *ctx, const struct sonde_go_root *root)
{
	struct search *w = ctx;
	if (root->value < w->start || root->value >= w->end)
		return;
	w->found->n_roots++;
	keep(w,
		(struct sonde_core_referrer){
			.is_root = true, .root = *root, .to = root->value - w->start});
}

static void pointer_visit(void *ctx, uint64_t offset, uint64_t value)
{
	struct search *w = ctx;
	if (sonde_likely(value - w->start >= w->end - w->start))
		return;
	w->found->n_pointers++;
	keep(w,
		(struct sonde_core_referrer){
			.object = w->from, .offset = offset, .to = value - w->start});
}

static void scan_span(struct search *w, struct sonde_core_scanner *sc,
	const struct sonde_core_marks *marks, const struct sonde_go_span *span)
{
	for (uint32_t slot = 0; slot < span->n_slots; slot++) {
		if (!sonde_core_marks_has(marks, span->first + slot))
			continue;
		uint64_t from = 0;
		w->from = span->first + slot;
		do
			from = sonde_core_scan(sc, span, slot, from, pointer_visit, w);
		while (from < span->slot_bytes);
	}
}

struct sonde_error *sonde_core_referrers_find(
	struct sonde_core_session *s, uint32_t target, size_t max, struct sonde_core_referrers *ret)
{
	SONDE_TRY(sonde_core_session_need_marks(s));
	const struct sonde_go_span *span = sonde_go_heap_span_of(s->heap, target);
	sonde_cleanup(sonde_core_referrers) struct sonde_core_referrers found = {0};
	struct search w = {.heap = s->heap, .max = max, .found = &found};
	w.start = sonde_go_span_addr(span, target - span->first);
	w.end = w.start + span->slot_bytes;
	struct sonde_core_scanner sc;
	sonde_core_scanner_init(&sc, s->heap);
	struct sonde_error *err =
		sonde_go_roots_visit(s->go, s->goroutines, &sc.masks, root_visit, &w);
	for (uint32_t i = 0; !err && i < s->heap->n_spans; i++) {
		if (s->heap->spans[i].pointers != SONDE_GO_NOSCAN)
			scan_span(&w, &sc, s->marks, &s->heap->spans[i]);
		if (!(i & 1023) && !sonde_log_progress(s->log, "searching", i, s->heap->n_spans))
			err = sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	}
	sonde_core_scanner_deinit(&sc);
	SONDE_TRY(err);
	for (size_t i = 0; i < s->heap->specials.n; i++) {
		const struct sonde_go_special *special = &s->heap->specials.items[i];
		w.from = special->object;
		for (size_t k = 0; k < SONDE_ARRAY_LEN(special->words) &&
			sonde_core_marks_has(s->marks, special->object);
			k++)
			pointer_visit(&w, SONDE_CORE_BY_SPECIAL, special->words[k]);
	}
	if (w.no_memory)
		return &sonde_enomem;
	*ret = found;
	found = (struct sonde_core_referrers){0};
	return NULL;
}
