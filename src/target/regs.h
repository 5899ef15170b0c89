/*
 * src/target/regs.h: a thread's general registers by DWARF number, and the layouts in which the kernel writes them
 * (PRSTATUS notes, signal frames), as tables.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* DWARF register numbers (psABI of each machine). */
enum {
	SONDE_REGS_MAX = 33,
	SONDE_X86_64_RAX = 0,
	SONDE_X86_64_RDX = 1,
	SONDE_X86_64_RCX = 2,
	SONDE_X86_64_RBX = 3,
	SONDE_X86_64_RSI = 4,
	SONDE_X86_64_RDI = 5,
	SONDE_X86_64_RBP = 6,
	SONDE_X86_64_RSP = 7,
	SONDE_X86_64_R8 = 8,
	SONDE_X86_64_R14 = 14, /* the current goroutine in Go's register ABI */
	SONDE_X86_64_RIP = 16,
	SONDE_386_EAX = 0,
	SONDE_386_ECX = 1,
	SONDE_386_EDX = 2,
	SONDE_386_EBX = 3,
	SONDE_386_ESP = 4,
	SONDE_386_EBP = 5,
	SONDE_386_ESI = 6,
	SONDE_386_EDI = 7,
	SONDE_386_EIP = 8,
	SONDE_ARM64_X28 = 28, /* the current goroutine */
	SONDE_ARM64_FP = 29,
	SONDE_ARM64_LR = 30,
	SONDE_ARM64_SP = 31,
	SONDE_ARM64_PC = 32,
};

struct sonde_regs {
	uint16_t machine; /* EM_X86_64, EM_386, EM_AARCH64 */
	uint64_t known; /* bit n: dwarf[n] is known */
	uint64_t dwarf[SONDE_REGS_MAX];
	uint64_t fs_base, gs_base; /* x86-64 PRSTATUS only; 0 = unknown */
	uint64_t
		tls; /* the thread pointer where a note tells it: fs_base, i386 %gs base, arm64 tpidr_el0 */
};

struct sonde_machine {
	uint16_t machine;
	unsigned word_bytes;
	const char *name; /* GOARCH: "amd64", "386", "arm64" */
	uint8_t pc, sp, fp, lr; /* DWARF numbers; lr is UINT8_MAX where there is none */
	uint8_t n_regs;
	const char *const *reg_names; /* n_regs, by DWARF number */
};

/* The row for an ELF machine, or NULL: unsupported. */
const struct sonde_machine *sonde_machine_find(uint16_t machine);

static inline bool sonde_regs_has(const struct sonde_regs *r, unsigned dwarf)
{
	return dwarf < SONDE_REGS_MAX && (r->known >> dwarf & 1);
}

static inline void sonde_regs_set(struct sonde_regs *r, unsigned dwarf, uint64_t value)
{
	r->dwarf[dwarf] = value;
	r->known |= UINT64_C(1) << dwarf;
}

/* 0 where unknown. */
uint64_t sonde_regs_pc(const struct sonde_regs *r);
uint64_t sonde_regs_sp(const struct sonde_regs *r);
uint64_t sonde_regs_fp(const struct sonde_regs *r);

struct sonde_prstatus {
	uint32_t tid, ppid;
	int signal; /* pr_cursig */
	uint16_t gs_selector; /* i386: the note NT_386_TLS tells its base */
	struct sonde_regs regs;
};

/* Decode an NT_PRSTATUS payload of a supported machine; false where it is too short. */
bool sonde_regs_of_prstatus(
	uint16_t machine, const void *desc, size_t len, struct sonde_prstatus *ret);

struct sonde_target;

/*
 * The registers that a signal interrupted, from the kernel's ucontext at addr in target memory (the third argument of
 * a handler). false: not readable.
 */
bool sonde_regs_of_ucontext(struct sonde_target *t, uint64_t addr, struct sonde_regs *ret);

/*
 * The same where the unwinder stands at a signal trampoline: r->pc is at the instructions of rt_sigreturn, r->sp is
 * what it was when the handler returned there. false: no trampoline, or not readable.
 */
bool sonde_regs_of_sigreturn(
	struct sonde_target *t, const struct sonde_regs *r, struct sonde_regs *ret);
