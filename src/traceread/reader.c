#include "traceread/internal.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "traceread/source.h"

const struct sonde_trace_damage_spec sonde_trace_damage_specs[SONDE_TRACE_N_DAMAGES] = {
#define SONDE_TRACE_DAMAGE(code, is_remark, word_, text_) \
	[SONDE_TRACE_DAMAGE_##code] = {.word = (word_), .text = (text_), .remark = (is_remark)},
#include "traceread/damage.def"
};

void sonde_trace_damage_add(struct sonde_trace_reader *r, enum sonde_trace_damage_code code,
	const struct sonde_trace_place *place, const char *fmt, ...)
{
	static const struct sonde_trace_place nowhere = {
		.m = SONDE_TRACE_NO_ID, .p = SONDE_TRACE_NO_ID, .g = SONDE_TRACE_NO_ID};
	struct sonde_trace_damages *d = &r->damages;
	place = place ? place : &nowhere;
	d->bytes[code] += place->bytes;
	if (d->counts[code]++ >= SONDE_TRACE_KEPT_DAMAGES)
		return;
	sonde_cleanup(sonde_buf) struct sonde_buf text = {0};
	va_list args;
	va_start(args, fmt);
	sonde_buf_vprintf(&text, fmt, args);
	va_end(args);
	struct sonde_trace_damage damage = {
		.code = code,
		.generation = r->info.n_generations,
		.offset = place->offset,
		.ns = r->last_ns,
		.m = place->m,
		.p = place->p,
		.g = place->g,
		.bytes = place->bytes,
		.text = sonde_arena_strdup(&d->arena, sonde_buf_text(&text)),
	};
	if (damage.text)
		(void)sonde_trace_damage_vec_push(&d->list, damage); /* it is counted anyway */
}

void sonde_trace_damage_add_open(struct sonde_trace_reader *r, uint64_t offset)
{
	const struct sonde_trace_state *s = &r->state;
	struct sonde_trace_place place = {
		offset, SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, SONDE_TRACE_NO_ID, 0};
	sonde_vec_foreach (task, &s->tasks)
		if (task->is_open)
			sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_OPEN_TASK, &place,
				"task %" PRIu64 " '%s'", task->id,
				sonde_trace_interned(r, task->name));
	for (uint32_t slot = 0; slot < s->n_open_regions && slot < s->gs.n; slot++) {
		const struct sonde_trace_region *region = sonde_trace_state_region(s, slot);
		place.g = s->gs.items[slot].id;
		for (; region; region = sonde_trace_state_outer_region(s, region))
			sonde_trace_damage_add(r, SONDE_TRACE_DAMAGE_OPEN_REGION, &place,
				"goroutine %" PRIu64 ": region '%s' of task %" PRIu64, place.g,
				sonde_trace_interned(r, region->name), region->task);
	}
}

/* --- opening --- */

static struct sonde_error *not_a_trace(const struct sonde_trace_source *source)
{
	if (!source->len)
		return sonde_error_new(
			SONDE_TRUNCATED, "%s: an empty file, not a trace", source->name);
	const char *looks = "";
	if (source->len >= 4 &&
		!memcmp(source->data,
			"\x7f"
			"ELF",
			4))
		looks = " (an ELF file)";
	else if (source->len >= 5 && !memcmp(source->data, "go 1.", 5))
		looks = " (its header is damaged or cut short)";
	if (source->at_end)
		return sonde_error_new(SONDE_BAD_DATA,
			"%s: not an execution trace of Go%s: %" PRIu64 " bytes", source->name,
			looks, source->start + source->len);
	return sonde_error_new(
		SONDE_BAD_DATA, "%s: not an execution trace of Go%s", source->name, looks);
}

static struct sonde_error *choose(struct sonde_trace_reader *r)
{
	struct sonde_trace_source *source = r->source;
	SONDE_TRY(sonde_trace_source_fill(source, SONDE_TRACE_HEADER_BYTES));
	r->info.version = sonde_trace_header_decode(source->data, source->len);
	switch (r->info.version) {
	case 0:
		return not_a_trace(source);
	case 5:
	case 7:
	case 8:
	case 9:
	case 10:
	case 11:
	case 19:
	case 21:
		r->ops = &sonde_trace_v1_ops;
		break;
	case 22:
	case 23:
	case 25:
	case 26:
		r->ops = &sonde_trace_v2_ops;
		break;
	default:
		return sonde_error_new(SONDE_UNSUPPORTED,
			"%s: an execution trace of the unknown format go 1.%u", source->name,
			r->info.version);
	}
	if (source->is_whole)
		r->info.size_bytes = source->len;
	return r->ops->open(r);
}

static struct sonde_error *open_source(struct sonde_trace_source *source,
	const struct sonde_trace_reader_options *options, struct sonde_trace_reader **ret)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *r =
		sonde_new(struct sonde_trace_reader);
	if (!r) {
		sonde_trace_source_free(source);
		return &sonde_enomem;
	}
	r->source = source;
	r->last_ns = INT64_MIN;
	if (options)
		r->options = *options;
	sonde_arena_init(&r->damages.arena);
	if (!sonde_strtab_init(&r->strings) || !sonde_trace_interned_stacks_add(&r->stacks))
		return &sonde_enomem;
	SONDE_TRY(choose(r));
	*ret = sonde_take(r);
	return NULL;
}

struct sonde_error *sonde_trace_reader_open(const char *path,
	const struct sonde_trace_reader_options *options, struct sonde_trace_reader **ret)
{
	struct sonde_trace_source *source;
	SONDE_TRY(sonde_trace_source_open(
		path, options && options->follow, options ? options->log : NULL, &source));
	return open_source(source, options, ret);
}

struct sonde_error *sonde_trace_reader_open_memory(const void *data, size_t len,
	const struct sonde_trace_reader_options *options, struct sonde_trace_reader **ret)
{
	struct sonde_trace_source *source;
	SONDE_TRY(sonde_trace_source_open_memory(data, len, &source));
	return open_source(source, options, ret);
}

void sonde_trace_reader_free(struct sonde_trace_reader *r)
{
	if (!r)
		return;
	if (r->ops)
		r->ops->free(r);
	sonde_trace_source_free(r->source);
	sonde_trace_damage_vec_deinit(&r->damages.list);
	sonde_arena_deinit(&r->damages.arena);
	sonde_trace_state_deinit(&r->state);
	sonde_strtab_deinit(&r->strings);
	sonde_trace_interned_stacks_deinit(&r->stacks);
	sonde_trace_interned_frames_deinit(&r->frames);
	free(r->stack_slots);
	free(r);
}

struct sonde_error *sonde_trace_reader_next(
	struct sonde_trace_reader *r, const struct sonde_trace_event **ret)
{
	return r->ops->next(r, ret);
}

const struct sonde_trace_info *sonde_trace_reader_info(struct sonde_trace_reader *r)
{
	r->info.state_bytes = sonde_trace_state_bytes(&r->state);
	return &r->info;
}

const struct sonde_trace_damages *sonde_trace_reader_damages(const struct sonde_trace_reader *r)
{
	return &r->damages;
}

const struct sonde_trace_state *sonde_trace_reader_state(const struct sonde_trace_reader *r)
{
	return &r->state;
}

bool sonde_trace_reader_is_whole(const struct sonde_trace_reader *r)
{
	for (int i = 0; i < SONDE_TRACE_N_DAMAGES; i++)
		if (r->damages.counts[i] && !sonde_trace_damage_specs[i].remark)
			return false;
	return true;
}

void sonde_trace_reader_add_notes(const struct sonde_trace_reader *r, struct sonde_notes *notes)
{
	bool seen[SONDE_TRACE_N_DAMAGES] = {false};
	sonde_vec_foreach (d, &r->damages.list) {
		uint64_t count = r->damages.counts[d->code];
		if (seen[d->code])
			continue;
		seen[d->code] = true;
		sonde_notes_add(notes, sonde_trace_damage_specs[d->code].text,
			r->damages.bytes[d->code], "offset %" PRIu64 ": %s", d->offset, d->text);
		sonde_vec_foreach (entry, &notes->entries)
			if (entry->kind == sonde_trace_damage_specs[d->code].text)
				entry->count += count - 1;
	}
}

/* --- strings and stacks --- */

const char *sonde_trace_string(const struct sonde_trace_reader *r, uint64_t id, size_t *len)
{
	*len = 0;
	if (!id)
		return "";
	const char *s = r->ops->string(r, id, len);
	if (s)
		return s;
	uint64_t interned = id ^ SONDE_TRACE_STRING_INTERNED;
	if (interned < r->strings.entries.n) {
		*len = r->strings.entries.items[interned].len;
		return r->strings.entries.items[interned].s;
	}
	return NULL;
}

uint32_t sonde_trace_intern_text(struct sonde_trace_reader *r, const char *s, size_t len)
{
	return sonde_strtab_add(&r->strings, s, len);
}

uint32_t sonde_trace_intern(struct sonde_trace_reader *r, uint64_t id)
{
	size_t len;
	if (!id)
		return 0;
	uint32_t *cache = r->ops->string_cache(r, id);
	if (cache && *cache)
		return *cache - 1;
	const char *s = sonde_trace_string(r, id, &len);
	uint32_t interned = s ? sonde_strtab_add(&r->strings, s, len) : 0;
	if (cache && interned != UINT32_MAX)
		*cache = interned + 1;
	return interned;
}

const char *sonde_trace_interned(const struct sonde_trace_reader *r, uint32_t id)
{
	return sonde_strtab_text(&r->strings, id);
}

size_t sonde_trace_stack(const struct sonde_trace_reader *r, uint64_t id,
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES])
{
	return id ? r->ops->stack(r, id, frames) : 0;
}

static uint32_t hash_frames(const struct sonde_trace_interned_frame *frames, size_t n)
{
	uint64_t h = n;
	for (size_t i = 0; i < n; i++) {
		h = sonde_hash_u64(h ^ frames[i].pc);
		h = sonde_hash_u64(h ^ ((uint64_t)frames[i].func << 32 | frames[i].line));
	}
	return (uint32_t)h;
}

static bool grow_stack_slots(struct sonde_trace_reader *r)
{
	size_t cap = r->stack_slots_cap ? 2 * r->stack_slots_cap : 256;
	uint32_t *slots = sonde_new_array(uint32_t, cap);
	if (!slots)
		return false;
	for (uint32_t i = 1; i < r->stacks.n; i++) {
		size_t at = r->stacks.items[i].hash & (cap - 1);
		while (slots[at])
			at = (at + 1) & (cap - 1);
		slots[at] = i;
	}
	free(r->stack_slots);
	r->stack_slots = slots;
	r->stack_slots_cap = cap;
	return true;
}

static bool same_stack(const struct sonde_trace_reader *r, uint32_t id, uint32_t hash,
	const struct sonde_trace_interned_frame *frames, size_t n)
{
	const struct sonde_trace_interned_stack_entry *e = &r->stacks.items[id];
	if (e->hash != hash || e->n != n)
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct sonde_trace_interned_frame *f = &r->frames.items[e->first + i];
		if (f->pc != frames[i].pc || f->func != frames[i].func ||
			f->file != frames[i].file || f->line != frames[i].line)
			return false;
	}
	return true;
}

static uint32_t intern_frames(
	struct sonde_trace_reader *r, const struct sonde_trace_interned_frame *frames, size_t n)
{
	if (r->stacks.n + 1 > r->stack_slots_cap / 2 && !grow_stack_slots(r))
		return UINT32_MAX;
	uint32_t hash = hash_frames(frames, n);
	size_t at = hash & (r->stack_slots_cap - 1);
	for (; r->stack_slots[at]; at = (at + 1) & (r->stack_slots_cap - 1))
		if (same_stack(r, r->stack_slots[at], hash, frames, n))
			return r->stack_slots[at];
	struct sonde_trace_interned_stack_entry entry = {
		.first = (uint32_t)r->frames.n, .n = (uint32_t)n, .hash = hash};
	if (r->frames.n + n >= UINT32_MAX || r->stacks.n >= UINT32_MAX - 1 ||
		!sonde_trace_interned_frames_reserve(&r->frames, n) ||
		!sonde_trace_interned_stacks_push(&r->stacks, entry))
		return UINT32_MAX;
	memcpy(r->frames.items + r->frames.n, frames, n * sizeof(*frames));
	r->frames.n += n;
	return r->stack_slots[at] = (uint32_t)r->stacks.n - 1;
}

uint32_t sonde_trace_intern_stack(struct sonde_trace_reader *r, uint64_t id)
{
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	struct sonde_trace_interned_frame interned[SONDE_TRACE_MAX_FRAMES];
	if (!id)
		return 0;
	uint32_t *cache = r->ops->stack_cache(r, id);
	if (cache && *cache)
		return *cache - 1;
	size_t n = r->ops->stack(r, id, frames);
	for (size_t i = 0; i < n; i++) {
		interned[i] = (struct sonde_trace_interned_frame){
			.pc = frames[i].pc,
			.func = sonde_trace_intern(r, frames[i].func),
			.file = sonde_trace_intern(r, frames[i].file),
			.line = (uint32_t)sonde_min(frames[i].line, (uint64_t)UINT32_MAX),
		};
		if (interned[i].func == UINT32_MAX || interned[i].file == UINT32_MAX)
			return UINT32_MAX;
	}
	uint32_t stable = n ? intern_frames(r, interned, n) : 0;
	if (cache && stable != UINT32_MAX)
		*cache = stable + 1;
	return stable;
}

const struct sonde_trace_interned_frame *sonde_trace_interned_stack(
	const struct sonde_trace_reader *r, uint32_t id, size_t *n)
{
	*n = 0;
	if (!id || id >= r->stacks.n)
		return NULL;
	*n = r->stacks.items[id].n;
	return r->frames.items + r->stacks.items[id].first;
}
