/*
 * src/golang/goroutine.h: all goroutines: id, state, why it waits, who made it, the thread it runs on, its frames. A
 * stack that cannot be followed to its end says why; nothing else suffers.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/vec.h"
#include "golang/runtime.h"

enum sonde_go_frame_flags {
	SONDE_GO_FRAME_EXACT = 1, /* pc is the instruction itself, no return address */
	SONDE_GO_FRAME_CONSERVATIVE =
		2, /* no pointer map is valid at pc: any word may be a pointer */
	SONDE_GO_FRAME_SYSTEM_STACK = 4, /* on the thread's g0 or signal stack: holds no roots */
	SONDE_GO_FRAME_SIGNALLED =
		8, /* a signal interrupted it: what stands above is the handler */
	SONDE_GO_FRAME_TRAPPED = 16, /* called runtime.sigpanic without meaning to */
};

/* One physical frame of Go code. Several calls may be inlined into it: sonde_go_frame_calls(). */
struct sonde_go_frame {
	uint64_t pc, sp;
	uint64_t fp; /* the caller's stack pointer at the call (Go's frame.fp, DWARF's CFA) */
	uint64_t varp; /* end of the locals */
	uint64_t argp; /* arguments in memory */
	uint32_t function; /* index in the module's table */
	uint16_t module;
	uint16_t flags;
};
SONDE_DEFINE_VEC(sonde_go_frames, struct sonde_go_frame)

struct sonde_go_label {
	const char *key, *value;
};

/* Code that is no Go code in the middle of a stack: its frames are not among the goroutine's. */
struct sonde_go_gap {
	const char *text; /* "[C code at 0x4942e4 in exe]"; NULL = none */
	size_t before; /* the frame that it was called from, counted from the goroutine's first */
};

struct sonde_goroutine {
	uint64_t addr; /* of its runtime.g */
	uint64_t id;
	uint32_t status; /* the runtime's number, scan bit cleared */
	const char *state; /* "waiting", "running": the runtime's words */
	const char *wait_reason; /* "chan receive"; NULL where it does not wait */
	bool scanned; /* the scan bit: a collector held it */
	bool system; /* one of the runtime's own */
	bool locked; /* to a thread */
	int64_t wait_since; /* runtime clock, ns; 0 = not set (only the collector sets it) */
	uint64_t created_by_pc, start_pc;
	uint64_t parent_id; /* 0 = unknown */
	uint64_t m; /* runtime.m that it is on; 0 = none */
	int64_t m_id; /* -1 = none */
	int32_t thread; /* index in the target's threads; -1 = none */
	uint64_t stack_low, stack_high;
	const struct sonde_go_label *labels;
	size_t n_labels;
	size_t first_frame, n_frames; /* innermost first, in sonde_goroutines.frames */
	const char *cut; /* why the frames end early; NULL = they are all there */
	struct sonde_go_gap gap;
	uint64_t locked_m; /* the m that is its alone; 0 = none */
	uint64_t
		foreign_hash; /* of its frames in other languages, where somebody looked for them; else 0 */
	struct sonde_regs
		regs; /* of its interrupted frame, where one has registers; known 0 = none */
};
SONDE_DEFINE_VEC(sonde_goroutine_vec, struct sonde_goroutine)

struct sonde_goroutines {
	struct sonde_go *go; /* borrowed */
	struct sonde_arena arena;
	struct sonde_goroutine_vec all; /* in the runtime's order; dead ones are left out */
	struct sonde_go_frames frames;
	uint64_t n_dead; /* free records kept by the runtime */
};

struct sonde_error *sonde_goroutines_open(
	struct sonde_go *go, struct sonde_goroutines **ret) SONDE_CHECK;
void sonde_goroutines_free(struct sonde_goroutines *gs);
SONDE_DEFINE_CLEANUP(sonde_goroutines)

/* Its frames, n_frames of them, innermost first; NULL where no goroutine has any. */
static inline const struct sonde_go_frame *sonde_goroutine_frames(
	const struct sonde_goroutines *gs, const struct sonde_goroutine *g)
{
	return gs->frames.items ? gs->frames.items + g->first_frame : NULL;
}

/* The calls of a frame, innermost first; at most max; returns how many there are. */
size_t sonde_go_frame_calls(const struct sonde_go *go, const struct sonde_go_frame *f,
	struct sonde_pccall *calls, size_t max);

/* The function table row of a frame. */
bool sonde_go_frame_function(
	const struct sonde_go *go, const struct sonde_go_frame *f, struct sonde_pcfunc *ret);

/* The pc to look lines and variables up by: the instruction that was executing. */
static inline uint64_t sonde_go_frame_lookup_pc(const struct sonde_go_frame *f)
{
	return f->flags & SONDE_GO_FRAME_EXACT ? f->pc : f->pc - 1;
}
