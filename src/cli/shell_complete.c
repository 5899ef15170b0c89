#include "cli/shell_complete.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include "base/map.h"
#include "cli/shell_line.h"
#include "core/goroutines.h"
#include "core/session.h"

const char *const sonde_shell_builtins[] = {"help", "quit", NULL};

void sonde_shell_completion_deinit(struct sonde_shell_completion *c)
{
	sonde_arena_deinit(&c->arena);
	sonde_strings_deinit(&c->candidates);
}

struct completer {
	struct sonde_command_shell *shell;
	struct sonde_shell_completion *ret;
	const char *typed; /* the word so far */
	const char *prefix; /* "--by=" in front of each candidate, where that was typed too */
	bool no_memory;
};

/* Offer a word, where it begins as what was typed. */
static void offer(struct completer *c, const char *word)
{
	size_t n = strlen(c->prefix);
	if (strncmp(c->typed + n, word, strlen(c->typed + n)) != 0 || !*word)
		return;
	char *copy = sonde_arena_printf(&c->ret->arena, "%s%s", c->prefix, word);
	if (!copy || !sonde_strings_push(&c->ret->candidates, copy))
		c->no_memory = true;
}

static void offer_option(struct completer *c, const char *name)
{
	char word[64];
	snprintf(word, sizeof(word), "--%s", name);
	offer(c, word);
}

/* --- names of the core --- */

static struct sonde_error *offer_goroutine_ids(struct completer *c)
{
	struct sonde_core_session *s = c->shell->session;
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	sonde_vec_foreach (g, &s->goroutines->all) {
		char word[32];
		snprintf(word, sizeof(word), "%" PRIu64, g->id);
		offer(c, word);
	}
	return NULL;
}

static struct sonde_error *offer_states(struct completer *c)
{
	struct sonde_core_session *s = c->shell->session;
	sonde_cleanup(sonde_u32_map) struct sonde_u32_map seen = {0};
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	sonde_vec_foreach (g, &s->goroutines->all) {
		bool was_new = false;
		const char *doing = sonde_core_goroutine_doing(g);
		/* The runtime's words are constants here: an address a word. */
		if (sonde_u32_map_put(&seen, (uintptr_t)doing, &was_new) && was_new)
			offer(c, doing);
	}
	return NULL;
}

/* Those that a goroutine is in. */
static struct sonde_error *offer_functions(struct completer *c)
{
	struct sonde_core_session *s = c->shell->session;
	sonde_cleanup(sonde_u32_map) struct sonde_u32_map seen = {0};
	SONDE_TRY(sonde_core_session_need_goroutines(s));
	sonde_vec_foreach (f, &s->goroutines->frames) {
		bool was_new = false;
		struct sonde_pcfunc function;
		uint64_t key = (uint64_t)f->module << 32 | f->function;
		if (sonde_u32_map_put(&seen, key, &was_new) && was_new &&
			sonde_go_frame_function(s->go, f, &function))
			offer(c, function.name);
	}
	return NULL;
}

/* Those that live objects have. */
static struct sonde_error *offer_types(struct completer *c)
{
	struct sonde_core_session *s = c->shell->session;
	SONDE_TRY(sonde_core_session_need_typing(s));
	sonde_cleanup(free) bool *seen = sonde_new_array(bool, s->types->by_id.n);
	if (!seen)
		return &sonde_enomem;
	for (uint32_t i = 0; i < s->heap->n_slots; i++) {
		uint32_t id = s->typing->of[i] & ~SONDE_CORE_TYPE_MANY;
		if (!id || id >= s->types->by_id.n || seen[id])
			continue;
		seen[id] = true;
		offer(c, s->types->by_id.items[id]->name);
	}
	return NULL;
}

static struct sonde_error *offer_commands(struct completer *c)
{
	const struct sonde_command *group = c->shell->group;
	for (size_t i = 0; i < group->n_children; i++)
		if (!group->children[i]->hidden && group->children[i] != group->otherwise)
			offer(c, group->children[i]->name);
	return NULL;
}

/* --- where in the line --- */

/* What stands for a value in a help text, or the option's own name: what can be offered for it. */
static const struct {
	const char *name;
	struct sonde_error *(*offer)(struct completer *c);
} values[] = {
	{"COMMAND", offer_commands},
	{"FUNCTION", offer_functions},
	{"GOROUTINE", offer_goroutine_ids},
	{"ID", offer_goroutine_ids},
	{"STATE", offer_states},
	{"TYPE", offer_types},
};

/* Whether it was one of them. */
static bool offer_values(
	struct completer *c, const char *name, size_t len, struct sonde_error **err)
{
	for (size_t i = 0; name && i < SONDE_ARRAY_LEN(values); i++) {
		if (strlen(values[i].name) == len && !strncasecmp(values[i].name, name, len)) {
			*err = values[i].offer(c);
			return true;
		}
	}
	return false;
}

static struct sonde_error *offer_row(struct completer *c, const struct sonde_option *row)
{
	struct sonde_error *err = NULL;
	for (size_t i = 0; row->words && row->words[i]; i++)
		offer(c, row->words[i]);
	if (!row->words && !offer_values(c, row->name, strlen(row->name), &err) && row->metavar)
		offer_values(c, row->metavar, strlen(row->metavar), &err);
	return err;
}

struct options {
	struct sonde_option_table tables[SONDE_COMMAND_MAX_TABLES];
	size_t n;
};

/* The row of "--name", "--name=..." or "-x"; NULL for none. */
static const struct sonde_option *find_row(const struct options *o, const char *word)
{
	bool is_long = !strncmp(word, "--", 2);
	size_t len = is_long ? strcspn(word + 2, "=") : 0;
	for (size_t t = 0; t < o->n; t++) {
		for (size_t i = 0; i < o->tables[t].n; i++) {
			const struct sonde_option *row = &o->tables[t].rows[i];
			if (is_long ? strlen(row->name) == len && !strncmp(row->name, word + 2, len)
				    : word[0] == '-' && word[1] && row->letter == word[1] &&
						!word[2])
				return row;
		}
	}
	return NULL;
}

static bool takes_next(const struct sonde_option *row, const char *word)
{
	return row && row->kind != SONDE_OPTION_FLAG && !strchr(word, '=');
}

/* The word number n of operands, without its brackets and dots. */
static const char *operand_name(const char *operands, size_t n, size_t *len)
{
	for (; n && *operands; n--) {
		operands += strcspn(operands, " ");
		operands += strspn(operands, " ");
	}
	operands += *operands == '[';
	*len = strcspn(operands, " ].");
	return operands;
}

static struct sonde_error *complete_arguments(
	struct completer *c, const struct sonde_command *leaf, const struct sonde_strings *words)
{
	struct options o;
	o.n = sonde_command_tables(leaf, c->shell, o.tables);
	const struct sonde_option *row = NULL; /* whose value the word is */
	size_t n_operands = 0;
	for (size_t i = 1; i < words->n; i++) {
		const char *word = words->items[i];
		const struct sonde_option *before = row;
		row = before ? NULL : find_row(&o, word);
		n_operands += !before && word[0] != '-';
		if (!takes_next(row, word))
			row = NULL;
	}
	if (row)
		return offer_row(c, row);
	const char *equals = strchr(c->typed, '=');
	if (c->typed[0] == '-' && equals) {
		row = find_row(&o, c->typed);
		c->prefix = sonde_arena_strndup(
			&c->ret->arena, c->typed, (size_t)(equals + 1 - c->typed));
		if (!c->prefix)
			return &sonde_enomem;
		return row ? offer_row(c, row) : NULL;
	}
	if (c->typed[0] == '-') {
		for (size_t t = 0; t < o.n; t++)
			for (size_t i = 0; i < o.tables[t].n; i++)
				offer_option(c, o.tables[t].rows[i].name);
		offer_option(c, "help");
		return NULL;
	}
	size_t len;
	struct sonde_error *err = NULL;
	const char *name = operand_name(sonde_command_operands(leaf, c->shell), n_operands, &len);
	offer_values(c, name, len, &err);
	return err;
}

static int by_text(const void *x, const void *y)
{
	return strcmp(*(const char *const *)x, *(const char *const *)y);
}

static void sort_once(struct sonde_strings *words)
{
	size_t n = 0;
	sonde_vec_sort(words, by_text);
	for (size_t i = 0; i < words->n; i++)
		if (!n || strcmp(words->items[i], words->items[n - 1]) != 0)
			words->items[n++] = words->items[i];
	words->n = n;
}

struct sonde_error *sonde_shell_complete(struct sonde_command_shell *shell, const char *text,
	size_t len, struct sonde_shell_completion *ret)
{
	sonde_cleanup(sonde_shell_line) struct sonde_shell_line line = {0};
	SONDE_TRY(sonde_shell_line_cut(text, len, true, &line));
	if (line.end == SONDE_SHELL_LINE_OTHER)
		return NULL;
	bool in_word = line.end == SONDE_SHELL_LINE_WORD && line.words.n;
	ret->start = in_word ? line.last_word : len;
	struct completer c = {.shell = shell, .ret = ret, .typed = "", .prefix = ""};
	if (in_word)
		c.typed = line.words.items[--line.words.n];
	if (!line.words.n) {
		(void)offer_commands(&c);
		for (size_t i = 0; sonde_shell_builtins[i]; i++)
			offer(&c, sonde_shell_builtins[i]);
	} else if (!strcmp(line.words.items[0], "help")) {
		(void)offer_commands(&c);
	} else {
		const struct sonde_command *leaf =
			sonde_command_find(shell->group, line.words.items[0]);
		if (leaf && leaf != shell->group->otherwise)
			SONDE_TRY(complete_arguments(&c, leaf, &line.words));
	}
	sort_once(&ret->candidates);
	return c.no_memory ? &sonde_enomem : NULL;
}
