/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "commands.h"
#include <stdio.h>

static const char notice[] =
	"wallprof " WALLPROF_VERSION "\n"
	"Copyright 2026 wallprof maintainers\n"
	"\n"
	"This program is free software; you can redistribute it and/or modify it under\n"
	"the terms of the GNU General Public License as published by the Free Software\n"
	"Foundation; either version 2 of the License, or (at your option) any later\n"
	"version.\n"
	"\n"
	"This program is distributed in the hope that it will be useful, but WITHOUT ANY\n"
	"WARRANTY; without even the implied warranty of MERCHANTABILITY or FITNESS FOR A\n"
	"PARTICULAR PURPOSE.\n"
	"\n";

#ifdef LICENSES_FILE

/* tools/package writes this text; see licenses_text.S. */
extern const char licenses_text[], licenses_text_end[];

void licenses_print(void)
{
	fputs(notice, stdout);
	fwrite(licenses_text, 1, licenses_text_end - licenses_text, stdout);
}

#else

void licenses_print(void)
{
	fputs(notice, stdout);
	puts("It uses the libraries that are installed here; their packages have their licences.");
}

#endif
