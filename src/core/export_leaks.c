#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/goroutines.h"
#include "core/leaks.h"
#include "core/names.h"
#include "core/ownerpaths.h"
#include "core/report.h"
#include "output/report.h"

enum {
	SUSPECT_PERCENT = 10, /* of the live bytes */
	FOLLOW_PERCENT = 80, /* a way goes on where one part keeps that much */
	MANY_EQUAL = 10, /* goroutines with one stack that are worth a word */
	MAX_PARTS = 3,
	MAX_IDS = 8,
	MAX_GROUPS = 20,
	MAX_CALLS = 32,
};

struct tree {
	struct sonde_core_session *s;
	const struct sonde_core_retained *r;
	const struct sonde_core_owner_nodes *nodes;
	uint64_t *retained, *n_below; /* by node, itself included */
	uint32_t *child, *sibling; /* by node, 0 = none */
	bool *told; /* by node: at or below the end of a suspect's way */
};

static void name_node(const struct tree *t, uint32_t at, struct sonde_buf *to)
{
	const struct sonde_core_owner_node *node = &t->nodes->items[at];
	if (node->what == SONDE_CORE_OWNER_IS_ROOT)
		sonde_core_owner_name(t->s, &t->r->owners.items[node->owner], to);
	else
		sonde_core_type_name(t->s, node->what, to);
}

static bool fill_tree(struct tree *t)
{
	size_t n = t->nodes->n;
	t->retained = sonde_new_array(uint64_t, n);
	t->n_below = sonde_new_array(uint64_t, n);
	t->child = sonde_new_array(uint32_t, n);
	t->sibling = sonde_new_array(uint32_t, n);
	t->told = sonde_new_array(bool, n);
	if (!t->retained || !t->n_below || !t->child || !t->sibling || !t->told)
		return false;
	for (size_t i = n; i-- > 0;) {
		const struct sonde_core_owner_node *node = &t->nodes->items[i];
		t->retained[i] += node->bytes;
		t->n_below[i] += node->n_objects;
		if (!i)
			break;
		t->retained[node->parent] += t->retained[i];
		t->n_below[node->parent] += t->n_below[i];
		t->sibling[i] = t->child[node->parent];
		t->child[node->parent] = (uint32_t)i;
	}
	return true;
}

static uint32_t largest_child(const struct tree *t, uint32_t at, const uint32_t *but, size_t n_but)
{
	uint32_t best = 0;
	for (uint32_t c = t->child[at]; c; c = t->sibling[c]) {
		bool taken = false;
		for (size_t i = 0; i < n_but; i++)
			taken = taken || but[i] == c;
		if (!taken && (!best || t->retained[c] > t->retained[best]))
			best = c;
	}
	return best;
}

static struct sonde_value node_addr(const struct tree *t, uint32_t at)
{
	uint32_t v = t->nodes->items[at].vertex;
	if (!v || t->r->what[v] >= t->r->n_slots)
		return sonde_value_none();
	uint32_t object = t->r->what[v];
	const struct sonde_go_span *span = sonde_go_heap_span_of(t->s->heap, object);
	return sonde_value_addr(sonde_go_span_addr(span, object - span->first));
}

static void report_node(
	struct sonde_report *out, const struct tree *t, uint32_t at, const char *prefix)
{
	sonde_cleanup(sonde_buf) struct sonde_buf name = {0}, where = {0};
	struct sonde_value addr = node_addr(t, at);
	uint64_t n = t->nodes->items[at].n_objects;
	name_node(t, at, &name);
	if (addr.kind != SONDE_VALUE_NONE)
		sonde_buf_printf(
			&where, n > 1 ? ", the largest at 0x%" PRIx64 : " at 0x%" PRIx64, addr.u64);
	sonde_report_item_begin(out);
	sonde_report_field(out, "what", NULL, sonde_value_text(sonde_buf_text(&name)));
	sonde_report_field(out, "objects", NULL, sonde_value_count(n));
	sonde_report_field(out, "addr", NULL, addr);
	sonde_report_field(out, "retained_bytes", NULL, sonde_value_bytes(t->retained[at]));
	sonde_report_item_end(out);
	if (n)
		sonde_report_line(out,
			"    %s%s: %" PRIu64 " object%s%s, retaining %" PRIu64 " bytes", prefix,
			sonde_buf_text(&name), n, n == 1 ? "" : "s", sonde_buf_text(&where),
			t->retained[at]);
	else
		sonde_report_line(out, "    %s%s, retaining %" PRIu64 " bytes", prefix,
			sonde_buf_text(&name), t->retained[at]);
}

static void tell(struct tree *t, uint32_t end)
{
	t->told[end] = true;
	for (uint32_t i = end + 1; i < t->nodes->n; i++)
		t->told[i] = t->told[i] || t->told[t->nodes->items[i].parent];
}

/* From `top` down to where no single part keeps most of it. */
static void report_suspect(struct sonde_report *out, struct tree *t, uint32_t top)
{
	uint64_t live = t->s->marks->live_bytes;
	sonde_cleanup(sonde_buf) struct sonde_buf name = {0};
	name_node(t, top, &name);
	sonde_report_item_begin(out);
	sonde_report_field(out, "kind", NULL, sonde_value_text("owner"));
	sonde_report_field(out, "what", NULL, sonde_value_text(sonde_buf_text(&name)));
	sonde_report_field(out, "bytes", NULL, sonde_value_bytes(t->retained[top]));
	sonde_report_field(out, "share", NULL, sonde_value_share(t->retained[top], live));
	sonde_report_field(out, "objects", NULL, sonde_value_count(t->n_below[top]));
	sonde_report_heading(out, "%s retains %" PRIu64 " bytes (%.1f%% of what is alive)",
		sonde_buf_text(&name), t->retained[top],
		100.0 * (double)t->retained[top] / (double)live);
	sonde_report_list_begin(out, "path");
	uint32_t at = top;
	for (;;) {
		report_node(out, t, at, "");
		uint32_t next = largest_child(t, at, NULL, 0);
		if (!next || t->retained[next] < t->retained[at] / 100 * FOLLOW_PERCENT)
			break;
		at = next;
	}
	sonde_report_list_end(out);
	sonde_report_list_begin(out, "parts");
	uint32_t parts[MAX_PARTS];
	size_t n = 0;
	for (uint32_t c; n < MAX_PARTS && (c = largest_child(t, at, parts, n)); n++) {
		report_node(out, t, c, "  of which ");
		parts[n] = c;
	}
	sonde_report_list_end(out);
	sonde_report_item_end(out);
	sonde_report_blank(out);
	tell(t, top);
}

struct class
{
	uint32_t what;
	uint64_t bytes, n;
};

/* All objects of a type together, where no suspect above has told of them: the topmost of each way count. */
static struct sonde_error *report_classes(struct sonde_report *out, const struct tree *t)
{
	uint64_t live = t->s->marks->live_bytes;
	size_t n_types = 2 * t->s->types->by_id.n;
	sonde_cleanup(free) struct class *classes = sonde_new_array(struct class, n_types);
	if (!classes)
		return &sonde_enomem;
	for (uint32_t i = 1; i < t->nodes->n; i++) {
		const struct sonde_core_owner_node *node = &t->nodes->items[i];
		if (t->told[i] || node->what == SONDE_CORE_OWNER_IS_ROOT)
			continue;
		bool below = false;
		for (uint32_t up = node->parent; up && !below; up = t->nodes->items[up].parent)
			below = t->nodes->items[up].what == node->what;
		struct class *c = &classes[(size_t)(node->what & ~SONDE_CORE_TYPE_MANY) * 2 +
			(node->what & SONDE_CORE_TYPE_MANY ? 1 : 0)];
		c->what = node->what;
		c->n += node->n_objects;
		c->bytes += below ? 0 : t->retained[i];
	}
	for (size_t i = 2; i < n_types; i++) { /* from 2: nothing can be said of unknown ones */
		const struct class *c = &classes[i];
		if (!c->n || c->bytes < live / 100 * SUSPECT_PERCENT)
			continue;
		sonde_cleanup(sonde_buf) struct sonde_buf name = {0};
		sonde_core_type_name(t->s, c->what, &name);
		sonde_report_item_begin(out);
		sonde_report_field(out, "kind", NULL, sonde_value_text("type"));
		sonde_report_field(out, "what", NULL, sonde_value_text(sonde_buf_text(&name)));
		sonde_report_field(out, "bytes", NULL, sonde_value_bytes(c->bytes));
		sonde_report_field(out, "share", NULL, sonde_value_share(c->bytes, live));
		sonde_report_field(out, "objects", NULL, sonde_value_count(c->n));
		sonde_report_item_end(out);
		sonde_report_heading(out,
			"%" PRIu64 " objects %s together retain %" PRIu64
			" bytes (%.1f%% of what is alive), below several owners",
			c->n, sonde_buf_text(&name), c->bytes,
			100.0 * (double)c->bytes / (double)live);
		sonde_report_blank(out);
	}
	return NULL;
}

static struct sonde_error *report_suspects(struct sonde_report *out, struct tree *t)
{
	uint64_t least = t->s->marks->live_bytes / 100 * SUSPECT_PERCENT;
	sonde_report_list_begin(out, "suspects");
	/* At most ten can be so large: each round takes the largest that is left. */
	uint32_t done[100 / SUSPECT_PERCENT + 1];
	size_t n = 0;
	for (uint32_t top; n < SONDE_ARRAY_LEN(done) && (top = largest_child(t, 0, done, n)) &&
		t->retained[top] >= least && t->retained[top];
		n++) {
		done[n] = top;
		if (t->nodes->items[top].what == SONDE_CORE_OWNER_IS_ROOT)
			report_suspect(out, t, top);
	}
	struct sonde_error *err = report_classes(out, t);
	sonde_report_list_end(out);
	return err;
}

/* --- goroutines --- */

/* Where it waits: the innermost call that is not the runtime's own. */
static void waits_in(
	struct sonde_core_session *s, const struct sonde_goroutine *g, struct sonde_pccall *ret)
{
	const struct sonde_go_frame *frames = sonde_goroutine_frames(s->goroutines, g);
	for (size_t i = 0; i < g->n_frames; i++) {
		struct sonde_pccall calls[MAX_CALLS];
		size_t n = sonde_go_frame_calls(s->go, &frames[i], calls, MAX_CALLS);
		for (size_t k = 0; k < n && k < MAX_CALLS; k++) {
			*ret = calls[k];
			if (strncmp(calls[k].function, "runtime.", 8))
				return;
		}
	}
}

static void report_group(struct sonde_report *out, struct sonde_core_session *s,
	const struct sonde_core_stuck *stuck, const uint64_t *held, const uint32_t *members,
	uint32_t n)
{
	const struct sonde_goroutine *g = &s->goroutines->all.items[members[0]];
	struct sonde_pccall call = {.function = "?", .file = "?"};
	uint64_t n_stuck = 0, bytes = 0;
	sonde_cleanup(sonde_buf) struct sonde_buf ids = {0};
	for (uint32_t i = 0; i < n; i++) {
		n_stuck += stuck->goroutines[members[i]];
		bytes += held[members[i]];
		if (i < MAX_IDS)
			sonde_buf_printf(&ids, "%s%" PRIu64, i ? " " : "",
				s->goroutines->all.items[members[i]].id);
	}
	if (n > MAX_IDS)
		sonde_buf_printf(&ids, " and %" PRIu32 " more", n - MAX_IDS);
	waits_in(s, g, &call);
	sonde_report_item_begin(out);
	sonde_report_field(out, "count", NULL, sonde_value_count(n));
	sonde_report_field(out, "stuck", NULL, sonde_value_count(n_stuck));
	sonde_report_field(out, "doing", NULL, sonde_value_text(sonde_core_goroutine_doing(g)));
	sonde_report_field(out, "function", NULL, sonde_value_text(call.function));
	sonde_report_field(out, "file", NULL, sonde_value_text(call.file));
	sonde_report_field(out, "line", NULL, sonde_value_count(call.line));
	sonde_report_field(out, "first_id", NULL, sonde_value_count(g->id));
	sonde_report_field(out, "held_bytes", NULL, sonde_value_bytes(bytes));
	sonde_report_item_end(out);
	sonde_report_heading(out, "%" PRIu32 " goroutine%s [%s] in %s", n, n == 1 ? "" : "s",
		sonde_core_goroutine_doing(g), call.function);
	sonde_report_line(
		out, "    at %s:%" PRIu32 "; ids: %s", call.file, call.line, sonde_buf_text(&ids));
	if (n_stuck)
		sonde_report_line(out,
			"    %s%" PRIu64 " %s for channels that nothing alive can reach",
			n_stuck == n ? "all " : "", n_stuck, n_stuck == 1 ? "waits" : "wait");
	sonde_report_line(out, "    each alone holds, added up, %" PRIu64 " bytes", bytes);
	sonde_report_blank(out);
}

static struct sonde_error *report_goroutines(struct sonde_report *out, struct sonde_core_session *s,
	const struct sonde_core_retained *r, const struct sonde_core_stuck *stuck)
{
	struct sonde_core_goroutine_filter filter = {0};
	sonde_cleanup(sonde_u32_vec) struct sonde_u32_vec chosen = {0};
	sonde_cleanup(sonde_core_goroutine_groups) struct sonde_core_goroutine_groups groups = {0};
	sonde_cleanup(free) uint64_t *held = sonde_new_array(uint64_t, s->goroutines->all.n + 1);
	if (!held)
		return &sonde_enomem;
	sonde_vec_foreach (o, &r->owners) {
		if (o->kind == SONDE_CORE_OWNER_GOROUTINE && o->vertex != UINT32_MAX)
			held[o->index] = r->bytes[o->vertex];
	}
	SONDE_TRY(sonde_core_goroutines_choose(s, &filter, &chosen));
	SONDE_TRY(sonde_core_goroutines_group(s, &chosen, &groups));
	uint64_t left_out = 0;
	size_t shown = 0;
	sonde_report_list_begin(out, "goroutine_groups");
	for (size_t i = 0; i < groups.groups.n; i++) {
		const struct sonde_core_goroutine_group *group = &groups.groups.items[i];
		const uint32_t *members = groups.members.items + group->first;
		bool worth = group->n >= MANY_EQUAL && !s->goroutines->all.items[members[0]].system;
		for (uint32_t k = 0; k < group->n && !worth; k++)
			worth = stuck->goroutines[members[k]];
		if (!worth)
			continue;
		if (shown++ < MAX_GROUPS)
			report_group(out, s, stuck, held, members, group->n);
		else
			left_out++;
	}
	sonde_report_list_end(out);
	sonde_report_field(out, "goroutine_groups_left_out", left_out ? "further groups" : NULL,
		sonde_value_count(left_out));
	return NULL;
}

static void report_finalizers(struct sonde_report *out, struct sonde_core_session *s)
{
	uint64_t n = 0;
	sonde_vec_foreach (special, &s->heap->specials) {
		const struct sonde_go_span *span = sonde_go_heap_span_of(s->heap, special->object);
		n += special->kind != SONDE_GO_WEAK_HANDLE &&
			!sonde_core_marks_has(s->marks, special->object) &&
			sonde_go_span_allocated(span, special->object - span->first);
	}
	sonde_report_field(out, "pending_finalizers",
		"finalizers and cleanups of unreachable objects, not run yet",
		sonde_value_count(n));
	sonde_report_field(out, "pending_objects", "objects that only these keep",
		sonde_value_count(s->marks->n_pending));
	sonde_report_field(
		out, "pending_bytes", "their bytes", sonde_value_bytes(s->marks->pending_bytes));
}

static struct sonde_error *report_all(
	struct sonde_report *out, struct tree *t, const struct sonde_core_stuck *stuck)
{
	struct sonde_core_session *s = t->s;
	sonde_report_begin(out, "core.leaks", 1);
	sonde_report_field(
		out, "live_bytes", "live bytes", sonde_value_bytes(s->marks->live_bytes));
	sonde_report_blank(out);
	SONDE_TRY(report_suspects(out, t));
	SONDE_TRY(report_goroutines(out, s, t->r, stuck));
	sonde_report_field(out, "stuck_goroutines",
		"goroutines waiting for channels that nothing alive can reach",
		sonde_value_count(stuck->n));
	sonde_report_field(out, "stuck_objects", "objects alive only by them",
		sonde_value_count(stuck->n_objects));
	sonde_report_field(
		out, "stuck_bytes", "bytes alive only by them", sonde_value_bytes(stuck->bytes));
	report_finalizers(out, s);
	return sonde_report_end(out, &s->notes);
}

struct sonde_error *sonde_core_report_leaks(
	struct sonde_core_session *session, struct sonde_report *out)
{
	sonde_cleanup(sonde_core_retained) struct sonde_core_retained *r = NULL;
	sonde_cleanup(sonde_core_owner_paths) struct sonde_core_owner_paths paths = {0};
	sonde_cleanup(sonde_core_stuck) struct sonde_core_stuck stuck = {0};
	SONDE_TRY(sonde_core_session_need_typing(session));
	SONDE_TRY(sonde_core_stuck_find(session, &stuck));
	SONDE_TRY(sonde_core_retained_make(session, &r));
	SONDE_TRY(sonde_core_owner_paths_make(session, r, &paths));
	struct tree t = {.s = session, .r = r, .nodes = &paths.nodes};
	struct sonde_error *err = fill_tree(&t) ? report_all(out, &t, &stuck) : &sonde_enomem;
	free(t.retained);
	free(t.n_below);
	free(t.child);
	free(t.sibling);
	free(t.told);
	return err;
}
