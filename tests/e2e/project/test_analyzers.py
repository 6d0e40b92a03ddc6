# SPDX-License-Identifier: GPL-2.0-or-later
"""Clang's static analyzer and gcc's -fanalyzer find nothing that docs/design/testing.md does not explain, and
ThreadSanitizer no race. They take minutes, so they run with --long."""
import json
import re
import shlex
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import BUILD, ROOT, Skip, check, expect_failure, is_long, needs_command, needs_root

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it is about the sources")]
AT_A_TIME = 2
NICE = ["nice", "-n", "19"]
# Options of the build that are about its outputs, with and without an argument.
OUTPUTS, FLAGS = {"-o", "-MQ", "-MF", "-c"}, {"ccache", "-MD", "-Werror"}
GCC, CLANG = 12, 14  # as Debian 12 has them: each version finds other things
WARNING = re.compile(r"^(\S+?):\d+:\d+: warning: (.*?)( \[CWE-\d+\])?( \[(-W|core|unix|deadcode|security|alpha)\S*\])?$", re.M)
FALSE_ALARM = re.compile(r"^\| `([^`]+)` \| (gcc|clang) \| (.+?) \| .+ \|$", re.M)


def explained(analyzer):
    """(file, words of the message) of each row of the table in the document."""
    text = (ROOT / "docs/design/testing.md").read_text()
    return {(m[1], m[3]) for m in FALSE_ALARM.finditer(text) if m[2] == analyzer}


def is_version(program, version):
    return int(subprocess.run([program, "-dumpversion"], capture_output=True, text=True).stdout.split(".")[0]) == version


def without_outputs(words):
    """The arguments of a compiler but those, and the source."""
    words = [word for word in words[1 if words[0] != "ccache" else 2:] if word not in FLAGS]
    return [word for i, word in enumerate(words) if word not in OUTPUTS and (i == 0 or words[i - 1] not in OUTPUTS)]


def analyze(command, source, words, folder):
    done = subprocess.run([*NICE, *command, *without_outputs(words), source], cwd=folder, capture_output=True, text=True)
    check(done.returncode == 0, f"{source}: {done.stderr[:2000]}")
    return done.stderr


def findings(command):
    """The warnings on all sources of the product, as (file, message)."""
    units = [unit for unit in json.loads((BUILD / "compile_commands.json").read_text())
             if re.search(r"(^|/)(src|export)/", unit["file"]) and "build/" not in unit["file"]]
    check(len(units) > 100, f"only {len(units)} sources")
    with ThreadPoolExecutor(AT_A_TIME) as pool:
        printed = list(pool.map(lambda u: analyze(command, u["file"], shlex.split(u["command"]), u["directory"]), units))
    return {(m[1].removeprefix("../"), m[2]) for text in printed for m in WARNING.finditer(text)}


def check_explained(found, known):
    unknown = sorted(f"{file}: {message}" for file, message in found
                     if not any(file == f and words in message for f, words in known))
    check(not unknown, "\n".join(unknown))


def check_analyzer(context, name, command):
    known = explained(name)
    check_explained(findings(command), known)
    bad = context.path("bad.c")
    bad.write_text("#include <stdlib.h>\nint main(void)\n{\n\tint *p = NULL;\n\n\treturn *p;\n}\n")
    text = analyze(command, bad, ["cc"], ROOT)
    expect_failure(check_explained, {(m[1], m[2]) for m in WARNING.finditer(text)}, known)


def needs_long(program, version):
    if not is_long():
        raise Skip("it takes minutes: --long")
    needs_command(program)
    if not is_version(program, version):
        raise Skip(f"the table of what is explained is about {program} {version}")


def test_gcc(context):
    needs_long("gcc", GCC)
    check_analyzer(context, "gcc", ["gcc", "-O1", "-c", "-fanalyzer", "-fdiagnostics-plain-output", "-o", "/dev/null"])


def test_clang(context):
    needs_long("clang", CLANG)
    check_analyzer(context, "clang", ["clang", "--analyze", "-Wno-unknown-warning-option", "-o", "/dev/null"])


RACE = """#include <pthread.h>
static int shared;
static void *add(void *unused)
{
	shared++;
	return unused;
}
int main(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, add, NULL);
	shared++;
	pthread_join(thread, NULL);
	return 0;
}
"""


def check_no_race(command):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=600)
    check("WARNING: ThreadSanitizer" not in done.stderr and done.returncode == 0,
          f"{command}: {done.returncode}, {done.stderr[:4000]}")


def test_threads(context):
    """Recordings and exports of a build with ThreadSanitizer. What the kernel writes into the rings is not seen by it."""
    needs_root()
    if not is_long():
        raise Skip("it is built first: --long")
    built = subprocess.run([ROOT / "tools/test", "--build-tsan"], capture_output=True, text=True)
    check(built.returncode == 0, built.stderr[-3000:])
    program, capture = ROOT / "build-tsan/wallprof", context.path("t.capture")
    check_no_race([program, "-q", "-o", context.path("p.json"), "--", *context.workload("pingpong", rounds=2000)])
    check_no_race([program, "record", "-q", "-a", "-d", "1s", "--capture-compression", "3,2", "-o", capture])
    check_no_race([program, "record", "-q", "--flight-recorder", "1s", "-o", context.path("f.capture"), "--", "sleep", "2"])
    check_no_race([program, "export", "-q", "-o", context.path("q.json.zst"), capture])
    source, racy = context.path("race.c"), context.path("race")
    source.write_text(RACE)
    subprocess.run(["gcc", "-fsanitize=thread", "-o", racy, source], check=True)
    expect_failure(check_no_race, [racy])
