/*
 * Call-frame information. The first byte chooses (bits: .debug_frame, ends at the terminator, second copy as
 * .debug_frame, arm64, code ranges, an ELF file), the second the section's address; then the section, or the file. What comes out must be in
 * order, and a table built of it must say the same at every row.
 */
#include <stdlib.h>
#include <string.h>
#include "object/cfi.h"
#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_word(const void *ctx, uint64_t addr, uint64_t *ret)
{
	*ret = addr * 0x10001;
	return addr & 1;
}

static void require(bool condition)
{
	if (!condition)
		abort();
}

/* The row's place must be found in the table, with as much as both forms hold. */
static void compare(const struct sonde_unwind_table *t, const struct sonde_cfi_fde *fde,
	const struct sonde_cfi_row *row)
{
	struct sonde_unwind_rule r;
	const uint64_t reach = UINT64_C(1) << 32;
	uint64_t start = fde->start - t->header.base_addr;
	if (fde->start < t->header.base_addr || start >= reach || fde->n_bytes > reach - start)
		return; /* left out */
	require(sonde_unwind_table_rule(t, row->start, &r));
	unsigned kind = sonde_unwind_cfa_kind(&r);
	/* The bottom of the stack has a CFA of the table's choice where its own cannot be held. */
	if (kind == SONDE_UNWIND_CFA_REG && row->cfa.kind == SONDE_CFI_REG_VALUE &&
		row->ra.kind != SONDE_CFI_UNDEFINED)
		require(r.cfa_offset == row->cfa.offset &&
			sonde_unwind_cfa_reg(&r) == row->cfa.reg);
	if (kind != SONDE_UNWIND_CFA_UNSUPPORTED)
		require((row->ra.kind == SONDE_CFI_UNDEFINED) ==
			(sonde_unwind_ra_kind(&r) == SONDE_UNWIND_UNDEFINED));
}

static void walk(const struct sonde_cfi *cfi, const struct sonde_unwind_table *t)
{
	static struct sonde_cfi_rows rows; /* large */
	for (size_t i = 0; i < cfi->n_fdes; i++) {
		const struct sonde_cfi_fde *fde = &cfi->fdes[i];
		struct sonde_cfi_row row, last;
		require(fde->n_bytes && (!i || fde->start - fde[-1].start >= fde[-1].n_bytes));
		require(sonde_cfi_find(cfi, fde->start) == fde);
		bool damaged = false;
		for (int pass = 0; pass < 2; pass++) {
			uint64_t n = 0;
			sonde_cfi_rows_start(&rows, cfi, fde);
			for (; sonde_cfi_rows_next(&rows, &row); n++) {
				require(row.start - fde->start < fde->n_bytes);
				require(!n || row.start > last.start);
				last = row;
				if (pass && !damaged && n < 64)
					compare(t, fde, &row);
			}
			damaged = rows.refused;
			require(damaged || n);
		}
	}
}

static void use(const struct sonde_cfi *cfi, uint64_t base)
{
	struct sonde_unwind_table *t;
	if (sonde_unwind_table_build(cfi, base, NULL, &t) || sonde_unwind_table_check(t))
		abort();
	walk(cfi, t);
	sonde_unwind_table_free(t);
}

static void use_elf(const uint8_t *data, size_t size)
{
	struct sonde_elf *elf;
	struct sonde_cfi *cfi;
	struct sonde_error *err = sonde_elf_open_bytes(data, size, "file", &elf);
	if (!err) {
		err = sonde_cfi_open(elf, elf, &cfi);
		if (!err) {
			use(cfi, sonde_unwind_base_of_elf(elf));
			sonde_cfi_free(cfi);
		}
		sonde_elf_free(elf);
	}
	sonde_error_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	unsigned flags = data[0];
	if (flags & 32) {
		use_elf(data + 2, size - 2);
		return 0;
	}
	struct sonde_cfi_space space = {.machine = flags & 8 ? EM_AARCH64 : EM_X86_64,
		.text_addr = 0x1000,
		.data_addr = 0x2000,
		.read_word = read_word,
		.code = {{0x1000, 0x11000}, {0x21000, UINT64_C(1) << 34}},
		.n_code = flags & 16 ? 2 : 0};
	struct sonde_cfi_section sections[2] = {{.data = data + 2,
		.len = size - 2,
		.addr = data[1] * UINT64_C(0x1001),
		.debug_frame = flags & 1,
		.ends_at_zero = flags & 2}};
	sections[1] = sections[0];
	sections[1].debug_frame = true;
	struct sonde_cfi *cfi;
	if (sonde_cfi_open_sections(sections, flags & 4 ? 2 : 1, &space, &cfi))
		abort();
	use(cfi, cfi->n_fdes ? cfi->fdes[0].start & ~UINT64_C(4095) : 0);
	sonde_cfi_free(cfi);
	return 0;
}
