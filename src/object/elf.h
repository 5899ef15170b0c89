/*
 * src/object/elf.h: an ELF file's header, program headers and sections, over a mapped file or over bytes. Input is
 * hostile: damaged sections are dropped, since cores and stripped files are read by their segments alone.
 */
#pragma once
#include <elf.h>
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mapfile.h"
#include "base/mem.h"

struct sonde_elf_section {
	const char *name; /* borrowed; "" where the name is damaged */
	uint32_t type, link, info;
	uint64_t flags, addr, offset, size_bytes, entry_bytes; /* as written: not bounded */
};

struct sonde_elf_segment {
	uint32_t type, flags;
	uint64_t addr, offset, file_bytes, mem_bytes, align; /* as written: not bounded */
};

struct sonde_elf_inflated;
struct sonde_elf {
	struct sonde_mapfile *file; /* NULL where it stands over bytes */
	const uint8_t *data; /* borrowed from file or from the caller */
	uint64_t size_bytes;
	unsigned word_bytes; /* 4 or 8: the class */
	bool big_endian;
	uint8_t os_abi;
	uint16_t type, machine;
	uint32_t flags;
	uint64_t entry, segments_offset; /* e_entry, e_phoff */
	struct sonde_elf_section *sections; /* index as in the file, 0 is the null section */
	size_t n_sections;
	struct sonde_elf_segment *segments;
	size_t n_segments;
	const char
		*sections_lost; /* a constant: why there are no (or fewer) sections; NULL = fine */
	uint64_t n_segments_lost; /* program headers promised beyond the end of the file */
	struct sonde_elf_inflated *inflated; /* a list: sections inflated so far */
};

/*
 * Map and parse path. SONDE_BAD_DATA ("FILE: not an ELF file: it is ...") for other contents, SONDE_TRUNCATED where the
 * ELF header itself is cut, SONDE_OS as sonde_mapfile_open(). Reading from several threads is safe but for
 * sonde_elf_section_read() of a compressed section.
 */
struct sonde_error *sonde_elf_open(const char *path, struct sonde_elf **ret) SONDE_CHECK;

/* The same over a mapped file, which is taken on success. */
struct sonde_error *sonde_elf_open_mapfile(
	struct sonde_mapfile *file, struct sonde_elf **ret) SONDE_CHECK;

/* The same over len bytes that outlive the result; name is for messages. A cut file (one page of it) is fine. */
struct sonde_error *sonde_elf_open_bytes(
	const void *data, size_t len, const char *name, struct sonde_elf **ret) SONDE_CHECK;
void sonde_elf_free(struct sonde_elf *elf);
SONDE_DEFINE_CLEANUP(sonde_elf)

/* The path it was opened by, or "". */
const char *sonde_elf_path(const struct sonde_elf *elf);

/* The first section of that name (".debug_info" also finds ".zdebug_info"), or NULL. */
const struct sonde_elf_section *sonde_elf_section_find(
	const struct sonde_elf *elf, const char *name);

/*
 * The section's contents, inflated where they are compressed (SHF_COMPRESSED by zlib or zstd, and .zdebug_*). Valid
 * until sonde_elf_free(). SONDE_TRUNCATED where it reaches beyond the file; SONDE_BAD_DATA where it does not inflate
 * to the size that it promises; SONDE_NOT_FOUND for a section without contents (SHT_NOBITS). Not for several threads.
 */
struct sonde_error *sonde_elf_section_read(struct sonde_elf *elf,
	const struct sonde_elf_section *section, const uint8_t **data, uint64_t *len) SONDE_CHECK;

/* File bytes behind a segment: NULL and 0 where it lies outside the file, cut at the file's end. */
const uint8_t *sonde_elf_segment_bytes(
	const struct sonde_elf *elf, const struct sonde_elf_segment *segment, uint64_t *len);

/* By PT_LOAD, file part only: the file offset of addr, and the address of a file offset. false: in no segment. */
bool sonde_elf_offset_of(const struct sonde_elf *elf, uint64_t addr, uint64_t *offset);
bool sonde_elf_addr_of(const struct sonde_elf *elf, uint64_t offset, uint64_t *addr);

/* len file bytes at the link-time address addr, or NULL where a segment does not hold them all. */
const uint8_t *sonde_elf_bytes_at(const struct sonde_elf *elf, uint64_t addr, uint64_t len);

/* "x86-64", "s390x", or "machine 1234" in text. */
const char *sonde_elf_machine_name(uint16_t machine, char text[32]);

/* What other bytes are, for messages: "a zip archive", "a shell script", "an empty file", "3 bytes of data". */
const char *sonde_elf_describe_bytes(const void *data, uint64_t len, char text[64]);
