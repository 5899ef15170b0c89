/*
 * src/output/pprof.h: a profile in pprof's format (profile.proto of google/pprof, gzipped): what `go tool pprof`, speedscope
 * and continuous profilers read. Samples, functions and locations are encoded as they come; memory is the size of the
 * encoded profile. The same calls in the same order give the same bytes.
 *
 *	static const struct sonde_pprof_type types[] = {{"contentions", "count"}, {"delay", "nanoseconds"}};
 *	sonde_cleanup(sonde_pprof) struct sonde_pprof p;
 *	sonde_pprof_init(&p, types, SONDE_ARRAY_LEN(types));
 *	uint64_t f = sonde_pprof_function(&p, "main.main", "/src/main.go");
 *	uint64_t l = sonde_pprof_location(&p, 0, pc, &(struct sonde_pprof_line){f, 12}, 1);
 *	sonde_pprof_sample(&p, (int64_t[]){1, 1000}, &l, 1, NULL, 0);
 *	SONDE_TRY(sonde_pprof_write(&p, sink));
 *
 * Running out of memory is remembered and told at the end. One thread at a time.
 */
#pragma once
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/strtab.h"
#include "output/sink.h"

struct sonde_pprof_type {
	const char *type, *unit; /* "cpu", "nanoseconds" */
};

struct sonde_pprof {
	/* May be set any time before the end. */
	int64_t time_ns, duration_ns; /* since 1970; 0 = not said */
	struct sonde_pprof_type period_type; /* type NULL = none */
	int64_t period;
	const char *default_type; /* the sample type shown first; NULL = the last one */

	/* pprof.c's. */
	struct sonde_strtab strings;
	struct sonde_buf head, samples, mappings, locations, functions, tail, scratch;
	struct sonde_u64_map function_ids; /* name << 32 | file, as ids of strings */
	uint64_t n_functions, n_locations, n_samples, n_mappings;
	size_t n_types;
	bool failed;
};

/* types: the meaning of a sample's values; read only here. */
void sonde_pprof_init(struct sonde_pprof *p, const struct sonde_pprof_type *types, size_t n);
void sonde_pprof_deinit(struct sonde_pprof *p);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_pprof)

/* The id of a function, the same for the same name and file. file may be "". */
uint64_t sonde_pprof_function(struct sonde_pprof *p, const char *name, const char *file);

/* A part of the address space that a file is mapped to. */
struct sonde_pprof_mapping {
	uint64_t start, limit, file_offset;
	const char *file, *build_id; /* build_id in hexadecimal; NULL = not known */
	/* Whether its locations tell these already: of a mapping without names pprof looks them up in the file. */
	bool has_functions, has_files, has_lines, has_inlined;
};

/* The id of a new mapping. Tools take the first for the program's own. */
uint64_t sonde_pprof_mapping(struct sonde_pprof *p, const struct sonde_pprof_mapping *mapping);

struct sonde_pprof_line {
	uint64_t function; /* id */
	int64_t line; /* 0 = unknown */
};

/*
 * The id of a new location: the mapping it lies in (0 = not known), an address (0 = none) and what stands there, the
 * innermost inlined function first.
 */
uint64_t sonde_pprof_location(struct sonde_pprof *p, uint64_t mapping, uint64_t address,
	const struct sonde_pprof_line *lines, size_t n);

struct sonde_pprof_label {
	const char *key;
	const char *text; /* NULL: the number counts */
	int64_t number;
	const char *unit; /* of the number; NULL = none */
};

/* One sample: as many values as types; locations by id, the innermost first. */
void sonde_pprof_sample(struct sonde_pprof *p, const int64_t *values, const uint64_t *locations,
	size_t n, const struct sonde_pprof_label *labels, size_t n_labels);

/* A line that tools show beside the profile. */
void sonde_pprof_comment(struct sonde_pprof *p, const char *text);

/* The whole profile, gzipped, to the sink. */
struct sonde_error *sonde_pprof_write(struct sonde_pprof *p, struct sonde_sink *sink) SONDE_CHECK;
