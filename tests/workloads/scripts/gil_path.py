# SPDX-License-Identifier: GPL-2.0-or-later
"""A main thread that always has Python's global interpreter lock, or waits for it, while others hold it.

gil_path.py SEED TRUTH ROUNDS: so at each moment the thread that has the lock is on the critical path. Writes which
thread had it, and when. The threads hold it for times of different sizes. Runs with every version from 3.8 on.
"""
import ctypes
import json
import random
import sys
import threading
import time
from functools import partial

SEED, TRUTH, ROUNDS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
chance = random.Random(SEED)
keeping = ctypes.PyDLL(None)  # its functions are called with the lock
held = []
clock = partial(time.monotonic_ns)


def calibrated():
    """How many numbers sum() adds in a millisecond."""
    start = time.monotonic_ns()
    sum(range(1_000_000))
    return 1_000_000_000_000 // (time.monotonic_ns() - start)


PER_MS = calibrated()


def add(ms):
    return partial(sum, range(ms * PER_MS))


def sleep_with_lock(ms):
    return partial(keeping.usleep, ms * 1000)


KINDS = [add, sleep_with_lock]


def hold(kind, ms):
    """One call of a function of C, and the clock before and after it: nothing else can have the lock in between."""
    start, _, end = map(partial.__call__, [clock, kind(ms), clock])
    held.append([threading.get_native_id(), kind.__name__, start, end])


def holder(turns, begin):
    for kind, ms in turns:
        begin.acquire()
        hold(kind, ms)


def main():
    time.sleep(0.3)
    # A thread that wants the lock waits for so long, and again.
    sys.setswitchinterval(chance.choice([0.001, 0.005]))
    begins, threads, turns = [], [], []
    for i in range(3):
        turns.append([(chance.choice(KINDS), chance.randint(4 + 9 * i, 10 + 9 * i)) for _ in range(ROUNDS)])
        begins.append(threading.Semaphore(0))
        threads.append(threading.Thread(target=holder, args=(turns[-1], begins[-1])))
    for thread in threads:
        thread.start()
    order = [i for i in range(3) for _ in range(ROUNDS)]
    chance.shuffle(order)
    start = time.monotonic_ns()
    for at, which in enumerate(order):
        begins[which].release()
        if chance.random() < 0.5 and at + 1 < len(order):
            continue  # the next one begins at the same time, and waits for the lock as this thread does
        time.sleep(0.001)
        hold(add, chance.randint(2, 5))
    for thread in threads:
        thread.join()
    with open(TRUTH, "w") as file:
        json.dump({"offset": time.time_ns() - time.monotonic_ns(), "held": held, "start": start,
                   "end": time.monotonic_ns()}, file)


main()
