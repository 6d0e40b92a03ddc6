# SPDX-License-Identifier: GPL-2.0-or-later
"""Attaching, stopping, being killed, and living in a namespace."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

from capture_reader import META, records
from harness import (GIVE_UP_S, MS, SLOWNESS, WALLPROF, Profile, Recording, Skip, TimingFailure, alive, capture_of,
                     check, check_close, check_timed, children, expect_failure, needs_command, needs_root, noticeable,
                     read_report, wait_until, wait_until_asleep)


def tids_of(pid):
    return {int(t) for t in os.listdir(f"/proc/{pid}/task")}


def check_all_there(recording, tids):
    """Every thread is in the profile, from the start of the window to its end."""
    for tid in tids:
        thread, ledger = recording.profile.thread(tid), recording.ledger(tid)
        check_close(f"lifetime of {thread.name} {tid}", ledger["lifetime_ns"],
                    recording.report["window_ns"], 0, MS)
        check_close(f"weights of {thread.name} {tid}", sum(thread.weights),
                    recording.report["window_ns"], 0, MS)


def check_window(window_ns, wanted_ns):
    check_timed("the window", window_ns, wanted_ns, 0, 10 * MS)


def attach(context, pid, duration_ms, *arguments):
    output = context.path("p.json.gz")
    begin = time.time_ns()
    context.wallprof("-q", "--keep-capture", "-o", output, "-p", pid, "-d", f"{duration_ms}ms",
                     *arguments)
    recording = Recording(context, output)
    check(begin <= recording.profile.start_ns and
          recording.profile.start_ns + recording.profile.window_ns <= time.time_ns(),
          "the window is not between start and end of wallprof, by the wall clock")
    return recording


def sleepers(context, threads=4, ms=60000 * SLOWNESS):
    process = context.start(context.workload("sleeps", truth=context.path("truth.json"),
                                             threads=threads, rounds=1, ms=ms))
    wait_until_asleep(process.pid, threads)
    return process


def test_idle_redis(context):
    needs_command("redis-server")
    socket = context.path("redis.sock")
    server = context.start(["redis-server", "--port", "0", "--unixsocket", str(socket), "--save",
                            "", "--dir", str(context.folder)], stdout=subprocess.DEVNULL)
    # It answers when all its threads exist.
    wait_until(lambda: subprocess.run(["redis-cli", "-s", socket, "ping"], capture_output=True).returncode == 0,
               "redis-server answers")
    tids = tids_of(server.pid)
    check(len(tids) > 2, "redis-server has too few threads to be a test")
    recording = attach(context, server.pid, 1000)
    check_all_there(recording, tids)
    check({t["tid"] for t in recording.report["threads"]} == tids, "threads that are not its own")
    expect_failure(check_all_there, recording, tids | {1})
    shutil.rmtree(context.folder / "appendonlydir", ignore_errors=True)


def test_threads_asleep_from_start_to_end(context):
    process = sleepers(context, threads=300)
    recording = attach(context, process.pid, 500)
    check_all_there(recording, tids_of(process.pid))
    for tid in tids_of(process.pid) - {process.pid}:
        reasons = recording.ledger(tid)["reasons"]
        check(reasons.get("[sleep]", 0) >= 0.99 * recording.report["window_ns"],
              f"thread {tid} slept all the time, and is said to have been in {reasons}")


def test_window_is_on_time(context):
    process = sleepers(context)
    for _ in range(3):
        duration = context.random.randint(100, 1500)
        recording = attach(context, process.pid, duration)
        check_window(recording.report["window_ns"], duration * MS)
        check_window(recording.profile.window_ns, duration * MS)
        expect_failure(check_window, recording.report["window_ns"], duration * MS + noticeable(25 * MS, duration * MS))


def test_process_ends_before_the_window(context):
    begin = time.monotonic()
    context.wallprof("-q", "-o", context.path("before.json"), "-d", "50ms", "-p", os.getpid())
    # In seconds; long enough for loading, which takes most of them on a busy machine.
    lifetimes = 1 + 3 * (time.monotonic() - begin)
    process = sleepers(context, threads=2, ms=int(lifetimes * 1000))
    begin = time.monotonic()
    recording = attach(context, process.pid, 30000)
    check(time.monotonic() - begin < 10 + lifetimes, "wallprof waited for a process that was gone")
    check(len(recording.report["threads"]) == 3, "it was gone before the recording began")


def test_interrupt_ends_attaching(context):
    process = sleepers(context)
    output = context.path("p.json.gz")
    wallprof = context.start([WALLPROF, "-q", "-o", output, "-p", str(process.pid)])
    wait_until(context.path("p.capture").exists, "the capture is there")
    time.sleep(0.5)  # the window, whose length is checked
    wallprof.send_signal(signal.SIGINT)
    check(wallprof.wait(timeout=GIVE_UP_S) == 0, f"status {wallprof.returncode}")
    for tid in tids_of(process.pid):
        check(sum(Profile.load(output).thread(tid).weights) > 100 * MS, f"thread {tid} is short")
    check(process.poll() is None, "the process that was only looked at is gone")


def test_interrupt_goes_to_the_command(context):
    """A signal from a terminal goes to the whole process group."""
    output = context.path("p.json.gz")
    wallprof = context.start([WALLPROF, "-q", "-o", output, "--",
                              *context.workload("sleeps", ms=60000, rounds=1)],
                             start_new_session=True)
    wait_until(lambda: any(Path(f"/proc/{pid}/comm").read_text() == "sleeps\n" and len(tids_of(pid)) == 2
                           for pid in children(wallprof.pid)), "the command has its thread")
    os.killpg(wallprof.pid, signal.SIGINT)
    check(wallprof.wait(timeout=GIVE_UP_S) == 128 + signal.SIGINT, f"status {wallprof.returncode}")
    check(len(Profile.load(output).threads) >= 2, "a thread is missing")


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
REQUEST_S = 0.5  # signals that are closer are one request


def begin_sleeping(context, output, ignored=(signal.SIGINT,)):
    """A recording of a command at rest that ignores these, in a process group of its own."""
    numbers = [int(number) for number in ignored]
    recorder = context.start([WALLPROF, "-q", "-o", output, "--", "python3", "-c",
                              f"import signal, time; [signal.signal(n, signal.SIG_IGN) for n in {numbers}]; "
                              "print('ready', flush=True); time.sleep(60)"],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)
    check(recorder.stdout.readline() == "ready\n", "the command does not run")
    return recorder


def handles_interrupts(recorder):
    """The signal comes after the recording, while the profile is written."""
    caught = re.search(r"^SigCgt:\s+(\w+)$", Path(f"/proc/{recorder.pid}/status").read_text(), re.M)[1]
    return int(caught, 16) >> signal.SIGINT - 1 & 1


def end_group(recorder):
    """Waits for wallprof, and ends the command that goes on. Returns the status and what was said."""
    status = recorder.wait(timeout=GIVE_UP_S)
    try:
        os.killpg(recorder.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    return status, recorder.stderr.read()


def interrupt_twice(context, ms):
    """A command that does not care, at rest for so long before the first one. Returns its profile."""
    output = context.path(f"{ms}.json.gz")
    recorder = begin_sleeping(context, output)
    time.sleep(ms / 1000)  # the rest, which is checked
    os.killpg(recorder.pid, signal.SIGINT)
    time.sleep(context.random.random() * 0.02)  # at any moment of the handling of the first one
    os.killpg(recorder.pid, signal.SIGINT)
    status, said = end_group(recorder)
    check(status == 130, f"status {status}: {said}")
    return Profile.load(output)


def check_rest(profile, ms):
    check(profile.window_ns > ms * MS, f"{profile.window_ns / MS} ms, the last {ms} of them at rest")


def test_two_interrupts(context):
    """A command that does not care is not waited for. Two signals at once are one request: there is a profile, with
    what has come since the file was written to for the last time."""
    for ms in context.random.sample(range(200, 900), 4):
        profile = interrupt_twice(context, ms)
        check(len(profile.threads) >= 1, "there is no profile")
        check_rest(profile, ms)
    expect_failure(check_rest, profile, profile.window_ns / MS + 1)


def test_request_of_several_signals(context):
    """timeout(1) signals wallprof, and then its process group, which has wallprof's sandboxed children, too."""
    for number, gap_s in enumerate((0, 0.003, 0.05)):
        output = context.path(f"{number}.json.gz")
        recorder = begin_sleeping(context, output, ignored=())
        recorder.send_signal(signal.SIGTERM)
        for again in context.random.sample(SIGNALS, 2):
            time.sleep(gap_s)  # what distinguishes the three runs
            os.killpg(recorder.pid, again)
        status, said = end_group(recorder)
        check(status > 128 and "wallprof" not in said, f"{gap_s} s between them: status {status}: {said}")
        names = {name for thread in Profile.load(output).threads for i in range(len(thread.times))
                 for name in thread.frames_of(i)}
        check(any(name.startswith("Py") for name in names), f"the readers of files are gone: {sorted(names)[:20]}")


def test_second_request(context):
    """Later than that it is another one, and gives up the profile, for which wallprof waits here; not the recording."""
    pipe = context.path("p.json")
    os.mkfifo(pipe)
    recorder = begin_sleeping(context, pipe, ignored=SIGNALS)
    begin = time.monotonic()
    recorder.send_signal(signal.SIGINT)
    wait_until(lambda: handles_interrupts(recorder), "the recording is over")
    for again in SIGNALS:
        os.killpg(recorder.pid, again)
    if time.monotonic() - begin >= REQUEST_S:
        raise TimingFailure(f"it took more than {REQUEST_S} s until the recording was over")
    time.sleep(REQUEST_S + 0.1)  # the next signal is another request
    check(recorder.poll() is None, "several signals within half a second were two requests")
    recorder.send_signal(signal.SIGINT)
    status, said = end_group(recorder)
    check(status == 130, f"status {status}: {said}")
    found = re.search(r"^wallprof: error: .* failed: interrupted; wallprof (export .*)$", said, re.M)
    check(found, f"it does not say how to go on: {said}")
    context.wallprof("export", "-o", "q.json", *found[1].split()[1:])
    check(len(Profile.load(context.path("q.json")).threads) >= 1, "nothing was recorded")


def test_sent_to_the_flight_recorder(context):
    """SIGUSR1 ends it, and is no interrupt: the first one after it does not give up the profile."""
    pipe = context.path("p.json")
    os.mkfifo(pipe)
    target = sleepers(context, threads=1)
    recorder = context.start([WALLPROF, "--flight-recorder", "10s", "-o", pipe, "-p", str(target.pid)],
                             stderr=subprocess.PIPE, text=True)
    wait_until(context.path("p.capture").exists, "the recording has begun")
    recorder.send_signal(signal.SIGUSR1)
    wait_until(lambda: handles_interrupts(recorder), "the recording is over")
    recorder.send_signal(signal.SIGINT)
    time.sleep(0.1)  # it would end now
    check(recorder.poll() is None, "the first interrupt has given up the profile")
    check(json.loads(pipe.read_text())["threads"], "there is no thread")
    check(recorder.wait(timeout=GIVE_UP_S) == 0, f"status {recorder.returncode}")


def test_duration_with_a_command(context):
    """The window ends on time; the command goes on unrecorded, and its status counts."""
    output = context.path("p.json.gz")
    context.wallprof("-q", "--keep-capture", "-d", "200ms", "-o", output, "--",
                     *context.workload("die", ms=700, status=9), status=9)
    check_window(Recording(context, output).report["window_ns"], 200 * MS)


def stolen_ns():
    """Returns the steal time of all CPUs, as the kernel counts it."""
    with open("/proc/stat") as file:
        return int(file.readline().split()[8]) * (10**9 // os.sysconf("SC_CLK_TCK"))


def check_stolen(fields, before, after):
    reported = [int(fields[f"stolen_at_{when}_ns"]) for when in ("start", "end")]
    check(before <= reported[0] <= reported[1] <= after, f"stolen at start and end: {reported}, of {before} to {after}")


def test_stolen(context):
    """The steal time is reported at both ends of the window."""
    output, before = context.path("p.json.gz"), stolen_ns()
    context.wallprof("-q", "--keep-capture", "-o", output, "--", "sleep", "0.1")
    after = stolen_ns()
    fields = dict(bytes(record[16:]).split(b"\0")[0].decode().split("=", 1)
                  for _, _, _, record in records(capture_of(output), {META}))
    check_stolen(fields, before, after)
    expect_failure(check_stolen, fields, after + 1, after + 1)


def has_workload(context, capture):
    """A capture can be read while it is being written, too."""
    if not capture.exists():
        return False
    done = context.wallprof("report", "--json", capture, status=None)
    return done.returncode == 0 and any(t["name"].startswith("convoy")
                                        for t in json.loads(done.stdout)["threads"])


def test_killed_recorder(context):
    """The capture of a recorder that was killed at any moment can be exported."""
    for number in range(3):
        output = context.path(f"{number}.json.gz")
        capture = context.path(f"{number}.capture")
        wallprof = context.start([WALLPROF, "-q", "-o", output, "--",
                                  *context.workload("convoy", rounds=1000, hold_ms=2)],
                                 stdout=subprocess.DEVNULL, start_new_session=True)
        wait_until(lambda: has_workload(context, capture), "the workload is in the capture")
        time.sleep(context.random.random())  # any moment
        wallprof.kill()
        wallprof.wait()
        try:
            os.killpg(wallprof.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        check(not output.exists(), "a profile before its time")
        context.wallprof("export", "-q", capture, "-o", output)
        report = read_report(context, capture)
        check(any(t["name"].startswith("convoy") for t in report["threads"]),
              "the workload was in the capture and is not any more")
        for thread in report["threads"]:
            check(sum(thread["states"].values()) == thread["lifetime_ns"], "a broken ledger")


def test_several_processes(context):
    first, second = sleepers(context, threads=2), sleepers(context, threads=3)
    recording = attach(context, f"{first.pid},{second.pid}", 300)
    check_all_there(recording, tids_of(first.pid) | tids_of(second.pid))


def test_same_program_leaves_no_trace(context):
    """The traced process goes on, and nothing of wallprof stays in the kernel."""
    needs_root()
    needs_command("bpftool")
    def programs():
        listing = subprocess.run(["bpftool", "prog", "show"], capture_output=True, text=True)
        return {line.split(":")[0] for line in listing.stdout.splitlines() if line[:1].isdigit()}
    process, before = sleepers(context), programs()
    attach(context, process.pid, 200)
    check(alive(process.pid), "the process is gone")
    wait_until(lambda: not programs() - before, "the BPF programs are gone")


def test_pid_namespace(context):
    """Ids are those of wallprof's own PID namespace."""
    needs_root()
    needs_command("unshare")
    tried = subprocess.run(["unshare", "-pf", "--mount-proc", "true"], capture_output=True, text=True)
    if tried.returncode != 0:  # in a chroot, say, whose root is no mount point
        raise Skip(f"no PID namespace can be made here: {tried.stderr.strip()}")
    output, truth = context.path("p.json.gz"), context.path("truth.json")
    command = ["unshare", "-pf", "--mount-proc", WALLPROF, "-q", "--keep-capture", "-o", output,
               "--", *context.workload("sleeps", truth=truth, threads=3)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=GIVE_UP_S, cwd=context.folder)
    check(done.returncode == 0, f"status {done.returncode}: {done.stderr}")
    recording = Recording(context, output, truth)
    check(recording.truth.pid < 100, "this is no namespace")
    for thread in recording.truth.threads:
        check(recording.profile.thread(thread["tid"]).name == thread["name"], "another's name")
        check(recording.profile.thread(thread["tid"]).pid == str(recording.truth.pid), "the pid")
        check(recording.ledger(thread["tid"])["states"]["blocked"] > 50 * MS, "it slept longer")
