/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bench-gaps HZ MS - a loop that reads the time-stamp counter for MS milliseconds, and the time
 * that interrupts take from it. With HZ above 0, a perf event of the CPU's clock interrupts it so
 * often. The event has no buffer and no program, so the difference to HZ 0 is what an empty tick
 * costs.
 *
 * Prints three numbers: gaps per second of the loop, microseconds that they take in each of these
 * seconds, and milliseconds that are in none of them, because another task had the CPU.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <x86intrin.h>

#define NS_PER_SEC  1000000000L
#define GAP_MIN_NS  300	   /* a turn of the loop takes some 20 ns */
#define GAP_MAX_NS  200000 /* longer: not an interrupt, but another task, or the hypervisor */
#define CALIBRATION 50000000L

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	exit(1);
}

static int64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * NS_PER_SEC + now.tv_nsec;
}

/* Returns cycles of the counter per nanosecond. */
static double counter_speed(void)
{
	int64_t begin_ns = now_ns(), end_ns = begin_ns;
	uint64_t begin = __rdtsc();

	while (end_ns - begin_ns < CALIBRATION)
		end_ns = now_ns();
	return (double)(__rdtsc() - begin) / (end_ns - begin_ns);
}

/* The event ends with the process. */
static void start_ticks(unsigned long hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = NS_PER_SEC / hz,
	};
	int fd = syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);

	must(fd >= 0, "perf_event_open");
}

int main(int argc, char **argv)
{
	uint64_t gap_min, gap_max, begin, last, end, gaps = 0, in_gaps = 0, elsewhere = 0;
	unsigned long hz, ms;
	double speed, seconds;

	if (argc != 3) {
		fputs("usage: bench-gaps HZ MS\n", stderr);
		return 2;
	}
	hz = strtoul(argv[1], NULL, 10);
	ms = strtoul(argv[2], NULL, 10);
	speed = counter_speed();
	gap_min = GAP_MIN_NS * speed;
	gap_max = GAP_MAX_NS * speed;
	if (hz)
		start_ticks(hz);
	begin = last = __rdtsc();
	end = begin + ms * speed * 1e6;
	while (last < end) {
		uint64_t now = __rdtsc(), gap = now - last;

		if (gap > gap_max) {
			elsewhere += gap;
		} else if (gap > gap_min) {
			gaps++;
			in_gaps += gap;
		}
		last = now;
	}
	seconds = (last - begin - elsewhere) / speed / 1e9;
	printf("%.1f %.1f %.1f\n", gaps / seconds, in_gaps / speed / 1e3 / seconds,
	       elsewhere / speed / 1e6);
	return 0;
}
