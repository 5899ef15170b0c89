#include "unwind/table.h"

#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "unwind/lookup.h"

_Static_assert(sizeof(struct sonde_unwind_header) == 128, "the header is 128 bytes");
_Static_assert(sizeof(struct sonde_unwind_rule) == 16, "a rule does not cross a block");

const char *sonde_unwind_unsupported_name(enum sonde_unwind_unsupported reason)
{
	static const char *const names[SONDE_UNWIND_N_UNSUPPORTED] = {
		[SONDE_UNWIND_EXPRESSION] = "general expression",
		[SONDE_UNWIND_RETURN_ADDRESS] = "no usable return address",
		[SONDE_UNWIND_OFFSET] = "offset does not fit",
		[SONDE_UNWIND_REGISTER] = "register beyond 31",
		[SONDE_UNWIND_RULES] = "too many rules",
		[SONDE_UNWIND_REFUSED] = "damaged instructions",
	};
	return reason < SONDE_UNWIND_N_UNSUPPORTED ? names[reason] : "unknown";
}

/* Whether n items of item_bytes at offset lie inside the image and none crosses a block. */
static bool part_fits(
	const struct sonde_unwind_header *h, uint32_t offset, uint64_t n, uint32_t item_bytes)
{
	return offset % item_bytes == 0 && offset >= sizeof(*h) && offset <= h->image_bytes &&
		n <= (h->image_bytes - offset) / item_bytes;
}

static const uint32_t *pages_of(const struct sonde_unwind_table *t)
{
	return (const uint32_t *)(t->image + t->header.pages_offset);
}

static struct sonde_error *check_header(const struct sonde_unwind_header *h, uint64_t len)
{
	if (h->magic != SONDE_UNWIND_MAGIC)
		return sonde_error_new(h->magic == __builtin_bswap64(SONDE_UNWIND_MAGIC)
				? SONDE_MISMATCH
				: SONDE_BAD_DATA,
			"not an unwind table of this byte order");
	if (h->version != SONDE_UNWIND_VERSION || h->byte_order != SONDE_UNWIND_BYTE_ORDER)
		return sonde_error_new(SONDE_MISMATCH,
			"unwind table of version %" PRIu32 ", this is for version %d", h->version,
			SONDE_UNWIND_VERSION);
	if (h->image_bytes > len)
		return sonde_error_new(SONDE_TRUNCATED,
			"unwind table of %" PRIu32 " bytes: %" PRIu64 " are there", h->image_bytes,
			len);
	if (h->image_bytes % SONDE_UNWIND_BLOCK_BYTES || h->n_pages > SONDE_UNWIND_MAX_PAGES ||
		h->n_rules > SONDE_UNWIND_MAX_RULES ||
		h->n_buildid_bytes > SONDE_UNWIND_MAX_BUILDID_BYTES ||
		!part_fits(h, h->rows_offset, h->n_rows, 4) ||
		!part_fits(h, h->pages_offset, h->n_pages + UINT64_C(1), 4) ||
		!part_fits(h, h->rules_offset, h->n_rules, sizeof(struct sonde_unwind_rule)))
		return sonde_error_new(
			SONDE_BAD_DATA, "unwind table: the header's parts do not fit in it");
	return NULL;
}

struct sonde_error *sonde_unwind_table_open(
	const void *image, uint64_t len, struct sonde_unwind_table **ret)
{
	struct sonde_unwind_header h;
	if (len < sizeof(h))
		return sonde_error_new(
			SONDE_TRUNCATED, "unwind table: %" PRIu64 " bytes are no header", len);
	if ((uintptr_t)image % 8)
		return sonde_error_new(SONDE_USAGE, "unwind table: not aligned to 8 bytes");
	memcpy(&h, image, sizeof(h));
	SONDE_TRY(check_header(&h, len));
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t =
		sonde_new(struct sonde_unwind_table);
	if (!t)
		return &sonde_enomem;
	t->header = h;
	t->image = image;
	const uint32_t *pages = pages_of(t);
	for (uint32_t p = 0; p <= h.n_pages; p++)
		if (pages[p] > (p < h.n_pages ? pages[p + 1] : h.n_rows))
			return sonde_error_new(SONDE_BAD_DATA,
				"unwind table: page %" PRIu32 " begins at row %" PRIu32, p,
				pages[p]);
	*ret = sonde_take(t);
	return NULL;
}

void sonde_unwind_table_free(struct sonde_unwind_table *t)
{
	if (!t)
		return;
	free(t->owned);
	free(t);
}

/* --- looking up --- */

static const uint8_t *block_of(void *ctx, uint32_t number)
{
	const struct sonde_unwind_table *t = ctx;
	return number < t->header.image_bytes / SONDE_UNWIND_BLOCK_BYTES
		? t->image + (size_t)number * SONDE_UNWIND_BLOCK_BYTES
		: NULL;
}

bool sonde_unwind_table_rule(
	const struct sonde_unwind_table *t, uint64_t addr, struct sonde_unwind_rule *ret)
{
	return sonde_unwind_lookup(block_of, (void *)t, addr - t->header.base_addr, ret);
}

static bool stored_row(
	const struct sonde_unwind_table *t, uint32_t row, struct sonde_unwind_row *ret)
{
	uint32_t stored;
	if (row >= t->header.n_rows ||
		!sonde_unwind_read_u32(
			block_of, (void *)t, t->header.rows_offset + row * 4, &stored))
		return false;
	*ret = sonde_unwind_row_of(stored);
	return true;
}

/* The page that row is in, from page on. n_pages: none. */
static uint32_t page_of(const struct sonde_unwind_table *t, uint32_t row, uint32_t page)
{
	const uint32_t *pages = pages_of(t);
	while (page < t->header.n_pages && pages[page + 1] <= row)
		page++;
	return page;
}

/* The same for any row. */
static uint32_t page_find(const struct sonde_unwind_table *t, uint32_t row)
{
	const uint32_t *pages = pages_of(t);
	uint32_t lo = 0, hi = t->header.n_pages;
	while (lo < hi) {
		uint32_t middle = lo + (hi - lo) / 2;
		if (pages[middle + 1] <= row)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo;
}

static uint64_t addr_of(
	const struct sonde_unwind_table *t, uint32_t page, struct sonde_unwind_row row)
{
	return t->header.base_addr + (uint64_t)page * SONDE_UNWIND_PAGE_BYTES + row.offset;
}

bool sonde_unwind_table_next(struct sonde_unwind_cursor *c, struct sonde_unwind_entry *ret)
{
	const struct sonde_unwind_table *t = c->table;
	struct sonde_unwind_row row, next;
	struct sonde_unwind_search s = {
		.rules_offset = t->header.rules_offset, .n_rules = t->header.n_rules};
	if (!stored_row(t, c->row, &row))
		return false;
	c->page = page_of(t, c->row, c->page);
	struct sonde_unwind_entry e = {.start = addr_of(t, c->page, row),
		.end = UINT64_MAX,
		.row = c->row,
		.rule_number = row.rule};
	if (row.rule >= t->header.n_rules ||
		!sonde_unwind_search_rule(&s, block_of, (void *)t, row.rule, &e.rule))
		return false;
	if (stored_row(t, c->row + 1, &next))
		e.end = addr_of(t, page_of(t, c->row + 1, c->page), next);
	c->row++;
	*ret = e;
	return true;
}

bool sonde_unwind_table_find(
	const struct sonde_unwind_table *t, uint64_t addr, struct sonde_unwind_entry *ret)
{
	struct sonde_unwind_search s;
	if (!sonde_unwind_search_start(&s, block_of, (void *)t, addr - t->header.base_addr))
		return false;
	while (sonde_unwind_search_step(&s, block_of, (void *)t))
		;
	if (!s.lo)
		return false;
	struct sonde_unwind_cursor c = {
		.table = t, .row = s.lo - 1, .page = page_find(t, s.lo - 1)};
	return sonde_unwind_table_next(&c, ret);
}

/* --- the whole of it --- */

static struct sonde_error *check_rule(const struct sonde_unwind_table *t, uint32_t number)
{
	const struct sonde_unwind_rule *r =
		(const struct sonde_unwind_rule *)(t->image + t->header.rules_offset) + number;
	uint32_t kind = sonde_unwind_cfa_kind(r), ra = sonde_unwind_ra_kind(r);
	bool right = kind < SONDE_UNWIND_N_CFA && sonde_unwind_fp_kind(r) < SONDE_UNWIND_N_KINDS &&
		ra < SONDE_UNWIND_UNKNOWN &&
		(kind != SONDE_UNWIND_CFA_UNSUPPORTED ||
			(uint32_t)r->cfa_offset < SONDE_UNWIND_N_UNSUPPORTED) &&
		(number || (!r->bits && !r->cfa_offset));
	return right ? NULL
		     : sonde_error_new(SONDE_BAD_DATA,
			       "unwind table: rule %" PRIu32 " makes no sense", number);
}

struct sonde_error *sonde_unwind_table_check(const struct sonde_unwind_table *t)
{
	struct sonde_unwind_header h = t->header;
	h.checksum = 0;
	uLong sum = crc32_z(0, (const uint8_t *)&h, sizeof(h));
	sum = crc32_z(sum, t->image + sizeof(h), h.image_bytes - sizeof(h));
	if (sum != t->header.checksum)
		return sonde_error_new(SONDE_BAD_DATA,
			"unwind table: checksum 0x%08lx, the header says 0x%08" PRIx32, sum,
			t->header.checksum);
	for (uint32_t i = 0; i < h.n_rules; i++)
		SONDE_TRY(check_rule(t, i));
	struct sonde_unwind_cursor c = {.table = t};
	struct sonde_unwind_entry e;
	while (sonde_unwind_table_next(&c, &e))
		if (e.row + 1 < h.n_rows && e.end <= e.start)
			return sonde_error_new(SONDE_BAD_DATA,
				"unwind table: row %" PRIu32 " at 0x%" PRIx64
				" is not before its next",
				e.row, e.start);
	return c.row == h.n_rows ? NULL
				 : sonde_error_new(SONDE_BAD_DATA,
					   "unwind table: row %" PRIu32 " names no rule", c.row);
}
