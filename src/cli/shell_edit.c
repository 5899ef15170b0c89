#include "cli/shell_edit.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef SONDE_HAVE_LIBEDIT
#include <histedit.h>
#include <locale.h>
#include <wchar.h>
#include "cli/shell_complete.h"
#include "cli/shell_line.h"
#include "output/text.h"
#endif

static const char prompt[] = "sonde> ";

struct sonde_shell_input {
	struct sonde_command_shell *shell; /* borrowed */
	bool interactive;
	/* Read, and not yet handed out: [at, ahead.len). */
	struct sonde_buf ahead;
	size_t at;
	bool at_end;
#ifdef SONDE_HAVE_LIBEDIT
	EditLine *el; /* NULL: the terminal's own editing */
	History *history;
	char *history_path; /* NULL = not kept */
	int signal; /* that ended the line */
	mbstate_t bytes; /* of a character, so far */
#endif
};

static enum sonde_shell_input_kind kind_of(int signal_number)
{
	return signal_number == SIGINT ? SONDE_SHELL_INPUT_CTRL_C : SONDE_SHELL_INPUT_LEAVE;
}

/* --- without libedit, and where nobody types --- */

static struct sonde_error *next_plain(struct sonde_shell_input *in,
	enum sonde_shell_input_kind *kind, const char **line, size_t *len)
{
	enum { STEP = 64 * 1024, LONGEST = 1024 * 1024 };
	if (in->interactive)
		sonde_ui_tell(prompt, sizeof(prompt) - 1);
	for (size_t searched = in->at;;) {
		const char *newline = in->ahead.len > searched
			? memchr(in->ahead.data + searched, '\n', in->ahead.len - searched)
			: NULL;
		if (newline || (in->at_end && in->at < in->ahead.len)) {
			*kind = SONDE_SHELL_INPUT_LINE;
			*line = in->ahead.data + in->at;
			*len = (newline ? (size_t)(newline - in->ahead.data) : in->ahead.len) -
				in->at;
			in->at += *len + (newline != NULL);
			return NULL;
		}
		if (in->at_end) {
			*kind = SONDE_SHELL_INPUT_END;
			return NULL;
		}
		searched = in->ahead.len;
		if (in->at) {
			memmove(in->ahead.data, in->ahead.data + in->at, in->ahead.len - in->at);
			in->ahead.len -= in->at;
			searched -= in->at;
			in->at = 0;
		}
		if (in->ahead.len > LONGEST)
			return sonde_error_new(
				SONDE_BAD_DATA, "standard input: a line is longer than 1 MiB");
		int signal_number = sonde_ui_wait_for_input(STDIN_FILENO);
		if (signal_number > 0) {
			in->at = in->ahead.len; /* what was typed is void */
			*kind = kind_of(signal_number);
			return NULL;
		}
		if (signal_number < 0)
			continue;
		char *room = sonde_buf_reserve(&in->ahead, STEP);
		if (!room)
			return &sonde_enomem;
		ssize_t n = read(STDIN_FILENO, room, STEP);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return sonde_error_os(errno, "standard input");
		if (n > 0)
			in->ahead.len += (size_t)n;
		/* A terminal's end of file is one that more may follow: it ends this shell all the same. */
		in->at_end = n == 0;
	}
}

#ifndef SONDE_HAVE_LIBEDIT

static void start_editing(struct sonde_shell_input *in, bool history)
{
}

static void stop_editing(struct sonde_shell_input *in)
{
}

static bool edits(const struct sonde_shell_input *in)
{
	return false;
}

static struct sonde_error *next_edited(struct sonde_shell_input *in,
	enum sonde_shell_input_kind *kind, const char **line, size_t *len)
{
	return NULL;
}

void sonde_shell_input_remember(struct sonde_shell_input *in, const char *line)
{
}

#else

/* --- history --- */

enum { HISTORY_LINES = 1000, HISTORY_READ = 256 * 1024, HISTORY_LONGEST = 1024 * 1024 };

/* Makes the folders that are missing in front of the last part of path. */
static void make_folders(char *path)
{
	for (char *p = strchr(path + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		(void)mkdir(
			path, 0700); /* what is there already, or cannot be: opening will tell */
		*p = '/';
	}
}

static char *history_path(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	char *path = NULL;
	int n = -1;
	if (state && *state == '/')
		n = asprintf(&path, "%s/sonde/core_history", state);
	else if (home && *home == '/')
		n = asprintf(&path, "%s/.local/state/sonde/core_history", home);
	return n < 0 ? NULL : path;
}

static void enter(struct sonde_shell_input *in, const char *line)
{
	HistEvent event;
	history(in->history, &event, H_ENTER, line);
}

/* Only the end of a file that has grown long is kept. */
static void cut_history(const char *path, const char *text, size_t len)
{
	sonde_cleanup(sonde_sink) struct sonde_sink *sink = NULL;
	struct sonde_error *err = sonde_sink_open_file(path, &sink);
	if (!err) {
		sonde_sink_write(sink, text, len);
		err = sonde_sink_finish(sink);
	}
	sonde_error_free(err);
}

static void load_history(struct sonde_shell_input *in)
{
	sonde_cleanup(fd) int fd =
		open(in->history_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	struct stat st;
	if (fd < 0 || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode))
		return;
	sonde_cleanup(free) char *text = malloc(HISTORY_READ + 1);
	off_t from = st.st_size > HISTORY_READ ? st.st_size - HISTORY_READ : 0;
	ssize_t n = text ? pread(fd, text, HISTORY_READ, from) : 0;
	if (n <= 0)
		return;
	text[n] = 0;
	char *line = text;
	if (from) {
		line = strchr(text, '\n');
		if (!line++)
			return;
	}
	if (st.st_size > HISTORY_LONGEST)
		cut_history(in->history_path, line, (size_t)(text + n - line));
	for (char *rest = NULL, *p = strtok_r(line, "\n", &rest); p;
		p = strtok_r(NULL, "\n", &rest))
		enter(in, p);
}

void sonde_shell_input_remember(struct sonde_shell_input *in, const char *line)
{
	if (!in->history)
		return;
	HistEvent newest;
	if (history(in->history, &newest, H_FIRST) >= 0 && newest.str && !strcmp(newest.str, line))
		return;
	enter(in, line);
	if (!in->history_path)
		return;
	make_folders(in->history_path);
	sonde_cleanup(fd) int fd = open(in->history_path,
		O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	sonde_buf_str(&text, line);
	sonde_buf_char(&text, '\n');
	struct stat st;
	/* One write: shells that run at the same time do not mix their lines. */
	if (fd < 0 || text.failed || fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
		write(fd, text.data, text.len) < 0)
		free(sonde_take(in->history_path));
}

/* --- completion --- */

static size_t n_characters(const char *text, size_t len)
{
	size_t n = 0;
	for (size_t i = 0; i < len; i++)
		n += ((unsigned char)text[i] & 0xc0) != 0x80;
	return n;
}

/* How much all candidates have in common, in whole characters. */
static size_t common(const struct sonde_strings *words)
{
	/* Sorted: what the first and the last share, all share. */
	const char *first = words->items[0], *last = words->items[words->n - 1];
	size_t n = 0;
	while (first[n] && first[n] == last[n])
		n++;
	while (n && ((unsigned char)first[n] & 0xc0) == 0x80)
		n--;
	return n;
}

/* In columns of equal width, row by row. */
static void show_candidates(const struct sonde_strings *words)
{
	enum { MOST = 100, LINE_COLUMNS = 79, GAP = 2 };
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	size_t widest = 0, at = 0, n = sonde_min(words->n, (size_t)MOST);
	for (size_t i = 0; i < n; i++)
		widest = sonde_max(
			widest, sonde_text_columns(words->items[i], strlen(words->items[i])));
	sonde_buf_char(&text, '\n');
	for (size_t i = 0; i < n; i++) {
		size_t before = text.len;
		sonde_text_escape(&text, words->items[i], strlen(words->items[i]));
		at += widest + GAP;
		if (i + 1 == n || at + widest > LINE_COLUMNS) {
			sonde_buf_char(&text, '\n');
			at = 0;
			continue;
		}
		size_t taken =
			text.failed ? 0 : sonde_text_columns(text.data + before, text.len - before);
		for (size_t k = taken; k < widest + GAP; k++)
			sonde_buf_char(&text, ' ');
	}
	if (words->n > MOST)
		sonde_buf_printf(&text, "... and %zu more\n", words->n - MOST);
	if (!text.failed)
		sonde_ui_tell(text.data, text.len);
}

static unsigned char complete(EditLine *el, int key)
{
	struct sonde_shell_input *in = NULL;
	el_get(el, EL_CLIENTDATA, &in);
	const LineInfo *info = el_line(el);
	size_t len = (size_t)(info->cursor - info->buffer);
	sonde_cleanup(sonde_shell_completion) struct sonde_shell_completion c = {0};
	(void)sonde_ui_watch_signals_again();
	struct sonde_error *err = sonde_shell_complete(in->shell, info->buffer, len, &c);
	/* Stopped by Ctrl-C, or there are no such names in this core. */
	bool failed = err != NULL;
	sonde_error_free(err);
	(void)sonde_ui_watch_signals_again();
	if (failed || !c.candidates.n)
		return CC_REFRESH_BEEP;
	sonde_cleanup(free) char *word = strndup(c.candidates.items[0], common(&c.candidates));
	sonde_cleanup(sonde_buf) struct sonde_buf quoted = {0};
	if (!word)
		return CC_ERROR;
	sonde_shell_line_quote(&quoted, word);
	if (c.candidates.n == 1)
		sonde_buf_char(&quoted, ' ');
	const char *text = sonde_buf_text(&quoted);
	bool longer = strlen(text) > len - c.start;
	if (c.candidates.n == 1 || longer) {
		el_deletestr(el, (int)n_characters(info->buffer + c.start, len - c.start));
		return el_insertstr(el, text) == 0 ? CC_REFRESH : CC_ERROR;
	}
	show_candidates(&c.candidates);
	return CC_REDISPLAY;
}

/* --- the line --- */

static char *show_prompt(EditLine *el)
{
	return (char *)(uintptr_t)prompt;
}

/* One character: libedit's own would not see signals. */
static int read_key(EditLine *el, wchar_t *key)
{
	struct sonde_shell_input *in = NULL;
	el_get(el, EL_CLIENTDATA, &in);
	for (;;) {
		int signal_number = sonde_ui_wait_for_input(STDIN_FILENO);
		if (signal_number < 0) {
			/* Another size, or continued by a shell that has set its own modes meanwhile. */
			el_set(el, EL_PREP_TERM, 1);
			el_resize(el);
			el_set(el, EL_REFRESH);
			continue;
		}
		if (signal_number > 0) {
			in->signal = signal_number;
			errno = EINTR;
			return -1;
		}
		char byte;
		ssize_t n = read(STDIN_FILENO, &byte, 1);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			return (int)n;
		size_t taken = mbrtowc(key, &byte, 1, &in->bytes);
		if (taken == (size_t)-1)
			memset(&in->bytes, 0, sizeof(in->bytes)); /* no character: dropped */
		else if (taken != (size_t)-2)
			return 1;
	}
}

static void start_editing(struct sonde_shell_input *in, bool history_kept)
{
	const char *term = getenv("TERM");
	if (!term || !*term || !strcmp(term, "dumb"))
		return;
	/* For libedit alone: nothing that reports write depends on it. */
	setlocale(LC_CTYPE, "C.UTF-8");
	in->el = el_init("sonde", stdin, stderr, stderr);
	if (!in->el)
		return;
	el_set(in->el, EL_CLIENTDATA, in);
	el_set(in->el, EL_PROMPT, show_prompt);
	el_set(in->el, EL_EDITOR, "emacs");
	el_wset(in->el, EL_GETCFN, read_key);
	el_set(in->el, EL_ADDFN, "sonde-complete", "what the line may go on with", complete);
	el_set(in->el, EL_BIND, "^I", "sonde-complete", NULL);
	el_set(in->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
	in->history = history_init();
	if (!in->history)
		return;
	HistEvent event;
	history(in->history, &event, H_SETSIZE, HISTORY_LINES);
	el_set(in->el, EL_HIST, history, in->history);
	if (history_kept)
		in->history_path = history_path();
	if (in->history_path)
		load_history(in);
}

static void stop_editing(struct sonde_shell_input *in)
{
	if (in->el)
		el_end(in->el);
	if (in->history)
		history_end(in->history);
	free(in->history_path);
}

static bool edits(const struct sonde_shell_input *in)
{
	return in->el != NULL;
}

static struct sonde_error *next_edited(struct sonde_shell_input *in,
	enum sonde_shell_input_kind *kind, const char **line, size_t *len)
{
	int n = 0;
	in->signal = 0;
	memset(&in->bytes, 0, sizeof(in->bytes));
	el_resize(in->el); /* the terminal may be another size than when a command began */
	/* Before the prompt is shown: el_gets() does it behind that, and what is typed at once is echoed twice. */
	el_set(in->el, EL_PREP_TERM, 1);
	const char *text = el_gets(in->el, &n);
	if (in->signal) {
		*kind = kind_of(in->signal);
	} else if (!text || n <= 0) {
		*kind = SONDE_SHELL_INPUT_END;
	} else {
		*kind = SONDE_SHELL_INPUT_LINE;
		*line = text;
		*len = strcspn(text, "\n");
	}
	return NULL;
}

#endif

struct sonde_error *sonde_shell_input_open(struct sonde_command_shell *shell, bool interactive,
	bool history_kept, struct sonde_shell_input **ret)
{
	struct sonde_shell_input *in = sonde_new(struct sonde_shell_input);
	if (!in)
		return &sonde_enomem;
	in->shell = shell;
	in->interactive = interactive;
	if (interactive)
		start_editing(in, history_kept);
	*ret = in;
	return NULL;
}

void sonde_shell_input_free(struct sonde_shell_input *in)
{
	if (!in)
		return;
	stop_editing(in);
	sonde_buf_deinit(&in->ahead);
	free(in);
}

struct sonde_error *sonde_shell_input_next(struct sonde_shell_input *in,
	enum sonde_shell_input_kind *kind, const char **line, size_t *len)
{
	if (edits(in))
		return next_edited(in, kind, line, len);
	return next_plain(in, kind, line, len);
}
