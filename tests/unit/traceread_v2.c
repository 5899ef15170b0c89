/* The formats from 1.22 on: every record, every damage, out of composed bytes. */
#include <unistd.h>
#include "traceread/state.h"
#include "traceread/stream.h"
#include "build_trace.h"
#include "tap.h"

/* A trace read to its end: the kinds that came, the damage. */
struct result {
	struct sonde_trace_reader *reader;
	uint64_t kinds[256], n, n_made, n_forced;
	int64_t first_ns, last_ns;
};

static struct sonde_error *read_all(struct result *r)
{
	const struct sonde_trace_event *e;
	int64_t last = INT64_MIN;
	for (;;) {
		SONDE_TRY(sonde_trace_reader_next(r->reader, &e));
		if (!e)
			return NULL;
		CHECK(e->ns > last);
		last = r->last_ns = e->ns;
		r->n++;
		r->kinds[e->kind]++;
		r->n_made += e->flags & SONDE_TRACE_MADE ? 1 : 0;
		r->n_forced += e->flags & SONDE_TRACE_FORCED ? 1 : 0;
	}
}

static bool read_trace(struct sonde_buf *b, struct result *r)
{
	*r = (struct result){0};
	return tap_ok_(sonde_trace_reader_open_memory(b->data, b->len, NULL, &r->reader), __FILE__,
		       __LINE__, "open") &&
		tap_ok_(read_all(r), __FILE__, __LINE__, "read");
}

static void done(struct sonde_buf *b, struct result *r)
{
	sonde_trace_reader_free(r->reader);
	sonde_buf_deinit(b);
}

static uint64_t damage(const struct result *r, enum sonde_trace_damage_code code)
{
	return sonde_trace_reader_damages(r->reader)->counts[code];
}

/* The text of the first damage of this code. */
static const char *damage_text(const struct result *r, enum sonde_trace_damage_code code)
{
	const struct sonde_trace_damages *d = sonde_trace_reader_damages(r->reader);
	for (size_t i = 0; i < d->list.n; i++)
		if (d->list.items[i].code == code)
			return d->list.items[i].text;
	return "";
}

#define CHECK_DAMAGE(r, code, count, part)                                                \
	do {                                                                              \
		CHECK_EQ(damage((r), SONDE_TRACE_DAMAGE_##code), (count));                \
		if (count) {                                                              \
			const char *text_ = damage_text((r), SONDE_TRACE_DAMAGE_##code);  \
			CHECK(strstr(text_, (part)) || (printf("# %s\n", text_), false)); \
		}                                                                         \
	} while (0)

/* One generation of one thread, 10, that runs goroutine 1 on processor 0; then these events. */
static void one_thread(struct sonde_buf *b, unsigned version, struct sonde_buf *events)
{
	struct sonde_buf x = {0};
	trace_header(b, version);
	trace_running(&x, 10, 0, 1);
	sonde_buf_add(&x, events->data, events->len);
	sonde_buf_deinit(events);
	trace_batch(b, 1, 10, 1000, &x);
	trace_end(b, version, 1, 1000);
}

static void test_everything(void)
{
	static const unsigned versions[] = {22, 23, 25, 26};
	for (unsigned i = 0; i < 4; i++) {
		struct sonde_buf b = {0};
		struct result r;
		trace_everything(&b, versions[i]);
		REQUIRE(read_trace(&b, &r));
		const struct sonde_trace_info *info = sonde_trace_reader_info(r.reader);
		CHECK(sonde_trace_reader_is_whole(r.reader));
		CHECK_EQ(info->version, versions[i]);
		CHECK_EQ(info->n_generations, 2);
		CHECK_EQ(info->has_clock, versions[i] >= 25);
		CHECK_EQ(info->clock_mono_ns, versions[i] >= 25 ? 1000 : 0);
		CHECK_EQ(info->n_events, versions[i] >= 23 ? 48 : 41);
		CHECK_EQ(r.kinds[SONDE_TRACE_SYNC], 3);
		CHECK_EQ(r.kinds[SONDE_TRACE_CPU_SAMPLE], 1);
		/* A switch makes two more events, an end in a system call one more where it has a processor. */
		CHECK_EQ(r.n_made, 3 + 1 + (versions[i] >= 23 ? 4 : 0));
		CHECK_DAMAGE(&r, NO_ENTRY, 1, "goroutine 9 comes from a thread of C");
		CHECK_DAMAGE(&r, EXPERIMENT, versions[i] >= 23, "experiment 1: 16 bytes");
		CHECK_EQ(sonde_trace_reader_state(r.reader)->n_tasks, 0);
		done(&b, &r);
	}
}

static void test_states_and_strings(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e;
	size_t len;
	trace_event(&x, SONDE_TRACE_GO_CREATE, 5, 2, 1);
	trace_event(&x, SONDE_TRACE_GO_BLOCK, 4, 1);
	one_thread(&b, 26, &x);
	REQUIRE_OK(sonde_trace_reader_open_memory(b.data, b.len, NULL, &r));
	for (unsigned i = 0; i < 4; i++)
		REQUIRE_OK(sonde_trace_reader_next(r, &e));
	REQUIRE(e && e->kind == SONDE_TRACE_GO_CREATE);
	CHECK_EQ(e->ns, 1003 * 64);
	CHECK_EQ(e->m, 10);
	CHECK_EQ(e->p, 0);
	CHECK_EQ(e->g, 1);
	CHECK_EQ(e->subject_g, 5);
	CHECK_EQ(e->g_before, SONDE_TRACE_G_NONE);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_RUNNABLE);
	CHECK_EQ(sonde_trace_event_stack(e), 1);
	CHECK_EQ(sonde_trace_reader_state(r)->gs.items[e->subject_g_slot].id, 5);
	struct sonde_trace_frame f[SONDE_TRACE_MAX_FRAMES];
	REQUIRE(sonde_trace_stack(r, 2, f) == 1);
	CHECK_EQ(f[0].pc, 0x402000);
	CHECK_EQ(f[0].line, 18);
	uint32_t stack = sonde_trace_intern_stack(r, 2), name = sonde_trace_intern(r, f[0].func);
	CHECK_STR(sonde_trace_interned(r, name), "three");
	CHECK_EQ(sonde_trace_intern_stack(r, 2), stack);
	CHECK(sonde_trace_intern_stack(r, 1) != stack);
	CHECK_EQ(sonde_trace_intern_stack(r, 77), 0);
	CHECK_EQ(sonde_trace_interned_stack(r, stack, &len)[0].func, name);
	REQUIRE_OK(sonde_trace_reader_next(r, &e));
	REQUIRE(e && e->kind == SONDE_TRACE_GO_BLOCK);
	CHECK_EQ(e->g_before, SONDE_TRACE_G_RUNNING);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_WAITING);
	const char *reason = sonde_trace_string(r, e->args[0], &len);
	CHECK(len == 4 && !memcmp(reason, "four", 4));
	CHECK(!sonde_trace_string(r, 99, &len));
	sonde_trace_reader_free(r);
	sonde_buf_deinit(&b);
}

/* 1/3 GHz: every step is cut to whole nanoseconds by itself, and equal times are moved apart. */
static void test_times(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e;
	static const int64_t want[] = {333, 334, 335, 336, 337, 340};
	trace_header(&b, 22);
	trace_running(&x, 10, 0, 1);
	trace_event_at(&x, 2, SONDE_TRACE_HEAP_GOAL, (const uint64_t[5]){1});
	trace_event_at(&x, 2, SONDE_TRACE_HEAP_GOAL, (const uint64_t[5]){1});
	trace_event_at(&x, 22, SONDE_TRACE_HEAP_GOAL, (const uint64_t[5]){1});
	trace_batch(&b, 1, 10, 1000, &x);
	sonde_buf_char(&x, SONDE_TRACE_FREQUENCY);
	trace_varint(&x, UINT64_C(3000000000));
	trace_batch(&b, 1, TRACE_NO_M, 1000, &x);
	REQUIRE_OK(sonde_trace_reader_open_memory(b.data, b.len, NULL, &r));
	for (unsigned i = 0; i < 6; i++) {
		REQUIRE_OK(sonde_trace_reader_next(r, &e));
		REQUIRE(e != NULL);
		CHECK_EQ(e->ns, want[i]);
	}
	sonde_trace_reader_free(r);
	sonde_buf_deinit(&b);
}

static void test_truncated(void)
{
	struct sonde_buf whole = {0};
	trace_everything(&whole, 26);
	for (size_t len = 17; len < whole.len; len++) {
		struct sonde_buf b = {0};
		struct result r;
		sonde_buf_add(&b, whole.data, len);
		REQUIRE(read_trace(&b, &r));
		bool at_end = whole.data[len - 1] == SONDE_TRACE_END_OF_GENERATION;
		CHECK(at_end || !sonde_trace_reader_is_whole(r.reader));
		CHECK(at_end || damage(&r, SONDE_TRACE_DAMAGE_TRUNCATED) ||
			damage(&r, SONDE_TRACE_DAMAGE_NO_CLOCK));
		if (len > 60) /* what came before the cut is there */
			CHECK(sonde_trace_reader_info(r.reader)->n_events > 0);
		done(&b, &r);
	}
	sonde_buf_deinit(&whole);
}

static void test_nothing(void)
{
	struct sonde_trace_reader *r = NULL;
	struct sonde_error *err = sonde_trace_reader_open_memory("", 0, NULL, &r);
	CHECK(err && err->code == SONDE_TRUNCATED);
	sonde_error_free(err);
	err = sonde_trace_reader_open_memory("\177ELF and more of it", 19, NULL, &r);
	CHECK(err && err->code == SONDE_BAD_DATA &&
		strstr(err->message, "an ELF file: 19 bytes") == NULL);
	CHECK(err && strstr(err->message, "ELF"));
	sonde_error_free(err);
	err = sonde_trace_reader_open_memory("go 1.24 trace\0\0\0", 16, NULL, &r);
	CHECK(err && err->code == SONDE_UNSUPPORTED);
	sonde_error_free(err);
	struct sonde_buf b = {0};
	struct result res;
	trace_header(&b, 26);
	REQUIRE(read_trace(&b, &res));
	CHECK_DAMAGE(&res, TRUNCATED, 1, "no batch follows the header");
	done(&b, &res);
}

/* Text that a program wrote into the file, between two batches and in the middle of one. */
static void test_foreign_bytes(void)
{
	static const char text[] = "panic: written to the wrong file\n";
	struct sonde_buf whole = {0};
	trace_everything(&whole, 26);
	for (size_t at = 16; at < whole.len; at++) {
		struct sonde_buf b = {0};
		struct result r;
		sonde_buf_add(&b, whole.data, at);
		sonde_buf_add(&b, text, sizeof(text) - 1);
		sonde_buf_add(&b, whole.data + at, whole.len - at);
		REQUIRE(read_trace(&b, &r));
		CHECK(!sonde_trace_reader_is_whole(r.reader));
		CHECK_EQ(sonde_trace_reader_info(r.reader)->n_generations, 2);
		/* In the first head nothing is known yet that could tell a right number from a wrong one. */
		CHECK(sonde_trace_reader_info(r.reader)->n_events > 5 || (at > 16 && at < 32));
		done(&b, &r);
	}
	sonde_buf_deinit(&whole);
}

/* Bytes that are missing in the middle: the next batch is found within the one that promised more. */
static void test_hole(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	trace_header(&b, 26);
	trace_running(&x, 10, 0, 1);
	for (int i = 0; i < 100; i++)
		trace_event(&x, SONDE_TRACE_HEAP_ALLOC, 1 << 20);
	trace_batch(&b, 1, 10, 1000, &x);
	size_t hole = b.len - 100;
	trace_end(&b, 26, 1, 1000);
	memmove(b.data + hole, b.data + hole + 50, b.len - hole - 50);
	memmove(b.data + hole, b.data + hole + 50, b.len - hole - 100);
	b.len -= 100;
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, BAD_BATCH, 1, "bytes are missing in the middle of a batch");
	CHECK(r.kinds[SONDE_TRACE_HEAP_ALLOC] >= 75);
	CHECK_DAMAGE(&r, UNKNOWN_STRING, 0, "");
	done(&b, &r);
}

static void test_generations(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	trace_header(&b, 26);
	trace_running(&x, 10, 0, 1);
	trace_batch(&b, 1, 10, 1000, &x);
	trace_tables(&b, 1, 1000);
	trace_sync(&b, 26, 1, 1000); /* no mark */
	trace_running(&x, 10, 0, 1);
	trace_batch(&b, 2, 10, 2000, &x);
	trace_event(&x, SONDE_TRACE_HEAP_GOAL, 1);
	trace_batch(&b, 1, 10, 2000, &x); /* an old one */
	trace_end(&b, 26, 2, 2000);
	trace_running(&x, 10, 0, 1);
	trace_batch(&b, 4, 10, 3000, &x); /* 3 is missing */
	trace_end(&b, 26, 4, 3000);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, NO_END, 1, "generation 1 has no end mark, 2 begins");
	CHECK_DAMAGE(&r, LOST_GENERATION, 2, "a batch of generation 1 stands in generation 2");
	CHECK_EQ(r.kinds[SONDE_TRACE_PROC_STATUS], 3);
	done(&b, &r);
}

static void test_clock_and_duplicates(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	trace_header(&b, 25);
	trace_running(&x, 10, 0, 1);
	trace_batch(&b, 1, 10, 1000, &x);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, NO_FREQUENCY, 1, "64 ns a tick");
	CHECK_DAMAGE(&r, NO_CLOCK, 1, "generation 1");
	CHECK_EQ(r.last_ns, 1002 * 64 + 1);
	done(&b, &r);

	trace_header(&b, 25);
	trace_running(&x, 10, 0, 1);
	trace_batch(&b, 1, 10, 1000, &x);
	trace_end(&b, 25, 1, 1000);
	trace_sync(&b, 25, 1, 1000);
	trace_string(&x, 3, "again");
	trace_string(&x, UINT64_C(1) << 40, "far away");
	trace_batch(&b, 1, TRACE_NO_M, 1000, &x);
	trace_stack(&x, 1, 1, 1, 1, 1);
	trace_stack(&x, 9, 1, 500, 1, 1);
	trace_batch(&b, 1, TRACE_NO_M, 1000, &x);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, DUPLICATE_ID, 4, "in a generation: the first counts");
	CHECK_DAMAGE(&r, UNKNOWN_STRING, 1, "frame 0 of stack 9 names string 500");
	done(&b, &r);
}

static void test_unknown_ids_and_types(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	trace_event(&x, SONDE_TRACE_GO_LABEL, 77);
	trace_event(&x, SONDE_TRACE_PROCS_CHANGE, 2, 88);
	sonde_buf_str(&x, "zzzz");
	one_thread(&b, 26, &x);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, UNKNOWN_STRING, 1, "GoLabel names string 77");
	CHECK_DAMAGE(&r, UNKNOWN_STACK, 1, "ProcsChange names stack 88");
	CHECK_DAMAGE(&r, UNKNOWN_EVENT, 1, "type 122: the rest of the batch, 4 bytes");
	done(&b, &r);

	sonde_buf_char(&x, SONDE_TRACE_HEAP_ALLOC);
	sonde_buf_str(&x, "\1\377\377\377\377\377\377\377\377\377\377");
	one_thread(&b, 26, &x);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, BAD_BATCH, 1, "HeapAlloc cannot be read");
	done(&b, &r);

	sonde_buf_str(&x, "\4\5\1\3one\5\2\377\377\3too long");
	trace_header(&b, 26);
	trace_batch(&b, 1, TRACE_NO_M, 1000, &x);
	sonde_buf_str(&x, "\6\7\1\2");
	trace_batch(&b, 1, TRACE_NO_M, 1000, &x);
	sonde_buf_str(&x, "\2\3\1\377\1");
	trace_batch(&b, 1, TRACE_NO_M, 1000, &x);
	trace_sync(&b, 26, 1, 1000);
	sonde_buf_char(&b, SONDE_TRACE_END_OF_GENERATION);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, BAD_BATCH, 3, "not a string");
	done(&b, &r);
}

/* Each of these contradicts the state; Go's reader gives up at it, this one says so and goes on. */
static void test_contradictions(void)
{
	static const struct {
		enum sonde_trace_kind kind;
		uint64_t args[5];
		enum sonde_trace_damage_code code;
		const char *text;
	} cases[] = {
#define STATE SONDE_TRACE_DAMAGE_STATE
#define UNORDERED SONDE_TRACE_DAMAGE_UNORDERED
		{SONDE_TRACE_GO_CREATE, {1, 1, 1}, STATE, "goroutine 1 that already exists"},
		{SONDE_TRACE_GO_CREATE_SYSCALL, {5}, STATE,
			"expected no goroutine but had one (1)"},
		{SONDE_TRACE_GO_START, {1, 1}, UNORDERED, "which is running (seq 0)"},
		{SONDE_TRACE_GO_START, {9, 1}, UNORDERED,
			"goroutine 9 (seq 1), which is not there"},
		{SONDE_TRACE_GO_UNBLOCK, {1, 1, 0}, UNORDERED, "GoUnblock of goroutine 1"},
		{SONDE_TRACE_GO_SYSCALL_BEGIN, {7, 1}, STATE,
			"sequence 7 of proc 0 does not follow 0"},
		{SONDE_TRACE_GO_SYSCALL_END, {0}, STATE, "that's running, not in a syscall"},
		{SONDE_TRACE_GO_SYSCALL_END_BLOCKED, {0}, STATE,
			"that's running, not in a syscall"},
		{SONDE_TRACE_GO_DESTROY_SYSCALL, {0}, STATE, "that's running, not in a syscall"},
		{SONDE_TRACE_PROC_START, {0, 1}, UNORDERED, "ProcStart of proc 0"},
		{SONDE_TRACE_PROC_START, {4, 1}, UNORDERED, "proc 4 (seq 1), which is not there"},
		{SONDE_TRACE_PROC_STEAL, {0, 1, 10}, UNORDERED, "ProcSteal of proc 0"},
		{SONDE_TRACE_PROC_STATUS, {0, 2}, STATE, "proc 0: old running vs. new idle"},
		{SONDE_TRACE_PROC_STATUS, {3, 9}, STATE, "invalid status 9 of proc 3"},
		{SONDE_TRACE_GO_STATUS, {1, 10, 4}, STATE,
			"goroutine 1: old running vs. new waiting"},
		{SONDE_TRACE_GO_STATUS, {3, 10, 9}, STATE, "invalid status 9 of goroutine 3"},
		{SONDE_TRACE_GO_STATUS, {3, UINT64_MAX, 3}, STATE, "in a syscall without a thread"},
		{SONDE_TRACE_GO_STATUS, {3, 10, 3}, SONDE_TRACE_N_DAMAGES, ""},
		{SONDE_TRACE_STW_END, {0}, STATE, "STWEnd: goroutine 1 is in none"},
		{SONDE_TRACE_GC_END, {0}, STATE, "the collector is undetermined"},
		{SONDE_TRACE_GC_END, {9}, UNORDERED, "GCEnd"},
		{SONDE_TRACE_GC_SWEEP_END, {1, 1}, STATE, "proc 0 does not sweep"},
		{SONDE_TRACE_GC_SWEEP_ACTIVE, {9}, STATE, "unknown proc 9"},
		{SONDE_TRACE_GC_MARK_ASSIST_END, {0}, STATE, "goroutine 1 is in none"},
		{SONDE_TRACE_GC_MARK_ASSIST_ACTIVE, {9}, STATE, "uninitialized goroutine 9"},
		{SONDE_TRACE_GO_SWITCH, {9, 1}, UNORDERED, "GoSwitch of goroutine 9"},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct sonde_buf b = {0}, x = {0};
		struct result r;
		uint64_t args[5];
		memcpy(args, cases[i].args, sizeof(args));
		if (cases[i].kind == SONDE_TRACE_GC_END && !args[0])
			args[0] = 1; /* follows the 0 that was never set */
		trace_event_at(&x, 1, cases[i].kind, args);
		trace_event(&x, SONDE_TRACE_HEAP_GOAL, 1);
		one_thread(&b, 26, &x);
		REQUIRE(read_trace(&b, &r));
		bool fine = cases[i].code == SONDE_TRACE_N_DAMAGES;
		CHECK_EQ(r.n_forced >= 1, !fine);
		CHECK_EQ(r.kinds[cases[i].kind] >= 1, true); /* forced, not dropped */
		CHECK_EQ(r.kinds[SONDE_TRACE_HEAP_GOAL], 1);
		if (!fine) {
			CHECK(damage(&r, cases[i].code) >= 1);
			const char *text = damage_text(&r, cases[i].code);
			CHECK(strstr(text, cases[i].text) ||
				(printf("# %zu: %s\n", i, text), false));
		}
		done(&b, &r);
	}
}

/* An event that is forced leaves nothing behind that the next ones stumble over. */
static void test_goes_on_after_force(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	/* The block of goroutine 1 is missing. */
	trace_event(&x, SONDE_TRACE_GO_CREATE, 2, 1, 1);
	trace_event(&x, SONDE_TRACE_GO_START, 2, 1);
	trace_event(&x, SONDE_TRACE_GO_UNBLOCK, 1, 1, 0);
	trace_event(&x, SONDE_TRACE_GO_BLOCK, 1, 1);
	trace_event(&x, SONDE_TRACE_GO_START, 1, 2);
	trace_event(&x, SONDE_TRACE_GO_BLOCK, 1, 1);
	one_thread(&b, 26, &x);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, STATE, 1, "GoStart: expected no goroutine but had one (1)");
	CHECK_EQ(r.n_forced, 1);
	CHECK_EQ(damage(&r, SONDE_TRACE_DAMAGE_UNORDERED), 0);
	done(&b, &r);
}

static void test_tasks_and_regions(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	trace_event(&x, SONDE_TRACE_USER_TASK_BEGIN, 5, 0, 1, 1);
	trace_event(&x, SONDE_TRACE_USER_TASK_BEGIN, 5, 0, 1, 1);
	trace_event(&x, SONDE_TRACE_USER_TASK_END, 6, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_END, 5, 1, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_BEGIN, 5, 1, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_BEGIN, 5, 2, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_END, 5, 1, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_BEGIN, 5, 3, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_END, 6, 3, 1);
	one_thread(&b, 22, &x);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, STATE, 1, "task ID conflict: 5");
	CHECK_DAMAGE(&r, REGION, 2,
		"misuse of region in goroutine 1: 'one' of task 5 ends, but the innermost is "
		"'two'");
	CHECK_DAMAGE(&r, OPEN_TASK, 1, "task 5 'one'");
	CHECK_DAMAGE(&r, OPEN_REGION, 1, "goroutine 1: region 'three' of task 5");
	done(&b, &r);
}

static void test_time_backwards(void)
{
	struct sonde_buf b = {0}, x = {0};
	struct result r;
	trace_header(&b, 22);
	trace_running(&x, 10, 0, 1);
	trace_batch(&b, 1, 10, 1000, &x);
	trace_event(&x, SONDE_TRACE_HEAP_GOAL, 1);
	trace_batch(&b, 1, 10, 500, &x);
	trace_end(&b, 22, 1, 1000);
	REQUIRE(read_trace(&b, &r));
	CHECK_DAMAGE(&r, TIME, 1, "32128 ns before the end");
	CHECK(sonde_trace_reader_is_whole(r.reader)); /* the order does not come from it */
	CHECK_EQ(sonde_trace_reader_info(r.reader)->n_clamped, 1);
	done(&b, &r);
}

/* The same trace through a pipe and compressed. */
static void test_pipe(void)
{
	struct sonde_buf b = {0};
	struct result r;
	char path[64];
	int fds[2];
	trace_everything(&b, 26);
	REQUIRE(pipe(fds) == 0);
	REQUIRE(write(fds[1], b.data, b.len) == (ssize_t)b.len);
	close(fds[1]);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fds[0]);
	r = (struct result){0};
	REQUIRE_OK(sonde_trace_reader_open(path, NULL, &r.reader));
	REQUIRE_OK(read_all(&r));
	close(fds[0]);
	CHECK(sonde_trace_reader_is_whole(r.reader));
	CHECK_EQ(sonde_trace_reader_info(r.reader)->n_events, 48);
	done(&b, &r);
}

int main(void)
{
	RUN(test_everything);
	RUN(test_states_and_strings);
	RUN(test_times);
	RUN(test_truncated);
	RUN(test_nothing);
	RUN(test_foreign_bytes);
	RUN(test_hole);
	RUN(test_generations);
	RUN(test_clock_and_duplicates);
	RUN(test_unknown_ids_and_types);
	RUN(test_contradictions);
	RUN(test_goes_on_after_force);
	RUN(test_tasks_and_regions);
	RUN(test_time_backwards);
	RUN(test_pipe);
	return tap_end();
}
