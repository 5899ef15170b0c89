/* Builds the image of unwind/format.h from the rows of object/cfi.h. */
#include <inttypes.h>
#include <string.h>
#include <zlib.h>

#include "base/vec.h"
#include "unwind/table.h"

SONDE_DEFINE_VEC(rule_vec, struct sonde_unwind_rule)

enum {
	HEADER_WORDS = sizeof(struct sonde_unwind_header) / 4,
	X86_64_RSP = 7,
	ARM64_SP = 31,
	NO_RULE = 0xffff, /* beyond SONDE_UNWIND_MAX_RULES - 1 */
};

struct builder {
	uint64_t base;
	uint16_t machine;
	uint8_t fp_reg, sp_reg;
	struct sonde_u32_vec image; /* room for the header, then the rows */
	struct sonde_u32_vec pages; /* number of the first row of each page so far */
	struct rule_vec rules;
	uint16_t *slots; /* open addressing from a rule to its number + 1 */
	size_t n_slots;
	uint16_t last_rule; /* of the last row; NO_RULE at the start */
	struct sonde_unwind_counts counts;
};

static void builder_deinit(struct builder *b)
{
	sonde_u32_vec_deinit(&b->image);
	sonde_u32_vec_deinit(&b->pages);
	rule_vec_deinit(&b->rules);
	free(b->slots);
}

static inline void sonde_cleanup_builder(struct builder *b)
{
	builder_deinit(b);
}

static uint32_t n_rows(const struct builder *b)
{
	return (uint32_t)(b->image.n - HEADER_WORDS);
}

/* --- rules --- */

/* Field by field: the rule was just stored so, and wider loads would wait for the stores. */
static bool same_rule(const struct sonde_unwind_rule *a, const struct sonde_unwind_rule *b)
{
	return a->cfa_offset == b->cfa_offset && a->bits == b->bits &&
		a->fp_offset == b->fp_offset && a->ra_offset == b->ra_offset;
}

static size_t slot_of(const struct builder *b, const struct sonde_unwind_rule *rule)
{
	uint64_t low = (uint32_t)rule->cfa_offset | (uint64_t)(uint32_t)rule->fp_offset << 32,
		 high = (uint32_t)rule->ra_offset | (uint64_t)rule->bits << 32;
	uint64_t h = (low ^ (high * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
	size_t i = (size_t)(h >> 32) & (b->n_slots - 1);
	while (b->slots[i] && !same_rule(&b->rules.items[b->slots[i] - 1], rule))
		i = (i + 1) & (b->n_slots - 1);
	return i;
}

static bool grow_slots(struct builder *b)
{
	size_t n = b->n_slots ? b->n_slots * 2 : 512;
	uint16_t *slots = sonde_new_array(uint16_t, n);
	if (!slots)
		return false;
	free(b->slots);
	b->slots = slots;
	b->n_slots = n;
	for (size_t i = 0; i < b->rules.n; i++)
		b->slots[slot_of(b, &b->rules.items[i])] = (uint16_t)(i + 1);
	return true;
}

static struct sonde_unwind_rule unsupported(enum sonde_unwind_unsupported reason)
{
	return (struct sonde_unwind_rule){
		.cfa_offset = reason, .bits = SONDE_UNWIND_CFA_UNSUPPORTED};
}

/* The rule's number. Where there are too many, the last number stands for all others. false: out of memory. */
static bool intern(struct builder *b, const struct sonde_unwind_rule *rule, uint16_t *ret)
{
	if (b->rules.n * 2 >= b->n_slots && !grow_slots(b))
		return false;
	size_t i = slot_of(b, rule);
	if (b->slots[i]) {
		*ret = b->slots[i] - 1;
		return true;
	}
	struct sonde_unwind_rule full = unsupported(SONDE_UNWIND_RULES);
	if (b->rules.n == SONDE_UNWIND_MAX_RULES - 1) {
		rule = &full;
		i = slot_of(b, rule);
	}
	*ret = (uint16_t)sonde_min(b->rules.n, SONDE_UNWIND_MAX_RULES - 1u);
	if (b->rules.n == SONDE_UNWIND_MAX_RULES)
		return true;
	if (!rule_vec_push(&b->rules, *rule))
		return false;
	b->slots[i] = (uint16_t)b->rules.n;
	return true;
}

static bool fits(int64_t offset)
{
	return offset >= INT32_MIN && offset <= INT32_MAX;
}

/* CFA into rule; false with *why where it cannot be held. */
static bool pack_cfa(const struct sonde_cfi_value *v, struct sonde_unwind_rule *rule,
	enum sonde_unwind_unsupported *why)
{
	uint32_t kind;
	int32_t add = 0;
	*why = SONDE_UNWIND_EXPRESSION;
	switch (v->kind) {
	case SONDE_CFI_REG_VALUE:
		kind = SONDE_UNWIND_CFA_REG;
		break;
	case SONDE_CFI_REG_LOADED:
		kind = SONDE_UNWIND_CFA_LOADED;
		add = v->add / 8;
		break;
	case SONDE_CFI_PLT:
		kind = SONDE_UNWIND_CFA_PLT;
		add = v->add;
		break;
	default:
		return false;
	}
	*why = SONDE_UNWIND_REGISTER;
	if (v->reg > 31)
		return false;
	*why = SONDE_UNWIND_OFFSET;
	if (!fits(v->offset) || add < -16 || add > 15 ||
		(kind == SONDE_UNWIND_CFA_LOADED && v->add % 8))
		return false;
	rule->cfa_offset = (int32_t)v->offset;
	rule->bits = kind | (uint32_t)v->reg << 3 | (uint32_t)add << 27;
	return true;
}

/* A register's rule, its bits in the lowest place. */
static uint32_t pack_value(const struct sonde_cfi_value *v, int32_t *offset)
{
	uint32_t kind, reg = v->reg;
	switch (v->kind) {
	case SONDE_CFI_SAME:
		return SONDE_UNWIND_SAME;
	case SONDE_CFI_UNDEFINED:
		return SONDE_UNWIND_UNDEFINED;
	case SONDE_CFI_CFA_MEMORY:
		kind = SONDE_UNWIND_CFA_MEMORY;
		reg = 0;
		break;
	case SONDE_CFI_CFA_VALUE:
		kind = SONDE_UNWIND_CFA_VALUE;
		reg = 0;
		break;
	case SONDE_CFI_REG_MEMORY:
		kind = SONDE_UNWIND_REG_MEMORY;
		break;
	case SONDE_CFI_REG_VALUE:
		kind = SONDE_UNWIND_REG_VALUE;
		break;
	default:
		return SONDE_UNWIND_UNKNOWN;
	}
	if (reg > 31 || !fits(v->offset))
		return SONDE_UNWIND_UNKNOWN;
	*offset = (int32_t)v->offset;
	return kind | reg << 3;
}

static struct sonde_unwind_rule pack(const struct builder *b, const struct sonde_cfi_row *row)
{
	struct sonde_unwind_rule r = {0};
	enum sonde_unwind_unsupported why;
	uint32_t ra = pack_value(&row->ra, &r.ra_offset);
	if (!pack_cfa(&row->cfa, &r, &why)) {
		/* Nobody asks for the CFA of the bottom of the stack. */
		if (ra != SONDE_UNWIND_UNDEFINED)
			return unsupported(why);
		r.bits = SONDE_UNWIND_CFA_REG | (uint32_t)b->sp_reg << 3;
	}
	if (ra == SONDE_UNWIND_UNKNOWN ||
		(ra == SONDE_UNWIND_SAME && b->machine == EM_X86_64)) /* no link register */
		return unsupported(SONDE_UNWIND_RETURN_ADDRESS);
	r.bits |= pack_value(&row->fp, &r.fp_offset) << 8 | ra << 16 | row->flags << 24;
	return r;
}

/* --- rows --- */

/* addr is relative to the base; rows ascend. */
static bool add_row(struct builder *b, uint64_t addr, const struct sonde_unwind_rule *rule)
{
	uint16_t number;
	if (!intern(b, rule, &number))
		return false;
	if (number == b->last_rule)
		return true;
	size_t page = addr / SONDE_UNWIND_PAGE_BYTES;
	while (b->pages.n <= page)
		if (!sonde_u32_vec_push(&b->pages, n_rows(b)))
			return false;
	b->last_rule = number;
	return sonde_u32_vec_push(&b->image, sonde_unwind_row_store((uint16_t)addr, number));
}

static bool add_gap(struct builder *b, uint64_t addr)
{
	static const struct sonde_unwind_rule gap;
	return addr >= (uint64_t)SONDE_UNWIND_PAGE_BYTES * SONDE_UNWIND_MAX_PAGES ||
		add_row(b, addr, &gap);
}

/* The rows of one FDE; where it turns out damaged, one row that says so. */
static bool add_fde(struct builder *b, const struct sonde_cfi *cfi, const struct sonde_cfi_fde *fde)
{
	size_t n_words = b->image.n, n_pages = b->pages.n;
	uint16_t last_rule = b->last_rule;
	struct sonde_cfi_rows rows;
	struct sonde_cfi_row row;
	sonde_cfi_rows_start(&rows, cfi, fde);
	while (sonde_cfi_rows_next(&rows, &row)) {
		struct sonde_unwind_rule rule = pack(b, &row);
		if (!add_row(b, row.start - b->base, &rule))
			return false;
	}
	if (!rows.refused) {
		b->counts.n_rows_read += rows.n_all;
		return true;
	}
	b->counts.cfi.refused[rows.refused]++;
	b->image.n = n_words;
	b->pages.n = n_pages;
	b->last_rule = last_rule;
	struct sonde_unwind_rule rule = unsupported(SONDE_UNWIND_REFUSED);
	return add_row(b, fde->start - b->base, &rule);
}

static bool add_fdes(struct builder *b, const struct sonde_cfi *cfi)
{
	uint64_t end = 0;
	const uint64_t reach = (uint64_t)SONDE_UNWIND_PAGE_BYTES * SONDE_UNWIND_MAX_PAGES;
	for (size_t i = 0; i < cfi->n_fdes; i++) {
		const struct sonde_cfi_fde *fde = &cfi->fdes[i];
		uint64_t start = fde->start - b->base;
		if (fde->start < b->base || start >= reach || fde->n_bytes > reach - start) {
			b->counts.n_outside_fdes++;
			continue;
		}
		if (end && end < start && !add_gap(b, end))
			return false;
		if (!add_fde(b, cfi, fde))
			return false;
		end = start + fde->n_bytes;
	}
	return !end || add_gap(b, end);
}

/* --- the image --- */

/* What the rows that were kept are: one count a rule, then the rules' meanings. */
static bool count_rows(struct builder *b)
{
	sonde_cleanup(free) uint32_t *uses = sonde_new_array(uint32_t, b->rules.n);
	if (!uses)
		return false;
	for (size_t i = HEADER_WORDS; i < b->image.n; i++)
		uses[sonde_unwind_row_of(b->image.items[i]).rule]++;
	struct sonde_unwind_counts *c = &b->counts;
	for (size_t i = 0; i < b->rules.n; i++) {
		const struct sonde_unwind_rule *r = &b->rules.items[i];
		uint32_t kind = sonde_unwind_cfa_kind(r), reg = sonde_unwind_cfa_reg(r);
		if (kind == SONDE_UNWIND_CFA_NONE) {
			c->n_gap_rows += uses[i];
			continue;
		}
		if (kind == SONDE_UNWIND_CFA_UNSUPPORTED) {
			c->unsupported[r->cfa_offset] += uses[i];
			continue;
		}
		if (reg != b->sp_reg && reg != b->fp_reg)
			c->n_other_register_rows += uses[i];
		if (sonde_unwind_flags(r) & SONDE_UNWIND_SIGNAL_FRAME)
			c->n_signal_rows += uses[i];
		if (sonde_unwind_ra_kind(r) == SONDE_UNWIND_UNDEFINED)
			c->n_bottom_rows += uses[i];
		if (sonde_unwind_fp_kind(r) == SONDE_UNWIND_UNKNOWN)
			c->n_unknown_fp_rows += uses[i];
	}
	return true;
}

/* Pages and rules behind the rows, zeros to the end of the block. */
static struct sonde_error *finish(
	struct builder *b, const struct sonde_buildid *id, struct sonde_unwind_table *t)
{
	struct sonde_unwind_header *h = &t->header;
	*h = (struct sonde_unwind_header){
		.magic = SONDE_UNWIND_MAGIC,
		.version = SONDE_UNWIND_VERSION,
		.byte_order = SONDE_UNWIND_BYTE_ORDER,
		.base_addr = b->base,
		.rows_offset = sizeof(*h),
		.n_rows = n_rows(b),
		.n_pages = (uint32_t)b->pages.n,
		.n_rules = (uint32_t)b->rules.n,
		.machine = b->machine,
		.fp_reg = b->fp_reg,
		.sp_reg = b->sp_reg,
	};
	if (id && id->len <= sizeof(h->buildid)) {
		h->n_buildid_bytes = id->len;
		memcpy(h->buildid, id->bytes, id->len);
	}
	size_t pages = b->image.n, rules = pages + b->pages.n + 1;
	rules = (rules + 3) / 4 * 4;
	size_t words = rules + b->rules.n * sizeof(struct sonde_unwind_rule) / 4;
	words = (words + SONDE_UNWIND_BLOCK_BYTES / 4 - 1) / (SONDE_UNWIND_BLOCK_BYTES / 4) *
		(SONDE_UNWIND_BLOCK_BYTES / 4);
	if (words > UINT32_MAX / 4)
		return sonde_error_new(
			SONDE_UNSUPPORTED, "unwind table: %zu rows pass 4 GiB", pages);
	uint32_t *image = sonde_realloc_array(b->image.items, words, 4);
	if (!image)
		return &sonde_enomem;
	b->image.items = image;
	memset(image + pages, 0, (words - pages) * 4);
	if (b->pages.n)
		memcpy(image + pages, b->pages.items, b->pages.n * 4);
	image[pages + b->pages.n] = h->n_rows;
	memcpy(image + rules, b->rules.items, b->rules.n * sizeof(struct sonde_unwind_rule));
	h->pages_offset = (uint32_t)pages * 4;
	h->rules_offset = (uint32_t)rules * 4;
	h->image_bytes = (uint32_t)words * 4;
	memcpy(image, h, sizeof(*h));
	h->checksum = (uint32_t)crc32_z(0, (const uint8_t *)image, h->image_bytes);
	memcpy(image, h, sizeof(*h));
	t->image = t->owned = (uint8_t *)image;
	t->counts = b->counts;
	b->image = (struct sonde_u32_vec){0};
	return NULL;
}

struct sonde_error *sonde_unwind_table_build(const struct sonde_cfi *cfi, uint64_t base_addr,
	const struct sonde_buildid *id, struct sonde_unwind_table **ret)
{
	static const struct sonde_unwind_rule gap;
	sonde_cleanup(builder) struct builder b = {
		.base = base_addr,
		.machine = cfi->machine,
		.fp_reg = (uint8_t)cfi->fp_reg,
		.sp_reg = cfi->machine == EM_X86_64 ? X86_64_RSP : ARM64_SP,
		.last_rule = NO_RULE,
		.counts.cfi = cfi->counts,
	};
	uint16_t number;
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t =
		sonde_new(struct sonde_unwind_table);
	if (!t || !sonde_u32_vec_reserve(&b.image, HEADER_WORDS))
		return &sonde_enomem;
	memset(b.image.items, 0, sizeof(struct sonde_unwind_header));
	b.image.n = HEADER_WORDS;
	if (!intern(&b, &gap, &number) || !add_fdes(&b, cfi) || !count_rows(&b))
		return &sonde_enomem;
	SONDE_TRY(finish(&b, id, t));
	*ret = sonde_take(t);
	return NULL;
}

uint64_t sonde_unwind_base_of_elf(const struct sonde_elf *elf)
{
	uint64_t base = UINT64_MAX;
	for (size_t i = 0; i < elf->n_segments; i++)
		if (elf->segments[i].type == PT_LOAD)
			base = sonde_min(base, elf->segments[i].addr);
	return base == UINT64_MAX ? 0 : base & ~UINT64_C(4095);
}

struct sonde_error *sonde_unwind_table_of_elf(
	struct sonde_elf *elf, struct sonde_elf *debug, struct sonde_unwind_table **ret)
{
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = NULL;
	SONDE_TRY(sonde_cfi_open(elf, debug, &cfi));
	struct sonde_buildid id = {0};
	sonde_buildid_of_elf(elf, &id);
	return sonde_unwind_table_build(cfi, sonde_unwind_base_of_elf(elf), &id, ret);
}
