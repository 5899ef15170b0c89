#include "core/objects.h"

#include <inttypes.h>

/* Objects that nobody reaches have no type but what stands in front of them, or in their span. */
static uint32_t typing_of_garbage(struct sonde_core_session *s, const struct sonde_core_object *o)
{
	uint64_t addr = o->span->large_type;
	if (o->span->pointers == SONDE_GO_HEADER && !sonde_go_read_word(s->go, o->addr, &addr))
		return 0;
	if (o->span->pointers != SONDE_GO_HEADER && o->span->pointers != SONDE_GO_LARGE)
		return 0;
	uint32_t id = sonde_go_types_runtime(s->types, addr);
	const struct sonde_go_type *type = sonde_go_type_of(s->types, id);
	bool many = id && type->size_bytes && o->room_bytes / type->size_bytes >= 2;
	return id | (many ? SONDE_CORE_TYPE_MANY : 0);
}

struct sonde_core_object sonde_core_object_of(
	struct sonde_core_session *s, const struct sonde_go_span *span, uint32_t slot)
{
	struct sonde_core_object o = {
		.span = span,
		.slot = slot,
		.number = span->first + slot,
		.addr = sonde_go_span_addr(span, slot),
		.allocated = sonde_go_span_allocated(span, slot),
	};
	uint64_t header =
		span->pointers == SONDE_GO_HEADER ? (uint64_t)s->go->layout.header_bytes : 0;
	o.value = o.addr + header;
	o.room_bytes = span->slot_bytes - header;
	o.live = sonde_core_marks_has(s->marks, o.number);
	o.typing = o.live ? s->typing->of[o.number] : o.allocated ? typing_of_garbage(s, &o) : 0;
	return o;
}

struct sonde_error *sonde_core_object_at(
	struct sonde_core_session *s, uint64_t addr, struct sonde_core_object *ret)
{
	struct sonde_go_span *span;
	uint32_t slot;
	SONDE_TRY(sonde_core_session_need_heap(s));
	if (!sonde_go_heap_find(s->heap, addr, &span, &slot))
		return sonde_error_new(
			SONDE_NOT_FOUND, "0x%" PRIx64 " is in no slot of the heap", addr);
	SONDE_TRY(sonde_core_session_need_typing(s));
	*ret = sonde_core_object_of(s, span, slot);
	return NULL;
}

const char *sonde_core_object_state(const struct sonde_core_object *o)
{
	return o->live ? "live" : o->allocated ? "garbage" : "free";
}
