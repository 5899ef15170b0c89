/*
 * src/output/text.h: strings from a target made fit for a terminal: UTF-8 decoded, control characters escaped, width in
 * columns known; numbers as people read them. No locale is used.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/buf.h"
#include "output/sink.h"

#define SONDE_TEXT_BAD UINT32_MAX

/*
 * The character at s, of len > 0 bytes, to *rune: SONDE_TEXT_BAD where the bytes are not UTF-8 (overlong forms,
 * surrogates and what lies beyond U+10FFFF are not). Returns its length; 1 for a bad byte.
 */
size_t sonde_text_decode(const char *s, size_t len, uint32_t *rune);

/*
 * Whether a terminal may act on this character, or show what stands beside it in another order: C0 and C1 controls,
 * line and paragraph separators, marks of bidirectional text, tags, the byte order mark.
 */
bool sonde_text_is_unsafe(uint32_t rune);

/* Columns of a safe character: 0, 1 or 2. Approximates Unicode 15's tables. */
unsigned sonde_text_rune_columns(uint32_t rune);

/*
 * Append s to buf so that no terminal acts on it: \n \t \r, \xNN for other controls below U+0080 and for bytes that are
 * not UTF-8, \uNNNN or \u{NNNNN} for other unsafe characters. A backslash stays itself: the form is for people, JSON
 * is the lossless one. Returns the columns that it takes.
 */
size_t sonde_text_escape(struct sonde_buf *buf, const char *s, size_t len);

/* The columns of text that has been escaped. */
size_t sonde_text_columns(const char *s, size_t len);

/* The longest prefix of escaped text that fits in so many columns, in bytes. */
size_t sonde_text_fit(const char *s, size_t len, size_t columns);

enum { SONDE_TEXT_NUMBER_BYTES = 32 }; /* room for any of the below with its NUL */

/* Decimal digits, without a NUL. Returns the length, at most 20. */
size_t sonde_text_u64(char *to, uint64_t v);

/* "0 B", "1023 B", "1.0 KiB", "17.5 MiB", rounded half up. Returns to. */
const char *sonde_text_human_bytes(char to[SONDE_TEXT_NUMBER_BYTES], uint64_t bytes);

/* "999 ns", "1.234 us", "17.500 ms", "3.000 s". Returns to. */
const char *sonde_text_ns(char to[SONDE_TEXT_NUMBER_BYTES], uint64_t ns);

/* "12.3%", rounded half up; "<0.1%" for little that is not nothing; "-" of nothing. Returns to. */
const char *sonde_text_share(char to[SONDE_TEXT_NUMBER_BYTES], uint64_t part, uint64_t whole);
