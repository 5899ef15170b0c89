/*
 * src/output/sink.h: where a report goes: buffered bytes to a descriptor, a file or memory, with a sticky failure.
 * After the first failed write later bytes are dropped; sonde_sink_finish() tells. One thread at a time.
 */
#pragma once
#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include "base/buf.h"
#include "base/error.h"
#include "base/mem.h"

enum { SONDE_SINK_BUFFER_BYTES = 64 * 1024 };

struct sonde_sink {
	int os_errno; /* the first failure, for good; 0 = none */
	uint64_t n_bytes; /* accepted so far */
	/* The rest is sink.c's. */
	char *buffer;
	size_t n_buffered;
	int fd; /* owned; -1 before the first flush of a lazy one */
	int (*open)(void *ctx); /* makes fd at the first flush */
	bool (*stop)(
		void *ctx); /* the caller's, NULL = none: asked at each flush; true = fail with EINTR */
	void *ctx; /* borrowed; of both */
	struct sonde_buf *memory; /* borrowed: the bytes go there */
	char *name; /* for messages */
	char *path, *temporary; /* renamed from temporary to path at the end */
};

/*
 * A sink over the descriptor that open(ctx) yields when the first bytes leave the buffer, or at the end; the descriptor
 * is the sink's and is closed by it. open returns -1 with errno set. A report that fails before that leaves no trace.
 */
struct sonde_error *sonde_sink_open_lazy(
	const char *name, int (*open)(void *ctx), void *ctx, struct sonde_sink **ret) SONDE_CHECK;

/*
 * A sink that becomes the file path: the bytes go to a new file beside it, which takes its place (and its mode) in
 * sonde_sink_finish() and is removed otherwise. Symbolic links are followed. What is there and is not a regular file (a
 * device, a pipe) is written in place. SONDE_OS with the path where it cannot be made.
 */
struct sonde_error *sonde_sink_open_file(const char *path, struct sonde_sink **ret) SONDE_CHECK;

/* A sink that appends to buf, which must outlive it. */
struct sonde_error *sonde_sink_open_memory(
	struct sonde_buf *buf, struct sonde_sink **ret) SONDE_CHECK;

/*
 * Write what is buffered, close, rename. The first failure since the sink was opened is returned (os_errno keeps its
 * number); then the file at path is as it was before. The sink must still be freed.
 */
struct sonde_error *sonde_sink_finish(struct sonde_sink *sink) SONDE_CHECK;

/* Drops what is buffered, and the unfinished file. */
void sonde_sink_free(struct sonde_sink *sink);
SONDE_DEFINE_CLEANUP(sonde_sink)

/* The slow path of sonde_sink_write(). */
void sonde_sink_write_out(struct sonde_sink *sink, const void *data, size_t len);

static inline void sonde_sink_write(struct sonde_sink *sink, const void *data, size_t len)
{
	if (sonde_unlikely(len > SONDE_SINK_BUFFER_BYTES - sink->n_buffered)) {
		sonde_sink_write_out(sink, data, len);
		return;
	}
	if (!len) /* data may be NULL */
		return;
	memcpy(sink->buffer + sink->n_buffered, data, len);
	sink->n_buffered += len;
	sink->n_bytes += len;
}

static inline void sonde_sink_str(struct sonde_sink *sink, const char *s)
{
	sonde_sink_write(sink, s, strlen(s));
}

static inline void sonde_sink_char(struct sonde_sink *sink, char c)
{
	sonde_sink_write(sink, &c, 1);
}

/* n times c. */
void sonde_sink_fill(struct sonde_sink *sink, char c, size_t n);

/* printf() as it is: for text that needs no escaping. */
void sonde_sink_printf(struct sonde_sink *sink, const char *fmt, ...) SONDE_PRINTF(2, 3);

/* Nothing written from now on arrives: stop working. */
static inline bool sonde_sink_failed(const struct sonde_sink *sink)
{
	return sink->os_errno != 0;
}
