/*
 * What an event of the formats from 1.22 on does to the state, and what it needs to do it. The rules are those of Go
 * 1.27's internal/trace/order.go: an event that waits for another one (sequence numbers) is WAIT, one that can never be
 * right is WRONG. What Go gives up at is forced here, once the caller says so: what the event says is then true, and
 * what it contradicts becomes undetermined, which agrees with anything.
 */
#include "traceread/v2.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#define NO_SLOT SONDE_TRACE_NO_SLOT
#define NO_ID SONDE_TRACE_NO_ID

static struct sonde_trace_m *thread(const struct sonde_trace_v2_try *x)
{
	return x->m_slot == NO_SLOT ? &x->v->nobody : &x->s->ms.items[x->m_slot];
}

/* Remember why, for the caller to list; WRONG. */
SONDE_PRINTF(2, 3)
static enum sonde_trace_v2_step wrong(const struct sonde_trace_v2_try *x, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	vsnprintf(x->v->why, sizeof(x->v->why), fmt, args);
	va_end(args);
	return SONDE_TRACE_V2_WRONG;
}

SONDE_PRINTF(2, 3)
static enum sonde_trace_v2_step wait(const struct sonde_trace_v2_try *x, const char *fmt, ...)
{
	(void)x;
	(void)fmt;
	return SONDE_TRACE_V2_WAIT;
}

/* Unless cond holds, or the event is forced: leave. */
#define NEED(cond, ...)                               \
	do {                                          \
		if (!(cond) && !x->force)             \
			return wrong(x, __VA_ARGS__); \
	} while (0)

#define NEED_M() NEED(x->m_slot != NO_SLOT, "expected a thread but didn't have one")
#define NEED_P() NEED(x->e->p_slot != NO_SLOT, "expected a proc but didn't have one")
#define NEED_G() NEED(x->e->g_slot != NO_SLOT, "expected a goroutine but didn't have one")
#define NEED_NO_P() \
	NEED(x->e->p_slot == NO_SLOT, "expected no proc but had one (%" PRIu64 ")", x->e->p)
#define NEED_NO_G() \
	NEED(x->e->g_slot == NO_SLOT, "expected no goroutine but had one (%" PRIu64 ")", x->e->g)
#define NEED_USER()       \
	do {              \
		NEED_M(); \
		NEED_P(); \
		NEED_G(); \
	} while (0)

static bool g_is(const struct sonde_trace_g *g, unsigned status)
{
	return g->status == status || g->status == SONDE_TRACE_G_UNDETERMINED;
}

static bool p_is(const struct sonde_trace_p *p, unsigned status)
{
	return p->status == status || p->status == SONDE_TRACE_P_UNDETERMINED;
}

/* Whether seq is the one behind that of the state, in this generation. */
static bool g_succeeds(
	const struct sonde_trace_v2_try *x, const struct sonde_trace_g *g, uint64_t seq)
{
	return (g->gen == (uint16_t)x->gen && seq == g->seq + UINT64_C(1)) ||
		g->status == SONDE_TRACE_G_UNDETERMINED;
}

static bool p_succeeds(
	const struct sonde_trace_v2_try *x, const struct sonde_trace_p *p, uint64_t seq)
{
	return (p->gen == (uint16_t)x->gen && seq == p->seq + UINT64_C(1)) ||
		p->status == SONDE_TRACE_P_UNDETERMINED;
}

static void set_seq_g(const struct sonde_trace_v2_try *x, struct sonde_trace_g *g, uint64_t seq)
{
	g->seq = (uint32_t)seq;
	g->gen = (uint16_t)x->gen;
}

static void set_seq_p(const struct sonde_trace_v2_try *x, struct sonde_trace_p *p, uint64_t seq)
{
	p->seq = (uint32_t)seq;
	p->gen = (uint16_t)x->gen;
}

/* No thread but the event's has this goroutine: one that two had would be ended twice. */
static void unbind_g(const struct sonde_trace_v2_try *x, uint32_t slot)
{
	for (uint32_t i = 0; i < x->s->ms.n; i++)
		if (x->s->ms.items[i].g_slot == slot && i != x->m_slot)
			x->s->ms.items[i].g_slot = NO_SLOT;
}

/* The event changes goroutine slot to `status`. */
static void move_g(const struct sonde_trace_v2_try *x, struct sonde_trace_event *e,
	struct sonde_trace_g *g, uint32_t slot, unsigned status)
{
	if (sonde_unlikely(x->force || g->status == SONDE_TRACE_G_UNDETERMINED))
		unbind_g(x, slot);
	e->subject_g = g->id;
	e->subject_g_slot = slot;
	e->g_before = g->status;
	e->g_after = g->status = (uint8_t)status;
}

static void move_p(
	struct sonde_trace_event *e, struct sonde_trace_p *p, uint32_t slot, unsigned status)
{
	e->subject_p = p->id;
	e->subject_p_slot = slot;
	e->p_before = p->status;
	e->p_after = p->status = (uint8_t)status;
}

static bool out_of_memory(const struct sonde_trace_v2_try *x)
{
	x->v->no_memory = true;
	return false;
}

/* The slot of a goroutine, made where it is not there. */
static bool have_g(const struct sonde_trace_v2_try *x, uint64_t id, uint32_t *slot)
{
	*slot = sonde_trace_state_find_g(x->s, id);
	if (*slot == NO_SLOT)
		*slot = sonde_trace_state_add_g(x->s, id);
	return *slot != NO_SLOT || out_of_memory(x);
}

static bool have_p(const struct sonde_trace_v2_try *x, uint64_t id, uint32_t *slot)
{
	*slot = sonde_trace_state_find_p(x->s, id);
	if (*slot == NO_SLOT)
		*slot = sonde_trace_state_add_p(x->s, id);
	return *slot != NO_SLOT || out_of_memory(x);
}

/* Of forced events: nothing else holds what they bind, and what the thread held before is let go. */
static void force_free_g(const struct sonde_trace_v2_try *x, uint32_t slot)
{
	struct sonde_trace_m *m = thread(x);
	if (m->g_slot != NO_SLOT && m->g_slot != slot)
		x->s->gs.items[m->g_slot].status = SONDE_TRACE_G_UNDETERMINED;
	sonde_vec_foreach (other, &x->s->ms)
		if (other->g_slot == slot)
			other->g_slot = NO_SLOT;
}

static void force_free_p(const struct sonde_trace_v2_try *x, uint32_t slot)
{
	struct sonde_trace_m *m = thread(x);
	if (m->p_slot != NO_SLOT && m->p_slot != slot)
		x->s->ps.items[m->p_slot].status = SONDE_TRACE_P_UNDETERMINED;
	sonde_vec_foreach (other, &x->s->ms)
		if (other->p_slot == slot)
			other->p_slot = NO_SLOT;
}

static inline void bind_g(const struct sonde_trace_v2_try *x, uint32_t slot)
{
	if (sonde_unlikely(x->force))
		force_free_g(x, slot);
	thread(x)->g_slot = slot;
}

static void bind_p(const struct sonde_trace_v2_try *x, uint32_t slot)
{
	if (sonde_unlikely(x->force))
		force_free_p(x, slot);
	thread(x)->p_slot = slot;
}

/* --- processors --- */

/* A processor's status that says its thread is gone, while it was seen to enter a system call: the event is that thread's. */
static bool take_context_of(const struct sonde_trace_v2_try *x, uint32_t p_slot)
{
	for (uint32_t i = 0; i < x->s->ms.n; i++) {
		const struct sonde_trace_m *m = &x->s->ms.items[i];
		if (m->p_slot != p_slot)
			continue;
		x->e->m = m->id;
		x->e->m_slot = i;
		x->e->p = x->s->ps.items[p_slot].id;
		x->e->p_slot = p_slot;
		x->e->g_slot = m->g_slot;
		x->e->g = m->g_slot == NO_SLOT ? NO_ID : x->s->gs.items[m->g_slot].id;
		return true;
	}
	return false;
}

static enum sonde_trace_v2_step proc_status(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint64_t id = e->args[0], status = e->args[1];
	NEED(status <= SONDE_TRACE_P_ABANDONED, "invalid status %" PRIu64 " of proc %" PRIu64,
		status, id);
	if (status > SONDE_TRACE_P_ABANDONED)
		status = SONDE_TRACE_P_UNDETERMINED;
	uint32_t slot = sonde_trace_state_find_p(x->s, id);
	bool known = slot != NO_SLOT, promoted = false;
	if (known) {
		struct sonde_trace_p *p = &x->s->ps.items[slot];
		promoted = status == SONDE_TRACE_P_ABANDONED && p->status == SONDE_TRACE_P_SYSCALL;
		NEED(promoted || p_is(p, (unsigned)status),
			"inconsistent status for proc %" PRIu64 ": old %s vs. new %s", id,
			sonde_trace_p_status_name(p->status),
			sonde_trace_p_status_name((unsigned)status));
	} else if (!have_p(x, id, &slot)) {
		return SONDE_TRACE_V2_WRONG;
	}
	if (promoted) {
		NEED(take_context_of(x, slot),
			"failed to find the thread of proc %" PRIu64 " that's about to be stolen",
			id);
		e->args[1] = SONDE_TRACE_P_SYSCALL;
	}
	struct sonde_trace_p *p = &x->s->ps.items[slot];
	move_p(e, p, slot, promoted ? SONDE_TRACE_P_SYSCALL : (unsigned)status);
	if (!known && x->v->gen == x->v->first_gen)
		e->p_before = SONDE_TRACE_P_UNDETERMINED;
	set_seq_p(x, p, 0);
	if (status == SONDE_TRACE_P_RUNNING || status == SONDE_TRACE_P_SYSCALL)
		bind_p(x, slot);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step proc_start(const struct sonde_trace_v2_try *x)
{
	uint64_t id = x->e->args[0], seq = x->e->args[1];
	uint32_t slot = sonde_trace_state_find_p(x->s, id);
	if (!x->force) {
		if (slot == NO_SLOT || x->e->p_slot != NO_SLOT)
			return SONDE_TRACE_V2_WAIT;
		struct sonde_trace_p *p = &x->s->ps.items[slot];
		if (!p_is(p, SONDE_TRACE_P_IDLE) || !p_succeeds(x, p, seq))
			return SONDE_TRACE_V2_WAIT;
		NEED_M();
	} else if (!have_p(x, id, &slot)) {
		return SONDE_TRACE_V2_WRONG;
	}
	struct sonde_trace_p *p = &x->s->ps.items[slot];
	move_p(x->e, p, slot, SONDE_TRACE_P_RUNNING);
	set_seq_p(x, p, seq);
	bind_p(x, slot);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step proc_stop(const struct sonde_trace_v2_try *x)
{
	uint32_t slot = x->e->p_slot;
	NEED(slot != NO_SLOT, "ProcStop for a proc that doesn't exist: the thread has none");
	NEED_M();
	if (slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_p *p = &x->s->ps.items[slot];
	NEED(p_is(p, SONDE_TRACE_P_RUNNING) || p->status == SONDE_TRACE_P_SYSCALL,
		"ProcStop for proc %" PRIu64 " that's %s, not running or in a syscall", p->id,
		sonde_trace_p_status_name(p->status));
	move_p(x->e, p, slot, SONDE_TRACE_P_IDLE);
	thread(x)->p_slot = NO_SLOT;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step proc_steal(const struct sonde_trace_v2_try *x)
{
	uint64_t id = x->e->args[0], seq = x->e->args[1], from = x->e->args[2];
	uint32_t slot = sonde_trace_state_find_p(x->s, id), m_slot = NO_SLOT;
	if (!x->force) {
		if (slot == NO_SLOT)
			return SONDE_TRACE_V2_WAIT;
		struct sonde_trace_p *p = &x->s->ps.items[slot];
		if ((!p_is(p, SONDE_TRACE_P_SYSCALL) && p->status != SONDE_TRACE_P_ABANDONED) ||
			!p_succeeds(x, p, seq))
			return SONDE_TRACE_V2_WAIT;
		NEED_M();
		if (p->status != SONDE_TRACE_P_ABANDONED) {
			m_slot = from == x->e->m ? x->m_slot : sonde_trace_state_find_m(x->s, from);
			NEED(m_slot != NO_SLOT,
				"stole proc %" PRIu64 " from non-existent thread %" PRIu64, id,
				from);
			uint32_t has = x->s->ms.items[m_slot].p_slot;
			NEED(has == slot || p->status == SONDE_TRACE_P_UNDETERMINED,
				"tried to steal proc %" PRIu64 " from thread %" PRIu64
				", which has %s",
				id, from, has == NO_SLOT ? "none" : "another");
			if (has == slot)
				x->s->ms.items[m_slot].p_slot = NO_SLOT;
		}
	} else {
		if (!have_p(x, id, &slot))
			return SONDE_TRACE_V2_WRONG;
		sonde_vec_foreach (m, &x->s->ms)
			if (m->p_slot == slot)
				m->p_slot = NO_SLOT;
	}
	struct sonde_trace_p *p = &x->s->ps.items[slot];
	move_p(x->e, p, slot, SONDE_TRACE_P_IDLE);
	set_seq_p(x, p, seq);
	return SONDE_TRACE_V2_OK;
}

/* --- goroutines --- */

/* A goroutine in a system call, told of from another thread than its own. */
static enum sonde_trace_v2_step status_elsewhere(
	const struct sonde_trace_v2_try *x, uint32_t g_slot, uint64_t mid)
{
	struct sonde_trace_event *e = x->e;
	uint32_t m_slot = sonde_trace_state_find_m(x->s, mid);
	if (m_slot != NO_SLOT) {
		NEED(x->s->ms.items[m_slot].g_slot == g_slot && g_slot != NO_SLOT,
			"inconsistent thread for syscalling goroutine %" PRIu64 ": thread %" PRIu64
			" does not have it",
			e->args[0], mid);
		if (x->s->ms.items[m_slot].g_slot == g_slot) {
			e->g = e->args[0];
			e->g_slot = g_slot;
		}
	}
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_status(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint64_t id = e->args[0], mid = e->args[1], status = e->args[2];
	uint32_t slot = sonde_trace_state_find_g(x->s, id);
	bool known = slot != NO_SLOT, first = x->v->gen == x->v->first_gen;
	NEED(status <= SONDE_TRACE_G_WAITING, "invalid status %" PRIu64 " of goroutine %" PRIu64,
		status, id);
	if (status > SONDE_TRACE_G_WAITING)
		status = SONDE_TRACE_G_UNDETERMINED;
	if (known)
		NEED(g_is(&x->s->gs.items[slot], (unsigned)status),
			"inconsistent status for goroutine %" PRIu64 ": old %s vs. new %s", id,
			sonde_trace_g_status_name(x->s->gs.items[slot].status),
			sonde_trace_g_status_name((unsigned)status));
	else
		NEED(first,
			"found a status for new goroutine %" PRIu64 " after the first generation",
			id);
	bool syscall = status == SONDE_TRACE_G_SYSCALL, here = syscall && mid == e->m;
	if (syscall)
		NEED(mid != NO_ID, "found goroutine %" PRIu64 " in a syscall without a thread", id);
	if (here && !first)
		NEED(slot == e->g_slot && known,
			"inconsistent thread for syscalling goroutine %" PRIu64
			": its thread has another",
			id);
	bool elsewhere = syscall && !here && mid != NO_ID;
	if (elsewhere) {
		enum sonde_trace_v2_step step = status_elsewhere(x, slot, mid);
		if (step != SONDE_TRACE_V2_OK)
			return step;
	}
	if (!known && !have_g(x, id, &slot))
		return SONDE_TRACE_V2_WRONG;
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	move_g(x, e, g, slot, (unsigned)status);
	if (!known)
		e->g_before = first ? SONDE_TRACE_G_UNDETERMINED : SONDE_TRACE_G_NONE;
	set_seq_g(x, g, 0);
	if (thread(x)->g_slot == slot)
		thread(x)->g_slot = NO_SLOT;
	if (status == SONDE_TRACE_G_RUNNING || syscall)
		unbind_g(x, slot);
	if (status == SONDE_TRACE_G_RUNNING || here)
		bind_g(x, slot);
	if (elsewhere) {
		uint32_t m_slot = sonde_trace_state_find_m(x->s, mid);
		if (m_slot == NO_SLOT) {
			m_slot = sonde_trace_state_add_m(x->s, mid);
			if (m_slot == NO_SLOT) {
				out_of_memory(x);
				return SONDE_TRACE_V2_WRONG;
			}
		}
		x->s->ms.items[m_slot].g_slot = slot;
		e->m = mid;
		e->m_slot = m_slot;
	}
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_create(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint64_t id = e->args[0];
	NEED_M();
	NEED_P();
	if (e->g_slot != NO_SLOT)
		NEED(g_is(&x->s->gs.items[e->g_slot], SONDE_TRACE_G_RUNNING),
			"%s by goroutine %" PRIu64 " that's %s, not running",
			sonde_trace_kind_name(e->kind), e->g,
			sonde_trace_g_status_name(x->s->gs.items[e->g_slot].status));
	NEED(sonde_trace_state_find_g(x->s, id) == NO_SLOT,
		"tried to create goroutine %" PRIu64 " that already exists", id);
	uint32_t slot;
	if (!have_g(x, id, &slot))
		return SONDE_TRACE_V2_WRONG;
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	if (sonde_unlikely(thread(x)->g_slot == slot)) /* forced: it was there, and made itself */
		thread(x)->g_slot = NO_SLOT;
	move_g(x, e, g, slot,
		e->kind == SONDE_TRACE_GO_CREATE_BLOCKED ? SONDE_TRACE_G_WAITING
							 : SONDE_TRACE_G_RUNNABLE);
	set_seq_g(x, g, 0);
	if (sonde_unlikely(!e->args[1]))
		sonde_trace_damage_add(x->v->r, SONDE_TRACE_DAMAGE_NO_ENTRY,
			&(struct sonde_trace_place){e->offset, e->m, e->p, id, 0},
			"goroutine %" PRIu64 " begins without a stack", id);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_create_syscall(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint64_t id = e->args[0];
	uint32_t slot;
	NEED_M();
	NEED_NO_G();
	NEED(sonde_trace_state_find_g(x->s, id) == NO_SLOT,
		"tried to create goroutine %" PRIu64 " in a syscall that already exists", id);
	if (!have_g(x, id, &slot))
		return SONDE_TRACE_V2_WRONG;
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	move_g(x, e, g, slot, SONDE_TRACE_G_SYSCALL);
	set_seq_g(x, g, 0);
	bind_g(x, slot);
	sonde_trace_damage_add(x->v->r, SONDE_TRACE_DAMAGE_NO_ENTRY,
		&(struct sonde_trace_place){e->offset, e->m, e->p, id, 0},
		"goroutine %" PRIu64 " comes from a thread of C", id);
	return SONDE_TRACE_V2_OK;
}

/* The goroutine that runs ends, yields or blocks. */
static enum sonde_trace_v2_step go_stop_exec(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint32_t slot = e->g_slot;
	NEED_USER();
	if (slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	NEED(g_is(g, SONDE_TRACE_G_RUNNING), "%s by goroutine %" PRIu64 " that's %s, not running",
		sonde_trace_kind_name(e->kind), g->id, sonde_trace_g_status_name(g->status));
	thread(x)->g_slot = NO_SLOT;
	switch (e->kind) {
	case SONDE_TRACE_GO_DESTROY:
		move_g(x, e, g, slot, SONDE_TRACE_G_NONE);
		sonde_trace_state_remove_g(x->s, slot);
		break;
	case SONDE_TRACE_GO_STOP:
		move_g(x, e, g, slot, SONDE_TRACE_G_RUNNABLE);
		break;
	default:
		move_g(x, e, g, slot, SONDE_TRACE_G_WAITING);
	}
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_start(const struct sonde_trace_v2_try *x)
{
	uint64_t id = x->e->args[0], seq = x->e->args[1];
	uint32_t slot = sonde_trace_state_find_g(x->s, id);
	if (sonde_likely(!x->force)) {
		if (slot == NO_SLOT)
			return SONDE_TRACE_V2_WAIT;
		struct sonde_trace_g *g = &x->s->gs.items[slot];
		if (!g_is(g, SONDE_TRACE_G_RUNNABLE) || !g_succeeds(x, g, seq))
			return SONDE_TRACE_V2_WAIT;
		NEED_M();
		NEED_P();
		NEED_NO_G();
	} else if (!have_g(x, id, &slot)) {
		return SONDE_TRACE_V2_WRONG;
	}
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	move_g(x, x->e, g, slot, SONDE_TRACE_G_RUNNING);
	set_seq_g(x, g, seq);
	bind_g(x, slot);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_unblock(const struct sonde_trace_v2_try *x)
{
	uint64_t id = x->e->args[0], seq = x->e->args[1];
	uint32_t slot = sonde_trace_state_find_g(x->s, id);
	if (sonde_likely(!x->force)) {
		if (slot == NO_SLOT)
			return SONDE_TRACE_V2_WAIT;
		struct sonde_trace_g *g = &x->s->gs.items[slot];
		if (!g_is(g, SONDE_TRACE_G_WAITING) || !g_succeeds(x, g, seq))
			return SONDE_TRACE_V2_WAIT;
	} else if (!have_g(x, id, &slot)) {
		return SONDE_TRACE_V2_WRONG;
	} else if (thread(x)->g_slot == slot) {
		thread(x)->g_slot = NO_SLOT;
	}
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	move_g(x, x->e, g, slot, SONDE_TRACE_G_RUNNABLE);
	set_seq_g(x, g, seq);
	return SONDE_TRACE_V2_OK;
}

/* An event that the reader makes of another: nothing of it stands in the file. */
static struct sonde_trace_event *make_event(
	const struct sonde_trace_v2_try *x, unsigned at, unsigned kind)
{
	struct sonde_trace_event *e = &x->v->queue[at];
	*e = *x->e;
	e->kind = (uint8_t)kind;
	e->wire = 0;
	e->offset = 0;
	e->flags = SONDE_TRACE_MADE;
	e->args[0] = e->args[1] = e->args[2] = e->args[3] = 0;
	e->g_before = e->g_after = e->p_before = e->p_after = 0;
	e->subject_g = e->subject_p = NO_ID;
	e->subject_g_slot = e->subject_p_slot = NO_SLOT;
	return e;
}

/* The running goroutine gives the thread to another: unblock it, block or end, start it. */
static enum sonde_trace_v2_step go_switch(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint64_t next = e->args[0], seq = e->args[1];
	uint32_t current = e->g_slot, slot;
	NEED_USER();
	if (current != NO_SLOT)
		NEED(g_is(&x->s->gs.items[current], SONDE_TRACE_G_RUNNING),
			"%s by goroutine %" PRIu64 " that's %s, not running",
			sonde_trace_kind_name(e->kind), e->g,
			sonde_trace_g_status_name(x->s->gs.items[current].status));
	slot = sonde_trace_state_find_g(x->s, next);
	if (!x->force &&
		(slot == NO_SLOT || !g_is(&x->s->gs.items[slot], SONDE_TRACE_G_WAITING) ||
			!g_succeeds(x, &x->s->gs.items[slot], seq)))
		return wait(x, "goroutine %" PRIu64, next);
	if (!have_g(x, next, &slot))
		return SONDE_TRACE_V2_WRONG;
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	bool destroy = e->kind == SONDE_TRACE_GO_SWITCH_DESTROY;
	move_g(x, e, g, slot, SONDE_TRACE_G_RUNNABLE);
	set_seq_g(x, g, seq);
	struct sonde_trace_event *stop =
		make_event(x, 1, destroy ? SONDE_TRACE_GO_DESTROY : SONDE_TRACE_GO_BLOCK);
	struct sonde_trace_event *start = make_event(x, 2, SONDE_TRACE_GO_START);
	if (current != NO_SLOT && current != slot) {
		move_g(x, stop, &x->s->gs.items[current], current,
			destroy ? SONDE_TRACE_G_NONE : SONDE_TRACE_G_WAITING);
		if (destroy)
			sonde_trace_state_remove_g(x->s, current);
	}
	start->g = NO_ID;
	start->g_slot = NO_SLOT;
	start->args[0] = next;
	start->args[1] = seq;
	move_g(x, start, g, slot, SONDE_TRACE_G_RUNNING);
	thread(x)->g_slot = NO_SLOT;
	bind_g(x, slot);
	x->v->n_queued = 3;
	return SONDE_TRACE_V2_OK;
}

/* --- system calls --- */

static enum sonde_trace_v2_step syscall_begin(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	NEED_USER();
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[e->g_slot];
	NEED(g_is(g, SONDE_TRACE_G_RUNNING),
		"GoSyscallBegin by goroutine %" PRIu64 " that's %s, not running", g->id,
		sonde_trace_g_status_name(g->status));
	if (e->p_slot != NO_SLOT) {
		struct sonde_trace_p *p = &x->s->ps.items[e->p_slot];
		NEED(p_succeeds(x, p, e->args[0]),
			"GoSyscallBegin: sequence %" PRIu64 " of proc %" PRIu64
			" does not follow %" PRIu32,
			e->args[0], p->id, p->seq);
		move_p(e, p, e->p_slot, SONDE_TRACE_P_SYSCALL);
		set_seq_p(x, p, e->args[0]);
	}
	move_g(x, e, g, e->g_slot, SONDE_TRACE_G_SYSCALL);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step syscall_end(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	NEED_USER();
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[e->g_slot];
	NEED(g_is(g, SONDE_TRACE_G_SYSCALL),
		"GoSyscallEnd by goroutine %" PRIu64 " that's %s, not in a syscall", g->id,
		sonde_trace_g_status_name(g->status));
	if (e->p_slot != NO_SLOT) {
		struct sonde_trace_p *p = &x->s->ps.items[e->p_slot];
		NEED(p_is(p, SONDE_TRACE_P_SYSCALL),
			"expected proc %" PRIu64 " in a syscall, but it is %s", p->id,
			sonde_trace_p_status_name(p->status));
		move_p(e, p, e->p_slot, SONDE_TRACE_P_RUNNING);
	}
	move_g(x, e, g, e->g_slot, SONDE_TRACE_G_RUNNING);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step syscall_end_blocked(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	bool holds =
		e->p_slot != NO_SLOT && x->s->ps.items[e->p_slot].status == SONDE_TRACE_P_SYSCALL;
	if (holds && !x->force)
		return wait(x, "its proc is still in the syscall");
	NEED_M();
	NEED_G();
	if (holds) {
		x->s->ps.items[e->p_slot].status = SONDE_TRACE_P_UNDETERMINED;
		thread(x)->p_slot = NO_SLOT;
	}
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[e->g_slot];
	NEED(g_is(g, SONDE_TRACE_G_SYSCALL),
		"GoSyscallEndBlocked by goroutine %" PRIu64 " that's %s, not in a syscall", g->id,
		sonde_trace_g_status_name(g->status));
	move_g(x, e, g, e->g_slot, SONDE_TRACE_G_RUNNABLE);
	thread(x)->g_slot = NO_SLOT;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step destroy_syscall(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	NEED_M();
	NEED_G();
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[e->g_slot];
	NEED(g_is(g, SONDE_TRACE_G_SYSCALL),
		"GoDestroySyscall by goroutine %" PRIu64 " that's %s, not in a syscall", g->id,
		sonde_trace_g_status_name(g->status));
	if (e->p_slot != NO_SLOT) {
		struct sonde_trace_p *p = &x->s->ps.items[e->p_slot];
		NEED(p_is(p, SONDE_TRACE_P_SYSCALL),
			"proc %" PRIu64 " is %s, not in a syscall, during GoDestroySyscall", p->id,
			sonde_trace_p_status_name(p->status));
		/* The thread's number may be used again: what it held is taken from it at once. */
		x->v->queue[1] = *e;
		struct sonde_trace_event *steal = make_event(x, 0, SONDE_TRACE_PROC_STEAL);
		steal->args[0] = p->id;
		move_p(steal, p, e->p_slot, SONDE_TRACE_P_ABANDONED);
		steal->p_after = SONDE_TRACE_P_IDLE;
		thread(x)->p_slot = NO_SLOT;
		e = &x->v->queue[1];
		x->v->n_queued = 2;
	}
	thread(x)->g_slot = NO_SLOT;
	move_g(x, e, g, e->g_slot, SONDE_TRACE_G_NONE);
	sonde_trace_state_remove_g(x->s, e->g_slot);
	return SONDE_TRACE_V2_OK;
}

/* --- annotations and metrics --- */

static enum sonde_trace_v2_step annotation(const struct sonde_trace_v2_try *x)
{
	NEED_USER();
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step heap_metric(const struct sonde_trace_v2_try *x)
{
	NEED_M();
	NEED_P();
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step alloc_free(const struct sonde_trace_v2_try *x)
{
	NEED_M();
	return SONDE_TRACE_V2_OK;
}

static bool interned(const struct sonde_trace_v2_try *x, uint64_t string, uint32_t *ret)
{
	*ret = sonde_trace_intern(x->v->r, string);
	return *ret != UINT32_MAX || out_of_memory(x);
}

static enum sonde_trace_v2_step task_begin(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint64_t id = e->args[0];
	uint32_t slot = sonde_trace_state_find_task(x->s, id), name;
	NEED(slot == NO_SLOT, "task ID conflict: %" PRIu64 " is open already", id);
	NEED_USER();
	if (!e->args[1])
		e->args[1] = NO_ID;
	if (slot == NO_SLOT)
		slot = sonde_trace_state_add_task(x->s, id);
	if (slot == NO_SLOT)
		out_of_memory(x);
	if (slot == NO_SLOT || !interned(x, e->args[2], &name))
		return SONDE_TRACE_V2_WRONG;
	x->s->tasks.items[slot].parent = e->args[1];
	x->s->tasks.items[slot].name = name;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step task_end(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	NEED_USER();
	uint32_t slot = sonde_trace_state_find_task(x->s, e->args[0]);
	e->args[2] = NO_ID;
	e->args[3] = 0;
	if (slot == NO_SLOT)
		return SONDE_TRACE_V2_OK; /* it began before the trace, or ends twice */
	const struct sonde_trace_task *task = &x->s->tasks.items[slot];
	e->args[2] = task->parent;
	e->args[3] = task->name ? SONDE_TRACE_STRING_INTERNED | task->name : 0;
	sonde_trace_state_remove_task(x->s, slot);
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step region_begin(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint32_t name;
	NEED_USER();
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	if (!interned(x, e->args[1], &name))
		return SONDE_TRACE_V2_WRONG;
	if (!sonde_trace_state_open_region(x->s, e->g_slot, e->args[0], name)) {
		out_of_memory(x);
		return SONDE_TRACE_V2_WRONG;
	}
	return SONDE_TRACE_V2_OK;
}

static void list_region(const struct sonde_trace_v2_try *x, uint32_t name,
	const struct sonde_trace_region *inner, const char *what)
{
	const struct sonde_trace_event *e = x->e;
	sonde_trace_damage_add(x->v->r, SONDE_TRACE_DAMAGE_REGION,
		&(struct sonde_trace_place){e->offset, e->m, e->p, e->g, 0},
		"misuse of region in goroutine %" PRIu64 ": '%s' of task %" PRIu64
		" ends, but the innermost is '%s' of task %" PRIu64 "%s",
		e->g, sonde_trace_interned(x->v->r, name), e->args[0],
		sonde_trace_interned(x->v->r, inner->name), inner->task, what);
}

/* Misuse is listed here, and gone around: it says nothing about the rest of the trace. */
static enum sonde_trace_v2_step region_end(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	uint32_t name;
	NEED_USER();
	const struct sonde_trace_region *found =
		e->g_slot == NO_SLOT ? NULL : sonde_trace_state_region(x->s, e->g_slot);
	if (!found) /* it began before the trace */
		return SONDE_TRACE_V2_OK;
	if (!interned(x, e->args[1], &name))
		return SONDE_TRACE_V2_WRONG;
	struct sonde_trace_region inner = *found;
	enum sonde_trace_region_end end =
		sonde_trace_state_close_region(x->s, e->g_slot, e->args[0], name);
	if (end == SONDE_TRACE_REGION_INNER_OPEN)
		list_region(x, name, &inner, "; both are closed");
	else if (end == SONDE_TRACE_REGION_MISMATCH)
		list_region(x, name, &inner, "");
	return SONDE_TRACE_V2_OK;
}

/* --- ranges --- */

static enum sonde_trace_v2_step go_range_begin(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	bool stw = e->kind == SONDE_TRACE_STW_BEGIN;
	uint8_t bit = stw ? SONDE_TRACE_RANGE_STW : SONDE_TRACE_RANGE_MARK_ASSIST;
	NEED_USER();
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[e->g_slot];
	NEED(!(g->ranges & bit), "%s: goroutine %" PRIu64 " is in one already",
		sonde_trace_kind_name(e->kind), g->id);
	if (stw && !interned(x, e->args[0], &x->v->stw_kind))
		return SONDE_TRACE_V2_WRONG;
	g->ranges |= bit;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_range_active(const struct sonde_trace_v2_try *x)
{
	uint32_t slot = sonde_trace_state_find_g(x->s, x->e->args[0]);
	bool first = x->v->gen == x->v->first_gen;
	NEED(slot != NO_SLOT, "uninitialized goroutine %" PRIu64 " found during %s", x->e->args[0],
		sonde_trace_kind_name(x->e->kind));
	if (slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[slot];
	bool open = g->ranges & SONDE_TRACE_RANGE_MARK_ASSIST;
	NEED(open != first, "%s: goroutine %" PRIu64 " is %s a mark assist",
		sonde_trace_kind_name(x->e->kind), g->id, open ? "in" : "not in");
	g->ranges |= SONDE_TRACE_RANGE_MARK_ASSIST;
	x->e->subject_g = g->id;
	x->e->subject_g_slot = slot;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step go_range_end(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_event *e = x->e;
	bool stw = e->kind == SONDE_TRACE_STW_END;
	uint8_t bit = stw ? SONDE_TRACE_RANGE_STW : SONDE_TRACE_RANGE_MARK_ASSIST;
	NEED_USER();
	if (e->g_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_g *g = &x->s->gs.items[e->g_slot];
	NEED(g->ranges & bit, "%s: goroutine %" PRIu64 " is in none",
		sonde_trace_kind_name(e->kind), g->id);
	if (stw)
		e->args[0] = x->v->stw_kind ? SONDE_TRACE_STRING_INTERNED | x->v->stw_kind : 0;
	g->ranges &= (uint8_t)~bit;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step sweep_begin(const struct sonde_trace_v2_try *x)
{
	NEED_M();
	NEED_P();
	if (x->e->p_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_p *p = &x->s->ps.items[x->e->p_slot];
	NEED(!(p->ranges & SONDE_TRACE_RANGE_SWEEP),
		"GCSweepBegin: proc %" PRIu64 " sweeps already", p->id);
	p->ranges |= SONDE_TRACE_RANGE_SWEEP;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step sweep_active(const struct sonde_trace_v2_try *x)
{
	uint32_t slot = sonde_trace_state_find_p(x->s, x->e->args[0]);
	bool first = x->v->gen == x->v->first_gen;
	NEED(slot != NO_SLOT, "GCSweepActive for unknown proc %" PRIu64, x->e->args[0]);
	if (slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_p *p = &x->s->ps.items[slot];
	bool open = p->ranges & SONDE_TRACE_RANGE_SWEEP;
	NEED(open != first, "GCSweepActive: proc %" PRIu64 " %s", p->id,
		open ? "sweeps already" : "does not sweep");
	p->ranges |= SONDE_TRACE_RANGE_SWEEP;
	return SONDE_TRACE_V2_OK;
}

static enum sonde_trace_v2_step sweep_end(const struct sonde_trace_v2_try *x)
{
	NEED_M();
	NEED_P();
	if (x->e->p_slot == NO_SLOT)
		return SONDE_TRACE_V2_OK;
	struct sonde_trace_p *p = &x->s->ps.items[x->e->p_slot];
	NEED(p->ranges & SONDE_TRACE_RANGE_SWEEP, "GCSweepEnd: proc %" PRIu64 " does not sweep",
		p->id);
	p->ranges &= (uint8_t)~SONDE_TRACE_RANGE_SWEEP;
	return SONDE_TRACE_V2_OK;
}

/* --- collections --- */

/* GCActive, GCBegin, GCEnd are one sequence over all threads. */
static enum sonde_trace_v2_step gc_event(const struct sonde_trace_v2_try *x)
{
	struct sonde_trace_state *s = x->s;
	uint8_t kind = x->e->kind;
	uint64_t seq = x->e->args[0];
	bool first = x->v->gen == x->v->first_gen;
	bool adopt = (kind == SONDE_TRACE_GC_ACTIVE && first) ||
		(kind == SONDE_TRACE_GC_BEGIN && s->gc == SONDE_TRACE_GC_UNDETERMINED);
	if (adopt) {
		NEED(s->gc == SONDE_TRACE_GC_UNDETERMINED,
			"GCActive in the first generation isn't the first GC event");
	} else {
		if (seq != s->gc_seq + 1 && !x->force)
			return wait(x, "not this cycle");
		bool want_on = kind != SONDE_TRACE_GC_BEGIN;
		NEED(s->gc == (want_on ? SONDE_TRACE_GC_ON : SONDE_TRACE_GC_OFF),
			"%s while the collector is %s", sonde_trace_kind_name(kind),
			s->gc == SONDE_TRACE_GC_ON            ? "running"
				: s->gc == SONDE_TRACE_GC_OFF ? "not running"
							      : "undetermined");
		NEED_USER();
	}
	s->gc_seq = seq;
	s->gc = kind == SONDE_TRACE_GC_END ? SONDE_TRACE_GC_OFF : SONDE_TRACE_GC_ON;
	return SONDE_TRACE_V2_OK;
}

const sonde_trace_v2_handler sonde_trace_v2_handlers[256] = {
	[SONDE_TRACE_PROCS_CHANGE] = annotation,
	[SONDE_TRACE_PROC_START] = proc_start,
	[SONDE_TRACE_PROC_STOP] = proc_stop,
	[SONDE_TRACE_PROC_STEAL] = proc_steal,
	[SONDE_TRACE_PROC_STATUS] = proc_status,
	[SONDE_TRACE_GO_CREATE] = go_create,
	[SONDE_TRACE_GO_CREATE_SYSCALL] = go_create_syscall,
	[SONDE_TRACE_GO_START] = go_start,
	[SONDE_TRACE_GO_DESTROY] = go_stop_exec,
	[SONDE_TRACE_GO_DESTROY_SYSCALL] = destroy_syscall,
	[SONDE_TRACE_GO_STOP] = go_stop_exec,
	[SONDE_TRACE_GO_BLOCK] = go_stop_exec,
	[SONDE_TRACE_GO_UNBLOCK] = go_unblock,
	[SONDE_TRACE_GO_SYSCALL_BEGIN] = syscall_begin,
	[SONDE_TRACE_GO_SYSCALL_END] = syscall_end,
	[SONDE_TRACE_GO_SYSCALL_END_BLOCKED] = syscall_end_blocked,
	[SONDE_TRACE_GO_STATUS] = go_status,
	[SONDE_TRACE_STW_BEGIN] = go_range_begin,
	[SONDE_TRACE_STW_END] = go_range_end,
	[SONDE_TRACE_GC_ACTIVE] = gc_event,
	[SONDE_TRACE_GC_BEGIN] = gc_event,
	[SONDE_TRACE_GC_END] = gc_event,
	[SONDE_TRACE_GC_SWEEP_ACTIVE] = sweep_active,
	[SONDE_TRACE_GC_SWEEP_BEGIN] = sweep_begin,
	[SONDE_TRACE_GC_SWEEP_END] = sweep_end,
	[SONDE_TRACE_GC_MARK_ASSIST_ACTIVE] = go_range_active,
	[SONDE_TRACE_GC_MARK_ASSIST_BEGIN] = go_range_begin,
	[SONDE_TRACE_GC_MARK_ASSIST_END] = go_range_end,
	[SONDE_TRACE_HEAP_ALLOC] = heap_metric,
	[SONDE_TRACE_HEAP_GOAL] = heap_metric,
	[SONDE_TRACE_GO_LABEL] = annotation,
	[SONDE_TRACE_USER_TASK_BEGIN] = task_begin,
	[SONDE_TRACE_USER_TASK_END] = task_end,
	[SONDE_TRACE_USER_REGION_BEGIN] = region_begin,
	[SONDE_TRACE_USER_REGION_END] = region_end,
	[SONDE_TRACE_USER_LOG] = annotation,
	[SONDE_TRACE_GO_SWITCH] = go_switch,
	[SONDE_TRACE_GO_SWITCH_DESTROY] = go_switch,
	[SONDE_TRACE_GO_CREATE_BLOCKED] = go_create,
	[SONDE_TRACE_GO_STATUS_STACK] = go_status,
	[SONDE_TRACE_SPAN] = alloc_free,
	[SONDE_TRACE_SPAN_ALLOC] = alloc_free,
	[SONDE_TRACE_SPAN_FREE] = alloc_free,
	[SONDE_TRACE_HEAP_OBJECT] = alloc_free,
	[SONDE_TRACE_HEAP_OBJECT_ALLOC] = alloc_free,
	[SONDE_TRACE_HEAP_OBJECT_FREE] = alloc_free,
	[SONDE_TRACE_GOROUTINE_STACK] = alloc_free,
	[SONDE_TRACE_GOROUTINE_STACK_ALLOC] = alloc_free,
	[SONDE_TRACE_GOROUTINE_STACK_FREE] = alloc_free,
};
