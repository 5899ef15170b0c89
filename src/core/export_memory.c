#include "core/export_memory.h"

#include <inttypes.h>

#include "core/report.h"
#include "core/session.h"
#include "output/report.h"

enum { MAX_READ_BYTES = 1 << 30 };

static const char *source_text(enum sonde_source source)
{
	static const char *const names[] = {
		[SONDE_SOURCE_CORE] = "core",
		[SONDE_SOURCE_FILE] = "file",
		[SONDE_SOURCE_ZERO] = "zero",
		[SONDE_SOURCE_ABSENT] = "absent",
	};
	return names[source];
}

void sonde_core_permission_text(uint32_t perm, char to[4])
{
	to[0] = perm & SONDE_PERM_R ? 'r' : '-';
	to[1] = perm & SONDE_PERM_W ? 'w' : '-';
	to[2] = perm & SONDE_PERM_X ? 'x' : '-';
	to[3] = 0;
}

struct sonde_error *sonde_core_report_mappings(
	struct sonde_core_session *session, struct sonde_report *out)
{
	static const struct sonde_column columns[] = {
		{"start", "START", .right = true},
		{"end", "END", .right = true},
		{"permissions", "PERM"},
		{"bytes", "BYTES", .right = true},
		{"present_bytes", "PRESENT", .right = true},
		{"source", "SOURCE"},
		{"file_offset", "OFFSET", .right = true},
		{"path", "PATH"},
		{"reason", "REASON", .may_cut = true},
	};
	size_t n;
	const struct sonde_mapping *maps = sonde_target_mappings(session->target, &n);
	sonde_report_begin(out, "core.mappings", 1);
	sonde_report_table_begin(out, "mappings", NULL, columns, SONDE_ARRAY_LEN(columns));
	uint64_t bytes = 0, present = 0;
	for (size_t i = 0; i < n; i++) {
		const struct sonde_mapping *m = &maps[i];
		char perm[4];
		sonde_core_permission_text(m->perm, perm);
		bytes += m->end - m->start;
		uint64_t there = sonde_target_present_bytes(session->target, m);
		present += there;
		sonde_report_row(out, sonde_value_addr(m->start), sonde_value_addr(m->end),
			sonde_value_text(perm), sonde_value_bytes(m->end - m->start),
			sonde_value_bytes(there), sonde_value_text(source_text(m->source)),
			m->path ? sonde_value_addr(m->file_offset) : sonde_value_none(),
			sonde_value_text(m->from ? m->from : m->path), sonde_value_text(m->reason));
	}
	sonde_report_total(out, "total", sonde_value_none(), sonde_value_none(), sonde_value_none(),
		sonde_value_bytes(bytes), sonde_value_bytes(present), sonde_value_none(),
		sonde_value_none(), sonde_value_none(), sonde_value_none());
	sonde_report_table_end(out);
	return sonde_report_end(out, &session->notes);
}

/* What the address belongs to, as far as the mappings and, where it can be read, the Go runtime tell. */
static void report_owner(struct sonde_core_session *s, uint64_t addr, struct sonde_report *out)
{
	const struct sonde_mapping *m = sonde_target_mapping_find(s->target, addr);
	char perm[4];
	if (m) {
		sonde_core_permission_text(m->perm, perm);
		sonde_report_field(out, "mapping_start", "mapping", sonde_value_addr(m->start));
		sonde_report_field(out, "permissions", "permissions", sonde_value_text(perm));
		sonde_report_field(
			out, "source", "source", sonde_value_text(source_text(m->source)));
		sonde_report_field(out, "path", "path", sonde_value_text(m->path));
	}
	struct sonde_error *err = sonde_core_session_need_heap(s);
	struct sonde_go_span *span;
	uint32_t slot;
	struct sonde_pcfunc f;
	if (!err && sonde_go_heap_find(s->heap, addr, &span, &slot)) {
		sonde_report_field(out, "object", "heap slot",
			sonde_value_addr(sonde_go_span_addr(span, slot)));
		sonde_report_field(
			out, "slot_bytes", "slot size", sonde_value_bytes(span->slot_bytes));
		sonde_report_field(out, "allocated", "allocated",
			sonde_value_bool(sonde_go_span_allocated(span, slot)));
	} else if (!err && sonde_go_function_at(s->go, addr, &f, NULL)) {
		sonde_report_field(out, "function", "function", sonde_value_text(f.name));
		sonde_report_field(out, "function_offset", "offset in function",
			sonde_value_count(addr - f.entry));
	}
	sonde_error_free(err);
}

struct sonde_error *sonde_core_report_read(struct sonde_core_session *session,
	const struct sonde_core_read_options *options, struct sonde_report *out)
{
	uint64_t addr = options->addr, end;
	if (options->n_bytes == 0 || options->n_bytes > MAX_READ_BYTES)
		return sonde_error_new(
			SONDE_USAGE, "read: N must be 1 to %d bytes", MAX_READ_BYTES);
	if (__builtin_add_overflow(addr, options->n_bytes, &end))
		return sonde_error_new(SONDE_USAGE,
			"read: 0x%" PRIx64 " and %" PRIu64 " bytes pass the end of memory", addr,
			options->n_bytes);
	uint8_t probe;
	if (!sonde_target_read_u8(session->target, addr, &probe)) {
		const struct sonde_mapping *m = sonde_target_mapping_find(session->target, addr);
		return sonde_error_new(SONDE_FAULT, "0x%" PRIx64 " is not %s%s%s", addr,
			m ? "readable" : "mapped", m && m->reason ? ": " : "",
			m && m->reason ? m->reason : "");
	}
	sonde_cleanup(free) uint8_t *bytes = sonde_new_array(uint8_t, options->n_bytes);
	if (!bytes)
		return &sonde_enomem;
	size_t got = sonde_target_read_some(session->target, addr, bytes, options->n_bytes);
	sonde_report_begin(out, "core.read", 1);
	sonde_report_field(out, "addr", "address", sonde_value_addr(addr));
	report_owner(session, addr, out);
	sonde_report_blank(out);
	sonde_report_bytes(out, "bytes", addr, bytes, got);
	if (got < options->n_bytes)
		sonde_notes_add(&session->notes, "bytes asked for and not readable",
			options->n_bytes - got, "from 0x%" PRIx64, addr + got);
	return sonde_report_end(out, &session->notes);
}
