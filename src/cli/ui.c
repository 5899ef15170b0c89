#include "cli/ui.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include "output/text.h"

static const char *const color_words[] = {"auto", "always", "never", NULL};

static const struct sonde_option common_rows[] = {
	{"json", 0, SONDE_OPTION_INTO(FLAG, struct sonde_common_options, json), NULL,
		"write one JSON object instead of text"},
	{"output", 'o', SONDE_OPTION_INTO(STRING, struct sonde_common_options, output), "FILE",
		"write the results to FILE, which appears when they are complete"},
	{"quiet", 'q', SONDE_OPTION_INTO(FLAG, struct sonde_common_options, quiet), NULL,
		"no progress and no warnings"},
	{"color", 0, SONDE_OPTION_INTO(ENUM, struct sonde_common_options, color), NULL,
		"colour the text; auto: where a terminal reads it", color_words},
	{"no-pager", 0, SONDE_OPTION_INTO(FLAG, struct sonde_common_options, no_pager), NULL,
		"never start a pager"},
	{"no-legend", 0, SONDE_OPTION_INTO(FLAG, struct sonde_common_options, no_legend), NULL,
		"no table headers and totals"},
};

const struct sonde_option_table sonde_common_option_table = {
	"Common options",
	common_rows,
	SONDE_ARRAY_LEN(common_rows),
	0,
};

/* The only state of the process that sonde writes: a handler has nothing else to write to. */
static volatile sig_atomic_t stop_asked, n_interrupts;

static void ask_to_stop(int signal_number)
{
	stop_asked = signal_number;
}

void sonde_ui_watch_signals(void)
{
	/* The second signal finds the default again: whoever waits in vain can still leave. */
	struct sigaction action = {
		.sa_handler = ask_to_stop, .sa_flags = SA_RESTART | SA_RESETHAND};
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(signals); i++) {
		struct sigaction old;
		/* What the parent ignores (nohup) stays ignored. */
		if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	}
	signal(SIGPIPE, SIG_IGN);
}

bool sonde_ui_interrupted(void)
{
	return stop_asked != 0;
}

/* Whoever types it twice, impatiently, loses no shell. */
static void count_interrupts(int signal_number)
{
	enum { ENOUGH = 3 };
	if (++n_interrupts >= ENOUGH) {
		signal(SIGINT, SIG_DFL);
		raise(SIGINT);
	}
	if (!stop_asked)
		stop_asked = signal_number;
}

static void terminal_changed(int signal_number)
{
	(void)signal_number; /* it ends the wait for input */
}

int sonde_ui_watch_signals_again(void)
{
	static const struct {
		int number;
		void (*handler)(int);
	} wanted[] = {{SIGINT, count_interrupts}, {SIGWINCH, terminal_changed},
		{SIGCONT, terminal_changed}};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(wanted); i++) {
		struct sigaction action = {.sa_handler = wanted[i].handler, .sa_flags = SA_RESTART},
				 old;
		if (sigaction(wanted[i].number, NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(wanted[i].number, &action, NULL);
	}
	n_interrupts = 0;
	if (stop_asked == SIGINT)
		stop_asked = 0;
	return stop_asked;
}

int sonde_ui_wait_for_input(int fd)
{
	/* Blocked but while it waits: no signal falls between the look and the wait. */
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGCONT};
	sigset_t blocked, before;
	sigemptyset(&blocked);
	for (size_t i = 0; i < SONDE_ARRAY_LEN(signals); i++)
		sigaddset(&blocked, signals[i]);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	struct pollfd p = {.fd = fd, .events = POLLIN};
	int n = stop_asked ? 0 : ppoll(&p, 1, NULL, &before);
	int saved = errno, asked = stop_asked;
	sigprocmask(SIG_SETMASK, &before, NULL);
	if (asked)
		return asked;
	return n < 0 && saved == EINTR ? -1 : 0;
}

void sonde_ui_guard_descriptors(void)
{
	for (int fd = 0; fd <= 2; fd++) {
		if (fcntl(fd, F_GETFD) >= 0)
			continue;
		/* The lowest free number is fd; writing to it fails with EBADF, as it did. */
		int opened = open("/dev/null", O_RDONLY);
		if (opened > 2)
			close(opened);
	}
}

void sonde_ui_tell(const char *text, size_t len)
{
	while (len) {
		ssize_t n = write(STDERR_FILENO, text, len);
		if (n < 0 && errno != EINTR)
			return;
		text += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
}

void sonde_ui_complain(const char *text)
{
	sonde_cleanup(sonde_buf) struct sonde_buf line = {0};
	sonde_buf_str(&line, "sonde: ");
	sonde_text_escape(&line, text, strlen(text));
	sonde_buf_char(&line, '\n');
	if (!line.failed)
		sonde_ui_tell(line.data, line.len);
}

static void clear_progress(struct sonde_ui *ui)
{
	static const char clear[] = "\r\033[K";
	if (ui->progress_shown)
		sonde_ui_tell(clear, sizeof(clear) - 1);
	ui->progress_shown = false;
}

static void hear(void *ctx, enum sonde_log_level level, const char *text)
{
	struct sonde_ui *ui = ctx;
	if (level < SONDE_LOG_WARNING || ui->options->quiet)
		return;
	clear_progress(ui);
	char line[1024];
	snprintf(line, sizeof(line), "warning: %s", text);
	sonde_ui_complain(line);
}

static int64_t now_ns(void)
{
	struct timespec t = {0};
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* "what 45%" on one line of the terminal, ten times a second, once it takes longer than a moment. */
static bool show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	enum { MOMENT_NS = 200 * 1000 * 1000, EVERY_NS = 100 * 1000 * 1000, COLUMNS = 79 };
	struct sonde_ui *ui = ctx;
	if (stop_asked)
		return false;
	if (!ui->err_is_tty || ui->options->quiet || ui->pager > 0)
		return true;
	int64_t now = now_ns();
	if (!ui->progress_first_ns)
		ui->progress_first_ns = now;
	if (now - ui->progress_first_ns < MOMENT_NS || now - ui->progress_last_ns < EVERY_NS)
		return true;
	ui->progress_last_ns = now;
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0}, line = {0};
	sonde_text_escape(&text, what, strlen(what));
	if (total)
		sonde_buf_printf(&text, " %u%%",
			(unsigned)((unsigned __int128)sonde_min(done, total) * 100 / total));
	else
		sonde_buf_printf(&text, " %llu", (unsigned long long)done);
	sonde_buf_str(&line, "\r");
	sonde_buf_add(&line, text.data, sonde_text_fit(text.data, text.len, COLUMNS));
	sonde_buf_str(&line, "\033[K");
	if (!line.failed && !text.failed)
		sonde_ui_tell(line.data, line.len);
	ui->progress_shown = true;
	return true;
}

static bool terminal(int fd)
{
	const char *term = getenv("TERM");
	return isatty(fd) && term && *term && strcmp(term, "dumb");
}

void sonde_ui_init(struct sonde_ui *ui, const struct sonde_common_options *options)
{
	*ui = (struct sonde_ui){.options = options};
	ui->out_is_tty = isatty(STDOUT_FILENO);
	ui->err_is_tty = terminal(STDERR_FILENO);
	ui->log = (struct sonde_log){.message = hear, .progress = show_progress, .ctx = ui};
}

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);
	return value && *value;
}

static bool to_stdout(const struct sonde_ui *ui)
{
	return ui->report_to_stdout || !ui->options->output || !strcmp(ui->options->output, "-");
}

static bool wants_color(const struct sonde_ui *ui)
{
	if (ui->options->json)
		return false;
	if (ui->options->color != SONDE_COLOR_AUTO)
		return ui->options->color == SONDE_COLOR_ALWAYS;
	if (is_set("NO_COLOR"))
		return false;
	if (is_set("CLICOLOR_FORCE") && strcmp(getenv("CLICOLOR_FORCE"), "0"))
		return true;
	if (is_set("CLICOLOR") && !strcmp(getenv("CLICOLOR"), "0"))
		return false;
	return to_stdout(ui) && !ui->reader && terminal(STDOUT_FILENO);
}

static bool in_path(const char *program)
{
	const char *path = getenv("PATH");
	char name[1024];
	for (const char *p = path ? path : "/usr/bin:/bin"; *p;) {
		size_t n = strcspn(p, ":");
		if (n &&
			snprintf(name, sizeof(name), "%.*s/%s", (int)n, p, program) <
				(int)sizeof(name) &&
			access(name, X_OK) == 0)
			return true;
		p += n + (p[n] == ':');
	}
	return false;
}

/* The shell command of the pager; NULL for none. Set but empty, or "cat", is none. */
static const char *pager_command(void)
{
	const char *command = getenv("SONDE_PAGER");
	if (!command)
		command = getenv("PAGER");
	if (!command)
		return in_path("less") ? "less -FRX" : NULL;
	return *command && strcmp(command, "cat") ? command : NULL;
}

static _Noreturn void become_pager(const char *command, int from)
{
	signal(SIGPIPE, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	setenv("LESSCHARSET", "utf-8", 0);
	if (dup2(from, STDIN_FILENO) == STDIN_FILENO)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

/* The descriptor that the results go to; called when there are some. */
static int open_stdout(void *ctx)
{
	struct sonde_ui *ui = ctx;
	clear_progress(ui);
	const char *command = ui->reader;
	if (!command && ui->out_is_tty && !ui->options->no_pager)
		command = pager_command();
	int fds[2] = {-1, -1};
	if (command && pipe2(fds, O_CLOEXEC) == 0)
		ui->pager = fork();
	if (ui->pager == 0 && fds[0] >= 0)
		become_pager(command, fds[0]);
	if (fds[0] >= 0)
		close(fds[0]);
	if (ui->pager <= 0) {
		/* A pager is a courtesy, a reader was asked for. */
		int saved = errno;
		if (fds[1] >= 0)
			close(fds[1]);
		errno = saved;
		return ui->reader ? -1 : fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	}
	ui->paged = true;
	return fds[1];
}

/* Ctrl-C ends what streams to a terminal or a file; a pager that runs has its own use for it. */
static bool stop_writing(void *ctx)
{
	const struct sonde_ui *ui = ctx;
	return stop_asked && ui->pager <= 0 && !ui->ends_by_stop;
}

struct sonde_error *sonde_ui_open_sink(struct sonde_ui *ui, struct sonde_sink **ret)
{
	if (!ui->sink && to_stdout(ui))
		SONDE_TRY(sonde_sink_open_lazy("standard output", open_stdout, ui, &ui->sink));
	else if (!ui->sink)
		SONDE_TRY(sonde_sink_open_file(ui->options->output, &ui->sink));
	ui->sink->stop = stop_writing;
	ui->sink->ctx = ui;
	*ret = ui->sink;
	return NULL;
}

struct sonde_error *sonde_ui_open_report(struct sonde_ui *ui, struct sonde_report **ret)
{
	struct sonde_sink *sink;
	SONDE_TRY(sonde_ui_open_sink(ui, &sink));
	struct sonde_report_options options = {
		.json = ui->options->json,
		.color = wants_color(ui),
		.legend = !ui->options->no_legend,
	};
	struct winsize size;
	if (to_stdout(ui) && !ui->reader && ui->out_is_tty &&
		ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
		options.max_columns = size.ws_col;
	sonde_report_init(&ui->report, sink, &options);
	ui->report_open = true;
	*ret = &ui->report;
	return NULL;
}

static void wait_for_pager(struct sonde_ui *ui)
{
	if (ui->pager <= 0)
		return;
	/* Ctrl-C is the pager's now. */
	struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
	sigaction(SIGINT, &ignore, &old);
	int status = 0;
	while (waitpid(ui->pager, &status, 0) < 0 && errno == EINTR)
		;
	sigaction(SIGINT, &old, NULL);
	ui->pager = 0;
	if (ui->reader)
		ui->reader_status = status;
	else if (WIFEXITED(status) && WEXITSTATUS(status) == 127)
		sonde_ui_complain("the pager cannot be run; try --no-pager");
}

void sonde_ui_deinit(struct sonde_ui *ui)
{
	clear_progress(ui);
	if (ui->report_open)
		sonde_report_deinit(&ui->report);
	ui->report_open = false;
	sonde_sink_free(sonde_take(ui->sink));
	wait_for_pager(ui);
}

int sonde_ui_end(struct sonde_ui *ui, struct sonde_error *err)
{
	if (!err && ui->sink)
		err = sonde_sink_finish(ui->sink);
	ui->unheard = ui->sink && ui->sink->os_errno == EPIPE;
	if (err && ui->sink && ui->sink->os_errno == EINTR) {
		sonde_error_free(err);
		err = sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	}
	sonde_ui_deinit(ui);
	/* Whoever quits a pager has seen enough. */
	int status = !err || (ui->unheard && ui->paged) ? 0 : sonde_error_exit_status(err->code);
	if (err && !ui->unheard)
		sonde_ui_complain(err->message);
	sonde_error_free(err);
	/* As in sh, the last command of a pipe decides, where the first did not fail. */
	return !status && (ui->failed || ui->reader_status) ? 1 : status;
}
