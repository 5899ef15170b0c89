/*
 * src/core/leaks.h: goroutines that nothing alive can wake: they wait for channels that only goroutines of that kind can
 * reach. What others could reach counts as able to wake them, so none is named wrongly but by a word that looks like a
 * pointer; some that wait for ever are not named.
 *
 * The mark starts without the stacks of goroutines that wait for channels; whoever waits for a channel that it reaches
 * joins in. Costs: two bits an object, 8 bytes an object still to scan, 8 a root of a waiting goroutine.
 */
#pragma once
#include "core/session.h"

struct sonde_core_stuck {
	bool *goroutines; /* by index in goroutines->all */
	uint64_t n;
	uint64_t n_objects, bytes; /* live only because of them */
};

/* Needs marks and goroutines. */
struct sonde_error *sonde_core_stuck_find(
	struct sonde_core_session *s, struct sonde_core_stuck *ret) SONDE_CHECK;
void sonde_core_stuck_deinit(struct sonde_core_stuck *stuck);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_stuck)
