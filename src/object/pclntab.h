/*
 * src/object/pclntab.h: Go's function table (runtime.pclntab): pc -> function, file, line, inlined calls, and the
 * pc-value tables that the runtime itself unwinds and finds pointers by. Over bytes: of an executable or of a core.
 * Read from runtime/symtab.go, symtabinl.go and internal/abi/symtab.go of Go 1.18 to 1.27. Go 1.18 and later.
 * Nothing here allocates after decode; every look-up is bounded by the bytes given. Threads may share one table.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"

/* internal/abi/symtab.go; the same numbers since Go 1.18. */
enum sonde_pcdata {
	SONDE_PCDATA_UNSAFE_POINT,
	SONDE_PCDATA_STACK_MAP_INDEX,
	SONDE_PCDATA_INLINE_TREE_INDEX,
	SONDE_PCDATA_ARG_LIVE_INDEX,
};

enum sonde_funcdata {
	SONDE_FUNCDATA_ARGS_POINTER_MAPS,
	SONDE_FUNCDATA_LOCALS_POINTER_MAPS,
	SONDE_FUNCDATA_STACK_OBJECTS,
	SONDE_FUNCDATA_INLINE_TREE,
	SONDE_FUNCDATA_OPEN_CODED_DEFERS,
	SONDE_FUNCDATA_ARG_INFO,
	SONDE_FUNCDATA_ARG_LIVE_INFO,
};

enum sonde_func_flag { SONDE_FUNC_TOP_FRAME = 1, SONDE_FUNC_SP_WRITE = 2, SONDE_FUNC_ASM = 4 };

struct sonde_bytes {
	const uint8_t *data; /* borrowed */
	uint64_t len;
};

struct sonde_pclntab {
	struct sonde_bytes names, cu_table, files, pc_values, functions; /* parts of the table */
	struct sonde_bytes func_data; /* from gofunc_addr on: stack maps, inline trees */
	uint64_t text_addr, gofunc_addr;
	uint64_t end_addr; /* of the last function */
	uint32_t n_functions;
	uint8_t word_bytes, quantum;
	uint8_t func_bytes; /* size of the fixed part of a _func */
	uint8_t inline_call_bytes; /* size of an inlinedCall */
	bool has_start_line; /* since Go 1.20 */
	const char *version; /* what the magic says: "1.20" */
};

/* One function. Offsets are into the table's parts; names are borrowed from it. */
struct sonde_pcfunc {
	uint64_t entry,
		end; /* [entry, end) by the function table; end is the next function's entry */
	const char *name;
	uint32_t pcsp, pcfile, pcln, n_pcdata, cu_offset, deferreturn;
	uint32_t n_funcdata;
	int32_t args_bytes, start_line; /* args_bytes < 0: ArgsSizeUnknown */
	uint8_t id, flags;
	const uint8_t *pcdata; /* n_pcdata little-endian uint32 */
	const uint8_t *funcdata; /* n_funcdata little-endian uint32 */
	uint32_t index;
};

/* One logical call at a pc, innermost first. */
struct sonde_pccall {
	const char *function, *file; /* borrowed; "?" where the table does not say */
	uint32_t line;
	bool inlined; /* into the next call of the list */
	uint8_t func_id;
	int32_t start_line;
};

/*
 * Index the table whose pcHeader starts at data. text_addr is moduledata.text, gofunc_addr is moduledata.gofunc with
 * the readable bytes from there in func_data (may be empty: then no funcdata). SONDE_UNSUPPORTED for a magic that is
 * known but too old, SONDE_BAD_DATA for anything that contradicts itself.
 */
struct sonde_error *sonde_pclntab_decode(const uint8_t *data, uint64_t len, uint64_t text_addr,
	uint64_t gofunc_addr, struct sonde_bytes func_data, struct sonde_pclntab *ret) SONDE_CHECK;

/* The function that covers pc (an exact address: subtract 1 from return addresses before). false: none. */
bool sonde_pclntab_find(const struct sonde_pclntab *t, uint64_t pc, struct sonde_pcfunc *ret);

/* Function number i in address order. */
bool sonde_pclntab_function(const struct sonde_pclntab *t, uint32_t i, struct sonde_pcfunc *ret);

/*
 * The value at pc of the pc-value table at offset `table` in pc_values (pcsp, pcfile, pcln or a pcdata). false where
 * the table is absent (offset 0) or damaged, or does not reach pc.
 */
bool sonde_pclntab_value(const struct sonde_pclntab *t, const struct sonde_pcfunc *f,
	uint32_t table, uint64_t pc, int32_t *ret);

/* The same for PCDATA number `which`; -1 where the function has none, as the runtime does. */
int32_t sonde_pclntab_pcdata(const struct sonde_pclntab *t, const struct sonde_pcfunc *f,
	enum sonde_pcdata which, uint64_t pc);

/* FUNCDATA number `which` of f: its bytes (to the end of func_data) and address; false: none. */
bool sonde_pclntab_funcdata(const struct sonde_pclntab *t, const struct sonde_pcfunc *f,
	enum sonde_funcdata which, struct sonde_bytes *ret, uint64_t *addr);

/*
 * The calls at pc in f, innermost first: at most max of them into calls; returns how many there are, at least 1. A
 * damaged inline tree ends the list with the function itself.
 */
size_t sonde_pclntab_calls(const struct sonde_pclntab *t, const struct sonde_pcfunc *f, uint64_t pc,
	struct sonde_pccall *calls, size_t max);
