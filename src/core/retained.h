/*
 * src/core/retained.h: who keeps memory alive: for each object, and for each owner (a package variable, a goroutine, a
 * queue of finalizers), the bytes that would be free without it: its retained size, by dominators over the live objects.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "core/session.h"
#include "golang/roots.h"

enum sonde_core_owner_kind {
	SONDE_CORE_OWNER_GLOBAL, /* index in sonde_dwarf_globals(); UINT32_MAX = data that no variable covers */
	SONDE_CORE_OWNER_GOROUTINE, /* index in goroutines->all */
	SONDE_CORE_OWNER_QUEUE, /* finalizers and cleanups that wait to run */
};

struct sonde_core_owner {
	enum sonde_core_owner_kind kind;
	uint32_t index;
	uint32_t vertex; /* UINT32_MAX = keeps no object */
};
SONDE_DEFINE_VEC(sonde_core_owner_vec, struct sonde_core_owner)

/*
 * Vertex 0 is the root of all; a vertex is an owner or an object, in depth-first order. 28 bytes an object while it is
 * made, 16 afterwards.
 */
struct sonde_core_retained {
	uint32_t n; /* vertices */
	uint32_t *what; /* by vertex: object number, or n_slots + owner; [0] is void */
	uint32_t *idom; /* by vertex */
	uint64_t *
		bytes; /* by vertex: retained, itself included; owners have no bytes of their own */
	uint32_t n_slots;
	struct sonde_core_owner_vec owners;
};

/* Live objects only: what waits for finalizers of unreachable objects is not in it. */
struct sonde_error *sonde_core_retained_make(
	struct sonde_core_session *s, struct sonde_core_retained **ret) SONDE_CHECK;
void sonde_core_retained_free(struct sonde_core_retained *r);
SONDE_DEFINE_CLEANUP(sonde_core_retained)
