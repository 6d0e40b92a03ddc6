/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-tasks MODE MS COUNT [PATH] - threads, processes and programs that begin in all
 * the ways that there are, each of which spins and sleeps for MS milliseconds (announce.h).
 */
#include "announce.h"
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_SIZE (256 << 10)

static uint64_t ms, count;
static const char *path;

static void work(const char *chain)
{
	announce_spin(ms, chain);
	announce_sleep(ms, chain);
}

FRAME static void thread_calls(void)
{
	work("thread_main thread_calls work");
	__asm__ volatile("");
}

static void *thread_main(void *unused)
{
	thread_calls();
	return unused;
}

static void threads(void)
{
	pthread_t list[64];

	announce_check(count <= 64, "so many threads");
	for (uint64_t i = 0; i < count; i++)
		announce_check(pthread_create(&list[i], NULL, thread_main, NULL) == 0,
			       "pthread_create");
	for (uint64_t i = 0; i < count; i++)
		announce_check(pthread_join(list[i], NULL) == 0, "pthread_join");
}

static int cloned_main(void *unused)
{
	(void)unused;
	work("cloned_main work");
	return 0;
}

/* A thread that libc knows nothing of, and that has no thread-local storage of its own. */
static void cloned(void)
{
	int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
		    CLONE_SYSVSEM | CLONE_CHILD_CLEARTID | CLONE_PARENT_SETTID;
	static pid_t alive;
	char *stack;

	for (uint64_t i = 0; i < count; i++) {
		stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			     -1, 0);
		announce_check(stack != MAP_FAILED, "mmap");
		alive = -1; /* the kernel writes the number, then 0 */
		announce_check(clone(cloned_main, stack + STACK_SIZE, flags, NULL, &alive, NULL,
				     &alive) > 0,
			       "clone");
		for (pid_t seen; (seen = __atomic_load_n(&alive, __ATOMIC_ACQUIRE)) != 0;)
			syscall(SYS_futex, &alive, FUTEX_WAIT, seen, NULL, NULL, 0);
		munmap(stack, STACK_SIZE);
	}
}

FRAME static void vfork_child(void)
{
	work("main vforks vfork_once vfork_child work");
	__asm__ volatile("");
}

/* libc's vfork keeps its return address in a register, for the child would overwrite it. */
FRAME static void vfork_once(void)
{
	uint64_t begin = announce_now();
	pid_t child = vfork();

	announce_check(child >= 0, "vfork");
	if (child == 0) {
		vfork_child();
		_exit(0);
	}
	announce("wait", begin,
		 "main vforks vfork_once + vfork@plt vfork lib:LIBC lib:LOADER announce_check");
	announce_check(waitpid(child, NULL, 0) == child, "waitpid");
}

static void vforks(void)
{
	for (uint64_t i = 0; i < count; i++)
		vfork_once();
}

FRAME static void fork_child(void)
{
	work("main storm fork_child work");
	__asm__ volatile("");
}

static void storm(void)
{
	for (uint64_t i = 0; i < count; i++) {
		pid_t child = fork();

		announce_check(child >= 0, "fork");
		if (child == 0) {
			fork_child();
			_exit(0);
		}
	}
	while (wait(NULL) > 0)
		;
}

static void exec_next(const char *program, const char *mode, uint64_t left)
{
	char ms_text[24], left_text[24];

	snprintf(ms_text, sizeof(ms_text), "%lu", (unsigned long)ms);
	snprintf(left_text, sizeof(left_text), "%lu", (unsigned long)left);
	execl(program, program, mode, ms_text, left_text, program, NULL);
	announce_check(0, program);
}

/* The same program over and over in one process. */
static void execs(void)
{
	work("main execs work");
	if (count > 1)
		exec_next("/proc/self/exe", "execs", count - 1);
}

static void copy_self(void)
{
	int from = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int to = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0755);
	struct stat st;

	announce_check(from >= 0 && to >= 0 && fstat(from, &st) == 0, path);
	/* Unlike copy_file_range() it copies from one file system to another, too. */
	announce_check(sendfile(to, from, NULL, (size_t)st.st_size) == st.st_size, "copy");
	close(from);
	close(to);
}

/* A copy of this program, which deletes its file first of all. */
static void deleted(void)
{
	announce_check(path != NULL, "a path");
	if (count > 0) {
		copy_self();
		exec_next(path, "deleted", 0);
	}
	announce_check(unlink(path) == 0, "unlink");
	work("main deleted work");
}

/* The next process is to have this number; others may be faster. */
static void reuse_pid(pid_t pid)
{
	char text[16];
	int fd = open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
	int length = snprintf(text, sizeof(text), "%d", pid - 1);

	announce_check(fd >= 0 && write(fd, text, length) == length, "ns_last_pid");
	close(fd);
}

/* Processes of one number, at once after one another: this program and the one at path in turn. */
static void reused(void)
{
	char time[16];
	pid_t pid = 0;

	snprintf(time, sizeof(time), "%u", (unsigned)ms);
	for (uint64_t i = 0; i < count; i++) {
		if (pid)
			reuse_pid(pid);
		pid = fork();
		announce_check(pid >= 0, "fork");
		if (pid == 0 && i & 1) {
			execl(path, path, "recursion", time, "20", NULL);
			_exit(1);
		}
		if (pid == 0) {
			work("main reused work");
			_exit(0);
		}
		announce_value("number", pid);
		announce_check(waitpid(pid, NULL, 0) == pid, "waitpid");
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} modes[] = {
	{"threads", threads}, {"cloned", cloned},   {"vforks", vforks}, {"storm", storm},
	{"execs", execs},     {"deleted", deleted}, {"reused", reused},
};

int main(int argc, char **argv)
{
	announce_check(argc >= 4, "usage: unwind-tasks MODE MS COUNT [PATH]:");
	ms = strtoull(argv[2], NULL, 10);
	count = strtoull(argv[3], NULL, 10);
	path = argv[4];
	announce_open();
	for (size_t i = 0; i < sizeof(modes) / sizeof(*modes); i++)
		if (strcmp(modes[i].name, argv[1]) == 0) {
			modes[i].run();
			return 0;
		}
	announce_check(0, argv[1]);
	return 1;
}
