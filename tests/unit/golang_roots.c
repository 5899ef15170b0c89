#include "golang/roots.h"

#include "build_go.h"
#include "tap.h"

enum {
	TEXT = 0x401000,
	RECORDS = 0x900000,
	TYPES = 0x500000,
	DATA = 0x600000,
	BSS = 0x610000,
	LOW = 0x8000000,
	HIGH = LOW + 0x2000,
	CODE = 0x40,
};

struct seen {
	struct sonde_go_root *items;
	size_t n, cap;
};

struct roots {
	struct bg b;
	struct bg_area *records, *types;
	struct sonde_goroutines gs;
	struct sonde_go_masks masks;
	struct seen seen;
};

static void roots_deinit(struct roots *r)
{
	sonde_go_masks_deinit(&r->masks);
	sonde_goroutine_vec_deinit(&r->gs.all);
	sonde_go_frames_deinit(&r->gs.frames);
	free(r->seen.items);
	bg_deinit(&r->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(roots)

static void begin(struct roots *r)
{
	*r = (struct roots){.gs.go = &r->b.go};
	bg_init(&r->b, EM_X86_64);
	bg_layout(&r->b);
	r->records = bg_area(&r->b, RECORDS, 1 << 16);
	r->types = bg_area(&r->b, TYPES, 1 << 12);
	r->b.module.rodata = TYPES;
	bg_area(&r->b, LOW, HIGH - LOW);
}

static void keep(void *ctx, const struct sonde_go_root *root)
{
	struct seen *s = ctx;
	if (s->n == s->cap) {
		s->cap = s->cap * 2 + 64;
		s->items = realloc(s->items, s->cap * sizeof(*s->items));
		assert(s->items);
	}
	s->items[s->n++] = *root;
}

/* The package variables that queues hang on, and the rest. */
static void open_roots(struct roots *r, uint64_t allfin, uint64_t cleanups)
{
	bg_dwarf_begin(&r->b);
	uint32_t id = bg_dwarf_struct(&r->b, "runtime.x", 8);
	if (allfin)
		bg_dwarf_global(&r->b, "runtime.allfin", allfin, id);
	if (cleanups)
		bg_dwarf_global(&r->b, "runtime.gcCleanups", cleanups, id);
	bg_dwarf_end(&r->b);
	bg_open(&r->b);
	sonde_go_masks_init(&r->masks, &r->b.go);
}

static void visit(struct roots *r)
{
	r->seen.n = 0;
	CHECK_OK(sonde_go_roots_visit(&r->b.go, &r->gs, &r->masks, keep, &r->seen));
}

/* How many roots have that value; *last gets one. */
static size_t count(const struct roots *r, uint64_t value, struct sonde_go_root *last)
{
	size_t n = 0;
	for (size_t i = 0; i < r->seen.n; i++) {
		if (r->seen.items[i].value != value)
			continue;
		n++;
		if (last)
			*last = r->seen.items[i];
	}
	return n;
}

static void data_and_bss(void)
{
	sonde_cleanup(roots) struct roots r;
	begin(&r);
	struct bg *b = &r.b;
	bg_area(b, DATA, 100 * 8 + 4);
	bg_area(b, BSS, 20 * 8);
	uint64_t data_mask = bg_put(b, r.types, 13), bss_mask = bg_put(b, r.types, 3);
	for (unsigned i = 0; i < 100; i++) {
		bg_word(b, DATA + i * 8, 1000 + i);
		if (i % 9 == 0 || i == 99)
			*bg_at(b, data_mask + i / 8, 1) |= (uint8_t)(1 << i % 8);
	}
	for (unsigned i = 0; i < 20; i++)
		bg_word(b, BSS + i * 8, i == 3 ? 0 : 2000 + i);
	memset(bg_at(b, bss_mask, 3), 0xff, 3);
	b->module.data = DATA;
	b->module.edata = DATA + 100 * 8 + 4;
	b->module.data_mask = data_mask;
	b->module.data_mask_bits = 100;
	b->module.bss = BSS;
	b->module.ebss = BSS + 20 * 8;
	b->module.bss_mask = bss_mask;
	b->module.bss_mask_bits = 10; /* the mask ends before the section */
	open_roots(&r, 0, 0);
	visit(&r);
	CHECK_EQ(r.seen.n, 12 + 9);
	for (unsigned i = 0; i < 100; i++)
		CHECK_EQ(count(&r, 1000 + i, NULL), i % 9 == 0);
	for (unsigned i = 0; i < 20; i++)
		CHECK_EQ(count(&r, 2000 + i, NULL), i < 10 && i != 3);
	struct sonde_go_root root = {0};
	count(&r, 1018, &root);
	CHECK_EQ(root.addr, DATA + 18 * 8);
	CHECK_EQ(root.kind, SONDE_GO_ROOT_DATA);
	CHECK_EQ(root.goroutine, UINT32_MAX);
	CHECK(!root.conservative);
	/* No mask to be read; no words to be read. */
	b->module.bss_mask = 0x1234;
	visit(&r);
	CHECK_EQ(r.seen.n, 12);
	CHECK_EQ(bg_noted(b, "pointer mask of package variables"), 1);
	b->module.data = 0x2000;
	b->module.edata = 0x2000 + 800;
	visit(&r);
	CHECK_EQ(r.seen.n, 0);
	CHECK_EQ(bg_noted(b, "not readable: words"), 1);
}

static void queues(void)
{
	sonde_cleanup(roots) struct roots r;
	begin(&r);
	struct bg *b = &r.b;
	const struct sonde_go_layout *l = &b->go.layout;
	uint64_t second = bg_put(b, r.records, 512), first = bg_put(b, r.records, 512),
		 allfin = bg_put(b, r.records, 8), cleanups = bg_put(b, r.records, 64),
		 block = bg_put(b, r.records, 512);
	bg_word(b, allfin, first);
	bg_field(b, first, l->finblock_link, second);
	bg_field(b, first, l->finblock_cnt, 2);
	bg_field(b, second, l->finblock_cnt, UINT64_MAX); /* no more than a block has room for */
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < 4; k++) {
			bg_word(b, first + l->finblock_fin.offset + i * l->sizeof_finalizer + k * 8,
				100 + i * 10 + k);
			bg_word(b,
				second + l->finblock_fin.offset + i * l->sizeof_finalizer + k * 8,
				200 + i * 10 + k);
		}
	}
	bg_word(b, cleanups + l->cleanup_queue_all.offset, block);
	bg_field(b, block, l->cleanup_block_n, 2);
	for (unsigned i = 0; i < 12; i++)
		bg_word(b, block + l->cleanup_block_items.offset + i * 8, 300 + i);
	open_roots(&r, allfin, cleanups);
	visit(&r);
	for (unsigned i = 0; i < 4; i++) {
		for (unsigned k = 0; k < 4; k++) {
			CHECK_EQ(count(&r, 100 + i * 10 + k, NULL), i < 2);
			CHECK_EQ(count(&r, 200 + i * 10 + k, NULL), 1);
		}
	}
	for (unsigned i = 0; i < 12; i++)
		CHECK_EQ(count(&r, 300 + i, NULL), i < 6);
	CHECK_EQ(r.seen.n, 8 + 16 + 6);
	CHECK_EQ(r.seen.items[0].kind, SONDE_GO_ROOT_QUEUE);
	/* A circle is noticed. */
	bg_field(b, second, l->finblock_link, first);
	visit(&r);
	CHECK_EQ(bg_noted(b, "queue of finalizers cut short"), 1);
	CHECK(r.seen.n < 200);
	bg_field(b, second, l->finblock_link, 0x1234);
	visit(&r);
	CHECK_EQ(bg_noted(b, "queue of finalizers cut short"), 2);
}

/* --- frames --- */

/*
 * One function whose maps stand in func_data: locals of 6 words (two maps), arguments of 2 words, stack objects. The map's
 * number is 0 up to half of the code, then 1.
 */
enum { N_LOCALS = 6, FRAME_BYTES = 64 };

static void stack_map(struct bg *b, uint32_t n, uint32_t n_bits, const uint8_t *rows)
{
	bg_number(&b->func_data, n, 4);
	bg_number(&b->func_data, n_bits, 4);
	sonde_buf_add(&b->func_data, rows, n * ((n_bits + 7) / 8));
	while (b->func_data.len % 8)
		sonde_buf_char(&b->func_data, 0);
}

static void stack_object(
	struct bg *b, int32_t off, uint32_t size, int32_t ptr_bytes, uint32_t gcdata)
{
	bg_number(&b->func_data, (uint32_t)off, 4);
	bg_number(&b->func_data, size, 4);
	bg_number(&b->func_data, (uint32_t)ptr_bytes, 4);
	bg_number(&b->func_data, gcdata, 4);
}

static struct bg_function function = {.name = "main.f",
	.size_bytes = CODE,
	.args_bytes = 16,
	.pcsp = {{FRAME_BYTES, CODE}},
	.n_pcdata = 2,
	.n_funcdata = 3,
	.pcdata = {{{0}}, {{-1, 8}, {0, CODE / 2 - 8}, {1, CODE / 2}}}};

static void add_function(struct roots *r, int objects)
{
	struct bg *b = &r->b;
	static const uint8_t args[] = {1, 2}, locals[] = {0x05, 0x3f};
	function.funcdata[0] = (int32_t)b->func_data.len;
	stack_map(b, 2, 2, args);
	function.funcdata[1] = (int32_t)b->func_data.len;
	stack_map(b, 2, N_LOCALS, locals);
	function.funcdata[2] = objects;
	bg_functions(b, TEXT, &function, 1);
}

/* A goroutine with one frame at sp that is at pc. */
static void add_frame(struct roots *r, uint64_t pc, uint64_t sp, unsigned flags)
{
	struct sonde_goroutine g = {.addr = bg_put(&r->b, r->records, 64 * 8),
		.stack_low = LOW,
		.stack_high = HIGH,
		.first_frame = r->gs.frames.n,
		.n_frames = 1};
	struct sonde_go_frame f = {.pc = pc,
		.sp = sp,
		.fp = sp + FRAME_BYTES + 8,
		.varp = sp + FRAME_BYTES - 8,
		.argp = sp + FRAME_BYTES + 8,
		.flags = (uint16_t)flags};
	assert(sonde_go_frames_push(&r->gs.frames, f) && sonde_goroutine_vec_push(&r->gs.all, g));
	for (uint64_t at = sp; at < sp + FRAME_BYTES + 24; at += 8)
		bg_word(&r->b, at, 0x10000 + at - sp);
}

static void precise_frames(void)
{
	static const struct {
		uint64_t pc;
		uint8_t locals, args;
	} rows[] = {
		{TEXT, 0x05, 1}, /* the entry: the first map */
		{TEXT + 4, 0x05, 1}, /* index -1: the same */
		{TEXT + 0x10, 0x05, 1},
		{TEXT + 0x20, 0x05, 1}, /* a return address: the call before it counts */
		{TEXT + 0x21, 0x3f, 2},
		{TEXT + 0x40, 0x3f, 2},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(roots) struct roots r;
		begin(&r);
		add_function(&r, BG_NO_FUNCDATA);
		uint64_t sp = LOW + 0x100;
		add_frame(&r, rows[i].pc, sp, 0);
		open_roots(&r, 0, 0);
		visit(&r);
		struct sonde_go_root root = {0};
		size_t want = 0;
		/* The map's bits end at varp: 56 bytes above sp, 6 words. */
		for (unsigned k = 0; k < N_LOCALS; k++) {
			want += rows[i].locals >> k & 1;
			CHECK_EQ(count(&r, 0x10000 + 56 - 48 + k * 8, &root),
				rows[i].locals >> k & 1);
		}
		for (unsigned k = 0; k < 2; k++) {
			want += rows[i].args >> k & 1;
			CHECK_EQ(count(&r, 0x10000 + 72 + k * 8, &root), rows[i].args >> k & 1);
		}
		CHECK_EQ(r.seen.n, want);
		CHECK_EQ(root.kind, SONDE_GO_ROOT_STACK);
		CHECK_EQ(root.goroutine, 0);
		CHECK_EQ(root.frame, 0);
		CHECK(!root.conservative);
	}
}

static void conservative_frames(void)
{
	sonde_cleanup(roots) struct roots r;
	begin(&r);
	add_function(&r, BG_NO_FUNCDATA);
	add_frame(&r, TEXT + 0x10, LOW + 0x100, SONDE_GO_FRAME_CONSERVATIVE);
	add_frame(&r, TEXT + 0x10, LOW + 0x400, SONDE_GO_FRAME_SYSTEM_STACK);
	struct sonde_goroutine *g = &r.gs.all.items[0];
	g->regs.machine = EM_X86_64;
	sonde_regs_set(&g->regs, 3, 0x777);
	open_roots(&r, 0, 0);
	visit(&r);
	/* Seven words up to varp and two of arguments, one register; nothing of the system stack. */
	CHECK_EQ(r.seen.n, 9 - 1 + 1 + 1);
	struct sonde_go_root root = {0};
	CHECK_EQ(count(&r, 0x777, &root), 1);
	CHECK_EQ(root.kind, SONDE_GO_ROOT_REGISTER);
	CHECK_EQ(root.addr, 0);
	for (size_t i = 0; i < r.seen.n; i++)
		CHECK(r.seen.items[i].conservative && r.seen.items[i].goroutine == 0);
}

/* Variables on the stack count only where a pointer that counts leads to them, and so on from there. */
static void stack_objects(void)
{
	for (int reached = 0; reached < 2; reached++) {
		sonde_cleanup(roots) struct roots r;
		begin(&r);
		struct bg *b = &r.b;
		const uint8_t second_word = 2, first_word = 1;
		uint64_t mask2 = bg_bytes(b, r.types, &second_word, 1),
			 mask1 = bg_bytes(b, r.types, &first_word, 1);
		bg_number(&b->func_data, 3, 8);
		stack_object(b, -16, 16, 16, (uint32_t)(mask2 - TYPES)); /* A: varp - 16 */
		stack_object(b, -32, 16, 8, (uint32_t)(mask1 - TYPES)); /* B */
		stack_object(b, 0, 8, 8, (uint32_t)(mask1 - TYPES)); /* C: an argument */
		add_function(&r, 0);
		uint64_t sp = LOW + 0x100, varp = sp + 56;
		add_frame(&r, TEXT + 0x10, sp, 0); /* locals 0 and 2 count: varp - 48, varp - 32 */
		/* The frame's own words are no heap pointers here. */
		for (uint64_t at = sp; at < sp + 96; at += 8)
			bg_word(b, at, 0);
		bg_word(b, varp - 48, reached ? varp - 16 + 15 : 0); /* into A's last byte */
		bg_word(b, varp - 16, 0xa1); /* A: not a pointer word */
		bg_word(b, varp - 8, varp - 32); /* A -> B */
		bg_word(b, varp - 32, 0); /* live by the frame's map as well */
		bg_word(b, varp - 24, 0xb2);
		bg_word(b, sp + 72, 0xc1); /* C: its word also counts by the argument map */
		open_roots(&r, 0, 0);
		visit(&r);
		CHECK_EQ(count(&r, 0xa1, NULL), 0);
		CHECK_EQ(count(&r, 0xb2, NULL), 0);
		CHECK_EQ(count(&r, 0xc1, NULL), 1);
		/* A chain: B's first word is a heap pointer, seen once by the map and once as a part of B. */
		bg_word(b, varp - 32, 0xb1);
		visit(&r);
		CHECK_EQ(count(&r, 0xb1, NULL), 1 + (unsigned)reached);
		/* A circle of stack objects ends. */
		bg_word(b, varp - 32, varp - 16);
		visit(&r);
		CHECK_EQ(count(&r, varp - 16, NULL), 0);
		CHECK_EQ(b->notes.entries.n, 0);
	}
}

static void damaged_stack_objects(void)
{
	static const struct {
		uint64_t n;
		int32_t off;
		uint32_t size;
		int32_t ptr_bytes;
		uint32_t gcdata;
	} rows[] = {
		{UINT64_MAX, -16, 16, 16, 0}, {1 << 20, -16, 16, 16, 0},
		{3, -16, 16, 16, 0}, /* cut short */
		{1, INT32_MIN, 16, 16, 0}, {1, INT32_MAX, 16, 16, 0}, {1, -16, UINT32_MAX, 16, 0},
		{1, -16, UINT32_MAX, INT32_MAX, 0}, {1, -16, 16, INT32_MIN, 0},
		{1, -16, 16, 16, UINT32_MAX}, {1, -16, 16, -16, 0}, /* a GC program that is none */
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		sonde_cleanup(roots) struct roots r;
		begin(&r);
		struct bg *b = &r.b;
		memset(bg_at(b, TYPES, 64), 0xff, 64);
		bg_number(&b->func_data, rows[i].n, 8);
		stack_object(b, rows[i].off, rows[i].size, rows[i].ptr_bytes, rows[i].gcdata);
		add_function(&r, 0);
		uint64_t sp = LOW + 0x100;
		add_frame(&r, TEXT + 0x10, sp, 0);
		bg_word(b, sp + 8, sp + 48); /* points where the object claims to be */
		open_roots(&r, 0, 0);
		visit(&r);
		CHECK(r.seen.n <= 4);
	}
}

/* Go <= 1.23: a mask as a program. */
static void stack_object_programs(void)
{
	sonde_cleanup(roots) struct roots r;
	begin(&r);
	struct bg *b = &r.b;
	const uint8_t code[] = {5, 0, 0, 0, 1, 1, 0x81, 1, 0};
	uint64_t program = bg_bytes(b, r.types, code, sizeof(code));
	bg_number(&b->func_data, 1, 8);
	stack_object(b, -16, 16, -16, (uint32_t)(program - TYPES));
	add_function(&r, 0);
	uint64_t sp = LOW + 0x100;
	add_frame(&r, TEXT + 0x10, sp, 0);
	bg_word(b, sp + 8, sp + 40);
	open_roots(&r, 0, 0);
	visit(&r);
	CHECK_EQ(count(&r, 0x10000 + 40, NULL), 1);
	CHECK_EQ(count(&r, 0x10000 + 48, NULL), 1);
}

static void hostile_maps(void)
{
	/* {n, nbit} of the locals, as the file may have them. */
	static const uint32_t rows[][2] = {{0, 6}, {UINT32_MAX, 6}, {2, UINT32_MAX}, {2, INT32_MAX},
		{2, 0x80000000}, {2, 7}, {2, 8}, {2, 64}, {1, 6}};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		for (uint64_t pc = TEXT + 0x10; pc <= TEXT + 0x30; pc += 0x20) {
			sonde_cleanup(roots) struct roots r;
			begin(&r);
			add_function(&r, BG_NO_FUNCDATA);
			memcpy(r.b.func_data.data + function.funcdata[1], rows[i], 8);
			r.b.func_data.len = (size_t)function.funcdata[1] + 10;
			r.b.module.functions.func_data.len = r.b.func_data.len;
			add_frame(&r, pc, LOW + 0x100, 0);
			open_roots(&r, 0, 0);
			visit(&r);
			CHECK(r.seen.n <= 1 + 7);
		}
	}
}

static void records(void)
{
	sonde_cleanup(roots) struct roots r;
	begin(&r);
	struct bg *b = &r.b;
	const struct sonde_go_layout *l = &b->go.layout;
	add_function(&r, BG_NO_FUNCDATA);
	add_frame(&r, TEXT + 0x10, LOW + 0x100, SONDE_GO_FRAME_SYSTEM_STACK);
	uint64_t g = r.gs.all.items[0].addr, d1 = bg_put(b, r.records, 64 * 8),
		 d2 = bg_put(b, r.records, 64 * 8), x = bg_put(b, r.records, 256);
	bg_field(b, g, l->g_sched_ctxt, 0xc1);
	bg_field(b, g, l->g_panic, 0xc2);
	bg_field(b, g, l->g_defer, d1);
	bg_field(b, d1, l->defer_fn, 0xd1);
	bg_field(b, d1, l->defer_link, d2);
	bg_field(b, d2, l->defer_fn, 0xd2);
	bg_field(b, g, l->g_xregs_state, x);
	for (unsigned i = 0; i < 4; i++)
		bg_word(b, x + l->xreg_regs.offset + i * 8, 0xe0 + i);
	open_roots(&r, 0, 0);
	visit(&r);
	const uint64_t want[] = {0xc1, 0xc2, d1, 0xd1, d2, 0xd2};
	struct sonde_go_root root = {0};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(want); i++) {
		CHECK_EQ(count(&r, want[i], &root), 1);
		CHECK_EQ(root.kind, SONDE_GO_ROOT_GOROUTINE);
	}
	CHECK_EQ(r.seen.n,
		SONDE_ARRAY_LEN(want)); /* vector registers count only where it was preempted */
	bg_field(b, g, l->g_async_safe_point, 1);
	visit(&r);
	CHECK_EQ(count(&r, 0xe0, &root) + count(&r, 0xe3, NULL), 2);
	CHECK(root.conservative);
	/* Defers in a circle. */
	bg_field(b, d2, l->defer_link, d1);
	visit(&r);
	CHECK(r.seen.n < 40);
	bg_field(b, d2, l->defer_link, 0x1234);
	visit(&r);
	CHECK_EQ(count(&r, 0x1234, NULL), 1);
}

static void no_goroutines(void)
{
	sonde_cleanup(roots) struct roots r;
	begin(&r);
	open_roots(&r, 0, 0);
	CHECK_OK(sonde_go_roots_visit(&r.b.go, NULL, &r.masks, keep, &r.seen));
	CHECK_EQ(r.seen.n, 0);
}

int main(void)
{
	RUN(data_and_bss);
	RUN(queues);
	RUN(precise_frames);
	RUN(conservative_frames);
	RUN(stack_objects);
	RUN(damaged_stack_objects);
	RUN(stack_object_programs);
	RUN(hostile_maps);
	RUN(records);
	RUN(no_goroutines);
	return tap_end();
}
