/*
 * src/profile/report.h: the reports of `sonde profile`, each written into an open report, in text or JSON. Strings in
 * options are borrowed for the call. A report that cannot be made fails before it writes anything.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include "base/error.h"

struct sonde_report; /* output/report.h */

struct sonde_profile_unwind_table_options {
	const char *debug_dirs; /* "DIR:DIR" with separate debug files; NULL = /usr/lib/debug */
	uint64_t pc; /* where has_pc: the one row that covers this link-time address */
	bool has_pc;
	bool summary; /* no rows */
};

/* The unwind table of the ELF file at path. SONDE_NOT_FOUND where has_pc and no row covers it. */
struct sonde_error *sonde_profile_report_unwind_table(const char *path,
	const struct sonde_profile_unwind_table_options *options,
	struct sonde_report *out) SONDE_CHECK;
