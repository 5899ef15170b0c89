/* Execution traces: any bytes, read to the end, every string and stack looked at. Times rise, slots are what they say. */
#include <stdint.h>
#include <stdlib.h>
#include "traceread/state.h"
#include "traceread/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(struct sonde_trace_reader *r, const struct sonde_trace_event *e)
{
	const struct sonde_trace_event_spec *spec = &sonde_trace_event_specs[e->kind];
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	size_t len, n;
	for (unsigned i = 0; i < SONDE_TRACE_MAX_ARGS; i++) {
		const char *s = sonde_trace_string(r, e->args[i], &len);
		if (s && len && s[0] + s[len - 1] == 1 << 20)
			abort();
		if (spec->string_args >> i & 1)
			sonde_trace_intern(r, e->args[i]);
	}
	uint64_t stack = sonde_trace_event_stack(e);
	n = sonde_trace_stack(r, stack, frames);
	for (size_t i = 0; i < n; i++)
		sonde_trace_string(r, frames[i].func, &len);
	uint32_t id = sonde_trace_intern_stack(r, stack);
	const struct sonde_trace_interned_frame *interned = sonde_trace_interned_stack(r, id, &len);
	if (len != n || (n && interned[n - 1].pc != frames[n - 1].pc))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e;
	int64_t last = INT64_MIN;
	struct sonde_error *err = sonde_trace_reader_open_memory(data, size, NULL, &r);
	while (!err) {
		err = sonde_trace_reader_next(r, &e);
		if (err || !e)
			break;
		if (e->ns <= last && last != INT64_MAX)
			abort();
		last = e->ns;
		const struct sonde_trace_state *s = sonde_trace_reader_state(r);
		if (e->subject_g_slot != SONDE_TRACE_NO_SLOT && e->subject_g_slot >= s->gs.n)
			abort();
		if (e->m_slot != SONDE_TRACE_NO_SLOT &&
			(e->m_slot >= s->ms.n || s->ms.items[e->m_slot].id != e->m))
			abort();
		look_up(r, e);
	}
	sonde_error_free(err);
	sonde_trace_reader_free(r);
	return 0;
}
