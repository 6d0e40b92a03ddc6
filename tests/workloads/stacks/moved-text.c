/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * moved-text MODE MS ROUNDS LIBRARY - puts anonymous memory with the same bytes over the text of a
 * library (unwind-library.c with NAME moved), as programs do that want large pages for it, and
 * calls it ROUNDS times; what it calls back spins for MS milliseconds and sleeps for one.
 *
 * copy     maps memory over the text, and copies the text there
 * remap    copies it elsewhere, and moves that memory over the text
 * half     copies all pages of the text but the first, which stays the file's
 * changed  like copy, with another last byte, which is never run: it is not the file's text any
 * more
 * silent   maps memory over the text that userfaultfd(2) should bring, and never brings any; the
 * text is not called
 */
#include "announce.h"
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <linux/userfaultfd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PAGE 4096UL

typedef void (*Enter)(void (*callback)(void));

static const char chain[] = "main enter_moved within_moved called_back";
static uint64_t ms;

typedef struct Text {
	const char *path;
	uintptr_t start, end; /* of the library's executable segment */
} Text;

static int find_text(struct dl_phdr_info *info, size_t size, void *user)
{
	Text *text = user;

	(void)size;
	if (!strstr(info->dlpi_name, text->path))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];

		if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X))
			continue;
		text->start = info->dlpi_addr + segment->p_vaddr;
		text->end = text->start + segment->p_memsz;
	}
	return 1;
}

static void *map(uintptr_t at, size_t size, int protection, int flags)
{
	void *memory =
		mmap((void *)at, size, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);

	announce_check(memory != MAP_FAILED, "mmap");
	return memory;
}

static void move(const char *mode, const Text *text)
{
	uintptr_t start = text->start & ~(PAGE - 1), end = (text->end + PAGE - 1) & ~(PAGE - 1);
	char *copy, *moved;
	size_t size;

	if (!strcmp(mode, "half"))
		start += PAGE;
	size = end - start;
	copy = map(0, size, PROT_READ | PROT_WRITE, 0);
	memcpy(copy, (void *)start, size);
	if (!strcmp(mode, "changed"))
		copy[text->end - 1 - start] ^= 1;
	if (!strcmp(mode, "remap")) {
		announce_check(mprotect(copy, size, PROT_READ | PROT_EXEC) == 0, "mprotect");
		moved = mremap(copy, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)start);
		announce_check(moved == (void *)start, "mremap");
		return;
	}
	map(start, size, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_FIXED);
	memcpy((void *)start, copy, size);
	announce_check(mprotect((void *)start, size, PROT_READ | PROT_EXEC) == 0, "mprotect");
	/* The recorder compares the bytes while this process lives. */
	usleep(100000);
}

static void move_silently(const Text *text)
{
	uintptr_t start = text->start & ~(PAGE - 1), end = (text->end + PAGE - 1) & ~(PAGE - 1);
	struct uffdio_api api = {.api = UFFD_API};
	struct uffdio_register area = {.range = {start, end - start},
				       .mode = UFFDIO_REGISTER_MODE_MISSING};
	int fd = syscall(SYS_userfaultfd, O_CLOEXEC);

	announce_check(fd >= 0 && ioctl(fd, UFFDIO_API, &api) == 0, "userfaultfd");
	map(start, end - start, PROT_READ | PROT_EXEC, MAP_FIXED);
	announce_check(ioctl(fd, UFFDIO_REGISTER, &area) == 0, "UFFDIO_REGISTER");
}

static void called_back(void)
{
	announce_spin(ms, chain);
	announce_sleep(1, chain);
}

int main(int argc, char **argv)
{
	Text text = {};
	void *library;
	Enter enter;

	announce_check(argc == 5, "usage: moved-text MODE MS ROUNDS LIBRARY:");
	announce_open();
	ms = strtoull(argv[2], NULL, 10);
	library = dlopen(argv[4], RTLD_NOW);
	announce_check(library != NULL, argv[4]);
	enter = (Enter)dlsym(library, "enter_moved");
	announce_check(enter != NULL, "enter_moved");
	text.path = argv[4];
	dl_iterate_phdr(find_text, &text);
	announce_check(text.start != 0, "text");
	if (!strcmp(argv[1], "silent")) {
		move_silently(&text);
		announce_value("moved", text.start);
		for (;;)
			pause();
	}
	move(argv[1], &text);
	announce_value("moved", text.start);
	for (uint64_t round = strtoull(argv[3], NULL, 10); round > 0; round--)
		enter(called_back);
	_exit(0); /* the library's text may not be fit to be run at its end */
}
