#include "cli/trace_command.h"
#include "trace/report.h"

struct regions_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_regions_options regions;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct regions_options, regions.member)
#define GIVEN(member) SONDE_OPTION_GIVEN(struct regions_options, regions.member)

static const struct sonde_option rows[] = {
	{"all", 'a', INTO(FLAG, all), NULL, "each region, not sums by type"},
	{"goroutine", 'g', INTO(U64, g), "N", "those of this one only", GIVEN(has_g)},
	{"task", 0, INTO(U64, task), "N", "those of this task only", GIVEN(has_task)},
	{"type", 't', INTO(STRING, type), "TEXT", "those with TEXT in their name"},
	{"top", 'n', INTO(U64, top), "N", "the first N rows only"},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct regions_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_regions(operands->items[0], &reader, &o->regions, report);
}

const struct sonde_command sonde_command_trace_regions = {
	.name = "regions",
	.summary = "user regions: how long they took, and where that time went",
	.operands = "FILE",
	.reads_file = true,
	.details = "Running, runnable, blocked and in system calls are what the goroutine was "
		   "within the "
		   "region; regions within it count in both. OPEN ones have no end in the trace, "
		   "those "
		   "in NO BEGIN were there before: neither counts in the percentiles, which are at "
		   "most "
		   "3.2% too high.",
	.example = "sonde trace regions --type parse trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct regions_options),
	.run = run,
};
