#include "object/cfi.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/varint.h"
#include "base/vec.h"
#include "object/cfi_internal.h"

SONDE_DEFINE_VEC(fde_vec, struct sonde_cfi_fde)
SONDE_DEFINE_VEC(cie_vec, struct sonde_cfi_cie)

/* DWARF's register numbers: System V ABI for x86-64, figure 3.36; DWARF for arm64, section 4.1. */
enum { X86_64_RBP = 6, X86_64_RA = 16, ARM64_X29 = 29, RADIX_BITS = 11 };

const char *sonde_cfi_reason_name(enum sonde_cfi_reason reason)
{
	static const char *const names[SONDE_CFI_N_REASONS] = {
		[SONDE_CFI_FINE] = "fine",
		[SONDE_CFI_BAD_RECORD] = "damaged record",
		[SONDE_CFI_BAD_CIE] = "names no CIE",
		[SONDE_CFI_BAD_VERSION] = "unknown version",
		[SONDE_CFI_BAD_AUGMENTATION] = "unknown augmentation",
		[SONDE_CFI_BAD_ENCODING] = "bad pointer encoding",
		[SONDE_CFI_BAD_OPCODE] = "unknown instruction",
		[SONDE_CFI_BAD_OPERAND] = "damaged instruction",
		[SONDE_CFI_TOO_DEEP] = "unbalanced or too many remembered states",
		[SONDE_CFI_DISCARDED] = "of discarded code",
		[SONDE_CFI_EMPTY] = "empty",
		[SONDE_CFI_OUTSIDE] = "outside the code",
		[SONDE_CFI_DUPLICATE] = "starts where another one does",
		[SONDE_CFI_COVERED] = "covered by .eh_frame",
	};
	return reason < SONDE_CFI_N_REASONS ? names[reason] : "unknown";
}

const char *sonde_cfi_register_name(uint16_t machine, unsigned reg, char text[16])
{
	static const char *const x86_64[] = {"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "rip"};
	if (machine == EM_X86_64 && reg < SONDE_ARRAY_LEN(x86_64))
		return x86_64[reg];
	if (machine == EM_AARCH64 && reg == 31)
		return "sp";
	snprintf(text, 16, machine == EM_AARCH64 && reg < 31 ? "x%u" : "r%u", reg);
	return text;
}

/* A number of the format, without base. */
static bool read_number(struct sonde_cursor *c, uint8_t format, uint8_t addr_bytes, uint64_t *ret)
{
	switch (format) {
	case PE_ABSPTR:
	case PE_SIGNED:
		*ret = addr_bytes == 4 && format == PE_SIGNED
			? (uint64_t)(int32_t)sonde_cursor_u32(c)
			: sonde_cursor_word(c, addr_bytes);
		break;
	case PE_ULEB128:
		*ret = sonde_varint_u64(c);
		break;
	case PE_SLEB128:
		*ret = (uint64_t)sonde_varint_sleb(c);
		break;
	case PE_UDATA2:
		*ret = sonde_cursor_u16(c);
		break;
	case PE_SDATA2:
		*ret = (uint64_t)(int16_t)sonde_cursor_u16(c);
		break;
	case PE_UDATA4:
		*ret = sonde_cursor_u32(c);
		break;
	case PE_SDATA4:
		*ret = (uint64_t)(int32_t)sonde_cursor_u32(c);
		break;
	case PE_UDATA8:
	case PE_SDATA8:
		*ret = sonde_cursor_u64(c);
		break;
	default:
		return false;
	}
	return !c->bad;
}

bool sonde_cfi_read_pointer(const struct sonde_cfi *cfi, const struct sonde_cfi_section *section,
	struct sonde_cursor *c, uint8_t encoding, uint8_t addr_bytes, uint64_t func, uint64_t *ret)
{
	if (encoding == PE_OMIT)
		return false;
	uint8_t base = encoding & PE_BASE;
	if (base == PE_ALIGNED) { /* the whole byte: an address, aligned in memory */
		uint64_t over = (section->addr + sonde_cursor_offset(c)) % addr_bytes;
		sonde_cursor_skip(c, over ? addr_bytes - over : 0);
		*ret = sonde_cursor_word(c, addr_bytes);
		return encoding == PE_ALIGNED && !c->bad;
	}
	uint64_t at = section->addr + sonde_cursor_offset(c), v;
	if (!read_number(c, encoding & PE_FORMAT, addr_bytes, &v))
		return false;
	/* 0 is no address, whatever it would be relative to: so do the unwinders of libgcc and LLVM. */
	if (v) {
		switch (base) {
		case 0:
			break;
		case PE_PCREL:
			v += at;
			break;
		case PE_TEXTREL:
			v += cfi->space.text_addr;
			break;
		case PE_DATAREL:
			v += cfi->space.data_addr;
			break;
		case PE_FUNCREL:
			v += func;
			break;
		default:
			return false;
		}
		if (encoding & PE_INDIRECT &&
			(!cfi->space.read_word || !cfi->space.read_word(cfi->space.ctx, v, &v)))
			return false;
	}
	*ret = v;
	return true;
}

/* --- records --- */

struct record {
	uint32_t offset, id_offset; /* in the section */
	bool long_form, is_cie, long_id;
	uint64_t id;
	struct sonde_cursor c; /* over the section up to the record's end; stands behind the id */
};

/*
 * The id is 8 bytes wide in the 64-bit form of .debug_frame. In .eh_frame the LSB says 4, assemblers write 8: a CIE's
 * id is 0, and behind it comes its version, which is not 0; an FDE's is as wide as that of the CIE that it names.
 */
static void read_id(const struct sonde_cfi_section *s, struct record *r)
{
	r->id_offset = (uint32_t)sonde_cursor_offset(&r->c);
	r->long_id = r->long_form;
	struct sonde_cursor peek = r->c;
	if (s->debug_frame) {
		r->id = r->long_form ? sonde_cursor_u64(&r->c) : sonde_cursor_u32(&r->c);
		r->is_cie = r->id == (r->long_form ? UINT64_MAX : UINT32_MAX);
		return;
	}
	uint64_t low = sonde_cursor_u32(&peek), high = sonde_cursor_u32(&peek);
	r->is_cie = !low;
	r->id = low;
	if (r->is_cie && high)
		r->long_id = false;
	/* The caller goes back where an FDE's CIE says otherwise. */
	sonde_cursor_skip(&r->c, r->long_id ? 8 : 4);
}

enum next { NEXT_RECORD, NEXT_END, NEXT_DAMAGED };

static enum next next_record(
	const struct sonde_cfi_section *s, struct sonde_cursor *c, struct record *ret)
{
	for (;;) {
		/* Less than a length is padding. */
		if (sonde_cursor_left(c) < 4)
			return NEXT_END;
		struct record r = {.offset = (uint32_t)sonde_cursor_offset(c)};
		uint64_t len = sonde_cursor_u32(c);
		if (!len) {
			if (s->ends_at_zero)
				return NEXT_END;
			continue; /* the one of an object file in the middle: others follow */
		}
		if (len == UINT32_MAX) {
			len = sonde_cursor_u64(c);
			r.long_form = true;
		} else if (len >= 0xfffffff0) {
			return NEXT_DAMAGED;
		}
		if (c->bad || len > sonde_cursor_left(c))
			return NEXT_DAMAGED;
		r.c = *c;
		r.c.end = c->p + len;
		sonde_cursor_skip(c, len);
		read_id(s, &r);
		if (r.c.bad)
			return NEXT_DAMAGED;
		*ret = r;
		return NEXT_RECORD;
	}
}

/* --- CIEs --- */

static enum sonde_cfi_reason read_augmentation(const struct sonde_cfi *cfi,
	const struct sonde_cfi_section *s, struct sonde_cursor *c, const char *text,
	struct sonde_cfi_cie *cie)
{
	uint64_t ignored;
	struct sonde_cursor data = *c;
	if (*text == 'z') {
		cie->augmented = true;
		uint64_t len = sonde_varint_u64(c);
		data = *c;
		sonde_cursor_skip(c, len);
		if (c->bad)
			return SONDE_CFI_BAD_RECORD;
		data.end = data.p + len;
		text++;
	}
	for (; *text; text++) {
		switch (*text) {
		case 'R':
			cie->encoding = sonde_cursor_u8(&data);
			break;
		case 'L':
			cie->lsda_encoding = sonde_cursor_u8(&data);
			cie->has_lsda = cie->lsda_encoding != PE_OMIT;
			break;
		case 'P': {
			/* The personality routine: nobody here calls it, so that it is not followed. */
			uint8_t encoding = sonde_cursor_u8(&data) & (uint8_t)~PE_INDIRECT;
			if (encoding != (PE_OMIT & ~PE_INDIRECT) &&
				!sonde_cfi_read_pointer(
					cfi, s, &data, encoding, cie->addr_bytes, 0, &ignored))
				return SONDE_CFI_BAD_ENCODING;
			break;
		}
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B':
			cie->key_b = true;
			break;
		case 'G': /* arm64: the frame's memory is tagged */
			break;
		default:
			return SONDE_CFI_BAD_AUGMENTATION;
		}
	}
	if (!cie->augmented)
		*c = data;
	return data.bad ? SONDE_CFI_BAD_RECORD : SONDE_CFI_FINE;
}

static enum sonde_cfi_reason read_cie(
	const struct sonde_cfi *cfi, const struct record *r, struct sonde_cfi_cie *cie)
{
	const struct sonde_cfi_section *s = &cfi->sections[cie->section];
	struct sonde_cursor c = r->c;
	uint8_t version = sonde_cursor_u8(&c);
	if (version != 1 && version != 3 && version != 4)
		return c.bad ? SONDE_CFI_BAD_RECORD : SONDE_CFI_BAD_VERSION;
	const char *augmentation = sonde_cursor_string(&c);
	if (!augmentation)
		return SONDE_CFI_BAD_RECORD;
	cie->addr_bytes = 8;
	if (version == 4) {
		cie->addr_bytes = sonde_cursor_u8(&c);
		uint8_t selector_bytes = sonde_cursor_u8(&c);
		if ((cie->addr_bytes != 4 && cie->addr_bytes != 8) || selector_bytes)
			return SONDE_CFI_BAD_ENCODING;
	}
	if (!strncmp(augmentation, "eh", 2)) { /* of GCC 2: a pointer stands here */
		sonde_cursor_skip(&c, cie->addr_bytes);
		augmentation += 2;
	}
	cie->code_align = sonde_varint_u64(&c);
	cie->data_align = sonde_varint_sleb(&c);
	uint64_t ra = version == 1 ? sonde_cursor_u8(&c) : sonde_varint_u64(&c);
	cie->ra_reg = ra > UINT16_MAX ? UINT16_MAX : (uint16_t)ra;
	if (c.bad)
		return SONDE_CFI_BAD_RECORD;
	enum sonde_cfi_reason reason = read_augmentation(cfi, s, &c, augmentation, cie);
	if (reason != SONDE_CFI_FINE)
		return reason;
	return sonde_cfi_run_cie(cfi, cie, c.p, c.end);
}

static bool add_cie(
	struct sonde_cfi *cfi, struct cie_vec *cies, const struct record *r, unsigned section)
{
	struct sonde_cfi_cie *cie = cie_vec_add(cies);
	if (!cie)
		return false;
	cie->offset = r->offset;
	cie->section = (uint8_t)section;
	cie->long_id = r->long_id;
	cie->encoding = PE_ABSPTR;
	cie->lsda_encoding = PE_OMIT;
	cie->reason = (uint8_t)read_cie(cfi, r, cie);
	cfi->counts.n_cies++;
	return true;
}

/* The CIE at offset of the section whose CIEs are first .. n - 1, ascending; SIZE_MAX: none. */
static size_t find_cie(const struct cie_vec *cies, size_t first, uint64_t offset, size_t *last)
{
	if (*last < cies->n && cies->items[*last].offset == offset)
		return *last;
	size_t lo = first, hi = cies->n;
	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		if (cies->items[middle].offset < offset)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo == cies->n || cies->items[lo].offset != offset)
		return SIZE_MAX;
	return *last = lo;
}

/* --- FDEs --- */

/* Whether start is in executable code; *end is cut to its range's. */
static bool in_code(const struct sonde_cfi_space *space, uint64_t start, uint64_t *end)
{
	for (unsigned i = 0; i < space->n_code; i++) {
		const struct sonde_cfi_range *r = &space->code[i];
		if (start < r->start || start >= r->end)
			continue;
		*end = sonde_min(*end, r->end);
		return true;
	}
	return !space->n_code;
}

/* What linkers write as the address of code that they left out; in .eh_frame only 0 happens. */
static bool is_discarded(uint64_t start, bool debug_frame, uint8_t addr_bytes)
{
	uint64_t top = addr_bytes == 4 ? UINT32_MAX : UINT64_MAX;
	return !start || (debug_frame && (start == 1 || start >= top - 1));
}

static enum sonde_cfi_reason read_fde(const struct sonde_cfi *cfi, const struct record *r,
	const struct sonde_cfi_cie *cie, struct sonde_cfi_fde *ret)
{
	if (cie->reason != SONDE_CFI_FINE)
		return cie->reason;
	const struct sonde_cfi_section *s = &cfi->sections[cie->section];
	struct sonde_cursor c = r->c;
	uint64_t start, len, end, ignored;
	c.p = c.start + r->id_offset;
	sonde_cursor_skip(&c, r->long_form && (s->debug_frame || cie->long_id) ? 8 : 4);
	if (!sonde_cfi_read_pointer(cfi, s, &c, cie->encoding, cie->addr_bytes, 0, &start) ||
		!read_number(&c,
			cie->encoding == PE_ALIGNED ? PE_ABSPTR : cie->encoding & PE_FORMAT,
			cie->addr_bytes, &len))
		return c.bad ? SONDE_CFI_BAD_RECORD : SONDE_CFI_BAD_ENCODING;
	if (cie->augmented)
		sonde_cursor_skip(&c, sonde_varint_u64(&c));
	else if (cie->has_lsda &&
		!sonde_cfi_read_pointer(cfi, s, &c, cie->lsda_encoding & (uint8_t)~PE_INDIRECT,
			cie->addr_bytes, start, &ignored))
		return SONDE_CFI_BAD_ENCODING;
	if (c.bad)
		return SONDE_CFI_BAD_RECORD;
	if (is_discarded(start, s->debug_frame, cie->addr_bytes))
		return SONDE_CFI_DISCARDED;
	if (!len)
		return SONDE_CFI_EMPTY;
	if (__builtin_add_overflow(start, len, &end) || !in_code(&cfi->space, start, &end) ||
		end - start > UINT32_MAX)
		return SONDE_CFI_OUTSIDE;
	ret->start = start;
	ret->n_bytes = (uint32_t)(end - start);
	ret->insns = (uint32_t)sonde_cursor_offset(&c);
	ret->n_insn_bytes = (uint32_t)sonde_cursor_left(&c);
	return SONDE_CFI_FINE;
}

static bool add_fde(struct sonde_cfi *cfi, const struct cie_vec *cies, size_t first,
	const struct record *r, const struct sonde_cfi_section *s, size_t *last,
	struct fde_vec *fdes)
{
	cfi->counts.n_fdes++;
	/* In .eh_frame the id says how far back the CIE is. */
	uint64_t offset = s->debug_frame ? r->id : r->id_offset - r->id;
	size_t i = find_cie(cies, first, offset, last);
	struct sonde_cfi_fde fde = {.cie = (uint32_t)i};
	enum sonde_cfi_reason reason =
		i == SIZE_MAX ? SONDE_CFI_BAD_CIE : read_fde(cfi, r, &cies->items[i], &fde);
	if (reason == SONDE_CFI_FINE)
		return fde_vec_push(fdes, fde);
	cfi->counts.refused[reason]++;
	return true;
}

/* CIEs first: they may stand behind their FDEs, and an FDE can name nothing but the start of a record. */
static bool read_section(
	struct sonde_cfi *cfi, unsigned number, struct cie_vec *cies, struct fde_vec *fdes)
{
	const struct sonde_cfi_section *s = &cfi->sections[number];
	size_t first = cies->n, last = SIZE_MAX;
	struct record r;
	struct sonde_cursor c = sonde_cursor_over(s->data, s->len);
	enum next next;
	while ((next = next_record(s, &c, &r)) == NEXT_RECORD)
		if (r.is_cie && !add_cie(cfi, cies, &r, number))
			return false;
	if (next == NEXT_DAMAGED)
		cfi->counts.refused[SONDE_CFI_BAD_RECORD]++;
	/* run_cie() found the CIE by address, FDEs find it by index: the vector does not move from here on. */
	c = sonde_cursor_over(s->data, s->len);
	while (next_record(s, &c, &r) == NEXT_RECORD)
		if (!r.is_cie && !add_fde(cfi, cies, first, &r, s, &last, fdes))
			return false;
	return true;
}

/* --- the index --- */

static bool is_sorted(const struct fde_vec *v)
{
	for (size_t i = 1; i < v->n; i++)
		if (v->items[i].start < v->items[i - 1].start)
			return false;
	return true;
}

/* By start, stable: radix, since FDEs come nearly sorted and by the hundred thousand. */
static bool sort(struct fde_vec *v)
{
	if (is_sorted(v))
		return true;
	enum { BITS = RADIX_BITS, N = 1 << BITS };
	uint64_t lowest = UINT64_MAX, highest = 0;
	sonde_vec_foreach (f, v) {
		lowest = sonde_min(lowest, f->start);
		highest = sonde_max(highest, f->start);
	}
	struct sonde_cfi_fde *from = v->items, *to = sonde_realloc_array(NULL, v->n, sizeof(*to));
	sonde_cleanup(free) uint32_t *at = sonde_new_array(uint32_t, N);
	if (!to || !at) {
		free(to);
		return false;
	}
	for (unsigned shift = 0; shift < 64 && (highest - lowest) >> shift; shift += BITS) {
		memset(at, 0, N * sizeof(*at));
		for (size_t i = 0; i < v->n; i++)
			at[(from[i].start - lowest) >> shift & (N - 1)]++;
		uint32_t sum = 0;
		for (unsigned d = 0; d < N; d++) {
			uint32_t n = at[d];
			at[d] = sum;
			sum += n;
		}
		for (size_t i = 0; i < v->n; i++)
			to[at[(from[i].start - lowest) >> shift & (N - 1)]++] = from[i];
		struct sonde_cfi_fde *swap = from;
		from = to;
		to = swap;
	}
	free(to);
	v->items = from;
	v->cap = v->n;
	return true;
}

/*
 * Make them disjoint. Where one starts inside another, the later start wins and the earlier one does not come back: so
 * the search of run-time unwinders in .eh_frame_hdr has it. A later section only fills what earlier ones leave free.
 */
static void make_disjoint(struct sonde_cfi *cfi, struct fde_vec *v)
{
	size_t n = 0;
	for (size_t i = 0; i < v->n; i++) {
		struct sonde_cfi_fde *f = &v->items[i], *prev = n ? &v->items[n - 1] : NULL;
		unsigned section = cfi->cies[f->cie].section;
		if (prev && f->start - prev->start < prev->n_bytes) {
			unsigned other = cfi->cies[prev->cie].section;
			if (other < section || prev->start == f->start) {
				cfi->counts.refused[other < section ? SONDE_CFI_COVERED
								    : SONDE_CFI_DUPLICATE]++;
				continue;
			}
			prev->n_bytes = (uint32_t)(f->start - prev->start);
			cfi->counts.n_cut += other == section;
		}
		v->items[n++] = *f;
	}
	v->n = n;
}

struct sonde_error *sonde_cfi_open_sections(const struct sonde_cfi_section *sections, unsigned n,
	const struct sonde_cfi_space *space, struct sonde_cfi **ret)
{
	char text[32];
	if (space->machine != EM_X86_64 && space->machine != EM_AARCH64)
		return sonde_error_new(SONDE_UNSUPPORTED, "call-frame information of %s",
			sonde_elf_machine_name(space->machine, text));
	if (n > SONDE_CFI_MAX_SECTIONS)
		return sonde_error_new(SONDE_USAGE, "call-frame information: %u sections", n);
	sonde_cleanup(sonde_cfi) struct sonde_cfi *cfi = sonde_new(struct sonde_cfi);
	sonde_cleanup(fde_vec) struct fde_vec fdes = {0};
	sonde_cleanup(cie_vec) struct cie_vec cies = {0};
	if (!cfi)
		return &sonde_enomem;
	cfi->machine = space->machine;
	cfi->fp_reg = space->machine == EM_X86_64 ? X86_64_RBP : ARM64_X29;
	cfi->space = *space;
	for (unsigned i = 0; i < n; i++) {
		if (sections[i].len > UINT32_MAX)
			return sonde_error_new(SONDE_UNSUPPORTED,
				"call-frame information: section of %" PRIu64 " bytes",
				sections[i].len);
		cfi->sections[cfi->n_sections++] = sections[i];
		if (!read_section(cfi, i, &cies, &fdes))
			return &sonde_enomem;
	}
	if (!sort(&fdes))
		return &sonde_enomem;
	cfi->cies = sonde_take(cies.items);
	make_disjoint(cfi, &fdes);
	cfi->n_fdes = fdes.n;
	cfi->fdes = cfi->owned_fdes = sonde_take(fdes.items);
	*ret = sonde_take(cfi);
	return NULL;
}

void sonde_cfi_free(struct sonde_cfi *cfi)
{
	if (!cfi)
		return;
	free(cfi->owned_fdes);
	free(cfi->cies);
	free(cfi);
}

const struct sonde_cfi_fde *sonde_cfi_find(const struct sonde_cfi *cfi, uint64_t addr)
{
	size_t lo = 0, hi = cfi->n_fdes;
	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		if (cfi->fdes[middle].start <= addr)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo && addr - cfi->fdes[lo - 1].start < cfi->fdes[lo - 1].n_bytes ? &cfi->fdes[lo - 1]
										: NULL;
}

/* --- ELF files --- */

static bool read_elf_word(const void *ctx, uint64_t addr, uint64_t *ret)
{
	const uint8_t *p = sonde_elf_bytes_at(ctx, addr, 8);
	if (p)
		memcpy(ret, p, 8);
	return p;
}

/* Add the section called name, if the file has its contents. */
static struct sonde_error *add_section(struct sonde_elf *elf, const char *name, bool debug_frame,
	struct sonde_cfi_section *sections, unsigned *n)
{
	const struct sonde_elf_section *s = sonde_elf_section_find(elf, name);
	if (!s || s->type == SHT_NOBITS)
		return NULL;
	const uint8_t *data;
	uint64_t len;
	struct sonde_error *err = sonde_elf_section_read(elf, s, &data, &len);
	if (err)
		return sonde_error_wrap(err, "%s", name);
	sections[(*n)++] = (struct sonde_cfi_section){
		.data = data, .len = len, .addr = s->addr, .debug_frame = debug_frame};
	return NULL;
}

/* Without sections: .eh_frame_hdr, which PT_GNU_EH_FRAME finds, says where .eh_frame starts. LSB 5.0 section 10.6.2. */
static void add_by_segment(
	const struct sonde_elf *elf, struct sonde_cfi_section *sections, unsigned *n)
{
	const struct sonde_elf_segment *hdr = NULL;
	for (size_t i = 0; i < elf->n_segments; i++)
		if (elf->segments[i].type == PT_GNU_EH_FRAME)
			hdr = &elf->segments[i];
	uint64_t len, addr;
	const uint8_t *p = hdr ? sonde_elf_segment_bytes(elf, hdr, &len) : NULL;
	if (!p || len < 8 || p[0] != 1)
		return;
	struct sonde_cfi_section header = {.data = p, .len = len, .addr = hdr->addr};
	struct sonde_cfi none = {.space = {.data_addr = hdr->addr}};
	struct sonde_cursor c = sonde_cursor_over(p, len);
	sonde_cursor_skip(&c, 4);
	if (!sonde_cfi_read_pointer(&none, &header, &c, p[1], 8, 0, &addr))
		return;
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t at = addr - s->addr;
		const uint8_t *data = s->type == PT_LOAD && addr >= s->addr
			? sonde_elf_segment_bytes(elf, s, &len)
			: NULL;
		if (!data || at >= len)
			continue;
		sections[(*n)++] = (struct sonde_cfi_section){
			.data = data + at, .len = len - at, .addr = addr, .ends_at_zero = true};
		return;
	}
}

static void fill_space(const struct sonde_elf *elf, struct sonde_cfi_space *space)
{
	space->machine = elf->machine;
	space->read_word = read_elf_word;
	space->ctx = elf;
	const struct sonde_elf_section *text = sonde_elf_section_find(elf, ".text"),
				       *got = sonde_elf_section_find(elf, ".got");
	space->text_addr = text ? text->addr : 0;
	space->data_addr = got ? got->addr : 0;
	for (size_t i = 0; i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t end;
		if (s->type != PT_LOAD || !(s->flags & PF_X) || !s->mem_bytes ||
			__builtin_add_overflow(s->addr, s->mem_bytes, &end))
			continue;
		if (space->n_code < SONDE_ARRAY_LEN(space->code)) {
			space->code[space->n_code++] = (struct sonde_cfi_range){s->addr, end};
		} else { /* more than any linker makes: the last one reaches over them */
			struct sonde_cfi_range *last = &space->code[space->n_code - 1];
			last->start = sonde_min(last->start, s->addr);
			last->end = sonde_max(last->end, end);
		}
	}
}

struct sonde_error *sonde_cfi_open(
	struct sonde_elf *elf, struct sonde_elf *debug, struct sonde_cfi **ret)
{
	char text[32];
	if ((elf->machine != EM_X86_64 && elf->machine != EM_AARCH64) || elf->word_bytes != 8 ||
		elf->big_endian)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"call-frame information of %s (%u bits%s)",
			sonde_elf_machine_name(elf->machine, text), elf->word_bytes * 8,
			elf->big_endian ? ", big-endian" : "");
	if (elf->type == ET_REL)
		return sonde_error_new(
			SONDE_UNSUPPORTED, "call-frame information of a relocatable file");
	struct sonde_cfi_space space = {0};
	struct sonde_cfi_section sections[SONDE_CFI_MAX_SECTIONS];
	unsigned n = 0;
	fill_space(elf, &space);
	SONDE_TRY(add_section(elf, ".eh_frame", false, sections, &n));
	if (!n)
		add_by_segment(elf, sections, &n);
	SONDE_TRY(add_section(elf, ".debug_frame", true, sections, &n));
	if (debug && debug->machine == elf->machine && debug->word_bytes == 8 && !debug->big_endian)
		SONDE_TRY(add_section(debug, ".debug_frame", true, sections, &n));
	return sonde_cfi_open_sections(sections, n, &space, ret);
}
