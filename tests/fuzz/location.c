/*
 * Location expressions. The first byte chooses the frame (bits: registers, memory, CFA, frame base, 4-byte addresses,
 * base types), the second the length of a frame base that stands in front of the expression.
 */
#include <stdlib.h>
#include <string.h>
#include "base/mem.h"
#include "object/location.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool reg(void *ctx, unsigned dwarf_reg, uint64_t *value)
{
	*value = dwarf_reg * 0x1111111111111111u;
	return dwarf_reg % 3;
}

static bool memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	memset(to, (int)addr, len);
	return addr & 1;
}

static bool base_type(const void *owner, uint64_t offset, uint64_t *size_bytes, unsigned *encoding)
{
	*size_bytes = offset & 31;
	*encoding = (unsigned)(offset >> 5);
	return offset < 1024;
}

struct calls {
	const uint8_t *expr;
	size_t len;
};

static bool called(
	const void *owner, uint64_t offset, bool whole, const uint8_t **expr, size_t *len)
{
	const struct calls *calls = owner;
	*expr = calls->expr;
	*len = calls->len;
	return offset & 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	unsigned flags = data[0];
	size_t base_len = sonde_min((size_t)data[1], size - 2);
	struct calls calls = {.expr = data + 2, .len = base_len};
	struct sonde_location_unit unit = {
		.version = 2 + (flags >> 6),
		.address_bytes = flags & 16 ? 4 : 8,
		.offset_bytes = 4,
		.addresses = data,
		.addresses_bytes = size,
		.base_type = flags & 32 ? base_type : NULL,
		.called = called,
		.owner = &calls,
	};
	struct sonde_location_context context = {
		.reg = flags & 1 ? reg : NULL,
		.memory = flags & 2 ? memory : NULL,
		.unit = &unit,
		.has_cfa = flags & 4,
		.cfa = 0x7fff0000,
		.frame_base = flags & 8 ? data + 2 : NULL,
		.frame_base_len = base_len,
	};
	struct sonde_location_piece pieces[4];
	size_t n;
	uint64_t addr;
	const uint8_t *expr = data + 2 + base_len;
	size_t len = size - 2 - base_len;
	if (!sonde_location_evaluate(expr, len, &context, pieces, SONDE_ARRAY_LEN(pieces), &n)) {
		uint8_t value[64];
		const char *why;
		if (sonde_location_read(pieces, n, &context, value, sizeof(value), &why) >
				sizeof(value) ||
			!n)
			abort();
	} else if (n) {
		abort();
	}
	(void)sonde_location_static(expr, len, &unit, &addr);
	return 0;
}
