# SPDX-License-Identifier: GPL-2.0-or-later
"""Python functions that wait and run, planted by a seed, which write down the interpreter's own stack.

chains.py SEED TRUTH [WAITS [SPIN_MS [DEPTH]]]: before each wait and each loop the frames that the interpreter
itself has are noted, with their lines. Runs with every version from 3.8 on.
"""
import functools
import itertools
import json
import random
import re
import sys
import threading
import time

SEED, TRUTH = int(sys.argv[1]), sys.argv[2]
WAITS = int(sys.argv[3]) if len(sys.argv) > 3 else 60
SPIN_MS = int(sys.argv[4]) if len(sys.argv) > 4 else 100
DEPTH = int(sys.argv[5]) if len(sys.argv) > 5 else 20
HAS_QUALNAME = hasattr(compile("", "", "exec"), "co_qualname")

waits, spins = [], []


def frames(leaf):
    """The frames from the outermost one to leaf: name, file, line."""
    found = []
    while leaf:
        code = leaf.f_code
        found.append([code.co_qualname if HAS_QUALNAME else code.co_name, code.co_filename, leaf.f_lineno])
        leaf = leaf.f_back
    return found[::-1]


def wait(ms):
    tid = threading.get_native_id()
    # One line, so that the line that is noted is that of the wait.
    chain = frames(sys._getframe()); waits.append([tid, time.monotonic_ns(), chain]); time.sleep(ms / 1e3)  # noqa: E702


def spin(ms):
    """Its time is that on a CPU: a machine that is busy gives it as many ticks as an idle one."""
    chain, begin, x = frames(sys._getframe()), time.monotonic_ns(), 0
    end = time.thread_time_ns() + ms * 1_000_000
    while time.thread_time_ns() < end:
        for i in range(2000):
            x = (x * 31 + i) % 1000003
    spins.append([threading.get_native_id(), begin, time.monotonic_ns(), chain])


def plain(rest, leaf):
    call(rest, leaf)


def with_lines(rest, leaf):
    text = "a"
    for _ in range(2):
        text += "b"
    if text == "abb":
        call(rest,
             leaf)


def generator(rest, leaf):
    def numbers():
        yield 1
        call(rest, leaf)
        yield 2
    for _ in numbers():
        pass


def yield_from(rest, leaf):
    def inner():
        yield call(rest, leaf)

    def outer():
        yield from inner()
    list(outer())


def comprehension(rest, leaf):
    return [call(rest, leaf) for _ in range(1)]


def generator_expression(rest, leaf):
    return sum(1 for _ in range(1) if call(rest, leaf) is None)


def sort_key(rest, leaf):
    sorted([1], key=lambda x: call(rest, leaf) or x)


def substitution(rest, leaf):
    def replace(match):
        call(rest, leaf)
        return match.group(0)
    re.sub("x", replace, "axa")


def partial(rest, leaf):
    functools.partial(plain, rest)(leaf)


class Thing:
    def __init__(self, rest, leaf):
        self.rest, self.leaf = rest, leaf

    def method(self):
        call(self.rest, self.leaf)

    @property
    def attribute(self):
        return call(self.rest, self.leaf)

    @classmethod
    def of_class(cls, rest, leaf):
        call(rest, leaf)

    def __len__(self):
        call(self.rest, self.leaf)
        return 1

    def __enter__(self):
        call(self.rest, self.leaf)

    def __exit__(self, *_):
        pass


def method(rest, leaf):
    Thing(rest, leaf).method()


def attribute(rest, leaf):
    return Thing(rest, leaf).attribute


def of_class(rest, leaf):
    Thing.of_class(rest, leaf)


def length(rest, leaf):
    return len(Thing(rest, leaf))


def context(rest, leaf):
    with Thing(rest, leaf):
        pass


def decorate(function):
    @functools.wraps(function)
    def wrapper(*arguments):
        return function(*arguments)
    return wrapper


@decorate
def decorated(rest, leaf):
    call(rest, leaf)


def in_exception(rest, leaf):
    try:
        raise KeyError
    except KeyError:
        call(rest, leaf)
    finally:
        rest = None


def größe_名(rest, leaf):
    call(rest, leaf)


made = itertools.count(1)


def made_and_dropped(rest, leaf):
    """Each time another function, in memory that is used again."""
    number = next(made)
    space = {"call": call}
    exec(compile("\n" * (number % 7) + "def made_%d(rest, leaf):\n%s    call(rest, leaf)\n" %
                 (number, "    pass\n" * (number % 3)), "<made %d>" % number, "exec"), space)
    space["made_%d" % number](rest, leaf)


def recursion(rest, leaf, depth=None):
    if depth is None:
        depth = random.Random(SEED).randint(DEPTH * 2 // 3, DEPTH)
    if depth > 0:
        recursion(rest, leaf, depth - 1)
    else:
        call(rest, leaf)


KINDS = [plain, with_lines, generator, yield_from, comprehension, generator_expression, sort_key, substitution,
         partial, method, attribute, of_class, length, context, decorated, in_exception, größe_名, made_and_dropped,
         recursion]


def call(rest, leaf):
    if rest:
        rest[0](rest[1:], leaf)
    else:
        leaf()


def chain_of(chance):
    """One recursion at most: the interpreter has a limit."""
    chain = chance.choices(KINDS, k=chance.randint(1, 6))
    return [kind for i, kind in enumerate(chain) if kind is not recursion or recursion not in chain[:i]]


def work(seed):
    chance = random.Random(seed)
    for i in range(WAITS):
        chain = chain_of(chance)
        ms = chance.randint(2, 6)
        call(chain, lambda: wait(ms))
        if i % 8 == 0:
            chain = chain_of(chance)
            call(chain, lambda: spin(SPIN_MS))


def main():
    time.sleep(0.3)
    threads = [threading.Thread(target=work, args=(SEED + i,)) for i in range(2)]
    for thread in threads:
        thread.start()
    work(SEED + 10)
    for thread in threads:
        thread.join()
    with open(TRUTH, "w") as file:
        json.dump({"realtime_offset_ns": time.time_ns() - time.monotonic_ns(), "waits": waits, "spins": spins}, file)


if __name__ == "__main__":
    main()
