/* src/base/mapfile.h: a whole regular file, mapped read-only and shared with the page cache. */
#pragma once
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"

struct sonde_mapfile {
	char *path; /* owned */
	const uint8_t *data; /* NULL for an empty file */
	uint64_t size_bytes;
	uint64_t device, inode; /* which file it was */
	int fd; /* owned, O_CLOEXEC */
};

/*
 * Map path. SONDE_OS with the path where it cannot be opened, read or mapped; SONDE_UNSUPPORTED for what is not a
 * regular file. A file that another process shortens while mapped kills the reader (SIGBUS): inputs must not change.
 */
struct sonde_error *sonde_mapfile_open(const char *path, struct sonde_mapfile **ret) SONDE_CHECK;

/* The same over an open descriptor, which is taken on success; name is for messages. */
struct sonde_error *sonde_mapfile_open_fd(
	int fd, const char *name, struct sonde_mapfile **ret) SONDE_CHECK;
void sonde_mapfile_free(struct sonde_mapfile *file);
SONDE_DEFINE_CLEANUP(sonde_mapfile)
