/*
 * src/cli/shell_line.h: a line of the shell cut into words, as sh does it: blanks part words, '...', "..." and backslash
 * take their meaning, # begins a comment; > FILE and | COMMAND stand last. Nothing is expanded.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "cli/opt.h"

struct sonde_shell_line {
	struct sonde_strings words; /* borrowed from text */
	const char *output; /* of > FILE; NULL = none */
	const char *reader; /* of | COMMAND: the rest of the line as it stands; NULL = none */
	struct sonde_buf text;
	/* How the line ends, for completion. */
	enum sonde_shell_line_end {
		SONDE_SHELL_LINE_BLANK, /* behind a blank, or empty: a new word would begin */
		SONDE_SHELL_LINE_WORD, /* in the last word */
		SONDE_SHELL_LINE_OTHER, /* in a file, a reader, a comment */
	} end;
	size_t last_word; /* where the last word begins in the line */
	bool unfinished; /* a quote is open */
};

void sonde_shell_line_deinit(struct sonde_shell_line *line);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_shell_line)

/*
 * Cut len bytes of text into *line, zeroed by the caller and freed by it also after a failure. SONDE_USAGE where a quote
 * is not closed or a file or command is missing, unless partly: then the line is one that is still being typed.
 */
struct sonde_error *sonde_shell_line_cut(
	const char *text, size_t len, bool partly, struct sonde_shell_line *line) SONDE_CHECK;

/* Word, in a form that the above makes one word of, appended. */
void sonde_shell_line_quote(struct sonde_buf *to, const char *word);
