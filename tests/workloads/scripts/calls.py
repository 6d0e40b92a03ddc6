# SPDX-License-Identifier: GPL-2.0-or-later
"""Waits of each kind that Python's library has, planted by a seed.

calls.py SEED TRUTH ROUNDS: each wait is of a thread of its own, which another thread ends after some milliseconds.
Writes the thread, the times and the kind. Runs with every version from 3.8 on.
"""
import asyncio
import json
import queue
import random
import sys
import threading
import time
from concurrent.futures import Future

SEED, TRUTH, ROUNDS = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
chance = random.Random(SEED)
waits = []


def with_lock(lock):
    with lock:
        pass


def wait_for_lock(kind):
    lock, taken, over = kind(), threading.Event(), threading.Event()

    def hold():
        with lock:
            taken.set()
            over.wait()
    holder = threading.Thread(target=hold)
    holder.start()
    taken.wait()
    return (lambda: with_lock(lock)), over.set


def condition():
    with changed:
        changed.wait()


def notify():
    with changed:
        changed.notify_all()


changed = threading.Condition()


def wait_for_room():
    full = queue.Queue(1)
    full.put(0)
    return (lambda: full.put(1)), full.get


def wait_for_end(ms):
    thread = threading.Thread(target=time.sleep, args=(ms / 1000,))
    thread.start()
    return thread.join, lambda: None


def pair(thing, wait, end):
    return getattr(thing, wait), getattr(thing, end)


KINDS = {
    "lock": lambda ms: wait_for_lock(threading.Lock),
    "recursive lock": lambda ms: wait_for_lock(threading.RLock),
    "condition": lambda ms: (condition, notify),
    "event": lambda ms: pair(threading.Event(), "wait", "set"),
    "semaphore": lambda ms: pair(threading.Semaphore(0), "acquire", "release"),
    "barrier": lambda ms: pair(threading.Barrier(2), "wait", "wait"),
    "get": lambda ms: (lambda q: (q.get, lambda: q.put(0)))(queue.Queue()),
    "put": lambda ms: wait_for_room(),
    "future": lambda ms: (lambda f: (f.result, lambda: f.set_result(0)))(Future()),
    "join": wait_for_end,
    "loop": lambda ms: ((lambda: asyncio.run(asyncio.sleep(ms / 1000))), lambda: None),
}


def plant(kind, ms):
    wait, end = KINDS[kind](ms)

    def run():
        start = time.monotonic_ns()
        wait()
        waits.append([threading.get_native_id(), kind, start, time.monotonic_ns()])
    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(ms / 1000)
    end()
    thread.join()


def main():
    time.sleep(0.3)
    kinds = list(KINDS) * ROUNDS
    chance.shuffle(kinds)
    for kind in kinds:
        plant(kind, chance.randint(8, 20))
    with open(TRUTH, "w") as file:
        json.dump({"offset": time.time_ns() - time.monotonic_ns(), "waits": waits}, file)


main()
