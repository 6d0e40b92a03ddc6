# SPDX-License-Identifier: GPL-2.0-or-later
"""A name server that answers late.

Run as a program, in a network and a mount namespace of its own: slow_dns.py FOLDER DELAY_S COMMAND…: executes the command
where all names are asked for on 127.0.0.1, and exits with its status.
"""
import fcntl
import socket
import struct
import subprocess
import sys
import threading
from pathlib import Path

SIOCSIFFLAGS, IFF_UP = 0x8914, 1
PORT = 53
TYPE_A, CLASS_IN = 1, 1
ANSWER, ADDRESS = 0x8180, bytes([127, 0, 0, 1])
FILES = {"resolv.conf": "nameserver 127.0.0.1\n", "nsswitch.conf": "hosts: dns\n"}


def answer_to(query):
    """An address for a name's A, and nothing for what else is asked of it (RFC 1035, section 4.1)."""
    end = query.index(0, 12) + 5
    kind, = struct.unpack_from(">H", query, end - 4)
    found = kind == TYPE_A
    record = struct.pack(">HHHIH", 0xC00C, TYPE_A, CLASS_IN, 60, len(ADDRESS)) + ADDRESS if found else b""
    return query[:2] + struct.pack(">HHHHH", ANSWER, 1, found, 0, 0) + query[12:end] + record


def serve(own, delay_s):
    while True:
        query, asker = own.recvfrom(512)
        threading.Timer(delay_s, own.sendto, (answer_to(query), asker)).start()  # the wait that is recorded


def main():
    folder, delay_s, command = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3:]
    for name, text in FILES.items():
        (folder / name).write_text(text)
        subprocess.run(["mount", "--bind", folder / name, Path("/etc", name)], check=True)
    own = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    fcntl.ioctl(own, SIOCSIFFLAGS, struct.pack("16sH14x", b"lo", IFF_UP))
    own.bind(("127.0.0.1", PORT))
    threading.Thread(target=serve, args=(own, delay_s), daemon=True).start()
    sys.exit(subprocess.run(command).returncode)


if __name__ == "__main__":
    main()
