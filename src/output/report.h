/*
 * src/output/report.h: one report, written once, in either form: text for people or one JSON object. An export function
 * gets a report that is open, says what is in it in order, and ends it:
 *
 *	static const struct sonde_column columns[] = {
 *		{"type", "TYPE", .may_cut = true},
 *		{"count", "COUNT", .right = true},
 *	};
 *	sonde_report_begin(r, "core.histogram", 1);
 *	sonde_report_field(r, "heap_bytes", "heap", sonde_value_bytes(n));
 *	sonde_report_table_begin(r, "types", NULL, columns, SONDE_ARRAY_LEN(columns));
 *	for (...)
 *		sonde_report_row(r, sonde_value_text(name), sonde_value_count(n));
 *	sonde_report_table_end(r);
 *	return sonde_report_end(r, notes);
 *
 * Nothing fails on the way; sonde_report_end() returns the first failure of the sink, and long loops may leave early by
 * sonde_report_failed(). All strings are escaped for their form.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/notes.h"
#include "output/json.h"
#include "output/sink.h"
#include "output/table.h"

/* What the caller of an export function decides. */
struct sonde_report_options {
	bool json;
	bool color;
	bool legend; /* headers and totals */
	unsigned max_columns; /* of a line, where a column may be cut; 0 = cut nothing */
};

struct sonde_report {
	/* report.c's. */
	struct sonde_sink *sink; /* borrowed */
	struct sonde_report_options options;
	struct sonde_json json;
	struct sonde_table table;
	bool in_table, in_total, blank_due;
	unsigned indent; /* columns in front of fields and lines, in text */
	uint64_t titled; /* a bit for each open section, the innermost lowest: it has a title */
};

void sonde_report_init(struct sonde_report *r, struct sonde_sink *sink,
	const struct sonde_report_options *options);
void sonde_report_deinit(struct sonde_report *r);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_report)

/* name: "core.histogram"; version rises when a JSON member goes away or changes its meaning. */
void sonde_report_begin(struct sonde_report *r, const char *name, unsigned version);

/* The notes (NULL: none), and the end. What the sink could not write is returned. */
struct sonde_error *sonde_report_end(
	struct sonde_report *r, const struct sonde_notes *notes) SONDE_CHECK;

static inline bool sonde_report_failed(const struct sonde_report *r)
{
	return sonde_sink_failed(r->sink);
}

/* A value and how it is to be read. Strings are borrowed until the call that takes the value returns. */
struct sonde_value {
	enum sonde_value_kind {
		SONDE_VALUE_NONE, /* "-", null */
		SONDE_VALUE_TEXT,
		SONDE_VALUE_COUNT,
		SONDE_VALUE_SIGNED,
		SONDE_VALUE_BYTES, /* in a field also as KiB and so on; in a table only the number */
		SONDE_VALUE_NS, /* a duration: 1.234 ms; nanoseconds in JSON */
		SONDE_VALUE_ADDR, /* 0x...; a string in JSON */
		SONDE_VALUE_SHARE, /* 12.3%; 0.123456 in JSON */
		SONDE_VALUE_BOOL, /* yes, no */
	} kind;
	union {
		struct {
			const char *s;
			size_t len;
		};
		uint64_t u64;
		int64_t i64;
		struct {
			uint64_t part, whole;
		};
		bool b;
	};
};

static inline struct sonde_value sonde_value_none(void)
{
	return (struct sonde_value){.kind = SONDE_VALUE_NONE};
}

/* s may be NULL where len is 0: none. */
static inline struct sonde_value sonde_value_string(const char *s, size_t len)
{
	return (struct sonde_value){
		.kind = s ? SONDE_VALUE_TEXT : SONDE_VALUE_NONE, .s = s, .len = len};
}

/* NULL is none. */
static inline struct sonde_value sonde_value_text(const char *s)
{
	return sonde_value_string(s, s ? strlen(s) : 0);
}

static inline struct sonde_value sonde_value_count(uint64_t n)
{
	return (struct sonde_value){.kind = SONDE_VALUE_COUNT, .u64 = n};
}

static inline struct sonde_value sonde_value_signed(int64_t n)
{
	return (struct sonde_value){.kind = SONDE_VALUE_SIGNED, .i64 = n};
}

static inline struct sonde_value sonde_value_bytes(uint64_t n)
{
	return (struct sonde_value){.kind = SONDE_VALUE_BYTES, .u64 = n};
}

static inline struct sonde_value sonde_value_ns(uint64_t ns)
{
	return (struct sonde_value){.kind = SONDE_VALUE_NS, .u64 = ns};
}

static inline struct sonde_value sonde_value_addr(uint64_t addr)
{
	return (struct sonde_value){.kind = SONDE_VALUE_ADDR, .u64 = addr};
}

static inline struct sonde_value sonde_value_share(uint64_t part, uint64_t whole)
{
	return (struct sonde_value){.kind = SONDE_VALUE_SHARE, .part = part, .whole = whole};
}

static inline struct sonde_value sonde_value_bool(bool b)
{
	return (struct sonde_value){.kind = SONDE_VALUE_BOOL, .b = b};
}

/* One member. Text: "label:   value" (label NULL: not in text); JSON: "key": value (key NULL: not in JSON). */
void sonde_report_field(
	struct sonde_report *r, const char *key, const char *label, struct sonde_value value);

/*
 * Bytes as they stand at addr in a target: in text 16 a line with their address and ASCII, in JSON one string of
 * hexadecimal digits.
 */
void sonde_report_bytes(
	struct sonde_report *r, const char *key, uint64_t addr, const void *data, size_t len);

/*
 * A part: an object in JSON; in text a heading with what follows indented under it, or nothing where title is NULL. At
 * most 64 deep.
 */
void sonde_report_section_begin(struct sonde_report *r, const char *key, const char *title);
void sonde_report_section_end(struct sonde_report *r);

/* A table: an array of objects in JSON. columns must outlive it. */
void sonde_report_table_begin(struct sonde_report *r, const char *key, const char *title,
	const struct sonde_column *columns, size_t n);

/* A row: as many values as columns, in their order. */
#define sonde_report_row(r, ...)                                          \
	sonde_report_row_values((r), (struct sonde_value[]){__VA_ARGS__}, \
		SONDE_ARRAY_LEN(((struct sonde_value[]){__VA_ARGS__})))
void sonde_report_row_values(struct sonde_report *r, const struct sonde_value *values, size_t n);

/* After the last row: the totals. JSON: an object beside the array, named total_key; none are left out. */
#define sonde_report_total(r, total_key, ...)                                            \
	sonde_report_total_values((r), (total_key), (struct sonde_value[]){__VA_ARGS__}, \
		SONDE_ARRAY_LEN(((struct sonde_value[]){__VA_ARGS__})))
void sonde_report_total_values(
	struct sonde_report *r, const char *total_key, const struct sonde_value *values, size_t n);
void sonde_report_table_end(struct sonde_report *r);

/*
 * What no table holds: a list of items, each an object in JSON with fields, tables or lists of its own (key NULL inside
 * a list is not possible: items are). In text the items are what their lines say.
 */
void sonde_report_list_begin(struct sonde_report *r, const char *key);
void sonde_report_list_end(struct sonde_report *r);
void sonde_report_item_begin(struct sonde_report *r);
void sonde_report_item_end(struct sonde_report *r);

/* One line of text only, escaped as a whole (no tabs: indent with spaces). A heading is bold where there is colour. */
void sonde_report_line(struct sonde_report *r, const char *fmt, ...) SONDE_PRINTF(2, 3);
void sonde_report_heading(struct sonde_report *r, const char *fmt, ...) SONDE_PRINTF(2, 3);

/* An empty line, in text, in front of whatever text comes next. */
void sonde_report_blank(struct sonde_report *r);

/* The way down, for what the above cannot say: exactly one of them is not NULL. */
struct sonde_json *sonde_report_json(struct sonde_report *r);
struct sonde_sink *sonde_report_text(struct sonde_report *r);
