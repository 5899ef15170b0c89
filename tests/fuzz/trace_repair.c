/* Repair: what it makes of any bytes is whole, and repairing that again changes no byte. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/buf.h"
#include "trace/repair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool to_buf(void *ctx, const void *data, size_t len)
{
	sonde_buf_add(ctx, data, len);
	return true;
}

static struct sonde_error *repair(const void *data, size_t size, struct sonde_buf *to)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *r = NULL;
	sonde_cleanup(sonde_trace_repair) struct sonde_trace_repair done = {0};
	SONDE_TRY(sonde_trace_reader_open_memory(data, size, NULL, &r));
	return sonde_trace_repair(r, to_buf, to, &done);
}

static struct sonde_error *must_be_whole(const struct sonde_buf *trace)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e;
	SONDE_TRY(sonde_trace_reader_open_memory(trace->data, trace->len, NULL, &r));
	do
		SONDE_TRY(sonde_trace_reader_next(r, &e));
	while (e);
	if (sonde_trace_reader_is_whole(r))
		return NULL;
	sonde_vec_foreach (d, &sonde_trace_reader_damages(r)->list)
		fprintf(stderr, "offset %llu: %s\n", (unsigned long long)d->offset, d->text);
	abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sonde_cleanup(sonde_buf) struct sonde_buf once = {0}, twice = {0};
	struct sonde_error *err = repair(data, size, &once);
	if (!err)
		err = must_be_whole(&once);
	if (!err)
		err = repair(once.data, once.len, &twice);
	if (!err && (once.len != twice.len || memcmp(once.data, twice.data, once.len) != 0))
		abort();
	sonde_error_free(err);
	return 0;
}
