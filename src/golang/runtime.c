#include "golang/runtime.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "object/elf.h"
#include "object/gobuildinfo.h"

enum { MAX_MODULES = 4096, MAX_WAIT_REASONS = 256, MAX_VERSION_BYTES = 256 };

bool sonde_go_read(const struct sonde_go *go, uint64_t addr, struct sonde_go_field f, uint64_t *ret)
{
	uint64_t v = 0;
	if (!f.size || !addr ||
		!sonde_target_read(go->target, addr + f.offset, &v, f.size < 8 ? f.size : 8))
		return false;
	*ret = v;
	return true;
}

char *sonde_go_string(
	const struct sonde_go *go, uint64_t addr, size_t max, struct sonde_arena *arena)
{
	uint64_t data, len;
	if (!sonde_go_read_word(go, addr, &data) ||
		!sonde_go_read_word(go, addr + go->word_bytes, &len))
		return NULL;
	if (len > max)
		len = max;
	/* No allocation before the bytes are known to be there. */
	const uint8_t *bytes =
		len ? sonde_target_bytes(go->target, data, len) : (const uint8_t *)"";
	return bytes ? sonde_arena_strndup(arena, (const char *)bytes, len) : NULL;
}

uint64_t sonde_go_global(const struct sonde_go *go, const char *name, uint64_t *type)
{
	const struct sonde_dwarf_global *g = sonde_dwarf_global_find(go->dwarf, name);
	if (!g)
		return 0;
	if (type)
		*type = g->type;
	return g->addr + go->bias;
}

const struct sonde_go_module *sonde_go_module_at(const struct sonde_go *go, uint64_t pc)
{
	for (size_t i = 0; i < go->n_modules; i++) {
		const struct sonde_go_module *m = &go->modules[i];
		if (pc >= m->text && pc < m->etext)
			return m;
	}
	return NULL;
}

bool sonde_go_function_at(const struct sonde_go *go, uint64_t pc, struct sonde_pcfunc *ret,
	const struct sonde_go_module **module)
{
	const struct sonde_go_module *m = sonde_go_module_at(go, pc);
	if (!m || !m->functions.n_functions || !sonde_pclntab_find(&m->functions, pc, ret))
		return false;
	if (module)
		*module = m;
	return true;
}

/* The readable bytes from addr to the end of the mappings that follow each other on the host. */
static struct sonde_bytes bytes_from(struct sonde_target *t, uint64_t addr)
{
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(t, &n);
	uint64_t end = 0;
	for (size_t i = 0; i < n; i++) {
		if (addr >= maps[i].start && addr < maps[i].end)
			end = maps[i].end;
	}
	const uint8_t *data = NULL;
	uint64_t len = end ? end - addr : 0;
	/* The tail may be missing (a truncated core): take what is there. */
	while (len && !(data = sonde_target_bytes(t, addr, len)))
		len = len / 2;
	return (struct sonde_bytes){data, data ? len : 0};
}

static struct sonde_error *read_module(
	struct sonde_go *go, uint64_t addr, struct sonde_go_module *m)
{
	const struct sonde_go_layout *l = &go->layout;
	const uint8_t *bytes = sonde_target_bytes(go->target, addr, l->sizeof_moduledata);
	if (!bytes)
		return sonde_error_new(
			SONDE_FAULT, "moduledata at 0x%" PRIx64 " is not readable", addr);
	*m = (struct sonde_go_module){
		.addr = addr,
		.text = sonde_go_load(bytes, l->module_text),
		.etext = sonde_go_load(bytes, l->module_etext),
		.data = sonde_go_load(bytes, l->module_data),
		.edata = sonde_go_load(bytes, l->module_edata),
		.data_mask = sonde_go_load(bytes, l->module_data_mask),
		.data_mask_bits = sonde_go_load(bytes, l->module_data_mask_bits),
		.bss = sonde_go_load(bytes, l->module_bss),
		.ebss = sonde_go_load(bytes, l->module_ebss),
		.bss_mask = sonde_go_load(bytes, l->module_bss_mask),
		.bss_mask_bits = sonde_go_load(bytes, l->module_bss_mask_bits),
		.noptrdata = sonde_go_load(bytes, l->module_noptrdata),
		.enoptrbss = sonde_go_load(bytes, l->module_enoptrbss),
		.types = sonde_go_load(bytes, l->module_types),
		.etypes = sonde_go_load(bytes, l->module_etypes),
		.rodata = sonde_go_load(bytes, l->module_rodata),
		.gofunc = sonde_go_load(bytes, l->module_gofunc),
	};
	if (m->text > m->etext || m->data > m->edata || m->bss > m->ebss || m->types > m->etypes)
		return sonde_error_new(SONDE_BAD_DATA,
			"moduledata at 0x%" PRIx64 ": sections end before they start", addr);
	/* The blob runs from its header to the end of its last slice. */
	uint64_t header = sonde_go_load(bytes, l->module_pc_header), table = 0, len = 0;
	memcpy(&table, bytes + l->module_pclntable.offset, go->word_bytes);
	memcpy(&len, bytes + l->module_pclntable.offset + go->word_bytes, go->word_bytes);
	uint64_t end;
	const uint8_t *blob = NULL;
	if (!__builtin_add_overflow(table, len, &end) && end > header)
		blob = sonde_target_bytes(go->target, header, end - header);
	if (!blob) {
		sonde_notes_add(
			go->notes, "Go function table not readable", 0, "at 0x%" PRIx64, header);
		return NULL;
	}
	struct sonde_error *err = sonde_pclntab_decode(blob, end - header, m->text, m->gofunc,
		bytes_from(go->target, m->gofunc), &m->functions);
	if (err)
		sonde_notes_add(go->notes, "Go function table not readable", 0, "%s", err->message);
	sonde_error_free(err);
	return NULL;
}

static struct sonde_error *read_modules(struct sonde_go *go)
{
	uint64_t addr = sonde_go_global(go, "runtime.firstmoduledata", NULL);
	if (!addr)
		return sonde_error_new(
			SONDE_NOT_FOUND, "no runtime.firstmoduledata: not a Go program");
	size_t n = 0;
	for (uint64_t a = addr, next; a && n < MAX_MODULES; a = next, n++) {
		if (!sonde_go_read(go, a, go->layout.module_next, &next))
			break;
	}
	go->modules = sonde_new_array(struct sonde_go_module, n);
	if (!go->modules)
		return &sonde_enomem;
	for (uint64_t a = addr; go->n_modules < n;) {
		struct sonde_error *err = read_module(go, a, &go->modules[go->n_modules]);
		if (err && go->n_modules == 0)
			return err;
		if (err) {
			sonde_notes_add(go->notes, "Go module not readable", 0, "%s", err->message);
			sonde_error_free(err);
			break;
		}
		go->n_modules++;
		if (!sonde_go_read(go, a, go->layout.module_next, &a))
			break;
	}
	return NULL;
}

/* runtime.waitReasonStrings: the reasons' own words, in this version's numbering. */
static struct sonde_error *read_wait_reasons(struct sonde_go *go)
{
	uint64_t type_id = 0, addr = sonde_go_global(go, "runtime.waitReasonStrings", &type_id);
	const struct sonde_dwarf_type *t = addr ? sonde_dwarf_type_bare(go->dwarf, type_id) : NULL;
	if (!t || t->kind != SONDE_DWARF_ARRAY || t->count > MAX_WAIT_REASONS) {
		sonde_notes_add(
			go->notes, "wait reasons unknown", 0, "no runtime.waitReasonStrings");
		return NULL;
	}
	go->wait_reasons = sonde_arena_array(&go->arena, const char *, t->count);
	if (!go->wait_reasons)
		return &sonde_enomem;
	go->n_wait_reasons = t->count;
	for (size_t i = 0; i < t->count; i++)
		go->wait_reasons[i] =
			sonde_go_string(go, addr + i * 2 * go->word_bytes, 128, &go->arena);
	return NULL;
}

/* The executable's DWARF, or that of its separate debug file. */
static struct sonde_error *open_dwarf(
	struct sonde_go *go, struct sonde_elf *exe, const struct sonde_debugfile_options *debug)
{
	struct sonde_error *err = sonde_dwarf_open(exe->file->path, go->notes, &go->dwarf);
	if (!err || err->code != SONDE_NOT_FOUND)
		return err;
	sonde_cleanup(sonde_elf) struct sonde_elf *separate = NULL;
	struct sonde_error *none = sonde_debugfile_open(exe, debug, &separate);
	if (!none) {
		sonde_error_free(err);
		return sonde_dwarf_open(separate->file->path, go->notes, &go->dwarf);
	}
	sonde_cleanup(sonde_gobuildinfo) struct sonde_gobuildinfo *build = NULL;
	struct sonde_error *no_build = sonde_gobuildinfo_of_elf(exe, &build);
	sonde_error_free(no_build);
	if (build)
		err = sonde_error_wrap(err,
			"a %s program, but types, goroutines and heap are found by DWARF (build "
			"without "
			"-ldflags=-s and -w, or give the unstripped file with --exe)",
			build->go_version);
	else
		err = sonde_error_wrap(err, "not a Go program, as far as can be seen");
	struct sonde_error *both =
		sonde_error_new(SONDE_NOT_FOUND, "%s; %s", err->message, none->message);
	sonde_error_free(err);
	sonde_error_free(none);
	return both;
}

static struct sonde_error *read_runtime(
	struct sonde_go *go, struct sonde_elf *exe, const struct sonde_debugfile_options *debug)
{
	SONDE_TRY(open_dwarf(go, exe, debug));
	if (!sonde_dwarf_global_find(go->dwarf, "runtime.buildVersion"))
		return sonde_error_new(SONDE_NOT_FOUND,
			"%s: not a Go program (its DWARF has no runtime.buildVersion)",
			exe->file->path);
	go->version = sonde_go_string(go, sonde_go_global(go, "runtime.buildVersion", NULL),
		MAX_VERSION_BYTES, &go->arena);
	if (!go->version)
		return sonde_error_new(SONDE_FAULT,
			"runtime.buildVersion is not readable: the core lacks the program's data "
			"segment");
	SONDE_TRY(sonde_error_wrap(
		sonde_go_layout_resolve(go->dwarf, &go->layout), "%s", go->version));
	SONDE_TRY(read_modules(go));
	go->mask_in_progress = sonde_go_global(go, "runtime.inProgress", NULL);
	return read_wait_reasons(go);
}

struct sonde_error *sonde_go_open(struct sonde_target *target,
	const struct sonde_debugfile_options *debug, struct sonde_notes *notes,
	struct sonde_go **ret)
{
	const char *why = "";
	struct sonde_elf *exe = sonde_target_exe(target, &why);
	if (!exe)
		return sonde_error_new(SONDE_NOT_FOUND, "%s", why);
	sonde_cleanup(sonde_go) struct sonde_go *go = sonde_new(struct sonde_go);
	if (!go)
		return &sonde_enomem;
	go->target = target;
	go->notes = notes;
	go->bias = sonde_target_exe_bias(target);
	go->word_bytes = exe->word_bytes;
	if (exe->big_endian)
		return sonde_error_new(
			SONDE_UNSUPPORTED, "%s: big-endian programs", exe->file->path);
	SONDE_TRY(read_runtime(go, exe, debug));
	*ret = sonde_take(go);
	return NULL;
}

void sonde_go_free(struct sonde_go *go)
{
	if (!go)
		return;
	sonde_dwarf_free(go->dwarf);
	sonde_arena_deinit(&go->arena);
	free(go->modules);
	free(go);
}
