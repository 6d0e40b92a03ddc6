# SPDX-License-Identifier: GPL-2.0-or-later
"""tools/bench: the options and the arithmetic of `servers`, the CPU time and the end of its loads, and the end of all
benchmarks. Nothing is recorded."""
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness import ROOT, Skip, check, check_close, expect_failure, needs_root, wait_until

sys.path.append(str(ROOT / "tools" / "bench"))
import explain
import loads
import measure
import recorders
from kernel_counts import KernelCounts

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about the sources")]

# As `record -v --cost` prints it.
COSTS = """wallprof: stack memo: 12 user stacks and 3 kernel stacks were not walked again
BPF program              runs     ns/run   total ms
on_switch              100000       2000    200.000
on_waking               50000       1000     50.000
on_tick                  1000       3000      3.000
on_migrate              49000        100      5.000
on_switch: kernel stack, remembered       100000        500     50.000
in all 258.000 ms, 12.90 % of one CPU over the window
wallprof: wrote x.capture; next: wallprof report x.capture
"""
# As `perf report --stats` prints it.
STATS = """
Aggregated stats:
          SAMPLE events:       1000  (32.9%)
    LOST_SAMPLES events:          4  ( 0.0%)
sched:sched_switch stats:
          SAMPLE events:        846
    LOST_SAMPLES events:        282
dummy:HG stats:
    LOST_SAMPLES events:        116
"""
# A process uses CPU time, as does its child, which has ended. It prints the sum, and waits.
BURNER = """
import os, sys, time
pid = os.fork()
begin = time.process_time()
while time.process_time() < begin + 0.25:
    pass
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
print(sum(os.times()[:4]), flush=True)
sys.stdin.read()
"""

# A benchmark with a busy loop and a child of a child that has ended, which is interrupted. It prints their pids.
INTERRUPTED = """
import subprocess, sys, time
sys.path.append(sys.argv[1])
import measure
def main():
    orphan = subprocess.run(["sh", "-c", "setsid sleep 1000 >/dev/null & echo $!"], stdout=subprocess.PIPE, text=True)
    loop = subprocess.Popen(measure.BUSY_LOOP)
    print(loop.pid, orphan.stdout, flush=True)
    time.sleep(1000)
"""


class Script(loads.Command):
    """A load of this test's."""
    name, unit, count_per_second, script = "script", "scripts", 3, "true"

    def command(self):
        return ["sh", "-c", self.script]


def run_servers(*arguments):
    return subprocess.run([ROOT / "tools" / "bench" / "servers", *arguments], capture_output=True, text=True)


def check_refused(arguments, message):
    done = run_servers(*arguments)
    check(done.returncode == 2 and message in done.stderr, f"{arguments}: {done.returncode} {done.stderr}")


def test_options():
    done = run_servers("--help")
    missing = [name for name in (*loads.LOADS, "--with", "--own-cpu", "--neighbour", "--perf", "--bpftrace")
               if name not in done.stdout]
    check(done.returncode == 0 and not missing, f"the help lacks {missing}: {done.stdout}{done.stderr}")
    check_refused(["--loads", "redis,nothing"], "no such load: 'nothing'")
    check_refused(["--rounds", "0"], "not a positive number: '0'")
    check_refused(["--with", "/nonexistent"], "not a program: '/nonexistent'")
    expect_failure(check_refused, ["--help"], "")


def check_explanation(text, rest):
    programs = explain.programs_of(text)
    explained = explain.explain(base=2, ticks=2500, added=0.4, recorder=0.02, programs=programs, tick=20e-6,
                                more_switches=0.004)
    check([program.name for program in programs] == ["on_switch", "on_waking", "on_tick", "on_migrate"], f"{programs}")
    check_close("the time around 200,000 runs", explained.parts["around the programs"], 0.01, 0, 1e-9)
    check_close("2500 ticks", explained.parts["interrupts of ticks"], 2500 * 20e-6, 0, 1e-9)
    check_close("more switches", explained.parts["more context switches"], 0.004, 0, 1e-9)
    check_close("not explained", explained.rest, rest, 0, 1e-9)
    check_close("the parts, and what they leave", explained.sum + explained.rest, 0.42, 0, 1e-9)
    check_close("per cent of the load", explained.share(0.5), 25, 0, 1e-9)
    check_close("throughput that half as much CPU time more takes", explained.loss(1), 100 / 3, 0, 1e-9)


def test_explanation():
    rest = 0.42 - (0.2 + 0.05 + 0.003 + 0.005 + 0.01 + 2500 * 20e-6 + 0.004 + 0.02)
    check_explanation(COSTS, rest)
    phases = [(row.name, row.seconds) for row in explain.phases_of(COSTS)]
    check(phases == [("on_switch: kernel stack, remembered", 0.05)], f"phases: {phases}")
    check(len(explain.memos_of(COSTS)) == 1, "the memo's line")
    expect_failure(check_explanation, COSTS.replace(" 5.000", " 6.000"), rest)


def check_lost(stats, share):
    found = recorders.lost_by(stats, recorders.Perf.event)
    check(found == share, f"lost {found}, should be {share}")


def test_lost_by_perf():
    check_lost(STATS, 0.25)
    check_lost(STATS.replace("sched:", "other:"), None)
    expect_failure(check_lost, STATS.replace("282", "283"), 0.25)


def test_cpu_time(context):
    """Of a process that runs, and of its child that has ended."""
    process = context.start([sys.executable, "-c", BURNER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    used = float(process.stdout.readline())
    found = measure.cpu_seconds(process.pid)
    check(used > 0.4, f"only {used} s were used")
    check_close("CPU time of the tree", found, used, 0, 0.05)
    expect_failure(check_close, "CPU time of the tree", found, used - 0.2, 0, 0.05)


# A thread moves between two CPUs, and is preempted there. It prints what the kernel says of its switches.
SWITCHER = """
import os, sys, time
print("ready", flush=True)
sys.stdin.readline()
first, second = sorted(os.sched_getaffinity(0))[:2]
for _ in range(20):
    os.sched_setaffinity(0, {first})
    time.sleep(0.001)
    os.sched_setaffinity(0, {second})
    time.sleep(0.001)
for _ in range(100):
    os.sched_yield()
print(open("/proc/self/status").read().partition("\\nvoluntary")[2], flush=True)
sys.stdin.read()
"""
MOVES = 40


def check_counts(counts, voluntary, involuntary):
    """The thread switched a few times more until it was looked at, but hardly more often."""
    check(involuntary <= counts.preemptions <= involuntary + 5,
          f"{counts.preemptions} preemptions, {involuntary} wanted")
    both = voluntary + involuntary
    check(both <= counts.switches <= both + 10, f"{counts.switches} switches, {both} wanted")
    check(MOVES - 1 <= counts.migrations <= MOVES + 5, f"{counts.migrations} migrations of {MOVES} moves")


def test_kernel_counts(context):
    """Those of a thread are what /proc says; the machine has at least as many."""
    needs_root()
    if len(os.sched_getaffinity(0)) < 2:
        raise Skip("there is one CPU only")
    process = context.start([sys.executable, "-c", SWITCHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    loops = [context.start(["taskset", "-c", str(cpu), *measure.BUSY_LOOP]) for cpu in os.sched_getaffinity(0)]
    process.stdout.readline()
    before = [int(line.split()[1]) for line in (Path("/proc") / str(process.pid) / "status").read_text().splitlines()
              if "voluntary" in line]
    with KernelCounts(process.pid) as own, KernelCounts() as machine:
        process.stdin.write("\n")
        process.stdin.flush()
        after = [int(process.stdout.readline().rpartition(":")[2]), int(process.stdout.readline().rpartition(":")[2])]
        counts, whole = own.read(), machine.read()
    for loop in loops:
        loop.kill()
    voluntary, involuntary = (end - begin for begin, end in zip(before, after))
    check(involuntary > 10, f"only {involuntary} involuntary switches")
    check_counts(counts, voluntary, involuntary)
    check(all(all_of >= one for all_of, one in zip(whole, counts)), f"the machine has {whole}, the thread {counts}")
    for field in counts._fields:
        expect_failure(check_counts, counts._replace(**{field: getattr(counts, field) // 2}), voluntary, involuntary)


def test_recorder_children(context):
    """The CPU time of a recorder's children is in that of the recorder, and is told apart."""
    recorder = recorders.Recorder("burner", context.folder)
    recorder.process = context.start([sys.executable, "-c", "import sys; sys.stdin.readline()\n" + BURNER],
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    recorder.begin()
    recorder.process.stdin.write("\n")
    recorder.process.stdin.flush()
    float(recorder.process.stdout.readline())
    recorder.end()
    cost = recorder.cost
    check(cost.children > 0.2, f"children: {cost.children} s")
    check_close("the recorder without its children", cost.cpu - cost.children, 0.25, 0.2, 0.1)


def run_script(folder, script):
    load = Script(folder, 1)
    load.script = script
    try:
        load.start()
        load.prepare()
        result = load.run()
        load.finish()
        return result
    finally:
        load.stop()


def test_command(context):
    """A command waits until it may run, its status counts, and it is ended with the load."""
    result = run_script(context.folder, "i=0; while [ $i -lt 30000 ]; do i=$((i + 1)); done")
    check(result.units == 3 and result.rate > 0 and result.cpu > 0, f"{result}")
    try:
        run_script(context.folder, "exit 3")
        check(False, "a failure is a result")
    except loads.LoadError as error:
        check("status 3" in str(error), str(error))
    load = Script(context.folder, 1)
    load.script = "echo $$ >pid; exec sleep 1000"
    load.prepare()
    check(not context.path("pid").exists(), "it did not wait")
    load.process.stdin.write(b"\n")
    load.process.stdin.flush()
    wait_until(lambda: context.path("pid").exists() and context.path("pid").read_text().strip(), "it runs")
    pid = int(context.path("pid").read_text())
    load.stop()
    wait_until(lambda: (measure.stat_fields(pid) or "Z")[0] == "Z", "it is ended with its load")


def test_missing(context):
    path = os.environ["PATH"]
    try:
        os.environ["PATH"] = str(context.folder)
        names = [name for name, load in loads.LOADS.items() if not load.missing() and not name.startswith("pgbench")]
    finally:
        os.environ["PATH"] = path
    check(not names, f"not missing: {names}")


def check_all_ended(pids):
    left = [pid for pid in pids if (measure.stat_fields(pid) or "Z")[0] != "Z"]
    check(not left, f"left behind: {left}")


def interrupt(context, start, number):
    """The pids of what an interrupted benchmark has started, and the exit status of the benchmark."""
    # What runs in the background of a shell script ignores SIGINT, and so would the benchmark.
    process = context.start([sys.executable, "-c", f"{INTERRUPTED}{start}\n", measure.ROOT / "tools" / "bench"],
                            stdout=subprocess.PIPE, text=True,
                            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    pids = list(map(int, process.stdout.readline().split()))
    try:
        check(len(pids) == 2 and all(measure.stat_fields(pid) for pid in pids), f"not running: {pids}")
        process.send_signal(number)
        return pids, process.wait(timeout=context.timeout_s)
    except BaseException:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        raise


def test_interrupted(context):
    """An interrupted benchmark leaves no process behind, also not one whose parent has ended."""
    for number in (signal.SIGINT, signal.SIGTERM):
        pids, status = interrupt(context, "sys.exit(measure.run_bench(main))", number)
        check(status == 128 + signal.SIGINT, f"status {status}")
        check_all_ended(pids)
    pids, _ = interrupt(context, "main()", signal.SIGTERM)
    try:
        expect_failure(check_all_ended, pids)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def check_runs_to_end(source):
    check(source.rstrip().endswith("sys.exit(run_bench(main))"), "it does not use run_bench()")


def test_all_use_it():
    """Each benchmark in Python ends what it has started."""
    found = [path for path in (ROOT / "tools" / "bench").iterdir()
             if path.suffix == "" and path.is_file() and "python3" in path.read_text().splitlines()[0]]
    check(len(found) > 5, f"hardly any: {found}")
    for path in found:
        check_runs_to_end(path.read_text())
    expect_failure(check_runs_to_end, found[0].read_text().replace("run_bench(main)", "main()"))
