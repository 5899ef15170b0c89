/*
 * src/traceformat/wire.h: the bytes of Go's execution trace: header, varints, batches and events of the formats from
 * 1.22 on; reading and writing. Nothing here allocates. The formats before share header and varints.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "traceformat/events.h"

enum {
	SONDE_TRACE_HEADER_BYTES = 16, /* "go 1.N trace" and NULs */
	SONDE_TRACE_MAX_BATCH_BYTES = 64 << 10, /* of a batch behind its head */
	SONDE_TRACE_MAX_FRAMES = 128, /* of a stack */
	SONDE_TRACE_MAX_STRING_BYTES = 1 << 10,
	SONDE_TRACE_MAX_VARINT_BYTES = 10,
	SONDE_TRACE_MAX_EVENT_BYTES = 1 + 5 * SONDE_TRACE_MAX_VARINT_BYTES,
	SONDE_TRACE_MAX_HEAD_BYTES = 2 + 4 * SONDE_TRACE_MAX_VARINT_BYTES,
};

/* No goroutine, processor or thread: what the format and Go write as -1. */
#define SONDE_TRACE_NO_ID UINT64_MAX

/* The N of "go 1.N trace"; 0 where these are not the first bytes of an execution trace. */
unsigned sonde_trace_header_decode(const void *data, size_t len);
void sonde_trace_header_encode(uint8_t to[SONDE_TRACE_HEADER_BYTES], unsigned version);

/* As Go's binary.Uvarint: the bytes taken, 0 where the value does not end before `end` or has more than 64 bits. */
size_t sonde_trace_varint_decode_slow(const uint8_t *p, const uint8_t *end, uint64_t *ret);

static inline size_t sonde_trace_varint_decode(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	if (p < end && *p < 0x80) {
		*ret = *p;
		return 1;
	}
	return sonde_trace_varint_decode_slow(p, end, ret);
}

size_t sonde_trace_varint_encode(uint8_t *to, uint64_t v);

/* v as exactly 10 bytes: room that is filled in when the value is known. */
void sonde_trace_varint_encode_padded(uint8_t to[SONDE_TRACE_MAX_VARINT_BYTES], uint64_t v);

struct sonde_trace_batch_head {
	uint64_t gen, m, ticks;
	uint32_t size; /* of what follows */
	uint8_t experiment; /* 0 = none */
	bool padded; /* size stands in 10 bytes, as the runtime writes it */
};

/* Bytes of the head at p; 0 where there is none, or it is not complete (*cut says so), or size is too large. */
size_t sonde_trace_batch_head_decode(
	const uint8_t *p, const uint8_t *end, struct sonde_trace_batch_head *ret, bool *cut);

/* With the size padded. Returns the length, at most SONDE_TRACE_MAX_HEAD_BYTES. */
size_t sonde_trace_batch_head_encode(uint8_t *to, const struct sonde_trace_batch_head *head);

/* The event at p of a thread's batch: kind, time passed, arguments. Returns its bytes, 0 where it is not one. */
size_t sonde_trace_event_decode(const uint8_t *p, const uint8_t *end, uint8_t *kind,
	uint64_t *dticks, uint64_t args[SONDE_TRACE_MAX_ARGS]);

/* args: as many as the catalogue says. Returns the length, at most SONDE_TRACE_MAX_EVENT_BYTES. */
size_t sonde_trace_event_encode(
	uint8_t *to, enum sonde_trace_kind kind, uint64_t dticks, const uint64_t *args);
