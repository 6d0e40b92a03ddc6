# SPDX-License-Identifier: GPL-2.0-or-later
"""What a run was waiting for is said first: in the summary, on the viewer's first screen, and in the report.

Each run has one planted cause, with names and figures that the test draws.
"""
import re
import sys

import pytest

import first_screen
from harness import ROOT, WORKLOADS, Profile, check, expect_failure, needs_command, needs_root
from limited_cpu import PERIOD_US, LimitedCpu
from slow_disk import LateDisk

pytestmark = [pytest.mark.untimed,
              pytest.mark.host_only("what is said is made of what other suites hold to account on every kernel")]

SUMMARY_LINES, REPORT_LINES = 5, 10
OF_NO_CAUSE = {"state": r"\[file lock wait\]|Between jobs", "function": "compact_log", "thread": r"compactor \d",
               "lock": "log_lock", "count": r"\b\d{5} times"}
READ_S = 0.002  # what a late disk takes for a read


def drawn_name(context, word):
    return f"{word}{context.random.randrange(1000, 10000)}"


def workload(name, *arguments):
    return [str(WORKLOADS / name), *map(str, arguments)]


def about(count):
    """So many times: opening a file may read once, too, and a wait may be interrupted."""
    return rf"\b({'|'.join(map(str, range(count - 2, count + 4)))}) times"


def shell(*parts):
    """A shell that runs command lines (lists) with what is between them (strings)."""
    return ["sh", "-c", " ".join(part if isinstance(part, str) else " ".join(part) for part in parts)]


# ---- what is said ----------------------------------------------------------------------------------------------------

def check_said(lines, facts):
    """facts: {what it is: regular expression}."""
    text = "\n".join(lines)
    for what, wanted in facts.items():
        check(re.search(wanted, text), f"no {what} ({wanted}) in:\n{text}")


def altered(what, wanted):
    """Another name or figure, if it was drawn, or what no cause here has."""
    if re.search("[0-9]{2}", wanted):
        return re.sub("[0-9]{2,}", lambda digits: "".join(str(9 - int(digit)) for digit in digits[0]), wanted)
    return OF_NO_CAUSE[what]


def check_each(lines, facts):
    """All are said, and an altered one would be missed."""
    check_said(lines, facts)
    for what, wanted in facts.items():
        expect_failure(check_said, lines, {**facts, what: altered(what, wanted)})


def check_first(context, command, said, shown, before=()):
    """The facts that are said in the text, and those that are shown on the first screen."""
    output = context.path("p.json.gz")
    done = context.wallprof("-o", output, "--", *command, before=before)
    summary = [line for line in done.stderr.splitlines() if not line.startswith("wallprof: ")]
    report = context.wallprof("report", output).stdout.splitlines()
    check_each(summary[:SUMMARY_LINES], said)
    check_each(report[:REPORT_LINES], said)
    check_each(first_screen.lines(Profile.load(output)), shown)


# ---- causes ----------------------------------------------------------------------------------------------------------

MAKEFILE = """all: {objects}
%.o: %.c
\tgcc -O2 -c -o $@ $<
"""
SLOW_FUNCTION = """int g{number}(int *a)
{{
	int s = 0;
	for (int i = 0; i < a[0]; i++)
		for (int j = 0; j < a[1]; j++)
			s += a[i ^ {drawn}] * a[j] % (a[s & 7] + {number});
	return s;
}}
"""


def test_slow_compiler(context):
    """One of twenty source files takes long."""
    needs_command("make")
    needs_command("gcc")
    folder, names = context.path("project"), [drawn_name(context, "unit") for _ in range(20)]
    slow = context.random.choice(names)
    folder.mkdir()
    for name in names:
        functions = [SLOW_FUNCTION.format(number=number, drawn=context.random.randrange(9))
                     for number in range(120 if name == slow else 1)]
        (folder / f"{name}.c").write_text("".join(functions))
    (folder / "Makefile").write_text(MAKEFILE.format(objects=" ".join(f"{name}.o" for name in names)))
    facts = {"process": rf"cc1 {slow}\.c"}
    check_first(context, ["make", "-s", "-j4", "-C", folder], {**facts, "state": "running in"}, facts)


def test_held_lock(context):
    """A thread sleeps while it holds a lock that others want."""
    name = drawn_name(context, "writer")
    facts = {"thread": name, "function": "save_table"}
    check_first(context, workload("hold-lock", name, context.random.randint(2, 5), context.random.randint(300, 500)),
                {**facts, "state": r"\[sleep\]", "lock": "table_lock"}, {**facts, "state": "Sleep"})


def test_late_name_server(context):
    """A child asks a name server that answers late."""
    needs_root()
    needs_command("getent")
    host, folder = drawn_name(context, "host") + ".example", context.path("dns")
    folder.mkdir()
    facts = {"process": rf"getent ahosts {host}", "function": "getaddrinfo"}
    check_first(context, shell(f"getent ahosts {host} >/dev/null; :"),
                {**facts, "state": r"\[network poll wait\]", "peer": r"127\.0\.0\.1:53"}, {**facts, "state": "Network"},
                ["unshare", "--mount", "--net", sys.executable, ROOT / "tests" / "support" / "py" / "slow_dns.py", folder,
                 context.random.randint(300, 500) / 1000])


def test_full_disk_queue(context):
    """The disk's queue is full with what another process reads."""
    name = drawn_name(context, "ledger")
    with LateDisk(context, READ_S, {name: 1 << 20, "other": 4 << 20}, queue=4) as disk:
        facts = {"process": f"small-reads .*{name}", "function": "read_record"}
        check_first(context, shell(workload("small-reads", disk.path / "other", 0, 12), "& sleep 0.05;",
                                   workload("small-reads", disk.path / name, context.random.randint(15, 20)), "; kill $!"),
                    {**facts, "state": r"\[disk queue full\]"}, {**facts, "state": "Disk I/O"})


def test_slow_end_of_pipe(context):
    """The last program of a pipe is slow."""
    name = drawn_name(context, "digest")
    facts = {"process": f"stage {name}", "function": "digest"}
    check_first(context, shell(f"head -c {context.random.randint(600, 900)}k /dev/zero |", workload("stage", "copy", 0),
                               "|", workload("stage", name, 2000), ">/dev/null"),
                {**facts, "state": "running in"}, facts)


def test_hot_thread(context):
    """One of eight threads has nearly all the work."""
    name, hot = drawn_name(context, "shard"), context.random.randrange(8)
    facts = {"thread": f"{name}-{hot}", "function": "rehash"}
    check_first(context, workload("hot-thread", name, 8, hot, context.random.randint(300, 500)),
                {**facts, "state": "running in"}, facts)


def test_many_threads(context):
    """More threads want to run than there are CPUs for them."""
    count = context.random.randint(10, 16)
    check_first(context, context.workload("burn", threads=count, ms=50, cpus=1, truth=context.path("truth")),
                {"state": r"\[runnable: preempted\]", "threads": f"({count}|{count + 1}) threads wanted"},
                {"state": "Runnable", "thread": r"burner \d"})


def test_cold_mapping(context):
    """A mapped file is not in memory."""
    name, count = drawn_name(context, "table"), context.random.randint(150, 200)
    with LateDisk(context, READ_S, {name: 4 << 20}) as disk:
        facts = {"file": name, "function": "find_row"}
        check_first(context, workload("cold-map", disk.path / name, count, context.random.randrange(1000)),
                    {**facts, "state": r"\[page-fault I/O wait\]", "count": about(count)},
                    {**facts, "state": "Page-fault I/O"})


def test_throttled_cgroup(context):
    """A cgroup may use a part of a CPU only."""
    with LimitedCpu(context, context.random.randint(3, 5) * 1000) as limited:
        check_first(context, limited.command(context.workload("burn", threads=1, ms=30, truth=context.path("truth"))),
                    {"state": "throttled"}, {"state": r"\[runnable: throttled\]"})
        report = context.wallprof("report", context.path("p.json.gz")).stdout.splitlines()
        check_each([" ".join(line.strip() for line in report)],
                   {"cgroup": f"throttled: {limited.group.name} may use {limited.quota_us / PERIOD_US:.3g} CPUs"})


def test_poll_loop(context):
    """A program looks each millisecond whether another one is done."""
    name = drawn_name(context, "ready")
    facts = {"process": f"poll-loop {name}", "function": "wait_for_file"}
    # No child of the recorded shell ends when the file is there.
    check_first(context, shell(f"((sleep 0.{context.random.randint(400, 600)}; : >{name}) &);",
                               workload("poll-loop", name)),
                {**facts, "state": r"\[sleep\]", "count": r"\b[1-5]\d\d times"}, {**facts, "state": "Sleep"})


def test_small_reads(context):
    """A program reads records one after the other."""
    name, count = drawn_name(context, "index"), context.random.randint(150, 250)
    with LateDisk(context, READ_S, {name: 4 << 20}) as disk:
        facts = {"file": name, "function": "read_record"}
        check_first(context, workload("small-reads", disk.path / name, count),
                    {**facts, "state": r"\[disk read wait\]", "count": about(count)},
                    {**facts, "state": "Disk I/O"})


def test_busy_disk(context):
    """Another program reads from the same disk, which does one request after the other."""
    name, other, count = drawn_name(context, "index"), drawn_name(context, "other"), context.random.randint(100, 150)
    output = context.path("p.json.gz")

    def check_others(disk, *busy):
        readers = [context.start(workload("small-reads", disk.path / file, 0, 4)) for file in busy]
        said = context.wallprof("-o", output, "--", *workload("small-reads", disk.path / name, count)).stderr
        for reader in readers:
            reader.kill()
            reader.wait()
        report = context.wallprof("report", output).stdout
        for text in (said, report):
            # The line may be folded.
            found = re.search(rf"^disk: for (\S+ m?s) of (\S+ m?s) {disk.name} completed requests of\s+others: small-reads \(", text,
                              re.M)
            check(found, f"the other program is not said: {text}")

    with LateDisk(context, READ_S, {name: 4 << 20, other: 4 << 20}) as disk:
        expect_failure(check_others, disk)
        check_others(disk, other)


def test_slow_exit(context):
    """A program is done, and takes long to end."""
    name = drawn_name(context, "store")
    facts = {"process": name, "function": "close_store"}
    check_first(context, workload("slow-exit", name, context.random.randint(300, 500)),
                {**facts, "state": r"\[sleep\]"}, {**facts, "state": "Sleep"})
