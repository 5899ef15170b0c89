#include "object/debugfile.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>
#include "base/buf.h"
#include "base/cursor.h"

enum { MAX_PATH_BYTES = 4096 };

uint32_t sonde_debugfile_crc(const void *data, size_t len)
{
	return (uint32_t)crc32_z(0, data, len);
}

struct search {
	const struct sonde_debugfile_options *options;
	const struct sonde_elf *of; /* NULL: an executable is wanted, by id alone */
	struct sonde_buildid id; /* len 0: none */
	bool has_crc;
	uint32_t crc; /* of .gnu_debuglink */
	struct sonde_buf tried;
	struct sonde_elf *found;
};

static void tried(struct search *s, const char *fmt, const char *what)
{
	if (s->tried.len)
		sonde_buf_str(&s->tried, ", ");
	sonde_buf_printf(&s->tried, fmt, what);
}

/* true = found. A file that is not there is listed, one that does not fit is named with its identity. */
static bool try_file(struct search *s, const char *path)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	struct sonde_error *err = sonde_elf_open(path, &elf);
	if (err) {
		tried(s, "%s", err->message);
		sonde_error_free(err);
		return false;
	}
	struct sonde_buildid id;
	char hex[SONDE_BUILDID_HEX_BYTES];
	sonde_buildid_of_elf(elf, &id);
	/* A link may lead back to the file itself. */
	if (s->of && s->of->file && elf->file->device == s->of->file->device &&
		elf->file->inode == s->of->file->inode)
		return false;
	if (s->id.len && id.len && !sonde_buildid_equal(&s->id, &id)) {
		tried(s, "%s", path);
		sonde_buf_printf(&s->tried, " (has build-id %s)", sonde_buildid_hex(&id, hex));
		return false;
	}
	if (!(s->id.len && id.len) &&
		(!s->has_crc || sonde_debugfile_crc(elf->data, elf->size_bytes) != s->crc)) {
		tried(s, s->has_crc ? "%s (its checksum differs)" : "%s (it has no build-id)",
			path);
		return false;
	}
	s->found = sonde_take(elf);
	return true;
}

/* prefix + "/" + dir + "/" + name, where prefix and dir may be NULL or "". */
static bool try_at(struct search *s, const char *prefix, const char *dir, const char *name)
{
	char path[MAX_PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s%s%s%s%s", prefix ? prefix : "",
		prefix && dir && dir[0] && dir[0] != '/' ? "/" : "", dir ? dir : "",
		(dir && dir[0]) || prefix ? "/" : "", name);
	return n > 0 && (size_t)n < sizeof(path) && try_file(s, path);
}

/* Under the sysroot first, then as it is. */
static bool try_both(struct search *s, const char *dir, const char *name)
{
	const char *sysroot = s->options->sysroot;
	return (sysroot && try_at(s, sysroot, dir, name)) || try_at(s, NULL, dir, name);
}

/* Calls over each of the debug directories. */
static bool each_debug_dir(
	struct search *s, bool (*in)(struct search *s, const char *dir, void *ctx), void *ctx)
{
	const char *dirs = s->options->debug_dirs ? s->options->debug_dirs : "/usr/lib/debug";
	while (*dirs) {
		size_t len = strcspn(dirs, ":");
		char dir[MAX_PATH_BYTES];
		if (len && len < sizeof(dir)) {
			memcpy(dir, dirs, len);
			dir[len] = 0;
			if (in(s, dir, ctx))
				return true;
		}
		dirs += len + (dirs[len] == ':');
	}
	return false;
}

static bool in_debug_dir(struct search *s, const char *dir, void *name)
{
	return try_both(s, dir, name);
}

static bool by_buildid(struct search *s)
{
	char hex[SONDE_BUILDID_HEX_BYTES], name[SONDE_BUILDID_HEX_BYTES + 32];
	if (s->id.len < 2)
		return false;
	sonde_buildid_hex(&s->id, hex);
	snprintf(name, sizeof(name), ".build-id/%.2s/%s%s", hex, hex + 2, s->of ? ".debug" : "");
	return each_debug_dir(s, in_debug_dir, name);
}

/* The debug directories mirror the file system: /usr/lib/debug + the file's own folder. */
struct mirror {
	const char *folder, *name;
};

static bool in_mirror(struct search *s, const char *dir, void *ctx)
{
	const struct mirror *m = ctx;
	char path[MAX_PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%s/%s", m->folder + (m->folder[0] == '/'), m->name);
	return n > 0 && (size_t)n < sizeof(path) && try_both(s, dir, path);
}

static bool by_debuglink(struct search *s, struct sonde_elf *elf)
{
	const struct sonde_elf_section *section = sonde_elf_section_find(elf, ".gnu_debuglink");
	const uint8_t *data;
	uint64_t len;
	if (!section)
		return false;
	struct sonde_error *err = sonde_elf_section_read(elf, section, &data, &len);
	sonde_error_free(err);
	if (err)
		return false;
	struct sonde_cursor c = sonde_cursor_over(data, len);
	c.big_endian = elf->big_endian;
	const char *name = sonde_cursor_string(&c);
	sonde_cursor_align(&c, 4);
	s->crc = sonde_cursor_u32(&c);
	/* A name, never a path: the file is untrusted. */
	if (c.bad || !name[0] || strchr(name, '/'))
		return false;
	s->has_crc = true;
	const char *path = sonde_elf_path(elf), *slash = strrchr(path, '/');
	char folder[MAX_PATH_BYTES], sub[MAX_PATH_BYTES];
	size_t folder_len = slash ? (size_t)(slash - path) : 0;
	if (folder_len >= sizeof(folder) - 8)
		return false;
	memcpy(folder, path, folder_len);
	folder[folder_len] = 0;
	snprintf(sub, sizeof(sub), "%s%s.debug", folder, slash ? "/" : "");
	const char *beside = slash && !folder_len ? "/" : folder;
	if (try_at(s, NULL, beside, name) || try_at(s, NULL, sub, name))
		return true;
	/* Where the file came from under the sysroot, its place in the mirror is without it. */
	const char *sysroot = s->options->sysroot;
	size_t root_len = sysroot ? strlen(sysroot) : 0;
	struct mirror m = {folder, name};
	if (root_len && !strncmp(folder, sysroot, root_len) && folder[root_len] == '/')
		m.folder = folder + root_len;
	return each_debug_dir(s, in_mirror, &m);
}

/*
 * elfutils' libdebuginfod (debuginfod.h), where it is installed; begin, find, end are there in all versions. It is never
 * unloaded: it brings libraries that do not survive that.
 */
static const char debuginfod_library[] = "libdebuginfod.so.1";

static void *debuginfod_symbol(const char *name, int flags)
{
	void *library = dlopen(debuginfod_library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE | flags);
	return library ? dlsym(library, name) : NULL;
}

/* Called by the library; a value other than 0 stops it. The client carries our log (0.183 and later). */
static int debuginfod_progress(void *client, long done, long total)
{
	void *(*data)(void *client);
	*(void **)&data = debuginfod_symbol("debuginfod_get_user_data", RTLD_NOLOAD);
	const struct sonde_log *log = data ? data(client) : NULL;
	return !sonde_log_progress(log, "asking debuginfod", done > 0 ? (uint64_t)done : 0,
		total > 0 ? (uint64_t)total : 0);
}

/* An open file descriptor and its path (malloc'd), or a negative errno. */
static int debuginfod_find(struct search *s, const char *hex, char **path)
{
	void *(*begin)(void);
	void (*end)(void *client);
	int (*find)(void *client, const unsigned char *id, int id_len, char **path);
	void (*set_data)(void *client, void *data);
	void (*set_progress)(void *client, int (*progress)(void *client, long done, long total));
	*(void **)&begin = debuginfod_symbol("debuginfod_begin", 0);
	*(void **)&end = debuginfod_symbol("debuginfod_end", 0);
	*(void **)&find = debuginfod_symbol(
		s->of ? "debuginfod_find_debuginfo" : "debuginfod_find_executable", 0);
	*(void **)&set_data = debuginfod_symbol("debuginfod_set_user_data", 0);
	*(void **)&set_progress = debuginfod_symbol("debuginfod_set_progressfn", 0);
	if (!begin || !end || !find)
		return -ENOSYS;
	void *client = begin();
	if (!client)
		return -ENOMEM;
	if (set_data && set_progress && s->options->log) {
		set_data(client, (void *)s->options->log);
		set_progress(client, debuginfod_progress);
	}
	/* Length 0: the build-id comes as hex text. */
	int fd = find(client, (const unsigned char *)hex, 0, path);
	end(client);
	return fd;
}

static bool by_debuginfod(struct search *s)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	char hex[SONDE_BUILDID_HEX_BYTES];
	sonde_cleanup(free) char *path = NULL;
	if (s->options->no_debuginfod || !urls || !urls[0] || !s->id.len)
		return false;
	sonde_buildid_hex(&s->id, hex);
	sonde_log_message(
		s->options->log, SONDE_LOG_INFO, "asking debuginfod for build-id %s", hex);
	int fd = debuginfod_find(s, hex, &path);
	if (fd >= 0) {
		close(fd);
		return path && try_file(s, path);
	}
	if (fd == -ENOSYS) {
		sonde_log_message(s->options->log, SONDE_LOG_WARNING,
			"DEBUGINFOD_URLS is set, but %s is not installed", debuginfod_library);
		tried(s, "%s", "debuginfod (its library is not installed)");
	} else {
		tried(s, "debuginfod (%s)", strerror(-fd));
	}
	return false;
}

static struct sonde_error *finish(struct search *s, bool found, struct sonde_elf **ret)
{
	char hex[SONDE_BUILDID_HEX_BYTES];
	if (found) {
		*ret = s->found;
		return NULL;
	}
	if (s->tried.failed)
		return &sonde_enomem;
	return sonde_error_new(SONDE_NOT_FOUND, "no %s with %s%s: tried %s",
		s->of ? "debug file" : "executable", s->id.len ? "build-id " : "a fitting checksum",
		s->id.len ? sonde_buildid_hex(&s->id, hex) : "",
		s->tried.len ? sonde_buf_text(&s->tried) : "nothing");
}

struct sonde_error *sonde_debugfile_open(struct sonde_elf *elf,
	const struct sonde_debugfile_options *options, struct sonde_elf **ret)
{
	static const struct sonde_debugfile_options none;
	struct search s = {.options = options ? options : &none, .of = elf};
	sonde_buildid_of_elf(elf, &s.id);
	bool found = by_buildid(&s) || by_debuglink(&s, elf) || by_debuginfod(&s);
	struct sonde_error *err = finish(&s, found, ret);
	sonde_buf_deinit(&s.tried);
	return err;
}

struct sonde_error *sonde_debugfile_open_executable(const struct sonde_buildid *id,
	const struct sonde_debugfile_options *options, struct sonde_elf **ret)
{
	static const struct sonde_debugfile_options none;
	struct search s = {.options = options ? options : &none, .id = *id};
	bool found = by_buildid(&s) || by_debuginfod(&s);
	struct sonde_error *err = finish(&s, found, ret);
	sonde_buf_deinit(&s.tried);
	return err;
}
