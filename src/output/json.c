#include "output/json.h"

#include <assert.h>
#include <inttypes.h>
#include "output/text.h"

static bool in_array(const struct sonde_json *j)
{
	return j->arrays >> (j->depth - 1) & 1;
}

/* Returns whether all of s was UTF-8. */
static bool quoted(struct sonde_sink *sink, const char *s, size_t len, const char *suffix)
{
	bool fine = true;
	size_t plain = 0; /* s[plain..i) waits to be written */
	sonde_sink_char(sink, '"');
	for (size_t i = 0; i < len;) {
		uint8_t byte = (uint8_t)s[i];
		if (byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\') {
			i++;
			continue;
		}
		uint32_t rune;
		size_t n = sonde_text_decode(s + i, len - i, &rune);
		if (rune > 0x9f && rune != SONDE_TEXT_BAD && rune != 0x2028 && rune != 0x2029) {
			i += n;
			continue;
		}
		sonde_sink_write(sink, s + plain, i - plain);
		plain = i += n;
		if (rune == '"' || rune == '\\') {
			sonde_sink_char(sink, '\\');
			sonde_sink_char(sink, (char)rune);
		} else if (rune == '\n') {
			sonde_sink_str(sink, "\\n");
		} else if (rune == '\t') {
			sonde_sink_str(sink, "\\t");
		} else if (rune == '\r') {
			sonde_sink_str(sink, "\\r");
		} else {
			fine &= rune != SONDE_TEXT_BAD;
			sonde_sink_printf(sink, "\\u%04" PRIx32,
				rune == SONDE_TEXT_BAD ? (uint32_t)0xfffd : rune);
		}
	}
	sonde_sink_write(sink, s + plain, len - plain);
	sonde_sink_str(sink, suffix);
	sonde_sink_char(sink, '"');
	return fine;
}

static void hex(struct sonde_sink *sink, const uint8_t *data, size_t len)
{
	sonde_sink_char(sink, '"');
	for (size_t i = 0; i < len; i++) {
		sonde_sink_char(sink, "0123456789abcdef"[data[i] >> 4]);
		sonde_sink_char(sink, "0123456789abcdef"[data[i] & 15]);
	}
	sonde_sink_char(sink, '"');
}

/* What stands in front of a value. */
static void place(struct sonde_json *j, const char *key, const char *key_suffix)
{
	if (!j->depth) {
		assert(!key && !j->not_first);
		return;
	}
	assert(!key == in_array(j));
	if (j->not_first)
		sonde_sink_char(j->sink, ',');
	j->not_first = true;
	if (key) {
		quoted(j->sink, key, strlen(key), key_suffix);
		sonde_sink_char(j->sink, ':');
	}
}

static void begin(struct sonde_json *j, const char *key, bool array)
{
	place(j, key, "");
	assert(j->depth < SONDE_JSON_MAX_DEPTH);
	uint64_t bit = (uint64_t)1 << j->depth++;
	j->arrays = array ? j->arrays | bit : j->arrays & ~bit;
	j->not_first = false;
	sonde_sink_char(j->sink, array ? '[' : '{');
}

static void end(struct sonde_json *j, bool array)
{
	assert(j->depth && in_array(j) == array);
	j->depth--;
	j->not_first = true;
	sonde_sink_char(j->sink, array ? ']' : '}');
}

void sonde_json_object_begin(struct sonde_json *j, const char *key)
{
	begin(j, key, false);
}

void sonde_json_object_end(struct sonde_json *j)
{
	end(j, false);
}

void sonde_json_array_begin(struct sonde_json *j, const char *key)
{
	begin(j, key, true);
}

void sonde_json_array_end(struct sonde_json *j)
{
	end(j, true);
}

void sonde_json_end(struct sonde_json *j)
{
	assert(!j->depth);
	sonde_sink_char(j->sink, '\n');
}

void sonde_json_string(struct sonde_json *j, const char *key, const char *s, size_t len)
{
	if (!s) {
		sonde_json_null(j, key);
		return;
	}
	place(j, key, "");
	if (quoted(j->sink, s, len, "") || !key)
		return;
	place(j, key, "_hex");
	hex(j->sink, (const uint8_t *)s, len);
}

void sonde_json_hex(struct sonde_json *j, const char *key, const void *data, size_t len)
{
	place(j, key, "");
	hex(j->sink, data, len);
}

void sonde_json_text(struct sonde_json *j, const char *key, const char *s)
{
	sonde_json_string(j, key, s, s ? strlen(s) : 0);
}

void sonde_json_u64(struct sonde_json *j, const char *key, uint64_t v)
{
	char digits[SONDE_TEXT_NUMBER_BYTES];
	place(j, key, "");
	sonde_sink_write(j->sink, digits, sonde_text_u64(digits, v));
}

void sonde_json_i64(struct sonde_json *j, const char *key, int64_t v)
{
	place(j, key, "");
	sonde_sink_printf(j->sink, "%" PRId64, v);
}

void sonde_json_addr(struct sonde_json *j, const char *key, uint64_t addr)
{
	place(j, key, "");
	sonde_sink_printf(j->sink, "\"0x%" PRIx64 "\"", addr);
}

void sonde_json_share(struct sonde_json *j, const char *key, uint64_t part, uint64_t whole)
{
	if (!whole) {
		sonde_json_null(j, key);
		return;
	}
	place(j, key, "");
	unsigned __int128 millionths = ((unsigned __int128)part * 1000000 + whole / 2) / whole;
	sonde_sink_printf(j->sink, "%" PRIu64 ".%06" PRIu64, (uint64_t)(millionths / 1000000),
		(uint64_t)(millionths % 1000000));
}

void sonde_json_bool(struct sonde_json *j, const char *key, bool v)
{
	place(j, key, "");
	sonde_sink_str(j->sink, v ? "true" : "false");
}

void sonde_json_null(struct sonde_json *j, const char *key)
{
	place(j, key, "");
	sonde_sink_str(j->sink, "null");
}
