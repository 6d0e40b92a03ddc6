# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings that begin later than what they are of."""
import re
import signal
import subprocess
import time

from harness import (MS, PATIENCE, WALLPROF, Recording, check, check_close, check_timed, expect_failure,
                     noise, noticeable, wait_until)

SETUP_NS = 2_000 * MS * PATIENCE  # finding the threads, and tables for what runs already


def check_window(recording, delay_ns, rest_ns):
    """The command ran for as long before the window as asked, and what it did then is not told."""
    threads = recording.truth.named("burner")
    begins = [-recording.at(t["begin_ns"]) for t in threads]
    check(begins, "no thread was told of")
    check(all(delay_ns - 20 * MS - noise(delay_ns) <= ns <= delay_ns + SETUP_NS for ns in begins),
          f"the threads began {[ns / MS for ns in begins]} ms before the window")
    # Each waits for the last one to end.
    last = max(recording.at(t["end_ns"]) for t in threads)
    for truth in threads:
        check_timed(f"{truth['name']}: life", recording.ledger(truth["tid"])["lifetime_ns"], last, 0.02, 20 * MS)
    check(recording.profile.window_ns <= rest_ns + noise(rest_ns), f"a window of {recording.profile.window_ns}")


def test_command(context):
    delay, whole = context.random.randint(200, 500), 1500
    recording = context.record("burn", "--delay", f"{delay}ms", undisturbed=False, threads=2, ms=whole)
    check_window(recording, delay * MS, 2 * whole * MS - delay * MS + 500 * MS)
    expect_failure(check_window, recording, (delay + 100) * MS + SETUP_NS + noticeable(0, delay * MS), 0)


def running(context):
    """A process that goes on for a minute."""
    return context.start(context.workload("sleeps", threads=3, rounds=1, ms=60000))


def test_attached(context):
    target, output = running(context), context.path("p.json.gz")
    time.sleep(0.3 * PATIENCE)
    begin = time.monotonic()
    context.wallprof("-q", "--keep-capture", "--delay", "400ms", "-d", "300ms", "-o", output, "-p", target.pid)
    took = time.monotonic() - begin
    recording = Recording(context, output)
    check_close("the window", recording.profile.window_ns, 300 * MS, 0.02, noise(300 * MS))
    check(took > 0.7, f"it took {took} s")
    check(len(recording.profile.threads) >= 4, f"{len(recording.profile.threads)} threads")


def test_signal(context):
    """For scripts: the window begins with the signal, and ends with another one."""
    target, output = running(context), context.path("p.json.gz")
    recorder = context.start([WALLPROF, "--keep-capture", "--delay", "signal", "-o", output, "-p", str(target.pid)],
                             stderr=subprocess.PIPE, text=True)
    line = recorder.stderr.readline()
    number = re.search(r"kill -USR1 (\d+)", line)
    check(number and int(number[1]) == recorder.pid, f"it says {line!r}")
    time.sleep(0.3)
    before = time.time_ns()
    recorder.send_signal(signal.SIGUSR1)
    wait_until(lambda: (context.folder / "p.json.gz.capture").exists(), "the recording begins")
    time.sleep(0.5)
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=context.patience_s) == 0, recorder.stderr.read())
    recording = Recording(context, output)
    check(recording.profile.start_ns >= before, "it began before the signal")
    check(400 * MS < recording.profile.window_ns < 500 * MS + SETUP_NS,
          f"a window of {recording.profile.window_ns / MS} ms")


def test_nothing_left(context):
    """Who ends earlier is not recorded, and that is said."""
    done = context.wallprof("--delay", "20s", "-o", context.path("p.json"), "--", "sh", "-c", "exit 7", status=7)
    check("--delay" in done.stderr, done.stderr)
    done = context.wallprof("--delay", "20s", "-o", context.path("p.json"), "--", "true", status=125)
    check("the command ended" in done.stderr, done.stderr)
    check(not list(context.folder.iterdir()), f"left behind: {list(context.folder.iterdir())}")
    for text in ("soon", "-1", ""):
        context.wallprof("--delay", text, "--", "true", status=125)
