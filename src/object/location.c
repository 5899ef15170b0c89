#include "object/location.h"

#include <dwarf.h>
#include <string.h>
#include "base/cursor.h"
#include "base/mem.h"
#include "base/varint.h"

enum {
	MAX_STACK = 64,
	MAX_NESTING = 8, /* of frame bases and calls */
	MAX_STEPS = 10000, /* operations in all: DW_OP_bra and skip may go back */
};

/* size 0 is the generic type: an integer as wide as an address, of no sign. */
struct value {
	uint64_t bits; /* cut to the type's width */
	uint8_t size;
	bool is_signed, is_float;
	const char *why; /* not known, and why; bits is then 0 */
};

/* What the operations since the last piece described. */
enum described { NOTHING, MEMORY, IN_REGISTER, IMPLICIT_VALUE, IMPLICIT_BYTES, UNKNOWN };

struct machine {
	const struct sonde_location_context *context;
	unsigned address_bytes, offset_bytes;
	struct value stack[MAX_STACK];
	unsigned n;
	unsigned steps;
	const char *bad; /* what is wrong with the bytes; sticky */
	enum described described; /* MEMORY is decided by the stack alone */
	unsigned reg;
	const uint8_t *bytes;
	uint64_t n_bytes;
	const char *why;
	struct sonde_location_piece *pieces;
	size_t n_pieces, max_pieces;
	uint64_t offset; /* of the next piece */
};

static const struct sonde_location_unit default_unit = {
	.version = 5,
	.address_bytes = 8,
	.offset_bytes = 4,
};

static const struct sonde_location_unit *unit_of(const struct machine *m)
{
	return m->context->unit ? m->context->unit : &default_unit;
}

static void fail(struct machine *m, const char *what)
{
	if (!m->bad)
		m->bad = what;
}

static unsigned width_of(const struct machine *m, const struct value *v)
{
	return v->size ? v->size : m->address_bytes;
}

static uint64_t cut(uint64_t bits, unsigned size)
{
	return size >= 8 ? bits : bits & ((1ull << (size * 8)) - 1);
}

static int64_t extend(uint64_t bits, unsigned size)
{
	if (size >= 8)
		return (int64_t)bits;
	unsigned shift = 64 - size * 8;
	return (int64_t)(bits << shift) >> shift;
}

static void push_value(struct machine *m, struct value v)
{
	if (m->n == MAX_STACK) {
		fail(m, "stack overflow");
		return;
	}
	v.bits = v.why ? 0 : cut(v.bits, width_of(m, &v));
	m->stack[m->n++] = v;
}

static void push(struct machine *m, uint64_t bits)
{
	push_value(m, (struct value){.bits = bits});
}

static void push_unknown(struct machine *m, const char *why)
{
	push_value(m, (struct value){.why = why});
}

static struct value pop(struct machine *m)
{
	if (!m->n) {
		fail(m, "stack underflow");
		return (struct value){0};
	}
	return m->stack[--m->n];
}

static void push_register(struct machine *m, uint64_t reg, int64_t offset)
{
	uint64_t value = 0;
	if (reg <= UINT32_MAX && m->context->reg &&
		m->context->reg(m->context->ctx, (unsigned)reg, &value))
		push(m, value + (uint64_t)offset);
	else
		push_unknown(m, "register not known");
}

static bool read_memory(const struct machine *m, uint64_t addr, void *to, size_t len)
{
	return m->context->memory && m->context->memory(m->context->ctx, addr, to, len);
}

/* type: what the result shall be, its size aside. */
static void push_memory(struct machine *m, uint64_t size, struct value type)
{
	struct value addr = pop(m);
	if (size == 0 || size > 8) {
		type.why = "typed value wider than 8 bytes";
		if (!size)
			fail(m, "dereference of 0 bytes");
	}
	if (addr.why)
		type.why = addr.why;
	type.bits = 0;
	if (!type.why && !m->bad && !read_memory(m, addr.bits, &type.bits, size))
		type.why = "memory not readable";
	push_value(m, type);
}

/* Entry `index` of the unit's part of .debug_addr. */
static bool indexed_address(
	const struct sonde_location_unit *unit, uint64_t index, uint64_t *address)
{
	if (!unit->addresses || (unit->address_bytes != 4 && unit->address_bytes != 8) ||
		index >= unit->addresses_bytes / unit->address_bytes)
		return false;
	struct sonde_cursor c = sonde_cursor_over(unit->addresses, unit->addresses_bytes);
	sonde_cursor_skip(&c, index * unit->address_bytes);
	*address = sonde_cursor_word(&c, unit->address_bytes);
	return true;
}

/* The base type at offset into the unit as the type of a value; 0 is the generic type. false = none such. */
static bool typed(struct machine *m, uint64_t offset, struct value *type)
{
	const struct sonde_location_unit *unit = unit_of(m);
	uint64_t size;
	unsigned encoding;
	*type = (struct value){0};
	if (!offset)
		return true;
	if (!unit->base_type || !unit->base_type(unit->owner, offset, &size, &encoding)) {
		fail(m, "no base type there");
		return false;
	}
	if (!size || size > 8) {
		type->size = 8;
		type->why = "typed value wider than 8 bytes";
		return true;
	}
	type->size = (uint8_t)size;
	type->is_signed = encoding == DW_ATE_signed || encoding == DW_ATE_signed_char;
	type->is_float = encoding == DW_ATE_float || encoding == DW_ATE_complex_float ||
		encoding == DW_ATE_imaginary_float || encoding == DW_ATE_decimal_float;
	return true;
}

static void unary(struct machine *m, unsigned op, uint64_t operand)
{
	struct value v = pop(m);
	if (v.is_float && op != DW_OP_nop && !v.why)
		v.why = "arithmetic on floating point";
	switch (op) {
	case DW_OP_abs:
		if (extend(v.bits, width_of(m, &v)) < 0)
			v.bits = -v.bits;
		break;
	case DW_OP_neg:
		v.bits = -v.bits;
		break;
	case DW_OP_not:
		v.bits = ~v.bits;
		break;
	case DW_OP_plus_uconst:
		v.bits += operand;
		break;
	}
	push_value(m, v);
}

static bool compare(unsigned op, bool less, bool equal)
{
	switch (op) {
	case DW_OP_eq:
		return equal;
	case DW_OP_ne:
		return !equal;
	case DW_OP_lt:
		return less;
	case DW_OP_le:
		return less || equal;
	case DW_OP_gt:
		return !less && !equal;
	default: /* DW_OP_ge */
		return !less;
	}
}

/* DWARF 5, section 2.5.1.4: the generic type divides and compares as signed, takes remainders and shifts as unsigned. */
static void binary(struct machine *m, unsigned op)
{
	struct value b = pop(m), a = pop(m), r = a;
	bool shift = op == DW_OP_shl || op == DW_OP_shr || op == DW_OP_shra;
	if (!shift && a.size != b.size) {
		fail(m, "operands of different types");
		return;
	}
	unsigned width = width_of(m, &a);
	int64_t sa = extend(a.bits, width), sb = extend(b.bits, width_of(m, &b));
	bool as_signed = a.is_signed || !a.size;
	if (a.why || b.why || a.is_float || b.is_float) {
		r.why = a.why ? a.why : b.why ? b.why : "arithmetic on floating point";
		push_value(m, r);
		return;
	}
	switch (op) {
	case DW_OP_and:
		r.bits = a.bits & b.bits;
		break;
	case DW_OP_or:
		r.bits = a.bits | b.bits;
		break;
	case DW_OP_xor:
		r.bits = a.bits ^ b.bits;
		break;
	case DW_OP_plus:
		r.bits = a.bits + b.bits;
		break;
	case DW_OP_minus:
		r.bits = a.bits - b.bits;
		break;
	case DW_OP_mul:
		r.bits = a.bits * b.bits;
		break;
	case DW_OP_div:
	case DW_OP_mod:
		if (!b.bits) {
			fail(m, "division by zero");
			return;
		}
		if (op == DW_OP_mod && !a.is_signed)
			r.bits = a.bits % b.bits;
		else if (op == DW_OP_mod)
			r.bits = sb == -1 ? 0 : (uint64_t)(sa % sb);
		else if (as_signed)
			r.bits = sb == -1 ? -(uint64_t)sa : (uint64_t)(sa / sb);
		else
			r.bits = a.bits / b.bits;
		break;
	case DW_OP_shl:
		r.bits = b.bits >= width * 8 ? 0 : a.bits << b.bits;
		break;
	case DW_OP_shr:
		r.bits = b.bits >= width * 8 ? 0 : a.bits >> b.bits;
		break;
	case DW_OP_shra:
		r.bits = (uint64_t)(sa >> sonde_min(b.bits, (uint64_t)63));
		break;
	default:
		r = (struct value){.bits = compare(op, as_signed ? sa < sb : a.bits < b.bits,
					   a.bits == b.bits)};
		break;
	}
	push_value(m, r);
}

static void stack_operation(struct machine *m, unsigned op, struct sonde_cursor *c)
{
	unsigned need = op == DW_OP_dup || op == DW_OP_drop ? 1
		: op == DW_OP_rot                           ? 3
		: op == DW_OP_pick                          ? sonde_cursor_u8(c) + 1u
							    : 2;
	if (m->n < need) {
		fail(m, "stack underflow");
		return;
	}
	struct value *top = &m->stack[m->n - 1], v = *top;
	switch (op) {
	case DW_OP_dup:
		push_value(m, v);
		break;
	case DW_OP_drop:
		m->n--;
		break;
	case DW_OP_over:
		push_value(m, top[-1]);
		break;
	case DW_OP_pick:
		push_value(m, m->stack[m->n - need]);
		break;
	case DW_OP_swap:
		*top = top[-1];
		top[-1] = v;
		break;
	case DW_OP_rot:
		*top = top[-1];
		top[-1] = top[-2];
		top[-2] = v;
		break;
	}
}

static void jump(struct machine *m, unsigned op, struct sonde_cursor *c)
{
	int16_t by = (int16_t)sonde_cursor_u16(c);
	if (op == DW_OP_bra) {
		struct value v = pop(m);
		if (v.why) {
			/* Where it would go is not known, hence nothing is. */
			m->described = UNKNOWN;
			m->why = v.why;
			c->p = c->end;
			return;
		}
		if (!v.bits)
			return;
	}
	int64_t to = (int64_t)sonde_cursor_offset(c) + by;
	if (c->bad || to < 0)
		c->bad = true;
	else
		sonde_cursor_seek(c, (uint64_t)to);
}

static void convert(struct machine *m, bool reinterpret, uint64_t type_offset)
{
	struct value type, v = pop(m);
	if (!typed(m, type_offset, &type))
		return;
	if (v.why)
		type.why = v.why;
	else if (reinterpret && width_of(m, &v) != width_of(m, &type))
		fail(m, "reinterpretation changes the size");
	else if (!reinterpret && (v.is_float || type.is_float))
		type.why = "arithmetic on floating point";
	type.bits = v.is_signed ? (uint64_t)extend(v.bits, width_of(m, &v)) : v.bits;
	push_value(m, type);
}

static void typed_operation(struct machine *m, unsigned op, struct sonde_cursor *c)
{
	struct value type;
	uint64_t size, reg;
	switch (op) {
	case DW_OP_const_type:
	case DW_OP_GNU_const_type: {
		uint64_t offset = sonde_varint_u64(c);
		size = sonde_cursor_u8(c);
		const uint8_t *bytes = sonde_cursor_bytes(c, size);
		if (!bytes || !typed(m, offset, &type))
			return;
		if (!type.why && size != width_of(m, &type)) {
			fail(m, "typed constant of another size");
			return;
		}
		if (!type.why)
			memcpy(&type.bits, bytes, size);
		push_value(m, type);
		break;
	}
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		reg = sonde_varint_u64(c);
		if (!typed(m, sonde_varint_u64(c), &type))
			return;
		push_register(m, reg, 0);
		if (m->bad)
			return;
		struct value v = pop(m);
		type.bits = v.bits;
		if (v.why)
			type.why = v.why;
		push_value(m, type);
		break;
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
		size = sonde_cursor_u8(c);
		if (typed(m, sonde_varint_u64(c), &type))
			push_memory(m, type.why ? 8 : sonde_min(size, (uint64_t)9), type);
		break;
	case DW_OP_convert:
	case DW_OP_GNU_convert:
		convert(m, false, sonde_varint_u64(c));
		break;
	default: /* reinterpret */
		convert(m, true, sonde_varint_u64(c));
		break;
	}
}

/* Describe the value that lies in no memory, and see that nothing else did. */
static void describe(struct machine *m, enum described what)
{
	if (m->described != NOTHING)
		fail(m, "two locations in one piece");
	m->described = what;
}

static void describe_unknown(struct machine *m, const char *why)
{
	describe(m, UNKNOWN);
	m->why = why;
}

static void add_piece(struct machine *m, uint64_t size_bytes, uint64_t skip_bytes)
{
	struct sonde_location_piece piece = {
		.offset_bytes = m->offset,
		.size_bytes = size_bytes,
		.skip_bytes = skip_bytes,
	};
	enum described described = m->described;
	if (described == NOTHING && m->n)
		described = MEMORY;
	struct value v = {0};
	if (described == MEMORY || described == IMPLICIT_VALUE)
		v = pop(m);
	switch (described) {
	case NOTHING:
		piece.kind = SONDE_LOCATION_ABSENT;
		piece.why = "optimised out";
		break;
	case MEMORY:
		piece.kind = SONDE_LOCATION_ADDR;
		piece.value = v.bits + skip_bytes;
		piece.skip_bytes = 0;
		break;
	case IMPLICIT_VALUE:
		piece.kind = SONDE_LOCATION_VALUE;
		piece.value = v.is_signed ? (uint64_t)extend(v.bits, width_of(m, &v)) : v.bits;
		break;
	case IN_REGISTER:
		piece.kind = SONDE_LOCATION_REG;
		piece.reg = m->reg;
		break;
	case IMPLICIT_BYTES:
		piece.kind = SONDE_LOCATION_BYTES;
		piece.bytes = m->bytes;
		piece.n_bytes = m->n_bytes;
		break;
	case UNKNOWN:
		piece.kind = SONDE_LOCATION_ABSENT;
		piece.why = m->why;
		break;
	}
	if (v.why) {
		piece.kind = SONDE_LOCATION_ABSENT;
		piece.why = v.why;
		piece.value = 0;
	}
	m->described = NOTHING;
	if (__builtin_add_overflow(m->offset, size_bytes, &m->offset))
		fail(m, "pieces too long");
	else if (m->n_pieces == m->max_pieces)
		fail(m, "too many pieces");
	else
		m->pieces[m->n_pieces++] = piece;
}

static void bit_piece(struct machine *m, uint64_t size_bits, uint64_t skip_bits)
{
	if (size_bits % 8 || skip_bits % 8) {
		if (m->described == NOTHING && m->n)
			pop(m);
		m->described = UNKNOWN;
		m->why = "pieces of single bits";
		skip_bits = 0;
	}
	add_piece(m, size_bits / 8 + !!(size_bits % 8), skip_bits / 8);
}

static void run(struct machine *m, const uint8_t *expr, size_t len, int nesting);

/* Run another expression as if it stood here. */
static void call(struct machine *m, uint64_t offset, bool whole, int nesting)
{
	const struct sonde_location_unit *unit = unit_of(m);
	const uint8_t *expr;
	size_t len;
	if (nesting >= MAX_NESTING)
		fail(m, "calls nested too deep");
	else if (unit->called && unit->called(unit->owner, offset, whole, &expr, &len))
		run(m, expr, len, nesting + 1);
}

/* DW_AT_frame_base: an address, or a register that holds it (DWARF 5, section 3.3.5). */
static void push_frame_base(struct machine *m, int64_t offset, int nesting)
{
	const struct sonde_location_context *context = m->context;
	if (!context->frame_base || !context->frame_base_len) {
		push_unknown(m, "no frame base");
		return;
	}
	if (nesting >= MAX_NESTING) {
		fail(m, "frame bases nested too deep");
		return;
	}
	enum described before = m->described;
	unsigned n = m->n;
	m->described = NOTHING;
	run(m, context->frame_base, context->frame_base_len, nesting + 1);
	if (m->bad)
		return;
	if (m->described == IN_REGISTER)
		push_register(m, m->reg, 0);
	else if (m->described == UNKNOWN)
		push_unknown(m, m->why);
	m->described = before;
	if (m->n <= n) {
		fail(m, "frame base without a value");
		return;
	}
	unary(m, DW_OP_plus_uconst, (uint64_t)offset);
}

static void push_constant(struct machine *m, unsigned op, struct sonde_cursor *c)
{
	switch (op) {
	case DW_OP_const1u:
		push(m, sonde_cursor_u8(c));
		break;
	case DW_OP_const1s:
		push(m, (uint64_t)(int8_t)sonde_cursor_u8(c));
		break;
	case DW_OP_const2u:
		push(m, sonde_cursor_u16(c));
		break;
	case DW_OP_const2s:
		push(m, (uint64_t)(int16_t)sonde_cursor_u16(c));
		break;
	case DW_OP_const4u:
		push(m, sonde_cursor_u32(c));
		break;
	case DW_OP_const4s:
		push(m, (uint64_t)(int32_t)sonde_cursor_u32(c));
		break;
	case DW_OP_const8u:
	case DW_OP_const8s:
		push(m, sonde_cursor_u64(c));
		break;
	case DW_OP_constu:
		push(m, sonde_varint_u64(c));
		break;
	default: /* DW_OP_consts */
		push(m, (uint64_t)sonde_varint_sleb(c));
		break;
	}
}

/* DW_OP_addrx and constx, and GNU's forms of them. */
static void push_indexed(struct machine *m, uint64_t index, uint64_t bias)
{
	uint64_t address;
	if (indexed_address(unit_of(m), index, &address))
		push(m, address + bias);
	else
		fail(m, "no such entry in .debug_addr");
}

static void push_tls(struct machine *m)
{
	struct value v = pop(m);
	uint64_t addr;
	if (v.why)
		push_value(m, v);
	else if (m->context->tls && m->context->tls(m->context->ctx, v.bits, &addr))
		push(m, addr);
	else
		push_unknown(m, "thread-local, thread not known");
}

/* Operations that end a description, and what stands between descriptions. false = none of these. */
static bool describing(struct machine *m, unsigned op, struct sonde_cursor *c)
{
	uint64_t size;
	switch (op) {
	case DW_OP_reg0 ... DW_OP_reg31:
		describe(m, IN_REGISTER);
		m->reg = op - DW_OP_reg0;
		return true;
	case DW_OP_regx:
		size = sonde_varint_u64(c);
		describe(m, IN_REGISTER);
		m->reg = (unsigned)sonde_min(size, (uint64_t)UINT32_MAX);
		return true;
	case DW_OP_stack_value:
		if (!m->n)
			fail(m, "stack underflow");
		describe(m, IMPLICIT_VALUE);
		return true;
	case DW_OP_implicit_value:
		m->n_bytes = sonde_varint_u64(c);
		m->bytes = sonde_cursor_bytes(c, m->n_bytes);
		describe(m, IMPLICIT_BYTES);
		return true;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		/* DWARF 2 wrote references as addresses: GNU's form does so there. */
		sonde_cursor_skip(c, unit_of(m)->version <= 2 ? m->address_bytes : m->offset_bytes);
		sonde_varint_sleb(c);
		describe_unknown(m, "pointer to what is optimised out");
		return true;
	case DW_OP_piece:
		size = sonde_varint_u64(c);
		if (!c->bad)
			add_piece(m, size, 0);
		return true;
	case DW_OP_bit_piece: {
		size = sonde_varint_u64(c);
		uint64_t skip = sonde_varint_u64(c);
		if (!c->bad)
			bit_piece(m, size, skip);
		return true;
	}
	default:
		return false;
	}
}

static void step(struct machine *m, unsigned op, struct sonde_cursor *c, int nesting)
{
	const struct sonde_location_context *context = m->context;
	uint64_t value;
	if (describing(m, op, c))
		return;
	switch (op) {
	case DW_OP_addr:
		push(m, sonde_cursor_word(c, m->address_bytes) + context->bias);
		break;
	case DW_OP_deref:
		push_memory(m, m->address_bytes, (struct value){0});
		break;
	case DW_OP_deref_size:
		value = sonde_cursor_u8(c);
		if (value > m->address_bytes)
			fail(m, "dereference wider than an address");
		push_memory(m, value, (struct value){0});
		break;
	case DW_OP_const1u ... DW_OP_consts:
		push_constant(m, op, c);
		break;
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_pick:
	case DW_OP_swap:
	case DW_OP_rot:
		stack_operation(m, op, c);
		break;
	case DW_OP_abs:
	case DW_OP_neg:
	case DW_OP_not:
		unary(m, op, 0);
		break;
	case DW_OP_plus_uconst:
		unary(m, op, sonde_varint_u64(c));
		break;
	case DW_OP_and:
	case DW_OP_or:
	case DW_OP_xor:
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_div:
	case DW_OP_mod:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_eq:
	case DW_OP_ne:
	case DW_OP_lt:
	case DW_OP_le:
	case DW_OP_gt:
	case DW_OP_ge:
		binary(m, op);
		break;
	case DW_OP_bra:
	case DW_OP_skip:
		jump(m, op, c);
		break;
	case DW_OP_lit0 ... DW_OP_lit31:
		push(m, op - DW_OP_lit0);
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
		push_register(m, op - DW_OP_breg0, sonde_varint_sleb(c));
		break;
	case DW_OP_bregx:
		value = sonde_varint_u64(c);
		push_register(m, value, sonde_varint_sleb(c));
		break;
	case DW_OP_fbreg:
		push_frame_base(m, sonde_varint_sleb(c), nesting);
		break;
	case DW_OP_nop:
	case DW_OP_GNU_uninit:
		break;
	case DW_OP_push_object_address:
		if (context->has_object)
			push(m, context->object);
		else
			push_unknown(m, "object not known");
		break;
	case DW_OP_call2:
		call(m, sonde_cursor_u16(c), false, nesting);
		break;
	case DW_OP_call4:
		call(m, sonde_cursor_u32(c), false, nesting);
		break;
	case DW_OP_call_ref:
		call(m, sonde_cursor_word(c, m->offset_bytes), true, nesting);
		break;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		push_tls(m);
		break;
	case DW_OP_call_frame_cfa:
		if (context->has_cfa)
			push(m, context->cfa);
		else
			push_unknown(m, "frame not known");
		break;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		push_indexed(m, sonde_varint_u64(c), context->bias);
		break;
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		push_indexed(m, sonde_varint_u64(c), 0);
		break;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		value = sonde_varint_u64(c);
		sonde_cursor_skip(c, value);
		push_unknown(m, "entry value");
		break;
	case DW_OP_GNU_parameter_ref:
		sonde_cursor_u32(c);
		push_unknown(m, "entry value");
		break;
	case DW_OP_GNU_variable_value:
		sonde_cursor_word(c, m->offset_bytes);
		push_unknown(m, "value of another variable");
		break;
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		typed_operation(m, op, c);
		break;
	default:
		/* DW_OP_xderef and its kin need address spaces, which no target here has. */
		fail(m, "unknown operation");
		break;
	}
}

static void run(struct machine *m, const uint8_t *expr, size_t len, int nesting)
{
	struct sonde_cursor c = sonde_cursor_over(expr, len);
	while (!m->bad && sonde_cursor_left(&c)) {
		if (++m->steps > MAX_STEPS) {
			fail(m, "it never ends");
			return;
		}
		unsigned op = sonde_cursor_u8(&c);
		bool ended = m->described != NOTHING && op != DW_OP_piece &&
			op != DW_OP_bit_piece && op != DW_OP_nop && op != DW_OP_GNU_uninit;
		if (ended && nesting == 0) {
			fail(m, "operation behind a finished location");
			return;
		}
		step(m, op, &c, nesting);
		if (c.bad)
			fail(m, "cut short");
	}
}

const char *sonde_location_evaluate(const uint8_t *expr, size_t len,
	const struct sonde_location_context *context, struct sonde_location_piece *pieces,
	size_t max, size_t *n)
{
	struct machine m;
	/* The stack is written before it is read: do not clear its kilobytes each time. */
	memset((char *)&m + offsetof(struct machine, n), 0,
		sizeof(m) - offsetof(struct machine, n));
	m.context = context;
	m.pieces = pieces;
	m.max_pieces = max;
	m.address_bytes = unit_of(&m)->address_bytes;
	m.offset_bytes = unit_of(&m)->offset_bytes;
	*n = 0;
	if (m.address_bytes != 4 && m.address_bytes != 8)
		return "addresses of another size than 4 or 8 bytes";
	run(&m, expr, len, 0);
	/* A single location has no piece operation behind it; a composite one ends with one. */
	if (!m.bad && (!m.n_pieces || m.described != NOTHING)) {
		if (m.n_pieces)
			fail(&m, "location behind the last piece");
		else
			add_piece(&m, 0, 0);
	}
	if (m.bad)
		return m.bad;
	*n = m.n_pieces;
	return NULL;
}

bool sonde_location_static(
	const uint8_t *expr, size_t len, const struct sonde_location_unit *unit, uint64_t *addr)
{
	struct sonde_cursor c = sonde_cursor_over(expr, len);
	if (!unit)
		unit = &default_unit;
	uint64_t value = 0;
	switch (sonde_cursor_u8(&c)) {
	case DW_OP_addr:
		value = sonde_cursor_word(&c, unit->address_bytes);
		break;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
		if (!indexed_address(unit, sonde_varint_u64(&c), &value))
			return false;
		break;
	default:
		return false;
	}
	if (sonde_cursor_left(&c) && *c.p == DW_OP_plus_uconst) {
		sonde_cursor_u8(&c);
		value += sonde_varint_u64(&c);
	}
	if (c.bad || sonde_cursor_left(&c))
		return false;
	*addr = unit->address_bytes == 4 ? (uint32_t)value : value;
	return true;
}

/* Known bytes of one piece into to, at most len (> 0); sets *why where not all are known. */
static uint64_t read_piece(const struct sonde_location_piece *piece,
	const struct sonde_location_context *context, uint8_t *to, uint64_t len, const char **why)
{
	uint64_t word = 0, have = 8;
	const uint8_t *bytes = (const uint8_t *)&word;
	switch (piece->kind) {
	case SONDE_LOCATION_ADDR:
		if (context->memory && context->memory(context->ctx, piece->value, to, len))
			return len;
		memset(to, 0, len);
		*why = "memory not readable";
		return 0;
	case SONDE_LOCATION_REG:
		if (!context->reg || !context->reg(context->ctx, piece->reg, &word)) {
			*why = "register not known";
			return 0;
		}
		break;
	case SONDE_LOCATION_VALUE:
		word = piece->value;
		break;
	case SONDE_LOCATION_BYTES:
		bytes = piece->bytes;
		have = piece->n_bytes;
		break;
	default:
		*why = piece->why;
		return 0;
	}
	if (piece->skip_bytes >= have) {
		*why = "value shorter than its type";
		return 0;
	}
	uint64_t known = sonde_min(have - piece->skip_bytes, len);
	memcpy(to, bytes + piece->skip_bytes, known);
	if (known < len)
		*why = "value shorter than its type";
	return known;
}

uint64_t sonde_location_read(const struct sonde_location_piece *pieces, size_t n,
	const struct sonde_location_context *context, void *to, uint64_t len, const char **why)
{
	uint64_t known = 0, covered = 0;
	const char *first = NULL;
	memset(to, 0, len);
	for (size_t i = 0; i < n && covered < len; i++) {
		uint64_t size = pieces[i].size_bytes;
		if (!size && n == 1)
			size = len;
		size = sonde_min(size, len - covered);
		if (!size)
			continue;
		const char *reason = NULL;
		known += read_piece(&pieces[i], context, (uint8_t *)to + covered, size, &reason);
		if (reason && !first)
			first = reason;
		covered += size;
	}
	if (covered < len && !first)
		first = "optimised out";
	*why = first;
	return known;
}
