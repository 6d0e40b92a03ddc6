# SPDX-License-Identifier: GPL-2.0-or-later
"""The number of instructions that the verifier processes for each program, from `wallprof doctor -v`."""
import re

from harness import check

# The design's budget for one program, and what stays tolerable beyond it.
MAX_INSTRUCTIONS = 40_000 * 1.2
# Those of all programs that a recording of a command loads, without fentry and fexit and with them.
MAX_SUM, MAX_SUM_WITH_TRAMPOLINES = 100_000, 140_000
LOADED = re.compile(r"\((\w+): (\d+) instructions verified, loaded in ([\d.]+) ms\)")

STARTED = re.compile(r"^all programs: loaded in ([\d.]+) ms \((\d+) instructions verified\), "
                     r"attached in ([\d.]+) ms$", re.M)


def check_programs(text, trampolines=True):
    """Every program loads, alone and with the others, and none costs the verifier too much.
    trampolines: fentry and fexit, too, which some kernels forbid."""
    refused = [line for line in text.splitlines()
               if re.match(r"no +" if trampolines else r"no +(?! |fentry/|fexit/)", line)]
    check(not refused, "; ".join(refused))
    loaded = LOADED.findall(text)
    check(len(loaded) >= 10, f"only {len(loaded)} programs")
    for program, instructions, _ in loaded:
        check(0 < int(instructions) <= MAX_INSTRUCTIONS,
              f"{program}: {instructions} instructions verified")
    started = STARTED.findall(text)
    check(len(started) == 1 and all(float(number) > 0 for number in started[0]),
          "all programs at once are not said to be loaded and attached")
    most = MAX_SUM_WITH_TRAMPOLINES if trampolines else MAX_SUM
    check(int(started[0][1]) <= most, f"{started[0][1]} instructions verified in all, {most} at most")


def table(text, kernel):
    """Lines to print: a title and a table of what loading took."""
    rows = LOADED.findall(text)
    total = ("total", sum(int(row[1]) for row in rows), sum(float(row[2]) for row in rows))
    yield f"Verified on {kernel}:"
    yield "| program | instructions | load, ms |"
    yield "|---|---|---|"
    for program, instructions, milliseconds in (*rows, total):
        yield f"| {program} | {int(instructions):,} | {float(milliseconds):.0f} |"
    for load, instructions, attach in STARTED.findall(text):
        yield (f"All of a recording at once: {int(instructions):,} instructions, loaded in {load} ms, "
               f"attached in {attach} ms.")
