#include "output/report.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include "output/text.h"

enum { LABEL_COLUMNS = 20 };

void sonde_report_init(
	struct sonde_report *r, struct sonde_sink *sink, const struct sonde_report_options *options)
{
	*r = (struct sonde_report){.sink = sink, .options = *options};
	r->json = sonde_json_over(sink);
}

void sonde_report_deinit(struct sonde_report *r)
{
	if (r->in_table && !r->options.json)
		sonde_table_deinit(&r->table);
	r->in_table = false;
}

void sonde_report_begin(struct sonde_report *r, const char *name, unsigned version)
{
	if (!r->options.json)
		return;
	sonde_json_object_begin(&r->json, NULL);
	sonde_json_text(&r->json, "sonde", SONDE_VERSION);
	sonde_json_text(&r->json, "report", name);
	sonde_json_u64(&r->json, "version", version);
}

/* The empty line that is owed, in front of text. */
static void start_text(struct sonde_report *r)
{
	if (r->blank_due)
		sonde_sink_char(r->sink, '\n');
	r->blank_due = false;
}

static void put_escaped(struct sonde_report *r, const char *s, size_t len)
{
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	sonde_text_escape(&text, s, len);
	if (text.failed)
		r->sink->os_errno = ENOMEM;
	else
		sonde_sink_write(r->sink, text.data, text.len);
}

static void text_notes(struct sonde_report *r, const struct sonde_notes *notes)
{
	sonde_report_blank(r);
	for (size_t i = 0; i < notes->entries.n; i++) {
		const struct sonde_note_entry *e = &notes->entries.items[i];
		char amount[48] = "";
		if (e->amount)
			snprintf(amount, sizeof(amount), ", %" PRIu64 " bytes", e->amount);
		sonde_report_line(r, "note: %s: %" PRIu64 " time%s%s%s%s", e->kind, e->count,
			e->count == 1 ? "" : "s", amount, e->first ? "; first: " : "",
			e->first ? e->first : "");
	}
	if (notes->n_lost)
		sonde_report_line(r, "note: no memory for %" PRIu64 " notes", notes->n_lost);
}

static void json_notes(struct sonde_json *j, const struct sonde_notes *notes)
{
	sonde_json_array_begin(j, "notes");
	for (size_t i = 0; notes && i < notes->entries.n; i++) {
		const struct sonde_note_entry *e = &notes->entries.items[i];
		sonde_json_object_begin(j, NULL);
		sonde_json_text(j, "kind", e->kind);
		sonde_json_u64(j, "count", e->count);
		sonde_json_u64(j, "amount", e->amount);
		sonde_json_text(j, "first", e->first);
		sonde_json_object_end(j);
	}
	sonde_json_array_end(j);
	if (notes && notes->n_lost)
		sonde_json_u64(j, "notes_lost", notes->n_lost);
}

struct sonde_error *sonde_report_end(struct sonde_report *r, const struct sonde_notes *notes)
{
	assert(!r->in_table);
	if (r->options.json) {
		json_notes(&r->json, notes);
		sonde_json_object_end(&r->json);
		sonde_json_end(&r->json);
	} else if (notes && (notes->entries.n || notes->n_lost)) {
		text_notes(r, notes);
	}
	if (!sonde_report_failed(r))
		return NULL;
	return sonde_error_os(r->sink->os_errno, "%s", r->sink->name);
}

static void json_value(struct sonde_json *j, const char *key, const struct sonde_value *v)
{
	switch (v->kind) {
	case SONDE_VALUE_NONE:
		sonde_json_null(j, key);
		break;
	case SONDE_VALUE_TEXT:
		sonde_json_string(j, key, v->s, v->len);
		break;
	case SONDE_VALUE_COUNT:
	case SONDE_VALUE_BYTES:
	case SONDE_VALUE_NS:
		sonde_json_u64(j, key, v->u64);
		break;
	case SONDE_VALUE_SIGNED:
		sonde_json_i64(j, key, v->i64);
		break;
	case SONDE_VALUE_ADDR:
		sonde_json_addr(j, key, v->u64);
		break;
	case SONDE_VALUE_SHARE:
		sonde_json_share(j, key, v->part, v->whole);
		break;
	case SONDE_VALUE_BOOL:
		sonde_json_bool(j, key, v->b);
		break;
	}
}

/* The value as text in to, or where it is a string, itself. Returns the length. */
static size_t value_text(
	const struct sonde_value *v, char to[SONDE_TEXT_NUMBER_BYTES], const char **text)
{
	*text = to;
	switch (v->kind) {
	case SONDE_VALUE_NONE:
		*text = "-";
		break;
	case SONDE_VALUE_TEXT:
		*text = v->s;
		return v->len;
	case SONDE_VALUE_COUNT:
	case SONDE_VALUE_BYTES:
		return sonde_text_u64(to, v->u64);
	case SONDE_VALUE_SIGNED:
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "%" PRId64, v->i64);
		break;
	case SONDE_VALUE_NS:
		sonde_text_ns(to, v->u64);
		break;
	case SONDE_VALUE_ADDR:
		snprintf(to, SONDE_TEXT_NUMBER_BYTES, "0x%" PRIx64, v->u64);
		break;
	case SONDE_VALUE_SHARE:
		sonde_text_share(to, v->part, v->whole);
		break;
	case SONDE_VALUE_BOOL:
		*text = v->b ? "yes" : "no";
		break;
	}
	return strlen(*text);
}

void sonde_report_field(
	struct sonde_report *r, const char *key, const char *label, struct sonde_value value)
{
	assert(!r->in_table);
	if (r->options.json) {
		if (key)
			json_value(&r->json, key, &value);
		return;
	}
	if (!label)
		return;
	start_text(r);
	sonde_sink_fill(r->sink, ' ', r->indent);
	size_t columns = sonde_text_columns(label, strlen(label)) + 1;
	sonde_sink_str(r->sink, label);
	sonde_sink_char(r->sink, ':');
	sonde_sink_fill(r->sink, ' ', columns < LABEL_COLUMNS ? LABEL_COLUMNS - columns : 1);
	char number[SONDE_TEXT_NUMBER_BYTES];
	if (value.kind == SONDE_VALUE_BYTES && value.u64 >= 1024) {
		sonde_sink_printf(r->sink, "%s (%" PRIu64 " bytes)\n",
			sonde_text_human_bytes(number, value.u64), value.u64);
		return;
	}
	const char *text;
	size_t len = value_text(&value, number, &text);
	put_escaped(r, text, len);
	sonde_sink_str(r->sink, value.kind == SONDE_VALUE_BYTES ? " bytes\n" : "\n");
}

void sonde_report_bytes(
	struct sonde_report *r, const char *key, uint64_t addr, const void *data, size_t len)
{
	enum { A_LINE = 16 };
	const uint8_t *p = data;
	assert(!r->in_table);
	if (r->options.json) {
		sonde_json_hex(&r->json, key, data, len);
		return;
	}
	start_text(r);
	for (size_t at = 0; at < len; at += A_LINE) {
		size_t n = sonde_min(len - at, (size_t)A_LINE);
		char ascii[A_LINE + 1] = "";
		sonde_sink_fill(r->sink, ' ', r->indent);
		sonde_sink_printf(r->sink, "0x%012" PRIx64, addr + at);
		for (size_t i = 0; i < A_LINE; i++) {
			sonde_sink_str(r->sink, i % 8 ? " " : "  ");
			if (i < n)
				sonde_sink_printf(r->sink, "%02x", p[at + i]);
			else
				sonde_sink_str(r->sink, "  ");
		}
		for (size_t i = 0; i < n; i++)
			ascii[i] = p[at + i] >= 0x20 && p[at + i] < 0x7f ? (char)p[at + i] : '.';
		sonde_sink_printf(r->sink, "  |%s|\n", ascii);
	}
}

void sonde_report_section_begin(struct sonde_report *r, const char *key, const char *title)
{
	assert(!r->in_table);
	if (r->options.json) {
		sonde_json_object_begin(&r->json, key);
		return;
	}
	r->titled = r->titled << 1 | (title != NULL);
	if (!title)
		return;
	sonde_report_blank(r);
	sonde_report_heading(r, "%s", title);
	r->indent += 2;
}

void sonde_report_section_end(struct sonde_report *r)
{
	if (r->options.json) {
		sonde_json_object_end(&r->json);
		return;
	}
	bool titled = r->titled & 1;
	r->titled >>= 1;
	if (!titled)
		return;
	assert(r->indent >= 2);
	r->indent -= 2;
	sonde_report_blank(r);
}

void sonde_report_table_begin(struct sonde_report *r, const char *key, const char *title,
	const struct sonde_column *columns, size_t n)
{
	assert(!r->in_table);
	r->in_total = false;
	if (r->options.json) {
		r->in_table = true;
		assert(n && n <= SONDE_TABLE_MAX_COLUMNS);
		r->table = (struct sonde_table){.columns = columns, .n_columns = n};
		sonde_json_array_begin(&r->json, key);
		return;
	}
	sonde_report_blank(r);
	if (title)
		sonde_report_heading(r, "%s", title);
	start_text(r);
	r->in_table = true;
	sonde_table_init(&r->table, r->sink, columns, n, r->options.legend, r->options.color,
		r->options.max_columns);
}

/* An object of the columns' keys; totals (which have a key) leave out what they do not know. */
static void json_row(struct sonde_report *r, const char *key, const struct sonde_value *values)
{
	sonde_json_object_begin(&r->json, key);
	for (size_t i = 0; i < r->table.n_columns; i++)
		if (r->table.columns[i].key && (!key || values[i].kind != SONDE_VALUE_NONE))
			json_value(&r->json, r->table.columns[i].key, &values[i]);
	sonde_json_object_end(&r->json);
}

void sonde_report_row_values(struct sonde_report *r, const struct sonde_value *values, size_t n)
{
	assert(r->in_table && n == r->table.n_columns);
	if (r->options.json) {
		json_row(r, NULL, values);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		char number[SONDE_TEXT_NUMBER_BYTES];
		const char *text = "";
		size_t len = 0;
		if (r->table.columns[i].label)
			len = value_text(&values[i], number, &text);
		sonde_table_cell(&r->table, text, len);
	}
}

void sonde_report_total_values(
	struct sonde_report *r, const char *total_key, const struct sonde_value *values, size_t n)
{
	assert(r->in_table && !r->in_total && n == r->table.n_columns);
	r->in_total = true;
	if (!r->options.json) {
		sonde_table_total(&r->table);
		sonde_report_row_values(r, values, n);
		return;
	}
	sonde_json_array_end(&r->json);
	json_row(r, total_key, values);
}

void sonde_report_table_end(struct sonde_report *r)
{
	assert(r->in_table);
	r->in_table = false;
	if (r->options.json) {
		if (!r->in_total)
			sonde_json_array_end(&r->json);
		return;
	}
	sonde_table_end(&r->table);
	sonde_table_deinit(&r->table);
	sonde_report_blank(r);
}

void sonde_report_list_begin(struct sonde_report *r, const char *key)
{
	assert(!r->in_table);
	if (r->options.json)
		sonde_json_array_begin(&r->json, key);
}

void sonde_report_list_end(struct sonde_report *r)
{
	if (r->options.json)
		sonde_json_array_end(&r->json);
}

void sonde_report_item_begin(struct sonde_report *r)
{
	assert(!r->in_table);
	if (r->options.json)
		sonde_json_object_begin(&r->json, NULL);
}

void sonde_report_item_end(struct sonde_report *r)
{
	if (r->options.json)
		sonde_json_object_end(&r->json);
}

static void text_line(struct sonde_report *r, bool bold, const char *fmt, va_list args)
{
	assert(!r->in_table);
	if (r->options.json)
		return;
	sonde_cleanup(sonde_buf) struct sonde_buf line = {0};
	sonde_buf_vprintf(&line, fmt, args);
	if (line.failed) {
		r->sink->os_errno = ENOMEM;
		return;
	}
	start_text(r);
	bold &= r->options.color;
	if (bold)
		sonde_sink_str(r->sink, "\033[1m");
	if (line.len)
		sonde_sink_fill(r->sink, ' ', r->indent);
	put_escaped(r, sonde_buf_text(&line), line.len);
	sonde_sink_str(r->sink, bold ? "\033[0m\n" : "\n");
}

void sonde_report_line(struct sonde_report *r, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	text_line(r, false, fmt, args);
	va_end(args);
}

void sonde_report_heading(struct sonde_report *r, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	text_line(r, true, fmt, args);
	va_end(args);
}

void sonde_report_blank(struct sonde_report *r)
{
	/* Never an empty line at the top. */
	if (r->sink->n_bytes)
		r->blank_due = true;
}

struct sonde_json *sonde_report_json(struct sonde_report *r)
{
	return r->options.json ? &r->json : NULL;
}

struct sonde_sink *sonde_report_text(struct sonde_report *r)
{
	if (r->options.json)
		return NULL;
	start_text(r);
	return r->sink;
}
