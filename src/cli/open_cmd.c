/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "commands.h"
#include "http_server.h"
#include "privileges.h"
#include "proc_status.h"
#include "signals.h"
#include "site_check.h"
#include "static_files.h"
#include "util.h"
#include "zstd_unpack.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define PUBLIC_HOST   "profiler.firefox.com"
#define PUBLIC_VIEWER "https://profiler.firefox.com"
#define POLL_MS	      1000

/* ---- the viewer's URL ---------------------------------------------------------------------- */

static bool is_folder(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISDIR(st.st_mode);
}

/* The first of these that has an index.html; $HOME is that of the user who uses wallprof. */
char *open_cmd_local_viewer(void)
{
	const char *data = getenv("XDG_DATA_HOME"), *home = getenv("HOME");
	_cleanup_free_ char *of_user =
		data && *data ? xasprintf("%s/wallprof/viewer", data)
			      : xasprintf("%s/.local/share/wallprof/viewer", home ? home : "");
	const char *const folders[] = {of_user, "/usr/local/share/wallprof/viewer",
				       "/usr/share/wallprof/viewer"};

	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		_cleanup_free_ char *index = xasprintf("%s/index.html", folders[i]);

		if (!access(index, R_OK))
			return xstrdup(folders[i]);
	}
	return NULL;
}

/*
 * Encodes a URL as one component of the viewer's path. The profile's URL is escaped already, so
 * ':', '/' and '%' are the only special characters in it.
 */
static char *as_path_component(const char *url)
{
	char *part = xcalloc(3, strlen(url) + 1), *to = part;

	for (; *url; url++) {
		if (strchr(":/%", *url))
			to += sprintf(to, "%%%02X", (unsigned char)*url);
		else
			*to++ = *url;
	}
	return part;
}

/*
 * Returns the URL of the page that is served, or that of the viewer's page:
 * "https://profiler.firefox.com/from-url/http%3A%2F%2F127.0.0.1%3A3000%2F…/?symbolServer=http%3A…"
 */
static char *page_url(const OpenOptions *options, const HttpServer *server)
{
	const char *viewer = options->viewer;
	_cleanup_free_ char *part = as_path_component(http_server_profile(server));
	_cleanup_free_ char *api = as_path_component(http_server_api(server));
	const char *base = viewer && !is_folder(viewer) ? viewer
			   : viewer			? http_server_origin(server)
							: PUBLIC_VIEWER;
	size_t length = strlen(base);

	if (options->offline && !viewer)
		return xstrdup(http_server_profile(server));
	while (length > 0 && base[length - 1] == '/')
		length--;
	return xasprintf("%.*s/from-url/%s/?symbolServer=%s", (int)length, base, part, api);
}

/* ---- the browser --------------------------------------------------------------------------- */

static bool is_set(const char *variable)
{
	const char *value = getenv(variable);

	return value && *value;
}

/* $BROWSER is a list of programs separated by colons. The first one that exists gets the URL. */
static bool has_browser(void)
{
	const char *browser = getenv("BROWSER");

	return browser ? *browser : is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
}

/* If $BROWSER contains more than program names, xdg-open can interpret it. */
static void __attribute__((noreturn)) exec_browser(const char *url)
{
	const char *browsers = getenv("BROWSER");
	_cleanup_free_ char *list = browsers ? xstrdup(browsers) : NULL;
	char *rest = list;

	for (char *name; rest && (name = strsep(&rest, ":"));)
		if (*name)
			execlp(name, name, url, NULL);
	execlp("xdg-open", "xdg-open", url, NULL);
	_exit(127);
}

/* Returns the child, or -1. */
static pid_t start_browser(const char *url)
{
	pid_t pid = fork();
	int null;

	if (pid == 0) {
		signals_restore();
		/*
		 * In a session of its own, the browser does not receive Ctrl-C from the terminal.
		 * Its output is not part of wallprof's.
		 */
		setsid();
		null = open_null();
		if (dup2(null, STDIN_FILENO) < 0 || dup2(null, STDOUT_FILENO) < 0)
			_exit(127);
		exec_browser(url);
	}
	if (pid < 0)
		log_warn("starting a browser failed: %s; open the URL yourself", strerror(errno));
	return pid;
}

/* The lowest exit status by which a shell reports that it could not run a program. */
#define CANNOT_RUN 126

/* A browser may run as long as it likes, or pass the page to a running browser and exit. */
static void report_browser_exit(pid_t *browser)
{
	int status;

	if (*browser <= 0 || waitpid(*browser, &status, WNOHANG) != *browser)
		return;
	*browser = -1;
	if (WIFEXITED(status) && WEXITSTATUS(status) >= CANNOT_RUN)
		log_warn("starting a browser failed: no such program; open the URL yourself");
	else if (WIFEXITED(status) && WEXITSTATUS(status))
		log_warn("the browser failed: exit status %d; open the URL yourself",
			 WEXITSTATUS(status));
}

/* The browser may run on another machine, so this is a warning only. */
static void report_site(void)
{
	const char *why = site_check_take();

	if (why)
		log_warn("this machine cannot reach " PUBLIC_VIEWER
			 ": %s; `wallprof open --offline` shows a page that needs no site",
			 why);
}

/* ---- serving ------------------------------------------------------------------------------- */

static int serve(HttpServer *server, int signal_fd, uint64_t idle_timeout_ns, pid_t browser)
{
	struct pollfd fds[] = {{.fd = http_server_fd(server), .events = POLLIN},
			       {.fd = signal_fd, .events = POLLIN}};

	for (;;) {
		int timeout = http_server_timeout(server);
		int ms = timeout < 0 ? POLL_MS : MIN(timeout, POLL_MS);

		if (poll(fds, ARRAY_LEN(fds), ms) < 0 && errno != EINTR) {
			int error = -errno;

			log_error("waiting for requests failed: %s", strerror(-error));
			return error;
		}
		if (signals_consume(signal_fd, NULL))
			return 0;
		http_server_run(server);
		report_browser_exit(&browser);
		report_site();
		if (idle_timeout_ns && http_server_idle_ns(server) > idle_timeout_ns) {
			log_info("no requests for %.0f s; exiting", idle_timeout_ns / 1e9);
			return 0;
		}
	}
}

static int check_viewer(const char *viewer)
{
	if (!viewer || is_folder(viewer) || !strncmp(viewer, "https://", 8) ||
	    !strncmp(viewer, "http://", 7))
		return 0;
	log_error("--viewer '%s': expected a folder or a URL", viewer);
	return -EINVAL;
}

typedef struct Profile {
	char *path, *name; /* name: the last component of its URL */
	int fd;		   /* the decompressed file, to which path then leads; or -1 */
} Profile;

static char *served_name(const char *path, bool unpacked)
{
	const char *slash = strrchr(path, '/');
	char *name = xstrdup(slash ? slash + 1 : path);
	size_t length = strlen(name);

	if (unpacked && length > 4 && !strcmp(name + length - 4, ".zst"))
		name[length - 4] = '\0';
	return name;
}

/*
 * The viewer cannot read zstd, so such a file is decompressed once. Any other file is read again
 * for each request.
 */
static int open_profile(const char *given, Profile *profile)
{
	ServedFile file;
	int error = zstd_unpack_open(given, &profile->fd);

	if (error)
		return error;
	profile->name = served_name(given, profile->fd >= 0);
	profile->path =
		profile->fd < 0 ? xstrdup(given) : xasprintf("/proc/self/fd/%d", profile->fd);
	error = static_files_profile(profile->path, &file);
	if (error == -EMEDIUMTYPE)
		log_error("reading %s failed: not a profile", given);
	else if (error)
		log_error("reading %s failed: %s", given, strerror(-error));
	else
		close(file.fd);
	return error;
}

static void free_profile(Profile *profile)
{
	closep(&profile->fd);
	free(profile->path);
	free(profile->name);
}

static int start(const OpenOptions *options, const Profile *profile, HttpServer **ret_server)
{
	bool local = options->viewer && is_folder(options->viewer);
	HttpServerOptions serving = {
		.profile = profile->path,
		.name = profile->name,
		.viewer = local ? options->viewer : NULL,
		.first_port = options->first_port,
		.last_port = options->last_port,
	};
	int error = http_server_start(&serving, ret_server);

	if (error == -EADDRINUSE)
		log_error(
			"serving failed: no port from %u to %u is free; choose others with --port",
			options->first_port, options->last_port);
	else if (error == -ENOENT && local)
		log_error("--viewer '%s': the folder has no index.html", options->viewer);
	else if (error)
		log_error("serving on port %u failed: %s", options->first_port, strerror(-error));
	return error;
}

/*
 * Files and the browser are opened as the invoker, without root's rights and without the
 * capabilities that an installed wallprof may have.
 */
static int drop_to_invoker(const Invoker *invoker)
{
	int error = -invoker_become(invoker);

	if (error) {
		log_error("dropping privileges failed: %s", strerror(-error));
		return error;
	}
	return privileges_keep(0);
}

/* Without the URL the server is useless, so a failure ends it. */
static int print_url(FILE *file, const char *url)
{
	int error = fprintf(file, "%s\n", url) < 0 || fflush(file) ? -errno : 0;

	if (error)
		log_error("writing the URL failed: %s", strerror(-error));
	return error;
}

static int show(const char *path, const OpenOptions *options, const Profile *profile, int signal_fd)
{
	_cleanup_(http_server_stopp) HttpServer *server = NULL;
	_cleanup_free_ char *url = NULL;
	pid_t browser = -1;
	int error = start(options, profile, &server);

	if (error)
		return error;
	url = page_url(options, server);
	error = print_url(options->url_to_stderr ? stderr : stdout, url);
	if (error)
		return error;
	if (!options->no_browser && has_browser())
		browser = start_browser(url);
	if (!options->viewer && !options->offline)
		site_check_begin(PUBLIC_HOST);
	log_info("serving %s until Ctrl-C", path);
	return serve(server, signal_fd, options->idle_timeout_ns, browser);
}

/* The server looks up in /proc which user sends a request, and refuses the request if it cannot. */
static int check_proc(void)
{
	if (proc_is_ours())
		return 0;
	log_error("serving failed: missing: /proc of this PID namespace; " PROC_REMEDY);
	return -ENOENT;
}

int open_cmd_run(const char *path, const OpenOptions *options, const Invoker *invoker)
{
	_cleanup_(free_profile) Profile profile = {.fd = -1};
	_cleanup_close_ int signal_fd = -1;
	int error = drop_to_invoker(invoker);

	if (error)
		return error;
	error = check_viewer(options->viewer);
	if (error)
		return error;
	error = check_proc();
	if (error)
		return error;
	error = open_profile(path, &profile);
	if (error)
		return error;
	signals_begin();
	signal_fd = signals_open();
	if (signal_fd < 0) {
		log_error("setting up signals failed: %s", strerror(-signal_fd));
		return signal_fd;
	}
	return show(path, options, &profile, signal_fd);
}
