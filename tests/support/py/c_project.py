# SPDX-License-Identifier: GPL-2.0-or-later
"""A C project for make, to be built as a test or a benchmark.

make runs ./compile, which runs gcc, which runs cc1 and as; scripts stand for all but gcc and
write down in a log their pids and the time by bash's own clock.
"""
import shutil
import subprocess

MAKEFILE = """all: program {bad}
program: {good}
\t./compile -o $@ {good}
%.o: %.c
\t./compile -O1 -c -o $@ $<
"""
COMPILE = """#!/bin/bash
begin=$EPOCHREALTIME
gcc -B"$PWD/wrapped/" "$@"
status=$?
echo "compile $$ $begin $EPOCHREALTIME $status" >>log
exit $status
"""
WRAPPED = """#!/bin/bash
echo "{name} $$ $EPOCHREALTIME $*" >>log
exec {real} "$@"
"""


def write_script(path, text):
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def write_project(rng, folder, count, bad_count):
    """Returns the names of its sources and of those bad_count that do not compile."""
    folder.mkdir()
    names = [f"part{i}" for i in range(count)]
    bad = set(rng.sample(names, bad_count))
    for name in names:
        text = "#include <stdio.h>\n#include <stdlib.h>\n"
        for i in range(rng.randint(1, 12)):
            text += (f"int {name}_{i}(int n) {{ int sum = {rng.randrange(999)}; for (int i = 0; "
                     f"i < n; i++) sum ^= i * {rng.randrange(1, 99)}; return sum; }}\n")
        text += "this is an error;\n" if name in bad else ""
        (folder / f"{name}.c").write_text(text)
    good = [name for name in names if name not in bad]
    with open(folder / f"{good[0]}.c", "a", encoding="utf-8") as source:
        source.write("int main(void) { return 0; }\n")
    objects = [" ".join(f"{name}.o" for name in part) for part in (good, sorted(bad))]
    (folder / "Makefile").write_text(MAKEFILE.format(good=objects[0], bad=objects[1]))
    write_script(folder / "compile", COMPILE)
    for name in ("cc1", "as"):
        found = subprocess.run(["gcc", f"-print-prog-name={name}"], capture_output=True, text=True,
                               check=True).stdout.strip()
        write_script(folder / "wrapped" / name, WRAPPED.format(name=name, real=shutil.which(found)))
    return names, bad
