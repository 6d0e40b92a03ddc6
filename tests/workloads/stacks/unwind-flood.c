/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-flood COUNT PACE MS GATE LIBRARY [BEFORE] - loads BEFORE, if there is one, says that it is
 * "ready", waits for the file GATE, maps a page of LIBRARY, a path to NAME.so, as code COUNT times,
 * each at another address, then unloads BEFORE, loads LIBRARY, which may come to lie there, and
 * says that it has "mapped" all. After each PACE mappings it rests for a millisecond; 0: never.
 * Then, for MS milliseconds, it spins and sleeps in a callback from enter_NAME, which it announces
 * (announce.h).
 */
#include "announce.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE	4096
#define SPIN_MS 10

typedef void (*Enter)(void (*callback)(void));

static uint64_t ms;
static char chain[256];

static void called_back(void)
{
	uint64_t end = announce_now() + ms * NSEC_PER_MSEC;

	while (announce_now() < end) {
		announce_spin(SPIN_MS, chain);
		announce_sleep(1, chain);
	}
}

/* Mappings of one page of a file never become one. */
static void map_often(const char *path, uint64_t count, uint64_t pace)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	announce_check(fd >= 0, path);
	for (uint64_t i = 1; i <= count; i++) {
		announce_check(mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) !=
				       MAP_FAILED,
			       "mmap");
		if (pace && i % pace == 0)
			usleep(1000);
	}
	close(fd);
}

static void *load(const char *path)
{
	struct link_map *map;
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);

	announce_check(library != NULL, path);
	announce_check(dlinfo(library, RTLD_DI_LINKMAP, &map) == 0, path);
	announce_value("address", map->l_addr);
	return library;
}

int main(int argc, char **argv)
{
	const char *path = argv[5], *base;
	char name[64], symbol[80];
	void *library, *before = NULL;
	Enter enter;

	announce_check(argc == 6 || argc == 7,
		       "usage: unwind-flood COUNT PACE MS GATE LIBRARY [BEFORE]:");
	base = strrchr(path, '/');
	ms = strtoull(argv[3], NULL, 10);
	announce_open();
	if (argc == 7)
		before = load(argv[6]);
	announce_value("ready", announce_now());
	while (access(argv[4], F_OK))
		usleep(1000);
	base = base ? base + 1 : path;
	snprintf(name, sizeof(name), "%.*s", (int)strcspn(base, "-."), base);
	snprintf(symbol, sizeof(symbol), "enter_%s", name);
	map_often(path, strtoull(argv[1], NULL, 10), strtoull(argv[2], NULL, 10));
	if (before)
		announce_check(dlclose(before) == 0, "dlclose");
	library = load(path);
	enter = (Enter)dlsym(library, symbol);
	announce_check(enter != NULL, symbol);
	announce_value("mapped", announce_now());
	snprintf(chain, sizeof(chain), "main enter_%s within_%s called_back", name, name);
	enter(called_back);
	return 0;
}
