# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks share: commands, and what a capture says of itself."""
import json
import os
import re
import resource
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
WALLPROF = str(BUILD / "wallprof")
WORKLOADS = BUILD / "tests" / "workloads"
sys.path += [str(ROOT / "tests" / "support" / "py"), str(ROOT / "tests" / "run")]

PIPE_LOOPS = 60000
PIPE = ["/usr/bin/taskset", "-c", "0", "perf", "bench", "sched", "pipe", "-l", str(PIPE_LOOPS)]
PIPE_SWITCHES = 2 * PIPE_LOOPS


def run(command, **settings):
    return subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, **settings).stdout


def usecs_per_op(prefix):
    """Of the pipe benchmark, started by the prefix."""
    return float(re.search(r"([\d.]+) usecs/op", run([*prefix, *PIPE])).group(1))


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
