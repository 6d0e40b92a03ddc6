/* SPDX-License-Identifier: GPL-2.0-or-later */
/* planted_library.c - a library for planted.c: its function runs and waits. */
#include <time.h>
#include <unistd.h>

void planted_call(void)
{
	clock_t end = clock() + CLOCKS_PER_SEC / 50;

	while (clock() < end)
		;
	usleep(5000);
}
