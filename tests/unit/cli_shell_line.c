#include "cli/shell_line.h"
#include "tap.h"

/* The words of a line joined by '|', with what stands behind them: "a|b >file |reader"; "!message" for an error. */
static const char *cut(const char *text, bool partly)
{
	static char shown[512];
	sonde_cleanup(sonde_shell_line) struct sonde_shell_line line = {0};
	struct sonde_error *err = sonde_shell_line_cut(text, strlen(text), partly, &line);
	if (err) {
		snprintf(shown, sizeof(shown), "!%s", err->message);
		sonde_error_free(err);
		return shown;
	}
	size_t n = 0;
	shown[0] = 0;
	for (size_t i = 0; i < line.words.n; i++)
		n += (size_t)snprintf(
			shown + n, sizeof(shown) - n, "%s%s", i ? "|" : "", line.words.items[i]);
	if (line.output)
		n += (size_t)snprintf(shown + n, sizeof(shown) - n, " >%s", line.output);
	if (line.reader)
		snprintf(shown + n, sizeof(shown) - n, " |%s", line.reader);
	return shown;
}

static void words(void)
{
	CHECK_STR(cut("", false), "");
	CHECK_STR(cut(" \t # nothing", false), "");
	CHECK_STR(cut("  a  bc\td ", false), "a|bc|d");
	CHECK_STR(cut("a 'b c' \"d e\" f\\ g", false), "a|b c|d e|f g");
	CHECK_STR(cut("a'b'\"c\"d", false), "abcd");
	CHECK_STR(cut("'' x \"\"", false), "|x|");
	CHECK_STR(cut("'a\\b' \"a\\b\" \"a\\\"b\" \"a\\\\b\" a\\\\b", false),
		"a\\b|a\\b|a\"b|a\\b|a\\b");
	CHECK_STR(cut("a#b # c", false), "a#b");
	CHECK_STR(cut("'a|b' \"c>d\" e\\|f", false), "a|b|c>d|e|f");
}

static void places(void)
{
	CHECK_STR(cut("a b>c", false), "a|b >c");
	CHECK_STR(cut("a > 'c d'", false), "a >c d");
	CHECK_STR(cut("a|b 'c' > d | e", false), "a |b 'c' > d | e");
	CHECK_STR(cut("a > f | g", false), "a >f |g");
	CHECK_STR(cut("> f", false), " >f");
	CHECK_STR(cut("a >", false), "!no file behind '>'");
	CHECK_STR(cut("a > | b", false), "!no file behind '>'");
	CHECK_STR(cut("a |  ", false), "!no command behind '|'");
	CHECK_STR(cut("a > b c", false), "!'> FILE' stands last");
	CHECK_STR(cut("a 'b", false), "!a quote is not closed");
	CHECK_STR(cut("a \"b\\\"", false), "!a quote is not closed");
	sonde_cleanup(sonde_shell_line) struct sonde_shell_line line = {0};
	struct sonde_error *err = sonde_shell_line_cut("a\0b", 3, false, &line);
	CHECK(err && err->code == SONDE_USAGE);
	sonde_error_free(err);
}

/* How a line that is being typed ends. */
static void ends(void)
{
	static const struct {
		const char *text;
		enum sonde_shell_line_end end;
		size_t last_word;
	} rows[] = {
		{"", SONDE_SHELL_LINE_BLANK, 0},
		{"a", SONDE_SHELL_LINE_WORD, 0},
		{"a ", SONDE_SHELL_LINE_BLANK, 0},
		{"a bc", SONDE_SHELL_LINE_WORD, 2},
		{"a 'b c", SONDE_SHELL_LINE_WORD, 2},
		{"a b\\ c", SONDE_SHELL_LINE_WORD, 2},
		{"a >", SONDE_SHELL_LINE_OTHER, 0},
		{"a > f", SONDE_SHELL_LINE_OTHER, 0},
		{"a > f g", SONDE_SHELL_LINE_OTHER, 0},
		{"a | b", SONDE_SHELL_LINE_OTHER, 0},
		{"a # b", SONDE_SHELL_LINE_OTHER, 0},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(sonde_shell_line) struct sonde_shell_line line = {0};
		struct sonde_error *err =
			sonde_shell_line_cut(rows[i].text, strlen(rows[i].text), true, &line);
		CHECK(!err);
		CHECK_EQ(line.end, rows[i].end);
		if (rows[i].end == SONDE_SHELL_LINE_WORD)
			CHECK_EQ(line.last_word, rows[i].last_word);
	}
}

static void quoted_words_are_one_word_again(void)
{
	static const char *const texts[] = {"main.Node", "map[string]interface {}", "a'b\"c\\d",
		"x|y>z", "#h", "chan<- int", "struct { a int \"tag\" }", "\xc3\xa4\xce\xb2"};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(texts); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf quoted = {0};
		sonde_shell_line_quote(&quoted, texts[i]);
		CHECK_STR(cut(sonde_buf_text(&quoted), false), texts[i]);
	}
}

int main(void)
{
	RUN(words);
	RUN(places);
	RUN(ends);
	RUN(quoted_words_are_one_word_again);
	return tap_end();
}
