/*
 * src/object/debugfile.h: where a file's separate debug information lies: .gnu_debuglink, build-id directories,
 * debuginfod. Each is looked for under the sysroot first.
 */
#pragma once
#include "base/error.h"
#include "base/log.h"
#include "base/notes.h"
#include "object/buildid.h"
#include "object/elf.h"

struct sonde_debugfile_options {
	const char *sysroot; /* NULL = none */
	const char *debug_dirs; /* "DIR:DIR", NULL = /usr/lib/debug */
	const struct sonde_log *log; /* may be NULL */
	struct sonde_notes *notes; /* may be NULL */
	bool no_debuginfod; /* never ask, even where DEBUGINFOD_URLS is set */
};

/*
 * The debug file of elf, opened. SONDE_NOT_FOUND with one line that lists the paths tried and the build-id wanted.
 * A candidate whose build-id (or, without one, the link's CRC) differs is passed over and named in that line.
 */
struct sonde_error *sonde_debugfile_open(struct sonde_elf *elf,
	const struct sonde_debugfile_options *options, struct sonde_elf **ret) SONDE_CHECK;

/* An executable or library by build-id alone: build-id directories (.build-id/xx/yyyy), debuginfod. */
struct sonde_error *sonde_debugfile_open_executable(const struct sonde_buildid *id,
	const struct sonde_debugfile_options *options, struct sonde_elf **ret) SONDE_CHECK;

/* The checksum of .gnu_debuglink: CRC-32 as zlib has it. */
uint32_t sonde_debugfile_crc(const void *data, size_t len);
