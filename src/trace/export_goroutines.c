#include <inttypes.h>
#include <string.h>

#include "output/report.h"
#include "trace/goroutines.h"
#include "trace/report.h"

#define TIME_COLUMNS                                                                              \
	{"total_ns", "TOTAL", .right = true}, {"running_ns", "RUNNING", .right = true},           \
		{"runnable_ns", "RUNNABLE", .right = true},                                       \
		{"blocked_ns", "BLOCKED", .right = true},                                         \
		{"syscall_ns", "SYSCALL", .right = true},                                         \
		{"syscall_blocked_ns", "NO PROC", .right = true},                                 \
		{"unknown_ns", "UNKNOWN", .right = true}, {"assist_ns", "ASSIST", .right = true}, \
		{"sweep_ns", "SWEEP", .right = true},                                             \
	{                                                                                         \
		"entry", "ENTRY", .may_cut = true                                                 \
	}

static const struct sonde_column entry_columns[] = {
	{"goroutines", "GOROUTINES", .right = true}, TIME_COLUMNS};
static const struct sonde_column goroutine_columns[] = {
	{"goroutine", "GOROUTINE", .right = true}, TIME_COLUMNS};
static const struct sonde_column entry_block_columns[] = {
	{"blocked_ns", "BLOCKED", .right = true},
	{"count", "TIMES", .right = true},
	{"reason", "REASON"},
	{"entry", "ENTRY", .may_cut = true},
};
static const struct sonde_column goroutine_block_columns[] = {
	{"blocked_ns", "BLOCKED", .right = true},
	{"count", "TIMES", .right = true},
	{"reason", "REASON"},
	{"goroutine", "GOROUTINE", .right = true},
};

/* One row of either table. */
struct row {
	uint64_t id; /* of the goroutine, or how many they are */
	uint32_t entry, blocks;
	struct sonde_trace_times times;
};
SONDE_DEFINE_VEC(row_vec, struct row)

/* Blocked for a reason, of one row. */
struct block_row {
	uint64_t ns, n;
	uint32_t reason, row;
};
SONDE_DEFINE_VEC(block_row_vec, struct block_row)

static int by_ns(const void *a, const void *b)
{
	const struct block_row *x = a, *y = b;
	if (x->ns != y->ns)
		return x->ns > y->ns ? -1 : 1;
	if (x->row != y->row)
		return x->row < y->row ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

static const char *name_of(const struct sonde_trace_reader *reader, uint32_t interned)
{
	return interned ? sonde_trace_interned(reader, interned) : NULL;
}

static bool wanted(const struct sonde_trace_reader *reader,
	const struct sonde_trace_goroutines_options *options, uint64_t id, uint32_t entry)
{
	if (options->has_g && id != options->g)
		return false;
	const char *name = name_of(reader, entry);
	return !options->function || (name && strstr(name, options->function));
}

static bool collect(const struct sonde_trace_reader *reader,
	const struct sonde_trace_goroutines_options *options,
	const struct sonde_trace_goroutines *gs, struct row_vec *rows)
{
	sonde_vec_foreach (g, &gs->ended) {
		if (wanted(reader, options, g->id, g->entry) &&
			!row_vec_push(rows, (struct row){g->id, g->entry, g->blocks, g->times}))
			return false;
	}
	sonde_vec_foreach (e, &gs->entries) {
		if (wanted(reader, options, 0, e->entry) &&
			!row_vec_push(rows, (struct row){e->n, e->entry, e->blocks, e->times}))
			return false;
	}
	return true;
}

static void report_times(
	struct sonde_report *out, uint64_t n, const struct sonde_trace_times *t, const char *name)
{
	sonde_report_row(out, sonde_value_count(n), sonde_value_ns(t->total_ns),
		sonde_value_ns(t->running_ns), sonde_value_ns(t->runnable_ns),
		sonde_value_ns(t->blocked_ns), sonde_value_ns(t->syscall_ns),
		sonde_value_ns(t->syscall_blocked_ns), sonde_value_ns(sonde_trace_times_unknown(t)),
		sonde_value_ns(t->assist_ns), sonde_value_ns(t->sweep_ns), sonde_value_text(name));
}

static bool report_blocks(struct sonde_report *out, const struct sonde_trace_reader *reader,
	const struct sonde_trace_goroutines *gs, const struct row_vec *rows, bool each,
	uint64_t top)
{
	sonde_cleanup(block_row_vec) struct block_row_vec blocks = {0};
	for (size_t i = 0; i < rows->n; i++) {
		for (uint32_t k = rows->items[i].blocks; k;) {
			const struct sonde_trace_block *b = &gs->blocks.items[k - 1];
			if (!block_row_vec_push(&blocks,
				    (struct block_row){b->ns, b->n, b->reason, (uint32_t)i}))
				return false;
			k = b->next;
		}
	}
	sonde_vec_sort(&blocks, by_ns);
	size_t n = top && top < blocks.n ? top : blocks.n;
	sonde_report_table_begin(out, "blocked",
		"blocked for:", each ? goroutine_block_columns : entry_block_columns,
		SONDE_ARRAY_LEN(entry_block_columns));
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++) {
		const struct block_row *b = &blocks.items[i];
		const struct row *row = &rows->items[b->row];
		sonde_report_row(out, sonde_value_ns(b->ns), sonde_value_count(b->n),
			sonde_value_text(name_of(reader, b->reason)),
			each ? sonde_value_count(row->id)
			     : sonde_value_text(name_of(reader, row->entry)));
	}
	sonde_report_table_end(out);
	sonde_report_field(out, "blocked_left_out", n < blocks.n ? "rows left out" : NULL,
		sonde_value_count(blocks.n - n));
	return true;
}

struct sonde_error *sonde_trace_report_goroutines(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_goroutines_options *options, struct sonde_report *out)
{
	bool each = options->all || options->has_g;
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_trace_goroutines) struct sonde_trace_goroutines gs;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	sonde_cleanup(row_vec) struct row_vec rows = {0};
	const struct sonde_trace_event *e;
	sonde_trace_goroutines_init(&gs, each);
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!sonde_trace_goroutines_add(&gs, reader, e))
			return &sonde_enomem;
	}
	if (!sonde_trace_goroutines_finish(&gs) || !collect(reader, options, &gs, &rows))
		return &sonde_enomem;
	if (options->has_g && !rows.n)
		return sonde_error_new(SONDE_NOT_FOUND,
			"%s: no goroutine %" PRIu64 " among %" PRIu64 " in this trace", path,
			options->g, gs.n);

	struct sonde_trace_times all = {0};
	uint64_t n_goroutines = 0;
	sonde_vec_foreach (row, &rows) {
		sonde_trace_times_add(&all, &row->times);
		n_goroutines += each ? 1 : row->id;
	}
	sonde_trace_reader_add_notes(reader, &notes);
	sonde_report_begin(out, "trace.goroutines", 1);
	sonde_report_field(out, "duration_ns", "duration",
		sonde_value_ns(gs.n ? (uint64_t)gs.last_ns - (uint64_t)gs.first_ns : 0));
	sonde_report_field(out, "seen", "goroutines", sonde_value_count(gs.n));
	sonde_report_field(out, "shown", n_goroutines < gs.n ? "shown" : NULL,
		sonde_value_count(n_goroutines));
	sonde_report_blank(out);
	sonde_report_table_begin(out, each ? "goroutines" : "entries", NULL,
		each ? goroutine_columns : entry_columns, SONDE_ARRAY_LEN(entry_columns));
	size_t n = options->top && options->top < rows.n ? options->top : rows.n;
	for (size_t i = 0; i < n && !sonde_report_failed(out); i++)
		report_times(out, rows.items[i].id, &rows.items[i].times,
			name_of(reader, rows.items[i].entry));
	sonde_report_total(out, "total",
		each ? sonde_value_none() : sonde_value_count(n_goroutines),
		sonde_value_ns(all.total_ns), sonde_value_ns(all.running_ns),
		sonde_value_ns(all.runnable_ns), sonde_value_ns(all.blocked_ns),
		sonde_value_ns(all.syscall_ns), sonde_value_ns(all.syscall_blocked_ns),
		sonde_value_ns(sonde_trace_times_unknown(&all)), sonde_value_ns(all.assist_ns),
		sonde_value_ns(all.sweep_ns), sonde_value_text("all"));
	sonde_report_table_end(out);
	sonde_report_field(out, "rows_left_out", n < rows.n ? "rows left out" : NULL,
		sonde_value_count(rows.n - n));
	sonde_report_blank(out);
	if (!report_blocks(out, reader, &gs, &rows, each, options->top))
		return &sonde_enomem;
	return sonde_report_end(out, &notes);
}
