/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * interpreter_module.h - what is known of one interpreter: how its file is recognized. A language
 * is one file here (python_find.c), one in bpf/scripts that reads frames, and one in export/stacks
 * that reads names and lines.
 */
#ifndef WALLPROF_INTERPRETER_MODULE_H
#define WALLPROF_INTERPRETER_MODULE_H

#include "elf_file.h"
#include "script_maps.h"

/* What a file says of the interpreter in it. */
typedef struct InterpreterFound {
	bool present;  /* the file has an interpreter */
	bool readable; /* its version is known: `process` is set but for what belongs to a process
			*/
	bool free_threaded; /* its threads interpret at the same time: such frames are not read */
	uint32_t version;   /* Python: 0x030b is 3.11; 0 = not known */
	uint64_t runtime;   /* SVMA of script_process::runtime */
	struct script_process process;
} InterpreterFound;

typedef struct InterpreterModule {
	const char *language; /* for messages */
	/*
	 * Whether a file of this base name and size in bytes may have the interpreter: only such
	 * files are read.
	 */
	bool (*may_be)(const char *name, uint64_t size);
	/* Reads the file. It runs in the sandbox: what it returns is checked by its user. */
	void (*find)(Elf *elf, const char *name, InterpreterFound *ret_found);
} InterpreterModule;

extern const InterpreterModule python_module;

/* A symbol of a file, for modules: its SVMA; 0 = there is none. */
uint64_t interpreter_symbol(Elf *elf, const char *name);
/* Returns whether a file has the symbol for others: this reads less of large programs. */
bool interpreter_exports(Elf *elf, const char *name);
/* Reads initial values of variables. Returns false if the file does not have them. */
bool interpreter_read(Elf *elf, uint64_t svma, void *ret_data, size_t size);

#endif
