/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "symbol_jobs.h"
#include "signals.h"
#include "symbol_child.h"
#include "symbol_messages.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define READ_SIZE (256u << 10)
/* The CPU time of a child: this, and a second more for every so many bytes. */
#define SECONDS_BASE	 10
#define BYTES_PER_SECOND (8u << 20)
/* Larger files count as this: a sparse file can be of any size at no cost. */
#define COUNTED_MAX (4ULL << 30)
/* On a busy machine the child waits for a CPU. */
#define WALL_PER_CPU 4
/* The time that a child has to end after it closed its socket: its memory must be freed. */
#define END_MS	 2000
#define TOO_LONG "reading it took too long"

static uint64_t size_of(int fd)
{
	struct stat st;

	return fd >= 0 && !fstat(fd, &st) ? MIN((uint64_t)st.st_size, COUNTED_MAX) : 0;
}

static uint64_t job_size(const SymbolJob *job)
{
	return size_of(job->request.fd) + size_of(job->request.debug_fd);
}

uint64_t symbol_job_seconds(int fd)
{
	return size_of(fd) / BYTES_PER_SECOND;
}

const char *symbol_jobs_why_over(uint64_t deadline_ns)
{
	if (signals_lookup_stopped())
		return "the lookup was interrupted";
	return deadline_ns && now_ns() >= deadline_ns ? "the time limit for all names is reached"
						      : NULL;
}

/* ---- the life of a child ----------------------------------------------------------- */

static void start(SymbolJob *job, const SymbolJobsOptions *options)
{
	uint64_t size = job_size(job);
	uint64_t seconds =
		options->seconds ? options->seconds : SECONDS_BASE + size / BYTES_PER_SECOND;
	SandboxLimits limits = {.memory = SANDBOX_MEMORY + 2 * size, .cpu_seconds = seconds};
	int fds[] = {job->request.fd, job->request.debug_fd};
	const char *problem;
	int error;

	job->offsets.count = 0;
	for (size_t i = 0; i < job->request.count; i++)
		*vec_push(&job->offsets) = SYMBOL_NO_ANSWER;
	job->deadline_ns = now_ns() + WALL_PER_CPU * seconds * NSEC_PER_SEC;
	if (options->deadline_ns)
		job->deadline_ns = MIN(job->deadline_ns, options->deadline_ns);
	problem = symbol_jobs_why_over(options->deadline_ns);
	if (problem) {
		job->problem = xstrdup(problem);
		return;
	}
	error = sandbox_start(symbol_child_main, fds, ARRAY_LEN(fds), &job->request, &limits,
			      &job->sandbox);
	if (error)
		job->problem = xasprintf("starting its reader failed: %s", strerror(-error));
}

static char *describe_end(int status)
{
	if (WIFEXITED(status) && WEXITSTATUS(status) == SANDBOX_UNSAFE)
		return xstrdup("its reader could not be sandboxed (seccomp, setrlimit)");
	if (WIFEXITED(status))
		return xasprintf("its reader ended with status %d", WEXITSTATUS(status));
	if (WTERMSIG(status) == SIGXCPU)
		return xstrdup(TOO_LONG);
	if (WTERMSIG(status) == SIGKILL)
		return xstrdup("its reader was killed (out of memory?)");
	return xasprintf("its reader crashed (%s)", strsignal(WTERMSIG(status)));
}

/*
 * A child that has closed its socket should end by itself, with its own status. Returns whether it
 * has; the child is reaped in any case.
 */
static bool await_end(Sandbox *sandbox, int *ret_status)
{
	uint64_t deadline = now_ns() + END_MS * NSEC_PER_MSEC;

	while (waitpid(sandbox->pid, ret_status, WNOHANG) == 0) {
		if (now_ns() > deadline) {
			sandbox_end(sandbox);
			return false;
		}
		usleep(1000);
	}
	sandbox->pid = 0;
	closep(&sandbox->socket);
	return true;
}

static void finish(SymbolJob *job, const char *problem)
{
	int status;

	if (problem || job->ended) {
		sandbox_end(&job->sandbox);
		job->problem = problem ? xstrdup(problem) : NULL;
	} else {
		job->problem = await_end(&job->sandbox, &status) ? describe_end(status)
								 : xstrdup(TOO_LONG);
	}
	vec_free(&job->received);
}

static bool is_running(const SymbolJob *job)
{
	return job->sandbox.pid > 0;
}

/* Handles messages of the child, or its end. */
static void serve(SymbolJob *job, const SymbolJobsOptions *options)
{
	ssize_t got;

	vec_reserve(&job->received, job->received.count + READ_SIZE);
	got = recv(job->sandbox.socket, job->received.items + job->received.count, READ_SIZE,
		   MSG_DONTWAIT);
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (got <= 0) {
		finish(job, NULL);
		return;
	}
	job->received.count += got;
	if (!symbol_messages_consume(job, options))
		finish(job, "its reader sent invalid data (taken over by the file?)");
	else if (job->ended)
		finish(job, NULL);
}

/* ---- all of them --------------------------------------------------------------------- */

typedef struct Queue {
	SymbolJob *jobs;
	size_t *order; /* the longest first */
	size_t count, next;
} Queue;

static int compare_sizes(const void *a, const void *b, void *jobs)
{
	uint64_t x = job_size((SymbolJob *)jobs + *(const size_t *)a);
	uint64_t y = job_size((SymbolJob *)jobs + *(const size_t *)b);

	return x > y ? -1 : x < y;
}

static int wait_ms(const SymbolJob *job, uint64_t now)
{
	return job->deadline_ns <= now ? 0 : (job->deadline_ns - now) / NSEC_PER_MSEC + 1;
}

/* Waits for one of the children that run, and handles all that have something. */
static void serve_all(Queue *queue, const SymbolJobsOptions *options)
{
	VEC(struct pollfd) polled = {};
	VEC(SymbolJob *) running = {};
	uint64_t now = now_ns();
	const char *over;
	int timeout = SIGNALS_LOOKUP_POLL_MS;

	for (size_t i = 0; i < queue->next; i++) {
		SymbolJob *job = &queue->jobs[queue->order[i]];

		if (!is_running(job))
			continue;
		*vec_push(&polled) = (struct pollfd){.fd = job->sandbox.socket, .events = POLLIN};
		*vec_push(&running) = job;
		timeout = MIN(timeout, wait_ms(job, now));
	}
	if (polled.count && poll(polled.items, polled.count, timeout) < 0)
		for (size_t i = 0; i < polled.count; i++)
			polled.items[i].revents = 0; /* interrupted by a signal */
	now = now_ns();
	over = symbol_jobs_why_over(options->deadline_ns);
	for (size_t i = 0; i < polled.count; i++) {
		if (polled.items[i].revents)
			serve(running.items[i], options);
		if (is_running(running.items[i]) && (over || running.items[i]->deadline_ns <= now))
			finish(running.items[i], over ? over : TOO_LONG);
	}
	vec_free(&polled);
	vec_free(&running);
}

static size_t count_running(const Queue *queue)
{
	size_t n = 0;

	for (size_t i = 0; i < queue->next; i++)
		n += is_running(&queue->jobs[queue->order[i]]);
	return n;
}

void symbol_jobs_run(SymbolJob *jobs, size_t count, const SymbolJobsOptions *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	size_t parallel = options->parallel ? options->parallel : (size_t)MAX(cpus, 1);
	Queue queue = {.jobs = jobs, .count = count};

	if (count == 0)
		return;
	queue.order = xcalloc(count, sizeof(*queue.order));
	for (size_t i = 0; i < count; i++)
		queue.order[i] = i;
	qsort_r(queue.order, count, sizeof(*queue.order), compare_sizes, jobs);
	while (queue.next < count || count_running(&queue)) {
		while (queue.next < count && count_running(&queue) < parallel)
			start(&jobs[queue.order[queue.next++]], options);
		serve_all(&queue, options);
	}
	free(queue.order);
}

void symbol_job_free(SymbolJob *job)
{
	vec_free(&job->records);
	vec_free(&job->offsets);
	vec_free(&job->received);
	vec_free(&job->missing);
	free(job->problem);
}

const struct rec_symbol *symbol_job_answer(const SymbolJob *job, size_t i)
{
	return job->offsets.count <= i || job->offsets.items[i] == SYMBOL_NO_ANSWER
		       ? NULL
		       : (const struct rec_symbol *)(job->records.items + job->offsets.items[i]);
}
