#include "cli/trace_command.h"
#include "trace/report.h"

struct gc_options {
	struct sonde_trace_command_options trace;
	struct sonde_trace_gc_options gc;
};

#define INTO(kind, member) SONDE_OPTION_INTO(kind, struct gc_options, gc.member)
#define GIVEN(member) SONDE_OPTION_GIVEN(struct gc_options, gc.member)

static const struct sonde_option rows[] = {
	{"top", 'n', INTO(U64, top), "N", "the last N collections (20); 0 = all", GIVEN(has_top)},
	{"worst", 0, INTO(U64, worst), "N", "the N longest pauses (5)", GIVEN(has_worst)},
};

static const struct sonde_option_table table = {"Options", rows, SONDE_ARRAY_LEN(rows), 0};

static const struct sonde_option_table *const tables[] = {&table, &sonde_trace_option_table, NULL};

static struct sonde_error *run(
	struct sonde_ui *ui, const void *options, const struct sonde_strings *operands)
{
	const struct gc_options *o = options;
	struct sonde_trace_reader_options reader = sonde_trace_command_reader(ui, &o->trace);
	struct sonde_report *report;
	SONDE_TRY(sonde_ui_open_report(ui, &report));
	return sonde_trace_report_gc(operands->items[0], &reader, &o->gc, report);
}

const struct sonde_command sonde_command_trace_gc = {
	.name = "gc",
	.summary = "collections, pauses of the program and why, work for the collector",
	.operands = "FILE",
	.reads_file = true,
	.details =
		"A collection is its mark phase. Pauses are all, not the collector's alone: their "
		"reason "
		"says which. ASSIST and SWEEP are work that goroutines were made to do before they "
		"could go on.",
	.example = "sonde trace gc --top 0 trace.out",
	.tables = tables,
	.options_bytes = sizeof(struct gc_options),
	.run = run,
};
