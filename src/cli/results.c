/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "results.h"
#include "commands.h"
#include "formats.h"
#include "util.h"
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CAPTURE_SUFFIX ".capture"
#define PAGE_SUFFIX    ".html"
#define OLD_SUFFIX     ".old" /* of both files of the recording before (atomic_file.h) */

/* The names of profiles that the viewer reads, the default first. */
static const char *const profile_suffixes[] = {
	".json.gz", ".json", ".json.zst", ".trace.json.gz", ".trace.json", ".trace.json.zst",
};

/*
 * Returns whether the name is that of a profile that only other programs read, so that its capture
 * is used instead. A capture may have any name.
 */
static bool is_for_others(const char *path)
{
	const FormatInfo *info = formats_by_name(path);

	return info && !formats_for_viewer(info->format) &&
	       export_cmd_file_kind(path) != FILE_KIND_CAPTURE;
}

char *results_capture_name(const char *profile)
{
	const char *old = text_ends_with(profile, OLD_SUFFIX) ? OLD_SUFFIX : "";
	_cleanup_free_ char *name =
		xasprintf("%.*s", (int)(strlen(profile) - strlen(old)), profile);

	return xasprintf("%.*s" CAPTURE_SUFFIX "%s", (int)formats_stem(name), name, old);
}

static size_t stem_of_capture(const char *capture)
{
	size_t length = strlen(capture);

	return text_ends_with(capture, CAPTURE_SUFFIX) ? length - strlen(CAPTURE_SUFFIX) : length;
}

char *results_profile_name(const char *capture)
{
	return xasprintf("%.*s%s", (int)stem_of_capture(capture), capture, profile_suffixes[0]);
}

/* Returns whether a file was changed later than *newest, and remembers when it was. */
static bool is_newer(const char *path, struct timespec *newest)
{
	struct stat st;

	if (stat(path, &st) || !S_ISREG(st.st_mode) || st.st_mtim.tv_sec < newest->tv_sec ||
	    (st.st_mtim.tv_sec == newest->tv_sec && st.st_mtim.tv_nsec <= newest->tv_nsec))
		return false;
	*newest = st.st_mtim;
	return true;
}

char *results_page_name(const char *capture)
{
	return xasprintf("%.*s%s", (int)stem_of_capture(capture), capture, PAGE_SUFFIX);
}

/* Copies may have the same time. */
bool results_has_page(const char *capture, const char *page)
{
	struct timespec newest = {};

	is_newer(capture, &newest);
	newest.tv_nsec--;
	return is_newer(page, &newest);
}

/*
 * Returns the newest profile beside a capture, or NULL. One that is older than the capture was made
 * of another one. Copies may have the same time.
 */
static char *profile_beside(const char *capture)
{
	bool old = text_ends_with(capture, CAPTURE_SUFFIX OLD_SUFFIX);
	size_t stem = old ? strlen(capture) - strlen(CAPTURE_SUFFIX OLD_SUFFIX)
			  : stem_of_capture(capture);
	struct timespec newest = {};
	char *found = NULL;

	is_newer(capture, &newest);
	newest.tv_nsec--;
	for (size_t i = 0; i < ARRAY_LEN(profile_suffixes); i++) {
		char *path = xasprintf("%.*s%s%s", (int)stem, capture, profile_suffixes[i],
				       old ? OLD_SUFFIX : "");

		if (!is_newer(path, &newest)) {
			free(path);
			continue;
		}
		free(found);
		found = path;
	}
	return found;
}

/* Returns whether a file in the working directory can be the last result of a recording. */
typedef bool (*IsResult)(const char *name);

static bool is_named_capture(const char *name)
{
	return text_ends_with(name, CAPTURE_SUFFIX) &&
	       export_cmd_file_kind(name) == FILE_KIND_CAPTURE;
}

/* Other programs write JSON, too: a profile has a capture beside it, or the default name. */
static bool is_result(const char *name)
{
	_cleanup_free_ char *capture = NULL;

	if (is_named_capture(name))
		return true;
	if (formats_stem(name) == strlen(name) || export_cmd_file_kind(name) != FILE_KIND_PROFILE)
		return false;
	capture = results_capture_name(name);
	return is_named_capture(capture) || !strcmp(capture, "wallprof" CAPTURE_SUFFIX);
}

static int find_last(IsResult is_one, const char *what, char **ret_path)
{
	DIR *folder = opendir(".");
	struct timespec newest = {};
	struct dirent *entry;
	char *found = NULL;

	if (!folder) {
		int error = -errno;

		log_error("reading the working directory failed: %s", strerror(-error));
		return error;
	}
	while ((entry = readdir(folder))) {
		struct timespec before = newest;

		if (!is_newer(entry->d_name, &newest))
			continue;
		if (!is_one(entry->d_name)) {
			newest = before;
			continue;
		}
		free(found);
		found = xstrdup(entry->d_name);
	}
	closedir(folder);
	if (!found) {
		log_error("finding the last %s failed: none is in the working directory; name "
			  "one, or make one with wallprof -- COMMAND",
			  what);
		return -ENOENT;
	}
	log_info("%s is the last %s here", found, what);
	*ret_path = found;
	return 0;
}

/*
 * Returns the capture if the file of that name does not exist, and its name is one that earlier
 * versions gave, "prof.json.gz.capture"; else NULL. Scripts keep working.
 */
static char *from_earlier_name(const char *given)
{
	_cleanup_free_ char *profile = NULL;
	struct stat st;

	if (!text_ends_with(given, CAPTURE_SUFFIX) || !stat(given, &st))
		return NULL;
	profile = xstrndup(given, stem_of_capture(given));
	return formats_stem(profile) < strlen(profile) ? results_capture_name(profile) : NULL;
}

int results_find_capture(const char *given, char **ret_path)
{
	_cleanup_free_ char *capture = NULL;

	if (!given)
		return find_last(is_named_capture, "capture", ret_path);
	if (export_cmd_file_kind(given) != FILE_KIND_PROFILE && !is_for_others(given)) {
		capture = from_earlier_name(given);
		/* The reader says what is wrong with the file. */
		*ret_path = xstrdup(capture ? capture : given);
		return 0;
	}
	capture = results_capture_name(given);
	if (export_cmd_file_kind(capture) != FILE_KIND_CAPTURE) {
		log_error("reading the capture of %s failed: there is no %s; record without "
			  "--discard-capture",
			  given, capture);
		return -ENOENT;
	}
	*ret_path = capture;
	capture = NULL;
	return 0;
}

int results_find_profile(const char *given, char **ret_path, char **ret_capture)
{
	_cleanup_free_ char *last = NULL, *of_others = NULL;
	int error = given ? 0 : find_last(is_result, "recording", &last);

	*ret_path = *ret_capture = NULL;
	if (error)
		return error;
	if (last)
		given = last;
	if (is_for_others(given)) {
		error = results_find_capture(given, &of_others);
		if (error)
			return error;
		given = of_others;
	}
	if (export_cmd_file_kind(given) != FILE_KIND_CAPTURE) {
		*ret_path = xstrdup(given);
		return 0;
	}
	*ret_path = profile_beside(given);
	if (!*ret_path)
		*ret_capture = xstrdup(given);
	return 0;
}
