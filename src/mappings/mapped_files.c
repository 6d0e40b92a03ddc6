/* SPDX-License-Identifier: GPL-2.0-or-later */
#include "mapped_files.h"
#include "elf_identifier.h"
#include "mapped_range.h"
#include "mapped_roots.h"
#include "proc_maps.h"
#include "proc_status.h"
#include "safe_open.h"
#include "sources.h"
#include "vdso.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* If there are no more descriptors, so many files are closed, and as many more are looked at. */
#define CLOSE_AT_ONCE 64
/* The rights of so many different users that map one file are kept. */
#define RIGHTS_OF_FILE 4
/* The rights of the processes that map one file are read so often: that takes some 40 us. */
#define LOOKS_AT_RIGHTS 16

typedef struct HeldFile {
	int fd;	    /* -1: it could not be opened, is no file, or was closed since */
	int error;  /* why it could not be opened, a negative errno */
	char *path; /* below its root; NULL if it was never open */
	uint8_t flags;
	bool not_elf; /* it was opened, and is a file of another format */
	bool closed;  /* descriptors were scarce, and its path led to it */
	bool gone;    /* it was closed, and its path leads to it no more */
	bool pinned;  /* its descriptor is in use */
	dev_t device;
	ino_t inode;
	uint32_t root;		 /* of the processes that map it, a number of mapped_roots_hold() */
	uint64_t size, mtime_ns; /* as of its opening */
	ElfIdentity identity;
	uint32_t rights[RIGHTS_OF_FILE]; /* of the processes that mapped it, at that moment */
	uint8_t rights_count, rights_looks;
} HeldFile;

struct MappedFiles {
	RecordSink sink;
	void *user;
	ElfIdentifier *identifier;
	MappedRoots roots;
	JitFiles jit;
	MovedSuspects moved;
	JitCodes *codes;
	VEC(HeldFile) list;	/* index = id - 1 */
	size_t next_to_close;	/* in list */
	VEC(OpenRights) rights; /* different ones */
	Strings keys;
	VEC(uint32_t) ids; /* of the file with key i */
};

MappedFiles *mapped_files_new(RecordSink sink, void *user)
{
	MappedFiles *files = xcalloc(1, sizeof(*files));

	files->sink = sink;
	files->user = user;
	files->identifier = elf_identifier_new(elf_identify);
	files->codes = jit_processes_new();
	mapped_roots_init(&files->roots);
	return files;
}

static void release(HeldFile *held)
{
	closep(&held->fd);
	free(held->path);
	elf_identity_free(&held->identity);
}

void mapped_files_free(MappedFiles *files)
{
	if (!files)
		return;
	for (size_t i = 0; i < files->list.count; i++)
		release(&files->list.items[i]);
	mapped_roots_free(&files->roots);
	jit_files_free(&files->jit);
	moved_suspects_free(&files->moved);
	jit_processes_free(files->codes);
	elf_identifier_free(files->identifier);
	vec_free(&files->list);
	vec_free(&files->rights);
	strings_free(&files->keys);
	vec_free(&files->ids);
	free(files);
}

/* The build id must be the same, or, for a file without one, the inode. */
static bool is_same_file(const struct stat *st, const MappingSeen *mapping,
			 const ElfIdentity *identity)
{
	if (mapping->build_id_len)
		return identity->build_id_len == mapping->build_id_len &&
		       !memcmp(identity->build_id, mapping->build_id, mapping->build_id_len);
	return !mapping->inode || st->st_ino == mapping->inode;
}

/* A mapping, and what is known of the file that may be behind it. */
typedef struct Candidate {
	const MappedFiles *files;
	const MappingSeen *mapping;
	ElfIdentity identity;
	bool not_elf;
} Candidate;

/* A MappedFits. */
static int is_mapped(void *user, enum mapped_method way, int fd, const struct stat *st)
{
	Candidate *candidate = user;
	int error;

	(void)way;
	error = elf_identifier_identify(candidate->files->identifier, fd, &candidate->identity);
	if (!error && !is_same_file(st, candidate->mapping, &candidate->identity))
		error = -ESTALE;
	if (candidate->identity.not_elf && st->st_ino == candidate->mapping->inode)
		candidate->not_elf = true;
	if (error) {
		elf_identity_free(&candidate->identity);
		candidate->identity = (ElfIdentity){};
	}
	return error;
}

static int open_in_root(const MappedFiles *files, const HeldFile *held, const char *path,
			struct stat *ret_stat)
{
	return safe_open_in(mapped_roots_fd(&files->roots, held->root), path, ret_stat);
}

/* Opens a file again that was closed. Returns a new descriptor, or a negative errno. */
static int open_again(const MappedFiles *files, const HeldFile *held)
{
	struct stat st;
	int fd = open_in_root(files, held, held->path, &st);

	if (fd >= 0 && (st.st_dev != held->device || st.st_ino != held->inode ||
			(uint64_t)st.st_size != held->size ||
			st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec != held->mtime_ns)) {
		close(fd);
		return -ESTALE;
	}
	return fd;
}

/* Returns whether it was closed. */
static bool close_if_path_leads(const MappedFiles *files, HeldFile *held)
{
	int again = open_again(files, held);

	if (again < 0)
		return false;
	close(again);
	closep(&held->fd);
	held->closed = true;
	return true;
}

/*
 * A recording of the whole system can map more files than a process may have open. Those that were
 * opened first and that their paths still lead to are closed, and opened again when they are read.
 * Returns whether there is room now.
 */
static bool close_some(MappedFiles *files)
{
	size_t closed = 0, kept = 0;

	for (size_t i = 0; i < files->list.count && closed < CLOSE_AT_ONCE; i++) {
		HeldFile *held = &files->list.items[files->next_to_close++ % files->list.count];

		if (held->fd < 0 || held->pinned || held->flags & FILE_MEMORY)
			continue;
		if (close_if_path_leads(files, held))
			closed++;
		else if (++kept > CLOSE_AT_ONCE)
			break; /* Looking at those that stay open must not take long each time. */
	}
	return closed > 0;
}

/* Whether opening it again may succeed later: all else is about the path or about what it names. */
static bool is_shortage(int error)
{
	return error == -EMFILE || error == -ENFILE || error == -ENOMEM || error == -EWOULDBLOCK;
}

/* Opens a closed file again, to stay open. */
static void reopen(MappedFiles *files, HeldFile *held)
{
	int fd = held->closed ? open_again(files, held) : -1;

	if (held->closed)
		held->gone = fd < 0 && !is_shortage(fd);
	if (fd >= 0 && !safe_open_may_keep(fd) && !close_some(files))
		closep(&fd);
	if (fd < 0)
		return;
	held->fd = fd;
	held->closed = false;
}

static MappedRange range_of(const MappedFiles *files, const MappingSeen *mapping, uint32_t root)
{
	return (MappedRange){.ns_tgid = mapping->ns_tgid,
			     .start = mapping->start,
			     .end = mapping->end,
			     .root_fd = mapped_roots_fd(&files->roots, root),
			     .path = mapping->path};
}

static void open_file(MappedFiles *files, HeldFile *held, const MappingSeen *mapping)
{
	Candidate candidate = {.files = files, .mapping = mapping};
	MappedRange range = range_of(files, mapping, held->root);
	size_t length = strlen(mapping->path);
	static const char deleted[] = " (deleted)";
	struct stat st;
	int fd;

	if (length >= sizeof(deleted) &&
	    !strcmp(mapping->path + length - (sizeof(deleted) - 1), deleted))
		held->flags |= FILE_DELETED;
	fd = mapped_range_open(&range, is_mapped, &candidate, &st);
	if (fd < 0) {
		held->error = fd;
		held->flags |= FILE_UNREADABLE;
		held->not_elf = candidate.not_elf;
		return;
	}
	held->fd = fd;
	held->path = xstrdup(mapping->path);
	held->identity = candidate.identity;
	held->device = st.st_dev;
	held->inode = st.st_ino;
	held->size = st.st_size;
	held->mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	if (safe_open_may_keep(fd) || close_some(files) || close_if_path_leads(files, held))
		return;
	closep(&held->fd);
	held->error = -EMFILE;
	held->flags |= FILE_UNREADABLE;
}

static int emit_file(MappedFiles *files, uint32_t id, const HeldFile *held,
		     const MappingSeen *mapping)
{
	size_t path_length = strlen(mapping->path) + 1;
	size_t length = (sizeof(struct rec_file) + path_length + 7) & ~7UL;
	_cleanup_free_ struct rec_file *record = xcalloc(1, length);

	record->h = (struct record){
		.len = length, .kind = REC_FILE, .flags = held->flags, .ns = mapping->ns};
	record->id = id;
	record->size = held->size;
	record->mtime_ns = held->mtime_ns;
	record->base_svma = held->identity.base_svma;
	record->build_id_len = held->identity.build_id_len;
	memcpy(record->build_id, held->identity.build_id, sizeof(record->build_id));
	if (!record->build_id_len && mapping->build_id_len) {
		record->build_id_len = mapping->build_id_len;
		memcpy(record->build_id, mapping->build_id, sizeof(record->build_id));
	}
	memcpy(record->path, mapping->path, path_length);
	return files->sink(files->user, &record->h);
}

/*
 * Two mappings are of one file if they have the same key: path and build id, or inode if the build
 * id is not known.
 */
static char *file_key(const MappingSeen *mapping)
{
	char id[2 * sizeof(mapping->build_id) + 1] = "";

	for (int i = 0; i < mapping->build_id_len; i++)
		sprintf(id + 2 * i, "%02x", mapping->build_id[i]);
	return xasprintf("%s\n%s\n%" PRIu64, mapping->path, id,
			 mapping->build_id_len ? 0 : mapping->inode);
}

/* Returns the slot that holds the id of the file with this key; 0 = a new file. */
static uint32_t *id_of_key(MappedFiles *files, const MappingSeen *mapping)
{
	_cleanup_free_ char *key = file_key(mapping);
	uint32_t index = strings_intern(&files->keys, key);

	if (index == files->ids.count)
		*vec_push(&files->ids) = 0;
	return &files->ids.items[index];
}

/* A MappedFits. A jitdump has no identity, and is checked when it is read; no program is one. */
static int may_be_dump(void *user, enum mapped_method way, int fd, const struct stat *st)
{
	(void)user;
	(void)fd;
	(void)st;
	return way == MAPPED_BY_EXE ? -ENOEXEC : 0;
}

/* A process can announce a file that it must not read. */
static void hold_dump(MappedFiles *files, const MappingSeen *mapping)
{
	MappedRange range =
		range_of(files, mapping, mapped_roots_hold(&files->roots, mapping->ns_tgid));
	OpenRights rights;
	OwnRights own;
	struct stat st;
	int fd = -1;

	if (safe_open_rights_of(mapping->ns_tgid, &rights))
		safe_open_rights_of_nobody(&rights);
	if (!safe_open_enter(&rights, &own)) {
		fd = mapped_range_open(&range, may_be_dump, NULL, &st);
		if (safe_open_leave(&own))
			closep(&fd);
	}
	/* One that cannot be opened is added as well, so that its names are reported missing. */
	jit_files_add_dump(&files->jit, mapping->ns_tgid, mapping->path, range.root_fd, &rights,
			   MAX(fd, -1));
}

static HeldFile hold(MappedFiles *files, const MappingSeen *mapping)
{
	HeldFile held = {.fd = -1, .root = MAPPED_ROOT_OWN};

	if (!strcmp(mapping->path, "[vdso]")) {
		held.flags |= FILE_VDSO;
		vdso_identify(&held.identity);
	} else if (proc_maps_is_anonymous(mapping->path)) {
		held.flags |= FILE_ANON;
	} else if (jit_files_is_dump(mapping->path)) {
		held.flags |=
			FILE_UNREADABLE; /* it is mapped to announce itself, not to be executed */
		hold_dump(files, mapping);
	} else {
		held.root = mapped_roots_hold(&files->roots, mapping->ns_tgid);
		open_file(files, &held, mapping);
	}
	return held;
}

/*
 * /proc/PID/maps has an inode, the side-band a build id: a file that both report must stay one
 * file.
 */
int mapped_files_get(MappedFiles *files, const MappingSeen *mapping, uint32_t *ret_id)
{
	MappingSeen identified = *mapping;
	HeldFile held;

	*ret_id = *id_of_key(files, mapping);
	if (*ret_id)
		return 0;
	held = hold(files, mapping);
	if (held.identity.build_id_len) {
		identified.build_id_len = held.identity.build_id_len;
		memcpy(identified.build_id, held.identity.build_id, sizeof(identified.build_id));
	}
	*ret_id = *id_of_key(files, &identified);
	if (*ret_id) {
		release(&held);
		*id_of_key(files, mapping) = *ret_id;
		return 0;
	}
	*vec_push(&files->list) = held;
	*ret_id = files->list.count;
	*id_of_key(files, mapping) = *ret_id;
	*id_of_key(files, &identified) = *ret_id;
	return emit_file(files, *ret_id, &held, mapping);
}

int mapped_files_add_memory(MappedFiles *files, uint32_t ns_tgid, int fd, uint32_t *ret_id)
{
	MappingSeen mapping = {.ns = now_ns(), .ns_tgid = ns_tgid, .path = "[jit]"};
	HeldFile held = {.fd = -1, .root = MAPPED_ROOT_OWN, .flags = FILE_MEMORY};
	struct stat st;

	if (fstat(fd, &st) || elf_identifier_identify(files->identifier, fd, &held.identity) ||
	    (!safe_open_may_keep(fd) && !close_some(files))) {
		elf_identity_free(&held.identity);
		closep(&fd);
		return *ret_id = 0;
	}
	held.fd = fd;
	held.device = st.st_dev;
	held.inode = st.st_ino;
	held.size = st.st_size;
	held.mtime_ns = st.st_mtim.tv_sec * NSEC_PER_SEC + st.st_mtim.tv_nsec;
	*vec_push(&files->list) = held;
	*ret_id = files->list.count;
	return emit_file(files, *ret_id, &held, &mapping);
}

/* Returns the index of the rights that a process has now, or UINT32_MAX. */
static uint32_t rights_of(MappedFiles *files, uint32_t ns_tgid)
{
	OpenRights rights;

	if (safe_open_rights_of(ns_tgid, &rights))
		return UINT32_MAX;
	for (size_t i = 0; i < files->rights.count; i++)
		if (safe_open_rights_equal(&files->rights.items[i], &rights))
			return i;
	*vec_push(&files->rights) = rights;
	return files->rights.count - 1;
}

static bool needs_rights(const MappedFiles *files, const HeldFile *held)
{
	if (geteuid() != 0 || !held->path || held->rights_count == RIGHTS_OF_FILE ||
	    held->rights_looks == LOOKS_AT_RIGHTS)
		return false;
	for (size_t i = 0; i < held->rights_count; i++)
		if (files->rights.items[held->rights[i]].reads_all)
			return false;
	return true;
}

/* The file's debug information names sources, which root reads with these rights. */
static void note_rights(MappedFiles *files, HeldFile *held, uint32_t ns_tgid)
{
	uint32_t rights;

	if (!needs_rights(files, held))
		return;
	held->rights_looks++;
	rights = rights_of(files, ns_tgid);
	for (size_t i = 0; i < held->rights_count; i++)
		if (held->rights[i] == rights)
			return;
	if (rights != UINT32_MAX)
		held->rights[held->rights_count++] = rights;
}

/* 32-bit processes have another vDSO, which the kernel gives the same name. */
#define VDSO_32_BELOW (1ULL << 32)

/* Returns whether the kernel made that code: nearly each process has some. */
static bool is_kernels(const char *path)
{
	return !strcmp(path, "[vsyscall]") || !strcmp(path, "[vdso32]") ||
	       !strcmp(path, "[uprobes]");
}

static int add_mapping(MappedFiles *files, const MappingSeen *mapping)
{
	struct rec_mapping record = {
		.h = {.len = sizeof(record), .kind = REC_MAPPING, .ns = mapping->ns},
		.ns_tgid = mapping->ns_tgid,
		.start = mapping->start,
		.end = mapping->end,
		.pgoff = mapping->pgoff,
	};
	HeldFile *held;
	int error = mapped_files_get(files, mapping, &record.file);

	if (error)
		return error;
	record.h.flags = MAPPING_EXEC | (mapping->initial ? MAPPING_INITIAL : 0);
	held = &files->list.items[record.file - 1];
	note_rights(files, held, mapping->ns_tgid);
	if (held->flags & (FILE_ANON | FILE_UNREADABLE) && !(held->flags & FILE_VDSO)) {
		jit_files_note_process(
			&files->jit, mapping->ns_tgid,
			mapped_roots_fd(&files->roots,
					mapped_roots_hold(&files->roots, mapping->ns_tgid)));
		if (!is_kernels(mapping->path)) {
			moved_suspects_note(&files->moved, mapping->ns_tgid,
					    &(MovedSuspect){.start = mapping->start,
							    .end = mapping->end,
							    .ns = mapping->ns,
							    .initial = mapping->initial});
			jit_processes_note(files->codes, mapping->ns_tgid,
					   &(JitNote){.start = mapping->start,
						      .end = mapping->end,
						      .ns = mapping->ns,
						      .initial = mapping->initial});
		}
	} else if (held->fd >= 0) {
		jit_processes_on_file(files->codes, mapping->ns_tgid,
				      &(JitNote){.start = mapping->start,
						 .end = mapping->end,
						 .ns = mapping->ns,
						 .file = true});
	}
	if (elf_mapping_bias(&held->identity, mapping->start, mapping->end - mapping->start,
			     mapping->pgoff, &record.bias))
		record.bias = mapping->start - mapping->pgoff; /* as if the file were loaded flat */
	return files->sink(files->user, &record.h);
}

int mapped_files_add_mapping(MappedFiles *files, const MappingSeen *mapping)
{
	MappingSeen vdso_32 = *mapping;

	if (strcmp(mapping->path, "[vdso]") != 0 || mapping->start >= VDSO_32_BELOW)
		return add_mapping(files, mapping);
	vdso_32.path = "[vdso32]";
	return add_mapping(files, &vdso_32);
}

int mapped_files_add_path(MappedFiles *files, const char *path, uint32_t *ret_id)
{
	struct stat st;
	_cleanup_free_ char *real = realpath(path, NULL);

	if (!real || stat(real, &st))
		return -errno;
	/* The side-band will name it in the same way; no process has the id 0. */
	return mapped_files_get(
		files, &(MappingSeen){.ns = now_ns(), .path = real, .inode = st.st_ino}, ret_id);
}

typedef struct ProcessReader {
	MappedFiles *files;
	pid_t ns_tgid;
	uint64_t ns;
	size_t *count;
} ProcessReader;

static int read_mapping(void *user, const ProcMapping *mapping)
{
	const ProcessReader *reader = user;

	if (!mapping->exec)
		return 0;
	++*reader->count;
	return mapped_files_add_mapping(reader->files,
					&(MappingSeen){
						.ns = reader->ns ? reader->ns : now_ns(),
						.ns_tgid = reader->ns_tgid,
						.start = mapping->start,
						.end = mapping->end,
						.pgoff = mapping->pgoff,
						.path = mapping->path,
						.inode = mapping->inode,
						.initial = reader->ns == 0,
					});
}

int mapped_files_read_process(MappedFiles *files, pid_t ns_tgid, uint64_t ns, size_t *ret_count)
{
	ProcessReader reader = {files, ns_tgid, ns, ret_count};

	*ret_count = 0;
	return proc_maps_each(proc_living_thread(ns_tgid), read_mapping, &reader);
}

static const HeldFile *held_file(const MappedFiles *files, uint32_t id)
{
	return id == 0 || id > files->list.count ? NULL : &files->list.items[id - 1];
}

int mapped_files_open(void *user, const MappedFile *file)
{
	const HeldFile *held = held_file(user, file->id);
	int fd;

	if (held && held->closed)
		return open_again(user, held);
	if (!held || held->fd < 0)
		return -ENOENT;
	fd = fcntl(held->fd, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

int mapped_files_open_beside(void *user, const MappedFile *file, const char *path)
{
	const HeldFile *held = held_file(user, file->id);
	struct stat st;

	return held ? open_in_root(user, held, path, &st) : -ENOENT;
}

static int open_source(const MappedFiles *files, const HeldFile *held, uint32_t file,
		       const char *path, struct stat *ret_stat)
{
	if (!held || held->root == MAPPED_ROOT_OWN)
		return sources_open_by_path(NULL, file, path, ret_stat);
	/*
	 * The descriptor leads past the folders above that root, for example a container's, which
	 * may be closed to the user. So this is done only when root itself is the user.
	 */
	if (geteuid() != 0)
		return -EACCES;
	return *path == '/' ? open_in_root(files, held, path, ret_stat) : -ENOENT;
}

int mapped_files_open_source_with(const MappedFiles *files, const OpenRights *rights, uint32_t file,
				  const char *path, struct stat *ret_stat)
{
	OwnRights own;
	int fd = safe_open_enter(rights, &own), error;

	if (fd < 0)
		return fd;
	fd = open_source(files, held_file(files, file), file, path, ret_stat);
	error = safe_open_leave(&own);
	if (error)
		closep(&fd);
	return error ? error : fd;
}

/* If a process ended before it was looked at, a file that all users may read is still opened. */
static int open_source_as_root(const MappedFiles *files, uint32_t file, const char *path,
			       struct stat *ret_stat)
{
	const HeldFile *held = held_file(files, file);
	const JitFile *jit = held ? NULL : jit_files_by_id(&files->jit, file);
	OpenRights nobody;
	int fd = -EACCES;

	for (size_t i = 0; held && i < held->rights_count && fd < 0; i++)
		fd = mapped_files_open_source_with(files, &files->rights.items[held->rights[i]],
						   file, path, ret_stat);
	if (jit)
		fd = mapped_files_open_source_with(files, &jit->rights, file, path, ret_stat);
	safe_open_rights_of_nobody(&nobody);
	return fd >= 0 ? fd : mapped_files_open_source_with(files, &nobody, file, path, ret_stat);
}

int mapped_files_open_named(void *user, const MappedFile *file, const char *path)
{
	struct stat st;

	return mapped_files_open_source(user, file->id, path, &st);
}

int mapped_files_open_source(void *user, uint32_t file, const char *path, struct stat *ret_stat)
{
	const MappedFiles *files = user;

	return geteuid() == 0 ? open_source_as_root(files, file, path, ret_stat)
			      : open_source(files, held_file(files, file), file, path, ret_stat);
}

uint64_t mapped_files_unopened(const MappedFiles *files, int error)
{
	uint64_t count = 0;

	for (size_t i = 0; i < files->list.count; i++)
		count += files->list.items[i].error == error;
	return count;
}

FileView mapped_files_view(MappedFiles *files, uint32_t id)
{
	static const ElfIdentity none;
	HeldFile *held = (HeldFile *)held_file(files, id);

	if (!held)
		return (FileView){
			.fd = -1, .flags = FILE_UNREADABLE, .identity = &none, .path = ""};
	reopen(files, held);
	return (FileView){.fd = held->fd,
			  .closed = held->closed && !held->gone,
			  .gone = held->closed && held->gone,
			  .not_elf = held->not_elf,
			  .flags = held->flags,
			  .identity = &held->identity,
			  .path = held->path ? held->path : ""};
}

void mapped_files_pin(MappedFiles *files, uint32_t id, bool pinned)
{
	HeldFile *held = (HeldFile *)held_file(files, id);

	if (held)
		held->pinned = pinned;
}

JitFiles *mapped_files_jit(MappedFiles *files)
{
	return &files->jit;
}

MovedSuspects *mapped_files_moved(MappedFiles *files)
{
	return &files->moved;
}

JitCodes *mapped_files_jit_codes(MappedFiles *files)
{
	return files->codes;
}

int mapped_files_emit(MappedFiles *files, const struct record *record)
{
	return files->sink(files->user, record);
}
