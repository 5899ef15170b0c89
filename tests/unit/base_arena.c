#include "base/arena.h"
#include "tap.h"

static void zeroed_and_aligned(void)
{
	sonde_cleanup(sonde_arena) struct sonde_arena arena;
	sonde_arena_init(&arena);
	for (size_t bytes = 1; bytes < 20000; bytes = bytes * 2 + 1) {
		uint8_t *p = sonde_arena_alloc(&arena, bytes);
		REQUIRE(p);
		CHECK_EQ((uintptr_t)p % 16, 0);
		for (size_t i = 0; i < bytes; i++)
			REQUIRE(p[i] == 0);
		memset(p, 0xff, bytes);
	}
}

static void overflow_is_null(void)
{
	sonde_cleanup(sonde_arena) struct sonde_arena arena;
	sonde_arena_init(&arena);
	CHECK(!sonde_arena_alloc(&arena, SIZE_MAX));
	CHECK(!sonde_arena_alloc(&arena, SIZE_MAX - 15));
	CHECK(!sonde_arena_array(&arena, uint64_t, SIZE_MAX / 4));
	CHECK(!sonde_arena_strndup(&arena, "", SIZE_MAX));
}

static void strings(void)
{
	sonde_cleanup(sonde_arena) struct sonde_arena arena;
	sonde_arena_init(&arena);
	CHECK_STR(sonde_arena_strndup(&arena, "abcdef", 3), "abc");
	CHECK_STR(sonde_arena_strdup(&arena, ""), "");
	CHECK_STR(sonde_arena_printf(&arena, "%d-%s", 7, "x"), "7-x");
}

int main(void)
{
	RUN(zeroed_and_aligned);
	RUN(overflow_is_null);
	RUN(strings);
	return tap_end();
}
