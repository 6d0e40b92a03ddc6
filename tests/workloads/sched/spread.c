/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * spread - a thread on each CPU. Each passes bytes that come from the CPU before it on to the next
 * one, `--rounds` times; half as many bytes as CPUs go round. Then each starts `--children`
 * processes, one after the other, that go to the next CPU and end there with the number of their
 * CPU as exit status. So all CPUs switch at once, and each thread's records come from two CPUs.
 */
#include "truth.h"
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t rounds = 100, children = 2;
static size_t cpu_count;
static int cpus[CPU_SETSIZE], pipes[CPU_SETSIZE][2];
static pthread_barrier_t all_there;

static void go_to(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	truth_check(sched_setaffinity(0, sizeof(set), &set) == 0, "sched_setaffinity");
}

static void start_child(int cpu)
{
	pid_t child = fork();

	truth_check(child >= 0, "fork");
	if (child == 0) {
		go_to(cpu);
		_exit(cpu & 0x7f);
	}
	truth_check(waitpid(child, NULL, 0) == child, "waitpid");
}

static void *pass_on(void *argument)
{
	size_t index = (size_t)argument, next = (index + 1) % cpu_count;
	TruthThread *self;
	char byte = 0;

	go_to(cpus[index]);
	self = truth_begin("cpu %d", cpus[index]);
	pthread_barrier_wait(&all_there);
	if (index % 2 == 0)
		truth_check(write(pipes[index][1], &byte, 1) == 1, "write");
	for (uint64_t i = 0; i < rounds; i++) {
		truth_check(read(pipes[index][0], &byte, 1) == 1, "read");
		truth_check(write(pipes[next][1], &byte, 1) == 1, "write");
	}
	for (uint64_t i = 0; i < children; i++)
		start_child(cpus[next]);
	truth_park(self);
}

static void find_cpus(void)
{
	cpu_set_t set;

	truth_check(sched_getaffinity(0, sizeof(set), &set) == 0, "sched_getaffinity");
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			cpus[cpu_count++] = cpu;
}

int main(int argc, char **argv)
{
	TruthThread *self;

	truth_options(argc, argv,
		      (TruthOption[]){{"rounds", &rounds}, {"children", &children}, {}});
	find_cpus();
	pthread_barrier_init(&all_there, NULL, cpu_count);
	for (size_t i = 0; i < cpu_count; i++)
		truth_check(pipe(pipes[i]) == 0, "pipe");
	self = truth_begin("main");
	for (size_t i = 0; i < cpu_count; i++)
		truth_spawn(pass_on, i);
	truth_finish(self);
}
