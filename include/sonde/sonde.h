/*
 * sonde/sonde.h: what all of libsonde's interfaces share: errors and the version. C11 and C++.
 *
 * A function that can fail returns a struct sonde_error *, NULL = fine. The error is the caller's, who frees it. The
 * library prints nothing, never exits, and touches no signal.
 */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

#define SONDE_API __attribute__((visibility("default")))

enum sonde_error_code {
	SONDE_OK, /* never in an error object */
	SONDE_NO_MEMORY,
	SONDE_OS, /* a system call failed; the text names it and errno's meaning */
	SONDE_BAD_DATA, /* the input contradicts its format */
	SONDE_TRUNCATED, /* the input ends before what it promises */
	SONDE_NOT_FOUND, /* a file, symbol, object or address that is not there */
	SONDE_FAULT, /* the target has no readable memory there */
	SONDE_MISMATCH, /* two inputs that do not belong together */
	SONDE_UNSUPPORTED, /* well formed, but beyond this build or version */
	SONDE_USAGE, /* the caller's request makes no sense */
	SONDE_INTERRUPTED, /* the caller asked to stop */
	SONDE_N_ERRORS /* grows with later versions */
};

struct sonde_error;

/* Of NULL: SONDE_OK. */
SONDE_API enum sonde_error_code sonde_error_code(const struct sonde_error *err);

/* One line, "what, which: where", UTF-8 or bytes of the input; valid until the error is freed. Of NULL: "". */
SONDE_API const char *sonde_error_message(const struct sonde_error *err);

/* Takes NULL. */
SONDE_API void sonde_error_free(struct sonde_error *err);

/* Of the library that is loaded: "0.1.0". */
SONDE_API const char *sonde_version(void);

#ifdef __cplusplus
}
#endif
