# SPDX-License-Identifier: GPL-2.0-or-later
"""How often the kernel switched, preempted and migrated tasks, by its own events: perf_event_open(2) as a counter.

A preemption is a switch from a task that could have gone on, a migration a switch to a task that ran on another CPU
before. The idle task is never counted as preempted.
"""
import ctypes
import fcntl
import os
import struct
import subprocess
from pathlib import Path
from typing import NamedTuple

NR_PERF_EVENT_OPEN = 298  # x86-64
PERF_TYPE_SOFTWARE, PERF_TYPE_TRACEPOINT = 1, 2
PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS = 3, 4
PERF_EVENT_IOC_SET_FILTER = 0x40082406
PERF_FLAG_FD_CLOEXEC = 8
ATTR_SIZE = 64  # PERF_ATTR_SIZE_VER0
ALL_PROCESSES = -1
# A task that has yielded, or was preempted where it returns to user mode, is running (0); one that was preempted in the
# kernel has a flag of its own.
PREEMPTED = b"prev_pid != 0 && (prev_state == 0 || prev_state == 0x100)\0"
TRACEFS = Path("/sys/kernel/tracing")
LIBC = ctypes.CDLL(None, use_errno=True)


class Counts(NamedTuple):
    switches: float
    preemptions: float
    migrations: float


def open_event(kind, config, pid, cpu):
    attr = struct.pack("<IIQ", kind, ATTR_SIZE, config).ljust(ATTR_SIZE, b"\0")
    fd = LIBC.syscall(NR_PERF_EVENT_OPEN, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), f"perf_event_open: {os.strerror(ctypes.get_errno())}")
    return fd


def event_folder():
    folder = TRACEFS / "events" / "sched" / "sched_switch"
    if not folder.exists():
        subprocess.run(["mount", "-t", "tracefs", "nodev", TRACEFS], check=True)
    return folder


class KernelCounts:
    """Counts from its beginning, for the whole machine or for one thread. read() returns what was counted since."""

    def __init__(self, pid=ALL_PROCESSES):
        cpus = sorted(os.sched_getaffinity(1)) if pid == ALL_PROCESSES else [-1]
        self.events = []
        wanted = [(PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, None),
                  (PERF_TYPE_TRACEPOINT, int((event_folder() / "id").read_text()), PREEMPTED),
                  (PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, None)]
        try:
            for kind, config, condition in wanted:
                self.events.append([])
                for cpu in cpus:
                    self.events[-1].append(open_event(kind, config, pid, cpu))
                    if condition:
                        fcntl.ioctl(self.events[-1][-1], PERF_EVENT_IOC_SET_FILTER, condition)
        except BaseException:
            self.close()
            raise

    def read(self):
        return Counts(*(sum(struct.unpack("<Q", os.read(fd, 8))[0] for fd in fds) for fds in self.events))

    def close(self):
        for fds in self.events:
            for fd in fds:
                os.close(fd)
        self.events = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
