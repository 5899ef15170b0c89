#include "golang/ptrmask.h"

#include <string.h>
#include "base/varint.h"
#include "golang/types.h"

enum {
	MAX_DEPTH = 100,
	MAX_FIELDS = 1 << 16,
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

/* Write the mask of the type at addr into `to` from bit `at`, n_bits in all; as runtime/type.go buildGCMask. */
static bool build(const struct sonde_go *go, uint64_t addr, uint64_t *to, uint64_t at,
	uint64_t n_bits, int depth)
{
	struct descriptor d;
	if (depth > MAX_DEPTH || !read_descriptor(go, addr, &d))
		return false;
	uint64_t n = d.ptr_bytes / go->word_bytes;
	if (n == 0)
		return true;
	if (at > n_bits || n > n_bits - at)
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
		/* A program starts at a word boundary of its type only when it is the whole: build alone, then copy. */
		return at == 0 && program && sonde_go_gc_program_run(program, len, to, n);
	}
	const uint8_t *bits = mask ? sonde_target_bytes(go->target, mask, (n + 7) / 8) : NULL;
	if (bits) {
		put_bits(to, at, bits, n);
		return true;
	}
	if (d.kind == SONDE_GO_KIND_ARRAY) {
		uint64_t elem = word_behind(go, addr, 0), count = word_behind(go, addr, 2);
		struct descriptor e;
		if (!read_descriptor(go, elem, &e))
			return false;
		for (uint64_t i = 0; i < count && e.ptr_bytes; i++) {
			if (!build(go, elem, to, at + i * (e.size_bytes / go->word_bytes), n_bits,
				    depth + 1))
				return false;
		}
		return true;
	}
	if (d.kind == SONDE_GO_KIND_STRUCT) {
		uint64_t fields = word_behind(go, addr, 1), count = word_behind(go, addr, 2);
		for (uint64_t i = 0; i < count && i < MAX_FIELDS; i++) {
			uint64_t field = fields + i * 3 * go->word_bytes, type, offset;
			struct descriptor e;
			if (!sonde_go_read_word(go, field + go->word_bytes, &type) ||
				!sonde_go_read_word(go, field + 2 * go->word_bytes, &offset) ||
				offset > d.size_bytes)
				return false;
			/* Fields without pointers may have a size that is no multiple of a word. */
			if (read_descriptor(go, type, &e) && e.ptr_bytes &&
				!build(go, type, to, at + offset / go->word_bytes, n_bits,
					depth + 1))
				return false;
		}
		return true;
	}
	return false;
}

static const struct sonde_go_mask *make(struct sonde_go_masks *m, uint64_t type_addr)
{
	struct descriptor d;
	if (!type_addr || !read_descriptor(m->go, type_addr, &d))
		return NULL;
	struct sonde_go_mask *mask = sonde_arena_alloc(&m->arena, sizeof(*mask));
	if (!mask)
		return NULL;
	*mask = (struct sonde_go_mask){.size_bytes = d.size_bytes, .ptr_bytes = d.ptr_bytes};
	uint64_t n = d.ptr_bytes / m->go->word_bytes;
	if (n == 0)
		return mask;
	/* Nothing is allocated for a type whose elements could not be in memory. */
	uint64_t *bits = sonde_arena_array(&m->arena, uint64_t, (n + 63) / 64);
	if (!bits || !build(m->go, type_addr, bits, 0, n, 0))
		return NULL;
	mask->bits = bits;
	mask->all_pointers = d.ptr_bytes == d.size_bytes;
	for (uint64_t i = 0; i < n && mask->all_pointers; i++)
		mask->all_pointers = bits[i >> 6] >> (i & 63) & 1;
	return mask;
}

const struct sonde_go_mask *sonde_go_masks_make_(struct sonde_go_masks *m, uint64_t type_addr)
{
	bool was_new;
	const struct sonde_go_mask **slot = sonde_go_mask_map_put(&m->by_type, type_addr, &was_new);
	if (!slot)
		return NULL;
	if (was_new)
		*slot = make(m, type_addr);
	m->last_type = type_addr;
	m->last = *slot;
	return m->last;
}
