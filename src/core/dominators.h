/*
 * src/core/dominators.h: immediate dominators of a graph whose depth-first spanning tree is known. Vertices are their
 * preorder numbers; 0 is the root. Semi-NCA (Georgiadis 2005): semidominators with path compression, then the nearest
 * common ancestor by walking up. Only edges that are not of the tree have to be given: in heaps these are few.
 */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/vec.h"

/* An edge from `from` to `to` that is not the tree edge into `to`. */
struct sonde_core_edge {
	uint32_t to, from;
};
SONDE_DEFINE_VEC(sonde_core_edges, struct sonde_core_edge)

/*
 * parent[v] < v for v > 0 is the tree; on return it holds garbage. edges are sorted in place. idom[v] (n of them, the
 * caller's) gets the immediate dominator; idom[0] = 0. scratch has room for 2 n words. Time is almost linear.
 */
void sonde_core_dominators(uint32_t *parent, uint32_t n, struct sonde_core_edges *edges,
	uint32_t *idom, uint32_t *scratch);
