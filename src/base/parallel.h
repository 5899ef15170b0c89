/* src/base/parallel.h: the same function on a few threads at once. */
#pragma once
#include <stddef.h>

/* CPUs that this process may run on, at least 1, at most 64. */
unsigned sonde_parallel_cpus(void);

/*
 * Run work(ctx, i) for i = 0 .. n-1, each on a thread of its own (i = 0 on the caller's), and wait for all. Where
 * threads cannot be made fewer run: share the work out by claims on an atomic counter, never by i alone. Returns the
 * number that ran, at least 1. Signals stay with the caller's thread.
 */
unsigned sonde_parallel_run(unsigned n, void (*work)(void *ctx, unsigned i), void *ctx);
