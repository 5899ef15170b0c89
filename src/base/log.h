/* src/base/log.h: how the library speaks to its caller while it works. It prints nothing by itself. */
#pragma once
#include <stdint.h>
#include "base/error.h"

enum sonde_log_level { SONDE_LOG_DEBUG, SONDE_LOG_INFO, SONDE_LOG_WARNING };

/*
 * A caller's ear. Both functions may be NULL, and both may be called from the thread that made the call into the
 * library, never from another. `progress` gets done of total units of what (total 0: unknown), at most some ten times
 * a second; it returns false to ask for a stop (SONDE_INTERRUPTED).
 */
struct sonde_log {
	void (*message)(void *ctx, enum sonde_log_level level, const char *text);
	bool (*progress)(void *ctx, const char *what, uint64_t done, uint64_t total);
	void *ctx; /* borrowed */
};

/* log may be NULL: then nothing happens. */
void sonde_log_message(const struct sonde_log *log, enum sonde_log_level level, const char *fmt,
	...) SONDE_PRINTF(3, 4);

/* true = go on. */
static inline bool sonde_log_progress(
	const struct sonde_log *log, const char *what, uint64_t done, uint64_t total)
{
	return !log || !log->progress || log->progress(log->ctx, what, done, total);
}
