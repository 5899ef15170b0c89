#include "golang/ptrmask.h"

#include <string.h>
#include "base/varint.h"
#include "golang/types.h"

enum {
	MAX_DEPTH = 100,
	MAX_FIELDS = 1 << 16,
	MAX_VISITS = 1
		<< 24, /* types that one mask is put together from: a byte of mask each at least */
	KIND_MASK = 31,
};
/* A type with more pointer data than this is taken for damage: 64 MB of mask. */
static const uint64_t MAX_PTR_BYTES = UINT64_C(1) << 32;

struct descriptor {
	uint64_t size_bytes, ptr_bytes, gcdata;
	uint8_t kind;
	bool gc_program, on_demand;
};

void sonde_go_masks_init(struct sonde_go_masks *m, const struct sonde_go *go)
{
	*m = (struct sonde_go_masks){.go = go};
	sonde_arena_init(&m->arena);
}

void sonde_go_masks_deinit(struct sonde_go_masks *m)
{
	sonde_arena_deinit(&m->arena);
	sonde_go_mask_map_deinit(&m->by_type);
}

static bool read_descriptor(const struct sonde_go *go, uint64_t addr, struct descriptor *d)
{
	const struct sonde_go_layout *l = &go->layout;
	const uint8_t *bytes = sonde_target_bytes(go->target, addr, l->sizeof_type);
	if (!bytes)
		return false;
	uint64_t kind = sonde_go_load(bytes, l->type_kind),
		 tflag = sonde_go_load(bytes, l->type_tflag);
	*d = (struct descriptor){
		.size_bytes = sonde_go_load(bytes, l->type_size),
		.ptr_bytes = sonde_go_load(bytes, l->type_ptr_bytes),
		.gcdata = sonde_go_load(bytes, l->type_gcdata),
		.kind = kind & KIND_MASK,
		.gc_program = kind & (uint64_t)l->kind_gc_prog,
		.on_demand = tflag & (uint64_t)l->tflag_gc_mask_on_demand,
	};
	return d->size_bytes && d->ptr_bytes <= d->size_bytes && d->ptr_bytes <= MAX_PTR_BYTES &&
		d->ptr_bytes % go->word_bytes == 0;
}

/* Or n bits of `from` into `to`, from bit `at` on. */
static void put_bits(uint64_t *to, uint64_t at, const uint8_t *from, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		if (from[i >> 3] >> (i & 7) & 1)
			to[(at + i) >> 6] |= UINT64_C(1) << ((at + i) & 63);
	}
}

bool sonde_go_gc_program_run(const uint8_t *program, uint64_t len, uint64_t *to, uint64_t n_bits)
{
	struct sonde_cursor c = sonde_cursor_over(program, len);
	uint64_t at = 0;
	for (;;) {
		uint8_t inst = sonde_cursor_u8(&c);
		uint64_t n = inst & 0x7f;
		if (c.bad)
			return false;
		if (!(inst & 0x80)) {
			if (n == 0)
				return true;
			const uint8_t *bits = sonde_cursor_bytes(&c, (n + 7) / 8);
			if (!bits || n > n_bits - at)
				return false;
			put_bits(to, at, bits, n);
			at += n;
			continue;
		}
		/* Repeat the last n bits `times` times. */
		if (n == 0)
			n = sonde_varint_u64(&c);
		uint64_t times = sonde_varint_u64(&c), more;
		if (c.bad || n == 0 || n > at || __builtin_mul_overflow(n, times, &more))
			return false;
		/* The last repetition may run past ptr_bytes by zeros only: they are not stored. */
		more = sonde_min(more, n_bits - at);
		for (uint64_t i = 0; i < more; i++, at++) {
			uint64_t from = at - n;
			if (to[from >> 6] >> (from & 63) & 1)
				to[at >> 6] |= UINT64_C(1) << (at & 63);
		}
	}
}

static uint64_t word_behind(const struct sonde_go *go, uint64_t type, unsigned word)
{
	uint64_t v = 0;
	sonde_go_read_word(go, type + go->layout.sizeof_type + (uint64_t)word * go->word_bytes, &v);
	return v;
}

struct builder {
	const struct sonde_go *go;
	uint64_t *to, n_bits;
	unsigned n_visits;
};

/* Write the mask of the type at addr into `to` from bit `at` on; as runtime/type.go buildGCMask. */
static bool build(struct builder *b, uint64_t addr, uint64_t at, int depth);

static bool build_array(struct builder *b, uint64_t addr, uint64_t at, int depth)
{
	uint64_t elem = word_behind(b->go, addr, 0), count = word_behind(b->go, addr, 2);
	struct descriptor e;
	if (!read_descriptor(b->go, elem, &e))
		return false;
	for (uint64_t i = 0; i < count && e.ptr_bytes; i++) {
		if (!build(b, elem, at + i * (e.size_bytes / b->go->word_bytes), depth + 1))
			return false;
	}
	return true;
}

static bool build_struct(
	struct builder *b, uint64_t addr, uint64_t at, uint64_t size_bytes, int depth)
{
	const struct sonde_go *go = b->go;
	uint64_t fields = word_behind(go, addr, 1), count = word_behind(go, addr, 2), end = 0;
	for (uint64_t i = 0; i < count && i < MAX_FIELDS; i++) {
		uint64_t field = fields + i * 3 * go->word_bytes, type, offset;
		struct descriptor e;
		if (!sonde_go_read_word(go, field + go->word_bytes, &type) ||
			!sonde_go_read_word(go, field + 2 * go->word_bytes, &offset) ||
			offset > size_bytes)
			return false;
		/* Fields without pointers may have a size that is no multiple of a word. */
		if (!read_descriptor(go, type, &e) || !e.ptr_bytes)
			continue;
		if (offset < end || e.size_bytes > size_bytes - offset)
			return false;
		end = offset + e.size_bytes;
		if (!build(b, type, at + offset / go->word_bytes, depth + 1))
			return false;
	}
	return true;
}

static bool build(struct builder *b, uint64_t addr, uint64_t at, int depth)
{
	const struct sonde_go *go = b->go;
	struct descriptor d;
	if (depth > MAX_DEPTH || ++b->n_visits > MAX_VISITS || !read_descriptor(go, addr, &d))
		return false;
	uint64_t n = d.ptr_bytes / go->word_bytes;
	if (n == 0)
		return true;
	if (at > b->n_bits || n > b->n_bits - at)
		return false;
	uint64_t mask = d.gcdata;
	if (d.on_demand) {
		/* GCData points at a slot: nil or a byte of the runtime while the mask is not there yet. */
		if (!sonde_go_read_word(go, d.gcdata, &mask) || mask == go->mask_in_progress)
			mask = 0;
	}
	if (mask && d.gc_program) {
		uint32_t len;
		const uint8_t *program = NULL;
		if (sonde_target_read_u32(go->target, mask, &len))
			program = sonde_target_bytes(go->target, mask + 4, len);
		/* A program starts at a word of `to` only when it is the whole. */
		return at == 0 && program && sonde_go_gc_program_run(program, len, b->to, n);
	}
	const uint8_t *bits = mask ? sonde_target_bytes(go->target, mask, (n + 7) / 8) : NULL;
	if (bits) {
		put_bits(b->to, at, bits, n);
		return true;
	}
	if (d.kind == SONDE_GO_KIND_ARRAY)
		return build_array(b, addr, at, depth);
	return d.kind == SONDE_GO_KIND_STRUCT && build_struct(b, addr, at, d.size_bytes, depth);
}

static const struct sonde_go_mask *make(
	struct sonde_go_masks *m, uint64_t type_addr, const struct descriptor *type)
{
	struct descriptor d = *type;
	struct sonde_go_mask *mask = sonde_arena_alloc(&m->arena, sizeof(*mask));
	if (!mask)
		return NULL;
	*mask = (struct sonde_go_mask){.size_bytes = d.size_bytes, .ptr_bytes = d.ptr_bytes};
	uint64_t n = d.ptr_bytes / m->go->word_bytes;
	if (n == 0)
		return mask;
	uint64_t *bits = sonde_arena_array(&m->arena, uint64_t, (n + 63) / 64);
	if (!bits || !build(&(struct builder){m->go, bits, n, 0}, type_addr, 0, 0))
		return NULL;
	mask->bits = bits;
	mask->all_pointers = d.ptr_bytes == d.size_bytes;
	for (uint64_t i = 0; i < n && mask->all_pointers; i++)
		mask->all_pointers = bits[i >> 6] >> (i & 63) & 1;
	return mask;
}

const struct sonde_go_mask *sonde_go_masks_make_(
	struct sonde_go_masks *m, uint64_t type_addr, uint64_t max_bytes)
{
	struct descriptor d;
	const struct sonde_go_mask **known = sonde_go_mask_map_find(&m->by_type, type_addr);
	if (known) {
		m->last_type = type_addr;
		m->last = *known;
		return *known && (*known)->size_bytes <= max_bytes ? *known : NULL;
	}
	/* A type that is larger than the object that names it is not kept: it would have to be built first. */
	bool sane = type_addr && read_descriptor(m->go, type_addr, &d);
	if (sane && d.size_bytes > max_bytes)
		return NULL;
	const struct sonde_go_mask **slot = sonde_go_mask_map_put(&m->by_type, type_addr, NULL);
	if (!slot)
		return NULL;
	*slot = sane ? make(m, type_addr, &d) : NULL;
	m->last_type = type_addr;
	m->last = *slot;
	return m->last;
}
