/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mapped_files.h - the mapped files of a recording: numbered, identified, and held open
 * since they were first seen, so that they can be read at the end even if they
 * were deleted or their processes are gone.
 */
#ifndef WALLPROF_MAPPED_FILES_H
#define WALLPROF_MAPPED_FILES_H

#include "address_space.h"
#include "elf_file.h"
#include "jit_files.h"
#include "record_sink.h"
#include <sys/stat.h>
#include <sys/types.h>

typedef struct MappedFiles MappedFiles;

/* sink gets a REC_FILE whenever a file is first seen, before anything refers to it. */
MappedFiles *mapped_files_new(RecordSink sink, void *user);
void mapped_files_free(MappedFiles *files);

/* An executable mapping as perf's side-band or /proc/PID/maps tells it. */
typedef struct MappingSeen {
	uint64_t ns;
	uint32_t ns_tgid;
	uint64_t start, end, pgoff;
	const char *path;
	uint8_t build_id[20];
	uint8_t build_id_len; /* 0 = not told */
	uint64_t inode;	      /* 0 = not told */
	bool initial;
} MappingSeen;

/*
 * Numbers and opens the file if it is new and emits the REC_MAPPING. Returns 0 or
 * the sink's error; a file that can't be opened is recorded as such.
 */
int mapped_files_add_mapping(MappedFiles *files, const MappingSeen *mapping);

/*
 * Numbers and opens a file that is to be mapped soon, of our own root folder. Returns 0 and
 * its id, a negative errno if there is none, or the sink's error.
 */
int mapped_files_add_path(MappedFiles *files, const char *path, uint32_t *ret_id);

/*
 * Reads /proc/PID/maps and adds its executable mappings: as those of that time, or with ns 0 as
 * what was there before the window. Returns 0, with how many there are, or a negative errno.
 */
int mapped_files_read_process(MappedFiles *files, pid_t ns_tgid, uint64_t ns, size_t *ret_count);

/* How many could not be opened for that reason, as open_mapped_file() tells it. */
uint64_t mapped_files_unopened(const MappedFiles *files, int error);

/* A SymbolsOpen (symbols.h) over the held files. */
int mapped_files_open(void *files, const MappedFile *file);
/* An OpenBeside (debug_files.h): in the root folder of the processes that mapped the file. */
int mapped_files_open_beside(void *files, const MappedFile *file, const char *path);
/* A SourcesOpen (sources.h), likewise. */
int mapped_files_open_source(void *files, uint32_t file, const char *path, struct stat *ret_stat);

/* A numbered file as far as its unwind table goes. All is files' own. */
typedef struct FileView {
	int fd;			     /* -1: no file, or it could not be opened */
	uint8_t flags;		     /* enum file_flags */
	const ElfIdentity *identity; /* empty if fd is -1 and it is not the vDSO */
	const char *path;	     /* as its processes have it; "" if fd is -1 */
} FileView;
FileView mapped_files_view(const MappedFiles *files, uint32_t id);

/* The perf maps and jitdumps of the recorded processes; owned by files. */
JitFiles *mapped_files_jit(MappedFiles *files);

#endif
