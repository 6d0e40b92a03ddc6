/* SPDX-License-Identifier: GPL-2.0-or-later */
/* lines.h - what lines.c inlines from another file. */
#include <stdint.h>
#include <time.h>

static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ULL + t.tv_nsec;
}

/* Burns CPU time. All but some thousandths of it goes into the line of the loop. */
__attribute__((always_inline)) static inline void burn_inlined(uint64_t ns)
{
	uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

	while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end) {
		uint64_t n = 1000000;

		__asm__ volatile("0: dec %0\n\tjnz 0b" : "+r"(n)); /* BURNS INLINED */
	}
}
