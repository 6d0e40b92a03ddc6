# SPDX-License-Identifier: GPL-2.0-or-later
"""Python threads that sleep for good, in functions planted by a seed, before a recording begins.

sleepers.py SEED TRUTH [THREADS]: TRUTH has their frames when all of them sleep. Runs with every version from 3.8 on.
"""
import json
import os
import queue
import random
import sys
import threading
import time

COUNT = int(sys.argv[3]) if len(sys.argv) > 3 else 12
del sys.argv[3:]  # the chains have other arguments

import chains  # noqa: E402

asleep, never = [], threading.Event()


def note(leaf):
    asleep.append([threading.get_native_id(), 0, chains.frames(leaf)])


def in_sleep():
    note(sys._getframe()); time.sleep(1000)  # noqa: E702


def in_event():
    note(sys._getframe()); never.wait()  # noqa: E702


def in_queue():
    note(sys._getframe()); queue.Queue().get()  # noqa: E702


def in_read():
    reader, _ = os.pipe()
    note(sys._getframe()); os.read(reader, 1)  # noqa: E702


def work(number):
    chance = random.Random(chains.SEED + number)
    chains.call(chains.chain_of(chance), chance.choice([in_sleep, in_event, in_queue, in_read]))


def main():
    for number in range(COUNT):
        threading.Thread(target=work, args=(number,), daemon=True).start()
    while len(asleep) < COUNT:
        time.sleep(0.01)
    time.sleep(0.3)
    with open(chains.TRUTH + ".new", "w") as file:
        json.dump(asleep, file)
    os.rename(chains.TRUTH + ".new", chains.TRUTH)
    never.wait()


main()
