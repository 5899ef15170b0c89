#include "target/target.h"

#include <elf.h>
#include <string.h>
#include "base/cursor.h"
#include "target/ops.h"

void sonde_target_free(struct sonde_target *t)
{
	if (!t)
		return;
	free(t->runs);
	free(t->mappings);
	free(t->threads);
	sonde_elf_free(t->exe);
	sonde_arena_deinit(&t->arena);
	t->ops->free(t);
}

const struct sonde_mapping *sonde_target_mappings(const struct sonde_target *t, size_t *n)
{
	*n = t->n_mappings;
	return t->mappings;
}

const struct sonde_mapping *sonde_target_mapping_find(const struct sonde_target *t, uint64_t addr)
{
	size_t lo = 0, hi = t->n_mappings;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		if (t->mappings[mid].end <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n_mappings && t->mappings[lo].start <= addr ? &t->mappings[lo] : NULL;
}

const struct sonde_thread *sonde_target_threads(const struct sonde_target *t, size_t *n)
{
	*n = t->n_threads;
	return t->threads;
}

const struct sonde_process_info *sonde_target_info(const struct sonde_target *t)
{
	return &t->info;
}

const char *sonde_target_name(const struct sonde_target *t)
{
	return t->name;
}

struct sonde_elf *sonde_target_exe(const struct sonde_target *t, const char **why)
{
	if (why)
		*why = t->exe ? NULL : t->exe_why;
	return t->exe;
}

const char *sonde_target_exe_path(const struct sonde_target *t)
{
	return t->exe_path ? t->exe_path : "";
}

const struct sonde_buildid *sonde_target_exe_buildid(const struct sonde_target *t)
{
	return &t->exe_buildid;
}

const char *sonde_target_exe_gobuildid(const struct sonde_target *t)
{
	return t->exe_gobuildid;
}

uint64_t sonde_target_exe_bias(const struct sonde_target *t)
{
	return t->exe_bias;
}

/* The last run that begins at or below addr, or the first one; NULL only where there are none. No branch to mispredict. */
static inline const struct sonde_target_run *run_below(const struct sonde_target *t, uint64_t addr)
{
	const struct sonde_target_run *run = t->runs;
	for (size_t n = t->n_runs; n > 1;) {
		size_t half = n / 2;
		run = run[half].start <= addr ? run + half : run;
		n -= half;
	}
	return run;
}

bool sonde_target_run_find(struct sonde_target *t, uint64_t addr, struct sonde_target_run *ret)
{
	const struct sonde_target_run *run = run_below(t, addr);
	if (!t->n_runs || addr - run->start >= run->size_bytes)
		return false;
	*ret = *run;
	return true;
}

const uint8_t *sonde_target_bytes(struct sonde_target *t, uint64_t addr, uint64_t len)
{
	if (sonde_unlikely(!t->n_runs))
		return NULL;
	const struct sonde_target_run *run = run_below(t, addr);
	uint64_t at = addr - run->start;
	return at < run->size_bytes && len <= run->size_bytes - at ? run->host + at : NULL;
}

size_t sonde_target_read_some(struct sonde_target *t, uint64_t addr, void *to, size_t len)
{
	size_t done = 0;
	while (done < len) {
		uint64_t from = addr + done;
		if (from < addr) /* no memory wraps around */
			break;
		struct sonde_target_run run;
		if (sonde_target_run_find(t, from, &run)) {
			uint64_t at = from - run.start;
			size_t n = sonde_min((uint64_t)(len - done), run.size_bytes - at);
			memcpy((char *)to + done, run.host + at, n);
			done += n;
			continue;
		}
		size_t n = t->ops->read_some
			? t->ops->read_some(t, from, (char *)to + done, len - done)
			: 0;
		if (!n)
			break;
		done += n;
	}
	return done;
}

bool sonde_target_read(struct sonde_target *t, uint64_t addr, void *to, size_t len)
{
	const uint8_t *from = sonde_target_bytes(t, addr, len);
	if (sonde_likely(from)) {
		memcpy(to, from, len);
		return true;
	}
	return sonde_target_read_some(t, addr, to, len) == len;
}

char *sonde_target_string(struct sonde_target *t, uint64_t addr, size_t max)
{
	enum { STEP = 256 };
	char *text = NULL;
	size_t len = 0;
	while (len < max) {
		size_t step = sonde_min(max - len, (size_t)STEP);
		char *more = realloc(text, len + step + 1);
		if (!more) {
			free(text);
			return NULL;
		}
		text = more;
		size_t got = sonde_target_read_some(t, addr + len, text + len, step);
		const char *nul = memchr(text + len, 0, got);
		len += nul ? (size_t)(nul - (text + len)) : got;
		text[len] = 0;
		if (nul || got < step) {
			/* Nothing readable is not an empty string. */
			if (nul || len)
				return text;
			free(text);
			return NULL;
		}
	}
	return text ? text : strdup("");
}

static void free_struct(struct sonde_target *t)
{
	free(t);
}

static const struct sonde_target_ops over_runs_ops = {.free = free_struct};

uint64_t sonde_target_present_bytes(const struct sonde_target *t, const struct sonde_mapping *m)
{
	if (m->source == SONDE_SOURCE_CORE && t->ops && t->ops->present_bytes)
		return t->ops->present_bytes(t, m);
	return m->source == SONDE_SOURCE_CORE || m->source == SONDE_SOURCE_FILE ? m->end - m->start
										: 0;
}

struct sonde_target *sonde_target_over_runs(
	const struct sonde_target_run *runs, size_t n, uint16_t machine, unsigned word_bytes)
{
	struct sonde_target *t = sonde_new(struct sonde_target);
	if (!t)
		return NULL;
	t->ops = &over_runs_ops;
	t->shape.word_bytes = (uint8_t)word_bytes;
	t->info = (struct sonde_process_info){
		.machine = machine,
		.word_bytes = word_bytes,
		.page_bytes = 4096,
		.execfn = "",
		.platform = "",
	};
	t->name = "memory";
	sonde_arena_init(&t->arena);
	t->runs = sonde_new_array(struct sonde_target_run, n);
	t->mappings = sonde_new_array(struct sonde_mapping, n);
	if (!t->runs || !t->mappings) {
		sonde_target_free(t);
		return NULL;
	}
	t->n_runs = t->n_mappings = n;
	for (size_t i = 0; i < n; i++) {
		t->runs[i] = runs[i];
		t->mappings[i] = (struct sonde_mapping){
			.start = runs[i].start,
			.end = runs[i].start + runs[i].size_bytes,
			.perm = SONDE_PERM_R | SONDE_PERM_W,
			.source = SONDE_SOURCE_CORE,
		};
	}
	return t;
}

void sonde_target_decode_auxv(const void *data, size_t len, struct sonde_process_info *info)
{
	struct sonde_cursor c = sonde_cursor_over(data, len);
	for (;;) {
		uint64_t type = sonde_cursor_word(&c, info->word_bytes);
		uint64_t value = sonde_cursor_word(&c, info->word_bytes);
		if (c.bad || type == AT_NULL)
			return;
		info->has_auxv = true;
		switch (type) {
		case AT_PHDR:
			info->phdr = value;
			break;
		case AT_PHNUM:
			info->n_phdr = value;
			break;
		case AT_PAGESZ:
			if (value && !(value & (value - 1)) && value <= 1 << 24)
				info->page_bytes = value;
			break;
		case AT_BASE:
			info->interpreter_base = value;
			break;
		case AT_ENTRY:
			info->entry = value;
			break;
		case AT_CLKTCK:
			info->clk_tck = (uint32_t)value;
			break;
		case AT_PLATFORM:
			info->platform_addr = value;
			break;
		case AT_EXECFN:
			info->execfn_addr = value;
			break;
		case AT_RANDOM:
			info->random_addr = value;
			break;
		case AT_SYSINFO_EHDR:
			info->vdso = value;
			break;
		}
	}
}
