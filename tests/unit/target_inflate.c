#include "target/inflate.h"

#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include "build.h"
#include "target/core_file.h"
#include "tap.h"

enum { ZSTD, XZ, LZ4, GZIP, N_FORMATS, LEN = 3 << 20, HOLE_AT = 64 << 10, HOLE_LEN = 2 << 20 };
static const char *const names[] = {"zstd", "xz", "lz4", "gzip"};
static uint8_t plain[LEN];

/* Noise, a hole of zeros that is no multiple of the buffers, noise. */
static void fill(void)
{
	uint32_t x = 1;
	for (size_t i = 0; i < LEN; i++) {
		x = x * 1664525 + 1013904223;
		plain[i] = i >= HOLE_AT && i < HOLE_AT + HOLE_LEN ? 0 : (uint8_t)(x >> 24 & 0x1f);
	}
}

static void pack(int format, const void *data, size_t len, struct sonde_buf *to)
{
	size_t room = len * 2 + (1 << 16), got = 0;
	char *p = sonde_buf_reserve(to, room);
	if (!p)
		abort();
	if (format == ZSTD) {
		got = ZSTD_compress(p, room, data, len, 1);
	} else if (format == XZ) {
		if (lzma_easy_buffer_encode(0, LZMA_CHECK_CRC32, NULL, data, len, (uint8_t *)p,
			    &got, room) != LZMA_OK)
			abort();
	} else if (format == LZ4) {
		got = LZ4F_compressFrame(p, room, data, len, NULL);
	} else {
		z_stream z = {.next_in = (uint8_t *)data,
			.avail_in = (uInt)len,
			.next_out = (uint8_t *)p,
			.avail_out = (uInt)room};
		if (deflateInit2(&z, 1, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) !=
				Z_OK ||
			deflate(&z, Z_FINISH) != Z_STREAM_END)
			abort();
		got = z.total_out;
		deflateEnd(&z);
	}
	to->len += got;
}

static struct sonde_error *inflate_buf(
	const struct sonde_buf *b, const struct sonde_log *log, struct sonde_notes *notes, int *ret)
{
	const char *path = build_file_of("in", b);
	sonde_cleanup(fd) int fd = open(path, O_RDONLY);
	return sonde_inflate(fd, "in", build_dir(), log, notes, ret);
}

/* Whether the file fd holds what data does. */
static bool holds(int fd, const uint8_t *data, size_t len)
{
	struct stat st;
	sonde_cleanup(free) uint8_t *got = malloc(len + 1);
	return !fstat(fd, &st) && (size_t)st.st_size == len &&
		pread(fd, got, len + 1, 0) == (ssize_t)len && !memcmp(got, data, len);
}

static void whole_files(void)
{
	for (int f = 0; f < N_FORMATS; f++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		pack(f, plain, LEN, &b);
		CHECK_STR(sonde_inflate_detect(b.data, b.len), names[f]);
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		sonde_cleanup(fd) int fd = -1;
		REQUIRE_OK(inflate_buf(&b, NULL, &notes, &fd));
		CHECK(holds(fd, plain, LEN));
		CHECK_EQ(notes.entries.n, 0);
		struct stat st;
		REQUIRE(!fstat(fd, &st));
		CHECK_EQ(st.st_nlink, 0); /* unlinked: nothing stays behind */
		CHECK(st.st_blocks * 512 <= LEN - HOLE_LEN + (64 << 10));
	}
	CHECK(!sonde_inflate_detect("\x7f"
				    "ELF",
		4));
	CHECK(!sonde_inflate_detect("", 0));
}

static void concatenated_streams(void)
{
	const size_t first = HOLE_AT + 12345; /* a stream that ends amid a block and amid zeros */
	for (int f = 0; f < N_FORMATS; f++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		pack(f, plain, first, &b);
		pack(f, plain + first, 0, &b);
		pack(f, plain + first, LEN - first, &b);
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		sonde_cleanup(fd) int fd = -1;
		REQUIRE_OK(inflate_buf(&b, NULL, &notes, &fd));
		CHECK(holds(fd, plain, LEN));
		CHECK_EQ(notes.entries.n, 0);
	}
}

static void bytes_behind(void)
{
	for (int f = 0; f < N_FORMATS; f++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		pack(f, plain, LEN, &b);
		sonde_buf_add(&b, "trailing rubbish", 16);
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		sonde_cleanup(fd) int fd = -1;
		REQUIRE_OK(inflate_buf(&b, NULL, &notes, &fd));
		CHECK(holds(fd, plain, LEN));
		CHECK_EQ(notes.entries.n, 1);
	}
}

static void cut_and_damaged(void)
{
	for (int f = 0; f < N_FORMATS; f++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		pack(f, plain, LEN, &b);
		const size_t whole = b.len;
		for (int k = 0; k < 8; k++) {
			size_t keep = whole * (size_t)(k + 1) / 9;
			sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
			sonde_cleanup(fd) int fd = -1;
			b.len = keep;
			REQUIRE_OK(inflate_buf(&b, NULL, &notes, &fd));
			b.len = whole;
			struct stat st;
			REQUIRE(!fstat(fd, &st) && notes.entries.n == 1);
			CHECK(strstr(notes.entries.items[0].first, "data ends too early after"));
			CHECK(st.st_size > 0 && st.st_size < LEN &&
				holds(fd, plain, (size_t)st.st_size));
		}
		/* A byte in the middle: whatever came out, it is said (where the format has a check at all). */
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		sonde_cleanup(fd) int fd = -1;
		memset(b.data + whole / 2, 0xff, 64);
		struct sonde_error *err = inflate_buf(&b, NULL, &notes, &fd);
		CHECK(err || notes.entries.n || !holds(fd, plain, LEN));
		sonde_error_free(err);
		/* Nothing behind the magic. */
		int none = -1;
		b.len = 6;
		err = inflate_buf(&b, NULL, &notes, &none);
		CHECK(err && (err->code == SONDE_TRUNCATED || err->code == SONDE_BAD_DATA) &&
			strstr(err->message, "before anything was inflated"));
		sonde_error_free(err);
	}
}

static unsigned n_calls;
static bool stop(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	n_calls++;
	return false;
}

static void interrupted(void)
{
	const struct sonde_log log = {.progress = stop};
	for (int f = 0; f < N_FORMATS; f++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		pack(f, plain, LEN, &b);
		int fd = -1;
		n_calls = 0;
		CHECK_ERROR(inflate_buf(&b, &log, NULL, &fd), SONDE_INTERRUPTED,
			"stopped while inflating");
		CHECK_EQ(n_calls, 1);
		CHECK_EQ(fd, -1);
	}
}

static void no_folder(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	pack(GZIP, plain, 100, &b);
	sonde_cleanup(fd) int fd = open(build_file_of("in", &b), O_RDONLY);
	int ret = -1;
	CHECK_ERROR(sonde_inflate(fd, "in", "/nonexistent/dir", NULL, NULL, &ret), SONDE_OS,
		"folder /nonexistent/dir: No such file");
}

/* In a child: the folder is full after a megabyte. 0: as it should be. */
static int fill_up(int fd, const char *dir)
{
	int ret = -1;
	struct sonde_error *err = sonde_inflate(fd, "in", dir, NULL, NULL, &ret);
	bool right = err && err->code == SONDE_OS &&
		strstr(err->message, "its inflated copy needs about ") &&
		strstr(err->message, dir) &&
		strstr(err->message, "name another folder with TMPDIR=");
	if (!right)
		printf("# %s\n", err ? err->message : "no error");
	fflush(stdout);
	sonde_error_free(err);
	return !right;
}

static void a_full_disk(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	for (size_t i = 0; i < LEN; i++)
		plain[i] |= 1; /* no holes */
	pack(LZ4, plain, LEN, &b);
	fill();
	sonde_cleanup(fd) int fd = open(build_file_of("in", &b), O_RDONLY);
	const char *dir = build_path("small");
	mkdir(dir, 0777);
	if (!mount("none", dir, "tmpfs", 0, "size=1m")) {
		CHECK_EQ(fill_up(fd, dir), 0);
		umount2(dir, MNT_DETACH);
	} else {
		printf("# no mount: only the limit on file sizes is tried\n");
	}
	fflush(stdout);
	pid_t child = fork();
	if (!child) {
		struct rlimit l = {1 << 20, 1 << 20};
		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &l);
		_exit(fill_up(fd, build_dir()));
	}
	int status;
	waitpid(child, &status, 0);
	CHECK_EQ(status, 0);
}

/* Through sonde_core_file_open(): by magic, whatever the name. */
static void compressed_cores(void)
{
	static uint8_t page[4096] = "heap";
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, core = {0};
	struct build_elf e = {.type = ET_CORE};
	build_prstatus(&notes, EM_X86_64, 7, 11, NULL, 0);
	build_segment(&e, PT_NOTE, 0, 0, notes.data, notes.len);
	build_segment(&e, PT_LOAD, PF_R, 0xc000000000, page, sizeof(page))->mem_bytes =
		2 * sizeof(page);
	build_segment(&e, PT_LOAD, PF_R, 0xd000000000, plain, HOLE_AT);
	build_elf_write(&e, &core);
	for (int f = 0; f < N_FORMATS; f++) {
		for (int cut = 0; cut < 2; cut++) {
			sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
			pack(f, core.data, core.len, &b);
			b.len -= cut ? 2000 : 0;
			sonde_cleanup(sonde_notes) struct sonde_notes n = {0};
			char tmp_dir[256];
			snprintf(tmp_dir, sizeof(tmp_dir), "%s", build_dir());
			struct sonde_core_options o = {.notes = &n, .tmp_dir = tmp_dir};
			sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
			struct sonde_error *err = sonde_core_file_open(
				build_file_of("core.prog.0.boot.7.time", &b), &o, &t);
			/* A stream that gives nothing before its first block is whole gives no core either. */
			if (cut && err) {
				CHECK(err->code == SONDE_TRUNCATED || err->code == SONDE_BAD_DATA);
				sonde_error_free(err);
				continue;
			}
			REQUIRE_OK(err);
			uint32_t v = 0;
			CHECK(sonde_target_read_u32(t, 0xc000000000, &v) && !memcmp(&v, "heap", 4));
			CHECK(sonde_target_bytes(t, 0xc000000000, 8192));
			const uint8_t *p = sonde_target_bytes(t, 0xd000000000, HOLE_AT);
			CHECK(cut ? !p : p && !memcmp(p, plain, HOLE_AT));
			CHECK_EQ(!n.entries.n, !cut);
		}
	}
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	pack(XZ, "no core", 7, &b);
	struct sonde_target *t = NULL;
	CHECK_ERROR(sonde_core_file_open(build_file_of("x", &b), NULL, &t), SONDE_BAD_DATA,
		"x: not a core dump: it is 7 bytes of text");
}

int main(void)
{
	fill();
	RUN(whole_files);
	RUN(concatenated_streams);
	RUN(bytes_behind);
	RUN(cut_and_damaged);
	RUN(interrupted);
	RUN(no_folder);
	RUN(a_full_disk);
	RUN(compressed_cores);
	return tap_end();
}
