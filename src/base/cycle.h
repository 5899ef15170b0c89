/*
 * src/base/cycle.h: linked lists in untrusted memory: has this address been here before? Brent's method: two words, no
 * memory; a cycle of n is noticed within 3 n steps.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct sonde_cycle {
	uint64_t seen, n, limit;
};

static inline struct sonde_cycle sonde_cycle_from(uint64_t first)
{
	return (struct sonde_cycle){first, 0, 1};
}

/* Call with each address behind the first: true once the list is known to run in a circle. */
static inline bool sonde_cycle_closed(struct sonde_cycle *c, uint64_t addr)
{
	if (addr == c->seen)
		return true;
	if (++c->n == c->limit) {
		c->seen = addr;
		c->n = 0;
		c->limit *= 2;
	}
	return false;
}
