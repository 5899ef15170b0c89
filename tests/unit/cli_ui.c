#include "cli/command.h"
#include "tap.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <termios.h>

/* A program of two commands, run on a terminal of its own: what a person would see. */

static struct sonde_error *spin(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	struct sonde_sink *sink;
	SONDE_TRY(sonde_ui_open_sink(ui, &sink));
	sonde_sink_str(sink, "half of it\n");
	sonde_log_message(&ui->log, SONDE_LOG_WARNING, "odd\033[31m");
	sonde_log_message(&ui->log, SONDE_LOG_INFO, "unheard");
	for (uint64_t i = 0; i < 800; i++) {
		if (!sonde_log_progress(&ui->log, "spinning\n", i, 800))
			return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
		usleep(1000);
	}
	return NULL;
}

static const struct sonde_column columns[] = {
	{"name", "NAME", .may_cut = true},
	{"n", "N", .right = true},
};

static struct sonde_error *rows(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	struct sonde_report *r;
	SONDE_TRY(sonde_ui_open_report(ui, &r));
	uint64_t n;
	SONDE_TRY(sonde_opt_u64("N", operands->items[0], &n));
	sonde_report_begin(r, "test.rows", 1);
	sonde_report_table_begin(r, "rows", NULL, columns, SONDE_ARRAY_LEN(columns));
	for (uint64_t i = 1; i <= n; i++)
		sonde_report_row(r, sonde_value_text("a name that is longer than the terminal"),
			sonde_value_count(i));
	sonde_report_table_end(r);
	return sonde_report_end(r, NULL);
}

static const struct sonde_command spin_command = {.name = "spin", .summary = "spin", .run = spin};
static const struct sonde_command rows_command = {
	.name = "rows", .summary = "rows", .operands = "N", .run = rows};
static const struct sonde_command *const children[] = {&spin_command, &rows_command};
static const struct sonde_command root = {
	.name = "demo", .summary = "demo", .children = children, .n_children = 2};

static char shown[1 << 16]; /* what the terminal got */

enum { TERMINAL_COLUMNS = 32, WAIT_MS = 10000 };

/*
 * Run demo with the line's arguments (cut at spaces) and these NAME=VALUE of the environment (NULL: none) on a terminal;
 * once it shows `until`, `keys` are typed. Returns the status of waitpid(), -1 where it hung.
 */
static int run_on_terminal(
	const char *line, const char *const *environment, const char *until, const char *keys)
{
	struct winsize size = {.ws_row = 24, .ws_col = TERMINAL_COLUMNS};
	int terminal;
	fflush(stdout);
	pid_t pid = forkpty(&terminal, NULL, NULL, &size);
	if (pid == 0) {
		char room[256];
		char *argv[16] = {(char *)"demo"};
		int argc = 1;
		unsetenv("NO_COLOR");
		unsetenv("CLICOLOR");
		unsetenv("CLICOLOR_FORCE");
		unsetenv("SONDE_PAGER");
		setenv("PAGER", "", 1);
		setenv("TERM", "xterm", 1);
		for (size_t i = 0; environment && environment[i]; i++)
			putenv((char *)environment[i]);
		snprintf(room, sizeof(room), "%s", line);
		for (char *p = strtok(room, " "); p; p = strtok(NULL, " "))
			argv[argc++] = p;
		signal(SIGINT, SIG_DFL); /* a script's background job ignores it */
		exit(sonde_command_main(&root, argc, argv));
	}
	size_t n = 0;
	bool typed = !until;
	struct pollfd p = {.fd = terminal, .events = POLLIN};
	shown[0] = 0;
	while (poll(&p, 1, WAIT_MS) > 0) {
		ssize_t got = read(terminal, shown + n, sizeof(shown) - 1 - n);
		if (got <= 0) /* EIO: nobody has the terminal open any more */
			break;
		shown[n += (size_t)got] = 0;
		if (!typed && strstr(shown, until)) {
			typed = true;
			if (write(terminal, keys, strlen(keys)) < 0)
				break;
		}
	}
	if (p.revents == 0)
		kill(pid, SIGKILL);
	int status = -1;
	waitpid(pid, &status, 0);
	close(terminal);
	return p.revents ? status : -1;
}

static void progress_and_ctrl_c(void)
{
	int status = run_on_terminal("spin", NULL, "spinning\\n ", "\003");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	CHECK(strstr(shown, "sonde: warning: odd\\x1b[31m\r\n"));
	CHECK(!strstr(shown, "unheard"));
	CHECK(strstr(shown, "\033[K")); /* the progress line is taken away */
	CHECK(strstr(shown, "sonde: interrupted\r\n"));
	CHECK(!strstr(shown, "half of it")); /* nothing half-written */
}

static void ctrl_c_leaves_no_file(void)
{
	char folder[] = "/tmp/sonde-test-XXXXXX", line[128], file[64];
	REQUIRE(mkdtemp(folder));
	snprintf(file, sizeof(file), "%s/out", folder);
	snprintf(line, sizeof(line), "spin -o %s", file);
	int status = run_on_terminal(line, NULL, "spinning\\n ", "\003");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 1);
	CHECK(rmdir(folder) == 0); /* nothing in it */
	REQUIRE(mkdir(folder, 0700) == 0);
	status = run_on_terminal(line, NULL, NULL, NULL);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(unlink(file) == 0 && rmdir(folder) == 0);
}

static void quiet_is_quiet(void)
{
	int status = run_on_terminal("spin -q", NULL, NULL, NULL);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK_STR(shown, "half of it\r\n");
	status = run_on_terminal("rows 1 --no-legend --color=never", NULL, NULL, NULL);
	CHECK_STR(shown, "a name that is longer than t\xe2\x80\xa6  1\r\n");
}

static void no_progress_on_a_dumb_terminal(void)
{
	static const char *const dumb[] = {"TERM=dumb", NULL};
	run_on_terminal("spin", dumb, NULL, NULL);
	CHECK_STR(shown, "sonde: warning: odd\\x1b[31m\r\nhalf of it\r\n");
}

static void a_pager_where_there_is_a_terminal(void)
{
	static const char *const own[] = {"PAGER=false", "SONDE_PAGER=sed s/^/paged:/", NULL};
	int status = run_on_terminal("rows 2 --no-legend", own, NULL, NULL);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(strstr(shown, "paged:a name") && strstr(shown, "  2\r\n"));
	run_on_terminal("rows 2 --no-pager", own, NULL, NULL);
	CHECK(strstr(shown, "  2\r\n") && !strstr(shown, "paged:"));
	run_on_terminal("rows 2 -o /dev/null", own, NULL, NULL);
	CHECK_STR(shown, "");

	static const char *const early[] = {"PAGER=head -n 1", NULL};
	status = run_on_terminal("rows 100000 --no-legend", early, NULL, NULL);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0); /* has seen enough */
	CHECK(!strchr(shown, '\n') || !strchr(shown, '\n')[1]);

	static const char *const missing[] = {"PAGER=/nonexistent/pager", NULL};
	run_on_terminal("rows 1", missing, NULL, NULL);
	CHECK(strstr(shown, "sonde: the pager cannot be run; try --no-pager"));
}

static void ctrl_c_in_the_pager_is_the_pagers(void)
{
	static const char *const pager[] = {
		"PAGER=trap 'echo got it; exit 0' INT; cat; echo ready; sleep 10 & wait", NULL};
	int status = run_on_terminal("rows 1", pager, "ready", "\003");
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	CHECK(strstr(shown, "got it"));
}

/* Whether a report is coloured, on a terminal or not, with these options and variables. */
static bool colored(const char *options, const char *output, const char *const *environment)
{
	char line[128];
	snprintf(line, sizeof(line), "rows 1 %s %s", options, output ? output : "");
	run_on_terminal(line, environment, NULL, NULL);
	if (!output)
		return strstr(shown, "\033[1m");
	char text[256] = "";
	FILE *f = fopen(output + 2, "re");
	if (f) {
		text[fread(text, 1, sizeof(text) - 1, f)] = 0;
		fclose(f);
	}
	CHECK(strstr(text, "  1\n"));
	return strstr(text, "\033[1m");
}

static void colour_follows_its_variables(void)
{
	static const char *const no_color[] = {"NO_COLOR=1", "CLICOLOR_FORCE=1", NULL};
	static const char *const no_color_empty[] = {"NO_COLOR=", NULL};
	static const char *const force[] = {"CLICOLOR_FORCE=1", "CLICOLOR=0", NULL};
	static const char *const force_0[] = {"CLICOLOR_FORCE=0", NULL};
	static const char *const off[] = {"CLICOLOR=0", NULL};
	static const char *const dumb[] = {"TERM=dumb", NULL};
	char file[64];
	snprintf(file, sizeof(file), "-o/tmp/sonde-test-ui-%ld", (long)getpid());
	CHECK(colored("", NULL, NULL));
	CHECK(!colored("", NULL, no_color));
	CHECK(colored("", NULL, no_color_empty));
	CHECK(colored("", NULL, force));
	CHECK(!colored("", NULL, off));
	CHECK(!colored("", NULL, dumb));
	CHECK(colored("--color=always", NULL, no_color));
	CHECK(!colored("--color=never", NULL, force));
	CHECK(!colored("--json --color=always", NULL, NULL));
	CHECK(!colored("", file, NULL));
	CHECK(!colored("", file, force_0));
	CHECK(colored("", file, force));
	CHECK(colored("--color=always", file, NULL));
	unlink(file + 2);
}

int main(void)
{
	int fds[2];
	if (openpty(&fds[0], &fds[1], NULL, NULL, NULL) != 0) {
		printf("1..0 # SKIP no pseudo-terminals here\n");
		return 0;
	}
	close(fds[0]);
	close(fds[1]);
	RUN(progress_and_ctrl_c);
	RUN(ctrl_c_leaves_no_file);
	RUN(quiet_is_quiet);
	RUN(no_progress_on_a_dumb_terminal);
	RUN(a_pager_where_there_is_a_terminal);
	RUN(ctrl_c_in_the_pager_is_the_pagers);
	RUN(colour_follows_its_variables);
	return tap_end();
}
