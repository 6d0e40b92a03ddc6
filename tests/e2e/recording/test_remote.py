# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory of processes is read by a child, which may be kept waiting, or be killed."""
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from harness import WALLPROF, WORKLOADS, check, expect_failure, needs_root, wait_until

pytestmark = pytest.mark.untimed
LIBRARY = WORKLOADS / "libmoved.so"
STARTED_AGAIN = "had ended (killed?), and another was started"
NOT_READ = "were not read any more"


def start_target(context):
    """A program with executable memory that nothing ever brings, which wallprof reads several times in two seconds."""
    needs_root()
    announced = context.path("announced")
    announced.unlink(missing_ok=True)
    target = context.start([WORKLOADS / "moved-text", "silent", 1, 1, LIBRARY],
                           env={**os.environ, "WALLPROF_ANNOUNCE": str(announced)})
    wait_until(lambda: announced.exists() and "moved" in announced.read_text(), "it has memory that nothing brings")
    return target


def start_recorder(context, target, duration="30s"):
    return context.start([WALLPROF, "record", "-v", "-o", context.path("a.capture"), "-p", target.pid, "-d", duration],
                         stderr=subprocess.PIPE, text=True)


def reader_of(recorder):
    """The recorder's child that has the memory of a process open."""
    for child in Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children").read_text().split():
        try:
            if any(os.readlink(fd).endswith("/mem") for fd in Path(f"/proc/{child}/fd").iterdir()):
                return int(child)
        except OSError:
            pass
    return None


def find_reader(recorder, before=None):
    found = []
    wait_until(lambda: found.append(reader_of(recorder)) or found[-1] not in (None, before), "a child reads memory")
    return found[-1]


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def check_said(text, *wanted):
    for line in wanted:
        check(line in text, f"not said: {line}: {text}")


def what_it_said(recorder, reader):
    """Waits until the recording has ended, as it should, and its child."""
    said = recorder.communicate(timeout=60)[1]
    check(recorder.returncode == 0, f"status {recorder.returncode}: {said}")
    check(not is_alive(reader), "the child has outlived the recorder")
    return said


def test_silent_memory(context):
    """A reader that waits for the page does not return."""
    target = start_target(context)
    begin = time.monotonic()
    done = context.wallprof("record", "-v", "-o", context.path("a.capture"), "-p", target.pid, "-d", "1s", timeout=20)
    check(time.monotonic() - begin < 15, f"the recording took {time.monotonic() - begin:.1f} s")
    check_said(done.stderr, "memory of processes: ")
    check("memory of processes: 0 reads" not in done.stderr, f"nothing was read: {done.stderr}")


def test_killed(context):
    target = start_target(context)
    recorder = start_recorder(context, target, duration="3s")
    reader = find_reader(recorder)
    os.kill(reader, signal.SIGKILL)
    second = find_reader(recorder, before=reader)
    said = what_it_said(recorder, second)
    check_said(said, "memory of processes: 1 times the child that reads it " + STARTED_AGAIN)
    expect_failure(check_said, said, NOT_READ)


def test_interrupted_while_it_waits(context):
    """The child answers no more, as if its page never came."""
    target = start_target(context)
    recorder = start_recorder(context, target)
    reader = find_reader(recorder)
    os.kill(reader, signal.SIGSTOP)
    time.sleep(context.random.uniform(0, 1))  # it is waited for at that time, or has been given up
    begin = time.monotonic()
    recorder.send_signal(signal.SIGINT)
    what_it_said(recorder, reader)
    check(time.monotonic() - begin < 10, f"it took {time.monotonic() - begin:.1f} s to end")


def test_process_that_never_answers(context):
    target = start_target(context)
    recorder = start_recorder(context, target, duration="3s")
    reader = find_reader(recorder)
    os.kill(reader, signal.SIGSTOP)
    said = what_it_said(recorder, reader)
    check_said(said, "memory of processes: 1 processes " + NOT_READ)
    expect_failure(check_said, said, STARTED_AGAIN)


def test_recorder_is_killed(context):
    target = start_target(context)
    recorder = start_recorder(context, target)
    reader = find_reader(recorder)
    check(is_alive(reader), "no child")
    recorder.kill()
    recorder.wait()
    wait_until(lambda: not is_alive(reader), "the child has ended with the recorder")
