#include "target/live.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include "base/buf.h"
#include "base/cursor.h"
#include "base/vec.h"
#include "target/ops.h"

enum { MAX_PATH_BYTES = 4096, MAX_THREAD_ROUNDS = 16, PAGE_BYTES = 4096 };

struct seized {
	pid_t tid;
	int signal; /* that was about to be delivered when it stopped: delivered on release */
	bool stopped;
};
SONDE_DEFINE_VEC(seized_vec, struct seized)
SONDE_DEFINE_VEC(mapping_vec, struct sonde_mapping)
SONDE_DEFINE_VEC(thread_vec, struct sonde_thread)

struct live {
	struct sonde_target target; /* first */
	pid_t pid;
	struct seized_vec seized;
};

static size_t read_some(struct sonde_target *t, uint64_t addr, void *to, size_t len)
{
	const struct live *l = (const struct live *)t;
	struct iovec local = {to, len}, remote = {(void *)(uintptr_t)addr, len};
	ssize_t got = process_vm_readv(l->pid, &local, 1, &remote, 1, 0);
	return got > 0 ? (size_t)got : 0;
}

static void free_live(struct sonde_target *t)
{
	struct live *l = (struct live *)t;
	sonde_vec_foreach (s, &l->seized) {
		if (!s->stopped ||
			ptrace(PTRACE_DETACH, s->tid, NULL, (void *)(intptr_t)s->signal) == 0 ||
			errno != ESRCH)
			continue;
		/*
		 * Killed meanwhile. A tracer has to wait for each dead thread, else the process never ends for its
		 * parent, whose wait for the process itself must not be taken from it.
		 */
		if (s->tid != l->pid || t->info.ppid != (uint32_t)getpid())
			waitpid(s->tid, NULL, __WALL | (s->tid == l->pid ? WNOHANG : 0));
	}
	seized_vec_deinit(&l->seized);
	free(l);
}

static const struct sonde_target_ops live_ops = {.read_some = read_some, .free = free_live};

static struct sonde_error *refused(const struct live *l, int os_errno, const char *what)
{
	if (os_errno == ESRCH || os_errno == ENOENT)
		return sonde_error_new(
			SONDE_NOT_FOUND, "process %d: there is no such process", (int)l->pid);
	if (os_errno == EPERM || os_errno == EACCES)
		return sonde_error_os(os_errno,
			"process %d: %s: it needs the process's own user, CAP_SYS_PTRACE or a "
			"lower kernel.yama.ptrace_scope, and nobody else may trace it",
			(int)l->pid, what);
	return sonde_error_os(os_errno, "process %d: %s", (int)l->pid, what);
}

/* A file of /proc/PID as one text. */
static struct sonde_error *read_proc(const struct live *l, const char *name, struct sonde_buf *to)
{
	char path[64], chunk[8192];
	snprintf(path, sizeof(path), "/proc/%d/%s", (int)l->pid, name);
	sonde_cleanup(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return refused(l, errno, path);
	for (;;) {
		ssize_t got = read(fd, chunk, sizeof(chunk));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return refused(l, errno, path);
		if (got == 0)
			break;
		sonde_buf_add(to, chunk, (size_t)got);
	}
	return to->failed ? &sonde_enomem : NULL;
}

/* --- threads --- */

static bool is_seized(const struct live *l, pid_t tid)
{
	for (size_t i = 0; i < l->seized.n; i++)
		if (l->seized.items[i].tid == tid)
			return true;
	return false;
}

/* *gone: it ended meanwhile, which is no error. */
static struct sonde_error *seize(struct live *l, pid_t tid, bool *gone)
{
	int status;
	*gone = false;
	if (!seized_vec_reserve(&l->seized, 1))
		return &sonde_enomem;
	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) < 0) {
		*gone = errno == ESRCH;
		return *gone ? NULL : refused(l, errno, "its threads cannot be stopped");
	}
	struct seized *s = seized_vec_add(&l->seized);
	s->tid = tid;
	if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) < 0)
		return errno == ESRCH ? NULL : refused(l, errno, "its threads cannot be stopped");
	while (waitpid(tid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return refused(l, errno, "its threads cannot be stopped");
	}
	if (!WIFSTOPPED(status)) {
		*gone = true;
		l->seized.n--;
		return NULL;
	}
	s->stopped = true;
	/* A stop of our own tells PTRACE_EVENT_STOP; anything else is a signal on its way. */
	if (status >> 16 != PTRACE_EVENT_STOP)
		s->signal = WSTOPSIG(status);
	return NULL;
}

/* Threads may start others until all are stopped: look until a round finds no new one. */
static struct sonde_error *seize_all(struct live *l)
{
	char path[64];
	bool gone;
	snprintf(path, sizeof(path), "/proc/%d/task", (int)l->pid);
	SONDE_TRY(seize(l, l->pid, &gone));
	for (unsigned round = 0, more = 1; more && round < MAX_THREAD_ROUNDS; round++) {
		struct sonde_error *err = NULL;
		DIR *dir = opendir(path);
		if (!dir)
			return refused(l, errno, path);
		more = 0;
		for (struct dirent *e; !err && (e = readdir(dir));) {
			pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
			if (tid <= 0 || is_seized(l, tid))
				continue;
			more = 1;
			err = seize(l, tid, &gone);
		}
		closedir(dir);
		SONDE_TRY(err);
	}
	return l->seized.n ? NULL : refused(l, ESRCH, "");
}

/* The kernel's regset is what a PRSTATUS note of a core has behind its header: regs.c knows that layout. */
static bool read_regs(const struct live *l, pid_t tid, struct sonde_regs *regs)
{
	uint8_t desc[512] = {0}, set[392];
	struct iovec v = {set, sizeof(set)};
	if (ptrace(PTRACE_GETREGSET, tid, (void *)(uintptr_t)NT_PRSTATUS, &v) < 0)
		return false;
	size_t at = l->target.info.word_bytes == 8 ? 112 : 72;
	memcpy(desc + at, set, v.iov_len);
	struct sonde_prstatus p;
	if (!sonde_regs_of_prstatus(l->target.info.machine, desc, at + v.iov_len + 8, &p))
		return false;
	*regs = p.regs;
	return true;
}

static struct sonde_error *read_threads(struct live *l, struct sonde_notes *notes)
{
	struct sonde_target *t = &l->target;
	t->threads = sonde_new_array(struct sonde_thread, l->seized.n);
	if (!t->threads)
		return &sonde_enomem;
	sonde_vec_foreach (s, &l->seized) {
		struct sonde_thread *thread = &t->threads[t->n_threads];
		if (!s->stopped || !read_regs(l, s->tid, &thread->regs)) {
			sonde_notes_add(notes, "thread ended while it was looked at", 0,
				"thread %d", (int)s->tid);
			continue;
		}
		thread->tid = (uint32_t)s->tid;
		t->n_threads++;
	}
	return NULL;
}

/* --- what /proc tells --- */

static uint32_t status_number(const char *status, const char *key)
{
	const char *at = strstr(status, key);
	return at ? (uint32_t)strtoul(at + strlen(key), NULL, 10) : 0;
}

static struct sonde_error *read_info(struct live *l)
{
	struct sonde_process_info *info = &l->target.info;
	sonde_cleanup(sonde_buf) struct sonde_buf status = {0}, comm = {0}, args = {0};
	SONDE_TRY(read_proc(l, "status", &status));
	SONDE_TRY(read_proc(l, "comm", &comm));
	SONDE_TRY(read_proc(l, "cmdline", &args));
	const char *text = sonde_buf_text(&status);
	if (strstr(text, "\nState:\tZ") || strstr(text, "\nState:\tX"))
		return sonde_error_new(
			SONDE_NOT_FOUND, "process %d: it has ended already", (int)l->pid);
	info->has_psinfo = true;
	info->pid = (uint32_t)l->pid;
	info->ppid = status_number(text, "\nPPid:\t");
	info->uid = status_number(text, "\nUid:\t");
	info->gid = status_number(text, "\nGid:\t");
	snprintf(info->program, sizeof(info->program), "%.*s",
		(int)strcspn(sonde_buf_text(&comm), "\n"), sonde_buf_text(&comm));
	size_t n = sonde_min(args.len, sizeof(info->args) - 1);
	for (size_t i = 0; i < n; i++)
		info->args[i] = args.data[i] ? (char)args.data[i] : ' ';
	while (n && info->args[n - 1] == ' ')
		info->args[--n] = 0;
	return NULL;
}

/* Whether the file at path is the one that the process has mapped. */
static bool is_file(const char *path, const struct stat *want, bool has_device)
{
	struct stat st;
	return !stat(path, &st) && S_ISREG(st.st_mode) && st.st_ino == want->st_ino &&
		(!has_device || st.st_dev == want->st_dev);
}

/*
 * By which path the very file of a mapping can be opened: its own path, so that debug files beside it are found; the
 * kernel's link to the mapped file; its path in the process's root. NULL: none. The device in /proc/PID/maps is that of
 * the lower file system where there are several layers, so without permission to the link only the inode is compared.
 */
static const char *openable(struct live *l, const struct sonde_mapping *m, uint64_t inode)
{
	char link[96], path[MAX_PATH_BYTES];
	struct stat st;
	snprintf(link, sizeof(link), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64, (int)l->pid,
		m->start, m->end);
	bool linked = !stat(link, &st) && S_ISREG(st.st_mode);
	if (!linked)
		st.st_ino = inode;
	const char *found = NULL;
	int n = snprintf(path, sizeof(path), "/proc/%d/root%s", (int)l->pid, m->path);
	if (is_file(m->path, &st, linked))
		found = m->path;
	else if (linked)
		found = link;
	else if (n > 0 && (size_t)n < sizeof(path) && is_file(path, &st, false))
		found = path;
	return found ? sonde_arena_strdup(&l->target.arena, found) : NULL;
}

static struct sonde_error *add_mapping(struct live *l, struct mapping_vec *to, const char *line)
{
	struct sonde_mapping m = {0};
	char perm[5] = "";
	uint64_t inode;
	int at = 0;
	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %" SCNu64 " %n", &m.start,
		    &m.end, perm, &m.file_offset, &inode, &at) != 5 ||
		!at || m.end <= m.start || (to->n && m.start < to->items[to->n - 1].end))
		return NULL;
	m.perm = (perm[0] == 'r' ? SONDE_PERM_R : 0) | (perm[1] == 'w' ? SONDE_PERM_W : 0) |
		(perm[2] == 'x' ? SONDE_PERM_X : 0);
	m.source = m.perm ? SONDE_SOURCE_CORE : SONDE_SOURCE_ABSENT;
	m.reason = m.perm ? NULL : "no access: the process itself could not read it";
	const char *path = line + at;
	if (*path == '/' || !strcmp(path, "[vdso]")) {
		const struct sonde_mapping *last = to->n ? &to->items[to->n - 1] : NULL;
		bool same = last && last->path && !strcmp(last->path, path);
		m.path = same ? last->path : sonde_arena_strdup(&l->target.arena, path);
		if (!m.path)
			return &sonde_enomem;
		if (m.perm && inode) {
			m.from = same && last->from && strncmp(last->from, "/proc/", 6)
				? last->from
				: openable(l, &m, inode);
			if (m.from)
				m.source = SONDE_SOURCE_FILE;
		}
	} else {
		m.file_offset = 0;
	}
	return mapping_vec_push(to, m) ? NULL : &sonde_enomem;
}

static struct sonde_error *read_mappings(struct live *l)
{
	sonde_cleanup(sonde_buf) struct sonde_buf maps = {0};
	sonde_cleanup(mapping_vec) struct mapping_vec all = {0};
	SONDE_TRY(read_proc(l, "maps", &maps));
	char *save = NULL, *text = (char *)sonde_buf_text(&maps);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		SONDE_TRY(add_mapping(l, &all, line));
	l->target.mappings = sonde_take(all.items);
	l->target.n_mappings = all.n;
	all.n = all.cap = 0;
	return NULL;
}

static struct sonde_error *open_exe(struct live *l)
{
	struct sonde_target *t = &l->target;
	char link[64], path[MAX_PATH_BYTES];
	struct stat st;
	snprintf(link, sizeof(link), "/proc/%d/exe", (int)l->pid);
	ssize_t n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return refused(l, errno, link);
	path[n] = 0;
	const char *from = !stat(link, &st) && is_file(path, &st, true) ? path : link;
	SONDE_TRY(sonde_error_wrap(sonde_elf_open(from, &t->exe), "process %d", (int)l->pid));
	t->exe_path = sonde_arena_strdup(&t->arena, path);
	if (!t->exe_path)
		return &sonde_enomem;
	if (!sonde_machine_find(t->exe->machine)) {
		char text[32];
		return sonde_error_new(SONDE_UNSUPPORTED, "process %d: it runs on %s", (int)l->pid,
			sonde_elf_machine_name(t->exe->machine, text));
	}
	sonde_buildid_of_elf(t->exe, &t->exe_buildid);
	sonde_gobuildid_of_elf(t->exe, t->exe_gobuildid);
	t->info.machine = t->exe->machine;
	t->info.word_bytes = t->exe->word_bytes;
	t->shape.word_bytes = (uint8_t)t->exe->word_bytes;
	return NULL;
}

static struct sonde_error *open_all(struct live *l, const struct sonde_live_options *o)
{
	struct sonde_target *t = &l->target;
	SONDE_TRY(read_info(l));
	if (!o->memory_only)
		SONDE_TRY(seize_all(l));
	SONDE_TRY(open_exe(l));
	sonde_cleanup(sonde_buf) struct sonde_buf auxv = {0};
	SONDE_TRY(read_proc(l, "auxv", &auxv));
	sonde_target_decode_auxv(auxv.data, auxv.len, &t->info);
	if (t->info.entry)
		t->exe_bias = t->info.entry - t->exe->entry;
	SONDE_TRY(read_mappings(l));
	const char *texts[] = {"", ""};
	const uint64_t addrs[] = {t->info.execfn_addr, t->info.platform_addr};
	for (unsigned i = 0; i < 2; i++) {
		sonde_cleanup(free) char *s =
			addrs[i] ? sonde_target_string(t, addrs[i], MAX_PATH_BYTES) : NULL;
		if (s && !(texts[i] = sonde_arena_strdup(&t->arena, s)))
			return &sonde_enomem;
	}
	t->info.execfn = texts[0];
	t->info.platform = texts[1];
	return o->memory_only ? NULL : read_threads(l, o->notes);
}

struct sonde_error *sonde_live_open(
	uint32_t pid, const struct sonde_live_options *options, struct sonde_target **ret)
{
	static const struct sonde_live_options none;
	struct live *l = sonde_new(struct live);
	if (!l)
		return &sonde_enomem;
	sonde_cleanup(sonde_target) struct sonde_target *t = &l->target;
	l->pid = (pid_t)pid;
	t->ops = &live_ops;
	sonde_arena_init(&t->arena);
	t->info.page_bytes = PAGE_BYTES;
	t->info.execfn = t->info.platform = "";
	t->name = sonde_arena_printf(&t->arena, "process %" PRIu32, pid);
	if (!t->name)
		return &sonde_enomem;
	if (pid == 0 || pid > INT32_MAX)
		return refused(l, ESRCH, "");
	SONDE_TRY(open_all(l, options ? options : &none));
	*ret = sonde_take(t);
	return NULL;
}
