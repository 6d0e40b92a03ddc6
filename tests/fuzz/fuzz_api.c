/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a viewer asks of `wallprof open`, and the profile that it asks about. The first byte says
 * which: P, and the rest is a profile; else the rest is a question.
 */
#include "api.h"
#include "fuzz.h"
#include "profile_libs.h"
#include <jansson.h>
#include <string.h>

/* Libraries that are there, are none, and are not there. */
static const char profile[] =
	"{\"meta\":{},\"libs\":["
	"{\"name\":\"self\",\"path\":\"/proc/self/exe\",\"debugName\":\"self\",\"debugPath\":\"/"
	"proc/"
	"self/exe\",\"breakpadId\":\"00000000000000000000000000000000A\",\"codeId\":\"00\"},"
	"{\"name\":\"none\",\"path\":\"/dev/null\",\"debugName\":\"none\",\"debugPath\":\"/dev/"
	"null\","
	"\"breakpadId\":\"11111111111111111111111111111111A\",\"codeId\":null},"
	"{\"name\":\"gone\",\"path\":\"/nowhere\",\"debugName\":\"gone\",\"debugPath\":\"/"
	"nowhere\","
	"\"breakpadId\":\"22222222222222222222222222222222A\",\"codeId\":\"22\"}]}";

static void ask(Api *api, const char *path, const uint8_t *data, size_t size)
{
	_cleanup_free_ char *body = fuzz_copy(data, size);
	_cleanup_free_ char *answer = api_answer(api, path, body, size);
	json_t *json;

	fuzz_require(answer);
	json = json_loads(answer, 0, NULL);
	fuzz_require(json && json_is_object(json));
	json_decref(json);
}

static void read_profile(const uint8_t *data, size_t size)
{
	int fd = fuzz_file(data, size);
	_cleanup_free_ char *path = xasprintf("/proc/self/fd/%d", fd);
	ProfileLibs libs;

	profile_libs_read(path, &libs);
	for (size_t i = 0; i < libs.count; i++)
		fuzz_require(libs.items[i].debug_name && libs.items[i].debug_id &&
			     libs.items[i].build_id_len <= sizeof(libs.items[i].build_id));
	profile_libs_free(&libs);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const paths[] = {"symbolicate/v5", "source/v1", "asm/v1"};
	static Api *api;
	static char *path;

	if (size == 0)
		return 0;
	if (!api) {
		path = xasprintf("/proc/self/fd/%d", fuzz_file(profile, strlen(profile)));
		api = api_new(path);
	}
	if (data[0] == 'P')
		read_profile(data + 1, size - 1);
	else
		ask(api, paths[data[0] % ARRAY_LEN(paths)], data + 1, size - 1);
	return 0;
}
