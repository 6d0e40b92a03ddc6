# SPDX-License-Identifier: GPL-2.0-or-later
"""Attaching does not disturb a process in any state, and leaves nothing behind."""
import os
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

import pytest

from harness import (CLOCK_NANOSLEEP, SLOWNESS, Recording, Skip, check, check_hidden, children, current_call,
                     expect_failure, is_long, needs_command, needs_root, wait_until, wait_until_asleep)

# Works for a moment every 2 ms, and prints the pauses between these moments every half second.
HEART = """
import sys, time
gaps, last, printed = [], time.monotonic(), time.monotonic()
while True:
    time.sleep(0.002)
    now = time.monotonic()
    gaps.append(now - last)
    last = now
    if now - printed > 0.5:
        print(*("%.6f" % gap for gap in gaps), flush=True)
        gaps, printed = [], now
"""


# One thread holds a mutex of glibc; another one waits for it. The program prints their ids.
HANGS = """
import ctypes, threading, time
libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
def wait():
    libc.pthread_mutex_lock(mutex)
def hold():
    wait()
    holders.append(threading.get_native_id())
    waiter.start()
    time.sleep(60)
holders, waiter = [], threading.Thread(target=wait, daemon=True)
holder = threading.Thread(target=hold, daemon=True)
holder.start()
while waiter.native_id is None:
    time.sleep(0.01)
print(holders[0], waiter.native_id, flush=True)
time.sleep(60)
"""


FUTEX, FUTEX_WAIT = 202, 0  # the system call, and one of its operations


def state_of(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def record(context, pid, duration="200ms"):
    output = context.path("p.json.gz")
    context.wallprof("-q", "--keep-capture", "-o", output, "-p", pid, "-d", duration)
    recording = Recording(context, output)
    check_hidden(recording.report["contradictions"])
    return recording


def check_only(recording, tid, reason):
    """One thread, which did nothing else."""
    ledger = recording.ledger(tid)
    reported = ledger["reasons"].get(reason, 0)
    check(reported >= 0.95 * ledger["lifetime_ns"] > 0, f"{ledger}: not {reason}")


def test_stopped(context):
    target = context.start(["sleep", "60"])
    wait_until(lambda: current_call(target.pid)[:1] == [CLOCK_NANOSLEEP], "it sleeps")
    target.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(target.pid) == "T", "it is stopped")
    recording = record(context, target.pid)
    check_only(recording, target.pid, "[stopped]")
    expect_failure(check_only, recording, target.pid, "[sleep]")
    check(state_of(target.pid) == "T", "it goes on")
    target.send_signal(signal.SIGCONT)
    wait_until(lambda: state_of(target.pid) == "S", "it goes on")
    check("[stopped]" not in record(context, target.pid).ledger(target.pid)["reasons"], "it is said to be stopped")


def test_over(context):
    """A zombie, and a process that is about to end, can be attached to."""
    parent = context.start([sys.executable, "-c", "import os, time\nif os.fork() == 0: os._exit(3)\ntime.sleep(60)"])
    wait_until(lambda: "Z" in states_of_children(parent.pid), "there is a zombie")
    zombie = next(pid for pid in children(parent.pid) if state_of(pid) == "Z")
    done = context.wallprof("-o", context.path("z.json"), "-p", zombie, "-d", "1s", status=125)
    check("has ended" in done.stderr, done.stderr)
    short = context.start(["sleep", "2" if SLOWNESS == 1 else "8"])
    begin = time.monotonic()
    recording = record(context, short.pid, "60s")
    check(time.monotonic() - begin < 30, "it did not end with the process")
    check(recording.ledger(short.pid)["reasons"].get("[sleep]", 0) > 0, "it did not sleep")


def states_of_children(pid):
    return [state_of(child) for child in children(pid)]


def attach_cold(context, target):
    """No table is known from earlier, so it takes a while until they are there."""
    output, cache = context.path("p.json.gz"), context.path(f"cache-{target.pid}")
    context.wallprof("-q", "--keep-capture", "-o", output, "-p", target.pid, "-d", "200ms",
                     env={**os.environ, "XDG_CACHE_HOME": str(cache)})
    check(list(cache.rglob("*")), "nothing was written to the cache")
    recording = Recording(context, output)
    check_hidden(recording.report["contradictions"])
    return recording


def check_asleep(recording, tids, function, ready_max=0):
    """Each thread was asleep in that function when the window began. Up to ready_max threads may have been runnable."""
    ready = 0
    for tid in tids:
        frames = recording.profile.thread(tid).frames_of(0)
        if ready < ready_max and any(name.startswith("[runnable: ") for name in frames):
            ready += 1
            continue
        check("truth_sleep" in frames and function in frames, f"{tid} slept in {frames}")


def test_main_thread_is_over(context):
    """The main thread has ended: only below the other threads' ids /proc still has the mappings."""
    target = context.start(context.workload("die", ms=1, linger_ms=60_000))
    wait_until(lambda: state_of(target.pid) == "Z", "its main thread has ended")
    recording = record(context, target.pid)
    tids = {thread["tid"] for thread in recording.report["threads"]} - {target.pid}
    check(len(tids) == 1, f"recorded {tids}")
    check_asleep(recording, tids, "bystander")
    expect_failure(check_asleep, recording, tids, "main")


def check_holder(report, tid, ns):
    reported = {(holder["tid"], holder["total_ns"]) for holder in report["holders"]}
    check(reported == {(tid, ns)}, f"the lock is held by {reported}, should be by {tid}, all {ns} ns")


def is_in_futex_wait(tid):
    """As a waiter for a mutex is; Python's own locks use FUTEX_WAIT_BITSET."""
    call = current_call(tid)
    return call[:1] == [FUTEX] and call[2] & 127 == FUTEX_WAIT


def test_hangs(context):
    """The holder of a lock is known, for a wait that began before the recording."""
    target = context.start([sys.executable, "-c", HANGS], stdout=subprocess.PIPE, text=True)
    holder, waiter = map(int, target.stdout.readline().split())
    wait_until(lambda: is_in_futex_wait(waiter), "it waits for the mutex")
    for stacks in ("dwarf", "none"):
        output = context.path(f"{stacks}.json.gz")
        context.wallprof("-q", "--keep-capture", "--stacks", stacks, "-o", output, "-p", target.pid, "-d", "300ms")
        recording = Recording(context, output)
        check_only(recording, waiter, "[mutex wait]")
        check_holder(recording.report, holder, recording.profile.window_ns)
        expect_failure(check_holder, recording.report, waiter, recording.profile.window_ns)


def check_stacks_kept(report):
    check(report["totals"]["stack copy"]["lost"] == 0, f"{report['totals']}: {report['losses']}")


def test_while_tables_are_made(context):
    """A thread that falls asleep while tables are built has its stack; busy threads do not keep others from theirs."""
    library = max(Path("/usr/lib/x86_64-linux-gnu").glob("libLLVM-*.so*"), default=None)
    if not library:
        raise Skip("there is no libLLVM, whose table takes a while")
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    count = 60
    sleeper = context.start(context.workload("sleeps", threads=count, rounds=1000, ms=600, step_us=10000),
                            env=environment)
    busy = context.start(context.workload("pingpong", rounds=1 << 40), env=environment)
    tasks = Path(f"/proc/{sleeper.pid}/task")
    wait_until(lambda: len(list(tasks.iterdir())) == count + 1, "all threads are there")
    time.sleep(3 * SLOWNESS)  # they begin together, and drift apart by 10 ms in each round
    recording = attach_cold(context, sleeper)
    tids = [int(t.name) for t in tasks.iterdir() if t.name != str(sleeper.pid)]
    check_asleep(recording, tids, "sleeper", count // 10)
    expect_failure(check_asleep, recording, tids, "main", count // 10)
    report = attach_cold(context, busy).report
    check(report["totals"]["switch"]["received"] > 1000, f"it was not busy: {report['totals']}")
    check_stacks_kept(report)
    report["totals"]["stack copy"]["lost"] = 1
    expect_failure(check_stacks_kept, report)


def test_execs(context):
    """A process that becomes another program all the time."""
    loop = "i=${1:-0}; [ $i -ge 2000 ] || exec sh -c \"$0\" \"$0\" $((i+1))"
    target = context.start(["sh", "-c", loop, loop, "0"])
    recording = record(context, target.pid, "300ms")
    ledger = recording.ledger(target.pid)
    check(sum(ledger["states"].values()) == ledger["lifetime_ns"], f"{ledger}")
    check(ledger["process"] in ("sh", "exe"), f"{ledger}")  # as busybox becomes itself


@pytest.mark.host_only("a guest's memory is small")
def test_many_threads(context):
    """1,000 threads that sleep all the time, each with where."""
    target = context.start(context.workload("sleeps", threads=1000, rounds=1, ms=120000))
    wait_until_asleep(target.pid, 1000)
    recording = record(context, target.pid, "500ms")
    threads = [t for t in recording.profile.threads if t.name.startswith("sleeper")]
    check(len(threads) == 1000, f"{len(threads)} threads")
    reported = [t.tid for t in threads if "sleeper" in t.frames_of(len(t.times) // 2)]
    check(len(reported) == 1000, f"of {1000 - len(reported)} it is not known where they sleep")


def test_kernel_thread(context):
    needs_root()
    found = [int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit()
             and (p / "comm").read_text().strip() == "ksoftirqd/0"]
    check(len(found) == 1, f"{found}")
    recording = record(context, found[0])
    reported = [(t["name"], t["process"]) for t in recording.report["threads"]]
    check(reported == [("ksoftirqd/0", "kernel threads")], f"{reported}")


@pytest.mark.host_only("it needs cp")
def test_container(context):
    """In mount and PID namespaces of its own, of which the names come all the same."""
    needs_root()
    needs_command("unshare")
    place = context.path("place")
    place.mkdir()
    inside = (f"mount -t tmpfs none {place} && cp {context.workload('sleeps')[0]} {place}/inside && "
              f"exec {place}/inside --threads 1 --rounds 1 --ms 60000")
    outer = context.start(["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", inside])
    wait_until(lambda: children(outer.pid) and Path(f"/proc/{children(outer.pid)[0]}/comm").read_text() == "sleeps\n",
               "it has begun")
    pid = children(outer.pid)[0]
    wait_until_asleep(pid, 1)
    recording = record(context, pid)
    names = {name for t in recording.profile.threads if t.times for name in t.frames_of(len(t.times) // 2)}
    check({"sleeper", "truth_sleep", "main"} <= names, f"{sorted(names)}")


class Heart:
    """A process whose pauses are counted, and whose state is looked at all the time."""

    def __init__(self, context):
        self.process = context.start([sys.executable, "-c", HEART], stdout=subprocess.PIPE, text=True)
        self.gaps, self.seen, self.going = [], set(), True
        self.threads = [threading.Thread(target=self.listen), threading.Thread(target=self.look)]
        for thread in self.threads:
            thread.start()

    def listen(self):
        for line in self.process.stdout:
            self.gaps += [float(word) for word in line.split()]

    def look(self):
        status = Path(f"/proc/{self.process.pid}/status")
        while self.going:
            try:
                text = status.read_text()
            except (FileNotFoundError, ProcessLookupError):
                return
            self.seen.add((re.search(r"^State:\t(\S)", text, re.M)[1], re.search(r"^TracerPid:\t(\d+)", text, re.M)[1]))
            time.sleep(0.001)  # another process would be disturbed if this one took a whole CPU

    def take(self):
        time.sleep(0.6)  # it prints every half second
        gaps, self.gaps = sorted(self.gaps), []
        return gaps

    def end(self):
        self.going = False
        self.process.kill()
        for thread in self.threads:
            thread.join()
        self.process.wait()

    def belongings(self):
        """Descriptors, mappings and what they take, KiB."""
        proc = Path(f"/proc/{self.process.pid}")
        maps = (proc / "maps").read_text()
        rss = int(re.search(r"^VmRSS:\s+(\d+)", (proc / "status").read_text(), re.M)[1])
        return len(list((proc / "fd").iterdir())), maps.count("\n"), rss


def quantile(gaps, share):
    return gaps[min(int(share * len(gaps)), len(gaps) - 1)]


def check_undisturbed(control, attached):
    """Its pauses are those that it has beside another process that is attached to, or that takes as much CPU time: it
    waits for a CPU, and for nothing else. The longest is one of thousands, and depends on chance."""
    for share, room in ((0.5, 0.0001), (0.95, 0.0005), (0.99, 0.002), (1, 0.03)):
        check(quantile(attached, share) <= 1.2 * quantile(control, share) + room,
              f"of {share}: {quantile(attached, share) * 1000:.3f} ms, {quantile(control, share) * 1000:.3f} beside the other")


def check_late(control, attached):
    """Over thousands of beats it shows if one in a hundred comes later than beside the other."""
    check(late(attached) <= late(control) + 0.01, f"{late(attached)} are late, and {late(control)} beside the other")


def check_states(seen):
    check(seen and all(state in "RSD" and tracer == "0" for state, tracer in seen), f"it was {seen}")


def late(gaps):
    """The share of beats that came a quarter late, or more."""
    return sum(gap > 0.0025 for gap in gaps) / len(gaps)


def compute(seconds):
    """Burns as much CPU time as attaching takes by itself (without that of the kernel's workers)."""
    subprocess.run([sys.executable, "-c",
                    f"import time\nwhile time.process_time() < {seconds}: pass"], check=True)


def children_ran():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class Beside:
    """The heart's pauses beside each kind of neighbour, in turns, each as long as the last attaching took."""

    def __init__(self, context, heart, other):
        self.context, self.heart, self.other = context, heart, other
        self.gaps, self.ran = defaultdict(list), 0.3
        self.took = 0.5

    def attach(self, pid):
        before, begin = children_ran(), time.monotonic()
        self.context.wallprof("record", "-q", "--defer-symbols", "-o", self.context.path("c"), "-p", pid, "-d", "30ms")
        self.ran, self.took = children_ran() - before, time.monotonic() - begin

    def rest(self, begin):
        time.sleep(max(begin + self.took - time.monotonic(), 0))  # each neighbour has as much time

    def turn(self, times):
        neighbours = {"attached to": lambda: self.attach(self.heart.process.pid),
                      "to another": lambda: self.attach(self.other.pid), "computing": lambda: compute(self.ran)}
        if is_long():
            neighbours["alone"] = lambda: None  # reported only
        for kind, act in neighbours.items():
            self.heart.take()
            for _ in range(times):
                begin = time.monotonic()
                act()
                self.rest(begin)
            self.gaps[kind] += self.heart.take()


def programs():
    listing = subprocess.run(["bpftool", "prog", "show"], capture_output=True, text=True)
    return {line.split(":")[0] for line in listing.stdout.splitlines() if line[:1].isdigit()}


@pytest.mark.host_only("a guest's clock is not its own")
def test_undisturbed(context):
    """Attached to again and again."""
    needs_root()
    needs_command("bpftool")
    heart, other, left = Heart(context), context.start(["sleep", "infinity"]), programs()
    try:
        wait_until(lambda: heart.gaps, "it beats")
        before, beside = heart.belongings(), Beside(context, heart, other)
        turns, times = (10, 20) if is_long() else (2, 1)
        for _ in range(turns):
            beside.turn(times)
        after = heart.belongings()
    finally:
        heart.end()
    gaps = {kind: sorted(found) for kind, found in beside.gaps.items()}
    check(all(len(found) > 300 for found in gaps.values()), str({kind: len(found) for kind, found in gaps.items()}))
    reported = [f"{kind} {', '.join(f'{quantile(found, q) * 1000:.3f}' for q in (0.5, 0.9, 0.95, 0.99, 1))} ms, "
                f"{late(found) * 100:.2f} % late" for kind, found in gaps.items()]
    print(f"# pauses of a heart (median, 90, 95, 99 %, longest), {turns * times} times each: "
          + "; ".join(reported), flush=True)
    check_undisturbed(gaps["computing"], gaps["attached to"])
    check_undisturbed(gaps["to another"], gaps["attached to"])
    expect_failure(check_undisturbed, gaps["computing"], [gap + 0.005 for gap in gaps["attached to"]])
    if is_long():
        check_late(gaps["computing"], gaps["attached to"])
        some = len(gaps["attached to"]) // 30
        expect_failure(check_late, gaps["computing"],
                       [gap + 0.003 for gap in gaps["attached to"][:some]] + gaps["attached to"][some:])
    check_states(heart.seen)
    expect_failure(check_states, heart.seen | {("t", "1")})
    check(after[:2] == before[:2] and after[2] - before[2] <= 256, f"descriptors, mappings, KiB: {before}, then {after}")
    wait_until(lambda: not programs() - left, "the programs are gone")
