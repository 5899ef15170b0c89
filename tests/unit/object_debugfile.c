#include "object/debugfile.h"

#include "build.h"
#include "tap.h"

static const uint8_t id1[] = {0xab, 0xcd, 0xef, 1}, id2[] = {0xab, 0xcd, 0xef, 2};

/* A file with this build-id (NULL: none), and content that tells it from others. */
static void write_elf(
	const char *name, const uint8_t *id, const char *content, const char *link, uint32_t crc)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, l = {0}, b = {0};
	struct build_elf e = {.type = ET_EXEC};
	if (id) {
		build_buildid_note(&notes, id, 4);
		build_segment(&e, PT_NOTE, PF_R, 0, notes.data, notes.len);
	}
	build_section(&e, ".comment", SHT_PROGBITS, content, strlen(content));
	if (link) {
		sonde_buf_add(&l, link, strlen(link) + 1);
		build_pad(&l, 4);
		build_u32(&l, crc);
		build_section(&e, ".gnu_debuglink", SHT_PROGBITS, l.data, l.len);
	}
	build_elf_write(&e, &b);
	build_file_of(name, &b);
}

static uint32_t crc_of(const char *name)
{
	sonde_cleanup(sonde_mapfile) struct sonde_mapfile *f = NULL;
	sonde_error_free(sonde_mapfile_open(build_path("%s", name), &f));
	return f ? sonde_debugfile_crc(f->data, f->size_bytes) : 0;
}

/* What is found for DIR/name: its path without the test's folder, or the error's text. */
static const char *found(const char *name, const struct sonde_debugfile_options *o)
{
	static char text[4096];
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_elf) struct sonde_elf *debug = NULL;
	struct sonde_error *err = sonde_elf_open(build_path("%s", name), &elf);
	if (!err)
		err = sonde_debugfile_open(elf, o, &debug);
	snprintf(text, sizeof(text), "%s",
		err ? err->message : sonde_elf_path(debug) + strlen(build_dir()) + 1);
	if (err && err->code != SONDE_NOT_FOUND)
		snprintf(text, sizeof(text), "code %d", err->code);
	sonde_error_free(err);
	return text;
}

static void by_debuglink(void)
{
	const struct sonde_debugfile_options o = {.debug_dirs = build_path("none")};
	write_elf("a/prog.debug", NULL, "debug", NULL, 0);
	uint32_t crc = crc_of("a/prog.debug");
	write_elf("a/prog", NULL, "x", "prog.debug", crc);
	CHECK_STR(found("a/prog", &o), "a/prog.debug");
	write_elf("a/prog", NULL, "x", "prog.debug", crc + 1);
	CHECK(strstr(found("a/prog", &o), "its checksum differs"));
	rename(build_path("a/prog.debug"), build_path("a/.debug/prog.debug"));
	write_elf("a/prog", NULL, "x", "prog.debug", crc);
	CHECK_STR(found("a/prog", &o), "a/.debug/prog.debug");
	write_elf("a/prog", NULL, "x", "../a/.debug/prog.debug", crc);
	CHECK(strstr(found("a/prog", &o), "tried nothing"));
	/* A build-id that both have decides, not the sum. */
	write_elf("b/prog.debug", id1, "debug", NULL, 0);
	write_elf("b/prog", id1, "x", "prog.debug", 1);
	CHECK_STR(found("b/prog", &o), "b/prog.debug");
	write_elf("b/prog", id2, "x", "prog.debug", 1);
	CHECK(strstr(found("b/prog", &o), "b/prog.debug (has build-id abcdef01)"));
	CHECK(strstr(found("b/prog", &o), "no debug file with build-id abcdef02"));
	/* A link to itself is no debug file. */
	write_elf("c/prog", id1, "x", "prog", 1);
	CHECK(strstr(found("c/prog", &o), "no debug file"));
}

static void in_debug_dirs(void)
{
	char dirs[2048], sysroot[512];
	snprintf(dirs, sizeof(dirs), "%s:%s", build_path("d1"), build_path("d2"));
	snprintf(sysroot, sizeof(sysroot), "%s", build_path("root"));
	struct sonde_debugfile_options o = {.debug_dirs = dirs};
	write_elf("p/prog", id1, "x", "link.debug", 1);
	CHECK(strstr(found("p/prog", &o), "no debug file"));
	write_elf("d2/.build-id/ab/cdef01.debug", id1, "by id", NULL, 0);
	CHECK_STR(found("p/prog", &o), "d2/.build-id/ab/cdef01.debug");
	write_elf("d1/.build-id/ab/cdef01.debug", id2, "wrong", NULL, 0);
	CHECK_STR(found("p/prog", &o), "d2/.build-id/ab/cdef01.debug");
	/* The sysroot goes first. */
	o.sysroot = sysroot;
	o.debug_dirs = "/usr/lib/debug";
	write_elf("root/usr/lib/debug/.build-id/ab/cdef01.debug", id1, "under root", NULL, 0);
	CHECK_STR(found("p/prog", &o), "root/usr/lib/debug/.build-id/ab/cdef01.debug");
	/* The mirror of the file's own folder, for a file that came from under the sysroot. */
	write_elf("root/usr/bin/prog", id2, "x", "prog.debug", 1);
	write_elf("root/usr/lib/debug/usr/bin/prog.debug", id2, "mirror", NULL, 0);
	CHECK_STR(found("root/usr/bin/prog", &o), "root/usr/lib/debug/usr/bin/prog.debug");
}

static void executable_by_buildid(void)
{
	struct sonde_debugfile_options o = {.debug_dirs = build_path("e1"), .no_debuginfod = true};
	struct sonde_buildid id;
	REQUIRE(sonde_buildid_parse("abcdef01", &id));
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	CHECK_ERROR(sonde_debugfile_open_executable(&id, &o, &elf), SONDE_NOT_FOUND,
		"no executable with build-id abcdef01");
	write_elf("e1/.build-id/ab/cdef01", id1, "exe", NULL, 0);
	CHECK_OK(sonde_debugfile_open_executable(&id, &o, &elf));
	/* One byte of build-id makes no path. */
	REQUIRE(sonde_buildid_parse("ab", &id));
	CHECK_ERROR(
		sonde_debugfile_open_executable(&id, &o, &elf), SONDE_NOT_FOUND, "tried nothing");
}

static unsigned n_messages;
static void message(void *ctx, enum sonde_log_level level, const char *text)
{
	n_messages += !!strstr(text, "asking debuginfod");
}

/* No server answers there: the failure is one more entry of the list, with or without the library. */
static void debuginfod_without_server(void)
{
	const struct sonde_log log = {.message = message};
	struct sonde_debugfile_options o = {.debug_dirs = build_path("none"), .log = &log};
	setenv("DEBUGINFOD_CACHE_PATH", build_path("cache"), 1);
	setenv("DEBUGINFOD_URLS", "http://127.0.0.1:1/", 1);
	write_elf("f/prog", id1, "x", NULL, 0);
	CHECK(strstr(found("f/prog", &o), "debuginfod ("));
	CHECK(n_messages == 1);
	o.no_debuginfod = true;
	CHECK(!strstr(found("f/prog", &o), "debuginfod"));
	unsetenv("DEBUGINFOD_URLS");
	o.no_debuginfod = false;
	CHECK(!strstr(found("f/prog", &o), "debuginfod"));
	CHECK(n_messages == 1);
}

static void checksum(void)
{
	CHECK_EQ(sonde_debugfile_crc("123456789", 9), 0xcbf43926); /* CRC-32's check value */
}

int main(void)
{
	RUN(by_debuglink);
	RUN(in_debug_dirs);
	RUN(executable_by_buildid);
	RUN(debuginfod_without_server);
	RUN(checksum);
	return tap_end();
}
