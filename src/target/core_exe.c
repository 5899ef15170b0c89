#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "base/buf.h"
#include "object/debugfile.h"
#include "target/core_parts.h"

enum { MAX_PATH_BYTES = 4096 };

const char *sonde_core_exe_mapped_path(const struct sonde_core_file *core)
{
	const struct sonde_process_info *info = &core->target.info;
	if (!core->vmas)
		return NULL;
	const struct sonde_vma *v = info->phdr ? sonde_vmas_find(core->vmas, info->phdr) : NULL;
	if (!v && info->entry)
		v = sonde_vmas_find(core->vmas, info->entry);
	return v ? v->path : NULL;
}

/* Where the executable's first byte was mapped; UINT64_MAX: unknown. */
static uint64_t header_addr(const struct sonde_core_file *core, const char *mapped)
{
	const struct sonde_process_info *info = &core->target.info;
	uint64_t base = mapped ? sonde_core_base_of(core, mapped) : UINT64_MAX;
	/* The program headers stand in the file's first page, behind the ELF header, with every linker there is. */
	if (base == UINT64_MAX && info->phdr)
		base = info->phdr & ~(info->page_bytes - 1);
	return base;
}

/* The address that the program headers have by the file itself; false: no segment holds them. */
static bool linked_phdr(const struct sonde_elf *elf, uint64_t *addr)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		if (elf->segments[i].type == PT_PHDR) {
			*addr = elf->segments[i].addr;
			return true;
		}
	}
	return sonde_elf_addr_of(elf, elf->segments_offset, addr);
}

/* false: the auxiliary vector belongs to another program; *why says so. */
static bool bias_of(struct sonde_core_file *core, const struct sonde_elf *elf, uint64_t base,
	uint64_t *bias, const char **why)
{
	const struct sonde_process_info *info = &core->target.info;
	struct sonde_arena *arena = &core->target.arena;
	uint64_t first, phdr;
	*bias = 0;
	if (info->has_auxv && info->entry) {
		*bias = info->entry - elf->entry;
		if (elf->word_bytes == 4)
			*bias = (uint32_t)*bias;
	} else if (elf->type == ET_DYN && base != UINT64_MAX && sonde_elf_addr_of(elf, 0, &first)) {
		*bias = base - first;
	}
	if (*bias % 4096 || (elf->type == ET_EXEC && *bias)) {
		*why = sonde_arena_printf(arena,
			"its entry point 0x%" PRIx64 " is not the process's 0x%" PRIx64, elf->entry,
			info->entry);
		return false;
	}
	if (info->phdr && linked_phdr(elf, &phdr)) {
		uint64_t want = phdr + *bias;
		if (elf->word_bytes == 4)
			want = (uint32_t)want;
		if (want != info->phdr) {
			*why = sonde_arena_printf(arena,
				"its program headers would lie at 0x%" PRIx64
				", the process had them at 0x%" PRIx64,
				want, info->phdr);
			return false;
		}
	}
	if (info->n_phdr && info->n_phdr != elf->n_segments) {
		*why = sonde_arena_printf(arena, "it has %zu program headers, the process %" PRIu64,
			elf->n_segments, info->n_phdr);
		return false;
	}
	return true;
}

/* objcopy --only-keep-debug leaves the program headers as they were, and nothing behind them. */
static bool only_debug(const struct sonde_elf *elf)
{
	for (size_t i = 0; i < elf->n_sections; i++)
		if (elf->sections[i].type == SHT_NOBITS && elf->sections[i].flags & SHF_EXECINSTR)
			return true;
	return false;
}

struct search {
	struct sonde_core_file *core;
	struct sonde_core_evidence evidence;
	const char *mapped; /* path in NT_FILE, or NULL */
	uint64_t base;
	struct sonde_buf tried; /* "PATH (why), PATH (why)" */
};

/* Whether elf is the executable. On SONDE_CORE_DIFFERENT *why holds a line. */
static enum sonde_core_verdict judge(
	struct search *s, const struct sonde_elf *elf, const char *path, const char **why)
{
	struct sonde_core_file *core = s->core;
	const struct sonde_process_info *info = &core->target.info;
	char have[32], want[32];
	const char *detail;
	uint64_t bias;
	if (elf->machine != info->machine || elf->word_bytes != info->word_bytes) {
		*why = sonde_arena_printf(&core->target.arena,
			"%s is a %s %u-bit file, the core of a %s %u-bit process", path,
			sonde_elf_machine_name(elf->machine, have), elf->word_bytes * 8,
			sonde_elf_machine_name(info->machine, want), info->word_bytes * 8);
		return SONDE_CORE_DIFFERENT;
	}
	if (elf->type != ET_EXEC && elf->type != ET_DYN) {
		*why = sonde_arena_printf(
			&core->target.arena, "%s is no executable (ELF type %u)", path, elf->type);
		return SONDE_CORE_DIFFERENT;
	}
	if (only_debug(elf)) {
		*why = sonde_arena_printf(
			&core->target.arena, "%s holds debug information only, no code", path);
		return SONDE_CORE_DIFFERENT;
	}
	enum sonde_core_verdict v =
		sonde_core_identify(core, &s->evidence, s->mapped, elf, elf->file->fd, path, why);
	if (v != SONDE_CORE_DIFFERENT && !bias_of(core, elf, s->base, &bias, &detail)) {
		*why = sonde_arena_printf(&core->target.arena, "%s: %s", path, detail);
		return SONDE_CORE_DIFFERENT;
	}
	/* Without build-ids, entry point and program headers that fit are some proof, not much. */
	return v;
}

static void accept_exe(struct search *s, struct sonde_elf *elf, enum sonde_core_verdict v)
{
	struct sonde_core_file *core = s->core;
	const char *why;
	if (v == SONDE_CORE_UNPROVEN)
		sonde_notes_add(core->options.notes,
			"executable taken without proof that it is the same", 0, "%s",
			sonde_elf_path(elf));
	bias_of(core, elf, s->base, &core->target.exe_bias, &why);
	core->target.exe_path = sonde_arena_strdup(&core->target.arena, sonde_elf_path(elf));
	core->target.exe = elf;
}

/* true = found. Otherwise the path and the reason go to s->tried. */
static bool try_path(struct search *s, const char *path)
{
	struct sonde_elf *elf = NULL;
	const char *why = NULL;
	const char *separator = s->tried.len ? ", " : "";
	int os_errno = sonde_core_regular(path);
	if (os_errno) {
		sonde_buf_printf(&s->tried, "%s%s: %s", separator, path,
			os_errno == ENODEV ? "not a regular file" : strerror(os_errno));
		return false;
	}
	struct sonde_error *err = sonde_elf_open(path, &elf);
	if (err) {
		/* The message begins with the path. */
		sonde_buf_printf(&s->tried, "%s%s", separator, err->message);
		sonde_error_free(err);
		return false;
	}
	enum sonde_core_verdict v = judge(s, elf, path, &why);
	if (v == SONDE_CORE_DIFFERENT) {
		sonde_buf_printf(&s->tried, "%s%s", separator, why ? why : path);
		sonde_elf_free(elf);
		return false;
	}
	accept_exe(s, elf, v);
	return true;
}

static bool try_joined(struct search *s, const char *dir, size_t dir_len, const char *name)
{
	char path[MAX_PATH_BYTES];
	int n = snprintf(path, sizeof(path), "%.*s%s%s", (int)dir_len, dir,
		dir_len && name[0] != '/' ? "/" : "", name);
	return n > 0 && (size_t)n < sizeof(path) && try_path(s, path);
}

/* Under the sysroot, as it is, and beside the core. name is the process's path. */
static bool try_name(struct search *s, const char *name, bool beside)
{
	const char *sysroot = s->core->options.sysroot, *core_path = s->core->path;
	const char *slash = strrchr(core_path, '/'), *base = strrchr(name, '/');
	char clean[MAX_PATH_BYTES];
	static const char deleted[] = " (deleted)";
	size_t len = strlen(name);
	if (len > sizeof(deleted) - 1 && len < sizeof(clean) &&
		!strcmp(name + len - (sizeof(deleted) - 1), deleted)) {
		memcpy(clean, name, len);
		clean[len - (sizeof(deleted) - 1)] = 0;
		return try_name(s, clean, beside);
	}
	if (beside) {
		base = base ? base + 1 : name;
		return try_joined(s, core_path,
			slash ? (size_t)(slash - core_path) + !(slash - core_path) : 0, base);
	}
	if (sysroot && try_joined(s, sysroot, strlen(sysroot), name))
		return true;
	return try_path(s, name);
}

static bool try_build_id(struct search *s)
{
	const struct sonde_core_options *o = &s->core->options;
	struct sonde_debugfile_options options = {
		.sysroot = o->sysroot,
		.debug_dirs = o->debug_dirs,
		.log = o->log,
		.notes = o->notes,
		.no_debuginfod = o->no_debuginfod,
	};
	struct sonde_elf *elf = NULL;
	const char *why = NULL;
	if (!s->evidence.id.len)
		return false;
	struct sonde_error *err = sonde_debugfile_open_executable(&s->evidence.id, &options, &elf);
	if (err) {
		sonde_buf_printf(&s->tried, "%s%s", s->tried.len ? ", " : "", err->message);
		sonde_error_free(err);
		return false;
	}
	enum sonde_core_verdict v = judge(s, elf, sonde_elf_path(elf), &why);
	if (v == SONDE_CORE_DIFFERENT) {
		sonde_buf_printf(&s->tried, "%s%s", s->tried.len ? ", " : "", why ? why : "");
		sonde_elf_free(elf);
		return false;
	}
	accept_exe(s, elf, v);
	return true;
}

static bool search_all(struct search *s)
{
	const char *execfn = s->core->target.info.execfn;
	if (s->mapped && try_name(s, s->mapped, false))
		return true;
	if (execfn[0] && (!s->mapped || strcmp(execfn, s->mapped)) && try_name(s, execfn, false))
		return true;
	if (s->mapped && try_name(s, s->mapped, true))
		return true;
	if (execfn[0] && !s->mapped && try_name(s, execfn, true))
		return true;
	return try_build_id(s);
}

static struct sonde_error *open_given(struct search *s)
{
	const char *path = s->core->options.exe, *why = NULL;
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	SONDE_TRY(sonde_elf_open(path, &elf));
	enum sonde_core_verdict v = judge(s, elf, path, &why);
	if (v == SONDE_CORE_DIFFERENT)
		return sonde_error_new(SONDE_MISMATCH, "wrong executable for %s: %s", s->core->path,
			why ? why : path);
	accept_exe(s, sonde_take(elf), v);
	return NULL;
}

static const char *explain(struct search *s)
{
	char id[SONDE_BUILDID_HEX_BYTES];
	struct sonde_arena *arena = &s->core->target.arena;
	const char *wanted = s->evidence.id.len ? sonde_buildid_hex(&s->evidence.id, id)
		: s->evidence.goid[0]           ? s->evidence.goid
						: NULL;
	return sonde_arena_printf(arena,
		"no executable found: tried %s; wanted %s%s; name it with --exe, or its root with "
		"--sysroot",
		s->tried.len ? sonde_buf_text(&s->tried) : "nothing: the core names none",
		wanted ? (s->evidence.id.len ? "build-id " : "Go build id ")
		       : "build-id unknown, the core does not hold it",
		wanted ? wanted : "");
}

static struct sonde_error *find(struct search *s)
{
	struct sonde_core_file *core = s->core;
	struct sonde_target *t = &core->target;
	s->mapped = sonde_core_exe_mapped_path(core);
	s->base = header_addr(core, s->mapped);
	if (s->base != UINT64_MAX && !sonde_core_evidence_at(core, s->base, &s->evidence))
		return &sonde_enomem;
	t->exe_buildid = s->evidence.id;
	memcpy(t->exe_gobuildid, s->evidence.goid, sizeof(t->exe_gobuildid));
	t->exe_path = s->mapped ? s->mapped : t->info.execfn;
	t->exe_path = sonde_arena_strdup(&t->arena, t->exe_path);
	if (!t->exe_path)
		return &sonde_enomem;
	if (core->options.exe)
		return open_given(s);
	if (search_all(s)) {
		sonde_log_message(
			core->options.log, SONDE_LOG_DEBUG, "executable: %s", t->exe_path);
		return NULL;
	}
	if (s->tried.failed || !(t->exe_why = explain(s)))
		return &sonde_enomem;
	/* Its header in the core still tells the bias. */
	const char *why;
	if (s->evidence.elf && !bias_of(core, s->evidence.elf, s->base, &t->exe_bias, &why))
		t->exe_bias = 0;
	sonde_log_message(core->options.log, SONDE_LOG_WARNING, "%s", t->exe_why);
	return NULL;
}

struct sonde_error *sonde_core_exe_find(struct sonde_core_file *core)
{
	struct search s = {.core = core};
	struct sonde_error *err = find(&s);
	sonde_core_evidence_deinit(&s.evidence);
	sonde_buf_deinit(&s.tried);
	return err;
}
