/* src/golang/framevars.h: where the variables of a Go frame lie, by DWARF. Bound to the thread of the sonde_dwarf. */
#pragma once
#include "golang/goroutine.h"
#include "object/location.h"

enum { SONDE_GO_MAX_PIECES = 64 };

/* A frame as an expression sees it. The caller's storage; stays where it is while in use. */
struct sonde_go_frame_view {
	const struct sonde_go *go;
	const struct sonde_go_frame *frame;
	const struct sonde_regs
		*regs; /* of an interrupted frame; NULL = only the stack pointer is known */
	struct sonde_location_context context;
};

/* A view of a goroutine's frame. */
void sonde_go_frame_view_init(struct sonde_go_frame_view *v, const struct sonde_go *go,
	const struct sonde_goroutine *g, const struct sonde_go_frame *frame);

/* The variables at the frame's pc, appended. */
struct sonde_error *sonde_go_frame_variables(const struct sonde_go *go,
	const struct sonde_go_frame *frame, struct sonde_dwarf_variables *to) SONDE_CHECK;

/* Where a variable of that list lies. NULL on success, else what is wrong with its expression; *n may be 0. */
const char *sonde_go_frame_locate(struct sonde_go_frame_view *v,
	const struct sonde_dwarf_variable *variable,
	struct sonde_location_piece pieces[SONDE_GO_MAX_PIECES], size_t *n);
