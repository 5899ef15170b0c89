/*
 * src/core/session.h: a core dump, opened and understood as far as a report needs it: each part is made when first asked
 * for and kept. One thread at a time.
 *
 * Several reports may be made of one session, each as if it were the first: what was noted while a part was made is kept
 * with the part and told by every report that needs it; what a report notes itself is forgotten when the next begins.
 */
#pragma once
#include "base/error.h"
#include "base/mem.h"
#include "base/notes.h"
#include "core/mark.h"
#include "core/typing.h"
#include "golang/goroutine.h"
#include "golang/heap.h"
#include "golang/runtime.h"
#include "golang/types.h"
#include "target/core_file.h"

struct sonde_core_session_options {
	struct sonde_core_options core; /* ->notes is not used: the session has its own */
	unsigned n_threads; /* for marking; 0 = as many as there are CPUs */
};

enum sonde_core_part {
	SONDE_CORE_PART_FILE,
	SONDE_CORE_PART_GO,
	SONDE_CORE_PART_HEAP,
	SONDE_CORE_PART_GOROUTINES,
	SONDE_CORE_PART_MARKS,
	SONDE_CORE_PART_TYPING,
	SONDE_CORE_N_PARTS
};

struct sonde_core_session {
	/* Read only; ask by the functions below for what may not be there yet. */
	struct sonde_target *target;
	struct sonde_notes notes; /* of the report that is being made, with those of its parts */
	struct sonde_notes part_notes[SONDE_CORE_N_PARTS];
	uint32_t told; /* bits: parts whose notes are in `notes` */
	unsigned n_sharers; /* beside the first owner */
	const struct sonde_log *log; /* borrowed, may be NULL */
	uint64_t file_bytes; /* of the core file as given */
	unsigned n_threads;
	struct sonde_arena arena;
	struct sonde_debugfile_options debug; /* its strings in the arena */
	struct sonde_go *go;
	struct sonde_go_heap *heap;
	struct sonde_goroutines *goroutines;
	struct sonde_go_types *types;
	struct sonde_core_marks *marks;
	struct sonde_core_typing *typing;
};

/* options may be NULL; its strings are borrowed for the call, the log until free. Opens the core, not yet the runtime. */
struct sonde_error *sonde_core_session_open(const char *path,
	const struct sonde_core_session_options *options,
	struct sonde_core_session **ret) SONDE_CHECK;
void sonde_core_session_free(struct sonde_core_session *session);
SONDE_DEFINE_CLEANUP(sonde_core_session)

/* One more owner, who calls sonde_core_session_free() as well: the last one frees. Returns session. */
struct sonde_core_session *sonde_core_session_share(struct sonde_core_session *session);

/* Another report begins: notes hold only what opening the file noted. */
void sonde_core_session_begin_report(struct sonde_core_session *session);

/* See to it that the part is there. A failure leaves the session usable without it. */
struct sonde_error *sonde_core_session_need_go(struct sonde_core_session *s) SONDE_CHECK;
struct sonde_error *sonde_core_session_need_heap(struct sonde_core_session *s) SONDE_CHECK;
struct sonde_error *sonde_core_session_need_goroutines(struct sonde_core_session *s) SONDE_CHECK;
struct sonde_error *sonde_core_session_need_marks(struct sonde_core_session *s) SONDE_CHECK;
struct sonde_error *sonde_core_session_need_types(struct sonde_core_session *s) SONDE_CHECK;
struct sonde_error *sonde_core_session_need_typing(struct sonde_core_session *s) SONDE_CHECK;
