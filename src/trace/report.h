/*
 * src/trace/report.h: the reports of `sonde trace`, each written into an open report, in text or JSON. Strings in
 * options are borrowed for the call. A report whose trace cannot be opened fails before it writes anything.
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "base/error.h"
#include "trace/window.h"
#include "traceread/stream.h"

struct sonde_report; /* output/report.h */
struct sonde_sink; /* output/sink.h */

/* Read every file to its end and list what is wrong. *whole: nothing but remarks in any of them. */
struct sonde_error *sonde_trace_report_check(const char *const *paths, size_t n,
	const struct sonde_trace_reader_options *options, struct sonde_report *out,
	bool *whole) SONDE_CHECK;

struct sonde_trace_events_options {
	struct sonde_trace_window window;
	bool has_g, has_p, has_m, has_task;
	uint64_t g, p, m, task; /* g: it ran, or the event is about it; p and m likewise */
	const char *const *types; /* names of event types; NULL = all */
	size_t n_types;
	const char *
		function; /* a part of a function's name, anywhere in a stack of the event; NULL = any */
	uint64_t limit; /* 0 = all */
	bool stacks; /* with frames */
};

/* Every event that the options let through, in order. SONDE_USAGE for an unknown type. */
struct sonde_error *sonde_trace_report_events(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_events_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_trace_goroutines_options {
	bool all; /* one by one, else by entry function */
	bool has_g; /* that one only; implies all */
	uint64_t g;
	const char *function; /* a part of the entry function's name; NULL = any */
	uint64_t top; /* rows; 0 = all */
};

/* Where the time of goroutines went. SONDE_NOT_FOUND where has_g and it is not in the trace. */
struct sonde_error *sonde_trace_report_goroutines(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_goroutines_options *options, struct sonde_report *out) SONDE_CHECK;

/* Write the trace repaired to the file `to`, and say what was done. */
struct sonde_error *sonde_trace_report_repair(const char *path, const char *to,
	const struct sonde_trace_reader_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_error *sonde_trace_report_overview(const char *path,
	const struct sonde_trace_reader_options *options, struct sonde_report *out) SONDE_CHECK;

/* What a profile is of; see `go tool trace -pprof`. */
enum sonde_trace_pprof_kind {
	SONDE_TRACE_PPROF_NET, /* waiting for the network */
	SONDE_TRACE_PPROF_SYNC, /* for channels, mutexes, select */
	SONDE_TRACE_PPROF_SYSCALL, /* in system calls that block */
	SONDE_TRACE_PPROF_SCHED, /* runnable, until it runs */
	SONDE_TRACE_PPROF_CPU, /* CPU samples */
};
enum { SONDE_TRACE_PPROF_CPU_PERIOD_NS = 10000000 }; /* Go's: 100 samples a second */

struct sonde_trace_pprof_options {
	int kind; /* enum sonde_trace_pprof_kind */
	struct sonde_trace_window window; /* of waits the part within it counts */
	bool has_g;
	uint64_t g; /* this goroutine alone */
};

/*
 * The profile, in pprof's format, gzipped. What is to be said goes into notes. SONDE_NOT_FOUND where has_g and it is not
 * in the trace.
 */
struct sonde_error *sonde_trace_write_pprof(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_pprof_options *options, struct sonde_sink *sink,
	struct sonde_notes *notes) SONDE_CHECK;

struct sonde_trace_blocking_options {
	const char *reason,
		*function; /* parts of them; function: anywhere in the stack; NULL = any */
	bool syscalls; /* those that block too */
	bool stacks; /* with frames */
	bool has_top;
	uint64_t top; /* rows, 0 = all; 20 where has_top is not set */
};

/* What goroutines were blocked for, by reason and stack. */
struct sonde_error *sonde_trace_report_blocking(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_blocking_options *options, struct sonde_report *out) SONDE_CHECK;

enum { SONDE_TRACE_SCHED_MAX_WORST = 10000 };

struct sonde_trace_sched_options {
	uint64_t top; /* rows, 0 = all */
	bool has_worst;
	uint64_t worst; /* of the longest waits, at most MAX_WORST; 5 where has_worst is not set */
	bool stacks; /* of what made the worst runnable */
};

/* From runnable to running: percentiles by entry function, the longest ones and what ran instead. */
struct sonde_error *sonde_trace_report_sched(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_sched_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_trace_tasks_options {
	bool all; /* each, not by type */
	bool has_id; /* that one, with its goroutines and logs */
	uint64_t id;
	const char *type; /* a part of the type's name; NULL = any */
	uint64_t top; /* rows, 0 = all */
};

/* User tasks: how long they took. SONDE_NOT_FOUND where has_id and it is not in the trace. */
struct sonde_error *sonde_trace_report_tasks(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_tasks_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_trace_regions_options {
	bool all; /* each, not by type */
	bool has_g, has_task; /* of that one only */
	uint64_t g, task;
	const char *type; /* a part of the name; NULL = any */
	uint64_t top; /* rows, 0 = all */
};

/* User regions: how long they took, and where their goroutine's time went within. */
struct sonde_error *sonde_trace_report_regions(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_regions_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_trace_gc_options {
	bool has_top, has_worst;
	uint64_t top; /* the last collections, 0 = all; 20 where has_top is not set */
	uint64_t worst; /* of the longest pauses, at most 10,000; 5 where has_worst is not set */
};

/* Collections, pauses and their reasons, work for the collector. */
struct sonde_error *sonde_trace_report_gc(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_gc_options *options, struct sonde_report *out) SONDE_CHECK;

struct sonde_trace_stacks_options {
	const char *const *types; /* names of event types; NULL = all that have stacks */
	size_t n_types;
	const char *function; /* a part of a function's name, anywhere in the stack; NULL = any */
	bool frames; /* with all frames */
	bool has_top;
	uint64_t top; /* rows, 0 = all; 20 where has_top is not set */
};

/* Where events happened. SONDE_USAGE for an unknown type. */
struct sonde_error *sonde_trace_report_stacks(const char *path,
	const struct sonde_trace_reader_options *reader_options,
	const struct sonde_trace_stacks_options *options, struct sonde_report *out) SONDE_CHECK;
