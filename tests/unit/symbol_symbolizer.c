#include "symbol/symbolizer.h"

#include <dlfcn.h>
#include <search.h>
#include <sys/stat.h>
#include "object/symtab.h"
#include "symbol/demangle.h"

#include "tap.h"

static const char *program; /* a C++ program with debug information; NULL: no compiler */

static void demangled(void)
{
	sonde_cleanup(sonde_demangler) struct sonde_demangler *d = sonde_demangler_new();
	REQUIRE(d);
	CHECK(!sonde_demangle(d, "main"));
	CHECK(!sonde_demangle(d, ""));
	CHECK(!sonde_demangle(d, "_"));
	CHECK(!sonde_demangle(d, "_Zgarbage"));
	CHECK(!sonde_demangle(d, "_RNvC5crate4main"));
	static char long_name[8192];
	memset(long_name, 'P', sizeof(long_name) - 1);
	memcpy(long_name, "_Z1f", 4);
	CHECK(!sonde_demangle(d, long_name));
	if (!dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NODELETE))
		SKIP("no libstdc++");
	static const char *const names[][2] = {
		{"_ZN5space6holderIlE4lookEv", "space::holder<long>::look()"},
		{"_ZL9templatesl", "templates(long)"},
		{"_ZN3foo3barEv.cold", "foo::bar() [clone .cold]"},
		{"_ZN4core9panicking5panic17h0123456789abcdefE", "core::panicking::panic"},
		{"_ZN62_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..fmt..Debug$GT$"
		 "3fmt17h0123456789abcdefE",
			NULL},
		{"_ZN54_$LT$a..V$LT$T$GT$$u20$as$u20$core..fmt..Debug$GT$3fm"
		 "t3fmt17h0123456789abcdefE",
			"<a::V<T> as core::fmt::Debug>3fmt::fmt"},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(names); i++) {
		const char *got = sonde_demangle(d, names[i][0]);
		if (names[i][1])
			CHECK_STR(got, names[i][1]);
		/* Asked again: the same. */
		CHECK(sonde_demangle(d, names[i][0]) == got);
	}
}

/* Calls of addr as addr2line -i -f prints them: "function\nfile:line\n" each. */
static void print_calls(
	struct sonde_symbolizer *s, struct sonde_elf *elf, uint64_t addr, char *to, size_t len)
{
	struct sonde_symbol_call calls[64];
	size_t n = sonde_symbolizer_calls(s, elf, addr, calls, 64), at = 0;
	for (size_t i = 0; i < n && i < 64; i++) {
		const struct sonde_symbol_call *c = &calls[i];
		const char *name = c->linkage_name ? c->linkage_name
			: c->function              ? c->function
						   : "??";
		const char *slash = c->file ? strrchr(c->file, '/') : NULL;
		/* A function of one file, "_ZL7catchesv": addr2line has its name in DWARF where calls are inlined into it. */
		int name_len = (int)strlen(name);
		if (i > 0 && !strncmp(name, "_ZL", 3)) {
			char *end;
			name_len = (int)strtoul(name + 3, &end, 10);
			name = end;
		}
		at += (size_t)snprintf(to + at, len - at, "%.*s %s:%u\n", name_len, name,
			slash             ? slash + 1
				: c->file ? c->file
					  : "??",
			c->line);
		if (at >= len)
			return;
	}
}

static bool read_line(FILE *f, char *to, size_t len)
{
	if (!fgets(to, (int)len, f))
		return false;
	to[strcspn(to, "\n")] = 0;
	return true;
}

/* Every 37th byte of the code, against addr2line. */
static void as_addr2line(void)
{
	if (!program || system("addr2line --version >/dev/null 2>&1") != 0)
		SKIP("no C++ program, or no addr2line");
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_symbolizer) struct sonde_symbolizer *s = NULL;
	REQUIRE_OK(sonde_elf_open(program, &elf));
	REQUIRE_OK(sonde_symbolizer_new(NULL, NULL, &s));
	const struct sonde_elf_section *text = sonde_elf_section_find(elf, ".text");
	REQUIRE(text);
	unsigned n = 0, n_inlined = 0, n_different = 0;
	for (uint64_t addr = text->addr; addr < text->addr + text->size_bytes; addr += 37) {
		char command[4096], want[8192] = "", got[8192] = "", name[4096], place[4096];
		snprintf(command, sizeof(command), "addr2line -i -f -e '%s' 0x%" PRIx64, program,
			addr);
		FILE *f = popen(command, "r");
		REQUIRE(f);
		size_t at = 0;
		unsigned depth = 0;
		bool known = false;
		while (at < sizeof(want) && read_line(f, name, sizeof(name)) &&
			read_line(f, place, sizeof(place))) {
			place[strcspn(place, " ")] = 0; /* (discriminator 3) */
			char *colon = strrchr(place, ':');
			char *slash = strrchr(place, '/');
			known |= colon && colon[1] != '?' && colon[1] != '0';
			at += (size_t)snprintf(want + at, sizeof(want) - at, "%s %s\n", name,
				slash ? slash + 1 : place);
			depth++;
		}
		pclose(f);
		if (!known) /* start-up code: addr2line takes a neighbour's name */
			continue;
		print_calls(s, elf, addr, got, sizeof(got));
		if (!strncmp(got, "?? ", 3)) /* padding behind a function, which is none of it */
			continue;
		n++;
		n_inlined += depth > 1;
		if (strcmp(got, want) && n_different++ < 5)
			printf("# 0x%" PRIx64 ": %s# addr2line: %s", addr, got, want);
	}
	printf("# %u addresses, %u in inlined calls, %u differ\n", n, n_inlined, n_different);
	CHECK_EQ(n_different, 0);
	CHECK(n > 20);
}

/* A stripped library has its exported names; what lies between them has none. */
static void exported_names(void)
{
	Dl_info info;
	if (!dladdr((void *)(uintptr_t)hcreate, &info) || !info.dli_fname)
		SKIP("the C library is not shared");
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_symbolizer) struct sonde_symbolizer *s = NULL;
	const struct sonde_debugfile_options none = {
		.debug_dirs = "/nowhere", .no_debuginfod = true};
	REQUIRE_OK(sonde_elf_open(info.dli_fname, &elf));
	REQUIRE_OK(sonde_symbolizer_new(&none, NULL, &s));
	struct sonde_symbol_call call[1];
	uint64_t addr = (uint64_t)(uintptr_t)info.dli_saddr - (uint64_t)(uintptr_t)info.dli_fbase;
	CHECK_EQ(sonde_symbolizer_calls(s, elf, addr + 1, call, 1), 1);
	CHECK_STR(call[0].function, "hcreate");
	CHECK_EQ(call[0].offset, 1);
	CHECK(!call[0].linkage_name);
	CHECK_EQ(sonde_symbolizer_calls(s, elf, 1, call, 1), 1);
	CHECK(!call[0].function && !call[0].file && !call[0].line);
	CHECK_EQ(sonde_symbolizer_calls(s, elf, addr, NULL, 0), 1);
}

int main(int argc, char **argv)
{
	program = argc > 1 ? argv[1] : NULL;
	RUN(demangled);
	RUN(as_addr2line);
	RUN(exported_names);
	return tap_end();
}
