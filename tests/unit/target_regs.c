#include "target/regs.h"

#include "build.h"
#include "target/target.h"
#include "tap.h"

/* Each register's slot holds 0x1000 + the slot's number. */
static struct sonde_prstatus decode(uint16_t machine, size_t n_slots)
{
	uint64_t slots[40];
	for (size_t i = 0; i < n_slots; i++)
		slots[i] = 0x1000 + i;
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_prstatus(&b, machine, 77, 11, slots, n_slots);
	struct sonde_prstatus p = {0};
	/* Behind the note's header and "CORE\0" padded. */
	size_t at = 12 + 8, len = b.len - at;
	CHECK(sonde_regs_of_prstatus(machine, b.data + at, len, &p));
	for (size_t cut = 0; cut < len; cut += 4) {
		struct sonde_prstatus unused;
		sonde_cleanup(free) char *exact = malloc(cut ? cut : 1);
		memcpy(exact, b.data + at, cut);
		CHECK(!sonde_regs_of_prstatus(machine, exact, cut, &unused));
	}
	CHECK_EQ(p.tid, 77);
	CHECK_EQ(p.ppid, 1);
	CHECK_EQ(p.signal, 11);
	return p;
}

static void x86_64(void)
{
	struct sonde_prstatus p = decode(EM_X86_64, 27);
	/* user_regs_struct: r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs gs */
	const uint8_t slot[17] = {10, 12, 11, 5, 13, 14, 4, 19, 9, 8, 7, 6, 3, 2, 1, 0, 16};
	for (unsigned i = 0; i < 17; i++)
		CHECK_EQ(p.regs.dwarf[i], 0x1000 + slot[i]);
	CHECK_EQ(p.regs.known, 0x1ffff);
	CHECK_EQ(sonde_regs_pc(&p.regs), 0x1010);
	CHECK_EQ(sonde_regs_sp(&p.regs), 0x1013);
	CHECK_EQ(sonde_regs_fp(&p.regs), 0x1004);
	CHECK_EQ(p.regs.fs_base, 0x1015);
	CHECK_EQ(p.regs.gs_base, 0x1016);
	CHECK_EQ(p.regs.tls, 0x1015);
	CHECK(sonde_regs_has(&p.regs, 16) && !sonde_regs_has(&p.regs, 17) &&
		!sonde_regs_has(&p.regs, 99));
}

static void i386(void)
{
	struct sonde_prstatus p = decode(EM_386, 17);
	/* ebx ecx edx esi edi ebp eax ds es fs gs orig_eax eip cs eflags esp ss */
	const uint8_t slot[9] = {6, 1, 2, 0, 15, 5, 3, 4, 12};
	for (unsigned i = 0; i < 9; i++)
		CHECK_EQ(p.regs.dwarf[i], 0x1000 + slot[i]);
	CHECK_EQ(p.gs_selector, 0x100a);
	CHECK_EQ(sonde_regs_pc(&p.regs), 0x100c);
}

static void arm64(void)
{
	struct sonde_prstatus p = decode(EM_AARCH64, 34);
	for (unsigned i = 0; i < 33; i++)
		CHECK_EQ(p.regs.dwarf[i], 0x1000 + i);
	CHECK_EQ(sonde_regs_pc(&p.regs), 0x1020);
	CHECK_EQ(sonde_regs_sp(&p.regs), 0x101f);
	CHECK_EQ(sonde_regs_fp(&p.regs), 0x101d);
}

static void other_machines(void)
{
	struct sonde_prstatus p;
	uint8_t zeros[1024] = {0};
	CHECK(!sonde_regs_of_prstatus(EM_S390, zeros, sizeof(zeros), &p));
	CHECK(!sonde_machine_find(EM_S390));
	CHECK_STR(sonde_machine_find(EM_386)->name, "386");
	struct sonde_regs none = {0};
	CHECK_EQ(sonde_regs_pc(&none), 0);
}

/* A trampoline at 0x1000 and a frame at 0x2000, whose context slots hold 0x5000 + their number. */
static void signal_frame(uint16_t machine, const void *code, size_t code_len, size_t frame_lead,
	size_t context, size_t n_slots, bool pointer, struct sonde_regs *ret)
{
	unsigned w = machine == EM_386 ? 4 : 8;
	const struct sonde_machine *m = sonde_machine_find(machine);
	uint8_t text[16] = {0};
	memcpy(text, code, code_len);
	sonde_cleanup(sonde_buf) struct sonde_buf frame = {0};
	build_zeros(&frame, frame_lead + context);
	if (pointer)
		build_patch(&frame, 8, 0x2000 + frame_lead, 4);
	for (size_t i = 0; i < n_slots; i++)
		build_number(&frame, 0x5000 + i, w, false);
	const struct sonde_target_run runs[] = {
		{0x1000, sizeof(text), text}, {0x2000, frame.len, (uint8_t *)frame.data}};
	sonde_cleanup(sonde_target) struct sonde_target *t =
		sonde_target_over_runs(runs, 2, machine, w);
	struct sonde_regs at = {.machine = machine, .tls = 9};
	sonde_regs_set(&at, m->pc, 0x1000);
	sonde_regs_set(&at, m->sp, 0x2000);
	REQUIRE(sonde_regs_of_sigreturn(t, &at, ret));
	CHECK_EQ(ret->tls, 9);
	struct sonde_regs direct;
	CHECK(sonde_regs_of_ucontext(t, 0x2000 + frame_lead, &direct));
	CHECK(!memcmp(direct.dwarf, ret->dwarf, sizeof(direct.dwarf)));
	/* Other code, an unreadable frame. */
	at.dwarf[m->pc] = 0x1001;
	CHECK(!sonde_regs_of_sigreturn(t, &at, ret) || m == NULL);
	at.dwarf[m->pc] = 0x1000;
	at.dwarf[m->sp] = 0x2008;
	struct sonde_regs unused;
	CHECK(!sonde_regs_of_sigreturn(t, &at, &unused));
}

static void signal_frames(void)
{
	struct sonde_regs r = {0};
	signal_frame(EM_X86_64, "\x48\xc7\xc0\x0f\0\0\0\x0f\x05", 9, 0, 40, 17, false, &r);
	/* sigcontext: r8 .. r15 rdi rsi rbp rbx rdx rax rcx rsp rip */
	const uint8_t amd64[17] = {13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7, 16};
	for (unsigned i = 0; i < 17; i++)
		CHECK_EQ(r.dwarf[i], 0x5000 + amd64[i]);
	signal_frame(EM_386, "\xb8\xad\0\0\0\xcd\x80", 7, 12, 20, 15, true, &r);
	/* sigcontext: gs fs es ds edi esi ebp esp ebx edx ecx eax trapno err eip */
	const uint8_t i386_slots[9] = {11, 10, 9, 8, 7, 6, 5, 4, 14};
	for (unsigned i = 0; i < 9; i++)
		CHECK_EQ(r.dwarf[i], 0x5000 + i386_slots[i]);
	signal_frame(EM_AARCH64, "\x68\x11\x80\xd2\x01\0\0\xd4", 8, 128, 184, 33, false, &r);
	for (unsigned i = 0; i < 33; i++)
		CHECK_EQ(r.dwarf[i], 0x5000 + i);
}

#ifdef __x86_64__
#include <signal.h>
#include <ucontext.h>
static ucontext_t caught;
static void handler(int signo, siginfo_t *info, void *context)
{
	caught = *(ucontext_t *)context;
}

/* The table against this machine's own kernel. */
static void signal_frame_of_this_kernel(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	sigaction(SIGUSR1, &action, NULL);
	raise(SIGUSR1);
	const struct sonde_target_run run = {
		(uintptr_t)&caught, sizeof(caught), (const uint8_t *)&caught};
	sonde_cleanup(sonde_target) struct sonde_target *t =
		sonde_target_over_runs(&run, 1, EM_X86_64, 8);
	struct sonde_regs r;
	REQUIRE(sonde_regs_of_ucontext(t, run.start, &r));
	CHECK_EQ(r.dwarf[SONDE_X86_64_RIP], caught.uc_mcontext.gregs[REG_RIP]);
	CHECK_EQ(r.dwarf[SONDE_X86_64_RSP], caught.uc_mcontext.gregs[REG_RSP]);
	CHECK_EQ(r.dwarf[SONDE_X86_64_RBP], caught.uc_mcontext.gregs[REG_RBP]);
	CHECK_EQ(r.dwarf[SONDE_X86_64_RDX], caught.uc_mcontext.gregs[REG_RDX]);
	CHECK_EQ(r.dwarf[SONDE_X86_64_R14], caught.uc_mcontext.gregs[REG_R14]);
}
#endif

int main(void)
{
	RUN(x86_64);
	RUN(i386);
	RUN(arm64);
	RUN(other_machines);
	RUN(signal_frames);
#ifdef __x86_64__
	RUN(signal_frame_of_this_kernel);
#endif
	return tap_end();
}
