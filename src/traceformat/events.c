#include "traceformat/events.h"

#include <string.h>
#include <strings.h>

/* Letters of one argument list, looked at when the tables are made. */
#define LEN(args) ((int)sizeof(args) - 1)
#define IS(args, i, letter) (LEN(args) > (i) && (args)[LEN(args) > (i) ? (i) : 0] == (letter))
#define BITS(args, letter)                                                                \
	(IS(args, 0, letter) << 0 | IS(args, 1, letter) << 1 | IS(args, 2, letter) << 2 | \
		IS(args, 3, letter) << 3)
#define STACK_ARG(args)                        \
	(IS(args, 3, 's')                  ? 3 \
			: IS(args, 2, 's') ? 2 \
			: IS(args, 1, 's') ? 1 \
			: IS(args, 0, 's') ? 0 \
					   : -1)
#define SPEC(name_, args_, names_, since_, has_time_)                                              \
	{                                                                                          \
		.name = (name_), .args = (args_), .names = (names_), .since = (since_),            \
		.n_args = LEN(args_), .has_time = (has_time_), .stack_arg = STACK_ARG(args_),      \
		.string_args = BITS(args_, 'S'), .stack_args = BITS(args_, 's') | BITS(args_, 'N') \
	}

const struct sonde_trace_event_spec sonde_trace_event_specs[256] = {
#define SONDE_TRACE_EVENT(kind, wire, name, since, args, names, has_time) \
	[wire] = SPEC(name, args, names, since, has_time),
#define SONDE_TRACE_COMMON(kind, value, name, args, names) \
	[value] = SPEC(name, args, names, 5, false),
#include "traceformat/events.def"
};

const struct sonde_trace_v1_spec sonde_trace_v1_specs[64] = {
#define SONDE_TRACE_V1(v1, wire, name, since, args, changed, args_before, kind) \
	[wire] = {name, args, args_before, since, changed, SONDE_TRACE_##kind},
#include "traceformat/events.def"
};

int sonde_trace_kind_find(const char *name)
{
	for (int i = 1; i < 256; i++)
		if (sonde_trace_event_specs[i].name &&
			!strcasecmp(sonde_trace_event_specs[i].name, name))
			return i;
	return -1;
}

const char *sonde_trace_g_status_name(unsigned status)
{
	static const char *const names[] = {
		"none", "runnable", "running", "syscall", "waiting", "undetermined"};
	return status < SONDE_TRACE_N_G_STATUSES ? names[status] : "bad";
}

const char *sonde_trace_p_status_name(unsigned status)
{
	static const char *const names[] = {
		"none", "running", "idle", "syscall", "abandoned", "undetermined"};
	return status < SONDE_TRACE_N_P_STATUSES ? names[status] : "bad";
}
