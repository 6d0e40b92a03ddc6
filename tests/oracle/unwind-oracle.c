/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * unwind-oracle SEED STOPS MAX_US ALTER COMMAND…
 * unwind-oracle --walks
 * unwind-oracle --core PROGRAM CORE OTHER
 *
 * The first runs a command, stops its threads at random instants and compares what libdwfl makes
 * of their stacks with wallprof's walk (walk_user.h), frame by frame. To stdout goes a line of
 * JSON: how many stops and frames, and how often each thing was found; of what is
 * different or cut the first ones go to stderr. ALTER is added to the stack pointer that wallprof's
 * walk is given: with 8 all should differ.
 *
 * The second prints wallprof's frames of threads that another process has stopped. It reads lines
 * "TID IN_SYSCALL REGISTER…", registers 0 to 16 by DWARF number, and answers each with a line:
 * result first, then addresses, 0 for a frame that the walk does not keep.
 *
 * The third compares the stacks of all threads of a core file, likewise; and writes a line for
 * each: its number, result and addresses as above. wallprof's walk is given OTHER: the same file,
 * or a copy in which something is altered.
 */
#include "proc_status.h"
#include "process_tables.h"
#include "stops.h"
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#define FRAMES 4096

enum found {
	FOUND_EQUAL,
	FOUND_BOTH_CUT,	   /* both end at the same frame, without having come to the outermost */
	FOUND_CUT,	   /* ours ends early, and says so */
	FOUND_BIRTH,	   /* it does at a thread's birth, which BPF knows by registers */
	FOUND_GUESSED,	   /* equal up to where ours says that it guesses */
	FOUND_THEIRS_CUT,  /* libdwfl ends early, with an error */
	FOUND_THEIRS_GOES, /* where there is no CFI libdwfl goes on, by frame pointers */
	FOUND_DIFFERENT,   /* nothing explains it */
	FOUNDS
};

static const char *const found_names[FOUNDS] = {
	[FOUND_EQUAL] = "equal",
	[FOUND_BOTH_CUT] = "both_cut",
	[FOUND_CUT] = "cut",
	[FOUND_BIRTH] = "births",
	[FOUND_GUESSED] = "guessed",
	[FOUND_THEIRS_CUT] = "libdwfl_cut",
	[FOUND_THEIRS_GOES] = "libdwfl_guesses",
	[FOUND_DIFFERENT] = "different",
};

typedef struct Stack {
	uint64_t frames[FRAMES];
	size_t count;
	int result; /* ours: enum stack_result; libdwfl's: 0 = its end, -1 = error */
} Stack;

typedef struct Oracle {
	ProcessTables *tables;
	Dwfl *dwfl;
	pid_t pid; /* that both are of */
	int64_t alter;
	uint64_t found[FOUNDS], cuts[STACK_RESULTS], frames, unread;
	Stack ours, theirs;
} Oracle;

/* No debug files: what is there without them is what wallprof has, too. */
static int find_no_debuginfo(Dwfl_Module *module, void **user, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **ret)
{
	(void)module, (void)user, (void)name, (void)base, (void)file, (void)link, (void)crc;
	(void)ret;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = find_no_debuginfo,
};

static const Dwfl_Callbacks core_callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = find_no_debuginfo,
};

static bool attach(Oracle *oracle, pid_t pid)
{
	int changed = process_tables_load(oracle->tables, pid);

	if (changed < 0)
		return false;
	if (oracle->dwfl && !changed && oracle->pid == pid)
		return true;
	if (oracle->dwfl)
		dwfl_end(oracle->dwfl);
	oracle->dwfl = dwfl_begin(&callbacks);
	oracle->pid = pid;
	return oracle->dwfl && dwfl_linux_proc_report(oracle->dwfl, pid) == 0 &&
	       dwfl_report_end(oracle->dwfl, NULL, NULL) == 0 &&
	       dwfl_linux_proc_attach(oracle->dwfl, pid, /* assume_ptrace_stopped= */ true) == 0;
}

static int take_frame(Dwfl_Frame *state, void *user)
{
	Stack *stack = user;
	Dwarf_Addr pc;
	bool exact;

	if (stack->count == FRAMES || !dwfl_frame_pc(state, &pc, &exact))
		return DWARF_CB_ABORT;
	stack->frames[stack->count++] = pc;
	return DWARF_CB_OK;
}

/* After exec, and where a signal's handler begins, the system call's number is still there. */
static bool is_in_syscall(const ProcessTables *tables, int64_t number, uint64_t pc)
{
	uint16_t instruction;

	return number >= 0 &&
	       process_tables_read(tables, pc - sizeof(instruction), &instruction,
				   sizeof(instruction)) &&
	       instruction == 0x050f;
}

static bool read_regs(pid_t tid, uint64_t regs[DWARF_REGS + 1], int64_t *ret_syscall)
{
	struct user_regs_struct r;

	if (ptrace(PTRACE_GETREGS, tid, NULL, &r) != 0)
		return false;
	memcpy(regs,
	       (const uint64_t[]){r.rax, r.rdx, r.rcx, r.rbx, r.rsi, r.rdi, r.rbp, r.rsp, r.r8,
				  r.r9, r.r10, r.r11, r.r12, r.r13, r.r14, r.r15, r.rip},
	       (DWARF_REGS + 1) * sizeof(*regs));
	*ret_syscall = (int64_t)r.orig_rax;
	return true;
}

/*
 * Is there call frame information for frame i? A caller's address is behind its call; the
 * innermost's is that of the instruction, which may be the first behind what has some.
 */
static bool has_cfi(Dwfl *dwfl, const Stack *stack, size_t i)
{
	uint64_t pc = stack->frames[i] - (i > 0);
	Dwfl_Module *module = dwfl_addrmodule(dwfl, pc);
	Dwarf_Frame *frame = NULL;
	Dwarf_Addr bias;
	Dwarf_CFI *cfi = module ? dwfl_module_eh_cfi(module, &bias) : NULL;
	bool found = cfi && dwarf_cfi_addrframe(cfi, pc - bias, &frame) == 0;

	free(frame);
	return found;
}

static size_t first_guess(const Stack *ours)
{
	size_t i = 0;

	while (i < ours->count && !(ours->frames[i] & FRAME_GUESSED))
		i++;
	return i;
}

static enum found compare(Oracle *oracle)
{
	const Stack *ours = &oracle->ours, *theirs = &oracle->theirs;
	size_t guess = first_guess(ours), same = 0;

	while (same < ours->count && same < theirs->count &&
	       (ours->frames[same] == FRAME_NOT_KEPT ||
		(ours->frames[same] & FRAME_ADDRESS) == theirs->frames[same]))
		same++;
	if (same == ours->count && same == theirs->count) {
		if (ours->result == STACK_COMPLETE || ours->result == STACK_END_ZERO)
			return FOUND_EQUAL;
		return theirs->result != 0 ? FOUND_BOTH_CUT : FOUND_CUT;
	}
	if (guess < ours->count && same >= guess)
		return FOUND_GUESSED;
	if (same == ours->count && ours->result != STACK_COMPLETE)
		return FOUND_CUT;
	if (same == theirs->count && theirs->result != 0)
		return FOUND_THEIRS_CUT;
	if (same > 0 && same < theirs->count && !has_cfi(oracle->dwfl, theirs, same - 1))
		return FOUND_THEIRS_GOES;
	return FOUND_DIFFERENT;
}

static void print_stack(const char *reader, Oracle *oracle, const Stack *stack)
{
	fprintf(stderr, "  %s (%d):", reader, stack->result);
	for (size_t i = 0; i < stack->count && i < 40; i++) {
		uint64_t pc = stack->frames[i] & FRAME_ADDRESS;
		Dwfl_Module *module = dwfl_addrmodule(oracle->dwfl, pc);
		const char *name = module ? dwfl_module_addrname(module, pc - (i > 0)) : NULL;

		fprintf(stderr, " %#" PRIx64 "(%s)", pc, name ? name : "?");
	}
	fputc('\n', stderr);
}

#define CALL_CLONE  56
#define CALL_CLONE3 435

/*
 * On its way out of clone with an empty stack: the wrapper's rules are for the caller's side. BPF
 * does not walk there at all (is_new_thread() in bpf/stack/unwind.bpf.c).
 */
static bool is_birth(const uint64_t regs[DWARF_REGS + 1], int64_t syscall)
{
	return regs[0] == 0 && /* rax */
	       (syscall == CALL_CLONE || syscall == CALL_CLONE3);
}

static void judge(Oracle *oracle, pid_t tid, const uint64_t regs[DWARF_REGS + 1], int64_t syscall)
{
	bool in_syscall = is_in_syscall(oracle->tables, syscall, regs[DWARF_RETURN]);
	enum found found;

	oracle->theirs.count = 0;
	oracle->theirs.result =
		dwfl_getthread_frames(oracle->dwfl, tid, take_frame, &oracle->theirs);
	oracle->ours.result = process_tables_walk(oracle->tables, regs, in_syscall,
						  oracle->ours.frames, FRAMES, &oracle->ours.count);
	found = compare(oracle);
	if (found == FOUND_CUT && oracle->ours.count == 1 && is_birth(regs, syscall))
		found = FOUND_BIRTH;
	oracle->found[found]++;
	oracle->frames += oracle->theirs.count;
	if (found == FOUND_CUT)
		oracle->cuts[oracle->ours.result]++;
	if ((found == FOUND_DIFFERENT || found == FOUND_CUT) && oracle->found[found] <= 5) {
		fprintf(stderr, "%s in %d of %d, %s:\n", found_names[found], tid, oracle->pid,
			dwfl_errmsg(-1));
		print_stack("wallprof", oracle, &oracle->ours);
		print_stack("libdwfl", oracle, &oracle->theirs);
	}
}

static void take_stop(void *user, pid_t tid)
{
	Oracle *oracle = user;
	uint64_t regs[DWARF_REGS + 1];
	pid_t pid = proc_status_number(tid, "Tgid:");
	int64_t syscall;

	/* A task that is about to end has no memory any more. */
	if (pid == 0 || !attach(oracle, pid) || !read_regs(tid, regs, &syscall)) {
		oracle->unread++;
		return;
	}
	regs[DWARF_RSP] += (uint64_t)oracle->alter;
	judge(oracle, tid, regs, syscall);
}

static void print_result(const Oracle *oracle, int stops)
{
	printf("{\"stops\":%d,\"unread\":%" PRIu64 ",\"frames\":%" PRIu64, stops, oracle->unread,
	       oracle->frames);
	for (int i = 0; i < FOUNDS; i++)
		printf(",\"%s\":%" PRIu64, found_names[i], oracle->found[i]);
	fputs(",\"cuts\":{", stdout);
	for (int i = 0, any = 0; i < STACK_RESULTS; i++)
		if (oracle->cuts[i])
			printf("%s\"%d\":%" PRIu64, any++ ? "," : "", i, oracle->cuts[i]);
	puts("}}");
}

static void print_walk(const Stack *stack)
{
	printf("%d", stack->result);
	for (size_t i = 0; i < stack->count; i++)
		printf(" %#" PRIx64, stack->frames[i]);
	putchar('\n');
}

/* Reads the numbers of a line; returns how many there are. */
static size_t read_numbers(const char *line, uint64_t *ret_numbers, size_t max)
{
	size_t count = 0;
	char *end;

	while (count < max) {
		ret_numbers[count] = strtoull(line, &end, 0);
		if (end == line)
			break;
		line = end;
		count++;
	}
	return count;
}

/* The tables of a file are made once for all lines. */
static int walk_lines(Oracle *oracle)
{
	uint64_t numbers[2 + DWARF_REGS + 1];
	Stack *stack = &oracle->ours;
	size_t room = 0;
	char *line = NULL;
	int status = 0;

	while (!status && getline(&line, &room, stdin) > 0) {
		if (read_numbers(line, numbers, ARRAY_LEN(numbers)) != ARRAY_LEN(numbers) ||
		    process_tables_load(oracle->tables, proc_status_number(numbers[0], "Tgid:")) <
			    0) {
			status = 2;
			continue;
		}
		stack->result = process_tables_walk(oracle->tables, numbers + 2, numbers[1],
						    stack->frames, FRAMES, &stack->count);
		print_walk(stack);
		fflush(stdout);
	}
	free(line);
	return status;
}

static bool attach_core(Oracle *oracle, Elf *elf, const char *program)
{
	oracle->dwfl = dwfl_begin(&core_callbacks);
	if (!oracle->dwfl || dwfl_core_file_report(oracle->dwfl, elf, program) < 0 ||
	    dwfl_report_end(oracle->dwfl, NULL, NULL) != 0)
		return false;
	oracle->pid = dwfl_core_file_attach(oracle->dwfl, elf);
	return oracle->pid > 0;
}

static int compare_core(Oracle *oracle, const char *program, const char *path, const char *other)
{
	CoreFile theirs = {.fd = -1}, ours = {.fd = -1};
	int error = core_file_open(path, &theirs);

	if (!error)
		error = core_file_open(other, &ours);
	if (error || !attach_core(oracle, theirs.elf, program)) {
		fprintf(stderr, "unwind-oracle: %s: %s\n", path,
			error ? strerror(-error) : dwfl_errmsg(-1));
		return 2;
	}
	process_tables_load_core(oracle->tables, &ours);
	for (size_t i = 0; i < ours.threads.count; i++) {
		const CoreThread *thread = &ours.threads.items[i];

		judge(oracle, thread->tid, thread->regs, thread->syscall);
		printf("%d ", thread->tid);
		print_walk(&oracle->ours);
	}
	print_result(oracle, (int)ours.threads.count);
	dwfl_end(oracle->dwfl);
	oracle->dwfl = NULL;
	core_file_close(&theirs);
	core_file_close(&ours);
	return 0;
}

static int compare_stops(Oracle *oracle, char **arguments)
{
	int stops;

	oracle->alter = strtoll(arguments[3], NULL, 10);
	stops = stops_run(arguments + 4, (unsigned int)strtoul(arguments[0], NULL, 10),
			  atoi(arguments[1]), (unsigned int)strtoul(arguments[2], NULL, 10),
			  take_stop, oracle);
	if (stops < 0) {
		fprintf(stderr, "unwind-oracle: %s: %s\n", arguments[4], strerror(-stops));
		return 2;
	}
	print_result(oracle, stops);
	return 0;
}

int main(int argc, char **argv)
{
	Oracle *oracle = calloc(1, sizeof(*oracle));
	int status = 2;

	oracle->tables = process_tables_new();
	if (argc == 2 && strcmp(argv[1], "--walks") == 0)
		status = walk_lines(oracle);
	else if (argc == 5 && strcmp(argv[1], "--core") == 0)
		status = compare_core(oracle, argv[2], argv[3], argv[4]);
	else if (argc >= 6)
		status = compare_stops(oracle, argv + 1);
	else
		fputs("unwind-oracle SEED STOPS MAX_US ALTER COMMAND…\n"
		      "unwind-oracle --core PROGRAM CORE OTHER\n",
		      stderr);
	dwfl_end(oracle->dwfl);
	process_tables_free(oracle->tables);
	free(oracle);
	return status;
}
