/*
 * src/core/typing.h: what each live object is. Types come from where the program or the runtime says them: the type in
 * an object's header or span, then, from package variables, frame variables and those objects on, along every typed
 * pointer, slice, string, interface, map and channel. What nobody says stays unknown and is counted.
 *
 * Costs: 4 bytes a slot of the heap, 4 bytes for each object whose pointers are still to be followed.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "core/mark.h"
#include "golang/types.h"

enum {
	SONDE_CORE_TYPE_MANY = 1u << 31
}; /* several in a row: the backing store of a slice or array */

struct sonde_core_typing {
	struct sonde_go_types *types; /* borrowed */
	uint32_t *of; /* by object: type id, with SONDE_CORE_TYPE_MANY; 0 = unknown or not live */
};

struct sonde_error *sonde_core_type_heap(const struct sonde_go_heap *heap,
	const struct sonde_goroutines *gs, const struct sonde_core_marks *marks,
	struct sonde_go_types *types, struct sonde_core_typing **ret) SONDE_CHECK;
void sonde_core_typing_free(struct sonde_core_typing *typing);
SONDE_DEFINE_CLEANUP(sonde_core_typing)
