/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "tar-writer.h"
#include <errno.h>
#include <error.h>
#include <liburing.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define QUEUE_LENGTH 64 /* chunks on their way to the file system */

struct File {
	int fd;
	mode_t mode;
	time_t mtime;
	atomic_uint references;
	char *name;
};

typedef struct Queue {
	pthread_mutex_t lock;
	pthread_cond_t not_empty, not_full;
	Chunk *chunks[QUEUE_LENGTH];
	size_t first, count;
	bool closed;
} Queue;

static unsigned int thread_count;
static bool use_uring;
static pthread_t *writers;
/* An io_uring and how many of its writes are in flight; each thread has its own. */
typedef struct Ring {
	struct io_uring uring;
	unsigned int in_flight;
} Ring;

static Ring main_ring; /* without threads */
static unsigned int ring_length;
static Queue queue = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.not_empty = PTHREAD_COND_INITIALIZER,
	.not_full = PTHREAD_COND_INITIALIZER,
};

void *allocate(size_t size)
{
	void *p = malloc(size);

	if (!p)
		error(1, errno, "out of memory");
	return p;
}

File *file_new(int fd, const char *name, mode_t mode, time_t mtime)
{
	File *file = allocate(sizeof(*file));

	file->fd = fd;
	file->mode = mode;
	file->mtime = mtime;
	atomic_init(&file->references, 1);
	file->name = strdup(name);
	if (!file->name)
		error(1, errno, "out of memory");
	return file;
}

void file_release(File *file)
{
	struct timespec times[2] = {{.tv_sec = file->mtime}, {.tv_sec = file->mtime}};

	if (atomic_fetch_sub(&file->references, 1) != 1)
		return;
	if (fchmod(file->fd, file->mode) < 0 || futimens(file->fd, times) < 0 ||
	    close(file->fd) < 0)
		error(1, errno, "%s", file->name);
	free(file->name);
	free(file);
}

Chunk *chunk_new(File *file, uint64_t offset)
{
	Chunk *chunk = allocate(sizeof(*chunk));

	atomic_fetch_add(&file->references, 1);
	chunk->file = file;
	chunk->offset = offset;
	chunk->length = CHUNK_SIZE;
	return chunk;
}

static void chunk_release(Chunk *chunk)
{
	file_release(chunk->file);
	free(chunk);
}

static void chunk_write(Chunk *chunk)
{
	size_t done = 0;

	while (done < chunk->length) {
		ssize_t n = pwrite(chunk->file->fd, chunk->data + done, chunk->length - done,
				   (off_t)(chunk->offset + done));

		if (n < 0 && errno != EINTR)
			error(1, errno, "%s", chunk->file->name);
		if (n > 0)
			done += (size_t)n;
	}
	chunk_release(chunk);
}

static void queue_push(Chunk *chunk)
{
	pthread_mutex_lock(&queue.lock);
	while (queue.count == QUEUE_LENGTH)
		pthread_cond_wait(&queue.not_full, &queue.lock);
	queue.chunks[(queue.first + queue.count++) % QUEUE_LENGTH] = chunk;
	pthread_cond_signal(&queue.not_empty);
	pthread_mutex_unlock(&queue.lock);
}

/* Returns NULL if the queue is empty; if that is to wait, when it is closed besides. */
static Chunk *queue_pop(bool wait)
{
	Chunk *chunk = NULL;

	pthread_mutex_lock(&queue.lock);
	while (wait && queue.count == 0 && !queue.closed)
		pthread_cond_wait(&queue.not_empty, &queue.lock);
	if (queue.count > 0) {
		chunk = queue.chunks[queue.first];
		queue.first = (queue.first + 1) % QUEUE_LENGTH;
		queue.count--;
		pthread_cond_signal(&queue.not_full);
	}
	pthread_mutex_unlock(&queue.lock);
	return chunk;
}

static void ring_open(Ring *ring)
{
	int r = io_uring_queue_init(ring_length, &ring->uring, 0);

	if (r < 0)
		error(1, -r, "io_uring");
}

static void ring_reap(Ring *ring)
{
	struct io_uring_cqe *cqe;
	Chunk *chunk;
	int r;

	do
		r = io_uring_wait_cqe(&ring->uring, &cqe);
	while (r == -EINTR);
	if (r < 0)
		error(1, -r, "io_uring");
	chunk = io_uring_cqe_get_data(cqe);
	if (cqe->res < 0)
		error(1, -cqe->res, "%s", chunk->file->name);
	if ((size_t)cqe->res != chunk->length)
		error(1, EIO, "%s: short write", chunk->file->name);
	io_uring_cqe_seen(&ring->uring, cqe);
	ring->in_flight--;
	chunk_release(chunk);
}

static void ring_write(Ring *ring, Chunk *chunk)
{
	struct io_uring_sqe *sqe;
	int r;

	while (ring->in_flight >= ring_length)
		ring_reap(ring);
	sqe = io_uring_get_sqe(&ring->uring);
	if (!sqe)
		error(1, EBUSY, "io_uring");
	io_uring_prep_write(sqe, chunk->file->fd, chunk->data, (unsigned int)chunk->length,
			    chunk->offset);
	io_uring_sqe_set_data(sqe, chunk);
	r = io_uring_submit(&ring->uring);
	if (r < 0)
		error(1, -r, "io_uring");
	ring->in_flight++;
}

static void ring_close(Ring *ring)
{
	while (ring->in_flight)
		ring_reap(ring);
	io_uring_queue_exit(&ring->uring);
}

static void *writer_thread(void *arg)
{
	Chunk *chunk;

	pthread_setname_np(pthread_self(), "writer");
	while ((chunk = queue_pop(true)))
		chunk_write(chunk);
	return arg;
}

/* If the queue is empty, writes in flight are waited for first. */
static void *ring_thread(void *arg)
{
	Ring ring = {};
	Chunk *chunk;

	pthread_setname_np(pthread_self(), "writer");
	ring_open(&ring);
	while ((chunk = queue_pop(ring.in_flight == 0)) || ring.in_flight) {
		if (chunk)
			ring_write(&ring, chunk);
		else
			ring_reap(&ring);
	}
	ring_close(&ring);
	return arg;
}

void writer_start(unsigned int threads, bool uring)
{
	int r;

	thread_count = threads;
	use_uring = uring;
	/* However many rings there are, together they hold as much as one would. */
	ring_length = threads < QUEUE_LENGTH ? QUEUE_LENGTH / (threads ? threads : 1) : 1;
	if (use_uring && !thread_count)
		ring_open(&main_ring);
	writers = calloc(thread_count + 1, sizeof(*writers));
	if (!writers)
		error(1, errno, "out of memory");
	for (unsigned int i = 0; i < thread_count; i++) {
		r = pthread_create(&writers[i], NULL, use_uring ? ring_thread : writer_thread,
				   NULL);
		if (r != 0)
			error(1, r, "cannot create a thread");
	}
}

void writer_put(Chunk *chunk)
{
	if (thread_count)
		queue_push(chunk);
	else if (use_uring)
		ring_write(&main_ring, chunk);
	else
		chunk_write(chunk);
}

void writer_finish(void)
{
	pthread_mutex_lock(&queue.lock);
	queue.closed = true;
	pthread_cond_broadcast(&queue.not_empty);
	pthread_mutex_unlock(&queue.lock);
	for (unsigned int i = 0; i < thread_count; i++)
		pthread_join(writers[i], NULL);
	free(writers);
	if (use_uring && !thread_count)
		ring_close(&main_ring);
}
