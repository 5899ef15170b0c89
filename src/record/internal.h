/*
 * src/record/internal.h: the recorder's one state, its buffers, and how an event is put down. See doc/design/record.md.
 *
 * Who may touch what: a slot (processor) and its chunk belong to the thread that holds the slot, without a lock; the
 * thread says `busy` while it writes. sonde_record_stop() ends the session, waits until no thread is busy (an
 * asymmetric barrier: membarrier(2) here, a compiler barrier there) and owns all slots from then on. Everything else that
 * several threads write is atomic or under sonde_recorder.lock.
 */
#pragma once
#include <pthread.h>
#include <stdatomic.h>
#include <signal.h>
#include <sched.h>
#include "sonde/record.h"
#include "traceformat/events.h"
#if defined(__x86_64__)
#include <x86intrin.h>
#endif
#include <time.h>

#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

enum {
	CHUNK_BYTES = 64 << 10,
	CHUNKS_PER_EXTENT = 16,
	MAX_FRAMES = 128,
	DEFAULT_FRAMES = 32,
	MAX_SLOTS = 1 << 16,
	/* What stays free behind `limit`: an introduction and a transition are several events of at most 64 bytes. */
	EVENT_ROOM = 512,
	PAD_ROOM = 16, /* and behind that, for the record that fills a chunk of a file */
	MAX_EVENT = 64,
	N_REGISTRY_SHARDS = 64,
	STACK_CACHE_BITS = 6,
	NO_PROCESSOR = UINT32_MAX,
};

/* Of a goroutine; kept while nothing is recorded too. */
enum g_state {
	G_NEW, /* storage zeroed by the caller, or ended */
	G_RUNNABLE,
	G_RUNNING,
	G_WAITING,
	G_UNBLOCKING, /* claimed by the one who writes its unblock event */
};

/* Several chunks of a file, mapped at once; unmapped when the last of them is full. */
struct extent {
	uint8_t *base;
	size_t bytes;
	uint64_t file_offset;
	unsigned n_open; /* chunks not yet retired */
	unsigned n_given;
};

/* A buffer: 64 KB of the output file, or memory. */
struct chunk {
	struct chunk *next;
	struct extent *extent; /* NULL: memory */
	uint8_t *base;
	size_t bytes, used; /* used: of a retired one */
	uint64_t after; /* offset in the file of the processor's chunk before it */
	bool first; /* begins with the header */
};

/* A processor. */
struct slot {
	uint8_t *pos;
	uint8_t *log_limit; /* droppable events begin before it */
	uint8_t *limit; /* all others before this */
	uint8_t *end;
	uint64_t last; /* ticks of the last event */
	struct sonde_record_fiber *g; /* running here */
	struct chunk *chunk;
	uint64_t before; /* offset of the chunk before this one */
	uint32_t id;
	_Atomic uint32_t next_free; /* index + 1 */
	bool sweeping;
	uint64_t swept, reclaimed;
	uint64_t n_events, dropped_logs, dropped_regions, dropped_tasks, misused;
} __attribute__((aligned(128)));

struct thread {
	struct slot *slot;
	volatile sig_atomic_t busy;
	uint32_t session; /* that slot is of */
	bool is_processor; /* of an explicit runtime: no goroutine of its own */
	bool registered;
	uintptr_t stack_low, stack_high;
	struct sonde_record_fiber *fiber; /* of a processor: what it runs */
	struct sonde_record_fiber own;
	uint32_t tid;
	uint64_t syscall_ticks; /* began then; 0 = none */
	const struct stack *stacks[1 << STACK_CACHE_BITS]; /* by where they were taken */
	struct thread *next, **link; /* in sonde_recorder.threads */
};

/* A stack, once. */
struct stack {
	_Atomic(struct stack *) next;
	uint64_t hash;
	uint32_t id, n;
	uint64_t pcs[];
};

enum { N_STACK_BUCKETS = 1 << 14 };

struct sonde_recorder {
	_Atomic uint32_t session; /* events are written; 0 = not */
	uint32_t last_session;

	pthread_mutex_t control; /* start, stop */
	pthread_mutex_t lock; /* all below up to the mark */
	pthread_cond_t readable, writable, drained;
	enum mode { MODE_OFF, MODE_FILE, MODE_STREAM, MODE_DRAINING } mode;
	struct sonde_record_options options;
	int fd;
	uint64_t file_bytes;
	struct extent *extent; /* chunks are being given from */
	struct chunk *reserve;
	struct extent **extents; /* that are mapped or were */
	size_t n_extents, extents_room;
	struct chunk *full, **full_tail, *empty; /* streams */
	struct chunk *reading;
	size_t reading_at;
	uint64_t waiting_bytes; /* in `full` */
	bool reader_busy, stopping;
	uint64_t written_bytes; /* of records, without padding */
	/* --- */

	unsigned stack_depth;
	bool v1_caller_ids;
	bool use_tsc;
	_Atomic bool has_barrier; /* membarrier(2): writers need no fence */
	uint64_t start_ticks, start_ns;

	struct slot *slots;
	_Atomic uint32_t n_slots;
	_Atomic uint64_t free_slots; /* tag << 32 | index + 1 */

	_Atomic uint64_t next_g, next_task, next_string;
	_Atomic uint32_t next_stack, n_strings;
	_Atomic uint64_t lost_in_signal, lost_after_failure, n_goroutines;
	_Atomic int failure;
	_Atomic uint64_t gc_seq;
	_Atomic bool in_gc, in_stw;

	_Atomic(struct stack *) buckets[N_STACK_BUCKETS];
	_Atomic(uint8_t *) stack_arena;
	_Atomic size_t stack_arena_used;

	pthread_mutex_t names_lock;
	struct name {
		char *text;
		uint64_t string; /* session << 32 | id */
	} * names; /* of threads and labels; index + 1 is what others keep */
	uint32_t n_names, names_room;

	pthread_mutex_t threads_lock;
	struct thread *threads;

	struct shard {
		_Atomic uint32_t lock;
		struct sonde_record_fiber *first;
	} shards[N_REGISTRY_SHARDS]; /* all goroutines that began and did not end */
};

#define HIDDEN __attribute__((visibility("hidden")))

extern struct sonde_recorder sonde_recorder HIDDEN;
extern __thread struct thread sonde_record_thread __attribute__((tls_model("initial-exec"))) HIDDEN;

/* --- buffer.c --- */

/* A new chunk for the slot whose own is full; the old one is handed over. false: dropped or failed. */
bool sonde_record_refill(struct slot *s, bool droppable) HIDDEN;
/* A chunk of the file for the tables at the end, also when the disk is full by then. */
int sonde_record_reserve(void) HIDDEN; /* 0 or an errno value */
void sonde_record_use_reserve(struct slot *s) HIDDEN;
int sonde_record_buffers_start(const char *path) HIDDEN;
int sonde_record_buffers_stop(void) HIDDEN;
/* In the child of a fork; consistent: no thread of the parent was changing the lists. */
void sonde_record_buffers_forget(bool consistent) HIDDEN;

/* --- thread.c --- */
struct slot *sonde_record_enter_slow(struct thread *t) HIDDEN;
/* t takes part in the session, on s. */
void sonde_record_attach(struct thread *t, struct slot *s, uint32_t session) HIDDEN;
void sonde_record_thread_register(struct thread *t) HIDDEN;
void sonde_record_introduce(struct slot *s, struct sonde_record_fiber *g, bool waiting) HIDDEN;
/* The same for one that did nothing: nothing of it is changed, its own thread may be at work. */
void sonde_record_introduce_silent(
	struct slot *s, const struct sonde_record_fiber *g, bool waiting) HIDDEN;
struct slot *sonde_record_slot_take(void) HIDDEN;
struct slot *sonde_record_slot_new(void) HIDDEN; /* that no event is on yet */
void sonde_record_regions_free(struct sonde_record_fiber *g) HIDDEN;
uint64_t sonde_record_name_string(struct slot *s, uint32_t name) HIDDEN;

/* --- stack.c --- */
const struct stack *sonde_record_stack_put(const uint64_t *pcs, uint32_t n, uint64_t hash) HIDDEN;
uint64_t sonde_record_stack_hash(const uint64_t *pcs, uint32_t n) HIDDEN;
uint32_t sonde_record_stack_of(void **frame) HIDDEN;
void sonde_record_stacks_free(void) HIDDEN;

/* --- symbols.c --- */
struct symbols;
struct symbols *sonde_record_symbols_new(void) HIDDEN;
void sonde_record_symbols_free(struct symbols *symbols) HIDDEN;
/* The function at pc and the file that it was loaded from; "" where unknown. Valid until freed. */
void sonde_record_symbols_find(
	struct symbols *symbols, uint64_t pc, const char **func, const char **file) HIDDEN;

/* --- putting down an event --- */

#if defined(__x86_64__)
enum {
	TSC_SHIFT = 4
}; /* a tick is some 5 to 8 ns: below the cost of an event, so that times stay true */
#else
enum { TSC_SHIFT = 0 };
#endif

static inline uint64_t monotonic_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline uint64_t ticks_now(void)
{
	if (LIKELY(sonde_recorder.use_tsc)) {
#if defined(__x86_64__)
		return __rdtsc() >> TSC_SHIFT;
#elif defined(__aarch64__)
		uint64_t v;
		__asm__ volatile("mrs %0, cntvct_el0" : "=r"(v));
		return v;
#endif
	}
	return monotonic_ns() >> 2;
}

static inline uint8_t *put(uint8_t *p, uint64_t v)
{
	while (v >= 0x80) {
		*p++ = (uint8_t)v | 0x80;
		v >>= 7;
	}
	*p++ = (uint8_t)v;
	return p;
}

/* v as exactly n bytes, n large enough. */
static inline void put_padded(uint8_t *p, uint64_t v, unsigned n)
{
	for (; n > 1; n--, v >>= 7)
		*p++ = (uint8_t)v | 0x80;
	*p = (uint8_t)v;
}

/*
 * An event of n_args arguments behind its time, at now or as soon after as the slot's times increase. The arguments are
 * put() behind the pointer it returns; event_end() completes it.
 */
static inline uint8_t *event_begin(
	struct slot *s, enum sonde_trace_v1_type type, unsigned n_args, uint64_t now)
{
	uint8_t *p = s->pos;
	uint64_t delta = (int64_t)(now - s->last) > 0 ? now - s->last : 1;
	s->last += delta;
	s->n_events++;
	*p++ = (uint8_t)(type | (n_args < 3 ? n_args : 3) << 6);
	if (n_args >= 3)
		p++; /* for the length */
	return put(p, delta);
}

static inline void event_end(struct slot *s, uint8_t *p, unsigned n_args)
{
	if (n_args >= 3)
		s->pos[1] = (uint8_t)(p - s->pos - 2);
	s->pos = p;
}

static inline void event0(struct slot *s, enum sonde_trace_v1_type type, uint64_t now)
{
	event_end(s, event_begin(s, type, 0, now), 0);
}

static inline void event1(struct slot *s, enum sonde_trace_v1_type type, uint64_t now, uint64_t a)
{
	event_end(s, put(event_begin(s, type, 1, now), a), 1);
}

static inline void event2(
	struct slot *s, enum sonde_trace_v1_type type, uint64_t now, uint64_t a, uint64_t b)
{
	event_end(s, put(put(event_begin(s, type, 2, now), a), b), 2);
}

static inline void event3(struct slot *s, enum sonde_trace_v1_type type, uint64_t now, uint64_t a,
	uint64_t b, uint64_t c)
{
	event_end(s, put(put(put(event_begin(s, type, 3, now), a), b), c), 3);
}

static inline void event4(struct slot *s, enum sonde_trace_v1_type type, uint64_t now, uint64_t a,
	uint64_t b, uint64_t c, uint64_t d)
{
	event_end(s, put(put(put(put(event_begin(s, type, 4, now), a), b), c), d), 4);
}

static inline void leave(struct thread *t)
{
	atomic_signal_fence(memory_order_seq_cst);
	__atomic_store_n(&t->busy, 0, __ATOMIC_RELEASE);
}

/*
 * The calling thread's slot with room for an event, and busy: leave() must follow. NULL: nothing is recorded, or the
 * event is lost and counted; not busy then. droppable: its room is not there when the overflow policy says drop.
 */
static inline struct slot *enter(struct thread *t)
{
	if (UNLIKELY(t->busy)) {
		if (atomic_load_explicit(&sonde_recorder.session, memory_order_relaxed))
			atomic_fetch_add_explicit(
				&sonde_recorder.lost_in_signal, 1, memory_order_relaxed);
		return NULL;
	}
	__atomic_store_n(&t->busy, 1, __ATOMIC_RELAXED);
	if (UNLIKELY(!atomic_load_explicit(&sonde_recorder.has_barrier, memory_order_relaxed)))
		atomic_thread_fence(memory_order_seq_cst);
	atomic_signal_fence(memory_order_seq_cst);
	uint32_t session = atomic_load_explicit(&sonde_recorder.session, memory_order_acquire);
	struct slot *s = t->slot;
	if (UNLIKELY(session != t->session || !s || !session))
		return sonde_record_enter_slow(t);
	if (UNLIKELY(s->pos > s->limit) && !sonde_record_refill(s, false)) {
		leave(t);
		return NULL;
	}
	return s;
}

/* The stack of the caller of the API function that expands this; 0 where none is taken. */
#define STACK_HERE() \
	(sonde_recorder.stack_depth ? sonde_record_stack_of(__builtin_frame_address(0)) : 0)
