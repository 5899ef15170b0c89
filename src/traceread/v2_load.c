/* Reading a generation: its batches are found, its tables built, its clock set; damage is gone around. */
#include "traceread/v2.h"

#include <inttypes.h>
#include <string.h>

enum {
	MAX_GENERATION_STEP = 1000, /* more than that forward is no number of a generation */
	MAX_GENERATION_BACK = 16,
	MAX_RESYNC_STEP = 2, /* the same behind bytes that are no batch */
	PROGRESS_BATCHES = 256,
};

/* 64 ns a tick: what the runtime uses on Linux. */
static const double USUAL_NS_PER_TICK = 1.0 / (15625000.0 / 1e9);

struct loading {
	struct sonde_trace_v2 *v;
	uint64_t gen; /* in the file; 0 = no batch yet */
	uint64_t start; /* of the generation's bytes */
	uint64_t last_payload; /* where the last batch's bytes begin; 0 = none */
	uint32_t last_batch; /* index + 1 of the last batch, where it is one of events */
	uint64_t n_batches;
	bool have_end; /* the mark, or a following generation */
};

static const struct sonde_trace_place *place_at(
	struct sonde_trace_place *to, uint64_t offset, uint64_t m, uint64_t bytes)
{
	*to = (struct sonde_trace_place){offset, m, SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, bytes};
	return to;
}

#define DAMAGE(v, code, offset, m, bytes, ...)                                   \
	do {                                                                     \
		struct sonde_trace_place place_;                                 \
		sonde_trace_damage_add((v)->r, SONDE_TRACE_DAMAGE_##code,        \
			place_at(&place_, (offset), (m), (bytes)), __VA_ARGS__); \
		if (!sonde_trace_damage_specs[SONDE_TRACE_DAMAGE_##code].remark) \
			(v)->lossy = true;                                       \
	} while (0)

/* --- tables by id --- */

static bool table_build(struct sonde_trace_v2 *v, struct sonde_trace_v2_table *t, const char *what)
{
	uint64_t max = 0, n = t->entries.n;
	sonde_vec_foreach (e, &t->entries)
		max = sonde_max(max, e->id);
	bool dense = n && max <= 4 * n + 1024;
	if (dense) {
		if (max + 1 > t->dense_cap) {
			free(t->dense);
			t->dense_cap = 0;
			t->dense = sonde_new_array(uint32_t, max + 1);
			if (!t->dense)
				return false;
			t->dense_cap = max + 1;
		} else {
			memset(t->dense, 0, (max + 1) * sizeof(*t->dense));
		}
		t->n_dense = max + 1;
	}
	for (uint32_t i = 0; i < n; i++) {
		const struct sonde_trace_v2_entry *e = &t->entries.items[i];
		uint32_t *to =
			dense ? &t->dense[e->id] : sonde_u32_map_put(&t->sparse, e->id, NULL);
		if (!to)
			return false;
		if (*to || !e->id) {
			DAMAGE(v, DUPLICATE_ID, e->offset, SONDE_TRACE_NO_ID, 0,
				"%s %" PRIu64 " is there twice: the first counts", what, e->id);
			continue;
		}
		*to = i + 1;
	}
	return true;
}

static void table_clear(struct sonde_trace_v2_table *t)
{
	t->entries.n = 0;
	t->n_dense = 0;
	if (t->sparse.cap)
		sonde_u32_map_deinit(&t->sparse);
}

const struct sonde_trace_v2_entry *sonde_trace_v2_find(
	const struct sonde_trace_v2_table *t, uint64_t id)
{
	uint32_t index = 0;
	if (id < t->n_dense) {
		index = t->dense[id];
	} else if (t->sparse.n) {
		const uint32_t *found = sonde_u32_map_find(&t->sparse, id);
		index = found ? *found : 0;
	}
	return index ? &t->entries.items[index - 1] : NULL;
}

/* --- batches that are tables --- */

/* A batch being read. p moves; at a record that cannot be read the rest is lost. */
struct batch {
	struct sonde_trace_v2 *v;
	const struct sonde_trace_batch_head *head;
	const uint8_t *p, *end;
	uint64_t offset; /* of the first byte */
	const uint8_t *first;
	bool cut; /* the end of the batch is missing and is listed already */
};

static uint64_t offset_of(const struct batch *b, const uint8_t *p)
{
	return b->offset + (uint64_t)(p - b->first);
}

static void lost_rest(const struct batch *b, const uint8_t *from, const char *what)
{
	b->v->lossy = true;
	if (!b->cut)
		DAMAGE(b->v, BAD_BATCH, offset_of(b, from), b->head->m, (uint64_t)(b->end - from),
			"%s: the rest of the batch is left out", what);
}

static bool read_varint(struct batch *b, uint64_t *ret)
{
	size_t n = sonde_trace_varint_decode(b->p, b->end, ret);
	b->p += n;
	return n != 0;
}

static bool read_strings(struct batch *b)
{
	for (b->p++; b->p < b->end;) {
		const uint8_t *record = b->p;
		uint64_t id, len;
		if (*b->p++ != SONDE_TRACE_STRING || !read_varint(b, &id) ||
			!read_varint(b, &len) || len > SONDE_TRACE_MAX_STRING_BYTES ||
			len > (uint64_t)(b->end - b->p)) {
			lost_rest(b, record, "not a string");
			return true;
		}
		struct sonde_trace_v2_entry entry = {
			.id = id, .offset = offset_of(b, b->p), .n = (uint32_t)len};
		if (!sonde_trace_v2_entries_push(&b->v->strings.entries, entry))
			return false;
		b->p += len;
	}
	return true;
}

static bool read_stacks(struct batch *b)
{
	for (b->p++; b->p < b->end;) {
		const uint8_t *record = b->p;
		uint64_t id, n, unused;
		bool good = *b->p++ == SONDE_TRACE_STACK && read_varint(b, &id) &&
			read_varint(b, &n) && n <= SONDE_TRACE_MAX_FRAMES;
		const uint8_t *frames = b->p;
		for (uint64_t i = 0; good && i < 4 * n; i++)
			good = read_varint(b, &unused);
		if (!good) {
			lost_rest(b, record, "not a stack");
			return true;
		}
		struct sonde_trace_v2_entry entry = {
			.id = id, .offset = offset_of(b, frames), .n = (uint32_t)n};
		if (!sonde_trace_v2_entries_push(&b->v->stacks.entries, entry))
			return false;
	}
	return true;
}

static bool read_samples(struct batch *b)
{
	for (b->p++; b->p < b->end;) {
		const uint8_t *record = b->p;
		struct sonde_trace_v2_sample s = {.offset = offset_of(b, record)};
		if (*b->p++ != SONDE_TRACE_CPU_SAMPLE || !read_varint(b, &s.ticks) ||
			!read_varint(b, &s.m) || !read_varint(b, &s.p) || !read_varint(b, &s.g) ||
			!read_varint(b, &s.stack)) {
			lost_rest(b, record, "not a CPU sample");
			return true;
		}
		if (!s.g)
			s.g = SONDE_TRACE_NO_ID;
		if (!sonde_trace_v2_samples_push(&b->v->samples, s))
			return false;
	}
	return true;
}

static bool read_clock(struct batch *b, uint64_t *ticks)
{
	struct sonde_trace_v2 *v = b->v;
	struct sonde_trace_info *info = &v->r->info;
	uint64_t dt, mono, sec, nsec;
	if (!read_varint(b, &dt) || !read_varint(b, &mono) || !read_varint(b, &sec) ||
		!read_varint(b, &nsec))
		return false;
	*ticks += dt;
	if (v->has_clock) {
		DAMAGE(v, DUPLICATE_ID, offset_of(b, b->p), b->head->m, 0,
			"two clock snapshots in a generation: the first counts");
		return true;
	}
	v->has_clock = true;
	v->clock_ticks = *ticks;
	info->clock_mono_ns = mono;
	info->clock_wall_sec = (int64_t)sec;
	info->clock_wall_nsec = (int64_t)nsec;
	return true;
}

static void read_sync(struct batch *b)
{
	struct sonde_trace_v2 *v = b->v;
	uint64_t ticks = b->head->ticks;
	if (v->r->info.version >= 25)
		b->p++;
	while (b->p < b->end) {
		const uint8_t *record = b->p;
		uint8_t type = *b->p++;
		uint64_t frequency;
		if (type == SONDE_TRACE_CLOCK_SNAPSHOT && v->r->info.version >= 25 &&
			read_clock(b, &ticks))
			continue;
		if (type != SONDE_TRACE_FREQUENCY || !read_varint(b, &frequency)) {
			lost_rest(b, record, "not a clock record");
			return;
		}
		if (v->has_frequency) {
			DAMAGE(v, DUPLICATE_ID, offset_of(b, record), b->head->m, 0,
				"two frequencies in a generation: the first counts");
		} else if (frequency) {
			v->has_frequency = true;
			v->clock.ns_per_tick = 1.0 / ((double)frequency / 1e9);
		}
	}
}

/* --- batches of events --- */

static bool add_events(struct loading *l, const struct batch *b)
{
	struct sonde_trace_v2 *v = l->v;
	struct sonde_trace_v2_batch batch = {.offset = b->offset,
		.ticks = b->head->ticks,
		.size = (uint32_t)(b->end - b->p),
		.cut = b->cut};
	uint32_t *number = sonde_u32_map_put(&v->cursor_of_m, b->head->m, NULL);
	if (!number || !sonde_trace_v2_batches_push(&v->batches, batch))
		return false;
	l->last_batch = (uint32_t)v->batches.n;
	if (!*number) {
		struct sonde_trace_v2_cursor *c = sonde_trace_v2_cursors_add(&v->cursors);
		if (!c)
			return false;
		*number = (uint32_t)v->cursors.n;
		c->m = b->head->m;
		c->next_batch = c->last_batch = l->last_batch;
		return true;
	}
	struct sonde_trace_v2_cursor *c = &v->cursors.items[*number - 1];
	v->batches.items[c->last_batch - 1].next = l->last_batch;
	c->last_batch = l->last_batch;
	return true;
}

static bool add_batch(
	struct loading *l, const struct sonde_trace_batch_head *head, uint64_t offset, bool cut)
{
	struct sonde_trace_v2 *v = l->v;
	const uint8_t *p = sonde_trace_v2_at(v, offset);
	uint64_t there = v->r->source->start + v->r->source->len - offset;
	struct batch b = {.v = v, .head = head, .p = p, .first = p, .offset = offset, .cut = cut};
	b.end = p + sonde_min(there, (uint64_t)head->size);
	l->n_batches++;
	v->r->info.n_batches++;
	v->padded &= head->padded;
	l->last_payload = offset;
	l->last_batch = 0;
	if (!v->min_ticks || head->ticks < v->min_ticks)
		v->min_ticks = head->ticks;
	if (head->experiment) {
		DAMAGE(v, EXPERIMENT, offset, head->m, b.end - b.p, "experiment %u: %u bytes",
			head->experiment, head->size);
		struct sonde_trace_v2_experiment e = {.offset = offset,
			.m = head->m,
			.size = (uint32_t)(b.end - b.p),
			.experiment = head->experiment};
		return sonde_trace_v2_experiments_push(&v->experiments, e);
	}
	uint8_t first = b.p < b.end ? *b.p : 0;
	if (first == SONDE_TRACE_STRINGS)
		return read_strings(&b);
	if (first == SONDE_TRACE_STACKS)
		return read_stacks(&b);
	if (first == SONDE_TRACE_CPU_SAMPLES)
		return read_samples(&b);
	if (first == (v->r->info.version >= 25 ? SONDE_TRACE_SYNC : SONDE_TRACE_FREQUENCY)) {
		read_sync(&b);
		return true;
	}
	return add_events(l, &b);
}

/* --- finding batches --- */

enum found {
	FOUND_BATCH,
	FOUND_MARK, /* end of generation */
	FOUND_CUT, /* the file ends within a batch */
	FOUND_END,
	FOUND_FOREIGN,
};

static bool plausible_gen(const struct loading *l, uint64_t gen)
{
	uint64_t last = l->gen ? l->gen : l->v->gen;
	if (!gen || !last)
		return gen;
	return gen >= last ? gen - last <= MAX_GENERATION_STEP : last - gen <= MAX_GENERATION_BACK;
}

/* What stands at the offset. For FOUND_BATCH and FOUND_CUT *n is the length of the head; 0 where that is cut. */
static struct sonde_error *look(struct loading *l, uint64_t offset,
	struct sonde_trace_batch_head *head, size_t *n, enum found *ret)
{
	struct sonde_trace_source *source = l->v->r->source;
	bool cut;
	for (size_t want = 1;; want++) {
		SONDE_TRY(sonde_trace_source_fill(source, offset + want));
		const uint8_t *p = sonde_trace_v2_at(l->v, offset),
			      *end = source->data + source->len;
		*ret = FOUND_END;
		if (p == end)
			return NULL;
		*ret = FOUND_MARK;
		if (*p == SONDE_TRACE_END_OF_GENERATION && l->v->r->info.version >= 26)
			return NULL;
		*n = sonde_trace_batch_head_decode(p, end, head, &cut);
		if (*n || !cut || source->at_end)
			break;
	}
	*ret = *n || cut ? FOUND_CUT : FOUND_FOREIGN;
	if (!*n)
		return NULL;
	/* The runtime writes every size in 10 bytes: among such, a shorter one is chance. */
	bool chance = !head->padded && l->v->padded && l->v->r->info.n_batches;
	if (chance || !plausible_gen(l, head->gen)) {
		*ret = FOUND_FOREIGN;
		return NULL;
	}
	uint64_t end = offset + *n + head->size;
	SONDE_TRY(sonde_trace_source_fill(source, end));
	if (source->start + source->len >= end)
		*ret = FOUND_BATCH;
	return NULL;
}

static bool plausible_first(uint8_t type)
{
	return sonde_trace_event_specs[type].has_time || type == SONDE_TRACE_STRINGS ||
		type == SONDE_TRACE_STACKS || type == SONDE_TRACE_CPU_SAMPLES ||
		type == SONDE_TRACE_SYNC || type == SONDE_TRACE_FREQUENCY;
}

/* Whether a batch begins at the offset that nobody announced: it must be whole, and another must follow, or the end. */
static struct sonde_error *is_batch(struct loading *l, uint64_t offset, bool *ret)
{
	struct sonde_trace_batch_head head, next_head;
	size_t n, next_n;
	enum found found, next;
	*ret = false;
	SONDE_TRY(look(l, offset, &head, &n, &found));
	if (found != FOUND_BATCH || !head.size || (l->v->padded && !head.padded))
		return NULL;
	uint64_t last = l->gen ? l->gen : l->v->gen;
	if (last && (head.gen < last || head.gen - last > MAX_RESYNC_STEP))
		return NULL;
	if (!head.experiment && !plausible_first(*sonde_trace_v2_at(l->v, offset + n)))
		return NULL;
	SONDE_TRY(look(l, offset + n + head.size, &next_head, &next_n, &next));
	*ret = next != FOUND_FOREIGN && (next != FOUND_CUT || head.padded);
	return NULL;
}

/* Move *at to the next batch, or to the end. */
static struct sonde_error *find_batch(struct loading *l, uint64_t *at)
{
	struct sonde_trace_source *source = l->v->r->source;
	for (bool found = false;; ++*at) {
		SONDE_TRY(sonde_trace_source_fill(source, *at + 1));
		if (*at >= source->start + source->len)
			return NULL;
		uint8_t first = *sonde_trace_v2_at(l->v, *at);
		if (first != SONDE_TRACE_EVENT_BATCH && first != SONDE_TRACE_EXPERIMENTAL_BATCH)
			continue;
		SONDE_TRY(is_batch(l, *at, &found));
		if (found)
			return NULL;
	}
}

/*
 * At v->offset stands nothing that fits. What was there may have begun within the last batch (bytes were cut out of its
 * middle): look for the next batch from its beginning on. v->offset moves to it, or to the end.
 */
static struct sonde_error *resync(struct loading *l)
{
	struct sonde_trace_v2 *v = l->v;
	uint64_t bad = v->offset, at = l->last_batch ? l->last_payload + 1 : bad + 1;
	SONDE_TRY(find_batch(l, &at));
	if (at < bad) { /* within the last batch: it is shorter than it said */
		struct sonde_trace_v2_batch *last = &v->batches.items[l->last_batch - 1];
		last->size = (uint32_t)(at - last->offset);
		last->cut = true;
		DAMAGE(v, BAD_BATCH, at, SONDE_TRACE_NO_ID, 0,
			"bytes are missing in the middle of a batch that began at %" PRIu64,
			last->offset);
	} else {
		DAMAGE(v, FOREIGN_BYTES, bad, SONDE_TRACE_NO_ID, at - bad,
			"%" PRIu64 " bytes that are no batch", at - bad);
	}
	v->offset = at;
	l->last_batch = 0;
	return NULL;
}

/* Whether at the offset there is what may follow: another batch, an end mark, the end. */
static struct sonde_error *can_follow(struct loading *l, uint64_t offset, bool *ret)
{
	struct sonde_trace_batch_head head;
	size_t n;
	enum found found;
	SONDE_TRY(look(l, offset, &head, &n, &found));
	*ret = found != FOUND_FOREIGN;
	return NULL;
}

/*
 * A short head, or the one byte of an end mark, may be chance: what stands behind it must fit. An end mark that is not
 * the last byte is looked at only where the next bytes are there already: a trace that is followed must not wait.
 */
static struct sonde_error *make_sure(
	struct loading *l, const struct sonde_trace_batch_head *head, size_t n, enum found *found)
{
	const struct sonde_trace_source *source = l->v->r->source;
	uint64_t behind = l->v->offset + (*found == FOUND_MARK ? 1 : n + head->size);
	bool fits = true;
	if ((*found == FOUND_BATCH && !head->padded) ||
		(*found == FOUND_MARK &&
			behind + SONDE_TRACE_MAX_HEAD_BYTES <= source->start + source->len))
		SONDE_TRY(can_follow(l, behind, &fits));
	if (!fits)
		*found = FOUND_FOREIGN;
	return NULL;
}

/* A batch of another generation than the one that is read. *stop: it begins the next one. */
static void other_generation(
	struct loading *l, const struct sonde_trace_batch_head *head, size_t n, bool *stop)
{
	struct sonde_trace_v2 *v = l->v;
	*stop = head->gen > l->gen;
	if (!*stop) {
		DAMAGE(v, LOST_GENERATION, v->offset, head->m, n + head->size,
			"a batch of generation %" PRIu64 " stands in generation %" PRIu64
			": it is left out",
			head->gen, l->gen);
		v->offset += n + head->size;
	} else if (v->r->info.version >= 26) {
		DAMAGE(v, NO_END, v->offset, head->m, 0,
			"generation %" PRIu64 " has no end mark, %" PRIu64 " begins", l->gen,
			head->gen);
	}
}

/* n: of the head, 0 where that is cut. What is cut off may be of the next generation: then this one is whole. */
static void cut_short(struct loading *l, size_t n, const struct sonde_trace_batch_head *head)
{
	struct sonde_trace_v2 *v = l->v;
	uint64_t end = v->r->source->start + v->r->source->len;
	bool lossy = v->lossy;
	/* What is there of a batch is read; what its head promises more is lost. */
	uint64_t there = end - v->offset, lost = n ? n + head->size - there : there;
	DAMAGE(v, TRUNCATED, v->offset, SONDE_TRACE_NO_ID, lost,
		"the file ends in the %s of a batch: %" PRIu64 " bytes %s", n ? "middle" : "head",
		lost, n ? "of it are missing" : "cannot be used");
	if (v->r->info.version < 26 && l->gen && (n ? head->gen != l->gen : v->has_frequency))
		v->lossy = lossy;
}

/* A batch whose head was read, whole or cut. */
static bool take_batch(
	struct loading *l, const struct sonde_trace_batch_head *head, size_t n, bool cut)
{
	struct sonde_trace_v2 *v = l->v;
	uint64_t last = l->v->gen;
	if (!l->gen) {
		l->gen = head->gen;
		if (last && head->gen != last + 1)
			DAMAGE(v, LOST_GENERATION, v->offset, SONDE_TRACE_NO_ID, 0,
				"generation %" PRIu64 " follows generation %" PRIu64, head->gen,
				last);
	}
	if (!add_batch(l, head, v->offset + n, cut))
		return false;
	v->offset += n + head->size;
	return true;
}

/*
 * A batch reaches behind the end. Where others stand within it, its size is what is wrong; else the trace was cut, and
 * *stop.
 */
static struct sonde_error *take_cut(
	struct loading *l, struct sonde_trace_batch_head *head, size_t n, bool *stop)
{
	struct sonde_trace_v2 *v = l->v;
	uint64_t begin = v->offset, at = begin + 1, end = v->r->source->start + v->r->source->len;
	SONDE_TRY(find_batch(l, &at));
	bool mine = n && (!l->gen || head->gen == l->gen) && at > begin + n;
	*stop = at == end;
	if (*stop)
		cut_short(l, n, head);
	else
		DAMAGE(v, BAD_BATCH, begin, SONDE_TRACE_NO_ID, mine ? 0 : at - begin,
			"a batch of a wrong size: another begins %" PRIu64 " bytes behind it",
			at - begin);
	if (mine && !*stop)
		head->size = (uint32_t)sonde_min(at - begin - n, (uint64_t)head->size);
	if (mine && !take_batch(l, head, n, true))
		return &sonde_enomem;
	v->offset = at;
	l->last_batch = 0;
	return NULL;
}

static struct sonde_error *load_batches(struct loading *l)
{
	struct sonde_trace_v2 *v = l->v;
	struct sonde_trace_source *source = v->r->source;
	struct sonde_trace_batch_head head;
	for (bool stop = false; !stop;) {
		size_t n = 0;
		enum found found;
		if (l->n_batches % PROGRESS_BATCHES == 0 && source->is_whole &&
			!sonde_log_progress(source->log, "reading", v->offset, source->len))
			return sonde_error_new(SONDE_INTERRUPTED, "%s: interrupted", source->name);
		SONDE_TRY(look(l, v->offset, &head, &n, &found));
		SONDE_TRY(make_sure(l, &head, n, &found));
		switch (found) {
		case FOUND_MARK:
			l->have_end = stop = l->gen != 0;
			v->offset++;
			break;
		case FOUND_FOREIGN:
			SONDE_TRY(resync(l));
			break;
		case FOUND_CUT:
			SONDE_TRY(take_cut(l, &head, n, &stop));
			break;
		case FOUND_BATCH:
			if (l->gen && head.gen != l->gen) {
				other_generation(l, &head, n, &stop);
				l->have_end |= stop;
			} else if (!take_batch(l, &head, n, false)) {
				return &sonde_enomem;
			}
			break;
		case FOUND_END:
			stop = true;
			break;
		}
	}
	return NULL;
}

/* --- the whole generation --- */

static int by_ns(const void *a, const void *b)
{
	const struct sonde_trace_v2_sample *x = a, *y = b;
	return x->ns != y->ns ? (x->ns > y->ns) - (x->ns < y->ns)
			      : (x->offset > y->offset) - (x->offset < y->offset);
}

static void check_stacks(struct sonde_trace_v2 *v)
{
	sonde_vec_foreach (stack, &v->stacks.entries) {
		const uint8_t *p = sonde_trace_v2_at(v, stack->offset);
		const uint8_t *end = v->r->source->data + v->r->source->len;
		for (uint32_t i = 0; i < stack->n; i++) {
			uint64_t field[4] = {0};
			for (unsigned k = 0; k < 4; k++)
				p += sonde_trace_varint_decode(p, end, &field[k]);
			for (unsigned k = 1; k < 3; k++)
				if (field[k] && !sonde_trace_v2_find(&v->strings, field[k]))
					DAMAGE(v, UNKNOWN_STRING, stack->offset, SONDE_TRACE_NO_ID,
						0,
						"frame %u of stack %" PRIu64
						" names string %" PRIu64 ", which is not there",
						i, stack->id, field[k]);
		}
	}
}

static void check_clock(struct loading *l)
{
	struct sonde_trace_v2 *v = l->v;
	struct sonde_trace_info *info = &v->r->info;
	if (!v->has_frequency) {
		if (!v->clock.ns_per_tick)
			v->clock.ns_per_tick = USUAL_NS_PER_TICK;
		DAMAGE(v, NO_FREQUENCY, v->offset, SONDE_TRACE_NO_ID, 0,
			"generation %" PRIu64 " has no frequency: %g ns a tick taken; "
			"the trace was not stopped, or was cut",
			l->gen, v->clock.ns_per_tick);
	}
	if (info->version >= 25 && !v->has_clock)
		DAMAGE(v, NO_CLOCK, v->offset, SONDE_TRACE_NO_ID, 0,
			"generation %" PRIu64 " has no clock snapshot", l->gen);
	info->ns_per_tick = v->clock.ns_per_tick;
	v->clock.whole_ns_per_tick = 0;
	if (info->ns_per_tick >= 1 && info->ns_per_tick <= 1 << 20 &&
		(double)(uint64_t)info->ns_per_tick == info->ns_per_tick)
		v->clock.whole_ns_per_tick = (uint64_t)info->ns_per_tick;
	if (v->has_clock && !info->has_clock) {
		info->has_clock = true;
		info->clock_ns = sonde_trace_v2_to_ns(&v->clock, v->clock_ticks);
	} else if (v->has_clock) {
		info->clock_ns = sonde_trace_v2_to_ns(&v->clock, v->clock_ticks);
	}
}

static struct sonde_error *finish(struct loading *l)
{
	struct sonde_trace_v2 *v = l->v;
	struct sonde_trace_info *info = &v->r->info;
	info->n_generations++;
	v->gen_start = l->start;
	v->have_end = l->have_end;
	if (!v->first_gen)
		v->first_gen = l->gen;
	v->gen = l->gen;
	if (info->version >= 26 && !l->have_end && !v->lossy)
		DAMAGE(v, TRUNCATED, v->offset, SONDE_TRACE_NO_ID, 0,
			"generation %" PRIu64 " has no end mark: the trace was not stopped, "
			"or was cut",
			l->gen);
	check_clock(l);
	if (!table_build(v, &v->strings, "string") || !table_build(v, &v->stacks, "stack"))
		return &sonde_enomem;
	check_stacks(v);
	sonde_vec_foreach (sample, &v->samples)
		sample->ns = sonde_trace_v2_to_ns(&v->clock, sample->ticks);
	sonde_vec_sort(&v->samples, by_ns);
	info->largest_generation_bytes =
		sonde_max(info->largest_generation_bytes, v->offset - l->start);
	return NULL;
}

void sonde_trace_v2_unload(struct sonde_trace_v2 *v)
{
	v->batches.n = v->cursors.n = v->heap.n = v->samples.n = v->experiments.n = 0;
	v->next_sample = 0;
	sonde_u32_map_deinit(&v->cursor_of_m);
	table_clear(&v->strings);
	table_clear(&v->stacks);
	v->has_frequency = v->has_clock = v->lossy = false;
	v->min_ticks = 0;
}

struct sonde_error *sonde_trace_v2_load(struct sonde_trace_v2 *v, bool *ret)
{
	struct loading l = {.v = v, .start = v->offset};
	sonde_trace_v2_unload(v);
	sonde_trace_source_drop(v->r->source, v->offset);
	SONDE_TRY(load_batches(&l));
	v->r->info.read_bytes = v->offset;
	*ret = l.gen != 0;
	if (!l.gen) {
		if (!v->gen)
			DAMAGE(v, TRUNCATED, v->offset, SONDE_TRACE_NO_ID, 0,
				"no batch follows the header");
		return NULL;
	}
	return finish(&l);
}
