/* src/object/cfi_internal.h: what the files of object/cfi share. */
#pragma once
#include "base/cursor.h"
#include "object/cfi.h"

/* DW_EH_PE_*: LSB 5.0 section 10.5.1. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SIGNED = 0x08,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_TEXTREL = 0x20,
	PE_DATAREL = 0x30,
	PE_FUNCREL = 0x40,
	PE_ALIGNED = 0x50,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

struct sonde_cfi_cie {
	uint32_t offset; /* of the record in its section */
	uint8_t section, reason; /* reason: enum sonde_cfi_reason, why it is not used */
	uint8_t encoding, lsda_encoding; /* of addresses in its FDEs */
	uint8_t addr_bytes;
	bool long_id, augmented, has_lsda, signal_frame, key_b;
	uint16_t ra_reg;
	uint64_t code_align;
	int64_t data_align;
	struct sonde_cfi_state initial;
};

/*
 * A pointer at the cursor, which stands over all of the section. func is the function that it is in, for
 * DW_EH_PE_funcrel. false: damaged, or an encoding that makes no sense.
 */
bool sonde_cfi_read_pointer(const struct sonde_cfi *cfi, const struct sonde_cfi_section *section,
	struct sonde_cursor *c, uint8_t encoding, uint8_t addr_bytes, uint64_t func, uint64_t *ret);

/* Execute a CIE's instructions into its initial state. */
enum sonde_cfi_reason sonde_cfi_run_cie(const struct sonde_cfi *cfi, struct sonde_cfi_cie *cie,
	const uint8_t *p, const uint8_t *end);

/* What the expression makes, as far as sonde_cfi_value can hold it. */
enum sonde_cfi_use { SONDE_CFI_FOR_CFA, SONDE_CFI_FOR_ADDRESS, SONDE_CFI_FOR_VALUE };
struct sonde_cfi_value sonde_cfi_expression(
	uint16_t machine, const uint8_t *p, size_t len, enum sonde_cfi_use use);
