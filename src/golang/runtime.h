/*
 * src/golang/runtime.h: the Go runtime of one target: its version, field offsets, modules and function tables. Opened
 * once; read-only afterwards, so threads may share it, except for what says otherwise (dwarf).
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/notes.h"
#include "golang/layout.h"
#include "object/debugfile.h"
#include "object/dwarf.h"
#include "object/pclntab.h"
#include "target/target.h"

/* A loadable unit of Go code: the program, and each plugin. */
struct sonde_go_module {
	uint64_t addr; /* of its moduledata */
	uint64_t text, etext;
	uint64_t data, edata, data_mask,
		data_mask_bits; /* one bit a word at data_mask: 1 = pointer */
	uint64_t bss, ebss, bss_mask, bss_mask_bits;
	uint64_t noptrdata, enoptrbss;
	uint64_t types, etypes, rodata, gofunc;
	struct sonde_pclntab functions; /* n_functions 0 = unreadable (noted) */
};

struct sonde_go {
	struct sonde_target *target; /* borrowed */
	struct sonde_dwarf *dwarf; /* one thread at a time */
	struct sonde_notes *notes; /* borrowed, may be NULL */
	uint64_t bias; /* what is added to addresses of the executable file */
	unsigned word_bytes;
	char *version; /* "go1.27.4" */
	struct sonde_go_layout layout;
	struct sonde_go_module *modules;
	size_t n_modules;
	struct sonde_arena arena;
	const char **wait_reasons; /* by number */
	size_t n_wait_reasons;
	uint64_t
		mask_in_progress; /* runtime.inProgress: stands for a pointer mask that is being built; 0 = none */
};

/*
 * Find the runtime of the target. SONDE_NOT_FOUND where the executable is missing or is no Go program,
 * SONDE_UNSUPPORTED for a version that cannot be read. debug says where
 * separate debug files are; it is borrowed for the call, notes until free.
 */
struct sonde_error *sonde_go_open(struct sonde_target *target,
	const struct sonde_debugfile_options *debug, struct sonde_notes *notes,
	struct sonde_go **ret) SONDE_CHECK;
void sonde_go_free(struct sonde_go *go);
SONDE_DEFINE_CLEANUP(sonde_go)

/* An unsigned field of 1, 2, 4 or 8 bytes out of a struct's bytes. */
static inline uint64_t sonde_go_load(const uint8_t *bytes, struct sonde_go_field f)
{
	uint64_t v = 0;
	memcpy(&v, bytes + f.offset, f.size < 8 ? f.size : 8); /* little-endian */
	return v;
}

/* The same from the struct at addr of the target. false: not readable, or the field is absent. */
bool sonde_go_read(
	const struct sonde_go *go, uint64_t addr, struct sonde_go_field f, uint64_t *ret);

/* A pointer or uintptr at addr. */
static inline bool sonde_go_read_word(const struct sonde_go *go, uint64_t addr, uint64_t *ret)
{
	return sonde_target_read_word(go->target, addr, ret);
}

/* A Go string header at addr: its bytes as a NUL-terminated copy in arena, cut at max bytes. NULL: not readable. */
char *sonde_go_string(
	const struct sonde_go *go, uint64_t addr, size_t max, struct sonde_arena *arena);

/* The runtime address of a package variable ("runtime.allgs") and its DWARF type (may be NULL). 0: none. */
uint64_t sonde_go_global(const struct sonde_go *go, const char *name, uint64_t *type);

/* The module whose code holds pc, or NULL. */
const struct sonde_go_module *sonde_go_module_at(const struct sonde_go *go, uint64_t pc);

/* The function that covers pc; false where none does. module may be NULL. */
bool sonde_go_function_at(const struct sonde_go *go, uint64_t pc, struct sonde_pcfunc *ret,
	const struct sonde_go_module **module);
