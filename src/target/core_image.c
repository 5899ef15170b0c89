#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include "target/core_parts.h"

/* What is read of a file, and of its first mapping in the core, to tell what it is. */
enum { PREFIX_BYTES = 64 << 10, COMPARE_BYTES = 1 << 20, MAX_IMAGES = 4096 };

void sonde_core_evidence_deinit(struct sonde_core_evidence *e)
{
	sonde_elf_free(e->elf);
	free(e->header);
	*e = (struct sonde_core_evidence){0};
}

void sonde_core_images_close(struct sonde_core_images *images)
{
	sonde_vec_foreach (i, images) {
		sonde_elf_free(i->elf);
		free(i->prefix);
		if (i->fd >= 0)
			close(i->fd);
	}
	sonde_core_images_deinit(images);
}

uint64_t sonde_core_base_of(const struct sonde_core_file *core, const char *path)
{
	for (size_t i = 0; core->vmas && i < core->vmas->n; i++)
		if (!core->vmas->items[i].file_offset && !strcmp(core->vmas->items[i].path, path))
			return core->vmas->items[i].start;
	return UINT64_MAX;
}

bool sonde_core_evidence_at(
	const struct sonde_core_file *core, uint64_t base, struct sonde_core_evidence *e)
{
	*e = (struct sonde_core_evidence){.base = base};
	e->header = malloc(PREFIX_BYTES);
	if (!e->header)
		return false;
	/* The file's bytes go on in memory only as far as its first mapping does. */
	const struct sonde_vma *v = core->vmas ? sonde_vmas_find(core->vmas, base) : NULL;
	uint64_t want =
		v ? sonde_min(v->end - base, (uint64_t)PREFIX_BYTES) : core->target.info.page_bytes;
	want = sonde_min(want, (uint64_t)PREFIX_BYTES);
	e->header_len = sonde_core_peek(core, base, e->header, want);
	struct sonde_error *err =
		sonde_elf_open_bytes(e->header, e->header_len, "first page", &e->elf);
	bool no_memory = err && err->code == SONDE_NO_MEMORY;
	sonde_error_free(err);
	if (no_memory) {
		sonde_core_evidence_deinit(e);
		return false;
	}
	if (e->elf) {
		sonde_buildid_of_elf(e->elf, &e->id);
		sonde_gobuildid_of_elf(e->elf, e->goid);
	}
	return true;
}

/* Code pages that the core holds must equal the file's. */
static enum sonde_core_verdict compare_pages(
	struct sonde_core_file *core, const char *path, int fd, uint64_t *offset)
{
	static const size_t STEP = 4096;
	uint8_t ours[4096], theirs[4096];
	uint64_t compared = 0;
	for (size_t i = 0; i < core->vmas->n; i++) {
		const struct sonde_vma *v = &core->vmas->items[i];
		if (strcmp(v->path, path))
			continue;
		uint64_t addr = v->start;
		size_t k = sonde_core_piece_at(core, addr);
		for (; k < core->pieces.n && core->pieces.items[k].m.start < v->end; k++) {
			const struct sonde_mapping *m = &core->pieces.items[k].m;
			/* What was writable, or is made read-only after relocation, differs by right. */
			bool header = !v->file_offset && m->start == v->start;
			if (m->source != SONDE_SOURCE_CORE || m->perm & SONDE_PERM_W ||
				!(header || m->perm & SONDE_PERM_X))
				continue;
			addr = sonde_max(m->start, v->start);
			uint64_t end = sonde_min(m->end, v->end);
			if (header && !(m->perm & SONDE_PERM_X))
				end = sonde_min(end, addr + STEP);
			for (; addr < end && compared < COMPARE_BYTES; addr += STEP) {
				size_t n = sonde_min((uint64_t)STEP, end - addr);
				uint64_t at = v->file_offset + (addr - v->start);
				ssize_t got = pread(fd, theirs, n, (off_t)at);
				if (got <= 0 || sonde_core_peek(core, addr, ours, n) < (size_t)got)
					break;
				if (memcmp(ours, theirs, (size_t)got)) {
					*offset = at;
					return SONDE_CORE_DIFFERENT;
				}
				compared += (uint64_t)got;
			}
		}
	}
	return compared ? SONDE_CORE_SAME : SONDE_CORE_UNPROVEN;
}

enum sonde_core_verdict sonde_core_identify(struct sonde_core_file *core,
	const struct sonde_core_evidence *e, const char *path, const struct sonde_elf *elf, int fd,
	const char *opened, const char **why)
{
	struct sonde_arena *arena = &core->target.arena;
	char want[SONDE_BUILDID_HEX_BYTES], have[SONDE_BUILDID_HEX_BYTES];
	char goid[SONDE_GOBUILDID_BYTES] = "";
	struct sonde_buildid id = {.len = 0};
	if (elf) {
		sonde_buildid_of_elf(elf, &id);
		sonde_gobuildid_of_elf(elf, goid);
	}
	if (e->id.len) {
		if (sonde_buildid_equal(&e->id, &id))
			return SONDE_CORE_SAME;
		*why = sonde_arena_printf(arena, "%s has %s%s, the process had build-id %s", opened,
			id.len        ? "build-id "
				: elf ? "no build-id"
				      : "no ELF header",
			id.len ? sonde_buildid_hex(&id, have) : "",
			sonde_buildid_hex(&e->id, want));
		return SONDE_CORE_DIFFERENT;
	}
	if (e->goid[0]) {
		if (!strcmp(e->goid, goid))
			return SONDE_CORE_SAME;
		*why = sonde_arena_printf(arena, "%s has %s%s, the process had Go build id %s",
			opened,
			goid[0]       ? "Go build id "
				: elf ? "no Go build id"
				      : "no ELF header",
			goid, e->goid);
		return SONDE_CORE_DIFFERENT;
	}
	uint64_t at;
	enum sonde_core_verdict v =
		path && core->vmas ? compare_pages(core, path, fd, &at) : SONDE_CORE_UNPROVEN;
	if (v == SONDE_CORE_DIFFERENT)
		*why = sonde_arena_printf(arena,
			"%s differs from what the process had mapped, at file offset 0x%" PRIx64
			" (neither has a build-id to compare)",
			opened, at);
	return v;
}

int sonde_core_regular(const char *path)
{
	struct stat st;
	if (stat(path, &st) < 0)
		return errno;
	return S_ISREG(st.st_mode) ? 0 : S_ISDIR(st.st_mode) ? EISDIR : ENODEV;
}

/* Open path as an image: descriptor, size, ELF header where there is one. errno, or 0. */
static int open_image(const char *path, struct sonde_core_image *image)
{
	int os_errno = sonde_core_regular(path);
	if (os_errno)
		return os_errno;
	sonde_cleanup(fd) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) < 0)
		return errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? EISDIR : ENODEV;
	sonde_cleanup(free) uint8_t *prefix = malloc(PREFIX_BYTES);
	if (!prefix)
		return ENOMEM;
	ssize_t got = pread(fd, prefix, PREFIX_BYTES, 0);
	if (got < 0)
		return errno;
	struct sonde_elf *elf = NULL;
	sonde_error_free(sonde_elf_open_bytes(prefix, (size_t)got, path, &elf));
	struct sonde_buildid id;
	char goid[SONDE_GOBUILDID_BYTES];
	if (elf && !sonde_buildid_of_elf(elf, &id) && !sonde_gobuildid_of_elf(elf, goid)) {
		/* Its notes may stand further behind. */
		struct sonde_elf *whole = NULL;
		sonde_error_free(sonde_elf_open(path, &whole));
		if (whole) {
			sonde_elf_free(elf);
			elf = whole;
		}
	}
	image->elf = elf;
	image->prefix = sonde_take(prefix);
	image->size_bytes = (uint64_t)st.st_size;
	image->fd = sonde_take_fd(fd);
	return 0;
}

static void close_image(struct sonde_core_image *image)
{
	sonde_elf_free(image->elf);
	free(image->prefix);
	if (image->fd >= 0)
		close(image->fd);
	image->elf = NULL;
	image->prefix = NULL;
	image->fd = -1;
}

/* Try one place. true: taken, or memory is out (then image->opened is NULL and *failed set). */
static bool try_image(struct sonde_core_file *core, const struct sonde_core_evidence *e,
	const char *path, struct sonde_core_image *image)
{
	struct sonde_arena *arena = &core->target.arena;
	int os_errno = open_image(path, image);
	if (os_errno) {
		/* A first reason (another file stands there) says more than a later one. */
		if (!image->reason)
			image->reason = os_errno == ENODEV
				? sonde_arena_printf(arena, "%s is not a regular file", path)
				: sonde_arena_printf(arena, "%s: %s", path, strerror(os_errno));
		return false;
	}
	const char *why = NULL;
	switch (sonde_core_identify(core, e, image->path, image->elf, image->fd, path, &why)) {
	case SONDE_CORE_DIFFERENT:
		image->reason = why;
		close_image(image);
		return false;
	case SONDE_CORE_UNPROVEN:
		sonde_notes_add(core->options.notes,
			"mapped file taken without proof that it is the same", 0, "%s", path);
		break;
	case SONDE_CORE_SAME:
		break;
	}
	image->opened = sonde_arena_strdup(arena, path);
	return true;
}

struct sonde_core_image *sonde_core_image_find(struct sonde_core_file *core, const char *path)
{
	sonde_vec_foreach (i, &core->images)
		if (!strcmp(i->path, path))
			return i;
	struct sonde_core_image *image = sonde_core_images_add(&core->images);
	if (!image)
		return NULL;
	image->path = path;
	image->fd = -1;
	if (core->images.n > MAX_IMAGES) {
		core->images.n--; /* the slot stays valid until the next call */
		image->reason = "more mapped files than a process has";
		return image;
	}

	uint64_t base = sonde_core_base_of(core, path);
	sonde_cleanup(sonde_core_evidence) struct sonde_core_evidence e = {0};
	if (base != UINT64_MAX && !sonde_core_evidence_at(core, base, &e))
		return NULL;
	const char *exe = sonde_core_exe_mapped_path(core);
	if (exe && !strcmp(exe, path) && core->target.exe) {
		const char *from = sonde_elf_path(core->target.exe);
		int os_errno = open_image(from, image);
		if (!os_errno)
			image->opened = sonde_arena_strdup(&core->target.arena, from);
		else
			image->reason = sonde_arena_printf(
				&core->target.arena, "%s: %s", from, strerror(os_errno));
		return image;
	}
	if (core->options.sysroot) {
		char *under = sonde_arena_printf(&core->target.arena, "%s%s%s",
			core->options.sysroot, path[0] == '/' ? "" : "/", path);
		if (!under)
			return NULL;
		if (try_image(core, &e, under, image))
			return image;
	}
	try_image(core, &e, path, image);
	return image;
}
