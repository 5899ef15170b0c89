/* An ELF file with Go build info, and the blob by itself; the symbols and sections of the file on the way. */
#include <stdint.h>
#include "object/buildid.h"
#include "object/gobuildinfo.h"
#include "object/symtab.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_blob(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct sonde_elf *blob = ctx;
	if (addr > blob->size_bytes || len > blob->size_bytes - addr)
		return false;
	memcpy(to, blob->data + addr, len);
	return true;
}

static void look(struct sonde_gobuildinfo *info)
{
	if (!info)
		return;
	sonde_gobuildinfo_setting(info, "GOARCH");
	for (size_t i = 0; i < info->n_deps; i++)
		if (!info->deps[i].path || !info->deps[i].version || !info->deps[i].sum)
			__builtin_trap();
	sonde_gobuildinfo_free(info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sonde_gobuildinfo *info = NULL;
	struct sonde_elf memory = {.data = data, .size_bytes = size};
	const struct sonde_gobuildinfo_reader reader = {read_blob, &memory};
	sonde_error_free(sonde_gobuildinfo_decode(data, size, &reader, &info));
	look(info);

	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_error_free(sonde_elf_open_bytes(data, size, "input", &elf));
	if (!elf)
		return 0;
	info = NULL;
	sonde_error_free(sonde_gobuildinfo_of_elf(elf, &info));
	look(info);
	for (size_t i = 0; i < elf->n_sections && i < 64; i++) {
		const uint8_t *p;
		uint64_t len;
		/* Bounded promises only: a gigabyte of zeros is legal, and slow here. */
		if (elf->sections[i].flags & SHF_COMPRESSED && size > 4096)
			continue;
		sonde_error_free(sonde_elf_section_read(elf, &elf->sections[i], &p, &len));
	}
	sonde_cleanup(sonde_symtab) struct sonde_symtab *table = NULL;
	sonde_error_free(sonde_symtab_open(elf, &table));
	if (!table)
		return 0;
	for (size_t i = 0; i < sonde_symtab_count(table) && i < 100; i++) {
		const struct sonde_symbol *s = sonde_symtab_at(table, i);
		if (!s || !sonde_symtab_find(table, s->name))
			__builtin_trap();
		sonde_symtab_nearest(table, s->addr + s->size_bytes / 2);
	}
	return 0;
}
