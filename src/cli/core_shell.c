/* sonde core FILE: its commands, line by line, on one load of the core. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include "cli/core_command.h"
#include "cli/shell_complete.h"
#include "cli/shell_edit.h"
#include "cli/shell_line.h"

struct shell_options {
	struct sonde_core_command_options core;
	struct sonde_strings commands;
	bool no_history;
};

static const struct sonde_option rows[] = {
	{"command", 'c', SONDE_OPTION_INTO(STRINGS, struct shell_options, commands), "LINE",
		"run LINE and leave; may be given several times"},
	{"no-history", 0, SONDE_OPTION_INTO(FLAG, struct shell_options, no_history), NULL,
		"do not keep what is typed"},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};
static const struct sonde_option_table *const tables[] = {&table, &sonde_core_option_table, NULL};

struct shell {
	struct sonde_command_shell commands;
	struct sonde_log log; /* of the session: heard by the ui of the command that runs */
	uint64_t n_run, n_failed; /* lines */
	bool quit;
};

static void hear(void *ctx, enum sonde_log_level level, const char *text)
{
	struct shell *sh = ctx;
	const struct sonde_log *log = &sh->commands.ui->log;
	log->message(log->ctx, level, text);
}

static bool show_progress(void *ctx, const char *what, uint64_t done, uint64_t total)
{
	struct shell *sh = ctx;
	return sonde_log_progress(&sh->commands.ui->log, what, done, total);
}

/* --- its own commands --- */

static const char own_help[] =
	"  help          this, or what 'help COMMAND' is about\n"
	"  quit          leave; so does Ctrl-D\n"
	"\n"
	"'COMMAND > FILE' writes the results to FILE, 'COMMAND | PROGRAM' pipes them into\n"
	"a program of sh. Words with blanks stand in quotes; # begins a comment. Ctrl-C\n"
	"stops a command.\n";

static void write_overview(struct sonde_sink *sink, const struct sonde_command *group,
	const char *path, const struct sonde_command_shell *shell)
{
	sonde_help_write_commands(sink, group);
	sonde_sink_str(sink, own_help);
}

static int run_help(struct shell *sh, const struct sonde_shell_line *line)
{
	if (line->words.n < 2)
		return sonde_command_print(
			write_overview, &sh->commands, line->output, line->reader);
	const char *name = line->words.items[1];
	const struct sonde_command *leaf = sonde_command_find(sh->commands.group, name);
	if (leaf && leaf != sh->commands.group->otherwise)
		return sonde_command_help(leaf, &sh->commands, line->output, line->reader);
	for (size_t i = 0; sonde_shell_builtins[i]; i++)
		if (!strcmp(name, sonde_shell_builtins[i]))
			return sonde_command_print(
				write_overview, &sh->commands, line->output, line->reader);
	char text[256];
	snprintf(text, sizeof(text), "no command '%s'; 'help' lists them", name);
	sonde_ui_complain(text);
	return 1;
}

static int unknown(const struct shell *sh, const char *name)
{
	struct sonde_nearest nearest = {0};
	const struct sonde_command *group = sh->commands.group;
	for (size_t i = 0; i < group->n_children; i++)
		if (!group->children[i]->hidden && group->children[i] != group->otherwise)
			sonde_nearest_try(&nearest, name, group->children[i]->name);
	for (size_t i = 0; sonde_shell_builtins[i]; i++)
		sonde_nearest_try(&nearest, name, sonde_shell_builtins[i]);
	char text[256];
	if (nearest.name)
		snprintf(text, sizeof(text), "unknown command '%s'; did you mean '%s'?", name,
			nearest.name);
	else
		snprintf(text, sizeof(text), "unknown command '%s'; 'help' lists them", name);
	sonde_ui_complain(text);
	return 1;
}

/* --- lines --- */

/* The line's exit status; 0 where there is nothing to run. */
static int run_words(struct shell *sh, const struct sonde_shell_line *line)
{
	if (!line->words.n && (line->output || line->reader)) {
		sonde_ui_complain("a command is missing");
		return 1;
	}
	if (!line->words.n)
		return 0;
	const char *name = line->words.items[0];
	if (!strcmp(name, "help"))
		return run_help(sh, line);
	if (!strcmp(name, "quit") || !strcmp(name, "exit")) {
		sh->quit = true;
		return 0;
	}
	const struct sonde_command *leaf = sonde_command_find(sh->commands.group, name);
	if (!leaf || leaf == sh->commands.group->otherwise)
		return unknown(sh, name);
	return sonde_command_run(leaf, &sh->commands, (int)line->words.n - 1,
		(char *const *)(uintptr_t)(line->words.items + 1), line->output, line->reader);
}

/* Whether it did not fail. */
static bool run_line(struct shell *sh, const char *text, size_t len)
{
	sonde_cleanup(sonde_shell_line) struct sonde_shell_line line = {0};
	struct sonde_ui *own = sh->commands.ui;
	struct sonde_error *err = sonde_shell_line_cut(text, len, false, &line);
	int status = err ? 1 : run_words(sh, &line);
	if (err)
		sonde_ui_complain(err->message);
	sonde_error_free(err);
	sh->commands.ui = own;
	sh->n_run += err || line.words.n;
	sh->n_failed += status != 0;
	return status == 0;
}

/* Of lines that nobody types: which one failed. */
static void run_unseen(struct shell *sh, const char *text, size_t len, uint64_t number)
{
	if (run_line(sh, text, len) || sh->commands.unheard)
		return;
	sonde_cleanup(sonde_buf) struct sonde_buf line = {0};
	sonde_buf_printf(&line, "line %" PRIu64 " failed: ", number);
	sonde_buf_add(&line, text, len);
	sonde_ui_complain(sonde_buf_text(&line));
}

static void run_given(struct shell *sh, const struct sonde_strings *lines)
{
	for (size_t i = 0; i < lines->n && !sh->quit && !sh->commands.unheard; i++) {
		if (sonde_ui_interrupted())
			break;
		run_unseen(sh, lines->items[i], strlen(lines->items[i]), i + 1);
	}
}

static struct sonde_error *run_script(struct shell *sh, struct sonde_shell_input *in)
{
	for (uint64_t number = 1; !sh->quit && !sh->commands.unheard; number++) {
		enum sonde_shell_input_kind kind;
		const char *line = NULL;
		size_t len = 0;
		SONDE_TRY(sonde_shell_input_next(in, &kind, &line, &len));
		if (kind == SONDE_SHELL_INPUT_END)
			break;
		if (kind != SONDE_SHELL_INPUT_LINE)
			return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
		run_unseen(sh, line, len, number);
	}
	return NULL;
}

static void tell(const char *text)
{
	sonde_ui_tell(text, strlen(text));
}

static struct sonde_error *run_typed(struct shell *sh, struct sonde_shell_input *in)
{
	unsigned n_ctrl_c = 0; /* in a row */
	while (!sh->quit) {
		if (sonde_ui_watch_signals_again())
			return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
		enum sonde_shell_input_kind kind;
		const char *text = NULL;
		size_t len = 0;
		SONDE_TRY(sonde_shell_input_next(in, &kind, &text, &len));
		if (kind == SONDE_SHELL_INPUT_LEAVE)
			return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
		if (kind == SONDE_SHELL_INPUT_END) {
			tell("\n");
			break;
		}
		if (kind == SONDE_SHELL_INPUT_CTRL_C) {
			tell(++n_ctrl_c < 2 ? "^C\n" : "^C\n'quit' or Ctrl-D leaves\n");
			continue;
		}
		n_ctrl_c = 0;
		/* The input's own text may go while the command completes or reads. */
		sonde_cleanup(free) char *line = strndup(text, len);
		if (!line)
			return &sonde_enomem;
		if (line[strspn(line, " \t")] && line[0] != ' ')
			sonde_shell_input_remember(in, line);
		if (sonde_ui_watch_signals_again())
			return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
		run_line(sh, line, strlen(line));
	}
	sh->n_failed = 0; /* whoever typed it has seen it */
	return NULL;
}

static struct sonde_error *read_lines(
	struct shell *sh, struct sonde_ui *ui, const struct shell_options *o)
{
	bool interactive = isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
	sonde_cleanup(sonde_shell_input) struct sonde_shell_input *in = NULL;
	SONDE_TRY(sonde_shell_input_open(&sh->commands, interactive, !o->no_history, &in));
	if (!interactive)
		return run_script(sh, in);
	if (!o->core.common.quiet)
		tell("sonde " SONDE_VERSION
		     ": 'help' lists the commands, Tab completes, 'quit' leaves\n");
	return run_typed(sh, in);
}

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct shell_options *o = options;
	if (o->core.common.output)
		return sonde_error_new(
			SONDE_USAGE, "--output is for the commands of the shell: 'COMMAND > FILE'");
	struct shell sh = {.commands = {.group = &sonde_command_core,
				   .operand = operands->items[0],
				   .left_out = &sonde_core_option_table,
				   .common = o->core.common,
				   .ui = ui}};
	sh.log = (struct sonde_log){.message = hear, .progress = show_progress, .ctx = &sh};
	struct sonde_core_session_options how = {.core = o->core.core};
	how.core.log = &sh.log;
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	SONDE_TRY(sonde_core_session_open(operands->items[0], &how, &session));
	sh.commands.session = session;
	if (o->commands.n)
		run_given(&sh, &o->commands);
	else
		SONDE_TRY(read_lines(&sh, ui, o));
	ui->failed = sh.n_failed || sh.commands.unheard;
	return NULL;
}

const struct sonde_command sonde_command_core_shell = {
	.name = "shell",
	.summary = "all of these commands on one load of the core; 'sonde core CORE' is short "
		   "for it",
	.operands = "CORE",
	.reads_file = true,
	.details = "Reads commands, without their CORE, from the terminal or line by line from "
		   "standard input; then the exit status is 1 if one of them failed. What one "
		   "command has worked out, the next one has at once. 'help' lists the commands.",
	.example = "sonde core core.1234 -c 'retained --by root' -c overview",
	.tables = tables,
	.options_bytes = sizeof(struct shell_options),
	.run = run,
};
