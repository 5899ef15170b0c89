#include "object/symtab.h"

#include "build.h"
#include "tap.h"

struct sym {
	const char *name;
	uint64_t addr, size;
	uint8_t type, binding;
	uint16_t section;
};

static void write_symbols(struct sonde_buf *symbols, struct sonde_buf *names, unsigned w,
	const struct sym *s, size_t n)
{
	build_u8(names, 0);
	build_zeros(symbols, w == 8 ? 24 : 16);
	for (size_t i = 0; i < n; i++) {
		build_u32(symbols, (uint32_t)names->len);
		sonde_buf_add(names, s[i].name, strlen(s[i].name) + 1);
		uint8_t info = (uint8_t)(s[i].binding << 4 | s[i].type);
		if (w == 8) {
			build_u8(symbols, info);
			build_u8(symbols, 0);
			build_u16(symbols, s[i].section);
			build_u64(symbols, s[i].addr);
			build_u64(symbols, s[i].size);
		} else {
			build_u32(symbols, (uint32_t)s[i].addr);
			build_u32(symbols, (uint32_t)s[i].size);
			build_u8(symbols, info);
			build_u8(symbols, 0);
			build_u16(symbols, s[i].section);
		}
	}
}

static const struct sym some[] = {
	{"outer", 0x1000, 0x100, STT_FUNC, STB_GLOBAL, 1},
	{"inner", 0x1010, 0x10, STT_FUNC, STB_LOCAL, 1},
	{"label", 0x1000, 0, STT_NOTYPE, STB_LOCAL, 1},
	{"asm", 0x2000, 0, STT_NOTYPE, STB_GLOBAL, 1},
	{"twice", 0x3000, 8, STT_OBJECT, STB_LOCAL, 1},
	{"twice", 0x4000, 8, STT_OBJECT, STB_GLOBAL, 1},
	{"undefined", 0, 0, STT_FUNC, STB_GLOBAL, SHN_UNDEF},
	{"tls", 0x10, 8, STT_TLS, STB_GLOBAL, 1},
	{"file.c", 0, 0, STT_FILE, STB_LOCAL, SHN_ABS},
	{"huge", 0x5000, UINT64_MAX, STT_OBJECT, STB_GLOBAL, 1},
};

static const char *near(struct sonde_symtab *t, uint64_t addr)
{
	const struct sonde_symbol *s = sonde_symtab_nearest(t, addr);
	return s ? s->name : "none";
}

static void finds(void)
{
	for (unsigned w = 4; w <= 8; w += 4) {
		sonde_cleanup(sonde_buf) struct sonde_buf symbols = {0}, names = {0}, b = {0};
		write_symbols(&symbols, &names, w, some, 9 + (w == 8));
		struct build_elf e = {.type = ET_EXEC, .word_bytes = w};
		build_section(&e, ".symtab", SHT_SYMTAB, symbols.data, symbols.len)->link = 2;
		build_section(&e, ".strtab", SHT_STRTAB, names.data, names.len);
		build_elf_write(&e, &b);
		sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
		sonde_cleanup(sonde_symtab) struct sonde_symtab *t = NULL;
		REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
		REQUIRE_OK(sonde_symtab_open(elf, &t));
		CHECK_EQ(sonde_symtab_count(t), 6 + (w == 8));
		const struct sonde_symbol *s = sonde_symtab_find(t, "twice");
		REQUIRE(s);
		CHECK_EQ(s->addr, 0x4000);
		CHECK(!sonde_symtab_find(t, "undefined"));
		CHECK(!sonde_symtab_find(t, "tls"));
		CHECK_STR(near(t, 0xfff), "none");
		CHECK_STR(near(t, 0x1000), "outer");
		CHECK_STR(near(t, 0x1018), "inner");
		CHECK_STR(near(t, 0x1020), "outer");
		CHECK_STR(near(t, 0x1100), "none");
		CHECK_STR(near(t, 0x2fff), "asm");
		CHECK_STR(near(t, 0x3008), "none");
		if (w == 8)
			CHECK_STR(near(t, UINT64_MAX - 0x10), "huge");
		CHECK(sonde_symtab_find(t, "outer") == sonde_symtab_nearest(t, 0x1000));
		CHECK_EQ(sonde_symtab_at(t, 0)->addr, 0x1000);
		CHECK(!sonde_symtab_at(t, 99));
	}
}

static void damaged_or_absent(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf symbols = {0}, names = {0}, b = {0};
	write_symbols(&symbols, &names, 8, some, 4);
	build_u32(&symbols, UINT32_MAX); /* a name outside, and half a symbol */
	build_u64(&symbols, 0);
	struct build_elf e = {.type = ET_EXEC};
	build_section(&e, ".symtab", SHT_SYMTAB, symbols.data, symbols.len)->link = 3;
	build_section(&e, ".dynsym", SHT_DYNSYM, symbols.data, symbols.len)->link = 77;
	build_section(&e, ".strtab", SHT_STRTAB, names.data, names.len);
	build_section(&e, ".symtab2", SHT_SYMTAB, "", 1)->offset = UINT64_MAX;
	build_elf_write(&e, &b);
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_symtab) struct sonde_symtab *t = NULL;
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	REQUIRE_OK(sonde_symtab_open(elf, &t));
	CHECK_EQ(sonde_symtab_count(t), 4);
	struct build_elf none = {.type = ET_EXEC};
	build_elf_write(&none, &b);
	sonde_symtab_free(sonde_take(t));
	sonde_elf_free(sonde_take(elf));
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	REQUIRE_OK(sonde_symtab_open(elf, &t));
	CHECK(!sonde_symtab_find(t, "x") && !sonde_symtab_nearest(t, 0) && !sonde_symtab_at(t, 0));
}

int main(void)
{
	RUN(finds);
	RUN(damaged_or_absent);
	return tap_end();
}
