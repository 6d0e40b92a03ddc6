/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "formats.h"
#include "compressor.h"
#include "util.h"

const FormatInfo format_table[] = {
	{FORMAT_FIREFOX, "firefox", "gecko", ".json", "wallprof.json.gz", "a Firefox profile"},
	{FORMAT_CHROME, "chrome", NULL, ".trace.json", "wallprof.trace.json.gz", "a Chrome trace"},
	{FORMAT_HTML, "html", NULL, ".html", "wallprof.html", "an HTML page"},
	{FORMAT_FOLDED, "folded", NULL, ".folded", "wallprof.folded", "folded stacks"},
	{FORMAT_PPROF, "pprof", NULL, ".pb", "wallprof.pb.gz", "a pprof profile"},
	{FORMAT_SPEEDSCOPE, "speedscope", NULL, ".speedscope.json", "wallprof.speedscope.json.gz",
	 "a speedscope profile"},
	{FORMAT_SVG, "svg", NULL, ".svg", "wallprof.svg", "a flame graph"},
};
const size_t format_count = ARRAY_LEN(format_table);

const FormatInfo *formats_info(enum format format)
{
	for (size_t i = 0; i < format_count; i++)
		if (format_table[i].format == format)
			return &format_table[i];
	return &format_table[0];
}

bool formats_for_viewer(enum format format)
{
	return format == FORMAT_FIREFOX || format == FORMAT_CHROME;
}

const FormatInfo *formats_by_word(const char *word)
{
	for (size_t i = 0; i < format_count; i++)
		if (!strcmp(word, format_table[i].word) ||
		    (format_table[i].alias && !strcmp(word, format_table[i].alias)))
			return &format_table[i];
	return NULL;
}

/* Returns the name without the ending of its compression. The caller frees it. */
static char *unpacked_name(const char *path)
{
	static const size_t endings[] = {[PACKING_NONE] = 0,
					 [PACKING_GZIP] = strlen(".gz"),
					 [PACKING_ZSTD] = strlen(".zst")};

	return xstrndup(path, strlen(path) - endings[compressor_packing(path)]);
}

const FormatInfo *formats_by_name(const char *path)
{
	_cleanup_free_ char *name = unpacked_name(path);
	const FormatInfo *found = NULL;

	for (size_t i = 0; i < format_count; i++) {
		const FormatInfo *info = &format_table[i];

		if (text_ends_with(name, info->suffix) &&
		    (!found || strlen(info->suffix) > strlen(found->suffix)))
			found = info;
	}
	return found;
}

size_t formats_stem(const char *path)
{
	_cleanup_free_ char *name = unpacked_name(path);
	const FormatInfo *info = formats_by_name(path);

	return info ? strlen(name) - strlen(info->suffix) : strlen(path);
}
