# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks that let so much pass in a second, and no more."""
import os
import re
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from block_io import LoopDisk
import cgroups
from harness import (IN_GUEST, MS, Failure, HostBusy, Skip, TimingFailure, check_close, needs_command, needs_root,
                     wait_until)


class SlowDisk:
    """A disk with a limit of bytes and operations a second."""

    BURST_NS = 100 * MS  # so much of a second's worth passes at once at first

    def __init__(self, size, operations):
        self.bytes, self.operations = size, operations

    def time(self, operations, size):
        return 1e9 * max(size / self.bytes, operations / self.operations)

    def check_time(self, what, got, least, most=None):
        """No more is allowed for here than elsewhere: it goes by the host's clock, as its guest's do."""
        try:
            check_close(what, got, min(max(got, least), most or least), 0.05, self.BURST_NS)
        except Failure as failure:
            raise TimingFailure(str(failure)) from None

    def took(self, reported, operations, size):
        """Returns how long the workload took by its own clock, or the time of the disk's limit if that is more."""
        self.by_rate, self.by_clock = self.time(operations, size), reported["end_ns"] - reported["begin_ns"]
        return max(self.by_clock, self.by_rate)

    def check_host(self):
        """Checks that the time is that of the disk's limit; otherwise the guest waited for its host."""
        try:
            self.check_time("the workload", self.by_clock, self.by_rate)
        except TimingFailure as failure:
            if IN_GUEST and self.by_clock > self.by_rate:
                raise HostBusy(str(failure)) from None
            raise


class Throttled(SlowDisk):
    """The guests' slow disk."""

    def __init__(self):
        words = dict(re.findall(r"(\w+)=(\d+)", Path("/proc/cmdline").read_text()))
        if "slow_bytes" not in words:
            raise Skip("no disk here is slow by a known amount")
        super().__init__(int(words["slow_bytes"]), int(words["slow_operations"]))


class Limited(SlowDisk):
    """A disk with a limit of bytes or operations per second for a cgroup. Processes that the context starts within
    `with` are in that cgroup."""

    HANGS_S = 15  # what takes so long would never end; see __exit__

    def __init__(self, context, path, size=sys.maxsize, operations=sys.maxsize):
        super().__init__(size, operations)
        needs_root()
        disk = Path("/sys/block", disk_below(path), "dev")
        if not disk.exists():
            raise Skip("not on a disk that could be limited")
        self.path = path
        self.number, self.name = disk.read_text().strip(), f"wallprof-{os.getpid()}"
        self.context, self.left = context, ExitStack()

    def enter(self):
        root = cgroups.old("blkio")
        if root:
            limits = {"blkio.throttle.read_bps_device": f"{self.number} {self.bytes}",
                      "blkio.throttle.read_iops_device": f"{self.number} {min(self.operations, 1 << 30)}"}
            none = dict.fromkeys(limits, f"{self.number} 0")
        else:
            root = cgroups.unified(self.context, self.left, "io")
            limits = {"io.max": f"{self.number} rbps={self.bytes} riops={min(self.operations, 1 << 30)}"}
            none = {"io.max": f"{self.number} rbps=max riops=max"}
        group = root / self.name
        group.mkdir()
        self.left.callback(group.rmdir)
        # A process that could not be stopped has still to end.
        self.left.callback(wait_until, lambda: not (group / "cgroup.procs").read_text(),
                           "no process is in the cgroup any more")
        for limit, text in limits.items():
            (group / limit).write_text(text)
            self.left.callback((group / limit).write_text, none[limit])
        self.context.cgroup = group
        self.left.callback(setattr, self.context, "cgroup", None)

    def __enter__(self):
        try:
            self.enter()
        except OSError as error:
            self.left.close()
            raise Skip(f"no cgroup here can limit a disk: {error}") from None
        if not IN_GUEST:
            self.context.timeout_s = self.HANGS_S
        return self

    def __exit__(self, kind, *_):
        """Once in some hundred times this machine's kernel lets nothing through any more, until the limit
        is written once more; a guest's may not."""
        is_stuck = kind is subprocess.TimeoutExpired and not IN_GUEST and self.lets_nothing_through()
        self.left.close()
        if is_stuck:
            raise Skip("this kernel let nothing pass any more, until the limit was lifted")

    def lets_nothing_through(self):
        """Returns whether a process in the group cannot read one block from the disk within 5 s."""
        reading = self.context.start(["dd", f"if={self.path}", "of=/dev/null", "bs=4096", "count=1", "iflag=direct"])
        try:
            reading.wait(5)
        except subprocess.TimeoutExpired:
            return True
        return False


class LittleDirty:
    """Limits how much may wait to be written before writers are throttled."""

    LIMITS = {"dirty_background_bytes": 1 << 20, "dirty_bytes": 2 << 20}
    SYSCTL = Path("/proc/sys/vm")

    def most(self):
        """Returns what may be left to write: the kernel counts dirty bytes, and bytes that are being written, for each
        CPU apart, and sums up when so many pages have come together (mm/vmstat.c,
        calculate_normal_threshold)."""
        cpus, memory = os.cpu_count(), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        apart = min(125, 2 * cpus.bit_length() * (1 + (memory >> 27).bit_length()))
        return self.LIMITS["dirty_bytes"] + 2 * cpus * apart * os.sysconf("SC_PAGE_SIZE")

    def __enter__(self):
        # Either a number of bytes holds or a ratio; the other is 0.
        self.before = {}
        for name in self.LIMITS:
            for either in (name, name.replace("bytes", "ratio")):
                value = (self.SYSCTL / either).read_text().strip()
                if value != "0":
                    self.before[either] = value
        for name, value in self.LIMITS.items():
            (self.SYSCTL / name).write_text(str(value))
        return self

    def __exit__(self, *_):
        for name, value in self.before.items():
            (self.SYSCTL / name).write_text(value)


def disk_below(path):
    """The name of the disk that a file is on."""
    device = os.stat(path).st_dev
    return os.path.basename(os.path.realpath(f"/sys/dev/block/{os.major(device)}:"
                                             f"{os.minor(device)}"))


class LimitedMount:
    """A file system on a loop device that reads and writes so many bytes a second, for all processes together."""

    LIMITS = [cgroups.ROOT / "blkio" / f"blkio.throttle.{way}_bps_device" for way in ("read", "write")]

    def __init__(self, context, image_size):
        needs_root()
        needs_command("mkfs.ext4")
        if not all(limit.exists() for limit in self.LIMITS):
            raise Skip("no cgroup of this machine can limit what all do")
        self.disk, self.path, self.left = LoopDisk(context, image_size), context.path("mount"), ExitStack()
        self.number = Path("/sys/block", self.disk.name, "dev").read_text().strip()

    def __enter__(self):
        with self.left:
            self.left.enter_context(self.disk)
            subprocess.run(["mkfs.ext4", "-q", "-E", "lazy_itable_init=0", self.disk.path], check=True)
            self.path.mkdir()
            subprocess.run(["mount", self.disk.path, self.path], check=True)
            # A program that could not be stopped may still write there.
            self.left.callback(subprocess.run, ["umount", "--lazy", self.path], check=True)
            self.left = self.left.pop_all()
        return self

    def limit(self, rate):
        for limit in self.LIMITS:
            limit.write_text(f"{self.number} {rate}")

    def __exit__(self, *_):
        self.limit(0)
        self.left.close()


class LateDisk:
    """A file system on a loop device that takes its time for each read, and does one after the other. It is for reading,
    and its files are not in memory at first."""

    def __init__(self, context, delay_s, files, queue=128):
        """files: {name: size}. queue: how many requests the device takes before those that come wait."""
        needs_root()
        for command in ("losetup", "mkfs.ext4"):
            needs_command(command)
        if not os.path.exists("/dev/fuse"):
            raise Skip("this kernel has no FUSE")
        self.context, self.delay_s, self.files, self.queue = context, delay_s, files, queue
        self.path, self.left = context.path("mount"), ExitStack()

    def make_image(self):
        content, image = self.context.path("content"), self.context.path("image")
        content.mkdir()
        for name, size in self.files.items():
            (content / name).write_bytes(os.urandom(size))
        size = sum(self.files.values()) + (4 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-O", "^has_journal", "-d", content, image, f"{size >> 10}k"], check=True)
        return image

    def enter(self):
        image, folder = self.make_image(), self.context.path("late")
        folder.mkdir()
        # Others that want a CPU do not make it slower.
        server = self.context.start(["nice", "-n", "-20", sys.executable, Path(__file__).with_name("fuse_server.py"), folder,
                                     image.stat().st_size, self.delay_s, image], stdout=subprocess.PIPE)
        if server.stdout.readline() != b"ready\n":
            raise Skip("no FUSE server can be started here")
        self.left.callback(subprocess.run, ["umount", "--lazy", folder], check=True)
        device = subprocess.run(["losetup", "--find", "--show", "--read-only", folder / "file"], check=True,
                                capture_output=True, text=True).stdout.strip()
        self.left.callback(subprocess.run, ["losetup", "--detach", device], check=True)
        self.name = device.rpartition("/")[2]
        self.path.mkdir()
        subprocess.run(["mount", "-o", "ro", device, self.path], check=True)
        self.left.callback(subprocess.run, ["umount", "--lazy", self.path], check=True)
        requests = Path("/sys/block", self.name, "queue", "nr_requests")
        before = requests.read_text()
        requests.write_text(str(self.queue))
        self.left.callback(requests.write_text, before)

    def __enter__(self):
        with self.left:
            self.enter()
            self.left = self.left.pop_all()
        return self

    def __exit__(self, *_):
        self.left.close()
