/* Executes the instructions of CIEs and FDEs. DWARF 5 section 6.4.2; GNU and arm64 extensions as noted. */
#include <string.h>

#include "base/varint.h"
#include "object/cfi_internal.h"

/* Opcodes by number: DWARF 5 table 7.29. */
enum {
	OP_ADVANCE = 0x40, /* the three whose operand stands in the low six bits */
	OP_OFFSET = 0x80,
	OP_RESTORE = 0xc0,
	OP_NOP = 0x00,
	OP_SET_LOC = 0x01,
	OP_ADVANCE1 = 0x02,
	OP_ADVANCE2 = 0x03,
	OP_ADVANCE4 = 0x04,
	OP_OFFSET_EXTENDED = 0x05,
	OP_RESTORE_EXTENDED = 0x06,
	OP_UNDEFINED = 0x07,
	OP_SAME_VALUE = 0x08,
	OP_REGISTER = 0x09,
	OP_REMEMBER = 0x0a,
	OP_RESTORE_STATE = 0x0b,
	OP_DEF_CFA = 0x0c,
	OP_DEF_CFA_REGISTER = 0x0d,
	OP_DEF_CFA_OFFSET = 0x0e,
	OP_DEF_CFA_EXPRESSION = 0x0f,
	OP_EXPRESSION = 0x10,
	OP_OFFSET_EXTENDED_SF = 0x11,
	OP_DEF_CFA_SF = 0x12,
	OP_DEF_CFA_OFFSET_SF = 0x13,
	OP_VAL_OFFSET = 0x14,
	OP_VAL_OFFSET_SF = 0x15,
	OP_VAL_EXPRESSION = 0x16,
	OP_ADVANCE8 = 0x1d, /* DW_CFA_MIPS_advance_loc8 */
	OP_NEGATE_RA_STATE_WITH_PC = 0x2c, /* aadwarf64 2024Q3 */
	OP_NEGATE_RA_STATE = 0x2d, /* aadwarf64; elsewhere DW_CFA_GNU_window_save */
	OP_ARGS_SIZE = 0x2e, /* LSB 5.0: what is pushed for calls; changes no rule */
	OP_NEGATIVE_OFFSET = 0x2f, /* DW_CFA_GNU_negative_offset_extended */
};

static inline uint64_t uleb(struct sonde_cursor *c)
{
	if (sonde_likely(c->p < c->end && *c->p < 0x80 && !c->bad))
		return *c->p++;
	return sonde_varint_u64(c);
}

static inline int64_t sleb(struct sonde_cursor *c)
{
	if (sonde_likely(c->p < c->end && *c->p < 0x80 && !c->bad))
		return (int64_t)((uint64_t)*c->p++ << 57) >> 57;
	return sonde_varint_sleb(c);
}

static bool same_value(const struct sonde_cfi_value *a, const struct sonde_cfi_value *b)
{
	return a->kind == b->kind && a->reg == b->reg && a->add == b->add && a->offset == b->offset;
}

static bool same_state(const struct sonde_cfi_state *a, const struct sonde_cfi_state *b)
{
	return same_value(&a->cfa, &b->cfa) && same_value(&a->fp, &b->fp) &&
		same_value(&a->ra, &b->ra) && a->ra_signed == b->ra_signed;
}

/* Where the rule of reg is kept; NULL: a register that no walk needs. */
static inline struct sonde_cfi_value *value_for(struct sonde_cfi_rows *r, uint64_t reg)
{
	if (reg == r->cfi->fp_reg)
		return &r->state.fp;
	return reg == r->cie->ra_reg ? &r->state.ra : NULL;
}

static inline void set(
	struct sonde_cfi_rows *r, uint64_t reg, uint8_t kind, uint16_t from, int64_t offset)
{
	struct sonde_cfi_value *v = value_for(r, reg);
	if (!v)
		return;
	*v = (struct sonde_cfi_value){.kind = kind, .reg = from, .offset = offset};
	r->changed = true;
}

static inline enum sonde_cfi_reason set_factored(
	struct sonde_cfi_rows *r, uint64_t reg, uint8_t kind, int64_t factored)
{
	int64_t offset;
	if (__builtin_mul_overflow(factored, r->cie->data_align, &offset))
		return SONDE_CFI_BAD_OPERAND;
	set(r, reg, kind, 0, offset);
	return SONDE_CFI_FINE;
}

static inline enum sonde_cfi_reason set_unsigned(
	struct sonde_cfi_rows *r, uint64_t reg, uint8_t kind, uint64_t factored)
{
	return factored > INT64_MAX ? SONDE_CFI_BAD_OPERAND
				    : set_factored(r, reg, kind, (int64_t)factored);
}

static void restore(struct sonde_cfi_rows *r, uint64_t reg)
{
	struct sonde_cfi_value *v = value_for(r, reg);
	if (!v)
		return;
	*v = v == &r->state.fp ? r->cie->initial.fp : r->cie->initial.ra;
	r->changed = true;
}

static inline void set_cfa(struct sonde_cfi_rows *r)
{
	r->state.cfa = (struct sonde_cfi_value){.kind = SONDE_CFI_REG_VALUE,
		.reg = r->state.cfa_reg,
		.offset = r->state.cfa_offset};
	r->changed = true;
}

static inline uint16_t register_of(uint64_t reg)
{
	return reg > UINT16_MAX ? UINT16_MAX : (uint16_t)reg;
}

/* DW_CFA_def_cfa_offset leaves an expression as it is: so do the unwinders that programs run with. */
static inline enum sonde_cfi_reason set_cfa_offset(struct sonde_cfi_rows *r, uint64_t offset)
{
	r->state.cfa_offset = (int64_t)offset;
	if (r->state.cfa.kind == SONDE_CFI_REG_VALUE)
		set_cfa(r);
	return offset > INT64_MAX ? SONDE_CFI_BAD_OPERAND : SONDE_CFI_FINE;
}

static enum sonde_cfi_reason set_cfa_offset_factored(struct sonde_cfi_rows *r, int64_t factored)
{
	if (__builtin_mul_overflow(factored, r->cie->data_align, &r->state.cfa_offset))
		return SONDE_CFI_BAD_OPERAND;
	if (r->state.cfa.kind == SONDE_CFI_REG_VALUE)
		set_cfa(r);
	return SONDE_CFI_FINE;
}

static inline enum sonde_cfi_reason advance(
	struct sonde_cfi_rows *r, uint64_t factored, uint64_t *loc)
{
	uint64_t delta;
	if (__builtin_mul_overflow(factored, r->cie->code_align, &delta) ||
		__builtin_add_overflow(*loc, delta, loc))
		return SONDE_CFI_BAD_OPERAND;
	return SONDE_CFI_FINE;
}

static enum sonde_cfi_reason expression(
	struct sonde_cfi_rows *r, struct sonde_cursor *c, enum sonde_cfi_use use)
{
	uint64_t reg = use == SONDE_CFI_FOR_CFA ? 0 : uleb(c), len = uleb(c);
	const uint8_t *p = sonde_cursor_bytes(c, len);
	struct sonde_cfi_value *to = use == SONDE_CFI_FOR_CFA ? &r->state.cfa : value_for(r, reg);
	if (!p || !to)
		return SONDE_CFI_FINE; /* the cursor is bad, or nothing is to be done */
	*to = sonde_cfi_expression(r->cfi->machine, p, len, use);
	r->changed = true;
	return SONDE_CFI_FINE;
}

static enum sonde_cfi_reason remember(struct sonde_cfi_rows *r)
{
	if (r->depth == SONDE_CFI_MAX_REMEMBERED)
		return SONDE_CFI_TOO_DEEP;
	r->remembered[r->depth++] = r->state;
	return SONDE_CFI_FINE;
}

static enum sonde_cfi_reason restore_state(struct sonde_cfi_rows *r)
{
	if (!r->depth)
		return SONDE_CFI_TOO_DEEP;
	r->state = r->remembered[--r->depth];
	r->changed = true;
	return SONDE_CFI_FINE;
}

static enum sonde_cfi_reason set_loc(
	struct sonde_cfi_rows *r, struct sonde_cursor *c, uint64_t *loc)
{
	/* Pointers count from the section's start. */
	const struct sonde_cfi_section *section = &r->cfi->sections[r->cie->section];
	struct sonde_cursor whole =
		sonde_cursor_over(section->data, c->end - (uint8_t *)section->data);
	whole.p = c->p;
	uint64_t to;
	if (!sonde_cfi_read_pointer(
		    r->cfi, section, &whole, r->cie->encoding, r->cie->addr_bytes, r->start, &to) ||
		to < *loc)
		return SONDE_CFI_BAD_OPERAND;
	c->p = whole.p;
	*loc = to;
	return SONDE_CFI_FINE;
}

/* Those that are rare. */
static enum sonde_cfi_reason step_rare(
	struct sonde_cfi_rows *r, struct sonde_cursor *c, uint8_t op, uint64_t *loc)
{
	uint64_t reg, other;
	switch (op) {
	case OP_SET_LOC:
		return set_loc(r, c, loc);
	case OP_ADVANCE8:
		return advance(r, sonde_cursor_u64(c), loc);
	case OP_OFFSET_EXTENDED_SF:
		reg = uleb(c);
		return set_factored(r, reg, SONDE_CFI_CFA_MEMORY, sleb(c));
	case OP_VAL_OFFSET:
		reg = uleb(c);
		return set_unsigned(r, reg, SONDE_CFI_CFA_VALUE, uleb(c));
	case OP_VAL_OFFSET_SF:
		reg = uleb(c);
		return set_factored(r, reg, SONDE_CFI_CFA_VALUE, sleb(c));
	case OP_NEGATIVE_OFFSET:
		reg = uleb(c);
		other = uleb(c);
		return other > INT64_MAX
			? SONDE_CFI_BAD_OPERAND
			: set_factored(r, reg, SONDE_CFI_CFA_MEMORY, -(int64_t)other);
	case OP_UNDEFINED:
		set(r, uleb(c), SONDE_CFI_UNDEFINED, 0, 0);
		return SONDE_CFI_FINE;
	case OP_SAME_VALUE:
		set(r, uleb(c), SONDE_CFI_SAME, 0, 0);
		return SONDE_CFI_FINE;
	case OP_REGISTER:
		reg = uleb(c);
		set(r, reg, SONDE_CFI_REG_VALUE, register_of(uleb(c)), 0);
		return SONDE_CFI_FINE;
	case OP_DEF_CFA_SF:
		r->state.cfa_reg = register_of(uleb(c));
		set_cfa(r);
		return set_cfa_offset_factored(r, sleb(c));
	case OP_DEF_CFA_OFFSET_SF:
		return set_cfa_offset_factored(r, sleb(c));
	case OP_EXPRESSION:
		return expression(r, c, SONDE_CFI_FOR_ADDRESS);
	case OP_VAL_EXPRESSION:
		return expression(r, c, SONDE_CFI_FOR_VALUE);
	case OP_NEGATE_RA_STATE:
	case OP_NEGATE_RA_STATE_WITH_PC:
		if (r->cfi->machine != EM_AARCH64)
			return SONDE_CFI_BAD_OPCODE;
		r->state.ra_signed = !r->state.ra_signed;
		r->changed = true;
		return SONDE_CFI_FINE;
	case OP_ARGS_SIZE:
		(void)uleb(c);
		return SONDE_CFI_FINE;
	default:
		return SONDE_CFI_BAD_OPCODE;
	}
}

/* One instruction; *loc may move. */
static inline enum sonde_cfi_reason step(
	struct sonde_cfi_rows *r, struct sonde_cursor *c, uint64_t *loc)
{
	uint8_t op = sonde_cursor_u8(c);
	uint64_t reg;
	switch (op & 0xc0) {
	case OP_ADVANCE:
		return advance(r, op & 0x3f, loc);
	case OP_OFFSET:
		return set_unsigned(r, op & 0x3f, SONDE_CFI_CFA_MEMORY, uleb(c));
	case OP_RESTORE:
		restore(r, op & 0x3f);
		return SONDE_CFI_FINE;
	default:
		break;
	}
	switch (op) {
	case OP_NOP:
		return SONDE_CFI_FINE;
	case OP_ADVANCE1:
		return advance(r, sonde_cursor_u8(c), loc);
	case OP_ADVANCE2:
		return advance(r, sonde_cursor_u16(c), loc);
	case OP_ADVANCE4:
		return advance(r, sonde_cursor_u32(c), loc);
	case OP_DEF_CFA_OFFSET:
		return set_cfa_offset(r, uleb(c));
	case OP_DEF_CFA:
		r->state.cfa_reg = register_of(uleb(c));
		set_cfa(r);
		return set_cfa_offset(r, uleb(c));
	case OP_DEF_CFA_REGISTER:
		r->state.cfa_reg = register_of(uleb(c));
		set_cfa(r);
		return SONDE_CFI_FINE;
	case OP_DEF_CFA_EXPRESSION:
		return expression(r, c, SONDE_CFI_FOR_CFA);
	case OP_REMEMBER:
		return remember(r);
	case OP_RESTORE_STATE:
		return restore_state(r);
	case OP_RESTORE_EXTENDED:
		restore(r, uleb(c));
		return SONDE_CFI_FINE;
	case OP_OFFSET_EXTENDED:
		reg = uleb(c);
		return set_unsigned(r, reg, SONDE_CFI_CFA_MEMORY, uleb(c));
	default:
		return step_rare(r, c, op, loc);
	}
}

void sonde_cfi_rows_start(
	struct sonde_cfi_rows *r, const struct sonde_cfi *cfi, const struct sonde_cfi_fde *fde)
{
	const struct sonde_cfi_cie *cie = &cfi->cies[fde->cie];
	r->refused = SONDE_CFI_FINE;
	r->n_all = 0;
	r->cfi = cfi;
	r->cie = cie;
	r->p = (const uint8_t *)cfi->sections[cie->section].data + fde->insns;
	r->end = r->p + fde->n_insn_bytes;
	r->start = r->loc = fde->start;
	r->fde_end = fde->start + fde->n_bytes;
	r->done = r->any = false;
	r->changed = true;
	r->depth = 0;
	r->state = cie->initial;
}

/* The state as a row that starts at r->loc, unless it is that of the row before. */
static bool emit(struct sonde_cfi_rows *r, struct sonde_cfi_row *ret)
{
	if (!r->changed)
		return false;
	r->changed = false;
	if (r->any && same_state(&r->state, &r->last))
		return false;
	r->any = true;
	r->last = r->state;
	ret->start = r->loc;
	ret->cfa = r->state.cfa;
	ret->fp = r->state.fp;
	ret->ra = r->state.ra;
	ret->flags = (r->cie->signal_frame ? SONDE_CFI_SIGNAL_FRAME : 0) |
		(r->state.ra_signed ? SONDE_CFI_RA_SIGNED : 0) |
		(r->cie->key_b ? SONDE_CFI_KEY_B : 0);
	return true;
}

bool sonde_cfi_rows_next(struct sonde_cfi_rows *r, struct sonde_cfi_row *ret)
{
	if (r->done)
		return false;
	struct sonde_cursor c = sonde_cursor_over(r->p, (size_t)(r->end - r->p));
	uint64_t loc = r->loc;
	while (c.p < c.end) {
		enum sonde_cfi_reason reason = step(r, &c, &loc);
		if (sonde_unlikely(reason != SONDE_CFI_FINE || c.bad)) {
			r->refused = reason != SONDE_CFI_FINE ? reason : SONDE_CFI_BAD_OPERAND;
			r->done = true;
			return false;
		}
		if (loc == r->loc)
			continue;
		r->n_all += r->loc < r->fde_end;
		bool made = r->loc < r->fde_end && emit(r, ret);
		r->loc = loc;
		if (made) {
			r->p = c.p;
			return true;
		}
	}
	r->done = true;
	if (r->loc >= r->fde_end)
		return false;
	r->n_all++;
	return emit(r, ret);
}

enum sonde_cfi_reason sonde_cfi_run_cie(const struct sonde_cfi *cfi, struct sonde_cfi_cie *cie,
	const uint8_t *p, const uint8_t *end)
{
	struct sonde_cfi_rows r = {.cfi = cfi, .cie = cie};
	struct sonde_cursor c = sonde_cursor_over(p, (size_t)(end - p));
	while (c.p < c.end) {
		uint64_t loc = 0;
		enum sonde_cfi_reason reason = step(&r, &c, &loc);
		if (reason != SONDE_CFI_FINE)
			return reason;
		if (c.bad || loc)
			return SONDE_CFI_BAD_OPERAND; /* a CIE has no locations */
	}
	cie->initial = r.state;
	return SONDE_CFI_FINE;
}
