/*
 * src/object/cfi.h: call-frame information (.eh_frame, .debug_frame) of x86-64 and arm64: its FDEs, sorted, and the rows
 * of each, as far as a stack walk needs them: the CFA, the frame pointer (rbp, x29) and the return address. Formats:
 * DWARF 5 section 6.4, LSB 5.0 chapter 10.6. Input is hostile; 24 bytes of memory an FDE, 48 while they are sorted.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "object/elf.h"

/* What is known of a value at some row. Register numbers are DWARF's of the machine. */
enum sonde_cfi_kind {
	SONDE_CFI_SAME, /* not touched yet (also: never mentioned, which is what ABIs mean by it) */
	SONDE_CFI_UNDEFINED, /* lost; of the return address: this is the bottom of the stack */
	SONDE_CFI_CFA_MEMORY, /* saved at CFA + offset */
	SONDE_CFI_CFA_VALUE, /* is CFA + offset */
	SONDE_CFI_REG_MEMORY, /* saved at reg + offset */
	SONDE_CFI_REG_VALUE, /* is reg + offset: also the usual CFA */
	SONDE_CFI_REG_LOADED, /* is *(reg + offset) + add: a CFA kept in a realigned frame */
	SONDE_CFI_PLT, /* CFA of a PLT: reg + offset + ((pc & 15) >= add ? 8 : 0) */
	SONDE_CFI_EXPRESSION, /* an expression of another shape */
};

struct sonde_cfi_value {
	uint8_t kind; /* enum sonde_cfi_kind */
	uint16_t reg;
	int32_t add;
	int64_t offset;
};

enum {
	SONDE_CFI_SIGNAL_FRAME =
		1, /* augmentation S: the pc is of the next instruction, not behind a call */
	SONDE_CFI_RA_SIGNED =
		2, /* arm64: the return address carries a pointer authentication code */
	SONDE_CFI_KEY_B = 4, /* arm64: and by key B */
};

struct sonde_cfi_row {
	uint64_t start; /* link-time address; holds to the next row's start or the FDE's end */
	struct sonde_cfi_value cfa, fp, ra;
	unsigned flags;
};

/* Why an FDE, or a CIE with all of its FDEs, is not used. */
enum sonde_cfi_reason {
	SONDE_CFI_FINE,
	SONDE_CFI_BAD_RECORD, /* cut short, or a length that passes the section's end */
	SONDE_CFI_BAD_CIE, /* an FDE that names none; a damaged CIE gives its FDEs its own reason */
	SONDE_CFI_BAD_VERSION, /* a CIE version other than 1, 3, 4 */
	SONDE_CFI_BAD_AUGMENTATION,
	SONDE_CFI_BAD_ENCODING, /* of a pointer */
	SONDE_CFI_BAD_OPCODE, /* an instruction that is not known */
	SONDE_CFI_BAD_OPERAND, /* an instruction cut short or without sense, a location that goes back */
	SONDE_CFI_TOO_DEEP, /* remembers more than SONDE_CFI_MAX_REMEMBERED states, or restores more than it has */
	SONDE_CFI_DISCARDED, /* of code that the linker left out: at address 0, 1, -1, -2 */
	SONDE_CFI_EMPTY, /* covers no address */
	SONDE_CFI_OUTSIDE, /* begins in no executable segment */
	SONDE_CFI_DUPLICATE, /* begins where another one begins */
	SONDE_CFI_COVERED, /* of .debug_frame, where .eh_frame covers its start: not a loss */
	SONDE_CFI_N_REASONS,
};

enum { SONDE_CFI_MAX_REMEMBERED = 64, SONDE_CFI_MAX_SECTIONS = 4 };

/* "unknown instruction"; a constant. */
const char *sonde_cfi_reason_name(enum sonde_cfi_reason reason);

struct sonde_cfi_fde {
	uint64_t start; /* link-time address */
	uint32_t n_bytes; /* of code; ends where the next one starts at the latest */
	uint32_t insns, n_insn_bytes; /* its instructions, by offset in the section */
	uint32_t cie; /* cfi.c's */
};

struct sonde_cfi_counts {
	uint64_t n_cies, n_fdes; /* all that were met */
	uint64_t refused
		[SONDE_CFI_N_REASONS]; /* FDEs when it was opened, without those that lose their instructions */
	uint64_t n_cut; /* FDEs that end early, where the next one starts */
};

/* A section as bytes, for what is no ELF file. */
struct sonde_cfi_section {
	const void *data; /* borrowed; must outlive the sonde_cfi */
	uint64_t len, addr; /* addr: where it is linked to be */
	bool debug_frame; /* else the format of .eh_frame */
	bool ends_at_zero; /* a terminator ends it: the length is not that of a section but an upper bound */
};

/* What pointers in the sections are relative to, and what code there is. */
struct sonde_cfi_space {
	uint16_t machine;
	uint64_t text_addr, data_addr; /* DW_EH_PE_textrel, _datarel */
	struct sonde_cfi_range {
		uint64_t start, end;
	} code[16]; /* FDEs that start outside are refused; n_code 0: all addresses */
	unsigned n_code;
	/* DW_EH_PE_indirect: the word at addr; NULL: refused. */
	bool (*read_word)(const void *ctx, uint64_t addr, uint64_t *ret);
	const void *ctx;
};

struct sonde_cfi_cie;
struct sonde_cfi {
	const struct sonde_cfi_fde *fdes; /* ascending by start, disjoint */
	size_t n_fdes;
	uint16_t machine; /* EM_X86_64 or EM_AARCH64 */
	uint16_t fp_reg; /* DWARF's number: 6, 29 */
	struct sonde_cfi_counts counts;
	/* cfi.c's. */
	struct sonde_cfi_fde *owned_fdes;
	struct sonde_cfi_cie *cies;
	struct sonde_cfi_section sections[SONDE_CFI_MAX_SECTIONS];
	unsigned n_sections;
	struct sonde_cfi_space space;
};

/*
 * The call-frame information of elf: .eh_frame (by its section, else by PT_GNU_EH_FRAME), then what .debug_frame of the
 * file and of debug (its separate debug file, object/debugfile.h, or NULL) have beyond. Both are borrowed and must
 * outlive *ret. A file with neither gives no FDEs. SONDE_UNSUPPORTED for other machines, 32 bit, relocatable files.
 */
struct sonde_error *sonde_cfi_open(
	struct sonde_elf *elf, struct sonde_elf *debug, struct sonde_cfi **ret) SONDE_CHECK;

/* The same over sections; the first ones win where they overlap. */
struct sonde_error *sonde_cfi_open_sections(const struct sonde_cfi_section *sections, unsigned n,
	const struct sonde_cfi_space *space, struct sonde_cfi **ret) SONDE_CHECK;
void sonde_cfi_free(struct sonde_cfi *cfi);
SONDE_DEFINE_CLEANUP(sonde_cfi)

/* The FDE that covers addr, or NULL. */
const struct sonde_cfi_fde *sonde_cfi_find(const struct sonde_cfi *cfi, uint64_t addr);

/* The state of an FDE's instructions. */
struct sonde_cfi_state {
	struct sonde_cfi_value cfa, fp, ra;
	int64_t cfa_offset; /* the last one given, also while the CFA is an expression */
	uint16_t cfa_reg;
	bool ra_signed;
};

/* Goes through an FDE's rows; the caller's storage, nothing to free. Several may run at once over one sonde_cfi. */
struct sonde_cfi_rows {
	enum sonde_cfi_reason
		refused; /* set where the FDE turns out damaged: the rows so far are void */
	uint64_t
		n_all; /* rows as the file has them: also those that differ in other registers only */
	/* cfi_rows.c's. */
	const struct sonde_cfi *cfi;
	const struct sonde_cfi_cie *cie;
	const uint8_t *p, *end;
	uint64_t start, loc, fde_end;
	bool done, changed, any;
	unsigned depth;
	struct sonde_cfi_state state, last, remembered[SONDE_CFI_MAX_REMEMBERED];
};

void sonde_cfi_rows_start(
	struct sonde_cfi_rows *rows, const struct sonde_cfi *cfi, const struct sonde_cfi_fde *fde);

/*
 * The next row, starts ascending, each inside the FDE; one that equals its predecessor is left out. false: no more, or
 * rows->refused.
 */
bool sonde_cfi_rows_next(struct sonde_cfi_rows *rows, struct sonde_cfi_row *ret);

/* "rbp", "x29"; "r77" in text for what has no name. */
const char *sonde_cfi_register_name(uint16_t machine, unsigned reg, char text[16]);
