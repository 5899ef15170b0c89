#include "core/breakdown.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "golang/pagealloc.h"

const struct sonde_core_breakdown_row_info sonde_core_breakdown_rows[SONDE_CORE_BREAKDOWN_N] = {
#define L(name, depth, key, label) {depth, key, label},
	SONDE_CORE_BREAKDOWN_ROWS(L)
#undef L
};

enum { N = SONDE_CORE_BREAKDOWN_N, ROW_SPAN = N /* a span in use: its slots tell */ };

/* Addresses that something is known of. */
struct claim {
	uint64_t start, end;
	uint32_t row;
	uint32_t span; /* ROW_SPAN: its number */
};
SONDE_DEFINE_VEC(claims, struct claim)

/* What is known best is asked first; each layer is sorted and disjoint. */
enum { LAYER_STACKS, LAYER_PAGES, LAYER_TABLES, N_LAYERS };

struct painter {
	struct sonde_core_session *s;
	struct sonde_core_breakdown *b;
	struct claims layers[N_LAYERS];
	const struct sonde_mapping *m; /* that is being painted */
	uint64_t m_present; /* of all of m */
	uint32_t rest; /* its row for what nothing claims */
	bool no_memory;
};

static void claim(
	struct painter *p, int layer, uint64_t start, uint64_t end, uint32_t row, uint32_t span)
{
	if (start < end && !claims_push(&p->layers[layer], (struct claim){start, end, row, span}))
		p->no_memory = true;
}

/* --- claims --- */

static void claim_spans(struct painter *p)
{
	const struct sonde_go_heap *h = p->s->heap;
	for (uint32_t i = 0; i < h->n_spans; i++) {
		const struct sonde_go_span *span = &h->spans[i];
		claim(p, LAYER_PAGES, span->base,
			span->base + (uint64_t)span->n_pages * (uint64_t)h->go->layout.page_bytes,
			ROW_SPAN, i);
	}
}

static void claim_ranges(struct painter *p, const struct sonde_go_memory_ranges *ranges)
{
	static const struct {
		int layer;
		uint32_t row;
	} kinds[] = {
		[SONDE_GO_MEMORY_STACKS] = {LAYER_PAGES, SONDE_CORE_BREAKDOWN_FREE_STACKS},
		[SONDE_GO_MEMORY_WORK_BUFFERS] = {LAYER_PAGES, SONDE_CORE_BREAKDOWN_WORK_BUFFERS},
		[SONDE_GO_MEMORY_FREE] = {LAYER_PAGES, SONDE_CORE_BREAKDOWN_RETAINED_PAGES},
		[SONDE_GO_MEMORY_RELEASED] = {LAYER_PAGES, SONDE_CORE_BREAKDOWN_RELEASED_PAGES},
		[SONDE_GO_MEMORY_HEAP] = {LAYER_TABLES, SONDE_CORE_BREAKDOWN_HEAP_OTHER},
		[SONDE_GO_MEMORY_HEAP_INDEX] = {LAYER_TABLES, SONDE_CORE_BREAKDOWN_HEAP_INDEX},
		[SONDE_GO_MEMORY_MARK_BITS] = {LAYER_TABLES, SONDE_CORE_BREAKDOWN_MARK_BITS},
		[SONDE_GO_MEMORY_PERSISTENT] = {LAYER_TABLES, SONDE_CORE_BREAKDOWN_PERSISTENT},
	};
	sonde_vec_foreach (r, ranges)
		claim(p, kinds[r->kind].layer, r->start, r->end, kinds[r->kind].row, 0);
}

static void claim_modules(struct painter *p)
{
	const struct sonde_go *go = p->s->go;
	for (size_t i = 0; i < go->n_modules; i++) {
		const struct sonde_go_module *m = &go->modules[i];
		claim(p, LAYER_TABLES, m->noptrdata, m->edata, SONDE_CORE_BREAKDOWN_DATA, 0);
		claim(p, LAYER_TABLES, m->bss, m->enoptrbss, SONDE_CORE_BREAKDOWN_BSS, 0);
	}
}

static const struct claim *claim_at(const struct claims *all, uint64_t addr)
{
	size_t low = 0, high = all->n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (all->items[middle].end <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low < all->n ? &all->items[low] : NULL; /* the first that ends behind addr */
}

static int by_start(const void *a, const void *b)
{
	const struct claim *x = a, *y = b;
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Sort, and give what is claimed twice to the first; that is damage, or a core taken in the middle of an allocation. */
static void settle(struct painter *p, struct claims *all)
{
	sonde_vec_sort(all, by_start);
	uint64_t end = 0;
	size_t kept = 0;
	for (size_t i = 0; i < all->n; i++) {
		struct claim c = all->items[i];
		if (c.start < end) {
			sonde_notes_add(&p->s->notes, "memory that two records claim: bytes",
				sonde_min(end, c.end) - c.start, "0x%" PRIx64, c.start);
			c.start = sonde_min(end, c.end);
		}
		if (c.start >= c.end)
			continue;
		end = c.end;
		all->items[kept++] = c;
	}
	all->n = kept;
}

/* Stacks of goroutines that are cut from spans of stacks: others lie on those of threads. */
static void claim_stacks(struct painter *p)
{
	if (!p->s->goroutines)
		return;
	sonde_vec_foreach (g, &p->s->goroutines->all) {
		const struct claim *span = claim_at(&p->layers[LAYER_PAGES], g->stack_low);
		if (span && span->row == SONDE_CORE_BREAKDOWN_FREE_STACKS &&
			span->start <= g->stack_low && g->stack_high <= span->end)
			claim(p, LAYER_STACKS, g->stack_low, g->stack_high,
				SONDE_CORE_BREAKDOWN_GOROUTINE_STACKS, 0);
	}
}

/* --- painting --- */

static uint64_t present(const struct painter *p, uint64_t start, uint64_t end)
{
	const struct sonde_mapping *m = p->m;
	if (p->m_present == 0)
		return 0;
	if (p->m_present == m->end - m->start)
		return end - start;
	struct sonde_mapping part = *m;
	part.start = start;
	part.end = end;
	part.core_offset += start - m->start;
	return sonde_target_present_bytes(p->s->target, &part);
}

static void put(struct painter *p, uint32_t row, uint64_t bytes, uint64_t present_bytes)
{
	p->b->rows[row].bytes += bytes;
	p->b->rows[row].present_bytes += present_bytes;
}

static uint32_t slot_row(const struct painter *p, const struct sonde_go_span *span, uint32_t slot)
{
	uint32_t object = span->first + slot;
	if (sonde_core_marks_has(p->s->marks, object))
		return SONDE_CORE_BREAKDOWN_LIVE;
	if (!sonde_go_span_allocated(span, slot))
		return SONDE_CORE_BREAKDOWN_FREE_SLOTS;
	const uint64_t *kept = p->s->marks->kept_bits;
	return kept && (kept[object >> 6] >> (object & 63) & 1) ? SONDE_CORE_BREAKDOWN_KEPT
								: SONDE_CORE_BREAKDOWN_GARBAGE;
}

/* [start, end) of a span in use: neighbouring slots of a kind together. */
static void paint_span(
	struct painter *p, const struct sonde_go_span *span, uint64_t start, uint64_t end)
{
	uint64_t there = present(p, start, end),
		 slots_end = span->base + span->n_slots * span->slot_bytes;
	bool whole = there == end - start, none = there == 0;
	uint64_t at = start;
	uint32_t slot = (uint32_t)sonde_min((start - span->base) / span->slot_bytes, UINT32_MAX);
	while (at < end) {
		uint32_t row = SONDE_CORE_BREAKDOWN_ROUND;
		uint64_t next = end;
		if (at < slots_end) {
			row = slot_row(p, span, slot);
			while (++slot < span->n_slots && slot_row(p, span, slot) == row &&
				sonde_go_span_addr(span, slot) < end)
				;
			next = sonde_min(end, sonde_go_span_addr(span, slot));
		}
		put(p, row, next - at, whole ? next - at : none ? 0 : present(p, at, next));
		at = next;
	}
}

/* Give [start, end) to the claims of this layer and what they leave to the next. */
static void paint(struct painter *p, uint64_t start, uint64_t end, int layer)
{
	if (layer == N_LAYERS) {
		put(p, p->rest, end - start, present(p, start, end));
		return;
	}
	const struct claims *all = &p->layers[layer];
	const struct claim *c = claim_at(all, start);
	while (start < end) {
		if (!c || c >= all->items + all->n || c->start >= end) {
			paint(p, start, end, layer + 1);
			return;
		}
		if (c->start > start)
			paint(p, start, c->start, layer + 1);
		uint64_t from = sonde_max(start, c->start), to = sonde_min(end, c->end);
		if (c->row == ROW_SPAN)
			paint_span(p, &p->s->heap->spans[c->span], from, to);
		else
			put(p, c->row, to - from, present(p, from, to));
		start = to;
		c++;
	}
}

/* The exe's path as NT_FILE has it: of the mapping that its entry point lies in. */
static const char *exe_path(struct sonde_core_session *s)
{
	const struct sonde_process_info *info = sonde_target_info(s->target);
	const struct sonde_mapping *m =
		info->has_auxv ? sonde_target_mapping_find(s->target, info->entry) : NULL;
	return m && m->path ? m->path : sonde_target_exe_path(s->target);
}

static uint32_t row_of_file(const struct sonde_mapping *m, bool is_exe)
{
	if (m->perm & SONDE_PERM_X)
		return is_exe ? SONDE_CORE_BREAKDOWN_TEXT : SONDE_CORE_BREAKDOWN_FOREIGN_TEXT;
	if (m->perm & SONDE_PERM_W)
		return is_exe ? SONDE_CORE_BREAKDOWN_DATA : SONDE_CORE_BREAKDOWN_FOREIGN_DATA;
	return is_exe ? SONDE_CORE_BREAKDOWN_RODATA : SONDE_CORE_BREAKDOWN_FOREIGN_RODATA;
}

static bool holds(const struct sonde_mapping *m, uint64_t addr)
{
	return addr >= m->start && addr < m->end;
}

/* A mapping without a file that a thread's stack pointer leads to, or where the kernel put the arguments. */
static bool is_stack(struct sonde_core_session *s, const struct sonde_mapping *m)
{
	const struct sonde_process_info *info = sonde_target_info(s->target);
	size_t n;
	const struct sonde_thread *threads = sonde_target_threads(s->target, &n);
	if (info->has_auxv && info->random_addr && holds(m, info->random_addr))
		return true;
	for (size_t i = 0; i < n; i++) {
		uint64_t sp = sonde_regs_sp(&threads[i].regs);
		if (sp && holds(m, sp))
			return true;
	}
	return false;
}

static uint32_t row_of_rest(struct painter *p, const struct sonde_mapping *m, const char *exe)
{
	const struct sonde_process_info *info = sonde_target_info(p->s->target);
	if (!m->perm)
		return SONDE_CORE_BREAKDOWN_NO_ACCESS;
	if ((m->path && m->path[0] == '[') ||
		(info->has_auxv && info->vdso && holds(m, info->vdso)) ||
		m->start >= UINT64_C(1) << 63)
		return SONDE_CORE_BREAKDOWN_KERNEL;
	if (m->path)
		return row_of_file(m, !strcmp(m->path, exe));
	return is_stack(p->s, m) ? SONDE_CORE_BREAKDOWN_THREAD_STACKS : SONDE_CORE_BREAKDOWN_OTHER;
}

static void paint_mapping(struct painter *p, const struct sonde_mapping *m, const char *exe)
{
	p->m = m;
	p->m_present = sonde_target_present_bytes(p->s->target, m);
	p->rest = row_of_rest(p, m, exe);
	unsigned perm = m->perm & (SONDE_CORE_BREAKDOWN_PERMISSIONS - 1);
	p->b->n_mappings[perm]++;
	p->b->permissions[perm].bytes += m->end - m->start;
	p->b->permissions[perm].present_bytes += p->m_present;
	/* Nothing is in what nobody may touch: tables that the runtime has reserved room for. */
	paint(p, m->start, m->end, m->perm ? 0 : N_LAYERS);
}

static void sum_up(struct sonde_core_breakdown *b)
{
	for (int depth = 2; depth >= 0; depth--) {
		int parent = -1;
		for (int i = 0; i < N; i++) {
			unsigned d = sonde_core_breakdown_rows[i].depth;
			if (d <= (unsigned)depth)
				parent = d == (unsigned)depth ? i : -1;
			else if (parent >= 0 && d == (unsigned)depth + 1) {
				b->rows[parent].bytes += b->rows[i].bytes;
				b->rows[parent].present_bytes += b->rows[i].present_bytes;
			}
		}
	}
}

static struct sonde_error *claim_go(struct painter *p)
{
	SONDE_TRY(sonde_core_session_need_marks(p->s));
	sonde_cleanup(sonde_go_memory_ranges) struct sonde_go_memory_ranges ranges = {0};
	SONDE_TRY(sonde_go_memory_read(p->s->go, &ranges));
	claim_spans(p);
	claim_ranges(p, &ranges);
	claim_modules(p);
	settle(p, &p->layers[LAYER_PAGES]);
	settle(p, &p->layers[LAYER_TABLES]);
	claim_stacks(p);
	settle(p, &p->layers[LAYER_STACKS]);
	p->b->has_go = true;
	return NULL;
}

struct sonde_error *sonde_core_breakdown_make(struct sonde_core_session *s,
	struct sonde_core_breakdown *ret, struct sonde_error **go_error)
{
	struct sonde_core_breakdown b = {0};
	struct painter p = {.s = s, .b = &b};
	struct sonde_error *err = claim_go(&p);
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(s->target, &n);
	const char *exe = exe_path(s);
	for (size_t i = 0; i < n && !p.no_memory; i++)
		paint_mapping(&p, &maps[i], exe);
	for (int i = 0; i < N_LAYERS; i++)
		claims_deinit(&p.layers[i]);
	if (err && (err->code == SONDE_NO_MEMORY || err->code == SONDE_INTERRUPTED))
		return err;
	if (p.no_memory) {
		sonde_error_free(err);
		return &sonde_enomem;
	}
	sum_up(&b);
	*ret = b;
	if (go_error)
		*go_error = err;
	else
		sonde_error_free(err);
	return NULL;
}
