#include "golang/ptrmask.h"

#include "build_go.h"
#include "tap.h"

enum { TYPES = 0x500000, TYPES_BYTES = 1 << 20 };

/* --- GC programs --- */

/* The bits as text, "1011"; "bad" where the program is refused. */
static const char *run(const void *program, size_t len, uint64_t n_bits)
{
	static char text[4097];
	uint64_t words[64] = {0};
	uint8_t *copy = malloc(len ? len : 1);
	memcpy(copy, program, len);
	bool ok = sonde_go_gc_program_run(copy, len, words, n_bits);
	free(copy);
	for (uint64_t i = n_bits; i < 4096; i++)
		CHECK(!(words[i >> 6] >> (i & 63) & 1));
	if (!ok)
		return "bad";
	for (uint64_t i = 0; i < n_bits; i++)
		text[i] = words[i >> 6] >> (i & 63) & 1 ? '1' : '0';
	text[n_bits] = 0;
	return text;
}
#define RUN_PROGRAM(n_bits, ...) \
	run((const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__}), n_bits)

static void literals(void)
{
	CHECK_STR(RUN_PROGRAM(4, 0), "0000");
	CHECK_STR(RUN_PROGRAM(4, 4, 0x0b, 0), "1101");
	CHECK_STR(RUN_PROGRAM(4, 4, 0xfb, 0), "1101"); /* what stands behind the n bits is no bit */
	CHECK_STR(RUN_PROGRAM(10, 8, 0x01, 2, 3, 0), "1000000011");
	CHECK_STR(RUN_PROGRAM(12, 3, 5, 9, 0x01, 0x01, 0), "101100000001");
	CHECK_STR(RUN_PROGRAM(3, 4, 0xff, 0), "bad"); /* more than there is room for */
	CHECK_STR(RUN_PROGRAM(3, 3, 7, 1, 1, 0), "bad");
	CHECK_STR(RUN_PROGRAM(3, 3, 7), "bad"); /* no end */
	CHECK_STR(run("", 0, 3), "bad");
	CHECK_STR(RUN_PROGRAM(20, 20, 0xff, 0xff), "bad"); /* cut */
	uint8_t longest[18] = {0x7f};
	memset(longest + 1, 0xff, 16);
	CHECK_EQ(strspn(run(longest, sizeof(longest), 127), "1"), 127);
}

static void repeats(void)
{
	/* The last 2 bits 3 times more. */
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x82, 3, 0), "10101010");
	/* n as a varint. */
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x80, 2, 3, 0), "10101010");
	CHECK_STR(RUN_PROGRAM(8, 3, 5, 0x80, 0x82, 0x00, 2, 0), "10101010");
	/* The repetition overlaps itself. */
	CHECK_STR(RUN_PROGRAM(9, 3, 1, 0x83, 2, 0), "100100100");
	/* Count in two bytes: 200 times. */
	const char *text = RUN_PROGRAM(402, 2, 2, 0x82, 0xc8, 0x01, 0);
	CHECK_EQ(strlen(text), 402);
	for (size_t i = 0; i < 402; i++)
		CHECK(text[i] == (i % 2 ? '1' : '0'));
	/* Over word borders. */
	text = RUN_PROGRAM(4000, 7, 0x41, 0x87, 0xff, 0x07, 0);
	for (size_t i = 0; i < 4000; i++)
		CHECK(text[i] == (i % 7 == 0 || i % 7 == 6 ? '1' : '0'));
	/* No times at all. */
	CHECK_STR(RUN_PROGRAM(4, 2, 3, 0x82, 0, 0), "1100");
	/* Past the end by what is not stored. */
	CHECK_STR(RUN_PROGRAM(5, 3, 1, 0x83, 100, 0), "10010");
}

static void damaged_repeats(void)
{
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x83, 3, 0), "bad"); /* of more bits than there are */
	CHECK_STR(RUN_PROGRAM(8, 0x81, 3, 0), "bad");
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x80, 0, 3, 0), "bad");
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x82), "bad");
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x80), "bad");
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x80, 0x82), "bad");
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x82, 0xff, 0xff), "bad");
	/* n * times overflows. */
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
			  0x01, 0),
		"bad");
	CHECK_STR(RUN_PROGRAM(8, 2, 1, 0x82, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0),
		"10101010");
}

/* --- masks of descriptors --- */

static void begin(struct bg *b, uint16_t machine, struct bg_area **types)
{
	bg_init(b, machine);
	bg_layout(b);
	*types = bg_area(b, TYPES, TYPES_BYTES);
	bg_put(b, *types, 16);
}

/* The mask as text; "none" where there is none. */
static const char *mask_of(struct bg *b, uint64_t type)
{
	static char text[4097];
	sonde_cleanup(sonde_go_masks) struct sonde_go_masks masks;
	sonde_go_masks_init(&masks, &b->go);
	const struct sonde_go_mask *m = sonde_go_masks_find(&masks, type, UINT64_MAX);
	CHECK(m == sonde_go_masks_find(&masks, type, UINT64_MAX));
	if (!m)
		return "none";
	uint64_t n = m->ptr_bytes / b->word;
	CHECK(n <= 4096);
	bool all = m->ptr_bytes == m->size_bytes && n;
	for (uint64_t i = 0; i < n && i < 4096; i++) {
		text[i] = m->bits[i >> 6] >> (i & 63) & 1 ? '1' : '0';
		all &= text[i] == '1';
	}
	text[n] = 0;
	CHECK(m->all_pointers == all);
	return text;
}

static void plain(void)
{
	for (int is32 = 0; is32 < 2; is32++) {
		sonde_cleanup(bg) struct bg b;
		struct bg_area *a;
		begin(&b, is32 ? EM_386 : EM_X86_64, &a);
		uint64_t one = bg_masked_type(&b, a, 1, 1), some = bg_masked_type(&b, a, 5, 0x0a),
			 all = bg_masked_type(&b, a, 64, UINT64_MAX),
			 no = bg_masked_type(&b, a, 3, 0);
		bg_open(&b);
		CHECK_STR(mask_of(&b, one), "1");
		CHECK_STR(mask_of(&b, some), "0101");
		CHECK_STR(mask_of(&b, no), "");
		CHECK_EQ(strlen(mask_of(&b, all)), 64);
		/* One cache for several types. */
		sonde_cleanup(sonde_go_masks) struct sonde_go_masks masks;
		sonde_go_masks_init(&masks, &b.go);
		const struct sonde_go_mask *m = sonde_go_masks_find(&masks, one, UINT64_MAX);
		CHECK_EQ(sonde_go_masks_find(&masks, some, UINT64_MAX)->ptr_bytes, 4 * b.word);
		CHECK_EQ(sonde_go_masks_find(&masks, some, UINT64_MAX)->size_bytes, 5 * b.word);
		CHECK(sonde_go_masks_find(&masks, one, UINT64_MAX) == m);
		CHECK(!sonde_go_masks_find(&masks, 0, UINT64_MAX));
		CHECK(!sonde_go_masks_find(&masks, 1, UINT64_MAX));
		CHECK(!sonde_go_masks_find(&masks, 1, UINT64_MAX));
	}
}

static void no_sense(void)
{
	sonde_cleanup(bg) struct bg b;
	struct bg_area *a;
	begin(&b, EM_X86_64, &a);
	uint8_t ones[16];
	memset(ones, 0xff, sizeof(ones));
	uint64_t mask = bg_bytes(&b, a, ones, sizeof(ones));
	const struct bg_type bad[] = {
		{.size_bytes = 0, .ptr_bytes = 0, .kind = 25, .gcdata = mask},
		{.size_bytes = 8, .ptr_bytes = 16, .kind = 25, .gcdata = mask},
		{.size_bytes = 16, .ptr_bytes = 12, .kind = 25, .gcdata = mask},
		{.size_bytes = UINT64_MAX, .ptr_bytes = UINT64_MAX - 7, .kind = 25, .gcdata = mask},
		{.size_bytes = 16, .ptr_bytes = 8, .kind = 22, .gcdata = 0}, /* no mask, no parts */
		{.size_bytes = 16, .ptr_bytes = 8, .kind = 22, .gcdata = 0x1234},
		{.size_bytes = 1 << 28,
			.ptr_bytes = 1 << 28,
			.kind = 22,
			.gcdata = mask}, /* too long */
	};
	uint64_t at[SONDE_ARRAY_LEN(bad)];
	for (size_t i = 0; i < SONDE_ARRAY_LEN(bad); i++)
		at[i] = bg_type(&b, a, bad[i]);
	bg_open(&b);
	for (size_t i = 0; i < SONDE_ARRAY_LEN(bad); i++) {
		if (strcmp(mask_of(&b, at[i]), "none"))
			printf("# type %zu\n", i);
		CHECK_STR(mask_of(&b, at[i]), "none");
	}
	CHECK_STR(mask_of(&b, TYPES + TYPES_BYTES - 8), "none");
	CHECK_STR(mask_of(&b, TYPES - 8), "none");
	CHECK_STR(mask_of(&b, UINT64_MAX - 4), "none");
}

/* Arrays and structs whose masks the runtime has not made yet (runtime/type.go buildGCMask). */
static void on_demand(void)
{
	sonde_cleanup(bg) struct bg b;
	struct bg_area *a;
	begin(&b, EM_X86_64, &a);
	uint8_t built_mask[] = {0xb5};
	uint64_t nil = bg_put(&b, a, 8), busy = bg_put(&b, a, 8), built = bg_put(&b, a, 8);
	b.go.mask_in_progress = 0x123450;
	bg_word(&b, busy, b.go.mask_in_progress);
	bg_word(&b, built, bg_bytes(&b, a, built_mask, 1));
	uint64_t elem = bg_masked_type(&b, a, 3, 2); /* 0 1 (0) */
	struct bg_type array = {.size_bytes = 96,
		.ptr_bytes = 88,
		.kind = SONDE_GO_KIND_ARRAY,
		.tflag = 16,
		.words = {elem, 0, 4}};
	array.gcdata = 8 + nil - 8;
	uint64_t of_nil = bg_type(&b, a, array);
	array.gcdata = busy;
	uint64_t of_busy = bg_type(&b, a, array);
	array.gcdata = 0x99; /* the slot itself is not there */
	uint64_t of_lost = bg_type(&b, a, array);
	array.gcdata = built;
	array.ptr_bytes = 64;
	uint64_t of_built = bg_type(&b, a, array);
	/* struct { a [4]elem; b int8; c *T; d elem }: offsets 0, 96, 104, 112 */
	uint64_t byte = bg_type(&b, a, (struct bg_type){.size_bytes = 1, .kind = 8}),
		 pointer = bg_masked_type(&b, a, 1, 1);
	const uint64_t fields[] = {0, of_nil, 0, 0, byte, 96, 0, pointer, 104, 0, elem, 112};
	uint64_t st = bg_type(&b, a,
		(struct bg_type){.size_bytes = 136,
			.ptr_bytes = 128,
			.kind = SONDE_GO_KIND_STRUCT,
			.tflag = 16,
			.gcdata = nil,
			.words = {0, bg_bytes(&b, a, fields, sizeof(fields)), 4}});
	/* Its pointer field beyond what ptr_bytes says. */
	uint64_t liar = bg_type(&b, a,
		(struct bg_type){.size_bytes = 136,
			.ptr_bytes = 64,
			.kind = SONDE_GO_KIND_STRUCT,
			.tflag = 16,
			.gcdata = nil,
			.words = {0, bg_bytes(&b, a, fields, sizeof(fields)), 4}});
	uint64_t far_fields[] = {0, pointer, UINT64_MAX - 7};
	uint64_t far = bg_type(&b, a,
		(struct bg_type){.size_bytes = 136,
			.ptr_bytes = 64,
			.kind = SONDE_GO_KIND_STRUCT,
			.tflag = 16,
			.gcdata = nil,
			.words = {0, bg_bytes(&b, a, far_fields, sizeof(far_fields)), 1}});
	array.gcdata = nil;
	array.ptr_bytes = 88;
	array.words[2] = UINT64_MAX;
	uint64_t endless = bg_type(&b, a, array);
	array.words[0] = 0x1234;
	uint64_t no_elem = bg_type(&b, a, array);
	bg_open(&b);
	CHECK_STR(mask_of(&b, of_nil), "01001001001");
	CHECK_STR(mask_of(&b, of_busy), "01001001001");
	CHECK_STR(mask_of(&b, of_lost), "01001001001");
	CHECK_STR(mask_of(&b, of_built), "10101101");
	CHECK_STR(mask_of(&b, st), "0100100100100101");
	CHECK_STR(mask_of(&b, liar), "none");
	CHECK_STR(mask_of(&b, far), "none");
	CHECK_STR(mask_of(&b, endless), "none");
	CHECK_STR(mask_of(&b, no_elem), "none");
}

/* Kinds of Go 1.22 and 1.23: gcdata is {u32 length, program}. */
static void programs(void)
{
	sonde_cleanup(bg) struct bg b;
	struct bg_area *a;
	begin(&b, EM_X86_64, &a);
	b.go.layout.kind_gc_prog = 64;
	b.go.layout.tflag_gc_mask_on_demand = 0;
	const uint8_t code[] = {5, 0, 0, 0, 2, 1, 0x82, 7, 0},
		      cut[] = {4, 0, 0, 0, 2, 1, 0x82, 7, 0},
		      far[] = {0xff, 0xff, 0xff, 0x7f, 2, 1, 0x82, 7, 0};
	struct bg_type t = {.size_bytes = 128, .ptr_bytes = 128, .kind = SONDE_GO_KIND_ARRAY | 64};
	t.gcdata = bg_bytes(&b, a, code, sizeof(code));
	uint64_t good = bg_type(&b, a, t);
	t.gcdata = bg_bytes(&b, a, cut, sizeof(cut));
	uint64_t no_end = bg_type(&b, a, t);
	t.gcdata = bg_bytes(&b, a, far, sizeof(far));
	uint64_t outside = bg_type(&b, a, t);
	t.gcdata = 0x1234;
	uint64_t lost = bg_type(&b, a, t);
	bg_open(&b);
	CHECK_STR(mask_of(&b, good), "1010101010101010");
	CHECK_STR(mask_of(&b, no_end), "none");
	CHECK_STR(mask_of(&b, outside), "none");
	CHECK_STR(mask_of(&b, lost), "none");
}

/* Arrays of arrays, as deep as the cap and deeper; and one that is its own element. */
static void depth(void)
{
	sonde_cleanup(bg) struct bg b;
	struct bg_area *a;
	begin(&b, EM_X86_64, &a);
	uint64_t types[200], leaf = bg_masked_type(&b, a, 1, 1);
	for (size_t i = 0; i < 200; i++)
		types[i] = bg_type(&b, a,
			(struct bg_type){.size_bytes = 8,
				.ptr_bytes = 8,
				.kind = SONDE_GO_KIND_ARRAY,
				.words = {i ? types[i - 1] : leaf, 0, 1}});
	uint64_t self = bg_type(&b, a,
		(struct bg_type){.size_bytes = 8, .ptr_bytes = 8, .kind = SONDE_GO_KIND_ARRAY});
	bg_word(&b, self + b.go.layout.sizeof_type, self);
	bg_word(&b, self + b.go.layout.sizeof_type + 16, 1);
	bg_open(&b);
	CHECK_STR(mask_of(&b, types[90]), "1");
	CHECK_STR(mask_of(&b, types[199]), "none");
	CHECK_STR(mask_of(&b, self), "none");
}

/* Structs of two equal fields at one offset, 60 deep: refused or read, but not 2^60 times. */
static void breadth(void)
{
	sonde_cleanup(bg) struct bg b;
	struct bg_area *a;
	begin(&b, EM_X86_64, &a);
	uint64_t type = bg_masked_type(&b, a, 1, 1);
	for (size_t i = 0; i < 60; i++) {
		const uint64_t fields[] = {0, type, 0, 0, type, 0};
		type = bg_type(&b, a,
			(struct bg_type){.size_bytes = 8,
				.ptr_bytes = 8,
				.kind = SONDE_GO_KIND_STRUCT,
				.words = {0, bg_bytes(&b, a, fields, sizeof(fields)), 2}});
	}
	bg_open(&b);
	mask_of(&b, type);
}

int main(void)
{
	RUN(literals);
	RUN(repeats);
	RUN(damaged_repeats);
	RUN(plain);
	RUN(no_sense);
	RUN(on_demand);
	RUN(programs);
	RUN(depth);
	RUN(breadth);
	return tap_end();
}
