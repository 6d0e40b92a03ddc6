# SPDX-License-Identifier: GPL-2.0-or-later
"""The text of source files is in the profile, and each line has the time that it took."""
import json
import os
import shutil
import subprocess

import pytest

from harness import (MS, ROOT, Profile, Viewer, capture_of, check, check_timed, expect_failure, needs_command,
                     needs_root, read_report, unless_stolen, wait_until, without_stolen)

pytestmark = pytest.mark.host_only("it needs a compiler")

SOURCES = ("lines.c", "lines.h")
NOBODY = 65534


def place_sources(folder):
    for name in SOURCES:
        shutil.copy(ROOT / "tests" / "workloads" / "symbols" / name, folder)


def compile_with_lines(source, program, *options, cwd=None):
    needs_command("cc")
    done = subprocess.run(["cc", "-g", "-fno-omit-frame-pointer", *options, str(source), "-o",
                           str(program)], capture_output=True, text=True, cwd=cwd)
    check(done.returncode == 0, f"cc: {done.stderr}")


class Lines:
    """The workload's calls and lines: the numbers of the lines with a marking comment."""

    def __init__(self, folder, truth):
        self.truth = json.loads(truth.read_text())
        self.folder = folder
        self.texts = {name: (folder / name).read_text() for name in SOURCES}
        self.allowed_ns = 0  # see unless_stolen()

    def number(self, name, remark):
        found = [number for number, line in enumerate(self.texts[name].splitlines(), 1)
                 if f"/* {remark} */" in line]
        check(len(found) == 1, f"{name}: {len(found)} lines bear {remark}")
        return found[0]


def run_lines(context, *options, seconds=1.0):
    """Records the workload for its own, random times; its sources are deleted behind it."""
    rng, program = context.random, context.path("lines")
    place_sources(context.folder)
    compile_with_lines(context.path("lines.c"), program, *options)
    times = [int(seconds * rng.randint(low, high)) for low, high in ((150, 300), (80, 140),
                                                                     (60, 120))]
    output, truth = context.path("p.json.gz"), context.path("truth.json")
    for _ in range(6):
        context.wallprof("-q", "--keep-capture", "-o", output, "--", program, truth, *times)
        # A switch that this kernel did not trace breaks the chain, and the only sleep may be it.
        if read_report(context, capture_of(output))["contradictions"] == 0:
            break
    lines = Lines(context.folder, truth)
    for name in SOURCES:
        context.path(name).unlink()
    return output, lines


def annotated(viewer, thread, function):
    """The lines of the file that a function is in, as the viewer's source view shows them."""
    viewer.query("thread", "select", thread)
    functions = viewer.query("thread", "functions", "--thread", thread, "--limit", 0)["functions"]
    handles = [f["functionHandle"] for f in functions if f["name"] == function]
    check(len(handles) == 1, f"profiler-cli shows {len(handles)} functions {function}")
    answer = viewer.query("function", "annotate", handles[0], "--mode", "src", "--context", "file")
    annotation = answer["srcAnnotation"]
    check(annotation, f"{function} has no source: {answer}")
    return annotation["filename"], {line["lineNumber"]: line for line in annotation["lines"]}


def check_text(shown, lines, name):
    filename, rows = shown
    check(filename == str(lines.folder / name), f"{name} is shown as {filename}")
    text = [rows[number]["sourceText"] for number in sorted(rows)]
    check("\n".join(text).rstrip("\n") == lines.texts[name].rstrip("\n"),
          f"{name} is shown as {text}")


def check_line(shown, lines, name, remark, part):
    """All that happened below the line, ticks in the kernel and waits for a CPU included."""
    row = shown[1][lines.number(name, remark)]
    got, wanted = row["totalSamples"] * MS, lines.truth[part]
    check_timed(f"{name}: {remark}", without_stolen(got, wanted, lines.allowed_ns), wanted, 0.03,
                4 * MS)


def check_source_view(work, inlined, lines):
    check_text(work, lines, "lines.c")
    check_text(inlined, lines, "lines.h")
    check_line(work, lines, "lines.c", "BURNS", "hot")
    check_line(work, lines, "lines.c", "CALLS HOT", "hot")
    check_line(work, lines, "lines.c", "CALLS INLINED", "inlined")
    check_line(work, lines, "lines.c", "SLEEPS", "sleep")
    check_line(inlined, lines, "lines.h", "BURNS INLINED", "inlined")
    quiet = sum(row["totalSamples"] for number, row in work[1].items()
                if "/*" not in row["sourceText"] and "work(" not in row["sourceText"])
    check(quiet < 12, f"lines that do next to nothing are shown with {quiet} ms")


def view(output, lines):
    with Viewer() as viewer:
        viewer.load(output)
        thread = viewer.thread_handles()[lines.truth["tid"]]
        return annotated(viewer, thread, "work"), annotated(viewer, thread, "burn_inlined")


def contents(output):
    """Text, or None, by path."""
    shared = Profile.load(output).data["shared"]
    sources = shared["sources"]
    check(len(sources["content"]) == sources["length"], "a column of another length")
    return {shared["stringArray"][name]: content
            for name, content in zip(sources["filename"], sources["content"])}


def test_source_view(context):
    """From the profile alone: the sources are gone by the time it is looked at."""
    for options in (["-O1"], ["-O2"]):
        def record(options=options):
            output, lines = run_lines(context, *options)
            return *view(output, lines), lines

        def checks(found, allowed_ns):
            found[-1].allowed_ns = allowed_ns
            check_source_view(*found)

        *shown, lines = unless_stolen(record, checks)
    lines.truth["hot"] += 20 * MS
    expect_failure(check_source_view, *shown, lines)
    lines.truth["hot"] -= 20 * MS
    lines.texts["lines.h"] += "/* altered */\n"
    expect_failure(check_source_view, *shown, lines)


def check_contents(output, lines, there):
    found = contents(output)
    for name in SOURCES:
        path = str(lines.folder / name)
        check(path in found, f"{path} is no source of the profile: {list(found)}")
        check(found[path] == (lines.texts[name] if there else None),
              f"{name}: {str(found[path])[:80]}")


def test_built_in_another_folder(context):
    """Most build systems give the compiler "../FILE"."""
    place_sources(context.folder)
    build, output = context.path("build"), context.path("p.json")
    build.mkdir()
    for dwarf in ("-gdwarf-4", "-gdwarf-5"):
        for optimisation in ("-O0", "-O2"):
            compile_with_lines("../lines.c", "lines", dwarf, optimisation, cwd=build)
            context.wallprof("-q", "-o", output, "--", build / "lines",
                             context.path("truth.json"), 10, 10, 10)
            texts = contents(output).values()
            for name in SOURCES:
                check(context.path(name).read_text() in texts,
                      f"{dwarf} {optimisation}: {name} is not in the profile")


def test_no_source(context):
    """Neither recorded nor exported, and the rest is as it was."""
    output, lines = run_lines(context, seconds=0.1)
    check_contents(output, lines, there=True)
    without, program = context.path("without.json"), context.path("lines")
    context.wallprof("export", "-q", "--no-source", "-o", without, capture_of(output))
    check_contents(without, lines, there=False)
    place_sources(context.folder)
    context.wallprof("-q", "--no-source", "-o", without, "--", program,
                     context.path("truth.json"), 10, 10, 10)
    check_contents(without, lines, there=False)
    expect_failure(check_contents, without, lines, True)


def test_deferred(context):
    """A capture without names: the sources are those of the machine that exports it."""
    output, lines = run_lines(context, seconds=0.1)
    capture, program = context.path("c.capture"), context.path("lines")
    context.wallprof("record", "-q", "--defer-symbols", "-o", capture, "--", program,
                     context.path("truth.json"), 10, 10, 10)
    place_sources(context.folder)
    context.wallprof("export", "-q", "-o", output, capture)
    check_contents(output, lines, there=True)
    context.wallprof("export", "-q", "--no-source", "-o", output, capture)
    check_contents(output, lines, there=False)


def test_newer_sources_are_reported(context):
    output, _ = run_lines(context, seconds=0.1)
    program, truth = context.path("lines"), context.path("truth.json")
    place_sources(context.folder)

    def message(mtime):
        for name in SOURCES:
            os.utime(context.path(name), (mtime, mtime))
        done = context.wallprof("-o", output, "--", program, truth, 10, 10, 10)
        return "2 source files are newer than the program" in done.stderr
    built = program.stat().st_mtime
    check(message(built + 10), "newer sources are not reported")
    check(not message(built - 10), "older sources are called newer")


def start_in_other_root(context):
    """The workload in a root folder of its own, in a closed one; our root has another text."""
    decoy, root = context.path("decoy"), context.path("closed") / "root"
    inside = root / decoy.relative_to("/")
    for folder in (decoy, inside):
        folder.mkdir(parents=True)
        place_sources(folder)
        for name in SOURCES:
            (folder / name).chmod(0o644)
    root.parent.chmod(0o700)
    compile_with_lines(decoy / "lines.c", root / "lines", "-static")
    with open(decoy / "lines.c", "a", encoding="utf-8") as file:
        file.write("/* another one */\n")
    process = context.start(["chroot", root, "/lines", "/truth.json", "20000", "0", "0"])
    wait_until(lambda: os.readlink(f"/proc/{process.pid}/exe") == str(root / "lines"),
               "the workload runs")
    return process.pid, str(decoy / "lines.c"), (inside / "lines.c").read_text()


def test_other_root(context):
    """A path is one in the root folder of the program, where only root itself may go."""
    needs_root()
    needs_command("chroot")
    pid, path, text = start_in_other_root(context)

    def content(*options, **environment):
        context.wallprof("-q", *options, "-o", context.path("p.json"), "-p", pid, "-d", "200ms",
                         env={**os.environ, **environment})
        return contents(context.path("p.json"))[path]
    check(content() == text, "the source is not that of the program's root folder")
    user = {"SUDO_UID": str(NOBODY), "SUDO_GID": str(NOBODY)}
    context.folder.chmod(0o777)
    check(content(**user) is None, "a user gets the content of a closed folder")
    check(content("--as-root", **user) == text, "root does not get it")


def raw_records(capture):
    done = subprocess.run(["zstd", "-dc", capture], capture_output=True, check=True)
    return done.stdout


def record_as(context, program, uid, *options):
    """Runs it with the environment of sudo."""
    output = context.path("p.json")
    context.wallprof("-q", "--keep-capture", *options, "-o", output, "--", program,
                     env={**os.environ, "SUDO_UID": str(uid), "SUDO_GID": str(uid)})
    return output, raw_records(capture_of(output))


def test_only_what_the_invoker_may_read(context):
    """A program may call any file its source; root does not read it for others."""
    needs_root()
    needs_command("zstd")
    context.folder.chmod(0o777)
    word = f"secret {context.random.getrandbits(64):x}"
    secret, public = context.path("secret.txt"), context.path("public.txt")
    secret.write_text(word + "\n")
    secret.chmod(0o600)
    public.write_text("for " + word[::-1] + "\n")
    public.chmod(0o644)
    burn = "for (volatile long i = 0; i < 50000000; i++) ;"
    source, program = context.path("thief.c"), context.path("thief")
    source.write_text(f'#line 1 "{secret}"\n'
                      f"__attribute__((noinline)) void steal(void) {{ {burn} }}\n"
                      f'#line 1 "{public}"\n'
                      f"int main(void) {{ steal(); {burn} return 0; }}\n")
    compile_with_lines(source, program)

    def stolen(output, records):
        found = contents(output)
        check(found.get(str(public)) == public.read_text(), f"what may be read is not: {found}")
        check(str(secret) in found, f"the program does not name the file: {list(found)}")
        check(found[str(secret)] is None and word.encode() not in records, "a secret is recorded")
        check(word[::-1].encode() in records, "the records are not read as they should be")
    stolen(*record_as(context, program, NOBODY))
    # Root for itself may: so the file was named, could be read, and would have been found.
    expect_failure(stolen, *record_as(context, program, NOBODY, "--as-root"))


def test_only_what_the_process_may_read(context):
    """Root records another user's program, which calls a file of root's its source."""
    needs_root()
    needs_command("setpriv")
    context.folder.chmod(0o755)
    secret, program = context.path("secret.txt"), context.path("thief")
    source = context.path("thief.c")
    secret.write_text("a secret\n")
    secret.chmod(0o600)
    source.write_text(f'#line 1 "{secret}"\nint main(void) {{ for (volatile long i = 0; i < 200000000; i++) ; }}\n')
    compile_with_lines(source, program)

    def stolen(*command):
        context.wallprof("-q", "-o", context.path("p.json"), "--", *command, program)
        found = contents(context.path("p.json"))
        check(str(secret) in found, f"the program does not name the file: {list(found)}")
        check(found[str(secret)] is None, "what the process could not read is in the profile")
    stolen("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
    # Root's own process could have read it.
    expect_failure(stolen)
    # Without rights to read all files, nor those of the owner, not even root.
    secret.chmod(0o000)
    stolen("setpriv", "--bounding-set=-dac_override,-dac_read_search")
    # A file that all may read can be the source of any program.
    secret.chmod(0o644)
    expect_failure(stolen, "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")


def test_late_only_what_all_may_read(context):
    """An export does not know what the processes could read."""
    needs_root()
    context.folder.chmod(0o755)
    place_sources(context.folder)
    compile_with_lines(context.path("lines.c"), context.path("lines"))
    context.wallprof("record", "-q", "--defer-symbols", "-o", context.path("late.capture"), "--", context.path("lines"),
                     context.path("truth.json"), "150", "80", "60")

    def exported(mode):
        context.path("lines.c").chmod(mode)
        context.wallprof("export", "-q", "-o", context.path("p.json"), context.path("late.capture"))
        return contents(context.path("p.json"))[str(context.path("lines.c"))]
    check(exported(0o644) is not None, "what all may read is not in the profile")
    check(exported(0o600) is None, "what only root may read is in the profile")
