# SPDX-License-Identifier: GPL-2.0-or-later
"""What the benchmarks share: commands, and what a capture says of itself."""
import json
import os
import re
import statistics
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
WALLPROF = str(BUILD / "wallprof")
WORKLOADS = BUILD / "tests" / "workloads"
sys.path.append(str(ROOT / "tests" / "support" / "py"))

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
