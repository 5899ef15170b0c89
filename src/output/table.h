/*
 * src/output/table.h: rows of text in columns. Widths are settled over the first rows, which are kept; from then on
 * rows stream through, and a cell that is too wide pushes the rest of its line. Cells are escaped here.
 */
#pragma once
#include <stdbool.h>
#include "base/buf.h"
#include "base/vec.h"
#include "output/sink.h"

enum {
	SONDE_TABLE_MAX_COLUMNS = 24,
	SONDE_TABLE_KEPT_ROWS = 4096,
	SONDE_TABLE_KEPT_BYTES = 1 << 20,
};

struct sonde_column {
	const char *key; /* the JSON member; NULL: only in text */
	const char *label; /* the header; NULL: only in JSON */
	bool right; /* numbers stand right */
	bool may_cut; /* shortened with "..." where a line would not fit the terminal */
};

struct sonde_table_cell {
	uint32_t bytes, columns;
};
SONDE_DEFINE_VEC(sonde_table_cells, struct sonde_table_cell)

struct sonde_table {
	struct sonde_sink *sink; /* borrowed */
	const struct sonde_column *columns; /* borrowed */
	size_t n_columns; /* with those that text leaves out */
	size_t column; /* the next cell's */
	size_t max_columns; /* a line's, 0 = any */
	bool legend, color, settled, total;
	size_t widths[SONDE_TABLE_MAX_COLUMNS];
	struct sonde_buf text; /* the kept cells, one behind the other */
	struct sonde_table_cells cells; /* theirs, n_columns a row */
};

/*
 * Start a table of n columns, at most SONDE_TABLE_MAX_COLUMNS. legend: with headers and totals; color: these in bold;
 * max_columns: where to cut the columns that allow it, 0 = nowhere.
 */
void sonde_table_init(struct sonde_table *t, struct sonde_sink *sink,
	const struct sonde_column *columns, size_t n, bool legend, bool color, size_t max_columns);
void sonde_table_deinit(struct sonde_table *t);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_table)

/* The next cell, any bytes. A row ends by itself with its last cell. */
void sonde_table_cell(struct sonde_table *t, const char *s, size_t len);

/* The next n_columns cells are the totals, the last row; left out without a legend. */
void sonde_table_total(struct sonde_table *t);

/* Write what is kept. Also the header of a table without rows. */
void sonde_table_end(struct sonde_table *t);
