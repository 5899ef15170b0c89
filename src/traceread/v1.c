#include "traceread/v1.h"

#include <inttypes.h>
#include <string.h>

/*
 * Ids of strings: those of the file, which are below; the interned ones, which are above; and of texts that stand in a
 * record, by the offset of their length.
 */
#define TEXT UINT64_C(0xe000000000000000)
/* Ids of stacks of one frame, the entry of a goroutine: 1.5 has its address where later formats have a stack. */
#define ENTRY UINT64_C(0xd000000000000000)
#define NO_G SONDE_TRACE_NO_ID
#define NO_SLOT SONDE_TRACE_NO_SLOT

enum {
	PROGRESS_EVENTS = 1 << 20,
	MAX_THREADS = 1 << 16, /* that get a slot */
};

/* Reasons in the words of Go's converter (Go 1.27 internal/trace/tracev1.go), and one that it has not. */
static const char *const reasons[64] = {
	[SONDE_TRACE_V1_GO_STOP] = "forever",
	[SONDE_TRACE_V1_GO_SCHED] = "runtime.Gosched",
	[SONDE_TRACE_V1_GO_PREEMPT] = "preempted",
	[SONDE_TRACE_V1_GO_SLEEP] = "sleep",
	[SONDE_TRACE_V1_GO_BLOCK] = "",
	[SONDE_TRACE_V1_GO_BLOCK_SEND] = "chan send",
	[SONDE_TRACE_V1_GO_BLOCK_RECV] = "chan receive",
	[SONDE_TRACE_V1_GO_BLOCK_SELECT] = "select",
	[SONDE_TRACE_V1_GO_BLOCK_SYNC] = "sync",
	[SONDE_TRACE_V1_GO_BLOCK_COND] = "sync.(*Cond).Wait",
	[SONDE_TRACE_V1_GO_BLOCK_NET] = "network",
	[SONDE_TRACE_V1_GO_BLOCK_GC] = "GC mark assist wait for work",
	[SONDE_TRACE_V1_GO_SYSBLOCK] = "syscall",
};

/* Go 1.21 internal/trace/parser.go stwReasonStringsGo121. */
static const char *const stops_121[] = {"unknown", "GC mark termination", "GC sweep termination",
	"write heap dump", "goroutine profile", "goroutine profile cleanup",
	"all goroutines stack trace", "read mem stats", "AllThreadsSyscall", "GOMAXPROCS",
	"start trace", "stop trace", "CountPagesInUse (test)", "ReadMetricsSlow (test)",
	"ReadMemStatsSlow (test)", "PageCachePagesLeaked (test)", "ResetDebugLog (test)"};
static const char *const stops[] = {"mark termination", "sweep termination", "unknown"};

/* What an event does to a goroutine's status; BEFORE_NONE: nothing. */
struct change {
	uint8_t before, before_too, after; /* enum sonde_trace_g_status */
	bool changes;
};

#define TO(before, after)                                                                   \
	{                                                                                   \
		SONDE_TRACE_G_##before, SONDE_TRACE_G_##before, SONDE_TRACE_G_##after, true \
	}

static const struct change changes[64] = {
	[SONDE_TRACE_V1_GO_CREATE] = TO(NONE, RUNNABLE),
	[SONDE_TRACE_V1_GO_START] = TO(RUNNABLE, RUNNING),
	[SONDE_TRACE_V1_GO_START_LOCAL] = TO(RUNNABLE, RUNNING),
	[SONDE_TRACE_V1_GO_START_LABEL] = TO(RUNNABLE, RUNNING),
	[SONDE_TRACE_V1_GO_END] = TO(RUNNING, NONE),
	[SONDE_TRACE_V1_GO_STOP] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_SCHED] = TO(RUNNING, RUNNABLE),
	[SONDE_TRACE_V1_GO_PREEMPT] = TO(RUNNING, RUNNABLE),
	[SONDE_TRACE_V1_GO_SLEEP] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_SEND] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_RECV] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_SELECT] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_SYNC] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_COND] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_NET] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_BLOCK_GC] = TO(RUNNING, WAITING),
	[SONDE_TRACE_V1_GO_SYSBLOCK] = TO(RUNNING, SYSCALL),
	/* Go keeps one status for both. */
	[SONDE_TRACE_V1_GO_UNBLOCK] = {SONDE_TRACE_G_WAITING, SONDE_TRACE_G_SYSCALL,
		SONDE_TRACE_G_RUNNABLE, true},
	[SONDE_TRACE_V1_GO_UNBLOCK_LOCAL] = {SONDE_TRACE_G_WAITING, SONDE_TRACE_G_SYSCALL,
		SONDE_TRACE_G_RUNNABLE, true},
	[SONDE_TRACE_V1_GO_SYSEXIT] = {SONDE_TRACE_G_SYSCALL, SONDE_TRACE_G_WAITING,
		SONDE_TRACE_G_RUNNABLE, true},
	[SONDE_TRACE_V1_GO_SYSEXIT_LOCAL] = {SONDE_TRACE_G_SYSCALL, SONDE_TRACE_G_WAITING,
		SONDE_TRACE_G_RUNNABLE, true},
	[SONDE_TRACE_V1_GO_WAITING] = TO(RUNNABLE, WAITING),
	[SONDE_TRACE_V1_GO_IN_SYSCALL] = TO(RUNNABLE, SYSCALL),
};

enum { MAX_QUEUE = 3 }; /* a beginning, a start, its label */

struct v1 {
	struct sonde_trace_v1_index index;
	struct sonde_trace_v1_merge merge;
	struct sonde_u64_vec futile; /* offsets of events that are left out, ascending */
	struct sonde_trace_v1_names names; /* of a 1.5 trace, by --exe */
	uint64_t reasons[64]; /* string ids */
	uint64_t stop_names[SONDE_ARRAY_LEN(stops_121)];
	uint64_t stop_name; /* of the stop of the world that is open */
	double ns_per_tick;
	int64_t min_ts;
	uint64_t n_next; /* calls, for the progress */
	bool started, ended, in_stop, in_gc;
	struct sonde_trace_place
		first_back; /* of the first event whose time contradicts the order */
	uint64_t gc_seq;
	uint32_t n_threads;
	/* Out of one event come up to three; they wait here. */
	struct sonde_trace_event queue[MAX_QUEUE];
	unsigned n_queued, next_queued;
};

/* --- damage --- */

static struct sonde_trace_place place_of(const struct sonde_trace_event *e)
{
	return (struct sonde_trace_place){
		e->offset, e->m, e->p, e->subject_g != NO_G ? e->subject_g : e->g, 0};
}

static const char *name_of(const struct sonde_trace_event *e)
{
	return sonde_trace_v1_specs[e->wire].name;
}

/* The event contradicts what was before it. */
static void contradict(struct sonde_trace_reader *r, struct sonde_trace_event *e,
	enum sonde_trace_damage_code code, const char *what)
{
	struct v1 *v = r->impl;
	struct sonde_trace_place at = place_of(e);
	if (code == SONDE_TRACE_DAMAGE_STATE && v->index.n_losses)
		code = SONDE_TRACE_DAMAGE_AFTER_LOSS;
	if (!(e->flags & SONDE_TRACE_FORCED))
		r->info.n_forced++;
	e->flags |= SONDE_TRACE_FORCED;
	sonde_trace_damage_add(r, code, &at, "%s: %s", name_of(e), what);
}

/* --- time --- */

static int64_t to_ns(const struct v1 *v, int64_t ts)
{
	double ns = (double)(int64_t)((uint64_t)ts - (uint64_t)v->min_ts) * v->ns_per_tick;
	if (ns >= 9223372036854775807.0)
		return INT64_MAX;
	return ns <= -9223372036854775808.0 ? INT64_MIN + 1 : (int64_t)ns;
}

/* The stream's first moment is known: so are the times of what the first pass found. */
static void start_clock(struct sonde_trace_reader *r, int64_t ts)
{
	struct v1 *v = r->impl;
	v->started = true;
	v->min_ts = ts;
	sonde_vec_foreach (late, &v->index.lates)
		r->damages.list.items[late->damage].ns = to_ns(v, late->ts);
	sonde_trace_v1_lates_deinit(&v->index.lates);
}

static void set_time(struct sonde_trace_reader *r, struct sonde_trace_event *e, int64_t ts)
{
	struct v1 *v = r->impl;
	e->ns = to_ns(v, ts);
	if (sonde_likely(e->ns >= r->last_ns))
		return;
	int64_t back;
	if (__builtin_sub_overflow(r->last_ns, e->ns, &back))
		back = INT64_MAX;
	struct sonde_trace_place at = place_of(e);
	sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_TIME, &at,
		"%s at %" PRId64 " ns stands behind an event at %" PRId64 " ns", name_of(e), e->ns,
		r->last_ns);
	r->info.max_clamp_ns = sonde_max(r->info.max_clamp_ns, back);
	if (!r->info.n_clamped++)
		v->first_back = at;
	e->ns = r->last_ns;
	e->flags |= SONDE_TRACE_CLAMPED;
}

/* --- state --- */

/* The subject's status by the table. */
static void change_g(struct sonde_trace_reader *r, struct sonde_trace_event *e,
	const struct change *ch, uint32_t slot, bool forced)
{
	static const char *const was[] = {"there is no such goroutine", "the goroutine is runnable",
		"the goroutine runs", "the goroutine is in a system call", "the goroutine waits",
		"the goroutine is in an unknown state"};
	if (slot == NO_SLOT) {
		contradict(r, e, SONDE_TRACE_DAMAGE_STATE, "no goroutine is known to run there");
		return;
	}
	struct sonde_trace_g *g = &r->state.gs.items[slot];
	e->subject_g = g->id;
	e->subject_g_slot = slot;
	e->g_before = g->status;
	e->g_after = ch->after;
	if (sonde_unlikely(forced || (g->status != ch->before && g->status != ch->before_too))) {
		bool unordered = forced && !((struct v1 *)r->impl)->index.n_losses;
		contradict(r, e,
			unordered ? SONDE_TRACE_DAMAGE_UNORDERED : SONDE_TRACE_DAMAGE_STATE,
			was[sonde_min(g->status, 5)]);
	}
	g->status = ch->after;
}

static void start_proc(struct sonde_trace_reader *r, struct sonde_trace_event *e,
	struct sonde_trace_v1_cursor *c, uint64_t thread)
{
	struct v1 *v = r->impl;
	struct sonde_trace_state *s = &r->state;
	c->m = thread;
	c->m_slot = sonde_trace_state_find_m(s, thread);
	if (c->m_slot == NO_SLOT && v->n_threads < MAX_THREADS) {
		c->m_slot = sonde_trace_state_add_m(s, thread);
		v->n_threads++;
	}
	e->m = thread;
	e->m_slot = c->m_slot;
	e->args[0] = c->p;
	e->args[1] = 0;
	if (c->p_slot == NO_SLOT)
		return;
	struct sonde_trace_p *p = &s->ps.items[c->p_slot];
	e->subject_p = c->p;
	e->subject_p_slot = c->p_slot;
	e->p_before = p->status;
	if (p->status == SONDE_TRACE_P_RUNNING)
		contradict(r, e, SONDE_TRACE_DAMAGE_STATE, "the processor runs already");
	e->p_after = p->status = SONDE_TRACE_P_RUNNING;
	if (c->m_slot != NO_SLOT)
		s->ms.items[c->m_slot].p_slot = c->p_slot;
}

static void stop_proc(
	struct sonde_trace_reader *r, struct sonde_trace_event *e, struct sonde_trace_v1_cursor *c)
{
	struct sonde_trace_state *s = &r->state;
	if (c->m_slot != NO_SLOT && s->ms.items[c->m_slot].p_slot == c->p_slot)
		s->ms.items[c->m_slot].p_slot = NO_SLOT;
	c->m = NO_G;
	c->m_slot = NO_SLOT;
	if (c->p_slot == NO_SLOT)
		return;
	struct sonde_trace_p *p = &s->ps.items[c->p_slot];
	e->subject_p = c->p;
	e->subject_p_slot = c->p_slot;
	e->p_before = p->status;
	if (p->status != SONDE_TRACE_P_RUNNING)
		contradict(r, e, SONDE_TRACE_DAMAGE_STATE, "the processor does not run");
	else if (c->last_g)
		contradict(r, e, SONDE_TRACE_DAMAGE_STATE, "a goroutine still runs there");
	e->p_after = p->status = SONDE_TRACE_P_IDLE;
}

/* Open or close a range. bits NULL: it cannot be told whose it is. */
static void range(struct sonde_trace_reader *r, struct sonde_trace_event *e, uint8_t *bits,
	enum sonde_trace_range bit, bool opens)
{
	if (!bits)
		return;
	bool is_open = *bits & bit;
	if (opens && is_open)
		contradict(r, e, SONDE_TRACE_DAMAGE_RANGE, "the one before it has not ended");
	/* A mark assist may have begun before the trace. */
	if (!opens && !is_open && bit != SONDE_TRACE_RANGE_MARK_ASSIST)
		contradict(r, e, SONDE_TRACE_DAMAGE_RANGE, "none has begun");
	*bits = opens ? *bits | bit : *bits & ~bit;
}

static void stop_the_world(struct sonde_trace_reader *r, struct sonde_trace_event *e,
	const struct sonde_trace_v1_raw *raw, uint8_t *p_ranges)
{
	struct v1 *v = r->impl;
	bool begins = raw->record->type == SONDE_TRACE_V1_STW_START;
	uint64_t kind = begins && r->info.version >= 10 ? raw->args[0] : 0;
	uint8_t global = v->in_stop ? SONDE_TRACE_RANGE_STW : 0;
	if (begins) {
		size_t n = r->info.version >= 21 ? SONDE_ARRAY_LEN(stops_121) : 2;
		if (kind >= n && n == 2)
			contradict(r, e, SONDE_TRACE_DAMAGE_RANGE, "of an unknown kind");
		/* Of an unknown kind: "unknown", which is the first in 1.21 and the third before. */
		v->stop_name = v->stop_names[kind < n ? kind : n == 2 ? 2 : 0];
	}
	/* Before 1.10 each processor had its own. */
	range(r, e, r->info.version < 10 ? p_ranges : &global, SONDE_TRACE_RANGE_STW, begins);
	v->in_stop = begins;
	e->args[0] = v->stop_name;
	e->args[1] = 0;
}

static void collect(struct sonde_trace_reader *r, struct sonde_trace_event *e, uint64_t seq,
	uint64_t stack, bool begins)
{
	struct v1 *v = r->impl;
	if (begins == v->in_gc)
		contradict(r, e, SONDE_TRACE_DAMAGE_RANGE,
			begins ? "the one before it has not ended" : "none has begun");
	v->in_gc = begins;
	r->state.gc = begins ? SONDE_TRACE_GC_ON : SONDE_TRACE_GC_OFF;
	if (begins)
		r->state.gc_seq = seq;
	e->args[0] = r->state.gc_seq;
	e->args[1] = stack;
}

static struct sonde_error *begin_task(struct sonde_trace_reader *r, struct sonde_trace_event *e)
{
	uint32_t slot = sonde_trace_state_find_task(&r->state, e->args[0]);
	uint32_t name = sonde_trace_intern(r, e->args[2]);
	if (slot != NO_SLOT)
		contradict(r, e, SONDE_TRACE_DAMAGE_TASK, "a task of this id is open");
	else
		slot = sonde_trace_state_add_task(&r->state, e->args[0]);
	if (slot == NO_SLOT || name == UINT32_MAX)
		return &sonde_enomem;
	r->state.tasks.items[slot].parent = e->args[1];
	r->state.tasks.items[slot].name = name;
	return NULL;
}

static void end_task(struct sonde_trace_reader *r, struct sonde_trace_event *e)
{
	uint32_t slot = sonde_trace_state_find_task(&r->state, e->args[0]);
	e->args[2] = SONDE_TRACE_NO_ID;
	e->args[3] = 0;
	if (slot == NO_SLOT)
		return; /* it began before the trace */
	e->args[2] = r->state.tasks.items[slot].parent;
	e->args[3] = SONDE_TRACE_STRING_INTERNED | r->state.tasks.items[slot].name;
	sonde_trace_state_remove_task(&r->state, slot);
}

static struct sonde_error *region(
	struct sonde_trace_reader *r, struct sonde_trace_event *e, uint32_t slot, uint64_t mode)
{
	uint32_t name = sonde_trace_intern(r, e->args[1]);
	if (name == UINT32_MAX)
		return &sonde_enomem;
	e->kind = mode ? SONDE_TRACE_USER_REGION_END : SONDE_TRACE_USER_REGION_BEGIN;
	if (mode > 1)
		contradict(r, e, SONDE_TRACE_DAMAGE_REGION, "neither a beginning nor an end");
	if (slot == NO_SLOT)
		return NULL;
	if (!mode)
		return sonde_trace_state_open_region(&r->state, slot, e->args[0], name)
			? NULL
			: &sonde_enomem;
	switch (sonde_trace_state_close_region(&r->state, slot, e->args[0], name)) {
	case SONDE_TRACE_REGION_INNER_OPEN:
		contradict(r, e, SONDE_TRACE_DAMAGE_REGION, "regions within it are open");
		break;
	case SONDE_TRACE_REGION_MISMATCH:
		contradict(
			r, e, SONDE_TRACE_DAMAGE_REGION, "the innermost that is open is another");
		break;
	default:
		break;
	}
	return NULL;
}

/* --- events --- */

/* Where the event happened. */
static void set_context(struct sonde_trace_reader *r, struct sonde_trace_event *e,
	const struct sonde_trace_v1_raw *raw, uint32_t *runs_slot)
{
	struct v1 *v = r->impl;
	struct sonde_trace_v1_cursor *c = raw->cursor;
	uint8_t type = raw->record->type;
	e->m = e->p = e->g = NO_G;
	e->m_slot = e->p_slot = e->g_slot = *runs_slot = NO_SLOT;
	if (sonde_unlikely(!c)) {
		uint32_t *proc = sonde_u32_map_find(&v->index.proc_of_id, raw->args[1]);
		e->p = raw->args[1];
		e->p_slot = proc ? v->merge.cursors[*proc].p_slot : NO_SLOT;
		e->g = raw->g ? raw->g : NO_G;
		e->g_slot = raw->slot;
		return;
	}
	if (type == SONDE_TRACE_V1_GO_SYSEXIT || type == SONDE_TRACE_V1_GO_SYSEXIT_LOCAL)
		return; /* on no processor */
	e->p = c->p;
	e->p_slot = c->p_slot;
	e->m = c->m;
	e->m_slot = c->m_slot;
	bool starts = type == SONDE_TRACE_V1_GO_START || type == SONDE_TRACE_V1_GO_START_LOCAL ||
		type == SONDE_TRACE_V1_GO_START_LABEL;
	if (starts || !raw->g || type == SONDE_TRACE_V1_GO_WAITING ||
		type == SONDE_TRACE_V1_GO_IN_SYSCALL)
		return;
	e->g = raw->g;
	/* The merge's slot is that of the goroutine it is about, which may be another. */
	const struct sonde_trace_gs *gs = &r->state.gs;
	if (raw->slot < gs->n && gs->items[raw->slot].id == raw->g)
		e->g_slot = raw->slot;
	else if (c->last_slot < gs->n && gs->items[c->last_slot].id == raw->g &&
		gs->items[c->last_slot].status != SONDE_TRACE_G_NONE)
		e->g_slot = c->last_slot;
	else
		e->g_slot = sonde_trace_state_find_g(&r->state, raw->g);
	*runs_slot = e->g_slot;
}

/* The arguments in the catalogue's order. */
static void set_args(
	const struct v1 *v, struct sonde_trace_event *e, const struct sonde_trace_v1_raw *raw)
{
	const uint64_t *args = raw->args;
	bool old = v->index.format.version < 7;
	switch (raw->record->type) {
	case SONDE_TRACE_V1_GO_STOP ... SONDE_TRACE_V1_GO_BLOCK:
	case SONDE_TRACE_V1_GO_BLOCK_SEND ... SONDE_TRACE_V1_GO_BLOCK_NET:
	case SONDE_TRACE_V1_GO_BLOCK_GC:
		e->args[1] = args[0];
		/* fallthrough */
	case SONDE_TRACE_V1_GO_SYSBLOCK:
		e->args[0] = v->reasons[raw->record->type];
		break;
	case SONDE_TRACE_V1_GO_START:
		e->args[0] = args[0];
		e->args[1] = old ? 0 : args[1];
		break;
	case SONDE_TRACE_V1_GO_UNBLOCK:
		e->args[0] = args[0];
		e->args[1] = old ? 0 : args[1];
		e->args[2] = args[old ? 1 : 2];
		break;
	case SONDE_TRACE_V1_GO_UNBLOCK_LOCAL:
		e->args[0] = args[0];
		e->args[2] = args[1];
		break;
	case SONDE_TRACE_V1_GO_SYSCALL:
		e->args[1] = args[0];
		break;
	case SONDE_TRACE_V1_GO_CREATE:
		e->args[0] = args[0];
		e->args[1] = old ? ENTRY | (args[1] & ~ENTRY) : args[1];
		e->args[2] = args[2];
		break;
	case SONDE_TRACE_V1_GO_WAITING:
	case SONDE_TRACE_V1_GO_IN_SYSCALL:
		e->args[0] = args[0];
		e->args[1] = NO_G;
		e->args[2] = changes[raw->record->type].after;
		break;
	case SONDE_TRACE_V1_USER_REGION:
		e->args[0] = args[0];
		e->args[1] = args[2];
		e->args[2] = args[3];
		break;
	case SONDE_TRACE_V1_USER_LOG:
		e->args[0] = args[0];
		e->args[1] = args[1];
		e->args[2] = TEXT | (uint64_t)(raw->record->text - v->index.format.data);
		e->args[3] = args[2];
		break;
	case SONDE_TRACE_V1_CPU_SAMPLE:
		e->args[0] = args[3];
		break;
	case SONDE_TRACE_V1_GC_SWEEP_DONE:
		if (v->index.format.version < 9)
			break;
		e->args[0] = args[0];
		e->args[1] = args[1];
		break;
	case SONDE_TRACE_V1_GC_START:
	case SONDE_TRACE_V1_STW_START:
	case SONDE_TRACE_V1_PROC_START:
		break; /* by their own functions */
	default: {
		unsigned n = v->index.format.n_args[raw->record->type] - v->index.format.n_before;
		for (unsigned i = 0; i < n && i < SONDE_TRACE_MAX_ARGS; i++)
			e->args[i] = args[i];
	}
	}
}

/* What is not a matter of a goroutine's status. */
static struct sonde_error *apply_rest(struct sonde_trace_reader *r, struct sonde_trace_event *e,
	const struct sonde_trace_v1_raw *raw, uint32_t runs_slot)
{
	struct sonde_trace_state *s = &r->state;
	uint8_t *p_ranges = e->p_slot != NO_SLOT ? &s->ps.items[e->p_slot].ranges : NULL;
	uint8_t *g_ranges = runs_slot != NO_SLOT ? &s->gs.items[runs_slot].ranges : NULL;
	bool old = r->info.version < 7;
	switch (raw->record->type) {
	case SONDE_TRACE_V1_PROC_START:
		start_proc(r, e, raw->cursor, raw->args[0]);
		break;
	case SONDE_TRACE_V1_PROC_STOP:
		stop_proc(r, e, raw->cursor);
		break;
	case SONDE_TRACE_V1_GC_START:
		collect(r, e, old ? 0 : raw->args[0], raw->args[old ? 0 : 1], true);
		break;
	case SONDE_TRACE_V1_GC_DONE:
		collect(r, e, 0, 0, false);
		break;
	case SONDE_TRACE_V1_STW_START:
	case SONDE_TRACE_V1_STW_DONE:
		stop_the_world(r, e, raw, p_ranges);
		break;
	case SONDE_TRACE_V1_GC_SWEEP_START:
		range(r, e, p_ranges, SONDE_TRACE_RANGE_SWEEP, true);
		break;
	case SONDE_TRACE_V1_GC_SWEEP_DONE:
		range(r, e, p_ranges, SONDE_TRACE_RANGE_SWEEP, false);
		break;
	case SONDE_TRACE_V1_GC_MARK_ASSIST_START:
		range(r, e, g_ranges, SONDE_TRACE_RANGE_MARK_ASSIST, true);
		break;
	case SONDE_TRACE_V1_GC_MARK_ASSIST_DONE:
		range(r, e, g_ranges, SONDE_TRACE_RANGE_MARK_ASSIST, false);
		break;
	case SONDE_TRACE_V1_GO_SYSCALL:
		/* No change of status: it is known to be a long one by its GoSysBlock only. */
		e->subject_g = e->g;
		e->subject_g_slot = runs_slot;
		e->g_before = e->g_after =
			runs_slot != NO_SLOT ? s->gs.items[runs_slot].status : SONDE_TRACE_G_NONE;
		break;
	case SONDE_TRACE_V1_USER_TASK_CREATE:
		return begin_task(r, e);
	case SONDE_TRACE_V1_USER_TASK_END:
		end_task(r, e);
		break;
	case SONDE_TRACE_V1_USER_REGION:
		return region(r, e, runs_slot, raw->args[1]);
	default:
		break;
	}
	return NULL;
}

/* Stacks that the file does not have, where it is known to be incomplete or not. */
static void check_stack(struct sonde_trace_reader *r, const struct sonde_trace_event *e)
{
	struct v1 *v = r->impl;
	uint64_t id = sonde_trace_event_stack(e);
	if (sonde_likely(!id || sonde_trace_v1_table_find(&v->index.stacks, id) >= 0))
		return;
	struct sonde_trace_place at = place_of(e);
	/* Where all are missing they are one damage. */
	if (!v->index.stacks.entries.n && r->damages.counts[SONDE_TRACE_DAMAGE_UNKNOWN_STACK])
		return;
	sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_UNKNOWN_STACK, &at,
		"%s: stack %" PRIu64 " of %zu", name_of(e), id, v->index.stacks.entries.n);
}

/* The same for the string of a label, a task, a region or a log's key. */
static void check_string(
	struct sonde_trace_reader *r, const struct sonde_trace_event *e, uint64_t id)
{
	struct v1 *v = r->impl;
	if (!id || sonde_trace_v1_table_find(&v->index.strings, id) >= 0)
		return;
	struct sonde_trace_place at = place_of(e);
	sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_UNKNOWN_STRING, &at,
		"%s: string %" PRIu64 " of %zu", name_of(e), id, v->index.strings.entries.n);
}

/* Where a new goroutine begins is the one frame of its own stack. */
static void check_entry(struct sonde_trace_reader *r, const struct sonde_trace_event *e)
{
	struct v1 *v = r->impl;
	struct sonde_trace_place at = place_of(e);
	bool has_stacks = v->index.format.version >= 7 && v->index.stacks.entries.n;
	if (has_stacks &&
		sonde_unlikely(sonde_trace_v1_table_find(&v->index.stacks, e->args[1]) < 0))
		sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_NO_ENTRY, &at,
			"goroutine %" PRIu64 " begins without a stack", e->args[0]);
}

static void check_ids(
	struct sonde_trace_reader *r, const struct sonde_trace_event *e, const uint64_t *args)
{
	check_stack(r, e);
	if (sonde_likely(
		    e->wire != SONDE_TRACE_V1_GO_CREATE && e->wire < SONDE_TRACE_V1_GO_START_LABEL))
		return;
	switch (e->wire) {
	case SONDE_TRACE_V1_GO_CREATE:
		check_entry(r, e);
		break;
	case SONDE_TRACE_V1_GO_START_LABEL:
	case SONDE_TRACE_V1_USER_TASK_CREATE:
	case SONDE_TRACE_V1_USER_REGION:
		check_string(r, e, args[2]);
		break;
	case SONDE_TRACE_V1_USER_LOG:
		check_string(r, e, args[1]);
		break;
	default:
		break;
	}
}

/* A processor shows itself: it gets its slot. */
static struct sonde_error *meet_proc(struct sonde_trace_reader *r, struct sonde_trace_v1_cursor *c)
{
	c->p_slot = sonde_trace_state_add_p(&r->state, c->p);
	if (c->p_slot == NO_SLOT)
		return &sonde_enomem;
	r->state.ps.items[c->p_slot].status = SONDE_TRACE_P_IDLE;
	return NULL;
}

/* A new event that says nothing. Field by field: zeroing it whole costs a third of all. */
static inline struct sonde_trace_event *queue(struct v1 *v)
{
	struct sonde_trace_event *e = &v->queue[v->n_queued++];
	e->kind = e->wire = e->flags = 0;
	e->g_before = e->g_after = SONDE_TRACE_G_NONE;
	e->p_before = e->p_after = SONDE_TRACE_P_NONE;
	e->generation = 1;
	e->m = e->p = e->g = NO_G;
	e->m_slot = e->p_slot = e->g_slot = NO_SLOT;
	e->subject_g = e->subject_p = NO_G;
	e->subject_g_slot = e->subject_p_slot = NO_SLOT;
	for (int i = 0; i < SONDE_TRACE_MAX_ARGS; i++)
		e->args[i] = 0;
	e->offset = 0;
	return e;
}

/* The label of a goroutine that starts is an event of its own. */
static void queue_label(struct v1 *v, const struct sonde_trace_event *start, uint64_t label)
{
	struct sonde_trace_event *e = queue(v);
	*e = *start;
	e->kind = SONDE_TRACE_GO_LABEL;
	e->wire = 0;
	e->flags = SONDE_TRACE_MADE;
	e->g = start->subject_g;
	e->g_slot = start->subject_g_slot;
	e->subject_g = NO_G;
	e->subject_g_slot = NO_SLOT;
	e->g_before = e->g_after = SONDE_TRACE_G_NONE;
	memset(e->args, 0, sizeof(e->args));
	e->args[0] = label;
	e->offset = 0;
}

static struct sonde_error *convert(
	struct sonde_trace_reader *r, const struct sonde_trace_v1_raw *raw)
{
	struct v1 *v = r->impl;
	uint8_t type = raw->record->type;
	uint32_t runs_slot;
	if (raw->cursor && sonde_unlikely(raw->cursor->p_slot == NO_SLOT) &&
		raw->cursor->p != SONDE_TRACE_NO_ID)
		SONDE_TRY(meet_proc(r, raw->cursor));
	if (sonde_unlikely(!v->started))
		start_clock(r, raw->ts);
	struct sonde_trace_event *e = queue(v);
	e->kind = sonde_trace_v1_specs[type].kind;
	e->wire = type;
	e->offset = raw->offset;
	set_context(r, e, raw, &runs_slot);
	set_args(v, e, raw);
	set_time(r, e, raw->ts);
	const struct change *ch = &changes[type];
	if (ch->changes) {
		change_g(r, e, ch, raw->slot, raw->forced);
		if (ch->after == SONDE_TRACE_G_RUNNING && sonde_unlikely(raw->cursor->displaced_g))
			contradict(r, e, SONDE_TRACE_DAMAGE_STATE,
				"another goroutine runs on the processor");
	} else {
		if (sonde_unlikely(raw->forced))
			contradict(r, e,
				v->index.n_losses ? SONDE_TRACE_DAMAGE_AFTER_LOSS
						  : SONDE_TRACE_DAMAGE_UNORDERED,
				"its turn did not come");
		SONDE_TRY(apply_rest(r, e, raw, runs_slot));
	}
	if (type == SONDE_TRACE_V1_GO_SYSEXIT && !raw->early && raw->args[2] &&
		sonde_unlikely((int64_t)raw->args[2] != raw->ts))
		contradict(r, e, SONDE_TRACE_DAMAGE_UNORDERED,
			"its real time is not within its system call: it stays where it stands");
	check_ids(r, e, raw->args);
	if (type == SONDE_TRACE_V1_GO_START_LABEL) {
		e->args[2] = raw->args[2];
		queue_label(v, e, raw->args[2]);
	}
	return NULL;
}

static bool is_futile(const struct v1 *v, uint64_t offset)
{
	size_t low = 0, n = v->futile.n;
	while (n) {
		size_t half = n / 2;
		if (v->futile.items[low + half] < offset) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low < v->futile.n && v->futile.items[low] == offset;
}

/* The beginning and the end of all. */
static void queue_sync(struct sonde_trace_reader *r, uint64_t n, int64_t ns)
{
	struct sonde_trace_event *e = queue(r->impl);
	e->kind = SONDE_TRACE_SYNC;
	e->flags = SONDE_TRACE_MADE;
	e->ns = ns;
	e->args[0] = n;
}

static struct sonde_error *finish(struct sonde_trace_reader *r)
{
	struct v1 *v = r->impl;
	if (v->ended || !v->started)
		return NULL;
	v->ended = true;
	/* What Go calls "time stamps out of order", and reads nothing of. */
	if (r->info.n_clamped)
		sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_UNORDERED, &v->first_back,
			"the times of %" PRIu64 " events contradict their order, by up to %" PRId64
			" ns; the order was kept",
			r->info.n_clamped, r->info.max_clamp_ns);
	sonde_trace_damage_add_open(r, r->info.size_bytes);
	queue_sync(r, 2, r->last_ns);
	return NULL;
}

/* Fill the empty queue. It stays empty at the end. */
static struct sonde_error *fill(struct sonde_trace_reader *r)
{
	struct v1 *v = r->impl;
	v->n_queued = v->next_queued = 0;
	for (;;) {
		if (sonde_unlikely(++v->n_next % PROGRESS_EVENTS == 0) &&
			!sonde_log_progress(
				r->options.log, "ordering", r->info.n_events, v->index.n_events))
			return sonde_error_new(
				SONDE_INTERRUPTED, "%s: interrupted", r->source->name);
		const struct sonde_trace_v1_raw *raw = sonde_trace_v1_merge_next(&v->merge);
		if (v->merge.no_memory)
			return &sonde_enomem;
		if (!raw)
			return finish(r);
		if (sonde_unlikely(v->futile.n) && is_futile(v, raw->offset))
			continue;
		if (sonde_unlikely(!v->started)) {
			r->last_ns = 0;
			queue_sync(r, 1, 0);
			start_clock(r, raw->ts);
		}
		return convert(r, raw);
	}
}

static struct sonde_error *v1_next(
	struct sonde_trace_reader *r, const struct sonde_trace_event **ret)
{
	struct v1 *v = r->impl;
	if (v->next_queued == v->n_queued) {
		SONDE_TRY(fill(r));
		if (!v->n_queued) {
			*ret = NULL;
			return NULL;
		}
	}
	const struct sonde_trace_event *e = &v->queue[v->next_queued++];
	r->last_ns = e->ns;
	r->info.n_events += !(e->flags & SONDE_TRACE_MADE);
	*ret = e;
	return NULL;
}

/* --- opening --- */

static struct sonde_error *intern_texts(struct sonde_trace_reader *r)
{
	struct v1 *v = r->impl;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(reasons); i++) {
		uint32_t id =
			reasons[i] ? sonde_trace_intern_text(r, reasons[i], strlen(reasons[i])) : 0;
		if (id == UINT32_MAX)
			return &sonde_enomem;
		v->reasons[i] = id ? SONDE_TRACE_STRING_INTERNED | id : 0;
	}
	bool is_121 = r->info.version >= 21;
	size_t n = is_121 ? SONDE_ARRAY_LEN(stops_121) : SONDE_ARRAY_LEN(stops);
	for (size_t i = 0; i < n; i++) {
		const char *text = is_121 ? stops_121[i] : stops[i];
		uint32_t id = sonde_trace_intern_text(r, text, strlen(text));
		if (id == UINT32_MAX)
			return &sonde_enomem;
		v->stop_names[i] = SONDE_TRACE_STRING_INTERNED | id;
	}
	return NULL;
}

static struct sonde_error *v1_open(struct sonde_trace_reader *r)
{
	if (r->options.follow)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"%s: a go 1.%u trace cannot be followed: its clock frequency, its stacks "
			"and the "
			"places of its events in time are known at its end only",
			r->source->name, r->info.version);
	struct v1 *v = sonde_new(struct v1);
	if (!v)
		return &sonde_enomem;
	r->impl = v;
	SONDE_TRY(sonde_trace_source_spool(r->source));
	r->info.size_bytes = r->info.read_bytes = r->source->len;
	r->info.largest_generation_bytes = r->source->len;
	r->info.n_generations = 1;
	SONDE_TRY(sonde_trace_v1_index_make(&v->index, r));
	v->ns_per_tick = v->index.ticks_per_sec ? 1e9 / (double)v->index.ticks_per_sec : 1.0;
	r->info.ns_per_tick = v->ns_per_tick;
	SONDE_TRY(intern_texts(r));
	if (v->index.n_futile)
		SONDE_TRY(sonde_trace_v1_futile_find(&v->index, &v->futile));
	if (r->info.version < 7 && r->options.exe)
		SONDE_TRY(sonde_trace_v1_names_make(r, &v->index, r->options.exe, &v->names));
	return sonde_trace_v1_merge_init(&v->merge, &v->index, &r->state, true);
}

static void v1_free(struct sonde_trace_reader *r)
{
	struct v1 *v = r->impl;
	if (!v)
		return;
	sonde_trace_v1_merge_deinit(&v->merge);
	sonde_trace_v1_index_deinit(&v->index);
	sonde_u64_vec_deinit(&v->futile);
	sonde_trace_v1_names_deinit(&v->names);
	free(v);
}

/* --- strings and stacks --- */

static const char *v1_string(const struct sonde_trace_reader *r, uint64_t id, size_t *len)
{
	const struct v1 *v = r->impl;
	const struct sonde_trace_v1_format *f = &v->index.format;
	const char *text;
	uint64_t offset = id ^ TEXT;
	*len = 0;
	if (offset < (uint64_t)(f->end - f->data))
		return sonde_trace_v1_text(f->data + offset, f->end, &text, len) ? text : NULL;
	ssize_t i = sonde_trace_v1_table_find(&v->index.strings, id);
	if (i < 0)
		return NULL;
	const uint8_t *p = f->data + v->index.strings.entries.items[i].offset;
	return sonde_trace_v1_decode_string(p, f->end, &id, &text, len) ? text : NULL;
}

static const struct sonde_trace_v1_name *name_at(const struct v1 *v, uint64_t pc)
{
	size_t low = 0, n = v->names.n;
	while (n) {
		size_t half = n / 2;
		if (v->names.items[low + half].pc < pc) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low < v->names.n && v->names.items[low].pc == pc ? &v->names.items[low] : NULL;
}

/* By --exe, where there is one. */
static void name_frame(const struct v1 *v, struct sonde_trace_frame *frame)
{
	const struct sonde_trace_v1_name *name = name_at(v, frame->pc);
	if (!name)
		return;
	frame->func = SONDE_TRACE_STRING_INTERNED | name->func;
	frame->file = SONDE_TRACE_STRING_INTERNED | name->file;
	frame->line = name->line;
}

static size_t v1_stack(const struct sonde_trace_reader *r, uint64_t id,
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES])
{
	const struct v1 *v = r->impl;
	const struct sonde_trace_v1_format *f = &v->index.format;
	ssize_t at = sonde_trace_v1_table_find(&v->index.stacks, id);
	uint64_t n;
	const uint8_t *p;
	if (f->version < 7 && (id & ENTRY) == ENTRY && at < 0) {
		/* One more, as for a return address. */
		frames[0] = (struct sonde_trace_frame){.pc = (id & ~ENTRY) + 1};
		name_frame(v, &frames[0]);
		return 1;
	}
	if (at < 0 ||
		!sonde_trace_v1_decode_stack(
			f, f->data + v->index.stacks.entries.items[at].offset, f->end, &id, &n, &p))
		return 0;
	n = sonde_min(n, (uint64_t)SONDE_TRACE_MAX_FRAMES);
	for (uint64_t i = 0; i < n; i++) {
		struct sonde_trace_frame *frame = &frames[i];
		*frame = (struct sonde_trace_frame){0};
		p = sonde_trace_v1_varint(p, f->end, &frame->pc);
		if (f->version >= 7) {
			p = p ? sonde_trace_v1_varint(p, f->end, &frame->func) : NULL;
			p = p ? sonde_trace_v1_varint(p, f->end, &frame->file) : NULL;
			p = p ? sonde_trace_v1_varint(p, f->end, &frame->line) : NULL;
		}
		if (!p)
			return i;
		if (f->version < 7)
			name_frame(v, frame);
	}
	return n;
}

static uint32_t *cache_at(struct sonde_trace_v1_table *t, uint64_t id)
{
	ssize_t i = sonde_trace_v1_table_find(t, id);
	if (i >= 0 && !t->caches)
		t->caches = sonde_new_array(uint32_t, t->entries.n);
	return i >= 0 && t->caches ? &t->caches[i] : NULL;
}

static uint32_t *v1_string_cache(struct sonde_trace_reader *r, uint64_t id)
{
	struct v1 *v = r->impl;
	return cache_at(&v->index.strings, id);
}

static uint32_t *v1_stack_cache(struct sonde_trace_reader *r, uint64_t id)
{
	struct v1 *v = r->impl;
	return cache_at(&v->index.stacks, id);
}

const struct sonde_trace_ops sonde_trace_v1_ops = {
	.open = v1_open,
	.next = v1_next,
	.string = v1_string,
	.stack = v1_stack,
	.string_cache = v1_string_cache,
	.stack_cache = v1_stack_cache,
	.free = v1_free,
};
