#include "core/dominators.h"
#include "tap.h"

/* A graph of the test: adjacency by lists, vertex 0 the root. */
enum { MAX_VERTICES = 64, MAX_EDGES = 512 };

struct graph {
	uint32_t n, n_edges;
	uint32_t from[MAX_EDGES], to[MAX_EDGES];
};

static uint64_t state = 88172645463325252u;

static uint32_t draw(uint32_t n)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (uint32_t)(state % n);
}

/* What is reachable from 0 without passing through `without` (UINT32_MAX: all). */
static void reach(const struct graph *g, uint32_t without, bool seen[MAX_VERTICES])
{
	memset(seen, 0, MAX_VERTICES);
	seen[0] = without != 0;
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < g->n_edges; i++) {
			if (seen[g->from[i]] && !seen[g->to[i]] && g->to[i] != without) {
				seen[g->to[i]] = true;
				more = true;
			}
		}
	}
}

/* Depth first: number, parent, and the edges that are not of the tree. */
struct tree {
	uint32_t number[MAX_VERTICES], vertex[MAX_VERTICES], parent[MAX_VERTICES], n;
};

static void visit(const struct graph *g, uint32_t v, uint32_t parent, struct tree *t)
{
	t->number[v] = t->n;
	t->vertex[t->n] = v;
	t->parent[t->n++] = parent;
	uint32_t self = t->number[v];
	for (uint32_t i = 0; i < g->n_edges; i++) {
		if (g->from[i] == v && t->number[g->to[i]] == UINT32_MAX)
			visit(g, g->to[i], self, t);
	}
}

/* d dominates v if v is not reachable without d; the immediate one is dominated by all others. */
static uint32_t naive_idom(const struct graph *g, uint32_t v)
{
	uint32_t best = 0, best_size = 0;
	for (uint32_t d = 0; d < g->n; d++) {
		bool all[MAX_VERTICES], without[MAX_VERTICES];
		reach(g, UINT32_MAX, all);
		reach(g, d, without);
		if (d == v || !all[d] || (without[v] && d != 0))
			continue;
		/* The closest dominator is the one that dominates the fewest. */
		uint32_t size = 0;
		for (uint32_t i = 0; i < g->n; i++)
			size += all[i] && !without[i];
		if (!best_size || size < best_size) {
			best = d;
			best_size = size;
		}
	}
	return best;
}

static bool agrees(const struct graph *g)
{
	struct tree t = {.n = 0};
	memset(t.number, 0xff, sizeof(t.number));
	visit(g, 0, 0, &t);
	sonde_cleanup(sonde_core_edges) struct sonde_core_edges edges = {0};
	for (uint32_t i = 0; i < g->n_edges; i++) {
		uint32_t from = t.number[g->from[i]], to = t.number[g->to[i]];
		if (from != UINT32_MAX && from != to && to != 0 && t.parent[to] != from)
			sonde_core_edges_push(&edges, (struct sonde_core_edge){to, from});
	}
	uint32_t parent[MAX_VERTICES], idom[MAX_VERTICES], scratch[2 * MAX_VERTICES];
	memcpy(parent, t.parent, sizeof(parent));
	sonde_core_dominators(parent, t.n, &edges, idom, scratch);
	for (uint32_t v = 1; v < t.n; v++) {
		if (t.vertex[idom[v]] != naive_idom(g, t.vertex[v])) {
			printf("# vertex %u: %u, want %u\n", t.vertex[v], t.vertex[idom[v]],
				naive_idom(g, t.vertex[v]));
			return false;
		}
	}
	return true;
}

static void add(struct graph *g, uint32_t from, uint32_t to)
{
	g->from[g->n_edges] = from;
	g->to[g->n_edges++] = to;
}

static void known_graphs(void)
{
	struct graph diamond = {.n = 4};
	add(&diamond, 0, 1);
	add(&diamond, 0, 2);
	add(&diamond, 1, 3);
	add(&diamond, 2, 3);
	CHECK(agrees(&diamond));
	CHECK_EQ(naive_idom(&diamond, 3), 0);
	struct graph chain = {.n = 5};
	for (uint32_t i = 0; i < 4; i++) {
		add(&chain, i, i + 1);
		add(&chain, i + 1, i); /* and back */
	}
	CHECK(agrees(&chain));
	CHECK_EQ(naive_idom(&chain, 4), 3);
}

/* Lengauer and Tarjan's own example (1979, figure 1), letters as numbers: R A .. L. */
static void published_example(void)
{
	static const char *const edges = "RARBRCADBABDBECFCGDLEHFIGIGJHEHKIKJIKIKRLH";
	static const char *const order = "RABCDEFGHIJKL";
	static const char *const idoms = "RRRRRRCCRRGRD"; /* of each in `order` */
	struct graph g = {.n = 13};
	for (const char *p = edges; *p; p += 2)
		add(&g, (uint32_t)(strchr(order, p[0]) - order),
			(uint32_t)(strchr(order, p[1]) - order));
	CHECK(agrees(&g));
	for (uint32_t v = 1; v < g.n; v++)
		CHECK_EQ(naive_idom(&g, v), (uint32_t)(strchr(order, idoms[v]) - order));
}

static void random_graphs(void)
{
	for (int round = 0; round < 400; round++) {
		struct graph g = {.n = 2 + draw(20)};
		uint32_t n_edges = 1 + draw(g.n * 3);
		for (uint32_t i = 0; i < n_edges; i++)
			add(&g, draw(g.n), draw(g.n));
		REQUIRE(agrees(&g));
	}
}

static void nothing_and_root_alone(void)
{
	struct sonde_core_edges none = {0};
	uint32_t parent[1] = {0}, idom[1] = {9}, scratch[2];
	sonde_core_dominators(parent, 0, &none, idom, scratch);
	CHECK_EQ(idom[0], 9);
	sonde_core_dominators(parent, 1, &none, idom, scratch);
	CHECK_EQ(idom[0], 0);
}

int main(void)
{
	RUN(known_graphs);
	RUN(published_example);
	RUN(random_graphs);
	RUN(nothing_and_root_alone);
	return tap_end();
}
