#include "output/table.h"

#include <assert.h>
#include "output/text.h"

static const char ellipsis[] = "\xe2\x80\xa6";

enum { GAP_COLUMNS = 2 };

void sonde_table_init(struct sonde_table *t, struct sonde_sink *sink,
	const struct sonde_column *columns, size_t n, bool legend, bool color, size_t max_columns)
{
	assert(n && n <= SONDE_TABLE_MAX_COLUMNS);
	*t = (struct sonde_table){
		.sink = sink,
		.columns = columns,
		.n_columns = n,
		.legend = legend,
		.color = color,
		.max_columns = max_columns,
	};
	for (size_t i = 0; legend && i < n; i++)
		if (columns[i].label)
			t->widths[i] =
				sonde_text_columns(columns[i].label, strlen(columns[i].label));
}

void sonde_table_deinit(struct sonde_table *t)
{
	sonde_buf_deinit(&t->text);
	sonde_table_cells_deinit(&t->cells);
}

/* Narrow the columns that allow it, the widest first, until a line fits or each is at its least. */
static void cut_widths(struct sonde_table *t)
{
	enum { LEAST = 12 };
	size_t line = 0;
	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].label)
			line += t->widths[i] + (line ? GAP_COLUMNS : 0);
	while (line > t->max_columns) {
		size_t widest = SIZE_MAX;
		for (size_t i = 0; i < t->n_columns; i++)
			if (t->columns[i].label && t->columns[i].may_cut && t->widths[i] > LEAST &&
				(widest == SIZE_MAX || t->widths[i] > t->widths[widest]))
				widest = i;
		if (widest == SIZE_MAX)
			return;
		size_t less = sonde_min(line - t->max_columns, t->widths[widest] - LEAST);
		t->widths[widest] -= less;
		line -= less;
	}
}

static void write_row(
	struct sonde_table *t, const char *text, const struct sonde_table_cell *cells, bool bold)
{
	size_t owed = 0; /* spaces due in front of the next cell: none at a line's end */
	bool first = true;
	if (bold && t->color)
		sonde_sink_str(t->sink, "\033[1m");
	for (size_t i = 0; i < t->n_columns; text += cells[i++].bytes) {
		if (!t->columns[i].label)
			continue;
		size_t bytes = cells[i].bytes, columns = cells[i].columns, width = t->widths[i];
		bool cut = t->columns[i].may_cut && t->max_columns && columns > width;
		if (cut) {
			bytes = sonde_text_fit(text, bytes, width - 1);
			columns = sonde_text_columns(text, bytes) + 1;
		}
		size_t padding = columns < width ? width - columns : 0;
		owed += first ? 0 : GAP_COLUMNS;
		if (t->columns[i].right)
			owed += padding;
		if (columns) {
			sonde_sink_fill(t->sink, ' ', owed);
			owed = 0;
		}
		sonde_sink_write(t->sink, text, bytes);
		if (cut)
			sonde_sink_str(t->sink, ellipsis);
		if (!t->columns[i].right)
			owed += padding;
		first = false;
	}
	if (bold && t->color)
		sonde_sink_str(t->sink, "\033[0m");
	sonde_sink_char(t->sink, '\n');
}

static void write_header(struct sonde_table *t)
{
	struct sonde_table_cell cells[SONDE_TABLE_MAX_COLUMNS] = {{0}};
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	for (size_t i = 0; i < t->n_columns; i++) {
		const char *label = t->columns[i].label ? t->columns[i].label : "";
		cells[i].bytes = (uint32_t)strlen(label);
		cells[i].columns = (uint32_t)sonde_text_columns(label, cells[i].bytes);
		sonde_buf_str(&text, label);
	}
	write_row(t, sonde_buf_text(&text), cells, true);
}

/* Decide the widths and write what was kept. */
static void settle(struct sonde_table *t)
{
	for (size_t i = 0; i < t->cells.n; i++) {
		size_t *width = &t->widths[i % t->n_columns];
		*width = sonde_max(*width, (size_t)t->cells.items[i].columns);
	}
	if (t->max_columns)
		cut_widths(t);
	t->settled = true;
	if (t->legend)
		write_header(t);
	const char *text = sonde_buf_text(&t->text);
	for (size_t i = 0; i + t->n_columns <= t->cells.n; i += t->n_columns) {
		bool total = t->total && i + t->n_columns == t->cells.n;
		write_row(t, text, &t->cells.items[i], total);
		for (size_t k = 0; k < t->n_columns; k++)
			text += t->cells.items[i + k].bytes;
	}
	t->text.len = 0;
	t->cells.n = 0;
}

static void end_row(struct sonde_table *t)
{
	t->column = 0;
	if (t->total && !t->legend) {
		for (size_t k = 0; k < t->n_columns; k++)
			t->text.len -= t->cells.items[--t->cells.n].bytes;
	} else if (t->settled) {
		write_row(t, sonde_buf_text(&t->text), t->cells.items, t->total);
		t->text.len = 0;
		t->cells.n = 0;
	} else if (t->cells.n / t->n_columns >= SONDE_TABLE_KEPT_ROWS ||
		t->text.len >= SONDE_TABLE_KEPT_BYTES) {
		settle(t);
	}
}

void sonde_table_cell(struct sonde_table *t, const char *s, size_t len)
{
	if (sonde_sink_failed(t->sink))
		return;
	size_t before = t->text.len;
	size_t columns = 0;
	if (t->columns[t->column].label)
		columns = sonde_text_escape(&t->text, s, len);
	struct sonde_table_cell cell = {(uint32_t)(t->text.len - before), (uint32_t)columns};
	if (t->text.failed || t->text.len - before > UINT32_MAX ||
		!sonde_table_cells_push(&t->cells, cell)) {
		t->sink->os_errno = ENOMEM;
		return;
	}
	if (++t->column == t->n_columns)
		end_row(t);
}

void sonde_table_total(struct sonde_table *t)
{
	assert(!t->column && !t->total);
	t->total = true;
}

void sonde_table_end(struct sonde_table *t)
{
	if (sonde_sink_failed(t->sink))
		return;
	assert(!t->column);
	if (!t->settled)
		settle(t);
}
