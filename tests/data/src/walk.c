/*
 * What a stack walker has to get right at each of its instructions: prologues and epilogues, lazy binding, alloca,
 * realigned stacks, setjmp, signal handlers on both stacks, the vDSO, tail calls, calls that do not return. Prints one
 * number; tests/unit/walk_stepping.c steps through it.
 */
#include <alloca.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))

/* walk_asm.S */
long walk_asm_all(long n);

static volatile long sum;
static jmp_buf back;
static sigjmp_buf out;

NOINLINE static long leaf(long a, long b)
{
	return a * 3 + b;
}

NOINLINE static long many(long a, long b, long c, long d, long e, long f, long g, long h, long i)
{
	long r = leaf(a, b) + leaf(c, d);
	r += leaf(e, f) + leaf(g, h);
	return r + leaf(r, i);
}

NOINLINE static long tail(long n)
{
	sum += n;
	return many(n, 1, 2, 3, 4, 5, 6, 7, 8);
}

NOINLINE static long tail_leaf(long n)
{
	return leaf(n, n);
}

NOINLINE static long recursion(long n)
{
	if (n == 0)
		return tail(1);
	long r = recursion(n - 1);
	return r + leaf(r, n);
}

NOINLINE static long with_alloca(long n)
{
	char *p = alloca((size_t)n * 16);
	memset(p, (int)n, (size_t)n * 16);
	char array[n + 1];
	array[n] = 3;
	long r = leaf(p[0], p[n]) + array[n];
	return r + tail_leaf(r);
}

NOINLINE static long use(volatile long *p)
{
	*p += 1;
	return leaf(*p, 2);
}

__attribute__((force_align_arg_pointer)) NOINLINE static long realigned_by_attribute(long n)
{
	volatile long x = n;
	long r = use(&x);
	return r + use(&x);
}

NOINLINE static long realigned(long n, long a, long b, long c, long d, long e, long f, long g)
{
	_Alignas(64) volatile long x[16];
	for (int i = 0; i < 16; i++)
		x[i] = n + i;
	long r = use(&x[3]) + use(&x[7]);
	return r + a + b + c + d + e + f + g;
}

NOINLINE static long realigned_with_alloca(long n)
{
	_Alignas(32) volatile long x[8];
	volatile long *p = alloca((size_t)n * 8);
	p[0] = x[1] = n;
	return use(&x[1]) + use(p);
}

#ifdef __x86_64__
typedef double vector __attribute__((vector_size(32)));

__attribute__((target("avx"))) NOINLINE static double avx(double d)
{
	volatile vector v = {d, 1, 2, 3};
	vector w = v * v + v;
	v = w;
	return v[0] + v[3] + (double)leaf((long)d, 1);
}
#endif

NOINLINE static long big_frame(long n)
{
	volatile char page[5 * 4096];
	page[n] = 1;
	page[n + 4096 * 4] = 2;
	return leaf(page[n], page[n + 4096 * 4]);
}

__attribute__((noreturn)) NOINLINE static void jump(int n)
{
	longjmp(back, n);
}

/* Its last instruction is a call: the return address is the next function's. */
__attribute__((noreturn)) NOINLINE static void never_returns(int n)
{
	sum += leaf(n, 1);
	jump(n);
}

NOINLINE static long jumps(int n)
{
	volatile long kept = n;
	if (setjmp(back) == 0) {
		if (n & 1)
			never_returns(n);
		jump(n);
	}
	return kept + leaf(kept, 4);
}

NOINLINE static long variadic(int n, ...)
{
	va_list args;
	va_start(args, n);
	long r = 0;
	for (int i = 0; i < n; i++)
		r += va_arg(args, long);
	va_end(args);
	return leaf(r, n);
}

NOINLINE static long jump_table(long n)
{
	switch (n) {
	case 0:
		return leaf(1, n);
	case 1:
		return leaf(7, n) + 1;
	case 2:
		return many(n, n, n, n, n, n, n, n, n);
	case 3:
		return tail(n);
	case 4:
		return leaf(9, n) * leaf(4, n);
	case 5:
		return recursion(2);
	}
	return 0;
}

NOINLINE static long early_return(long n)
{
	if (n < 3)
		return n;
	char text[64];
	int len = snprintf(text, sizeof(text), "%ld", n);
	if (text[0] == '9')
		return leaf(len, 1);
	long r = leaf(text[0], text[1]) + leaf(len, n);
	return r > 0 ? r : tail(n);
}

static void count(int signal)
{
	sum += leaf(signal, 1);
}

static void nested(int signal)
{
	count(signal);
	raise(SIGUSR1);
	sum++;
}

static void leave(int signal, siginfo_t *info, void *context)
{
	(void)context;
	sum += leaf(signal, info->si_code);
	siglongjmp(out, 1);
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
	sigaction(signal, &action, NULL);
}

NOINLINE static long signals(void)
{
	static char alternate[32768];
	stack_t stack = {.ss_sp = alternate, .ss_size = sizeof(alternate)};
	struct sigaction action = {.sa_sigaction = leave, .sa_flags = SA_SIGINFO | SA_ONSTACK};
	handle(SIGUSR1, count, 0);
	handle(SIGUSR2, nested, 0);
	raise(SIGUSR1);
	raise(SIGUSR2);
	sigaltstack(&stack, NULL);
	handle(SIGUSR1, count, SA_ONSTACK);
	raise(SIGUSR1);
	handle(SIGUSR2, nested, SA_ONSTACK);
	raise(SIGUSR2);
	sigaction(SIGSEGV, &action, NULL);
	void *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sigsetjmp(out, 1) == 0)
		*(volatile int *)page = 1;
	if (sigsetjmp(out, 1) == 0)
		((void (*)(void))page)();
	return leaf(sum, 1);
}

NOINLINE static long vdso(void)
{
	struct timespec ts;
	unsigned cpu, node;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	getcpu(&cpu, &node);
	return time(NULL) > 0;
}

static int compare(const void *a, const void *b)
{
	int x = *(const int *)a, y = *(const int *)b;
	return (int)leaf(x > y, -(x < y));
}

NOINLINE static long library(void)
{
	int numbers[] = {5, 3, 9, 1, 7, 2};
	int key = 7;
	char text[64];
	char *copy = strdup("some text");
	qsort(numbers, 6, sizeof(numbers[0]), compare);
	int *found = bsearch(&key, numbers, 6, sizeof(numbers[0]), compare);
	snprintf(text, sizeof(text), "%s %d %.3f %lx", copy, numbers[0], 2.5, sum);
	long r = strtol(text + 10, NULL, 10) + (found != NULL);
	free(copy);
	return r + (getenv("HOME") != NULL) + (getpid() > 0);
}

int main(void)
{
	long r = leaf(1, 2) + many(1, 2, 3, 4, 5, 6, 7, 8, 9) + tail(3) + tail_leaf(4);
	r += recursion(5) + with_alloca(3) + with_alloca(40);
	r += realigned_by_attribute(2) + realigned(1, 2, 3, 4, 5, 6, 7, 8);
	r += realigned_with_alloca(4) + big_frame(9);
#ifdef __x86_64__
	if (__builtin_cpu_supports("avx"))
		r += (long)avx(3);
#endif
	r += jumps(1) + jumps(2) + variadic(3, 1L, 2L, 3L);
	for (long i = 0; i < 7; i++)
		r += jump_table(i);
	r += early_return(1) + early_return(95) + early_return(1234);
	r += walk_asm_all(3);
	r += signals() + vdso() + library();
	printf("%d\n", r != 0);
	return 0;
}
