/*
 * tests/build_go.h: a Go process in the making. A test puts bytes at addresses of its own choice; the target reads them
 * in place. Above that: a hand-made layout of the runtime's records, type descriptors, function tables, spans and
 * goroutines, all written in the order in which the test asks for them. Little-endian hosts only, as the targets are.
 */
#pragma once
#include <assert.h>
#include <elf.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "base/varint.h"
#include "build_dwarf.h"
#include "golang/goroutine.h"
#include "golang/heap.h"
#include "golang/runtime.h"
#include "golang/types.h"
#include "object/pclntab.h"
#include "target/ops.h"

#define BG_UNUSED __attribute__((unused))

enum { BG_MAX_AREAS = 512, BG_MAX_FUNCTIONS = 64, BG_MAX_ROWS = 16, BG_NO_FUNCDATA = -1 };

/* --- memory --- */

struct bg_area {
	uint64_t addr, size_bytes;
	uint8_t *host;
	uint64_t used; /* what bg_put() gave away */
};

/* A process: areas of memory, then (bg_open) a target and a runtime over them. */
struct bg {
	unsigned word;
	uint16_t machine;
	struct bg_area areas[BG_MAX_AREAS];
	size_t n_areas;
	struct sonde_target *target;
	struct sonde_notes notes;
	struct sonde_go go;
	struct sonde_go_module module;
	struct dw dw;
	struct sonde_buf dwarf_image; /* what go.dwarf reads */
	struct sonde_buf table, func_data; /* what module.functions reads */
};

BG_UNUSED static void bg_init(struct bg *b, uint16_t machine)
{
	*b = (struct bg){.machine = machine, .word = machine == EM_386 ? 4 : 8};
}

/* Zeroed memory, exactly as long as said, so that ASan sees what reads past it. */
BG_UNUSED static struct bg_area *bg_area(struct bg *b, uint64_t addr, uint64_t size_bytes)
{
	assert(b->n_areas < BG_MAX_AREAS && !b->target);
	struct bg_area *a = &b->areas[b->n_areas++];
	*a = (struct bg_area){addr, size_bytes, calloc(size_bytes ? size_bytes : 1, 1), 0};
	assert(a->host);
	return a;
}

/* The host bytes of [addr, addr + n): the test stops where there are none. */
BG_UNUSED static uint8_t *bg_at(struct bg *b, uint64_t addr, uint64_t n)
{
	for (size_t i = 0; i < b->n_areas; i++) {
		struct bg_area *a = &b->areas[i];
		if (addr >= a->addr && addr - a->addr <= a->size_bytes &&
			n <= a->size_bytes - (addr - a->addr))
			return a->host + (addr - a->addr);
	}
	fprintf(stderr, "build_go: nothing at 0x%llx\n", (unsigned long long)addr);
	abort();
}

BG_UNUSED static void bg_set(struct bg *b, uint64_t addr, uint64_t v, unsigned bytes)
{
	memcpy(bg_at(b, addr, bytes), &v, bytes);
}

BG_UNUSED static void bg_word(struct bg *b, uint64_t addr, uint64_t v)
{
	bg_set(b, addr, v, b->word);
}

BG_UNUSED static void bg_field(struct bg *b, uint64_t addr, struct sonde_go_field f, uint64_t v)
{
	assert(f.size);
	bg_set(b, addr + f.offset, v, f.size < 8 ? f.size : 8);
}

/* The next n bytes of an area, aligned to a word. */
BG_UNUSED static uint64_t bg_put(struct bg *b, struct bg_area *a, uint64_t n)
{
	uint64_t at = (a->used + 7) & ~UINT64_C(7);
	assert(at + n <= a->size_bytes);
	a->used = at + n;
	(void)b;
	return a->addr + at;
}

BG_UNUSED static uint64_t bg_bytes(struct bg *b, struct bg_area *a, const void *data, uint64_t n)
{
	uint64_t at = bg_put(b, a, n);
	memcpy(bg_at(b, at, n), data, n);
	return at;
}

/* --- layout --- */

/* A runtime.mspan, runtime.g and so on with the fields in the order of the table, one word each unless said. */
BG_UNUSED static void bg_layout(struct bg *b)
{
	struct sonde_go_layout *l = &b->go.layout;
	const uint32_t w = b->word;
	struct {
		const char *name;
		uint32_t bytes;
	} structs[64] = {{NULL, 0}};
	/* Every struct of the table gets its fields one behind the other, each of a word. */
#define F(member, types, paths, need)                                     \
	for (size_t i = 0; i < SONDE_ARRAY_LEN(structs); i++) {           \
		if (structs[i].name && strcmp(structs[i].name, types))    \
			continue;                                         \
		structs[i].name = types;                                  \
		l->member = (struct sonde_go_field){structs[i].bytes, w}; \
		structs[i].bytes += w;                                    \
		break;                                                    \
	}
#define T(member, types, need) l->member = 64 * w;
#define C(member, names, fallback) l->member = (fallback);
	SONDE_GO_FIELDS(F)
	SONDE_GO_SIZES(T)
	SONDE_GO_CONSTANTS(C)
#undef F
#undef T
#undef C
	l->header_min_bytes = w == 8 ? 512 : 128;
	l->header_bytes = 8;
	/* Queues: room for four items in a block. */
	l->sizeof_finalizer = 5 * w;
	l->finblock_fin.size = 4 * l->sizeof_finalizer;
	l->sizeof_cleanup_fn = 3 * w;
	l->cleanup_block_items.size = 4 * l->sizeof_cleanup_fn;
	/* Since 1.25 a cleanup is {call, fn, arg}; keep the old form until a test asks. */
	/* internal/abi.Type: 48 bytes on 64-bit machines, 32 on 32-bit. */
	l->sizeof_type = 4 * w + 16;
	l->type_size = (struct sonde_go_field){0, w};
	l->type_ptr_bytes = (struct sonde_go_field){w, w};
	l->type_tflag = (struct sonde_go_field){2 * w + 4, 1};
	l->type_kind = (struct sonde_go_field){2 * w + 7, 1};
	l->type_gcdata = (struct sonde_go_field){3 * w + 8, w};
	l->type_str = (struct sonde_go_field){4 * w + 8, 4};
	l->sizeof_stkobj = 16;
	l->stkobj_off = (struct sonde_go_field){0, 4};
	l->stkobj_size = (struct sonde_go_field){4, 4};
	l->stkobj_ptr_bytes = (struct sonde_go_field){8, 4};
	l->stkobj_gcdata = (struct sonde_go_field){12, 4};
	/* What embeds a runtime.special has its own fields behind it. */
	l->special_finalizer.offset = l->special_cleanup.offset = 4 * w;
	l->special_weak_handle.offset = 4 * w;
	l->special_object_type.offset = 8 * w;
	l->special_kind.size = 1;
	l->span_class.size = 1;
	l->span_state.size = 1;
	l->span_nelems.size = 2;
	l->span_freeindex.size = 2;
	l->span_user_arena.size = 1;
	l->g_status.size = 4;
	l->g_waitreason.size = 1;
	l->g_async_safe_point.size = 1;
	l->xreg_regs.size = 4 * w;
	l->special_kind_weak_handle = 2;
	l->special_kind_cleanup = 6;
	l->tflag_gc_mask_on_demand = 16;
	l->kind_direct_iface = 32;
	/* Absent unless a test asks: the states of Go 1.26. */
}

/* Open the target over all areas so far; the runtime has one module (may stay empty). */
BG_UNUSED static void bg_open(struct bg *b)
{
	struct sonde_target_run runs[BG_MAX_AREAS];
	for (size_t i = 0; i < b->n_areas; i++)
		runs[i] = (struct sonde_target_run){
			b->areas[i].addr, b->areas[i].size_bytes, b->areas[i].host};
	for (size_t i = 1; i < b->n_areas; i++) {
		for (size_t k = i; k > 0 && runs[k - 1].start > runs[k].start; k--) {
			struct sonde_target_run swap = runs[k];
			runs[k] = runs[k - 1];
			runs[k - 1] = swap;
		}
	}
	b->target = sonde_target_over_runs(runs, b->n_areas, b->machine, b->word);
	assert(b->target);
	b->go.target = b->target;
	b->go.notes = &b->notes;
	b->go.word_bytes = b->word;
	b->go.modules = &b->module;
	b->go.n_modules = 1;
	sonde_arena_init(&b->go.arena);
}

BG_UNUSED static void bg_deinit(struct bg *b)
{
	if (b->target) {
		/* The threads are the test's. */
		b->target->threads = NULL;
		sonde_target_free(b->target);
		sonde_arena_deinit(&b->go.arena);
	}
	sonde_dwarf_free(b->go.dwarf);
	for (size_t i = 0; i < b->n_areas; i++)
		free(b->areas[i].host);
	dw_deinit(&b->dw);
	sonde_buf_deinit(&b->dwarf_image);
	sonde_buf_deinit(&b->table);
	sonde_buf_deinit(&b->func_data);
	sonde_notes_deinit(&b->notes);
	*b = (struct bg){0};
}

BG_UNUSED static void sonde_cleanup_bg(struct bg *b)
{
	bg_deinit(b);
}

/* How often a note of that kind was made; 0 = never. */
BG_UNUSED static uint64_t bg_noted(const struct bg *b, const char *kind)
{
	for (size_t i = 0; i < b->notes.entries.n; i++) {
		if (strstr(b->notes.entries.items[i].kind, kind))
			return b->notes.entries.items[i].count;
	}
	return 0;
}

/* --- type descriptors --- */

struct bg_type {
	uint64_t size_bytes, ptr_bytes;
	uint8_t kind, tflag;
	uint64_t gcdata;
	uint64_t words[3]; /* what stands behind the descriptor */
	int32_t str;
};

BG_UNUSED static void bg_type_at(struct bg *b, uint64_t addr, const struct bg_type *t)
{
	const struct sonde_go_layout *l = &b->go.layout;
	bg_field(b, addr, l->type_size, t->size_bytes);
	bg_field(b, addr, l->type_ptr_bytes, t->ptr_bytes);
	bg_field(b, addr, l->type_kind, t->kind);
	bg_field(b, addr, l->type_tflag, t->tflag);
	bg_field(b, addr, l->type_gcdata, t->gcdata);
	bg_field(b, addr, l->type_str, (uint32_t)t->str);
	for (unsigned i = 0; i < 3; i++)
		bg_word(b, addr + l->sizeof_type + i * b->word, t->words[i]);
}

BG_UNUSED static uint64_t bg_type(struct bg *b, struct bg_area *a, struct bg_type t)
{
	uint64_t addr = bg_put(b, a, b->go.layout.sizeof_type + 3 * b->word);
	bg_type_at(b, addr, &t);
	return addr;
}

/* A type of n words with the pointers that the bits of mask say. */
BG_UNUSED static uint64_t bg_masked_type(
	struct bg *b, struct bg_area *a, unsigned n_words, uint64_t mask)
{
	unsigned n_ptr = mask ? 64 - (unsigned)__builtin_clzll(mask) : 0;
	return bg_type(b, a,
		(struct bg_type){.size_bytes = n_words * b->word,
			.ptr_bytes = n_ptr * b->word,
			.kind = SONDE_GO_KIND_STRUCT,
			.gcdata = bg_bytes(b, a, &mask, 8)});
}

/* --- function tables --- */

/* The value holds for `bytes` bytes of code. */
struct bg_row {
	int32_t value;
	uint32_t bytes;
};

struct bg_function {
	const char *name;
	uint32_t size_bytes; /* of its code */
	int32_t args_bytes, start_line;
	uint8_t id, flags;
	struct bg_row pcsp[BG_MAX_ROWS], pcfile[BG_MAX_ROWS], pcln[BG_MAX_ROWS];
	struct bg_row pcdata[4][BG_MAX_ROWS]; /* all rows zero: none */
	unsigned n_pcdata;
	int32_t funcdata[8]; /* offset in the func data; BG_NO_FUNCDATA = none */
	unsigned n_funcdata;
	uint32_t cu_offset;
	uint64_t entry; /* set by bg_table() */
};

/* runtime.pclntab in the form of Go 1.20 (or 1.18): everything a reader finds through the header. */
struct bg_table {
	bool go118;
	uint8_t quantum;
	uint64_t text;
	const char *const *files; /* NULL-terminated; file number i of CU 0 */
	size_t offsets[5]; /* of the parts, set by bg_table_write() */
};

BG_UNUSED static void bg_uleb(struct sonde_buf *to, uint64_t v)
{
	uint8_t bytes[10];
	sonde_buf_add(to, bytes, sonde_varint_encode(bytes, v));
}

BG_UNUSED static void bg_number(struct sonde_buf *to, uint64_t v, unsigned bytes)
{
	sonde_buf_add(to, &v, bytes);
}

/* runtime/symtab.go step: zig-zag value delta, pc delta in quanta; 0 ends. Returns the offset, 0 where there are no rows. */
BG_UNUSED static uint32_t bg_rows(struct sonde_buf *to, const struct bg_row *rows, unsigned quantum)
{
	if (!rows[0].bytes)
		return 0;
	uint32_t offset = (uint32_t)to->len;
	int32_t value = -1;
	for (size_t i = 0; i < BG_MAX_ROWS && rows[i].bytes; i++) {
		uint32_t delta = (uint32_t)rows[i].value - (uint32_t)value;
		bg_uleb(to, (uint32_t)(delta << 1) ^ (delta >> 31 ? UINT32_MAX : 0));
		bg_uleb(to, rows[i].bytes / quantum);
		value = rows[i].value;
	}
	sonde_buf_char(to, 0);
	return offset;
}

/* Write the table of n functions, one behind the other from t->text on; their ->entry is set. */
BG_UNUSED static void bg_table_write(struct bg_table *t, unsigned word,
	struct bg_function *functions, size_t n, struct sonde_buf *to)
{
	sonde_cleanup(sonde_buf) struct sonde_buf names = {0}, cu = {0}, files = {0}, pc = {0},
						  body = {0}, rows = {0};
	unsigned quantum = t->quantum ? t->quantum : 1;
	sonde_buf_char(&names, 0);
	sonde_buf_char(&files, 0);
	sonde_buf_char(&pc, 0);
	size_t n_files = 0;
	for (; t->files && t->files[n_files]; n_files++) {
		bg_number(&cu, files.len, 4);
		sonde_buf_add(&files, t->files[n_files], strlen(t->files[n_files]) + 1);
	}
	uint64_t entry = t->text;
	size_t base = n * 8 + 4;
	for (size_t i = 0; i < n; i++) {
		struct bg_function *f = &functions[i];
		f->entry = entry;
		bg_number(&rows, entry - t->text, 4);
		bg_number(&rows, base + body.len, 4);
		bg_number(&body, entry - t->text, 4);
		bg_number(&body, names.len, 4);
		sonde_buf_add(&names, f->name, strlen(f->name) + 1);
		bg_number(&body, (uint32_t)f->args_bytes, 4);
		bg_number(&body, 0, 4); /* deferreturn */
		bg_number(&body, bg_rows(&pc, f->pcsp, quantum), 4);
		bg_number(&body, bg_rows(&pc, f->pcfile, quantum), 4);
		bg_number(&body, bg_rows(&pc, f->pcln, quantum), 4);
		bg_number(&body, f->n_pcdata, 4);
		bg_number(&body, f->cu_offset, 4);
		if (!t->go118)
			bg_number(&body, (uint32_t)f->start_line, 4);
		bg_number(&body, f->id, 1);
		bg_number(&body, f->flags, 1);
		bg_number(&body, 0, 1);
		bg_number(&body, f->n_funcdata, 1);
		for (unsigned k = 0; k < f->n_pcdata; k++)
			bg_number(&body, bg_rows(&pc, f->pcdata[k], quantum), 4);
		for (unsigned k = 0; k < f->n_funcdata; k++)
			bg_number(&body, (uint32_t)f->funcdata[k], 4);
		entry += f->size_bytes;
	}
	bg_number(&rows, entry - t->text, 4);
	to->len = 0;
	bg_number(to, t->go118 ? 0xfffffff0 : 0xfffffff1, 4);
	bg_number(to, 0, 2);
	bg_number(to, quantum, 1);
	bg_number(to, word, 1);
	bg_number(to, n, word);
	bg_number(to, n_files, word);
	bg_number(to, t->text, word);
	const struct sonde_buf *parts[] = {&names, &cu, &files, &pc, &rows};
	size_t at = 8 + 8 * word;
	for (int i = 0; i < 5; i++) {
		t->offsets[i] = at;
		bg_number(to, at, word);
		at += parts[i]->len;
	}
	for (int i = 0; i < 5; i++)
		sonde_buf_add(to, parts[i]->data, parts[i]->len);
	sonde_buf_add(to, body.data, body.len);
}

/* The module's function table: code from text on. b->func_data is what funcdata offsets lead to (written before). */
BG_UNUSED static void bg_functions(
	struct bg *b, uint64_t text, struct bg_function *functions, size_t n)
{
	static const char *const files[] = {"/src/main.go", "/src/inlined.go", NULL};
	struct bg_table t = {
		.text = text, .files = files, .quantum = b->machine == EM_AARCH64 ? 4 : 1};
	bg_table_write(&t, b->word, functions, n, &b->table);
	b->module.text = text;
	b->module.etext = functions[n - 1].entry + functions[n - 1].size_bytes;
	struct sonde_error *err =
		sonde_pclntab_decode((const uint8_t *)b->table.data, b->table.len, text, 0x7000000,
			(struct sonde_bytes){(const uint8_t *)b->func_data.data, b->func_data.len},
			&b->module.functions);
	assert(!err);
	(void)err;
}

/* --- DWARF: package variables, and whatever DIEs the test adds in between --- */

BG_UNUSED static void bg_dwarf_begin(struct bg *b)
{
	dw_go_unit(&b->dw, 4, "runtime", 0);
}

BG_UNUSED static void bg_dwarf_global(struct bg *b, const char *name, uint64_t addr, uint32_t type)
{
	dw_die(&b->dw, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location,
		DW_FORM_block1, DW_AT_type, DW_FORM_ref_addr, 0);
	dw_string(&b->dw, name);
	dw_addr_expr(&b->dw, addr);
	dw_u32(&b->dw, type);
}

BG_UNUSED static uint32_t bg_dwarf_struct(struct bg *b, const char *name, uint64_t size_bytes)
{
	uint32_t id = dw_die(&b->dw, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string,
		DW_AT_byte_size, DW_FORM_udata, 0);
	dw_string(&b->dw, name);
	dw_uleb(&b->dw.sections[DW_INFO], size_bytes);
	return id;
}

BG_UNUSED static void bg_dwarf_end(struct bg *b)
{
	dw_end(&b->dw);
	dw_unit_end(&b->dw);
	dw_elf(&b->dw, DW_PLAIN, &b->dwarf_image);
	struct sonde_error *err = sonde_dwarf_open_image(
		b->dwarf_image.data, b->dwarf_image.len, "test", &b->notes, &b->go.dwarf);
	if (err)
		fprintf(stderr, "build_go: %s\n", err->message);
	assert(!err);
}

/* --- heap --- */

enum { BG_PAGE = 8192, BG_MAX_SPANS = 4096 };

struct bg_span {
	uint64_t base, n_pages, slot_bytes, n_slots, free_index;
	uint8_t size_class;
	bool noscan, user_arena;
	uint8_t state; /* 0: in use */
	uint64_t alloc_bits, specials, large_type;
	uint64_t addr; /* of its mspan, set by bg_span() */
};

/* The runtime's records: mheap_, the list of spans, the spans. */
struct bg_heap {
	struct bg_area *records;
	uint64_t mheap, list;
	size_t n;
};

BG_UNUSED static void bg_span_write(struct bg *b, const struct bg_span *s)
{
	const struct sonde_go_layout *l = &b->go.layout;
	bg_field(b, s->addr, l->span_start, s->base);
	bg_field(b, s->addr, l->span_npages, s->n_pages);
	bg_field(b, s->addr, l->span_elemsize, s->slot_bytes);
	bg_field(b, s->addr, l->span_nelems, s->n_slots);
	bg_field(b, s->addr, l->span_freeindex, s->free_index);
	bg_field(b, s->addr, l->span_alloc_bits, s->alloc_bits);
	bg_field(b, s->addr, l->span_class, (uint64_t)s->size_class << 1 | s->noscan);
	bg_field(b, s->addr, l->span_state, s->state ? s->state : (uint64_t)l->state_in_use);
	bg_field(b, s->addr, l->span_specials, s->specials);
	bg_field(b, s->addr, l->span_large_type, s->large_type);
	bg_field(b, s->addr, l->span_user_arena, s->user_arena);
}

/* Room for the records at addr. bg_layout() comes before. */
BG_UNUSED static void bg_heap_begin(struct bg *b, struct bg_heap *h, uint64_t addr)
{
	*h = (struct bg_heap){.records = bg_area(b, addr, 4 << 20)};
	h->mheap = bg_put(b, h->records, 64 * b->word);
	h->list = bg_put(b, h->records, BG_MAX_SPANS * b->word);
	bg_word(b, h->mheap + b->go.layout.mheap_allspans.offset, h->list);
}

/* One more span. Its memory is the test's to make. */
BG_UNUSED static void bg_span(struct bg *b, struct bg_heap *h, struct bg_span *s)
{
	assert(h->n < BG_MAX_SPANS);
	s->addr = bg_put(b, h->records, b->go.layout.sizeof_mspan);
	bg_span_write(b, s);
	bg_word(b, h->list + h->n++ * b->word, s->addr);
	bg_word(b, h->mheap + b->go.layout.mheap_allspans.offset + b->word, h->n);
}

/* A span of one size class; all slots allocated. */
BG_UNUSED static struct bg_span bg_span_in(struct bg *b, struct bg_heap *h, uint64_t base,
	uint64_t n_pages, uint64_t slot_bytes, uint8_t size_class, bool noscan)
{
	struct bg_span s = {.base = base,
		.n_pages = n_pages,
		.slot_bytes = slot_bytes,
		.n_slots = n_pages * BG_PAGE / slot_bytes,
		.size_class = size_class,
		.noscan = noscan};
	s.free_index = s.n_slots;
	bg_span(b, h, &s);
	return s;
}

/* The same with its memory. */
BG_UNUSED static struct bg_span bg_class_span(struct bg *b, struct bg_heap *h, uint64_t base,
	uint64_t n_pages, uint64_t slot_bytes, uint8_t size_class, bool noscan)
{
	bg_area(b, base, n_pages * BG_PAGE);
	return bg_span_in(b, h, base, n_pages, slot_bytes, size_class, noscan);
}

/* Mark a word of a span with heap bits as a pointer, and set it. trailer: bytes behind the bits. */
BG_UNUSED static void bg_pointer(
	struct bg *b, const struct bg_span *s, uint64_t addr, uint64_t value, uint64_t trailer)
{
	uint64_t bytes = s->n_pages * BG_PAGE, i = (addr - s->base) / b->word;
	*bg_at(b, s->base + bytes - trailer - bytes / b->word / 8 + i / 8, 1) |=
		(uint8_t)(1 << i % 8);
	bg_word(b, addr, value);
}

/* runtime.special. */
struct bg_special {
	uint64_t next, offset;
	uint8_t kind;
	uint64_t words[3];
};

BG_UNUSED static uint64_t bg_special(struct bg *b, struct bg_area *a, struct bg_special s)
{
	const struct sonde_go_layout *l = &b->go.layout;
	uint64_t addr = bg_put(b, a, 16 * b->word);
	bg_field(b, addr, l->special_next, s.next);
	bg_field(b, addr, l->special_offset, s.offset);
	bg_field(b, addr, l->special_kind, s.kind);
	struct sonde_go_field f = s.kind == l->special_kind_cleanup ? l->special_cleanup
		: s.kind == l->special_kind_weak_handle             ? l->special_weak_handle
								    : l->special_finalizer;
	for (unsigned i = 0; i < 3; i++)
		bg_word(b, addr + f.offset + i * b->word, s.words[i]);
	return addr;
}

/* --- goroutines and their stacks --- */

struct bg_g {
	uint64_t id, stack_low, stack_high;
	uint32_t status;
	uint64_t sched_sp, sched_pc, sched_lr, sched_ctxt, syscallsp, syscallpc, m, gopc, startpc;
	uint64_t panic, defer, waitsince, parent, lockedm, labels;
	uint8_t waitreason;
};

BG_UNUSED static void bg_g_at(struct bg *b, uint64_t addr, const struct bg_g *g)
{
	const struct sonde_go_layout *l = &b->go.layout;
	bg_field(b, addr, l->g_goid, g->id);
	bg_field(b, addr, l->g_stack_lo, g->stack_low);
	bg_field(b, addr, l->g_stack_hi, g->stack_high);
	bg_field(b, addr, l->g_status, g->status);
	bg_field(b, addr, l->g_sched_sp, g->sched_sp);
	bg_field(b, addr, l->g_sched_pc, g->sched_pc);
	if (l->g_sched_lr.size)
		bg_field(b, addr, l->g_sched_lr, g->sched_lr);
	bg_field(b, addr, l->g_sched_ctxt, g->sched_ctxt);
	bg_field(b, addr, l->g_syscallsp, g->syscallsp);
	bg_field(b, addr, l->g_syscallpc, g->syscallpc);
	bg_field(b, addr, l->g_m, g->m);
	bg_field(b, addr, l->g_gopc, g->gopc);
	bg_field(b, addr, l->g_startpc, g->startpc);
	bg_field(b, addr, l->g_panic, g->panic);
	bg_field(b, addr, l->g_defer, g->defer);
	bg_field(b, addr, l->g_waitsince, g->waitsince);
	bg_field(b, addr, l->g_parent_goid, g->parent);
	bg_field(b, addr, l->g_lockedm, g->lockedm);
	bg_field(b, addr, l->g_labels, g->labels);
	bg_field(b, addr, l->g_waitreason, g->waitreason);
}

/* --- types with names: descriptors in the area `a`, which is the module's types --- */

/* internal/abi.Name: flags, length, bytes; its offset from the module's types. */
BG_UNUSED static int32_t bg_name(struct bg *b, struct bg_area *a, const char *name)
{
	size_t len = strlen(name);
	uint8_t head[11] = {0};
	size_t n = 1 + sonde_varint_encode(head + 1, len);
	uint64_t at = bg_put(b, a, n + len);
	memcpy(bg_at(b, at, n), head, n);
	memcpy(bg_at(b, at + n, len), name, len);
	b->module.types = a->addr;
	b->module.etypes = a->addr + a->size_bytes;
	return (int32_t)(at - a->addr);
}

/* A type of that kind and name; words are what stands behind the descriptor. */
BG_UNUSED static uint64_t bg_named_type(struct bg *b, struct bg_area *a, const char *name,
	uint8_t kind, uint64_t size_bytes, uint64_t mask, uint64_t w0, uint64_t w1, uint64_t w2)
{
	unsigned n_ptr = mask ? 64 - (unsigned)__builtin_clzll(mask) : 0;
	return bg_type(b, a,
		(struct bg_type){.size_bytes = size_bytes,
			.ptr_bytes = n_ptr * b->word,
			.kind = kind,
			.str = name ? bg_name(b, a, name) : -1,
			.gcdata = bg_bytes(b, a, &mask, 8),
			.words = {w0, w1, w2}});
}

struct bg_member {
	uint64_t type, offset;
};

/* A struct: abi.StructField is name, type, offset. */
BG_UNUSED static uint64_t bg_struct(struct bg *b, struct bg_area *a, const char *name,
	uint64_t size_bytes, uint64_t mask, const struct bg_member *members, size_t n)
{
	uint64_t fields = bg_put(b, a, n * 3 * b->word);
	for (size_t i = 0; i < n; i++) {
		bg_word(b, fields + (i * 3 + 1) * b->word, members[i].type);
		bg_word(b, fields + (i * 3 + 2) * b->word, members[i].offset);
	}
	return bg_named_type(b, a, name, SONDE_GO_KIND_STRUCT, size_bytes, mask, 0, fields, n);
}
