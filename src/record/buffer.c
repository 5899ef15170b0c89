#include "record/internal.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { HEADER_BYTES = 16, STREAM_DEFAULT_BYTES = 64 << 20 };

static const char *const headers[] = {
	[SONDE_RECORD_V1_21] = "go 1.21 trace",
	[SONDE_RECORD_V1_19] = "go 1.19 trace",
	[SONDE_RECORD_V1_11] = "go 1.11 trace",
};

static void put_header(uint8_t *to)
{
	memset(to, 0, HEADER_BYTES);
	memcpy(to, headers[sonde_recorder.options.version],
		strlen(headers[sonde_recorder.options.version]));
}

/* --- files --- */

/*
 * The next chunks of the file, mapped. Their room is taken from the file system first: a full disk is an error here and
 * not a SIGBUS at a store. Under sonde_recorder.lock. Returns 0 or an errno value.
 */
static int extent_open(void)
{
	/* Small at first, so that a small trace takes little of the disk while it is recorded. */
	unsigned n = sonde_recorder.n_extents < 2 ? 4 : CHUNKS_PER_EXTENT;
	size_t bytes = (size_t)n * CHUNK_BYTES;
	int error;
	do
		error = posix_fallocate(
			sonde_recorder.fd, (off_t)sonde_recorder.file_bytes, (off_t)bytes);
	while (error == EINTR);
	if (error)
		return error;
	if (sonde_recorder.n_extents == sonde_recorder.extents_room) {
		size_t room = sonde_recorder.extents_room ? 2 * sonde_recorder.extents_room : 64;
		struct extent **more = realloc(sonde_recorder.extents, room * sizeof(*more));
		if (!more)
			return ENOMEM;
		sonde_recorder.extents = more;
		sonde_recorder.extents_room = room;
	}
	struct extent *e = calloc(1, sizeof(*e));
	if (!e)
		return ENOMEM;
	e->base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, sonde_recorder.fd,
		(off_t)sonde_recorder.file_bytes);
	if (e->base == MAP_FAILED) {
		error = errno;
		free(e);
		return error;
	}
	/* A child that records has its own file. */
	madvise(e->base, bytes, MADV_DONTFORK);
	e->bytes = bytes;
	e->file_offset = sonde_recorder.file_bytes;
	sonde_recorder.file_bytes += bytes;
	sonde_recorder.extents[sonde_recorder.n_extents++] = e;
	sonde_recorder.extent = e;
	return 0;
}

static int chunk_of_file(struct chunk *c)
{
	if (!sonde_recorder.extent ||
		sonde_recorder.extent->n_given * (size_t)CHUNK_BYTES ==
			sonde_recorder.extent->bytes) {
		int error = extent_open();
		if (error)
			return error;
	}
	struct extent *e = sonde_recorder.extent;
	c->extent = e;
	c->base = e->base + (size_t)e->n_given++ * CHUNK_BYTES;
	c->bytes = CHUNK_BYTES;
	c->first = c->base == e->base && e->file_offset == 0;
	e->n_open++;
	return 0;
}

static void extent_close(struct extent *e)
{
	if (e->base)
		munmap(e->base, e->bytes);
	e->base = NULL;
}

static uint64_t chunk_offset(const struct chunk *c)
{
	return c->extent->file_offset + (uint64_t)(c->base - c->extent->base);
}

/* What is left of a chunk becomes a string that nobody refers to: a file is chunks without gaps between their records. */
static void pad(uint8_t *pos, uint8_t *end)
{
	if (pos == end)
		return;
	uint8_t *p = pos;
	*p++ = SONDE_TRACE_V1_STRING;
	p = put(p, atomic_fetch_add(&sonde_recorder.next_string, 1) + 1);
	put_padded(p, (uint64_t)(end - p - 3), 3);
}

/* --- chunks --- */

static struct chunk *chunk_of_memory(int *error)
{
	struct chunk *c = sonde_recorder.empty;
	if (c) {
		sonde_recorder.empty = c->next;
		return c;
	}
	c = calloc(1, sizeof(*c));
	void *base = c ? mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)
		       : MAP_FAILED;
	if (base == MAP_FAILED) {
		free(c);
		*error = ENOMEM;
		return NULL;
	}
	c->base = base;
	c->bytes = CHUNK_BYTES;
	return c;
}

static void chunk_free(struct chunk *c)
{
	if (!c->extent)
		munmap(c->base, c->bytes);
	free(c);
}

/* The slot's chunk is done: to the readers, or closed in the file. Under sonde_recorder.lock. */
static void hand_over(struct slot *s)
{
	struct chunk *c = s->chunk;
	if (!c)
		return;
	c->used = s->pos - c->base;
	sonde_recorder.written_bytes += c->used;
	s->chunk = NULL;
	s->pos = s->limit = s->log_limit = s->end = NULL;
	if (c->extent) {
		struct extent *e = c->extent;
		pad(c->base + c->used, c->base + c->bytes);
		if (--e->n_open == 0 && e->n_given * (size_t)CHUNK_BYTES == e->bytes)
			extent_close(e);
		free(c);
		return;
	}
	c->next = NULL;
	*sonde_recorder.full_tail = c;
	sonde_recorder.full_tail = &c->next;
	sonde_recorder.waiting_bytes += c->used;
	pthread_cond_signal(&sonde_recorder.readable);
}

static bool over(void)
{
	uint64_t used = sonde_recorder.mode == MODE_FILE ? sonde_recorder.file_bytes
							 : sonde_recorder.waiting_bytes;
	return sonde_recorder.options.max_bytes && used >= sonde_recorder.options.max_bytes;
}

/* s writes into c from here on. */
static void use(struct slot *s, struct chunk *c, bool only_transitions)
{
	s->chunk = c;
	s->pos = c->base;
	s->end = c->base + c->bytes;
	s->limit = s->end - EVENT_ROOM - PAD_ROOM;
	s->log_limit = only_transitions ? c->base : s->limit;
	if (c->first) {
		put_header(s->pos);
		s->pos += HEADER_BYTES;
	}
}

static void begin_batch(struct slot *s)
{
	/* The tables of stop() keep the time that they were given. */
	uint64_t now = atomic_load(&sonde_recorder.session) ? ticks_now() : s->last;
	if (now > s->last)
		s->last = now;
	uint8_t *p = s->pos;
	*p++ = SONDE_TRACE_V1_BATCH | 1 << 6;
	p = put(p, s->id);
	s->pos = put(p, s->last);
}

int sonde_record_reserve(void)
{
	int error = 0;
	pthread_mutex_lock(&sonde_recorder.lock);
	if (sonde_recorder.mode == MODE_FILE) {
		struct chunk *c = calloc(1, sizeof(*c));
		error = c ? chunk_of_file(c) : ENOMEM;
		if (error)
			free(c);
		else
			sonde_recorder.reserve = c;
	}
	pthread_mutex_unlock(&sonde_recorder.lock);
	return error;
}

void sonde_record_use_reserve(struct slot *s)
{
	if (!sonde_recorder.reserve)
		return;
	use(s, sonde_recorder.reserve, false);
	sonde_recorder.reserve = NULL;
	begin_batch(s);
}

bool sonde_record_refill(struct slot *s, bool droppable)
{
	pthread_mutex_lock(&sonde_recorder.lock);
	bool is_over = over();
	if (is_over && sonde_recorder.options.overflow == SONDE_RECORD_BLOCK &&
		sonde_recorder.mode == MODE_STREAM) {
		while (over() && !sonde_recorder.stopping && sonde_recorder.mode == MODE_STREAM)
			pthread_cond_wait(&sonde_recorder.writable, &sonde_recorder.lock);
		is_over = false;
	}
	/* In a file, what is over is the room that is not yet given out. */
	if (is_over && sonde_recorder.mode == MODE_FILE && sonde_recorder.extent &&
		sonde_recorder.extent->n_given * (size_t)CHUNK_BYTES < sonde_recorder.extent->bytes)
		is_over = false;
	if (is_over && droppable) {
		pthread_mutex_unlock(&sonde_recorder.lock);
		return false;
	}
	int error = 0;
	struct chunk *c;
	if (sonde_recorder.mode == MODE_FILE) {
		c = calloc(1, sizeof(*c));
		error = c ? chunk_of_file(c) : ENOMEM;
	} else {
		c = chunk_of_memory(&error);
	}
	if (error) {
		/* Nothing more can be written: the trace ends here, for all at once. */
		free(c);
		int none = 0;
		atomic_compare_exchange_strong(&sonde_recorder.failure, &none, error);
		atomic_store(&sonde_recorder.session, 0);
		pthread_mutex_unlock(&sonde_recorder.lock);
		atomic_fetch_add(&sonde_recorder.lost_after_failure, 1);
		return false;
	}
	c->after = s->chunk && s->chunk->extent ? chunk_offset(s->chunk) : s->before;
	s->before = c->after;
	hand_over(s);
	use(s, c, is_over);
	pthread_mutex_unlock(&sonde_recorder.lock);
	begin_batch(s);
	return true;
}

int sonde_record_buffers_start(const char *path)
{
	sonde_recorder.fd = -1;
	sonde_recorder.file_bytes = sonde_recorder.waiting_bytes = sonde_recorder.written_bytes = 0;
	sonde_recorder.full = NULL;
	sonde_recorder.full_tail = &sonde_recorder.full;
	sonde_recorder.reading = NULL;
	sonde_recorder.reading_at = 0;
	sonde_recorder.stopping = false;
	sonde_recorder.extent = NULL;
	sonde_recorder.n_extents = 0;
	if (path) {
		sonde_recorder.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
		if (sonde_recorder.fd < 0)
			return -errno;
		int error = extent_open();
		if (error) {
			close(sonde_recorder.fd);
			sonde_recorder.fd = -1;
			return -error;
		}
		/* A killed process leaves a file that says what it is. */
		put_header(sonde_recorder.extent->base);
		sonde_recorder.mode = MODE_FILE;
		return 0;
	}
	if (!sonde_recorder.options.max_bytes)
		sonde_recorder.options.max_bytes = STREAM_DEFAULT_BYTES;
	/* The header is the stream's first chunk. */
	int error = 0;
	struct chunk *c = chunk_of_memory(&error);
	if (!c)
		return -error;
	put_header(c->base);
	c->used = HEADER_BYTES;
	c->next = NULL;
	sonde_recorder.full = c;
	sonde_recorder.full_tail = &c->next;
	sonde_recorder.waiting_bytes = c->used;
	sonde_recorder.mode = MODE_STREAM;
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct chunk *x = *(struct chunk *const *)a, *y = *(struct chunk *const *)b;
	uint64_t at_x = chunk_offset(x), at_y = chunk_offset(y);
	return at_x < at_y ? -1 : at_x > at_y;
}

/*
 * Close the file: what the chunks with room left hold is moved together into the first of them, the file ends where its
 * last record does, and those emptied in the middle become holes. Under sonde_recorder.lock.
 */
static int file_close(void)
{
	int error = 0;
	uint64_t end = sonde_recorder.file_bytes;
	uint32_t n_slots = atomic_load(&sonde_recorder.n_slots);
	size_t n = 0, last = 0;
	struct chunk **open_chunks = malloc((n_slots + 1) * sizeof(*open_chunks));
	for (uint32_t i = 0; i < n_slots; i++) {
		struct slot *s = &sonde_recorder.slots[i];
		if (!s->chunk)
			continue;
		s->chunk->used = (size_t)(s->pos - s->chunk->base);
		sonde_recorder.written_bytes += s->chunk->used;
		if (open_chunks)
			open_chunks[n++] = s->chunk;
		else
			pad(s->pos, s->end);
	}
	if (n)
		qsort(open_chunks, n, sizeof(open_chunks[0]), by_offset);
	for (size_t i = 1; i < n; i++) {
		struct chunk *to = open_chunks[last], *from = open_chunks[i];
		/* A processor's batches stay in their order. */
		if (to->used + from->used + PAD_ROOM <= to->bytes &&
			chunk_offset(to) >= from->after) {
			memcpy(to->base + to->used, from->base, from->used);
			to->used += from->used;
			from->used = 0;
		} else {
			last = i;
		}
	}
	/* Chunks that were never given out. */
	if (sonde_recorder.extent)
		end = sonde_recorder.extent->file_offset +
			(uint64_t)sonde_recorder.extent->n_given * CHUNK_BYTES;
	for (size_t i = n; i-- > 0;) {
		struct chunk *c = open_chunks[i];
		uint64_t at = chunk_offset(c);
		if (at + c->bytes == end) {
			end = at + c->used;
			continue;
		}
		pad(c->base + c->used, c->base + c->bytes);
		if (!c->used)
			fallocate(sonde_recorder.fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				(off_t)at + 4096, (off_t)c->bytes - 4096);
	}
	for (uint32_t i = 0; i < n_slots; i++) {
		free(sonde_recorder.slots[i].chunk);
		sonde_recorder.slots[i].chunk = NULL;
	}
	free(open_chunks);
	for (size_t i = 0; i < sonde_recorder.n_extents; i++) {
		extent_close(sonde_recorder.extents[i]);
		free(sonde_recorder.extents[i]);
	}
	if (ftruncate(sonde_recorder.fd, (off_t)end))
		error = errno;
	if (close(sonde_recorder.fd) && !error)
		error = errno;
	sonde_recorder.fd = -1;
	sonde_recorder.extent = NULL;
	sonde_recorder.n_extents = 0;
	return error;
}

/*
 * All slots are the caller's, the tables are written. Of a stream the reader takes the rest: returns when it has.
 * Returns 0 or an errno value.
 */
int sonde_record_buffers_stop(void)
{
	int error = 0;
	pthread_mutex_lock(&sonde_recorder.lock);
	if (sonde_recorder.mode == MODE_FILE) {
		error = file_close();
		sonde_recorder.mode = MODE_OFF;
	} else {
		uint32_t n = atomic_load(&sonde_recorder.n_slots);
		for (uint32_t i = 0; i < n; i++)
			hand_over(&sonde_recorder.slots[i]);
		sonde_recorder.mode = MODE_DRAINING;
		pthread_cond_broadcast(&sonde_recorder.readable);
		while (sonde_recorder.mode == MODE_DRAINING)
			pthread_cond_wait(&sonde_recorder.drained, &sonde_recorder.lock);
	}
	pthread_mutex_unlock(&sonde_recorder.lock);
	return error;
}

static void chunks_free(struct chunk *c)
{
	while (c) {
		struct chunk *next = c->next;
		chunk_free(c);
		c = next;
	}
}

void sonde_record_buffers_forget(bool consistent)
{
	/* The mappings of the file are not in the child; the memory of streams is a copy that nobody will read. */
	if (consistent) {
		uint32_t n = atomic_load(&sonde_recorder.n_slots);
		for (uint32_t i = 0; i < n; i++)
			if (sonde_recorder.slots[i].chunk)
				chunk_free(sonde_recorder.slots[i].chunk);
		if (sonde_recorder.reserve)
			chunk_free(sonde_recorder.reserve);
		if (sonde_recorder.reading)
			chunk_free(sonde_recorder.reading);
		chunks_free(sonde_recorder.full);
		chunks_free(sonde_recorder.empty);
		for (size_t i = 0; i < sonde_recorder.n_extents; i++)
			free(sonde_recorder.extents[i]);
	}
	if (sonde_recorder.slots)
		memset((void *)sonde_recorder.slots, 0,
			atomic_load(&sonde_recorder.n_slots) * sizeof(struct slot));
	atomic_store(&sonde_recorder.n_slots, 0);
	if (sonde_recorder.fd >= 0)
		close(sonde_recorder.fd);
	sonde_recorder.fd = -1;
	sonde_recorder.mode = MODE_OFF;
	sonde_recorder.extent = NULL;
	sonde_recorder.n_extents = 0;
	sonde_recorder.full = sonde_recorder.empty = sonde_recorder.reading =
		sonde_recorder.reserve = NULL;
	sonde_recorder.full_tail = &sonde_recorder.full;
	sonde_recorder.reader_busy = false;
}

ssize_t sonde_record_read(void *to, size_t n)
{
	pthread_mutex_lock(&sonde_recorder.lock);
	if (sonde_recorder.mode != MODE_STREAM && sonde_recorder.mode != MODE_DRAINING) {
		pthread_mutex_unlock(&sonde_recorder.lock);
		return -EINVAL;
	}
	if (sonde_recorder.reader_busy) {
		pthread_mutex_unlock(&sonde_recorder.lock);
		return -EBUSY;
	}
	sonde_recorder.reader_busy = true;
	if (!sonde_recorder.reading) {
		while (!sonde_recorder.full && sonde_recorder.mode == MODE_STREAM)
			pthread_cond_wait(&sonde_recorder.readable, &sonde_recorder.lock);
		sonde_recorder.reading = sonde_recorder.full;
		sonde_recorder.reading_at = 0;
		if (sonde_recorder.reading) {
			sonde_recorder.full = sonde_recorder.reading->next;
			if (!sonde_recorder.full)
				sonde_recorder.full_tail = &sonde_recorder.full;
		}
	}
	size_t got = 0;
	struct chunk *c = sonde_recorder.reading;
	if (c) {
		got = c->used - sonde_recorder.reading_at < n ? c->used - sonde_recorder.reading_at
							      : n;
		memcpy(to, c->base + sonde_recorder.reading_at, got);
		sonde_recorder.reading_at += got;
		sonde_recorder.waiting_bytes -= got;
		if (sonde_recorder.reading_at == c->used) {
			sonde_recorder.reading = NULL;
			c->next = sonde_recorder.empty;
			sonde_recorder.empty = c;
			pthread_cond_broadcast(&sonde_recorder.writable);
		}
	} else {
		/* The end. Buffers that are empty are given back. */
		while (sonde_recorder.empty) {
			c = sonde_recorder.empty;
			sonde_recorder.empty = c->next;
			chunk_free(c);
		}
		sonde_recorder.mode = MODE_OFF;
		pthread_cond_broadcast(&sonde_recorder.drained);
	}
	sonde_recorder.reader_busy = false;
	pthread_mutex_unlock(&sonde_recorder.lock);
	return (ssize_t)got;
}
