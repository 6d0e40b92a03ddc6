# SPDX-License-Identifier: GPL-2.0-or-later
"""Recorders that the benchmark of real loads compares: no recorder, wallprof with options, perf, bpftrace."""
import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from measure import context_switches, cpu_seconds, own_cpu_seconds, run, stat_fields

START_S, STOP_S = 60, 300  # perf writes a gigabyte
STEADY_S = 1
NO_STACKS = ["--stacks", "none", "--kernel-stacks", "none"]
BPFTRACE_PROGRAM = "tracepoint:sched:sched_switch { @[kstack, ustack] = count(); } END { clear(@); }"


class Cost(NamedTuple):
    """CPU seconds and context switches of a recorder and its children while the load ran, and CPU seconds of its
    children alone; the bytes that it wrote, and the share of its records that it lost (None: not known)."""
    cpu: float = 0
    children: float = 0
    switches: int = 0
    size: int = 0
    lost: float | None = None


def event_descriptors(pid):
    """How many perf events and BPF objects a process has open."""
    count = 0
    for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            target = os.readlink(descriptor)
        except OSError:  # closed meanwhile
            continue
        count += target.startswith("anon_inode:") and ("perf" in target or "bpf" in target)
    return count


def lost_by(stats, event):
    """The share of an event's samples that perf lost, from its statistics. None if it has none of the event."""
    counts = re.search(rf"^{re.escape(event)} stats:\n((?: .*\n)*)", stats, re.M)
    if not counts:
        return None
    by_name = {name: int(count) for name, count in re.findall(r"(\w+) events: +(\d+)", counts[1])}
    lost = by_name.get("LOST_SAMPLES", 0)
    return lost / (lost + by_name["SAMPLE"])


class Recorder:
    """Runs beside a load, from start() to stop(). begin() and end() say when the load begins and ends."""
    statuses = (0,)  # after SIGINT

    def __init__(self, name, folder, prefix=()):
        self.name, self.output, self.prefix = name, folder / "recorded", list(prefix)
        self.process = self.text = None

    def command(self, pid):
        raise NotImplementedError

    def start(self, pid):
        """Starts it for the process `pid` and those that descend from it, and waits until it records."""
        self.text = None
        self.process = subprocess.Popen([*self.prefix, *map(str, self.command(pid))], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        deadline, before = time.monotonic() + START_S, 0
        while True:
            time.sleep(STEADY_S / 2)
            now = event_descriptors(self.process.pid)
            if now and now == before:
                break
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{self.name} does not record: {self.finish()[-500:]}")
            before = now
        time.sleep(STEADY_S)

    def spent(self):
        """CPU seconds with and without those of its children, and context switches, up to now."""
        pid = self.process.pid
        return cpu_seconds(pid), own_cpu_seconds(pid), context_switches(pid)

    def begin(self):
        self.before = self.spent()

    def end(self):
        if stat_fields(self.process.pid)[0] == "Z":
            raise RuntimeError(f"{self.name} has ended before the load: {self.finish()[-500:]}")
        cpu, own, switches = (after - before for after, before in zip(self.spent(), self.before))
        self.cost = Cost(cpu, cpu - own, switches)

    def finish(self):
        """Ends it; returns and keeps its messages."""
        if self.text is None:
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGINT)
            try:
                self.text = self.process.communicate(timeout=STOP_S)[0]
            except BaseException:
                self.process.kill()
                self.process.wait()
                raise
        return self.text

    def stop(self):
        """Ends it, and returns what it cost. What it wrote is there until discard()."""
        self.finish()
        if self.process and self.process.returncode not in self.statuses:
            raise RuntimeError(f"{self.name} failed: status {self.process.returncode}: {self.text[-500:]}")
        size = self.output.stat().st_size if self.output.exists() else 0
        return self.cost._replace(size=size, lost=self.lost())

    def lost(self):
        """The share of its records that it lost, or None."""
        return None

    def discard(self):
        """Always called at the end."""
        if self.process and self.text is None:
            self.finish()
        self.output.unlink(missing_ok=True)


class Wallprof(Recorder):
    def __init__(self, name, folder, prefix=(), path=None, options=()):
        super().__init__(name, folder, prefix)
        self.path, self.options = path, list(options)

    def command(self, pid):
        return [self.path, "record", "--defer-symbols", "-o", self.output, *self.options, "-p", pid]


class Perf(Recorder):
    """Of the whole system, because the switches of a process do not say what follows them."""
    statuses = (0, 130, -signal.SIGINT)
    event = "sched:sched_switch"
    options = ["-a", "-e", event, "--call-graph", "dwarf,8192"]

    def command(self, pid):
        # Build IDs are read at the end: perf 6.1 sometimes aborts there, and they are not needed.
        return ["perf", "record", "-q", "--no-buildid", "--no-buildid-cache", *self.options, "-o", self.output]

    def lost(self):
        return lost_by(run(["perf", "report", "-i", self.output, "--stats"]), self.event)


class Bpftrace(Recorder):
    def command(self, pid):
        return ["bpftrace", "-e", BPFTRACE_PROGRAM]


class Alone(Recorder):
    """No recorder. It waits as long as another takes to start, because a server may do work of its own meanwhile."""
    cost = Cost()

    def start(self, pid):
        time.sleep(2 * STEADY_S)

    def begin(self):
        pass

    def end(self):
        pass

    def finish(self):
        return ""


def missing(program):
    return None if shutil.which(program) else f"{program} is not installed"
