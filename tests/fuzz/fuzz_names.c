/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A name of D, Fortran, Haskell or Ada: its readable form is bounded, and always the same. */
#include "demangle.h"
#include "demangle_d.h"
#include "demangle_plain.h"
#include "fuzz.h"

/* Back references make a name of D longer than any multiple of what is read. */
#define D_READABLE_MAX 16384
/* What four bytes of another language's name become at most: "Z64H" is (#,,,…#), with 63 commas. */
#define TUPLE_MAX 67

static void check(char *(*read)(const char *name), const char *name, size_t most)
{
	char *readable = read(name), *again = read(name);

	fuzz_require(!readable == !again);
	fuzz_require(!readable || (!strcmp(readable, again) && strlen(readable) <= most));
	free(readable);
	free(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = xstrndup((const char *)data, size);
	/* Exactly as long as it is: what is read behind its end is seen. */
	char *copy = fuzz_copy(name, strlen(name) + 1);
	size_t most = (strlen(name) / 4 + 1) * TUPLE_MAX;

	check(demangle_d, copy, D_READABLE_MAX);
	check(demangle_fortran, copy, most);
	check(demangle_haskell, copy, most);
	check(demangle_ada, copy, most);
	free(copy);
	free(name);
	return 0;
}
