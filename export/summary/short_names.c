/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "short_names.h"
#include "text.h"

/* The path of a file that is longer loses its folders. */
#define SHORT_NAME 24

char *short_names_thread(const Timeline *timeline, const Thread *thread)
{
	const Process *process = &timeline->processes.items[thread->process];
	_cleanup_free_ char *name = NULL, *of = NULL;

	if (!thread->name || !process->name || !strcmp(thread->name, process->name) ||
	    thread->is_main)
		return xstrdup(process->label ? process->label : "unknown");
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
			       ? strndup(variable + 2, length - (variable + 2 - name) - 1)
			       : xstrdup(name);
	default:
		return xstrdup(name);
	}
}

bool short_names_exists(const Object *object)
{
	return object->kind != OBJECT_TIMER &&
	       (object->kind != OBJECT_FUTEX || strstr(object->name, ": "));
}
