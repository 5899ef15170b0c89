/* Header, varints, batches and events: bytes to values and back, and what is none. */
#include "traceformat/wire.h"
#include "tap.h"

static void test_header(void)
{
	uint8_t b[SONDE_TRACE_HEADER_BYTES];
	static const unsigned versions[] = {5, 7, 8, 9, 10, 11, 19, 21, 22, 23, 25, 26};
	for (size_t i = 0; i < sizeof(versions) / sizeof(*versions); i++) {
		sonde_trace_header_encode(b, versions[i]);
		CHECK_EQ(sonde_trace_header_decode(b, sizeof(b)), versions[i]);
	}
	CHECK(!memcmp(b, "go 1.26 trace\0\0\0", 16));
	CHECK_EQ(sonde_trace_header_decode(b, 15), 0);
	b[15] = 1;
	CHECK_EQ(sonde_trace_header_decode(b, 16), 0);
	CHECK_EQ(sonde_trace_header_decode("go 1. trace\0\0\0\0\0", 16), 0);
	CHECK_EQ(sonde_trace_header_decode("go 1.2x trace\0\0\0", 16), 0);
	CHECK_EQ(sonde_trace_header_decode("go 1.1234trace\0\0", 16), 0);
}

static void test_varint(void)
{
	static const uint64_t values[] = {0, 1, 127, 128, 16383, 16384, 2097151, 2097152,
		UINT32_MAX, UINT64_C(1) << 35, UINT64_C(1) << 56, UINT64_C(1) << 63, UINT64_MAX};
	uint8_t b[16] = {0};
	for (size_t i = 0; i < sizeof(values) / sizeof(*values); i++) {
		uint64_t got = 1;
		size_t n = sonde_trace_varint_encode(b, values[i]);
		CHECK_EQ(sonde_trace_varint_decode(b, b + n, &got), n);
		CHECK_EQ(got, values[i]);
		CHECK_EQ(sonde_trace_varint_decode(b, b + n - 1, &got), 0);
		sonde_trace_varint_encode_padded(b, values[i]);
		CHECK_EQ(sonde_trace_varint_decode(b, b + 10, &got), 10);
		CHECK_EQ(got, values[i]);
	}
	uint64_t got;
	memset(b, 0xff, sizeof(b));
	CHECK_EQ(sonde_trace_varint_decode(b, b + 16, &got), 0);
	b[9] = 2; /* a 65th bit */
	CHECK_EQ(sonde_trace_varint_decode(b, b + 16, &got), 0);
	CHECK_EQ(sonde_trace_varint_decode(b, b, &got), 0);
}

static void test_batch_head(void)
{
	uint8_t b[SONDE_TRACE_MAX_HEAD_BYTES + 4];
	struct sonde_trace_batch_head head = {.gen = 3,
					      .m = UINT64_MAX,
					      .ticks = 1u << 30,
					      .size = 65536},
				      got;
	bool cut;
	size_t n = sonde_trace_batch_head_encode(b, &head);
	CHECK_EQ(sonde_trace_batch_head_decode(b, b + n, &got, &cut), n);
	CHECK_EQ(got.gen, 3);
	CHECK_EQ(got.m, UINT64_MAX);
	CHECK_EQ(got.ticks, 1u << 30);
	CHECK_EQ(got.size, 65536);
	CHECK(got.padded && !got.experiment && !cut);
	for (size_t i = 0; i < n; i++) {
		CHECK_EQ(sonde_trace_batch_head_decode(b, b + i, &got, &cut), 0);
		CHECK(cut);
	}
	head.experiment = 1;
	n = sonde_trace_batch_head_encode(b, &head);
	CHECK_EQ(b[0], SONDE_TRACE_EXPERIMENTAL_BATCH);
	CHECK_EQ(sonde_trace_batch_head_decode(b, b + n, &got, &cut), n);
	CHECK_EQ(got.experiment, 1);
	head.size = 65537; /* larger than any */
	n = sonde_trace_batch_head_encode(b, &head);
	CHECK_EQ(sonde_trace_batch_head_decode(b, b + n, &got, &cut), 0);
	CHECK(!cut);
	CHECK_EQ(sonde_trace_batch_head_decode(
			 (const uint8_t *)"panic", (const uint8_t *)"panic" + 0, &got, &cut),
		0);
	b[0] = 'p';
	CHECK_EQ(sonde_trace_batch_head_decode(b, b + n, &got, &cut), 0);
	CHECK(!cut);
}

/* Every type there is, with arguments of every length. */
static void test_events(void)
{
	unsigned n_types = 0;
	for (unsigned kind = 0; kind < 256; kind++) {
		const struct sonde_trace_event_spec *spec = &sonde_trace_event_specs[kind];
		uint64_t args[5] = {1, 300, UINT64_MAX, 1u << 20, 0}, got[4] = {0}, dticks;
		uint8_t b[SONDE_TRACE_MAX_EVENT_BYTES], type = 0;
		if (!spec->has_time) {
			b[0] = (uint8_t)kind;
			CHECK_EQ(sonde_trace_event_decode(b, b + 20, &type, &dticks, got), 0);
			continue;
		}
		n_types++;
		size_t n = sonde_trace_event_encode(b, kind, 1000, args);
		REQUIRE(n <= sizeof(b));
		CHECK_EQ(sonde_trace_event_decode(b, b + n, &type, &dticks, got), n);
		CHECK_EQ(type, kind);
		CHECK_EQ(dticks, 1000);
		for (unsigned i = 0; i < spec->n_args; i++)
			CHECK_EQ(got[i], args[i]);
		for (size_t i = 0; i < n; i++)
			CHECK_EQ(sonde_trace_event_decode(b, b + i, &type, &dticks, got), 0);
	}
	CHECK_EQ(n_types, 49);
}

static void test_catalogue(void)
{
	for (unsigned i = 0; i < 256; i++) {
		const struct sonde_trace_event_spec *s = &sonde_trace_event_specs[i];
		unsigned names = s->names && *s->names;
		for (const char *p = s->names ? s->names : ""; *p; p++)
			names += *p == ' ';
		CHECK_EQ(names, s->n_args);
		if (s->name)
			CHECK_EQ(sonde_trace_kind_find(s->name), i ? (int)i : -1);
		CHECK(!s->args || s->stack_arg < 0 || s->args[s->stack_arg] == 's');
	}
	CHECK_EQ(sonde_trace_event_specs[SONDE_TRACE_GO_CREATE].stack_arg, 2);
	CHECK_EQ(sonde_trace_event_specs[SONDE_TRACE_GO_CREATE].stack_args, 6);
	CHECK_EQ(sonde_trace_event_specs[SONDE_TRACE_USER_LOG].string_args, 6);
	CHECK_EQ(sonde_trace_kind_find("gostart"), SONDE_TRACE_GO_START);
	CHECK_EQ((unsigned)sonde_trace_kind_find("Nothing"), (unsigned)-1);
	CHECK_STR(sonde_trace_kind_name(200), "Invalid");
	CHECK_STR(sonde_trace_v1_specs[SONDE_TRACE_V1_GO_BLOCK_NET].name, "GoBlockNet");
	CHECK_STR(sonde_trace_g_status_name(SONDE_TRACE_G_WAITING), "waiting");
	CHECK_STR(sonde_trace_p_status_name(99), "bad");
}

int main(void)
{
	RUN(test_header);
	RUN(test_varint);
	RUN(test_batch_head);
	RUN(test_events);
	RUN(test_catalogue);
	return tap_end();
}
