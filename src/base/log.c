#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

void sonde_log_message(
	const struct sonde_log *log, enum sonde_log_level level, const char *fmt, ...)
{
	if (!log || !log->message)
		return;
	va_list args;
	va_start(args, fmt);
	char *text = NULL;
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	log->message(log->ctx, level, text ? text : fmt);
	free(text);
}
