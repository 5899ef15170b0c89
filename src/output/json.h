/*
 * src/output/json.h: JSON written as it comes, on one line. Nesting is checked by assertions: a report that could build
 * a wrong document stops at once. Values take the key of their place: a string inside an object, NULL in an array and
 * at the top.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "output/sink.h"

/* The caller bounds what nests by its input. */
enum { SONDE_JSON_MAX_DEPTH = 64 };

struct sonde_json {
	struct sonde_sink *sink; /* borrowed */
	uint64_t arrays; /* bit i: what is open at depth i + 1 is an array */
	unsigned depth;
	bool not_first; /* the innermost one has something in it */
};

static inline struct sonde_json sonde_json_over(struct sonde_sink *sink)
{
	return (struct sonde_json){.sink = sink};
}

void sonde_json_object_begin(struct sonde_json *j, const char *key);
void sonde_json_object_end(struct sonde_json *j);
void sonde_json_array_begin(struct sonde_json *j, const char *key);
void sonde_json_array_end(struct sonde_json *j);

/* The document is complete: a newline. */
void sonde_json_end(struct sonde_json *j);

/*
 * len bytes as a string. A byte that is not UTF-8 becomes U+FFFD; then, inside an object, the member KEY_hex follows
 * with all bytes in hexadecimal: nothing is lost. Controls, DEL and C1 are escaped: they never reach a terminal.
 * s = NULL is null.
 */
void sonde_json_string(struct sonde_json *j, const char *key, const char *s, size_t len);
void sonde_json_text(struct sonde_json *j, const char *key, const char *s);

/* len bytes as a string of lower-case hexadecimal digits. */
void sonde_json_hex(struct sonde_json *j, const char *key, const void *data, size_t len);

/* All digits: a reader that keeps numbers as doubles rounds beyond 2^53. */
void sonde_json_u64(struct sonde_json *j, const char *key, uint64_t v);
void sonde_json_i64(struct sonde_json *j, const char *key, int64_t v);

/* "0x" and lower-case digits, as a string, so that no reader rounds it. */
void sonde_json_addr(struct sonde_json *j, const char *key, uint64_t addr);

/* part / whole with six decimals; null where whole is 0. */
void sonde_json_share(struct sonde_json *j, const char *key, uint64_t part, uint64_t whole);
void sonde_json_bool(struct sonde_json *j, const char *key, bool v);
void sonde_json_null(struct sonde_json *j, const char *key);
