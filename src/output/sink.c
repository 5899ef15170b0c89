#include "output/sink.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>

static struct sonde_sink *sink_new(const char *name)
{
	struct sonde_sink *sink = sonde_new(struct sonde_sink);
	if (!sink)
		return NULL;
	sink->fd = -1;
	sink->buffer = malloc(SONDE_SINK_BUFFER_BYTES);
	sink->name = strdup(name);
	if (!sink->buffer || !sink->name) {
		sonde_sink_free(sink);
		return NULL;
	}
	return sink;
}

struct sonde_error *sonde_sink_open_lazy(
	const char *name, int (*open_fd)(void *ctx), void *ctx, struct sonde_sink **ret)
{
	struct sonde_sink *sink = sink_new(name);
	if (!sink)
		return &sonde_enomem;
	sink->open = open_fd;
	sink->ctx = ctx;
	*ret = sink;
	return NULL;
}

struct sonde_error *sonde_sink_open_memory(struct sonde_buf *buf, struct sonde_sink **ret)
{
	struct sonde_sink *sink = sink_new("memory");
	if (!sink)
		return &sonde_enomem;
	sink->memory = buf;
	*ret = sink;
	return NULL;
}

/* A new file beside path, with its mode where path is there: what was private stays private. */
static struct sonde_error *open_temporary(
	struct sonde_sink *sink, const char *path, const struct stat *old)
{
	/* Beside the file that a link names, not beside the link; without a file, the name as given. */
	sink->path = old ? realpath(path, NULL) : strdup(path);
	if (!sink->path)
		return sonde_error_os(errno, "%s", path);
	mode_t mode = old ? old->st_mode & 0777 : 0666;
	for (unsigned attempt = 0; attempt < 100; attempt++) {
		sonde_cleanup(free) char *name = NULL;
		if (asprintf(&name, "%s.%ld-%u.part", sink->path, (long)getpid(), attempt) < 0) {
			name = NULL;
			return &sonde_enomem;
		}
		sink->fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
		if (sink->fd >= 0) {
			sink->temporary = sonde_take(name);
			if (old && fchmod(sink->fd, mode) != 0)
				return sonde_error_os(errno, "%s", path);
			return NULL;
		}
		if (errno != EEXIST)
			break;
	}
	return sonde_error_os(errno, "%s", path);
}

struct sonde_error *sonde_sink_open_file(const char *path, struct sonde_sink **ret)
{
	sonde_cleanup(sonde_sink) struct sonde_sink *sink = sink_new(path);
	if (!sink)
		return &sonde_enomem;
	struct stat st;
	bool there = stat(path, &st) == 0;
	if (!there && errno != ENOENT)
		return sonde_error_os(errno, "%s", path);
	if (there && S_ISDIR(st.st_mode))
		return sonde_error_os(EISDIR, "%s", path);
	if (there && !S_ISREG(st.st_mode)) {
		sink->fd = open(path, O_WRONLY | O_CLOEXEC | O_NOCTTY);
		if (sink->fd < 0)
			return sonde_error_os(errno, "%s", path);
	} else {
		SONDE_TRY(open_temporary(sink, path, there ? &st : NULL));
	}
	*ret = sonde_take(sink);
	return NULL;
}

/* Send all of data, whatever its size; a failure is kept. */
static void put(struct sonde_sink *sink, const char *data, size_t len)
{
	if (sink->os_errno)
		return;
	if (sink->memory) {
		sonde_buf_add(sink->memory, data, len);
		if (sink->memory->failed)
			sink->os_errno = ENOMEM;
		return;
	}
	if (sink->stop && sink->stop(sink->ctx)) {
		sink->os_errno = EINTR;
		return;
	}
	if (sink->fd < 0 && sink->open)
		sink->fd = sink->open(sink->ctx);
	if (sink->fd < 0)
		sink->os_errno = errno ? errno : EBADF;
	while (len && !sink->os_errno) {
		ssize_t n = write(sink->fd, data, len);
		if (n >= 0) {
			data += n;
			len -= (size_t)n;
		} else if (errno != EINTR) {
			sink->os_errno = errno;
		}
	}
}

static void flush(struct sonde_sink *sink)
{
	put(sink, sink->buffer, sink->n_buffered);
	sink->n_buffered = 0;
}

void sonde_sink_write_out(struct sonde_sink *sink, const void *data, size_t len)
{
	flush(sink);
	sink->n_bytes += len;
	if (len >= SONDE_SINK_BUFFER_BYTES) {
		put(sink, data, len);
		return;
	}
	memcpy(sink->buffer, data, len);
	sink->n_buffered = len;
}

void sonde_sink_fill(struct sonde_sink *sink, char c, size_t n)
{
	char run[64];
	memset(run, c, sizeof(run));
	for (; n > sizeof(run); n -= sizeof(run))
		sonde_sink_write(sink, run, sizeof(run));
	sonde_sink_write(sink, run, n);
}

void sonde_sink_printf(struct sonde_sink *sink, const char *fmt, ...)
{
	char text[512];
	va_list args, again;
	va_start(args, fmt);
	va_copy(again, args);
	int len = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	char *more = NULL;
	if (len >= 0 && (size_t)len < sizeof(text)) {
		sonde_sink_write(sink, text, (size_t)len);
	} else if (len >= 0 && (len = vasprintf(&more, fmt, again)) >= 0) {
		sonde_sink_write(sink, more, (size_t)len);
		free(more);
	} else if (!sink->os_errno) {
		sink->os_errno = ENOMEM;
	}
	va_end(again);
}

struct sonde_error *sonde_sink_finish(struct sonde_sink *sink)
{
	flush(sink);
	if (sink->fd >= 0) {
		/* Some file systems say only here that the disk is full. */
		if (close(sink->fd) != 0 && !sink->os_errno)
			sink->os_errno = errno;
		sink->fd = -1;
	}
	if (sink->temporary && !sink->os_errno) {
		if (rename(sink->temporary, sink->path) == 0) {
			free(sink->temporary);
			sink->temporary = NULL;
		} else {
			sink->os_errno = errno;
		}
	}
	return sink->os_errno ? sonde_error_os(sink->os_errno, "%s", sink->name) : NULL;
}

void sonde_sink_free(struct sonde_sink *sink)
{
	if (!sink)
		return;
	if (sink->fd >= 0)
		close(sink->fd);
	if (sink->temporary)
		unlink(sink->temporary);
	free(sink->temporary);
	free(sink->path);
	free(sink->name);
	free(sink->buffer);
	free(sink);
}
