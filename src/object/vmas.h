/* src/object/vmas.h: the file mappings a core was taken with (NT_FILE note). */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"

struct sonde_vma {
	uint64_t start, end, file_offset; /* all in bytes */
	const char *path; /* borrowed from the sonde_vmas */
};

struct sonde_vmas { /* ascending by start, disjoint */
	size_t n;
	uint64_t page_bytes;
	uint64_t n_dropped; /* rows that overlapped an earlier one or were upside down */
	const struct sonde_vma *items;
	char *text; /* all paths */
};

/*
 * Decode the note's payload of len bytes; word_bytes is 4 or 8, the core's class. Rows that overlap or make no sense
 * are dropped and counted. On success *ret is the caller's; on failure it is untouched. SONDE_BAD_DATA if the note is
 * short.
 */
struct sonde_error *sonde_vmas_decode(const void *desc, size_t len, unsigned word_bytes,
	bool big_endian, struct sonde_vmas **ret) SONDE_CHECK;
void sonde_vmas_free(struct sonde_vmas *vmas);
SONDE_DEFINE_CLEANUP(sonde_vmas)

/* The mapping that holds addr, or NULL. Valid until sonde_vmas_free(). */
const struct sonde_vma *sonde_vmas_find(const struct sonde_vmas *vmas, uint64_t addr);
