// SPDX-License-Identifier: GPL-2.0-or-later
//
// unwind-throw MS DEPTH - throws through DEPTH frames with something to clean up, and catches,
// for MS milliseconds (announce.h); built by g++ without frame pointers.
#include "announce.h"
#include <cstdio>
#include <cstdlib>

static volatile unsigned long cleaned;

struct Cleaned {
	__attribute__((always_inline)) ~Cleaned()
	{
		cleaned = cleaned + 1;
	}
};

extern "C" {
FRAME void thrower(unsigned long value)
{
	throw value;
}

FRAME void dive(unsigned long left, unsigned long value)
{
	Cleaned here;

	if (left > 1)
		dive(left - 1, value);
	else
		thrower(value);
}

FRAME unsigned long catches(unsigned long depth, unsigned long value)
{
	try {
		dive(depth, value);
	} catch (unsigned long caught) {
		return caught;
	}
	return 0;
}
}

int main(int argc, char **argv)
{
	told_check(argc == 3, "usage: unwind-throw MS DEPTH:");
	unsigned long ms = std::strtoul(argv[1], nullptr, 10);
	unsigned long depth = std::strtoul(argv[2], nullptr, 10), thrown = 0;
	told_open();
	uint64_t begin = told_now(), stop = told_cpu() + ms * NSEC_PER_MSEC;
	for (; told_cpu() < stop; thrown++)
		told_check(catches(depth, thrown + 1) == thrown + 1, "the value thrown");
	told("spin", begin,
	     "main + told_cpu told_check catches dive thrower lib:LIBSTDC++ lib:LIBGCC lib:LIBC "
	     "lib:LOADER plt:");
	told_check(cleaned == thrown * depth, "destructors");
	told_value("thrown", thrown);
	return 0;
}
