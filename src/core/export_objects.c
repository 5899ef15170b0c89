#include <inttypes.h>
#include <string.h>

#include "core/export_root.h"
#include "core/export_value.h"
#include "core/histogram.h"
#include "core/names.h"
#include "core/objects.h"
#include "core/paths.h"
#include "core/referrers.h"
#include "core/report.h"
#include "core/retained.h"
#include "output/report.h"

enum { DEFAULT_REFERRERS = 10, MAX_REFERRERS = 100000 };

static const char *const pointer_words[] = {
	[SONDE_GO_NOSCAN] = "no pointers",
	[SONDE_GO_BITS] = "pointers by heap bits",
	[SONDE_GO_HEADER] = "a type header",
	[SONDE_GO_LARGE] = "an object of its own span",
	[SONDE_GO_USER_ARENA] = "user arena",
};

/* --- one object --- */

/* What it is, as a tree; *value NULL where nobody knows its type. */
static struct sonde_error *value_of(struct sonde_core_session *s, const struct sonde_core_object *o,
	const struct sonde_go_value_limits *limits, struct sonde_arena *arena,
	const struct sonde_go_value **value)
{
	uint32_t id = o->typing & ~SONDE_CORE_TYPE_MANY;
	const struct sonde_go_type *type = sonde_go_type_of(s->types, id);
	*value = NULL;
	if (!id || !o->allocated)
		return NULL;
	if (id == s->types->string_id)
		*value = sonde_go_value_row(
			s->types, s->types->uint8_id, o->value, o->room_bytes, limits, arena);
	else if (!strncmp(type->name, "closure ", 8))
		*value = sonde_go_value_func(s->types, o->value, limits, arena);
	else if (type->kind == SONDE_GO_KIND_INVALID)
		return NULL; /* a part of a map, a channel: a name only */
	else if (o->typing & SONDE_CORE_TYPE_MANY)
		*value = sonde_go_value_row(s->types, id, o->value,
			type->size_bytes ? o->room_bytes / type->size_bytes : 0, limits, arena);
	else
		*value = sonde_go_value_at(s->types, id, o->value, limits, arena);
	return *value ? NULL : &sonde_enomem;
}

/* A field a line, or the whole in one. */
static void report_value_lines(
	struct sonde_report *out, struct sonde_core_session *s, const struct sonde_go_value *v)
{
	if (!v) {
		sonde_report_line(out, "    (no type tells what is in it: see sonde core read)");
		return;
	}
	if (!v->first || (!v->parts && !(v->kind == SONDE_GO_KIND_ARRAY))) {
		sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
		sonde_go_value_text(s->types, v, &text);
		sonde_report_line(out, "    %s", sonde_buf_text(&text));
		return;
	}
	if (v->text)
		sonde_report_line(out, "    %.*s", (int)v->text_len, v->text);
	uint64_t i = 0;
	for (const struct sonde_go_value *c = v->first; c; c = c->next, i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
		if (c->name)
			sonde_buf_printf(&text, "%s", c->name);
		else
			sonde_buf_printf(&text, "[%" PRIu64 "]", i);
		sonde_buf_printf(&text, "  %s  ", sonde_go_type_of(s->types, c->type)->name);
		sonde_go_value_text(s->types, c, &text);
		sonde_report_line(out, "    %s", sonde_buf_text(&text));
	}
	if (v->n_more)
		sonde_report_line(out, "    ... %" PRIu64 " more", v->n_more);
	if (v->note)
		sonde_report_line(out, "    <%s>", v->note);
}

static void report_referrer(
	struct sonde_report *out, struct sonde_core_session *s, const struct sonde_core_referrer *r)
{
	sonde_report_item_begin(out);
	if (r->is_root) {
		sonde_core_report_root(out, s, &r->root);
	} else {
		const struct sonde_go_span *span = sonde_go_heap_span_of(s->heap, r->object);
		uint64_t addr = sonde_go_span_addr(span, r->object - span->first);
		sonde_cleanup(sonde_buf) struct sonde_buf type = {0}, field = {0};
		sonde_core_type_name(s, s->typing->of[r->object], &type);
		sonde_core_field_name(s, span, r->object, r->offset, &field);
		sonde_report_field(out, "addr", NULL, sonde_value_addr(addr));
		sonde_report_field(out, "type", NULL, sonde_value_text(sonde_buf_text(&type)));
		sonde_report_field(out, "offset", NULL,
			r->offset == SONDE_CORE_BY_SPECIAL ? sonde_value_none()
							   : sonde_value_count(r->offset));
		sonde_report_field(out, "field", NULL, sonde_value_text(sonde_buf_text(&field)));
		sonde_report_line(out, "    0x%" PRIx64 "  %s%s", addr, sonde_buf_text(&type),
			sonde_buf_text(&field));
	}
	sonde_report_field(out, "to_offset", NULL, sonde_value_count(r->to));
	sonde_report_item_end(out);
}

/* Its retained bytes; false where it is not live. */
static struct sonde_error *retained_of(
	struct sonde_core_session *s, const struct sonde_core_object *o, uint64_t *bytes)
{
	sonde_cleanup(sonde_core_retained) struct sonde_core_retained *r = NULL;
	SONDE_TRY(sonde_core_retained_make(s, &r));
	*bytes = 0;
	for (uint32_t v = 1; v < r->n; v++)
		if (r->what[v] == o->number)
			*bytes = r->bytes[v];
	return NULL;
}

struct sonde_error *sonde_core_report_object(struct sonde_core_session *session,
	const struct sonde_core_object_options *options, struct sonde_report *out)
{
	struct sonde_core_session *s = session;
	uint64_t max = options->n_referrers ? options->n_referrers : DEFAULT_REFERRERS;
	if (max > MAX_REFERRERS)
		return sonde_error_new(SONDE_USAGE, "at most %d referrers", MAX_REFERRERS);
	struct sonde_core_object o;
	SONDE_TRY(sonde_core_object_at(s, options->addr, &o));
	sonde_cleanup(sonde_arena) struct sonde_arena arena;
	sonde_arena_init(&arena);
	struct sonde_go_value_limits limits = sonde_core_value_limits(&options->values);
	const struct sonde_go_value *value;
	SONDE_TRY(value_of(s, &o, &limits, &arena, &value));
	sonde_cleanup(sonde_core_referrers) struct sonde_core_referrers referrers = {0};
	SONDE_TRY(sonde_core_referrers_find(s, o.number, max, &referrers));
	uint64_t retained = 0;
	bool has_retained = o.live && !options->no_retained;
	if (has_retained)
		SONDE_TRY(retained_of(s, &o, &retained));
	sonde_cleanup(sonde_buf) struct sonde_buf type = {0}, field = {0};
	sonde_core_type_name(s, o.typing, &type);
	if (options->addr != o.value && o.live)
		sonde_core_field_name(s, o.span, o.number, options->addr - o.addr, &field);
	sonde_report_begin(out, "core.object", 1);
	sonde_report_field(out, "addr", "object", sonde_value_addr(o.addr));
	sonde_report_field(out, "type", "type", sonde_value_text(sonde_buf_text(&type)));
	sonde_report_field(out, "state", "state", sonde_value_text(sonde_core_object_state(&o)));
	sonde_report_field(out, "slot_bytes", "slot", sonde_value_bytes(o.span->slot_bytes));
	sonde_report_field(out, "value_addr", NULL, sonde_value_addr(o.value));
	sonde_report_field(out, "offset", NULL, sonde_value_count(options->addr - o.addr));
	sonde_report_field(
		out, "field", NULL, sonde_value_text(field.len ? sonde_buf_text(&field) : NULL));
	if (options->addr != o.value)
		sonde_report_line(out, "address: 0x%" PRIx64 " is at offset %" PRIu64 "%s%s",
			options->addr, options->addr - o.addr, field.len ? ": " : "",
			field.len ? sonde_buf_text(&field) : "");
	sonde_report_section_begin(out, "span", NULL);
	sonde_report_field(out, "addr", NULL, sonde_value_addr(o.span->base));
	sonde_report_field(out, "size_class", NULL, sonde_value_count(o.span->size_class));
	sonde_report_field(out, "slots", NULL, sonde_value_count(o.span->n_slots));
	sonde_report_field(out, "slot", NULL, sonde_value_count(o.slot));
	sonde_report_field(
		out, "pointers", NULL, sonde_value_text(pointer_words[o.span->pointers]));
	sonde_report_section_end(out);
	sonde_report_line(out,
		"span: 0x%" PRIx64 ", size class %u, slot %" PRIu32 " of %" PRIu32 ", %s",
		o.span->base, o.span->size_class, o.slot, o.span->n_slots,
		pointer_words[o.span->pointers]);
	sonde_report_field(out, "retained_bytes", has_retained ? "retained" : NULL,
		has_retained ? sonde_value_bytes(retained) : sonde_value_none());
	sonde_report_blank(out);
	sonde_report_heading(out, "value:");
	sonde_core_report_value(out, s, "value", value);
	if (!sonde_report_json(out))
		report_value_lines(out, s, value);
	sonde_report_blank(out);
	sonde_report_field(out, "root_referrers", NULL, sonde_value_count(referrers.n_roots));
	sonde_report_field(out, "object_referrers", NULL, sonde_value_count(referrers.n_pointers));
	sonde_report_heading(out,
		"referrers: %" PRIu64 " roots, %" PRIu64 " pointers of live objects",
		referrers.n_roots, referrers.n_pointers);
	sonde_report_list_begin(out, "referrers");
	for (size_t i = 0; i < referrers.all.n && !sonde_report_failed(out); i++)
		report_referrer(out, s, &referrers.all.items[i]);
	sonde_report_list_end(out);
	uint64_t n = referrers.n_roots + referrers.n_pointers;
	if (n > referrers.all.n)
		sonde_report_line(out, "    ... %" PRIu64 " more", n - referrers.all.n);
	return sonde_report_end(out, &s->notes);
}

/* --- many --- */

struct filter {
	struct sonde_core_session *s;
	const struct sonde_core_objects_options *options;
	struct sonde_u32_map answers; /* typing -> 1 no, 2 yes: each name is looked at once */
	bool no_memory;
};

static bool name_passes(struct filter *f, uint32_t typing)
{
	if (!f->options->type && !f->options->package)
		return true;
	bool was_new;
	uint32_t *answer = sonde_u32_map_put(&f->answers, typing, &was_new);
	if (!answer) {
		f->no_memory = true;
		return false;
	}
	if (was_new) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		sonde_core_type_name(f->s, typing, &b);
		const char *name = sonde_buf_text(&b), *start;
		bool pass = !f->options->type || strstr(name, f->options->type);
		if (pass && f->options->package) {
			size_t len = sonde_core_package_of(name, &start);
			pass = len == strlen(f->options->package) &&
				!memcmp(start, f->options->package, len);
		}
		*answer = pass ? 2 : 1;
	}
	return *answer == 2;
}

static bool span_passes(
	const struct sonde_core_objects_options *o, const struct sonde_go_span *span)
{
	uint64_t end = span->base + span->n_slots * span->slot_bytes;
	return !(o->has_min && span->slot_bytes < o->min_bytes) &&
		!(o->has_max && span->slot_bytes > o->max_bytes) &&
		!(o->has_from && end <= o->from) && !(o->has_to && span->base >= o->to);
}

static bool object_passes(struct filter *f, const struct sonde_core_object *o)
{
	const struct sonde_core_objects_options *want = f->options;
	if (!o->allocated && !o->live)
		return false;
	if (want->state == SONDE_CORE_OBJECTS_LIVE && !o->live)
		return false;
	if (want->state == SONDE_CORE_OBJECTS_GARBAGE && o->live)
		return false;
	return !(want->has_from && o->addr < want->from) &&
		!(want->has_to && o->addr >= want->to) && name_passes(f, o->typing);
}

static const struct sonde_column columns[] = {
	{"addr", "ADDRESS"},
	{"bytes", "BYTES", .right = true},
	{"state", "STATE"},
	{"type", "TYPE"},
};

struct sonde_error *sonde_core_report_objects(struct sonde_core_session *session,
	const struct sonde_core_objects_options *options, struct sonde_report *out)
{
	struct sonde_core_session *s = session;
	SONDE_TRY(sonde_core_session_need_typing(s));
	struct filter f = {.s = s, .options = options};
	uint64_t n = 0, bytes = 0, n_shown = 0;
	sonde_cleanup(sonde_buf) struct sonde_buf name = {0};
	sonde_report_begin(out, "core.objects", 1);
	sonde_report_table_begin(out, "objects", NULL, columns, SONDE_ARRAY_LEN(columns));
	for (uint32_t i = 0; i < s->heap->n_spans && !sonde_report_failed(out); i++) {
		const struct sonde_go_span *span = &s->heap->spans[i];
		for (uint32_t slot = 0; span_passes(options, span) && slot < span->n_slots;
			slot++) {
			struct sonde_core_object o = sonde_core_object_of(s, span, slot);
			if (!object_passes(&f, &o))
				continue;
			n++;
			bytes += span->slot_bytes;
			if (options->limit && n_shown >= options->limit)
				continue;
			n_shown++;
			name.len = 0;
			sonde_core_type_name(s, o.typing, &name);
			sonde_report_row(out, sonde_value_addr(o.addr),
				sonde_value_bytes(span->slot_bytes),
				sonde_value_text(sonde_core_object_state(&o)),
				sonde_value_text(sonde_buf_text(&name)));
		}
	}
	sonde_u32_map_deinit(&f.answers);
	sonde_report_table_end(out);
	sonde_report_field(out, "count", NULL, sonde_value_count(n));
	sonde_report_field(out, "bytes", NULL, sonde_value_bytes(bytes));
	sonde_report_field(out, "shown", NULL, sonde_value_count(n_shown));
	sonde_report_blank(out);
	sonde_report_line(out, "%" PRIu64 " objects, %" PRIu64 " bytes; %" PRIu64 " shown", n,
		bytes, n_shown);
	if (f.no_memory)
		sonde_notes_add(&s->notes, "out of memory: the list is not complete", 0, "objects");
	return sonde_report_end(out, &s->notes);
}
