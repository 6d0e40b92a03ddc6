/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped_files.h - the mapped files of a recording. They get ids, are identified, and are held open
 * since they were first seen, so that they can be read at the end even if they were deleted or
 * their processes have ended. If descriptors become scarce, files are closed that can be opened
 * again by their paths.
 */
#ifndef WALLPROF_MAPPED_FILES_H
#define WALLPROF_MAPPED_FILES_H

#include "address_space.h"
#include "elf_file.h"
#include "jit_files.h"
#include "jit_processes.h"
#include "moved_suspects.h"
#include "record_info.h"
#include <stdint.h>
#include <sys/stat.h>
#include <sys/types.h>

typedef struct MappedFiles MappedFiles;

/* sink gets a REC_FILE when a file is first seen, before any record that refers to it. */
MappedFiles *mapped_files_new(RecordSink sink, void *user);
void mapped_files_free(MappedFiles *files);

/* An executable mapping, as perf's side-band or /proc/PID/maps reports it. */
typedef struct MappingSeen {
	uint64_t ns;
	uint32_t ns_tgid;
	uint64_t start, end, pgoff;
	const char *path;
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0 = not known */
	uint64_t inode;	      /* 0 = not known */
	bool initial;
} MappingSeen;

/*
 * Emits the REC_MAPPING. A new file gets an id and is opened before; one that cannot be opened is
 * recorded as such. Returns 0 or the sink's error.
 */
int mapped_files_add_mapping(MappedFiles *files, const MappingSeen *mapping);

/*
 * Opens a file below wallprof's own root folder that is about to be mapped, and gives it an id.
 * Returns 0 with the id, a negative errno if there is no such file, or the sink's error.
 */
int mapped_files_add_path(MappedFiles *files, const char *path, uint32_t *ret_id);

/*
 * Reads /proc/PID/maps and adds its executable mappings with that time, or, if ns is 0, as mapped
 * before the window. Returns 0 with their number, or a negative errno.
 */
int mapped_files_read_process(MappedFiles *files, pid_t ns_tgid, uint64_t ns, size_t *ret_count);

/*
 * The number of files that could not be opened for that reason (an error of
 * mapped_range_open()).
 */
uint64_t mapped_files_unopened(const MappedFiles *files, int error);

/* A SymbolsOpen (symbols.h) for the held files. */
int mapped_files_open(void *files, const MappedFile *file);
/*
 * An OpenBeside (debug_files.h): looks below the root folder of the processes that mapped the file.
 */
int mapped_files_open_beside(void *files, const MappedFile *file, const char *path);
/*
 * A DebugFiles::open_named: looks there, too. Root opens only what one of these processes could
 * have read.
 */
int mapped_files_open_named(void *files, const MappedFile *file, const char *path);
/*
 * A SourcesOpen (sources.h) that looks there, too. Root opens only what one of these processes
 * could have read.
 */
int mapped_files_open_source(void *files, uint32_t file, const char *path, struct stat *ret_stat);
/* Root opens the source with these rights alone. */
int mapped_files_open_source_with(const MappedFiles *files, const OpenRights *rights, uint32_t file,
				  const char *path, struct stat *ret_stat);

/* ---- for moved_text.h, jit_code.h and sleepers.h ----------------------------------------- */

/* Returns the executable mappings without an ELF file, which belong to files. */
MovedSuspects *mapped_files_moved(MappedFiles *files);
/*
 * Gives the id of the file behind a mapping, executable or not, which is opened and identified if
 * it is new. Returns 0 or the sink's error.
 */
int mapped_files_get(MappedFiles *files, const MappingSeen *mapping, uint32_t *ret_id);
/* Returns what the sink returns. */
int mapped_files_emit(MappedFiles *files, const struct record *record);
/*
 * Takes ownership of fd, an ELF file that was made of what a process's memory says of its code, and
 * gives it an id, 0 if it cannot be used. Returns 0 or the sink's error.
 */
int mapped_files_add_memory(MappedFiles *files, uint32_t ns_tgid, int fd, uint32_t *ret_id);
/* Returns what is known of code made at run time (jit_code.h), which belongs to files. */
JitCodes *mapped_files_jit_codes(MappedFiles *files);
/* Returns the child that reads memory of processes, which belongs to files. */
static inline RemoteMemory *mapped_files_memory(MappedFiles *files)
{
	return mapped_files_jit_codes(files)->memory;
}

/* What the unwind table of a file needs. All pointers are owned by files. */
typedef struct FileView {
	int fd;	     /* -1: no file, or it could not be opened */
	bool closed; /* fd is -1 only because descriptors are scarce now */
	/* fd is -1: it was closed when descriptors were scarce, and its path leads to it no more */
	bool gone;
	bool not_elf;		     /* it was opened, and is a file of another format */
	uint8_t flags;		     /* enum file_flags */
	const ElfIdentity *identity; /* empty if fd is -1 and it is not the vDSO */
	const char *path;	     /* as its processes have it; "" if fd is -1 */
} FileView;
/* Another call may close FileView::fd, unless the file is pinned. */
FileView mapped_files_view(MappedFiles *files, uint32_t id);
void mapped_files_pin(MappedFiles *files, uint32_t id, bool pinned);

/* The perf maps and jitdumps of the recorded processes; owned by files. */
JitFiles *mapped_files_jit(MappedFiles *files);

#endif
