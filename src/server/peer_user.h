/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * peer_user.h - finds the user of the other end of a connection on the loopback interface.
 *
 * The kernel is asked for that one socket (sock_diag(7)): to read the table of all sockets of the
 * machine takes longer the more there are, and others can make many. Where the kernel has no
 * sock_diag, /proc/net/tcp is read.
 */
#ifndef WALLPROF_PEER_USER_H
#define WALLPROF_PEER_USER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/types.h>

/* Returns a descriptor for peer_user_find(), or -1 if the kernel has no sock_diag. */
int peer_user_open(uint16_t listening_port);

/*
 * Finds the owner of the client's connected socket. A closed one has none: it would be listed as
 * root's. diag_fd: from peer_user_open(). Returns whether it was found.
 */
bool peer_user_find(int diag_fd, const struct sockaddr_in *peer, uint16_t our_port, uid_t *ret_uid);

#endif
