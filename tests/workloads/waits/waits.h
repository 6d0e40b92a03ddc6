/* SPDX-License-Identifier: GPL-2.0-or-later */
/* waits.h - kinds of waits, each with the thread that ends it. */
#ifndef WALLPROF_TEST_WAITS_H
#define WALLPROF_TEST_WAITS_H

#include "truth.h"
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wait_state {
	uint64_t ns;	  /* how long the wait shall be */
	pthread_t helper; /* holds and releases */
	int fd[2], other; /* as the case needs them */
	void *page;	  /* that userfaultfd `other` has yet to bring */
	pthread_t holder; /* waits for that page, with a lock held */
	char path[256];
	union {
		pthread_mutex_t mutex;
		pthread_rwlock_t rwlock;
		struct {
			pthread_mutex_t mutex;
			pthread_cond_t changed;
			bool done;
		} condition;
		sem_t semaphore;
		pthread_barrier_t barrier;
		uint32_t word;
	} sync;
};

/* What the wait is for, from /proc or the C library; "": unknown. */
typedef void (*WaitObject)(const struct wait_state *, char text[TRUTH_OBJECT_SIZE]);

typedef struct WaitCase {
	const char *name;		      /* the reason, as in a profile */
	bool (*set_up)(struct wait_state *);  /* in the thread that will wait; false: not here */
	void (*hold)(struct wait_state *);    /* in the helper, before the wait */
	void (*wait)(struct wait_state *);    /* in the thread of the case */
	void (*release)(struct wait_state *); /* in the helper, `ns` later */
	WaitObject object;
} WaitCase;

extern const WaitCase wait_cases[];
extern const size_t wait_case_count;

/* Waits for the helper itself, which must not be joined twice. */
void wait_join(struct wait_state *state);

/* ---- waits_futex.c: which kind of futex it is ---------------------------------------------- */

bool set_up_semaphore(struct wait_state *state);
void wait_posted(struct wait_state *state);
void post_semaphore(struct wait_state *state);

bool set_up_barrier(struct wait_state *state);
void wait_barrier(struct wait_state *state);

bool set_up_count(struct wait_state *state);
void wait_count(struct wait_state *state);
void release_count(struct wait_state *state);

bool set_up_shared(struct wait_state *state);
void wait_shared(struct wait_state *state);
void release_shared(struct wait_state *state);

bool set_up_futex2(struct wait_state *state);
void wait_futex2(struct wait_state *state);
void wait_futex_of_one(struct wait_state *state);
void release_futex2(struct wait_state *state);

/* ---- waits_splice.c: what moves between two descriptors ---------------------------------------
 */

/* A pipe, empty or full, and a device that never waits. */
bool set_up_splice_from(struct wait_state *state);
bool set_up_splice_to(struct wait_state *state);
void wait_splice_from(struct wait_state *state);
void wait_splice_to(struct wait_state *state);
void wait_tee(struct wait_state *state);
void wait_vmsplice(struct wait_state *state);

/* ---- waits_kernel.c: locks of the kernel, and what needs root ------------------------------ */

/* The kernel's log, past its end. */
bool set_up_log(struct wait_state *state);
void release_log(struct wait_state *state);

bool set_up_fault(struct wait_state *state);
void wait_fault(struct wait_state *state);
void release_page(struct wait_state *state);

bool set_up_inode_lock(struct wait_state *state);
bool set_up_pipe_lock(struct wait_state *state);
bool set_up_socket_lock(struct wait_state *state);
void hold_by_write(struct wait_state *state);
void wait_write(struct wait_state *state);
void wait_write_at(struct wait_state *state);
void wait_socket_option(struct wait_state *state);
void release_holder(struct wait_state *state);

bool set_up_grace_period(struct wait_state *state);
void wait_grace_period(struct wait_state *state);

bool set_up_supervisor(struct wait_state *state);
void wait_supervisor(struct wait_state *state);
void release_supervisor(struct wait_state *state);

bool set_up_permission(struct wait_state *state);
void wait_open(struct wait_state *state);
void release_permission(struct wait_state *state);

bool set_up_ring(struct wait_state *state);
void wait_ring(struct wait_state *state);
bool set_up_ring_of_connection(struct wait_state *state);
void wait_ring_receive(struct wait_state *state);

/* ---- waits_objects.c: what is waited for --------------------------------------------------- */

void object_fd0(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_fd1(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_connection0(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_connection1(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_ring(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_epoll(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_word(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_static(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);
void object_time(const struct wait_state *state, char text[TRUTH_OBJECT_SIZE]);

/* The mutex that object_static() describes. */
extern pthread_mutex_t known_mutex;

/* ---- for both ------------------------------------------------------------------------------ */

/* A new file of this test's, open to read and write. */
bool make_file(struct wait_state *state);
/* A pipe in fd; the same, full. */
bool set_up_pipe(struct wait_state *state);
bool set_up_full_pipe(struct wait_state *state);
/* Two connected TCP sockets in fd. */
bool make_connection(struct wait_state *state);

#endif
