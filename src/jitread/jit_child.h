/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_child.h - a sandboxed child that answers two kinds of questions: whether an ELF file may tell
 * of code that its process makes (elf_jit.h), and what memory of a process says of that code
 * (jit_image.h). The recorder never waits for it.
 */
#ifndef WALLPROF_JIT_CHILD_H
#define WALLPROF_JIT_CHILD_H

#include "elf_jit.h"
#include "jit_memory.h"
#include "sandbox.h"

/* Where the child puts what it has made: first the pieces of code, then the files. */
typedef struct JitShared {
	uint8_t *base;
	size_t size;
} JitShared;

typedef struct JitAnswer {
	uint32_t number; /* of the question */
	uint32_t is_file;
	ElfJit jit; /* of a file */
	/* Of memory. */
	uint64_t code_count;
	uint64_t file_size[JIT_FILES_MAX]; /* 0 = there is none */
	JitCfiCounts counts;
	uint64_t symbols;
} JitAnswer;

typedef struct JitChild {
	Sandbox sandbox; /* pid 0 = it does not run */
	JitShared shared;
	JitAnswer answer; /* as much as has arrived */
	size_t received;
	uint32_t number; /* of the last question */
} JitChild;

/* Return the number of the question, or a negative errno. The child is started if need be. */
int64_t jit_child_ask_file(JitChild *child, int fd);
/* Appends to the reader's file what the child must know beside the memory. */
int64_t jit_child_ask_memory(JitChild *child, JitMemoryReader *reader, const JitRanges *code,
			     const JitCode *known, size_t known_count);

/*
 * Reads an answer, without waiting. Returns 1 if child->answer is complete, 0 if not, or a negative
 * errno: the child has ended.
 */
int jit_child_receive(JitChild *child);

/*
 * Copies the pieces of code of an answer, which are checked: they are sorted, none overlap, each is
 * in the ranges of code, and its file is one of the answer's. Returns false if they are not so.
 */
bool jit_child_take_code(const JitChild *child, const JitRanges *code, JitImage *ret_image);
/* Makes a file (a memfd) of one of the answer's. Returns a descriptor or a negative errno. */
int jit_child_take_file(const JitChild *child, uint32_t index);

/* CPU time of the child so far, ns; 0 if it does not run. */
uint64_t jit_child_cpu_ns(const JitChild *child);

void jit_child_end(JitChild *child);

#endif
