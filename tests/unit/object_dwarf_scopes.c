#include "object/dwarf.h"
#include "build_dwarf.h"
#include "tap.h"

/*
 * main.f at 0x1000..0x1100: parameter a, result r, local x in a lexical block 0x1010..0x1020, and g inlined at
 * 0x1040..0x1060 with h inlined into it at 0x1050..0x1058; all locations from lists that put_*() write.
 */
struct scope_ids {
	uint32_t f, g_inlined;
};

static void put_attr_list(struct dw *w, uint32_t offset)
{
	dw_u32(w, offset);
}

static struct scope_ids put_function(struct dw *w, const uint32_t lists[4])
{
	struct scope_ids id;
	uint32_t g = dw_die(w, DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_inline,
		DW_FORM_data1, 0);
	dw_string(w, "main.g");
	dw_u8(w, DW_INL_inlined);
	uint32_t g_param = dw_die(w, DW_TAG_formal_parameter, 0, DW_AT_name, DW_FORM_string,
		DW_AT_type, DW_FORM_ref4, DW_AT_decl_line, DW_FORM_data1, 0);
	dw_string(w, "p");
	dw_u32(w, g);
	dw_u8(w, 33);
	dw_end(w);
	uint32_t h = dw_die(w, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, DW_AT_linkage_name,
		DW_FORM_string, 0);
	dw_string(w, "h");
	dw_string(w, "_Z1hv");
	id.f = dw_die(w, DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
		DW_FORM_addr, DW_AT_high_pc, DW_FORM_data4, DW_AT_frame_base, DW_FORM_block1,
		DW_AT_decl_line, DW_FORM_data1, 0);
	dw_string(w, "main.f");
	dw_u64(w, 0x1000);
	dw_u32(w, 0x100);
	dw_block1(w, (uint8_t[]){DW_OP_call_frame_cfa}, 1);
	dw_u8(w, 10);
	dw_die(w, DW_TAG_formal_parameter, 0, DW_AT_name, DW_FORM_string, DW_AT_location,
		DW_FORM_sec_offset, 0);
	dw_string(w, "a");
	put_attr_list(w, lists[0]);
	dw_die(w, DW_TAG_formal_parameter, 0, DW_AT_name, DW_FORM_string, DW_AT_variable_parameter,
		DW_FORM_flag, DW_AT_location, DW_FORM_block1, 0);
	dw_string(w, "r");
	dw_u8(w, 1);
	dw_block1(w, (uint8_t[]){DW_OP_fbreg, 8}, 2);
	dw_die(w, DW_TAG_lexical_block, 1, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_addr,
		0);
	dw_u64(w, 0x1010);
	dw_u64(w, 0x1020);
	dw_die(w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location,
		DW_FORM_sec_offset, 0);
	dw_string(w, "&x");
	put_attr_list(w, lists[1]);
	dw_end(w);
	id.g_inlined = dw_die(w, DW_TAG_inlined_subroutine, 1, DW_AT_abstract_origin, DW_FORM_ref4,
		DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_addr, DW_AT_call_line,
		DW_FORM_data1, DW_AT_call_file, DW_FORM_data1, 0);
	dw_u32(w, g - (uint32_t)w->unit_start);
	dw_u64(w, 0x1040);
	dw_u64(w, 0x1060);
	dw_u8(w, 12);
	dw_u8(w, 1);
	dw_die(w, DW_TAG_formal_parameter, 0, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_location,
		DW_FORM_sec_offset, 0);
	dw_u32(w, g_param - (uint32_t)w->unit_start);
	put_attr_list(w, lists[2]);
	dw_die(w, DW_TAG_inlined_subroutine, 0, DW_AT_abstract_origin, DW_FORM_ref4, DW_AT_ranges,
		DW_FORM_sec_offset, DW_AT_call_line, DW_FORM_data1, 0);
	dw_u32(w, h - (uint32_t)w->unit_start);
	put_attr_list(w, lists[3]);
	dw_u8(w, 34);
	dw_end(w);
	dw_die(w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value, DW_FORM_sdata,
		0);
	dw_string(w, "c");
	dw_u8(w, 42);
	dw_end(w);
	return id;
}

/* One variable at pc, by name; its expression's first byte, or -1 where it has none. */
static int first_byte(const struct sonde_dwarf_variables *variables, const char *name,
	struct sonde_dwarf_variable *ret)
{
	for (size_t i = 0; i < variables->n; i++) {
		*ret = variables->items[i];
		if (!strcmp(ret->name, name))
			return ret->expr ? ret->expr[0] : -1;
	}
	return -2;
}

#define VARIABLES_AT(pc)                                                                   \
	sonde_cleanup(sonde_dwarf_variables) struct sonde_dwarf_variables variables = {0}; \
	struct sonde_dwarf_variable v = {0};                                               \
	REQUIRE_OK(sonde_dwarf_variables_at(dwarf, (pc), &variables))

static void check_scopes(struct sonde_dwarf *dwarf, struct scope_ids id)
{
	const struct sonde_dwarf_function *f = sonde_dwarf_function_at(dwarf, 0x10ff);
	REQUIRE(f);
	CHECK_EQ(f->id, id.f);
	CHECK_STR(f->name, "main.f");
	CHECK_EQ(f->low, 0x1000);
	CHECK_EQ(f->high, 0x1100);
	CHECK_EQ(f->decl_line, 10);
	CHECK(f == sonde_dwarf_function_find(dwarf, "main.f"));
	CHECK(f == sonde_dwarf_function_at(dwarf, 0x1000));
	CHECK(!sonde_dwarf_function_at(dwarf, 0x1100));
	CHECK(!sonde_dwarf_function_at(dwarf, 0xfff));
	CHECK(!sonde_dwarf_function_find(dwarf, "main.g"));
	const uint8_t *expr;
	size_t len;
	const struct sonde_location_unit *unit;
	REQUIRE(sonde_dwarf_frame_base(dwarf, 0x1004, &expr, &len, &unit));
	CHECK_EQ(len, 1);
	CHECK_EQ(expr[0], DW_OP_call_frame_cfa);
	CHECK(!sonde_dwarf_frame_base(dwarf, 0x1100, &expr, &len, NULL));

	struct sonde_dwarf_scope scopes[4] = {0};
	CHECK_EQ(sonde_dwarf_scopes_at(dwarf, 0x1100, scopes, 4), 0);
	CHECK_EQ(sonde_dwarf_scopes_at(dwarf, 0x1010, scopes, 4), 1);
	CHECK_STR(scopes[0].name, "main.f");
	CHECK_EQ(sonde_dwarf_scopes_at(dwarf, 0x1054, scopes, 1), 3);
	CHECK_EQ(sonde_dwarf_scopes_at(dwarf, 0x1054, scopes, 4), 3);
	CHECK_STR(scopes[0].name, "h");
	CHECK_STR(scopes[0].linkage_name, "_Z1hv");
	CHECK_EQ(scopes[0].call_line, 34);
	CHECK_STR(scopes[1].name, "main.g");
	CHECK_EQ(scopes[1].id, id.g_inlined);
	CHECK_EQ(scopes[1].call_line, 12);
	CHECK_EQ(scopes[1].call_file, 1);
	CHECK_STR(scopes[2].name, "main.f");
	CHECK_EQ(scopes[2].call_line, 0);
}

static void check_variables(struct sonde_dwarf *dwarf)
{
	{
		VARIABLES_AT(0x1004);
		CHECK_EQ(variables.n, 3);
		CHECK_EQ(first_byte(&variables, "a", &v), DW_OP_reg0);
		CHECK(v.is_parameter && !v.is_result);
		CHECK_EQ(v.inline_depth, 0);
		CHECK_STR(v.function, "main.f");
		CHECK_EQ(first_byte(&variables, "r", &v), DW_OP_fbreg);
		CHECK(v.is_result && v.unit);
		CHECK_EQ(first_byte(&variables, "c", &v), (uint64_t)-1);
		CHECK(v.has_constant);
		CHECK_EQ(v.constant, 42);
	}
	{
		VARIABLES_AT(0x1014);
		CHECK_EQ(variables.n, 4);
		CHECK_EQ(first_byte(&variables, "a", &v), DW_OP_reg0 + 1);
		CHECK_EQ(first_byte(&variables, "&x", &v), DW_OP_reg0 + 2);
		CHECK(v.escapes);
		CHECK_EQ(v.scope_low, 0x1010);
		CHECK_EQ(v.scope_high, 0x1020);
	}
	{
		/* Behind all of a's ranges. */
		VARIABLES_AT(0x1090);
		CHECK_EQ(first_byte(&variables, "a", &v), (uint64_t)-1);
		CHECK_EQ(first_byte(&variables, "&x", &v), (uint64_t)-2);
	}
	{
		VARIABLES_AT(0x1054);
		CHECK_EQ(first_byte(&variables, "p", &v), DW_OP_reg0 + 3);
		CHECK(v.is_parameter);
		CHECK_EQ(v.decl_line, 33);
		CHECK_EQ(v.inline_depth, 1);
		CHECK_STR(v.function, "main.g");
		CHECK_EQ(v.scope_low, 0x1040);
		CHECK(v.type);
	}
}

static uint32_t here(const struct dw *w, enum dw_section section)
{
	return (uint32_t)w->sections[section].len;
}

static void loc_entry(struct sonde_buf *b, uint64_t low, uint64_t high, unsigned reg)
{
	dw_word(b, low, 8);
	dw_word(b, high, 8);
	dw_word(b, 1, 2);
	dw_word(b, DW_OP_reg0 + reg, 1);
}

/* DWARF 4: relative to the unit's low_pc, and to a base that an entry chooses. */
static void variables_of_version_4(void)
{
	FIXTURE;
	struct sonde_buf *loc = &w.sections[DW_LOC], *ranges = &w.sections[DW_RANGES];
	uint32_t lists[4];
	lists[0] = here(&w, DW_LOC);
	loc_entry(loc, 0x800, 0x810, 0);
	dw_word(loc, UINT64_MAX, 8);
	dw_word(loc, 0x1000, 8);
	loc_entry(loc, 0x10, 0x30, 1);
	dw_word(loc, 0, 8);
	dw_word(loc, 0, 8);
	lists[1] = here(&w, DW_LOC);
	loc_entry(loc, 0x810, 0x820, 2);
	dw_word(loc, 0, 8);
	dw_word(loc, 0, 8);
	lists[2] = here(&w, DW_LOC);
	loc_entry(loc, 0, 0x2000, 3);
	dw_word(loc, 0, 8);
	dw_word(loc, 0, 8);
	lists[3] = here(&w, DW_RANGES);
	dw_word(ranges, 0x850, 8);
	dw_word(ranges, 0x858, 8);
	dw_word(ranges, 0, 8);
	dw_word(ranges, 0, 8);
	dw_go_unit(&w, 4, "main", 0x800);
	struct scope_ids id = put_function(&w, lists);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_ZLIB, &image, &notes, &dwarf));
	check_scopes(dwarf, id);
	check_variables(dwarf);
	CHECK_EQ(notes.entries.n, 0);
}

static void lle(struct sonde_buf *b, unsigned kind, unsigned reg)
{
	/* The counted expression that ends an entry; kind is only for the reader. */
	(void)kind;
	dw_uleb(b, 1);
	dw_word(b, DW_OP_reg0 + reg, 1);
}

/* DWARF 5: every kind of entry, and ranges from .debug_rnglists. */
static void variables_of_version_5(void)
{
	FIXTURE;
	struct sonde_buf *lists5 = &w.sections[DW_LOCLISTS];
	uint32_t lists[4];
	size_t table = dw_table(&w, DW_ADDR, 0);
	static const uint64_t addresses[] = {0x1000, 0x1008, 0x1010, 0x1020};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(addresses); i++)
		dw_word(&w.sections[DW_ADDR], addresses[i], 8);
	dw_table_end(&w, DW_ADDR, table);

	table = dw_table(&w, DW_LOCLISTS, 0);
	lists[0] = here(&w, DW_LOCLISTS);
	dw_word(lists5, DW_LLE_startx_endx, 1);
	dw_uleb(lists5, 0);
	dw_uleb(lists5, 1);
	lle(lists5, DW_LLE_startx_endx, 0);
	dw_word(lists5, DW_LLE_GNU_view_pair, 1);
	dw_uleb(lists5, 300);
	dw_uleb(lists5, 1);
	dw_word(lists5, DW_LLE_startx_length, 1);
	dw_uleb(lists5, 2);
	dw_uleb(lists5, 0x10);
	lle(lists5, DW_LLE_startx_length, 1);
	dw_word(lists5, DW_LLE_end_of_list, 1);

	lists[1] = here(&w, DW_LOCLISTS);
	dw_word(lists5, DW_LLE_base_addressx, 1);
	dw_uleb(lists5, 3);
	dw_word(lists5, DW_LLE_offset_pair, 1);
	dw_uleb(lists5, 0);
	dw_uleb(lists5, 8);
	lle(lists5, DW_LLE_offset_pair, 9);
	dw_word(lists5, DW_LLE_base_address, 1);
	dw_word(lists5, 0x1010, 8);
	dw_word(lists5, DW_LLE_offset_pair, 1);
	dw_uleb(lists5, 0);
	dw_uleb(lists5, 8);
	lle(lists5, DW_LLE_offset_pair, 2);
	dw_word(lists5, DW_LLE_end_of_list, 1);

	lists[2] = here(&w, DW_LOCLISTS);
	dw_word(lists5, DW_LLE_start_end, 1);
	dw_word(lists5, 0x1040, 8);
	dw_word(lists5, 0x1048, 8);
	lle(lists5, DW_LLE_start_end, 8);
	dw_word(lists5, DW_LLE_start_length, 1);
	dw_word(lists5, 0x1048, 8);
	dw_uleb(lists5, 8);
	lle(lists5, DW_LLE_start_length, 7);
	dw_word(lists5, DW_LLE_default_location, 1);
	lle(lists5, DW_LLE_default_location, 3);
	dw_word(lists5, DW_LLE_end_of_list, 1);
	dw_table_end(&w, DW_LOCLISTS, table);

	table = dw_table(&w, DW_RNGLISTS, 0);
	lists[3] = here(&w, DW_RNGLISTS);
	dw_word(&w.sections[DW_RNGLISTS], DW_RLE_start_length, 1);
	dw_word(&w.sections[DW_RNGLISTS], 0x1050, 8);
	dw_uleb(&w.sections[DW_RNGLISTS], 8);
	dw_word(&w.sections[DW_RNGLISTS], DW_RLE_end_of_list, 1);
	dw_table_end(&w, DW_RNGLISTS, table);
	dw_go_unit(&w, 5, "main", 0x800);
	struct scope_ids id = put_function(&w, lists);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_ZSTD, &image, &notes, &dwarf));
	check_scopes(dwarf, id);
	check_variables(dwarf);
	VARIABLES_AT(0x1044);
	CHECK_EQ(first_byte(&variables, "p", &v), DW_OP_reg8);
	CHECK_EQ(notes.entries.n, 0);
}

/* Lists that run off their section, and that lie outside of it. */
static void damaged_lists(void)
{
	FIXTURE;
	size_t table = dw_table(&w, DW_LOCLISTS, 0);
	const uint32_t lists[4] = {
		here(&w, DW_LOCLISTS), 0x10000, here(&w, DW_LOCLISTS) + 1, 0x999};
	dw_word(&w.sections[DW_LOCLISTS], DW_LLE_start_length, 1);
	dw_word(&w.sections[DW_LOCLISTS], 0x1000, 8);
	dw_table_end(&w, DW_LOCLISTS, table);
	dw_go_unit(&w, 5, "main", 0x800);
	put_function(&w, lists);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	VARIABLES_AT(0x1014);
	CHECK_EQ(first_byte(&variables, "a", &v), (uint64_t)-1);
	CHECK_EQ(first_byte(&variables, "&x", &v), (uint64_t)-1);
	struct sonde_dwarf_scope scopes[4];
	CHECK_EQ(sonde_dwarf_scopes_at(dwarf, 0x1054, scopes, 4), 2);
	CHECK_EQ(count_notes(&notes, "location list damaged"), 2);
}

/* DW_FORM_loclistx: an index into the offsets behind the table's header. */
static void indexed_lists(void)
{
	FIXTURE;
	size_t table = dw_table(&w, DW_LOCLISTS, 1);
	dw_word(&w.sections[DW_LOCLISTS], 4, 4);
	dw_word(&w.sections[DW_LOCLISTS], DW_LLE_offset_pair, 1);
	dw_uleb(&w.sections[DW_LOCLISTS], 0);
	dw_uleb(&w.sections[DW_LOCLISTS], 4);
	lle(&w.sections[DW_LOCLISTS], DW_LLE_offset_pair, 5);
	dw_word(&w.sections[DW_LOCLISTS], DW_LLE_end_of_list, 1);
	dw_table_end(&w, DW_LOCLISTS, table);
	dw_go_unit(&w, 5, "main", 0x1000);
	dw_die(&w, DW_TAG_subprogram, 1, DW_AT_low_pc, DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1,
		0);
	dw_u64(&w, 0x1000);
	dw_u8(&w, 8);
	for (unsigned i = 0; i < 2; i++) {
		dw_die(&w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location,
			DW_FORM_loclistx, 0);
		dw_string(&w, i ? "outside" : "v");
		dw_uleb(&w.sections[DW_INFO], i * 1000);
	}
	dw_end(&w);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	VARIABLES_AT(0x1002);
	CHECK_EQ(first_byte(&variables, "v", &v), DW_OP_reg5);
	CHECK_EQ(first_byte(&variables, "outside", &v), (uint64_t)-1);
	variables.n = 0;
	REQUIRE_OK(sonde_dwarf_variables_at(dwarf, 0x1004, &variables));
	CHECK_EQ(first_byte(&variables, "v", &v), (uint64_t)-1);
}

/* A function of two ranges, aliases of one range, and a function inside another (GNU C). */
static void functions_of_many_shapes(void)
{
	FIXTURE;
	struct sonde_buf *ranges = &w.sections[DW_RANGES];
	static const uint64_t words[] = {0x2000, 0x2010, 0x3000, 0x3010, 0, 0};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(words); i++)
		dw_word(ranges, words[i], 8);
	dw_unit(&w, 4);
	dw_die(&w, DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1, 0);
	dw_u8(&w, DW_LANG_C99);
	dw_die(&w, DW_TAG_subprogram, 1, DW_AT_name, DW_FORM_string, DW_AT_ranges,
		DW_FORM_sec_offset, 0);
	dw_string(&w, "hot_and_cold");
	dw_u32(&w, 0);
	dw_die(&w, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, DW_AT_low_pc, DW_FORM_addr,
		DW_AT_high_pc, DW_FORM_data1, 0);
	dw_string(&w, "nested");
	dw_u64(&w, 0x5000);
	dw_u8(&w, 16);
	dw_end(&w);
	for (int i = 0; i < 2; i++) {
		dw_die(&w, DW_TAG_subprogram, 0, DW_AT_name, DW_FORM_string, DW_AT_low_pc,
			DW_FORM_addr, DW_AT_high_pc, DW_FORM_data1, 0);
		dw_string(&w, i ? "alias" : "first");
		dw_u64(&w, 0x6000);
		dw_u8(&w, 16);
	}
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	const struct sonde_dwarf_function *f = sonde_dwarf_function_at(dwarf, 0x3008);
	REQUIRE(f);
	CHECK_STR(f->name, "hot_and_cold");
	CHECK_EQ(f->low, 0x3000);
	REQUIRE((f = sonde_dwarf_function_find(dwarf, "hot_and_cold")));
	CHECK_EQ(f->low, 0x2000);
	CHECK_EQ(f->entry, 0x2000);
	REQUIRE((f = sonde_dwarf_function_at(dwarf, 0x500f)));
	CHECK_STR(f->name, "nested");
	REQUIRE((f = sonde_dwarf_function_at(dwarf, 0x6000)));
	CHECK_STR(f->name, "first");
	CHECK(!sonde_dwarf_function_at(dwarf, 0x2010));
	CHECK(sonde_dwarf_unit_at(dwarf, 0x2000));
	CHECK(!sonde_dwarf_unit_at(dwarf, 0x2800));
}

int main(void)
{
	RUN(variables_of_version_4);
	RUN(variables_of_version_5);
	RUN(damaged_lists);
	RUN(indexed_lists);
	RUN(functions_of_many_shapes);
	return tap_end();
}
