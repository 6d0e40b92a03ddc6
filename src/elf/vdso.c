/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "vdso.h"
#include "util.h"
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <unistd.h>

/* Only /proc/self/maps has the mapping's size. */
static size_t mapping_size(uint64_t address)
{
	_cleanup_fclose_ FILE *maps = fopen("/proc/self/maps", "re");
	char line[256];

	while (maps && fgets(line, sizeof(line), maps)) {
		uint64_t start, end;

		if (sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && start == address)
			return end - start;
	}
	return 0;
}

const void *vdso_image(size_t *ret_size)
{
	unsigned long address = getauxval(AT_SYSINFO_EHDR);

	*ret_size = address ? mapping_size(address) : 0;
	return *ret_size ? (const void *)address : NULL;
}

int vdso_open(void)
{
	size_t size;
	const void *image = vdso_image(&size);
	int fd = image ? memfd_create("vdso", MFD_CLOEXEC) : -1, error;

	if (fd < 0)
		return image ? -errno : -ENOENT;
	error = write_all(fd, image, size);
	if (error) {
		close(fd);
		return error;
	}
	return fd;
}

int vdso_identify(ElfIdentity *ret_identity)
{
	size_t size;
	const void *image = vdso_image(&size);

	*ret_identity = (ElfIdentity){};
	return image ? elf_identify_image(image, size, ret_identity) : -ENOENT;
}
