/* src/object/gobuildinfo.h: what the Go linker stores about a build: version, modules, settings. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/arena.h"
#include "base/error.h"
#include "object/elf.h"

struct sonde_gomodule {
	const char *path, *version, *sum; /* "" where absent */
	const char *replaced_by, *replaced_version; /* NULL where not replaced */
};

struct sonde_gosetting {
	const char *key, *value; /* value unquoted */
};

struct sonde_gobuildinfo {
	struct sonde_arena arena; /* holds all text below */
	const char *go_version; /* "go1.24.4" */
	const char *modules; /* the text between the sentinels, "" where absent */
	const char *path; /* of the main package, "" where absent */
	struct sonde_gomodule main; /* .path is "" where absent */
	struct sonde_gomodule *deps;
	size_t n_deps;
	struct sonde_gosetting *settings; /* "GOARCH", "-tags", "vcs.revision", ... */
	size_t n_settings;
};

/* Memory by address, for the pointer form (Go 1.13 to 1.17). */
struct sonde_gobuildinfo_reader {
	bool (*read)(void *ctx, uint64_t addr, void *to, size_t len);
	void *ctx; /* borrowed */
};

/* Find the blob in the section .go.buildinfo, else in a writable (else any) segment. SONDE_NOT_FOUND: no Go program. */
struct sonde_error *sonde_gobuildinfo_of_elf(
	struct sonde_elf *elf, struct sonde_gobuildinfo **ret) SONDE_CHECK;

/*
 * Decode the blob that begins at data ("\xff Go buildinf:"). reader may be NULL: then the pointer form is
 * SONDE_UNSUPPORTED. Damaged module text is dropped, the version kept.
 */
struct sonde_error *sonde_gobuildinfo_decode(const void *data, size_t len,
	const struct sonde_gobuildinfo_reader *reader, struct sonde_gobuildinfo **ret) SONDE_CHECK;

/* The offset of a blob in len bytes, at a multiple of 16; false: none. */
bool sonde_gobuildinfo_search(const void *data, size_t len, size_t *offset);
void sonde_gobuildinfo_free(struct sonde_gobuildinfo *info);
SONDE_DEFINE_CLEANUP(sonde_gobuildinfo)

/* A setting's value, or NULL. */
const char *sonde_gobuildinfo_setting(const struct sonde_gobuildinfo *info, const char *key);
