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
	*ret = sonde_take(s);
	return NULL;
}

void sonde_core_session_free(struct sonde_core_session *s)
{
	if (!s)
		return;
	sonde_core_typing_free(s->typing);
	sonde_core_marks_free(s->marks);
	sonde_go_types_free(s->types);
	sonde_goroutines_free(s->goroutines);
	sonde_go_heap_free(s->heap);
	sonde_go_free(s->go);
	sonde_target_free(s->target);
	sonde_arena_deinit(&s->arena);
	sonde_notes_deinit(&s->notes);
	free(s);
}

struct sonde_error *sonde_core_session_need_go(struct sonde_core_session *s)
{
	return s->go ? NULL : sonde_go_open(s->target, &s->debug, &s->notes, &s->go);
}

struct sonde_error *sonde_core_session_need_heap(struct sonde_core_session *s)
{
	if (s->heap)
		return NULL;
	SONDE_TRY(sonde_core_session_need_go(s));
	return sonde_go_heap_open(s->go, &s->heap);
}

struct sonde_error *sonde_core_session_need_goroutines(struct sonde_core_session *s)
{
	if (s->goroutines)
		return NULL;
	SONDE_TRY(sonde_core_session_need_go(s));
	return sonde_goroutines_open(s->go, &s->goroutines);
}

struct sonde_error *sonde_core_session_need_marks(struct sonde_core_session *s)
{
	if (s->marks)
		return NULL;
	SONDE_TRY(sonde_core_session_need_heap(s));
	struct sonde_error *err = sonde_core_session_need_goroutines(s);
	if (err && err->code == SONDE_NO_MEMORY)
		return err;
	if (err)
		sonde_notes_add(&s->notes,
			"goroutines not readable: what only stacks reach counts as garbage", 0,
			"%s", err->message);
	sonde_error_free(err);
	if (!sonde_log_progress(s->log, "marking", 0, s->heap->n_slots))
		return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	return sonde_core_mark(s->heap, s->goroutines, s->n_threads, &s->notes, &s->marks);
}

struct sonde_error *sonde_core_session_need_typing(struct sonde_core_session *s)
{
	if (s->typing)
		return NULL;
	SONDE_TRY(sonde_core_session_need_marks(s));
	if (!s->types)
		SONDE_TRY(sonde_go_types_open(s->go, &s->types));
	if (!sonde_log_progress(s->log, "typing", 0, s->heap->n_slots))
		return sonde_error_new(SONDE_INTERRUPTED, "interrupted");
	return sonde_core_type_heap(s->heap, s->goroutines, s->marks, s->types, &s->typing);
}
