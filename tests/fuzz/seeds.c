/* Writes seeds whose bytes are composed: fuzz_seeds FOLDER, where FOLDER/NAME exists for each target. */
#include <lz4frame.h>
#include <lzma.h>
#include <zlib.h>
#include <zstd.h>
#include "base/varint.h"
#include "build.h"
#include "build_trace_v1.h"
#include "build_cfi.h"
#include "build_trace.h"
#include "unwind/table.h"

static const char *folder;

static void save(const char *target, const char *name, const struct sonde_buf *b)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/%s/%s", folder, target, name);
	FILE *f = fopen(path, "w");
	if (!f || fwrite(b->data, 1, b->len, f) != b->len || fclose(f)) {
		perror(path);
		exit(1);
	}
}

static void notes_of(uint16_t machine, struct sonde_buf *b)
{
	unsigned w = machine == EM_386 ? 4 : 8;
	uint64_t slots[34];
	for (unsigned i = 0; i < 34; i++)
		slots[i] = 0x400000 + i;
	build_prstatus(b, machine, 10, 11, slots,
		machine == EM_386              ? 17
			: machine == EM_X86_64 ? 27
					       : 34);
	build_psinfo(b, w, 10, "prog", "./prog -x");
	build_siginfo(b, w, 11, 1, 0xdead0);
	const uint64_t auxv[][2] = {{AT_ENTRY, 0x400010}, {AT_PHDR, 0x400040}, {AT_PAGESZ, 4096},
		{AT_EXECFN, 0xc0000000}, {0, 0}};
	build_auxv(b, w, auxv);
	const struct build_vma v[] = {{0x400000, 0x402000, 0, "/nonexistent/prog"},
		{0x402000, 0x403000, 2, "/nonexistent/prog"}};
	build_nt_file(b, w, v, 2);
	build_note(b, "LINUX", 6, machine == EM_386 ? 0x200 : 0x401,
		"\6\0\0\0\0\20\0\267\0\0\0\0\0\0\0", 16);
	build_prstatus(b, machine, 11, 0, slots, 8);
}

static void write_notes(void)
{
	static const uint16_t machines[] = {EM_X86_64, EM_386, EM_AARCH64};
	for (uint8_t i = 0; i < 3; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		char name[16];
		snprintf(name, sizeof(name), "machine%u", i);
		build_u8(&b, i);
		sonde_cleanup(sonde_buf) struct sonde_buf n = {0};
		notes_of(machines[i], &n);
		build_buildid_note(&n, "\1\2\3\4", 4);
		build_gobuildid_note(&n, "one/two/three");
		sonde_buf_add(&b, n.data, n.len);
		save("notes", name, &b);
	}
}

static void write_cores(void)
{
	static const uint16_t machines[] = {EM_X86_64, EM_386, EM_AARCH64};
	static const char *const names[] = {"amd64", "386", "arm64"};
	for (int i = 0; i < 3; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, exe = {0}, b = {0}, z = {0};
		build_buildid_note(&notes, "\1\2\3\4", 4);
		struct build_elf x = {.type = ET_EXEC,
			.machine = machines[i],
			.word_bytes = i == 1 ? 4 : 8,
			.entry = 0x400010};
		build_segment(&x, PT_LOAD, PF_R | PF_X, 0x400000, NULL, 0)->mem_bytes = 0x2000;
		build_segment(&x, PT_NOTE, PF_R, 0x400200, notes.data, notes.len);
		build_elf_write(&x, &exe);
		struct build_elf e = {
			.type = ET_CORE, .machine = machines[i], .word_bytes = i == 1 ? 4 : 8};
		sonde_cleanup(sonde_buf) struct sonde_buf n = {0};
		notes_of(machines[i], &n);
		build_segment(&e, PT_NOTE, 0, 0, n.data, n.len);
		struct build_segment *s =
			build_segment(&e, PT_LOAD, PF_R | PF_X, 0x400000, exe.data, exe.len);
		s->mem_bytes = 0x2000;
		s->align = 1;
		build_segment(&e, PT_LOAD, PF_R | PF_W, 0xc0000000, "./prog", 7)->align = 1;
		s = build_segment(&e, PT_LOAD, PF_R | PF_W, 0xd0000000, NULL, 0);
		s->mem_bytes = 0x3000;
		s->align = 1;
		s = build_segment(&e, PT_LOAD, 0, 0xe0000000, NULL, 0);
		s->mem_bytes = 0x3000;
		s->align = 1;
		build_elf_write(&e, &b);
		save("core_file", names[i], &b);
		if (i)
			continue;
		char *to = sonde_buf_reserve(&z, 1 << 16);
		z.len = ZSTD_compress(to, 1 << 16, b.data, b.len, 1);
		save("core_file", "amd64.zst", &z);
		z.len = LZ4F_compressFrame(to, 1 << 16, b.data, b.len, NULL);
		save("core_file", "amd64.lz4", &z);
		z.len = 0;
		lzma_easy_buffer_encode(0, LZMA_CHECK_NONE, NULL, (uint8_t *)b.data, b.len,
			(uint8_t *)to, &z.len, 1 << 16);
		save("core_file", "amd64.xz", &z);
		z_stream gz = {.next_in = (uint8_t *)b.data,
			.avail_in = (uInt)b.len,
			.next_out = (uint8_t *)to,
			.avail_out = 1 << 16};
		deflateInit2(&gz, 9, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
		deflate(&gz, Z_FINISH);
		z.len = gz.total_out;
		deflateEnd(&gz);
		save("core_file", "amd64.gz", &z);
		e.extended_numbers = true;
		build_elf_write(&e, &b);
		save("core_file", "extended", &b);
	}
}

static void write_buildinfo(void)
{
	static const char modules[] = "0123456789abcdefpath\tx/"
				      "y\nmod\tx\tv1\th1:\ndep\ta\tv2\n=>\tb\tv3\nbuild\t-tags="
				      "\"a\\x41\\n\"\nbuild\tGOARCH=amd64\n0123456789abcdef";
	sonde_cleanup(sonde_buf) struct sonde_buf blob = {0}, pointers = {0}, b = {0},
						  symbols = {0};
	uint8_t n[10];
	sonde_buf_add(&blob, "\xff Go buildinf:\10\2", 16);
	build_zeros(&blob, 16);
	sonde_buf_add(&blob, "\6go1.27", 7);
	sonde_buf_add(&blob, n, sonde_varint_encode(n, sizeof(modules) - 1));
	sonde_buf_add(&blob, modules, sizeof(modules) - 1);
	save("gobuildinfo", "inline", &blob);
	sonde_buf_add(&pointers, "\xff Go buildinf:\10\0", 16);
	build_u64(&pointers, 32);
	build_u64(&pointers, 48);
	build_u64(&pointers, 64);
	build_u64(&pointers, 6);
	build_u64(&pointers, 70);
	build_u64(&pointers, sizeof(modules) - 1);
	sonde_buf_add(&pointers, "go1.15", 6);
	sonde_buf_add(&pointers, modules, sizeof(modules) - 1);
	save("gobuildinfo", "pointers", &pointers);
	build_zeros(&symbols, 24);
	build_u32(&symbols, 1);
	build_u32(&symbols, 0x10012);
	build_u64(&symbols, 0x400000);
	build_u64(&symbols, 64);
	struct build_elf e = {.type = ET_EXEC};
	build_segment(&e, PT_LOAD, PF_R | PF_W, 0x400000, blob.data, blob.len)->align = 16;
	build_section(&e, ".symtab", SHT_SYMTAB, symbols.data, symbols.len)->link = 2;
	build_section(&e, ".strtab", SHT_STRTAB, "\0main.main", 11);
	uLongf packed = 1024;
	uint8_t z[1024] = {1, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 1};
	uint8_t zeros[100] = {0};
	compress(z + 24, &packed, zeros, sizeof(zeros));
	build_section(&e, ".debug_info", SHT_PROGBITS, z, 24 + packed)->flags = SHF_COMPRESSED;
	build_elf_write(&e, &b);
	save("gobuildinfo", "elf", &b);
}

/* Every kind of instruction, over both machines and both sections; then a table of them. */
static void write_cfi(void)
{
	static const char *const augmentations[] = {"", "zR", "zPLR", "zRS", "eh", "zB"};
	static const struct {
		const char *data;
		size_t len;
	} insns[] = {
		{BUILD_BYTES("\x41\x0e\x10\x86\x02\x43\x0d\x06\x02\x10\x0c\x07\x08\x03\x01\x01\x0e"
			     "\x20")},
		{BUILD_BYTES("\x0f\x0b\x77\x08\x80\x00\x3f\x1a\x3b\x2a\x33\x24\x22")},
		{BUILD_BYTES("\x0f\x06\x77\xf8\x00\x06\x23\x08\x10\x06\x02\x76\x00\x16\x10\x02\x40"
			     "\x1c")},
		{BUILD_BYTES(
			"\x0a\x41\x0e\x10\x0a\x41\x0b\x41\x0b\x07\x10\x08\x06\x09\x06\x09\x2d")},
		{BUILD_BYTES("\x05\x06\x02\x11\x06\x7e\x12\x06\x7e\x13\x7d\x14\x06\x02\x15\x06\x7f"
			     "\x2e\x10"
			     "\x2f\x06\x01\x06\x06\xc6")},
		{BUILD_BYTES("\x1d\x08\x00\x00\x00\x00\x00\x00\x00\x04\x08\x00\x00\x00\x01\x50\x10"
			     "\x00\x00\x00\x00"
			     "\x00\x00\x0e\x18")},
	};
	for (unsigned i = 0; i < 24; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		char name[32];
		struct build_cie c = {.debug_frame = i & 1,
			.long_form = i & 2,
			.version = i & 4 ? 4 : 3,
			.addr_bytes = 8,
			.augmentation = augmentations[i / 4],
			.data = "\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\x00",
			.data_len = i / 4 == 2 ? 11 : 1};
		build_u8(&b, (uint8_t)(i & 1 ? 3 : i & 8));
		build_u8(&b, 0);
		size_t cie = build_cie(&b, &c) - 2;
		for (unsigned k = 0; k < SONDE_ARRAY_LEN(insns); k++) {
			struct sonde_buf r = {0};
			build_number(&r,
				c.debug_frame ? cie : b.len - 2 + (c.long_form ? 12 : 4) - cie,
				c.long_form ? 8 : 4, false);
			build_u64(&r, 0x1000 + 0xfff0 * k);
			build_u64(&r, 0x200);
			if (augmentations[i / 4][0] == 'z')
				build_u8(&r, 0);
			sonde_buf_add(&r, insns[k].data, insns[k].len);
			build_record(&b, c.long_form, &r);
			sonde_buf_deinit(&r);
		}
		snprintf(name, sizeof(name), "kind%u", i);
		save("cfi", name, &b);
		/* The target that takes images takes this one as a table. */
		struct sonde_cfi_section section = {
			.data = b.data + 2, .len = b.len - 2, .debug_frame = i & 1};
		struct sonde_cfi_space space = {.machine = i & 8 ? EM_AARCH64 : EM_X86_64};
		struct sonde_cfi *cfi;
		struct sonde_unwind_table *t;
		if (sonde_cfi_open_sections(&section, 1, &space, &cfi) ||
			sonde_unwind_table_build(cfi, 0x1000, NULL, &t))
			exit(1);
		struct sonde_buf image = {0};
		sonde_buf_add(&image, t->image, t->header.image_bytes);
		save("unwind_table", name, &image);
		sonde_buf_deinit(&image);
		sonde_unwind_table_free(t);
		sonde_cfi_free(cfi);
	}
}

/* Call-frame information in files: by section, by segment, .debug_frame. */
static void write_cfi_files(void)
{
	for (unsigned i = 0; i < 3; i++) {
		struct sonde_buf s = {0}, b = {0}, out = {0};
		char name[32];
		struct build_cie c = {.debug_frame = i == 2};
		sonde_buf_add(&s, "\x01\x1b\xff\xff\x04\x00\x00\x00", i == 1 ? 8 : 0);
		size_t cie = build_cie(&s, &c);
		build_fde(&s, &c, cie, 0x1010, 0x20, BUILD_BYTES("\x41\x0e\x10\x86\x02"));
		build_fde(&s, &c, cie, 0x1040, 0x20, BUILD_BYTES("\x0f\x03\x76\x78\x06"));
		build_u32(&s, 0);
		struct build_elf e = {.type = ET_DYN, .machine = i == 2 ? EM_AARCH64 : EM_X86_64};
		struct build_segment *load =
			build_segment(&e, PT_LOAD, PF_R | PF_X, 0x1000, s.data, i == 1 ? s.len : 0);
		load->align = 1;
		load->mem_bytes = 0x1000;
		if (i == 1) {
			struct build_segment *hdr =
				build_segment(&e, PT_GNU_EH_FRAME, PF_R, 0x1000, NULL, 0);
			hdr->offset = 64 + 2 * 56;
			hdr->file_bytes = 8;
		} else {
			build_section(
				&e, i ? ".debug_frame" : ".eh_frame", SHT_PROGBITS, s.data, s.len);
		}
		build_elf_write(&e, &b);
		build_u8(&out, 32);
		build_u8(&out, 0);
		sonde_buf_add(&out, b.data, b.len);
		snprintf(name, sizeof(name), "file%u", i);
		save("cfi", name, &out);
		sonde_buf_deinit(&s);
		sonde_buf_deinit(&b);
		sonde_buf_deinit(&out);
	}
}

static void write_traces(void)
{
	static const unsigned versions[] = {22, 23, 25, 26};
	for (unsigned i = 0; i < 4; i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		char name[16];
		trace_everything(&b, versions[i]);
		snprintf(name, sizeof(name), "all%u", versions[i]);
		save("trace_v2", name, &b);
		b.len = b.len * 2 / 3;
		snprintf(name, sizeof(name), "cut%u", versions[i]);
		save("trace_v2", name, &b);
		/* Bytes out of the middle. */
		memmove(b.data + b.len / 2, b.data + b.len / 2 + 20, b.len - b.len / 2 - 20);
		b.len -= 20;
		snprintf(name, sizeof(name), "hole%u", versions[i]);
		save("trace_v2", name, &b);
	}
}

static void write_traces_v1(void)
{
	static const unsigned versions[] = {5, 7, 8, 9, 10, 11, 19, 21};
	for (unsigned i = 0; i < SONDE_ARRAY_LEN(versions); i++) {
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		char name[32];
		build_v1_everything(&b, versions[i]);
		snprintf(name, sizeof(name), "version%u", versions[i]);
		save("trace_v1", name, &b);
		/* Its tail lost, and other bytes in the middle. */
		size_t half = b.len / 2;
		memcpy(b.data + half, "it was not meant to be written here", 35);
		b.len -= 7;
		snprintf(name, sizeof(name), "damaged%u", versions[i]);
		save("trace_v1", name, &b);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		return 2;
	folder = argv[1];
	write_notes();
	write_cores();
	write_buildinfo();
	write_cfi();
	write_cfi_files();
	write_traces();
	write_traces_v1();
	return 0;
}
