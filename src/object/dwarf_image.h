/*
 * src/object/dwarf_image.h: a file's debug sections, inflated one by one when needed, inside an ELF image of their own
 * that libdw reads. libdw by itself inflates every section at open and, in Debian 12, knows no zstd.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/notes.h"

enum sonde_dwarf_section {
	SONDE_DWARF_INFO,
	SONDE_DWARF_ABBREV,
	SONDE_DWARF_STR,
	SONDE_DWARF_LINE_STR,
	SONDE_DWARF_STR_OFFSETS,
	SONDE_DWARF_ADDR,
	SONDE_DWARF_LINE,
	SONDE_DWARF_RANGES,
	SONDE_DWARF_RNGLISTS,
	SONDE_DWARF_LOC,
	SONDE_DWARF_LOCLISTS,
	SONDE_DWARF_TYPES,
	SONDE_DWARF_N_SECTIONS,
};

enum sonde_dwarf_packing { SONDE_DWARF_PLAIN, SONDE_DWARF_ZLIB, SONDE_DWARF_ZSTD };

struct sonde_dwarf_image {
	uint8_t *map; /* owned; zero wherever a section is not filled yet */
	size_t map_bytes;
	unsigned address_bytes, machine; /* of the ELF header */
	const char *name; /* borrowed; for messages */
	struct {
		const uint8_t
			*packed; /* borrowed from the file; NULL = the file has no such section */
		uint64_t packed_bytes;
		uint8_t *data; /* in map */
		uint64_t size_bytes;
		enum sonde_dwarf_packing packing;
		bool filled, damaged;
	} sections[SONDE_DWARF_N_SECTIONS];
};

/*
 * Find the sections of the ELF file at data and lay the image out; nothing is inflated. Errors as sonde_dwarf_open();
 * damage to a section that is not needed for all others becomes a note.
 */
struct sonde_error *sonde_dwarf_image_init(struct sonde_dwarf_image *image, const void *data,
	uint64_t size_bytes, const char *name, struct sonde_notes *notes) SONDE_CHECK;
void sonde_dwarf_image_deinit(struct sonde_dwarf_image *image);

/*
 * Inflate one section into its place, once. An absent one is fine. Where its bytes are damaged it reads as zeros and
 * the error is returned once; later calls return NULL.
 */
struct sonde_error *sonde_dwarf_image_fill(
	struct sonde_dwarf_image *image, enum sonde_dwarf_section section) SONDE_CHECK;

/* ".debug_info" */
const char *sonde_dwarf_section_name(enum sonde_dwarf_section section);
