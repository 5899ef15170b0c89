#include "base/notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void sonde_notes_deinit(struct sonde_notes *notes)
{
	sonde_arena_deinit(&notes->arena);
	sonde_note_entries_deinit(&notes->entries);
	notes->n_lost = 0;
}

/* The entry of kind, made with count 0 where absent; NULL where memory is out. */
static struct sonde_note_entry *entry_of(struct sonde_notes *notes, const char *kind)
{
	/* Some ten kinds at most: a linear look is cheaper than anything else. */
	sonde_vec_foreach (e, &notes->entries)
		if (e->kind == kind || !strcmp(e->kind, kind))
			return e;
	struct sonde_note_entry *e = sonde_note_entries_add(&notes->entries);
	if (e)
		e->kind = kind;
	return e;
}

void sonde_notes_merge(struct sonde_notes *to, const struct sonde_notes *from)
{
	if (!to || !from)
		return;
	sonde_vec_foreach (made, &from->entries) {
		struct sonde_note_entry *e = entry_of(to, made->kind);
		if (!e) {
			to->n_lost += made->count;
			continue;
		}
		if (!e->count && made->first)
			e->first = sonde_arena_strdup(&to->arena, made->first);
		e->count += made->count;
		e->amount += made->amount;
	}
	to->n_lost += from->n_lost;
}

static void add(struct sonde_notes *notes, const char *kind, uint64_t n, uint64_t amount,
	const char *fmt, va_list args)
{
	if (!notes || !n)
		return;
	struct sonde_note_entry *e = entry_of(notes, kind);
	if (!e) {
		notes->n_lost += n;
		return;
	}
	if (!e->count) {
		char place[512];
		vsnprintf(place, sizeof(place), fmt, args);
		e->first = sonde_arena_strdup(&notes->arena, place);
	}
	e->count += n;
	e->amount += amount;
}

void sonde_notes_add(
	struct sonde_notes *notes, const char *kind, uint64_t amount, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add(notes, kind, 1, amount, fmt, args);
	va_end(args);
}

void sonde_notes_add_n(
	struct sonde_notes *notes, const char *kind, uint64_t n, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	add(notes, kind, n, 0, fmt, args);
	va_end(args);
}

void sonde_notes_log(const struct sonde_notes *notes, const struct sonde_log *log)
{
	if (!notes)
		return;
	sonde_vec_foreach (e, &notes->entries) {
		if (e->count == 1)
			sonde_log_message(log, SONDE_LOG_WARNING, "%s: %s", e->kind,
				e->first ? e->first : "?");
		else
			sonde_log_message(log, SONDE_LOG_WARNING,
				"%s: %" PRIu64 " times; first: %s", e->kind, e->count,
				e->first ? e->first : "?");
	}
	if (notes->n_lost)
		sonde_log_message(
			log, SONDE_LOG_WARNING, "no memory for %" PRIu64 " notes", notes->n_lost);
}
