/*
 * src/core/paths.h: why an object is alive: who refers to it, and the shortest way from a root to each of those. One
 * breadth-first walk over the live objects; no reverse edges: 4 bytes a slot for the parents, 4 for the front.
 */
#pragma once
#include "base/error.h"
#include "base/vec.h"
#include "core/session.h"
#include "golang/roots.h"

enum {
	SONDE_CORE_BY_SPECIAL = UINT32_MAX
}; /* offset of an edge that a finalizer, cleanup or weak handle makes */

struct sonde_core_step {
	uint32_t object; /* number */
	uint64_t offset; /* in its slot, of the pointer to the next step; SONDE_CORE_BY_SPECIAL */
};
SONDE_DEFINE_VEC(sonde_core_steps, struct sonde_core_step)

struct sonde_core_path {
	struct sonde_go_root root; /* where it begins */
	size_t first,
		n_steps; /* in ->steps, from the root on; the last one points to the target; 0 = the root does */
};
SONDE_DEFINE_VEC(sonde_core_path_vec, struct sonde_core_path)

struct sonde_core_paths {
	uint32_t target; /* object number */
	struct sonde_core_path_vec all; /* the shortest first */
	struct sonde_core_steps steps;
	uint64_t
		n_referrers; /* pointers to the target from other live objects and from roots: all of them */
};

/*
 * Up to max_paths paths to the object that addr points into, each through another referrer. SONDE_NOT_FOUND where addr
 * is in no object or nothing alive refers to it (the text says which).
 */
struct sonde_error *sonde_core_paths_find(struct sonde_core_session *s, uint64_t addr,
	size_t max_paths, struct sonde_core_paths *ret) SONDE_CHECK;
void sonde_core_paths_deinit(struct sonde_core_paths *p);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_paths)
