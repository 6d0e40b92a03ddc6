/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * http_server.h - serves a profile to the viewer over HTTP, on the loopback interface only.
 *
 * Everything about the profile is below a path that cannot be guessed, and only there may pages of
 * other origins read (CORS, with the preflight of browsers that ask whether a page may reach the
 * local network). A request must name this server as its host, so a name that was made to resolve
 * to this address (DNS rebinding) is refused. The other paths serve the files of a local viewer, if
 * there is one.
 */
#ifndef WALLPROF_HTTP_SERVER_H
#define WALLPROF_HTTP_SERVER_H

#include "util.h"
#include <stdint.h>

typedef struct HttpServer HttpServer;

typedef struct HttpServerOptions {
	const char *profile; /* path of the file, which is read again for each request */
	const char *name;    /* name of the profile in its URL */
	const char *viewer;  /* folder with an index.html; NULL = none */
	uint16_t first_port, last_port;
} HttpServerOptions;

/*
 * Listens on the first free port. Returns 0 or a negative errno (-EADDRINUSE if no port is free).
 * Requests are answered by http_server_run().
 */
int http_server_start(const HttpServerOptions *options, HttpServer **ret_server);
void http_server_stop(HttpServer *server);
DEFINE_CLEANUP(HttpServer *, http_server_stop)

/* Returns "http://127.0.0.1:3000". The text is valid until http_server_stop(). */
const char *http_server_origin(const HttpServer *server);
/* Returns the URL of the profile, "http://127.0.0.1:3000/SECRET/prof.json.gz". */
const char *http_server_profile(const HttpServer *server);
/* Returns the URL of the API (api.h), "http://127.0.0.1:3000/SECRET". */
const char *http_server_api(const HttpServer *server);

/*
 * The descriptor to poll for input, and the time in ms until http_server_run() is due (-1 = no
 * limit).
 */
int http_server_fd(const HttpServer *server);
int http_server_timeout(const HttpServer *server);
/* Reads and answers the requests that have arrived. Does not block. */
void http_server_run(HttpServer *server);

/*
 * Returns the time since the end of the last request with the secret, or 0 while one is being
 * answered, which ends after 120 s without a byte being read.
 */
uint64_t http_server_idle_ns(const HttpServer *server);

#endif
