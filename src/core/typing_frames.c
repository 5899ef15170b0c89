/* src/core/typing_frames.c: variables of frames, records of goroutines, finalizers and their like. */
#include "core/typing_internal.h"

#include <inttypes.h>
#include "base/cycle.h"
#include "golang/roots.h"

enum { MAX_VARIABLE_BYTES = 4096 };

static void type_variable(struct sonde_core_typer *t, struct sonde_go_frame_view *view,
	const struct sonde_dwarf_variable *v)
{
	if (!v->expr)
		return;
	uint32_t id = sonde_go_types_dwarf(t->types, v->type);
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	if (!type->size_bytes || !type->n_slots)
		return;
	struct sonde_location_piece pieces[SONDE_GO_MAX_PIECES];
	size_t n;
	const char *wrong = sonde_go_frame_locate(view, v, pieces, &n);
	if (wrong) {
		sonde_notes_add(t->go->notes, "location of a variable not understood", 0, "%s: %s",
			v->name, wrong);
		return;
	}
	if (n == 1 && pieces[0].kind == SONDE_LOCATION_ADDR) {
		sonde_core_type_memory(t, pieces[0].value, id);
		return;
	}
	/* In pieces: what is not known stays zero. */
	if (type->size_bytes > MAX_VARIABLE_BYTES)
		return;
	uint64_t words[MAX_VARIABLE_BYTES / 8];
	sonde_location_read(pieces, n, &view->context, words, type->size_bytes, &wrong);
	sonde_core_type_value(t, (const uint8_t *)words, type->size_bytes, id, 0);
}

/* The variables at a frame's pc: decoded once a pc, however many goroutines stand there. */
static const struct sonde_dwarf_variables *variables_at(
	struct sonde_core_typer *t, const struct sonde_go_frame *frame)
{
	bool was_new;
	struct sonde_dwarf_variables *v =
		sonde_core_pc_map_put(&t->variables, sonde_go_frame_lookup_pc(frame), &was_new);
	if (!v) {
		t->no_memory = true;
		return NULL;
	}
	if (was_new) {
		struct sonde_error *err = sonde_go_frame_variables(t->go, frame, v);
		if (err)
			sonde_notes_add(t->go->notes, "variables of a function not readable", 0,
				"%s", err->message);
		sonde_error_free(err);
	}
	return v;
}

void sonde_core_type_frames(struct sonde_core_typer *t, const struct sonde_goroutines *gs)
{
	for (size_t i = 0; i < gs->all.n; i++) {
		const struct sonde_goroutine *g = &gs->all.items[i];
		for (size_t k = 0; k < g->n_frames; k++) {
			const struct sonde_go_frame *frame = &gs->frames.items[g->first_frame + k];
			if (frame->flags & SONDE_GO_FRAME_SYSTEM_STACK)
				continue;
			const struct sonde_dwarf_variables *v = variables_at(t, frame);
			struct sonde_go_frame_view view;
			sonde_go_frame_view_init(&view, t->go, g, frame);
			for (size_t j = 0; v && j < v->n; j++)
				type_variable(t, &view, &v->items[j]);
			sonde_core_type_drain(t);
		}
	}
}

/* Records of the runtime that hang on goroutines and are typed by no variable. */
void sonde_core_type_goroutines(struct sonde_core_typer *t, const struct sonde_goroutines *gs)
{
	const struct sonde_dwarf_type *g = sonde_dwarf_type_find(t->go->dwarf, "runtime.g");
	uint32_t id = g ? sonde_go_types_dwarf(t->types, g->id) : 0;
	uint32_t labels_id = sonde_go_types_find(t->types, "runtime/pprof.labelMap");
	uint64_t labels;
	for (size_t i = 0; i < gs->all.n; i++) {
		sonde_core_type_pointer(t, gs->all.items[i].addr, id, 0);
		if (sonde_go_read(t->go, gs->all.items[i].addr, t->go->layout.g_labels, &labels))
			sonde_core_type_pointer(t, labels, labels_id, 0);
		sonde_core_type_drain(t);
	}
	const struct sonde_go_layout *l = &t->go->layout;
	for (size_t i = 0; i < gs->all.n; i++) {
		uint64_t sudog, chan;
		if (!sonde_go_read(t->go, gs->all.items[i].addr, l->g_waiting_on, &sudog))
			continue;
		struct sonde_cycle cycle = sonde_cycle_from(sudog);
		for (int k = 0; sudog && !(k && sonde_cycle_closed(&cycle, sudog)); k++) {
			if (sonde_go_read(t->go, sudog, l->sudog_c, &chan))
				sonde_core_type_untyped_chan(t, chan);
			if (!sonde_go_read(t->go, sudog, l->sudog_waitlink, &sudog))
				break;
		}
		sonde_core_type_drain(t);
	}
}

/* Finalizers say the type of their object; their functions and those of cleanups are closures. */
void sonde_core_type_specials(struct sonde_core_typer *t)
{
	for (size_t i = 0; i < t->heap->specials.n; i++) {
		const struct sonde_go_special *s = &t->heap->specials.items[i];
		if (!sonde_core_marks_has(t->marks, s->object))
			continue;
		const struct sonde_go_span *span = sonde_go_heap_span_of(t->heap, s->object);
		uint32_t pointer =
			s->object_type ? sonde_go_types_runtime(t->types, s->object_type) : 0;
		sonde_core_type_pointer(t, sonde_go_span_addr(span, s->object - span->first),
			sonde_go_type_of(t->types, pointer)->elem, 0);
		if (s->kind == SONDE_GO_WEAK_HANDLE) {
			sonde_core_type_weak_handle(t, s->words[0]);
		} else {
			/* 1.25+: a cleanup has an adapter, its function, and a copy of the argument. */
			bool has_argument = s->kind == SONDE_GO_CLEANUP && s->words[1];
			for (size_t k = 0; k < SONDE_ARRAY_LEN(s->words) - has_argument; k++)
				sonde_core_type_func(t, s->words[k]);
			if (has_argument)
				sonde_core_type_cleanup_argument(t, s->words[2], s->words[1]);
		}
		sonde_core_type_drain(t);
	}
}

/* --- spills --- */

/* A word of a frame that keeps an object whose type is not known. */
struct stray {
	uint64_t addr;
	uint32_t frame, goroutine;
};
SONDE_DEFINE_VEC(stray_vec, struct stray)

struct stray_collector {
	struct sonde_core_typer *t;
	struct stray_vec strays;
};

static void collect_stray(void *ctx, const struct sonde_go_root *root)
{
	struct stray_collector *c = ctx;
	struct sonde_go_span *s;
	uint32_t slot;
	if (root->kind != SONDE_GO_ROOT_STACK || root->conservative || root->frame == UINT32_MAX ||
		!sonde_go_heap_find(c->t->heap, root->value, &s, &slot) ||
		!sonde_core_marks_has(c->t->marks, s->first + slot) ||
		sonde_core_typed(c->t, s->first + slot))
		return;
	if (!stray_vec_push(&c->strays, (struct stray){root->addr, root->frame, root->goroutine}))
		c->t->no_memory = true;
}

/* The word at addr is the one at `offset` of a value whose pieces are known: follow it. Whether it was a pointer there. */
static bool type_word_of(struct sonde_core_typer *t, struct sonde_go_frame_view *view,
	const struct sonde_location_piece *pieces, size_t n, uint32_t id, uint64_t offset)
{
	const struct sonde_go_type *type = sonde_go_types_slots(t->types, id);
	uint64_t words[MAX_VARIABLE_BYTES / 8];
	const char *wrong;
	if (type->size_bytes > sizeof(words))
		return false;
	for (uint32_t i = 0; i < type->n_slots; i++) {
		const struct sonde_go_slot *slot = &type->slots[i];
		uint64_t end =
			slot->offset_bytes + sonde_core_slot_words(slot->kind) * t->go->word_bytes;
		if (offset < slot->offset_bytes || offset >= end || end > type->size_bytes ||
			slot->kind == SONDE_GO_SLOT_ARRAY)
			continue;
		sonde_location_read(pieces, n, &view->context, words, type->size_bytes, &wrong);
		sonde_core_type_slot(t, (const uint8_t *)words + slot->offset_bytes, slot, 0);
		return true;
	}
	return false;
}

/* Whether a variable that is kept in memory somewhere in its function is kept in the word at addr. */
static bool type_by_place(struct sonde_core_typer *t, struct sonde_go_frame_view *view,
	const struct sonde_dwarf_variable *v, const struct sonde_dwarf_place *place, uint64_t addr)
{
	struct sonde_location_piece pieces[SONDE_GO_MAX_PIECES];
	size_t n;
	view->context.unit = place->unit;
	if (sonde_location_evaluate(
		    place->expr, place->expr_len, &view->context, pieces, SONDE_GO_MAX_PIECES, &n))
		return false;
	uint32_t id = sonde_go_types_dwarf(t->types, v->type);
	for (size_t i = 0; i < n; i++) {
		const struct sonde_location_piece *p = &pieces[i];
		uint64_t size =
			p->size_bytes ? p->size_bytes : sonde_go_type_of(t->types, id)->size_bytes;
		if (p->kind == SONDE_LOCATION_ADDR && addr >= p->value && addr - p->value < size)
			return type_word_of(
				t, view, pieces, n, id, p->offset_bytes + (addr - p->value));
	}
	return false;
}

static void type_stray(
	struct sonde_core_typer *t, const struct sonde_goroutines *gs, const struct stray *stray)
{
	const struct sonde_go_frame *frame = &gs->frames.items[stray->frame];
	const struct sonde_dwarf_variables *v = variables_at(t, frame);
	struct sonde_go_frame_view view;
	sonde_go_frame_view_init(&view, t->go, &gs->all.items[stray->goroutine], frame);
	view.regs = NULL; /* they tell nothing of another place of the function */
	for (size_t i = 0; v && i < v->n; i++) {
		sonde_cleanup(sonde_dwarf_places) struct sonde_dwarf_places places = {0};
		struct sonde_error *err =
			sonde_dwarf_places_of(t->go->dwarf, v->items[i].id, &places);
		if (err)
			t->no_memory = true;
		sonde_error_free(err);
		for (size_t k = 0; k < places.n; k++) {
			if (type_by_place(t, &view, &v->items[i], &places.items[k], stray->addr))
				return;
		}
	}
}

/*
 * A parameter that came in a register has a word of the frame to be spilled to; the pointer maps know that it lives
 * there when DWARF no longer does. It is that parameter's word all through the function.
 */
void sonde_core_type_spills(struct sonde_core_typer *t, const struct sonde_goroutines *gs)
{
	struct stray_collector c = {.t = t};
	struct sonde_error *err = sonde_go_roots_visit(t->go, gs, &t->masks, collect_stray, &c);
	if (err)
		t->no_memory = true;
	sonde_error_free(err);
	sonde_vec_foreach (stray, &c.strays) {
		type_stray(t, gs, stray);
		sonde_core_type_drain(t);
	}
	stray_vec_deinit(&c.strays);
}
