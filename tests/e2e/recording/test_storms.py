# SPDX-License-Identifier: GPL-2.0-or-later
"""More processes, threads and execs than any program has use for: bounded memory, exact loss, a file that opens."""
import os
import resource
import subprocess
import time
from pathlib import Path

import pytest

from capture_reader import records
from harness import (WALLPROF, Profile, Viewer, check, check_hidden, expect_failure, is_long, most_broken,
                     read_report)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("a guest's memory is small")]
MEMORY = 200 << 20
FILE = 300 << 20
DESCRIPTORS = 400
FILE_RECORD, UNREADABLE = 36, 8


def most_resident(pid):
    """So far, bytes; 0: it is over."""
    lines = Path(f"/proc/{pid}/status").read_text().split("\n")
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))


def open_descriptors(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:  # it is over
        return 0


def record(context, *command, descriptors=None, seen=None):
    """Returns the command's output, the report, and how much memory recording took. `descriptors`: as many as the
    recorder may have; `seen` gets how many it had."""
    capture = context.path("c.capture")

    def limit():
        if descriptors:
            resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
    recorder = subprocess.Popen([WALLPROF, "record", "-q", "--defer-symbols", "-o", capture, "--",
                                 *map(str, command)], stdout=subprocess.PIPE, text=True, cwd=context.folder,
                                preexec_fn=limit)
    taken = 0
    while recorder.poll() is None:  # wait4() would also count the peak of the process that forked it
        taken = max(taken, most_resident(recorder.pid))
        if seen is not None:
            seen.append(open_descriptors(recorder.pid))
        time.sleep(0.005)  # the last look misses little, and looking takes little CPU time
    printed = recorder.stdout.read()
    check(recorder.returncode == 0 and taken > 0, f"status {recorder.returncode}: {printed}")
    report = read_report(context, capture)
    if report["contradictions"] > most_broken(report):
        check_hidden(report["contradictions"])
    return int(printed), report, taken


def check_all_there(count, seen, lost):
    """A thread that is not in the report is counted as lost."""
    check(count - lost <= seen <= count, f"{seen} of {count}, and {lost} lost")


def check_memory(taken):
    check(taken <= MEMORY, f"recording took {taken >> 20} MB")


def check_opens(context):
    output = context.path("c.json")
    context.wallprof("export", "-q", "-o", output, context.path("c.capture"))
    check(output.stat().st_size < FILE, f"{output.stat().st_size >> 20} MB of JSON")
    if Viewer.is_installed():
        with Viewer() as viewer:
            viewer.load(output)
    return Profile.load(output)


def many(count, long_count):
    return long_count if is_long() else count


def lost_of(report, *kinds):
    return sum(report["totals"][kind]["lost"] for kind in kinds)


def test_processes(context):
    count, report, memory = record(context, context.workload("storm")[0], "processes", many(3000, 10000))
    named = [p for p in report["processes"] if p["name"] == "storm"]
    lost = lost_of(report, "task")
    check_all_there(count, len(named), lost)
    expect_failure(check_all_there, count + 1 + lost, len(named), lost)
    codes = {p["exit_status"] for p in named}
    check(len(codes) >= 5 or lost, f"how they ended: {codes}")
    check_memory(memory)
    check_opens(context)


def test_threads(context):
    count, report, memory = record(context, context.workload("storm")[0], "threads", many(4000, 20000))
    lost = lost_of(report, "task")
    check_all_there(count, len(report["threads"]), lost)
    check(all(sum(t["states"].values()) == t["lifetime_ns"] for t in report["threads"]),
          "the states do not add up to the lifetime")
    check_memory(memory)
    profile = check_opens(context)
    check(len(profile.threads) >= count - lost, f"{len(profile.threads)} threads in the profile")


def test_execs(context):
    count, report, memory = record(context, context.workload("storm")[0], "execs", many(300, 2000))
    check(len(report["processes"]) == 1 and len(report["threads"]) == 1, f"{len(report['processes'])} processes")
    check(report["totals"]["exec"]["received"] + lost_of(report, "exec") == count + 1,
          f"{report['totals']['exec']} for {count} execs and the first")
    check_memory(memory)
    check_opens(context)


def check_files(context, report, count, seen):
    """Each file could be read, though not so many can be open."""
    readable = [record for _, flags, _, record in records(context.path("c.capture"), {FILE_RECORD})
                if b"/storm-" in bytes(record) and not flags & UNREADABLE]
    check(max(seen) < DESCRIPTORS, f"{max(seen)} descriptors")
    check(max(seen) > DESCRIPTORS - 300, f"the limit was not reached: {max(seen)}")
    check(not any("mapped files" in note or "known files" in note for note in report["notes"]), f"{report['notes']}")
    check(len(readable) == count, f"{len(readable)} of {count} files could be read")


def test_files(context):
    """More files are mapped than the recorder may have open."""
    seen = []
    count, report, memory = record(context, context.workload("storm")[0], "files", many(400, 20000),
                                   descriptors=DESCRIPTORS, seen=seen)
    check_files(context, report, count - 1, seen)
    expect_failure(check_files, context, report, 2 * count, seen)
    expect_failure(check_files, context, report, count - 1, [DESCRIPTORS])
    check_memory(memory)


def test_altered(context):
    expect_failure(check_memory, MEMORY + 1)
    expect_failure(check_all_there, 10, 8, 1)
