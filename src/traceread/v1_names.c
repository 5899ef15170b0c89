#include "traceread/v1.h"

#include <string.h>
#include "base/cursor.h"
#include "base/varint.h"
#include "object/elf.h"
#include "object/pclntab.h"

/*
 * Traces of Go 1.5 and 1.6 have return addresses only. The executables of that time have the function table of Go 1.2
 * (until 1.15): debug/gosym of Go 1.15, "Go 1.2 Runtime Symbol Information". What is newer is object/pclntab's.
 */
enum { GO12_MAGIC = 0xfffffffb, GO12_HEADER_BYTES = 8 };

struct go12 {
	const uint8_t *data;
	uint64_t len, n_functions, files_offset;
	unsigned word_bytes, quantum;
	bool big_endian;
};

static struct sonde_cursor at(const struct go12 *t, uint64_t offset)
{
	struct sonde_cursor c = sonde_cursor_over(t->data, t->len);
	c.big_endian = t->big_endian;
	sonde_cursor_seek(&c, offset);
	return c;
}

static bool go12_decode(struct go12 *t, const uint8_t *data, uint64_t len, bool big_endian)
{
	*t = (struct go12){.data = data, .len = len, .big_endian = big_endian};
	struct sonde_cursor c = at(t, 0);
	uint32_t magic = sonde_cursor_u32(&c);
	sonde_cursor_skip(&c, 2);
	t->quantum = sonde_cursor_u8(&c);
	t->word_bytes = sonde_cursor_u8(&c);
	t->n_functions = sonde_cursor_word(&c, t->word_bytes);
	if (c.bad || magic != GO12_MAGIC || t->word_bytes < 4 || !t->quantum ||
		t->n_functions > sonde_cursor_left(&c) / (2 * t->word_bytes))
		return false;
	sonde_cursor_skip(&c, (2 * t->n_functions + 1) * t->word_bytes);
	t->files_offset = sonde_cursor_u32(&c);
	return !c.bad;
}

static uint64_t entry(const struct go12 *t, uint64_t i)
{
	struct sonde_cursor c = at(t, GO12_HEADER_BYTES + (uint64_t)t->word_bytes * (1 + 2 * i));
	return sonde_cursor_word(&c, t->word_bytes);
}

/* The value at pc of a pc-value table of a function that begins at `from`; -1: none. */
static int32_t value(const struct go12 *t, uint32_t table, uint64_t from, uint64_t pc)
{
	struct sonde_cursor c = at(t, table);
	int32_t v = -1;
	uint64_t reached = from;
	for (bool first = true; table && !c.bad; first = false) {
		int32_t step = sonde_varint_zigzag32(&c);
		if (!step && !first)
			break;
		v = (int32_t)((uint32_t)v + (uint32_t)step);
		reached += sonde_varint_u64(&c) * t->quantum;
		if (pc < reached)
			return c.bad ? -1 : v;
	}
	return -1;
}

static const char *text(const struct go12 *t, uint64_t offset)
{
	struct sonde_cursor c = at(t, offset);
	const char *s = sonde_cursor_string(&c);
	return s ? s : "";
}

static bool go12_find(const struct go12 *t, uint64_t pc, struct sonde_pccall *call)
{
	uint64_t low = 0, n = t->n_functions;
	if (!n || pc < entry(t, 0) || pc >= entry(t, n))
		return false;
	while (n > 1) {
		uint64_t half = n / 2;
		if (entry(t, low + half) <= pc)
			low += half;
		n -= half;
	}
	struct sonde_cursor c = at(t, GO12_HEADER_BYTES + (uint64_t)t->word_bytes * (2 + 2 * low));
	uint64_t from = entry(t, low);
	c = at(t, sonde_cursor_word(&c, t->word_bytes));
	sonde_cursor_skip(&c, t->word_bytes);
	uint32_t name = sonde_cursor_u32(&c);
	sonde_cursor_skip(&c, 12); /* args, frame or deferreturn, pcsp */
	uint32_t pcfile = sonde_cursor_u32(&c), pcln = sonde_cursor_u32(&c);
	if (c.bad)
		return false;
	int32_t file = value(t, pcfile, from, pc), line = value(t, pcln, from, pc);
	*call = (struct sonde_pccall){.function = text(t, name), .file = "", .line = 0};
	if (file > 0) {
		struct sonde_cursor f = at(t, t->files_offset + 4 * (uint64_t)(uint32_t)file);
		uint32_t offset = sonde_cursor_u32(&f);
		call->file = f.bad ? "" : text(t, offset);
	}
	call->line = line > 0 ? (uint32_t)line : 0;
	return true;
}

/* --- names of a trace --- */

struct tables {
	struct go12 go12;
	struct sonde_pclntab pclntab;
	bool is_go12;
};

static struct sonde_error *open_tables(struct tables *t, struct sonde_elf *elf, const char *exe)
{
	const struct sonde_elf_section *section = sonde_elf_section_find(elf, ".gopclntab"), *code;
	const uint8_t *data;
	uint64_t len;
	if (!section)
		section = sonde_elf_section_find(elf, ".data.rel.ro.gopclntab");
	if (!section)
		return sonde_error_new(SONDE_NOT_FOUND, "%s: no function table of Go", exe);
	SONDE_TRY(sonde_elf_section_read(elf, section, &data, &len));
	t->is_go12 = go12_decode(&t->go12, data, len, elf->big_endian);
	if (t->is_go12)
		return NULL;
	code = sonde_elf_section_find(elf, ".text");
	return sonde_error_wrap(sonde_pclntab_decode(data, len, code ? code->addr : 0, 0,
					(struct sonde_bytes){0}, &t->pclntab),
		"%s", exe);
}

static struct sonde_error *collect(
	const struct sonde_trace_v1_index *index, struct sonde_trace_v1_names *names)
{
	const struct sonde_trace_v1_format *f = &index->format;
	sonde_vec_foreach (e, &index->stacks.entries) {
		uint64_t id, n;
		const uint8_t *p;
		if (!sonde_trace_v1_decode_stack(f, f->data + e->offset, f->end, &id, &n, &p))
			continue;
		for (uint64_t i = 0; i < n && p; i++) {
			struct sonde_trace_v1_name name = {0};
			p = sonde_trace_v1_varint(p, f->end, &name.pc);
			if (p && !sonde_trace_v1_names_push(names, name))
				return &sonde_enomem;
		}
	}
	sonde_map_foreach (i, &index->entry_pcs) {
		struct sonde_trace_v1_name name = {.pc = index->entry_pcs.keys[i]};
		if (!sonde_trace_v1_names_push(names, name))
			return &sonde_enomem;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	const struct sonde_trace_v1_name *x = a, *y = b;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

static struct sonde_error *name_one(
	struct sonde_trace_reader *r, const struct tables *t, struct sonde_trace_v1_name *name)
{
	struct sonde_pccall call = {0};
	struct sonde_pcfunc func;
	uint64_t pc = name->pc - 1; /* they are return addresses */
	if (t->is_go12) {
		if (!go12_find(&t->go12, pc, &call))
			return NULL;
	} else if (sonde_pclntab_find(&t->pclntab, pc, &func)) {
		struct sonde_pccall calls[1];
		sonde_pclntab_calls(&t->pclntab, &func, pc, calls, 1);
		call = calls[0];
	} else {
		return NULL;
	}
	name->func = sonde_trace_intern_text(r, call.function, strlen(call.function));
	name->file = sonde_trace_intern_text(r, call.file, strlen(call.file));
	name->line = call.line;
	return name->func == UINT32_MAX || name->file == UINT32_MAX ? &sonde_enomem : NULL;
}

struct sonde_error *sonde_trace_v1_names_make(struct sonde_trace_reader *r,
	const struct sonde_trace_v1_index *index, const char *exe, struct sonde_trace_v1_names *ret)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_trace_v1_names) struct sonde_trace_v1_names names = {0};
	struct tables tables = {0};
	SONDE_TRY(sonde_elf_open(exe, &elf));
	SONDE_TRY(open_tables(&tables, elf, exe));
	SONDE_TRY(collect(index, &names));
	sonde_vec_sort(&names, compare);
	size_t n = 0;
	for (size_t i = 0; i < names.n; i++)
		if (!n || names.items[n - 1].pc != names.items[i].pc)
			names.items[n++] = names.items[i];
	names.n = n;
	sonde_vec_foreach (name, &names)
		SONDE_TRY(name_one(r, &tables, name));
	*ret = names;
	names = (struct sonde_trace_v1_names){0};
	return NULL;
}
