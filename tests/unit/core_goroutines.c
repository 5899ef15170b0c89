#include "core/goroutines.h"

#include "build_go.h"
#include "tap.h"

enum { TEXT = 0x401000, CODE = 0x40 };

static struct bg_function functions[] = {
	{.name = "main.main", .size_bytes = CODE},
	{.name = "main.worker", .size_bytes = CODE},
	{.name = "net/http.(*conn).serve", .size_bytes = CODE},
};

/* A session whose goroutines are written down by the test. */
struct fake {
	struct bg b;
	struct sonde_goroutines gs;
	struct sonde_core_session s;
	struct sonde_u32_vec chosen;
	struct sonde_core_goroutine_groups groups;
};

static void fake_deinit(struct fake *f)
{
	sonde_u32_vec_deinit(&f->chosen);
	sonde_core_goroutine_groups_deinit(&f->groups);
	sonde_goroutine_vec_deinit(&f->gs.all);
	sonde_go_frames_deinit(&f->gs.frames);
	bg_deinit(&f->b);
}
SONDE_DEFINE_CLEANUP_DEINIT(fake)

static void begin(struct fake *f)
{
	*f = (struct fake){.gs.go = &f->b.go};
	bg_init(&f->b, EM_X86_64);
	bg_layout(&f->b);
	bg_functions(&f->b, TEXT, functions, SONDE_ARRAY_LEN(functions));
	bg_open(&f->b);
	f->s = (struct sonde_core_session){.go = &f->b.go, .goroutines = &f->gs};
}

/* Its frames are at these functions, a digit each: "01". */
static struct sonde_goroutine *add(
	struct fake *f, uint64_t id, const char *state, const char *reason, const char *frames)
{
	struct sonde_goroutine g = {.id = id,
		.state = state,
		.wait_reason = reason,
		.status = reason ? 4 : 1,
		.first_frame = f->gs.frames.n,
		.n_frames = strlen(frames)};
	for (; *frames; frames++) {
		uint32_t i = (uint32_t)(*frames - '0');
		struct sonde_go_frame frame = {.pc = TEXT + i * CODE + 8, .function = i};
		assert(sonde_go_frames_push(&f->gs.frames, frame));
	}
	assert(sonde_goroutine_vec_push(&f->gs.all, g));
	return &f->gs.all.items[f->gs.all.n - 1];
}

static const char *choose(struct fake *f, struct sonde_core_goroutine_filter filter)
{
	static char text[256];
	text[0] = 0;
	f->chosen.n = 0;
	CHECK_OK(sonde_core_goroutines_choose(&f->s, &filter, &f->chosen));
	for (size_t i = 0; i < f->chosen.n; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRIu64,
			i ? " " : "", f->gs.all.items[f->chosen.items[i]].id);
	return text;
}

/* "1 2 3|7": the members of each group. */
static const char *group(struct fake *f)
{
	static char text[1024];
	text[0] = 0;
	choose(f, (struct sonde_core_goroutine_filter){.has_id = false});
	sonde_core_goroutine_groups_deinit(&f->groups);
	CHECK_OK(sonde_core_goroutines_group(&f->s, &f->chosen, &f->groups));
	for (size_t i = 0; i < f->groups.groups.n; i++) {
		const struct sonde_core_goroutine_group *g = &f->groups.groups.items[i];
		for (uint32_t k = 0; k < g->n; k++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%" PRIu64,
				k           ? " "
					: i ? "|"
					    : "",
				f->gs.all.items[f->groups.members.items[g->first + k]].id);
	}
	return text;
}

static const char receive[] = "chan receive", send[] = "chan send";

static void filters(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	add(&f, 1, "running", NULL, "0");
	add(&f, 18, "waiting", receive, "10");
	add(&f, 7, "waiting", send, "20");
	add(&f, 9, "runnable", NULL, "");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.has_id = false}), "1 18 7 9");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.has_id = true, .id = 7}), "7");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.has_id = true, .id = 8}), "");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.state = "waiting"}), "18 7");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.state = "run"}), "1 9");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.state = "chan"}), "18 7");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.state = "chan s"}), "7");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.state = ""}), "1 18 7 9");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.state = "han"}), "");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.function = "main.main"}),
		"1 18 7");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.function = "conn"}), "7");
	CHECK_STR(choose(&f, (struct sonde_core_goroutine_filter){.function = "nothing"}), "");
	CHECK_STR(choose(&f,
			  (struct sonde_core_goroutine_filter){
				  .function = "main", .state = "wait", .has_id = true, .id = 18}),
		"18");
	CHECK_STR(sonde_core_goroutine_doing(&f.gs.all.items[1]), "chan receive");
	CHECK_STR(sonde_core_goroutine_doing(&f.gs.all.items[0]), "running");
}

static void groups(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	CHECK_STR(group(&f), "");
	add(&f, 5, "waiting", receive, "10");
	add(&f, 3, "waiting", receive, "10");
	add(&f, 4, "waiting", send, "10"); /* another reason */
	add(&f, 2, "waiting", receive, "1"); /* fewer frames */
	add(&f, 1, "runnable", NULL, "10"); /* another state */
	add(&f, 9, "waiting", receive, "01"); /* another order */
	add(&f, 6, "waiting", receive, "10");
	add(&f, 8, "waiting", receive, "10")->created_by_pc = TEXT; /* another creator */
	add(&f, 11, "waiting", receive, "10")->cut = "[cut]"; /* ends early */
	add(&f, 12, "waiting", receive, "10")->cut = "[cut]";
	add(&f, 13, "waiting", receive, "10")->cut = "[cut elsewhere]";
	add(&f, 14, "idle", NULL, "");
	/* The largest first; ties by their first id; members by id. */
	CHECK_STR(group(&f), "3 5 6|11 12|1|2|4|8|9|13|14");
}

static void many_groups(void)
{
	sonde_cleanup(fake) struct fake f;
	begin(&f);
	for (uint64_t i = 0; i < 3000; i++) {
		char frames[8] = {
			(char)('0' + i % 3), (char)('0' + i / 3 % 3), (char)('0' + i / 9 % 3), 0};
		add(&f, (i * 7919) % 3000, "waiting", receive, frames);
	}
	group(&f);
	REQUIRE(f.groups.groups.n == 27);
	CHECK_EQ(f.groups.members.n, 3000);
	uint64_t last_n = UINT64_MAX, total = 0;
	for (size_t i = 0; i < f.groups.groups.n; i++) {
		const struct sonde_core_goroutine_group *g = &f.groups.groups.items[i];
		CHECK(g->n <= last_n);
		CHECK_EQ(g->first, total);
		last_n = g->n;
		total += g->n;
		for (uint32_t k = 1; k < g->n; k++) {
			const struct sonde_goroutine
				*a = &f.gs.all.items[f.groups.members.items[g->first + k - 1]],
				*b = &f.gs.all.items[f.groups.members.items[g->first + k]];
			CHECK(a->id < b->id);
			for (size_t j = 0; j < 3; j++)
				CHECK(f.gs.frames.items[a->first_frame + j].pc ==
					f.gs.frames.items[b->first_frame + j].pc);
		}
	}
	CHECK_EQ(total, 3000);
}

int main(void)
{
	RUN(filters);
	RUN(groups);
	RUN(many_groups);
	return tap_end();
}
