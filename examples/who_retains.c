/*
 * Who keeps the memory of a Go program alive, by its core dump: an example of sonde/core.h. Also C++.
 *
 *	cc who_retains.c $(pkg-config --cflags --libs sonde) -o who_retains
 *	who_retains CORE [EXE]
 *
 * Prints tab-separated lines: goroutine ID STATE FUNCTION...; type COUNT BYTES NAME; owner BYTES NAME; then totals.
 */
#include <inttypes.h>
#include <sonde/core.h>
#include <stdio.h>
#include <string.h>

static int failed(struct sonde_error *err)
{
	if (!err)
		return 0;
	fprintf(stderr, "who_retains: %s\n", sonde_error_message(err));
	sonde_error_free(err);
	return 1;
}

static int print_goroutines(struct sonde_dump *dump)
{
	size_t n;
	if (failed(sonde_dump_n_goroutines(dump, &n)))
		return 1;
	for (size_t i = 0; i < n; i++) {
		struct sonde_dump_goroutine g;
		g.size = sizeof(g);
		if (!sonde_dump_goroutine(dump, i, &g))
			return 1;
		printf("goroutine\t%" PRIu64 "\t%s", g.id,
			g.wait_reason ? g.wait_reason : g.state);
		for (size_t frame = 0; frame < g.n_frames; frame++) {
			struct sonde_dump_call call;
			call.size = sizeof(call);
			for (size_t k = 0; sonde_dump_call(dump, i, frame, k, &call); k++)
				printf("\t%s:%" PRIu32, call.function, call.line);
		}
		printf("\n");
	}
	return 0;
}

static int print_types(struct sonde_dump *dump)
{
	size_t n;
	if (failed(sonde_dump_n_types(dump, &n)))
		return 1;
	for (size_t i = 0; i < n; i++) {
		struct sonde_dump_type t;
		t.size = sizeof(t);
		if (!sonde_dump_type(dump, i, &t))
			return 1;
		printf("type\t%" PRIu64 "\t%" PRIu64 "\t%s\n", t.count, t.bytes, t.name);
	}
	return 0;
}

static int print_owners(struct sonde_dump *dump)
{
	size_t n;
	if (failed(sonde_dump_n_owners(dump, &n)))
		return 1;
	for (size_t i = 0; i < n; i++) {
		struct sonde_dump_owner o;
		o.size = sizeof(o);
		if (!sonde_dump_owner(dump, i, &o))
			return 1;
		if (o.retained_bytes)
			printf("owner\t%" PRIu64 "\t%s\n", o.retained_bytes, o.name);
	}
	return 0;
}

/* Each object by itself; an object is found by any address in it. */
static int count_objects(struct sonde_dump *dump)
{
	struct sonde_dump_object o, found;
	uint64_t next = 0, n = 0, bytes = 0;
	o.size = sizeof(o);
	found.size = sizeof(found);
	while (sonde_dump_next_object(dump, 0, &next, &o)) {
		n++;
		bytes += o.bytes;
		if (!sonde_dump_find_object(dump, o.addr + o.bytes - 1, &found) ||
			found.addr != o.addr)
			return 1;
	}
	printf("live\t%" PRIu64 "\t%" PRIu64 "\n", n, bytes);
	return 0;
}

int main(int argc, char **argv)
{
	struct sonde_dump_options options;
	struct sonde_dump *dump = NULL;
	if (argc < 2) {
		fprintf(stderr, "usage: who_retains CORE [EXE]\n");
		return 2;
	}
	memset(&options, 0, sizeof(options));
	options.size = sizeof(options);
	options.exe = argc > 2 ? argv[2] : NULL;
	if (failed(sonde_dump_open(argv[1], &options, &dump)))
		return 1;
	struct sonde_dump_info info;
	info.size = sizeof(info);
	sonde_dump_info(dump, &info);
	printf("process\t%" PRIu32 "\t%" PRId32 "\t%s\t%s\n", info.pid, info.signal,
		info.program ? info.program : "-", info.go_version ? info.go_version : "-");
	int status = print_goroutines(dump) || print_types(dump) || print_owners(dump) ||
		count_objects(dump);
	for (size_t i = 0; i < sonde_dump_n_mappings(dump); i++) {
		struct sonde_dump_mapping m;
		m.size = sizeof(m);
		if (sonde_dump_mapping(dump, i, &m))
			printf("mapping\t0x%" PRIx64 "\t0x%" PRIx64 "\n", m.start, m.end);
	}
	for (size_t i = 0; i < sonde_dump_n_threads(dump); i++) {
		struct sonde_dump_thread t;
		t.size = sizeof(t);
		if (sonde_dump_thread(dump, i, &t))
			printf("thread\t%" PRIu32 "\n", t.tid);
	}
	for (size_t i = 0; i < sonde_dump_n_notes(dump); i++) {
		struct sonde_dump_note note;
		note.size = sizeof(note);
		if (sonde_dump_note(dump, i, &note))
			printf("note\t%" PRIu64 "\t%s\n", note.count, note.kind);
	}
	sonde_dump_close(dump);
	return status;
}
