/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * places - waits at several places of one thread, of random kinds and durations.
 *
 *   places SEED MILLISECONDS
 *
 * It prints its process ID, waits for a line, waits for so long, and prints what each function
 * waited for in all, by the requested times: {"functions": {NAME: {"ns": N, "count": N}}, "long":
 * [[BEGIN, END]]} in CLOCK_MONOTONIC ns. A long wait is one of LONG_NS or more, at a place whose
 * other waits are short.
 */
#include <linux/futex.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define US	 1000ULL
#define MS	 1000000ULL
#define LONG_NS	 (100 * MS)
#define LONG_ONE 150 /* one in so many of the waits at that place */
#define LONG_MAX 1000

typedef struct Place {
	const char *name;
	void (*wait)(uint64_t ns);
	uint64_t least_ns, most_ns;
	int share; /* of all waits */
	uint64_t ns, count;
} Place;

static volatile int event_fd, epoll_fd, word, sink;

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){.tv_sec = ns / (1000 * MS), .tv_nsec = ns % (1000 * MS)};
}

/* Each function has a frame of its own size, and no tail call. */
#define PLACE(name, frame, statement)                                                              \
	static __attribute__((noinline)) void name(uint64_t ns)                                    \
	{                                                                                          \
		struct timespec time = timespec_of(ns);                                            \
		volatile char room[frame];                                                         \
                                                                                                   \
		room[frame - 1] = 1;                                                               \
		statement;                                                                         \
		sink = room[frame - 1];                                                            \
	}

PLACE(read_header, 32, nanosleep(&time, NULL))
PLACE(read_body, 200, nanosleep(&time, NULL))
PLACE(take_lock, 64, syscall(SYS_futex, &word, FUTEX_WAIT, 0, &time, NULL, 0))
PLACE(await_job, 400, ppoll(&(struct pollfd){.fd = event_fd, .events = POLLIN}, 1, &time, NULL))
PLACE(await_client, 96, epoll_wait(epoll_fd, &(struct epoll_event){0}, 1, time.tv_nsec / (long)MS))
PLACE(write_log, 300, nanosleep(&time, NULL))

static Place places[] = {
	{"read_header", read_header, 60 * US, 200 * US, 30, 0, 0},
	{"read_body", read_body, 300 * US, 900 * US, 8, 0, 0},
	{"take_lock", take_lock, 80 * US, 400 * US, 14, 0, 0},
	{"await_job", await_job, 100 * US, 600 * US, 12, 0, 0},
	{"await_client", await_client, MS, 4 * MS, 2, 0, 0},
	{"write_log", write_log, 60 * US, 120 * US, 20, 0, 0},
};
#define PLACES (sizeof(places) / sizeof(places[0]))

static uint64_t now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000 * MS + time.tv_nsec;
}

static Place *draw_place(void)
{
	int all = 0, number;
	size_t i;

	for (i = 0; i < PLACES; i++)
		all += places[i].share;
	number = rand() % all;
	for (i = 0; number >= places[i].share; i++)
		number -= places[i].share;
	return &places[i];
}

int main(int argc, char **argv)
{
	static uint64_t long_waits[LONG_MAX][2];
	size_t longs = 0;
	uint64_t end;

	if (argc != 3)
		return 2;
	srand(atoi(argv[1]));
	prctl(PR_SET_TIMERSLACK, 1);
	event_fd = eventfd(0, 0);
	epoll_fd = epoll_create1(0);
	printf("%d\n", getpid());
	fflush(stdout);
	if (getchar() == EOF)
		return 1;
	end = now() + atoi(argv[2]) * MS;
	while (now() < end) {
		Place *place = draw_place();
		uint64_t ns = place->least_ns + rand() % (place->most_ns - place->least_ns);
		uint64_t begin = now();

		if (place->wait == await_client)
			ns -= ns % MS;
		if (place->wait == write_log && rand() % LONG_ONE == 0 && longs < LONG_MAX)
			ns += LONG_NS;
		place->wait(ns);
		place->ns += ns;
		place->count++;
		if (ns >= LONG_NS) {
			long_waits[longs][0] = begin;
			long_waits[longs++][1] = now();
		}
	}
	printf("{\"functions\": {");
	for (size_t i = 0; i < PLACES; i++)
		printf("%s\"%s\": {\"ns\": %llu, \"count\": %llu}", i ? ", " : "", places[i].name,
		       (unsigned long long)places[i].ns, (unsigned long long)places[i].count);
	printf("}, \"long\": [");
	for (size_t i = 0; i < longs; i++)
		printf("%s[%llu, %llu]", i ? ", " : "", (unsigned long long)long_waits[i][0],
		       (unsigned long long)long_waits[i][1]);
	printf("]}\n");
	return 0;
}
