#include "walk/walker.h"

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FRAMES = 1 << 16, MAX_SIGNALS = 8 };
/* User addresses of Linux on arm64 have at most 52 bits; what lies above is a pointer authentication code. */
static const uint64_t ARM64_ADDR_MASK = (UINT64_C(1) << 52) - 1;

struct walk {
	struct sonde_walk_modules *modules;
	const struct sonde_machine *machine;
	struct sonde_arena *arena;
	struct sonde_walk_frames *to;
	struct sonde_regs regs; /* of the frame to come: pc, sp, fp, and what else is known */
	const char *why;
	uint8_t how;
	bool exact, done;
	unsigned n_signals;
};

const char *sonde_walk_how_name(enum sonde_walk_how how)
{
	static const char *const names[] = {
		[SONDE_WALK_START] = "registers",
		[SONDE_WALK_TABLE] = "table",
		[SONDE_WALK_FRAME_POINTER] = "frame pointer",
		[SONDE_WALK_SIGNAL] = "signal frame",
		[SONDE_WALK_BAD_CALL] = "stack top after a bad call",
	};
	return names[how];
}

__attribute__((format(printf, 2, 3))) static void stop(struct walk *w, const char *fmt, ...)
{
	char text[256];
	va_list args;
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	const char *copy = sonde_arena_strdup(w->arena, text);
	w->why = copy ? copy : "[out of memory]";
	w->done = true;
}

static uint64_t pc_of(const struct walk *w)
{
	return w->regs.dwarf[w->machine->pc];
}

static uint64_t sp_of(const struct walk *w)
{
	return w->regs.dwarf[w->machine->sp];
}

/*
 * Go to the caller: only what the table or the frame pointer says is known of its registers, and the stack pointer must
 * have moved up (a leaf of arm64 may share its caller's).
 */
static void enter_caller(
	struct walk *w, uint64_t pc, uint64_t sp, bool has_fp, uint64_t fp, uint8_t how)
{
	bool leaf = w->machine->lr != UINT8_MAX && w->exact;
	uint64_t old_sp = sp_of(w), old_pc = pc_of(w);
	if (sp < old_sp || (sp == old_sp && !(leaf && pc != old_pc))) {
		stop(w, "[the stack pointer does not move: 0x%" PRIx64 " after 0x%" PRIx64 "]", sp,
			old_sp);
		return;
	}
	struct sonde_regs caller = {.machine = w->regs.machine};
	if (w->machine->machine == EM_AARCH64)
		pc &= ARM64_ADDR_MASK;
	sonde_regs_set(&caller, w->machine->pc, pc);
	sonde_regs_set(&caller, w->machine->sp, sp);
	if (has_fp)
		sonde_regs_set(&caller, w->machine->fp, fp);
	w->regs = caller;
	w->how = how;
	w->exact = false;
	if (pc == 0) /* what start-up code leaves below the first frame */
		w->done = true;
}

static bool read_word(const struct walk *w, uint64_t addr, uint64_t *ret)
{
	return sonde_target_read_word(w->modules->target, addr, ret);
}

static bool reg(const struct walk *w, uint32_t number, uint64_t *ret)
{
	if (!sonde_regs_has(&w->regs, number))
		return false;
	*ret = w->regs.dwarf[number];
	return true;
}

/* NULL, or why there is no CFA. */
static const char *find_cfa(const struct walk *w, const struct sonde_unwind_rule *r, uint64_t *cfa)
{
	uint64_t base;
	if (sonde_unwind_cfa_kind(r) == SONDE_UNWIND_CFA_UNSUPPORTED)
		return sonde_unwind_unsupported_name((enum sonde_unwind_unsupported)r->cfa_offset);
	if (!reg(w, sonde_unwind_cfa_reg(r), &base))
		return "its frame hangs on a register that is not known here";
	base += (uint64_t)(int64_t)r->cfa_offset;
	switch (sonde_unwind_cfa_kind(r)) {
	case SONDE_UNWIND_CFA_REG:
		*cfa = base;
		return NULL;
	case SONDE_UNWIND_CFA_LOADED:
		if (!read_word(w, base, cfa))
			return "its frame is not readable";
		*cfa += (uint64_t)(int64_t)(8 * sonde_unwind_cfa_add(r));
		return NULL;
	case SONDE_UNWIND_CFA_PLT:
		*cfa = base + ((int)(pc_of(w) & 15) >= sonde_unwind_cfa_add(r) ? 8 : 0);
		return NULL;
	}
	return "a rule of an unknown kind";
}

/* A register's value in the caller. false: not known. */
static bool find_saved(const struct walk *w, uint32_t kind, uint32_t number, int32_t offset,
	uint64_t cfa, uint32_t same_reg, uint64_t *ret)
{
	uint64_t base;
	switch (kind) {
	case SONDE_UNWIND_SAME:
		return reg(w, same_reg, ret);
	case SONDE_UNWIND_CFA_MEMORY:
		return read_word(w, cfa + (uint64_t)(int64_t)offset, ret);
	case SONDE_UNWIND_CFA_VALUE:
		*ret = cfa + (uint64_t)(int64_t)offset;
		return true;
	case SONDE_UNWIND_REG_MEMORY:
		return reg(w, number, &base) && read_word(w, base + (uint64_t)(int64_t)offset, ret);
	case SONDE_UNWIND_REG_VALUE:
		if (!reg(w, number, &base))
			return false;
		*ret = base + (uint64_t)(int64_t)offset;
		return true;
	}
	return false;
}

static void step_by_rule(
	struct walk *w, const struct sonde_walk_module *m, const struct sonde_unwind_rule *r)
{
	uint64_t cfa = 0, pc, fp = 0;
	if (sonde_unwind_ra_kind(r) == SONDE_UNWIND_UNDEFINED) {
		w->done = true; /* the bottom, by the table's own word */
		return;
	}
	const char *why = find_cfa(w, r, &cfa);
	if (why) {
		stop(w, "[%s: %s]", m->name, why);
		return;
	}
	uint32_t same = w->machine->lr == UINT8_MAX ? w->machine->pc : w->machine->lr;
	if (!find_saved(w, sonde_unwind_ra_kind(r), sonde_unwind_ra_reg(r), r->ra_offset, cfa, same,
		    &pc)) {
		stop(w, "[stack at 0x%" PRIx64 " is not readable]", cfa);
		return;
	}
	bool has_fp = find_saved(w, sonde_unwind_fp_kind(r), sonde_unwind_fp_reg(r), r->fp_offset,
		cfa, w->machine->fp, &fp);
	bool signal = sonde_unwind_flags(r) & SONDE_UNWIND_SIGNAL_FRAME;
	enter_caller(w, pc, cfa, has_fp, fp, signal ? SONDE_WALK_SIGNAL : SONDE_WALK_TABLE);
	w->exact = signal;
}

/* Code without a table: it may keep frame pointers. What they lead to must look like a stack. */
static void step_by_frame_pointer(struct walk *w, const struct sonde_walk_module *m)
{
	unsigned word = w->machine->word_bytes;
	uint64_t fp, pc, next;
	if (!reg(w, w->machine->fp, &fp) || fp < sp_of(w) || fp % word ||
		!read_word(w, fp, &next) || !read_word(w, fp + word, &pc) || !pc ||
		(next && next <= fp)) {
		stop(w, "[%s: %s]",
			m ? m->no_table ? m->no_table : "no unwind info" : "no unwind info",
			m ? m->name : "unknown code");
		return;
	}
	struct sonde_walk_module *caller = sonde_walk_modules_find(w->modules, pc - 1);
	if (!caller) {
		stop(w, "[no unwind info: %s]", m ? m->name : "unknown code");
		return;
	}
	enter_caller(w, pc, fp + 2 * word, true, next, SONDE_WALK_FRAME_POINTER);
}

/* The innermost pc is no code: a call through a bad pointer left the return address on top (or in the link register). */
static void step_out_of_bad_call(struct walk *w)
{
	uint64_t pc, sp = sp_of(w), fp = 0;
	bool has_fp = reg(w, w->machine->fp, &fp);
	bool got =
		w->machine->lr == UINT8_MAX ? read_word(w, sp, &pc) : reg(w, w->machine->lr, &pc);
	if (!got || !sonde_walk_modules_find(w->modules, pc - 1)) {
		stop(w, "[no code at pc 0x%" PRIx64 "]", pc_of(w));
		return;
	}
	enter_caller(w, pc, w->machine->lr == UINT8_MAX ? sp + w->machine->word_bytes : sp, has_fp,
		fp, SONDE_WALK_BAD_CALL);
}

static struct sonde_error *step(struct walk *w)
{
	uint64_t pc = pc_of(w), lookup = w->exact ? pc : pc - 1;
	struct sonde_walk_module *m = sonde_walk_modules_find(w->modules, lookup);
	struct sonde_walk_frame frame = {
		.pc = pc,
		.sp = sp_of(w),
		.how = w->how,
		.exact = w->exact,
		.module = m ? (uint32_t)(m - w->modules->all.items) : UINT32_MAX,
	};
	if (!sonde_walk_frames_push(w->to, frame))
		return &sonde_enomem;
	/* Below a handler lies the kernel's trampoline: all registers of what it interrupted are there. */
	struct sonde_regs before;
	if (w->n_signals < MAX_SIGNALS &&
		sonde_regs_of_sigreturn(w->modules->target, &w->regs, &before)) {
		w->n_signals++;
		w->to->items[w->to->n - 1].trampoline = true;
		w->regs = before;
		w->how = SONDE_WALK_SIGNAL;
		w->exact = true;
		return NULL;
	}
	if (!m) {
		if (w->exact)
			step_out_of_bad_call(w);
		else
			stop(w, "[no code at pc 0x%" PRIx64 "]", pc);
		return NULL;
	}
	sonde_walk_module_load(w->modules, m);
	struct sonde_unwind_rule rule;
	if (m->table && sonde_unwind_table_rule(m->table, lookup - m->bias, &rule))
		step_by_rule(w, m, &rule);
	else
		step_by_frame_pointer(w, m);
	return NULL;
}

struct sonde_error *sonde_walk(struct sonde_walk_modules *modules, const struct sonde_regs *regs,
	struct sonde_arena *arena, struct sonde_walk_frames *to, const char **why)
{
	struct walk w = {
		.modules = modules,
		.machine = sonde_machine_find(regs->machine),
		.arena = arena,
		.to = to,
		.regs = *regs,
		.how = SONDE_WALK_START,
		.exact = true,
	};
	*why = NULL;
	if (!w.machine || w.machine->machine == EM_386) {
		*why = "[native stacks of this machine are not read]";
		return NULL;
	}
	size_t first = to->n;
	while (!w.done) {
		if (to->n - first >= MAX_FRAMES) {
			stop(&w, "[more than %d frames]", MAX_FRAMES);
			break;
		}
		SONDE_TRY(step(&w));
	}
	*why = w.why;
	return NULL;
}
