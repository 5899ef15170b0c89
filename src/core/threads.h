/*
 * src/core/threads.h: the threads of a core with their stacks, C and Go code alike. Where Go calls C, or C calls Go, the
 * stack changes (runtime.asmcgocall, runtime.cgocallback): C frames come from walk/, those of goroutines from golang/,
 * and here they are put together in the order of the calls.
 */
#pragma once
#include "base/arena.h"
#include "base/error.h"
#include "core/session.h"
#include "symbol/symbolizer.h"
#include "walk/walker.h"

struct sonde_core_thread {
	const struct sonde_thread *thread; /* borrowed from the target */
	const struct sonde_goroutine *
		goroutine; /* that it runs, or that waits for it alone; NULL = none, or not known */
	size_t first_frame, n_frames; /* in ->frames, innermost first */
	const char *cut; /* why they end early; NULL = at the bottom */
	struct sonde_go_gap gap; /* C code of which no frames are left, the first of it */
};
SONDE_DEFINE_VEC(sonde_core_thread_vec, struct sonde_core_thread)

/* Frames of other code among those of a goroutine. */
struct sonde_core_foreign {
	uint32_t goroutine; /* index */
	uint32_t before; /* the goroutine's frame, counted from its first, that they come before */
	size_t first_frame, n_frames; /* in ->frames, innermost first */
	const char *cut; /* why they end early; NULL = at the call that Go made, or at the bottom */
	bool bottom; /* the thread's stack ends here: what the goroutine has below was never called */
};
SONDE_DEFINE_VEC(sonde_core_foreign_vec, struct sonde_core_foreign)

struct sonde_core_threads {
	struct sonde_core_session *session; /* borrowed */
	struct sonde_arena arena;
	struct sonde_walk_modules *modules;
	struct sonde_symbolizer *symbolizer;
	struct sonde_core_thread_vec all; /* the one that crashed comes first */
	struct sonde_walk_frames frames;
	struct sonde_core_foreign_vec foreign; /* ascending by goroutine and place */
};

/* Works for any core; where the Go runtime is readable, threads know their goroutines. */
struct sonde_error *sonde_core_threads_open(
	struct sonde_core_session *session, struct sonde_core_threads **ret) SONDE_CHECK;
void sonde_core_threads_free(struct sonde_core_threads *threads);
SONDE_DEFINE_CLEANUP(sonde_core_threads)

/* Whether any goroutine has frames of other code, so that opening the threads is worth it for them. Cheap. */
bool sonde_core_threads_mixed(const struct sonde_core_session *session);

/* What comes before the goroutine's frame `before`, or NULL. goroutine is its index. */
const struct sonde_core_foreign *sonde_core_threads_foreign(
	const struct sonde_core_threads *threads, uint32_t goroutine, size_t before);

struct sonde_report;

/* export_threads.c: these frames into an open list, for people as lines like those of goroutines. */
void sonde_core_report_foreign(struct sonde_report *out, struct sonde_core_threads *threads,
	const struct sonde_core_foreign *f);

/* The calls of a frame, innermost first: Go's by the function table, others by DWARF and symbols. At least 1. */
size_t sonde_core_thread_calls(struct sonde_core_threads *threads,
	const struct sonde_walk_frame *frame, struct sonde_symbol_call *calls, size_t max);
