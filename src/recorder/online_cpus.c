/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "online_cpus.h"
#include "util.h"
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define LIST_MAX 4096 /* the kernel writes at most a page, such as "0-3,8" */

struct OnlineCpus {
	int fd;
	ssize_t length;
	uint64_t changes;
	char list[LIST_MAX];
};

OnlineCpus *online_cpus_open(void)
{
	OnlineCpus *cpus = xcalloc(1, sizeof(*cpus));

	cpus->fd = open("/sys/devices/system/cpu/online", O_RDONLY | O_CLOEXEC);
	cpus->length = pread(cpus->fd, cpus->list, sizeof(cpus->list), 0);
	if (cpus->length > 0)
		return cpus;
	online_cpus_close(cpus);
	return NULL;
}

void online_cpus_check(OnlineCpus *cpus)
{
	char list[LIST_MAX];
	ssize_t length = pread(cpus->fd, list, sizeof(list), 0);

	if (length <= 0 || (length == cpus->length && !memcmp(list, cpus->list, length)))
		return;
	cpus->changes++;
	cpus->length = length;
	memcpy(cpus->list, list, length);
}

uint64_t online_cpus_changes(const OnlineCpus *cpus)
{
	return cpus->changes;
}

void online_cpus_close(OnlineCpus *cpus)
{
	if (!cpus)
		return;
	closep(&cpus->fd);
	free(cpus);
}
