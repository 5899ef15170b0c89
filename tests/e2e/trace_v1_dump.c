/*
 * tests/e2e/trace_v1_dump.c: a trace of the formats 1.5 to 1.21 in the lines of trace_v1_oracle's dump, to be compared
 * with what Go 1.21 makes of it: ns name P G offset stack args... strings...
 *
 *	trace_v1_dump FILE [stacks] [EXE]    EXE: for the names of a 1.5 trace; "" = none
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include "traceread/stream.h"

static void print_text(const struct sonde_trace_reader *r, uint64_t id)
{
	size_t len;
	const char *s = sonde_trace_string(r, id, &len);
	putchar(' ');
	for (size_t i = 0; s && i < len; i++)
		s[i] == '\n' ? fputs("\\n", stdout) : putchar(s[i]);
}

/* The type that Go's reader gives it: it makes one of two that differ for the order only. */
static const char *type_name(const struct sonde_trace_event *e)
{
	unsigned type = e->wire;
	if (type == SONDE_TRACE_V1_GO_START_LOCAL)
		type = SONDE_TRACE_V1_GO_START;
	else if (type == SONDE_TRACE_V1_GO_UNBLOCK_LOCAL)
		type = SONDE_TRACE_V1_GO_UNBLOCK;
	else if (type == SONDE_TRACE_V1_GO_SYSEXIT_LOCAL)
		type = SONDE_TRACE_V1_GO_SYSEXIT;
	return sonde_trace_v1_specs[type].name;
}

/* Arguments as Go 1.21 keeps them, where the stream has them elsewhere or not at all. */
static void go_args(const struct sonde_trace_event *e, uint64_t args[3])
{
	memset(args, 0, 3 * sizeof(*args));
	switch (e->wire) {
	case SONDE_TRACE_V1_PROC_START:
		args[0] = e->m;
		break;
	case SONDE_TRACE_V1_GC_START:
	case SONDE_TRACE_V1_GO_WAITING:
	case SONDE_TRACE_V1_GO_IN_SYSCALL:
	case SONDE_TRACE_V1_GOMAXPROCS:
	case SONDE_TRACE_V1_HEAP_ALLOC:
	case SONDE_TRACE_V1_HEAP_GOAL:
	case SONDE_TRACE_V1_USER_TASK_END:
		args[0] = e->args[0];
		break;
	case SONDE_TRACE_V1_GO_CREATE:
		args[0] = e->args[0];
		args[1] = e->args[1] & ~(UINT64_C(0xf) << 60); /* 1.5: an address */
		break;
	case SONDE_TRACE_V1_GC_SWEEP_DONE:
	case SONDE_TRACE_V1_GO_START:
	case SONDE_TRACE_V1_GO_START_LOCAL:
	case SONDE_TRACE_V1_GO_UNBLOCK:
	case SONDE_TRACE_V1_GO_UNBLOCK_LOCAL:
	case SONDE_TRACE_V1_USER_LOG:
		memcpy(args, e->args, 2 * sizeof(*args));
		break;
	case SONDE_TRACE_V1_GO_SYSEXIT:
	case SONDE_TRACE_V1_GO_SYSEXIT_LOCAL:
	case SONDE_TRACE_V1_GO_START_LABEL:
	case SONDE_TRACE_V1_USER_TASK_CREATE:
		memcpy(args, e->args, 3 * sizeof(*args));
		break;
	case SONDE_TRACE_V1_USER_REGION:
		args[0] = e->args[0];
		args[1] = e->kind == SONDE_TRACE_USER_REGION_END;
		args[2] = e->args[1];
		break;
	case SONDE_TRACE_V1_CPU_SAMPLE:
		args[1] = e->p;
		args[2] = e->g == SONDE_TRACE_NO_ID ? 0 : e->g;
		break;
	default:
		break;
	}
}

static void print_event(const struct sonde_trace_reader *r, const struct sonde_trace_event *e)
{
	uint64_t args[3], g = e->g == SONDE_TRACE_NO_ID ? 0 : e->g;
	bool is_exit =
		e->wire == SONDE_TRACE_V1_GO_SYSEXIT || e->wire == SONDE_TRACE_V1_GO_SYSEXIT_LOCAL;
	go_args(e, args);
	switch (e->kind) {
	case SONDE_TRACE_GO_START:
	case SONDE_TRACE_GO_STATUS:
	case SONDE_TRACE_GO_SYSCALL_END_BLOCKED:
		g = e->subject_g;
		break;
	default:
		break;
	}
	printf("%" PRId64 " %s ", e->ns, type_name(e));
	if (is_exit)
		putchar('*');
	else
		printf("%" PRId64, (int64_t)e->p);
	/* The kind of a stop is a text here, a number there: "-" is not compared. */
	printf(" %" PRIu64 " %" PRIu64 " %" PRIu64, g, e->offset, sonde_trace_event_stack(e));
	if (e->wire == SONDE_TRACE_V1_STW_START)
		fputs(" -", stdout);
	else
		printf(" %" PRIu64, args[0]);
	printf(" %" PRIu64 " %" PRIu64, args[1], args[2]);
	switch (e->wire) {
	case SONDE_TRACE_V1_STW_START:
		print_text(r, e->args[0]);
		break;
	case SONDE_TRACE_V1_GO_START_LABEL:
	case SONDE_TRACE_V1_USER_TASK_CREATE:
		print_text(r, e->args[2]);
		break;
	case SONDE_TRACE_V1_USER_REGION:
		print_text(r, e->args[1]);
		break;
	case SONDE_TRACE_V1_USER_LOG:
		print_text(r, e->args[1]);
		print_text(r, e->args[2]);
		break;
	default:
		break;
	}
	putchar('\n');
}

static void print_stack(const struct sonde_trace_reader *r, uint64_t id)
{
	struct sonde_trace_frame frames[SONDE_TRACE_MAX_FRAMES];
	size_t n = sonde_trace_stack(r, id, frames);
	printf("stack %" PRIu64, id);
	for (size_t i = 0; i < n; i++) {
		printf(" %" PRIx64, frames[i].pc);
		print_text(r, frames[i].func);
		print_text(r, frames[i].file);
		printf(" %" PRIu64, frames[i].line);
	}
	putchar('\n');
}

static int fail(struct sonde_error *err)
{
	fprintf(stderr, "%s\n", err->message);
	sonde_error_free(err);
	return 2;
}

int main(int argc, char **argv)
{
	sonde_cleanup(sonde_trace_reader) struct sonde_trace_reader *r = NULL;
	const struct sonde_trace_event *e = NULL;
	bool stacks = argc > 2 && !strcmp(argv[2], "stacks");
	uint64_t max_stack = 0;
	struct sonde_trace_reader_options options = {.exe = argc > 3 ? argv[3] : NULL};
	struct sonde_error *err = argc < 2
		? sonde_error_new(SONDE_USAGE, "usage: trace_v1_dump FILE [stacks] [EXE]")
		: sonde_trace_reader_open(argv[1], &options, &r);
	while (!err && !(err = sonde_trace_reader_next(r, &e)) && e) {
		if (e->flags & SONDE_TRACE_MADE)
			continue;
		print_event(r, e);
		uint64_t stack = sonde_trace_event_stack(e);
		max_stack = stack > max_stack ? stack : max_stack;
	}
	if (err)
		return fail(err);
	if (stacks)
		for (uint64_t id = 1; id <= max_stack; id++)
			print_stack(r, id);
	const struct sonde_trace_damages *d = sonde_trace_reader_damages(r);
	for (size_t i = 0; i < d->list.n && i < 20; i++)
		fprintf(stderr,
			"%s: offset %" PRIu64 ", %" PRId64 " ns, p %" PRId64 ", g %" PRId64
			", %" PRIu64 " bytes: %s\n",
			sonde_trace_damage_specs[d->list.items[i].code].word,
			d->list.items[i].offset, d->list.items[i].ns, (int64_t)d->list.items[i].p,
			(int64_t)d->list.items[i].g, d->list.items[i].bytes, d->list.items[i].text);
	return sonde_trace_reader_is_whole(r) ? 0 : 1;
}
