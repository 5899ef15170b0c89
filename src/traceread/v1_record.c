#include "traceread/v1.h"

#include <string.h>
#include <sys/mman.h>

static unsigned own_args(const struct sonde_trace_v1_spec *spec, unsigned version)
{
	return (unsigned)strlen(
		spec->changed && version < spec->changed ? spec->args_before : spec->args);
}

void sonde_trace_v1_format_init(
	struct sonde_trace_v1_format *f, const uint8_t *data, uint64_t len, unsigned version)
{
	bool has_seq = version < 7;
	*f = (struct sonde_trace_v1_format){
		.data = data,
		.end = data + len,
		.version = version,
		.n_extra = has_seq,
		.n_before = has_seq ? 2 : 1,
	};
	memset(f->n_args, SONDE_TRACE_V1_ANY, sizeof(f->n_args));
	for (unsigned type = 1; type < SONDE_TRACE_V1_N_TYPES; type++) {
		const struct sonde_trace_v1_spec *spec = &sonde_trace_v1_specs[type];
		unsigned n = spec->name ? own_args(spec, version) : 0;
		if (!spec->name || spec->since > version)
			continue;
		switch (type) {
		case SONDE_TRACE_V1_STRING:
		case SONDE_TRACE_V1_STACK:
			continue;
		case SONDE_TRACE_V1_BATCH:
		case SONDE_TRACE_V1_FREQUENCY:
		case SONDE_TRACE_V1_TIMER_GOROUTINE:
			f->n_args[type] = (uint8_t)(n + has_seq); /* no time; one more in 1.5 */
			break;
		default:
			f->n_args[type] = (uint8_t)(n + f->n_before);
		}
	}
}

void sonde_trace_v1_format_release(
	const struct sonde_trace_v1_format *f, const uint8_t *from, const uint8_t *to)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
	uintptr_t first = ((uintptr_t)from + page - 1) & ~(page - 1),
		  last = (uintptr_t)to & ~(page - 1);
	if (f->is_mapped && first < last)
		(void)madvise((void *)first, last - first, MADV_DONTNEED);
}

const uint8_t *sonde_trace_v1_varint_slow(const uint8_t *p, const uint8_t *end, uint64_t *ret)
{
	uint64_t v = 0;
	for (unsigned i = 0; i < SONDE_TRACE_MAX_VARINT_BYTES && p < end; i++) {
		v |= (uint64_t)(*p & 0x7f) << (7 * i);
		if (*p++ < 0x80) {
			*ret = v;
			return p;
		}
	}
	return NULL;
}

const uint8_t *sonde_trace_v1_text(
	const uint8_t *p, const uint8_t *end, const char **text, size_t *len)
{
	uint64_t n;
	p = sonde_trace_v1_varint(p, end, &n);
	if (!p || n > SONDE_TRACE_V1_MAX_TEXT || n > (uint64_t)(end - p))
		return NULL;
	*text = (const char *)p;
	*len = n;
	return p + n;
}

const uint8_t *sonde_trace_v1_decode_long(const struct sonde_trace_v1_format *f, const uint8_t *p,
	const uint8_t *end, struct sonde_trace_v1_record *r)
{
	uint64_t len;
	unsigned n = f->n_args[r->type];
	p = sonde_trace_v1_varint(p, end, &len);
	if (!p || n == SONDE_TRACE_V1_ANY || len > (uint64_t)(end - p))
		return NULL;
	const uint8_t *stop = p + len;
	for (unsigned i = 0; i < n && p; i++)
		p = sonde_trace_v1_varint(p, stop, &r->args[i]);
	if (p != stop)
		return NULL;
	if (r->type == SONDE_TRACE_V1_USER_LOG) {
		const char *text;
		size_t text_len;
		r->text = p;
		return sonde_trace_v1_text(p, end, &text, &text_len);
	}
	return p;
}

const uint8_t *sonde_trace_v1_decode_string(
	const uint8_t *p, const uint8_t *end, uint64_t *id, const char **text, size_t *len)
{
	p = sonde_trace_v1_varint(p + 1, end, id);
	if (p)
		p = sonde_trace_v1_text(p, end, text, len);
	return p && *id && *len ? p : NULL;
}

const uint8_t *sonde_trace_v1_decode_stack(const struct sonde_trace_v1_format *f, const uint8_t *p,
	const uint8_t *end, uint64_t *id, uint64_t *n, const uint8_t **frames)
{
	unsigned n_inline = *p >> 6, per_frame = f->version < 7 ? 1 : 4;
	uint64_t n_args = n_inline + 1 + f->n_extra, len;
	const uint8_t *stop = end;
	p++;
	if (n_inline == 3) {
		p = sonde_trace_v1_varint(p, end, &len);
		if (!p || len > (uint64_t)(end - p))
			return NULL;
		stop = p + len;
	}
	p = sonde_trace_v1_varint(p, stop, id);
	p = p ? sonde_trace_v1_varint(p, stop, n) : NULL;
	if (!p || *n > SONDE_TRACE_V1_MAX_STACK)
		return NULL;
	if (n_inline != 3 && n_args != 2 + per_frame * *n)
		return NULL;
	*frames = p;
	uint64_t value;
	for (uint64_t i = 0; i < per_frame * *n && p; i++)
		p = sonde_trace_v1_varint(p, stop, &value);
	if (!p || (n_inline == 3 && p != stop))
		return NULL;
	return p;
}
