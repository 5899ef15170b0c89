#include "output/pprof.h"

#include <zlib.h>
#include "base/varint.h"

/* Field numbers of profile.proto. */
enum profile_field {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_COMMENT = 13,
	PROFILE_DEFAULT_TYPE = 14,
};
enum { VALUE_TYPE_TYPE = 1, VALUE_TYPE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3, LABEL_UNIT = 4 };
enum mapping_field {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_OFFSET = 4,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,
};
enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_LINE = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* --- protobuf --- */

static void put_varint(struct sonde_buf *b, uint64_t v)
{
	uint8_t bytes[10];
	sonde_buf_add(b, bytes, sonde_varint_encode(bytes, v));
}

static void put_number(struct sonde_buf *b, unsigned field, uint64_t v)
{
	put_varint(b, field << 3);
	put_varint(b, v);
}

/* As proto3 has it: a zero is not written. */
static void put_nonzero(struct sonde_buf *b, unsigned field, uint64_t v)
{
	if (v)
		put_number(b, field, v);
}

static void put_bytes(struct sonde_buf *b, unsigned field, const void *data, size_t n)
{
	put_varint(b, field << 3 | 2);
	put_varint(b, n);
	sonde_buf_add(b, data, n);
}

static size_t varint_bytes(uint64_t v)
{
	size_t n = 1;
	while (v >>= 7)
		n++;
	return n;
}

static void put_packed(struct sonde_buf *b, unsigned field, const uint64_t *values, size_t n)
{
	size_t bytes = 0;
	for (size_t i = 0; i < n; i++)
		bytes += varint_bytes(values[i]);
	put_varint(b, field << 3 | 2);
	put_varint(b, bytes);
	for (size_t i = 0; i < n; i++)
		put_varint(b, values[i]);
}

/* What stands in the scratch buffer behind `from` becomes one field of b. */
static void put_message(struct sonde_pprof *p, struct sonde_buf *b, unsigned field, size_t from)
{
	struct sonde_buf *s = &p->scratch;
	if (s->failed)
		return;
	if (b == s) {
		/* Its head goes in front of it. */
		uint8_t head[20];
		size_t n = sonde_varint_encode(head, field << 3 | 2), len = s->len - from;
		n += sonde_varint_encode(head + n, len);
		if (!sonde_buf_reserve(s, n))
			return;
		memmove(s->data + from + n, s->data + from, len);
		memcpy(s->data + from, head, n);
		s->len += n;
		return;
	}
	put_bytes(b, field, s->data + from, s->len - from);
	s->len = from;
}

/* --- the profile --- */

static uint64_t string_id(struct sonde_pprof *p, const char *s)
{
	uint32_t id = sonde_strtab_add(&p->strings, s ? s : "", s ? strlen(s) : 0);
	if (id == SONDE_STRTAB_NONE) {
		p->failed = true;
		return 0;
	}
	return id;
}

static void put_type(struct sonde_pprof *p, struct sonde_buf *b, unsigned field,
	const struct sonde_pprof_type *type)
{
	put_nonzero(&p->scratch, VALUE_TYPE_TYPE, string_id(p, type->type));
	put_nonzero(&p->scratch, VALUE_TYPE_UNIT, string_id(p, type->unit));
	put_message(p, b, field, 0);
}

void sonde_pprof_init(struct sonde_pprof *p, const struct sonde_pprof_type *types, size_t n)
{
	*p = (struct sonde_pprof){.n_types = n};
	p->failed = !sonde_strtab_init(&p->strings);
	for (size_t i = 0; i < n && !p->failed; i++)
		put_type(p, &p->head, PROFILE_SAMPLE_TYPE, &types[i]);
}

void sonde_pprof_deinit(struct sonde_pprof *p)
{
	sonde_strtab_deinit(&p->strings);
	sonde_buf_deinit(&p->head);
	sonde_buf_deinit(&p->samples);
	sonde_buf_deinit(&p->mappings);
	sonde_buf_deinit(&p->locations);
	sonde_buf_deinit(&p->functions);
	sonde_buf_deinit(&p->tail);
	sonde_buf_deinit(&p->scratch);
	sonde_u64_map_deinit(&p->function_ids);
}

uint64_t sonde_pprof_function(struct sonde_pprof *p, const char *name, const char *file)
{
	uint64_t name_id = string_id(p, name), file_id = string_id(p, file);
	uint64_t *id = p->failed
		? NULL
		: sonde_u64_map_put(&p->function_ids, name_id << 32 | file_id, NULL);
	if (!id) {
		p->failed = true;
		return 0;
	}
	if (!*id) {
		*id = ++p->n_functions;
		put_number(&p->scratch, FUNCTION_ID, *id);
		put_nonzero(&p->scratch, FUNCTION_NAME, name_id);
		put_nonzero(&p->scratch, FUNCTION_SYSTEM_NAME, name_id);
		put_nonzero(&p->scratch, FUNCTION_FILE, file_id);
		put_message(p, &p->functions, PROFILE_FUNCTION, 0);
	}
	return *id;
}

uint64_t sonde_pprof_mapping(struct sonde_pprof *p, const struct sonde_pprof_mapping *mapping)
{
	struct sonde_buf *s = &p->scratch;
	put_number(s, MAPPING_ID, ++p->n_mappings);
	put_nonzero(s, MAPPING_START, mapping->start);
	put_nonzero(s, MAPPING_LIMIT, mapping->limit);
	put_nonzero(s, MAPPING_OFFSET, mapping->file_offset);
	put_nonzero(s, MAPPING_FILE, string_id(p, mapping->file));
	put_nonzero(s, MAPPING_BUILD_ID, string_id(p, mapping->build_id));
	put_nonzero(s, MAPPING_HAS_FUNCTIONS, mapping->has_functions);
	put_nonzero(s, MAPPING_HAS_FILES, mapping->has_files);
	put_nonzero(s, MAPPING_HAS_LINES, mapping->has_lines);
	put_nonzero(s, MAPPING_HAS_INLINED, mapping->has_inlined);
	put_message(p, &p->mappings, PROFILE_MAPPING, 0);
	return p->n_mappings;
}

uint64_t sonde_pprof_location(struct sonde_pprof *p, uint64_t mapping, uint64_t address,
	const struct sonde_pprof_line *lines, size_t n)
{
	struct sonde_buf *s = &p->scratch;
	put_number(s, LOCATION_ID, ++p->n_locations);
	put_nonzero(s, LOCATION_MAPPING, mapping);
	put_nonzero(s, LOCATION_ADDRESS, address);
	for (size_t i = 0; i < n; i++) {
		size_t from = s->len;
		put_nonzero(s, LINE_FUNCTION, lines[i].function);
		put_nonzero(s, LINE_LINE, (uint64_t)lines[i].line);
		put_message(p, s, LOCATION_LINE, from);
	}
	put_message(p, &p->locations, PROFILE_LOCATION, 0);
	return p->n_locations;
}

void sonde_pprof_sample(struct sonde_pprof *p, const int64_t *values, const uint64_t *locations,
	size_t n, const struct sonde_pprof_label *labels, size_t n_labels)
{
	struct sonde_buf *s = &p->scratch;
	if (n)
		put_packed(s, SAMPLE_LOCATION, locations, n);
	put_packed(s, SAMPLE_VALUE, (const uint64_t *)values, p->n_types);
	for (size_t i = 0; i < n_labels; i++) {
		size_t from = s->len;
		put_nonzero(s, LABEL_KEY, string_id(p, labels[i].key));
		if (labels[i].text) {
			put_nonzero(s, LABEL_TEXT, string_id(p, labels[i].text));
		} else {
			put_nonzero(s, LABEL_NUMBER, (uint64_t)labels[i].number);
			put_nonzero(s, LABEL_UNIT, string_id(p, labels[i].unit));
		}
		put_message(p, s, SAMPLE_LABEL, from);
	}
	put_message(p, &p->samples, PROFILE_SAMPLE, 0);
	p->n_samples++;
}

void sonde_pprof_comment(struct sonde_pprof *p, const char *text)
{
	put_number(&p->tail, PROFILE_COMMENT, string_id(p, text));
}

/* --- gzip --- */

static void deflate_to(z_stream *z, struct sonde_sink *sink, const void *data, size_t n, bool last)
{
	uint8_t out[16 << 10];
	int flush = last ? Z_FINISH : Z_NO_FLUSH;
	z->next_in = (Bytef *)(uintptr_t)data;
	do {
		z->avail_in = (uInt)sonde_min(n, (size_t)1 << 30);
		n -= z->avail_in;
		do {
			z->next_out = out;
			z->avail_out = sizeof(out);
			/* Fails for wrong calls only. */
			deflate(z, n ? Z_NO_FLUSH : flush);
			sonde_sink_write(sink, out, sizeof(out) - z->avail_out);
		} while (!z->avail_out);
	} while (n);
}

static bool write_all(struct sonde_pprof *p, z_stream *z, struct sonde_sink *sink)
{
	const struct sonde_buf *parts[] = {
		&p->head, &p->samples, &p->mappings, &p->locations, &p->functions};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(parts); i++)
		deflate_to(z, sink, parts[i]->data, parts[i]->len, false);
	sonde_vec_foreach (e, &p->strings.entries) {
		p->scratch.len = 0;
		put_bytes(&p->scratch, PROFILE_STRING, e->s, e->len);
		if (p->scratch.failed)
			return false;
		deflate_to(z, sink, p->scratch.data, p->scratch.len, false);
	}
	deflate_to(z, sink, p->tail.data, p->tail.len, true);
	return true;
}

struct sonde_error *sonde_pprof_write(struct sonde_pprof *p, struct sonde_sink *sink)
{
	put_nonzero(&p->tail, PROFILE_TIME, (uint64_t)p->time_ns);
	put_nonzero(&p->tail, PROFILE_DURATION, (uint64_t)p->duration_ns);
	if (p->period_type.type)
		put_type(p, &p->tail, PROFILE_PERIOD_TYPE, &p->period_type);
	put_nonzero(&p->tail, PROFILE_PERIOD, (uint64_t)p->period);
	if (p->default_type)
		put_number(&p->tail, PROFILE_DEFAULT_TYPE, string_id(p, p->default_type));
	if (p->failed || p->head.failed || p->samples.failed || p->mappings.failed ||
		p->locations.failed || p->functions.failed || p->tail.failed || p->scratch.failed)
		return &sonde_enomem;
	z_stream z = {0};
	/* 16: a gzip header, whose time stays 0. */
	if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) !=
		Z_OK)
		return &sonde_enomem;
	bool ok = write_all(p, &z, sink);
	deflateEnd(&z);
	return ok ? NULL : &sonde_enomem;
}
