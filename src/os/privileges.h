/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * privileges.h - the capabilities that recording needs (capabilities(7)), and dropping them.
 *
 * A user who is not root may have them by the program's file, or by the process that started it.
 * What is done for such a user without needing them is done without them, because the user must not
 * gain rights through it.
 */
#ifndef WALLPROF_PRIVILEGES_H
#define WALLPROF_PRIVILEGES_H

#include <stdbool.h>
#include <stdint.h>

/* Returns the effective capabilities of the calling thread, a bit for each. */
uint64_t privileges_effective(void);

/*
 * Returns whether this is not the initial user namespace (user_namespaces(7)): then capabilities
 * count only for what belongs to the namespace, which BPF programs and events of all processes do
 * not.
 */
bool privileges_in_user_namespace(void);

/*
 * If the user is not root, drops all capabilities but those of `kept` (a bit for each). Root keeps
 * all. Returns 0 or a negative errno after reporting the error.
 */
int privileges_keep(uint64_t kept);

/*
 * Returns whether this program has more rights by its file than its user has: then a program that
 * it starts must have less.
 */
bool privileges_of_file(void);

#endif
