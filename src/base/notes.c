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

void sonde_notes_add(
	struct sonde_notes *notes, const char *kind, uint64_t amount, const char *fmt, ...)
{
	if (!notes)
		return;
	/* Some ten kinds at most: a linear look is cheaper than anything else. */
	sonde_vec_foreach (e, &notes->entries) {
		if (e->kind == kind || !strcmp(e->kind, kind)) {
			e->count++;
			e->amount += amount;
			return;
		}
	}
	struct sonde_note_entry *e = sonde_note_entries_add(&notes->entries);
	if (!e) {
		notes->n_lost++;
		return;
	}
	char place[512];
	va_list args;
	va_start(args, fmt);
	vsnprintf(place, sizeof(place), fmt, args);
	va_end(args);
	*e = (struct sonde_note_entry){
		.kind = kind,
		.first = sonde_arena_strdup(&notes->arena, place),
		.count = 1,
		.amount = amount,
	};
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
