/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * veth.h - two network namespaces that a veth pair connects. A packet that is sent in one of them
 * is received in the other by a soft interrupt in the sender's own system call.
 */
#ifndef WALLPROF_VETH_H
#define WALLPROF_VETH_H

#include <stdbool.h>

/*
 * Creates both and a UDP socket in each: what is written to ret_ends[1] can be read from
 * ret_ends[0]. The calling thread stays in its namespace, and both namespaces end with the sockets.
 * Returns false and sets errno on failure; it needs CAP_SYS_ADMIN and a kernel with veth.
 */
bool veth_sockets(int *ret_ends);

#endif
