#include "object/vmas.h"

#include <inttypes.h>
#include <string.h>
#include "base/cursor.h"

static int by_start(const void *a, const void *b)
{
	const struct sonde_vma *x = a, *y = b;
	return x->start < y->start ? -1 : x->start > y->start;
}

/* Sort, and drop rows that overlap the one before. */
static size_t order(struct sonde_vma *items, size_t n)
{
	bool sorted = true;
	for (size_t i = 1; i < n && sorted; i++)
		sorted = items[i - 1].start <= items[i].start;
	if (!sorted)
		qsort(items, n, sizeof(*items), by_start);
	size_t kept = 0;
	for (size_t i = 0; i < n; i++)
		if (!kept || items[i].start >= items[kept - 1].end)
			items[kept++] = items[i];
	return kept;
}

/*
 * fs/binfmt_elf.c, fill_files_note(): count, page size, then count rows of start, end, offset in pages, then count
 * strings. qemu and gdb write the same; gdb's page size is 1 where it does not know better.
 */
struct sonde_error *sonde_vmas_decode(
	const void *desc, size_t len, unsigned word_bytes, bool big_endian, struct sonde_vmas **ret)
{
	struct sonde_cursor c = sonde_cursor_over(desc, len);
	c.big_endian = big_endian;
	uint64_t count = sonde_cursor_word(&c, word_bytes);
	uint64_t page_bytes = sonde_cursor_word(&c, word_bytes);
	/* Each row has a string, of one byte at least. */
	if (c.bad || count > sonde_cursor_left(&c) / (3 * word_bytes + 1))
		return sonde_error_new(
			SONDE_BAD_DATA, "NT_FILE: %" PRIu64 " mappings in %zu bytes", count, len);

	sonde_cleanup(sonde_vmas) struct sonde_vmas *vmas = sonde_new(struct sonde_vmas);
	sonde_cleanup(free) struct sonde_vma *items = sonde_new_array(struct sonde_vma, count);
	if (!vmas || !items)
		return &sonde_enomem;
	struct sonde_cursor text = c;
	sonde_cursor_skip(&text, count * 3 * word_bytes);
	size_t text_len = sonde_cursor_left(&text);
	vmas->text = malloc(text_len + 1);
	if (!vmas->text)
		return &sonde_enomem;
	memcpy(vmas->text, text.p, text_len);
	vmas->text[text_len] = 0;
	vmas->page_bytes = page_bytes;

	struct sonde_cursor paths = sonde_cursor_over(vmas->text, text_len);
	size_t n = 0;
	for (uint64_t i = 0; i < count; i++) {
		struct sonde_vma *v = &items[n];
		v->start = sonde_cursor_word(&c, word_bytes);
		v->end = sonde_cursor_word(&c, word_bytes);
		uint64_t pages = sonde_cursor_word(&c, word_bytes);
		v->path = sonde_cursor_string(&paths);
		if (paths.bad)
			return sonde_error_new(SONDE_BAD_DATA,
				"NT_FILE: %" PRIu64 " mappings, but names for %" PRIu64, count, i);
		n += v->start < v->end &&
			!__builtin_mul_overflow(pages, page_bytes, &v->file_offset) &&
			v->file_offset <= UINT64_MAX - (v->end - v->start);
	}
	vmas->n = order(items, n);
	vmas->n_dropped = count - vmas->n;
	vmas->items = sonde_take(items);
	*ret = sonde_take(vmas);
	return NULL;
}

void sonde_vmas_free(struct sonde_vmas *vmas)
{
	if (!vmas)
		return;
	free((void *)vmas->items);
	free(vmas->text);
	free(vmas);
}

const struct sonde_vma *sonde_vmas_find(const struct sonde_vmas *vmas, uint64_t addr)
{
	size_t lo = 0, hi = vmas->n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (vmas->items[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < vmas->n && vmas->items[lo].start <= addr ? &vmas->items[lo] : NULL;
}
