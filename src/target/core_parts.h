/* src/target/core_parts.h: what the files core_*.c share about a core file while it is opened; for nobody else. */
#pragma once
#include "base/vec.h"
#include "object/vmas.h"
#include "target/core_file.h"
#include "target/ops.h"
#include "target/windows.h"

/* Why bytes of a mapping do not stand in the core. */
enum sonde_core_left {
	SONDE_CORE_PRESENT,
	SONDE_CORE_LEFT_OUT, /* the dumper left them out */
	SONDE_CORE_CUT, /* the core file ends before them */
};

struct sonde_core_piece {
	struct sonde_mapping m;
	enum sonde_core_left left;
	bool perm_known; /* false: NT_FILE knows it, no segment does */
	int fd; /* SOURCE_FILE: of the image, borrowed */
};
SONDE_DEFINE_VEC(sonde_core_pieces, struct sonde_core_piece)

/* What the core itself tells about a mapped file: its first pages, as far as they were dumped. */
struct sonde_core_evidence {
	uint64_t base; /* address of file offset 0 */
	uint8_t *header; /* owned */
	size_t header_len;
	struct sonde_elf *elf; /* over header; NULL = no ELF header in the core */
	struct sonde_buildid id;
	char goid[SONDE_GOBUILDID_BYTES];
};

enum sonde_core_verdict { SONDE_CORE_SAME, SONDE_CORE_DIFFERENT, SONDE_CORE_UNPROVEN };

/* A file that was mapped, looked for once. */
struct sonde_core_image {
	const char *path; /* the process's; borrowed from vmas */
	const char *opened; /* in the arena; NULL = none */
	const char *reason; /* in the arena: why none */
	int fd; /* owned; -1 = none */
	uint64_t size_bytes;
	struct sonde_elf *elf; /* owned, over prefix or over the whole file; NULL = not ELF */
	uint8_t *prefix; /* owned */
};
SONDE_DEFINE_VEC(sonde_core_images, struct sonde_core_image)
SONDE_DEFINE_VEC(sonde_core_holes, struct sonde_window_hole)

struct sonde_core_file {
	struct sonde_target target; /* first */
	struct sonde_windows *windows;
	int fd; /* of the plain (inflated) core */
	/* While opening only: */
	const char *path;
	struct sonde_core_options options;
	uint64_t size_bytes;
	struct sonde_core_pieces pieces; /* sorted, disjoint */
	struct sonde_core_holes holes;
	struct sonde_vmas *vmas; /* NULL = no NT_FILE */
	struct sonde_core_images images;
};

/* Leading bytes at addr that the core file itself holds; before the windows are there. */
size_t sonde_core_peek(const struct sonde_core_file *core, uint64_t addr, void *to, size_t len);
/* The index of the first piece that ends behind addr. */
size_t sonde_core_piece_at(const struct sonde_core_file *core, uint64_t addr);

/* core_notes.c: fill info, threads and vmas from the note segments. */
struct sonde_error *sonde_core_notes_read(
	struct sonde_core_file *core, struct sonde_elf *elf) SONDE_CHECK;

/* core_image.c */
void sonde_core_evidence_deinit(struct sonde_core_evidence *e);
SONDE_DEFINE_CLEANUP_DEINIT(sonde_core_evidence)
void sonde_core_images_close(struct sonde_core_images *images);
/*
 * 0 for a regular file, else an errno (ENODEV: neither file nor folder). A path out of a core is asked before it is
 * opened: opening a device can do something.
 */
int sonde_core_regular(const char *path);
/* What the core holds at base, the address of a file's first byte. false: out of memory. */
bool sonde_core_evidence_at(
	const struct sonde_core_file *core, uint64_t base, struct sonde_core_evidence *e);
/* The mapping of file offset 0 of path; UINT64_MAX: none. */
uint64_t sonde_core_base_of(const struct sonde_core_file *core, const char *path);
/*
 * Whether elf (file fd) is what the evidence tells; path: compare the pages that path's mappings have in the core (may
 * be NULL). *why (in the arena) names both identities where they differ.
 */
enum sonde_core_verdict sonde_core_identify(struct sonde_core_file *core,
	const struct sonde_core_evidence *e, const char *path, const struct sonde_elf *elf, int fd,
	const char *opened, const char **why);
/* The file of path, looked for at the first call. NULL: out of memory. Valid until the next call. */
struct sonde_core_image *sonde_core_image_find(struct sonde_core_file *core, const char *path);

/* core_exe.c: find the executable; fills target.exe*. */
struct sonde_error *sonde_core_exe_find(struct sonde_core_file *core) SONDE_CHECK;
/* The path in NT_FILE of the executable, or NULL. */
const char *sonde_core_exe_mapped_path(const struct sonde_core_file *core);
