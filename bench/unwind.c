/*
 * Builds the unwind table of each file, and has libdw compute every row of the same file: CPU seconds of both in one
 * process, the least of some runs each; then look-ups in it. unwind FILE...
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <elfutils/libdw.h>
#include <libelf.h>

#include "base/vec.h"
#include "unwind/table.h"

enum { RUNS = 5 };

static double cpu_s(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Every row of every FDE, its CFA, frame pointer and return address. Returns how many. */
static uint64_t walk_libdw(const char *path, const struct sonde_cfi *cfi, bool debug_frame)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	Dwarf *dwarf = debug_frame ? dwarf_begin_elf(elf, DWARF_C_READ, NULL) : NULL;
	Dwarf_CFI *from = debug_frame ? dwarf_getcfi(dwarf) : dwarf_getcfi_elf(elf);
	uint64_t n = 0;
	for (size_t i = 0; from && i < cfi->n_fdes; i++) {
		const struct sonde_cfi_fde *fde = &cfi->fdes[i];
		for (uint64_t at = fde->start, fde_end = fde->start + fde->n_bytes; at < fde_end;) {
			Dwarf_Frame *frame;
			Dwarf_Addr start, end;
			if (dwarf_cfi_addrframe(from, at, &frame))
				break;
			Dwarf_Op mem[3], *ops;
			size_t n_ops;
			int ra = dwarf_frame_info(frame, &start, &end, NULL);
			dwarf_frame_cfa(frame, &ops, &n_ops);
			dwarf_frame_register(frame, cfi->fp_reg, mem, &ops, &n_ops);
			dwarf_frame_register(frame, ra, mem, &ops, &n_ops);
			free(frame);
			n++;
			if (end <= at)
				break;
			at = end;
		}
	}
	if (dwarf)
		dwarf_end(dwarf);
	else if (from)
		dwarf_cfi_end(from);
	elf_end(elf);
	close(fd);
	return n;
}

/* Nanoseconds a look-up, at addresses all over the table. */
static double look_up(const struct sonde_unwind_table *t)
{
	enum { N = 1 << 21 };
	uint64_t span = t->header.n_pages * UINT64_C(65536), x = 1, n_found = 0;
	double before = cpu_s();
	for (unsigned i = 0; i < N && span; i++) {
		struct sonde_unwind_rule r;
		x = x * 6364136223846793005u + 1442695040888963407u;
		n_found += sonde_unwind_table_rule(
			t, t->header.base_addr + (uint64_t)((unsigned __int128)x * span >> 64), &r);
	}
	double ns = (cpu_s() - before) * 1e9 / N;
	return n_found ? ns : 0;
}

static void die(struct sonde_error *err, const char *path)
{
	if (!err)
		return;
	fprintf(stderr, "%s: %s\n", path, err->message);
	exit(1);
}

int main(int argc, char **argv)
{
	elf_version(EV_CURRENT);
	for (int i = 1; i < argc; i++) {
		double ours = 1e9, libdw = 1e9;
		uint64_t n_libdw = 0;
		struct sonde_unwind_table *t = NULL;
		for (int run = 0; run < RUNS; run++) {
			struct sonde_elf *elf;
			sonde_unwind_table_free(t);
			double before = cpu_s();
			die(sonde_elf_open(argv[i], &elf), argv[i]);
			die(sonde_unwind_table_of_elf(elf, NULL, &t), argv[i]);
			ours = sonde_min(ours, cpu_s() - before);
			sonde_elf_free(elf);
		}
		struct sonde_elf *elf;
		struct sonde_cfi *cfi;
		die(sonde_elf_open(argv[i], &elf), argv[i]);
		die(sonde_cfi_open(elf, NULL, &cfi), argv[i]);
		bool debug_frame = cfi->n_sections && cfi->sections[0].debug_frame;
		for (int run = 0; run < RUNS; run++) {
			double before = cpu_s();
			n_libdw = walk_libdw(argv[i], cfi, debug_frame);
			libdw = sonde_min(libdw, cpu_s() - before);
		}
		const struct sonde_unwind_header *h = &t->header;
		printf("%s size_mb=%.1f fdes=%zu rows_read=%" PRIu64 " libdw_rows=%" PRIu64
		       " rows=%" PRIu32 " rules=%" PRIu32 " bytes=%" PRIu32
		       " bytes_per_row=%.3f ours_ms=%.2f libdw_ms=%.2f ours_mrows_s=%.2f"
		       " libdw_mrows_s=%.2f times=%.2f lookup_ns=%.0f\n",
			argv[i], (double)elf->size_bytes / 1e6, cfi->n_fdes, t->counts.n_rows_read,
			n_libdw, h->n_rows, h->n_rules, h->image_bytes,
			(double)h->image_bytes / h->n_rows, ours * 1e3, libdw * 1e3,
			(double)t->counts.n_rows_read / ours / 1e6, (double)n_libdw / libdw / 1e6,
			(double)t->counts.n_rows_read / ours / ((double)n_libdw / libdw),
			look_up(t));
		fflush(stdout);
		sonde_cfi_free(cfi);
		sonde_elf_free(elf);
		sonde_unwind_table_free(t);
	}
	return 0;
}
