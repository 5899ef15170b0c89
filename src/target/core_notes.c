#include <elf.h>
#include <signal.h>
#include <string.h>
#include "object/note.h"
#include "target/core_parts.h"
#include "target/ops.h"

SONDE_DEFINE_VEC(thread_vec, struct sonde_thread)

enum {
	NOTE_PRSTATUS = 1,
	NOTE_PRPSINFO = 3,
	NOTE_AUXV = 6,
	NOTE_386_TLS = 0x200,
	NOTE_ARM_TLS = 0x401
};
static const uint32_t NOTE_FILE = 0x46494c45, NOTE_SIGINFO = 0x53494749;

/* struct elf_prpsinfo (include/linux/elfcore.h) of both word sizes: offsets in bytes. */
static const struct psinfo_layout {
	uint8_t uid, id_bytes, pid, program, args, bytes;
} psinfo_layouts[] = {
	{.uid = 16, .id_bytes = 4, .pid = 24, .program = 40, .args = 56, .bytes = 136},
	{.uid = 8, .id_bytes = 2, .pid = 12, .program = 28, .args = 44, .bytes = 124},
};

static void copy_text(char *to, size_t room, const uint8_t *from, size_t len)
{
	size_t n = strnlen((const char *)from, sonde_min(len, room - 1));
	memcpy(to, from, n);
	to[n] = 0;
	while (n && to[n - 1] == ' ') /* the kernel ends the arguments with one */
		to[--n] = 0;
}

static bool decode_psinfo(const struct sonde_note *note, struct sonde_process_info *info)
{
	const struct psinfo_layout *l = &psinfo_layouts[info->word_bytes == 4];
	if (note->desc_len < l->bytes)
		return false;
	struct sonde_cursor c = sonde_cursor_over(note->desc, note->desc_len);
	sonde_cursor_seek(&c, l->uid);
	info->uid = (uint32_t)sonde_cursor_word(&c, l->id_bytes);
	info->gid = (uint32_t)sonde_cursor_word(&c, l->id_bytes);
	sonde_cursor_seek(&c, l->pid);
	info->pid = sonde_cursor_u32(&c);
	info->ppid = sonde_cursor_u32(&c);
	copy_text(info->program, sizeof(info->program), note->desc + l->program, 16);
	copy_text(info->args, sizeof(info->args), note->desc + l->args, 80);
	info->has_psinfo = true;
	return true;
}

/* siginfo_t: signo, errno, code; the union behind them is aligned to a word. */
static bool decode_siginfo(const struct sonde_note *note, struct sonde_process_info *info)
{
	struct sonde_cursor c = sonde_cursor_over(note->desc, note->desc_len);
	int signo = (int)sonde_cursor_u32(&c);
	sonde_cursor_u32(&c);
	int code = (int)sonde_cursor_u32(&c);
	sonde_cursor_align(&c, info->word_bytes);
	struct sonde_cursor sender = c;
	uint64_t addr = sonde_cursor_word(&c, info->word_bytes);
	if (c.bad)
		return false;
	info->has_siginfo = true;
	info->signal = signo;
	info->signal_code = code;
	if (code <= 0 && code != SI_TIMER) /* SI_USER, SI_QUEUE, SI_TKILL ...: somebody sent it */
		info->signal_pid = sonde_cursor_u32(&sender);
	else if (signo == SIGSEGV || signo == SIGBUS || signo == SIGILL || signo == SIGFPE ||
		signo == SIGTRAP)
		info->fault_addr = addr;
	return true;
}

/* struct user_desc rows of the three thread-local descriptors: entry number, base, limit, flags. */
static void decode_386_tls(
	const struct sonde_note *note, uint16_t selector, struct sonde_regs *regs)
{
	struct sonde_cursor c = sonde_cursor_over(note->desc, note->desc_len);
	while (sonde_cursor_left(&c) >= 16) {
		uint32_t entry = sonde_cursor_u32(&c), base = sonde_cursor_u32(&c);
		sonde_cursor_skip(&c, 8);
		if (entry == selector >> 3)
			regs->tls = regs->gs_base = base;
	}
}

struct reading {
	struct sonde_core_file *core;
	struct thread_vec threads;
	uint16_t gs_selector; /* of the last thread */
};

static struct sonde_error *read_note(struct reading *r, const struct sonde_note *note)
{
	struct sonde_core_file *core = r->core;
	struct sonde_process_info *info = &core->target.info;
	struct sonde_notes *notes = core->options.notes;
	struct sonde_thread *last = r->threads.n ? &r->threads.items[r->threads.n - 1] : NULL;
	if (note->type == NOTE_PRSTATUS) {
		struct sonde_prstatus p;
		if (!sonde_regs_of_prstatus(info->machine, note->desc, note->desc_len, &p)) {
			sonde_notes_add(notes, "core note not understood", 0,
				"NT_PRSTATUS of %zu bytes", note->desc_len);
			return NULL;
		}
		r->gs_selector = p.gs_selector;
		struct sonde_thread t = {.tid = p.tid, .signal = p.signal, .regs = p.regs};
		return thread_vec_push(&r->threads, t) ? NULL : &sonde_enomem;
	}
	if (note->type == NOTE_PRPSINFO && !info->has_psinfo) {
		if (!decode_psinfo(note, info))
			sonde_notes_add(notes, "core note not understood", 0,
				"NT_PRPSINFO of %zu bytes", note->desc_len);
	} else if (note->type == NOTE_AUXV && !info->has_auxv) {
		sonde_target_decode_auxv(note->desc, note->desc_len, info);
	} else if (note->type == NOTE_SIGINFO && !info->has_siginfo) {
		if (!decode_siginfo(note, info))
			sonde_notes_add(notes, "core note not understood", 0,
				"NT_SIGINFO of %zu bytes", note->desc_len);
	} else if (note->type == NOTE_FILE && !core->vmas) {
		struct sonde_error *err = sonde_vmas_decode(note->desc, note->desc_len,
			info->word_bytes, info->big_endian, &core->vmas);
		if (err && err->code == SONDE_NO_MEMORY)
			return err;
		if (err)
			sonde_notes_add(notes, "core note not understood", 0, "%s", err->message);
		else if (core->vmas->n_dropped)
			sonde_notes_add(notes,
				"file mappings dropped that overlap or make no sense",
				core->vmas->n_dropped, "NT_FILE");
		sonde_error_free(err);
	} else if (note->type == NOTE_ARM_TLS && last && info->machine == EM_AARCH64 &&
		note->desc_len >= 8) {
		struct sonde_cursor c = sonde_cursor_over(note->desc, note->desc_len);
		last->regs.tls = sonde_cursor_u64(&c);
	} else if (note->type == NOTE_386_TLS && last && info->machine == EM_386) {
		decode_386_tls(note, r->gs_selector, &last->regs);
	}
	return NULL;
}

struct sonde_error *sonde_core_notes_read(struct sonde_core_file *core, struct sonde_elf *elf)
{
	struct reading r = {.core = core};
	struct sonde_error *err = NULL;
	for (size_t i = 0; i < elf->n_segments && !err; i++) {
		const struct sonde_elf_segment *s = &elf->segments[i];
		if (s->type != PT_NOTE)
			continue;
		uint64_t len;
		const uint8_t *data = sonde_elf_segment_bytes(elf, s, &len);
		struct sonde_note_iter it =
			sonde_note_iter_over(data, len, s->align, elf->big_endian);
		struct sonde_note note;
		while (!err && sonde_note_next(&it, &note))
			err = read_note(&r, &note);
		if (it.damaged || len < s->file_bytes)
			sonde_notes_add(core->options.notes, "core notes cut short",
				s->file_bytes - sonde_min(s->file_bytes, len),
				"note segment at file offset 0x%llx, of %llu bytes",
				(unsigned long long)s->offset, (unsigned long long)s->file_bytes);
	}
	core->target.threads = r.threads.items;
	core->target.n_threads = r.threads.n;
	struct sonde_process_info *info = &core->target.info;
	/* A debugger's siginfo (SIGSTOP of its own attaching) is not what ended the process. */
	int first = core->target.n_threads ? core->target.threads[0].signal : info->signal;
	if (first != info->signal) {
		info->has_siginfo = false;
		info->signal_code = 0;
		info->fault_addr = 0;
		info->signal_pid = 0;
		info->signal = first;
	}
	return err;
}
