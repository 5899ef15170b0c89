/*
 * src/target/live.h: a running process as a target. Memory is read by process_vm_readv(2) when asked for, never in place
 * (sonde_target_bytes() gives NULL), files through /proc/PID, so that another mount namespace, a chroot or a deleted file
 * does no harm.
 */
#pragma once
#include "base/error.h"
#include "base/log.h"
#include "base/notes.h"
#include "target/target.h"

struct sonde_live_options {
	const struct sonde_log *log; /* borrowed for the call; may be NULL */
	struct sonde_notes *notes; /* borrowed for the call; may be NULL */
	bool memory_only; /* let the threads run and list none: somebody else stops them */
};

/*
 * Open process pid. Its threads are stopped (PTRACE_SEIZE, PTRACE_INTERRUPT: no signal is sent) until the target is freed,
 * which must happen in the thread that opened it: ptrace belongs to a thread. Mappings, memory and registers are then of
 * one moment. The thread whose id is pid comes first. Mapped files that can be opened and are the very ones mapped have
 * SONDE_SOURCE_FILE; other memory SONDE_SOURCE_CORE. SONDE_NOT_FOUND: no such process, or it has ended; SONDE_OS with
 * what would permit it: not permitted; SONDE_UNSUPPORTED: another machine. options may be NULL.
 */
struct sonde_error *sonde_live_open(uint32_t pid, const struct sonde_live_options *options,
	struct sonde_target **ret) SONDE_CHECK;
