#include "output/report.h"
#include "tap.h"

static const struct sonde_column columns[] = {
	{"type", "TYPE", .may_cut = true},
	{"count", "COUNT", .right = true},
	{"bytes", "BYTES", .right = true},
	{"share", "SHARE", .right = true},
	{"addr", NULL},
};

/* What write makes with these options; sonde_buf_deinit() is the caller's. */
static struct sonde_buf made(void (*write)(struct sonde_report *r),
	const struct sonde_report_options *options, const struct sonde_notes *notes)
{
	struct sonde_buf buf = {0};
	struct sonde_sink *sink = NULL;
	struct sonde_report r;
	if (!tap_ok_(sonde_sink_open_memory(&buf, &sink), __FILE__, __LINE__, "sink"))
		exit(1);
	sonde_report_init(&r, sink, options);
	sonde_report_begin(&r, "test.report", 3);
	write(&r);
	CHECK_OK(sonde_report_end(&r, notes));
	CHECK_OK(sonde_sink_finish(sink));
	sonde_report_deinit(&r);
	sonde_sink_free(sink);
	return buf;
}

static void two_rows(struct sonde_report *r)
{
	sonde_report_field(r, "heap_bytes", "heap", sonde_value_bytes(1536));
	sonde_report_field(r, "small_bytes", "small", sonde_value_bytes(7));
	sonde_report_field(r, "json_only", NULL, sonde_value_bool(true));
	sonde_report_field(r, NULL, "text only", sonde_value_text("a\033b"));
	sonde_report_table_begin(r, "types", "types", columns, SONDE_ARRAY_LEN(columns));
	sonde_report_row(r, sonde_value_text("main.node"), sonde_value_count(12),
		sonde_value_bytes(768), sonde_value_share(768, 1024), sonde_value_addr(0x10));
	sonde_report_row(r, sonde_value_text("\xffz"), sonde_value_count(3), sonde_value_bytes(256),
		sonde_value_share(256, 1024), sonde_value_none());
	sonde_report_total(r, "types_total", sonde_value_text("total"), sonde_value_count(15),
		sonde_value_bytes(1024), sonde_value_none(), sonde_value_none());
	sonde_report_table_end(r);
	sonde_report_section_begin(r, "deep", "deep things");
	sonde_report_field(r, "n", "count", sonde_value_signed(-5));
	sonde_report_line(r, "tab\there");
	sonde_report_list_begin(r, "list");
	sonde_report_item_begin(r);
	sonde_report_field(r, "id", NULL, sonde_value_count(1));
	sonde_report_heading(r, "goroutine %d", 1);
	sonde_report_item_end(r);
	sonde_report_list_end(r);
	sonde_report_section_end(r);
}

static void one_report_two_forms(void)
{
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	sonde_notes_add(&notes, "span skipped", 4096, "span 0x%x", 0x1000);
	sonde_notes_add(&notes, "span skipped", 8192, "span 0x%x", 0x2000);
	sonde_notes_add(&notes, "stack cut", 0, "goroutine \n7");
	struct sonde_buf text =
		made(two_rows, &(struct sonde_report_options){.legend = true}, &notes);
	CHECK_STR(sonde_buf_text(&text),
		"heap:               1.5 KiB (1536 bytes)\n"
		"small:              7 bytes\n"
		"text only:          a\\x1bb\n"
		"\n"
		"types\n"
		"TYPE       COUNT  BYTES  SHARE\n"
		"main.node     12    768  75.0%\n"
		"\\xffz          3    256  25.0%\n"
		"total         15   1024      -\n"
		"\n"
		"deep things\n"
		"  count:              -5\n"
		"  tab\\there\n"
		"  goroutine 1\n"
		"\n"
		"note: span skipped: 2 times, 12288 bytes; first: span 0x1000\n"
		"note: stack cut: 1 time; first: goroutine \\n7\n");
	sonde_buf_deinit(&text);
	struct sonde_buf json =
		made(two_rows, &(struct sonde_report_options){.json = true}, &notes);
	CHECK_STR(sonde_buf_text(&json),
		"{\"sonde\":\"" SONDE_VERSION "\",\"report\":\"test.report\",\"version\":3,"
		"\"heap_bytes\":1536,\"small_bytes\":7,\"json_only\":true,"
		"\"types\":[{\"type\":\"main.node\",\"count\":12,\"bytes\":768,\"share\":0.750000,"
		"\"addr\":\"0x10\"},{\"type\":\"\\ufffdz\",\"type_hex\":\"ff7a\",\"count\":3,"
		"\"bytes\":256,\"share\":0.250000,\"addr\":null}],"
		"\"types_total\":{\"type\":\"total\",\"count\":15,\"bytes\":1024},"
		"\"deep\":{\"n\":-5,\"list\":[{\"id\":1}]},"
		"\"notes\":[{\"kind\":\"span skipped\",\"count\":2,\"amount\":12288,"
		"\"first\":\"span 0x1000\"},{\"kind\":\"stack cut\",\"count\":1,\"amount\":0,"
		"\"first\":\"goroutine \\n7\"}]}\n");
	sonde_buf_deinit(&json);
}

static void colour_and_legend_are_the_callers(void)
{
	struct sonde_buf text = made(two_rows, &(struct sonde_report_options){0}, NULL);
	CHECK(!strstr(sonde_buf_text(&text), "COUNT") && !strstr(sonde_buf_text(&text), "total"));
	CHECK(strstr(sonde_buf_text(&text), "main.node  12  768  75.0%\n"));
	CHECK(!strchr(sonde_buf_text(&text), '\033'));
	sonde_buf_deinit(&text);
	text = made(two_rows, &(struct sonde_report_options){.color = true, .legend = true}, NULL);
	CHECK(strstr(sonde_buf_text(&text), "\n\033[1mTYPE       COUNT  BYTES  SHARE\033[0m\n"));
	CHECK(strstr(sonde_buf_text(&text), "\033[1mtotal         15   1024      -\033[0m\n"));
	sonde_buf_deinit(&text);
}

static void no_rows(struct sonde_report *r)
{
	sonde_report_table_begin(r, "types", NULL, columns, SONDE_ARRAY_LEN(columns));
	sonde_report_table_end(r);
}

static void an_empty_table_has_its_header(void)
{
	struct sonde_buf text = made(no_rows, &(struct sonde_report_options){.legend = true}, NULL);
	CHECK_STR(sonde_buf_text(&text), "TYPE  COUNT  BYTES  SHARE\n");
	sonde_buf_deinit(&text);
	text = made(no_rows, &(struct sonde_report_options){.json = true}, NULL);
	CHECK(strstr(sonde_buf_text(&text), "\"types\":[],\"notes\":[]}\n"));
	sonde_buf_deinit(&text);
}

static void long_name(struct sonde_report *r)
{
	sonde_report_table_begin(r, "types", NULL, columns, SONDE_ARRAY_LEN(columns));
	sonde_report_row(r, sonde_value_text("\xe6\x97\xa5\xe6\x9c\xac main.aVeryLongTypeName"),
		sonde_value_count(1), sonde_value_bytes(2), sonde_value_none(), sonde_value_none());
	sonde_report_row(r, sonde_value_text("\xe6\x97\xa5"), sonde_value_count(1),
		sonde_value_bytes(2), sonde_value_none(), sonde_value_none());
	sonde_report_table_end(r);
}

static void a_line_is_cut_to_the_terminal(void)
{
	struct sonde_buf text = made(
		long_name, &(struct sonde_report_options){.legend = true, .max_columns = 40}, NULL);
	CHECK_STR(sonde_buf_text(&text),
		"TYPE                 COUNT  BYTES  SHARE\n"
		"\xe6\x97\xa5\xe6\x9c\xac main.aVeryLon\xe2\x80\xa6      1      2      -\n"
		"\xe6\x97\xa5                       1      2      -\n");
	sonde_buf_deinit(&text);
	text = made(long_name, &(struct sonde_report_options){.max_columns = 10}, NULL);
	CHECK(strstr(sonde_buf_text(&text), "main.a\xe2\x80\xa6  1  2  -\n"));
	sonde_buf_deinit(&text);
	text = made(long_name, &(struct sonde_report_options){0}, NULL);
	CHECK(strstr(sonde_buf_text(&text), "main.aVeryLongTypeName  1  2  -\n"));
	sonde_buf_deinit(&text);
}

enum { MANY = 3 * SONDE_TABLE_KEPT_ROWS };

static void many_rows(struct sonde_report *r)
{
	sonde_report_table_begin(r, "types", NULL, columns, SONDE_ARRAY_LEN(columns));
	for (int i = 0; i < MANY; i++)
		sonde_report_row(r, sonde_value_text(i == MANY - 1 ? "wide row" : "x"),
			sonde_value_count(1), sonde_value_bytes(2), sonde_value_none(),
			sonde_value_none());
	sonde_report_total(r, "total", sonde_value_none(), sonde_value_count(MANY),
		sonde_value_none(), sonde_value_none(), sonde_value_none());
	sonde_report_table_end(r);
}

static void rows_stream_after_the_first(void)
{
	struct sonde_buf text =
		made(many_rows, &(struct sonde_report_options){.legend = true}, NULL);
	size_t lines = 0;
	for (const char *p = sonde_buf_text(&text); *p; p++)
		lines += *p == '\n';
	CHECK_EQ(lines, MANY + 2);
	CHECK(strstr(text.data, "\nx         1      2      -\n"));
	CHECK(strstr(text.data, "\nwide row      1      2      -\n-     12288      -      -\n"));
	sonde_buf_deinit(&text);
}

static void memory_of_a_target(struct sonde_report *r)
{
	sonde_report_bytes(r, "bytes", 0xc000012340, "0123456789abcde\033xy\xff", 19);
	sonde_report_bytes(r, "none", 0, NULL, 0);
}

static void bytes_with_their_addresses(void)
{
	struct sonde_buf text = made(memory_of_a_target, &(struct sonde_report_options){0}, NULL);
	CHECK_STR(sonde_buf_text(&text),
		"0x00c000012340  30 31 32 33 34 35 36 37  38 39 61 62 63 64 65 1b  "
		"|0123456789abcde.|\n"
		"0x00c000012350  78 79 ff                                          |xy.|\n");
	sonde_buf_deinit(&text);
	text = made(memory_of_a_target, &(struct sonde_report_options){.json = true}, NULL);
	CHECK(strstr(sonde_buf_text(&text),
		"\"bytes\":\"303132333435363738396162636465"
		"1b7879ff\",\"none\":\"\","));
	sonde_buf_deinit(&text);
}

static void a_full_disk_ends_a_long_report(void)
{
	struct sonde_sink *sink = NULL;
	struct sonde_report r;
	REQUIRE_OK(sonde_sink_open_file("/dev/full", &sink));
	sonde_report_init(&r, sink, &(struct sonde_report_options){.legend = true});
	sonde_report_begin(&r, "test.report", 1);
	many_rows(&r);
	CHECK(sonde_report_failed(&r));
	CHECK_ERROR(sonde_report_end(&r, NULL), SONDE_OS, "/dev/full: No space left");
	sonde_report_deinit(&r);
	sonde_sink_free(sink);
}

static void a_report_left_in_a_table_leaks_nothing(void)
{
	struct sonde_buf buf = {0};
	struct sonde_sink *sink = NULL;
	struct sonde_report r;
	REQUIRE_OK(sonde_sink_open_memory(&buf, &sink));
	sonde_report_init(&r, sink, &(struct sonde_report_options){0});
	sonde_report_begin(&r, "test.report", 1);
	sonde_report_table_begin(&r, "types", NULL, columns, SONDE_ARRAY_LEN(columns));
	sonde_report_row(&r, sonde_value_text("x"), sonde_value_count(1), sonde_value_count(1),
		sonde_value_none(), sonde_value_none());
	sonde_report_deinit(&r);
	sonde_sink_free(sink);
	CHECK_EQ(buf.len, 0);
	sonde_buf_deinit(&buf);
}

int main(void)
{
	RUN(one_report_two_forms);
	RUN(colour_and_legend_are_the_callers);
	RUN(an_empty_table_has_its_header);
	RUN(a_line_is_cut_to_the_terminal);
	RUN(rows_stream_after_the_first);
	RUN(bytes_with_their_addresses);
	RUN(a_full_disk_ends_a_long_report);
	RUN(a_report_left_in_a_table_leaks_nothing);
	return tap_end();
}
