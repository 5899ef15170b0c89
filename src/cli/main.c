#include "cli/command.h"

int main(int argc, char **argv)
{
	return sonde_command_main(&sonde_command_root, argc, argv);
}
