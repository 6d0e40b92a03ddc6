# SPDX-License-Identifier: GPL-2.0-or-later
"""All messages: their form and language, a list of them, and which of them can be provoked.

messages.txt has a line for each message of the source: level, format, and what provokes it: "here" (this suite),
FILE: TEXT (another test, which expects that text), or "never: WHY".
"""
import os
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

import capture_reader
import messages
from harness import (GIVE_UP_S, ROOT, WALLPROF, check, expect_failure, needs_command, needs_root, wait_until)

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about no kernel")]

LIST = Path(__file__).with_name("messages.txt")
FAILED = re.compile(r"[^:]+ failed( after [^:]*)?: .+")  # WHAT failed: REASON; REMEDY
# Mistakes of the user, and what is not there.
STATEMENT = re.compile("|".join((
    r"--\S+ '?%\S+: expected .+", r"expected one .+, got %d; usage: .+", r"--[\w-]+ fentry: this kernel .+",
    r"no such [\w ]+: %[sd](; (give .+|did you mean %s\?|--section threads lists them all))?", r"no waits under a function named %s",
    r"option '%s' (needs a value|takes no value|is ambiguous; .+)", r"unknown option '\S+'; .+",
    r"unexpected argument '%s'", r"unclosed quote: %s",
    r"--[%\w-]+ (cannot be combined with|cannot be used with|can only be used with) [-\w% ]+",
    r"--viewer '%s': the folder has no index.html", r"--[%\w-]+ is allowed on the command line only", r"--from must be before --to",
    r"(--[%\w-]+(, | and ))+--[%\w-]+ (are mutually exclusive|select no thread of this recording)",
    r"%d is a thread of process %d; give .+",
    r"%s is the capture and would be overwritten", r"the profile and --json-summary name the same file: %s",
    r"process %d has ended", r"the threads to record have ended", r"nothing to record; give a command .+",
    r"(%s|interrupted) before the recording began( \(--delay\))?",
    r"the table of BPF programs has no row for %s at %s")))
START = re.compile(r"[a-z%'-]|[A-Z][A-Z_]+\b")  # no capital, but names
WORDS = re.compile(r"\b(please|sorry|oops|unable|sadly|seems?|\w+n't|failure|success\w*|invalid)\b", re.I)


def complaints(level, text):
    """What is wrong with a message, by the rules of the language."""
    if "\n" in text or "\\n" in text:
        yield "more than one line"
    if text != text.strip() or "  " in text:
        yield "blanks"
    if not START.match(text):
        yield "begins with a capital"
    if re.search(r"[.!:;,]$", text) or text.endswith("?") and "did you mean" not in text:
        yield "ends with punctuation"
    if WORDS.search(text):
        yield f"the word {WORDS.search(text)[0]!r}"
    if level == "error" and not FAILED.fullmatch(text) and not STATEMENT.fullmatch(text):
        yield "neither WHAT failed: REASON nor one of the known statements"
    if " failed" in text and level != "verbose" and not re.search(r" failed( after [^:]*)?: \S", text):
        yield "failed without a reason"


def listed():
    found = {}
    for line in LIST.read_text().splitlines():
        level, text, where = line.split("\t")
        check((level, text) not in found, f"twice: {text}")
        found[level, text] = where
    return found


def check_form(all_messages):
    wrong = {text: list(complaints(level, text)) for level, text in all_messages}
    wrong = {text: reasons for text, reasons in wrong.items() if reasons}
    check(not wrong, f"{wrong}")


def test_form():
    check_form(messages.formats())
    for level, text in (("info", "Reading the file"), ("info", "reading the file."), ("error", "%s is broken"),
                        ("warn", "sorry, no file"), ("error", "reading failed"), ("info", "one\\ntwo"),
                        ("error", "unknown option %s"), ("warn", "starting %s failed; try again")):
        expect_failure(check_form, [(level, text)])
    check(messages.formats_of("wallprof: error: no such process: 12") == {("error", "no such process: %d")}, "not found")
    check(not messages.formats_of("wallprof: no such process: 12"), "an error is no information")


def check_list(in_source, in_list):
    check(set(in_source) == set(in_list),
          f"{LIST.name} lacks {sorted(set(in_source) - set(in_list))} and has {sorted(set(in_list) - set(in_source))}")


def check_elsewhere(where, text):
    """Another test expects the message: a part of it that is in the test's source."""
    file, _, part = where.partition(": ")
    paths = list((ROOT / "tests").rglob(file))
    check(len(paths) == 1 and part in paths[0].read_text(), f"{where!r} is not there: {text}")
    check(len(part) > 5 and (part in text or "%s" in text), f"{part!r} is no part of {text!r}")


def test_list():
    """Each message is listed, with what provokes it."""
    in_list = listed()
    check_list(messages.formats(), in_list)
    expect_failure(check_list, list(messages.formats())[1:], in_list)
    for (level, text), where in in_list.items():
        if where != "here" and not where.startswith("never: ") and level != "verbose":
            check_elsewhere(where, text)
    expect_failure(check_elsewhere, "test_cli.py: no such text at all", "no such text at all")
    never = [text for (_, text), where in in_list.items() if where.startswith("never: ")]
    check(len(never) < len(in_list) / 3, f"{len(never)} of {len(in_list)} messages are provoked by no test")


# ---- provoking them --------------------------------------------------------------------


class Provoked:
    """The lines of standard error of all that was run."""

    def __init__(self, context):
        self.context, self.lines = context, []
        self.environment = {**os.environ, "XDG_CACHE_HOME": str(context.path("cache")), "BROWSER": "",
                            "DEBUGINFOD_URLS": ""}

    def take(self, text):
        self.lines += [line for line in text.splitlines() if line.startswith("wallprof: ")]

    def run(self, *arguments, prefix=(), folder=None, **environment):
        done = subprocess.run([*map(str, prefix), WALLPROF, *map(str, arguments)], cwd=folder or self.context.folder,
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                              timeout=GIVE_UP_S, env={**self.environment, **environment})
        self.take(done.stderr)
        return done

    def script(self, text, *options):
        """A shell script in a mount namespace; $1 is wallprof."""
        done = subprocess.run(["unshare", "--mount", *options, "sh", "-c", text, "sh", WALLPROF],
                              cwd=self.context.folder, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                              errors="replace", timeout=GIVE_UP_S, env=self.environment)
        check("exit 99" not in text or done.returncode != 99, f"{text}: {done.stderr}")
        self.take(done.stderr)


def wrong_arguments(provoked):
    provoked.context.path("folder.json").mkdir()
    provoked.context.path("kept.json.old").mkdir()
    for name in ("output=", "format=x", "by=x", "frequency=0", "pid=x", "tid=x", "cgroup=", "duration=x", "delay=x",
                 "flight-recorder=x", "kernel-stacks=x", "stacks=x", "fault-source=x", "fault-threshold=x",
                 "waker-stacks=x", "budget=0", "unwind-memory=1", "ring-size=1", "ring-cpus=0", "compression=0", "capture-compression=0",
                 "json-summary="):
        provoked.run(f"--{name}", "--", "true")
    for verb, *names in (("export", "from=x", "to=x", "process=", "thread=", "state=x"),
                         ("report", "critical-path=x", "limit=x", "top=x", "timeline=x"), ("open", "viewer=", "port=0", "idle-timeout=x")):
        for name in names:
            provoked.run(verb, f"--{name}", "x")
    for line in ("-F", "--quiet=1", "-Y", "--fr", "--outptu x", "--no-such-option", "--json", "report --pid 1 c",
                 "export", "report a b", "doctor x", "-o p.xml -- true", "-o p.json.gz --compression 15 -- true",
                 "--format chrome --cpu-graph -- true", "--format chrome --by process -- true", "--open -o p.svg -- true",
                 "-o p.html --open -- true", "export --from 2s --to 1s c", "-p 1 -a", "-t 1 --kthreads",
                 "-p 1 -- true", "", "-p 999999999", "-t 999999999", "--cgroup no-such-group", "repotr",
                 "-o no/such/folder/p.json -- true", "-o folder.json -- true", "-o kept.json -- true", "-o p.json --json-summary p.json -- true",
                 "-- no-such-command", "report --function x --critical-path c", "report --section pathh c",
                 "report --limit 16K c", "report --section x c", "-d 10ms -- sleep 5"):
        provoked.run(*shlex.split(line))
    for text in ("-p 1", "'", "true", "--no-such-option"):
        provoked.run("true", WALLPROF_OPTIONS=text)
    name = provoked.context.path(f"only{provoked.context.random.randrange(1 << 32)}")
    name.symlink_to(shutil.which("sleep"))
    children = [provoked.context.start([name, "100"]) for _ in range(2)]
    for child in children:
        wait_until(lambda pid=child.pid: Path(f"/proc/{pid}/comm").read_text().strip() == name.name, "it is executed")
    provoked.run("-p", name.name)
    children[0].kill()
    children[0].wait()
    provoked.run("-p", name.name)


def wrong_targets(provoked):
    ended = subprocess.Popen(["true"])
    wait_until(lambda: Path(f"/proc/{ended.pid}/stat").read_text().split()[2] == "Z", "it has ended")
    provoked.run("-p", ended.pid)
    ended.wait()
    child = provoked.context.start(provoked.context.workload("burn", threads=2, ms=3000))
    tasks = Path(f"/proc/{child.pid}/task")
    wait_until(lambda: len(list(tasks.iterdir())) > 1, "it has threads")
    provoked.run("-p", max(int(task.name) for task in tasks.iterdir()))
    child.kill()
    asleep = provoked.context.start(["sleep", "0.3"])
    provoked.run("-p", asleep.pid, "--delay", "1s")
    provoked.run("--delay", "500ms", "--", "true")
    waiting = provoked.context.start([WALLPROF, "--delay=signal", "-o", "p.json", "--", "sleep", "5"],
                                     stderr=subprocess.PIPE, text=True, cwd=provoked.context.folder)
    provoked.take(waiting.stderr.readline())
    waiting.send_signal(signal.SIGTERM)
    provoked.take(waiting.communicate(timeout=GIVE_UP_S)[1])


def damage(capture, into):
    """A record that is too short, and one of no known kind."""
    all_kinds = {kind for kind in range(256) if kind != capture_reader.END}
    plain = [bytes(record) for *_, record in capture_reader.records(capture, all_kinds)]
    short = capture_reader.RECORD.pack(16, capture_reader.SWITCH, 0, 0, 1)
    unknown = capture_reader.RECORD.pack(16, 120, 0, 0, 1)
    whole = into.with_suffix(".records")
    whole.write_bytes(b"".join([*plain, short, unknown]))
    frame = subprocess.run(["zstd", "-cq", whole], check=True, stdout=subprocess.PIPE).stdout
    into.write_bytes(capture.read_bytes()[:capture_reader.HEADER_LENGTH] + frame)


def wrong_files(provoked):
    context, path = provoked.context, provoked.context.path
    context.wallprof("record", "-q", "--defer-symbols", "-o", "c", "--", *context.workload("burn", threads=2, ms=50))
    context.wallprof("export", "-q", "-o", "p.json", "c")
    path("alone.json").write_bytes(path("p.json").read_bytes())
    provoked.run("report", "alone.json")
    provoked.run("report", folder=path("folder.json"))
    context.wallprof("-q", "-o", "last.json", "--", "true", env=provoked.environment)
    for line in ("record -- true", "report", "export c", "export --anonymize -o anonymized.json c",
                 "report no-such-file", "report /etc/passwd", "open /etc/passwd",
                 "open no-such-file", "export --format firefox -o c c", "export --from 100s c", "report --function no_such_function c",
                 "report --critical-path=1 c", "report --timeline 1 c",
                 "report --json --limit 10 c", "export -o q.json c", "doctor --unwind /etc/passwd",
                 "doctor --unwind 999999999", "open --viewer ftp://x p.json", "open --viewer . p.json"):
        provoked.run(*line.split())
    path("cut").write_bytes(path("c").read_bytes()[:-200])
    capture_reader.keep(path("c"), {capture_reader.META}, path("begun"))
    damage(path("c"), path("strange"))
    unknown = bytearray(path("c").read_bytes())
    path("damaged.json.zst").write_bytes(bytes.fromhex("28b52ffd") + bytes(100))
    for line in ("report cut", "report begun", "report strange", "open damaged.json.zst"):
        provoked.run(*line.split())
    unknown[8:12] = (99).to_bytes(4, "little")
    path("other_version").write_bytes(unknown)
    provoked.run("report", "other_version")
    with open("/dev/full", "w") as full:
        for line in ("--version", "report c", "report --json c", "export -o q.json c", "open p.json"):
            done = subprocess.run([WALLPROF, *line.split()], cwd=context.folder, stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=GIVE_UP_S, env=provoked.environment)
            provoked.take(done.stderr)
    provoked.run("open", "--idle-timeout", "100ms", "p.json")
    for name, status in (("fails", 3), ("cannot", 127)):
        path(name).write_text(f"#!/bin/sh\nexit {status}\n")
        path(name).chmod(0o755)
        provoked.run("open", "--idle-timeout", "2s", "p.json", BROWSER=str(path(name)))
    server = context.start(["python3", "-m", "http.server", "-b", "127.0.0.1", "3999"], stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    wait_until(lambda: subprocess.run(["sh", "-c", "exec 3<>/dev/tcp/127.0.0.1/3999"], capture_output=True,
                                      executable=shutil.which("bash")).returncode == 0, "it listens")
    provoked.run("open", "--port", "3999", "p.json")
    server.kill()


def little_room(provoked):
    """A full disk of a few hundred kilobytes, limits, and a system that lacks something."""
    context = provoked.context
    burn = shlex.join(map(str, context.workload("burn", threads=2, ms=50)))
    many = shlex.join(map(str, context.workload("pingpong", rounds=8000)))
    for size in range(8, 60, 4):  # until there is room for all but the names
        provoked.script(f'mkdir -p full && mount -t tmpfs -o size={size}k none full || exit 99; "$1" -o full/p.json -- {burn}')
        if any("writing names to" in line for line in provoked.lines):
            break
    provoked.script('mkdir -p full && mount -t tmpfs -o size=128k none full || exit 99; '
                    f'"$1" -o full/p.json --capture-compression 1 -- {many}')
    provoked.script('mkdir -p full && mount -t tmpfs -o size=8k none full || exit 99; '
                    '"$1" export -o full/p.json c; "$1" export -o q.json --json-summary full/s.json c')
    provoked.script('mkdir -p full && mount -t tmpfs -o size=8k none full || exit 99; '
                    '"$1" -q export -o q.json.zst c; TMPDIR=full "$1" open q.json.zst')
    provoked.script('mount -t tmpfs none /proc || exit 99; "$1" open p.json; "$1" doctor --unwind 1')
    provoked.script('mount -t tmpfs none /sys || exit 99; "$1" -o p.json -- true')
    provoked.script(': >empty; mount --bind empty /proc/kallsyms || exit 99; "$1" -o p.json -- true')
    provoked.script('mkdir -p full && mount -t tmpfs -o nr_inodes=1 none full || exit 99; "$1" -o full/p.json -- true')
    provoked.script('mkdir -p full && mount -t tmpfs -o nr_inodes=2 none full || exit 99; '
                    '"$1" --flight-recorder 1s -o full/p.json -- true')
    provoked.script('mkdir -p full && mount -t tmpfs -o size=4k none full || exit 99; "$1" -o full/p.json -- ' + burn)
    provoked.script('for lib in /usr/lib/*/libdebuginfod.so.1; do mount --bind /dev/null $lib || exit 99; done; '
                    'rm -rf cache; DEBUGINFOD_URLS=http://127.0.0.1:1/ "$1" -o p.json -- ' + burn)
    for limit, value, line in (("as", 40 << 20, "report c"), ("as", 18 << 20, "report c"), ("nproc", 1, "-o p.json -- true"),
                               ("nofile", 40, "-o p.json -- true"), ("as", 100 << 20, "-o p.json -- true")):
        provoked.run(*line.split(), prefix=["prlimit", f"--{limit}={value}"])
    provoked.run("-o", "p.json", "--", "true", prefix=["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"],
                 XDG_CACHE_HOME="/nowhere")
    other = context.start(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "sleep", "100"])
    provoked.run("-o", "p.json", "-p", other.pid, "-d", "50ms",
                 prefix=["setpriv", "--bounding-set=-sys_admin,-sys_ptrace", "--inh-caps=-all"])
    other.kill()
    provoked.run("-o", "p.json", "--cost", "--", "true",
                 prefix=["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"])
    provoked.run("-o", "p.json", "--", "true", DEBUGINFOD_URLS="http://127.0.0.1:1/")
    provoked.run("-o", "p.json", "--fault-source=fentry", "--", "true")


def test_provoked(context):
    """What is listed as provoked here is, and nothing else; each line has the form, also those put together."""
    needs_root()
    for command in ("unshare", "prlimit", "setpriv", "zstd", "bash"):
        needs_command(command)
    provoked = Provoked(context)
    for provoke in (wrong_arguments, wrong_targets, wrong_files, little_room):
        provoke(provoked)
    seen = {one: line for line in provoked.lines for one in messages.formats_of(line)}
    wanted = {key for key, where in listed().items() if where == "here"}
    missing = wanted - set(seen)
    check(not missing, f"not provoked: {sorted(missing)}")
    more = {key: line for key, line in seen.items() if key not in wanted and listed()[key].startswith("never: ")}
    check(not more, f"provoked, although never, it is said: {more}")
    for line in provoked.lines:
        if not messages.formats_of(line):  # it was put together, and is a warning or a note
            check("wallprof: error: " not in line, f"an error of no known format: {line}")
            check_form([("info", re.sub(r"^wallprof: (warning: )?", "", line))])
    check(len(seen) > 80, f"only {len(seen)} messages")


# ---- the document about them -------------------------------------------------------------


TROUBLESHOOTING = ROOT / "docs" / "user" / "troubleshooting.md"
# Where a message has names and numbers, and where one text ends and another may begin.
BETWEEN = re.compile(r"…|\b[A-Z][A-Z_/]*\b|'[A-Z]+'|\b\d+\b|: |; |\(|\)|--")


def quoted(document):
    """The messages in the first column of the document's tables of messages."""
    for table in re.findall(r"^\| (?:message|note|missing|`hint)[^\n]*\n\|---[^\n]*\n((?:\|.*\n)+)", document, re.M):
        for row in table.splitlines():
            yield from re.findall(r"`([^`]+)`", row.split(" | ")[0])


def check_quoted(document):
    texts = " ".join(messages.literals())
    count = 0
    for message in quoted(document):
        count += 1
        if any(messages.literal_length(text) > 8 and messages.pattern(text).fullmatch(message)
               for _, text in messages.formats()):
            continue
        for piece in BETWEEN.split(message):
            piece = piece.strip(" ,'")
            check(len(piece) < 4 or piece in texts, f"no message has {piece!r}: {message}")
    check(count > 80, f"only {count} messages")


def test_document():
    """What the document about messages quotes is in the source."""
    document = TROUBLESHOOTING.read_text()
    check_quoted(document)
    expect_failure(check_quoted, document.replace("`no such process: N`", "`there is no process: N`"))
