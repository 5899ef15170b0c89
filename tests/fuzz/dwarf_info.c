/*
 * DWARF sections: everything that the wrapper offers is asked of them. An input is an ELF file, or, so that mutations
 * spare its headers, a list of (byte: section number as in build_dwarf.h, two bytes: length, contents).
 */
#include <stdlib.h>
#include "object/lines.h"
#include "../build_dwarf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void touch(const char *s)
{
	if (!s)
		abort();
	for (; *s; s++)
		__asm__ volatile("" : : "r"(*s));
}

static void ask_types(struct sonde_dwarf *dwarf)
{
	size_t n;
	const uint64_t *ids = sonde_dwarf_types(dwarf, &n);
	for (size_t i = 0; i < n; i++) {
		const struct sonde_dwarf_type *type = sonde_dwarf_type(dwarf, ids[i]);
		if (!type)
			continue;
		touch(type->name);
		for (size_t k = 0; k < type->n_members; k++)
			touch(type->members[k].name);
		(void)sonde_dwarf_type_bare(dwarf, type->elem);
		(void)sonde_dwarf_member_find(dwarf, type, "x", NULL);
	}
}

static void ask_address(struct sonde_dwarf *dwarf, struct sonde_lines *lines, uint64_t pc)
{
	sonde_cleanup(sonde_dwarf_variables) struct sonde_dwarf_variables variables = {0};
	struct sonde_line line;
	struct sonde_line_frame frames[8];
	const uint8_t *expr;
	size_t len;
	const struct sonde_dwarf_function *function = sonde_dwarf_function_at(dwarf, pc);
	if (function)
		touch(function->name);
	sonde_error_free(sonde_dwarf_variables_at(dwarf, pc, &variables));
	sonde_vec_foreach (variable, &variables) {
		struct sonde_location_context context = {.unit = variable->unit};
		struct sonde_location_piece pieces[4];
		size_t n;
		touch(variable->name);
		touch(variable->function);
		(void)sonde_location_evaluate(
			variable->expr, variable->expr_len, &context, pieces, 4, &n);
	}
	(void)sonde_dwarf_frame_base(dwarf, pc, &expr, &len, NULL);
	if (sonde_lines_find(lines, pc, &line))
		touch(line.file);
	size_t n = sonde_lines_frames(lines, pc, frames, 8);
	for (size_t i = 0; i < n && i < 8; i++) {
		touch(frames[i].function);
		touch(frames[i].file);
	}
}

static void ask(const void *data, size_t size)
{
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	sonde_cleanup(sonde_dwarf) struct sonde_dwarf *dwarf = NULL;
	sonde_cleanup(sonde_lines) struct sonde_lines *lines = NULL;
	sonde_cleanup(sonde_error) struct sonde_error *err =
		sonde_dwarf_open_image(data, size, "fuzz", &notes, &dwarf);
	if (err || sonde_lines_new(dwarf, &lines))
		return;
	int64_t value;
	size_t n;
	ask_types(dwarf);
	(void)sonde_dwarf_constant(dwarf, "none", &value);
	(void)sonde_dwarf_constants(dwarf, &n);
	const struct sonde_dwarf_global *globals = sonde_dwarf_globals(dwarf, &n);
	for (size_t i = 0; i < n; i++)
		touch(globals[i].name);
	(void)sonde_dwarf_type_by_runtime(dwarf, 0x1000);
	(void)sonde_dwarf_is_go(dwarf, NULL);
	(void)sonde_dwarf_function_find(dwarf, "main.f");
	/* The seeds' code lies here. */
	static const uint64_t pcs[] = {0, 0x1004, 0x1014, 0x1044, 0x1054, 0x10ff, 0x1104, 0x6000};
	for (size_t i = 0; i < sizeof(pcs) / sizeof(pcs[0]); i++)
		ask_address(dwarf, lines, pcs[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size >= 4 && !memcmp(data, ELFMAG, SELFMAG)) {
		ask(data, size);
		return 0;
	}
	sonde_cleanup(dw) struct dw w = {0};
	sonde_cleanup(sonde_buf) struct sonde_buf image = {0};
	struct sonde_cursor c = sonde_cursor_over(data, size);
	while (sonde_cursor_left(&c)) {
		unsigned section = sonde_cursor_u8(&c);
		size_t len = sonde_cursor_u16(&c);
		len = sonde_min(len, sonde_cursor_left(&c));
		sonde_buf_add(
			&w.sections[section % DW_N_SECTIONS], sonde_cursor_bytes(&c, len), len);
	}
	dw_elf(&w, DW_PLAIN, &image);
	ask(image.data, image.len);
	return 0;
}
