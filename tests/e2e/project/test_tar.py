# SPDX-License-Identifier: GPL-2.0-or-later
"""The example, tools/tar-extract: the same tree as tar makes, and nothing outside of it."""
import io
import os
import subprocess
import tarfile

import pytest

from harness import BUILD, ROOT, check, expect_failure, needs_command

PROGRAM = BUILD / "tools" / "tar-extract"

pytestmark = [pytest.mark.untimed, pytest.mark.host_only("the example needs no wallprof")]


def tree(folder):
    """All that is in a folder: kinds, modes, times, contents, targets, links."""
    found = {}
    for base, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(base, name)
            st = os.lstat(path)
            content = (os.readlink(path) if os.path.islink(path)
                       else open(path, "rb").read() if os.path.isfile(path) else None)
            links = None if os.path.isdir(path) else st.st_nlink
            found[os.path.relpath(path, folder)] = (st.st_mode, int(st.st_mtime), links, content)
    return found


def check_same(one, other):
    check(tree(one), "an empty tree")
    check(tree(one) == tree(other), f"{one} and {other} differ")


def extract(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)


def make(context, name, entries, form=tarfile.GNU_FORMAT):
    """An archive of (name, type, link, content), compressed."""
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w", format=form) as archive:
        for path, kind, link, content in entries:
            info = tarfile.TarInfo(path)
            info.type, info.linkname, info.size = kind, link, len(content)
            info.mode = 0o755 if kind == tarfile.DIRTYPE else 0o640
            archive.addfile(info, io.BytesIO(content))
    output = context.path(name)
    output.write_bytes(subprocess.run(["zstd", "-q", "-c"], input=raw.getvalue(),
                                      capture_output=True, check=True).stdout)
    return output


def test_same_as_tar(context):
    needs_command("zstd")
    archive, wanted = context.path("a.tar.zst"), context.path("wanted")
    subprocess.run([ROOT / "tools" / "demo" / "make-archive", archive, "8M"], check=True)
    wanted.mkdir()
    subprocess.run(["tar", "--no-same-owner", "--no-same-permissions", "-C", wanted, "-xf",
                    archive], check=True)
    for number, options in enumerate(([], ["--threads", 1], ["--threads", 5], ["--io-uring"],
                                      ["--mmap"], ["--mmap", "--threads", 3],
                                      ["--mmap", "--io-uring"], ["--threads", 3, "--io-uring"])):
        folder = context.path(str(number))
        done = extract(*options, archive, folder)
        check(done.returncode == 0, f"{options}: {done.stderr}")
        check_same(wanted, folder)
    victim = next(p for p in sorted(wanted.rglob("*.c")) if p.stat().st_size)
    victim.write_bytes(victim.read_bytes()[:-1] + b"?")
    expect_failure(check_same, wanted, folder)


def test_archive_is_the_same_each_time(context):
    needs_command("zstd")
    for name in ("a", "b"):
        subprocess.run([ROOT / "tools" / "demo" / "make-archive", context.path(name), "2M"], check=True)
    check(context.path("a").read_bytes() == context.path("b").read_bytes(), "they differ")


def test_long_names(context):
    needs_command("zstd")
    name = "/".join(["folder-" * 12] * 4) + "/file"
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        archive = make(context, "a", [(name, tarfile.REGTYPE, "", b"content"),
                                      ("s", tarfile.SYMTYPE, name, b""),
                                      ("h", tarfile.LNKTYPE, name, b"")], form)
        folder = context.path(str(form))
        check(extract(archive, folder).returncode == 0, "it failed")
        check((folder / "s").read_bytes() == b"content", "the symbolic link")
        check((folder / "h").stat().st_nlink == 2, "the hard link")


def test_a_pipe_is_omitted(context):
    needs_command("zstd")
    archive = make(context, "a", [("one", tarfile.REGTYPE, "", b"1"),
                                  ("pipe", tarfile.FIFOTYPE, "", b""),
                                  ("two", tarfile.REGTYPE, "", b"2")])
    done = extract(archive, context.path("out"))
    check(done.returncode == 1 and "pipe: entry of type" in done.stderr, f"it is not reported: {done.stderr}")
    check(sorted(p.name for p in context.path("out").iterdir()) == ["one", "two"],
          "not all the rest was unpacked")


def test_nothing_outside(context):
    needs_command("zstd")
    for entries in ([("../out", tarfile.REGTYPE, "", b"x")],
                    [("a/../../out", tarfile.REGTYPE, "", b"x")],
                    [(str(context.path("out")), tarfile.REGTYPE, "", b"x")],
                    [("a", tarfile.SYMTYPE, "..", b""), ("a/out", tarfile.REGTYPE, "", b"x")],
                    [("a", tarfile.SYMTYPE, str(context.folder), b""),
                     ("a/out", tarfile.REGTYPE, "", b"x")],
                    [("out", tarfile.LNKTYPE, "../secret", b"")],
                    [("..", tarfile.DIRTYPE, "", b"")]):
        context.path("secret").write_text("secret")
        done = extract(make(context, "archive", entries), context.path("in"))
        check(done.returncode == 1 and done.stderr.strip(), f"{entries}: accepted")
        check(not context.path("out").exists(), f"{entries}: led out")
        check(not context.path("in/out").exists(), f"{entries}: a link leads out")
        subprocess.run(["rm", "-rf", context.path("in")], check=True)


def test_damage(context):
    needs_command("zstd")
    good = make(context, "good", [(f"f{i}", tarfile.REGTYPE, "", context.random.randbytes(3000))
                                  for i in range(20)]).read_bytes()
    bad = context.path("bad")
    for content in (good[:context.random.randrange(100, len(good) - 1000)], b"no archive", good[10:]):
        bad.write_bytes(content)
        for options in ([], ["--mmap"], ["--threads", 2]):
            done = extract(*options, bad, context.path("out"))
            check(done.returncode == 1 and "bad" in done.stderr, f"accepted: {done.stderr!r}")
    check(extract(context.path("missing"), context.path("out")).returncode == 1, "missing")
    check(extract("--threads", "0", bad, context.path("out")).returncode == 2, "--threads 0")
