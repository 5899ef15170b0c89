#include "object/lines.h"

#include <inttypes.h>
#include <string.h>
#include "object/dwarf_internal.h"

enum { END_OF_SEQUENCE = UINT32_MAX };

/* With its address 20 bytes; libdw keeps 48 a row of its own, until the sonde_dwarf is freed. */
struct row {
	uint32_t file; /* index into the unit's files, or END_OF_SEQUENCE */
	uint32_t line;
	uint32_t column;
};

struct table {
	bool decoded;
	uint64_t *addrs; /* ascending; one per row */
	struct row *rows;
	size_t n;
	Dwarf_Files *files; /* libdw's */
	size_t n_files;
};

struct sonde_lines {
	struct sonde_dwarf *dwarf; /* borrowed */
	struct table *tables; /* one per unit */
};

struct sonde_error *sonde_lines_new(struct sonde_dwarf *dwarf, struct sonde_lines **ret)
{
	sonde_cleanup(sonde_lines) struct sonde_lines *lines = sonde_new(struct sonde_lines);
	if (!lines)
		return &sonde_enomem;
	lines->dwarf = dwarf;
	lines->tables = sonde_new_array(struct table, dwarf->n_units);
	if (!lines->tables)
		return &sonde_enomem;
	*ret = sonde_take(lines);
	return NULL;
}

void sonde_lines_free(struct sonde_lines *lines)
{
	if (!lines)
		return;
	for (size_t i = 0; lines->tables && i < lines->dwarf->n_units; i++) {
		free(lines->tables[i].addrs);
		free(lines->tables[i].rows);
	}
	free(lines->tables);
	free(lines);
}

/* Copy libdw's rows, of those with one address the last, which is the one in force. false = out of memory. */
static bool copy_rows(struct table *table, Dwarf_Lines *lines, size_t n)
{
	table->addrs = sonde_new_array(uint64_t, n);
	table->rows = sonde_new_array(struct row, n);
	if (!table->addrs || !table->rows)
		return false;
	for (size_t i = 0; i < n; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);
		Dwarf_Addr addr;
		bool end = false;
		int number = 0, column = 0;
		size_t file = 0;
		Dwarf_Files *files;
		if (dwarf_lineaddr(line, &addr))
			continue;
		dwarf_lineendsequence(line, &end);
		dwarf_lineno(line, &number);
		dwarf_linecol(line, &column);
		if (end || dwarf_line_file(line, &files, &file))
			file = END_OF_SEQUENCE;
		if (table->n && addr < table->addrs[table->n - 1])
			continue;
		if (table->n && addr == table->addrs[table->n - 1]) {
			/* The end of one sequence at the start of the next says nothing. */
			if (file == END_OF_SEQUENCE)
				continue;
			table->n--;
		}
		table->addrs[table->n] = addr;
		table->rows[table->n++] = (struct row){
			.file = (uint32_t)file,
			.line = number > 0 ? (uint32_t)number : 0,
			.column = column > 0 ? (uint32_t)column : 0,
		};
	}
	return true;
}

static struct table *table_of(struct sonde_lines *lines, size_t number)
{
	struct sonde_dwarf *dwarf = lines->dwarf;
	struct table *table = &lines->tables[number];
	if (table->decoded)
		return table;
	table->decoded = true;
	sonde_dwarf_need(dwarf, SONDE_DWARF_LINE);
	Dwarf_Die die;
	Dwarf_Lines *rows;
	size_t n;
	if (!dwarf_offdie(dwarf->libdw, dwarf->units[number].id, &die) ||
		!dwarf_hasattr(&die, DW_AT_stmt_list))
		return table;
	if (dwarf_getsrclines(&die, &rows, &n) ||
		dwarf_getsrcfiles(&die, &table->files, &table->n_files)) {
		table->n_files = 0;
		sonde_notes_add(dwarf->notes, "DWARF line table damaged", 0, "%s: unit %s: %s",
			dwarf->name, dwarf->units[number].name, dwarf_errmsg(-1));
		return table;
	}
	if (!copy_rows(table, rows, n)) {
		table->n = 0;
		sonde_notes_add(dwarf->notes, SONDE_DWARF_NO_MEMORY, 0, "%s: lines of %s",
			dwarf->name, dwarf->units[number].name);
	}
	return table;
}

static const char *file_name(const struct table *table, uint64_t file)
{
	const char *name = file < table->n_files
		? dwarf_filesrc(table->files, (size_t)file, NULL, NULL)
		: NULL;
	return name ? name : "";
}

static bool find_row(const struct table *table, uint64_t pc, struct sonde_line *ret)
{
	size_t low = 0, high = table->n;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		if (table->addrs[mid] <= pc)
			low = mid + 1;
		else
			high = mid;
	}
	/* The last row of a whole table ends its sequence; one that does not is damaged. */
	if (!low || low == table->n || table->rows[low - 1].file == END_OF_SEQUENCE)
		return false;
	*ret = (struct sonde_line){
		.file = file_name(table, table->rows[low - 1].file),
		.line = table->rows[low - 1].line,
		.column = table->rows[low - 1].column,
		.low = table->addrs[low - 1],
		.high = table->addrs[low],
	};
	return true;
}

bool sonde_lines_find(struct sonde_lines *lines, uint64_t pc, struct sonde_line *ret)
{
	const struct sonde_dwarf_unit *unit = sonde_dwarf_unit_at(lines->dwarf, pc);
	return unit && find_row(table_of(lines, (size_t)(unit - lines->dwarf->units)), pc, ret);
}

size_t sonde_lines_frames(
	struct sonde_lines *lines, uint64_t pc, struct sonde_line_frame *frames, size_t max)
{
	const struct sonde_dwarf_unit *unit = sonde_dwarf_unit_at(lines->dwarf, pc);
	if (!unit)
		return 0;
	struct table *table = table_of(lines, (size_t)(unit - lines->dwarf->units));
	struct sonde_line line = {.file = ""};
	bool has_line = find_row(table, pc, &line);
	struct sonde_dwarf_scope scopes[SONDE_DWARF_MAX_DEPTH];
	size_t n = sonde_dwarf_scopes_at(lines->dwarf, pc, scopes, SONDE_ARRAY_LEN(scopes));
	if (!n && has_line && max)
		frames[0] = (struct sonde_line_frame){
			.function = "",
			.linkage_name = "",
			.file = line.file,
			.line = line.line,
			.column = line.column,
		};
	for (size_t i = 0; i < n && i < max; i++) {
		/* Where the inner one was inlined is where the outer one stands. */
		frames[i] = (struct sonde_line_frame){
			.function = scopes[i].name,
			.linkage_name = scopes[i].linkage_name,
			.file = i ? file_name(table, scopes[i - 1].call_file) : line.file,
			.line = i ? scopes[i - 1].call_line : line.line,
			.column = i ? scopes[i - 1].call_column : line.column,
			.is_inlined = i + 1 < n,
		};
	}
	return n ? n : has_line;
}
