#include "target/inflate.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include "base/mem.h"

enum { IN_BYTES = 256 << 10, OUT_BYTES = 1 << 20, BLOCK_BYTES = 4096, PROGRESS_NS = 100000000 };
static const uint64_t XZ_MAX_MEMORY_BYTES = UINT64_C(2) << 30;
static const int ZSTD_MAX_WINDOW_LOG = 31;

enum step {
	STEP_GOING,
	STEP_END, /* a whole stream is done; another may follow */
	STEP_BAD,
};

struct input {
	const uint8_t *p;
	size_t len;
	bool last; /* nothing comes behind it */
};

struct output {
	uint8_t *p;
	size_t len; /* room */
};

struct codec {
	const char *name;
	uint8_t magic[6], magic_len;
	void *(*open)(void);
	/* Moves input and output on. */
	enum step (*run)(void *state, struct input *in, struct output *out);
	void (*close)(void *state);
};

static void *zstd_open(void)
{
	ZSTD_DCtx *state = ZSTD_createDCtx();
	if (state)
		ZSTD_DCtx_setParameter(state, ZSTD_d_windowLogMax, ZSTD_MAX_WINDOW_LOG);
	return state;
}

static enum step zstd_run(void *state, struct input *in, struct output *out)
{
	ZSTD_inBuffer from = {in->p, in->len, 0};
	ZSTD_outBuffer to = {out->p, out->len, 0};
	size_t left = ZSTD_decompressStream(state, &to, &from);
	in->p += from.pos;
	in->len -= from.pos;
	out->p += to.pos;
	out->len -= to.pos;
	return ZSTD_isError(left) ? STEP_BAD : left ? STEP_GOING : STEP_END;
}

static void zstd_close(void *state)
{
	ZSTD_freeDCtx(state);
}

static void *xz_open(void)
{
	lzma_stream *state = sonde_new(lzma_stream);
	if (state &&
		lzma_stream_decoder(state, XZ_MAX_MEMORY_BYTES, LZMA_CONCATENATED) != LZMA_OK) {
		free(state);
		return NULL;
	}
	return state;
}

static enum step xz_run(void *state, struct input *in, struct output *out)
{
	lzma_stream *z = state;
	z->next_in = in->p;
	z->avail_in = in->len;
	z->next_out = out->p;
	z->avail_out = out->len;
	lzma_ret status = lzma_code(z, in->last ? LZMA_FINISH : LZMA_RUN);
	in->p = z->next_in;
	in->len = z->avail_in;
	out->p = z->next_out;
	out->len = z->avail_out;
	if (status == LZMA_STREAM_END)
		return STEP_END;
	return status == LZMA_OK || status == LZMA_BUF_ERROR ? STEP_GOING : STEP_BAD;
}

static void xz_close(void *state)
{
	lzma_end(state);
	free(state);
}

static void *lz4_open(void)
{
	LZ4F_dctx *state = NULL;
	return LZ4F_isError(LZ4F_createDecompressionContext(&state, LZ4F_VERSION)) ? NULL : state;
}

static enum step lz4_run(void *state, struct input *in, struct output *out)
{
	size_t from = in->len, to = out->len;
	size_t left = LZ4F_decompress(state, out->p, &to, in->p, &from, NULL);
	in->p += from;
	in->len -= from;
	out->p += to;
	out->len -= to;
	return LZ4F_isError(left) ? STEP_BAD : left ? STEP_GOING : STEP_END;
}

static void lz4_close(void *state)
{
	LZ4F_freeDecompressionContext(state);
}

static void *gzip_open(void)
{
	z_stream *state = sonde_new(z_stream);
	if (state && inflateInit2(state, 16 + MAX_WBITS) != Z_OK) {
		free(state);
		return NULL;
	}
	return state;
}

static enum step gzip_run(void *state, struct input *in, struct output *out)
{
	z_stream *z = state;
	z->next_in = (uint8_t *)in->p; /* zlib's interface lacks the const */
	z->avail_in = (uInt)in->len;
	z->next_out = out->p;
	z->avail_out = (uInt)out->len;
	int status = inflate(z, Z_NO_FLUSH);
	in->p = z->next_in;
	in->len = z->avail_in;
	out->p = z->next_out;
	out->len = z->avail_out;
	if (status == Z_STREAM_END)
		return inflateReset(z) == Z_OK ? STEP_END : STEP_BAD;
	return status == Z_OK || status == Z_BUF_ERROR ? STEP_GOING : STEP_BAD;
}

static void gzip_close(void *state)
{
	inflateEnd(state);
	free(state);
}

static const struct codec codecs[] = {
	{"zstd", {0x28, 0xb5, 0x2f, 0xfd}, 4, zstd_open, zstd_run, zstd_close},
	{"xz", {0xfd, '7', 'z', 'X', 'Z', 0}, 6, xz_open, xz_run, xz_close},
	{"lz4", {0x04, 0x22, 0x4d, 0x18}, 4, lz4_open, lz4_run, lz4_close},
	{"gzip", {0x1f, 0x8b, 8}, 3, gzip_open, gzip_run, gzip_close},
};

static const struct codec *codec_of(const void *data, size_t len)
{
	for (size_t i = 0; i < SONDE_ARRAY_LEN(codecs); i++)
		if (len >= codecs[i].magic_len &&
			!memcmp(data, codecs[i].magic, codecs[i].magic_len))
			return &codecs[i];
	return NULL;
}

const char *sonde_inflate_detect(const void *data, size_t len)
{
	const struct codec *codec = codec_of(data, len);
	return codec ? codec->name : NULL;
}

struct inflating {
	const struct codec *codec;
	const char *name, *dir;
	const struct sonde_log *log;
	struct sonde_notes *notes;
	int from, to;
	uint64_t in_total, in_done; /* compressed bytes */
	uint64_t out_done; /* inflated bytes, flushed */
	uint64_t written; /* of them no zeros */
	uint64_t last_progress_ns;
	uint8_t *in_buffer, *out_buffer;
};

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static struct sonde_error *no_space(const struct inflating *w, int os_errno)
{
	if (os_errno != ENOSPC && os_errno != EDQUOT && os_errno != EFBIG)
		return sonde_error_os(
			os_errno, "%s: writing its inflated copy in %s", w->name, w->dir);
	double share = w->in_total ? (double)w->in_done / (double)w->in_total : 1;
	uint64_t need = share > 0 ? (uint64_t)((double)w->written / share) : w->written;
	return sonde_error_os(os_errno,
		"%s: its inflated copy needs about %" PRIu64 " bytes in %s, which holds no more "
		"than %" PRIu64 "; name another folder with TMPDIR=",
		w->name, sonde_max(need, w->written + 1), w->dir, w->written);
}

static struct sonde_error *write_all(
	struct inflating *w, const uint8_t *data, size_t len, uint64_t offset)
{
	while (len) {
		ssize_t n = pwrite(w->to, data, len, (off_t)offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return no_space(w, n ? errno : ENOSPC);
		w->written += (uint64_t)n;
		data += n;
		offset += (uint64_t)n;
		len -= (size_t)n;
	}
	return NULL;
}

/* Write len bytes at the end, blocks of zeros left as holes. All but the last call have whole blocks. */
static struct sonde_error *flush(struct inflating *w, size_t len)
{
	static const uint8_t zeros[BLOCK_BYTES];
	size_t data = 0, at = 0; /* [data, at) is to be written */
	while (at < len) {
		size_t n = sonde_min(len - at, (size_t)BLOCK_BYTES);
		if (memcmp(w->out_buffer + at, zeros, n)) {
			at += n;
			continue;
		}
		SONDE_TRY(write_all(w, w->out_buffer + data, at - data, w->out_done + data));
		data = at += n;
	}
	SONDE_TRY(write_all(w, w->out_buffer + data, at - data, w->out_done + data));
	w->out_done += len;
	return NULL;
}

static struct sonde_error *show_progress(struct inflating *w)
{
	uint64_t now = now_ns();
	if (now - w->last_progress_ns < PROGRESS_NS)
		return NULL;
	w->last_progress_ns = now;
	if (sonde_log_progress(w->log, "inflating", w->in_done, w->in_total))
		return NULL;
	return sonde_error_new(SONDE_INTERRUPTED, "%s: stopped while inflating", w->name);
}

/* What came before a damaged place stays. */
static struct sonde_error *cut(struct inflating *w, bool at_end)
{
	const char *how = at_end ? "ends too early" : "is damaged";
	if (!w->out_done)
		return sonde_error_new(at_end ? SONDE_TRUNCATED : SONDE_BAD_DATA,
			"%s: its %s data %s before anything was inflated", w->name, w->codec->name,
			how);
	sonde_notes_add(w->notes, "compressed core cut short", 0,
		"%s: its %s data %s after %" PRIu64 " inflated bytes", w->name, w->codec->name, how,
		w->out_done);
	sonde_log_message(w->log, SONDE_LOG_WARNING,
		"%s: its %s data %s after %" PRIu64 " inflated bytes", w->name, w->codec->name, how,
		w->out_done);
	return NULL;
}

static struct sonde_error *inflate_all(struct inflating *w, void *state)
{
	struct input in = {0};
	struct output out = {w->out_buffer, OUT_BYTES};
	bool open = true; /* inside a stream */
	enum step step = STEP_GOING;
	for (;;) {
		if (!in.len && !in.last) {
			ssize_t n = pread(w->from, w->in_buffer, IN_BYTES, (off_t)w->in_done);
			if (n < 0 && errno == EINTR)
				continue;
			if (n < 0)
				return sonde_error_os(errno, "%s", w->name);
			in = (struct input){w->in_buffer, (size_t)n, !n};
			w->in_done += (uint64_t)n;
		}
		size_t in_before = in.len, out_before = out.len;
		/* Behind a whole stream there may be nothing more; xz wants to be told so. */
		if (!open && in.last && !in.len)
			step = STEP_END;
		else
			step = w->codec->run(state, &in, &out);
		bool moved = in.len != in_before || out.len != out_before;
		if (step == STEP_GOING && out.len != out_before)
			open = true;
		if (step == STEP_END)
			open = false;
		bool over = step == STEP_BAD || (in.last && !in.len && !moved);
		if (!out.len || over) {
			SONDE_TRY(flush(w, OUT_BYTES - out.len));
			out = (struct output){w->out_buffer, OUT_BYTES};
		}
		SONDE_TRY(show_progress(w));
		if (!over)
			continue;
		if (step == STEP_BAD && !open && w->out_done) {
			sonde_notes_add(w->notes, "bytes behind the compressed core ignored", 0,
				"%s", w->name);
			return NULL;
		}
		return step == STEP_END ? NULL : cut(w, step != STEP_BAD);
	}
}

static int open_unlinked(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0 || (errno != EOPNOTSUPP && errno != EISDIR && errno != EINVAL))
		return fd;
	char path[4096];
	if ((size_t)snprintf(path, sizeof(path), "%s/sonde-core-XXXXXX", dir) >= sizeof(path)) {
		errno = ENAMETOOLONG;
		return -1;
	}
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	return fd;
}

static const char *choose_dir(const char *given)
{
	const char *dir = given ? given : getenv("TMPDIR");
	if (dir && dir[0])
		return dir;
	return access("/var/tmp", W_OK) ? "/tmp" : "/var/tmp";
}

struct sonde_error *sonde_inflate(int fd, const char *name, const char *tmp_dir,
	const struct sonde_log *log, struct sonde_notes *notes, int *ret)
{
	struct stat st;
	uint8_t magic[8];
	ssize_t got = pread(fd, magic, sizeof(magic), 0);
	if (got < 0 || fstat(fd, &st) < 0)
		return sonde_error_os(errno, "%s", name);
	struct inflating w = {
		.codec = codec_of(magic, (size_t)got),
		.name = name,
		.dir = choose_dir(tmp_dir),
		.log = log,
		.notes = notes,
		.from = fd,
		.in_total = (uint64_t)st.st_size,
	};
	if (!w.codec)
		return sonde_error_new(SONDE_BAD_DATA, "%s: not compressed", name);
	sonde_cleanup(fd) int to = w.to = open_unlinked(w.dir);
	if (to < 0)
		return sonde_error_os(
			errno, "%s: no room for its inflated copy: folder %s", name, w.dir);
	sonde_cleanup(free) uint8_t *in = w.in_buffer = malloc(IN_BYTES);
	sonde_cleanup(free) uint8_t *out = w.out_buffer = malloc(OUT_BYTES);
	void *state = w.codec->open();
	struct sonde_error *err = in && out && state ? inflate_all(&w, state) : &sonde_enomem;
	if (state)
		w.codec->close(state);
	if (err)
		return err;
	if (ftruncate(to, (off_t)w.out_done) < 0)
		return no_space(&w, errno);
	(void)sonde_log_progress(log, "inflating", w.in_total, w.in_total);
	*ret = sonde_take_fd(to);
	return NULL;
}
