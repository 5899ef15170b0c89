/* bench/trace_v1.c: read a trace to its end: trace_v1 FILE. One line: events, seconds, peak resident memory. */
#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include "traceread/stream.h"

int main(int argc, char **argv)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e = NULL;
	struct timespec start, end;
	struct rusage u;
	uint64_t sum = 0;
	clock_gettime(CLOCK_MONOTONIC, &start);
	struct sonde_error *err = argc != 2 ? sonde_error_new(SONDE_USAGE, "usage: trace_v1 FILE")
					    : sonde_trace_reader_open(argv[1], NULL, &r);
	while (!err && !(err = sonde_trace_reader_next(r, &e)) && e)
		sum += (uint64_t)e->ns + e->g_after;
	if (err) {
		fprintf(stderr, "%s\n", err->message);
		sonde_error_free(err);
		return 1;
	}
	clock_gettime(CLOCK_MONOTONIC, &end);
	getrusage(RUSAGE_SELF, &u);
	const struct sonde_trace_info *info = sonde_trace_reader_info(r);
	printf("events=%" PRIu64 " wall_s=%.3f cpu_s=%.3f peak_rss_kib=%ld state_bytes=%" PRIu64
	       " whole=%d sum=%" PRIx64 "\n",
		info->n_events,
		(double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9,
		(double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
			(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) * 1e-6,
		u.ru_maxrss, info->state_bytes, sonde_trace_reader_is_whole(r), sum);
	return 0;
}
