/* src/core/export_root.h: a root as a section "root" of a report, and as one line of text. */
#pragma once
#include "core/session.h"
#include "golang/roots.h"

struct sonde_report; /* output/report.h */

void sonde_core_report_root(
	struct sonde_report *out, struct sonde_core_session *s, const struct sonde_go_root *root);
