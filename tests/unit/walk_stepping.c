/*
 * Exactness at every instruction: steps through programs under ptrace, keeps a shadow stack by watching calls, the stack
 * pointer and signal deliveries, and compares the walker's frames (pc and sp of each) with it after each instruction.
 *
 *   walk_stepping [--from-exec] PROGRAM...
 *
 * From main on; with --from-exec from the first instruction of the dynamic linker. Prints TAP, one result a program.
 */
#include "walk/walker.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include "object/symtab.h"
#include "target/live.h"

#include "tap.h"

#ifdef __x86_64__
enum { MAX_SHADOW = 4096, MAX_CLASSES = 64, SHOWN = 12 };

struct entry {
	uint64_t ra, slot,
		fp; /* the return address, where it lies, rbp at the call: callees keep it */
	bool alternate, signal;
	bool returned; /* signal: the handler is gone, the trampoline runs */
	uint64_t pc, sp; /* signal: what was interrupted */
};

struct class
{
	uint64_t pc, n;
	char text[512];
};

struct stepper {
	pid_t pid;
	struct sonde_target *target;
	struct sonde_walk_modules *modules;
	struct sonde_arena arena;
	struct sonde_walk_frames frames;
	struct entry shadow[MAX_SHADOW];
	size_t n;
	uint64_t alt_start, alt_end;
	uint64_t steps, mismatches, expected;
	struct class classes[MAX_CLASSES];
	size_t n_classes;
	/*
	 * A claim: code that is about to leave for another frame (longjmp, the C++ unwinder) may describe where it goes, not
	 * where it came from. It is right if the thread arrives there, with that stack pointer, soon.
	 */
	uint64_t claim_pc, claim_sp, claim_from, n_claims, claim_step;
	uint64_t n_arrived; /* instructions whose claim came true */
	uint64_t
		n_overwritten; /* instructions with a return address that the program itself has overwritten */
	uint64_t n_stale; /* instructions at which the compiler's rule of rbp is wrong */
	uint64_t
		n_bare; /* instructions under start-up code of the C runtime without call-frame information */
	bool whole; /* from the first instruction: the shadow stack is all there is */
	struct sonde_notes notes;
};

static uint64_t word_at(const struct stepper *s, uint64_t addr)
{
	uint64_t v = 0;
	return sonde_target_read_u64(s->target, addr, &v) ? v : 0;
}

static bool in_alternate(const struct stepper *s, uint64_t sp)
{
	return sp >= s->alt_start && sp < s->alt_end;
}

/* What the stack pointer has left behind is no frame any more: covers ret, longjmp and the C++ unwinder alike. */
static void drop_left(struct stepper *s, uint64_t sp)
{
	bool alternate = in_alternate(s, sp);
	while (s->n) {
		struct entry *e = &s->shadow[s->n - 1];
		if (!e->alternate && alternate)
			return;
		if (e->alternate == alternate) {
			if (e->signal && sp <= e->slot + 8) {
				e->returned = sp == e->slot + 8;
				return;
			}
			if (!e->signal && sp <= e->slot)
				return;
		}
		s->n--;
	}
}

static bool is_call(const uint8_t *p)
{
	for (int i = 0; i < 4; i++, p++) {
		if (*p == 0xe8) /* to the next instruction: it wants the address only */
			return p[1] || p[2] || p[3] || p[4];
		if (*p == 0xff)
			return (p[1] >> 3 & 7) == 2;
		if (*p != 0x66 && *p != 0x67 && *p != 0x3e && *p != 0x2e && *p != 0xf2 &&
			(*p & 0xf0) != 0x40)
			return false;
	}
	return false;
}

static void fill_regs(const struct user_regs_struct *u, struct sonde_regs *r)
{
	*r = (struct sonde_regs){.machine = EM_X86_64};
	const uint64_t values[] = {u->rax, u->rdx, u->rcx, u->rbx, u->rsi, u->rdi, u->rbp, u->rsp,
		u->r8, u->r9, u->r10, u->r11, u->r12, u->r13, u->r14, u->r15, u->rip};
	for (unsigned i = 0; i < SONDE_ARRAY_LEN(values); i++)
		sonde_regs_set(r, i, values[i]);
}

static void name_of(struct stepper *s, uint64_t pc, char *text, size_t len)
{
	struct sonde_walk_module *m = sonde_walk_modules_find(s->modules, pc);
	if (!m) {
		snprintf(text, len, "0x%" PRIx64, pc);
		return;
	}
	sonde_walk_module_load(s->modules, m);
	sonde_cleanup(sonde_symtab) struct sonde_symtab *symbols = NULL;
	const struct sonde_symbol *symbol = NULL;
	if (m->elf && !sonde_symtab_open(m->elf, &symbols))
		symbol = sonde_symtab_nearest(symbols, pc - m->bias);
	snprintf(text, len, "%s+0x%" PRIx64 " (%s)", m->name, pc - m->bias,
		symbol ? symbol->name : "?");
}

static void differ_n(struct stepper *s, uint64_t pc, uint64_t times, const char *fmt, ...)
{
	s->mismatches += times;
	for (size_t i = 0; i < s->n_classes; i++) {
		if (s->classes[i].pc == pc) {
			s->classes[i].n += times;
			return;
		}
	}
	if (s->n_classes == MAX_CLASSES)
		return;
	struct class *c = &s->classes[s->n_classes++];
	c->pc = pc;
	c->n = times;
	char name[128];
	name_of(s, pc, name, sizeof(name));
	int n = snprintf(c->text, sizeof(c->text), "%s: ", name);
	va_list args;
	va_start(args, fmt);
	vsnprintf(c->text + n, sizeof(c->text) - (size_t)n, fmt, args);
	va_end(args);
}

/* Parts of crtbegin.o, crti.o that no compiler made call-frame information for. */
static bool is_bare(struct stepper *s, uint64_t pc)
{
	static const char *const names[] = {"__do_global_dtors_aux", "deregister_tm_clones",
		"register_tm_clones", "frame_dummy", "_init", "_fini"};
	struct sonde_walk_module *m = sonde_walk_modules_find(s->modules, pc);
	struct sonde_unwind_rule rule;
	if (!m)
		return false;
	sonde_walk_module_load(s->modules, m);
	if (m->table && sonde_unwind_table_rule(m->table, pc - m->bias, &rule))
		return false;
	char name[128];
	name_of(s, pc, name, sizeof(name));
	for (size_t i = 0; i < SONDE_ARRAY_LEN(names); i++)
		if (strstr(name, names[i]))
			return true;
	/* Libraries have no local symbols. */
	return strstr(name, "(?)") || strstr(name, "(_init");
}

static void settle_claims(struct stepper *s)
{
	if (s->n_claims)
		differ_n(s, s->claim_from, s->n_claims,
			"frame 1 is 0x%" PRIx64 " sp 0x%" PRIx64 ", neither caller nor target",
			s->claim_pc, s->claim_sp);
	s->n_claims = 0;
}

/* Frame `at`, the first that is not as wanted. */
static void explain(struct stepper *s, const struct user_regs_struct *u, size_t at, uint64_t pc,
	uint64_t sp, const char *why)
{
	const struct sonde_walk_frame *f = at < s->frames.n ? &s->frames.items[at] : NULL;
	for (size_t i = 0; i < at; i++) {
		if (is_bare(s, sonde_walk_frame_lookup_pc(&s->frames.items[i]))) {
			s->n_bare++;
			return;
		}
	}
	if (at == 1 && f) {
		if (s->n_claims && (s->claim_pc != f->pc || s->claim_sp != f->sp))
			settle_claims(s);
		s->claim_pc = f->pc;
		s->claim_sp = f->sp;
		s->claim_from = u->rip;
		s->claim_step = s->steps;
		s->n_claims++;
		return;
	}
	char want[128], got[128];
	name_of(s, pc, want, sizeof(want));
	name_of(s, f ? f->pc : 0, got, sizeof(got));
	differ_n(s, u->rip, 1, "frame %zu is %s sp 0x%" PRIx64 ", want %s sp 0x%" PRIx64 " %s", at,
		f ? got : "absent", f ? f->sp : 0, want, sp, why ? why : "");
}

/*
 * gcc at -O0 leaves "rbp is saved at *rbp" standing behind the pop %rbp of a function that realigned its stack: what the
 * call-frame information says is wrong there, for every reader.
 */
static bool is_stale(struct stepper *s, uint64_t pc, size_t at)
{
	struct sonde_walk_module *m = sonde_walk_modules_find(s->modules, pc);
	struct sonde_unwind_rule rule;
	return at == 1 && m && m->table && sonde_unwind_table_rule(m->table, pc - m->bias, &rule) &&
		sonde_unwind_fp_kind(&rule) == SONDE_UNWIND_REG_MEMORY &&
		sonde_unwind_fp_reg(&rule) == SONDE_X86_64_RBP &&
		sonde_unwind_cfa_kind(&rule) == SONDE_UNWIND_CFA_REG &&
		sonde_unwind_cfa_reg(&rule) != SONDE_X86_64_RBP;
}

/* The frame pointer of frame `at` differs. */
static void explain_fp(struct stepper *s, const struct user_regs_struct *u, size_t at, uint64_t fp)
{
	char name[128];
	for (size_t i = 0; i < at; i++) {
		uint64_t pc = sonde_walk_frame_lookup_pc(&s->frames.items[i]);
		if (is_bare(s, pc)) {
			s->n_bare++;
			return;
		}
		name_of(s, pc, name, sizeof(name));
		/* What these save is what they are going to load: uw_install_context() writes the handler's there. */
		if (i == at - 1 && strstr(name, "_Unwind_R")) {
			s->n_overwritten++;
			return;
		}
	}
	if (is_stale(s, u->rip, at)) {
		s->n_stale++;
		return;
	}
	differ_n(s, u->rip, 1, "frame %zu has fp 0x%" PRIx64 ", want 0x%" PRIx64, at,
		s->frames.items[at].fp, fp);
}

static void compare(struct stepper *s, const struct user_regs_struct *u)
{
	struct sonde_regs regs;
	const char *why;
	if (s->n_claims && u->rip == s->claim_pc && u->rsp == s->claim_sp) {
		s->n_arrived += s->n_claims;
		s->n_claims = 0;
	} else if (s->n_claims && s->steps - s->claim_step > 4) {
		settle_claims(s);
	}
	fill_regs(u, &regs);
	s->frames.n = 0;
	if (sonde_walk(s->modules, &regs, &s->arena, &s->frames, &why) != NULL)
		abort();
	size_t at = 1;
	for (size_t i = s->n; i-- > 0;) {
		const struct entry *e = &s->shadow[i];
		uint64_t pcs[2], sps[2], fps[2];
		unsigned n = 0;
		if (!e->signal || !e->returned) {
			pcs[n] = e->ra;
			fps[n] = e->fp;
			sps[n++] = e->slot + 8;
		}
		if (e->signal) {
			pcs[n] = e->pc;
			fps[n] = e->fp;
			sps[n++] = e->sp;
		}
		for (unsigned k = 0; k < n; k++, at++) {
			const struct sonde_walk_frame *f =
				at < s->frames.n ? &s->frames.items[at] : NULL;
			if (f && f->pc == pcs[k] && f->sp == sps[k] &&
				(!f->has_fp || f->fp == fps[k] || (e->signal && !k)))
				continue;
			if (!e->signal && f && word_at(s, e->slot) != e->ra &&
				f->pc == word_at(s, e->slot))
				s->n_overwritten++;
			else if (f && f->pc == pcs[k] && f->sp == sps[k])
				explain_fp(s, u, at, fps[k]);
			else
				explain(s, u, at, pcs[k], sps[k], why);
			return;
		}
	}
	s->expected += at;
	/* The dynamic linker's first function has no call-frame information. */
	if (s->whole && (at != s->frames.n || (why && !strstr(why, "no unwind info: ld-"))))
		differ_n(s, u->rip, 1,
			"the walk does not end at the bottom: %zu frames, want %zu %s", s->frames.n,
			at, why ? why : "");
}

static void reopen(struct stepper *s)
{
	sonde_walk_modules_free(s->modules);
	sonde_target_free(s->target);
	s->modules = NULL;
	s->target = NULL;
	const struct sonde_live_options options = {.memory_only = true};
	static const struct sonde_debugfile_options debug = {.no_debuginfod = true};
	struct sonde_error *err = sonde_live_open((uint32_t)s->pid, &options, &s->target);
	if (!err)
		err = sonde_walk_modules_open(s->target, &debug, &s->notes, &s->modules);
	if (err) {
		printf("Bail out! %s\n", err->message);
		exit(1);
	}
}

static int wait_for(struct stepper *s)
{
	int status;
	while (waitpid(s->pid, &status, 0) < 0 && errno == EINTR)
		;
	return status;
}

/* Run to main: a breakpoint there. */
static bool run_to_main(struct stepper *s)
{
	sonde_cleanup(sonde_symtab) struct sonde_symtab *symbols = NULL;
	struct sonde_elf *exe = sonde_target_exe(s->target, NULL);
	if (!exe || sonde_symtab_open(exe, &symbols) != NULL)
		return false;
	const struct sonde_symbol *symbol = sonde_symtab_find(symbols, "main");
	if (!symbol)
		return false;
	uint64_t addr = symbol->addr + sonde_target_exe_bias(s->target);
	errno = 0;
	long old = ptrace(PTRACE_PEEKTEXT, s->pid, (void *)addr, NULL);
	ptrace(PTRACE_POKETEXT, s->pid, (void *)addr, (void *)((old & ~0xffL) | 0xcc));
	ptrace(PTRACE_CONT, s->pid, NULL, NULL);
	int status = wait_for(s);
	if (!WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP)
		return false;
	struct user_regs_struct u;
	ptrace(PTRACE_POKETEXT, s->pid, (void *)addr, (void *)old);
	ptrace(PTRACE_GETREGS, s->pid, NULL, &u);
	u.rip = addr;
	ptrace(PTRACE_SETREGS, s->pid, NULL, &u);
	reopen(s);
	s->shadow[s->n++] = (struct entry){.ra = word_at(s, u.rsp), .slot = u.rsp, .fp = u.rbp};
	return true;
}

static void on_system_call(struct stepper *s, const struct user_regs_struct *u, bool *stale)
{
	switch (u->rax) {
	case SYS_sigaltstack:
		if (u->rdi) {
			s->alt_start = word_at(s, u->rdi);
			s->alt_end = s->alt_start + word_at(s, u->rdi + 16);
		}
		break;
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
		*stale = true;
		break;
	}
}

static bool step_through(struct stepper *s)
{
	int signal = 0;
	bool stale = false, called = false, sigreturn = false;
	struct user_regs_struct u, before;
	ptrace(PTRACE_GETREGS, s->pid, NULL, &u);
	for (;;) {
		if (s->n >= MAX_SHADOW - 1)
			return false;
		compare(s, &u);
		s->steps++;
		uint8_t code[16] = {0};
		sonde_target_read_some(s->target, u.rip, code, sizeof(code));
		called = is_call(code);
		bool system_call = code[0] == 0x0f && code[1] == 0x05;
		sigreturn = system_call && u.rax == SYS_rt_sigreturn;
		if (system_call)
			on_system_call(s, &u, &stale);
		before = u;
		int delivered = signal;
		if (ptrace(PTRACE_SINGLESTEP, s->pid, NULL, (void *)(intptr_t)signal) < 0)
			return false;
		signal = 0;
		int status = wait_for(s);
		if (WIFEXITED(status))
			return WEXITSTATUS(status) == 0;
		if (!WIFSTOPPED(status))
			return false;
		if (WSTOPSIG(status) != SIGTRAP)
			signal = WSTOPSIG(status);
		ptrace(PTRACE_GETREGS, s->pid, NULL, &u);
		if (stale) {
			reopen(s);
			stale = false;
		}
		if (delivered && u.rip != before.rip) {
			/* The first instruction of the handler, if there is one. */
			s->shadow[s->n++] = (struct entry){.signal = true,
				.ra = word_at(s, u.rsp),
				.slot = u.rsp,
				.alternate = in_alternate(s, u.rsp),
				.fp = before.rbp,
				.pc = before.rip,
				.sp = before.rsp};
			continue;
		}
		if (called && u.rsp == before.rsp - 8)
			s->shadow[s->n++] = (struct entry){.ra = word_at(s, u.rsp),
				.slot = u.rsp,
				.fp = u.rbp,
				.alternate = in_alternate(s, u.rsp)};
		else if (sigreturn && s->n && s->shadow[s->n - 1].signal)
			s->n--;
		drop_left(s, u.rsp);
	}
}

static void run(const char *program, bool from_exec)
{
	static struct stepper zero;
	struct stepper *s = malloc(sizeof(*s));
	REQUIRE(s);
	*s = zero;
	sonde_arena_init(&s->arena);
	s->pid = fork();
	if (s->pid == 0) {
		ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
		dup2(null, STDOUT_FILENO);
		execl(program, program, (char *)NULL);
		_exit(127);
	}
	int status = wait_for(s);
	if (WIFSTOPPED(status)) {
		reopen(s);
		s->whole = from_exec;
		bool fine = (from_exec || run_to_main(s)) && step_through(s);
		CHECK(fine);
		printf("# %s: %" PRIu64 " instructions, %" PRIu64 " frames compared, %" PRIu64
		       " mismatches; %" PRIu64 " say where a jump goes, %" PRIu64
		       " have saved registers that were overwritten, %" PRIu64
		       " have a wrong rule of rbp, %" PRIu64 " are under crt files\n",
			strrchr(program, '/') ? strrchr(program, '/') + 1 : program, s->steps,
			s->expected, s->mismatches, s->n_arrived, s->n_overwritten, s->n_stale,
			s->n_bare);
		for (size_t i = 0; i < s->n_classes && i < SHOWN; i++)
			printf("#   %" PRIu64 " x %s\n", s->classes[i].n, s->classes[i].text);
		CHECK_EQ(s->mismatches, 0);
		CHECK(s->steps > 1000);
	} else {
		CHECK(!"the program can be traced");
	}
	sonde_walk_modules_free(s->modules);
	sonde_target_free(s->target);
	kill(s->pid, SIGKILL);
	waitpid(s->pid, NULL, 0);
	sonde_notes_deinit(&s->notes);
	sonde_walk_frames_deinit(&s->frames);
	sonde_arena_deinit(&s->arena);
	free(s);
}

static bool can_trace(void)
{
	pid_t pid = fork();
	if (pid == 0)
		_exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0);
	int status;
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
#endif

static const char *program_now;
static bool from_exec_now;

static void exact(void)
{
#ifdef __x86_64__
	if (!can_trace()) {
		tap_skip_reason = "ptrace is not permitted";
		return;
	}
	run(program_now, from_exec_now);
#else
	tap_skip_reason = "x86-64 only";
#endif
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--from-exec")) {
			from_exec_now = true;
			continue;
		}
		program_now = argv[i];
		RUN(exact);
	}
	return tap_end();
}
