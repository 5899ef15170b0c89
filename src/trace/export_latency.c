#include "trace/export_latency.h"

size_t sonde_trace_latency_values(const struct sonde_trace_latency *l,
	struct sonde_value values[SONDE_TRACE_N_LATENCY_COLUMNS])
{
	static const double shares[] = {0.5, 0.9, 0.99, 0.999};
	size_t at = 0;
	values[at++] = sonde_value_count(l->n);
	values[at++] = sonde_value_ns(l->sum_ns);
	values[at++] = l->n ? sonde_value_ns(l->sum_ns / l->n) : sonde_value_none();
	for (size_t i = 0; i < SONDE_ARRAY_LEN(shares); i++)
		values[at++] = l->n ? sonde_value_ns(sonde_trace_latency_percentile(l, shares[i]))
				    : sonde_value_none();
	values[at++] = l->n ? sonde_value_ns(l->max_ns) : sonde_value_none();
	return at;
}
