/* bench_trace FILE [RUNS]: a trace decoded, ordered and validated; the best of RUNS, CPU time of the one thread. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include "traceread/stream.h"

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct sonde_error *run(const char *path, struct sonde_trace_info *info)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e;
	SONDE_TRY(sonde_trace_reader_open(path, NULL, &r));
	do
		SONDE_TRY(sonde_trace_reader_next(r, &e));
	while (e);
	*info = *sonde_trace_reader_info(r);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sonde_trace_info info = {0};
	struct rusage usage;
	double best_s = 1e9;
	if (argc < 2)
		return 2;
	for (int i = 0, n = argc > 2 ? atoi(argv[2]) : 5; i < n; i++) {
		double begin_s = cpu_s();
		struct sonde_error *err = run(argv[1], &info);
		if (err) {
			fprintf(stderr, "%s\n", err->message);
			return 1;
		}
		double took_s = cpu_s() - begin_s;
		best_s = took_s < best_s ? took_s : best_s;
	}
	getrusage(RUSAGE_SELF, &usage);
	printf("events %" PRIu64 " bytes %" PRIu64 " cpu_s %.4f maxrss_kb %ld state_bytes %" PRIu64
	       " generation_bytes %" PRIu64 "\n",
		info.n_events, info.read_bytes, best_s, usage.ru_maxrss, info.state_bytes,
		info.largest_generation_bytes);
	return 0;
}
