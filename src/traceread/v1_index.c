#include "traceread/v1.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum {
	PROGRESS_BYTES = 4 << 20,
	TRIAL_RECORDS = 24, /* behind a batch's head that was found by search, all good */
	RADIX_BITS = 11,
};

/* --- tables --- */

static int compare_entries(const void *a, const void *b)
{
	const struct sonde_trace_v1_entry *x = a, *y = b;
	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Sort, and keep of equal ids the first or the last. Returns how many went. */
static size_t table_finish(
	struct sonde_trace_v1_table *t, bool keep_last, struct sonde_trace_v1_entry *first_twice)
{
	struct sonde_trace_v1_entry *e = t->entries.items;
	size_t n = 0, n_twice = 0;
	bool sorted = true;
	for (size_t i = 1; i < t->entries.n && sorted; i++)
		sorted = e[i - 1].id < e[i].id;
	if (!sorted)
		sonde_vec_sort(&t->entries, compare_entries);
	for (size_t i = 0; i < t->entries.n; i++) {
		if (!n || e[n - 1].id != e[i].id) {
			e[n++] = e[i];
			continue;
		}
		if (!n_twice++)
			*first_twice = e[i];
		if (keep_last)
			e[n - 1] = e[i];
	}
	t->entries.n = n;
	t->dense = n && e[n - 1].id - e[0].id == n - 1;
	return n_twice;
}

ssize_t sonde_trace_v1_table_find(const struct sonde_trace_v1_table *t, uint64_t id)
{
	const struct sonde_trace_v1_entry *e = t->entries.items;
	size_t n = t->entries.n;
	if (!n)
		return -1;
	if (t->dense)
		return id - e[0].id < n ? (ssize_t)(id - e[0].id) : -1;
	size_t low = 0;
	while (n) {
		size_t half = n / 2;
		if (e[low + half].id < id) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return low < t->entries.n && e[low].id == id ? (ssize_t)low : -1;
}

/* --- the walk --- */

struct walk {
	struct sonde_trace_v1_index *x;
	struct sonde_trace_reader *r;
	uint32_t proc; /* of the current batch */
	bool has_events, skipped; /* skipped: of a processor too many */
	struct sonde_trace_v1_batch batch; /* the current one */
	int64_t ts, min_ticks; /* min_ticks: of all heads */
	uint64_t last_g; /* started last in the batch, for messages */
};

/* The processor's number; UINT32_MAX: too many, UINT32_MAX - 1: no memory. */
static uint32_t proc_of(struct sonde_trace_v1_index *x, uint64_t id)
{
	uint32_t *known = sonde_u32_map_find(&x->proc_of_id, id);
	if (known)
		return *known;
	if (x->procs.n >= SONDE_TRACE_V1_MAX_PROCS)
		return UINT32_MAX;
	uint32_t *slot = sonde_u32_map_put(&x->proc_of_id, id, NULL);
	struct sonde_trace_v1_proc proc = {.id = id};
	if (!slot || !sonde_trace_v1_procs_push(&x->procs, proc))
		return UINT32_MAX - 1;
	return *slot = (uint32_t)x->procs.n - 1;
}

/* The current batch ends at `end`. false: no memory. */
static bool close_batch(struct walk *w, uint64_t end)
{
	struct sonde_trace_v1_index *x = w->x;
	if (!w->has_events || w->skipped)
		return true;
	w->batch.end = end;
	if (!sonde_trace_v1_batches_push(&x->batches, w->batch))
		return false;
	struct sonde_trace_v1_proc *proc = &x->procs.items[w->proc];
	if (proc->lost)
		x->batches.items[x->batches.n - 1].flags |= SONDE_TRACE_V1_AFTER_LOSS;
	proc->lost = false;
	uint32_t me = (uint32_t)x->batches.n;
	if (proc->last)
		x->batches.items[proc->last - 1].next = me;
	else
		proc->first = me;
	proc->last = me;
	w->has_events = false;
	return true;
}

static struct sonde_error *begin_batch(
	struct walk *w, const struct sonde_trace_v1_record *rec, uint64_t offset)
{
	uint32_t proc = proc_of(w->x, rec->args[0]);
	if (proc == UINT32_MAX - 1)
		return &sonde_enomem;
	w->skipped = proc == UINT32_MAX;
	if (w->skipped) {
		struct sonde_trace_place at = {
			offset, SONDE_TRACE_NO_ID, rec->args[0], SONDE_TRACE_NO_ID, 0};
		sonde_trace_damage_add(w->r, SONDE_TRACE_DAMAGE_BAD_BATCH, &at,
			"a batch of more than %d processors", SONDE_TRACE_V1_MAX_PROCS);
	} else {
		w->proc = proc;
	}
	w->ts = (int64_t)rec->args[w->x->format.version < 7 ? 2 : 1];
	w->min_ticks = sonde_min(w->min_ticks, w->ts);
	w->last_g = 0;
	w->batch = (struct sonde_trace_v1_batch){.start = offset};
	w->r->info.n_batches++;
	return NULL;
}

/* An event: count it, and keep what the merge must know in advance. false: no memory. */
static bool see_event(struct walk *w, const struct sonde_trace_v1_record *rec, uint64_t offset)
{
	struct sonde_trace_v1_index *x = w->x;
	const uint64_t *args = rec->args + x->format.n_before;
	w->ts = (int64_t)((uint64_t)w->ts + rec->args[x->format.n_before - 1]);
	x->n_events++;
	if (rec->type == SONDE_TRACE_V1_CPU_SAMPLE) {
		struct sonde_trace_v1_sample sample = {(int64_t)args[0], offset};
		return sonde_trace_v1_samples_push(&x->samples, sample);
	}
	w->has_events = true;
	switch (rec->type) {
	case SONDE_TRACE_V1_GO_START:
	case SONDE_TRACE_V1_GO_START_LOCAL:
	case SONDE_TRACE_V1_GO_START_LABEL:
		w->last_g = args[0];
		break;
	case SONDE_TRACE_V1_FUTILE_WAKEUP:
		x->n_futile++;
		break;
	case SONDE_TRACE_V1_GO_CREATE:
		if (x->format.version < 7)
			return sonde_u32_map_put(&x->entry_pcs, args[1] + 1, NULL) != NULL;
		break;
	case SONDE_TRACE_V1_GO_SYSEXIT:
		if (args[2] && !w->skipped) {
			struct sonde_trace_v1_exit e = {
				(int64_t)args[x->format.version < 7 ? 1 : 2],
				offset << 16 | w->proc};
			return sonde_trace_v1_exits_push(&x->exits, e);
		}
		break;
	}
	return true;
}

static bool see_frequency(struct walk *w, const struct sonde_trace_v1_record *rec, uint64_t offset)
{
	struct sonde_trace_place at = {
		offset, SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, 0};
	int64_t hz = (int64_t)rec->args[0];
	if (hz <= 0)
		sonde_trace_damage_add(w->r, SONDE_TRACE_DAMAGE_NO_FREQUENCY, &at,
			"the frequency is %" PRId64 ": the clock went backwards while tracing", hz);
	else
		w->x->ticks_per_sec = hz;
	return true;
}

/* One good record at p; *next is NULL where it is none. */
static struct sonde_error *see_record(struct walk *w, const uint8_t *p, const uint8_t **next)
{
	struct sonde_trace_v1_index *x = w->x;
	const struct sonde_trace_v1_format *f = &x->format;
	struct sonde_trace_v1_record rec;
	uint64_t offset = (uint64_t)(p - f->data), id, n;
	const char *text;
	const uint8_t *frames;
	size_t len;
	bool ok = true;
	uint8_t type = *p & 0x3f;
	if (type == SONDE_TRACE_V1_STRING && f->version >= 7) {
		*next = sonde_trace_v1_decode_string(p, f->end, &id, &text, &len);
		struct sonde_trace_v1_entry e = {id, offset};
		ok = !*next || sonde_trace_v1_entries_push(&x->strings.entries, e);
	} else if (type == SONDE_TRACE_V1_STACK) {
		*next = sonde_trace_v1_decode_stack(f, p, f->end, &id, &n, &frames);
		struct sonde_trace_v1_entry e = {id, offset};
		ok = !*next || !id || !n || sonde_trace_v1_entries_push(&x->stacks.entries, e);
	} else {
		*next = sonde_trace_v1_decode(f, p, f->end, &rec);
		if (!*next)
			return NULL;
		switch (type) {
		case SONDE_TRACE_V1_BATCH:
			if (!close_batch(w, offset))
				return &sonde_enomem;
			return begin_batch(w, &rec, offset);
		case SONDE_TRACE_V1_FREQUENCY:
			ok = see_frequency(w, &rec, offset);
			break;
		case SONDE_TRACE_V1_TIMER_GOROUTINE:
			ok = sonde_u64_vec_push(&x->timers, rec.args[0]);
			break;
		default:
			ok = see_event(w, &rec, offset);
		}
	}
	return ok ? NULL : &sonde_enomem;
}

/* --- damage --- */

/* Whether records follow at p that look like a batch. */
static bool looks_like_batch(const struct walk *w, const uint8_t *p)
{
	const struct sonde_trace_v1_format *f = &w->x->format;
	struct sonde_trace_v1_record rec;
	if (*p != (SONDE_TRACE_V1_BATCH | 1 << 6))
		return false;
	p = sonde_trace_v1_decode(f, p, f->end, &rec);
	if (!p)
		return false;
	int64_t ticks = (int64_t)rec.args[f->version < 7 ? 2 : 1];
	bool known = sonde_u32_map_find(&w->x->proc_of_id, rec.args[0]) != NULL;
	if ((!known && rec.args[0] > SONDE_TRACE_V1_MAX_PROCS &&
		    rec.args[0] != SONDE_TRACE_NO_ID) ||
		(w->min_ticks != INT64_MAX && ticks < w->min_ticks / 2))
		return false;
	for (int i = 0; i < TRIAL_RECORDS && p < f->end; i++) {
		uint64_t id, n;
		const char *text;
		const uint8_t *frames;
		size_t len;
		uint8_t type = *p & 0x3f;
		const uint8_t *next;
		if (type == SONDE_TRACE_V1_STRING && f->version >= 7)
			next = sonde_trace_v1_decode_string(p, f->end, &id, &text, &len);
		else if (type == SONDE_TRACE_V1_STACK)
			next = sonde_trace_v1_decode_stack(f, p, f->end, &id, &n, &frames);
		else
			next = sonde_trace_v1_decode(f, p, f->end, &rec);
		if (!next)
			return i > 4 && f->end - p < 64; /* the tail may be cut */
		p = next;
	}
	return true;
}

/* Why the record at p is none; *cut: it might be, if the file went on. */
static const char *reason(const struct walk *w, const uint8_t *p, char text[96], bool *cut)
{
	const struct sonde_trace_v1_format *f = &w->x->format;
	unsigned type = *p & 0x3f;
	const char *name = type < SONDE_TRACE_V1_N_TYPES ? sonde_trace_v1_specs[type].name : NULL;
	bool known = name && sonde_trace_v1_specs[type].since <= f->version;
	/* With zeros behind it, could it end beyond the file? */
	uint8_t more[2048] = {0};
	size_t left = (size_t)(f->end - p);
	*cut = false;
	if (known && left < 1024) {
		struct sonde_trace_v1_record rec;
		uint64_t id, n;
		const uint8_t *frames, *next;
		memcpy(more, p, left);
		if (type == SONDE_TRACE_V1_STRING)
			next = left > 12 ? NULL : more + left + 1;
		else if (type == SONDE_TRACE_V1_STACK)
			next = sonde_trace_v1_decode_stack(
				f, more, more + sizeof(more), &id, &n, &frames);
		else
			next = sonde_trace_v1_decode(f, more, more + sizeof(more), &rec);
		*cut = next > more + left;
	}
	if (known && type == SONDE_TRACE_V1_STRING) {
		uint64_t id, n;
		const uint8_t *q = sonde_trace_v1_varint(p + 1, f->end, &id);
		q = q ? sonde_trace_v1_varint(q, f->end, &n) : NULL;
		*cut = *cut || (q && id && n && n <= SONDE_TRACE_V1_MAX_TEXT);
	}
	if (*cut)
		snprintf(text, 96, "the file ends inside a %s record", name);
	else if (!known)
		snprintf(text, 96, "type %u, which go 1.%u has not", type, f->version);
	else
		snprintf(text, 96, "a %s record that cannot be read", name);
	return text;
}

/* The record at p is bad: list it, find where it goes on. */
static struct sonde_error *recover(struct walk *w, const uint8_t *p, const uint8_t **next)
{
	struct sonde_trace_v1_index *x = w->x;
	const struct sonde_trace_v1_format *f = &x->format;
	uint64_t offset = (uint64_t)(p - f->data);
	const uint8_t *q = p + 1;
	char text[96];
	bool cut;
	while ((q = q < f->end ? memchr(q, SONDE_TRACE_V1_BATCH | 1 << 6, (size_t)(f->end - q))
			       : NULL) &&
		!looks_like_batch(w, q))
		q++;
	if (!q)
		q = f->end;
	const char *why = reason(w, p, text, &cut);
	enum sonde_trace_damage_code code = SONDE_TRACE_DAMAGE_FOREIGN_BYTES;
	if (cut && q == f->end)
		code = SONDE_TRACE_DAMAGE_TRUNCATED;
	else if (f->n_args[*p & 0x3f] != SONDE_TRACE_V1_ANY)
		code = SONDE_TRACE_DAMAGE_BAD_BATCH;
	struct sonde_trace_place at = {.offset = offset,
		.m = SONDE_TRACE_NO_ID,
		.p = x->procs.n && !w->skipped ? x->procs.items[w->proc].id : SONDE_TRACE_NO_ID,
		.g = w->last_g ? w->last_g : SONDE_TRACE_NO_ID,
		.bytes = (uint64_t)(q - p)};
	struct sonde_trace_v1_late late = {(uint32_t)w->r->damages.list.n, w->ts};
	sonde_trace_damage_add(w->r, code, &at, "%s%s", why,
		q == f->end ? "; nothing behind it is a batch" : "; the next batch is read on");
	if (w->r->damages.list.n > late.damage && !sonde_trace_v1_lates_push(&x->lates, late))
		return &sonde_enomem;
	if (!close_batch(w, offset))
		return &sonde_enomem;
	if (x->procs.n)
		x->procs.items[w->proc].lost = true;
	x->n_losses++;
	*next = q;
	return NULL;
}

/* --- sorting --- */

/* By key, stable: least significant digits first. */
static bool sort_exits(struct sonde_trace_v1_exits *v)
{
	int64_t min = INT64_MAX, max = INT64_MIN;
	bool sorted = true;
	for (size_t i = 0; i < v->n; i++) {
		sorted = sorted && (!i || v->items[i - 1].key <= v->items[i].key);
		min = sonde_min(min, v->items[i].key);
		max = sonde_max(max, v->items[i].key);
	}
	if (sorted)
		return true;
	struct sonde_trace_v1_exit *other = sonde_new_array(struct sonde_trace_v1_exit, v->n);
	if (!other)
		return false;
	uint64_t span = (uint64_t)max - (uint64_t)min;
	for (unsigned shift = 0; shift < 64 && span >> shift; shift += RADIX_BITS) {
		size_t starts[1 << RADIX_BITS] = {0}, sum = 0;
		const uint64_t mask = (1 << RADIX_BITS) - 1;
		for (size_t i = 0; i < v->n; i++)
			starts[((uint64_t)v->items[i].key - (uint64_t)min) >> shift & mask]++;
		for (size_t i = 0; i <= mask; i++) {
			size_t n = starts[i];
			starts[i] = sum;
			sum += n;
		}
		for (size_t i = 0; i < v->n; i++)
			other[starts[((uint64_t)v->items[i].key - (uint64_t)min) >> shift &
				mask]++] = v->items[i];
		struct sonde_trace_v1_exit *swap = v->items;
		v->items = other;
		other = swap;
		v->cap = v->n;
	}
	free(other);
	return true;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sonde_trace_v1_sample *x = a, *y = b;
	if (x->ts != y->ts)
		return x->ts < y->ts ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static struct sonde_error *finish(struct walk *w)
{
	struct sonde_trace_v1_index *x = w->x;
	struct sonde_trace_v1_table *tables[] = {&x->strings, &x->stacks};
	struct sonde_trace_place at = {(uint64_t)(x->format.end - x->format.data),
		SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, 0};
	if (!sort_exits(&x->exits))
		return &sonde_enomem;
	sonde_vec_sort(&x->samples, compare_samples);
	for (int i = 0; i < 2; i++) {
		struct sonde_trace_v1_entry twice = {0};
		size_t n = table_finish(tables[i], i == 1, &twice);
		struct sonde_trace_place there = at;
		there.offset = twice.offset;
		/* Go reads a stack that comes twice, and takes the last; a string that does ends it. */
		if (n)
			sonde_trace_damage_add(w->r, SONDE_TRACE_DAMAGE_DUPLICATE_ID, &there,
				"%s %" PRIu64 " comes twice: the %s is taken (%zu such)",
				i ? "stack" : "string", twice.id, i ? "last" : "first", n);
	}
	if (!x->n_events)
		sonde_trace_damage_add(w->r, SONDE_TRACE_DAMAGE_TRUNCATED, &at,
			"there is no event in %" PRIu64 " bytes", at.offset);
	else if (!x->ticks_per_sec)
		sonde_trace_damage_add(w->r, SONDE_TRACE_DAMAGE_NO_FREQUENCY, &at,
			"no Frequency record: one tick is taken for one nanosecond");
	return NULL;
}

struct sonde_error *sonde_trace_v1_index_make(
	struct sonde_trace_v1_index *x, struct sonde_trace_reader *r)
{
	struct sonde_trace_source *source = r->source;
	struct walk w = {.x = x, .r = r, .min_ticks = INT64_MAX};
	sonde_trace_v1_format_init(&x->format, source->data, source->len, r->info.version);
	x->format.is_mapped = source->file != NULL;
	const uint8_t *p = x->format.data + SONDE_TRACE_HEADER_BYTES, *progress = p, *next = NULL;
	w.batch = (struct sonde_trace_v1_batch){
		.start = SONDE_TRACE_HEADER_BYTES, .flags = SONDE_TRACE_V1_HEADLESS};
	/* Go takes events in front of the first batch for those of processor 0 at tick 0. */
	if (p < x->format.end && (*p & 0x3f) != SONDE_TRACE_V1_BATCH &&
		proc_of(x, 0) == UINT32_MAX - 1)
		return &sonde_enomem;
	while (p < x->format.end) {
		SONDE_TRY(see_record(&w, p, &next));
		if (!next)
			SONDE_TRY(recover(&w, p, &next));
		p = next;
		if (sonde_unlikely(p - progress >= PROGRESS_BYTES)) {
			sonde_trace_v1_format_release(&x->format, progress, p);
			progress = p;
			if (!sonde_log_progress(r->options.log, "indexing",
				    (uint64_t)(p - x->format.data), source->len))
				return sonde_error_new(
					SONDE_INTERRUPTED, "%s: interrupted", source->name);
		}
	}
	if (!close_batch(&w, source->len))
		return &sonde_enomem;
	return finish(&w);
}

void sonde_trace_v1_index_deinit(struct sonde_trace_v1_index *x)
{
	sonde_trace_v1_batches_deinit(&x->batches);
	sonde_trace_v1_procs_deinit(&x->procs);
	sonde_u32_map_deinit(&x->proc_of_id);
	sonde_trace_v1_entries_deinit(&x->strings.entries);
	sonde_trace_v1_entries_deinit(&x->stacks.entries);
	free(x->strings.caches);
	free(x->stacks.caches);
	sonde_trace_v1_exits_deinit(&x->exits);
	sonde_trace_v1_samples_deinit(&x->samples);
	sonde_u64_vec_deinit(&x->timers);
	sonde_u32_map_deinit(&x->entry_pcs);
	sonde_trace_v1_lates_deinit(&x->lates);
}

size_t sonde_trace_v1_index_bytes(const struct sonde_trace_v1_index *x)
{
	return x->batches.cap * sizeof(*x->batches.items) + x->procs.cap * sizeof(*x->procs.items) +
		x->strings.entries.cap * sizeof(*x->strings.entries.items) +
		x->stacks.entries.cap * sizeof(*x->stacks.entries.items) +
		x->exits.cap * sizeof(*x->exits.items) + x->samples.cap * sizeof(*x->samples.items);
}
