/*
 * src/object/lines.h: pc -> file and line from .debug_line (DWARF 2 to 5), with the chain of inlined calls. A unit's
 * table is decoded when a pc in it is first asked for, and kept as sorted arrays. One thread at a time.
 */
#pragma once
#include "object/dwarf.h"

struct sonde_lines;

/* Over a dwarf, which is borrowed and must outlive it. Costs nothing yet. */
struct sonde_error *sonde_lines_new(
	struct sonde_dwarf *dwarf, struct sonde_lines **ret) SONDE_CHECK;
void sonde_lines_free(struct sonde_lines *lines);
SONDE_DEFINE_CLEANUP(sonde_lines)

struct sonde_line {
	const char *
		file; /* as the compiler wrote it, its directory in front; "" = unknown. Borrowed */
	uint32_t line, column; /* 0 = unknown */
	uint64_t low, high; /* the addresses that share this row */
};

/* The row that holds pc. For a caller's frame pass its return address minus 1. false = none. */
bool sonde_lines_find(struct sonde_lines *lines, uint64_t pc, struct sonde_line *ret);

struct sonde_line_frame {
	const char *function; /* "" = unknown. Borrowed */
	const char *linkage_name; /* mangled; "" = none */
	const char *file;
	uint32_t line, column;
	bool is_inlined;
};

/* The calls at pc, innermost first; at most max of them are written, how many there are is returned. 0 = pc unknown. */
size_t sonde_lines_frames(
	struct sonde_lines *lines, uint64_t pc, struct sonde_line_frame *frames, size_t max);
