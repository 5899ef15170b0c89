#include "output/json.h"
#include "tap.h"

#include <signal.h>
#include <sys/wait.h>

/* A document over memory, compared at its end. */
struct document {
	struct sonde_buf buf;
	struct sonde_sink *sink;
	struct sonde_json json;
};

static struct sonde_json *start(struct document *d)
{
	*d = (struct document){0};
	if (!tap_ok_(sonde_sink_open_memory(&d->buf, &d->sink), __FILE__, __LINE__, "sink"))
		exit(1);
	d->json = sonde_json_over(d->sink);
	return &d->json;
}

static const char *finish(struct document *d)
{
	CHECK_OK(sonde_sink_finish(d->sink));
	sonde_sink_free(sonde_take(d->sink));
	return sonde_buf_text(&d->buf);
}

static void structure(void)
{
	struct document d;
	struct sonde_json *j = start(&d);
	sonde_json_object_begin(j, NULL);
	sonde_json_u64(j, "max", UINT64_MAX);
	sonde_json_i64(j, "min", INT64_MIN);
	sonde_json_addr(j, "addr", 0xc000012345);
	sonde_json_share(j, "third", 1, 3);
	sonde_json_share(j, "whole", 5, 5);
	sonde_json_share(j, "nothing", 5, 0);
	sonde_json_bool(j, "yes", true);
	sonde_json_text(j, "null", NULL);
	sonde_json_array_begin(j, "list");
	sonde_json_array_begin(j, NULL);
	sonde_json_array_end(j);
	sonde_json_object_begin(j, NULL);
	sonde_json_object_end(j);
	sonde_json_text(j, NULL, "x");
	sonde_json_null(j, NULL);
	sonde_json_array_end(j);
	sonde_json_bool(j, "last", false);
	sonde_json_object_end(j);
	sonde_json_end(j);
	CHECK_STR(finish(&d),
		"{\"max\":18446744073709551615,\"min\":-9223372036854775808,"
		"\"addr\":\"0xc000012345\",\"third\":0.333333,\"whole\":1.000000,"
		"\"nothing\":null,\"yes\":true,\"null\":null,"
		"\"list\":[[],{},\"x\",null],\"last\":false}\n");
	sonde_buf_deinit(&d.buf);
}

static void strings_are_escaped(void)
{
	static const struct {
		const char *s;
		size_t len;
		const char *want;
	} rows[] = {
		{"", 0, "\"\""},
		{"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
		{"\n\t\r\b\0\x1f", 6, "\"\\n\\t\\r\\u0008\\u0000\\u001f\""},
		{"\x7f\xc2\x80\xc2\x9b", 5, "\"\\u007f\\u0080\\u009b\""},
		{"\xc2\xa0\xe2\x82\xac", 5, "\"\xc2\xa0\xe2\x82\xac\""},
		{"\xe2\x80\xa8\xe2\x80\xa9", 6, "\"\\u2028\\u2029\""},
		{"\xf0\x9f\x98\x80", 4, "\"\xf0\x9f\x98\x80\""},
		{"a\xff"
		 "b\xc3",
			4, "\"a\\ufffdb\\ufffd\""},
		{"\xed\xa0\x80", 3, "\"\\ufffd\\ufffd\\ufffd\""},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(rows); i++) {
		struct document d;
		sonde_json_string(start(&d), NULL, rows[i].s, rows[i].len);
		CHECK_STR(finish(&d), rows[i].want);
		sonde_buf_deinit(&d.buf);
	}
}

static void bytes_that_are_not_utf8_are_kept(void)
{
	struct document d;
	struct sonde_json *j = start(&d);
	sonde_json_object_begin(j, NULL);
	sonde_json_string(j, "k\"", "\xffz", 2);
	sonde_json_string(j, "fine", "\xef\xbf\xbd", 3); /* a real U+FFFD is no loss */
	sonde_json_object_end(j);
	CHECK_STR(finish(&d),
		"{\"k\\\"\":\"\\ufffdz\",\"k\\\"_hex\":\"ff7a\",\"fine\":\"\xef\xbf\xbd\"}");
	sonde_buf_deinit(&d.buf);
}

static void deepest_nesting(void)
{
	struct document d;
	struct sonde_json *j = start(&d);
	for (int i = 0; i < SONDE_JSON_MAX_DEPTH; i++)
		if (i % 2)
			sonde_json_object_begin(j, NULL);
		else
			sonde_json_array_begin(j, i ? "k" : NULL);
	sonde_json_u64(j, "deep", 1);
	for (int i = SONDE_JSON_MAX_DEPTH; i-- > 0;)
		if (i % 2)
			sonde_json_object_end(j);
		else
			sonde_json_array_end(j);
	sonde_json_end(j);
	const char *text = finish(&d);
	size_t open = 0, closed = 0;
	for (const char *p = text; *p; p++) {
		open += *p == '[' || *p == '{';
		closed += *p == ']' || *p == '}';
	}
	CHECK_EQ(open, SONDE_JSON_MAX_DEPTH);
	CHECK_EQ(closed, SONDE_JSON_MAX_DEPTH);
	sonde_buf_deinit(&d.buf);
}

/* Whether build(), run in a child, is stopped by an assertion. */
static bool aborts(void (*build)(struct sonde_json *j))
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid == 0) {
		struct document d;
		if (!freopen("/dev/null", "w", stderr))
			_exit(3);
		build(start(&d));
		_exit(0);
	}
	int status = 0;
	waitpid(pid, &status, 0);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

static void too_deep(struct sonde_json *j)
{
	for (int i = 0; i <= SONDE_JSON_MAX_DEPTH; i++)
		sonde_json_array_begin(j, NULL);
}

static void value_without_key(struct sonde_json *j)
{
	sonde_json_object_begin(j, NULL);
	sonde_json_u64(j, NULL, 1);
}

static void key_in_array(struct sonde_json *j)
{
	sonde_json_array_begin(j, NULL);
	sonde_json_u64(j, "k", 1);
}

static void wrong_end(struct sonde_json *j)
{
	sonde_json_array_begin(j, NULL);
	sonde_json_object_end(j);
}

static void end_of_nothing(struct sonde_json *j)
{
	sonde_json_array_end(j);
}

static void unfinished(struct sonde_json *j)
{
	sonde_json_array_begin(j, NULL);
	sonde_json_end(j);
}

static void two_documents(struct sonde_json *j)
{
	sonde_json_array_begin(j, NULL);
	sonde_json_array_end(j);
	sonde_json_array_begin(j, NULL);
}

static void wrong_documents_stop(void)
{
	CHECK(aborts(too_deep));
	CHECK(aborts(value_without_key));
	CHECK(aborts(key_in_array));
	CHECK(aborts(wrong_end));
	CHECK(aborts(end_of_nothing));
	CHECK(aborts(unfinished));
	CHECK(aborts(two_documents));
}

int main(void)
{
	RUN(structure);
	RUN(strings_are_escaped);
	RUN(bytes_that_are_not_utf8_are_kept);
	RUN(deepest_nesting);
	RUN(wrong_documents_stop);
	return tap_end();
}
