# SPDX-License-Identifier: GPL-2.0-or-later
"""A new kind of record takes a row and a struct in bpf/abi, one case in the timeline, and a line that says whether it has
names (--anonymize), without which it does not compile; no other file changes."""
import json
import os
import re
import shutil
import struct
import subprocess

import pytest

from capture_reader import END, HEADER_LENGTH, RECORD, records
from harness import ROOT, WALLPROF, check, expect_failure, needs_command

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("it compiles")]

COPIED = ("bpf", "src", "export", "docs/user", "tools", "meson.build", "meson_options.txt")
GOLDEN = ROOT / "tests" / "golden" / "golden.capture"
STRUCT = """
struct rec_probe {
	struct record h;
	u64 value;
};

"""
CASE = """	case REC_PROBE:
		fprintf(stderr, "probe %llu\\n",
			(unsigned long long)((const struct rec_probe *)record)->value);
		return;
"""
# Reads a capture as `wallprof report --json` does, and prints the same totals. It needs no BPF programs.
READER = """
#include "capture.h"
#include "record_info.h"
#include "timeline_builder.h"
#include <stdio.h>

int main(int argc, char *argv[])
{
	TimelineBuilder *builder = timeline_builder_new();
	const struct record *record;
	const char *message;
	CaptureReader *reader;
	Timeline *timeline;
	const char *separator = "";

	if (argc != 2 || capture_reader_open(argv[1], &reader, &message) != 0)
		return 1;
	while (capture_read_sorted(reader, &record) > 0)
		timeline_builder_add(builder, record);
	timeline = timeline_builder_finish(builder);
	if (capture_reader_counts(reader)->unknown)
		fprintf(stderr, "records of unknown kinds\\n");
	printf("{\\"totals\\": {");
	for (unsigned int kind = 1; kind < REC_BPF_MAX; kind++)
		if (record_info(kind)->word) {
			printf("%s\\"%s\\": {\\"received\\": %llu}", separator,
			       record_info(kind)->word,
			       (unsigned long long)timeline->totals[kind].received);
			separator = ", ";
		}
	printf("}}\\n");
	return 0;
}
"""
TARGET = """
executable('kind-reader', 'kind-reader.c', dependencies: [folder_deps['timeline'], folder_deps['capture']])
"""


def insert(path, pattern, text):
    """Inserts the text before the last match of the pattern."""
    old = path.read_text()
    found = [match.start() for match in re.finditer(pattern, old, re.M)]
    check(found, f"{path} has no {pattern}")
    path.write_text(old[:found[-1]] + text + old[found[-1]:])


def free_number(kinds):
    """A number in the range of the ring for bulky records that no kind has."""
    used = {int(number) for number in re.findall(r"KIND\(\w+, (\d+),", kinds)}
    return min(set(range(16, 32)) - used)


def copy_tree(context):
    tree = context.path("tree")
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, tree / name)
        else:
            shutil.copy(ROOT / name, tree / name)
    return tree


def add_kind(tree):
    """Returns the number of the new kind, PROBE."""
    kinds = tree / "bpf" / "abi" / "record_kinds.h"
    number = free_number(kinds.read_text())
    insert(kinds, r"^\tKIND\(META", f'\tKIND(PROBE, {number}, "probe", RECORD_EVENT, sizeof(struct rec_probe)) \\\n')
    insert(tree / "bpf" / "abi" / "records.h", "^#endif", STRUCT)
    insert(tree / "export" / "timeline" / "timeline_builder.c", "^\tcase REC_STACK:", CASE)
    insert(tree / "export" / "anonymize" / "anonymizer.c", "^#define ON_META", "#define ON_PROBE keep\n")
    return number


def build_reader(tree):
    (tree / "kind-reader.c").write_text(READER)
    with open(tree / "meson.build", "a") as out:
        out.write(TARGET)
    # The folder has another name in each run; its files are the same.
    environment = {**os.environ, "CCACHE_BASEDIR": str(tree), "CCACHE_NOHASHDIR": "1"}
    if shutil.which("ccache"):
        environment["CC"] = "ccache gcc"
    setup = ["meson", "setup", "build", "-Dtests=disabled", "-Dopen=disabled", "-Dexample=disabled", "-Dwerror=true"]
    for command in (setup, ["ninja", "-C", "build", "kind-reader"]):
        done = subprocess.run(command, cwd=tree, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT)
        check(done.returncode == 0, f"{' '.join(command)}:\n{done.stdout[-3000:]}")
    return tree / "build" / "kind-reader"


def write_capture(context, number, values):
    """Writes the golden capture with records of the new kind before its end."""
    path, plain = context.path("kind.capture"), context.path("kind.records")
    found = list(records(GOLDEN, range(256)))
    ns = max(ns for kind, _, ns, _ in found if kind < 32)
    probes = [RECORD.pack(RECORD.size + 8, number, 0, 0, ns) + struct.pack("<Q", value) for value in values]
    plain.write_bytes(b"".join([*(bytes(r) for kind, _, _, r in found if kind != END), *probes,
                                *(bytes(r) for kind, _, _, r in found if kind == END)]))
    frame = subprocess.run(["zstd", "-cq", plain], check=True, stdout=subprocess.PIPE).stdout
    path.write_bytes(GOLDEN.read_bytes()[:HEADER_LENGTH] + frame)
    return path


def check_kind(command, capture, values):
    """Checks that the program knows the kind and counts all its records as received."""
    done = subprocess.run([*command, capture], capture_output=True, text=True)
    check(done.returncode == 0, f"{command}: {done.stderr}")
    check("kinds" not in done.stderr, f"{command}: {done.stderr}")
    received = json.loads(done.stdout)["totals"].get("probe", {}).get("received")
    check(received == len(values), f"{received} received, should be {len(values)}")
    read = [int(value) for value in re.findall(r"^probe (\d+)$", done.stderr, re.M)]
    check(read == values, f"the values {read}, should be {values}")


def test_takes_few_files(context):
    needs_command("meson")
    needs_command("zstd")
    tree = copy_tree(context)
    number = add_kind(tree)
    values = [context.random.randrange(1 << 60) for _ in range(context.random.randint(2, 9))]
    capture = write_capture(context, number, values)
    reader = build_reader(tree)
    check_kind([reader], capture, values)
    expect_failure(check_kind, [reader], capture, values[1:])
    # The wallprof of this build has no row for the kind and reports unknown records.
    without = subprocess.run([WALLPROF, "report", "--json", capture], capture_output=True, text=True)
    check(without.returncode == 0 and re.search(rf"\b{len(values)} records\b.* kinds", without.stderr), without.stderr)
    expect_failure(check_kind, [WALLPROF, "report", "--json"], capture, values)
