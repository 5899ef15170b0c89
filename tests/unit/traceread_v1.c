/* src/traceread/v1*.c over traces composed in the test. */
#include "build_trace_v1.h"
#include "tap.h"
#include "traceread/state.h"
#include "traceread/stream.h"

static const unsigned versions[] = {5, 7, 8, 9, 10, 11, 19, 21};
enum { N_VERSIONS = sizeof(versions) / sizeof(versions[0]), MAX_EVENTS = 512 };

/* A trace that was read whole: its events, and the reader that still has its strings. */
struct read {
	struct sonde_trace_reader *r;
	struct sonde_trace_event events[MAX_EVENTS];
	size_t n;
};

static void read_free(struct read *t)
{
	sonde_trace_reader_free(t->r);
	t->r = NULL;
}

static bool read_bytes(struct read *t, const void *data, size_t len)
{
	const struct sonde_trace_event *e;
	*t = (struct read){0};
	if (!tap_ok_(sonde_trace_reader_open_memory(data, len, NULL, &t->r), __FILE__, __LINE__,
		    "open"))
		return false;
	for (;;) {
		if (!tap_ok_(sonde_trace_reader_next(t->r, &e), __FILE__, __LINE__, "next"))
			return false;
		if (!e)
			return true;
		if (t->n < MAX_EVENTS)
			t->events[t->n++] = *e;
	}
}

static bool read_buf(struct read *t, const struct sonde_buf *b)
{
	return read_bytes(t, b->data, b->len);
}

/* The n-th event of a type of the file, or NULL. */
static const struct sonde_trace_event *nth(const struct read *t, unsigned wire, unsigned n)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->events[i].wire == wire && !n--)
			return &t->events[i];
	return NULL;
}

static unsigned count(const struct read *t, unsigned wire)
{
	unsigned n = 0;
	while (nth(t, wire, n))
		n++;
	return n;
}

static uint64_t damages(const struct read *t, enum sonde_trace_damage_code code)
{
	return sonde_trace_reader_damages(t->r)->counts[code];
}

static const struct sonde_trace_damage *first(
	const struct read *t, enum sonde_trace_damage_code code)
{
	sonde_vec_foreach (d, &sonde_trace_reader_damages(t->r)->list)
		if (d->code == code)
			return d;
	return NULL;
}

static const char *text(const struct read *t, uint64_t id)
{
	static char copy[256];
	size_t len;
	const char *s = sonde_trace_string(t->r, id, &len);
	if (!s)
		return "(none)";
	snprintf(copy, sizeof(copy), "%.*s", (int)len, s);
	return copy;
}

/* The runtime's beginning: processor 0 with thread 5, goroutines 1 to n that are runnable, 1 runs. */
static void begin(struct sonde_buf *b, unsigned version, unsigned n)
{
	build_v1_header(b, version);
	build_v1_batch(b, version, 0, 0, 1000);
	build_v1_event(b, version, PROC_START, 0, 5);
	for (unsigned g = 1; g <= n; g++)
		build_v1_event(b, version, GO_CREATE, 1, g, 0, 0);
	if (version < 7)
		build_v1_event(b, version, GO_START, 1, 1);
	else
		build_v1_event(b, version, GO_START, 1, 1, 1);
}

static void end(struct sonde_buf *b, unsigned version)
{
	build_v1_batch(b, version, 0, 0, 100000);
	build_v1_frequency(b, version, 1000000000);
}

/* --- what is whole --- */

static void every_record_of_every_version(void)
{
	for (unsigned i = 0; i < N_VERSIONS; i++) {
		unsigned v = versions[i];
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		struct read t;
		build_v1_everything(&b, v);
		REQUIRE(read_buf(&t, &b));
		CHECK(sonde_trace_reader_is_whole(t.r));
		const struct sonde_trace_info *info = sonde_trace_reader_info(t.r);
		CHECK_EQ(info->version, v);
		CHECK_EQ(info->n_events,
			v == 5            ? 55
				: v == 7  ? 55
				: v == 8  ? 58
				: v <= 10 ? 60
				: v == 11 ? 65
					  : 66);
		CHECK_EQ(info->n_forced, 0);
		for (unsigned type = 4; type < SONDE_TRACE_V1_N_TYPES; type++) {
			const struct sonde_trace_v1_spec *spec = &sonde_trace_v1_specs[type];
			bool absent = spec->since > v || type == SONDE_TRACE_V1_TIMER_GOROUTINE ||
				type == SONDE_TRACE_V1_STRING ||
				type == SONDE_TRACE_V1_GO_SYSEXIT_LOCAL ||
				(type == SONDE_TRACE_V1_GO_START && false);
			if (!count(&t, type) != absent)
				printf("# 1.%u: %s\n", v, spec->name);
			CHECK_EQ(!count(&t, type), absent);
		}
		/* The ends are the stream's own. */
		CHECK_EQ(t.events[0].kind, SONDE_TRACE_SYNC);
		CHECK_EQ(t.events[t.n - 1].kind, SONDE_TRACE_SYNC);
		for (size_t k = 1; k < t.n; k++)
			CHECK(t.events[k].ns >= t.events[k - 1].ns);
		read_free(&t);
	}
}

static void statuses_and_context(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	build_v1_everything(&b, 21);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_GO_CREATE, 0);
	REQUIRE(e);
	CHECK_EQ(e->kind, SONDE_TRACE_GO_CREATE);
	CHECK_EQ(e->subject_g, 1);
	CHECK_EQ(e->g_before, SONDE_TRACE_G_NONE);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_RUNNABLE);
	CHECK_EQ(e->m, 77);
	CHECK_EQ(e->p, 0);
	CHECK_EQ(e->g, SONDE_TRACE_NO_ID);
	e = nth(&t, SONDE_TRACE_V1_GO_IN_SYSCALL, 0);
	CHECK_EQ(e->args[2], SONDE_TRACE_G_SYSCALL);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_SYSCALL);
	e = nth(&t, SONDE_TRACE_V1_GO_SYSCALL, 0);
	CHECK_EQ(e->g, 1);
	CHECK_EQ(e->g_before, SONDE_TRACE_G_RUNNING);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_RUNNING);
	e = nth(&t, SONDE_TRACE_V1_GO_SYSBLOCK, 0);
	CHECK_EQ(e->kind, SONDE_TRACE_GO_BLOCK);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_SYSCALL);
	CHECK_STR(text(&t, e->args[0]), "syscall");
	e = nth(&t, SONDE_TRACE_V1_GO_SYSEXIT, 0);
	CHECK_EQ(e->p, SONDE_TRACE_NO_ID);
	CHECK_EQ(e->g_after, SONDE_TRACE_G_RUNNABLE);
	e = nth(&t, SONDE_TRACE_V1_GO_BLOCK_SEND, 0);
	CHECK_STR(text(&t, e->args[0]), "chan send");
	CHECK_EQ(e->args[1], 1);
	e = nth(&t, SONDE_TRACE_V1_GO_START_LABEL, 0);
	CHECK_EQ(e[1].kind, SONDE_TRACE_GO_LABEL);
	CHECK_EQ(e[1].flags, SONDE_TRACE_MADE);
	CHECK_STR(text(&t, e[1].args[0]), "name");
	e = nth(&t, SONDE_TRACE_V1_USER_REGION, 0);
	CHECK_EQ(e->kind, SONDE_TRACE_USER_REGION_BEGIN);
	CHECK_STR(text(&t, e->args[1]), "name");
	CHECK_EQ(nth(&t, SONDE_TRACE_V1_USER_REGION, 1)->kind, SONDE_TRACE_USER_REGION_END);
	e = nth(&t, SONDE_TRACE_V1_USER_LOG, 0);
	CHECK_EQ(e->args[0], 9);
	CHECK_STR(text(&t, e->args[2]), "hello");
	CHECK_EQ(e->args[3], 1);
	e = nth(&t, SONDE_TRACE_V1_USER_TASK_END, 0);
	CHECK_STR(text(&t, e->args[3]), "name");
	e = nth(&t, SONDE_TRACE_V1_STW_DONE, 0);
	CHECK_STR(text(&t, e->args[0]), "GC mark termination");
	e = nth(&t, SONDE_TRACE_V1_PROC_STOP, 0);
	CHECK_EQ(e->p_before, SONDE_TRACE_P_RUNNING);
	CHECK_EQ(e->p_after, SONDE_TRACE_P_IDLE);
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	CHECK_EQ(sonde_trace_stack(t.r, 1, frames), 2);
	CHECK_EQ(frames[1].pc, 0x400001);
	CHECK_EQ(frames[1].line, 2);
	CHECK_STR(text(&t, frames[1].func), "main.f");
	CHECK_STR(text(&t, frames[1].file), "/src/f.go");
	CHECK_EQ(sonde_trace_stack(t.r, 2, frames), 0);
	/* What is left: 1 is runnable, 3 waits, 4 stopped for good; 2 ended. */
	CHECK_EQ(sonde_trace_reader_state(t.r)->n_gs, 3);
	read_free(&t);
}

static void nanoseconds_as_go_computes_them(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	const uint64_t base = 123456789012345, hz = 40625123;
	build_v1_header(&b, 21);
	build_v1_batch(&b, 21, 0, 0, base);
	for (uint64_t i = 0; i < 40; i++)
		build_v1_event(&b, 21, HEAP_ALLOC, i * i * 7919, i);
	build_v1_batch(&b, 21, 0, 0, 0);
	build_v1_frequency(&b, 21, hz);
	REQUIRE(read_buf(&t, &b));
	CHECK_EQ(count(&t, SONDE_TRACE_V1_HEAP_ALLOC), 40);
	int64_t ticks = 0;
	for (unsigned i = 0; i < 40; i++) {
		ticks += (int64_t)i * i * 7919;
		int64_t want = (int64_t)((double)ticks * (1e9 / (double)(int64_t)hz));
		CHECK_EQ(nth(&t, SONDE_TRACE_V1_HEAP_ALLOC, i)->ns, want);
	}
	read_free(&t);
}

static void system_calls_end_at_their_real_time(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 19, 2);
	build_v1_event(&b, 19, GO_SYSCALL, 10, 0);
	build_v1_event(&b, 19, GO_SYSBLOCK, 10);
	build_v1_event(&b, 19, GO_START, 10, 2, 1);
	for (int i = 0; i < 10; i++)
		build_v1_event(&b, 19, HEAP_ALLOC, 100, i);
	/* Long behind, of a time between two heaps; the equal one comes first. */
	build_v1_event(&b, 19, GO_SYSEXIT, 5000, 1, 2, 1333);
	build_v1_event(&b, 19, GO_SCHED, 1, 0);
	build_v1_event(&b, 19, GO_START, 1, 1, 3);
	end(&b, 19);
	REQUIRE(read_buf(&t, &b));
	CHECK(sonde_trace_reader_is_whole(t.r));
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_GO_SYSEXIT, 0);
	REQUIRE(e);
	CHECK_EQ(e->ns, 333);
	CHECK_EQ(e[-1].args[0], 2);
	CHECK_EQ(e[1].args[0], 3);
	CHECK_EQ(e->subject_g, 1);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_SYSEXIT), 1);
	read_free(&t);
}

/* Both at the same time: the start on the processor that stands first needs the wakeup on the other. */
static void sequence_numbers_decide_equal_times(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 2);
	build_v1_event(&b, 21, GO_SCHED, 10, 0);
	build_v1_event(&b, 21, GO_START, 1000 - 13, 2, 3);
	build_v1_batch(&b, 21, 1, 0, 1100);
	build_v1_event(&b, 21, PROC_START, 0, 6);
	build_v1_event(&b, 21, GO_START, 10, 2, 1);
	build_v1_event(&b, 21, GO_BLOCK, 10, 0);
	build_v1_event(&b, 21, GO_START, 10, 1, 2);
	build_v1_event(&b, 21, GO_UNBLOCK, 2000 - 1130, 2, 2, 0);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_event *start = nth(&t, SONDE_TRACE_V1_GO_START, 3),
				       *wakeup = nth(&t, SONDE_TRACE_V1_GO_UNBLOCK, 0);
	REQUIRE(start && wakeup);
	CHECK_EQ(start->ns, wakeup->ns);
	CHECK_EQ(start->subject_g, 2);
	CHECK(wakeup < start);
	CHECK(sonde_trace_reader_is_whole(t.r));
	read_free(&t);
}

static void samples_come_by_their_own_time(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 19, 1);
	build_v1_event(&b, 19, HEAP_ALLOC, 100, 1);
	build_v1_event(&b, 19, HEAP_ALLOC, 100, 2);
	build_v1_batch(&b, 19, SONDE_TRACE_NO_ID, 0, 9000);
	build_v1_event(&b, 19, CPU_SAMPLE, 1, 1150, 0, 1, 0);
	build_v1_event(&b, 19, CPU_SAMPLE, 1, 1050, SONDE_TRACE_NO_ID, 0, 0);
	end(&b, 19);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_CPU_SAMPLE, 0);
	REQUIRE(e && nth(&t, SONDE_TRACE_V1_CPU_SAMPLE, 1));
	CHECK_EQ(e->ns, 50);
	CHECK_EQ(e->p, SONDE_TRACE_NO_ID);
	CHECK_EQ(e->g, SONDE_TRACE_NO_ID);
	CHECK_EQ(e[1].wire, SONDE_TRACE_V1_HEAP_ALLOC);
	e = nth(&t, SONDE_TRACE_V1_CPU_SAMPLE, 1);
	CHECK_EQ(e->ns, 150);
	CHECK_EQ(e->p, 0);
	CHECK_EQ(e->p_slot, 0);
	CHECK_EQ(e->g, 1);
	read_free(&t);
}

static void futile_wakeups_go(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 7, 2);
	build_v1_event(&b, 7, GO_SCHED, 1, 0);
	build_v1_event(&b, 7, GO_START, 1, 2, 1);
	build_v1_event(&b, 7, GO_BLOCK_RECV, 1, 0);
	build_v1_event(&b, 7, GO_START, 1, 1, 2);
	for (int i = 0; i < 2; i++) {
		/* The second one is in vain, with a preemption in it. */
		build_v1_event(&b, 7, GO_UNBLOCK_LOCAL, 1, 2, 0);
		build_v1_event(&b, 7, GO_SCHED, 1, 0);
		build_v1_event(&b, 7, GO_START_LOCAL, 1, 2);
		if (i) {
			build_v1_event(&b, 7, GO_PREEMPT, 1, 0);
			build_v1_event(&b, 7, GO_START_LOCAL, 1, 2);
			build_v1_event(&b, 7, FUTILE_WAKEUP, 1);
		}
		build_v1_event(&b, 7, GO_BLOCK_RECV, 1, 0);
		build_v1_event(&b, 7, GO_START_LOCAL, 1, 1);
	}
	end(&b, 7);
	REQUIRE(read_buf(&t, &b));
	CHECK(sonde_trace_reader_is_whole(t.r));
	CHECK_EQ(count(&t, SONDE_TRACE_V1_FUTILE_WAKEUP), 0);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_UNBLOCK_LOCAL), 1);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_BLOCK_RECV), 2);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_PREEMPT), 0);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_START_LOCAL), 3);
	read_free(&t);
}

static void stops_have_the_names_of_their_version(void)
{
	static const struct {
		unsigned version;
		uint64_t kind;
		const char *name;
	} cases[] = {{9, 0, "mark termination"}, {10, 0, "mark termination"},
		{11, 1, "sweep termination"}, {21, 0, "unknown"}, {21, 9, "GOMAXPROCS"},
		{21, 16, "ResetDebugLog (test)"}, {21, 17, "unknown"}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		struct read t;
		unsigned v = cases[i].version;
		begin(&b, v, 1);
		if (v < 10)
			build_v1_event(&b, v, STW_START, 1);
		else
			build_v1_event(&b, v, STW_START, 1, cases[i].kind);
		build_v1_event(&b, v, STW_DONE, 1);
		end(&b, v);
		REQUIRE(read_buf(&t, &b));
		CHECK(sonde_trace_reader_is_whole(t.r));
		const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_STW_START, 0);
		REQUIRE(e);
		CHECK_STR(text(&t, e->args[0]), cases[i].name);
		CHECK_EQ(e->g, SONDE_TRACE_NO_ID);
		read_free(&t);
	}
}

static void version_5_orders_by_sequence_numbers(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	build_v1_header(&b, 5);
	/* Equal times throughout. */
	build_v1_batch(&b, 5, 1, 1, 1000);
	build_v1_event(&b, 5, HEAP_ALLOC, 0, 2);
	build_v1_event(&b, 5, HEAP_ALLOC, 0, 3);
	build_v1_batch(&b, 5, 0, 0, 1000);
	build_v1_event(&b, 5, HEAP_ALLOC, 0, 1);
	build_v1_event(&b, 5, GO_CREATE, 0, 7, 0x1234, 0);
	const uint64_t args[] = {4};
	build_v1_event_(&b, 5, SONDE_TRACE_V1_HEAP_ALLOC, 5, 0, args, 1);
	build_v1_batch(&b, 5, 0, 0, 1000);
	build_v1_stack(&b, 5, 3, 2, 0x5000);
	build_v1_frequency(&b, 5, 1000000000);
	REQUIRE(read_buf(&t, &b));
	for (unsigned i = 0; i < 4; i++) {
		const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_HEAP_ALLOC, i);
		REQUIRE(e);
		CHECK_EQ(e->args[0], i + 1);
	}
	/* Addresses only; and a goroutine's entry is one. */
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	CHECK_EQ(sonde_trace_stack(t.r, 3, frames), 2);
	CHECK_EQ(frames[1].pc, 0x5001);
	CHECK_EQ(frames[1].func, 0);
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_GO_CREATE, 0);
	CHECK_EQ(sonde_trace_stack(t.r, e->args[1], frames), 1);
	CHECK_EQ(frames[0].pc, 0x1235);
	uint32_t id = sonde_trace_intern_stack(t.r, e->args[1]);
	CHECK(id && id == sonde_trace_intern_stack(t.r, e->args[1]));
	read_free(&t);
}

static void records_with_any_length_form(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 1);
	/* Two arguments behind a length, and a string whose top bits say something else. */
	build_u8(&b, SONDE_TRACE_V1_HEAP_ALLOC | 3 << 6);
	build_u8(&b, 2);
	build_u8(&b, 1);
	build_u8(&b, 42);
	build_u8(&b, SONDE_TRACE_V1_STRING | 3 << 6);
	build_u8(&b, 8);
	build_u8(&b, 1);
	build_u8(&b, 'x');
	/* Padded varints, as the runtime writes some. */
	uint8_t padded[SONDE_TRACE_MAX_VARINT_BYTES];
	sonde_trace_varint_encode_padded(padded, 43);
	build_u8(&b, SONDE_TRACE_V1_HEAP_ALLOC | 1 << 6);
	build_u8(&b, 1);
	sonde_buf_add(&b, padded, sizeof(padded));
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	CHECK(sonde_trace_reader_is_whole(t.r));
	CHECK_EQ(nth(&t, SONDE_TRACE_V1_HEAP_ALLOC, 0)->args[0], 42);
	CHECK_EQ(nth(&t, SONDE_TRACE_V1_HEAP_ALLOC, 1)->args[0], 43);
	CHECK_STR(text(&t, 8), "x");
	read_free(&t);
}

static void ids_need_not_be_dense(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	static const uint64_t ids[] = {1000000000000, 5, 77, 6};
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	begin(&b, 21, 1);
	for (unsigned i = 0; i < 4; i++) {
		char name[2] = {(char)('a' + i), 0};
		build_v1_string(&b, ids[i], name);
		build_v1_stack(&b, 21, ids[i], i + 1, 100 * i);
	}
	build_v1_stack(&b, 21, 8, 250, 1); /* the stream keeps the innermost */
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	for (unsigned i = 0; i < 4; i++) {
		char name[2] = {(char)('a' + i), 0};
		CHECK_STR(text(&t, ids[i]), name);
		CHECK_EQ(sonde_trace_stack(t.r, ids[i], frames), i + 1);
	}
	CHECK_EQ(sonde_trace_stack(t.r, 7, frames), 0);
	CHECK_EQ(sonde_trace_stack(t.r, 8, frames), SONDE_TRACE_MAX_FRAMES);
	CHECK_STR(text(&t, 7), "(none)");
	read_free(&t);
}

/* --- what is damaged --- */

static void a_missing_tail(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 2);
	size_t at = 0;
	for (int i = 0; i < 20; i++) {
		at = b.len;
		build_v1_event(&b, 21, GO_SYSCALL, 300, 0);
		build_v1_event(&b, 21, HEAP_ALLOC, 300, 1 << 20);
	}
	at = b.len;
	build_v1_event(&b, 21, HEAP_ALLOC, 300, 1 << 20);
	b.len -= 2;
	REQUIRE(read_buf(&t, &b));
	CHECK_EQ(count(&t, SONDE_TRACE_V1_HEAP_ALLOC), 20);
	CHECK(!sonde_trace_reader_is_whole(t.r));
	const struct sonde_trace_damage *d = first(&t, SONDE_TRACE_DAMAGE_TRUNCATED);
	REQUIRE(d);
	CHECK_EQ(d->offset, at);
	CHECK_EQ(d->bytes, b.len - at);
	CHECK_EQ(d->p, 0);
	CHECK_EQ(d->g, 1);
	CHECK_EQ(d->ns, 12003);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_NO_FREQUENCY), 1);
	CHECK_EQ(sonde_trace_reader_info(t.r)->n_events, 44);
	read_free(&t);
}

/* Every prefix of a trace is read without a fault, and never yields an event that the whole one has not. */
static void every_prefix(void)
{
	for (unsigned i = 0; i < N_VERSIONS; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_v1_everything(&b, versions[i]);
		for (size_t len = SONDE_TRACE_HEADER_BYTES; len < b.len; len++) {
			struct read t;
			char *exact = malloc(len);
			memcpy(exact, b.data, len);
			REQUIRE(read_bytes(&t, exact, len));
			CHECK(!sonde_trace_reader_is_whole(t.r));
			read_free(&t);
			free(exact);
		}
	}
}

/* So is a trace with any byte replaced. */
static void every_byte_replaced(void)
{
	static const uint8_t with[] = {0, 0x7f, 0x80, 0xff, 0x41, 0xc3};
	for (unsigned i = 0; i < N_VERSIONS; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_v1_everything(&b, versions[i]);
		for (size_t at = SONDE_TRACE_HEADER_BYTES; at < b.len; at++) {
			char was = b.data[at];
			for (unsigned k = 0; k < sizeof(with); k++) {
				struct read t;
				b.data[at] = (char)with[k];
				REQUIRE(read_buf(&t, &b));
				read_free(&t);
			}
			b.data[at] = was;
		}
	}
}

static void foreign_bytes_in_the_middle(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	static const char other[] = "{\"level\":\"info\",\"msg\":\"listening\"}\n";
	begin(&b, 21, 3);
	build_v1_event(&b, 21, HEAP_ALLOC, 10, 1);
	size_t at = b.len;
	sonde_buf_str(&b, other);
	build_v1_batch(&b, 21, 1, 0, 2000);
	build_v1_event(&b, 21, PROC_START, 10, 6);
	build_v1_event(&b, 21, GO_START, 10, 2, 1);
	build_v1_event(&b, 21, HEAP_ALLOC, 10, 2);
	build_v1_batch(&b, 21, 0, 0, 3000);
	build_v1_event(&b, 21, HEAP_ALLOC, 10, 3);
	/* What ran there is not known any more. */
	build_v1_event(&b, 21, GO_BLOCK, 10, 0);
	build_v1_event(&b, 21, GO_START, 10, 3, 1);
	build_v1_event(&b, 21, GO_END, 10);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_damage *d = first(&t, SONDE_TRACE_DAMAGE_FOREIGN_BYTES);
	REQUIRE(d);
	CHECK_EQ(d->offset, at);
	CHECK_EQ(d->bytes, sizeof(other) - 1);
	CHECK_EQ(d->g, 1);
	CHECK_EQ(d->ns, 14);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_HEAP_ALLOC), 3);
	CHECK_EQ(nth(&t, SONDE_TRACE_V1_HEAP_ALLOC, 2)->g, SONDE_TRACE_NO_ID);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_AFTER_LOSS), 1);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_STATE), 0);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_UNORDERED), 0);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_END), 1);
	read_free(&t);
}

/* What needs a lost event is held back for 10 ms, no longer. */
static void a_lost_event_does_not_stall_the_rest(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 2);
	for (int i = 0; i < 10; i++)
		build_v1_event(&b, 21, HEAP_ALLOC, 5000000, i);
	build_v1_batch(&b, 21, 1, 0, 2000);
	build_v1_event(&b, 21, PROC_START, 10, 6);
	build_v1_event(&b, 21, GO_START, 10, 99, 7); /* no one made it */
	build_v1_event(&b, 21, GO_BLOCK_NET, 10, 0);
	build_v1_event(&b, 21, GO_START, 30000000, 2, 1);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_GO_START, 1);
	REQUIRE(e);
	CHECK_EQ(e->subject_g, 99);
	CHECK(e->flags & SONDE_TRACE_FORCED);
	CHECK_EQ(e[-1].args[0], 1);
	CHECK(e->flags & SONDE_TRACE_CLAMPED);
	CHECK_EQ(nth(&t, SONDE_TRACE_V1_GO_BLOCK_NET, 0)->g_after, SONDE_TRACE_G_WAITING);
	const struct sonde_trace_damage *d = first(&t, SONDE_TRACE_DAMAGE_UNORDERED);
	REQUIRE(d);
	CHECK_EQ(d->g, 99);
	CHECK_EQ(d->p, 1);
	CHECK_EQ(d->offset, e->offset);
	CHECK_EQ(sonde_trace_reader_info(t.r)->n_forced, 1);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_START), 3);
	CHECK(!(nth(&t, SONDE_TRACE_V1_GO_START, 2)->flags & SONDE_TRACE_CLAMPED));
	read_free(&t);
}

static void time_that_goes_backwards(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 2);
	build_v1_event(&b, 21, HEAP_ALLOC, 500, 1);
	build_v1_event(&b, 21, HEAP_ALLOC, (uint64_t)-200, 2);
	build_v1_event(&b, 21, HEAP_ALLOC, 1000, 3);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_HEAP_ALLOC, 1);
	CHECK_EQ(e->ns, e[-1].ns);
	CHECK(e->flags & SONDE_TRACE_CLAMPED);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_TIME), 1);
	CHECK_EQ(sonde_trace_reader_info(t.r)->n_clamped, 1);
	CHECK_EQ(sonde_trace_reader_info(t.r)->max_clamp_ns, 200);
	/* Go refuses it: it is not whole. */
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_UNORDERED), 1);
	CHECK(!sonde_trace_reader_is_whole(t.r));
	read_free(&t);
}

static void a_system_call_that_ends_before_it_blocks(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 2);
	build_v1_event(&b, 21, GO_SYSCALL, 100, 0);
	build_v1_event(&b, 21, GO_SYSBLOCK, 100);
	build_v1_event(&b, 21, GO_SYSEXIT, 100, 1, 2, 1050);
	build_v1_event(&b, 21, GO_START, 1, 1, 3);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	const struct sonde_trace_event *e = nth(&t, SONDE_TRACE_V1_GO_SYSEXIT, 0);
	REQUIRE(e);
	CHECK_EQ(e->ns, 303);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_UNORDERED), 1);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_SYSEXIT), 1);
	read_free(&t);
}

static void ids_that_come_twice_or_never(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	begin(&b, 21, 1);
	build_v1_string(&b, 1, "first");
	build_v1_string(&b, 1, "second");
	build_v1_stack(&b, 21, 4, 1, 10);
	build_v1_stack(&b, 21, 4, 2, 20);
	build_v1_event(&b, 21, GO_SYSCALL, 1, 5);
	build_v1_event(&b, 21, USER_REGION, 1, 0, 0, 9, 4);
	build_v1_event(&b, 21, GO_CREATE, 1, 1, 4, 4);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	CHECK_STR(text(&t, 1), "first");
	CHECK_EQ(sonde_trace_stack(t.r, 4, frames), 2);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_DUPLICATE_ID), 2);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_UNKNOWN_STACK), 1);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_UNKNOWN_STRING), 1);
	/* Goroutine 1 is there. */
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_UNORDERED), 1);
	read_free(&t);
}

static void records_of_a_later_version(void)
{
	static const struct {
		unsigned version, type;
	} cases[] = {{5, SONDE_TRACE_V1_GO_START_LOCAL}, {7, SONDE_TRACE_V1_GO_BLOCK_GC},
		{8, SONDE_TRACE_V1_GC_MARK_ASSIST_START}, {10, SONDE_TRACE_V1_USER_TASK_END},
		{11, SONDE_TRACE_V1_CPU_SAMPLE}, {21, 50}, {21, 0}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		struct read t;
		const uint64_t own[] = {1};
		unsigned v = cases[i].version;
		begin(&b, v, 1);
		size_t at = b.len;
		build_v1_event_(&b, v, cases[i].type, 1, 1, own, 1);
		build_v1_batch(&b, v, 0, 0, 5000);
		build_v1_event(&b, v, HEAP_ALLOC, 1, 7);
		end(&b, v);
		REQUIRE(read_buf(&t, &b));
		const struct sonde_trace_damage *d = first(&t, SONDE_TRACE_DAMAGE_FOREIGN_BYTES);
		REQUIRE(d);
		CHECK_EQ(d->offset, at);
		CHECK_EQ(count(&t, SONDE_TRACE_V1_HEAP_ALLOC), 1);
		read_free(&t);
	}
}

/* Arguments that another version has are a bad record in this one. */
static void arguments_of_another_version(void)
{
	static const struct {
		unsigned version, type, n;
	} cases[] = {{5, SONDE_TRACE_V1_GO_START, 2}, {7, SONDE_TRACE_V1_GO_START, 1},
		{8, SONDE_TRACE_V1_GC_SWEEP_DONE, 2}, {9, SONDE_TRACE_V1_GC_SWEEP_DONE, 0},
		{9, SONDE_TRACE_V1_STW_START, 1}, {10, SONDE_TRACE_V1_STW_START, 0}};
	for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		struct read t;
		const uint64_t own[] = {1, 1};
		unsigned v = cases[i].version;
		begin(&b, v, 1);
		size_t at = b.len;
		build_v1_event_(&b, v, cases[i].type, 1, 1, own, cases[i].n);
		end(&b, v);
		REQUIRE(read_buf(&t, &b));
		const struct sonde_trace_damage *d = first(&t, SONDE_TRACE_DAMAGE_BAD_BATCH);
		REQUIRE(d);
		CHECK_EQ(d->offset, at);
		read_free(&t);
	}
}

static void ranges_tasks_and_regions(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 1);
	build_v1_string(&b, 1, "a");
	build_v1_string(&b, 2, "b");
	build_v1_event(&b, 21, GC_DONE, 1);
	build_v1_event(&b, 21, STW_START, 1, 1);
	build_v1_event(&b, 21, STW_START, 1, 1);
	build_v1_event(&b, 21, GC_SWEEP_DONE, 1, 0, 0);
	build_v1_event(&b, 21, GC_MARK_ASSIST_DONE, 1); /* may have begun before */
	CHECK_EQ(b.failed, false);
	build_v1_event(&b, 21, USER_TASK_CREATE, 1, 4, 0, 1, 0);
	build_v1_event(&b, 21, USER_TASK_CREATE, 1, 4, 0, 2, 0);
	build_v1_event(&b, 21, USER_TASK_END, 1, 5, 0); /* so may this */
	build_v1_event(&b, 21, USER_REGION, 1, 0, 1, 1, 0); /* and this */
	build_v1_event(&b, 21, USER_REGION, 1, 0, 0, 1, 0);
	build_v1_event(&b, 21, USER_REGION, 1, 0, 1, 2, 0);
	build_v1_event(&b, 21, USER_REGION, 1, 0, 2, 1, 0);
	build_v1_event(&b, 21, USER_REGION, 1, 0, 0, 1, 0);
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_RANGE), 3);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_TASK), 1);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_REGION), 2);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_OPEN_REGION), 1);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_OPEN_TASK), 1);
	read_free(&t);
}

static void processors_that_contradict(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 2);
	build_v1_event(&b, 21, PROC_START, 1, 6); /* runs already */
	build_v1_event(&b, 21, GO_START, 1, 2, 1); /* 1 runs there */
	build_v1_event(&b, 21, PROC_STOP, 1); /* 2 runs there */
	build_v1_event(&b, 21, GO_END, 1);
	build_v1_event(&b, 21, PROC_STOP, 1); /* stopped */
	end(&b, 21);
	REQUIRE(read_buf(&t, &b));
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_STATE), 4);
	CHECK_EQ(sonde_trace_reader_info(t.r)->n_forced, 4);
	read_free(&t);
}

static void a_bad_frequency(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	begin(&b, 21, 1);
	build_v1_frequency(&b, 21, (uint64_t)-5);
	REQUIRE(read_buf(&t, &b));
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_NO_FREQUENCY), 2);
	CHECK_EQ(count(&t, SONDE_TRACE_V1_GO_START), 1);
	read_free(&t);
}

static void nothing_behind_the_header(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct read t;
	build_v1_header(&b, 11);
	REQUIRE(read_buf(&t, &b));
	CHECK_EQ(t.n, 0);
	CHECK_EQ(damages(&t, SONDE_TRACE_DAMAGE_TRUNCATED), 1);
	read_free(&t);
}

static void following_is_refused(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_reader_options options = {.follow = true};
	build_v1_everything(&b, 21);
	CHECK_ERROR(sonde_trace_reader_open_memory(b.data, b.len, &options, &r), SONDE_UNSUPPORTED,
		"cannot be followed");
}

/* Thousands of processors that wait for one goroutine, which goes on and on: time must stay in bounds. */
static void many_that_wait(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	struct sonde_trace_reader *r;
	const struct sonde_trace_event *e;
	enum { N_PROCS = 5000, N_TURNS = 20000 };
	begin(&b, 21, 1);
	for (unsigned i = 0; i < N_TURNS; i++) {
		build_v1_event(&b, 21, GO_SCHED, 1, 0);
		build_v1_event(&b, 21, GO_START_LOCAL, 1, 1);
	}
	for (unsigned i = 0; i < N_PROCS; i++) {
		build_v1_batch(&b, 21, i + 1, 0, 1001);
		build_v1_event(&b, 21, GO_UNBLOCK, 1, 1, 1000000, 0);
	}
	end(&b, 21);
	REQUIRE_OK(sonde_trace_reader_open_memory(b.data, b.len, NULL, &r));
	uint64_t n = 0;
	do {
		REQUIRE_OK(sonde_trace_reader_next(r, &e));
		n += e && !(e->flags & SONDE_TRACE_MADE);
	} while (e);
	CHECK_EQ(n, 3 + 2 * N_TURNS + N_PROCS);
	sonde_trace_reader_free(r);
}

int main(void)
{
	RUN(every_record_of_every_version);
	RUN(statuses_and_context);
	RUN(nanoseconds_as_go_computes_them);
	RUN(system_calls_end_at_their_real_time);
	RUN(sequence_numbers_decide_equal_times);
	RUN(samples_come_by_their_own_time);
	RUN(futile_wakeups_go);
	RUN(stops_have_the_names_of_their_version);
	RUN(version_5_orders_by_sequence_numbers);
	RUN(records_with_any_length_form);
	RUN(ids_need_not_be_dense);
	RUN(a_missing_tail);
	RUN(every_prefix);
	RUN(every_byte_replaced);
	RUN(foreign_bytes_in_the_middle);
	RUN(a_lost_event_does_not_stall_the_rest);
	RUN(time_that_goes_backwards);
	RUN(a_system_call_that_ends_before_it_blocks);
	RUN(ids_that_come_twice_or_never);
	RUN(records_of_a_later_version);
	RUN(arguments_of_another_version);
	RUN(ranges_tasks_and_regions);
	RUN(processors_that_contradict);
	RUN(a_bad_frequency);
	RUN(nothing_behind_the_header);
	RUN(following_is_refused);
	RUN(many_that_wait);
	return tap_end();
}
