# SPDX-License-Identifier: GPL-2.0-or-later
"""A pool of threads that wait for jobs nearly all the time. pool.py SECONDS KIND, where KIND is one of

queue: threads that get jobs from a queue. executor: those of concurrent.futures. lock: threads that wait for a lock,
which a thread keeps while it sleeps: they have work.
"""
import queue
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

SECONDS, KIND = float(sys.argv[1]), sys.argv[2]
THREADS = 4


def work(ms):
    end = time.monotonic() + ms / 1000
    while time.monotonic() < end:
        sum(range(1000))


def get_jobs(jobs):
    while True:
        ms = jobs.get()
        if ms is None:
            return
        work(ms)


def give_jobs(give):
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        time.sleep(0.03)
        give(2)


def by_queue():
    jobs = queue.Queue()
    threads = [threading.Thread(target=get_jobs, args=(jobs,)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    give_jobs(jobs.put)
    for thread in threads:
        jobs.put(None)


def by_executor():
    with ThreadPoolExecutor(THREADS) as executor:
        for _ in range(THREADS):
            executor.submit(time.sleep, 0.05)
        give_jobs(lambda ms: executor.submit(work, ms))


def take(lock, end):
    while time.monotonic() < end:
        with lock:
            time.sleep(0.01)


def by_lock():
    lock, end = threading.Lock(), time.monotonic() + SECONDS
    for _ in range(THREADS):
        threading.Thread(target=take, args=(lock, end)).start()


{"queue": by_queue, "executor": by_executor, "lock": by_lock}[KIND]()
