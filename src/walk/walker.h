/*
 * src/walk/walker.h: the native stack of a thread: from registers to frames by unwind tables, by frame pointers where
 * code has no table, out of signal handlers by what the kernel saved. Every frame says how it was found, and a walk that
 * ends early says why. One thread at a time.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "base/vec.h"
#include "target/regs.h"
#include "walk/modules.h"

enum sonde_walk_how {
	SONDE_WALK_START, /* the registers given */
	SONDE_WALK_TABLE, /* by the callee's unwind table */
	SONDE_WALK_FRAME_POINTER, /* the callee has none: by its frame pointer; a frame may be missing */
	SONDE_WALK_INSTRUCTION, /* the callee has no table and was at its first instruction, or at ret */
	SONDE_WALK_SIGNAL, /* interrupted by a signal, whose handler is the frame before */
	SONDE_WALK_BAD_CALL, /* it called an address that is no code */
	SONDE_WALK_RUNTIME, /* not walked here: the runtime of its language knows of it */
};

struct sonde_walk_frame {
	uint64_t pc, sp; /* sp at pc */
	uint64_t fp; /* frame pointer at pc; 0 where unknown */
	uint8_t how;
	bool has_fp;
	bool trampoline; /* the kernel's return from a signal handler: what comes next was interrupted */
	bool exact; /* pc is the instruction itself, no return address: look up pc, else pc - 1 */
	uint32_t module; /* index in modules->all; UINT32_MAX = none */
};
SONDE_DEFINE_VEC(sonde_walk_frames, struct sonde_walk_frame)

static inline uint64_t sonde_walk_frame_lookup_pc(const struct sonde_walk_frame *f)
{
	return f->exact ? f->pc : f->pc - 1;
}

/*
 * Append the frames that begin at regs, innermost first; at most 65,536. *why gets the reason of an early end, a text in
 * arena, NULL where the stack was followed to its bottom. Fails only for want of memory.
 */
struct sonde_error *sonde_walk(struct sonde_walk_modules *modules, const struct sonde_regs *regs,
	struct sonde_arena *arena, struct sonde_walk_frames *to, const char **why) SONDE_CHECK;

/* "table", "frame pointer": a constant. */
const char *sonde_walk_how_name(enum sonde_walk_how how);
