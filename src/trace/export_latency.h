/* src/trace/export_latency.h: distributions of durations in reports. */
#pragma once
#include "output/report.h"
#include "trace/latency.h"

/* The columns that sonde_trace_latency_values() fills. */
#define SONDE_TRACE_LATENCY_COLUMNS                                                   \
	{"count", "COUNT", .right = true}, {"total_ns", "TOTAL", .right = true},      \
		{"mean_ns", "MEAN", .right = true}, {"p50_ns", "P50", .right = true}, \
		{"p90_ns", "P90", .right = true}, {"p99_ns", "P99", .right = true},   \
		{"p999_ns", "P99.9", .right = true},                                  \
	{                                                                             \
		"max_ns", "LONGEST", .right = true                                    \
	}

enum { SONDE_TRACE_N_LATENCY_COLUMNS = 8 };

/* Returns how many. */
size_t sonde_trace_latency_values(const struct sonde_trace_latency *l,
	struct sonde_value values[SONDE_TRACE_N_LATENCY_COLUMNS]);
