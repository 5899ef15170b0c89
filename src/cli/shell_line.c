#include "cli/shell_line.h"

#include <string.h>

void sonde_shell_line_deinit(struct sonde_shell_line *line)
{
	sonde_strings_deinit(&line->words);
	sonde_buf_deinit(&line->text);
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* What ends a word that is not quoted. */
static bool ends_word(char c)
{
	return is_blank(c) || c == '>' || c == '|';
}

/* Append the word at p, ended by a zero; returns its end. */
static const char *cut_word(const char *p, const char *end, struct sonde_shell_line *line)
{
	char quote = 0;
	for (; p < end && (quote || !ends_word(*p)); p++) {
		if (*p == quote) {
			quote = 0;
		} else if (!quote && (*p == '\'' || *p == '"')) {
			quote = *p;
		} else if (*p == '\\' && quote != '\'' && p + 1 < end) {
			/* In double quotes, it is for what would end them. */
			if (quote && p[1] != '"' && p[1] != '\\')
				sonde_buf_char(&line->text, *p);
			sonde_buf_char(&line->text, *++p);
		} else {
			sonde_buf_char(&line->text, *p);
		}
	}
	sonde_buf_char(&line->text, 0);
	line->unfinished = quote != 0;
	return p;
}

static const char *skip_blanks(const char *p, const char *end)
{
	while (p < end && is_blank(*p))
		p++;
	return p;
}

/* Where in the text the parts stand: it moves while it grows. */
struct parts {
	size_t n_words, output, reader; /* SIZE_MAX = none */
};

static struct sonde_error *cut(const char *text, const char *end, bool partly,
	struct sonde_shell_line *line, struct parts *parts)
{
	for (const char *p = skip_blanks(text, end); p < end; p = skip_blanks(p, end)) {
		line->end = SONDE_SHELL_LINE_OTHER;
		if (*p == '#')
			break;
		if (*p == '|') {
			p = skip_blanks(p + 1, end);
			if (p == end && !partly)
				return sonde_error_new(SONDE_USAGE, "no command behind '|'");
			parts->reader = line->text.len;
			sonde_buf_add(&line->text, p, (size_t)(end - p));
			sonde_buf_char(&line->text, 0);
			break;
		}
		/* Words come first in the text, so that they can be found in it. */
		if (parts->output != SIZE_MAX)
			return partly ? NULL : sonde_error_new(SONDE_USAGE, "'> FILE' stands last");
		if (*p == '>') {
			p = skip_blanks(p + 1, end);
			if ((p == end || ends_word(*p)) && !partly)
				return sonde_error_new(SONDE_USAGE, "no file behind '>'");
			parts->output = line->text.len;
			p = cut_word(p, end, line);
			continue;
		}
		line->last_word = (size_t)(p - text);
		p = cut_word(p, end, line);
		parts->n_words++;
		line->end = p == end ? SONDE_SHELL_LINE_WORD : SONDE_SHELL_LINE_BLANK;
	}
	return line->unfinished && !partly ? sonde_error_new(SONDE_USAGE, "a quote is not closed")
					   : NULL;
}

struct sonde_error *sonde_shell_line_cut(
	const char *text, size_t len, bool partly, struct sonde_shell_line *line)
{
	if (memchr(text, 0, len))
		return sonde_error_new(SONDE_USAGE, "the line is not text: it has a zero byte");
	struct parts parts = {0, SIZE_MAX, SIZE_MAX};
	SONDE_TRY(cut(text, text + len, partly, line, &parts));
	if (line->text.failed)
		return &sonde_enomem;
	const char *word = line->text.data;
	for (size_t i = 0; i < parts.n_words; i++, word += strlen(word) + 1)
		if (!sonde_strings_push(&line->words, word))
			return &sonde_enomem;
	if (parts.output != SIZE_MAX)
		line->output = line->text.data + parts.output;
	if (parts.reader != SIZE_MAX)
		line->reader = line->text.data + parts.reader;
	return NULL;
}

void sonde_shell_line_quote(struct sonde_buf *to, const char *word)
{
	for (const char *p = word; *p; p++) {
		if (ends_word(*p) || *p == '\'' || *p == '"' || *p == '\\' || *p == '#')
			sonde_buf_char(to, '\\');
		sonde_buf_char(to, *p);
	}
}
