#include "walk/modules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "object/cfi.h"

enum { EH_FRAME_HDR_BYTES = 8, PCREL_SDATA4 = 0x1b, HEADER_BYTES = 4096 };

static bool same_file(const struct sonde_mapping *a, const char *path)
{
	return a->path && path && !strcmp(a->path, path);
}

/* Mappings of one file that follow each other are one module; offset 0 begins another load of the same file. */
static struct sonde_error *find_modules(struct sonde_walk_modules *ms)
{
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(ms->target, &n);
	struct sonde_walk_module *m = NULL;
	for (size_t i = 0; i < n; i++) {
		const struct sonde_mapping *map = &maps[i];
		if (!map->path && !(map->perm & SONDE_PERM_X))
			continue; /* data: no code can be there */
		bool goes_on = m && same_file(map, m->path) && map->file_offset != 0;
		if (!goes_on) {
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

/* bias by the segment that a mapping shows: run-time start - file offset = bias + (segment address - its offset). */
static bool find_bias(
	const struct sonde_elf *elf, uint64_t start, uint64_t file_offset, uint64_t *bias)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t page = s->align > 1 && s->align <= 1 << 21 && !(s->align & (s->align - 1))
			? s->align
			: 4096;
		uint64_t from = s->offset & ~(page - 1);
		if (s->type != PT_LOAD || file_offset < from ||
			file_offset >= s->offset + s->file_bytes)
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
 * The module's file, where it can be trusted: the executable, and what the target reads pages from, since it checked
 * that. Another file at the same path may be a newer one.
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

/* From the target's own memory: headers, .eh_frame_hdr and .eh_frame are loaded with every file that has them. */
static struct sonde_error *table_of_memory(
	struct sonde_walk_modules *ms, struct sonde_walk_module *m)
{
	const struct sonde_mapping *first = mapping_of(ms, m, 0);
	const struct sonde_mapping *code = mapping_of(ms, m, SONDE_PERM_X);
	m->no_table = "no unwind info";
	if (!first || !code || first->file_offset != 0)
		return NULL;
	uint64_t len = sonde_min((uint64_t)HEADER_BYTES, first->end - first->start);
	const uint8_t *bytes = sonde_target_bytes(ms->target, first->start, len);
	sonde_cleanup(sonde_elf) struct sonde_elf *head = NULL;
	if (!bytes || sonde_elf_open_bytes(bytes, len, m->name, &head) != NULL || !head) {
		m->no_table = "its file was not found, its headers are not in memory";
		return NULL;
	}
	if (!find_bias(head, code->start, code->file_offset, &m->bias))
		return NULL;
	for (size_t i = 0; i < head->n_segments; i++) {
		const struct sonde_elf_segment *s = &head->segments[i];
		if (s->type != PT_GNU_EH_FRAME)
			continue;
		uint64_t addr = eh_frame_of_header(ms->target, s->addr + m->bias);
		struct sonde_target_run run;
		if (!addr || !sonde_target_run_find(ms->target, addr, &run))
			return NULL;
		const struct sonde_cfi_section section = {
			.data = run.host + (addr - run.start),
			.len = run.size_bytes - (addr - run.start),
			.addr = addr - m->bias,
			.ends_at_zero = true,
		};
		const struct sonde_cfi_space space = {.machine = head->machine};
		sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
		SONDE_TRY(sonde_cfi_open_sections(&section, 1, &space, &cfi));
		struct sonde_unwind_table *table;
		SONDE_TRY(sonde_unwind_table_build(
			cfi, sonde_unwind_base_of_elf(head), NULL, &table));
		m->no_table = NULL;
		keep_table(ms, m, table);
		return NULL;
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
