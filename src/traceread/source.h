/*
 * src/traceread/source.h: the bytes of a trace: a mapped file, memory, or a stream (pipe, compressed file, a file that
 * grows), of which a window is kept. Offsets are of the inflated bytes.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/log.h"
#include "base/mem.h"

struct sonde_trace_source {
	const uint8_t *data; /* the window: bytes from `start` on */
	uint64_t start, len; /* of the window */
	bool at_end; /* nothing follows the window (a file that is followed: nothing for now) */
	bool is_whole; /* the window is all there is and never moves: mapped or in memory */
	struct sonde_trace_source_stream *stream; /* owned; NULL where is_whole */
	struct sonde_mapfile *file; /* owned; NULL where not mapped */
	uint64_t released; /* bytes of the file whose pages were given back */
	const struct sonde_log *log; /* borrowed */
	char *name; /* owned; for messages */
};

/* follow: wait for growth at the end (plain files and pipes). */
struct sonde_error *sonde_trace_source_open(const char *path, bool follow,
	const struct sonde_log *log, struct sonde_trace_source **ret) SONDE_CHECK;
struct sonde_error *sonde_trace_source_open_memory(
	const void *data, size_t len, struct sonde_trace_source **ret) SONDE_CHECK;
void sonde_trace_source_free(struct sonde_trace_source *source);
SONDE_DEFINE_CLEANUP(sonde_trace_source)

/*
 * Make the window reach to at least `end` (an offset from the first byte), or to the end of all. Data moves. Where the
 * source is followed this waits; SONDE_INTERRUPTED as the log's progress says.
 */
struct sonde_error *sonde_trace_source_fill(
	struct sonde_trace_source *source, uint64_t end) SONDE_CHECK;

/* Forget what lies before offset. The window's data moves. */
void sonde_trace_source_drop(struct sonde_trace_source *source, uint64_t offset);

/* All that is left becomes one mapping of an unlinked file (formats that need two passes), is_whole afterwards. */
struct sonde_error *sonde_trace_source_spool(struct sonde_trace_source *source) SONDE_CHECK;
