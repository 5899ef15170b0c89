#include "sonde/core.h"

#include <stdlib.h>
#include <string.h>
#include "core/histogram.h"
#include "core/names.h"
#include "core/retained.h"
#include "core/session.h"

struct sonde_dump {
	struct sonde_core_session *session;
	struct sonde_core_histogram types;
	bool has_types;
	struct sonde_core_retained *retained;
	struct sonde_arena names; /* of owners */
	const char **owner_names; /* NULL = not made yet */
	struct sonde_buf type_name;
};

/* Fill what the caller's struct, as old as it may be, has room for. */
static void fill(void *to, const void *from, size_t bytes)
{
	size_t size, room = *(size_t *)to;
	size = sonde_min(room, bytes);
	if (size > sizeof(size_t))
		memcpy((char *)to + sizeof(size_t), (const char *)from + sizeof(size_t),
			size - sizeof(size_t));
}

struct sonde_error *sonde_dump_open(
	const char *path, const struct sonde_dump_options *options, struct sonde_dump **ret)
{
	struct sonde_dump_options o = {.size = sizeof(o)};
	if (options && options->size < sizeof(size_t))
		return sonde_error_new(SONDE_USAGE, "sonde_dump_options: size is not set");
	if (options)
		memcpy(&o, options, sonde_min(options->size, sizeof(o)));
	struct sonde_core_session_options session = {
		.core = {.exe = o.exe,
			.sysroot = o.sysroot,
			.debug_dirs = o.debug_dirs,
			.no_debuginfod = !o.use_debuginfod},
		.n_threads = o.n_threads,
	};
	sonde_cleanup(free) struct sonde_dump *d = sonde_new(struct sonde_dump);
	if (!d)
		return &sonde_enomem;
	SONDE_TRY(sonde_core_session_open(path, &session, &d->session));
	sonde_arena_init(&d->names);
	*ret = sonde_take(d);
	return NULL;
}

void sonde_dump_close(struct sonde_dump *d)
{
	if (!d)
		return;
	if (d->has_types)
		sonde_core_histogram_deinit(&d->types);
	sonde_core_retained_free(d->retained);
	free(d->owner_names);
	sonde_arena_deinit(&d->names);
	sonde_buf_deinit(&d->type_name);
	sonde_core_session_free(d->session);
	free(d);
}

void sonde_dump_info(struct sonde_dump *d, struct sonde_dump_info *ret)
{
	const struct sonde_process_info *p = sonde_target_info(d->session->target);
	struct sonde_error *err = sonde_core_session_need_go(d->session);
	struct sonde_dump_info info = {
		.pid = p->has_psinfo ? p->pid : 0,
		.signal = p->signal,
		.fault_addr = p->has_siginfo ? p->fault_addr : 0,
		.program = p->has_psinfo ? p->program : NULL,
		.go_version = err ? NULL : d->session->go->version,
	};
	sonde_error_free(err);
	fill(ret, &info, sizeof(info));
}

size_t sonde_dump_n_mappings(struct sonde_dump *d)
{
	size_t n;
	sonde_target_mappings(d->session->target, &n);
	return n;
}

int sonde_dump_mapping(struct sonde_dump *d, size_t i, struct sonde_dump_mapping *ret)
{
	static const enum sonde_dump_source sources[] = {
		[SONDE_SOURCE_CORE] = SONDE_DUMP_IN_CORE,
		[SONDE_SOURCE_FILE] = SONDE_DUMP_IN_FILE,
		[SONDE_SOURCE_ZERO] = SONDE_DUMP_ZERO,
		[SONDE_SOURCE_ABSENT] = SONDE_DUMP_ABSENT,
	};
	size_t n;
	const struct sonde_mapping *all = sonde_target_mappings(d->session->target, &n);
	if (i >= n)
		return 0;
	struct sonde_dump_mapping m = {
		.start = all[i].start,
		.end = all[i].end,
		.perm = all[i].perm,
		.source = sources[all[i].source],
		.file_offset = all[i].file_offset,
		.path = all[i].path,
		.reason = all[i].reason,
	};
	fill(ret, &m, sizeof(m));
	return 1;
}

size_t sonde_dump_n_threads(struct sonde_dump *d)
{
	size_t n;
	sonde_target_threads(d->session->target, &n);
	return n;
}

int sonde_dump_thread(struct sonde_dump *d, size_t i, struct sonde_dump_thread *ret)
{
	size_t n;
	const struct sonde_thread *all = sonde_target_threads(d->session->target, &n);
	if (i >= n)
		return 0;
	struct sonde_dump_thread t = {.tid = all[i].tid, .signal = all[i].signal};
	struct sonde_error *err = sonde_core_session_need_goroutines(d->session);
	if (!err) {
		sonde_vec_foreach (g, &d->session->goroutines->all)
			if (g->thread >= 0 && (size_t)g->thread == i)
				t.goroutine = g->id;
	}
	sonde_error_free(err);
	fill(ret, &t, sizeof(t));
	return 1;
}

struct sonde_error *sonde_dump_read(struct sonde_dump *d, uint64_t addr, void *to, size_t len)
{
	if (sonde_target_read(d->session->target, addr, to, len))
		return NULL;
	return sonde_error_new(SONDE_FAULT, "%zu bytes at 0x%llx are not all readable", len,
		(unsigned long long)addr);
}

/* --- goroutines --- */

struct sonde_error *sonde_dump_n_goroutines(struct sonde_dump *d, size_t *ret)
{
	SONDE_TRY(sonde_core_session_need_goroutines(d->session));
	*ret = d->session->goroutines->all.n;
	return NULL;
}

static const struct sonde_goroutine *goroutine(const struct sonde_dump *d, size_t i)
{
	const struct sonde_goroutines *gs = d->session->goroutines;
	return gs && i < gs->all.n ? &gs->all.items[i] : NULL;
}

int sonde_dump_goroutine(struct sonde_dump *d, size_t i, struct sonde_dump_goroutine *ret)
{
	const struct sonde_goroutine *g = goroutine(d, i);
	if (!g)
		return 0;
	size_t n;
	const struct sonde_thread *threads = sonde_target_threads(d->session->target, &n);
	struct sonde_dump_goroutine v = {
		.id = g->id,
		.addr = g->addr,
		.parent = g->parent_id,
		.state = g->state,
		.wait_reason = g->wait_reason,
		.tid = g->thread >= 0 ? threads[g->thread].tid : 0,
		.is_system = g->system,
		.n_frames = g->n_frames,
		.cut = g->cut,
	};
	fill(ret, &v, sizeof(v));
	return 1;
}

int sonde_dump_call(
	struct sonde_dump *d, size_t i, size_t frame, size_t call, struct sonde_dump_call *ret)
{
	enum { MOST = 64 };
	const struct sonde_goroutine *g = goroutine(d, i);
	if (!g || frame >= g->n_frames || call >= MOST)
		return 0;
	const struct sonde_go_frame *f = &sonde_goroutine_frames(d->session->goroutines, g)[frame];
	struct sonde_pccall calls[MOST];
	size_t n = sonde_min(sonde_go_frame_calls(d->session->go, f, calls, MOST), (size_t)MOST);
	if (call >= n)
		return 0;
	struct sonde_dump_call v = {
		.function = calls[call].function,
		.file = calls[call].file,
		.line = calls[call].line,
		.is_inlined = call + 1 < n,
		.pc = f->pc,
		.sp = f->sp,
	};
	fill(ret, &v, sizeof(v));
	return 1;
}

/* --- objects --- */

struct sonde_error *sonde_dump_type_heap(struct sonde_dump *d)
{
	return sonde_core_session_need_typing(d->session);
}

static void fill_object(struct sonde_dump *d, const struct sonde_go_span *span, uint32_t slot,
	struct sonde_dump_object *ret)
{
	struct sonde_core_session *s = d->session;
	uint32_t object = span->first + slot;
	struct sonde_dump_object v = {
		.addr = sonde_go_span_addr(span, slot),
		.bytes = span->slot_bytes,
		.is_live = sonde_core_marks_has(s->marks, object),
	};
	if (s->typing->of[object] & ~SONDE_CORE_TYPE_MANY) {
		d->type_name.len = 0;
		sonde_core_type_name(s, s->typing->of[object], &d->type_name);
		v.type = sonde_buf_text(&d->type_name);
	}
	fill(ret, &v, sizeof(v));
}

int sonde_dump_next_object(
	struct sonde_dump *d, int all, uint64_t *next, struct sonde_dump_object *ret)
{
	struct sonde_core_session *s = d->session;
	if (!s->typing)
		return 0;
	for (; *next < s->heap->n_slots; ++*next) {
		uint32_t object = (uint32_t)*next;
		const struct sonde_go_span *span = sonde_go_heap_span_of(s->heap, object);
		if (!sonde_core_marks_has(s->marks, object) &&
			!(all && sonde_go_span_allocated(span, object - span->first)))
			continue;
		fill_object(d, span, object - span->first, ret);
		++*next;
		return 1;
	}
	return 0;
}

int sonde_dump_find_object(struct sonde_dump *d, uint64_t addr, struct sonde_dump_object *ret)
{
	struct sonde_core_session *s = d->session;
	struct sonde_go_span *span;
	uint32_t slot;
	if (!s->typing || !sonde_go_heap_find(s->heap, addr, &span, &slot) ||
		(!sonde_core_marks_has(s->marks, span->first + slot) &&
			!sonde_go_span_allocated(span, slot)))
		return 0;
	fill_object(d, span, slot, ret);
	return 1;
}

struct sonde_error *sonde_dump_n_types(struct sonde_dump *d, size_t *ret)
{
	if (!d->has_types)
		SONDE_TRY(sonde_core_histogram_make(d->session, SONDE_CORE_BY_TYPE, &d->types));
	d->has_types = true;
	*ret = d->types.rows.n;
	return NULL;
}

int sonde_dump_type(struct sonde_dump *d, size_t i, struct sonde_dump_type *ret)
{
	if (!d->has_types || i >= d->types.rows.n)
		return 0;
	const struct sonde_core_histogram_row *row = &d->types.rows.items[i];
	struct sonde_dump_type v = {.name = row->name, .count = row->count, .bytes = row->bytes};
	fill(ret, &v, sizeof(v));
	return 1;
}

/* --- owners --- */

static struct sonde_error *name_owners(struct sonde_dump *d, struct sonde_core_retained *r)
{
	sonde_cleanup(free) const char **names = sonde_new_array(const char *, r->owners.n);
	if (!names)
		return &sonde_enomem;
	for (size_t i = 0; i < r->owners.n; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf name = {0};
		sonde_core_owner_name(d->session, &r->owners.items[i], &name);
		names[i] = sonde_arena_strdup(&d->names, sonde_buf_text(&name));
		if (!names[i])
			return &sonde_enomem;
	}
	d->owner_names = sonde_take(names);
	return NULL;
}

struct sonde_error *sonde_dump_n_owners(struct sonde_dump *d, size_t *ret)
{
	if (!d->retained)
		SONDE_TRY(sonde_core_retained_make(d->session, &d->retained));
	if (!d->owner_names)
		SONDE_TRY(name_owners(d, d->retained));
	*ret = d->retained->owners.n;
	return NULL;
}

int sonde_dump_owner(struct sonde_dump *d, size_t i, struct sonde_dump_owner *ret)
{
	static const enum sonde_dump_owner_kind kinds[] = {
		[SONDE_CORE_OWNER_GLOBAL] = SONDE_DUMP_GLOBAL,
		[SONDE_CORE_OWNER_GOROUTINE] = SONDE_DUMP_GOROUTINE,
		[SONDE_CORE_OWNER_QUEUE] = SONDE_DUMP_FINALIZERS,
	};
	if (!d->owner_names || i >= d->retained->owners.n)
		return 0;
	const struct sonde_core_owner *o = &d->retained->owners.items[i];
	struct sonde_dump_owner v = {
		.kind = kinds[o->kind],
		.name = d->owner_names[i],
		.retained_bytes = o->vertex == UINT32_MAX ? 0 : d->retained->bytes[o->vertex],
	};
	if (o->kind == SONDE_CORE_OWNER_GOROUTINE)
		v.goroutine = d->session->goroutines->all.items[o->index].id;
	fill(ret, &v, sizeof(v));
	return 1;
}

/* --- notes --- */

size_t sonde_dump_n_notes(struct sonde_dump *d)
{
	return d->session->notes.entries.n;
}

int sonde_dump_note(struct sonde_dump *d, size_t i, struct sonde_dump_note *ret)
{
	const struct sonde_note_entries *all = &d->session->notes.entries;
	if (i >= all->n)
		return 0;
	struct sonde_dump_note v = {
		.kind = all->items[i].kind,
		.first = all->items[i].first,
		.count = all->items[i].count,
		.amount = all->items[i].amount,
	};
	fill(ret, &v, sizeof(v));
	return 1;
}
