#include "core/leaks.h"

#include <stdlib.h>
#include <string.h>
#include "base/cycle.h"
#include "core/scan.h"
#include "golang/roots.h"

/* A waiting goroutine and an object: a channel that it waits for, or one that its stack leads to. */
struct link {
	uint32_t object, goroutine;
};
SONDE_DEFINE_VEC(links, struct link)

struct finder {
	struct sonde_core_session *s;
	const struct sonde_go_heap *heap;
	bool *asleep; /* by goroutine: waits for channels, none of which is reached so far */
	uint64_t *reached; /* by object */
	uint64_t *watched; /* by object: a channel or runtime.g of `asleep` */
	struct links channels, records; /* by object */
	struct links held; /* by goroutine */
	struct sonde_u32_vec stack;
	uint64_t n_objects, bytes;
	bool no_memory;
};

static bool test(const uint64_t *bits, uint32_t i)
{
	return bits[i >> 6] >> (i & 63) & 1;
}

static void set(uint64_t *bits, uint32_t i)
{
	bits[i >> 6] |= UINT64_C(1) << (i & 63);
}

static bool find_object(const struct sonde_go_heap *h, uint64_t addr, uint32_t *object)
{
	struct sonde_go_span *span;
	uint32_t slot;
	if (!sonde_go_heap_find(h, addr, &span, &slot))
		return false;
	*object = span->first + slot;
	return true;
}

static bool starts_with(const char *s, const char *start)
{
	return s && !strncmp(s, start, strlen(start));
}

/* Waits for channels only, all of them known. */
static void watch(struct finder *f, uint32_t index)
{
	const struct sonde_goroutine *g = &f->s->goroutines->all.items[index];
	const struct sonde_go_layout *l = &f->s->go->layout;
	if (g->system || !g->wait_reason || g->cut || g->scanned ||
		(!starts_with(g->wait_reason, "chan receive") &&
			!starts_with(g->wait_reason, "chan send") &&
			!starts_with(g->wait_reason, "select")))
		return;
	uint64_t sudog, channel;
	uint32_t object, record;
	size_t first = f->channels.n;
	if (!sonde_go_read(f->s->go, g->addr, l->g_waiting_on, &sudog) ||
		!find_object(f->heap, g->addr, &record))
		return;
	/* Waiting for nothing: a nil channel or a select without cases. The runtime says so in the reason. */
	if (!sudog && !strstr(g->wait_reason, "nil chan") && !strstr(g->wait_reason, "no cases"))
		return;
	struct sonde_cycle c = sonde_cycle_from(sudog);
	while (sudog) {
		if (!sonde_go_read(f->s->go, sudog, l->sudog_c, &channel) ||
			!find_object(f->heap, channel, &object) ||
			!sonde_go_read(f->s->go, sudog, l->sudog_waitlink, &sudog) ||
			(sudog && sonde_cycle_closed(&c, sudog))) {
			f->channels.n = first;
			return;
		}
		if (!links_push(&f->channels, (struct link){object, index}))
			f->no_memory = true;
	}
	if (!links_push(&f->records, (struct link){record, index}))
		f->no_memory = true;
	f->asleep[index] = true;
}

static int by_object(const void *x, const void *y)
{
	const struct link *a = x, *b = y;
	if (a->object != b->object)
		return a->object < b->object ? -1 : 1;
	return a->goroutine < b->goroutine ? -1 : a->goroutine > b->goroutine;
}

static int by_goroutine(const void *x, const void *y)
{
	const struct link *a = x, *b = y;
	if (a->goroutine != b->goroutine)
		return a->goroutine < b->goroutine ? -1 : 1;
	return a->object < b->object ? -1 : a->object > b->object;
}

static void reach(struct finder *f, uint32_t object)
{
	if (test(f->reached, object))
		return;
	set(f->reached, object);
	if (!sonde_u32_vec_push(&f->stack, object))
		f->no_memory = true;
}

static void reach_value(void *ctx, uint64_t offset, uint64_t value)
{
	struct finder *f = ctx;
	uint32_t object;
	(void)offset;
	if (find_object(f->heap, value, &object))
		reach(f, object);
}

static void reach_root(void *ctx, const struct sonde_go_root *root)
{
	struct finder *f = ctx;
	struct sonde_go_span *span;
	uint32_t slot;
	if (!sonde_go_heap_find(f->heap, root->value, &span, &slot) ||
		(root->conservative && !sonde_go_span_allocated(span, slot)))
		return;
	if (root->goroutine == UINT32_MAX || !f->asleep[root->goroutine])
		reach(f, span->first + slot);
	else if (!links_push(&f->held, (struct link){span->first + slot, root->goroutine}))
		f->no_memory = true;
}

/* The first link of `all`, sorted by object, with that object. */
static size_t first_of(const struct links *all, uint32_t object)
{
	size_t low = 0, high = all->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (all->items[middle].object < object)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Something could wake it: its stack counts, and so does its record. */
static void wake(struct finder *f, uint32_t goroutine)
{
	if (!f->asleep[goroutine])
		return;
	f->asleep[goroutine] = false;
	size_t low = 0, high = f->held.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (f->held.items[middle].goroutine < goroutine)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < f->held.n && f->held.items[low].goroutine == goroutine; low++)
		reach(f, f->held.items[low].object);
	uint32_t record;
	/* Passed over when it was reached: now what it leads to counts. */
	if (find_object(f->heap, f->s->goroutines->all.items[goroutine].addr, &record) &&
		test(f->reached, record) && !sonde_u32_vec_push(&f->stack, record))
		f->no_memory = true;
}

/* false: a runtime.g of a goroutine that sleeps: all of them hang on runtime.allgs, which wakes nobody. */
static bool visit_watched(struct finder *f, uint32_t object)
{
	for (size_t i = first_of(&f->channels, object);
		i < f->channels.n && f->channels.items[i].object == object; i++)
		wake(f, f->channels.items[i].goroutine);
	size_t i = first_of(&f->records, object);
	return i == f->records.n || f->records.items[i].object != object ||
		!f->asleep[f->records.items[i].goroutine];
}

static void scan(struct finder *f, struct sonde_core_scanner *sc, uint32_t object)
{
	const struct sonde_go_span *span = sonde_go_heap_span_of(f->heap, object);
	if (test(f->watched, object) && !visit_watched(f, object))
		return;
	uint64_t from = 0;
	do
		from = sonde_core_scan(sc, span, object - span->first, from, reach_value, f);
	while (from < span->slot_bytes);
	for (size_t i = span->specials; i && i - 1 < f->heap->specials.n; i++) {
		const struct sonde_go_special *special = &f->heap->specials.items[i - 1];
		if (special->object >= span->first + span->n_slots)
			break;
		for (size_t k = 0; special->object == object && k < SONDE_ARRAY_LEN(special->words);
			k++)
			reach_value(f, 0, special->words[k]);
	}
}

static struct sonde_error *find(struct finder *f)
{
	const struct sonde_goroutines *gs = f->s->goroutines;
	for (uint32_t i = 0; i < gs->all.n; i++)
		watch(f, i);
	sonde_vec_sort(&f->channels, by_object);
	sonde_vec_sort(&f->records, by_object);
	sonde_vec_foreach (link, &f->channels)
		set(f->watched, link->object);
	sonde_vec_foreach (link, &f->records)
		set(f->watched, link->object);
	struct sonde_core_scanner sc;
	sonde_core_scanner_init(&sc, f->heap);
	struct sonde_error *err = sonde_go_roots_visit(f->s->go, gs, &sc.masks, reach_root, f);
	sonde_vec_sort(&f->held, by_goroutine);
	while (!err && !f->no_memory && f->stack.n)
		scan(f, &sc, f->stack.items[--f->stack.n]);
	sonde_core_scanner_deinit(&sc);
	return err ? err : f->no_memory ? &sonde_enomem : NULL;
}

struct sonde_error *sonde_core_stuck_find(
	struct sonde_core_session *s, struct sonde_core_stuck *ret)
{
	SONDE_TRY(sonde_core_session_need_marks(s));
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	size_t n_words = (size_t)s->heap->n_slots / 64 + 1, n = s->goroutines->all.n;
	sonde_cleanup(free) bool *asleep = sonde_new_array(bool, n + 1);
	sonde_cleanup(free) uint64_t *reached = sonde_new_array(uint64_t, n_words);
	sonde_cleanup(free) uint64_t *watched = sonde_new_array(uint64_t, n_words);
	if (!asleep || !reached || !watched)
		return &sonde_enomem;
	struct finder f = {
		.s = s, .heap = s->heap, .asleep = asleep, .reached = reached, .watched = watched};
	struct sonde_error *err = find(&f);
	links_deinit(&f.channels);
	links_deinit(&f.records);
	links_deinit(&f.held);
	sonde_u32_vec_deinit(&f.stack);
	SONDE_TRY(err);
	struct sonde_core_stuck stuck = {0};
	for (size_t i = 0; i < n; i++)
		stuck.n += asleep[i];
	for (uint32_t i = 0; i < s->heap->n_spans; i++) {
		const struct sonde_go_span *span = &s->heap->spans[i];
		/* Whatever this walk reaches, the mark has reached. */
		uint64_t lost = sonde_core_bits_count(s->marks->bits, span->first, span->n_slots) -
			sonde_core_bits_count(reached, span->first, span->n_slots);
		stuck.n_objects += lost;
		stuck.bytes += lost * span->slot_bytes;
	}
	stuck.goroutines = sonde_take(asleep);
	*ret = stuck;
	return NULL;
}

void sonde_core_stuck_deinit(struct sonde_core_stuck *stuck)
{
	free(stuck->goroutines);
}
