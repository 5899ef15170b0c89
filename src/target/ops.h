/* src/target/ops.h: the inside of a target, for its kinds (core file, live process) and for nobody else. */
#pragma once
#include "base/arena.h"
#include "target/target.h"

struct sonde_target_ops {
	/* Leading readable bytes at an address that no run holds; NULL = none. Safe from several threads. */
	size_t (*read_some)(struct sonde_target *t, uint64_t addr, void *to, size_t len);
	/* As sonde_target_present_bytes() for a mapping of SONDE_SOURCE_CORE; NULL = all of it. */
	uint64_t (*present_bytes)(const struct sonde_target *t, const struct sonde_mapping *m);
	/* Free what the kind owns and the struct itself; the common parts are gone by then. */
	void (*free)(struct sonde_target *t);
};

struct sonde_target {
	struct sonde_target_shape shape; /* first: sonde_target_shape() */
	const struct sonde_target_ops *ops;
	struct sonde_target_run *runs; /* sorted by start, disjoint; constant once open */
	size_t n_runs;
	struct sonde_mapping *mappings; /* sorted by start, disjoint */
	size_t n_mappings;
	struct sonde_thread *threads;
	size_t n_threads;
	struct sonde_process_info info;
	struct sonde_arena arena; /* every text of mappings, info and the executable's fields */
	const char *name;
	struct sonde_elf *exe; /* NULL = not found: exe_why */
	const char *exe_path, *exe_why;
	struct sonde_buildid exe_buildid;
	char exe_gobuildid[SONDE_GOBUILDID_BYTES];
	uint64_t exe_bias;
};

/* Fill info from an auxiliary vector of words of info->word_bytes, as the kernel gives it to a process. */
void sonde_target_decode_auxv(const void *data, size_t len, struct sonde_process_info *info);
