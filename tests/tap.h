/*
 * tests/tap.h: checks that print TAP. A test file defines functions, runs each by RUN(f), and ends with
 * `return tap_end();`. A failed CHECK prints where and what, and the function goes on; REQUIRE leaves the function.
 */
#pragma once
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/error.h"

static int tap_n, tap_failed_checks, tap_failed_tests;
static const char *tap_skip_reason;

#define CHECK(cond)                                                                 \
	do {                                                                        \
		if (!(cond)) {                                                      \
			printf("# %s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
			tap_failed_checks++;                                        \
		}                                                                   \
	} while (0)

#define REQUIRE(cond)                                                               \
	do {                                                                        \
		if (!(cond)) {                                                      \
			printf("# %s:%d: failed: %s\n", __FILE__, __LINE__, #cond); \
			tap_failed_checks++;                                        \
			return;                                                     \
		}                                                                   \
	} while (0)

/* Unsigned 64-bit equality with both values shown. */
#define CHECK_EQ(got, want)                                                                \
	do {                                                                               \
		uint64_t tap_got_ = (uint64_t)(got), tap_want_ = (uint64_t)(want);         \
		if (tap_got_ != tap_want_) {                                               \
			printf("# %s:%d: %s is %" PRIu64 " (0x%" PRIx64 "), want %" PRIu64 \
			       " (0x%" PRIx64 ")\n",                                       \
				__FILE__, __LINE__, #got, tap_got_, tap_got_, tap_want_,   \
				tap_want_);                                                \
			tap_failed_checks++;                                               \
		}                                                                          \
	} while (0)

#define CHECK_STR(got, want)                                                                       \
	do {                                                                                       \
		const char *tap_got_ = (got), *tap_want_ = (want);                                 \
		if (!tap_got_ || !tap_want_ || strcmp(tap_got_, tap_want_)) {                      \
			printf("# %s:%d: %s is \"%s\", want \"%s\"\n", __FILE__, __LINE__, #got,   \
				tap_got_ ? tap_got_ : "(null)", tap_want_ ? tap_want_ : "(null)"); \
			tap_failed_checks++;                                                       \
		}                                                                                  \
	} while (0)

/* The call must succeed. */
#define CHECK_OK(expr) CHECK(tap_ok_((expr), __FILE__, __LINE__, #expr))
#define REQUIRE_OK(expr)                                           \
	do {                                                       \
		if (!tap_ok_((expr), __FILE__, __LINE__, #expr)) { \
			tap_failed_checks++;                       \
			return;                                    \
		}                                                  \
	} while (0)

/* The call must fail with this code and its message must hold text. */
#define CHECK_ERROR(expr, error_code, text) \
	CHECK(tap_error_((expr), (error_code), (text), __FILE__, __LINE__, #expr))

static inline bool tap_ok_(struct sonde_error *err, const char *file, int line, const char *what)
{
	if (!err)
		return true;
	printf("# %s:%d: %s: %s\n", file, line, what, err->message);
	sonde_error_free(err);
	return false;
}

static inline bool tap_error_(struct sonde_error *err, enum sonde_error_code code, const char *text,
	const char *file, int line, const char *what)
{
	if (!err) {
		printf("# %s:%d: %s: no error\n", file, line, what);
		return false;
	}
	bool right = err->code == code && strstr(err->message, text);
	if (!right)
		printf("# %s:%d: %s: [%s] \"%s\", want [%s] with \"%s\"\n", file, line, what,
			sonde_error_code_name(err->code), err->message, sonde_error_code_name(code),
			text);
	sonde_error_free(err);
	return right;
}

/* Inside a test: what it needs is not here. */
#define SKIP(reason)                        \
	do {                                \
		tap_skip_reason = (reason); \
		return;                     \
	} while (0)

static inline void tap_run_(void (*test)(void), const char *name)
{
	tap_failed_checks = 0;
	tap_skip_reason = NULL;
	test();
	tap_failed_tests += !!tap_failed_checks;
	printf("%s %d - %s%s%s\n", tap_failed_checks ? "not ok" : "ok", ++tap_n, name,
		tap_skip_reason ? " # SKIP " : "", tap_skip_reason ? tap_skip_reason : "");
	fflush(stdout);
}
#define RUN(test) tap_run_(test, #test)

static inline int tap_end(void)
{
	printf("1..%d\n", tap_n);
	return tap_failed_tests ? 1 : 0;
}
