#include "golang/roots.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "base/cycle.h"

enum { MAX_STACK_OBJECTS = 1 << 16 };

struct visitor {
	struct sonde_go *go;
	struct sonde_go_masks *masks;
	sonde_go_root_visit *visit;
	void *ctx;
	struct sonde_go_root root; /* the next one, but for addr and value */
};

static void emit(struct visitor *v, uint64_t addr, uint64_t value)
{
	if (!value)
		return;
	v->root.addr = addr;
	v->root.value = value;
	v->visit(v->ctx, &v->root);
}

static uint64_t load_word(const struct sonde_go *go, const uint8_t *p)
{
	uint64_t v = 0;
	memcpy(&v, p, go->word_bytes);
	return v;
}

/* --- package variables --- */

static void visit_section(
	struct visitor *v, uint64_t start, uint64_t end, uint64_t mask_addr, uint64_t mask_bits)
{
	const struct sonde_go *go = v->go;
	uint64_t n = (end - start) / go->word_bytes;
	if (n > mask_bits)
		n = mask_bits;
	if (!n)
		return;
	const uint8_t *mask = sonde_target_bytes(go->target, mask_addr, (n + 7) / 8);
	if (!mask) {
		sonde_notes_add(go->notes, "pointer mask of package variables not readable", 0,
			"0x%" PRIx64, mask_addr);
		return;
	}
	const uint8_t *words = sonde_target_bytes(go->target, start, n * go->word_bytes);
	uint64_t n_lost = 0;
	for (uint64_t i = 0; i < n; i++) {
		if (i % 8 == 0 && !mask[i >> 3]) {
			i += 7;
			continue;
		}
		if (!(mask[i >> 3] >> (i & 7) & 1))
			continue;
		uint64_t value;
		if (words)
			emit(v, start + i * go->word_bytes,
				load_word(go, words + i * go->word_bytes));
		else if (sonde_go_read_word(go, start + i * go->word_bytes, &value))
			emit(v, start + i * go->word_bytes, value);
		else
			n_lost++;
	}
	if (n_lost)
		sonde_notes_add(go->notes, "package variables not readable: words", n_lost,
			"from 0x%" PRIx64, start);
}

/* --- finalizers and cleanups that are about to run (runtime/mfinal.go allfin, mcleanup.go gcCleanups) --- */

static void visit_queue(struct visitor *v, uint64_t block, struct sonde_go_field link,
	struct sonde_go_field count, struct sonde_go_field items, uint32_t item_bytes,
	const struct sonde_go_field *words, size_t n_words)
{
	const struct sonde_go *go = v->go;
	struct sonde_cycle cycle = sonde_cycle_from(block);
	for (int i = 0; block; i++) {
		uint64_t n, next;
		if ((i && sonde_cycle_closed(&cycle, block)) ||
			!sonde_go_read(go, block, count, &n) ||
			!sonde_go_read(go, block, link, &next)) {
			sonde_notes_add(go->notes, "queue of finalizers cut short", 0,
				"block 0x%" PRIx64, block);
			return;
		}
		for (uint64_t k = 0; k < n && (k + 1) * item_bytes <= items.size; k++) {
			uint64_t item = block + items.offset + k * item_bytes, value;
			for (size_t w = 0; w < n_words; w++) {
				if (sonde_go_read_word(go, item + words[w].offset, &value))
					emit(v, item + words[w].offset, value);
			}
		}
		block = next;
	}
}

static void visit_queues(struct visitor *v)
{
	const struct sonde_go *go = v->go;
	const struct sonde_go_layout *l = &go->layout;
	v->root = (struct sonde_go_root){
		.kind = SONDE_GO_ROOT_QUEUE, .goroutine = UINT32_MAX, .frame = UINT32_MAX};
	uint64_t block;
	uint64_t allfin = sonde_go_global(go, "runtime.allfin", NULL);
	if (allfin && sonde_go_read_word(go, allfin, &block)) {
		const struct sonde_go_field words[] = {
			l->finalizer_fn, l->finalizer_arg, l->finalizer_fint, l->finalizer_ot};
		visit_queue(v, block, l->finblock_link, l->finblock_cnt, l->finblock_fin,
			l->sizeof_finalizer, words, SONDE_ARRAY_LEN(words));
	}
	uint64_t cleanups = sonde_go_global(go, "runtime.gcCleanups", NULL);
	if (cleanups && l->cleanup_block_items.size && l->sizeof_cleanup_fn &&
		sonde_go_read(go, cleanups, l->cleanup_queue_all, &block)) {
		/* cleanupFn: call, fn, arg: three pointers (cleanupFnPtrMask). */
		const struct sonde_go_field words[] = {{0, go->word_bytes},
			{go->word_bytes, go->word_bytes}, {2 * go->word_bytes, go->word_bytes}};
		visit_queue(v, block, l->cleanup_block_link, l->cleanup_block_n,
			l->cleanup_block_items, l->sizeof_cleanup_fn, words,
			SONDE_ARRAY_LEN(words));
	}
}

/* --- stacks --- */

/* A variable of a frame whose address is taken: scanned only where a live pointer leads to it. */
struct stack_object {
	uint64_t addr, size_bytes;
	const uint8_t *mask; /* a bit a word */
	uint64_t n_bits;
	uint32_t frame;
	bool visited;
};
SONDE_DEFINE_VEC(stack_object_vec, struct stack_object)

struct stack_visitor {
	struct visitor *v;
	const struct sonde_goroutine *g;
	struct stack_object_vec objects;
	struct sonde_u64_vec pending; /* live pointers into the stack itself */
	bool no_memory;
};

static void emit_stack_word(struct stack_visitor *s, uint64_t addr, uint64_t value)
{
	if (value >= s->g->stack_low && value < s->g->stack_high) {
		if (!sonde_u64_vec_push(&s->pending, value))
			s->no_memory = true;
		return;
	}
	emit(s->v, addr, value);
}

static void visit_words(struct stack_visitor *s, uint64_t start, uint64_t n, const uint8_t *mask)
{
	const struct sonde_go *go = s->v->go;
	/* In place, and no further than there is memory: a damaged stack may claim any size. */
	struct sonde_target_run run;
	if (!n || !sonde_target_run_find(go->target, start, &run))
		return;
	uint64_t there = (run.size_bytes - (start - run.start)) / go->word_bytes;
	if (n > there) {
		sonde_notes_add(go->notes, "stack words not readable", 0, "from 0x%" PRIx64,
			start + there * go->word_bytes);
		n = there;
	}
	const uint8_t *words = run.host + (start - run.start);
	for (uint64_t i = 0; i < n; i++) {
		if (!mask || (mask[i >> 3] >> (i & 7) & 1))
			emit_stack_word(s, start + i * go->word_bytes,
				load_word(go, words + i * go->word_bytes));
	}
}

/* runtime.stackmap: n maps of nbit bits each; map number i. false: none. */
static bool stack_map(const struct sonde_go_module *m, const struct sonde_pcfunc *f,
	enum sonde_funcdata which, int32_t i, const uint8_t **mask, uint32_t *n_bits)
{
	struct sonde_bytes b;
	uint32_t n, nbit;
	if (!sonde_pclntab_funcdata(&m->functions, f, which, &b, NULL) || b.len < 8)
		return false;
	memcpy(&n, b.data, 4);
	memcpy(&nbit, b.data + 4, 4);
	uint64_t row = ((uint64_t)nbit + 7) / 8;
	if (i < 0 || (uint32_t)i >= n || nbit > INT32_MAX || row * ((uint64_t)i + 1) > b.len - 8)
		return false;
	*mask = b.data + 8 + row * (uint32_t)i;
	*n_bits = nbit;
	return true;
}

static void add_stack_objects(struct stack_visitor *s, const struct sonde_go_module *m,
	const struct sonde_pcfunc *f, const struct sonde_go_frame *frame, uint32_t frame_index)
{
	const struct sonde_go *go = s->v->go;
	const struct sonde_go_layout *l = &go->layout;
	struct sonde_bytes b;
	if (!sonde_pclntab_funcdata(&m->functions, f, SONDE_FUNCDATA_STACK_OBJECTS, &b, NULL) ||
		b.len < go->word_bytes)
		return;
	uint64_t n = load_word(go, b.data);
	if (n > MAX_STACK_OBJECTS || n * l->sizeof_stkobj > b.len - go->word_bytes)
		return;
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *r = b.data + go->word_bytes + i * l->sizeof_stkobj;
		int32_t off = (int32_t)sonde_go_load(r, l->stkobj_off);
		int32_t ptr_bytes = (int32_t)sonde_go_load(r, l->stkobj_ptr_bytes);
		uint64_t mask_addr = m->rodata + (uint32_t)sonde_go_load(r, l->stkobj_gcdata);
		struct stack_object o = {
			.addr = (off < 0 ? frame->varp : frame->argp) + (uint64_t)(int64_t)off,
			.size_bytes = (uint32_t)sonde_go_load(r, l->stkobj_size),
			.frame = frame_index,
		};
		/* <= 1.23: a negative size says that gcdata is a GC program of 4 length bytes and code. */
		uint64_t bytes =
			ptr_bytes < 0 ? (uint64_t) - (int64_t)ptr_bytes : (uint64_t)ptr_bytes;
		o.n_bits = bytes / go->word_bytes;
		if (o.addr < frame->sp || bytes > o.size_bytes || o.addr > s->g->stack_high ||
			o.size_bytes > s->g->stack_high - o.addr)
			continue; /* not in the frame yet, or never */
		if (!sonde_target_bytes(go->target, o.addr, o.size_bytes))
			continue;
		if (ptr_bytes < 0) {
			uint32_t len;
			const uint8_t *program = NULL;
			uint64_t *bits = sonde_arena_array(
				&s->v->masks->arena, uint64_t, (o.n_bits + 63) / 64);
			if (sonde_target_read_u32(go->target, mask_addr, &len))
				program = sonde_target_bytes(go->target, mask_addr + 4, len);
			o.mask = bits && program &&
					sonde_go_gc_program_run(program, len, bits, o.n_bits)
				? (const uint8_t *)bits
				: NULL;
		} else {
			o.mask = sonde_target_bytes(go->target, mask_addr, (o.n_bits + 7) / 8);
		}
		if (!o.mask)
			sonde_notes_add(go->notes, "pointer mask of a stack variable not readable",
				0, "%s", f->name);
		else if (!stack_object_vec_push(&s->objects, o))
			s->no_memory = true;
	}
}

/*
 * reflect.makeFuncStub and methodValueCall take arguments of a shape that only the methodValue at 0(SP) knows
 * (runtime/stkframe.go argMapInternal), and keep register arguments in an abi.RegArgs at the top of their locals.
 */
static bool visit_reflect_frame(
	struct stack_visitor *s, const struct sonde_pcfunc *f, const struct sonde_go_frame *frame)
{
	const struct sonde_go *go = s->v->go;
	unsigned word = go->word_bytes;
	if (strcmp(f->name, "reflect.makeFuncStub") && strcmp(f->name, "reflect.methodValueCall"))
		return false;
	uint64_t value, fn, bits, arg_bytes, n, data;
	/* abi.RegArgs lies right below varp; which of its words are pointers is not worth more than a look at each. */
	s->v->root.conservative = true;
	visit_words(
		s, frame->sp, frame->varp > frame->sp ? (frame->varp - frame->sp) / word : 0, NULL);
	s->v->root.conservative = false;
	uint8_t ret_valid = 0;
	if (!sonde_go_read_word(go, frame->sp, &value) || !sonde_go_read_word(go, value, &fn) ||
		fn != f->entry || !sonde_go_read_word(go, value + word, &bits) ||
		!sonde_go_read_word(go, value + 2 * word, &arg_bytes) ||
		!sonde_go_read_word(go, bits, &n) || !sonde_go_read_word(go, bits + word, &data))
		return true;
	sonde_target_read_u8(go->target, frame->sp + 4 * word, &ret_valid);
	n = (uint32_t)n;
	if (!ret_valid)
		n = sonde_min(n, arg_bytes / word);
	const uint8_t *mask =
		n <= 1 << 20 ? sonde_target_bytes(go->target, data, (n + 7) / 8) : NULL;
	if (mask)
		visit_words(s, frame->argp, n, mask);
	return true;
}

static void visit_frame(
	struct stack_visitor *s, const struct sonde_go_frame *frame, uint32_t frame_index)
{
	const struct sonde_go *go = s->v->go;
	const struct sonde_go_module *m = &go->modules[frame->module];
	struct sonde_pcfunc f;
	unsigned word = go->word_bytes;
	if ((frame->flags & SONDE_GO_FRAME_SYSTEM_STACK) || !sonde_go_frame_function(go, frame, &f))
		return;
	s->v->root.frame = frame_index;
	uint64_t locals = frame->varp > frame->sp ? (frame->varp - frame->sp) / word : 0;
	if (frame->flags & SONDE_GO_FRAME_CONSERVATIVE) {
		s->v->root.conservative = true;
		visit_words(s, frame->sp, locals, NULL);
		if (f.args_bytes > 0)
			visit_words(s, frame->argp, (uint32_t)f.args_bytes / word, NULL);
		s->v->root.conservative = false;
		return;
	}
	if (visit_reflect_frame(s, &f, frame))
		return;
	/* At the entry the first map holds, and where a function has no index yet (getStackMap). */
	int32_t i = -1;
	if (frame->pc != f.entry)
		i = sonde_pclntab_pcdata(
			&m->functions, &f, SONDE_PCDATA_STACK_MAP_INDEX, frame->pc - 1);
	if (i == -1)
		i = 0;
	const uint8_t *mask;
	uint32_t n;
	if (locals && stack_map(m, &f, SONDE_FUNCDATA_LOCALS_POINTER_MAPS, i, &mask, &n) &&
		n <= locals)
		visit_words(s, frame->varp - (uint64_t)n * word, n, mask);
	if (f.args_bytes > 0 && stack_map(m, &f, SONDE_FUNCDATA_ARGS_POINTER_MAPS, i, &mask, &n))
		visit_words(s, frame->argp, n, mask);
	add_stack_objects(s, m, &f, frame, frame_index);
}

static int by_addr(const void *a, const void *b)
{
	const struct stack_object *x = a, *y = b;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static struct stack_object *find_stack_object(struct stack_visitor *s, uint64_t addr)
{
	size_t low = 0, high = s->objects.n;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (s->objects.items[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	struct stack_object *o = &s->objects.items[low - 1];
	return addr - o->addr < o->size_bytes ? o : NULL;
}

/* Follow pointers into the stack until no stack object is newly reached. */
static void visit_stack_objects(struct stack_visitor *s)
{
	sonde_vec_sort(&s->objects, by_addr);
	while (s->pending.n) {
		struct stack_object *o = find_stack_object(s, s->pending.items[--s->pending.n]);
		if (!o || o->visited)
			continue;
		o->visited = true;
		s->v->root.frame = o->frame;
		visit_words(s, o->addr, o->n_bits, o->mask);
	}
}

/* Defer records lie on the stack or the heap; their function may be a closure on the stack (scanstack). */
static void visit_defers(struct stack_visitor *s)
{
	const struct sonde_go *go = s->v->go;
	const struct sonde_go_layout *l = &go->layout;
	uint64_t d, value;
	s->v->root.kind = SONDE_GO_ROOT_GOROUTINE;
	s->v->root.frame = UINT32_MAX;
	if (sonde_go_read(go, s->g->addr, l->g_sched_ctxt, &value))
		emit_stack_word(s, s->g->addr + l->g_sched_ctxt.offset, value);
	if (sonde_go_read(go, s->g->addr, l->g_panic, &value) && value)
		emit_stack_word(s, s->g->addr + l->g_panic.offset, value);
	if (!sonde_go_read(go, s->g->addr, l->g_defer, &d))
		return;
	uint64_t from = s->g->addr + l->g_defer.offset;
	struct sonde_cycle cycle = sonde_cycle_from(d);
	for (int i = 0; d && !(i && sonde_cycle_closed(&cycle, d)); i++) {
		emit_stack_word(s, from, d); /* the record itself, where it is on the heap */
		if (sonde_go_read(go, d, l->defer_fn, &value))
			emit_stack_word(s, d + l->defer_fn.offset, value);
		from = d + l->defer_link.offset;
		if (!sonde_go_read(go, d, l->defer_link, &d))
			return;
	}
}

static void visit_registers(struct stack_visitor *s)
{
	const struct sonde_go *go = s->v->go;
	s->v->root.frame = s->g->n_frames ? (uint32_t)s->g->first_frame : UINT32_MAX;
	s->v->root.kind = SONDE_GO_ROOT_REGISTER;
	s->v->root.conservative = true;
	for (unsigned i = 0; s->g->regs.known && i < SONDE_REGS_MAX; i++) {
		if (sonde_regs_has(&s->g->regs, i))
			emit_stack_word(s, 0, s->g->regs.dwarf[i]);
	}
	/* Vector registers of an asynchronous preemption (1.26+, runtime/preempt_xreg.go). */
	uint64_t preempted, state;
	if (sonde_go_read(go, s->g->addr, go->layout.g_async_safe_point, &preempted) && preempted &&
		sonde_go_read(go, s->g->addr, go->layout.g_xregs_state, &state) && state)
		visit_words(s, state + go->layout.xreg_regs.offset,
			go->layout.xreg_regs.size / go->word_bytes, NULL);
	s->v->root.conservative = false;
}

static struct sonde_error *visit_goroutine(
	struct visitor *v, const struct sonde_goroutines *gs, uint32_t index)
{
	const struct sonde_goroutine *g = &gs->all.items[index];
	struct stack_visitor s = {.v = v, .g = g};
	v->root = (struct sonde_go_root){
		.kind = SONDE_GO_ROOT_STACK, .goroutine = index, .frame = UINT32_MAX};
	for (size_t i = 0; i < g->n_frames; i++)
		visit_frame(
			&s, &gs->frames.items[g->first_frame + i], (uint32_t)(g->first_frame + i));
	visit_registers(&s);
	visit_defers(&s);
	v->root.kind = SONDE_GO_ROOT_STACK;
	visit_stack_objects(&s);
	stack_object_vec_deinit(&s.objects);
	sonde_u64_vec_deinit(&s.pending);
	return s.no_memory ? &sonde_enomem : NULL;
}

struct sonde_error *sonde_go_roots_visit(struct sonde_go *go, const struct sonde_goroutines *gs,
	struct sonde_go_masks *masks, sonde_go_root_visit *visit, void *ctx)
{
	struct visitor v = {.go = go, .masks = masks, .visit = visit, .ctx = ctx};
	v.root = (struct sonde_go_root){
		.kind = SONDE_GO_ROOT_DATA, .goroutine = UINT32_MAX, .frame = UINT32_MAX};
	for (size_t i = 0; i < go->n_modules; i++) {
		const struct sonde_go_module *m = &go->modules[i];
		visit_section(&v, m->data, m->edata, m->data_mask, m->data_mask_bits);
		visit_section(&v, m->bss, m->ebss, m->bss_mask, m->bss_mask_bits);
	}
	visit_queues(&v);
	for (size_t i = 0; gs && i < gs->all.n; i++)
		SONDE_TRY(visit_goroutine(&v, gs, (uint32_t)i));
	return NULL;
}
