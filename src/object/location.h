/*
 * src/object/location.h: where a value lies: DWARF location expressions (DWARF 5 sections 2.5 and 2.6, DWARF 4 and the
 * GNU forms of the same) evaluated over registers and memory that the caller supplies. Nothing here allocates, and
 * hostile expressions end: the stack, the nesting and the number of steps are bounded.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an expression's bytes depend on: the compilation unit that they stand in. See sonde_dwarf_variable.unit. */
struct sonde_location_unit {
	unsigned version; /* of DWARF, 2 to 5 */
	unsigned address_bytes; /* 4 or 8 */
	unsigned offset_bytes; /* 4 or 8: the size of a DW_FORM_ref_addr operand */
	const uint8_t *addresses; /* the unit's part of .debug_addr; borrowed, NULL = none */
	size_t addresses_bytes;
	/* The base type whose DIE lies offset bytes into the unit; NULL = typed operations fail. */
	bool (*base_type)(
		const void *owner, uint64_t offset, uint64_t *size_bytes, unsigned *encoding);
	/* The expression that DW_OP_call2/4 and call_ref name (whole: offset counts from .debug_info). */
	bool (*called)(
		const void *owner, uint64_t offset, bool whole, const uint8_t **expr, size_t *len);
	const void *owner; /* borrowed */
};

/* A frame as an expression sees it. All zero answers nothing; expressions that ask then have no result. */
struct sonde_location_context {
	/* The value of a DWARF register in this frame; false = not known. */
	bool (*reg)(void *ctx, unsigned dwarf_reg, uint64_t *value);
	/* len bytes of the target at addr (bias included); false = not readable. */
	bool (*memory)(void *ctx, uint64_t addr, void *to, size_t len);
	/* The address of a thread-local variable at this offset in the module's block. */
	bool (*tls)(void *ctx, uint64_t offset, uint64_t *addr);
	void *ctx; /* borrowed */
	const struct sonde_location_unit
		*unit; /* borrowed; NULL = version 5, 8-byte addresses, no tables */
	bool has_cfa;
	uint64_t cfa;
	const uint8_t
		*frame_base; /* DW_AT_frame_base of the function at pc; borrowed, NULL = none */
	size_t frame_base_len;
	uint64_t bias; /* added to DW_OP_addr and addrx: run-time minus file address */
	bool has_object;
	uint64_t object; /* for DW_OP_push_object_address */
};

enum sonde_location_kind {
	SONDE_LOCATION_ADDR, /* in memory at `value` */
	SONDE_LOCATION_REG, /* in register `reg`, from its byte `offset_bytes` on */
	SONDE_LOCATION_VALUE, /* no place; the value itself, low bytes first */
	SONDE_LOCATION_BYTES, /* no place; `bytes`, `n_bytes` of them */
	SONDE_LOCATION_ABSENT, /* optimised out, or not known: `why` */
};

struct sonde_location_piece {
	enum sonde_location_kind kind;
	unsigned reg;
	uint64_t offset_bytes; /* of this piece in the whole value */
	uint64_t size_bytes; /* 0 = the whole value, whatever its size */
	uint64_t value; /* ADDR: the address (bias included); VALUE: the value */
	uint64_t skip_bytes; /* into the register, the value or the bytes (DW_OP_bit_piece) */
	const uint8_t *bytes; /* BYTES; borrowed from the expression */
	uint64_t n_bytes;
	const char *
		why; /* ABSENT: a constant text: "optimised out", "entry value", "register 3 ..." */
};

/*
 * Evaluate. On success *n pieces stand in pieces[], at most max; an empty expression yields one ABSENT "optimised out".
 * What is merely not known (a register, an entry value, an unreadable word) is an ABSENT piece with its reason. NULL on
 * success, else a constant text that says what is wrong with the bytes; *n is then 0. A hot leaf: never allocates.
 */
const char *sonde_location_evaluate(const uint8_t *expr, size_t len,
	const struct sonde_location_context *context, struct sonde_location_piece *pieces,
	size_t max, size_t *n);

/* Only DW_OP_addr, addrx or constx and perhaps a plus_uconst: a static address, file address without bias. */
bool sonde_location_static(
	const uint8_t *expr, size_t len, const struct sonde_location_unit *unit, uint64_t *addr);

/*
 * Gather a value of len bytes from its pieces into to. Bytes of absent or unreadable pieces are zero, and *why names the
 * first of them (NULL = all bytes known). Returns the number of bytes known.
 */
uint64_t sonde_location_read(const struct sonde_location_piece *pieces, size_t n,
	const struct sonde_location_context *context, void *to, uint64_t len, const char **why);
