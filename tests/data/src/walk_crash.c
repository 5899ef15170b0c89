/*
 * Ends in many ways, for `sonde core threads` against gdb: walk_crash MODE; C, and C++ as well (-x c++), then with names to
 * demangle. "wait" prints READY and waits, for gcore.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#ifdef __cplusplus
#include <stdexcept>
#include <string>
#include <vector>
#endif

#define NOINLINE __attribute__((noinline))

static volatile long sum;
static const char *volatile nothing;
static void (*volatile no_function)(void);
static int ready[2];

static inline __attribute__((always_inline)) long inlined(long n)
{
	sum += n;
	return (long)strlen(nothing) + sum;
}

NOINLINE static long in_libc(long n)
{
	return inlined(n) + 1;
}

NOINLINE static long calls_null(long n)
{
	no_function();
	return sum + n;
}

/* A call through a pointer to data. */
NOINLINE static long calls_data(long n)
{
	void (*f)(void);
	volatile long *p = &sum;
	memcpy(&f, &p, sizeof(f));
	f();
	return sum + n;
}

NOINLINE static long overflow(long n)
{
	volatile char page[2000];
	page[0] = (char)n;
	return overflow(n + 1) + page[0];
}

NOINLINE static void overwrite(void *frame)
{
	memset(frame, 'A', 256);
}

NOINLINE static long corrupt(long n)
{
	volatile long a[4] = {n};
	overwrite((void *)(uintptr_t)a);
	return a[0];
}

static void aborts(int signal)
{
	sum += signal;
	abort();
}

NOINLINE static long on_alternate(long n)
{
	static char alternate[65536];
	stack_t stack;
	struct sigaction action;
	memset(&stack, 0, sizeof(stack));
	memset(&action, 0, sizeof(action));
	stack.ss_sp = alternate;
	stack.ss_size = sizeof(alternate);
	sigaltstack(&stack, NULL);
	action.sa_handler = aborts;
	action.sa_flags = SA_ONSTACK;
	sigaction(SIGSEGV, &action, NULL);
	return in_libc(n);
}

NOINLINE static long in_handler(long n)
{
	signal(SIGUSR1, aborts);
	raise(SIGUSR1);
	return n + sum;
}

static int compare(const void *a, const void *b)
{
	if (*(const int *)a == 7)
		abort();
	return *(const int *)a - *(const int *)b;
}

NOINLINE static long in_callback(long n)
{
	int numbers[] = {3, 9, 7, 1, 2};
	qsort(numbers, 5, sizeof(numbers[0]), compare);
	return n + numbers[0];
}

__attribute__((noreturn)) NOINLINE static void never_returns(void)
{
	sum++;
	abort();
}

NOINLINE static long noreturn_at_end(long n)
{
	sum += n;
	never_returns();
}

#ifdef __cplusplus
namespace space
{
template <typename T> struct holder {
	T value;
	NOINLINE long look(const std::string &name, std::vector<T> &all)
	{
		all.push_back(value);
		if (name.size() > 3)
			return in_libc((long)all.size());
		throw std::runtime_error(name);
	}
};
struct operators {
	NOINLINE long operator()(long n) const
	{
		return in_libc(n);
	}
};
} // namespace space

NOINLINE static long templates(long n)
{
	std::vector<long> all;
	space::holder<long> h = {n};
	return h.look("long name", all);
}

NOINLINE static long uncaught(long n)
{
	std::vector<long> all;
	space::holder<long> h = {n};
	return h.look("ab", all);
}

NOINLINE static long lambda(long n)
{
	space::operators call;
	auto f = [&](long m) __attribute__((noinline))
	{
		return call(m) + n;
	};
	return f(n);
}
#endif

static void *thread_main(void *arg)
{
	char c = 1;
	if (write(ready[1], &c, 1) != 1)
		_exit(3);
	if ((intptr_t)arg & 1) {
		for (;;)
			pause();
	}
	struct timespec ts = {1000, 0};
	nanosleep(&ts, NULL);
	return NULL;
}

static void start_threads(int n)
{
	char c;
	if (pipe(ready))
		_exit(2);
	for (int i = 0; i < n; i++) {
		pthread_t thread;
		if (pthread_create(&thread, NULL, thread_main, (void *)(intptr_t)i) ||
			read(ready[0], &c, 1) != 1)
			_exit(2);
	}
	usleep(100000);
}

static const struct {
	const char *name;
	long (*run)(long n);
} modes[] = {
	{"libc", in_libc},
	{"null", calls_null},
	{"data", calls_data},
	{"overflow", overflow},
	{"corrupt", corrupt},
	{"alternate", on_alternate},
	{"handler", in_handler},
	{"callback", in_callback},
	{"noreturn", noreturn_at_end},
#ifdef __cplusplus
	{"templates", templates},
	{"uncaught", uncaught},
	{"lambda", lambda},
#endif
};

int main(int argc, char **argv)
{
	const char *mode = argc > 1 ? argv[1] : "libc";
	if (!strcmp(mode, "wait")) {
		start_threads(4);
		puts("READY");
		fflush(stdout);
		for (;;)
			pause();
	}
	if (!strcmp(mode, "threads")) {
		start_threads(5);
		mode = "libc";
	}
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(mode, modes[i].name))
			return (int)modes[i].run(argc);
	return 2;
}
