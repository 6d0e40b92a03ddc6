/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-dlopen [-t MS] ROUNDS KEEP LIBRARY… - loads one library after another, ROUNDS times round,
 * and calls enter_NAME of each, where LIBRARY is a path to NAME.so or NAME-ANYTHING.so. It calls
 * back from its frame, and its caller spins for MS milliseconds (2) and sleeps for one. KEEP 0: it
 * is then closed again, so that the next one may be put at the same address, which is written down
 * (announce.h).
 */
#include "announce.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void (*Enter)(void (*callback)(void));

static char chain[256];
static uint64_t ms = 2; /* one tick at least */

static void called_back(void)
{
	announce_spin(ms, chain);
	announce_sleep(1, chain);
}

FRAME static void visit(const char *path, int keep)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	const char *base = strrchr(path, '/');
	char name[64], symbol[80];
	Enter enter;

	base = base ? base + 1 : path;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "-."), base);
	snprintf(symbol, sizeof(symbol), "enter_%s", name);
	announce_check(library != NULL, path);
	enter = (Enter)dlsym(library, symbol);
	announce_check(enter != NULL, symbol);
	snprintf(chain, sizeof(chain), "main visit enter_%s within_%s called_back", name, name);
	announce_value("address", (uint64_t)enter & ~0xfffULL);
	enter(called_back);
	if (!keep)
		announce_check(dlclose(library) == 0, "dlclose");
}

int main(int argc, char **argv)
{
	if (argc > 2 && strcmp(argv[1], "-t") == 0) {
		ms = strtoull(argv[2], NULL, 10);
		argv += 2;
		argc -= 2;
	}
	announce_check(argc >= 4, "usage: unwind-dlopen [-t MS] ROUNDS KEEP LIBRARY…:");
	announce_open();
	for (uint64_t round = strtoull(argv[1], NULL, 10); round > 0; round--)
		for (int i = 3; i < argc; i++)
			visit(argv[i], argv[2][0] == '1');
	return 0;
}
