/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * moved_text.h - finds out which file executable memory is a copy of.
 *
 * Programs move their text to memory that is not a file's, to have large pages for it: PHP
 * (opcache.huge_code_pages), Node.js (--use-largepages=on), and others by a library. The addresses
 * stay, so the file's unwind table and symbols still hold, but the kernel shows anonymous memory.
 *
 * Such memory is taken for a file's text only if one of the file's other mappings shows that the
 * text belongs there (the segment's address, by the mapping's bias), and if all of its bytes are
 * those of the file. It is looked at some times, at growing intervals, because the bytes may be
 * copied after the memory was mapped.
 */
#ifndef WALLPROF_MOVED_TEXT_H
#define WALLPROF_MOVED_TEXT_H

#include "mapped_files.h"

/*
 * Looks at what was noted and is due, for about max_ns, and emits a REC_MAPPING of the file for
 * what is a copy, with the time of the mapping that was noted. It takes longer if the mappings of
 * one process alone take longer to read; that process is then looked at once a second at most. Call
 * it often. Returns 0 or the sink's error.
 */
int moved_text_check(MappedFiles *files, uint64_t max_ns);

#endif
