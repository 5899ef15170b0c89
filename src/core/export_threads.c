#include <inttypes.h>
#include <signal.h>

#include "base/buf.h"
#include "core/report.h"
#include "core/threads.h"
#include "output/report.h"

enum { MAX_CALLS = 128, REGISTERS_A_LINE = 4 };

static void report_registers(struct sonde_report *out, const struct sonde_regs *regs)
{
	const struct sonde_machine *machine = sonde_machine_find(regs->machine);
	if (!machine)
		return;
	sonde_cleanup(sonde_buf) struct sonde_buf line = {0};
	sonde_report_section_begin(out, "registers", NULL);
	unsigned n = 0;
	for (unsigned i = 0; i < machine->n_regs; i++) {
		if (!sonde_regs_has(regs, i))
			continue;
		sonde_report_field(
			out, machine->reg_names[i], NULL, sonde_value_addr(regs->dwarf[i]));
		sonde_buf_printf(&line, "%s%-4s %0*" PRIx64, n % REGISTERS_A_LINE ? "  " : "",
			machine->reg_names[i], (int)machine->word_bytes * 2, regs->dwarf[i]);
		if (++n % REGISTERS_A_LINE == 0) {
			sonde_report_line(out, "    %s", sonde_buf_text(&line));
			line.len = 0;
		}
	}
	if (line.len)
		sonde_report_line(out, "    %s", sonde_buf_text(&line));
	sonde_report_section_end(out);
}

static void report_call(struct sonde_report *out, const struct sonde_core_threads *threads,
	const struct sonde_walk_frame *f, const struct sonde_symbol_call *c)
{
	const struct sonde_walk_module *m =
		f->module == UINT32_MAX ? NULL : &threads->modules->all.items[f->module];
	const char *module = m ? m->name : "?", *function = c->function ? c->function : "?";
	sonde_report_item_begin(out);
	sonde_report_field(out, "function", NULL, sonde_value_text(c->function));
	sonde_report_field(out, "linkage_name", NULL, sonde_value_text(c->linkage_name));
	sonde_report_field(out, "file", NULL, sonde_value_text(c->file));
	sonde_report_field(
		out, "line", NULL, c->line ? sonde_value_count(c->line) : sonde_value_none());
	sonde_report_field(out, "inlined", NULL, sonde_value_bool(c->inlined));
	sonde_report_field(out, "module", NULL, sonde_value_text(m ? m->path : NULL));
	if (c->inlined) {
		sonde_report_line(
			out, "    %016" PRIx64 "  %s (%s)  [inlined]", f->pc, function, module);
	} else {
		/* From the instruction that the frame shows, as the function was found by it. */
		uint64_t offset = c->offset + (f->exact ? 0 : 1);
		sonde_report_field(out, "pc", NULL, sonde_value_addr(f->pc));
		sonde_report_field(out, "offset", NULL,
			c->function ? sonde_value_count(offset) : sonde_value_none());
		sonde_report_field(out, "sp", NULL, sonde_value_addr(f->sp));
		sonde_report_field(
			out, "found_by", NULL, sonde_value_text(sonde_walk_how_name(f->how)));
		sonde_report_field(out, "trampoline", NULL, sonde_value_bool(f->trampoline));
		if (f->trampoline)
			sonde_report_line(out, "    %016" PRIx64 "  <signal trampoline> (%s)  [%s]",
				f->pc, module, sonde_walk_how_name(f->how));
		else if (c->function)
			sonde_report_line(out, "    %016" PRIx64 "  %s +0x%" PRIx64 " (%s)  [%s]",
				f->pc, function, offset, module, sonde_walk_how_name(f->how));
		else
			sonde_report_line(out, "    %016" PRIx64 "  ? (%s)  [%s]", f->pc, module,
				sonde_walk_how_name(f->how));
	}
	if (c->file)
		sonde_report_line(out, "    %16s      %s:%" PRIu32, "", c->file, c->line);
	sonde_report_item_end(out);
}

void sonde_core_report_foreign(struct sonde_report *out, struct sonde_core_threads *threads,
	const struct sonde_core_foreign *foreign)
{
	sonde_cleanup(sonde_buf) struct sonde_buf line = {0};
	for (size_t i = 0; i < foreign->n_frames && !sonde_report_failed(out); i++) {
		const struct sonde_walk_frame *f = &threads->frames.items[foreign->first_frame + i];
		const struct sonde_walk_module *m =
			f->module == UINT32_MAX ? NULL : &threads->modules->all.items[f->module];
		struct sonde_symbol_call calls[MAX_CALLS];
		size_t n = sonde_core_thread_calls(threads, f, calls, MAX_CALLS);
		for (size_t k = 0; k < n && k < MAX_CALLS; k++) {
			const struct sonde_symbol_call *c = &calls[k];
			uint64_t offset = c->offset + (f->exact ? 0 : 1);
			sonde_report_item_begin(out);
			sonde_report_field(out, "function", NULL, sonde_value_text(c->function));
			sonde_report_field(out, "file", NULL, sonde_value_text(c->file));
			sonde_report_field(out, "line", NULL,
				c->line ? sonde_value_count(c->line) : sonde_value_none());
			sonde_report_field(out, "inlined", NULL, sonde_value_bool(c->inlined));
			sonde_report_field(
				out, "module", NULL, sonde_value_text(m ? m->path : NULL));
			if (!c->inlined) {
				sonde_report_field(out, "pc", NULL, sonde_value_addr(f->pc));
				sonde_report_field(out, "offset", NULL,
					c->function ? sonde_value_count(offset)
						    : sonde_value_none());
				sonde_report_field(out, "sp", NULL, sonde_value_addr(f->sp));
				sonde_report_field(
					out, "trampoline", NULL, sonde_value_bool(f->trampoline));
			}
			sonde_report_item_end(out);
			sonde_report_line(out, "    %s",
				f->trampoline         ? "<signal trampoline>"
					: c->function ? c->function
						      : "?");
			line.len = 0;
			if (c->file)
				sonde_buf_printf(&line, "%s:%" PRIu32, c->file, c->line);
			else
				sonde_buf_printf(
					&line, "0x%" PRIx64 " in %s", f->pc, m ? m->name : "?");
			if (c->inlined)
				sonde_buf_str(&line, "  [inlined]");
			else if (c->function)
				sonde_buf_printf(&line, " +0x%" PRIx64, offset);
			sonde_report_line(out, "        %s", sonde_buf_text(&line));
		}
	}
	if (foreign->cut)
		sonde_report_line(out, "    %s", foreign->cut);
}

static void report_thread(struct sonde_report *out, struct sonde_core_threads *threads,
	const struct sonde_core_thread *t, bool crashed)
{
	sonde_cleanup(sonde_buf) struct sonde_buf b = {0};
	/* The kernel writes the signal that ended the process into every thread's record. */
	const char *name = t->thread->signal ? sigabbrev_np(t->thread->signal) : NULL;
	if (t->thread->signal && crashed)
		sonde_buf_printf(&b, ", SIG%s", name ? name : "?");
	if (t->goroutine)
		sonde_buf_printf(&b, ", goroutine %" PRIu64, t->goroutine->id);
	sonde_report_item_begin(out);
	sonde_report_heading(out, "thread %" PRIu32 "%s%s:", t->thread->tid,
		crashed ? " (first)" : "", sonde_buf_text(&b));
	sonde_report_field(out, "tid", NULL, sonde_value_count(t->thread->tid));
	sonde_report_field(out, "signal", NULL,
		t->thread->signal ? sonde_value_count((uint64_t)t->thread->signal)
				  : sonde_value_none());
	sonde_report_field(out, "goroutine", NULL,
		t->goroutine ? sonde_value_count(t->goroutine->id) : sonde_value_none());
	report_registers(out, &t->thread->regs);
	sonde_report_list_begin(out, "frames");
	for (size_t i = 0; i < t->n_frames && !sonde_report_failed(out); i++) {
		const struct sonde_walk_frame *f = &threads->frames.items[t->first_frame + i];
		struct sonde_symbol_call calls[MAX_CALLS];
		if (t->gap.text && t->gap.before == i)
			sonde_report_line(out, "    %s", t->gap.text);
		size_t n = sonde_core_thread_calls(threads, f, calls, MAX_CALLS);
		for (size_t k = 0; k < n && k < MAX_CALLS; k++)
			report_call(out, threads, f, &calls[k]);
	}
	sonde_report_list_end(out);
	if (t->cut)
		sonde_report_line(out, "    %s", t->cut);
	sonde_report_field(out, "cut", NULL, sonde_value_text(t->cut));
	if (t->gap.text) {
		sonde_report_section_begin(out, "gap", NULL);
		sonde_report_field(out, "text", NULL, sonde_value_text(t->gap.text));
		sonde_report_field(out, "before", NULL, sonde_value_count(t->gap.before));
		sonde_report_section_end(out);
	}
	sonde_report_item_end(out);
	sonde_report_blank(out);
}

struct sonde_error *sonde_core_report_threads(
	struct sonde_core_session *session, struct sonde_report *out)
{
	sonde_cleanup(sonde_core_threads) struct sonde_core_threads *threads = NULL;
	SONDE_TRY(sonde_core_threads_open(session, &threads));
	sonde_report_begin(out, "core.threads", 1);
	sonde_report_field(out, "total", NULL, sonde_value_count(threads->all.n));
	sonde_report_line(out, "%zu thread%s", threads->all.n, threads->all.n == 1 ? "" : "s");
	sonde_report_blank(out);
	sonde_report_list_begin(out, "threads");
	for (size_t i = 0; i < threads->all.n && !sonde_report_failed(out); i++)
		report_thread(out, threads, &threads->all.items[i], i == 0);
	sonde_report_list_end(out);
	return sonde_report_end(out, &session->notes);
}
