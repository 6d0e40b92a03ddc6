# SPDX-License-Identifier: GPL-2.0-or-later
"""Call paths weigh what perf's weigh, which copies the stack and unwinds it afterwards.

Half the sum of the differences of all paths' shares is how far two profiles are apart. wallprof's
may be from perf's at most twice as far as perf's are from each other, or as two samples of such sizes are on
average by chance alone: a single pair may lie nearer.
"""
import math
import os
import re
import subprocess
from collections import Counter

import pytest

from chains import Stacks, events_of
from harness import WORKLOADS, Profile, check, expect_failure, needs_command, needs_root
from test_unwind import STACKS

pytestmark = pytest.mark.host_only("it needs perf")
FREQUENCY = "499"  # perf writes 64 kB for each
RUNS = 2


def shares(paths):
    total = sum(paths.values())
    return {path: n / total for path, n in paths.items()}


def distance(one, other):
    one, other = shares(one), shares(other)
    return sum(abs(one.get(p, 0) - other.get(p, 0)) for p in one.keys() | other.keys()) / 2


def distance_by_chance(one, other):
    """The mean distance of two random samples of these sizes from the paths of both together: of a path with the share p
    the difference is normal, with the variance p (1 - p) (1 / n + 1 / m), and the mean of its size sqrt(2 / pi) of
    the deviation."""
    both, sizes = shares(one + other), 1 / sum(one.values()) + 1 / sum(other.values())
    return sum(math.sqrt(2 / math.pi * p * (1 - p) * sizes) for p in both.values()) / 2


def path_of(names):
    """Outermost first, from main on; a function of libc is one, whatever it is called."""
    names = list(names)
    return tuple(names[names.index("main"):]) if "main" in names else ("(not in main)",)


def perf_paths(context, command, name):
    """The shares of the user stacks that perf has."""
    data = context.path(name)
    # Without build ids: perf 6.1 may smash its stack over them.
    run = subprocess.run(["perf", "record", "-q", "--no-buildid", "--no-buildid-cache", "-o", data, "-e",
                          "cpu-clock:u", "-F", FREQUENCY, "--call-graph", "dwarf,65528", "--", *command], capture_output=True,
                         text=True)
    check(run.returncode == 0, f"perf record: {run.stderr[-500:]}")
    script = subprocess.run(["perf", "script", "-i", data, "--no-inline", "-F",
                             "comm,ip,sym,dso"], capture_output=True, text=True, check=True,
                            env={**os.environ, "DEBUGINFOD_URLS": ""})
    data.unlink()
    paths = Counter()
    for block in script.stdout.split("\n\n"):
        frames = re.findall(r"^\s+[0-9a-f]+ (.*) \((.*)\)$", block, re.M)
        if frames:
            paths[path_of(short(symbol, os.path.basename(library))
                          for symbol, library in reversed(frames))] += 1
    return paths


def short(symbol, library):
    return "libc" if library.startswith("libc.so") else symbol.partition("+")[0]


def wallprof_paths(context, command):
    """The shares of wallprof's ticks in user mode."""
    output, paths = context.path("p.json.gz"), Counter()
    context.wallprof("-q", *STACKS, "-F", FREQUENCY, "-o", output, "--", *command)
    profile = Profile.load(output)
    stacks = Stacks(profile)
    for thread in profile.threads:
        for sample, event, _ in events_of(thread):
            if event == "tick" and thread.sample_categories[sample] == "User":
                paths[path_of(short(f.name, f.library or "")
                              for f in stacks.user(thread, sample))] += 1
    return paths


def check_as_near(ours, perfs):
    apart = max(distance(*perfs), distance_by_chance(*perfs))
    mine = max(distance(ours, perf) for perf in perfs)
    check(mine <= 2 * apart, f"{mine:.4f} from perf, whose runs are {apart:.4f} apart")
    return mine, apart


def without_a_frame(paths):
    """Returns the paths without the second innermost function of each."""
    lost = Counter()
    for path, n in paths.items():
        lost[path[:-2] + path[-1:]] += n
    return lost


def test_call_paths(context):
    needs_root()
    needs_command("perf")
    command = [str(WORKLOADS / "paths"), str(context.random.randint(4000, 5000))]
    perfs = [perf_paths(context, command, f"perf{i}.data") for i in range(RUNS)]
    ours = wallprof_paths(context, command)
    check(len(ours) >= 15 and sum(ours.values()) > 1000, f"{len(ours)} paths: {ours}")
    mine, apart = check_as_near(ours, perfs)
    print(f"# call paths: {mine:.4f} from perf's, which are {apart:.4f} apart; "
          f"{sum(ours.values())} ticks on {len(ours)} paths, perf's on {len(perfs[0])}", flush=True)
    expect_failure(check_as_near, without_a_frame(ours), perfs)
