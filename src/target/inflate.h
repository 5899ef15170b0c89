/* src/target/inflate.h: compressed core files (.zst .xz .lz4 .gz) into an unlinked sparse file. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include "base/error.h"
#include "base/log.h"
#include "base/notes.h"

/* The name of the compression that these first bytes of a file tell ("zstd"), or NULL. */
const char *sonde_inflate_detect(const void *data, size_t len);

/*
 * Inflate the file fd (borrowed; name is for messages) into an unlinked file in tmp_dir (NULL: $TMPDIR, else /var/tmp,
 * else /tmp), zero blocks as holes; *ret is its descriptor, the caller's. Concatenated streams are one file. Input that
 * is cut short or damaged keeps what came before, with a note; SONDE_BAD_DATA where that is nothing. SONDE_INTERRUPTED
 * as the log's progress says; SONDE_OS names the folder and what to do where it is full.
 */
struct sonde_error *sonde_inflate(int fd, const char *name, const char *tmp_dir,
	const struct sonde_log *log, struct sonde_notes *notes, int *ret) SONDE_CHECK;
