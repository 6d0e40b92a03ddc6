# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to block devices: as many as the kernel counts, whose they are, what waited for them."""
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from block_io import (BLOCK, CHUNK, LARGEST, LoopDisk, SECTOR, SYNCED, account, check_accounts,
                      check_device, check_thread, check_waits, disk_waits, file_of,
                      markers_of, matches_in_notes, record_io, thread_of, waited_for)
from harness import (IN_GUEST, MS, Profile, Skip, TimingFailure, capture_of, check, check_causes, check_timed, current,
                     expect_failure, needs_command, needs_root, noise, read_report, wait_until)
from slow_disk import Limited, LittleDirty, Throttled, disk_below


@pytest.mark.host_only("it makes loop devices")
def test_direct(context):
    """Each request is one that the program made, and the program waits for it."""
    with LoopDisk(context, context.random.randint(8, 32) << 20) as disk:
        steps = {k: context.random.randint(300, 900) for k in ("direct", "store")}
        before = account(disk.name)
        profile, report, reported = record_io(context, disk.path, steps)
        after = account(disk.name)
    check_device(report, disk.name, before, after, BLOCK)
    check_thread(report, reported["direct"], steps["direct"], 0)
    check_thread(report, reported["store"], 0, steps["store"])
    check_waits(report, reported["direct"], "[disk read wait]", 0.9)
    for truth in reported.values():
        check_accounts(report, truth)
        check_causes(profile, markers_of(profile, truth["pid"], "BlockIO"), "main")
    after["reads"] += matches_in_notes(report, "omitted (completion not observed)") + 1
    expect_failure(check_device, report, disk.name, before, after, BLOCK)
    reported["direct"]["read_bytes"] += (matches_in_notes(report, "omitted (completion not observed)") + 1) * BLOCK
    expect_failure(check_thread, report, reported["direct"], steps["direct"], 0)


def make_file(context, chunks):
    path = context.path("data")
    path.write_bytes(os.urandom(chunks * CHUNK))
    return path


RECREATED = """import os, sys
path, count, size = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
for i in range(count):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY, 0o600)
    os.write(fd, os.urandom(size))
    os.fsync(fd)
    os.close(fd)
    os.unlink(path)
"""


def least_synced(count):
    """Returns how many of the files must have a wait: on a busy machine the disk may be faster than a thread."""
    return count // 2 if current.test.startswith("busy.") else count


def check_recreated(profile, report, path, count, size):
    """The waits, bytes and requests of all files that had that name, under it."""
    synced = [o for o in report["waited_objects"] if o["object"] == path and o["reason"] == "[fsync wait]"]
    check(len(synced) == 1 and synced[0]["count"] >= least_synced(count),
          f"{len(synced)} rows of {count} files: {synced}")
    unseen = matches_in_notes(report, "omitted (completion not observed)")
    check(file_of(report, path)["written_bytes"] >= (count - unseen) * size, f"{file_of(report, path)}")
    reported = [m["data"]["offset"] for thread in profile.threads for m in thread.markers()
                if m["data"].get("type") == "Wait" and "offset" in m["data"]
                and thread.text(m["data"].get("filename")) == path]
    # A disk may be done with the file's data before the thread waits for it: then only the journal is left.
    if not reported:
        raise TimingFailure(f"no wait for one of {count} files has an offset")


def test_recreated(context):
    """A database recreates its journal: each transaction has another file of that name."""
    needs_root()
    path, count, size = str(context.path("journal")), context.random.randint(10, 30), 65536
    output = context.path("p.json.gz")
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, "-c", RECREATED, path, count, size)
    profile, report = Profile.load(output), read_report(context, capture_of(output))
    check_recreated(profile, report, path, count, size)
    more = synced_count(report, path) + 1
    expect_failure(check_recreated, profile, report, path, 2 * more, size)


def synced_count(report, path):
    return max(o["count"] for o in report["waited_objects"] if o["object"] == path)


def test_cold(context):
    """Reads through the page cache, and ahead: the file is found by its pages."""
    needs_root()
    chunks = context.random.randint(60, 200)
    path = make_file(context, chunks)
    profile, report, reported = record_io(context, path, {"cold": chunks})
    io, unseen = thread_of(report, reported["cold"])["io"], matches_in_notes(report, "omitted (completion not observed)")
    check(0 <= reported["cold"]["read_bytes"] - io["read_bytes"] <= unseen * LARGEST,
          f"{io['read_bytes']} bytes, the kernel counted {reported['cold']['read_bytes']}")
    found = file_of(report, path)
    check(0 <= chunks * CHUNK - found["read_bytes"] <= unseen * LARGEST,
          f"{found['read_bytes']} bytes of the file, it has {chunks * CHUNK}")
    check_waits(report, reported["cold"], "[disk read wait]", 0.9)
    strings = profile.data["shared"]["stringArray"]
    markers = markers_of(profile, reported["cold"]["pid"], "BlockIO")
    named = [m for m in markers if strings[m["data"]["operation"]] == "read"
             and strings[m["data"].get("filename", 0)] == os.path.realpath(path)]
    check(sum(m["data"]["bytes"] for m in named) == found["read_bytes"],
          f"{len(named)} markers of {len(markers)} are of the file")
    check_timed("queue and device", sum(m["data"]["queued"] + m["data"]["onDevice"] for m in named) * MS,
                sum(m["end"] - m["start"] for m in named), 0.01, MS)


def test_sync(context):
    """fsync waits for data of the file and for its file system's journal."""
    needs_root()
    path = make_file(context, 64)
    count = context.random.randint(10, 20)
    _, report, reported = record_io(context, path, {"sync": count})
    found = file_of(report, path)
    check(found["written_bytes"] >= count * SYNCED,
          f"{found['written_bytes']} bytes of the file, {count * SYNCED} were written")
    check(disk_waits(report, reported["sync"], "[fsync wait]") > 0, "no wait for fsync")


def device_of(report, name):
    found = [d for d in report["devices"] if d["name"] == name]
    return found[0] if found else {"reads": 0, "read_bytes": 0, "waited_ns": 0}


def record_on(context, place, kind, count):
    """Report and truth, all requests to both disks being those that the kernel counted."""
    disks = [disk_below(p) for p in ("/slow", "/fast")]
    os.close(os.open(place, os.O_RDONLY))  # at the first time ext4 notes down where it is mounted
    os.sync()
    before = [account(d) for d in disks]
    profile, report, reported = record_io(context, place, {kind: count})
    for disk, then in zip(disks, before):
        if disk == disk_below(place):
            check_device(report, disk, then, account(disk))
        else:
            check(device_of(report, disk)["waited_ns"] == 0, f"waits for {disk}, which was idle")
    return profile, report, reported[kind]


def worked_ns(report, reported):
    return reported["cpu_ns"] + thread_of(report, reported)["states"]["runnable"]


def check_throttled(disk, report, reported, time_ns):
    """The thread's waits for requests are the time that the disk takes, less what it worked."""
    disk.check_time("waits for requests", thread_of(report, reported)["io"]["waited_ns"],
                    time_ns - worked_ns(report, reported))


def test_throttled_direct(context):
    disk = Throttled()
    count = 4 * disk.operations
    for place in ("/slow/data", "/fast/data"):
        _, report, reported = record_on(context, place, "direct", count)
        found = file_of(report, place)
        # A read of two places of the disk takes two requests.
        check(found["reads"] >= count and found["read_bytes"] == count * BLOCK,
              f"of the file: {found}")
        if place == "/slow/data":
            time_ns = disk.took(reported, count, count * BLOCK)
            check_throttled(disk, report, reported, time_ns)
            expect_failure(check_throttled, disk, report, reported, 2 * time_ns)
            disk.check_host()


def check_file_waits(report, reported, path):
    """Nearly all that the thread waited for a disk it waited for this file."""
    found, waited = file_of(report, path), thread_of(report, reported)["io"]["waited_ns"]
    check(found["waited_ns"] >= 0.95 * waited, f"waits for other things: {report['io_files']}")


def check_rate(disk, report, reported, path, time_ns):
    """The disk had something to do for the file all the time, but when the reader worked."""
    disk.check_time("busy", file_of(report, path)["busy_ns"], time_ns - worked_ns(report, reported),
                    time_ns)


def read_all(context, kind, count):
    """All of a file, ahead of the reader, whose waits name it."""
    disk, size = Throttled(), os.stat("/slow/data").st_size
    _, report, reported = record_on(context, "/slow/data", kind, count(size))
    found = file_of(report, "/slow/data")
    check(found["read_bytes"] == size, f"of the file: {found}, it has {size}")
    check_file_waits(report, reported, "/slow/data")
    time_ns = disk.took(reported, found["reads"], size)
    check_throttled(disk, report, reported, time_ns)
    disk.check_host()
    check_rate(disk, report, reported, "/slow/data", time_ns)
    expect_failure(check_rate, disk, report, reported, "/slow/data", 2 * time_ns)
    return report, reported


def test_throttled_cold(context):
    report, reported = read_all(context, "cold", lambda size: size // CHUNK)
    check(disk_waits(report, reported, "[disk read wait]") > 0, "no wait for reading")


def test_throttled_map(context):
    """By page faults, which name it, too."""
    report, reported = read_all(context, "map", lambda size: size // BLOCK)
    waited = disk_waits(report, reported, "[page-fault I/O wait]")
    check_timed("waits in faults", waited, thread_of(report, reported)["io"]["waited_ns"], 0.02, MS)
    faulted = {f["path"]: f["waited_ns"] for f in report["faulted_files"]}
    check_timed("waits in faults of the file", faulted.get("/slow/data", 0), waited, 0.05, MS)


def reported_rate(context, path):
    """MB/s of a file by the largest waits of the text report."""
    text = context.wallprof("report", "--section", "objects", context.path("p.capture")).stdout
    found = re.findall(rf"  {re.escape(os.path.realpath(path))} at ([\d.]+) MB/s(?:, then .* runnable)?$", text, re.M)
    check(found, f"no rate of {path}: {text}")
    return float(found[0])


def check_held(report, profile, reported, path):
    """Returns for how many ns the file's requests were held back; each must be the thread's and have its time."""
    strings = profile.data["shared"]["stringArray"]
    markers = [m for m in markers_of(profile, reported["pid"], "BlockIO")
               if strings[m["data"].get("filename", 0)] == path]
    missing = os.stat(path).st_size - sum(m["data"]["bytes"] for m in markers)
    check(0 <= missing <= submitted_unseen(report) * LARGEST,
          f"{missing} bytes are missing, {len(markers)} requests of the file are the thread's: {markers[:3]}")
    for marker in markers:
        parts = sum(marker["data"].get(part, 0) for part in ("held", "queued", "onDevice"))
        check_timed("held, queued and on the device", parts * MS, marker["end"] - marker["start"],
                    0.01, MS)
    held = sum(m["data"].get("held", 0) for m in markers) * MS
    check(file_of(report, path)["held_ns"] >= held - MS, f"{held} ns in markers: {file_of(report, path)}")
    return held


def check_reported_rate(context, disk, report, reported, path):
    rate, size = reported_rate(context, path), os.stat(path).st_size
    print(f"# limited to {disk.bytes / 1e6} MB/s, of which {rate} are reported", flush=True)
    by_rate = disk.time(0, size)
    disk.check_time("the time that the rate means", size / rate * 1e3,
                    by_rate - worked_ns(report, reported), by_rate)


READS = ("[disk read wait]", "[disk read wait: held back by a limit]")


def test_limited(context):
    """A cgroup's limit is waited for as a slow disk is."""
    path = "/fast/data" if os.path.exists("/fast/data") else str(make_file(context, 128))
    size, rate = os.stat(path).st_size, context.random.randint(2_000_000, 4_000_000)
    with Limited(context, path, rate) as disk:
        profile, report, reported = record_io(context, path, {"cold": size // CHUNK})
    reported = reported["cold"]
    time_ns = disk.took(reported, 0, size)
    check_throttled(disk, report, reported, time_ns)
    expect_failure(check_throttled, disk, report, reported, 2 * time_ns)
    waited = {reason: disk_waits(report, reported, reason) for reason in READS}
    named = sum(waited_for(report, path, reason) for reason in READS)
    check(0.95 * sum(waited.values()) <= named <= sum(waited.values()), f"{named} ns of {waited} name the file")
    if IN_GUEST:
        disk.check_host()
    # Kernels in which submissions can be seen.
    if IN_GUEST or re.search(r"^yes +fentry/__blk_throtl_bio", context.wallprof("doctor", "-v").stdout, re.M):
        held = check_held(report, profile, reported, os.path.realpath(path))
        check(held > 0.5 * (reported["end_ns"] - reported["begin_ns"]), f"held for {held} ns, in {reported}")
        check(waited[READS[1]] > 0.8 * sum(waited.values()), f"the limit is the reason of {waited}")
        check_reported_rate(context, disk, report, reported, path)


def test_limited_operations(context):
    """A request that is too large for the device is split, and the limit counts each piece once more."""
    if not IN_GUEST:
        raise Skip("it sets how large a disk's requests may be")
    path, operations = "/fast/data", context.random.randint(60, 100)
    largest = Path("/sys/block", disk_below(path), "queue/max_sectors_kb")
    before, size = largest.read_text(), os.stat(path).st_size
    largest.write_text("32")
    try:
        with Limited(context, path, operations=operations) as disk:
            profile, report, reported = record_io(context, path, {"cold": size // CHUNK})
    finally:
        largest.write_text(before)
    found = file_of(report, path)
    check(found["reads"] >= size // 32768, f"nothing was cut: {found}")
    check(check_held(report, profile, reported["cold"], path) > 0, "none was held back")
    # Kernels count pieces differently: 10 to 50 % more than there are.
    check_throttled(disk, report, reported["cold"], disk.took(reported["cold"], found["reads"], size))


def test_throttled_sync(context):
    """fsync takes as long as its data and its journal."""
    disk, name = Throttled(), disk_below("/slow")
    count = context.random.randint(3, 5)
    _, report, reported = record_on(context, "/slow/data", "sync", count)
    found = device_of(report, name)
    check(file_of(report, "/slow/data")["written_bytes"] >= count * SYNCED,
          f"of the file: {report['io_files']}")
    time_ns = disk.took(reported, found["reads"] + found["writes"],
                        found["read_bytes"] + found["written_bytes"])
    disk.check_time("[fsync wait]", disk_waits(report, reported, "[fsync wait]"),
                    time_ns - worked_ns(report, reported))
    disk.check_host()


def on_behalf(profile, path):
    """Bytes of a file that the kernel's threads wrote."""
    strings = profile.data["shared"]["stringArray"]
    return sum(m["data"]["bytes"] for thread in profile.threads for m in thread.markers()
               if thread.process == "Block devices" and m["data"].get("type") == "BlockIO"
               and strings[m["data"].get("filename", 0)] == path
               and strings[m["data"]["origin"]].startswith("on behalf"))


def test_writeback(context):
    """Kernel threads write, on behalf of the thread that is throttled."""
    Throttled()
    chunks = (8 << 20) // CHUNK
    with LittleDirty() as limits:
        profile, report, reported = record_io(context, "/slow/data", {"dirty": chunks})
    reported = reported["dirty"]
    check(reported["write_bytes"] >= chunks * CHUNK, f"it made less dirty: {reported}")
    check_accounts(report, reported)
    written = on_behalf(profile, "/slow/data")
    check(chunks * CHUNK - limits.most() <= written <= chunks * CHUNK,
          f"{written} bytes are written on behalf, of {chunks * CHUNK}")
    check(thread_of(report, reported)["io"]["written_bytes"] + written <= chunks * CHUNK,
          f"some are counted twice: {thread_of(report, reported)}, {written}")
    worked, ledger = worked_ns(report, reported), thread_of(report, reported)
    held_back = disk_waits(report, reported, "[dirty-page throttling]")
    # It may be so when it writes down what is true, too. A guest's clock of CPU time loses some
    # at each switch.
    # A thread that writes while the journal is being written has to wait for that.
    waited = held_back + disk_waits(report, reported, "[journal wait]")
    check(reported["end_ns"] - reported["begin_ns"] - worked - 20 * MS - noise(reported["cpu_ns"]) <= waited
          <= ledger["states"]["blocked"], f"held back: {held_back} ns, of {reported} and {ledger}")
    check(held_back > 0.5 * waited, f"held back: {held_back} ns of {waited}")
    named = waited_for(report, "/slow/data", "[dirty-page throttling]")
    check(0.95 * held_back <= named <= held_back, f"{named} ns of {held_back} name the file")


@pytest.mark.host_only("flock is not in the guests")
def test_file_lock(context):
    """A wait for a file without any request is named by the system call's descriptor."""
    needs_command("flock")
    path, output, wait = context.path("locked"), context.path("p.json"), context.random.randint(20, 30)
    context.start(["flock", path, "sleep", str(wait / 10)])
    wait_until(lambda: path.exists() and subprocess.run(["flock", "-n", path, "true"]).returncode,
               "the file is locked")
    begin = time.monotonic_ns()
    context.wallprof("-q", "--keep-capture", "-o", output, "--", "flock", path, "true")
    report = read_report(context, context.path("p.capture"))
    named = waited_for(report, path, "[file lock wait]")
    check(0 < named <= min(wait * 100 * MS, time.monotonic_ns() - begin),
          f"{named} ns, it was locked for {wait}00 ms")
    check(named == sum(t["reasons"].get("[file lock wait]", 0) for t in report["threads"]),
          f"{named} ns: {report['threads']}")
    strings = Profile.load(output).data["shared"]["stringArray"]
    waits = [m["data"] for t in Profile.load(output).threads for m in t.markers()
             if m["data"] and strings[m["data"].get("reason", 0)] == "File lock wait"]
    check([strings[w.get("filename", 0)] for w in waits] == [str(path)], f"markers: {waits}")


def reads_of(profile, pid):
    """Markers of what is read of files, and how many bytes of the file system itself."""
    strings = profile.data["shared"]["stringArray"]
    reads = [m for m in markers_of(profile, pid, "BlockIO")
             if strings[m["data"]["operation"]] == "read"]
    own = [m for m in reads if "metadata" in strings[m["data"].get("flags", 0)]]
    return [m for m in reads if m not in own], sum(m["data"]["bytes"] for m in own)


def submitted_unseen(report):
    """From 7.0 on a program may be missing (tests/vm/checks.py), and that is reported."""
    return sum(matches_in_notes(report, what)
               for what in ("have no thread (submitted", "attributed to io_uring workers",
                            "omitted (completion not observed)"))


def check_ring(profile, report, reported, path):
    unseen = submitted_unseen(report)
    by_worker, strings = "direct, by a worker of io_uring", profile.data["shared"]["stringArray"]
    # A request that would have to wait for the disk's queue goes to a worker, too.
    for kind, wanted in (("ring", {"direct", by_worker}), ("worker", {by_worker})):
        (reads, metadata), origins = reads_of(profile, reported[kind]["pid"]), Counter()
        # Its program or a library may have left the cache, and is read, too.
        others = [m for m in reads if strings[m["data"].get("filename", 0)] != str(path)]
        own = [m for m in reads if m not in others]
        for marker in own:
            origins[strings[marker["data"]["origin"]]] += marker["data"]["bytes"] // BLOCK
        check(set(origins) <= wanted
              and reported[kind]["count"] - unseen <= origins.total() <= reported[kind]["count"],
              f"{kind}: {reported[kind]['count']} reads, and the reported submitters: {origins}")
        check(thread_of(report, reported[kind])["io"]["read_bytes"]
              == origins.total() * BLOCK + metadata + sum(m["data"]["bytes"] for m in others),
              f"{kind}: {thread_of(report, reported[kind])['io']}")
        check_causes(profile, own, "hand_on")
    polling = [t for t in report["threads"] if t["name"] == f"iou-sqp-{reported['poll']['pid']}"]
    blocks = [t["io"]["read_bytes"] // BLOCK for t in polling]  # two may be merged into one
    check(len(blocks) == 1 and 0 <= reported["poll"]["count"] - blocks[0] <= unseen,
          f"polling threads: {polling}")
    workers = [t for t in report["threads"] if t["name"] == f"iou-wrk-{reported['worker']['pid']}"]
    check(workers and all(t["pid"] == reported["worker"]["pid"] for t in workers),
          f"workers: {workers}")
    count = sum(t["count"] for t in reported.values())
    check(count - unseen <= file_of(report, path)["read_bytes"] // BLOCK <= count,
          f"of the file: {report['io_files']}")


def test_ring(context):
    """By io_uring: the thread's own, its workers', the polling thread's."""
    needs_root()
    path = "/fast/data" if os.path.exists("/fast/data") else make_file(context, 64)
    steps = {kind: context.random.randint(100, 300) for kind in ("ring", "worker", "poll")}
    profile, report, reported = record_io(context, path, steps)
    check_ring(profile, report, reported, path)
    reported["worker"]["count"] += submitted_unseen(report) + 1
    expect_failure(check_ring, profile, report, reported, path)


def test_ring_cached(context):
    """Reads of io_uring through the page cache are the process's, also those of its workers."""
    needs_root()
    path = "/fast/data" if os.path.exists("/fast/data") else make_file(context, 64)
    profile, report, reported = record_io(context, path, {"cached": context.random.randint(100, 300)})
    reported, unseen = reported["cached"], submitted_unseen(report)
    read = sum(t["io"]["read_bytes"] for t in report["threads"] if t["pid"] == reported["pid"])
    metadata = reads_of(profile, reported["pid"])[1]
    for what, got in (("process", read), ("file", file_of(report, path)["read_bytes"] + metadata)):
        check(0 <= reported["read_bytes"] - got <= unseen * LARGEST,
              f"{what}: {got} bytes, the kernel counted {reported['read_bytes']}")


FAILING = """
import mmap, os, sys
disk, block, failed = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096), 0
for i in range(int(sys.argv[3])):
    try:
        os.preadv(disk, [block], i * 4096)
    except OSError:
        failed += 1
open(sys.argv[2], "w").write(str(failed))
"""


@pytest.mark.host_only("it makes loop devices")
def test_failed(context):
    """Beyond the end of the file below: some fail, one is done in part before."""
    blocks = context.random.randint(200, 400)
    cut = context.random.randint(50, 150) * BLOCK + SECTOR
    truth, output = context.path("truth"), context.path("p.json")
    with LoopDisk(context, blocks * BLOCK) as disk:
        os.truncate(disk.image, cut)
        context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, "-c", FAILING,
                         disk.path, truth, str(blocks))
    report, profile = read_report(context, context.path("p.capture")), Profile.load(output)
    failed = int(truth.read_text())
    # All have completed, whatever was seen of it.
    unseen = matches_in_notes(report, "omitted (completion not observed)") + matches_in_notes(report, "still in flight")
    check(failed == blocks - cut // BLOCK, f"{failed} failed, should be {blocks - cut // BLOCK}")
    check_failed(report, profile, disk.name, failed, unseen)
    expect_failure(check_failed, report, profile, disk.name, failed + unseen + 1, unseen)


def check_failed(report, profile, name, failed, unseen):
    got = device_of(report, name)["failed"]
    check(failed - unseen <= got <= failed, f"{got} are reported as failed, should be {failed}")
    strings = profile.data["shared"]["stringArray"]
    reported = [m for t in profile.threads if t.process != "Block devices" for m in t.markers()
                if m["data"] and m["data"]["type"] == "BlockIO"
                and strings[m["data"]["device"]].split(" ")[0] == name]
    status = Counter(strings[m["data"]["status"]].split(" ")[0] for m in reported)
    check(status["failed"] == got, f"{got} failed, by markers {status}")
    check(sum("issues" in m["data"] for m in reported) == 1, "the one that was cut was issued once")
