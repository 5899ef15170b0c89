/*
 * sonde/core.h: the core dump of a Go program, as `sonde core` sees it: goroutines, objects, types, who keeps what alive.
 *
 * Parts are worked out when first asked for, and kept. A dump is for one thread at a time; several dumps are independent.
 * Strings and whatever else a dump yields are borrowed: valid until sonde_dump_close(), unless it says otherwise.
 * Sizes are bytes, addresses those of the process that died.
 *
 * Every struct that the library reads or fills begins with `size`: the caller sets it to sizeof the struct as it was
 * compiled. Later versions add members at the end; they fill what the caller has room for.
 */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include "sonde/sonde.h"

#ifdef __cplusplus
extern "C" {
#endif

struct sonde_dump;

struct sonde_dump_options {
	size_t size;
	const char *exe; /* the executable; NULL: looked for where the core says it was */
	const char *sysroot; /* put before every path of the core; NULL: none */
	const char *debug_dirs; /* "DIR:DIR"; NULL: /usr/lib/debug */
	unsigned n_threads; /* for marking; 0: as many as there are CPUs */
	int use_debuginfod; /* ask the servers of DEBUGINFOD_URLS */
};

/* Open a core file, plain or compressed. options may be NULL; it is borrowed for the call. *ret is the caller's. */
SONDE_API struct sonde_error *sonde_dump_open(
	const char *path, const struct sonde_dump_options *options, struct sonde_dump **ret);
/* Takes NULL. */
SONDE_API void sonde_dump_close(struct sonde_dump *dump);

struct sonde_dump_info {
	size_t size;
	uint32_t pid; /* 0 = unknown */
	int32_t signal; /* that ended the process; 0 = none */
	uint64_t fault_addr; /* of SIGSEGV and the like; else 0 */
	const char *program; /* as the kernel names it, cut to 15 bytes */
	const char *go_version; /* "go1.27.4"; NULL where no Go runtime is readable */
};
/* Never fails: what is unknown is 0 or NULL. */
SONDE_API void sonde_dump_info(struct sonde_dump *dump, struct sonde_dump_info *ret);

/* --- the process --- */

enum sonde_dump_source {
	SONDE_DUMP_IN_CORE, /* the core holds the bytes */
	SONDE_DUMP_IN_FILE, /* they come from the mapped file */
	SONDE_DUMP_ZERO, /* never written: zeros */
	SONDE_DUMP_ABSENT /* not readable */
};

struct sonde_dump_mapping {
	size_t size;
	uint64_t start, end;
	uint32_t perm; /* 4 = read, 2 = write, 1 = execute */
	enum sonde_dump_source source;
	uint64_t file_offset;
	const char *path; /* NULL: anonymous */
	const char *reason; /* why it is absent; else NULL */
};
/* Ascending, disjoint. sonde_dump_mapping() returns 0 where i is no mapping, else 1; so do its likes below. */
SONDE_API size_t sonde_dump_n_mappings(struct sonde_dump *dump);
SONDE_API int sonde_dump_mapping(struct sonde_dump *dump, size_t i, struct sonde_dump_mapping *ret);

struct sonde_dump_thread {
	size_t size;
	uint32_t tid;
	int32_t signal; /* 0 = none */
	uint64_t goroutine; /* that it runs; 0 = none, or unknown */
};
/* The first one is the one that crashed. */
SONDE_API size_t sonde_dump_n_threads(struct sonde_dump *dump);
SONDE_API int sonde_dump_thread(struct sonde_dump *dump, size_t i, struct sonde_dump_thread *ret);

/* Copies len bytes at addr to `to`; SONDE_FAULT where not all of them are readable. */
SONDE_API struct sonde_error *sonde_dump_read(
	struct sonde_dump *dump, uint64_t addr, void *to, size_t len);

/* --- goroutines --- */

struct sonde_dump_goroutine {
	size_t size;
	uint64_t id, addr; /* addr: of its runtime.g */
	uint64_t parent; /* id of the one that made it; 0 = unknown */
	const char *state; /* "waiting" */
	const char *wait_reason; /* "chan receive"; NULL where it does not wait */
	uint32_t tid; /* of the thread that it runs on; 0 = none */
	uint32_t is_system; /* one of the runtime's own */
	size_t n_frames;
	const char *cut; /* why the frames end early; NULL = they are all there */
};
/* In the runtime's order. Fails where the core has no readable Go runtime. */
SONDE_API struct sonde_error *sonde_dump_n_goroutines(struct sonde_dump *dump, size_t *ret);
SONDE_API int sonde_dump_goroutine(
	struct sonde_dump *dump, size_t i, struct sonde_dump_goroutine *ret);

struct sonde_dump_call {
	size_t size;
	const char *function, *file;
	uint32_t line; /* 0 = unknown */
	uint32_t is_inlined; /* into the call that follows */
	uint64_t pc, sp; /* of the frame */
};
/*
 * A call of a goroutine's frame; frames and calls count from the innermost. Returns 0 where there is none (call 0 is
 * there for every frame), or where the function is unknown.
 */
SONDE_API int sonde_dump_call(struct sonde_dump *dump, size_t goroutine, size_t frame, size_t call,
	struct sonde_dump_call *ret);

/* --- objects --- */

struct sonde_dump_object {
	size_t size;
	uint64_t addr, bytes; /* of its slot */
	const char *
		type; /* "main.Node", "[]main.Node"; NULL = unknown; valid until the next call that yields a type */
	uint32_t is_live; /* reachable */
	uint32_t reserved;
};
/*
 * The first object at or behind number *next, which is moved behind it; 0 at the end. Numbers begin with 0. all: what is
 * allocated and not reachable, too. After sonde_dump_type_heap() only.
 */
SONDE_API int sonde_dump_next_object(
	struct sonde_dump *dump, int all, uint64_t *next, struct sonde_dump_object *ret);
/* The object that addr points into; 0 for none. After sonde_dump_type_heap() only. */
SONDE_API int sonde_dump_find_object(
	struct sonde_dump *dump, uint64_t addr, struct sonde_dump_object *ret);

/* Mark and type the heap: what the calls around it need. 4 bytes a slot of the heap, and a bit. */
SONDE_API struct sonde_error *sonde_dump_type_heap(struct sonde_dump *dump);

struct sonde_dump_type {
	size_t size;
	const char *name; /* "unknown" for what nobody says */
	uint64_t count, bytes; /* live objects; of their slots */
};
/* Of live objects, the largest first; they sum up to the live heap. */
SONDE_API struct sonde_error *sonde_dump_n_types(struct sonde_dump *dump, size_t *ret);
SONDE_API int sonde_dump_type(struct sonde_dump *dump, size_t i, struct sonde_dump_type *ret);

/* --- who keeps them --- */

enum sonde_dump_owner_kind {
	SONDE_DUMP_GLOBAL, /* a package variable */
	SONDE_DUMP_GOROUTINE,
	SONDE_DUMP_FINALIZERS /* that wait to run */
};

struct sonde_dump_owner {
	size_t size;
	enum sonde_dump_owner_kind kind;
	uint32_t reserved;
	uint64_t goroutine; /* its id */
	const char *name; /* "main.cache", "goroutine 7 (main.worker)" */
	uint64_t retained_bytes; /* what would be free without it */
};
/* In no order. What several owners keep counts for none. 16 bytes an object are kept from then on. */
SONDE_API struct sonde_error *sonde_dump_n_owners(struct sonde_dump *dump, size_t *ret);
SONDE_API int sonde_dump_owner(struct sonde_dump *dump, size_t i, struct sonde_dump_owner *ret);

/* --- what could not be read --- */

struct sonde_dump_note {
	size_t size;
	const char *kind; /* what was skipped or guessed */
	const char *first; /* the first place; NULL = unknown */
	uint64_t count, amount; /* how often; the sum of what kind names, 0 = no such figure */
};
/* Of all that was asked for so far. Strings are valid until the next call that works something out. */
SONDE_API size_t sonde_dump_n_notes(struct sonde_dump *dump);
SONDE_API int sonde_dump_note(struct sonde_dump *dump, size_t i, struct sonde_dump_note *ret);

#ifdef __cplusplus
}
#endif
