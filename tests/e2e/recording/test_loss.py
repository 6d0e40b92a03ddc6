# SPDX-License-Identifier: GPL-2.0-or-later
"""Lost records are counted exactly and shown, and nothing is invented for them."""
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from capture_reader import INODE, INODE_TEXT, SAMPLE, cpus_since, records
from harness import (GIVE_UP_S, IN_GUEST, MS, SLOWNESS, SWITCH_NS, WALLPROF, Recording, Skip, by_state, capture_of,
                     check, check_unexplained, expect_failure, fewer, needs_root, noise, wait_until)


def record_with_loss(context):
    """A recorder that stands still for a while, with rings that hold little."""
    output, truth = context.path("p.json.gz"), context.path("truth.json")
    process = context.start([WALLPROF, "-q", "--keep-capture", "--ring-size", "64K", "-o", output,
                             "--", *context.workload("pingpong", truth=truth, rounds=fewer(150000))],
                            cwd=context.folder)
    wait_until(lambda: context.path("p.capture").exists(), "the capture is there")
    time.sleep(0.05 + context.random.random() * 0.1)  # the loss begins at any moment of the run
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.2 * SLOWNESS)  # the rings fill
    process.send_signal(signal.SIGCONT)
    check(process.wait(timeout=GIVE_UP_S) == 0, "wallprof failed")
    return Recording(context, output, truth)


def check_totals(report):
    lost = {}
    for loss in report["losses"]:
        lost[loss["kind"]] = lost.get(loss["kind"], 0) + loss["count"]
    for kind, total in report["totals"].items():
        check(total["sent"] - total["received"] == total["lost"] == lost.get(kind, 0),
              f"{kind}: {total['sent']} sent, {total['received']} received, "
              f"{total['lost']} lost, {lost.get(kind, 0)} in spans")
    check(report["totals"]["switch"]["lost"] > 0, "nothing was lost, so nothing was tested")


def check_markers(recording):
    """Every loss is a marker of its own: same span, same kind, same number."""
    reported = [(m["start"], m["end"], m["data"]) for t in recording.profile.threads
                for m in t.markers() if m["name"] == "Events lost" and t.process == "System"]
    for loss in recording.report["losses"]:
        begin, end = loss["from_ns"], loss["to_ns"]
        check(any(abs(b - begin) <= 2 and abs(e - end) <= 2
                  and str(loss["count"]) in map(str, data.values())
                  for b, e, data in reported),
              f"no marker has the loss of {loss['count']} {loss['kind']} records "
              f"from {begin / MS} to {end / MS} ms")


def check_nothing_invented(recording):
    for truth in recording.truth.threads:
        ledger = recording.ledger(truth["tid"])["states"]
        check(ledger["unknown"] > 0, f"{truth['name']}: lost records, and all is known")
        switches = truth["nvcsw"] + truth["nivcsw"]
        slack = MS + switches * SWITCH_NS + noise(truth["cpu_ns"])
        check(ledger["running"] <= truth["cpu_ns"] + slack,
              f"{truth['name']}: {ledger['running'] / MS} ms running, "
              f"it had {truth['cpu_ns'] / MS} ms")
        check(ledger["running"] + ledger["unknown"] >= truth["cpu_ns"] - slack,
              f"{truth['name']}: running and unknown together are less than it ran")
        painted = recording.profile.thread(truth["tid"]).painted_by(by_state)
        check(abs(painted.get("unknown", 0) - ledger["unknown"]) <= max(0.005 * ledger["unknown"],
                                                                      MS),
              f"{truth['name']}: unknown in track and ledger differ")
    check_unexplained(recording.report)


def test_forced_loss(context):
    recording = record_with_loss(context)
    check_totals(recording.report)
    check_markers(recording)
    check_nothing_invented(recording)
    recording.report["totals"]["switch"]["received"] += 1
    expect_failure(check_totals, recording.report)
    for loss in recording.report["losses"]:
        loss["to_ns"] += 5 * MS
    expect_failure(check_markers, recording)
    for thread in recording.report["threads"]:
        thread["states"]["unknown"] = 0
    expect_failure(check_nothing_invented, recording)


def test_no_loss_by_default(context):
    report = context.record("pingpong", undisturbed=False, rounds=fewer(50000)).report
    for kind, total in report["totals"].items():
        check(total["sent"] == total["received"] and total["lost"] == 0, f"{kind}: {total}")
    check(report["losses"] == [], "losses without a loss")
    if report["contradictions"] == 0:
        for thread in report["threads"]:
            check(thread["states"].get("unknown", 0) == 0, f"{thread['name']} has unknown time")


CPU = Path("/sys/devices/system/cpu/cpu1/online")


def check_reported_cpus(report, times):
    matches = [re.match(r"CPUs: (\d+) times a CPU went offline", note) for note in report["notes"]]
    reported = [int(m[1]) for m in matches if m]
    check(reported == ([times] if times else []),
          f"{reported} changes are reported, should be {times}: {report['notes']}")


def check_sampled(capture, since_ns):
    check(1 in cpus_since(capture, SAMPLE, since_ns), "CPU 1 has no samples after it came online")


def test_cpu_comes_back(context):
    """It is sampled again; that samples and mappings are missing until then is said."""
    if not IN_GUEST or not os.access(CPU, os.W_OK):
        raise Skip("a CPU is taken away from guests alone")
    output = context.path("p.json.gz")
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--",
                              *context.workload("burn", threads=2, cpus=2, ms=8000)])
    wait_until(lambda: capture_of(output).exists(), "the recording has begun")
    try:
        for online in ("0", "1"):
            time.sleep(3)  # the recorder looks at the CPUs once in a while
            CPU.write_text(online)
        online_ns = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    finally:
        CPU.write_text("1")
    check(recorder.wait(timeout=context.timeout_s) == 0, "the recording failed")
    report = Recording(context, output).report
    check_reported_cpus(report, 2)
    check(any(re.match(r"CPUs: 1 times events of a CPU that came online were opened again; ", note)
              for note in report["notes"]), f"it is not said: {report['notes']}")
    check_sampled(capture_of(output), online_ns)
    expect_failure(check_sampled, capture_of(output), time.clock_gettime_ns(time.CLOCK_MONOTONIC))
    expect_failure(check_reported_cpus, report, 0)


# Makes two pages of a file dirty, on one CPU; before the first, it fills the ring of names and stacks.
TWO_PAGES = """
import os, sys, time
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
file = open(sys.argv[1], "wb", buffering=0)
print("open", flush=True)
sys.stdin.readline()
def burn(depth, end):
    while time.monotonic() < end:
        if depth < 40:
            burn(depth + 1, min(end, time.monotonic() + 0.01))
burn(0, time.monotonic() + float(sys.argv[2]))
file.write(b"x" * 5000)
print("first", flush=True)
if sys.stdin.readline() == "go on\\n":
    file.write(b"x" * 5000)
    print("second", flush=True)
    sys.stdin.readline()
"""


def names_of(context, *answers):
    """The last names of the files in the capture of that program, which gets these answers after the first page."""
    capture, file = context.path("names.capture"), context.path("ours")
    process = subprocess.Popen([WALLPROF, "record", "-q", "--ring-size", "4K", "-F", "5000", "-o", capture, "--", sys.executable, "-c",
                                TWO_PAGES, file, str(0.3 * SLOWNESS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def expect(line):
        check(process.stdout.readline() == line, f"the program is not at {line!r}")

    def answer(line):
        process.stdin.write(line)
        process.stdin.flush()

    expect("open\n")
    process.send_signal(signal.SIGSTOP)
    answer("\n")
    expect("first\n")
    process.send_signal(signal.SIGCONT)
    time.sleep(0.3 * SLOWNESS)  # the rings are emptied
    for line in answers:
        answer(line)
        expect("second\n")
    os.sync()
    process.communicate(timeout=GIVE_UP_S)
    check(process.returncode == 0, "no recording")
    return {bytes(record[INODE_TEXT:]).split(b"\0")[0].decode() for *_, record in records(capture, {INODE})}


def test_lost_name(context):
    """The name of a written file found no room: it comes with the next page that is written."""
    needs_root()

    def check_name(*answers):
        names = names_of(context, *answers)
        check("ours" in names, f"no name of the file: {names}")

    check_name("go on\n")
    expect_failure(check_name)
