/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * http_server.h - hands a profile to the viewer, over HTTP on the loopback interface alone.
 *
 * Everything about the profile lies below a path that nobody can guess, and only there may pages of
 * other origins read (CORS, with the preflight of browsers that ask whether a page may reach the
 * local network). A request must name this server as its host: a name that was made to lead here
 * (DNS rebinding) is refused. What lies elsewhere are the files of a viewer of one's own, if there
 * is one.
 */
#ifndef WALLPROF_HTTP_SERVER_H
#define WALLPROF_HTTP_SERVER_H

#include <stdint.h>

typedef struct Server Server;

typedef struct ServerOptions {
	const char *profile; /* the file; read anew for each request */
	const char *name;    /* of the profile, in its URL */
	const char *viewer;  /* a folder with index.html; NULL = none */
	uint16_t first_port, last_port;
} ServerOptions;

/*
 * Listens on the first port that is free. Returns 0, or a negative errno (-EADDRINUSE: none is
 * free). Nothing is answered before server_run().
 */
int server_start(const ServerOptions *options, Server **ret_server);
void server_stop(Server *server);

/* "http://127.0.0.1:3000". Kept until server_stop(). */
const char *server_origin(const Server *server);
/* "http://127.0.0.1:3000/SECRET/prof.json.gz": where the profile is. */
const char *server_profile(const Server *server);
/* "http://127.0.0.1:3000/SECRET": below which the viewer asks for names, sources and assembly
 * (api.h). */
const char *server_api(const Server *server);

/* To poll for input; and how long at most, in ms (-1 = for ever), before server_run() is due. */
int server_fd(const Server *server);
int server_patience(const Server *server);
/* Takes and answers what has come. Does not block. */
void server_run(Server *server);

/*
 * How long ago who knows the secret last had an answer, to its end; 0 while one is under way, which
 * it is for 120 s at most without a byte being taken.
 */
uint64_t server_silence_ns(const Server *server);

#endif
