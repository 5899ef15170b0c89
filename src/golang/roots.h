/*
 * src/golang/roots.h: every word outside the heap that keeps an object: package variables by the modules' masks,
 * goroutine stacks by the frames' pointer maps (argument, local and stack-object maps; word by word where no map is
 * valid), registers, defers, finalizers that wait to run. The same set as runtime/mgcmark.go markroot, except that a
 * finalizer hangs on its object (heap.h) and that a frame stopped by a fault counts in full.
 */
#pragma once
#include "golang/goroutine.h"
#include "golang/heap.h"
#include "golang/ptrmask.h"

enum sonde_go_root_kind {
	SONDE_GO_ROOT_DATA, /* a word of data or bss */
	SONDE_GO_ROOT_STACK, /* a word of a frame */
	SONDE_GO_ROOT_REGISTER,
	SONDE_GO_ROOT_GOROUTINE, /* saved context, defer records */
	SONDE_GO_ROOT_QUEUE, /* finalizers and cleanups that are about to run */
};

struct sonde_go_root {
	enum sonde_go_root_kind kind;
	bool conservative; /* a word that may be anything: counts only if it points to an allocated slot */
	uint64_t addr; /* of the word; 0 for registers */
	uint64_t value;
	uint32_t goroutine; /* index, UINT32_MAX = none */
	uint32_t frame; /* index in frames, UINT32_MAX = none */
};

/* Called once a word that is not 0. */
typedef void sonde_go_root_visit(void *ctx, const struct sonde_go_root *root);

/* Visit them all. gs may be NULL: then no stacks (noted by the caller). Fails only for want of memory. */
struct sonde_error *sonde_go_roots_visit(struct sonde_go *go, const struct sonde_goroutines *gs,
	struct sonde_go_masks *masks, sonde_go_root_visit *visit, void *ctx) SONDE_CHECK;
