/* SPDX-License-Identifier: GPL-2.0-or-later */
/* object_text.h - the names of sockets and of epoll descriptors, by their records. */
#ifndef WALLPROF_OBJECT_TEXT_H
#define WALLPROF_OBJECT_TEXT_H

#include "objects.h"

/*
 * Returns "tcp 10.0.0.1:4711 → 10.0.0.2:80", "tcp listening on [::]:80", "udp 0.0.0.0:53", "unix
 * /run/x.sock" or "unix:[123]". The caller frees it.
 */
char *object_socket_text(const struct rec_socket *socket);

/*
 * Returns "io_uring of …" or "epoll of tcp listening on 0.0.0.0:80, pipe:[7] and 3 more". The
 * caller frees it. It refers to objects.
 */
char *object_watch_text(Objects *objects, const struct rec_watch *watch);

#endif
