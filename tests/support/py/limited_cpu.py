# SPDX-License-Identifier: GPL-2.0-or-later
"""A cgroup that may use a part of one CPU."""
import os
import subprocess
from contextlib import ExitStack

import cgroups
from harness import Skip, needs_root, wait_until

PERIOD_US = 50_000


class LimitedCpu:
    """In every PERIOD_US `quota_us`, all its threads together."""

    def __init__(self, context, quota_us):
        needs_root()
        self.context, self.quota_us, self.left = context, quota_us, ExitStack()
        self.old = cgroups.old("cpu")
        self.group = None

    def enter(self):
        root = self.old or cgroups.unified(self.context, self.left, "cpu")
        self.group = root / f"wallprof-cpu-{os.getpid()}"
        self.group.mkdir()
        self.left.callback(self.group.rmdir)
        self.left.callback(wait_until, lambda: not (self.group / "cgroup.procs").read_text(),
                           "no process is in the cgroup any more")
        # With the largest weight it reaches its limit beside other loops, too, and does not wait for a CPU before.
        (self.group / ("cpu.shares" if self.old else "cpu.weight")).write_text("262144" if self.old else "10000")
        if self.old:
            (self.group / "cpu.cfs_period_us").write_text(str(PERIOD_US))
            (self.group / "cpu.cfs_quota_us").write_text(str(self.quota_us))
        else:
            (self.group / "cpu.max").write_text(f"{self.quota_us} {PERIOD_US}")

    def __enter__(self):
        try:
            self.enter()
        except (OSError, subprocess.CalledProcessError) as error:
            self.left.close()
            raise Skip(f"no cgroup here can limit CPUs: {error}") from None
        return self

    def __exit__(self, *_):
        self.left.close()

    def command(self, command):
        """Returns a command that enters the cgroup and then executes that command."""
        return ["sh", "-c", f'echo $$ > "{self.group}/cgroup.procs"; exec "$@"', "sh", *command]

    def throttled_ns(self):
        """Returns how long it was throttled, by the kernel's account."""
        stat = dict(line.split() for line in (self.group / "cpu.stat").read_text().splitlines())
        return int(stat["throttled_time"]) if self.old else int(stat["throttled_usec"]) * 1000
