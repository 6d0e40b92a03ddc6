/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * results.h - which files belong to one recording: a profile, "prof.json.gz", and the capture that
 * it was made from, "prof.capture", beside it.
 */
#ifndef WALLPROF_RESULTS_H
#define WALLPROF_RESULTS_H

#include <stdbool.h>

/*
 * Returns the name of the capture of a profile: without ".json" and what follows, and with
 * ".capture"; of "prof.json.gz.old" it is "prof.capture.old". The caller frees it.
 */
char *results_capture_name(const char *profile);

/* Returns the name of the profile that is made of a capture by default. The caller frees it. */
char *results_profile_name(const char *capture);

/* Returns the name of the page that is made of a capture by default. The caller frees it. */
char *results_page_name(const char *capture);
/* Returns whether there is a page of that name that is not older than the capture. */
bool results_has_page(const char *capture, const char *page);

/*
 * Finds the capture that the user means: the file itself or, if that is a profile, the capture
 * beside it; NULL: the last one that was made in the working directory. Returns 0 or a negative
 * errno, logged. The caller frees the path.
 */
int results_find_capture(const char *given, char **ret_path);

/*
 * Finds the profile that the user means: the file itself, or the newest profile beside a capture;
 * NULL: the last one that was made in the working directory. If there is none, the path is NULL,
 * and *ret_capture is the capture that it can be made of. Returns 0 or a negative errno, logged.
 * The caller frees both.
 */
int results_find_profile(const char *given, char **ret_path, char **ret_capture);

#endif
