#include <stdio.h>
#include <string.h>
#include "cli/command.h"

enum { LINE_COLUMNS = 80, HELP_COLUMN = 28 };

/* Words of text, each line indented, the first one from column `at`. Ends the line. */
static void wrap(struct sonde_sink *sink, const char *text, size_t indent, size_t at)
{
	bool first = true;
	while (*text) {
		size_t len = strcspn(text, " ");
		if (!first && at + 1 + len > LINE_COLUMNS) {
			sonde_sink_char(sink, '\n');
			sonde_sink_fill(sink, ' ', indent);
			at = indent;
		} else if (!first) {
			sonde_sink_char(sink, ' ');
			at++;
		}
		sonde_sink_write(sink, text, len);
		at += len;
		text += len;
		text += strspn(text, " ");
		first = false;
	}
	sonde_sink_char(sink, '\n');
}

/* "  left      text", with text wrapped in its column; under left where that is too long. */
static void entry(struct sonde_sink *sink, const char *left, const char *text, size_t column)
{
	size_t at = strlen(left);
	sonde_sink_str(sink, left);
	if (at + 2 > column) {
		sonde_sink_char(sink, '\n');
		at = 0;
	}
	sonde_sink_fill(sink, ' ', column - at);
	wrap(sink, text, column, column);
}

static void options(struct sonde_sink *sink, const struct sonde_option_table *table)
{
	sonde_sink_printf(sink, "\n%s:\n", table->title);
	for (size_t i = 0; i < table->n; i++) {
		const struct sonde_option *row = &table->rows[i];
		sonde_cleanup(sonde_buf) struct sonde_buf left = {0};
		if (row->letter)
			sonde_buf_printf(&left, "  -%c, ", row->letter);
		else
			sonde_buf_str(&left, "      ");
		sonde_buf_printf(&left, "--%s", row->name);
		if (row->metavar)
			sonde_buf_printf(&left, " %s", row->metavar);
		for (size_t k = 0; !row->metavar && row->words && row->words[k]; k++)
			sonde_buf_printf(&left, "%c%s", k ? '|' : '=', row->words[k]);
		entry(sink, sonde_buf_text(&left), row->help, HELP_COLUMN);
	}
}

/*
 * The example as it is typed in a shell: without the words in front of the command, and without its file, which all
 * examples call "core.1234".
 */
static void example_in_shell(struct sonde_sink *sink, const struct sonde_command *command)
{
	const char *p = strstr(command->example, command->name);
	bool first = true;
	while (p && *p) {
		size_t len = strcspn(p, " ");
		if (len < 5 || memcmp(p, "core.", 5) != 0) {
			sonde_sink_printf(sink, "%s%.*s", first ? "" : " ", (int)len, p);
			first = false;
		}
		p += len;
		p += strspn(p, " ");
	}
}

static void leaf(struct sonde_sink *sink, const struct sonde_command *command, const char *path,
	const struct sonde_command_shell *shell)
{
	const char *operands = sonde_command_operands(command, shell);
	sonde_sink_printf(
		sink, "Usage: %s [OPTION...]%s%s\n\n", path, *operands ? " " : "", operands);
	wrap(sink, command->summary, 0, 0);
	if (command->details) {
		sonde_sink_char(sink, '\n');
		wrap(sink, command->details, 0, 0);
	}
	struct sonde_option_table tables[SONDE_COMMAND_MAX_TABLES];
	size_t n = sonde_command_tables(command, shell, tables);
	for (size_t i = 0; i < n; i++)
		options(sink, &tables[i]);
	entry(sink, "  -h, --help", "show this", HELP_COLUMN);
	if (!command->example)
		return;
	sonde_sink_str(sink, "\nExample:\n  ");
	if (shell)
		example_in_shell(sink, command);
	else
		sonde_sink_str(sink, command->example);
	sonde_sink_char(sink, '\n');
}

enum { COMMAND_COLUMN = 16 };

static void summary(struct sonde_sink *sink, const struct sonde_command *command)
{
	char left[64];
	snprintf(left, sizeof(left), "  %s", command->name);
	if (!command->hidden)
		entry(sink, left, command->summary, COMMAND_COLUMN);
}

void sonde_help_write_commands(struct sonde_sink *sink, const struct sonde_command *group)
{
	for (size_t i = 0; i < group->n_children; i++)
		if (group->children[i] != group->otherwise)
			summary(sink, group->children[i]);
}

void sonde_help_write(struct sonde_sink *sink, const struct sonde_command *command,
	const char *path, const struct sonde_command_shell *shell)
{
	if (!command->children) {
		leaf(sink, command, path, shell);
		return;
	}
	bool root = command == &sonde_command_root;
	sonde_sink_printf(sink, "Usage: %s %s [OPTION...]\n", path,
		root ? "COMMAND SUBCOMMAND" : "SUBCOMMAND");
	if (command->otherwise)
		sonde_sink_printf(
			sink, "       %s [OPTION...] %s\n", path, command->otherwise->operands);
	sonde_sink_char(sink, '\n');
	wrap(sink, command->summary, 0, 0);
	sonde_sink_printf(sink, "\n%s:\n", root ? "Commands" : "Subcommands");
	for (size_t i = 0; i < command->n_children; i++)
		summary(sink, command->children[i]);
	if (root)
		sonde_sink_str(sink,
			"\nOptions:\n"
			"  --help        show this\n"
			"  --version     show the version\n");
	sonde_sink_printf(sink, "\n'%s %s --help' says more about one.\n", path,
		root ? "COMMAND" : "SUBCOMMAND");
}
