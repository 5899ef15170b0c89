#include "object/pclntab.h"

#include <inttypes.h>
#include <string.h>
#include "base/cursor.h"
#include "base/varint.h"

/* What differs between the formats: one row a magic. */
static const struct format {
	uint32_t magic;
	const char *version;
	uint8_t func_bytes; /* runtime._func without the pcdata and funcdata arrays; 0 = not read yet */
	uint8_t inline_call_bytes;
	bool has_start_line;
} formats[] = {
	{0xfffffff1, "1.20", 44, 16, true}, /* Go 1.20 to 1.27 */
	{0xfffffff0, "1.18", 40, 20, false}, /* Go 1.18 and 1.19 */
	{0xfffffffa, "1.16", 0, 0, false},
	{0xfffffffb, "1.2", 0, 0, false},
};

enum { FUNCTAB_ROW_BYTES = 8, MAX_INLINE_DEPTH = 1000 };

static uint32_t u32_at(const uint8_t *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof(v));
	return v;
}

/* The part of the blob at offset, up to the blob's end; its true end is not written in the table. */
static struct sonde_bytes part(const uint8_t *data, uint64_t len, uint64_t offset)
{
	return (struct sonde_bytes){data + offset, len - offset};
}

struct sonde_error *sonde_pclntab_decode(const uint8_t *data, uint64_t len, uint64_t text_addr,
	uint64_t gofunc_addr, struct sonde_bytes func_data, struct sonde_pclntab *ret)
{
	struct sonde_cursor c = sonde_cursor_over(data, len);
	uint32_t magic = sonde_cursor_u32(&c);
	uint16_t padding = sonde_cursor_u16(&c);
	uint8_t quantum = sonde_cursor_u8(&c), word_bytes = sonde_cursor_u8(&c);
	const struct format *format = NULL;
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (formats[i].magic == magic)
			format = &formats[i];
	}
	if (c.bad || !format || padding || (word_bytes != 4 && word_bytes != 8) ||
		(quantum != 1 && quantum != 2 && quantum != 4))
		return sonde_error_new(
			SONDE_BAD_DATA, "function table: unknown header 0x%08" PRIx32, magic);
	if (!format->func_bytes)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"function table: format of Go %s (this build reads Go 1.18 and later)",
			format->version);

	uint64_t n_functions = sonde_cursor_word(&c, word_bytes);
	sonde_cursor_word(&c, word_bytes); /* nfiles: a CU table has no use for it */
	sonde_cursor_word(&c, word_bytes); /* textStart until 1.25; moduledata says it as well */
	uint64_t offsets[5];
	for (int i = 0; i < 5; i++) {
		offsets[i] = sonde_cursor_word(&c, word_bytes);
		if (c.bad || offsets[i] > len)
			return sonde_error_new(
				SONDE_BAD_DATA, "function table: part %d lies outside", i);
	}
	struct sonde_pclntab t = {
		.names = part(data, len, offsets[0]),
		.cu_table = part(data, len, offsets[1]),
		.files = part(data, len, offsets[2]),
		.pc_values = part(data, len, offsets[3]),
		.functions = part(data, len, offsets[4]),
		.func_data = func_data,
		.text_addr = text_addr,
		.gofunc_addr = gofunc_addr,
		.word_bytes = word_bytes,
		.quantum = quantum,
		.func_bytes = format->func_bytes,
		.inline_call_bytes = format->inline_call_bytes,
		.has_start_line = format->has_start_line,
		.version = format->version,
	};
	/* n rows, and behind them the end of the last function. */
	if (n_functions == 0 || n_functions > UINT32_MAX ||
		n_functions * FUNCTAB_ROW_BYTES + 4 > t.functions.len)
		return sonde_error_new(SONDE_BAD_DATA,
			"function table: %" PRIu64 " functions in %" PRIu64 " bytes", n_functions,
			t.functions.len);
	t.n_functions = (uint32_t)n_functions;
	t.end_addr = text_addr + u32_at(t.functions.data + n_functions * FUNCTAB_ROW_BYTES);
	*ret = t;
	return NULL;
}

static uint64_t entry_of(const struct sonde_pclntab *t, uint32_t i)
{
	return t->text_addr + u32_at(t->functions.data + (uint64_t)i * FUNCTAB_ROW_BYTES);
}

/* The string at offset, or "?" where no NUL ends it inside. */
static const char *string_at(struct sonde_bytes b, uint64_t offset)
{
	if (offset >= b.len || !memchr(b.data + offset, 0, b.len - offset))
		return "?";
	return (const char *)b.data + offset;
}

bool sonde_pclntab_function(const struct sonde_pclntab *t, uint32_t i, struct sonde_pcfunc *ret)
{
	if (i >= t->n_functions)
		return false;
	uint32_t offset = u32_at(t->functions.data + (uint64_t)i * FUNCTAB_ROW_BYTES + 4);
	if (offset > t->functions.len)
		return false;
	struct sonde_cursor c =
		sonde_cursor_over(t->functions.data + offset, t->functions.len - offset);
	struct sonde_pcfunc f = {.index = i, .entry = entry_of(t, i)};
	sonde_cursor_u32(&c); /* entryOff: the row says it */
	uint32_t name = sonde_cursor_u32(&c);
	f.args_bytes = (int32_t)sonde_cursor_u32(&c);
	f.deferreturn = sonde_cursor_u32(&c);
	f.pcsp = sonde_cursor_u32(&c);
	f.pcfile = sonde_cursor_u32(&c);
	f.pcln = sonde_cursor_u32(&c);
	f.n_pcdata = sonde_cursor_u32(&c);
	f.cu_offset = sonde_cursor_u32(&c);
	f.start_line = t->has_start_line ? (int32_t)sonde_cursor_u32(&c) : 0;
	f.id = sonde_cursor_u8(&c);
	f.flags = sonde_cursor_u8(&c);
	sonde_cursor_u8(&c);
	f.n_funcdata = sonde_cursor_u8(&c);
	f.pcdata = sonde_cursor_bytes(&c, (uint64_t)f.n_pcdata * 4);
	f.funcdata = sonde_cursor_bytes(&c, (uint64_t)f.n_funcdata * 4);
	if (c.bad)
		return false;
	f.end = entry_of(
		t, i + 1); /* decode saw to it that a row's first half stands behind the last */
	f.name = string_at(t->names, name);
	*ret = f;
	return true;
}

bool sonde_pclntab_find(const struct sonde_pclntab *t, uint64_t pc, struct sonde_pcfunc *ret)
{
	if (pc < t->text_addr || pc >= t->end_addr || pc - t->text_addr > UINT32_MAX)
		return false;
	uint32_t low = 0, high = t->n_functions; /* entry(low) <= pc < entry(high) */
	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;
		if (entry_of(t, middle) <= pc)
			low = middle;
		else
			high = middle;
	}
	return sonde_pclntab_function(t, low, ret) && pc >= ret->entry && pc < ret->end;
}

bool sonde_pclntab_value(const struct sonde_pclntab *t, const struct sonde_pcfunc *f,
	uint32_t table, uint64_t pc, int32_t *ret)
{
	if (!table || table >= t->pc_values.len || pc < f->entry)
		return false;
	struct sonde_cursor c =
		sonde_cursor_over(t->pc_values.data + table, t->pc_values.len - table);
	uint64_t at = f->entry;
	uint32_t value = UINT32_MAX; /* starts at -1; wraps as the runtime's int32 does */
	for (bool first = true;; first = false) {
		uint64_t delta = sonde_varint_u64(&c);
		if (c.bad || (delta == 0 && !first))
			return false;
		value += (uint32_t)((delta >> 1) ^ -(delta & 1));
		uint64_t advance = sonde_varint_u64(&c);
		if (c.bad || advance > UINT32_MAX)
			return false;
		at += advance * t->quantum;
		if (pc < at) {
			*ret = (int32_t)value;
			return true;
		}
	}
}

int32_t sonde_pclntab_pcdata(const struct sonde_pclntab *t, const struct sonde_pcfunc *f,
	enum sonde_pcdata which, uint64_t pc)
{
	int32_t value = -1;
	if ((uint32_t)which < f->n_pcdata &&
		!sonde_pclntab_value(t, f, u32_at(f->pcdata + (size_t)which * 4), pc, &value))
		value = -1;
	return value;
}

bool sonde_pclntab_funcdata(const struct sonde_pclntab *t, const struct sonde_pcfunc *f,
	enum sonde_funcdata which, struct sonde_bytes *ret, uint64_t *addr)
{
	if ((uint32_t)which >= f->n_funcdata)
		return false;
	uint32_t offset = u32_at(f->funcdata + (size_t)which * 4);
	if (offset == UINT32_MAX || offset >= t->func_data.len)
		return false;
	*ret = (struct sonde_bytes){t->func_data.data + offset, t->func_data.len - offset};
	if (addr)
		*addr = t->gofunc_addr + offset;
	return true;
}

/* File name number `file` of the function's compilation unit. */
static const char *file_name(
	const struct sonde_pclntab *t, const struct sonde_pcfunc *f, int32_t file)
{
	uint64_t row = ((uint64_t)f->cu_offset + (uint32_t)file) * 4;
	if (file < 0 || row + 4 > t->cu_table.len)
		return "?";
	uint32_t offset = u32_at(t->cu_table.data + row);
	return offset == UINT32_MAX ? "?" : string_at(t->files, offset);
}

static void place_of(const struct sonde_pclntab *t, const struct sonde_pcfunc *f, uint64_t pc,
	struct sonde_pccall *call)
{
	int32_t file = -1, line = 0;
	call->file = sonde_pclntab_value(t, f, f->pcfile, pc, &file) ? file_name(t, f, file) : "?";
	call->line = sonde_pclntab_value(t, f, f->pcln, pc, &line) && line > 0 ? (uint32_t)line : 0;
}

struct inlined_call {
	uint8_t func_id;
	uint32_t name;
	int32_t parent_pc, start_line;
};

/* runtime.inlinedCall: since 1.20 {funcID, pad[3], nameOff, parentPc, startLine}, before {parent i16, ...}. */
static bool inlined_call_at(
	const struct sonde_pclntab *t, struct sonde_bytes tree, int32_t i, struct inlined_call *ret)
{
	uint64_t offset = (uint64_t)(uint32_t)i * t->inline_call_bytes;
	if (i < 0 || offset + t->inline_call_bytes > tree.len)
		return false;
	const uint8_t *p = tree.data + offset;
	if (t->has_start_line)
		*ret = (struct inlined_call){
			p[0], u32_at(p + 4), (int32_t)u32_at(p + 8), (int32_t)u32_at(p + 12)};
	else
		*ret = (struct inlined_call){p[2], u32_at(p + 12), (int32_t)u32_at(p + 16), 0};
	return true;
}

size_t sonde_pclntab_calls(const struct sonde_pclntab *t, const struct sonde_pcfunc *f, uint64_t pc,
	struct sonde_pccall *calls, size_t max)
{
	size_t n = 0;
	struct sonde_bytes tree;
	if (sonde_pclntab_funcdata(t, f, SONDE_FUNCDATA_INLINE_TREE, &tree, NULL)) {
		/* Each step goes to a pc inside the same function; the cap ends a tree that runs in a circle. */
		for (int depth = 0; depth < MAX_INLINE_DEPTH; depth++) {
			int32_t i = sonde_pclntab_pcdata(t, f, SONDE_PCDATA_INLINE_TREE_INDEX, pc);
			struct inlined_call inlined;
			if (i < 0 || !inlined_call_at(t, tree, i, &inlined))
				break;
			if (n < max) {
				calls[n] = (struct sonde_pccall){
					.function = string_at(t->names, inlined.name),
					.inlined = true,
					.func_id = inlined.func_id,
					.start_line = inlined.start_line,
				};
				place_of(t, f, pc, &calls[n]);
			}
			n++;
			if (inlined.parent_pc < 0 ||
				(uint64_t)inlined.parent_pc >= f->end - f->entry)
				break;
			pc = f->entry + (uint32_t)inlined.parent_pc;
		}
	}
	if (n < max) {
		calls[n] = (struct sonde_pccall){
			.function = f->name, .func_id = f->id, .start_line = f->start_line};
		place_of(t, f, pc, &calls[n]);
	}
	return n + 1;
}
