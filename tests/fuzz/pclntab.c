/*
 * A Go function table: decoded, every function of it asked for, and in each function all pc-value tables, funcdata and
 * inlined calls at its first, last and some middle pcs. Input: {u16 n, n bytes of funcdata, the table}.
 */
#include <stdlib.h>
#include <string.h>
#include "object/pclntab.h"

enum { MAX_FUNCTIONS = 64, MAX_PCDATA = 8, MAX_FUNCDATA = 16, MAX_CALLS = 8 };

static volatile uint64_t sink;

static void use_text(const char *s)
{
	sink += s ? strlen(s) : 0;
}

static void use_pc(const struct sonde_pclntab *t, const struct sonde_pcfunc *f, uint64_t pc)
{
	int32_t value;
	const uint32_t tables[] = {f->pcsp, f->pcfile, f->pcln, 1};
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++)
		sink += sonde_pclntab_value(t, f, tables[i], pc, &value);
	for (unsigned i = 0; i < MAX_PCDATA; i++)
		sink += (uint64_t)sonde_pclntab_pcdata(t, f, (enum sonde_pcdata)i, pc);
	struct sonde_pccall calls[MAX_CALLS];
	size_t n = sonde_pclntab_calls(t, f, pc, calls, MAX_CALLS);
	if (!n)
		abort();
	for (size_t i = 0; i < n && i < MAX_CALLS; i++) {
		use_text(calls[i].function);
		use_text(calls[i].file);
		if (calls[i].inlined != (i + 1 < n))
			abort();
	}
}

static void use_function(const struct sonde_pclntab *t, const struct sonde_pcfunc *f)
{
	use_text(f->name);
	for (unsigned i = 0; i < MAX_FUNCDATA; i++) {
		struct sonde_bytes b;
		uint64_t addr;
		if (sonde_pclntab_funcdata(t, f, (enum sonde_funcdata)i, &b, &addr))
			sink += b.data[0] + b.data[b.len - 1] + addr;
	}
	use_pc(t, f, f->entry);
	use_pc(t, f, f->end - 1);
	use_pc(t, f, f->end);
	use_pc(t, f, f->entry + (f->end - f->entry) / 2);
	use_pc(t, f, f->entry - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint16_t n_data = 0;
	if (size < 2)
		return 0;
	memcpy(&n_data, data, 2);
	data += 2;
	size -= 2;
	if (n_data > size)
		n_data = (uint16_t)size;
	/* Apart on the heap, so that a read past either end is seen. */
	uint8_t *func_data = malloc(n_data ? n_data : 1), *table = malloc(size - n_data + 1);
	if (!func_data || !table)
		abort();
	memcpy(func_data, data, n_data);
	memcpy(table, data + n_data, size - n_data);
	struct sonde_pclntab t;
	struct sonde_error *err = sonde_pclntab_decode(table, size - n_data, 0x401000, 0x500000,
		(struct sonde_bytes){func_data, n_data}, &t);
	for (uint32_t i = 0; !err && i < t.n_functions && i < MAX_FUNCTIONS; i++) {
		struct sonde_pcfunc f, found;
		if (!sonde_pclntab_function(&t, i, &f))
			continue;
		use_function(&t, &f);
		if (sonde_pclntab_find(&t, f.entry, &found) &&
			(f.entry < found.entry || f.entry >= found.end))
			abort();
		sonde_pclntab_find(&t, f.end - 1, &found);
	}
	struct sonde_pcfunc f;
	if (!err && sonde_pclntab_find(&t, t.end_addr, &f))
		abort();
	sonde_error_free(err);
	free(table);
	free(func_data);
	return 0;
}
