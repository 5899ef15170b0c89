/* src/core/export_value.h: Go values in reports: one tree (golang/value.h), a line of text or a JSON object. */
#pragma once
#include "core/report.h"
#include "core/session.h"
#include "golang/value.h"

struct sonde_report; /* output/report.h */

struct sonde_go_value_limits sonde_core_value_limits(
	const struct sonde_core_value_options *options);

/* The member `key` of the open object, in JSON only. value NULL: null. */
void sonde_core_report_value(struct sonde_report *out, const struct sonde_core_session *s,
	const char *key, const struct sonde_go_value *value);
