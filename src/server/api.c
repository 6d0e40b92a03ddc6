/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "api.h"
#include "api_symbolicate.h"
#include "disassembly.h"
#include "served_symbols.h"
#include "sources.h"
#include "util.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOURCE_MAX (16u << 20)

struct Api {
	const char *profile;
	struct stat read; /* the profile's file when its libraries were read */
	int read_error;
	ProfileLibs libs;
	ElfIdentifier *identifier;
};

Api *api_new(const char *profile)
{
	Api *api = xcalloc(1, sizeof(*api));

	api->profile = profile;
	api->identifier = elf_identifier_new(elf_identify);
	return api;
}

void api_free(Api *api)
{
	if (!api)
		return;
	profile_libs_free(&api->libs);
	elf_identifier_free(api->identifier);
	free(api);
}

/* ---- the request ------------------------------------------------------------------------- */

static json_t *error_json(const char *why)
{
	return json_pack("{s:s}", "error", why);
}

/* Reads the libraries again if the profile's file has changed. */
static int read_libs(Api *api)
{
	struct stat st;

	if (stat(api->profile, &st))
		return -errno;
	if (st.st_ino == api->read.st_ino && st.st_dev == api->read.st_dev &&
	    st.st_mtim.tv_sec == api->read.st_mtim.tv_sec &&
	    st.st_mtim.tv_nsec == api->read.st_mtim.tv_nsec)
		return api->read_error;
	profile_libs_free(&api->libs);
	api->read = st;
	api->read_error = profile_libs_read(api->profile, &api->libs);
	return api->read_error;
}

static uint64_t deadline(void)
{
	return now_ns() + SERVED_SECONDS * NSEC_PER_SEC;
}

static const char *string_member(const json_t *object, const char *key)
{
	return json_string_value(json_object_get(object, key));
}

/* Parses an address such as "0x1f00". */
static bool hex_member(const json_t *object, const char *key, uint64_t *ret_address)
{
	const char *text = string_member(object, key);
	char *end;

	if (!text || strncmp(text, "0x", 2) != 0 || !text[2] || text[2] == '-' || text[2] == '+')
		return false;
	errno = 0;
	*ret_address = strtoull(text + 2, &end, 16);
	return !*end && !errno && *ret_address <= INT64_MAX;
}

static const ServedLib *requested_lib(const Api *api, const json_t *request)
{
	const char *name = string_member(request, "debugName"),
		   *id = string_member(request, "debugId");

	return name && id ? profile_libs_find(&api->libs, name, id) : NULL;
}

/* ---- /source/v1 ---------------------------------------------------------------------------- */

static bool names_source(const struct rec_symbol *symbol, const char *path)
{
	const char *at = symbol->text;

	for (uint32_t i = 0; i < symbol->count; i++) {
		const char *name = at + sizeof(uint32_t), *source = name + strlen(name) + 1;

		if (!strcmp(source, path))
			return true;
		at = source + strlen(source) + 1;
	}
	return false;
}

static json_t *read_source(const char *path)
{
	_cleanup_close_ int fd = -1;
	_cleanup_free_ char *text = NULL;
	struct stat st;
	ssize_t got;
	json_t *source;

	fd = sources_open_by_path(NULL, 0, path, &st);
	if (fd < 0)
		return error_json(strerror(-fd));
	if (st.st_size > SOURCE_MAX)
		return error_json("the source file is too large");
	text = xmalloc(st.st_size + 1);
	got = pread(fd, text, st.st_size, 0);
	if (got < 0)
		return error_json(strerror(errno));
	source = json_stringn(text, got);
	if (!source)
		return error_json("the file is not UTF-8 text");
	return json_pack("{s:n, s:n, s:s, s:o}", "symbolsLastModified", "sourceLastModified",
			 "file", path, "source", source);
}

/* Only files that the debug information of the address names are served. */
static json_t *answer_source(Api *api, const json_t *request)
{
	const ServedLib *lib = requested_lib(api, request);
	const char *path = string_member(request, "file");
	const struct rec_symbol *symbol;
	ServedSymbols symbols;
	uint64_t address;
	json_t *answer;
	int error;

	if (!path || !hex_member(request, "moduleOffset", &address))
		return error_json("expected debugName, debugId, moduleOffset and file");
	if (!lib)
		return error_json("no such library in the profile");
	error = served_symbols_resolve(api->identifier, lib, &address, 1, deadline(), &symbols);
	symbol = error ? NULL : served_symbols_find(&symbols, address);
	if (error)
		answer = error_json(served_symbols_error(error));
	else if (!symbol || !names_source(symbol, path))
		answer = error_json("the debug information of that address does not name the file");
	else
		answer = read_source(path);
	served_symbols_free(&symbols);
	return answer;
}

/* ---- /asm/v1 ------------------------------------------------------------------------------- */

static json_t *instructions_json(const Disassembly *code)
{
	json_t *list = json_array();

	for (size_t i = 0; i < code->list.count; i++) {
		const ServedInstruction *instruction = &code->list.items[i];
		json_t *text = json_string(code->texts.items + instruction->text);

		json_array_append_new(list, json_pack("[i, o]", (int)instruction->offset,
						      text ?: json_string("(bad)")));
	}
	return list;
}

/*
 * Returns the size of a function up to its end, if the file has it, and otherwise the size that the
 * viewer gave.
 */
static uint64_t size_of_function(Api *api, const ServedLib *lib, uint64_t start, uint64_t size)
{
	const struct rec_symbol *symbol;
	ServedSymbols symbols;

	if (!served_symbols_resolve(api->identifier, lib, &start, 1, deadline(), &symbols)) {
		symbol = served_symbols_find(&symbols, start);
		if (symbol && symbol->function_size &&
		    symbol->function == symbols.base_svma + start)
			size = symbol->function_size;
	}
	served_symbols_free(&symbols);
	return size;
}

static json_t *answer_asm(Api *api, const json_t *request)
{
	const ServedLib *lib = requested_lib(api, request);
	char start_text[24], size_text[24];
	uint64_t start, size;
	Disassembly code;
	json_t *answer;
	int error;

	if (!hex_member(request, "startAddress", &start) || !hex_member(request, "size", &size))
		return error_json("expected debugName, debugId, startAddress and size");
	if (!lib)
		return error_json("no such library in the profile");
	if (json_is_true(json_object_get(request, "continueUntilFunctionEnd")))
		size = size_of_function(api, lib, start, size);
	error = disassembly_read(api->identifier, lib, start, MIN(size, SERVED_CODE_MAX), &code);
	snprintf(start_text, sizeof(start_text), "0x%" PRIx64, start);
	snprintf(size_text, sizeof(size_text), "0x%" PRIx32, code.size);
	answer = error ? error_json(served_symbols_error(error))
		       : json_pack("{s:s, s:s, s:s, s:[s], s:o}", "startAddress", start_text,
				   "size", size_text, "arch", "x86_64", "syntax", "Intel",
				   "instructions", instructions_json(&code));
	disassembly_free(&code);
	return answer;
}

/* ---- all of them --------------------------------------------------------------------------- */

static json_t *answer_symbols(Api *api, const json_t *request)
{
	return api_symbolicate(api->identifier, &api->libs, request);
}

static const struct {
	const char *path;
	json_t *(*answer)(Api *api, const json_t *request);
} calls[] = {
	{"symbolicate/v5", answer_symbols},
	{"source/v1", answer_source},
	{"asm/v1", answer_asm},
};

bool api_is_path(const char *path)
{
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (!strcmp(path, calls[i].path))
			return true;
	return false;
}

static json_t *answer_call(Api *api, const char *path, const json_t *request)
{
	int error;

	if (!json_is_object(request))
		return error_json("expected a JSON object");
	error = read_libs(api);
	if (error)
		return error_json(error == -EBADMSG ? "the profile has no list of libraries"
						    : strerror(-error));
	for (size_t i = 0; i < ARRAY_LEN(calls); i++)
		if (!strcmp(path, calls[i].path))
			return calls[i].answer(api, request);
	return error_json("no such API call");
}

char *api_answer(Api *api, const char *path, const char *body, size_t size)
{
	json_t *request = json_loadb(body, size, JSON_REJECT_DUPLICATES, NULL);
	json_t *answer = answer_call(api, path, request);
	char *text = json_dumps(answer, JSON_COMPACT);

	json_decref(request);
	json_decref(answer);
	return text ?: xstrdup("{\"error\":\"the answer is not UTF-8 text\"}");
}
