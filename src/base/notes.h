/*
 * src/base/notes.h: damage that left the rest readable: what was skipped or guessed, how often, the first place. Every
 * report ends with them. Not for several threads at once.
 */
#pragma once
#include <stdint.h>
#include "base/arena.h"
#include "base/log.h"
#include "base/vec.h"

struct sonde_note_entry {
	const char *
		kind; /* a constant: "goroutine stack cut short"; equal kinds are counted together */
	const char *first; /* the first place, as text; NULL where memory ran out */
	uint64_t count;
	uint64_t
		amount; /* the sum of what was given: bytes or whatever `kind` says; 0 = no amount */
};
SONDE_DEFINE_VEC(sonde_note_entries, struct sonde_note_entry)

struct sonde_notes {
	struct sonde_arena arena;
	struct sonde_note_entries entries; /* in the order in which each kind came first */
	uint64_t n_lost; /* notes that memory had no room for */
};

void sonde_notes_deinit(struct sonde_notes *notes);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_notes)

/* What `from` counted, counted in `to` as well; either may be NULL. */
void sonde_notes_merge(struct sonde_notes *to, const struct sonde_notes *from);

/* Count one of kind, which must be a string constant. notes may be NULL: then nothing is kept. */
void sonde_notes_add(struct sonde_notes *notes, const char *kind, uint64_t amount, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* Count n of kind at once, without an amount; none where n is 0. */
void sonde_notes_add_n(struct sonde_notes *notes, const char *kind, uint64_t n, const char *fmt,
	...) __attribute__((format(printf, 4, 5)));

/* Each kind as a warning, where there is no report that they could end. Either may be NULL. */
void sonde_notes_log(const struct sonde_notes *notes, const struct sonde_log *log);
