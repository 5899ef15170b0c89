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
enum { MAX_SHADOW = 4096, MAX_CLASSES = 64, SHOWN = 6 };

struct entry {
	uint64_t ra, slot; /* the return address and where it lies */
	bool alternate, signal;
	bool returned; /* signal: the handler is gone, the trampoline runs */
	uint64_t pc, sp; /* signal: what was interrupted */
};

struct class {
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
		if (*p == 0xe8)
			return true;
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

static void differ(struct stepper *s, uint64_t pc, const char *fmt, ...)
{
	s->mismatches++;
	for (size_t i = 0; i < s->n_classes; i++) {
		if (s->classes[i].pc == pc) {
			s->classes[i].n++;
			return;
		}
	}
	if (s->n_classes == MAX_CLASSES)
		return;
	struct class *c = &s->classes[s->n_classes++];
	c->pc = pc;
	c->n = 1;
	char name[128];
	name_of(s, pc, name, sizeof(name));
	int n = snprintf(c->text, sizeof(c->text), "%s: ", name);
	va_list args;
	va_start(args, fmt);
	vsnprintf(c->text + n, sizeof(c->text) - (size_t)n, fmt, args);
	va_end(args);
}

static void compare(struct stepper *s, const struct user_regs_struct *u)
{
	struct sonde_regs regs;
	const char *why;
	fill_regs(u, &regs);
	s->frames.n = 0;
	if (sonde_walk(s->modules, &regs, &s->arena, &s->frames, &why) != NULL)
		abort();
	size_t at = 1;
	char want[128], got[128];
	for (size_t i = s->n; i-- > 0;) {
		const struct entry *e = &s->shadow[i];
		uint64_t pcs[2], sps[2];
		unsigned n = 0;
		if (!e->signal || !e->returned) {
			pcs[n] = e->ra;
			sps[n++] = e->slot + 8;
		}
		if (e->signal) {
			pcs[n] = e->pc;
			sps[n++] = e->sp;
		}
		for (unsigned k = 0; k < n; k++, at++) {
			const struct sonde_walk_frame *f =
				at < s->frames.n ? &s->frames.items[at] : NULL;
			if (f && f->pc == pcs[k] && f->sp == sps[k])
				continue;
			name_of(s, pcs[k], want, sizeof(want));
			name_of(s, f ? f->pc : 0, got, sizeof(got));
			differ(s, u->rip,
				"frame %zu is %s sp 0x%" PRIx64 ", want %s sp 0x%" PRIx64 " %s", at,
				f ? got : "absent", f ? f->sp : 0, want, sps[k], why ? why : "");
			return;
		}
	}
	s->expected += at;
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
	s->shadow[s->n++] = (struct entry){.ra = word_at(s, u.rsp), .slot = u.rsp};
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
				.pc = before.rip,
				.sp = before.rsp};
			continue;
		}
		if (called && u.rsp == before.rsp - 8)
			s->shadow[s->n++] = (struct entry){.ra = word_at(s, u.rsp),
				.slot = u.rsp,
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
		bool fine = (from_exec || run_to_main(s)) && step_through(s);
		CHECK(fine);
		printf("# %s: %" PRIu64 " instructions, %" PRIu64 " frames compared, %" PRIu64
		       " mismatches\n",
			strrchr(program, '/') ? strrchr(program, '/') + 1 : program, s->steps,
			s->expected, s->mismatches);
		for (size_t i = 0; i < s->n_classes; i++)
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
