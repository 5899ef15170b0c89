#include "traceread/source.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mapfile.h"
#include "target/inflate.h"

enum {
	READ_BYTES = 256 << 10,
	FOLLOW_MS = 100, /* between two looks at a file that grows */
	RELEASE_ALIGN = 64 << 10, /* of any machine's page */
	RELEASE_STEP = 1 << 20,
};

enum coding { PLAIN, GZIP, ZSTD };

struct sonde_trace_source_stream {
	int fd; /* owned */
	enum coding coding;
	bool follow, ended; /* ended: the descriptor has no more */
	uint8_t *buffer; /* the window lies in it, from `skip` on */
	uint64_t cap, skip;
	uint8_t *in; /* of compressed bytes: READ_BYTES */
	size_t n_in, in_at;
	z_stream z;
	bool z_open;
	ZSTD_DStream *zstd;
	uint64_t read_bytes, size_bytes; /* for the progress; size 0: not known */
	bool damaged; /* the compressed stream broke off */
};

static void stream_free(struct sonde_trace_source_stream *s)
{
	if (!s)
		return;
	if (s->fd >= 0)
		close(s->fd);
	if (s->z_open)
		inflateEnd(&s->z);
	ZSTD_freeDStream(s->zstd);
	free(s->buffer);
	free(s->in);
	free(s);
}

void sonde_trace_source_free(struct sonde_trace_source *source)
{
	if (!source)
		return;
	stream_free(source->stream);
	sonde_mapfile_free(source->file);
	free(source->name);
	free(source);
}

/* --- reading --- */

/* Up to len bytes; *n 0: the end. In follow mode a regular file is waited for. */
static struct sonde_error *read_some(
	struct sonde_trace_source *source, void *to, size_t len, size_t *n)
{
	struct sonde_trace_source_stream *s = source->stream;
	for (;;) {
		ssize_t got = read(s->fd, to, len);
		if (got > 0) {
			*n = (size_t)got;
			s->read_bytes += (size_t)got;
			return NULL;
		}
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return sonde_error_os(errno, "%s: read", source->name);
		if (!sonde_log_progress(source->log, "reading", s->read_bytes, s->size_bytes)) {
			if (!s->follow)
				return sonde_error_new(
					SONDE_INTERRUPTED, "%s: interrupted", source->name);
			*n = 0; /* how a file that is followed ends */
			s->ended = true;
			return NULL;
		}
		if (got == 0 && !s->follow) {
			*n = 0;
			s->ended = true;
			return NULL;
		}
		if (got <= 0)
			poll(NULL, 0, FOLLOW_MS);
	}
}

static struct sonde_error *refill_in(struct sonde_trace_source *source)
{
	struct sonde_trace_source_stream *s = source->stream;
	if (s->in_at < s->n_in || s->ended)
		return NULL;
	s->in_at = s->n_in = 0;
	return read_some(source, s->in, READ_BYTES, &s->n_in);
}

/* Inflate some to the window's end. *n 0: the end, or broken (damaged). */
static struct sonde_error *inflate_gzip(
	struct sonde_trace_source *source, uint8_t *to, size_t len, size_t *n)
{
	struct sonde_trace_source_stream *s = source->stream;
	*n = 0;
	while (!*n && !s->damaged) {
		SONDE_TRY(refill_in(source));
		if (s->in_at == s->n_in)
			break;
		s->z.next_in = s->in + s->in_at;
		s->z.avail_in = (uInt)(s->n_in - s->in_at);
		s->z.next_out = to;
		s->z.avail_out = (uInt)len;
		int rc = inflate(&s->z, Z_NO_FLUSH);
		s->in_at = s->n_in - s->z.avail_in;
		*n = len - s->z.avail_out;
		if (rc == Z_STREAM_END)
			rc = inflateReset(&s->z); /* another member may follow */
		if (rc != Z_OK && rc != Z_BUF_ERROR)
			s->damaged = true;
	}
	return NULL;
}

static struct sonde_error *inflate_zstd(
	struct sonde_trace_source *source, uint8_t *to, size_t len, size_t *n)
{
	struct sonde_trace_source_stream *s = source->stream;
	*n = 0;
	while (!*n && !s->damaged) {
		SONDE_TRY(refill_in(source));
		ZSTD_inBuffer in = {s->in, s->n_in, s->in_at};
		ZSTD_outBuffer out = {to, len, 0};
		size_t rc = ZSTD_decompressStream(s->zstd, &out, &in);
		bool stuck = in.pos == s->in_at && !out.pos;
		s->in_at = in.pos;
		*n = out.pos;
		if (ZSTD_isError(rc))
			s->damaged = true;
		else if (stuck && s->in_at == s->n_in && s->ended)
			break;
	}
	return NULL;
}

static bool stream_reserve(struct sonde_trace_source *source, uint64_t more)
{
	struct sonde_trace_source_stream *s = source->stream;
	if (s->skip && s->skip >= source->len) {
		memcpy(s->buffer, s->buffer + s->skip, source->len);
		s->skip = 0;
	}
	if (s->cap - s->skip - source->len < more) {
		uint64_t cap = s->skip + source->len + more;
		cap = sonde_max(cap, s->cap + s->cap / 2);
		uint8_t *bigger = realloc(s->buffer, cap);
		if (!bigger)
			return false;
		s->buffer = bigger;
		s->cap = cap;
	}
	source->data = s->buffer + s->skip;
	return true;
}

struct sonde_error *sonde_trace_source_fill(struct sonde_trace_source *source, uint64_t end)
{
	struct sonde_trace_source_stream *s = source->stream;
	while (!source->at_end && source->start + source->len < end) {
		size_t n = 0;
		if (!stream_reserve(source, READ_BYTES))
			return &sonde_enomem;
		uint8_t *to = s->buffer + s->skip + source->len;
		if (s->coding == GZIP)
			SONDE_TRY(inflate_gzip(source, to, READ_BYTES, &n));
		else if (s->coding == ZSTD)
			SONDE_TRY(inflate_zstd(source, to, READ_BYTES, &n));
		else
			SONDE_TRY(read_some(source, to, READ_BYTES, &n));
		source->len += n;
		source->at_end = n == 0;
	}
	return NULL;
}

void sonde_trace_source_drop(struct sonde_trace_source *source, uint64_t offset)
{
	if (source->is_whole) {
		/* The pages stay in the page cache; they only stop counting as this process's. */
		uint64_t end = offset & ~(uint64_t)(RELEASE_ALIGN - 1);
		if (source->file && end > source->released + RELEASE_STEP) {
			madvise((void *)(uintptr_t)(source->file->data + source->released),
				end - source->released, MADV_DONTNEED);
			source->released = end;
		}
		return;
	}
	if (offset <= source->start)
		return;
	uint64_t n = sonde_min(offset - source->start, source->len);
	source->stream->skip += n;
	source->start += n;
	source->len -= n;
	source->data = source->stream->buffer + source->stream->skip;
}

/* --- opening --- */

static struct sonde_error *new_source(
	const char *name, const struct sonde_log *log, struct sonde_trace_source **ret)
{
	sonde_cleanup(sonde_trace_source) struct sonde_trace_source *source =
		sonde_new(struct sonde_trace_source);
	if (!source)
		return &sonde_enomem;
	source->log = log;
	source->name = strdup(name);
	if (!source->name)
		return &sonde_enomem;
	*ret = sonde_take(source);
	return NULL;
}

struct sonde_error *sonde_trace_source_open_memory(
	const void *data, size_t len, struct sonde_trace_source **ret)
{
	struct sonde_trace_source *source;
	SONDE_TRY(new_source("memory", NULL, &source));
	source->data = data;
	source->len = len;
	source->at_end = source->is_whole = true;
	*ret = source;
	return NULL;
}

static struct sonde_error *map_fd(struct sonde_trace_source *source, int *fd)
{
	SONDE_TRY(sonde_mapfile_open_fd(*fd, source->name, &source->file));
	*fd = -1;
	source->data = source->file->data;
	source->len = source->file->size_bytes;
	source->start = 0;
	source->at_end = source->is_whole = true;
	return NULL;
}

/* What the first bytes say it is coded as, and the decoder for it. */
static struct sonde_error *start_decoder(struct sonde_trace_source *source, const char *coding)
{
	struct sonde_trace_source_stream *s = source->stream;
	s->coding = !coding ? PLAIN : !strcmp(coding, "zstd") ? ZSTD : GZIP;
	if (s->coding == PLAIN)
		return NULL;
	/* What was read so far is input. */
	s->in = malloc(sonde_max(source->len, (uint64_t)READ_BYTES));
	if (!s->in)
		return &sonde_enomem;
	memcpy(s->in, source->data, source->len);
	s->n_in = source->len;
	source->len = 0;
	source->at_end = false;
	if (s->coding == GZIP) {
		if (inflateInit2(&s->z, 16 + MAX_WBITS) != Z_OK)
			return &sonde_enomem;
		s->z_open = true;
	} else {
		s->zstd = ZSTD_createDStream();
		if (!s->zstd)
			return &sonde_enomem;
	}
	return NULL;
}

static struct sonde_error *open_stream(
	struct sonde_trace_source *source, int *fd, bool follow, uint64_t size_bytes)
{
	struct sonde_trace_source_stream *s = source->stream =
		sonde_new(struct sonde_trace_source_stream);
	if (!s)
		return &sonde_enomem;
	s->fd = sonde_take_fd(*fd);
	s->follow = follow;
	s->size_bytes = size_bytes;
	SONDE_TRY(sonde_trace_source_fill(source, 8));
	const char *coding = source->len ? sonde_inflate_detect(source->data, source->len) : NULL;
	if (coding && strcmp(coding, "gzip") != 0 && strcmp(coding, "zstd") != 0)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"%s: %s cannot be read as a stream: unpack it, or give the file's name",
			source->name, coding);
	return start_decoder(source, coding);
}

struct sonde_error *sonde_trace_source_open(
	const char *path, bool follow, const struct sonde_log *log, struct sonde_trace_source **ret)
{
	bool standard = !strcmp(path, "-");
	sonde_cleanup(sonde_trace_source) struct sonde_trace_source *source = NULL;
	sonde_cleanup(fd) int fd = -1;
	struct stat st;
	uint8_t magic[8];
	SONDE_TRY(new_source(standard ? "standard input" : path, log, &source));
	fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sonde_error_os(errno, "%s", source->name);
	if (S_ISDIR(st.st_mode))
		return sonde_error_os(EISDIR, "%s", source->name);
	bool regular = S_ISREG(st.st_mode) && (!standard || lseek(fd, 0, SEEK_CUR) == 0);
	ssize_t n = regular ? pread(fd, magic, sizeof(magic), 0) : 0;
	const char *coding = n > 0 ? sonde_inflate_detect(magic, (size_t)n) : NULL;
	if (regular && !coding && !follow) {
		SONDE_TRY(map_fd(source, &fd));
	} else if (regular && coding && strcmp(coding, "gzip") != 0 &&
		strcmp(coding, "zstd") != 0) {
		sonde_cleanup(fd) int inflated = -1;
		SONDE_TRY(sonde_inflate(fd, source->name, NULL, log, NULL, &inflated));
		SONDE_TRY(map_fd(source, &inflated));
	} else {
		bool grows = follow && regular && !coding;
		SONDE_TRY(open_stream(source, &fd, grows, regular ? (uint64_t)st.st_size : 0));
	}
	*ret = sonde_take(source);
	return NULL;
}

struct sonde_error *sonde_trace_source_spool(struct sonde_trace_source *source)
{
	if (source->is_whole)
		return NULL;
	const char *dir = getenv("TMPDIR");
	dir = dir && *dir ? dir : "/var/tmp";
	sonde_cleanup(fd) int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd < 0)
		return sonde_error_os(errno, "%s: a temporary file", dir);
	uint64_t start = source->start;
	for (;;) {
		const uint8_t *p = source->data;
		for (uint64_t left = source->len; left;) {
			ssize_t n = write(fd, p, left);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return sonde_error_os(errno, "%s: a temporary file", dir);
			p += n;
			left -= (uint64_t)n;
		}
		sonde_trace_source_drop(source, source->start + source->len);
		if (source->at_end)
			break;
		SONDE_TRY(sonde_trace_source_fill(source, source->start + 1));
	}
	stream_free(sonde_take(source->stream));
	SONDE_TRY(map_fd(source, &fd));
	source->start = start;
	return NULL;
}
