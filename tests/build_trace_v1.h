/* tests/build_trace_v1.h: execution traces of the formats 1.5 to 1.21 made in the test, record by record. */
#pragma once
#include "build.h"
#include "traceformat/events.h"
#include "traceformat/wire.h"

BUILD_UNUSED static void build_v1_header(struct sonde_buf *b, unsigned version)
{
	uint8_t header[SONDE_TRACE_HEADER_BYTES];
	sonde_trace_header_encode(header, version);
	sonde_buf_add(b, header, sizeof(header));
}

BUILD_UNUSED static void build_v1_varint(struct sonde_buf *b, uint64_t v)
{
	uint8_t bytes[SONDE_TRACE_MAX_VARINT_BYTES];
	sonde_buf_add(b, bytes, sonde_trace_varint_encode(bytes, v));
}

/* A record with these arguments, all of them; with their length in front where there are many, as the runtime does. */
BUILD_UNUSED static void build_v1_record(
	struct sonde_buf *b, unsigned version, unsigned type, const uint64_t *args, unsigned n)
{
	unsigned n_inline = n - 1 - (version < 7);
	if (n_inline < 3) {
		build_u8(b, (uint8_t)(type | n_inline << 6));
		for (unsigned i = 0; i < n; i++)
			build_v1_varint(b, args[i]);
		return;
	}
	sonde_cleanup(sonde_buf) struct sonde_buf body = {0};
	for (unsigned i = 0; i < n; i++)
		build_v1_varint(&body, args[i]);
	build_u8(b, (uint8_t)(type | 3 << 6));
	build_v1_varint(b, body.len);
	sonde_buf_add(b, body.data, body.len);
}

/* Where the batch that is being made stands, for what must lie close. */
static uint64_t build_v1_seq, build_v1_ticks;

/* seq: of 1.5 only. */
BUILD_UNUSED static void build_v1_batch(
	struct sonde_buf *b, unsigned version, uint64_t p, uint64_t seq, uint64_t ticks)
{
	const uint64_t old[] = {p, seq, ticks}, args[] = {p, ticks};
	build_v1_seq = seq;
	build_v1_ticks = ticks;
	build_v1_record(
		b, version, SONDE_TRACE_V1_BATCH, version < 7 ? old : args, version < 7 ? 3 : 2);
}

/*
 * An event dticks (1.5: and one sequence number) behind the one before it, with its own arguments:
 * build_v1_event(&b, 21, GO_START, 1, g, seq).
 */
#define build_v1_event(b, version, type, dticks, ...)                                         \
	do {                                                                                  \
		const uint64_t build_own_[] = {0, ##__VA_ARGS__};                             \
		build_v1_event_(b, version, SONDE_TRACE_V1_##type, 1, dticks, build_own_ + 1, \
			sizeof(build_own_) / sizeof(build_own_[0]) - 1);                      \
	} while (0)

BUILD_UNUSED static void build_v1_event_(struct sonde_buf *b, unsigned version, unsigned type,
	uint64_t dseq, uint64_t dticks, const uint64_t *own, unsigned n)
{
	uint64_t args[16];
	unsigned k = 0;
	build_v1_seq += dseq;
	build_v1_ticks += dticks;
	if (version < 7)
		args[k++] = dseq;
	args[k++] = dticks;
	for (unsigned i = 0; i < n; i++)
		args[k++] = own[i];
	build_v1_record(b, version, type, args, k);
}

BUILD_UNUSED static void build_v1_string(struct sonde_buf *b, uint64_t id, const char *text)
{
	build_u8(b, SONDE_TRACE_V1_STRING);
	build_v1_varint(b, id);
	build_v1_varint(b, strlen(text));
	sonde_buf_str(b, text);
}

/* The message of a USER_LOG, right behind it. */
BUILD_UNUSED static void build_v1_message(struct sonde_buf *b, const char *text)
{
	build_v1_varint(b, strlen(text));
	sonde_buf_str(b, text);
}

BUILD_UNUSED static void build_v1_frequency(struct sonde_buf *b, unsigned version, uint64_t hz)
{
	const uint64_t args[] = {hz, 0};
	build_v1_record(b, version, SONDE_TRACE_V1_FREQUENCY, args, version < 7 ? 2 : 1);
}

BUILD_UNUSED static void build_v1_timer(struct sonde_buf *b, unsigned version, uint64_t g)
{
	const uint64_t args[] = {g, 0};
	build_v1_record(b, version, SONDE_TRACE_V1_TIMER_GOROUTINE, args, version < 7 ? 2 : 1);
}

/* n frames at pc, pc + 1, ..., each with the strings 1 and 2 and its number as the line. */
BUILD_UNUSED static void build_v1_stack(
	struct sonde_buf *b, unsigned version, uint64_t id, unsigned n, uint64_t pc)
{
	uint64_t args[2 + 4 * 250];
	unsigned k = 0;
	args[k++] = id;
	args[k++] = n;
	for (unsigned i = 0; i < n; i++) {
		args[k++] = pc + i;
		if (version < 7)
			continue;
		args[k++] = 1;
		args[k++] = 2;
		args[k++] = i + 1;
	}
	build_v1_record(b, version, SONDE_TRACE_V1_STACK, args, k);
}

/*
 * One of every record that Go wrote in the version, whole: on processor 0, goroutines 1, which calls the system, 2, which
 * goes through all kinds of blocking, 3, which waits throughout, and 4, which comes from a system call. (Go never wrote
 * GoSysExitLocal, and its reader takes it for one of another goroutine.)
 */
BUILD_UNUSED static void build_v1_everything(struct sonde_buf *b, unsigned version)
{
	static const uint8_t blocks[] = {SONDE_TRACE_V1_GO_SLEEP, SONDE_TRACE_V1_GO_BLOCK,
		SONDE_TRACE_V1_GO_BLOCK_SEND, SONDE_TRACE_V1_GO_BLOCK_RECV,
		SONDE_TRACE_V1_GO_BLOCK_SELECT, SONDE_TRACE_V1_GO_BLOCK_SYNC,
		SONDE_TRACE_V1_GO_BLOCK_COND, SONDE_TRACE_V1_GO_BLOCK_NET,
		SONDE_TRACE_V1_GO_BLOCK_GC};
	bool old = version < 7;
	uint64_t seq = 1;
	build_v1_header(b, version);
	build_v1_batch(b, version, 0, 0, 1000);
	if (!old) {
		build_v1_string(b, 1, "main.f");
		build_v1_string(b, 2, "/src/f.go");
		build_v1_string(b, 3, "name");
	}
	build_v1_event(b, version, PROC_START, 1, 77);
	build_v1_event(b, version, GOMAXPROCS, 1, 2, 1);
	for (uint64_t g = 1; g <= 4; g++)
		build_v1_event(b, version, GO_CREATE, 1, g, 1, 0);
	build_v1_event(b, version, GO_WAITING, 1, 3);
	build_v1_event(b, version, GO_IN_SYSCALL, 1, 4);
	build_v1_event(b, version, HEAP_ALLOC, 1, 4096);
	build_v1_event(b, version, HEAP_GOAL, 1, 8192);
	if (old) {
		build_v1_event(b, version, GC_START, 1, 1);
		build_v1_event(b, version, GO_START, 1, 1);
	} else {
		build_v1_event(b, version, GC_START, 1, 0, 1);
		build_v1_event(b, version, GO_START, 1, 1, 1);
	}
	if (version < 10)
		build_v1_event(b, version, STW_START, 1);
	else
		build_v1_event(b, version, STW_START, 1, 1);
	build_v1_event(b, version, STW_DONE, 1);
	build_v1_event(b, version, GC_DONE, 1);
	build_v1_event(b, version, GC_SWEEP_START, 1, 1);
	if (version < 9)
		build_v1_event(b, version, GC_SWEEP_DONE, 1);
	else
		build_v1_event(b, version, GC_SWEEP_DONE, 1, 10, 5);
	if (version >= 9) {
		build_v1_event(b, version, GC_MARK_ASSIST_START, 1, 1);
		build_v1_event(b, version, GC_MARK_ASSIST_DONE, 1);
	}
	if (version >= 11) {
		build_v1_event(b, version, USER_TASK_CREATE, 1, 9, 0, 3, 1);
		build_v1_event(b, version, USER_REGION, 1, 9, 0, 3, 1);
		build_v1_event(b, version, USER_LOG, 1, 9, 3, 1);
		build_v1_message(b, "hello");
		build_v1_event(b, version, USER_REGION, 1, 9, 1, 3, 1);
		build_v1_event(b, version, USER_TASK_END, 1, 9, 1);
	}
	if (version >= 19)
		build_v1_event(b, version, CPU_SAMPLE, 1, 1010, 0, 1, 1);
	build_v1_event(b, version, GO_SYSCALL, 1, 1);
	build_v1_event(b, version, GO_SYSBLOCK, 1);
	/* Its real time and, in 1.5, its own sequence number lie before where it stands. */
	const uint64_t exit[] = {1, old ? build_v1_seq + 5 : 2, build_v1_ticks + 10};
	build_v1_event_(b, version, SONDE_TRACE_V1_GO_SYSEXIT, 20, 30, exit, 3);
	if (old)
		build_v1_event(b, version, GO_START, 1, 1);
	else
		build_v1_event(b, version, GO_START, 1, 1, 3);
	build_v1_event(b, version, GO_SCHED, 1, 1);
	for (unsigned i = 0; i < sizeof(blocks); i++) {
		const uint64_t stack[] = {1};
		if (blocks[i] == SONDE_TRACE_V1_GO_BLOCK_GC && version < 8)
			continue;
		if (old) {
			build_v1_event(b, version, GO_START, 1, 2);
			build_v1_event_(b, version, blocks[i], 1, 1, stack, 1);
			build_v1_event(b, version, GO_UNBLOCK, 1, 2, 1);
			continue;
		}
		if (i & 1) {
			build_v1_event(b, version, GO_START_LOCAL, 1, 2);
			build_v1_event_(b, version, blocks[i], 1, 1, stack, 1);
			build_v1_event(b, version, GO_UNBLOCK_LOCAL, 1, 2, 1);
		} else {
			build_v1_event(b, version, GO_START, 1, 2, seq);
			build_v1_event_(b, version, blocks[i], 1, 1, stack, 1);
			build_v1_event(b, version, GO_UNBLOCK, 1, 2, seq + 1, 1);
		}
		seq += 2;
	}
	if (old)
		build_v1_event(b, version, GO_START, 1, 2);
	else if (version >= 8)
		build_v1_event(b, version, GO_START_LABEL, 1, 2, seq, 3);
	else
		build_v1_event(b, version, GO_START, 1, 2, seq);
	build_v1_event(b, version, FUTILE_WAKEUP, 1);
	build_v1_event(b, version, GO_PREEMPT, 1, 1);
	if (old)
		build_v1_event(b, version, GO_START, 1, 2);
	else
		build_v1_event(b, version, GO_START_LOCAL, 1, 2);
	build_v1_event(b, version, GO_END, 1);
	const uint64_t other[] = {4, old ? build_v1_seq + 5 : 2, build_v1_ticks + 10};
	build_v1_event_(b, version, SONDE_TRACE_V1_GO_SYSEXIT, 20, 30, other, 3);
	if (old)
		build_v1_event(b, version, GO_START, 1, 4);
	else
		build_v1_event(b, version, GO_START_LOCAL, 1, 4);
	build_v1_event(b, version, GO_STOP, 1, 1);
	build_v1_event(b, version, PROC_STOP, 1);
	build_v1_batch(b, version, 0, 0, 5000);
	build_v1_frequency(b, version, 1000000000);
	build_v1_timer(b, version, 3);
	build_v1_stack(b, version, 1, 2, 0x400000);
}
