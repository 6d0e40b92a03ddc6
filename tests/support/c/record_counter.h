/* SPDX-License-Identifier: GPL-2.0-or-later */
/* record_counter.h - counts the records of a capture, which must not be damaged. */
#ifndef WALLPROF_TEST_RECORD_COUNTER_H
#define WALLPROF_TEST_RECORD_COUNTER_H

#include <stdint.h>

uint64_t count_records(const char *path);

#endif
