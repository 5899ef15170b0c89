/*
 * bench/mark.c: what marking and typing a core cost, apart from everything else. mark CORE EXE [REPEAT]: one line a
 * step: seconds of CPU and of wall time, nanoseconds an object, anonymous memory that it added.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include "core/session.h"

static double now(clockid_t clock)
{
	struct timespec t;
	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Anonymous resident memory of this process, in bytes. */
static uint64_t anonymous_bytes(void)
{
	FILE *f = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t kib = 0;
	while (f && fgets(line, sizeof(line), f)) {
		if (!strncmp(line, "RssAnon:", 8))
			kib = strtoull(line + 8, NULL, 10);
	}
	if (f)
		fclose(f);
	return kib * 1024;
}

struct step {
	double cpu, wall;
	uint64_t bytes;
};

static struct step begin(void)
{
	return (struct step){
		now(CLOCK_PROCESS_CPUTIME_ID), now(CLOCK_MONOTONIC), anonymous_bytes()};
}

static void end(struct step s, const char *name, uint64_t n_objects)
{
	double cpu = now(CLOCK_PROCESS_CPUTIME_ID) - s.cpu, wall = now(CLOCK_MONOTONIC) - s.wall;
	uint64_t bytes = anonymous_bytes();
	printf("%-16s cpu_s=%.3f wall_s=%.3f ns_per_object=%.1f added_bytes=%" PRId64
	       " bytes_per_object=%.3f\n",
		name, cpu, wall, n_objects ? cpu * 1e9 / n_objects : 0, (int64_t)(bytes - s.bytes),
		n_objects ? (double)(int64_t)(bytes - s.bytes) / n_objects : 0);
}

static void stop(struct sonde_error *err)
{
	if (!err)
		return;
	fprintf(stderr, "%s\n", err->message);
	exit(1);
}

int main(int argc, char **argv)
{
	if (argc < 3) {
		fprintf(stderr, "usage: mark CORE EXE [REPEAT]\n");
		return 2;
	}
	struct sonde_core_session_options options = {.core.exe = argv[2]};
	struct sonde_core_session *session;
	struct step s = begin();
	stop(sonde_core_session_open(argv[1], &options, &session));
	end(s, "open", 0);
	s = begin();
	stop(sonde_core_session_need_go(session));
	end(s, "runtime", 0);
	s = begin();
	stop(sonde_core_session_need_goroutines(session));
	end(s, "goroutines", 0);
	s = begin();
	stop(sonde_core_session_need_heap(session));
	end(s, "heap index", session->heap->n_allocated);
	for (int i = 0; i < (argc > 3 ? atoi(argv[3]) : 3); i++) {
		for (unsigned threads = 1; threads <= 2; threads++) {
			struct sonde_core_marks *marks;
			s = begin();
			stop(sonde_core_mark(
				session->heap, session->goroutines, threads, NULL, &marks));
			end(s, threads == 1 ? "mark, 1 thread" : "mark, 2 threads", marks->n_live);
			sonde_core_marks_free(marks);
		}
	}
	stop(sonde_core_session_need_marks(session));
	s = begin();
	stop(sonde_core_session_need_typing(session));
	end(s, "typing", session->marks->n_live);
	sonde_core_session_free(session);
	return 0;
}
