#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "output/report.h"
#include "output/text.h"
#include "trace/report.h"

/* What is let through, made once. */
struct filter {
	const struct sonde_trace_events_options *o;
	bool kinds[256];
	int64_t from_ns, to_ns;
	bool from_known;
	/* Whether a stable id of a string is a wanted function: 0 not looked at, 1 no, 2 yes. */
	uint8_t *functions;
	size_t n_functions;
};

static struct sonde_error *make_filter(
	struct filter *f, const struct sonde_trace_events_options *options)
{
	*f = (struct filter){.o = options, .from_ns = INT64_MIN, .to_ns = INT64_MAX};
	memset(f->kinds, !options->n_types, sizeof(f->kinds));
	for (size_t i = 0; i < options->n_types; i++) {
		int kind = sonde_trace_kind_find(options->types[i]);
		if (kind < 0)
			return sonde_error_new(
				SONDE_USAGE, "--type: no event is called '%s'", options->types[i]);
		f->kinds[kind] = true;
	}
	return NULL;
}

static bool names_task(const struct sonde_trace_event *e, uint64_t task)
{
	const char *args = sonde_trace_event_specs[e->kind].args;
	for (unsigned i = 0; args[i]; i++)
		if (args[i] == 't' && e->args[i] == task)
			return true;
	return false;
}

static bool is_wanted_function(struct filter *f, struct sonde_trace_reader *reader, uint64_t string)
{
	uint32_t id = sonde_trace_intern(reader, string);
	if (id == UINT32_MAX)
		return false;
	if (id >= f->n_functions) {
		size_t n = id + 1024;
		uint8_t *bigger = realloc(f->functions, n);
		if (!bigger)
			return false;
		memset(bigger + f->n_functions, 0, n - f->n_functions);
		f->functions = bigger;
		f->n_functions = n;
	}
	if (!f->functions[id])
		f->functions[id] = strstr(sonde_trace_interned(reader, id), f->o->function) ? 2 : 1;
	return f->functions[id] == 2;
}

static bool has_function(
	struct filter *f, struct sonde_trace_reader *reader, const struct sonde_trace_event *e)
{
	const struct sonde_trace_event_spec *spec = &sonde_trace_event_specs[e->kind];
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	for (unsigned i = 0; i < spec->n_args; i++) {
		if (!(spec->stack_args >> i & 1))
			continue;
		size_t n = sonde_trace_stack(reader, e->args[i], frames);
		for (size_t k = 0; k < n; k++)
			if (is_wanted_function(f, reader, frames[k].func))
				return true;
	}
	return false;
}

static bool passes(
	struct filter *f, struct sonde_trace_reader *reader, const struct sonde_trace_event *e)
{
	const struct sonde_trace_events_options *o = f->o;
	if (!f->kinds[e->kind] || e->ns < f->from_ns || e->ns > f->to_ns)
		return false;
	if (o->has_g && e->g != o->g && e->subject_g != o->g)
		return false;
	if (o->has_p && e->p != o->p && e->subject_p != o->p)
		return false;
	if (o->has_m && e->m != o->m)
		return false;
	if (o->has_task && !names_task(e, o->task))
		return false;
	return !o->function || has_function(f, reader, e);
}

/* --- text --- */

static void put_number(struct sonde_sink *sink, uint64_t v)
{
	char digits[SONDE_TEXT_NUMBER_BYTES];
	sonde_sink_write(sink, digits, sonde_text_u64(digits, v));
}

static void put_signed(struct sonde_sink *sink, int64_t v)
{
	if (v < 0)
		sonde_sink_char(sink, '-');
	put_number(sink, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void put_id(struct sonde_sink *sink, const char *letter, uint64_t id)
{
	sonde_sink_str(sink, letter);
	if (id == SONDE_TRACE_NO_ID)
		sonde_sink_char(sink, '-');
	else
		put_number(sink, id);
}

static void put_escaped(
	struct sonde_sink *sink, struct sonde_buf *scratch, const char *s, size_t len)
{
	scratch->len = 0;
	sonde_text_escape(scratch, s, len);
	sonde_sink_write(sink, scratch->data, scratch->len);
}

static void put_string(struct sonde_sink *sink, struct sonde_buf *scratch,
	const struct sonde_trace_reader *reader, uint64_t id)
{
	size_t len;
	const char *s = sonde_trace_string(reader, id, &len);
	if (!s) {
		put_id(sink, "?", id);
		return;
	}
	sonde_sink_char(sink, '"');
	put_escaped(sink, scratch, s, len);
	sonde_sink_char(sink, '"');
}

struct arg {
	const char *name;
	size_t len;
	char letter;
	uint64_t value;
};

/* Names and values of an event's arguments, with those behind the catalogue's. Returns how many. */
static size_t arguments(const struct sonde_trace_event *e, struct arg to[SONDE_TRACE_MAX_ARGS])
{
	const struct sonde_trace_event_spec *spec = &sonde_trace_event_specs[e->kind];
	const char *name = spec->names;
	size_t n = 0;
	for (; n < spec->n_args; n++) {
		size_t len = strcspn(name, " ");
		to[n] = (struct arg){name, len, spec->args[n], e->args[n]};
		name += len + (name[len] == ' ');
	}
	if (e->kind == SONDE_TRACE_STW_END)
		to[n++] = (struct arg){"kind_string", 11, 'S', e->args[0]};
	if (e->kind == SONDE_TRACE_USER_TASK_END) {
		to[n++] = (struct arg){"parent_task", 11, 't', e->args[2]};
		to[n++] = (struct arg){"name_string", 11, 'S', e->args[3]};
	}
	return n;
}

static void put_frames(struct sonde_sink *sink, struct sonde_buf *scratch,
	const struct sonde_trace_reader *reader, const char *title, uint64_t stack)
{
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	size_t n = sonde_trace_stack(reader, stack, frames), len;
	if (stack && title)
		sonde_sink_printf(sink, "  %s:\n", title);
	for (size_t i = 0; i < n; i++) {
		sonde_sink_str(sink, "    ");
		const char *s = sonde_trace_string(reader, frames[i].func, &len);
		put_escaped(sink, scratch, s ? s : "?", s ? len : 1);
		sonde_sink_printf(sink, " 0x%" PRIx64 " ", frames[i].pc);
		s = sonde_trace_string(reader, frames[i].file, &len);
		put_escaped(sink, scratch, s ? s : "?", s ? len : 1);
		sonde_sink_printf(sink, ":%" PRIu64 "\n", frames[i].line);
	}
}

static void put_transition(struct sonde_sink *sink, const char *letter, uint64_t id,
	const char *before, const char *after)
{
	sonde_sink_char(sink, ' ');
	put_id(sink, letter, id);
	sonde_sink_char(sink, ':');
	sonde_sink_str(sink, before);
	sonde_sink_str(sink, "->");
	sonde_sink_str(sink, after);
}

static void text_event(struct sonde_sink *sink, struct sonde_buf *scratch,
	const struct sonde_trace_reader *reader, const struct sonde_trace_event *e, bool stacks)
{
	struct arg args[SONDE_TRACE_MAX_ARGS];
	size_t n = arguments(e, args);
	put_signed(sink, e->ns);
	put_id(sink, " m", e->m);
	put_id(sink, " p", e->p);
	put_id(sink, " g", e->g);
	sonde_sink_char(sink, ' ');
	sonde_sink_str(sink, sonde_trace_kind_name(e->kind));
	for (size_t i = 0; i < n; i++) {
		sonde_sink_char(sink, ' ');
		sonde_sink_write(sink, args[i].name, args[i].len);
		sonde_sink_char(sink, '=');
		if (args[i].letter == 'S')
			put_string(sink, scratch, reader, args[i].value);
		else
			put_signed(sink, (int64_t)args[i].value);
	}
	if (e->g_before | e->g_after)
		put_transition(sink, "g", e->subject_g, sonde_trace_g_status_name(e->g_before),
			sonde_trace_g_status_name(e->g_after));
	if (e->p_before | e->p_after)
		put_transition(sink, "p", e->subject_p, sonde_trace_p_status_name(e->p_before),
			sonde_trace_p_status_name(e->p_after));
	sonde_sink_str(sink, e->flags & SONDE_TRACE_FORCED ? " forced\n" : "\n");
	if (!stacks)
		return;
	if (sonde_trace_event_specs[e->kind].stack_args & 2 && args[1].letter == 'N')
		put_frames(sink, scratch, reader, "new_stack", e->args[1]);
	put_frames(sink, scratch, reader, NULL, sonde_trace_event_stack(e));
}

/* --- JSON --- */

static void json_id(struct sonde_json *j, const char *key, uint64_t id)
{
	if (id == SONDE_TRACE_NO_ID)
		sonde_json_null(j, key);
	else
		sonde_json_u64(j, key, id);
}

static void json_string(
	struct sonde_json *j, const char *key, const struct sonde_trace_reader *reader, uint64_t id)
{
	size_t len;
	const char *s = sonde_trace_string(reader, id, &len);
	sonde_json_string(j, key, s, len);
}

static void json_frames(struct sonde_json *j, const char *key,
	const struct sonde_trace_reader *reader, uint64_t stack)
{
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	size_t n = sonde_trace_stack(reader, stack, frames);
	sonde_json_array_begin(j, key);
	for (size_t i = 0; i < n; i++) {
		sonde_json_object_begin(j, NULL);
		json_string(j, "function", reader, frames[i].func);
		json_string(j, "file", reader, frames[i].file);
		sonde_json_u64(j, "line", frames[i].line);
		sonde_json_addr(j, "pc", frames[i].pc);
		sonde_json_object_end(j);
	}
	sonde_json_array_end(j);
}

static void json_arguments(struct sonde_json *j, const struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e)
{
	struct arg args[SONDE_TRACE_MAX_ARGS];
	size_t n = arguments(e, args);
	sonde_json_object_begin(j, "args");
	for (size_t i = 0; i < n; i++) {
		char name[32];
		snprintf(name, sizeof(name), "%.*s", (int)args[i].len, args[i].name);
		if (args[i].letter == 'S')
			json_string(j, name, reader, args[i].value);
		else
			json_id(j, name, args[i].value);
	}
	sonde_json_object_end(j);
}

static void json_subject(
	struct sonde_json *j, const char *key, uint64_t id, const char *before, const char *after)
{
	sonde_json_object_begin(j, key);
	json_id(j, "id", id);
	sonde_json_text(j, "before", before);
	sonde_json_text(j, "after", after);
	sonde_json_object_end(j);
}

static void json_event(struct sonde_json *j, const struct sonde_trace_reader *reader,
	const struct sonde_trace_event *e, bool stacks)
{
	sonde_json_object_begin(j, NULL);
	sonde_json_i64(j, "ns", e->ns);
	sonde_json_text(j, "type", sonde_trace_kind_name(e->kind));
	json_id(j, "thread", e->m);
	json_id(j, "proc", e->p);
	json_id(j, "goroutine", e->g);
	sonde_json_u64(j, "generation", e->generation);
	sonde_json_u64(j, "offset", e->offset);
	json_arguments(j, reader, e);
	if (e->g_before | e->g_after)
		json_subject(j, "goroutine_state", e->subject_g,
			sonde_trace_g_status_name(e->g_before),
			sonde_trace_g_status_name(e->g_after));
	if (e->p_before | e->p_after)
		json_subject(j, "proc_state", e->subject_p, sonde_trace_p_status_name(e->p_before),
			sonde_trace_p_status_name(e->p_after));
	if (e->flags & SONDE_TRACE_MADE)
		sonde_json_bool(j, "made", true);
	if (e->flags & SONDE_TRACE_FORCED)
		sonde_json_bool(j, "forced", true);
	if (stacks) {
		unsigned stack_args = sonde_trace_event_specs[e->kind].stack_args;
		if (sonde_trace_event_specs[e->kind].stack_arg >= 0)
			json_frames(j, "stack", reader, sonde_trace_event_stack(e));
		if (stack_args & 2 && sonde_trace_event_specs[e->kind].args[1] == 'N')
			json_frames(j, "new_stack", reader, e->args[1]);
	}
	sonde_json_object_end(j);
}

/* --- the report --- */

static struct sonde_error *report_all(struct sonde_trace_reader *reader, struct filter *f,
	bool follow, struct sonde_report *out, uint64_t *n_shown)
{
	const struct sonde_trace_events_options *o = f->o;
	sonde_cleanup(sonde_buf) struct sonde_buf scratch = {0};
	const struct sonde_trace_event *e;
	while (!sonde_report_failed(out) && (!o->limit || *n_shown < o->limit)) {
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		struct sonde_sink *text = sonde_report_text(out);
		if (follow && text && e->kind == SONDE_TRACE_SYNC)
			sonde_sink_write_out(text, "", 0); /* what one generation had is seen */
		if (!f->from_known) {
			sonde_trace_window_settle(&o->window, e->ns, &f->from_ns, &f->to_ns);
			f->from_known = true;
		}
		if (e->ns > f->to_ns)
			break; /* times only rise */
		if (!passes(f, reader, e))
			continue;
		++*n_shown;
		if (text)
			text_event(text, &scratch, reader, e, o->stacks);
		else
			json_event(sonde_report_json(out), reader, e, o->stacks);
	}
	return NULL;
}

struct sonde_error *sonde_trace_report_events(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_events_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	struct filter f;
	uint64_t n_shown = 0;
	SONDE_TRY(make_filter(&f, options));
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	sonde_report_begin(out, "trace.events", 1);
	sonde_report_field(out, "file", NULL, sonde_value_text(path));
	sonde_report_field(out, "format_minor", NULL,
		sonde_value_count(sonde_trace_reader_info(reader)->version));
	sonde_report_list_begin(out, "events");
	struct sonde_error *err =
		report_all(reader, &f, reader_options && reader_options->follow, out, &n_shown);
	free(f.functions);
	SONDE_TRY(err);
	sonde_report_list_end(out);
	sonde_report_field(out, "shown", NULL, sonde_value_count(n_shown));
	sonde_trace_reader_add_notes(reader, &notes);
	return sonde_report_end(out, &notes);
}
