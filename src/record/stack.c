#include "record/internal.h"
#include <string.h>
#include <sys/mman.h>

/*
 * Stacks are told apart once: a table of chains that only grow at their head by compare-and-swap, so that look-up and
 * insertion take no lock and a signal handler may do both. Entries lie in blocks that are mapped as needed.
 */

enum {
	ARENA_BYTES = 1 << 20,
	MAX_STACKS = 1 << 20, /* garbage where frame pointers are missing must not eat the memory */
};

static inline uint64_t mix(uint64_t h, uint64_t pc)
{
	return (h << 5 | h >> 59) + pc;
}

static inline uint64_t finish(uint64_t h, uint32_t n)
{
	h = (h ^ n) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

uint64_t sonde_record_stack_hash(const uint64_t *pcs, uint32_t n)
{
	uint64_t h = 0;
	for (uint32_t i = 0; i < n; i++)
		h = mix(h, pcs[i]);
	return finish(h, n);
}

static void *allocate(size_t bytes)
{
	for (;;) {
		uint8_t *block = atomic_load(&sonde_recorder.stack_arena);
		if (block) {
			/* The block's first word is how much of it is used. */
			size_t at = atomic_fetch_add((_Atomic size_t *)block, bytes);
			if (at + bytes <= ARENA_BYTES)
				return block + at;
		}
		uint8_t *more = mmap(NULL, ARENA_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (more == MAP_FAILED)
			return NULL;
		*(_Atomic size_t *)more = 16;
		((uint8_t **)more)[1] = block;
		if (!atomic_compare_exchange_strong(&sonde_recorder.stack_arena, &block, more))
			munmap(more, ARENA_BYTES);
	}
}

void sonde_record_stacks_free(void)
{
	uint8_t *block = atomic_exchange(&sonde_recorder.stack_arena, NULL);
	while (block) {
		uint8_t *next = ((uint8_t **)block)[1];
		munmap(block, ARENA_BYTES);
		block = next;
	}
	memset(sonde_recorder.buckets, 0, sizeof(sonde_recorder.buckets));
	atomic_store(&sonde_recorder.next_stack, 0);
}

static struct stack *find(struct stack *s, const uint64_t *pcs, uint32_t n, uint64_t hash)
{
	for (; s; s = atomic_load_explicit(&s->next, memory_order_acquire))
		if (s->hash == hash && s->n == n) {
			uint32_t i = 0;
			while (i < n && s->pcs[i] == pcs[i])
				i++;
			if (i == n)
				return s;
		}
	return NULL;
}

const struct stack *sonde_record_stack_put(const uint64_t *pcs, uint32_t n, uint64_t hash)
{
	_Atomic(struct stack *) *bucket = &sonde_recorder.buckets[hash % N_STACK_BUCKETS];
	struct stack *head = atomic_load_explicit(bucket, memory_order_acquire);
	struct stack *s = find(head, pcs, n, hash);
	if (LIKELY(s != NULL))
		return s;
	if (atomic_load_explicit(&sonde_recorder.next_stack, memory_order_relaxed) >= MAX_STACKS)
		return NULL;
	struct stack *fresh = allocate(sizeof(*fresh) + n * sizeof(pcs[0]));
	if (!fresh)
		return NULL;
	fresh->hash = hash;
	fresh->n = n;
	memcpy(fresh->pcs, pcs, n * sizeof(pcs[0]));
	fresh->id = atomic_fetch_add(&sonde_recorder.next_stack, 1) + 1;
	for (;;) {
		atomic_store_explicit(&fresh->next, head, memory_order_relaxed);
		if (atomic_compare_exchange_strong_explicit(
			    bucket, &head, fresh, memory_order_release, memory_order_acquire))
			return fresh;
		/* Somebody was faster: perhaps with the same stack. Then ours stays unused. */
		s = find(head, pcs, n, hash);
		if (s)
			return s;
	}
}

/*
 * The frame above: a frame pointer must lie in the running stack, above the one before it, and be aligned. Code without
 * them ends the stack early or, where the register happens to point into the stack, adds an address that is none.
 */
static inline void **above(void **frame, uintptr_t high)
{
	void **up = frame[0];
	return LIKELY((uintptr_t)up > (uintptr_t)frame && (uintptr_t)up <= high - 16 &&
		       !((uintptr_t)up & 7))
		? up
		: NULL;
}

/* Whether the stack from frame on is s: most calls find the one that they found before, without a hash. */
static inline bool is_stack(const struct stack *s, void **frame, uintptr_t high, uint32_t depth)
{
	for (uint32_t i = 1;; i++) {
		if (i == depth)
			return s->n == depth;
		frame = above(frame, high);
		uint64_t pc = frame ? (uint64_t)frame[1] : 0;
		if (!pc)
			return i == s->n;
		if (i == s->n || pc != s->pcs[i])
			return false;
	}
}

uint32_t sonde_record_stack_of(void **frame)
{
	struct thread *t = &sonde_record_thread;
	uint32_t depth = sonde_recorder.stack_depth;
	uintptr_t low = t->stack_low, high = t->stack_high;
	const struct sonde_record_fiber *g = t->slot ? t->slot->g : NULL;
	if (g && g != &t->own) {
		low = g->stack_low;
		high = g->stack_high;
	}
	uint64_t pc = (uint64_t)frame[1];
	if (UNLIKELY((uintptr_t)frame < low || high < 16 || (uintptr_t)frame > high - 16))
		depth = 1;
	size_t at = (pc ^ (uintptr_t)frame >> 4) * UINT64_C(0x9e3779b97f4a7c15) >>
		(64 - STACK_CACHE_BITS);
	const struct stack *cached = t->stacks[at];
	if (LIKELY(cached && cached->pcs[0] == pc && is_stack(cached, frame, high, depth)))
		return cached->id;
	uint64_t pcs[MAX_FRAMES] = {pc};
	uint32_t n = 1;
	while (n < depth && (frame = above(frame, high)) && frame[1])
		pcs[n++] = (uint64_t)frame[1];
	cached = sonde_record_stack_put(pcs, n, sonde_record_stack_hash(pcs, n));
	t->stacks[at] = cached;
	return cached ? cached->id : 0;
}
