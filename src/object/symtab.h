/* src/object/symtab.h: the symbols of .symtab and .dynsym: by name, and the nearest by address. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/mem.h"
#include "object/elf.h"

struct sonde_symbol {
	const char *name; /* borrowed from the elf */
	uint64_t addr, size_bytes; /* link-time address */
	uint8_t type, binding; /* STT_*, STB_* */
};

struct sonde_symtab;

/*
 * Index elf, which is borrowed and must outlive the table. A file without symbols gives an empty table. The two orders
 * (by address, by name) are made at the first look-up that needs them: one thread at a time until both were used.
 */
struct sonde_error *sonde_symtab_open(struct sonde_elf *elf, struct sonde_symtab **ret) SONDE_CHECK;
void sonde_symtab_free(struct sonde_symtab *table);
SONDE_DEFINE_CLEANUP(sonde_symtab)

size_t sonde_symtab_count(const struct sonde_symtab *table);

/* The defined symbol of that name (a global one before a local one), or NULL. */
const struct sonde_symbol *sonde_symtab_find(struct sonde_symtab *table, const char *name);

/*
 * The function or object that holds addr: the last symbol at or below it whose size covers it, or that has no size. NULL
 * where none does. Sections, files and TLS symbols do not take part.
 */
const struct sonde_symbol *sonde_symtab_nearest(struct sonde_symtab *table, uint64_t addr);

/* The i-th in address order, or NULL. */
const struct sonde_symbol *sonde_symtab_at(struct sonde_symtab *table, size_t i);
