#include "record/internal.h"
#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

struct sonde_recorder sonde_recorder = {
	.control = PTHREAD_MUTEX_INITIALIZER,
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.readable = PTHREAD_COND_INITIALIZER,
	.writable = PTHREAD_COND_INITIALIZER,
	.drained = PTHREAD_COND_INITIALIZER,
	.names_lock = PTHREAD_MUTEX_INITIALIZER,
	.threads_lock = PTHREAD_MUTEX_INITIALIZER,
	.fd = -1,
	.next_task =
		1, /* never used twice, so that a task of one trace cannot end one of the next */
};

uint32_t sonde_record_session;

/* --- strings --- */

/* Room for n bytes and an event behind them; the caller holds s. */
static bool room(struct slot *s, size_t n, bool droppable)
{
	uint8_t *limit = droppable ? s->log_limit : s->limit;
	if (LIKELY(s->pos <= limit && (size_t)(s->end - s->pos) >= n + EVENT_ROOM + PAD_ROOM))
		return true;
	return sonde_record_refill(s, droppable) && (!droppable || s->pos <= s->log_limit);
}

/* A string record; its end is cut to 1 KB. 0 where it has no room. */
static uint64_t string_put(struct slot *s, const char *text)
{
	size_t n = strnlen(text, 1024);
	if (!n || !room(s, n + 24, false))
		return 0;
	uint64_t id = atomic_fetch_add(&sonde_recorder.next_string, 1) + 1;
	atomic_fetch_add_explicit(&sonde_recorder.n_strings, 1, memory_order_relaxed);
	uint8_t *p = s->pos;
	*p++ = SONDE_TRACE_V1_STRING;
	p = put(put(p, id), n);
	memcpy(p, text, n);
	s->pos = p + n;
	return id;
}

uint64_t sonde_record_name_string(struct slot *s, uint32_t name)
{
	pthread_mutex_lock(&sonde_recorder.names_lock);
	uint64_t ret = 0;
	if (name && name <= sonde_recorder.n_names) {
		struct name *n = &sonde_recorder.names[name - 1];
		if (n->string >> 32 != sonde_recorder.last_session)
			n->string = (uint64_t)sonde_recorder.last_session << 32 |
				string_put(s, n->text);
		ret = n->string & UINT32_MAX;
	}
	pthread_mutex_unlock(&sonde_recorder.names_lock);
	return ret;
}

/* The string id of the site's name in this session. */
static inline uint64_t site_string(struct slot *s, struct thread *t, struct sonde_record_site *site)
{
	uint64_t id = __atomic_load_n(&site->id, __ATOMIC_RELAXED);
	if (LIKELY(id >> 32 == t->session))
		return id & UINT32_MAX;
	/* Two threads may both write it: two ids of one text. */
	id = (uint64_t)t->session << 32 | string_put(s, site->name);
	__atomic_store_n(&site->id, id, __ATOMIC_RELAXED);
	return id & UINT32_MAX;
}

/* --- start and stop --- */

static bool tsc_is_sound(void)
{
#if defined(__x86_64__)
	unsigned a, b, c, d;
	int mode = 0;
	/* Invariant, and allowed to this process. */
	return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1 << 8) &&
		(prctl(PR_GET_TSC, &mode) || mode == PR_TSC_ENABLE);
#elif defined(__aarch64__)
	return true;
#else
	return false;
#endif
}

static void in_child(void)
{
	/* The session is the parent's. The child may begin its own. */
	pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t fresh_cond = PTHREAD_COND_INITIALIZER;
	bool consistent = !pthread_mutex_trylock(&sonde_recorder.lock);
	sonde_record_session = 0;
	atomic_store(&sonde_recorder.session, 0);
	sonde_recorder.control = sonde_recorder.lock = sonde_recorder.names_lock =
		sonde_recorder.threads_lock = fresh;
	sonde_recorder.readable = sonde_recorder.writable = sonde_recorder.drained = fresh_cond;
	sonde_record_buffers_forget(consistent);
	sonde_record_stacks_free();
	for (unsigned i = 0; i < N_REGISTRY_SHARDS; i++)
		atomic_store(&sonde_recorder.shards[i].lock, 0);
	/* Of the threads only this one lives on. */
	struct thread *t = &sonde_record_thread;
	sonde_recorder.threads = NULL;
	if (t->registered) {
		t->tid = (uint32_t)syscall(SYS_gettid);
		t->next = NULL;
		t->link = &sonde_recorder.threads;
		sonde_recorder.threads = t;
	}
	t->slot = NULL;
	t->session = 0;
	t->busy = 0;
}

static void at_exit(void)
{
	if (!sonde_recorder.options.keep_at_exit)
		sonde_record_stop(NULL);
}

static void once(void)
{
	pthread_atfork(NULL, NULL, in_child);
	atexit(at_exit);
	sonde_recorder.slots = mmap(NULL, MAX_SLOTS * sizeof(struct slot), PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (sonde_recorder.slots == MAP_FAILED)
		sonde_recorder.slots = NULL;
	atomic_store(&sonde_recorder.has_barrier,
		!syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0));
}

/* Everything that other threads wrote before they saw the session change is seen after this. */
static void barrier(void)
{
	if (atomic_load(&sonde_recorder.has_barrier))
		syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
	atomic_thread_fence(memory_order_seq_cst);
}

static int start(const char *path, const struct sonde_record_options *options)
{
	static pthread_once_t is_once = PTHREAD_ONCE_INIT;
	struct sonde_record_options o = {0};
	if (options) {
		/* What a newer caller knows and this library does not must be zero. */
		size_t known = options->size < sizeof(o) ? options->size : sizeof(o);
		if (options->size < sizeof(o.size))
			return -EINVAL;
		for (size_t i = sizeof(o); i < options->size; i++)
			if (((const uint8_t *)options)[i])
				return -EINVAL;
		memcpy(&o, options, known);
	}
	if ((unsigned)o.version > SONDE_RECORD_V1_11 || (unsigned)o.overflow > SONDE_RECORD_BLOCK ||
		o.stack_depth > MAX_FRAMES || (o.overflow == SONDE_RECORD_BLOCK && path))
		return -EINVAL;
	pthread_once(&is_once, once);
	if (!sonde_recorder.slots)
		return -ENOMEM;

	pthread_mutex_lock(&sonde_recorder.control);
	if (atomic_load(&sonde_recorder.session) ||
		__atomic_load_n(&sonde_record_session, __ATOMIC_RELAXED) ||
		sonde_recorder.mode != MODE_OFF) {
		pthread_mutex_unlock(&sonde_recorder.control);
		return -EALREADY;
	}
	sonde_recorder.options = o;
	int error = sonde_record_buffers_start(path);
	if (error) {
		pthread_mutex_unlock(&sonde_recorder.control);
		return error;
	}
	sonde_recorder.stack_depth = o.no_stacks ? 0
		: o.stack_depth                  ? o.stack_depth
						 : DEFAULT_FRAMES;
	sonde_recorder.use_tsc = !o.monotonic_clock && tsc_is_sound();
	sonde_recorder.v1_caller_ids = o.caller_ids;
	uint32_t n = atomic_load(&sonde_recorder.n_slots);
	memset((void *)sonde_recorder.slots, 0, n * sizeof(struct slot));
	atomic_store(&sonde_recorder.n_slots, 0);
	atomic_store(&sonde_recorder.free_slots, 0);
	atomic_store(&sonde_recorder.next_g, o.caller_ids ? UINT64_C(1) << 32 : 1);
	atomic_store(&sonde_recorder.next_string, 0);
	atomic_store(&sonde_recorder.n_strings, 0);
	atomic_store(&sonde_recorder.lost_in_signal, 0);
	atomic_store(&sonde_recorder.lost_after_failure, 0);
	atomic_store(&sonde_recorder.n_goroutines, 0);
	atomic_store(&sonde_recorder.failure, 0);
	atomic_store(&sonde_recorder.gc_seq, 0);
	atomic_store(&sonde_recorder.in_gc, false);
	atomic_store(&sonde_recorder.in_stw, false);
	sonde_recorder.start_ns = monotonic_ns();
	sonde_recorder.start_ticks = ticks_now();
	uint32_t session = ++sonde_recorder.last_session;
	if (!session)
		session = ++sonde_recorder.last_session;
	/*
	 * Before anybody else: the caller, and the number of CPUs, which readers of 1.23 and later take for the end of
	 * what was there before the trace.
	 */
	struct thread *t = &sonde_record_thread;
	struct slot *s = sonde_record_slot_new();
	s->last = sonde_recorder.start_ticks;
	if (!t->registered)
		sonde_record_thread_register(t);
	t->busy = 1;
	if (sonde_record_refill(s, false)) {
		long n_cpus = sysconf(_SC_NPROCESSORS_ONLN);
		sonde_record_attach(t, s, session);
		event2(s, SONDE_TRACE_V1_GOMAXPROCS, ticks_now(), n_cpus > 0 ? (uint64_t)n_cpus : 1,
			0);
	}
	leave(t);
	error = atomic_load(&sonde_recorder.failure);
	if (!error)
		error = sonde_record_reserve();
	if (error) {
		sonde_record_buffers_stop();
		pthread_mutex_unlock(&sonde_recorder.control);
		return -error;
	}
	atomic_store(&sonde_recorder.session, session);
	__atomic_store_n(&sonde_record_session, session, __ATOMIC_RELEASE);
	pthread_mutex_unlock(&sonde_recorder.control);
	return 0;
}

int sonde_record_start(const char *path, const struct sonde_record_options *options)
{
	return path ? start(path, options) : -EINVAL;
}

int sonde_record_start_stream(const struct sonde_record_options *options)
{
	return start(NULL, options);
}

/* --- the tables at the end; all slots are the caller's --- */

struct string_cache {
	const char **keys;
	uint64_t *ids;
	size_t n, room;
};

/* The id of a string that lives as long as the symbols do: equal pointers are equal strings. */
static uint64_t cached_string(struct string_cache *cache, struct slot *s, const char *text)
{
	if (!*text)
		return 0;
	if (2 * cache->n >= cache->room) {
		size_t n = cache->room ? 2 * cache->room : 1024;
		struct string_cache more = {
			calloc(n, sizeof(char *)), calloc(n, sizeof(uint64_t)), 0, n};
		if (!more.keys || !more.ids) {
			free(more.keys);
			free(more.ids);
			return string_put(s, text);
		}
		for (size_t i = 0; i < cache->room; i++)
			if (cache->keys[i]) {
				size_t at =
					((uintptr_t)cache->keys[i] * UINT64_C(0x9e3779b97f4a7c15) >>
						32) %
					n;
				while (more.keys[at])
					at = (at + 1) % n;
				more.keys[at] = cache->keys[i];
				more.ids[at] = cache->ids[i];
				more.n++;
			}
		free(cache->keys);
		free(cache->ids);
		*cache = more;
	}
	size_t at = ((uintptr_t)text * UINT64_C(0x9e3779b97f4a7c15) >> 32) % cache->room;
	while (cache->keys[at] && cache->keys[at] != text)
		at = (at + 1) % cache->room;
	if (!cache->keys[at]) {
		cache->keys[at] = text;
		cache->ids[at] = string_put(s, text);
		cache->n++;
	}
	return cache->ids[at];
}

static void dump_stack(struct slot *s, struct symbols *symbols, struct string_cache *cache,
	const struct stack *stack)
{
	enum { FRAME_BYTES = 10 + 3 * 10 };
	uint64_t func[MAX_FRAMES], file[MAX_FRAMES];
	for (uint32_t i = 0; i < stack->n; i++) {
		const char *f = "", *where = "";
		if (stack->pcs[i] >> 63)
			func[i] = sonde_record_name_string(s, (uint32_t)stack->pcs[i]), file[i] = 0;
		else {
			sonde_record_symbols_find(symbols, stack->pcs[i] - 1, &f, &where);
			func[i] = cached_string(cache, s, f);
			file[i] = cached_string(cache, s, where);
		}
	}
	if (!room(s, 32 + stack->n * (size_t)FRAME_BYTES, false))
		return;
	uint8_t *p = s->pos;
	*p++ = SONDE_TRACE_V1_STACK | 3 << 6;
	uint8_t *length = p;
	p += 3;
	uint8_t *body = p;
	p = put(put(p, stack->id), stack->n);
	for (uint32_t i = 0; i < stack->n; i++) {
		/* Readers tell frames apart by their address alone. */
		p = put(p, stack->pcs[i] >> 63 ? (uint32_t)stack->pcs[i] : stack->pcs[i] - 1);
		p = put(put(put(p, func[i]), file[i]), 0);
	}
	put_padded(length, (uint64_t)(p - body), 3);
	s->pos = p;
}

static uint64_t frequency(void)
{
	uint64_t end_ns, end_ticks;
	/* Short traces: the frequency cannot be measured over less than a clock's step. */
	do {
		end_ticks = ticks_now();
		end_ns = monotonic_ns();
	} while (end_ns - sonde_recorder.start_ns < 100000 ||
		end_ticks <= sonde_recorder.start_ticks);
	double hz = (double)(end_ticks - sonde_recorder.start_ticks) * 1e9 /
		(double)(end_ns - sonde_recorder.start_ns);
	return sonde_recorder.use_tsc ? (uint64_t)(hz + 0.5) : 250000000;
}

/* Goroutines that did nothing while the trace was recorded, as they were all the time. */
static void introduce_silent(struct slot *tables)
{
	for (unsigned i = 0; i < N_REGISTRY_SHARDS; i++) {
		struct shard *shard = &sonde_recorder.shards[i];
		uint32_t none = 0;
		while (!atomic_compare_exchange_weak(&shard->lock, &none, 1)) {
			none = 0;
			sched_yield();
		}
		for (struct sonde_record_fiber *g = shard->first; g; g = g->next) {
			uint8_t is = __atomic_load_n(&g->state, __ATOMIC_ACQUIRE);
			if (g->session == sonde_recorder.last_session ||
				(is != G_WAITING && is != G_RUNNABLE) || !room(tables, 0, false))
				continue;
			sonde_record_introduce_silent(tables, g, is == G_WAITING);
		}
		atomic_store(&shard->lock, 0);
	}
}

int sonde_record_stop(struct sonde_record_stats *stats)
{
	pthread_mutex_lock(&sonde_recorder.control);
	if (!__atomic_load_n(&sonde_record_session, __ATOMIC_RELAXED)) {
		pthread_mutex_unlock(&sonde_recorder.control);
		return -ENOENT;
	}
	pthread_mutex_lock(&sonde_recorder.lock);
	sonde_recorder.stopping = true;
	pthread_cond_broadcast(&sonde_recorder.writable);
	pthread_mutex_unlock(&sonde_recorder.lock);

	atomic_store(&sonde_recorder.session, 0);
	__atomic_store_n(&sonde_record_session, 0, __ATOMIC_RELAXED);
	barrier();
	struct thread *self = &sonde_record_thread;
	pthread_mutex_lock(&sonde_recorder.threads_lock);
	for (struct thread *t = sonde_recorder.threads; t; t = t->next)
		while (t != self && __atomic_load_n(&t->busy, __ATOMIC_ACQUIRE))
			sched_yield();
	pthread_mutex_unlock(&sonde_recorder.threads_lock);

	/* What is written from here on goes to a processor of its own, whose time begins with the trace. */
	struct slot *tables = sonde_record_slot_new();
	int failure = atomic_load(&sonde_recorder.failure);
	if (!tables)
		failure = failure ? failure : EMFILE;
	else {
		tables->last = sonde_recorder.start_ticks;
		sonde_record_use_reserve(tables);
		if (room(tables, 64, false)) {
			introduce_silent(tables);
			*tables->pos++ = SONDE_TRACE_V1_FREQUENCY;
			tables->pos = put(tables->pos, frequency());
			struct symbols *symbols = sonde_record_symbols_new();
			struct string_cache cache = {0};
			for (size_t i = 0; i < N_STACK_BUCKETS; i++)
				for (struct stack *s = sonde_recorder.buckets[i]; s; s = s->next)
					dump_stack(tables, symbols, &cache, s);
			free(cache.keys);
			free(cache.ids);
			sonde_record_symbols_free(symbols);
		}
	}
	struct sonde_record_stats all = {0};
	uint32_t n = atomic_load(&sonde_recorder.n_slots);
	for (uint32_t i = 0; i < n; i++) {
		const struct slot *s = &sonde_recorder.slots[i];
		all.events += s->n_events;
		all.dropped_logs += s->dropped_logs;
		all.dropped_regions += s->dropped_regions;
		all.dropped_tasks += s->dropped_tasks;
		all.misused += s->misused;
	}
	all.stacks = atomic_load(&sonde_recorder.next_stack);
	all.strings = atomic_load(&sonde_recorder.n_strings);
	all.processors = n;
	all.goroutines = atomic_load(&sonde_recorder.n_goroutines);
	all.lost_in_signal = atomic_load(&sonde_recorder.lost_in_signal);
	all.lost_after_failure = atomic_load(&sonde_recorder.lost_after_failure);
	int error = sonde_record_buffers_stop();
	all.bytes = sonde_recorder.written_bytes;
	all.failure = atomic_load(&sonde_recorder.failure);
	if (!all.failure)
		all.failure = failure ? failure : error;
	sonde_record_stacks_free();
	if (stats && stats->size >= sizeof(stats->size)) {
		size_t known = stats->size < sizeof(all) ? stats->size : sizeof(all);
		all.size = stats->size;
		memset(stats, 0, stats->size);
		memcpy(stats, &all, known);
	}
	pthread_mutex_unlock(&sonde_recorder.control);
	return 0;
}

/* --- logs, regions, tasks --- */

void sonde_record_log(struct sonde_record_site *site, uint64_t task, const char *message, size_t n)
{
	struct thread *t = &sonde_record_thread;
	struct slot *s = enter(t);
	if (UNLIKELY(!s))
		return;
	enum { MOST = CHUNK_BYTES - EVENT_ROOM - PAD_ROOM - 128 };
	if (UNLIKELY(n > MOST))
		n = MOST;
	uint64_t key = site_string(s, t, site);
	if (UNLIKELY(!room(s, n + 10, true))) {
		s->dropped_logs++;
		leave(t);
		return;
	}
	uint32_t stack = STACK_HERE();
	uint8_t *p =
		put(put(put(event_begin(s, SONDE_TRACE_V1_USER_LOG, 3, ticks_now()), task), key),
			stack);
	s->pos[1] = (uint8_t)(p - s->pos - 2);
	p = put(p, n);
	memcpy(p, message, n);
	s->pos = p + n;
	leave(t);
}

/* The open regions of a goroutine: readers refuse a trace whose regions do not lie within one another. */
struct regions {
	uint32_t n, room;
	struct region {
		uintptr_t site; /* | 1: its begin was dropped */
		uint64_t task;
	} open[];
};

static bool region_push(
	struct sonde_record_fiber *g, struct sonde_record_site *site, uint64_t task, bool lost)
{
	struct regions *r = g->regions;
	if (UNLIKELY(!r || r->n == r->room)) {
		uint32_t more = r ? 2 * r->room : 14;
		struct regions *bigger = realloc(r, sizeof(*r) + more * sizeof(r->open[0]));
		if (!bigger)
			return false;
		if (!r)
			bigger->n = 0;
		bigger->room = more;
		g->regions = r = bigger;
	}
	r->open[r->n++] = (struct region){(uintptr_t)site | lost, task};
	return true;
}

static bool same_region(const struct region *r, const struct sonde_record_site *site, uint64_t task)
{
	const struct sonde_record_site *open =
		(const struct sonde_record_site *)(r->site & ~(uintptr_t)1);
	return r->task == task && (open == site || !strcmp(open->name, site->name));
}

static inline void region_event(struct slot *s, struct thread *t, struct sonde_record_site *site,
	uint64_t task, unsigned mode, uint32_t stack)
{
	uint64_t name = site_string(s, t, site);
	if (UNLIKELY(s->pos > s->limit) && !sonde_record_refill(s, false))
		return;
	event4(s, SONDE_TRACE_V1_USER_REGION, ticks_now(), task, mode, name, stack);
}

void sonde_record_region_begin(struct sonde_record_site *site, uint64_t task)
{
	struct thread *t = &sonde_record_thread;
	struct slot *s = enter(t);
	if (UNLIKELY(!s))
		return;
	if (UNLIKELY(!s->g)) {
		s->misused++; /* a processor that runs nothing */
	} else {
		bool lost = UNLIKELY(!room(s, 0, true));
		if (UNLIKELY(!region_push(s->g, site, task, lost)))
			lost = true;
		if (lost)
			s->dropped_regions++;
		else
			region_event(s, t, site, task, 0, STACK_HERE());
	}
	leave(t);
}

void sonde_record_region_end(struct sonde_record_site *site, uint64_t task)
{
	struct thread *t = &sonde_record_thread;
	struct slot *s = enter(t);
	if (UNLIKELY(!s))
		return;
	struct regions *r = s->g ? s->g->regions : NULL;
	uint32_t at = r ? r->n : 0;
	while (at && !same_region(&r->open[at - 1], site, task))
		at--;
	if (UNLIKELY(!at)) {
		s->misused++; /* never opened here, or before the trace began */
		leave(t);
		return;
	}
	uint32_t stack = STACK_HERE();
	while (r->n >= at) {
		const struct region *top = &r->open[--r->n];
		if (r->n >= at)
			s->misused++; /* closed by one around it */
		if (!(top->site & 1))
			region_event(
				s, t, (struct sonde_record_site *)top->site, top->task, 1, stack);
	}
	leave(t);
}

uint64_t sonde_record_task_begin(struct sonde_record_site *site, uint64_t parent)
{
	struct thread *t = &sonde_record_thread;
	struct slot *s = enter(t);
	if (UNLIKELY(!s))
		return 0;
	uint64_t id = atomic_fetch_add_explicit(&sonde_recorder.next_task, 1, memory_order_relaxed);
	uint64_t name = site_string(s, t, site);
	if (room(s, 0, true))
		event4(s, SONDE_TRACE_V1_USER_TASK_CREATE, ticks_now(), id, parent, name,
			STACK_HERE());
	else
		s->dropped_tasks++;
	leave(t);
	return id;
}

void sonde_record_task_end(uint64_t task)
{
	struct thread *t = &sonde_record_thread;
	struct slot *s = task ? enter(t) : NULL;
	if (UNLIKELY(!s))
		return;
	event2(s, SONDE_TRACE_V1_USER_TASK_END, ticks_now(), task, STACK_HERE());
	leave(t);
}

/* --- runtimes with a collector --- */

#define ENTER_OR_RETURN()                                          \
	struct thread *t = &sonde_record_thread;                   \
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL; \
	if (!s)                                                    \
	return

void sonde_record_gc_begin(void)
{
	ENTER_OR_RETURN();
	if (atomic_exchange(&sonde_recorder.in_gc, true))
		s->misused++;
	else
		event2(s, SONDE_TRACE_V1_GC_START, ticks_now(),
			atomic_fetch_add(&sonde_recorder.gc_seq, 1), STACK_HERE());
	leave(t);
}

void sonde_record_gc_end(void)
{
	ENTER_OR_RETURN();
	if (!atomic_exchange(&sonde_recorder.in_gc, false))
		s->misused++;
	else
		event0(s, SONDE_TRACE_V1_GC_DONE, ticks_now());
	leave(t);
}

void sonde_record_stop_world_begin(uint32_t kind)
{
	ENTER_OR_RETURN();
	if (atomic_exchange(&sonde_recorder.in_stw, true))
		s->misused++;
	else
		event1(s, SONDE_TRACE_V1_STW_START, ticks_now(), kind);
	leave(t);
}

void sonde_record_stop_world_end(void)
{
	ENTER_OR_RETURN();
	/* Done only after a start in this trace. */
	if (atomic_exchange(&sonde_recorder.in_stw, false))
		event0(s, SONDE_TRACE_V1_STW_DONE, ticks_now());
	leave(t);
}

void sonde_record_sweep_begin(void)
{
	ENTER_OR_RETURN();
	if (s->sweeping)
		s->misused++;
	s->sweeping = true;
	s->swept = s->reclaimed = 0;
	leave(t);
}

void sonde_record_sweep_span(uint64_t swept_bytes, uint64_t reclaimed_bytes)
{
	ENTER_OR_RETURN();
	if (s->sweeping) {
		if (!s->swept && swept_bytes)
			event1(s, SONDE_TRACE_V1_GC_SWEEP_START, ticks_now(), STACK_HERE());
		s->swept += swept_bytes;
		s->reclaimed += reclaimed_bytes;
	}
	leave(t);
}

void sonde_record_sweep_end(void)
{
	ENTER_OR_RETURN();
	if (s->sweeping && s->swept)
		event2(s, SONDE_TRACE_V1_GC_SWEEP_DONE, ticks_now(), s->swept, s->reclaimed);
	s->sweeping = false;
	leave(t);
}

void sonde_record_assist_begin(void)
{
	ENTER_OR_RETURN();
	if (s->g)
		event1(s, SONDE_TRACE_V1_GC_MARK_ASSIST_START, ticks_now(), STACK_HERE());
	leave(t);
}

void sonde_record_assist_end(void)
{
	ENTER_OR_RETURN();
	if (s->g)
		event0(s, SONDE_TRACE_V1_GC_MARK_ASSIST_DONE, ticks_now());
	leave(t);
}

void sonde_record_heap(uint64_t live_bytes)
{
	ENTER_OR_RETURN();
	event1(s, SONDE_TRACE_V1_HEAP_ALLOC, ticks_now(), live_bytes);
	leave(t);
}

void sonde_record_heap_goal(uint64_t bytes)
{
	ENTER_OR_RETURN();
	event1(s, SONDE_TRACE_V1_HEAP_GOAL, ticks_now(), bytes);
	leave(t);
}

void sonde_record_max_procs(uint32_t n)
{
	ENTER_OR_RETURN();
	event2(s, SONDE_TRACE_V1_GOMAXPROCS, ticks_now(), n, STACK_HERE());
	leave(t);
}
