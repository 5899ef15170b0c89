/* src/cli/shell_complete.h: how a line of the shell may go on: commands, options, their words, and names of the core. */
#pragma once
#include "base/arena.h"
#include "cli/command.h"

struct sonde_shell_completion {
	struct sonde_arena arena;
	struct sonde_strings
		candidates; /* whole words, sorted, each once, that begin as the line ends */
	size_t start; /* in the line: of the word that they would replace */
};

void sonde_shell_completion_deinit(struct sonde_shell_completion *c);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_shell_completion)

/*
 * Of len bytes of text, up to where the person types. Names of types need the heap typed, which may take its time: the
 * session keeps it. *ret is zeroed by the caller, and freed by it also after a failure.
 */
struct sonde_error *sonde_shell_complete(struct sonde_command_shell *shell, const char *text,
	size_t len, struct sonde_shell_completion *ret) SONDE_CHECK;

/* The shell's own commands, "help" and "quit": names ending with NULL. */
extern const char *const sonde_shell_builtins[];
