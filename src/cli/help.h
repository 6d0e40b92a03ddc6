/* SPDX-License-Identifier: GPL-2.0-or-later */
/* help.h - prints what options there are. */
#ifndef WALLPROF_HELP_H
#define WALLPROF_HELP_H

#include "options.h"

/* Prints the help of one command; VERB_PROFILE: of all commands. */
void help_print(enum verb verb);

#endif
