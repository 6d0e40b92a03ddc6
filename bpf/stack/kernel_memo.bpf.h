/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * kernel_memo.bpf.h - stack memos for kernel stacks that repeat.
 *
 * The kernel's own walk of the kernel stack is the most expensive part of a switch.
 *
 * That walk (arch/x86/kernel/unwind_orc.c, unwind_frame.c; not unwind_guess.c) is a pure function
 * of where it begins and of the words of the stack that it takes for return addresses or for
 * pointers to frames. It begins in the tracing code's own frames, which have a fixed size, lie
 * below the address of the program's context and are left out; the context lies in the frame of the
 * kernel function that runs the program.
 *
 * Which words the walk read is not known, but what it found there is: the return addresses are its
 * frames, and a word that a later frame was found by is an address of the stack. So all words are
 * compared that have the value of one of the frames, or are an address within the stack. If they
 * are the same, the walk would find the same frames, one after the other: a frame is found by the
 * one before it and by words that are compared. Other words, for example return addresses that
 * earlier calls have left behind, may differ.
 *
 * Kernels that randomize where a system call's stack begins (RANDOMIZE_KSTACK_OFFSET) leave a gap
 * of a different size each time, in the frame of the outermost function but one, which finds its
 * own frame by a pointer. Everything below the gap moves as a whole: addresses within the moving
 * part must have moved with it, and all other words there must be the same. Above the gap the walk
 * reads only the outermost return address, which must be the same, too, and is that of the only
 * call in the entry code. (The word before it is rbp as user space left it; no frame is found by
 * it.) The contents of the gap belong to no frame.
 *
 * Some of these words are there by chance. The table of a poll is on the stack, and most of it is
 * what earlier calls have left behind, with RANDOMIZE_KSTACK_OFFSET at another place each time. So
 * a memo that was not found again is made again from the next stack with the same frames, of the
 * words that both have. What the walk read is among these: a return address that it read is a frame
 * of both, and the words that are kept must have all frames, one after the other. Then all were
 * read at the same places, and a pointer that led to one is the same, too.
 *
 * If the kernel has replaced a return address (function graph tracer, return probes), the word
 * stands for another address that is stored elsewhere. So a stack is stored only if all its frames
 * were found as words, up to the one in the entry code.
 */
#ifndef WALLPROF_KERNEL_MEMO_BPF_H
#define WALLPROF_KERNEL_MEMO_BPF_H

#include "wallprof.bpf.h"

/* The programs that remember kernel stacks. They are at different hooks, so each has its own memos.
 */
enum kernel_probe { KERNEL_PROBE_SWITCH, KERNEL_PROBE_WAKING };

/*
 * Looks up the current task's kernel stack. slot->kernel_from is an address in the frame of the
 * kernel function that runs the program. If the stack is the remembered one, its id is stored in
 * slot->memo_id, and 1 is returned.
 */
extern int kernel_memo_lookup(struct stack_slot *slot, enum kernel_probe probe);

/*
 * Remembers the words that kernel_memo_lookup() read, with slot->stack: its id, and the frames that
 * were found.
 */
extern int kernel_memo_store(struct stack_slot *slot, enum kernel_probe probe);

#endif
