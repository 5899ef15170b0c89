#include "cli/opt.h"
#include "tap.h"

struct inner {
	bool flag, other;
	uint64_t n, bytes, addr;
};

struct outer {
	const char *text;
	struct sonde_strings list;
	int word;
	bool has_n;
	struct inner inner;
};

static const char *const words[] = {"auto", "always", "never", NULL};

static const struct sonde_option outer_rows[] = {
	{"text", 't', SONDE_OPTION_INTO(STRING, struct outer, text), "TEXT", "text"},
	{"list", 'l', SONDE_OPTION_INTO(STRINGS, struct outer, list), "ITEM", "list"},
	{"word", 'w', SONDE_OPTION_INTO(ENUM, struct outer, word), NULL, "word", words},
};

static const struct sonde_option inner_rows[] = {
	{"flag", 'f', SONDE_OPTION_INTO(FLAG, struct inner, flag), NULL, "flag"},
	{"other", 'o', SONDE_OPTION_INTO(FLAG, struct inner, other), NULL, "other"},
	{"number", 'n', SONDE_OPTION_INTO(U64, struct inner, n), "N", "number",
		SONDE_OPTION_GIVEN(struct inner, other)},
	{"bytes", 'b', SONDE_OPTION_INTO(BYTES, struct inner, bytes), "N", "bytes"},
	{"addr", 'a', SONDE_OPTION_INTO(ADDR, struct inner, addr), "ADDR", "address"},
};

static const struct sonde_option_table tables[] = {
	{"Outer", outer_rows, SONDE_ARRAY_LEN(outer_rows), 0},
	{"Inner", inner_rows, SONDE_ARRAY_LEN(inner_rows), offsetof(struct outer, inner)},
};

/* The arguments in one string, cut at spaces. */
static struct sonde_error *parse(
	const char *line, struct outer *o, struct sonde_arguments *arguments, char room[256])
{
	char *argv[32];
	int argc = 0;
	snprintf(room, 256, "%s", line);
	for (char *p = strtok(room, " "); p; p = strtok(NULL, " "))
		argv[argc++] = p;
	*o = (struct outer){0};
	*arguments = (struct sonde_arguments){0};
	return sonde_opt_parse(tables, SONDE_ARRAY_LEN(tables), argc, argv, o, arguments);
}

/* Parse, compare with the rest of the line, release. */
#define WITH(line, ...)                                                \
	do {                                                           \
		struct outer o;                                        \
		struct sonde_arguments args;                           \
		char room[256];                                        \
		CHECK_OK(parse(line, &o, &args, room));                \
		__VA_ARGS__;                                           \
		sonde_opt_deinit(tables, SONDE_ARRAY_LEN(tables), &o); \
		sonde_arguments_deinit(&args);                         \
	} while (0)

static void refuse(const char *line, const char *message)
{
	struct outer o;
	struct sonde_arguments args;
	char room[256];
	CHECK_ERROR(parse(line, &o, &args, room), SONDE_USAGE, message);
	sonde_opt_deinit(tables, SONDE_ARRAY_LEN(tables), &o);
	sonde_arguments_deinit(&args);
}

static void every_kind_in_every_form(void)
{
	WITH("", CHECK(!o.text && !o.word && !args.operands.n && !args.help));
	WITH("--flag", CHECK(o.inner.flag && !o.inner.other));
	WITH("--text=a=b", CHECK_STR(o.text, "a=b"));
	WITH("--text=", CHECK_STR(o.text, ""));
	WITH("--text --flag", CHECK_STR(o.text, "--flag"); CHECK(!o.inner.flag));
	WITH("-tx", CHECK_STR(o.text, "x"));
	WITH("-t x", CHECK_STR(o.text, "x"));
	WITH("-fotx", CHECK_STR(o.text, "x"); CHECK(o.inner.flag && o.inner.other));
	WITH("-fot -", CHECK_STR(o.text, "-"));
	WITH("--text 1 --text 2", CHECK_STR(o.text, "2"));
	WITH("--list 1 -l2 --list=3", CHECK_EQ(o.list.n, 3); CHECK_STR(o.list.items[0], "1");
		CHECK_STR(o.list.items[1], "2"); CHECK_STR(o.list.items[2], "3"));
	WITH("--number 18446744073709551615", CHECK_EQ(o.inner.n, UINT64_MAX);
		CHECK(o.inner.other));
	WITH("-n007", CHECK_EQ(o.inner.n, 7));
	WITH("--word never", CHECK_EQ(o.word, 2));
	WITH("--bytes 4096", CHECK_EQ(o.inner.bytes, 4096));
	WITH("--bytes 4k", CHECK_EQ(o.inner.bytes, 4096));
	WITH("--bytes 0x10K", CHECK_EQ(o.inner.bytes, 16384));
	WITH("--bytes 3M", CHECK_EQ(o.inner.bytes, 3 << 20));
	WITH("--bytes 17179869183G", CHECK_EQ(o.inner.bytes, (uint64_t)17179869183u << 30));
	WITH("--addr c000012340", CHECK_EQ(o.inner.addr, 0xc000012340));
	WITH("--addr 0xC000012340", CHECK_EQ(o.inner.addr, 0xc000012340));
	WITH("--addr 0Xffffffffffffffff", CHECK_EQ(o.inner.addr, UINT64_MAX));
}

static void operands_anywhere(void)
{
	WITH("a -f b --text x c", CHECK_EQ(args.operands.n, 3);
		CHECK_STR(args.operands.items[0], "a"); CHECK_STR(args.operands.items[1], "b");
		CHECK_STR(args.operands.items[2], "c"));
	WITH("- -f", CHECK_EQ(args.operands.n, 1); CHECK_STR(args.operands.items[0], "-"));
	WITH("-f -- -f --text --", CHECK_EQ(args.operands.n, 3);
		CHECK_STR(args.operands.items[0], "-f"); CHECK_STR(args.operands.items[2], "--"));
	WITH("a --help --no-such", CHECK(args.help); CHECK_EQ(args.operands.n, 1));
	WITH("-fh", CHECK(args.help));
	WITH("-- --help", CHECK(!args.help));
}

static void mistakes_are_named(void)
{
	refuse("--flag=yes", "--flag takes no value");
	refuse("--flag=", "--flag takes no value");
	refuse("--text", "--text needs a value");
	refuse("-ft", "-t needs a value");
	refuse("--flga", "unknown option '--flga'; did you mean '--flag'?");
	refuse("--flga=3", "unknown option '--flga'; did you mean '--flag'?");
	refuse("--fl", "unknown option '--fl'; did you mean '--flag'?");
	refuse("--hlep", "did you mean '--help'?");
	refuse("--zzzzzz", "unknown option '--zzzzzz'");
	refuse("---", "unknown option '---'");
	refuse("--=x", "unknown option '--'");
	refuse("-z", "unknown option '-z'");
	refuse("-fz", "unknown option '-z' in '-fz'");
	refuse("--help=3", "unknown option '--help'");
	refuse("--word Never", "--word: 'Never' is not one of auto, always, never");
	refuse("--list 1 --list", "--list needs a value");
}

static void numbers_are_strict(void)
{
	static const char *const not_u64[] = {"-n+1", "-n-1", "-n0x10", "-n1k", "-n1.0", "-nx",
		"--number=", "-n18446744073709551616", "-n99999999999999999999999"};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(not_u64); i++)
		refuse(not_u64[i], "is not a decimal number below 2^64");
	static const char *const not_bytes[] = {"-b-1", "-bk", "-b1kk", "-b1kB", "-b1T", "-b0x",
		"--bytes=", "-b17179869184G", "-b18446744073709551615k"};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(not_bytes); i++)
		refuse(not_bytes[i], "is not a number of bytes");
	static const char *const not_addr[] = {"-a0x", "-ag", "-a0x0x1", "-a-1", "--addr=", "-a1k",
		"-a10000000000000000", "-a0x10000000000000000"};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(not_addr); i++)
		refuse(not_addr[i], "is not a hexadecimal address");
}

static const char *nearest(const char *typed)
{
	static const char *const names[] = {
		"overview", "mappings", "goroutines", "histogram", "read", "retained"};
	struct sonde_nearest best = {0};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(names); i++)
		sonde_nearest_try(&best, typed, names[i]);
	return best.name ? best.name : "";
}

static void the_nearest_name(void)
{
	CHECK_STR(nearest("histogarm"), "histogram");
	CHECK_STR(nearest("histograms"), "histogram");
	CHECK_STR(nearest("hist"), "histogram");
	CHECK_STR(nearest("goroutine"), "goroutines");
	CHECK_STR(nearest("raed"), "read");
	CHECK_STR(nearest("re"), "read");
	CHECK_STR(nearest("overveiw"), "overview");
	CHECK_STR(nearest("x"), "");
	CHECK_STR(nearest(""), "");
	CHECK_STR(nearest("completely"), "");
	char longest[300];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	CHECK_STR(nearest(longest), "");
}

int main(void)
{
	RUN(every_kind_in_every_form);
	RUN(operands_anywhere);
	RUN(mistakes_are_named);
	RUN(numbers_are_strict);
	RUN(the_nearest_name);
	return tap_end();
}
