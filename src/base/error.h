/* src/base/error.h: what crosses a file as a failure: a code, one line of text, the causes behind it. */
#pragma once
#include <stdbool.h>
#include "sonde/sonde.h"

#define SONDE_CHECK __attribute__((warn_unused_result))
#define SONDE_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))

struct sonde_error {
	enum sonde_error_code code;
	char *message; /* "what, which: where"; lower case, no full stop; causes follow after ": " */
};

/* The one error that needs no memory. sonde_error_free() leaves it alone. */
extern struct sonde_error sonde_enomem;

/* A new error, the caller's. Never NULL (sonde_enomem where memory is out). */
struct sonde_error *sonde_error_new(enum sonde_error_code code, const char *fmt, ...)
	SONDE_PRINTF(2, 3) SONDE_CHECK;

/* As sonde_error_new() with SONDE_OS, or SONDE_NO_MEMORY for ENOMEM; appends ": " and strerror(os_errno). */
struct sonde_error *sonde_error_os(int os_errno, const char *fmt, ...)
	SONDE_PRINTF(2, 3) SONDE_CHECK;

/*
 * Put what this level knows in front: "fmt: cause". Takes err, keeps its code, returns an error that is the caller's.
 * NULL stays NULL, so that `return sonde_error_wrap(f(), ...)` is allowed.
 */
struct sonde_error *sonde_error_wrap(struct sonde_error *err, const char *fmt, ...)
	SONDE_PRINTF(2, 3) SONDE_CHECK;

/* The exit status of a program that ends with this code: 0 ok, 1 failed, 2 usage. */
int sonde_error_exit_status(enum sonde_error_code code);

/* A stable lower-case word for the code, for JSON: "bad-data". */
const char *sonde_error_code_name(enum sonde_error_code code);

static inline void sonde_cleanup_sonde_error(struct sonde_error **err)
{
	sonde_error_free(*err);
}

/* Return from this function with the error that expr yields, if any. */
#define SONDE_TRY(expr)                                  \
	do {                                             \
		struct sonde_error *sonde_try_ = (expr); \
		if (sonde_try_)                          \
			return sonde_try_;               \
	} while (0)
