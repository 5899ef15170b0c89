#include <inttypes.h>
#include <stdlib.h>

#include "core/names.h"
#include "core/ownerpaths.h"
#include "core/report.h"
#include "output/pprof.h"

enum { MAX_FRAMES = 256 }; /* ownerpaths' bound on ways, and more */

static uint64_t location(struct sonde_pprof *p, const char *name)
{
	struct sonde_pprof_line line = {sonde_pprof_function(p, name, ""), 0};
	return sonde_pprof_location(p, 0, 0, &line, 1);
}

static struct sonde_error *encode(struct sonde_core_session *s, const struct sonde_core_retained *r,
	const struct sonde_core_owner_paths *paths, struct sonde_pprof *p)
{
	size_t n = paths->nodes.n;
	sonde_cleanup(free) uint64_t *locations = sonde_new_array(uint64_t, n);
	if (!locations)
		return &sonde_enomem;
	uint64_t shared = 0;
	/* Types have one location each: what `what` says is small. */
	size_t n_types = 2 * s->types->by_id.n;
	sonde_cleanup(free) uint64_t *of_type = sonde_new_array(uint64_t, n_types);
	if (!of_type)
		return &sonde_enomem;
	for (size_t i = 1; i < n; i++) {
		const struct sonde_core_owner_node *node = &paths->nodes.items[i];
		sonde_cleanup(sonde_buf) struct sonde_buf name = {0};
		if (node->what == SONDE_CORE_OWNER_IS_ROOT) {
			sonde_core_owner_name(s, &r->owners.items[node->owner], &name);
			locations[i] = location(p, sonde_buf_text(&name));
			continue;
		}
		size_t key = (size_t)(node->what & ~SONDE_CORE_TYPE_MANY) * 2 +
			(node->what & SONDE_CORE_TYPE_MANY ? 1 : 0);
		if (!of_type[key]) {
			sonde_core_type_name(s, node->what, &name);
			of_type[key] = location(p, sonde_buf_text(&name));
		}
		locations[i] = of_type[key];
	}
	for (size_t i = 1; i < n; i++) {
		const struct sonde_core_owner_node *node = &paths->nodes.items[i];
		uint64_t stack[MAX_FRAMES];
		size_t n_frames = 0;
		uint32_t at = (uint32_t)i, top = at;
		if (!node->n_objects)
			continue;
		for (; at && n_frames < MAX_FRAMES - 1; at = paths->nodes.items[at].parent) {
			stack[n_frames++] = locations[at];
			top = at;
		}
		if (r && paths->nodes.items[top].what != SONDE_CORE_OWNER_IS_ROOT)
			stack[n_frames++] =
				shared ? shared : (shared = location(p, "several roots"));
		sonde_pprof_sample(p, (int64_t[]){(int64_t)node->n_objects, (int64_t)node->bytes},
			stack, n_frames, NULL, 0);
	}
	return NULL;
}

struct sonde_error *sonde_core_write_pprof(
	struct sonde_core_session *session, int by, struct sonde_sink *sink)
{
	static const struct sonde_pprof_type types[] = {
		{"live_objects", "count"}, {"live_space", "bytes"}};
	sonde_cleanup(sonde_core_retained) struct sonde_core_retained *r = NULL;
	sonde_cleanup(sonde_core_owner_paths) struct sonde_core_owner_paths paths = {0};
	sonde_cleanup(sonde_pprof) struct sonde_pprof p;
	sonde_pprof_init(&p, types, SONDE_ARRAY_LEN(types));
	p.default_type = "live_space";
	SONDE_TRY(sonde_core_session_need_typing(session));
	if (by == SONDE_CORE_PPROF_BY_OWNER)
		SONDE_TRY(sonde_core_retained_make(session, &r));
	SONDE_TRY(sonde_core_owner_paths_make(session, r, &paths));
	if (paths.n_cut)
		sonde_notes_add(&session->notes,
			"objects that count for an owner above theirs, ways being too long or too "
			"many: bytes",
			paths.cut_bytes, "%" PRIu64 " objects", paths.n_cut);
	SONDE_TRY(encode(session, r, &paths, &p));
	if (r)
		sonde_pprof_comment(&p,
			"live heap by owner: what is below a name would be free without it "
			"(cum = retained)");
	return sonde_pprof_write(&p, sink);
}
