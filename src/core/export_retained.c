#include <stdlib.h>

#include "base/map.h"
#include "core/names.h"
#include "core/report.h"
#include "core/retained.h"
#include "output/report.h"

enum { DEFAULT_ROWS = 20 };

struct row {
	uint64_t bytes, count;
	uint32_t key; /* vertex, owner or typing */
};
SONDE_DEFINE_VEC(row_vec, struct row)

static int by_bytes(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->key < y->key ? -1 : x->key > y->key;
}

/* The n largest of the rows so far: called now and then, so that a list of all objects is never made. */
static void keep_largest(struct row_vec *rows, uint64_t n)
{
	sonde_vec_sort(rows, by_bytes);
	if (rows->n > n)
		rows->n = n;
}

/*
 * Objects below another one of their type, each node of a list for one, say nothing new: only the topmost counts.
 */
static bool is_below_its_type(
	const struct sonde_core_session *s, const struct sonde_core_retained *r, uint32_t v)
{
	uint32_t above = r->what[r->idom[v]], typing = s->typing->of[r->what[v]];
	return r->idom[v] && above < r->n_slots && typing && s->typing->of[above] == typing;
}

static struct sonde_error *rows_by_object(struct sonde_core_session *s,
	const struct sonde_core_retained *r, uint64_t n, struct row_vec *rows)
{
	uint64_t least = 0;
	for (uint32_t v = 1; v < r->n; v++) {
		if (r->what[v] >= r->n_slots || r->bytes[v] < least || is_below_its_type(s, r, v))
			continue;
		if (!row_vec_push(rows, (struct row){r->bytes[v], 1, v}))
			return &sonde_enomem;
		if (rows->n >= 2 * n + 1024) {
			keep_largest(rows, n);
			least = rows->items[rows->n - 1].bytes;
		}
	}
	keep_largest(rows, n);
	return NULL;
}

static struct sonde_error *rows_by_root(
	const struct sonde_core_retained *r, bool goroutines, uint64_t n, struct row_vec *rows)
{
	for (uint32_t i = 0; i < r->owners.n; i++) {
		uint32_t v = r->owners.items[i].vertex;
		if (goroutines && r->owners.items[i].kind != SONDE_CORE_OWNER_GOROUTINE)
			continue;
		if (v != UINT32_MAX && !row_vec_push(rows, (struct row){r->bytes[v], 1, i}))
			return &sonde_enomem;
	}
	keep_largest(rows, n);
	return NULL;
}

/*
 * By type: what all objects of a type retain together, counting none that another one of the type dominates. A walk down
 * the dominator tree knows by a counter a type whether one is above.
 */
static struct sonde_error *rows_by_type(struct sonde_core_session *s,
	const struct sonde_core_retained *r, uint64_t n, struct row_vec *rows)
{
	size_t n_types = s->types->by_id.n * 2;
	sonde_cleanup(free) struct row *by_type = sonde_new_array(struct row, n_types);
	sonde_cleanup(free) uint32_t *above = sonde_new_array(uint32_t, n_types);
	/* Children as linked lists: first child by vertex, next sibling by vertex. */
	sonde_cleanup(free) uint32_t *child = sonde_new_array(uint32_t, r->n);
	sonde_cleanup(free) uint32_t *sibling = sonde_new_array(uint32_t, r->n);
	if (!by_type || !above || !child || !sibling)
		return &sonde_enomem;
	for (uint32_t v = r->n; v-- > 1;) {
		sibling[v] = child[r->idom[v]];
		child[r->idom[v]] = v;
	}
	for (uint32_t v = 0;;) {
		size_t key = SIZE_MAX;
		if (v && r->what[v] < r->n_slots) {
			uint32_t typing = s->typing->of[r->what[v]];
			key = (size_t)(typing & ~SONDE_CORE_TYPE_MANY) * 2 + (typing >> 31);
			by_type[key].count++;
			by_type[key].key = typing;
			if (above[key]++ == 0)
				by_type[key].bytes += r->bytes[v];
		}
		if (child[v]) {
			v = child[v];
			continue;
		}
		/* Up to where there is a sibling, taking the counters back. */
		for (;;) {
			if (v && r->what[v] < r->n_slots) {
				uint32_t typing = s->typing->of[r->what[v]];
				above[(size_t)(typing & ~SONDE_CORE_TYPE_MANY) * 2 +
					(typing >> 31)]--;
			}
			if (!v || sibling[v])
				break;
			v = r->idom[v];
		}
		if (!v)
			break;
		v = sibling[v];
	}
	for (size_t i = 0; i < n_types; i++) {
		if (by_type[i].count && !row_vec_push(rows, by_type[i]))
			return &sonde_enomem;
	}
	keep_largest(rows, n);
	return NULL;
}

static const struct sonde_column object_columns[] = {
	{"bytes", "RETAINED", .right = true},
	{"share", "SHARE", .right = true},
	{"own_bytes", "OWN", .right = true},
	{"addr", "ADDRESS", .right = true},
	{"type", "TYPE", .may_cut = true},
};
static const struct sonde_column type_columns[] = {
	{"bytes", "RETAINED", .right = true},
	{"share", "SHARE", .right = true},
	{"count", "COUNT", .right = true},
	{"type", "TYPE", .may_cut = true},
};
static const struct sonde_column root_columns[] = {
	{"bytes", "RETAINED", .right = true},
	{"share", "SHARE", .right = true},
	{"root", "ROOT", .may_cut = true},
};

static void report_rows(struct sonde_core_session *s, const struct sonde_core_retained *r, int by,
	const struct row_vec *rows, struct sonde_report *out)
{
	uint64_t live = s->marks->live_bytes;
	for (size_t i = 0; i < rows->n && !sonde_report_failed(out); i++) {
		const struct row *row = &rows->items[i];
		sonde_cleanup(sonde_buf) struct sonde_buf name = {0};
		struct sonde_value bytes = sonde_value_bytes(row->bytes),
				   share = sonde_value_share(row->bytes, live);
		if (by == SONDE_CORE_RETAINED_BY_ROOT || by == SONDE_CORE_RETAINED_BY_GOROUTINE) {
			sonde_core_owner_name(s, &r->owners.items[row->key], &name);
			sonde_report_row(
				out, bytes, share, sonde_value_text(sonde_buf_text(&name)));
		} else if (by == SONDE_CORE_RETAINED_BY_TYPE) {
			sonde_core_type_name(s, row->key, &name);
			sonde_report_row(out, bytes, share, sonde_value_count(row->count),
				sonde_value_text(sonde_buf_text(&name)));
		} else {
			uint32_t object = r->what[row->key];
			const struct sonde_go_span *span = sonde_go_heap_span_of(s->heap, object);
			sonde_core_type_name(s, s->typing->of[object], &name);
			sonde_report_row(out, bytes, share, sonde_value_bytes(span->slot_bytes),
				sonde_value_addr(sonde_go_span_addr(span, object - span->first)),
				sonde_value_text(sonde_buf_text(&name)));
		}
	}
}

struct sonde_error *sonde_core_report_retained(struct sonde_core_session *session,
	const struct sonde_core_retained_options *options, struct sonde_report *out)
{
	static const struct {
		const struct sonde_column *columns;
		size_t n;
	} tables[] = {
		[SONDE_CORE_RETAINED_BY_OBJECT] = {object_columns, SONDE_ARRAY_LEN(object_columns)},
		[SONDE_CORE_RETAINED_BY_TYPE] = {type_columns, SONDE_ARRAY_LEN(type_columns)},
		[SONDE_CORE_RETAINED_BY_ROOT] = {root_columns, SONDE_ARRAY_LEN(root_columns)},
		[SONDE_CORE_RETAINED_BY_GOROUTINE] = {root_columns, SONDE_ARRAY_LEN(root_columns)},
	};
	uint64_t n = options->top ? options->top : DEFAULT_ROWS;
	sonde_cleanup(sonde_core_retained) struct sonde_core_retained *r = NULL;
	sonde_cleanup(row_vec) struct row_vec rows = {0};
	if (!(options->by == SONDE_CORE_RETAINED_BY_ROOT ||
		    options->by == SONDE_CORE_RETAINED_BY_GOROUTINE))
		SONDE_TRY(sonde_core_session_need_typing(session));
	SONDE_TRY(sonde_core_retained_make(session, &r));
	if (options->by == SONDE_CORE_RETAINED_BY_ROOT ||
		options->by == SONDE_CORE_RETAINED_BY_GOROUTINE)
		SONDE_TRY(
			rows_by_root(r, options->by == SONDE_CORE_RETAINED_BY_GOROUTINE, n, &rows));
	else if (options->by == SONDE_CORE_RETAINED_BY_TYPE)
		SONDE_TRY(rows_by_type(session, r, n, &rows));
	else
		SONDE_TRY(rows_by_object(session, r, n, &rows));
	sonde_report_begin(out, "core.retained", 1);
	sonde_report_table_begin(
		out, "rows", NULL, tables[options->by].columns, tables[options->by].n);
	report_rows(session, r, options->by, &rows, out);
	sonde_report_table_end(out);
	sonde_report_field(
		out, "live_bytes", "live bytes", sonde_value_bytes(session->marks->live_bytes));
	return sonde_report_end(out, &session->notes);
}
