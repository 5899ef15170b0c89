#include "cli/core_command.h"
#include "core/report.h"

enum { DEFAULT_BYTES = 64 };

static const struct sonde_option_table *const tables[] = {&sonde_core_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	struct sonde_core_read_options read = {.n_bytes = DEFAULT_BYTES};
	SONDE_TRY(sonde_opt_addr("ADDR", operands->items[1], &read.addr));
	if (operands->n > 2)
		SONDE_TRY(sonde_opt_bytes("N", operands->items[2], &read.n_bytes));
	sonde_cleanup(sonde_core_session) struct sonde_core_session *session = NULL;
	struct sonde_report *report;
	SONDE_TRY(sonde_core_command_open(ui, options, operands->items[0], &session));
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_core_report_read(session, &read, report);
}

const struct sonde_command sonde_command_core_read = {
	.name = "read",
	.summary = "the bytes at an address, and what they belong to",
	.operands = "CORE ADDR [N]",
	.reads_file = true,
	.details = "ADDR is hexadecimal, with or without 0x. N is the number of bytes (64), "
		   "decimal or with 0x; k, M and G are powers of 1024.",
	.example = "sonde core read core.1234 0xc000012340 256",
	.tables = tables,
	.options_bytes = sizeof(struct sonde_core_command_options),
	.run = run,
};
