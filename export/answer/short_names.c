/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "short_names.h"
#include "text.h"

/* The path of a file that is longer loses its folders. */
#define SHORT_NAME 24
/* A longer label is cut. */
#define SHORT_LABEL 44
/* What a process does follows in its title after so many words: "postgres: user base host SELECT".
 */
#define TITLE_WORDS 4

/* Returns how many bytes of a title (setproctitle(3): "NAME: …") do not change all the time. */
static size_t title_length(const char *label, const char *name)
{
	size_t length = strlen(name), at = 0;

	if (strncmp(label, name, length) != 0 || label[length] != ':')
		return strlen(label);
	for (int words = 0; words < TITLE_WORDS && label[at]; words++) {
		at += strspn(label + at, " ");
		at += strcspn(label + at, " ");
	}
	return at;
}

/* Returns how many bytes of UTF-8 text have so many characters. */
static size_t bytes_of(const char *text, size_t characters)
{
	size_t at = 0;

	for (; text[at]; at++)
		if (((unsigned char)text[at] & 0xc0) != 0x80 && characters-- == 0)
			break;
	return at;
}

static char *process_label(const Process *process)
{
	const char *label = process->label ? process->label : "unknown";
	size_t length = title_length(label, process->name ? process->name : "");

	length = MIN(length, bytes_of(label, SHORT_LABEL));
	return xasprintf("%.*s%s", (int)length, label, label[length] ? "…" : "");
}

char *short_names_process(const Timeline *timeline, uint32_t process)
{
	return process_label(&timeline->processes.items[process]);
}

char *short_names_cut(const char *text, size_t characters)
{
	size_t length = bytes_of(text, characters);

	return xasprintf("%.*s%s", (int)length, text, text[length] ? "…" : "");
}

bool short_names_own(const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];

	return thread->name && process->name && strcmp(thread->name, process->name) != 0 &&
	       !thread->is_main;
}

char *short_names_thread(const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];
	_cleanup_free_ char *name = NULL, *of = NULL;

	if (!short_names_own(timeline, thread))
		return process_label(process);
	name = text_printable(thread->name);
	of = text_printable(process->name);
	return xasprintf("%s (%s)", name, of);
}

char *short_names_object(const Object *object)
{
	_cleanup_free_ char *name = text_printable(object->name);
	const char *slash = strrchr(name, '/'), *arrow = strstr(name, " → ");
	const char *variable = strstr(name, ": ");
	char *user = strstr(name, " (");
	size_t length = strlen(name);

	switch (object->kind) {
	case OBJECT_FILE:
		return slash && slash > name && length > SHORT_NAME ? xasprintf("…%s", slash)
								    : xstrdup(name);
	case OBJECT_SOCKET: /* the own port is a number that means nothing, nor does its only user
			     */
		if (user && name[length - 1] == ')' && !strstr(user, ", "))
			*user = '\0';
		return arrow ? xasprintf("%.*s%s", (int)strcspn(name, " "), name, arrow)
			     : xstrdup(name);
	case OBJECT_FUTEX: /* "0x4080 (prog: table_lock)" */
		return variable && name[length - 1] == ')'
			       ? xstrndup(variable + 2, length - (variable + 2 - name) - 1)
			       : xstrdup(name);
	default:
		return xstrdup(name);
	}
}

bool short_names_exists(const Object *object)
{
	switch (object->kind) {
	case OBJECT_TIMER:
	case OBJECT_ANONYMOUS:
		return false;
	case OBJECT_FUTEX:
		return strstr(object->name, ": ");
	case OBJECT_EPOLL:
		return !strstr(object->name, ":[");
	default:
		return true;
	}
}
