/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * veth.h - two network namespaces that a virtual cable joins: a packet that is sent in one of them
 * is received in the other by a soft interrupt of the sender's own system call.
 */
#ifndef WALLPROF_VETH_H
#define WALLPROF_VETH_H

#include <stdbool.h>

/*
 * Makes both and a UDP socket in each: what is written to ret_ends[1] can be read from ret_ends[0].
 * The calling thread stays in its namespace, and both end with the sockets. Returns false, and
 * errno, where that cannot be done: it takes CAP_SYS_ADMIN and a kernel with veth.
 */
bool veth_sockets(int *ret_ends);

#endif
