/* src/cli/command.h: the tree of commands as data: verbs, their subcommands, what a leaf needs to run. */
#pragma once
#include "base/error.h"
#include "cli/opt.h"
#include "cli/ui.h"

struct sonde_command {
	const char *name;
	const char *summary; /* one line, lower case, no full stop */
	bool hidden; /* from help and completion */

	/* Of a group: NULL for a leaf. */
	const struct sonde_command *const *children;
	size_t n_children;
	const struct sonde_command *otherwise; /* the leaf for GROUP FILE; NULL = none */

	/* Of a leaf. */
	bool is_option; /* GROUP --NAME=OPERAND ... is GROUP NAME OPERAND ... too */
	const char *
		operands; /* "CORE ADDR [N]"; in brackets: may be left out; "FILE...": one or more */
	bool reads_file; /* the first operand is a file that -o must not replace */
	const char *details; /* a paragraph for the help; NULL = none */
	const char *example; /* one real command line */
	/* Its own, in the help's order; the common ones are added. Ends with NULL; NULL: none. */
	const struct sonde_option_table *const *tables;
	size_t options_bytes; /* of its options struct, which begins with struct sonde_common_options */
	const void *defaults; /* such a struct; NULL = zeros */
	/* options is the filled struct; operands were counted. Results go through sonde_ui_open_report() or _sink(). */
	struct sonde_error *(*run)(
		struct sonde_ui *ui, const void *options, const struct sonde_strings *operands);
};

/*
 * What a shell has loaded. Its commands are the leaves of a group; they run on what is loaded instead of opening their
 * first operand, which nobody types there.
 */
struct sonde_core_session;
struct sonde_command_shell {
	const struct sonde_command *group;
	const char *operand; /* what was loaded */
	const struct sonde_option_table *left_out; /* options about loading */
	struct sonde_core_session *session;
	struct sonde_common_options common; /* what its commands begin with; no output */
	struct sonde_ui *ui; /* of the command that runs */
	bool unheard; /* whoever read standard output went away */
};

/* The root of sonde's own tree; every verb hangs on it. */
extern const struct sonde_command sonde_command_root;

/* The verbs, and the leaf commands, one file each. */
extern const struct sonde_command sonde_command_complete;
extern const struct sonde_command sonde_command_core;
extern const struct sonde_command sonde_command_core_breakdown;
extern const struct sonde_command sonde_command_core_globals;
extern const struct sonde_command sonde_command_core_goroutines;
extern const struct sonde_command sonde_command_core_histogram;
extern const struct sonde_command sonde_command_core_leaks;
extern const struct sonde_command sonde_command_core_mappings;
extern const struct sonde_command sonde_command_core_object;
extern const struct sonde_command sonde_command_core_objects;
extern const struct sonde_command sonde_command_core_overview;
extern const struct sonde_command sonde_command_core_threads;
extern const struct sonde_command sonde_command_core_pprof;
extern const struct sonde_command sonde_command_core_reachable;
extern const struct sonde_command sonde_command_core_retained;
extern const struct sonde_command sonde_command_core_read;
extern const struct sonde_command sonde_command_core_shell;
extern const struct sonde_command sonde_command_profile;
extern const struct sonde_command sonde_command_profile_unwind_table;
extern const struct sonde_command sonde_command_trace;
extern const struct sonde_command sonde_command_trace_blocking;
extern const struct sonde_command sonde_command_trace_check;
extern const struct sonde_command sonde_command_trace_events;
extern const struct sonde_command sonde_command_trace_gc;
extern const struct sonde_command sonde_command_trace_goroutines;
extern const struct sonde_command sonde_command_trace_overview;
extern const struct sonde_command sonde_command_trace_pprof;
extern const struct sonde_command sonde_command_trace_regions;
extern const struct sonde_command sonde_command_trace_repair;
extern const struct sonde_command sonde_command_trace_sched;
extern const struct sonde_command sonde_command_trace_stacks;
extern const struct sonde_command sonde_command_trace_tasks;

/* The most option tables that a leaf may have, with the common ones. */
enum { SONDE_COMMAND_MAX_TABLES = 6 };

/* All of a leaf's tables, the common ones last, in a shell or not (NULL). Returns how many. */
size_t sonde_command_tables(const struct sonde_command *command,
	const struct sonde_command_shell *shell,
	struct sonde_option_table tables[SONDE_COMMAND_MAX_TABLES]);

/* The operands as they are typed: all, or in a shell all but the first. "" for none. */
const char *sonde_command_operands(
	const struct sonde_command *command, const struct sonde_command_shell *shell);

/* The child of that name, or NULL; whose name is nearest to a mistyped one goes to nearest. */
const struct sonde_command *sonde_command_find(const struct sonde_command *group, const char *name);
const char *sonde_command_nearest(const struct sonde_command *group, const char *typed);

/* The help of the command called path ("sonde core histogram"), in a shell or not (NULL). */
void sonde_help_write(struct sonde_sink *sink, const struct sonde_command *command,
	const char *path, const struct sonde_command_shell *shell);

/* The commands of a group with what each does; not the leaf that is a shell over them. */
void sonde_help_write_commands(struct sonde_sink *sink, const struct sonde_command *group);

/* Writes text that no command computes. */
typedef void (*sonde_command_writer)(struct sonde_sink *sink, const struct sonde_command *command,
	const char *path, const struct sonde_command_shell *shell);

/*
 * In a shell: run the leaf with these arguments (all but the loaded operand). Results go to output or to reader, where
 * one is not NULL. Returns the exit status; messages are written.
 */
int sonde_command_run(const struct sonde_command *leaf, struct sonde_command_shell *shell, int argc,
	char *const *argv, const char *output, const char *reader);

/* In a shell: what write(group) writes; the help of a leaf. Both return the exit status. */
int sonde_command_print(sonde_command_writer write, struct sonde_command_shell *shell,
	const char *output, const char *reader);
int sonde_command_help(const struct sonde_command *leaf, struct sonde_command_shell *shell,
	const char *output, const char *reader);

/* The program over any tree: returns the exit status. */
int sonde_command_main(const struct sonde_command *root, int argc, char *const *argv);
