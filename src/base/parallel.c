#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>

enum { MAX_THREADS = 64 };

struct worker {
	void (*work)(void *ctx, unsigned i);
	void *ctx;
	unsigned i;
	pthread_t thread;
};

unsigned sonde_parallel_cpus(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof(set), &set) != 0)
		return 1;
	int n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > MAX_THREADS ? MAX_THREADS : (unsigned)n;
}

static void *run(void *arg)
{
	struct worker *w = arg;
	w->work(w->ctx, w->i);
	return NULL;
}

unsigned sonde_parallel_run(unsigned n, void (*work)(void *ctx, unsigned i), void *ctx)
{
	struct worker workers[MAX_THREADS];
	if (n > MAX_THREADS)
		n = MAX_THREADS;
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	unsigned started = 1;
	for (; started < n; started++) {
		struct worker *w = &workers[started];
		*w = (struct worker){.work = work, .ctx = ctx, .i = started};
		if (pthread_create(&w->thread, NULL, run, w) != 0)
			break;
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	work(ctx, 0);
	for (unsigned i = 1; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	return started;
}
