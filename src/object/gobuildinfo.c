#include "object/gobuildinfo.h"

#include <string.h>
#include "base/buf.h"
#include "base/cursor.h"
#include "base/varint.h"

/* debug/buildinfo/buildinfo.go (Go 1.13 to 1.27): the blob, and its header of 32 bytes. */
static const char magic[] = "\xff Go buildinf:";
enum {
	MAGIC_BYTES = sizeof(magic) - 1,
	ALIGN = 16,
	HEADER_BYTES = 32,
	FLAG_BIG_ENDIAN = 1,
	FLAG_INLINE = 2,
	SENTINEL_BYTES = 16,
	MAX_TEXT_BYTES = 64 << 20,
};

bool sonde_gobuildinfo_search(const void *data, size_t len, size_t *offset)
{
	const uint8_t *start = data, *p = start;
	while (len - (size_t)(p - start) >= MAGIC_BYTES) {
		p = memmem(p, len - (size_t)(p - start), magic, MAGIC_BYTES);
		if (!p)
			return false;
		if (!((size_t)(p - start) % ALIGN)) {
			*offset = (size_t)(p - start);
			return true;
		}
		p++;
	}
	return false;
}

void sonde_gobuildinfo_free(struct sonde_gobuildinfo *info)
{
	if (!info)
		return;
	sonde_arena_deinit(&info->arena);
	free(info);
}

/* A Go string literal's content, or the text itself where it is not quoted. NULL: out of memory. */
static const char *unquote(struct sonde_arena *arena, const char *s, size_t len)
{
	if (len >= 2 && s[0] == '`' && s[len - 1] == '`')
		return sonde_arena_strndup(arena, s + 1, len - 2);
	if (len < 2 || s[0] != '"' || s[len - 1] != '"')
		return sonde_arena_strndup(arena, s, len);
	char *to = sonde_arena_alloc(arena, len), *out = to;
	if (!to)
		return NULL;
	for (size_t i = 1; i < len - 1; i++) {
		if (s[i] != '\\' || i + 1 >= len - 1) {
			*out++ = s[i];
			continue;
		}
		static const char from[] = "ntrabfv", plain[] = "\n\t\r\a\b\f\v";
		char c = s[++i];
		const char *known = memchr(from, c, sizeof(from) - 1);
		unsigned value = 0, digits = 0;
		if (c == 'x')
			while (digits < 2 && i + 1 < len - 1) {
				char d = s[i + 1] | 0x20;
				if (d >= '0' && d <= '9')
					value = value * 16 + (unsigned)(d - '0');
				else if (d >= 'a' && d <= 'f')
					value = value * 16 + (unsigned)(d - 'a') + 10;
				else
					break;
				digits++;
				i++;
			}
		*out++ = digits ? (char)value : known ? plain[known - from] : c;
	}
	*out = 0;
	return to;
}

/* The next tab-separated field of [*p, end); "" at the end. NULL: out of memory. */
static const char *field(struct sonde_arena *arena, const char **p, const char *end)
{
	const char *tab = memchr(*p, '\t', (size_t)(end - *p));
	const char *stop = tab ? tab : end;
	const char *s = sonde_arena_strndup(arena, *p, (size_t)(stop - *p));
	*p = tab ? tab + 1 : end;
	return s;
}

/* Where a quoted or plain key ends: its '=', or NULL. */
static const char *key_end(const char *p, const char *end)
{
	bool quoted = p < end && (*p == '"' || *p == '`');
	char quote = quoted ? *p++ : 0;
	for (; p < end; p++) {
		if (quoted && *p == '\\' && quote == '"')
			p++;
		else if (quoted && *p == quote)
			quoted = false;
		else if (!quoted && *p == '=')
			return p;
	}
	return NULL;
}

static bool parse_module(
	struct sonde_arena *arena, const char *p, const char *end, struct sonde_gomodule *m)
{
	return (m->path = field(arena, &p, end)) && (m->version = field(arena, &p, end)) &&
		(m->sum = field(arena, &p, end));
}

/* One line; last is the module that a "=>" line belongs to. false: out of memory. */
static bool parse_line(struct sonde_gobuildinfo *info, const char *p, const char *end,
	struct sonde_gomodule **last)
{
	const char *word = p, *tab = memchr(p, '\t', (size_t)(end - p));
	if (!tab)
		return true;
	size_t len = (size_t)(tab - word);
	p = tab + 1;
	if (len == 4 && !memcmp(word, "path", 4))
		return (info->path = field(&info->arena, &p, end));
	if (len == 3 && !memcmp(word, "mod", 3)) {
		*last = &info->main;
		return parse_module(&info->arena, p, end, *last);
	}
	if (len == 3 && !memcmp(word, "dep", 3)) {
		*last = &info->deps[info->n_deps++];
		return parse_module(&info->arena, p, end, *last);
	}
	if (len == 2 && !memcmp(word, "=>", 2) && *last) {
		(*last)->replaced_by = field(&info->arena, &p, end);
		(*last)->replaced_version = field(&info->arena, &p, end);
		return (*last)->replaced_by && (*last)->replaced_version;
	}
	const char *equals = key_end(p, end);
	if (len == 5 && !memcmp(word, "build", 5) && equals) {
		struct sonde_gosetting *s = &info->settings[info->n_settings++];
		s->key = unquote(&info->arena, p, (size_t)(equals - p));
		s->value = unquote(&info->arena, equals + 1, (size_t)(end - equals - 1));
		return s->key && s->value;
	}
	return true;
}

static bool parse_modules(struct sonde_gobuildinfo *info)
{
	size_t n_lines = 1;
	for (const char *p = info->modules; *p; p++)
		n_lines += *p == '\n';
	info->deps = sonde_arena_array(&info->arena, struct sonde_gomodule, n_lines);
	info->settings = sonde_arena_array(&info->arena, struct sonde_gosetting, n_lines);
	if (!info->deps || !info->settings)
		return false;
	struct sonde_gomodule *last = NULL;
	for (const char *p = info->modules; *p;) {
		size_t len = strcspn(p, "\n");
		if (!parse_line(info, p, p + len, &last))
			return false;
		p += len + (p[len] == '\n');
	}
	return true;
}

static struct sonde_error *make(const char *version, size_t version_len, const char *modules,
	size_t modules_len, struct sonde_gobuildinfo **ret)
{
	sonde_cleanup(sonde_gobuildinfo) struct sonde_gobuildinfo *info =
		sonde_new(struct sonde_gobuildinfo);
	if (!info)
		return &sonde_enomem;
	sonde_arena_init(&info->arena);
	info->go_version = sonde_arena_strndup(&info->arena, version, version_len);
	/* Two sentinels of 16 bytes stand around the text (cmd/go/internal/modload/build.go). */
	bool whole = modules_len > 2 * SENTINEL_BYTES &&
		modules[modules_len - SENTINEL_BYTES - 1] == '\n';
	info->modules = whole ? sonde_arena_strndup(&info->arena, modules + SENTINEL_BYTES,
					modules_len - 2 * SENTINEL_BYTES)
			      : "";
	info->path = info->main.path = info->main.version = info->main.sum = "";
	if (!info->go_version || !info->modules || !parse_modules(info))
		return &sonde_enomem;
	*ret = sonde_take(info);
	return NULL;
}

/* A length and that many bytes. */
static const char *inline_string(struct sonde_cursor *c, size_t *len)
{
	uint64_t n = sonde_varint_u64(c);
	const uint8_t *p = sonde_cursor_bytes(c, n);
	*len = p ? n : 0;
	return (const char *)p;
}

/* The Go string whose header lies at addr; malloc'd in *ret, NULL where it is empty. */
static struct sonde_error *pointed_string(const struct sonde_gobuildinfo_reader *reader,
	uint64_t addr, unsigned word_bytes, bool big_endian, char **ret, size_t *len)
{
	uint8_t header[16];
	*ret = NULL;
	*len = 0;
	if (!addr)
		return NULL;
	if (!reader->read(reader->ctx, addr, header, 2 * word_bytes))
		return sonde_error_new(SONDE_FAULT, "Go build info: string header at 0x%llx",
			(unsigned long long)addr);
	struct sonde_cursor c = sonde_cursor_over(header, sizeof(header));
	c.big_endian = big_endian;
	uint64_t at = sonde_cursor_word(&c, word_bytes), n = sonde_cursor_word(&c, word_bytes);
	if (n > MAX_TEXT_BYTES)
		return sonde_error_new(SONDE_BAD_DATA, "Go build info: a string of %llu bytes",
			(unsigned long long)n);
	/* Grow while it is readable: n is only a promise. */
	enum { STEP = 1 << 16 };
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	while (text.len < n) {
		size_t step = sonde_min(n - text.len, (uint64_t)STEP);
		char *to = sonde_buf_reserve(&text, step);
		if (!to)
			return &sonde_enomem;
		if (!reader->read(reader->ctx, at + text.len, to, step))
			return sonde_error_new(SONDE_FAULT, "Go build info: string at 0x%llx",
				(unsigned long long)at);
		text.len += step;
	}
	*len = text.len;
	*ret = sonde_take(text.data);
	return NULL;
}

struct sonde_error *sonde_gobuildinfo_decode(const void *data, size_t len,
	const struct sonde_gobuildinfo_reader *reader, struct sonde_gobuildinfo **ret)
{
	struct sonde_cursor c = sonde_cursor_over(data, len);
	const uint8_t *head = sonde_cursor_bytes(&c, MAGIC_BYTES);
	uint8_t word_bytes = sonde_cursor_u8(&c), flags = sonde_cursor_u8(&c);
	if (c.bad || memcmp(head, magic, MAGIC_BYTES))
		return sonde_error_new(SONDE_BAD_DATA, "Go build info: no such blob");
	size_t version_len, modules_len;
	if (flags & FLAG_INLINE) {
		sonde_cursor_seek(&c, sonde_min(len, (size_t)HEADER_BYTES));
		const char *version = inline_string(&c, &version_len);
		if (!version || len < HEADER_BYTES)
			return sonde_error_new(
				SONDE_TRUNCATED, "Go build info: its version is cut");
		const char *modules = inline_string(&c, &modules_len);
		return make(version, version_len, modules, modules_len, ret);
	}
	c.big_endian = flags & FLAG_BIG_ENDIAN;
	uint64_t version_at = sonde_cursor_word(&c, word_bytes);
	uint64_t modules_at = sonde_cursor_word(&c, word_bytes);
	if (c.bad || (word_bytes != 4 && word_bytes != 8))
		return sonde_error_new(
			SONDE_BAD_DATA, "Go build info: pointers of %u bytes", word_bytes);
	if (!reader)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"Go build info: its pointers cannot be followed without memory");
	sonde_cleanup(free) char *version = NULL;
	sonde_cleanup(free) char *modules = NULL;
	SONDE_TRY(pointed_string(
		reader, version_at, word_bytes, c.big_endian, &version, &version_len));
	struct sonde_error *err = pointed_string(
		reader, modules_at, word_bytes, c.big_endian, &modules, &modules_len);
	if (err && err->code == SONDE_NO_MEMORY)
		return err;
	sonde_error_free(err); /* damaged module text is dropped */
	if (!version)
		return sonde_error_new(SONDE_BAD_DATA, "Go build info: no version");
	return make(version, version_len, modules, modules_len, ret);
}

static bool read_elf(void *ctx, uint64_t addr, void *to, size_t len)
{
	const uint8_t *p = sonde_elf_bytes_at(ctx, addr, len);
	if (p)
		memcpy(to, p, len);
	return p;
}

static struct sonde_error *decode_in_elf(
	struct sonde_elf *elf, const uint8_t *data, uint64_t len, struct sonde_gobuildinfo **ret)
{
	const struct sonde_gobuildinfo_reader reader = {read_elf, elf};
	return sonde_gobuildinfo_decode(data, len, &reader, ret);
}

/* The blob in the PT_LOADs with (want) or without the write flag. */
static const uint8_t *search_segments(struct sonde_elf *elf, bool writable, uint64_t *left)
{
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t len;
		size_t at;
		if (s->type != PT_LOAD || !(s->flags & PF_W) == writable)
			continue;
		const uint8_t *data = sonde_elf_segment_bytes(elf, s, &len);
		uint64_t lead = -s->addr % ALIGN;
		if (data && lead < len && sonde_gobuildinfo_search(data + lead, len - lead, &at)) {
			*left = len - lead - at;
			return data + lead + at;
		}
	}
	return NULL;
}

struct sonde_error *sonde_gobuildinfo_of_elf(struct sonde_elf *elf, struct sonde_gobuildinfo **ret)
{
	const struct sonde_elf_section *section = sonde_elf_section_find(elf, ".go.buildinfo");
	const uint8_t *data;
	uint64_t len;
	size_t at;
	if (section) {
		struct sonde_error *err = sonde_elf_section_read(elf, section, &data, &len);
		if (!err && sonde_gobuildinfo_search(data, len, &at))
			return decode_in_elf(elf, data + at, len - at, ret);
		sonde_error_free(err);
	}
	data = search_segments(elf, true, &len);
	if (!data)
		data = search_segments(elf, false, &len);
	if (!data)
		return sonde_error_new(SONDE_NOT_FOUND, "no Go build info: not a Go program");
	return decode_in_elf(elf, data, len, ret);
}

const char *sonde_gobuildinfo_setting(const struct sonde_gobuildinfo *info, const char *key)
{
	for (size_t i = 0; i < info->n_settings; i++)
		if (!strcmp(info->settings[i].key, key))
			return info->settings[i].value;
	return NULL;
}
