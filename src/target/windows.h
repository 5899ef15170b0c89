/*
 * src/target/windows.h: ranges of files mapped where an address becomes a pointer by one addition. Neighbours that lie
 * in pages of their own share a window: reserved address space, in which each is mapped at its distance from the others.
 */
#pragma once
#include "base/error.h"
#include "base/mem.h"
#include "target/target.h"

struct sonde_window_piece {
	uint64_t start, end; /* addresses; any alignment */
	int fd; /* borrowed; -1: zeros */
	uint64_t offset; /* in the file */
	const char *name; /* of the file, for messages; borrowed */
};

struct sonde_window_hole {
	uint64_t start, end; /* in the core file */
};

struct sonde_windows;

/*
 * Map n pieces, sorted by start and disjoint, none beyond the end of its file. holes (sorted) are ranges of the file
 * holes_fd that hold no data: they become zero pages, whose bytes are never read from the file. Zero pieces beyond
 * SONDE_WINDOW_MAX_ZERO bytes are left out: see sonde_windows_runs(). Descriptors may be closed afterwards.
 */
struct sonde_error *sonde_windows_map(const struct sonde_window_piece *pieces, size_t n,
	int holes_fd, const struct sonde_window_hole *holes, size_t n_holes,
	struct sonde_windows **ret) SONDE_CHECK;
void sonde_windows_free(struct sonde_windows *w);
SONDE_DEFINE_CLEANUP(sonde_windows)

#define SONDE_WINDOW_MAX_ZERO (UINT64_C(64) << 30)

/* The readable runs, sorted, merged where host memory goes on; malloc'd, the caller's. NULL: out of memory. */
struct sonde_target_run *sonde_windows_runs(const struct sonde_windows *w, size_t *n);
