#include "base/error.h"
#include "base/log.h"
#include "base/mapfile.h"
#include "tap.h"

#include <errno.h>
#include <sys/stat.h>

static void causes_chain(void)
{
	struct sonde_error *err = sonde_error_new(SONDE_BAD_DATA, "row %d", 3);
	err = sonde_error_wrap(err, "NT_FILE");
	err = sonde_error_wrap(err, "core");
	CHECK_ERROR(err, SONDE_BAD_DATA, "core: NT_FILE: row 3");
	CHECK(!sonde_error_wrap(NULL, "nothing"));
	CHECK(sonde_error_wrap(&sonde_enomem, "x") == &sonde_enomem);
	sonde_error_free(&sonde_enomem);
	CHECK_ERROR(sonde_error_os(ENOENT, "f"), SONDE_OS, "f: No such file or directory");
	CHECK_ERROR(sonde_error_os(ENOMEM, "f"), SONDE_NO_MEMORY, "f: ");
}

static void exit_statuses(void)
{
	CHECK_EQ(sonde_error_exit_status(SONDE_OK), 0);
	CHECK_EQ(sonde_error_exit_status(SONDE_USAGE), 2);
	for (int code = SONDE_NO_MEMORY; code < SONDE_N_ERRORS; code++) {
		CHECK(code == SONDE_USAGE || sonde_error_exit_status(code) == 1);
		CHECK(strcmp(sonde_error_code_name(code), "unknown"));
	}
}

static char heard[64];

static void hear(void *ctx, enum sonde_log_level level, const char *text)
{
	snprintf(heard, sizeof(heard), "%s %d %s", (const char *)ctx, level, text);
}

static void log_reaches_its_ear(void)
{
	struct sonde_log log = {.message = hear, .ctx = (void *)"ear"};
	sonde_log_message(&log, SONDE_LOG_INFO, "n=%d", 5);
	CHECK_STR(heard, "ear 1 n=5");
	sonde_log_message(NULL, SONDE_LOG_INFO, "silence");
	CHECK(sonde_log_progress(NULL, "x", 0, 1));
}

static void mapfile_refuses_by_name(void)
{
	struct sonde_mapfile *file = NULL;
	CHECK_ERROR(
		sonde_mapfile_open("/nonexistent/x", &file), SONDE_OS, "/nonexistent/x: No such");
	CHECK_ERROR(sonde_mapfile_open("/", &file), SONDE_OS, "/: Is a directory");
	CHECK_ERROR(
		sonde_mapfile_open("/dev/null", &file), SONDE_UNSUPPORTED, "not a regular file");
	char path[] = "/tmp/sonde-test-XXXXXX";
	int fd = mkstemp(path);
	REQUIRE(fd >= 0);
	CHECK_OK(sonde_mapfile_open(path, &file));
	CHECK(file && file->size_bytes == 0 && !file->data);
	sonde_mapfile_free(sonde_take(file));
	REQUIRE(write(fd, "abc", 3) == 3);
	CHECK_OK(sonde_mapfile_open(path, &file));
	REQUIRE(file);
	CHECK(file->size_bytes == 3 && !memcmp(file->data, "abc", 3));
	sonde_mapfile_free(file);
	close(fd);
	unlink(path);
}

int main(void)
{
	RUN(causes_chain);
	RUN(exit_statuses);
	RUN(log_reaches_its_ear);
	RUN(mapfile_refuses_by_name);
	return tap_end();
}
