#include "base/buf.h"
#include "core/breakdown.h"
#include "core/export_memory.h"
#include "core/report.h"
#include "output/report.h"

static void report_permissions(const struct sonde_core_breakdown *b, struct sonde_report *out)
{
	static const struct sonde_column columns[] = {
		{"bytes", "BYTES", .right = true},
		{"present_bytes", "PRESENT", .right = true},
		{"share", "SHARE", .right = true},
		{"mappings", "MAPPINGS", .right = true},
		{"permissions", "PERM"},
	};
	const struct sonde_core_breakdown_size *all = &b->rows[SONDE_CORE_BREAKDOWN_ALL];
	uint64_t n = 0;
	sonde_report_table_begin(
		out, "permissions", "by permissions", columns, SONDE_ARRAY_LEN(columns));
	/* Most rights last; every set has its row. */
	for (uint32_t perm = 0; perm < SONDE_CORE_BREAKDOWN_PERMISSIONS; perm++) {
		char text[4];
		sonde_core_permission_text(perm, text);
		n += b->n_mappings[perm];
		sonde_report_row(out, sonde_value_bytes(b->permissions[perm].bytes),
			sonde_value_bytes(b->permissions[perm].present_bytes),
			sonde_value_share(b->permissions[perm].present_bytes, all->present_bytes),
			sonde_value_count(b->n_mappings[perm]), sonde_value_text(text));
	}
	sonde_report_total(out, "permissions_total", sonde_value_bytes(all->bytes),
		sonde_value_bytes(all->present_bytes),
		sonde_value_share(all->present_bytes, all->present_bytes), sonde_value_count(n),
		sonde_value_none());
	sonde_report_table_end(out);
}

static void report_tree(const struct sonde_core_breakdown *b, struct sonde_report *out)
{
	static const struct sonde_column columns[] = {
		{"bytes", "BYTES", .right = true},
		{"present_bytes", "PRESENT", .right = true},
		{"share", "SHARE", .right = true},
		{"depth", NULL},
		{"key", NULL},
		{"what", "WHAT"},
	};
	uint64_t whole = b->rows[SONDE_CORE_BREAKDOWN_ALL].present_bytes;
	bool json = sonde_report_json(out) != NULL;
	sonde_report_table_begin(out, "tree", "by use", columns, SONDE_ARRAY_LEN(columns));
	for (int i = 0; i < SONDE_CORE_BREAKDOWN_N; i++) {
		const struct sonde_core_breakdown_row_info *info = &sonde_core_breakdown_rows[i];
		sonde_cleanup(sonde_buf) struct sonde_buf what = {0};
		sonde_buf_printf(&what, "%*s%s", json ? 0 : 2 * (int)info->depth, "", info->label);
		sonde_report_row(out, sonde_value_bytes(b->rows[i].bytes),
			sonde_value_bytes(b->rows[i].present_bytes),
			sonde_value_share(b->rows[i].present_bytes, whole),
			sonde_value_count(info->depth), sonde_value_text(info->key),
			sonde_value_text(sonde_buf_text(&what)));
	}
	sonde_report_table_end(out);
}

struct sonde_error *sonde_core_report_breakdown(
	struct sonde_core_session *session, struct sonde_report *out)
{
	struct sonde_core_breakdown b;
	struct sonde_error *go_error = NULL;
	SONDE_TRY(sonde_core_breakdown_make(session, &b, &go_error));
	sonde_report_begin(out, "core.breakdown", 1);
	if (go_error)
		sonde_report_field(out, "go_missing", "Go runtime not read",
			sonde_value_text(go_error->message));
	sonde_error_free(go_error);
	report_tree(&b, out);
	report_permissions(&b, out);
	return sonde_report_end(out, &session->notes);
}
