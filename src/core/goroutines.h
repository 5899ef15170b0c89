/* src/core/goroutines.h: goroutines chosen by state and function, and those with equal stacks put together. */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/vec.h"
#include "core/session.h"

struct sonde_core_goroutine_filter {
	bool has_id;
	uint64_t id;
	const char *state; /* the state or wait reason begins with it; NULL = any */
	const char *function; /* some call's function contains it; NULL = any */
};

/* The indices (in goroutines->all) of those that pass, in the runtime's order. */
struct sonde_error *sonde_core_goroutines_choose(struct sonde_core_session *s,
	const struct sonde_core_goroutine_filter *filter, struct sonde_u32_vec *ret) SONDE_CHECK;

/* Goroutines with the same state, wait reason, frames and creator. */
struct sonde_core_goroutine_group {
	uint32_t first, n; /* in `members` */
};
SONDE_DEFINE_VEC(sonde_core_goroutine_group_vec, struct sonde_core_goroutine_group)

struct sonde_core_goroutine_groups {
	struct sonde_u32_vec
		members; /* indices, group by group; in a group ascending by goroutine id */
	struct sonde_core_goroutine_group_vec groups; /* the largest first; ties by first id */
};

struct sonde_error *sonde_core_goroutines_group(struct sonde_core_session *s,
	const struct sonde_u32_vec *chosen, struct sonde_core_goroutine_groups *ret) SONDE_CHECK;
void sonde_core_goroutine_groups_deinit(struct sonde_core_goroutine_groups *g);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_goroutine_groups)

/* What a person is told it does: the wait reason, else the state. */
static inline const char *sonde_core_goroutine_doing(const struct sonde_goroutine *g)
{
	return g->wait_reason ? g->wait_reason : g->state;
}
