/* The tree of commands. A new leaf: its file, a line in command.h, a line here, a line in meson.build. */
#include "cli/command.h"

static const struct sonde_command *const verbs[] = {
	&sonde_command_core,
	&sonde_command_profile,
	&sonde_command_trace,
	&sonde_command_complete,
};

const struct sonde_command sonde_command_root = {
	.name = "sonde",
	.summary = "look into a Linux process: when it is dead, while it runs, and over time",
	.children = verbs,
	.n_children = SONDE_ARRAY_LEN(verbs),
};
