/*
 * src/core/report.h: the reports of `sonde core`, each written into an open report, in text or JSON. Strings in options
 * are borrowed for the call. A report that cannot be made fails before it writes anything.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct sonde_core_session;
struct sonde_report; /* output/report.h */

struct sonde_error *sonde_core_report_overview(
	struct sonde_core_session *session, struct sonde_report *out) SONDE_CHECK;
/* The same, and what is alive: marks the heap. */
struct sonde_error *sonde_core_report_overview_live(
	struct sonde_core_session *session, struct sonde_report *out) SONDE_CHECK;
struct sonde_error *sonde_core_report_breakdown(
	struct sonde_core_session *session, struct sonde_report *out) SONDE_CHECK;
struct sonde_error *sonde_core_report_mappings(
	struct sonde_core_session *session, struct sonde_report *out) SONDE_CHECK;

struct sonde_error *sonde_core_report_threads(
	struct sonde_core_session *session, struct sonde_report *out) SONDE_CHECK;

struct sonde_core_goroutines_options {
	bool all; /* each with its whole stack, not in groups */
	bool has_id;
	uint64_t id; /* where has_id: only this one */
	const char *state, *function; /* NULL: any */
};
struct sonde_error *sonde_core_report_goroutines(struct sonde_core_session *session,
	const struct sonde_core_goroutines_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_core_histogram_options {
	uint64_t top; /* rows, 0 = all */
	int by; /* enum sonde_core_histogram_by */
};
enum sonde_core_histogram_by { SONDE_CORE_HISTOGRAM_BY_TYPE, SONDE_CORE_HISTOGRAM_BY_PACKAGE };
struct sonde_error *sonde_core_report_histogram(struct sonde_core_session *session,
	const struct sonde_core_histogram_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_core_reachable_options {
	uint64_t addr;
	uint64_t n_paths; /* 0 = 1 */
};
struct sonde_error *sonde_core_report_reachable(struct sonde_core_session *session,
	const struct sonde_core_reachable_options *options, struct sonde_report *out) SONDE_CHECK;

enum sonde_core_retained_by {
	SONDE_CORE_RETAINED_BY_OBJECT,
	SONDE_CORE_RETAINED_BY_TYPE,
	SONDE_CORE_RETAINED_BY_ROOT,
	SONDE_CORE_RETAINED_BY_GOROUTINE, /* of the roots only these */
};
struct sonde_core_retained_options {
	uint64_t top; /* rows, 0 = 20 */
	int by; /* enum sonde_core_retained_by */
};
struct sonde_error *sonde_core_report_retained(struct sonde_core_session *session,
	const struct sonde_core_retained_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_error *sonde_core_report_leaks(
	struct sonde_core_session *session, struct sonde_report *out) SONDE_CHECK;

enum sonde_core_pprof_by { SONDE_CORE_PPROF_BY_OWNER, SONDE_CORE_PPROF_BY_TYPE };
struct sonde_sink;
/* The live heap as a profile in pprof's format. by: enum sonde_core_pprof_by. What it leaves out goes to the notes. */
struct sonde_error *sonde_core_write_pprof(
	struct sonde_core_session *session, int by, struct sonde_sink *sink) SONDE_CHECK;
/* How much of values is shown; 0 = the default of golang/value.h. */
struct sonde_core_value_options {
	uint64_t depth; /* pointers followed */
	bool has_depth;
	uint64_t elements, string_bytes;
};

struct sonde_core_object_options {
	struct sonde_core_value_options values;
	uint64_t addr; /* anywhere in it */
	uint64_t n_referrers; /* shown; 0 = 10 */
	bool no_retained; /* leave out what it retains, which takes a walk over all objects */
};
struct sonde_error *sonde_core_report_object(struct sonde_core_session *session,
	const struct sonde_core_object_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_core_objects_options {
	const char *type, *package; /* its name contains type; its package is package; NULL: any */
	bool has_min, has_max, has_from, has_to;
	uint64_t min_bytes, max_bytes; /* of the slot, both included */
	uint64_t from, to; /* addresses: [from, to) */
	int state; /* enum sonde_core_objects_state */
	uint64_t limit; /* rows, 0 = all */
};
enum sonde_core_objects_state {
	SONDE_CORE_OBJECTS_LIVE,
	SONDE_CORE_OBJECTS_GARBAGE,
	SONDE_CORE_OBJECTS_ALL
};
struct sonde_error *sonde_core_report_objects(struct sonde_core_session *session,
	const struct sonde_core_objects_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_core_globals_options {
	struct sonde_core_value_options values;
	const char *package, *name; /* its package is; its name contains; NULL: any */
};
struct sonde_error *sonde_core_report_globals(struct sonde_core_session *session,
	const struct sonde_core_globals_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_core_read_options {
	uint64_t addr, n_bytes;
};
struct sonde_error *sonde_core_report_read(struct sonde_core_session *session,
	const struct sonde_core_read_options *options, struct sonde_report *out) SONDE_CHECK;
