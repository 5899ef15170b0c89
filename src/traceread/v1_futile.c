#include "traceread/v1.h"

/* What woke a goroutine and what followed: a list of offsets in a pool, the newest first. */
struct step {
	uint64_t offset;
	uint32_t older; /* index + 1; in the free list the next free one */
};
SONDE_DEFINE_VEC(steps, struct step)

struct wakeup {
	uint32_t newest; /* index + 1 */
	bool futile;
};
SONDE_DEFINE_MAP(wakeup_map, struct wakeup)

struct find {
	struct steps steps;
	uint32_t free_step; /* index + 1 */
	struct wakeup_map of_g;
	struct sonde_u64_vec *offsets;
};

static void forget(struct find *f, struct wakeup *w)
{
	while (w->newest) {
		struct step *s = &f->steps.items[w->newest - 1];
		uint32_t older = s->older;
		s->older = f->free_step;
		f->free_step = w->newest;
		w->newest = older;
	}
}

static bool add(struct find *f, struct wakeup *w, uint64_t offset)
{
	uint32_t at = f->free_step;
	if (at)
		f->free_step = f->steps.items[at - 1].older;
	else if (f->steps.n >= UINT32_MAX - 1 || !steps_add(&f->steps))
		return false;
	else
		at = (uint32_t)f->steps.n;
	f->steps.items[at - 1] = (struct step){offset, w->newest};
	w->newest = at;
	return true;
}

/* It blocks again: was all since its wakeup in vain? */
static bool block(struct find *f, struct wakeup *w, uint64_t offset)
{
	if (w->futile) {
		for (uint32_t at = w->newest; at; at = f->steps.items[at - 1].older)
			if (!sonde_u64_vec_push(f->offsets, f->steps.items[at - 1].offset))
				return false;
		if (!sonde_u64_vec_push(f->offsets, offset))
			return false;
	}
	forget(f, w);
	w->futile = false;
	return true;
}

/* Go 1.21 internal/trace/parser.go removeFutile: a start with a label, a sleep and a block of the net do not count. */
static bool see(struct find *f, const struct sonde_trace_v1_raw *raw)
{
	struct wakeup *w;
	switch (raw->record->type) {
	case SONDE_TRACE_V1_GO_UNBLOCK:
	case SONDE_TRACE_V1_GO_UNBLOCK_LOCAL:
		w = wakeup_map_put(&f->of_g, raw->args[0], NULL);
		if (!w)
			return false;
		forget(f, w);
		return add(f, w, raw->offset);
	case SONDE_TRACE_V1_GO_START:
	case SONDE_TRACE_V1_GO_START_LOCAL:
	case SONDE_TRACE_V1_GO_PREEMPT:
	case SONDE_TRACE_V1_FUTILE_WAKEUP:
		w = wakeup_map_put(&f->of_g, raw->g, NULL);
		if (!w)
			return false;
		w->futile = w->futile || raw->record->type == SONDE_TRACE_V1_FUTILE_WAKEUP;
		return add(f, w, raw->offset);
	case SONDE_TRACE_V1_GO_BLOCK:
	case SONDE_TRACE_V1_GO_BLOCK_SEND:
	case SONDE_TRACE_V1_GO_BLOCK_RECV:
	case SONDE_TRACE_V1_GO_BLOCK_SELECT:
	case SONDE_TRACE_V1_GO_BLOCK_SYNC:
	case SONDE_TRACE_V1_GO_BLOCK_COND:
		w = wakeup_map_find(&f->of_g, raw->g);
		return !w || block(f, w, raw->offset);
	default:
		return true;
	}
}

static int compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

struct sonde_error *sonde_trace_v1_futile_find(
	const struct sonde_trace_v1_index *index, struct sonde_u64_vec *offsets)
{
	sonde_cleanup(sonde_trace_state) struct sonde_trace_state state = {0};
	sonde_cleanup(sonde_trace_v1_merge) struct sonde_trace_v1_merge merge = {0};
	struct find f = {.offsets = offsets};
	const struct sonde_trace_v1_raw *raw;
	bool ok = true;
	struct sonde_error *err =
		sonde_trace_v1_merge_init(&merge, index, &state, index->format.version < 7);
	while (!err && ok && (raw = sonde_trace_v1_merge_next(&merge)))
		ok = see(&f, raw);
	steps_deinit(&f.steps);
	wakeup_map_deinit(&f.of_g);
	if (!err && (!ok || merge.no_memory))
		err = &sonde_enomem;
	if (!err)
		sonde_vec_sort(offsets, compare);
	return err;
}
