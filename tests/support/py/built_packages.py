# SPDX-License-Identifier: GPL-2.0-or-later
"""The packages that tools/package makes: how they are built, and what has to be in them."""
import json
import os
import re
import subprocess
import tempfile
from collections import defaultdict
from pathlib import Path

from harness import ROOT, check, expect_failure

BUNDLE_MAX = 16 << 20  # bytes
# The libraries that a bundle may need at run time: libc and its parts.
LIBC = {"libc.so.6", "libm.so.6", "ld-linux-x86-64.so.2"}
OLDEST_LIBC = (2, 36)  # Debian 12's
# Libraries that are linked into a bundle, as --licenses names their source packages.
LIBRARIES = {"bzip2", "capstone", "elfutils", "jansson", "libbpf", "libiberty", "libmicrohttpd", "libzstd",
             "xz-utils", "zlib"}
DEBIAN_ARCHIVES = ("bpf", "bz2", "capstone", "iberty", "jansson", "lzma", "zstd", "z")
# These libraries call wallprof's functions of these names, which do the same.
SHARED_NAMES = {"xasprintf", "xcalloc", "xmalloc", "xrealloc", "xstrdup", "xstrndup"}
# Below the prefix.
PAGES = ("wallprof", "wallprof-doctor", "wallprof-export", "wallprof-open", "wallprof-record", "wallprof-report")
INSTALLED = ("bin/wallprof", *(f"share/man/man1/{page}.1" for page in PAGES), "share/doc/wallprof/waits.md",
             "share/bash-completion/completions/wallprof", "share/fish/vendor_completions.d/wallprof.fish")
ZSH, DEBIAN_ZSH = "share/zsh/site-functions/_wallprof", "share/zsh/vendor-completions/_wallprof"
DEBIAN_DOCUMENTS = ("share/doc/wallprof/copyright", "share/doc/wallprof/changelog")
SHARED_LIBRARIES = ("libbpf", "libdw", "libelf", "libzstd", "libmicrohttpd", "libjansson", "libcapstone")


def run(command, **settings):
    settings.setdefault("env", {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"})
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, errors="replace", **settings)
    check(done.returncode == 0, f"{command[0]}: {(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def _build(kind, folder, tree):
    path = Path(run([tree / "tools" / "package", kind, folder]).splitlines()[-1])
    check(path.is_file() and path.parent == Path(folder).resolve(), f"tools/package {kind} made no {path}")
    return path


def build_bundle(folder, tree=ROOT):
    """The path of the bundle of that tree, in `folder`. Only on Debian 12."""
    return _build("bundle", folder, tree)


def build_deb(folder, tree=ROOT):
    """The path of the package of that tree for this machine's release, in `folder`."""
    return _build("deb", folder, tree)


# ---- the bundle ------------------------------------------------------------------


def check_needed(program):
    """It needs nothing but libc, and none that is newer than Debian 12's."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", run(["readelf", "-d", program])))
    check(needed and needed <= LIBC, f"{program.name} needs {sorted(needed - LIBC)}, too")
    versions = {tuple(map(int, number.split(".")))
                for number in re.findall(r"\(?GLIBC_([\d.]+)", run(["objdump", "-T", program]))}
    check(versions and max(versions) <= OLDEST_LIBC, f"{program.name} needs glibc {max(versions, default=None)}")


def check_names_no_folder(program, tree):
    """A build of the same sources in another folder is the same."""
    content = program.read_bytes()
    for folder in (tree, f"{tempfile.gettempdir()}/tmp.", "wallprof-build"):
        check(str(folder).encode() not in content, f"{program.name} has {folder} in it")


def build_id(path):
    return re.search(r"Build ID: ([0-9a-f]+)", run(["readelf", "-n", path]))[1]


def check_debug_file(program, debug):
    """It belongs to the program, which names it and has no symbols of its own."""
    check(debug.is_file(), f"no {debug.name}")
    check(build_id(program) == build_id(debug), "the debug file has another build ID")
    check(debug.name in run(["readelf", "-p", ".gnu_debuglink", program]), "the program names another debug file")
    sections = run(["readelf", "-SW", program])
    check(".symtab" not in sections and ".debug_info" not in sections, "the program has its debug information, too")
    address = next((line.split()[0] for line in run(["nm", debug]).splitlines() if line.endswith(" T main")), None)
    check(address and "src/cli/main.c:" in run(["addr2line", "-e", debug, address]), "the debug file does not name main()")


def check_licenses(text):
    """Each library has its version and its notice."""
    listed = dict(re.findall(r"^  (\S+) (\S+)$", text.partition("\n====")[0], re.MULTILINE))
    check(set(listed) == LIBRARIES, f"--licenses lists {sorted(listed)}")
    for name, version in listed.items():
        check(f"\n==== {name} {version} ====\n" in text, f"--licenses has no notice of {name} {version}")
    for name in re.findall(r"/usr/share/common-licenses/(L?GPL-[\d.]*\d)", text):
        check(f"\n==== /usr/share/common-licenses/{name} ====\n" in text, f"--licenses refers to {name}, which is missing")


def names_in(paths):
    """{name: files} of the global functions and variables that objects and archives define."""
    names = defaultdict(set)
    for line in run(["nm", "-A", "--defined-only", *paths]).splitlines():
        found = re.match(r"(.*?):(?:.*:)?[0-9a-f]+ [TDBRC] (\S+)$", line)
        if found:
            names[found[2]].add(found[1])
    return names


def linked_archives():
    """Those that a bundle is made of: built by tools/bundle-libraries, and Debian's."""
    found = {path for folder in run([ROOT / "tools" / "bundle-libraries"]).split() for path in Path(folder).glob("lib/*.a")}
    check(len(found) == 4, f"tools/bundle-libraries built {sorted(found)}")
    return found | {Path(run(["cc", f"-print-file-name=lib{name}.a"]).strip()).resolve() for name in DEBIAN_ARCHIVES}


def check_own_names(mine, archives):
    """A function of the same name would be called in the place of another, and nothing would say so."""
    seen = {name: "wallprof" for name in mine}
    for archive in sorted(archives):
        names = set(names_in([archive]))
        check(len(names) > 20, f"{archive.name} defines only {len(names)} names")
        shared = {name for name in names & set(seen) if name not in SHARED_NAMES}
        check(not shared, f"also in {archive.name}: {[(name, seen[name]) for name in sorted(shared)[:10]]}")
        seen.update({name: archive.name for name in names})


SPIN = """static volatile long total;
__attribute__((noinline)) static void spin_here(void)
{
	for (long i = 0; i < 200000000; i++)
		total += i;
}
int main(void) { spin_here(); return 0; }
"""


def compile_spin(folder):
    """A program with debug information that zstd has compressed."""
    source, program = folder / "spin.c", folder / "spin"
    source.write_text(SPIN)
    run(["cc", "-g", "-O1", source, "-o", program])
    run(["objcopy", "--compress-debug-sections=zstd", program])
    check("ZSTD" in run(["readelf", "-tW", program]), "objcopy has not compressed it with zstd")
    return program


def check_has_lines(program, command):
    """A profile of that command names lines of its source."""
    with tempfile.TemporaryDirectory() as folder:
        profile = Path(folder) / "p.json"
        run([program, "-q", "-o", profile, "--", command], env={**os.environ, "XDG_CACHE_HOME": folder})
        shared = json.loads(profile.read_text())["shared"]
    functions, frames = shared["funcTable"]["name"], shared["frameTable"]
    lines = [frames["line"][i] for i, function in enumerate(frames["func"])
             if shared["stringArray"][functions[function]] == "spin_here"]
    check(any(lines), f"lines of spin_here(): {lines}")


def check_reads_zstd(program):
    """elfutils of Debian 12 does not."""
    with tempfile.TemporaryDirectory() as folder:
        command = compile_spin(Path(folder))
        check_has_lines(program, command)
        run(["strip", "--strip-debug", command])
        expect_failure(check_has_lines, program, command)


def check_bundle(program, tree=None):
    """All that can be seen of a bundle, by root. tree: what it was built of, if it was built on this machine."""
    size = program.stat().st_size
    check(size <= BUNDLE_MAX, f"{size} bytes, should be {BUNDLE_MAX} at most")
    check_needed(program)
    debug = program.with_name(program.name + ".debug")
    check_debug_file(program, debug)
    check_licenses(run([program, "--licenses"]))
    check_reads_zstd(program)
    if not tree:
        return
    for file in (program, debug):
        check_names_no_folder(file, tree)
    build = ROOT / "build"
    run(["ninja", "-C", build, "wallprof"])
    mine = set(names_in([*(build / "wallprof.p").glob("*.o"), *build.glob("*/libwallprof-*.a.p/*.o")]))
    check(len(mine) > 500, f"only {len(mine)} names")
    check_own_names(mine, linked_archives())


# ---- the Debian package ----------------------------------------------------------


def check_installed(prefix, zsh, documents=()):
    """Each file is there, as it is or compressed, below the folder that is the prefix."""
    for name in (*INSTALLED, zsh, *documents):
        found = [p for p in (prefix / name, prefix / f"{name}.gz") if p.is_file()]
        check(len(found) == 1, f"{name} is not installed")


def check_deb(package, scratch):
    """All that can be seen of a package that build_deb() made; `scratch` is an empty folder."""
    symbols = package.with_name(package.name.replace("wallprof_", "wallprof-dbgsym_"))
    check(symbols.is_file(), f"no {symbols.name}")
    depends = run(["dpkg-deb", "-f", package, "Depends"])
    for library in SHARED_LIBRARIES:
        check(library in depends, f"it does not depend on {library}: {depends}")
    check("libiberty" in run(["dpkg-deb", "-f", package, "Built-Using"]), "it does not say what libiberty it contains")
    run(["dpkg-deb", "-x", package, scratch])
    run(["dpkg-deb", "-x", symbols, scratch])
    check_installed(scratch / "usr", DEBIAN_ZSH, DEBIAN_DOCUMENTS)
    identifier = build_id(scratch / "usr/bin/wallprof")
    check((scratch / "usr/lib/debug/.build-id" / identifier[:2] / f"{identifier[2:]}.debug").is_file(),
          "the debug symbols are not those of the program")
