/*
 * An execution trace of the formats 1.5 to 1.21: read to its end, with every string and stack that an event names, and
 * what the stream promises of each event.
 */
#include <stdlib.h>
#include <string.h>
#include "traceread/stream.h"

static volatile uint64_t sink;

static void use_string(const struct sonde_trace_reader *r, uint64_t id)
{
	size_t len;
	const char *s = sonde_trace_string(r, id, &len);
	for (size_t i = 0; s && i < len; i++)
		sink += (uint8_t)s[i];
}

static void use_event(struct sonde_trace_reader *r, const struct sonde_trace_event *e)
{
	const struct sonde_trace_event_spec *spec = &sonde_trace_event_specs[e->kind];
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	if (!spec->name || e->generation != 1)
		abort();
	for (unsigned i = 0; i < spec->n_args; i++) {
		if (spec->string_args >> i & 1)
			use_string(r, e->args[i]);
		if (spec->stack_args >> i & 1) {
			size_t n = sonde_trace_stack(r, e->args[i], frames);
			for (size_t k = 0; k < n; k++) {
				use_string(r, frames[k].func);
				use_string(r, frames[k].file);
			}
			sink += sonde_trace_intern_stack(r, e->args[i]);
		}
	}
	if (e->g_before >= SONDE_TRACE_N_G_STATUSES || e->g_after >= SONDE_TRACE_N_G_STATUSES ||
		e->p_before >= SONDE_TRACE_N_P_STATUSES || e->p_after >= SONDE_TRACE_N_P_STATUSES)
		abort();
	/* Slots are dense: each took an event to make. */
	const uint32_t slots[] = {
		e->g_slot, e->p_slot, e->m_slot, e->subject_g_slot, e->subject_p_slot};
	for (size_t i = 0; i < sizeof(slots) / sizeof(slots[0]); i++)
		if (slots[i] != SONDE_TRACE_NO_SLOT &&
			slots[i] > sonde_trace_reader_info(r)->n_events)
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e;
	struct sonde_error *err;
	uint64_t n = 0;
	int64_t last = INT64_MIN;
	/* The other formats have targets of their own. */
	unsigned version = sonde_trace_header_decode(data, size);
	if (version >= 22)
		return -1;
	err = sonde_trace_reader_open_memory(data, size, NULL, &r);
	while (!err && !(err = sonde_trace_reader_next(r, &e)) && e) {
		if (e->ns < last)
			abort();
		last = e->ns;
		use_event(r, e);
		/* An event takes two bytes at least, and at most one more is made of it; and two for the ends. */
		if (++n > size + 2)
			abort();
	}
	if (err && (r || err->code == SONDE_NO_MEMORY))
		abort();
	sonde_error_free(err);
	sonde_trace_reader_free(r);
	return 0;
}
