/*
 * src/target/target.h: a process to look into, dead (a core file) or alive: memory, mappings, threads. Reading memory
 * is safe from several threads at once; everything returned is borrowed until sonde_target_free().
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "object/buildid.h"
#include "object/elf.h"
#include "target/regs.h"

struct sonde_target;
void sonde_target_free(struct sonde_target *t);
SONDE_DEFINE_CLEANUP(sonde_target)

enum { SONDE_PERM_R = 4, SONDE_PERM_W = 2, SONDE_PERM_X = 1 }; /* as PF_* */

enum sonde_source {
	SONDE_SOURCE_CORE, /* the core holds the bytes */
	SONDE_SOURCE_FILE, /* from the mapped file */
	SONDE_SOURCE_ZERO, /* never written: reads as zeros */
	SONDE_SOURCE_ABSENT, /* not readable: see reason */
};

struct sonde_mapping {
	uint64_t start, end;
	uint32_t perm; /* SONDE_PERM_*; of the file's segment where the core does not tell */
	enum sonde_source source;
	uint64_t core_offset; /* SOURCE_CORE: where in the (inflated) core file */
	uint64_t file_offset; /* where path is set: the offset of start in that file */
	const char *path; /* as the process had it (NT_FILE), "[vdso]", or NULL: anonymous */
	const char *from; /* SOURCE_FILE: the file that was read instead of path */
	const char *reason; /* SOURCE_ABSENT: why */
};

struct sonde_thread {
	uint32_t tid;
	int signal; /* that ended the process, 0 = none; kernels write it for every thread */
	struct sonde_regs regs;
};

struct sonde_process_info {
	uint16_t machine; /* EM_* */
	unsigned word_bytes;
	bool big_endian;
	uint64_t page_bytes;
	bool has_psinfo; /* pid .. args */
	uint32_t pid, ppid, uid, gid;
	char program[16 + 1]; /* comm */
	char args[80 + 1]; /* cut by the kernel */
	int signal; /* that ended it, 0 = none (gcore of a running process) */
	bool has_siginfo; /* signal_code, fault_addr, signal_pid */
	int signal_code;
	uint64_t fault_addr; /* SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP; else 0 */
	uint32_t
		signal_pid; /* who sent it, where signal_code says that somebody did (SI_USER, SI_TKILL, SI_QUEUE) */
	bool has_auxv; /* clk_tck .. execfn */
	uint32_t clk_tck;
	uint64_t entry, phdr, n_phdr, interpreter_base,
		vdso; /* AT_ENTRY, AT_PHDR, AT_PHNUM, AT_BASE, AT_SYSINFO_EHDR */
	uint64_t execfn_addr, platform_addr, random_addr;
	const char *execfn, *platform; /* "" where unknown */
};

/* Sorted by start, disjoint. */
const struct sonde_mapping *sonde_target_mappings(const struct sonde_target *t, size_t *n);
/*
 * The bytes of a mapping of t that somebody keeps: CORE: those that are no hole of the file (counted now: a look at each
 * extent), FILE: all; else 0.
 */
uint64_t sonde_target_present_bytes(const struct sonde_target *t, const struct sonde_mapping *m);
/* The mapping that holds addr, or NULL. */
const struct sonde_mapping *sonde_target_mapping_find(const struct sonde_target *t, uint64_t addr);

/* The first is the one that crashed (or that the dumper stopped first). */
const struct sonde_thread *sonde_target_threads(const struct sonde_target *t, size_t *n);
const struct sonde_process_info *sonde_target_info(const struct sonde_target *t);
/* "core.1234" for messages. */
const char *sonde_target_name(const struct sonde_target *t);

/*
 * The executable, opened, or NULL with *why (may be NULL) set to one line: which paths were tried, which build-id is
 * wanted. Not const: reading compressed sections inflates them.
 */
struct sonde_elf *sonde_target_exe(const struct sonde_target *t, const char **why);
/* The path it was opened by, else the process's own path of it, else "". */
const char *sonde_target_exe_path(const struct sonde_target *t);
/* What the core itself says of the executable's identity; len 0 / "" = nothing. */
const struct sonde_buildid *sonde_target_exe_buildid(const struct sonde_target *t);
const char *sonde_target_exe_gobuildid(const struct sonde_target *t);
/* Run-time address = link-time address + bias (modulo 2^64): 0 for a fixed executable, and where unknown. */
uint64_t sonde_target_exe_bias(const struct sonde_target *t);

/* --- memory --- */

/* false: some byte is not readable; `to` is then partly written. */
bool sonde_target_read(struct sonde_target *t, uint64_t addr, void *to, size_t len);
/* The number of leading bytes that are readable, at most len. */
size_t sonde_target_read_some(struct sonde_target *t, uint64_t addr, void *to, size_t len);

/*
 * The bytes in place, or NULL where not all len are readable and contiguous here (then sonde_target_read() may still
 * succeed). A binary search over the readable runs, no locks. No alignment is promised: load words by memcpy.
 */
const uint8_t *sonde_target_bytes(struct sonde_target *t, uint64_t addr, uint64_t len);

/* A run of readable memory that is contiguous on the host. */
struct sonde_target_run {
	uint64_t start, size_bytes;
	const uint8_t *host;
};

/* The run that holds addr; false: not readable in place. */
bool sonde_target_run_find(struct sonde_target *t, uint64_t addr, struct sonde_target_run *ret);

/* sonde_target_bytes() with the caller's last-hit cache (all zero at first, one a thread): one compare on a hit. */
static inline const uint8_t *sonde_target_bytes_cached(
	struct sonde_target *t, struct sonde_target_run *cache, uint64_t addr, uint64_t len)
{
	uint64_t at = addr - cache->start;
	if (sonde_unlikely(at >= cache->size_bytes)) {
		if (!sonde_target_run_find(t, addr, cache))
			return NULL;
		at = addr - cache->start;
	}
	return len <= cache->size_bytes - at ? cache->host + at : NULL;
}

/* malloc'd, NUL-terminated, at most max bytes: up to a NUL or to what is readable; NULL where nothing is, or no memory. */
char *sonde_target_string(struct sonde_target *t, uint64_t addr, size_t max);

/* What the readers below need; fixed for the target's life. */
struct sonde_target_shape {
	uint8_t word_bytes;
	bool swap; /* its byte order is not the host's */
};

static inline struct sonde_target_shape sonde_target_shape(const struct sonde_target *t)
{
	/* The first member of every struct sonde_target (target/ops.h). */
	return *(const struct sonde_target_shape *)(const void *)t;
}

static inline bool sonde_target_read_u8(struct sonde_target *t, uint64_t addr, uint8_t *ret)
{
	return sonde_target_read(t, addr, ret, 1);
}

#define SONDE_TARGET_READER(bits)                                                 \
	static inline bool sonde_target_read_u##bits(                             \
		struct sonde_target *t, uint64_t addr, uint##bits##_t *ret)       \
	{                                                                         \
		uint##bits##_t v;                                                 \
		if (sonde_unlikely(!sonde_target_read(t, addr, &v, sizeof(v))))   \
			return false;                                             \
		*ret = sonde_target_shape(t).swap ? __builtin_bswap##bits(v) : v; \
		return true;                                                      \
	}
SONDE_TARGET_READER(16)
SONDE_TARGET_READER(32)
SONDE_TARGET_READER(64)
#undef SONDE_TARGET_READER

/* A word of the target (4 or 8 bytes), zero-extended. */
static inline bool sonde_target_read_word(struct sonde_target *t, uint64_t addr, uint64_t *ret)
{
	if (sonde_target_shape(t).word_bytes == 8)
		return sonde_target_read_u64(t, addr, ret);
	uint32_t v;
	if (!sonde_target_read_u32(t, addr, &v))
		return false;
	*ret = v;
	return true;
}

/*
 * A target over the caller's own memory, for tests and for parts of a program: n runs, sorted by start, disjoint;
 * their host bytes are borrowed. No threads, no executable. NULL: out of memory.
 */
struct sonde_target *sonde_target_over_runs(
	const struct sonde_target_run *runs, size_t n, uint16_t machine, unsigned word_bytes);
