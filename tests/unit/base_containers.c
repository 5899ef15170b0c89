#include "base/buf.h"
#include "base/map.h"
#include "base/notes.h"
#include "base/parallel.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "tap.h"

static void vec_grows(void)
{
	sonde_cleanup(sonde_u64_vec) struct sonde_u64_vec v = {0};
	for (uint64_t i = 0; i < 1000; i++)
		REQUIRE(sonde_u64_vec_push(&v, i * i));
	CHECK_EQ(v.n, 1000);
	uint64_t i = 0;
	sonde_vec_foreach (it, &v) {
		CHECK_EQ(*it, i * i);
		i++;
	}
	CHECK(!sonde_u64_vec_reserve(&v, SIZE_MAX / 8));
	CHECK(!sonde_u64_vec_reserve(&v, SIZE_MAX));
	CHECK_EQ(v.n, 1000);
}

static void map_finds_all(void)
{
	sonde_cleanup(sonde_u64_map) struct sonde_u64_map m = {0};
	CHECK(!sonde_u64_map_find(&m, 0));
	for (uint64_t i = 0; i < 5000; i++) {
		bool was_new;
		uint64_t *v = sonde_u64_map_put(&m, i * 4096, &was_new);
		REQUIRE(v && was_new);
		*v = i;
	}
	CHECK_EQ(m.n, 5000);
	for (uint64_t i = 0; i < 5000; i++) {
		uint64_t *v = sonde_u64_map_find(&m, i * 4096);
		REQUIRE(v);
		CHECK_EQ(*v, i);
		CHECK(!sonde_u64_map_find(&m, i * 4096 + 1));
	}
	bool was_new = true;
	CHECK(sonde_u64_map_put(&m, 4096, &was_new) && !was_new);
	uint64_t sum = 0;
	sonde_map_foreach (i, &m)
		sum += m.values[i];
	CHECK_EQ(sum, 4999 * 5000 / 2);
}

static void strtab_interns(void)
{
	struct sonde_strtab t;
	REQUIRE(sonde_strtab_init(&t));
	CHECK_EQ(sonde_strtab_add(&t, "", 0), 0);
	char name[32];
	for (unsigned i = 0; i < 3000; i++) {
		int len = snprintf(name, sizeof(name), "name%u", i);
		CHECK_EQ(sonde_strtab_add(&t, name, len), i + 1);
	}
	CHECK_EQ(sonde_strtab_find(&t, "name77", 6), 78);
	CHECK_EQ(sonde_strtab_add(&t, "name77", 6), 78);
	CHECK_EQ(sonde_strtab_find(&t, "name7", 4), SONDE_STRTAB_NONE);
	CHECK_STR(sonde_strtab_text(&t, 78), "name77");
	CHECK_STR(sonde_strtab_text(&t, 99999), "");
	sonde_strtab_deinit(&t);
}

static void buf_grows(void)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	for (int i = 0; i < 100; i++)
		sonde_buf_printf(&b, "%d,", i);
	CHECK_EQ(b.len, 10 * 2 + 90 * 3);
	sonde_buf_str(&b, "end");
	CHECK(!strncmp(sonde_buf_text(&b), "0,1,2,", 6));
	CHECK_STR(sonde_buf_text(&b) + 290, "end");
	CHECK(!sonde_buf_reserve(&b, SIZE_MAX));
	CHECK(b.failed);
}

static void notes_count_kinds(void)
{
	sonde_cleanup(sonde_notes) struct sonde_notes notes = {0};
	sonde_notes_add(&notes, "page missing", 4096, "at 0x%x", 0x1000);
	sonde_notes_add(&notes, "other", 0, "x");
	sonde_notes_add(&notes, "page missing", 8192, "at 0x%x", 0x9000);
	REQUIRE(notes.entries.n == 2);
	CHECK_EQ(notes.entries.items[0].count, 2);
	CHECK_EQ(notes.entries.items[0].amount, 12288);
	CHECK_STR(notes.entries.items[0].first, "at 0x1000");
	sonde_notes_add(NULL, "nobody listens", 0, "x");
}

static void count_up(void *ctx, unsigned i)
{
	(void)i;
	__atomic_fetch_add((unsigned *)ctx, 1, __ATOMIC_RELAXED);
}

static void parallel_runs_all(void)
{
	unsigned count = 0;
	unsigned ran = sonde_parallel_run(4, count_up, &count);
	CHECK(ran >= 1 && ran <= 4);
	CHECK_EQ(count, ran);
	CHECK(sonde_parallel_cpus() >= 1);
}

int main(void)
{
	RUN(vec_grows);
	RUN(map_finds_all);
	RUN(strtab_interns);
	RUN(buf_grows);
	RUN(notes_count_kinds);
	RUN(parallel_runs_all);
	return tap_end();
}
