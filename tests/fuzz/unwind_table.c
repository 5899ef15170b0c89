/*
 * Images of unwind tables. Opened as they are, looked into at addresses that the image itself holds, and once more after
 * its bytes were changed behind the table's back.
 */
#include <stdlib.h>
#include <string.h>
#include "unwind/lookup.h"
#include "unwind/table.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_up(const struct sonde_unwind_table *t, uint64_t addr)
{
	struct sonde_unwind_rule r;
	struct sonde_unwind_entry e;
	bool found = sonde_unwind_table_rule(t, addr, &r);
	if (!sonde_unwind_table_find(t, addr, &e))
		return;
	if (found && memcmp(&r, &e.rule, sizeof(r)) != 0)
		abort();
}

static void use(const struct sonde_unwind_table *t)
{
	struct sonde_unwind_cursor c = {.table = t};
	struct sonde_unwind_entry e;
	uint64_t base = t->header.base_addr;
	for (unsigned n = 0; n < 512 && sonde_unwind_table_next(&c, &e); n++) {
		look_up(t, e.start);
		look_up(t, e.start - 1);
		look_up(t, e.end);
	}
	for (unsigned page = 0; page < 64; page++)
		look_up(t, base + page * UINT64_C(0x10000) + page);
	look_up(t, 0);
	look_up(t, UINT64_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sonde_unwind_table *t;
	uint8_t *image = aligned_alloc(8, (size + 7) & ~(size_t)7);
	if (!image && size)
		return 0;
	memcpy(image, data, size);
	struct sonde_error *err = sonde_unwind_table_open(image, size, &t);
	if (!err) {
		use(t);
		err = sonde_unwind_table_check(t);
		/* Half of the bytes move: look-ups trust nothing that was checked. */
		for (size_t i = size / 2; i < size; i++)
			image[i] = (uint8_t)(image[i] * 31 + i);
		use(t);
		for (size_t i = 0; i < size / 2; i++)
			image[i] ^= (uint8_t)(image[size - 1 - i] >> 3);
		use(t);
		sonde_unwind_table_free(t);
	}
	sonde_error_free(err);
	free(image);
	return 0;
}
