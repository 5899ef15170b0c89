/* src/traceread/internal.h: what the readers of both format families and reader.c share. Only for traceread/ and trace/repair.c. */
#pragma once
#include "base/strtab.h"
#include "traceread/state.h"
#include "traceread/stream.h"

struct sonde_trace_source; /* traceread/source.h */

/* A format family: its reader is allocated by open and hangs at reader->impl. */
struct sonde_trace_ops {
	/* The header was checked and reader->info.version set; source stands at its first byte (the header). */
	struct sonde_error *(*open)(struct sonde_trace_reader *r)SONDE_CHECK;
	/* As sonde_trace_reader_next(). */
	struct sonde_error *(*next)(
		struct sonde_trace_reader *r, const struct sonde_trace_event **ret)SONDE_CHECK;
	/* As sonde_trace_string(), for ids that are the file's. */
	const char *(*string)(const struct sonde_trace_reader *r, uint64_t id, size_t *len);
	/* As sonde_trace_stack(). */
	size_t (*stack)(const struct sonde_trace_reader *r, uint64_t id,
		struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES]);
	/* A cache of one interned id + 1 for this string or stack, or NULL where there is none (it is not cached). */
	uint32_t *(*string_cache)(struct sonde_trace_reader *r, uint64_t id);
	uint32_t *(*stack_cache)(struct sonde_trace_reader *r, uint64_t id);
	void (*free)(struct sonde_trace_reader *r);
};

extern const struct sonde_trace_ops sonde_trace_v1_ops; /* v1.c */
extern const struct sonde_trace_ops sonde_trace_v2_ops; /* v2.c */

struct sonde_trace_interned_stack_entry {
	uint32_t first, n, hash; /* in frames */
};
SONDE_DEFINE_VEC(sonde_trace_interned_frames, struct sonde_trace_interned_frame)
SONDE_DEFINE_VEC(sonde_trace_interned_stacks, struct sonde_trace_interned_stack_entry)

struct sonde_trace_reader {
	const struct sonde_trace_ops *ops;
	void *impl; /* the format family's */
	struct sonde_trace_source *source; /* owned */
	struct sonde_trace_reader_options options;
	struct sonde_trace_info info;
	struct sonde_trace_damages damages;
	struct sonde_trace_state state;
	int64_t last_ns; /* of the event that was last delivered; INT64_MIN: none */
	struct sonde_strtab strings; /* interned */
	struct sonde_trace_interned_stacks stacks; /* interned; 0 is the one without frames */
	struct sonde_trace_interned_frames frames;
	uint32_t *stack_slots; /* index + 1 by hash */
	size_t stack_slots_cap;
};

/* Where a damage is; a NULL place is "nowhere". */
struct sonde_trace_place {
	uint64_t offset, m, p, g, bytes;
};

/* List one. Never fails: what memory has no room for is counted. */
void sonde_trace_damage_add(struct sonde_trace_reader *r, enum sonde_trace_damage_code code,
	const struct sonde_trace_place *place, const char *fmt, ...) SONDE_PRINTF(4, 5);

/* At the end: remarks for the tasks and regions that are open, for a trace may stop anywhere. */
void sonde_trace_damage_add_open(struct sonde_trace_reader *r, uint64_t offset);
