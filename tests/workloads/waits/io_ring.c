/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "io_ring.h"
#include <errno.h>
#include <liburing.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK	   4096UL
#define DEPTH	   8
#define POLLING_MS 1000 /* the polling thread sleeps when nothing came for so long */

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	perror(what);
	exit(1);
}

/* What a request's stack must name. */
__attribute__((noinline)) static void hand_on(struct io_uring *ring, int fd, char *to, off_t at,
					      enum reader reader)
{
	struct io_uring_sqe *entry = io_uring_get_sqe(ring);

	/* The polling thread may not have taken those before yet. */
	if (!entry && reader == READER_POLLING) {
		io_uring_sqring_wait(ring);
		entry = io_uring_get_sqe(ring);
	}
	check(entry != NULL, "a full ring");
	io_uring_prep_read(entry, fd, to, BLOCK, at);
	if (reader == READER_WORKER)
		io_uring_sqe_set_flags(entry, IOSQE_ASYNC);
	errno = -io_uring_submit(ring);
	check(errno <= 0, "io_uring_submit");
}

static void wait_for_one(struct io_uring *ring)
{
	struct io_uring_cqe *done;

	errno = -io_uring_wait_cqe(ring, &done);
	check(errno == 0, "io_uring_wait_cqe");
	errno = -done->res;
	check(done->res == (int)BLOCK, "a read");
	io_uring_cqe_seen(ring, done);
}

void ring_read(int fd, uint64_t size, size_t count, enum reader reader)
{
	struct io_uring_params params = {.flags =
						 reader == READER_POLLING ? IORING_SETUP_SQPOLL : 0,
					 .sq_thread_idle = POLLING_MS};
	char *buffers = aligned_alloc(BLOCK, DEPTH * BLOCK);
	struct io_uring ring;

	check(buffers != NULL, "memory");
	errno = -io_uring_queue_init_params(DEPTH, &ring, &params);
	check(errno == 0, "io_uring_setup");
	for (size_t i = 0; i < count; i++) {
		if (i >= DEPTH)
			wait_for_one(&ring);
		hand_on(&ring, fd, buffers + i % DEPTH * BLOCK, rand() % (size / BLOCK) * BLOCK,
			reader);
	}
	for (size_t i = 0; i < (count < DEPTH ? count : DEPTH); i++)
		wait_for_one(&ring);
	io_uring_queue_exit(&ring);
	free(buffers);
}
