/*
 * src/unwind/table.h: builds unwind tables (unwind/format.h) from call-frame information, opens and looks into them.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "object/buildid.h"
#include "object/cfi.h"
#include "unwind/format.h"

/* What became of the call-frame information. */
struct sonde_unwind_counts {
	struct sonde_cfi_counts cfi; /* refused: also FDEs with damaged instructions */
	uint64_t n_rows_read; /* rows of all registers, as the file has them */
	uint64_t n_gap_rows; /* rows of the table that say "no information" */
	uint64_t n_signal_rows, n_bottom_rows;
	uint64_t
		n_other_register_rows; /* CFA by a register that is neither stack nor frame pointer: leaf frames only */
	uint64_t n_unknown_fp_rows; /* the frame pointer is an expression that no rule can hold */
	uint64_t unsupported[SONDE_UNWIND_N_UNSUPPORTED]; /* rows, by reason */
	uint64_t n_outside_fdes; /* FDEs below the base or beyond 4 GiB from it: left out */
};

struct sonde_unwind_table {
	struct sonde_unwind_header header; /* a checked copy */
	const uint8_t *image; /* header.image_bytes; 8-byte aligned */
	uint8_t *owned; /* image, where it was built; NULL where it is borrowed */
	struct sonde_unwind_counts counts; /* of building; zeros where it was opened */
};

/*
 * Build the table of cfi, FDE by FDE: memory is the table's and little else. base_addr is the link-time address of the
 * first segment (sonde_unwind_base_of_elf()); id may be NULL. A table without rows is fine. SONDE_NO_MEMORY,
 * SONDE_UNSUPPORTED where the image would pass 4 GiB.
 */
struct sonde_error *sonde_unwind_table_build(const struct sonde_cfi *cfi, uint64_t base_addr,
	const struct sonde_buildid *id, struct sonde_unwind_table **ret) SONDE_CHECK;

/* All of it for a file; debug may be NULL (sonde_cfi_open()). */
struct sonde_error *sonde_unwind_table_of_elf(struct sonde_elf *elf, struct sonde_elf *debug,
	struct sonde_unwind_table **ret) SONDE_CHECK;

/*
 * A table over an image that outlives it, of a file or from elsewhere; 8-byte aligned (a mapped file is). SONDE_BAD_DATA,
 * SONDE_TRUNCATED or SONDE_MISMATCH (version, byte order) where the header makes no sense; only header and page index are
 * looked at. Whatever the bytes are, and even where they change later, look-ups never read outside the image.
 */
struct sonde_error *sonde_unwind_table_open(
	const void *image, uint64_t len, struct sonde_unwind_table **ret) SONDE_CHECK;
void sonde_unwind_table_free(struct sonde_unwind_table *table);
SONDE_DEFINE_CLEANUP(sonde_unwind_table)

/* All bytes: checksum, order of the rows, every rule. SONDE_BAD_DATA with the first place. */
struct sonde_error *sonde_unwind_table_check(const struct sonde_unwind_table *table) SONDE_CHECK;

/* The link-time address that addresses in the table are relative to: of the first PT_LOAD, down to a page. 0: none. */
uint64_t sonde_unwind_base_of_elf(const struct sonde_elf *elf);

/* A row with what it means. */
struct sonde_unwind_entry {
	uint64_t start,
		end; /* link-time addresses; the last row of a table, a gap, has end = UINT64_MAX */
	uint32_t row, rule_number;
	struct sonde_unwind_rule rule; /* all zero: a gap */
};

/*
 * The row that covers the link-time address addr (load bias taken off). false: none. A gap is found as such: look at the
 * rule. Thread-safe.
 */
bool sonde_unwind_table_find(
	const struct sonde_unwind_table *table, uint64_t addr, struct sonde_unwind_entry *ret);

/* Row number `row`, 0 .. header.n_rows - 1. false: beyond, or damaged. Going through all: O(1) a row while it ascends. */
struct sonde_unwind_cursor {
	const struct sonde_unwind_table *table;
	uint32_t row, page;
};
bool sonde_unwind_table_next(struct sonde_unwind_cursor *cursor, struct sonde_unwind_entry *ret);

/* The rule at the link-time address addr. false: no information. The walker's call: find without the decoration. */
bool sonde_unwind_table_rule(
	const struct sonde_unwind_table *table, uint64_t addr, struct sonde_unwind_rule *ret);

/* "general expression"; a constant. */
const char *sonde_unwind_unsupported_name(enum sonde_unwind_unsupported reason);
