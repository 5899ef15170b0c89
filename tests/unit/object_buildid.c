#include "object/buildid.h"

#include "build.h"
#include "tap.h"

static const uint8_t id20[20] = {
	0xde, 0xad, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 0xff};

static void found_by_segment_and_by_section(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, b = {0};
	build_gobuildid_note(&notes, "aa/bb/cc/dd");
	build_buildid_note(&notes, id20, sizeof(id20));
	for (int by_section = 0; by_section < 2; by_section++) {
		struct build_elf e = {.type = ET_EXEC};
		if (by_section)
			build_section(&e, ".note.go.buildid", SHT_NOTE, notes.data, notes.len);
		else
			build_segment(&e, PT_NOTE, PF_R, 0, notes.data, notes.len);
		build_elf_write(&e, &b);
		sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
		REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
		struct sonde_buildid id;
		char text[SONDE_GOBUILDID_BYTES], hex[SONDE_BUILDID_HEX_BYTES];
		CHECK(sonde_buildid_of_elf(elf, &id));
		CHECK_STR(sonde_buildid_hex(&id, hex), "dead0102030405060708090a0b0c0d0e0f1011ff");
		CHECK(sonde_gobuildid_of_elf(elf, text));
		CHECK_STR(text, "aa/bb/cc/dd");
	}
}

static void absent_or_odd(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, b = {0};
	uint8_t big[65] = {1};
	build_buildid_note(&notes, big, sizeof(big));
	build_buildid_note(&notes, NULL, 0);
	build_note(&notes, "GNU", 4, 1, "abi", 3);
	char longest[300];
	memset(longest, 'x', sizeof(longest) - 1);
	longest[299] = 0;
	build_gobuildid_note(&notes, longest);
	struct build_elf e = {.type = ET_EXEC};
	build_segment(&e, PT_NOTE, PF_R, 0, notes.data, notes.len);
	build_elf_write(&e, &b);
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	REQUIRE_OK(sonde_elf_open_bytes(b.data, b.len, "x", &elf));
	struct sonde_buildid id = {.len = 3};
	char text[SONDE_GOBUILDID_BYTES] = "old";
	CHECK(!sonde_buildid_of_elf(elf, &id) && !id.len);
	CHECK(!sonde_gobuildid_of_elf(elf, text) && !text[0]);
	CHECK(!sonde_buildid_equal(&id, &id));
}

static void control_characters_do_not_pass(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0};
	build_gobuildid_note(&notes, "a\x1b[31m/b\n");
	char text[SONDE_GOBUILDID_BYTES];
	CHECK(sonde_gobuildid_of_notes(notes.data, notes.len, 4, false, text));
	CHECK_STR(text, "a?[31m/b?");
}

static void hex_text(void)
{
	struct sonde_buildid id;
	char hex[SONDE_BUILDID_HEX_BYTES];
	CHECK(sonde_buildid_parse("00AbcDef09", &id) && id.len == 5);
	CHECK_STR(sonde_buildid_hex(&id, hex), "00abcdef09");
	CHECK(!sonde_buildid_parse("", &id));
	CHECK(!sonde_buildid_parse("abc", &id));
	CHECK(!sonde_buildid_parse("zz", &id));
	CHECK(!sonde_buildid_parse("0x", &id));
	char longest[2 * 65 + 1];
	memset(longest, 'a', sizeof(longest) - 1);
	longest[sizeof(longest) - 1] = 0;
	CHECK(!sonde_buildid_parse(longest, &id));
	longest[2 * 64] = 0;
	CHECK(sonde_buildid_parse(longest, &id) && id.len == 64);
}

int main(void)
{
	RUN(found_by_segment_and_by_section);
	RUN(absent_or_odd);
	RUN(control_characters_do_not_pass);
	RUN(hex_text);
	return tap_end();
}
