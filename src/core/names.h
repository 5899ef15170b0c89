/* src/core/names.h: what reports call types, owners, fields, roots, appended to a buffer. */
#pragma once
#include "base/buf.h"
#include "core/retained.h"

/* A typing of core/typing.h: "main.Node", "[]*main.Leaf", "unknown". */
void sonde_core_type_name(struct sonde_core_session *s, uint32_t typing, struct sonde_buf *to);
/* "main.cache", "goroutine 12 (main.worker)". */
void sonde_core_owner_name(
	struct sonde_core_session *s, const struct sonde_core_owner *o, struct sonde_buf *to);

/* What stands at offset of a live object's slot: ".next", "[7].name"; SONDE_CORE_BY_SPECIAL: what hangs on it. */
void sonde_core_field_name(struct sonde_core_session *s, const struct sonde_go_span *span,
	uint32_t object, uint64_t offset, struct sonde_buf *to);

/* "main.list.head"; false where no variable of DWARF covers addr. */
bool sonde_core_global_name(struct sonde_core_session *s, uint64_t addr, struct sonde_buf *to);

/* "x.next" of the frame; false where no variable lies at addr. */
bool sonde_core_variable_name(struct sonde_core_session *s, const struct sonde_goroutine *g,
	const struct sonde_go_frame *frame, uint64_t addr, struct sonde_buf *to);
