# SPDX-License-Identifier: GPL-2.0-or-later
"""Threads that hold Python's global interpreter lock by turns, planted by a seed, while others want it.

gil.py SEED TRUTH ROUNDS: writes who held it in which function, and when. Functions of C that do not release the lock
hold it for as long as they take; a loop of Python does so while the switch interval is longer. Runs with every
version from 3.8 on.
"""
import ctypes
import json
import random
import sys
import threading
import time

SEED, TRUTH, ROUNDS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
chance = random.Random(SEED)
keeping = ctypes.PyDLL(None)  # its functions are called with the lock
held, waiters, over = [], [], threading.Event()
number = (1 << 300_000) - 1
items = [chance.random() for _ in range(60_000)]


def multiply(end):
    while time.monotonic_ns() < end:
        number * number


def sort(end):
    while time.monotonic_ns() < end:
        sorted(items)


def sleep_with_lock(end):
    keeping.usleep(max(end - time.monotonic_ns(), 1) // 1000)


def loop(end):
    x = 0
    while time.monotonic_ns() < end:
        for i in range(300):
            x = (x * 31 + i) % 1000003


KINDS = [multiply, sort, sleep_with_lock, loop]


def hold(turns, begin, done):
    for kind, ms in turns:
        begin.acquire()
        start = time.monotonic_ns()
        kind(start + ms * 1_000_000)
        held.append([threading.get_native_id(), kind.__name__, start, time.monotonic_ns()])
        done.release()


def want():
    waiters.append(threading.get_native_id())
    while not over.is_set():
        time.sleep(0.001)


def main():
    time.sleep(0.3)
    wanting = [threading.Thread(target=want) for _ in range(2)]
    begins, done, threads, turns = [], threading.Semaphore(0), [], []
    for _ in range(3):
        turns.append([(chance.choice(KINDS), chance.randint(8, 24)) for _ in range(ROUNDS)])
        begins.append(threading.Semaphore(0))
        threads.append(threading.Thread(target=hold, args=(turns[-1], begins[-1], done)))
    for thread in threads + wanting:
        thread.start()
    order = [i for i in range(3) for _ in range(ROUNDS)]
    chance.shuffle(order)
    for which in order:
        sys.setswitchinterval(0.005)
        time.sleep(0.003)
        # A thread that waits already asks for the lock after the interval that was set when it began to wait.
        sys.setswitchinterval(100)
        time.sleep(0.001)
        begins[which].release()
        done.acquire()
    over.set()
    for thread in threads + wanting:
        thread.join()
    with open(TRUTH, "w") as file:
        json.dump({"offset": time.time_ns() - time.monotonic_ns(), "held": held, "waiters": waiters}, file)


main()
