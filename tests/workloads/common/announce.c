/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "announce.h"
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NSEC_PER_SEC 1000000000ULL
#define LINE_SIZE    1024

static int announce_fd = -1;

__attribute__((always_inline)) static inline long call(long number, long a, long b, long c, long d)
{
	register long fourth __asm__("r10") = d;
	long result;

	__asm__ volatile("syscall"
			 : "=a"(result)
			 : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth)
			 : "rcx", "r11", "memory");
	return result;
}

__attribute__((always_inline)) static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	call(SYS_clock_gettime, clock, (long)&t, 0, 0);
	return (uint64_t)t.tv_sec * NSEC_PER_SEC + (uint64_t)t.tv_nsec;
}

uint64_t announce_now(void)
{
	return clock_ns(CLOCK_MONOTONIC);
}

uint64_t announce_cpu(void)
{
	return clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

void announce_check(int ok, const char *what)
{
	if (ok)
		return;
	call(SYS_write, 2, (long)what, (long)strlen(what), 0);
	call(SYS_write, 2, (long)" failed\n", 8, 0);
	call(SYS_exit_group, 1, 0, 0, 0);
}

void announce_open(void)
{
	const char *path = getenv("WALLPROF_ANNOUNCE");

	if (!path) {
		static const char text[] = "WALLPROF_ANNOUNCE names no file\n";

		call(SYS_write, 2, (long)text, sizeof(text) - 1, 0);
		_exit(2);
	}
	announce_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	announce_check(announce_fd >= 0, path);
}

typedef struct Line {
	char text[LINE_SIZE];
	size_t length;
	bool overflow;
} Line;

static void add(Line *line, const char *text)
{
	for (; *text; text++) {
		if (line->length == sizeof(line->text)) {
			line->overflow = true;
			return;
		}
		line->text[line->length++] = *text;
	}
}

static void add_number(Line *line, const char *key, uint64_t number)
{
	char digits[24], *at = digits + sizeof(digits);

	*--at = '\0';
	do {
		*--at = (char)('0' + number % 10);
		number /= 10;
	} while (number);
	add(line, key);
	add(line, at);
}

/* One write to a file opened with O_APPEND: lines of several processes stay whole. */
static void append(Line *line)
{
	add(line, "\n");
	announce_check(!line->overflow, "a line this long");
	announce_check(call(SYS_write, announce_fd, (long)line->text, (long)line->length, 0) ==
			       (long)line->length,
		       "write");
}

static void append_line(const char *kind, uint64_t begin_ns, uint64_t end_ns, const char *chain,
			const char *leaf)
{
	Line line = {.length = 0};

	add_number(&line, "{\"pid\":", (uint64_t)call(SYS_getpid, 0, 0, 0, 0));
	add_number(&line, ",\"tid\":", (uint64_t)call(SYS_gettid, 0, 0, 0, 0));
	add(&line, ",\"kind\":\"");
	add(&line, kind);
	add_number(&line, "\",\"begin_ns\":", begin_ns);
	add_number(&line, ",\"end_ns\":", end_ns);
	add_number(&line, ",\"offset_ns\":", clock_ns(CLOCK_REALTIME) - announce_now());
	add(&line, ",\"chain\":\"");
	add(&line, chain);
	add(&line, leaf);
	add(&line, "\"}");
	append(&line);
}

void announce(const char *kind, uint64_t begin_ns, const char *chain)
{
	append_line(kind, begin_ns, announce_now(), chain, "");
}

void announce_value(const char *kind, uint64_t value)
{
	Line line = {.length = 0};

	add(&line, "{\"kind\":\"");
	add(&line, kind);
	add_number(&line, "\",\"value\":", value);
	add(&line, "}");
	append(&line);
}

FRAME void announce_spin(uint64_t ms, const char *chain)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), end;
	uint64_t stop = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ms * NSEC_PER_MSEC;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < stop)
		for (int i = 0; i < 20000; i++)
			__asm__ volatile("");
	end = clock_ns(CLOCK_MONOTONIC);
	append_line("spin", begin, end, chain, " announce_spin");
}

FRAME void announce_sleep(uint64_t ms, const char *chain)
{
	uint64_t begin = clock_ns(CLOCK_MONOTONIC), end;
	uint64_t stop = begin + ms * NSEC_PER_MSEC;
	struct timespec until = {.tv_sec = (time_t)(stop / NSEC_PER_SEC),
				 .tv_nsec = (long)(stop % NSEC_PER_SEC)};

	/* A signal may end it early. */
	while (call(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, (long)&until, 0) != 0)
		;
	end = clock_ns(CLOCK_MONOTONIC);
	append_line("sleep", begin, end, chain, " announce_sleep");
}
