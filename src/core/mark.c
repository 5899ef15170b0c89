#include "core/mark.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/parallel.h"
#include "core/scan.h"
#include "golang/roots.h"

enum {
	/* Objects on their way from a pointer to their scan: long enough for memory to answer, short enough for L1. */
	RING_SLOTS = 32,
	/* Below so many marked objects a thread keeps its own when others have none. */
	SHARE_MIN = 16,
};

struct item {
	uint32_t span, slot;
};
struct part {
	uint32_t span, slot;
	uint64_t offset; /* in the slot, where the scan goes on */
};
SONDE_DEFINE_VEC(item_vec, struct item)
SONDE_DEFINE_VEC(part_vec, struct part)

/* What the threads share. */
struct marker {
	const struct sonde_go_heap *heap;
	struct sonde_notes *notes;
	uint64_t *bits;
	bool parallel;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct item_vec pool; /* marked, not scanned */
	unsigned n_active; /* threads that take part */
	unsigned n_waiting;
	bool done, failed;
	uint64_t n_unreadable; /* pointer words of live objects */
	uint64_t n_no_type; /* live objects whose header leads to no type */
};

struct ring_item {
	uint32_t span, slot;
	bool marked; /* its bit is already set: scan it */
};

struct worker {
	struct marker *m;
	struct item_vec stack; /* marked, not scanned */
	struct part_vec parts;
	struct sonde_core_scanner scanner;
	struct ring_item ring[RING_SLOTS];
	unsigned head, n;
	bool failed;
};

/* Set the bit; true where it was not set. */
static inline bool set_bit(const struct marker *m, uint32_t object)
{
	uint64_t *word = &m->bits[object >> 6], bit = UINT64_C(1) << (object & 63);
	if (__atomic_load_n(word, __ATOMIC_RELAXED) & bit)
		return false;
	if (!m->parallel) {
		*word |= bit;
		return true;
	}
	return !(__atomic_fetch_or(word, bit, __ATOMIC_RELAXED) & bit);
}

static inline void ring_add(struct worker *w, uint32_t span, uint32_t slot, bool marked)
{
	w->ring[(w->head + w->n++) % RING_SLOTS] = (struct ring_item){span, slot, marked};
}

static inline void prefetch_object(const struct sonde_go_span *s, uint32_t slot)
{
	if (s->host && s->pointers != SONDE_GO_NOSCAN)
		__builtin_prefetch(s->host + slot * s->slot_bytes);
}

/* A pointer word's value: if it leads to an object, queue it. */
static inline void found(struct worker *w, uint64_t value)
{
	const struct sonde_go_heap *h = w->m->heap;
	uint64_t at = value - h->low;
	if (at >= h->high - h->low)
		return;
	const uint32_t *chunk = h->chunks[at >> h->chunk_shift];
	if (!chunk)
		return;
	uint32_t span =
		chunk[(at >> h->page_shift) & ((1u << (h->chunk_shift - h->page_shift)) - 1)];
	if (!span--)
		return;
	const struct sonde_go_span *s = &h->spans[span];
	uint32_t slot = sonde_go_span_slot(s, value);
	if (slot >= s->n_slots)
		return;
	uint32_t object = s->first + slot;
	if (sonde_likely(w->n < RING_SLOTS)) {
		__builtin_prefetch(&w->m->bits[object >> 6], 1);
		prefetch_object(s, slot);
		ring_add(w, span, slot, false);
		return;
	}
	if (set_bit(w->m, object) && s->pointers != SONDE_GO_NOSCAN &&
		!item_vec_push(&w->stack, (struct item){span, slot}))
		w->failed = true;
}

static inline void found_word(void *ctx, uint64_t offset, uint64_t value)
{
	found(ctx, value);
}

static void scan(struct worker *w, uint32_t span, uint32_t slot, uint64_t from)
{
	const struct sonde_go_span *s = &w->m->heap->spans[span];
	uint64_t offset = sonde_core_scan(&w->scanner, s, slot, from, found_word, w);
	if (offset < s->slot_bytes && !part_vec_push(&w->parts, (struct part){span, slot, offset}))
		w->failed = true;
}

/* Give half of the stack away: its older half, whose objects were found first and so have most below them. */
static void share(struct worker *w)
{
	struct marker *m = w->m;
	pthread_mutex_lock(&m->lock);
	size_t give = w->stack.n / 2;
	if (!m->pool.n && item_vec_reserve(&m->pool, give)) {
		memcpy(m->pool.items, w->stack.items, give * sizeof(struct item));
		m->pool.n = give;
		w->stack.n -= give;
		memmove(w->stack.items, w->stack.items + give, w->stack.n * sizeof(struct item));
		pthread_cond_broadcast(&m->wake);
	}
	pthread_mutex_unlock(&m->lock);
}

/* Work until this thread has none. */
static void drain(struct worker *w)
{
	const struct sonde_go_heap *h = w->m->heap;
	for (;;) {
		/* Keep the ring half full: what is at its head was asked for long enough ago. */
		while (w->n < RING_SLOTS / 2 && w->stack.n) {
			struct item i = w->stack.items[--w->stack.n];
			prefetch_object(&h->spans[i.span], i.slot);
			ring_add(w, i.span, i.slot, true);
		}
		if (w->n) {
			struct ring_item i = w->ring[w->head];
			w->head = (w->head + 1) % RING_SLOTS;
			w->n--;
			const struct sonde_go_span *s = &h->spans[i.span];
			if ((i.marked || set_bit(w->m, s->first + i.slot)) &&
				s->pointers != SONDE_GO_NOSCAN)
				scan(w, i.span, i.slot, 0);
		} else if (w->parts.n) {
			struct part p = w->parts.items[--w->parts.n];
			scan(w, p.span, p.slot, p.offset);
		} else {
			return;
		}
		if (w->m->parallel && w->stack.n >= SHARE_MIN &&
			__atomic_load_n(&w->m->n_waiting, __ATOMIC_RELAXED))
			share(w);
	}
}

/* Take shared work, or wait for some; false when all is done. */
static bool take(struct worker *w)
{
	struct marker *m = w->m;
	pthread_mutex_lock(&m->lock);
	while (!m->pool.n && !m->done) {
		if (m->n_waiting + 1 == m->n_active) {
			m->done = true;
			pthread_cond_broadcast(&m->wake);
			break;
		}
		__atomic_fetch_add(&m->n_waiting, 1, __ATOMIC_RELAXED);
		pthread_cond_wait(&m->wake, &m->lock);
		__atomic_fetch_sub(&m->n_waiting, 1, __ATOMIC_RELAXED);
	}
	bool got = m->pool.n > 0;
	if (got) {
		size_t n = (m->pool.n + 1) / 2;
		if (item_vec_reserve(&w->stack, n)) {
			m->pool.n -= n;
			memcpy(w->stack.items + w->stack.n, m->pool.items + m->pool.n,
				n * sizeof(struct item));
			w->stack.n += n;
		} else {
			w->failed = m->done = true;
			got = false;
		}
	}
	pthread_mutex_unlock(&m->lock);
	return got;
}

static void work(void *ctx, unsigned i)
{
	struct marker *m = ctx;
	struct worker w = {.m = m};
	sonde_core_scanner_init(&w.scanner, m->heap);
	pthread_mutex_lock(&m->lock);
	bool late = m->done;
	m->n_active += !late;
	pthread_mutex_unlock(&m->lock);
	while (!late && take(&w))
		drain(&w);
	pthread_mutex_lock(&m->lock);
	m->failed |= w.failed;
	m->n_unreadable += w.scanner.n_unreadable;
	m->n_no_type += w.scanner.n_no_type;
	pthread_mutex_unlock(&m->lock);
	item_vec_deinit(&w.stack);
	part_vec_deinit(&w.parts);
	sonde_core_scanner_deinit(&w.scanner);
}

/* Mark from what stands in the pool until nothing is left. */
static struct sonde_error *run(struct marker *m, unsigned n_threads)
{
	if (!m->pool.n)
		return NULL;
	m->parallel = n_threads > 1;
	m->done = false;
	m->n_active = m->n_waiting = 0;
	sonde_parallel_run(n_threads, work, m);
	return m->failed ? &sonde_enomem : NULL;
}

/* Put the object that value points into into the pool, if it is new. Conservative values must hit allocated slots. */
static void seed(struct marker *m, uint64_t value, bool conservative)
{
	struct sonde_go_span *s;
	uint32_t slot;
	if (!sonde_go_heap_find(m->heap, value, &s, &slot))
		return;
	if (conservative && !sonde_go_span_allocated(s, slot))
		return;
	m->parallel = false;
	if (set_bit(m, s->first + slot) && s->pointers != SONDE_GO_NOSCAN &&
		!item_vec_push(&m->pool, (struct item){(uint32_t)(s - m->heap->spans), slot}))
		m->failed = true;
}

struct root_seeder {
	struct marker *m;
	uint64_t n_roots;
};

static void seed_root(void *ctx, const struct sonde_go_root *root)
{
	struct root_seeder *r = ctx;
	r->n_roots++;
	seed(r->m, root->value, root->conservative);
}

static bool bit_of(const struct marker *m, uint32_t object)
{
	return m->bits[object >> 6] >> (object & 63) & 1;
}

/* Finalizers, cleanups and weak handles hang on their objects: follow those of live ones until none is new. */
static struct sonde_error *mark_specials(struct marker *m, unsigned n_threads)
{
	const struct sonde_go_specials *all = &m->heap->specials;
	sonde_cleanup(free) uint8_t *followed = sonde_new_array(uint8_t, all->n);
	if (!followed)
		return &sonde_enomem;
	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < all->n; i++) {
			if (followed[i] || !bit_of(m, all->items[i].object))
				continue;
			followed[i] = 1;
			more = true;
			for (size_t k = 0; k < SONDE_ARRAY_LEN(all->items[i].words); k++)
				seed(m, all->items[i].words[k], false);
		}
		SONDE_TRY(run(m, n_threads));
	}
	return NULL;
}

uint64_t sonde_core_bits_count(const uint64_t *bits, uint64_t first, uint64_t n)
{
	uint64_t count = 0, end = first + n;
	while (first < end) {
		uint64_t word = bits[first >> 6] >> (first & 63);
		uint64_t have = sonde_min(64 - (first & 63), end - first);
		if (have < 64)
			word &= (UINT64_C(1) << have) - 1;
		count += (uint64_t)__builtin_popcountll(word);
		first += have;
	}
	return count;
}

static void count(const struct sonde_go_heap *h, const uint64_t *bits, uint64_t *n, uint64_t *bytes)
{
	*n = *bytes = 0;
	for (uint32_t i = 0; i < h->n_spans; i++) {
		const struct sonde_go_span *s = &h->spans[i];
		uint64_t live = sonde_core_bits_count(bits, s->first, s->n_slots);
		*n += live;
		*bytes += live * s->slot_bytes;
	}
}

static uint64_t count_not_allocated(const struct sonde_go_heap *h, const uint64_t *bits)
{
	uint64_t n = 0;
	for (uint32_t i = 0; i < h->n_spans; i++) {
		const struct sonde_go_span *s = &h->spans[i];
		for (uint32_t slot = s->free_index; slot < s->n_slots; slot++) {
			uint32_t object = s->first + slot;
			n += (bits[object >> 6] >> (object & 63) & 1) &&
				!sonde_go_span_allocated(s, slot);
		}
	}
	return n;
}

/* What only finalizers and cleanups of unreachable objects keep: counted on a copy of the bits. */
static struct sonde_error *mark_pending(
	struct marker *m, unsigned n_threads, struct sonde_core_marks *marks)
{
	const struct sonde_go_specials *all = &m->heap->specials;
	size_t n_words = m->heap->n_slots / 64 + 1;
	bool any = false;
	for (size_t i = 0; i < all->n && !any; i++)
		any = !bit_of(m, all->items[i].object);
	if (!any)
		return NULL;
	uint64_t *live = m->bits;
	sonde_cleanup(free) uint64_t *all_bits = sonde_new_array(uint64_t, n_words);
	if (!all_bits)
		return &sonde_enomem;
	memcpy(all_bits, live, n_words * sizeof(*live));
	m->bits = all_bits;
	for (size_t i = 0; i < all->n; i++) {
		uint32_t object = all->items[i].object;
		const struct sonde_go_span *s = sonde_go_heap_span_of(m->heap, object);
		if (!sonde_go_span_allocated(s, object - s->first))
			continue;
		/* Only a finalizer brings its object back; a cleanup runs without it. */
		if (all->items[i].kind == SONDE_GO_FINALIZER)
			seed(m, sonde_go_span_addr(s, object - s->first), false);
		for (size_t k = 0; k < SONDE_ARRAY_LEN(all->items[i].words); k++)
			seed(m, all->items[i].words[k], false);
	}
	struct sonde_error *err = run(m, n_threads);
	m->bits = live;
	SONDE_TRY(err);
	count(m->heap, all_bits, &marks->n_pending, &marks->pending_bytes);
	marks->n_pending -= marks->n_live;
	marks->pending_bytes -= marks->live_bytes;
	marks->kept_bits = sonde_take(all_bits);
	return NULL;
}

static struct sonde_error *mark_all(
	struct marker *m, const struct sonde_goroutines *gs, struct sonde_core_marks *marks)
{
	struct root_seeder roots = {.m = m};
	struct sonde_go_masks masks;
	sonde_go_masks_init(&masks, m->heap->go);
	struct sonde_error *err = sonde_go_roots_visit(m->heap->go, gs, &masks, seed_root, &roots);
	sonde_go_masks_deinit(&masks);
	SONDE_TRY(err);
	if (m->failed)
		return &sonde_enomem;
	marks->n_roots = roots.n_roots;
	SONDE_TRY(run(m, marks->n_threads));
	SONDE_TRY(mark_specials(m, marks->n_threads));
	count(m->heap, m->bits, &marks->n_live, &marks->live_bytes);
	marks->n_not_allocated = count_not_allocated(m->heap, m->bits);
	return mark_pending(m, marks->n_threads, marks);
}

struct sonde_error *sonde_core_mark(const struct sonde_go_heap *heap,
	const struct sonde_goroutines *gs, unsigned n_threads, struct sonde_notes *notes,
	struct sonde_core_marks **ret)
{
	sonde_cleanup(sonde_core_marks) struct sonde_core_marks *marks =
		sonde_new(struct sonde_core_marks);
	if (!marks)
		return &sonde_enomem;
	marks->bits = sonde_new_array(uint64_t, (size_t)heap->n_slots / 64 + 1);
	if (!marks->bits)
		return &sonde_enomem;
	marks->n_threads = n_threads ? n_threads : sonde_parallel_cpus();
	struct marker m = {.heap = heap, .notes = notes, .bits = marks->bits};
	pthread_mutex_init(&m.lock, NULL);
	pthread_cond_init(&m.wake, NULL);
	struct sonde_error *err = mark_all(&m, gs, marks);
	pthread_cond_destroy(&m.wake);
	pthread_mutex_destroy(&m.lock);
	item_vec_deinit(&m.pool);
	SONDE_TRY(err);
	if (m.n_unreadable)
		sonde_notes_add(notes, "pointers of live objects not readable: words",
			m.n_unreadable, "what only they reach counts as garbage");
	if (m.n_no_type)
		sonde_notes_add(notes, "live objects without a readable type: objects", m.n_no_type,
			"what only they reach counts as garbage");
	if (marks->n_not_allocated)
		sonde_notes_add(notes, "reachable objects that the heap calls free: objects",
			marks->n_not_allocated,
			"a core taken in the middle of an allocation, or damage");
	*ret = sonde_take(marks);
	return NULL;
}

void sonde_core_marks_free(struct sonde_core_marks *marks)
{
	if (!marks)
		return;
	free(marks->bits);
	free(marks->kept_bits);
	free(marks);
}
