/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * planted.c - waits for objects of each kind that has a name. All names are arguments, so that a
 * test can choose them: KEY=NAME for each member of `names`.
 *
 * tests/e2e/output/test_anonymize.py also compiles it from a file with a chosen name.
 */
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define WAIT_US 5000

static struct {
	const char *key, *name;
} names[] = {
	{"library", NULL}, {"locked", NULL},   {"mapped", NULL},
	{"socket", NULL},  {"abstract", NULL}, {"thread", NULL},
	{"address", NULL}, {"memory", NULL},   {"script", NULL},
};

static const char *named(const char *key)
{
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i].key, key) && names[i].name)
			return names[i].name;
	fprintf(stderr, "no %s\n", key);
	exit(1);
}

static int must(int result, const char *what)
{
	if (result < 0) {
		fprintf(stderr, "%s: %s\n", what, strerror(errno));
		exit(1);
	}
	return result;
}

static int to_end[2], ended[2]; /* a descriptor to close or to write to ends a wait */

/* Ends each wait a while after it was asked to. */
static void *end_waits(void *arg)
{
	int fd;

	(void)arg;
	pthread_setname_np(pthread_self(), named("thread"));
	while (read(to_end[0], &fd, sizeof(fd)) == sizeof(fd)) {
		usleep(WAIT_US);
		if (flock(fd, LOCK_UN) < 0 || fcntl(fd, F_GETFL) & O_NONBLOCK)
			must(write(fd, "x", 1), "write");
		must(write(ended[1], &fd, sizeof(fd)), "write");
	}
	return NULL;
}

static void begin_wait(int fd)
{
	must(write(to_end[1], &fd, sizeof(fd)), "write");
}

static void end_wait(void)
{
	int fd;

	must(read(ended[0], &fd, sizeof(fd)), "read");
}

/* Two open files of one path exclude each other. */
static void wait_for_lock(const char *path)
{
	int held = must(open(path, O_RDWR | O_CREAT, 0600), path);
	int wanted = must(open(path, O_RDWR), path);

	must(flock(held, LOCK_EX), "flock");
	begin_wait(held);
	must(flock(wanted, LOCK_EX), "flock");
	end_wait();
	close(held);
	close(wanted);
}

/* Another open file of the memory is had by its path in /proc. */
static void wait_for_memory(const char *name)
{
	int held = must(memfd_create(name, 0), "memfd_create");
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", held);
	wait_for_lock(path);
	close(held);
}

static void wait_for_connection(const struct sockaddr *address, socklen_t size)
{
	int listener = must(socket(address->sa_family, SOCK_STREAM, 0), "socket");
	int near = must(socket(address->sa_family, SOCK_STREAM, 0), "socket"), far;
	struct sockaddr_storage bound;
	socklen_t length = sizeof(bound);
	char byte;

	must(bind(listener, address, size), "bind");
	must(listen(listener, 1), "listen");
	must(getsockname(listener, (struct sockaddr *)&bound, &length), "getsockname");
	must(connect(near, (struct sockaddr *)&bound, length), "connect");
	far = must(accept(listener, NULL, NULL), "accept");
	must(fcntl(near, F_SETFL, O_NONBLOCK), "fcntl");
	begin_wait(near);
	must(read(far, &byte, 1), "read");
	end_wait();
	close(listener);
	close(near);
	close(far);
}

static void wait_for_sockets(void)
{
	struct sockaddr_un path = {.sun_family = AF_UNIX}, abstract = {.sun_family = AF_UNIX};
	struct sockaddr_in host = {.sin_family = AF_INET};
	size_t length = strlen(named("abstract"));

	strncpy(path.sun_path, named("socket"), sizeof(path.sun_path) - 1);
	wait_for_connection((struct sockaddr *)&path, sizeof(path));
	memcpy(abstract.sun_path + 1, named("abstract"), length);
	wait_for_connection((struct sockaddr *)&abstract,
			    offsetof(struct sockaddr_un, sun_path) + 1 + length);
	inet_pton(AF_INET, named("address"), &host.sin_addr);
	wait_for_connection((struct sockaddr *)&host, sizeof(host));
}

static void touch(const char *path)
{
	int fd = must(open(path, O_RDWR | O_CREAT, 0600), path);
	volatile char *memory;
	size_t size = 256 * 4096;

	must(ftruncate(fd, size), "ftruncate");
	memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	for (size_t at = 0; at < size; at += 4096)
		memory[at]++;
	munmap((void *)memory, size);
	close(fd);
}

static void call_library(const char *path)
{
	void *library = dlopen(path, RTLD_NOW);
	void (*call)(void) = library ? (void (*)(void))dlsym(library, "planted_call") : NULL;

	if (!call) {
		fprintf(stderr, "%s: %s\n", path, dlerror());
		exit(1);
	}
	call();
}

static void run_script(const char *path)
{
	pid_t child = must(fork(), "fork");

	if (child == 0) {
		execl("/usr/bin/python3", "python3", path, (char *)NULL);
		_exit(127);
	}
	must(waitpid(child, NULL, 0), "waitpid");
}

/* The time that a line of this file takes has the text of the line beside it. */
static void run_for(uint64_t ms)
{
	clock_t end = clock() + ms * CLOCKS_PER_SEC / 1000;

	while (clock() < end)
		;
}

int main(int argc, char **argv)
{
	pthread_t helper;

	for (int i = 1; i < argc; i++)
		for (size_t k = 0; k < sizeof(names) / sizeof(names[0]); k++)
			if (!strncmp(argv[i], names[k].key, strlen(names[k].key)) &&
			    argv[i][strlen(names[k].key)] == '=')
				names[k].name = argv[i] + strlen(names[k].key) + 1;
	must(pipe(to_end), "pipe");
	must(pipe(ended), "pipe");
	if (pthread_create(&helper, NULL, end_waits, NULL))
		return 1;
	wait_for_lock(named("locked"));
	wait_for_memory(named("memory"));
	wait_for_sockets();
	touch(named("mapped"));
	call_library(named("library"));
	run_for(30);
	run_script(named("script"));
	close(to_end[1]);
	pthread_join(helper, NULL);
	return 0;
}
