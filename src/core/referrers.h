/*
 * src/core/referrers.h: who refers to one object: every root, every live object and every finalizer that leads into it,
 * by one pass over the live objects in address order. Nothing is kept but what is found.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/vec.h"
#include "core/session.h"
#include "golang/roots.h"

struct sonde_core_referrer {
	bool is_root;
	struct sonde_go_root root;
	uint32_t object;
	uint64_t offset; /* in the referring slot; SONDE_CORE_BY_SPECIAL (core/paths.h) */
	uint64_t to; /* in the slot that it leads into */
};
SONDE_DEFINE_VEC(sonde_core_referrer_vec, struct sonde_core_referrer)

struct sonde_core_referrers {
	struct sonde_core_referrer_vec all; /* roots first, then objects by address; at most max */
	uint64_t n_roots,
		n_pointers; /* all of them; pointers of live objects, the object itself included */
};

struct sonde_error *sonde_core_referrers_find(struct sonde_core_session *s, uint32_t target,
	size_t max, struct sonde_core_referrers *ret) SONDE_CHECK;

static inline void sonde_core_referrers_deinit(struct sonde_core_referrers *r)
{
	sonde_core_referrer_vec_deinit(&r->all);
}
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_referrers)
