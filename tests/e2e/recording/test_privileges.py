# SPDX-License-Identifier: GPL-2.0-or-later
"""Recording by a user who is not root, with a few capabilities; and nothing beyond recording by these."""
import json
import os
import re
import shutil
import subprocess
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote

import pytest

from harness import (BUILD, GIVE_UP_S, MS, ROOT, WALLPROF, Profile, check, check_hidden, check_timed, expect_failure,
                     needs_command, needs_root, noise, wait_until, wait_until_asleep)

pytestmark = pytest.mark.untimed
USER = 65534
NEEDED = ("bpf", "perfmon", "sys_ptrace", "dac_read_search")
FOR_DELETED = "checkpoint_restore"  # what it takes to open files that no path leads to any more


def as_user(capabilities, command, **settings):
    """Runs it as a user who has these capabilities."""
    needs_command("setpriv")
    wanted = "-all" + "".join(f",+{c}" for c in capabilities)
    settings = {"capture_output": True, "text": True, "timeout": 120, **settings}
    return subprocess.run(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups",
                           f"--inh-caps={wanted}", f"--ambient-caps={wanted}", *map(str, command)], **settings)


PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


class Place:
    """A folder of that user's, and a copy of wallprof, because the user may not be able to read the build folder."""

    def __init__(self, context):
        needs_root()
        self.paranoid = int(PARANOID.read_text())
        self.folder = context.path("theirs")
        self.folder.mkdir()
        os.chown(self.folder, USER, USER)
        self.program = self.folder / "wallprof"
        shutil.copy(WALLPROF, self.program)
        self.environment = {**os.environ, "HOME": str(self.folder), "XDG_CACHE_HOME": str(self.folder / "cache")}
        self.workload = self.folder / "burn"
        shutil.copy(BUILD / "tests/workloads/burn", self.workload)

    def record(self, capabilities, *arguments, status=0):
        done = as_user(capabilities, [self.program, "-q", "--keep-capture", "-o", self.folder / "p.json.gz", *arguments],
                       env=self.environment, cwd=self.folder)
        check(done.returncode == status, f"status {done.returncode}: {done.stderr}")
        return done

    def doctor(self, capabilities, *arguments, status=0):
        done = as_user(capabilities, [self.program, "doctor", *arguments], env=self.environment, cwd=self.folder)
        check(done.returncode == status, f"status {done.returncode}: {done.stdout}{done.stderr}")
        return done

    def report(self, capabilities=()):
        done = as_user(capabilities, [self.program, "report", "--json", self.folder / "p.capture"],
                       env=self.environment, cwd=self.folder)
        check(done.returncode == 0, done.stderr)
        return json.loads(done.stdout)


def check_recording(place, truth, function):
    """All that is asked of root's recordings."""
    report, profile = place.report(), Profile.load(place.folder / "p.json.gz")
    check_hidden(report["contradictions"])
    for thread in truth["threads"]:
        ledger = next(t for t in report["threads"] if t["tid"] == thread["tid"])
        check(sum(ledger["states"].values()) == ledger["lifetime_ns"], f"{ledger}")
    names = {name for t in profile.threads for i in range(len(t.times)) for name in t.frames_of(i)}
    check(function in names, f"{function} is not among {sorted(names)[:40]}")


def allowed(place, left):
    """Debian's kernels have a 3 there, which means root: then that is said, and taken away for the test."""
    if place.paranoid < 3:
        return
    done = place.record(NEEDED, "--", "true", status=125)
    check("perf_event_paranoid" in done.stderr, done.stderr)
    PARANOID.write_text("2")
    left.callback(PARANOID.write_text, str(place.paranoid))


def test_capabilities(context):
    """A command, a process of another user, and what is made of it, without being root."""
    with ExitStack() as left:
        place = Place(context)
        allowed(place, left)
        record_with_capabilities(context, place)


def record_with_capabilities(context, place):
    place.record(NEEDED, "--", place.workload, "--threads", 2, "--ms", 200, "--truth", place.folder / "truth")
    truth = json.loads((place.folder / "truth").read_text())
    check_recording(place, truth, "main")
    expect_failure(check_recording, place, truth, "no_such_function")
    owners = {path.name: path.stat().st_uid for path in place.folder.iterdir() if path.name.startswith("p.json")}
    check(owners and set(owners.values()) == {USER}, f"whose files are {owners}?")
    target = context.start(context.workload("sleeps", threads=2, rounds=1, ms=60000))
    wait_until_asleep(target.pid, 2)
    place.record(NEEDED, "-p", target.pid, "-d", "300ms")
    check_recording(place, {"threads": []}, "truth_sleep")
    check_timed("the window", place.report()["window_ns"], 300 * MS, 0.02, noise(300 * MS))


def names_of_jit(context, place, kind, mode):
    """The names that a user with capabilities gets of a process of root's, whose perf map or jitdump has this mode."""
    target = context.start(context.workload("jit", first=20000, **{kind: 1}), cwd=context.folder)
    named = Path(f"/tmp/perf-{target.pid}.map") if kind == "map" else context.path(f"jit-{target.pid}.dump")
    wait_until(named.exists, "the names are written")
    named.chmod(mode)
    try:
        place.record((*NEEDED, FOR_DELETED), "-p", target.pid, "-d", "300ms")
    finally:
        target.kill()
        target.wait()
        named.unlink()
    profile = Profile.load(place.folder / "p.json.gz")
    return {name for t in profile.threads for i in range(len(t.times)) for name in t.frames_of(i)}


def test_perf_map_of_another_user(context):
    """CAP_DAC_READ_SEARCH is for the programs that are recorded, not for files that they name."""
    with ExitStack() as left:
        place = Place(context)
        allowed(place, left)
        context.folder.chmod(0o755)
        for kind in ("map", "dump"):
            check("jit_first" not in names_of_jit(context, place, kind, 0o600), f"root's own {kind} was read for the user")
            check("jit_first" in names_of_jit(context, place, kind, 0o644), f"a {kind} that all may read was not")


def served_to_user(context, place, call, question):
    """Returns what the user's own wallprof answers to a request of the viewer."""
    server = context.start(["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups", place.program, "open",
                            "--no-browser", place.folder / "p.json.gz"], stdout=subprocess.PIPE, text=True,
                           env=place.environment)
    api = unquote(server.stdout.readline().strip().partition("/?symbolServer=")[2])
    done = as_user((), ["curl", "-sS", "-X", "POST", "--data", json.dumps(question), f"{api}/{call}"])
    check(done.returncode == 0, done.stderr)
    return json.loads(done.stdout)


def check_assembly(answer, binary, start, size):
    """The same instructions as objdump's."""
    done = subprocess.run(["objdump", "-d", "--no-show-raw-insn", f"--start-address={start}", f"--stop-address={start + size}",
                           binary], check=True, capture_output=True, text=True).stdout
    wanted = [int(m[1], 16) for m in re.finditer(r"^ *([0-9a-f]+):\t", done, re.M)]
    got = [start + offset for offset, _ in answer.get("instructions", [])]
    check(got == wanted and wanted, f"instructions at {got}, objdump's at {wanted}: {str(answer)[:300]}")


def test_opened(context):
    """The user opens the recording, and sees the instructions that took the time."""
    needs_command("curl")
    needs_command("objdump")
    with ExitStack() as left:
        place = Place(context)
        allowed(place, left)
        place.record(NEEDED, "--", place.workload, "--threads", "1", "--ms", "100")
    names = {name for t in Profile.load(place.folder / "p.json.gz").threads for i in range(len(t.times))
             for name in t.frames_of(i)}
    check("truth_burn" in names, f"{names}")
    lib, = [lib for lib in Profile.load(place.folder / "p.json.gz").data["libs"] if lib["path"] == str(place.workload)]
    symbols = subprocess.run(["nm", "-S", place.workload], check=True, capture_output=True, text=True).stdout
    (start, size), = [(int(line.split()[0], 16), int(line.split()[1], 16)) for line in symbols.splitlines()
                      if line.endswith(" truth_burn")]
    answer = served_to_user(context, place, "asm/v1",
                            {"debugName": lib["debugName"], "debugId": lib["breakpadId"], "codeId": lib["codeId"],
                             "name": "truth_burn", "startAddress": hex(start), "size": hex(size)})
    check_assembly(answer, place.workload, start, size)
    expect_failure(check_assembly, answer, place.workload, start, size - 1)


def test_missing(context):
    """Without one of them it is said which, or what is missing for the want of it."""
    with ExitStack() as left:
        place = Place(context)
        allowed(place, left)
        record_without(context, place)


def record_without(context, place):
    for missing, words in (("bpf", "CAP_BPF"), ("perfmon", "CAP_PERFMON")):
        done = place.record([c for c in NEEDED if c != missing], "--", "true", status=125)
        check(words in done.stderr, f"without {missing}: {done.stderr}")
    # Newer kernels show the mappings of others to users with CAP_PERFMON.
    target = context.start(context.workload("sleeps", threads=1, rounds=1, ms=60000))
    less = ("bpf", "perfmon")
    maps = as_user(less, ["cat", f"/proc/{target.pid}/maps"])
    done = as_user(less, [place.program, "record", "-o", place.folder / "c", "-p", target.pid, "-d", "100ms"],
                   env=place.environment, cwd=place.folder)
    check(done.returncode == 0, done.stderr)
    check(maps.returncode == 0 or "CAP_SYS_PTRACE" in done.stderr, f"of another user's process: {done.stderr}")


HERE = """void spin_there(void);
__attribute__((noinline)) void spin_here(void) { for (;;) spin_there(); }
int main(void) { spin_here(); return 0; }
"""
THERE = """void spin_there(void) { for (volatile int i = 0; i < 1000000; i++); }
"""
SPINNING = ["spin_there", "spin_here", "main"]


class Spinner:
    """A process of root's whose program is deleted, and whose library may be replaced, while it runs."""

    def __init__(self, context, folder):
        needs_command("gcc")
        self.program, self.library = folder / "spinner", folder / "libthere.so"
        self.compile(self.library, THERE, "-shared", "-fPIC")
        self.compile(self.program, HERE, "-Wl,-rpath," + str(folder), self.library)
        self.process = context.start([self.program])
        self.pid = self.process.pid
        wait_until(lambda: str(self.library) in Path(f"/proc/{self.pid}/maps").read_text(), "it has its library")
        self.program.unlink()

    @staticmethod
    def compile(path, text, *options):
        subprocess.run(["gcc", "-O1", "-g", "-fomit-frame-pointer", "-fno-optimize-sibling-calls", "-o", path,
                        "-x", "c", "-", "-x", "none", *options], input=text, text=True, check=True)

    def replace_library(self):
        other = self.library.with_name("other")
        self.compile(other, THERE + "int other;", "-shared", "-fPIC")
        other.rename(self.library)


def check_spinning(place, words):
    """Checks that stacks are whole, with all names; `words` are what is reported as missing."""
    thread, = [t for t in Profile.load(place.folder / "p.json.gz").threads if t.name == "spinner"]
    stacks = [names for i in range(len(thread.times)) for names in [thread.frames_of(i)] if SPINNING[0] in names]
    check(stacks, f"{SPINNING[0]} is not in {thread.frames_of(0)}")
    for names in stacks:
        check([n for n in names if n in SPINNING] == SPINNING and not any(n.startswith("[truncated") for n in names),
              f"a stack is {names}")
    notes = [note for note in place.report()["notes"] if "mapped files" in note]
    check(len(notes) == len(words) and all(w in n for w, n in zip(words, notes)), f"reported is {notes}")


def test_deleted(context):
    """Files that no path leads to any more: what the kernel refuses is reported with the capability it takes."""
    with ExitStack() as left:
        place = Place(context)
        allowed(place, left)
        spinner = Spinner(context, context.folder)
        def record(capabilities):
            place.record(capabilities, "-p", spinner.pid, "-d", "300ms")
        record(NEEDED)  # /proc has its program by another way
        check_spinning(place, [])
        text = place.doctor(NEEDED, "--unwind", spinner.pid).stdout
        check(re.search(r"^ *[1-9][0-9.]+% .*spinner", text, re.M), f"of the program: {text}")
        spinner.replace_library()
        record(NEEDED)
        expect_failure(check_spinning, place, ["CAP_CHECKPOINT_RESTORE"])
        note, = [note for note in place.report()["notes"] if "mapped files" in note]
        check("CAP_CHECKPOINT_RESTORE" in note and ": 1 " in note, f"reported is {note}")
        text = place.doctor(NEEDED, "--unwind", spinner.pid).stdout
        check(re.search(r" - .*libthere.so.*: .*CAP_CHECKPOINT_RESTORE", text), f"of the library: {text}")
        check(re.search(r"^ *[1-9][0-9.]+% .*libc", text, re.M), f"of what can be read: {text}")
        record((*NEEDED, FOR_DELETED))
        check_spinning(place, [])
        text = place.doctor((*NEEDED, FOR_DELETED), "--unwind", spinner.pid).stdout
        check(re.search(r"^ *[1-9][0-9.]+% .*libthere.so", text, re.M) and "CAP_" not in text, f"of all: {text}")


def test_nothing_to_unwind(context):
    """A process none of whose files can be opened."""
    needs_command("gcc")
    place = Place(context)
    program = context.path("static")
    Spinner.compile(program, "int main(void) { for (;;); }", "-static")
    program.chmod(0o711)
    pid = context.start([program]).pid
    wait_until(lambda: os.readlink(f"/proc/{pid}/exe") == str(program), "it is executed")
    done = place.doctor(("sys_ptrace",), "--unwind", pid, status=1)
    check("Permission denied" in done.stdout and "reading the files of" in done.stderr, f"{done}")
    place.doctor(("sys_ptrace", "dac_read_search"), "--unwind", pid)


def check_doctor(text, line, has):
    """Whether doctor says that it has what `line` begins with."""
    check(re.search(rf"^{'yes' if has else 'no '}  {line}", text, re.M), f"{line}: {text}")


def test_doctor(context):
    """Each right has a line of its own; recording goes on without some of them."""
    with ExitStack() as left:
        place = Place(context)
        if place.paranoid >= 3:
            check_doctor(place.doctor(NEEDED, "-v", status=1).stdout, "perf events .*perf_event_paranoid", False)
        allowed(place, left)
        everything = (*NEEDED, FOR_DELETED, "syslog")
        full = place.doctor(everything, "-v").stdout
        for lacked, status, words in ((("perfmon",), 1, ("CAP_PERFMON", "perf events")),
                                      ((FOR_DELETED, "dac_read_search"), 0,
                                       ("CAP_DAC_READ_SEARCH", "CAP_CHECKPOINT_RESTORE"))):
            text = place.doctor([c for c in everything if c not in lacked], "-v", status=status).stdout
            for word in words:
                check_doctor(text, word, False)
                check_doctor(full, word, True)
                expect_failure(check_doctor, text, word, True)


def test_limits(context):
    """The message names what is missing; it suggests root only to users who need it and are not root."""
    needs_command("prlimit")
    with ExitStack() as left:
        place = Place(context)
        allowed(place, left)
        contained = ["setpriv", "--bounding-set=-bpf,-sys_admin", "--inh-caps=-all"]
        few_files, memory = ["prlimit", "--nofile=40"], Path("/proc/sys/kernel/perf_event_mlock_kb")
        def reported(command, words):
            done = subprocess.run([*command, WALLPROF, "-o", place.folder / "p.json", "--", "true"],
                                  capture_output=True, text=True, timeout=GIVE_UP_S)
            check(done.returncode == 125 and all(w in done.stderr for w in words), f"{command}: {done}")
            return done.stderr
        check("run as root" not in reported(contained, ["CAP_BPF", "--cap-add BPF"]), "root is asked to run as root")
        reported(few_files, ["ulimit -n", "40"])
        left.callback(memory.write_text, memory.read_text())
        memory.write_text("0")
        done = as_user(NEEDED, ["prlimit", "--memlock=0", place.program, "-o", place.folder / "p.json", "--", "true"],
                       env=place.environment, cwd=place.folder)
        check(done.returncode == 125 and "perf_event_mlock_kb" in done.stderr and "paranoid" not in done.stderr,
              f"{done}")


def command_status(place, program, *arguments):
    """Returns what /proc says about the process of the user's command."""
    done = as_user((), [program, "-q", "-o", place.folder / "p.json", *arguments, "--", "cat", "/proc/self/status"],
                   env=place.environment, cwd=place.folder)
    check(done.returncode == 0, done.stderr)
    return dict(line.split(":\t", 1) for line in done.stdout.strip().split("\n"))


def test_file_capabilities(context):
    """The program has them, and neither the command nor the files of others are its user's by that."""
    place = Place(context)
    needs_command("setcap")
    rights = ",".join(f"cap_{c}" for c in (*NEEDED, FOR_DELETED, "syslog"))
    subprocess.run(["setcap", f"{rights}+ep", place.program], check=True)
    status = command_status(place, place.program)
    check(status["CapEff"] == status["CapPrm"] == "0000000000000000" and int(status["Uid"].split()[0]) == USER,
          f"the command has {status}")
    hidden = context.path("hidden")
    hidden.mkdir(mode=0o700)
    secret = hidden / "secret.c"
    secret.write_text("int main(void) { volatile unsigned long i = 0; while (i < 300000000) i++; return 0; }\n")
    subprocess.run(["gcc", "-g", "-o", place.folder / "spin", secret], check=True)
    done = as_user((), [place.program, "-q", "--keep-capture", "-o", place.folder / "p.json.gz", "--",
                        place.folder / "spin"], env=place.environment, cwd=place.folder)
    check(done.returncode == 0, done.stderr)
    profile = Profile.load(place.folder / "p.json.gz")
    shared = profile.data["shared"]
    names = [shared["stringArray"][n] for n in shared["sources"]["filename"]]
    texts = [t for n, t in zip(names, shared["sources"]["content"]) if n.endswith("secret.c")]
    check(texts == [None], f"what root alone may read is in the profile, or its name is not: {names} {texts}")
    shutil.copy(place.folder / "p.capture", hidden / "theirs.capture")
    for verb in ("report", "export"):
        done = as_user((), [place.program, verb, hidden / "theirs.capture"], env=place.environment, cwd=place.folder)
        check(done.returncode == 1 and "Permission denied" in done.stderr, f"{verb}: {done.stderr}{done.stdout[:200]}")


def test_install(context):
    """`meson install` gives the capabilities to the program if the option is set."""
    for command in ("meson", "setcap", "getcap"):
        needs_command(command)
    script = ROOT / "tools/set-capabilities"
    place = Place(context)
    bin_folder = context.path("root") / "usr/bin"
    bin_folder.mkdir(parents=True)
    shutil.copy(place.program, bin_folder / "wallprof")
    subprocess.run([script, "/usr/bin/wallprof"], env={**os.environ, "DESTDIR": str(context.path("root"))}, check=True)
    reported = subprocess.run(["getcap", bin_folder / "wallprof"], capture_output=True, text=True, check=True).stdout
    check(all(f"cap_{c}" in reported for c in (*NEEDED, FOR_DELETED, "syslog")), reported)
    advised = re.search(r"setcap (\S+)", place.doctor((), status=1).stdout)[1]
    check(advised in script.read_text(), f"doctor advises {advised}")
