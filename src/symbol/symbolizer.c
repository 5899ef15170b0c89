#include "symbol/symbolizer.h"

#include <stdlib.h>
#include <string.h>
#include "base/vec.h"
#include "object/lines.h"
#include "object/symtab.h"
#include "symbol/demangle.h"

enum { MAX_CALLS = 64 };

struct symbol_file {
	struct sonde_elf *elf; /* borrowed: the key */
	struct sonde_elf *debug; /* NULL = none */
	struct sonde_symtab *symbols, *debug_symbols; /* NULL = unreadable, none */
	struct sonde_dwarf *dwarf; /* NULL = none */
	struct sonde_lines *lines;
};
SONDE_DEFINE_VEC(symbol_file_vec, struct symbol_file)

struct sonde_symbolizer {
	struct sonde_debugfile_options debug;
	struct sonde_notes *notes;
	struct symbol_file_vec files;
	struct sonde_demangler *demangler;
};

struct sonde_error *sonde_symbolizer_new(const struct sonde_debugfile_options *debug,
	struct sonde_notes *notes, struct sonde_symbolizer **ret)
{
	sonde_cleanup(sonde_symbolizer) struct sonde_symbolizer *s =
		sonde_new(struct sonde_symbolizer);
	if (!s || !(s->demangler = sonde_demangler_new()))
		return &sonde_enomem;
	if (debug)
		s->debug = *debug;
	s->notes = notes;
	*ret = sonde_take(s);
	return NULL;
}

void sonde_symbolizer_free(struct sonde_symbolizer *s)
{
	if (!s)
		return;
	sonde_vec_foreach (f, &s->files) {
		sonde_lines_free(f->lines);
		sonde_dwarf_free(f->dwarf);
		sonde_symtab_free(f->debug_symbols);
		sonde_symtab_free(f->symbols);
		sonde_elf_free(f->debug);
	}
	symbol_file_vec_deinit(&s->files);
	sonde_demangler_free(s->demangler);
	free(s);
}

/* A failure only costs names; it is noted where it is no plain absence. */
static void note(struct sonde_symbolizer *s, struct sonde_error *err)
{
	if (err && err->code != SONDE_NOT_FOUND)
		sonde_notes_add(s->notes, "symbols not readable", 0, "%s", err->message);
	sonde_error_free(err);
}

static void read_file(struct sonde_symbolizer *s, struct symbol_file *f)
{
	note(s, sonde_symtab_open(f->elf, &f->symbols));
	const char *path = sonde_elf_path(f->elf);
	struct sonde_error *err = *path ? sonde_dwarf_open(path, s->notes, &f->dwarf)
					: sonde_dwarf_open_image(f->elf->data, f->elf->size_bytes,
						  "loaded image", s->notes, &f->dwarf);
	if (err && err->code == SONDE_NOT_FOUND) {
		sonde_error_free(err);
		err = sonde_debugfile_open(f->elf, &s->debug, &f->debug);
		if (!err)
			err = sonde_dwarf_open(sonde_elf_path(f->debug), s->notes, &f->dwarf);
	}
	note(s, err);
	if (f->debug)
		note(s, sonde_symtab_open(f->debug, &f->debug_symbols));
	if (f->dwarf)
		note(s, sonde_lines_new(f->dwarf, &f->lines));
}

static struct symbol_file *file_of(struct sonde_symbolizer *s, struct sonde_elf *elf)
{
	sonde_vec_foreach (f, &s->files) {
		if (f->elf == elf)
			return f;
	}
	struct symbol_file *f = symbol_file_vec_add(&s->files);
	if (f) {
		f->elf = elf;
		read_file(s, f);
	}
	return f;
}

static const char *text_or_null(const char *s)
{
	return s && *s ? s : NULL;
}

/* The debug file's symbols are complete; those of the file itself may be the exported ones alone. */
static const struct sonde_symbol *nearest(struct symbol_file *f, uint64_t addr)
{
	const struct sonde_symbol *symbol =
		f->debug_symbols ? sonde_symtab_nearest(f->debug_symbols, addr) : NULL;
	return symbol || !f->symbols ? symbol : sonde_symtab_nearest(f->symbols, addr);
}

/* The names of a call; name is DWARF's (no namespace, no parameters) or NULL, linkage NULL where there is none. */
static void name_call(struct sonde_symbolizer *s, struct sonde_symbol_call *call, const char *name,
	const char *linkage)
{
	const char *readable = linkage ? sonde_demangle(s->demangler, linkage) : NULL;
	call->function = readable ? readable : name ? name : linkage;
	/* "raise" for gsignal is another name of the function, not its mangled one. */
	bool mangled = linkage && linkage[0] == '_' && (linkage[1] == 'Z' || linkage[1] == 'R');
	call->linkage_name = mangled && strcmp(linkage, call->function) ? linkage : NULL;
}

size_t sonde_symbolizer_calls(struct sonde_symbolizer *s, struct sonde_elf *elf, uint64_t addr,
	struct sonde_symbol_call *calls, size_t max)
{
	struct symbol_file *f = file_of(s, elf);
	size_t n = 0;
	if (f && f->lines) {
		struct sonde_line_frame frames[MAX_CALLS];
		n = sonde_lines_frames(f->lines, addr, frames, MAX_CALLS);
		for (size_t i = 0; i < n && i < max && i < MAX_CALLS; i++) {
			calls[i] = (struct sonde_symbol_call){
				.file = text_or_null(frames[i].file),
				.line = frames[i].line,
				.inlined = frames[i].is_inlined,
			};
			name_call(s, &calls[i], text_or_null(frames[i].function),
				text_or_null(frames[i].linkage_name));
		}
	}
	if (n > MAX_CALLS)
		n = MAX_CALLS;
	if (n == 0) {
		n = 1;
		if (max)
			calls[0] = (struct sonde_symbol_call){0};
	}
	const struct sonde_symbol *symbol = f ? nearest(f, addr) : NULL;
	if (symbol && n <= max) {
		calls[n - 1].offset = addr - symbol->addr;
		/* gcc gives functions of one file no linkage name. */
		if (!calls[n - 1].function || !calls[n - 1].linkage_name)
			name_call(s, &calls[n - 1], calls[n - 1].function, symbol->name);
	}
	return n;
}
