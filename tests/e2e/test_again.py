# SPDX-License-Identifier: GPL-2.0-or-later
"""A stack that is taken for the last one of its thread is that one.

Two processes wait at one place, on one stack pointer, called by chance from two functions; the
third argument of read(2), which the kernel told, says from which.
"""
import struct
from collections import Counter

from capture import FROM_COPY, STACK, SWITCH, SWITCH_PREV, records
from harness import WORKLOADS, check, expect_failure, fewer

ROUNDS = 1_000_000
READ = 0
FIELDS = struct.Struct("<HhQQQQQ")  # prev_state, syscall, kstack, ustack, arguments
HEAD = struct.Struct("<QIHH")  # id, tgid, count, result


def waits_of(capture):
    """Counter of (how many bytes were asked for, whether the walk was whole, caller's address)."""
    stacks, waits = {}, Counter()
    for kind, flags, _, record in records(capture, {SWITCH, STACK}):
        if kind == STACK:
            number, _, count, result = HEAD.unpack_from(record, 16)
            if number not in stacks or flags & FROM_COPY:
                caller = struct.unpack_from("<Q", record, 48)[0] if count > 1 else 0
                stacks[number] = (result == 0, caller)
        elif flags & SWITCH_PREV:
            state, call, _, stack, _, _, size = FIELDS.unpack_from(record, 28)
            if call == READ and state and size in (2, 3):
                waits[(size, stack)] += 1
    whole = Counter()
    for (size, stack), count in waits.items():
        whole[(size, *stacks.get(stack, (False, 0)))] += count
    return whole


def check_callers(waits, rounds):
    check(sum(waits.values()) > 0.8 * rounds, f"only {sum(waits.values())} waits: {waits}")
    check(all(whole for _, whole, _ in waits), f"stacks that are not whole: {waits}")
    callers = {size: {c for s, _, c in waits if s == size} for size in (2, 3)}
    check(all(len(c) == 1 for c in callers.values()) and callers[2] != callers[3],
          f"wrong callers: {waits}")


def test_two_callers(context):
    rounds, capture = fewer(ROUNDS), context.path("capture")
    context.wallprof("record", "-q", "--defer-symbols", "--stacks", "dwarf", "-o", capture, "--",
                     WORKLOADS / "unwind-again", rounds, context.random.randint(1, 1 << 30))
    waits = waits_of(capture)
    check_callers(waits, rounds)
    print(f"# {sum(waits.values())} waits of two callers at one place: 0 wrong", flush=True)
    (size, whole, caller), *_ = waits
    expect_failure(check_callers, waits + Counter({(5 - size, whole, caller): 1}), rounds)
