/*
 * A real core and its executable with patches from the input: opened, marked, typed and reported in both forms. Both files
 * are unpacked once; the patches of a run are undone after it, so that a run costs what the analysis costs.
 *
 * The input is a list of records of 12 bytes: {u8 region, u8 op, u16 other, u32 offset, u32 value}. A region is what some
 * part of the reader looks at: the runtime's records, stacks, type descriptors, the function table, either whole file.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>
#include "base/vec.h"
#include "core/report.h"
#include "core/session.h"
#include "output/report.h"
#include "target/inflate.h"

enum {
	RECORD_BYTES = 12,
	MAX_RECORDS = 64,
	COPY_BYTES = 64,
	MAX_SECONDS = 10,
	MAX_REPORT_BYTES = 256 << 20,
	MAX_MEMORY_BYTES = 1 << 30,
};

/* Parts of a file, one behind the other. */
struct extent {
	bool exe;
	uint64_t offset, size_bytes;
	uint64_t addr; /* in the target; 0 = none */
	uint64_t before; /* bytes of the region's extents before this one */
};
SONDE_DEFINE_VEC(extent_vec, struct extent)

enum region {
	CORE_HEAD,
	GOROUTINES,
	THREADS,
	STACKS,
	MODULE,
	SPAN_LIST,
	SPANS,
	DATA,
	TYPES,
	FUNCTIONS,
	FUNC_DATA,
	HEAP,
	SPECIALS,
	CORE_ALL,
	EXE_ALL,
	N_REGIONS,
};

struct undo {
	bool exe;
	uint64_t offset;
	size_t n;
	uint8_t bytes[COPY_BYTES];
};

static struct {
	int core, exe;
	char core_path[64], exe_path[64];
	struct extent_vec regions[N_REGIONS];
} files;

static void die(const char *what, struct sonde_error *err)
{
	fprintf(stderr, "core_go: %s: %s\n", what, err ? err->message : "failed");
	abort();
}

static int unpack(const char *name, char path[64])
{
	char from[4096];
	snprintf(from, sizeof(from), "%s/%s", SONDE_TEST_DATA, name);
	int fd = open(from, O_RDONLY | O_CLOEXEC), ret;
	if (fd < 0)
		die(from, NULL);
	struct sonde_error *err = sonde_inflate(fd, from, NULL, NULL, NULL, &ret);
	if (err)
		die(from, err);
	close(fd);
	snprintf(path, 64, "/proc/self/fd/%d", ret);
	return ret;
}

static void add_extent(enum region region, struct extent e)
{
	struct extent_vec *v = &files.regions[region];
	const struct extent *last = v->n ? &v->items[v->n - 1] : NULL;
	e.before = last ? last->before + last->size_bytes : 0;
	if (e.size_bytes && !extent_vec_push(v, e))
		die("no memory", NULL);
}

/* Target memory as far as a file holds it. */
static void add_memory(
	const struct sonde_core_session *s, enum region region, uint64_t addr, uint64_t n)
{
	while (n) {
		const struct sonde_mapping *m = sonde_target_mapping_find(s->target, addr);
		if (!m)
			return;
		uint64_t at = addr - m->start, have = m->end - addr;
		struct extent e = {.addr = addr, .size_bytes = have < n ? have : n};
		e.exe = m->source == SONDE_SOURCE_FILE;
		e.offset = (e.exe ? m->file_offset : m->core_offset) + at;
		if (m->source == SONDE_SOURCE_CORE || e.exe)
			add_extent(region, e);
		addr += e.size_bytes;
		n -= e.size_bytes;
	}
}

static void add_words(const struct sonde_core_session *s, enum region list, enum region items,
	uint64_t slice, uint32_t item_bytes)
{
	uint64_t data = 0, n = 0, item;
	add_memory(s, list, slice, 24);
	sonde_go_read_word(s->go, slice, &data);
	sonde_go_read_word(s->go, slice + 8, &n);
	add_memory(s, list, data, n * 8);
	for (uint64_t i = 0; i < n && sonde_go_read_word(s->go, data + i * 8, &item); i++)
		add_memory(s, items, item, item_bytes);
}

static void find_regions(struct sonde_core_session *s)
{
	const struct sonde_go_layout *l = &s->go->layout;
	add_extent(CORE_HEAD, (struct extent){.size_bytes = 16384});
	add_words(s, SPAN_LIST, SPANS,
		sonde_go_global(s->go, "runtime.mheap_", NULL) + l->mheap_allspans.offset,
		l->sizeof_mspan);
	add_words(s, SPAN_LIST, GOROUTINES, sonde_go_global(s->go, "runtime.allgs", NULL),
		l->sizeof_g);
	for (size_t i = 0; i < s->goroutines->all.n; i++) {
		const struct sonde_goroutine *g = &s->goroutines->all.items[i];
		if (g->m)
			add_memory(s, THREADS, g->m, 1024);
		if (g->n_frames) {
			uint64_t sp = s->goroutines->frames.items[g->first_frame].sp;
			if (sp >= g->stack_low && sp < g->stack_high)
				add_memory(s, STACKS, sp, g->stack_high - sp);
		}
	}
	for (size_t i = 0; i < s->go->n_modules; i++) {
		const struct sonde_go_module *m = &s->go->modules[i];
		uint64_t header = 0, table = 0, len = 0;
		add_memory(s, MODULE, m->addr, l->sizeof_moduledata);
		add_memory(s, DATA, m->noptrdata, m->enoptrbss - m->noptrdata);
		add_memory(s, TYPES, m->types, m->etypes - m->types);
		add_memory(s, TYPES, m->data_mask, m->data_mask_bits / 8);
		add_memory(s, TYPES, m->bss_mask, m->bss_mask_bits / 8);
		if (sonde_go_read(s->go, m->addr, l->module_pc_header, &header) &&
			sonde_go_read_word(s->go, m->addr + l->module_pclntable.offset, &table) &&
			sonde_go_read_word(s->go, m->addr + l->module_pclntable.offset + 8, &len))
			add_memory(s, FUNCTIONS, header, table + len - header);
		add_memory(s, FUNC_DATA, m->gofunc, m->functions.func_data.len);
	}
	for (uint32_t i = 0; i < s->heap->n_spans; i++) {
		const struct sonde_go_span *span = &s->heap->spans[i];
		add_memory(s, HEAP, span->base, (uint64_t)span->n_pages * 8192);
	}
	for (size_t i = 0; i < s->heap->specials.n; i++)
		add_memory(s, SPECIALS, s->heap->specials.items[i].addr - 32, 64);
	add_extent(
		CORE_ALL, (struct extent){.size_bytes = (uint64_t)lseek(files.core, 0, SEEK_END)});
	add_extent(EXE_ALL,
		(struct extent){
			.exe = true, .size_bytes = (uint64_t)lseek(files.exe, 0, SEEK_END)});
}

static struct sonde_error *open_session(struct sonde_core_session **ret)
{
	struct sonde_core_session_options options = {
		.core = {.exe = files.exe_path, .no_debuginfod = true}, .n_threads = 1};
	return sonde_core_session_open(files.core_path, &options, ret);
}

/* More memory than a core of this size can need is a failure. Sanitizers have limits of their own (-malloc_limit_mb). */
static void limit_memory(void)
{
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	struct rlimit limit;
	if (!getrlimit(RLIMIT_DATA, &limit)) {
		limit.rlim_cur =
			MAX_MEMORY_BYTES < limit.rlim_max ? MAX_MEMORY_BYTES : limit.rlim_max;
		setrlimit(RLIMIT_DATA, &limit);
	}
#endif
}

static void prepare(void)
{
	limit_memory();
	files.core = unpack("demo.core.zst", files.core_path);
	files.exe = unpack("demo.exe.zst", files.exe_path);
	struct sonde_core_session *s = NULL;
	struct sonde_error *err = open_session(&s);
	if (!err)
		err = sonde_core_session_need_typing(s);
	if (err)
		die("the unpatched core", err);
	find_regions(s);
	sonde_core_session_free(s);
}

/* Where offset of the region is; *left: bytes from there to the end of its extent. */
static const struct extent *place(uint8_t region, uint32_t offset, uint64_t *at, uint64_t *left)
{
	const struct extent_vec *v = &files.regions[region % N_REGIONS];
	if (!v->n)
		v = &files.regions[CORE_ALL];
	const struct extent *last = &v->items[v->n - 1];
	uint64_t o = offset % (last->before + last->size_bytes);
	size_t low = 0, high = v->n;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (v->items[middle].before <= o)
			low = middle;
		else
			high = middle;
	}
	*at = o - v->items[low].before;
	*left = v->items[low].size_bytes - *at;
	return &v->items[low];
}

/* Apply one record; false where it changes nothing. */
static bool patch(const uint8_t *r, struct undo *undo)
{
	static const uint64_t special[] = {0, 1, 0x7f, 0xff, 0x7fff, 0xffff, INT32_MAX, UINT32_MAX,
		INT64_MAX, UINT64_MAX, (uint64_t)INT64_MIN, 0xc000000000, 4096, 8192};
	uint16_t other;
	uint32_t offset, value;
	memcpy(&other, r + 2, 2);
	memcpy(&offset, r + 4, 4);
	memcpy(&value, r + 8, 4);
	uint64_t at, left, from_at, from_left;
	const struct extent *e = place(r[0], offset, &at, &left);
	/* Most records change whole words where words stand. */
	if ((r[1] & 7) != 0) {
		at &= ~UINT64_C(7);
		left = e->size_bytes - at;
	}
	int fd = e->exe ? files.exe : files.core;
	*undo = (struct undo){.exe = e->exe, .offset = e->offset + at};
	uint64_t word = 0;
	uint8_t bytes[COPY_BYTES];
	size_t n = 8;
	if (pread(fd, &word, 8, (off_t)undo->offset) < 0)
		return false;
	const struct extent *from = place((uint8_t)other, value, &from_at, &from_left);
	switch (r[1] & 7) {
	case 0:
		n = 1;
		word = value;
		break;
	case 1:
		n = 4;
		word = value;
		break;
	case 2:
		word = (uint64_t)(int64_t)(int32_t)value;
		break;
	case 3: /* a pointer to some place */
		word = from->addr + from_at;
		break;
	case 4:
		word += (uint64_t)(int64_t)(int32_t)value;
		break;
	case 5:
		word ^= UINT64_C(1) << (value & 63);
		break;
	case 6:
		word = special[value % (sizeof(special) / sizeof(special[0]))];
		break;
	case 7: /* another record of the kind */
		n = COPY_BYTES;
		break;
	}
	if (n > left)
		n = (size_t)left;
	memcpy(bytes, &word, 8);
	if ((r[1] & 7) == 7) {
		n = n < from_left ? n : (size_t)from_left;
		ssize_t got = pread(from->exe ? files.exe : files.core, bytes, n,
			(off_t)(from->offset + from_at));
		n = got > 0 ? (size_t)got : 0;
	}
	ssize_t saved = pread(fd, undo->bytes, n, (off_t)undo->offset);
	undo->n = saved > 0 ? (size_t)saved : 0;
	return undo->n && pwrite(fd, bytes, undo->n, (off_t)undo->offset) > 0;
}

static void report(struct sonde_core_session *s, bool json)
{
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	for (int i = 0; i < 8; i++) {
		sonde_cleanup(sonde_sink) struct sonde_sink *sink = NULL;
		struct sonde_error *err = sonde_sink_open_memory(&text, &sink);
		if (err) {
			sonde_error_free(err);
			return;
		}
		struct sonde_report_options options = {.json = json, .legend = true};
		sonde_cleanup(sonde_report) struct sonde_report out;
		sonde_report_init(&out, sink, &options);
		if (i == 0) {
			err = sonde_core_report_overview(s, &out);
		} else if (i == 1) {
			err = sonde_core_report_mappings(s, &out);
		} else if (i == 2) {
			struct sonde_core_goroutines_options o = {.all = json};
			err = sonde_core_report_goroutines(s, &o, &out);
		} else if (i == 3) {
			struct sonde_core_histogram_options o = {.by = json};
			err = sonde_core_report_histogram(s, &o, &out);
		} else if (i == 4) {
			struct sonde_core_globals_options o = {0};
			err = sonde_core_report_globals(s, &o, &out);
		} else if (i == 5) {
			struct sonde_core_objects_options o = {
				.state = SONDE_CORE_OBJECTS_ALL, .type = "main", .limit = 100};
			err = sonde_core_report_objects(s, &o, &out);
		} else if (i == 6) {
			/* Another one each time, as far as there are many. */
			struct sonde_core_object_options o = {.addr = 0x400000};
			if (s->heap && s->heap->n_spans)
				o.addr = s->heap->spans[s->heap->n_allocated % s->heap->n_spans]
						 .base;
			err = sonde_core_report_object(s, &o, &out);
		} else {
			struct sonde_core_read_options o = {0};
			o.addr = s->heap && s->heap->n_spans ? s->heap->spans[0].base : 0x400000;
			o.n_bytes = 256;
			err = sonde_core_report_read(s, &o, &out);
		}
		sonde_error_free(err);
		if (text.len > MAX_REPORT_BYTES)
			die("a report without end", NULL);
		text.len = 0;
	}
}

static double cpu_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct undo undo[MAX_RECORDS];
	size_t n = 0;
	if (!files.core_path[0])
		prepare();
	for (size_t i = 0; i < MAX_RECORDS && size >= RECORD_BYTES; i++) {
		n += patch(data, &undo[n]);
		data += RECORD_BYTES;
		size -= RECORD_BYTES;
	}
	double start = cpu_seconds();
	struct sonde_core_session *s = NULL;
	struct sonde_error *err = open_session(&s);
	if (!err) {
		err = sonde_core_session_need_typing(s);
		if (err && err->code == SONDE_NO_MEMORY)
			die("memory without end", err);
		report(s, size & 1);
	}
	sonde_error_free(err);
	sonde_core_session_free(s);
	if (cpu_seconds() - start > MAX_SECONDS)
		die("too slow", NULL);
	while (n--) {
		if (pwrite(undo[n].exe ? files.exe : files.core, undo[n].bytes, undo[n].n,
			    (off_t)undo[n].offset) < 0)
			die("undo", NULL);
	}
	return 0;
}
