/* The formats 1.5 to 1.21: not read yet. */
#include "traceread/internal.h"

static struct sonde_error *open(struct sonde_trace_reader *r)
{
	return sonde_error_new(SONDE_UNSUPPORTED,
		"execution traces of the format go 1.%u are not read yet", r->info.version);
}

static void v1_free(struct sonde_trace_reader *r)
{
	(void)r;
}

const struct sonde_trace_ops sonde_trace_v1_ops = {.open = open, .free = v1_free};
