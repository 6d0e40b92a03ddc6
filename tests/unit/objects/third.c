/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Compiled without debug information. */
#include <stdlib.h>

static __attribute__((noinline)) int also_without(int x)
{
	return rand() % (x + 1);
}

int without_debug_info(int x);
int without_debug_info(int x)
{
	return also_without(x) + also_without(x + 1);
}
