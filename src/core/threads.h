/* src/core/threads.h: the threads of a core with their native stacks, C and Go code alike. */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "core/session.h"
#include "symbol/symbolizer.h"
#include "walk/walker.h"

struct sonde_core_thread {
	const struct sonde_thread *thread; /* borrowed from the target */
	const struct sonde_goroutine *goroutine; /* that it runs; NULL = none, or not known */
	size_t first_frame, n_frames; /* in ->frames, innermost first */
	const char *cut; /* why they end early; NULL = at the bottom */
};
SONDE_DEFINE_VEC(sonde_core_thread_vec, struct sonde_core_thread)

struct sonde_core_threads {
	struct sonde_core_session *session; /* borrowed */
	struct sonde_arena arena;
	struct sonde_walk_modules *modules;
	struct sonde_symbolizer *symbolizer;
	struct sonde_core_thread_vec all; /* the one that crashed comes first */
	struct sonde_walk_frames frames;
};

/* Works for any core; where the Go runtime is readable, threads know their goroutines. */
struct sonde_error *sonde_core_threads_open(
	struct sonde_core_session *session, struct sonde_core_threads **ret) SONDE_CHECK;
void sonde_core_threads_free(struct sonde_core_threads *threads);
SONDE_DEFINE_CLEANUP(sonde_core_threads)

/* The calls of a frame, innermost first: Go's by the function table, others by DWARF and symbols. At least 1. */
size_t sonde_core_thread_calls(struct sonde_core_threads *threads,
	const struct sonde_walk_frame *frame, struct sonde_symbol_call *calls, size_t max);
