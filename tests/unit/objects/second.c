/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Plain C: static functions, clones, blocks with inlined calls, cold parts. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static inline __attribute__((always_inline)) int mix(int a, int b)
{
	return (a * 31 + b) ^ (a >> 3);
}

static inline __attribute__((always_inline)) int fold(const char *s)
{
	int sum = 0;

	for (; *s; s++)
		sum = mix(sum, *s);
	return sum;
}

/* A clone with fewer parameters is made of it. */
static __attribute__((noinline)) int cloned(int x, int constant)
{
	char text[32];

	if (x < 0)
		abort();
	snprintf(text, sizeof(text), "%d %d", x, constant);
	return fold(text);
}

#ifdef NESTED
/* GNU C: a function inside of another, which lies elsewhere. */
static __attribute__((noinline)) int with_nested(int x)
{
	__attribute__((noinline)) int nested(int y)
	{
		return mix(x, y) + fold("nested");
	}
	return nested(x) + nested(x + 1);
}
#endif

int never_called(int x);
__attribute__((noinline)) int never_called(int x)
{
#define MORE(n) x = mix(x, n) * fold("unused" #n) + printf("%d", x);
#define MORE8(n)                                                                                   \
	MORE(n) MORE(n + 1) MORE(n + 2) MORE(n + 3) MORE(n + 4) MORE(n + 5) MORE(n + 6) MORE(n + 7)
	MORE8(0) MORE8(8) MORE8(16) MORE8(24) MORE8(32) MORE8(40) MORE8(48) MORE8(56) return x;
}

int plain_entry(int x);
int plain_entry(int x)
{
	int sum = cloned(x, 42);

	for (int i = 0; i < x; i++) {
		int inner = mix(i, sum);

		if (inner & 1) {
			int deeper = fold(getenv("HOME") ? "home" : "none");

			sum += mix(deeper, inner);
		}
	}
#ifdef NESTED
	sum += with_nested(x);
#endif
	return sum + (int)strlen(getenv("PATH") ?: "");
}
