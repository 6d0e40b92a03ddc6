/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "interpreters.h"
#include "sandbox.h"
#include <bpf/bpf.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The recorder waits for the answer, which takes about a millisecond, while its rings fill. */
#define ANSWER_MS 500

static const InterpreterModule *const modules[] = {&python_module};

/* What is known of one mapped file. */
typedef struct LookedAt {
	const InterpreterModule *module; /* NULL: it is no interpreter */
	InterpreterFound found;
	bool done;
} LookedAt;

/* A process that runs an interpreter. */
typedef struct Interpreted {
	uint32_t tgid;
	struct script_process process;
} Interpreted;

struct Interpreters {
	MappedFiles *files;
	VEC(LookedAt) looked_at; /* by FILE id */
	VEC(Interpreted) processes;
	Map files_of; /* tgid -> FILE id, also of processes that have ended */
	Map ns_tgids; /* tgid -> tgid in the recorder's PID namespace */
	int map_fd;   /* -1: the programs are not loaded */
	uint64_t lost;
};

Interpreters *interpreters_new(MappedFiles *files)
{
	Interpreters *interpreters = xcalloc(1, sizeof(*interpreters));

	interpreters->files = files;
	interpreters->map_fd = -1;
	return interpreters;
}

void interpreters_free(Interpreters *interpreters)
{
	if (!interpreters)
		return;
	vec_free(&interpreters->looked_at);
	vec_free(&interpreters->processes);
	map_free(&interpreters->files_of);
	map_free(&interpreters->ns_tgids);
	free(interpreters);
}

/* ---- files ------------------------------------------------------------------------------ */

typedef struct Question {
	const InterpreterModule *module;
	const char *name;
} Question;

static void child_main(int socket, const int *fds, const void *argument)
{
	const Question *question = argument;
	InterpreterFound found = {};
	ElfMap map;

	if (elf_map_open(fds[0], &map) == 0 && !elf_file_is_32(map.elf))
		question->module->find(map.elf, question->name, &found);
	sandbox_send(socket, &found, sizeof(found), -1);
}

/* Reads the answer, or nothing if it does not come in time. */
static bool receive(int socket, InterpreterFound *ret_found)
{
	uint64_t deadline = now_ns() + ANSWER_MS * NSEC_PER_MSEC;
	char *p = (char *)ret_found;
	size_t rest = sizeof(*ret_found);

	while (rest > 0 && now_ns() < deadline) {
		struct pollfd polled = {.fd = socket, .events = POLLIN};
		ssize_t got;

		if (poll(&polled, 1, ANSWER_MS) <= 0)
			continue;
		got = recv(socket, p, rest, 0);
		if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
			return false;
		p += MAX(got, 0);
		rest -= MAX(got, 0);
	}
	return rest == 0;
}

static void ask(int fd, const Question *question, InterpreterFound *ret_found)
{
	SandboxLimits limits = {.cpu_seconds = 1};
	InterpreterFound found;
	Sandbox child = {};

	if (sandbox_start(child_main, &fd, 1, question, &limits, &child))
		return;
	if (receive(child.socket, &found))
		*ret_found = found;
	sandbox_end(&child);
}

static LookedAt look_at(MappedFiles *files, uint32_t file)
{
	LookedAt looked_at = {.done = true};
	FileView view = mapped_files_view(files, file);
	const char *name = strrchr(view.path, '/');
	struct stat status;

	name = name ? name + 1 : view.path;
	if (view.fd < 0 || fstat(view.fd, &status))
		return looked_at;
	for (size_t i = 0; i < ARRAY_LEN(modules) && !looked_at.found.present; i++) {
		Question question = {modules[i], name};

		if (!modules[i]->may_be(name, status.st_size))
			continue;
		ask(view.fd, &question, &looked_at.found);
		if (looked_at.found.present)
			looked_at.module = modules[i];
	}
	return looked_at;
}

void interpreters_look(Interpreters *interpreters, uint32_t file)
{
	while (interpreters->looked_at.count <= file)
		*vec_push(&interpreters->looked_at) = (LookedAt){};
	if (!interpreters->looked_at.items[file].done)
		interpreters->looked_at.items[file] = look_at(interpreters->files, file);
}

bool interpreters_are_found(const Interpreters *interpreters)
{
	for (size_t i = 0; i < interpreters->looked_at.count; i++)
		if (interpreters->looked_at.items[i].found.readable)
			return true;
	return false;
}

/* Returns "free-threaded Python 3.13 (/usr/bin/python3.13t)". The caller frees it. */
static char *interpreter_text(const Interpreters *interpreters, size_t file)
{
	const LookedAt *looked_at = &interpreters->looked_at.items[file];
	uint32_t version = looked_at->found.version;
	_cleanup_free_ char *number =
		version ? xasprintf(" %u.%u", version >> 8, version & 0xff) : xstrdup("");

	return xasprintf("%s%s%s (%s%s)", looked_at->found.free_threaded ? "free-threaded " : "",
			 looked_at->module->language, number,
			 looked_at->found.free_threaded ? ""
			 : version			? "not supported: "
							: "of an unknown version: ",
			 mapped_files_view(interpreters->files, file).path);
}

char *interpreters_unknown(const Interpreters *interpreters)
{
	char *text = NULL;

	for (size_t i = 0; i < interpreters->looked_at.count; i++) {
		const LookedAt *looked_at = &interpreters->looked_at.items[i];
		_cleanup_free_ char *before = NULL, *one = NULL;

		if (!looked_at->module || looked_at->found.readable)
			continue;
		before = text;
		one = interpreter_text(interpreters, i);
		text = before ? xasprintf("%s, %s", before, one) : xstrdup(one);
	}
	return text;
}

uint64_t interpreters_lost(const Interpreters *interpreters)
{
	return interpreters->lost;
}

/* ---- processes -------------------------------------------------------------------------- */

static void publish(Interpreters *interpreters, const Interpreted *interpreted)
{
	if (interpreters->map_fd >= 0 &&
	    bpf_map_update_elem(interpreters->map_fd, &interpreted->tgid, &interpreted->process,
				BPF_ANY))
		interpreters->lost++;
}

void interpreters_use_map(Interpreters *interpreters, int map_fd)
{
	interpreters->map_fd = map_fd;
	for (size_t i = 0; i < interpreters->processes.count; i++)
		publish(interpreters, &interpreters->processes.items[i]);
}

static Interpreted *find_process(const Interpreters *interpreters, uint32_t tgid)
{
	for (size_t i = 0; i < interpreters->processes.count; i++)
		if (interpreters->processes.items[i].tgid == tgid)
			return &interpreters->processes.items[i];
	return NULL;
}

/* An image has one interpreter, whose layout follows from its address. */
static bool is_same(const struct script_process *a, const struct script_process *b)
{
	return a->start_boottime == b->start_boottime && a->exec_id == b->exec_id &&
	       a->runtime == b->runtime;
}

void interpreters_add(Interpreters *interpreters, const InterpretedImage *image, uint32_t file,
		      uint64_t bias)
{
	const InterpreterFound *found = file < interpreters->looked_at.count
						? &interpreters->looked_at.items[file].found
						: NULL;
	Interpreted interpreted = {.tgid = image->tgid}, *known;

	if (!found || !found->readable)
		return;
	interpreted.process = found->process;
	interpreted.process.start_boottime = image->start_boottime;
	interpreted.process.exec_id = image->exec_id;
	interpreted.process.runtime = found->runtime + bias;
	interpreted.process.code_type += bias;
	known = find_process(interpreters, image->tgid);
	if (known && is_same(&known->process, &interpreted.process))
		return;
	map_set(&interpreters->files_of, image->tgid, file);
	map_set(&interpreters->ns_tgids, image->tgid, image->ns_tgid);
	if (!known)
		known = vec_push(&interpreters->processes);
	*known = interpreted;
	publish(interpreters, known);
}

bool interpreters_any(const Interpreters *interpreters)
{
	return interpreters->processes.count > 0;
}

static bool is_of_image(const Interpreted *interpreted, const InterpretedImage *image)
{
	return interpreted->process.start_boottime == image->start_boottime &&
	       interpreted->process.exec_id == image->exec_id;
}

const struct script_process *interpreters_process(const Interpreters *interpreters,
						  const InterpretedImage *image)
{
	const Interpreted *known = find_process(interpreters, image->tgid);

	return known && is_of_image(known, image) ? &known->process : NULL;
}

uint32_t interpreters_file(const Interpreters *interpreters, uint32_t tgid)
{
	uint32_t file = map_get(&interpreters->files_of, tgid);

	return file == MAP_NONE ? 0 : file;
}

uint32_t interpreters_ns_tgid(const Interpreters *interpreters, uint32_t tgid)
{
	uint32_t ns_tgid = map_get(&interpreters->ns_tgids, tgid);

	return ns_tgid == MAP_NONE ? 0 : ns_tgid;
}

void interpreters_remove(Interpreters *interpreters, const InterpretedImage *image)
{
	Interpreted *known = find_process(interpreters, image->tgid);

	if (!known || !is_of_image(known, image))
		return;
	if (interpreters->map_fd >= 0)
		bpf_map_delete_elem(interpreters->map_fd, &image->tgid);
	*known = interpreters->processes.items[--interpreters->processes.count];
}
