/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "commands.h"
#include "debug_files.h"
#include "elf_identifier.h"
#include "mapped_files.h"
#include "mapped_range.h"
#include "proc_maps.h"
#include "proc_status.h"
#include "safe_open.h"
#include "table_service.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMEOUT_NS (120 * NSEC_PER_SEC)

typedef struct CodeObject {
	char *path;
	ElfIdentity identity;
	int open_error;	  /* why the file could not be opened (negative errno), or 0 */
	int error;	  /* why there is no table (negative errno), or 0 */
	int debug;	  /* the value that TableReady gets */
	char *debug_path; /* the debug file that was found last; NULL = none */
	size_t rows, rules;
	uint64_t followed; /* UnwindCounts::code_followed */
	UnwindCoverage coverage;
} CodeObject;

typedef struct Doctor {
	ElfIdentifier *identifier;
	TableService *service;
	VEC(CodeObject) objects; /* index: the request's id */
	Strings paths;
	uint64_t jit_bytes; /* executable memory without a file */
	int root_fd;	    /* root folder of the process; -1: wallprof's own */
} Doctor;

/* A TableReady. */
static void on_table(void *user, uint32_t id, const UnwindTable *table, int error, int debug)
{
	Doctor *doctor = user;
	CodeObject *object = &doctor->objects.items[id];

	object->error = error;
	object->debug = debug;
	if (error)
		return;
	object->rows = table->rows.count;
	object->rules = table->rules.count;
	object->followed = table->counts.code_followed;
	object->coverage = unwind_table_coverage(table, &object->identity);
}

/* An OpenBeside. */
static int open_beside(void *user, const MappedFile *file, const char *path)
{
	const Doctor *doctor = user;
	struct stat st;

	(void)file;
	return safe_open_in(doctor->root_fd, path, &st);
}

/* A TableFindDebug. */
static int find_debug(void *user, uint32_t id, const char *debuglink, unsigned candidate)
{
	Doctor *doctor = user;
	CodeObject *object = &doctor->objects.items[id];
	_cleanup_free_ char *real = doctor->root_fd < 0 ? realpath(object->path, NULL) : NULL;
	MappedFile file = {.path = real ? real : object->path,
			   .build_id_len = object->identity.build_id_len};
	_cleanup_(debug_files_free)
		DebugFiles debug = {.file = &file, .open = open_beside, .open_user = doctor};
	int fd;

	memcpy(file.build_id, object->identity.build_id, sizeof(file.build_id));
	fd = debuglink ? debug_files_by_link(&debug, debuglink, candidate)
		       : debug_files_by_build_id(&debug);
	if (fd < 0)
		return fd;
	free(object->debug_path);
	object->debug_path = xstrdup(debug.found);
	return fd;
}

/*
 * Adds an object and requests its table. fd is the open file, which this closes, or the negative
 * errno of opening it. Returns 0 or a negative errno.
 */
static int add_object(Doctor *doctor, const char *path, int fd)
{
	_cleanup_close_ int file = fd;
	CodeObject object = {.path = xstrdup(path), .open_error = MIN(fd, 0)};
	uint32_t id = doctor->objects.count;
	int error = file < 0 ? file
			     : elf_identifier_identify(doctor->identifier, file, &object.identity);

	object.error = error;
	*vec_push(&doctor->objects) = object;
	if (error)
		return error;
	table_service_request(doctor->service, &(TableRequest){
						       .id = id,
						       .fd = file,
						       .base_svma = object.identity.base_svma,
						       .build_id = object.identity.build_id,
						       .build_id_len = object.identity.build_id_len,
					       });
	return 0;
}

/* A MappedFits. */
static int is_mapped(void *user, enum mapped_method way, int fd, const struct stat *st)
{
	const ProcMapping *mapping = user;

	(void)fd;
	return way == MAPPED_BY_LINK || st->st_ino == mapping->inode ? 0 : -ESTALE;
}

/* What add_mapping() needs besides the mapping. */
typedef struct MappingAdder {
	Doctor *doctor;
	uint32_t ns_tgid;
} MappingAdder;

static int add_mapping(void *user, const ProcMapping *mapping)
{
	const MappingAdder *adder = user;
	Doctor *doctor = adder->doctor;
	ProcMapping wanted = *mapping;
	MappedRange handle = {.ns_tgid = adder->ns_tgid,
			      .start = mapping->start,
			      .end = mapping->end,
			      .root_fd = doctor->root_fd,
			      .path = mapping->path};
	struct stat st;

	if (!mapping->exec)
		return 0;
	if (*mapping->path != '/') {
		/* The vDSO and vsyscall are kernel code. */
		if (strcmp(mapping->path, "[vdso]") && strcmp(mapping->path, "[vsyscall]"))
			doctor->jit_bytes += mapping->end - mapping->start;
		return 0;
	}
	if (strings_intern(&doctor->paths, mapping->path) >= doctor->objects.count)
		add_object(doctor, mapping->path,
			   mapped_range_open(&handle, is_mapped, &wanted, &st));
	return 0;
}

/* The report of a process is useful if at least one of its files was opened, or if it has none. */
static int check_opened(const Doctor *doctor, const char *pid)
{
	int error = 0;

	for (size_t i = 0; i < doctor->objects.count; i++) {
		error = doctor->objects.items[i].open_error;
		if (!error)
			return 0;
	}
	if (error)
		log_error("reading the files of process %s failed: %s", pid, strerror(-error));
	return error;
}

static int add_process(Doctor *doctor, const char *pid)
{
	_cleanup_free_ char *path = xasprintf("/proc/%s/maps", pid);
	_cleanup_free_ char *root = xasprintf("/proc/%s/root/", pid);
	/* No process has a larger number. */
	pid_t number = MIN(strtoul(pid, NULL, 10), (unsigned long)INT_MAX);
	MappingAdder adder = {doctor, number};
	int error;

	doctor->root_fd = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	error = proc_maps_each(number, add_mapping, &adder);
	if (error)
		log_error("reading %s failed: %s%s", path, strerror(-error),
			  proc_is_ours() ? "" : "; " PROC_REMEDY);
	return error;
}

static bool is_number(const char *what)
{
	return *what && strspn(what, "0123456789") == strlen(what);
}

static int add_all(Doctor *doctor, const char *what)
{
	struct stat st;
	int fd, error;

	if (is_number(what) && access(what, F_OK))
		return add_process(doctor, what);
	fd = safe_open(what, 0, &st);
	error = add_object(doctor, what, fd);
	if (error)
		log_error("reading %s failed: %s", what,
			  error == -ENOEXEC ? table_error_text(error) : strerror(-error));
	return error;
}

/* Prints which debug file the table uses, or why it does not use one. */
static void print_debug_file(const CodeObject *object)
{
	if (object->debug == TABLE_DEBUG_USED)
		printf(", with %s", object->debug_path);
	else if (object->debug < 0)
		printf("; %s is not used: %s", object->debug_path, table_error_text(object->debug));
	putchar('\n');
}

/*
 * All columns are per cent of the code: covered (the walk continues or rightly ends there) and the
 * part of it whose rules were made from instructions alone; gaps; large gaps, in which frame
 * pointers are tried (fp only); and rules that the walk cannot apply.
 */
static void print_coverage(const CodeObject *object)
{
	const UnwindCoverage *coverage = &object->coverage;
	uint64_t gaps = coverage->none_bytes[NONE_GAP];
	uint64_t large = coverage->none_bytes[NONE_UNKNOWN_CODE];
	uint64_t none = coverage->bytes[CFA_NONE], all = 0;
	double percent;

	for (size_t i = 0; i < UNWIND_CFAS; i++)
		all += coverage->bytes[i];
	percent = all ? 100.0 / all : 0;
	printf("%7.2f%% %8.2f%% %9zu %6zu %7.2f%% %7.2f%% %7.2f%%  %s", percent * (all - none),
	       percent * object->followed, object->rows, object->rules, percent * gaps,
	       percent * large, percent * (none - gaps - large), object->path);
}

static const char *object_error_text(const CodeObject *object)
{
	if (!object->open_error)
		return table_error_text(object->error);
	if (object->open_error == -EPERM)
		return "deleted or replaced since it was mapped; reading it needs "
		       "CAP_CHECKPOINT_RESTORE";
	return strerror(-object->open_error);
}

static void print_object(const CodeObject *object)
{
	if (object->error)
		printf("%8s %9s %9s %6s %8s %8s %8s  %s: %s", "-", "-", "-", "-", "-", "-", "-",
		       object->path, object_error_text(object));
	else
		print_coverage(object);
	print_debug_file(object);
}

static void print_all(const Doctor *doctor)
{
	printf("%8s %9s %9s %6s %8s %8s %8s  %s\n", "covered", "followed", "rows", "rules", "gaps",
	       "fp only", "other", "file");
	for (size_t i = 0; i < doctor->objects.count; i++)
		print_object(&doctor->objects.items[i]);
	if (doctor->jit_bytes)
		printf("%" PRIu64 " KiB of code without a file, walked by frame pointers\n",
		       doctor->jit_bytes >> 10);
}

static void free_doctor(Doctor *doctor)
{
	table_service_free(doctor->service);
	elf_identifier_free(doctor->identifier);
	for (size_t i = 0; i < doctor->objects.count; i++) {
		free(doctor->objects.items[i].path);
		free(doctor->objects.items[i].debug_path);
		elf_identity_free(&doctor->objects.items[i].identity);
	}
	vec_free(&doctor->objects);
	strings_free(&doctor->paths);
	closep(&doctor->root_fd);
}

int doctor_unwind(const char *what)
{
	_cleanup_(free_doctor)
		Doctor doctor = {.identifier = elf_identifier_new(elf_identify), .root_fd = -1};
	TableServiceOptions options = {.find_debug = find_debug, .find_user = &doctor};
	int error = table_service_new(&options, &doctor.service);

	if (error) {
		log_error("starting the table workers failed: %s", strerror(-error));
		return error;
	}
	error = add_all(&doctor, what);
	if (error)
		return error;
	table_service_wait(doctor.service, now_ns() + TIMEOUT_NS, on_table, &doctor);
	print_all(&doctor);
	return check_opened(&doctor, what);
}
