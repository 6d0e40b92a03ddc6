# SPDX-License-Identifier: GPL-2.0-or-later
"""What ended a wait, while every CPU is busy: interrupts interrupt threads that have nothing to do with it."""
import bisect
import re
import struct
import subprocess
from collections import Counter, defaultdict
from pathlib import Path

from capture import records
from harness import (IN_GUEST, MS, WALLPROF, WORKLOADS, Profile, Skip, check, expect_failure, host_only, needs_command,
                     needs_root)

UNTIMED = True  # it keeps the CPUs busy itself

# By thread: what may be reported as its waker. What a thread that sends has raised, the next soft interrupt may run, or
# ksoftirqd.
WAKERS = {"timeout": ("timer interrupt", "interrupt"), "sleep": ("timer interrupt", "interrupt"),
          "datagram": ("sends", "network interrupt", "interrupt"),
          "stream": ("streams", "network interrupt", "interrupt"),
          "pipe": ("writes",), "grace": ("interrupt of RCU", "interrupt", "rcu", "kworker/", "migration/")}
OWN = {"datagram": "sends", "stream": "streams", "pipe": "writes"}  # nearly always
OWN_SHARE = 0.9
# The chain is lost where the kernel did not trace a switch.
UNKNOWN, UNKNOWN_SHARE = "unknown", 0.1
MAIN = "wakers"  # the main thread, while a thread begins
ROUNDS = 12 if IN_GUEST else 40


def wakers_of(profile, name, least_ns):
    """Counter of what ended the waits of the thread of that name that took so long."""
    found = Counter()
    for thread in profile.threads:
        if thread.name.split(" (")[0] == name:
            found.update(thread.text(m["data"].get("wokenBy")) or UNKNOWN for m in thread.markers()
                         if m["data"].get("type") == "Wait" and m["end"] - m["start"] >= least_ns
                         and "Runnable" not in m["name"] and "interrupt" not in m["name"].lower())
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
    context.wallprof("-q", "-o", output, "--", WORKLOADS / "wakers", ROUNDS, ms)
    profile, all_found = Profile.load(output), {}
    for name in WAKERS:
        least_ns = MS if name == "grace" else ms * MS / 4
        all_found[name] = wakers_of(profile, name, least_ns)
        if name == "grace" and sum(all_found[name].values()) < ROUNDS / 2:
            continue  # a grace period may be short
        check_wakers(all_found[name], name, ROUNDS)
    print(f"# wakers: {({name: dict(found) for name, found in all_found.items()})}", flush=True)
    expect_failure(check_wakers, Counter({"burner": ROUNDS}), "timeout", ROUNDS)
    expect_failure(check_wakers, Counter({"sends": 1, "interrupt": ROUNDS}), "datagram", ROUNDS)


# ---- against the kernel's call chains, by perf ----

WAKING, BY_INTERRUPT = 2, 1 | 2  # docs/capture-format.md
NEAR_NS = 50_000
LEAST_SHARE = 0.999
EVENT = re.compile(r"^ *(\d+) +(\d+)\.(\d{9}): +sched:sched_waking: .* pid=(\d+) prio=")
INTERRUPTED = re.compile(r"^(asm_)?(sysvec_|common_interrupt)|^(__)?irq_exit_rcu$|^run_ksoftirqd$")
SOFT = {"do_softirq", "__do_softirq", "handle_softirqs", "do_softirq.part.0"}
# What interrupts have raised, whatever runs it.
NEVER_OWN = {"run_timer_softirq", "rcu_core", "rcu_core_si", "blk_done_softirq", "blk_complete_reqs",
             "irq_poll_softirq", "hrtimer_run_softirq", "sched_balance_softirq", "run_rebalance_domains"}


def is_interrupt(chain):
    return any(map(INTERRUPTED.match, chain)) or bool(SOFT & set(chain) and NEVER_OWN & set(chain))


class KernelFunctions:
    """By address."""

    def __init__(self):
        lines = (line.split() for line in Path("/proc/kallsyms").read_text().splitlines())
        self.list = sorted((int(line[0], 16), line[2]) for line in lines if line[1] in "tTwW")
        if self.list[-1][0] == 0:
            raise Skip("the kernel's addresses are hidden")

    def name(self, address):
        i = bisect.bisect_right(self.list, (address, chr(0x10ffff)))
        return self.list[i - 1][1] if i else ""


def wakings_of_perf(data):
    """{woken tid: [(ns, waker's tid, by an interrupt?)]}."""
    functions, found = KernelFunctions(), defaultdict(list)
    script = subprocess.run(["perf", "script", "-i", data, "--ns", "-F", "tid,time,event,trace,ip"], text=True,
                            capture_output=True, check=True).stdout
    for block in script.split("\n\n"):
        head, *frames = block.strip("\n").split("\n")
        match = EVENT.match(head)
        if match:
            chain = [functions.name(int(frame.split()[0], 16)) for frame in frames if frame.split()]
            found[int(match[4])].append((int(match[2]) * 10**9 + int(match[3]), int(match[1]), is_interrupt(chain)))
    return found


def wakings_of_capture(capture):
    for _, flags, ns, record in records(capture, {WAKING}):
        tid, waker = struct.unpack_from("<II", record, 16)
        yield tid, ns, waker, bool(flags & BY_INTERRUPT)


def compare(ours, perf):
    """Counter of (class to us, class to perf). The idle task is always interrupted."""
    pairs = Counter()
    for tid, ns, waker, interrupt in ours:
        theirs = perf[tid]
        i = bisect.bisect_left(theirs, (ns,))
        near = min(theirs[max(i - 1, 0):i + 1], key=lambda event: abs(event[0] - ns), default=None)
        if waker and near and abs(near[0] - ns) < NEAR_NS and near[1] == waker:
            pairs[interrupt, near[2]] += 1
    return pairs


def check_agreement(pairs):
    total, same = sum(pairs.values()), pairs[True, True] + pairs[False, False]
    check(total > 10 * ROUNDS / 4 and pairs[True, True] > ROUNDS / 4 and pairs[False, False] > ROUNDS / 4,
          f"too few: {pairs}")
    check(same >= LEAST_SHARE * total, f"{total - same} of {total} differ: {pairs}")


def record_both(context):
    """What perf has, and what we have, of the same wakeups. Some versions of perf crash while they read build IDs."""
    data, capture = context.path("perf.data"), context.path("capture")
    done = subprocess.run(["perf", "record", "-B", "-N", "--no-bpf-event", "-k", "CLOCK_MONOTONIC", "-q", "-a", "-g",
                           "--kernel-callchains", "-e", "sched:sched_waking", "-o", data, "--", WALLPROF, "record",
                           "-q", "-o", capture, "--", WORKLOADS / "wakers", str(10 * ROUNDS), "3"], capture_output=True,
                          text=True, timeout=context.patience_s)
    check(capture.exists(), f"perf and wallprof recorded nothing: {done.stderr[-600:]}")
    return wakings_of_perf(data), list(wakings_of_capture(capture))


@host_only("it needs perf")
def test_as_perf(context):
    needs_root()
    needs_command("perf")
    for remaining in reversed(range(4)):
        try:
            perf, ours = record_both(context)
            break
        except subprocess.CalledProcessError as error:
            if not remaining:
                raise Skip(f"perf cannot read what it wrote: {error.stderr.strip()[-200:]}") from error
    pairs = compare(ours, perf)
    print(f"# wakers: {sum(pairs.values())} wakeups compared with perf's: {dict(pairs)}", flush=True)
    check_agreement(pairs)
    expect_failure(check_agreement, compare([(*w[:3], not w[3]) for w in ours], perf))
