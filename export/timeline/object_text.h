/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * object_text.h - what a socket, and what epoll watches, is called, by what was told of it.
 */
#ifndef WALLPROF_OBJECT_TEXT_H
#define WALLPROF_OBJECT_TEXT_H

#include "objects.h"

/*
 * "tcp 10.0.0.1:4711 → 10.0.0.2:80", "tcp listening on [::]:80", "udp 0.0.0.0:53",
 * "unix /run/x.sock", "unix:[123]"; to be freed.
 */
char *object_socket_text(const struct rec_socket *socket);

/* "io_uring of …", "epoll of tcp listening on 0.0.0.0:80, pipe:[7] and 3 more"; to be freed. Refers
 * to objects. */
char *object_watch_text(Objects *objects, const struct rec_watch *watch);

#endif
