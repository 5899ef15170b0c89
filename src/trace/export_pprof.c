#include <inttypes.h>

#include "output/pprof.h"
#include "trace/report.h"
#include "trace/waits.h"

/*
 * What a profile counts, as `go tool trace -pprof` does: for formats from 1.22 on as Go 1.27's, for those before as Go
 * 1.21's. reasons: parts of what a goroutine is blocked for.
 */
struct kind_spec {
	uint8_t status;
	const char *reasons[4];
	/* Before 1.22: records that a wait begins with, and whether only one that ends in running counts. */
	uint8_t v1[8];
	bool v1_runs;
};

static const struct kind_spec specs[] = {
	[SONDE_TRACE_PPROF_NET] = {SONDE_TRACE_G_WAITING, {"network"},
		{SONDE_TRACE_V1_GO_BLOCK_NET}},
	[SONDE_TRACE_PPROF_SYNC] = {SONDE_TRACE_G_WAITING, {"chan", "sync", "select"},
		{SONDE_TRACE_V1_GO_BLOCK_SEND, SONDE_TRACE_V1_GO_BLOCK_RECV,
			SONDE_TRACE_V1_GO_BLOCK_SELECT, SONDE_TRACE_V1_GO_BLOCK_SYNC,
			SONDE_TRACE_V1_GO_BLOCK_COND, SONDE_TRACE_V1_GO_BLOCK_GC}},
	[SONDE_TRACE_PPROF_SYSCALL] = {SONDE_TRACE_G_SYSCALL, {NULL}, {SONDE_TRACE_V1_GO_SYSBLOCK}},
	[SONDE_TRACE_PPROF_SCHED] = {SONDE_TRACE_G_RUNNABLE, {NULL},
		{SONDE_TRACE_V1_GO_CREATE, SONDE_TRACE_V1_GO_UNBLOCK,
			SONDE_TRACE_V1_GO_UNBLOCK_LOCAL},
		true},
};

/* Of one stack. */
struct record {
	uint64_t n, ns;
};
SONDE_DEFINE_VEC(record_vec, struct record)

/*
 * Go clips each wait to the time from its goroutine's first run to its end, if it ever runs: what was before counts only
 * for those that never do. Until that is known it stands here.
 */
struct early {
	uint32_t stack, next; /* next: index + 1, 0 = none */
	uint64_t ns;
};
SONDE_DEFINE_VEC(early_vec, struct early)

struct goroutine {
	bool ran;
	uint32_t early; /* index + 1 */
};
SONDE_DEFINE_VEC(goroutine_vec, struct goroutine)

struct profile {
	struct goroutine_vec goroutines; /* by slot */
	struct early_vec early;
	uint32_t free_early;
	const struct sonde_trace_pprof_options *options;
	int64_t from_ns, to_ns; /* what is asked for */
	int64_t first_ns, last_ns; /* of the trace */
	bool begun, v1, saw_g;
	struct record_vec records; /* by interned stack */
	uint8_t *reasons; /* by interned string: 0 = not looked at, 1 = counts, 2 = does not */
	size_t n_reasons;
	uint64_t n_samples, n_stackless; /* stackless: CPU samples only */
};

static void profile_deinit(struct profile *p)
{
	goroutine_vec_deinit(&p->goroutines);
	early_vec_deinit(&p->early);
	record_vec_deinit(&p->records);
	free(p->reasons);
}
SONDE_DEFINE_CLEANUP_DEINIT(profile)

static bool add(struct profile *p, uint32_t stack, uint64_t ns)
{
	while (p->records.n <= stack)
		if (!record_vec_add(&p->records))
			return false;
	p->records.items[stack].n++;
	p->records.items[stack].ns += ns;
	return true;
}

static bool reason_counts(
	const struct sonde_trace_reader *reader, const struct kind_spec *spec, uint32_t reason)
{
	const char *text = sonde_trace_interned(reader, reason);
	for (size_t i = 0; spec->reasons[i]; i++)
		if (text && strstr(text, spec->reasons[i]))
			return true;
	return false;
}

/* *ret: whether the reason is one of the kind's. false = out of memory. */
static bool wanted_reason(
	struct profile *p, const struct sonde_trace_reader *reader, uint32_t reason, bool *ret)
{
	if (reason >= p->n_reasons) {
		size_t n = sonde_max((size_t)reason + 1, p->n_reasons * 2);
		uint8_t *more = realloc(p->reasons, n);
		if (!more)
			return false;
		memset(more + p->n_reasons, 0, n - p->n_reasons);
		p->reasons = more;
		p->n_reasons = n;
	}
	if (!p->reasons[reason])
		p->reasons[reason] =
			reason_counts(reader, &specs[p->options->kind], reason) ? 1 : 2;
	*ret = p->reasons[reason] == 1;
	return true;
}

static bool v1_counts(const struct kind_spec *spec, const struct sonde_trace_wait *w)
{
	return w->stack && w->v1 && memchr(spec->v1, w->v1, sizeof(spec->v1)) &&
		w->next != SONDE_TRACE_G_NONE &&
		(!spec->v1_runs || w->next == SONDE_TRACE_G_RUNNING);
}

static bool add_wait(struct profile *p, const struct sonde_trace_reader *reader,
	const struct sonde_trace_wait *w)
{
	const struct kind_spec *spec = &specs[p->options->kind];
	bool counts = true;
	if (p->options->has_g && w->g != p->options->g)
		return true;
	if (p->v1)
		counts = v1_counts(spec, w);
	else if (spec->reasons[0] && !wanted_reason(p, reader, w->reason, &counts))
		return false;
	int64_t start_ns = sonde_max(w->start_ns, p->from_ns),
		end_ns = sonde_min(w->end_ns, p->to_ns);
	if (!counts || end_ns <= start_ns)
		return true;
	uint64_t ns = (uint64_t)end_ns - (uint64_t)start_ns;
	struct goroutine *g = p->v1 ? NULL : &p->goroutines.items[w->slot];
	if (!g || g->ran)
		return add(p, w->stack, ns);
	struct early early = {w->stack, g->early, ns};
	if (p->free_early) {
		uint32_t i = p->free_early;
		p->free_early = p->early.items[i - 1].next;
		p->early.items[i - 1] = early;
		g->early = i;
		return true;
	}
	if (!early_vec_push(&p->early, early))
		return false;
	g->early = (uint32_t)p->early.n;
	return true;
}

/* What stands there of g is not needed any more; it counts where g never ran. */
static bool settle(struct profile *p, struct goroutine *g, bool counts)
{
	bool ok = true;
	while (g->early) {
		uint32_t i = g->early;
		struct early *e = &p->early.items[i - 1];
		ok = ok && (!counts || add(p, e->stack, e->ns));
		g->early = e->next;
		e->next = p->free_early;
		p->free_early = i;
	}
	return ok;
}

static bool have_goroutine(struct profile *p, const struct sonde_trace_event *e)
{
	if (e->subject_g_slot == SONDE_TRACE_NO_SLOT)
		return true;
	while (p->goroutines.n <= e->subject_g_slot)
		if (!goroutine_vec_add(&p->goroutines))
			return false;
	struct goroutine *g = &p->goroutines.items[e->subject_g_slot];
	bool is_new = e->g_after != SONDE_TRACE_G_NONE &&
		(e->g_before == SONDE_TRACE_G_NONE || e->g_before == SONDE_TRACE_G_UNDETERMINED);
	if (!is_new)
		return true;
	bool ok = settle(p, g, !g->ran);
	g->ran = false;
	return ok;
}

static bool goroutine_moved(struct profile *p, const struct sonde_trace_event *e)
{
	if (e->subject_g_slot == SONDE_TRACE_NO_SLOT)
		return true;
	struct goroutine *g = &p->goroutines.items[e->subject_g_slot];
	if (e->g_after == SONDE_TRACE_G_RUNNING) {
		g->ran = true;
		return settle(p, g, false);
	}
	if (e->g_after == SONDE_TRACE_G_NONE && e->g_before != SONDE_TRACE_G_NONE)
		return settle(p, g, !g->ran);
	return true;
}

static bool add_cpu_sample(
	struct profile *p, struct sonde_trace_reader *reader, const struct sonde_trace_event *e)
{
	if (e->kind != SONDE_TRACE_CPU_SAMPLE || e->ns < p->from_ns || e->ns > p->to_ns ||
		(p->options->has_g && e->g != p->options->g))
		return true;
	uint64_t stack = sonde_trace_event_stack(e);
	uint32_t id = stack ? sonde_trace_intern_stack(reader, stack) : 0;
	p->n_stackless += !id;
	return id != UINT32_MAX && add(p, id, SONDE_TRACE_PPROF_CPU_PERIOD_NS);
}

static struct sonde_error *read_all(struct profile *p, struct sonde_trace_reader *reader)
{
	sonde_cleanup(sonde_trace_waits) struct sonde_trace_waits waits;
	const struct sonde_trace_event *e;
	bool cpu = p->options->kind == SONDE_TRACE_PPROF_CPU;
	sonde_trace_waits_init(&waits, cpu ? 0 : 1u << specs[p->options->kind].status);
	p->v1 = sonde_trace_reader_info(reader)->version < 22;
	for (;;) {
		struct sonde_trace_wait wait;
		bool ended = false;
		SONDE_TRY(sonde_trace_reader_next(reader, &e));
		if (!e)
			break;
		if (!p->begun) {
			sonde_trace_window_settle(
				&p->options->window, e->ns, &p->from_ns, &p->to_ns);
			p->first_ns = e->ns;
			p->begun = true;
		}
		p->last_ns = e->ns;
		p->saw_g |= e->g == p->options->g || e->subject_g == p->options->g;
		if (cpu ? !add_cpu_sample(p, reader, e)
			: !have_goroutine(p, e) ||
					!sonde_trace_waits_add(&waits, reader, e, &wait, &ended))
			return &sonde_enomem;
		if ((ended && !add_wait(p, reader, &wait)) || (!cpu && !goroutine_moved(p, e)))
			return &sonde_enomem;
	}
	sonde_vec_foreach (g, &p->goroutines)
		if (!settle(p, g, !g->ran))
			return &sonde_enomem;
	return NULL;
}

/* One location for an address, as Go has it; where there is none, for a function and line. */
static uint64_t location(struct sonde_pprof *out, const struct sonde_trace_reader *reader,
	struct sonde_u64_map *ids, const struct sonde_trace_interned_frame *f)
{
	uint64_t key = f->pc ? f->pc : (uint64_t)f->func << 32 | f->line;
	uint64_t *id = sonde_u64_map_put(ids, key, NULL);
	if (!id) {
		out->failed = true;
		return 0;
	}
	if (!*id) {
		struct sonde_pprof_line line = {
			sonde_pprof_function(out, sonde_trace_interned(reader, f->func),
				sonde_trace_interned(reader, f->file)),
			f->line};
		*id = sonde_pprof_location(out, 0, f->pc, &line, 1);
	}
	return *id;
}

/* A frame without an address says nothing: a stack of such alone is none, as for Go, which tells stacks by addresses. */
static size_t told_frames(const struct sonde_trace_interned_frame *frames, size_t n)
{
	while (n && !frames[n - 1].pc && !frames[n - 1].func)
		n--;
	return n;
}

static void put_samples(
	struct profile *p, struct sonde_pprof *out, const struct sonde_trace_reader *reader)
{
	sonde_cleanup(sonde_u64_map) struct sonde_u64_map ids = {0};
	/* The one without frames last: others may turn out to be it. */
	for (size_t i = p->records.n; i-- > 0 && !out->failed;) {
		const struct record *r = &p->records.items[i];
		if (!r->n)
			continue;
		uint64_t locations[SONDE_TRACE_MAX_FRAMES];
		size_t n;
		const struct sonde_trace_interned_frame *frames =
			sonde_trace_interned_stack(reader, (uint32_t)i, &n);
		n = told_frames(frames, sonde_min(n, SONDE_ARRAY_LEN(locations)));
		if (!n && i) {
			p->records.items[0].n += r->n;
			p->records.items[0].ns += r->ns;
			continue;
		}
		for (size_t k = 0; k < n; k++)
			locations[k] = location(out, reader, &ids, &frames[k]);
		sonde_pprof_sample(
			out, (int64_t[]){(int64_t)r->n, (int64_t)r->ns}, locations, n, NULL, 0);
		p->n_samples += r->n;
	}
}

/* When and how long: of what was asked for. */
static void put_time(
	const struct profile *p, struct sonde_pprof *out, const struct sonde_trace_info *info)
{
	int64_t from_ns = sonde_max(p->first_ns, p->from_ns),
		to_ns = sonde_min(p->last_ns, p->to_ns), wall_ns;
	if (to_ns <= from_ns || __builtin_sub_overflow(to_ns, from_ns, &out->duration_ns))
		return;
	/* The wall clock's time at clock_ns, moved to where the profile begins. */
	if (info->has_clock &&
		!__builtin_mul_overflow(info->clock_wall_sec, INT64_C(1000000000), &wall_ns) &&
		!__builtin_add_overflow(wall_ns, info->clock_wall_nsec, &wall_ns) &&
		!__builtin_sub_overflow(wall_ns, info->clock_ns, &wall_ns) &&
		!__builtin_add_overflow(wall_ns, from_ns, &wall_ns))
		out->time_ns = wall_ns;
}

struct sonde_error *sonde_trace_write_pprof(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_pprof_options *options, struct sonde_sink *sink,
	struct sonde_notes *notes)
{
	static const struct sonde_pprof_type waiting[] = {
		{"contentions", "count"}, {"delay", "nanoseconds"}};
	static const struct sonde_pprof_type cpu[] = {{"samples", "count"}, {"cpu", "nanoseconds"}};
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *reader = NULL;
	sonde_cleanup(profile) struct profile p = {.options = options};
	sonde_cleanup(sonde_pprof) struct sonde_pprof out;
	bool is_cpu = options->kind == SONDE_TRACE_PPROF_CPU;
	sonde_pprof_init(&out, is_cpu ? cpu : waiting, 2);
	SONDE_TRY(sonde_trace_reader_open(path, reader_options, &reader));
	SONDE_TRY(read_all(&p, reader));
	if (options->has_g && !p.saw_g)
		return sonde_error_new(SONDE_NOT_FOUND, "no goroutine %" PRIu64, options->g);
	put_samples(&p, &out, reader);
	put_time(&p, &out, sonde_trace_reader_info(reader));
	out.period_type = is_cpu ? cpu[1] : (struct sonde_pprof_type){"trace", "count"};
	out.period = is_cpu ? SONDE_TRACE_PPROF_CPU_PERIOD_NS : 1;
	sonde_trace_reader_add_notes(reader, notes);
	if (is_cpu && p.n_samples)
		sonde_notes_add(notes,
			"a trace does not say how often samples were taken: 100 a second assumed",
			0, "%s", path);
	sonde_notes_add_n(notes, "CPU samples without a stack", p.n_stackless, "%s", path);
	if (!p.n_samples)
		sonde_notes_add(notes, "the profile is empty: nothing of its kind is in the trace",
			0, "%s", path);
	return sonde_pprof_write(&out, sink);
}
