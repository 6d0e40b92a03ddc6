/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * places read|write MS - two functions each read a line from stdin, or each write one to stdout
 * after MS milliseconds: below the same functions of the C library, at different places of the
 * program.
 */
#include "frame.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char line[80];
static volatile int done; /* after each call, so that none is the caller's last act */

FRAME static void read_config(void)
{
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
	done++;
}

FRAME static void read_reply(void)
{
	if (!fgets(line, sizeof(line), stdin))
		exit(1);
	done++;
}

FRAME static void write_config(useconds_t us)
{
	usleep(us);
	if (puts("config") < 0 || fflush(stdout))
		exit(1);
	done++;
}

FRAME static void write_reply(useconds_t us)
{
	usleep(us);
	if (puts("reply") < 0 || fflush(stdout))
		exit(1);
	done++;
}

int main(int argc, char **argv)
{
	useconds_t us = argc > 2 ? 1000 * atoi(argv[2]) : 0;

	if (argc > 1 && !strcmp(argv[1], "read")) {
		read_config();
		read_reply();
	} else {
		write_config(us);
		write_reply(us);
	}
	return done == 2 ? 0 : 1;
}
