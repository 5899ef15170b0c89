#include "core/dominators.h"

#include <stdlib.h>
#include <string.h>

/* Descending by `to`: the order in which the vertices are worked on. */
static int by_target(const void *a, const void *b)
{
	const struct sonde_core_edge *x = a, *y = b;
	return x->to > y->to ? -1 : x->to < y->to;
}

struct forest {
	uint32_t *ancestor; /* parent at first; shortened by compression */
	uint32_t *label; /* the vertex of smallest semidominator on the compressed way up */
	uint32_t *semi;
};

/*
 * What v says of the semidominator of a vertex that it leads to: v itself where it is not done (below `last`), else the
 * smallest semidominator among v and its ancestors that are done. Compresses the way: afterwards v's ancestor is above
 * all of them. Two walks instead of recursion: the ways may be long.
 */
static uint32_t eval(const struct forest *f, uint32_t v, uint32_t last)
{
	if (v < last)
		return v;
	if (f->ancestor[v] < last)
		return f->semi[f->label[v]];
	/* Go up, turning the links round, so that the way down is known without a stack. */
	uint32_t below = v, at = f->ancestor[v];
	f->ancestor[v] = UINT32_MAX;
	while (f->ancestor[at] >= last) {
		uint32_t up = f->ancestor[at];
		f->ancestor[at] = below;
		below = at;
		at = up;
	}
	/* Down again, each taking the better label of the one above. */
	uint32_t top = f->ancestor[at], above = at;
	for (uint32_t w = below; w != UINT32_MAX;) {
		uint32_t down = f->ancestor[w];
		if (f->semi[f->label[above]] < f->semi[f->label[w]])
			f->label[w] = f->label[above];
		f->ancestor[w] = top;
		above = w;
		w = down;
	}
	return f->semi[f->label[v]];
}

void sonde_core_dominators(uint32_t *parent, uint32_t n, struct sonde_core_edges *edges,
	uint32_t *idom, uint32_t *scratch)
{
	sonde_vec_sort(edges, by_target);
	memcpy(idom, parent, (size_t)n * sizeof(*idom));
	struct forest f = {.ancestor = parent, .label = scratch, .semi = scratch + n};
	for (uint32_t v = 0; v < n; v++) {
		f.label[v] = v;
		f.semi[v] = v ? parent[v] : 0;
	}
	if (n == 0)
		return;
	idom[0] = 0;
	/* Semidominators. Where a vertex has only its tree edge, its semidominator is its parent, as set. */
	size_t at = 0;
	while (at < edges->n) {
		uint32_t w = edges->items[at].to, semi = f.semi[w];
		for (; at < edges->n && edges->items[at].to == w; at++) {
			uint32_t best = eval(&f, edges->items[at].from, w + 1);
			if (best < semi)
				semi = best;
		}
		f.semi[w] = semi;
	}
	/* The dominator lies on the tree way up, at or above the semidominator; ancestors are done before. */
	for (uint32_t v = 1; v < n; v++) {
		uint32_t d = idom[v];
		while (d > f.semi[v])
			d = idom[d];
		idom[v] = d;
	}
}
