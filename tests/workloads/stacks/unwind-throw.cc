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
	announce_check(argc == 3, "usage: unwind-throw MS DEPTH:");
	unsigned long ms = std::strtoul(argv[1], nullptr, 10);
	unsigned long depth = std::strtoul(argv[2], nullptr, 10), thrown = 0;
	announce_open();
	uint64_t begin = announce_now(), stop = announce_cpu() + ms * NSEC_PER_MSEC;
	for (; announce_cpu() < stop; thrown++)
		announce_check(catches(depth, thrown + 1) == thrown + 1, "the value thrown");
	announce("spin", begin,
	     "main + announce_cpu announce_check catches dive thrower lib:LIBSTDC++ lib:LIBGCC lib:LIBC "
	     "lib:LOADER plt:");
	announce_check(cleaned == thrown * depth, "destructors");
	announce_value("thrown", thrown);
	return 0;
}
