#include "record/internal.h"
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * Names of functions from .symtab, else .dynsym, of the files that are loaded now. A file is believed only where its
 * program headers are those in memory: one that was replaced since it was loaded names nothing.
 */

struct symbol {
	uint64_t start, end;
	const char *name; /* in the mapped file */
};

struct module {
	uint64_t low, high, bias;
	char *path;
	const uint8_t *file;
	size_t file_bytes;
	bool read;
	struct symbol *symbols;
	size_t n;
	const ElfW(Phdr) * phdrs;
	size_t n_phdrs;
};

struct symbols {
	struct module *modules;
	size_t n, room;
};

static int add_module(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct symbols *symbols = arg;
	(void)size;
	struct module m = {.low = UINT64_MAX,
		.bias = info->dlpi_addr,
		.phdrs = info->dlpi_phdr,
		.n_phdrs = info->dlpi_phnum};
	for (size_t i = 0; i < m.n_phdrs; i++) {
		const ElfW(Phdr) *p = &m.phdrs[i];
		if (p->p_type != PT_LOAD || !(p->p_flags & PF_X))
			continue;
		if (m.bias + p->p_vaddr < m.low)
			m.low = m.bias + p->p_vaddr;
		if (m.bias + p->p_vaddr + p->p_memsz > m.high)
			m.high = m.bias + p->p_vaddr + p->p_memsz;
	}
	if (m.low >= m.high)
		return 0;
	if (symbols->n == symbols->room) {
		size_t room = symbols->room ? 2 * symbols->room : 32;
		struct module *more = realloc(symbols->modules, room * sizeof(*more));
		if (!more)
			return 1;
		symbols->modules = more;
		symbols->room = room;
	}
	char exe[4096];
	const char *path = info->dlpi_name;
	if (!path || !*path) {
		/* The program itself is the first one; others without a name are the kernel's. */
		ssize_t n = symbols->n ? -1 : readlink("/proc/self/exe", exe, sizeof(exe) - 1);
		exe[n > 0 ? n : 0] = 0;
		path = n > 0 ? exe : "[vdso]";
	}
	m.path = strdup(path);
	if (!m.path)
		return 1;
	symbols->modules[symbols->n++] = m;
	return 0;
}

struct symbols *sonde_record_symbols_new(void)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	if (symbols)
		dl_iterate_phdr(add_module, symbols);
	return symbols;
}

void sonde_record_symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	for (size_t i = 0; i < symbols->n; i++) {
		struct module *m = &symbols->modules[i];
		if (m->file)
			munmap((void *)m->file, m->file_bytes);
		free(m->path);
		free(m->symbols);
	}
	free(symbols->modules);
	free(symbols);
}

static int by_start(const void *a, const void *b)
{
	const struct symbol *x = a, *y = b;
	/* Of several at one address the longest first, then by name: the same one each time. */
	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->end != y->end)
		return x->end > y->end ? -1 : 1;
	return strcmp(x->name, y->name);
}

static const void *at(const struct module *m, uint64_t offset, uint64_t bytes)
{
	return offset <= m->file_bytes && bytes <= m->file_bytes - offset ? m->file + offset : NULL;
}

static void read_table(struct module *m, const ElfW(Shdr) * table, const ElfW(Shdr) * strings)
{
	const ElfW(Sym) *syms = at(m, table->sh_offset, table->sh_size);
	const char *names = at(m, strings->sh_offset, strings->sh_size);
	size_t n = table->sh_size / sizeof(*syms);
	if (!syms || !names || !strings->sh_size || names[strings->sh_size - 1] ||
		(uintptr_t)syms % 8)
		return;
	m->symbols = malloc(n * sizeof(m->symbols[0]) + 1);
	if (!m->symbols)
		return;
	for (size_t i = 0; i < n; i++) {
		const ElfW(Sym) *s = &syms[i];
		unsigned type = ELF64_ST_TYPE(s->st_info);
		if ((type != STT_FUNC && type != STT_GNU_IFUNC) || s->st_shndx == SHN_UNDEF ||
			s->st_name >= strings->sh_size || !names[s->st_name])
			continue;
		m->symbols[m->n++] = (struct symbol){m->bias + s->st_value,
			m->bias + s->st_value + s->st_size, names + s->st_name};
	}
	qsort(m->symbols, m->n, sizeof(m->symbols[0]), by_start);
}

static void read_module(struct module *m)
{
	m->read = true;
	int fd = open(m->path, O_RDONLY | O_CLOEXEC);
	struct stat st;
	if (fd < 0)
		return;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_size >= (off_t)sizeof(ElfW(Ehdr))) {
		void *file = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		if (file != MAP_FAILED) {
			m->file = file;
			m->file_bytes = (size_t)st.st_size;
		}
	}
	close(fd);
	const ElfW(Ehdr) *e = m->file ? (const void *)m->file : NULL;
	if (!e || memcmp(e->e_ident, ELFMAG, SELFMAG) ||
		e->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
		e->e_phnum != m->n_phdrs || e->e_shentsize != sizeof(ElfW(Shdr)))
		return;
	const ElfW(Phdr) *phdrs = at(m, e->e_phoff, m->n_phdrs * sizeof(*phdrs));
	const ElfW(Shdr) *sections = at(m, e->e_shoff, (uint64_t)e->e_shnum * sizeof(*sections));
	if (!phdrs || !sections || memcmp(phdrs, m->phdrs, m->n_phdrs * sizeof(*phdrs)))
		return;
	for (unsigned type = SHT_SYMTAB;; type = SHT_DYNSYM) {
		for (unsigned i = 0; i < e->e_shnum && !m->n; i++)
			if (sections[i].sh_type == type && sections[i].sh_link < e->e_shnum)
				read_table(m, &sections[i], &sections[sections[i].sh_link]);
		if (m->n || type == SHT_DYNSYM)
			break;
	}
}

void sonde_record_symbols_find(
	struct symbols *symbols, uint64_t pc, const char **func, const char **file)
{
	*func = *file = "";
	for (size_t i = 0; symbols && i < symbols->n; i++) {
		struct module *m = &symbols->modules[i];
		if (pc < m->low || pc >= m->high)
			continue;
		*file = m->path;
		if (!m->read)
			read_module(m);
		/* The last one that begins at or before pc. */
		size_t low = 0, high = m->n;
		while (low < high) {
			size_t middle = low + (high - low) / 2;
			if (m->symbols[middle].start <= pc)
				low = middle + 1;
			else
				high = middle;
		}
		if (!low)
			return;
		const struct symbol *s = &m->symbols[low - 1];
		while (s > m->symbols && s[-1].start == s->start)
			s--;
		if (pc < s->end || s->end == s->start)
			*func = s->name;
		return;
	}
}
