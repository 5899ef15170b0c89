#include "walk/modules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "base/buf.h"
#include "object/buildid.h"
#include "object/cfi.h"

enum {
	EH_FRAME_HDR_BYTES = 8,
	PCREL_SDATA4 = 0x1b,
	HEADER_BYTES = 4096,
	VDSO_MAX_BYTES = 1 << 20,
	EH_FRAME_MAX_BYTES = 1 << 28,
};

static bool same_file(const struct sonde_mapping *a, const char *path)
{
	return a->path && path && !strcmp(a->path, path);
}

/*
 * Mappings of one file that follow each other are one module; offset 0 begins another load of the same file, unless it
 * goes on where the last one ended: linkers that share a page between segments have it mapped twice.
 */
static bool goes_on(const struct sonde_walk_module *m, const struct sonde_mapping *last,
	const struct sonde_mapping *map)
{
	return m && same_file(map, m->path) &&
		(map->file_offset != 0 || (last->end == map->start && last->file_offset == 0));
}

static struct sonde_error *find_modules(struct sonde_walk_modules *ms)
{
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(ms->target, &n);
	const struct sonde_mapping *last = NULL;
	struct sonde_walk_module *m = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct sonde_mapping *map = &maps[i];
		if (!map->path && !(map->perm & SONDE_PERM_X))
			continue; /* data: no code can be there */
		if (!goes_on(m, last, map)) {
			m = sonde_walk_module_vec_add(&ms->all);
			if (!m)
				return &sonde_enomem;
			m->start = map->start;
			m->path = map->path;
			const char *slash = map->path ? strrchr(map->path, '/') : NULL;
			m->name = slash && slash[1] ? slash + 1
				: map->path         ? map->path
						    : "anonymous memory";
		}
		m->end = map->end;
		last = map;
	}
	return NULL;
}

struct sonde_error *sonde_walk_modules_open(struct sonde_target *target,
	const struct sonde_debugfile_options *debug, struct sonde_notes *notes,
	struct sonde_walk_modules **ret)
{
	sonde_cleanup(sonde_walk_modules) struct sonde_walk_modules *ms =
		sonde_new(struct sonde_walk_modules);
	if (!ms)
		return &sonde_enomem;
	ms->target = target;
	ms->notes = notes;
	if (debug)
		ms->debug = *debug;
	sonde_arena_init(&ms->arena);
	SONDE_TRY(find_modules(ms));
	*ret = sonde_take(ms);
	return NULL;
}

void sonde_walk_modules_free(struct sonde_walk_modules *ms)
{
	if (!ms)
		return;
	sonde_vec_foreach (m, &ms->all) {
		sonde_unwind_table_free(m->table);
		sonde_cfi_free(m->cfi);
		sonde_elf_free(m->debug);
		if (!m->elf_borrowed)
			sonde_elf_free(m->elf);
	}
	sonde_walk_module_vec_deinit(&ms->all);
	sonde_arena_deinit(&ms->arena);
	free(ms);
}

struct sonde_walk_module *sonde_walk_modules_find(struct sonde_walk_modules *ms, uint64_t addr)
{
	size_t low = 0, high = ms->all.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (ms->all.items[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	struct sonde_walk_module *m = low < ms->all.n ? &ms->all.items[low] : NULL;
	return m && addr >= m->start ? m : NULL;
}

/*
 * bias by the segment that a mapping of code shows: run-time start - file offset = bias + (segment address - its offset).
 * A page may belong to two segments, so only executable ones are asked.
 */
static bool find_bias(
	const struct sonde_elf *elf, uint64_t start, uint64_t file_offset, uint64_t *bias)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t page = s->align > 1 && s->align <= 1 << 21 && !(s->align & (s->align - 1))
			? sonde_max(s->align, (uint64_t)4096)
			: 4096;
		uint64_t from = s->offset & ~(page - 1), end;
		if (s->type != PT_LOAD || !(s->flags & PF_X) || file_offset < from ||
			__builtin_add_overflow(s->offset, s->file_bytes, &end) ||
			file_offset >= end)
			continue;
		*bias = start - file_offset - (s->addr - s->offset);
		return true;
	}
	return false;
}

/* The first mapping of the module, and the first that can be executed. */
static const struct sonde_mapping *mapping_of(
	const struct sonde_walk_modules *ms, const struct sonde_walk_module *m, uint32_t perm)
{
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(ms->target, &n);
	for (size_t i = 0; i < n; i++) {
		if (maps[i].start >= m->start && maps[i].end <= m->end &&
			(maps[i].perm & perm) == perm && (!m->path || same_file(&maps[i], m->path)))
			return &maps[i];
	}
	return NULL;
}

/*
 * At most max bytes at addr, as far as they can be read: in place, or copied where the target has none in place (a live
 * process). NULL: nothing is readable.
 */
static const uint8_t *memory_at(
	struct sonde_walk_modules *ms, uint64_t addr, uint64_t max, uint64_t *len)
{
	struct sonde_target_run run;
	if (sonde_target_run_find(ms->target, addr, &run)) {
		*len = sonde_min(max, run.size_bytes - (addr - run.start));
		return run.host + (addr - run.start);
	}
	const struct sonde_mapping *map = sonde_target_mapping_find(ms->target, addr);
	if (!map)
		return NULL;
	max = sonde_min(max, map->end - addr);
	uint8_t *copy = sonde_arena_alloc(&ms->arena, max);
	*len = copy ? sonde_target_read_some(ms->target, addr, copy, max) : 0;
	return *len ? copy : NULL;
}

/* The file's first page, where the target's memory has it. */
static struct sonde_elf *head_in_memory(
	struct sonde_walk_modules *ms, const struct sonde_walk_module *m, uint64_t max)
{
	const struct sonde_mapping *first = mapping_of(ms, m, 0);
	struct sonde_elf *head = NULL;
	uint64_t len;
	if (!first || first->file_offset != 0)
		return NULL;
	const uint8_t *bytes =
		memory_at(ms, first->start, sonde_min(max, first->end - first->start), &len);
	if (bytes)
		sonde_error_free(sonde_elf_open_bytes(bytes, len, m->name, &head));
	return head;
}

/* A file of that path with the build-id that the file in memory has. */
static struct sonde_elf *open_same(struct sonde_walk_modules *ms, const struct sonde_walk_module *m)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *head = head_in_memory(ms, m, HEADER_BYTES);
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_buf) struct sonde_buf path = {0};
	struct sonde_buildid want, have;
	if (!head || !sonde_buildid_of_elf(head, &want))
		return NULL;
	if (ms->debug.sysroot)
		sonde_buf_str(&path, ms->debug.sysroot);
	sonde_buf_str(&path, m->path);
	/* A path out of a core is asked before it is opened: opening a device can do something. */
	struct stat st;
	if (!path.failed && !stat(sonde_buf_text(&path), &st) && S_ISREG(st.st_mode))
		sonde_error_free(sonde_elf_open(sonde_buf_text(&path), &elf));
	if (elf && sonde_buildid_of_elf(elf, &have) && sonde_buildid_equal(&want, &have))
		return sonde_take(elf);
	sonde_elf_free(elf);
	elf = NULL;
	sonde_error_free(sonde_debugfile_open_executable(&want, &ms->debug, &elf));
	return sonde_take(elf);
}

/*
 * The module's file, where it can be trusted: the executable, what the target reads pages from, since it checked that,
 * and what has the build-id that memory tells. Another file at the same path may be a newer one.
 */
static void open_file(struct sonde_walk_modules *ms, struct sonde_walk_module *m)
{
	const struct sonde_mapping *code = mapping_of(ms, m, SONDE_PERM_X);
	struct sonde_elf *exe = sonde_target_exe(ms->target, NULL);
	const struct sonde_process_info *info = sonde_target_info(ms->target);
	if (exe && info->entry >= m->start && info->entry < m->end) {
		m->elf = exe;
		m->elf_borrowed = true;
	} else if (code && code->source == SONDE_SOURCE_FILE) {
		const char *path = code->from ? code->from : code->path;
		struct sonde_error *err = sonde_elf_open(path, &m->elf);
		if (err)
			sonde_notes_add(
				ms->notes, "loaded file not readable", 0, "%s", err->message);
		sonde_error_free(err);
	} else if (m->path[0] == '/') {
		m->elf = open_same(ms, m);
	}
	uint64_t bias;
	if (m->elf && code && find_bias(m->elf, code->start, code->file_offset, &bias))
		m->bias = bias;
	else if (m->elf && m->elf_borrowed)
		m->bias = sonde_target_exe_bias(ms->target);
}

static void keep_table(struct sonde_walk_modules *ms, struct sonde_walk_module *m,
	struct sonde_unwind_table *table)
{
	if (table->header.n_rows) {
		m->table = table;
		return;
	}
	sonde_unwind_table_free(table);
	m->no_table = "no unwind info";
}

static void table_of_file(struct sonde_walk_modules *ms, struct sonde_walk_module *m)
{
	struct sonde_unwind_table *table = NULL;
	struct sonde_error *err = sonde_unwind_table_of_elf(m->elf, NULL, &table);
	if (!err && !table->header.n_rows) {
		/* Nothing in the file itself: its separate debug file may have .debug_frame. */
		sonde_unwind_table_free(sonde_take(table));
		struct sonde_error *none = sonde_debugfile_open(m->elf, &ms->debug, &m->debug);
		sonde_error_free(none);
		err = sonde_unwind_table_of_elf(m->elf, m->debug, &table);
	}
	if (!err) {
		keep_table(ms, m, table);
		return;
	}
	sonde_notes_add(ms->notes, "unwind info not usable", 0, "%s: %s", m->name, err->message);
	m->no_table = "no usable unwind info";
	sonde_error_free(err);
}

/* The kernel's object is mapped whole, sections and all. */
static void open_vdso(struct sonde_walk_modules *ms, struct sonde_walk_module *m)
{
	m->elf = head_in_memory(ms, m, VDSO_MAX_BYTES);
	if (m->elf && !find_bias(m->elf, m->start, 0, &m->bias)) {
		sonde_elf_free(m->elf);
		m->elf = NULL;
	}
}

/* .eh_frame_hdr: version 1, three encodings, the address of .eh_frame. 0: none that is understood. */
static uint64_t eh_frame_of_header(struct sonde_target *t, uint64_t header)
{
	uint8_t bytes[EH_FRAME_HDR_BYTES];
	int32_t relative;
	if (!sonde_target_read(t, header, bytes, sizeof(bytes)) || bytes[0] != 1 ||
		bytes[1] != PCREL_SDATA4)
		return 0;
	memcpy(&relative, bytes + 4, sizeof(relative));
	return header + 4 + (uint64_t)(int64_t)relative;
}

static struct sonde_error *table_at(struct sonde_walk_modules *ms, struct sonde_walk_module *m,
	const struct sonde_elf *head, uint64_t header)
{
	uint64_t addr = eh_frame_of_header(ms->target, header), len = 0;
	const uint8_t *bytes = addr ? memory_at(ms, addr, EH_FRAME_MAX_BYTES, &len) : NULL;
	if (!bytes)
		return NULL;
	const struct sonde_cfi_section section = {
		.data = bytes, .len = len, .addr = addr - m->bias, .ends_at_zero = true};
	const struct sonde_cfi_space space = {.machine = head->machine};
	SONDE_TRY(sonde_cfi_open_sections(&section, 1, &space, &m->cfi));
	m->cfi_tried = true;
	struct sonde_unwind_table *table;
	SONDE_TRY(sonde_unwind_table_build(m->cfi, sonde_unwind_base_of_elf(head), NULL, &table));
	m->no_table = NULL;
	keep_table(ms, m, table);
	return NULL;
}

/* From the target's own memory: headers, .eh_frame_hdr and .eh_frame are loaded with every file that has them. */
static struct sonde_error *table_of_memory(
	struct sonde_walk_modules *ms, struct sonde_walk_module *m)
{
	const struct sonde_mapping *code = mapping_of(ms, m, SONDE_PERM_X);
	m->no_table = "no unwind info";
	if (!code)
		return NULL;
	sonde_cleanup(sonde_elf) struct sonde_elf *head = head_in_memory(ms, m, HEADER_BYTES);
	if (!head) {
		m->no_table = "its file was not found, its headers are not in memory";
		return NULL;
	}
	if (!find_bias(head, code->start, code->file_offset, &m->bias))
		return NULL;
	for (size_t i = 0; i < head->n_segments; i++) {
		const struct sonde_elf_segment *s = &head->segments[i];
		if (s->type == PT_GNU_EH_FRAME)
			return table_at(ms, m, head, s->addr + m->bias);
	}
	return NULL;
}

void sonde_walk_module_load(struct sonde_walk_modules *ms, struct sonde_walk_module *m)
{
	if (m->loaded)
		return;
	m->loaded = true;
	if (!m->path) {
		m->no_table = "no unwind info";
		return;
	}
	if (!strcmp(m->path, "[vdso]"))
		open_vdso(ms, m);
	else
		open_file(ms, m);
	if (m->elf) {
		table_of_file(ms, m);
		return;
	}
	struct sonde_error *err = table_of_memory(ms, m);
	if (err) {
		sonde_notes_add(
			ms->notes, "unwind info not usable", 0, "%s: %s", m->name, err->message);
		m->no_table = "no usable unwind info";
	}
	sonde_error_free(err);
}

bool sonde_walk_is_code(const struct sonde_walk_modules *ms, uint64_t addr)
{
	const struct sonde_mapping *m = sonde_target_mapping_find(ms->target, addr);
	return m && m->perm & SONDE_PERM_X;
}

bool sonde_walk_register_rule(struct sonde_walk_modules *ms, struct sonde_walk_module *m,
	uint64_t addr, unsigned reg, struct sonde_cfi_value *ret)
{
	sonde_walk_module_load(ms, m);
	if (!m->cfi_tried && m->elf) {
		m->cfi_tried = true;
		sonde_error_free(sonde_cfi_open(m->elf, m->debug, &m->cfi));
	}
	const struct sonde_cfi_fde *fde = m->cfi ? sonde_cfi_find(m->cfi, addr - m->bias) : NULL;
	if (!fde)
		return false;
	/* A sonde_cfi follows one register besides the CFA and the return address: let it be this one. */
	struct sonde_cfi cfi = *m->cfi;
	cfi.fp_reg = (uint16_t)reg;
	struct sonde_cfi_rows rows;
	struct sonde_cfi_row row;
	bool any = false;
	sonde_cfi_rows_start(&rows, &cfi, fde);
	while (sonde_cfi_rows_next(&rows, &row) && row.start <= addr - m->bias) {
		*ret = row.fp;
		any = true;
	}
	return any && rows.refused == SONDE_CFI_FINE;
}
