# SPDX-License-Identifier: GPL-2.0-or-later
"""The flight recorder: only the last part is kept, and that is as if it alone had been recorded."""
import errno
import os
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from harness import (MS, SLOWNESS, WALLPROF, Recording, Skip, check, check_close, check_timed, expect_failure,
                     needs_root, noise, noticeable, read_report, unless_stolen, wait_until)

KEEP_MS = 1000


def check_kept(recording, keep_ns, shift_ns=0):
    """The last part of what the workload says of its threads."""
    check_timed("the window", recording.profile.window_ns, keep_ns, 0.01, 10 * MS)
    for truth in recording.truth.named("sleeper"):
        waits = [(max(recording.at(begin) + shift_ns, 0), recording.at(end) + shift_ns)
                 for kind, begin, end in truth["waits"] if kind == "sleep"]
        wanted = sum(end - begin for begin, end in waits if end > begin)
        ledger = recording.ledger(truth["tid"])
        # For the workload a sleep ends when its thread has a CPU again.
        ready = ledger["states"]["runnable"]
        check_timed(f"{truth['name']}, ready", ready, 0, 0, wanted / 5)
        check_timed(f"{truth['name']}, asleep", ledger["reasons"].get("[sleep]", 0), wanted - ready / 2, 0.02,
                    2 * MS + ready / 2)
        check(ledger["states"]["unknown"] == 0, f"{truth['name']}: {ledger['states']}")
        check(ledger["process"] == "sleeps", f"it is {ledger['process']}'s")


def check_main(recording):
    """It has waited since long before the window, for what is known from then."""
    ledger = recording.ledger(recording.truth.pid)
    waited = ledger["reasons"].get("[condition variable wait]", 0)
    check_close("the main thread's wait", waited, ledger["lifetime_ns"], 0.1, 20 * MS)
    main = recording.profile.thread(recording.truth.pid)
    names = main.frames_of(len(main.times) // 3)
    check("truth_finish" in names and "main" in names, f"it waits in {names}")


def test_command(context):
    recording = unless_stolen(lambda: context.record("sleeps", "--flight-recorder", f"{KEEP_MS}ms", threads=3, rounds=150,
                                                     ms=20, step_us=300),
                              lambda recording, _allowed_ns: check_kept(recording, KEEP_MS * MS))
    whole = max(t["end_ns"] for t in recording.truth.threads) - min(t["begin_ns"] for t in recording.truth.threads)
    check(whole > 2.5 * KEEP_MS * MS, "the workload was over too soon to be worth it")
    expect_failure(check_kept, recording, 2 * KEEP_MS * MS + noise(KEEP_MS * MS))
    expect_failure(check_kept, recording, KEEP_MS * MS, shift_ns=400 * MS + noise(KEEP_MS * MS))
    check_main(recording)
    check([p.name for p in context.folder.iterdir()].count("p.capture") == 1, "no capture")
    check(not [p for p in context.folder.iterdir() if p.name.startswith(".wallprof")], "a segment is left behind")


def test_short(context):
    """A recording that is shorter than the limit is kept whole."""
    recording = context.record("sleeps", "--flight-recorder", "1h", threads=2, rounds=4, ms=20)
    check_kept(recording, recording.profile.window_ns)
    check(recording.profile.window_ns > 80 * MS, f"a window of {recording.profile.window_ns}")


def test_signal(context):
    """SIGUSR1 ends it, and the command goes on."""
    output, reported = context.path("p.json.gz"), context.path("announced")
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "--flight-recorder", "300ms", "-o", output, "--", "sh",
                              "-c", f"for i in $(seq {30 * SLOWNESS}); do sleep 0.1; done; echo over >{reported}"],
                             stderr=subprocess.PIPE)
    wait_until(lambda: context.path("p.capture").exists(), "the recording begins")
    time.sleep(1 * SLOWNESS)  # longer than what is kept
    recorder.send_signal(signal.SIGUSR1)
    wait_until(output.exists, "the profile is there")
    check(not reported.exists(), "it waited for the command's end")
    recording = Recording(context, output)
    check_timed("the window", recording.profile.window_ns, 300 * MS, 0.02, 30 * MS)
    names = [p["name"] for p in recording.report["processes"]]
    check("sh" in names and 1 <= names.count("sleep") <= 5, f"{names}")
    check(recorder.wait(timeout=context.timeout_s) == 0, recorder.stderr.read())
    check(reported.exists(), "the command was ended, too")


def check_dead(recording, names):
    """Threads of these processes, which have ended, have no state after their end."""
    for thread in recording.report["threads"]:
        states = thread["states"]
        check(thread["process"] not in names or sum(states.values()) == states["unknown"],
              f"{thread['process']} is over, and its {thread['name']} was {states}")


def test_lost_exits(context):
    """Threads that ended while the recorder was stopped are not reported as alive."""
    output = context.path("p.json.gz")
    pingpong = " ".join(context.workload("pingpong", rounds=1000000))
    command = f"{pingpong} & sleep {SLOWNESS}; kill $!; sleep {4 * SLOWNESS}"
    recorder = context.start([WALLPROF, "-q", "--keep-capture", "--ring-size", "64K", "--flight-recorder",
                              f"{KEEP_MS}ms", "-o", output, "--", "sh", "-c", command], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: context.path("p.capture").exists(), "the recording begins")
    time.sleep(0.5 * SLOWNESS)  # it records the programs, which run for twice as long
    recorder.send_signal(signal.SIGSTOP)
    time.sleep(1 * SLOWNESS)  # they end meanwhile
    recorder.send_signal(signal.SIGCONT)
    check(recorder.wait(timeout=context.timeout_s) == 0, f"status {recorder.returncode}: {recorder.stderr.read()}")
    recording = Recording(context, output)
    check(recording.report["totals"]["exit"]["lost"] > 0, "no exit was lost, so nothing was tested")
    check_dead(recording, ("pingpong", "ask"))
    recording.report["threads"].append({"process": "ask", "name": "ask", "states": {"running": 1, "unknown": 1}})
    expect_failure(check_dead, recording, ("pingpong", "ask"))


def noted_samples(context, name, *arguments):
    """Whether samples are reported as missing for a program that begins to run again, after more than a
    second, while the recorder stands still; it then goes on for longer than what is kept."""
    output = context.path(name)
    runs = " ".join(context.workload("sleeps", threads=1, rounds=300 * SLOWNESS, ms=10))
    command = f"sleep {2 * SLOWNESS}; exec {runs}"
    recorder = context.start([WALLPROF, "record", "-q", *arguments, "-o", output, "--", "sh", "-c", command])
    wait_until(output.exists, "the recording begins")
    time.sleep(1.6 * SLOWNESS)  # the program is still at rest
    recorder.send_signal(signal.SIGSTOP)
    time.sleep(0.8 * SLOWNESS)  # it begins to run meanwhile
    recorder.send_signal(signal.SIGCONT)
    check(recorder.wait(timeout=context.timeout_s) == 0, "it failed")
    notes = read_report(context, output)["notes"]
    output.unlink()
    return any(note.startswith("CPU samples:") and int(note.split()[2]) >= 10 for note in notes)


def test_samples_missed(context):
    """Only samples that are missing in the kept part are reported."""
    with ThreadPoolExecutor(2) as pool:
        whole = pool.submit(noted_samples, context, "whole.capture")
        kept = pool.submit(noted_samples, context, "kept.capture", "--flight-recorder", f"{KEEP_MS}ms")
        check(whole.result(), "none was missed, so nothing is tested")
        check(not kept.result(), "they were missed before")


def fill(path):
    """All the room that there is on a disk."""
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError as error:
            check(error.errno == errno.ENOSPC, f"{error}")


def record_on_full_disk(context, disk):
    """Records many threads on a disk of 16 MB that others fill."""
    output = disk / "f.capture"
    target = context.start(context.workload("sleeps", threads=20, rounds=1000000, ms=1, step_us=10))
    recorder = context.start([WALLPROF, "record", "--flight-recorder", f"{KEEP_MS}ms", "-o", output, "-p",
                              str(target.pid)],
                             stderr=subprocess.PIPE, text=True)
    wait_until(output.exists, "the recording begins")
    time.sleep(2.5 * SLOWNESS)  # longer than what is kept
    fill(disk / "filler")
    time.sleep(1 * SLOWNESS)  # the recorder writes to the full disk
    recorder.send_signal(signal.SIGINT)
    reported = recorder.communicate(timeout=context.timeout_s)[1]
    check(recorder.returncode == 0, f"status {recorder.returncode}: {reported}")
    return read_report(context, output)


def check_window(report, ns):
    # A recorder that gets no CPU for seconds has more to write at once than the disk has room for.
    check_timed("the window", report["window_ns"], ns, 0.01, 10 * MS)
    check(len(report["threads"]) == 21, f"{len(report['threads'])} threads; reported: {report['notes']}")


def test_full_disk(context):
    """It gives up its oldest part, of which it has more than is wanted, and ends in order."""
    needs_root()
    disk = context.path("disk")
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=16m", "small", str(disk)],
                          capture_output=True, text=True)
    if done.returncode:
        raise Skip(f"no tmpfs: {done.stderr.strip()}")
    try:
        report = record_on_full_disk(context, disk)
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
    check_window(report, KEEP_MS * MS)
    expect_failure(check_window, report, KEEP_MS * MS + noticeable(100 * MS, KEEP_MS * MS))


def resident(pid):
    return int(next(line for line in Path(f"/proc/{pid}/status").read_text().split("\n")
                    if line.startswith("VmRSS")).split()[1]) << 10


def test_bounded(context):
    """However long it goes on, neither memory nor disk grow by it."""
    target = context.start(context.workload("sleeps", threads=20, rounds=1000000, ms=1, step_us=10))
    recorder = context.start([WALLPROF, "-q", "--flight-recorder", "400ms", "-o", context.path("p.json"), "-p",
                              str(target.pid)])
    wait_until(lambda: context.path("p.capture").exists(), "the recording begins")
    time.sleep(1.5 * SLOWNESS)  # some times as long as what is kept
    segments = Path(f"/proc/{recorder.pid}/fd")
    before = resident(recorder.pid), count_segments(segments)
    time.sleep(2 * SLOWNESS)  # what is kept is replaced some times
    after = resident(recorder.pid), count_segments(segments)
    check(after[0] - before[0] < 8 << 20 and after[1] <= before[1] + 3 <= 16, f"{before}, then {after}")
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=context.timeout_s) == 0, "it failed")


def count_segments(folder):
    return sum("(deleted)" in os.readlink(fd) for fd in folder.iterdir() if fd.is_symlink())
