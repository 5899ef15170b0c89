#include "golang/stack.h"

#include <elf.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { MAX_FRAMES = 1 << 20, MAX_SIGNALS = 4 };

/* How frames lie in memory on each machine (runtime/stkframe.go, internal/goarch). */
static const struct frame_shape {
	uint16_t machine;
	bool return_on_stack; /* a call pushes the return address */
	bool saves_fp; /* framepointer_enabled */
	uint8_t min_frame_words; /* sys.MinFrameSize */
} shapes[] = {
	{EM_X86_64, true, true, 0},
	{EM_386, true, false, 0},
	{EM_AARCH64, false, true, 1},
};

/* Functions at which a stack changes or a call was not made by its caller; by name, since ids differ by version. */
enum special {
	ORDINARY,
	SYSTEMSTACK,
	MCALL,
	MORESTACK,
	GOGO,
	SIGTRAMP,
	INJECTED_PANIC,
	INJECTED_PREEMPT,
	ASMCGOCALL,
	CGOCALLBACK, /* writes SP, but keeps both of its stacks fit for unwinding */
};

static const struct {
	const char *name;
	enum special special;
} specials[] = {
	{"runtime.systemstack", SYSTEMSTACK},
	{"runtime.mcall", MCALL},
	{"runtime.morestack", MORESTACK},
	{"runtime.gogo", GOGO},
	{"gogo", GOGO},
	{"runtime.sigtramp", SIGTRAMP},
	{"runtime.cgoSigtramp", SIGTRAMP},
	{"runtime.sigpanic", INJECTED_PANIC},
	{"runtime.asyncPreempt", INJECTED_PREEMPT},
	{"runtime.debugCallV2", INJECTED_PREEMPT},
	{"runtime.asmcgocall", ASMCGOCALL},
	{"runtime.cgocallback", CGOCALLBACK},
};

static enum special special_of(const char *name)
{
	for (size_t i = 0; i < SONDE_ARRAY_LEN(specials); i++) {
		if (!strcmp(name, specials[i].name))
			return specials[i].special;
	}
	return ORDINARY;
}

struct walker {
	const struct sonde_go_stack_ctx *ctx;
	const struct sonde_go *go;
	const struct frame_shape *shape;
	struct sonde_arena *arena;
	struct sonde_go_frames *to;
	struct sonde_regs *interrupted;
	const char *cut;
	struct sonde_go_gap gap;
	size_t first; /* this goroutine's first frame in *to */
	uint64_t pc, sp, lr; /* lr: 0 = on the stack */
	bool exact; /* pc is an instruction, not a return address */
	bool innermost;
	bool conservative; /* for the frame to come */
	bool trapped; /* its callee is sigpanic */
	bool on_g; /* sp lies on the goroutine's own stack */
	unsigned n_signals; /* handlers left */
	bool jumped; /* from the system stack to the goroutine: at most once */
	bool done;
};

__attribute__((format(printf, 2, 3))) static void cut(struct walker *w, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	const char *text = sonde_arena_vprintf(w->arena, fmt, args);
	va_end(args);
	w->cut = text ? text : "out of memory";
	w->done = true;
}

static bool on_stack_of_g(const struct walker *w, uint64_t sp)
{
	return sp >= w->ctx->stack_low && sp <= w->ctx->stack_high;
}

/* Go on at the state that the runtime saved when it left the goroutine's stack. */
static void jump_to_saved(struct walker *w)
{
	const struct sonde_go_layout *l = &w->go->layout;
	if (w->jumped || !sonde_go_read(w->go, w->ctx->g, l->g_sched_pc, &w->pc) ||
		!sonde_go_read(w->go, w->ctx->g, l->g_sched_sp, &w->sp) || !w->pc || !w->sp) {
		cut(w, "[no saved state of the goroutine]");
		return;
	}
	w->lr = 0;
	if (l->g_sched_lr.size && !w->shape->return_on_stack)
		sonde_go_read(w->go, w->ctx->g, l->g_sched_lr, &w->lr);
	w->jumped = true;
	w->exact = w->trapped = w->conservative = false;
	w->innermost = true;
	w->on_g = true;
}

/* The handler returns to the kernel's trampoline: what it interrupted stands in the ucontext. */
static bool leave_signal_handler(struct walker *w, uint64_t pc, uint64_t sp)
{
	const struct sonde_process_info *info = sonde_target_info(w->go->target);
	struct sonde_regs at = {.machine = info->machine}, before;
	const struct sonde_machine *machine = sonde_machine_find(info->machine);
	sonde_regs_set(&at, machine->pc, pc);
	sonde_regs_set(&at, machine->sp, sp);
	if (w->n_signals++ == MAX_SIGNALS || !sonde_regs_of_sigreturn(w->go->target, &at, &before))
		return false;
	w->pc = sonde_regs_pc(&before);
	w->sp = sonde_regs_sp(&before);
	w->lr = machine->lr == UINT8_MAX ? 0 : before.dwarf[machine->lr];
	w->on_g = on_stack_of_g(w, w->sp);
	w->exact = w->innermost = w->conservative = true;
	w->trapped = false;
	*w->interrupted = before;
	return true;
}

/* The last part of the name of the file that pc is of. NULL: none. */
static const char *file_at(const struct walker *w, uint64_t pc)
{
	const struct sonde_mapping *map = sonde_target_mapping_find(w->go->target, pc);
	const char *path = map && map->path ? map->path : NULL;
	return path && strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
}

/*
 * A goroutine that called C is "in a system call" with the caller's state saved. Its thread is in that C code, or in a
 * signal handler above it.
 */
static void note_cgo_call(struct walker *w)
{
	struct sonde_pcfunc f;
	if (w->to->n == w->first || !sonde_go_frame_function(w->go, &w->to->items[w->first], &f) ||
		strcmp(f.name, "runtime.cgocall") != 0)
		return;
	const struct sonde_regs *regs = w->ctx->regs;
	uint64_t pc = regs ? sonde_regs_pc(regs) : 0;
	const struct sonde_go_module *m;
	const char *file = pc && !sonde_go_function_at(w->go, pc, &f, &m) ? file_at(w, pc) : NULL;
	const char *text = file
		? sonde_arena_printf(w->arena, "[C code at 0x%" PRIx64 " in %s]", pc, file)
		: "[C code; see `sonde core threads`]";
	w->gap.text = text ? text : "[C code; see `sonde core threads`]";
}

/* Where no Go function holds pc. */
static void not_go(struct walker *w)
{
	const char *file = file_at(w, w->pc);
	if (file)
		cut(w, "[C code at 0x%" PRIx64 " in %s]", w->pc, file);
	else
		cut(w, "[no function at pc 0x%" PRIx64 "]", w->pc);
	/* Called from Go on the system stack: the goroutine's own frames are still there. */
	if (!w->on_g && !w->jumped) {
		const char *why = w->cut;
		w->done = false;
		w->cut = NULL;
		jump_to_saved(w);
		if (w->done)
			w->cut = why;
		else
			w->gap = (struct sonde_go_gap){why, w->to->n - w->first};
	}
}

static bool find_function(
	struct walker *w, struct sonde_pcfunc *f, const struct sonde_go_module **module)
{
	if (w->exact)
		return sonde_go_function_at(w->go, w->pc, f, module);
	/* A saved pc may be the entry of a function that has not begun; a return address never is. */
	if (w->innermost && sonde_go_function_at(w->go, w->pc, f, module) && f->entry == w->pc) {
		w->exact = true;
		return true;
	}
	return sonde_go_function_at(w->go, w->pc - 1, f, module);
}

static bool stack_delta(const struct walker *w, const struct sonde_go_module *m,
	const struct sonde_pcfunc *f, int32_t *delta)
{
	uint64_t pc = w->pc < f->end ? w->pc : w->pc - 1;
	return sonde_pclntab_value(&m->functions, f, f->pcsp, pc, delta) && *delta >= 0;
}

/* One frame: place it, append it, move to its caller. */
static struct sonde_error *step(struct walker *w)
{
	struct sonde_pcfunc f;
	const struct sonde_go_module *m;
	if (!find_function(w, &f, &m)) {
		not_go(w);
		return NULL;
	}
	enum special special = special_of(f.name);
	unsigned word = w->go->word_bytes;

	/* On the system stack these functions were called from the goroutine (unwinder.resolveInternal, unwindJumpStack). */
	if (!w->on_g && !w->jumped && (special == MORESTACK || special == GOGO)) {
		jump_to_saved(w);
		return NULL;
	}
	if (!w->on_g && !w->jumped && special == SYSTEMSTACK) {
		uint64_t sp;
		if (sonde_go_read(w->go, w->ctx->g, w->go->layout.g_sched_sp, &sp) &&
			on_stack_of_g(w, sp)) {
			w->sp = sp;
			w->on_g = w->jumped = true;
			w->lr = 0;
		}
	}

	int32_t delta;
	if (!stack_delta(w, m, &f, &delta)) {
		cut(w, "[no frame size of %s at pc 0x%" PRIx64 "]", f.name, w->pc);
		return NULL;
	}
	struct sonde_go_frame frame = {
		.pc = w->pc,
		.sp = w->sp,
		.function = f.index,
		.module = (uint16_t)(m - w->go->modules),
		.flags = (w->exact ? SONDE_GO_FRAME_EXACT : 0) |
			(w->conservative ? SONDE_GO_FRAME_CONSERVATIVE | SONDE_GO_FRAME_SIGNALLED
					 : 0) |
			(w->trapped ? SONDE_GO_FRAME_TRAPPED | SONDE_GO_FRAME_CONSERVATIVE : 0) |
			(w->on_g ? 0 : SONDE_GO_FRAME_SYSTEM_STACK),
	};
	frame.fp = w->sp + (uint32_t)delta + (w->shape->return_on_stack ? word : 0);
	frame.varp = frame.fp - (w->shape->return_on_stack ? word : 0);
	if (frame.varp > frame.sp && w->shape->saves_fp)
		frame.varp -= word;
	frame.argp = frame.fp + (uint64_t)w->shape->min_frame_words * word;
	if (w->on_g && (frame.fp > w->ctx->stack_high || frame.fp < w->sp)) {
		cut(w, "[frame of %s at 0x%" PRIx64 " leaves its stack]", f.name, w->sp);
		return NULL;
	}

	uint64_t caller = w->lr;
	bool readable = true;
	if (w->shape->return_on_stack)
		readable = sonde_go_read_word(w->go, frame.fp - word, &caller);
	else if (!caller || (w->innermost && delta > 0))
		readable = sonde_go_read_word(w->go, frame.sp, &caller);
	if (special == INJECTED_PREEMPT && w->on_g)
		frame.flags |= SONDE_GO_FRAME_CONSERVATIVE;
	if (!sonde_go_frames_push(w->to, frame))
		return &sonde_enomem;

	bool top = f.flags & SONDE_FUNC_TOP_FRAME;
	if (special == SIGTRAMP && readable) {
		if (leave_signal_handler(w, caller, frame.fp))
			return NULL;
		cut(w, "[signal handler: no context at 0x%" PRIx64 "]", frame.fp);
		return NULL;
	}
	if (special == MCALL && !w->on_g && !w->jumped) {
		jump_to_saved(w);
		return NULL;
	}
	if (top) {
		/* The system stack begins here; the goroutine that it works for waits below. */
		if (w->on_g || w->jumped)
			w->done = true;
		else
			jump_to_saved(w);
		return NULL;
	}
	if ((f.flags & SONDE_FUNC_SP_WRITE) && !w->innermost && special == ORDINARY) {
		cut(w, "[%s changes the stack pointer]", f.name);
		return NULL;
	}
	if (!readable) {
		cut(w, "[stack of %s at 0x%" PRIx64 " is not readable]", f.name, frame.fp);
		return NULL;
	}
	if (caller == w->pc && frame.fp == w->sp) {
		cut(w, "[frame of %s repeats]", f.name);
		return NULL;
	}
	/* A frame stopped by a fault or a preemption has its own pc on the stack, not a return address. */
	bool injected = special == INJECTED_PANIC || special == INJECTED_PREEMPT;
	w->pc = caller;
	w->sp = frame.fp;
	w->lr = 0;
	w->exact = injected;
	w->trapped = special == INJECTED_PANIC;
	w->conservative = special == INJECTED_PREEMPT;
	w->innermost = false;
	if (injected && !w->shape->return_on_stack) {
		/* sigctxt.pushCall saved LR in a small frame of two words. */
		sonde_go_read_word(w->go, w->sp, &w->lr);
		w->sp += 2 * word;
	}
	if (!w->pc)
		w->done = true;
	return NULL;
}

/* Where the walk begins: the saved state, the system call's, or the thread's registers. */
static void begin(struct walker *w)
{
	const struct sonde_go_layout *l = &w->go->layout;
	const struct sonde_go_stack_ctx *ctx = w->ctx;
	uint64_t v;
	w->innermost = true;
	w->on_g = true;
	if (sonde_go_read(w->go, ctx->g, l->g_syscallsp, &v) && v &&
		(ctx->status != l->g_running || !ctx->regs)) {
		w->sp = v;
		sonde_go_read(w->go, ctx->g, l->g_syscallpc, &w->pc);
		return;
	}
	if (ctx->status == l->g_running) {
		if (!ctx->regs) {
			cut(w, "[running, but its thread is not in the core]");
			return;
		}
		if (ctx->m && sonde_go_read(w->go, ctx->m, l->m_vdso_sp, &v) && v &&
			sonde_go_read(w->go, ctx->m, l->m_vdso_pc, &w->pc)) {
			w->sp = v;
			w->on_g = on_stack_of_g(w, w->sp);
			if (w->on_g)
				return;
		}
		w->pc = sonde_regs_pc(ctx->regs);
		w->sp = sonde_regs_sp(ctx->regs);
		const struct sonde_machine *machine = sonde_machine_find(ctx->regs->machine);
		w->lr = machine->lr == UINT8_MAX ? 0 : ctx->regs->dwarf[machine->lr];
		w->exact = true;
		w->on_g = on_stack_of_g(w, w->sp);
		if (w->on_g) {
			w->conservative = true;
			*w->interrupted = *ctx->regs;
		}
		return;
	}
	jump_to_saved(w);
}

struct sonde_error *sonde_go_stack_walk(const struct sonde_go_stack_ctx *ctx,
	struct sonde_arena *arena, struct sonde_go_frames *to, const char **cut_reason,
	struct sonde_go_gap *gap, struct sonde_regs *interrupted)
{
	struct walker w = {
		.ctx = ctx, .go = ctx->go, .arena = arena, .to = to, .interrupted = interrupted};
	interrupted->known = 0;
	uint16_t machine = sonde_target_info(ctx->go->target)->machine;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(shapes); i++) {
		if (shapes[i].machine == machine)
			w.shape = &shapes[i];
	}
	if (!w.shape)
		return sonde_error_new(SONDE_UNSUPPORTED, "Go stacks of machine %u", machine);
	w.first = to->n;
	begin(&w);
	while (!w.done) {
		if (to->n - w.first >= MAX_FRAMES) {
			cut(&w, "[more than %d frames]", MAX_FRAMES);
			break;
		}
		SONDE_TRY(step(&w));
	}
	if (ctx->status == ctx->go->layout.g_syscall && !w.gap.text)
		note_cgo_call(&w);
	*cut_reason = w.cut;
	*gap = w.gap;
	return NULL;
}
