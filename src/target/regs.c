#include "target/regs.h"

#include <elf.h>
#include <string.h>
#include "base/cursor.h"
#include "base/mem.h"
#include "target/target.h"

enum { NONE = UINT8_MAX };

static const char *const x86_64_names[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
	"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip"};
static const char *const i386_names[] = {
	"eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", "eip"};
static const char *const arm64_names[] = {"x0", "x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8",
	"x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17", "x18", "x19", "x20", "x21",
	"x22", "x23", "x24", "x25", "x26", "x27", "x28", "x29", "x30", "sp", "pc"};

static const struct sonde_machine machines[] = {
	{EM_X86_64, 8, "amd64", .pc = 16, .sp = 7, .fp = 6, .lr = NONE,
		SONDE_ARRAY_LEN(x86_64_names), x86_64_names},
	{EM_386, 4, "386", .pc = 8, .sp = 4, .fp = 5, .lr = NONE, SONDE_ARRAY_LEN(i386_names),
		i386_names},
	{EM_AARCH64, 8, "arm64", .pc = 32, .sp = 31, .fp = 29, .lr = 30,
		SONDE_ARRAY_LEN(arm64_names), arm64_names},
};

const struct sonde_machine *sonde_machine_find(uint16_t machine)
{
	for (size_t i = 0; i < SONDE_ARRAY_LEN(machines); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

uint64_t sonde_regs_pc(const struct sonde_regs *r)
{
	const struct sonde_machine *m = sonde_machine_find(r->machine);
	return m ? r->dwarf[m->pc] : 0;
}

uint64_t sonde_regs_sp(const struct sonde_regs *r)
{
	const struct sonde_machine *m = sonde_machine_find(r->machine);
	return m ? r->dwarf[m->sp] : 0;
}

uint64_t sonde_regs_fp(const struct sonde_regs *r)
{
	const struct sonde_machine *m = sonde_machine_find(r->machine);
	return m ? r->dwarf[m->fp] : 0;
}

/*
 * The order in which the kernel writes registers, as DWARF numbers; NONE = a slot that is skipped. Every slot has the
 * machine's word size.
 */

/* arch/x86/include/uapi/asm/ptrace.h, struct pt_regs: r15 .. ss; then fs_base, gs_base (see below), ds es fs gs. */
static const uint8_t x86_64_user[] = {
	15, 14, 13, 12, 6, 3, 11, 10, 9, 8, 0, 2, 1, 4, 5, NONE, 16, NONE, NONE, 7, NONE};
enum { X86_64_FS_BASE = 21, X86_64_GS_BASE = 22 }; /* slots */

/* arch/x86/include/uapi/asm/ptrace.h, i386: ebx ecx edx esi edi ebp eax ds es fs gs orig_eax eip cs eflags esp ss. */
static const uint8_t i386_user[] = {
	3, 1, 2, 6, 7, 5, 0, NONE, NONE, NONE, NONE, NONE, 8, NONE, NONE, 4, NONE};
enum { I386_GS = 10 }; /* slot */

/* arch/arm64/include/uapi/asm/ptrace.h: x0 .. x30, sp, pc, pstate. */
static const uint8_t arm64_user[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17,
	18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};

/* arch/x86/include/uapi/asm/sigcontext.h, struct sigcontext_64: r8 .. r15 rdi rsi rbp rbx rdx rax rcx rsp rip. */
static const uint8_t x86_64_signal[] = {8, 9, 10, 11, 12, 13, 14, 15, 5, 4, 6, 3, 1, 0, 2, 7, 16};

/* struct sigcontext_32: gs fs es ds edi esi ebp esp ebx edx ecx eax trapno err eip. */
static const uint8_t i386_signal[] = {
	NONE, NONE, NONE, NONE, 7, 6, 5, 4, 3, 2, 1, 0, NONE, NONE, 8};

struct layout {
	uint16_t machine;
	/* struct elf_prstatus (include/linux/elfcore.h): offsets in bytes. */
	uint16_t signal, pid, ppid, user, prstatus_bytes;
	const uint8_t *user_order;
	uint8_t n_user;
	/* struct ucontext: where the first slot of signal_order stands. */
	uint16_t context;
	const uint8_t *signal_order;
	uint8_t n_signal;
	/* The instructions of the trampoline, and where the ucontext lies from the stack pointer there. */
	uint8_t code[12];
	uint8_t code_len, ucontext_at_sp;
	bool ucontext_by_pointer;
};

static const struct layout layouts[] = {
	{EM_X86_64, 12, 32, 36, 112, 336, x86_64_user, SONDE_ARRAY_LEN(x86_64_user), 40,
		x86_64_signal, SONDE_ARRAY_LEN(x86_64_signal),
		/* mov $15,%rax; syscall; the return address before the ucontext is popped */
		{0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05}, 9, 0, false},
	{EM_386, 12, 24, 28, 72, 144, i386_user, SONDE_ARRAY_LEN(i386_user), 20, i386_signal,
		SONDE_ARRAY_LEN(i386_signal),
		/* mov $173,%eax; int $0x80; struct rt_sigframe: sig, pinfo, puc */
		{0xb8, 0xad, 0, 0, 0, 0xcd, 0x80}, 7, 8, true},
	/* struct ucontext: sigmask is padded to 128 bytes, struct sigcontext aligned to 16; fault_address comes first. */
	{EM_AARCH64, 12, 32, 36, 112, 392, arm64_user, SONDE_ARRAY_LEN(arm64_user), 184, arm64_user,
		SONDE_ARRAY_LEN(arm64_user),
		/* mov x8,#139; svc #0; struct rt_sigframe: siginfo (128 bytes), ucontext */
		{0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4}, 8, 128, false},
};

static const struct layout *layout_of(uint16_t machine)
{
	for (size_t i = 0; i < SONDE_ARRAY_LEN(layouts); i++)
		if (layouts[i].machine == machine)
			return &layouts[i];
	return NULL;
}

static void decode_slots(struct sonde_cursor *c, const uint8_t *order, unsigned n,
	unsigned word_bytes, struct sonde_regs *regs)
{
	for (unsigned i = 0; i < n; i++) {
		uint64_t v = sonde_cursor_word(c, word_bytes);
		if (order[i] != NONE)
			sonde_regs_set(regs, order[i], v);
	}
}

bool sonde_regs_of_prstatus(
	uint16_t machine, const void *desc, size_t len, struct sonde_prstatus *ret)
{
	const struct layout *l = layout_of(machine);
	const struct sonde_machine *m = sonde_machine_find(machine);
	if (!l || len < l->prstatus_bytes)
		return false;
	struct sonde_prstatus p = {.regs.machine = machine};
	struct sonde_cursor c = sonde_cursor_over(desc, len);
	sonde_cursor_seek(&c, l->signal);
	p.signal = sonde_cursor_u16(&c);
	sonde_cursor_seek(&c, l->pid);
	p.tid = sonde_cursor_u32(&c);
	sonde_cursor_seek(&c, l->ppid);
	p.ppid = sonde_cursor_u32(&c);
	sonde_cursor_seek(&c, l->user);
	decode_slots(&c, l->user_order, l->n_user, m->word_bytes, &p.regs);
	if (machine == EM_X86_64) {
		sonde_cursor_seek(&c, l->user + X86_64_FS_BASE * 8);
		p.regs.tls = p.regs.fs_base = sonde_cursor_u64(&c);
		p.regs.gs_base = sonde_cursor_u64(&c);
	} else if (machine == EM_386) {
		sonde_cursor_seek(&c, l->user + I386_GS * 4);
		p.gs_selector = (uint16_t)sonde_cursor_u32(&c);
	}
	if (c.bad)
		return false;
	*ret = p;
	return true;
}

bool sonde_regs_of_ucontext(struct sonde_target *t, uint64_t addr, struct sonde_regs *ret)
{
	uint16_t machine = sonde_target_info(t)->machine;
	const struct layout *l = layout_of(machine);
	const struct sonde_machine *m = sonde_machine_find(machine);
	uint8_t bytes[8 * SONDE_REGS_MAX];
	if (!l || !sonde_target_read(t, addr + l->context, bytes, l->n_signal * m->word_bytes))
		return false;
	struct sonde_regs regs = {.machine = machine};
	struct sonde_cursor c = sonde_cursor_over(bytes, sizeof(bytes));
	decode_slots(&c, l->signal_order, l->n_signal, m->word_bytes, &regs);
	*ret = regs;
	return true;
}

bool sonde_regs_of_sigreturn(
	struct sonde_target *t, const struct sonde_regs *r, struct sonde_regs *ret)
{
	const struct layout *l = layout_of(r->machine);
	uint8_t code[sizeof(l->code)];
	if (!l || !sonde_target_read(t, sonde_regs_pc(r), code, l->code_len) ||
		memcmp(code, l->code, l->code_len))
		return false;
	uint64_t addr = sonde_regs_sp(r) + l->ucontext_at_sp;
	if (l->ucontext_by_pointer && !sonde_target_read_word(t, addr, &addr))
		return false;
	if (!sonde_regs_of_ucontext(t, addr, ret))
		return false;
	/* The kernel does not write them into the frame; a handler does not change them. */
	ret->fs_base = r->fs_base;
	ret->gs_base = r->gs_base;
	ret->tls = r->tls;
	return true;
}
