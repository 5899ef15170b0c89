#include "trace/repair.h"

#include <inttypes.h>

#include "base/buf.h"
#include "traceread/v2.h"

#define NO_ID SONDE_TRACE_NO_ID
#define NO_SLOT SONDE_TRACE_NO_SLOT

/*
 * Threads and processors that no program has, on which goroutines are moved that nothing else moves: Go's thread ids are
 * those of the kernel (at most 2^22), its processors at most 2^20 or so.
 */
static const uint64_t HELPER_M = UINT64_C(1) << 40;
static const uint64_t FIRST_LENT_P = UINT64_C(1) << 30;

enum {
	MAX_PENDING = 64, /* invented for one event; more are needed by none */
	MAX_LENT_PS = 1024,
	FIRST_BUFFER_BYTES = 64,
	MAX_EXACT_BITS = 53, /* of a double: what Go multiplies ticks in */
};

/* A thread's batch that is being filled. */
struct thread {
	uint64_t m;
	uint8_t *bytes;
	uint32_t n, cap;
	int64_t first_ns, last_ns; /* first_ns: in the head */
};
SONDE_DEFINE_VEC(threads, struct thread)

struct pending {
	uint64_t m;
	uint64_t args[SONDE_TRACE_MAX_ARGS]; /* as they are written */
	uint8_t kind;
};

struct repairing {
	struct sonde_trace_reader *r;
	struct sonde_trace_v2 *v; /* the reader's */
	sonde_trace_repair_write write;
	void *write_ctx;
	bool failed; /* to write */
	struct sonde_trace_repair *ret;

	/* The strict state of what is written: the reader's own handlers, never forced. */
	struct sonde_trace_reader strict_reader;
	struct sonde_trace_v2 strict;

	const struct sonde_trace_event *e; /* that is dealt with; NULL = none */
	struct pending pending[MAX_PENDING];
	unsigned n_pending;
	uint64_t n_lent_ps;
	int64_t last_ns; /* written */

	/* The generation. */
	bool rewriting; /* from the first damage on */
	bool in_generation;
	uint64_t gen; /* as it is written */
	uint64_t n_damages; /* before it */
	int64_t sync_ns;
	struct threads threads;
	struct sonde_u32_map thread_of_m; /* index + 1 */
	struct sonde_buf out, samples;
	int64_t steal_ns; /* of what the reader made in front of the event that comes next; 0 = nothing */
	int64_t clock_ns; /* of the last clock snapshot */
	bool have_clock;
	struct sonde_error *error; /* out of memory */
};

void sonde_trace_repair_deinit(struct sonde_trace_repair *repair)
{
	sonde_trace_repair_places_deinit(&repair->places);
	*repair = (struct sonde_trace_repair){0};
}

/* --- the strict state --- */

static const char *no_string(const struct sonde_trace_reader *r, uint64_t id, size_t *len)
{
	(void)r;
	(void)id;
	*len = 0;
	return NULL; /* none but interned ones */
}

static uint32_t *no_cache(struct sonde_trace_reader *r, uint64_t id)
{
	(void)r;
	(void)id;
	return NULL;
}

static const struct sonde_trace_ops strict_ops = {
	.string = no_string, .string_cache = no_cache, .stack_cache = no_cache};

static struct sonde_trace_state *state_of(struct repairing *x)
{
	return &x->strict_reader.state;
}

static struct sonde_trace_g *find_g(struct repairing *x, uint64_t id)
{
	uint32_t slot = sonde_trace_state_find_g(state_of(x), id);
	return slot == NO_SLOT ? NULL : &state_of(x)->gs.items[slot];
}

static struct sonde_trace_p *find_p(struct repairing *x, uint64_t id)
{
	uint32_t slot = sonde_trace_state_find_p(state_of(x), id);
	return slot == NO_SLOT ? NULL : &state_of(x)->ps.items[slot];
}

/* The goroutine and the processor that a thread has; NULL = none. */
static struct sonde_trace_g *g_on(struct repairing *x, uint64_t m)
{
	uint32_t slot = m == NO_ID ? NO_SLOT : sonde_trace_state_find_m(state_of(x), m);
	slot = slot == NO_SLOT ? NO_SLOT : state_of(x)->ms.items[slot].g_slot;
	return slot == NO_SLOT ? NULL : &state_of(x)->gs.items[slot];
}

static struct sonde_trace_p *p_on(struct repairing *x, uint64_t m)
{
	uint32_t slot = m == NO_ID ? NO_SLOT : sonde_trace_state_find_m(state_of(x), m);
	slot = slot == NO_SLOT ? NO_SLOT : state_of(x)->ms.items[slot].p_slot;
	return slot == NO_SLOT ? NULL : &state_of(x)->ps.items[slot];
}

/* The thread that has it, or NO_ID. */
static uint64_t thread_with_g(struct repairing *x, uint64_t g)
{
	uint32_t slot = sonde_trace_state_find_g(state_of(x), g);
	sonde_vec_foreach (m, &state_of(x)->ms)
		if (slot != NO_SLOT && m->g_slot == slot)
			return m->id;
	return NO_ID;
}

static uint64_t thread_with_p(struct repairing *x, uint64_t p)
{
	uint32_t slot = sonde_trace_state_find_p(state_of(x), p);
	sonde_vec_foreach (m, &state_of(x)->ms)
		if (slot != NO_SLOT && m->p_slot == slot)
			return m->id;
	return NO_ID;
}

static bool out_of_memory(struct repairing *x)
{
	x->error = &sonde_enomem;
	return false;
}

/* The strict state's id of the text that a string id of the current generation has. */
static uint64_t text_id(struct repairing *x, uint64_t id)
{
	size_t len;
	const char *s = sonde_trace_string(x->r, id, &len);
	uint32_t interned = s ? sonde_trace_intern_text(&x->strict_reader, s, len) : 0;
	if (interned == UINT32_MAX)
		out_of_memory(x);
	return interned ? SONDE_TRACE_STRING_INTERNED | interned : 0;
}

/* Whether the strict state allows the event; if so it has changed. */
static bool allowed(struct repairing *x, uint64_t m, unsigned kind, const uint64_t *args)
{
	struct sonde_trace_state *s = state_of(x);
	struct sonde_trace_v2 *v = &x->strict;
	struct sonde_trace_event *e = &v->queue[0];
	uint32_t m_slot = m == NO_ID ? NO_SLOT : sonde_trace_state_find_m(s, m);
	if (m != NO_ID && m_slot == NO_SLOT) {
		m_slot = sonde_trace_state_add_m(s, m);
		if (m_slot == NO_SLOT)
			return out_of_memory(x);
	}
	const struct sonde_trace_g *g = g_on(x, m);
	const struct sonde_trace_p *p = p_on(x, m);
	*e = (struct sonde_trace_event){
		.kind = (uint8_t)kind,
		.m = m,
		.p = p ? p->id : NO_ID,
		.g = g ? g->id : NO_ID,
		.m_slot = m_slot,
		.p_slot = p ? (uint32_t)(p - s->ps.items) : NO_SLOT,
		.g_slot = g ? (uint32_t)(g - s->gs.items) : NO_SLOT,
		.subject_g = NO_ID,
		.subject_p = NO_ID,
		.subject_g_slot = NO_SLOT,
		.subject_p_slot = NO_SLOT,
	};
	memcpy(e->args, args, sizeof(e->args));
	if (kind == SONDE_TRACE_USER_TASK_BEGIN)
		e->args[2] = text_id(x, args[2]);
	if (kind == SONDE_TRACE_USER_REGION_BEGIN || kind == SONDE_TRACE_USER_REGION_END)
		e->args[1] = text_id(x, args[1]);
	v->nobody = (struct sonde_trace_m){NO_ID, NO_SLOT, NO_SLOT};
	v->try = (struct sonde_trace_v2_try){
		.v = v, .s = s, .e = e, .m_slot = m_slot, .gen = (uint32_t)x->gen};
	uint64_t misused = x->strict_reader.damages.counts[SONDE_TRACE_DAMAGE_REGION];
	bool ok = sonde_trace_v2_handlers[kind] &&
		sonde_trace_v2_handlers[kind](&v->try) == SONDE_TRACE_V2_OK;
	if (v->no_memory)
		return out_of_memory(x);
	return ok && misused == x->strict_reader.damages.counts[SONDE_TRACE_DAMAGE_REGION];
}

/* --- one event after the other --- */

static bool note(struct repairing *x, enum sonde_trace_repair_what what, unsigned kind)
{
	if (x->ret->counts[what][kind]++ || !x->e)
		return true;
	struct sonde_trace_repair_place place = {.what = (uint8_t)what,
		.kind = (uint8_t)kind,
		.offset = x->e->offset,
		.ns = x->e->ns,
		.m = x->e->m,
		.g = x->e->g};
	return sonde_trace_repair_places_push(&x->ret->places, place) || out_of_memory(x);
}

static bool announce_g(struct repairing *x, uint64_t m, uint64_t id);
static bool announce_p(struct repairing *x, uint64_t m, uint64_t id);

/* Sequence numbers as the strict state has them; what has none in this generation is announced. */
static bool number(struct repairing *x, uint64_t m, unsigned kind, uint64_t *args)
{
	const struct sonde_trace_state *s = state_of(x);
	const struct sonde_trace_g *g;
	const struct sonde_trace_p *p;
	switch (kind) {
	case SONDE_TRACE_GO_START:
	case SONDE_TRACE_GO_UNBLOCK:
	case SONDE_TRACE_GO_SWITCH:
	case SONDE_TRACE_GO_SWITCH_DESTROY:
		if (!announce_g(x, m, args[0]))
			return false;
		g = find_g(x, args[0]);
		args[1] = g->seq + UINT64_C(1);
		return true;
	case SONDE_TRACE_PROC_START:
	case SONDE_TRACE_PROC_STEAL:
		if (!announce_p(x, m, args[0]))
			return false;
		p = find_p(x, args[0]);
		args[1] = p->seq + UINT64_C(1);
		return true;
	case SONDE_TRACE_GO_SYSCALL_BEGIN:
		p = p_on(x, m);
		if (!p || !announce_p(x, m, p->id))
			return false;
		args[0] = p_on(x, m)->seq + UINT64_C(1);
		return true;
	case SONDE_TRACE_GC_ACTIVE:
	case SONDE_TRACE_GC_BEGIN:
	case SONDE_TRACE_GC_END:
		if (s->gc != SONDE_TRACE_GC_UNDETERMINED)
			args[0] = s->gc_seq + 1;
		return true;
	default:
		return true;
	}
}

/* Append the event if it is allowed. */
static bool put(struct repairing *x, uint64_t m, unsigned kind, uint64_t *args, bool invented)
{
	if (x->n_pending >= MAX_PENDING || !number(x, m, kind, args) ||
		x->n_pending >= MAX_PENDING || !allowed(x, m, kind, args))
		return false;
	struct pending *to = &x->pending[x->n_pending++];
	*to = (struct pending){.m = m, .kind = (uint8_t)kind};
	memcpy(to->args, args, sizeof(to->args));
	return !invented || note(x, SONDE_TRACE_REPAIR_INVENTED, kind);
}

static bool invent(
	struct repairing *x, uint64_t m, unsigned kind, uint64_t a, uint64_t b, uint64_t c)
{
	uint64_t args[SONDE_TRACE_MAX_ARGS] = {a, b, c};
	return put(x, m, kind, args, true);
}

static bool announce_g(struct repairing *x, uint64_t m, uint64_t id)
{
	const struct sonde_trace_g *g = find_g(x, id);
	if (!g)
		return false;
	if (g->gen == (uint16_t)x->gen)
		return true;
	bool bound = g->status == SONDE_TRACE_G_RUNNING || g->status == SONDE_TRACE_G_SYSCALL;
	if (bound)
		m = thread_with_g(x, id);
	return invent(x, m, SONDE_TRACE_GO_STATUS, id, bound ? m : NO_ID, g->status);
}

static bool announce_p(struct repairing *x, uint64_t m, uint64_t id)
{
	const struct sonde_trace_p *p = find_p(x, id);
	if (!p)
		return false;
	if (p->gen == (uint16_t)x->gen)
		return true;
	if (p->status == SONDE_TRACE_P_RUNNING || p->status == SONDE_TRACE_P_SYSCALL)
		m = thread_with_p(x, id);
	return invent(x, m, SONDE_TRACE_PROC_STATUS, id, p->status, 0);
}

/* --- moving things --- */

/* A thread without a processor is given one, so that its goroutine may do something. */
static bool lend_p(struct repairing *x, uint64_t m)
{
	if (m == NO_ID)
		return false;
	if (p_on(x, m))
		return true;
	for (uint64_t i = 0; i < x->n_lent_ps; i++) {
		const struct sonde_trace_p *p = find_p(x, FIRST_LENT_P + i);
		if (p && p->status == SONDE_TRACE_P_IDLE)
			return invent(x, m, SONDE_TRACE_PROC_START, p->id, 0, 0);
	}
	if (x->n_lent_ps >= MAX_LENT_PS)
		return false;
	uint64_t id = FIRST_LENT_P + x->n_lent_ps++;
	return !find_p(x, id) &&
		invent(x, m, SONDE_TRACE_PROC_STATUS, id, SONDE_TRACE_P_RUNNING, 0);
}

/* The thread's processor becomes idle, its goroutine runnable. */
static bool free_p(struct repairing *x, uint64_t m)
{
	return !p_on(x, m) || invent(x, m, SONDE_TRACE_PROC_STOP, 0, 0, 0);
}

static bool free_g(struct repairing *x, uint64_t m)
{
	const struct sonde_trace_g *g = g_on(x, m);
	if (!g)
		return true;
	if (g->status == SONDE_TRACE_G_SYSCALL) {
		const struct sonde_trace_p *p = p_on(x, m);
		if (!p || p->status != SONDE_TRACE_P_SYSCALL)
			return invent(x, m, SONDE_TRACE_GO_SYSCALL_END_BLOCKED, 0, 0, 0);
		if (!invent(x, m, SONDE_TRACE_GO_SYSCALL_END, 0, 0, 0))
			return false;
	}
	return lend_p(x, m) && invent(x, m, SONDE_TRACE_GO_STOP, 0, 0, 0);
}

/* The processor becomes idle, whoever has it. */
static bool idle_p(struct repairing *x, uint64_t id)
{
	const struct sonde_trace_p *p = find_p(x, id);
	if (!p)
		return invent(x, HELPER_M, SONDE_TRACE_PROC_STATUS, id, SONDE_TRACE_P_IDLE, 0);
	if (p->status == SONDE_TRACE_P_ABANDONED)
		return invent(x, HELPER_M, SONDE_TRACE_PROC_STEAL, id, 0, NO_ID);
	if (p->status == SONDE_TRACE_P_IDLE)
		return true;
	uint64_t m = thread_with_p(x, id);
	return m != NO_ID && free_p(x, m);
}

/* The helper thread runs the goroutine, which is runnable. */
static bool run_aside(struct repairing *x, uint64_t id)
{
	return free_g(x, HELPER_M) && lend_p(x, HELPER_M) &&
		invent(x, HELPER_M, SONDE_TRACE_GO_START, id, 0, 0);
}

/* The goroutine becomes NONE, RUNNABLE or WAITING, whatever it is. */
static bool set_g(struct repairing *x, uint64_t id, unsigned status)
{
	const struct sonde_trace_g *g = find_g(x, id);
	if (!g && status == SONDE_TRACE_G_NONE)
		return true;
	if (!g && x->strict.gen == x->strict.first_gen)
		return invent(x, NO_ID, SONDE_TRACE_GO_STATUS, id, NO_ID, status);
	if (!g && (!lend_p(x, HELPER_M) || !invent(x, HELPER_M, SONDE_TRACE_GO_CREATE, id, 0, 0)))
		return false;
	g = find_g(x, id);
	if (!g)
		return false;
	if (g->status == SONDE_TRACE_G_RUNNING || g->status == SONDE_TRACE_G_SYSCALL) {
		uint64_t m = thread_with_g(x, id);
		/* Go lets a status take a thread from a goroutine; that one runs nowhere then. */
		if (m == NO_ID &&
			(g->status != SONDE_TRACE_G_RUNNING || !free_g(x, HELPER_M) ||
				!invent(x, HELPER_M, SONDE_TRACE_GO_STATUS, id, NO_ID,
					SONDE_TRACE_G_RUNNING)))
			return false;
		if (!free_g(x, m == NO_ID ? HELPER_M : m))
			return false;
	}
	g = find_g(x, id);
	if (g->status == status)
		return true;
	if (g->status == SONDE_TRACE_G_WAITING &&
		!invent(x, HELPER_M, SONDE_TRACE_GO_UNBLOCK, id, 0, 0))
		return false;
	if (status == SONDE_TRACE_G_RUNNABLE)
		return true;
	return run_aside(x, id) &&
		invent(x, HELPER_M,
			status == SONDE_TRACE_G_NONE ? SONDE_TRACE_GO_DESTROY
						     : SONDE_TRACE_GO_BLOCK,
			0, 0, 0);
}

/* The goroutine runs on m, or is in a system call there (without a processor where keep_p is not set). */
static bool run_on(struct repairing *x, uint64_t m, uint64_t id, bool in_syscall, bool keep_p)
{
	const struct sonde_trace_g *g = g_on(x, m);
	if (m == NO_ID || ((!g || g->id != id) && !free_g(x, m)))
		return false;
	if (!g_on(x, m)) {
		if (in_syscall && !keep_p && !find_g(x, id))
			return invent(x, m, SONDE_TRACE_GO_CREATE_SYSCALL, id, 0, 0);
		if (!set_g(x, id, SONDE_TRACE_G_RUNNABLE) || !lend_p(x, m) ||
			!invent(x, m, SONDE_TRACE_GO_START, id, 0, 0))
			return false;
	}
	g = g_on(x, m);
	if (!g || g->id != id)
		return false;
	if (!in_syscall && g->status == SONDE_TRACE_G_SYSCALL) {
		const struct sonde_trace_p *p = p_on(x, m);
		if (p && p->status == SONDE_TRACE_P_SYSCALL)
			return invent(x, m, SONDE_TRACE_GO_SYSCALL_END, 0, 0, 0);
		return invent(x, m, SONDE_TRACE_GO_SYSCALL_END_BLOCKED, 0, 0, 0) && lend_p(x, m) &&
			invent(x, m, SONDE_TRACE_GO_START, id, 0, 0);
	}
	if (in_syscall && g->status == SONDE_TRACE_G_RUNNING &&
		(!lend_p(x, m) || !invent(x, m, SONDE_TRACE_GO_SYSCALL_BEGIN, 0, 0, 0)))
		return false;
	return keep_p || !in_syscall || free_p(x, m);
}

/* The thread has processor p and goroutine g (NO_ID: none), as the reader saw it. */
static bool set_context(struct repairing *x, const struct sonde_trace_event *e, uint64_t m)
{
	const struct sonde_trace_state *seen = &x->r->state;
	const struct sonde_trace_g *g = g_on(x, m);
	const struct sonde_trace_p *p = p_on(x, m);
	if (m == NO_ID || ((g ? g->id : NO_ID) == e->g && (p ? p->id : NO_ID) == e->p))
		return true;
	if (g && g->id != e->g && !free_g(x, m))
		return false;
	p = p_on(x, m);
	if (p && p->id != e->p && !free_p(x, m))
		return false;
	if (e->p != NO_ID && !p_on(x, m)) {
		bool ok = find_p(x, e->p)
			? idle_p(x, e->p) && invent(x, m, SONDE_TRACE_PROC_START, e->p, 0, 0)
			: invent(x, m, SONDE_TRACE_PROC_STATUS, e->p, SONDE_TRACE_P_RUNNING, 0);
		if (!ok)
			return false;
	}
	if (e->g != NO_ID) {
		unsigned status = e->subject_g == e->g ? e->g_before
			: e->g_slot < seen->gs.n       ? seen->gs.items[e->g_slot].status
						       : SONDE_TRACE_G_RUNNING;
		bool in_syscall = status == SONDE_TRACE_G_SYSCALL;
		if (!run_on(x, m, e->g, in_syscall, e->p != NO_ID))
			return false;
	}
	p = p_on(x, m);
	return !p || p->id == e->p || free_p(x, m);
}

/* A status that the file tells: the state is made to be that. */
static bool meet_g_status(struct repairing *x, uint64_t m, const uint64_t *args)
{
	uint64_t id = args[0], on = args[1];
	const struct sonde_trace_g *g = find_g(x, id);
	bool first = x->strict.gen == x->strict.first_gen;
	switch (args[2]) {
	case SONDE_TRACE_G_RUNNABLE:
	case SONDE_TRACE_G_WAITING:
		return (!g && first) || (g && g->status == args[2]) ||
			set_g(x, id, (unsigned)args[2]);
	case SONDE_TRACE_G_RUNNING:
		on = m;
		break;
	case SONDE_TRACE_G_SYSCALL:
		break;
	default:
		return false;
	}
	if (!g && first) /* what the thread had before goes */
		return on == NO_ID || !g_on(x, on) || free_g(x, on);
	if (g && g->status == args[2] && thread_with_g(x, id) == on)
		return true;
	return run_on(x, on, id, args[2] == SONDE_TRACE_G_SYSCALL, false);
}

static bool meet_p_status(struct repairing *x, uint64_t m, const uint64_t *args)
{
	const struct sonde_trace_p *p = find_p(x, args[0]), *on_m = p_on(x, m);
	bool binds = args[1] == SONDE_TRACE_P_RUNNING || args[1] == SONDE_TRACE_P_SYSCALL;
	if (binds && on_m && on_m->id != args[0] && !free_p(x, m))
		return false;
	p = find_p(x, args[0]);
	if (!p || p->status == args[1])
		return !p || !binds || thread_with_p(x, args[0]) == m;
	if (args[1] == SONDE_TRACE_P_ABANDONED)
		return p->status == SONDE_TRACE_P_SYSCALL;
	if (!idle_p(x, args[0]))
		return false;
	return args[1] == SONDE_TRACE_P_IDLE ||
		(args[1] == SONDE_TRACE_P_RUNNING &&
			invent(x, m, SONDE_TRACE_PROC_START, args[0], 0, 0));
}

/* A region ends that is not the innermost: those within end first; that is not open at all: it cannot. */
static bool close_inner(struct repairing *x, uint64_t m, const uint64_t *args)
{
	struct sonde_trace_state *s = state_of(x);
	const struct sonde_trace_g *g = g_on(x, m);
	uint32_t slot = g ? (uint32_t)(g - s->gs.items) : NO_SLOT;
	uint32_t name = (uint32_t)(text_id(x, args[1]) & ~SONDE_TRACE_STRING_INTERNED);
	const struct sonde_trace_region *innermost =
		slot == NO_SLOT ? NULL : sonde_trace_state_region(s, slot);
	const struct sonde_trace_region *at = innermost;
	while (at && (at->task != args[0] || at->name != name))
		at = sonde_trace_state_outer_region(s, at);
	if (!innermost || at == innermost)
		return true;
	return false; /* the names of those within are not those of this generation */
}

/* What the event needs beyond its thread's context. false: it cannot be had. */
static bool prepare(struct repairing *x, uint64_t m, unsigned kind, const uint64_t *args)
{
	const struct sonde_trace_state *s = state_of(x);
	const struct sonde_trace_g *g = g_on(x, m);
	const struct sonde_trace_p *p = p_on(x, m);
	switch (kind) {
	case SONDE_TRACE_GO_START:
		return set_g(x, args[0], SONDE_TRACE_G_RUNNABLE);
	case SONDE_TRACE_GO_UNBLOCK:
	case SONDE_TRACE_GO_SWITCH:
	case SONDE_TRACE_GO_SWITCH_DESTROY:
		return set_g(x, args[0], SONDE_TRACE_G_WAITING);
	case SONDE_TRACE_GO_CREATE:
	case SONDE_TRACE_GO_CREATE_BLOCKED:
	case SONDE_TRACE_GO_CREATE_SYSCALL:
		return set_g(x, args[0], SONDE_TRACE_G_NONE);
	case SONDE_TRACE_PROC_START:
		return idle_p(x, args[0]);
	case SONDE_TRACE_PROC_STATUS:
		return meet_p_status(x, m, args);
	case SONDE_TRACE_GO_STATUS:
	case SONDE_TRACE_GO_STATUS_STACK:
		return meet_g_status(x, m, args);
	case SONDE_TRACE_STW_BEGIN:
		return !g || !(g->ranges & SONDE_TRACE_RANGE_STW) ||
			invent(x, m, SONDE_TRACE_STW_END, 0, 0, 0);
	case SONDE_TRACE_GC_MARK_ASSIST_BEGIN:
		return !g || !(g->ranges & SONDE_TRACE_RANGE_MARK_ASSIST) ||
			invent(x, m, SONDE_TRACE_GC_MARK_ASSIST_END, 0, 0, 0);
	case SONDE_TRACE_GC_SWEEP_BEGIN:
		return !p || !(p->ranges & SONDE_TRACE_RANGE_SWEEP) ||
			invent(x, m, SONDE_TRACE_GC_SWEEP_END, 0, 0, 0);
	case SONDE_TRACE_GC_BEGIN:
		return s->gc != SONDE_TRACE_GC_ON || invent(x, m, SONDE_TRACE_GC_END, 0, 0, 0);
	case SONDE_TRACE_USER_TASK_BEGIN:
		return sonde_trace_state_find_task(s, args[0]) == NO_SLOT ||
			invent(x, m, SONDE_TRACE_USER_TASK_END, args[0], 0, 0);
	case SONDE_TRACE_USER_REGION_END:
		return close_inner(x, m, args);
	default:
		return true;
	}
}

/* --- writing --- */

static struct thread *thread_of(struct repairing *x, uint64_t m)
{
	uint32_t *number = sonde_u32_map_put(&x->thread_of_m, m, NULL);
	if (number && !*number) {
		struct thread *t = threads_add(&x->threads);
		if (t) {
			t->m = m;
			*number = (uint32_t)x->threads.n;
		}
	}
	return number && *number ? &x->threads.items[*number - 1] : NULL;
}

static void write_head(
	struct repairing *x, uint64_t m, uint64_t ticks, size_t size, uint8_t experiment)
{
	uint8_t head[SONDE_TRACE_MAX_HEAD_BYTES];
	struct sonde_trace_batch_head h = {.gen = x->gen,
		.m = m,
		.ticks = ticks,
		.size = (uint32_t)size,
		.experiment = experiment};
	sonde_buf_add(&x->out, head, sonde_trace_batch_head_encode(head, &h));
}

static void flush_thread(struct repairing *x, struct thread *t)
{
	if (!t->n)
		return;
	write_head(x, t->m, (uint64_t)t->first_ns, t->n, 0);
	sonde_buf_add(&x->out, t->bytes, t->n);
	t->n = 0;
}

/* At most ns, and exact in a double. */
static int64_t exact_ns(int64_t ns)
{
	return ns >> MAX_EXACT_BITS ? ns & ~INT64_C(0x3ff) : ns;
}

static bool write_event(struct repairing *x, const struct pending *event, int64_t ns)
{
	struct thread *t = thread_of(x, event->m);
	if (!t)
		return out_of_memory(x);
	if (t->n + SONDE_TRACE_MAX_EVENT_BYTES > SONDE_TRACE_MAX_BATCH_BYTES ||
		ns - t->last_ns > UINT32_MAX)
		flush_thread(x, t);
	if (t->n + SONDE_TRACE_MAX_EVENT_BYTES > t->cap) {
		size_t cap = t->cap ? 2 * (size_t)t->cap : FIRST_BUFFER_BYTES;
		cap = sonde_max(cap, (size_t)t->n + SONDE_TRACE_MAX_EVENT_BYTES);
		uint8_t *bytes = sonde_realloc_array(t->bytes, cap, 1);
		if (!bytes)
			return out_of_memory(x);
		t->bytes = bytes;
		t->cap = (uint32_t)cap;
	}
	if (!t->n)
		t->first_ns = t->last_ns = exact_ns(ns);
	t->n += (uint32_t)sonde_trace_event_encode(
		t->bytes + t->n, event->kind, (uint64_t)(ns - t->last_ns), event->args);
	t->last_ns = ns;
	return true;
}

/* The event in the state and in the file; what was invented for it goes in front, in the time that is free there. */
static bool write_pending(struct repairing *x, int64_t ns)
{
	unsigned n = x->n_pending;
	x->n_pending = 0;
	if (!n)
		return true;
	if (x->last_ns > INT64_MAX - (int64_t)n - 1)
		return false;
	int64_t first = sonde_max(x->last_ns + 1, ns - ((int64_t)n - 1));
	for (unsigned i = 0; i < n; i++)
		if (!write_event(x, &x->pending[i], first + i))
			return false;
	x->last_ns = first + (int64_t)n - 1;
	if (x->last_ns > ns) {
		x->ret->n_moved++;
		x->ret->max_move_ns = sonde_max(x->ret->max_move_ns, x->last_ns - ns);
	}
	return true;
}

/* Ids of strings and stacks that are not there become none. */
static bool known_ids(struct repairing *x, unsigned kind, uint64_t *args)
{
	const struct sonde_trace_event_spec *spec = &sonde_trace_event_specs[kind];
	bool changed = false;
	for (unsigned i = 0; i < spec->n_args; i++) {
		const struct sonde_trace_v2_table *t = spec->string_args >> i & 1 ? &x->v->strings
			: spec->stack_args >> i & 1                               ? &x->v->stacks
										  : NULL;
		if (!t || !args[i] || sonde_trace_v2_find(t, args[i]))
			continue;
		args[i] = 0;
		changed = true;
	}
	return !changed || note(x, SONDE_TRACE_REPAIR_CHANGED, kind);
}

static bool write_sample(struct repairing *x, const struct sonde_trace_event *e)
{
	uint8_t bytes[SONDE_TRACE_MAX_EVENT_BYTES + SONDE_TRACE_MAX_VARINT_BYTES];
	uint64_t stack[SONDE_TRACE_MAX_ARGS] = {e->args[0]};
	size_t n = 0;
	if (x->last_ns == INT64_MAX || !known_ids(x, SONDE_TRACE_CPU_SAMPLE, stack))
		return false;
	int64_t ns = sonde_max(x->last_ns + 1, e->ns);
	/* A sample's time is one number: where a double does not hold it, the next lower is taken. */
	ns = exact_ns(ns);
	x->last_ns = sonde_max(x->last_ns, ns);
	bytes[n++] = SONDE_TRACE_CPU_SAMPLE;
	n += sonde_trace_varint_encode(bytes + n, (uint64_t)ns);
	n += sonde_trace_varint_encode(bytes + n, e->m);
	n += sonde_trace_varint_encode(bytes + n, e->p);
	n += sonde_trace_varint_encode(bytes + n, e->g == NO_ID ? 0 : e->g);
	n += sonde_trace_varint_encode(bytes + n, stack[0]);
	sonde_buf_add(&x->samples, bytes, n);
	x->ret->n_kept++;
	return true;
}

/* The thread in whose batch the event stands; the event may name another (Go's reader does). */
static uint64_t thread_of_record(const struct repairing *x)
{
	uint32_t slot = x->v->try.m_slot;
	return slot == NO_SLOT ? NO_ID : x->r->state.ms.items[slot].id;
}

static void as_written(const struct sonde_trace_event *e, uint64_t m, uint64_t *args)
{
	memcpy(args, e->args, sizeof(e->args));
	if (e->kind == SONDE_TRACE_USER_TASK_BEGIN && args[1] == NO_ID)
		args[1] = 0;
	/* Promoted by the reader, and moved to the thread that has the processor. */
	if (e->kind == SONDE_TRACE_PROC_STATUS && e->m != m && args[1] == SONDE_TRACE_P_SYSCALL)
		args[1] = SONDE_TRACE_P_ABANDONED;
}

static void take(struct repairing *x, const struct sonde_trace_event *e)
{
	uint64_t args[SONDE_TRACE_MAX_ARGS], m = thread_of_record(x);
	bool told = e->kind == SONDE_TRACE_PROC_STATUS || e->kind == SONDE_TRACE_GO_STATUS ||
		e->kind == SONDE_TRACE_GO_STATUS_STACK;
	as_written(e, m, args);
	x->e = e;
	x->n_pending = 0;
	bool ok = known_ids(x, e->kind, args) && (told || set_context(x, e, m)) &&
		prepare(x, m, e->kind, args);
	/* Preparing may have taken the thread something: then once more. */
	ok = ok && (told || set_context(x, e, m)) && put(x, m, e->kind, args, false);
	if (!ok && e->kind == SONDE_TRACE_PROC_STEAL)
		(void)idle_p(x, args[0]);
	/* The end of a thread is one record, the reader takes its processor first: in the time of the record. */
	ok = write_pending(x, x->steal_ns ? x->steal_ns : e->ns) && ok;
	x->steal_ns = 0;
	if (ok)
		x->ret->n_kept++;
	else
		(void)note(x, SONDE_TRACE_REPAIR_DROPPED, e->kind);
	x->e = NULL;
}

/* --- a generation --- */

static void give(struct repairing *x, const void *data, size_t len)
{
	x->failed |= !x->write(x->write_ctx, data, len);
	x->ret->n_bytes += len;
}

static uint64_t count_damages(const struct sonde_trace_reader *r)
{
	uint64_t n = 0;
	for (int i = 0; i < SONDE_TRACE_N_DAMAGES; i++)
		if (!sonde_trace_damage_specs[i].remark)
			n += r->damages.counts[i];
	return n;
}

static void begin(struct repairing *x, int64_t ns)
{
	x->in_generation = true;
	x->gen = x->gen ? x->gen + 1 : x->v->gen ? x->v->gen : 1;
	x->strict.gen = x->gen;
	if (!x->strict.first_gen)
		x->strict.first_gen = x->gen;
	x->strict_reader.info.n_generations++;
	x->last_ns = sonde_max(x->last_ns + (x->last_ns < INT64_MAX), ns);
	x->sync_ns = exact_ns(x->last_ns);
}

/* Records of one table's batch gather in a buffer, which is written when it is full. */
struct table {
	struct repairing *x;
	struct sonde_buf bytes;
	uint8_t kind; /* the batch's first byte */
};

static void table_flush(struct table *t)
{
	if (t->bytes.len > 1) {
		write_head(t->x, NO_ID, (uint64_t)t->x->sync_ns, t->bytes.len, 0);
		sonde_buf_add(&t->x->out, t->bytes.data, t->bytes.len);
	}
	t->bytes.len = 0;
}

static void table_add(
	struct table *t, const void *head, size_t head_len, const void *body, size_t len)
{
	if (t->bytes.len + head_len + len > SONDE_TRACE_MAX_BATCH_BYTES)
		table_flush(t);
	if (!t->bytes.len)
		sonde_buf_char(&t->bytes, (char)t->kind);
	sonde_buf_add(&t->bytes, head, head_len);
	sonde_buf_add(&t->bytes, body, len);
}

static bool table_end(struct table *t)
{
	table_flush(t);
	bool ok = !t->bytes.failed;
	sonde_buf_deinit(&t->bytes);
	return ok;
}

static bool is_first(const struct sonde_trace_v2_table *t, const struct sonde_trace_v2_entry *e)
{
	return e->id && sonde_trace_v2_find(t, e->id) == e;
}

static bool write_strings(struct repairing *x)
{
	struct table t = {.x = x, .kind = SONDE_TRACE_STRINGS};
	uint8_t head[1 + 2 * SONDE_TRACE_MAX_VARINT_BYTES];
	sonde_vec_foreach (e, &x->v->strings.entries) {
		size_t n = 0;
		if (!is_first(&x->v->strings, e)) {
			x->ret->n_strings_dropped++;
			continue;
		}
		head[n++] = SONDE_TRACE_STRING;
		n += sonde_trace_varint_encode(head + n, e->id);
		n += sonde_trace_varint_encode(head + n, e->n);
		table_add(&t, head, n, sonde_trace_v2_at(x->v, e->offset), e->n);
	}
	return table_end(&t);
}

static bool write_stacks(struct repairing *x)
{
	struct table t = {.x = x, .kind = SONDE_TRACE_STACKS};
	uint8_t body[SONDE_TRACE_MAX_FRAMES * 4 * SONDE_TRACE_MAX_VARINT_BYTES];
	uint8_t head[1 + 2 * SONDE_TRACE_MAX_VARINT_BYTES];
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	sonde_vec_foreach (e, &x->v->stacks.entries) {
		size_t n = 0, len = 0;
		if (!is_first(&x->v->stacks, e)) {
			x->ret->n_stacks_dropped++;
			continue;
		}
		size_t n_frames = x->r->ops->stack(x->r, e->id, frames);
		for (size_t i = 0; i < n_frames; i++) {
			uint64_t *const names[] = {&frames[i].func, &frames[i].file};
			for (size_t k = 0; k < SONDE_ARRAY_LEN(names); k++)
				if (*names[k] && !sonde_trace_v2_find(&x->v->strings, *names[k])) {
					*names[k] = 0;
					x->ret->n_frames_changed++;
				}
			len += sonde_trace_varint_encode(body + len, frames[i].pc);
			len += sonde_trace_varint_encode(body + len, frames[i].func);
			len += sonde_trace_varint_encode(body + len, frames[i].file);
			len += sonde_trace_varint_encode(body + len, frames[i].line);
		}
		head[n++] = SONDE_TRACE_STACK;
		n += sonde_trace_varint_encode(head + n, e->id);
		n += sonde_trace_varint_encode(head + n, n_frames);
		table_add(&t, head, n, body, len);
	}
	return table_end(&t);
}

/* Samples are of fixed kinds of numbers; they are cut into batches where a record begins. */
static bool write_samples(struct repairing *x)
{
	struct table t = {.x = x, .kind = SONDE_TRACE_CPU_SAMPLES};
	const uint8_t *p = (const uint8_t *)x->samples.data, *end = p + x->samples.len;
	while (p < end) {
		const uint8_t *record = p++;
		uint64_t unused;
		for (unsigned i = 0; i < 5; i++)
			p += sonde_trace_varint_decode(p, end, &unused);
		table_add(&t, record, (size_t)(p - record), NULL, 0);
	}
	return table_end(&t);
}

/* The clock of the generation: a frequency of one tick a nanosecond, and from 1.25 on what time it was. */
static void write_clock(struct repairing *x)
{
	const struct sonde_trace_info *info = &x->r->info;
	uint8_t bytes[2 + 6 * SONDE_TRACE_MAX_VARINT_BYTES];
	size_t n = 0;
	if (info->version >= 25)
		bytes[n++] = SONDE_TRACE_SYNC;
	bytes[n++] = SONDE_TRACE_FREQUENCY;
	n += sonde_trace_varint_encode(bytes + n, 1000000000);
	if (!x->v->has_frequency)
		x->ret->n_frequencies++;
	if (info->version >= 25) {
		int64_t at = x->v->has_clock ? info->clock_ns : x->sync_ns;
		uint64_t mono = info->clock_mono_ns;
		uint64_t sec = (uint64_t)info->clock_wall_sec,
			 nsec = (uint64_t)info->clock_wall_nsec;
		if (!x->v->has_clock) {
			/* By the last one that was there, if any. */
			uint64_t passed = x->have_clock && at > x->clock_ns
				? (uint64_t)at - (uint64_t)x->clock_ns
				: 0;
			x->ret->n_clocks++;
			mono += passed;
			sec += (nsec % 1000000000 + passed) / 1000000000;
			nsec = (nsec % 1000000000 + passed) % 1000000000;
		}
		bytes[n++] = SONDE_TRACE_CLOCK_SNAPSHOT;
		n += sonde_trace_varint_encode(
			bytes + n, at > x->sync_ns ? (uint64_t)(at - x->sync_ns) : 0);
		n += sonde_trace_varint_encode(bytes + n, mono);
		n += sonde_trace_varint_encode(bytes + n, sec);
		n += sonde_trace_varint_encode(bytes + n, nsec);
	}
	write_head(x, NO_ID, (uint64_t)x->sync_ns, n, 0);
	sonde_buf_add(&x->out, bytes, n);
}

static void write_experiments(struct repairing *x)
{
	sonde_vec_foreach (b, &x->v->experiments) {
		write_head(x, b->m, (uint64_t)x->sync_ns, b->size, b->experiment);
		sonde_buf_add(&x->out, sonde_trace_v2_at(x->v, b->offset), b->size);
	}
}

static bool write_generation(struct repairing *x)
{
	write_clock(x);
	sonde_vec_foreach (t, &x->threads)
		flush_thread(x, t);
	bool ok = write_samples(x) && write_stacks(x) && write_strings(x);
	write_experiments(x);
	if (x->r->info.version >= 26) {
		sonde_buf_char(&x->out, SONDE_TRACE_END_OF_GENERATION);
		x->ret->n_end_marks += !x->v->have_end;
	}
	give(x, x->out.data, x->out.len);
	return ok && !x->out.failed && !x->samples.failed;
}

static void clear(struct repairing *x)
{
	sonde_vec_foreach (t, &x->threads)
		free(t->bytes);
	x->threads.n = 0;
	sonde_u32_map_deinit(&x->thread_of_m);
	x->out.len = x->samples.len = 0;
	x->in_generation = false;
}

/* The events of the generation are through, its bytes still there. */
static struct sonde_error *end(void *ctx)
{
	struct repairing *x = ctx;
	uint64_t n_damages = count_damages(x->r);
	if (!x->in_generation)
		return NULL;
	x->rewriting |= n_damages != x->n_damages;
	x->ret->n_generations++;
	if (x->rewriting) {
		if (!write_generation(x))
			return &sonde_enomem;
	} else {
		uint64_t len = x->v->offset - x->v->gen_start;
		x->ret->n_copied++;
		give(x, sonde_trace_v2_at(x->v, x->v->gen_start), len);
	}
	if (x->v->has_clock) {
		x->have_clock = true;
		x->clock_ns = x->r->info.clock_ns;
	}
	clear(x);
	return NULL;
}

static struct sonde_error *read_on(struct repairing *x)
{
	const struct sonde_trace_event *e;
	x->n_damages = count_damages(x->r);
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(x->r, &e));
		if (!e)
			return NULL;
		if (e->kind == SONDE_TRACE_SYNC) {
			if (!x->v->ended)
				begin(x, e->ns);
		} else if (e->kind == SONDE_TRACE_CPU_SAMPLE) {
			x->e = e;
			if (!write_sample(x, e))
				(void)note(x, SONDE_TRACE_REPAIR_DROPPED, e->kind);
			x->e = NULL;
		} else if (!(e->flags & SONDE_TRACE_MADE)) {
			take(x, e);
		} else if (e->kind == SONDE_TRACE_PROC_STEAL) {
			x->steal_ns = e->ns;
		}
		if (x->error)
			return x->error;
		if (x->failed)
			return NULL; /* the caller knows */
	}
}

static struct sonde_error *repair(struct repairing *x)
{
	uint8_t header[SONDE_TRACE_HEADER_BYTES];
	if (!sonde_strtab_init(&x->strict_reader.strings))
		return &sonde_enomem;
	sonde_trace_header_encode(header, x->r->info.version);
	give(x, header, sizeof(header));
	SONDE_TRY(read_on(x));
	if (!x->ret->n_generations) {
		/* Go's reader takes no trace without one. */
		begin(x, 1);
		x->rewriting = true;
		x->v->have_end = false;
		SONDE_TRY(end(x));
	}
	return NULL;
}

struct sonde_error *sonde_trace_repair(struct sonde_trace_reader *reader,
	sonde_trace_repair_write write, void *write_ctx, struct sonde_trace_repair *ret)
{
	if (reader->ops != &sonde_trace_v2_ops)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"%s: a trace of format go 1.%u: only those from 1.22 on can be repaired",
			reader->source->name, reader->info.version);
	struct repairing *x = sonde_new(struct repairing);
	if (!x)
		return &sonde_enomem;
	x->r = reader;
	x->v = reader->impl;
	x->write = write;
	x->write_ctx = write_ctx;
	x->ret = ret;
	x->strict.r = &x->strict_reader;
	x->strict_reader.ops = &strict_ops;
	sonde_arena_init(&x->strict_reader.damages.arena);
	x->v->leave = end;
	x->v->leave_ctx = x;
	struct sonde_error *err = repair(x);
	x->v->leave = NULL;
	clear(x);
	threads_deinit(&x->threads);
	sonde_buf_deinit(&x->out);
	sonde_buf_deinit(&x->samples);
	sonde_trace_state_deinit(&x->strict_reader.state);
	sonde_strtab_deinit(&x->strict_reader.strings);
	sonde_trace_damage_vec_deinit(&x->strict_reader.damages.list);
	sonde_arena_deinit(&x->strict_reader.damages.arena);
	free(x);
	return err;
}
