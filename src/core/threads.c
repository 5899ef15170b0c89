#include "core/threads.h"

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include "base/map.h"

enum { MAX_GO_CALLS = 128, MAX_CALLBACKS = 64, MAX_SYSTEM_STACK = 1 << 20 };

/*
 * Go marks the functions below which a stack has nothing (mstart, goexit, rt0_go) and those that switch stacks (mcall,
 * systemstack); its call-frame information marks neither, so what was found below one is no frame. sigtramp is a top as
 * well, but the kernel's trampoline lies below it.
 */
enum stack_end { END_ELSEWHERE, END_TOP, END_SWITCH };

/* Cut the frames from `first` on behind the first such function; *last is its frame, the text of a switch goes to *cut. */
static enum stack_end end_at_go(
	struct sonde_core_threads *threads, size_t first, size_t *last, const char **cut)
{
	const struct sonde_go *go = threads->session->go;
	for (size_t i = first; go && i < threads->frames.n; i++) {
		const struct sonde_walk_frame *f = &threads->frames.items[i];
		struct sonde_pcfunc function;
		if (f->trampoline ||
			!sonde_go_function_at(go, sonde_walk_frame_lookup_pc(f), &function, NULL) ||
			(i + 1 < threads->frames.n && f[1].trampoline))
			continue;
		bool top = function.flags & SONDE_FUNC_TOP_FRAME;
		if (!top && (i == first || !(function.flags & SONDE_FUNC_SP_WRITE)))
			continue;
		threads->frames.n = i + 1;
		*last = i;
		*cut = top ? NULL
			   : sonde_arena_printf(
				     &threads->arena, "[stack switch in %s]", function.name);
		return top ? END_TOP : END_SWITCH;
	}
	return END_ELSEWHERE;
}

/* The m whose system stack a goroutine's calls of C are on: the one that runs it, else the one that waits for it. */
static uint64_t m_of(const struct sonde_go *go, const struct sonde_goroutine *g)
{
	uint64_t current;
	if (g->m && sonde_go_read(go, g->m, go->layout.m_curg, &current) && current == g->addr)
		return g->m;
	return g->locked_m;
}

static bool runs(const struct sonde_go *go, const struct sonde_goroutine *g, uint32_t tid)
{
	uint64_t m = m_of(go, g), of_m;
	return m && sonde_go_read(go, m, go->layout.m_procid, &of_m) && of_m == tid;
}

static const struct sonde_goroutine *goroutine_of(const struct sonde_core_session *s, uint32_t tid)
{
	for (size_t i = 0; s->goroutines && i < s->goroutines->all.n; i++) {
		const struct sonde_goroutine *g = &s->goroutines->all.items[i];
		if ((g->m || g->locked_m) && runs(s->go, g, tid))
			return g;
	}
	return NULL;
}

static bool is_callback(const struct sonde_go *go, const struct sonde_go_frame *f)
{
	struct sonde_pcfunc function;
	return !(f->flags & SONDE_GO_FRAME_SYSTEM_STACK) &&
		sonde_go_frame_function(go, f, &function) &&
		!strcmp(function.name, "runtime.cgocallback");
}

/*
 * The C code that called back into Go: runtime.cgocallback keeps its stack pointer on the system stack in g0.sched.sp, and
 * what that was before at the bottom of its frame (runtime/cgocall.go, unwindm), so the callbacks are a chain. f is the
 * frame that it has on the goroutine's stack: of the same size. Frames are appended.
 */
static struct sonde_error *walk_caller(struct sonde_core_threads *threads,
	const struct sonde_go_frame *f, uint64_t sp, struct sonde_core_foreign *ret)
{
	const struct sonde_go *go = threads->session->go;
	const struct sonde_machine *machine =
		sonde_machine_find(sonde_target_info(go->target)->machine);
	struct sonde_regs regs = {.machine = machine->machine};
	unsigned word = go->word_bytes;
	uint64_t pc, fp, end = sp + (f->fp - f->sp);
	bool return_on_stack = machine->lr == UINT8_MAX;
	ret->first_frame = threads->frames.n;
	if (f->fp < f->sp || !sonde_go_read_word(go, return_on_stack ? end - word : sp, &pc)) {
		ret->cut = "[C code: its stack is not readable]";
		return NULL;
	}
	sonde_regs_set(&regs, machine->pc, pc);
	sonde_regs_set(&regs, machine->sp, end);
	/* Go saves the frame pointer below the return address; on arm64 below the frame. */
	if (machine->fp != UINT8_MAX &&
		sonde_go_read_word(go, return_on_stack ? end - 2 * word : sp - word, &fp))
		sonde_regs_set(&regs, machine->fp, fp);
	SONDE_TRY(
		sonde_walk(threads->modules, &regs, &threads->arena, &threads->frames, &ret->cut));
	if (threads->frames.n > ret->first_frame) {
		struct sonde_walk_frame *first = &threads->frames.items[ret->first_frame];
		first->exact = false; /* a return address */
		first->how = SONDE_WALK_RUNTIME;
	}
	size_t last;
	enum stack_end end_at = end_at_go(threads, ret->first_frame, &last, &ret->cut);
	if (end_at == END_SWITCH)
		ret->cut = NULL; /* the goroutine goes on */
	ret->bottom = end_at != END_SWITCH;
	ret->n_frames = threads->frames.n - ret->first_frame;
	return NULL;
}

static uint64_t hash_frames(const struct sonde_walk_frame *frames, size_t n, uint64_t hash)
{
	for (size_t i = 0; i < n; i++)
		hash = sonde_hash_u64(hash * 31 + frames[i].pc);
	return hash;
}

static struct sonde_error *add_foreign(struct sonde_core_threads *threads,
	struct sonde_goroutine *g, const struct sonde_core_foreign *f)
{
	if (!sonde_core_foreign_vec_push(&threads->foreign, *f))
		return &sonde_enomem;
	g->foreign_hash = hash_frames(threads->frames.items + f->first_frame, f->n_frames,
		g->foreign_hash + f->before + 1);
	return NULL;
}

/* Where runtime.cgocallback keeps the older stack pointer: sys.MinFrameSize, rounded up to sys.StackAlign. */
static uint64_t kept_at(const struct sonde_go *go)
{
	return sonde_target_info(go->target)->machine == EM_AARCH64 ? 16 : 0;
}

/* Whether runtime.cgocallback has a frame of f's size at sp, on a system stack: runtime/cgo's crosscall2 called it. */
static bool is_callback_frame(
	const struct sonde_go *go, const struct sonde_go_frame *f, uint64_t sp)
{
	bool return_on_stack =
		sonde_machine_find(sonde_target_info(go->target)->machine)->lr == UINT8_MAX;
	uint64_t pc;
	struct sonde_pcfunc caller;
	return f->fp > f->sp && !__builtin_add_overflow(sp, f->fp - f->sp, &pc) &&
		sonde_go_read_word(
			go, return_on_stack ? sp + (f->fp - f->sp) - go->word_bytes : sp, &pc) &&
		sonde_go_function_at(go, pc - 1, &caller, NULL) &&
		!strcmp(caller.name, "crosscall2");
}

/*
 * The stack pointers of n calls back on the system stack of g0, innermost first; 0 where one is not found. A panic that
 * nobody recovers takes them off g0.sched.sp (unwindm) before the process dies: they are then looked for below, where
 * they are still intact unless the runtime itself ran over them.
 */
static void find_callbacks(const struct sonde_go *go, const struct sonde_go_frame *f, uint64_t g0,
	uint64_t *sps, size_t n)
{
	uint64_t sp = 0, low;
	sonde_go_read(go, g0, go->layout.g_sched_sp, &sp);
	size_t known = 0;
	uint64_t at = sp, next;
	while (known < n && is_callback_frame(go, f, at)) {
		sps[known++] = at;
		if (!sonde_go_read_word(go, at + kept_at(go), &next) || next <= at)
			break;
		at = next;
	}
	if (known == n)
		return;
	memmove(sps + (n - known), sps, known * sizeof(*sps));
	memset(sps, 0, (n - known) * sizeof(*sps));
	if (!sonde_go_read(go, g0, go->layout.g_stack_lo, &low) || low > sp)
		return;
	if (sp - low > MAX_SYSTEM_STACK)
		low = sp - MAX_SYSTEM_STACK;
	for (size_t i = n - known; i-- > 0;) {
		uint64_t kept;
		for (at = sp - go->word_bytes; at >= low; at -= go->word_bytes) {
			if (sonde_go_read_word(go, at + kept_at(go), &kept) && kept == sp &&
				is_callback_frame(go, f, at))
				break;
		}
		if (at < low)
			return;
		sp = sps[i] = at;
	}
}

/* What C code called back into the goroutine, as often as it did. */
static struct sonde_error *walk_callbacks(struct sonde_core_threads *threads, uint32_t index)
{
	const struct sonde_core_session *s = threads->session;
	struct sonde_goroutine *g = &s->goroutines->all.items[index];
	const struct sonde_go_frame *frames = sonde_goroutine_frames(s->goroutines, g);
	uint64_t m = m_of(s->go, g), g0, sps[MAX_CALLBACKS];
	size_t places[MAX_CALLBACKS], n = 0;
	for (size_t i = 0; m && i < g->n_frames && n < MAX_CALLBACKS; i++) {
		if (is_callback(s->go, &frames[i]))
			places[n++] = i;
	}
	if (!n || !sonde_go_read(s->go, m, s->go->layout.m_g0, &g0))
		return NULL;
	find_callbacks(s->go, &frames[places[0]], g0, sps, n);
	for (size_t i = 0; i < n; i++) {
		struct sonde_core_foreign f = {
			.goroutine = index, .before = (uint32_t)places[i] + 1};
		if (sps[i])
			SONDE_TRY(walk_caller(threads, &frames[places[i]], sps[i], &f));
		else
			f.cut = "[C code: its frames are no longer there]";
		SONDE_TRY(add_foreign(threads, g, &f));
		if (f.bottom)
			break;
	}
	return NULL;
}

/* The goroutine's frames from `from` on, with the C code between them. Returns why they end early. */
static struct sonde_error *append_goroutine(
	struct sonde_core_threads *threads, struct sonde_core_thread *t, size_t from)
{
	const struct sonde_core_session *s = threads->session;
	const struct sonde_go_frame *frames = sonde_goroutine_frames(s->goroutines, t->goroutine);
	uint32_t index = (uint32_t)(t->goroutine - s->goroutines->all.items);
	t->cut = t->goroutine->cut;
	for (size_t i = from; i <= t->goroutine->n_frames; i++) {
		const struct sonde_core_foreign *f =
			i ? sonde_core_threads_foreign(threads, index, i) : NULL;
		if (f && f->cut && !t->gap.text)
			t->gap = (struct sonde_go_gap){f->cut, threads->frames.n - t->first_frame};
		for (size_t k = 0; f && k < f->n_frames; k++) {
			struct sonde_walk_frame copy = threads->frames.items[f->first_frame + k];
			if (!sonde_walk_frames_push(&threads->frames, copy))
				return &sonde_enomem;
		}
		if (f && f->bottom) {
			t->cut = f->cut;
			if (t->gap.text == f->cut)
				t->gap.text = NULL;
			break;
		}
		if (i == t->goroutine->n_frames)
			break;
		const struct sonde_walk_module *m =
			sonde_walk_modules_find(threads->modules, frames[i].pc);
		struct sonde_walk_frame frame = {
			.pc = frames[i].pc,
			.sp = frames[i].sp,
			.how = SONDE_WALK_RUNTIME,
			.exact = frames[i].flags & SONDE_GO_FRAME_EXACT,
			.module = m ? (uint32_t)(m - threads->modules->all.items) : UINT32_MAX,
		};
		if (!sonde_walk_frames_push(&threads->frames, frame))
			return &sonde_enomem;
	}
	return NULL;
}

static bool on_stack_of(const struct sonde_goroutine *g, uint64_t sp)
{
	return sp >= g->stack_low && sp <= g->stack_high;
}

/* A thread's frames end where the stack was switched, at frame `last`: the goroutine's own go on from there. */
static struct sonde_error *join(
	struct sonde_core_threads *threads, struct sonde_core_thread *t, size_t last)
{
	const struct sonde_core_session *s = threads->session;
	const struct sonde_go_frame *frames = sonde_goroutine_frames(s->goroutines, t->goroutine);
	const struct sonde_walk_frame at = threads->frames.items[last];
	struct sonde_pcfunc switched = {0}, f;
	sonde_go_function_at(s->go, sonde_walk_frame_lookup_pc(&at), &switched, NULL);
	size_t from = 0;
	while (from < t->goroutine->n_frames &&
		((frames[from].flags & SONDE_GO_FRAME_SYSTEM_STACK) ||
			(on_stack_of(t->goroutine, at.sp) && frames[from].sp <= at.sp)))
		from++;
	if (from == t->goroutine->n_frames)
		return NULL;
	/* systemstack has a frame on either stack. */
	if (!on_stack_of(t->goroutine, at.sp) &&
		sonde_go_frame_function(s->go, &frames[from], &f) && f.entry == switched.entry)
		from++;
	return append_goroutine(threads, t, from);
}

/* A goroutine in C: what its thread runs, down to where Go called. */
static struct sonde_error *note_innermost(
	struct sonde_core_threads *threads, const struct sonde_core_thread *t, size_t n)
{
	struct sonde_goroutines *gs = threads->session->goroutines;
	struct sonde_goroutine *g = &gs->all.items[t->goroutine - gs->all.items];
	if (!g->gap.text || g->gap.before)
		return NULL;
	struct sonde_core_foreign f = {.goroutine = (uint32_t)(g - gs->all.items),
		.first_frame = t->first_frame,
		.n_frames = n};
	return add_foreign(threads, g, &f);
}

static int by_place(const void *a, const void *b)
{
	const struct sonde_core_foreign *x = a, *y = b;
	if (x->goroutine != y->goroutine)
		return x->goroutine < y->goroutine ? -1 : 1;
	return x->before < y->before ? -1 : x->before > y->before;
}

static struct sonde_error *walk_all(struct sonde_core_threads *threads)
{
	size_t n;
	const struct sonde_core_session *s = threads->session;
	const struct sonde_thread *list = sonde_target_threads(s->target, &n);
	for (size_t i = 0; s->goroutines && i < s->goroutines->all.n; i++) {
		s->goroutines->all.items[i].foreign_hash = 0;
		SONDE_TRY(walk_callbacks(threads, (uint32_t)i));
	}
	size_t n_callbacks = threads->foreign.n;
	for (size_t i = 0; i < n; i++) {
		struct sonde_core_thread *t = sonde_core_thread_vec_add(&threads->all);
		if (!t)
			return &sonde_enomem;
		t->thread = &list[i];
		t->goroutine = goroutine_of(s, list[i].tid);
		t->first_frame = threads->frames.n;
		SONDE_TRY(sonde_walk(threads->modules, &list[i].regs, &threads->arena,
			&threads->frames, &t->cut));
		size_t last = 0;
		enum stack_end end = end_at_go(threads, t->first_frame, &last, &t->cut);
		if (end == END_SWITCH && t->goroutine) {
			size_t own = threads->frames.n - t->first_frame;
			SONDE_TRY(join(threads, t, last));
			SONDE_TRY(note_innermost(threads, t, own));
		}
		if (end == END_ELSEWHERE && t->cut)
			sonde_notes_add(&threads->session->notes, "thread stack cut short", 0,
				"thread %u %s", list[i].tid, t->cut);
		t->n_frames = threads->frames.n - t->first_frame;
	}
	if (threads->foreign.n > n_callbacks)
		sonde_vec_sort(&threads->foreign, by_place);
	return NULL;
}

bool sonde_core_threads_mixed(const struct sonde_core_session *s)
{
	uint8_t is_cgo = 0;
	uint64_t addr = s->go ? sonde_go_global(s->go, "runtime.iscgo", NULL) : 0;
	if (!addr || !sonde_target_read_u8(s->target, addr, &is_cgo) || !is_cgo || !s->goroutines)
		return false;
	for (size_t i = 0; i < s->goroutines->all.n; i++) {
		const struct sonde_goroutine *g = &s->goroutines->all.items[i];
		const struct sonde_go_frame *frames = sonde_goroutine_frames(s->goroutines, g);
		if (g->gap.text)
			return true;
		for (size_t k = 0; k < g->n_frames; k++) {
			if (is_callback(s->go, &frames[k]))
				return true;
		}
	}
	return false;
}

const struct sonde_core_foreign *sonde_core_threads_foreign(
	const struct sonde_core_threads *threads, uint32_t goroutine, size_t before)
{
	/* As many as there are threads in C, or calls back: few. */
	sonde_vec_foreach (f, &threads->foreign) {
		if (f->goroutine == goroutine && f->before == before)
			return f;
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
	sonde_core_foreign_vec_deinit(&threads->foreign);
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
