/*
 * tests/build.h: files made of bytes in the test: numbers in either byte order, notes, ELF files with segments and
 * sections, core files, and a folder to put them in that goes away at exit. No check inside: out of memory ends the test.
 */
#pragma once
#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/buf.h"

#define BUILD_UNUSED __attribute__((unused))

/* --- numbers --- */

BUILD_UNUSED static void build_number(
	struct sonde_buf *b, uint64_t v, unsigned bytes, bool big_endian)
{
	for (unsigned i = 0; i < bytes; i++)
		sonde_buf_char(b, (char)(v >> 8 * (big_endian ? bytes - 1 - i : i)));
}

BUILD_UNUSED static void build_u8(struct sonde_buf *b, uint8_t v)
{
	build_number(b, v, 1, false);
}

BUILD_UNUSED static void build_u16(struct sonde_buf *b, uint16_t v)
{
	build_number(b, v, 2, false);
}

BUILD_UNUSED static void build_u32(struct sonde_buf *b, uint32_t v)
{
	build_number(b, v, 4, false);
}

BUILD_UNUSED static void build_u64(struct sonde_buf *b, uint64_t v)
{
	build_number(b, v, 8, false);
}

BUILD_UNUSED static void build_zeros(struct sonde_buf *b, size_t n)
{
	char *to = n ? sonde_buf_reserve(b, n) : NULL;
	if (!to)
		return;
	memset(to, 0, n);
	b->len += n;
}

BUILD_UNUSED static void build_pad(struct sonde_buf *b, size_t align)
{
	build_zeros(b, (align - b->len % align) % align);
}

/* Overwrite bytes that are there already. */
BUILD_UNUSED static void build_patch(struct sonde_buf *b, size_t at, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes && at + i < b->len; i++)
		b->data[at + i] = (char)(v >> 8 * i);
}

/* --- notes --- */

BUILD_UNUSED static void build_note(struct sonde_buf *b, const char *name, size_t name_bytes,
	uint32_t type, const void *desc, size_t desc_len)
{
	build_u32(b, (uint32_t)name_bytes);
	build_u32(b, (uint32_t)desc_len);
	build_u32(b, type);
	sonde_buf_add(b, name, name_bytes);
	build_pad(b, 4);
	sonde_buf_add(b, desc, desc_len);
	build_pad(b, 4);
}

BUILD_UNUSED static void build_core_note(
	struct sonde_buf *b, uint32_t type, const struct sonde_buf *desc)
{
	build_note(b, "CORE", 5, type, desc->data, desc->len);
}

BUILD_UNUSED static void build_buildid_note(struct sonde_buf *b, const void *id, size_t len)
{
	build_note(b, "GNU", 4, NT_GNU_BUILD_ID, id, len);
}

BUILD_UNUSED static void build_gobuildid_note(struct sonde_buf *b, const char *id)
{
	build_note(b, "Go\0", 4, 4, id, strlen(id));
}

/* --- ELF files --- */

enum { BUILD_MAX_SEGMENTS = 64, BUILD_MAX_SECTIONS = 32 };

struct build_segment {
	uint32_t type, flags;
	uint64_t addr, mem_bytes; /* mem_bytes 0: len */
	uint64_t align;
	const void *data;
	size_t len;
	uint64_t
		offset; /* 0: where there is room, congruent to addr modulo align where align > 1 */
	uint64_t file_bytes; /* 0: len; else what the header claims */
};

struct build_section {
	const char *name;
	uint32_t type;
	uint64_t flags, addr;
	const void *data;
	size_t len;
	uint32_t link;
	uint64_t entry_bytes;
	uint64_t offset; /* 0: data is placed; else what the header claims, with no data placed */
};

struct build_elf {
	unsigned word_bytes; /* 0: 8 */
	bool big_endian;
	uint16_t type, machine; /* machine 0: x86-64, or i386 where word_bytes is 4 */
	uint64_t entry;
	struct build_segment segments[BUILD_MAX_SEGMENTS];
	size_t n_segments;
	struct build_section sections[BUILD_MAX_SECTIONS]; /* without the null one and .shstrtab */
	size_t n_sections;
	bool extended_numbers; /* PN_XNUM, shnum 0, SHN_XINDEX */
	bool headers_in_first_load; /* segment 0 is placed at offset 0 and its data replaces nothing */
	uint64_t file_end; /* grow to this size with zeros */
};

BUILD_UNUSED static struct build_segment *build_segment(struct build_elf *e, uint32_t type,
	uint32_t flags, uint64_t addr, const void *data, size_t len)
{
	struct build_segment *s = &e->segments[e->n_segments++];
	*s = (struct build_segment){.type = type,
		.flags = flags,
		.addr = addr,
		.data = data,
		.len = len,
		.align = type == PT_LOAD ? 4096 : 4};
	return s;
}

BUILD_UNUSED static struct build_section *build_section(
	struct build_elf *e, const char *name, uint32_t type, const void *data, size_t len)
{
	struct build_section *s = &e->sections[e->n_sections++];
	*s = (struct build_section){.name = name, .type = type, .data = data, .len = len};
	return s;
}

struct build_writer {
	struct sonde_buf *out;
	const struct build_elf *e;
	unsigned w;
	size_t base;
};

BUILD_UNUSED static void build_put(struct build_writer *w, uint64_t v, unsigned bytes)
{
	build_number(w->out, v, bytes, w->e->big_endian);
}

BUILD_UNUSED static void build_elf_header(
	struct build_writer *w, uint64_t phoff, uint64_t shoff, size_t n_sections)
{
	const struct build_elf *e = w->e;
	uint8_t ident[EI_NIDENT] = {0x7f, 'E', 'L', 'F', w->w == 8 ? ELFCLASS64 : ELFCLASS32,
		e->big_endian ? ELFDATA2MSB : ELFDATA2LSB, EV_CURRENT};
	sonde_buf_add(w->out, ident, sizeof(ident));
	build_put(w, e->type, 2);
	build_put(w, e->machine ? e->machine : w->w == 8 ? EM_X86_64 : EM_386, 2);
	build_put(w, EV_CURRENT, 4);
	build_put(w, e->entry, w->w);
	build_put(w, phoff, w->w);
	build_put(w, shoff, w->w);
	build_put(w, 0, 4);
	build_put(w, w->w == 8 ? 64 : 52, 2);
	build_put(w, w->w == 8 ? 56 : 32, 2);
	build_put(w, e->extended_numbers ? PN_XNUM : e->n_segments, 2);
	build_put(w, w->w == 8 ? 64 : 40, 2);
	build_put(w, e->extended_numbers ? 0 : n_sections, 2);
	build_put(w, !n_sections ? 0 : e->extended_numbers ? SHN_XINDEX : n_sections - 1, 2);
}

BUILD_UNUSED static void build_program_header(
	struct build_writer *w, const struct build_segment *s, uint64_t offset)
{
	uint64_t file_bytes = s->file_bytes ? s->file_bytes : s->len;
	build_put(w, s->type, 4);
	if (w->w == 8)
		build_put(w, s->flags, 4);
	build_put(w, offset, w->w);
	build_put(w, s->addr, w->w);
	build_put(w, 0, w->w);
	build_put(w, file_bytes, w->w);
	build_put(w, s->mem_bytes ? s->mem_bytes : file_bytes, w->w);
	if (w->w == 4)
		build_put(w, s->flags, 4);
	build_put(w, s->align, w->w);
}

BUILD_UNUSED static void build_section_header(struct build_writer *w, uint32_t name, uint32_t type,
	uint64_t flags, uint64_t addr, uint64_t offset, uint64_t size, uint32_t link, uint32_t info,
	uint64_t entry)
{
	build_put(w, name, 4);
	build_put(w, type, 4);
	build_put(w, flags, w->w);
	build_put(w, addr, w->w);
	build_put(w, offset, w->w);
	build_put(w, size, w->w);
	build_put(w, link, 4);
	build_put(w, info, 4);
	build_put(w, 1, w->w);
	build_put(w, entry, w->w);
}

/* Headers, then the segments' bytes, then the sections', then their headers. The caller's out is emptied first. */
BUILD_UNUSED static void build_elf_write(const struct build_elf *e, struct sonde_buf *out)
{
	struct build_writer w = {out, e, e->word_bytes ? e->word_bytes : 8, 0};
	uint64_t ehsize = w.w == 8 ? 64 : 52, phsize = w.w == 8 ? 56 : 32;
	uint64_t seg_at[BUILD_MAX_SEGMENTS] = {0}, sec_at[BUILD_MAX_SECTIONS] = {0};
	uint64_t at = ehsize + phsize * e->n_segments;
	for (size_t i = 0; i < e->n_segments; i++) {
		const struct build_segment *s = &e->segments[i];
		if (s->offset || (!i && e->headers_in_first_load)) {
			seg_at[i] = s->offset;
		} else {
			uint64_t align = s->align > 1 ? s->align : 1;
			at += (s->addr % align + align - at % align) % align;
			seg_at[i] = at;
			at += s->len;
		}
		if (seg_at[i] + s->len > at)
			at = seg_at[i] + s->len;
	}
	for (size_t i = 0; i < e->n_sections; i++) {
		const struct build_section *s = &e->sections[i];
		at = (at + 7) & ~UINT64_C(7);
		sec_at[i] = s->offset ? s->offset : at;
		if (!s->offset)
			at += s->type == SHT_NOBITS ? 0 : s->len;
	}
	struct sonde_buf names = {0};
	build_u8(&names, 0);
	uint32_t name_at[BUILD_MAX_SECTIONS + 1];
	for (size_t i = 0; i < e->n_sections; i++) {
		name_at[i] = (uint32_t)names.len;
		sonde_buf_add(&names, e->sections[i].name, strlen(e->sections[i].name) + 1);
	}
	name_at[e->n_sections] = (uint32_t)names.len;
	sonde_buf_add(&names, ".shstrtab", 10);
	bool tables = e->n_sections || e->extended_numbers;
	size_t n_sections = tables ? e->n_sections + 2 : 0;
	uint64_t names_at = at, shoff = tables ? (at + names.len + 7) & ~UINT64_C(7) : 0;

	out->len = 0;
	build_elf_header(&w, e->n_segments ? ehsize : 0, shoff, n_sections);
	for (size_t i = 0; i < e->n_segments; i++)
		build_program_header(&w, &e->segments[i], seg_at[i]);
	build_zeros(out, at > out->len ? at - out->len : 0);
	for (size_t i = 0; i < e->n_segments; i++) {
		const struct build_segment *s = &e->segments[i];
		uint64_t skip =
			!i && e->headers_in_first_load ? ehsize + phsize * e->n_segments : 0;
		if (s->data && s->len > skip)
			memcpy(out->data + seg_at[i] + skip, (const char *)s->data + skip,
				s->len - skip);
	}
	for (size_t i = 0; i < e->n_sections; i++)
		if (!e->sections[i].offset && e->sections[i].type != SHT_NOBITS &&
			e->sections[i].len)
			memcpy(out->data + sec_at[i], e->sections[i].data, e->sections[i].len);
	if (tables) {
		sonde_buf_add(out, names.data, names.len);
		build_pad(out, 8);
		build_section_header(&w, 0, SHT_NULL, 0, 0, 0, e->extended_numbers ? n_sections : 0,
			e->extended_numbers ? (uint32_t)n_sections - 1 : 0,
			e->extended_numbers ? (uint32_t)e->n_segments : 0, 0);
		for (size_t i = 0; i < e->n_sections; i++) {
			const struct build_section *s = &e->sections[i];
			build_section_header(&w, name_at[i], s->type, s->flags, s->addr, sec_at[i],
				s->len, s->link, 0, s->entry_bytes);
		}
		build_section_header(
			&w, name_at[e->n_sections], SHT_STRTAB, 0, 0, names_at, names.len, 0, 0, 0);
	}
	if (e->file_end > out->len)
		build_zeros(out, e->file_end - out->len);
	sonde_buf_deinit(&names);
}

/* --- core notes (x86-64, i386, arm64; little-endian) --- */

/* slots: the registers as the kernel orders them (struct pt_regs of the machine). */
BUILD_UNUSED static void build_prstatus(struct sonde_buf *notes, uint16_t machine, uint32_t tid,
	int signal, const uint64_t *slots, size_t n_slots)
{
	unsigned w = machine == EM_386 ? 4 : 8;
	size_t user = w == 4 ? 72 : 112,
	       total = machine == EM_386 ? 144
		: machine == EM_X86_64   ? 336
					 : 392;
	struct sonde_buf d = {0};
	build_zeros(&d, total);
	build_patch(&d, 0, (uint64_t)signal, 4);
	build_patch(&d, 12, (uint64_t)signal, 2);
	build_patch(&d, w == 4 ? 24 : 32, tid, 4);
	build_patch(&d, w == 4 ? 28 : 36, 1, 4);
	for (size_t i = 0; i < n_slots; i++)
		build_patch(&d, user + i * w, slots[i], w);
	build_core_note(notes, 1, &d);
	sonde_buf_deinit(&d);
}

BUILD_UNUSED static void build_psinfo(struct sonde_buf *notes, unsigned word_bytes, uint32_t pid,
	const char *program, const char *args)
{
	struct sonde_buf d = {0};
	bool w8 = word_bytes == 8;
	build_zeros(&d, w8 ? 136 : 124);
	build_patch(&d, w8 ? 16 : 8, 1000, w8 ? 4 : 2);
	build_patch(&d, w8 ? 20 : 10, 1001, w8 ? 4 : 2);
	build_patch(&d, w8 ? 24 : 12, pid, 4);
	build_patch(&d, w8 ? 28 : 16, pid - 1, 4);
	memcpy(d.data + (w8 ? 40 : 28), program, strnlen(program, 16));
	memcpy(d.data + (w8 ? 56 : 44), args, strnlen(args, 80));
	build_core_note(notes, 3, &d);
	sonde_buf_deinit(&d);
}

BUILD_UNUSED static void build_siginfo(
	struct sonde_buf *notes, unsigned word_bytes, int signal, int code, uint64_t addr_or_pid)
{
	struct sonde_buf d = {0};
	build_zeros(&d, 128);
	build_patch(&d, 0, (uint64_t)signal, 4);
	build_patch(&d, 8, (uint64_t)(int64_t)code, 4);
	build_patch(&d, word_bytes == 8 ? 16 : 12, addr_or_pid, word_bytes);
	build_core_note(notes, 0x53494749, &d);
	sonde_buf_deinit(&d);
}

/* pairs: type, value, ... ended by type 0 (which is written too). */
BUILD_UNUSED static void build_auxv(
	struct sonde_buf *notes, unsigned word_bytes, const uint64_t (*pairs)[2])
{
	struct sonde_buf d = {0};
	for (;; pairs++) {
		build_number(&d, (*pairs)[0], word_bytes, false);
		build_number(&d, (*pairs)[1], word_bytes, false);
		if (!(*pairs)[0])
			break;
	}
	build_core_note(notes, 6, &d);
	sonde_buf_deinit(&d);
}

struct build_vma {
	uint64_t start, end, pages;
	const char *path;
};

BUILD_UNUSED static void build_nt_file_desc(
	struct sonde_buf *d, unsigned word_bytes, const struct build_vma *v, size_t n)
{
	build_number(d, n, word_bytes, false);
	build_number(d, 4096, word_bytes, false);
	for (size_t i = 0; i < n; i++) {
		build_number(d, v[i].start, word_bytes, false);
		build_number(d, v[i].end, word_bytes, false);
		build_number(d, v[i].pages, word_bytes, false);
	}
	for (size_t i = 0; i < n; i++)
		sonde_buf_add(d, v[i].path, strlen(v[i].path) + 1);
}

BUILD_UNUSED static void build_nt_file(
	struct sonde_buf *notes, unsigned word_bytes, const struct build_vma *v, size_t n)
{
	struct sonde_buf d = {0};
	build_nt_file_desc(&d, word_bytes, v, n);
	build_core_note(notes, 0x46494c45, &d);
	sonde_buf_deinit(&d);
}

/* --- a folder --- */

static char build_dir_[64];

BUILD_UNUSED static void build_remove_(const char *path, int depth)
{
	DIR *d = depth < 8 ? opendir(path) : NULL;
	for (struct dirent *e; d && (e = readdir(d));) {
		char *sub = NULL;
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") ||
			asprintf(&sub, "%s/%s", path, e->d_name) < 0)
			continue;
		if (unlink(sub))
			build_remove_(sub, depth + 1);
		free(sub);
	}
	if (d)
		closedir(d);
	rmdir(path);
}

BUILD_UNUSED static void build_remove_dir_(void)
{
	build_remove_(build_dir_, 0);
}

/* The test's own folder; made at the first call, removed at exit. */
BUILD_UNUSED static const char *build_dir(void)
{
	if (!build_dir_[0]) {
		strcpy(build_dir_, "/tmp/sonde-test-XXXXXX");
		if (!mkdtemp(build_dir_))
			abort();
		atexit(build_remove_dir_);
	}
	return build_dir_;
}

/* "DIR/fmt..." in a buffer that some later call uses again; folders on the way are made. */
BUILD_UNUSED __attribute__((format(printf, 1, 2))) static const char *build_path(
	const char *fmt, ...)
{
	static char paths[16][1024];
	static unsigned next;
	char *path = paths[next++ % 16];
	int n = snprintf(path, sizeof(paths[0]), "%s/", build_dir());
	va_list args;
	va_start(args, fmt);
	vsnprintf(path + n, sizeof(paths[0]) - (size_t)n, fmt, args);
	va_end(args);
	for (char *p = path + n; (p = strchr(p, '/')); p++) {
		*p = 0;
		mkdir(path, 0777);
		*p = '/';
	}
	return path;
}

BUILD_UNUSED static const char *build_file(const char *name, const void *data, size_t len)
{
	const char *path = build_path("%s", name);
	int fd = open(path, O_CREAT | O_TRUNC | O_WRONLY, 0666);
	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	close(fd);
	return path;
}

BUILD_UNUSED static const char *build_file_of(const char *name, const struct sonde_buf *b)
{
	return build_file(name, b->data, b->len);
}
