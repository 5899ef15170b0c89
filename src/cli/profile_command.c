/* The leaf commands of `sonde profile`. */
#include "cli/command.h"

static const struct sonde_command *const commands[] = {
	&sonde_command_profile_unwind_table,
};

const struct sonde_command sonde_command_profile = {
	.name = "profile",
	.summary = "what a CPU profile is made from",
	.children = commands,
	.n_children = SONDE_ARRAY_LEN(commands),
};
