/* src/object/note.h: the notes of a PT_NOTE segment or SHT_NOTE section. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/cursor.h"

struct sonde_note {
	uint32_t type;
	const char *name; /* borrowed from the bytes; name_len bytes, without the NULs behind it */
	size_t name_len;
	const uint8_t *desc; /* borrowed from the bytes */
	size_t desc_len;
};

struct sonde_note_iter {
	struct sonde_cursor c;
	unsigned align; /* 4, or 8 where the segment's alignment is 8 (gABI) */
	bool damaged; /* set where the rest was no note: what came before is fine */
};

/* align is the segment's or section's own; anything but 8 counts as 4, which is what every producer of cores writes. */
struct sonde_note_iter sonde_note_iter_over(
	const void *data, size_t len, uint64_t align, bool big_endian);

/* false at the end, or at damage. */
bool sonde_note_next(struct sonde_note_iter *it, struct sonde_note *note);

bool sonde_note_is(const struct sonde_note *note, const char *name, uint32_t type);
