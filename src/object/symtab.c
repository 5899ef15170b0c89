#include "object/symtab.h"

#include <string.h>
#include "base/cursor.h"
#include "base/vec.h"

SONDE_DEFINE_VEC(symbol_vec, struct sonde_symbol)

struct sonde_symtab {
	struct symbol_vec symbols; /* as read, until by_addr sorts them */
	uint64_t *max_end; /* NULL = not sorted yet; [i]: the furthest end of symbols 0 .. i */
	uint32_t *slots; /* by name: index + 1, 0 = free; NULL = not made yet */
	size_t n_slots; /* a power of two */
};

static bool parse_symbol(struct sonde_cursor *c, unsigned word_bytes, uint32_t *name,
	struct sonde_symbol *s, uint16_t *section)
{
	uint8_t info;
	*name = sonde_cursor_u32(c);
	if (word_bytes == 8) {
		info = sonde_cursor_u8(c);
		sonde_cursor_u8(c); /* st_other */
		*section = sonde_cursor_u16(c);
		s->addr = sonde_cursor_u64(c);
		s->size_bytes = sonde_cursor_u64(c);
	} else {
		s->addr = sonde_cursor_u32(c);
		s->size_bytes = sonde_cursor_u32(c);
		info = sonde_cursor_u8(c);
		sonde_cursor_u8(c);
		*section = sonde_cursor_u16(c);
	}
	s->type = info & 15;
	s->binding = info >> 4;
	return !c->bad;
}

/* Damage in one table costs that table only. */
static struct sonde_error *read_table(
	struct sonde_symtab *table, struct sonde_elf *elf, const struct sonde_elf_section *section)
{
	const uint8_t *data, *text;
	uint64_t len, text_len;
	if (!section->link || section->link >= elf->n_sections)
		return NULL;
	struct sonde_error *err = sonde_elf_section_read(elf, section, &data, &len);
	if (!err)
		err = sonde_elf_section_read(elf, &elf->sections[section->link], &text, &text_len);
	if (err) {
		if (err->code == SONDE_NO_MEMORY)
			return err;
		sonde_error_free(err);
		return NULL;
	}
	size_t entry = elf->word_bytes == 8 ? 24 : 16, n = len / entry;
	struct sonde_cursor c = sonde_cursor_over(data, len);
	c.big_endian = elf->big_endian;
	if (n > UINT32_MAX / 4 || !symbol_vec_reserve(&table->symbols, n))
		return &sonde_enomem;
	for (size_t i = 0; i < n; i++) {
		struct sonde_symbol s = {0};
		uint32_t name;
		uint16_t in;
		if (!parse_symbol(&c, elf->word_bytes, &name, &s, &in))
			break;
		if (in == SHN_UNDEF || in == SHN_ABS || s.type == STT_SECTION ||
			s.type == STT_FILE || s.type == STT_TLS)
			continue;
		struct sonde_cursor at = sonde_cursor_over(text, text_len);
		sonde_cursor_seek(&at, name);
		s.name = sonde_cursor_string(&at);
		if (s.name && s.name[0])
			symbol_vec_push(&table->symbols, s);
	}
	return NULL;
}

struct sonde_error *sonde_symtab_open(struct sonde_elf *elf, struct sonde_symtab **ret)
{
	sonde_cleanup(sonde_symtab) struct sonde_symtab *table = sonde_new(struct sonde_symtab);
	if (!table)
		return &sonde_enomem;
	for (size_t i = 0; i < elf->n_sections; i++) {
		uint32_t type = elf->sections[i].type;
		if (type == SHT_SYMTAB || type == SHT_DYNSYM)
			SONDE_TRY(read_table(table, elf, &elf->sections[i]));
	}
	*ret = sonde_take(table);
	return NULL;
}

void sonde_symtab_free(struct sonde_symtab *table)
{
	if (!table)
		return;
	symbol_vec_deinit(&table->symbols);
	free(table->max_end);
	free(table->slots);
	free(table);
}

size_t sonde_symtab_count(const struct sonde_symtab *table)
{
	return table->symbols.n;
}

/* At one address the best comes last: sized before sizeless, global before local. */
static int by_addr(const void *a, const void *b)
{
	const struct sonde_symbol *x = a, *y = b;
	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (!x->size_bytes != !y->size_bytes)
		return x->size_bytes ? 1 : -1;
	if ((x->binding == STB_LOCAL) != (y->binding == STB_LOCAL))
		return x->binding == STB_LOCAL ? -1 : 1;
	return strcmp(y->name, x->name);
}

static bool sort(struct sonde_symtab *table)
{
	if (table->max_end)
		return true;
	struct symbol_vec *v = &table->symbols;
	table->max_end = sonde_new_array(uint64_t, v->n);
	if (!table->max_end)
		return false;
	/* The index by name holds positions. */
	free(table->slots);
	table->slots = NULL;
	if (v->n)
		qsort(v->items, v->n, sizeof(*v->items), by_addr);
	uint64_t furthest = 0;
	for (size_t i = 0; i < v->n; i++) {
		uint64_t end;
		if (__builtin_add_overflow(v->items[i].addr, v->items[i].size_bytes, &end) ||
			!v->items[i].size_bytes)
			end = v->items[i].size_bytes ? UINT64_MAX : 0;
		furthest = sonde_max(furthest, end);
		table->max_end[i] = furthest;
	}
	return true;
}

const struct sonde_symbol *sonde_symtab_nearest(struct sonde_symtab *table, uint64_t addr)
{
	if (!sort(table))
		return NULL;
	size_t lo = 0, hi = table->symbols.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (table->symbols.items[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	/* A sizeless symbol counts where no symbol with a size lies between it and addr. */
	bool sized = false;
	while (lo--) {
		const struct sonde_symbol *s = &table->symbols.items[lo];
		if (!s->size_bytes && !sized)
			return s;
		if (s->size_bytes && addr - s->addr < s->size_bytes)
			return s;
		sized |= s->size_bytes;
		if (sized && table->max_end[lo] <= addr)
			break;
	}
	return NULL;
}

static size_t hash(const char *s)
{
	size_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
	for (; *s; s++)
		h = (h ^ (uint8_t)*s) * UINT64_C(0x100000001b3);
	return h ^ h >> 32;
}

static bool index_names(struct sonde_symtab *table)
{
	if (table->slots)
		return true;
	const struct symbol_vec *v = &table->symbols;
	size_t n_slots = 16;
	while (n_slots < v->n * 2)
		n_slots *= 2;
	table->slots = sonde_new_array(uint32_t, n_slots);
	if (!table->slots)
		return false;
	table->n_slots = n_slots;
	for (size_t i = 0; i < v->n; i++) {
		size_t k = hash(v->items[i].name) & (n_slots - 1);
		for (; table->slots[k]; k = (k + 1) & (n_slots - 1))
			if (!strcmp(v->items[table->slots[k] - 1].name, v->items[i].name))
				break;
		if (!table->slots[k] ||
			(v->items[table->slots[k] - 1].binding == STB_LOCAL &&
				v->items[i].binding != STB_LOCAL))
			table->slots[k] = (uint32_t)i + 1;
	}
	return true;
}

const struct sonde_symbol *sonde_symtab_find(struct sonde_symtab *table, const char *name)
{
	if (!index_names(table))
		return NULL;
	size_t k = hash(name) & (table->n_slots - 1);
	for (; table->slots[k]; k = (k + 1) & (table->n_slots - 1)) {
		const struct sonde_symbol *s = &table->symbols.items[table->slots[k] - 1];
		if (!strcmp(s->name, name))
			return s;
	}
	return NULL;
}

const struct sonde_symbol *sonde_symtab_at(struct sonde_symtab *table, size_t i)
{
	return sort(table) && i < table->symbols.n ? &table->symbols.items[i] : NULL;
}
