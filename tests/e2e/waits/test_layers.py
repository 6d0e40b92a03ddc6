# SPDX-License-Identifier: GPL-2.0-or-later
"""Disks that lie on other disks: a request that is passed on is one request of its submitter, not two."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from block_io import (BLOCK, account, check_device, check_thread, markers_of, matches_in_notes, record_io,
                      thread_of)
from harness import (Skip, TimingFailure, check, expect_failure, fewer, needs_root, read_report)
from kernel_modules import load

SECTOR, PART = 512, 64 << 20  # bytes of each disk that is used
STRIPE = 65536


def load_null():
    """Two disks that do nothing, and at once."""
    load("null_blk", "nr_devices=2", "gb=1", "bs=4096")
    return ["nullb0", "nullb1"]


class Linear:
    """By the device mapper: one disk, and after it another."""

    def __enter__(self):
        load("dm-mod")
        disks, sectors = load_null(), PART // SECTOR
        table = "".join(f"{i * sectors} {sectors} linear /dev/{d} 0\n"
                        for i, d in enumerate(disks))
        subprocess.run(["dmsetup", "create", "wallprof-test"], input=table, text=True, check=True)
        reported = subprocess.run(["dmsetup", "info", "-c", "--noheadings", "-o", "blkdevname",
                                   "wallprof-test"], capture_output=True, text=True, check=True)
        return reported.stdout.strip(), disks

    def __exit__(self, *_):
        subprocess.run(["dmsetup", "remove", "wallprof-test"], check=True)


class Striped:
    """By md: RAID 0, without a superblock."""

    NAME = "md111"

    def write(self, name, value):
        Path("/sys/block", self.NAME, "md", name).write_text(str(value))

    def __enter__(self):
        load("raid0")
        disks = load_null()
        Path("/sys/module/md_mod/parameters/new_array").write_text(self.NAME)
        for name, value in (("metadata_version", "none"), ("level", "raid0"),
                            ("chunk_size", STRIPE), ("raid_disks", len(disks))):
            self.write(name, value)
        for slot, disk in enumerate(disks):
            self.write("new_dev", Path("/sys/block", disk, "dev").read_text())
            self.write(f"dev-{disk}/size", PART // 1024)
            self.write(f"dev-{disk}/slot", slot)
        self.write("array_state", "active")
        return self.NAME, disks

    def __exit__(self, *_):
        self.write("array_state", "clear")


class Compressed:
    """zram: its memory is the disk, and there are no requests."""

    CONTROL = Path("/sys/class/zram-control")

    def __enter__(self):
        if not self.CONTROL.exists():
            raise Skip("this kernel has no zram")
        self.number = int((self.CONTROL / "hot_add").read_text())
        Path(f"/sys/block/zram{self.number}/disksize").write_text(str(PART))
        return f"zram{self.number}", []

    def __exit__(self, *_):
        (self.CONTROL / "hot_remove").write_text(str(self.number))


def check_layers(context, layers):
    """Each disk has its requests; the thread has those that it made, and no others."""
    needs_root()
    steps = {k: fewer(context.random.randint(200, 600)) for k in ("direct", "store")}
    with layers as (name, disks):
        os.close(os.open(f"/dev/{name}", os.O_RDONLY))  # the first to open it looks for partitions
        before = {disk: account(disk) for disk in (name, *disks)}
        profile, report, reported = record_io(context, f"/dev/{name}", steps)
        after = {disk: account(disk) for disk in (name, *disks)}
    for disk in before:
        check_device(report, disk, before[disk], after[disk])
    check_thread(report, reported["direct"], steps["direct"], 0)
    check_thread(report, reported["store"], 0, steps["store"])
    for kind in steps:
        check_parts(profile, report, reported[kind], name, disks)
    reported["direct"]["read_bytes"] += (matches_in_notes(report, "omitted (completion not observed)") + 1) * BLOCK
    expect_failure(check_thread, report, reported["direct"], steps["direct"], 0)
    after[name]["reads"] += matches_in_notes(report, "omitted (completion not observed)") + 1
    expect_failure(check_device, report, name, before[name], after[name])


def check_parts(profile, report, reported, name, disks):
    """The thread's requests say what disk they are to, and those of its disks what they are part of."""
    strings, unseen = profile.data["shared"]["stringArray"], matches_in_notes(report, "omitted (completion not observed)")
    whole, parts = [], []
    for marker in markers_of(profile, reported["pid"], "BlockIO"):
        device = strings[marker["data"]["device"]].split(" ")[0]
        part_of = strings[marker["data"]["partOf"]] if "partOf" in marker["data"] else None
        if device == name:
            check(part_of is None, f"a request to {name} is called a part of {part_of}")
            whole.append(marker)
        elif device in disks:
            check(part_of and part_of.split(" ")[0] == name, f"part of {part_of}, should be {name}")
            parts.append(marker)
    for what, found in (("whole", whole), *((("parts", parts),) if disks else ())):
        check(reported["count"] - unseen <= len(found) <= reported["count"],
              f"{what}: {len(found)}, should be {reported['count']}")
    io = thread_of(report, reported)["io"]
    check(io["reads"] + io["writes"] == len(whole), f"{io}, and {len(whole)} markers")


def test_linear(context):
    check_layers(context, Linear())


def test_striped(context):
    check_layers(context, Striped())


@pytest.mark.host_only("it has zram at hand")
def test_compressed(context):
    check_layers(context, Compressed())


def test_storm(context):
    """Makes as many requests as the machine can; each is recorded, or counted as lost."""
    needs_root()
    disk, _ = load_null()
    count = fewer(context.random.randint(60_000, 90_000))
    before = account(disk)
    _, report, reported = record_io(context, f"/dev/{disk}", {"direct": count})
    made, reported = account(disk)["reads"] - before["reads"], reported["direct"]
    (found,) = [d for d in report["devices"] if d["name"] == disk]
    lost = report["totals"]["request"]["lost"] + matches_in_notes(report, "omitted (completion not observed)")
    print(f"# storm: {1e9 * count / (reported['end_ns'] - reported['begin_ns']):.0f} requests a second, "
          f"{lost} lost", flush=True)
    check(made >= count, f"the kernel counted {made} of {count}")
    check(made - lost <= found["reads"] <= made, f"{found['reads']} of {made}, and {lost} lost")
    check(os.path.exists(context.path("p.json")), "no profile")


class Backed:
    """A disk that takes one request at a time, and long: others wait, and are merged."""

    CONFIG, NAME = Path("/sys/kernel/config"), "wallprof_test"

    def __enter__(self):
        load_null()
        self.folder = self.CONFIG / "nullb" / self.NAME
        if not self.folder.parent.exists():
            subprocess.run(["mount", "-t", "configfs", "config", self.CONFIG], check=True)
        self.folder.mkdir()
        for name, value in (("size", PART >> 20), ("blocksize", BLOCK), ("irqmode", 2),
                            ("completion_nsec", 100_000_000), ("hw_queue_depth", 1), ("power", 1)):
            (self.folder / name).write_text(str(value))
        queue = Path("/sys/block", self.NAME, "queue")
        if "mq-deadline" not in (queue / "scheduler").read_text():
            load("mq-deadline")
        (queue / "scheduler").write_text("mq-deadline")
        # By itself it has room for two, and what finds none waits where nothing is merged.
        (queue / "nr_requests").write_text("64")
        return self.NAME

    def __exit__(self, *_):
        (self.folder / "power").write_text("0")
        self.folder.rmdir()


NEIGHBOURS = """
import mmap, os, sys, threading
disk, count = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), int(sys.argv[3])
def read(number):
    block = mmap.mmap(-1, 4096)
    for i in range(count):
        os.preadv(disk, [block], (i * 6 + number) * 4096)
threads = [threading.Thread(target=read, args=(n,)) for n in (3, 1, 0, 2, 5, 4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
io = dict(line.split(": ") for line in open("/proc/self/io"))
open(sys.argv[2], "w").write(io["read_bytes"])
"""


def merges_of(name):
    return int(Path("/sys/block", name, "stat").read_text().split()[1])


def test_merged(context):
    """Requests of several threads that become one are the process's, to the byte."""
    needs_root()
    count, truth, output = context.random.randint(12, 18), context.path("truth"), context.path("p.json")
    with Backed() as name:
        os.close(os.open(f"/dev/{name}", os.O_RDONLY))
        before, merges = account(name), merges_of(name)
        context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, "-c",
                         NEIGHBOURS, f"/dev/{name}", truth, str(count))
        after, merges = account(name), merges_of(name) - merges
    report = read_report(context, context.path("p.capture"))
    check_device(report, name, before, after)
    if merges == 0:
        raise TimingFailure("nothing was merged")
    got = sum(t["io"]["read_bytes"] for t in report["threads"])
    print(f"# {6 * count} reads, {merges} merges", flush=True)
    check_process(got, int(truth.read_text()), matches_in_notes(report, "omitted (completion not observed)"))
    expect_failure(check_process, got - 7 * BLOCK, int(truth.read_text()), 0)


def check_process(got, reported, unseen):
    check(0 <= reported - got <= unseen * 6 * BLOCK, f"{got} bytes, the kernel counted {reported}")
