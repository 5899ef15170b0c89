#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "object/debugfile.h"
#include "output/report.h"
#include "profile/report.h"
#include "unwind/table.h"

/* --- rules as text, in the notation of readelf -wF --- */

struct texts {
	char cfa[48], fp[48], ra[48];
	char note[256];
};

static const char *reg_plus(uint16_t machine, uint32_t reg, int32_t offset, char *to, size_t n)
{
	char name[16];
	const char *reg_name = sonde_cfi_register_name(machine, reg, name);
	snprintf(to, n, "%s%+" PRId32, reg_name, offset);
	return to;
}

static void note(struct texts *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void note(struct texts *t, const char *fmt, ...)
{
	size_t len = strlen(t->note);
	if (len && len + 2 < sizeof(t->note)) {
		memcpy(t->note + len, ", ", 3);
		len += 2;
	}
	va_list args;
	va_start(args, fmt);
	vsnprintf(t->note + len, sizeof(t->note) - len, fmt, args);
	va_end(args);
}

static void cfa_text(uint16_t machine, const struct sonde_unwind_rule *r, struct texts *t)
{
	char sum[48];
	reg_plus(machine, sonde_unwind_cfa_reg(r), r->cfa_offset, sum, sizeof(sum));
	snprintf(t->cfa, sizeof(t->cfa), "exp");
	switch (sonde_unwind_cfa_kind(r)) {
	case SONDE_UNWIND_CFA_REG:
		snprintf(t->cfa, sizeof(t->cfa), "%s", sum);
		break;
	case SONDE_UNWIND_CFA_LOADED:
		if (sonde_unwind_cfa_add(r))
			note(t, "CFA is *(%s)%+" PRId32, sum, 8 * sonde_unwind_cfa_add(r));
		else
			note(t, "CFA is *(%s)", sum);
		break;
	case SONDE_UNWIND_CFA_PLT:
		note(t, "CFA is %s, 8 more where (pc & 15) >= %" PRId32, sum,
			sonde_unwind_cfa_add(r));
		break;
	case SONDE_UNWIND_CFA_UNSUPPORTED:
		if (r->cfa_offset != SONDE_UNWIND_EXPRESSION)
			t->cfa[0] = 0;
		note(t, "unsupported: %s",
			sonde_unwind_unsupported_name(
				(enum sonde_unwind_unsupported)r->cfa_offset));
		break;
	default:
		t->cfa[0] = 0;
		note(t, "no information");
	}
}

static void value_text(uint16_t machine, uint32_t kind, uint32_t reg, int32_t offset,
	const char *what, struct texts *t, char to[48])
{
	char sum[48], name[16];
	reg_plus(machine, reg, offset, sum, sizeof(sum));
	switch (kind) {
	case SONDE_UNWIND_CFA_MEMORY:
		snprintf(to, 48, "c%+" PRId32, offset);
		break;
	case SONDE_UNWIND_CFA_VALUE:
		snprintf(to, 48, "v%+" PRId32, offset);
		break;
	case SONDE_UNWIND_REG_MEMORY:
		snprintf(to, 48, "exp");
		note(t, "%s is at %s", what, sum);
		break;
	case SONDE_UNWIND_REG_VALUE:
		snprintf(to, 48, "%s",
			offset ? "vexp" : sonde_cfi_register_name(machine, reg, name));
		if (offset)
			note(t, "%s is %s", what, sum);
		break;
	case SONDE_UNWIND_UNKNOWN:
		snprintf(to, 48, "exp");
		note(t, "%s cannot be told", what);
		break;
	default:
		snprintf(to, 48, "u");
	}
}

static void rule_texts(uint16_t machine, const struct sonde_unwind_rule *r, struct texts *t)
{
	memset(t, 0, sizeof(*t));
	cfa_text(machine, r, t);
	uint32_t kind = sonde_unwind_cfa_kind(r), flags = sonde_unwind_flags(r);
	if (kind == SONDE_UNWIND_CFA_NONE || kind == SONDE_UNWIND_CFA_UNSUPPORTED)
		return;
	value_text(machine, sonde_unwind_fp_kind(r), sonde_unwind_fp_reg(r), r->fp_offset, "fp", t,
		t->fp);
	value_text(machine, sonde_unwind_ra_kind(r), sonde_unwind_ra_reg(r), r->ra_offset, "ra", t,
		t->ra);
	if (sonde_unwind_ra_kind(r) == SONDE_UNWIND_UNDEFINED)
		note(t, "bottom of the stack");
	if (flags & SONDE_UNWIND_SIGNAL_FRAME)
		note(t, "signal frame");
	if (flags & SONDE_UNWIND_RA_SIGNED)
		note(t, flags & SONDE_UNWIND_KEY_B ? "ra signed by key B" : "ra signed");
}

/* What programs ask for without reading notes; NULL: an ordinary row. */
static const char *kind_of(const struct sonde_unwind_rule *r)
{
	if (sonde_unwind_cfa_kind(r) == SONDE_UNWIND_CFA_NONE)
		return "gap";
	if (sonde_unwind_cfa_kind(r) == SONDE_UNWIND_CFA_UNSUPPORTED)
		return "unsupported";
	if (sonde_unwind_ra_kind(r) == SONDE_UNWIND_UNDEFINED)
		return "bottom";
	return sonde_unwind_flags(r) & SONDE_UNWIND_SIGNAL_FRAME ? "signal" : NULL;
}

static struct sonde_value text_or_none(const char *text)
{
	return sonde_value_text(*text ? text : NULL);
}

/* The end of the last row, a gap, is not an address. */
static struct sonde_value end_value(const struct sonde_unwind_entry *e)
{
	return e->end == UINT64_MAX ? sonde_value_none() : sonde_value_addr(e->end);
}

/* --- parts of the report --- */

static void report_file(
	struct sonde_report *out, const char *path, const struct sonde_unwind_header *h)
{
	char text[32], hex[2 * SONDE_UNWIND_MAX_BUILDID_BYTES + 1] = "";
	for (uint32_t i = 0; i < h->n_buildid_bytes; i++)
		snprintf(hex + 2 * i, 3, "%02x", h->buildid[i]);
	sonde_report_field(out, "file", "file", sonde_value_text(path));
	sonde_report_field(out, "build_id", "build id", text_or_none(hex));
	sonde_report_field(out, "machine", "machine",
		sonde_value_text(sonde_elf_machine_name(h->machine, text)));
	sonde_report_field(out, "base_addr", "base address", sonde_value_addr(h->base_addr));
}

/* "refused_fdes": {"unknown instruction": 3}: only what there is, and the sum. */
static void report_reasons(struct sonde_report *out, const char *key, const char *title,
	const char *total_label, const uint64_t *counts, unsigned first, unsigned n,
	const char *(*name)(unsigned))
{
	static const struct sonde_column columns[] = {
		{"count", "COUNT", .right = true},
		{"reason", "REASON"},
	};
	uint64_t sum = 0;
	for (unsigned i = first; i < n; i++)
		sum += counts[i];
	char total_key[64];
	snprintf(total_key, sizeof(total_key), "n_%s", key);
	sonde_report_field(out, total_key, total_label, sonde_value_count(sum));
	if (!sum && !sonde_report_json(out))
		return;
	sonde_report_table_begin(out, key, title, columns, SONDE_ARRAY_LEN(columns));
	for (unsigned i = first; i < n; i++)
		if (counts[i])
			sonde_report_row(
				out, sonde_value_count(counts[i]), sonde_value_text(name(i)));
	sonde_report_table_end(out);
	sonde_report_blank(out);
}

static const char *refused_name(unsigned i)
{
	return sonde_cfi_reason_name((enum sonde_cfi_reason)i);
}

static const char *unsupported_name(unsigned i)
{
	return sonde_unwind_unsupported_name((enum sonde_unwind_unsupported)i);
}

static void report_statistics(struct sonde_report *out, const struct sonde_unwind_table *t)
{
	const struct sonde_unwind_header *h = &t->header;
	const struct sonde_unwind_counts *c = &t->counts;
	char per_row[32];
	snprintf(per_row, sizeof(per_row), "%.3f",
		h->n_rows ? (double)h->image_bytes / h->n_rows : 0);
	sonde_report_field(out, "n_fdes", "FDEs", sonde_value_count(c->cfi.n_fdes));
	sonde_report_field(out, "n_cies", "CIEs", sonde_value_count(c->cfi.n_cies));
	sonde_report_field(out, "n_fdes_cut", "FDEs cut short", sonde_value_count(c->cfi.n_cut));
	sonde_report_field(out, "n_fdes_out_of_reach", "FDEs out of reach",
		sonde_value_count(c->n_outside_fdes));
	sonde_report_field(out, "n_rows_read", "rows read", sonde_value_count(c->n_rows_read));
	sonde_report_field(out, "n_rows", "rows", sonde_value_count(h->n_rows));
	sonde_report_field(out, "n_rules", "rules", sonde_value_count(h->n_rules));
	sonde_report_field(out, "n_pages", "pages of text", sonde_value_count(h->n_pages));
	sonde_report_field(out, "bytes", "bytes", sonde_value_bytes(h->image_bytes));
	sonde_report_field(out, NULL, "bytes per row", text_or_none(h->n_rows ? per_row : ""));
	if (sonde_report_json(out)) /* a quotient with six decimals, null without rows */
		sonde_json_share(
			sonde_report_json(out), "bytes_per_row", h->image_bytes, h->n_rows);
	sonde_report_field(out, "n_gap_rows", "gaps", sonde_value_count(c->n_gap_rows));
	sonde_report_field(
		out, "n_bottom_rows", "bottom of stack", sonde_value_count(c->n_bottom_rows));
	sonde_report_field(
		out, "n_signal_rows", "signal frames", sonde_value_count(c->n_signal_rows));
	sonde_report_field(out, "n_other_register_rows", "other CFA register",
		sonde_value_count(c->n_other_register_rows));
	sonde_report_field(out, "n_unknown_fp_rows", "fp cannot be told",
		sonde_value_count(c->n_unknown_fp_rows));
	report_reasons(out, "unsupported_rows", NULL, "unsupported rows", c->unsupported, 0,
		SONDE_UNWIND_N_UNSUPPORTED, unsupported_name);
	report_reasons(out, "refused_fdes", NULL, "refused FDEs", c->cfi.refused, 1,
		SONDE_CFI_N_REASONS, refused_name);
}

static void report_rows(struct sonde_report *out, const struct sonde_unwind_table *t)
{
	static const struct sonde_column columns[] = {
		{"addr", "ADDR", .right = true},
		{"end", "END", .right = true},
		{"cfa", "CFA"},
		{"fp", "FP"},
		{"ra", "RA"},
		{"rule", "RULE", .right = true},
		{"note", "NOTE"},
		{"kind", NULL},
	};
	struct sonde_unwind_cursor c = {.table = t};
	struct sonde_unwind_entry e;
	struct texts text;
	sonde_report_blank(out);
	sonde_report_table_begin(out, "rows", NULL, columns, SONDE_ARRAY_LEN(columns));
	while (!sonde_report_failed(out) && sonde_unwind_table_next(&c, &e)) {
		rule_texts(t->header.machine, &e.rule, &text);
		sonde_report_row(out, sonde_value_addr(e.start), end_value(&e),
			text_or_none(text.cfa), text_or_none(text.fp), text_or_none(text.ra),
			sonde_value_count(e.rule_number), text_or_none(text.note),
			sonde_value_text(kind_of(&e.rule)));
	}
	sonde_report_table_end(out);
}

static void report_raw_value(struct sonde_report *out, const char *key, const char *label,
	uint16_t machine, uint32_t kind, uint32_t reg, int32_t offset)
{
	static const char *const kinds[] = {
		[SONDE_UNWIND_SAME] = "same",
		[SONDE_UNWIND_CFA_MEMORY] = "at-cfa",
		[SONDE_UNWIND_CFA_VALUE] = "cfa",
		[SONDE_UNWIND_REG_MEMORY] = "at-register",
		[SONDE_UNWIND_REG_VALUE] = "register",
		[SONDE_UNWIND_UNDEFINED] = "undefined",
		[SONDE_UNWIND_UNKNOWN] = "unknown",
	};
	char name[16];
	bool by_reg = kind == SONDE_UNWIND_REG_MEMORY || kind == SONDE_UNWIND_REG_VALUE;
	sonde_report_section_begin(out, key, label);
	sonde_report_field(out, "kind", "kind",
		sonde_value_text(kind < SONDE_ARRAY_LEN(kinds) ? kinds[kind] : NULL));
	sonde_report_field(out, "register", by_reg ? "register" : NULL,
		sonde_value_text(by_reg ? sonde_cfi_register_name(machine, reg, name) : NULL));
	sonde_report_field(out, "offset", "offset", sonde_value_signed(offset));
	sonde_report_section_end(out);
}

static void report_raw_rule(
	struct sonde_report *out, uint16_t machine, const struct sonde_unwind_rule *r)
{
	static const char *const cfas[] = {
		[SONDE_UNWIND_CFA_NONE] = "none",
		[SONDE_UNWIND_CFA_REG] = "register",
		[SONDE_UNWIND_CFA_LOADED] = "loaded",
		[SONDE_UNWIND_CFA_PLT] = "plt",
		[SONDE_UNWIND_CFA_UNSUPPORTED] = "unsupported",
	};
	char name[16], bits[16];
	uint32_t kind = sonde_unwind_cfa_kind(r), flags = sonde_unwind_flags(r);
	bool by_reg = kind != SONDE_UNWIND_CFA_NONE && kind != SONDE_UNWIND_CFA_UNSUPPORTED;
	snprintf(bits, sizeof(bits), "0x%08" PRIx32, r->bits);
	sonde_report_section_begin(out, "raw", "raw rule:");
	sonde_report_field(out, "bits", "bits", sonde_value_text(bits));
	sonde_report_section_begin(out, "cfa", "CFA:");
	sonde_report_field(out, "kind", "kind",
		sonde_value_text(kind < SONDE_ARRAY_LEN(cfas) ? cfas[kind] : NULL));
	sonde_report_field(out, "register", by_reg ? "register" : NULL,
		sonde_value_text(by_reg
				? sonde_cfi_register_name(machine, sonde_unwind_cfa_reg(r), name)
				: NULL));
	sonde_report_field(out, "offset", "offset", sonde_value_signed(r->cfa_offset));
	sonde_report_field(out, "add", "add", sonde_value_signed(sonde_unwind_cfa_add(r)));
	sonde_report_section_end(out);
	report_raw_value(out, "fp", "frame pointer:", machine, sonde_unwind_fp_kind(r),
		sonde_unwind_fp_reg(r), r->fp_offset);
	report_raw_value(out, "ra", "return address:", machine, sonde_unwind_ra_kind(r),
		sonde_unwind_ra_reg(r), r->ra_offset);
	sonde_report_field(out, "signal_frame", "signal frame",
		sonde_value_bool(flags & SONDE_UNWIND_SIGNAL_FRAME));
	sonde_report_field(
		out, "ra_signed", "ra signed", sonde_value_bool(flags & SONDE_UNWIND_RA_SIGNED));
	sonde_report_section_end(out);
}

static void report_row(
	struct sonde_report *out, uint64_t pc, uint16_t machine, const struct sonde_unwind_entry *e)
{
	struct texts text;
	rule_texts(machine, &e->rule, &text);
	sonde_report_blank(out);
	sonde_report_field(out, "pc", "pc", sonde_value_addr(pc));
	sonde_report_field(out, "addr", "row from", sonde_value_addr(e->start));
	sonde_report_field(out, "end", "to", end_value(e));
	sonde_report_field(out, "row", "row number", sonde_value_count(e->row));
	sonde_report_field(out, "rule", "rule number", sonde_value_count(e->rule_number));
	sonde_report_field(out, "cfa", "CFA", text_or_none(text.cfa));
	sonde_report_field(out, "fp", "fp", text_or_none(text.fp));
	sonde_report_field(out, "ra", "ra", text_or_none(text.ra));
	sonde_report_field(out, "note", text.note[0] ? "note" : NULL, text_or_none(text.note));
	sonde_report_field(out, "kind", NULL, sonde_value_text(kind_of(&e->rule)));
	sonde_report_blank(out);
	report_raw_rule(out, machine, &e->rule);
}

/* The file's table; a separate debug file adds to it where there is one. */
static struct sonde_error *open_table(const char *path,
	const struct sonde_profile_unwind_table_options *options, struct sonde_notes *notes,
	struct sonde_unwind_table **ret)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_elf) struct sonde_elf *debug = NULL;
	struct sonde_debugfile_options find = {
		.debug_dirs = options->debug_dirs, .notes = notes, .no_debuginfod = true};
	SONDE_TRY(sonde_elf_open(path, &elf));
	sonde_error_free(sonde_debugfile_open(elf, &find, &debug)); /* it need not be there */
	return sonde_error_wrap(sonde_unwind_table_of_elf(elf, debug, ret), "%s", path);
}

struct sonde_error *sonde_profile_report_unwind_table(const char *path,
	const struct sonde_profile_unwind_table_options *options, struct sonde_report *out)
{
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
	struct sonde_unwind_entry e;
	SONDE_TRY(open_table(path, options, &notes, &t));
	if (options->has_pc && !sonde_unwind_table_find(t, options->pc, &e))
		return sonde_error_new(
			SONDE_NOT_FOUND, "%s: no row covers 0x%" PRIx64, path, options->pc);
	sonde_report_begin(out, "profile.unwind-table", 1);
	report_file(out, path, &t->header);
	if (options->has_pc) {
		report_row(out, options->pc, t->header.machine, &e);
	} else {
		sonde_report_blank(out);
		report_statistics(out, t);
		if (!options->summary)
			report_rows(out, t);
	}
	return sonde_report_end(out, &notes);
}
