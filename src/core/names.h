/* src/core/names.h: what reports call types and owners, appended to a buffer. */
#pragma once
#include "base/buf.h"
#include "core/retained.h"

/* A typing of core/typing.h: "main.Node", "[]*main.Leaf", "unknown". */
void sonde_core_type_name(struct sonde_core_session *s, uint32_t typing, struct sonde_buf *to);
/* "main.cache", "goroutine 12 (main.worker)". */
void sonde_core_owner_name(
	struct sonde_core_session *s, const struct sonde_core_owner *o, struct sonde_buf *to);
