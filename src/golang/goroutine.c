#include "golang/goroutine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/map.h"
#include "golang/stack.h"

enum {
	MAX_LABELS = 256,
	MAX_LABEL_BYTES = 1024,
	OLD_MAP_SLOTS = 8,
	OLD_MAP_MIN_TOP_HASH = 5,
	MAX_BUCKETS = 1 << 12
};

enum label_form { LABELS_NONE, LABELS_LIST, LABELS_OLD_MAP };

struct reader {
	struct sonde_go *go;
	struct sonde_goroutines *gs;
	struct sonde_u32_map thread_of_tid;
	enum label_form label_form;
};

/* The runtime's words for each state (runtime/traceback.go gStatusStrings). */
static const char *state_name(const struct sonde_go_layout *l, uint32_t status)
{
	const struct {
		int64_t status;
		const char *name;
	} names[] = {
		{l->g_idle, "idle"},
		{l->g_runnable, "runnable"},
		{l->g_running, "running"},
		{l->g_syscall, "syscall"},
		{l->g_waiting, "waiting"},
		{l->g_dead, "dead"},
		{l->g_copystack, "copystack"},
		{l->g_preempted, "preempted"},
		{l->g_leaked, "leaked"},
		{l->g_deadextra, "waiting for cgo callback"},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(names); i++) {
		if (names[i].status == status)
			return names[i].name;
	}
	return "unknown";
}

/* --- labels --- */

static bool add_label(struct reader *r, struct sonde_goroutine *g, struct sonde_go_label *labels,
	uint64_t key, uint64_t value)
{
	char *k = sonde_go_string(r->go, key, MAX_LABEL_BYTES, &r->gs->arena);
	char *v = sonde_go_string(r->go, value, MAX_LABEL_BYTES, &r->gs->arena);
	if (!k || !v || g->n_labels >= MAX_LABELS)
		return false;
	labels[g->n_labels++] = (struct sonde_go_label){k, v};
	return true;
}

/* runtime/pprof.labelMap since 1.24: a slice of {key, value}. */
static void read_label_list(
	struct reader *r, struct sonde_goroutine *g, uint64_t addr, struct sonde_go_label *labels)
{
	unsigned word = r->go->word_bytes;
	uint64_t list, n, at = addr + r->go->layout.label_set_list.offset;
	if (!sonde_go_read_word(r->go, at, &list) || !sonde_go_read_word(r->go, at + word, &n))
		return;
	for (uint64_t i = 0; i < n && i < MAX_LABELS; i++) {
		if (!add_label(r, g, labels, list + i * 4 * word, list + (i * 4 + 2) * word))
			return;
	}
}

/* map[string]string of Go <= 1.23 (runtime/map.go bmap): 8 top hashes, 8 keys, 8 values, overflow. */
static void read_old_buckets(struct reader *r, struct sonde_goroutine *g, uint64_t buckets,
	uint64_t n, unsigned *budget, struct sonde_go_label *labels)
{
	unsigned word = r->go->word_bytes;
	uint64_t bucket_bytes = OLD_MAP_SLOTS + OLD_MAP_SLOTS * 4 * word + word;
	for (uint64_t i = 0; i < n; i++) {
		uint64_t bucket = buckets + i * bucket_bytes;
		for (; bucket && *budget; --*budget) {
			for (int slot = 0; slot < OLD_MAP_SLOTS; slot++) {
				uint8_t top;
				if (!sonde_target_read_u8(r->go->target, bucket + slot, &top))
					return;
				uint64_t keys = bucket + OLD_MAP_SLOTS;
				if (top >= OLD_MAP_MIN_TOP_HASH &&
					!add_label(r, g, labels, keys + slot * 2 * word,
						keys + (OLD_MAP_SLOTS + slot) * 2 * word))
					return;
			}
			if (!sonde_go_read_word(r->go, bucket + bucket_bytes - word, &bucket))
				return;
		}
	}
}

static void read_label_map(
	struct reader *r, struct sonde_goroutine *g, uint64_t addr, struct sonde_go_label *labels)
{
	const struct sonde_go_layout *l = &r->go->layout;
	uint64_t hmap, b, buckets, old;
	if (!sonde_go_read_word(r->go, addr, &hmap) || !sonde_go_read(r->go, hmap, l->hmap_b, &b) ||
		!sonde_go_read(r->go, hmap, l->hmap_buckets, &buckets) ||
		!sonde_go_read(r->go, hmap, l->hmap_oldbuckets, &old) || b > 12)
		return;
	unsigned budget = MAX_BUCKETS;
	read_old_buckets(r, g, buckets, buckets ? UINT64_C(1) << b : 0, &budget, labels);
	if (old) /* growing: what has not moved yet; same-size growth keeps the number of buckets */
		read_old_buckets(r, g, old, UINT64_C(1) << (b ? b - 1 : 0), &budget, labels);
}

static void read_labels(struct reader *r, struct sonde_goroutine *g)
{
	uint64_t addr;
	if (r->label_form == LABELS_NONE ||
		!sonde_go_read(r->go, g->addr, r->go->layout.g_labels, &addr) || !addr)
		return;
	struct sonde_go_label *labels =
		sonde_arena_array(&r->gs->arena, struct sonde_go_label, MAX_LABELS);
	if (!labels)
		return;
	g->labels = labels;
	if (r->label_form == LABELS_LIST)
		read_label_list(r, g, addr, labels);
	else
		read_label_map(r, g, addr, labels);
}

static enum label_form find_label_form(struct sonde_go *go)
{
	const struct sonde_dwarf_type *t =
		sonde_dwarf_type_find(go->dwarf, "runtime/pprof.labelMap");
	const struct sonde_dwarf_type *bare = t ? sonde_dwarf_type_bare(go->dwarf, t->id) : NULL;
	if (!bare)
		return LABELS_NONE;
	if (bare->kind == SONDE_DWARF_STRUCT && go->layout.label_set_list.size)
		return LABELS_LIST;
	return go->layout.hmap_b.size ? LABELS_OLD_MAP : LABELS_NONE;
}

/* --- one goroutine --- */

/* runtime/traceback.go isSystemGoroutine, as far as a core tells: by the start function's name. */
static bool is_system(const struct sonde_go *go, uint64_t start_pc)
{
	static const char *const users[] = {"runtime.main", "runtime.handleAsyncEvent"};
	struct sonde_pcfunc f;
	if (!sonde_go_function_at(go, start_pc, &f, NULL) || strncmp(f.name, "runtime.", 8))
		return false;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(users); i++) {
		if (!strcmp(f.name, users[i]))
			return false;
	}
	return true;
}

static uint64_t field(const struct sonde_go *go, uint64_t addr, struct sonde_go_field f)
{
	uint64_t v = 0;
	sonde_go_read(go, addr, f, &v);
	return v;
}

/* The thread that runs it now, if its m says so. */
static const struct sonde_regs *find_thread(struct reader *r, struct sonde_goroutine *g)
{
	const struct sonde_go_layout *l = &r->go->layout;
	g->m = field(r->go, g->addr, l->g_m);
	g->m_id = -1;
	g->thread = -1;
	if (!g->m)
		return NULL;
	g->m_id = (int64_t)field(r->go, g->m, l->m_id);
	uint64_t tid = field(r->go, g->m, l->m_procid);
	uint32_t *thread = sonde_u32_map_find(&r->thread_of_tid, tid);
	if (!thread)
		return NULL;
	g->thread = (int32_t)*thread;
	if (field(r->go, g->m, l->m_curg) != g->addr)
		return NULL;
	size_t n;
	return &sonde_target_threads(r->go->target, &n)[*thread].regs;
}

static struct sonde_error *read_goroutine(struct reader *r, uint64_t addr)
{
	const struct sonde_go *go = r->go;
	const struct sonde_go_layout *l = &go->layout;
	const uint8_t *bytes = sonde_target_bytes(go->target, addr, l->sizeof_g);
	if (!bytes) {
		sonde_notes_add(
			go->notes, "goroutine record not readable", 0, "g at 0x%" PRIx64, addr);
		return NULL;
	}
	uint32_t status = (uint32_t)sonde_go_load(bytes, l->g_status);
	struct sonde_goroutine g = {
		.addr = addr,
		.id = sonde_go_load(bytes, l->g_goid),
		.status = status & ~(uint32_t)l->g_scan,
		.scanned = status & (uint32_t)l->g_scan,
		.wait_since =
			l->g_waitsince.size ? (int64_t)sonde_go_load(bytes, l->g_waitsince) : 0,
		.created_by_pc = sonde_go_load(bytes, l->g_gopc),
		.start_pc = sonde_go_load(bytes, l->g_startpc),
		.parent_id = l->g_parent_goid.size ? sonde_go_load(bytes, l->g_parent_goid) : 0,
		.locked_m = l->g_lockedm.size ? sonde_go_load(bytes, l->g_lockedm) : 0,
		.stack_low = sonde_go_load(bytes, l->g_stack_lo),
		.stack_high = sonde_go_load(bytes, l->g_stack_hi),
	};
	if (g.status == l->g_dead || g.status == l->g_deadextra) {
		r->gs->n_dead++;
		return NULL;
	}
	g.locked = g.locked_m != 0;
	g.state = state_name(l, g.status);
	uint64_t reason = sonde_go_load(bytes, l->g_waitreason);
	if ((g.status == l->g_waiting || g.status == l->g_leaked) && reason &&
		reason < go->n_wait_reasons)
		g.wait_reason = go->wait_reasons[reason];
	g.system = is_system(go, g.start_pc);
	read_labels(r, &g);
	const struct sonde_regs *regs = find_thread(r, &g);
	g.first_frame = r->gs->frames.n;
	if (g.status == l->g_idle) {
		g.cut = "[being created]";
	} else {
		struct sonde_go_stack_ctx ctx = {
			.go = go,
			.g = addr,
			.stack_low = g.stack_low,
			.stack_high = g.stack_high,
			.m = g.m,
			.regs = regs,
			.status = g.status,
		};
		SONDE_TRY(sonde_go_stack_walk(
			&ctx, &r->gs->arena, &r->gs->frames, &g.cut, &g.gap, &g.regs));
	}
	g.n_frames = r->gs->frames.n - g.first_frame;
	if (g.cut)
		sonde_notes_add(go->notes, "goroutine stack cut short", 0,
			"goroutine %" PRIu64 " %s", g.id, g.cut);
	return sonde_goroutine_vec_push(&r->gs->all, g) ? NULL : &sonde_enomem;
}

static struct sonde_error *read_all(struct reader *r)
{
	struct sonde_go *go = r->go;
	size_t n_threads;
	const struct sonde_thread *threads = sonde_target_threads(go->target, &n_threads);
	for (size_t i = 0; i < n_threads; i++) {
		uint32_t *slot = sonde_u32_map_put(&r->thread_of_tid, threads[i].tid, NULL);
		if (!slot)
			return &sonde_enomem;
		*slot = (uint32_t)i;
	}
	r->label_form = find_label_form(go);
	uint64_t allgs = sonde_go_global(go, "runtime.allgs", NULL), list, n;
	if (!allgs || !sonde_go_read_word(go, allgs, &list) ||
		!sonde_go_read_word(go, allgs + go->word_bytes, &n))
		return sonde_error_new(SONDE_FAULT, "goroutines: runtime.allgs is not readable");
	const uint8_t *pointers =
		n <= UINT32_MAX ? sonde_target_bytes(go->target, list, n * go->word_bytes) : NULL;
	if (!pointers)
		return sonde_error_new(SONDE_FAULT,
			"goroutines: the list of %" PRIu64 " at 0x%" PRIx64 " is not readable", n,
			list);
	for (uint64_t i = 0; i < n; i++) {
		uint64_t addr = 0;
		memcpy(&addr, pointers + i * go->word_bytes, go->word_bytes);
		SONDE_TRY(read_goroutine(r, addr));
	}
	return NULL;
}

struct sonde_error *sonde_goroutines_open(struct sonde_go *go, struct sonde_goroutines **ret)
{
	sonde_cleanup(sonde_goroutines) struct sonde_goroutines *gs =
		sonde_new(struct sonde_goroutines);
	if (!gs)
		return &sonde_enomem;
	gs->go = go;
	sonde_arena_init(&gs->arena);
	struct reader r = {.go = go, .gs = gs};
	struct sonde_error *err = read_all(&r);
	sonde_u32_map_deinit(&r.thread_of_tid);
	SONDE_TRY(err);
	*ret = sonde_take(gs);
	return NULL;
}

void sonde_goroutines_free(struct sonde_goroutines *gs)
{
	if (!gs)
		return;
	sonde_arena_deinit(&gs->arena);
	sonde_goroutine_vec_deinit(&gs->all);
	sonde_go_frames_deinit(&gs->frames);
	free(gs);
}

bool sonde_go_frame_function(
	const struct sonde_go *go, const struct sonde_go_frame *f, struct sonde_pcfunc *ret)
{
	return sonde_pclntab_function(&go->modules[f->module].functions, f->function, ret);
}

size_t sonde_go_frame_calls(const struct sonde_go *go, const struct sonde_go_frame *f,
	struct sonde_pccall *calls, size_t max)
{
	struct sonde_pcfunc function;
	if (!sonde_go_frame_function(go, f, &function))
		return 0;
	return sonde_pclntab_calls(&go->modules[f->module].functions, &function,
		sonde_go_frame_lookup_pc(f), calls, max);
}
