/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * jit_processes.h - the processes that have executable memory without a file, what is known of
 * their code, and the look at one of them (jit_look.h).
 */
#ifndef WALLPROF_JIT_PROCESSES_H
#define WALLPROF_JIT_PROCESSES_H

#include "jit_child.h"
#include "records.h"

typedef struct JitCodeCounts {
	uint64_t looks, took_ns; /* the latter in the recorder */
	uint64_t pieces;	 /* of code that were found */
	uint64_t omitted;	 /* looks, and processes, that had no room for all that there was */
	uint64_t failed;	 /* looks that came to no answer */
	uint64_t replaced;	 /* pieces whose memory was replaced while it was read */
	/* Of processes with stacks that are guessed or end in such code: */
	uint64_t incomplete; /* processes of which a look had no room for all */
	uint64_t disputed;   /* functions of which different things are said */
} JitCodeCounts;

/*
 * Executable memory that was mapped. It is kept until a look has been taken after a stack was seen
 * in it: code may be made and described long after its memory was mapped.
 */
typedef struct JitNote {
	uint64_t start, end; /* AVMA */
	uint64_t ns;
	bool initial;
	bool file;	   /* it is a file's, so no code is looked for in it */
	bool looked;	   /* a look has begun since */
	uint64_t stack_ns; /* of the first stack that waits for what is said of it; 0 = none */
} JitNote;

typedef struct JitProcess {
	uint32_t ns_tgid;
	VEC(JitNote) notes;
	VEC(JitCode) known; /* JitCode::file is a FILE id; sorted */
	uint64_t next_ns, pause_ns;
	uint64_t rest_ns;  /* no look before that time, because of what the last one took */
	uint64_t seen_ns;  /* when the last look began, in which known was right */
	JitRanges open;	   /* executable memory that it may write to, in the last look */
	uint64_t stack_ns; /* of the youngest stack that waits for a look, */
	uint64_t stack_pc; /* and where it ends */
	bool active;	   /* new code was found lately in memory that it may write to, */
	uint64_t fresh_ns; /* and for the last time in the look that began then */
	bool replaces;	   /* it has been seen to write new code over other code */
	bool wanted;	   /* a stack has ended or was guessed in its code */
	bool writable;	   /* it may write to code that is known */
	bool wide;	   /* memory that it may write to is read, too, */
	bool seen_wide;	   /* and was so in the last look */
	bool guessed;	   /* a stack was guessed, or ended, in its code */
	bool omitted;	   /* a look had no room for all that it says */
	uint64_t disputed; /* functions of which it says different things, the most in a look */
	uint8_t fruitless; /* looks in turn that have found nothing */
	bool checked;	   /* its files have been asked, and */
	bool can_tell;	   /* one of them may tell of code */
	bool ended;	   /* it is forgotten when the look at it ends */
} JitProcess;

enum file_state { FILE_NOT_ASKED, FILE_ASKED, FILE_ANSWERED };

typedef struct JitFileInfo {
	enum file_state state;
	uint32_t number; /* of the question */
	ElfJit jit;
} JitFileInfo;

/* A file that the process maps. */
typedef struct JitMapped {
	uint32_t file;
	uint64_t bias;
} JitMapped;

enum look_stage {
	LOOK_NONE,
	LOOK_FILES,
	LOOK_MEMORY,
	LOOK_ANSWER,
	LOOK_ORDER, /* it waits for what was mapped while it read */
};

/* The look at one process. */
typedef struct JitLook {
	enum look_stage stage;
	JitProcess *process;
	VEC(JitMapped) mapped;
	VEC(JitRegion) regions; /* memory without a file; sorted */
	JitRanges code;		/* … that is executable; neighbours are joined */
	bool ranges_omitted;	/* … because there were too many */
	JitMemoryReader reader;
	bool waited;  /* for answers about files */
	size_t notes; /* the number of notes when it began */
	uint64_t begin_ns;
	uint64_t read_ns, asked_ns; /* its memory was read in between */
	uint64_t took_ns;	    /* CPU time of the recorder */
	uint64_t child_ns;	    /* that of the child when it was asked */
	uint32_t number;	    /* of the question */
} JitLook;

typedef struct JitCodes {
	VEC(JitProcess *) processes;
	Map by_tgid;		/* ns_tgid -> processes */
	VEC(JitFileInfo) files; /* by FILE id */
	JitLook look;
	JitChild child;
	RemoteMemory *memory;	/* it is also used by moved_text.h and sleepers.h */
	uint32_t memory_number; /* of a question about memory that it has not answered; 0 = none */
	int epoll_fd;
	uint64_t next_ns;
	VEC(uint32_t) news; /* ns_tgid: jit_processes_is_pending() says something else now */
	size_t turn;
	size_t kept_files;   /* that were made of what processes say, */
	uint64_t kept_bytes; /* and their size, in whole pages */
	uint64_t swept_ns;   /* when ended processes were last searched */
	JitCodeCounts counts;
} JitCodes;

/* Pauses between looks at a process that bring nothing new. */
#define JIT_FIRST_PAUSE_NS (2 * NSEC_PER_MSEC)
#define JIT_LAST_PAUSE_NS  (4 * NSEC_PER_SEC)

/* How often code is compared that its process may write to. */
#define JIT_CHECK_PAUSE_NS (100 * NSEC_PER_MSEC)

JitCodes *jit_processes_new(void);
void jit_processes_free(JitCodes *codes);

/* Notes executable memory without a file that a process has mapped. */
void jit_processes_note(JitCodes *codes, uint32_t ns_tgid, const JitNote *note);
/* The process has mapped a file there: it may be able to tell of code now. */
void jit_processes_on_file(JitCodes *codes, uint32_t ns_tgid, const JitNote *note);
/* The process has a stack that ends, or is guessed, in code without a table. */
void jit_processes_want(JitCodes *codes, uint32_t ns_tgid);
/* It has a stack of that time which ends at pc, and of which there is a copy. */
void jit_processes_want_at(JitCodes *codes, uint32_t ns_tgid, uint64_t pc, uint64_t ns);
/* Follows forks and execs. */
void jit_processes_on_space(JitCodes *codes, const struct rec_space *record);
/* The process has ended. What has been read of its memory is still used. */
void jit_processes_on_exit(JitCodes *codes, uint32_t ns_tgid);

/*
 * Whether copies of stacks of a process are to be taken, and those taken at that time (UINT64_MAX:
 * from now on) are to wait, where they lead through [start, last] without a file: its process may
 * say something of code there in the next look.
 */
bool jit_processes_is_pending(const JitCodes *codes, uint32_t ns_tgid, uint64_t start,
			      uint64_t last, uint64_t ns);
/* Whether memory without a file that the process may yet map can be so. */
bool jit_processes_may_describe(const JitCodes *codes, uint32_t ns_tgid);
/* Gives the next process for which one of these two says something else; false: no more. */
bool jit_processes_next_news(JitCodes *codes, uint32_t *ret_ns_tgid);
/* Notes that the process is one. */
void jit_processes_tell(JitCodes *codes, const JitProcess *process);

/* Whether it has mapped memory without a file since the last look began. */
bool jit_processes_has_new(const JitProcess *process);
/* The code of the process that is known has changed: a stack may wait for a look no more. */
void jit_processes_on_known(JitProcess *process);
/* Returns whether a stack waits for a look. */
bool jit_processes_is_waiting(const JitProcess *process);
/* Returns whether a look at it is due. */
bool jit_processes_is_due(const JitProcess *process, uint64_t now);
/* Frees the process. */
void jit_processes_forget(JitCodes *codes, JitProcess *process);
/* Ends the look, if there is one, without a result. Does not forget its process. */
void jit_processes_end_look(JitCodes *codes);
/* Does so, and forgets its process if that has ended. There is a look. */
void jit_processes_leave(JitCodes *codes);
/* Returns what was counted, also of the processes that are known now. */
JitCodeCounts jit_processes_counts(const JitCodes *codes);
/* Readable (epoll) when the child has answered. */
int jit_processes_fd(const JitCodes *codes);

#endif
