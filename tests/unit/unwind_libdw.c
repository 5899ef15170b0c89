/*
 * Unwind tables against libdw: at the start of each row the CFA, the frame pointer and the return address come to the same
 * values, expressions included, for registers and memory of our choice. With arguments: of those files, a line each;
 * exit status 1 where something differs.
 */
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>
#include "tap.h"
#include "unwind/table.h"

enum { X86_64_RIP = 16, STACK = 16 };

static uint64_t reg_value(unsigned reg, uint64_t pc)
{
	return reg == X86_64_RIP ? pc : UINT64_C(0x7f0000000000) + reg * UINT64_C(0x10010010);
}

static uint64_t memory(uint64_t addr)
{
	return (addr ^ addr >> 29) * UINT64_C(0xbf58476d1ce4e5b9);
}

/* Where a value is, or what it is. */
struct answer {
	enum { ANSWER_UNDEFINED, ANSWER_SAME, ANSWER_VALUE, ANSWER_NONE } kind;
	uint64_t v;
};

static bool binary(uint8_t atom, uint64_t a, uint64_t b, uint64_t *ret)
{
	switch (atom) {
	case DW_OP_plus:
		*ret = a + b;
		return true;
	case DW_OP_minus:
		*ret = a - b;
		return true;
	case DW_OP_mul:
		*ret = a * b;
		return true;
	case DW_OP_and:
		*ret = a & b;
		return true;
	case DW_OP_shl:
		*ret = b < 64 ? a << b : 0;
		return true;
	case DW_OP_ge:
		*ret = (int64_t)a >= (int64_t)b;
		return true;
	default:
		return false;
	}
}

/* Evaluate what libdw gave. false: an operation that is not known here. *in_memory: the result is an address. */
static bool evaluate(
	const Dwarf_Op *ops, size_t n, uint64_t pc, uint64_t cfa, uint64_t *ret, bool *in_memory)
{
	uint64_t s[STACK];
	unsigned depth = 0;
	*in_memory = true;
	for (size_t i = 0; i < n; i++) {
		const Dwarf_Op *op = &ops[i];
		uint8_t a = op->atom;
		if (depth + 2 >= STACK)
			return false;
		if (a >= DW_OP_breg0 && a <= DW_OP_breg31) {
			s[depth++] = reg_value(a - DW_OP_breg0, pc) + op->number;
		} else if (a == DW_OP_bregx) {
			s[depth++] = reg_value((unsigned)op->number, pc) + op->number2;
		} else if (a >= DW_OP_reg0 && a <= DW_OP_reg31) {
			s[depth++] = reg_value(a - DW_OP_reg0, pc);
			*in_memory = false;
		} else if (a == DW_OP_regx) {
			s[depth++] = reg_value((unsigned)op->number, pc);
			*in_memory = false;
		} else if (a >= DW_OP_lit0 && a <= DW_OP_lit31) {
			s[depth++] = a - DW_OP_lit0;
		} else if (a >= DW_OP_const1u && a <= DW_OP_consts) {
			s[depth++] = op->number;
		} else if (a == DW_OP_call_frame_cfa) {
			s[depth++] = cfa;
		} else if (a == DW_OP_stack_value) {
			*in_memory = false;
		} else if (a == DW_OP_plus_uconst && depth) {
			s[depth - 1] += op->number;
		} else if (a == DW_OP_deref && depth) {
			s[depth - 1] = memory(s[depth - 1]);
		} else if (depth >= 2 && binary(a, s[depth - 2], s[depth - 1], &s[depth - 2])) {
			depth--;
		} else {
			return false;
		}
	}
	if (!depth)
		return false;
	*ret = s[depth - 1];
	return true;
}

static struct answer theirs(Dwarf_Frame *frame, int reg, uint64_t pc, uint64_t cfa)
{
	Dwarf_Op mem[3], *ops;
	size_t n;
	uint64_t v;
	bool in_memory;
	if (dwarf_frame_register(frame, reg, mem, &ops, &n))
		return (struct answer){.kind = ANSWER_NONE};
	if (!n)
		return (struct answer){.kind = ops == mem ? ANSWER_UNDEFINED : ANSWER_SAME};
	if (!evaluate(ops, n, pc, cfa, &v, &in_memory))
		return (struct answer){.kind = ANSWER_NONE};
	return (struct answer){.kind = ANSWER_VALUE, .v = in_memory ? memory(v) : v};
}

static uint64_t our_cfa(const struct sonde_unwind_rule *r, uint64_t pc)
{
	uint64_t v = reg_value(sonde_unwind_cfa_reg(r), pc) + (uint64_t)(int64_t)r->cfa_offset;
	int64_t add = sonde_unwind_cfa_add(r);
	switch (sonde_unwind_cfa_kind(r)) {
	case SONDE_UNWIND_CFA_LOADED:
		return memory(v) + (uint64_t)(8 * add);
	case SONDE_UNWIND_CFA_PLT:
		return v + ((pc & 15) >= (uint64_t)add ? 8 : 0);
	default:
		return v;
	}
}

static struct answer ours(uint32_t kind, uint32_t reg, int64_t offset, uint64_t pc, uint64_t cfa)
{
	uint64_t from_reg = reg_value(reg, pc) + (uint64_t)offset;
	switch (kind) {
	case SONDE_UNWIND_SAME:
		return (struct answer){.kind = ANSWER_SAME};
	case SONDE_UNWIND_CFA_MEMORY:
		return (struct answer){ANSWER_VALUE, memory(cfa + (uint64_t)offset)};
	case SONDE_UNWIND_CFA_VALUE:
		return (struct answer){ANSWER_VALUE, cfa + (uint64_t)offset};
	case SONDE_UNWIND_REG_MEMORY:
		return (struct answer){ANSWER_VALUE, memory(from_reg)};
	case SONDE_UNWIND_REG_VALUE:
		return (struct answer){ANSWER_VALUE, from_reg};
	default:
		return (struct answer){.kind = ANSWER_UNDEFINED};
	}
}

static bool equal(struct answer a, struct answer b)
{
	return a.kind == b.kind && (a.kind != ANSWER_VALUE || a.v == b.v);
}

struct tally {
	uint64_t n_same, n_different, n_unsupported, n_expressions;
	uint64_t
		n_refused; /* libdw takes no register for the CFA after an expression, as libgcc and readelf do */
	uint64_t first; /* where something differs */
};

static void compare_at(
	Dwarf_CFI *cfi, const struct sonde_unwind_table *t, uint64_t pc, struct tally *tally)
{
	struct sonde_unwind_rule r;
	Dwarf_Frame *frame;
	Dwarf_Op *ops;
	size_t n;
	uint64_t cfa = 0;
	bool in_memory, found = sonde_unwind_table_rule(t, pc, &r);
	if (dwarf_cfi_addrframe(cfi, pc, &frame)) {
		tally->n_refused += found;
		return;
	}
	int ra = dwarf_frame_info(frame, NULL, NULL, NULL);
	if (found && sonde_unwind_cfa_kind(&r) == SONDE_UNWIND_CFA_UNSUPPORTED) {
		tally->n_unsupported++;
		free(frame);
		return;
	}
	if (dwarf_frame_cfa(frame, &ops, &n)) {
		tally->n_refused += found;
		free(frame);
		return;
	}
	bool bottom = found && sonde_unwind_ra_kind(&r) == SONDE_UNWIND_UNDEFINED;
	bool right = found && evaluate(ops, n, pc, 0, &cfa, &in_memory) &&
		(bottom || cfa == our_cfa(&r, pc)) &&
		equal(theirs(frame, t->header.fp_reg, pc, cfa),
			ours(sonde_unwind_fp_kind(&r), sonde_unwind_fp_reg(&r), r.fp_offset, pc,
				cfa)) &&
		equal(theirs(frame, ra, pc, cfa),
			ours(sonde_unwind_ra_kind(&r), sonde_unwind_ra_reg(&r), r.ra_offset, pc,
				cfa));
	tally->n_expressions += found && sonde_unwind_cfa_kind(&r) != SONDE_UNWIND_CFA_REG;
	tally->n_same += right;
	if (!right && !tally->n_different++)
		tally->first = pc;
	free(frame);
}

/* Every row of the table, at its first and last address and, of a PLT, at each. */
static struct sonde_error *compare_file(const char *path, struct tally *tally)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_unwind_table) struct sonde_unwind_table *t = NULL;
	SONDE_TRY(sonde_elf_open(path, &elf));
	bool debug_frame = !sonde_elf_section_find(elf, ".eh_frame");
	SONDE_TRY(sonde_unwind_table_of_elf(elf, NULL, &t));
	elf_version(EV_CURRENT);
	sonde_cleanup(fd) int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *e = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf *dwarf = debug_frame ? dwarf_begin_elf(e, DWARF_C_READ, NULL) : NULL;
	Dwarf_CFI *cfi = debug_frame ? dwarf_getcfi(dwarf) : dwarf_getcfi_elf(e);
	struct sonde_unwind_cursor c = {.table = t};
	struct sonde_unwind_entry entry;
	while (cfi && sonde_unwind_table_next(&c, &entry)) {
		if (!entry.rule_number)
			continue;
		bool each = sonde_unwind_cfa_kind(&entry.rule) == SONDE_UNWIND_CFA_PLT;
		compare_at(cfi, t, entry.start, tally);
		for (uint64_t pc = entry.start + 1; each && pc < entry.end - 1; pc++)
			compare_at(cfi, t, pc, tally);
		if (entry.end - entry.start > 1)
			compare_at(cfi, t, entry.end - 1, tally);
	}
	if (dwarf)
		dwarf_end(dwarf);
	else if (cfi)
		dwarf_cfi_end(cfi);
	elf_end(e);
	return NULL;
}

static int compare_files(int n, char **paths)
{
	struct tally total = {0};
	int n_failed = 0;
	for (int i = 0; i < n; i++) {
		struct tally tally = {0};
		struct sonde_error *err = compare_file(paths[i], &tally);
		if (err)
			printf("%s: %s\n", paths[i], err->message);
		else if (tally.n_different)
			printf("%s: %" PRIu64 " differ, first at 0x%" PRIx64 "\n", paths[i],
				tally.n_different, tally.first);
		n_failed += !!err;
		sonde_error_free(err);
		total.n_same += tally.n_same;
		total.n_different += tally.n_different;
		total.n_unsupported += tally.n_unsupported;
		total.n_expressions += tally.n_expressions;
		total.n_refused += tally.n_refused;
	}
	printf("%d files: %" PRIu64 " places the same, %" PRIu64 " of them by expressions, %" PRIu64
	       " unsupported, %" PRIu64 " refused by libdw, %" PRIu64 " differ; not read: %d\n",
		n, total.n_same, total.n_expressions, total.n_unsupported, total.n_refused,
		total.n_different, n_failed);
	return total.n_different || n_failed;
}

static void check_file(const char *path)
{
	struct tally tally = {0};
	if (access(path, R_OK))
		SKIP("not on this machine");
	CHECK_OK(compare_file(path, &tally));
	if (tally.n_different)
		printf("# %s: first at 0x%" PRIx64 "\n", path, tally.first);
	CHECK_EQ(tally.n_different, 0);
	CHECK(tally.n_same > 100);
}

static void this_program(void)
{
	check_file("/proc/self/exe");
}

static void libc(void)
{
	check_file("/lib/x86_64-linux-gnu/libc.so.6");
}

static void libcrypto(void)
{
	check_file("/usr/lib/x86_64-linux-gnu/libcrypto.so.3");
}

static void libpython(void)
{
	check_file("/usr/lib/x86_64-linux-gnu/libpython3.11.so.1.0");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return compare_files(argc - 1, argv + 1);
	RUN(this_program);
	RUN(libc);
	RUN(libcrypto);
	RUN(libpython);
	return tap_end();
}
