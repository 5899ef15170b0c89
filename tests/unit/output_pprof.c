#include "output/pprof.h"

#include <zlib.h>
#include "base/varint.h"
#include "tap.h"

/* A reader of its own: the fields of one message, by number, in order. */
struct field {
	unsigned number;
	uint64_t value; /* of a varint, or the length */
	const uint8_t *data; /* NULL for a varint */
};

static size_t fields_of(const uint8_t *data, size_t n, struct field *fields, size_t room)
{
	size_t count = 0;
	for (size_t at = 0; at < n && count < room; count++) {
		uint64_t v[2] = {0, 0};
		for (int i = 0; i < 2; i++)
			for (unsigned shift = 0; at < n; shift += 7) {
				v[i] |= (uint64_t)(data[at] & 0x7f) << shift;
				if (!(data[at++] & 0x80))
					break;
			}
		fields[count] = (struct field){(unsigned)(v[0] >> 3), v[1], NULL};
		if ((v[0] & 7) == 2) {
			fields[count].data = data + at;
			at += v[1];
		}
	}
	return count;
}

static uint64_t find(const struct field *f, unsigned number)
{
	struct field in[16];
	size_t n = fields_of(f->data, f->value, in, SONDE_ARRAY_LEN(in));
	for (size_t i = 0; i < n; i++)
		if (in[i].number == number && !in[i].data)
			return in[i].value;
	return 0;
}

static size_t inflated(const struct sonde_buf *b, uint8_t *to, size_t room)
{
	z_stream z = {.next_in = (Bytef *)b->data,
		.avail_in = (uInt)b->len,
		.next_out = to,
		.avail_out = (uInt)room};
	CHECK(inflateInit2(&z, 15 + 16) == Z_OK);
	CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END);
	CHECK_EQ(z.avail_in, 0);
	inflateEnd(&z);
	return room - z.avail_out;
}

static void build(struct sonde_buf *bytes)
{
	static const struct sonde_pprof_type types[] = {
		{"contentions", "count"}, {"delay", "nanoseconds"}};
	sonde_cleanup(sonde_pprof) struct sonde_pprof p;
	sonde_cleanup(sonde_sink) struct sonde_sink *sink = NULL;
	sonde_pprof_init(&p, types, 2);
	uint64_t f = sonde_pprof_function(&p, "main.f", "f.go"),
		 g = sonde_pprof_function(&p, "main.g", "f.go");
	CHECK_EQ(sonde_pprof_function(&p, "main.f", "f.go"), f);
	CHECK(sonde_pprof_function(&p, "main.f", "other.go") != f);
	struct sonde_pprof_line inlined[] = {{f, 7}, {g, 300}};
	CHECK_EQ(sonde_pprof_mapping(&p,
			 &(struct sonde_pprof_mapping){.start = 0x400000,
				 .limit = 0x500000,
				 .file_offset = 0x1000,
				 .file = "/bin/f",
				 .build_id = "c0ffee",
				 .has_functions = true,
				 .has_lines = true}),
		1);
	CHECK_EQ(sonde_pprof_mapping(&p, &(struct sonde_pprof_mapping){.start = 0x700000}), 2);
	uint64_t locations[] = {sonde_pprof_location(&p, 1, 0x401000, inlined, 2),
		sonde_pprof_location(&p, 0, 0, &(struct sonde_pprof_line){g, 1}, 1)};
	sonde_pprof_sample(&p, (int64_t[]){3, 123456789012}, locations, 2, NULL, 0);
	struct sonde_pprof_label labels[] = {
		{"type", "main.T", 0, NULL}, {"bytes", NULL, 4096, "bytes"}};
	sonde_pprof_sample(&p, (int64_t[]){0, -1}, locations, 0, labels, 2);
	p.period_type = (struct sonde_pprof_type){"trace", "count"};
	p.period = 1;
	p.duration_ns = 5;
	sonde_pprof_comment(&p, "a comment");
	REQUIRE_OK(sonde_sink_open_memory(bytes, &sink));
	CHECK_OK(sonde_pprof_write(&p, sink));
	CHECK_OK(sonde_sink_finish(sink));
}

static void check_text(const struct field *const *strings, size_t n, uint64_t id, const char *want)
{
	REQUIRE(id < n);
	CHECK(strings[id]->value == strlen(want) && !memcmp(strings[id]->data, want, strlen(want)));
}

static void test_encoding(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf bytes = {0}, again = {0};
	uint8_t data[4096];
	struct field fields[64], in[16];
	const struct field *strings[32] = {0}, *samples[2] = {0}, *locations[2] = {0},
			   *functions[3] = {0}, *mappings[2] = {0}, *single[16] = {0};
	size_t n_strings = 0, n_samples = 0, n_locations = 0, n_functions = 0, n_types = 0;
	size_t n_mappings = 0;
	build(&bytes);
	build(&again);
	CHECK(bytes.len == again.len && !memcmp(bytes.data, again.data, bytes.len));
	size_t n = fields_of(
		data, inflated(&bytes, data, sizeof(data)), fields, SONDE_ARRAY_LEN(fields));
	for (size_t i = 0; i < n; i++) {
		const struct field *f = &fields[i];
		if (f->number == 6 && n_strings < 32)
			strings[n_strings++] = f;
		else if (f->number == 2 && n_samples < 2)
			samples[n_samples++] = f;
		else if (f->number == 4 && n_locations < 2)
			locations[n_locations++] = f;
		else if (f->number == 5 && n_functions < 3)
			functions[n_functions++] = f;
		else if (f->number == 3 && n_mappings < 2)
			mappings[n_mappings++] = f;
		else if (f->number >= 9 && f->number < 16)
			single[f->number] = f;
		n_types += f->number == 1;
	}
	REQUIRE(n_samples == 2 && n_locations == 2 && n_functions == 3 && n_types == 2);
	REQUIRE(n_mappings == 2 && single[10] && single[11] && single[12] && single[13]);
	/* Zeros are not written: no time, no default type. */
	CHECK(!single[9] && !single[14]);
	CHECK_EQ(single[10]->value, 5);
	CHECK_EQ(single[12]->value, 1);
	check_text(strings, n_strings, find(single[11], 1), "trace");
	check_text(strings, n_strings, find(single[11], 2), "count");
	check_text(strings, n_strings, single[13]->value, "a comment");
	CHECK_EQ(find(mappings[0], 1), 1);
	CHECK_EQ(find(mappings[0], 2), 0x400000);
	CHECK_EQ(find(mappings[0], 3), 0x500000);
	CHECK_EQ(find(mappings[0], 4), 0x1000);
	check_text(strings, n_strings, find(mappings[0], 5), "/bin/f");
	check_text(strings, n_strings, find(mappings[0], 6), "c0ffee");
	CHECK_EQ(find(mappings[0], 7), 1);
	CHECK_EQ(find(mappings[0], 8), 0);
	CHECK_EQ(find(mappings[0], 9), 1);
	CHECK_EQ(find(mappings[0], 10), 0);
	CHECK_EQ(find(mappings[1], 1), 2);
	CHECK_EQ(find(mappings[1], 2), 0x700000);
	CHECK_EQ(find(mappings[1], 5), 0);
	CHECK_EQ(find(locations[0], 2), 1);
	CHECK_EQ(find(locations[1], 2), 0);
	/* String 0 is "". */
	CHECK_EQ(strings[0]->value, 0);
	check_text(strings, n_strings, find(functions[0], 2), "main.f");
	check_text(strings, n_strings, find(functions[2], 4), "other.go");
	CHECK_EQ(find(locations[0], 3), 0x401000);
	CHECK_EQ(find(locations[1], 3), 0);
	/* The inlined frames: two lines, the innermost first. */
	n = fields_of(locations[0]->data, locations[0]->value, in, SONDE_ARRAY_LEN(in));
	REQUIRE(n == 5 && in[3].number == 4 && in[4].number == 4);
	CHECK_EQ(find(&in[3], 1), 1);
	CHECK_EQ(find(&in[3], 2), 7);
	CHECK_EQ(find(&in[4], 1), 2);
	CHECK_EQ(find(&in[4], 2), 300);
	/* Samples: packed locations and values. */
	n = fields_of(samples[0]->data, samples[0]->value, in, SONDE_ARRAY_LEN(in));
	REQUIRE(n == 2 && in[0].number == 1 && in[1].number == 2);
	CHECK(in[0].value == 2 && in[0].data[0] == 1 && in[0].data[1] == 2);
	struct sonde_cursor c = sonde_cursor_over(in[1].data, in[1].value);
	CHECK_EQ(sonde_varint_u64(&c), 3);
	CHECK_EQ(sonde_varint_u64(&c), 123456789012);
	n = fields_of(samples[1]->data, samples[1]->value, in, SONDE_ARRAY_LEN(in));
	REQUIRE(n == 3 && in[0].number == 2 && in[1].number == 3 && in[2].number == 3);
	c = sonde_cursor_over(in[0].data, in[0].value);
	CHECK_EQ(sonde_varint_u64(&c), 0);
	CHECK_EQ(sonde_varint_u64(&c), UINT64_MAX);
	check_text(strings, n_strings, find(&in[1], 1), "type");
	check_text(strings, n_strings, find(&in[1], 2), "main.T");
	CHECK_EQ(find(&in[2], 3), 4096);
	check_text(strings, n_strings, find(&in[2], 4), "bytes");
}

int main(void)
{
	RUN(test_encoding);
	return tap_end();
}
