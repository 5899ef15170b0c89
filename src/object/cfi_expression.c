/*
 * Expressions in call-frame information, not evaluated but read: the few shapes that compilers, linkers and hand-written
 * code produce become a struct sonde_cfi_value. DWARF 5 sections 2.5 and 6.4.2.
 */
#include "base/varint.h"
#include "object/cfi_internal.h"

enum { STACK_DEPTH = 8, X86_64_PC = 16 };

/* What a stack entry is, symbolically. */
struct entry {
	enum {
		CONSTANT, /* offset */
		LINEAR, /* base + offset */
		LOADED, /* *(base + offset) + add */
		PC_LOW, /* pc & 15 */
		PC_FAR, /* pc & 15 >= add: 0 or 1 */
		PC_FAR_8, /* the same, times 8 */
		LINEAR_FAR, /* base + offset + PC_FAR_8 */
	} kind;
	uint16_t reg;
	bool of_cfa; /* the base is the CFA, not a register */
	int32_t add;
	int64_t offset;
};

struct machine {
	struct sonde_cursor c;
	struct entry stack[STACK_DEPTH];
	unsigned n;
	uint16_t elf_machine;
};

static bool push(struct machine *m, struct entry e)
{
	if (m->n == STACK_DEPTH)
		return false;
	m->stack[m->n++] = e;
	return true;
}

static bool push_constant(struct machine *m, int64_t v)
{
	return push(m, (struct entry){.kind = CONSTANT, .offset = v});
}

static bool push_register(struct machine *m, uint64_t reg)
{
	int64_t offset = sonde_varint_sleb(&m->c);
	return reg < UINT16_MAX &&
		push(m, (struct entry){.kind = LINEAR, .reg = (uint16_t)reg, .offset = offset});
}

static bool add_constant(struct entry *e, int64_t v)
{
	switch (e->kind) {
	case CONSTANT:
	case LINEAR:
	case LINEAR_FAR:
		return !__builtin_add_overflow(e->offset, v, &e->offset);
	case LOADED:
		return !__builtin_add_overflow(e->add, v, &e->add);
	default:
		return false;
	}
}

static bool add(struct entry *a, const struct entry *b)
{
	if (b->kind == CONSTANT)
		return add_constant(a, b->offset);
	struct entry sum = *b;
	if (a->kind == CONSTANT) {
		if (!add_constant(&sum, a->offset))
			return false;
	} else if (a->kind == LINEAR && b->kind == PC_FAR_8) {
		sum = *a;
		sum.kind = LINEAR_FAR;
		sum.add = b->add;
	} else if (a->kind == PC_FAR_8 && b->kind == LINEAR) {
		sum.kind = LINEAR_FAR;
		sum.add = a->add;
	} else {
		return false;
	}
	*a = sum;
	return true;
}

static bool load(struct entry *e)
{
	if (e->kind != LINEAR)
		return false;
	e->kind = LOADED;
	e->add = 0;
	return true;
}

/* a OP b, b a constant but for plus; into a. */
static bool binary(struct machine *m, uint8_t op)
{
	if (m->n < 2)
		return false;
	struct entry *a = &m->stack[m->n - 2], *b = a + 1;
	m->n--;
	int64_t v = b->offset;
	if (op == 0x22) /* plus */
		return add(a, b);
	if (b->kind != CONSTANT)
		return false;
	bool of_pc = a->kind == LINEAR && !a->of_cfa && !a->offset && a->reg == X86_64_PC &&
		m->elf_machine == EM_X86_64;
	switch (op) {
	case 0x1a: /* and */
		if (a->kind == CONSTANT)
			a->offset &= v;
		else if (of_pc && v == 15)
			a->kind = PC_LOW;
		else
			return false;
		return true;
	case 0x1c: /* minus */
		return v != INT64_MIN && add_constant(a, -v);
	case 0x24: /* shl */
		if (a->kind == PC_FAR && v == 3)
			a->kind = PC_FAR_8;
		else
			return false;
		return true;
	case 0x2a: /* ge */
		if (a->kind != PC_LOW || v < 0 || v > 16)
			return false;
		a->kind = PC_FAR;
		a->add = (int32_t)v;
		return true;
	default:
		return false;
	}
}

/* const1u .. consts. */
static bool push_operand(struct machine *m, uint8_t op)
{
	struct sonde_cursor *c = &m->c;
	switch (op) {
	case 0x08:
		return push_constant(m, sonde_cursor_u8(c));
	case 0x09:
		return push_constant(m, (int8_t)sonde_cursor_u8(c));
	case 0x0a:
		return push_constant(m, sonde_cursor_u16(c));
	case 0x0b:
		return push_constant(m, (int16_t)sonde_cursor_u16(c));
	case 0x0c:
		return push_constant(m, sonde_cursor_u32(c));
	case 0x0d:
		return push_constant(m, (int32_t)sonde_cursor_u32(c));
	case 0x0e:
	case 0x0f:
		return push_constant(m, (int64_t)sonde_cursor_u64(c));
	case 0x10:
		return push_constant(m, (int64_t)sonde_varint_u64(c));
	default:
		return push_constant(m, sonde_varint_sleb(c));
	}
}

static bool step(struct machine *m)
{
	uint8_t op = sonde_cursor_u8(&m->c);
	if (op >= 0x30 && op <= 0x4f) /* lit0 .. */
		return push_constant(m, op - 0x30);
	if (op >= 0x70 && op <= 0x8f) /* breg0 .. */
		return push_register(m, op - 0x70u);
	if (op >= 0x08 && op <= 0x11)
		return push_operand(m, op);
	switch (op) {
	case 0x06: /* deref */
		return m->n && load(&m->stack[m->n - 1]);
	case 0x94: /* deref_size */
		return sonde_cursor_u8(&m->c) == 8 && m->n && load(&m->stack[m->n - 1]);
	case 0x12: /* dup */
		return m->n && push(m, m->stack[m->n - 1]);
	case 0x13: /* drop */
		return m->n && m->n--;
	case 0x16: { /* swap */
		if (m->n < 2)
			return false;
		struct entry top = m->stack[m->n - 1];
		m->stack[m->n - 1] = m->stack[m->n - 2];
		m->stack[m->n - 2] = top;
		return true;
	}
	case 0x23: { /* plus_uconst */
		uint64_t v = sonde_varint_u64(&m->c);
		return v <= INT64_MAX && m->n && add_constant(&m->stack[m->n - 1], (int64_t)v);
	}
	case 0x92: /* bregx */
		return push_register(m, sonde_varint_u64(&m->c));
	case 0x96: /* nop */
		return true;
	default:
		return binary(m, op);
	}
}

static struct sonde_cfi_value value_of(const struct entry *e, enum sonde_cfi_use use)
{
	struct sonde_cfi_value v = {.reg = e->reg, .add = e->add, .offset = e->offset};
	bool address = use == SONDE_CFI_FOR_ADDRESS, cfa = use == SONDE_CFI_FOR_CFA;
	if (e->kind == LINEAR && address)
		v.kind = e->of_cfa ? SONDE_CFI_CFA_MEMORY : SONDE_CFI_REG_MEMORY;
	else if (e->kind == LINEAR)
		v.kind = e->of_cfa ? SONDE_CFI_CFA_VALUE : SONDE_CFI_REG_VALUE;
	else if (e->kind == LOADED && !address && !cfa && !e->add)
		v.kind = e->of_cfa ? SONDE_CFI_CFA_MEMORY : SONDE_CFI_REG_MEMORY;
	else if (e->kind == LOADED && !address && !e->of_cfa)
		v.kind = SONDE_CFI_REG_LOADED;
	else if (e->kind == LINEAR_FAR && cfa)
		v.kind = SONDE_CFI_PLT;
	else
		v = (struct sonde_cfi_value){.kind = SONDE_CFI_EXPRESSION};
	return v;
}

struct sonde_cfi_value sonde_cfi_expression(
	uint16_t machine, const uint8_t *p, size_t len, enum sonde_cfi_use use)
{
	struct machine m = {.c = sonde_cursor_over(p, len), .elf_machine = machine};
	struct sonde_cfi_value general = {.kind = SONDE_CFI_EXPRESSION};
	if (use != SONDE_CFI_FOR_CFA) /* the CFA is on the stack before a register's expression */
		(void)push(&m, (struct entry){.kind = LINEAR, .of_cfa = true});
	while (sonde_cursor_left(&m.c))
		if (!step(&m) || m.c.bad)
			return general;
	return m.n ? value_of(&m.stack[m.n - 1], use) : general;
}
