# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of Python, planted by a seed, that wake other threads, read from a disk, or touch new memory.

events.py SEED TRUTH ROUNDS FILE: before each event, the functions that the interpreter has are noted, from the
outermost one. FILE is read past the page cache, if it is on a block device. Runs with every version from
3.8 on.
"""
import json
import mmap
import os
import queue
import random
import sys
import threading
import time

SEED, TRUTH, ROUNDS, FILE = int(sys.argv[1]), sys.argv[2], int(sys.argv[3]), sys.argv[4]
BLOCK, PAGES = 4096, 16
chance = random.Random(SEED)
planted, events, sleepers, awake = [], [], {}, set()
for number in range(8):
    space = {}
    exec(compile(f"def planted_{number}(rest, leaf):\n    rest[0](rest[1:], leaf) if rest else leaf()\n",
                 "<planted>", "exec"), space)
    planted.append(space[f"planted_{number}"])

jobs, lock, event, condition, semaphore = (queue.Queue(), threading.Lock(), threading.Event(), threading.Condition(),
                                           threading.Semaphore(0))
lock.acquire()


def get_job():
    jobs.get()


def take_lock():
    lock.acquire()


def wait_event():
    event.wait()
    event.clear()


def wait_condition():
    with condition:
        condition.wait()


def take_semaphore():
    semaphore.acquire()


def put_job():
    note("wake", get_job)
    jobs.put(1)


def release_lock():
    note("wake", take_lock)
    lock.release()


def set_event():
    note("wake", wait_event)
    event.set()


def notify():
    note("wake", wait_condition)
    with condition:
        condition.notify()


def release_semaphore():
    note("wake", take_semaphore)
    semaphore.release()


def read_block():
    note("request")
    os.preadv(disk, [block], chance.randrange(os.path.getsize(FILE) // BLOCK) * BLOCK)


def touch_memory():
    memory = mmap.mmap(-1, PAGES * BLOCK)
    note("fault")
    for at in range(0, PAGES * BLOCK, BLOCK):
        memory[at] = 1


WAKES = {get_job: put_job, take_lock: release_lock, wait_event: set_event, wait_condition: notify,
         take_semaphore: release_semaphore}


def note(kind, waiting=None):
    """The functions from the outermost one to the one that has called this."""
    chain, frame = [], sys._getframe(1)
    awake.add(waiting)
    while frame:
        chain.append(frame.f_code.co_name)
        frame = frame.f_back
    events.append([kind, threading.get_native_id(), sleepers.get(waiting), time.monotonic_ns(), None, chain[::-1]])


def sleep_always(wait):
    sleepers[wait] = threading.get_native_id()
    while True:
        awake.discard(wait)
        wait()


def do(leaf):
    chain = chance.choices(planted, k=chance.randint(1, 6))
    time.sleep(0.003)
    while awake - {None}:
        time.sleep(0.003)
    chain[0](chain[1:], leaf)
    events[-1][4] = time.monotonic_ns()


def main():
    awake.update(WAKES)
    threads = [threading.Thread(target=sleep_always, args=(wait,), daemon=True) for wait in WAKES]
    for thread in threads:
        thread.start()
    time.sleep(0.7)
    for _ in range(ROUNDS):
        leaves = [*WAKES.values(), touch_memory] + [read_block] * (disk is not None)
        for leaf in chance.sample(leaves, len(leaves)):
            do(leaf)
    # The thread may lose its CPU between both clocks.
    offset = max(time.time_ns() - time.monotonic_ns() for _ in range(20))
    with open(TRUTH, "w") as file:
        json.dump({"realtime_offset_ns": offset, "events": events}, file)


disk, block = None, mmap.mmap(-1, BLOCK)
if os.major(os.stat(FILE).st_dev):
    disk = os.open(FILE, os.O_RDONLY | os.O_DIRECT)
main()
