/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jobs - a server in one process: each of --threads sessions waits in epoll for --rounds requests
 * of its client. For a request a session computes, takes a row that all sessions want for --hold-us
 * (a session that has to wait for the row sleeps in epoll, too, until the one before it gives it
 * away), and waits for one of two workers to commit, with a condition variable. Each wait is
 * reported: waits for a job ("job"), waits in the middle of one ("row", "commit"), and those of a
 * ticker that waits for the time alone ("tick").
 */
#include "truth.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define SESSIONS_MAX 16
#define WORKERS	     2
#define APART	     __attribute__((noinline))

typedef struct Session {
	TruthThread *self;
	int request_fd, answer_fd, latch_fd, epoll;
	uint64_t state;
	struct Session *next; /* in one of the queues */
	bool committed;
	pthread_cond_t commit;
} Session;

typedef struct Queue {
	Session *first, **last;
} Queue;

static uint64_t thread_count = 4, rounds = 20, hold_us = 3000, seed = 1;
static Session sessions[SESSIONS_MAX];
static pthread_mutex_t row_lock = PTHREAD_MUTEX_INITIALIZER, jobs_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t jobs_wakeup = PTHREAD_COND_INITIALIZER;
static Queue row = {NULL, &row.first}, jobs = {NULL, &jobs.first};
static bool row_is_taken;
static atomic_uint sessions_left;
static atomic_bool over;

static void append(Queue *queue, Session *session)
{
	session->next = NULL;
	*queue->last = session;
	queue->last = &session->next;
}

static Session *take_first(Queue *queue)
{
	Session *session = queue->first;

	queue->first = session->next;
	if (!queue->first)
		queue->last = &queue->first;
	return session;
}

static uint64_t random_us(Session *session, uint64_t most)
{
	session->state = session->state * 6364136223846793005ULL + 1442695040888963407ULL;
	return most / 2 + (session->state >> 33) % (most / 2 + 1);
}

static void signal_fd(int fd)
{
	uint64_t one = 1;

	truth_check(write(fd, &one, sizeof(one)) == sizeof(one), "write");
}

/* Until one of the descriptors of the session's epoll has something; which one. */
static APART int wait_for_event(Session *session)
{
	struct epoll_event event;
	uint64_t count;

	truth_check(epoll_wait(session->epoll, &event, 1, -1) == 1, "epoll_wait");
	truth_check(read(event.data.fd, &count, sizeof(count)) == sizeof(count), "read");
	return event.data.fd;
}

static APART void take_row(Session *session)
{
	uint64_t begin = truth_now();
	bool wait;

	pthread_mutex_lock(&row_lock);
	wait = row_is_taken;
	row_is_taken = true;
	if (wait)
		append(&row, session);
	pthread_mutex_unlock(&row_lock);
	if (!wait)
		return;
	while (wait_for_event(session) != session->latch_fd)
		truth_check(false, "a request in the middle of one");
	truth_wait(session->self, "row", begin);
}

static APART void release_row(void)
{
	int next_fd = -1;

	pthread_mutex_lock(&row_lock);
	if (row.first)
		next_fd = take_first(&row)->latch_fd;
	else
		row_is_taken = false;
	pthread_mutex_unlock(&row_lock);
	if (next_fd >= 0)
		signal_fd(next_fd);
}

static APART void commit(Session *session)
{
	uint64_t begin = truth_now();

	pthread_mutex_lock(&jobs_lock);
	session->committed = false;
	append(&jobs, session);
	pthread_cond_signal(&jobs_wakeup);
	while (!session->committed)
		pthread_cond_wait(&session->commit, &jobs_lock);
	pthread_mutex_unlock(&jobs_lock);
	truth_wait(session->self, "commit", begin);
}

static APART void handle(Session *session)
{
	truth_burn(random_us(session, 2000) * 1000);
	take_row(session);
	truth_burn(random_us(session, hold_us) * 1000);
	release_row();
	commit(session);
	truth_burn(random_us(session, 500) * 1000);
	signal_fd(session->answer_fd);
}

static void *session(void *arg)
{
	Session *session = &sessions[(uintptr_t)arg];

	session->self = truth_begin("session %lu", (uint64_t)(uintptr_t)arg);
	for (uint64_t i = 0; i < rounds; i++) {
		uint64_t begin = truth_now();

		truth_check(wait_for_event(session) == session->request_fd, "no request");
		truth_wait(session->self, "job", begin);
		handle(session);
	}
	if (atomic_fetch_sub(&sessions_left, 1) == 1) {
		pthread_mutex_lock(&jobs_lock);
		atomic_store(&over, true);
		pthread_cond_broadcast(&jobs_wakeup);
		pthread_mutex_unlock(&jobs_lock);
	}
	truth_park(session->self);
}

static void *client(void *arg)
{
	Session *session = &sessions[(uintptr_t)arg];
	TruthThread *self = truth_begin("client %lu", (uint64_t)(uintptr_t)arg);
	uint64_t state = seed * 31 + (uintptr_t)arg, answer;

	for (uint64_t i = 0; i < rounds; i++) {
		state = state * 6364136223846793005ULL + 1442695040888963407ULL;
		truth_sleep((1000 + (state >> 33) % 8000) * 1000);
		signal_fd(session->request_fd);
		truth_check(read(session->answer_fd, &answer, sizeof(answer)) == sizeof(answer),
			    "read");
	}
	truth_park(self);
}

static APART Session *next_job(TruthThread *self)
{
	uint64_t begin = truth_now();
	Session *job = NULL;

	pthread_mutex_lock(&jobs_lock);
	while (!jobs.first && !atomic_load(&over))
		pthread_cond_wait(&jobs_wakeup, &jobs_lock);
	if (jobs.first)
		job = take_first(&jobs);
	pthread_mutex_unlock(&jobs_lock);
	truth_wait(self, "job", begin);
	return job;
}

static void *worker(void *arg)
{
	TruthThread *self = truth_begin("worker %lu", (uint64_t)(uintptr_t)arg);
	Session *job;

	while ((job = next_job(self))) {
		truth_sleep(random_us(job, 1500) * 1000);
		truth_burn(random_us(job, 1500) * 1000);
		pthread_mutex_lock(&jobs_lock);
		job->committed = true;
		pthread_cond_signal(&job->commit);
		pthread_mutex_unlock(&jobs_lock);
	}
	truth_park(self);
}

static void *ticker(void *unused)
{
	static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
	static pthread_cond_t never_signalled = PTHREAD_COND_INITIALIZER;
	TruthThread *self = truth_begin("ticker");

	(void)unused;
	while (!atomic_load(&over)) {
		uint64_t begin = truth_now(), until = begin + 20 * NSEC_PER_MSEC;
		struct timespec moment = {until / NSEC_PER_SEC, until % NSEC_PER_SEC};

		pthread_mutex_lock(&mutex);
		pthread_cond_clockwait(&never_signalled, &mutex, CLOCK_MONOTONIC, &moment);
		pthread_mutex_unlock(&mutex);
		truth_wait(self, "tick", begin);
		truth_burn(100 * 1000);
	}
	truth_park(self);
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(argc, argv,
		      (TruthOption[]){{"threads", &thread_count},
				      {"rounds", &rounds},
				      {"hold-us", &hold_us},
				      {"seed", &seed},
				      {}});
	truth_check(thread_count <= SESSIONS_MAX, "threads");
	self = truth_begin("jobs");
	atomic_store(&sessions_left, thread_count);
	for (uint64_t i = 0; i < thread_count; i++) {
		Session *session = &sessions[i];

		*session = (Session){.request_fd = eventfd(0, 0),
				     .answer_fd = eventfd(0, 0),
				     .latch_fd = eventfd(0, 0),
				     .epoll = epoll_create1(0),
				     .state = seed * 7 + i,
				     .commit = PTHREAD_COND_INITIALIZER};
		for (int k = 0; k < 2; k++) {
			int fd = k ? session->latch_fd : session->request_fd;
			struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

			truth_check(!epoll_ctl(session->epoll, EPOLL_CTL_ADD, fd, &event),
				    "epoll_ctl");
		}
	}
	for (uint64_t i = 0; i < WORKERS; i++)
		truth_spawn(worker, i);
	truth_spawn(ticker, 0);
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(session, i);
	for (uint64_t i = 0; i < thread_count; i++)
		truth_spawn(client, i);
	truth_finish(self);
}
