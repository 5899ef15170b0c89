/*
 * bench/target.c: what opening a core costs, and an address made a pointer. target CORE [EXE]: milliseconds of wall and
 * CPU time of ten openings (the best), nanoseconds of CPU a look-up at random addresses of what the core holds.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "target/core_file.h"

enum { OPENINGS = 10, ADDRESSES = 1 << 12, ROUNDS = 2000 };

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

static uint64_t addresses[ADDRESSES];

/* Random addresses of mappings in the core, each mapping as likely as another. */
static void choose(struct sonde_target *t)
{
	uint64_t x = 88172645463325252;
	size_t n;
	const struct sonde_mapping *m = sonde_target_mappings(t, &n);
	for (size_t i = 0; i < ADDRESSES;) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		const struct sonde_mapping *pick = &m[(x >> 8) % n];
		if (pick->source == SONDE_SOURCE_CORE)
			addresses[i++] = pick->start + (x >> 20) % (pick->end - pick->start - 7);
	}
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	const struct sonde_core_options options = {.exe = argc > 2 ? argv[2] : NULL};
	double wall = 1e9, cpu = 1e9;
	struct sonde_target *t = NULL;
	for (int i = 0; i < OPENINGS; i++) {
		sonde_target_free(t);
		double w = now(CLOCK_MONOTONIC), c = now(CLOCK_PROCESS_CPUTIME_ID);
		struct sonde_error *err = sonde_core_file_open(argv[1], &options, &t);
		if (err) {
			fprintf(stderr, "%s\n", err->message);
			return 1;
		}
		w = now(CLOCK_MONOTONIC) - w;
		c = now(CLOCK_PROCESS_CPUTIME_ID) - c;
		wall = w < wall ? w : wall;
		cpu = c < cpu ? c : cpu;
	}
	printf("open: %.2f ms wall, %.2f ms CPU\n", wall * 1e3, cpu * 1e3);
	choose(t);
	uintptr_t sum = 0;
	struct sonde_target_run cache = {0};
	double c = now(CLOCK_PROCESS_CPUTIME_ID);
	for (int r = 0; r < ROUNDS; r++)
		for (size_t i = 0; i < ADDRESSES; i++)
			sum += (uintptr_t)sonde_target_bytes(t, addresses[i], 8);
	double random = now(CLOCK_PROCESS_CPUTIME_ID) - c;
	c = now(CLOCK_PROCESS_CPUTIME_ID);
	for (int r = 0; r < ROUNDS; r++)
		for (size_t i = 0; i < ADDRESSES; i++)
			sum += (uintptr_t)sonde_target_bytes_cached(t, &cache, addresses[0], 8);
	double hit = now(CLOCK_PROCESS_CPUTIME_ID) - c;
	size_t n;
	sonde_target_mappings(t, &n);
	double each = 1e9 / ROUNDS / ADDRESSES;
	printf("bytes: %.1f ns at random among %zu mappings, %.1f ns cached (%" PRIuPTR ")\n",
		random * each, n, hit * each, sum & 1);
	sonde_target_free(t);
	return 0;
}
