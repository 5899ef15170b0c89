#include "target/core_file.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include "build.h"
#include "tap.h"

enum { PAGE = 4096, TEXT_PAGES = 3, EXE_BYTES = (TEXT_PAGES + 1) * PAGE };
#define BASE UINT64_C(0x400000)
#define PIE_BASE UINT64_C(0x555555554000)
#define HEAP UINT64_C(0x7fc000000000)

static const uint8_t id_a[4] = {0xaa, 1, 2, 3}, id_b[4] = {0xbb, 1, 2, 3};

/* --- an executable: three pages of headers, notes and text, one of data --- */

struct exe {
	const uint8_t *id;
	const char *goid;
	char fill; /* of its text */
	uint16_t type; /* ET_EXEC at BASE, or ET_DYN at 0 */
	uint8_t image[EXE_BYTES];
};

static void make_exe(struct exe *x)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, b = {0};
	uint64_t base = x->type == ET_DYN ? 0 : BASE;
	struct build_elf e = {
		.type = x->type, .entry = base + 0x1010, .headers_in_first_load = true};
	uint8_t content[TEXT_PAGES * PAGE], data[PAGE];
	memset(content, x->fill, sizeof(content));
	memset(data, 'd', sizeof(data));
	if (x->id)
		build_buildid_note(&notes, x->id, 4);
	if (x->goid)
		build_gobuildid_note(&notes, x->goid);
	build_note(&notes, "Xen", 4, 1, "filler", 6);
	memcpy(content + 0x200, notes.data, notes.len);
	build_segment(&e, PT_LOAD, PF_R | PF_X, base, content, sizeof(content));
	build_segment(&e, PT_LOAD, PF_R | PF_W, base + sizeof(content), data, sizeof(data))
		->mem_bytes = 2 * PAGE;
	struct build_segment *note =
		build_segment(&e, PT_NOTE, PF_R, base + 0x200, NULL, notes.len);
	note->offset = 0x200;
	build_elf_write(&e, &b);
	CHECK_EQ(b.len, EXE_BYTES);
	memcpy(x->image, b.data, EXE_BYTES);
}

static struct exe exe_of(const uint8_t *id, const char *goid, char fill, uint16_t type)
{
	struct exe x = {id, goid, fill, type, {0}};
	make_exe(&x);
	return x;
}

/* --- a core of it, as the kernel writes it --- */

struct core {
	struct build_elf e;
	struct sonde_buf notes, bytes;
	uint8_t dirty[PAGE]; /* the data page as the process left it */
	uint8_t heap[2 * PAGE];
};

static void core_deinit(struct core *c)
{
	sonde_buf_deinit(&c->notes);
	sonde_buf_deinit(&c->bytes);
}
#define CORE __attribute__((cleanup(core_deinit))) struct core

static void add_thread(struct core *c, uint32_t tid, uint64_t pc)
{
	uint64_t slots[27] = {[16] = pc, [19] = 0x7ffe0000, [21] = 0x7f00};
	build_prstatus(&c->notes, EM_X86_64, tid, 11, slots, 27);
}

/* Segments and notes; write_core() finishes it. path NULL: no NT_FILE. */
static void start_core(struct core *c, const struct exe *x, const char *path)
{
	uint64_t base = x->type == ET_DYN ? PIE_BASE : BASE;
	*c = (struct core){.e = {.type = ET_CORE}};
	memset(c->dirty, 'D', sizeof(c->dirty));
	memset(c->heap, 'h', sizeof(c->heap));
	strcpy((char *)c->heap, "./prog");
	add_thread(c, 100, base + 0x1020);
	build_psinfo(&c->notes, 8, 100, "prog", "./prog -x ");
	build_siginfo(&c->notes, 8, 11, 1, 0xdead0);
	const uint64_t auxv[][2] = {{AT_ENTRY, base + 0x1010}, {AT_PHDR, base + 64}, {AT_PHNUM, 3},
		{AT_PAGESZ, PAGE}, {AT_CLKTCK, 100}, {AT_EXECFN, HEAP}, {AT_BASE, 0x7f0000},
		{0, 0}};
	build_auxv(&c->notes, 8, auxv);
	add_thread(c, 101, base + 0x1030);
	if (path) {
		const struct build_vma v[] = {{base, base + TEXT_PAGES * PAGE, 0, path},
			{base + TEXT_PAGES * PAGE, base + (TEXT_PAGES + 1) * PAGE, TEXT_PAGES,
				path}};
		build_nt_file(&c->notes, 8, v, 2);
	}
	build_segment(&c->e, PT_LOAD, PF_R | PF_X, base, x->image, PAGE)->mem_bytes =
		TEXT_PAGES * PAGE;
	build_segment(&c->e, PT_LOAD, PF_R | PF_W, base + TEXT_PAGES * PAGE, c->dirty, PAGE);
	build_segment(&c->e, PT_LOAD, PF_R | PF_W, base + (TEXT_PAGES + 1) * PAGE, NULL, 0)
		->mem_bytes = PAGE;
	build_segment(&c->e, PT_LOAD, PF_R | PF_W, HEAP, c->heap, sizeof(c->heap))->mem_bytes =
		4 * PAGE;
	build_segment(&c->e, PT_LOAD, 0, HEAP + 4 * PAGE, NULL, 0)->mem_bytes = 4 * PAGE;
}

static const char *write_core(struct core *c, const char *name)
{
	/* The notes go where the kernel puts them: behind the program headers. */
	memmove(&c->e.segments[1], &c->e.segments[0], c->e.n_segments * sizeof(c->e.segments[0]));
	c->e.segments[0] =
		(struct build_segment){.type = PT_NOTE, .data = c->notes.data, .len = c->notes.len};
	c->e.n_segments++;
	build_elf_write(&c->e, &c->bytes);
	return build_file_of(name, &c->bytes);
}

static char byte_at(struct sonde_target *t, uint64_t addr)
{
	uint8_t v;
	return sonde_target_read_u8(t, addr, &v) ? (char)v : '?';
}

static const struct sonde_note_entry *note_of(const struct sonde_notes *notes, const char *kind)
{
	for (size_t i = 0; i < notes->entries.n; i++)
		if (strstr(notes->entries.items[i].kind, kind))
			return &notes->entries.items[i];
	return NULL;
}

static const char *reason_at(struct sonde_target *t, uint64_t addr)
{
	const struct sonde_mapping *m = sonde_target_mapping_find(t, addr);
	return m && m->source == SONDE_SOURCE_ABSENT && m->reason ? m->reason : "";
}

static enum sonde_source source_at(struct sonde_target *t, uint64_t addr)
{
	const struct sonde_mapping *m = sonde_target_mapping_find(t, addr);
	return m ? m->source : 99;
}

static void a_kernel_core(void)
{
	for (int pie = 0; pie < 2; pie++) {
		struct exe x = exe_of(id_a, NULL, 't', pie ? ET_DYN : ET_EXEC);
		uint64_t base = pie ? PIE_BASE : BASE;
		CORE c;
		start_core(&c, &x, build_file("k/prog", x.image, EXE_BYTES));
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		struct sonde_core_options o = {.notes = &notes};
		sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
		REQUIRE_OK(sonde_core_file_open(write_core(&c, "k/core"), &o, &t));

		const struct sonde_process_info *i = sonde_target_info(t);
		CHECK_EQ(i->machine, EM_X86_64);
		CHECK_EQ(i->pid, 100);
		CHECK_EQ(i->ppid, 99);
		CHECK_EQ(i->uid, 1000);
		CHECK_EQ(i->gid, 1001);
		CHECK_STR(i->program, "prog");
		CHECK_STR(i->args, "./prog -x");
		CHECK_EQ(i->signal, 11);
		CHECK_EQ(i->signal_code, 1);
		CHECK_EQ(i->fault_addr, 0xdead0);
		CHECK_EQ(i->clk_tck, 100);
		CHECK_EQ(i->entry, base + 0x1010);
		CHECK_EQ(i->interpreter_base, 0x7f0000);
		CHECK_STR(i->execfn, "./prog");
		size_t n;
		const struct sonde_thread *th = sonde_target_threads(t, &n);
		REQUIRE(n == 2);
		CHECK(th[0].tid == 100 && th[1].tid == 101);
		CHECK_EQ(sonde_regs_pc(&th[1].regs), base + 0x1030);
		CHECK_EQ(th[0].regs.fs_base, 0x7f00);

		CHECK(sonde_target_exe(t, NULL));
		CHECK_STR(sonde_target_exe_path(t), build_path("k/prog"));
		CHECK_EQ(sonde_target_exe_bias(t), pie ? PIE_BASE : 0);
		CHECK_EQ(sonde_target_exe_buildid(t)->len, 4);

		const struct sonde_mapping *m = sonde_target_mappings(t, &n);
		REQUIRE(n == 7);
		const enum sonde_source sources[] = {SONDE_SOURCE_CORE, SONDE_SOURCE_FILE,
			SONDE_SOURCE_CORE, SONDE_SOURCE_ZERO, SONDE_SOURCE_CORE, SONDE_SOURCE_ZERO,
			SONDE_SOURCE_ABSENT};
		for (size_t k = 0; k < n; k++) {
			CHECK_EQ(m[k].source, sources[k]);
			CHECK(!k || m[k - 1].end <= m[k].start);
		}
		CHECK_EQ(m[1].file_offset, PAGE);
		CHECK_EQ(sonde_target_present_bytes(t, &m[1]), 2 * PAGE);
		CHECK_STR(m[1].path, build_path("k/prog"));
		CHECK_EQ(m[1].perm, SONDE_PERM_R | SONDE_PERM_X);
		CHECK(strstr(m[6].reason, "no access rights"));

		CHECK_EQ(byte_at(t, base + 1), 'E');
		CHECK_EQ(byte_at(t, base + PAGE), 't');
		CHECK_EQ(byte_at(t, base + TEXT_PAGES * PAGE), 'D');
		CHECK_EQ(byte_at(t, base + (TEXT_PAGES + 1) * PAGE + 5), 0);
		CHECK_EQ(byte_at(t, HEAP + PAGE), 'h');
		CHECK_EQ(byte_at(t, HEAP + 4 * PAGE - 1), 0);
		CHECK_EQ(byte_at(t, HEAP + 4 * PAGE), '?');
		/* Adjacent segments and files are contiguous here too. */
		const uint8_t *p = sonde_target_bytes(t, base, (TEXT_PAGES + 2) * PAGE);
		CHECK(p && p[1] == 'E' && p[PAGE] == 't' && p[3 * PAGE] == 'D' && !p[4 * PAGE]);
		CHECK(sonde_target_bytes(t, HEAP, 4 * PAGE));
		CHECK(!sonde_target_bytes(t, HEAP, 4 * PAGE + 1));
		CHECK_EQ(notes.entries.n, 0);
	}
}

static void notes_of_32_bits(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, b = {0}, tls = {0};
	const uint64_t slots[17] = {[10] = 0x33, [12] = 0x8048010, [15] = 0xbffff000};
	build_prstatus(&notes, EM_386, 200, 8, slots, 17);
	build_u32(&tls, 0x33 >> 3);
	build_u32(&tls, 0xb7001000);
	build_u64(&tls, 0);
	build_note(&notes, "LINUX", 6, 0x200, tls.data, tls.len);
	build_psinfo(&notes, 4, 200, "sixteen-bytes-16", "args");
	build_siginfo(&notes, 4, 8, 1, 0x8048010);
	const uint64_t auxv[][2] = {{AT_ENTRY, 0x8048000}, {AT_CLKTCK, 100}, {0, 0}};
	build_auxv(&notes, 4, auxv);
	const struct build_vma v = {0x8048000, 0x8049000, 1, "/nonexistent/prog"};
	build_nt_file(&notes, 4, &v, 1);
	struct build_elf e = {.type = ET_CORE, .word_bytes = 4};
	build_segment(&e, PT_NOTE, 0, 0, notes.data, notes.len);
	build_segment(&e, PT_LOAD, PF_R, 0xffffd000, "\1\2\3\4\5", 5)->align = PAGE;
	build_elf_write(&e, &b);
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(build_file_of("core32", &b), NULL, &t));
	const struct sonde_process_info *i = sonde_target_info(t);
	CHECK_EQ(i->word_bytes, 4);
	CHECK_EQ(i->pid, 200);
	CHECK_EQ(i->uid, 1000);
	CHECK_STR(i->program, "sixteen-bytes-16");
	CHECK_EQ(i->fault_addr, 0x8048010);
	CHECK_EQ(i->entry, 0x8048000);
	size_t n;
	const struct sonde_thread *th = sonde_target_threads(t, &n);
	REQUIRE(n == 1);
	CHECK_EQ(sonde_regs_pc(&th[0].regs), 0x8048010);
	CHECK_EQ(th[0].regs.tls, 0xb7001000);
	uint64_t word;
	CHECK(sonde_target_read_word(t, 0xffffd000, &word) && word == 0x04030201);
	CHECK(!sonde_target_read_word(t, 0xffffd002, &word));
	CHECK(strstr(reason_at(t, 0x8048000), "/nonexistent/prog: No such file"));
}

static void notes_of_arm64(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf notes = {0}, b = {0};
	uint64_t slots[34] = {[29] = 1, [30] = 2, [31] = 3, [32] = 4}, tls = 0x7777;
	build_prstatus(&notes, EM_AARCH64, 300, 6, slots, 34);
	build_note(&notes, "LINUX", 6, 0x401, &tls, 8);
	build_siginfo(&notes, 8, 6, -6, 300);
	struct build_elf e = {.type = ET_CORE, .machine = EM_AARCH64};
	build_segment(&e, PT_NOTE, 0, 0, notes.data, notes.len);
	build_elf_write(&e, &b);
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(build_file_of("core-arm64", &b), NULL, &t));
	size_t n;
	const struct sonde_thread *th = sonde_target_threads(t, &n);
	REQUIRE(n == 1);
	CHECK_EQ(sonde_regs_pc(&th[0].regs), 4);
	CHECK_EQ(th[0].regs.tls, 0x7777);
	CHECK_EQ(sonde_target_info(t)->signal_pid, 300);
	CHECK_EQ(sonde_target_info(t)->fault_addr, 0);
}

static void siginfo_of_a_debugger_is_no_cause(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC);
	CORE c;
	start_core(&c, &x, NULL);
	c.notes.len = 0;
	build_prstatus(&c.notes, EM_X86_64, 1, 0, NULL, 0);
	build_siginfo(&c.notes, 8, 19, 128, 0);
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "gcore"), NULL, &t));
	CHECK_EQ(sonde_target_info(t)->signal, 0);
	CHECK(!sonde_target_info(t)->has_siginfo);
}

/* --- mapped files --- */

static void a_file_that_changed(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC), y = exe_of(id_b, NULL, 'w', ET_EXEC);
	CORE c;
	start_core(&c, &x, build_file("chg/prog", y.image, EXE_BYTES));
	const char *core = write_core(&c, "chg-core");
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	struct sonde_core_options o = {.notes = &notes, .debug_dirs = build_path("none")};
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(core, &o, &t));
	CHECK_EQ(source_at(t, BASE + PAGE), SONDE_SOURCE_ABSENT);
	CHECK(strstr(reason_at(t, BASE + PAGE),
		"has build-id bb010203, the process had build-id aa010203"));
	CHECK_EQ(byte_at(t, BASE + PAGE), '?');
	CHECK_EQ(byte_at(t, BASE), 0x7f);
	const char *why;
	CHECK(!sonde_target_exe(t, &why));
	REQUIRE(why);
	CHECK(strstr(why, "bb010203") && strstr(why, "wanted build-id aa010203") &&
		strstr(why, "--exe") && !strchr(why, '\n'));
	CHECK(note_of(&notes, "memory that cannot be read") &&
		note_of(&notes, "memory that cannot be read")->amount == 2 * PAGE);

	/* Given by name it is refused. */
	o.exe = build_path("chg/prog");
	struct sonde_target *none = NULL;
	CHECK_ERROR(sonde_core_file_open(core, &o, &none), SONDE_MISMATCH,
		"has build-id bb010203, the process had build-id aa010203");
	o.exe = build_path("chg/nothing");
	CHECK_ERROR(sonde_core_file_open(core, &o, &none), SONDE_OS, "nothing: No such file");
	o.exe = core;
	CHECK_ERROR(sonde_core_file_open(core, &o, &none), SONDE_MISMATCH,
		"is no executable (ELF type 4)");
	/* The right one by another name. */
	o.exe = build_file("chg/other-name", x.image, EXE_BYTES);
	sonde_target_free(sonde_take(t));
	REQUIRE_OK(sonde_core_file_open(core, &o, &t));
	CHECK_EQ(byte_at(t, BASE + PAGE), 't');
	const struct sonde_mapping *m = sonde_target_mapping_find(t, BASE + PAGE);
	CHECK_STR(m->from, build_path("chg/other-name"));
	CHECK_STR(m->path, build_path("chg/prog"));
}

static void identity_by_go_build_id(void)
{
	struct exe x = exe_of(NULL, "one/two", 't', ET_EXEC),
		   y = exe_of(NULL, "one/three", 't', ET_EXEC);
	for (int right = 0; right < 2; right++) {
		CORE c;
		start_core(&c, &x, build_file("go/prog", right ? x.image : y.image, EXE_BYTES));
		sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
		REQUIRE_OK(sonde_core_file_open(write_core(&c, "go-core"), NULL, &t));
		CHECK_STR(sonde_target_exe_gobuildid(t), "one/two");
		CHECK_EQ(byte_at(t, BASE + PAGE), right ? 't' : '?');
		if (!right)
			CHECK(strstr(reason_at(t, BASE + PAGE),
				"has Go build id one/three, the process had Go build id one/two"));
	}
}

static void identity_by_content(void)
{
	struct exe x = exe_of(NULL, NULL, 't', ET_EXEC), y = exe_of(NULL, NULL, 'w', ET_EXEC);
	for (int right = 0; right < 2; right++) {
		CORE c;
		start_core(&c, &x, build_file("plain/prog", right ? x.image : y.image, EXE_BYTES));
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		struct sonde_core_options o = {.notes = &notes};
		sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
		REQUIRE_OK(sonde_core_file_open(write_core(&c, "plain-core"), &o, &t));
		CHECK_EQ(byte_at(t, BASE + PAGE), right ? 't' : '?');
		if (!right)
			CHECK(strstr(reason_at(t, BASE + PAGE),
				"differs from what the process had mapped, at file offset 0x0"));
		CHECK(!note_of(&notes, "without proof"));
	}
	/* Nothing in the core to compare: taken, and counted. */
	CORE c;
	start_core(&c, &x, build_file("plain/prog", x.image, EXE_BYTES));
	c.e.segments[0].len = 0;
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	struct sonde_core_options o = {.notes = &notes};
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "plain-core"), &o, &t));
	CHECK_EQ(byte_at(t, BASE + PAGE), 't');
	CHECK(note_of(&notes, "executable taken without proof"));
}

static void sysroot_goes_first(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC), y = exe_of(id_b, NULL, 'w', ET_EXEC);
	CORE c;
	start_core(&c, &x, "/opt/nonexistent/prog");
	const char *core = write_core(&c, "sys-core");
	char root[512];
	snprintf(root, sizeof(root), "%s", build_path("root"));
	struct sonde_core_options o = {.sysroot = root};
	build_file("root/opt/nonexistent/prog", x.image, EXE_BYTES);
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(core, &o, &t));
	CHECK_EQ(byte_at(t, BASE + PAGE), 't');
	CHECK(sonde_target_exe(t, NULL));
	/* A wrong one there: the search goes on, and finds it beside the core. */
	build_file("root/opt/nonexistent/prog", y.image, EXE_BYTES);
	build_file("prog", x.image, EXE_BYTES);
	sonde_target_free(sonde_take(t));
	REQUIRE_OK(sonde_core_file_open(core, &o, &t));
	CHECK_STR(sonde_target_exe_path(t), build_path("prog"));
	CHECK_EQ(byte_at(t, BASE + PAGE), 't');
	unlink(build_path("prog"));
	/* By its build-id. */
	build_file("dbg/.build-id/aa/010203", x.image, EXE_BYTES);
	char dirs[512];
	snprintf(dirs, sizeof(dirs), "%s", build_path("dbg"));
	o.debug_dirs = dirs;
	sonde_target_free(sonde_take(t));
	REQUIRE_OK(sonde_core_file_open(core, &o, &t));
	CHECK_STR(sonde_target_exe_path(t), build_path("dbg/.build-id/aa/010203"));
}

static void another_entry_point(void)
{
	/* No build-id, the same first page but for the entry point: only the auxiliary vector can tell. */
	struct exe x = exe_of(NULL, NULL, 't', ET_EXEC);
	CORE c;
	start_core(&c, &x, "/nonexistent/prog");
	c.e.segments[0].len = 0;
	struct exe y = x;
	y.image[24] ^= 0x40;
	struct sonde_core_options o = {.exe = build_file("entry/prog", y.image, EXE_BYTES)};
	struct sonde_target *t = NULL;
	CHECK_ERROR(sonde_core_file_open(write_core(&c, "entry-core"), &o, &t), SONDE_MISMATCH,
		"entry point 0x401050 is not the process's 0x401010");
	/* A separate debug file. */
	struct build_elf d = {.type = ET_EXEC};
	build_section(&d, ".text", SHT_NOBITS, NULL, 100)->flags = SHF_ALLOC | SHF_EXECINSTR;
	sonde_cleanup(sonde_buf) struct sonde_buf debug = {0};
	build_elf_write(&d, &debug);
	o.exe = build_file_of("entry/debug", &debug);
	CHECK_ERROR(sonde_core_file_open(build_path("entry-core"), &o, &t), SONDE_MISMATCH,
		"debug holds debug information only");
	/* Another machine. */
	struct build_elf e = {.type = ET_EXEC, .machine = EM_AARCH64};
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_elf_write(&e, &b);
	o.exe = build_file_of("entry/arm", &b);
	CHECK_ERROR(sonde_core_file_open(build_path("entry-core"), &o, &t), SONDE_MISMATCH,
		"is a arm64 64-bit file, the core of a x86-64 64-bit process");
}

/* Opening a device may do something: a core must not be able to ask for it. A FIFO would show it by its reader. */
static void paths_that_are_no_files(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC);
	CORE c;
	const char *fifo = build_path("fifo");
	REQUIRE(!mkfifo(fifo, 0666));
	start_core(&c, &x, fifo);
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "fifo-core"), NULL, &t));
	CHECK(strstr(reason_at(t, BASE + PAGE), "fifo is not a regular file"));
	const char *why;
	CHECK(!sonde_target_exe(t, &why) && strstr(why, "fifo: not a regular file"));
	CORE d;
	start_core(&d, &x, build_dir());
	sonde_target_free(sonde_take(t));
	REQUIRE_OK(sonde_core_file_open(write_core(&d, "dir-core"), NULL, &t));
	CHECK(strstr(reason_at(t, BASE + PAGE), "Is a directory"));
}

static void no_nt_file(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_DYN);
	CORE c;
	start_core(&c, &x, NULL);
	struct sonde_core_options o = {.exe = build_file("qemu/prog", x.image, EXE_BYTES)};
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "qemu-core"), &o, &t));
	CHECK_EQ(sonde_target_exe_bias(t), PIE_BASE);
	CHECK_EQ(byte_at(t, PIE_BASE + PAGE), 't');
	CHECK_EQ(byte_at(t, PIE_BASE + TEXT_PAGES * PAGE), 'D');
	/* Without the option it is found as AT_EXECFN has it, beside the core. */
	o.exe = NULL;
	build_file("prog", x.image, EXE_BYTES);
	sonde_target_free(sonde_take(t));
	REQUIRE_OK(sonde_core_file_open(build_path("qemu-core"), &o, &t));
	CHECK_STR(sonde_target_exe_path(t), build_path("prog"));
	unlink(build_path("prog"));
}

static void file_shorter_than_its_mapping(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC);
	CORE c;
	start_core(&c, &x, build_file("short/prog", x.image, PAGE + 100));
	c.e.segments[1].len = 0;
	c.e.segments[1].mem_bytes = PAGE;
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "short-core"), NULL, &t));
	CHECK_EQ(byte_at(t, BASE + PAGE + 99), 't');
	CHECK_EQ(byte_at(t, BASE + PAGE + 100), 0); /* the rest of a file's last page */
	CHECK_EQ(byte_at(t, BASE + 2 * PAGE), '?');
	CHECK(strstr(reason_at(t, BASE + 2 * PAGE), "beyond the end of "));
	CHECK(strstr(reason_at(t, BASE + 3 * PAGE), "beyond the end of "));
}

/* --- odd and damaged cores --- */

static void truncated_at_many_places(void)
{
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC);
	CORE c;
	start_core(&c, &x, "/nonexistent/prog");
	write_core(&c, "whole");
	size_t whole = c.bytes.len;
	const size_t cuts[] = {0, 1, 4, 17, 63, 64, 100, 64 + 56, 64 + 56 * 3, 700,
		64 + 56 * 6 + 100, PAGE, PAGE + 1, 2 * PAGE, 2 * PAGE + 100, 3 * PAGE, 4 * PAGE - 1,
		whole - PAGE, whole - 1, whole};
	for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
		sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
		struct sonde_core_options o = {.notes = &notes};
		sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
		struct sonde_error *err =
			sonde_core_file_open(build_file("cut", c.bytes.data, cuts[i]), &o, &t);
		if (cuts[i] < 64 + 56) {
			CHECK(err && (err->code == SONDE_TRUNCATED || err->code == SONDE_BAD_DATA));
			CHECK(err && strstr(err->message, "cut"));
		} else if (!err) {
			CHECK(cuts[i] == whole || note_of(&notes, "truncated"));
			/* Every byte that is said to be readable is; the rest says why. */
			size_t n;
			const struct sonde_mapping *m = sonde_target_mappings(t, &n);
			for (size_t k = 0; k < n; k++)
				for (uint64_t a = m[k].start; a < m[k].end; a += 64)
					CHECK((byte_at(t, a) != '?') ==
						(m[k].source != SONDE_SOURCE_ABSENT));
		}
		if (cuts[i] == whole - 1) {
			const struct sonde_note_entry *e = note_of(&notes, "bytes missing");
			REQUIRE(e);
			CHECK_EQ(e->amount, 1);
			CHECK(strstr(e->first, "truncated by 1 bytes"));
			CHECK_STR(reason_at(t, HEAP + 2 * PAGE - 1), "the core file is truncated");
			CHECK_EQ(byte_at(t, HEAP + 2 * PAGE - 2), 'h');
		}
		sonde_error_free(err);
	}
}

static void what_is_no_core(void)
{
	struct sonde_target *t = NULL;
	struct exe x = exe_of(id_a, NULL, 't', ET_EXEC);
	CHECK_ERROR(sonde_core_file_open(build_file("prog", x.image, EXE_BYTES), NULL, &t),
		SONDE_BAD_DATA, "prog: not a core dump: it is an ELF executable");
	CHECK_ERROR(sonde_core_file_open(build_file("z", "PK\3\4....", 8), NULL, &t),
		SONDE_BAD_DATA, "z: not a core dump: it is a zip archive");
	CHECK_ERROR(sonde_core_file_open(build_file("e", "", 0), NULL, &t), SONDE_BAD_DATA,
		"e: not a core dump: it is an empty file");
	CHECK_ERROR(sonde_core_file_open(build_file("txt", "hello\n", 6), NULL, &t), SONDE_BAD_DATA,
		"txt: not a core dump: it is 6 bytes of text");
	CHECK_ERROR(sonde_core_file_open(build_file("hdr", x.image, 40), NULL, &t), SONDE_TRUNCATED,
		"hdr: ends inside its ELF header, at 40 bytes");
	CHECK_ERROR(sonde_core_file_open(build_path("absent"), NULL, &t), SONDE_OS,
		"absent: No such file");
	CHECK_ERROR(sonde_core_file_open(build_dir(), NULL, &t), SONDE_OS, "Is a directory");
	CHECK_ERROR(sonde_core_file_open("/dev/null", NULL, &t), SONDE_UNSUPPORTED,
		"/dev/null: not a regular file");
	const struct {
		uint16_t machine;
		unsigned word_bytes;
		bool big_endian;
		const char *text;
	} others[] = {{EM_S390, 8, true, "a core of a s390x process"},
		{EM_PPC64, 8, false, "a core of a ppc64 process"},
		{EM_ARM, 4, false, "a core of a arm process"},
		{999, 8, false, "a core of a machine 999 process"},
		{EM_AARCH64, 8, true, "big-endian arm64"},
		{EM_X86_64, 4, false, "a 32-bit core of a x86-64 process"}};
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
		struct build_elf e = {.type = ET_CORE,
			.machine = others[i].machine,
			.word_bytes = others[i].word_bytes,
			.big_endian = others[i].big_endian};
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		build_segment(&e, PT_LOAD, PF_R, 0x1000, "x", 1);
		build_elf_write(&e, &b);
		CHECK_ERROR(sonde_core_file_open(build_file_of("other", &b), NULL, &t),
			SONDE_UNSUPPORTED, others[i].text);
	}
	struct build_elf e = {.type = ET_CORE};
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	build_elf_write(&e, &b);
	CHECK_ERROR(sonde_core_file_open(build_file_of("bare", &b), NULL, &t), SONDE_TRUNCATED,
		"no program headers");
}

static void unreadable_file(void)
{
	const char *path = build_file("secret", "x", 1);
	chmod(path, 0);
	if (!access(path, R_OK)) {
		/* As root: nobody. */
		pid_t child = fork();
		if (!child) {
			struct sonde_target *t = NULL;
			if (setuid(65534))
				_exit(77);
			struct sonde_error *err = sonde_core_file_open(path, NULL, &t);
			_exit(!(err && err->code == SONDE_OS &&
				strstr(err->message, "Permission denied")));
		}
		int status;
		waitpid(child, &status, 0);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			SKIP("cannot become another user");
		CHECK_EQ(status, 0);
		return;
	}
	struct sonde_target *t = NULL;
	CHECK_ERROR(sonde_core_file_open(path, NULL, &t), SONDE_OS, "Permission denied");
}

/* gdb's gcore: offsets that are not congruent to addresses, segments one behind the other in the file. */
static void segments_out_of_step(void)
{
	static uint8_t a[3 * PAGE], b[2 * PAGE], d[PAGE];
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	memset(d, 'd', sizeof(d));
	CORE c = {.e = {.type = ET_CORE}};
	struct build_segment *s = build_segment(&c.e, PT_LOAD, PF_R, HEAP, a, sizeof(a));
	s->offset = 0x628;
	s->align = 1;
	s = build_segment(&c.e, PT_LOAD, PF_R | PF_W, HEAP + 3 * PAGE, b, sizeof(b));
	s->offset = 0x628 + 3 * PAGE;
	s->align = 1;
	/* Adjacent in memory, elsewhere in the file: readable, not in one piece. */
	s = build_segment(&c.e, PT_LOAD, PF_R | PF_W, HEAP + 5 * PAGE, d, sizeof(d));
	s->offset = 0x628 + 7 * PAGE;
	s->align = 1;
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "gdb-core"), NULL, &t));
	const uint8_t *p = sonde_target_bytes(t, HEAP, 5 * PAGE);
	CHECK(p && p[0] == 'a' && p[3 * PAGE - 1] == 'a' && p[3 * PAGE] == 'b' &&
		p[5 * PAGE - 1] == 'b');
	CHECK(!sonde_target_bytes(t, HEAP, 5 * PAGE + 1));
	uint8_t both[2 * PAGE];
	CHECK(sonde_target_read(t, HEAP + 4 * PAGE, both, sizeof(both)) && both[PAGE - 1] == 'b' &&
		both[PAGE] == 'd');
	CHECK_EQ(byte_at(t, HEAP + 6 * PAGE), '?');
}

static void overlaps_and_nonsense(void)
{
	static uint8_t a[2 * PAGE], b[2 * PAGE];
	memset(a, 'a', sizeof(a));
	memset(b, 'b', sizeof(b));
	CORE c = {.e = {.type = ET_CORE}};
	build_segment(&c.e, PT_LOAD, PF_R, HEAP + PAGE, b, sizeof(b));
	build_segment(&c.e, PT_LOAD, PF_R, HEAP, a, sizeof(a));
	build_segment(&c.e, PT_LOAD, PF_R, HEAP + PAGE, a, PAGE); /* nothing of it is left */
	build_segment(&c.e, PT_LOAD, PF_R, UINT64_MAX - PAGE, a, sizeof(a)); /* wraps around */
	build_segment(&c.e, PT_LOAD, PF_R, 0x1000, NULL, 0)->mem_bytes = UINT64_C(1)
		<< 62; /* vast, zeros */
	build_segment(&c.e, PT_LOAD, PF_R, 0x1000, NULL, 0)->file_bytes =
		UINT64_MAX - 0x2000; /* vast, promised */
	const struct build_vma v[] = {{HEAP, HEAP + PAGE, 0, "/nonexistent/a"},
		{HEAP + 100, HEAP + 2 * PAGE, 0, "/nonexistent/b"}};
	build_nt_file(&c.notes, 8, v, 2);
	build_prstatus(&c.notes, EM_X86_64, 1, 11, NULL, 0);
	build_note(&c.notes, "CORE", 5, 1, "short", 5);
	build_note(&c.notes, "CORE", 5, 3, "short", 5);
	build_note(&c.notes, "CORE", 5, 0x53494749, "short", 5);
	build_note(&c.notes, "CORE", 5, 6, "short", 5);
	build_u32(&c.notes, UINT32_MAX);
	build_zeros(&c.notes, 8);
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	struct sonde_core_options o = {.notes = &notes};
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(write_core(&c, "odd-core"), &o, &t));
	CHECK(note_of(&notes, "segments that overlap"));
	CHECK(note_of(&notes, "it makes no sense"));
	CHECK(note_of(&notes, "file mappings dropped"));
	CHECK(note_of(&notes, "note not understood") &&
		note_of(&notes, "note not understood")->count == 3);
	CHECK(note_of(&notes, "notes cut short"));
	size_t n;
	const struct sonde_mapping *m = sonde_target_mappings(t, &n);
	for (size_t i = 1; i < n; i++)
		CHECK(m[i - 1].end <= m[i].start);
	/* Zeros too vast to map are read all the same. */
	CHECK_EQ(byte_at(t, UINT64_C(1) << 60), 0);
	CHECK(!sonde_target_bytes(t, UINT64_C(1) << 60, 1));
}

static void sparse_and_large(void)
{
	enum { SIZE = 1 << 30 };
	CORE c = {.e = {.type = ET_CORE}};
	struct build_segment *s = build_segment(&c.e, PT_LOAD, PF_R | PF_W, HEAP, NULL, 0);
	s->offset = PAGE;
	s->file_bytes = SIZE;
	build_prstatus(&c.notes, EM_X86_64, 1, 11, NULL, 0);
	const char *path = write_core(&c, "sparse");
	int fd = open(path, O_RDWR);
	REQUIRE(fd >= 0 && !ftruncate(fd, SIZE + PAGE));
	CHECK(pwrite(fd, "first", 5, PAGE) == 5);
	CHECK(pwrite(fd, "middle", 6, PAGE + SIZE / 2) == 6);
	CHECK(pwrite(fd, "end", 3, PAGE + SIZE - 3) == 3);
	close(fd);
	sonde_cleanup(sonde_target) struct sonde_target *t = NULL;
	REQUIRE_OK(sonde_core_file_open(path, NULL, &t));
	const uint8_t *p = sonde_target_bytes(t, HEAP, SIZE);
	REQUIRE(p);
	CHECK(!memcmp(p, "first", 5) && !memcmp(p + SIZE / 2, "middle", 6) &&
		!memcmp(p + SIZE - 3, "end", 3));
	for (size_t at = PAGE; at < SIZE / 2; at += 1 << 20)
		CHECK(!p[at]);
	const struct sonde_mapping *m = sonde_target_mapping_find(t, HEAP);
	uint64_t present = sonde_target_present_bytes(t, m);
	CHECK(present >= 3 * PAGE && present < SIZE / 4);
	/* Looking at a hole reads nothing of the file. */
	struct stat st;
	CHECK(!stat(path, &st) && st.st_blocks < 1 << 12);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif

static void too_little_address_space(void)
{
	if (SANITIZED)
		SKIP("the sanitizer needs address space of its own");
	CORE c = {.e = {.type = ET_CORE}};
	build_segment(&c.e, PT_LOAD, PF_R, HEAP, NULL, 0)->mem_bytes = UINT64_C(2) << 30;
	build_segment(&c.e, PT_LOAD, PF_R, HEAP + (UINT64_C(40) << 30), "far", 3);
	build_prstatus(&c.notes, EM_X86_64, 1, 11, NULL, 0);
	const char *path = write_core(&c, "wide");
	for (int fits = 0; fits < 2; fits++) {
		pid_t child = fork();
		if (!child) {
			/* Room for the ranges, not for the gap between them; or not even for them. */
			struct rlimit l = {
				UINT64_C(1) << (fits ? 32 : 30), UINT64_C(1) << (fits ? 32 : 30)};
			setrlimit(RLIMIT_AS, &l);
			struct sonde_target *t = NULL;
			struct sonde_error *err = sonde_core_file_open(path, NULL, &t);
			bool right = fits ? !err
					  : err && err->code == SONDE_NO_MEMORY &&
					strstr(err->message, "(ulimit -v)");
			if (!right)
				printf("# %s\n", err ? err->message : "no error");
			fflush(stdout);
			_exit(!right);
		}
		int status;
		waitpid(child, &status, 0);
		CHECK_EQ(status, 0);
	}
}

int main(void)
{
	RUN(a_kernel_core);
	RUN(notes_of_32_bits);
	RUN(notes_of_arm64);
	RUN(siginfo_of_a_debugger_is_no_cause);
	RUN(a_file_that_changed);
	RUN(identity_by_go_build_id);
	RUN(identity_by_content);
	RUN(sysroot_goes_first);
	RUN(another_entry_point);
	RUN(paths_that_are_no_files);
	RUN(no_nt_file);
	RUN(file_shorter_than_its_mapping);
	RUN(truncated_at_many_places);
	RUN(what_is_no_core);
	RUN(unreadable_file);
	RUN(segments_out_of_step);
	RUN(overlaps_and_nonsense);
	RUN(sparse_and_large);
	RUN(too_little_address_space);
	return tap_end();
}
