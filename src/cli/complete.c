/* sonde __complete SHELL: the completion script of a shell, written from the command table at build time. */
#include <string.h>
#include "cli/command.h"

/* Names of a group's children, in one line. */
static void names(struct sonde_sink *sink, const struct sonde_command *group)
{
	const char *separator = "";
	for (size_t i = 0; i < group->n_children; i++) {
		if (group->children[i]->hidden)
			continue;
		sonde_sink_printf(sink, "%s%s", separator, group->children[i]->name);
		separator = " ";
	}
}

static void option_names(struct sonde_sink *sink, const struct sonde_command *leaf)
{
	struct sonde_option_table tables[SONDE_COMMAND_MAX_TABLES];
	size_t n = sonde_command_tables(leaf, NULL, tables);
	for (size_t t = 0; t < n; t++)
		for (size_t i = 0; i < tables[t].n; i++)
			sonde_sink_printf(sink, "--%s ", tables[t].rows[i].name);
	sonde_sink_str(sink, "--help");
}

/* The cases of a shell's `case "$verb $sub"`, a list of options each. */
static void option_cases(struct sonde_sink *sink)
{
	const struct sonde_command *root = &sonde_command_root;
	for (size_t i = 0; i < root->n_children; i++) {
		const struct sonde_command *verb = root->children[i];
		for (size_t k = 0; !verb->hidden && k < verb->n_children; k++) {
			if (verb->children[k]->hidden)
				continue;
			sonde_sink_printf(
				sink, "\t'%s %s') list='", verb->name, verb->children[k]->name);
			option_names(sink, verb->children[k]);
			sonde_sink_str(sink, "' ;;\n");
		}
	}
}

static void verb_cases(struct sonde_sink *sink)
{
	const struct sonde_command *root = &sonde_command_root;
	for (size_t i = 0; i < root->n_children; i++) {
		if (root->children[i]->hidden)
			continue;
		sonde_sink_printf(sink, "\t%s) list='", root->children[i]->name);
		names(sink, root->children[i]);
		sonde_sink_printf(
			sink, "'%s ;;\n", root->children[i]->otherwise ? " files=-f" : "");
	}
}

static void bash(struct sonde_sink *sink)
{
	sonde_sink_str(sink,
		"# bash completion for sonde; made from its command table\n"
		"_sonde()\n"
		"{\n"
		"\tlocal current=${COMP_WORDS[COMP_CWORD]} list= files=\n"
		"\tif ((COMP_CWORD == 1)); then\n"
		"\t\tlist='");
	names(sink, &sonde_command_root);
	sonde_sink_str(sink,
		" --help --version'\n"
		"\telif ((COMP_CWORD == 2)); then\n"
		"\t\tcase ${COMP_WORDS[1]} in\n");
	verb_cases(sink);
	sonde_sink_str(sink,
		"\t\tesac\n"
		"\telif [[ $current == -* ]]; then\n"
		"\t\tcase \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in\n");
	option_cases(sink);
	sonde_sink_str(sink,
		"\t\tesac\n"
		"\telse\n"
		"\t\tcompopt -o default\n"
		"\t\tCOMPREPLY=()\n"
		"\t\treturn\n"
		"\tfi\n"
		"\tmapfile -t COMPREPLY < <(compgen $files -W \"$list\" -- \"$current\")\n"
		"}\n"
		"complete -F _sonde sonde\n");
}

static void zsh(struct sonde_sink *sink)
{
	sonde_sink_str(sink,
		"#compdef sonde\n"
		"# zsh completion for sonde; made from its command table\n"
		"local list= files=\n"
		"if ((CURRENT == 2)); then\n"
		"\tlist='");
	names(sink, &sonde_command_root);
	sonde_sink_str(sink,
		" --help --version'\n"
		"elif ((CURRENT == 3)); then\n"
		"\tcase $words[2] in\n");
	verb_cases(sink);
	sonde_sink_str(sink,
		"\tesac\n"
		"elif [[ $words[CURRENT] == -* ]]; then\n"
		"\tcase \"$words[2] $words[3]\" in\n");
	option_cases(sink);
	sonde_sink_str(sink,
		"\tesac\n"
		"else\n"
		"\t_files\n"
		"\treturn\n"
		"fi\n"
		"compadd -- ${=list}\n"
		"[[ -z $files ]] || _files\n");
}

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const char *shell = operands->items[0];
	struct sonde_sink *sink;
	if (strcmp(shell, "bash") && strcmp(shell, "zsh"))
		return sonde_error_new(SONDE_USAGE, "SHELL: '%s' is not bash or zsh", shell);
	SONDE_TRY(sonde_ui_open_sink(ui, &sink));
	if (!strcmp(shell, "bash"))
		bash(sink);
	else
		zsh(sink);
	return NULL;
}

const struct sonde_command sonde_command_complete = {
	.name = "__complete",
	.summary = "write the completion script of a shell",
	.hidden = true,
	.operands = "SHELL",
	.example = "sonde __complete bash -o sonde.bash",
	.run = run,
};
