#include "target/live.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include "base/vec.h"

#include "tap.h"

enum { N_THREADS = 3 };
static char text[] = "a text in the process's memory";
static int ready[2];

static void *sleep_on(void *arg)
{
	char c = 1;
	if (write(ready[1], &c, 1) != 1)
		_exit(1);
	for (;;)
		pause();
	return arg;
}

/* A child with N_THREADS threads, all of them asleep. */
static pid_t start_child(void)
{
	if (pipe(ready))
		return -1;
	pid_t pid = fork();
	if (pid == 0) {
		strcpy(text, "changed by the child");
		for (int i = 1; i < N_THREADS; i++) {
			pthread_t thread;
			if (pthread_create(&thread, NULL, sleep_on, NULL))
				_exit(1);
		}
		sleep_on(NULL);
	}
	char c;
	for (int i = 0; i < N_THREADS; i++)
		if (read(ready[0], &c, 1) != 1)
			return -1;
	close(ready[0]);
	close(ready[1]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static char state_of(pid_t pid)
{
	char path[64], line[256] = "";
	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	FILE *f = fopen(path, "r");
	if (!f || !fgets(line, sizeof(line), f))
		line[0] = 0;
	if (f)
		fclose(f);
	const char *at = strrchr(line, ')');
	return at ? at[2] : 0;
}

static bool can_trace(pid_t pid)
{
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL) < 0)
		return false;
	int status;
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	waitpid(pid, &status, __WALL);
	ptrace(PTRACE_DETACH, pid, NULL, NULL);
	return true;
}

static void threads_and_memory(void)
{
	pid_t pid = start_child();
	REQUIRE(pid > 0);
	if (!can_trace(pid)) {
		end_child(pid);
		SKIP("ptrace is not permitted");
	}
	struct sonde_target *t = NULL;
	struct sonde_error *err = sonde_live_open((uint32_t)pid, NULL, &t);
	CHECK_OK(err);
	if (t) {
		size_t n;
		const struct sonde_thread *threads = sonde_target_threads(t, &n);
		CHECK_EQ(n, N_THREADS);
		CHECK_EQ(threads[0].tid, pid);
		for (size_t i = 0; i < n; i++) {
			const struct sonde_mapping *stack =
				sonde_target_mapping_find(t, sonde_regs_sp(&threads[i].regs));
			const struct sonde_mapping *code =
				sonde_target_mapping_find(t, sonde_regs_pc(&threads[i].regs));
			CHECK(stack && stack->perm & SONDE_PERM_W);
			CHECK(code && code->perm & SONDE_PERM_X);
			CHECK(code && code->path && code->source == SONDE_SOURCE_FILE);
		}
		CHECK(state_of(pid) == 't');
		/* The child is a copy of this process: the same addresses. */
		char copy[sizeof(text)];
		CHECK(sonde_target_read(t, (uint64_t)(uintptr_t)text, copy, sizeof(copy)));
		CHECK_STR(copy, "changed by the child");
		CHECK(!sonde_target_bytes(t, (uint64_t)(uintptr_t)text, 1));
		CHECK(!sonde_target_read(t, 8, copy, 1));
		const struct sonde_process_info *info = sonde_target_info(t);
		CHECK_EQ(info->pid, pid);
		CHECK_EQ(info->ppid, getpid());
		CHECK_EQ(info->word_bytes, sizeof(void *));
		CHECK(info->has_auxv && info->entry && info->vdso);
		CHECK(strstr(info->execfn, "unit_target_live") != NULL);
		CHECK(!strncmp(info->program, "unit_target_liv", 15));
		CHECK(strstr(sonde_target_exe_path(t), "unit_target_live") != NULL);
		const struct sonde_elf *exe = sonde_target_exe(t, NULL);
		CHECK(exe && exe->entry + sonde_target_exe_bias(t) == info->entry);
		const struct sonde_mapping *vdso = sonde_target_mapping_find(t, info->vdso);
		CHECK(vdso && vdso->path && !strcmp(vdso->path, "[vdso]"));
		char name[32];
		snprintf(name, sizeof(name), "process %d", (int)pid);
		CHECK_STR(sonde_target_name(t), name);
	}
	sonde_target_free(t);
	/* It runs on, as if nothing had been. */
	CHECK(state_of(pid) != 't' && state_of(pid) != 'T');
	end_child(pid);
}

static void memory_only(void)
{
	pid_t pid = start_child();
	REQUIRE(pid > 0);
	const struct sonde_live_options options = {.memory_only = true};
	struct sonde_target *t = NULL;
	struct sonde_error *err = sonde_live_open((uint32_t)pid, &options, &t);
	if (err && err->code == SONDE_OS) {
		sonde_error_free(err);
		end_child(pid);
		SKIP("the process may not be read");
	}
	CHECK_OK(err);
	if (t) {
		size_t n;
		sonde_target_threads(t, &n);
		CHECK_EQ(n, 0);
		CHECK(state_of(pid) != 't');
	}
	sonde_target_free(t);
	end_child(pid);
}

/* A signal that comes while the threads are stopped is delivered afterwards. */
static void signals_are_kept(void)
{
	pid_t pid = start_child();
	REQUIRE(pid > 0);
	if (!can_trace(pid)) {
		end_child(pid);
		SKIP("ptrace is not permitted");
	}
	struct sonde_target *t = NULL;
	CHECK_OK(sonde_live_open((uint32_t)pid, NULL, &t));
	kill(pid, SIGTERM);
	usleep(10000);
	CHECK(state_of(pid) == 't');
	sonde_target_free(t);
	int status = 0;
	CHECK(waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
		WTERMSIG(status) == SIGTERM);
}

/* The file of a mapping was deleted: it is read through the kernel's link where that is permitted, never by its path. */
static void deleted_file(void)
{
	char path[] = "/tmp/sonde-live-XXXXXX";
	int fd = mkstemp(path);
	REQUIRE(fd >= 0);
	CHECK(!ftruncate(fd, 8192));
	void *at = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, fd, 0);
	close(fd);
	pid_t pid = start_child();
	unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600); /* another file there */
	close(fd);
	const struct sonde_live_options options = {.memory_only = true};
	struct sonde_target *t = NULL;
	struct sonde_error *err = sonde_live_open((uint32_t)pid, &options, &t);
	const struct sonde_mapping *m =
		t ? sonde_target_mapping_find(t, (uint64_t)(uintptr_t)at) : NULL;
	if (!err) {
		CHECK(m && m->path && strstr(m->path, " (deleted)"));
		CHECK(m && (!m->from || strstr(m->from, "/map_files/")));
	}
	sonde_error_free(err);
	sonde_target_free(t);
	end_child(pid);
	unlink(path);
	munmap(at, 8192);
}

static void refusals(void)
{
	struct sonde_target *t = NULL;
	pid_t pid = fork();
	if (pid == 0)
		_exit(0);
	siginfo_t info;
	waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT);
	CHECK_ERROR(sonde_live_open((uint32_t)pid, NULL, &t), SONDE_NOT_FOUND, "ended already");
	waitpid(pid, NULL, 0);
	CHECK_ERROR(sonde_live_open((uint32_t)pid, NULL, &t), SONDE_NOT_FOUND,
		"there is no such process");
	CHECK_ERROR(sonde_live_open(0, NULL, &t), SONDE_NOT_FOUND, "no such process");
	CHECK_ERROR(sonde_live_open(UINT32_MAX, NULL, &t), SONDE_NOT_FOUND, "no such process");
	/* Another one traces it already. */
	pid = fork();
	if (pid == 0) {
		pid_t traced = fork();
		if (traced == 0)
			for (;;)
				pause();
		if (ptrace(PTRACE_SEIZE, traced, NULL, NULL) < 0)
			traced = 0;
		struct sonde_target *other = NULL;
		pid_t third = fork();
		if (third == 0) {
			struct sonde_error *err =
				traced ? sonde_live_open((uint32_t)traced, NULL, &other) : NULL;
			bool fine = !traced ||
				(err && err->code == SONDE_OS &&
					strstr(err->message, "CAP_SYS_PTRACE"));
			_exit(!fine);
		}
		int status = 1;
		waitpid(third, &status, 0);
		if (traced)
			kill(traced, SIGKILL);
		_exit(!WIFEXITED(status) || WEXITSTATUS(status));
	}
	int status = 1;
	waitpid(pid, &status, 0);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(!t);
}

int main(void)
{
	RUN(threads_and_memory);
	RUN(memory_only);
	RUN(signals_are_kept);
	RUN(deleted_file);
	RUN(refusals);
	return tap_end();
}
