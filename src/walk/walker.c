#include "walk/walker.h"

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FRAMES = 1 << 16, MAX_SIGNALS = 8, SIGRETURN_MOV_BYTES = 7 };
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
	size_t whole; /* index in ->to of the last frame of which all registers are known */
	struct sonde_regs whole_regs;
};

const char *sonde_walk_how_name(enum sonde_walk_how how)
{
	static const char *const names[] = {
		[SONDE_WALK_START] = "registers",
		[SONDE_WALK_TABLE] = "table",
		[SONDE_WALK_FRAME_POINTER] = "frame pointer",
		[SONDE_WALK_INSTRUCTION] = "instruction",
		[SONDE_WALK_SIGNAL] = "signal frame",
		[SONDE_WALK_BAD_CALL] = "stack top after a bad call",
		[SONDE_WALK_RUNTIME] = "runtime",
	};
	return names[how];
}

__attribute__((format(printf, 2, 3))) static void stop(struct walk *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	const char *text = sonde_arena_vprintf(w->arena, fmt, args);
	va_end(args);
	w->why = text ? text : "[out of memory]";
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
 * have moved up. The innermost frame may share its caller's where the return address is in a register: a leaf of arm64,
 * code of x86-64 that is about to jump.
 */
static void enter_caller(struct walk *w, uint64_t pc, uint64_t sp, bool has_fp, uint64_t fp,
	uint8_t how, bool by_register)
{
	bool leaf = by_register && w->exact;
	uint64_t old_sp = sp_of(w), old_pc = pc_of(w);
	/* A signal's handler may have a stack of its own, anywhere. */
	if (how == SONDE_WALK_SIGNAL) {
		if (w->n_signals++ >= MAX_SIGNALS) {
			stop(w, "[more than %d signal frames]", MAX_SIGNALS);
			return;
		}
	} else if (sp < old_sp || (sp == old_sp && !(leaf && pc != old_pc))) {
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

/* What the ABI makes every function keep for its caller: other registers are lost with the first call. */
static bool callee_saved(const struct walk *w, uint32_t number)
{
	if (w->machine->machine == EM_X86_64)
		return number == SONDE_X86_64_RBX || number == SONDE_X86_64_RBP ||
			(number >= 12 && number <= 15);
	return number >= 19 && number <= SONDE_ARM64_FP;
}

/* A register of the frame at `at`, as far as frames remember it. */
static bool frame_reg(const struct walk *w, size_t at, uint32_t number, uint64_t *ret)
{
	const struct sonde_walk_frame *f = &w->to->items[at];
	if (number == w->machine->sp)
		*ret = f->sp;
	else if (number == w->machine->fp && f->has_fp)
		*ret = f->fp;
	else if (at == w->whole && sonde_regs_has(&w->whole_regs, number))
		*ret = w->whole_regs.dwarf[number];
	else
		return false;
	return true;
}

/*
 * A register that tables do not follow, in the frame to be left: it was saved by a frame further in, or is still what it
 * was in the last frame of which all registers are known. Rare (glibc's lazy binding hangs its frame on rbx), so the
 * call-frame information itself is asked, from the nearest frame inwards.
 */
static bool find_by_cfi(const struct walk *w, uint32_t number, uint64_t *ret)
{
	if (!callee_saved(w, number))
		return false;
	for (size_t at = w->to->n - 1; at > w->whole; at--) {
		const struct sonde_walk_frame *f = &w->to->items[at - 1];
		struct sonde_cfi_value v;
		uint64_t base, cfa = w->to->items[at].sp;
		if (f->module == UINT32_MAX ||
			!sonde_walk_register_rule(w->modules, &w->modules->all.items[f->module],
				sonde_walk_frame_lookup_pc(f), number, &v))
			return false;
		switch (v.kind) {
		case SONDE_CFI_SAME:
			continue;
		case SONDE_CFI_CFA_MEMORY:
			return read_word(w, cfa + (uint64_t)v.offset, ret);
		case SONDE_CFI_CFA_VALUE:
			*ret = cfa + (uint64_t)v.offset;
			return true;
		case SONDE_CFI_REG_MEMORY:
			return frame_reg(w, at - 1, v.reg, &base) &&
				read_word(w, base + (uint64_t)v.offset, ret);
		case SONDE_CFI_REG_VALUE:
			if (!frame_reg(w, at - 1, v.reg, &base))
				return false;
			*ret = base + (uint64_t)v.offset;
			return true;
		default:
			return false;
		}
	}
	return frame_reg(w, w->whole, number, ret);
}

static bool reg(const struct walk *w, uint32_t number, uint64_t *ret)
{
	if (!sonde_regs_has(&w->regs, number))
		return find_by_cfi(w, number, ret);
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

/*
 * The caller's stack pointer is the CFA, by every ABI. But code that is about to leave for another stack (longjmp) has its
 * return address in a register and says where the stack pointer is.
 */
static uint64_t caller_sp(const struct walk *w, struct sonde_walk_module *m,
	const struct sonde_unwind_rule *r, uint64_t cfa)
{
	struct sonde_cfi_value v;
	uint64_t sp;
	if (w->machine->lr != UINT8_MAX || sonde_unwind_ra_kind(r) != SONDE_UNWIND_REG_VALUE ||
		!sonde_walk_register_rule(
			w->modules, m, w->exact ? pc_of(w) : pc_of(w) - 1, w->machine->sp, &v) ||
		v.kind != SONDE_CFI_REG_VALUE || !reg(w, v.reg, &sp))
		return cfa;
	return sp + (uint64_t)v.offset;
}

static void step_by_rule(
	struct walk *w, struct sonde_walk_module *m, const struct sonde_unwind_rule *r)
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
	uint64_t sp = caller_sp(w, m, r, cfa);
	enter_caller(w, pc, sp, has_fp, fp, signal ? SONDE_WALK_SIGNAL : SONDE_WALK_TABLE,
		sonde_unwind_ra_kind(r) == SONDE_UNWIND_SAME ||
			sonde_unwind_ra_kind(r) == SONDE_UNWIND_REG_VALUE);
	w->exact = signal;
}

/* call rel32, call r/m64 with its addressing forms (SDM volume 2, CALL), by their lengths. */
static bool ends_in_call(const uint8_t b[7])
{
	enum { E8 = 0xe8, FF = 0xff, REG_FIELD = 0x38, FIELD_2 = 0x10 };
	if (b[2] == E8)
		return true;
	static const uint8_t lengths[] = {2, 3, 4, 6, 7};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(lengths); i++) {
		const uint8_t *p = b + 7 - lengths[i];
		if (p[0] == FF && (p[1] & REG_FIELD) == FIELD_2)
			return true;
	}
	return false;
}

/*
 * Whether pc can be where a call returns to: in code, behind a call (as far as the code can be read), or the kernel's
 * trampoline.
 */
static bool is_return_address(const struct walk *w, uint64_t pc)
{
	struct sonde_target *t = w->modules->target;
	struct sonde_regs at = w->regs, before;
	uint8_t code[7];
	if (!sonde_walk_is_code(w->modules, pc - 1))
		return false;
	if (w->machine->machine != EM_X86_64 || !sonde_target_read(t, pc - 7, code, sizeof(code)) ||
		ends_in_call(code))
		return true;
	sonde_regs_set(&at, w->machine->pc, pc);
	return sonde_regs_of_sigreturn(t, &at, &before);
}

/*
 * The thread stands in code of x86-64 without a table at an instruction that tells where the return address is: a
 * function's first, the one behind push %rbp, ret. *at: its distance from the stack pointer.
 */
static bool at_known_instruction(const struct walk *w, uint64_t *at)
{
	static const struct {
		uint8_t code[5], n, before, at;
	} known[] = {
		{{0xf3, 0x0f, 0x1e, 0xfa}, 4, 0, 0}, /* endbr64 */
		{{0x55, 0x48, 0x89, 0xe5}, 4, 0, 0}, /* push %rbp; mov %rsp,%rbp */
		{{0x55, 0x48, 0x89, 0xe5}, 4, 1, 8}, /* at its mov */
		{{0xc3}, 1, 0, 0}, /* ret */
		{{0x5d, 0xc3}, 2, 0, 8}, /* pop %rbp; ret */
	};
	if (!w->exact || w->machine->machine != EM_X86_64)
		return false;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(known); i++) {
		uint8_t code[sizeof(known[i].code)];
		if (sonde_target_read(
			    w->modules->target, pc_of(w) - known[i].before, code, known[i].n) &&
			!memcmp(code, known[i].code, known[i].n)) {
			*at = known[i].at;
			return true;
		}
	}
	return false;
}

/* Code without a table: it may keep frame pointers. What they lead to must look like a stack. */
static void step_without_table(struct walk *w, const struct sonde_walk_module *m)
{
	unsigned word = w->machine->word_bytes;
	uint64_t fp, pc, next, at, sp = sp_of(w);
	if (at_known_instruction(w, &at) && read_word(w, sp + at, &pc) &&
		is_return_address(w, pc) &&
		(at ? read_word(w, sp, &fp) : reg(w, w->machine->fp, &fp))) {
		enter_caller(w, pc, sp + at + word, true, fp, SONDE_WALK_INSTRUCTION, false);
		return;
	}
	if (!reg(w, w->machine->fp, &fp) || fp < sp || fp % word || !read_word(w, fp, &next) ||
		!read_word(w, fp + word, &pc) || !pc || (next && next <= fp)) {
		stop(w, "[%s: %s]", m && m->no_table ? m->no_table : "no unwind info",
			m ? m->name : "unknown code");
		return;
	}
	if (w->machine->machine == EM_AARCH64)
		pc &= ARM64_ADDR_MASK;
	if (!is_return_address(w, pc)) {
		stop(w, "[no unwind info: %s]", m ? m->name : "unknown code");
		return;
	}
	enter_caller(w, pc, fp + 2 * word, true, next, SONDE_WALK_FRAME_POINTER, false);
}

/* The innermost pc is no code: a call through a bad pointer left the return address on top (or in the link register). */
static void step_out_of_bad_call(struct walk *w)
{
	uint64_t pc, sp = sp_of(w), fp = 0;
	bool has_fp = reg(w, w->machine->fp, &fp);
	bool got =
		w->machine->lr == UINT8_MAX ? read_word(w, sp, &pc) : reg(w, w->machine->lr, &pc);
	if (got && w->machine->machine == EM_AARCH64)
		pc &= ARM64_ADDR_MASK;
	if (!got || !is_return_address(w, pc)) {
		stop(w, "[no code at pc 0x%" PRIx64 "]", pc_of(w));
		return;
	}
	enter_caller(w, pc, w->machine->lr == UINT8_MAX ? sp + w->machine->word_bytes : sp, has_fp,
		fp, SONDE_WALK_BAD_CALL, w->machine->lr != UINT8_MAX);
}

/* The trampoline below a handler, also where the thread stands at its second instruction, the system call. */
static bool interrupted(const struct walk *w, struct sonde_regs *before)
{
	struct sonde_target *t = w->modules->target;
	if (sonde_regs_of_sigreturn(t, &w->regs, before))
		return true;
	if (!w->exact)
		return false;
	struct sonde_regs at = w->regs;
	sonde_regs_set(&at, w->machine->pc,
		pc_of(w) - (w->machine->machine == EM_X86_64 ? SIGRETURN_MOV_BYTES : 4));
	return sonde_regs_of_sigreturn(t, &at, before);
}

static struct sonde_error *step(struct walk *w)
{
	uint64_t pc = pc_of(w), lookup = w->exact ? pc : pc - 1;
	struct sonde_walk_module *m = sonde_walk_modules_find(w->modules, lookup);
	struct sonde_walk_frame frame = {
		.pc = pc,
		.sp = sp_of(w),
		.fp = w->regs.dwarf[w->machine->fp],
		.has_fp = sonde_regs_has(&w->regs, w->machine->fp),
		.how = w->how,
		.exact = w->exact,
		.module = m ? (uint32_t)(m - w->modules->all.items) : UINT32_MAX,
	};
	if (!sonde_walk_frames_push(w->to, frame))
		return &sonde_enomem;
	if (w->whole == SIZE_MAX) {
		w->whole = w->to->n - 1;
		w->whole_regs = w->regs;
	}
	/* Below a handler lies the kernel's trampoline: all registers of what it interrupted are there. */
	struct sonde_regs before;
	if (w->n_signals < MAX_SIGNALS && interrupted(w, &before)) {
		w->n_signals++;
		w->to->items[w->to->n - 1].trampoline = true;
		w->to->items[w->to->n - 1].exact = true; /* nobody called it */
		w->regs = before;
		w->how = SONDE_WALK_SIGNAL;
		w->exact = true;
		w->whole = SIZE_MAX;
		return NULL;
	}
	if (!m || !sonde_walk_is_code(w->modules, lookup)) {
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
		step_without_table(w, m);
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
		.whole = SIZE_MAX,
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
