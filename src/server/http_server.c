/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "http_server.h"
#include "api.h"
#include "peer_user.h"
#include "static_files.h"
#include "util.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

/*
 * Connections that say nothing keep others waiting only for some seconds, and many fit: a browser
 * leaves some behind.
 */
#define CONNECTIONS_MAX	   512
#define SILENT_SECONDS	   3
#define CONNECTION_MEMORY  (32u << 10) /* for headers and data that is sent */
#define CONNECTION_SECONDS 120	       /* from a request on */
#define SECRET_BYTES	   20	       /* 160 bits = 32 letters */
#define PREFLIGHT_SECONDS  "86400"
#define METHODS		   "GET, HEAD, OPTIONS, POST"
#define BODY_MAX	   (4u << 20) /* the viewer's requests have about 200 KB */

struct HttpServer {
	struct MHD_Daemon *daemon;
	const char *profile;
	Api *api;
	int viewer_fd; /* the viewer's folder, or -1 */
	int diag_fd;   /* for peer_user_find() */
	uint16_t port;
	char secret[SECRET_BYTES * 8 / 5 + 1];
	char *name; /* name of the profile in the decoded path */
	char *origin, *url, *api_url;
	unsigned int active_requests; /* requests with the secret that are being answered */
	uint64_t last_request_ns;     /* end of the last one, or start of the server */
};

/* ---- answers ------------------------------------------------------------------------------- */

typedef struct Answer {
	unsigned int status;
	struct MHD_Response *response;
} Answer;

static Answer plain(unsigned int status, const char *text)
{
	return (Answer){status, MHD_create_response_from_buffer(strlen(text), (void *)text,
								MHD_RESPMEM_PERSISTENT)};
}

static void header(const Answer *answer, const char *name, const char *value)
{
	if (value)
		MHD_add_response_header(answer->response, name, value);
}

static const char *request_header(struct MHD_Connection *connection, const char *name)
{
	return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

/* A page of any origin may read what it knows the path of. */
static void allow_any_origin(const Answer *answer)
{
	header(answer, "Access-Control-Allow-Origin", "*");
	/* The profile may change between two requests. */
	header(answer, "Cache-Control", "no-store");
}

/* Answers a preflight of the Fetch standard, and that of Private Network Access. */
static Answer preflight(struct MHD_Connection *connection)
{
	Answer answer = plain(MHD_HTTP_NO_CONTENT, "");

	if (!request_header(connection, "Access-Control-Request-Method")) {
		header(&answer, "Allow", METHODS);
		return answer;
	}
	header(&answer, "Access-Control-Allow-Methods", METHODS);
	header(&answer, "Access-Control-Allow-Headers",
	       request_header(connection, "Access-Control-Request-Headers"));
	header(&answer, "Access-Control-Max-Age", PREFLIGHT_SECONDS);
	if (request_header(connection, "Access-Control-Request-Private-Network"))
		header(&answer, "Access-Control-Allow-Private-Network", "true");
	return answer;
}

static Answer not_allowed(const char *methods)
{
	Answer answer = plain(MHD_HTTP_METHOD_NOT_ALLOWED, "method not allowed\n");

	header(&answer, "Allow", methods);
	return answer;
}

static Answer file_answer(const ServedFile *file)
{
	Answer answer = {MHD_HTTP_OK, MHD_create_response_from_fd64(file->size, file->fd)};

	if (!answer.response) {
		close(file->fd);
		return plain(MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
	}
	header(&answer, "Content-Type", file->type);
	header(&answer, "Content-Encoding", file->encoding);
	return answer;
}

static Answer profile_answer(const HttpServer *server)
{
	ServedFile file;
	int error = static_files_profile(server->profile, &file);

	if (error) {
		log_warn("reading %s failed: %s", server->profile, strerror(-error));
		return plain(MHD_HTTP_NOT_FOUND, "the profile can no longer be read\n");
	}
	return file_answer(&file);
}

/*
 * The viewer handles the paths of its pages itself, so a page that is not there is index.html. A
 * browser says that it wants a page; a script or picture that is missing is missing.
 */
static Answer viewer_answer(const HttpServer *server, const char *path, const char *accept)
{
	bool is_page = accept && strstr(accept, "text/html");
	ServedFile file;

	if (server->viewer_fd >= 0 &&
	    (!static_files_below(server->viewer_fd, path, &file) ||
	     ((is_page || !*path) && !static_files_below(server->viewer_fd, "index.html", &file))))
		return file_answer(&file);
	return plain(MHD_HTTP_NOT_FOUND, "there is nothing here\n");
}

/*
 * The viewer installs a service worker, which the browser keeps for this port: it would answer with
 * the viewer whatever is served here later, an HTML page or another program's site. A browser that
 * asks for a worker therefore gets this one. It removes itself, and loads the pages again that an
 * earlier worker has answered.
 */
static const char worker[] =
	"self.addEventListener('install', () => self.skipWaiting());\n"
	"self.addEventListener('activate', (event) => event.waitUntil(\n"
	"  self.registration.unregister().then(() => self.clients.matchAll())\n"
	"    .then((pages) => Promise.all(pages.map((page) => page.navigate(page.url))))));\n";

static Answer worker_answer(void)
{
	Answer answer = plain(MHD_HTTP_OK, worker);

	header(&answer, "Content-Type", "text/javascript; charset=utf-8");
	header(&answer, "Cache-Control", "no-store");
	return answer;
}

/* ---- requests ------------------------------------------------------------------------------ */

/* Accepts "127.0.0.1:3000" and "localhost:3000"; port 80 may be omitted. */
static bool is_our_host(const HttpServer *server, const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost"};
	char port[8];

	snprintf(port, sizeof(port), ":%u", server->port);
	for (size_t i = 0; host && i < ARRAY_LEN(names); i++) {
		size_t length = strlen(names[i]);

		if (!strncasecmp(host, names[i], length) &&
		    (!strcmp(host + length, port) || (!host[length] && server->port == 80)))
			return true;
	}
	return false;
}

/*
 * Returns the path below the secret, or NULL. The comparison takes constant time, so that its time
 * does not reveal how much is right.
 */
static const char *below_secret(const HttpServer *server, const char *path)
{
	size_t length = strlen(server->secret);
	unsigned char wrong = 0;

	if (*path++ != '/' || strlen(path) < length || (path[length] && path[length] != '/'))
		return NULL;
	for (size_t i = 0; i < length; i++)
		wrong |= path[i] ^ server->secret[i];
	return wrong ? NULL : path + length + (path[length] == '/');
}

/* One request, from its headers to its end. */
typedef struct Request {
	VEC(char) body;
	bool is_authorized; /* the path contains the secret */
	bool wants_body;    /* it calls the API, so its body is kept */
	bool too_long;
} Request;

static Answer answer_api(HttpServer *server, const char *path, const Request *request)
{
	Answer answer = {.status = MHD_HTTP_OK};
	char *text;

	if (!api_is_path(path))
		return plain(MHD_HTTP_NOT_FOUND, "no such API call\n");
	if (request->too_long)
		return plain(MHD_HTTP_CONTENT_TOO_LARGE, "the request is too long\n");
	text = api_answer(server->api, path, request->body.items, request->body.count);
	/* The response owns the text. */
	answer.response =
		MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (answer.response)
		header(&answer, "Content-Type", "application/json; charset=utf-8");
	return answer;
}

static Answer answer_secret(HttpServer *server, struct MHD_Connection *connection, const char *path,
			    const char *method, const Request *request)
{
	bool reads = !strcmp(method, "GET") || !strcmp(method, "HEAD");
	Answer answer;

	if (!strcmp(method, "OPTIONS"))
		answer = preflight(connection);
	else if (!strcmp(method, "POST"))
		answer = answer_api(server, path, request);
	else if (!reads)
		answer = not_allowed(METHODS);
	else if (strcmp(path, server->name) != 0)
		answer = plain(MHD_HTTP_NOT_FOUND, "there is nothing here\n");
	else
		answer = profile_answer(server);
	allow_any_origin(&answer);
	return answer;
}

static Answer answer_request(HttpServer *server, struct MHD_Connection *connection,
			     const char *path, const char *method, const Request *request)
{
	const char *below;

	if (!is_our_host(server, request_header(connection, "Host")))
		return plain(MHD_HTTP_FORBIDDEN, "wrong host name\n");
	below = below_secret(server, path);
	if (below)
		return answer_secret(server, connection, below, method, request);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return not_allowed("GET, HEAD");
	if (request_header(connection, "Service-Worker"))
		return worker_answer();
	return viewer_answer(server, path + strspn(path, "/"),
			     request_header(connection, MHD_HTTP_HEADER_ACCEPT));
}

static Request *begin_request(HttpServer *server, struct MHD_Connection *connection,
			      const char *path, const char *method)
{
	Request *request = xcalloc(1, sizeof(*request));
	const char *below = below_secret(server, path);

	MHD_set_connection_option(connection, MHD_CONNECTION_OPTION_TIMEOUT,
				  (unsigned int)CONNECTION_SECONDS);
	request->is_authorized = below && is_our_host(server, request_header(connection, "Host"));
	request->wants_body =
		request->is_authorized && !strcmp(method, "POST") && api_is_path(below);
	server->active_requests += request->is_authorized;
	return request;
}

static void append_body(Request *request, const char *data, size_t size)
{
	if (!request->wants_body || request->too_long)
		return;
	request->too_long = size > BODY_MAX - request->body.count;
	if (!request->too_long)
		vec_append(&request->body, data, size);
}

/*
 * libmicrohttpd calls this with the headers alone, then with pieces of the body, then with no data;
 * the last call queues the answer.
 */
static enum MHD_Result on_request(void *user, struct MHD_Connection *connection, const char *path,
				  const char *method, const char *version, const char *data,
				  size_t *size, void **state)
{
	enum MHD_Result result;
	Answer answer;

	(void)version;
	if (!*state) {
		*state = begin_request(user, connection, path, method);
		return MHD_YES;
	}
	if (*size > 0) {
		append_body(*state, data, *size);
		*size = 0;
		return MHD_YES;
	}
	answer = answer_request(user, connection, path, method, *state);
	if (!answer.response)
		return MHD_NO;
	header(&answer, "X-Content-Type-Options", "nosniff");
	result = MHD_queue_response(connection, answer.status, answer.response);
	MHD_destroy_response(answer.response);
	return result;
}

static void end_request(void *user, struct MHD_Connection *connection, void **state,
			enum MHD_RequestTerminationCode code)
{
	Request *request = *state;
	HttpServer *server = user;

	(void)connection;
	(void)code;
	if (!request)
		return;
	if (request->is_authorized) {
		server->active_requests--;
		server->last_request_ns = now_ns();
	}
	vec_free(&request->body);
	free(request);
	*state = NULL;
}

/* ---- allowed clients ------------------------------------------------------------------------ */

/*
 * Other users of this machine may learn the URL, for example from a browser's arguments, but cannot
 * use it.
 */
static enum MHD_Result may_connect(void *user, const struct sockaddr *address, socklen_t length)
{
	const HttpServer *server = user;
	uid_t uid;

	if (length < sizeof(struct sockaddr_in) || address->sa_family != AF_INET ||
	    !peer_user_find(server->diag_fd, (const struct sockaddr_in *)address, server->port,
			    &uid))
		return MHD_NO;
	return uid == geteuid() || uid == 0 ? MHD_YES : MHD_NO;
}

/* ---- start and stop ------------------------------------------------------------------------ */

/* Encodes random bytes in base32 (RFC 4648) with small letters. */
static int make_secret(HttpServer *server)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567";
	unsigned char bytes[SECRET_BYTES];
	char *to = server->secret;

	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t bit = 0; bit < 8 * sizeof(bytes); bit += 5) {
		unsigned int pair = bytes[bit / 8] << 8 |
				    (bit / 8 + 1 < sizeof(bytes) ? bytes[bit / 8 + 1] : 0);

		*to++ = letters[pair >> (11 - bit % 8) & 31];
	}
	return 0;
}

/* Percent-encodes everything but letters, digits and "-_.~" in a component of a URL's path. */
static char *escaped(const char *text)
{
	char *escaped = xcalloc(3, strlen(text) + 1), *to = escaped;

	for (; *text; text++) {
		bool plain = strchr("-_.~", *text) || (*text >= '0' && *text <= '9') ||
			     ((*text | 0x20) >= 'a' && (*text | 0x20) <= 'z');

		to += plain ? sprintf(to, "%c", *text)
			    : sprintf(to, "%%%02X", (unsigned char)*text);
	}
	return escaped;
}

/*
 * The server opens the socket itself, because errno after MHD_start_daemon() is not reliable:
 * since 1.0 it is EBADF when the port is in use. Returns a listening socket, or a negative errno.
 */
static int listening_socket(uint16_t port)
{
	struct sockaddr_in address = {
		.sin_family = AF_INET,
		.sin_port = htons(port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error;

	if (fd < 0)
		return -errno;
	/* Connections of an earlier server in TIME_WAIT do not block the port. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int)) == 0 &&
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 &&
	    listen(fd, SOMAXCONN) == 0)
		return fd;
	error = -errno;
	close(fd);
	return error;
}

static int listen_on(HttpServer *server, uint16_t port)
{
	int fd = listening_socket(port);

	if (fd < 0)
		return fd;
	server->port = port;
	closep(&server->diag_fd);
	server->diag_fd = peer_user_open(port);
	errno = 0;
	/*
	 * MHD_stop_daemon() closes the socket. If the start fails, libmicrohttpd may have closed it
	 * already, so it is not closed here.
	 */
	server->daemon = MHD_start_daemon(
		MHD_USE_EPOLL, port, may_connect, server, on_request, server,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned int)CONNECTIONS_MAX,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_MEMORY,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SILENT_SECONDS,
		MHD_OPTION_SIGPIPE_HANDLED_BY_APP, 1, MHD_OPTION_END);
	return server->daemon ? 0 : errno ? -errno : -EIO;
}

static int open_viewer(HttpServer *server, const char *folder)
{
	ServedFile index;
	int error;

	if (!folder)
		return 0;
	server->viewer_fd = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (server->viewer_fd < 0)
		return -errno;
	error = static_files_below(server->viewer_fd, "index.html", &index);
	if (error)
		return error;
	close(index.fd);
	return 0;
}

int http_server_start(const HttpServerOptions *options, HttpServer **ret_server)
{
	_cleanup_(http_server_stopp) HttpServer *server = xcalloc(1, sizeof(*server));
	_cleanup_free_ char *name = escaped(options->name);
	int error;

	server->profile = options->profile;
	server->name = xstrdup(options->name);
	server->api = api_new(options->profile);
	server->viewer_fd = server->diag_fd = -1;
	error = make_secret(server);
	if (error)
		return error;
	error = open_viewer(server, options->viewer);
	if (error)
		return error;
	error = -EADDRINUSE;
	for (unsigned int port = options->first_port;
	     error == -EADDRINUSE && port <= options->last_port; port++)
		error = listen_on(server, port);
	if (error)
		return error;
	server->origin = xasprintf("http://127.0.0.1:%u", server->port);
	server->url = xasprintf("%s/%s/%s", server->origin, server->secret, name);
	server->api_url = xasprintf("%s/%s", server->origin, server->secret);
	server->last_request_ns = now_ns();
	*ret_server = take_pointer(server);
	return 0;
}

void http_server_stop(HttpServer *server)
{
	if (!server)
		return;
	if (server->daemon)
		MHD_stop_daemon(server->daemon);
	closep(&server->viewer_fd);
	closep(&server->diag_fd);
	free(server->name);
	free(server->origin);
	free(server->url);
	free(server->api_url);
	api_free(server->api);
	free(server);
}

const char *http_server_origin(const HttpServer *server)
{
	return server->origin;
}

const char *http_server_profile(const HttpServer *server)
{
	return server->url;
}

const char *http_server_api(const HttpServer *server)
{
	return server->api_url;
}

int http_server_fd(const HttpServer *server)
{
	return MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
}

int http_server_timeout(const HttpServer *server)
{
	MHD_UNSIGNED_LONG_LONG ms;

	return MHD_get_timeout(server->daemon, &ms) == MHD_YES ? (int)MIN(ms, 60000ULL) : -1;
}

void http_server_run(HttpServer *server)
{
	MHD_run(server->daemon);
}

uint64_t http_server_idle_ns(const HttpServer *server)
{
	return server->active_requests ? 0 : now_ns() - server->last_request_ns;
}
