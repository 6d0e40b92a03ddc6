# SPDX-License-Identifier: GPL-2.0-or-later
"""Wakers while every CPU is busy: interrupts hit threads that are unrelated to the wakeup."""
import bisect
import os
import re
import struct
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from capture_reader import records
from harness import (IN_GUEST, MS, WALLPROF, WORKLOADS, Profile, Skip, check, expect_failure, needs_command,
                     needs_root)
from kernel_modules import load

pytestmark = pytest.mark.untimed  # it keeps the CPUs busy itself

# By thread: what may be reported as its waker. A soft interrupt that a sender has raised may run as part of the next
# one, or in ksoftirqd.
WAKERS = {"timeout": ("timer interrupt", "interrupt"), "sleep": ("timer interrupt", "interrupt"),
          "datagram": ("sends", "network interrupt", "interrupt"),
          "stream": ("streams", "network interrupt", "interrupt"),
          "packet": ("packets", "network interrupt", "interrupt"),
          "disk": ("block device interrupt", "device interrupt", "interrupt"),
          "pipe": ("writes",), "grace": ("interrupt of RCU", "interrupt", "rcu", "kworker/", "migration/")}
OWN = {"datagram": "sends", "stream": "streams", "packet": "packets", "pipe": "writes"}  # nearly always
OWN_SHARE = 0.2 if IN_GUEST else 0.9  # in a slow system call an interrupt more often comes first
# Waits that may be too short to have a waker.
LEAST_NS = {"grace": MS, "disk": 20_000}
# The chain is lost where the kernel did not trace a switch.
UNKNOWN, UNKNOWN_SHARE = "unknown", 0.1
FOR_CPU = ("Runnable (woken)", "Runnable (preempted)")
MAIN = "wakers"  # the main thread, while a thread begins
ROUNDS = 12 if IN_GUEST else 40


def wakers_command(context, rounds, ms):
    """The workload's command line, with a file. Requests of a disk that has one queue end in soft interrupts."""
    if IN_GUEST:
        load("veth")
    file = context.path("file")
    file.write_bytes(os.urandom(1 << 20))
    os.sync()
    return [WORKLOADS / "wakers", str(rounds), str(ms), file]


def wakers_of(profile, name, least_ns):
    """Counter of the wakers in the thread's waits of at least least_ns."""
    found = Counter()
    for thread in profile.threads:
        if thread.name.split(" (")[0] == name:
            found.update(thread.text(m["data"].get("wokenBy")) or UNKNOWN for m in thread.markers()
                         if m["data"].get("type") == "Wait" and m["end"] - m["start"] >= least_ns
                         and m["name"] not in FOR_CPU)
    return found


def check_wakers(found, name, rounds):
    check(sum(found.values()) >= rounds / 2, f"{name}: only {sum(found.values())} waits of {rounds}: {found}")
    check(found[UNKNOWN] <= UNKNOWN_SHARE * sum(found.values()), f"{name}: too many wakers are unknown: {found}")
    check(all(waker.startswith((*WAKERS[name], UNKNOWN, MAIN)) for waker in found),
          f"{name} was woken by {found}, should be {WAKERS[name]}")
    if name in OWN:
        share = found[OWN[name]] / sum(count for waker, count in found.items() if waker not in (UNKNOWN, MAIN))
        check(share >= OWN_SHARE, f"{name} was woken by {found}, should be {OWN[name]}")


def test_on_busy_cpus(context):
    ms, output = context.random.randint(8, 16), context.path("p.json.gz")
    context.wallprof("-q", "-o", output, "--", *wakers_command(context, ROUNDS, ms))
    profile, all_found = Profile.load(output), {}
    for name in WAKERS:
        least_ns = LEAST_NS.get(name, ms * MS / 4)
        all_found[name] = wakers_of(profile, name, least_ns)
        if name in LEAST_NS and sum(all_found[name].values()) < ROUNDS / 2:
            continue
        check_wakers(all_found[name], name, ROUNDS)
    print(f"# wakers: {({name: dict(found) for name, found in all_found.items()})}", flush=True)
    expect_failure(check_wakers, Counter({"burner": ROUNDS}), "timeout", ROUNDS)
    expect_failure(check_wakers, Counter({"sends": 1, "interrupt": ROUNDS}), "datagram", ROUNDS)


# ---- against the kernel's call chains, by perf ----

WAKING, HARD, SOFT = 2, 1, 2  # docs/reference/capture-format.md
NEAR_NS = 1_000_000 if IN_GUEST else 50_000
LEAST_SHARE = 0.999
# linux/perf_event.h, and the bits of perf_event_attr::sample_type.
PERF_TYPE_TRACEPOINT, PERF_RECORD_SAMPLE, FIRST_CONTEXT = 2, 9, (1 << 64) - 4095
IP, ADDR, ID, CPU, PERIOD, STREAM_ID, IDENTIFIER = 1 << 0, 1 << 3, 1 << 6, 1 << 7, 1 << 8, 1 << 9, 1 << 16
PID_AT = 24  # in sched_waking's fields
HARD_ENTRY = re.compile(r"^(asm_)?(sysvec_|common_interrupt)")
SOFT_ENTRY = re.compile(r"^(__do_softirq|handle_softirqs)$")
BELOW_INTERRUPT = re.compile(r"^(__)?irq_exit_rcu$|^run_ksoftirqd$|" + HARD_ENTRY.pattern)
# Wakeups on a thread's return from an interrupt are attributed to the thread again.
INTERRUPT_OVER = re.compile(r"^irqentry_exit|^exit_to_user_mode|^preempt_schedule_irq$")
# The functions that serve soft interrupts, with the numbers of linux/interrupt.h. The first one in a chain decides.
VECTORS = {"run_timer_softirq": 1, "net_tx_action": 2, "net_rx_action": 3, "blk_done_softirq": 4,
           "blk_complete_reqs": 4, "irq_poll_softirq": 5, "tasklet_action": 6, "sched_balance_softirq": 7,
           "run_rebalance_domains": 7, "hrtimer_run_softirq": 8, "rcu_core": 9, "rcu_core_si": 9}
NAMES = {0: "another", 1: "timer", 2: "network", 3: "network", 4: "block", 5: "block", 6: "tasklet", 7: "balancing",
         8: "timer", 9: "RCU"}
TASK_VECTORS = (0, 2, 3, 6)  # raised by a task's own system call; all others are raised by interrupts only
TASK, HARD_INTERRUPT = "a task", "a hard interrupt"


def soft_interrupt(vector):
    return f"a soft interrupt ({NAMES[vector]})"


def first_of(chain, pattern):
    """The index of the first match from the innermost frame on, or the chain's length."""
    return next((i for i, name in enumerate(chain) if pattern.match(name)), len(chain))


def class_of(chain):
    """The class of a waker by its call chain, innermost frame first."""
    chain = chain[:first_of(chain, INTERRUPT_OVER)]
    soft = first_of(chain, SOFT_ENTRY)
    if first_of(chain, HARD_ENTRY) < soft:
        return HARD_INTERRUPT
    if soft == len(chain):
        return TASK
    vector = next((VECTORS[name] for name in reversed(chain[:soft]) if name in VECTORS), 0)
    if vector in TASK_VECTORS and first_of(chain[soft:], BELOW_INTERRUPT) == len(chain) - soft:
        return TASK
    return soft_interrupt(vector)


class KernelFunctions:
    """By address."""

    def __init__(self):
        lines = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
        self.list = sorted((int(line[0], 16), line[2]) for line in lines if line[1] in "tTwW")
        if self.list[-1][0] == 0:
            raise Skip("the kernel's addresses are hidden")

    def name(self, address):
        i = bisect.bisect_right(self.list, (address, chr(0x10ffff)))
        return self.list[i - 1][1].split(".")[0] if i else ""


def samples_of(data):
    """(tid, ns, the event's own fields, addresses of its call chain) of each sample of a tracepoint in what perf record
    wrote. Read here, for `perf script` crashes where any process's build ID is longer than it expects."""
    attr_size, attrs_at, attrs_size, data_at, data_size = struct.unpack_from("<5Q", data, 16)
    for at in range(attrs_at, attrs_at + attrs_size, attr_size):
        kind, *_, sample_type = struct.unpack_from("<IIQQQ", data, at)
        if kind == PERF_TYPE_TRACEPOINT:
            break
    before = 8 * sum(bool(sample_type & bit) for bit in (IDENTIFIER, IP))
    between = 8 * sum(bool(sample_type & bit) for bit in (ADDR, ID, STREAM_ID, CPU, PERIOD))
    at, end = data_at, data_at + data_size
    while at < end:
        kind, _, size = struct.unpack_from("<IHH", data, at)
        if kind == PERF_RECORD_SAMPLE:
            _, tid, ns = struct.unpack_from("<IIQ", data, at + 8 + before)
            chain_at = at + 8 + before + 16 + between
            count, = struct.unpack_from("<Q", data, chain_at)
            raw_at = chain_at + 8 + 8 * count + 4
            yield tid, ns, data[raw_at:at + size], struct.unpack_from(f"<{count}Q", data, chain_at + 8)
        at += size


def wakings_of_perf(path, tids):
    """{woken tid: [(ns, waker's tid, class, chain)]} of these."""
    functions, found = KernelFunctions(), defaultdict(list)
    for tid, ns, raw, addresses in samples_of(path.read_bytes()):
        woken, = struct.unpack_from("<i", raw, PID_AT)
        if woken not in tids:
            continue
        chain = [functions.name(address) for address in addresses if address < FIRST_CONTEXT]
        found[woken].append((ns, tid, class_of(chain), chain))
    return {tid: sorted(wakings) for tid, wakings in found.items()}


def wakings_of_capture(capture):
    for _, flags, ns, record in records(capture, {WAKING}):
        tid, waker, _, vector = struct.unpack_from("<IIHB", record, 16)
        yield (tid, ns, waker, HARD_INTERRUPT if flags & HARD else
               soft_interrupt(vector - 1 if vector else 0) if flags & SOFT else TASK)


def compare(ours, perf):
    """Counter of (our class, perf's class), and the chains of those that differ. The idle task is always
    interrupted."""
    pairs, chains = Counter(), []
    for tid, ns, waker, found in ours:
        theirs = perf.get(tid, [])
        i = bisect.bisect_left(theirs, (ns,))
        near = min(theirs[max(i - 1, 0):i + 1], key=lambda event: abs(event[0] - ns), default=None)
        if waker and near and abs(near[0] - ns) < NEAR_NS and near[1] == waker:
            pairs[found, near[2]] += 1
            if found != near[2]:
                chains.append((found, near[2], near[3]))
    return pairs, chains


def check_agreement(pairs, chains, wanted):
    """wanted: the classes that must be among them."""
    total, same = sum(pairs.values()), sum(count for (ours, perf), count in pairs.items() if ours == perf)
    seen = Counter()
    for (_, perf), count in pairs.items():
        seen[perf] += count
    check(total > 10 * ROUNDS / 4 and all(seen[name] > ROUNDS / 4 for name in wanted), f"too few: {seen}")
    check(same >= LEAST_SHARE * total, f"{total - same} of {total} differ: {pairs}, as {chains[:3]}")


def record_both(context, command):
    """perf's record and ours of the same wakeups."""
    data, capture = context.path("perf.data"), context.path("capture")
    done = subprocess.run(["perf", "record", "-B", "-N", "--no-bpf-event", "-k", "CLOCK_MONOTONIC", "-q", "-a", "-g",
                           "--kernel-callchains", "-e", "sched:sched_waking", "-o", data, "--", WALLPROF, "record",
                           "-q", "-o", capture, "--", *command], capture_output=True, text=True,
                          timeout=context.timeout_s)
    check(capture.exists() and data.exists(), f"perf and wallprof recorded nothing: {done.stderr[-600:]}")
    ours = list(wakings_of_capture(capture))
    return wakings_of_perf(data, {tid for tid, *_ in ours}), ours


def test_as_perf(context):
    needs_root()
    needs_command("perf")
    perf, ours = record_both(context, wakers_command(context, 10 * ROUNDS, 3))
    pairs, chains = compare(ours, perf)
    wanted = [TASK, HARD_INTERRUPT, *map(soft_interrupt, (1, 4) if IN_GUEST else (1,))]
    print(f"# wakers: {sum(pairs.values())} wakeups compared with perf's: "
          + ", ".join(f"{ours}" + ("" if ours == theirs else f", but to perf {theirs}") + f" {count}"
                      for (ours, theirs), count in sorted(pairs.items())), flush=True)
    check_agreement(pairs, chains, wanted)
    of_interrupts = [(*waking[:3], TASK) for waking in ours]
    expect_failure(check_agreement, *compare(of_interrupts, perf), wanted)
    expect_failure(check_agreement, *compare(ours, perf), [*wanted, soft_interrupt(7)])
