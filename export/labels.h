/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * labels.h - the words by which profiles and reports call record kinds, causes of
 * loss and system calls.
 */
#ifndef WALLPROF_LABELS_H
#define WALLPROF_LABELS_H

#include "records.h"

/* "switch", "waking", … of the kinds that can be lost; NULL for others. */
const char *record_kind_label(uint32_t kind);

/* "ring full", …; never NULL. */
const char *loss_cause_label(uint32_t cause);

/* Name of an x86-64 system call that can block; NULL for others. */
const char *syscall_label(int syscall);

#endif
