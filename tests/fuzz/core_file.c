/* A core file, plain or compressed, by way of an unnamed file; everything that is said to be readable is read. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "target/core_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(struct sonde_target *t)
{
	size_t n;
	const struct sonde_mapping *m = sonde_target_mappings(t, &n);
	uint8_t bytes[64];
	for (size_t i = 0; i < n; i++) {
		if (m[i].start >= m[i].end || (i && m[i - 1].end > m[i].start))
			__builtin_trap();
		const uint64_t at[] = {
			m[i].start, m[i].start + (m[i].end - m[i].start) / 2, m[i].end - 1};
		for (size_t k = 0; k < 3; k++) {
			bool there = sonde_target_read(t, at[k], bytes, 1);
			if (there != (m[i].source != SONDE_SOURCE_ABSENT))
				__builtin_trap();
			if (sonde_target_mapping_find(t, at[k]) != &m[i])
				__builtin_trap();
			sonde_target_read_some(t, at[k], bytes, sizeof(bytes));
		}
		free(sonde_target_string(t, m[i].start, 100));
	}
	const struct sonde_thread *th = sonde_target_threads(t, &n);
	for (size_t i = 0; i < n && i < 4; i++) {
		struct sonde_regs r;
		sonde_regs_of_sigreturn(t, &th[i].regs, &r);
		sonde_regs_of_ucontext(t, sonde_regs_sp(&th[i].regs), &r);
	}
	const char *why;
	if (!sonde_target_exe(t, &why) && !why)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("core", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	char path[64];
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	struct sonde_notes notes = {0};
	const struct sonde_core_options o = {.notes = &notes,
		.no_debuginfod = true,
		.debug_dirs = "/nonexistent",
		.sysroot = "/nonexistent",
		.tmp_dir = "/dev/shm"};
	struct sonde_target *t = NULL;
	struct sonde_error *err = sonde_core_file_open(path, &o, &t);
	if (!err)
		look(t);
	sonde_error_free(err);
	sonde_target_free(t);
	sonde_notes_deinit(&notes);
	close(fd);
	return 0;
}
