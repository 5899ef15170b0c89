/*
 * src/core/ownerpaths.h: the live heap by who owns it: the dominator tree with objects of one type below the same owner
 * folded together. A node is a way from a root down by types; its bytes are those of its own objects, and what it retains
 * is the sum of the nodes below it.
 *
 * Costs: 4 bytes an object, 40 a node; one look at a map an object.
 */
#pragma once
#include "core/retained.h"

struct sonde_core_owner_node {
	uint32_t parent; /* node; smaller than its own number. Node 0 is the whole */
	uint32_t what; /* as a typing of core/typing.h, or SONDE_CORE_OWNER_IS_ROOT */
	uint32_t owner; /* index in retained->owners where what is SONDE_CORE_OWNER_IS_ROOT */
	uint32_t depth;
	uint32_t vertex; /* of the object that retains most; 0 = none */
	uint64_t n_objects, bytes; /* its own */
};
SONDE_DEFINE_VEC(sonde_core_owner_nodes, struct sonde_core_owner_node)

enum { SONDE_CORE_OWNER_IS_ROOT = UINT32_MAX };

struct sonde_core_owner_paths {
	struct sonde_core_owner_nodes nodes;
	uint64_t n_cut,
		cut_bytes; /* objects that count for an owner above theirs: the ways were too many or too long */
};

/*
 * Needs typing. r NULL: no owners, one node a type. A type that already stands among the last few of a way leads back there: the items of a list are not
 * nodes below each other.
 */
struct sonde_error *sonde_core_owner_paths_make(struct sonde_core_session *s,
	const struct sonde_core_retained *r, struct sonde_core_owner_paths *ret) SONDE_CHECK;
void sonde_core_owner_paths_deinit(struct sonde_core_owner_paths *p);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_owner_paths)
