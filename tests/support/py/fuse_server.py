# SPDX-License-Identifier: GPL-2.0-or-later
"""A FUSE server of one file, which answers each read after a delay (include/uapi/linux/fuse.h).

Run as a program: fuse_server.py FOLDER SIZE DELAY_S [IMAGE]: mounts there, says "ready", and serves until the folder is
unmounted. The file has the bytes of IMAGE, and the kernel keeps none of them; without IMAGE it has zeros.
"""
import ctypes
import os
import struct
import sys
import time

HEADER = struct.Struct("<IIQQIIII")  # length, opcode, unique, node, uid, gid, pid, padding
LOOKUP, GETATTR, OPEN, READ, INIT, OPENDIR = 1, 3, 14, 15, 26, 27
WITHOUT_ANSWER = {2, 36, 42}  # FORGET, INTERRUPT, BATCH_FORGET
ROOT, FILE = 1, 2
S_IFDIR, S_IFREG = 0o040000, 0o100000
ENOENT, ENOSYS = 2, 38
DIRECT_IO = 1  # FOPEN_DIRECT_IO


def attributes(node, size):
    mode, length = (S_IFDIR | 0o755, 0) if node == ROOT else (S_IFREG | 0o644, size)
    return struct.pack("<6Q10I", node, length, (length + 511) // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def answer_to(opcode, node, body, size, delay_s, image):
    """Bytes, or an error's number."""
    if opcode == INIT:
        major, minor, ahead = struct.unpack_from("<III", body)
        return struct.pack("<IIIIHHII28x", major, min(minor, 31), ahead, 0, 16, 12, 131072, 1)
    if opcode == LOOKUP:
        if node != ROOT or body != b"file\0":
            return ENOENT
        return struct.pack("<QQQQII", FILE, 0, 60, 60, 0, 0) + attributes(FILE, size)
    if opcode == GETATTR:
        return struct.pack("<QII", 60, 0, 0) + attributes(node, size)
    if opcode in (OPEN, OPENDIR):
        return struct.pack("<QII", 0, DIRECT_IO if image and opcode == OPEN else 0, 0)
    if opcode == READ:
        _, offset, length = struct.unpack_from("<QQI", body)
        time.sleep(delay_s)  # the wait that is recorded
        length = max(min(length, size - offset), 0)
        return os.pread(image, length, offset) if image else bytes(length)
    return ENOSYS


def serve(device, *file):
    while True:
        try:
            request = os.read(device, 1 << 20)
        except FileNotFoundError:  # it was interrupted before it could be read
            continue
        except OSError:  # unmounted
            return
        _, opcode, unique, node, *_ = HEADER.unpack_from(request)
        if opcode in WITHOUT_ANSWER:
            continue
        answer = answer_to(opcode, node, request[HEADER.size:], *file)
        error, data = (-answer, b"") if isinstance(answer, int) else (0, answer)
        os.write(device, struct.pack("<IiQ", 16 + len(data), error, unique) + data)


def main():
    folder, size, delay_s = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
    image = os.open(sys.argv[4], os.O_RDONLY) if len(sys.argv) > 4 else None
    device = os.open("/dev/fuse", os.O_RDWR)
    options = f"fd={device},rootmode=40000,user_id=0,group_id=0".encode()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"slow", folder.encode(), b"fuse.slow", 0, options):
        raise OSError(ctypes.get_errno(), "mount")
    print("ready", flush=True)
    serve(device, size, delay_s, image)


if __name__ == "__main__":
    main()
