/*
 * Pointer masks: the input as a GC program, and as a program's memory whose type descriptors lead to masks, programs and
 * the parts of composed types. Input: {u16 n_bits, u8 form, bytes}.
 */
#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "golang/ptrmask.h"

enum { BASE = 0x10000, MAX_TYPES = 16 };

static volatile uint64_t sink;

static void run_program(const uint8_t *data, size_t size, uint64_t n_bits)
{
	uint64_t n_words = (n_bits + 63) / 64;
	uint64_t *bits = calloc(n_words ? n_words : 1, 8);
	if (!bits)
		abort();
	sonde_go_gc_program_run(data, size, bits, n_bits);
	for (uint64_t i = 0; i < n_words; i++)
		sink += bits[i];
	if (n_bits % 64 && bits[n_words - 1] >> n_bits % 64)
		abort();
	free(bits);
}

/* internal/abi.Type of Go 1.22 to 1.27, 64 bits; the flags of both ways to say that a mask is no plain mask. */
static void make_masks(const uint8_t *data, size_t size, bool on_demand)
{
	struct sonde_target_run run = {BASE, size, data};
	struct sonde_target *target = sonde_target_over_runs(&run, 1, EM_X86_64, 8);
	if (!target)
		abort();
	struct sonde_go go = {.target = target, .word_bytes = 8};
	go.layout.sizeof_type = 48;
	go.layout.type_size = (struct sonde_go_field){0, 8};
	go.layout.type_ptr_bytes = (struct sonde_go_field){8, 8};
	go.layout.type_tflag = (struct sonde_go_field){20, 1};
	go.layout.type_kind = (struct sonde_go_field){23, 1};
	go.layout.type_gcdata = (struct sonde_go_field){32, 8};
	go.layout.kind_gc_prog = on_demand ? 0 : 64;
	go.layout.tflag_gc_mask_on_demand = on_demand ? 16 : 0;
	go.mask_in_progress = BASE + 8;
	struct sonde_go_masks masks;
	sonde_go_masks_init(&masks, &go);
	for (uint64_t i = 0; i < MAX_TYPES; i++) {
		const struct sonde_go_mask *m = sonde_go_masks_find(&masks, BASE + i * 8, 1 << 22);
		if (!m)
			continue;
		if (m->ptr_bytes > m->size_bytes)
			abort();
		for (uint64_t k = 0; k < (m->ptr_bytes / 8 + 63) / 64; k++)
			sink += m->bits[k];
	}
	sonde_go_masks_deinit(&masks);
	sonde_target_free(target);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t n_bits;
	if (size < 3)
		return 0;
	memcpy(&n_bits, data, 2);
	if (data[2] & 1)
		make_masks(data + 3, size - 3, data[2] & 2);
	else
		run_program(data + 3, size - 3, n_bits);
	return 0;
}
