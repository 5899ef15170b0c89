#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>
#include "sonde/record.h"
#include "traceread/stream.h"
#include "tap.h"

static char path[] = "/tmp/sonde-record.XXXXXX";

/* Events of kind in the trace at path, and whether it is whole. */
static size_t count(enum sonde_trace_kind kind, bool *whole)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	const struct sonde_trace_event *e;
	size_t n = 0;
	*whole = false;
	if (!tap_ok_(
		    sonde_trace_reader_open(path, &(struct sonde_trace_reader_options){0}, &reader),
		    __FILE__, __LINE__, "open"))
		return SIZE_MAX;
	while (tap_ok_(sonde_trace_reader_next(reader, &e), __FILE__, __LINE__, "next") && e)
		n += e->kind == kind;
	*whole = sonde_trace_reader_is_whole(reader);
	return n;
}

static struct sonde_record_stats stopped(void)
{
	struct sonde_record_stats st = {.size = sizeof(st)};
	CHECK(sonde_record_stop(&st) == 0);
	return st;
}

static void test_session(void)
{
	struct sonde_record_options o = {.size = sizeof(o), .stack_depth = 129};
	struct {
		struct sonde_record_options o;
		uint64_t later;
	} newer = {{.size = sizeof(newer)}, 0};
	char c;
	CHECK(sonde_record_stop(NULL) == -ENOENT);
	CHECK(sonde_record_start("/nonexistent/file", NULL) == -ENOENT);
	CHECK(sonde_record_start(NULL, NULL) == -EINVAL);
	CHECK(sonde_record_start(path, &o) == -EINVAL);
	o = (struct sonde_record_options){.size = sizeof(o), .overflow = SONDE_RECORD_BLOCK};
	CHECK(sonde_record_start(path, &o) == -EINVAL);
	o = (struct sonde_record_options){.size = sizeof(o), .version = 77};
	CHECK(sonde_record_start(path, &o) == -EINVAL);
	CHECK(sonde_record_start(path, &(struct sonde_record_options){0}) == -EINVAL);
	CHECK(sonde_record_read(&c, 1) == -EINVAL);
	CHECK(!SONDE_RECORD_ENABLED());
	CHECK(sonde_record_start(path, &newer.o) == 0);
	CHECK(SONDE_RECORD_ENABLED());
	CHECK(sonde_record_start(path, NULL) == -EALREADY);
	CHECK(sonde_record_read(&c, 1) == -EINVAL);
	stopped();
	newer.later = 1;
	CHECK(sonde_record_start(path, &newer.o) == -EINVAL);
	bool whole;
	CHECK(count(SONDE_TRACE_USER_LOG, &whole) == 0 && whole);
}

static void test_versions(void)
{
	static const enum sonde_record_version versions[] = {
		SONDE_RECORD_V1_21, SONDE_RECORD_V1_19, SONDE_RECORD_V1_11};
	for (size_t i = 0; i < 3; i++) {
		struct sonde_record_options o = {
			.size = sizeof(o), .version = versions[i], .monotonic_clock = i == 1};
		bool whole;
		sonde_record_start(path, &o);
		SONDE_RECORD_LOG(0, "key", "value");
		stopped();
		CHECK(count(SONDE_TRACE_USER_LOG, &whole) == 1 && whole);
	}
}

static void test_regions(void)
{
	static struct sonde_record_site a = SONDE_RECORD_SITE_INIT("a"),
					b = SONDE_RECORD_SITE_INIT("b"),
					also_a = SONDE_RECORD_SITE_INIT("a");
	bool whole;
	sonde_record_start(path, NULL);
	sonde_record_region_end(&a, 0); /* not open */
	sonde_record_region_begin(&a, 0);
	sonde_record_region_begin(&b, 7);
	sonde_record_region_end(&b, 8); /* another task's */
	sonde_record_region_end(&also_a, 0); /* closes b too; the name is what counts */
	sonde_record_region_end(&b, 7); /* closed already */
	struct sonde_record_stats st = stopped();
	CHECK(st.misused == 4);
	CHECK(count(SONDE_TRACE_USER_REGION_BEGIN, &whole) == 2 && whole);
	CHECK(count(SONDE_TRACE_USER_REGION_END, &whole) == 2 && whole);
}

static void test_misuse(void)
{
	struct sonde_record_fiber f = {0};
	bool whole;
	sonde_record_start(path, NULL);
	sonde_record_wake(); /* does not block */
	sonde_record_unblock(sonde_record_self()); /* runs */
	sonde_record_fiber_block(SONDE_RECORD_SYNC); /* no fiber runs */
	sonde_record_fiber_create(&f, 0, NULL, NULL, 0);
	sonde_record_fiber_start(&f); /* not a processor */
	sonde_record_proc_start();
	sonde_record_fiber_start(&f);
	sonde_record_fiber_start(&f); /* runs already */
	sonde_record_proc_stop(); /* with a fiber that runs */
	sonde_record_fiber_forget(&f);
	sonde_record_fiber_start(&f); /* no more */
	sonde_record_gc_end(); /* none began */
	sonde_record_stop_world_end(); /* as Go: silent */
	sonde_record_gc_begin();
	sonde_record_gc_begin(); /* twice */
	sonde_record_gc_end();
	sonde_record_task_end(0);
	sonde_record_block((enum sonde_record_reason)99);
	sonde_record_wake();
	struct sonde_record_stats st = stopped();
	CHECK(st.misused == 7);
	CHECK(count(SONDE_TRACE_GC_BEGIN, &whole) == 1 && whole);
}

static void test_strings(void)
{
	static struct sonde_record_site empty = SONDE_RECORD_SITE_INIT(""),
					key = SONDE_RECORD_SITE_INIT("k");
	size_t n = 200000;
	char *huge = malloc(n);
	bool whole;
	memset(huge, 'x', n);
	sonde_record_start(path, NULL);
	sonde_record_log(&key, 0, huge, n);
	sonde_record_log(&key, 0, "", 0);
	sonde_record_log(&empty, 0, "m", 1);
	huge[5000] = 0;
	struct sonde_record_site *long_name = calloc(1, sizeof(*long_name));
	long_name->name = huge;
	sonde_record_log(long_name, 0, "m", 1);
	sonde_record_thread_name("a name");
	sonde_record_label("");
	stopped();
	CHECK(count(SONDE_TRACE_USER_LOG, &whole) == 4 && whole);
	free(long_name);
	free(huge);
}

/* --- streams --- */

static void *reader(void *arg)
{
	char buffer[3];
	ssize_t n, sum = 0;
	while ((n = sonde_record_read(buffer, sizeof(buffer))) > 0)
		sum += n;
	__atomic_store_n((ssize_t *)arg, n < 0 ? n : sum, __ATOMIC_RELEASE);
	return NULL;
}

static void test_stream(void)
{
	pthread_t a, b;
	ssize_t of_a = 0, of_b = 0;
	char header[16];
	CHECK(sonde_record_start_stream(NULL) == 0);
	CHECK(sonde_record_read(header, sizeof(header)) == 16 &&
		!memcmp(header, "go 1.21 trace\0\0\0", 16));
	/* One of them waits for the first chunk, the other one is told so. */
	pthread_create(&a, NULL, reader, &of_a);
	pthread_create(&b, NULL, reader, &of_b);
	while (!__atomic_load_n(&of_a, __ATOMIC_ACQUIRE) &&
		!__atomic_load_n(&of_b, __ATOMIC_ACQUIRE))
		usleep(100);
	SONDE_RECORD_LOG(0, "key", "value");
	struct sonde_record_stats st = stopped();
	pthread_join(a, NULL);
	pthread_join(b, NULL);
	CHECK((of_a == -EBUSY) != (of_b == -EBUSY));
	CHECK_EQ(of_a == -EBUSY ? of_b : of_a, st.bytes);
	CHECK(sonde_record_read(header, 1) == -EINVAL);
}

int main(void)
{
	int fd = mkstemp(path);
	if (fd < 0)
		return 1;
	close(fd);
	RUN(test_session);
	RUN(test_versions);
	RUN(test_regions);
	RUN(test_misuse);
	RUN(test_strings);
	RUN(test_stream);
	unlink(path);
	return tap_end();
}
