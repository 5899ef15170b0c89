#include <inttypes.h>
#include "object/dwarf.h"
#include "build_dwarf.h"
#include "tap.h"

/* int, *int, T{a, b embedded}, [3]int, MyT = T, map[string]int as Go writes them. */
struct ids {
	uint32_t int_, pointer, t, array, typedef_, map;
};

static struct ids put_types(struct dw *w)
{
	struct ids id;
	id.int_ = dw_die(w, DW_TAG_base_type, 0, DW_AT_name, DW_FORM_string, DW_AT_encoding,
		DW_FORM_data1, DW_AT_byte_size, DW_FORM_data1, 0x2900, DW_FORM_data1, 0x2904,
		DW_FORM_addr, 0);
	dw_string(w, "int");
	dw_u8(w, DW_ATE_signed);
	dw_u8(w, 8);
	dw_u8(w, 2);
	dw_u64(w, 0x1000);
	id.pointer = dw_die(w, DW_TAG_pointer_type, 0, DW_AT_name, DW_FORM_string, DW_AT_type,
		DW_FORM_ref_addr, 0x2900, DW_FORM_data1, 0x2904, DW_FORM_udata, 0);
	dw_string(w, "*int");
	dw_u32(w, id.int_);
	dw_u8(w, 22);
	dw_uleb(&w->sections[DW_INFO], 0x2000);
	id.t = dw_die(w, DW_TAG_structure_type, 1, DW_AT_name, DW_FORM_string, DW_AT_byte_size,
		DW_FORM_udata, 0x2900, DW_FORM_data1, 0);
	dw_string(w, "main.T");
	dw_u8(w, 24);
	dw_u8(w, 25);
	dw_die(w, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_data_member_location,
		DW_FORM_udata, DW_AT_type, DW_FORM_ref_addr, 0x2903, DW_FORM_flag, 0);
	dw_string(w, "a");
	dw_u8(w, 0);
	dw_u32(w, id.int_);
	dw_u8(w, 0);
	dw_die(w, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_data_member_location,
		DW_FORM_block1, DW_AT_type, DW_FORM_ref_addr, 0x2903, DW_FORM_flag, 0);
	dw_string(w, "E");
	dw_block1(w, (uint8_t[]){DW_OP_plus_uconst, 8}, 2);
	dw_u32(w, id.pointer);
	dw_u8(w, 1);
	dw_end(w);
	id.array = dw_die(w, DW_TAG_array_type, 1, DW_AT_name, DW_FORM_string, DW_AT_type,
		DW_FORM_ref_addr, 0);
	dw_string(w, "[3]int");
	dw_u32(w, id.int_);
	dw_die(w, DW_TAG_subrange_type, 0, DW_AT_count, DW_FORM_udata, 0);
	dw_u8(w, 3);
	dw_end(w);
	id.typedef_ = dw_die(
		w, DW_TAG_typedef, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref_addr, 0);
	dw_string(w, "main.MyT");
	dw_u32(w, id.t);
	id.map = dw_die(w, DW_TAG_typedef, 0, DW_AT_name, DW_FORM_string, DW_AT_type,
		DW_FORM_ref_addr, 0x2900, DW_FORM_data1, 0x2901, DW_FORM_ref_addr, 0x2902,
		DW_FORM_ref_addr, 0);
	dw_string(w, "map[string]int");
	dw_u32(w, id.pointer);
	dw_u8(w, 21);
	dw_u32(w, id.t);
	dw_u32(w, id.int_);
	return id;
}

static void check_types(struct sonde_dwarf *dwarf, struct ids id)
{
	const struct sonde_dwarf_type *type = sonde_dwarf_type_find(dwarf, "int");
	REQUIRE(type);
	CHECK_EQ(type->id, id.int_);
	CHECK_EQ(type->kind, SONDE_DWARF_BASE);
	CHECK_EQ(type->size_bytes, 8);
	CHECK_EQ(type->encoding, DW_ATE_signed);
	CHECK_EQ(type->go_kind, 2);
	CHECK_EQ(type->go_runtime_type, 0x1000);
	type = sonde_dwarf_type(dwarf, id.pointer);
	REQUIRE(type);
	CHECK_EQ(type->kind, SONDE_DWARF_POINTER);
	CHECK_EQ(type->size_bytes, 8);
	CHECK_EQ(type->elem, id.int_);
	CHECK(type == sonde_dwarf_type(dwarf, id.pointer));
	type = sonde_dwarf_type_find(dwarf, "main.T");
	REQUIRE(type && type->n_members == 2);
	CHECK_EQ(type->kind, SONDE_DWARF_STRUCT);
	CHECK_STR(type->members[0].name, "a");
	CHECK_EQ(type->members[0].type, id.int_);
	CHECK(!type->members[0].embedded);
	CHECK_EQ(type->members[1].offset_bytes, 8);
	CHECK(type->members[1].embedded);
	type = sonde_dwarf_type(dwarf, id.array);
	REQUIRE(type);
	CHECK_EQ(type->kind, SONDE_DWARF_ARRAY);
	CHECK_EQ(type->count, 3);
	CHECK_EQ(type->size_bytes, 24);
	type = sonde_dwarf_type_find(dwarf, "main.MyT");
	REQUIRE(type);
	CHECK_EQ(type->kind, SONDE_DWARF_TYPEDEF);
	CHECK_EQ(type->elem, id.t);
	CHECK_EQ(type->size_bytes, 24);
	uint64_t offset = 0;
	const struct sonde_dwarf_member *member =
		sonde_dwarf_member_find(dwarf, type, "E", &offset);
	REQUIRE(member);
	CHECK_EQ(offset, 8);
	CHECK(!sonde_dwarf_member_find(dwarf, type, "none", NULL));
	type = sonde_dwarf_type_find(dwarf, "map[string]int");
	REQUIRE(type);
	CHECK_EQ(type->go_kind, 21);
	CHECK_EQ(type->go_key, id.t);
	CHECK_EQ(type->go_elem, id.int_);
	CHECK_EQ(sonde_dwarf_type_by_runtime(dwarf, 0x1000), id.int_);
	CHECK_EQ(sonde_dwarf_type_by_runtime(dwarf, 0x2000), id.pointer);
	CHECK_EQ(sonde_dwarf_type_by_runtime(dwarf, 0x3000), 0);
	CHECK_EQ(sonde_dwarf_type(dwarf, 0)->kind, SONDE_DWARF_VOID);
	size_t n;
	const uint64_t *ids = sonde_dwarf_types(dwarf, &n);
	REQUIRE(n == 6);
	CHECK_EQ(ids[0], id.int_);
	CHECK_EQ(ids[5], id.map);
}

static void go_types(void)
{
	for (unsigned version = 4; version <= 5; version++) {
		FIXTURE;
		dw_go_unit(&w, version, "main", 0x400000);
		struct ids id = put_types(&w);
		dw_end(&w);
		dw_unit_end(&w);
		REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
		check_types(dwarf, id);
		const char *producer = NULL;
		CHECK(sonde_dwarf_is_go(dwarf, &producer));
		CHECK_STR(producer, "Go cmd/compile go1.99");
		size_t n;
		const struct sonde_dwarf_unit *units = sonde_dwarf_units(dwarf, &n);
		REQUIRE(n == 1);
		CHECK_EQ(units[0].version, version);
		CHECK_EQ(units[0].low_pc, 0x400000);
		CHECK(sonde_dwarf_unit_of(dwarf, id.map) == units);
		CHECK(!sonde_dwarf_unit_of(dwarf, 1));
		CHECK_EQ(notes.entries.n, 0);
	}
}

static void compressed_sections(void)
{
	static const enum dw_packing packings[] = {DW_ZLIB, DW_ZSTD, DW_ZDEBUG};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(packings); i++) {
		FIXTURE;
		dw_go_unit(&w, 5, "main", 0);
		struct ids id = put_types(&w);
		dw_end(&w);
		dw_unit_end(&w);
		REQUIRE_OK(open_dw(&w, packings[i], &image, &notes, &dwarf));
		check_types(dwarf, id);
		CHECK_EQ(notes.entries.n, 0);
	}
}

static void damaged_compression(void)
{
	for (enum dw_packing packing = DW_ZLIB; packing <= DW_ZDEBUG; packing++) {
		FIXTURE;
		dw_go_unit(&w, 5, "main", 0);
		put_types(&w);
		dw_end(&w);
		dw_unit_end(&w);
		dw_elf(&w, packing, &image);
		/* .debug_info comes first: spoil its stream, then its promise. */
		size_t stream =
			sizeof(Elf64_Ehdr) + (packing == DW_ZDEBUG ? 12 : sizeof(Elf64_Chdr));
		memset(image.data + stream + 4, 0xee, 16);
		CHECK_ERROR(sonde_dwarf_open_image(image.data, image.len, "f", &notes, &dwarf),
			SONDE_BAD_DATA, "f: .debug_info: ");
		memset(image.data + stream - (packing == DW_ZDEBUG ? 8 : 16), 0x7f, 7);
		CHECK_ERROR(sonde_dwarf_open_image(image.data, image.len, "f", &notes, &dwarf),
			SONDE_BAD_DATA, "promise");
	}
}

static void unknown_compression(void)
{
	FIXTURE;
	dw_go_unit(&w, 5, "main", 0);
	dw_end(&w);
	dw_unit_end(&w);
	dw_elf(&w, DW_ZLIB, &image);
	image.data[sizeof(Elf64_Ehdr)] = 9;
	CHECK_ERROR(sonde_dwarf_open_image(image.data, image.len, "f", &notes, &dwarf),
		SONDE_UNSUPPORTED, "f: .debug_info: compression type 9");
}

static void not_dwarf(void)
{
	FIXTURE;
	CHECK_ERROR(sonde_dwarf_open_image("", 0, "f", &notes, &dwarf), SONDE_BAD_DATA,
		"f: not an ELF file");
	CHECK_ERROR(sonde_dwarf_open("/nonexistent/f", &notes, &dwarf), SONDE_OS, "/nonexistent/f");
	sonde_buf_str(&w.sections[DW_STR], "x");
	dw_elf(&w, DW_PLAIN, &image);
	CHECK_ERROR(sonde_dwarf_open_image(image.data, image.len, "f", &notes, &dwarf),
		SONDE_NOT_FOUND, "f: no DWARF (stripped: no .debug_info)");
	image.data[EI_DATA] = ELFDATA2MSB;
	CHECK_ERROR(sonde_dwarf_open_image(image.data, image.len, "f", &notes, &dwarf),
		SONDE_UNSUPPORTED, "big-endian");
	image.data[EI_DATA] = ELFDATA2LSB;
	CHECK_ERROR(sonde_dwarf_open_image(image.data, 40, "f", &notes, &dwarf), SONDE_TRUNCATED,
		"ELF header");
	CHECK_ERROR(sonde_dwarf_open_image(image.data, image.len - 1, "f", &notes, &dwarf),
		SONDE_TRUNCATED, "f: no DWARF: ");
}

static void declarations_are_no_definitions(void)
{
	FIXTURE;
	dw_unit(&w, 4);
	dw_die(&w, DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1, 0);
	dw_u8(&w, DW_LANG_C11);
	dw_die(&w, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string, DW_AT_declaration,
		DW_FORM_flag_present, 0);
	dw_string(&w, "s");
	uint32_t definition = dw_die(&w, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string,
		DW_AT_byte_size, DW_FORM_data1, 0);
	dw_string(&w, "s");
	dw_u8(&w, 12);
	dw_die(&w, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string, DW_AT_byte_size,
		DW_FORM_data1, 0);
	dw_string(&w, "s");
	dw_u8(&w, 99);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	const struct sonde_dwarf_type *type = sonde_dwarf_type_find(dwarf, "s");
	REQUIRE(type);
	CHECK_EQ(type->id, definition);
	CHECK_EQ(type->size_bytes, 12);
	CHECK(!sonde_dwarf_type_find(dwarf, "t"));
	CHECK(!sonde_dwarf_is_go(dwarf, NULL));
}

/* const volatile int; a typedef of it; a C bit-field; an anonymous union; int a[2][3]. */
static void c_types(void)
{
	FIXTURE;
	dw_unit(&w, 5);
	dw_die(&w, DW_TAG_compile_unit, 1, DW_AT_language, DW_FORM_data1, 0);
	dw_u8(&w, DW_LANG_C11);
	uint32_t int_ = dw_die(&w, DW_TAG_base_type, 0, DW_AT_byte_size, DW_FORM_data1, DW_AT_name,
		DW_FORM_string, 0);
	dw_u8(&w, 4);
	dw_string(&w, "int");
	uint32_t volatile_ = dw_die(&w, DW_TAG_volatile_type, 0, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, int_);
	uint32_t const_ = dw_die(&w, DW_TAG_const_type, 0, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, volatile_);
	uint32_t const_void = dw_die(&w, DW_TAG_const_type, 0, 0);
	uint32_t union_ = dw_die(&w, DW_TAG_union_type, 1, DW_AT_byte_size, DW_FORM_data1, 0);
	dw_u8(&w, 4);
	dw_die(&w, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4, 0);
	dw_string(&w, "inside");
	dw_u32(&w, const_);
	dw_end(&w);
	uint32_t struct_ = dw_die(&w, DW_TAG_structure_type, 1, DW_AT_byte_size, DW_FORM_data1, 0);
	dw_u8(&w, 12);
	dw_die(&w, DW_TAG_member, 0, DW_AT_type, DW_FORM_ref4, DW_AT_data_member_location,
		DW_FORM_data1, 0);
	dw_u32(&w, union_);
	dw_u8(&w, 4);
	dw_die(&w, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
		DW_AT_bit_size, DW_FORM_data1, DW_AT_data_bit_offset, DW_FORM_data1, 0);
	dw_string(&w, "bits");
	dw_u32(&w, int_);
	dw_u8(&w, 3);
	dw_u8(&w, 69);
	dw_die(&w, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_type, DW_FORM_ref4,
		DW_AT_bit_size, DW_FORM_data1, DW_AT_bit_offset, DW_FORM_data1, DW_AT_byte_size,
		DW_FORM_data1, DW_AT_data_member_location, DW_FORM_data1, 0);
	dw_string(&w, "old");
	dw_u32(&w, int_);
	dw_u8(&w, 3);
	dw_u8(&w, 27);
	dw_u8(&w, 4);
	dw_u8(&w, 8);
	dw_die(&w, DW_TAG_member, 0, DW_AT_name, DW_FORM_string, DW_AT_external,
		DW_FORM_flag_present, DW_AT_declaration, DW_FORM_flag_present, 0);
	dw_string(&w, "a_static_member");
	dw_end(&w);
	uint32_t array = dw_die(&w, DW_TAG_array_type, 1, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, int_);
	dw_die(&w, DW_TAG_subrange_type, 0, DW_AT_upper_bound, DW_FORM_data1, 0);
	dw_u8(&w, 1);
	dw_die(&w, DW_TAG_subrange_type, 0, DW_AT_upper_bound, DW_FORM_implicit_const, 2, 0);
	dw_end(&w);
	dw_die(&w, DW_TAG_enumeration_type, 1, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, int_);
	dw_die(&w, DW_TAG_enumerator, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value,
		DW_FORM_sdata, 0);
	dw_string(&w, "MINUS");
	dw_sleb(&w.sections[DW_INFO], -7);
	dw_die(&w, DW_TAG_enumerator, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value,
		DW_FORM_data1, 0);
	dw_string(&w, "LARGE");
	dw_u8(&w, 200);
	dw_end(&w);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	const struct sonde_dwarf_type *type = sonde_dwarf_type(dwarf, const_);
	REQUIRE(type);
	CHECK_EQ(type->id, int_);
	CHECK(type == sonde_dwarf_type(dwarf, int_));
	CHECK_EQ(sonde_dwarf_type(dwarf, const_void)->kind, SONDE_DWARF_VOID);
	type = sonde_dwarf_type(dwarf, struct_);
	REQUIRE(type && type->n_members == 3);
	uint64_t offset;
	REQUIRE(sonde_dwarf_member_find(dwarf, type, "inside", &offset));
	CHECK_EQ(offset, 4);
	CHECK_EQ(type->members[1].offset_bytes, 8);
	CHECK_EQ(type->members[1].bit_size, 3);
	CHECK_EQ(type->members[1].bit_offset, 5);
	CHECK_EQ(type->members[2].offset_bytes, 8);
	CHECK_EQ(type->members[2].bit_offset, 2);
	type = sonde_dwarf_type(dwarf, array);
	REQUIRE(type);
	CHECK_EQ(type->count, 2);
	CHECK_EQ(type->size_bytes, 24);
	type = sonde_dwarf_type(dwarf, type->elem);
	REQUIRE(type);
	CHECK_EQ(type->count, 3);
	CHECK_EQ(type->size_bytes, 12);
	CHECK_EQ(type->elem, int_);
	int64_t value = 0;
	CHECK(sonde_dwarf_constant(dwarf, "MINUS", &value));
	CHECK_EQ(value, -7);
	CHECK(sonde_dwarf_constant(dwarf, "LARGE", &value));
	CHECK_EQ(value, 200);
	CHECK(!sonde_dwarf_constant(dwarf, "NONE", &value));
	CHECK_EQ(notes.entries.n, 0);
}

static void constants_and_globals(void)
{
	FIXTURE;
	/* The second unit is "runtime": it is indexed first, and the order of results does not show it. */
	dw_go_unit(&w, 5, "main", 0);
	dw_die(&w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location, DW_FORM_block1,
		DW_AT_type, DW_FORM_ref_addr, 0);
	dw_string(&w, "main.high");
	dw_addr_expr(&w, 0x9000);
	dw_u32(&w, 0x77);
	dw_die(&w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location, DW_FORM_exprloc,
		0);
	dw_string(&w, "main.indexed");
	dw_u8(&w, 2);
	dw_u8(&w, DW_OP_addrx);
	dw_u8(&w, 1);
	dw_die(&w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location, DW_FORM_exprloc,
		0);
	dw_string(&w, "main.thread_local");
	dw_u8(&w, 3);
	dw_u8(&w, DW_OP_const1u);
	dw_u8(&w, 8);
	dw_u8(&w, DW_OP_form_tls_address);
	dw_die(&w, DW_TAG_variable, 0, DW_AT_name, DW_FORM_string, DW_AT_location, DW_FORM_block1,
		0);
	dw_string(&w, "main.optimised_out");
	dw_u8(&w, 0);
	dw_die(&w, DW_TAG_constant, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value, DW_FORM_sdata,
		0);
	dw_string(&w, "main.c");
	dw_sleb(&w.sections[DW_INFO], -1);
	dw_end(&w);
	dw_unit_end(&w);
	dw_go_unit(&w, 5, "runtime", 0);
	dw_die(&w, DW_TAG_constant, 0, DW_AT_name, DW_FORM_string, DW_AT_const_value, DW_FORM_sdata,
		0);
	dw_string(&w, "runtime._Gwaiting");
	dw_u8(&w, 4);
	dw_end(&w);
	dw_unit_end(&w);
	size_t table = dw_table(&w, DW_ADDR, 0);
	dw_word(&w.sections[DW_ADDR], 0x111, 8);
	dw_word(&w.sections[DW_ADDR], 0x8000, 8);
	dw_table_end(&w, DW_ADDR, table);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	int64_t value = 0;
	CHECK(sonde_dwarf_constant(dwarf, "runtime._Gwaiting", &value));
	CHECK_EQ(value, 4);
	CHECK(sonde_dwarf_constant(dwarf, "main.c", &value));
	CHECK_EQ(value, -1);
	size_t n;
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(dwarf, &n);
	REQUIRE(n == 2);
	CHECK_STR(globals[0].name, "main.indexed");
	CHECK_EQ(globals[0].addr, 0x8000);
	CHECK_STR(globals[1].name, "main.high");
	CHECK_EQ(globals[1].addr, 0x9000);
	const struct sonde_dwarf_global *found = sonde_dwarf_global_find(dwarf, "main.high");
	REQUIRE(found);
	CHECK_EQ(found->addr, 0x9000);
	CHECK(found == sonde_dwarf_global_find(dwarf, "main.high"));
	CHECK(!sonde_dwarf_global_find(dwarf, "main.thread_local"));
	CHECK(!sonde_dwarf_global_find(dwarf, "main.none"));
	const struct sonde_dwarf_constant_entry *constants = sonde_dwarf_constants(dwarf, &n);
	REQUIRE(n == 2);
	CHECK_STR(constants[0].name, "runtime._Gwaiting");
}

/* DWARF 4, section 7.5.1.2: a type in a unit of .debug_types, referred to by its signature. */
static void type_units(void)
{
	FIXTURE;
	dw_unit(&w, 4);
	dw_die(&w, DW_TAG_compile_unit, 1, 0);
	uint32_t pointer = dw_die(&w, DW_TAG_pointer_type, 0, DW_AT_type, DW_FORM_ref_sig8, 0);
	dw_u64(&w, 0x1122334455667788);
	dw_end(&w);
	dw_unit_end(&w);
	/* Its DIEs are written behind the unit and then moved. */
	struct sonde_buf *info = &w.sections[DW_INFO], *types = &w.sections[DW_TYPES];
	size_t start = info->len;
	dw_die(&w, DW_TAG_type_unit, 1, 0);
	size_t type_at = info->len - start;
	dw_die(&w, DW_TAG_structure_type, 0, DW_AT_name, DW_FORM_string, DW_AT_byte_size,
		DW_FORM_data1, 0);
	dw_string(&w, "in_types");
	dw_u8(&w, 40);
	dw_end(&w);
	size_t len = info->len - start, header_bytes = 4 + 2 + 4 + 1 + 8 + 4;
	dw_word(types, header_bytes - 4 + len, 4);
	dw_word(types, 4, 2);
	dw_word(types, 0, 4);
	dw_word(types, 8, 1);
	dw_word(types, 0x1122334455667788, 8);
	dw_word(types, header_bytes + type_at, 4);
	sonde_buf_add(types, info->data + start, len);
	info->len = start;
	REQUIRE_OK(open_dw(&w, DW_ZLIB, &image, &notes, &dwarf));
	const struct sonde_dwarf_type *type = sonde_dwarf_type(dwarf, pointer);
	REQUIRE(type);
	type = sonde_dwarf_type(dwarf, type->elem);
	REQUIRE(type);
	CHECK_STR(type->name, "in_types");
	CHECK_EQ(type->size_bytes, 40);
	CHECK(type == sonde_dwarf_type_find(dwarf, "in_types"));
	size_t n;
	sonde_dwarf_types(dwarf, &n);
	CHECK_EQ(n, 2);
	CHECK_EQ(notes.entries.n, 0);
}

/* Cycles: typedef of itself, const of itself, array of itself; and a size that overflows. */
static void cycles_end(void)
{
	FIXTURE;
	dw_unit(&w, 4);
	dw_die(&w, DW_TAG_compile_unit, 1, 0);
	uint32_t typedef_ = dw_die(&w, DW_TAG_typedef, 0, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, typedef_);
	uint32_t const_ = dw_die(&w, DW_TAG_const_type, 0, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, const_);
	uint32_t array = dw_die(&w, DW_TAG_array_type, 1, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, array);
	dw_die(&w, DW_TAG_subrange_type, 0, DW_AT_count, DW_FORM_data1, 0);
	dw_u8(&w, 2);
	dw_end(&w);
	uint32_t base = dw_die(&w, DW_TAG_base_type, 0, DW_AT_byte_size, DW_FORM_data8, 0);
	dw_u64(&w, 1ull << 40);
	uint32_t huge = dw_die(&w, DW_TAG_array_type, 1, DW_AT_type, DW_FORM_ref4, 0);
	dw_u32(&w, base);
	dw_die(&w, DW_TAG_subrange_type, 0, DW_AT_count, DW_FORM_data8, 0);
	dw_u64(&w, 1ull << 40);
	dw_end(&w);
	/* An anonymous member of its own type, twice: looking a name up must not branch for ever. */
	uint32_t nest = dw_die(&w, DW_TAG_structure_type, 1, DW_AT_byte_size, DW_FORM_data1, 0);
	dw_u8(&w, 8);
	for (int i = 0; i < 4; i++) {
		dw_die(&w, DW_TAG_member, 0, DW_AT_type, DW_FORM_ref4, 0);
		dw_u32(&w, nest);
	}
	dw_end(&w);
	uint32_t chain[100];
	for (int i = 0; i < 100; i++) {
		chain[i] = dw_die(&w, DW_TAG_typedef, 0, DW_AT_type, DW_FORM_ref4, 0);
		dw_u32(&w, i ? chain[i - 1] : base);
	}
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	const struct sonde_dwarf_type *type = sonde_dwarf_type(dwarf, typedef_);
	REQUIRE(type);
	CHECK_EQ(type->size_bytes, 0);
	CHECK(!sonde_dwarf_type_bare(dwarf, typedef_));
	CHECK(!sonde_dwarf_type(dwarf, const_));
	REQUIRE((type = sonde_dwarf_type(dwarf, array)));
	CHECK_EQ(type->size_bytes, 0);
	REQUIRE((type = sonde_dwarf_type(dwarf, huge)));
	CHECK_EQ(type->size_bytes, 0);
	REQUIRE((type = sonde_dwarf_type(dwarf, nest)));
	CHECK(!sonde_dwarf_member_find(dwarf, type, "x", NULL));
	CHECK(sonde_dwarf_type_bare(dwarf, chain[40]));
	CHECK(!sonde_dwarf_type_bare(dwarf, chain[99]));
	CHECK(count_notes(&notes, "DWARF type damaged") >= 5);
}

static void damaged_units(void)
{
	FIXTURE;
	dw_go_unit(&w, 4, "main", 0);
	struct ids id = put_types(&w);
	dw_end(&w);
	dw_unit_end(&w);
	/* A second unit that promises more than there is. */
	dw_u32(&w, 0x1000);
	dw_u16(&w, 4);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	check_types(dwarf, id);
	CHECK_EQ(count_notes(&notes, "DWARF unit damaged"), 1);
	/* Ids that lead nowhere, into a header, into the middle of a DIE, and to a DIE that is no type. */
	CHECK(!sonde_dwarf_type(dwarf, 1));
	CHECK(!sonde_dwarf_type(dwarf, UINT64_MAX));
	CHECK(!sonde_dwarf_type(dwarf, 1ull << 55 | 16));
	size_t n;
	CHECK(!sonde_dwarf_type(dwarf, sonde_dwarf_units(dwarf, &n)[0].id));
	for (uint64_t i = 0; i < image.len; i++)
		sonde_dwarf_type(dwarf, i);
	check_types(dwarf, id);
}

static void sibling_loops_end(void)
{
	FIXTURE;
	dw_unit(&w, 4);
	dw_die(&w, DW_TAG_compile_unit, 1, 0);
	uint32_t first = dw_die(&w, DW_TAG_structure_type, 1, DW_AT_sibling, DW_FORM_ref4, 0);
	dw_u32(&w, first);
	dw_die(&w, DW_TAG_member, 1, DW_AT_sibling, DW_FORM_ref4, 0);
	dw_u32(&w, first);
	dw_end(&w);
	dw_end(&w);
	dw_end(&w);
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	size_t n;
	sonde_dwarf_types(dwarf, &n);
	CHECK_EQ(n, 1);
	CHECK(sonde_dwarf_type(dwarf, first));
	CHECK(!sonde_dwarf_function_at(dwarf, 0x1000));
	CHECK_EQ(count_notes(&notes, "DWARF unit damaged"), 1);
}

/* A name without an end costs no more than its cap, and is none. */
static void endless_names(void)
{
	FIXTURE;
	dw_unit(&w, 4);
	dw_die(&w, DW_TAG_compile_unit, 1, 0);
	uint32_t id = dw_die(&w, DW_TAG_base_type, 0, DW_AT_byte_size, DW_FORM_data1, DW_AT_name,
		DW_FORM_string, 0);
	dw_u8(&w, 4);
	for (int i = 0; i < 70000; i++)
		dw_u8(&w, 'x');
	dw_unit_end(&w);
	REQUIRE_OK(open_dw(&w, DW_PLAIN, &image, &notes, &dwarf));
	size_t n;
	sonde_dwarf_types(dwarf, &n);
	const struct sonde_dwarf_type *type = sonde_dwarf_type(dwarf, id);
	CHECK(!type || !*type->name);
	CHECK(notes.entries.n > 0);
}

int main(void)
{
	RUN(go_types);
	RUN(compressed_sections);
	RUN(damaged_compression);
	RUN(unknown_compression);
	RUN(not_dwarf);
	RUN(declarations_are_no_definitions);
	RUN(c_types);
	RUN(constants_and_globals);
	RUN(type_units);
	RUN(cycles_end);
	RUN(damaged_units);
	RUN(sibling_loops_end);
	RUN(endless_names);
	return tap_end();
}
