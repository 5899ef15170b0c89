#include "core/threads.h"

#include <stdlib.h>

enum { MAX_GO_CALLS = 128 };

static const struct sonde_goroutine *goroutine_of(
	const struct sonde_core_session *s, int32_t thread)
{
	for (size_t i = 0; s->goroutines && i < s->goroutines->all.n; i++) {
		const struct sonde_goroutine *g = &s->goroutines->all.items[i];
		if (g->thread == thread)
			return g;
	}
	return NULL;
}

/*
 * Go marks the functions below which a stack has nothing (mstart, goexit, rt0_go) and those that switch stacks (mcall,
 * systemstack); its call-frame information marks neither, so what was found below one is no frame. sigtramp is a top as
 * well, but the kernel's trampoline lies below it. Returns whether one was found.
 */
static bool end_at_go_top(struct sonde_core_threads *threads, struct sonde_core_thread *t)
{
	const struct sonde_go *go = threads->session->go;
	for (size_t i = 0; go && i < t->n_frames; i++) {
		const struct sonde_walk_frame *f = &threads->frames.items[t->first_frame + i];
		struct sonde_pcfunc function;
		if (f->trampoline ||
			!sonde_go_function_at(go, sonde_walk_frame_lookup_pc(f), &function, NULL) ||
			(i + 1 < t->n_frames && f[1].trampoline))
			continue;
		bool top = function.flags & SONDE_FUNC_TOP_FRAME;
		if (!top && (i == 0 || !(function.flags & SONDE_FUNC_SP_WRITE)))
			continue;
		t->n_frames = i + 1;
		threads->frames.n = t->first_frame + t->n_frames;
		t->cut = top ? NULL
			     : sonde_arena_printf(
				       &threads->arena, "[stack switch in %s]", function.name);
		return true;
	}
	return false;
}

static struct sonde_error *walk_all(struct sonde_core_threads *threads)
{
	size_t n;
	const struct sonde_thread *list = sonde_target_threads(threads->session->target, &n);
	for (size_t i = 0; i < n; i++) {
		struct sonde_core_thread *t = sonde_core_thread_vec_add(&threads->all);
		if (!t)
			return &sonde_enomem;
		t->thread = &list[i];
		t->goroutine = goroutine_of(threads->session, (int32_t)i);
		t->first_frame = threads->frames.n;
		SONDE_TRY(sonde_walk(threads->modules, &list[i].regs, &threads->arena,
			&threads->frames, &t->cut));
		t->n_frames = threads->frames.n - t->first_frame;
		if (!end_at_go_top(threads, t) && t->cut)
			sonde_notes_add(&threads->session->notes, "thread stack cut short", 0,
				"thread %u %s", list[i].tid, t->cut);
	}
	return NULL;
}

struct sonde_error *sonde_core_threads_open(
	struct sonde_core_session *session, struct sonde_core_threads **ret)
{
	sonde_cleanup(sonde_core_threads) struct sonde_core_threads *threads =
		sonde_new(struct sonde_core_threads);
	if (!threads)
		return &sonde_enomem;
	threads->session = session;
	sonde_arena_init(&threads->arena);
	/* A program in another language has threads as well. */
	struct sonde_error *err = sonde_core_session_need_goroutines(session);
	if (err && err->code == SONDE_NO_MEMORY)
		return err;
	sonde_error_free(err);
	SONDE_TRY(sonde_walk_modules_open(
		session->target, &session->debug, &session->notes, &threads->modules));
	SONDE_TRY(sonde_symbolizer_new(&session->debug, &session->notes, &threads->symbolizer));
	SONDE_TRY(walk_all(threads));
	*ret = sonde_take(threads);
	return NULL;
}

void sonde_core_threads_free(struct sonde_core_threads *threads)
{
	if (!threads)
		return;
	sonde_symbolizer_free(threads->symbolizer);
	sonde_walk_modules_free(threads->modules);
	sonde_core_thread_vec_deinit(&threads->all);
	sonde_walk_frames_deinit(&threads->frames);
	sonde_arena_deinit(&threads->arena);
	free(threads);
}

static size_t go_calls(
	const struct sonde_go *go, uint64_t pc, struct sonde_symbol_call *calls, size_t max)
{
	struct sonde_pcfunc f;
	const struct sonde_go_module *m;
	if (!sonde_go_function_at(go, pc, &f, &m))
		return 0;
	struct sonde_pccall list[MAX_GO_CALLS];
	size_t n = sonde_pclntab_calls(&m->functions, &f, pc, list, MAX_GO_CALLS);
	n = sonde_min(n, (size_t)MAX_GO_CALLS);
	for (size_t i = 0; i < n && i < max; i++)
		calls[i] = (struct sonde_symbol_call){
			.function = list[i].function,
			.file = list[i].line ? list[i].file : NULL,
			.line = list[i].line,
			.inlined = list[i].inlined,
		};
	if (n <= max)
		calls[n - 1].offset = pc - f.entry;
	return n;
}

size_t sonde_core_thread_calls(struct sonde_core_threads *threads,
	const struct sonde_walk_frame *frame, struct sonde_symbol_call *calls, size_t max)
{
	uint64_t pc = sonde_walk_frame_lookup_pc(frame);
	size_t n = threads->session->go ? go_calls(threads->session->go, pc, calls, max) : 0;
	if (n)
		return n;
	if (frame->module != UINT32_MAX) {
		struct sonde_walk_module *m = &threads->modules->all.items[frame->module];
		sonde_walk_module_load(threads->modules, m);
		if (m->elf)
			return sonde_symbolizer_calls(
				threads->symbolizer, m->elf, pc - m->bias, calls, max);
	}
	if (max)
		calls[0] = (struct sonde_symbol_call){0};
	return 1;
}
