/* src/target/core_file.h: a core dump as a target: mapped, never copied; what it leaves out comes from mapped files. */
#pragma once
#include "base/error.h"
#include "base/log.h"
#include "base/notes.h"
#include "target/target.h"

/* All strings are borrowed for the call, log and notes too; every field may be NULL. */
struct sonde_core_options {
	const char *exe; /* the executable; a wrong one is SONDE_MISMATCH */
	const char *sysroot; /* put before every path of the core */
	const char *debug_dirs; /* "DIR:DIR", default /usr/lib/debug */
	const char *tmp_dir; /* for inflated cores; default $TMPDIR, else /var/tmp, else /tmp */
	const struct sonde_log *log;
	struct sonde_notes *notes;
	bool no_debuginfod;
};

/*
 * Open path, a core file of x86-64, i386 or arm64, plain or compressed (.zst .xz .lz4 .gz by their magic). What it leaves
 * out and no file can give stays a mapping with a reason; damage that leaves the rest readable goes to options->notes.
 * SONDE_BAD_DATA: no core dump (the text says what it is); SONDE_UNSUPPORTED: another machine; SONDE_TRUNCATED: not even
 * its headers; SONDE_MISMATCH: options->exe is another program; SONDE_INTERRUPTED; SONDE_OS, SONDE_NO_MEMORY (also: no
 * address space). options may be NULL.
 */
struct sonde_error *sonde_core_file_open(const char *path, const struct sonde_core_options *options,
	struct sonde_target **ret) SONDE_CHECK;
