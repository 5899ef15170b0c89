#include "core/export_value.h"

#include "output/report.h"

struct sonde_go_value_limits sonde_core_value_limits(const struct sonde_core_value_options *options)
{
	enum { MAX_ELEMENTS = 1 << 20, MAX_STRING_BYTES = 1 << 24, NODES_AN_ELEMENT = 16 };
	struct sonde_go_value_limits l = sonde_go_value_limits_default();
	if (options->has_depth)
		l.max_depth =
			(unsigned)sonde_min(options->depth, (uint64_t)SONDE_GO_VALUE_MAX_NESTING);
	if (options->elements)
		l.max_elements = (unsigned)sonde_min(options->elements, (uint64_t)MAX_ELEMENTS);
	if (options->string_bytes)
		l.max_string_bytes =
			(unsigned)sonde_min(options->string_bytes, (uint64_t)MAX_STRING_BYTES);
	l.max_nodes = sonde_max(l.max_nodes, l.max_elements * NODES_AN_ELEMENT);
	return l;
}

static void write_value(struct sonde_json *j, const struct sonde_core_session *s, const char *key,
	const struct sonde_go_value *v)
{
	sonde_json_object_begin(j, key);
	if (v->name)
		sonde_json_text(j, "name", v->name);
	if (v->type)
		sonde_json_text(j, "type", sonde_go_type_of(s->types, v->type)->name);
	if (v->is_nil)
		sonde_json_bool(j, "nil", true);
	if (v->has_addr && !v->is_nil)
		sonde_json_addr(j, "addr", v->addr);
	if (v->has_len)
		sonde_json_u64(j, "len", v->len);
	if (v->has_cap)
		sonde_json_u64(j, "cap", v->cap);
	if (v->text)
		sonde_json_string(j, "value", v->text, v->text_len);
	if (v->first) {
		const char *children = v->parts ? "fields"
			: v->is_map             ? "entries"
			: v->has_len            ? "elements"
						: "to";
		sonde_json_array_begin(j, children);
		for (const struct sonde_go_value *c = v->first; c; c = c->next)
			write_value(j, s, NULL, c);
		sonde_json_array_end(j);
	}
	if (v->n_more)
		sonde_json_u64(j, "more", v->n_more);
	if (v->note)
		sonde_json_text(j, "note", v->note);
	sonde_json_object_end(j);
}

void sonde_core_report_value(struct sonde_report *out, const struct sonde_core_session *s,
	const char *key, const struct sonde_go_value *value)
{
	struct sonde_json *j = sonde_report_json(out);
	if (!j)
		return;
	if (value)
		write_value(j, s, key, value);
	else
		sonde_json_null(j, key);
}
