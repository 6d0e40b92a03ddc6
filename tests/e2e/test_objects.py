# SPDX-License-Identifier: GPL-2.0-or-later
"""What threads wait for, between processes: who is at the other end of pipes and sockets.

Python does it, and tells the numbers and addresses by fstat(), getsockname() and getpeername().
"""
import json
import sys
from pathlib import Path

from harness import (GUEST_ABSOLUTE, GUEST_SHARE, IN_GUEST, MS, check, check_timed, expect_failure,
                     noticeable, read_report, wait_until)

SCRIPT = """
import json, os, select, socket, sys, time

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
    other.recv(1)
    later(lambda: other.send(b"x"))
    later(lambda: os.write(writer, b"x"))
    other.recv(1)
    time.sleep(delay)
    os._exit(0)
os.read(reader, 1)
near.recv(1)
accepted = local.accept()[0]
accepted.recv(1)
connected = wide.accept()[0]
connected.send(b"x")
connected.recv(1)
epoll = select.epoll()
epoll.register(reader, select.EPOLLIN)
epoll.register(wide, select.EPOLLIN)
epoll.poll()
time.sleep(delay)
connected.send(b"x")
os.waitpid(child, 0)
pipe, peer = "pipe:[%d]" % number(reader), "%s:%d" % connected.getpeername()
ends = "(parent %d, child %d)" % (os.getpid(), child)
back = "(child %d, parent %d)" % (child, os.getpid())
with open(path, "w") as file:
    json.dump([
        ["[pipe read wait]", pipe + " " + ends],
        ["[unix socket receive wait]", "unix:[%d] %s" % (number(near.fileno()), ends)],
        ["[unix socket receive wait]", "unix %s/socket %s" % (folder, ends)],
        ["[network receive wait]", "tcp %s → %s %s" % (address(connected), peer, ends)],
        ["[network receive wait]", "tcp %s → %s %s" % (peer, address(connected), back)],
        ["[poll wait]", "epoll of %s, tcp listening on %s" % (pipe, address(wide))],
    ], file)
"""


def check_object(report, reason, name, ns):
    found = [w for w in report["waited_objects"] if (w["reason"], w["object"]) == (reason, name)]
    check(len(found) == 1, f"{reason} for {name} is not among {report['waited_objects']}")
    check_timed(f"{reason} for {name}", found[0]["ns"], ns, *TOLERANCE)


# What Python does before it waits is not the wait's.
TOLERANCE = (GUEST_SHARE, GUEST_ABSOLUTE) if IN_GUEST else (0.05, 3 * MS)


def test_ends(context):
    """Each wait is for what the kernel says that it is, with who is at both ends."""
    delay = context.random.randint(60, 90) * MS
    script, told, output = (context.path(name) for name in ("ends.py", "told.json", "p.json.gz"))
    script.write_text(SCRIPT)
    context.wallprof("-q", "--keep-capture", "-o", output, "--", sys.executable, script, told,
                     context.folder, delay / 1e9)
    report, objects = read_report(context, f"{output}.capture"), json.loads(told.read_text())
    for reason, name in objects:
        check_object(report, reason, name, delay)
    reason, name = objects[0]
    expect_failure(check_object, report, reason, name.replace("child", "other"), delay)
    expect_failure(check_object, report, reason, name, noticeable(2 * delay, delay))


def is_asleep(pid):
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "S"


def test_begun_before(context):
    """What a thread waits for since before the window, in which it is never switched out."""
    script = "import os, sys\nr, w = os.pipe()\nprint(os.fstat(r).st_ino, flush=True)\nos.read(r, 1)"
    number, output = context.path("number"), context.path("p.json.gz")
    with open(number, "w") as file:
        process = context.start([sys.executable, "-c", script], stdout=file)
    wait_until(lambda: number.read_text().endswith("\n"), "the script has a pipe")
    wait_until(lambda: is_asleep(process.pid), "the script waits")
    context.wallprof("-q", "--keep-capture", "-o", output, "-p", process.pid, "-d", "300ms")
    report = read_report(context, f"{output}.capture")
    comm = Path(f"/proc/{process.pid}/comm").read_text().strip()
    name = f"pipe:[{number.read_text().strip()}] ({comm} {process.pid})"
    check_object(report, "[pipe read wait]", name, 300 * MS)
