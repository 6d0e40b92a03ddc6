# SPDX-License-Identifier: GPL-2.0-or-later
"""Records the workload of block I/O, and holds what comes out to what the kernel counts."""
import json
import os
import re
import subprocess
from pathlib import Path

from harness import (WORKLOADS, Profile, check, needs_command, needs_root, read_report)

BLOCK, CHUNK, SYNCED = 4096, 65536, 1 << 20
LARGEST = 1 << 20  # of a request through the page cache
SECTOR = 512
# The truth file's page, of a folio that may have more than one page (ext4, since 6.16), and its offset.
OWN_WRITES = 16 * 4096


class LoopDisk:
    """A loop device over a file of random bytes."""

    def __init__(self, context, size):
        needs_root()
        needs_command("losetup")
        self.image = context.path("image")
        self.image.write_bytes(os.urandom(size))
        self.path = subprocess.run(["losetup", "--find", "--show", self.image], check=True,
                                   capture_output=True, text=True).stdout.strip()
        self.name = self.path.rpartition("/")[2]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["losetup", "--detach", self.path], check=True)


def paths_of(name):
    """An NVMe disk that may have several paths is one without accounts before 6.11: they have."""
    match = re.fullmatch(r"(nvme\d+)(n\d+)", name)
    return match and sorted(Path("/sys/block").glob(f"{match[1]}c*{match[2]}")) or [
        Path("/sys/block") / name]


def account(name):
    """Returns the kernel's counts of a disk: requests and bytes, read and written (iostats.rst)."""
    fields = [sum(column) for column in zip(*([int(f) for f in (p / "stat").read_text().split()]
                                              for p in paths_of(name)))]
    return {"reads": fields[0], "read_bytes": fields[2] * SECTOR,
            "writes": fields[4], "written_bytes": fields[6] * SECTOR}


def record_io(context, file, steps):
    """Profile, report and truth by kind; steps: {kind: count}."""
    truth, output = context.path("truth"), context.path("p.json")
    truth.unlink(missing_ok=True)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", WORKLOADS / "io", truth, file,
                     *(f"{k}:{n}" for k, n in steps.items()))
    reported = [json.loads(line) for line in truth.read_text().splitlines()]
    report = read_report(context, context.path("p.capture"))
    return Profile.load(output), report, {t["kind"]: t for t in reported}


def thread_of(report, reported):
    (found,) = [t for t in report["threads"] if t["tid"] == reported["pid"]]
    return found


def matches_in_notes(report, what):
    """Returns the number in the recorder's note with these words."""
    notes = [re.match(f"block I/O: (\\d+) requests {re.escape(what)}", note) for note in report["notes"]]
    return sum(int(n[1]) for n in notes if n)


def check_device(report, name, before, after, largest=LARGEST):
    """All that the kernel counted for the device, and nothing else.

    On one kernel in our hands (6.18, of a Firecracker guest) no BPF program, be it the smallest, is
    run for some completions, one of 100,000 or so; the recorder reports how many.
    """
    (found,) = [d for d in report["devices"] if d["name"] == name]
    unseen = matches_in_notes(report, "omitted (completion not observed)")
    for key, count in after.items():
        missing = count - before[key] - found[key]
        check(0 <= missing <= (unseen * largest if "bytes" in key else unseen),
              f"{name}: {key}: {found[key]}, the kernel counted {count - before[key]}, {unseen} "
              "requests were not seen to complete")
    check(found["failed"] == 0, f"{found['failed']} failed")


def check_thread(report, reported, reads, writes):
    """Returns the bytes in the kernel's account of the process."""
    io, unseen = thread_of(report, reported)["io"], matches_in_notes(report, "omitted (completion not observed)")
    missing = (reported["read_bytes"] - io["read_bytes"], reported["write_bytes"] - io["written_bytes"])
    check(all(0 <= m <= unseen * BLOCK for m in missing), f"{io}, the kernel counted {reported}")
    check(0 <= reads + writes - io["reads"] - io["writes"] <= unseen
          and (io["reads"] == 0) == (reads == 0) and (io["writes"] == 0) == (writes == 0),
          f"{io}, should be {reads} reads and {writes} writes")


def check_accounts(report, reported):
    """Returns the bytes as iotop shows them: the thread's, also if another one writes them to the disk."""
    kernel = thread_of(report, reported)["kernel"]
    check(kernel["read_bytes"] >= reported["read_bytes"] and kernel["write_bytes"] >= reported["write_bytes"]
          and kernel["write_bytes"] <= reported["write_bytes"] + OWN_WRITES,
          f"{kernel}, /proc/PID/io had {reported}")


def disk_waits(report, reported, *leaves):
    reasons = thread_of(report, reported)["reasons"]
    return sum(reasons.get(leaf, 0) for leaf in leaves)


def waited_for(report, path, leaf):
    """Returns how much of the time of such waits was for this file."""
    return sum(w["ns"] for w in report["waited_objects"]
               if w["reason"] == leaf and w["object"] == os.path.realpath(path))


def check_waits(report, reported, leaf, share):
    """Returns how much of the time of such waits has a waited-for object."""
    named, waited = thread_of(report, reported)["io"]["waited_ns"], disk_waits(report, reported, leaf)
    check(waited > 0, f"it did not wait: {thread_of(report, reported)}")
    check(named >= share * waited, f"{named} ns of {waited} name a request")
    length = reported["end_ns"] - reported["begin_ns"]
    check(waited <= length, f"it waited {waited} ns in {length}")


def file_of(report, path):
    found = [f for f in report["io_files"] if f["path"] == os.path.realpath(path)]
    check(len(found) == 1, f"{path}: {report['io_files']}")
    return found[0]


def markers_of(profile, pid, kind):
    return [m for m in profile.thread(pid).markers() if m["data"] and m["data"]["type"] == kind]
