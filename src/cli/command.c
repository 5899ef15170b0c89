#include "cli/command.h"

#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whose command it is, and where its results go instead of standard output: of a line in a shell. All NULL elsewhere. */
struct place {
	struct sonde_command_shell *shell;
	const char *output, *reader;
};
static const struct place nowhere;

size_t sonde_command_tables(const struct sonde_command *command,
	const struct sonde_command_shell *shell,
	struct sonde_option_table tables[SONDE_COMMAND_MAX_TABLES])
{
	size_t n = 0;
	for (size_t i = 0; command->tables && command->tables[i]; i++) {
		assert(i + 1 < SONDE_COMMAND_MAX_TABLES);
		if (!shell || command->tables[i] != shell->left_out)
			tables[n++] = *command->tables[i];
	}
	tables[n++] = sonde_common_option_table;
	return n;
}

const char *sonde_command_operands(
	const struct sonde_command *command, const struct sonde_command_shell *shell)
{
	const char *operands = command->operands ? command->operands : "";
	if (shell) {
		operands += strcspn(operands, " ");
		operands += strspn(operands, " ");
	}
	return operands;
}

/* Of a ui whose command is over. */
static int end(struct sonde_ui *ui, const struct place *place, struct sonde_error *err)
{
	int status = sonde_ui_end(ui, err);
	if (place->shell && ui->unheard && !ui->paged)
		place->shell->unheard = true;
	return status;
}

static void begin(
	struct sonde_ui *ui, const struct place *place, const struct sonde_common_options *options)
{
	sonde_ui_init(ui, options);
	ui->shell = place->shell;
	ui->reader = place->reader;
	if (ui->shell)
		ui->shell->ui = ui;
}

/* Text that no command computes: help and the version. */
static int print(sonde_command_writer write, const struct sonde_command *command, const char *path,
	const struct place *place)
{
	struct sonde_common_options plain = {.no_pager = true, .output = place->output};
	struct sonde_ui ui;
	begin(&ui, place, &plain);
	struct sonde_sink *sink;
	struct sonde_error *err = sonde_ui_open_sink(&ui, &sink);
	if (!err)
		write(sink, command, path, place->shell);
	return end(&ui, place, err);
}

static void write_version(struct sonde_sink *sink, const struct sonde_command *command,
	const char *path, const struct sonde_command_shell *shell)
{
	sonde_sink_printf(sink, "%s %s\n", path, SONDE_VERSION);
}

/* Prints err (taken) and where help is to be had. */
static int usage(struct sonde_error *err, const char *path)
{
	int status = sonde_error_exit_status(err->code);
	bool hint = err->code == SONDE_USAGE;
	sonde_ui_complain(err->message);
	sonde_error_free(err);
	char text[256];
	snprintf(text, sizeof(text), "see '%s --help'", path);
	if (hint)
		sonde_ui_complain(text);
	return status;
}

/* The help, where no result is expected: a script that forgot the rest must not go on with it. */
static int incomplete(const struct sonde_command *group, const char *path)
{
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	sonde_cleanup(sonde_sink) struct sonde_sink *sink = NULL;
	struct sonde_error *err = sonde_sink_open_memory(&text, &sink);
	if (!err) {
		sonde_help_write(sink, group, path, NULL);
		err = sonde_sink_finish(sink);
	}
	if (err)
		return usage(err, path);
	sonde_ui_tell(text.data, text.len);
	return sonde_error_exit_status(SONDE_USAGE);
}

const char *sonde_command_nearest(const struct sonde_command *group, const char *typed)
{
	struct sonde_nearest nearest = {0};
	for (size_t i = 0; i < group->n_children; i++)
		if (!group->children[i]->hidden)
			sonde_nearest_try(&nearest, typed, group->children[i]->name);
	return nearest.name;
}

static struct sonde_error *unknown_child(const struct sonde_command *group, const char *typed)
{
	const char *nearest = sonde_command_nearest(group, typed);
	const char *no_file = group->otherwise ? " and no such file" : "";
	if (typed[0] == '-')
		return sonde_error_new(SONDE_USAGE,
			"unknown option '%s': options stand behind the command", typed);
	if (nearest)
		return sonde_error_new(SONDE_USAGE, "unknown command '%s'%s; did you mean '%s'?",
			typed, no_file, nearest);
	return sonde_error_new(SONDE_USAGE, "unknown command '%s'%s", typed, no_file);
}

/* Too few or too many operands for the words of command->operands. */
static struct sonde_error *count_operands(
	const struct sonde_command *command, const struct sonde_strings *operands)
{
	size_t n = 0;
	bool any = false; /* the last word stands for several */
	for (const char *p = command->operands ? command->operands : ""; *p; n++) {
		size_t len = strcspn(p, " ");
		if (n >= operands->n && *p != '[')
			return sonde_error_new(SONDE_USAGE, "%.*s is missing", (int)len, p);
		any = len > 3 && !strncmp(p + len - 3, "...", 3);
		p += len + strspn(p + len, " ");
	}
	if (operands->n > n && !any)
		return sonde_error_new(SONDE_USAGE, "unexpected operand '%s'", operands->items[n]);
	return NULL;
}

static bool is_elf(const char *path)
{
	char head[4];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return false;
	ssize_t n = pread(fd, head, sizeof(head), 0);
	close(fd);
	return n == sizeof(head) && !memcmp(head, "\177ELF", sizeof(head));
}

/*
 * -o FILE must not be what is read: no operand, and nothing that a core or a process may lead to (its executable, its
 * libraries, their debug files), all of which are ELF files and none of which is a report.
 */
static struct sonde_error *check_output(const struct sonde_command *command,
	const struct sonde_common_options *options, const struct sonde_strings *operands)
{
	struct stat in, out;
	if (!command->reads_file || !options->output || stat(options->output, &out) ||
		!S_ISREG(out.st_mode))
		return NULL;
	for (size_t i = 0; i < operands->n; i++) {
		if (stat(operands->items[i], &in) == 0 && in.st_dev == out.st_dev &&
			in.st_ino == out.st_ino)
			return sonde_error_new(SONDE_USAGE, "--output: '%s' is the file to be read",
				options->output);
	}
	if (is_elf(options->output))
		return sonde_error_new(SONDE_USAGE,
			"--output: '%s' is a program, a library or a core: not replaced",
			options->output);
	return NULL;
}

/* One place for the results of a line in a shell. */
static struct sonde_error *choose_output(
	const struct place *place, struct sonde_common_options *options)
{
	if (!place->shell)
		return NULL;
	if (!!place->output + !!place->reader + !!options->output > 1)
		return sonde_error_new(
			SONDE_USAGE, "more than one of '> FILE', '| COMMAND' and '--output FILE'");
	if (place->output)
		options->output = place->output;
	return NULL;
}

/* options: the command's struct, filled. */
static int run_parsed(const struct sonde_command *command, const char *path, void *options,
	const struct sonde_strings *operands, const struct place *place)
{
	struct sonde_error *err = count_operands(command, operands);
	if (!err)
		err = choose_output(place, options);
	if (!err)
		err = check_output(command, options, operands);
	if (err)
		return usage(err, path);
	struct sonde_ui ui;
	begin(&ui, place, options);
	err = command->run(&ui, options, operands);
	if (!err || err->code != SONDE_USAGE)
		return end(&ui, place, err);
	sonde_ui_deinit(&ui);
	return usage(err, path);
}

static int run_leaf(const struct sonde_command *command, const char *path, int argc,
	char *const *argv, const struct place *place)
{
	struct sonde_option_table tables[SONDE_COMMAND_MAX_TABLES];
	size_t n_tables = sonde_command_tables(command, place->shell, tables);
	size_t bytes = sonde_max(command->options_bytes, sizeof(struct sonde_common_options));
	sonde_cleanup(free) void *options = calloc(1, bytes);
	sonde_cleanup(sonde_arguments) struct sonde_arguments arguments = {0};
	if (!options)
		return usage(&sonde_enomem, path);
	if (command->defaults)
		memcpy(options, command->defaults, bytes);
	if (place->shell)
		*(struct sonde_common_options *)options = place->shell->common;

	struct sonde_error *err =
		sonde_opt_parse(tables, n_tables, argc, argv, options, &arguments);
	int status;
	if (err)
		status = usage(err, path);
	else if (arguments.help)
		status = print(sonde_help_write, command, path, place);
	else
		status = run_parsed(command, path, options, &arguments.operands, place);
	sonde_opt_deinit(tables, n_tables, options);
	return status;
}

const struct sonde_command *sonde_command_find(const struct sonde_command *group, const char *name)
{
	for (size_t i = 0; i < group->n_children; i++)
		if (!strcmp(group->children[i]->name, name))
			return group->children[i];
	return NULL;
}

/* Of --NAME=OPERAND in front of a leaf's other arguments: that leaf, and the operand. NULL: it is not one. */
static const struct sonde_command *find_option(
	const struct sonde_command *group, const char *typed, const char **operand)
{
	if (strncmp(typed, "--", 2) != 0)
		return NULL;
	for (size_t i = 0; i < group->n_children; i++) {
		const struct sonde_command *child = group->children[i];
		size_t len = strlen(child->name);
		if (child->is_option && !strncmp(typed + 2, child->name, len) &&
			typed[2 + len] == '=') {
			*operand = typed + 2 + len + 1;
			return child;
		}
	}
	return NULL;
}

/* With an operand in front of the arguments. */
static int run_leaf_on(const struct sonde_command *command, const char *path, const char *operand,
	int argc, char *const *argv, const struct place *place)
{
	sonde_cleanup(free) char **all = calloc((size_t)argc + 1, sizeof(*all));
	if (!all)
		return usage(&sonde_enomem, path);
	all[0] = (char *)(uintptr_t)operand;
	memcpy(all + 1, argv, (size_t)argc * sizeof(*all));
	return run_leaf(command, path, argc + 1, all, place);
}

int sonde_command_run(const struct sonde_command *leaf, struct sonde_command_shell *shell, int argc,
	char *const *argv, const char *output, const char *reader)
{
	struct place place = {shell, output, reader};
	return run_leaf_on(leaf, leaf->name, shell->operand, argc, argv, &place);
}

int sonde_command_print(sonde_command_writer write, struct sonde_command_shell *shell,
	const char *output, const char *reader)
{
	struct place place = {shell, output, reader};
	return print(write, shell->group, shell->group->name, &place);
}

int sonde_command_help(const struct sonde_command *leaf, struct sonde_command_shell *shell,
	const char *output, const char *reader)
{
	struct place place = {shell, output, reader};
	return print(sonde_help_write, leaf, leaf->name, &place);
}

/* Whether the arguments of a group name no command of it but what its leaf for files takes. */
static bool is_otherwise(const struct sonde_command *group, int argc, char *const *argv)
{
	if (!group->otherwise)
		return false;
	if (argv[0][0] != '-')
		return strchr(argv[0], '/') || access(argv[0], F_OK) == 0;
	/* Options in front: of a file, unless a command follows. */
	int i = 0;
	while (i < argc && argv[i][0] == '-')
		i++;
	return i < argc && !sonde_command_find(group, argv[i]);
}

int sonde_command_main(const struct sonde_command *root, int argc, char *const *argv)
{
	sonde_ui_guard_descriptors();
	sonde_ui_watch_signals();
	char path[128];
	snprintf(path, sizeof(path), "%s", root->name);
	const struct sonde_command *command = root;
	for (int i = 1;; i++) {
		if (!command->children)
			return run_leaf(command, path, argc - i, argv + i, &nowhere);
		if (i >= argc)
			return incomplete(command, path);
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return print(sonde_help_write, command, path, &nowhere);
		if (command == root && !strcmp(argv[i], "--version"))
			return print(write_version, command, path, &nowhere);
		const char *operand;
		const struct sonde_command *child = find_option(command, argv[i], &operand);
		if (child)
			return run_leaf_on(
				child, path, operand, argc - i - 1, argv + i + 1, &nowhere);
		child = sonde_command_find(command, argv[i]);
		if (!child && is_otherwise(command, argc - i, argv + i))
			return run_leaf(command->otherwise, path, argc - i, argv + i, &nowhere);
		if (!child)
			return usage(unknown_child(command, argv[i]), path);
		command = child;
		size_t len = strlen(path);
		snprintf(path + len, sizeof(path) - len, " %s", command->name);
	}
}
