/*
 * A program that records itself and says what it did, for tests/e2e/run_record.sh.
 *
 *	work threads|fibers|stream-block|stream-drop|storm|signals|fork|full FILE [N]
 *
 * Prints lines "NAME VALUE": counts of events by type, and bounds of times that it measured around the calls.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "sonde/record.h"

enum { N_THREADS = 16 };

static const char *path;
static long n_each;

static void must(int result, const char *what)
{
	if (result == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, strerror(-result));
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static struct sonde_record_stats stop(void)
{
	struct sonde_record_stats st = {.size = sizeof(st)};
	must(sonde_record_stop(&st), "stop");
	printf("events %" PRIu64 "\ndropped %" PRIu64 "\nmisused %" PRIu64
	       "\nlost_in_signal %" PRIu64 "\nfailure %d\n",
		st.events, st.dropped_logs + st.dropped_regions + st.dropped_tasks, st.misused,
		st.lost_in_signal, st.failure);
	return st;
}

/* --- threads --- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static long n_tasks, n_logs, n_regions, n_blocks, n_syscalls;
static int64_t blocked_least, blocked_most;

__attribute__((noinline)) static void one_item(uint64_t task, long i)
{
	SONDE_RECORD_TASK_REGION(task, "item");
	char message[64];
	snprintf(message, sizeof(message), "item %ld", i);
	SONDE_RECORD_LOG(task, "progress", message);
	__atomic_fetch_add(&n_regions, 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&n_logs, 1, __ATOMIC_RELAXED);
	if (i % 16)
		return;
	int64_t outside = now_ns();
	sonde_record_block(SONDE_RECORD_SYNC);
	int64_t inside = now_ns();
	pthread_mutex_lock(&mutex);
	struct timespec t = {0, 200000};
	nanosleep(&t, NULL);
	pthread_mutex_unlock(&mutex);
	inside = now_ns() - inside;
	sonde_record_wake();
	outside = now_ns() - outside;
	__atomic_fetch_add(&blocked_least, inside, __ATOMIC_RELAXED);
	__atomic_fetch_add(&blocked_most, outside, __ATOMIC_RELAXED);
	__atomic_fetch_add(&n_blocks, 1, __ATOMIC_RELAXED);
	sonde_record_syscall_begin();
	nanosleep(&t, NULL);
	sonde_record_syscall_end();
	__atomic_fetch_add(&n_syscalls, 1, __ATOMIC_RELAXED);
}

static void *worker(void *arg)
{
	uint64_t task = SONDE_RECORD_TASK_BEGIN(0, "job");
	__atomic_fetch_add(&n_tasks, 1, __ATOMIC_RELAXED);
	for (long i = 0; i < n_each; i++)
		one_item(task, i);
	SONDE_RECORD_TASK_END(task);
	return arg;
}

static void join(pthread_t *threads, int n)
{
	sonde_record_block(SONDE_RECORD_BLOCKED);
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	sonde_record_wake();
}

static void threads(void)
{
	pthread_t t[N_THREADS];
	must(sonde_record_start(path, NULL), path);
	for (int i = 0; i < N_THREADS; i++)
		must(-sonde_record_thread_create(&t[i], NULL, worker, NULL), "thread");
	join(t, N_THREADS);
	stop();
	printf("UserTaskCreate %ld\nUserTaskEnd %ld\nUserRegion %ld\nUserLog %ld\nGoBlockSync "
	       "%ld\n",
		n_tasks, n_tasks, 2 * n_regions, n_logs, n_blocks);
	printf("GoSysCall %ld\nGoSysBlock %ld\nGoSysExit %ld\nGoCreate %d\nGoEnd %d\nGoBlock 1\n",
		n_syscalls, n_syscalls, n_syscalls, N_THREADS + 1, N_THREADS);
	printf("blocked_least %" PRId64 "\nblocked_most %" PRId64 "\n", blocked_least,
		blocked_most);
}

/* --- fibers: two processors pass them between each other --- */

static struct sonde_record_fiber *fibers;
static long n_fibers, at_a, at_b;

static void fiber_main(void)
{
}

/* Run the i-th: once, or until it ends. */
static void turn(long i, bool end)
{
	sonde_record_fiber_start(&fibers[i]);
	{
		SONDE_RECORD_REGION("turn");
		SONDE_RECORD_LOG(0, "fiber", "runs");
	}
	if (end)
		sonde_record_fiber_end();
	else
		sonde_record_fiber_block(SONDE_RECORD_RECV);
}

static void *second_processor(void *arg)
{
	sonde_record_proc_start();
	for (; at_b < n_fibers; at_b++) {
		while (__atomic_load_n(&at_a, __ATOMIC_ACQUIRE) <= at_b)
			sched_yield();
		sonde_record_unblock(&fibers[at_b]);
		turn(at_b, true);
	}
	sonde_record_proc_stop();
	return arg;
}

static void run_fibers(void)
{
	n_fibers = n_each;
	fibers = calloc((size_t)n_fibers, sizeof(fibers[0]));
	struct sonde_record_options options = {.size = sizeof(options), .caller_ids = true};
	/* Half of them are there before, and a quarter has run and blocks. */
	sonde_record_proc_start();
	for (long i = 0; i < n_fibers / 2; i++)
		sonde_record_fiber_create(&fibers[i], (uint64_t)i + 1, fiber_main, NULL, 0);
	for (long i = 0; i < n_fibers / 4; i++) {
		sonde_record_fiber_start(&fibers[i]);
		sonde_record_fiber_block(SONDE_RECORD_SEND);
	}
	must(sonde_record_start(path, &options), path);
	for (long i = n_fibers / 2; i < n_fibers; i++)
		sonde_record_fiber_create(&fibers[i], (uint64_t)i + 1, fiber_main, NULL, 0);
	pthread_t other;
	pthread_create(&other, NULL, second_processor, NULL);
	for (long i = 0; i < n_fibers; i++) {
		sonde_record_unblock(&fibers[i]); /* nothing where it is runnable */
		turn(i, false);
		__atomic_store_n(&at_a, i + 1, __ATOMIC_RELEASE);
	}
	pthread_join(other, NULL);
	sonde_record_proc_stop();
	stop();
	/*
	 * This thread's own goroutine waits as long as it is a processor; the other thread's is never heard of: it ended
	 * before the trace did, without a word.
	 */
	printf("UserRegion %ld\nUserLog %ld\nGoEnd %ld\nGoBlockRecv %ld\nGoWaiting %ld\n",
		4 * n_fibers, 2 * n_fibers, n_fibers, n_fibers, n_fibers / 4 + 1);
}

/* --- streams --- */

static void *reader(void *arg)
{
	static char buffer[1 << 16];
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
	ssize_t n;
	while ((n = sonde_record_read(buffer, sizeof(buffer))) > 0)
		if (write(fd, buffer, (size_t)n) != n)
			abort();
	close(fd);
	must((int)n, "read");
	return arg;
}

static void *logger(void *arg)
{
	for (long i = 0; i < n_each; i++) {
		SONDE_RECORD_LOG(0, "key", "a message");
		if (i % 1000 == 0) {
			sonde_record_block(SONDE_RECORD_SYNC);
			sched_yield();
			sonde_record_wake();
		}
	}
	return arg;
}

static void stream(enum sonde_record_overflow overflow)
{
	struct sonde_record_options options = {
		.size = sizeof(options), .overflow = overflow, .max_bytes = 1 << 20};
	pthread_t t[N_THREADS], r;
	must(sonde_record_start_stream(&options), "start");
	pthread_create(&r, NULL, reader, NULL);
	for (int i = 0; i < N_THREADS; i++)
		must(-sonde_record_thread_create(&t[i], NULL, logger, NULL), "thread");
	join(t, N_THREADS);
	struct sonde_record_stats st = stop();
	pthread_join(r, NULL);
	printf("UserLog %" PRIu64 "\nGoBlockSync %ld\n",
		N_THREADS * (uint64_t)n_each - st.dropped_logs,
		N_THREADS * ((n_each + 999) / 1000));
}

/* --- many short traces while threads do everything at once --- */

static bool done;
static struct sonde_record_fiber *peers[8];

static void *stormer(void *arg)
{
	long me = (long)arg;
	unsigned seed = (unsigned)me;
	__atomic_store_n(&peers[me], sonde_record_self(), __ATOMIC_RELEASE);
	while (!__atomic_load_n(&done, __ATOMIC_RELAXED)) {
		SONDE_RECORD_REGION("outer");
		switch (rand_r(&seed) % 8) {
		case 0:
			sonde_record_block(SONDE_RECORD_SYNC);
			sched_yield();
			sonde_record_wake();
			break;
		case 1:
			sonde_record_unblock(
				__atomic_load_n(&peers[rand_r(&seed) % 8], __ATOMIC_ACQUIRE));
			break;
		case 2: {
			uint64_t task = SONDE_RECORD_TASK_BEGIN(0, "task");
			SONDE_RECORD_LOG(task, "key", "value");
			SONDE_RECORD_TASK_END(task);
			break;
		}
		case 3: {
			SONDE_RECORD_REGION("inner");
			SONDE_RECORD_LOG(0, "key", "inner");
			break;
		}
		case 4:
			sonde_record_syscall_begin();
			usleep(30);
			sonde_record_syscall_end();
			break;
		case 5:
			sonde_record_yield();
			break;
		case 6:
			sonde_record_heap((uint64_t)rand_r(&seed));
			break;
		case 7: {
			struct sonde_record_fiber f[3];
			memset(f, 0, sizeof(f));
			sonde_record_proc_start();
			for (int i = 0; i < 3; i++)
				sonde_record_fiber_create(&f[i], 0, fiber_main, NULL, 0);
			for (int i = 0; i < 3; i++) {
				sonde_record_fiber_start(&f[i]);
				SONDE_RECORD_LOG(0, "key", "fiber");
				sonde_record_fiber_block(SONDE_RECORD_RECV);
			}
			for (int i = 0; i < 3; i++) {
				sonde_record_unblock(&f[i]);
				sonde_record_fiber_start(&f[i]);
				sonde_record_fiber_end();
			}
			sonde_record_proc_stop();
			break;
		}
		}
	}
	return arg;
}

static void storm(void)
{
	pthread_t t[8];
	/* Peers are asked for while all of them live. */
	for (int i = 0; i < 8; i++)
		peers[i] = sonde_record_self();
	for (long i = 0; i < 8; i++)
		if (i % 2 ? pthread_create(&t[i], NULL, stormer, (void *)i)
			  : sonde_record_thread_create(&t[i], NULL, stormer, (void *)i))
			abort();
	for (long i = 0; i < n_each; i++) {
		char name[4096];
		struct sonde_record_stats st = {.size = sizeof(st)};
		snprintf(name, sizeof(name), "%s.%ld", path, i);
		must(sonde_record_start(name, NULL), name);
		usleep((useconds_t)(i * 200 % 7000));
		must(sonde_record_stop(&st), "stop");
		if (st.failure || st.misused || st.lost_in_signal)
			printf("bad %ld\n", i);
	}
	__atomic_store_n(&done, true, __ATOMIC_RELAXED);
	for (int i = 0; i < 8; i++)
		pthread_join(t[i], NULL);
}

/* --- signals: handlers that use the recorder, wherever they come --- */

static volatile sig_atomic_t n_handled;

static void handler(int sig)
{
	(void)sig;
	n_handled++;
	SONDE_RECORD_LOG(0, "signal", "in the handler");
	sonde_record_block(SONDE_RECORD_SYNC);
	sonde_record_wake();
}

static void signals(void)
{
	must(sonde_record_start(path, NULL), path);
	struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
	sigaction(SIGALRM, &action, NULL);
	struct itimerval every = {{0, 40}, {0, 40}}, never = {{0, 0}, {0, 0}};
	setitimer(ITIMER_REAL, &every, NULL);
	for (long i = 0; i < n_each; i++)
		SONDE_RECORD_LOG(0, "key", "value");
	setitimer(ITIMER_REAL, &never, NULL);
	struct sonde_record_stats st = stop();
	/* A handler is heard of whole or not at all: its log, block, wake. */
	printf("handled %d\nlost_parts %" PRIu64 "\n", n_handled, st.lost_in_signal % 3);
	printf("UserLog %" PRIu64 "\nGoBlockSync %" PRIu64 "\n",
		(uint64_t)n_each + (uint64_t)n_handled - st.lost_in_signal / 3,
		(uint64_t)n_handled - st.lost_in_signal / 3);
}

static void fork_in_the_middle(void)
{
	must(sonde_record_start(path, NULL), path);
	SONDE_RECORD_LOG(0, "parent", "before");
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		char name[4096];
		SONDE_RECORD_LOG(0, "child", "belongs to no trace");
		snprintf(name, sizeof(name), "%s.child", path);
		must(sonde_record_start(name, NULL), name);
		SONDE_RECORD_LOG(0, "child", "belongs to its own");
		must(sonde_record_stop(NULL), "stop");
		exit(0);
	}
	int status = -1;
	waitpid(pid, &status, 0);
	SONDE_RECORD_LOG(0, "parent", "after");
	stop();
	printf("child %d\nUserLog 2\n", status);
}

/* A file that cannot grow: what was written until then is a whole trace. */
static void full(void)
{
	struct rlimit limit = {300000, 300000};
	signal(SIGXFSZ, SIG_IGN);
	setrlimit(RLIMIT_FSIZE, &limit);
	must(sonde_record_start(path, NULL), path);
	for (long i = 0; i < n_each; i++)
		SONDE_RECORD_LOG(0, "key", "value");
	struct sonde_record_stats st = stop();
	printf("at_failure %d\nexpected_failure %d\nsum %d\n", st.failure, EFBIG,
		st.lost_after_failure > 0);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: work threads|fibers|... FILE [N]\n");
		return 2;
	}
	path = argv[2];
	n_each = argc > 3 ? atol(argv[3]) : 100;
	if (!strcmp(argv[1], "threads"))
		threads();
	else if (!strcmp(argv[1], "fibers"))
		run_fibers();
	else if (!strcmp(argv[1], "stream-block"))
		stream(SONDE_RECORD_BLOCK);
	else if (!strcmp(argv[1], "stream-drop"))
		stream(SONDE_RECORD_DROP);
	else if (!strcmp(argv[1], "storm"))
		storm();
	else if (!strcmp(argv[1], "signals"))
		signals();
	else if (!strcmp(argv[1], "fork"))
		fork_in_the_middle();
	else if (!strcmp(argv[1], "full"))
		full();
	else
		return 2;
	return 0;
}
