/* src/core/objects.h: allocated objects, live or not, with what is known of each. */
#pragma once
#include <stdint.h>
#include "core/session.h"

struct sonde_core_object {
	const struct sonde_go_span *span; /* borrowed */
	uint32_t slot, number;
	uint64_t addr; /* of the slot */
	uint64_t value; /* of what the program sees: behind the header, where it has one */
	uint64_t room_bytes; /* from value to the slot's end */
	bool live, allocated;
	uint32_t typing; /* as in typing->of; of garbage: what a header says, else 0 */
};

/* The object of a slot. The session has its typing. */
struct sonde_core_object sonde_core_object_of(
	struct sonde_core_session *s, const struct sonde_go_span *span, uint32_t slot);

/* The object that addr points into; makes the session's typing. SONDE_NOT_FOUND says what is there instead. */
struct sonde_error *sonde_core_object_at(
	struct sonde_core_session *s, uint64_t addr, struct sonde_core_object *ret) SONDE_CHECK;

/* "live", "garbage", "free". What waits for its finalizer counts as garbage here. */
const char *sonde_core_object_state(const struct sonde_core_object *o);
