#include "traceformat/wire.h"

#include <stdio.h>
#include <string.h>

unsigned sonde_trace_header_decode(const void *data, size_t len)
{
	const uint8_t *p = data;
	if (len < SONDE_TRACE_HEADER_BYTES || memcmp(p, "go 1.", 5) != 0)
		return 0;
	unsigned version = 0;
	size_t i = 5;
	for (; i < 8 && p[i] >= '0' && p[i] <= '9'; i++)
		version = version * 10 + (p[i] - '0');
	if (i == 5 || memcmp(p + i, " trace", 6) != 0)
		return 0;
	for (i += 6; i < SONDE_TRACE_HEADER_BYTES; i++)
		if (p[i])
			return 0;
	return version;
}

void sonde_trace_header_encode(uint8_t to[SONDE_TRACE_HEADER_BYTES], unsigned version)
{
	char text[SONDE_TRACE_HEADER_BYTES + 1] = {0};
	snprintf(text, sizeof(text), "go 1.%u trace", version % 1000);
	memcpy(to, text, SONDE_TRACE_HEADER_BYTES);
}

size_t sonde_trace_varint_decode_slow(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	size_t left = (size_t)(end - p);
	for (size_t i = 0; i < left && i < SONDE_TRACE_MAX_VARINT_BYTES; i++) {
		if (i == 9 && p[i] > 1)
			return 0;
		v |= (uint64_t)(p[i] & 0x7f) << (7 * i);
		if (p[i] < 0x80) {
			*ret = v;
			return i + 1;
		}
	}
	return 0;
}

size_t sonde_trace_varint_encode(uint8_t *to, uint64_t v)
{
	size_t n = 0;
	for (; v >= 0x80; v >>= 7)
		to[n++] = (uint8_t)(v | 0x80);
	to[n++] = (uint8_t)v;
	return n;
}

void sonde_trace_varint_encode_padded(uint8_t to[SONDE_TRACE_MAX_VARINT_BYTES], uint64_t v)
{
	for (size_t i = 0; i < SONDE_TRACE_MAX_VARINT_BYTES - 1; i++, v >>= 7)
		to[i] = (uint8_t)(v | 0x80);
	to[SONDE_TRACE_MAX_VARINT_BYTES - 1] = (uint8_t)v;
}

size_t sonde_trace_batch_head_decode(
	const uint8_t *p, const uint8_t *end, struct sonde_trace_batch_head *ret, bool *cut)
{
	const uint8_t *at = p;
	struct sonde_trace_batch_head h = {0};
	uint64_t size = 0;
	uint64_t *const fields[] = {&h.gen, &h.m, &h.ticks, &size};
	*cut = at >= end;
	if (at >= end || (*at != SONDE_TRACE_EVENT_BATCH && *at != SONDE_TRACE_EXPERIMENTAL_BATCH))
		return 0;
	if (*at++ == SONDE_TRACE_EXPERIMENTAL_BATCH) {
		*cut = at >= end;
		if (at >= end)
			return 0;
		h.experiment = *at++;
	}
	for (size_t i = 0; i < 4; i++) {
		size_t n = sonde_trace_varint_decode(at, end, fields[i]);
		*cut = !n && end - at < SONDE_TRACE_MAX_VARINT_BYTES;
		if (!n)
			return 0;
		h.padded = n == SONDE_TRACE_MAX_VARINT_BYTES;
		at += n;
	}
	if (size > SONDE_TRACE_MAX_BATCH_BYTES)
		return 0;
	h.size = (uint32_t)size;
	*ret = h;
	return (size_t)(at - p);
}

size_t sonde_trace_batch_head_encode(uint8_t *to, const struct sonde_trace_batch_head *head)
{
	size_t n = 0;
	if (head->experiment) {
		to[n++] = SONDE_TRACE_EXPERIMENTAL_BATCH;
		to[n++] = head->experiment;
	} else {
		to[n++] = SONDE_TRACE_EVENT_BATCH;
	}
	n += sonde_trace_varint_encode(to + n, head->gen);
	n += sonde_trace_varint_encode(to + n, head->m);
	n += sonde_trace_varint_encode(to + n, head->ticks);
	sonde_trace_varint_encode_padded(to + n, head->size);
	return n + SONDE_TRACE_MAX_VARINT_BYTES;
}

size_t sonde_trace_event_decode(const uint8_t *p, const uint8_t *end, uint8_t *kind,
	uint64_t *dticks, uint64_t args[SONDE_TRACE_MAX_ARGS])
{
	if (p >= end || !sonde_trace_event_specs[*p].has_time)
		return 0;
	const uint8_t *at = p + 1;
	unsigned n_args = sonde_trace_event_specs[*p].n_args;
	size_t n = sonde_trace_varint_decode(at, end, dticks);
	for (unsigned i = 0; n && i < n_args; i++) {
		at += n;
		n = sonde_trace_varint_decode(at, end, &args[i]);
	}
	if (!n)
		return 0;
	*kind = *p;
	return (size_t)(at + n - p);
}

size_t sonde_trace_event_encode(
	uint8_t *to, enum sonde_trace_kind kind, uint64_t dticks, const uint64_t *args)
{
	size_t n = 0;
	to[n++] = (uint8_t)kind;
	n += sonde_trace_varint_encode(to + n, dticks);
	for (unsigned i = 0; i < sonde_trace_event_specs[kind].n_args; i++)
		n += sonde_trace_varint_encode(to + n, args[i]);
	return n;
}
