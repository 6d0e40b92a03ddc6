/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "load_fallback.h"
#include "maps.h"
#include "wallprof.skel.h"
#include "wallprof_calls.skel.h"

_Static_assert(sizeof(struct wallprof__rodata) == sizeof(struct wallprof_calls__rodata) &&
		       sizeof(struct wallprof__bss) == sizeof(struct wallprof_calls__bss),
	       "both objects have the same variables");

const void *load_fallback_elf(size_t *ret_size)
{
	return wallprof_calls__elf_bytes(ret_size);
}
