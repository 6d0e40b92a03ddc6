/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * graphs - runs --count graphs of tasks (graphs.h), drawn from --seed, one after another, beside
 * --burners busy processes, each on a CPU of its own. With --disk 1 the graphs write to a file
 * beside the one that --truth names. That file gets what each task did, and when.
 */
#include "graphs.h"
#include "truth.h"
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_USEC 1000ULL
#define COMPUTE_US    500 /* from one lock of the shared mutex to the next */
#define BLOCK_SIZE    65536
#define STACK_SIZE    65536

static uint64_t count = 20, seed = 1, burners = 1, disk;
static Graph *graph; /* the graph that is running */
static int file = -1;
static char block[BLOCK_SIZE] __attribute__((aligned(4096)));
static char *stacks;	       /* of the tasks that are threads, by task */
static __thread int schedstat; /* of this thread */

/* ---- what the kernel counts ---------------------------------------------------------------- */

static void open_schedstat(void)
{
	schedstat = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
	truth_check(schedstat >= 0, "/proc/thread-self/schedstat");
}

static void read_schedstat(int fd, uint64_t *ret_run_ns, uint64_t *ret_delay_ns)
{
	char text[64] = {};

	truth_check(pread(fd, text, sizeof(text) - 1, 0) > 0 &&
			    sscanf(text, "%lu %lu", ret_run_ns, ret_delay_ns) == 2,
		    "schedstat");
}

/* How long this thread has been running or runnable. Its clock alone includes the current run. */
static uint64_t awake_ns(void)
{
	uint64_t run_ns, delay_ns;

	read_schedstat(schedstat, &run_ns, &delay_ns);
	return truth_cpu() + delay_ns;
}

/*
 * The same for a task that is asleep, read by this one: what is added to its account by the end of
 * the wait comes after its wakeup.
 */
static uint64_t awake_ns_of(uint32_t number)
{
	char path[64];
	uint64_t run_ns, delay_ns;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", graph->tasks[number].tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	truth_check(fd >= 0, path);
	read_schedstat(fd, &run_ns, &delay_ns);
	close(fd);
	return run_ns + delay_ns;
}

/* The time, and awake_ns() then: a pair between which the thread was not preempted. */
static uint64_t now_and_awake(uint64_t *ret_awake_ns)
{
	uint64_t ns = truth_now(), closest = UINT64_MAX, ret_ns = ns;

	for (int tries = 0; tries < 10 && closest > 50 * NSEC_PER_USEC; tries++) {
		uint64_t awake = awake_ns(), next = truth_now();

		if (next - ns < closest) {
			closest = next - ns;
			ret_ns = ns;
			*ret_awake_ns = awake;
		}
		ns = next;
	}
	return ret_ns;
}

/* The thread's voluntary and other switches. */
static struct rusage switches(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage;
}

/* ---- objects ------------------------------------------------------------------------------- */

static void init_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attributes;

	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutex_init(mutex, &attributes);
}

static void init_object(Object *object)
{
	pthread_condattr_t attributes;

	init_mutex(&object->mutex);
	pthread_condattr_init(&attributes);
	pthread_condattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_cond_init(&object->condvar, &attributes);
	sem_init(&object->semaphore, /* pshared= */ 1, 0);
	if (object->kind == OBJECT_PIPE) {
		truth_check(pipe2(object->fds, O_CLOEXEC) == 0, "pipe2");
	} else if (object->kind == OBJECT_EVENTFD) {
		object->fds[0] = eventfd(0, EFD_CLOEXEC);
		object->fds[1] = dup(object->fds[0]);
		truth_check(object->fds[1] >= 0, "eventfd");
	}
}

static void close_object(const Object *object)
{
	if (object->kind != OBJECT_PIPE && object->kind != OBJECT_EVENTFD)
		return;
	close(object->fds[0]);
	close(object->fds[1]);
}

static void give(Object *object)
{
	uint64_t one = 1;

	switch (object->kind) {
	case OBJECT_SEMAPHORE:
		sem_post(&object->semaphore);
		break;
	case OBJECT_CONDVAR:
		pthread_mutex_lock(&object->mutex);
		object->is_given = true;
		pthread_mutex_unlock(&object->mutex);
		pthread_cond_signal(&object->condvar);
		break;
	case OBJECT_MUTEX:
		pthread_mutex_unlock(&object->mutex);
		break;
	default:
		truth_check(write(object->fds[1], &one, sizeof(one)) == sizeof(one), "write");
	}
}

static void take(Object *object)
{
	uint64_t one;

	switch (object->kind) {
	case OBJECT_SEMAPHORE:
		while (sem_wait(&object->semaphore) != 0)
			;
		break;
	case OBJECT_CONDVAR:
		pthread_mutex_lock(&object->mutex);
		while (!object->is_given)
			pthread_cond_wait(&object->condvar, &object->mutex);
		pthread_mutex_unlock(&object->mutex);
		break;
	case OBJECT_MUTEX:
		pthread_mutex_lock(&object->mutex);
		pthread_mutex_unlock(&object->mutex);
		break;
	default:
		truth_check(read(object->fds[0], &one, sizeof(one)) == sizeof(one), "read");
	}
}

/* ---- tasks --------------------------------------------------------------------------------- */

static void run_task(uint32_t number);

static void *run_thread(void *arg)
{
	uint32_t number = (uint32_t)(uintptr_t)arg;

	run_task(number);
	/* The end of a task of the pool would be another event for tasks that wait for others. */
	while (graph->tasks[number].is_pool)
		pause();
	return NULL;
}

static pid_t start_child(void)
{
	pid_t pid = fork();

	truth_check(pid >= 0, "fork");
	if (pid == 0)
		prctl(PR_SET_PDEATHSIG, SIGKILL);
	return pid;
}

static void create_child(uint32_t number)
{
	pid_t pid = start_child();

	if (pid == 0) {
		run_task(number);
		_exit(0);
	}
	/* The child stores the same value. */
	graph->tasks[number].tid = pid;
}

static void create_thread(pthread_t *thread, const pthread_attr_t *attributes,
			  void *(*function)(void *), uint32_t number)
{
	int error = pthread_create(thread, attributes, function, (void *)(uintptr_t)number);

	truth_check(error == 0, "pthread_create");
}

/*
 * The stack is mapped already, because a thread that is preempted while it maps or unmaps one makes
 * all threads wait that do the same, or fork.
 */
static void create_task(uint32_t number)
{
	pthread_attr_t attributes;

	pthread_attr_init(&attributes);
	truth_check(pthread_attr_setstack(&attributes, stacks + (size_t)number * STACK_SIZE,
					  STACK_SIZE) == 0,
		    "pthread_attr_setstack");
	create_thread(&graph->tasks[number].thread, &attributes, run_thread, number);
	pthread_attr_destroy(&attributes);
}

/* Computes, and from time to time takes a mutex that tickers use as well. */
static void compute(Op *op)
{
	for (uint32_t done_us = 0; done_us < op->arg; done_us += COMPUTE_US) {
		uint32_t us = op->arg - done_us < COMPUTE_US ? op->arg - done_us : COMPUTE_US;
		uint64_t begin;

		truth_burn(us * NSEC_PER_USEC);
		begin = truth_now();
		pthread_mutex_lock(&graph->shared);
		op->locked_ns += truth_now() - begin;
		pthread_mutex_unlock(&graph->shared);
	}
}

/* The end is absolute, so that the sleep ends on time even if the thread comes to it late. */
static void sleep_until(uint64_t ns)
{
	struct timespec end = {.tv_sec = (time_t)(ns / NSEC_PER_SEC),
			       .tv_nsec = (long)(ns % NSEC_PER_SEC)};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, NULL) == EINTR)
		;
}

static void do_op(Op *op)
{
	Task *other = &graph->tasks[op->arg < TASKS_MAX ? op->arg : 0];

	switch (op->kind) {
	case OP_COMPUTE:
		compute(op);
		break;
	case OP_SLEEP:
		sleep_until(op->from_ns + op->arg * NSEC_PER_USEC);
		break;
	case OP_DISK:
		truth_check(pwrite(file, block, sizeof(block), op->arg * BLOCK_SIZE) > 0 &&
				    fdatasync(file) == 0,
			    "file");
		break;
	case OP_GIVE:
		op->waiter_awake_ns = awake_ns_of(graph->objects[op->arg].taker);
		give(&graph->objects[op->arg]);
		break;
	case OP_TAKE:
		take(&graph->objects[op->arg]);
		break;
	case OP_THREAD:
		create_task(op->arg);
		break;
	case OP_CHILD:
		create_child(op->arg);
		break;
	case OP_JOIN:
		pthread_join(other->thread, NULL);
		break;
	case OP_REAP:
		/*
		 * The kernel frees the rest of the process later, in a sleeping state, in which it
		 * does not count a wait for the CPU (sched_info_depart()).
		 */
		truth_check(waitid(P_PID, (id_t)other->tid, &(siginfo_t){}, WEXITED | WNOWAIT) == 0,
			    "waitid");
		break;
	}
}

static void run_ops(Task *task)
{
	for (uint32_t i = 0; i < task->op_count; i++) {
		Op *op = &task->ops[i];
		struct rusage before = switches(), after;
		uint64_t awake_then;

		op->from_ns = now_and_awake(&op->from_awake_ns);
		do_op(op);
		op->to_ns = now_and_awake(&awake_then);
		op->awake_ns = awake_then - op->from_awake_ns;
		after = switches();
		op->sleeps = (uint64_t)(after.ru_nvcsw - before.ru_nvcsw);
		op->preemptions = (uint64_t)(after.ru_nivcsw - before.ru_nivcsw);
		if (op->kind == OP_REAP)
			waitpid(graph->tasks[op->arg].tid, NULL, 0);
	}
}

/* ---- threads that are not on the path ------------------------------------------------------ */

static __attribute__((noreturn)) void *run_idle(void *arg)
{
	(void)arg;
	for (;;)
		pause();
}

static __attribute__((noreturn)) void *run_ticker(void *arg)
{
	uint64_t random = graph->random + (uintptr_t)arg;
	pthread_mutex_t *mutex = (uintptr_t)arg % 2 ? &graph->shared : &graph->unrelated;

	for (;;) {
		truth_sleep(graph_random(&random, 300, 3000) * NSEC_PER_USEC);
		pthread_mutex_lock(mutex);
		pthread_mutex_unlock(mutex);
	}
}

static void start_others(void)
{
	pthread_t thread;

	for (uint32_t i = 0; i < graph->idle_count; i++)
		create_thread(&thread, NULL, run_idle, i);
	for (uint32_t i = 0; i < graph->ticker_count; i++)
		create_thread(&thread, NULL, run_ticker, i);
}

/* ---- graphs -------------------------------------------------------------------------------- */

static void run_task(uint32_t number)
{
	Task *task = &graph->tasks[number];

	task->tid = gettid();
	open_schedstat();
	task->begin_ns = now_and_awake(&task->age_ns);
	task->sleeps = (uint64_t)switches().ru_nvcsw;
	prctl(PR_SET_TIMERSLACK, 1);
	for (uint32_t i = 0; i < graph->object_count; i++)
		if (graph->objects[i].kind == OBJECT_MUTEX && graph->objects[i].giver == number)
			pthread_mutex_lock(&graph->objects[i].mutex);
	if (number == TASK_MAIN) {
		madvise(stacks, (size_t)TASKS_MAX * STACK_SIZE, MADV_POPULATE_WRITE);
		start_others();
	}
	run_ops(task);
	close(schedstat);
	task->waiter_awake_ns = awake_ns_of(task->creator);
	task->end_ns = truth_now();
}

static Graph *run_graph(uint64_t number)
{
	graph = mmap(NULL, sizeof(*graph), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	stacks = mmap(NULL, (size_t)TASKS_MAX * STACK_SIZE, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	truth_check(graph != MAP_FAILED && stacks != MAP_FAILED, "mmap");
	graph_plan(graph, seed + number, disk);
	init_mutex(&graph->shared);
	init_mutex(&graph->unrelated);
	for (uint32_t i = 0; i < graph->object_count; i++)
		init_object(&graph->objects[i]);
	graph->tasks[TASK_RUN].tid = gettid();
	run_ops(&graph->tasks[TASK_RUN]);
	for (uint32_t i = 0; i < graph->object_count; i++)
		close_object(&graph->objects[i]);
	munmap(stacks, (size_t)TASKS_MAX * STACK_SIZE);
	return graph;
}

/* A wait for the end would put what the process still does then on the path. */
static void reap(pid_t pid)
{
	while (waitpid(pid, NULL, WNOHANG) == 0)
		truth_sleep(NSEC_PER_MSEC);
}

static pid_t start_burner(uint64_t number)
{
	cpu_set_t allowed, own;
	int cpu = -1;
	pid_t pid = start_child();

	if (pid != 0)
		return pid;
	truth_check(sched_getaffinity(0, sizeof(allowed), &allowed) == 0, "sched_getaffinity");
	for (uint64_t left = number % (uint64_t)CPU_COUNT(&allowed) + 1; left > 0;)
		if (CPU_ISSET(++cpu, &allowed))
			left--;
	CPU_ZERO(&own);
	CPU_SET(cpu, &own);
	truth_check(sched_setaffinity(0, sizeof(own), &own) == 0, "sched_setaffinity");
	for (;;)
		truth_burn(NSEC_PER_SEC);
}

static void open_file(void)
{
	char path[4096];

	truth_check(truth_file(), "--disk without --truth");
	snprintf(path, sizeof(path), "%s.disk", truth_file());
	file = open(path, O_RDWR | O_CREAT | O_DIRECT | O_CLOEXEC, 0600);
	truth_check(file >= 0, path);
}

static void print_task(FILE *out, const Task *task)
{
	static const char *const names[] = {"compute", "sleep", "disk", "give", "take",
					    "thread",  "child", "join", "reap"};

	fprintf(out,
		"{\"tid\":%d,\"begin_ns\":%lu,\"end_ns\":%lu,\"age_ns\":%lu,\"sleeps\":%lu,"
		"\"waiter_awake_ns\":%lu,\"ops\":[",
		task->tid, task->begin_ns, task->end_ns, task->age_ns, task->sleeps,
		task->waiter_awake_ns);
	for (uint32_t i = 0; i < task->op_count; i++) {
		const Op *op = &task->ops[i];

		fprintf(out,
			"%s{\"kind\":\"%s\",\"arg\":%u,\"from_ns\":%lu,\"to_ns\":%lu,"
			"\"from_awake_ns\":%lu,\"awake_ns\":%lu,\"waiter_awake_ns\":%lu,"
			"\"locked_ns\":%lu,\"sleeps\":%lu,\"preemptions\":%lu,\"has_token\":%s}",
			i ? "," : "", names[op->kind], op->arg, op->from_ns, op->to_ns,
			op->from_awake_ns, op->awake_ns, op->waiter_awake_ns, op->locked_ns,
			op->sleeps, op->preemptions, op->has_token ? "true" : "false");
	}
	fprintf(out, "]}");
}

static void print_graph(FILE *out, const Graph *done)
{
	fprintf(out, "\n{\"tasks\":[");
	for (uint32_t i = 0; i < done->task_count; i++) {
		fputs(i ? ",\n" : "", out);
		print_task(out, &done->tasks[i]);
	}
	fprintf(out, "]}");
}

static void print_all(Graph *const *graphs)
{
	FILE *out = truth_file() ? fopen(truth_file(), "we") : stdout;

	truth_check(out, "truth");
	fprintf(out, "{\"pid\":%d,\"realtime_offset_ns\":%lu,\"threads\":[],\"graphs\":[", getpid(),
		truth_realtime_offset());
	for (uint64_t i = 0; i < count; i++) {
		fputs(i ? "," : "", out);
		print_graph(out, graphs[i]);
	}
	fputs("\n]}\n", out);
	truth_check(fclose(out) == 0, "truth");
}

/*
 * While a thread blocks all signals in pthread_create(), the end of a child that it has created
 * wakes any thread of the process that does not block SIGCHLD, although the signal is ignored.
 */
static void block_sigchld(void)
{
	sigset_t signals;

	sigemptyset(&signals);
	sigaddset(&signals, SIGCHLD);
	sigprocmask(SIG_BLOCK, &signals, NULL);
}

int main(int argc, char **argv)
{
	pid_t *pids;
	Graph **graphs;

	truth_options(argc, argv,
		      (TruthOption[]){{"count", &count},
				      {"seed", &seed},
				      {"burners", &burners},
				      {"disk", &disk},
				      {}});
	block_sigchld();
	if (disk)
		open_file();
	graphs = calloc(count, sizeof(*graphs));
	pids = calloc(burners + 1, sizeof(*pids));
	truth_check(graphs && pids, "calloc");
	for (uint64_t i = 0; i < burners; i++)
		pids[i] = start_burner(i);
	open_schedstat();
	for (uint64_t i = 0; i < count; i++)
		graphs[i] = run_graph(i);
	for (uint64_t i = 0; i < burners; i++)
		kill(pids[i], SIGKILL);
	for (uint64_t i = 0; i < burners; i++)
		reap(pids[i]);
	for (uint64_t i = 0; i < count; i++)
		reap(graphs[i]->tasks[TASK_MAIN].tid);
	print_all(graphs);
	return 0;
}
