/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "proc_status.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

pid_t proc_status_number(pid_t pid, const char *name)
{
	char path[64], line[256];
	pid_t number = 0;
	FILE *status;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	status = fopen(path, "re");
	while (status && fgets(line, sizeof(line), status)) {
		const char *last;

		if (strncmp(line, name, strlen(name)))
			continue;
		last = strrchr(line, '\t');
		number = last ? strtol(last, NULL, 10) : 0;
		break;
	}
	if (status)
		fclose(status);
	return number;
}
