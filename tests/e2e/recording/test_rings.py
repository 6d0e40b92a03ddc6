# SPDX-License-Identifier: GPL-2.0-or-later
"""Each group of CPUs has ring buffers of its own: nothing is lost, and the order is kept over all of them."""
import collections
import os
import re
import signal
import struct
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import cgroups
from capture_reader import META, RECORD, SWITCH, cpus_since, records
from harness import (GIVE_UP_S, IN_GUEST, MS, WALLPROF, Recording, Skip, capture_of, check, check_hidden, expect_failure,
                     fewer, most_broken, needs_root, wait_until)

pytestmark = pytest.mark.untimed
TASK, EXEC, EXIT, WATERMARK = 3, 4, 5, 35
RING_OF = {"stack copy": "copy", **dict.fromkeys(("switch", "waking", "task", "exec", "exit", "stats", "snapshot"), "sched")}
SLACK_NS = 1_000_000_000  # so much older than a watermark may a later record be, at most (capture_sort.c)
CPUS = len(os.sched_getaffinity(0))
CHILDREN = fewer(40)  # of each CPU
CPU = Path("/sys/devices/system/cpu/cpu1/online")
RINGS = re.compile(r"ring buffers of CPUs? (\d+)(?: to (\d+))?: sched (\d+), bulk (\d+), copy (\d+) of (\d+) bytes used at most")


def record(context, *options):
    """Returns the recording, and of each group of CPUs: the CPUs, and the bytes used of the sched ring."""
    truth, output = context.path("truth.json"), context.path("p.json.gz")
    said = context.wallprof("-v", "--keep-capture", *options, "-o", output, "--",
                            *context.workload("spread", truth=truth, rounds=fewer(1000), children=CHILDREN))
    groups = [(range(int(first), int(last or first) + 1), int(used))
              for first, last, used, *_ in RINGS.findall(said.stderr)]
    recording = Recording(context, output, truth)
    if recording.report["contradictions"] > most_broken(recording.report):
        check_hidden(recording.report["contradictions"])
    return recording, groups


def check_groups(groups, group_cpus):
    """Each CPU has rings, and what was switched there went through them."""
    cpus = [cpu for group, _ in groups for cpu in group]
    check(all(len(group) == group_cpus for group, _ in groups), f"{groups}: {group_cpus} CPUs should share rings")
    check(cpus == list(range(len(cpus))) and 0 <= len(cpus) - os.cpu_count() < group_cpus,
          f"{groups} for {os.cpu_count()} CPUs")
    check(all(used > 0 for _, used in groups), f"{groups}: nothing was sent through some")


def check_nothing_lost(report):
    """But for page faults that the kernel kept from wallprof, as their hook was running: a program may be preempted."""
    skipped = sum(loss["count"] for loss in report["losses"]
                  if loss["kind"] == "page fault" and loss["cause"] == "hook already running on that CPU")
    for kind, total in report["totals"].items():
        lost = skipped if kind == "page fault" else 0
        check(total["sent"] - total["received"] == total["lost"] == lost, f"{kind}: {total}")


def check_sums(report, truth):
    """Nothing is lost, and the kernel counted the same switches and processes."""
    check_nothing_lost(report)
    ledgers = {thread["tid"]: thread for thread in report["threads"]}
    for thread in truth.threads:
        if thread["tid"] == truth.pid:
            continue
        counted, recorded = thread["nvcsw"] + thread["nivcsw"], ledgers[thread["tid"]]["switch_outs"]
        # It is woken once more, to be killed.
        check(counted <= recorded <= counted + 6, f"{thread['name']}: {recorded} switch-outs, /proc says {counted}")
    for thread in report["threads"]:
        total = thread["kernel"]["nvcsw"] + thread["kernel"]["nivcsw"]
        check(0 <= total - thread["switch_outs"] <= 1,
              f"{thread['name']}: {thread['switch_outs']} switch-outs, the kernel counted {total}")
    ended = collections.Counter(process["exit_status"] for process in report["processes"]
                                if process["pid"] != truth.pid)
    wanted = collections.Counter(cpu & 0x7f for cpu in os.sched_getaffinity(0) for _ in range(CHILDREN))
    check(ended == wanted, f"processes ended with {ended}, should be {wanted}")


def events_of(capture):
    """(kind, ns, thread) of tasks, execs, exits and watermarks, in the order of the file."""
    return [(kind, ns, struct.unpack_from("<I", raw, 16)[0] if kind != WATERMARK else 0)
            for kind, _, ns, raw in records(capture, {TASK, EXEC, EXIT, WATERMARK})]


def check_order(events):
    """As the recorder saw them: births before ends, and nothing after a watermark that is much older."""
    born, watermark_ns = set(), 0
    for kind, ns, tid in events:
        check(ns >= watermark_ns - SLACK_NS, f"{(watermark_ns - ns) / MS} ms older than a watermark before it")
        if kind == TASK:
            born.add(tid)
        elif kind == EXIT:
            check(tid in born, f"thread {tid} ended before it was born")
        elif kind == WATERMARK:
            check(ns >= watermark_ns, "a watermark goes back")
            watermark_ns = ns


def test_groups(context):
    for group_cpus in sorted({1, CPUS, context.random.randint(1, CPUS)}):
        recording, groups = record(context, "--ring-cpus", group_cpus)
        check_groups(groups, group_cpus)
        expect_failure(check_groups, groups[1:], group_cpus)
        expect_failure(check_groups, [(group, 0) for group, _ in groups], group_cpus)
        check_sums(recording.report, recording.truth)
        events = events_of(recording.capture)
        check_order(events)
    expect_failure(check_order, [event for event in events if event[0] != TASK])
    expect_failure(check_order, [(WATERMARK, events[-1][1] + 2 * SLACK_NS, 0), *events])
    report = recording.report
    report["processes"].pop()
    expect_failure(check_sums, report, recording.truth)
    report["threads"][-1]["switch_outs"] += 10
    expect_failure(check_sums, report, recording.truth)


def check_switches(report):
    """The kernel counted the same switches, and nothing is lost."""
    check_nothing_lost(report)
    for thread in report["threads"]:
        total = thread["kernel"]["nvcsw"] + thread["kernel"]["nivcsw"]
        check(0 <= total - thread["switch_outs"] <= 1,
              f"{thread['name']}: {thread['switch_outs']} switch-outs, the kernel counted {total}")


def test_hotplug(context):
    """A CPU with rings of its own goes offline and comes back, twice: the rings stay, and so does the order."""
    if not IN_GUEST or not os.access(CPU, os.W_OK):
        raise Skip("a CPU is taken away from guests alone")
    output, stop = context.path("p.json.gz"), context.path("stop")
    # Two threads that always run, so that one of them is moved to the CPU that comes back.
    busy = f"while [ ! -e {stop} ]; do :; done &"
    spread = " ".join(map(str, context.workload("spread", truth=context.path("truth.json"), rounds=fewer(5000), children=0)))
    process = context.start([WALLPROF, "-q", "--keep-capture", "--ring-cpus", "1", "-o", output, "--", "/bin/sh", "-c",
                             f"{busy} {busy} {spread}; wait"])
    wait_until(lambda: capture_of(output).exists(), "the capture is there")
    try:
        for online in ("0", "1") * 2:
            time.sleep(0.5)  # so that switches are recorded before and after it
            CPU.write_text(online)
        online_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        time.sleep(1.5)  # so that threads are moved there
    finally:
        CPU.write_text("1")
        stop.touch()
    check(process.wait(timeout=GIVE_UP_S) == 0, "wallprof failed")
    report = Recording(context, output).report
    check_switches(report)
    check_order(events_of(capture_of(output)))
    check(cpus_since(capture_of(output), SWITCH, online_ns) == {0, 1}, "not both CPUs are recorded after it came online")
    report["threads"][-1]["switch_outs"] += 10
    expect_failure(check_switches, report)


def lost_by_ring(report, group_cpus):
    """{(kind of ring, its first CPU): how many} of what found no room, by the spans of the report."""
    lost = collections.Counter()
    for loss in report["losses"]:
        if loss["cause"] == "ring full":
            lost[RING_OF.get(loss["kind"], "bulk"), loss["cpu"] // group_cpus * group_cpus] += loss["count"]
    return lost


def check_note(report, group_cpus):
    """The note has the same losses, ring by ring."""
    noted = {(kind, int(first)): int(count) for note in report["notes"] if note.startswith("ring buffers: ")
             for count, kind, first in re.findall(r"(\d+) in (\w+) of CPUs? (\d+)", note)}
    lost = lost_by_ring(report, group_cpus)
    check(lost, "nothing was lost, so nothing was tested")
    check(noted == lost, f"noted: {noted}, lost: {dict(lost)}")


def test_losses(context):
    """Small rings of a recorder that stands still: what each of them has lost is said."""
    output, truth = context.path("p.json.gz"), context.path("truth.json")
    process = context.start([WALLPROF, "-q", "--keep-capture", "--ring-size", "16K", "--ring-cpus", "1", "-o", output, "--",
                             *context.workload("spread", truth=truth, rounds=fewer(5000))])
    wait_until(lambda: capture_of(output).exists(), "the capture is there")
    process.send_signal(signal.SIGSTOP)
    wait_until(lambda: truth.exists() and truth.read_text().endswith("]}\n"), "all has been done")
    process.send_signal(signal.SIGCONT)
    check(process.wait(timeout=GIVE_UP_S) == 0, "wallprof failed")
    report = Recording(context, output).report
    check_note(report, 1)
    next(loss for loss in report["losses"] if loss["cause"] == "ring full")["count"] += 1
    expect_failure(check_note, report, 1)


def bytes_of(text):
    return int(text[:-1]) << {"K": 10, "M": 20}[text[-1]]


def check_sum(meta, said, limit, wanted):
    """All rings have at most a quarter of the limit, and not a half of that; the size that was given is not kept."""
    rings, size = 3 * meta["ring_groups"], meta["ring_size"]
    check(limit // 8 < rings * size <= limit // 4, f"{rings} rings of {size} bytes, of {limit}")
    told = re.search(r"--ring-size (\w+) is reduced to (\w+): (\d+) ring buffers may take a quarter of the memory", said)
    check(told and (bytes_of(told[1]), bytes_of(told[2]), int(told[3])) == (wanted, size, rings), f"{said!r}")


def test_sum_is_bounded(context):
    """A size of each ring that all of them cannot have: a cgroup stands for a machine with little memory."""
    needs_root()
    limit, output = 256 << 20, context.path("p.json.gz")
    with ExitStack() as left:
        root, file = cgroups.old("memory"), "memory.limit_in_bytes"
        if not root:
            root, file = cgroups.unified(context, left, "memory"), "memory.max"
        group = root / f"wallprof-rings-{os.getpid()}"
        group.mkdir()
        left.callback(group.rmdir)
        (group / file).write_text(str(limit))
        enter = f'echo $$ >{group}/cgroup.procs && exec "$@"'
        said = context.wallprof("--keep-capture", "--ring-size", "1G", "-o", output, "--", "true",
                                before=["sh", "-c", enter, "sh"]).stderr
        doctor = context.wallprof("doctor", "-v", before=["sh", "-c", enter, "sh"]).stdout
    fields = dict(bytes(record[RECORD.size:]).split(b"\0")[0].decode().split("=", 1)
                  for *_, record in records(capture_of(output), {META}))
    meta = {key: int(fields[key]) for key in ("ring_groups", "ring_size")}
    check_sum(meta, said, limit, 1 << 30)
    expect_failure(check_sum, meta, "", limit, 1 << 30)
    expect_failure(check_sum, meta, said, 2 * limit, 1 << 30)
    line = re.search(r"^ring buffers: (\d+) of (\w+) each, (\w+) together \(at most (\w+), a quarter", doctor, re.M)
    check(line, doctor)
    check(int(line[1]) * bytes_of(line[2]) == bytes_of(line[3]) <= bytes_of(line[4]) == limit // 4, line[0])
