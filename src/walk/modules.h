/*
 * src/walk/modules.h: the loaded files of a target, with their unwind tables, made when first asked for. A table comes
 * from the file where its identity was checked (by the target), else from the .eh_frame in the target's own memory.
 * One thread at a time; everything is borrowed until free.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/notes.h"
#include "base/vec.h"
#include "object/cfi.h"
#include "object/debugfile.h"
#include "object/elf.h"
#include "target/target.h"
#include "unwind/table.h"

struct sonde_walk_module {
	uint64_t start, end; /* of its mappings, the gaps between them included */
	uint64_t
		bias; /* run-time = link-time address + bias; valid after sonde_walk_module_load() */
	const char *path; /* as the process had it, "[vdso]"; NULL = anonymous memory */
	const char *name; /* its last part; "anonymous memory" */
	struct sonde_elf *elf; /* the file, or NULL: not found, not trusted, no file */
	bool elf_borrowed; /* the target's */
	struct sonde_elf *debug; /* its separate debug file, or NULL */
	struct sonde_unwind_table *table; /* NULL: none, no_table says why */
	const char *no_table;
	struct sonde_cfi *cfi; /* modules.c's: opened when one register's rules were asked for */
	bool loaded, cfi_tried;
};
SONDE_DEFINE_VEC(sonde_walk_module_vec, struct sonde_walk_module)

struct sonde_walk_modules {
	struct sonde_target *target; /* borrowed */
	struct sonde_notes *notes; /* borrowed, may be NULL */
	struct sonde_debugfile_options debug; /* its strings are borrowed */
	struct sonde_arena arena;
	struct sonde_walk_module_vec all; /* ascending, disjoint */
};

/* debug may be NULL. Opens no file yet. */
struct sonde_error *sonde_walk_modules_open(struct sonde_target *target,
	const struct sonde_debugfile_options *debug, struct sonde_notes *notes,
	struct sonde_walk_modules **ret) SONDE_CHECK;
void sonde_walk_modules_free(struct sonde_walk_modules *modules);
SONDE_DEFINE_CLEANUP(sonde_walk_modules)

/* The module that holds addr, or NULL. */
struct sonde_walk_module *sonde_walk_modules_find(
	struct sonde_walk_modules *modules, uint64_t addr);

/* See to it that ->elf, ->bias, ->table are there as far as they can be. Never fails: no_table tells. */
void sonde_walk_module_load(struct sonde_walk_modules *modules, struct sonde_walk_module *module);

/* Whether the process could execute what is at addr. */
bool sonde_walk_is_code(const struct sonde_walk_modules *modules, uint64_t addr);

/*
 * What the call-frame information says of one register (DWARF's number) at the run-time address addr: the tables know the
 * frame pointer and the return address only. false: nothing is known of that address.
 */
bool sonde_walk_register_rule(struct sonde_walk_modules *modules, struct sonde_walk_module *module,
	uint64_t addr, unsigned reg, struct sonde_cfi_value *ret);
