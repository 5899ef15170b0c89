#include "walk/walker.h"

#include <elf.h>
#include "target/ops.h"

#include "tap.h"

/*
 * A composed process: a file at FILE_ADDR (its header and .eh_frame in memory, code from CODE on, 64 bytes a function),
 * code without a file at BARE, data that is no code at DATA, a stack at STACK.
 */
enum {
	FILE_ADDR = 0x400000,
	CODE = 0x401000,
	CODE_BYTES = 0x1000,
	CFI_OFFSET = 0x2000,
	FILE_BYTES = 0x3000,
	BARE = 0x500000,
	BARE_BYTES = 0x1000,
	DATA = 0x600000,
	STACK = 0x7ffe0000,
	STACK_WORDS = 512,
	FUNCTION = 64,
};

struct scene {
	uint8_t file[FILE_BYTES], bare[BARE_BYTES], data[64];
	uint64_t stack[STACK_WORDS];
	size_t at; /* where the next record goes */
	size_t cies[2];
	uint16_t machine;
	struct sonde_target *target;
	struct sonde_walk_modules *modules;
	struct sonde_arena arena;
	struct sonde_walk_frames frames;
	struct sonde_notes notes;
	struct sonde_regs regs;
	const char *why;
};

static void put(uint8_t *at, uint64_t v, unsigned n)
{
	memcpy(at, &v, n);
}

static void put_header(uint8_t *file, uint16_t machine)
{
	static const uint8_t ident[] = {0x7f, 'E', 'L', 'F', 2, 1, 1};
	memcpy(file, ident, sizeof(ident));
	put(file + 16, ET_DYN, 2);
	put(file + 18, machine, 2);
	put(file + 20, 1, 4);
	put(file + 32, 64, 8);
	put(file + 52, 64, 2);
	put(file + 54, 56, 2);
	put(file + 56, 3, 2);
	const struct {
		uint32_t type, flags;
		uint64_t offset, len;
	} segments[] = {
		{PT_LOAD, PF_R, 0, CODE - FILE_ADDR},
		{PT_LOAD, PF_R | PF_X, CODE - FILE_ADDR, FILE_BYTES - (CODE - FILE_ADDR)},
		{PT_GNU_EH_FRAME, PF_R, CFI_OFFSET, 8},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(segments); i++) {
		uint8_t *p = file + 64 + 56 * i;
		put(p, segments[i].type, 4);
		put(p + 4, segments[i].flags, 4);
		put(p + 8, segments[i].offset, 8);
		put(p + 16, segments[i].offset, 8);
		put(p + 32, segments[i].len, 8);
		put(p + 40, segments[i].len, 8);
		put(p + 48, 4096, 8);
	}
}

static struct scene *scene_new(uint16_t machine)
{
	struct scene *s = calloc(1, sizeof(*s));
	if (!s)
		abort();
	s->machine = machine;
	s->regs.machine = machine;
	sonde_arena_init(&s->arena);
	put_header(s->file, machine);
	memset(s->file + (CODE - FILE_ADDR), 0x90, CODE_BYTES);
	memset(s->bare, 0x90, sizeof(s->bare));
	s->at = CFI_OFFSET;
	put(s->file + s->at, 0xffff1b01, 4);
	put(s->file + s->at + 4, 4, 4);
	s->at += 8;
	bool arm = machine == EM_AARCH64;
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *p = s->file + s->at;
		s->cies[i] = s->at;
		put(p, 28, 4);
		const char *augmentation = i ? "zRS" : "zR";
		p[8] = 1;
		strcpy((char *)p + 9, augmentation);
		uint8_t *q = p + 10 + strlen(augmentation);
		*q++ = 1; /* code alignment */
		*q++ = 0x78; /* data alignment: -8 */
		*q++ = arm ? 30 : 16;
		*q++ = 1;
		*q++ = 0x1b;
		static const uint8_t cfa_x86[] = {0x0c, 7, 8, 0x90, 1}, cfa_arm[] = {0x0c, 31, 0};
		if (arm)
			memcpy(q, cfa_arm, sizeof(cfa_arm));
		else
			memcpy(q, cfa_x86, sizeof(cfa_x86));
		s->at += 32;
	}
	return s;
}

/* Function number n has these call-frame instructions, from its first byte on. */
static void function(struct scene *s, unsigned n, bool signal, const char *insns, size_t len)
{
	uint8_t *p = s->file + s->at;
	put(p, 13 + len, 4);
	put(p + 4, s->at + 4 - s->cies[signal], 4);
	put(p + 8, (uint64_t)(CODE - FILE_ADDR) + n * FUNCTION - (s->at + 8), 4);
	put(p + 12, FUNCTION, 4);
	p[16] = 0;
	memcpy(p + 17, insns, len);
	s->at += 17 + len;
}
#define FUNCTION(s, n, insns) function(s, n, false, insns, sizeof(insns) - 1)
#define SIGNAL_FUNCTION(s, n, insns) function(s, n, true, insns, sizeof(insns) - 1)

static uint64_t at_function(unsigned n)
{
	return CODE + n * FUNCTION + 32;
}

static uint64_t at_stack(unsigned word)
{
	return STACK + word * 8;
}

static void walk(struct scene *s)
{
	const struct sonde_target_run runs[] = {
		{FILE_ADDR, CODE - FILE_ADDR, s->file},
		{CODE, FILE_BYTES - (CODE - FILE_ADDR), s->file + (CODE - FILE_ADDR)},
		{BARE, sizeof(s->bare), s->bare},
		{DATA, sizeof(s->data), s->data},
		{STACK, sizeof(s->stack), (const uint8_t *)s->stack},
	};
	sonde_walk_modules_free(s->modules);
	sonde_target_free(s->target);
	s->modules = NULL;
	s->target = sonde_target_over_runs(runs, SONDE_ARRAY_LEN(runs), s->machine, 8);
	REQUIRE(s->target);
	struct sonde_mapping *m = s->target->mappings;
	m[0].path = m[1].path = "[composed]";
	m[0].perm = SONDE_PERM_R;
	m[1].perm = m[2].perm = SONDE_PERM_R | SONDE_PERM_X;
	m[1].file_offset = CODE - FILE_ADDR;
	s->frames.n = 0;
	REQUIRE_OK(sonde_walk_modules_open(s->target, NULL, &s->notes, &s->modules));
	REQUIRE_OK(sonde_walk(s->modules, &s->regs, &s->arena, &s->frames, &s->why));
}

static void scene_free(struct scene *s)
{
	sonde_walk_modules_free(s->modules);
	sonde_target_free(s->target);
	sonde_walk_frames_deinit(&s->frames);
	sonde_notes_deinit(&s->notes);
	sonde_arena_deinit(&s->arena);
	free(s);
}

static void start(struct scene *s, uint64_t pc, uint64_t sp, uint64_t fp)
{
	const struct sonde_machine *m = sonde_machine_find(s->machine);
	s->regs.known = 0;
	sonde_regs_set(&s->regs, m->pc, pc);
	sonde_regs_set(&s->regs, m->sp, sp);
	sonde_regs_set(&s->regs, m->fp, fp);
}

#define CHECK_FRAME(s, i, want_pc, want_sp, want_how)         \
	do {                                                  \
		REQUIRE((i) < (s)->frames.n);                 \
		CHECK_EQ((s)->frames.items[i].pc, want_pc);   \
		CHECK_EQ((s)->frames.items[i].sp, want_sp);   \
		CHECK_EQ((s)->frames.items[i].how, want_how); \
	} while (0)

#define CHECK_WHY(s, text) CHECK((s)->why &&strstr((s)->why, text))

/* Function 0 is the bottom: its return address is undefined. */
#define BOTTOM "\x07\x10"

static void by_stack_and_frame_pointer(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	FUNCTION(s, 1, "\x0e\x20\x86\x02"); /* CFA rsp+32, rbp at CFA-16 */
	FUNCTION(s, 2, "\x0c\x06\x10\x86\x02"); /* CFA rbp+16 */
	start(s, at_function(1), at_stack(0), 77);
	s->stack[2] = at_stack(10); /* rbp of function 2 */
	s->stack[3] = at_function(2);
	s->stack[10] = 88;
	s->stack[11] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK(!s->why);
	CHECK_FRAME(s, 0, at_function(1), at_stack(0), SONDE_WALK_START);
	CHECK_FRAME(s, 1, at_function(2), at_stack(4), SONDE_WALK_TABLE);
	CHECK_FRAME(s, 2, at_function(0), at_stack(12), SONDE_WALK_TABLE);
	CHECK(s->frames.items[2].has_fp);
	CHECK_EQ(s->frames.items[2].fp, 88);
	CHECK(s->frames.items[0].exact && !s->frames.items[1].exact);
	CHECK_STR(s->modules->all.items[s->frames.items[1].module].name, "[composed]");
	CHECK_EQ(s->modules->all.items[s->frames.items[1].module].bias, FILE_ADDR);
	/* A return address at a function's end belongs to the one before. */
	s->stack[3] = CODE + 3 * FUNCTION;
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	scene_free(s);
}

static void by_other_registers(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	FUNCTION(s, 1, "\x0c\x00\x08"); /* CFA rax+8: only where it is the innermost */
	FUNCTION(s, 2, "\x0c\x03\x10\x83\x02"); /* CFA rbx+16 */
	FUNCTION(s, 3, "\x0e\x10\x83\x02"); /* keeps rbx at CFA-16 */
	FUNCTION(s, 4, ""); /* leaves rbx alone */
	start(s, at_function(1), at_stack(0), 0);
	sonde_regs_set(&s->regs, SONDE_X86_64_RAX, at_stack(4));
	s->stack[4] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_FRAME(s, 1, at_function(0), at_stack(5), SONDE_WALK_TABLE);

	/* rbx of function 2 went through 4, was saved by 3. */
	start(s, at_function(4), at_stack(0), 0);
	sonde_regs_set(&s->regs, SONDE_X86_64_RBX, 99);
	s->stack[0] = at_function(3);
	s->stack[1] = at_stack(20);
	s->stack[2] = at_function(2);
	s->stack[21] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 4);
	CHECK(!s->why);
	CHECK_FRAME(s, 3, at_function(0), at_stack(22), SONDE_WALK_TABLE);

	/* Nobody saved it: it still is what the thread has. */
	start(s, at_function(4), at_stack(0), 0);
	sonde_regs_set(&s->regs, SONDE_X86_64_RBX, at_stack(20));
	s->stack[0] = at_function(2);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK(!s->why);

	/* And where the thread's is not known either, or a call has taken it, the walk says so. */
	start(s, at_function(4), at_stack(0), 0);
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_WHY(s, "[[composed]: its frame hangs on a register that is not known here]");
	sonde_regs_set(&s->regs, SONDE_X86_64_RAX, at_stack(4));
	s->stack[0] = at_function(1);
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_WHY(s, "hangs on a register");
	scene_free(s);
}

static void by_expressions(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	FUNCTION(s, 1, "\x0f\x03\x76\x78\x06"); /* CFA *(rbp - 8) */
	FUNCTION(s, 2, "\x0f\x05\x77\x08\x06\x23\x08"); /* CFA *(rsp + 8) + 8 */
	FUNCTION(s, 3, "\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22"); /* of a PLT */
	FUNCTION(s, 4, "\x0f\x05\x77\x00\x73\x00\x22"); /* rsp + rbx */
	start(s, at_function(1), at_stack(0), at_stack(4));
	s->stack[3] = at_stack(10);
	s->stack[9] = at_function(2);
	s->stack[11] = at_stack(20);
	s->stack[20] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK_FRAME(s, 1, at_function(2), at_stack(10), SONDE_WALK_TABLE);
	CHECK_FRAME(s, 2, at_function(0), at_stack(21), SONDE_WALK_TABLE);
	/* Behind the push of a PLT entry (11 bytes in) there is a word more. */
	s->stack[0] = s->stack[1] = at_function(0);
	start(s, CODE + 3 * FUNCTION + 16 + 10, at_stack(0), 0);
	walk(s);
	CHECK_FRAME(s, 1, at_function(0), at_stack(1), SONDE_WALK_TABLE);
	start(s, CODE + 3 * FUNCTION + 16 + 11, at_stack(0), 0);
	walk(s);
	CHECK_FRAME(s, 1, at_function(0), at_stack(2), SONDE_WALK_TABLE);
	start(s, at_function(4), at_stack(0), 0);
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK_WHY(s, "expression");
	scene_free(s);
}

static void rules_of_registers(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	FUNCTION(s, 1, "\x0e\x10\x09\x06\x0b"); /* rbp is in r11 */
	FUNCTION(s, 2, "\x0e\x10\x14\x06\x02"); /* rbp is CFA-16 */
	FUNCTION(s, 3, "\x0e\x10\x10\x06\x02\x77\x08"); /* rbp is at rsp+8 */
	FUNCTION(s, 4, "\x0e\x10\x07\x06"); /* rbp is lost */
	FUNCTION(s, 5, "\x0c\x05\x00\x09\x10\x01\x09\x07\x08"); /* longjmp: pc in rdx, rsp in r8 */
	s->stack[1] = at_function(0);
	s->stack[0] = 1234;
	start(s, at_function(1), at_stack(0), 5);
	sonde_regs_set(&s->regs, 11, 66);
	walk(s);
	CHECK_EQ(s->frames.items[1].fp, 66);
	start(s, at_function(2), at_stack(0), 5);
	walk(s);
	CHECK_EQ(s->frames.items[1].fp, at_stack(0));
	start(s, at_function(3), at_stack(0), 5);
	s->stack[1] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.items[1].fp, at_function(0));
	start(s, at_function(4), at_stack(0), 5);
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK(!s->frames.items[1].has_fp);
	start(s, at_function(5), at_stack(0), 0);
	sonde_regs_set(&s->regs, SONDE_X86_64_RDX, at_function(0));
	sonde_regs_set(&s->regs, SONDE_X86_64_RDI, at_stack(3));
	sonde_regs_set(&s->regs, SONDE_X86_64_R8, at_stack(30));
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_FRAME(s, 1, at_function(0), at_stack(30), SONDE_WALK_TABLE);
	/* The stack pointer is there already. */
	sonde_regs_set(&s->regs, SONDE_X86_64_RSP, at_stack(30));
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	scene_free(s);
}

static void put_trampoline(uint8_t *at)
{
	static const uint8_t code[] = {0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05};
	memcpy(at, code, sizeof(code));
}

/* struct ucontext at a word of the stack: rbp, rsp and rip of what was interrupted (arch/x86 struct sigcontext_64). */
static void put_ucontext(struct scene *s, unsigned word, uint64_t pc, uint64_t sp, uint64_t fp)
{
	s->stack[word + 5 + 10] = fp;
	s->stack[word + 5 + 11] = 4242; /* rbx */
	s->stack[word + 5 + 15] = sp;
	s->stack[word + 5 + 16] = pc;
}

static void signals(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	FUNCTION(s, 1, ""); /* a handler */
	FUNCTION(s, 2, "\x0e\x10");
	SIGNAL_FUNCTION(s, 3, "\x0e\x10");
	FUNCTION(s, 4, "\x0c\x03\x08"); /* CFA rbx+8 */
	uint64_t trampoline = BARE + 0x100;
	put_trampoline(s->bare + 0x100);
	/* The handler's stack lies above the one that it interrupted. */
	start(s, at_function(1), at_stack(200), 0);
	s->stack[200] = trampoline;
	put_ucontext(s, 201, CODE + 2 * FUNCTION, at_stack(10), 55);
	s->stack[11] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 4);
	CHECK(!s->why);
	CHECK_FRAME(s, 1, trampoline, at_stack(201), SONDE_WALK_TABLE);
	CHECK(s->frames.items[1].trampoline && !s->frames.items[2].trampoline);
	/* Interrupted at its first instruction: no return address, so it is not looked up at pc - 1. */
	CHECK_FRAME(s, 2, CODE + 2 * FUNCTION, at_stack(10), SONDE_WALK_SIGNAL);
	CHECK(s->frames.items[2].exact);
	CHECK_EQ(s->frames.items[2].fp, 55);
	/* All registers are known there. */
	put_ucontext(s, 201, at_function(4), at_stack(10), 0);
	s->stack[201 + 5 + 11] = at_stack(20);
	s->stack[20] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 4);
	/* At the system call of the trampoline. */
	start(s, trampoline + 7, at_stack(201), 0);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK(s->frames.items[0].trampoline);
	/* By a table that says "signal frame"; its stack may be anywhere. */
	start(s, at_function(3), at_stack(0), 0);
	s->stack[1] = CODE + 2 * FUNCTION;
	s->stack[3] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK_FRAME(s, 1, CODE + 2 * FUNCTION, at_stack(2), SONDE_WALK_SIGNAL);
	/* A trampoline that leads to itself ends. */
	start(s, trampoline, at_stack(201), 0);
	put_ucontext(s, 201, trampoline, at_stack(201), 0);
	walk(s);
	CHECK(s->why);
	CHECK(s->frames.n < 20);
	scene_free(s);
}

static void stacks_that_end(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	FUNCTION(s, 1, "");
	FUNCTION(s, 2, "\x0c\x06\x00"); /* CFA rbp: does not move */
	FUNCTION(s, 3, "\x0e\x80\x80\x01"); /* a frame of 16 KiB: beyond the stack */
	start(s, at_function(1), at_stack(0), 0);
	s->stack[0] = 0x1234567;
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_STR(s->why, "[no code at pc 0x1234567]");
	s->stack[0] = DATA + 8;
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_STR(s->why, "[no code at pc 0x600008]");
	s->stack[0] = 0;
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK(!s->why);
	start(s, at_function(2), at_stack(10), at_stack(10));
	s->stack[9] = at_function(2);
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK_WHY(s, "the stack pointer does not move: 0x7ffe0050 after 0x7ffe0050");
	start(s, at_function(2), at_stack(10), at_stack(5));
	s->stack[4] = at_function(2);
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK_WHY(s, "the stack pointer does not move");
	start(s, at_function(3), at_stack(0), 0);
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK_STR(s->why, "[stack at 0x7ffe4000 is not readable]");
	start(s, at_function(1), 8, 0);
	walk(s);
	CHECK_WHY(s, "is not readable");
	start(s, at_function(1), UINT64_MAX - 3, 0);
	walk(s);
	CHECK_WHY(s, "is not readable");
	s->regs.machine = EM_386;
	walk(s);
	CHECK_EQ(s->frames.n, 0);
	CHECK_WHY(s, "not read");
	scene_free(s);
}

static void bad_calls(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	uint64_t back = at_function(0);
	uint8_t *code = s->file + (back - FILE_ADDR);
	code[-2] = 0xff; /* call *%rax */
	code[-1] = 0xd0;
	const uint64_t targets[] = {0, 0x1234, DATA, FILE_ADDR + 8, UINT64_MAX};
	s->stack[0] = back;
	for (size_t i = 0; i < SONDE_ARRAY_LEN(targets); i++) {
		start(s, targets[i], at_stack(0), 9);
		walk(s);
		CHECK_EQ(s->frames.n, 2);
		CHECK_FRAME(s, 1, back, at_stack(1), SONDE_WALK_BAD_CALL);
		CHECK_EQ(s->frames.items[1].fp, 9);
		CHECK(!s->frames.items[1].exact);
	}
	/* Every form of call; what is no call is no return address. */
	static const struct {
		uint8_t code[7], n;
		bool call;
	} forms[] = {
		{{0xe8, 1, 2, 3, 4}, 5, true},
		{{0xff, 0x50, 0x08}, 3, true},
		{{0xff, 0x14, 0xc8}, 3, true},
		{{0xff, 0x54, 0xc8, 0x10}, 4, true},
		{{0xff, 0x15, 1, 2, 3, 4}, 6, true},
		{{0xff, 0x94, 0xc8, 1, 2, 3, 4}, 7, true},
		{{0xff, 0xe0}, 2, false}, /* jmp *%rax */
		{{0xe9, 1, 2, 3, 4}, 5, false},
		{{0x90, 0x90}, 2, false},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(forms); i++) {
		memset(code - 8, 0x90, 8);
		memcpy(code - forms[i].n, forms[i].code, forms[i].n);
		start(s, 0, at_stack(0), 0);
		walk(s);
		CHECK_EQ(s->frames.n, forms[i].call ? 2 : 1);
		if (!forms[i].call)
			CHECK_STR(s->why, "[no code at pc 0x0]");
	}
	start(s, 0, 64, 0);
	walk(s);
	CHECK_STR(s->why, "[no code at pc 0x0]");
	scene_free(s);
}

static void frame_pointers(void)
{
	struct scene *s = scene_new(EM_X86_64);
	FUNCTION(s, 0, BOTTOM);
	uint64_t back = BARE + 0x80, top = BARE + 0x200;
	s->bare[0x80 - 5] = 0xe8;
	s->file[at_function(0) - FILE_ADDR - 5] = 0xe8;
	start(s, top, at_stack(0), at_stack(4));
	s->stack[4] = at_stack(8);
	s->stack[5] = back;
	s->stack[8] = at_stack(12);
	s->stack[9] = at_function(0);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK(!s->why);
	CHECK_FRAME(s, 1, back, at_stack(6), SONDE_WALK_FRAME_POINTER);
	CHECK_FRAME(s, 2, at_function(0), at_stack(10), SONDE_WALK_FRAME_POINTER);
	CHECK_EQ(s->frames.items[2].fp, at_stack(12));
	CHECK_STR(s->modules->all.items[s->frames.items[0].module].name, "anonymous memory");
	/* What does not look like a stack is none. */
	const uint64_t bad[] = {
		0, at_stack(4) + 1, STACK - 16, at_stack(STACK_WORDS), UINT64_MAX - 7};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(bad); i++) {
		start(s, top, at_stack(0), bad[i]);
		walk(s);
		CHECK_EQ(s->frames.n, 1);
		CHECK_STR(s->why, "[no unwind info: anonymous memory]");
	}
	start(s, top, at_stack(5), at_stack(4)); /* below the stack pointer */
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	const uint64_t returns[] = {0, 1, DATA + 8, BARE + 0x40 /* no call before it */};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(returns); i++) {
		s->stack[5] = returns[i];
		start(s, top, at_stack(0), at_stack(4));
		walk(s);
		CHECK_EQ(s->frames.n, 1);
		CHECK_WHY(s, "no unwind info: anonymous memory");
	}
	s->stack[5] = back;
	s->stack[4] = at_stack(4); /* to itself */
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK(s->why);
	/* At instructions that tell where the return address is. */
	static const uint8_t prologue[] = {
		0xf3, 0x0f, 0x1e, 0xfa, 0x55, 0x48, 0x89, 0xe5, 0x90, 0x5d, 0xc3};
	memcpy(s->bare + 0x200, prologue, sizeof(prologue));
	static const struct {
		uint8_t at, depth;
	} points[] = {{0, 0}, {4, 0}, {5, 1}, {9, 1}, {10, 0}};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(points); i++) {
		start(s, top + points[i].at, at_stack(20), at_stack(300));
		s->stack[20] = points[i].depth ? at_stack(300) : at_function(0);
		s->stack[21] = at_function(0);
		walk(s);
		CHECK_EQ(s->frames.n, 2);
		CHECK_FRAME(s, 1, at_function(0), at_stack(21 + points[i].depth),
			SONDE_WALK_INSTRUCTION);
		CHECK_EQ(s->frames.items[1].fp, at_stack(300));
	}
	scene_free(s);
}

static void arm64(void)
{
	struct scene *s = scene_new(EM_AARCH64);
	FUNCTION(s, 0, "\x07\x1e"); /* x30 undefined */
	FUNCTION(s, 1, ""); /* a leaf: return address in x30, no frame */
	FUNCTION(s, 2, "\x0e\x20\x9d\x04\x9e\x03"); /* CFA sp+32, x29 and x30 saved */
	FUNCTION(s, 3, "\x2d\x0e\x20\x9d\x04\x9e\x03"); /* the same with a signed x30 */
	start(s, at_function(1), at_stack(0), 0);
	sonde_regs_set(&s->regs, SONDE_ARM64_LR, at_function(2));
	s->stack[0] = 77;
	s->stack[1] = at_function(3);
	s->stack[4] = 78;
	s->stack[5] = at_function(0) | UINT64_C(0x3a) << 55;
	walk(s);
	CHECK_EQ(s->frames.n, 4);
	CHECK(!s->why);
	CHECK_FRAME(s, 1, at_function(2), at_stack(0), SONDE_WALK_TABLE);
	CHECK_FRAME(s, 2, at_function(3), at_stack(4), SONDE_WALK_TABLE);
	CHECK_FRAME(s, 3, at_function(0), at_stack(8), SONDE_WALK_TABLE);
	CHECK_EQ(s->frames.items[3].fp, 78);
	/* A caller cannot be a leaf: x30 is not known any more. */
	s->stack[1] = at_function(1);
	walk(s);
	CHECK_EQ(s->frames.n, 3);
	CHECK(s->why);
	/* A leaf that returns to itself. */
	sonde_regs_set(&s->regs, SONDE_ARM64_LR, at_function(1));
	walk(s);
	CHECK_EQ(s->frames.n, 1);
	CHECK_WHY(s, "does not move");
	/* A bad call left the return address in x30. */
	start(s, 0, at_stack(0), 0);
	sonde_regs_set(&s->regs, SONDE_ARM64_LR, at_function(0) | UINT64_C(1) << 60);
	walk(s);
	CHECK_EQ(s->frames.n, 2);
	CHECK_FRAME(s, 1, at_function(0), at_stack(0), SONDE_WALK_BAD_CALL);
	scene_free(s);
}

static void names(void)
{
	for (int i = SONDE_WALK_START; i <= SONDE_WALK_BAD_CALL; i++)
		CHECK(sonde_walk_how_name((enum sonde_walk_how)i)[0]);
}

int main(void)
{
	RUN(by_stack_and_frame_pointer);
	RUN(by_other_registers);
	RUN(by_expressions);
	RUN(rules_of_registers);
	RUN(signals);
	RUN(stacks_that_end);
	RUN(bad_calls);
	RUN(frame_pointers);
	RUN(arm64);
	RUN(names);
	return tap_end();
}
