#include "cli/opt.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/*
 * Edits from a to b: insert, remove, replace, swap neighbours (optimal string alignment). UINT_MAX for names beyond any
 * that we have.
 */
static unsigned distance(const char *a, const char *b)
{
	enum { LONGEST = 40 };
	unsigned rows[3][LONGEST + 1];
	size_t na = strlen(a), nb = strlen(b);
	if (na > LONGEST || nb > LONGEST)
		return UINT32_MAX;
	for (size_t j = 0; j <= nb; j++)
		rows[0][j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *row = rows[i % 3];
		const unsigned *above = rows[(i - 1) % 3], *above2 = rows[(i + 1) % 3];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			unsigned d = above[j - 1] + (a[i - 1] != b[j - 1]);
			d = sonde_min(d, above[j] + 1);
			d = sonde_min(d, row[j - 1] + 1);
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				d = sonde_min(d, above2[j - 2] + 1);
			row[j] = d;
		}
	}
	return rows[na % 3][nb];
}

void sonde_nearest_try(struct sonde_nearest *nearest, const char *typed, const char *candidate)
{
	size_t n = strlen(typed);
	unsigned d = distance(typed, candidate);
	/* The start of a name counts as near; else a third of its letters may be wrong. */
	if (n >= 2 && !strncmp(typed, candidate, n))
		d = 1;
	else if (d > sonde_max(strlen(candidate) / 3, (size_t)1) || d >= n)
		return;
	if (!nearest->name || d < nearest->distance)
		*nearest = (struct sonde_nearest){candidate, d};
}

static bool digit_value(char c, unsigned base, unsigned *ret)
{
	unsigned v;
	if (c >= '0' && c <= '9')
		v = (unsigned)(c - '0');
	else if (c >= 'a' && c <= 'f')
		v = (unsigned)(c - 'a') + 10;
	else if (c >= 'A' && c <= 'F')
		v = (unsigned)(c - 'A') + 10;
	else
		return false;
	*ret = v;
	return v < base;
}

/* Digits up to the first other character: their end, or NULL for none or too many. */
static const char *digits(const char *text, unsigned base, uint64_t *ret)
{
	uint64_t v = 0;
	unsigned digit;
	const char *p = text;
	for (; digit_value(*p, base, &digit); p++)
		if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, digit, &v))
			return NULL;
	*ret = v;
	return p == text ? NULL : p;
}

static bool has_0x(const char *text)
{
	return text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
}

struct sonde_error *sonde_opt_u64(const char *what, const char *text, uint64_t *ret)
{
	uint64_t v;
	const char *end = digits(text, 10, &v);
	if (!end || *end)
		return sonde_error_new(
			SONDE_USAGE, "%s: '%s' is not a decimal number below 2^64", what, text);
	*ret = v;
	return NULL;
}

struct sonde_error *sonde_opt_addr(const char *what, const char *text, uint64_t *ret)
{
	uint64_t v;
	const char *end = digits(has_0x(text) ? text + 2 : text, 16, &v);
	if (!end || *end)
		return sonde_error_new(SONDE_USAGE,
			"%s: '%s' is not a hexadecimal address below 2^64", what, text);
	*ret = v;
	return NULL;
}

struct sonde_error *sonde_opt_bytes(const char *what, const char *text, uint64_t *ret)
{
	uint64_t v = 0;
	const char *end = has_0x(text) ? digits(text + 2, 16, &v) : digits(text, 10, &v);
	unsigned shift = 0;
	if (end && *end) {
		switch (*end++) {
		case 'k':
		case 'K':
			shift = 10;
			break;
		case 'M':
			shift = 20;
			break;
		case 'G':
			shift = 30;
			break;
		default:
			end = NULL;
		}
	}
	if (!end || *end || v > UINT64_MAX >> shift)
		return sonde_error_new(SONDE_USAGE,
			"%s: '%s' is not a number of bytes (like 4096, 0x1000, 4k, 1M or 2G)", what,
			text);
	*ret = v << shift;
	return NULL;
}

/* A row and the struct that it fills. */
struct found {
	const struct sonde_option *row;
	char *into;
};

struct parser {
	const struct sonde_option_table *tables;
	size_t n_tables;
	char *options;
	struct sonde_arguments *arguments;
};

/* By letter where name is NULL. */
static struct found find(const struct parser *p, const char *name, size_t len, char letter)
{
	for (size_t t = 0; t < p->n_tables; t++) {
		const struct sonde_option_table *table = &p->tables[t];
		for (size_t i = 0; i < table->n; i++) {
			const struct sonde_option *row = &table->rows[i];
			if (name ? !strncmp(row->name, name, len) && !row->name[len]
				 : row->letter == letter)
				return (struct found){row, p->options + table->offset};
		}
	}
	return (struct found){0};
}

static struct sonde_error *unknown(const struct parser *p, const char *name, size_t len)
{
	sonde_cleanup(free) char *typed = strndup(name, len);
	if (!typed)
		return &sonde_enomem;
	struct sonde_nearest nearest = {0};
	sonde_nearest_try(&nearest, typed, "help");
	for (size_t t = 0; t < p->n_tables; t++)
		for (size_t i = 0; i < p->tables[t].n; i++)
			sonde_nearest_try(&nearest, typed, p->tables[t].rows[i].name);
	if (nearest.name)
		return sonde_error_new(SONDE_USAGE, "unknown option '--%s'; did you mean '--%s'?",
			typed, nearest.name);
	return sonde_error_new(SONDE_USAGE, "unknown option '--%s'", typed);
}

static struct sonde_error *store_word(
	const struct sonde_option *row, const char *what, const char *value, int *to)
{
	sonde_cleanup(free) char *all = NULL;
	for (int i = 0; row->words[i]; i++) {
		if (!strcmp(row->words[i], value)) {
			*to = i;
			return NULL;
		}
		char *more = NULL;
		if (asprintf(&more, "%s%s%s", all ? all : "", all ? ", " : "", row->words[i]) < 0)
			return &sonde_enomem;
		free(all);
		all = more;
	}
	return sonde_error_new(SONDE_USAGE, "%s: '%s' is not one of %s", what, value, all);
}

/* what: the option as it was written, for messages. */
static struct sonde_error *store(const struct found *f, const char *what, const char *value)
{
	void *to = f->into + f->row->offset;
	switch (f->row->kind) {
	case SONDE_OPTION_FLAG:
		*(bool *)to = true;
		break;
	case SONDE_OPTION_STRING:
		*(const char **)to = value;
		break;
	case SONDE_OPTION_STRINGS:
		if (!sonde_strings_push(to, value))
			return &sonde_enomem;
		break;
	case SONDE_OPTION_U64:
		SONDE_TRY(sonde_opt_u64(what, value, to));
		break;
	case SONDE_OPTION_BYTES:
		SONDE_TRY(sonde_opt_bytes(what, value, to));
		break;
	case SONDE_OPTION_ADDR:
		SONDE_TRY(sonde_opt_addr(what, value, to));
		break;
	case SONDE_OPTION_ENUM:
		SONDE_TRY(store_word(f->row, what, value, to));
		break;
	}
	if (f->row->given)
		*(bool *)(f->into + f->row->given - 1) = true;
	return NULL;
}

/* --name, --name=value or --name value; *next is the argument behind it, NULL at the end; moves *used. */
static struct sonde_error *parse_long(
	const struct parser *p, const char *arg, const char *next, int *used)
{
	const char *name = arg + 2, *equals = strchr(name, '=');
	size_t len = equals ? (size_t)(equals - name) : strlen(name);
	struct found f = find(p, name, len, 0);
	if (!f.row && !equals && !strcmp(name, "help")) {
		p->arguments->help = true;
		return NULL;
	}
	if (!f.row)
		return unknown(p, name, len);
	char what[64];
	snprintf(what, sizeof(what), "--%s", f.row->name);
	if (f.row->kind == SONDE_OPTION_FLAG) {
		if (equals)
			return sonde_error_new(SONDE_USAGE, "%s takes no value", what);
		return store(&f, what, NULL);
	}
	if (equals)
		return store(&f, what, equals + 1);
	if (!next)
		return sonde_error_new(SONDE_USAGE, "%s needs a value", what);
	++*used;
	return store(&f, what, next);
}

/* -abc, -oVALUE or -o VALUE. */
static struct sonde_error *parse_short(
	const struct parser *p, const char *arg, const char *next, int *used)
{
	for (const char *c = arg + 1; *c; c++) {
		struct found f = find(p, NULL, 0, *c);
		char what[] = {'-', *c, 0};
		if (!f.row && *c == 'h') {
			p->arguments->help = true;
			return NULL;
		}
		if (!f.row)
			return sonde_error_new(SONDE_USAGE, "unknown option '%s'%s%s%s", what,
				c == arg + 1 && !c[1] ? "" : " in '",
				c == arg + 1 && !c[1] ? "" : arg, c == arg + 1 && !c[1] ? "" : "'");
		if (f.row->kind == SONDE_OPTION_FLAG) {
			SONDE_TRY(store(&f, what, NULL));
			continue;
		}
		if (c[1])
			return store(&f, what, c + 1);
		if (!next)
			return sonde_error_new(SONDE_USAGE, "%s needs a value", what);
		++*used;
		return store(&f, what, next);
	}
	return NULL;
}

struct sonde_error *sonde_opt_parse(const struct sonde_option_table *tables, size_t n_tables,
	int argc, char *const *argv, void *options, struct sonde_arguments *arguments)
{
	struct parser p = {tables, n_tables, options, arguments};
	bool ended = false;
	for (int i = 0; i < argc && !arguments->help; i++) {
		const char *arg = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
		if (ended || arg[0] != '-' || !arg[1]) {
			if (!sonde_strings_push(&arguments->operands, arg))
				return &sonde_enomem;
		} else if (!strcmp(arg, "--")) {
			ended = true;
		} else if (arg[1] == '-') {
			SONDE_TRY(parse_long(&p, arg, next, &i));
		} else {
			SONDE_TRY(parse_short(&p, arg, next, &i));
		}
	}
	return NULL;
}

void sonde_opt_deinit(const struct sonde_option_table *tables, size_t n_tables, void *options)
{
	for (size_t t = 0; t < n_tables; t++)
		for (size_t i = 0; i < tables[t].n; i++)
			if (tables[t].rows[i].kind == SONDE_OPTION_STRINGS)
				sonde_strings_deinit((void *)((char *)options + tables[t].offset +
					tables[t].rows[i].offset));
}
