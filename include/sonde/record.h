/*
 * sonde/record.h: Go's execution tracer for C and C++ programs. The program says when its threads or fibers run, block,
 * wake, and what they work for; the recorder writes a file that `go tool trace` (Go 1.21 to 1.27) and `sonde trace` open.
 *
 *	sonde_record_start("out.trace", NULL);
 *	{
 *		SONDE_RECORD_REGION("parse");
 *		SONDE_RECORD_LOG(0, "file", path);
 *	}
 *	sonde_record_stop(NULL);
 *
 * The words are Go's: a *goroutine* is what runs (a thread of the program, or a fiber of its own), a *processor* what it
 * runs on. A plain thread takes a processor when it starts or wakes and gives it back when it blocks; there are as many
 * as ever ran at once. User space cannot see that the kernel took a thread from its CPU: "running" means that it did not
 * say that it blocks. Programs with an own scheduler say which fiber runs when: see "fibers".
 *
 * Threads: every function may be called from every thread at any time, but where it says otherwise. Signal handlers:
 * one that interrupted the recorder itself loses its event, which is counted; other than that all functions that write
 * an event are async-signal-safe as long as no buffer fills up, and none but them is.
 *
 * Results: 0 or a negative errno value. Functions that write events have none: what cannot be written is counted, see
 * struct sonde_record_stats.
 *
 * SONDE_RECORD_DISABLE before the include makes every macro nothing.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_RECORD_API __attribute__((visibility("default")))

/* --- the session --- */

enum sonde_record_version {
	SONDE_RECORD_V1_21 = 0, /* what every Go tool from 1.21 to 1.27 reads */
	SONDE_RECORD_V1_19,
	SONDE_RECORD_V1_11, /* without CPU samples */
};

/* What happens when max_bytes are used up, or the stream's reader is slow. */
enum sonde_record_overflow {
	SONDE_RECORD_DROP =
		0, /* logs, regions, tasks are dropped singly and counted; transitions are kept */
	SONDE_RECORD_BLOCK, /* the writer waits for the reader; streams only, a file drops */
};

struct sonde_record_options {
	size_t size; /* of this struct, as the caller knows it */
	enum sonde_record_version version;
	enum sonde_record_overflow overflow;
	uint64_t
		max_bytes; /* of the file; of buffers that wait to be read; 0 = no limit, for streams 64 MiB */
	uint32_t stack_depth; /* frames of a stack; 0 = 32; at most 128 */
	bool no_stacks;
	bool monotonic_clock; /* clock_gettime() also where the time stamp counter is sound */
	bool caller_ids; /* fibers appear under the ids that they were made with, threads from 2^32 up; else all are numbered */
	bool keep_at_exit; /* do not stop when the process exits: the file stays without names */
};

struct sonde_record_stats {
	size_t size; /* set by the caller */
	uint64_t events, bytes, stacks, strings, processors, goroutines;
	uint64_t dropped_logs, dropped_regions, dropped_tasks; /* by the overflow policy */
	uint64_t lost_in_signal; /* events of handlers that had interrupted the recorder */
	uint64_t lost_after_failure; /* events after the file could not grow any more */
	uint64_t
		misused; /* calls that made no sense and were left out: a region closed that is not open, ... */
	int failure; /* 0, or the errno value of what ended the trace early (ENOSPC, ENOMEM) */
};

/*
 * Begin to record into the file `path`, which is created or emptied. options may be NULL. -EALREADY: a trace is being
 * recorded or, after a stop, still being read. -EINVAL: the options make no sense. Or what open() says.
 */
SONDE_RECORD_API int sonde_record_start(
	const char *path, const struct sonde_record_options *options);

/* Begin to record into memory, for sonde_record_read(). */
SONDE_RECORD_API int sonde_record_start_stream(const struct sonde_record_options *options);

/*
 * The next bytes of a stream, at most n: their number, 0 at the end of the trace. Waits until there are some. One reader
 * at a time: -EBUSY for a second. -EINVAL: no stream was started.
 */
SONDE_RECORD_API ssize_t sonde_record_read(void *to, size_t n);

/*
 * End the trace; of a stream, wait until its last byte was read. What other threads are writing at this moment is either
 * in the trace whole or not at all. stats may be NULL. -ENOENT: none is being recorded. stats->failure says whether it
 * is complete.
 */
SONDE_RECORD_API int sonde_record_stop(struct sonde_record_stats *stats);

/* The session that is recorded, 0 = none. Not for callers: see SONDE_RECORD_ENABLED(). */
extern SONDE_RECORD_API uint32_t sonde_record_session;

#ifdef SONDE_RECORD_DISABLE
#define SONDE_RECORD_ENABLED() false
#else
/* Whether a trace is being recorded: one load. */
#define SONDE_RECORD_ENABLED() \
	__builtin_expect(__atomic_load_n(&sonde_record_session, __ATOMIC_RELAXED) != 0, 0)
#endif

/* --- what the program works for: logs, regions, tasks --- */

/* A place in the program with a constant name. Static; the macros make them. `id` is the recorder's. */
struct sonde_record_site {
	const char *name;
	uint64_t id;
};

#define SONDE_RECORD_SITE_INIT(name) \
	{                            \
		name, 0              \
	}

/*
 * A message of n bytes under the site's name, for task (0 = none). Cut to the room of a buffer (about 64 KB). UTF-8 is
 * expected, not checked.
 */
SONDE_RECORD_API void sonde_record_log(
	struct sonde_record_site *site, uint64_t task, const char *message, size_t n);

/*
 * Regions of the running goroutine lie within one another. An end names the same site and task as its begin; regions
 * that were opened within and are still open end with it, an end of what is not open is left out; both count as misused.
 */
SONDE_RECORD_API void sonde_record_region_begin(struct sonde_record_site *site, uint64_t task);
SONDE_RECORD_API void sonde_record_region_end(struct sonde_record_site *site, uint64_t task);

/* A task: work that may cross threads. Returns its id; 0 while nothing is recorded. Parent 0 = none. */
SONDE_RECORD_API uint64_t sonde_record_task_begin(struct sonde_record_site *site, uint64_t parent);
SONDE_RECORD_API void sonde_record_task_end(uint64_t task); /* of any thread; 0 does nothing */

#ifndef SONDE_RECORD_DISABLE

struct sonde_record_scope {
	struct sonde_record_site *site;
	uint64_t task;
	uint32_t session; /* it was begun in; 0 = it was not */
};

static inline struct sonde_record_scope sonde_record_scope_begin(
	struct sonde_record_site *site, uint64_t task)
{
	struct sonde_record_scope scope = {
		site, task, __atomic_load_n(&sonde_record_session, __ATOMIC_RELAXED)};
	if (__builtin_expect(scope.session != 0, 0))
		sonde_record_region_begin(site, task);
	return scope;
}

static inline void sonde_record_scope_end(struct sonde_record_scope *scope)
{
	if (__builtin_expect(scope->session != 0, 0) &&
		scope->session == __atomic_load_n(&sonde_record_session, __ATOMIC_RELAXED))
		sonde_record_region_end(scope->site, scope->task);
}

#define SONDE_RECORD_PASTE_(a, b) a##b
#define SONDE_RECORD_PASTE(a, b) SONDE_RECORD_PASTE_(a, b)

/* A region from here to the end of the block, however it is left. name: a string literal. */
#define SONDE_RECORD_REGION(name) SONDE_RECORD_TASK_REGION(0, name)
#define SONDE_RECORD_TASK_REGION(task, name)                                        \
	static struct sonde_record_site SONDE_RECORD_PASTE(sonde_site_, __LINE__) = \
		SONDE_RECORD_SITE_INIT(name);                                       \
	struct sonde_record_scope SONDE_RECORD_PASTE(sonde_scope_, __LINE__)        \
		__attribute__((cleanup(sonde_record_scope_end), unused)) =          \
			sonde_record_scope_begin(&SONDE_RECORD_PASTE(sonde_site_, __LINE__), task)

/* key: a string literal; message: a string, read only while a trace is recorded. */
#define SONDE_RECORD_LOG(task, key, message)                                                   \
	do {                                                                                   \
		static struct sonde_record_site sonde_site_ = SONDE_RECORD_SITE_INIT(key);     \
		if (SONDE_RECORD_ENABLED()) {                                                  \
			const char *sonde_message_ = (message);                                \
			sonde_record_log(                                                      \
				&sonde_site_, (task), sonde_message_, strlen(sonde_message_)); \
		}                                                                              \
	} while (0)

/* An expression: the id of a new task. name: a string literal. */
#define SONDE_RECORD_TASK_BEGIN(parent, name)                                                 \
	__extension__({                                                                       \
		static struct sonde_record_site sonde_site_ = SONDE_RECORD_SITE_INIT(name);   \
		SONDE_RECORD_ENABLED() ? sonde_record_task_begin(&sonde_site_, (parent)) : 0; \
	})
#define SONDE_RECORD_TASK_END(task)                  \
	do {                                         \
		if (SONDE_RECORD_ENABLED())          \
			sonde_record_task_end(task); \
	} while (0)

#else

#define SONDE_RECORD_REGION(name) ((void)0)
#define SONDE_RECORD_TASK_REGION(task, name) ((void)0)
#define SONDE_RECORD_LOG(task, key, message) ((void)0)
#define SONDE_RECORD_TASK_BEGIN(parent, name) ((uint64_t)0)
#define SONDE_RECORD_TASK_END(task) ((void)(task))

#endif

/* --- who runs: plain threads --- */

enum sonde_record_reason {
	SONDE_RECORD_BLOCKED, /* no better word */
	SONDE_RECORD_SLEEP,
	SONDE_RECORD_SYNC, /* a mutex, a read-write lock, a barrier */
	SONDE_RECORD_COND, /* a condition variable */
	SONDE_RECORD_NET, /* the network, epoll */
	SONDE_RECORD_SEND, /* a queue that is full */
	SONDE_RECORD_RECV, /* a queue that is empty */
	SONDE_RECORD_SELECT, /* any of several */
	SONDE_RECORD_GC, /* the collector's credit */
	SONDE_RECORD_FOREVER, /* it will not run again */
	SONDE_RECORD_N_REASONS,
};

/*
 * A goroutine: a thread's, or a fiber's in storage of the caller (zeroed before the first use, not moved, and not freed
 * before sonde_record_fiber_end() or _forget()). The fields are the recorder's.
 */
struct sonde_record_fiber {
	uint64_t caller_id, id, ticks;
	void *start, *regions;
	uintptr_t stack_low, stack_high;
	struct sonde_record_fiber *next, **link;
	uint32_t session, seq, processor, name;
	uint8_t state, shard, traced_waiting, in_syscall;
	uint32_t label;
};

/* The calling thread's goroutine, for others to unblock it. Valid until the thread ends. */
SONDE_RECORD_API struct sonde_record_fiber *sonde_record_self(void);

/*
 * The calling thread is about to block, for reason; and runs again. Between the two it has no processor. A call of
 * wake() without one of block() does nothing.
 */
SONDE_RECORD_API void sonde_record_block(enum sonde_record_reason reason);
SONDE_RECORD_API void sonde_record_wake(void);

/*
 * The running goroutine makes g, which blocks, runnable. Before it signals: g may not run before this returns, or its
 * waker is not known. Nothing happens where g does not block, or another one was faster.
 */
SONDE_RECORD_API void sonde_record_unblock(struct sonde_record_fiber *g);

/*
 * A system call of the running goroutine, which does not give its processor back. Those that take longer than 20 us
 * appear as blocked in it.
 */
SONDE_RECORD_API void sonde_record_syscall_begin(void);
SONDE_RECORD_API void sonde_record_syscall_end(void);

/* The running goroutine lets others run (sched_yield()), and runs again. */
SONDE_RECORD_API void sonde_record_yield(void);

/* Name the calling thread: as the function that its goroutine began with. Copied. Before its first event. */
SONDE_RECORD_API void sonde_record_thread_name(const char *name);

/*
 * As pthread_create(), and the creation is an event of the creator. The end of every thread is recorded by itself. What
 * pthread_create() returns.
 */
SONDE_RECORD_API int sonde_record_thread_create(
	void *thread /* pthread_t * */, const void *attributes, void *(*start)(void *), void *arg);

/* --- who runs: fibers --- */

/*
 * For programs that schedule fibers (coroutines, tasks) over threads of their own. A thread is a processor between
 * proc_start() and proc_stop(); meanwhile it has no goroutine of its own and only its fiber writes events.
 */
SONDE_RECORD_API void sonde_record_proc_start(void);
SONDE_RECORD_API void sonde_record_proc_stop(void);

/*
 * The running goroutine (or a processor that runs none) makes the fiber f, runnable. id: the caller's own, see
 * caller_ids; never used twice. start: what it will run, for its name; may be NULL. stack: its lowest address and size, for
 * stacks by frame pointers; NULL: stacks have one frame.
 */
SONDE_RECORD_API void sonde_record_fiber_create(struct sonde_record_fiber *f, uint64_t id,
	void (*start)(void), void *stack, size_t stack_bytes);

/* f, runnable, runs on this thread, which is a processor without a running fiber. */
SONDE_RECORD_API void sonde_record_fiber_start(struct sonde_record_fiber *f);

/* The running fiber blocks; lets others run; ends. The processor then runs none. */
SONDE_RECORD_API void sonde_record_fiber_block(enum sonde_record_reason reason);
SONDE_RECORD_API void sonde_record_fiber_yield(void);
SONDE_RECORD_API void sonde_record_fiber_end(void);

/* f, which does not run, will never run again: its storage is the caller's. In the trace it stays as it is. */
SONDE_RECORD_API void sonde_record_fiber_forget(struct sonde_record_fiber *f);

/* A label, registered once, that fibers may start with (as Go's "GC (dedicated)"). 0 = no room. Copied. */
SONDE_RECORD_API uint32_t sonde_record_label(const char *text);
SONDE_RECORD_API void sonde_record_fiber_set_label(struct sonde_record_fiber *f, uint32_t label);

/* --- runtimes with a collector --- */

SONDE_RECORD_API void sonde_record_gc_begin(void);
SONDE_RECORD_API void sonde_record_gc_end(void);
/* kind: as Go's stwReason, 0 to 16; 0 = "unknown". */
SONDE_RECORD_API void sonde_record_stop_world_begin(uint32_t kind);
SONDE_RECORD_API void sonde_record_stop_world_end(void);
/* A sweep says nothing before its first span; its end has the totals. */
SONDE_RECORD_API void sonde_record_sweep_begin(void);
SONDE_RECORD_API void sonde_record_sweep_span(uint64_t swept_bytes, uint64_t reclaimed_bytes);
SONDE_RECORD_API void sonde_record_sweep_end(void);
SONDE_RECORD_API void sonde_record_assist_begin(void);
SONDE_RECORD_API void sonde_record_assist_end(void);
SONDE_RECORD_API void sonde_record_heap(uint64_t live_bytes);
SONDE_RECORD_API void sonde_record_heap_goal(uint64_t bytes); /* 0 = off */
SONDE_RECORD_API void sonde_record_max_procs(uint32_t n);

#ifdef __cplusplus
}
#endif
