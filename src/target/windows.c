#include "target/windows.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include "base/vec.h"

/* Ranges further apart never share a window: the address space between them would be reserved for nothing. */
static const uint64_t MAX_GAP_BYTES = UINT64_C(64) << 30;
/* A hole becomes a mapping of its own only where that spares much; the kernel allows some 65,000 mappings in all. */
enum { MIN_HOLE_BYTES = 1 << 20, MAX_HOLES = 8192 };

struct reserved {
	uint8_t *host;
	size_t bytes;
};
SONDE_DEFINE_VEC(reserved_vec, struct reserved)
SONDE_DEFINE_VEC(run_vec, struct sonde_target_run)
SONDE_DEFINE_VEC(piece_vec, struct sonde_window_piece)

struct sonde_windows {
	struct reserved_vec reserved;
	struct run_vec runs;
	uint64_t page_bytes;
	int holes_fd;
	const struct sonde_window_hole *holes;
	size_t n_holes;
	uint64_t min_hole_bytes;
};

void sonde_windows_free(struct sonde_windows *w)
{
	if (!w)
		return;
	sonde_vec_foreach (r, &w->reserved)
		munmap(r->host, r->bytes);
	reserved_vec_deinit(&w->reserved);
	run_vec_deinit(&w->runs);
	free(w);
}

struct sonde_target_run *sonde_windows_runs(const struct sonde_windows *w, size_t *n)
{
	struct sonde_target_run *runs = sonde_new_array(struct sonde_target_run, w->runs.n);
	if (!runs)
		return NULL;
	if (w->runs.n)
		memcpy(runs, w->runs.items, w->runs.n * sizeof(*runs));
	*n = w->runs.n;
	return runs;
}

static struct sonde_error *no_room(int os_errno, const char *name, uint64_t bytes)
{
	struct rlimit limit;
	if (os_errno == ENOMEM && !getrlimit(RLIMIT_AS, &limit) && limit.rlim_cur != RLIM_INFINITY)
		return sonde_error_new(SONDE_NO_MEMORY,
			"%s: no address space for %" PRIu64 " bytes: this process is limited to "
			"%" PRIu64 " (ulimit -v)",
			name, bytes, (uint64_t)limit.rlim_cur);
	if (os_errno == ENOMEM)
		return sonde_error_new(SONDE_NO_MEMORY,
			"%s: no address space for %" PRIu64 " bytes, or too many mappings "
			"(vm.max_map_count)",
			name, bytes);
	return sonde_error_os(os_errno, "%s: mmap of %" PRIu64 " bytes", name, bytes);
}

/* PROT_NONE address space, freed with w; NULL and errno where there is none. */
static uint8_t *reserve(struct sonde_windows *w, uint64_t bytes)
{
	if (!reserved_vec_reserve(&w->reserved, 1) || bytes > SIZE_MAX / 2) {
		errno = ENOMEM;
		return NULL;
	}
	void *host =
		mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (host == MAP_FAILED)
		return NULL;
	reserved_vec_push(&w->reserved, (struct reserved){host, bytes});
	return host;
}

/* Whole pages [0, bytes) at host from the file's offset (page aligned), or zeros where fd is -1. */
static bool map_pages(uint8_t *host, uint64_t bytes, int fd, uint64_t offset)
{
	if (!bytes)
		return true;
	int flags = MAP_PRIVATE | MAP_FIXED | (fd < 0 ? MAP_ANONYMOUS | MAP_NORESERVE : 0);
	return mmap(host, bytes, PROT_READ, flags, fd, fd < 0 ? 0 : (off_t)offset) != MAP_FAILED;
}

/* The first hole that ends behind offset. */
static size_t hole_at(const struct sonde_windows *w, uint64_t offset)
{
	size_t lo = 0, hi = w->n_holes;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (w->holes[mid].end <= offset)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* As map_pages(), with the core file's large holes as zeros. */
static bool map_file(
	struct sonde_windows *w, uint8_t *host, uint64_t bytes, int fd, uint64_t offset)
{
	if (fd < 0 || fd != w->holes_fd)
		return map_pages(host, bytes, fd, offset);
	uint64_t mask = w->page_bytes - 1, at = offset, end = offset + bytes;
	for (size_t i = hole_at(w, offset); i < w->n_holes && w->holes[i].start < end; i++) {
		uint64_t from = sonde_max(at, (w->holes[i].start + mask) & ~mask);
		uint64_t to = sonde_min(end, w->holes[i].end & ~mask);
		if (to <= from || to - from < w->min_hole_bytes)
			continue;
		if (!map_pages(host + (at - offset), from - at, fd, at) ||
			!map_pages(host + (from - offset), to - from, -1, 0))
			return false;
		at = to;
	}
	return map_pages(host + (at - offset), end - at, fd, at);
}

static bool add_run(struct sonde_windows *w, uint64_t start, uint64_t size, const uint8_t *host)
{
	struct sonde_target_run *last = w->runs.n ? &w->runs.items[w->runs.n - 1] : NULL;
	if (last && last->start + last->size_bytes == start &&
		last->host + last->size_bytes == host) {
		last->size_bytes += size;
		return true;
	}
	return run_vec_push(&w->runs, (struct sonde_target_run){start, size, host});
}

/* Whether it can lie in a window: begins with a page, in memory and in its file. */
static bool fits_window(const struct sonde_windows *w, const struct sonde_window_piece *p)
{
	return !(p->start % w->page_bytes) && (p->fd < 0 || !(p->offset % w->page_bytes));
}

static struct sonde_error *map_alone(struct sonde_windows *w, const struct sonde_window_piece *p)
{
	uint64_t lead = p->fd < 0 ? 0 : p->offset % w->page_bytes, size = p->end - p->start;
	uint64_t mask = w->page_bytes - 1, bytes = (lead + size + mask) & ~mask;
	uint8_t *host = reserve(w, bytes);
	if (!host || !map_file(w, host, bytes, p->fd, p->fd < 0 ? 0 : p->offset - lead))
		return no_room(errno, p->name, bytes);
	return add_run(w, p->start, size, host + lead) ? NULL : &sonde_enomem;
}

/* Pieces [first, last) into one reservation. */
static struct sonde_error *map_window(
	struct sonde_windows *w, const struct sonde_window_piece *p, size_t n)
{
	uint64_t mask = w->page_bytes - 1, base = p[0].start;
	uint64_t bytes = (p[n - 1].end - base + mask) & ~mask;
	uint8_t *host = reserve(w, bytes);
	if (!host)
		return no_room(errno, p[0].name, bytes);
	for (size_t i = 0; i < n; i++) {
		uint64_t size = p[i].end - p[i].start;
		uint8_t *to = host + (p[i].start - base);
		if (!map_file(w, to, (size + mask) & ~mask, p[i].fd, p[i].offset))
			return no_room(errno, p[i].name, size);
		if (!add_run(w, p[i].start, size, to))
			return &sonde_enomem;
	}
	return NULL;
}

/* Neighbours that go on in memory and in the same file become one piece. */
static bool merge(const struct sonde_window_piece *pieces, size_t n, struct piece_vec *to)
{
	for (size_t i = 0; i < n; i++) {
		struct sonde_window_piece p = pieces[i];
		struct sonde_window_piece *last = to->n ? &to->items[to->n - 1] : NULL;
		if (p.start == p.end || (p.fd < 0 && p.end - p.start > SONDE_WINDOW_MAX_ZERO))
			continue;
		if (last && last->end == p.start && last->fd == p.fd &&
			(p.fd < 0 || last->offset + (last->end - last->start) == p.offset))
			last->end = p.end;
		else if (!piece_vec_push(to, p))
			return false;
	}
	return true;
}

static void choose_holes(struct sonde_windows *w)
{
	size_t n;
	w->min_hole_bytes = MIN_HOLE_BYTES / 2;
	do {
		w->min_hole_bytes *= 2;
		n = 0;
		for (size_t i = 0; i < w->n_holes; i++)
			n += w->holes[i].end - w->holes[i].start >= w->min_hole_bytes;
	} while (n > MAX_HOLES);
}

static struct sonde_error *map_all(
	struct sonde_windows *w, const struct sonde_window_piece *p, size_t n, uint64_t max_gap)
{
	for (size_t i = 0, next; i < n; i = next) {
		next = i + 1;
		if (!fits_window(w, &p[i])) {
			SONDE_TRY(map_alone(w, &p[i]));
			continue;
		}
		while (next < n && fits_window(w, &p[next]) &&
			p[next].start - p[next - 1].end <= max_gap)
			next++;
		SONDE_TRY(map_window(w, p + i, next - i));
	}
	return NULL;
}

struct sonde_error *sonde_windows_map(const struct sonde_window_piece *pieces, size_t n,
	int holes_fd, const struct sonde_window_hole *holes, size_t n_holes,
	struct sonde_windows **ret)
{
	sonde_cleanup(piece_vec) struct piece_vec merged = {0};
	if (!merge(pieces, n, &merged))
		return &sonde_enomem;
	/* Where address space is scarce, what lies between the pieces goes first. */
	for (uint64_t gap = MAX_GAP_BYTES;; gap = 0) {
		sonde_cleanup(sonde_windows) struct sonde_windows *w =
			sonde_new(struct sonde_windows);
		if (!w)
			return &sonde_enomem;
		w->page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
		w->holes_fd = holes_fd;
		w->holes = holes;
		w->n_holes = n_holes;
		choose_holes(w);
		struct sonde_error *err = map_all(w, merged.items, merged.n, gap);
		if (!err) {
			w->holes = NULL;
			*ret = sonde_take(w);
			return NULL;
		}
		if (!gap || err->code != SONDE_NO_MEMORY)
			return err;
		sonde_error_free(err);
	}
}
