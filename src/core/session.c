#include "core/session.h"

#include <stdlib.h>
#include <sys/stat.h>

struct sonde_error *sonde_core_session_open(const char *path,
	const struct sonde_core_session_options *options, struct sonde_core_session **ret)
{
	sonde_cleanup(sonde_core_session) struct sonde_core_session *s =
		sonde_new(struct sonde_core_session);
	if (!s)
		return &sonde_enomem;
	struct sonde_core_options core = options ? options->core : (struct sonde_core_options){0};
	core.notes = &s->notes;
	s->log = core.log;
	s->n_threads = options ? options->n_threads : 0;
	sonde_arena_init(&s->arena);
	s->debug = (struct sonde_debugfile_options){
		.sysroot = core.sysroot ? sonde_arena_strdup(&s->arena, core.sysroot) : NULL,
		.debug_dirs =
			core.debug_dirs ? sonde_arena_strdup(&s->arena, core.debug_dirs) : NULL,
		.log = s->log,
		.notes = &s->notes,
		.no_debuginfod = core.no_debuginfod,
	};
	if ((core.sysroot && !s->debug.sysroot) || (core.debug_dirs && !s->debug.debug_dirs))
		return &sonde_enomem;
	struct stat st;
	if (stat(path, &st) == 0)
		s->file_bytes = (uint64_t)st.st_size;
	SONDE_TRY(sonde_core_file_open(path, &core, &s->target));
	sonde_notes_merge(&s->part_notes[SONDE_CORE_PART_FILE], &s->notes);
	s->told = 1u << SONDE_CORE_PART_FILE;
	*ret = sonde_take(s);
	return NULL;
}

struct sonde_core_session *sonde_core_session_share(struct sonde_core_session *session)
{
	session->n_sharers++;
	return session;
}

void sonde_core_session_free(struct sonde_core_session *s)
{
	if (!s)
		return;
	if (s->n_sharers) {
		s->n_sharers--;
		return;
	}
	sonde_core_typing_free(s->typing);
	sonde_core_marks_free(s->marks);
	sonde_go_types_free(s->types);
	sonde_goroutines_free(s->goroutines);
	sonde_go_heap_free(s->heap);
	sonde_go_free(s->go);
	sonde_target_free(s->target);
	sonde_arena_deinit(&s->arena);
	sonde_notes_deinit(&s->notes);
	for (size_t i = 0; i < SONDE_CORE_N_PARTS; i++)
		sonde_notes_deinit(&s->part_notes[i]);
	free(s);
}

/* A part that is there is used by the report: its notes belong into it, once. */
static struct sonde_error *tell(struct sonde_core_session *s, enum sonde_core_part part)
{
	if (!(s->told >> part & 1))
		sonde_notes_merge(&s->notes, &s->part_notes[part]);
	s->told |= 1u << part;
	return NULL;
}

void sonde_core_session_begin_report(struct sonde_core_session *s)
{
	sonde_notes_deinit(&s->notes);
	s->notes = (struct sonde_notes){0};
	s->told = 0;
	(void)tell(s, SONDE_CORE_PART_FILE);
}

/*
 * Make a part with what it notes kept apart. What it needs is made before: else its notes would be counted twice. They
 * are told by the report even where the part cannot be made.
 */
static struct sonde_error *make_part(struct sonde_core_session *s, enum sonde_core_part part,
	struct sonde_error *(*make)(struct sonde_core_session *))
{
	struct sonde_notes before = s->notes;
	s->notes = (struct sonde_notes){0};
	struct sonde_error *err = make(s);
	struct sonde_notes made = s->notes;
	s->notes = before;
	sonde_notes_merge(&s->notes, &made);
	if (err) {
		sonde_notes_deinit(&made);
		return err;
	}
	sonde_notes_deinit(&s->part_notes[part]);
	s->part_notes[part] = made;
	s->told |= 1u << part;
	return NULL;
}

static struct sonde_error *make_go(struct sonde_core_session *s)
{
	return sonde_go_open(s->target, &s->debug, &s->notes, &s->go);
}

struct sonde_error *sonde_core_session_need_go(struct sonde_core_session *s)
{
	return s->go ? tell(s, SONDE_CORE_PART_GO) : make_part(s, SONDE_CORE_PART_GO, make_go);
}

static struct sonde_error *make_heap(struct sonde_core_session *s)
{
	return sonde_go_heap_open(s->go, &s->heap);
}

struct sonde_error *sonde_core_session_need_heap(struct sonde_core_session *s)
{
	SONDE_TRY(sonde_core_session_need_go(s));
	return s->heap ? tell(s, SONDE_CORE_PART_HEAP)
		       : make_part(s, SONDE_CORE_PART_HEAP, make_heap);
}

static struct sonde_error *make_goroutines(struct sonde_core_session *s)
{
	return sonde_goroutines_open(s->go, &s->goroutines);
}

struct sonde_error *sonde_core_session_need_goroutines(struct sonde_core_session *s)
{
	SONDE_TRY(sonde_core_session_need_go(s));
	return s->goroutines ? tell(s, SONDE_CORE_PART_GOROUTINES)
			     : make_part(s, SONDE_CORE_PART_GOROUTINES, make_goroutines);
}

static struct sonde_error *make_marks(struct sonde_core_session *s)
{
	return sonde_core_mark(s->heap, s->goroutines, s->n_threads, &s->notes, &s->marks);
}

struct sonde_error *sonde_core_session_need_marks(struct sonde_core_session *s)
{
	if (s->marks) {
		(void)tell(s, SONDE_CORE_PART_GO);
		(void)tell(s, SONDE_CORE_PART_HEAP);
		(void)tell(s, SONDE_CORE_PART_GOROUTINES);
		return tell(s, SONDE_CORE_PART_MARKS);
	}
	SONDE_TRY(sonde_core_session_need_heap(s));
	sonde_cleanup(sonde_error) struct sonde_error *err = sonde_core_session_need_goroutines(s);
	if (err && err->code == SONDE_NO_MEMORY)
		return sonde_take(err);
	if (!sonde_log_progress(s->log, "marking", 0, s->heap->n_slots))
		return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	SONDE_TRY(make_part(s, SONDE_CORE_PART_MARKS, make_marks));
	/* Whoever asks for marks again does not ask for goroutines again: the reason is kept with the marks. */
	struct sonde_notes *both[] = {&s->notes, &s->part_notes[SONDE_CORE_PART_MARKS]};
	for (size_t i = 0; err && i < SONDE_ARRAY_LEN(both); i++)
		sonde_notes_add(both[i],
			"goroutines not readable: what only stacks reach counts as garbage", 0,
			"%s", err->message);
	return NULL;
}

static struct sonde_error *make_typing(struct sonde_core_session *s)
{
	SONDE_TRY(sonde_core_session_need_types(s));
	return sonde_core_type_heap(s->heap, s->goroutines, s->marks, s->types, &s->typing);
}

struct sonde_error *sonde_core_session_need_types(struct sonde_core_session *s)
{
	if (s->types)
		return NULL;
	SONDE_TRY(sonde_core_session_need_go(s));
	return sonde_go_types_open(s->go, &s->types);
}

struct sonde_error *sonde_core_session_need_typing(struct sonde_core_session *s)
{
	SONDE_TRY(sonde_core_session_need_marks(s));
	if (s->typing)
		return tell(s, SONDE_CORE_PART_TYPING);
	if (!sonde_log_progress(s->log, "typing", 0, s->heap->n_slots))
		return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	return make_part(s, SONDE_CORE_PART_TYPING, make_typing);
}
