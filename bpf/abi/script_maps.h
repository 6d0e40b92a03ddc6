/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * script_maps.h - the memory that the programs of bpf/scripts and the recorder share. Nothing of it
 * is ever in a capture.
 */
#ifndef WALLPROF_SCRIPT_MAPS_H
#define WALLPROF_SCRIPT_MAPS_H

#include "records.h"

/* Keys of the programs that perf events go on with. */
enum script_continuation { SCRIPT_AFTER_TICK, SCRIPT_AFTER_FAULT, SCRIPT_CONTINUATIONS };

/* How Python's frames are related to frames of C. */
enum python_frames {
	PYTHON_FRAMES_C = 0,	 /* each has one; the instruction is an index (up to 3.10) */
	PYTHON_FRAMES_ENTRY = 1, /* one that has one has a flag (3.11) */
	PYTHON_FRAMES_SHIM = 2,	 /* one that has one is called by a frame without code (3.12) */
};

#define PYTHON_NO_OFFSET 0xffff

/*
 * Offsets in the objects of one version of CPython, in bytes; the names are those of its headers
 * (Include/internal/pycore_runtime.h, pycore_interp.h, pycore_frame.h, cpython/code.h).
 */
struct python_layout {
	u16 version;	      /* 0x030b is 3.11 */
	u8 frames;	      /* enum python_frames */
	u8 code_unit;	      /* bytes of a unit in which f_lasti counts (PYTHON_FRAMES_C) */
	u32 interpreters;     /* _PyRuntimeState.interpreters.head */
	u32 next_interpreter; /* PyInterpreterState.next */
	u32 threads;	      /* PyInterpreterState.threads.head */
	u16 next_thread, thread_id;
	u16 thread_frame; /* PyThreadState.current_frame, .frame or .cframe */
	u16 cframe_frame; /* _PyCFrame.current_frame, or PYTHON_NO_OFFSET: there is none */
	u16 frame_code, frame_previous, frame_instruction;
	u16 frame_owner; /* .owner, or .is_entry (PYTHON_FRAMES_ENTRY) */
	u16 code_first_line, code_path, code_name, code_table;
	u16 code_instructions;	/* PyCodeObject.co_code_adaptive */
	u16 text, wide_text;	/* sizes of PyASCIIObject and PyCompactUnicodeObject */
	u8 version_is_unique;	/* boolean: co_version tells two pieces of code apart */
	u8 lock_is_pointer;	/* boolean: what `lock` says */
	u16 thread_interpreter; /* PyThreadState.interp */
	/* _PyRuntimeState.ceval.gil or, a pointer to it, PyInterpreterState.ceval.gil */
	u32 lock;
	u16 lock_holder, lock_held; /* struct _gil_runtime_state: .last_holder, .locked */
};

/* A process with an interpreter; the key is its tgid. It is valid for one image. */
struct script_process {
	u64 start_boottime; /* the leader's */
	u32 exec_id;
	u32 language;  /* enum script_language */
	u64 runtime;   /* AVMA of the variable that leads to all others; Python: _PyRuntime */
	u64 code_type; /* AVMA of the type of pieces of code; Python: PyCode_Type */
	struct python_layout python;
};

/* The state of a thread that was found, by the low bits of its tid. */
struct python_thread {
	u64 owner; /* tid and exec_id */
	u64 thread;
	u64 lock;     /* that of its interpreter; 0 = not known */
	u64 retry_ns; /* it was not found, and is not looked for before that time */
};

#define SCRIPT_PROCESSES_MAX 16384
/* Pieces of code that were described lately, each in the slot of its address. */
#define PYTHON_SENT_SLOTS (1 << 14)

#endif
