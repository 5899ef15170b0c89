#include "golang/stack.h"

#include "build_go.h"
#include "tap.h"

enum {
	TEXT = 0x401000,
	RECORDS = 0x900000,
	LOW = 0x8000000,
	HIGH = LOW + 0x2000,
	SYSTEM = 0x9000000, /* the thread's own stack */
	SYSTEM_BYTES = 0x2000,
	CODE = 0x40, /* bytes of every function */
};

/* A function whose frame has n bytes but in its first and last 4 bytes of code. */
#define FRAME(n) .size_bytes = CODE, .pcsp = {{0, 4}, {(n), CODE - 8}, {0, 4}}

enum {
	MAIN,
	WORKER,
	LEAF,
	GOEXIT,
	SYSTEMSTACK,
	MCALL,
	MORESTACK,
	GOGO,
	SIGTRAMP,
	SIGPANIC,
	PREEMPT,
	MSTART,
	WRITER,
	NEGATIVE,
	GOPARK,
	N_FUNCTIONS
};

/* Frame sizes are what pcsp says: without the return address on x86, with the saved LR on arm64. */
static struct bg_function functions[N_FUNCTIONS] = {
	[MAIN] = {.name = "main.main", FRAME(24)},
	[WORKER] = {.name = "main.worker", FRAME(40), .args_bytes = 16},
	[LEAF] = {.name = "main.leaf", .size_bytes = CODE, .pcsp = {{0, CODE}}},
	[GOEXIT] = {.name = "runtime.goexit",
		.size_bytes = CODE,
		.pcsp = {{0, CODE}},
		.flags = SONDE_FUNC_TOP_FRAME | SONDE_FUNC_ASM},
	[SYSTEMSTACK] = {.name = "runtime.systemstack",
		FRAME(8),
		.flags = SONDE_FUNC_SP_WRITE | SONDE_FUNC_ASM},
	[MCALL] = {.name = "runtime.mcall",
		FRAME(8),
		.flags = SONDE_FUNC_SP_WRITE | SONDE_FUNC_ASM},
	[MORESTACK] = {.name = "runtime.morestack",
		FRAME(8),
		.flags = SONDE_FUNC_SP_WRITE | SONDE_FUNC_ASM},
	[GOGO] = {.name = "gogo", FRAME(8), .flags = SONDE_FUNC_SP_WRITE | SONDE_FUNC_ASM},
	[SIGTRAMP] = {.name = "runtime.sigtramp",
		FRAME(16),
		.flags = SONDE_FUNC_TOP_FRAME | SONDE_FUNC_ASM},
	[SIGPANIC] = {.name = "runtime.sigpanic", FRAME(24)},
	[PREEMPT] = {.name = "runtime.asyncPreempt", FRAME(16)},
	[MSTART] = {.name = "runtime.mstart",
		FRAME(8),
		.flags = SONDE_FUNC_TOP_FRAME | SONDE_FUNC_ASM},
	[WRITER] = {.name = "main.writer", FRAME(8), .flags = SONDE_FUNC_SP_WRITE},
	[NEGATIVE] = {.name = "main.negative", FRAME(-8)},
	[GOPARK] = {.name = "runtime.gopark", FRAME(32)},
};

struct stack {
	struct bg b;
	uint64_t g, m;
	uint64_t sp; /* where the next pushed word goes: below it */
	struct sonde_arena arena;
	struct sonde_go_frames frames;
	struct sonde_regs interrupted;
	const char *cut;
	struct sonde_go_gap gap;
	struct sonde_go_stack_ctx ctx;
};

static void stack_deinit(struct stack *s)
{
	sonde_arena_deinit(&s->arena);
	sonde_go_frames_deinit(&s->frames);
	bg_deinit(&s->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(stack)

static void begin(struct stack *s, uint16_t machine)
{
	*s = (struct stack){.sp = HIGH - 32}; /* newproc leaves four words above the first frame */
	struct bg *b = &s->b;
	bg_init(b, machine);
	bg_layout(b);
	if (machine != EM_AARCH64)
		b->go.layout.g_sched_lr.size = 0;
	struct bg_area *records = bg_area(b, RECORDS, 4096);
	s->g = bg_put(b, records, 64 * b->word);
	s->m = bg_put(b, records, 64 * b->word);
	bg_area(b, LOW, HIGH - LOW);
	bg_area(b, SYSTEM, SYSTEM_BYTES);
	bg_functions(b, TEXT, functions, N_FUNCTIONS);
	sonde_arena_init(&s->arena);
	s->ctx = (struct sonde_go_stack_ctx){
		.go = &b->go, .g = s->g, .stack_low = LOW, .stack_high = HIGH, .status = 4};
}

/* A pc inside function i, past its prologue. */
static uint64_t in(int i)
{
	return TEXT + (uint64_t)i * CODE + 0x14;
}

/* One frame of x86 code: a return address on top of n bytes. */
static void push_frame(struct stack *s, uint64_t return_pc, uint64_t n)
{
	s->sp -= s->b.word;
	bg_word(&s->b, s->sp, return_pc);
	s->sp -= n;
}

static void walk(struct stack *s)
{
	if (!s->b.target)
		bg_open(&s->b);
	s->frames.n = 0;
	s->cut = NULL;
	CHECK_OK(sonde_go_stack_walk(
		&s->ctx, &s->arena, &s->frames, &s->cut, &s->gap, &s->interrupted));
}

/* What the walk found, as "worker main goexit"; flags: e exact, c conservative, s system stack, i signalled, t trapped. */
static const char *names(struct stack *s)
{
	static char text[1024];
	text[0] = 0;
	for (size_t i = 0; i < s->frames.n && i < 20; i++) {
		const struct sonde_go_frame *f = &s->frames.items[i];
		struct sonde_pcfunc function;
		const char *name = "?";
		if (sonde_go_frame_function(&s->b.go, f, &function))
			name = strchr(function.name, '.') ? strchr(function.name, '.') + 1
							  : function.name;
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s%s%s%s%s%s%s",
			i ? " " : "", name, f->flags ? "/" : "",
			f->flags & SONDE_GO_FRAME_EXACT ? "e" : "",
			f->flags & SONDE_GO_FRAME_CONSERVATIVE ? "c" : "",
			f->flags & SONDE_GO_FRAME_SYSTEM_STACK ? "s" : "",
			f->flags & SONDE_GO_FRAME_SIGNALLED ? "i" : "",
			f->flags & SONDE_GO_FRAME_TRAPPED ? "t" : "");
	}
	return text;
}

/* gopark <- worker <- main <- goexit, parked: the saved state. */
static void push_parked(struct stack *s)
{
	push_frame(s, in(GOEXIT), 24); /* main's frame */
	push_frame(s, in(MAIN), 40);
	push_frame(s, in(WORKER), 32);
	bg_g_at(&s->b, s->g,
		&(struct bg_g){.stack_low = LOW,
			.stack_high = HIGH,
			.status = 4,
			.sched_sp = s->sp,
			.sched_pc = in(GOPARK)});
}

static void saved_state(void)
{
	for (int is32 = 0; is32 < 2; is32++) {
		sonde_cleanup(stack) struct stack s;
		begin(&s, is32 ? EM_386 : EM_X86_64);
		unsigned word = s.b.word;
		push_parked(&s);
		walk(&s);
		CHECK_STR(names(&s), "gopark worker main goexit");
		CHECK(!s.cut);
		CHECK_EQ(s.interrupted.known, 0);
		REQUIRE(s.frames.n == 4);
		const struct sonde_go_frame *f = &s.frames.items[1];
		CHECK_EQ(f->pc, in(WORKER));
		CHECK_EQ(f->sp, s.frames.items[0].fp);
		CHECK_EQ(f->fp, f->sp + 40 + word);
		CHECK_EQ(f->argp, f->fp);
		/* Where frame pointers are saved, one lies between the locals and the return address. */
		CHECK_EQ(f->varp, f->fp - word - (is32 ? 0 : word));
		CHECK_EQ(sonde_go_frame_lookup_pc(f), in(WORKER)-1);
		CHECK_EQ(s.frames.items[3].fp, HIGH - 32 + word);
	}
}

static void leaf_frames(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 0);
	bg_g_at(&s.b, s.g, &(struct bg_g){.status = 4, .sched_sp = s.sp, .sched_pc = in(LEAF)});
	walk(&s);
	CHECK_STR(names(&s), "leaf main goexit");
	CHECK_EQ(s.frames.items[0].varp, s.frames.items[0].sp); /* no locals, no frame pointer */
	CHECK(!s.cut);
}

static void not_begun(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 0);
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 1, .sched_sp = s.sp, .sched_pc = TEXT + WORKER * CODE});
	s.ctx.status = 1;
	walk(&s);
	/* The entry itself, which no call has returned to: not the last instruction of the function before it. */
	CHECK_STR(names(&s), "worker/e goexit");
	CHECK_EQ(s.frames.items[0].fp, s.frames.items[0].sp + 8);
	CHECK(!s.cut);
}

static void system_call(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 40);
	/* The saved state is newer or older: the system call's is what holds. */
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 3,
			.sched_sp = LOW,
			.sched_pc = in(MCALL),
			.syscallsp = s.sp,
			.syscallpc = in(WORKER)});
	s.ctx.status = 3;
	walk(&s);
	CHECK_STR(names(&s), "worker main goexit");
	CHECK(!s.cut);
}

static struct sonde_regs regs_of(uint64_t pc, uint64_t sp)
{
	struct sonde_regs r = {.machine = EM_X86_64};
	sonde_regs_set(&r, SONDE_X86_64_RIP, pc);
	sonde_regs_set(&r, SONDE_X86_64_RSP, sp);
	sonde_regs_set(&r, SONDE_X86_64_RAX, 0xabc);
	return r;
}

static void running(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 40);
	struct sonde_regs regs = regs_of(in(WORKER), s.sp);
	s.ctx.status = 2;
	s.ctx.regs = &regs;
	walk(&s);
	/* No map is valid where it was stopped. */
	CHECK_STR(names(&s), "worker/eci main goexit");
	CHECK_EQ(s.interrupted.dwarf[SONDE_X86_64_RAX], 0xabc);
	CHECK_EQ(sonde_go_frame_lookup_pc(&s.frames.items[0]), in(WORKER));
	/* In the prologue: the frame is not there yet. */
	regs = regs_of(TEXT + WORKER * CODE, s.sp + 40);
	walk(&s);
	CHECK_STR(names(&s), "worker/eci main goexit");
	/* Without its thread. */
	s.ctx.regs = NULL;
	walk(&s);
	CHECK_EQ(s.frames.n, 0);
	CHECK_STR(s.cut, "[running, but its thread is not in the core]");
}

/* A thread on its own stack, at work for the goroutine. */
static void system_stack(void)
{
	static const struct {
		int top; /* what the system stack begins with */
		const char *want;
	} rows[] = {
		{SYSTEMSTACK, "leaf/es systemstack worker main goexit"},
		{MCALL, "leaf/es mcall/s gopark worker main goexit"},
		{MORESTACK, "leaf/es gopark worker main goexit"},
		{GOGO, "leaf/es gopark worker main goexit"},
		{MSTART, "leaf/es mstart/s gopark worker main goexit"},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(stack) struct stack s;
		begin(&s, EM_X86_64);
		push_parked(&s);
		uint64_t sp = SYSTEM + SYSTEM_BYTES - 64;
		if (rows[i].top == SYSTEMSTACK) {
			/* Its own frame lies on the goroutine's stack (runtime/asm_amd64.s). */
			s.sp += 40;
			push_frame(&s, in(WORKER), 8);
			bg_g_at(&s.b, s.g,
				&(struct bg_g){.status = 2,
					.sched_sp = s.sp,
					.sched_pc = in(SYSTEMSTACK)});
		}
		bg_word(&s.b, sp, in(rows[i].top));
		struct sonde_regs regs = regs_of(in(LEAF), sp);
		s.ctx.regs = &regs;
		s.ctx.status = 2;
		walk(&s);
		if (strcmp(names(&s), rows[i].want))
			printf("# row %zu\n", i);
		CHECK_STR(names(&s), rows[i].want);
		CHECK(!s.cut);
		CHECK_EQ(s.interrupted.known,
			0); /* those of the system stack are not the goroutine's */
	}
}

/* C code on the system stack: what is known is the goroutine below. */
static void c_code(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_parked(&s);
	struct sonde_regs regs = regs_of(0x7f0012345678, SYSTEM + 0x1000);
	s.ctx.regs = &regs;
	s.ctx.status = 2;
	walk(&s);
	CHECK_STR(names(&s), "gopark worker main goexit");
	CHECK(!s.cut);
	/* And where nothing was saved, the reason is C code, by its address. */
	bg_g_at(&s.b, s.g, &(struct bg_g){.status = 2});
	walk(&s);
	CHECK_EQ(s.frames.n, 0);
	CHECK_STR(s.cut, "[no function at pc 0x7f0012345678]");
}

static void vdso(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 40);
	bg_field(&s.b, s.m, s.b.go.layout.m_vdso_sp, s.sp);
	bg_field(&s.b, s.m, s.b.go.layout.m_vdso_pc, in(WORKER));
	struct sonde_regs regs = regs_of(0x7ffe00001000, SYSTEM + 0x100);
	s.ctx.regs = &regs;
	s.ctx.status = 2;
	s.ctx.m = s.m;
	walk(&s);
	CHECK_STR(names(&s), "worker main goexit");
}

/* A handler on the signal stack: sigtramp, the kernel's trampoline, the ucontext, what it interrupted. */
static void signal_frame(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	static const uint8_t trampoline[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	struct bg_area *kernel = bg_area(&s.b, 0x7fff0000, 64);
	memcpy(kernel->host + 16, trampoline, sizeof(trampoline));
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 40);
	uint64_t sp = SYSTEM + 0x400, at = sp;
	bg_word(&s.b, at, in(SIGTRAMP)); /* the leaf's return address */
	at += 8 + 16;
	bg_word(&s.b, at, 0x7fff0010); /* sigtramp's: the trampoline */
	uint64_t ucontext = at + 8;
	bg_word(&s.b, ucontext + 40 + 13 * 8, 0x777); /* rax */
	bg_word(&s.b, ucontext + 40 + 15 * 8, s.sp);
	bg_word(&s.b, ucontext + 40 + 16 * 8, in(WORKER));
	struct sonde_regs regs = regs_of(in(LEAF), sp);
	s.ctx.regs = &regs;
	s.ctx.status = 2;
	walk(&s);
	CHECK_STR(names(&s), "leaf/es sigtramp/s worker/eci main goexit");
	CHECK_EQ(s.interrupted.dwarf[SONDE_X86_64_RAX], 0x777);
	CHECK(!s.cut);
	/* A context that leads back into the handler ends at some time, and soon. */
	bg_word(&s.b, ucontext + 40 + 15 * 8, sp);
	bg_word(&s.b, ucontext + 40 + 16 * 8, in(LEAF));
	walk(&s);
	CHECK(s.frames.n < 20);
	CHECK(s.cut && strstr(s.cut, "signal handler"));
	/* No trampoline there. */
	kernel->host[16] = 0;
	walk(&s);
	CHECK_STR(names(&s), "leaf/es sigtramp/s");
	CHECK(s.cut && strstr(s.cut, "[signal handler: no context at 0x"));
}

/* sigpanic was called by nobody: what stands above it is the pc of the fault itself. */
static void faults(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 40);
	push_frame(&s, in(WORKER), 24);
	bg_g_at(&s.b, s.g, &(struct bg_g){.status = 4, .sched_sp = s.sp, .sched_pc = in(SIGPANIC)});
	walk(&s);
	CHECK_STR(names(&s), "sigpanic worker/ect main goexit");
	CHECK_EQ(sonde_go_frame_lookup_pc(&s.frames.items[1]), in(WORKER));
	/* The first instruction of a function faulted: pc - 1 would be another function. */
	bg_word(&s.b, s.sp + 24, TEXT + WORKER * CODE);
	bg_word(&s.b, s.sp + 32, in(MAIN));
	walk(&s);
	CHECK_EQ(s.frames.items[1].function, WORKER);
	CHECK_EQ(s.frames.items[1].fp, s.frames.items[1].sp + 8);
}

static void preempted(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_frame(&s, in(GOEXIT), 24);
	push_frame(&s, in(MAIN), 40);
	push_frame(&s, in(WORKER), 16);
	bg_g_at(&s.b, s.g, &(struct bg_g){.status = 9, .sched_sp = s.sp, .sched_pc = in(PREEMPT)});
	s.ctx.status = 9;
	walk(&s);
	CHECK_STR(names(&s), "asyncPreempt/c worker/eci main goexit");
	CHECK(!s.cut);
}

static void broken(void)
{
	static const struct {
		uint64_t return_pc;
		const char *want, *cut;
	} rows[] = {
		{0, "worker", NULL}, /* a stack may begin with 0 */
		{1, "worker", "[no function at pc 0x1]"},
		{0x1234567890, "worker", "[no function at pc 0x1234567890]"},
		{UINT64_MAX, "worker", "[no function at pc 0xffffffffffffffff]"},
		{TEXT, "worker",
			"[no function at pc 0x401000]"}, /* nothing calls from before the text */
		{TEXT + NEGATIVE * CODE + 0x14, "worker",
			"[no frame size of main.negative at pc 0x401354]"},
		{TEXT + WRITER * CODE + 0x14, "worker writer",
			"[main.writer changes the stack pointer]"},
		{TEXT + N_FUNCTIONS * CODE + 1, "worker", "[no function at pc 0x4013c1]"},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(stack) struct stack s;
		begin(&s, EM_X86_64);
		push_frame(&s, in(GOEXIT), 24);
		push_frame(&s, rows[i].return_pc, 40);
		bg_g_at(&s.b, s.g,
			&(struct bg_g){.status = 4, .sched_sp = s.sp, .sched_pc = in(WORKER)});
		walk(&s);
		if (strcmp(names(&s), rows[i].want))
			printf("# row %zu\n", i);
		CHECK_STR(names(&s), rows[i].want);
		if (rows[i].cut)
			CHECK_STR(s.cut, rows[i].cut);
		else
			CHECK(!s.cut);
	}
}

static void out_of_bounds(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 4, .sched_sp = HIGH - 16, .sched_pc = in(WORKER)});
	walk(&s);
	CHECK_EQ(s.frames.n, 0);
	CHECK(s.cut && strstr(s.cut, "[frame of main.worker at 0x8001ff0 leaves its stack]"));
	/* Not readable, as a truncated core. */
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 4, .sched_sp = 0x6000000, .sched_pc = in(WORKER)});
	s.ctx.stack_low = 0x5000000;
	walk(&s);
	CHECK_STR(names(&s), "worker");
	CHECK(s.cut && strstr(s.cut, "is not readable"));
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 4, .sched_sp = UINT64_MAX - 20, .sched_pc = in(WORKER)});
	s.ctx.stack_high = UINT64_MAX;
	walk(&s);
	CHECK(s.cut != NULL);
	/* Nothing saved. */
	bg_g_at(&s.b, s.g, &(struct bg_g){.status = 4});
	walk(&s);
	CHECK_STR(s.cut, "[no saved state of the goroutine]");
	s.ctx.g = 0x1234;
	walk(&s);
	CHECK_STR(s.cut, "[no saved state of the goroutine]");
}

/* Frames without end: the stack's own size bounds them. */
static void recursion(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	size_t n = 0;
	push_frame(&s, in(GOEXIT), 40);
	for (; s.sp > LOW + 64; n++)
		push_frame(&s, in(WORKER), 40);
	bg_g_at(&s.b, s.g, &(struct bg_g){.status = 4, .sched_sp = s.sp, .sched_pc = in(WORKER)});
	walk(&s);
	CHECK_EQ(s.frames.n, n + 2);
	CHECK(!s.cut);
}

/* arm64: the return address is in LR, or at the low end of the frame; it is no part of the argument area. */
static void arm64(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_AARCH64);
	/* main: 24 bytes with LR at its start; worker: 40. */
	uint64_t main_sp = HIGH - 32, worker_sp = main_sp - 40;
	bg_word(&s.b, main_sp, in(GOEXIT));
	bg_word(&s.b, worker_sp, in(MAIN));
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 4, .sched_sp = worker_sp, .sched_pc = in(WORKER)});
	walk(&s);
	CHECK_STR(names(&s), "worker main goexit");
	CHECK(!s.cut);
	REQUIRE(s.frames.n == 3);
	const struct sonde_go_frame *f = &s.frames.items[0];
	CHECK_EQ(f->fp, worker_sp + 40);
	CHECK_EQ(f->argp, f->fp + 8);
	CHECK_EQ(f->varp, f->fp - 8);
	/* A leaf of no frame: LR is what the saved state says. */
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 4,
			.sched_sp = worker_sp,
			.sched_pc = in(LEAF),
			.sched_lr = in(WORKER)});
	walk(&s);
	CHECK_STR(names(&s), "leaf worker main goexit");
	/* The same with registers. */
	struct sonde_regs r = {.machine = EM_AARCH64};
	sonde_regs_set(&r, SONDE_ARM64_PC, in(LEAF));
	sonde_regs_set(&r, SONDE_ARM64_SP, worker_sp);
	sonde_regs_set(&r, SONDE_ARM64_LR, in(WORKER));
	s.ctx.status = 2;
	s.ctx.regs = &r;
	walk(&s);
	CHECK_STR(names(&s), "leaf/eci worker main goexit");
	/* A frame that is there holds its LR itself; the register is newer. */
	sonde_regs_set(&r, SONDE_ARM64_PC, in(WORKER));
	sonde_regs_set(&r, SONDE_ARM64_LR, in(LEAF));
	walk(&s);
	CHECK_STR(names(&s), "worker/eci main goexit");
}

/* The pushed call of a fault on arm64: LR is saved in a small frame of 16 bytes (sigctxt.pushCall). */
static void arm64_fault(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_AARCH64);
	uint64_t main_sp = HIGH - 32, leaf_sp = main_sp, saved = leaf_sp - 16,
		 panic_sp = saved - 24;
	bg_word(&s.b, main_sp, in(GOEXIT));
	bg_word(&s.b, saved, in(MAIN)); /* LR of the leaf when it faulted */
	bg_word(&s.b, panic_sp, in(LEAF)); /* the pc of the fault */
	bg_g_at(&s.b, s.g,
		&(struct bg_g){.status = 4, .sched_sp = panic_sp, .sched_pc = in(SIGPANIC)});
	walk(&s);
	CHECK_STR(names(&s), "sigpanic leaf/ect main goexit");
	CHECK(!s.cut);
}

static void unknown_machine(void)
{
	sonde_cleanup(stack) struct stack s;
	begin(&s, EM_X86_64);
	push_parked(&s);
	s.b.machine = EM_RISCV;
	bg_open(&s.b);
	struct sonde_error *err =
		sonde_go_stack_walk(&s.ctx, &s.arena, &s.frames, &s.cut, &s.gap, &s.interrupted);
	CHECK_ERROR(err, SONDE_UNSUPPORTED, "Go stacks of machine 243");
}

int main(void)
{
	RUN(saved_state);
	RUN(leaf_frames);
	RUN(not_begun);
	RUN(system_call);
	RUN(running);
	RUN(system_stack);
	RUN(c_code);
	RUN(vdso);
	RUN(signal_frame);
	RUN(faults);
	RUN(preempted);
	RUN(broken);
	RUN(out_of_bounds);
	RUN(recursion);
	RUN(arm64);
	RUN(arm64_fault);
	RUN(unknown_machine);
	return tap_end();
}
