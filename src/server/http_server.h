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

typedef struct HttpServer HttpServer;

typedef struct HttpServerOptions {
	const char *profile; /* the file; read anew for each request */
	const char *name;    /* of the profile, in its URL */
	const char *viewer;  /* a folder with index.html; NULL = none */
	uint16_t first_port, last_port;
} HttpServerOptions;

/*
 * Listens on the first port that is free. Returns 0, or a negative errno (-EADDRINUSE: none is
 * free). Nothing is answered before http_server_run().
 */
int http_server_start(const HttpServerOptions *options, HttpServer **ret_server);
void http_server_stop(HttpServer *server);

/* "http://127.0.0.1:3000". Kept until http_server_stop(). */
const char *http_server_origin(const HttpServer *server);
/* "http://127.0.0.1:3000/SECRET/prof.json.gz": where the profile is. */
const char *http_server_profile(const HttpServer *server);
/* "http://127.0.0.1:3000/SECRET": below which the viewer asks for names, sources and assembly
 * (api.h). */
const char *http_server_api(const HttpServer *server);

/* To poll for input; and how long at most, in ms (-1 = for ever), before http_server_run() is due.
 */
int http_server_fd(const HttpServer *server);
int http_server_timeout(const HttpServer *server);
/* Takes and answers what has come. Does not block. */
void http_server_run(HttpServer *server);

/*
 * How long ago who knows the secret last had an answer, to its end; 0 while one is under way, which
 * it is for 120 s at most without a byte being taken.
 */
uint64_t http_server_idle_ns(const HttpServer *server);

#endif
