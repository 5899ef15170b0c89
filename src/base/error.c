#include "base/error.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sonde_error sonde_enomem = {SONDE_NO_MEMORY, (char *)"out of memory"};

static const struct {
	const char *name;
	int exit_status;
} codes[SONDE_N_ERRORS] = {
	[SONDE_OK] = {"ok", 0},
	[SONDE_NO_MEMORY] = {"no-memory", 1},
	[SONDE_OS] = {"system", 1},
	[SONDE_BAD_DATA] = {"bad-data", 1},
	[SONDE_TRUNCATED] = {"truncated", 1},
	[SONDE_NOT_FOUND] = {"not-found", 1},
	[SONDE_FAULT] = {"not-readable", 1},
	[SONDE_MISMATCH] = {"mismatch", 1},
	[SONDE_UNSUPPORTED] = {"unsupported", 1},
	[SONDE_USAGE] = {"usage", 2},
	[SONDE_INTERRUPTED] = {"interrupted", 1},
};

static struct sonde_error *error_of(enum sonde_error_code code, char *message)
{
	struct sonde_error *err = message ? malloc(sizeof(*err)) : NULL;
	if (!err) {
		free(message);
		return &sonde_enomem;
	}
	*err = (struct sonde_error){code, message};
	return err;
}

struct sonde_error *sonde_error_new(enum sonde_error_code code, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *message = NULL;
	if (vasprintf(&message, fmt, args) < 0)
		message = NULL;
	va_end(args);
	return error_of(code, message);
}

/* "first: second", or NULL without memory. Takes neither. */
static char *joined(const char *first, const char *second)
{
	char *both = NULL;
	return asprintf(&both, "%s: %s", first, second) < 0 ? NULL : both;
}

struct sonde_error *sonde_error_os(int os_errno, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	char *front = NULL;
	if (vasprintf(&front, fmt, args) < 0)
		front = NULL;
	va_end(args);
	if (!front)
		return &sonde_enomem;
	char text[128];
	char *both = joined(front, strerror_r(os_errno, text, sizeof(text)));
	free(front);
	return error_of(os_errno == ENOMEM ? SONDE_NO_MEMORY : SONDE_OS, both);
}

struct sonde_error *sonde_error_wrap(struct sonde_error *err, const char *fmt, ...)
{
	if (!err || err == &sonde_enomem)
		return err;
	va_list args;
	va_start(args, fmt);
	char *front = NULL;
	if (vasprintf(&front, fmt, args) < 0)
		front = NULL;
	va_end(args);
	char *both = front ? joined(front, err->message) : NULL;
	free(front);
	if (!both) /* the cause is worth more than its context */
		return err;
	free(err->message);
	err->message = both;
	return err;
}

void sonde_error_free(struct sonde_error *err)
{
	if (!err || err == &sonde_enomem)
		return;
	free(err->message);
	free(err);
}

int sonde_error_exit_status(enum sonde_error_code code)
{
	return code < SONDE_N_ERRORS ? codes[code].exit_status : 1;
}

enum sonde_error_code sonde_error_code(const struct sonde_error *err)
{
	return err ? err->code : SONDE_OK;
}

const char *sonde_error_message(const struct sonde_error *err)
{
	return err ? err->message : "";
}

const char *sonde_version(void)
{
	return SONDE_VERSION;
}

const char *sonde_error_code_name(enum sonde_error_code code)
{
	return code < SONDE_N_ERRORS ? codes[code].name : "unknown";
}
