# SPDX-License-Identifier: GPL-2.0-or-later
"""Kinds of targets: the whole system and its CPUs, kernel threads, a cgroup, single threads."""
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

import cgroups
from harness import (MS, SLOWNESS, WALLPROF, Recording, Skip, check, check_close, check_hidden, check_timed,
                     expect_failure, needs_root, noise, wait_until, wait_until_asleep)

# Bound to a CPU, it computes for so many ms of its own CPU time at each SIGUSR1, and says how much it was.
SPINNER = """
import os, signal, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1})
print("ready", flush=True)
while True:
    signal.sigwait({signal.SIGUSR1})
    begin = time.process_time_ns()
    while time.process_time_ns() < begin + int(sys.argv[2]) * 1000000:
        pass
    print(time.process_time_ns() - begin, flush=True)
"""


def spinner(context, cpu, ms):
    process = context.start([sys.executable, "-c", SPINNER, str(cpu), str(ms)], stdout=subprocess.PIPE, text=True)
    check(process.stdout.readline() == "ready\n", "the spinner does not start")
    return process


def check_cpus(report, process, cpu, ran_ns):
    """The process ran so long, on that CPU alone; and each CPU's sums are the window."""
    for row in report["cpus"]:
        reported = sum(task["ns"] for task in row["tasks"])
        check(reported == row["busy_ns"], f"CPU {row['cpu']}: {reported} ns of tasks are {row['busy_ns']} busy")
        check(row["busy_ns"] + row["idle_ns"] + row["unknown_ns"] == report["window_ns"],
              f"CPU {row['cpu']}: {row} is not the window, {report['window_ns']}")
    runs = {row["cpu"]: task["ns"] for row in report["cpus"] for task in row["tasks"]
            if task["tid"] == process.pid}
    check(set(runs) == {cpu}, f"it ran on CPU {cpu}, and was seen on {runs}")
    check_timed("what it ran", runs[cpu], ran_ns, 0.02, 2 * MS)


def check_tracks(profile, report):
    """The profile draws each CPU as the report has it."""
    rows = {row.name: row for row in profile.rows if row.process == "CPUs"}
    check(len(rows) == len(report["cpus"]), f"rows {list(rows)} for {len(report['cpus'])} CPUs")
    for cpu in report["cpus"]:
        row = rows[f"CPU {cpu['cpu']}"]
        for what in (row.weight_by, row.painted_by):
            sums = what(lambda category, _: "idle" if category == "Idle" else "busy")
            check_close(f"{row.name}, idle", sums.get("idle", 0), cpu["idle_ns"], 0.005, MS)
        weights = row.weight_by(lambda _, leaf: leaf)
        for task in cpu["tasks"][:5]:
            check_close(f"{row.name}, {task['name']}", weights[f"{task['name']} ({task['tid']})"], task["ns"],
                        0.001, 1000)


def record_system(context, *arguments):
    output = context.path("p.json.gz")
    context.wallprof("-q", "--keep-capture", "-o", output, *arguments)
    recording = Recording(context, output)
    check_hidden(recording.report["contradictions"])
    return recording


def test_cpus(context):
    """A process that was not named runs on its CPU for as long as it announces."""
    cpu, ms = context.random.choice(sorted(os.sched_getaffinity(0))), context.random.randint(100, 400)
    process = spinner(context, cpu, ms)
    recording = record_system(context, "-a", "--", "sh", "-c",
                              f"sleep 0.1; kill -USR1 {process.pid}; sleep {0.5 + ms * SLOWNESS / 500}")
    ran_ns, report = int(process.stdout.readline()), recording.report
    check_cpus(report, process, cpu, ran_ns)
    expect_failure(check_cpus, report, process, cpu, ran_ns + max(ran_ns // 10, 10 * MS) + 3 * noise(ran_ns))
    expect_failure(check_cpus, report, process, cpu + 1, ran_ns)
    check_tracks(recording.profile, report)
    ledger = recording.ledger(process.pid)
    check_timed("its thread", ledger["states"]["running"], ran_ns, 0.02, 2 * MS)
    names = {p["name"] for p in report["processes"]}
    check("wallprof" not in names and "sleep" in names, f"recorded: {sorted(names)}")
    check(recording.profile.meta["product"].startswith("sh -c"), recording.profile.meta["product"])


ALONE = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
print("ready", flush=True)
end = time.monotonic() + float(sys.argv[2])
while time.monotonic() < end:
    pass
"""


def check_rows(report, alone, cpus):
    """Each CPU has a row that is the whole window, and the last one is of the process alone."""
    check([row["cpu"] for row in report["cpus"]] == cpus, f"rows {[row['cpu'] for row in report['cpus']]}, of {cpus}")
    for row in report["cpus"]:
        check(row["busy_ns"] + row["idle_ns"] + row["unknown_ns"] == report["window_ns"], f"{row}")
    most = max(report["cpus"][-1]["tasks"], key=lambda task: task["ns"], default={"tid": 0, "ns": 0})
    check(most["tid"] == alone and most["ns"] >= 0.9 * report["window_ns"],
          f"CPU {cpus[-1]}: {report['cpus'][-1]}, and {alone} had it")


@pytest.mark.host_only("in a guest wallprof begins so slowly that a CPU that is not given away is taken for hung")
def test_no_switch(context):
    """A CPU that one task has all the time is reported, though no switch happens there."""
    needs_root()
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip("the recorder would have no CPU")
    runtime = Path("/proc/sys/kernel/sched_rt_runtime_us")
    before = runtime.read_text()
    with ExitStack() as left:
        runtime.write_text("-1")
        left.callback(runtime.write_text, before)
        # Until it is killed; the limit is for a test that is killed itself.
        process = context.start([sys.executable, "-c", ALONE, str(cpus[-1]), "10"],
                                stdout=subprocess.PIPE, text=True)
        left.callback(end, [process])
        check(process.stdout.readline() == "ready\n", "it does not start")
        recording = record_system(context, "-a", "-d", "300ms")
    check_rows(recording.report, process.pid, cpus)
    expect_failure(check_rows, recording.report, process.pid, cpus[:-1])
    expect_failure(check_rows, recording.report, process.pid + 1, cpus)
    check_tracks(recording.profile, recording.report)


def test_idle(context):
    """The idle time is the kernel's, as exactly as /proc/stat reports it."""
    before, begin = idle_ticks(), time.monotonic()
    recording = record_system(context, "-a", "-d", "1s")
    took, ticks = time.monotonic() - begin, idle_ticks() - before
    idle = sum(cpu["idle_ns"] for cpu in recording.report["cpus"])
    reported = ticks * 1_000_000_000 // os.sysconf("SC_CLK_TCK")
    outside = (took - 1) * len(recording.report["cpus"]) * 1_000_000_000  # before and after the window
    check(reported - outside - 100 * MS * SLOWNESS <= idle <= reported + 50 * MS * SLOWNESS,
          f"{idle / MS} ms idle, and {reported / MS} in all {took} s")
    check_timed("the window", recording.profile.window_ns, 1000 * MS, 0.01, noise(1000 * MS))
    check(not any(p["pid"] == 2 for p in recording.report["processes"]), "threads of the kernel are recorded")


def idle_ticks():
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()
    return int(fields[4]) + int(fields[5])


def check_not_of(output, command):
    """The first lines are about the system, not about the command that set the window."""
    lines = output.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith(("recorded ", "took "))), -1)
    check("of the whole system:" in lines[first], f"{output!r}")
    check(command not in "".join(lines[first:first + 4]), f"{output!r}")


def record_window(context, *command):
    """Returns the summary's and the report's text of a recording of the system during a command."""
    output = context.path("p.json.gz")
    summary = context.wallprof("--keep-capture", "-o", output, "-a", "--", *command).stderr
    return summary, context.wallprof("report", context.path("p.capture")).stdout


def test_window(context):
    """A command that sleeps sets the window and nothing else; one that runs has its critical path."""
    needs_root()
    process = spinner(context, max(os.sched_getaffinity(0)), 3000)
    os.kill(process.pid, signal.SIGUSR1)
    seconds = str(1 + context.random.randint(1, 400) / 1000)
    summary, page = record_window(context, "sleep", seconds)
    check_not_of(summary, "sleep")
    check(page.startswith(f"the whole system, during sleep {seconds}\n"), page)
    check("the critical path is not shown: " in " ".join(page.split()), page)
    summary, page = record_window(context, sys.executable, "-c", "sum(range(9000000))")
    expect_failure(check_not_of, summary, "python3")
    check(" critical path: " in f" {' '.join(page.split())}", page)


def is_kernel_thread(pid):
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[6]) & 0x200000
    except (FileNotFoundError, ProcessLookupError):
        return False


def check_in_kernel(recording, tids):
    """They ran, and in user mode never."""
    categories = {c for tid in tids for c in recording.profile.thread(tid).sample_categories}
    check("Kernel" in categories and "User" not in categories, f"they were in {categories}")


def test_kernel_threads(context):
    """They are one process, of the threads that /proc has, idle but for their work."""
    before = {int(p.name) for p in Path("/proc").iterdir() if p.name.isdigit() and is_kernel_thread(p.name)}
    recording = record_system(context, "-a", "--kthreads", "--", "sh", "-c",
                              "i=0; while [ $i -lt 50000 ]; do i=$((i+1)); done; sleep 0.4")
    threads = {t["tid"]: t for t in recording.report["threads"] if t["process"] == "kernel threads"}
    check(len(before & set(threads)) >= 0.9 * len(before) > 0,
          f"{len(threads)} threads of the kernel, and {len(before)} in /proc")
    unexpected = [t for tid, t in threads.items() if tid not in before and is_kernel_thread(tid) == 0
                  and Path(f"/proc/{tid}").exists()]
    check(not unexpected, f"not of the kernel: {unexpected}")
    idle = sum(t["reasons"].get("[idle: worker]", 0) for t in threads.values())
    blocked = sum(t["states"]["blocked"] for t in threads.values())
    check(idle >= 0.9 * blocked, f"{idle / MS} ms of {blocked / MS} idle: "
          + str(sorted({reason for t in threads.values() for reason in t["reasons"]})))
    check_in_kernel(recording, set(threads))
    expect_failure(check_in_kernel, recording, {t["tid"] for t in recording.report["threads"]})


def test_thread(context):
    """Some threads of a process are recorded, until the last of them ends."""
    target = context.start(context.workload("sleeps", threads=4, rounds=1, ms=round(1500 * SLOWNESS), step_us=200000,
                                            truth=context.path("truth.json")))
    tasks = Path(f"/proc/{target.pid}/task")
    wait_until(lambda: len(list(tasks.iterdir())) == 5, "all threads are there")
    tids = sorted(int(t.name) for t in tasks.iterdir())
    chosen = [tid for tid in tids if (tasks / str(tid) / "comm").read_text().strip() in ("sleeper 1", "sleeper 2")]
    begin = time.monotonic()
    recording = record_system(context, "-t", ",".join(map(str, chosen)))
    took = time.monotonic() - begin
    check(sorted(t["tid"] for t in recording.report["threads"]) == chosen,
          f"{[t['tid'] for t in recording.report['threads']]}, and asked for were {chosen}")
    for thread in recording.report["threads"]:
        check(thread["process"] == "sleeps" and thread["reasons"].get("[sleep]", 0) > 0, f"{thread}")
        check(sum(thread["states"].values()) == thread["lifetime_ns"], f"{thread}")
        check_sleeper(recording, thread["tid"], ["truth_sleep", "sleeper"], at=0.1)
    check(took < 20 * SLOWNESS, f"it did not end with its threads, but after {took} s")
    target.wait()


def check_sleeper(recording, tid, functions, at=0.5):
    """In that order, from the one that waits outwards; after that part of its samples."""
    thread = recording.profile.thread(tid)
    frames = thread.frames_of(int(at * len(thread.times)))
    rest = iter(frames)
    check(all(function in rest for function in functions), f"{functions} are not the stack {frames}")


def test_sleeps_through(context):
    """A thread that sleeps all the time has its stack."""
    target = context.start(context.workload("sleeps", threads=3, rounds=1, ms=60000))
    tasks = Path(f"/proc/{target.pid}/task")
    wait_until_asleep(target.pid, 3)
    for _ in range(3 if SLOWNESS == 1 else 1):
        recording = record_system(context, "-p", target.pid, "-d", "200ms")
        for tid in (int(t.name) for t in tasks.iterdir()):
            main = tid == target.pid
            check_sleeper(recording, tid, ["truth_finish", "main"] if main else ["truth_sleep", "sleeper"])
            expect_failure(check_sleeper, recording, tid, ["sleeper", "truth_sleep"])
            expect_failure(check_sleeper, recording, tid, ["truth_sleep", "main"])


def test_cgroup(context):
    """The processes that are in the cgroup or enter it, and their children, are recorded; no others are."""
    needs_root()
    with ExitStack() as left:
        root = cgroups.old("pids") or cgroups.unified(context, left, "pids")
        group = root / f"wallprof-{os.getpid()}"
        (group / "below").mkdir(parents=True)
        left.callback(group.rmdir)
        left.callback((group / "below").rmdir)
        inside, enters, outside = (spinner(context, 0, 20) for _ in range(3))
        left.callback(end, [inside, enters, outside])
        (group / "cgroup.procs").write_text(str(inside.pid))
        output = context.path("p.json.gz")
        recorder = context.start([WALLPROF, "-q", "--keep-capture", "-o", output, "--cgroup", group])
        wait_until(lambda: context.path("p.capture").exists(), "the recording begins")
        (group / "below/cgroup.procs").write_text(str(enters.pid))
        helper = context.start(["sh", "-c", f"kill -USR1 {inside.pid} {enters.pid} {outside.pid};"
                                f"sh -c 'echo $$ >{group}/cgroup.procs; sh -c \"exit 0\"; sleep 0.1'; exit 0"])
        helper.wait()
        time.sleep(0.3 * SLOWNESS)  # the spinners run, recorded or not
        recorder.send_signal(signal.SIGINT)
        check(recorder.wait(timeout=context.timeout_s) == 0, "it failed")
        recording = Recording(context, output)
        check_members(recording, [inside, enters], [outside, helper])
        expect_failure(check_members, recording, [inside, outside], [])
        expect_failure(check_members, recording, [inside], [enters])
        for process in (inside, enters):
            ran_ns = int(process.stdout.readline())
            check_timed("its thread", recording.ledger(process.pid)["states"]["running"], ran_ns, 0.05, 3 * MS)
        outside.stdout.readline()


def check_members(recording, members, others):
    pids = {p["pid"]: p["name"] for p in recording.report["processes"]}
    check(all(m.pid in pids for m in members), f"{[m.pid for m in members]} are not all among {pids}")
    check(not any(o.pid in pids for o in others), f"of {[o.pid for o in others]} some are among {pids}")
    unexpected = {name for name in pids.values()} - {"sh", "exe", "sleep", "python3", Path(sys.executable).name}
    check(not unexpected, f"not asked for: {unexpected}")
    check({"sh", "exe"} & set(pids.values()) and "sleep" in pids.values(), f"the one that entered, and its child: {pids}")


def end(processes):
    for process in processes:
        process.send_signal(signal.SIGKILL)
        process.wait()


def test_refused(context):
    """Impossible combinations of options fail at once."""
    for arguments, word in ((["-a", "-p", "1"], "mutually exclusive"), (["-t", "1", "--", "true"], "--tid"),
                            (["--cgroup", "/nowhere"], "no such cgroup"), (["--cgroup", "/tmp"], "no such cgroup"),
                            (["-t", "4194303"], "no such thread"), (["-t", "x"], "thread IDs"), ([], "--all")):
        done = context.wallprof(*arguments, status=125)
        check(word in done.stderr, f"{arguments}: {done.stderr}")
    check(not list(context.folder.iterdir()), f"left behind: {list(context.folder.iterdir())}")
