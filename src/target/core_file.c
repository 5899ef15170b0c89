#include "target/core_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include "base/mapfile.h"
#include "target/core_parts.h"
#include "target/inflate.h"

enum { HOLE_STEP_BYTES = 1 << 20, MAX_TEXT_BYTES = 4096 };
SONDE_DEFINE_VEC(window_pieces, struct sonde_window_piece)

static const char no_access[] = "no access rights: a guard or a reservation";
static const char core_cut[] = "the core file is truncated";

static void finish_opening(struct sonde_core_file *core)
{
	sonde_core_pieces_deinit(&core->pieces);
	sonde_core_holes_deinit(&core->holes);
	sonde_core_images_close(&core->images);
	sonde_vmas_free(sonde_take(core->vmas));
}

static void core_free(struct sonde_target *t)
{
	struct sonde_core_file *core = (struct sonde_core_file *)t;
	finish_opening(core);
	if (core->fd >= 0)
		close(core->fd);
	sonde_windows_free(core->windows);
	free(core);
}

/* Zero ranges too large for a window. */
static size_t core_read_some(struct sonde_target *t, uint64_t addr, void *to, size_t len)
{
	const struct sonde_mapping *m = sonde_target_mapping_find(t, addr);
	if (!m || m->source != SONDE_SOURCE_ZERO)
		return 0;
	size_t n = sonde_min((uint64_t)len, m->end - addr);
	memset(to, 0, n);
	return n;
}

static uint64_t core_present_bytes(const struct sonde_target *t, const struct sonde_mapping *m)
{
	const struct sonde_core_file *core = (const struct sonde_core_file *)t;
	uint64_t at = m->core_offset, end = at + (m->end - m->start), sum = 0;
	while (at < end) {
		off_t data = lseek(core->fd, (off_t)at, SEEK_DATA);
		if (data < 0)
			return errno == ENXIO ? sum : m->end - m->start;
		off_t hole = (uint64_t)data < end ? lseek(core->fd, data, SEEK_HOLE) : -1;
		if (hole <= data)
			return sum;
		sum += sonde_min((uint64_t)hole, end) - (uint64_t)data;
		at = (uint64_t)hole;
	}
	return sum;
}

static const struct sonde_target_ops core_ops = {
	.read_some = core_read_some,
	.present_bytes = core_present_bytes,
	.free = core_free,
};

size_t sonde_core_piece_at(const struct sonde_core_file *core, uint64_t addr)
{
	size_t lo = 0, hi = core->pieces.n;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (core->pieces.items[mid].m.end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

size_t sonde_core_peek(const struct sonde_core_file *core, uint64_t addr, void *to, size_t len)
{
	size_t done = 0;
	for (size_t i = sonde_core_piece_at(core, addr); i < core->pieces.n && done < len; i++) {
		const struct sonde_mapping *m = &core->pieces.items[i].m;
		uint64_t from = addr + done;
		if (m->source != SONDE_SOURCE_CORE || m->start > from)
			break;
		size_t n = sonde_min((uint64_t)(len - done), m->end - from);
		ssize_t got = pread(core->fd, (char *)to + done, n,
			(off_t)(m->core_offset + (from - m->start)));
		if (got <= 0)
			break;
		done += (size_t)got;
		if ((size_t)got < n)
			break;
	}
	return done;
}

/* A text of the process, in the arena; "" where it is not readable. */
static const char *peek_text(struct sonde_core_file *core, uint64_t addr)
{
	char text[MAX_TEXT_BYTES];
	size_t got = addr ? sonde_core_peek(core, addr, text, sizeof(text) - 1) : 0;
	text[got] = 0;
	return sonde_arena_strdup(&core->target.arena, text);
}

/* --- what the core file holds --- */

static struct sonde_error *check_core(struct sonde_core_file *core, const struct sonde_elf *elf)
{
	static const char *const types[] = {[ET_NONE] = "ELF file of no type",
		[ET_REL] = "ELF object file",
		[ET_EXEC] = "ELF executable",
		[ET_DYN] = "ELF executable or shared library"};
	char text[32];
	const struct sonde_machine *m = sonde_machine_find(elf->machine);
	if (elf->type != ET_CORE) {
		if (elf->type < SONDE_ARRAY_LEN(types))
			return sonde_error_new(SONDE_BAD_DATA, "%s: not a core dump: it is an %s",
				core->path, types[elf->type]);
		return sonde_error_new(SONDE_BAD_DATA,
			"%s: not a core dump: it is an ELF file of type %u", core->path, elf->type);
	}
	if (!m)
		return sonde_error_new(SONDE_UNSUPPORTED,
			"%s: a core of a %s process: only x86-64, i386 and arm64 are read",
			core->path, sonde_elf_machine_name(elf->machine, text));
	if (elf->big_endian)
		return sonde_error_new(SONDE_UNSUPPORTED, "%s: a core of a big-endian %s process",
			core->path, sonde_elf_machine_name(elf->machine, text));
	if (elf->word_bytes != m->word_bytes)
		return sonde_error_new(SONDE_UNSUPPORTED, "%s: a %u-bit core of a %s process",
			core->path, elf->word_bytes * 8,
			sonde_elf_machine_name(elf->machine, text));
	if (!elf->n_segments)
		return sonde_error_new(SONDE_TRUNCATED,
			"%s: the core has no program headers within its %" PRIu64 " bytes",
			core->path, elf->size_bytes);
	return NULL;
}

static int by_start(const void *a, const void *b)
{
	const struct sonde_core_piece *x = a, *y = b;
	if (x->m.start != y->m.start)
		return x->m.start < y->m.start ? -1 : 1;
	return x->m.core_offset < y->m.core_offset ? -1 : x->m.core_offset > y->m.core_offset;
}

/* One segment as up to three pieces: in the core, cut off, left out. */
static struct sonde_error *add_segment(
	struct sonde_core_file *core, const struct sonde_elf_segment *s, uint64_t *cut_bytes)
{
	uint64_t size = sonde_max(s->mem_bytes, s->file_bytes), end;
	if (s->type != PT_LOAD || !size)
		return NULL;
	if (__builtin_add_overflow(s->addr, size, &end) || s->offset > UINT64_MAX - s->file_bytes) {
		sonde_notes_add(core->options.notes, "core segment dropped: it makes no sense",
			size, "0x%" PRIx64 ", %" PRIu64 " bytes", s->addr, size);
		return NULL;
	}
	uint64_t there = s->offset >= core->size_bytes
		? 0
		: sonde_min(s->file_bytes, core->size_bytes - s->offset);
	const struct sonde_core_piece parts[] = {
		{.m = {.start = s->addr,
			 .end = s->addr + there,
			 .source = SONDE_SOURCE_CORE,
			 .core_offset = s->offset},
			.left = SONDE_CORE_PRESENT},
		{.m = {.start = s->addr + there,
			 .end = s->addr + s->file_bytes,
			 .source = SONDE_SOURCE_ABSENT,
			 .reason = core_cut},
			.left = SONDE_CORE_CUT},
		{.m = {.start = s->addr + s->file_bytes, .end = end, .source = SONDE_SOURCE_ABSENT},
			.left = SONDE_CORE_LEFT_OUT},
	};
	for (size_t i = 0; i < SONDE_ARRAY_LEN(parts); i++) {
		struct sonde_core_piece p = parts[i];
		if (p.m.start == p.m.end)
			continue;
		p.m.perm = s->flags & (SONDE_PERM_R | SONDE_PERM_W | SONDE_PERM_X);
		p.perm_known = true;
		p.fd = -1;
		if (!sonde_core_pieces_push(&core->pieces, p))
			return &sonde_enomem;
	}
	if (there < s->file_bytes)
		*cut_bytes = sonde_max(*cut_bytes, s->offset + s->file_bytes - core->size_bytes);
	return NULL;
}

/* Move p's start up to `to`. */
static void cut_front(struct sonde_core_piece *p, uint64_t to)
{
	if (p->m.source == SONDE_SOURCE_CORE)
		p->m.core_offset += to - p->m.start;
	if (p->m.path)
		p->m.file_offset += to - p->m.start;
	p->m.start = to;
}

/* Sort; where segments overlap the first one keeps the bytes. */
static void order_pieces(struct sonde_core_file *core)
{
	struct sonde_core_piece *p = core->pieces.items;
	bool sorted = true;
	for (size_t i = 1; i < core->pieces.n && sorted; i++)
		sorted = p[i - 1].m.start <= p[i].m.start;
	if (!sorted)
		qsort(p, core->pieces.n, sizeof(*p), by_start);
	size_t n = 0;
	for (size_t i = 0; i < core->pieces.n; i++) {
		struct sonde_core_piece q = p[i];
		uint64_t taken = n ? p[n - 1].m.end : 0;
		if (q.m.start < taken) {
			sonde_notes_add(core->options.notes, "core segments that overlap",
				sonde_min(q.m.end, taken) - q.m.start, "0x%" PRIx64 "-0x%" PRIx64,
				q.m.start, q.m.end);
			if (q.m.end <= taken)
				continue;
			cut_front(&q, taken);
		}
		p[n++] = q;
	}
	core->pieces.n = n;
}

static struct sonde_error *read_segments(struct sonde_core_file *core, const struct sonde_elf *elf)
{
	uint64_t cut_bytes = 0;
	for (size_t i = 0; i < elf->n_segments; i++)
		SONDE_TRY(add_segment(core, &elf->segments[i], &cut_bytes));
	order_pieces(core);
	if (elf->n_segments_lost)
		sonde_notes_add(core->options.notes, "core file truncated: program headers lost",
			elf->n_segments_lost, "%s", core->path);
	if (cut_bytes) {
		sonde_notes_add(core->options.notes, "core file truncated: bytes missing",
			cut_bytes, "%s: truncated by %" PRIu64 " bytes", core->path, cut_bytes);
		sonde_log_message(core->options.log, SONDE_LOG_WARNING,
			"%s: truncated by %" PRIu64 " bytes", core->path, cut_bytes);
	}
	return NULL;
}

/*
 * Large ranges of the file that hold no data: a core of a big heap has ten thousands of small ones, which are not worth a
 * mapping or a look. Their borders may be off by a step, inwards. Where the file system cannot tell there are none.
 */
static struct sonde_error *read_holes(struct sonde_core_file *core)
{
	for (uint64_t at = 0; at < core->size_bytes;) {
		off_t data = lseek(core->fd, (off_t)at, SEEK_DATA);
		if (data < 0 && errno != ENXIO)
			return NULL;
		uint64_t end = data < 0 ? core->size_bytes : (uint64_t)data;
		if (end < at)
			return NULL;
		struct sonde_window_hole h = {at, end};
		if (end - at >= HOLE_STEP_BYTES && !sonde_core_holes_push(&core->holes, h))
			return &sonde_enomem;
		at = end + HOLE_STEP_BYTES;
	}
	return NULL;
}

/* --- names and files of mappings --- */

/* Make a piece boundary at addr where one goes across it. */
static bool split_at(struct sonde_core_pieces *to, uint64_t addr)
{
	struct sonde_core_piece *p = &to->items[to->n - 1];
	if (addr <= p->m.start || addr >= p->m.end)
		return true;
	struct sonde_core_piece rest = *p;
	cut_front(&rest, addr);
	p->m.end = addr;
	return sonde_core_pieces_push(to, rest);
}

/* The part of *p up to `to` goes out; *p keeps the rest. false: nothing is left of it. */
static bool take_front(struct sonde_core_piece *p, uint64_t to, struct sonde_core_piece *out)
{
	*out = *p;
	if (to >= p->m.end)
		return false;
	out->m.end = to;
	cut_front(p, to);
	return true;
}

static struct sonde_core_piece piece_of_vma(const struct sonde_vma *v)
{
	return (struct sonde_core_piece){
		.m = {.start = v->start,
			.end = v->end,
			.source = SONDE_SOURCE_ABSENT,
			.path = v->path,
			.file_offset = v->file_offset},
		.left = SONDE_CORE_LEFT_OUT,
		.fd = -1,
	};
}

/* Cut pieces at the borders of NT_FILE's rows, name them, and add the rows that no segment covers. */
static struct sonde_error *name_pieces(struct sonde_core_file *core)
{
	sonde_cleanup(sonde_core_pieces) struct sonde_core_pieces to = {0};
	size_t i = 0, k = 0;
	struct sonde_core_piece p = {0}, v = {0}, out = {0}, unused;
	bool have_p = false, have_v = false;
	for (;;) {
		if (!have_p && i < core->pieces.n) {
			p = core->pieces.items[i++];
			have_p = true;
		}
		if (!have_v && k < core->vmas->n) {
			v = piece_of_vma(&core->vmas->items[k++]);
			have_v = true;
		}
		if (!have_p && !have_v)
			break;
		if (have_p && have_v && p.m.start == v.m.start) {
			uint64_t end = sonde_min(p.m.end, v.m.end), offset = v.m.file_offset;
			const char *path = v.m.path;
			have_p = take_front(&p, end, &out);
			have_v = take_front(&v, end, &unused);
			out.m.path = path;
			out.m.file_offset = offset;
		} else if (have_p && (!have_v || p.m.start < v.m.start)) {
			have_p = take_front(&p, have_v ? v.m.start : UINT64_MAX, &out);
		} else {
			have_v = take_front(&v, have_p ? p.m.start : UINT64_MAX, &out);
		}
		if (!sonde_core_pieces_push(&to, out))
			return &sonde_enomem;
	}
	sonde_core_pieces_deinit(&core->pieces);
	core->pieces = to;
	to = (struct sonde_core_pieces){0};
	return NULL;
}

static void name_special(struct sonde_core_file *core)
{
	const struct sonde_process_info *info = &core->target.info;
	const struct {
		uint64_t addr;
		const char *name;
	} special[] = {{info->vdso, "[vdso]"}, {info->random_addr, "[stack]"},
		{info->machine == EM_X86_64 ? UINT64_C(0xffffffffff600000) : 0, "[vsyscall]"}};
	for (size_t k = 0; k < SONDE_ARRAY_LEN(special); k++) {
		size_t i = sonde_core_piece_at(core, special[k].addr);
		if (special[k].addr && i < core->pieces.n &&
			core->pieces.items[i].m.start <= special[k].addr &&
			!core->pieces.items[i].m.path)
			core->pieces.items[i].m.path = special[k].name;
	}
}

/* The access rights that the file's own segment has at offset; R where it does not say. */
static uint32_t perm_of_file(const struct sonde_elf *elf, uint64_t offset)
{
	for (size_t i = 0; elf && i < elf->n_segments; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		uint64_t start = s->offset & ~UINT64_C(4095);
		if (s->type == PT_LOAD && offset >= start && offset - start < s->file_bytes)
			return s->flags & (SONDE_PERM_R | SONDE_PERM_W | SONDE_PERM_X);
	}
	return SONDE_PERM_R;
}

/* A piece whose bytes the core lacks and that has a file: read from it, or say why not. Pushes to `to`. */
static struct sonde_error *resolve_file(
	struct sonde_core_file *core, struct sonde_core_piece p, struct sonde_core_pieces *to)
{
	struct sonde_core_image *image = sonde_core_image_find(core, p.m.path);
	if (!image)
		return &sonde_enomem;
	if (!p.perm_known)
		p.m.perm = perm_of_file(image->elf, p.m.file_offset);
	if (image->fd < 0) {
		p.m.reason = image->reason;
		return sonde_core_pieces_push(to, p) ? NULL : &sonde_enomem;
	}
	uint64_t size = p.m.end - p.m.start;
	uint64_t page = core->target.info.page_bytes;
	uint64_t file_end = (image->size_bytes + page - 1) & ~(page - 1);
	uint64_t there =
		p.m.file_offset >= file_end ? 0 : sonde_min(size, file_end - p.m.file_offset);
	p.fd = image->fd;
	p.m.source = SONDE_SOURCE_FILE;
	p.m.from = image->opened;
	p.m.reason = NULL;
	if (!sonde_core_pieces_push(to, p))
		return &sonde_enomem;
	if (there == size)
		return NULL;
	if (there && !split_at(to, p.m.start + there))
		return &sonde_enomem;
	struct sonde_core_piece *rest = &to->items[to->n - 1];
	rest->m.source = SONDE_SOURCE_ABSENT;
	rest->fd = -1;
	rest->m.reason =
		sonde_arena_printf(&core->target.arena, "beyond the end of %s", image->opened);
	return rest->m.reason ? NULL : &sonde_enomem;
}

/* Decide for every piece that the core lacks where its bytes come from. */
static struct sonde_error *resolve_pieces(struct sonde_core_file *core)
{
	sonde_cleanup(sonde_core_pieces) struct sonde_core_pieces to = {0};
	for (size_t i = 0; i < core->pieces.n; i++) {
		struct sonde_core_piece p = core->pieces.items[i];
		if (p.left == SONDE_CORE_PRESENT) {
			p.m.reason = NULL;
		} else if (p.perm_known && !p.m.perm) {
			p.m.reason = no_access;
		} else if (p.m.path && p.m.path[0] != '[' &&
			(p.left == SONDE_CORE_LEFT_OUT || !(p.m.perm & SONDE_PERM_W))) {
			SONDE_TRY(resolve_file(core, p, &to));
			continue;
		} else if (p.left == SONDE_CORE_LEFT_OUT) {
			p.m.source = SONDE_SOURCE_ZERO;
		}
		if (!sonde_core_pieces_push(&to, p))
			return &sonde_enomem;
	}
	sonde_core_pieces_deinit(&core->pieces);
	core->pieces = to;
	to = (struct sonde_core_pieces){0};
	return NULL;
}

/* No NT_FILE (qemu, kernels before 3.7): the executable's own segments tell where its pages were. */
static struct sonde_error *vmas_of_exe(struct sonde_core_file *core)
{
	const struct sonde_elf *exe = core->target.exe;
	const uint64_t mask = 4095;
	sonde_cleanup(sonde_vmas) struct sonde_vmas *vmas = sonde_new(struct sonde_vmas);
	if (!vmas)
		return &sonde_enomem;
	struct sonde_vma *items = sonde_new_array(struct sonde_vma, exe->n_segments);
	vmas->items = items;
	vmas->text = strdup(core->target.exe_path);
	if (!items || !vmas->text)
		return &sonde_enomem;
	for (size_t i = 0; i < exe->n_segments; i++) {
		const struct sonde_elf_segment *s = &exe->segments[i];
		uint64_t start = (s->addr + core->target.exe_bias) & ~mask;
		uint64_t end = s->addr + core->target.exe_bias + s->file_bytes;
		/* What the loader writes to is in the core, or lost. */
		if (s->type != PT_LOAD || !s->file_bytes || end < start ||
			end > UINT64_MAX - mask || s->offset > INT64_MAX ||
			(s->offset & mask) != (s->addr & mask) || s->flags & PF_W)
			continue;
		end = (end + mask) & ~mask;
		if (vmas->n && items[vmas->n - 1].end > start)
			continue;
		items[vmas->n++] = (struct sonde_vma){start, end, s->offset & ~mask, vmas->text};
	}
	core->vmas = sonde_take(vmas);
	return NULL;
}

/* --- the finished target --- */

static struct sonde_error *publish_mappings(struct sonde_core_file *core)
{
	struct sonde_target *t = &core->target;
	t->mappings = sonde_new_array(struct sonde_mapping, core->pieces.n);
	if (!t->mappings)
		return &sonde_enomem;
	t->n_mappings = core->pieces.n;
	/* Paths are borrowed from vmas, which go: a path is copied once for the rows that share it. */
	const char *from = NULL, *copy = NULL;
	for (size_t i = 0; i < core->pieces.n; i++) {
		struct sonde_mapping *m = &t->mappings[i];
		*m = core->pieces.items[i].m;
		if (m->source == SONDE_SOURCE_ABSENT && m->reason != no_access)
			sonde_notes_add(core->options.notes, "memory that cannot be read",
				m->end - m->start, "0x%" PRIx64 "-0x%" PRIx64 "%s%s: %s", m->start,
				m->end, m->path ? " " : "", m->path ? m->path : "",
				m->reason ? m->reason : "unknown");
		if (!m->path)
			continue;
		if (!from || strcmp(from, m->path)) {
			from = m->path;
			copy = sonde_arena_strdup(&t->arena, from);
		}
		if (!copy)
			return &sonde_enomem;
		m->path = copy;
	}
	return NULL;
}

static struct sonde_error *map_memory(struct sonde_core_file *core)
{
	sonde_cleanup(window_pieces) struct window_pieces pieces = {0};
	if (!window_pieces_reserve(&pieces, core->pieces.n))
		return &sonde_enomem;
	for (size_t i = 0; i < core->pieces.n; i++) {
		const struct sonde_core_piece *p = &core->pieces.items[i];
		struct sonde_window_piece w = {p->m.start, p->m.end, -1, 0, core->path};
		if (p->m.source == SONDE_SOURCE_ABSENT)
			continue;
		if (p->m.source == SONDE_SOURCE_CORE) {
			w.fd = core->fd;
			w.offset = p->m.core_offset;
		} else if (p->m.source == SONDE_SOURCE_FILE) {
			w.fd = p->fd;
			w.offset = p->m.file_offset;
			w.name = p->m.from;
		}
		window_pieces_push(&pieces, w);
	}
	SONDE_TRY(sonde_windows_map(pieces.items, pieces.n, core->fd, core->holes.items,
		core->holes.n, &core->windows));
	core->target.runs = sonde_windows_runs(core->windows, &core->target.n_runs);
	return core->target.runs ? NULL : &sonde_enomem;
}

static struct sonde_error *open_plain(struct sonde_core_file *core, struct sonde_elf *elf)
{
	struct sonde_target *t = &core->target;
	SONDE_TRY(check_core(core, elf));
	t->info.machine = elf->machine;
	t->info.word_bytes = elf->word_bytes;
	t->shape.word_bytes = (uint8_t)elf->word_bytes;
	t->info.page_bytes = 4096;
	SONDE_TRY(read_segments(core, elf));
	SONDE_TRY(sonde_core_notes_read(core, elf));
	SONDE_TRY(read_holes(core));
	t->info.execfn = peek_text(core, t->info.execfn_addr);
	t->info.platform = peek_text(core, t->info.platform_addr);
	if (!t->info.execfn || !t->info.platform)
		return &sonde_enomem;
	if (!core->pieces.n && !t->n_threads)
		return sonde_error_new(SONDE_TRUNCATED,
			"%s: the core holds neither memory nor threads", core->path);
	return NULL;
}

/* The headers, mapped for as long as they are read. */
static struct sonde_error *open_headers(struct sonde_core_file *core)
{
	sonde_cleanup(sonde_elf) struct sonde_elf *elf = NULL;
	sonde_cleanup(sonde_mapfile) struct sonde_mapfile *file = NULL;
	sonde_cleanup(fd) int fd = fcntl(core->fd, F_DUPFD_CLOEXEC, 0);
	char text[64];
	if (fd < 0)
		return sonde_error_os(errno, "%s", core->path);
	SONDE_TRY(sonde_mapfile_open_fd(fd, core->path, &file));
	(void)sonde_take_fd(fd);
	core->size_bytes = file->size_bytes;
	if (file->size_bytes < SELFMAG || memcmp(file->data, ELFMAG, SELFMAG))
		return sonde_error_new(SONDE_BAD_DATA, "%s: not a core dump: it is %s", core->path,
			sonde_elf_describe_bytes(file->data, file->size_bytes, text));
	SONDE_TRY(sonde_elf_open_mapfile(file, &elf));
	(void)sonde_take(file);
	return open_plain(core, elf);
}

/* Open path, or the inflated copy of it. */
static struct sonde_error *open_data(struct sonde_core_file *core)
{
	sonde_cleanup(fd) int fd = open(core->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0)
		return sonde_error_os(errno, "%s", core->path);
	uint8_t magic[8];
	ssize_t got = pread(fd, magic, sizeof(magic), 0);
	const struct sonde_core_options *o = &core->options;
	if (got > 0 && sonde_inflate_detect(magic, (size_t)got)) {
		SONDE_TRY(sonde_inflate(fd, core->path, o->tmp_dir, o->log, o->notes, &core->fd));
		return NULL;
	}
	core->fd = sonde_take_fd(fd);
	return NULL;
}

struct sonde_error *sonde_core_file_open(
	const char *path, const struct sonde_core_options *options, struct sonde_target **ret)
{
	struct sonde_core_file *core = sonde_new(struct sonde_core_file);
	if (!core)
		return &sonde_enomem;
	sonde_cleanup(sonde_target) struct sonde_target *t = &core->target;
	core->fd = -1;
	core->path = path;
	if (options)
		core->options = *options;
	t->ops = &core_ops;
	sonde_arena_init(&t->arena);
	t->name = sonde_arena_strdup(&t->arena, path);
	if (!t->name)
		return &sonde_enomem;
	SONDE_TRY(open_data(core));
	SONDE_TRY(open_headers(core));
	SONDE_TRY(sonde_core_exe_find(core));
	if (!core->vmas && t->exe)
		SONDE_TRY(vmas_of_exe(core));
	if (core->vmas)
		SONDE_TRY(name_pieces(core));
	name_special(core);
	SONDE_TRY(resolve_pieces(core));
	SONDE_TRY(map_memory(core));
	SONDE_TRY(publish_mappings(core));
	finish_opening(core);
	core->path = t->name;
	core->options = (struct sonde_core_options){0};
	*ret = sonde_take(t);
	return NULL;
}
