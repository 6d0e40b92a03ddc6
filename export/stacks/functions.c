/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "functions.h"
#include "script_language.h"
#include <string.h>

static char *library_key(const Library *library)
{
	char build_id[2 * UINT8_MAX + 1] = "";

	for (size_t i = 0; i < library->build_id_len; i++)
		snprintf(build_id + 2 * i, 3, "%02x", library->build_id[i]);
	return xasprintf("%s/%s", build_id, library->path);
}

static uint32_t first_alike(Functions *functions, uint32_t lib)
{
	_cleanup_free_ char *key = library_key(&functions->frames->libraries.items[lib]);
	uint32_t number = strings_intern(&functions->library_keys, key);

	if (number == functions->key_lib.count)
		*vec_push(&functions->key_lib) = lib;
	return functions->key_lib.items[number];
}

static uint32_t library_of(Functions *functions, uint32_t lib)
{
	if (lib == LIBRARY_NONE)
		return LIBRARY_NONE;
	while (functions->alike.count <= lib)
		*vec_push(&functions->alike) = LIBRARY_NONE;
	if (functions->alike.items[lib] == LIBRARY_NONE)
		functions->alike.items[lib] = first_alike(functions, lib);
	return functions->alike.items[lib];
}

/* Whether a file comes with a language, as "/usr/lib/python3.13/lib-dynload/_queue.so" does. */
static bool is_extension(const Functions *functions, uint32_t lib)
{
	return lib != LIBRARY_NONE &&
	       script_is_library(functions->frames->libraries.items[lib].path);
}

uint32_t functions_number(Functions *functions, const Frame *frame)
{
	Function function = {frame->function, library_of(functions, frame->lib), frame->nameless,
			     false};
	uint64_t key = (uint64_t)function.name << 32 | function.lib;
	uint32_t number = map_get(&functions->index, key);

	if (number == MAP_NONE) {
		function.library = frame->library || is_extension(functions, function.lib);
		number = functions->list.count;
		map_set(&functions->index, key, number);
		*vec_push(&functions->list) = function;
	}
	return number;
}

void functions_free(Functions *functions)
{
	vec_free(&functions->list);
	map_free(&functions->index);
	vec_free(&functions->alike);
	strings_free(&functions->library_keys);
	vec_free(&functions->key_lib);
}

const char *functions_name(const Functions *functions, uint32_t number)
{
	return strings_get(&functions->frames->strings, functions->list.items[number].name);
}

const char *functions_library(const Functions *functions, uint32_t number)
{
	uint32_t lib = functions->list.items[number].lib;

	return lib == LIBRARY_NONE ? NULL : functions->frames->libraries.items[lib].name;
}

char *function_text(const char *function, const char *library)
{
	/* A function that is named by its address has its library in the name. */
	return !library || !strncmp(function, "0x", 2) ? xstrdup(function)
						       : xasprintf("%s (%s)", function, library);
}

bool functions_called(const Functions *functions, uint32_t number, const char *name)
{
	const char *function = functions_name(functions, number);
	size_t length = strlen(name);
	_cleanup_free_ char *text = NULL;

	if (!strncmp(function, name, length) &&
	    (function[length] == '\0' || function[length] == '('))
		return true;
	if (strncmp(name, function, strlen(function)) != 0)
		return false;
	text = function_text(function, functions_library(functions, number));
	return !strcmp(text, name);
}
