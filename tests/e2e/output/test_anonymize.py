# SPDX-License-Identifier: GPL-2.0-or-later
"""Profiles without names: what a program has planted everywhere is in no format, and the times are the same."""
import base64
import gzip
import json
import os
import re
import shutil
import subprocess

import pytest

from harness import ROOT, check, expect_failure, needs_command, needs_root

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about the export, and needs a compiler")]

WORKLOADS = ROOT / "tests/workloads/names"
# Only names of functions and of keys remain of what the test itself has written.
# The first moments of a script have no frames.
SCRIPT = """import time

def planted_sleep():
    time.sleep(0.05)  # {text}

for _ in range(10):
    planted_sleep()
"""


# It runs in an inlined call, of which only a .dwo file knows.
BUSY = """static volatile unsigned long sum;
static inline __attribute__((always_inline)) void add(void) { for (int i = 0; i < 1000; i++) sum += i; }
int main(void) { for (int i = 0; i < 100000; i++) add(); return 0; }
"""


class Plants:
    """Names that are in nothing but this recording, by what they are of."""
    KINDS = ("program", "folder", "home", "argument", "library", "locked", "mapped", "socket", "abstract", "memory", "source",
             "source_text", "script", "script_folder", "script_text", "host")

    def __init__(self, rng):
        self.names = {kind: self.word(rng, 12) for kind in self.KINDS}
        # The kernel keeps 15 bytes of a thread's name.
        self.names["thread"] = self.word(rng, 10)
        self.names["address"] = f"127.{rng.randint(20, 250)}.{rng.randint(20, 250)}.{rng.randint(20, 250)}"

    @staticmethod
    def word(rng, letters):
        return "zq" + "".join(rng.choice("bcdfghjkmpvwxz") for _ in range(letters))

    def __getattr__(self, kind):
        return self.names[kind]


def compiled(source, program, *options):
    needs_command("cc")
    done = subprocess.run(["cc", "-g", "-O1", *options, source, "-o", program], capture_output=True, text=True)
    check(done.returncode == 0, f"cc: {done.stderr}")


def written(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def planted(context):
    """A capture of a program that uses every name, and the names."""
    needs_root()
    plants = Plants(context.random)
    print(f"planted: {plants.names}")
    folder = context.path(f"home/{plants.home}/{plants.folder}")
    text = (WORKLOADS / "planted.c").read_text().replace("while (clock() < end)", f"while (clock() < end) /* {plants.source_text} */")
    source = written(folder / f"{plants.source}.c", text)
    program, library = folder / plants.program, folder / f"lib{plants.library}.so.1"
    compiled(source, program, "-pthread", "-ldl")
    compiled(WORKLOADS / "planted_library.c", library, "-shared", "-fPIC")
    script = written(folder / plants.script_folder / f"{plants.script}.py", SCRIPT.format(text=plants.script_text))
    arguments = [f"library={library}", f"locked={folder / plants.locked}", f"mapped={folder / plants.mapped}",
                 f"socket={context.path(plants.socket)}", f"abstract={plants.abstract}", f"thread={plants.thread}",
                 f"address={plants.address}", f"memory={plants.memory}", f"script={script}", plants.argument]
    # A namespace has a host name of its own.
    own_host = ["unshare", "--uts", "sh", "-c", 'echo "$0" >/proc/sys/kernel/hostname && exec "$@"', plants.host]
    needs_command("unshare")
    context.wallprof("record", "-q", "--fault-threshold", "0", "-o", "c", "--", program, *arguments, before=own_host)
    return context.path("c"), plants


def formats():
    """The words of all formats, as the program has them."""
    table = (ROOT / "export/output/formats.c").read_text()
    words = re.findall(r'\{FORMAT_\w+, "(\w+)"', table)
    check(len(words) >= 7, f"only {words}")
    return words


def packed(data):
    """What is packed in data: base64 of a page, in lines, and gzip. What cannot be unpacked is an error."""
    if data.startswith(b"\x1f\x8b"):
        yield gzip.decompress(data)
    for found in re.findall(rb"(?:[A-Za-z0-9+/]{64,}\n)*[A-Za-z0-9+/]{64,}={0,2}", data):
        if found.startswith(b"H4sI"):
            yield base64.b64decode(found)


def all_bytes(data, depth=3):
    found = data
    for inner in packed(data) if depth else ():
        found += b"\0" + all_bytes(inner, depth - 1)
    return found


def exported(context, capture, *options):
    """All that can be made of a capture, by its name."""
    made = {}
    for word in formats():
        name = f"{word}{len(options)}"
        context.wallprof("export", "-q", "--format", word, *options, "-o", name, capture)
        made[word] = all_bytes(context.path(name).read_bytes())
    for word, form in (("report", []), ("full report", ["--full"]), ("JSON report", ["--json"])):
        made[word] = context.wallprof("report", *form, *options, capture).stdout.encode()
    context.wallprof("export", "-q", *options, "-o", "s.json", "--json-summary", "summary.json", capture)
    made["summary"] = context.path("summary.json").read_bytes()
    return made


def check_hidden(made, plants):
    """Nothing that was made has a planted name, also not in part or in capitals."""
    for word, data in made.items():
        data = data.lower()
        for kind, name in plants.names.items():
            check(name.encode() not in data, f"{word} has the {kind} {name}: "
                                             f"{data[max(data.find(name.encode()) - 80, 0):][:200]}")


def numbers_of(value):
    """All numbers of a report, in order; lists that are sorted by name are sorted by what is in them."""
    if isinstance(value, dict):
        return [[key, numbers_of(value[key])] for key in sorted(value) if not isinstance(value[key], str)]
    if isinstance(value, list):
        return sorted((numbers_of(entry) for entry in value), key=json.dumps)
    return value if isinstance(value, (int, float)) else None


def reasons_of(report):
    return {(thread["tid"], reason): ns for thread in report["threads"] for reason, ns in thread["reasons"].items()}


def check_same_times(report, other):
    check(reasons_of(report) == reasons_of(other), f"waits: {reasons_of(report)}, {reasons_of(other)}")
    for member in report:
        if not isinstance(report[member], str) and member != "notes":
            check(numbers_of(report[member]) == numbers_of(other[member]), f"{member}: {report[member]}, {other[member]}")


def json_report(context, capture, *options):
    return json.loads(context.wallprof("report", "-q", "--json", *options, capture).stdout)


def test_planted(context):
    """No planted name is in any format; without the option each is in one at least."""
    capture, plants = planted(context)
    plain, made = exported(context, capture), exported(context, capture, "--anonymize")
    check_hidden(made, plants)
    for kind, name in plants.names.items():
        check(any(name.encode() in data for data in plain.values()), f"the {kind} {name} was not recorded")
    expect_failure(check_hidden, plain, plants)
    for word in set(plain) - {"folded", "flamegraph", "svg", "speedscope"}:
        check(b"(--anonymize)" in made[word] and b"(--anonymize)" not in plain[word], f"{word} does not say that names are replaced")
    again = exported(context, capture, "--anonymize")
    check(again == made, "another export has other replacements")

    report, other = json_report(context, capture), json_report(context, capture, "--anonymize")
    check_same_times(report, other)
    other["threads"][0]["lifetime_ns"] += 1
    expect_failure(check_same_times, report, other)
    check_consistent(context, capture, plants, report, other)
    check_late(context, plants)


def check_consistent(context, capture, plants, report, other):
    """A program, its process, its file and its arguments have one name; what a user selects by is the true name."""
    names = {p["tid"]: p["name"] for p in other["threads"]}
    of_program = {names[t["tid"]] for t in report["threads"] if t["name"] == plants.program[:15]}
    check(len(of_program) == 1, f"{of_program}")
    name = of_program.pop()
    check(re.fullmatch(r"file\d+", name), f"the program is called {name}")
    check(other["command"].split()[0].endswith(f"/{name}"), f"{other['command']}")
    check({t["name"] for t in other["threads"]} >= {"python3"}, "Python has another name")
    selected = json_report(context, capture, "--anonymize", "--process", f"{plants.program[:9]}*", "--thread", plants.thread)
    wanted = [t["tid"] for t in report["threads"] if t["name"] == plants.thread]
    check([t["tid"] for t in selected["threads"]] == wanted and len(wanted) == 1, f"{selected['threads']}, {wanted}")
    check(selected["threads"][0]["name"] == names[wanted[0]], "a part has other replacements than the whole")


def check_late(context, plants):
    """Names that are looked up by the export are replaced, too, and the summary has none."""
    program = context.path("home") / plants.home / plants.folder / plants.program
    made = {}
    for options in ([], ["--anonymize"]):
        done = context.wallprof(*options, "--defer-symbols", "-o", "late.json", "--", program, f"thread={plants.thread}",
                                f"locked={program.parent / plants.locked}", plants.argument, status=None)
        made["--anonymize" in options] = {"late": context.path("late.json").read_bytes(), "summary": done.stderr.encode()}
        check(all((line in done.stderr) == bool(options) for line in ("anonymized: names", "not anonymized: ")), done.stderr)
    check_hidden(made[True], plants)
    expect_failure(check_hidden, {"late": made[False]["late"]}, plants)
    expect_failure(check_hidden, {"summary": made[False]["summary"]}, plants)
    check(b'"wait_for_lock"' in made[True]["late"], "functions have no names")


def test_messages(context):
    """Messages of an export name no file of the recording; what they say is as it is in the profile."""
    plants = Plants(context.random)
    folder = context.path("home") / plants.home
    source, program = written(folder / f"{plants.source}.c", BUSY), folder / plants.program
    compiled(source, program, "-gsplit-dwarf")
    for split in folder.glob("*.dwo"):
        split.unlink()
    context.wallprof("record", "-q", "--defer-symbols", "-o", "c", "--", program)
    said = {}
    for options in ([], ["--anonymize"]):
        done = context.wallprof("export", "-v", *options, "-o", "p.json", "c", env={**os.environ, "XDG_CACHE_HOME": "/dev/null"})
        said["--anonymize" in options] = {"standard error": done.stderr.encode()}
    check_hidden(said[True], plants)
    expect_failure(check_hidden, said[False], plants)
    check(b"missing: " in said[False]["standard error"], f"no file lacks names: {said[False]}")
    check(b"are missing (--anonymize hides why)" in said[True]["standard error"], f"{said[True]}")


def test_odd_names(context):
    """Names of odd bytes, of the longest argument that is recorded, empty ones, and names that look like replacements."""
    secrets = Plants(context.random)
    folder = context.path("dir1")
    folder.mkdir()
    odd = os.fsdecode(secrets.program.encode() + b"\xff\n'\"\\ $(x)/".rstrip(b"/"))
    programs = [folder / name for name in (odd, "file1", "thread1.py", f"file2 {secrets.library}", "0")]
    for program in programs:
        shutil.copy("/bin/sleep", program)
    arguments = ["", "file1", "x" * 4000 + secrets.argument, f"-{secrets.locked}", f"/usr/bin/x {secrets.mapped}", "\t",
                 f"/usr/bin/../{secrets.socket}", f"--path=/usr/lib/{secrets.memory}"]
    script = 'n=$#; i=0; while [ $i -lt 5 ]; do "$1" 0.02; shift; i=$((i + 1)); done; exec sleep 0.01 0.01 "$@" || :'
    context.wallprof("record", "-q", "-o", "c", "--", "sh", "-c", script, secrets.script, *programs, *arguments, status=None)
    capture = context.path("c")
    made, plain = exported(context, capture, "--anonymize"), exported(context, capture)
    check_hidden(made, secrets)
    expect_failure(check_hidden, plain, secrets)
    report, other = json_report(context, capture), json_report(context, capture, "--anonymize")
    check_same_times(report, other)
    # Different programs have different names.
    names = [{t["tid"]: t["name"] for t in of["threads"]} for of in (report, other)]
    pairs = {(name, names[1][tid]) for tid, name in names[0].items()}
    check(len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) and len(pairs) >= 6, f"{pairs}")


def test_captures(context):
    """The canned captures have the same numbers with and without names."""
    for capture in sorted((ROOT / "tests/captures").glob("*.capture")) + [ROOT / "tests/golden/golden.capture"]:
        check_same_times(json_report(context, capture), json_report(context, capture, "--anonymize"))


def test_keys(context):
    """The table of settings has each key of the document; what it lacks is dropped."""
    del context
    document = (ROOT / "docs/reference/capture-format.md").read_text()
    section = document.split("### 33 META")[1].split("Values of `waking-context`")[0]
    keys = {key for line in section.splitlines() if line.startswith("| `") for key in re.findall(r"`([\w-]+)`", line.split("|")[1])}
    table = set(re.findall(r'\{"([\w-]+)", META_', (ROOT / "export/anonymize/anon_meta.c").read_text()))
    check(keys == table and len(keys) > 40, f"{keys ^ table}")
