/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "anon_paths.h"
#include <ctype.h>

#define DELETED " (deleted)"

/* ---- which paths the distribution and the kernel have named -------------------------------- */

typedef enum Below {
	BELOW_REPLACED,
	BELOW_KEPT,
} Below;

/*
 * Folders and files that keep their own names. Below /usr/local, /usr/share, /usr/src and /etc are
 * files of users. /run/user has IDs of users, zoneinfo says where the machine stands.
 */
static const struct {
	const char *path;
	Below below;
} places[] = {
	{"/bin", BELOW_KEPT},
	{"/sbin", BELOW_KEPT},
	{"/lib", BELOW_KEPT},
	{"/lib32", BELOW_KEPT},
	{"/lib64", BELOW_KEPT},
	{"/libx32", BELOW_KEPT},
	{"/usr/bin", BELOW_KEPT},
	{"/usr/sbin", BELOW_KEPT},
	{"/usr/lib", BELOW_KEPT},
	{"/usr/lib32", BELOW_KEPT},
	{"/usr/lib64", BELOW_KEPT},
	{"/usr/libx32", BELOW_KEPT},
	{"/usr/libexec", BELOW_KEPT},
	{"/usr/include", BELOW_KEPT},
	{"/usr", BELOW_REPLACED},
	{"/usr/games", BELOW_REPLACED},
	{"/usr/local", BELOW_REPLACED},
	{"/usr/local/bin", BELOW_REPLACED},
	{"/usr/local/include", BELOW_REPLACED},
	{"/usr/local/lib", BELOW_REPLACED},
	{"/usr/local/sbin", BELOW_REPLACED},
	{"/usr/local/share", BELOW_REPLACED},
	{"/usr/share", BELOW_REPLACED},
	{"/usr/share/locale", BELOW_REPLACED},
	{"/usr/share/zoneinfo", BELOW_REPLACED},
	{"/usr/src", BELOW_REPLACED},
	{"/boot", BELOW_REPLACED},
	{"/etc", BELOW_REPLACED},
	{"/etc/group", BELOW_REPLACED},
	{"/etc/hosts", BELOW_REPLACED},
	{"/etc/ld.so.cache", BELOW_REPLACED},
	{"/etc/ld.so.preload", BELOW_REPLACED},
	{"/etc/localtime", BELOW_REPLACED},
	{"/etc/nsswitch.conf", BELOW_REPLACED},
	{"/etc/passwd", BELOW_REPLACED},
	{"/etc/resolv.conf", BELOW_REPLACED},
	{"/home", BELOW_REPLACED},
	{"/media", BELOW_REPLACED},
	{"/mnt", BELOW_REPLACED},
	{"/opt", BELOW_REPLACED},
	{"/root", BELOW_REPLACED},
	{"/run", BELOW_REPLACED},
	{"/run/dbus", BELOW_REPLACED},
	{"/run/dbus/system_bus_socket", BELOW_REPLACED},
	{"/run/lock", BELOW_REPLACED},
	{"/run/nscd", BELOW_REPLACED},
	{"/run/nscd/socket", BELOW_REPLACED},
	{"/run/systemd", BELOW_REPLACED},
	{"/run/systemd/journal", BELOW_REPLACED},
	{"/run/systemd/journal/dev-log", BELOW_REPLACED},
	{"/run/systemd/journal/socket", BELOW_REPLACED},
	{"/run/systemd/journal/stdout", BELOW_REPLACED},
	{"/run/systemd/notify", BELOW_REPLACED},
	{"/run/user", BELOW_REPLACED},
	{"/srv", BELOW_REPLACED},
	{"/tmp", BELOW_REPLACED},
	{"/var", BELOW_REPLACED},
	{"/var/cache", BELOW_REPLACED},
	{"/var/lib", BELOW_REPLACED},
	{"/var/lock", BELOW_REPLACED},
	{"/var/log", BELOW_REPLACED},
	{"/var/run", BELOW_REPLACED},
	{"/var/spool", BELOW_REPLACED},
	{"/var/tmp", BELOW_REPLACED},
	{"/dev/disk", BELOW_REPLACED},
	{"/dev/dri", BELOW_REPLACED},
	{"/dev/hugepages", BELOW_REPLACED},
	{"/dev/mapper", BELOW_REPLACED},
	{"/dev/mqueue", BELOW_REPLACED},
	{"/dev/net", BELOW_REPLACED},
	{"/dev/net/tun", BELOW_REPLACED},
	{"/dev/pts", BELOW_REPLACED},
	{"/dev/shm", BELOW_REPLACED},
	{"/dev", BELOW_REPLACED},
	{"/proc", BELOW_REPLACED},
	{"/sys", BELOW_REPLACED},
	{"/sys/block", BELOW_REPLACED},
	{"/sys/class", BELOW_REPLACED},
	{"/sys/class/block", BELOW_REPLACED},
	{"/sys/class/net", BELOW_REPLACED},
	{"/sys/dev/block", BELOW_REPLACED},
	{"/sys/devices", BELOW_REPLACED},
	{"/sys/devices/system", BELOW_REPLACED},
	{"/sys/devices/system/cpu", BELOW_KEPT},
	{"/sys/devices/system/node", BELOW_KEPT},
	{"/sys/fs", BELOW_REPLACED},
	{"/sys/fs/bpf", BELOW_REPLACED},
	{"/sys/fs/cgroup", BELOW_REPLACED},
	{"/sys/kernel", BELOW_REPLACED},
	{"/sys/kernel/btf", BELOW_REPLACED},
	{"/sys/kernel/btf/vmlinux", BELOW_REPLACED},
	{"/sys/kernel/mm", BELOW_REPLACED},
	{"/sys/kernel/mm/transparent_hugepage", BELOW_KEPT},
};

/* In a folder of the distribution these have what users have installed (pip, npm, CRAN). */
static const char *const users_parts[] = {"site-packages", "node_modules", "site-library",
					  "cgi-bin"};

/* Returns the length of the path's part at the text. */
static size_t part_length(const char *text)
{
	return strcspn(text, "/");
}

static bool part_is(const char *text, const char *part)
{
	size_t length = strlen(part);

	return part_length(text) == length && !strncmp(text, part, length);
}

/* What is above a folder cannot be known by its name. */
static bool leads_upward(const char *path)
{
	for (const char *at = path; *at; at += strspn(at, "/")) {
		if (part_is(at, ".."))
			return true;
		at += part_length(at);
	}
	return false;
}

/* Returns how many bytes are kept of a path below a folder of the distribution. */
static size_t kept_below(const char *path, size_t begin)
{
	const char *at = path + begin;

	while (*at) {
		at += strspn(at, "/");
		for (size_t i = 0; i < ARRAY_LEN(users_parts); i++)
			if (part_is(at, users_parts[i]))
				return at + part_length(at) - path;
		at += part_length(at);
	}
	return at - path;
}

static size_t kept_by_places(const char *path)
{
	/* Debug files are below it by the paths or build IDs of the files that they are of. */
	static const char debug[] = "/usr/lib/debug/";
	size_t kept = 0;

	if (!strncmp(path, debug, strlen(debug)))
		return strlen(debug);
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		size_t length = strlen(places[i].path);

		if (strncmp(path, places[i].path, length) != 0 ||
		    (path[length] && path[length] != '/'))
			continue;
		if (places[i].below == BELOW_KEPT)
			return kept_below(path, length);
		kept = MAX(kept, length);
	}
	return kept;
}

/* Names of the kernel's files of a process are of small letters. */
#define PROC_LETTERS "abcdefghijklmnopqrstuvwxyz_"
#define DIGITS	     "0123456789"

static bool is_part_of(const char *text, const char *letters)
{
	size_t length = part_length(text);

	return length > 0 && strspn(text, letters) >= length;
}

/* Returns whether a part of a path in /proc leads to any other folder. */
static bool leads_out_of_proc(const char *part)
{
	return part_is(part, "root") || part_is(part, "cwd");
}

/* Of folders of /proc that are not of a process, only the first level is known. */
static size_t kept_in_proc(const char *path)
{
	static const char begin[] = "/proc/";
	const char *at = path + strlen(begin);
	bool is_process, is_last = false, is_below_last = false;

	if (strncmp(path, begin, strlen(begin)) != 0)
		return 0;
	is_process = is_part_of(at, DIGITS) || part_is(at, "self") || part_is(at, "thread-self");
	if (!is_process && !is_part_of(at, PROC_LETTERS) && !part_is(at, "kpagecount"))
		return 0;
	at += part_length(at);
	while (is_process && !is_last && *at == '/' && !leads_out_of_proc(at + 1) &&
	       (is_part_of(at + 1, DIGITS) || is_part_of(at + 1, PROC_LETTERS))) {
		/* A descriptor may be of a folder; below net are lists and interfaces. */
		is_last = is_below_last;
		is_below_last = part_is(at + 1, "fd") || part_is(at + 1, "net");
		at += 1 + part_length(at + 1);
	}
	if (!is_process && !strncmp(path, "/proc/sys/", strlen("/proc/sys/")) &&
	    (part_is(at + 1, "kernel") || part_is(at + 1, "vm") || part_is(at + 1, "fs"))) {
		at += 1 + part_length(at + 1);
		if (*at == '/' && is_part_of(at + 1, PROC_LETTERS DIGITS "-"))
			at += 1 + part_length(at + 1);
	}
	return at - path;
}

/* Nodes of /dev that the kernel names, which may be followed by a number. */
static size_t kept_in_dev(const char *path)
{
	static const char *const nodes[] = {
		"autofs",
		"btrfs-control",
		"console",
		"cpu_dma_latency",
		"full",
		"fuse",
		"hpet",
		"hwrng",
		"kfd",
		"kmsg",
		"kvm",
		"log",
		"loop-control",
		"mem",
		"null",
		"nvidia",
		"nvidiactl",
		"nvidia-uvm",
		"nvram",
		"port",
		"ppp",
		"ptmx",
		"random",
		"rtc",
		"snapshot",
		"tty",
		"ttyS",
		"ttyAMA",
		"ttyUSB",
		"ttyACM",
		"uinput",
		"urandom",
		"userfaultfd",
		"vhost-net",
		"vhost-vsock",
		"watchdog",
		"zero",
		/* in folders */
		"pts/",
		"dri/card",
		"dri/renderD",
		"pts/ptmx",
	};
	static const char begin[] = "/dev/";
	const char *name = path + strlen(begin);

	if (strncmp(path, begin, strlen(begin)) != 0)
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		size_t length = strlen(nodes[i]);

		if (!strncmp(name, nodes[i], length) &&
		    strspn(name + length, DIGITS) == strlen(name + length))
			return strlen(path);
	}
	return 0;
}

/* Sources of Rust's own library are called "/rustc/COMMIT/library/std/src/thread/mod.rs". */
static size_t kept_of_rust(const char *path)
{
	static const char begin[] = "/rustc/", library[] = "/library/";
	const char *at = path + strlen(begin);

	if (strncmp(path, begin, strlen(begin)) != 0)
		return 0;
	at += strspn(at, "0123456789abcdef");
	return at - path == (ptrdiff_t)strlen(begin) + 40 && !strncmp(at, library, strlen(library))
		       ? strlen(path)
		       : 0;
}

/*
 * Files of Python's library that rules of the analysis know (export/stacks/script_python.c), and
 * some that most programs use: below a folder "python3.11" they are public wherever it is.
 */
static bool is_of_python(const char *below)
{
	static const char *const files[] = {
		"_weakrefset.py",
		"asyncio/base_events.py",
		"asyncio/events.py",
		"asyncio/runners.py",
		"asyncio/selector_events.py",
		"asyncio/tasks.py",
		"concurrent/futures/_base.py",
		"concurrent/futures/process.py",
		"concurrent/futures/thread.py",
		"contextlib.py",
		"functools.py",
		"http/client.py",
		"http/server.py",
		"importlib/__init__.py",
		"json/decoder.py",
		"json/encoder.py",
		"logging/__init__.py",
		"multiprocessing/connection.py",
		"multiprocessing/pool.py",
		"multiprocessing/popen_fork.py",
		"multiprocessing/process.py",
		"multiprocessing/queues.py",
		"multiprocessing/synchronize.py",
		"pickle.py",
		"queue.py",
		"random.py",
		"re/__init__.py",
		"runpy.py",
		"selectors.py",
		"socket.py",
		"socketserver.py",
		"ssl.py",
		"subprocess.py",
		"tempfile.py",
		"threading.py",
		"urllib/request.py",
	};

	for (size_t i = 0; i < ARRAY_LEN(files); i++)
		if (!strcmp(below, files[i]))
			return true;
	return false;
}

/* Returns whether the part names a version of Python's library: "python3.11", "python3.13t". */
static bool is_python_folder(const char *part)
{
	return !strncmp(part, "python3.", strlen("python3.")) && anon_names_is_well_known(part);
}

size_t anon_paths_kept_length(const char *path)
{
	size_t kept;

	if (*path != '/' || leads_upward(path))
		return 0;
	kept = kept_by_places(path);
	kept = MAX(kept, kept_in_proc(path));
	kept = MAX(kept, kept_in_dev(path));
	return MAX(kept, kept_of_rust(path));
}

/* ---- what is in the place of a path -------------------------------------------------------- */

/* A text that grows in O(n); it has no NUL before text_end(). */
typedef VEC(char) PathText;

static void append(PathText *text, const char *more, size_t length)
{
	vec_append(text, more, length);
}

static void append_part(PathText *text, AnonNames *names, const char *part, enum anon_role role)
{
	_cleanup_free_ char *more = anon_names_part(names, part, role);

	append(text, more, strlen(more));
}

/* Returns the text as a string, which the caller frees. */
static char *text_end(PathText *text)
{
	char *string = xstrndup(text->items ? text->items : "", text->count);

	vec_free(text);
	return string;
}

/* Memory that the kernel names, and names that it makes: "pipe:[123]", "anon_inode:[eventpoll]". */
static bool is_kernel_name(const char *text)
{
	static const char *const known[] = {
		"//anon",
		"/anon_hugepage",
		"/dev/zero",
		"/[aio]",
		"/SYSV00000000",
		"[heap]",
		"[stack]",
		"[vdso]",
		"[vvar]",
		"[vvar_vclock]",
		"[vsyscall]",
		"[uprobes]",
		"[sigpage]",
		"[anon_hugepage]",
		"[guard]",
		"<string>",
		"<stdin>",
		"<unknown>",
		/* Python/frozen.c of CPython has these; a user may freeze other modules. */
		"<frozen _collections_abc>",
		"<frozen _sitebuiltins>",
		"<frozen abc>",
		"<frozen codecs>",
		"<frozen genericpath>",
		"<frozen getpath>",
		"<frozen importlib._bootstrap>",
		"<frozen importlib._bootstrap_external>",
		"<frozen importlib.machinery>",
		"<frozen importlib.util>",
		"<frozen io>",
		"<frozen ntpath>",
		"<frozen os>",
		"<frozen posixpath>",
		"<frozen runpy>",
		"<frozen site>",
		"<frozen stat>",
		"<frozen zipimport>",
		"<__array_function__ internals>",
	};
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
	size_t length = strspn(text, letters), inside;

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(text, known[i]))
			return true;
	if (length == 0 || strncmp(text + length, ":[", 2) != 0)
		return false;
	inside = strspn(text + length + 2, "abcdefghijklmnopqrstuvwxyz_-0123456789");
	return !strcmp(text + length + 2 + inside, "]");
}

/* Returns what stands for memory with a name that its program has given it, or NULL. */
static char *replace_memory(AnonNames *names, const char *text)
{
	static const char *const begins[] = {
		"[anon:", "[anon_shmem:", "/memfd:", "/dmabuf:", "/SYSV",
		"memfd:", "dmabuf:",	  "SYSV",    "[",	 "<"};
	size_t length = strlen(text);

	for (size_t i = 0; i < ARRAY_LEN(begins); i++) {
		size_t begin = strlen(begins[i]), end = 0;

		if (strncmp(text, begins[i], begin) != 0)
			continue;
		end = length > begin && ((*text == '[' && text[length - 1] == ']') ||
					 (*text == '<' && text[length - 1] == '>'));
		_cleanup_free_ char *inside = xstrndup(text + begin, length - begin - end);
		_cleanup_free_ char *name = anon_names_word(names, inside, ANON_FILE);

		return xasprintf("%s%s%s", begins[i], name, text + length - end);
	}
	return NULL;
}

/* ---- paths --------------------------------------------------------------------------------- */

/* The parts of what is kept are kept elsewhere, too, so that a name has one replacement. */
static void learn_kept(AnonNames *names, const char *kept)
{
	_cleanup_free_ char *copy = xstrdup(kept);
	char *rest = copy;

	for (char *part; names->is_learning && (part = strsep(&rest, "/"));)
		anon_names_keep(names, part);
}

/* A system's file that is called as replacements are would be taken for one. */
static void replace_kept(PathText *text, AnonNames *names, const char *path, size_t length)
{
	_cleanup_free_ char *kept = xstrndup(path, length);
	char *rest = kept;

	learn_kept(names, kept);
	for (char *part; (part = strsep(&rest, "/"));) {
		if (anon_names_is_replacement(part))
			append_part(text, names, part, ANON_FILE);
		else
			append(text, part, strlen(part));
		if (rest)
			append(text, "/", 1);
	}
}

/* A home directory is called as its user is. */
static void learn_user(AnonNames *names, const char *path)
{
	static const char home[] = "/home/";
	_cleanup_free_ char *user = NULL;

	if (!names->is_learning || strncmp(path, home, strlen(home)) != 0)
		return;
	user = xstrndup(path + strlen(home), part_length(path + strlen(home)));
	anon_names_person(names, user);
}

static void replace_parts(PathText *text, AnonNames *names, const char *path)
{
	size_t kept = anon_paths_kept_length(path);
	const char *at = path + kept;

	learn_user(names, path);
	replace_kept(text, names, path, kept);
	while (*at) {
		size_t slashes = strspn(at, "/"), length = part_length(at + slashes);
		_cleanup_free_ char *part = xstrndup(at + slashes, length);
		bool is_last = !at[slashes + length];

		append(text, at, slashes);
		append_part(text, names, part, is_last ? ANON_FILE : ANON_FOLDER);
		at += slashes + length;
		if (is_python_folder(part) && *at == '/' && is_of_python(at + 1)) {
			append(text, at, strlen(at));
			break;
		}
	}
}

char *anon_paths_replace(AnonNames *names, const char *path)
{
	bool is_deleted = text_ends_with(path, DELETED);
	size_t end = is_deleted ? strlen(DELETED) : 0;
	_cleanup_free_ char *live = xstrndup(path, strlen(path) - end);
	_cleanup_free_ char *memory =
		is_kernel_name(live) ? xstrdup(live) : replace_memory(names, live);
	PathText text = {};

	if (memory)
		append(&text, memory, strlen(memory));
	else
		replace_parts(&text, names, live);
	append(&text, DELETED, end);
	return text_end(&text);
}

bool anon_paths_is_kept(AnonNames *names, const char *path)
{
	_cleanup_free_ char *text = anon_paths_replace(names, path);

	return !strcmp(text, path);
}

/* ---- files without a path ------------------------------------------------------------------ */

char *anon_paths_object(AnonNames *names, const char *name)
{
	/* fs/eventfd.c and the other callers of anon_inode_getfile() of Linux 6.12. */
	static const char *const known[] = {
		"bpf-link",	    "bpf-map",	   "bpf-prog",	     "bpf_iter",
		"bpf_link",	    "btf",	   "dma-buf",	     "dmabuf",
		"eventfd",	    "eventpoll",   "fanotify",	     "fscontext",
		"fsmount",	    "inotify",	   "io_uring",	     "iommufd",
		"kvm-device",	    "kvm-vcpu",	   "kvm-vcpu-stats", "kvm-vm",
		"landlock-ruleset", "perf_event",  "pidfd",	     "secretmem",
		"seccomp notify",   "signalfd",	   "sync_file",	     "timerfd",
		"userfaultfd",	    "vfio-device",
	};
	bool has_brackets = *name == '[' && text_ends_with(name, "]");
	_cleanup_free_ char *inside =
		xstrndup(name + has_brackets, strlen(name) - 2 * (size_t)has_brackets);
	char *colon = strrchr(inside, ':');

	if (colon && strspn(colon + 1, DIGITS) == strlen(colon + 1))
		*colon = '\0';
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (!strcmp(inside, known[i]))
			return xstrdup(name);
	return anon_names_part(names, name, ANON_FILE);
}
