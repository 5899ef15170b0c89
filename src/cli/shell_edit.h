/*
 * src/cli/shell_edit.h: where the lines of the shell come from: a terminal, with editing, completion and history where
 * libedit was there at build time, or else whatever standard input is.
 */
#pragma once
#include "cli/command.h"

struct sonde_shell_input;

/*
 * Lines of standard input; interactive: of a person, who sees a prompt on standard error. history: keep theirs in a file
 * (XDG_STATE_HOME/sonde/core_history), silently not where that cannot be. shell is borrowed.
 */
struct sonde_error *sonde_shell_input_open(struct sonde_command_shell *shell, bool interactive,
	bool history, struct sonde_shell_input **ret) SONDE_CHECK;
void sonde_shell_input_free(struct sonde_shell_input *in);
SONDE_DEFINE_CLEANUP(sonde_shell_input)

enum sonde_shell_input_kind {
	SONDE_SHELL_INPUT_LINE,
	SONDE_SHELL_INPUT_END, /* of the file, or Ctrl-D */
	SONDE_SHELL_INPUT_CTRL_C, /* SIGINT while it waited */
	SONDE_SHELL_INPUT_LEAVE, /* another signal that ends programs */
};

/* The next line, without its end; *line is valid until the next call. SONDE_OS where reading fails. */
struct sonde_error *sonde_shell_input_next(struct sonde_shell_input *in,
	enum sonde_shell_input_kind *kind, const char **line, size_t *len) SONDE_CHECK;

/* To be found again by the arrow keys, now and by later shells. */
void sonde_shell_input_remember(struct sonde_shell_input *in, const char *line);
