#include "trace/latency.h"
#include "tap.h"

/* Every value: its bucket holds it and is not wider than promised. */
static void test_buckets(void)
{
	static const uint64_t values[] = {0, 1, 31, 32, 33, 63, 64, 65, 100, 127, 128, 1000, 4095,
		4096, 123456789, UINT64_C(1) << 40, (UINT64_C(1) << 40) + 12345, INT64_MAX,
		UINT64_MAX};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(values); i++) {
		sonde_cleanup(sonde_trace_latency) struct sonde_trace_latency l = {0};
		CHECK(sonde_trace_latency_add(&l, values[i]));
		/* A larger one, so that the first is not the longest, at which a percentile stops. */
		if (values[i] < UINT64_MAX)
			CHECK(sonde_trace_latency_add(&l, UINT64_MAX));
		uint64_t p50 = sonde_trace_latency_percentile(&l, 0.5);
		CHECK(p50 >= values[i]);
		CHECK(p50 - values[i] <= values[i] / 32);
		CHECK_EQ(l.min_ns, values[i]);
		CHECK_EQ(l.max_ns, UINT64_MAX);
	}
}

static void test_shares(void)
{
	sonde_cleanup(sonde_trace_latency) struct sonde_trace_latency l = {0};
	CHECK_EQ(sonde_trace_latency_percentile(&l, 0.5), 0);
	for (uint64_t i = 1; i <= 1000; i++)
		CHECK(sonde_trace_latency_add(&l, i * 1000));
	CHECK_EQ(l.n, 1000);
	CHECK_EQ(l.sum_ns, 500500000);
	static const struct {
		double share;
		uint64_t ns;
	} want[] = {{0.001, 1000}, {0.5, 500000}, {0.9, 900000}, {0.99, 990000}, {0.999, 999000},
		{1, 1000000}};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(want); i++) {
		uint64_t got = sonde_trace_latency_percentile(&l, want[i].share);
		CHECK(got >= want[i].ns && got <= want[i].ns + want[i].ns / 32);
	}
	CHECK_EQ(sonde_trace_latency_percentile(&l, 1), 1000000);
}

int main(void)
{
	RUN(test_buckets);
	RUN(test_shares);
	return tap_end();
}
