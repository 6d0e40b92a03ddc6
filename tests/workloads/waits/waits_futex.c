/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Kinds of futexes that operation and value do not distinguish. */
#include "truth.h"
#include "waits.h"
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

bool set_up_semaphore(struct wait_state *state)
{
	return sem_init(&state->sync.semaphore, 0, 0) == 0;
}

void wait_posted(struct wait_state *state)
{
	truth_check(sem_wait(&state->sync.semaphore) == 0, "sem_wait");
}

void post_semaphore(struct wait_state *state)
{
	truth_check(sem_post(&state->sync.semaphore) == 0, "sem_post");
}

bool set_up_barrier(struct wait_state *state)
{
	return pthread_barrier_init(&state->sync.barrier, NULL, 2) == 0;
}

void wait_barrier(struct wait_state *state)
{
	pthread_barrier_wait(&state->sync.barrier);
}

/* As C++'s std::latch: to be counted down from 2, which is not a mutex with a holder. */
#define COUNT 2
/* Shared by several processes; not the tid of one of the threads. */
#define SHARED 7

bool set_up_count(struct wait_state *state)
{
	state->sync.word = COUNT;
	return true;
}

void wait_count(struct wait_state *state)
{
	while (__atomic_load_n(&state->sync.word, __ATOMIC_SEQ_CST) == COUNT)
		syscall(SYS_futex, &state->sync.word, FUTEX_WAIT_PRIVATE, COUNT, NULL);
}

void release_count(struct wait_state *state)
{
	__atomic_store_n(&state->sync.word, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &state->sync.word, FUTEX_WAKE_PRIVATE, 1);
}

bool set_up_shared(struct wait_state *state)
{
	state->sync.word = SHARED;
	return true;
}

void wait_shared(struct wait_state *state)
{
	while (__atomic_load_n(&state->sync.word, __ATOMIC_SEQ_CST) == SHARED)
		syscall(SYS_futex, &state->sync.word, FUTEX_WAIT, SHARED, NULL);
}

void release_shared(struct wait_state *state)
{
	__atomic_store_n(&state->sync.word, 0, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &state->sync.word, FUTEX_WAKE, 1);
}

/* ---- the calls that each do one thing (Linux 5.16, 6.7) ------------------------------------ */

#define NR_FUTEX_WAITV 449
#define NR_FUTEX_WAKE  454
#define NR_FUTEX_WAIT  455
#define SIZE_U32       2 /* FUTEX2_SIZE_U32 */
#define PRIVATE	       FUTEX_PRIVATE_FLAG
#define ANY	       0xffffffffUL

/* Both calls wait while the word is SHARED; the third one wakes them. */
bool set_up_futex2(struct wait_state *state)
{
	state->sync.word = SHARED;
	return syscall(NR_FUTEX_WAKE, &state->sync.word, ANY, 0, SIZE_U32 | PRIVATE) == 0;
}

void wait_futex2(struct wait_state *state)
{
	while (__atomic_load_n(&state->sync.word, __ATOMIC_SEQ_CST) == SHARED)
		syscall(NR_FUTEX_WAIT, &state->sync.word, (unsigned long)SHARED, ANY,
			SIZE_U32 | PRIVATE, NULL, 0);
}

void wait_futex_of_one(struct wait_state *state)
{
	struct {
		uint64_t value, address;
		uint32_t flags, reserved;
	} one = {SHARED, (uintptr_t)&state->sync.word, SIZE_U32 | PRIVATE, 0};

	while (__atomic_load_n(&state->sync.word, __ATOMIC_SEQ_CST) == SHARED)
		syscall(NR_FUTEX_WAITV, &one, 1, 0, NULL, 0);
}

void release_futex2(struct wait_state *state)
{
	__atomic_store_n(&state->sync.word, 0, __ATOMIC_SEQ_CST);
	syscall(NR_FUTEX_WAKE, &state->sync.word, ANY, 1, SIZE_U32 | PRIVATE);
}
