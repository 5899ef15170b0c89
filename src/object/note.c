#include "object/note.h"

#include <string.h>
#include "base/mem.h"

struct sonde_note_iter sonde_note_iter_over(
	const void *data, size_t len, uint64_t align, bool big_endian)
{
	struct sonde_note_iter it = {sonde_cursor_over(data, len), align == 8 ? 8 : 4, false};
	it.c.big_endian = big_endian;
	return it;
}

/* The padding behind the last note may be missing. */
static void pad(struct sonde_note_iter *it)
{
	size_t over = sonde_cursor_offset(&it->c) & (it->align - 1);
	if (over)
		sonde_cursor_skip(
			&it->c, sonde_min((size_t)it->align - over, sonde_cursor_left(&it->c)));
}

bool sonde_note_next(struct sonde_note_iter *it, struct sonde_note *note)
{
	if (it->c.bad || !sonde_cursor_left(&it->c))
		return false;
	uint32_t name_len = sonde_cursor_u32(&it->c), desc_len = sonde_cursor_u32(&it->c);
	uint32_t type = sonde_cursor_u32(&it->c);
	const uint8_t *name = sonde_cursor_bytes(&it->c, name_len);
	pad(it);
	const uint8_t *desc = sonde_cursor_bytes(&it->c, desc_len);
	if (it->c.bad) {
		it->damaged = true;
		return false;
	}
	pad(it);
	while (name_len && !name[name_len - 1])
		name_len--;
	*note = (struct sonde_note){type, (const char *)name, name_len, desc, desc_len};
	return true;
}

bool sonde_note_is(const struct sonde_note *note, const char *name, uint32_t type)
{
	size_t len = strlen(name);
	return note->type == type && note->name_len == len && !memcmp(note->name, name, len);
}
