/*
 * src/symbol/symbolizer.h: link-time addresses of a file -> function, file, line, inlined calls: by DWARF of the file or
 * its separate debug file, else by symbols. A file is read when first asked for. One thread at a time; strings are
 * borrowed until free.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "base/notes.h"
#include "object/debugfile.h"
#include "object/elf.h"

struct sonde_symbolizer;

/* debug (may be NULL) says where separate debug files are; its strings and notes (may be NULL) are borrowed. */
struct sonde_error *sonde_symbolizer_new(const struct sonde_debugfile_options *debug,
	struct sonde_notes *notes, struct sonde_symbolizer **ret) SONDE_CHECK;
void sonde_symbolizer_free(struct sonde_symbolizer *s);
SONDE_DEFINE_CLEANUP(sonde_symbolizer)

struct sonde_symbol_call {
	const char *function; /* as people write it; NULL = unknown */
	const char
		*linkage_name; /* as the linker knows it, where that is another name; else NULL */
	const char *file; /* NULL = unknown */
	uint32_t line; /* 0 = unknown */
	bool inlined; /* into the next call */
	uint64_t offset; /* of addr from the function's start; of the outermost call */
};

/*
 * The calls at the link-time address addr of elf (borrowed until free), innermost first; at most max; returns how many
 * there are, at least 1: where nothing is known one call without a name.
 */
size_t sonde_symbolizer_calls(struct sonde_symbolizer *s, struct sonde_elf *elf, uint64_t addr,
	struct sonde_symbol_call *calls, size_t max);
