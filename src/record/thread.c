#include "record/internal.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

__thread struct thread sonde_record_thread __attribute__((tls_model("initial-exec")));

static pthread_key_t end_key;
static pthread_once_t end_once = PTHREAD_ONCE_INIT;

/* --- the registry of goroutines --- */

static struct shard *lock_shard(unsigned i)
{
	struct shard *shard = &sonde_recorder.shards[i];
	uint32_t none = 0;
	while (!atomic_compare_exchange_weak_explicit(
		&shard->lock, &none, 1, memory_order_acquire, memory_order_relaxed)) {
		none = 0;
		sched_yield();
	}
	return shard;
}

static void unlock_shard(struct shard *shard)
{
	atomic_store_explicit(&shard->lock, 0, memory_order_release);
}

static void registry_add(struct sonde_record_fiber *g)
{
	/* Index + 1: its own thread may ask without a lock whether it is in. */
	g->shard = (uint8_t)(1 + (((uintptr_t)g >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 58));
	struct shard *shard = lock_shard(g->shard - 1);
	g->next = shard->first;
	g->link = &shard->first;
	if (g->next)
		g->next->link = &g->next;
	shard->first = g;
	unlock_shard(shard);
}

static void registry_remove(struct sonde_record_fiber *g)
{
	if (!g->shard)
		return;
	struct shard *shard = lock_shard(g->shard - 1);
	*g->link = g->next;
	if (g->next)
		g->next->link = g->link;
	g->shard = 0;
	unlock_shard(shard);
}

/* --- processors --- */

struct slot *sonde_record_slot_take(void)
{
	uint64_t head = atomic_load_explicit(&sonde_recorder.free_slots, memory_order_acquire);
	while ((uint32_t)head) {
		struct slot *s = &sonde_recorder.slots[(uint32_t)head - 1];
		uint64_t next = ((head >> 32) + 1) << 32 |
			atomic_load_explicit(&s->next_free, memory_order_relaxed);
		if (atomic_compare_exchange_weak_explicit(&sonde_recorder.free_slots, &head, next,
			    memory_order_acq_rel, memory_order_acquire))
			return s;
	}
	return sonde_record_slot_new();
}

struct slot *sonde_record_slot_new(void)
{
	uint32_t i = atomic_fetch_add(&sonde_recorder.n_slots, 1);
	if (i >= MAX_SLOTS) {
		atomic_fetch_sub(&sonde_recorder.n_slots, 1);
		return NULL;
	}
	struct slot *s = &sonde_recorder.slots[i];
	s->id = i;
	return s;
}

static void slot_give(struct slot *s)
{
	uint64_t head = atomic_load_explicit(&sonde_recorder.free_slots, memory_order_relaxed),
		 next;
	do {
		atomic_store_explicit(&s->next_free, (uint32_t)head, memory_order_relaxed);
		next = ((head >> 32) + 1) << 32 | (s->id + 1);
	} while (!atomic_compare_exchange_weak_explicit(&sonde_recorder.free_slots, &head, next,
		memory_order_release, memory_order_relaxed));
}

/* --- goroutines --- */

static uint8_t state_of(const struct sonde_record_fiber *g)
{
	return __atomic_load_n(&g->state, __ATOMIC_ACQUIRE);
}

static void set_state(struct sonde_record_fiber *g, uint8_t to)
{
	__atomic_store_n(&g->state, to, __ATOMIC_RELEASE);
}

static bool change_state(struct sonde_record_fiber *g, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(
		&g->state, &from, to, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
}

void sonde_record_regions_free(struct sonde_record_fiber *g)
{
	free(g->regions);
	g->regions = NULL;
}

/* The time of an event that comes after all that was written of g: clocks of two CPUs may differ. */
static uint64_t ticks_after(const struct sonde_record_fiber *g)
{
	uint64_t now = ticks_now();
	return now > g->ticks ? now : g->ticks;
}

/* A pseudo address that stands for a name in sonde_recorder.names; no code lies there. */
enum { NAME_BIT = 63 };

static uint32_t start_stack(const struct sonde_record_fiber *g)
{
	uint64_t pc;
	uint32_t name = __atomic_load_n(&g->name, __ATOMIC_RELAXED);
	if (name)
		pc = UINT64_C(1) << NAME_BIT | name;
	else if (g->start)
		pc = (uint64_t)g->start + 1; /* stacks hold return addresses */
	else
		return 0;
	const struct stack *s = sonde_record_stack_put(&pc, 1, sonde_record_stack_hash(&pc, 1));
	return s ? s->id : 0;
}

/*
 * The first word of g in this session, on the slot s: it exists, and blocks already or is runnable. Only by the one who
 * may change its state: its own thread, its creator, its waker, the one that starts it.
 */
void sonde_record_introduce(struct slot *s, struct sonde_record_fiber *g, bool waiting)
{
	uint32_t session = atomic_load_explicit(&sonde_recorder.session, memory_order_relaxed);
	if (!session)
		session = sonde_recorder.last_session; /* the end of it, by stop() */
	if (g->session == session)
		return;
	g->session = session;
	g->id = sonde_recorder.v1_caller_ids && g->caller_id
		? g->caller_id
		: atomic_fetch_add(&sonde_recorder.next_g, 1);
	g->seq = 0;
	g->ticks = 0;
	sonde_record_regions_free(g);
	atomic_fetch_add_explicit(&sonde_recorder.n_goroutines, 1, memory_order_relaxed);
	uint64_t now = ticks_now();
	event3(s, SONDE_TRACE_V1_GO_CREATE, now, g->id, start_stack(g), 0);
	g->processor = s->id;
	g->traced_waiting = waiting;
	if (waiting) {
		event1(s, g->in_syscall ? SONDE_TRACE_V1_GO_IN_SYSCALL : SONDE_TRACE_V1_GO_WAITING,
			now, g->id);
		g->seq = 1;
	}
	g->ticks = s->last;
}

void sonde_record_introduce_silent(struct slot *s, const struct sonde_record_fiber *g, bool waiting)
{
	uint64_t id = sonde_recorder.v1_caller_ids && g->caller_id
		? g->caller_id
		: atomic_fetch_add(&sonde_recorder.next_g, 1);
	atomic_fetch_add_explicit(&sonde_recorder.n_goroutines, 1, memory_order_relaxed);
	event3(s, SONDE_TRACE_V1_GO_CREATE, s->last + 1, id, start_stack(g), 0);
	if (waiting)
		event1(s, g->in_syscall ? SONDE_TRACE_V1_GO_IN_SYSCALL : SONDE_TRACE_V1_GO_WAITING,
			s->last + 1, id);
}

static void go_unblock(struct slot *s, struct sonde_record_fiber *g, uint32_t stack)
{
	uint64_t now = ticks_after(g);
	g->seq++;
	if (g->processor == s->id)
		event2(s, SONDE_TRACE_V1_GO_UNBLOCK_LOCAL, now, g->id, stack);
	else
		event3(s, SONDE_TRACE_V1_GO_UNBLOCK, now, g->id, g->seq, stack);
	g->processor = s->id;
	g->ticks = s->last;
	g->traced_waiting = false;
}

/* g begins to run on s, whatever the trace knows of it. */
static void go_start(struct slot *s, struct sonde_record_fiber *g)
{
	bool blocked = change_state(g, G_WAITING, G_UNBLOCKING);
	while (!blocked && state_of(g) == G_UNBLOCKING)
		sched_yield(); /* its waker is writing */
	sonde_record_introduce(s, g, blocked);
	if (g->traced_waiting)
		go_unblock(s, g, 0);
	uint64_t now = ticks_after(g);
	g->seq++;
	if (g->label)
		event3(s, SONDE_TRACE_V1_GO_START_LABEL, now, g->id, g->seq,
			sonde_record_name_string(s, g->label));
	else if (g->processor == s->id)
		event1(s, SONDE_TRACE_V1_GO_START_LOCAL, now, g->id);
	else
		event2(s, SONDE_TRACE_V1_GO_START, now, g->id, g->seq);
	g->processor = s->id;
	g->ticks = s->last;
	s->g = g;
	set_state(g, G_RUNNING);
}

/* The running goroutine of s leaves it. */
static struct sonde_record_fiber *go_leave(
	struct slot *s, enum sonde_trace_v1_type event, uint32_t stack)
{
	struct sonde_record_fiber *g = s->g;
	uint64_t now = ticks_now();
	if (event == SONDE_TRACE_V1_GO_END)
		event0(s, event, now);
	else
		event1(s, event, now, stack);
	g->processor = s->id;
	g->ticks = s->last;
	g->traced_waiting = event != SONDE_TRACE_V1_GO_END && event != SONDE_TRACE_V1_GO_SCHED;
	s->g = NULL;
	return g;
}

/* --- names --- */

static uint32_t name_put(const char *text)
{
	uint32_t ret = 0;
	pthread_mutex_lock(&sonde_recorder.names_lock);
	for (uint32_t i = 0; i < sonde_recorder.n_names && !ret; i++)
		if (!strcmp(sonde_recorder.names[i].text, text))
			ret = i + 1;
	if (!ret) {
		if (sonde_recorder.n_names == sonde_recorder.names_room) {
			uint32_t room =
				sonde_recorder.names_room ? 2 * sonde_recorder.names_room : 64;
			struct name *more = realloc(sonde_recorder.names, room * sizeof(*more));
			if (more) {
				sonde_recorder.names = more;
				sonde_recorder.names_room = room;
			}
		}
		char *copy = sonde_recorder.n_names < sonde_recorder.names_room
			? strndup(text, 1000)
			: NULL;
		if (copy) {
			sonde_recorder.names[sonde_recorder.n_names++] = (struct name){copy, 0};
			ret = sonde_recorder.n_names;
		}
	}
	pthread_mutex_unlock(&sonde_recorder.names_lock);
	return ret;
}

/* --- threads --- */

static void thread_ended(void *arg)
{
	struct thread *t = &sonde_record_thread;
	(void)arg;
	if (t->slot && t->session == atomic_load(&sonde_recorder.session)) {
		struct slot *s = enter(t);
		if (s) {
			if (s->g)
				go_leave(s, SONDE_TRACE_V1_GO_END, 0);
			event0(s, SONDE_TRACE_V1_PROC_STOP, ticks_now());
			slot_give(s);
			t->slot = NULL;
			leave(t);
		}
	}
	pthread_mutex_lock(&sonde_recorder.threads_lock);
	if (t->link) {
		*t->link = t->next;
		if (t->next)
			t->next->link = t->link;
		t->link = NULL;
	}
	pthread_mutex_unlock(&sonde_recorder.threads_lock);
	registry_remove(&t->own);
	sonde_record_regions_free(&t->own);
	memset(t, 0, sizeof(*t));
}

static void make_key(void)
{
	pthread_key_create(&end_key, thread_ended);
}

/* Once a thread: where its stack lies, and that its end is heard of. */
void sonde_record_thread_register(struct thread *t)
{
	pthread_once(&end_once, make_key);
	t->registered = true;
	t->tid = (uint32_t)syscall(SYS_gettid);
	pthread_attr_t attributes;
	if (!pthread_getattr_np(pthread_self(), &attributes)) {
		void *low;
		size_t bytes;
		if (!pthread_attr_getstack(&attributes, &low, &bytes)) {
			t->stack_low = (uintptr_t)low;
			t->stack_high = (uintptr_t)low + bytes;
		}
		pthread_attr_destroy(&attributes);
	}
	if (!t->own.state)
		t->own.state = G_RUNNING;
	char comm[32] = "";
	if (!t->own.name && !t->own.start && !prctl(PR_GET_NAME, comm) && *comm)
		t->own.name = name_put(comm);
	pthread_mutex_lock(&sonde_recorder.threads_lock);
	t->next = sonde_recorder.threads;
	t->link = &sonde_recorder.threads;
	if (t->next)
		t->next->link = &t->next;
	sonde_recorder.threads = t;
	pthread_mutex_unlock(&sonde_recorder.threads_lock);
	if (!t->own.shard)
		registry_add(&t->own);
	pthread_setspecific(end_key, t);
}

static inline void need_thread(struct thread *t)
{
	if (UNLIKELY(!t->registered)) {
		/* A handler that comes meanwhile loses its event. */
		t->busy = 1;
		sonde_record_thread_register(t);
		t->busy = 0;
	}
}

/*
 * The thread has no slot of the running session: its first event, the first after it blocked without wake(), or a stop.
 * busy is set.
 */
struct slot *sonde_record_enter_slow(struct thread *t)
{
	uint32_t session = atomic_load(&sonde_recorder.session);
	if (!session) {
		leave(t);
		if (__atomic_load_n(&sonde_record_session, __ATOMIC_RELAXED))
			atomic_fetch_add(&sonde_recorder.lost_after_failure, 1);
		return NULL;
	}
	if (!t->registered) {
		sonde_record_thread_register(t);
		/* Only now a stop waits for this thread. */
		atomic_thread_fence(memory_order_seq_cst);
		session = atomic_load(&sonde_recorder.session);
		if (!session) {
			leave(t);
			return NULL;
		}
	}
	struct slot *s = sonde_record_slot_take();
	if (!s) {
		leave(t);
		atomic_fetch_add(&sonde_recorder.lost_after_failure, 1);
		return NULL;
	}
	if ((s->pos > s->limit || !s->pos) && !sonde_record_refill(s, false)) {
		slot_give(s);
		leave(t);
		return NULL;
	}
	sonde_record_attach(t, s, session);
	return s;
}

void sonde_record_attach(struct thread *t, struct slot *s, uint32_t session)
{
	if (t->session != session)
		memset(t->stacks, 0, sizeof(t->stacks));
	t->slot = s;
	t->session = session;
	t->syscall_ticks = 0;
	event1(s, SONDE_TRACE_V1_PROC_START, ticks_now(), t->tid);
	struct sonde_record_fiber *g = t->is_processor ? t->fiber : &t->own;
	if (g)
		go_start(s, g);
}

struct sonde_record_fiber *sonde_record_self(void)
{
	struct thread *t = &sonde_record_thread;
	need_thread(t);
	return t->is_processor && t->fiber ? t->fiber : &t->own;
}

/* A signal handler that came while the recorder was writing: its transition is left out whole, and counted. */
static inline bool interrupted(struct thread *t)
{
	if (LIKELY(!t->busy))
		return false;
	if (atomic_load_explicit(&sonde_recorder.session, memory_order_relaxed))
		atomic_fetch_add_explicit(&sonde_recorder.lost_in_signal, 1, memory_order_relaxed);
	return true;
}

static const uint8_t reason_events[SONDE_RECORD_N_REASONS] = {
	[SONDE_RECORD_BLOCKED] = SONDE_TRACE_V1_GO_BLOCK,
	[SONDE_RECORD_SLEEP] = SONDE_TRACE_V1_GO_SLEEP,
	[SONDE_RECORD_SYNC] = SONDE_TRACE_V1_GO_BLOCK_SYNC,
	[SONDE_RECORD_COND] = SONDE_TRACE_V1_GO_BLOCK_COND,
	[SONDE_RECORD_NET] = SONDE_TRACE_V1_GO_BLOCK_NET,
	[SONDE_RECORD_SEND] = SONDE_TRACE_V1_GO_BLOCK_SEND,
	[SONDE_RECORD_RECV] = SONDE_TRACE_V1_GO_BLOCK_RECV,
	[SONDE_RECORD_SELECT] = SONDE_TRACE_V1_GO_BLOCK_SELECT,
	[SONDE_RECORD_GC] = SONDE_TRACE_V1_GO_BLOCK_GC,
	[SONDE_RECORD_FOREVER] = SONDE_TRACE_V1_GO_BLOCK,
};

static enum sonde_trace_v1_type reason_event(enum sonde_record_reason reason)
{
	return (unsigned)reason < SONDE_RECORD_N_REASONS ? reason_events[reason]
							 : SONDE_TRACE_V1_GO_BLOCK;
}

void sonde_record_block(enum sonde_record_reason reason)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	need_thread(t);
	if (t->is_processor)
		return;
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (s) {
		go_leave(s, reason_event(reason), STACK_HERE());
		event0(s, SONDE_TRACE_V1_PROC_STOP, ticks_now());
		t->slot = NULL;
		slot_give(s);
	}
	set_state(&t->own, G_WAITING);
	if (s)
		leave(t);
}

void sonde_record_wake(void)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	need_thread(t);
	if (t->is_processor || state_of(&t->own) == G_RUNNING)
		return;
	if (SONDE_RECORD_ENABLED() && t->slot && t->session == atomic_load(&sonde_recorder.session))
		return; /* it has a processor: it does not block */
	/* enter() of a thread without a slot takes one, unblocks and starts it. */
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (s) {
		leave(t);
		return;
	}
	while (state_of(&t->own) == G_UNBLOCKING)
		sched_yield();
	set_state(&t->own, G_RUNNING);
}

void sonde_record_unblock(struct sonde_record_fiber *g)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	if (!change_state(g, G_WAITING, G_UNBLOCKING))
		return;
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (s) {
		sonde_record_introduce(s, g, true);
		go_unblock(s, g, STACK_HERE());
	}
	set_state(g, G_RUNNABLE);
	if (s)
		leave(t);
}

enum { SYSCALL_BLOCKED_NS = 20000 };

void sonde_record_syscall_begin(void)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	t->syscall_ticks = 0;
	if (!SONDE_RECORD_ENABLED())
		return;
	struct slot *s = enter(t);
	if (!s)
		return;
	if (s->g) {
		event1(s, SONDE_TRACE_V1_GO_SYSCALL, ticks_now(), STACK_HERE());
		t->syscall_ticks = s->last;
	} else {
		s->misused++;
	}
	leave(t);
}

void sonde_record_syscall_end(void)
{
	struct thread *t = &sonde_record_thread;
	if (!t->syscall_ticks || !SONDE_RECORD_ENABLED())
		return;
	struct slot *s = enter(t);
	if (!s)
		return;
	uint64_t begun = t->syscall_ticks, now = ticks_now();
	t->syscall_ticks = 0;
	/* A new session may have begun in between: then it is not in this trace. */
	if (begun && s->g && begun == s->last) {
		static const double tick_ns =
			TSC_SHIFT ? 4 : 1; /* at least; enough for a threshold */
		if ((now - begun) * tick_ns >= SYSCALL_BLOCKED_NS) {
			struct sonde_record_fiber *g = s->g;
			event0(s, SONDE_TRACE_V1_GO_SYSBLOCK, begun + 1);
			event0(s, SONDE_TRACE_V1_PROC_STOP, begun + 2);
			s->g = NULL;
			event1(s, SONDE_TRACE_V1_PROC_START, now, t->tid);
			g->seq++;
			event3(s, SONDE_TRACE_V1_GO_SYSEXIT, now, g->id, g->seq, 0);
			g->processor = s->id;
			g->ticks = s->last;
			go_start(s, g);
		}
	}
	leave(t);
}

void sonde_record_yield(void)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	if (!SONDE_RECORD_ENABLED() || t->is_processor)
		return;
	struct slot *s = enter(t);
	if (!s)
		return;
	struct sonde_record_fiber *g = go_leave(s, SONDE_TRACE_V1_GO_SCHED, STACK_HERE());
	go_start(s, g);
	leave(t);
}

struct started {
	void *(*start)(void *);
	void *arg;
	struct sonde_record_fiber g;
};

static void *run_thread(void *arg)
{
	struct started *started = arg;
	struct thread *t = &sonde_record_thread;
	void *(*start)(void *) = started->start;
	void *start_arg = started->arg;
	t->busy = 1;
	t->own = started->g;
	free(started);
	sonde_record_thread_register(t);
	t->busy = 0;
	if (SONDE_RECORD_ENABLED()) {
		if (enter(t))
			leave(t);
	} else {
		set_state(&t->own, G_RUNNING);
	}
	/*
	 * What lies above is not the program's: stacks end at the start function. Its frame ends at this stack pointer.
	 */
#if defined(__x86_64__)
	uintptr_t sp;
	__asm__("mov %%rsp, %0" : "=r"(sp));
	t->stack_high = sp - 1;
#endif
	void *ret = start(start_arg);
	__asm__ volatile("" : "+r"(ret)); /* not a tail call */
	return ret;
}

int sonde_record_thread_create(
	void *thread, const void *attributes, void *(*start)(void *), void *arg)
{
	struct thread *t = &sonde_record_thread;
	struct started *started = calloc(1, sizeof(*started));
	if (!started)
		return EAGAIN;
	started->start = start;
	started->arg = arg;
	started->g.start = (void *)start;
	started->g.state = G_RUNNABLE;
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (s) {
		struct sonde_record_fiber *g = &started->g;
		g->session = t->session;
		g->id = atomic_fetch_add(&sonde_recorder.next_g, 1);
		atomic_fetch_add_explicit(&sonde_recorder.n_goroutines, 1, memory_order_relaxed);
		event3(s, SONDE_TRACE_V1_GO_CREATE, ticks_now(), g->id, start_stack(g),
			STACK_HERE());
		g->processor = s->id;
		g->ticks = s->last;
		leave(t);
	}
	int error = pthread_create(thread, attributes, run_thread, started);
	/* One that could not be made stays runnable for ever in the trace. */
	if (error)
		free(started);
	return error;
}

void sonde_record_thread_name(const char *name)
{
	struct thread *t = &sonde_record_thread;
	need_thread(t);
	__atomic_store_n(&t->own.name, name_put(name), __ATOMIC_RELAXED);
}

uint32_t sonde_record_label(const char *text)
{
	return name_put(text);
}

void sonde_record_fiber_set_label(struct sonde_record_fiber *f, uint32_t label)
{
	f->label = label;
}

/* --- explicit runtimes --- */

void sonde_record_proc_start(void)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	need_thread(t);
	if (t->is_processor)
		return;
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (s) {
		go_leave(s, SONDE_TRACE_V1_GO_BLOCK, STACK_HERE());
		set_state(&t->own, G_WAITING);
		leave(t);
	} else {
		set_state(&t->own, G_WAITING);
	}
	t->is_processor = true;
}

void sonde_record_proc_stop(void)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	if (!t->is_processor)
		return;
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	struct sonde_record_fiber *f = t->fiber;
	if (s) {
		if (f) {
			s->misused++;
			go_leave(s, SONDE_TRACE_V1_GO_BLOCK, 0);
		}
		event0(s, SONDE_TRACE_V1_PROC_STOP, ticks_now());
		t->slot = NULL;
		slot_give(s);
	}
	if (f)
		set_state(f, G_WAITING);
	t->fiber = NULL;
	t->is_processor = false;
	if (s)
		leave(t);
}

void sonde_record_fiber_create(struct sonde_record_fiber *f, uint64_t id, void (*start)(void),
	void *stack, size_t stack_bytes)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	registry_remove(f);
	memset(f, 0, sizeof(*f));
	f->caller_id = id;
	f->start = (void *)start;
	f->stack_low = (uintptr_t)stack;
	f->stack_high = (uintptr_t)stack + stack_bytes;
	f->processor = NO_PROCESSOR;
	f->state = G_RUNNABLE;
	registry_add(f);
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (s) {
		uint32_t from = STACK_HERE();
		f->session = t->session;
		f->id = sonde_recorder.v1_caller_ids && id
			? id
			: atomic_fetch_add(&sonde_recorder.next_g, 1);
		atomic_fetch_add_explicit(&sonde_recorder.n_goroutines, 1, memory_order_relaxed);
		event3(s, SONDE_TRACE_V1_GO_CREATE, ticks_now(), f->id, start_stack(f), from);
		f->processor = s->id;
		f->ticks = s->last;
		leave(t);
	}
}

void sonde_record_fiber_start(struct sonde_record_fiber *f)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	uint8_t was = state_of(f);
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (!t->is_processor || t->fiber || was == G_RUNNING || was == G_NEW) {
		/* Not a processor, it runs another one, or f runs elsewhere or has ended: no trace can say that. */
		if (s) {
			s->misused++;
			leave(t);
		}
		return;
	}
	if (s)
		go_start(s, f);
	set_state(f, G_RUNNING);
	t->fiber = f;
	if (s)
		leave(t);
}

static void fiber_leave(enum sonde_trace_v1_type event, uint8_t to, void **frame)
{
	struct thread *t = &sonde_record_thread;
	if (UNLIKELY(interrupted(t)))
		return;
	struct sonde_record_fiber *f = t->fiber;
	struct slot *s = SONDE_RECORD_ENABLED() ? enter(t) : NULL;
	if (!f) {
		if (s) {
			s->misused++;
			leave(t);
		}
		return;
	}
	if (s)
		go_leave(s, event,
			frame && sonde_recorder.stack_depth ? sonde_record_stack_of(frame) : 0);
	t->fiber = NULL;
	if (to == G_NEW) {
		sonde_record_regions_free(f);
		registry_remove(f);
	}
	set_state(f, to);
	if (s)
		leave(t);
}

void sonde_record_fiber_block(enum sonde_record_reason reason)
{
	fiber_leave(reason_event(reason), G_WAITING, __builtin_frame_address(0));
}

void sonde_record_fiber_yield(void)
{
	fiber_leave(SONDE_TRACE_V1_GO_SCHED, G_RUNNABLE, __builtin_frame_address(0));
}

void sonde_record_fiber_end(void)
{
	fiber_leave(SONDE_TRACE_V1_GO_END, G_NEW, NULL);
}

void sonde_record_fiber_forget(struct sonde_record_fiber *f)
{
	registry_remove(f);
	sonde_record_regions_free(f);
	set_state(f, G_NEW);
}
