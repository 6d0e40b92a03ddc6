# SPDX-License-Identifier: GPL-2.0-or-later
"""Recordings that begin later than what they are of."""
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from harness import (MS, SLOWNESS, WALLPROF, Recording, Skip, check, check_timed, expect_failure,
                     needs_root, noise, noticeable, wait_until, wait_until_asleep)

SETUP_NS = 2_000 * MS * SLOWNESS  # finding the threads, and tables for what runs already
LATE_NS = 500 * MS * SLOWNESS  # until an end is noticed


def stretch(threads):
    """How much longer threads take here than they use CPU time: 1 on an idle machine."""
    return max(1.0, *((t["end_ns"] - t["begin_ns"]) / t["cpu_ns"] for t in threads))


def check_end(window_ns, last, late_ns):
    """The window ends when the command does, whatever else runs on the machine."""
    check(last - 20 * MS - noise(last) <= window_ns <= last + late_ns + noise(last),
          f"a window of {window_ns / MS} ms, the command ended after {last / MS} ms")


def check_window(recording, delay_ns):
    """The command runs for the delay before the window, and nothing before the window is reported."""
    threads = recording.truth.named("burner")
    begins = [-recording.at(t["begin_ns"]) for t in threads]
    check(begins, "no thread was reported")
    check(all(delay_ns - 20 * MS - noise(delay_ns) <= ns <= delay_ns + SETUP_NS * stretch(threads) for ns in begins),
          f"the threads began {[ns / MS for ns in begins]} ms before the window")
    # Each waits for the last one to end.
    last = max(recording.at(t["end_ns"]) for t in threads)
    for truth in threads:
        check_timed(f"{truth['name']}: lifetime", recording.ledger(truth["tid"])["lifetime_ns"], last, 0.02, 20 * MS)
    late_ns = LATE_NS * stretch(threads)
    check_end(recording.profile.window_ns, last, late_ns)
    expect_failure(check_end, recording.profile.window_ns + noticeable(2 * late_ns, last), last, late_ns)


def test_command(context):
    delay = context.random.randint(200, 500)
    recording = context.record("burn", "--delay", f"{delay}ms", undisturbed=False, threads=2, ms=1500)
    check_window(recording, delay * MS)
    setup_ns = SETUP_NS * stretch(recording.truth.named("burner"))
    expect_failure(check_window, recording, (delay + 100) * MS + setup_ns + noticeable(0, delay * MS))


def running(context):
    """A process that goes on for a minute."""
    return context.start(context.workload("sleeps", threads=3, rounds=1, ms=60000))


def test_attached(context):
    target, output = running(context), context.path("p.json.gz")
    wait_until_asleep(target.pid, 3)
    begin = time.monotonic()
    context.wallprof("-q", "--keep-capture", "--delay", "400ms", "-d", "300ms", "-o", output, "-p", target.pid)
    took = time.monotonic() - begin
    recording = Recording(context, output)
    check_timed("the window", recording.profile.window_ns, 300 * MS, 0.02, noise(300 * MS))
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
    time.sleep(0.3)  # a recording that does not wait for the signal begins now
    before = time.time_ns()
    recorder.send_signal(signal.SIGUSR1)
    wait_until(lambda: (context.folder / "p.capture").exists(), "the recording begins")
    time.sleep(0.5)  # the window, which is checked
    recorder.send_signal(signal.SIGINT)
    check(recorder.wait(timeout=context.timeout_s) == 0, recorder.stderr.read())
    recording = Recording(context, output)
    check(recording.profile.start_ns >= before, "it began before the signal")
    check(400 * MS < recording.profile.window_ns < 500 * MS + SETUP_NS,
          f"a window of {recording.profile.window_ns / MS} ms")


def test_nothing_left(context):
    """A process that ends within the delay is not recorded, and that is reported."""
    done = context.wallprof("--delay", "20s", "-o", context.path("p.json"), "--", "sh", "-c", "exit 7", status=7)
    check("--delay" in done.stderr, done.stderr)
    done = context.wallprof("--delay", "20s", "-o", context.path("p.json"), "--", "true", status=125)
    check("the command ended" in done.stderr, done.stderr)
    check(not list(context.folder.iterdir()), f"left behind: {list(context.folder.iterdir())}")
    for text in ("soon", "-1", ""):
        context.wallprof("--delay", text, "--", "true", status=125)


def delayed(context, *targets):
    """A recording that waits for its signal, and has its targets."""
    recorder = context.start([WALLPROF, "--keep-capture", "--delay", "signal", "-d", "300ms", "-o",
                              context.path("p.json.gz"), *map(str, targets)], stderr=subprocess.PIPE, text=True)
    line = recorder.stderr.readline()
    check("kill -USR1" in line, f"it says {line!r}")
    return recorder


def recorded(context, recorder):
    """The names of those that it has recorded since."""
    recorder.send_signal(signal.SIGUSR1)
    check(recorder.wait(timeout=context.timeout_s) == 0, recorder.stderr.read())
    return {t["tid"] for t in Recording(context, context.path("p.json.gz")).report["threads"]}


def end(process):
    process.kill()
    process.wait()


NUMBER = Path("/proc/sys/kernel/ns_last_pid")


def start_with_number(context, number):
    """Another process that has this number."""
    for _ in range(50):
        NUMBER.write_text(str(number - 1))
        other = context.start(["sleep", "60"])
        if other.pid == number:
            return other
        end(other)
    raise Skip(f"number {number} cannot be had again")


def check_recorded(tids, *wanted):
    check(tids == set(wanted), f"recorded {tids}, should be {wanted}")


def test_number_used_again(context):
    """A process that reuses the pid of one that ended in the delay is a non-target."""
    needs_root()
    if not os.access(NUMBER, os.W_OK):
        raise Skip("this kernel gives no numbers on demand")
    first, second = (context.start(["sleep", "60"]) for _ in range(2))
    recorder = delayed(context, "-p", f"{first.pid},{second.pid}")
    end(first)
    other = start_with_number(context, first.pid)
    tids = recorded(context, recorder)
    check_recorded(tids, second.pid)
    expect_failure(check_recorded, tids, second.pid, other.pid)


def test_thread_ends(context):
    """One of several that were named, in the delay."""
    first, second = (context.start(["sleep", "60"]) for _ in range(2))
    recorder = delayed(context, "-t", f"{first.pid},{second.pid}")
    end(first)
    check_recorded(recorded(context, recorder), second.pid)
