# SPDX-License-Identifier: GPL-2.0-or-later
"""A busy machine: on idle CPUs most faults in the attribution of wakeups and of CPUs stay hidden."""
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

from harness import IN_GUEST

# Suites that must pass there as on an idle machine.
SUITES = ("test_block", "test_extract", "test_faults", "test_first_minute", "test_objects", "test_critical_path",
          "test_reasons", "test_strip", "test_system", "test_wakers")
NICE = 19  # so that the tested programs get CPU time
# Threads, each with a time-out of the timer wheel every few milliseconds. A guest takes as long for one of these, and they
# must not be all that runs there.
STORM, TIME_OUT_S, READ_PAUSE_S = (2, 0.025, 0.025) if IN_GUEST else (8, 0.004, 0.002)
READ_BYTES = 4 << 20

LOOP = f"import os\nos.nice({NICE})\nwhile True: pass"


def time_out_repeatedly(is_over):
    """A timer of the kernel's timer wheel, in a soft interrupt, ends recv() at its time limit."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        own.bind(("127.0.0.1", 0))
        own.settimeout(TIME_OUT_S)
        while not is_over.is_set():
            try:
                own.recv(1)
            except TimeoutError:
                pass


def read_repeatedly(path, is_over):
    """Reads from the disk and not from memory. On a disk with one queue, reads end in a soft interrupt."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    except OSError:  # a file system in memory
        return
    with os.fdopen(fd, "rb", buffering=0) as file:
        buffer = mmap.mmap(-1, 65536)
        while not is_over.wait(READ_PAUSE_S):
            if not file.readinto(buffer):
                file.seek(0)


class BusyMachine:
    """Keeps every CPU busy, lets timers of the timer wheel expire, and reads from a disk."""

    def __enter__(self):
        self.is_over, self.file = threading.Event(), tempfile.NamedTemporaryFile(dir="/var/tmp")
        self.file.write(os.urandom(READ_BYTES))
        self.file.flush()
        os.fsync(self.file.fileno())
        self.loops = [subprocess.Popen([sys.executable, "-c", LOOP]) for _ in range(os.cpu_count())]
        self.threads = [threading.Thread(target=time_out_repeatedly, args=(self.is_over,)) for _ in range(STORM)]
        self.threads.append(threading.Thread(target=read_repeatedly, args=(Path(self.file.name), self.is_over)))
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for loop in self.loops:
            loop.kill()
            loop.wait()
        for thread in self.threads:
            thread.join()
        self.file.close()
