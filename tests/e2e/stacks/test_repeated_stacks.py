# SPDX-License-Identifier: GPL-2.0-or-later
"""A stack that is taken for the last one of its thread is that one.

User stacks: two processes wait at one place, on one stack pointer, called by chance from two
functions; the third argument of read(2), which the kernel recorded, says from which. Kernel stacks:
they wait by one instruction for one of five kinds of things, which the call's number and that
argument say which.

One of 1024 stacks that were taken for an earlier one is walked nevertheless; a difference is a
warning, which no recording here may have.
"""
import bisect
import re
import struct
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import pytest

from capture_reader import FROM_COPY, STACK, SWITCH, SWITCH_PREV, records
from harness import IN_GUEST, WORKLOADS, check, expect_failure, is_long, needs_command

ROUNDS = 30_000 if IN_GUEST else 1_000_000 if is_long() else 100_000
READ, POLL, EPOLL_WAIT = 0, 7, 232
pytestmark = pytest.mark.untimed
KERNEL = 1 << 63
# In which functions the kernel waits, by the call and how many bytes it was asked for; kernels differ.
WAITS = {(READ, 8): {"eventfd_read"}, (READ, 9): {"pipe_read", "anon_pipe_read"},
         (READ, 10): {"unix_stream_read_generic"}, (POLL, -1): {"do_sys_poll"},
         (EPOLL_WAIT, -1): {"ep_poll", "do_epoll_wait"}}
# Each thread sleeps once, and so does the one that waits for it.
THREADS = """
import sys, threading, time
for _ in range(int(sys.argv[1])):
    thread = threading.Thread(target=time.sleep, args=(0.0001,))
    thread.start()
    thread.join()
"""
# The kernel has the tables of these calls on its stack, with what earlier calls have left behind there.
POLLS = """
import os, select, sys
end, _ = os.pipe()
poll = select.poll()
poll.register(end, select.POLLIN)
for i in range(int(sys.argv[1])):
    poll.poll(1)
    select.select([end], [], [], 0.0002)
    os.getppid(), os.stat("/")
"""
# By one instruction the child waits for a pipe again and again, and its parent for two other things by turns.
TURNS = """
import os, socket, sys, time
ends, requests = socket.socketpair(), os.pipe()
event = os.eventfd(0)
write = [lambda: os.eventfd_write(event, 1), lambda: ends[1].send(bytes(8))]
if not os.fork():
    os.close(requests[1])
    while request := os.read(requests[0], 1):
        time.sleep(0.0002)
        write[request[0]]()
for i in range(int(sys.argv[1])):
    os.write(requests[1], bytes([i % 2]))
    os.read((event, ends[0].fileno())[i % 2], 8)
"""
FIELDS = struct.Struct("<Hh24xQQQQQ")  # prev_state, syscall, kstack, ustack, arguments
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
    rounds, capture = ROUNDS, context.path("capture")
    context.wallprof("record", "-q", "--defer-symbols", "--stacks", "dwarf", "-o", capture, "--",
                     WORKLOADS / "unwind-again", rounds, context.random.randint(1, 1 << 30))
    waits = waits_of(capture)
    check_callers(waits, rounds)
    print(f"# {sum(waits.values())} waits of two callers at one place: 0 wrong", flush=True)
    (size, whole, caller), *_ = waits
    expect_failure(check_callers, waits + Counter({(5 - size, whole, caller): 1}), rounds)


class Symbols:
    """The kernel's functions by address."""

    def __init__(self):
        lines = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
        found = sorted((int(line[0], 16), line[2]) for line in lines if line[1] in "tT")
        self.starts, self.names = [a for a, _ in found], [n for _, n in found]

    def name(self, address):
        at = bisect.bisect_right(self.starts, address - 1) - 1
        return self.names[at].partition(".")[0] if at >= 0 else None


def kernel_waits_of(capture, symbols):
    """Counter of (call, what it was asked for, the functions of WAITS in its kernel stack)."""
    known = set().union(*WAITS.values())
    stacks, waits = {}, Counter()
    for kind, flags, _, record in records(capture, {SWITCH, STACK}):
        if kind == STACK:
            number, _, count, _ = HEAD.unpack_from(record, 16)
            frames = struct.unpack_from(f"<{count}Q", record, 40)
            if count and frames[0] & KERNEL:
                stacks[number] = frozenset(map(symbols.name, frames)) & known
        elif flags & SWITCH_PREV:
            state, call, stack, _, _, _, size = FIELDS.unpack_from(record, 28)
            key = (call, size if call == READ else -1)
            if state and stack and key in WAITS:
                waits[(*key, stack)] += 1
    named = Counter()
    for (call, size, stack), count in waits.items():
        named[(call, size, stacks.get(stack, frozenset()))] += count
    return named


def check_functions(waits, rounds):
    check(sum(waits.values()) > 0.5 * rounds, f"only {sum(waits.values())} waits: {waits}")
    check({(c, s) for c, s, _ in waits} == set(WAITS), f"not of all kinds: {waits}")
    wrong = {key: n for key, n in waits.items() if not key[2] or not key[2] <= WAITS[key[:2]]}
    check(not wrong, f"wrong kernel stacks: {wrong}")


def memo_hits(said):
    """Returns how many (user, kernel) stacks were not walked."""
    check("were not the same" not in said, f"stacks were taken for others: {said}")
    found = re.search(r"(\d+) user stacks and (\d+) kernel stacks were not walked again", said)
    check(found, f"nothing of stacks that repeat: {said}")
    return int(found[1]), int(found[2])


def walks(said, kind):
    """Returns how many user or kernel stacks were walked, for whatever reason."""
    found = re.search(rf"{kind} stacks that were walked: ([^;]*);", said)
    check(found, f"nothing of {kind} stacks that were walked: {said}")
    return sum(map(int, re.findall(r"\d+", found[1])))


@pytest.mark.host_only("setarch is not in the guests")
def test_little_above_main(context):
    """If the environment is empty and nothing is at random, the stack ends just behind its
    outermost frame."""
    needs_command("setarch")
    rounds = ROUNDS // 10
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "dwarf", "-o",
                            context.path("capture"), "--", "setarch", "-R", "env", "-i",
                            WORKLOADS / "kernel-again", rounds, 1)
    user, _ = memo_hits(done.stderr)
    check(user > rounds / 2, f"{user} user stacks of {2 * rounds} waits were known again")


def check_few_walks(known, waits, most):
    check(waits - known <= most * waits, f"only {known} of {waits} stacks were known again")


def test_deep_stacks(context):
    """What was read may lie far apart on the stack."""
    waits, depth = ROUNDS // 20, context.random.randint(8, 13)
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "dwarf", "-o",
                            context.path("capture"), "--", WORKLOADS / "deep-again", waits, depth)
    user, _ = memo_hits(done.stderr)
    print(f"# {user} of {2 * waits} stacks of {depth} KiB were not walked", flush=True)
    # Until the tables are there, stacks are walked.
    check_few_walks(user, 2 * waits, 0.5)
    expect_failure(check_few_walks, waits // 2, 2 * waits, 0.5)


def test_many_frames(context):
    """The stacks of a script engine or of a framework: one word of each frame is read."""
    depth, ms = context.random.randint(110, 150), 400
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "dwarf", "-o", context.path("capture"), "--",
                            WORKLOADS / "deep", "wait", depth, ms, 1)
    known, _ = memo_hits(done.stderr)
    walked = walks(done.stderr, "user")
    print(f"# {known} of {known + walked} stacks of {depth} frames were not walked", flush=True)
    check(known + walked > ms / 8, f"only {known + walked} stacks")
    check_few_walks(known, known + walked, 0.3)
    # While a memo had 96 words, all were walked.
    expect_failure(check_few_walks, walked, known + walked, 0.3)


def test_new_processes(context):
    """Kernel stacks are known again in processes that have just begun."""
    rounds, times = ROUNDS // 400, 40
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "none", "-o",
                            context.path("capture"), "--", WORKLOADS / "kernel-again", rounds,
                            context.random.randint(1, 1 << 30), times)
    _, known = memo_hits(done.stderr)
    stacks = known + walks(done.stderr, "kernel")
    print(f"# {known} of {stacks} kernel stacks were not walked", flush=True)
    check(stacks > rounds * times / 2, f"only {stacks} kernel stacks")
    # While each thread had memos of its own, a fifth was known again.
    check_few_walks(known, stacks, 0.7)
    expect_failure(check_few_walks, stacks // 4, stacks, 0.7)


def test_new_threads(context):
    """A thread has the stack of one that has ended, and waits in the same functions, each once."""
    threads = ROUNDS // 100
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "dwarf", "-o",
                            context.path("capture"), "--", sys.executable, "-c", THREADS, threads)
    known, _ = memo_hits(done.stderr)
    stacks = known + walks(done.stderr, "user")
    print(f"# {known} of {stacks} user stacks of {threads} threads were not walked", flush=True)
    check(stacks > 4 * threads, f"only {stacks} user stacks")
    # While each thread had memos of its own, two of five were known again.
    check_few_walks(known, stacks, 0.35)
    expect_failure(check_few_walks, stacks // 2, stacks, 0.35)


def check_kernel_stacks_known(said, waits, most):
    """Of the stacks of so many waits, and of wakers. Those of interrupts of an idle CPU are walked each time: a part
    of such a stack is the interrupt's, so they are not comparable."""
    (_, known), walked = memo_hits(said), walks(said, "kernel")
    walked -= int(re.search(r"kernel stacks that were walked: [^;]*?(\d+) not comparable", said)[1])
    print(f"# {known} of {known + walked} kernel stacks of {waits} waits were not walked", flush=True)
    check(known + walked > 0.8 * waits, f"only {known + walked} stacks of {waits} waits")
    check_few_walks(known, known + walked, most)
    expect_failure(check_few_walks, known - 2 * most * waits, known + walked, most)


def test_polls(context):
    """Most words that such a stack has differ each time; the walk reads none of these. While all of them were compared,
    nine of ten stacks were walked."""
    waits = 2 * context.random.randint(ROUNDS // 200, ROUNDS // 100)
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "none", "-o",
                            context.path("capture"), "--", sys.executable, "-c", POLLS, waits // 2)
    check_kernel_stacks_known(done.stderr, waits, 0.1)


def test_turns(context):
    """Of stacks that were not found again yet, the next one replaces none while there is room."""
    waits = 3 * context.random.randint(ROUNDS // 200, ROUNDS // 100)
    done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "none", "-o", context.path("capture"), "--",
                            sys.executable, "-c", TURNS, waits // 3)
    # While one replaced the other, one of three was walked.
    check_kernel_stacks_known(done.stderr, waits, 0.1)


def test_kernel_stacks(context):
    rounds, capture = ROUNDS // 2, context.path("capture")
    done = context.wallprof("record", "-v", "--defer-symbols", "-o", capture, "--",
                            WORKLOADS / "kernel-again", rounds, context.random.randint(1, 1 << 30))
    user, kernel = memo_hits(done.stderr)
    check(min(user, kernel) > rounds / 10,
          f"{user} user and {kernel} kernel stacks of {rounds} waits were known again")
    waits = kernel_waits_of(capture, Symbols())
    check_functions(waits, rounds)
    print(f"# {sum(waits.values())} waits for five kinds of things, {kernel} stacks not walked: "
          "0 wrong", flush=True)
    (call, size, _), *_ = waits
    expect_failure(check_functions, waits + Counter({(call, size, frozenset({"do_nanosleep"})): 1}),
                   rounds)


STATISTICS = Path("/proc/sys/kernel/bpf_stats_enabled")


@contextmanager
def counted_at_times():
    """The kernel counts the time of all BPF programs, and does not, in turn."""
    before, is_over = STATISTICS.read_text(), threading.Event()

    def switch():
        while not is_over.wait(0.02):
            STATISTICS.write_text("0" if STATISTICS.read_text() == "1\n" else "1")

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()
        STATISTICS.write_text(before)


def kernel_stacks_at_switches(capture):
    stacks, at_switches = {}, set()
    for kind, flags, _, record in records(capture, {SWITCH, STACK}):
        if kind == STACK:
            number, _, count, _ = HEAD.unpack_from(record, 16)
            stacks[number] = struct.unpack_from(f"<{count}Q", record, 40)
        elif flags & SWITCH_PREV:
            at_switches.add(FIELDS.unpack_from(record, 28)[2])
    return [frames for number, frames in stacks.items() if number in at_switches and frames[0] & KERNEL]


def check_callers_differ(stacks):
    """The first frames, which called the program that took the stack, are the same for all."""
    above = Counter(frames[2:] for frames in stacks)
    twice = [frames for frames, count in above.items() if count > 1]
    check(stacks and not twice, f"{len(twice)} of {len(stacks)} stacks were taken for two, or there was none")


def test_counted_programs(context):
    """From where the kernel runs a program depends on whether it counts the program's time. That is no other stack."""
    capture = context.path("capture")
    with counted_at_times():
        done = context.wallprof("record", "-v", "--defer-symbols", "--stacks", "none", "-o", capture, "--",
                                WORKLOADS / "kernel-again", ROUNDS // 4, context.random.randint(1, 1 << 30))
    memo_hits(done.stderr)
    stacks = kernel_stacks_at_switches(capture)
    check_callers_differ(stacks)
    first, *_ = stacks
    expect_failure(check_callers_differ, [*stacks, (first[0], first[1] ^ 8, *first[2:])])
