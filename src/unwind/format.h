/*
 * src/unwind/format.h: the unwind table as bytes: the same in memory, in a file and in the values of a BPF map. Freestanding:
 * BPF programs and the recorder include it. doc/design/unwind.md tells the reasons.
 *
 * The image is a row of blocks of SONDE_UNWIND_BLOCK_BYTES: header, rows, pages, rules, zeros to the last block's end.
 * No item crosses a block. Byte order is the writer's; another one is refused when the table is opened.
 *
 * A row is (16-bit offset in a 64 KiB page of text, 16-bit rule number) and holds up to the next one. Page p's rows are
 * pages[p] .. pages[p + 1] - 1; what comes before the first of them is the last row of the pages before. Addresses are
 * relative to base_addr, the link-time address of the file's first segment.
 */
#pragma once
#include <stdbool.h>
#ifdef __bpf__
typedef __UINT8_TYPE__ uint8_t;
typedef __UINT16_TYPE__ uint16_t;
typedef __UINT32_TYPE__ uint32_t;
typedef __UINT64_TYPE__ uint64_t;
typedef __INT32_TYPE__ int32_t;
typedef __INT64_TYPE__ int64_t;
#else
#include <stdint.h>
#endif

enum {
	SONDE_UNWIND_BLOCK_BYTES =
		1024, /* a multiple of 8: the kernel pads the values of a map to that */
	SONDE_UNWIND_PAGE_BYTES = 65536,
	SONDE_UNWIND_MAX_PAGES = 65536, /* 4 GiB from base_addr */
	SONDE_UNWIND_MAX_RULES = 65535,
	SONDE_UNWIND_VERSION = 1,
	SONDE_UNWIND_BYTE_ORDER = 0x01020304,
	SONDE_UNWIND_MAX_BUILDID_BYTES = 40,
};
#define SONDE_UNWIND_MAGIC 0x444e5755444e4f53ull /* "SONDUWND" in little-endian order */

struct sonde_unwind_header {
	uint64_t magic;
	uint32_t version, byte_order;
	uint64_t base_addr;
	uint32_t image_bytes; /* all of it, a multiple of the block's size */
	uint32_t checksum; /* CRC-32 of the image with this field 0 */
	uint32_t rows_offset, n_rows; /* offsets from the image's start, in bytes */
	uint32_t pages_offset, n_pages; /* n_pages + 1 entries of uint32_t */
	uint32_t rules_offset, n_rules;
	uint16_t machine; /* ELF's e_machine */
	uint8_t fp_reg, sp_reg; /* DWARF's numbers of the machine */
	uint32_t n_buildid_bytes;
	uint8_t buildid[SONDE_UNWIND_MAX_BUILDID_BYTES];
	uint64_t reserved[3];
};

/* How the CFA, the caller's stack pointer, is found. */
enum sonde_unwind_cfa {
	SONDE_UNWIND_CFA_NONE, /* no information: a gap between functions */
	SONDE_UNWIND_CFA_REG, /* reg + cfa_offset */
	SONDE_UNWIND_CFA_LOADED, /* *(reg + cfa_offset) + 8 * add */
	SONDE_UNWIND_CFA_PLT, /* reg + cfa_offset + ((pc & 15) >= add ? 8 : 0) */
	SONDE_UNWIND_CFA_UNSUPPORTED, /* there is information, but cfa_offset says why it is of no use */
	SONDE_UNWIND_N_CFA,
};

/* How the caller's frame pointer or the return address is found. */
enum sonde_unwind_kind {
	SONDE_UNWIND_SAME, /* as it is now: rbp, x29; as return address: in the link register x30 */
	SONDE_UNWIND_CFA_MEMORY, /* saved at CFA + offset */
	SONDE_UNWIND_CFA_VALUE, /* CFA + offset */
	SONDE_UNWIND_REG_MEMORY, /* saved at reg + offset */
	SONDE_UNWIND_REG_VALUE, /* reg + offset */
	SONDE_UNWIND_UNDEFINED, /* of the return address: this frame is the bottom of the stack */
	SONDE_UNWIND_UNKNOWN, /* cannot be told; the return address is never of this kind */
	SONDE_UNWIND_N_KINDS,
};

/* cfa_offset of SONDE_UNWIND_CFA_UNSUPPORTED. */
enum sonde_unwind_unsupported {
	SONDE_UNWIND_EXPRESSION, /* the CFA is a general expression */
	SONDE_UNWIND_RETURN_ADDRESS, /* the return address is */
	SONDE_UNWIND_OFFSET, /* an offset does not fit */
	SONDE_UNWIND_REGISTER, /* a register beyond 31 */
	SONDE_UNWIND_RULES, /* the file has more than SONDE_UNWIND_MAX_RULES different rules */
	SONDE_UNWIND_REFUSED, /* the FDE is damaged */
	SONDE_UNWIND_N_UNSUPPORTED,
};

enum {
	SONDE_UNWIND_SIGNAL_FRAME =
		1, /* the caller's pc was interrupted: look it up as it is, not at pc - 1 */
	SONDE_UNWIND_RA_SIGNED = 2, /* arm64: strip the pointer authentication code */
	SONDE_UNWIND_KEY_B = 4, /* arm64: and it is of key B */
};

/*
 * bits, from the lowest: cfa kind 3, cfa register 5, fp kind 3, fp register 5, ra kind 3, ra register 5, flags 3, add 5
 * (signed). Read it by the functions below.
 */
struct sonde_unwind_rule {
	int32_t cfa_offset, fp_offset, ra_offset;
	uint32_t bits;
};

struct sonde_unwind_row {
	uint16_t offset, rule;
};

/* A row is stored as uint32_t, the offset in the upper half: rows of one page ascend as numbers. */
static inline struct sonde_unwind_row sonde_unwind_row_of(uint32_t stored)
{
	struct sonde_unwind_row row = {(uint16_t)(stored >> 16), (uint16_t)stored};
	return row;
}

static inline uint32_t sonde_unwind_row_store(uint16_t offset, uint16_t rule)
{
	return (uint32_t)offset << 16 | rule;
}

/* Rule 0 is always the gap: all zero. */
static inline uint32_t sonde_unwind_cfa_kind(const struct sonde_unwind_rule *r)
{
	return r->bits & 7;
}

static inline uint32_t sonde_unwind_cfa_reg(const struct sonde_unwind_rule *r)
{
	return r->bits >> 3 & 31;
}

static inline uint32_t sonde_unwind_fp_kind(const struct sonde_unwind_rule *r)
{
	return r->bits >> 8 & 7;
}

static inline uint32_t sonde_unwind_fp_reg(const struct sonde_unwind_rule *r)
{
	return r->bits >> 11 & 31;
}

static inline uint32_t sonde_unwind_ra_kind(const struct sonde_unwind_rule *r)
{
	return r->bits >> 16 & 7;
}

static inline uint32_t sonde_unwind_ra_reg(const struct sonde_unwind_rule *r)
{
	return r->bits >> 19 & 31;
}

static inline uint32_t sonde_unwind_flags(const struct sonde_unwind_rule *r)
{
	return r->bits >> 24 & 7;
}

/* -16 .. 15. */
static inline int32_t sonde_unwind_cfa_add(const struct sonde_unwind_rule *r)
{
	return (int32_t)r->bits >> 27;
}
