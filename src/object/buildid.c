#include "object/buildid.h"

#include "base/mem.h"
#include "object/note.h"

/* cmd/link/internal/ld/elf.go: ELF_NOTE_GOBUILDID_TAG, name "Go\0\0". */
enum { GO_BUILDID_TAG = 4 };

bool sonde_buildid_of_notes(
	const void *data, size_t len, uint64_t align, bool big_endian, struct sonde_buildid *id)
{
	struct sonde_note_iter it = sonde_note_iter_over(data, len, align, big_endian);
	struct sonde_note note;
	id->len = 0;
	while (sonde_note_next(&it, &note)) {
		if (!sonde_note_is(&note, "GNU", NT_GNU_BUILD_ID) || !note.desc_len ||
			note.desc_len > sizeof(id->bytes))
			continue;
		memcpy(id->bytes, note.desc, note.desc_len);
		id->len = (unsigned)note.desc_len;
		return true;
	}
	return false;
}

bool sonde_gobuildid_of_notes(const void *data, size_t len, uint64_t align, bool big_endian,
	char text[SONDE_GOBUILDID_BYTES])
{
	struct sonde_note_iter it = sonde_note_iter_over(data, len, align, big_endian);
	struct sonde_note note;
	text[0] = 0;
	while (sonde_note_next(&it, &note)) {
		if (!sonde_note_is(&note, "Go", GO_BUILDID_TAG) || !note.desc_len ||
			note.desc_len >= SONDE_GOBUILDID_BYTES)
			continue;
		for (size_t i = 0; i < note.desc_len; i++)
			text[i] = note.desc[i] > 0x20 && note.desc[i] < 0x7f ? (char)note.desc[i]
									     : '?';
		text[note.desc_len] = 0;
		return true;
	}
	return false;
}

/* Calls over every note segment, then every note section, until one answers. */
static bool any_notes(const struct sonde_elf *elf,
	bool (*in)(const void *data, size_t len, uint64_t align, bool big_endian, void *to),
	void *to)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t len;
		const uint8_t *data =
			s->type == PT_NOTE ? sonde_elf_segment_bytes(elf, s, &len) : NULL;
		if (data && in(data, len, s->align, elf->big_endian, to))
			return true;
	}
	for (size_t i = 0; i < elf->n_sections; i++) {
		const struct sonde_elf_section *s = &elf->sections[i];
		if (s->type != SHT_NOTE || s->offset >= elf->size_bytes)
			continue;
		uint64_t len = sonde_min(s->size_bytes, elf->size_bytes - s->offset);
		uint64_t align =
			!strcmp(s->name, ".note.gnu.property") && elf->word_bytes == 8 ? 8 : 4;
		if (in(elf->data + s->offset, len, align, elf->big_endian, to))
			return true;
	}
	return false;
}

static bool gnu_in(const void *data, size_t len, uint64_t align, bool big_endian, void *to)
{
	return sonde_buildid_of_notes(data, len, align, big_endian, to);
}

static bool go_in(const void *data, size_t len, uint64_t align, bool big_endian, void *to)
{
	return sonde_gobuildid_of_notes(data, len, align, big_endian, to);
}

bool sonde_buildid_of_elf(const struct sonde_elf *elf, struct sonde_buildid *id)
{
	id->len = 0;
	return any_notes(elf, gnu_in, id);
}

bool sonde_gobuildid_of_elf(const struct sonde_elf *elf, char text[SONDE_GOBUILDID_BYTES])
{
	text[0] = 0;
	return any_notes(elf, go_in, text);
}

const char *sonde_buildid_hex(const struct sonde_buildid *id, char to[SONDE_BUILDID_HEX_BYTES])
{
	static const char digits[] = "0123456789abcdef";
	for (unsigned i = 0; i < id->len; i++) {
		to[2 * i] = digits[id->bytes[i] >> 4];
		to[2 * i + 1] = digits[id->bytes[i] & 15];
	}
	to[2 * id->len] = 0;
	return to;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool sonde_buildid_parse(const char *hex, struct sonde_buildid *id)
{
	size_t len = strlen(hex);
	id->len = 0;
	if (!len || len % 2 || len / 2 > sizeof(id->bytes))
		return false;
	for (size_t i = 0; i < len / 2; i++) {
		int high = digit(hex[2 * i]), low = digit(hex[2 * i + 1]);
		if (high < 0 || low < 0)
			return false;
		id->bytes[i] = (uint8_t)(high << 4 | low);
	}
	id->len = (unsigned)(len / 2);
	return true;
}
