# SPDX-License-Identifier: GPL-2.0-or-later
"""The suite "fuzz": each target of tests/fuzz runs for WALLPROF_FUZZ_SECONDS of CPU time (8; 60 with --long) from seeds
that are made here, one or two at a time; then the parsers' lines that were reached are counted,
and a planted bug must be found. docs/design/fuzzing.md says how to run one by hand.

A crash within libdw, libelf or liblzma is counted and reported, and is no failure: against these
there is the sandbox. Everything else is ours.
"""
import base64
import json
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import fuzz_seeds
import seed_values
from harness import ROOT, WALLPROF, check, expect_failure, is_long

pytestmark = [pytest.mark.untimed, pytest.mark.tried_once]
BUILD = ROOT / "build-fuzz" / "tests" / "fuzz"
# And which share of the time each gets: what is small is soon known. In the long run each has all.
TARGETS = {"api": 0.2, "object": 1, "capture": 1, "export": 0.2, "maps": 1, "jit": 1, "jit_image": 0.2, "cache": 0.1,
           "messages": 0.1, "names": 0.2, "script": 0.1, "table": 0.2, "unwind": 0.2}
PLANTED, PLANTED_IN = "capture_planted", "capture"
SEEDS_OF = {"export": "capture", PLANTED: PLANTED_IN}
# The parsers of files and texts that others made.
PARSERS = ["api_symbolicate.c", "cached_object.c", "capture_check.c", "capture_old.c", "capture_reader.c", "capture_sort.c",
           "cfi.c", "cfi.h", "cfi_expression.c", "cfi_program.c", "debug_link.c",
           "demangle_d.c", "demangle_d_reader.h", "demangle_d_values.c", "demangle_plain.c", "dwarf_names.c",
           "dwarf_sections.c", "dwarf_split.c", "dwarf_split_values.c", "elf_decompress.c",
           "elf_fde.c", "elf_file.c", "jit_cfi.c", "jit_image.c", "jit_object.c", "elf_plt.c", "elf_symbols.c", "jit_table.c", "jitdump.c", "object_names.c",
           "pclntab.c", "pclntab_find.c", "perf_map.c", "proc_maps.c", "range_history.c", "profile_libs.c",
           "script_python_lines.c",
           "symbol_messages.c", "table_file.c", "unwind_code.c", "unwind_decode.c", "unwind_fdes.c", "unwind_follow.c",
           "unwind_functions.c", "unwind_gaps.c", "unwind_go.c", "unwind_instruction.c", "unwind_rules.c",
           "unwind_sections.c", "unwind_state.c", "unwind_table.c"]
AT_A_TIME = 2
LEAST_PERCENT = 80
LEAST_CAPTURES = {"capture": 2000, "export": 2000}  # each is run for longer until it has had so many, leaks counted
MOST_S = 600  # on the clock, for a target that is to have more CPU time or more runs
LEAST_RUNS = 10  # in a second of CPU time: by the clock it may be given next to nothing
NICE = 19  # tests that measure time get the CPU first
PLANTED_S = 150  # of CPU time at most: it is found in seconds
PLANTED_MOST_S = 600
CRASHES_MAX = 1000
# Wall-clock time: a nice process may have to wait for others.
OPTIONS = ["-timeout=100", "-rss_limit_mb=2048", "-malloc_limit_mb=1024", "-max_len=65536",
           "-print_final_stats=1", "-verbosity=1", "-detect_leaks=1"]
# libFuzzer counts how often each place is reached, to prefer inputs that reach rare ones. Captures reach so many places
# that the counting takes a fifth of the time, and 2,000 of them reach as many places without.
OF_CAPTURES = ["-entropic=0"]

FRAME = re.compile(r"^ +#\d+ 0x[0-9a-f]+ (.*)$", re.M)
FOREIGN = re.compile(r"/lib(dw|elf|lzma)([.-][^/]*\+0x|/)")
OURS = re.compile(r"/(src|export|tests/fuzz)/[\w./]+\.[ch]:\d+")
STACK_BEGINS = re.compile(r"ERROR: |runtime error: |does not hold: ")


class Crash:
    """The output of a target that ended by itself."""

    def __init__(self, text, artifact):
        begins = STACK_BEGINS.search(text)
        self.text = text[begins.start() if begins else 0:]
        self.data = artifact.read_bytes() if artifact else b""

    def foreign_frame(self):
        """Returns the library of the crash, if it is one that only sandboxed children call."""
        for frame in FRAME.findall(self.text):
            if FOREIGN.search(frame):
                return frame
            if OURS.search(frame):
                return None
        return None

    def __str__(self):
        return (f"{self.text[:6000]}\nthe input, base64 (tests/run/fuzz.py, or the target with "
                f"the file as argument, repeats it):\n{base64.b64encode(self.data).decode()}")


class Fuzzer:
    def __init__(self, work, name, seed):
        self.binary = BUILD / f"fuzz_{name}"
        self.seeds = work / "seeds" / SEEDS_OF.get(name, name)
        self.corpus, self.artifacts = work / "corpus" / name, work / "artifacts" / name
        self.profile, self.seed = work / f"{name}.profraw", seed % 2**31
        self.least, self.is_of_captures = LEAST_CAPTURES.get(name, 0), self.seeds.name == "capture"
        for folder in (self.corpus, self.artifacts):
            folder.mkdir(parents=True)
        self.runs, self.cpu_seconds, self.foreign = 0, 0, []

    def run(self, *arguments):
        """Runs the target, which writes what lines it reached if it comes to its end. Returns its Crash, or None."""
        environment = {**os.environ, "LLVM_PROFILE_FILE": str(self.profile),
                       "ASAN_OPTIONS": "allocator_may_return_null=1",
                       "UBSAN_OPTIONS": "print_stacktrace=1"}
        with subprocess.Popen(
                ["nice", "-n", str(NICE), self.binary, *OPTIONS, *(OF_CAPTURES if self.is_of_captures else []),
                 f"-artifact_prefix={self.artifacts}/", *arguments],
                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace",
                env=environment) as process:
            text = process.stderr.read()
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        self.cpu_seconds += usage.ru_utime + usage.ru_stime
        runs = re.search(r"number_of_executed_units: (\d+)", text)
        self.runs += int(runs[1]) if runs else 0
        if process.returncode == 0:
            return None
        written = re.search(r"Test unit written to (\S+)", text)
        return Crash(text, Path(written[1]) if written else None)

    def fuzz(self, seconds, least, most_s):
        """
        From one crash in a library to the next, until so many seconds of CPU time were had and so many runs, but no
        longer than most_s on the clock: a nice process may be given next to nothing. Returns the first crash that is
        ours, or None.
        """
        begin, tries = time.monotonic(), 0
        while len(self.foreign) < CRASHES_MAX:
            left, left_of_clock = seconds - self.cpu_seconds, most_s - (time.monotonic() - begin)
            enough = tries and left < seconds / 4
            if left_of_clock <= 0 or (enough and self.runs >= least):
                break
            # Each new start runs all seeds, so one is to last until the target has had its CPU time.
            had = self.cpu_seconds / (time.monotonic() - begin) if tries else 1
            limits = [f"-max_total_time={max(1, round(min(left / max(had, 0.02), left_of_clock)))}"]
            if enough:
                limits = [f"-runs={least - self.runs}", f"-max_total_time={round(left_of_clock) + 1}"]
            crash = self.run(*limits, f"-seed={self.seed + tries}", self.corpus, self.seeds)
            tries += 1
            if crash and not crash.foreign_frame():
                return crash
            if crash:
                self.foreign.append(crash.foreign_frame())
        return None

    def replay(self):
        """For a target of which each run ended with a crash in a library: the lines that its inputs reach."""
        return None if self.profile.exists() else self.run("-runs=0", self.corpus, self.seeds)


def line_percents(work, fuzzers):
    """File -> percentage of its lines that the inputs reached."""
    profile = work / "merged.profdata"
    subprocess.run(["llvm-profdata", "merge", "-o", profile] + [f.profile for f in fuzzers],
                   check=True)
    objects = [x for f in fuzzers for x in ("-object", f.binary)]
    done = subprocess.run(["llvm-cov", "export", "-summary-only", f"-instr-profile={profile}",
                           *objects[1:]], check=True, capture_output=True, text=True)
    return {Path(f["filename"]).name: f["summary"]["lines"]["percent"]
            for f in json.loads(done.stdout)["data"][0]["files"]}


def check_percents(percents):
    low = [f"{name}: {percents.get(name, 0):.1f} %" for name in PARSERS
           if percents.get(name, 0) < LEAST_PERCENT]
    check(not low, f"less than {LEAST_PERCENT} % of the lines reached: " + ", ".join(low))


def check_target(fuzzer, crash):
    check(not crash, str(crash))
    check(fuzzer.runs >= fuzzer.least, f"only {fuzzer.runs} runs, should be {fuzzer.least}")
    check(fuzzer.runs > LEAST_RUNS * fuzzer.cpu_seconds,
          f"only {fuzzer.runs} runs in {fuzzer.cpu_seconds:.1f} s of CPU time")
    check(len(fuzzer.foreign) < CRASHES_MAX, f"{CRASHES_MAX} crashes: {fuzzer.foreign[-1:]}")


def test_triage():
    """The library of a crash is found in stacks that these targets have printed."""
    stack = """ERROR: AddressSanitizer: heap-buffer-overflow
    #0 0x55ea3e444435 in __interceptor_strlen (/b/tests/fuzz/fuzz_object+0x8a435) (BuildId: 4e)
    {}
    #5 0x55ea3e503b92 in find_in_unit /b/../src/dwarf_names.c:458:6
    #11 0x55ea3e4ecdf0 in LLVMFuzzerTestOneInput /b/../tests/fuzz/fuzz_object.c:119:3
    #12 0x55ea3e414833 in fuzzer::Fuzzer::ExecuteCallback() (/b/tests/fuzz/fuzz_object+0x5a833)
allocated by thread T0 here:
    #0 0x55ea3e4b113e in malloc (/b/tests/fuzz/fuzz_object+0xf713e)
    #1 0x7fde05c9e812  (/lib/x86_64-linux-gnu/libelf.so.1+0xb812) (BuildId: 5e)
"""
    for frame, foreign in (
            ("#1 0x7fde05ced2fe  (/lib/x86_64-linux-gnu/libdw.so.1+0x3f2fe) (BuildId: e6)", True),
            ("#1 0x7fde05cef570 in elf_getdata (/lib64/libelf-0.190.so+0x41) (BuildId: e6)", True),
            ("#1 0x7fde05cef570 in get /x/elfutils/libdw/dwarf_getsrclines.c:12:3", True),
            ("#1 0x7fde05765249 in qsort stdlib/msort.c:58:16", False),
            ("#1 0x55ea3e503b92 in ended /b/../src/dwarf_names.c:45:6", False)):
        found = Crash(stack.format(frame), None).foreign_frame()
        check(bool(found) == foreign, f"a crash with {frame} was taken for "
                                      f"{'ours' if foreign else 'another library'}")
    check(Crash("ERROR: libFuzzer: out-of-memory", None).foreign_frame() is None,
          "a crash without a stack has no library")


class Fuzzing:
    """The targets of this run, begun at once; so many run at a time."""

    def __init__(self, work, seed, targets, has_planted):
        self.work, self.room, self.pool = work, threading.Semaphore(AT_A_TIME - 1), ThreadPoolExecutor(AT_A_TIME + 1)
        threading.Thread(target=self.add_room, daemon=True).start()
        seconds = float(os.environ.get("WALLPROF_FUZZ_SECONDS") or (60 if is_long() else 8))
        # How long it takes to find is unknown: it begins first.
        self.planted = Fuzzer(work, PLANTED, seed) if has_planted else None
        self.planted_crash = self.pool.submit(self.fuzz, self.planted, PLANTED_S, PLANTED_MOST_S) if has_planted else None
        self.fuzzers = {name: Fuzzer(work, name, seed) for name in targets}
        self.crashes = {name: self.pool.submit(self.fuzz, fuzzer, seconds * (1 if is_long() else TARGETS[name]))
                        for name, fuzzer in self.fuzzers.items()}

    def add_room(self):
        """An emulated machine keeps one CPU busy. While there is one, this process is in SCHED_IDLE."""
        while os.sched_getscheduler(0) == os.SCHED_IDLE:
            time.sleep(0.5)  # a change of the class cannot be waited for
        self.room.release()

    def fuzz(self, fuzzer, seconds, most_s=MOST_S):
        with self.room:
            begin = time.monotonic()
            crash = fuzzer.fuzz(seconds, fuzzer.least, most_s)
            fuzzer.seconds = time.monotonic() - begin
            return crash

    def replay(self, fuzzer):
        with self.room:
            return fuzzer.replay()


@pytest.fixture(scope="session")
def fuzzing(request):
    wanted = {item.full_name.removeprefix("fuzz.") for item in request.session.items if item.suite == "fuzz"}
    work = Path(tempfile.mkdtemp(prefix="wallprof-fuzz-"))
    try:
        # Only this suite waits for it.
        built = subprocess.run([ROOT / "tools/test", "--build-fuzz"], capture_output=True, text=True)
        check(built.returncode == 0, built.stderr[-1000:])
        fuzz_seeds.make_all(WALLPROF, BUILD / "make_seeds", work / "work", work / "seeds")
        # The lines are those of all targets.
        targets = [name for name in TARGETS if name in wanted or "coverage" in wanted]
        fuzzing = Fuzzing(work, request.config.seed, targets, "planted" in wanted)
        with fuzzing.pool:
            yield fuzzing
    finally:
        shutil.rmtree(work)


@pytest.mark.parametrize("target", TARGETS)
def test_target(fuzzing, target):
    fuzzer, crash = fuzzing.fuzzers[target], fuzzing.crashes[target].result()
    places = "".join(f"; in {frame}" for frame in sorted(set(fuzzer.foreign))[:5])
    print(f"# fuzz.{target}: {fuzzer.runs} runs in {fuzzer.cpu_seconds:.1f} s of CPU time, "
          f"{len(fuzzer.foreign)} crashes in libdw and its like{places}", flush=True)
    check_target(fuzzer, crash)


def check_seeds(paths):
    missing = seed_values.missing_values(paths)
    check(not missing, f"in no seed: {', '.join(missing)}")


def test_seeds(fuzzing):
    """Each kind of record, each flag and value of an enum is in a seed that is made here, on whatever machine."""
    made = [path for path in (fuzzing.work / "seeds" / "capture").iterdir()
            if not path.name.startswith(("damaged", "recorded"))]
    check_seeds(made)
    expect_failure(check_seeds, [path for path in made if path.name != "values-io"])


def test_coverage(fuzzing):
    crashes = fuzzing.pool.map(fuzzing.replay, fuzzing.fuzzers.values())
    for name, crash in zip(fuzzing.fuzzers, crashes):
        check(not crash, f"{name}, replaying its corpus: {crash}")
    percents = line_percents(fuzzing.work, list(fuzzing.fuzzers.values()))
    for name in PARSERS:
        print(f"# fuzz: {name}: {percents.get(name, 0):.1f} % of the lines", flush=True)
    check_percents(percents)
    expect_failure(check_percents, line_percents(fuzzing.work, [fuzzing.fuzzers["maps"]]))


def test_planted(fuzzing):
    """Found where it was planted, and the same input does no harm where it was not."""
    fuzzer, crash = fuzzing.planted, fuzzing.planted_crash.result()
    check(crash, f"the planted bug was not found in {fuzzer.runs} runs")
    print(f"# fuzz: the planted bug was found after {fuzzer.seconds:.1f} s and {fuzzer.runs} runs", flush=True)
    input_path = fuzzing.work / "planted"
    input_path.write_bytes(crash.data)
    fuzzer.binary = BUILD / f"fuzz_{PLANTED_IN}"
    crash = fuzzer.run(input_path)
    check(not crash, f"it fails without the planted bug, too: {crash}")
