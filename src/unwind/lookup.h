/*
 * src/unwind/lookup.h: from an address to its rule. Freestanding: no libc, no 64-bit division, loops with constant bounds.
 * The image is reached block by block through a function of the caller's: an array in memory, or a BPF map whose values
 * are blocks. Nothing in the image is trusted: for any bytes no other block than block(0 .. n) is asked for, and nothing
 * outside a block is read.
 *
 * sonde_unwind_lookup() is all that user space needs. BPF programs may have to spend their loops on bpf_loop():
 * sonde_unwind_search_start(), then sonde_unwind_search_step() until it returns false, SONDE_UNWIND_MAX_STEPS times at
 * most, then sonde_unwind_search_number() and sonde_unwind_search_rule().
 */
#pragma once
#include "unwind/format.h"

#define SONDE_UNWIND_INLINE static inline __attribute__((always_inline, unused))

/* Block `number` of the image, SONDE_UNWIND_BLOCK_BYTES in place, 8-byte aligned; NULL beyond its end. */
typedef const uint8_t *(*sonde_unwind_block_fn)(void *ctx, uint32_t number);

enum { SONDE_UNWIND_MAX_STEPS = 17 }; /* a page has 65,536 rows at most */

struct sonde_unwind_search {
	uint32_t rows_offset, rules_offset, n_rules;
	uint32_t lo, hi; /* the row is in lo .. hi - 1 */
	uint16_t offset; /* in the page */
};

/* 4-byte item at a byte offset of the image. */
SONDE_UNWIND_INLINE bool sonde_unwind_read_u32(
	sonde_unwind_block_fn block, void *ctx, uint32_t offset, uint32_t *ret)
{
	const uint8_t *b = block(ctx, offset / SONDE_UNWIND_BLOCK_BYTES);
	if (!b)
		return false;
	*ret = *(const uint32_t *)(b + (offset & (SONDE_UNWIND_BLOCK_BYTES - 4)));
	return true;
}

/* addr relative to base_addr. false: it has no row. */
SONDE_UNWIND_INLINE bool sonde_unwind_search_start(
	struct sonde_unwind_search *s, sonde_unwind_block_fn block, void *ctx, uint64_t addr)
{
	const struct sonde_unwind_header *h = (const void *)block(ctx, 0);
	if (!h)
		return false;
	uint64_t page = addr / SONDE_UNWIND_PAGE_BYTES;
	if (page >= SONDE_UNWIND_MAX_PAGES || page >= h->n_pages)
		return false;
	uint32_t at = h->pages_offset + (uint32_t)page * 4, n_rows = h->n_rows;
	s->rows_offset = h->rows_offset;
	s->rules_offset = h->rules_offset;
	s->n_rules = h->n_rules;
	s->offset = (uint16_t)addr;
	return sonde_unwind_read_u32(block, ctx, at, &s->lo) &&
		sonde_unwind_read_u32(block, ctx, at + 4, &s->hi) && s->lo <= s->hi &&
		s->hi <= n_rows && s->hi - s->lo <= SONDE_UNWIND_PAGE_BYTES;
}

/* Halves what is left. false: nothing is; the row is number lo - 1, and there is none where lo is 0. */
SONDE_UNWIND_INLINE bool sonde_unwind_search_step(
	struct sonde_unwind_search *s, sonde_unwind_block_fn block, void *ctx)
{
	if (s->lo >= s->hi)
		return false;
	uint32_t middle = s->lo + (s->hi - s->lo) / 2, row;
	if (!sonde_unwind_read_u32(block, ctx, s->rows_offset + middle * 4, &row)) {
		s->lo = s->hi = 0;
		return false;
	}
	if (sonde_unwind_row_of(row).offset <= s->offset)
		s->lo = middle + 1;
	else
		s->hi = middle;
	return true;
}

/* After the last step: the rule's number. false: no row, or damaged. */
SONDE_UNWIND_INLINE bool sonde_unwind_search_number(
	const struct sonde_unwind_search *s, sonde_unwind_block_fn block, void *ctx, uint32_t *ret)
{
	uint32_t row;
	if (!s->lo || !sonde_unwind_read_u32(block, ctx, s->rows_offset + (s->lo - 1) * 4, &row))
		return false;
	*ret = sonde_unwind_row_of(row).rule;
	return *ret < s->n_rules;
}

/* The rule of that number. false: damaged. */
SONDE_UNWIND_INLINE bool sonde_unwind_search_rule(const struct sonde_unwind_search *s,
	sonde_unwind_block_fn block, void *ctx, uint32_t number, struct sonde_unwind_rule *ret)
{
	uint32_t offset = s->rules_offset + number * (uint32_t)sizeof(*ret);
	const uint8_t *b = block(ctx, offset / SONDE_UNWIND_BLOCK_BYTES);
	if (!b)
		return false;
	*ret = *(const struct sonde_unwind_rule *)(b +
		(offset & (SONDE_UNWIND_BLOCK_BYTES - sizeof(*ret))));
	return true;
}

/*
 * The rule at addr, which is relative to the header's base_addr: (pc - load bias) - base_addr, and that of pc - 1 for a
 * return address whose callee is not a signal frame. false: no information, *ret is void. *ret may also be
 * SONDE_UNWIND_CFA_UNSUPPORTED.
 */
SONDE_UNWIND_INLINE bool sonde_unwind_lookup(
	sonde_unwind_block_fn block, void *ctx, uint64_t addr, struct sonde_unwind_rule *ret)
{
	struct sonde_unwind_search s;
	uint32_t number;
	if (!sonde_unwind_search_start(&s, block, ctx, addr))
		return false;
	for (unsigned i = 0; i < SONDE_UNWIND_MAX_STEPS; i++) {
		if (!sonde_unwind_search_step(&s, block, ctx))
			break;
	}
	return sonde_unwind_search_number(&s, block, ctx, &number) && number &&
		sonde_unwind_search_rule(&s, block, ctx, number, ret);
}
