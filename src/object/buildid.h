/* src/object/buildid.h: what identifies a linked file: the GNU build-id note and Go's build id. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include "object/elf.h"

struct sonde_buildid {
	uint8_t bytes[64];
	unsigned len; /* 0 = none */
};

enum { SONDE_BUILDID_HEX_BYTES = 2 * 64 + 1, SONDE_GOBUILDID_BYTES = 256 };

/* The note NT_GNU_BUILD_ID of a file, by segments, else by section. false: none (id->len is 0). */
bool sonde_buildid_of_elf(const struct sonde_elf *elf, struct sonde_buildid *id);

/* Go's build id ("action/.../content", note "Go\0\0" type 4) as NUL-terminated text. false: none (text is ""). */
bool sonde_gobuildid_of_elf(const struct sonde_elf *elf, char text[SONDE_GOBUILDID_BYTES]);

/* The same two in the bytes of one note segment or section; each true only where found. align as in note.h. */
bool sonde_buildid_of_notes(
	const void *data, size_t len, uint64_t align, bool big_endian, struct sonde_buildid *id);
bool sonde_gobuildid_of_notes(const void *data, size_t len, uint64_t align, bool big_endian,
	char text[SONDE_GOBUILDID_BYTES]);

static inline bool sonde_buildid_equal(const struct sonde_buildid *a, const struct sonde_buildid *b)
{
	return a->len && a->len == b->len && !memcmp(a->bytes, b->bytes, a->len);
}

/* Lower-case hex. Returns to. */
const char *sonde_buildid_hex(const struct sonde_buildid *id, char to[SONDE_BUILDID_HEX_BYTES]);

/* Hex text to bytes; false for odd, empty, too long or other characters. */
bool sonde_buildid_parse(const char *hex, struct sonde_buildid *id);
