/* What an event of the recorder costs: bench/record.sh. CPU time of the thread, the least of 7 runs. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "sonde/record.h"

enum { N = 4000000, RUNS = 7 };

static double cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static void logs(void)
{
	for (int i = 0; i < N; i++)
		SONDE_RECORD_LOG(0, "key", "m");
}

static void regions(void)
{
	for (int i = 0; i < N; i++) {
		SONDE_RECORD_REGION("region");
		__asm__ volatile("" ::: "memory");
	}
}

__attribute__((noinline)) static void deep(int depth)
{
	if (depth <= 0)
		logs();
	else
		deep(depth - 1);
	__asm__ volatile("" ::: "memory");
}

static void depth_10(void)
{
	deep(6);
}

static void depth_30(void)
{
	deep(26);
}

static void *on_thread(void *arg)
{
	double *ns = arg, begun = cpu_ns();
	logs();
	*ns = (cpu_ns() - begun) / N;
	return NULL;
}

static void measure(const char *name, void (*body)(void), bool stacks, const char *path)
{
	double on = 1e18, off = 1e18, bytes = 0;
	for (int i = 0; i < RUNS; i++) {
		struct sonde_record_options o = {
			.size = sizeof(o), .no_stacks = !stacks, .stack_depth = 128};
		struct sonde_record_stats st = {.size = sizeof(st)};
		double begun = cpu_ns();
		body();
		double ns = (cpu_ns() - begun) / N;
		off = ns < off ? ns : off;
		if (sonde_record_start(path, &o))
			exit(1);
		begun = cpu_ns();
		body();
		ns = (cpu_ns() - begun) / N;
		if (sonde_record_stop(&st) || st.failure || st.events < N)
			exit(1);
		on = ns < on ? ns : on;
		bytes = (double)st.bytes / (double)st.events;
	}
	printf("| %s | %.1f | %.2f | %.1f |\n", name, on, off, bytes);
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
#if defined(__x86_64__)
	double clock = 1e18;
	for (int i = 0; i < RUNS; i++) {
		unsigned long sum = 0;
		double begun = cpu_ns();
		for (int k = 0; k < N; k++)
			sum += __builtin_ia32_rdtsc();
		__asm__ volatile("" ::"r"(sum));
		double ns = (cpu_ns() - begun) / N;
		clock = ns < clock ? ns : clock;
	}
	printf("| the clock alone (rdtsc) | %.1f | - | - |\n", clock);
#endif
	measure("log, no stack", logs, false, argv[1]);
	measure("region, begin and end, no stack", regions, false, argv[1]);
	measure("log, stack of 10 frames", depth_10, true, argv[1]);
	measure("log, stack of 30 frames", depth_30, true, argv[1]);
	double two = 1e18;
	for (int i = 0; i < RUNS; i++) {
		struct sonde_record_options o = {.size = sizeof(o), .no_stacks = true};
		pthread_t t[2];
		double ns[2];
		if (sonde_record_start(argv[1], &o))
			return 1;
		for (int k = 0; k < 2; k++)
			pthread_create(&t[k], NULL, on_thread, &ns[k]);
		for (int k = 0; k < 2; k++)
			pthread_join(t[k], NULL);
		sonde_record_stop(NULL);
		double most = ns[0] > ns[1] ? ns[0] : ns[1];
		two = most < two ? most : two;
	}
	printf("| log, no stack, each of two threads | %.1f | - | - |\n", two);
	return 0;
}
