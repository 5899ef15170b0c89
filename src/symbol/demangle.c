#include "symbol/demangle.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdbool.h>
#include <string.h>
#include "base/arena.h"

/* Itanium C++ ABI, section 3.4: __cxa_demangle(). */
typedef char *demangle_fn(const char *name, char *buffer, size_t *length, int *status);

enum { N_SLOTS = 4096, MAX_NAME_BYTES = 4096, RUST_HASH_BYTES = 20, RUST_HASH_TEXT_BYTES = 19 };

struct sonde_demangler {
	struct sonde_arena arena;
	demangle_fn *demangle;
	void *library;
	bool tried;
	/* Direct-mapped by the name's address: a symbol table has each name once. */
	struct slot {
		const char *name, *readable;
	} slots[N_SLOTS];
};

struct sonde_demangler *sonde_demangler_new(void)
{
	struct sonde_demangler *d = sonde_new(struct sonde_demangler);
	if (d)
		sonde_arena_init(&d->arena);
	return d;
}

void sonde_demangler_free(struct sonde_demangler *d)
{
	if (!d)
		return;
	if (d->library)
		dlclose(d->library);
	sonde_arena_deinit(&d->arena);
	free(d);
}

static bool load(struct sonde_demangler *d)
{
	if (d->tried)
		return d->demangle;
	d->tried = true;
	d->library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL | RTLD_NODELETE);
	void *symbol = d->library ? dlsym(d->library, "__cxa_demangle") : NULL;
	memcpy(&d->demangle, &symbol, sizeof(symbol));
	return d->demangle;
}

/* _ZN...17h0123456789abcdefE: rustc's "legacy" scheme ends in a hash. */
static bool is_rust(const char *name)
{
	size_t len = strlen(name);
	if (len < RUST_HASH_BYTES + 3 || name[len - 1] != 'E')
		return false;
	const char *hash = name + len - RUST_HASH_BYTES;
	if (memcmp(hash, "17h", 3))
		return false;
	for (size_t i = 3; i < RUST_HASH_BYTES - 1; i++)
		if (!isxdigit((unsigned char)hash[i]))
			return false;
	return true;
}

/* "$LT$", "$u20$" in a Rust name: what it stands for is put to *to. Returns the bytes read, 0: none of them. */
static size_t rust_escape(const char *s, char *to)
{
	static const struct {
		const char text[5], c;
	} escapes[] = {{"$LT$", '<'}, {"$GT$", '>'}, {"$RF$", '&'}, {"$BP$", '*'}, {"$LP$", '('},
		{"$RP$", ')'}, {"$SP$", '@'}, {"$C$", ','}};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(escapes); i++) {
		size_t len = strlen(escapes[i].text);
		if (!strncmp(s, escapes[i].text, len)) {
			*to = escapes[i].c;
			return len;
		}
	}
	char *end;
	if (s[1] != 'u' || !isxdigit((unsigned char)s[2]))
		return 0;
	unsigned long code = strtoul(s + 2, &end, 16);
	if (*end != '$' || code < ' ' || code > '~')
		return 0;
	*to = (char)code;
	return (size_t)(end + 1 - s);
}

/* In place: the text never grows. */
static void clean_rust(char *text)
{
	size_t len = strlen(text);
	if (len > RUST_HASH_TEXT_BYTES)
		text[len - RUST_HASH_TEXT_BYTES] = 0; /* "::h0123456789abcdef" */
	char *to = text;
	for (const char *s = text; *s;) {
		size_t n;
		/* "_$LT$": the underscore keeps an identifier from beginning with a dollar sign. */
		if (s[0] == '_' && s[1] == '$' && (s == text || s[-1] == ':'))
			s++;
		if (s[0] == '$' && (n = rust_escape(s, to)) > 0) {
			s += n;
			to++;
		} else if (s[0] == '.' && s[1] == '.') {
			*to++ = ':';
			*to++ = ':';
			s += 2;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

const char *sonde_demangle(struct sonde_demangler *d, const char *name)
{
	if (name[0] != '_' || name[1] != 'Z')
		return NULL;
	struct slot *slot = &d->slots[((uintptr_t)name * 0x9e3779b97f4a7c15u) >> 52];
	if (slot->name == name)
		return slot->readable;
	if (strnlen(name, MAX_NAME_BYTES) == MAX_NAME_BYTES || !load(d))
		return NULL;
	int status = 0;
	sonde_cleanup(free) char *text = d->demangle(name, NULL, NULL, &status);
	if (text && !status && is_rust(name))
		clean_rust(text);
	slot->readable = text && !status ? sonde_arena_strdup(&d->arena, text) : NULL;
	slot->name = name;
	return slot->readable;
}
