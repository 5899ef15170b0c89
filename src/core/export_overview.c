#include <inttypes.h>
#include <signal.h>

#include "base/buf.h"
#include "core/goroutines.h"
#include "core/report.h"
#include "object/gobuildinfo.h"
#include "output/report.h"

static void report_process(struct sonde_core_session *s, struct sonde_report *out)
{
	const struct sonde_process_info *info = sonde_target_info(s->target);
	const struct sonde_machine *machine = sonde_machine_find(info->machine);
	const char *why = NULL;
	struct sonde_elf *exe = sonde_target_exe(s->target, &why);
	sonde_report_field(out, "core", "core", sonde_value_text(sonde_target_name(s->target)));
	sonde_report_field(out, "core_bytes", "core size", sonde_value_bytes(s->file_bytes));
	const char *path = sonde_target_exe_path(s->target);
	sonde_report_field(out, "program", "program", sonde_value_text(*path ? path : NULL));
	if (!exe)
		sonde_report_field(
			out, "program_missing", "program not read", sonde_value_text(why));
	if (info->has_psinfo) {
		sonde_report_field(out, "arguments", "arguments", sonde_value_text(info->args));
		sonde_report_field(out, "pid", "pid", sonde_value_count(info->pid));
	}
	sonde_report_field(
		out, "machine", "machine", sonde_value_text(machine ? machine->name : NULL));
	if (info->signal) {
		const char *name = sigabbrev_np(info->signal);
		sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
		sonde_buf_printf(&b, "SIG%s (%d)", name ? name : "?", info->signal);
		sonde_report_field(out, "signal", NULL, sonde_value_count((uint64_t)info->signal));
		sonde_report_field(
			out, "signal_name", "signal", sonde_value_text(sonde_buf_text(&b)));
	} else {
		sonde_report_field(out, "signal_name", "signal",
			sonde_value_text("none (the process was alive)"));
	}
	if (info->has_siginfo) {
		sonde_report_field(
			out, "signal_code", "signal code", sonde_value_signed(info->signal_code));
		if (info->signal_pid)
			sonde_report_field(out, "signal_pid", "sent by pid",
				sonde_value_count(info->signal_pid));
		else if (info->fault_addr || info->signal == SIGSEGV || info->signal == SIGBUS)
			sonde_report_field(out, "fault_addr", "fault address",
				sonde_value_addr(info->fault_addr));
	}
	size_t n_threads;
	sonde_target_threads(s->target, &n_threads);
	sonde_report_field(out, "threads", "threads", sonde_value_count(n_threads));
}

/* What the file says of itself, where the runtime cannot be read. */
static void report_build_info(struct sonde_core_session *s, struct sonde_report *out)
{
	struct sonde_elf *exe = sonde_target_exe(s->target, NULL);
	sonde_cleanup(sonde_gobuildinfo) struct sonde_gobuildinfo *build = NULL;
	struct sonde_error *err = exe ? sonde_gobuildinfo_of_elf(exe, &build) : NULL;
	if (build)
		sonde_report_field(
			out, "go_version", "Go version", sonde_value_text(build->go_version));
	sonde_error_free(err);
}

struct state_count {
	const char *name;
	uint64_t n;
};

static void report_states(struct sonde_core_session *s, struct sonde_report *out)
{
	static const struct sonde_column columns[] = {
		{"count", "COUNT", .right = true},
		{"state", "STATE"},
	};
	struct state_count counts[64];
	size_t n = 0;
	for (size_t i = 0; i < s->goroutines->all.n; i++) {
		const char *name = sonde_core_goroutine_doing(&s->goroutines->all.items[i]);
		size_t k = 0;
		while (k < n && counts[k].name != name)
			k++;
		if (k == n && n < SONDE_ARRAY_LEN(counts))
			counts[n++] = (struct state_count){name, 0};
		counts[sonde_min(k, SONDE_ARRAY_LEN(counts) - 1)].n++;
	}
	sonde_report_field(
		out, "goroutines", "goroutines", sonde_value_count(s->goroutines->all.n));
	/* Some ten rows: the largest first. */
	for (size_t i = 1; i < n; i++) {
		for (size_t k = i; k && counts[k].n > counts[k - 1].n; k--) {
			struct state_count t = counts[k];
			counts[k] = counts[k - 1];
			counts[k - 1] = t;
		}
	}
	sonde_report_table_begin(
		out, "goroutine_states", "goroutines by state", columns, SONDE_ARRAY_LEN(columns));
	for (size_t i = 0; i < n; i++)
		sonde_report_row(
			out, sonde_value_count(counts[i].n), sonde_value_text(counts[i].name));
	sonde_report_table_end(out);
}

static void report_heap(struct sonde_core_session *s, struct sonde_report *out)
{
	const struct sonde_go_heap *h = s->heap;
	sonde_report_section_begin(out, "heap", "heap");
	sonde_report_field(
		out, "allocated_objects", "allocated objects", sonde_value_count(h->n_allocated));
	sonde_report_field(
		out, "allocated_bytes", "allocated", sonde_value_bytes(h->allocated_bytes));
	sonde_report_field(out, "free_objects", "free slots", sonde_value_count(h->n_free));
	sonde_report_field(out, "free_bytes", "free", sonde_value_bytes(h->free_bytes));
	sonde_report_field(out, "in_use_bytes", "spans in use", sonde_value_bytes(h->in_use_bytes));
	sonde_report_field(
		out, "manual_bytes", "stacks, runtime", sonde_value_bytes(h->manual_bytes));
	sonde_report_field(out, "spans", "spans", sonde_value_count(h->n_spans));
	sonde_report_section_end(out);
}

static void report_live(struct sonde_core_session *s, struct sonde_report *out)
{
	const struct sonde_core_marks *m = s->marks;
	const struct sonde_go_heap *h = s->heap;
	sonde_report_section_begin(out, "live", "alive");
	sonde_report_field(out, "live_objects", "live objects", sonde_value_count(m->n_live));
	sonde_report_field(out, "live_bytes", "live", sonde_value_bytes(m->live_bytes));
	if (m->n_pending) {
		sonde_report_field(out, "pending_objects", "objects kept for finalizers only",
			sonde_value_count(m->n_pending));
		sonde_report_field(out, "pending_bytes", "kept for finalizers only",
			sonde_value_bytes(m->pending_bytes));
	}
	sonde_report_field(out, "garbage_objects", "garbage objects",
		sonde_value_count(h->n_allocated - m->n_live - m->n_pending));
	sonde_report_field(out, "garbage_bytes", "garbage",
		sonde_value_bytes(h->allocated_bytes - m->live_bytes - m->pending_bytes));
	sonde_report_field(out, "roots", "roots", sonde_value_count(m->n_roots));
	sonde_report_section_end(out);
}

static void report_absent(struct sonde_core_session *s, struct sonde_report *out)
{
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(s->target, &n);
	uint64_t n_absent = 0, bytes = 0;
	for (size_t i = 0; i < n; i++) {
		/* Without access rights nothing was there: guards and reservations. */
		if (maps[i].source == SONDE_SOURCE_ABSENT && maps[i].perm) {
			n_absent++;
			bytes += maps[i].end - maps[i].start;
		}
	}
	sonde_report_section_begin(out, "missing", "missing");
	sonde_report_field(out, "mappings", "mappings", sonde_value_count(n_absent));
	sonde_report_field(out, "bytes", "bytes", sonde_value_bytes(bytes));
	sonde_report_section_end(out);
}

static struct sonde_error *report_overview(
	struct sonde_core_session *session, bool live, struct sonde_report *out)
{
	struct sonde_error *go_error = sonde_core_session_need_go(session);
	struct sonde_error *heap_error = NULL, *goroutine_error = NULL;
	if (!go_error) {
		goroutine_error = sonde_core_session_need_goroutines(session);
		heap_error = sonde_core_session_need_heap(session);
		if (live && !heap_error)
			heap_error = sonde_core_session_need_marks(session);
	}
	sonde_report_begin(out, "core.overview", 1);
	report_process(session, out);
	if (go_error) {
		report_build_info(session, out);
		sonde_report_field(out, "go_missing", "Go runtime not read",
			sonde_value_text(go_error->message));
	} else {
		sonde_report_field(
			out, "go_version", "Go version", sonde_value_text(session->go->version));
	}
	if (goroutine_error)
		sonde_report_field(out, "goroutines_missing", "goroutines not read",
			sonde_value_text(goroutine_error->message));
	else if (session->goroutines)
		report_states(session, out);
	if (heap_error)
		sonde_report_field(out, "heap_missing", "heap not read",
			sonde_value_text(heap_error->message));
	else if (session->heap)
		report_heap(session, out);
	if (live && !heap_error && session->marks)
		report_live(session, out);
	report_absent(session, out);
	sonde_error_free(go_error);
	sonde_error_free(heap_error);
	sonde_error_free(goroutine_error);
	return sonde_report_end(out, &session->notes);
}

struct sonde_error *sonde_core_report_overview(
	struct sonde_core_session *session, struct sonde_report *out)
{
	return report_overview(session, false, out);
}

struct sonde_error *sonde_core_report_overview_live(
	struct sonde_core_session *session, struct sonde_report *out)
{
	return report_overview(session, true, out);
}
