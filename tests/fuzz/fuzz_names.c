/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A name of D, Fortran, Haskell or Ada: its readable form is bounded, and always the same. */
#include "demangle.h"
#include "demangle_d.h"
#include "demangle_plain.h"
#include "fuzz.h"

#define READABLE_MAX 16384

static void check(char *(*read)(const char *name), const char *name)
{
	char *readable = read(name), *again = read(name);

	fuzz_require(!readable == !again);
	fuzz_require(!readable || (!strcmp(readable, again) && strlen(readable) <= READABLE_MAX));
	free(readable);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = xstrndup((const char *)data, size);
	/* Exactly as long as it is: what is read behind its end is seen. */
	char *copy = fuzz_copy(name, strlen(name) + 1);

	check(demangle_d, copy);
	check(demangle_fortran, copy);
	check(demangle_haskell, copy);
	check(demangle_ada, copy);
	free(copy);
	free(name);
	return 0;
}
