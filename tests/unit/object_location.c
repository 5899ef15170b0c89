#include <dwarf.h>
#include "object/location.h"
#include "base/mem.h"
#include "tap.h"

/* Registers 0..7 hold 0x1000 + 0x100 * n; memory is one page at 0x1000 whose byte at i is i & 0xff. */
static bool reg(void *ctx, unsigned dwarf_reg, uint64_t *value)
{
	if (dwarf_reg > 7)
		return false;
	*value = 0x1000 + 0x100 * dwarf_reg;
	return true;
}

static bool memory(void *ctx, uint64_t addr, void *to, size_t len)
{
	if (addr < 0x1000 || addr > 0x2000 || len > 0x2000 - addr)
		return false;
	for (size_t i = 0; i < len; i++)
		((uint8_t *)to)[i] = (uint8_t)(addr + i);
	return true;
}

static bool tls(void *ctx, uint64_t offset, uint64_t *addr)
{
	*addr = 0x7000 + offset;
	return true;
}

static bool base_type(const void *owner, uint64_t offset, uint64_t *size_bytes, unsigned *encoding)
{
	static const struct {
		uint8_t size, encoding;
	} types[] = {{0, 0}, {4, DW_ATE_signed}, {4, DW_ATE_unsigned}, {8, DW_ATE_float},
		{8, DW_ATE_signed}, {16, DW_ATE_unsigned}, {1, DW_ATE_signed}};
	if (!offset || offset >= SONDE_ARRAY_LEN(types))
		return false;
	*size_bytes = types[offset].size;
	*encoding = types[offset].encoding;
	return true;
}

static const uint8_t call_lit5[] = {DW_OP_lit5}, call_itself[] = {DW_OP_call2, 2, 0};
static bool called(
	const void *owner, uint64_t offset, bool whole, const uint8_t **expr, size_t *len)
{
	*expr = offset == 1 ? call_lit5 : call_itself;
	*len = offset == 1 ? sizeof(call_lit5) : sizeof(call_itself);
	return offset == 1 || offset == 2;
}

static const uint8_t addresses[] = {1, 2, 3, 4, 5, 6, 7, 8, 0, 0x10, 0, 0, 0, 0, 0, 0};
static const struct sonde_location_unit unit = {
	.version = 5,
	.address_bytes = 8,
	.offset_bytes = 4,
	.addresses = addresses,
	.addresses_bytes = sizeof(addresses),
	.base_type = base_type,
	.called = called,
};

static const uint8_t frame_base[] = {DW_OP_call_frame_cfa};
static struct sonde_location_context context = {
	.reg = reg,
	.memory = memory,
	.tls = tls,
	.unit = &unit,
	.has_cfa = true,
	.cfa = 0x1800,
	.frame_base = frame_base,
	.frame_base_len = sizeof(frame_base),
	.bias = 0x40,
};

static struct sonde_location_piece pieces[8];
static size_t n_pieces;

static const char *eval(const uint8_t *expr, size_t len)
{
	/* An exact copy, so that ASan sees a read past the end. */
	uint8_t *exact = malloc(len ? len : 1);
	if (len)
		memcpy(exact, expr, len);
	const char *bad = sonde_location_evaluate(
		exact, len, &context, pieces, SONDE_ARRAY_LEN(pieces), &n_pieces);
	free(exact);
	return bad;
}

#define EVAL(...) eval((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}))
#define CHECK_ONE(want_kind, field, want, ...)        \
	do {                                          \
		const char *bad_ = EVAL(__VA_ARGS__); \
		if (bad_)                             \
			printf("# %s\n", bad_);       \
		CHECK(!bad_ && n_pieces == 1);        \
		CHECK_EQ(pieces[0].kind, want_kind);  \
		CHECK_EQ(pieces[0].field, want);      \
	} while (0)
/* The expression followed by DW_OP_stack_value. */
#define CHECK_VALUE(want, ...) \
	CHECK_ONE(SONDE_LOCATION_VALUE, value, want, __VA_ARGS__, DW_OP_stack_value)
#define CHECK_ABSENT(want, ...)                                  \
	do {                                                     \
		CHECK(!EVAL(__VA_ARGS__));                       \
		CHECK_EQ(pieces[0].kind, SONDE_LOCATION_ABSENT); \
		CHECK_STR(pieces[0].why, want);                  \
	} while (0)
#define CHECK_BAD(want, ...) CHECK_STR(EVAL(__VA_ARGS__), want)

static void addresses_and_registers(void)
{
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x1040, DW_OP_addr, 0, 0x10, 0, 0, 0, 0, 0, 0);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x1040, DW_OP_addrx, 1);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x1000, DW_OP_constx, 1);
	CHECK_BAD("no such entry in .debug_addr", DW_OP_addrx, 2);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x1800, DW_OP_call_frame_cfa);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x17f8, DW_OP_fbreg, 0x78);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x1110, DW_OP_breg0 + 1, 0x10);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x11ff, DW_OP_bregx, 2, 0x7f);
	CHECK_ONE(SONDE_LOCATION_REG, reg, 3, DW_OP_reg3);
	CHECK_ONE(SONDE_LOCATION_REG, reg, 300, DW_OP_regx, 0xac, 2);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x7010, DW_OP_const1u, 16, DW_OP_form_tls_address);
	CHECK_ONE(
		SONDE_LOCATION_ADDR, value, 0x7010, DW_OP_const1u, 16, DW_OP_GNU_push_tls_address);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 5, DW_OP_call2, 1, 0);
	CHECK_ABSENT("register not known", DW_OP_breg0 + 9, 0);
	CHECK_ABSENT("register not known", DW_OP_breg0 + 9, 0, DW_OP_lit1, DW_OP_plus);
	CHECK_ABSENT("entry value", DW_OP_entry_value, 1, DW_OP_reg0, DW_OP_stack_value);
	CHECK_ABSENT("entry value", DW_OP_GNU_entry_value, 1, DW_OP_reg0, DW_OP_lit1, DW_OP_mul);
	CHECK_ABSENT("pointer to what is optimised out", DW_OP_implicit_pointer, 1, 0, 0, 0, 0);
	CHECK_ABSENT("object not known", DW_OP_push_object_address);
	CHECK_ABSENT("optimised out", DW_OP_nop);
	CHECK(!eval(NULL, 0));
	CHECK_STR(pieces[0].why, "optimised out");
}

static void frames_not_known(void)
{
	struct sonde_location_context kept = context;
	context.has_cfa = false;
	CHECK_ABSENT("frame not known", DW_OP_fbreg, 0);
	static const uint8_t in_register[] = {DW_OP_reg6}, recursive[] = {DW_OP_fbreg, 0},
			     empty[] = {DW_OP_nop};
	context.frame_base = in_register;
	context.frame_base_len = 1;
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x15f0, DW_OP_fbreg, 0x70);
	context.frame_base = recursive;
	context.frame_base_len = 2;
	CHECK_BAD("frame bases nested too deep", DW_OP_fbreg, 0);
	context.frame_base = empty;
	context.frame_base_len = 1;
	CHECK_BAD("frame base without a value", DW_OP_fbreg, 0);
	context = (struct sonde_location_context){0};
	CHECK_ABSENT("no frame base", DW_OP_fbreg, 0);
	CHECK_ABSENT("register not known", DW_OP_breg0, 0);
	CHECK_ABSENT("memory not readable", DW_OP_lit0, DW_OP_deref);
	CHECK_ABSENT("thread-local, thread not known", DW_OP_lit0, DW_OP_form_tls_address);
	context = kept;
}

static void constants(void)
{
	CHECK_VALUE(0xff, DW_OP_const1u, 0xff);
	CHECK_VALUE((uint64_t)-1, DW_OP_const1s, 0xff);
	CHECK_VALUE(0xfffe, DW_OP_const2u, 0xfe, 0xff);
	CHECK_VALUE((uint64_t)-2, DW_OP_const2s, 0xfe, 0xff);
	CHECK_VALUE(0x80000000, DW_OP_const4u, 0, 0, 0, 0x80);
	CHECK_VALUE(0xffffffff80000000, DW_OP_const4s, 0, 0, 0, 0x80);
	CHECK_VALUE(0x0807060504030201, DW_OP_const8u, 1, 2, 3, 4, 5, 6, 7, 8);
	CHECK_VALUE(300, DW_OP_constu, 0xac, 2);
	CHECK_VALUE((uint64_t)-2, DW_OP_consts, 0x7e);
	CHECK_VALUE(31, DW_OP_lit31);
}

static void stack_operations(void)
{
	CHECK_VALUE(4, DW_OP_lit2, DW_OP_dup, DW_OP_plus);
	CHECK_VALUE(2, DW_OP_lit2, DW_OP_lit3, DW_OP_drop);
	CHECK_VALUE(2, DW_OP_lit2, DW_OP_lit3, DW_OP_over);
	CHECK_VALUE(1, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_pick, 2);
	CHECK_VALUE((uint64_t)-1, DW_OP_lit3, DW_OP_lit2, DW_OP_swap, DW_OP_minus);
	/* rot: the top becomes the third, the second the top (DWARF 5, section 2.5.1.3). */
	CHECK_VALUE(2, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot);
	CHECK_VALUE(3, DW_OP_lit1, DW_OP_lit2, DW_OP_lit3, DW_OP_rot, DW_OP_drop, DW_OP_drop);
	CHECK_BAD("stack underflow", DW_OP_dup);
	CHECK_BAD("stack underflow", DW_OP_lit0, DW_OP_pick, 1);
	CHECK_BAD("stack underflow", DW_OP_lit0, DW_OP_pick, 255);
	CHECK_BAD("stack underflow", DW_OP_lit0, DW_OP_lit0, DW_OP_rot);
	CHECK_BAD("stack underflow", DW_OP_plus);
	CHECK_BAD("stack underflow", DW_OP_stack_value);
	uint8_t many[65];
	memset(many, DW_OP_lit0, sizeof(many));
	CHECK_STR(eval(many, 65), "stack overflow");
	CHECK(!eval(many, 64));
}

static void arithmetic(void)
{
	CHECK_VALUE(7, DW_OP_const1s, 0xf9, DW_OP_abs);
	CHECK_VALUE((uint64_t)-7, DW_OP_lit7, DW_OP_neg);
	CHECK_VALUE(~7ull, DW_OP_lit7, DW_OP_not);
	CHECK_VALUE(4, DW_OP_lit6, DW_OP_lit12, DW_OP_and);
	CHECK_VALUE(14, DW_OP_lit6, DW_OP_lit12, DW_OP_or);
	CHECK_VALUE(10, DW_OP_lit6, DW_OP_lit12, DW_OP_xor);
	CHECK_VALUE((uint64_t)-3, DW_OP_const1s, 0xf9, DW_OP_lit2, DW_OP_div);
	CHECK_VALUE(1, DW_OP_lit7, DW_OP_lit2, DW_OP_mod);
	CHECK_VALUE(14, DW_OP_lit7, DW_OP_lit2, DW_OP_mul);
	CHECK_VALUE(307, DW_OP_lit7, DW_OP_plus_uconst, 0xac, 2);
	CHECK_VALUE(28, DW_OP_lit7, DW_OP_lit2, DW_OP_shl);
	CHECK_VALUE(0, DW_OP_lit7, DW_OP_const1u, 64, DW_OP_shl);
	CHECK_VALUE(0x3fffffffffffffff, DW_OP_const1s, 0xff, DW_OP_lit2, DW_OP_shr);
	CHECK_VALUE((uint64_t)-1, DW_OP_const1s, 0xff, DW_OP_const1u, 200, DW_OP_shra);
	CHECK_VALUE(1, DW_OP_const1s, 0xff, DW_OP_lit0, DW_OP_lt);
	CHECK_VALUE(0, DW_OP_const1s, 0xff, DW_OP_lit0, DW_OP_gt);
	CHECK_VALUE(1, DW_OP_lit1, DW_OP_lit1, DW_OP_le);
	CHECK_VALUE(1, DW_OP_lit1, DW_OP_lit1, DW_OP_ge);
	CHECK_VALUE(1, DW_OP_lit1, DW_OP_lit1, DW_OP_eq);
	CHECK_VALUE(0, DW_OP_lit1, DW_OP_lit1, DW_OP_ne);
	CHECK_BAD("division by zero", DW_OP_lit1, DW_OP_lit0, DW_OP_div);
	CHECK_BAD("division by zero", DW_OP_lit1, DW_OP_lit0, DW_OP_mod);
	/* The smallest number by -1 overflows: it must wrap, not trap. */
	CHECK_VALUE(1ull << 63, DW_OP_lit1, DW_OP_const1u, 63, DW_OP_shl, DW_OP_const1s, 0xff,
		DW_OP_div);
}

static void four_byte_addresses(void)
{
	struct sonde_location_unit small = unit;
	small.address_bytes = 4;
	context.unit = &small;
	CHECK_VALUE(0xfffffff9, DW_OP_lit7, DW_OP_neg);
	CHECK_VALUE(1, DW_OP_lit7, DW_OP_neg, DW_OP_lit0, DW_OP_lt);
	CHECK_VALUE(0, DW_OP_const4u, 0xff, 0xff, 0xff, 0xff, DW_OP_plus_uconst, 1);
	CHECK_ONE(SONDE_LOCATION_ADDR, value, 0x1040, DW_OP_addr, 0, 0x10, 0, 0);
	CHECK_VALUE(0x03020100, DW_OP_breg0, 0, DW_OP_deref);
	small.address_bytes = 3;
	CHECK_BAD("addresses of another size than 4 or 8 bytes", DW_OP_lit0);
	context.unit = &unit;
}

static void memory_is_read(void)
{
	CHECK_VALUE(0x0706050403020100, DW_OP_breg0, 0, DW_OP_deref);
	CHECK_VALUE(0x0302, DW_OP_breg0, 2, DW_OP_deref_size, 2);
	CHECK_ABSENT("memory not readable", DW_OP_lit0, DW_OP_deref);
	CHECK_BAD("dereference wider than an address", DW_OP_breg0, 0, DW_OP_deref_size, 9);
	CHECK_BAD("dereference of 0 bytes", DW_OP_breg0, 0, DW_OP_deref_size, 0);
}

static void control_flow(void)
{
	CHECK_VALUE(1, DW_OP_lit1, DW_OP_skip, 1, 0, DW_OP_neg);
	CHECK_VALUE(3, DW_OP_lit3, DW_OP_lit1, DW_OP_bra, 1, 0, DW_OP_neg);
	CHECK_VALUE((uint64_t)-3, DW_OP_lit3, DW_OP_lit0, DW_OP_bra, 1, 0, DW_OP_neg);
	/* 5, then 1 less each time round until 0 */
	CHECK_VALUE(0, DW_OP_lit5, DW_OP_lit1, DW_OP_minus, DW_OP_dup, DW_OP_bra, 0xfa, 0xff);
	CHECK_ABSENT("entry value", DW_OP_entry_value, 1, DW_OP_reg0, DW_OP_bra, 0, 0, DW_OP_lit1);
	CHECK_BAD("it never ends", DW_OP_skip, 0xfd, 0xff);
	CHECK_BAD("cut short", DW_OP_skip, 0xfc, 0xff);
	CHECK_BAD("cut short", DW_OP_skip, 1, 0);
	CHECK_BAD("calls nested too deep", DW_OP_call2, 2, 0);
	/* A call to a DIE without a location does nothing. */
	CHECK_VALUE(9, DW_OP_lit9, DW_OP_call4, 7, 0, 0, 0);
}

static void typed_values(void)
{
	CHECK_VALUE((uint64_t)-1, DW_OP_const_type, 1, 4, 0xff, 0xff, 0xff, 0xff);
	CHECK_VALUE(0xffffffff, DW_OP_const_type, 2, 4, 0xff, 0xff, 0xff, 0xff);
	CHECK_VALUE(
		0xffffffff, DW_OP_const_type, 1, 4, 0xff, 0xff, 0xff, 0xff, DW_OP_reinterpret, 2);
	CHECK_VALUE((uint64_t)-1, DW_OP_const_type, 6, 1, 0xff, DW_OP_convert, 4);
	CHECK_VALUE((uint64_t)-1, DW_OP_const_type, 6, 1, 0xff, DW_OP_convert, 0);
	CHECK_VALUE(0x1200, DW_OP_regval_type, 2, 2);
	CHECK_VALUE(0x03020100, DW_OP_breg0, 0, DW_OP_deref_type, 4, 2);
	/* Unsigned division and comparison of typed values. */
	CHECK_VALUE(0x7fffffff, DW_OP_const_type, 2, 4, 0xff, 0xff, 0xff, 0xff, DW_OP_const_type, 2,
		4, 2, 0, 0, 0, DW_OP_div);
	CHECK_VALUE(0, DW_OP_const_type, 2, 4, 0xff, 0xff, 0xff, 0xff, DW_OP_const_type, 2, 4, 2, 0,
		0, 0, DW_OP_lt);
	CHECK_VALUE((uint64_t)-1, DW_OP_const_type, 1, 4, 0xff, 0xff, 0xff, 0xff, DW_OP_const_type,
		1, 4, 2, 0, 0, 0, DW_OP_mod);
	/* Floats pass, but are not computed with. */
	CHECK_VALUE(0x3ff0000000000000, DW_OP_const_type, 3, 8, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f);
	CHECK_ABSENT("arithmetic on floating point", DW_OP_const_type, 3, 8, 0, 0, 0, 0, 0, 0, 0xf0,
		0x3f, DW_OP_neg, DW_OP_stack_value);
	CHECK_ABSENT(
		"arithmetic on floating point", DW_OP_lit1, DW_OP_convert, 3, DW_OP_stack_value);
	CHECK_ABSENT("typed value wider than 8 bytes", DW_OP_regval_type, 0, 5, DW_OP_stack_value);
	CHECK_BAD("operands of different types", DW_OP_lit1, DW_OP_const_type, 2, 4, 1, 0, 0, 0,
		DW_OP_plus);
	CHECK_BAD("reinterpretation changes the size", DW_OP_lit1, DW_OP_reinterpret, 2);
	CHECK_BAD("no base type there", DW_OP_lit1, DW_OP_convert, 99);
	CHECK_BAD("typed constant of another size", DW_OP_const_type, 1, 3, 1, 2, 3);
}

static void composite_values(void)
{
	/* What Go writes for a string whose length lives in a register and whose pointer is gone. */
	CHECK(!EVAL(DW_OP_piece, 8, DW_OP_reg1, DW_OP_piece, 8));
	REQUIRE(n_pieces == 2);
	CHECK_EQ(pieces[0].kind, SONDE_LOCATION_ABSENT);
	CHECK_EQ(pieces[0].size_bytes, 8);
	CHECK_EQ(pieces[1].kind, SONDE_LOCATION_REG);
	CHECK_EQ(pieces[1].offset_bytes, 8);
	uint8_t value[16];
	const char *why;
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 16, &why), 8);
	CHECK_STR(why, "optimised out");
	CHECK(!memcmp(value, "\0\0\0\0\0\0\0\0\0\x11\0\0\0\0\0\0", 16));

	CHECK(!EVAL(DW_OP_fbreg, 0, DW_OP_piece, 2, DW_OP_lit5, DW_OP_stack_value, DW_OP_piece, 1,
		DW_OP_implicit_value, 2, 7, 8, DW_OP_bit_piece, 8, 8));
	REQUIRE(n_pieces == 3);
	CHECK_EQ(pieces[0].kind, SONDE_LOCATION_ADDR);
	CHECK_EQ(pieces[1].kind, SONDE_LOCATION_VALUE);
	CHECK_EQ(pieces[2].kind, SONDE_LOCATION_BYTES);
	CHECK_EQ(pieces[2].skip_bytes, 1);
	CHECK_EQ(pieces[2].offset_bytes, 3);

	CHECK(!EVAL(DW_OP_fbreg, 0, DW_OP_bit_piece, 16, 8, DW_OP_reg2, DW_OP_bit_piece, 3, 0));
	CHECK_EQ(pieces[0].value, 0x1801);
	CHECK_STR(pieces[1].why, "pieces of single bits");
	CHECK_BAD("location behind the last piece", DW_OP_reg0, DW_OP_piece, 8, DW_OP_reg1);
	CHECK_BAD("operation behind a finished location", DW_OP_reg0, DW_OP_lit1);
	CHECK_BAD("too many pieces", DW_OP_piece, 1, DW_OP_piece, 1, DW_OP_piece, 1, DW_OP_piece, 1,
		DW_OP_piece, 1, DW_OP_piece, 1, DW_OP_piece, 1, DW_OP_piece, 1, DW_OP_piece, 1);
	CHECK_BAD("pieces too long", DW_OP_piece, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
		0xff, 1, DW_OP_piece, 1);
}

static void values_are_gathered(void)
{
	uint8_t value[12];
	const char *why;
	CHECK(!EVAL(DW_OP_breg0, 4));
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 12, &why), 12);
	CHECK(!why && value[0] == 4 && value[11] == 15);
	CHECK(!EVAL(DW_OP_reg1));
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 2, &why), 2);
	CHECK(!why && value[0] == 0 && value[1] == 0x11);
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 12, &why), 8);
	CHECK_STR(why, "value shorter than its type");
	CHECK(!EVAL(DW_OP_reg9));
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 8, &why), 0);
	CHECK_STR(why, "register not known");
	CHECK(!EVAL(DW_OP_lit0));
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 8, &why), 0);
	CHECK_STR(why, "memory not readable");
	/* Pieces that do not cover the value. */
	CHECK(!EVAL(DW_OP_reg1, DW_OP_piece, 4));
	CHECK_EQ(sonde_location_read(pieces, n_pieces, &context, value, 8, &why), 4);
	CHECK_STR(why, "optimised out");
}

static void static_addresses(void)
{
	uint64_t addr = 0;
	const uint8_t plain[] = {DW_OP_addr, 0, 0x10, 0, 0, 0, 0, 0, 0, DW_OP_plus_uconst, 8};
	CHECK(sonde_location_static(plain, sizeof(plain), &unit, &addr));
	CHECK_EQ(addr, 0x1008);
	CHECK(sonde_location_static(plain, 9, NULL, &addr));
	CHECK_EQ(addr, 0x1000);
	CHECK(!sonde_location_static(plain, 8, &unit, &addr));
	CHECK(!sonde_location_static(plain, 10, &unit, &addr));
	const uint8_t indexed[] = {DW_OP_addrx, 1, DW_OP_stack_value};
	CHECK(sonde_location_static(indexed, 2, &unit, &addr));
	CHECK_EQ(addr, 0x1000);
	CHECK(!sonde_location_static(indexed, 3, &unit, &addr));
	CHECK(!sonde_location_static(NULL, 0, &unit, &addr));
}

static void cut_short(void)
{
	CHECK_BAD("cut short", DW_OP_addr, 1, 2, 3);
	CHECK_BAD("cut short", DW_OP_constu, 0x80);
	CHECK_BAD("cut short", DW_OP_implicit_value, 200, 1);
	CHECK_BAD("cut short", DW_OP_entry_value, 9, 1);
	CHECK_BAD("cut short", DW_OP_piece);
	CHECK_BAD("unknown operation", 0x01);
	CHECK_BAD("unknown operation", DW_OP_lit0, DW_OP_lit0, DW_OP_xderef);
}

int main(void)
{
	RUN(addresses_and_registers);
	RUN(frames_not_known);
	RUN(constants);
	RUN(stack_operations);
	RUN(arithmetic);
	RUN(four_byte_addresses);
	RUN(memory_is_read);
	RUN(control_flow);
	RUN(typed_values);
	RUN(composite_values);
	RUN(values_are_gathered);
	RUN(static_addresses);
	RUN(cut_short);
	return tap_end();
}
