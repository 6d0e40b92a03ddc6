# SPDX-License-Identifier: GPL-2.0-or-later
"""Waited-for objects between processes: the other ends of pipes and sockets.

Python does it, and writes down the numbers and addresses by fstat(), getsockname() and getpeername().
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from block_io import LoopDisk
from harness import (GUEST_ABSOLUTE, GUEST_SHARE, IN_GUEST, MS, ROOT, SLOWNESS, Skip, capture_of, check, check_timed,
                     expect_failure, needs_command, needs_root, noticeable, read_report, wait_until)

# The waiting task measures each wait, because a child may begin late. On a busy machine the task then waits for a CPU;
# the kernel counts that, and it is not part of the wait.
TIMED = """
import fcntl, json, os, select, socket, sys, time

def awake():
    with open("/proc/thread-self/schedstat") as file:
        return time.thread_time_ns() + int(file.read().split()[1])

# How long this thread has slept, from some time on. Clocks between which it lost its CPU are read again.
def slept():
    for _ in range(100):
        begin, ns, end = time.monotonic_ns(), awake(), time.monotonic_ns()
        if end - begin < 500000:
            break
    return end - ns

def timed(wait):
    before = slept()
    wait()
    return slept() - before
"""

SCRIPT = TIMED + """
def call_self(name):
    with open("/proc/self/comm", "w") as file:
        file.write(name)

def number(fd):
    return os.fstat(fd).st_ino

def address(socket):
    return "%s:%d" % socket.getsockname()

path, folder, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])
reader, writer = os.pipe()
near, far = socket.socketpair()
local, wide = socket.socket(socket.AF_UNIX), socket.socket()
local.bind(folder + "/socket")
local.listen()
wide.bind(("127.0.0.1", 0))
wide.listen()
call_self("parent")
results, result = os.pipe()
child = os.fork()
if child == 0:
    call_self("child")
    def later(action):
        time.sleep(delay)
        action()
    later(lambda: os.write(writer, b"x"))
    later(lambda: far.send(b"x"))
    client = socket.socket(socket.AF_UNIX)
    client.connect(folder + "/socket")
    later(lambda: client.send(b"x"))
    other = socket.create_connection(wide.getsockname())
    first = timed(lambda: other.recv(1))
    later(lambda: other.send(b"x"))
    later(lambda: os.write(writer, b"x"))
    second = timed(lambda: other.recv(1))
    os.write(result, b"%d" % (first + second))
    time.sleep(delay)
    os._exit(0)
read = timed(lambda: os.read(reader, 1))
pair = timed(lambda: near.recv(1))
accepted = local.accept()[0]
unix = timed(lambda: accepted.recv(1))
connected = wide.accept()[0]
connected.send(b"x")
network = timed(lambda: connected.recv(1))
epoll = select.epoll()
epoll.register(reader, select.EPOLLIN)
epoll.register(wide, select.EPOLLIN)
poll = timed(epoll.poll)
time.sleep(delay)
connected.send(b"x")
os.waitpid(child, 0)
back_network = int(os.read(results, 100))
pipe, peer = "pipe:[%d]" % number(reader), "%s:%d" % connected.getpeername()
ends = "(parent %d, child %d)" % (os.getpid(), child)
back = "(child %d, parent %d)" % (child, os.getpid())
with open(path, "w") as file:
    json.dump([
        ["[pipe read wait]", pipe + " " + ends, read],
        ["[unix socket receive wait]", "unix:[%d] %s" % (number(near.fileno()), ends), pair],
        ["[unix socket receive wait]", "unix %s/socket %s" % (folder, ends), unix],
        ["[network receive wait]", "tcp %s → %s %s" % (address(connected), peer, ends), network],
        ["[network receive wait]", "tcp %s → %s %s" % (peer, address(connected), back), back_network],
        ["[epoll wait]", "epoll of tcp listening on %s, %s" % (address(wide), pipe), poll],
    ], file)
"""


def check_object(report, reason, name, ns):
    found = [w for w in report["waited_objects"] if (w["reason"], w["object"]) == (reason, name)]
    check(len(found) == 1, f"{reason} for {name} is not among {report['waited_objects']}")
    check_timed(f"{reason} for {name}", found[0]["ns"], ns, *TOLERANCE)


# Python's work before it waits is not part of the wait.
TOLERANCE = (GUEST_SHARE, GUEST_ABSOLUTE) if IN_GUEST else (0.05, 3 * MS)


def test_ends(context):
    """Each wait has the object that the kernel reports, and the processes at both ends."""
    delay = context.random.randint(60, 90) * MS
    script, reported, output = (context.path(name) for name in ("ends.py", "truth.json", "p.json.gz"))
    script.write_text(SCRIPT)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, reported,
                     context.folder, delay / 1e9)
    report, objects = read_report(context, capture_of(output)), json.loads(reported.read_text())
    for reason, name, ns in objects:
        check(ns > delay / 4, f"{name} was waited for {ns / MS:.1f} ms")
        check_object(report, reason, name, ns)
    reason, name, ns = objects[0]
    expect_failure(check_object, report, reason, name.replace("child", "other"), ns)
    expect_failure(check_object, report, reason, name, noticeable(2 * ns, ns))


def is_asleep(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


def test_begun_before(context):
    """The object of a wait that began before the window, in which the thread is never switched out."""
    script = "import os, sys\nr, w = os.pipe()\nprint(os.fstat(r).st_ino, flush=True)\nos.read(r, 1)"
    number, output = context.path("number"), context.path("p.json.gz")
    with open(number, "w") as file:
        process = context.start([sys.executable, "-c", script], stdout=file)
    wait_until(lambda: number.read_text().endswith("\n"), "the script has a pipe")
    wait_until(lambda: is_asleep(process.pid), "the script waits")
    context.wallprof("-q", "--keep-capture", "-o", output, "-p", process.pid, "-d", "300ms")
    report = read_report(context, capture_of(output))
    comm = Path(f"/proc/{process.pid}/comm").read_text().strip()
    name = f"pipe:[{number.read_text().strip()}] ({comm} {process.pid})"
    check_object(report, "[pipe read wait]", name, 300 * MS)


REPORTED_TWICE = TIMED + """
path, folder, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])

def number(fd):
    return os.fstat(fd).st_ino

def wait(wait, end):
    child = os.fork()
    if child == 0:
        time.sleep(delay)
        end()
        os._exit(0)
    lasted.append(timed(wait))
    os.waitpid(child, 0)

lasted = []
results, result = os.pipe()
pipes = [os.pipe() for _ in range(3)]
named = ["pipe:[%d]" % number(reader) for reader, _ in pipes]
first = pipes[0]
epoll = select.epoll()
for reader, _ in pipes:
    epoll.register(reader, select.EPOLLIN)
    wait(epoll.poll, lambda: os.write(first[1], b"x"))
    os.read(first[0], 1)

here, there = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
here.bind(("127.0.0.1", 0))
there.bind(("127.0.0.1", 0))
send = lambda: there.sendto(b"x", here.getsockname())
wait(lambda: here.recv(1), send)
here.connect(there.getsockname())
wait(lambda: here.recv(1), send)

server = socket.socket(socket.AF_INET6)
server.bind(("::1", 0))
server.listen()
client = socket.create_connection(server.getsockname()[:2])
accepted = server.accept()[0]
wait(lambda: accepted.recv(1), lambda: client.send(b"x"))

locked = folder + "/locked"
for _ in range(2):
    held = open(locked, "w")
    fcntl.flock(held, fcntl.LOCK_EX)
    child = os.fork()
    if child == 0:
        held.close()
        mine = open(locked)
        os.write(result, b"%d" % timed(lambda: fcntl.flock(mine, fcntl.LOCK_EX)))
        os._exit(0)
    time.sleep(delay)
    held.close()
    os.waitpid(child, 0)
    lasted.append(int(os.read(results, 100)))
    os.unlink(locked)

address = lambda name: "%s:%d" % name[:2]
six = lambda name: "[%s]:%d" % name[:2]
with open(path, "w") as file:
    json.dump({"epoll": named,
               "udp": [address(here.getsockname()), address(there.getsockname())],
               "tcp6": [six(accepted.getsockname()), six(accepted.getpeername())],
               "locked": locked, "lasted": lasted}, file)
"""


def check_parts(report, reason, parts, ns):
    """Waits for something whose name has these parts."""
    found = [w for w in report["waited_objects"] if w["reason"] == reason and all(p in w["object"] for p in parts)]
    check(len(found) == 1, f"{reason} for {parts} is not among {report['waited_objects']}")
    check_timed(f"{reason} for {parts}", found[0]["ns"], ns, *TOLERANCE)


def test_redefined(context):
    """An object that changes under the same descriptor or name is recorded again: an epoll
    descriptor that watches one more, a socket that is connected, a file that is recreated."""
    delay = context.random.randint(60, 90) * MS * SLOWNESS  # a child begins to wait late in a guest
    script, reported, output = (context.path(name) for name in ("again.py", "truth.json", "p.json.gz"))
    script.write_text(REPORTED_TWICE)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, reported,
                     context.folder, delay / 1e9)
    report, names = read_report(context, capture_of(output)), json.loads(reported.read_text())
    one, two, three, *udp, tcp, first, second = names["lasted"]
    check(len(udp) == 2 and min(names["lasted"]) > delay / 4, f"they lasted {names['lasted']}")
    epoll = one + two + three  # whichever it watched: of pipes alone, for the only thread that runs
    for reason, parts, ns in (("[pipe poll wait]", names["epoll"], epoll),
                              ("[network receive wait]", names["udp"], sum(udp)),
                              ("[network receive wait]", names["tcp6"], tcp),
                              ("[file lock wait]", [names["locked"]], first + second)):
        check_parts(report, reason, parts, ns)
    expect_failure(check_parts, report, "[pipe poll wait]", [*names["epoll"], names["locked"]], epoll)
    expect_failure(check_parts, report, "[pipe poll wait]", names["epoll"], noticeable(3 * epoll, epoll))
    expect_failure(check_parts, report, "[epoll wait]", names["epoll"], two + three)


NESTED = TIMED + """
path, delay = sys.argv[1], float(sys.argv[2])
pipes = [os.pipe() for _ in range(3)]
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen()
inner, middle, outer = (select.epoll() for _ in range(3))
outer.register(pipes[0][0], select.EPOLLIN)
outer.register(middle.fileno(), select.EPOLLIN)
middle.register(inner.fileno(), select.EPOLLIN)
middle.register(pipes[1][0], select.EPOLLIN)
inner.register(pipes[2][0], select.EPOLLIN)
lasted = 0
for number in range(2):
    child = os.fork()
    if child == 0:
        time.sleep(delay)
        os.write(pipes[2][1], b"x")
        os._exit(0)
    lasted += timed(outer.poll)
    os.waitpid(child, 0)
    os.read(pipes[2][0], 1)
    if number == 0:
        middle.register(server, select.EPOLLIN)
one, two, three = ("pipe:[%d]" % os.fstat(reader).st_ino for reader, _ in pipes)
with open(path, "w") as file:
    json.dump([one, two, "tcp listening on %s:%d" % server.getsockname(), three, lasted], file)
"""


def check_nested(report, reason, one, two, listening, three, ns):
    """The names of pipes are followed by the tasks that were seen at their ends."""
    found = [w for w in report["waited_objects"] if w["reason"] == reason and w["object_kind"] == "epoll"]
    names = [re.sub(r" \([^():]* [0-9]+[^()]*\)", "", w["object"]) for w in found]
    check(names == [f"epoll of {one}, epoll ({listening}, {two}, epoll ({three}))"], f"{reason}: {names}")
    check_timed(names[0], found[0]["ns"], ns, *TOLERANCE)


def test_nested_epoll(context):
    """Epoll descriptors that watch each other; and what the one in the middle watches later on."""
    script, truth, output = (context.path(name) for name in ("nested.py", "truth.json", "p.json.gz"))
    script.write_text(NESTED)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, truth,
                     context.random.randint(60, 90) * MS * SLOWNESS / 1e9)
    report, names = read_report(context, capture_of(output)), json.loads(truth.read_text())
    check_nested(report, "[epoll wait]", *names)
    expect_failure(check_nested, report, "[epoll wait]", names[1], names[0], *names[2:])
    expect_failure(check_nested, report, "[epoll wait]", *names[:4], noticeable(2 * names[4], names[4]))


READ_SLOWLY = TIMED + """
path, source = sys.argv[1], sys.argv[2]
with open(source, "rb", buffering=0) as file:
    lasted = timed(lambda: file.read(100))
with open(path, "w") as file:
    json.dump(lasted, file)
"""


def check_server(report, path, ns):
    """The page comes from the server, and not from a disk."""
    waits = [w for w in report["waited_objects"] if w["object"] == path and w["ns"] > ns / 10]
    check({w["reason"] for w in waits} == {"[FUSE server wait]"}, f"waits for {path}: {waits}")
    check_timed(path, sum(w["ns"] for w in waits), ns, *TOLERANCE)


@pytest.mark.host_only("FUSE is not in the guests")
def test_fuse(context):
    """A read of a file whose server answers late."""
    needs_root()
    if not os.path.exists("/dev/fuse"):
        raise Skip("there is no /dev/fuse")
    folder, script, reported, output = (context.path(name) for name in ("mount", "read.py", "truth.json", "p.json.gz"))
    folder.mkdir()
    script.write_text(READ_SLOWLY)
    delay = context.random.randint(60, 90) / 1000
    server = context.start([sys.executable, ROOT / "tests" / "support" / "py" / "fuse_server.py", folder, 1 << 16, delay],
                           stdout=subprocess.PIPE, text=True)
    check(server.stdout.readline() == "ready\n", "the server did not mount its file system")
    try:
        context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, reported, folder / "file")
    finally:
        subprocess.run(["umount", folder], check=True)
    report, ns = read_report(context, capture_of(output)), json.loads(reported.read_text())
    check_server(report, str(folder / "file"), ns)
    expect_failure(check_server, report, str(folder / "file"), noticeable(2 * ns, ns))
    for wait in report["waited_objects"]:
        wait["reason"] = wait["reason"].replace("FUSE server", "disk read")
    expect_failure(check_server, report, str(folder / "file"), ns)


FULL = TIMED + """
import threading

path, folder, delay = sys.argv[1], sys.argv[2], float(sys.argv[3])

def wait(wait, end):
    thread = threading.Thread(target=lambda: (time.sleep(delay), end()))
    thread.start()
    lasted = timed(wait)
    thread.join()
    return lasted

truth = []
for place, shown in ((folder + "/", folder + "/"), ("\\0full-%d-" % os.getpid(), "@full-%d-" % os.getpid())):
    server, first, second = (socket.socket(socket.AF_UNIX) for _ in range(3))
    server.bind(place + "stream")
    server.listen(0)
    first.connect(place + "stream")
    truth.append(["[unix socket connection wait]", shown + "stream",
                 wait(lambda: second.connect(place + "stream"), server.accept)])
    reader, writer = (socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(2))
    reader.bind(place + "datagram")
    writer.setblocking(False)
    try:
        while True:
            writer.sendto(b"x", place + "datagram")
    except BlockingIOError:
        writer.setblocking(True)
    sends = (lambda: writer.sendto(b"x", place + "datagram"), lambda: writer.sendmsg([b"x"], [], 0, place + "datagram"))
    lasted = sum(wait(send, lambda: reader.recv(1)) for send in sends)
    truth.append(["[unix socket send wait]", shown + "datagram", lasted])
with open(path, "w") as file:
    json.dump([os.getpid(), truth], file)
"""


def test_full_unix_sockets(context):
    """Until there is room in the peer's queue only the call has the address that a socket connects or sends to."""
    script, truth, output = (context.path(name) for name in ("full.py", "truth.json", "p.json.gz"))
    script.write_text(FULL)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, truth, context.folder,
                     context.random.randint(60, 90) * MS * SLOWNESS / 1e9)
    report, (pid, waits) = read_report(context, capture_of(output)), json.loads(truth.read_text())
    for reason, name, ns in waits:
        check_parts(report, reason, [f"unix to {name} (", f" {pid})"], ns)
        expect_failure(check_parts, report, reason, [f"unix to {name}x (", f" {pid})"], ns)
        expect_failure(check_parts, report, reason, [f"unix to {name} (", f" {pid})"], noticeable(2 * ns, ns))


def test_how_memory_is_read(context):
    """By plain loads where the kernel allows it; the calls that older ones need go unnoticed
    else."""
    release = tuple(map(int, os.uname().release.split("-")[0].split(".")[:2]))
    done = context.wallprof("record", "-v", "-o", context.path("capture"), "--", "true")
    by_calls = "memory is read by helper calls only" in done.stderr
    check(by_calls == (release < (6, 12)), f"Linux {release}: {done.stderr}")


LINGER = TIMED + """
import struct
path, delay = sys.argv[1], float(sys.argv[2])
server = socket.create_server(("127.0.0.1", 0))
reader = os.fork()
if reader == 0:
    end = server.accept()[0]
    time.sleep(delay)
    while end.recv(1 << 20):
        pass
    os._exit(0)
client = socket.create_connection(server.getsockname())
client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
client.setblocking(False)
try:
    while True:
        client.send(bytes(1 << 16))
except BlockingIOError:
    pass
ends = ["%s:%d" % a for a in (client.getsockname(), client.getpeername())]
wait = timed(client.close)
os.waitpid(reader, 0)
with open(path, "w") as file:
    json.dump([ends, wait], file)
"""


def test_linger(context):
    """A close that waits for sent data to arrive is a wait for that socket, to which no descriptor leads any more."""
    script, truth, output = (context.path(name) for name in ("linger.py", "truth.json", "p.json.gz"))
    script.write_text(LINGER)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, truth,
                     context.random.randint(60, 90) * SLOWNESS / 1000)
    report, (ends, ns) = read_report(context, capture_of(output)), json.loads(truth.read_text())
    check(ns > 30 * MS, f"it lingered for {ns / MS:.1f} ms")
    name = "tcp %s → %s" % tuple(ends)
    check_parts(report, "[network send wait]", [name], ns)
    expect_failure(check_parts, report, "[network send wait]", [name.replace(ends[0], "127.0.0.1:1")], ns)
    expect_failure(check_parts, report, "[network send wait]", [name], noticeable(2 * ns, ns))


def check_mmap_lock(profile, pid, thread, wanted, holder, least):
    """A thread's long waits for a kernel lock are for mmap_lock of that process."""
    waits = [(m["end"] - m["start"], thread.text(m["data"].get("object")), thread.text(m["data"].get("heldBy")))
             for m in thread.markers() if m["name"] == "Kernel rwsem wait" and m["end"] - m["start"] >= MS / 2]
    named = sum(ns for ns, *names in waits if names == [f"mmap_lock of {wanted} {pid}", holder])
    whole = sum(ns for ns, *_ in waits)
    check(whole >= least, f"{thread.name} waited for {whole / MS:.1f} ms")
    # A reader of the list of mappings shares the lock with others, and then the lock has no holder.
    check(named >= 0.8 * whole, f"of {whole / MS:.1f} ms {named / MS:.1f} are for mmap_lock of {wanted} {pid}: {waits}")


def test_mmap_lock(context):
    """mmap_lock in its own process, and in another one that reads about that process."""
    recording = context.record("mappings", undisturbed=False, forks=context.random.randint(12, 16))
    profile, pid = recording.profile, recording.truth.pid
    asker, = recording.truth.named("asker")
    asked = profile.thread(asker["tid"])
    reader, = [t for t in profile.threads if t.name == "reader"]
    check_mmap_lock(profile, pid, asked, "mappings", "holder", MS)
    check_mmap_lock(profile, pid, reader, "mappings", "holder", MS)
    expect_failure(check_mmap_lock, profile, pid + 1, asked, "mappings", "holder", MS)
    expect_failure(check_mmap_lock, profile, pid, reader, "mappings", "asker", MS)


OVERLAID = """
import fcntl, mmap, os, sys, time
folder, delay = sys.argv[1], float(sys.argv[2])
with open(folder + "/upper-file", "wb") as file:
    file.write(os.urandom(1 << 20))
    os.fsync(file.fileno())
for name in "/lower-file", "/upper-file":
    fd = os.open(folder + name, os.O_RDONLY)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    os.pread(fd, 1, 0)
    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    with mmap.mmap(fd, 0, prot=mmap.PROT_READ) as memory:
        memory[1 << 19]
    fcntl.flock(fd, fcntl.LOCK_EX)
    child = os.fork()
    if child == 0:
        fcntl.flock(os.open(folder + name, os.O_RDONLY), fcntl.LOCK_EX)
        os._exit(0)
    # Until the child waits, which may take long on a busy machine.
    while not any("->" in line and str(child) in line.split() for line in open("/proc/locks")):
        time.sleep(0.001)
    time.sleep(delay)
    fcntl.flock(fd, fcntl.LOCK_UN)
    os.wait()
"""


def check_one_name(report, names, path):
    """Waits for locks of a file, reads of it and faults in it have the same name."""
    reported = {
        "waits": {w["object"] for w in report["waited_objects"] if w["reason"] == "[file lock wait]"},
        "requests": {f["path"] for f in report["io_files"]},
    }
    wanted = {f"{path}/{name}" for name in names}
    for what, paths in reported.items():
        found = {p for p in paths if p.endswith(tuple(f"/{name}" for name in names))}
        check(found == wanted, f"{what}: {sorted(found)}, should be {sorted(wanted)}")


def test_overlay(context):
    """A file of an overlay has the name that programs know in all kinds of records."""
    needs_root()
    needs_command("mount")
    folders = {name: context.path(name) for name in ("lower", "upper", "work", "merged")}
    for folder in folders.values():
        folder.mkdir()
    (folders["lower"] / "lower-file").write_bytes(os.urandom(1 << 20))
    os.sync()
    options = "lowerdir={lower},upperdir={upper},workdir={work}".format(**folders)
    if subprocess.run(["mount", "-t", "overlay", "-o", options, "overlay", folders["merged"]], check=False,
                      capture_output=True).returncode:
        raise Skip("no overlays here")
    try:
        script, output = context.path("overlaid.py"), context.path("p.json.gz")
        script.write_text(OVERLAID)
        context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, folders["merged"],
                         context.random.randint(20, 40) / 1000)
    finally:
        subprocess.run(["umount", "--lazy", folders["merged"]], check=True)
    report = read_report(context, capture_of(output))
    check_one_name(report, ["lower-file", "upper-file"], folders["merged"])
    expect_failure(check_one_name, report, ["lower-file", "upper-file"], folders["upper"])


def check_metadata(report, device, mount, least):
    """Checks that so much was read, and nothing from a file, because all files are empty."""
    (found,) = [d for d in report["devices"] if d["name"] == device]
    files = [f["path"] for f in report["io_files"] if f["path"].startswith((f"{mount}", "inode ", device))]
    check(not files, f"these were read: {files}")
    check(found["read_bytes"] >= least, f"too little was read: {found}")


SIZE_OF_BTRFS = 115 << 20  # little more than mkfs.btrfs asks for


def test_btrfs_metadata(context):
    """The trees of Btrfs belong to the file system, and no file has such a name."""
    needs_command("mkfs.btrfs")
    mount = context.path("mount")
    mount.mkdir()
    count = context.random.randint(800, 1200)
    with LoopDisk(context, SIZE_OF_BTRFS) as disk:
        subprocess.run(["mkfs.btrfs", "-q", "-f", disk.path], check=True, capture_output=True)
        if subprocess.run(["mount", disk.path, mount], check=False, capture_output=True).returncode:
            raise Skip("no Btrfs here")
        try:
            for i in range(count):
                (mount / f"file-{i}").write_bytes(b"")
            subprocess.run(["umount", mount], check=True)
            subprocess.run(["mount", disk.path, mount], check=True)
            context.wallprof("-q", "--keep-capture", "-o", context.path("p.json.gz"), "--", "find", mount, "-size", "+1")
        finally:
            subprocess.run(["umount", "--lazy", mount], check=True)
        report = read_report(context, capture_of(context.path("p.json.gz")))
        check_metadata(report, disk.name, mount, count * 100)
        expect_failure(check_metadata, report, disk.name, mount, SIZE_OF_BTRFS)
