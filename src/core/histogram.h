/* src/core/histogram.h: live objects counted by type. */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "core/session.h"

struct sonde_core_histogram_row {
	const char *name; /* "main.Node", "[]*main.Leaf" for backing stores, "unknown" */
	uint64_t count, bytes; /* objects; of their slots, as HeapAlloc counts */
	bool unknown;
};
SONDE_DEFINE_VEC(sonde_core_histogram_rows, struct sonde_core_histogram_row)

struct sonde_core_histogram {
	struct sonde_arena arena;
	struct sonde_core_histogram_rows rows; /* by bytes, the largest first; ties by name */
	uint64_t n_live, live_bytes;
	uint64_t n_unknown, unknown_bytes;
};

enum sonde_core_histogram_key { SONDE_CORE_BY_TYPE, SONDE_CORE_BY_PACKAGE };

/* Needs the session's typing (made here where absent). The caller frees; the rows sum up to the live objects. */
struct sonde_error *sonde_core_histogram_make(struct sonde_core_session *s,
	enum sonde_core_histogram_key key, struct sonde_core_histogram *ret) SONDE_CHECK;
void sonde_core_histogram_deinit(struct sonde_core_histogram *h);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_histogram)

/*
 * The import path of the type that a name is made of: of "[]*a/b.T[int]" *start is "a/b...", and its length is
 * returned; 0 for the language's own types.
 */
size_t sonde_core_package_of(const char *name, const char **start);
