# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks share: commands, their end, and what a capture says of itself."""
import ctypes
import json
import os
import re
import resource
import signal
import statistics
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
WALLPROF = str(BUILD / "wallprof")
WORKLOADS = BUILD / "tests" / "workloads"
sys.path += [str(ROOT / "tests" / "support" / "py"), str(ROOT / "tests" / "run")]

PIPE_LOOPS = 60000
PIPE = ["/usr/bin/taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", str(PIPE_LOOPS)]
PIPE_SWITCHES = 2 * PIPE_LOOPS
BUSY_LOOP = ["sh", "-c", "while :; do :; done"]
PR_SET_CHILD_SUBREAPER = 36  # prctl(2)


def run(command, **settings):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, **settings).stdout


@contextmanager
def running(command, how=signal.SIGKILL, **settings):
    """The command runs beside the block, and is ended with it by the signal `how`."""
    process = subprocess.Popen(list(map(str, command)), **settings)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(how)
        process.wait()


def end_descendants():
    """Kills all that this program has started and that still runs, and waits for it."""
    while True:
        for pid in process_tree(os.getpid()).keys() - {os.getpid()}:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:  # there are none
            return
        time.sleep(0.01)


def run_bench(main):
    """Returns the exit status of main(). However it ends, by SIGINT and SIGTERM as well, no process that it has started
    is left behind. A recorder that is killed leaves its command to this program, which is therefore made the parent of
    all orphans."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        return 128 + signal.SIGINT
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        end_descendants()


def record(capture, *options):
    return [WALLPROF, "record", "-q", "--defer-symbols", "-o", capture, *options, "--"]


def report(capture):
    return json.loads(run([WALLPROF, "report", "-q", "--json", capture]))


def lost(reported):
    """By a report."""
    return sum(total["lost"] for total in reported["totals"].values())


def raw_bytes(capture):
    with subprocess.Popen(["zstd", "-dcq", capture], stdout=subprocess.PIPE) as zstd:
        return sum(len(block) for block in iter(lambda: zstd.stdout.read(1 << 20), b""))


def stat_fields(pid):
    """/proc/PID/stat (proc(5)) from the third field, the state, on. None if there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as stat:
            return stat.read().rsplit(")", 1)[1].split()
    except OSError:
        return None


def process_tree(pid):
    """{pid: fields of its stat} of the process and its descendants that were not waited for yet."""
    fields = {int(name): found for name in os.listdir("/proc") if name.isdigit() and (found := stat_fields(name))}
    children = {}
    for child, found in fields.items():
        children.setdefault(int(found[1]), []).append(child)
    tree, waiting = {}, [pid]
    while waiting:
        process = waiting.pop()
        if process in fields:
            tree[process] = fields[process]
            waiting += children.get(process, [])
    return tree


def cpu_seconds(pid):
    """CPU time of a process and its descendants, those that have ended included."""
    ticks = sum(sum(map(int, fields[11:15])) for fields in process_tree(pid).values())
    return ticks / os.sysconf("SC_CLK_TCK")


def own_cpu_seconds(pid):
    """CPU time of a process without its descendants."""
    return sum(map(int, stat_fields(pid)[11:13])) / os.sysconf("SC_CLK_TCK")


def waited_for_cpu_seconds():
    """CPU time of all commands that this program has waited for."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def context_switches(pid):
    """Context switches of the threads of a process and its descendants, as far as they have not ended."""
    count = 0
    for process in process_tree(pid):
        for status in Path(f"/proc/{process}/task").glob("*/status"):
            try:
                count += sum(map(int, re.findall(r"^\w*voluntary_ctxt_switches:\s+(\d+)", status.read_text(), re.M)))
            except OSError:  # it has ended meanwhile
                pass
    return count


def machine_switches():
    """Context switches of all CPUs since the start of the machine."""
    return int(re.search(r"^ctxt (\d+)", Path("/proc/stat").read_text(), re.M)[1])


def medians(rows):
    """Column by column."""
    return [statistics.median(column) for column in zip(*rows)]


def load():
    """What else ran on the machine, to be printed beside the figures."""
    return f"{os.getloadavg()[0]:.1f}"


def verdict(what, value, limit, unit):
    """A line; returns whether it holds."""
    print(f"{'yes' if value <= limit else 'NO '}  {what}: {value:.3g} {unit}, must be "
          f"{limit:.3g} at most")
    return value <= limit
