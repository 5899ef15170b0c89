/*
 * src/golang/stack.h: from a goroutine's saved or live registers to its frames, by the function table's pc-value
 * tables, as runtime/traceback.go does it; and further than it: out of signal handlers and the system stack.
 */
#pragma once
#include "golang/goroutine.h"

struct sonde_go_stack_ctx {
	const struct sonde_go *go;
	uint64_t g; /* the goroutine */
	uint64_t stack_low, stack_high;
	uint64_t m; /* 0 = none */
	const struct sonde_regs *regs; /* of its thread; NULL = use the saved state */
	uint32_t status;
};

/*
 * Append the frames of one goroutine, innermost first. *cut gets the reason why they end early (text in arena, NULL =
 * complete), *gap what it stepped over; *interrupted the registers of the frame that has any (->known 0 = none). Never fails but for memory.
 */
struct sonde_error *sonde_go_stack_walk(const struct sonde_go_stack_ctx *ctx,
	struct sonde_arena *arena, struct sonde_go_frames *to, const char **cut,
	struct sonde_go_gap *gap, struct sonde_regs *interrupted) SONDE_CHECK;
