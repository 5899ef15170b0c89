/*
 * tests/build_trace.h: execution traces of the formats from 1.22 on, composed: header, batches, events, tables. A trace
 * is a buffer that grows; a batch is built in a buffer of its own and added.
 */
#pragma once
#include <stdarg.h>
#include <stdint.h>
#include <string.h>
#include "base/buf.h"
#include "traceformat/wire.h"

#define TRACE_UNUSED __attribute__((unused))
#define TRACE_NO_M UINT64_MAX

TRACE_UNUSED static void trace_header(struct sonde_buf *b, unsigned version)
{
	uint8_t bytes[SONDE_TRACE_HEADER_BYTES];
	sonde_trace_header_encode(bytes, version);
	sonde_buf_add(b, bytes, sizeof(bytes));
}

TRACE_UNUSED static void trace_varint(struct sonde_buf *b, uint64_t v)
{
	uint8_t bytes[SONDE_TRACE_MAX_VARINT_BYTES];
	sonde_buf_add(b, bytes, sonde_trace_varint_encode(bytes, v));
}

/* The batch's bytes are freed. */
TRACE_UNUSED static void trace_batch_of(struct sonde_buf *b, uint64_t gen, uint64_t m,
	uint64_t ticks, uint8_t experiment, struct sonde_buf *batch)
{
	uint8_t bytes[SONDE_TRACE_MAX_HEAD_BYTES];
	struct sonde_trace_batch_head head = {.gen = gen,
		.m = m,
		.ticks = ticks,
		.size = (uint32_t)batch->len,
		.experiment = experiment};
	sonde_buf_add(b, bytes, sonde_trace_batch_head_encode(bytes, &head));
	sonde_buf_add(b, batch->data, batch->len);
	sonde_buf_deinit(batch);
}

TRACE_UNUSED static void trace_batch(
	struct sonde_buf *b, uint64_t gen, uint64_t m, uint64_t ticks, struct sonde_buf *batch)
{
	trace_batch_of(b, gen, m, ticks, 0, batch);
}

/* An event of a batch: one tick behind the one before, with as many arguments as the catalogue says, as uint64_t. */
#define trace_event(b, kind, ...) \
	trace_event_at((b), 1, (kind), (const uint64_t[5]){__VA_ARGS__ __VA_OPT__(, ) 0})

TRACE_UNUSED static void trace_event_at(
	struct sonde_buf *b, uint64_t dticks, enum sonde_trace_kind kind, const uint64_t args[5])
{
	uint8_t bytes[SONDE_TRACE_MAX_EVENT_BYTES];
	sonde_buf_add(b, bytes, sonde_trace_event_encode(bytes, kind, dticks, args));
}

TRACE_UNUSED static void trace_string(struct sonde_buf *b, uint64_t id, const char *text)
{
	if (!b->len)
		sonde_buf_char(b, SONDE_TRACE_STRINGS);
	sonde_buf_char(b, SONDE_TRACE_STRING);
	trace_varint(b, id);
	trace_varint(b, strlen(text));
	sonde_buf_str(b, text);
}

/* A stack of one frame. */
TRACE_UNUSED static void trace_stack(
	struct sonde_buf *b, uint64_t id, uint64_t pc, uint64_t func, uint64_t file, uint64_t line)
{
	if (!b->len)
		sonde_buf_char(b, SONDE_TRACE_STACKS);
	sonde_buf_char(b, SONDE_TRACE_STACK);
	trace_varint(b, id);
	trace_varint(b, 1);
	trace_varint(b, pc);
	trace_varint(b, func);
	trace_varint(b, file);
	trace_varint(b, line);
}

TRACE_UNUSED static void trace_sample(
	struct sonde_buf *b, uint64_t ticks, uint64_t m, uint64_t p, uint64_t g, uint64_t stack)
{
	if (!b->len)
		sonde_buf_char(b, SONDE_TRACE_CPU_SAMPLES);
	sonde_buf_char(b, SONDE_TRACE_CPU_SAMPLE);
	trace_varint(b, ticks);
	trace_varint(b, m);
	trace_varint(b, p);
	trace_varint(b, g);
	trace_varint(b, stack);
}

/* Frequency, and from 1.25 on the clock; 64 ns a tick. */
TRACE_UNUSED static void trace_sync(
	struct sonde_buf *b, unsigned version, uint64_t gen, uint64_t ticks)
{
	struct sonde_buf batch = {0};
	if (version >= 25)
		sonde_buf_char(&batch, SONDE_TRACE_SYNC);
	sonde_buf_char(&batch, SONDE_TRACE_FREQUENCY);
	trace_varint(&batch, 15625000);
	if (version >= 25) {
		sonde_buf_char(&batch, SONDE_TRACE_CLOCK_SNAPSHOT);
		trace_varint(&batch, 2);
		trace_varint(&batch, 1000);
		trace_varint(&batch, 1700000000);
		trace_varint(&batch, 5);
	}
	trace_batch(b, gen, TRACE_NO_M, ticks, &batch);
}

/* Strings 1 to 4 ("one" to "four") and stacks 1 and 2. */
TRACE_UNUSED static void trace_tables(struct sonde_buf *b, uint64_t gen, uint64_t ticks)
{
	struct sonde_buf batch = {0};
	trace_stack(&batch, 1, 0x401000, 1, 2, 17);
	trace_stack(&batch, 2, 0x402000, 3, 2, 18);
	trace_batch(b, gen, TRACE_NO_M, ticks, &batch);
	trace_string(&batch, 1, "one");
	trace_string(&batch, 2, "two");
	trace_string(&batch, 3, "three");
	trace_string(&batch, 4, "four");
	trace_batch(b, gen, TRACE_NO_M, ticks, &batch);
}

/* The end of a generation that began with nothing but events. */
TRACE_UNUSED static void trace_end(
	struct sonde_buf *b, unsigned version, uint64_t gen, uint64_t ticks)
{
	trace_tables(b, gen, ticks);
	trace_sync(b, version, gen, ticks);
	if (version >= 26)
		sonde_buf_char(b, SONDE_TRACE_END_OF_GENERATION);
}

/* Processor p runs goroutine g on thread m. */
TRACE_UNUSED static void trace_running(struct sonde_buf *batch, uint64_t m, uint64_t p, uint64_t g)
{
	trace_event(batch, SONDE_TRACE_PROC_STATUS, p, SONDE_TRACE_P_RUNNING);
	trace_event(batch, SONDE_TRACE_GO_STATUS, g, m, SONDE_TRACE_G_RUNNING);
}

/* One of everything, two generations on two threads. */
TRACE_UNUSED static void trace_everything(struct sonde_buf *b, unsigned version)
{
	struct sonde_buf x = {0};
	trace_header(b, version);
	trace_running(&x, 10, 0, 1);
	trace_event(&x, SONDE_TRACE_PROCS_CHANGE, 2, 1);
	trace_event(&x, SONDE_TRACE_GC_BEGIN, 3, 1);
	trace_event(&x, SONDE_TRACE_STW_BEGIN, 1, 1);
	trace_event(&x, SONDE_TRACE_STW_END);
	trace_event(&x, SONDE_TRACE_GC_SWEEP_BEGIN, 1);
	trace_event(&x, SONDE_TRACE_GC_SWEEP_END, 100, 50);
	trace_event(&x, SONDE_TRACE_GC_MARK_ASSIST_BEGIN, 2);
	trace_event(&x, SONDE_TRACE_GC_MARK_ASSIST_END);
	trace_event(&x, SONDE_TRACE_GC_END, 4);
	trace_event(&x, SONDE_TRACE_HEAP_ALLOC, 1000);
	trace_event(&x, SONDE_TRACE_HEAP_GOAL, 2000);
	trace_event(&x, SONDE_TRACE_GO_LABEL, 3);
	trace_event(&x, SONDE_TRACE_USER_TASK_BEGIN, 5, 0, 1, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_BEGIN, 5, 2, 1);
	trace_event(&x, SONDE_TRACE_USER_LOG, 5, 3, 4, 1);
	trace_event(&x, SONDE_TRACE_USER_REGION_END, 5, 2, 1);
	trace_event(&x, SONDE_TRACE_GO_CREATE, 2, 1, 2);
	trace_event(&x, SONDE_TRACE_GO_SYSCALL_BEGIN, 1, 1);
	trace_event(&x, SONDE_TRACE_GO_SYSCALL_END);
	if (version >= 23) {
		trace_event(&x, SONDE_TRACE_GO_CREATE_BLOCKED, 3, 1, 2);
		trace_event(&x, SONDE_TRACE_GO_SWITCH, 3, 1);
		trace_event(&x, SONDE_TRACE_GO_SWITCH_DESTROY, 1, 1);
		trace_event(&x, SONDE_TRACE_SPAN_ALLOC, 7, 1, 2);
		trace_event(&x, SONDE_TRACE_HEAP_OBJECT, 7, 1);
		trace_event(&x, SONDE_TRACE_GOROUTINE_STACK_FREE, 7);
	}
	trace_event(&x, SONDE_TRACE_GO_SYSCALL_BEGIN, 2, 1);
	trace_event_at(&x, 20, SONDE_TRACE_GO_SYSCALL_END_BLOCKED, (const uint64_t[5]){0});
	trace_batch(b, 1, 10, 1000, &x);
	trace_event_at(&x, 40, SONDE_TRACE_PROC_STEAL, (const uint64_t[5]){0, 3, 10});
	trace_event(&x, SONDE_TRACE_PROC_START, 0, 4);
	trace_event(&x, SONDE_TRACE_GO_START, 2, 1);
	trace_event(&x, SONDE_TRACE_GO_BLOCK, 1, 1);
	trace_event(&x, SONDE_TRACE_GO_UNBLOCK, 2, 2, 0);
	trace_event(&x, SONDE_TRACE_GO_START, 2, 3);
	trace_event(&x, SONDE_TRACE_GO_STOP, 1, 1);
	trace_event(&x, SONDE_TRACE_PROC_STOP);
	trace_batch(b, 1, 11, 1000, &x);
	trace_sample(&x, 1010, 10, 0, 1, 1);
	trace_batch(b, 1, TRACE_NO_M, 1000, &x);
	trace_end(b, version, 1, 1000);
	trace_event(&x, SONDE_TRACE_PROC_STATUS, 0, SONDE_TRACE_P_IDLE);
	trace_event(&x, SONDE_TRACE_GO_STATUS, 1, UINT64_MAX, SONDE_TRACE_G_RUNNABLE);
	if (version >= 23)
		trace_event(
			&x, SONDE_TRACE_GO_STATUS_STACK, 2, UINT64_MAX, SONDE_TRACE_G_RUNNABLE, 1);
	trace_event(&x, SONDE_TRACE_GO_CREATE_SYSCALL, 9);
	trace_event(&x, SONDE_TRACE_PROC_START, 0, 1);
	trace_event(&x, SONDE_TRACE_GO_SYSCALL_END_BLOCKED);
	trace_event(&x, SONDE_TRACE_GO_START, 9, 1);
	trace_event(&x, SONDE_TRACE_USER_TASK_END, 5, 1);
	trace_event(&x, SONDE_TRACE_GO_SYSCALL_BEGIN, 2, 1);
	trace_event(&x, SONDE_TRACE_GO_DESTROY_SYSCALL);
	trace_batch(b, 2, 11, 2000, &x);
	if (version >= 23) {
		sonde_buf_str(&x, "of an experiment");
		trace_batch_of(b, 2, 11, 2000, 1, &x);
	}
	trace_end(b, version, 2, 2000);
}
