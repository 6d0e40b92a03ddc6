/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interpreters.h - which mapped files are interpreters, and which processes run them. It publishes
 * these processes to the programs of bpf/scripts.
 */
#ifndef WALLPROF_INTERPRETERS_H
#define WALLPROF_INTERPRETERS_H

#include "interpreter_module.h"
#include "mapped_files.h"

typedef struct Interpreters Interpreters;

/* files must outlive it. */
Interpreters *interpreters_new(MappedFiles *files);
void interpreters_free(Interpreters *interpreters);

/* Reads a file that is mapped, or about to be, unless that is done already. */
void interpreters_look(Interpreters *interpreters, uint32_t file);

/* Returns whether a file has an interpreter of which frames can be read. */
bool interpreters_are_found(const Interpreters *interpreters);

/* Publishes all processes from now on in this map (programs_load_scripts()), which stays open. */
void interpreters_use_map(Interpreters *interpreters, int map_fd);

/* One image of a process, as the kernel knows it. */
typedef struct InterpretedImage {
	uint32_t tgid, exec_id;
	uint32_t ns_tgid; /* in the recorder's PID namespace */
	uint64_t start_boottime;
} InterpretedImage;

/* The image maps a file with this bias (AVMA - SVMA). Files without an interpreter are ignored. */
void interpreters_add(Interpreters *interpreters, const InterpretedImage *image, uint32_t file,
		      uint64_t bias);
/* Returns whether any process is known that runs one. */
bool interpreters_any(const Interpreters *interpreters);
/* Returns what is known of the interpreter that the image runs; NULL: none is known. */
const struct script_process *interpreters_process(const Interpreters *interpreters,
						  const InterpretedImage *image);
/* Returns the file (FILE id) of the interpreter that the process runs, or ran; 0 = not known. */
uint32_t interpreters_file(const Interpreters *interpreters, uint32_t tgid);
/* Returns its number in the recorder's PID namespace; 0 = not known. */
uint32_t interpreters_ns_tgid(const Interpreters *interpreters, uint32_t tgid);
/* The image has ended. */
void interpreters_remove(Interpreters *interpreters, const InterpretedImage *image);

/*
 * Returns what is missing, "Python 3.7 (not supported: /usr/bin/python3.7)", of the
 * interpreters that were found and are not read, separated by commas; NULL: nothing. The caller
 * frees it.
 */
char *interpreters_unknown(const Interpreters *interpreters);

/* Returns the number of processes for which the map had no room. */
uint64_t interpreters_lost(const Interpreters *interpreters);

#endif
