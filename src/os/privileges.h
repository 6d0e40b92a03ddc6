/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privileges.h - the capabilities that recording takes (capabilities(7)), and giving them up.
 *
 * A user who is not root may have them by the program's file, or by whoever started it. What is
 * done for him that does not need them is done without: he must not come by more through it.
 */
#ifndef WALLPROF_PRIVILEGES_H
#define WALLPROF_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

/* Of the calling thread, a bit for each. */
uint64_t privileges_effective(void);

/*
 * Whether this is another user namespace than the first one (user_namespaces(7)): its capabilities
 * are for what belongs to it, and neither BPF programs nor events of all processes do.
 */
bool privileges_in_user_namespace(void);

/*
 * Gives up all that a user who is not root has but those of `kept` (a bit for each). Root keeps
 * what he has. Returns 0 or a negative errno after saying why.
 */
int privileges_keep(uint64_t kept);

/* Whether this program has more than its user by its file: then what it starts is to have less. */
bool privileges_of_file(void);

#endif
