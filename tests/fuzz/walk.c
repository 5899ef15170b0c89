/*
 * The stack walker over a composed target: code, a mapped file whose header and .eh_frame are in memory, a stack, all of
 * them random. Layout of the input: one byte of flags (bit 0: arm64, bit 1: no table), 34 words of registers (pc, sp, fp
 * first), one byte that says how many 16-byte units of call-frame instructions follow, those, and the stack.
 */
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/cursor.h"
#include "target/ops.h"
#include "walk/walker.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum {
	FILE_ADDR = 0x400000,
	FILE_BYTES = 0x3000,
	CODE_OFFSET = 0x1000,
	CFI_OFFSET = 0x2000,
	STACK_ADDR = 0x7fff0000,
	N_FUNCTIONS = 8,
	FUNCTION_BYTES = 64,
	MAX_FRAMES = 1 << 16, /* walker.h */
};

static void put(uint8_t *file, size_t at, uint64_t v, unsigned n)
{
	memcpy(file + at, &v, n);
}

static void write_header(uint8_t *file, uint16_t machine)
{
	static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	memcpy(file, ident, sizeof(ident));
	put(file, 16, ET_DYN, 2);
	put(file, 18, machine, 2);
	put(file, 20, 1, 4);
	put(file, 32, 64, 8); /* e_phoff */
	put(file, 52, 64, 2);
	put(file, 54, 56, 2);
	put(file, 56, 3, 2);
	const struct {
		uint32_t type, flags;
		uint64_t offset, len;
	} segments[] = {
		{PT_LOAD, PF_R, 0, CODE_OFFSET},
		{PT_LOAD, PF_R | PF_X, CODE_OFFSET, FILE_BYTES - CODE_OFFSET},
		{PT_GNU_EH_FRAME, PF_R, CFI_OFFSET, 8},
	};
	for (size_t i = 0; i < 3; i++) {
		size_t at = 64 + 56 * i;
		put(file, at, segments[i].type, 4);
		put(file, at + 4, segments[i].flags, 4);
		put(file, at + 8, segments[i].offset, 8);
		put(file, at + 16, segments[i].offset, 8);
		put(file, at + 24, segments[i].offset, 8);
		put(file, at + 32, segments[i].len, 8);
		put(file, at + 40, segments[i].len, 8);
		put(file, at + 48, 4096, 8);
	}
}

/* A CIE and one FDE a function, whose instructions are parts of the input; every other CIE is of signal frames. */
static void write_cfi(uint8_t *file, uint16_t machine, const uint8_t *insns, size_t n_units)
{
	size_t at = CFI_OFFSET;
	static const uint8_t header[] = {1, 0x1b, 0xff, 0xff};
	memcpy(file + at, header, sizeof(header));
	put(file, at + 4, 4, 4); /* .eh_frame starts 4 bytes behind this field */
	at += 8;
	size_t cies[2];
	for (unsigned i = 0; i < 2; i++) {
		cies[i] = at;
		put(file, at, 28, 4);
		put(file, at + 4, 0, 4);
		memcpy(file + at + 8, i ? "\1zRS\0\1\x78\x10\1\x1b" : "\1zR\0\1\x78\x10\1\x1b",
			i ? 10 : 9);
		size_t p = at + (i ? 18 : 17);
		if (machine == EM_AARCH64)
			file[p - 3] = 30;
		const uint8_t cfa[] = {0x0c, machine == EM_AARCH64 ? 31 : 7,
			machine == EM_AARCH64 ? 0 : 8, 0x90, 1};
		memcpy(file + p, cfa, machine == EM_AARCH64 ? 3 : 5);
		at += 32;
	}
	for (size_t i = 0; i < N_FUNCTIONS; i++) {
		size_t n = i < n_units ? 16 : 0;
		put(file, at, 4 + 9 + n, 4);
		put(file, at + 4, at + 4 - cies[i & 1], 4);
		put(file, at + 8, (uint64_t)(CODE_OFFSET + i * FUNCTION_BYTES) - (at + 8), 4);
		put(file, at + 12, FUNCTION_BYTES, 4);
		file[at + 16] = 0;
		if (n)
			memcpy(file + at + 17, insns + 16 * i, n);
		at += 17 + n;
	}
	put(file, at, 0, 4);
}

static void write_code(uint8_t *file, uint16_t machine)
{
	static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	static const uint8_t trampoline_arm64[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
	for (size_t i = 0; i < FILE_BYTES - CODE_OFFSET - 0x1000; i++)
		file[CODE_OFFSET + i] = i % 8 ? 0x90 : 0xe8;
	if (machine == EM_AARCH64)
		memcpy(file + CODE_OFFSET + 0x200, trampoline_arm64, sizeof(trampoline_arm64));
	else
		memcpy(file + CODE_OFFSET + 0x200, trampoline, sizeof(trampoline));
	static const uint8_t frame[] = {0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x5d, 0xc3};
	memcpy(file + CODE_OFFSET + 0x300, frame, sizeof(frame));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sonde_cursor c = sonde_cursor_over(data, size);
	uint8_t flags = sonde_cursor_u8(&c);
	uint16_t machine = flags & 1 ? EM_AARCH64 : EM_X86_64;
	struct sonde_regs regs = {.machine = machine};
	const struct sonde_machine *m = sonde_machine_find(machine);
	const uint8_t order[] = {m->pc, m->sp, m->fp};
	for (unsigned i = 0; i < 3; i++)
		sonde_regs_set(&regs, order[i], sonde_cursor_u64(&c));
	for (unsigned i = 0; i < m->n_regs; i++) {
		uint64_t v = sonde_cursor_u64(&c);
		if (!sonde_regs_has(&regs, i))
			sonde_regs_set(&regs, i, v);
	}
	size_t n_units = sonde_cursor_u8(&c) % (N_FUNCTIONS + 1);
	if (c.bad || sonde_cursor_left(&c) < 16 * n_units)
		return 0;
	const uint8_t *insns = data + size - sonde_cursor_left(&c);
	const uint8_t *stack = insns + 16 * n_units;
	size_t stack_bytes = sonde_cursor_left(&c) - 16 * n_units;
	/* Exactly as long as it is, for AddressSanitizer. */
	uint8_t *file = calloc(1, FILE_BYTES), *own = malloc(stack_bytes ? stack_bytes : 1);
	if (!file || !own)
		abort();
	memcpy(own, stack, stack_bytes);
	write_header(file, machine);
	write_code(file, machine);
	if (!(flags & 2))
		write_cfi(file, machine, insns, n_units);
	const struct sonde_target_run runs[] = {
		{FILE_ADDR, CODE_OFFSET, file},
		{FILE_ADDR + CODE_OFFSET, FILE_BYTES - CODE_OFFSET, file + CODE_OFFSET},
		{STACK_ADDR, stack_bytes, own},
	};
	struct sonde_target *t = sonde_target_over_runs(runs, stack_bytes ? 3 : 2, machine, 8);
	if (!t)
		abort();
	for (unsigned i = 0; i < 2; i++) {
		t->mappings[i].path = "[composed]";
		t->mappings[i].file_offset = i * CODE_OFFSET;
		t->mappings[i].perm = i ? SONDE_PERM_R | SONDE_PERM_X : SONDE_PERM_R;
	}
	struct sonde_walk_modules *modules = NULL;
	struct sonde_arena arena;
	struct sonde_walk_frames frames = {0};
	const char *why;
	sonde_arena_init(&arena);
	if (sonde_walk_modules_open(t, NULL, NULL, &modules) != NULL)
		abort();
	if (sonde_walk(modules, &regs, &arena, &frames, &why) != NULL)
		abort();
	if (frames.n == 0 || frames.n > MAX_FRAMES)
		abort();
	/* Every step but those of signals, and the innermost one, moves up the stack. */
	for (size_t i = 2; i < frames.n; i++)
		if (frames.items[i].how != SONDE_WALK_SIGNAL &&
			frames.items[i].sp <= frames.items[i - 1].sp)
			abort();
	sonde_walk_frames_deinit(&frames);
	sonde_walk_modules_free(modules);
	sonde_arena_deinit(&arena);
	sonde_target_free(t);
	free(file);
	free(own);
	return 0;
}
