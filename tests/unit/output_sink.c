#include "output/sink.h"
#include "tap.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>

static char folder[] = "/tmp/sonde-sink-XXXXXX";

static const char *in_folder(const char *name)
{
	static char path[256];
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static int n_files(void)
{
	DIR *d = opendir(folder);
	int n = 0;
	for (struct dirent *e; d && (e = readdir(d));)
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static const char *content(const char *path)
{
	static char text[256];
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
	if (f)
		fclose(f);
	text[n] = 0;
	return f ? text : NULL;
}

static void a_file_appears_whole(void)
{
	struct sonde_sink *sink = NULL;
	const char *path = in_folder("report");
	REQUIRE_OK(sonde_sink_open_file(path, &sink));
	sonde_sink_str(sink, "one ");
	sonde_sink_printf(sink, "%s %0600d", "two", 3); /* longer than printf's first room */
	CHECK_EQ(sink->n_bytes, 4 + 4 + 600);
	CHECK(!content(path));
	CHECK_OK(sonde_sink_finish(sink));
	sonde_sink_free(sink);
	CHECK(content(path) && !strncmp(content(path), "one two 000", 11));
	CHECK_EQ(n_files(), 1);
}

static void a_failed_report_leaves_the_old_file(void)
{
	struct sonde_sink *sink = NULL;
	const char *path = in_folder("report");
	REQUIRE_OK(sonde_sink_open_file(path, &sink));
	for (int i = 0; i < 100000; i++)
		sonde_sink_str(sink, "new");
	sonde_sink_free(sink);
	CHECK(content(path) && !strncmp(content(path), "one", 3));
	CHECK_EQ(n_files(), 1);
}

static void mode_and_links_stay(void)
{
	struct sonde_sink *sink = NULL;
	char link[256];
	snprintf(link, sizeof(link), "%s", in_folder("link"));
	const char *path = in_folder("report");
	REQUIRE(chmod(path, 0600) == 0 && symlink("report", link) == 0);
	REQUIRE_OK(sonde_sink_open_file(link, &sink));
	sonde_sink_str(sink, "through the link");
	CHECK_OK(sonde_sink_finish(sink));
	sonde_sink_free(sink);
	struct stat st;
	CHECK_STR(content(path), "through the link");
	CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
	CHECK(lstat(link, &st) == 0 && S_ISLNK(st.st_mode));
	CHECK_EQ(n_files(), 2);
}

static void what_cannot_be_made_is_named(void)
{
	struct sonde_sink *sink = NULL;
	CHECK_ERROR(sonde_sink_open_file(in_folder("no/such"), &sink), SONDE_OS,
		"no/such: No such file or directory");
	CHECK_ERROR(sonde_sink_open_file(folder, &sink), SONDE_OS, "Is a directory");
	CHECK_ERROR(sonde_sink_open_file(in_folder("report/x"), &sink), SONDE_OS,
		"report/x: Not a directory");
	CHECK(!sink);
}

static void a_full_disk_is_told_once(void)
{
	struct sonde_sink *sink = NULL;
	REQUIRE_OK(sonde_sink_open_file("/dev/full", &sink));
	sonde_sink_str(sink, "little"); /* stays in the buffer until the end */
	CHECK(!sonde_sink_failed(sink));
	CHECK_ERROR(sonde_sink_finish(sink), SONDE_OS, "/dev/full: No space left on device");
	CHECK_EQ(sink->os_errno, ENOSPC);
	sonde_sink_free(sink);

	REQUIRE_OK(sonde_sink_open_file("/dev/full", &sink));
	sonde_sink_fill(sink, 'x', 3 * SONDE_SINK_BUFFER_BYTES);
	CHECK(sonde_sink_failed(sink));
	sonde_sink_str(sink, "dropped");
	CHECK_ERROR(sonde_sink_finish(sink), SONDE_OS, "No space left");
	sonde_sink_free(sink);
}

static int n_opened;

static int open_pipe_end(void *ctx)
{
	n_opened++;
	int *fd = ctx;
	return dup(*fd);
}

static void a_lazy_sink_opens_with_the_first_bytes(void)
{
	int fds[2];
	REQUIRE(pipe(fds) == 0);
	struct sonde_sink *sink = NULL;
	REQUIRE_OK(sonde_sink_open_lazy("standard output", open_pipe_end, &fds[1], &sink));
	sonde_sink_str(sink, "given up");
	sonde_sink_free(sink);
	CHECK_EQ(n_opened, 0);

	REQUIRE_OK(sonde_sink_open_lazy("standard output", open_pipe_end, &fds[1], &sink));
	sonde_sink_str(sink, "kept");
	CHECK_OK(sonde_sink_finish(sink));
	sonde_sink_free(sink);
	CHECK_EQ(n_opened, 1);
	char text[16] = "";
	CHECK(read(fds[0], text, sizeof(text)) == 4 && !strcmp(text, "kept"));
	close(fds[0]);

	/* Nobody reads any more. */
	signal(SIGPIPE, SIG_IGN);
	REQUIRE_OK(sonde_sink_open_lazy("standard output", open_pipe_end, &fds[1], &sink));
	sonde_sink_str(sink, "unheard");
	CHECK_ERROR(sonde_sink_finish(sink), SONDE_OS, "standard output: Broken pipe");
	CHECK_EQ(sink->os_errno, EPIPE);
	sonde_sink_free(sink);
	close(fds[1]);
	REQUIRE_OK(sonde_sink_open_lazy("standard output", open_pipe_end, &fds[1], &sink));
	sonde_sink_str(sink, "closed");
	CHECK_ERROR(sonde_sink_finish(sink), SONDE_OS, "Bad file descriptor");
	sonde_sink_free(sink);
}

static void memory_gets_everything(void)
{
	struct sonde_buf buf = {0};
	struct sonde_sink *sink = NULL;
	REQUIRE_OK(sonde_sink_open_memory(&buf, &sink));
	char *big = malloc(SONDE_SINK_BUFFER_BYTES * 2);
	REQUIRE(big);
	memset(big, 'y', SONDE_SINK_BUFFER_BYTES * 2);
	sonde_sink_char(sink, 'x');
	sonde_sink_write(sink, big, SONDE_SINK_BUFFER_BYTES * 2);
	sonde_sink_fill(sink, 'z', 130);
	CHECK_OK(sonde_sink_finish(sink));
	CHECK_EQ(buf.len, 1 + SONDE_SINK_BUFFER_BYTES * 2 + 130);
	CHECK_EQ(sink->n_bytes, buf.len);
	CHECK(buf.data[0] == 'x' && buf.data[1] == 'y' && buf.data[buf.len - 130] == 'z');
	sonde_sink_free(sink);
	sonde_buf_deinit(&buf);
	free(big);
}

int main(void)
{
	if (!mkdtemp(folder))
		return 1;
	RUN(a_file_appears_whole);
	RUN(a_failed_report_leaves_the_old_file);
	RUN(mode_and_links_stay);
	RUN(what_cannot_be_made_is_named);
	RUN(a_full_disk_is_told_once);
	RUN(a_lazy_sink_opens_with_the_first_bytes);
	RUN(memory_gets_everything);
	unlink(in_folder("link"));
	unlink(in_folder("report"));
	rmdir(folder);
	return tap_end();
}
