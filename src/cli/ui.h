/*
 * src/cli/ui.h: what stands between a command and the person: where results go, colour, pager, progress, messages,
 * signals. The only file of sonde that knows terminals and handles signals.
 */
#pragma once
#include <stdbool.h>
#include <sys/types.h>
#include "base/error.h"
#include "base/log.h"
#include "cli/opt.h"
#include "output/report.h"
#include "output/sink.h"

enum sonde_color { SONDE_COLOR_AUTO, SONDE_COLOR_ALWAYS, SONDE_COLOR_NEVER };

/* Every leaf command's options struct begins with these. */
struct sonde_common_options {
	bool json, quiet, no_pager, no_legend;
	const char *output; /* NULL or "-": standard output */
	int color; /* enum sonde_color */
};
extern const struct sonde_option_table sonde_common_option_table;

struct sonde_command_shell; /* cli/command.h */

struct sonde_ui {
	const struct sonde_common_options *options; /* borrowed */
	struct sonde_command_shell *shell; /* borrowed: whose command this is; NULL = of no shell */
	const char *reader; /* borrowed: a command of sh that gets the results; NULL = none */
	bool failed; /* exit status 1: what failed was told already */
	bool unheard; /* after the end: whoever read the results went away */
	struct sonde_log
		log; /* for the library: warnings and progress on stderr, stop on a signal */
	bool ends_by_stop; /* a command that goes on until it is interrupted: what it has written stands */
	/* ui.c's. */
	struct sonde_sink *sink;
	struct sonde_report report;
	bool report_to_stdout; /* the command writes -o itself */
	bool report_open, out_is_tty, err_is_tty, paged, progress_shown;
	pid_t pager; /* or the reader */
	int reader_status; /* of waitpid() */
	int64_t progress_first_ns, progress_last_ns;
};

/* Standard descriptors that are closed are made to fail instead of catching the next file that is opened. */
void sonde_ui_guard_descriptors(void);

void sonde_ui_init(struct sonde_ui *ui, const struct sonde_common_options *options);
void sonde_ui_deinit(struct sonde_ui *ui);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_ui)

/* SIGINT, SIGTERM and SIGHUP ask to stop (a second one ends the process); a broken pipe is an error, not a signal. */
void sonde_ui_watch_signals(void);
bool sonde_ui_interrupted(void);

/*
 * For a program that outlives its commands. Before each: an earlier SIGINT is forgotten, and the next two ask to stop
 * (the third ends the process). Returns the signal that asks to leave altogether, 0 = none.
 */
int sonde_ui_watch_signals_again(void);

/*
 * Wait until fd can be read: 0. Else the signal that came meanwhile (SIGINT is not forgotten by that), or -1 where the
 * terminal changed: its size, or the program was continued.
 */
int sonde_ui_wait_for_input(int fd);

/* Where the results go. Opened by the first call; the sink stays the ui's. SONDE_OS where -o cannot be made. */
struct sonde_error *sonde_ui_open_sink(struct sonde_ui *ui, struct sonde_sink **ret) SONDE_CHECK;

/* The report that the options ask for, over that sink; the ui's. */
struct sonde_error *sonde_ui_open_report(
	struct sonde_ui *ui, struct sonde_report **ret) SONDE_CHECK;

/*
 * The command is over with err (taken; NULL = fine): results are made final or dropped, the pager is waited for, the
 * error is printed. Returns the exit status: 1, without a word, where the reader of a pipe went away.
 */
int sonde_ui_end(struct sonde_ui *ui, struct sonde_error *err);

/* len bytes, as they are, on standard error. */
void sonde_ui_tell(const char *text, size_t len);

/* One line on standard error, "sonde: text", escaped. */
void sonde_ui_complain(const char *text);
