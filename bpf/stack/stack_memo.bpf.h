/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * stack_memo.bpf.h - stack memos for user and kernel stacks that repeat.
 */
#ifndef WALLPROF_STACK_MEMO_BPF_H
#define WALLPROF_STACK_MEMO_BPF_H

#include "wallprof.bpf.h"

/* The programs that remember kernel stacks. They stand at different hooks, so a memo is for
 * one of them. */
enum kernel_probe { KERNEL_PROBE_SWITCH, KERNEL_PROBE_WAKING };

/*
 * Whether this is a remembered stack of this process: every word that its walk read is the same
 * now. slot->start is set (unwind_start()); the seed identifies the process's image. If it is the
 * remembered stack, slot->memo_id gets that stack's id, and 1 is returned.
 */
extern int user_memo_lookup(struct stack_slot *slot, u64 seed);

/*
 * Remembers what the walk read, for user_memo_lookup() with that seed, if the walk reached the end
 * of the stack.
 */
extern int user_memo_store(struct stack_slot *slot, u64 seed);

/*
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
 * If the kernel has replaced a return address (function graph tracer, return probes), the word
 * stands for another address that is stored elsewhere. So a stack is stored only if all its frames
 * were found as words, up to the one in the entry code.
 */

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
