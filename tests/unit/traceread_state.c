/* The table of what exists: slots come, go and come again; ids that collide; regions; against a plain array. */
#include "traceread/state.h"
#include "tap.h"

#define NO UINT32_MAX

static uint64_t random_next(uint64_t *x)
{
	*x = *x * UINT64_C(6364136223846793005) + 1442695040888963407u;
	return *x >> 33;
}

static void test_slots_against_array(void)
{
	enum { IDS = 3000, STEPS = 200000 };
	static uint32_t slot_of[IDS];
	sonde_cleanup(sonde_trace_state) struct sonde_trace_state s = {0};
	uint64_t seed = 1, alive = 0, most = 0;
	memset(slot_of, 0xff, sizeof(slot_of));
	for (int i = 0; i < STEPS; i++) {
		uint64_t k = random_next(&seed) % IDS, id = k << 32 | k;
		if (k % 3 == 0)
			id = k; /* and ids that share their low half with others */
		if (slot_of[k] == NO) {
			CHECK_EQ(sonde_trace_state_find_g(&s, id), NO);
			slot_of[k] = sonde_trace_state_add_g(&s, id);
			REQUIRE(slot_of[k] != NO);
			most = sonde_max(most, ++alive);
		} else {
			sonde_trace_state_remove_g(&s, slot_of[k]);
			slot_of[k] = NO;
			alive--;
		}
		uint64_t j = random_next(&seed) % IDS;
		if (sonde_trace_state_find_g(&s, j % 3 ? j << 32 | j : j) != slot_of[j])
			CHECK(!"a goroutine is where it was put");
	}
	CHECK_EQ(s.n_gs, alive);
	CHECK_EQ(s.gs.n, most); /* dense: never more slots than there were at once */
}

static void test_procs_threads_tasks(void)
{
	sonde_cleanup(sonde_trace_state) struct sonde_trace_state s = {0};
	for (uint64_t i = 0; i < 500; i++) {
		CHECK_EQ(sonde_trace_state_add_p(&s, i << 20), i);
		CHECK_EQ(sonde_trace_state_add_m(&s, UINT64_MAX - 1 - i), i);
		CHECK_EQ(sonde_trace_state_add_task(&s, i), i);
	}
	CHECK_EQ(sonde_trace_state_find_p(&s, 7 << 20), 7);
	CHECK_EQ(sonde_trace_state_find_m(&s, UINT64_MAX - 8), 7);
	CHECK_EQ(s.ms.items[7].g_slot, NO);
	CHECK_EQ(sonde_trace_state_find_p(&s, 8), NO);
	sonde_trace_state_remove_task(&s, 7);
	sonde_trace_state_remove_task(&s, 9);
	CHECK_EQ(sonde_trace_state_find_task(&s, 7), NO);
	CHECK_EQ(sonde_trace_state_find_task(&s, 8), 8);
	CHECK(!s.tasks.items[7].is_open && s.tasks.items[8].is_open);
	CHECK_EQ(sonde_trace_state_add_task(&s, 1000), 9);
	CHECK_EQ(sonde_trace_state_add_task(&s, 1001), 7);
	CHECK_EQ(s.n_tasks, 500);
	CHECK(sonde_trace_state_bytes(&s) > 500 * (sizeof(struct sonde_trace_p) + 8));
}

static void test_regions(void)
{
	sonde_cleanup(sonde_trace_state) struct sonde_trace_state s = {0};
	uint32_t a = sonde_trace_state_add_g(&s, 1), b = sonde_trace_state_add_g(&s, 2);
	CHECK(!sonde_trace_state_region(&s, a));
	CHECK_EQ(sonde_trace_state_close_region(&s, a, 0, 1), SONDE_TRACE_REGION_UNKNOWN);
	for (uint32_t i = 1; i <= 4; i++) {
		CHECK(sonde_trace_state_open_region(&s, a, 7, i));
		CHECK(sonde_trace_state_open_region(&s, b, 8, i));
	}
	CHECK_EQ(sonde_trace_state_close_region(&s, a, 7, 4), SONDE_TRACE_REGION_OK);
	CHECK_EQ(sonde_trace_state_close_region(&s, a, 8, 3), SONDE_TRACE_REGION_MISMATCH);
	CHECK_EQ(sonde_trace_state_close_region(&s, a, 7, 2), SONDE_TRACE_REGION_INNER_OPEN);
	const struct sonde_trace_region *r = sonde_trace_state_region(&s, a);
	REQUIRE(r != NULL);
	CHECK_EQ(r->name, 1);
	CHECK(!sonde_trace_state_outer_region(&s, r));
	CHECK_EQ(s.n_regions, 5);
	sonde_trace_state_remove_g(&s, b); /* its regions go with it */
	CHECK_EQ(s.n_regions, 1);
	CHECK(sonde_trace_state_open_region(&s, a, 1, 1));
	CHECK_EQ(s.regions.n, 8); /* out of the pool */
}

static void test_size(void)
{
	CHECK_EQ(sizeof(struct sonde_trace_g), 16);
	CHECK_EQ(sizeof(struct sonde_trace_p), 16);
	CHECK_EQ(sizeof(struct sonde_trace_m), 16);
	sonde_cleanup(sonde_trace_state) struct sonde_trace_state s = {0};
	for (uint64_t i = 0; i < 100000; i++)
		REQUIRE(sonde_trace_state_add_g(&s, i * 16) != NO);
	CHECK(sonde_trace_state_bytes(&s) < 100000 * 56);
}

int main(void)
{
	RUN(test_slots_against_array);
	RUN(test_procs_threads_tasks);
	RUN(test_regions);
	RUN(test_size);
	return tap_end();
}
