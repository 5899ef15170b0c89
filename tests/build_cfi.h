/*
 * tests/build_cfi.h: call-frame information made of bytes in the test. A zero field of struct build_cie is what compilers
 * write. Instructions are given as string literals: BUILD_BYTES("\x41\x0e\x10").
 */
#pragma once
#include "build.h"
#include "object/cfi.h"

#define BUILD_BYTES(literal) (literal), sizeof(literal) - 1

struct build_cie {
	bool debug_frame, long_form,
		short_id; /* short_id: of the 64-bit form with an id of 4 bytes */
	uint8_t version; /* 0: 1 */
	const char *augmentation; /* NULL: "" */
	const void *data; /* of the augmentation, behind its length where there is a z */
	size_t data_len;
	uint8_t addr_bytes, selector_bytes; /* of version 4 */
	uint8_t code_align, ra; /* 0: 1, 16; data_align is -8 */
	const void *insns; /* NULL: CFA is rsp+8, return address at c-8 */
	size_t n_insns;
};

/* A length, then the body; returns the record's offset. */
BUILD_UNUSED static size_t build_record(
	struct sonde_buf *b, bool long_form, const struct sonde_buf *body)
{
	size_t at = b->len;
	if (long_form)
		build_u32(b, UINT32_MAX);
	build_number(b, body->len, long_form ? 8 : 4, false);
	sonde_buf_add(b, body->data, body->len);
	return at;
}

BUILD_UNUSED static size_t build_cie(struct sonde_buf *b, const struct build_cie *c)
{
	struct sonde_buf r = {0};
	build_number(
		&r, c->debug_frame ? UINT64_MAX : 0, c->long_form && !c->short_id ? 8 : 4, false);
	uint8_t version = c->version ? c->version : 1;
	build_u8(&r, version);
	const char *augmentation = c->augmentation ? c->augmentation : "";
	sonde_buf_add(&r, augmentation, strlen(augmentation) + 1);
	if (version == 4) {
		build_u8(&r, c->addr_bytes);
		build_u8(&r, c->selector_bytes);
	}
	if (!strncmp(augmentation, "eh", 2))
		build_u64(&r, 0x1234);
	build_u8(&r, c->code_align ? c->code_align : 1);
	build_u8(&r, 0x78);
	build_u8(&r, c->ra ? c->ra : 16);
	if (*augmentation == 'z')
		build_u8(&r, (uint8_t)c->data_len);
	sonde_buf_add(&r, c->data, c->data_len);
	if (c->insns)
		sonde_buf_add(&r, c->insns, c->n_insns);
	else
		sonde_buf_add(&r, "\x0c\x07\x08\x90\x01", 5);
	size_t at = build_record(b, c->long_form, &r);
	sonde_buf_deinit(&r);
	return at;
}

/* The id that an FDE of the CIE at cie has where its record starts here. */
BUILD_UNUSED static void build_fde_id(
	struct sonde_buf *body, const struct sonde_buf *b, const struct build_cie *c, size_t cie)
{
	uint64_t id = c->debug_frame ? cie : b->len + (c->long_form ? 12 : 4) - cie;
	build_number(body, id, c->long_form && !c->short_id ? 8 : 4, false);
}

/* An FDE with addresses as they are (DW_EH_PE_absptr). */
BUILD_UNUSED static size_t build_fde(struct sonde_buf *b, const struct build_cie *c, size_t cie,
	uint64_t start, uint64_t len, const void *insns, size_t n_insns)
{
	struct sonde_buf r = {0};
	unsigned w = c->version == 4 ? c->addr_bytes : 8;
	build_fde_id(&r, b, c, cie);
	build_number(&r, start, w, false);
	build_number(&r, len, w, false);
	if (c->augmentation && *c->augmentation == 'z')
		build_u8(&r, 0);
	sonde_buf_add(&r, insns, n_insns);
	size_t at = build_record(b, c->long_form, &r);
	sonde_buf_deinit(&r);
	return at;
}
