/*
 * src/cli/opt.h: options as rows of a table that one parser fills a struct from. Options stand anywhere; "--" ends
 * them; --name=value, --name value, -xVALUE, -x VALUE, and short flags in a bundle. Given twice, the last one counts.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "base/vec.h"

SONDE_DEFINE_VEC(sonde_strings, const char *)

enum sonde_option_kind {
	SONDE_OPTION_FLAG, /* bool; takes no value */
	SONDE_OPTION_STRING, /* const char *, borrowed from argv */
	SONDE_OPTION_STRINGS, /* struct sonde_strings: one item each time; sonde_opt_deinit() frees */
	SONDE_OPTION_U64, /* uint64_t, decimal */
	SONDE_OPTION_BYTES, /* uint64_t, decimal or 0x, with k, M or G for powers of 1024 */
	SONDE_OPTION_ADDR, /* uint64_t, hexadecimal with or without 0x */
	SONDE_OPTION_ENUM, /* int: the index of the word in `words` */
};

struct sonde_option {
	const char *name; /* without its dashes */
	char letter; /* 0 = none */
	enum sonde_option_kind kind;
	size_t offset; /* in the struct of the row's table */
	const char *metavar; /* "FILE"; NULL for flags; for enums NULL shows the words */
	const char *help; /* lower case, no full stop */
	const char *const *words; /* of an enum; ends with NULL */
	size_t given; /* 1 + the offset of a bool that is set with the option; 0 = none */
};

/*
 * For a row: kind and offset of a member whose type is checked by the compiler:
 *	{"top", 'n', SONDE_OPTION_INTO(U64, struct x, top), "N", "show the N largest only"}
 */
#define SONDE_OPTION_INTO(option_kind, type, member)                            \
	SONDE_OPTION_##option_kind,                                             \
		offsetof(type, member) +                                        \
		0 *                                                             \
			sizeof(char[__builtin_types_compatible_p(               \
					    __typeof__(((type *)NULL)->member), \
					    SONDE_OPTION_TYPE_##option_kind)    \
					? 1                                     \
					: -1])
#define SONDE_OPTION_TYPE_FLAG bool
#define SONDE_OPTION_TYPE_STRING const char *
#define SONDE_OPTION_TYPE_STRINGS struct sonde_strings
#define SONDE_OPTION_TYPE_U64 uint64_t
#define SONDE_OPTION_TYPE_BYTES uint64_t
#define SONDE_OPTION_TYPE_ADDR uint64_t
#define SONDE_OPTION_TYPE_ENUM int
#define SONDE_OPTION_GIVEN(type, member) .given = 1 + offsetof(type, member)

struct sonde_option_table {
	const char *title; /* its heading in the help */
	const struct sonde_option *rows;
	size_t n;
	size_t offset; /* of the rows' struct in the command's options */
};

struct sonde_arguments {
	struct sonde_strings operands; /* borrowed from argv, in order */
	bool help; /* --help or -h was met; nothing behind it was looked at */
};

static inline void sonde_arguments_deinit(struct sonde_arguments *a)
{
	sonde_strings_deinit(&a->operands);
}
SONDE_DEFINE_CLEANUP_DEINIT(sonde_arguments)

/*
 * Parse argv[0 .. argc - 1], all of them arguments, into options and arguments (zeroed by the caller; freed by it also
 * after a failure). SONDE_USAGE with the nearest name where an option is unknown.
 */
struct sonde_error *sonde_opt_parse(const struct sonde_option_table *tables, size_t n_tables,
	int argc, char *const *argv, void *options, struct sonde_arguments *arguments) SONDE_CHECK;

/* Frees what repeated strings hold in options. */
void sonde_opt_deinit(const struct sonde_option_table *tables, size_t n_tables, void *options);

/* For operands too; what names the value in the message: SONDE_USAGE "what: 'text' is not a number". */
struct sonde_error *sonde_opt_u64(const char *what, const char *text, uint64_t *ret) SONDE_CHECK;
struct sonde_error *sonde_opt_bytes(const char *what, const char *text, uint64_t *ret) SONDE_CHECK;
struct sonde_error *sonde_opt_addr(const char *what, const char *text, uint64_t *ret) SONDE_CHECK;

/*
 * The nearest of the names to a mistyped one, for "did you mean": fed one by one, starts zeroed. NULL where none is
 * near.
 */
struct sonde_nearest {
	const char *name;
	unsigned distance;
};
void sonde_nearest_try(struct sonde_nearest *nearest, const char *typed, const char *candidate);
