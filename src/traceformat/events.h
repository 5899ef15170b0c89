/* src/traceformat/events.h: the catalogue of events.def as enumerators and tables. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an event of the stream is: one vocabulary for all versions, that of the formats from 1.22 on. */
enum sonde_trace_kind {
#define SONDE_TRACE_EVENT(kind, wire, name, since, args, names, has_time) SONDE_TRACE_##kind = wire,
#define SONDE_TRACE_COMMON(kind, value, name, args, names) SONDE_TRACE_##kind = value,
#include "traceformat/events.def"
	SONDE_TRACE_N_KINDS = 137,
};

/* Records of the formats 1.5 to 1.21. */
enum sonde_trace_v1_type {
#define SONDE_TRACE_V1(v1, wire, name, since, args, changed, args_before, kind) \
	SONDE_TRACE_V1_##v1 = wire,
#include "traceformat/events.def"
	SONDE_TRACE_V1_N_TYPES = 50,
};

enum { SONDE_TRACE_MAX_ARGS = 4 };

struct sonde_trace_event_spec {
	const char *name; /* Go's; NULL: there is no such event */
	const char *args; /* letters, see events.def */
	const char *names; /* of the arguments, with a blank between two */
	uint8_t since; /* minor version of the first format that has it */
	uint8_t n_args;
	bool has_time; /* may stand in a batch of a thread */
	int8_t stack_arg; /* index of the running goroutine's stack; -1 = none */
	uint8_t string_args; /* bit i: argument i is a string */
	uint8_t stack_args; /* bit i: argument i is a stack */
};

struct sonde_trace_v1_spec {
	const char *name;
	const char *args, *args_before;
	uint8_t since, changed;
	uint8_t kind; /* enum sonde_trace_kind */
};

extern const struct sonde_trace_event_spec sonde_trace_event_specs[256];
extern const struct sonde_trace_v1_spec sonde_trace_v1_specs[64];

/* "GoStart"; "Invalid" for what is not in the catalogue. */
static inline const char *sonde_trace_kind_name(unsigned kind)
{
	const char *name = kind < 256 ? sonde_trace_event_specs[kind].name : NULL;
	return name ? name : "Invalid";
}

/* The kind that Go calls name (upper and lower case are one), or -1. */
int sonde_trace_kind_find(const char *name);

/* Statuses of goroutines and processors, as in the formats from 1.22 on. */
enum sonde_trace_g_status {
	SONDE_TRACE_G_NONE, /* does not exist (yet, any more) */
	SONDE_TRACE_G_RUNNABLE,
	SONDE_TRACE_G_RUNNING,
	SONDE_TRACE_G_SYSCALL,
	SONDE_TRACE_G_WAITING,
	SONDE_TRACE_G_UNDETERMINED, /* before the first word of it; after damage */
	SONDE_TRACE_N_G_STATUSES,
};

enum sonde_trace_p_status {
	SONDE_TRACE_P_NONE,
	SONDE_TRACE_P_RUNNING,
	SONDE_TRACE_P_IDLE,
	SONDE_TRACE_P_SYSCALL,
	SONDE_TRACE_P_ABANDONED, /* in a system call, its thread no longer known */
	SONDE_TRACE_P_UNDETERMINED,
	SONDE_TRACE_N_P_STATUSES,
};

const char *sonde_trace_g_status_name(unsigned status);
const char *sonde_trace_p_status_name(unsigned status);
